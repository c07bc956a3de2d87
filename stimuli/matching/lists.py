"""Divides items into lists, such as counterbalancing lists, that agree on covariates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from stimuli.errors import UserError
from stimuli.matching.candidates import (
    ROUNDING,
    Balance,
    Candidate,
    Measured,
    Missing,
    Tolerance,
    Whole,
    balance,
    measure,
    tolerances,
)
from stimuli.matching.sets import Matched, Unmet

_EXCHANGES = 2000


def match_lists(
    items: Sequence[Candidate],
    lists: int,
    on: Mapping[str, float | Tolerance],
    *,
    seed: int,
    missing: Missing = "error",
) -> Matched:
    """Divide items into lists of equal size (within one) that agree on covariates."""
    wanted = tolerances(on)
    if isinstance(lists, bool) or not isinstance(lists, int) or lists < 2:
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
    table = balance(
        {
            covariate: {name: values[place == number].tolist() for number, name in enumerate(named)}
            for covariate, values in measured.numbers.items()
        }
    )
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
    """Say which two lists' means differ by more than they may; None where none do or nothing is asked."""
    means = sorted((one.mean, one.group) for one in table.spreads if one.covariate == covariate)
    (low, least), (high, most) = means[0], means[-1]
    if not within or high - low <= within + ROUNDING:
        return None
    return f"the means of lists {least} and {most} differ by {high - low:.3g}, more than {within:g}"


def _strata(measured: Measured) -> list[Whole]:
    by_kind: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, one in enumerate(measured.candidates):
        kind = (one.group, tuple(int(codes[number]) for codes in measured.codes.values()))
        by_kind.setdefault(kind, []).append(number)
    return [np.array(by_kind[kind], dtype=np.int64) for kind in sorted(by_kind)]


def _deal(strata: Sequence[Whole], whole: Whole, lists: int) -> Whole:
    """Deal the items of each stratum in turn over the lists, from the largest covariates to the smallest."""
    place = np.zeros(len(whole), dtype=np.int64)
    turn = 0
    for members in strata:
        order = members[np.argsort(-whole[members].sum(axis=1), kind="stable")]
        for item in order:
            place[item] = turn % lists
            turn += 1
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
    here, there = members[place[members] == one], members[place[members] == other]
    if not len(here) or not len(there):
        return None
    apart = sums[one] - sums[other]
    # |s1 - d|² + |s2 + d|² - |s1|² - |s2|² = 2 d·d - 2 d·(s1 - s2), with d = x_i - x_j.
    x, y = centred[here], centred[there]
    squared = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
    change = 2 * squared - 2 * ((x @ apart)[:, None] - (y @ apart)[None, :])
    best = int(np.argmin(change))
    first, second = divmod(best, len(there))
    gain = int(change[first, second])
    return (gain, int(here[first]), int(there[second])) if gain < 0 else None
