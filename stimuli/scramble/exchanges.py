"""Exchanges of inner letters that do not cancel each other, and how many exchanges an order needs."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stimuli.scramble.changes import KEPT_UP_TO, Spelt, Tail, fewest_moves, tail_of
from stimuli.scramble.orders import (
    ORDERS_UP_TO,
    RANDOM_TRIES,
    TABLE_UP_TO,
    Arrangement,
    Tabled,
    all_orders,
    around,
    combinations_of,
    other_orders,
    pattern_of,
)
from stimuli.seeds import Draw

SEARCHES = 256
_TWO_PAIRS = 4  # places
_SHORT = 5  # letters; three inner ones have no more than five orders
_FEW = 8  # orders whose forms are worth keeping


class _Order(NamedTuple):
    """An order of a word's letters: how it is taken, the places that move, and what a record says of it."""

    taken: Callable[[str], tuple[str, ...]]
    moved: tuple[int, ...]
    tail: Tail


class Exchanges(Tabled):
    """``count`` exchanges of two inner letters that do not cancel: no fewer exchanges undo them."""

    least = 4

    def __init__(self, count: int, *, full: bool = False) -> None:
        self.count, self._full = count, full
        self.none_fits = f"takes fewer than {count} exchanges" if full and count > 1 else None

    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return all arrangements of up to five inner letters that need exactly as many exchanges."""
        inner = pieces[1:-1]
        if len(inner) > TABLE_UP_TO:
            return None
        return _orders_by_exchanges(pattern_of(inner), self.count, self._full)

    def ready(self, letters: str) -> tuple[Sequence[_Order] | None, bool] | None:
        """Return a word's orders, None for many, and whether they need no look at which letters are equal."""
        size = len(letters)
        inner = letters[1:-1]
        if size - 2 <= TABLE_UP_TO:
            orders = _orders_taken(pattern_of(inner), self.count, self._full) if size > _SHORT else ()
            return (orders, True) if len(orders) > _FEW else None
        return _orders_by_cycles(size, self.count), len(set(inner)) == len(inner)

    def spelled(
        self, letters: str, ready: tuple[Sequence[_Order] | None, bool], number: int, site_number: int
    ) -> Spelt | None:
        """Spell the first candidate, without counting exchanges where the moved letters all differ."""
        orders, differ = ready
        if orders is not None:
            taken, moved, tail = orders[number % len(orders)]
            if differ or len({letters[place] for place in moved}) == len(moved):
                return "".join(taken(letters)), tail
        size = len(letters)
        sources = _two_exchanged(size, number) if self.count == 2 else None
        if sources is None:
            sources = _exchanged(size, min(self.count, size - 3), Draw(number))
        if not differ and _needed_for(letters, sources) != min(self.count, size - 3):
            return None
        shown = list(letters)
        apart = 0
        for place, source in sources.items():
            shown[place] = letters[source]
            apart += abs(place - source)
        mean = round(apart / size, 3)
        return "".join(shown), (_with_exchanged(size, sources), len(sources), mean, 0, 0, 0, "letter")

    def drawn(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield arrangements that need exactly ``count`` exchanges, then, where they may, ones that need fewer."""
        if len(set(pieces[1:-1])) < 2:
            return
        draw = Draw(number)
        fewest = self.count if self._full else 1
        for count in range(min(self.count, len(pieces) - 3), fewest - 1, -1):
            for _ in range(RANDOM_TRIES):
                sources = _exchanged(len(pieces), count, draw)
                if _needed_for(pieces, sources) == count:
                    yield _with_exchanged(len(pieces), sources)
        if len(pieces) > KEPT_UP_TO:
            yield from _drawn_at_unlike_letters(pieces, fewest, draw)
            return
        if fewest > 1:
            yield from draw.dealt(_found_orders(pattern_of(pieces), fewest))
            return
        # Few different letters: what one exchange can do, tried through.
        for i, j in draw.dealt(combinations_of(len(pieces) - 2, 2)):
            yield _with_exchanged(len(pieces), {i + 1: j + 1, j + 1: i + 1})


@functools.lru_cache(maxsize=1024)
def _orders_by_exchanges(pattern: tuple[int, ...], count: int, full: bool) -> tuple[tuple[int, ...], ...]:
    """Return, of all distinct orders, those that need ``count`` exchanges, or unless ``full`` as many as any needs."""
    before = [str(one) for one in pattern]
    needed = {
        order: exchanges_needed(before, [before[place] for place in order]) for order in other_orders(pattern)
    }
    most = count if full else min(count, max(needed.values(), default=0))
    return tuple(around(order, 1, 1) for order, exchanges in needed.items() if exchanges == most)


@functools.lru_cache(maxsize=256)
def _orders_taken(pattern: tuple[int, ...], count: int, full: bool) -> list[_Order]:
    """Return the orders of a word of such inner letters that need so many exchanges."""
    size = len(pattern) + 2
    orders = _orders_by_exchanges(pattern, count, full)
    return [_Order(operator.itemgetter(*order), (), tail_of(order, size)) for order in orders]


@functools.lru_cache(maxsize=64)
def _orders_by_cycles(size: int, count: int) -> list[_Order] | None:
    """Return the orders of inner letters that need so many exchanges; None where they are many."""
    if size - 2 > ORDERS_UP_TO - 1:
        return None
    found = []
    for inner in all_orders(size - 2):
        order = around(inner, 1, 1)
        moved = tuple(place for place, source in enumerate(order) if source != place)
        if len(moved) <= 2 * count and len(moved) - _cycles(order, moved) == count:
            found.append(_Order(operator.itemgetter(*order), moved, tail_of(order, size)))
    return found


def _cycles(order: Sequence[int] | Mapping[int, int], moved: Sequence[int]) -> int:
    waiting, cycles = set(moved), 0
    while waiting:
        place = waiting.pop()
        while order[place] in waiting:
            place = order[place]
            waiting.remove(place)
        cycles += 1
    return cycles


def _exchanged(size: int, count: int, draw: Draw) -> dict[int, int]:
    """Exchange inner pairs that no chain of earlier exchanges ties together, so that each one lengthens the way back."""
    sources: dict[int, int] = {}
    tied: dict[int, int] = {}
    while count:
        i, j = 1 + draw.below(size - 2), 1 + draw.below(size - 2)
        kept, merged = tied.get(i, i), tied.get(j, j)
        if kept != merged:
            sources[i], sources[j] = sources.get(j, j), sources.get(i, i)
            tied[i] = tied[j] = kept
            for place, group in tied.items():
                if group == merged:
                    tied[place] = kept
            count -= 1
    return sources


def _two_exchanged(size: int, number: int) -> dict[int, int] | None:
    """Return what :func:`_exchanged` makes of a number at the first go; None where it needs further draws."""
    if size > KEPT_UP_TO:  # so that four draws fit into the number
        return None
    inner = size - 2
    number, i = divmod(number, inner)
    number, j = divmod(number, inner)
    number, k = divmod(number, inner)
    m = number % inner
    if i == j or k == m or (i == k and j == m) or (i == m and j == k):
        return None
    i, j, k, m = i + 1, j + 1, k + 1, m + 1
    sources = {i: j, j: i}
    sources[k], sources[m] = sources.get(m, m), sources.get(k, k)
    return sources


def _with_exchanged(size: int, sources: Mapping[int, int]) -> tuple[int, ...]:
    arranged = list(range(size))
    for place, source in sources.items():
        arranged[place] = source
    return tuple(arranged)


def _needed_for(pieces: Sequence[str], sources: Mapping[int, int]) -> int:
    places = tuple(sources)
    before = [pieces[place] for place in places]
    if len(set(before)) == len(before):
        return len(before) - _cycles(sources, places)
    if len(places) == _TWO_PAIRS and all(sources[sources[place]] == place for place in places):
        # Two pairs that change places: letters of different pairs may be equal, for no way back is shorter.
        return sum(pieces[place] != pieces[sources[place]] for place in places) // 2
    return exchanges_needed(before, [pieces[one] for one in sources.values()])


def _drawn_at_unlike_letters(pieces: Sequence[str], count: int, draw: Draw) -> Iterator[Arrangement]:
    """Yield arrangements of a long word that is nearly all one letter: each exchange takes one of the others."""
    size = len(pieces)
    common = Counter(pieces[1:-1]).most_common(1)[0][0]
    others = [place for place in range(1, size - 1) if pieces[place] != common]
    for _ in range(RANDOM_TRIES):
        sources: dict[int, int] = {}
        while len(sources) < 2 * min(count, len(others)):
            i, j = others[draw.below(len(others))], 1 + draw.below(size - 2)
            if pieces[i] == pieces[j] or i in sources or j in sources:
                if draw.below(SEARCHES) == 0:
                    break
                continue
            sources[i], sources[j] = j, i
        if _needed_for(pieces, sources) == count:
            yield _with_exchanged(size, sources)


@functools.lru_cache(maxsize=1024)
def _found_orders(pattern: tuple[int, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """Return some orders of inner letters, few of them different, that need exactly so many exchanges; none if none came up."""
    before = [str(one) for one in pattern]
    inner = range(1, len(pattern) - 1)
    draw = Draw(count)
    found: set[tuple[int, ...]] = set()
    for _ in range(SEARCHES):
        arranged = list(range(len(pattern)))
        for _ in range(count):
            pairs = [(i, j) for i in inner for j in inner if i < j and pattern[i] != pattern[j]]
            unmoved = [(i, j) for i, j in pairs if arranged[i] == i or arranged[j] == j]
            if not unmoved:
                break
            i, j = unmoved[draw.below(len(unmoved))]
            arranged[i], arranged[j] = arranged[j], arranged[i]
        after = [before[source] for source in arranged]
        if exchanges_needed(before, after) == count:
            found.add(tuple(fewest_moves(before, after)))
    return tuple(sorted(found))


def exchanges_needed(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the fewest exchanges of two pieces that turn one sequence into another of the same pieces.

    A misplaced piece is an edge from what stood at its place to what stands there; every closed walk through
    distinct pieces saves one exchange, so the most disjoint ones are looked for. Meant for ten misplaced pieces
    or fewer.
    """
    edges = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    return len(edges) - _most_cycles(edges)


def _most_cycles(edges: list[tuple[str, str]]) -> int:
    if not edges:
        return 0
    return max(1 + _most_cycles(rest) for rest in _without_a_cycle(edges[0][0], edges[0][1], edges[1:]))


def _without_a_cycle(goal: str, at: str, edges: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    if at == goal:
        yield edges
        return
    for place, (source, target) in enumerate(edges):
        if source == at:
            yield from _without_a_cycle(goal, target, edges[:place] + edges[place + 1 :])
