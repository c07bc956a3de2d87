"""What stands behind the models: accuracy by class of items as a heat map, and which items and readers deviate most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.caterpillar import Caterpillar, caterpillar_figure, is_sure
from analysis.figures.heat_map import heat_map_figure
from analysis.measures.accuracy import accuracy, asked
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, marked
from analysis.report.blocks import Block, Material
from analysis.report.chapters.robustness_tables import classes_table, deviations_table
from analysis.report.model_tables import component_in_words
from analysis.report.parted import parts_of, table_of_part
from analysis.results import Analysis
from analysis.robustness import deviations

MOST_CLASSES = 6
"""Classes of items in a table, the largest first, and in a heat map as far as a page has room for."""
MOST_ROWS = 20
"""Rows of cells in a heat map that fits a page."""
MOST_PANELS = 4
"""Random terms of a model that are drawn."""
MOST_MODELS, MOST_CATERPILLARS = 3, 2
"""Models that are checked in each part of the chapter, and those whose random effects are drawn."""

DEVIATIONS = (
    "Random effects are shown as conditional modes with 95% intervals from their conditional variances (Bates et al., 2015); "
    "estimated "
    "variances and fixed effects count as known."
)


def fitted_models(analyses: list[Analysis], *, planned: bool = False) -> list[Analysis]:
    """Return the analyses of accuracy and people's times that have a model; only the planned ones where asked.

    Planned ones come first, and of these the first of each measure: where only some are checked, three analyses of times leave
    none of accuracy out.
    """
    found = [
        one
        for one in analyses
        if one.model is not None
        and one.model.source is not None
        and one.contrasts
        and (one.plan.measure.name == "correct" or one.plan.measure.unit == "ms")
        and one.plan.measure.of != "models"
        and (one.plan.planned or not planned)
    ]
    seen: Counter[tuple[bool, str]] = Counter()
    turns: list[tuple[bool, int]] = []
    for one in found:
        kind = (not one.plan.planned, one.plan.measure.name)
        turns.append((kind[0], seen[kind]))
        seen[kind] += 1
    return [found[place] for place in sorted(range(len(found)), key=lambda place: turns[place])]


def heading_of(analysis: Analysis) -> str:
    """Name an analysis at the head of a sentence."""
    name = analysis.plan.name
    return f"{name[0].upper()}{name[1:]}"


def by_class(material: Material) -> Iterator[Block]:
    """Draw accuracy by class of items, reader and condition."""
    tables = material.tables
    rows = asked(tables.trials)
    rows = rows[rows["item_id"].notna()]
    first = list(tables.factors)[:2]
    for part in parts_of(rows, tables):
        factor, levels = part.factor, part.levels
        used = part.rows(rows)
        used = used[used[factor].notna()]
        if used.empty or factor not in first:
            continue
        column, what = _class_column(used, factor, list(tables.factors))
        shares = accuracy(used, [factor, *([column] if column else [])], resamples=0)
        shares = shares.assign(share=100 * shares["wrong"])
        blocks = []
        names = [""] if column is None else list(used[column].value_counts().index)[:MOST_CLASSES]
        for name in names:
            own = shares if column is None else shares[shares[column] == str(name)]
            table = own.pivot_table(index="reader_group", columns=factor, values="share", sort=False)
            order = [group for group in group_order(used) if group in table.index]
            table = table.reindex(index=order, columns=[one for one in levels if (used[factor] == one).any()])
            table.index = [marked(group, material.kinds.get(group, "model")) for group in order]
            blocks.append((str(name), table))
        readers = max(len(table) for _, table in blocks)
        drawn = blocks[: max(MOST_ROWS // max(readers, 1), 1)]
        title = f"Accuracy by {what + ', ' if column else ''}{factor} and reader{part.told}"
        note = "Percent correct over all trials of a cell; failures count as wrong. An en dash: no trials."
        if column is None:
            note += " All items are of one class."
        elif used[column].nunique() > len(drawn):
            note += f" The {len(drawn)} largest of {used[column].nunique()} classes are shown."
        kinds = {group: material.kinds.get(group, "model") for group in group_order(used)}
        figure = heat_map_figure(
            f"heat_map_{part.stem}", title, drawn, kinds, unit="% correct, failures wrong", limits=(0.0, 100.0), note=note
        )  # fmt: skip
        yield Markup(
            "[[figure:{}]] has the share of right answers of every reader in every condition"
        ).format(figure.name) + (
            Markup(", [[table:classes_{}]] its numbers.").format(part.stem) if column else Markup(".")
        )
        yield figure
        if column:
            laid = classes_table(blocks, factor, f"classes_{part.stem}", what)
            yield table_of_part(laid, part, laid.name)


def _class_column(used: pd.DataFrame, factor: str, factors: list[str]) -> tuple[str | None, str]:
    """Return the column that tells classes of items apart and is crossed with the factor: set, kind of trial, another factor."""
    words = {"set": "set of items", "trial_type": "kind of trial"}
    for column in ("set", "trial_type", *factors):
        if column == factor or column not in used or used[column].nunique() < 2:
            continue
        # where every class has one level, classes are the factor again
        if (used.groupby(column)[factor].nunique() > 1).any():
            return column, words.get(column, column)
    return None, "item class"


def deviating(analyses: list[Analysis], material: Material) -> Iterator[Block]:
    """Draw the random effects of the first models and name the items and readers that deviate most."""
    for number, analysis in enumerate(fitted_models(analyses)[:MOST_CATERPILLARS], 1):
        model = analysis.model
        assert model is not None and model.source is not None
        found = deviations(model.source)
        if found.empty:
            yield escape(
                f"{heading_of(analysis)}: the model has no random effect with a variance above 0, or too many to look at singly."
            )
            continue
        people = [group for group in analysis.groups if material.kinds.get(group) in PARTICIPANT_KINDS]
        owner = {"participant": headed(people[0]) if people else "Readers", "item": "Items"}
        single = {(one.group, one.terms) for one in model.variance}
        parts = {
            f"{owner[str(group)]}: {component_in_words(str(term), analysis, alone=(group, (term,)) in single)}": own
            for (group, term), own in found.groupby(["group", "term"], sort=False)
        }
        panels = [Caterpillar(words, own) for words, own in list(parts.items())[:MOST_PANELS]]
        unit = (
            "log odds"
            if model.family == "binomial"
            else "log units"
            if analysis.plan.measure.logged
            else "ms"
        )
        figure = caterpillar_figure(
            f"caterpillar_{number}", f"Random effects of the model of {analysis.plan.measure.noun} ({analysis.plan.name})",
            panels, unit, {group: material.kinds.get(group, "model") for group in analysis.groups},
        )  # fmt: skip
        told = []
        for words, own in parts.items():
            sure = int(is_sure(own).sum())
            at = own.iloc[int(own["mode"].abs().argmax())]
            told.append(
                f"{words}: SD = {apa.number(own['spread'].iloc[0], 3)}, the interval of {apa.count(sure)} of "
                f"{apa.count(len(own))} leaves 0 "
                f"out; {at['level']} deviates most ({apa.number(at['mode'])})."
            )
        yield Markup("{} [[figure:{}]], [[table:{}]]. ").format(
            f"{heading_of(analysis)}:", figure.name, f"deviations_{number}"
        ) + escape(" ".join(told))
        yield figure
        yield deviations_table(parts, analysis, f"deviations_{number}")
