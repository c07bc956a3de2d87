"""Differences between conditions that hold for new participants and new items, for people, for a model, and between the two.

Every estimate is a weighted sum of condition means in which each item counts alike. Its variance adds what participants contribute
and what items contribute and subtracts what both contain, the spread of single answers (Clark, 1973; Cameron, Gelbach & Miller, 2011);
degrees of freedom are Satterthwaite's (1946). Nothing is fitted, so a reader with 0% or 100% stays in, and a model's answers are
subtracted from people's item by item. The sums of one condition serve every contrast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Units = Sequence[Any] | NDArray[Any]

Generalized = Literal[
    "participants and items", "items", "participants", "these answers", "participants, items and models"
]

RARE = 3
"""With fewer wrong (or fewer right) answers than this in a condition, people's variance is at least that of so many."""
FEW = 5
"""With fewer items than this that differ between conditions, a model's variance over items is that of one item more."""
SPARSE = 5.0
"""Fewer degrees of freedom of participants or items than this deserve a warning."""


@dataclass(frozen=True)
class EstimateLayout:
    """The participants, items and conditions that the estimates of one question share."""

    conditions: tuple[Any, ...]
    items: tuple[Any, ...]
    participants: tuple[Any, ...] = ()  # empty if no person answered
    span: tuple[float, float] | None = (0.0, 1.0)  # smallest and largest possible answer; None without limits

    @property
    def width(self) -> float:
        """The largest possible difference between two answers; infinite for a measure without limits."""
        return np.inf if self.span is None else self.span[1] - self.span[0]


@dataclass(frozen=True)
class ItemAnswers:
    """People's answers, one for each participant, item and condition; repeated ones are averaged first."""

    layout: EstimateLayout
    value: Floats  # shape (answers,): 0 or 1, a share, or a rating
    participant: Codes  # shape (answers,): places in the layout
    item: Codes
    condition: Codes

    @classmethod
    def of(
        cls,
        value: Units,
        participant: Units,
        item: Units,
        condition: Units,
        layout: EstimateLayout,
    ) -> ItemAnswers:
        """Return the answers of trials, those of one person, item and condition averaged, without conditions not in the layout."""
        p, i, c = (
            _places(names, given)
            for names, given in zip(
                (layout.participants, layout.items, layout.conditions),
                (participant, item, condition),
                strict=True,
            )
        )
        y = np.asarray(value, dtype=float)
        is_known = (p >= 0) & (i >= 0) & (c >= 0)
        p, i, c, y = p[is_known], i[is_known], c[is_known], y[is_known]
        cell = (c * len(layout.participants) + p) * len(layout.items) + i
        cells, first, cell_index, counts = np.unique(
            cell, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(layout, np.bincount(cell_index, y, len(cells)) / counts, p[first], i[first], c[first])


def _places(names: Sequence[Any], given: Units) -> Codes:
    number_of = {name: number for number, name in enumerate(names)}
    return np.array(
        [number_of.get(name, -1) for name in np.asarray(given, dtype=object).tolist()], dtype=np.intp
    )


@dataclass(frozen=True)
class ErrorSums:
    """The error that each participant, item and answer adds to each condition's mean."""

    layout: EstimateLayout
    mean: Floats  # shape (C,): mean of each condition over items; nan where nobody answered
    participants: Floats  # shape (P, C)
    items: Floats  # shape (I, C)
    answers: sparse.csr_array  # shape (P * I, C)
    least: Floats  # shape (C,): the least variance of each mean (``RARE``)
    participant_blocks: NDArray[np.int64]  # shape (P, C): connected block in a condition, or -1
    item_blocks: NDArray[np.int64]  # shape (I, C)
    model: Floats | None = None  # shape (I, C): the model's mean answers; None for people by themselves
    noise: Floats | None = None  # shape (I, C): variances of these means over repeated answers
    lost: int = 0  # people's answers left out, to items without one of the model

    @cached_property
    def _answers_squared(self) -> Floats:
        return np.asarray((self.answers.T @ self.answers).toarray())

    def products(self, other: ErrorSums) -> Floats:
        """Return the covariances between the condition means of two sets of sums, shape (C, C')."""
        is_same = self is other
        between = self._answers_squared if is_same else np.asarray((self.answers.T @ other.answers).toarray())
        return np.asarray(self.participants.T @ other.participants + self.items.T @ other.items - between)

    def turned(self) -> ErrorSums:
        """Return the sums with the other sign: a model minus people."""
        return replace(
            self, mean=-self.mean, participants=-self.participants, items=-self.items, answers=-self.answers
        )

    def minus(self, other: ErrorSums) -> ErrorSums:
        """Return the difference between two groups of people who answered the same items."""
        return ErrorSums(
            self.layout,
            self.mean - other.mean,
            self.participants - other.participants,
            self.items - other.items,
            (self.answers - other.answers).tocsr(),
            self.least + other.least,
            _joined(self.participant_blocks, other.participant_blocks),
            np.maximum(self.item_blocks, other.item_blocks),
        )

    @property
    def of_people(self) -> bool:
        """Whether any person's answers are in it."""
        return bool((self.participant_blocks >= 0).any())


def _joined(blocks: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return blocks with those of another group numbered after one's own."""
    return np.where(other >= 0, other + blocks.max(axis=0, initial=-1) + 1, blocks)


def sums_of_people(
    people: ItemAnswers, model: Floats | None = None, noise: Floats | None = None
) -> ErrorSums:
    """Return the sums of people's answers, or of their distances from a model's means (and their variances), both of shape (I, C)."""
    layout = people.layout
    size = (len(layout.participants), len(layout.items), len(layout.conditions))
    mean, least = np.full(size[2], np.nan), np.zeros(size[2])
    of_participants, of_items = np.zeros((size[0], size[2])), np.zeros((size[1], size[2]))
    blocks_p, blocks_i = (np.full((n_units, size[2]), -1, dtype=np.int64) for n_units in size[:2])
    rows: list[Codes] = []
    columns: list[Codes] = []
    values: list[Floats] = []
    lost = 0
    for c in range(size[2]):
        in_condition = people.condition == c
        y, p, i = people.value[in_condition], people.participant[in_condition], people.item[in_condition]
        if model is not None:
            is_known = np.isfinite(model[i, c])
            if is_known.any():  # a condition without any answer of the model is in no comparison
                lost += int((~is_known).sum())
            y, p, i = y[is_known], p[is_known], i[is_known]
        if not len(y):
            continue
        z = y if model is None else y - model[i, c]
        n_i, n_p = np.bincount(i, minlength=size[1]), np.bincount(p, minlength=size[0])
        weight = 1.0 / (np.count_nonzero(n_i) * n_i[i])  # every item counts alike
        mean[c] = weight @ z
        of_participants[:, c] = np.bincount(p, weight * _apart(z, i, n_i), size[0])
        of_items[:, c] = np.bincount(i, weight * _apart(z, p, n_p), size[1])
        blocks_p[:, c], blocks_i[:, c], n_blocks = _blocks(p, i, n_p, n_i)
        left = _additive_residuals(z, p, i, n_p, n_i)
        df = len(z) - np.count_nonzero(n_p) - np.count_nonzero(n_i) + n_blocks
        if df > 0:
            rows.append(p * size[1] + i)
            columns.append(np.full(len(z), c))
            values.append(weight * left * np.sqrt(len(z) / df))
        least[c] = _least(y, layout.span)
    indices = (
        (np.concatenate(rows), np.concatenate(columns)) if rows else (np.empty(0, int), np.empty(0, int))
    )
    answers = sparse.coo_array(
        (np.concatenate(values) if values else np.empty(0), indices), shape=(size[0] * size[1], size[2])
    )
    return ErrorSums(
        layout, mean, of_participants, of_items, answers.tocsr(), least, blocks_p, blocks_i, model, noise, lost
    )  # fmt: skip


def sums_of_model(layout: EstimateLayout, model: Floats, noise: Floats | None = None) -> ErrorSums:
    """Return the sums of a model's mean answers, shape (I, C), nan where it has none."""
    is_known = np.isfinite(model)
    counts = is_known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(counts > 0, np.nansum(model, axis=0) / counts, np.nan)
        scale = np.where(counts > 1, np.sqrt(counts / (counts - 1.0)) / counts, 1.0)
    conditions = len(layout.conditions)
    people = len(layout.participants)
    return ErrorSums(
        layout,
        mean,
        np.zeros((people, conditions)),
        np.where(is_known, (model - mean) * scale, 0.0),
        sparse.csr_array((people * len(layout.items), conditions)),
        np.zeros(conditions),
        np.full((people, conditions), -1, dtype=np.int64),
        np.where(is_known, 0, -1),
        model,
        noise,
    )


def _apart(z: Floats, unit: Codes, counts: Codes) -> Floats:
    """Return residuals from the means of units, scaled for the df of each mean; an answer alone is taken from the condition's mean."""
    means = np.bincount(unit, z, len(counts)) / np.maximum(counts, 1)
    n = counts[unit]
    r = (z - means[unit]) * np.sqrt(n / np.maximum(n - 1, 1))
    return np.asarray(np.where(n == 1, z - z.mean(), r))


def _additive_residuals(z: Floats, p: Codes, i: Codes, n_p: Codes, n_i: Codes) -> Floats:
    """Return what participants and items, added up, leave of one condition's answers: alternating centring."""
    left: Floats = z - z.mean()
    for _ in range(500):
        previous = left
        left = left - (np.bincount(p, left, len(n_p)) / np.maximum(n_p, 1))[p]
        left = np.asarray(left - (np.bincount(i, left, len(n_i)) / np.maximum(n_i, 1))[i])
        if np.max(np.abs(left - previous)) < 1e-10:
            break
    return left


def _blocks(p: Codes, i: Codes, n_p: Codes, n_i: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the connected blocks that participants and items form in a condition, and how many there are."""
    people, items = len(n_p), len(n_i)
    label = _connected(np.concatenate([p, people + i]).astype(np.intp).tobytes(), people + items)
    present = np.concatenate([n_p, n_i]) > 0
    labels, numbers = np.unique(label[present], return_inverse=True)
    blocks = np.full(people + items, -1, dtype=np.int64)
    blocks[present] = numbers
    return blocks[:people], blocks[people:], len(labels)


@lru_cache(maxsize=16)
def _connected(ends: bytes, size: int) -> NDArray[np.int32]:
    """Return the component of each of ``size`` units from links, first ends then other ends; models share layouts, so cached."""
    first, second = np.frombuffer(ends, dtype=np.intp).reshape(2, -1)
    links = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1])


def _least(y: Floats, span: tuple[float, float] | None) -> float:
    """Return the variance of a mean of which fewer than ``RARE`` answers are not at one end of the scale."""
    if span is None:
        return 0.0
    low, high = span
    if min(np.count_nonzero(y != low), np.count_nonzero(y != high)) >= RARE:
        return 0.0
    q = min(0.5, RARE / len(y))
    return q * (1 - q) / len(y) * (high - low) ** 2


@dataclass(frozen=True)
class VarianceParts:
    """The components of the variance of an estimate."""

    participants: float  # contributions of the two samples, and of single answers, which both contain
    items: float
    answers: float
    one_more: float  # what one more item that differs would add, since few of the model's do
    least: float
    participant_df: float
    item_df: float


@dataclass(frozen=True)
class CrossedEstimate:
    """A contrast of conditions with its standard error and degrees of freedom."""

    weights: Mapping[Any, float]  # of the conditions, without those of weight 0
    value: float  # on the measure's scale; shares lie between 0 and 1
    se: float
    df: float
    furthest: float  # the largest value that the contrast can have
    parts: VarianceParts
    sums: ErrorSums = field(repr=False)  # what it was computed from
    to: Generalized = "participants and items"

    @property
    def t(self) -> float:
        """The value in standard errors; infinite for a difference that is known exactly."""
        if self.se > 0:
            return self.value / self.se
        return float(np.copysign(np.inf, self.value)) if self.value else 0.0

    def p(self, side: int = 0) -> float:
        """Return the p value: two-sided, or of a difference above (1) or below (-1) zero."""
        if side == 0:
            return float(2 * stats.t.sf(abs(self.t), self.df))
        return float(stats.t.sf(side * self.t, self.df))

    def interval(self, level: float = 0.95, side: int = 0) -> tuple[float, float]:
        """Return the interval that belongs to :meth:`p`, within what is possible; that of a side has one finite end."""
        reach = float(stats.t.isf((1 - level) / (2 if side == 0 else 1), self.df)) * self.se
        low = -np.inf if side < 0 else max(self.value - reach, -self.furthest)
        high = np.inf if side > 0 else min(self.value + reach, self.furthest)
        return low, high

    def equivalence_p(self, bound: float) -> float:
        """Return the larger p of two one-sided tests against plus and minus a bound (Schuirmann, 1987)."""
        if self.se == 0:
            return float(abs(self.value) >= bound)
        return float(stats.t.sf((bound - abs(self.value)) / self.se, self.df))

    @property
    def items_of_model(self) -> int:
        """The number of items that a model answered in every condition of the contrast."""
        used = [self.sums.layout.conditions.index(name) for name in self.weights]
        return 0 if self.sums.model is None else int(np.isfinite(self.sums.model[:, used]).all(axis=1).sum())

    @property
    def few_units(self) -> bool:
        """Whether participants or items are too few for its degrees of freedom to be trusted."""
        dfs = [self.parts.item_df] if self.to != "participants" else []
        dfs += [self.parts.participant_df] if self.sums.of_people else []
        return min(dfs, default=np.inf) < SPARSE


def estimate(
    sums: ErrorSums, weights: Mapping[Any, float], *, fixed_items: bool = False
) -> CrossedEstimate | None:
    """Estimate a contrast of conditions; None if a condition has no answer, or if a single model answered only one item."""
    layout = sums.layout
    weights = {name: float(w) for name, w in weights.items() if w != 0}
    if not weights or not set(weights) <= set(layout.conditions):
        return None
    w = np.array([weights.get(name, 0.0) for name in layout.conditions])
    used = w != 0
    if not np.isfinite(sums.mean[used]).all():
        return None
    answers = float(w @ sums._answers_squared @ w)
    v_p, df_p = _over_units((sums.participants @ w), sums.participant_blocks[:, used])
    v_i, df_i = _over_units((sums.items @ w), sums.item_blocks[:, used])
    extra = 0.0 if sums.model is None else _one_more(sums.model[:, used], w[used], layout.width)
    least = float((w[used] ** 2) @ sums.least[used])
    parts = VarianceParts(v_p, v_i, answers, extra, least, df_p, df_i)
    value = float(w[used] @ sums.mean[used])
    # of shares between 0 and 1 a contrast reaches half the sum of its weights' sizes, a mean the end of the scale
    sides = 2 if sums.model is not None and sums.of_people else 1
    sized = float(np.abs(w).sum()) * layout.width
    furthest = sides * sized / 2 if abs(w.sum()) < 1e-9 else sized

    def result(variance: float, df: float, to: Generalized) -> CrossedEstimate:
        return CrossedEstimate(weights, value, float(np.sqrt(variance)), df, furthest, parts, sums, to)

    if fixed_items:
        repeated = _repeated(sums, w)
        if not sums.of_people:
            return result(repeated, np.inf, "these answers")
        return result(max(v_p, least) + repeated, df_p, "participants")
    v_items = v_i + extra
    if not sums.of_people:
        one_item = (sums.item_blocks[:, used] >= 0).sum(axis=0).min() < 2
        return None if one_item else result(v_items, df_i, "items")
    if int((sums.participant_blocks[:, used] >= 0).any(axis=1).sum()) == 1:  # one person
        return result(max(v_items, least), df_i, "items")
    variance = max(v_p + v_items - answers, v_p, v_items, least)
    denominator = v_p**2 / df_p + v_items**2 / df_i
    df = variance**2 / denominator if denominator > 0 else min(df_p, df_i)
    return result(variance, float(np.clip(df, min(df_p, df_i), df_p + df_i)), "participants and items")


def _over_units(u: Floats, blocks: NDArray[np.int64]) -> tuple[float, float]:
    """Return the sum of squares of what units add, shape (units,), and its df; groups in other conditions have their own (Welch)."""
    groups = _parted(np.ascontiguousarray(blocks, dtype=np.int64).tobytes(), blocks.shape[1])
    if not groups:
        return 0.0, 1.0
    squares = [float(u[members] @ u[members]) for members, _ in groups]
    total, freedoms = sum(squares), sum(df for _, df in groups)
    denominator = sum(square**2 / df for square, (_, df) in zip(squares, groups, strict=True))
    return total, (total**2 / denominator if denominator > 0 else freedoms)


@lru_cache(maxsize=16)
def _parted(blocks: bytes, conditions: int) -> tuple[tuple[NDArray[np.bool_], float], ...]:
    """Return the groups of units with separate variances (:func:`_over_units`), each with its degrees of freedom."""
    table = np.frombuffer(blocks, dtype=np.int64).reshape(-1, conditions)
    present = (table >= 0).any(axis=1)
    if not present.any():
        return ()
    own_blocks = table[present]
    units = len(own_blocks)
    width = int(own_blocks.max()) + 1
    rows, columns = np.nonzero(own_blocks >= 0)
    stratum = columns * width + own_blocks[rows, columns]
    labels = _connected(np.concatenate([rows, units + stratum]).tobytes(), units + conditions * width)[:units]
    component = np.unique(labels, return_inverse=True)[1]
    shown = np.zeros((int(component.max()) + 1, conditions), dtype=bool)
    shown[component[rows], columns] = True
    group = np.unique(shown, axis=0, return_inverse=True)[1].reshape(-1)
    groups = []
    for g in range(int(group.max()) + 1):
        in_group = group[component] == g
        within = [
            len(np.unique(own_blocks[in_group, c][own_blocks[in_group, c] >= 0])) for c in range(conditions)
        ]
        df = max(int(in_group.sum()) - max(int((group == g).sum()), *within), 1)
        is_member = np.zeros(len(table), dtype=bool)
        is_member[np.flatnonzero(present)[in_group]] = True
        groups.append((is_member, float(df)))
    return tuple(groups)


def _one_more(model: Floats, w: Floats, width: float) -> float:
    """Return what one more differing item adds to a model's variance over items where fewer than ``FEW`` differ."""
    if not np.isfinite(width):
        return 0.0
    is_known = np.isfinite(model)
    complete = is_known.all(axis=1)
    variance = 0.0
    if len(w) > 1 and (n := int(complete.sum())) > 1:
        contrasts = np.round(model[complete] @ w, 9)
        most_common = int(np.unique(contrasts, return_counts=True)[1].max())
        if np.count_nonzero(contrasts) < FEW or (n - most_common < FEW and most_common > n / 2):
            variance += float(np.abs(w).max() * width) ** 2 / (n * (n - 1))
    if len(w) == 1 or int(complete.sum()) < 2:  # conditions with items of their own
        for c in range(len(w)):
            means = model[is_known[:, c], c]
            n = len(means)
            if n > 1 and n - np.unique(means, return_counts=True)[1].max() < RARE:
                variance += float(w[c] * width) ** 2 / (n * (n - 1))
    return variance


def _repeated(sums: ErrorSums, w: Floats) -> float:
    """Return the variance of a contrast over a sampled model's repeated answers to the same items."""
    if sums.model is None or sums.noise is None:
        return 0.0
    counts = np.isfinite(sums.model).sum(axis=0)
    return float(w**2 @ (np.nansum(sums.noise, axis=0) / np.maximum(counts, 1) ** 2))


def model_means(
    value: Floats, item: Units, condition: Units, variant: Units, layout: EstimateLayout
) -> tuple[Floats, Floats]:
    """Return a model's means (over repetitions, then variants) and their variances over repeated answers, shape (I, C)."""
    i, c = _places(layout.items, item), _places(layout.conditions, condition)
    of_variant: NDArray[Any] = np.unique(np.asarray(variant, dtype=object).astype(str), return_inverse=True)[
        1
    ].reshape(-1)
    is_known = (i >= 0) & (c >= 0)
    i, c, v, y = i[is_known], c[is_known], of_variant[is_known], np.asarray(value, dtype=float)[is_known]
    shape = (len(layout.items), len(layout.conditions))
    size, variants_ = shape[0] * shape[1], int(v.max(initial=0)) + 1
    cells, cell_index, counts = np.unique(
        (i * shape[1] + c) * variants_ + v, return_inverse=True, return_counts=True
    )
    means = np.bincount(cell_index, y, len(cells)) / counts
    spread = (
        np.bincount(cell_index, (y - means[cell_index]) ** 2, len(cells)) / np.maximum(counts - 1, 1) / counts
    )
    cell = cells // variants_
    variants = np.bincount(cell, minlength=size)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, means, size) / variants
        noise = np.bincount(cell, spread, size) / variants**2
    return mean.reshape(shape), np.where(variants > 0, noise, 0.0).reshape(shape)


def in_general(
    people: ItemAnswers, models: Sequence[Floats], weights: Mapping[Any, float]
) -> CrossedEstimate | None:
    """Estimate people's contrast minus that of models (means of shape (I, C)), whose variance beyond models by items is added."""
    stacked = np.stack(list(models))
    mean = stacked.mean(axis=0)
    result = estimate(sums_of_people(people, mean), weights)
    if result is None:
        return None
    w = np.array([weights.get(name, 0.0) for name in people.layout.conditions])
    used = w != 0
    is_known = np.isfinite(mean[:, used]).all(axis=1)
    contrasts = stacked[:, is_known][:, :, used] @ w[used]  # models by items
    k, n = contrasts.shape
    if k < 2 or n < 2:
        return None
    means = contrasts.mean(axis=1)
    between = float(means.var(ddof=1)) / k
    left = contrasts - means[:, None] - contrasts.mean(axis=0) + contrasts.mean()
    interaction = float((left**2).sum()) / ((k - 1) * (n - 1)) / (k * n)
    base = result.se**2
    variance = base + max(0.0, between - interaction)
    df = variance**2 / (base**2 / result.df + between**2 / (k - 1)) if base + between > 0 else float(k - 1)
    return replace(result, se=float(np.sqrt(variance)), df=df, to="participants, items and models")
