"""Rules that put letters in, take letters out, replace them all, or set spaces between them."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence

from stimuli.scramble.alphabets import Alphabet
from stimuli.scramble.changes import KEPT_UP_TO, Spelt, Tail, known_tail, tail_of
from stimuli.scramble.orders import (
    ALL_CHOICES_UP_TO,
    Arrangement,
    Tabled,
    chosen_places,
    combinations_of,
)
from stimuli.scramble.sites import Replacements
from stimuli.scramble.ways import ways_of
from stimuli.seeds import Draw

_Cuts = tuple[tuple[int, int], ...]

_TRIES = 64
_TWO_PLACES = 4  # letters of a word that may change at two places
_BLOCK = 3  # digits drawn at a time: 25 letters make 15,625 blocks, and four blocks fit 64 bits


def _at_most_half(size: int, count: int) -> int:
    return min(size // 2, count)


class Deleted(Tabled):
    """Letters are taken out: the first, the last, or drawn inner ones; at most half of the word's letters."""

    least = 2

    def __init__(self, position: str, count: int, *, full: bool = False) -> None:
        self.position, self.count, self._full = position, count, full
        self.none_fits = f"can lose fewer than {count} letters" if full and count > 1 else None
        self._ways: dict[int, Sequence[tuple[_Cuts, Tail]]] = {}

    def ready(self, letters: str) -> Sequence[tuple[_Cuts, Tail]] | None:
        """Return every choice of letters as cuts, last first, with what a record says of it."""
        size = len(letters)
        ways = self._ways.get(size)
        if ways is None:
            ways = self._listed(size)
            if size <= KEPT_UP_TO:
                self._ways[size] = ways
        return ways or None

    def _listed(self, size: int) -> Sequence[tuple[_Cuts, Tail]]:
        count = _at_most_half(size, self.count)
        if self._full and count < self.count:
            return ()
        if self.position == "internal":
            inner = size - 2
            if not (count := min(count, inner)) >= 1 or math.comb(inner, count) > ALL_CHOICES_UP_TO:
                return ()
            choices = combinations_of(inner, count)
            return ways_of(size, choices, lambda out: (_cuts(out), tail_of(_left(size, out), size)))
        begin = 0 if self.position == "initial" else size - count
        left = (*range(begin), *range(begin + count, size))
        return ((((begin, begin + count),), tail_of(left, size)),)

    def spelled(
        self, letters: str, ready: Sequence[tuple[_Cuts, Tail]], number: int, site_number: int
    ) -> Spelt | None:
        """Spell what is left after one choice of letters."""
        cuts, tail = ready[number % len(ready)]
        for begin, end in cuts:
            letters = letters[:begin] + letters[end:]
        return letters, tail

    def table(self, pieces: Sequence[str]) -> Sequence[tuple[int, ...]] | None:
        """Return what is left, for every choice of letters."""
        size = len(pieces)
        count = _at_most_half(size, self.count)
        if self._full and count < self.count:
            return ()
        if self.position == "initial":
            return [tuple(range(count, size))]
        if self.position == "final":
            return [tuple(range(size - count))]
        count = min(count, size - 2)
        if count < 1:
            return ()
        if math.comb(size - 2, count) > ALL_CHOICES_UP_TO:
            return None
        return _left_by_choice(size, count)

    def drawn(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield what is left, for sixty-four choices."""
        size = len(pieces)
        for out in chosen_places(size - 2, _at_most_half(size, self.count), Draw(number)):
            yield _left(size, out)


def _left(size: int, out: Sequence[int]) -> tuple[int, ...]:
    return tuple([place for place in range(size) if place - 1 not in out])


def _cuts(out: Sequence[int]) -> _Cuts:
    return tuple([(place + 1, place + 2) for place in reversed(out)])


@functools.lru_cache(maxsize=256)
def _left_by_choice(size: int, count: int) -> Sequence[tuple[int, ...]]:
    return ways_of(size, combinations_of(size - 2, count), lambda out: _left(size, out))


class Inserted:
    """New letters of the language's alphabet are put in: before the first, after the last, or between inner letters."""

    least = 2

    def __init__(self, position: str, count: int, letters: Alphabet, *, full: bool = False) -> None:
        self.position, self.count, self._letters, self._full = position, count, letters.letters, full
        self.new_letters = letters
        self.none_fits = f"can get fewer than {count} letters" if full and count > 1 else None
        self._ways: dict[int, Sequence[tuple[Sequence[int], Tail]]] = {}

    def ready(self, letters: str) -> Sequence[tuple[Sequence[int], Tail]] | None:
        """Return every choice of gaps, last first, with what a record says of it; None where they are many."""
        size = len(letters)
        ways = self._ways.get(size)
        if ways is None:
            ways = self._listed(size)
            if size <= KEPT_UP_TO:
                self._ways[size] = ways
        return ways or None

    def _listed(self, size: int) -> Sequence[tuple[Sequence[int], Tail]]:
        count = _at_most_half(size, self.count)
        if self._full and count < self.count:
            return ()
        choices: Sequence[Sequence[int]] = [(0,) * count if self.position == "initial" else (size,) * count]
        if self.position == "internal":
            if math.comb(size - 1, count) > ALL_CHOICES_UP_TO:
                return ()
            choices = [
                tuple([gap + 1 for gap in reversed(chosen)]) for chosen in combinations_of(size - 1, count)
            ]
        return ways_of(size, choices, lambda gaps: (gaps, tail_of(_with_gaps(size, gaps), size)))

    def spelled(
        self, letters: str, ready: Sequence[tuple[Sequence[int], Tail]], number: int, site_number: int
    ) -> Spelt | None:
        """Spell one drawing of gaps and letters."""
        new = self._letters
        if self.count == 1 or len(letters) < _TWO_PLACES:
            drawn, way = divmod(number % (len(ready) * len(new)), len(ready))
            (gap,), tail = ready[way]
            return letters[:gap] + new[drawn] + letters[gap:], tail
        number, way = divmod(number, len(ready))
        gaps, tail = ready[way]
        for gap in gaps:
            number, drawn = divmod(number, len(new))
            letters = letters[:gap] + new[drawn] + letters[gap:]
        return letters, tail

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield the word with drawn letters put in; all single letters in turn, or sixty-four drawings of several."""
        size = len(pieces)
        count = _at_most_half(size, self.count)
        if self._full and count < self.count:
            return
        draw = Draw(number)
        gaps = {"initial": [0] * count, "final": [size] * count}.get(self.position)
        if gaps is not None and count == 1:
            for new in draw.dealt(self._letters):
                yield _with_letters(size, gaps, [new])
            return
        for _ in range(_TRIES):
            chosen = gaps or sorted(itertools.islice(draw.dealt(range(1, size)), count))
            drawn = [self._letters[draw.below(len(self._letters))] for _ in chosen]
            yield _with_letters(size, chosen, drawn)


class AllSubstituted:
    """Every letter is replaced by another one."""

    least = 1

    def __init__(self, replacements: Replacements) -> None:
        self._replacements = replacements
        self.new_letters = replacements.alphabet
        self._pools = {letter: replacements.of(letter, letter) for letter in replacements.letters}
        sizes = {len(pool) for pool in self._pools.values()}
        self._even = sizes.pop() if len(sizes) == 1 else 0

    def ready(self, letters: str) -> tuple[list[tuple[str, ...]], list[tuple[int, ...]], int, Tail] | None:
        """Return what may stand for each of up to twelve letters of the alphabet, and how their choice is drawn."""
        size = len(letters)
        if not self._even or size > 4 * _BLOCK:
            return None
        try:
            pools = [self._pools[letter] for letter in letters]
        except KeyError:
            return None
        return pools, _blocks(self._even), (size - 1) // _BLOCK, known_tail((None,) * size, size)

    def spelled(
        self,
        letters: str,
        ready: tuple[list[tuple[str, ...]], list[tuple[int, ...]], int, Tail],
        number: int,
        site_number: int,
    ) -> Spelt | None:
        """Spell one drawing, made from a single number."""
        pools, blocks, more, tail = ready
        number, digits = number // len(blocks), blocks[number % len(blocks)]
        while more:
            digits += blocks[number % len(blocks)]
            number //= len(blocks)
            more -= 1
        return "".join(map(operator.getitem, pools, digits)), tail

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield sixty-four drawings."""
        draw = Draw(number)
        pools = [self._pools.get(letter) or self._replacements.of(letter, letter) for letter in pieces]
        if all(pools):
            for _ in range(_TRIES):
                yield tuple([pool[draw.below(len(pool))] for pool in pools])


@functools.lru_cache(maxsize=4)
def _blocks(base: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(base), repeat=_BLOCK))


class Unmoved:
    """Letters stay in their order, for words that are only shown with spaces between their letters."""

    least = 2

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield the order that there is."""
        yield tuple(range(len(pieces)))


class Nothing:
    """The rule of the intact condition."""

    least = 0

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield nothing."""
        return iter(())


def _with_gaps(size: int, gaps: Sequence[int]) -> tuple[int | None, ...]:
    sources: list[int | None] = list(range(size))
    for gap in gaps:
        sources.insert(gap, None)
    return tuple(sources)


def _with_letters(size: int, gaps: Sequence[int], new: Sequence[str]) -> Arrangement:
    arranged: list[int | str] = list(range(size))
    for gap, letter in sorted(zip(gaps, new, strict=True), key=lambda one: one[0], reverse=True):
        arranged.insert(gap, letter)
    return tuple(arranged)
