"""How much a model's answers depend on how it was asked: prompt wording, label map, order of choices, replicate, item.

Where a source has five levels or more its variance is estimated, as a random effect of the model's own answers; a label map has
two levels, which are no sample of anything, so every source also has the range of its levels' means and the range that would
come about if answers were dealt to levels by chance within the same item and condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong, judged
from analysis.estimation import HUGE, Climb, climb
from analysis.random_structure import VARIANTS_FOR_A_VARIANCE
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

SOURCES = {
    "prompt": "prompt_variant",
    "label map": "label_map",
    "choice order": "choice_order",
    "session": "session_id",
    "item": "item",
}
LATENT = float(np.pi**2 / 3)
"""Variance of the logistic distribution: that of an answer on the scale of log odds."""


MOST_ANSWERS = 20_000
"""Answers of one model above which whole items are drawn."""


@dataclass(frozen=True)
class Asked:
    """How each model's answers vary with how it was asked."""

    table: pd.DataFrame  # a row for each model and source
    models: Mapping[str, Climb]
    remarks: tuple[str, ...]  # what was drawn, in sentences


def asked_otherwise(tables: Tables, factor: str, *, permutations: int = 500) -> Asked:
    """Split the variation of each model's right answers by where it comes from; beyond 20,000 answers whole items are drawn."""
    if factor not in tables.factors:
        raise unknown_name("factor:", factor, tables.factors)
    trials = tables.trials
    used = trials["excluded_reason"].isna() & ~trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used &= judged(trials) & trials[factor].notna() & trials["item_id"].notna()
    rows = trials[used].copy()
    if rows.empty:
        raise UserError("no model answered", mend="Run a model first: wrods run.")
    rows["right"] = failures_as_wrong(rows)
    rows["item"] = item_names(rows)
    study, found = str(tables.dictionary["study"]), []
    models: dict[str, Climb] = {}
    remarks: list[str] = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        if len(own) > MOST_ANSWERS:
            items = sorted(own["item"].unique(), key=lambda item: stable_seed(study, "asked otherwise", item))
            many = max(2, int(len(items) * MOST_ANSWERS / len(own)))
            own = own[own["item"].isin(items[:many])]
            remarks.append(f"{group}: {many:,} of {len(items):,} items, drawn whole by a stable hash.")
        told, climbed = _of_model(own.reset_index(drop=True), factor, group, study, permutations)
        found += told
        if climbed is not None:
            models[group] = climbed
    return Asked(pd.DataFrame(found, columns=_COLUMNS), models, tuple(remarks))


_COLUMNS = [
    *("reader_group", "source", "levels", "sd", "share", "singular", "lowest", "highest"),
    *("range_points", "range_by_chance", "p"),
]


def _of_model(
    own: pd.DataFrame, factor: str, group: str, study: str, permutations: int
) -> tuple[list[dict[str, object]], Climb | None]:
    levels = {name: int(own[column].nunique()) for name, column in SOURCES.items()}
    varied = {name: SOURCES[name] for name, many in levels.items() if many > 1}
    for name in varied:
        own[f"source_{varied[name]}"] = own[varied[name]].astype(str)
    # sources that name the same groups (one session a prompt) cannot be told apart; the first says it all
    kept: dict[str, str] = {}
    for name, column in varied.items():
        codes = pd.factorize(own[column])[0]
        if levels[name] >= VARIANTS_FOR_A_VARIANCE and not any(
            _same(codes, pd.factorize(own[other])[0]) for other in kept.values()
        ):
            kept[name] = column
    deviation, climbed = _deviations(own, factor, kept)
    singular = None if climbed is None or climbed.fit is None else climbed.fit.singular
    total = sum(sd**2 for sd in deviation.values()) + LATENT
    found: list[dict[str, object]] = []
    for name, column in varied.items():
        codes = pd.factorize(own[column])[0]
        means = _level_means(own["right"].to_numpy(dtype=float), codes, pd.factorize(own[factor])[0])
        ends = means
        if own.groupby(codes)[factor].nunique().min() < own[factor].nunique():
            # means that are set right for conditions that a level lacks are deviations, and can lie beyond 0 and 100%
            plain = own.groupby([codes, factor], observed=True)["right"].mean().groupby(level=0).mean()
            ends = plain.to_numpy(dtype=float)
            means = ends if name == "item" else means
        drawn = np.array([])
        in_one_condition = own.assign(_code=codes).groupby(["item", factor])["_code"].nunique()
        if name != "item" and (in_one_condition > 1).any():
            seed = stable_seed(study, "asked otherwise", group, name)
            drawn = _by_chance(own, factor, codes, np.random.default_rng(seed), permutations)
        sd = deviation.get(name, float("nan"))
        reach, by_chance, p = float(np.nanmax(means) - np.nanmin(means)), float("nan"), float("nan")
        if len(drawn):
            by_chance = 100 * float(drawn.mean())
            p = float((1 + (drawn >= reach - 1e-12).sum()) / (1 + len(drawn)))
        found.append(
            {
                "reader_group": group,
                "source": name,
                "levels": levels[name],
                "sd": sd,
                "share": sd**2 / total,
                "singular": singular,
                "lowest": float(np.nanmin(ends)),
                "highest": float(np.nanmax(ends)),
                "range_points": 100 * reach,
                "range_by_chance": by_chance,
                "p": p,
            }
        )
    return found, climbed if deviation else None


def _same(one: NDArray[np.intp], other: NDArray[np.intp]) -> bool:
    pairs = len(np.unique(np.column_stack([one, other]), axis=0))
    return bool(pairs == one.max() + 1 == other.max() + 1)


def _deviations(
    own: pd.DataFrame, factor: str, kept: dict[str, str]
) -> tuple[dict[str, float], Climb | None]:
    several = own[factor].nunique() > 1
    if not kept or own["right"].nunique() < 2:
        return {}, None
    random = " + ".join(f"(1 | source_{column})" for column in kept.values())
    fixed = f"right ~ {factor}" if several else "right ~ 1"
    done = climb(fixed, [random], own, family="binomial")
    if done.fit is None or not done.fit.converged:
        return {}, None
    by = {one.group: float(one.sd[0]) for one in done.fit.variance}
    if max(by.values()) > HUGE:  # answers alike in every condition: the variance ran away and says nothing
        return {}, done
    return {name: by[f"source_{column}"] for name, column in kept.items()}, done


def _level_means(right: Array, codes: NDArray[np.intp], conditions: NDArray[np.intp]) -> Array:
    """Average each level's answers over conditions, each condition weighted alike; shape (levels,)."""
    many = int(conditions.max()) + 1
    cells = codes * many + conditions
    size = (int(codes.max()) + 1) * many
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(cells, right, minlength=size) / np.bincount(cells, minlength=size)
    table = means.reshape(-1, many)
    # a level that lacks a condition is compared in those that it has, as deviations from the condition's mean
    base = np.bincount(conditions, right, minlength=many) / np.bincount(conditions, minlength=many)
    return np.asarray(base.mean() + np.nanmean(table - base, axis=1))


def _by_chance(
    own: pd.DataFrame, factor: str, codes: NDArray[np.intp], random: np.random.Generator, permutations: int
) -> Array:
    """Deal answers to levels anew within item and condition; shape (permutations,)."""
    conditions, right = pd.factorize(own[factor])[0], own["right"].to_numpy(dtype=float)
    cell = own.groupby(["item", factor], sort=False).ngroup().to_numpy()
    order = np.argsort(cell, kind="stable")
    drawn = np.empty(permutations)
    for n in range(permutations):
        shuffled = np.lexsort((random.random(len(own)), cell))
        mixed = np.empty_like(right)
        mixed[order] = right[shuffled]
        means = _level_means(mixed, codes, conditions)
        drawn[n] = np.nanmax(means) - np.nanmin(means)
    return drawn
