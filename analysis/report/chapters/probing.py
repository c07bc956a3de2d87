"""Chapter on probing: from which layer on a model's hidden states tell the answer, and in which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.inside import ModelLayers, accuracy_figures, step_figure
from analysis.inside.probing import Unprobed, probings
from analysis.inside.probing_fit import CONDITION, TARGETS
from analysis.inside.probing_intervals import accuracies
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.probing_methods import SOURCES, SOURCES_OF_FOLDS, methods_of_probing
from analysis.report.chapters.probing_tables import Probed, control_table, layers_table, overview_table
from analysis.tables import Tables

_TOLD_IN_FULL = 4
"""Up to so many models are told one by one; of more, tables and figures tell."""
_SKEWED = 0.1
"""By so much the most frequent label may exceed an equal share before that is said."""


def write(material: Material) -> Chapter | None:
    """Write the chapter; None where no model kept the states of its prompts' last tokens, or the study wants no probing."""
    tables = material.tables
    study = str(tables.dictionary["study"])
    found, failed = probings(tables, material.told)
    asked = tables.dictionary.get("probing") is not None
    if not found and not (failed and asked):
        return None
    probed: dict[str, list[Probed]] = {}
    for one in found:
        probed.setdefault(one.target, []).append(Probed(one, accuracies(one, study)))
    blocks: list[Block] = [Markup(escape(_OPENING))] if found else []
    for target, models in probed.items():
        if len(probed) > 1:
            blocks.append(Markup("<h3>{}</h3>").format(_first(TARGETS[target])))
        blocks += _of_target(target, models, tables)
    blocks += [Markup(escape(_not_probed(failed)))] if failed else []
    names = list(dict.fromkeys([*(one.group for one in found), *(one.group for one in failed)]))
    return Chapter(
        "probing",
        "What the layers tell",
        tuple(blocks),
        marks_of(names, material.kinds),
        methods=methods_of_probing(tables, [one.probing for own in probed.values() for one in own]),
        sources=(*SOURCES, *(SOURCES_OF_FOLDS if any(len(one.dealt.splits) > 1 for one in found) else ()))
        if found
        else (),
    )


_OPENING = (
    "A probe is a logistic regression that tells an answer from the hidden states of one layer. Where it succeeds on "
    "items that it "
    "was not trained on, the answer can be read out of that layer; whether the model makes use of it is another question, and "
    "where it fails, a probe of another kind may succeed."
)


def _of_target(target: str, models: Sequence[Probed], tables: Tables) -> Iterator[Block]:
    """Write sentences, tables and figures of what was predicted."""
    overview, layers, controls = (f"probing{part}_{target}" for part in ("", "_layers", "_controls"))
    what = TARGETS[target]
    steps = [
        f"probing_steps_{target}" if number == 1 else f"probing_steps_{target}_{number}"
        for number in range(1, len(models) + 1)
    ]
    drawn = accuracy_figures(
        layers,
        f"Accuracy of probes by layer and condition: {what}",
        [ModelLayers(one.name, one.found) for one in models],
        what,
    )
    stepped = [name for name, one in zip(steps, models, strict=True) if one.found.steps.value.size]
    pointers = [
        f"[[table:{overview}]]",
        *(f"[[figure:{name}]]" for name in (layers, *stepped[:_TOLD_IN_FULL])),
    ]
    yield Markup("{} ({}).").format(_asked(target, models), Markup(", ".join(pointers)))
    for one in models[:_TOLD_IN_FULL]:
        yield Markup(escape(_told(one)))
    yield from (Markup(escape(text)) for text in _cautions(models))
    yield Markup(
        "[[table:{}]] has every layer and condition, [[table:{}]] penalties, training items, and the control task."
    ).format(layers, controls)
    yield overview_table(overview, f"Probes of the last token’s states: {what}", models, tables)
    yield layers_table(layers, f"Probes by layer and condition: {what}", models, tables)
    yield control_table(controls, f"Penalties and control tasks by layer: {what}", models, tables)
    yield from drawn
    for name, one in zip(steps, models, strict=True):
        if one.found.steps.value.size:
            title = f"What each layer adds to the accuracy of the probe: {one.name}, {what}"
            yield step_figure(name, title, ModelLayers(one.name, one.found))


def _asked(target: str, models: Sequence[Probed]) -> str:
    first = models[0].probing
    counts = np.bincount(first.label, minlength=len(first.classes))
    many_of = dict(zip(first.classes, counts / counts.sum(), strict=True))
    named = first.conditions if target == CONDITION else first.classes
    shares = apa.listing([f"{name} {apa.percent(many_of[name], 0)}" for name in named])
    shown = {
        "answer": "Predicted was the right answer by the label under which the model was shown it",
        "response": "Predicted was the answer that the model gave, by its label",
        "condition": "Predicted was the condition in which the text was shown",
    }[target]
    many = (
        ""
        if first.items == first.families
        else f" ({apa.count(first.families)}, where those that belong together count once)"
    )
    return f"{shown} ({shares} of {apa.counted(len(first.label), 'trial')}), from {apa.counted(first.items, 'item')}{many}"


def _told(one: Probed) -> str:
    """Tell one model's accuracy at the last layer, and from where on it lies above chance in which conditions."""
    found = one.found
    last, whole = found.accuracy.value.shape[1] - 1, len(found.names) - 1
    ends = apa.interval(100 * found.accuracy.low[whole, last], 100 * found.accuracy.high[whole, last], 1)
    said = f"{one.name} ({apa.counted(last, 'layer')} of {apa.count(one.probing.width)} dimensions): "
    said += "at the last layer, probes were right in "
    said += f"{apa.percent(found.accuracy.value[whole, last])} of trials"
    said += " over all conditions" if len(one.conditions) > 1 else ""
    said += f", 95% CI {ends}; chance is {apa.percent(found.chance[whole, last])}. {_above_chance(one)}"
    if found.against.value.size:
        said += f" {_against(one, last)}"
    if np.isfinite(found.selectivity.value[whole, last]):
        said += f" Selectivity there was {apa.number(100 * found.selectivity.value[whole, last], 1)} points."
    return said


def _above_chance(one: Probed) -> str:
    above: dict[int, list[str]] = {}
    never = []
    for place, level in enumerate(one.conditions):
        first = one.first_above(place)
        if first is None:
            never.append(level)
        else:
            above.setdefault(first, []).append(level)
    if not above:
        return f"In no layer did accuracy of {one.name} lie above chance."
    parts = [f"at layer {first} in {apa.listing(levels)}" for first, levels in sorted(above.items())]
    parts += [f"nowhere in {apa.listing(never)}"] if never else []
    return f"Accuracy first lay above chance {'; '.join(parts)}."


def _against(one: Probed, last: int) -> str:
    """Say in which conditions accuracy at the last layer differs from that in the first condition."""
    against, base = one.found.against, one.conditions[0]
    told = []
    for sure, sign, word in (
        (against.high_all[:, last] < 0, -100, "below"),
        (against.low_all[:, last] > 0, 100, "above"),
    ):
        levels = [
            f"{level} ({apa.number(sign * against.value[place, last], 1)} points)"
            for place, level in enumerate(one.conditions[1:])
            if sure[place]
        ]
        if levels:
            told.append(f"{word} it in {apa.listing(levels)}")
    if not told:
        return f"At the last layer, no condition differed from {base}."
    return f"Compared with {base} at the last layer, accuracy lay {' and '.join(told)}."


def _cautions(models: Sequence[Probed]) -> Iterator[str]:
    """Say what a reader must know of single models."""
    for one in models:
        own = one.probing
        said = list(own.left_out)
        if own.dealt.is_thinned:
            most = max(len(split.train) for split in own.dealt.splits)
            said.append(
                f"{apa.count(most)} of {apa.count(own.dealt.training)} training trials were taken, of items drawn by a stable hash, "
                "since more are not held in memory"
            )
        unconverged = sum(layer.unconverged for layer in own.layers)
        if unconverged:
            many = sum(layer.fits for layer in own.layers)
            said.append(f"{apa.count(unconverged)} of {apa.count(many)} regressions did not converge")
        clipped = [str(number) for number, layer in enumerate(own.layers) if layer.clipped]
        if clipped:
            said.append(
                f"states of layer{'s' if len(clipped) > 1 else ''} {apa.listing(clipped)} hold numbers too large for 16 bits, which "
                "count as the largest that fits"
            )
        if said:
            yield f"{own.group}: {'; '.join(said)}."
    largest = max(float(_by_label(one).max()) for one in models)
    if any(_by_label(one).max() > 1 / len(one.probing.classes) + _SKEWED for one in models):
        yield (
            "Labels are not balanced: always giving the most frequent one is right in up to "
            f"{apa.percent(largest)} of trials, which is the chance that is meant here."
        )


def _by_label(one: Probed) -> NDArray[np.float64]:
    """Return chance where it comes from how frequent labels are, which it does not in single conditions that are predicted."""
    return one.found.chance[-1:] if one.probing.target == CONDITION else one.found.chance


def _not_probed(failed: Sequence[Unprobed]) -> str:
    told = [f"{one.group} ({TARGETS[one.target]}): {one.why}" for one in failed]
    return f"Not probed: {' '.join(told)}"


def _first(text: str) -> str:
    return text[0].upper() + text[1:]
