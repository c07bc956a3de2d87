"""By how many standard errors a planned contrast changes if one participant or one item is left out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.estimate.crossed import Floats
from analysis.mixed import influence
from analysis.results import Analysis, Contrast
from analysis.shares import PERCENT, Cells, ReaderSums
from analysis.tables import Tables

PARTICIPANTS, ITEMS = UNITS = ("participant", "item")
IN_ROWS = ("correct", "missing", "rating")
"""Measures that a column of the rows has under their own name; shares of words are in ``share``."""


def influences(analysis: Analysis, tables: Tables) -> dict[str, pd.DataFrame]:
    """Return the changes of each contrast in its standard errors, by unit; shape (units, contrasts) each."""
    tested = [one for one in analysis.contrasts if one.estimable and one.se > 0]
    names = [f"{one.label}, {' − '.join(one.groups)}" for one in tested]
    if any(one.crossed is not None for one in tested):
        found = _without_each(analysis, tested, tables)
    elif analysis.model is not None and analysis.model.source is not None:
        fit = analysis.model.source
        weights = np.array([one.weights for one in tested]).T
        moved = {unit: influence(fit, unit) for unit in UNITS if unit in fit.groups}
        found = {unit: (table.index, table.to_numpy() @ weights) for unit, table in moved.items()}
    else:
        return {}
    se = np.array([one.se for one in tested])
    moved_by = {unit: pd.DataFrame(table / se, index, names) for unit, (index, table) in found.items()}
    # without the only participant, say, nothing can be estimated
    kept = {unit: table.dropna() for unit, table in moved_by.items()}
    return {unit: table for unit, table in kept.items() if len(table)}


def _without_each(
    analysis: Analysis, tested: list[Contrast], tables: Tables
) -> dict[str, tuple[pd.Index, Floats]]:
    """Return by how much each contrast changes without each participant, and without each item."""
    plan = analysis.plan
    value = plan.measure.name if plan.measure.name in IN_ROWS else "share"
    sums = ReaderSums(plan, analysis.rows, value, tables)
    cells = sums.cells()
    points = PERCENT if plan.measure.scale == "points" else 1.0
    people = {group: own for group, own in cells.items() if own.participants}
    weights = [np.array([_weight(one, name) for name in plan.levels]) for one in tested]
    means = {group: own.means() for group, own in cells.items()}
    whole = np.array([_contrast(one, w, means, people) for one, w in zip(tested, weights, strict=True)])
    names, moved = [], []
    for group, own in people.items():
        for number, participant in enumerate(own.participants):
            without = {**means, group: own.means(without=number)}
            names.append(participant.partition("/")[2])
            moved.append([_contrast(one, w, without, people) for one, w in zip(tested, weights, strict=True)])
    answered = np.any([np.isfinite(table).any(axis=1) for table in means.values()], axis=0)
    items = [sums.layout.items[number] for number in np.flatnonzero(answered).tolist()]
    of_items = []
    for number in np.flatnonzero(answered).tolist():
        without = {group: np.delete(table, number, axis=0) for group, table in means.items()}
        of_items.append([_contrast(one, w, without, people) for one, w in zip(tested, weights, strict=True)])
    return {
        PARTICIPANTS: (pd.Index(names), points * (np.array(moved).reshape(len(names), -1) - whole)),
        ITEMS: (pd.Index(items), points * (np.array(of_items) - whole)),
    }


def _weight(one: Contrast, level: str) -> float:
    """Return what a contrast of shares weighs a condition with."""
    return 0.0 if one.crossed is None else one.crossed.weights.get(level, 0.0)


def _contrast(one: Contrast, w: Floats, means: Mapping[str, Floats], people: Mapping[str, Cells]) -> float:
    """Return a contrast of item means, shape (items, conditions) by reader group, paired by item with a model's."""
    used = w != 0
    tables = [means[group][:, used] for group in one.groups]
    if len(tables) == 2 and not set(one.groups) <= set(people):
        tables = [tables[0] - tables[1]]
    with np.errstate(invalid="ignore"):
        values = [np.nansum(table, axis=0) / np.isfinite(table).sum(axis=0) for table in tables]
    return float(w[used] @ (values[0] - sum(values[1:])))
