"""Descriptive tables: readers and items analysed, means by condition, failed answers, simulated effects and their recovery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.costs.ratios import LevelCost, ShownIntervals
from analysis.descriptives import WILSON, ConditionMean, participants_intervals, why_no_interval
from analysis.intervals import OF_SHARES
from analysis.mixed import Fit
from analysis.parameter_recovery import Recovered
from analysis.plan import RATING, RECOVERED, Measure
from analysis.readers import PARTICIPANT_KINDS
from analysis.report.apa_tables import ApaTable
from analysis.report.filters import JUDGED, PEOPLE, USED, Condition, filled, timed_well
from analysis.report.layout import ChapterLayout

LAYOUT = ChapterLayout(Path(__file__).parent)


def flow_table(flow: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    """Lay out who and what is analysed and why the rest is not."""
    rows = [{"stage": str(stage), "counts": counts} for stage, counts in flow.to_dict("index").items()]
    return LAYOUT.table("flow", rows, groups=list(flow.columns), kinds=kinds)


def descriptive_table(cells: Sequence[ConditionMean], measure: Measure, factor: str) -> ApaTable:
    """Lay out means, spreads and intervals of every reader group in every condition."""
    times, places = (1, 0) if measure.logged else (100, 1) if measure.is_share else (1, 2)
    over_items = OF_SHARES if any(cell.interval == WILSON for cell in cells) else students_told(cells)
    return LAYOUT.table(
        "means",
        [_row(cell) for cell in cells],
        f"descriptives_{measure.name}_{factor}",
        factor=factor,
        title=measure.title,
        measure=measure.name,
        kinds=_kinds(cells),
        times=times,
        places=places,
        logged=measure.logged,
        shares=measure.is_share,
        has_ends=any(cell.at_ends is not None for cell in cells),
        unit="% correct" if measure.name == "correct" else "%" if measure.is_share else measure.unit,
        **_spread(cells, measure.logged),
        intervals=intervals_told(cells, "" if measure.logged else over_items),
        used=_rows_of(measure),
    )


def _row(cell: ConditionMean) -> dict[str, Any]:
    return {name: value for name, value in asdict(cell).items() if name != "interval"}


def _kinds(cells: Sequence[ConditionMean]) -> dict[str, str]:
    return {cell.group: cell.kind for cell in cells}


def _spread(cells: Sequence[ConditionMean], logged: bool = False) -> dict[str, Any]:
    """State what n counts, and what SD is where any cell has one."""
    of_people = {cell.kind in PARTICIPANT_KINDS for cell in cells}
    has_sd = any(np.isfinite(cell.sd) for cell in cells)
    units = "participants, or items for a model or baseline" if len(of_people) > 1 else "items"
    units = "participants" if of_people == {True} else units
    spread = (
        "GSD is the geometric SD between participants, a factor" if logged else "SD is between participants"
    )
    without = {cell.kind in PARTICIPANT_KINDS for cell in cells if not np.isfinite(cell.sd)}
    if without:
        who = {frozenset({True}): "a single participant has", frozenset({False}): "a model or baseline has"}
        spread += f"; {who.get(frozenset(without), 'a single participant, model, or baseline has')} none ({apa.MISSING})"
    return {"has_sd": has_sd, "units_told": f"n = {units}.{f' {spread}.' if has_sd else ''}"}


def students_told(cells: Sequence[ConditionMean]) -> str:
    """State the intervals of models' and baselines' means over items, which means of equal items do not have."""
    missing = any(cell.kind not in PARTICIPANT_KINDS and not np.isfinite(cell.low) for cell in cells)
    return f"Student's over items{f' (none, {apa.MISSING}, where all items are equal)' if missing else ''}"


def intervals_told(cells: Sequence[ConditionMean], over_items: str = "") -> str:
    """State what the intervals are, of participants and of models and baselines, as far as the table has them."""
    statements = []
    if any(cell.kind in PARTICIPANT_KINDS for cell in cells):
        of_people = participants_intervals(cells)
        why = why_no_interval([cell for cell in cells if not np.isfinite(cell.low)])
        statements.append(
            f"Participants' means have {of_people}{f', or none ({apa.MISSING}) because {why}' if why else ''}"
            if of_people
            else f"Participants' means have no interval because {why_no_interval(cells)}"
        )
    if over_items and any(cell.kind not in PARTICIPANT_KINDS for cell in cells):
        statements.append(
            f"for a model or baseline, {over_items}" if statements else f"Intervals are {over_items}"
        )
    return "; ".join(statements)


def _rows_of(measure: Measure) -> tuple[Condition, ...]:
    """Return the conditions of the trials that means of a measure come from."""
    if measure.logged:
        return (*timed_well(measure.name), *(() if measure.of == "models" else (PEOPLE,)))
    return JUDGED if measure.is_share else (USED, *filled(measure.name))


def accuracy_and_recovery_table(
    exact: Sequence[ConditionMean], recovered: Sequence[ConditionMean], factor: str
) -> ApaTable:
    """Lay out exact accuracy and mean recovery of typed answers side by side."""
    recovery = {(cell.group, cell.level): cell for cell in recovered}
    rows: list[dict[str, Any]] = [
        {**_row(cell), "near": recovery.get((cell.group, cell.level))} for cell in exact
    ]
    intervals = intervals_told(exact, f"{OF_SHARES} (accuracy) and {students_told(recovered)} (recovery)")
    facts: dict[str, Any] = {
        "factor": factor,
        **_spread(exact),
        "intervals": intervals,
        "recovery": RECOVERED.name,
    }
    name = f"descriptives_correct_{factor}"
    return LAYOUT.table("accuracy_and_recovery", rows, name, kinds=_kinds(exact), **facts)


def cost_table(
    panels: Sequence[tuple[Measure, Sequence[LevelCost], Sequence[LevelCost]]], factor: str, reference: str
) -> ApaTable:
    """Lay out what a figure of costs shows: the cost of every level against the reference, by measure."""
    costs = [cost for _, of_measure, _ in panels for cost in of_measure]
    return LAYOUT.table(
        "costs",
        [{"measure": measure, "cost": cost} for measure, of_measure, _ in panels for cost in of_measure],
        factor=factor,
        reference=reference,
        kinds={cost.group: cost.kind for cost in costs},
        measures=[measure.name for measure, _, _ in panels],
        intervals=ShownIntervals.of((cost.kind, cost.is_tested, cost.low) for cost in costs),
    )


def recovery_table(
    recovered: Sequence[Recovered], fits: tuple[Fit, ...] = (), *, has_timeouts: bool = False
) -> ApaTable:
    """Lay out simulated effects and their estimates from the models of simulated readers."""
    rows = [{**asdict(effect), "covered": effect.covered} for effect in recovered]
    has_words, has_ratings = (
        any(effect.measure == name for effect in recovered) for name in ("time_changed", RATING.name)
    )
    return LAYOUT.table(
        "recovery",
        rows,
        fits=fits,
        has_words=has_words,
        has_timeouts=has_timeouts,
        has_ratings=has_ratings,
        has_unconverged=not all(effect.converged for effect in recovered),
    )
