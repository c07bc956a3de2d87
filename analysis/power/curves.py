"""From simulated studies to power: shares with intervals, and the size at which a wanted power is reached.

Power is the share of all simulated studies in which a test finds what it looks for. A study without a model, one whose fit did
not converge and one in which the data do not determine the contrast found nothing; singular fits count as they are, for that
is how they would be reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

from analysis.intervals import wilson
from analysis.mixed import equivalence_tests
from analysis.plan import Difference, Plan
from analysis.power.assumptions import Assumptions
from analysis.power.layouts import Sizes
from analysis.power.simulation import Found, Outcome
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

DRAWS = 4000
"""Curves drawn for the interval of a needed size."""
AXES = ("participants", "items", "prompts", "replicates")


@dataclass(frozen=True)
class Test:
    """One test of a plan: a difference in a reader group or between two, or its equivalence to none.

    Attributes
    ----------
    kind : {'difference', 'equivalence'}
    difference : Difference
    groups : tuple of str
        One reader group, or the first of the plan and another.
    """

    __test__ = False

    kind: str
    difference: Difference
    groups: tuple[str, ...]

    @property
    def readers(self) -> str:
        """The reader groups in words."""
        return " − ".join(self.groups)


def tests_of(plan: Plan) -> list[Test]:
    """List the tests of a plan in the order of its contrasts: within each reader group, between them, equivalences."""
    found = []
    for difference in plan.contrasts:
        within = [(group,) for group in plan.groups]
        between = [(plan.groups[0], group) for group in plan.groups[1:]]
        found += [Test("difference", difference, groups) for groups in [*within, *between]]
        if plan.equivalence is not None:
            found += [Test("equivalence", difference, groups) for groups in between]
    return found


def power_table(plan: Plan, assumptions: Assumptions, outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Count what simulated studies found.

    Parameters
    ----------
    plan : Plan
        With level (``alpha``) and bound (``equivalence``).
    assumptions : Assumptions
        What they were drawn from.
    outcomes : sequence of Outcome

    Returns
    -------
    DataFrame
        One row per test and size:

        =====================================  ====================================================================
        column                                 what it holds
        =====================================  ====================================================================
        kind                                   ``difference`` or ``equivalence``
        contrast, readers                      ``initial − intact``; ``human``, or ``human − gpt``
        participants, items, prompts,          the size
        replicates
        fits                                   simulated studies
        found                                  in how many p lies below alpha, after the correction that the plan makes
        power, power_low, power_high           found / fits with the 95 % Wilson interval
        power_uncorrected                      the same without the correction for several readers
        power_of_usable                        found / (fits that converged and determine the contrast); nan for none
        wrong_sign                             share of the differences found that point the wrong way; nan where none
                                               is found, or there is nothing to find
        true_effect, true_points               the truth: on the modelled scale; in percentage points (accuracy)
        mean_estimate, mean_se                 over the usable fits, on the modelled scale (equivalence of accuracy: points)
        no_model, not_converged                shares of the fits that found nothing for this reason
        not_determined
        singular, reduced                      shares that are singular as reported; that were reduced on the way
        =====================================  ====================================================================
    """
    by_size: dict[Sizes, list[Outcome]] = {}
    for outcome in outcomes:
        by_size.setdefault(outcome.sizes, []).append(outcome)
    equal = {sizes: _equivalence_p(plan, own) for sizes, own in by_size.items()}
    return pd.DataFrame(
        [
            _row(test, sizes, own, plan, assumptions, equal[sizes])
            for test in tests_of(plan)
            for sizes, own in by_size.items()
        ]
    )


Key = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def _key(test: Test) -> Key:
    return test.difference.first, test.difference.second, test.difference.at, test.groups


def _by_key(outcome: Outcome) -> dict[Key, Found]:
    return {(one.first, one.second, one.at, one.groups): one for one in outcome.found}


def _row(
    test: Test,
    sizes: Sizes,
    outcomes: list[Outcome],
    plan: Plan,
    truth: Assumptions,
    equal: dict[Key, tuple[Array, Array]],
) -> dict[str, object]:
    own = [_by_key(one).get(_key(test)) for one in outcomes]
    converged = np.array([one.converged for one in outcomes])
    told = np.array([one is not None for one in own])
    usable = converged & told
    in_points = test.kind == "equivalence" and plan.measure.family == "binomial"
    if test.kind == "equivalence":
        raw, adjusted = equal[_key(test)]
    else:
        raw = np.array([_number(one.p) if one else np.nan for one in own])
        adjusted = np.array([_number(one.p_adjusted) if one else np.nan for one in own])
    found = usable & (adjusted < plan.alpha)
    alone = usable & (raw < plan.alpha)
    estimates = np.array(
        [_number(one.points if in_points else one.estimate) if one else np.nan for one in own]
    )
    errors = np.array([(_points_se(one) if in_points else _number(one.se)) if one else np.nan for one in own])
    effect = truth.effect(plan, test.difference, test.groups)
    low, high = wilson(float(found.mean()), len(own))
    return {
        "kind": test.kind,
        "contrast": test.difference.label,
        "readers": test.readers,
        **{name: getattr(sizes, name) for name in AXES},
        "fits": len(own),
        "found": int(found.sum()),
        "power": float(found.mean()),
        "power_low": low,
        "power_high": high,
        "power_uncorrected": float(alone.mean()),
        "power_of_usable": float(found.sum() / usable.sum()) if usable.any() else np.nan,
        "wrong_sign": _wrong_sign(test, found, estimates, effect),
        "true_effect": effect,
        "true_points": _number(truth.points(plan, test.difference, test.groups)),
        "mean_estimate": float(estimates[usable].mean()) if usable.any() else np.nan,
        "mean_se": float(errors[usable].mean()) if usable.any() else np.nan,
        "no_model": float(np.mean([not one.fitted for one in outcomes])),
        "not_converged": float(np.mean([one.fitted and not one.converged for one in outcomes])),
        "not_determined": float((converged & ~told).mean()),
        "singular": float(np.mean([one.singular for one in outcomes])),
        "reduced": float(np.mean([one.steps > 1 for one in outcomes])),
    }


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _wrong_sign(test: Test, found: NDArray[np.bool_], estimates: Array, effect: float) -> float:
    if test.kind == "equivalence" or not found.any() or abs(effect) < 1e-9:
        return float("nan")
    return float(np.mean(np.sign(estimates[found]) != np.sign(effect)))


def _points_se(one: Found) -> float:
    """Take the standard error in points from the interval that the analysis gives."""
    if one.points_low is None or one.points_high is None:
        return float("nan")
    return (one.points_high - one.points_low) / (2.0 * float(stats.norm.ppf(0.975)))


def _equivalence_p(plan: Plan, outcomes: list[Outcome]) -> dict[Key, tuple[Array, Array]]:
    """P values of the equivalence tests, shape (fits,), raw and corrected over the readers of a contrast; nan for none."""
    if plan.equivalence is None:
        return {}
    found: dict[Key, tuple[Array, Array]] = {}
    of_fits = [_by_key(one) for one in outcomes]
    every = [test for test in tests_of(plan) if test.kind == "equivalence"]
    by_contrast = [[test for test in every if test.difference == one] for one in plan.contrasts]
    # a family that the plan names holds all of its equivalences, else each contrast is one over its readers
    for tests in [every] if plan.family else by_contrast:
        raw = np.full((len(outcomes), len(tests)), np.nan)
        for j, test in enumerate(tests):
            own = [one.get(_key(test)) for one in of_fits]
            there = [i for i, one in enumerate(own) if one is not None and _bounded(one, plan)]
            if there:
                raw[there, j] = _tost([one for i in there if (one := own[i]) is not None], plan)
        adjusted = raw.copy()
        if plan.planned and len(tests) > 1:
            adjusted = _holm(raw)
        for j, test in enumerate(tests):
            found[_key(test)] = (raw[:, j], adjusted[:, j])
    return found


def _holm(p: Array) -> Array:
    """Correct each row by Holm's method, as :mod:`analysis.families` does; a missing p is in no family.

    All rows at once: statsmodels takes one at a time, and a collection of garbage with each.
    """
    order = np.argsort(p, axis=1)
    left = (~np.isnan(p)).sum(axis=1, keepdims=True) - np.arange(p.shape[1])
    steps = np.take_along_axis(p, order, axis=1) * left
    climbed = np.minimum(np.maximum.accumulate(steps, axis=1), 1.0)
    result = np.empty_like(p)
    np.put_along_axis(result, order, climbed, axis=1)
    return result


def _bounded(one: Found, plan: Plan) -> bool:
    in_points = plan.equivalence is not None and plan.equivalence.unit == "points"
    return (one.points_low is not None and _points_se(one) > 0) if in_points else one.se is not None


def _tost(own: list[Found], plan: Plan) -> Array:
    assert plan.equivalence is not None
    in_points = plan.equivalence.unit == "points"
    table = pd.DataFrame(
        {
            "contrast": "",
            "estimate": [_number(one.points if in_points else one.estimate) for one in own],
            "se": [_points_se(one) if in_points else _number(one.se) for one in own],
            "df": [np.nan if in_points else _number(one.df) for one in own],
        }
    )
    tested = equivalence_tests(table, plan.equivalence.half_width, alpha=plan.alpha)
    return tested["p"].to_numpy(dtype=float)


def check_wanted(wanted: float) -> None:
    """Refuse a wanted power that is none.

    Raises
    ------
    UserError
        Outside (0, 1).
    """
    if not 0.0 < wanted < 1.0:
        raise UserError(f"the wanted power is {wanted:g}; it lies between 0 and 1", mend="For example 0.8.")


def needed(table: pd.DataFrame, wanted: float) -> pd.DataFrame:
    """Find the smallest number of participants, items, prompts or replicates with a wanted power.

    Along each size that varies, all others fixed, power is made monotone (isotonic regression weighted by the number of fits)
    and interpolated on the probit scale in the root of the number, on which the power of a z test is a line. The interval
    holds 95 % of the numbers from curves drawn from what the fits leave open (Beta with Jeffreys' prior at every size).

    Parameters
    ----------
    table : DataFrame
        From :func:`power_table`.
    wanted : float
        Between 0 and 1.

    Returns
    -------
    DataFrame
        kind, contrast, readers, of (participants, items …), the other sizes, wanted, number (rounded up), low, high, and
        ``reached``: ``yes``, ``at the smallest`` (fewer may do) or ``no`` (number is nan). An end of the interval that lies
        beyond the grid is nan (high) or the smallest size (low).

    Raises
    ------
    UserError
        For a wanted power outside (0, 1).
    """
    check_wanted(wanted)
    rows = []
    for axis in AXES:
        others = [name for name in AXES if name != axis]
        for key, own in table.groupby(["kind", "contrast", "readers", *others], sort=False):
            if own[axis].nunique() > 1:
                said = dict(zip(["kind", "contrast", "readers", *others], key, strict=True))
                rows.append(
                    {**said, "of": axis, "wanted": wanted, **_needed(own.sort_values(axis), axis, wanted)}
                )
    columns = ["kind", "contrast", "readers", "of", *AXES, "wanted", "number", "low", "high", "reached"]
    return pd.DataFrame(rows, columns=columns)


def _needed(own: pd.DataFrame, axis: str, wanted: float) -> dict[str, object]:
    sizes = own[axis].to_numpy(dtype=float)
    found, fits = own["found"].to_numpy(dtype=float), own["fits"].to_numpy(dtype=float)
    best = _crossing(sizes, found / fits, fits, wanted)
    said = own[["kind", "contrast", "readers"]].iloc[0].tolist()
    rng = np.random.default_rng(stable_seed("power", "needed", axis, *said))
    drawn = rng.beta(found + 0.5, fits - found + 0.5, size=(DRAWS, len(sizes)))
    numbers = np.sort([_crossing(sizes, power, fits, wanted) for power in drawn])
    # np.inf stands for beyond the grid, so the quantiles are taken from sorted numbers without interpolation
    low, high = numbers[int(0.025 * (DRAWS - 1))], numbers[int(np.ceil(0.975 * (DRAWS - 1)))]
    reached = "no" if np.isinf(best) else "at the smallest" if best <= sizes[0] else "yes"
    ends = [float(np.ceil(end - 1e-9)) if np.isfinite(end) else np.nan for end in (best, low, high)]
    return {"number": ends[0], "low": ends[1], "high": ends[2], "reached": reached}


def _crossing(sizes: Array, power: Array, fits: Array, wanted: float) -> float:
    """Where a monotone curve through the powers crosses the wanted one; the smallest size, or infinity beyond the largest."""
    rising = np.asarray(optimize.isotonic_regression(power, weights=fits).x)
    above = np.flatnonzero(rising >= wanted)
    if not len(above):
        return float("inf")
    if above[0] == 0:
        return float(sizes[0])
    left, right = above[0] - 1, above[0]
    edge = 0.5 / fits
    z = stats.norm.ppf(np.clip(rising, edge, 1.0 - edge)[[left, right]])
    goal = float(np.clip(stats.norm.ppf(wanted), z[0], z[1]))
    share = (goal - z[0]) / (z[1] - z[0]) if z[1] > z[0] else 1.0
    root = np.sqrt(sizes[left]) + share * (np.sqrt(sizes[right]) - np.sqrt(sizes[left]))
    return float(root**2)
