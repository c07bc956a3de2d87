"""Checks of each planned model: simulated residuals, and influential participants and items; a figure and a sentence each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.model_checks import model_checks_figure
from analysis.mixed import SimulatedResiduals, simulated_residuals
from analysis.names import plain
from analysis.plan import ALPHA
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.results import Analysis
from analysis.shares import influences

MOST_MODELS = 6
MOST_ROWS = 20_000
"""Rows above which a model is not checked."""
METHOD = Markup(
    "Residuals of mixed models were the places of observations among 250 data sets simulated with new random effects (randomized "
    "quantile residuals; Dunn &amp; Smyth, 1996); uniformity, dispersion and outliers were tested against the same simulations. Each "
    "participant and each item was left out of the planned estimates, of times at the variances of the fitted model."
)


def write(material: Material) -> Chapter | None:
    """Write the checks of the planned models; None where there are none."""
    wanted = [one for one in material.analyses if one.plan.planned and one.has_results][:MOST_MODELS]
    blocks: list[Block] = []
    for one in wanted:
        if 0 < len(one.rows) <= MOST_ROWS:
            material.told(f"model checks: {one.plan.name}")
            blocks += _checked(one, material)
    if not blocks:
        return None
    groups = tuple(dict.fromkeys(group for one in wanted for group in one.groups))
    return Chapter(
        "model-checks",
        "Model checks",
        tuple(blocks),
        marks_of(groups, material.kinds),
        planned=True,
        methods=(METHOD,),
        sources=("dunn1996",),
    )


def _checked(analysis: Analysis, material: Material) -> list[Block]:
    plan, model = analysis.plan, analysis.model
    residuals = None
    if model is not None and model.source is not None:
        residuals = simulated_residuals(
            model.source, seed=f"{material.tables.dictionary['study']} {plan.name}"
        )
    changes = influences(analysis, material.tables)
    if residuals is None and not changes:
        return []
    said = "" if residuals is None else f"{_residuals_in_words(residuals)} "
    parts = []
    for unit, table in changes.items():
        largest = table.abs().max(axis=1)
        parts.append(f"one {unit} by at most {apa.number(largest.max(), 2)} SE ({largest.idxmax()})")
    if parts:
        said += f"A contrast changes without {' and without '.join(parts)}; {_turned(analysis, changes)}."
    name = f"model_checks_{plain(plan.name)}"
    text = f"{plan.name[0].upper()}{plan.name[1:]}: {said.strip()}"
    drawn = None if residuals is None else residuals.residuals
    figure = model_checks_figure(name, f"Checks of {plan.name}", drawn, changes, text)
    return [escape(text) + Markup(" ([[figure:{}]])").format(name), figure]


def _residuals_in_words(found: SimulatedResiduals) -> str:
    """Report the three tests of simulated residuals."""
    smallest = min(found.p_uniform, found.p_dispersion, found.p_outliers)
    verdict = "depart from" if 3 * smallest < ALPHA else "agree with"
    return (
        f"simulated residuals {verdict} the model (uniformity {apa.p_phrase(found.p_uniform)}; dispersion "
        f"{apa.number(found.dispersion, 2)}, {apa.p_phrase(found.p_dispersion)}; {apa.counted(found.outliers, 'outlier')}, "
        f"{apa.p_phrase(found.p_outliers)})."
    )


def _turned(analysis: Analysis, changes: Mapping[str, pd.DataFrame]) -> str:
    """Count the units without which a contrast would be significant, or no longer be, at its standard error."""
    tested = [one for one in analysis.contrasts if one.estimable and one.se > 0]
    t = np.array([one.statistic for one in tested])
    reach, side = (np.array([getattr(one, name) for one in tested]) for name in ("reach", "side"))

    def excludes(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(np.where(side == 0, np.abs(values), side * values) > reach)

    turned = {
        unit: int((excludes(t + table.to_numpy()) != excludes(t)).any(axis=1).sum())
        for unit, table in changes.items()
    }
    told = [apa.counted(many, unit) for unit, many in turned.items() if many]
    return (
        f"without {' or '.join(told)} a test comes out otherwise"
        if told
        else "no test depends on one of them"
    )
