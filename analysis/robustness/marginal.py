"""The planned differences by generalised estimating equations: without random effects, and without trust in them.

Two sets of clusters, each ignoring the other dependence: participants (of a model every item is a cluster) and items. A
conclusion that neither bears out hangs on how the two are treated. The mean of each cell is a parameter (identity link), so that
readers with 0% or 100% stay in, and the working correlation is exchangeable (Liang & Zeger, 1986, Biometrika 73, 13-22); standard
errors are bias-reduced where there are fewer than 50 clusters (Mancl & DeRouen, 2001, Biometrics 57).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from analysis.frames import ModelData, accuracy_rows, in_model, time_data
from analysis.plan import RATING, Plan
from analysis.preparing import time_bounds
from analysis.quantities import rating_rows
from analysis.tables import Tables
from stimuli.errors import UserError

PARTICIPANTS, ITEMS = CLUSTERS = ("participants", "items")
FEW = 50
LARGEST = 400
"""Rows of a cluster above which the bias-reduced covariance would take longer than it is worth."""


def gee_check(tables: Tables, plan: Plan) -> pd.DataFrame:
    """Carry out a plan's contrasts without random effects."""
    if plan.measure.name == "correct":
        data = in_model(accuracy_rows(tables.trials, plan)[0], plan)
    elif plan.measure == RATING:
        data = in_model(rating_rows(tables.trials, plan)[0], plan)
    elif plan.measure.unit == "ms":
        data = time_data(tables.trials, plan, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    else:
        raise UserError(
            f"{plan.measure.noun}: no check by estimating equations", mend="Give accuracy, ratings or a time."
        )
    if not data.can_be_fitted:
        raise UserError(f"{plan.name}: there is nothing to compare", mend="; ".join(data.remarks) or None)
    return pd.DataFrame([row for clusters in CLUSTERS for row in _checked(plan, data, clusters)])


def _checked(plan: Plan, data: ModelData, clusters: str) -> Iterator[dict[str, object]]:
    rows = data.rows
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
        return
    order = np.argsort(codes, kind="stable")
    y = rows[plan.measure.response].to_numpy(dtype=float) * (100.0 if plan.measure.scale == "points" else 1.0)
    few = number < FEW and np.bincount(codes).max() <= LARGEST
    model = sm.GEE(y[order], x[order], groups=codes[order], cov_struct=sm.cov_struct.Exchangeable())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = model.fit(cov_type="bias_reduced" if few else "robust")
    beta, cov = np.asarray(done.params), np.asarray(done.cov_params())
    for difference in plan.contrasts:
        levels = plan.weights(difference)
        if not set(levels) <= set(data.levels):
            continue
        for groups in [
            *((group,) for group in data.groups),
            *((data.groups[0], one) for one in data.groups[1:]),
        ]:
            weights = np.zeros(len(cells))
            for sign, group in zip((1.0, -1.0), groups, strict=False):
                for level, weight in levels.items():
                    weights[place[group, level]] += sign * weight
            yield {
                "clusters": clusters,
                "number": number,
                "correlation": float(model.cov_struct.dep_params),
                "contrast": difference.label,
                "groups": " − ".join(groups),
                **_wald(weights, beta, cov),
            }


def _wald(
    weights: NDArray[np.float64], beta: NDArray[np.float64], cov: NDArray[np.float64]
) -> dict[str, float]:
    value, variance = float(weights @ beta), float(weights @ cov @ weights)
    # clustered in two ways, a variance can come out below 0: it then says nothing
    se = variance**0.5 if variance >= 0 else float("nan")
    half = float(stats.norm.ppf(0.975)) * se
    p = float(2 * stats.norm.sf(abs(value) / se)) if se > 0 else float("nan")
    return {"estimate": value, "se": se, "low": value - half, "high": value + half, "p": p}
