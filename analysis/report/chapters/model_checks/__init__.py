"""Checks of each planned model: simulated residuals, and influential participants and items; a figure and a sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.figures.conditions import model_checks_figure
from analysis.mixed import simulated_residuals
from analysis.names import plain
from analysis.plan import ALPHA
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.results import Analysis
from analysis.shares import influences

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_MODELS = 6
MOST_ROWS = 20_000  # rows above which a model is not checked


def write(material: Material) -> Chapter | None:
    """Write the checks of the planned models; None where there are none."""
    wanted = [analysis for analysis in material.analyses if analysis.plan.planned and analysis.has_results][
        :MOST_MODELS
    ]
    blocks: list[Block] = []
    for one in wanted:
        if 0 < len(one.rows) <= MOST_ROWS:
            material.told(f"model checks: {one.plan.name}")
            blocks += _checked(one, material)
        elif len(one.rows):
            told = LAYOUT.sentences("unchecked", name=one.plan.name, most=MOST_ROWS, trials=len(one.rows))
            blocks.append(told)
    groups = [group for one in wanted for group in one.groups]
    return LAYOUT.chapter("model-checks", blocks, groups, material.kinds, planned=True, sources=("dunn1996",))


def _checked(analysis: Analysis, material: Material) -> list[Block]:
    plan, residuals = analysis.plan, None
    if analysis.fit is not None:
        seed = f"{material.tables.dictionary['study']} {plan.name}"
        residuals = simulated_residuals(analysis.fit, seed=seed)
    changes = influences(analysis, material.tables)
    if residuals is None and not changes:
        return []
    largest = {unit: table.abs().max(axis=1) for unit, table in changes.items()}
    told = {
        "name": plan.name,
        "residuals": residuals,
        "changes": [(unit, own.max(), own.idxmax()) for unit, own in largest.items()],
        "turned": [(many, unit) for unit, many in _turned(analysis, changes).items() if many],
        "alpha": ALPHA,
    }
    drawn = None if residuals is None else residuals.residuals
    note = LAYOUT.sentences("checked", figure=None, **told).unescape()
    name = f"model_checks_{plain(plan.name)}"
    figure = model_checks_figure(name, f"Checks of {plan.name}", drawn, changes, note)
    return [LAYOUT.sentences("checked", figure=figure, **told), figure]


def _turned(analysis: Analysis, changes: Mapping[str, pd.DataFrame]) -> dict[str, int]:
    """Count the units without which a contrast would be significant, or no longer be, at its standard error."""
    tested = [one for one in analysis.estimable if one.se > 0]
    t, reach, side = (
        np.array([getattr(one, name) for one in tested]) for name in ("statistic", "reach", "side")
    )

    def excludes(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(np.where(side == 0, np.abs(values), side * values) > reach)

    return {
        unit: int((excludes(t + table.to_numpy()) != excludes(t)).any(axis=1).sum())
        for unit, table in changes.items()
    }
