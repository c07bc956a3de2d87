"""Rules that exchange, replace, insert or delete letters, or set spaces between them, and the letters of languages.

A site is drawn by word, position, distance and letter class alone, not by type, so a transposition and its control
take the same pair; where a study has both, the first drawn site that all of them can use is taken.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stimuli.errors import UserError
from stimuli.scramble.changes import KEPT_UP_TO, Spelt, Tail, known_tail, tail_of
from stimuli.scramble.orders import (
    ALL_CHOICES_UP_TO,
    Arrangement,
    Tabled,
    chosen_places,
    combinations_of,
    ways_of,
)
from stimuli.seeds import Draw
from stimuli.words import base_language, is_turkic, scramble_data

Site = tuple[int, int]
SiteKey = tuple[str, int, str, int]

Recorded = tuple[int, int, Any]
"""A site with what a rule knows of a change there before it knows the word: what a record says of it, and what spells it."""

AnySite = TypeVar("AnySite", Site, Recorded)

_REMEMBERED = 20_000


@dataclass(frozen=True)
class Alphabet:
    """The letters of a language."""

    language: str  # its code
    letters: tuple[str, ...]  # small letters that may be put in as new ones
    vowels: frozenset[str]
    either: frozenset[str]  # letters that are neither vowel nor consonant for us since they can be both

    def writes(self, letters: Sequence[str]) -> bool:
        """Return whether letters are in the alphabet's script, so that new letters would not stand out."""
        alphabet_script = script(self.letters[0])
        return all(script(letter) == alphabet_script for letter in letters)

    def letter_class(self, letter: str) -> str:
        """Return ``vowel``, ``consonant`` or ``either`` for a small letter, one with marks by its base letter."""
        for form in (letter, unicodedata.normalize("NFD", letter)[0]):
            if form in self.vowels:
                return "vowel"
            if form in self.either:
                return "either"
            if form in self.letters:
                return "consonant"
        return "either"


@functools.cache
def alphabet(language: str, wanted_by: str) -> Alphabet:
    """Return the letters of a language."""
    known = scramble_data("letters")["languages"]
    entry = known.get(base_language(language))
    if entry is None:
        raise UserError(
            f"{wanted_by} needs the alphabet of language {language!r}, which is not known here",
            mend=f"Use a type or option that puts in no new letters, or one of: {', '.join(sorted(known))}.",
        )
    vowels, either = frozenset(entry["vowels"]), frozenset(entry["either"])
    return Alphabet(base_language(language), tuple(entry["alphabet"]), vowels, either)


@functools.lru_cache(maxsize=4096)
def script(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name, such as ``LATIN`` or ``HANGUL``."""
    return unicodedata.name(letter[0], "").partition(" ")[0]


@functools.lru_cache(maxsize=4096)
def shape(letter: str) -> str:
    """Return the outline of a small letter: ``ascender``, ``descender``, ``both`` or ``neutral``."""
    data = scramble_data("shapes")
    for outline in ("ascender", "descender", "both", "neutral"):
        if letter in data[outline]:
            return outline
    base, *marks = list(unicodedata.normalize("NFD", letter))
    base_shape = shape(base) if base != letter else "neutral"
    rises = base_shape in ("ascender", "both") or any(mark in data["rises"] for mark in marks)
    falls = base_shape in ("descender", "both") or any(mark in data["falls"] for mark in marks)
    if rises:
        return "both" if falls else "ascender"
    return "descender" if falls else "neutral"


_UPPER = {"ß": "ẞ"}
_LOWER = {"ẞ": "ß"}
_TURKIC_UPPER = {"i": "İ", "ı": "I"}
_TURKIC_LOWER = {"İ": "i", "I": "ı"}


def upper(letter: str, language: str) -> str:
    """Return a letter as a capital, or unchanged where the capital would not be one character for one."""
    special = {**_UPPER, **_TURKIC_UPPER} if is_turkic(language) else _UPPER
    return _one_for_one(letter, special.get(letter[0], letter[0].upper()))


def lower(letter: str, language: str) -> str:
    """Return a letter in lower case, or unchanged where that would not be one character for one."""
    special = {**_LOWER, **_TURKIC_LOWER} if is_turkic(language) else _LOWER
    return _one_for_one(letter, special.get(letter[0], letter[0].lower()))


@functools.lru_cache(maxsize=1 << 13)
def with_case_of(letter: str, model: str, language: str) -> str | None:
    """Return ``letter`` as a capital where ``model`` is one, in lower case where it is not."""
    if model[0].isupper() or model[0].istitle():
        changed = upper(letter, language)
        return None if changed[0].islower() and changed[0].upper() != changed[0] else changed
    if model[0].islower() and model[0].upper() != model[0]:
        changed = lower(letter, language)
        return None if changed[0].isupper() and changed[0].lower() != changed[0] else changed
    return letter


def _one_for_one(letter: str, changed: str) -> str:
    return changed + letter[1:] if len(changed) == 1 else letter


def _pairs(begin: int, end: int, distance: int) -> list[Site]:
    return [(place, place + distance) for place in range(begin, end - distance)]


POSITIONS: Mapping[str, Callable[[int, int, int], list[Site]]] = {
    "initial": lambda n, d, letter: _pairs(0, d + 1, d),
    "internal": lambda n, d, letter: _pairs(1, n - 1, d),
    "final": lambda n, d, letter: _pairs(n - 1 - d, n, d),
    "external": lambda n, d, letter: [(0, d), (n - 1 - d, n - 1)] if n > d + 1 else [],
    "internal_initial": lambda n, d, letter: _pairs(1, min(d + 2, n - 1), d),
    "internal_final": lambda n, d, letter: _pairs(max(1, n - 2 - d), n - 1, d),
    "after_first": lambda n, d, letter: _pairs(1, n, d),
    "any": lambda n, d, letter: _pairs(0, n, d),
    "first_and_last": lambda n, d, letter: [(0, n - 1)],
    "N": lambda n, d, letter: _pairs(letter - 1, letter + d, d),
}
"""Pairs of places by position: (letters of the word, distance, number of the letter where one is named) → pairs."""


class SiteRule(ABC):
    """Common part of transpositions and substitutions: the pairs of letters that they may change."""

    least = 2

    def __init__(
        self, position: str, distance: int, of_class: str, letter: int, letters: Alphabet | None
    ) -> None:
        self.key: SiteKey = (position, distance, of_class, letter)
        self._pairs = POSITIONS[position]
        self._letters = None if of_class == "any" else letters
        # Where no two letters so far apart are the same, all pairs of places are sites.
        self._alike_apart = 0 if self._letters is not None or position == "first_and_last" else distance
        self._alike = re.compile(rf"(.).{{{distance - 1}}}\1")
        self._by_size: dict[int, tuple[Recorded, ...]] = {}
        self._known: dict[Sequence[str], tuple[Site, ...]] = {}

    def sites(self, letters: Sequence[str]) -> tuple[Site, ...]:
        """Return the pairs of different letters that the rule allows in a word."""
        sites = self._known.get(letters)
        if sites is None:
            sites = tuple(self._allowed(letters, self._pairs_in(len(letters))))
            if len(letters) <= KEPT_UP_TO:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[letters] = sites
        return sites

    def ready(self, letters: str) -> Sequence[Recorded] | None:
        """Return the sites of a word, each with what a record says of a change there; None where there are none."""
        size = len(letters)
        if size > KEPT_UP_TO:
            allowed = self._allowed(letters, self._pairs_in(size))
            return ways_of(size, allowed, lambda site: self.recorded(size, *site)) or None
        recorded = self._by_size.get(size)
        if recorded is None:
            recorded = tuple([self.recorded(size, i, j) for i, j in self._pairs_in(size)])
            self._by_size[size] = recorded
        if self._alike_apart and self._alike.search(letters) is None:
            return recorded or None
        found = self._allowed(letters, recorded)
        # Tuples of what never changes cost the garbage collector nothing; most words share theirs with their length.
        return (recorded if len(found) == len(recorded) else tuple(found)) or None

    def recorded(self, size: int, i: int, j: int) -> Recorded:
        """Return a site of a word of so many letters with what a record says of a change there."""
        return i, j, tail_of(exchange(size, i, j), size)

    def _pairs_in(self, size: int) -> list[Site]:
        _, distance, _, letter = self.key
        inside = [(i, j) for i, j in self._pairs(size, distance, letter) if 0 <= i < j < size]
        return list(dict.fromkeys(inside))

    def _allowed(self, letters: Sequence[str], sites: Sequence[AnySite]) -> list[AnySite]:
        """Return the sites, with a record or without, at which a word has different letters of the class."""
        if self._letters is None:
            return [site for site in sites if letters[site[0]] != letters[site[1]]]
        wanted, letter_class = self.key[2].removesuffix("s"), self._letters.letter_class
        return [
            site
            for site in sites
            if letters[site[0]] != letters[site[1]]
            and letter_class(letters[site[0]]) == letter_class(letters[site[1]]) == wanted
        ]

    def drawn_sites(self, letters: Sequence[str], site_number: int) -> Iterator[Site]:
        """Yield the sites of a word in the order that its number draws."""
        sites = self.sites(letters)
        if sites:
            first = site_number % len(sites)
            yield sites[first]
            if len(sites) > 1:
                yield from Draw(site_number).dealt(sites[:first] + sites[first + 1 :])

    @abstractmethod
    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield what the rule makes of one site."""

    def candidates(self, pieces: Sequence[str], number: int) -> Iterator[Arrangement]:
        """Yield arrangements site by site, with one number for the sites and the new letters."""
        return self.candidates_at(pieces, number, number)

    def candidates_at(self, pieces: Sequence[str], number: int, site_number: int) -> Iterator[Arrangement]:
        """Yield arrangements site by site, the sites in the order that their own number draws."""
        for site in self.drawn_sites(pieces, site_number):
            yield from self.at(pieces, site, number)


class Transposed(SiteRule):
    """The two letters of a site are transposed."""

    def spelled(self, letters: str, ready: Sequence[Recorded], number: int, site_number: int) -> Spelt | None:
        """Spell the exchange of the first drawn site."""
        i, j, tail = ready[site_number % len(ready)]
        return letters[:i] + letters[j] + letters[i + 1 : j] + letters[i] + letters[j + 1 :], tail

    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield the one exchange."""
        yield exchange(len(letters), *site)


class Substituted(SiteRule):
    """The letters of a site are replaced by new ones: never by either of the two, never both by the same."""

    def __init__(self, *site: Any, replacements: Replacements) -> None:
        super().__init__(*site)
        self.new_letters = replacements.alphabet
        self._new_for = functools.lru_cache(_REMEMBERED)(replacements.of_pair)
        self._of_pair: dict[str, Any] = {}

    def recorded(self, size: int, i: int, j: int) -> Recorded:
        """Return a site with the record of two new letters."""
        return i, j, _without(size, i, j)

    def spelled(self, letters: str, ready: Sequence[Recorded], number: int, site_number: int) -> Spelt | None:
        """Spell one drawing of new letters at the first site."""
        i, j, tail = ready[site_number % len(ready)]
        pair = letters[i] + letters[j]
        first, firsts, second, seconds, period = self._of_pair.get(pair) or self._met(pair)
        if not first or not second:
            return None
        place, drawn = divmod(number % period, firsts)
        new, other = first[drawn], second[place % seconds]
        if new == other:  # the pools hold a letter once, so the next one differs
            other = second[(place + 1) % seconds]
            if new == other:
                return None
        return letters[:i] + new + letters[i + 1 : j] + other + letters[j + 1 :], tail

    def _met(self, pair: str) -> Any:
        """Return the prepared replacements of a pair of letters, and cache them."""
        if len(self._of_pair) >= _REMEMBERED:
            self._of_pair.clear()
        self._of_pair[pair] = self._made_ready(*self._new_for(*pair))
        return self._of_pair[pair]

    def _made_ready(self, first: tuple[str, ...], second: tuple[str, ...]) -> Any:
        """Return what may stand for each letter and how much that is, and after how many numbers all draws come again."""
        firsts, seconds = len(first), len(second)
        return first, firsts, second, seconds, firsts * seconds

    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield every pair of new letters in drawn order."""
        draw = Draw(number)
        i, j = site
        pools = self._new_for(letters[i], letters[j])
        for first in draw.dealt(pools[0]):
            for second in draw.dealt(pools[1]):
                if second == first:
                    continue
                yield (*range(i), first, *range(i + 1, j), second, *range(j + 1, len(letters)))


class SubstitutedOne(Substituted):
    """One of a site's letters, drawn, is replaced by a new one: by neither of the two."""

    def recorded(self, size: int, i: int, j: int) -> Recorded:
        """Return a site with what takes its pair out of a word, and what puts a new letter in the place of either."""
        second, first = [(slice(at), slice(at + 1, None), _without(size, at, at)) for at in (j, i)]
        return i, j, (slice(i, j + 1, j - i), first, second)

    def spelled(self, letters: str, ready: Sequence[Recorded], number: int, site_number: int) -> Spelt | None:
        """Spell one drawing of a new letter at the first site."""
        _, _, (both, first, second) = ready[site_number % len(ready)]
        pair = letters[both]
        drawings = self._of_pair.get(pair) or self._met(pair)
        drawn = number % len(drawings)
        before, after, tail = first if drawn & 1 else second
        new = drawings[drawn]
        return (f"{letters[before]}{new}{letters[after]}", tail) if new else None

    def _made_ready(self, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
        """Return the letter that each number draws, until they come again: an odd one draws for the first of the pair."""
        period = math.lcm(len(first) or 1, len(second) or 1)
        drawings = [""] * (2 * period)
        if first:
            drawings[1::2] = first * (period // len(first))
        if second:
            drawings[::2] = second * (period // len(second))
        return tuple(drawings)

    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield every new letter for either of the two in drawn order."""
        draw = Draw(number)
        pools = self._new_for(letters[site[0]], letters[site[1]])
        for which in draw.dealt((0, 1)):
            place = site[which]
            for new in draw.dealt(pools[which]):
                yield (*range(place), new, *range(place + 1, len(letters)))


def exchange(size: int, i: int, j: int) -> tuple[int, ...]:
    """Return the arrangement of ``size`` pieces in which two are swapped."""
    return (*range(i), j, *range(i + 1, j), i, *range(j + 1, size))


def _without(size: int, one: int, other: int) -> Tail:
    return tail_of(tuple([None if place in (one, other) else place for place in range(size)]), size)


class Replacements:
    """Possible replacements of letters."""

    def __init__(self, letters: Alphabet, cv: str, outline: str) -> None:
        self._letters, self._cv, self._outline = letters, cv, outline
        self._fitting = functools.lru_cache(_REMEMBERED)(self._fitting_for)

    @property
    def alphabet(self) -> Alphabet:
        """Alphabet of the new letters."""
        return self._letters

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that new ones come from."""
        return self._letters.letters

    def of(self, letter: str, but: Sequence[str]) -> tuple[str, ...]:
        """Return the letters that may replace one, without those in ``but``."""
        return tuple([new for new in self._fitting(letter) if new not in but])

    def of_pair(self, one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what may replace each of two letters: neither of them."""
        both = (one, other)
        return self.of(one, both), self.of(other, both)

    def _fitting_for(self, letter: str) -> tuple[str, ...]:
        return tuple([new for new in self._letters.letters if self._fits(letter, new)])

    def _fits(self, letter: str, new: str) -> bool:
        if self._cv == "keep":
            wanted = self._letters.letter_class(letter)
            if self._letters.letter_class(new) != ("consonant" if wanted == "either" else wanted):
                return False
        return self._outline == "any" or (shape(new) == shape(letter)) == (self._outline == "keep")


_Cuts = tuple[tuple[int, int], ...]

_TRIES = 64
_TWO_PLACES = 4  # letters of a word that may change at two places
_BLOCK = 3  # digits drawn at a time: 25 letters make 15,625 blocks, and four blocks fit 64 bits


Way = TypeVar("Way")


class _Counted(ABC, Generic[Way]):
    """Common part of rules that put in or take out some letters of a word, at most half as many as it has."""

    least = 2

    def __init__(self, position: str, count: int, *, full: bool = False) -> None:
        self.position, self.count, self._full = position, count, full
        self._ways: dict[int, Sequence[tuple[Way, Tail]]] = {}

    def ready(self, letters: str) -> Sequence[tuple[Way, Tail]] | None:
        """Return every choice of places, last first, with what a record says of it; None where they are many."""
        size = len(letters)
        ways = self._ways.get(size)
        if ways is None:
            ways = self._listed(size)
            if size <= KEPT_UP_TO:
                self._ways[size] = ways
        return ways or None

    @abstractmethod
    def _listed(self, size: int) -> Sequence[tuple[Way, Tail]]: ...

    def _of_size(self, size: int) -> int:
        """Return how many letters of a word of so many it is; none where fewer than the count are too few."""
        count = min(size // 2, self.count)
        return 0 if self._full and count < self.count else count


class Deleted(_Counted[_Cuts], Tabled):
    """Letters are taken out: the first, the last, or drawn inner ones."""

    def __init__(self, position: str, count: int, *, full: bool = False) -> None:
        super().__init__(position, count, full=full)
        self.none_fits = f"can lose fewer than {count} letters" if full and count > 1 else None

    def _listed(self, size: int) -> Sequence[tuple[_Cuts, Tail]]:
        count = self._of_size(size)
        if not count:
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
        count = self._of_size(size)
        if not count:
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
        for out in chosen_places(size - 2, self._of_size(size), Draw(number)):
            yield _left(size, out)


def _left(size: int, out: Sequence[int]) -> tuple[int, ...]:
    return tuple([place for place in range(size) if place - 1 not in out])


def _cuts(out: Sequence[int]) -> _Cuts:
    return tuple([(place + 1, place + 2) for place in reversed(out)])


@functools.lru_cache(maxsize=256)
def _left_by_choice(size: int, count: int) -> Sequence[tuple[int, ...]]:
    return ways_of(size, combinations_of(size - 2, count), lambda out: _left(size, out))


class Inserted(_Counted[Sequence[int]]):
    """New letters of the language's alphabet are inserted: before the first, after the last, or between inner letters."""

    def __init__(self, position: str, count: int, letters: Alphabet, *, full: bool = False) -> None:
        super().__init__(position, count, full=full)
        self.new_letters, self._letters = letters, letters.letters
        self.none_fits = f"can get fewer than {count} letters" if full and count > 1 else None

    def _listed(self, size: int) -> Sequence[tuple[Sequence[int], Tail]]:
        count = self._of_size(size)
        if not count:
            return ()
        choices: Sequence[Sequence[int]] = [(0,) * count if self.position == "initial" else (size,) * count]
        if self.position == "internal":
            if math.comb(size - 1, count) > ALL_CHOICES_UP_TO:
                return ()
            every = combinations_of(size - 1, count)
            choices = [tuple([gap + 1 for gap in reversed(chosen)]) for chosen in every]
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
        count = self._of_size(size)
        if not count:
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
    for gap, letter in sorted(zip(gaps, new, strict=True), key=lambda insertion: insertion[0], reverse=True):
        arranged.insert(gap, letter)
    return tuple(arranged)
