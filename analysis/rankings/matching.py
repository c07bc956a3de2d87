"""Whether error patterns tell readers apart: one half of a reader's answers is sought by the other half among all readers.

Each reader's answers are dealt into two halves. The first half of a reader is matched to the nearest second half among all readers
(nearest neighbour, mean squared distance), and the other way round; the share that finds its own reader is held against relabelled
second halves. Before, the mean of each item in each condition over all readers is taken away, so that neither items nor conditions
make readers look alike, and labels are exchanged only between readers who met the same list. There is one dealing, fixed by the
study's seed: an average over several would not be exchangeable with relabelled halves, and its p too small or too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from analysis.rankings.vectors import ErrorVectors
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]
Places = NDArray[np.intp]

PERMUTATIONS = 5000
_COUNTED = 5040
CELLS, CONDITIONS = "the same items", "means of conditions"
PROFILE, SHAPE = "accuracy and pattern", "pattern alone"


@dataclass(frozen=True)
class Matching:
    """How well halves find their own reader."""

    readers: int
    features: str
    of: str  # `PROFILE`, or `SHAPE`: each reader's overall accuracy is taken away first
    accuracy: float  # share of halves that find their own reader (both ways); ties count by their share
    chance: float  # the mean of the same share over relabelled halves
    p: float  # one-sided: share of relabellings with at least that accuracy
    smallest_p: float  # the smallest p that so many relabellings allow


def matchings(vectors: ErrorVectors, groups: Sequence[str], study: str = "") -> list[Matching]:
    """Match halves of readers: of the participants of one group, or of several models."""
    units = vectors.units_of(*groups)
    lists = vectors.strata[units]
    if len(groups) == 1:
        company = np.bincount(lists, minlength=1)[lists] if len(units) else lists
        units, lists = units[company > 1], lists[company > 1]
        owner, strata = np.arange(len(units)), lists
    else:
        owner = np.array([list(groups).index(vectors.groups[unit]) for unit in units], dtype=np.intp)
        strata = np.zeros(len(np.unique(owner)), dtype=np.intp)
    readers = np.unique(owner)
    if len(readers) < 2:
        raise UserError(
            f"{len(readers)} readers of {', '.join(groups)} cannot be told apart",
            mend="Give two or more who met the same items.",
        )
    right, met = vectors.right[units].toarray(), vectors.met[units].toarray()
    by_session = all(_meets_again(met[owner == one]) for one in readers)
    random = np.random.default_rng(stable_seed(study, "halves of readers", *groups))
    residual = _residuals(right, met)
    levels = int(vectors.levels.max()) + 1
    found = []
    wanted = [PROFILE, SHAPE] if by_session or levels > 1 else [PROFILE]
    shuffles = _relabellings(strata, random)
    if by_session:
        halves = _halves_of_sessions(residual, met, owner, lists, readers, random)
    else:
        halves = _halves_of_items(residual, met, owner, readers, vectors.items, vectors.levels, random)
    for of in wanted:
        one, other = (_without_mean(half) if of == SHAPE else half for half in halves)
        share = _shares(one, other, shuffles)
        drawn = share[1:]
        counted = _is_counted(strata)
        above = int((drawn >= share[0] - 1e-9).sum())
        p = above / len(drawn) if counted else (1 + above) / (1 + len(drawn))
        best = 1 / len(drawn) if counted else 1 / (1 + len(drawn))
        features = CELLS if by_session else CONDITIONS
        found.append(Matching(len(readers), features, of, float(share[0]), float(drawn.mean()), p, best))
    return found


def _meets_again(met: Array) -> bool:
    """Whether most cells of a reader were answered in two sessions."""
    return bool(((met > 0).sum(axis=0) > 1).sum() * 2 > (met.sum(axis=0) > 0).sum())


def _residuals(right: Array, met: Array) -> Array:
    """Return sums of answers minus the mean of their cell over all readers."""
    many = met.sum(axis=0)
    mean = np.divide(right.sum(axis=0), many, out=np.zeros_like(many), where=many > 0)
    return np.asarray(right - met * mean)


def _halves_of_sessions(
    residual: Array, met: Array, owner: Places, lists: Places, readers: Places, random: np.random.Generator
) -> list[Array]:
    """Deal each reader's sessions of each list; features are cells."""
    sums = [[np.zeros((len(readers), residual.shape[1])) for _ in range(2)] for _ in range(2)]
    for place, reader in enumerate(readers):
        for one in np.unique(lists[owner == reader]):
            own = random.permutation(np.flatnonzero((owner == reader) & (lists == one)))
            for half, part in enumerate((own[::2], own[1::2])):
                sums[half][0][place] += residual[part].sum(axis=0)
                sums[half][1][place] += met[part].sum(axis=0)
    return [_mean(*one) for one in sums]


def _halves_of_items(
    residual: Array,
    met: Array,
    owner: Places,
    readers: Places,
    items: Places,
    levels: Places,
    random: np.random.Generator,
) -> list[Array]:
    """Deal items, the same way for all readers; features are means of residuals in each level."""
    many = int(items.max()) + 1
    first = random.permutation(many) < many / 2
    to_level = np.eye(int(levels.max()) + 1)[levels]
    halves = []
    for half in (first[items], ~first[items]):
        sums = np.vstack([(residual[owner == one].sum(axis=0) * half) @ to_level for one in readers])
        counts = np.vstack([(met[owner == one].sum(axis=0) * half) @ to_level for one in readers])
        halves.append(_mean(sums, counts))
    return halves


def _mean(sums: Array, counts: Array) -> Array:
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _without_mean(values: Array) -> Array:
    known = np.isfinite(values)
    many = np.maximum(known.sum(axis=1, keepdims=True), 1)
    return np.asarray(values - np.where(known, values, 0.0).sum(axis=1, keepdims=True) / many)


def _distances(one: Array, other: Array) -> Array:
    """Return mean squared distances over features that both have, shape (readers, readers); inf where they share none."""
    has, also = np.isfinite(one).astype(float), np.isfinite(other).astype(float)
    x, y = np.nan_to_num(one), np.nan_to_num(other)
    shared = has @ also.T
    squares = (x**2) @ also.T + has @ (y**2).T - 2 * x @ y.T
    return np.asarray(np.divide(squares, shared, out=np.full_like(shared, np.inf), where=shared > 0))


def _shares(one: Array, other: Array, shuffles: Places) -> Array:
    """Return the share that finds itself, as dealt and under each relabelling; shape (1 + relabellings,)."""
    found = np.zeros(len(shuffles) + 1)
    distance = _distances(one, other)
    rows = np.arange(len(distance))
    for table in (distance, distance.T):
        nearest = table <= table.min(axis=1, keepdims=True) + 1e-12
        credit = nearest / nearest.sum(axis=1, keepdims=True)
        found[0] += credit[rows, rows].mean() / 2
        found[1:] += credit[rows[None, :], shuffles].mean(axis=1) / 2
    return found


def _is_counted(strata: Places) -> bool:
    return len(np.unique(strata)) == 1 and factorial(min(len(strata), 20)) <= _COUNTED


def _relabellings(strata: Places, random: np.random.Generator) -> Places:
    """Return orders of readers that stay within strata: all of few readers, 5,000 drawn ones otherwise."""
    many = len(strata)
    if _is_counted(strata):
        return np.array(list(permutations(range(many))), dtype=np.intp)
    found = np.tile(np.arange(many), (PERMUTATIONS, 1))
    for stratum in np.unique(strata):
        own = np.flatnonzero(strata == stratum)
        found[:, own] = random.permuted(found[:, own], axis=1)
    return found
