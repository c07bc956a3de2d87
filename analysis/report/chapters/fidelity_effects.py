"""Fidelity of effects: every planned difference of people beside each model's, in a table, on a map, and in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.fidelity import effects
from analysis.fidelity.effects import BOTH, DIFFERENT, EQUIVALENT, NOT_ESTIMABLE, UNDECIDED
from analysis.figures.fidelity_map import MapScale, fidelity_map
from analysis.names import plain
from analysis.readers import PARTICIPANT_KINDS, headed, spoken
from analysis.report.apa_tables import ApaTable, Origin, as_percent
from analysis.report.blocks import Block, Material
from analysis.report.prose import named
from analysis.results import Analysis
from stimuli.errors import UserError

TOLD_IN_FULL = 6
"""Up to so many pairs of difference and model are told one by one; more are counted, and stand in the table."""
VERDICTS = {
    EQUIVALENT: "equivalent",
    DIFFERENT: "different",
    BOTH: "different, but within the bound",
    UNDECIDED: "undecided",
    NOT_ESTIMABLE: "not estimable",
}


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
        if first is None or (one.model is None and (first is one or first.model is None)):
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
        *_told(analysis, table, kinds, pointer),
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
        rows.append((*cells, VERDICTS[str(row["verdict"])]))
    columns = [
        "Difference",
        "Model",
        f"{people} [95% CI]",
        "Model [95% CI]",
        f"{people} − model [95% CI]",
        "p (log odds)" if plan.measure.scale == "points" else "p",
    ]
    columns += [level] if bounded else []
    note = f"In {_unit(analysis)}"
    note += (
        "; a comparison of readers is the ratio of their ratios. " if plan.measure.scale == "ratio" else ". "
    )
    note += f"p values are adjusted as those of the analysis ({analysis.correction}). "
    if plan.measure.scale == "points":
        note += "They test log odds; verdicts go by the intervals, in points. "
    if plan.equivalence is not None:
        note += (
            f"Equivalent: two one-sided tests reject a difference as large as {plan.equivalence.said or plan.equivalence.value}, "
            "fixed beforehand (their p values stand with the analysis). Different: the 95% interval leaves 0 out. Undecided: neither."
        )
    else:
        note += "No bound was fixed beforehand, so nothing is called equivalent. Undecided: the 95% interval includes 0."
    left_out = list(dict.fromkeys(str(why) for why in table["why"] if why))
    if left_out:
        note += f" Planned, not estimable, and counted in the families: {'; '.join(left_out)}."
    title = (
        f"Differences in {_nouns(analysis, table)}: {spoken(str(table['people'].iloc[0]))} beside each model"
    )
    return ApaTable(name, title, (*columns, "Verdict"), tuple(rows), note, _origin(analysis))


def _origin(analysis: Analysis) -> Origin:
    fits = () if analysis.model is None or analysis.model.source is None else (analysis.model.source,)
    return Origin(
        fits,
        computed="differences of people and of a model are weights of the fixed effects (models.R); percentage points average "
        "predicted probabilities over participants and items, by wrods alone",
    )


def _told(analysis: Analysis, table: pd.DataFrame, kinds: dict[str, str], pointer: str) -> list[Markup]:
    people = str(table["people"].iloc[0])
    many = apa.worded(int(table["contrast"].nunique()), "difference")
    models = apa.worded(int(table["model"].nunique()), "model")
    text = f"{many.capitalize()} between conditions in {_nouns(analysis, table)} of {spoken(people)} beside {models}{pointer}. "
    if len(table) <= TOLD_IN_FULL:
        text += " ".join(_sentence(row, analysis, people, kinds) for _, row in table.iterrows())
    else:
        text += " ".join(
            _of_model(own, str(model), kinds) for model, own in table.groupby("model", sort=False)
        )
    told = [in_italics(text)]
    if (table["verdict"] == UNDECIDED).any():
        told.append(
            Markup(
                escape("Undecided means that these data show neither a difference nor that there is none.")
            )
        )
    return told


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
    p = apa.p_phrase(row["p"]) + (" (of the log odds)" if unit == "points" else "")
    return f"{row['contrast']}: {'; '.join(sides)}, {p}: {VERDICTS[str(row['verdict'])]}."


def _of_model(own: pd.DataFrame, model: str, kinds: dict[str, str]) -> str:
    parts = []
    for verdict, words in VERDICTS.items():
        which = [str(one) for one in own.loc[own["verdict"] == verdict, "contrast"]]
        if which:
            parts.append(f"{words} in {apa.count(len(which))} ({', '.join(which)})")
    who = named(model, kinds)
    known = own[own["verdict"] != NOT_ESTIMABLE]
    against = int((~known["same_direction"].astype(bool)).sum())
    turned = f"; of opposite sign in {apa.count(against)}" if against else ""
    return f"{who[0].upper() + who[1:] if who.startswith('the ') else who}: {', '.join(parts)}{turned}."


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
