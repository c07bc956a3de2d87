"""The planned differences by generalised estimating equations: without random effects, and without trust in them.

Two sets of clusters, each ignoring the other dependence: participants (of a model every item is a cluster) and items. A
conclusion of the mixed model that neither bears out hangs on its random effects. Cells are a parameter each, so that a
difference in percentage points is one of means, and the working correlation is exchangeable (Liang & Zeger, 1986, Biometrika
73, 13-22); standard errors are bias-reduced where there are fewer than 50 clusters (Mancl & DeRouen, 2001, Biometrics 57).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from analysis.frames import ModelData, accuracy_data, in_model, time_data
from analysis.plan import RATING, Plan
from analysis.preparing import time_bounds
from analysis.quantities import rating_rows
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError

Array = NDArray[np.float64]

PARTICIPANTS, ITEMS = CLUSTERS = ("participants", "items")
FEW = 50
LARGEST = 400
"""Rows of a cluster above which the bias-reduced covariance would take longer than it is worth."""


def gee_check(tables: Tables, plan: Plan, analysis: Analysis | None = None) -> pd.DataFrame:
    """Carry out a plan's contrasts without random effects.

    Parameters
    ----------
    tables : Tables
    plan : Plan
        Of ``correct``, ``rating``, ``rt`` or ``reading_time``.
    analysis : Analysis, optional
        The mixed model's, to stand beside.

    Returns
    -------
    pandas.DataFrame
        A row per set of clusters, contrast and reader group (or pair): ``clusters`` (what), ``number`` (how many),
        ``correlation`` (the exchangeable one), ``contrast, groups, estimate, se, low, high, p`` (population-averaged log
        odds, or log units of time), ``points, points_low, points_high`` (percentage points of right answers; nan for times),
        ``mixed, mixed_low, mixed_high, mixed_p`` (the mixed model's points, or log units, with their interval, and its
        uncorrected p; nan without), ``same_side`` (whether both intervals, in points where there are any, lead to the same
        conclusion about 0; None without).

    Raises
    ------
    UserError
        For a plan of another measure, or one with nothing to compare.
    """
    if plan.measure.name == "correct":
        data = accuracy_data(tables.trials, plan)
    elif plan.measure == RATING:
        rows, remarks = rating_rows(tables.trials, plan)
        data = in_model(rows, plan)
        data = replace(data, remarks=(*remarks, *data.remarks))
    elif plan.measure.unit == "ms":
        data = time_data(tables.trials, plan, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    else:
        raise UserError(
            f"{plan.measure.noun}: no check by estimating equations", mend="Give accuracy, ratings or a time."
        )
    if not data.can_be_fitted:
        raise UserError(f"{plan.name}: there is nothing to compare", mend="; ".join(data.remarks) or None)
    found = []
    for clusters in CLUSTERS:
        found += _checked(plan, data, clusters, analysis)
    return pd.DataFrame(found)


def _checked(
    plan: Plan, data: ModelData, clusters: str, analysis: Analysis | None
) -> list[dict[str, object]]:
    rows, logistic = data.rows, plan.measure.family == "binomial"
    cells = [(group, level) for group in data.groups for level in data.levels]
    place = {cell: n for n, cell in enumerate(cells)}
    at = np.array([place[cell] for cell in zip(rows["reader_group"], rows[plan.factor], strict=True)])
    x = np.zeros((len(rows), len(cells)))
    x[np.arange(len(rows)), at] = 1.0
    names = rows["item"]
    if clusters == PARTICIPANTS:
        people = rows["reader_group"].isin(data.participant_groups)
        names = (rows["reader_group"] + "/" + rows["participant"]).where(
            people, rows["reader_group"] + "/" + rows["item"]
        )
    codes = pd.factorize(names)[0]
    number = int(codes.max()) + 1
    if number < 3:
        return []
    order = np.argsort(codes, kind="stable")
    family = sm.families.Binomial() if logistic else sm.families.Gaussian()
    y = rows[plan.measure.response].to_numpy(dtype=float)
    few = number < FEW and np.bincount(codes).max() <= LARGEST
    model = sm.GEE(
        y[order], x[order], groups=codes[order], family=family, cov_struct=sm.cov_struct.Exchangeable()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = model.fit(cov_type="bias_reduced" if few else "robust")
    beta, cov = np.asarray(done.params), np.asarray(done.cov_params())
    by = {(one.label, one.groups): one for one in analysis.contrasts} if analysis is not None else {}
    found: list[dict[str, object]] = []
    for difference in plan.contrasts:
        levels = plan.weights(difference)
        if not set(levels) <= set(data.levels):
            continue
        asked = [(group,) for group in data.groups] + [(data.groups[0], other) for other in data.groups[1:]]
        for groups in asked:
            signed = _signed(groups, levels, place, len(cells))
            told = _wald(signed, beta, cov)
            points = _points(signed, beta, cov) if logistic else (float("nan"),) * 3
            other = by.get((difference.label, groups))
            beside = _shown(other)
            ends = points[1:] if logistic else (told["low"], told["high"])
            same = None if np.isnan(beside[1:]).any() else _side(*ends) == _side(*beside[1:])
            found.append(
                {
                    "clusters": clusters,
                    "number": number,
                    "correlation": float(model.cov_struct.dep_params),
                    "contrast": difference.label,
                    "groups": " − ".join(groups),
                    **told,
                    **dict(zip(("points", "points_low", "points_high"), points, strict=True)),
                    **dict(zip(("mixed", "mixed_low", "mixed_high"), beside, strict=True)),
                    "mixed_p": float("nan") if other is None else other.p,
                    "same_side": same,
                }
            )
    return found


def _shown(one: Contrast | None) -> tuple[float, float, float]:
    """Return a contrast of the analysis with its ends; nan where there is none."""
    nothing = (float("nan"),) * 3
    if one is None or not one.estimable:
        return nothing
    return one.estimate, one.low, one.high


def _side(low: float, high: float) -> float:
    """Return on which side of 0 an interval lies; 0 where it holds it."""
    return float(np.sign(low)) if low * high > 0 else 0.0


def _signed(
    groups: Sequence[str], levels: Mapping[str, float], place: dict[tuple[str, str], int], size: int
) -> Array:
    weights = np.zeros(size)
    for sign, group in zip((1.0, -1.0), groups, strict=False):
        for level, weight in levels.items():
            weights[place[group, level]] += sign * weight
    return weights


def _wald(weights: Array, beta: Array, cov: Array) -> dict[str, float]:
    value, variance = float(weights @ beta), float(weights @ cov @ weights)
    # clustered in two ways, a variance can come out below 0: it then says nothing
    se = variance**0.5 if variance >= 0 else float("nan")
    half = float(stats.norm.ppf(0.975)) * se
    p = float(2 * stats.norm.sf(abs(value) / se)) if se > 0 else float("nan")
    return {"estimate": value, "se": se, "low": value - half, "high": value + half, "p": p}


def _points(weights: Array, beta: Array, cov: Array) -> tuple[float, float, float]:
    p = 1.0 / (1.0 + np.exp(-beta))
    told = _wald(weights * p * (1 - p), beta, cov)
    value, half = float(weights @ p), told["high"] - told["estimate"]
    return 100 * value, 100 * (value - half), 100 * (value + half)
