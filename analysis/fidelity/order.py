"""Whether conditions come in the same order for people and for a model.

Kendall's tau-b and Spearman's rho of condition profiles. With few conditions only few values of tau are possible and no data
could make it significant (of three conditions the same order comes about by chance in one of six cases), so the table says how
many there are and in which share of resamples the whole order is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.costs.ratios import CostProfile
from analysis.fidelity.items import item_values
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]


def accuracy_profiles(tables: Tables, factor: str, *, resamples: int = RESAMPLES) -> list[CostProfile]:
    """Return what each level costs every reader group in accuracy (shares lost, failures wrong)."""
    return trial_profiles(tables, factor, "correct", resamples=resamples)


def trial_profiles(
    tables: Tables, factor: str, measure: str, *, resamples: int = RESAMPLES
) -> list[CostProfile]:
    """Return what each level costs every reader group that has a measure; more is worse."""
    wanted = tables.levels_of(factor)
    rows = item_values(tables.trials, factor, measure).rename(columns={"unit": "reader"})
    if measure in ("correct", "margin"):
        rows["value"] = -rows["value"]
    study = str(tables.dictionary["study"])
    about = "accuracy" if measure == "correct" else measure
    found = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        levels = tuple(level for level in wanted if (own[factor] == level).any())
        if len(levels) < 2 or levels[0] != wanted[0]:
            continue
        kind = str(own["reader_kind"].iloc[0])
        make = crossed_profile if kind in PARTICIPANT_KINDS else paired_profile
        try:
            profile = make(own, factor, levels, stable_seed(study, about, group), resamples)
        except UserError:  # no item in two levels: nothing to compare
            continue
        found.append(CostProfile(group, kind, measure, profile, 0))
    return found


def rank_agreement(people: CostProfile, models: Sequence[CostProfile]) -> pd.DataFrame:
    """Compare the order of conditions, the intact one included, between people and each model."""
    rows = []
    for model in models:
        common = [level for level in people.profile.levels if level in model.profile.levels]
        if len(common) < 2 or people.profile.intact != model.profile.intact:
            raise UserError(
                f"{people.group} and {model.group} have {len(common) + 1} conditions in common",
                mend="An order needs three conditions.",
            )
        own, other = _with_intact(people.profile, common), _with_intact(model.profile, common)
        tau, rho = kendall(own, other), spearman(own, other)
        signs = _signs(own) == _signs(other)
        ends = [interval(draws[1:]) for draws in (tau, rho)]
        known = np.isfinite(own[1:]).all(axis=1) & np.isfinite(other[1:]).all(axis=1)
        rows.append(
            {
                "people": people.group,
                "measure": people.measure,
                "model": model.group,
                "model_measure": model.measure,
                "levels": len(common) + 1,
                "tau": float(tau[0]),
                "tau_low": ends[0].low,
                "tau_high": ends[0].high,
                "rho": float(rho[0]),
                "rho_low": ends[1].low,
                "rho_high": ends[1].high,
                "same_order": float(signs.all(axis=1)[1:][known].mean()) if known.any() else float("nan"),
                "by_chance": 1.0 / factorial(len(common) + 1),
            }
        )
    return pd.DataFrame(rows)


def _with_intact(profile: Profile, common: list[str]) -> Array:
    """Return the estimate and its draws with the intact level at 0, shape (1 + resamples, 1 + levels)."""
    places = [profile.levels.index(level) for level in common]
    whole = np.vstack([profile.estimate[None, places], profile.draws[:, places]])
    return np.column_stack([np.zeros(len(whole)), whole])


def _signs(values: Array) -> Array:
    first, second = np.triu_indices(values.shape[1], 1)
    return np.sign(values[:, first] - values[:, second])


def kendall(one: Array, other: Array) -> Array:
    """Return Kendall's tau-b of paired rows, shapes (rows, conditions); nan where a row has only ties or a nan."""
    x, y = _signs(one), _signs(other)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


def spearman(one: Array, other: Array) -> Array:
    """Return Spearman's rho of paired rows, shapes (rows, conditions); nan where a row has only ties or a nan."""
    ranks = []
    for side in (one, other):
        rank = stats.rankdata(side, axis=1)
        rank[~np.isfinite(side).all(axis=1)] = np.nan
        ranks.append(rank - rank.mean(axis=1, keepdims=True))
    x, y = ranks
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))
