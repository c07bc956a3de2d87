"""Planned differences as linear functions of the fixed effects of a mixed model, and those that a model does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.frames import ModelData
from analysis.mixed import linear_contrasts, margins
from analysis.multiple_comparisons import adjusted, two_one_sided
from analysis.plan import LevelDifference, Plan, cell_name
from analysis.readers import headed
from analysis.results import Contrast, EstimateWithTest, FittedModelResult

_NODES, _OF_NODES = np.polynomial.hermite_e.hermegauss(40)

Floats = NDArray[np.float64]
Cells = Mapping[tuple[str, str], Floats]
"""Each cell of the design, by reader group and level, as weights of the fixed effects, shape (p,)."""


def contrasts_of(plan: Plan, data: ModelData, model: FittedModelResult) -> tuple[Contrast, ...]:
    """Test every contrast of a plan in each reader group (in its direction) and between the first and each other (two-sided)."""
    cells = cell_means(plan.factor, data, model)
    contrasts: list[Contrast] = []
    for difference in plan.contrasts:
        for groups in compared(plan.groups if plan.planned else data.groups):
            reason = why_not(difference, groups, plan, data)
            if not reason:
                contrasts.append(_tested(difference, groups, plan, cells, model))
            elif plan.planned:
                contrasts.append(untested(difference, groups, reason))
    return tuple(adjusted([(plan, contrasts)])[0])


def cell_means(factor: str, data: ModelData, model: FittedModelResult) -> Cells:
    """Return the mean of every cell of the design as weights of the fixed effects."""
    crossed = len(data.groups) > 1
    factors = [factor] if data.crossing is None else list(data.crossing.factors)
    means = margins(model.source, [*factors, "reader_group"] if crossed else factors)
    cells = {}
    for weights, row in zip(means.matrix, means.grid.to_dict("records"), strict=True):
        shown = [str(row[name]) for name in factors]
        level = shown[0] if data.crossing is None else cell_name(*shown)
        if level in data.levels:
            cells[str(row["reader_group"]) if crossed else data.groups[0], level] = weights
    return cells


def _weights(difference: LevelDifference, groups: tuple[str, ...], plan: Plan, cells: Cells) -> Floats:
    """Return a contrast as weights of the fixed effects: of two groups the difference between them is taken."""
    signed = zip((1.0, -1.0), groups, strict=False)
    of_levels = plan.weights(difference).items()
    weighted = (sign * w * cells[group, level] for sign, group in signed for level, w in of_levels)
    return np.asarray(sum(weighted))


def _tested(
    difference: LevelDifference, groups: tuple[str, ...], plan: Plan, cells: Cells, model: FittedModelResult
) -> Contrast:
    weights = _weights(difference, groups, plan, cells)
    table = linear_contrasts(model.source, weights).drop(columns="contrast")
    row = dict(zip(table.columns, table.to_numpy(dtype=float)[0].tolist(), strict=True))
    ends = (row["ci_low"], row["ci_high"])
    estimable = model.determined and model.can_estimate(row["estimate"], row["se"], ends)
    estimable = estimable and bool(np.isfinite(row["p"])) and not model.runs_away
    df = None if np.isnan(row["df"]) else row["df"]
    bound = plan.equivalence if len(groups) == 2 and estimable and model.family != "binomial" else None
    simple: tuple[float, ...] = ()
    if len(difference.at) == 2 and len(groups) == 1:
        sides = [replace(difference, at=(level,)) for level in difference.at]
        simple = tuple(float(_weights(side, groups, plan, cells) @ model.beta) for side in sides)
    p = one_sided(row["p"], row["statistic"], difference.direction_in(groups))
    tested = EstimateWithTest(row["estimate"], row["se"], row["statistic"], df, p, ends)
    return Contrast.of(
        difference,
        groups,
        tested,
        estimable=estimable,
        weights=tuple(weights.tolist()),
        vcov=model.vcov,
        simple=simple,
        equivalence=bound and two_one_sided(row["estimate"], row["se"], df, bound.half_width, plan.alpha),
    )


def one_sided(p: float, statistic: float, direction: str) -> float:
    """Return the p value of a directional test from the two-sided one of a symmetric statistic."""
    if direction == "two-sided" or not np.isfinite(statistic):
        return p
    as_expected = (statistic > 0) == (direction == "greater")
    return p / 2 if as_expected else 1 - p / 2


def averaged_probability(eta: Floats | float, variance: Floats | float) -> Floats:
    """Average the inverse logit over normal linear predictors."""
    logits = (
        np.asarray(eta, dtype=float)[..., None]
        + np.sqrt(np.asarray(variance, dtype=float))[..., None] * _NODES
    )
    return np.asarray(special.expit(logits) @ (_OF_NODES / _OF_NODES.sum()))


NOT_WITH_OTHERS = "not in one model with the others"


def all_untested(plan: Plan, data: ModelData, reason: str) -> tuple[Contrast, ...]:
    """Return the contrasts of a plan of which nothing could be fitted; none of an exploratory one."""
    if not plan.planned:
        return ()
    contrasts = [
        untested(difference, groups, why_not(difference, groups, plan, data) or reason)
        for difference in plan.contrasts
        for groups in compared(plan.groups)
    ]
    return tuple(adjusted([(plan, contrasts)])[0])


def untested(difference: LevelDifference, groups: tuple[str, ...], reason: str) -> Contrast:
    """Return a planned contrast that is not in the model: not estimable, and still one of its family."""
    nan = float("nan")
    tested = EstimateWithTest(nan, nan, nan, None, nan, (nan, nan))
    return Contrast.of(difference, groups, tested, estimable=False, left_out=reason)


def compared(groups: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return each reader group alone, and the first with each other."""
    return [*((group,) for group in groups), *((groups[0], group) for group in groups[1:])]


def why_not(difference: LevelDifference, groups: tuple[str, ...], plan: Plan, data: ModelData) -> str:
    """State why the data of a model do not hold a difference of readers; empty where they do."""
    without = [
        f"{headed(group)}: {data.unmodelled.get(group) or NOT_WITH_OTHERS}"
        for group in groups
        if group not in data.groups
    ]
    levels = [level for level in plan.weights(difference) if level not in data.levels]
    without += [data.unmodelled_levels.get(level, f"{level} is not in the model") for level in levels]
    return "; ".join(dict.fromkeys(without))
