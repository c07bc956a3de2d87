"""Cholesky factors where random effects fall into groups that never meet: an item's own, say, in a study of models alone.

Factors that are crossed within items (item × condition, item × model) meet each other item by item only. Held densely their
matrix grows with the square of all items; sorted by connected component it is block-diagonal, with a border for factors that
tie all groups together (participants, wordings) and are better kept to the end. Blocks are padded to the largest one by columns
of the identity, so that ``elimination`` factors them as it does any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEW = 200
"""Columns that are held densely without a thought."""
MOST_BORDERS = 2
"""Factors that are kept to the end, at most."""
SMALL_BLOCKS = 20.0
"""Cost of a product in many small blocks in products of one large matrix."""
MOST_PAIRED = 64
"""Later columns of a block whose pairs are listed; of blocks that meet more, no list is kept."""
TAKEN_OUT = 2.0
"""Cost of a product in a part taken out of one large matrix, likewise."""


@dataclass(frozen=True)
class Pattern:
    """Where a symmetric matrix of later columns is not zero.

    Attributes
    ----------
    blocks : list of (levels, width)
        Factors in the order of the columns.
    block, column : ndarray of int
        Sets of columns that meet one another: block number and column of each membership.
    high, low : ndarray of int
        Pairs that meet directly.
    """

    blocks: Sequence[tuple[int, int]]
    block: Index
    column: Index
    high: Index
    low: Index

    @property
    def order(self) -> int:
        """Number of columns."""
        return sum(m * k for m, k in self.blocks)


@dataclass(frozen=True)
class Sorting:
    """Columns sorted by component, the border last.

    Attributes
    ----------
    many, width : int
        Components, and columns of the largest.
    places : ndarray of int, shape (order,)
        Where each column goes among ``many * width`` padded columns and the border behind them.
    component, border : ndarray of int
        Which component meets which column of the border, sorted.
    rest : int
        Columns of the border.
    """

    many: int
    width: int
    places: Index
    component: Index
    border: Index
    rest: int

    @property
    def cost(self) -> float:
        """Products for a factor and its inverse, in those of a dense matrix."""
        met = np.bincount(self.component, minlength=self.many).astype(float)
        each = np.where(met > MOST_PAIRED, TAKEN_OUT, SMALL_BLOCKS)
        inside = SMALL_BLOCKS * self.many * float(self.width) ** 3 + self.width * float(met @ (each * met))
        return inside + float(self.rest) ** 3


def distinct(keys: Index) -> Index:
    """Sort numbers and keep each once; for many different ones several times as fast as ``numpy.unique``."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(keys) else ordered


def sorting(pattern: Pattern) -> Sorting | None:
    """Choose the border under which components are least work; None where one dense matrix is no more."""
    order = pattern.order
    if order <= FEW:
        return None
    best, least = None, float(order) ** 3
    many = range(len(pattern.blocks))
    for size in range(min(MOST_BORDERS, len(pattern.blocks) - 1) + 1):
        for kept in combinations(many, size):
            found = _sorted(pattern, kept)
            if found.cost < least:
                best, least = found, found.cost
    return best


def _sorted(pattern: Pattern, kept: tuple[int, ...]) -> Sorting:
    order = pattern.order
    is_border = np.concatenate([np.full(m * k, f in kept) for f, (m, k) in enumerate(pattern.blocks)])
    # sets of columns are nodes of the graph too, behind the columns
    sets = int(pattern.block.max()) + 1 if len(pattern.block) else 0
    ends = np.concatenate([pattern.column, pattern.high])
    others = np.concatenate([order + pattern.block, pattern.low])
    joins = ~is_border[ends] & ~is_border[np.where(others < order, others, ends)]
    graph = sparse.coo_array(
        (np.ones(int(joins.sum())), (ends[joins], others[joins])), shape=(order + sets, order + sets)
    )
    _, label = csgraph.connected_components(graph, directed=False)
    own = np.flatnonzero(~is_border)
    numbers, component = np.unique(label[own], return_inverse=True)
    sizes = np.bincount(component, minlength=len(numbers))
    width = int(sizes.max(initial=1))
    within = np.empty(len(own), dtype=np.intp)
    by_component = np.argsort(component, kind="stable")
    within[by_component] = np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(order, dtype=np.intp)
    places[own] = component * width + within
    border = np.flatnonzero(is_border)
    places[border] = len(numbers) * width + np.arange(len(border))
    number_of = np.full(order + sets, -1, dtype=np.intp)
    number_of[own] = component
    known = np.isin(label[order:], numbers)
    number_of[order:][known] = np.searchsorted(numbers, label[order:][known])
    pairs = np.concatenate(
        [
            np.stack([number_of[others], ends])[:, is_border[ends]],
            np.stack([number_of[ends], others])[
                :, (others < order) & is_border[np.minimum(others, order - 1)]
            ],
        ],
        axis=1,
    )
    pairs = pairs[:, pairs[0] >= 0]
    met = distinct(pairs[0] * order + places[pairs[1]] - len(numbers) * width)
    return Sorting(len(numbers), width, places, met // order, met % order, len(border))
