"""Every planned effect of people beside the model's, and whether the two differ by less than what was said to matter.

Equivalence is tested by two one-sided tests (Schuirmann, 1987; Lakens, 2017, Social Psychological and Personality Science 8,
355-362) against the bound of the plan, never against one chosen afterwards: without a bound there is no verdict on equivalence.
The tests of one contrast over models are one family.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.costs.ratios import CostProfile
from analysis.measures.resampling import interval
from analysis.plan import Bound, Difference
from analysis.results import Analysis, Contrast
from stimuli.errors import UserError

EQUIVALENT, DIFFERENT, BOTH, UNDECIDED = "equivalent", "different", "equivalent and different", "undecided"
NOT_ESTIMABLE = "not estimable"
POINTS, MODELLED = "points", "modelled"
_NAN = float("nan")


def effects(analysis: Analysis, people: Analysis | None = None) -> pd.DataFrame:
    """Return every contrast of the first reader group beside each other group's."""
    first = people or analysis
    own_groups, groups = (one.plan.groups if one.plan.planned else one.groups for one in (first, analysis))
    models = groups[1:] if people is None else groups
    if not models or not own_groups:
        told = "; ".join(analysis.remarks)
        raise UserError(
            f"{analysis.plan.name}: one reader group is no comparison",
            mend=told or "Give two groups in `between`.",
        )
    logistic = analysis.plan.measure.family == "binomial"
    by = {(one.label, one.groups): one for one in (*first.contrasts, *analysis.contrasts)}
    human = own_groups[0]
    rows = []
    for difference in analysis.plan.contrasts:
        for model in models:
            keys = ((human,), (model,), (human, model))
            three = [by[difference.label, key] for key in keys if (difference.label, key) in by]
            if len(three) < len(keys):
                continue
            own, other, apart = three
            rows.append(
                {
                    "contrast": difference.label,
                    "people": human,
                    "model": model,
                    "unit": POINTS if logistic else MODELLED,
                    **_ends("human", own),
                    **_ends("machine", other),
                    **_ends("difference", apart),
                    "p": apart.p_adjusted if apart.estimable else _NAN,
                    **_equivalence(apart),
                    "why": apart.left_out,
                }
            )
    return _judged(pd.DataFrame(rows), analysis.plan.alpha) if rows else pd.DataFrame()


def _equivalence(one: Contrast) -> dict[str, float]:
    test = one.equivalence
    names = ("bound", "equivalence_low", "equivalence_high", "equivalence_p")
    values = (_NAN,) * 4 if test is None else (test.half_width, test.low, test.high, test.p_adjusted)
    return dict(zip(names, values, strict=True))


def _values(one: Contrast) -> tuple[float, float, float]:
    if not one.estimable:
        return (_NAN,) * 3
    return one.estimate, one.low, one.high


def _ends(head: str, one: Contrast) -> dict[str, float]:
    return dict(zip((head, f"{head}_low", f"{head}_high"), _values(one), strict=True))


def _judged(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    apart = (rows["difference_low"] > 0) | (rows["difference_high"] < 0)
    near = rows["equivalence_p"] < alpha
    known = rows["difference_low"].notna()
    rows["same_direction"] = np.sign(rows["human"]) == np.sign(rows["machine"])
    rows["verdict"] = np.select(
        [~known, near & apart, near, apart], [NOT_ESTIMABLE, BOTH, EQUIVALENT, DIFFERENT], UNDECIDED
    )
    return rows


def cost_effects(
    people: CostProfile,
    models: Sequence[CostProfile],
    contrasts: Sequence[Difference],
    bound: Bound | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Return differences between levels of people's and each model's cost, as log ratios."""
    if bound is not None and bound.unit != "ratio":
        raise UserError(
            f"a bound of {bound.said or bound.value} for log ratios", mend="Write it like: 10%, or 1.2 times."
        )
    rows = []
    for model in models:
        for difference in contrasts:
            sides = [_contrast(one, difference) for one in (people, model)]
            if sides[0] is None or sides[1] is None:
                continue
            (own, own_draws), (other, other_draws) = sides[0], sides[1]
            apart = own_draws - other_draws
            ends = [interval(draws) for draws in (own_draws, other_draws, apart)]
            inner = interval(apart, 1 - 2 * alpha)
            limit = _NAN if bound is None else bound.half_width
            beyond = max(_share(apart >= limit, apart), _share(apart <= -limit, apart))
            rows.append(
                {
                    "contrast": difference.label,
                    "people": people.group,
                    "measure": people.measure,
                    "model": model.group,
                    "model_measure": model.measure,
                    "unit": "log ratio",
                    **dict(
                        zip(
                            ("human", "human_low", "human_high"),
                            (own, ends[0].low, ends[0].high),
                            strict=True,
                        )
                    ),
                    "machine": other,
                    "machine_low": ends[1].low,
                    "machine_high": ends[1].high,
                    "difference": own - other,
                    "difference_low": ends[2].low,
                    "difference_high": ends[2].high,
                    "p": min(1.0, 2 * min(_share(apart >= 0, apart), _share(apart <= 0, apart))),
                    "bound": limit,
                    "equivalence_low": inner.low,
                    "equivalence_high": inner.high,
                    "equivalence_p": _NAN if bound is None else beyond,
                }
            )
    if not rows:
        told = ", ".join(difference.label for difference in contrasts) or "none"
        raise UserError(
            f"no contrast ({told}) is in the profiles", mend=f"Levels: {', '.join(people.profile.levels)}."
        )
    return _judged(pd.DataFrame(rows), alpha)


def _share(beyond: np.ndarray, draws: np.ndarray) -> float:
    defined = np.isfinite(draws)
    if not defined.any():
        return _NAN
    return max(float(beyond[defined].mean()), 1.0 / int(defined.sum()))


def _contrast(one: CostProfile, difference: Difference) -> tuple[float, np.ndarray] | None:
    levels = one.profile.levels
    value, draws = 0.0, np.zeros(len(one.profile.draws))
    for sign, level in ((1.0, difference.first), (-1.0, difference.second)):
        if level in levels:
            place = levels.index(level)
            value += sign * float(one.profile.estimate[place])
            draws = draws + sign * one.profile.draws[:, place]
        elif level != one.profile.intact:
            return None
    return value, draws
