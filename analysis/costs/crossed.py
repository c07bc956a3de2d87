"""Bootstraps in which participants and items are drawn at once, for the costs of several conditions together.

A participant's cost of a level is their mean there minus their mean in the intact level, on the scale of the values (log
times: a log ratio); a profile is the mean of these over participants. Each resample draws participants and, independently,
items with replacement (the crossed or "pigeonhole" bootstrap: Owen, 2007, Annals of Applied Statistics 1, 386-411, whose
intervals are on the wide side). Levels share the draws, so that differences and ratios between levels stay paired.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from analysis.measures.resampling import RESAMPLES, Interval, interval, resampled_means
from stimuli.errors import UserError

Array = NDArray[np.float64]

PEOPLE_AND_ITEMS, ITEMS, PEOPLE = "participants and items", "items", "participants"
_CELLS = 2_000_000
"""Resamples x (participants + items) held at a time."""


@dataclass(frozen=True, eq=False)
class Profile:
    """What each level costs against the first one."""

    intact: str  # the level against which costs are measured
    levels: tuple[str, ...]  # without the intact level
    estimate: Array
    draws: Array
    participants: int  # how many the estimates rest on; ``participants`` is 0 where the reader is one model
    items: int
    resampled: str  # what was drawn

    def interval(self, place: int, level: float = 0.95) -> Interval:
        """Return the percentile interval of one level."""
        return interval(self.draws[:, place], level)


def crossed_profile(
    rows: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
    seed: int,
    resamples: int = RESAMPLES,
    *,
    value: str = "value",
) -> Profile:
    """Return the profile of participants, resampling participants and items."""
    rows = rows[rows[factor].isin(levels) & rows[value].notna()]
    if not (rows[factor] == levels[0]).any():
        raise UserError(
            f"no value in {levels[0]!r}, the level against which costs are measured",
            mend="Give the level without a change, and trials that show it.",
        )
    readers, reader_names = pd.factorize(rows["reader"])
    items, item_names = pd.factorize(rows["item"])
    shape = (len(reader_names), len(item_names))
    sums, counts = [], []
    for level in levels:
        own = (rows[factor] == level).to_numpy()
        places = (readers[own], items[own])
        data = rows[value].to_numpy(dtype=float)[own]
        sums.append(sparse.coo_matrix((data, places), shape=shape).tocsr())
        counts.append(sparse.coo_matrix((np.ones(len(data)), places), shape=shape).tocsr())
    whole = _of_weights(sums, counts, np.ones((1, shape[0])), np.ones((1, shape[1])))[0]
    if min(shape) < 2:
        nothing = np.full((resamples, len(levels) - 1), np.nan)
        return Profile(levels[0], levels[1:], whole, nothing, *shape, PEOPLE_AND_ITEMS)
    random = np.random.default_rng(seed)
    at_once = max(1, _CELLS // sum(shape))
    drawn = []
    for start in range(0, resamples, at_once):
        many = min(at_once, resamples - start)
        people, things = (_weights(random, units, many) for units in shape)
        drawn.append(_of_weights(sums, counts, people, things))
    return Profile(levels[0], levels[1:], whole, np.concatenate(drawn), *shape, PEOPLE_AND_ITEMS)


def paired_profile(
    rows: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
    seed: int,
    resamples: int = RESAMPLES,
    *,
    value: str = "value",
) -> Profile:
    """Return the profile of one model, whose items are their own controls; items are resampled."""
    rows = rows[rows[factor].isin(levels) & rows[value].notna()]
    means = rows.pivot_table(index="item", columns=factor, values=value, aggfunc="mean", observed=True)
    table = means.reindex(columns=list(levels)).to_numpy(dtype=float)
    differences = table[:, 1:] - table[:, :1]
    usable = differences[np.isfinite(differences).any(axis=1)]
    if not len(usable):
        raise UserError(
            f"no item has a value both in {levels[0]!r} and in another level",
            mend="Give the level without a change, and items that are shown in several levels.",
        )
    present = np.isfinite(usable)
    with np.errstate(invalid="ignore"):
        whole = np.where(present, usable, 0.0).sum(axis=0) / present.sum(axis=0)
    if len(usable) < 2:
        nothing = np.full((resamples, len(levels) - 1), np.nan)
        return Profile(levels[0], levels[1:], whole, nothing, 0, len(usable), ITEMS)
    return Profile(
        levels[0], levels[1:], whole, resampled_means(usable, seed, resamples), 0, len(usable), ITEMS
    )


def _weights(random: np.random.Generator, units: int, many: int) -> Array:
    return random.multinomial(units, np.full(units, 1.0 / units), size=many).astype(float)


def _of_weights(sums: list[sparse.csr_matrix], counts: list[sparse.csr_matrix], w: Array, v: Array) -> Array:
    """Return the profile under weights of participants ``w`` (resamples, P) and items ``v`` (resamples, I)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.asarray((s @ v.T) / (n @ v.T)).T for s, n in zip(sums, counts, strict=True)]
        found = []
        for own in means[1:]:
            difference = own - means[0]
            present = np.isfinite(difference) * w
            found.append((np.where(present > 0, difference, 0.0) * w).sum(axis=1) / present.sum(axis=1))
    return np.column_stack(found)
