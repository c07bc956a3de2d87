"""Checks of each planned model: simulated residuals, and influential participants and items; a figure and a sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.conditions import model_checks_figure
from analysis.mixed import simulated_residuals
from analysis.names import plain
from analysis.plan import ALPHA
from analysis.readers import spoken
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.results import Analysis
from analysis.shares import influences

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_MODELS = 6
MOST_ROWS = 20_000  # rows above which a model is not checked


def write(material: Material) -> Chapter | None:
    """Write the checks of the planned models; None where there are none."""
    planned = [analysis for analysis in material.analyses if analysis.plan.planned and analysis.has_results][
        :MOST_MODELS
    ]
    blocks: list[Block] = []
    first_of: dict[tuple[object, ...], str] = {}
    departures: set[str] = set()
    units: dict[str, None] = {}
    has_times = False
    for analysis in planned:
        if 0 < len(analysis.rows) <= MOST_ROWS:
            material.told(f"model checks: {analysis.plan.name}")
            changes = influences(analysis, material.tables)
            units |= dict.fromkeys(changes)
            has_times |= bool(changes) and analysis.plan.measure.logged
            blocks += _checked(analysis, material, first_of, departures, changes)
        elif len(analysis.rows):
            text = LAYOUT.sentences(
                "unchecked", name=analysis.plan.name, most=MOST_ROWS, trials=len(analysis.rows)
            )
            blocks.append(text)
    groups = [group for analysis in planned for group in analysis.groups]
    methods = LAYOUT.sentences(
        "methods", has_residuals=bool(first_of), units=list(units), has_times=has_times
    )
    chapter = LAYOUT.chapter("model-checks", blocks, groups, material.kinds, (methods,), planned=True)
    checked_by = {analysis.plan.name: first_of.get(analysis.identity or ()) for analysis in planned}
    departed = [name for name, by in checked_by.items() if by in departures]
    return None if chapter is None else replace(chapter, departures=tuple(departed))


def _checked(
    analysis: Analysis,
    material: Material,
    first_of: dict[tuple[object, ...], str],
    departures: set[str],
    changes: Mapping[str, pd.DataFrame],
) -> list[Block]:
    """Write the checks of one analysis.

    ``first_of`` gets the plan by which a mixed model was checked, for others that share it, and ``departures`` those plans from
    whose models the residuals depart.
    """
    plan, residuals, model = analysis.plan, None, analysis.model
    checked_by = ""
    if model is not None and analysis.identity is not None and not model.runs_away:
        checked_by = first_of.setdefault(analysis.identity, plan.name)
    if analysis.fit is not None and checked_by == plan.name:
        seed = f"{material.tables.dictionary['study']} {plan.name}"
        residuals = simulated_residuals(analysis.fit, seed=seed)
        if 3 * min(residuals.p_uniform, residuals.p_dispersion, residuals.p_outliers) < ALPHA:
            departures.add(plan.name)
    if residuals is None and not changes:
        return []
    largest = {unit: table.abs().max(axis=1) for unit, table in changes.items()}
    facts = {
        "name": plan.name,
        "residuals": residuals,
        "same_as": checked_by if checked_by != plan.name else "",
        "changes": [
            (unit, unit_changes.max(), unit_changes.idxmax()) for unit, unit_changes in largest.items()
        ],
        "turned": _turned(analysis, changes),
        "most_named": apa.MOST_TESTS_NAMED,
        "departs": plan.name in departures,
    }
    drawn = None if residuals is None else residuals.residuals
    note = LAYOUT.sentences("checked", figure=None, **facts).unescape()
    name = f"model_checks_{plain(plan.name)}"
    figure = model_checks_figure(name, f"Checks of {plan.name}", drawn, changes, note)
    return [LAYOUT.sentences("checked", figure=figure, **facts), figure]


def _turned(analysis: Analysis, changes: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, list[str]]]:
    """Name the units without which a contrast would be significant, or no longer be, at its standard error, by contrast and unit."""
    tested = [contrast for contrast in analysis.estimable if contrast.se > 0]
    t, reach, side = (
        np.array([getattr(contrast, name) for contrast in tested]) for name in ("statistic", "reach", "side")
    )

    def excludes(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(np.where(side == 0, np.abs(values), side * values) > reach)

    turned: dict[str, dict[str, list[str]]] = {}
    for unit, table in changes.items():
        differs = excludes(t + table.to_numpy()) != excludes(t)
        for contrast, column in zip(tested, differs.T, strict=True):
            if column.any():
                readers = " vs. ".join(map(spoken, contrast.groups))
                by_unit = turned.setdefault(f"{contrast.label} ({readers})", {})
                by_unit[unit] = [str(name) for name in table.index[column]]
    return turned
