"""Equivalence of readers: a difference between them held against the bound that was fixed beforehand.

Within one model the difference and its standard error come from that model, so that what readers share (items) is
accounted for. Readers with measures of their own have a model each; their differences are compared as ratios, and the
standard error takes both models as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from analysis.mixed import equivalence_tests
from analysis.plan import Bound, Difference
from analysis.results import Analysis, Contrast, Equivalence
from analysis.untested import untested


def two_one_sided(estimate: float, se: float, df: float | None, bound: Bound, alpha: float) -> Equivalence:
    """Test a difference between readers for lying within a bound."""
    table = pd.DataFrame({"estimate": [estimate], "se": [se], "df": [np.nan if df is None else df]})
    row = equivalence_tests(table, bound.half_width, alpha=alpha).iloc[0]
    p = float(row["p"])
    ends = float(row["ci_low"]), float(row["ci_high"])
    statistic = float(row["statistic"])
    return Equivalence(
        estimate, se, bound.half_width, statistic, df, p, p, 1, *ends, 1 - 2 * alpha, bool(p < alpha)
    )


def across_measures(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Add the comparisons between readers whose measures differ, where one plan bounds them by a ratio."""
    found = list(analyses)
    by_key: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        if one.plan.key and one.plan.equivalence is not None:
            by_key.setdefault(one.plan.key, []).append(place)
    for places in by_key.values():
        first = found[places[0]]
        if len(places) < 2:
            continue
        for place in places[1:]:
            found[place] = _beside(first, found[place])
    return found


def _beside(first: Analysis, other: Analysis) -> Analysis:
    bound = other.plan.equivalence
    if bound is None or bound.unit != "ratio":
        return other
    reader = first.plan.groups[0]
    own = {one.label: one for one in first.contrasts if one.groups == (reader,)}
    added = []
    for one in other.contrasts:
        beside = own.get(one.label)
        if one.between or beside is None:
            continue
        if one.estimable and beside.estimable:
            added.append(_compared(beside, one, bound, other.plan.alpha))
        else:
            added.append(_not_compared(beside, one))
    other = replace(other, contrasts=(*other.contrasts, *added))
    if not any(one.estimable for one in added):
        return other
    names = f"{first.plan.measure.noun} and {other.plan.measure.noun}"
    told = (
        f"Differences in {names} come from a model each and are compared as ratios of conditions; their errors are taken as "
        "independent, though the items are the same."
    )
    return replace(other, remarks=(*other.remarks, told))


def _not_compared(one: Contrast, other: Contrast) -> Contrast:
    """Return the comparison of two differences of which one is not estimable: one of its family, and not estimable."""
    why = "; ".join(dict.fromkeys(each.left_out for each in (one, other) if each.left_out))
    groups = (one.groups[0], other.groups[0])
    return untested(
        Difference(one.first, one.second, at=one.at), groups, why or "these data do not determine it"
    )


def _compared(one: Contrast, other: Contrast, bound: Bound, alpha: float) -> Contrast:
    estimate = one.estimate - other.estimate
    se = float(np.hypot(one.se, other.se))
    df = None
    if one.df is not None and other.df is not None:
        df = se**4 / (one.se**4 / one.df + other.se**4 / other.df)
    spread = stats.norm if df is None else stats.t(df)
    half = float(spread.ppf(0.975)) * se
    p = float(2 * spread.sf(abs(estimate / se)))
    return replace(
        one,
        groups=(one.groups[0], other.groups[0]),
        estimate=estimate,
        se=se,
        statistic=estimate / se,
        df=df,
        p=p,
        p_adjusted=p,
        family=1,
        low=estimate - half,
        high=estimate + half,
        direction="two-sided",
        simple=(),
        weights=(),
        vcov=None,
        equivalence=two_one_sided(estimate, se, df, bound, alpha),
    )
