"""Picks, out of candidates, one set of items per condition so that the sets agree on covariates.

Items are matched one to one across conditions, each within every tolerance, by optimal assignment: first as many
matches as there can be, then the smallest total distance. With more than two conditions the assignment is optimal for
each condition given the others and is repeated until nothing changes (the problem of three or more is NP-hard). Then
matches are exchanged or dropped until every standardised mean difference is within its limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError
from stimuli.matching.candidates import (
    Balance,
    Candidate,
    Measured,
    Missing,
    Tolerance,
    Whole,
    allowed_between,
    balance,
    distance_between,
    measure,
    tolerances,
)

_MOVES = 400
_NEAR_ENOUGH = 10
_HEAVIEST = 8


class _Choice:
    """Matches, which of them are chosen, and the weighted differences between groups that each of them adds."""

    def __init__(
        self, measured: Measured, wanted: Mapping[str, Tolerance], groups: Sequence[Whole], matches: Whole
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
        table = balance(
            {
                name: {str(place): values[rows[:, place]].tolist() for place in range(rows.shape[1])}
                for name, values in self.measured.numbers.items()
            }
        )
        over = {one.covariate for one in table.contrasts if one.exceeds(self.wanted[one.covariate].smd)}
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
            found = (int(change[one, other]), group, int(inside[one]), int(free[other]))
            if found[0] < 0 and (best is None or found < best):
                best = found
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
    measured: Measured,
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

    # ids by group; equal places of two sets hold items matched with each other
    sets: Mapping[str, tuple[str, ...]]
    balance: Balance  # mean, SD, range and n of every numeric covariate by group
    unmet: tuple[Unmet, ...]  # what could not be met at the asked size; empty where all is met
    reachable: int  # the largest number of items per set found to meet everything
    excluded: tuple[tuple[str, str], ...] = ()  # candidates left out because the covariate is missing

    def require(self) -> Matched:
        """Return the sets, or refuse them where a wish is not met."""
        if self.unmet:
            raise UserError("match: " + "; ".join(str(one) for one in self.unmet), mend=self._mend())
        return self

    def _mend(self) -> str:
        if self.reachable:
            return f"Ask for {self.reachable} items per set, widen a tolerance, or give more candidates."
        parting = [one.covariate for one in self.unmet if one.without]
        if parting:
            return (
                f"Widen a tolerance, give more candidates, or leave out {' or '.join(parting)}: "
                "conditions that differ in it by design cannot agree on it."
            )
        return "Widen a tolerance, or give more candidates."


def match_sets(
    candidates: Sequence[Candidate],
    on: Mapping[str, float | Tolerance],
    size: int | None = None,
    *,
    seed: int,
    missing: Missing = "error",
) -> Matched:
    """Pick sets of items, one per group, that agree on covariates."""
    wanted = tolerances(on)
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise UserError(f"match: size is {size!r}; it is a whole number from 1 upwards")
    named = sorted({one.group for one in candidates})
    if len(named) < 2:
        raise UserError(f"match: candidates are of {len(named)} group; sets are matched between two or more")
    measured = measure(candidates, wanted, seed=seed, missing=missing)
    groups = [
        np.array([i for i, one in enumerate(measured.candidates) if one.group == group], dtype=np.int64)
        for group in named
    ]
    matches = _assign(measured, wanted, groups)
    chosen = choose(measured, wanted, groups, matches, size)
    unmet: tuple[Unmet, ...] = ()
    if size is not None and len(chosen) < size:
        unmet = _blame(measured, wanted, groups, size, len(chosen), len(matches))
    sets = {
        group: tuple(measured.candidates[i].id for i in chosen[:, place]) for place, group in enumerate(named)
    }
    table = balance(
        {
            name: {group: values[chosen[:, place]].tolist() for place, group in enumerate(named)}
            for name, values in measured.numbers.items()
        }
    )
    return Matched(sets, table, unmet, len(chosen), measured.excluded)


def _assign(measured: Measured, wanted: Mapping[str, Tolerance], groups: Sequence[Whole]) -> Whole:
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
    measured: Measured,
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
    for other in others:
        allowed &= allowed_between(measured, wanted, rows[:, other], members)
        cost += distance_between(measured, wanted, rows[:, other], members)
    # One forbidden match costs more than all allowed ones together, so that their number comes first.
    forbidden = (int(cost.max()) + 1) * (min(cost.shape) + 1)
    at, to = linear_sum_assignment(np.where(allowed, cost, forbidden))
    good = allowed[at, to]
    joined = rows[at[good]].copy()
    joined[:, group] = members[to[good]]
    between = cost[at[good], to[good]]
    for one, other in itertools.combinations(others, 2):
        between = between + np.array(
            [
                distance_between(measured, wanted, row[one : one + 1], row[other : other + 1])[0, 0]
                for row in joined
            ],
            dtype=np.int64,
        )
    return joined, between


def _blame(
    measured: Measured,
    wanted: Mapping[str, Tolerance],
    groups: Sequence[Whole],
    size: int,
    reached: int,
    within: int,
) -> tuple[Unmet, ...]:
    """Find which covariates keep the sets from the asked size: those without which there could be more."""
    told = []
    for name, tolerance in wanted.items():
        rest = {other: one for other, one in wanted.items() if other != name}
        fewer = Measured(
            measured.candidates,
            {other: values for other, values in measured.numbers.items() if other != name},
            np.delete(
                measured.whole, [place for place, n in enumerate(measured.numbers) if n == name], axis=1
            ),
            {other: codes for other, codes in measured.codes.items() if other != name},
            measured.excluded,
        )
        without = len(choose(fewer, rest, groups, _assign(fewer, rest, groups), size))
        told.append(Unmet(name, _rule(name, tolerance, measured, size, within), reached, without))
    fewest = min(len(members) for members in groups)
    if fewest < size:
        rule = f"a group has only {fewest} candidates, {size} are asked for"
        return (Unmet(CANDIDATES, rule, reached, fewest),)
    at_fault = [one for one in told if one.without > reached]
    return tuple(at_fault or told)


def _rule(name: str, tolerance: Tolerance, measured: Measured, size: int, within: int) -> str:
    if name in measured.codes:
        return f"the same text in matched items is not to be had for {size}"
    if within < size and tolerance.within is not None:
        return f"matched items within {tolerance.within:g} of each other are not to be had for {size}"
    return f"a standardised mean difference of at most {tolerance.smd:g} is not to be had for {size}"
