"""Sentences of the chapter on letter position, and its maps of place by kind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.letters import FEWEST_ITEMS, CurvePanel, letter_map
from analysis.plan import ALPHA
from analysis.readers import PARTICIPANT_KINDS, headed, named
from analysis.report.blocks import Block
from analysis.report.chapters.letters_measured import ZONES, Measured, zone_segment
from analysis.report.chapters.letters_tables import difference_unit
from analysis.report.felt import p_said

DONE = {
    "transposition": "two letters transposed",
    "substitution": "letters substituted",
    "shuffle": "several letters moved",
    "other": "letters changed otherwise",
}
COMPARED = {
    "initial − internal": ("changes of the first letter", "changes of inner letters"),
    "final − internal": ("changes of the last letter", "changes of inner letters"),
    "initial − final": ("changes of the first letter", "changes of the last letter"),
    "initial and final − internal": ("changes at either end", "changes of inner letters"),
    "both ends − internal": ("changes at both ends", "changes of inner letters"),
    "substitution − transposition": ("substituted letters", "transposed letters"),
}


def places_in_words(one: Measured, kinds: dict[str, str]) -> list[Markup]:
    """Say what each place and kind costs each reader, a paragraph a measure."""
    table = one.table("zone")
    table = table[table["place"].isin(ZONES)]
    told = [
        _reader(one, str(group), own, kinds)
        for group, own in table.groupby("reader_group", sort=False)
        if group in kinds
    ]
    return [Markup(" ").join(told)] if told else []


def _reader(one: Measured, group: str, own: pd.DataFrame, kinds: dict[str, str]) -> Markup:
    who = named(group, kinds)
    noun = f"{one.measure.noun[0].upper()}{one.measure.noun[1:]} of {who}"
    costs = {"correct": "points lost", "models": "bits added"}
    key = "correct" if one.measure.people is None else "people" if one.measure.people else "models"
    what = f"{noun}, {costs.get(key, 'percent added')}" if one.given.has_intact else _as_it_is(one, who, key)
    parts = []
    for change in DONE:
        cells = own[own["change"] == change].sort_values("place", key=lambda places: places.map(ZONES.index))
        if cells.empty:
            continue
        values = []
        row: Any
        for row in cells.itertuples():
            value = apa.number(row.cost, one.measure.decimals)
            ends = apa.interval(row.low, row.high, one.measure.decimals)
            sure = row.items_of_level >= FEWEST_ITEMS and ends != apa.MISSING
            place = {"outer": "at both ends"}.get(str(row.place), str(row.place))
            values.append(f"{value} {ends} {place}" if sure else f"{value} {place} (without interval)")
        parts.append(f"{DONE[change]}: {apa.listing(values)}")
    return escape(f"{what}, with 95% intervals. {'. '.join(p[0].upper() + p[1:] for p in parts)}.")


def _as_it_is(one: Measured, who: str, key: str) -> str:
    noun = one.measure.noun
    if key == "correct":
        return f"Wrong answers of {who}, percent"
    head = f"{noun[0].upper()}{noun[1:]} of {who}"
    return f"{head}, percent against each participant's own mean" if key == "people" else f"{head}, bits"


def contrasts_in_words(found: Sequence[Measured], kinds: dict[str, str]) -> list[Markup]:
    """Say each contrast with its interval, a paragraph a reader and measure."""
    told = []
    for one in found:
        for group, own in one.contrasts.groupby("reader_group", sort=False):
            sentences = [
                _contrast(one, str(group), row, kinds)
                for row in own.to_dict("records")
                if not float(row["p_adjusted"]) >= ALPHA
            ]
            if len(sentences) < len(own):
                rest = (
                    "no comparison was significant"
                    if not sentences
                    else "no other comparison was significant"
                )
                sentences.append(escape(f"{_whose(one, str(group), kinds)}: {rest}."))
            told.append(Markup(" ").join(sentences))
    if told:
        told[0] = Markup("[[table:letter_contrasts]] holds every comparison. ") + told[0]
        unsure = any((one.contrasts["p_adjusted"] >= ALPHA).any() for one in found if len(one.contrasts))
        if unsure:
            told.append(escape("A difference that is not significant is no evidence that there is none."))
    return told


def _contrast(one: Measured, group: str, row: Mapping[Hashable, Any], kinds: dict[str, str]) -> Markup:
    """Say one significant comparison, or one without an interval, the dearer side first."""
    name, places, p = str(row["contrast"]), one.measure.decimals, float(row["p_adjusted"])
    raw = [float(row[end]) for end in ("difference", "low", "high")]
    first, second = COMPARED.get(
        name, (f"a {name.split(':')[0]}, with each letter that its letters stand farther apart,", "")
    )
    turned = raw[0] < 0
    if turned and second:
        first, second, raw = second, first, [-raw[0], -raw[2], -raw[1]]
    estimate, low, high = (one.measure.shown(value) for value in raw)
    who = _whose(one, group, kinds)
    size = f"{apa.number(abs(estimate), places)} {difference_unit(one)}"
    ends = apa.interval(low, high, places)
    if ends == apa.MISSING or pd.isna(p):
        return escape(
            f"{who}, {name}: {apa.number(float(one.measure.shown(float(row['difference']))), places)}, without an interval."
        )
    tail = Markup(", 95%\u00a0CI\u00a0{}, adjusted {}.").format(ends, p_said(p))
    than = f" than {second}" if second else ""
    return escape(f"{who}: {first} {_dearer(one, size, less=turned and not second)}{than}") + tail


def _whose(one: Measured, group: str, kinds: dict[str, str]) -> str:
    """Name a reader group and a measure at the head of a sentence."""
    who = headed(group) if kinds[group] in PARTICIPANT_KINDS else f"The {kinds[group]} {group}"
    return f"{who} ({one.measure.noun})"


def _dearer(one: Measured, size: str, *, less: bool) -> str:
    more = "less" if less else "more"
    if one.given.has_intact and one.measure.people:
        return f"made times {size} {'shorter' if less else 'longer'}"
    if one.given.has_intact:
        return f"cost {size} {more}"
    if one.measure.name == "correct":
        return f"led to {size} {'fewer' if less else 'more'} errors"
    return f"took {size} {'less' if less else 'longer'}" if one.measure.people else f"had {size} {more}"


def curve_note(found: Sequence[Measured], own: Sequence[CurvePanel]) -> str:
    """Say under the curves what zero, points and bars are."""
    told = []
    if all(one.given.has_intact for one in found):
        told.append("Zero is each reader's own intact form; higher is a greater cost.")
    else:
        told.append("Nothing is compared with an intact form: errors and times as they are.")
    if any(len(panel.segments) > 1 for panel in own):
        told.append(
            "Left, by the first letter changed, counted from the start of the word; right, by the last letter changed, counted from "
            "its end (1 is the last letter). Words of all lengths are pooled; positions of fewer than "
            f"{FEWEST_ITEMS} items are in the tables alone."
        )
        most = max((len(places) for panel in own for _, places, _ in panel.segments), default=0)
        told += ["Positions beyond the tenth are in the tables."] if most >= 10 else []
    else:
        told.append(
            "Initial and final: the first or last letter takes part; both ends: both do; internal: neither."
        )
    told.append(
        "Bars are 95% percentile bootstrap intervals over participants and items, or over a model's items"
    )
    points = [p for panel in own for _, _, points in panel.segments for p in points]
    few = any(point.items < FEWEST_ITEMS for point in points)
    told[-1] += f"; points of fewer than {FEWEST_ITEMS} items have none." if few else "."
    told.append("Panels of one measure have one scale.")
    if any(panel.kind == "simulated" for panel in own):
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    return " ".join(told)


def maps(found: Sequence[Measured], kinds: dict[str, str]) -> list[Block]:
    """Draw place by kind for the measures in which both vary."""
    made: list[Block] = []
    for one in found:
        table = one.table("zone")
        table = table[table["place"].isin(ZONES)]
        if table["place"].nunique() < 2 or table["change"].nunique() < 2:
            continue
        groups = {str(g): str(k) for g, k in zip(table["reader_group"], table["reader_kind"], strict=True)}
        drawn = [
            CurvePanel(group, kind, one.measure.noun, one.axis, (zone_segment(table, group),))
            for group, kind in groups.items()
        ]
        title = f"{one.axis.replace(chr(10), ' ')} by place and kind of change"
        note = (
            "Darker is a greater cost, on one scale for all readers; numbers are estimates with 95% intervals. Hatched cells were not "
            "in the study."
        )
        if "simulated" in groups.values():
            note += " Simulated readers are not data."
        made.append(letter_map(f"letter_map_{one.measure.name}", drawn, title, note))
    return made
