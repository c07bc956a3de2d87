"""Chapter on probing: from which layer on a model's hidden states tell the answer, and in which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from analysis import apa
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.tables import Tables
from experiment.papers.inside.chapters.probing.probes import Probing, probings
from experiment.papers.inside.chapters.probing.probing_figures import accuracy_figures, step_figure
from experiment.papers.inside.chapters.probing.probing_fit import CONDITION, INNER_FOLDS, TARGETS, settings_of
from experiment.papers.inside.chapters.probing.probing_intervals import (
    RESAMPLES,
    Probed,
    ProbeEstimates,
    accuracies,
    widening,
)

LAYOUT = ChapterLayout(Path(__file__).parent)
TOLD_IN_FULL = 4  # up to so many models are told one by one; of more, tables and figures tell
SKEWED = 0.1  # by so much the most frequent label may exceed an equal share before that is said


def write(material: Material) -> Chapter | None:
    """Write the chapter; None where no model kept the states of its prompts' last tokens, or the study wants no probing."""
    tables = material.tables
    study = str(tables.dictionary["study"])
    probed_models, failed = probings(tables, material.told)
    if not probed_models and not (failed and tables.dictionary.get("probing") is not None):
        return None
    probed: dict[str, list[Probed]] = {}
    for probing in probed_models:
        probed.setdefault(probing.target, []).append(Probed(probing, accuracies(probing, study)))
    blocks = LAYOUT.blocks("opening") if probed_models else []
    for target, models in probed.items():
        blocks += _of_target(target, models, tables, headed=len(probed) > 1)
    blocks += LAYOUT.blocks("not_probed", failed=failed, targets=TARGETS) if failed else []
    names = [*(probing.group for probing in probed_models), *(failure.group for failure in failed)]
    methods = _methods(tables, [model.probing for models in probed.values() for model in models])
    return LAYOUT.chapter("probing", blocks, names, material.kinds, methods=methods)


def _of_target(target: str, models: Sequence[Probed], tables: Tables, *, headed: bool) -> list[Block]:
    """Write sentences, tables and figures of what was predicted."""
    noun, first = TARGETS[target], models[0].probing
    shares = np.bincount(first.label, minlength=len(first.classes)) / len(first.label)
    share_of = dict(zip(first.classes, shares, strict=True))
    shown_names = first.conditions if target == CONDITION else first.classes
    layers = f"probing_layers_{target}"
    title = f"Accuracy of probes by layer and condition: {noun}"
    drawn = accuracy_figures(layers, title, models, noun)
    title, name = "What each layer adds to the accuracy of the probe", f"probing_steps_{target}"
    steps = [
        step_figure(name if n == 1 else f"{name}_{n}", f"{title}: {model.name}, {noun}", model)
        for n, model in enumerate(models, 1)
        if model.found.steps.value.size
    ]
    values: dict[str, Any] = {
        "what": noun,
        "is_condition": target == CONDITION,
        "several": any(len(model.conditions) > 1 for model in models),
        "intervals": models[0].found.intervals,
        "names": [model.name for model in models],
        "factors": tables.factors,
        "resamples": RESAMPLES,
        "ends": _ends,
        "told": _with_ends,
    }
    return LAYOUT.blocks(
        "target",
        target=target,
        heading=noun[0].upper() + noun[1:] if headed else "",
        shares=[f"{name} {apa.percent(share_of[name], 0)}" for name in shown_names],
        probing=first,
        models=[_in_words(model) for model in models[:TOLD_IN_FULL]],
        cautions=[(model.name, text) for model in models if (text := _cautions(model))],
        most_frequent=max(model.by_label[1] for model in models),
        is_skewed=any(model.by_label[1] > 1 / len(model.probing.classes) + SKEWED for model in models),
        overview=LAYOUT.table("overview", _overview(models), f"probing_{target}", **values),
        layers=LAYOUT.table("layers", _layers(models), layers, **values),
        controls=LAYOUT.table("controls", _controls(models), f"probing_controls_{target}", **values),
        drawn=[*drawn, *steps],
        pointed=[layers, *(step.name for step in steps[:TOLD_IN_FULL])],
    )


def _in_words(probed: Probed) -> dict[str, Any]:
    """Return from where on a model's accuracy lies above chance in which conditions, and where it differs from the first."""
    above: dict[int, list[str]] = {}
    never: list[str] = []
    for index, level in enumerate(probed.conditions):
        first = probed.first_above(index)
        (never if first is None else above.setdefault(first, [])).append(level)
    against = probed.found.against
    differing = {
        word: [
            f"{level} ({apa.number(100 * abs(against.value[index, probed.last]), 1)} points)"
            for index, level in enumerate(probed.conditions[1:])
            if sure[index]
        ]
        for word, sure in (
            ("below", against.high_all[:, probed.last] < 0),
            ("above", against.low_all[:, probed.last] > 0),
        )
    }
    return {"one": probed, "above": sorted(above.items()), "never": never, "differing": differing}


def _cautions(probed: Probed) -> tuple[Markup, ...]:
    """State what a reader must know of a model's probes."""
    probing = probed.probing
    return LAYOUT.paragraphs(
        "cautions",
        left_out=probing.left_out,
        dealt=probing.dealt,
        most=max(len(split.train) for split in probing.dealt.splits),
        unconverged=sum(layer.unconverged for layer in probing.layers),
        fits=sum(layer.fits for layer in probing.layers),
        clipped=[str(number) for number, layer in enumerate(probing.layers) if layer.clipped],
    )


def _overview(models: Sequence[Probed]) -> Iterator[dict[str, Any]]:
    for model in models:
        for index, level in enumerate(model.conditions):
            first, best = model.first_above(index), model.steepest(index)
            yield {"one": model, "place": index, "level": level, "first": first, "best": best}


def _layers(models: Sequence[Probed]) -> Iterator[dict[str, Any]]:
    for model in models:
        for index, level in enumerate(model.found.names):
            is_compared = 0 < index < len(model.conditions)
            for layer in range(model.last + 1):
                row = {"one": model, "place": index, "level": level, "layer": layer}
                yield row | {"is_compared": is_compared}


def _controls(models: Sequence[Probed]) -> Iterator[dict[str, Any]]:
    """Yield of every layer its penalties, and means of folds on training items, weighted by their number."""
    for model in models:
        weights = [len(split.train) for split in model.probing.dealt.splits]
        for layer, probed in enumerate(model.probing.layers):
            controls = probed.trained_controls
            learnt = np.average(controls.mean(axis=1), weights=weights) if controls.size else np.nan
            low, high = probed.penalties.min(), probed.penalties.max()
            yield {
                "one": model,
                "layer": layer,
                "penalties": f"{low:g}" if low == high else f"{low:g} to {high:g}",
                "trained": float(np.average(probed.trained, weights=weights)),
                "learnt": float(learnt),
            }


def _ends(estimates: ProbeEstimates, index: int, layer: int, together: bool = False) -> str:
    """Write an interval in percent, by itself or together with those of all layers and conditions."""
    low, high = (estimates.low_all, estimates.high_all) if together else (estimates.low, estimates.high)
    return apa.interval(100 * low[index, layer], 100 * high[index, layer], 1)


def _with_ends(estimates: ProbeEstimates, index: int, layer: int, together: bool = False) -> str:
    """Write a percentage with its interval."""
    value = apa.number(100 * estimates.value[index, layer], 1)
    return apa.joined(value, _ends(estimates, index, layer, together))


def _methods(tables: Tables, models: Sequence[Probing]) -> tuple[Markup, ...]:
    """Write the paragraphs of the Method section; none without a probing."""
    settings = settings_of(tables.dictionary.get("probing"))
    if settings is None or not models:
        return ()
    folds = len(models[0].dealt.splits)
    return LAYOUT.paragraphs(
        "methods",
        settings=settings,
        whats=[TARGETS[target] for target in dict.fromkeys(probing.target for probing in models)],
        values=[f"{penalty:.10f}".rstrip("0").rstrip(".") for penalty in settings.penalties],
        test_splits=models[0].dealt.test_splits,
        folds=apa.spelled(folds),
        inner_folds=INNER_FOLDS,
        scikit_learn=metadata.version("scikit-learn"),
        predicts_conditions=any(probing.target == CONDITION for probing in models),
        resamples=RESAMPLES,
        widest=max(widening(len(probing.dealt.splits)) for probing in models),
    )
