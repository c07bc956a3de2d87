"""Transpositions, and the substitutions that control for them: both act on a pair of letters, their *site*.

A site is drawn by word, position, distance and letter class alone, not by type, so a transposition and its control
take the same pair; where a study has both, the first drawn site that all of them can use is taken.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from stimuli.scramble.alphabets import Alphabet, shape
from stimuli.scramble.changes import KEPT_UP_TO, Spelt, Tail, tail_of
from stimuli.scramble.orders import Arrangement
from stimuli.scramble.ways import ways_of
from stimuli.seeds import Draw

Site = tuple[int, int]
SiteKey = tuple[str, int, str, int]

Recorded = tuple[int, int, Tail, Tail]
"""A site with what a record says of a change of it, or of its first and of its second letter."""

_Pools = tuple[Sequence[str], int, Sequence[str], int, int]
"""What may stand for each letter of a pair and how much that is, and after how many numbers all draws come again."""

AnySite = TypeVar("AnySite", Site, Recorded)

_REMEMBERED = 20_000


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
    """What a transposition and a substitution share: which pairs of letters they may take.

    Parameters
    ----------
    position : str
        One of :data:`POSITIONS`.
    distance : int
        1 for neighbours, 2 for one letter between, …
    of_class : str
        ``any``, ``consonants`` or ``vowels``: what both letters must be.
    letter : int
        First letter of the pair, from 1, for the position ``N``.
    letters : Alphabet or None
        Needed where ``of_class`` is not ``any``.
    """

    least = 2

    def __init__(
        self, position: str, distance: int, of_class: str, letter: int, letters: Alphabet | None
    ) -> None:
        self.key: SiteKey = (position, distance, of_class, letter)
        self._pairs = POSITIONS[position]
        self._letters = None if of_class == "any" else letters
        # Where no two letters so far apart are the same, all pairs of places are sites.
        self._alike_apart = 0 if self._letters is not None or position == "first_and_last" else distance
        self._by_size: dict[int, tuple[Recorded, ...]] = {}
        self._known: dict[Sequence[str], tuple[Site, ...]] = {}

    def sites(self, letters: Sequence[str]) -> tuple[Site, ...]:
        """Return the pairs of different letters that the rule allows in a word."""
        found = self._known.get(letters)
        if found is None:
            found = tuple(self._allowed(letters, self._pairs_in(len(letters))))
            if len(letters) <= KEPT_UP_TO:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[letters] = found
        return found

    def recorded_sites(self, letters: str) -> Sequence[Recorded] | None:
        """Return the sites of a word, each with what a record says of a change there; None where there are none."""
        size = len(letters)
        if size > KEPT_UP_TO:
            allowed = self._allowed(letters, self._pairs_in(size))
            return ways_of(size, allowed, lambda site: self.recorded(size, *site)) or None
        recorded = self._by_size.get(size)
        if recorded is None:
            recorded = tuple([self.recorded(size, i, j) for i, j in self._pairs_in(size)])
            self._by_size[size] = recorded
        if self._alike_apart and True not in map(operator.eq, letters, letters[self._alike_apart :]):
            return recorded or None
        found = self._allowed(letters, recorded)
        # Tuples of what never changes cost the garbage collector nothing; most words share theirs with their length.
        return (recorded if len(found) == len(recorded) else tuple(found)) or None

    def recorded(self, size: int, i: int, j: int) -> Recorded:
        """Return a site of a word of so many letters with what a record says of a change there."""
        tail = tail_of(exchange(size, i, j), size)
        return i, j, tail, tail

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
        found = self.sites(letters)
        if found:
            first = site_number % len(found)
            yield found[first]
            if len(found) > 1:
                yield from Draw(site_number).dealt(found[:first] + found[first + 1 :])

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
    """The two letters of a site change places."""

    def ready(self, letters: str) -> Sequence[Recorded] | None:
        """Return the sites of a word."""
        return self.recorded_sites(letters)

    def spelled(self, letters: str, ready: Sequence[Recorded], number: int, site_number: int) -> Spelt | None:
        """Spell the exchange of the first drawn site."""
        i, j, tail, _ = ready[site_number % len(ready)]
        return letters[:i] + letters[j] + letters[i + 1 : j] + letters[i] + letters[j + 1 :], tail

    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield the one exchange."""
        yield exchange(len(letters), *site)


class Substituted(SiteRule):
    """The letters of a site are replaced by new ones: never by either of the two, never both by the same.

    Parameters
    ----------
    position, distance, of_class, letter, letters
        As :class:`SiteRule`.
    replacements : Replacements
        Which new letters may stand for a letter.
    count : int
        2 replaces the pair, 1 one of the two, drawn.
    """

    def __init__(
        self,
        position: str,
        distance: int,
        of_class: str,
        letter: int,
        letters: Alphabet,
        *,
        replacements: Replacements,
        count: int,
    ) -> None:
        super().__init__(position, distance, of_class, letter, letters)
        self.new_letters = letters
        self._replacements = replacements
        self._takes_one = count == 1
        self._pools: dict[str, _Pools] = {}

    def ready(self, letters: str) -> Sequence[Recorded] | None:
        """Return the sites of a word."""
        return self.recorded_sites(letters)

    def recorded(self, size: int, i: int, j: int) -> Recorded:
        """Return a site with the record of new letters: of either alone, or of both."""
        if self._takes_one:
            return i, j, _without(size, i, i), _without(size, j, j)
        both = _without(size, i, j)
        return i, j, both, both

    def spelled(self, letters: str, ready: Sequence[Recorded], number: int, site_number: int) -> Spelt | None:
        """Spell one drawing of new letters at the first site."""
        i, j, tail, other_tail = ready[site_number % len(ready)]
        pair = letters[i] + letters[j]
        first, firsts, second, seconds, period = self._pools.get(pair) or self._pools_of(pair)
        drawn = number % period
        if self._takes_one:
            if drawn & 1:
                return (
                    (f"{letters[:i]}{first[(drawn >> 1) % firsts]}{letters[i + 1 :]}", tail)
                    if first
                    else None
                )
            return (
                (f"{letters[:j]}{second[(drawn >> 1) % seconds]}{letters[j + 1 :]}", other_tail)
                if second
                else None
            )
        if not first or not second:
            return None
        place, drawn = divmod(drawn, firsts)
        new, other = first[drawn], second[place % seconds]
        if new == other:  # the pools hold a letter once, so the next one differs
            other = second[(place + 1) % seconds]
            if new == other:
                return None
        return letters[:i] + new + letters[i + 1 : j] + other + letters[j + 1 :], tail

    def _pools_of(self, pair: str) -> _Pools:
        if len(self._pools) >= _REMEMBERED:
            self._pools.clear()
        first, second = self._replacements.of(pair[0], pair), self._replacements.of(pair[1], pair)
        firsts, seconds = len(first), len(second)
        pools = first, firsts, second, seconds, 2 * (firsts or 1) * (seconds or 1)
        self._pools[pair] = pools
        return pools

    def at(self, letters: Sequence[str], site: Site, number: int) -> Iterator[Arrangement]:
        """Yield every pair of new letters in drawn order."""
        draw = Draw(number)
        pair = letters[site[0]] + letters[site[1]]
        if len(pair) == 2:
            pools = (self._pools.get(pair) or self._pools_of(pair))[:3:2]
        else:
            both = letters[site[0]], letters[site[1]]
            pools = self._replacements.of(both[0], both), self._replacements.of(both[1], both)
        if self._takes_one:
            for which in draw.dealt((0, 1)):
                place = site[which]
                for new in draw.dealt(pools[which]):
                    yield (*range(place), new, *range(place + 1, len(letters)))
            return
        i, j = site
        for first in draw.dealt(pools[0]):
            for second in draw.dealt(pools[1]):
                if second == first:
                    continue
                yield (*range(i), first, *range(i + 1, j), second, *range(j + 1, len(letters)))


def exchange(size: int, i: int, j: int) -> tuple[int, ...]:
    """Return the arrangement in which two of so many pieces have changed places."""
    return (*range(i), j, *range(i + 1, j), i, *range(j + 1, size))


def _without(size: int, one: int, other: int) -> Tail:
    return tail_of(tuple([None if place in (one, other) else place for place in range(size)]), size)


class Replacements:
    """Which new letters may stand for a letter.

    Parameters
    ----------
    letters : Alphabet
        Where new letters come from.
    cv : str
        ``keep``: a vowel for a vowel and a consonant for a consonant (also for a letter that can be both, which
        itself never comes in); ``any``: whatever letter.
    outline : str
        ``keep``: a letter of the same outline; ``change``: one of another; ``any``: whatever outline.
    """

    def __init__(self, letters: Alphabet, cv: str, outline: str) -> None:
        self._letters, self._cv, self._outline = letters, cv, outline

    @property
    def alphabet(self) -> Alphabet:
        """Where new letters come from."""
        return self._letters

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that new ones come from."""
        return self._letters.letters

    def of(self, letter: str, but: Sequence[str]) -> tuple[str, ...]:
        """Return the letters that may replace one, without those in ``but``."""
        return tuple(new for new in self._letters.letters if new not in but and self._fits(letter, new))

    def _fits(self, letter: str, new: str) -> bool:
        if self._cv == "keep":
            wanted = self._letters.letter_class(letter)
            if self._letters.letter_class(new) != ("consonant" if wanted == "either" else wanted):
                return False
        return self._outline == "any" or (shape(new) == shape(letter)) == (self._outline == "keep")
