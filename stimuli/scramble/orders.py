"""Rules that only change the order of pieces: letters of a word, words of a sentence, sentences of a text.

A rule yields the allowed arrangements of the pieces in an order drawn from one number; the caller takes the first suitable
one (different from the original, not a real word).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from stimuli.scramble.changes import KEPT_UP_TO, Spelt, Tail, fewest_moves, known_tail, settled, tail_of
from stimuli.seeds import Draw

Choice = TypeVar("Choice")
Way = TypeVar("Way")


class MadeWhenAsked(Sequence[Way], Generic[Choice, Way]):
    """Results of choices, computed on access: for long words, storing all of them would take quadratic memory."""

    def __init__(self, choices: Sequence[Choice], make: Callable[[Choice], Way]) -> None:
        self._choices, self._make = choices, make

    def __len__(self) -> int:
        return len(self._choices)

    def __getitem__(self, index: Any) -> Any:
        return self._make(self._choices[index])

    def __iter__(self) -> Iterator[Way]:
        return map(self._make, self._choices)


def ways_of(size: int, choices: Sequence[Choice], make: Callable[[Choice], Way]) -> Sequence[Way]:
    """Return what each choice makes of a word of so many letters."""
    return tuple(map(make, choices)) if size <= KEPT_UP_TO else MadeWhenAsked(choices, make)


Arrangement = tuple[int | str, ...]
"""For each position after the change: the position before it of the piece that is there, or a new letter."""

_Choices = tuple[tuple[int, ...], ...]
Arrangements = Callable[[Sequence[str], random.Random], Iterator[Arrangement]]

TABLE_UP_TO = 5  # 120 orders; one of 720 would take milliseconds to make for the first word of its kind
ORDERS_UP_TO = 8  # 40,320 orders take five megabytes and milliseconds
_ONE_NUMBER_UP_TO = 16  # 16! orders leave a bias under 2**-19 when they are drawn from 64 bits
RANDOM_TRIES = 64
_COINS = 64
ALL_CHOICES_UP_TO = 512

Ready = TypeVar("Ready")


class ScrambleRule(Protocol):
    """Rule of a scramble type for rearranging pieces."""

    @property
    def least(self) -> int:
        """Fewest pieces that the rule has a meaning for."""
        ...

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield arrangements in drawn order: finitely many; they may repeat and may change nothing.

        ``number``: 64 random bits that belong to these pieces and this type.
        """
        ...


class Tabled(ABC):
    """A rule whose arrangements of most words are few enough to be listed; each in the list is equally likely."""

    least: int

    @abstractmethod
    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return all arrangements, every one of which changes the pieces; None where they are too many."""

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield the listed arrangements in drawn order, or drawn ones where they are too many to list."""
        table = self.table(pieces)
        if table is None:
            yield from self.drawn(pieces, number)
        elif table:
            first = number % len(table)
            yield table[first]
            for index in Draw(number).dealt([*range(first), *range(first + 1, len(table))]):
                yield table[index]

    def drawn(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield drawn arrangements of pieces that have too many to list."""
        return iter(())


@runtime_checkable
class Spelling(Protocol[Ready]):
    """A rule that spells its first candidate of a plain word straight away, for speed."""

    def ready(self, letters: str) -> Ready | None:
        """Return the part of a word's forms that does not depend on a draw; None if forms must be listed or searched."""
        ...

    def spelled(self, letters: str, ready: Ready, number: int, site_number: int) -> Spelt | None:
        """Return the letters in their new order, and what a record says of them."""
        ...


class FromDraws:
    """A rule from a plain function ``(pieces, draw) → arrangements``, with :class:`random.Random` for its draws."""

    def __init__(self, arrangements: Arrangements, least: int = 2) -> None:
        self.least = least
        self._arrangements = arrangements

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield what the function yields, equal pieces moving least."""
        for arranged in self._arrangements(pieces, random.Random(number)):
            sources = [source for source in arranged if isinstance(source, int)]
            if len(sources) == len(set(sources)) == len(pieces) == len(arranged):
                yield tuple(fewest_moves(pieces, [pieces[source] for source in sources]))
            else:
                yield tuple(arranged)


@functools.lru_cache(maxsize=1024)
def other_orders(pattern: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return every distinct order, but the given one, of pieces of which equal numbers are equal pieces."""
    places = [str(number) for number in pattern]
    wanted = sorted(set(itertools.permutations(places)) - {tuple(places)})
    return tuple(tuple(fewest_moves(places, order)) for order in wanted)


def pattern_of(pieces: Sequence[str]) -> tuple[int, ...]:
    """Return which pieces are equal, as the place of the first equal one."""
    first: dict[str, int] = {}
    return tuple([first.setdefault(piece, place) for place, piece in enumerate(pieces)])


class Shuffled(Tabled):
    """All pieces but the outer ones in any other order, each distinct one equally likely."""

    def __init__(self, first: int = 0, last: int = 0) -> None:
        self.first, self.last = first, last
        self.least = first + last + 2

    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return all other orders of up to five pieces."""
        inner = pieces[self.first : len(pieces) - self.last]
        if len(inner) > TABLE_UP_TO:
            return None
        return _orders_around(self.first, self.last, pattern_of(inner))

    def drawn(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield shuffles."""
        inner = pieces[self.first : len(pieces) - self.last]
        if len(set(inner)) < 2:
            return
        for order in _shuffles(len(inner), number):
            yield around(settled(inner, order), self.first, self.last)

    def ready(self, letters: str) -> tuple[str, bool] | None:
        """Return the letters that move, where they are too many to list their orders, and whether all differ."""
        inner = letters[self.first : len(letters) - self.last]
        return None if len(inner) <= TABLE_UP_TO else (inner, len(set(inner)) == len(inner))

    def spelled(self, letters: str, ready: tuple[str, bool], number: int, site_number: int) -> Spelt | None:
        """Spell the first shuffle."""
        inner, differ = ready
        first, size = self.first, len(letters)
        order: Sequence[int] = _one_shuffle(len(inner), number)
        if not differ:
            order = settled(inner, list(order))
        middle = "".join(map(inner.__getitem__, order))
        tail = known_tail if len(order) == TABLE_UP_TO + 1 else tail_of
        return letters[:first] + middle + letters[size - self.last :], tail(
            around(order, first, self.last), size
        )


def around(order: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    """Return an order of inner pieces with the outer ones that stay."""
    if not first:
        return (*order, *range(len(order), len(order) + last)) if last else tuple(order)
    end = first + len(order)
    return (*range(first), *[first + place for place in order], *range(end, end + last))


@functools.lru_cache(maxsize=1024)
def _orders_around(first: int, last: int, pattern: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(around(order, first, last) for order in other_orders(pattern))


@functools.cache
def all_orders(size: int) -> list[tuple[int, ...]]:
    """Return every order of so many pieces."""
    return list(itertools.permutations(range(size)))


def _one_shuffle(size: int, number: int) -> Sequence[int]:
    if size <= ORDERS_UP_TO:
        orders = all_orders(size)
        return orders[number % len(orders)]
    if size > _ONE_NUMBER_UP_TO:
        draw = random.Random(number).random
        keys = [draw() for _ in range(size)]
        return sorted(range(size), key=keys.__getitem__)
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        number, partner = divmod(number, last + 1)
        order[last], order[partner] = order[partner], order[last]
    return order


def _shuffles(size: int, number: int) -> Iterator[list[int]]:
    yield list(_one_shuffle(size, number))
    draw = random.Random(number)
    for _ in range(RANDOM_TRIES):
        order = list(range(size))
        draw.shuffle(order)
        yield order
    # Pieces with few different ones need a systematic search for the order that is left, long rows of them a few tries.
    if size > KEPT_UP_TO:
        for _ in range(RANDOM_TRIES):
            order = list(range(size))
            i, j = draw.sample(order, 2)
            order[i], order[j] = j, i
            yield order
        return
    pairs = list(itertools.combinations(range(size), 2))
    draw.shuffle(pairs)
    for i, j in pairs:
        order = list(range(size))
        order[i], order[j] = j, i
        yield order


class ShuffledButDrawn(Tabled):
    """Pieces at drawn places (and perhaps an outer one) keep their place, all others are shuffled."""

    def __init__(self, first: int, last: int, drawn: int) -> None:
        self.first, self.last, self.drawn_places = first, last, drawn
        self.least = first + last + drawn + 2

    def ready(self, letters: str) -> tuple[_Choices, bool] | None:
        """Return every choice of moving places, where there are orders too many to list, and whether all letters differ."""
        size = len(letters) - self.first - self.last
        if not TABLE_UP_TO < size <= _ONE_NUMBER_UP_TO - 4:
            return None
        return _moving_places(size, self.drawn_places, self.first), len(set(letters)) == len(letters)

    def spelled(
        self, letters: str, ready: tuple[_Choices, bool], number: int, site_number: int
    ) -> Spelt | None:
        """Spell a shuffle around one choice of kept places."""
        choices, differ = ready
        number, choice = divmod(number, len(choices))
        moving = choices[choice]
        order = _one_shuffle(len(moving), number)
        arranged = _arranged(len(letters), moving, order) if differ else self._moved(letters, moving, order)
        return "".join(map(letters.__getitem__, arranged)), tail_of(arranged, len(letters))

    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return all other orders of up to five pieces around every choice of kept ones."""
        end = len(pieces) - self.last
        if end - self.first > TABLE_UP_TO:
            return None
        return _orders_around_kept(
            pattern_of(pieces), _moving_places(end - self.first, self.drawn_places, self.first)
        )

    def drawn(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield shuffles, every choice of kept places (or sixty-four) before a second shuffle of one."""
        draw = Draw(number)
        open_places = range(self.first, len(pieces) - self.last)
        if len({pieces[place] for place in open_places}) < 2:
            return
        choices = list(chosen_places(len(open_places), self.drawn_places, draw))
        for _ in range(3):
            for kept in choices:
                moving = [place for place in open_places if place - self.first not in kept]
                order = list(draw.dealt(range(len(moving))))
                if order == sorted(order):
                    order = [*order[1:], order[0]]
                yield self._moved(pieces, moving, order)

    def _moved(self, pieces: Sequence[str], moving: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
        if len(set(pieces)) < len(pieces):
            order = settled(tuple([pieces[place] for place in moving]), list(order))
        return _arranged(len(pieces), moving, order)


def _arranged(size: int, moving: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    arranged = list(range(size))
    for place, source in zip(moving, order, strict=True):
        arranged[place] = moving[source]
    return tuple(arranged)


@functools.lru_cache(maxsize=1024)
def _orders_around_kept(pattern: tuple[int, ...], choices: _Choices) -> tuple[tuple[int, ...], ...]:
    """Return the distinct other orders of every choice of moving places; an order that several choices give comes often."""
    return tuple(
        _arranged(len(pattern), moving, order)
        for moving in choices
        for order in other_orders(tuple(pattern[place] for place in moving))
    )


@functools.lru_cache(maxsize=256)
def _moving_places(size: int, kept: int, first: int) -> tuple[tuple[int, ...], ...]:
    """Return, for every choice of kept places, the others, counted from ``first``."""
    return tuple(
        tuple(first + place for place in range(size) if place not in chosen)
        for chosen in combinations_of(size, kept)
    )


@functools.lru_cache(maxsize=256)
def combinations_of(size: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return every choice of ``count`` of ``size`` places."""
    return tuple(itertools.combinations(range(size), count))


def chosen_places(size: int, count: int, draw: Draw) -> Iterator[tuple[int, ...]]:
    """Yield choices of ``count`` of ``size`` places in drawn order: all of them, or sixty-four where they are many."""
    if math.comb(size, count) <= ALL_CHOICES_UP_TO:
        yield from draw.dealt(combinations_of(size, count))
    else:
        for _ in range(RANDOM_TRIES):
            yield tuple(sorted(itertools.islice(draw.dealt(range(size)), count)))


class Reversed(Tabled):
    """The pieces in reverse order."""

    least = 2

    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return the one arrangement, equal pieces moving least; none for a palindrome."""
        turned = pieces[::-1]
        return [] if turned == pieces else [tuple(fewest_moves(pieces, turned))]


class Neighbours:
    """One pass from left to right: with probability 1/2 a piece is swapped with the next one, and both are passed."""

    least = 2

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield passes, then every single exchange of neighbours."""
        size = len(pieces)
        if len(set(pieces)) < 2:
            return
        if size <= _COINS:
            yield self._passed(pieces, number)
        draw = random.Random(number)
        for _ in range(RANDOM_TRIES):
            yield self._passed(pieces, draw.getrandbits(size))
        singles = list(range(size - 1))
        draw.shuffle(singles)
        for place in singles:
            yield (*range(place), place + 1, place, *range(place + 2, size))

    def _passed(self, pieces: Sequence[str], coins: int) -> tuple[int, ...]:
        order = list(range(len(pieces)))
        left = coins & (1 << len(pieces) - 1) - 1
        while left:
            place = (left & -left).bit_length()
            # Equal neighbours stay; no others can come to a place where an equal piece stood.
            if pieces[place - 1] != pieces[place]:
                order[place - 1], order[place] = place, place - 1
            left &= -2 << place  # the next piece is passed
        return tuple(order)


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
    before = [str(number) for number in pattern]
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
    orders = []
    for inner in all_orders(size - 2):
        order = around(inner, 1, 1)
        moved = tuple(place for place, source in enumerate(order) if source != place)
        if len(moved) <= 2 * count and len(moved) - _cycles(order, moved) == count:
            orders.append(_Order(operator.itemgetter(*order), moved, tail_of(order, size)))
    return orders


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
    """Exchange inner pairs not yet connected by earlier exchanges, so that each exchange needs one more to undo."""
    sources: dict[int, int] = {}
    tied: dict[int, int] = {}
    while count:
        i, j = 1 + draw.below(size - 2), 1 + draw.below(size - 2)
        group_kept, merged = tied.get(i, i), tied.get(j, j)
        if group_kept != merged:
            sources[i], sources[j] = sources.get(j, j), sources.get(i, i)
            tied[i] = tied[j] = group_kept
            for place, group in tied.items():
                if group == merged:
                    tied[place] = group_kept
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
    return exchanges_needed(before, [pieces[source] for source in sources.values()])


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
    before = [str(number) for number in pattern]
    inner = range(1, len(pattern) - 1)
    draw = Draw(count)
    orders: set[tuple[int, ...]] = set()
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
            orders.add(tuple(fewest_moves(before, after)))
    return tuple(sorted(orders))


def exchanges_needed(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the fewest exchanges of two pieces that turn one sequence into another of the same pieces.

    A misplaced piece is an edge from the previous to the present piece at its position; each disjoint cycle saves
    one exchange, so the largest number of them is searched for. Intended for up to ten misplaced pieces.
    """
    edges = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    return len(edges) - _most_cycles(edges)


def _most_cycles(edges: list[tuple[str, str]]) -> int:
    if not edges:
        return 0
    return max(
        1 + _most_cycles(remaining) for remaining in _without_a_cycle(edges[0][0], edges[0][1], edges[1:])
    )


def _without_a_cycle(goal: str, at: str, edges: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    if at == goal:
        yield edges
        return
    for place, (source, target) in enumerate(edges):
        if source == at:
            yield from _without_a_cycle(goal, target, edges[:place] + edges[place + 1 :])
