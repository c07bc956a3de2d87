"""Planned differences as linear functions of the fixed effects of a mixed model, and the cells of the design.

Cells have the variance of their linear predictor, over which probabilities are averaged (Gauss–Hermite quadrature) for predictions and
the assumptions of a power analysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.bounded import two_one_sided
from analysis.crossing import slopes_in_cell
from analysis.families import adjusted
from analysis.frames import ModelData, indicator
from analysis.mixed import linear_contrasts, margins
from analysis.plan import Difference, Plan, cell_name
from analysis.results import Contrast, FittedModel, can_be_estimated
from analysis.untested import compared, untested, why_not

NODES = 40


@dataclass(frozen=True)
class CellMean:
    """One cell of the design as a linear function of the fixed effects."""

    weights: NDArray[np.float64]  # shape (p,)
    variance: float  # variance of the linear predictor over participants and items in this cell


def contrasts_of(plan: Plan, data: ModelData, model: FittedModel) -> tuple[Contrast, ...]:
    """Test every contrast of a plan in each reader group (in its direction) and between the first and each other (two-sided)."""
    cells = cell_means(plan.factor, data, model)
    found: list[Contrast] = []
    for difference in plan.contrasts:
        for groups in compared(plan.groups if plan.planned else data.groups):
            why = why_not(difference, groups, plan, data)
            if not why:
                found.append(_tested(difference, groups, plan, cells, model))
            elif plan.planned:
                found.append(untested(difference, groups, why))
    return tuple(adjusted([(plan, found)])[0])


def cell_means(factor: str, data: ModelData, model: FittedModel) -> dict[tuple[str, str], CellMean]:
    """Return every cell of the design, keyed by (reader group, level)."""
    assert model.source is not None
    crossed = len(data.groups) > 1
    asked = [factor] if data.crossing is None else list(data.crossing.factors)
    means = margins(model.source, [*asked, "reader_group"] if crossed else asked)
    found = {}
    for place, row in enumerate(means.grid.to_dict("records")):
        group = str(row["reader_group"]) if crossed else data.groups[0]
        shown = [str(row[one]) for one in asked]
        level = shown[0] if data.crossing is None else cell_name(*shown)
        if level in data.levels:
            found[group, level] = CellMean(means.matrix[place], _variance(group, level, factor, data, model))
    return found


def _variance(group: str, level: str, factor: str, data: ModelData, model: FittedModel) -> float:
    """Add up the variance of all random effects that act in one cell."""
    person = group in data.participant_groups
    kind = "people" if person else "model"
    active = {"(Intercept)", f"{factor}{level}", indicator(factor, level), kind}
    active |= {f"reader_group{group}", indicator(kind, level)}
    values = dict.fromkeys(active, 1.0)
    if data.crossing is not None:
        values |= slopes_in_cell(data.crossing, level) | slopes_in_cell(data.crossing, level, kind)
    total = 0.0
    for term in model.variance:
        z = np.array([prod(values.get(part, 0.0) for part in name.split(":")) for name in term.terms])
        if person or term.group != "participant":
            total += float(z @ term.cov @ z)
    return total


Signed = tuple[float, CellMean]


def _signed(
    difference: Difference, groups: tuple[str, ...], plan: Plan, cells: Mapping[tuple[str, str], CellMean]
) -> list[Signed]:
    """Return what a contrast weighs each cell with: of two groups the difference between them is taken."""
    return [
        (sign * weight, cells[group, level])
        for sign, group in zip((1.0, -1.0), groups, strict=False)
        for level, weight in plan.weights(difference).items()
    ]


def _simple(
    difference: Difference,
    group: str,
    plan: Plan,
    cells: Mapping[tuple[str, str], CellMean],
    model: FittedModel,
) -> tuple[float, ...]:
    """Return the difference at each of the two levels between which an interaction compares it, on the modelled scale."""
    sides = [_signed(replace(difference, at=(level,)), (group,), plan, cells) for level in difference.at]
    return tuple(sum(weight * float(cell.weights @ model.beta) for weight, cell in side) for side in sides)


def _tested(
    difference: Difference,
    groups: tuple[str, ...],
    plan: Plan,
    cells: Mapping[tuple[str, str], CellMean],
    model: FittedModel,
) -> Contrast:
    assert model.source is not None
    signed = _signed(difference, groups, plan, cells)
    weights = np.sum([sign * cell.weights for sign, cell in signed], axis=0)
    table = linear_contrasts(model.source, weights).drop(columns="contrast")
    row = dict(zip(table.columns, table.to_numpy(dtype=float)[0].tolist(), strict=True))
    logistic = plan.measure.family == "binomial"
    ends = (row["ci_low"], row["ci_high"])
    kinds = {"logistic": logistic, "plain": model.plain}
    estimable = model.determined and can_be_estimated(row["estimate"], row["se"], ends, **kinds)
    estimable = estimable and bool(np.isfinite(row["p"]))
    df = None if np.isnan(row["df"]) else row["df"]
    bound = plan.equivalence if len(groups) == 2 and estimable and not logistic else None
    direction = difference.direction if len(groups) == 1 else "two-sided"
    p = one_sided(row["p"], row["statistic"], direction)
    return Contrast(
        first=difference.first,
        second=difference.second,
        groups=groups,
        estimate=row["estimate"],
        se=row["se"],
        statistic=row["statistic"],
        df=df,
        p=p,
        low=row["ci_low"],
        high=row["ci_high"],
        p_adjusted=p,
        family=1,
        estimable=estimable,
        direction=direction,
        weights=tuple(weights.tolist()),
        vcov=model.vcov,
        at=difference.at,
        simple=_simple(difference, groups[0], plan, cells, model)
        if len(difference.at) == 2 and len(groups) == 1
        else (),
        equivalence=None
        if bound is None
        else two_one_sided(row["estimate"], row["se"], df, bound, plan.alpha),
    )


def one_sided(p: float, statistic: float, direction: str) -> float:
    """Return the p value of a directional test from the two-sided one of a symmetric statistic."""
    if direction == "two-sided" or not np.isfinite(statistic):
        return p
    as_expected = (statistic > 0) == (direction == "greater")
    return p / 2 if as_expected else 1 - p / 2


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points, weights / weights.sum()


def averaged_probability(eta: float, variance: float) -> tuple[float, float]:
    """Average the inverse logit over a normal linear predictor."""
    mean, slope = averaged_probabilities(np.array([eta]), np.array([variance]))
    return float(mean[0]), float(slope[0])


def averaged_probabilities(
    eta: NDArray[np.float64], variance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Do the same for many linear predictors; all of shape (rows,)."""
    points, weights = _nodes()
    p = special.expit(eta[:, None] + np.sqrt(variance)[:, None] * points)
    return p @ weights, (p * (1 - p)) @ weights
