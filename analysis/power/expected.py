"""The precision that a planned sample can be expected to have, in closed form: no study is drawn.

The variance of a contrast is that of :mod:`analysis.crossed_variance`, worked out from what is assumed instead of estimated:
participants, items and single answers each contribute their variance divided by their number. It leaves out what the estimator
adds where few answers differ, so near 0% or 100% with few items it is too hopeful; ``wrods power`` simulates the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.contrasts import compared
from analysis.plan import Difference, Plan
from analysis.power.assumptions import Assumptions
from analysis.power.pilots import PROBIT, covariance_of_cut
from analysis.power.simulation import Layout, Sizes, laid_out
from analysis.readers import PARTICIPANT_KINDS

Array = NDArray[np.float64]
Cell = tuple[str, str]

WANTED = 0.8


@dataclass(frozen=True)
class Expected:
    """The expected precision of one contrast."""

    difference: Difference
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
        reach = bound / self.se - float(stats.t.isf(self.alpha / tests, self.df))
        return max(0.0, 2 * float(stats.t.cdf(reach, self.df)) - 1)

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
        self.laid = laid_out(plan, layout)
        self.shares = plan.measure.family == "binomial"
        self.known: dict[tuple[Cell, Cell], tuple[float, float]] = {}
        self.people = {group for group in plan.groups if truth.kinds[group] in PARTICIPANT_KINDS}

    def expected(self, tests: int) -> list[Expected]:
        """Work out the precision of each contrast, in each reader group and between the first and each other."""
        return [
            Expected(
                difference,
                groups,
                *self.precision(self.plan.weights(difference), groups),
                self.plan.alpha,
                tests,
            )
            for difference in self.plan.contrasts
            for groups in compared(self.plan.groups)
        ]

    def precision(self, weights: dict[str, float], groups: tuple[str, ...]) -> tuple[float, float]:
        """Return standard error and degrees of freedom of a contrast in one reader group, or of the first minus the second."""
        signs = dict(zip(groups, (1.0, -1.0), strict=False))
        cells = [(group, level) for group in groups for level, w in weights.items() if w]
        w = np.array([signs[group] * weights[level] for group, level in cells])
        many = len(cells)
        by_person, by_item = np.zeros((many, many)), np.zeros((many, many))
        for a, one in enumerate(cells):
            for b, other in enumerate(cells[: a + 1]):
                of_person, of_item = self._covariance(one, other)
                same = one[0] == other[0] and one[0] in self.people
                if same and self._together(one[1], other[1], "between_participants"):
                    by_person[a, b] = by_person[b, a] = of_person / self._units("between_participants")
                if self._together(one[1], other[1], "between_items"):
                    by_item[a, b] = by_item[b, a] = of_item / self._units("between_items")
        answers = np.array([self._answers(cell) for cell in cells])
        of_people = np.array([group in self.people for group, _ in cells])
        v_p, v_i, v_e = float(w @ by_person @ w), float(w @ by_item @ w), float(w**2 @ answers)
        both = float(w[of_people] ** 2 @ answers[of_people])
        lists = int(np.prod([count for count, one in self.laid if one == "latin_square"]))
        blocks = lists if of_people.any() else 1
        df_i = max(1.0, self.sizes.items - blocks)
        variance = v_p + v_i + v_e
        if not of_people.any():
            return self._scaled(variance), df_i
        df_p = max(1.0, self.sizes.participants - blocks)
        below = (v_p + both) ** 2 / df_p + (v_i + v_e) ** 2 / df_i
        return self._scaled(variance), float(np.clip(variance**2 / below, min(df_p, df_i), df_p + df_i))

    def _scaled(self, variance: float) -> float:
        return (100.0 if self.shares else 1.0) * float(np.sqrt(variance))

    def _together(self, level: str, other: str, layout: str) -> bool:
        """Whether two conditions are seen by the same participants (or show the same items)."""
        return all(
            a == b
            for a, b, (_, one) in zip(self._places(level), self._places(other), self.laid, strict=True)
            if one == layout
        )

    def _places(self, level: str) -> list[int]:
        place, found = self.plan.levels.index(level), []
        for count, _ in reversed(self.laid):
            place, own = divmod(place, count)
            found.append(own)
        return found[::-1]

    def _units(self, layout: str) -> float:
        """Return how many participants (or items) a condition has."""
        every = self.sizes.participants if layout == "between_participants" else self.sizes.items
        return every / float(np.prod([count for count, one in self.laid if one == layout]))

    def _answers(self, cell: Cell) -> float:
        """Return what single answers add to the variance of a cell's mean."""
        group, level = cell
        if self.shares:
            of_person, of_item = self._covariance(cell, cell)
            share = self.truth.mean(self.plan, group, level) / 100.0
            left = share * (1 - share) - of_person - of_item
        else:
            left = (self.truth.sigma or 0.0) ** 2
        items = self._units("between_items")
        if group in self.people:
            seen = float(np.prod([count for count, one in self.laid if one == "latin_square"]))
            return left / (self._units("between_participants") * items / seen)
        return left / (items * self.sizes.prompts * self.sizes.replicates)

    def _covariance(self, one: Cell, other: Cell) -> tuple[float, float]:
        """Return how participants and how items vary together in two cells, on the scale of the answers."""
        if (one, other) not in self.known:
            self.known[one, other] = self._worked_out(one, other)
        return self.known[one, other]

    def _worked_out(self, one: Cell, other: Cell) -> tuple[float, float]:
        person, item = 0.0, 0.0
        for term in self.truth.variance:
            a, b = (self.truth.columns(term, self.plan, *cell) for cell in (one, other))
            together = float(a @ term.cov @ b)
            if term.group == "participant" and one[0] == other[0]:
                person += together
            shared = {
                "item": True,
                "item_condition": one[1] == other[1],
                "item_reader": one[0] == other[0],
                "item_cell": one == other,
            }
            item += together if shared.get(term.group, False) else 0.0
        if not self.shares:
            return person, item
        h, size = zip(*(self._cut(cell) for cell in (one, other)), strict=True)
        return (
            covariance_of_cut(person / (size[0] * size[1]), *h),
            covariance_of_cut(item / (size[0] * size[1]), *h),
        )

    def _cut(self, cell: Cell) -> tuple[float, float]:
        """Return where a cell's normal variable is cut, and its standard deviation."""
        share = self.truth.mean(self.plan, *cell) / 100.0
        size = float(np.sqrt(self.truth.variance_in(self.plan, *cell) + PROBIT**2))
        return float(stats.norm.ppf(share)), size


def items_needed(
    plan: Plan, truth: Assumptions, sizes: Sizes, layout: Layout, bound: float, tests: Sequence[int]
) -> int | None:
    """Return the items at which 80% of studies conclude every equivalence; None beyond 20 times as many."""
    design = _Design(plan, truth, sizes, layout)
    for items in np.unique(np.geomspace(sizes.items, 20 * sizes.items, 60).astype(int)).tolist():
        design.sizes = replace(sizes, items=items)
        between = [one for one in design.expected(tests[0]) if len(one.groups) == 2]
        if all(one.reachable_bound(tests[1]) <= bound for one in between):
            return int(items)
    return None
