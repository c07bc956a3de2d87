"""Costs of changed letters by place and kind on every measure that the study has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analysis.costs.ratios import Profile
from analysis.letters.changes import INTACT
from analysis.letters.letter_costs import (
    SEPARATOR,
    GroupCosts,
    LetterContrast,
    LetterRows,
    agreeing,
    contrast_table,
    cost_table,
    group_costs,
    letter_rows,
)
from analysis.multiple_comparisons import interval_levels, with_adjusted
from analysis.plan import ALPHA
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import Analysis, Coefficient, Contrast, as_percent, estimated_of
from analysis.tables import Tables
from experiment.papers.letter_position.chapter.figures import FEWEST_ITEMS, KIND_LOOKS, CurvePanel, CurvePoint
from stimuli.errors import UserError

ZONES = ("initial", "internal", "final", "outer")
MOST_PLACES = 10
RESAMPLES = 2000
READERS = (*PARTICIPANT_KINDS, "model")


@dataclass(frozen=True)
class LetterMeasure:
    """A measure of the chapter."""

    name: str
    noun: str
    lost: str  # the axis where there is an intact form to compare with, and where there is none
    level: str
    unit: str  # of differences, after a number
    decimals: int
    people: bool | None  # of people alone, of models alone, or of both

    def shown(self, value: float) -> float:
        """Return a value on the scale of :mod:`analysis.letters` as it is printed: points, percent, bits."""
        if self.name == "correct":
            return 100.0 * value
        return as_percent(value) if self.people else value


_OWN_MEAN = "Time against\nown mean (%)"
MEASURES = tuple(
    LetterMeasure(*fields)
    for fields in (
        ("correct", "accuracy", "Accuracy lost (points)", "Wrong answers (%)", "percentage points", 1, None),
        ("time_changed", "time on the changed word", "Word time added (%)", _OWN_MEAN, "percent", 1, True),
        ("reading_time", "reading time", "Reading time\nadded (%)", _OWN_MEAN, "percent", 1, True),
        ("rt", "response time", "Response time\nadded (%)", _OWN_MEAN, "percent", 1, True),
        ("surprisal_changed", "surprisal of the changed word", "Surprisal of word\nadded (bits)", "Surprisal of\nword (bits)",
         "bits", 2, False),
        ("surprisal", "surprisal of the text", "Surprisal added\n(bits)", "Surprisal (bits)", "bits", 2, False),
    )
)  # fmt: skip


@dataclass(frozen=True)
class LetterCostMeasure:
    """Costs of letters on one measure."""

    measure: LetterMeasure
    given: LetterRows
    by: dict[str, list[GroupCosts]]  # by kind and ``zone``, ``place``, ``place_from_end``, ``distance``
    contrasts: pd.DataFrame = field(default_factory=pd.DataFrame)  # as :func:`contrast_table` has them

    @property
    def axis(self) -> str:
        """Name of the measure with its unit."""
        return self.measure.lost if self.given.has_intact else self.measure.level

    def table(self, by: str) -> pd.DataFrame:
        """Return the costs by kind and place as rows: ``reader_group, kind, place, cost, low, high, items_of_level``, as told."""
        costs = cost_table(self.by[by])
        if costs.empty:
            return costs
        parts = costs["level"].str.split(SEPARATOR, regex=False)
        costs["change"], costs["place"] = parts.str[0], parts.str[1]
        for name in ("cost", "low", "high"):
            costs[name] = costs[name].map(self.measure.shown)
        return costs


def measured(tables: Tables, analyses: Sequence[Analysis] = ()) -> tuple[list[LetterCostMeasure], list[str]]:
    """Measure what changed letters cost on each measure (people's times of words where they were recorded), with remarks."""
    study, measures, remarks = str(tables.dictionary["study"]), [], []
    had: set[bool | None] = set()
    for measure in MEASURES:
        if measure.people is not None and measure.people in had:
            continue  # words of their own come before whole trials
        readings = rows_of(tables, measure)
        if readings is None:
            continue
        by = {
            name: group_costs(readings, ("kind", name), measure.name, study, resamples=RESAMPLES)
            for name in ("zone", "place", "place_from_end", "distance")
        }
        if not by["zone"]:
            continue
        had.add(measure.people)
        remarks += [
            f"{measure.noun}{', ' if ': ' in remark else ': '}{remark}" for remark in readings.remarks
        ]
        contrasts = contrast_table([*by["zone"], *by["distance"]], _questions(by))
        measures.append(LetterCostMeasure(measure, readings, by, contrasts))
    of_measure = [_estimated(measure, tables.factors, analyses) for measure in measures]
    adjusted = zip(_adjusted(measures, of_measure), of_measure, strict=True)
    return [_with_tested(measure, estimates) for measure, estimates in adjusted], remarks


def rows_of(tables: Tables, measure: LetterMeasure) -> LetterRows | None:
    """Return a measure's observations of the readers whose it is, baselines aside; None where no changed letters were measured."""
    kinds = [kind for kind in READERS if measure.people in (None, kind in PARTICIPANT_KINDS)]
    try:
        readings = letter_rows(tables, measure.name, kinds)
    except (UserError, KeyError):
        return None
    return readings if (readings.rows["zone"] != "intact").any() else None


Estimates = dict[str, dict[tuple[str, str], Contrast | Coefficient]]
"""Of each reader group, differences of the Results between two places, or a place and intact."""


def _estimated(
    measure: LetterCostMeasure, factors: Mapping[str, Sequence[str]], analyses: Sequence[Analysis]
) -> Estimates:
    """Return what the Results estimate of each reader's measure; nothing where letters were changed in several ways."""
    places, found = places_of(measure.given.rows, factors), {}
    for costs in measure.by["zone"]:
        kinds = {level.split(SEPARATOR)[0] for level in costs.profile.levels}
        estimates = estimated_of(analyses, measure.measure.name, costs.group) if len(kinds) == 1 else {}
        found[costs.group] = {
            (places[first], places[second]): estimate
            for (first, second), estimate in estimates.items()
            if {first, second} <= set(places)
        }
    return found


def places_of(rows: pd.DataFrame, factors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the place (or ``intact``) of each level that has all trials of that place and no others.

    Rows of words have no levels; theirs are known by their names.
    """
    known = [factor for factor in factors if factor in rows]
    if not known:
        levels = [level for levels in factors.values() for level in levels]
        return {level: level if level in ZONES else INTACT for level in levels}
    places: dict[str, str] = {}
    for factor in known:
        pairs = rows[[factor, "zone"]].dropna().drop_duplicates()
        alone = pairs[~pairs.duplicated(factor, keep=False) & ~pairs.duplicated("zone", keep=False)]
        places |= dict(zip(alone[factor].astype(str), alone["zone"].astype(str), strict=True))
    return places


def _ends(measure: LetterCostMeasure, contrast: Contrast | Coefficient) -> tuple[float, float, float]:
    """Return a difference of the Results, with its ends, on the scale of costs."""
    scale = -0.01 if measure.measure.name == "correct" else 1.0  # accuracy lost is a share
    low, high = sorted((scale * contrast.low, scale * contrast.high))
    return scale * contrast.estimate, low, high


def _with_tested(measure: LetterCostMeasure, estimates: Estimates) -> LetterCostMeasure:
    """Give costs by place that analyses of all trials estimate their estimates and intervals there."""
    costs = []
    for of_group in measure.by["zone"] if measure.given.has_intact else ():
        tested = {
            level: _ends(measure, contrast)
            for (first, second), contrast in estimates[of_group.group].items()
            for level in of_group.profile.levels
            if level.split(SEPARATOR)[1] == first and second == INTACT
        }
        costs.append(replace(of_group, profile=of_group.profile.with_tested(tested)))
    others = {
        by: [
            _like(cost_of_group, [cost.profile for cost in costs if cost.group == cost_of_group.group])
            for cost_of_group in groups
        ]
        for by, groups in measure.by.items()
        if costs and by != "zone"
    }
    return replace(measure, by={**measure.by, **others, "zone": costs}) if costs else measure


def _like(costs: GroupCosts, zones: Sequence[Profile]) -> GroupCosts:
    """Give levels of the same trials as a place of the Results, which therefore have its draws, the estimate and interval there."""
    profile, tested = costs.profile, {}
    for index, level in enumerate(profile.levels):
        if not np.isfinite(profile.draws[:, index]).any():
            continue
        for zone in zones:
            for other, (name, *values) in enumerate(zone.costs()):
                if name in zone.tested and np.array_equal(
                    profile.draws[:, index], zone.draws[:, other], equal_nan=True
                ):
                    tested[level] = (values[0], values[1], values[2])
    return replace(costs, profile=profile.with_tested(tested))


def _adjusted(
    measures: Sequence[LetterCostMeasure], estimates: Sequence[Estimates]
) -> list[LetterCostMeasure]:
    """Adjust what the Results do not test by Benjamini and Hochberg and make the intervals agree; what they test stays as there."""
    if not measures:
        return []
    table = pd.concat(
        [measure.contrasts.assign(_of=index) for index, measure in enumerate(measures)], ignore_index=True
    )
    tested: dict[int, tuple[float, ...]] = {}
    for index, row in enumerate(table.to_dict("records")):
        measure = measures[row["_of"]]
        sides = PLACES_COMPARED.get(row["contrast"])
        for (first, second), contrast in estimates[row["_of"]].get(row["reader_group"], {}).items():
            if isinstance(contrast, Contrast) and sides == ([first], [second]):
                tested[index] = (*_ends(measure, contrast), contrast.p_adjusted)
    table.loc[list(tested), "p"] = np.nan
    table = with_adjusted(table)
    has_p = table["p"].notna()
    levels = interval_levels(table.loc[has_p, "p_adjusted"].to_numpy(dtype=float))
    for index, level in zip(table.index[has_p], levels, strict=True):
        significant = bool(table.loc[index, "p_adjusted"] < ALPHA)
        table.loc[index, ["low", "high"]] = agreeing(table.loc[index, "draws"], level, significant)
    for index, values in tested.items():
        table.loc[index, ["difference", "low", "high", "p_adjusted"]] = values
    return [
        replace(measure, contrasts=table[table["_of"] == index].drop(columns=["draws", "_of"]))
        for index, measure in enumerate(measures)
    ]


def _questions(by: dict[str, list[GroupCosts]]) -> list[LetterContrast]:
    """Return the questions that the levels allow: about places, kinds and distance."""
    levels = _told_apart(by["zone"])
    kinds = [kind for kind in KIND_LOOKS if any(level.startswith(kind + SEPARATOR) for level in levels)]
    sides = {
        name: [
            ([f"{kind}{SEPARATOR}{zone}" for zone in first], [f"{kind}{SEPARATOR}{zone}" for zone in second])
            for kind in kinds
        ]
        for name, (first, second) in PLACES_COMPARED.items()
    }
    sides[KINDS_COMPARED] = [
        ([f"substitution{SEPARATOR}{zone}"], [f"transposition{SEPARATOR}{zone}"]) for zone in ZONES
    ]
    pairs_of = {
        name: [pair for pair in pairs if {*pair[0], *pair[1]} <= levels] for name, pairs in sides.items()
    }
    contrasts = [LetterContrast.of_pairs(name, pairs) for name, pairs in pairs_of.items() if pairs]
    return contrasts + _of_distance(by["distance"], kinds)


KINDS_COMPARED = "substitution − transposition"
PLACES_COMPARED = {
    "initial − internal": (["initial"], ["internal"]),
    "final − internal": (["final"], ["internal"]),
    "initial − final": (["initial"], ["final"]),
    "initial and final − internal": (["initial", "final"], ["internal"]),
    "both ends − internal": (["outer"], ["internal"]),
}


def _told_apart(costs: Sequence[GroupCosts]) -> set[str]:
    """Return the levels of which every reader that met them met enough items for an interval."""
    levels = {level for cost in costs for level in cost.profile.levels}
    too_few = {level for cost in costs for level, count in cost.items_of.items() if count < FEWEST_ITEMS}
    return levels - too_few


def _of_distance(costs: Sequence[GroupCosts], kinds: Sequence[str]) -> list[LetterContrast]:
    contrasts = []
    for kind in kinds:
        levels = sorted(level for level in _told_apart(costs) if level.startswith(kind + SEPARATOR))
        places = {level: float(level.split(SEPARATOR)[1]) for level in levels}
        if len(set(places.values())) > 1:
            contrasts.append(LetterContrast.of_slope(f"{kind}: each letter farther apart", places))
    return contrasts


def panels(measures: Sequence[LetterCostMeasure]) -> list[CurvePanel]:
    """Return the panels of the letter-position curves, reader by reader.

    Position by position from either end where that tells more than initial, internal and final letters do: where at least two
    positions have items enough, and at least half of the items are at a position at all (sentences whose words are changed in
    different positions are at none).
    """
    curve_panels = [panel for measure in measures for panel in _panels(measure)]
    order = list(dict.fromkeys(panel.group for panel in curve_panels))
    return sorted(curve_panels, key=lambda panel: order.index(panel.group))


def _panels(measure: LetterCostMeasure) -> list[CurvePanel]:
    from_start, from_end, zones = (measure.table(name) for name in ("place", "place_from_end", "zone"))
    curve_panels = []
    for costs in measure.by["zone"]:
        segments = [
            _segment(from_start, costs.group, "letter from the start"),
            _segment(from_end, costs.group, "letter from the end", backwards=True),
        ]
        n_items = int(zones.loc[zones["reader_group"] == costs.group, "items_of_level"].sum())
        telling = tuple(segment for segment in segments if segment is not None and _tells(segment, n_items))
        # positions of so few items that one of them bends the curve are left out
        shown = tuple(
            (title, places, tuple(point for point in points if point.items >= FEWEST_ITEMS))
            for title, places, points in telling
        )
        if len(telling) < len(segments):
            shown = (zone_segment(zones, costs.group),)
        curve_panels.append(CurvePanel(costs.group, costs.kind, measure.measure.noun, measure.axis, shown))
    return curve_panels


Segment = tuple[str, tuple[str, ...], tuple[CurvePoint, ...]]


def zone_segment(table: pd.DataFrame, group: str) -> Segment:
    """Return one reader's costs by initial, internal, final and both outer letters."""
    zone_rows = table[(table["reader_group"] == group) & table["place"].isin(ZONES)]
    places = tuple(zone for zone in ZONES if (table["place"] == zone).any())
    return ("place of the changed letters", places, _points(zone_rows))


def _segment(table: pd.DataFrame, group: str, title: str, *, backwards: bool = False) -> Segment | None:
    if table.empty:
        return None
    numbers = table["place"].astype(float)
    rows = table[(table["reader_group"] == group) & (numbers <= MOST_PLACES)]
    drawn = numbers[(table["items_of_level"] >= FEWEST_ITEMS) & (numbers <= MOST_PLACES)]
    if rows.empty or drawn.empty:
        return None
    places = [str(place) for place in range(int(drawn.min()), int(drawn.max()) + 1)]
    return (title, tuple(places[::-1] if backwards else places), _points(rows))


def _tells(segment: Segment, n_items: int) -> bool:
    """Whether positions say something: enough of them with enough items, of ``met`` items in all places and kinds."""
    _, _, points = segment
    places_with_enough = {point.place for point in points if point.items >= FEWEST_ITEMS}
    return len(places_with_enough) > 1 and 2 * sum(point.items for point in points) >= n_items


def _points(rows: pd.DataFrame) -> tuple[CurvePoint, ...]:
    columns = ["place", "change", "cost", "low", "high", "items_of_level", "is_tested"]
    return tuple(CurvePoint(*cells) for cells in zip(*(rows[name].tolist() for name in columns), strict=True))
