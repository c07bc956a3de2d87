"""Sensitivity and bias: signal detection where one of two classes is the answer, from counts and from a mixed model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import escape

from analysis import apa
from analysis.answers import choice_types
from analysis.exclusions import each_answer_once, not_told_apart, unseen
from analysis.figures.measures import sensitivity_figure
from analysis.measures import signal_detection as detection
from analysis.multiple_comparisons import with_adjusted
from analysis.names import plain
from analysis.readers import PARTICIPANT_KINDS, headed, kinds_of, named
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.condense_levels import lowest_and_highest
from analysis.report.effect_sizes import p_said
from analysis.report.layout import ChapterLayout

LAYOUT = ChapterLayout(Path(__file__).parent)
SPOKEN_LEVELS = 6  # of more, the table and figure alone have the cells
ALPHA = 0.05
FEW_TRIALS = 10  # of a class, per participant and condition: with fewer, the correction bounds d′ noticeably


def write(material: Material) -> Chapter | None:
    """Write signal detection for each pair of classes that a study asks for; None where there is none."""
    tables = material.tables
    two_class = detection.two_class_trials(tables.trials, tables.items)
    if two_class:
        material.told("signal detection")
    draft = Draft()
    kinds: dict[str, str] = {}
    for number, classes in enumerate(two_class, 1):
        stem = f"sensitivity_{number}" if len(two_class) > 1 else "sensitivity"
        kinds |= kinds_of(classes.trials)
        where = f" ({', '.join(classes.sets)})" if len(two_class) > 1 and classes.sets else ""
        # where readers have the labels swapped, the label A does not always stand for the class A
        maps = classes.trials["label_map"].dropna() if "label_map" in classes.trials else ()
        decoded = len(set(maps)) > 1
        if decoded:
            classes = replace(classes, noun="class ")
        draft.blocks += LAYOUT.blocks("opening", classes=classes, where=where, decoded=decoded)
        draft.add(_of_classes(classes, stem, material))
    methods = (LAYOUT.sentences("methods", has_models=bool(draft.fits)),)
    return LAYOUT.chapter("signal-detection", draft, kinds, kinds, methods)


def _of_classes(classes: detection.Classes, stem: str, material: Material) -> Draft:
    draft, trials = Draft(), classes.trials
    by_factor = {
        name: [level for level in levels if (trials[name] == level).any()]
        for name, levels in material.tables.factors.items()
    }
    settled = [name for name, levels in by_factor.items() if levels and _settles_the_answer(trials, name)]
    if settled:
        draft.blocks.append(LAYOUT.sentences("settled", settled=settled))
    factors = {name: levels for name, levels in by_factor.items() if levels and name not in settled}
    if not factors:
        draft.blocks += _described(replace(classes, trials=each_answer_once(trials, [])), None, [], stem)
    for factor, levels in factors.items():
        # answers of a model that copy one another within the levels are counted once
        factor_stem, counted = (
            f"{stem}_{plain(factor)}",
            replace(classes, trials=each_answer_once(trials, [factor])),
        )
        described = _described(counted, factor, levels, factor_stem)
        draft.blocks += described
        if len(levels) < 2:
            continue
        shown = counted.trials[counted.trials[factor].isin(levels)]
        blind = not_told_apart(shown, factor) if "same_prompt" in shown else []
        if blind:
            # one answer under the name of each level is no answer to each of them
            counted = replace(counted, trials=counted.trials[~counted.trials[detection.GROUP].isin(blind)])
            text = " ".join(unseen(group, factor) for group in blind)
            draft.blocks.append(LAYOUT.sentences("blind", said=text, factor=factor, blind=blind))
        if counted.trials.empty:
            continue
        material.told(f"signal detection: model by {factor}")
        model = detection.probit_model(counted, factor, levels)
        if isinstance(model, detection.ProbitModel):
            draft.blocks += _modelled(model, factor, factor_stem, material.kinds, described)
            draft.fits.append(ReportedFit(f"signal detection by {factor}", model.fit))
        else:
            draft.blocks.append(escape(" ".join(model)))
    return draft


def _settles_the_answer(trials: pd.DataFrame, factor: str) -> bool:
    """Return whether all trials of each level of a factor have one right answer."""
    answers = trials[trials[factor].notna()].groupby(factor, observed=True)["answer"].nunique()
    return bool((answers == 1).all())


def _described(classes: detection.Classes, factor: str | None, levels: list[str], stem: str) -> list[Block]:
    cells = detection.of_groups(classes, factor, levels)
    readers = detection.signal_detection(classes.trials, [factor] if factor else [], classes.signal)
    kinds = {str(cell[detection.GROUP]): str(cell["kind"]) for cell in cells.to_dict("records")}
    is_of_people = cells["kind"].isin(PARTICIPANT_KINDS)
    grouped = {
        str(group): group_cells.to_dict("records")
        for group, group_cells in cells.groupby(detection.GROUP, sort=False)
    }
    spoken_groups = [
        group
        for group, group_cells in grouped.items()
        if len(levels) <= SPOKEN_LEVELS
        and kinds[group] != "baseline"
        and any(np.isfinite(cell["d_prime"]) for cell in group_cells)
    ]
    return LAYOUT.blocks(
        "described",
        table=LAYOUT.table(
            "counts",
            [cell for group_cells in grouped.values() for cell in group_cells],
            stem,
            kinds=kinds,
            factor=factor,
            is_any_missing=any(cell["missing"] for group_cells in grouped.values() for cell in group_cells),
            is_any_left_out=(cells["readers"] < cells["of"]).any(),
            signal=classes.signal_in_words,
            is_pooled=cells["pooled"].any(),
            has_means=not cells.loc[is_of_people, "pooled"].all(),
            has_models=not is_of_people.all(),
            types=choice_types(classes.trials),
        ),
        drawing=sensitivity_figure(
            stem, cells, readers, factor, levels, classes.signal_in_words, classes.other_in_words
        )
        if np.isfinite(cells["d_prime"]).any()
        else None,
        limit=_limit(cells, readers),
        factor=factor,
        readers=[_ends(group, grouped[group]) for group in spoken_groups],
        flat=_one_answer(cells, kinds),
        kinds=kinds,
    )


def _limit(cells: pd.DataFrame, readers: pd.DataFrame) -> tuple[int, float] | None:
    """Return the most trials per class of a participant and the d′ that so many can reach; None where they are many."""
    averaged = cells.loc[cells["kind"].isin(PARTICIPANT_KINDS) & ~cells["pooled"], detection.GROUP]
    counts = readers.loc[readers[detection.GROUP].isin(averaged), ["signals", "others"]]
    counts = counts[(counts > 0).all(axis=1)].drop_duplicates()
    if counts.empty or counts.to_numpy().max() >= FEW_TRIALS:
        return None
    reached = [detection.sensitivity(s, s, 0, o).d_prime for s, o in counts.itertuples(index=False)]
    return int(counts.to_numpy().max()), max(reached)


def _ends(group: str, cells: list[dict[Any, Any]]) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return a reader's least and greatest d′ and criterion, each with the conditions that have it."""
    ends: dict[str, tuple[str, ...]] = {}
    for name in detection.MEASURED:
        measured = [cell for cell in cells if np.isfinite(cell[name])]
        levels = [str(cell["level"]) for cell in measured]
        sizes = [float(cell[name]) for cell in measured]
        values = [apa.number(size) for size in sizes]
        if len(cells) == len(measured) > 1 == len(set(values)):
            ends[name] = (f"{values[0]} in every condition",)
        else:
            ends[name] = lowest_and_highest(levels, values, sizes) if any(levels) else tuple(values)
    return group, ends


def _one_answer(cells: pd.DataFrame, kinds: dict[str, str]) -> list[str]:
    """Name the readers that give the same answer to every trial of a level."""
    answered, total = cells["hits"] + cells["false_alarms"], cells["signals"] + cells["others"]
    has_both = (cells["signals"] > 0) & (cells["others"] > 0)
    always = cells[has_both & ((answered == 0) | (answered == total))]
    texts = []
    for group, group_cells in always.groupby(detection.GROUP, sort=False):
        is_everywhere = len(group_cells) == cells["level"].nunique()
        where = "every condition" if is_everywhere else apa.listing(list(group_cells["level"]))
        texts.append(named(str(group), kinds) + (f" in {where}" if group_cells["level"].iloc[0] else ""))
    return texts


def _modelled(
    model: detection.ProbitModel,
    factor: str,
    stem: str,
    kinds: dict[str, str],
    described: Sequence[Block],
) -> list[Block]:
    estimates = detection.sensitivity_and_bias(model.fit, model.data)
    differences = with_adjusted(
        detection.differences_in_sensitivity(model.fit, model.data), "ci_low", "ci_high"
    )
    rows = [
        difference | {"who": " vs. ".join(headed(group or model.groups[0]) for group in difference["groups"])}
        for measure in ("d_prime", "criterion")
        for difference in differences[differences["measure"] == measure].to_dict("records")
    ]
    facts: dict[str, Any] = {"factor": factor, "fit": model.fit}
    return LAYOUT.blocks(
        "modelled",
        table=LAYOUT.table(
            "model",
            list(_cells(estimates, model, factor)),
            f"{stem}_model",
            (model.fit,),
            kinds=kinds,
            **facts,
        ),
        differences=LAYOUT.table(
            "differences",
            rows,
            f"{stem}_differences",
            (model.fit,),
            has_pairs=len(model.groups) > 1,
            **facts,
        ),
        counts=next(block for block in described if isinstance(block, ApaTable)),
        terms=["truth", factor, *(["reader"] if len(model.groups) > 1 else [])],
        remarks=model.remarks,
        omitted=model.omitted,
        found=list(_findings(differences, model.groups[0], kinds)),
        open=differences.loc[differences["p_adjusted"] >= ALPHA, "p_adjusted"].tolist(),
        **facts,
    )


def _cells(estimates: pd.DataFrame, model: detection.ProbitModel, factor: str) -> Iterator[dict[Any, Any]]:
    """Yield d′ and criterion of each reader and level."""
    for group in model.groups:
        group_estimates = (
            estimates[estimates[detection.GROUP] == group] if detection.GROUP in estimates else estimates
        )
        for level in model.levels:
            by_measure = group_estimates[group_estimates[factor] == level].set_index("measure")
            yield {"reader_group": group, "level": level, **by_measure.to_dict("index")}


def _findings(differences: pd.DataFrame, only: str, kinds: dict[str, str]) -> Iterator[dict[Any, Any]]:
    """Yield the significant differences, which the text tells one by one."""
    for difference in differences[differences["p_adjusted"] < ALPHA].to_dict("records"):
        first, *others = (named(group or only, kinds) for group in difference["groups"])
        yield {
            **difference,
            "reader": first,
            "second_reader": others[0] if others else "",
            "p_said": p_said(difference["p_adjusted"]),
        }
