"""Sets of items that agree on covariates: matched conditions, balanced lists, and how well they agree.

Everything that decides between candidates is a whole number: a covariate in thousandths of its standard deviation over
all candidates. Sums and costs are then exact, and the same candidates give the same sets on every machine.

Items are matched one to one across conditions, each within every tolerance, by optimal assignment: first as many
matches as there can be, then the smallest total distance. With more than two conditions the assignment is optimal for
each condition given the others and is repeated until nothing changes (the problem of three or more is NP-hard). Then
matches are exchanged or dropped until every standardised mean difference is within its limit.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError
from stimuli.seeds import stable_seed

SMD_LIMIT = 0.10
"""Largest absolute standardised mean difference that counts as matched (Austin, 2009, Statistics in Medicine 28:3083)."""

_DIGITS = 6


@dataclass(frozen=True)
class CovariateSpread:
    """Distribution of one covariate in one group: number of values, mean, sample SD, minimum and maximum."""

    covariate: str
    group: str
    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class CovariateDifference:
    """Standardised mean difference of one covariate between two groups; None where no spread makes it countable."""

    covariate: str
    one: str
    other: str
    smd: float | None

    def exceeds(self, limit: float = SMD_LIMIT) -> bool:
        """Return whether the groups differ by more than a limit; a difference without any spread always does."""
        return self.smd is None or abs(self.smd) > limit


@dataclass(frozen=True)
class Balance:
    """Spread of every covariate in every group, and the contrast of every pair of groups."""

    spreads: tuple[CovariateSpread, ...]
    contrasts: tuple[CovariateDifference, ...]

    def largest(self, covariate: str) -> CovariateDifference | None:
        """Return the contrast of a covariate that is farthest from zero, or None for a single group."""
        contrasts = [contrast for contrast in self.contrasts if contrast.covariate == covariate]
        size = [math.inf if contrast.smd is None else abs(contrast.smd) for contrast in contrasts]
        return contrasts[size.index(max(size))] if contrasts else None

    def covariates(self) -> tuple[str, ...]:
        """Return the covariates in the order of the table."""
        return tuple(dict.fromkeys(spread.covariate for spread in self.spreads))


def balance(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    weights: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    overall: bool = False,
) -> Balance:
    """Return the distribution of each covariate in each group, and the differences between groups."""
    spreads: list[CovariateSpread] = []
    contrasts: list[CovariateDifference] = []
    for covariate, groups in values.items():
        present = {
            group: _Values(group_values, None if weights is None else weights[covariate][group])
            for group, group_values in groups.items()
            if group_values
        }
        spreads += [_spread(covariate, group, group_values) for group, group_values in present.items()]
        everyone = itertools.chain.from_iterable(of_group.values for of_group in present.values())
        least = _Values(list(everyone)).variance if overall else 0.0
        contrasts += [
            CovariateDifference(covariate, one, other, _difference(present[one], present[other], least))
            for one, other in itertools.combinations(present, 2)
        ]
    return Balance(tuple(spreads), tuple(contrasts))


class _Values:
    """Values of one group with their weights, the sum of the weights, mean and sample variance."""

    def __init__(self, values: Sequence[float], weights: Sequence[float] | None = None) -> None:
        self.values = values
        if weights is None:
            self.number: float = len(values)
            self.mean = math.fsum(values) / self.number if values else 0.0
            squares = math.fsum((value - self.mean) ** 2 for value in values)
        else:
            self.number = math.fsum(weights)
            self.mean = math.fsum(map(operator.mul, values, weights)) / self.number
            squares = math.fsum(
                weight * (value - self.mean) ** 2 for value, weight in zip(values, weights, strict=True)
            )
        self.variance = squares / (self.number - 1) if self.number > 1 and len(values) > 1 else 0.0


def _difference(one: _Values, other: _Values, least: float = 0.0) -> float | None:
    """Return the difference of the means over the root of the mean variance (Cohen, 1988, p. 44); None without spread."""
    mean_one, mean_other = one.mean, other.mean
    difference = mean_one - mean_other
    # A mean of equal decimals may miss them by the last bit.
    if abs(difference) <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return 0.0
    spread = math.sqrt(max((one.variance + other.variance) / 2, least))
    if spread <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return None
    return round(difference / spread, _DIGITS)


def _spread(covariate: str, group: str, values: _Values) -> CovariateSpread:
    n, low, high = max(round(values.number), 1), min(values.values), max(values.values)
    mean, sd = round(values.mean, _DIGITS), round(math.sqrt(values.variance), _DIGITS)
    return CovariateSpread(covariate, group, n, mean, sd, low, high)


Whole = NDArray[np.int64]
Missing = Literal["error", "exclude"]
PER_SD = 1000
ROUNDING = 1e-9


@dataclass(frozen=True)
class MatchCandidate:
    """Something that may be picked: its id, the condition that it could stand for, and its covariates."""

    id: str
    group: str
    covariates: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Tolerance:
    """Largest acceptable differences in a covariate."""

    # items matched with each other differ by at most this (0: the same value; None: anything); texts are the same
    within: float | None = None
    smd: float = SMD_LIMIT  # largest absolute standardised mean difference between two sets


@dataclass(frozen=True)
class OrderedCandidates:
    """Candidates in a fixed order that depends on the seed and on their ids only."""

    candidates: tuple[MatchCandidate, ...]  # n candidates without missing covariates
    numbers: dict[str, NDArray[np.float64]]  # values of each numeric covariate
    whole: Whole  # the c numeric covariates, in thousandths of their SD from the least value
    codes: dict[str, Whole]  # a number for each text of a text-valued covariate
    excluded: tuple[tuple[str, str], ...]  # candidates left out because a covariate is missing

    def balance(self, groups: Mapping[str, NDArray[Any]]) -> Balance:
        """Describe the numeric covariates of groups of candidates, each an index into them."""
        return balance(
            {
                name: {group: values[chosen].tolist() for group, chosen in groups.items()}
                for name, values in self.numbers.items()
            }
        )

    def without(self, name: str) -> OrderedCandidates:
        """Return the same candidates measured on all covariates but one."""
        others = [number != name for number in self.numbers]
        return replace(
            self,
            numbers={other: values for other, values in self.numbers.items() if other != name},
            whole=self.whole[:, others],
            codes={other: codes for other, codes in self.codes.items() if other != name},
        )


def tolerances(on: Mapping[str, float | Tolerance]) -> dict[str, Tolerance]:
    """Return the tolerance of each covariate; a number bounds the difference of single items."""
    return {name: given if isinstance(given, Tolerance) else Tolerance(given) for name, given in on.items()}


def measure(
    candidates: Sequence[MatchCandidate], on: Mapping[str, Tolerance], *, seed: int, missing: Missing
) -> OrderedCandidates:
    """Check candidates and bring them into an order that their given order does not touch."""
    retained, excluded = [], []
    for candidate in sorted(candidates, key=lambda c: (stable_seed(seed, "match order", c.id), c.id)):
        lacking = [name for name in on if _is_missing(candidate.covariates.get(name))]
        if lacking and missing == "error":
            raise UserError(
                f"match: candidate {candidate.id!r} ({candidate.group}) has no {lacking[0]}",
                mend=f"Fill it in, leave {lacking[0]} out of match, or exclude what lacks it with missing: exclude.",
            )
        if lacking:
            excluded.append((candidate.id, lacking[0]))
        else:
            retained.append(candidate)
    numbers: dict[str, NDArray[np.float64]] = {}
    codes: dict[str, Whole] = {}
    for name in on:
        column = [candidate.covariates[name] for candidate in retained]
        texts = [isinstance(value, str) for value in column]
        if any(texts) and not all(texts):
            odd = retained[texts.index(not texts[0])]
            raise UserError(
                f"match: {name} is {column[0]!r} for {retained[0].id!r} and {odd.covariates[name]!r} for {odd.id!r}; "
                "it is a number for all or a text for all"
            )
        if any(texts):
            place = {text: number for number, text in enumerate(sorted({str(value) for value in column}))}
            codes[name] = np.array([place[str(value)] for value in column], dtype=np.int64)
        else:
            numbers[name] = np.array([float(value) for value in column if value is not None], dtype=float)
    columns = [_whole(values) for values in numbers.values()]
    whole = np.stack(columns, axis=1) if columns else np.zeros((len(retained), 0), dtype=np.int64)
    return OrderedCandidates(tuple(retained), numbers, whole, codes, tuple(sorted(excluded)))


def _is_missing(value: float | str | None) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _whole(values: NDArray[np.float64]) -> Whole:
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if spread <= ROUNDING * max(1.0, abs(mean)):
        return np.zeros(len(values), dtype=np.int64)
    steps: Whole = np.rint((values - values.min()) / spread * PER_SD).astype(np.int64)
    return steps


def allowed_between(
    measured: OrderedCandidates, wanted: Mapping[str, Tolerance], whole: Whole, other: Whole
) -> NDArray[np.bool_]:
    """Return which of two lists of candidates may be matched, shape (len(one), len(other))."""
    allowed = np.ones((len(whole), len(other)), dtype=bool)
    for name, codes in measured.codes.items():
        if name in wanted:
            allowed &= codes[whole][:, None] == codes[other][None, :]
    for name, values in measured.numbers.items():
        within = wanted[name].within if name in wanted else None
        if within is not None:
            allowed &= np.abs(values[whole][:, None] - values[other][None, :]) <= within + ROUNDING
    return allowed


def distance_between(
    measured: OrderedCandidates, wanted: Mapping[str, Tolerance], whole: Whole, other: Whole
) -> Whole:
    """Return the summed distance of candidates in thousandths of a standard deviation."""
    total = np.zeros((len(whole), len(other)), dtype=np.int64)
    for place, name in enumerate(measured.numbers):
        if name in wanted:
            column = measured.whole[:, place]
            total += np.abs(column[whole][:, None] - column[other][None, :])
    return total


_MOVES = 400
_NEAR_ENOUGH = 10
_HEAVIEST = 8


class _Choice:
    """Matches, which of them are chosen, and the weighted differences between groups that each of them adds."""

    def __init__(
        self,
        measured: OrderedCandidates,
        wanted: Mapping[str, Tolerance],
        groups: Sequence[Whole],
        matches: Whole,
    ) -> None:
        self.measured, self.wanted, self.groups = measured, wanted, groups
        self.matches = matches.copy()
        self.chosen = np.zeros(len(matches), dtype=bool)
        self.pairs = list(itertools.combinations(range(len(groups)), 2))
        self.weights = np.ones(len(measured.numbers), dtype=np.int64)

    def adds(self) -> Whole:
        """Return what each match adds to the differences, shape (matches, pairs of groups x covariates)."""
        weighted = self.measured.whole * self.weights
        columns = [
            weighted[self.matches[:, one]] - weighted[self.matches[:, other]] for one, other in self.pairs
        ]
        return np.concatenate(columns, axis=1)

    def exceeded(self) -> list[int]:
        """Return the places of the covariates whose sets differ by more than their limit."""
        rows = self.matches[self.chosen]
        table = self.measured.balance({str(place): rows[:, place] for place in range(rows.shape[1])})
        over = {c.covariate for c in table.contrasts if c.exceeds(self.wanted[c.covariate].smd)}
        return [place for place, name in enumerate(self.measured.numbers) if name in over]

    def improve(self) -> None:
        """Swap matches and replace items as long as the summed squared differences get smaller and are worth it."""
        for _ in range(_MOVES):
            total = self.adds()[self.chosen].sum(axis=0)
            near = int(np.abs(total).max(initial=0)) <= _NEAR_ENOUGH * int(self.chosen.sum())
            if near or (not self._swap() and not self._replace()):
                return

    def drop(self) -> None:
        """Leave out the match without which the groups are nearest."""
        inside = np.flatnonzero(self.chosen)
        adds = self.adds()[inside]
        left = ((adds.sum(axis=0) - adds) ** 2).sum(axis=1)
        self.chosen[inside[int(np.argmin(left))]] = False

    def _swap(self) -> bool:
        inside, outside = np.flatnonzero(self.chosen), np.flatnonzero(~self.chosen)
        adds = self.adds()
        total = adds[inside].sum(axis=0)
        now = int((total**2).sum())
        if not len(outside) or not len(inside) or now == 0:
            return False
        # |total - a_i + a_j|², without an array of (inside, outside, differences).
        kept, new = total - adds[inside], adds[outside]
        after = (kept**2).sum(axis=1)[:, None] + (new**2).sum(axis=1)[None, :] + 2 * kept @ new.T
        one, other = divmod(int(np.argmin(after)), len(outside))
        if int(after[one, other]) >= now:
            return False
        self.chosen[inside[one]], self.chosen[outside[other]] = False, True
        return True

    def _replace(self) -> bool:
        inside = np.flatnonzero(self.chosen)
        weighted = self.measured.whole * self.weights
        total = self.adds()[inside].sum(axis=0).reshape(len(self.pairs), -1)
        if not total.any():
            return False
        best: tuple[int, int, int, int] | None = None
        for group, members in enumerate(self.groups):
            free = members[~np.isin(members, self.matches)]
            if not len(free):
                continue
            allowed = self._allowed(inside, group, free)
            # Taking c for b moves each difference of this group by +-(c - b): its change is 2 pull·(c - b) + pairs |c - b|².
            signs = [(group == one) - (group == other) for one, other in self.pairs]
            pull = (np.array(signs, dtype=np.int64)[:, None] * total).sum(axis=0)
            old, new = weighted[self.matches[inside, group]], weighted[free]
            apart = (old**2).sum(axis=1)[:, None] + (new**2).sum(axis=1)[None, :] - 2 * old @ new.T
            change = 2 * ((new @ pull)[None, :] - (old @ pull)[:, None]) + (len(self.groups) - 1) * apart
            change = np.where(allowed, change, 0)
            one, other = divmod(int(np.argmin(change)), len(free))
            candidate = (int(change[one, other]), group, int(inside[one]), int(free[other]))
            if candidate[0] < 0 and (best is None or candidate < best):
                best = candidate
        if best is None:
            return False
        _, group, match, item = best
        self.matches[match, group] = item
        return True

    def _allowed(self, inside: Whole, group: int, free: Whole) -> NDArray[np.bool_]:
        allowed = np.ones((len(inside), len(free)), dtype=bool)
        for other in range(len(self.groups)):
            if other != group:
                allowed &= allowed_between(self.measured, self.wanted, self.matches[inside, other], free)
        return allowed


def choose(
    measured: OrderedCandidates,
    wanted: Mapping[str, Tolerance],
    groups: Sequence[Whole],
    matches: Whole,
    size: int | None,
) -> Whole:
    """Return the most matches, ``size`` at most, whose sets keep every standardised difference."""
    choice = _Choice(measured, wanted, groups, matches)
    choice.chosen[: len(matches) if size is None else size] = True
    while choice.chosen.any():
        choice.improve()
        over = choice.exceeded()
        while over and int(choice.weights[over].min()) < _HEAVIEST:
            # What still differs counts for more; the rest may give way within its limit.
            choice.weights[over] = np.minimum(choice.weights[over] * 2, _HEAVIEST)
            choice.improve()
            over = choice.exceeded()
        if not over:
            break
        choice.drop()
    return choice.matches[choice.chosen]


_ROUNDS = 20
CANDIDATES = "(candidates)"
"""What is at fault where there are too few candidates, whatever they are matched on."""


@dataclass(frozen=True)
class Unmet:
    """A wish that the candidates do not allow."""

    covariate: str  # the covariate at fault
    rule: str  # what cannot be met, in words
    reachable: int  # with how many items per set it could be met, all else as asked
    without: int  # how many items per set there could be without this covariate

    def __str__(self) -> str:
        if self.covariate == CANDIDATES:
            return f"{self.rule}; all tolerances are met with {self.reachable} items per set"
        return (
            f"{self.covariate}: {self.rule}; all tolerances are met with {self.reachable} items per set, "
            f"without {self.covariate} with {self.without}"
        )


@dataclass(frozen=True)
class Matched:
    """Sets that agree on covariates, and how well they do."""

    sets: Mapping[str, tuple[str, ...]]  # ids by group; equal places hold items matched with each other
    balance: Balance  # mean, SD, range and n of every numeric covariate by group
    unmet: tuple[Unmet, ...]  # what could not be met at the asked size; empty where all is met
    reachable: int  # the largest number of items per set found to meet everything
    excluded: tuple[tuple[str, str], ...] = ()  # candidates left out because the covariate is missing

    def require(self) -> Matched:
        """Return the sets, or refuse them where a wish is not met."""
        if self.unmet:
            raise UserError("match: " + "; ".join(str(wish) for wish in self.unmet), mend=self._mend())
        return self

    def _mend(self) -> str:
        if self.reachable:
            return f"Ask for {self.reachable} items per set, widen a tolerance, or give more candidates."
        parting = [wish.covariate for wish in self.unmet if wish.without]
        if parting:
            return (
                f"Widen a tolerance, give more candidates, or leave out {' or '.join(parting)}: "
                "conditions that differ in it by design cannot agree on it."
            )
        return "Widen a tolerance, or give more candidates."


def match_sets(
    candidates: Sequence[MatchCandidate],
    on: Mapping[str, float | Tolerance],
    size: int | None = None,
    *,
    seed: int,
    missing: Missing = "error",
) -> Matched:
    """Pick sets of items, one per group, that agree on covariates."""
    wanted = tolerances(on)
    named = sorted({candidate.group for candidate in candidates})
    if len(named) < 2:
        raise UserError(f"match: candidates are of {len(named)} group; sets are matched between two or more")
    measured = measure(candidates, wanted, seed=seed, missing=missing)
    of_group = np.array([named.index(candidate.group) for candidate in measured.candidates])
    groups: list[Whole] = [np.flatnonzero(of_group == place) for place in range(len(named))]
    matches = _assign(measured, wanted, groups)
    chosen = choose(measured, wanted, groups, matches, size)
    unmet: tuple[Unmet, ...] = ()
    if size is not None and len(chosen) < size:
        unmet = _blame(measured, wanted, groups, size, len(chosen), len(matches))
    sets = {
        group: tuple(measured.candidates[i].id for i in chosen[:, place]) for place, group in enumerate(named)
    }
    table = measured.balance({group: chosen[:, place] for place, group in enumerate(named)})
    return Matched(sets, table, unmet, len(chosen), measured.excluded)


def _assign(measured: OrderedCandidates, wanted: Mapping[str, Tolerance], groups: Sequence[Whole]) -> Whole:
    """Match candidates across groups, shape (matches, groups), nearest first."""
    order = sorted(range(len(groups)), key=lambda g: (len(groups[g]), g))
    rows = np.full((len(groups[order[0]]), len(groups)), -1, dtype=np.int64)
    rows[:, order[0]] = groups[order[0]]
    for done in range(1, len(order)):
        rows, cost = _join(measured, wanted, rows, order[:done], order[done], groups[order[done]])
    best, best_cost = rows, cost
    for turn in range(_ROUNDS if len(groups) > 2 else 0):
        group = order[turn % len(order)]
        others = [g for g in range(len(groups)) if g != group]
        rows, cost = _join(measured, wanted, best, others, group, groups[group])
        if (len(rows), -int(cost.sum())) > (len(best), -int(best_cost.sum())):
            best, best_cost = rows, cost
    return best[np.argsort(best_cost, kind="stable")]


def _join(
    measured: OrderedCandidates,
    wanted: Mapping[str, Tolerance],
    rows: Whole,
    others: Sequence[int],
    group: int,
    members: Whole,
) -> tuple[Whole, Whole]:
    """Assign members of one group to matches of the others; matches left alone fall out."""
    from scipy.optimize import linear_sum_assignment

    if not len(rows) or not len(members):
        return rows[:0], np.zeros(0, dtype=np.int64)
    allowed = np.ones((len(rows), len(members)), dtype=bool)
    cost = np.zeros((len(rows), len(members)), dtype=np.int64)
    for second in others:
        allowed &= allowed_between(measured, wanted, rows[:, second], members)
        cost += distance_between(measured, wanted, rows[:, second], members)
    # One forbidden match costs more than all allowed ones together, so that their number comes first.
    forbidden = (int(cost.max()) + 1) * (min(cost.shape) + 1)
    at, to = linear_sum_assignment(np.where(allowed, cost, forbidden))
    good = allowed[at, to]
    joined = rows[at[good]].copy()
    joined[:, group] = members[to[good]]
    between = cost[at[good], to[good]]
    for first, second in itertools.combinations(others, 2):
        for place, row in enumerate(joined):
            between[place] += distance_between(measured, wanted, row[[first]], row[[second]])[0, 0]
    return joined, between


def _blame(
    measured: OrderedCandidates,
    wanted: Mapping[str, Tolerance],
    groups: Sequence[Whole],
    size: int,
    reached: int,
    within: int,
) -> tuple[Unmet, ...]:
    """Find which covariates keep the sets from the asked size: those without which there could be more."""
    unmet = []
    for name, tolerance in wanted.items():
        remaining = {other: bound for other, bound in wanted.items() if other != name}
        fewer = measured.without(name)
        without = len(choose(fewer, remaining, groups, _assign(fewer, remaining, groups), size))
        unmet.append(Unmet(name, _rule(name, tolerance, measured, size, within), reached, without))
    fewest = min(len(members) for members in groups)
    if fewest < size:
        rule = f"a group has only {fewest} candidates, but {size} were requested"
        return (Unmet(CANDIDATES, rule, reached, fewest),)
    at_fault = [wish for wish in unmet if wish.without > reached]
    return tuple(at_fault or unmet)


def _rule(name: str, tolerance: Tolerance, measured: OrderedCandidates, size: int, within: int) -> str:
    if name in measured.codes:
        return f"the same text in matched items is not to be had for {size}"
    if within < size and tolerance.within is not None:
        return f"matched items within {tolerance.within:g} of each other are not to be had for {size}"
    return f"a standardised mean difference of at most {tolerance.smd:g} is not to be had for {size}"


_EXCHANGES = 2000


def match_lists(
    items: Sequence[MatchCandidate],
    lists: int,
    on: Mapping[str, float | Tolerance],
    *,
    seed: int,
    missing: Missing = "error",
) -> Matched:
    """Divide items into lists of equal size (within one) that agree on covariates."""
    wanted = tolerances(on)
    if lists < 2:
        raise UserError(f"lists is {lists!r}; items are divided into two or more")
    measured = measure(items, wanted, seed=seed, missing=missing)
    if len(measured.candidates) < lists:
        raise UserError(f"{len(measured.candidates)} items cannot be divided into {lists} lists")
    strata = _strata(measured)
    place = _deal(strata, measured.whole, lists)
    _swap(place, strata, measured.whole, lists)
    named = [str(number + 1) for number in range(lists)]
    sets = {
        name: tuple(sorted(measured.candidates[i].id for i in np.flatnonzero(place == number)))
        for number, name in enumerate(named)
    }
    table = measured.balance({name: place == number for number, name in enumerate(named)})
    size = min(len(ids) for ids in sets.values())
    unmet = []
    for covariate in measured.numbers:
        worst, limit = table.largest(covariate), wanted[covariate].smd
        if worst is not None and worst.exceeds(limit):
            found = "not countable" if worst.smd is None else f"{abs(worst.smd):.2f}"
            rule = f"the standardised mean difference of lists {worst.one} and {worst.other} is {found}, above {limit:g}"
            unmet.append(Unmet(covariate, rule, 0, size))
        elif (told := _too_far_apart(table, covariate, wanted[covariate].within)) is not None:
            unmet.append(Unmet(covariate, told, 0, size))
    return Matched(sets, table, tuple(unmet), 0 if unmet else size, measured.excluded)


def _too_far_apart(table: Balance, covariate: str, within: float | None) -> str | None:
    """State which two lists' means differ by more than they may; None where none do or nothing is asked."""
    means = sorted((spread.mean, spread.group) for spread in table.spreads if spread.covariate == covariate)
    (low, least), (high, most) = means[0], means[-1]
    if not within or high - low <= within + ROUNDING:
        return None
    return f"the means of lists {least} and {most} differ by {high - low:.3g}, more than {within:g}"


def _strata(measured: OrderedCandidates) -> list[Whole]:
    by_kind: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, candidate in enumerate(measured.candidates):
        kind = (candidate.group, tuple(int(codes[number]) for codes in measured.codes.values()))
        by_kind.setdefault(kind, []).append(number)
    return [np.array(by_kind[kind], dtype=np.int64) for kind in sorted(by_kind)]


def _deal(strata: Sequence[Whole], whole: Whole, lists: int) -> Whole:
    """Deal the items of each stratum in turn over the lists, from the largest covariates to the smallest."""
    place = np.zeros(len(whole), dtype=np.int64)
    turn = 0
    for members in strata:
        order = members[np.argsort(-whole[members].sum(axis=1), kind="stable")]
        place[order] = np.arange(turn, turn + len(order)) % lists
        turn += len(order)
    return place


def _swap(place: Whole, strata: Sequence[Whole], whole: Whole, lists: int) -> None:
    centred = whole - np.rint(whole.mean(axis=0)).astype(np.int64) if len(whole) else whole
    sums = np.stack([centred[place == number].sum(axis=0) for number in range(lists)])
    for _ in range(_EXCHANGES):
        gains = [
            found
            for one, other in itertools.combinations(range(lists), 2)
            for members in strata
            if (found := _best_swap(place, members, centred, sums, one, other)) is not None
        ]
        if not gains:
            return
        _, first, second = min(gains)
        one, other = int(place[first]), int(place[second])
        moved = centred[first] - centred[second]
        sums[one] -= moved
        sums[other] += moved
        place[first], place[second] = other, one


def _best_swap(
    place: Whole, members: Whole, centred: Whole, sums: Whole, one: int, other: int
) -> tuple[int, int, int] | None:
    """Return the change in the summed squares (below 0) and the two items of the best swap, or None."""
    in_one, in_other = members[place[members] == one], members[place[members] == other]
    if not len(in_one) or not len(in_other):
        return None
    apart = sums[one] - sums[other]
    # |s1 - d|² + |s2 + d|² - |s1|² - |s2|² = 2 d·d - 2 d·(s1 - s2), with d = x_i - x_j.
    x, y = centred[in_one], centred[in_other]
    squared = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
    change = 2 * squared - 2 * ((x @ apart)[:, None] - (y @ apart)[None, :])
    best = int(np.argmin(change))
    first, second = divmod(best, len(in_other))
    gain = int(change[first, second])
    return (gain, int(in_one[first]), int(in_other[second])) if gain < 0 else None
