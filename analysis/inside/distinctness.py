"""Whether readers can be told apart by their patterns, beyond the noise of the items that these were measured with.

That two models' maps differ says nothing by itself: so do the maps of two halves of one model's items. Here maps of one half of
the items are held against maps of the *other* half, of the same reader and of the others, so that what is between and what is
within stands on the same footing and shares no item. The correlation between two readers divided by the geometric mean of those
within them (Spearman, 1904) is 1 where they differ by noise alone.

Identification follows Finn et al. (2015): a half belongs to the reader whose other half it is most like.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from analysis.inside.pattern_similarity import (
    FLAT,
    SPLITS,
    Centring,
    centred,
    row_correlations,
    splits,
)
from stimuli.errors import UserError

Array = NDArray[np.float64]

SWAPS = 999
"""Random exchanges of two readers, item by item."""
EXACT_READERS = 8
"""Up to so many readers all assignments of halves are tried: 40,320."""
ASSIGNMENTS = 9999
"""Assignments drawn where there are more."""


@dataclass(frozen=True, eq=False)
class Between:
    """How alike the maps of several readers are, each half of the items against the other."""

    r: Array
    corrected: Array
    p: Array
    least_p: float


@dataclass(frozen=True)
class Identified:
    """How many halves are most like the other half of their own reader."""

    readers: int  # readers, and halves that were assigned: two a reader
    halves: int
    matched: int  # of the one split that is tested
    p: float
    least_p: float
    exact: bool  # whether all assignments were tried
    share: float  # share matched, averaged over random splits; it estimates, and is not tested
    chance: float
    within: float
    between: float


def between_readers(
    maps: NDArray[np.floating],
    seed: int,
    *,
    centring: Centring = "layers",
    many: int = SPLITS,
    swaps: int = SWAPS,
) -> Between:
    """Hold the maps of several readers of the same items against each other."""
    _check(maps)
    first = splits(maps.shape[1], seed, many)
    crossed = _crossed(maps, first, centring)
    r = np.nanmean((crossed + crossed.transpose(0, 2, 1)) / 2, axis=0)
    own = np.diag(r)
    reliable = np.where(own > 0, own, np.nan)
    corrected = r / np.sqrt(np.outer(reliable, reliable))
    p = np.full_like(r, np.nan)
    for one, other in combinations(range(len(maps)), 2):
        p[one, other] = p[other, one] = exchanged(
            maps[one], maps[other], seed, centring=centring, swaps=swaps
        )
    return Between(r, corrected, p, 1.0 / (swaps + 1))


def exchanged(
    one: NDArray[np.floating],
    other: NDArray[np.floating],
    seed: int,
    *,
    centring: Centring = "layers",
    swaps: int = SWAPS,
) -> float:
    """Return p of whether two readers' centred maps differ by noise alone: items exchanged at random."""
    a, b = (_of_length_one(centred(maps, centring)) for maps in (one, other))
    total = (a + b).mean(axis=0).ravel() / 2
    difference = ((a - b) / 2).reshape(len(a), -1)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(swaps, len(a)))
    signs = np.vstack([np.ones(len(a)), signs])
    moved = signs @ difference / len(a)
    found = 1 - np.nan_to_num(row_correlations((total + moved)[:, None], (total - moved)[:, None]))
    return float((found >= found[0] - 1e-12).mean())


def identified(
    halves_of: tuple[Array, Array],
    seed: int,
    *,
    over: tuple[Array, Array] | None = None,
    assignments: int = ASSIGNMENTS,
) -> Identified:
    """Assign halves to readers."""
    one, other = (part.reshape(len(part), -1) for part in halves_of)
    readers = len(one)
    table = _table(one, other)
    forward, backward = _nearest(table), _nearest(table.T)
    orders, exact = _assignments(readers, seed, assignments)
    inverse = np.argsort(orders, axis=1)
    hits = (orders == forward).sum(axis=1) + (inverse == backward).sum(axis=1)
    tables = np.array([_table(a, b) for a, b in zip(*over, strict=True)]) if over is not None else table[None]
    shares = [
        np.mean([*(_nearest(t) == np.arange(readers)), *(_nearest(t.T) == np.arange(readers))])
        for t in tables
    ]
    same = np.eye(readers, dtype=bool)
    return Identified(
        readers,
        2 * readers,
        int(hits[0]),
        float((hits >= hits[0]).mean()),
        1.0 / len(orders),
        exact,
        float(np.mean(shares)),
        1.0 / readers,
        _mean(tables[:, same]),
        _mean(tables[:, ~same]),
    )


def identified_models(
    maps: NDArray[np.floating],
    order: NDArray[np.intp],
    seed: int,
    *,
    centring: Centring = "layers",
    many: int = SPLITS,
) -> Identified:
    """Assign halves of items to models."""
    _check(maps)
    first = np.zeros(maps.shape[1], dtype=bool)
    first[order[::2]] = True
    tested = [part[0] for part in _halves(maps, first[None], centring)]
    over = _halves(maps, splits(maps.shape[1], seed, many), centring)
    return identified((tested[0], tested[1]), seed, over=(over[0], over[1]))


def _check(maps: NDArray[np.floating]) -> None:
    if maps.ndim != 4 or maps.shape[1] < 4 or not np.isfinite(maps).all():
        raise UserError(
            f"maps of shape {maps.shape}" + ("" if np.isfinite(maps).all() else " with missing cells"),
            mend="Give maps of at least 4 items that all readers saw in all conditions.",
        )


def _halves(maps: NDArray[np.floating], first: NDArray[np.bool_], centring: Centring) -> tuple[Array, Array]:
    """Return the centred maps of both halves, each of shape (splits, readers, conditions, layers)."""
    flat = np.asarray(maps, dtype=float).reshape(len(maps), maps.shape[1], -1)
    found = []
    for half in (first, ~first):
        weights = half / half.sum(axis=1, keepdims=True)
        cells = np.stack([weights @ own for own in flat], axis=1)
        found.append(centred(cells.reshape(len(first), len(maps), *maps.shape[2:]), centring))
    return found[0], found[1]


def _crossed(maps: NDArray[np.floating], first: NDArray[np.bool_], centring: Centring) -> Array:
    """Return the correlations of one half's maps with the other's, shape (splits, readers, readers)."""
    one, other = _halves(maps, first, centring)
    return np.stack([row_correlations(one, other[:, place, None]) for place in range(len(maps))], axis=2)


def _of_length_one(maps: Array) -> Array:
    size = float(np.linalg.norm(maps.mean(axis=0)))
    return maps / size if size > 0 else maps


def _mean(values: Array) -> float:
    """Return the mean of what is there; nan where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _table(one: Array, other: Array) -> Array:
    """Return the correlation of every first half with every second one; a profile without differences is like none."""
    units = []
    for part in (one, other):
        rows = part.reshape(len(part), -1)
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        units.append(np.divide(rows, size, out=np.full_like(rows, np.nan), where=size > FLAT))
    return np.asarray(units[0] @ units[1].T)


def _nearest(table: Array) -> NDArray[np.intp]:
    """Return the column that each row is most like; −1 where it is like none, or like two as much."""
    known = np.where(np.isfinite(table), table, -np.inf)
    best = known.max(axis=1, keepdims=True)
    alone = ((known >= best - 1e-12).sum(axis=1) == 1) & np.isfinite(best[:, 0])
    return np.where(alone, known.argmax(axis=1), -1).astype(np.intp)


def _assignments(readers: int, seed: int, drawn: int) -> tuple[NDArray[np.intp], bool]:
    if readers <= EXACT_READERS:
        return np.array(list(permutations(range(readers))), dtype=np.intp), True
    random = np.random.default_rng(seed)
    own = np.arange(readers)
    return np.vstack([own, random.permuted(np.tile(own, (drawn, 1)), axis=1)]).astype(np.intp), False
