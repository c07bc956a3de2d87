"""Fidelity of effects: every planned difference of people beside each model's, in a table, on a map, and in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.departures import why_no_bound
from analysis.fidelity import BOTH, EQUIVALENT, NOT_ESTIMABLE, effects
from analysis.figures.fidelity import MapScale, fidelity_map
from analysis.names import plain
from analysis.readers import PARTICIPANT_KINDS, headed, named, spoken
from analysis.report.apa_tables import ApaTable, Origin, as_percent
from analysis.report.blocks import Block, Material
from analysis.report.many_levels import MOST_NAMED
from analysis.results import Analysis
from stimuli.errors import UserError

TOLD_IN_FULL = 6
"""Up to so many pairs of difference and model are told one by one; more are counted, and stand in the table."""
YES, NOT_SHOWN = "yes", "not shown"
"""What is answered to "does the model differ from people?"."""


def in_italics(text: str) -> Markup:
    """Escape a sentence and set its p and r in italics."""
    return Markup(re.sub(r"\b([pr])(?= (?:=|&lt;|&gt;))", r"<i>\1</i>", str(escape(text))))


def compared(material: Material) -> list[tuple[Analysis, pd.DataFrame]]:
    """Return the analyses that hold people beside models, with their effects; planned ones where there are any.

    What the people's measure is called stands in the attributes of each table: it may be another than the models'.
    """
    found = []
    by_key: dict[str, Analysis] = {}
    for one in material.analyses:
        groups = one.plan.groups if one.plan.planned else one.groups
        if groups and material.kinds.get(groups[0]) in PARTICIPANT_KINDS:
            by_key.setdefault(one.plan.key or one.plan.name, one)
    for one in material.analyses:
        first = by_key.get(one.plan.key or one.plan.name)
        if first is None or not (one.has_results or first.has_results):
            continue
        try:
            table = effects(one) if first is one else effects(one, first)
        except UserError:  # people alone, or models alone
            continue
        if len(table):  # a yardstick is not asked how like people it is
            table = table[table["model"].map(material.kinds.get) != "baseline"].reset_index(drop=True)
        if len(table):
            table.attrs["people"] = first.plan.measure.noun
            found.append((one, table))
    planned = [one for one in found if one[0].plan.planned]
    return planned or found


def effects_blocks(analysis: Analysis, table: pd.DataFrame, material: Material) -> list[Block]:
    """Write what one analysis says of fidelity: sentences, table, map."""
    stem = plain(analysis.plan.name)
    kinds = material.kinds
    laid = _laid_out(f"fidelity_{stem}", analysis, table)
    known = table[table["human"].notna() & table["machine"].notna()]
    drawn: list[Block] = []
    pointer = f" ([[table:{laid.name}]])"
    if len(known):
        bound = analysis.plan.equivalence
        said = bound.said or f"{bound.value:g}" if bound is not None else ""
        map_name = f"fidelity_map_{stem}"
        drawn = [fidelity_map(map_name, known, kinds, _scale(analysis, table), said)]
        pointer = f" ([[table:{laid.name}]], [[figure:{map_name}]])"
    return [
        Markup("<h3>{}</h3>").format(_heading(analysis)),
        *told_of_effects(analysis, table, kinds, pointer),
        laid,
        *drawn,
    ]


def _heading(analysis: Analysis) -> str:
    about = "planned" if analysis.plan.planned else "exploratory"
    return f"Effects: {analysis.plan.name} ({about})"


def _nouns(analysis: Analysis, table: pd.DataFrame) -> str:
    """Name the measure of people and models, both where they differ."""
    own, noun = str(table.attrs["people"]), analysis.plan.measure.noun
    return noun if own == noun else f"{own} (people) and {noun} (models)"


def _scale(analysis: Analysis, table: pd.DataFrame) -> MapScale:
    measure = analysis.plan.measure
    unit = {"points": "percentage points", "ratio": "natural log of the ratio", "raw": measure.unit}[
        measure.scale
    ]
    return MapScale(measure.noun, unit, str(table.attrs["people"]))


def _value(value: float, analysis: Analysis) -> str:
    scale = analysis.plan.measure.scale
    if scale == "ratio":
        return apa.number(as_percent(value), 1) if np.isfinite(value) else apa.MISSING
    return apa.number(value, 1 if scale == "points" else 2)


def _interval(low: float, high: float, analysis: Analysis) -> str:
    if not np.isfinite(low) or not np.isfinite(high):
        return apa.MISSING
    scale = analysis.plan.measure.scale
    if scale == "ratio":
        return apa.interval(as_percent(low), as_percent(high), 1)
    return apa.interval(low, high, 1 if scale == "points" else 2)


def _both(row: pd.Series, name: str, analysis: Analysis) -> str:
    if not np.isfinite(row[name]):
        return apa.MISSING
    return apa.joined(
        _value(row[name], analysis), _interval(row[f"{name}_low"], row[f"{name}_high"], analysis)
    )


def _unit(analysis: Analysis) -> str:
    measure = analysis.plan.measure
    return {"points": "percentage points", "ratio": "percent", "raw": measure.unit}[measure.scale]


def _laid_out(name: str, analysis: Analysis, table: pd.DataFrame) -> ApaTable:
    plan = analysis.plan
    people = headed(str(table["people"].iloc[0]))
    level = f"{round(100 * (1 - 2 * plan.alpha))}% CI"
    bounded = plan.equivalence is not None
    rows = []
    for _, row in table.iterrows():
        cells = [str(row["contrast"]), str(row["model"])]
        cells += [_both(row, part, analysis) for part in ("human", "machine", "difference")]
        cells.append(apa.p_value(row["p"]))
        if bounded:
            cells.append(_interval(row["equivalence_low"], row["equivalence_high"], analysis))
        cells.append(_differ(row, plan.alpha))
        rows.append((*cells, _equivalent(row)) if bounded else tuple(cells))
    columns = [
        "Difference",
        "Model",
        f"{people} [95% CI]",
        "Model [95% CI]",
        f"{people} − model [95% CI]",
        "p",
    ]
    columns += [level, "Different", "Equivalent"] if bounded else ["Different"]
    note = f"In {_unit(analysis)}"
    note += (
        "; a comparison of readers is the ratio of their ratios. " if plan.measure.scale == "ratio" else ". "
    )
    note += f"p values and intervals are adjusted by {analysis.correction}. "
    note += (
        f"Different: do {spoken(str(table['people'].iloc[0]))} and the model differ? Yes where p is below alpha and the 95% "
        "interval leaves 0 out"
    )
    note += ". "
    if plan.equivalence is not None:
        note += (
            "Equivalent: is it small enough to count as none? Yes where two one-sided tests reject a difference as large as "
            f"{plan.equivalence.said or plan.equivalence.value}, fixed beforehand (their p values stand with the analysis). "
        )
    else:
        note += f"Nothing is called equivalent, since {why_no_bound([plan])}. "
    note += "Not shown is no answer: it means neither yes nor no."
    left_out = list(dict.fromkeys(str(why) for why in table["why"] if why))
    if left_out:
        note += f" Planned, not estimable, and counted in the families: {'; '.join(left_out)}."
    title = (
        f"Differences in {_nouns(analysis, table)}: {spoken(str(table['people'].iloc[0]))} beside each model"
    )
    return ApaTable(name, title, tuple(columns), tuple(rows), note, _origin(analysis))


def _origin(analysis: Analysis) -> Origin:
    fits = () if analysis.model is None or analysis.model.source is None else (analysis.model.source,)
    return Origin(fits, computed="the differences that the analysis tests, recomputed by models.R")


def _differ(row: pd.Series, alpha: float) -> str:
    """Answer whether a model differs from people: the test and its interval agree."""
    if row["verdict"] == NOT_ESTIMABLE:
        return apa.MISSING
    return YES if row["p"] < alpha else NOT_SHOWN


def _equivalent(row: pd.Series) -> str:
    """Answer whether the difference between people and a model is small enough to count as none."""
    if row["verdict"] == NOT_ESTIMABLE:
        return apa.MISSING
    return YES if row["verdict"] in (EQUIVALENT, BOTH) else NOT_SHOWN


def told_of_effects(
    analysis: Analysis, table: pd.DataFrame, kinds: dict[str, str], pointer: str
) -> list[Markup]:
    """Write the paragraphs on people's effects beside the models': first which questions are asked, then each answer.

    Parameters
    ----------
    analysis : Analysis
    table : pandas.DataFrame
        Of its effects (:func:`compared`).
    kinds : dict
        Reader kind of each group.
    pointer : str
        Names the table and the map.
    """
    people = str(table["people"].iloc[0])
    many = apa.worded(int(table["contrast"].nunique()), "difference")
    models = apa.worded(int(table["model"].nunique()), "model")
    text = f"{many.capitalize()} between conditions in {_nouns(analysis, table)} of {spoken(people)} beside {models}{pointer}. "
    told = [text + _questions(analysis, spoken(people))]
    if len(table) <= TOLD_IN_FULL:
        told += [
            " ".join(_sentence(row, analysis, people, kinds) for _, row in own.iterrows())
            for _, own in table.groupby("contrast", sort=False)
        ]
    else:
        told += [_of_model(own, analysis, kinds) for _, own in table.groupby("model", sort=False)]
        told += ["Which differences these are stands in the table."]
    return [in_italics(one) for one in told]


def _questions(analysis: Analysis, people: str) -> str:
    """Say which questions are asked of each difference between readers, and which is not."""
    bound = analysis.plan.equivalence
    if bound is None:
        return (
            f"Of each it is asked whether {people} and the model differ. Whether they differ so little that it counts as none "
            f"is not asked, since {why_no_bound([analysis.plan])}: where no difference is shown, there may still be one."
        )
    return (
        f"Two questions are asked of each, and either may be left open by the data: do {people} and the model differ, and is "
        f"what they differ by within the bound fixed beforehand ({bound.said or bound.value}), so that it counts as none?"
    )


def _sentence(row: pd.Series, analysis: Analysis, people: str, kinds: dict[str, str]) -> str:
    model = named(str(row["model"]), kinds)
    if row["verdict"] == NOT_ESTIMABLE:
        why = f" ({row['why']})" if row["why"] else ""
        return f"{row['contrast']}: not estimable for {spoken(people)} beside {model}{why}."
    unit = {"points": "points", "ratio": "%", "raw": analysis.plan.measure.unit}[analysis.plan.measure.scale]
    space = "" if unit == "%" else " "
    sides = [
        f"{who} {_value(row[part], analysis)}{space}{unit}, 95% CI {_interval(row[f'{part}_low'], row[f'{part}_high'], analysis)}"
        for who, part in ((spoken(people), "human"), (model, "machine"), ("their difference", "difference"))
    ]
    return f"{row['contrast']}: {'; '.join(sides)}. {_answers(row, analysis)}"


def _answers(row: pd.Series, analysis: Analysis) -> str:
    """Answer in words whether a model differs from people, and, where a bound was fixed, whether by so little as to count as none."""
    p = apa.p_phrase(row["p"])
    told = {
        YES: f"They differ ({p})",
        NOT_SHOWN: f"No difference between them is shown ({p})",
    }
    answer = _differ(row, analysis.plan.alpha)
    if analysis.plan.equivalence is None:
        return f"{told[answer]}."
    within = "lies within the bound"
    if _equivalent(row) == NOT_SHOWN:
        return f"{told[answer]}; that what they differ by {within} is not shown{' either' if answer == NOT_SHOWN else ''}."
    return f"{told[answer]}; what they differ by {within}: equivalent."


def _of_model(own: pd.DataFrame, analysis: Analysis, kinds: dict[str, str]) -> str:
    """Count the answers of one model, question by question."""
    who, people = named(str(own["model"].iloc[0]), kinds), spoken(str(own["people"].iloc[0]))
    names = own["contrast"].astype(str)
    alpha = analysis.plan.alpha
    by_answer = (
        names.groupby([_differ(row, alpha) for _, row in own.iterrows()], sort=False).agg(list).to_dict()
    )
    words = {
        YES: f"different from {people} in",
        NOT_SHOWN: "not shown to differ in",
        apa.MISSING: "not estimable in",
    }
    parts = [_counted(told, by_answer[answer]) for answer, told in words.items() if answer in by_answer]
    if analysis.plan.equivalence is not None:
        near = [name for name, (_, row) in zip(names, own.iterrows(), strict=True) if _equivalent(row) == YES]
        parts.append(_counted("equivalent in", near) if near else "equivalent in none")
    known = own[own["verdict"] != NOT_ESTIMABLE]
    against = int((~known["same_direction"].astype(bool)).sum())
    turned = f"; of opposite sign in {apa.count(against)}" if against else ""
    return f"{who[0].upper() + who[1:] if who.startswith('the ') else who}: {'; '.join(parts)}{turned}."


def _counted(words: str, names: Sequence[str]) -> str:
    which = f" ({', '.join(names)})" if len(names) <= MOST_NAMED else ""
    return f"{words} {apa.count(len(names))}{which}"


def methods_of_effects(found: Sequence[tuple[Analysis, pd.DataFrame]]) -> Markup:
    """Say how effects of people and models were compared."""
    bounded = [one for one, _ in found if one.plan.equivalence is not None]
    text = (
        "Fidelity of effects: each difference between conditions was estimated for people and for each model in the model of the "
        "analysis; readers were compared in that model, or, where people and models have measures of their own, as a ratio of ratios."
    )
    if bounded:
        text += " Equivalence was tested by two one-sided tests (Schuirmann, 1987; Lakens, 2017) against the plan's bound."
    return Markup(escape(text))
