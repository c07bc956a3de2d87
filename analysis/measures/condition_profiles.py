"""Readers by their condition profiles: how answers or times go up and down over conditions (Mind Scramble, 2024, section 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.answers import failures_as_wrong
from analysis.arrays import Array
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.pattern_similarity import Identified, identified, row_correlations
from analysis.measures.resampling import spearman_brown
from analysis.readers import PARTICIPANT_KINDS
from stimuli.seeds import stable_seed

FEWEST_CONDITIONS = 3
FEWEST_PEOPLE = 5


@dataclass(frozen=True, eq=False)
class Profiles:
    """Means of readers in conditions."""

    measure: str  # ``correct`` (share right, failures as wrong) or ``rt`` (mean log time of valid answers)
    group: str  # reader group of the people
    conditions: tuple[str, ...]
    people: tuple[str, ...]
    whole: Array  # shape (people, conditions): over all items of a person, and over those of each half
    first: Array  # shape (people, conditions)
    second: Array  # shape (people, conditions)
    left_out: int  # people who do not have a trial in each half of each condition
    models: tuple[str, ...]
    of_models: Array


@dataclass(frozen=True, eq=False)
class PeopleTold:
    """Reliability and typicality of the profiles of people and models."""

    identified: Identified
    whole: float  # reliability of whole profiles' shape, by Spearman and Brown's formula
    typical: Array  # shape (people,): correlation of each person's profile with the mean of the others
    of_models: Array  # shape (models,): correlation of each model's profile with the mean of all people
    below: Array  # shape (models,): share of people whose correlation is below the model's


@dataclass(frozen=True, eq=False)
class Plane:
    """People's profiles in two dimensions, and where models lie in them."""

    people: Array  # shape (people, 2)
    models: Array  # shape (models, 2)
    shares: tuple[float, float]  # of the variance between people


def profiles(
    trials: pd.DataFrame, factor: str, levels: list[str], measure: str, study: str
) -> Profiles | None:
    """Average people and models in each condition of a factor; None with too few of any."""
    rows = _measured(trials, factor, measure)
    people = rows[rows["reader_kind"].isin(PARTICIPANT_KINDS)]
    for group, rows_of_group in people.groupby(GROUP, sort=False):
        shown = [level for level in levels if (rows_of_group[factor] == level).any()]
        if len(shown) < FEWEST_CONDITIONS:
            continue
        seeds = {
            item: stable_seed(study, "halves of a person", str(item))
            for item in rows_of_group["item_id"].unique()
        }
        rows_of_group = rows_of_group.assign(_order=rows_of_group["item_id"].map(seeds)).sort_values(
            "_order", kind="stable"
        )
        half = rows_of_group.groupby(["reader", factor], observed=True).cumcount() % 2
        tables = [
            _means(rows_of_group[mask], "reader", factor, shown) for mask in (half >= 0, half == 0, half == 1)
        ]
        whole, first, second = (table.reindex(tables[0].index) for table in tables)
        complete = (first.notna() & second.notna()).all(axis=1)
        if complete.sum() < FEWEST_PEOPLE:
            continue
        models = rows[(rows["reader_kind"] == "model")] if measure == "correct" else rows.iloc[:0]
        of_models = _means(models, GROUP, factor, shown).dropna()
        return Profiles(
            measure,
            str(group),
            tuple(shown),
            tuple(map(str, whole.index[complete])),
            whole[complete].to_numpy(dtype=float),
            first[complete].to_numpy(dtype=float),
            second[complete].to_numpy(dtype=float),
            int((~complete).sum()),
            tuple(map(str, of_models.index)),
            of_models.to_numpy(dtype=float).reshape(-1, len(shown)),
        )
    return None


def _means(rows: pd.DataFrame, unit: str, factor: str, levels: list[str]) -> pd.DataFrame:
    cells = rows.groupby([unit, factor], observed=True)["value"].mean()
    return cells.unstack().reindex(columns=levels)


def _measured(trials: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    rows = asked(trials)
    rows = rows[rows[factor].notna()]
    if measure == "correct":
        return rows.assign(value=failures_as_wrong(rows).astype(float))
    rows = rows[(rows["response_status"] == "valid") & (rows["rt"] > 0) & rows["rt_excluded"].isna()]
    return rows.assign(value=np.log(rows["rt"].astype(float)))


def _shapes(rows: Array) -> Array:
    """Return profiles without their own means, shape (readers, 1, conditions)."""
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))[:, None]


def told_of(measured: Profiles, study: str) -> PeopleTold:
    """Return whether profiles are people's own, and where models lie among them."""
    first, second = (_shapes(half - half.mean(axis=0)) for half in (measured.first, measured.second))
    matched = identified((first, second), stable_seed(study, "profiles", measured.measure))
    others = (measured.whole.sum(axis=0) - measured.whole) / (len(measured.people) - 1)
    typical = _row_correlations(measured.whole, others)
    of_models = _row_correlations(
        measured.of_models, np.broadcast_to(measured.whole.mean(axis=0), measured.of_models.shape)
    )
    finite = typical[np.isfinite(typical)]
    share_below = np.array(
        [(finite < model).mean() if np.isfinite(model) and len(finite) else np.nan for model in of_models]
    )
    return PeopleTold(
        matched, float(spearman_brown(np.array(matched.within))), typical, of_models, share_below
    )


def plane(measured: Profiles) -> Plane:
    """Place people's profiles on the first two principal components of the differences between people, and add models."""
    centre = measured.whole.mean(axis=0)
    _, sizes, axes = np.linalg.svd(measured.whole - centre, full_matrices=False)
    total = float((sizes**2).sum()) or 1.0
    axes = axes[:2] * np.where(axes[:2].sum(axis=1) < 0, -1.0, 1.0)[:, None]
    shares = (float(sizes[0] ** 2 / total), float(sizes[1] ** 2 / total))
    return Plane((measured.whole - centre) @ axes.T, (measured.of_models - centre) @ axes.T, shares)


def _row_correlations(array: Array, other: Array) -> Array:
    return row_correlations(_shapes(array), _shapes(other))
