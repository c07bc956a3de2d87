"""The precision that a planned sample can be expected to have, in closed form: no study is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod

import numpy as np
from scipy import stats

from analysis.contrasts import compared
from analysis.plan import LevelDifference, Plan
from analysis.power.assumptions import Assumptions
from analysis.power.pilots import PROBIT, covariance_of_cut
from analysis.power.simulation import Layout, Sizes, laid_out
from analysis.readers import PARTICIPANT_KINDS

Cell = tuple[str, str]

WANTED = 0.8
_APART = ("between_participants", "between_items")


@dataclass(frozen=True)
class Expected:
    """The expected precision of one contrast."""

    difference: LevelDifference
    groups: tuple[str, ...]  # the reader group, or the two whose differences are compared
    se: float  # in percentage points for accuracy, else on the modelled scale
    df: float
    alpha: float
    tests: int

    @property
    def half_width(self) -> float:
        """Half the expected width of the simultaneous interval."""
        return float(stats.t.isf(self.alpha / 2 / self.tests, self.df)) * self.se

    @property
    def detectable(self) -> float:
        """The smallest difference that 80% of such studies find."""
        return self.half_width + float(stats.t.ppf(WANTED, self.df)) * self.se

    def equivalence(self, bound: float, tests: int) -> float:
        """Return the probability of concluding equivalence within a bound if there is no difference."""
        margin = bound / self.se - float(stats.t.isf(self.alpha / tests, self.df))
        return max(0.0, 2 * float(stats.t.cdf(margin, self.df)) - 1)

    def reachable_bound(self, tests: int) -> float:
        """Return the bound within which 80% of such studies conclude equivalence if there is no difference."""
        critical = float(stats.t.isf(self.alpha / tests, self.df))
        return (critical + float(stats.t.ppf((1 + WANTED) / 2, self.df))) * self.se


def expected_precision(
    plan: Plan, truth: Assumptions, sizes: Sizes, layout: Layout, tests: int
) -> list[Expected]:
    """Return the expected precision of a plan's contrasts, within and between reader groups."""
    return _Design(plan, truth, sizes, layout).expected(tests)


class _Design:
    """Variances and covariances between the cells of a plan, and how many units each cell has."""

    def __init__(self, plan: Plan, truth: Assumptions, sizes: Sizes, layout: Layout) -> None:
        self.plan, self.truth, self.sizes = plan, truth, sizes
        dimensions = laid_out(plan, layout)
        self.counts, self.layouts = [count for count, _ in dimensions], [name for _, name in dimensions]
        positions = np.transpose(np.unravel_index(np.arange(len(plan.levels)), self.counts))
        self.places = dict(zip(plan.levels, positions.tolist(), strict=True))
        self.shares = plan.measure.family == "binomial"
        self.covariance = cache(self._covariance)
        self.people = {group for group in plan.groups if truth.kinds[group] in PARTICIPANT_KINDS}

    def expected(self, tests: int) -> list[Expected]:
        """Work out the precision of each contrast, in each reader group and between the first and each other."""
        results = []
        for difference, groups in product(self.plan.contrasts, compared(self.plan.groups)):
            se, df = self.precision(self.plan.weights(difference), groups)
            results.append(Expected(difference, groups, se, df, self.plan.alpha, tests))
        return results

    def precision(self, weights: dict[str, float], groups: tuple[str, ...]) -> tuple[float, float]:
        """Return standard error and degrees of freedom of a contrast in one reader group, or of the first minus the second."""
        signs = dict(zip(groups, (1.0, -1.0), strict=False))
        cells = [(group, level) for group in groups for level, w in weights.items() if w]
        w = np.array([signs[group] * weights[level] for group, level in cells])
        by_person, by_item = np.transpose([[self._shared(a, b) for b in cells] for a in cells], (2, 0, 1))
        answers = np.array([self._answers(cell) for cell in cells])
        of_people = np.array([group in self.people for group, _ in cells])
        v_p, v_i, v_e = float(w @ by_person @ w), float(w @ by_item @ w), float(w**2 @ answers)
        both = float(w[of_people] ** 2 @ answers[of_people])
        blocks = self._count("latin_square") if of_people.any() else 1
        df_i = max(1.0, self.sizes.items - blocks)
        variance = v_p + v_i + v_e
        if not of_people.any():
            return self._scaled(variance), df_i
        df_p = max(1.0, self.sizes.participants - blocks)
        denominator = (v_p + both) ** 2 / df_p + (v_i + v_e) ** 2 / df_i
        return self._scaled(variance), float(np.clip(variance**2 / denominator, min(df_p, df_i), df_p + df_i))

    def _scaled(self, variance: float) -> float:
        return (100.0 if self.shares else 1.0) * float(np.sqrt(variance))

    def _shared(self, cell: Cell, other: Cell) -> tuple[float, float]:
        """Return what shared participants and shared items add to the covariance of two cells' means."""
        parts = []
        for layout, covariance in zip(_APART, self.covariance(*sorted((cell, other))), strict=True):
            positions = zip(self.places[cell[1]], self.places[other[1]], self.layouts, strict=True)
            is_shared = all(a == b for a, b, name in positions if name == layout)
            if layout == "between_participants":
                is_shared = is_shared and cell[0] == other[0] and cell[0] in self.people
            parts.append(covariance / self._units(layout) if is_shared else 0.0)
        return parts[0], parts[1]

    def _count(self, layout: str) -> int:
        """Return how many cells a layout makes."""
        return prod(count for count, name in zip(self.counts, self.layouts, strict=True) if name == layout)

    def _units(self, layout: str) -> float:
        """Return how many participants (or items) a condition has."""
        total = self.sizes.participants if layout == "between_participants" else self.sizes.items
        return total / self._count(layout)

    def _answers(self, cell: Cell) -> float:
        """Return what single answers add to the variance of a cell's mean."""
        group, level = cell
        if self.shares:
            share = self.truth.mean(self.plan, group, level) / 100.0
            left = share * (1 - share) - sum(self.covariance(cell, cell))
        else:
            left = (self.truth.sigma or 0.0) ** 2
        items = self._units("between_items")
        if group in self.people:
            return left / (self._units("between_participants") * items / self._count("latin_square"))
        return left / (items * self.sizes.prompts * self.sizes.replicates)

    def _covariance(self, first: Cell, second: Cell) -> tuple[float, float]:
        """Return how participants and how items vary together in two cells, on the scale of the answers."""
        person, item = 0.0, 0.0
        for term in self.truth.variance:
            a, b = (self.truth.columns(term, self.plan, *cell) for cell in (first, second))
            covariance = float(a @ term.cov @ b)
            if term.group == "participant" and first[0] == second[0]:
                person += covariance
            same_reader, same_level = first[0] == second[0], first[1] == second[1]
            shared = {"item": True, "item_condition": same_level, "item_reader": same_reader}
            shared["item_cell"] = same_reader and same_level
            item += covariance if shared.get(term.group, False) else 0.0
        if not self.shares:
            return person, item
        # the normal variables of the two cells, and where they are cut
        sizes = [np.sqrt(self.truth.variance_in(self.plan, *cell) + PROBIT**2) for cell in (first, second)]
        h, k = (float(stats.norm.ppf(self.truth.mean(self.plan, *cell) / 100.0)) for cell in (first, second))
        size = float(sizes[0] * sizes[1])
        return covariance_of_cut(person / size, h, k), covariance_of_cut(item / size, h, k)


def items_needed(
    plan: Plan, truth: Assumptions, sizes: Sizes, layout: Layout, bound: float, tests: Sequence[int]
) -> int | None:
    """Return the items at which 80% of studies conclude every equivalence; None beyond 20 times as many."""
    design = _Design(plan, truth, sizes, layout)
    for items in np.unique(np.geomspace(sizes.items, 20 * sizes.items, 60).astype(int)).tolist():
        design.sizes = replace(sizes, items=items)
        between = [test for test in design.expected(tests[0]) if len(test.groups) == 2]
        if all(test.reachable_bound(tests[1]) <= bound for test in between):
            return int(items)
    return None
