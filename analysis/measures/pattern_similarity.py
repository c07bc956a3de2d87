"""Similarity of condition × layer maps between halves of items, data sets and models; identification of readers from them.

Identification follows Finn et al. (2015), correction for reliability Spearman (1904); p comes from permuted conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.arrays import Array, Index, Mask
from analysis.measures.resampling import mean_of, means, spearman_brown
from stimuli.errors import UserError

Centring = Literal["layers", "both"]

EXACT_CONDITIONS = 7
"""Largest number of conditions for which all orders (5,040) are tried."""
ORDERS = 9999
"""Orders drawn where there are more."""
SPLITS = 200
"""Random halves of items over which a reliability is averaged."""
FEWEST_CONDITIONS = 3
FLAT = 1e-9
"""Length below which a centred map says nothing: rounding of cosines."""


@dataclass(frozen=True)
class MapSimilarity:
    """The similarity of two maps."""

    conditions: int  # cells that both have
    layers: int
    cosine: float  # of the maps as vectors, as in the paper
    r: float  # correlation with each layer's mean taken away, and its p
    p: float
    r_both: float  # the same with each condition's mean taken away too
    p_both: float
    least_p: float  # the smallest p that these orders can give
    exact: bool  # whether all orders were tried


@dataclass(frozen=True)
class MapReliability:
    """Similarity of the maps of two halves of a model's items: the most that a correlation can reach."""

    items: int
    half: float  # mean correlation of the halves over random splits
    whole: float  # for all items, by Spearman and Brown's formula, 2r / (1 + r)
    cosine: float  # mean cosine of the halves' maps as vectors, as in the paper


def centred(pattern: NDArray[np.floating], centring: Centring = "layers") -> Array:
    """Take away what any two maps share."""
    cells = np.asarray(pattern, dtype=float)
    cells = cells - cells.mean(axis=-2, keepdims=True)
    return np.asarray(cells - cells.mean(axis=-1, keepdims=True) if centring == "both" else cells)


def alike(
    pattern: NDArray[np.floating], other: NDArray[np.floating], seed: int, *, orders: int = ORDERS
) -> MapSimilarity:
    """Compare two maps of the same conditions and layers."""
    if pattern.shape != other.shape or pattern.ndim != 2 or pattern.shape[0] < FEWEST_CONDITIONS:
        raise UserError(
            f"maps of shapes {pattern.shape} and {other.shape}",
            mend=f"Give two maps of the same layers and at least {FEWEST_CONDITIONS} conditions.",
        )
    label_orders = _orders(len(pattern), seed, orders)
    r, p = _against_orders(centred(pattern), centred(other), label_orders)
    r_both, p_both = _against_orders(centred(pattern, "both"), centred(other, "both"), label_orders)
    (conditions, layers), raw = pattern.shape, float(row_correlations(pattern, other))
    return MapSimilarity(
        conditions,
        layers,
        raw,
        r,
        p,
        r_both,
        p_both,
        1.0 / len(label_orders),
        len(pattern) <= EXACT_CONDITIONS,
    )


def _against_orders(array: Array, other: Array, orders: Index) -> tuple[float, float]:
    """Return the correlation of centred maps and its p; the first order is the observed one."""
    observed = float(row_correlations(array, other))
    if not np.isfinite(observed):
        return float("nan"), float("nan")
    products = array @ other.T
    sums = products[np.arange(len(array)), orders].sum(axis=1)
    return observed, float((sums >= sums[0] - 1e-12 * np.abs(products).sum()).mean())


def _orders(n_labels: int, seed: int, drawn: int, most_exact: int = EXACT_CONDITIONS) -> Index:
    """Return orders of so many labels, shape (orders, labels), the observed one first."""
    if n_labels <= most_exact:
        return np.array(list(permutations(range(n_labels))), dtype=np.intp)
    random = np.random.default_rng(seed)
    observed = np.arange(n_labels)
    return np.vstack([observed, random.permuted(np.tile(observed, (drawn, 1)), axis=1)]).astype(np.intp)


def common(
    parts: Sequence[tuple[Sequence[str], NDArray[np.floating]]],
) -> tuple[tuple[str, ...], list[Array]]:
    """Keep the conditions that all maps have without a gap, in the order of the first."""
    complete = [pd.DataFrame(cells, list(names), dtype=float).dropna() for names, cells in parts]
    shared = tuple(name for name in parts[0][0] if all(name in rows.index for rows in complete))
    return shared, [rows.loc[list(shared)].to_numpy() for rows in complete]


def at_depths(pattern: NDArray[np.floating], layers: int) -> Array:
    """Return a map at relative depths (0 embedding, 1 last block), linear between layers."""
    cells = np.asarray(pattern, dtype=float)
    if cells.shape[-1] == layers:
        return cells
    depth = np.linspace(0.0, cells.shape[-1] - 1.0, layers)
    positions = np.arange(cells.shape[-1])
    return np.apply_along_axis(lambda row: np.interp(depth, positions, row), -1, cells)


def splits(items: int, seed: int, n_splits: int = SPLITS) -> Mask:
    """Draw which items are in the first half, shape (splits, items); of an odd number the second half has one more."""
    random = np.random.default_rng(seed)
    first = np.arange(items) < items // 2
    return np.asarray(random.permuted(np.tile(first, (n_splits, 1)), axis=1))


def half_maps(of_items: NDArray[np.floating], first: Mask) -> tuple[Array, Array]:
    """Return the maps of both halves of every split, each of shape (splits, conditions, layers); nan where a half has no item."""
    flat = of_items.reshape(len(of_items), -1).astype(float)
    is_finite = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        left, right = (
            (half @ np.where(is_finite, flat, 0.0)) / (half @ is_finite.astype(float))
            for half in (1.0 * first, 1.0 * ~first)
        )
    shape = (len(first), *of_items.shape[1:])
    return left.reshape(shape), right.reshape(shape)


def row_correlations(maps: NDArray[np.floating], other: NDArray[np.floating]) -> Array:
    """Return the cosine of each pair of maps, shape (…, conditions, layers) to (…); nan where one is 0."""
    maps, other = (np.asarray(cells, dtype=float) for cells in (maps, other))
    product = np.einsum("...cl,...cl->...", maps, other)
    a, b = (np.sqrt((cells**2).sum(axis=(-2, -1))) for cells in (maps, other))
    is_defined = (a > FLAT) & (b > FLAT)
    return np.asarray(np.divide(product, a * b, out=np.full(product.shape, np.nan), where=is_defined))


def cross_correlations(array: Array, other: Array) -> Array:
    """Return the cosine of every map with every other, shape (…, readers, conditions, layers) to (…, readers, readers)."""
    return row_correlations(array[..., :, None, :, :], other[..., None, :, :, :])


def halves(of_items: NDArray[np.floating], seed: int, *, centring: Centring = "layers") -> MapReliability:
    """Correlate the maps of random halves of one model's items."""
    complete = of_items[:, np.isfinite(means(of_items)).all(axis=1)]
    if len(complete) < 4 or complete.shape[1] < FEWEST_CONDITIONS:
        return MapReliability(len(complete), float("nan"), float("nan"), float("nan"))
    left, right = half_maps(complete, splits(len(complete), seed))
    r = row_correlations(centred(left, centring), centred(right, centring))
    half, raw = mean_of(r), mean_of(row_correlations(left, right))
    return MapReliability(len(complete), half, float(spearman_brown(np.array(half))), raw)


SWAPS = 999
"""Random exchanges of two readers, item by item."""
EXACT_READERS = 8
"""Largest number of readers for which all assignments of halves (40,320) are tried."""
ASSIGNMENTS = 9999
"""Assignments drawn where there are more."""


@dataclass(frozen=True, eq=False)
class Between:
    """The similarity of the maps of several readers, each half of the items compared with the other."""

    r: Array
    corrected: Array
    p: Array
    least_p: float


@dataclass(frozen=True)
class Identified:
    """Number of halves that are most similar to the other half of the same reader."""

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


def between_readers(maps: NDArray[np.floating], seed: int, *, centring: Centring = "layers") -> Between:
    """Hold the maps of several readers of the same items against each other."""
    _check(maps)
    crossed = cross_correlations(*_halves(maps, splits(maps.shape[1], seed), centring))
    r = np.nanmean((crossed + crossed.transpose(0, 2, 1)) / 2, axis=0)
    reliabilities = np.diag(r)
    reliable = np.where(reliabilities > 0, reliabilities, np.nan)
    corrected = r / np.sqrt(np.outer(reliable, reliable))
    p = np.full_like(r, np.nan)
    for first, second in combinations(range(len(maps)), 2):
        p[first, second] = p[second, first] = exchanged(maps[first], maps[second], seed, centring=centring)
    return Between(r, corrected, p, 1.0 / (SWAPS + 1))


def exchanged(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    seed: int,
    *,
    centring: Centring = "layers",
    swaps: int = SWAPS,
) -> float:
    """Return p of whether two readers' centred maps differ by noise alone: items exchanged at random."""
    a, b = (centred(maps, centring) for maps in (first, second))
    a, b = (maps / (float(np.linalg.norm(maps.mean(axis=0))) or 1.0) for maps in (a, b))
    total = (a + b).mean(axis=0).ravel() / 2
    difference = ((a - b) / 2).reshape(len(a), -1)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(swaps, len(a)))
    signs = np.vstack([np.ones(len(a)), signs])
    shifted = signs @ difference / len(a)
    distances = 1 - np.nan_to_num(row_correlations((total + shifted)[:, None], (total - shifted)[:, None]))
    return float((distances >= distances[0] - 1e-12).mean())


def identified(
    halves_of: tuple[Array, Array], seed: int, *, over: tuple[Array, Array] | None = None
) -> Identified:
    """Assign halves to readers."""
    left, right = (part.reshape(len(part), 1, -1) for part in halves_of)
    readers = len(left)
    index, is_same = np.arange(readers), np.eye(readers, dtype=bool)
    table = cross_correlations(left, right)
    forward, backward = _nearest(table), _nearest(table.T)
    orders = _orders(readers, seed, ASSIGNMENTS, EXACT_READERS)
    hits = (orders == forward).sum(axis=1) + (np.argsort(orders, axis=1) == backward).sum(axis=1)
    tables = table[None] if over is None else cross_correlations(*over)
    matched = [_nearest(tables) == index, _nearest(tables.transpose(0, 2, 1)) == index]
    return Identified(
        readers,
        2 * readers,
        int(hits[0]),
        float((hits >= hits[0]).mean()),
        1.0 / len(orders),
        readers <= EXACT_READERS,
        float(np.mean(matched)),
        1.0 / readers,
        mean_of(tables[:, is_same]),
        mean_of(tables[:, ~is_same]),
    )


def identified_models(
    maps: NDArray[np.floating], order: Index, seed: int, *, many: int = SPLITS
) -> Identified:
    """Assign halves of items to models."""
    _check(maps)
    first = np.isin(np.arange(maps.shape[1]), order[::2])
    left, right = _halves(maps, first[None], "layers")
    return identified(
        (left[0], right[0]), seed, over=_halves(maps, splits(maps.shape[1], seed, many), "layers")
    )


def _check(maps: NDArray[np.floating]) -> None:
    if maps.ndim != 4 or maps.shape[1] < 4 or not np.isfinite(maps).all():
        raise UserError(
            f"maps of shape {maps.shape}" + ("" if np.isfinite(maps).all() else " with missing cells"),
            mend="Give maps of at least 4 items that all readers saw in all conditions.",
        )


def _halves(maps: NDArray[np.floating], first: Mask, centring: Centring) -> tuple[Array, Array]:
    """Return the centred maps of both halves, each of shape (splits, readers, conditions, layers)."""
    of_readers = zip(*(half_maps(pattern, first) for pattern in maps), strict=True)
    left, right = (centred(np.stack(half, axis=1), centring) for half in of_readers)
    return left, right


def _nearest(table: Array) -> Index:
    """Return the column that each row is most like; −1 where it is like none, or like two as much."""
    values = np.where(np.isfinite(table), table, -np.inf)
    best = values.max(axis=-1, keepdims=True)
    is_unique = ((values >= best - 1e-12).sum(axis=-1) == 1) & np.isfinite(best[..., 0])
    return np.where(is_unique, values.argmax(axis=-1), -1).astype(np.intp)
