"""How alike two condition × layer maps are, and whether that says anything.

The cosine of two maps laid out as vectors (Mind Scramble: .9994 for SQuAD and BoolQ) is near 1 whatever the maps show: all their
cells are cosines of the same sign, most between .85 and 1, so that two vectors of such numbers hardly differ in direction. What
a map says lies in how its cells *differ*. Two centrings take away what any two maps share:

``layers``
    each layer's mean over conditions is taken away, and the maps are correlated: do the same conditions come out nearer to
    (farther from) the intact text, at the same layers?
``both``
    each condition's mean over layers is taken away as well (and the grand mean added back), which leaves what is particular to
    a condition at a layer: a text operation that is hard everywhere counts no more.

Under the hypothesis that the two maps have nothing to do with each other, the conditions of one could bear their labels in any
order. All orders are tried where there are at most :data:`EXACT_CONDITIONS` conditions, else seeded draws; p is the share of
orders, the observed one counted, whose correlation is at least as large. It cannot be less than 1 in that many orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.inside.patterns import means
from stimuli.errors import UserError

Array = NDArray[np.float64]
Centring = Literal["layers", "both"]

EXACT_CONDITIONS = 7
"""Up to so many conditions all orders are tried: 5,040."""
ORDERS = 9999
"""Orders drawn where there are more."""
SPLITS = 200
"""Random halves of items over which a reliability is averaged."""
FEWEST_CONDITIONS = 3
FLAT = 1e-9
"""Length below which a centred map says nothing: rounding of cosines."""


@dataclass(frozen=True)
class Alike:
    """How alike two maps are."""

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
class Halves:
    """Similarity of the maps of two halves of a model's items: the most that a correlation can reach."""

    items: int
    half: float  # mean correlation of the halves over random splits
    whole: float  # for all items, by Spearman and Brown's formula, 2r / (1 + r)
    cosine: float  # mean cosine of the halves' maps as vectors, as in the paper


def centred(pattern: NDArray[np.floating], centring: Centring = "layers") -> Array:
    """Take away what any two maps share."""
    found = np.asarray(pattern, dtype=float)
    found = found - found.mean(axis=-2, keepdims=True)
    return np.asarray(found - found.mean(axis=-1, keepdims=True) if centring == "both" else found)


def cosine(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Return the cosine of two maps as vectors; nan where one is 0 throughout."""
    a, b = np.asarray(one, dtype=float).ravel(), np.asarray(other, dtype=float).ravel()
    size = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    return float(a @ b) / (size[0] * size[1]) if min(size) > FLAT else float("nan")


def alike(
    one: NDArray[np.floating], other: NDArray[np.floating], seed: int, *, orders: int = ORDERS
) -> Alike:
    """Compare two maps of the same conditions and layers."""
    if one.shape != other.shape or one.ndim != 2 or one.shape[0] < FEWEST_CONDITIONS:
        raise UserError(
            f"maps of shapes {one.shape} and {other.shape}",
            mend=f"Give two maps of the same layers and at least {FEWEST_CONDITIONS} conditions.",
        )
    tried = _orders(len(one), seed, orders)
    r, p = _against_orders(centred(one), centred(other), tried)
    r_both, p_both = _against_orders(centred(one, "both"), centred(other, "both"), tried)
    exact = len(one) <= EXACT_CONDITIONS
    conditions, layers = one.shape
    return Alike(conditions, layers, cosine(one, other), r, p, r_both, p_both, 1.0 / len(tried), exact)


def _against_orders(one: Array, other: Array, orders: NDArray[np.intp]) -> tuple[float, float]:
    """Return the correlation of centred maps and its p; the first order is the observed one."""
    observed = cosine(one, other)
    if not np.isfinite(observed):
        return float("nan"), float("nan")
    products = one @ other.T
    found = products[np.arange(len(one)), orders].sum(axis=1)
    return observed, float((found >= found[0] - 1e-12 * np.abs(products).sum()).mean())


def _orders(many: int, seed: int, drawn: int) -> NDArray[np.intp]:
    """Return orders of so many labels, shape (orders, many), the observed one first."""
    if many <= EXACT_CONDITIONS:
        return _all_orders(many)
    random = np.random.default_rng(seed)
    own = np.arange(many)
    return np.vstack([own, random.permuted(np.tile(own, (drawn, 1)), axis=1)]).astype(np.intp)


@cache
def _all_orders(many: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(many))), dtype=np.intp)


def common(
    parts: Sequence[tuple[Sequence[str], NDArray[np.floating]]],
) -> tuple[tuple[str, ...], list[Array]]:
    """Keep the conditions that all maps have without a gap, in the order of the first."""
    known = [dict(zip(names, np.asarray(cells, dtype=float), strict=True)) for names, cells in parts]
    kept = tuple(
        name for name in parts[0][0] if all(name in rows and np.isfinite(rows[name]).all() for rows in known)
    )
    return kept, [
        np.array([rows[name] for name in kept]).reshape(len(kept), cells.shape[1])
        for rows, (_, cells) in zip(known, parts, strict=True)
    ]


def at_depths(pattern: NDArray[np.floating], layers: int) -> Array:
    """Return a map at relative depths (0 embedding, 1 last block), linear between layers."""
    given = np.asarray(pattern, dtype=float)
    if given.shape[-1] == layers:
        return given
    depth = np.linspace(0.0, given.shape[-1] - 1.0, layers)
    below = np.minimum(depth.astype(int), max(given.shape[-1] - 2, 0))
    above = np.minimum(below + 1, given.shape[-1] - 1)
    share = depth - below
    return np.asarray(given[..., below] * (1 - share) + given[..., above] * share)


def splits(items: int, seed: int, many: int = SPLITS) -> NDArray[np.bool_]:
    """Draw which items are in the first half, shape (many, items); of an odd number the second half has one more."""
    random = np.random.default_rng(seed)
    first = np.arange(items) < items // 2
    return np.asarray(random.permuted(np.tile(first, (many, 1)), axis=1))


def half_maps(of_items: NDArray[np.floating], first: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the maps of both halves of every split, each of shape (splits, conditions, layers); nan where a half has no item."""
    n = len(of_items)
    flat = of_items.reshape(n, -1)
    known = np.isfinite(flat)
    filled = np.where(known, flat, 0.0).astype(np.float64)
    shape = (len(first), *of_items.shape[1:])
    found = []
    for half in (first, ~first):
        weights = half.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(((weights @ filled) / (weights @ known.astype(np.float64))).reshape(shape))
    return found[0], found[1]


def row_correlations(one: Array, other: Array) -> Array:
    """Return the cosine of each pair of centred maps, shape (…, conditions, layers) to (…); nan where one is 0."""
    product = (one * other).sum(axis=(-2, -1))
    a, b = (np.sqrt((cells**2).sum(axis=(-2, -1))) for cells in (one, other))
    known = (a > FLAT) & (b > FLAT)
    return np.asarray(np.divide(product, a * b, out=np.full(product.shape, np.nan), where=known))


def halves(
    of_items: NDArray[np.floating], seed: int, *, centring: Centring = "layers", many: int = SPLITS
) -> Halves:
    """Correlate the maps of random halves of one model's items."""
    own = of_items[:, np.isfinite(means(of_items)).all(axis=1)]
    if len(own) < 4 or own.shape[1] < FEWEST_CONDITIONS:
        return Halves(len(own), float("nan"), float("nan"), float("nan"))
    one, other = half_maps(own, splits(len(own), seed, many))
    r = row_correlations(centred(one, centring), centred(other, centring))
    half = float(np.nanmean(r)) if np.isfinite(r).any() else float("nan")
    raw = row_correlations(one, other)
    return Halves(
        len(own),
        half,
        spearman_brown(half),
        float(np.nanmean(raw)) if np.isfinite(raw).any() else float("nan"),
    )


def spearman_brown(half: float) -> float:
    """Return the reliability of the whole from that of halves, 2r / (1 + r); nan at −1 and below."""
    return 2 * half / (1 + half) if half > -1 else float("nan")
