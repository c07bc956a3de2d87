"""New forms of single words: draws candidates and takes the first suitable one.

A form is suitable if it differs from the word, keeps capitals in place where required, has the same characters in any
Unicode normal form, and is not a real word if those are avoided. Common words recur, so whatever does not depend on a draw
is cached, for a limited number of words of up to 64 letters.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, cast

from stimuli.lexicon import Strictness, is_real_word, listed_words
from stimuli.scramble.changes import KEPT_UP_TO, Change, Permutation, Spelt, Tail, known_tail, tail_of
from stimuli.scramble.edits import Alphabet, SiteRule, Transposed, exchange, lower, with_case_of
from stimuli.scramble.orders import Arrangement, ScrambleRule, Spelling
from stimuli.words import (
    WITHOUT_SPACES,
    clusters_of,
    is_letter,
    is_turkic,
    movable_places,
    nfc,
    written_without_spaces,
)


class WordPlan(NamedTuple):
    """Letters of a word that may change."""

    letters: Sequence[str]  # those that may move, in lower case; a string where every letter is one character
    counted: int  # number of letters of the word
    case: str  # lower, title or upper where the whole word is letters in that pattern, one character each


_PLAN = tuple.__new__  # half the time of a call


class WordParts(NamedTuple):
    """A word's grapheme clusters and the places of those that may move."""

    clusters: tuple[str, ...]
    movable: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def parts_of(word: str) -> WordParts:
    """Return a word's grapheme clusters and which of them may move."""
    return WordParts(tuple(clusters_of(word)), movable_places(word))


def plan_of(word: str, language: str) -> WordPlan:
    """Return what of a word may change."""
    if word.isalpha() and word.isascii() and not is_turkic(language):
        if word.islower():
            return _PLAN(WordPlan, (word, len(word), "lower"))
        small = word.lower()
        case = "title" if word[0] + small[1:] == word else "upper" if word.isupper() else "mixed"
        return _PLAN(WordPlan, (small, len(word), case))
    clusters, movable = parts_of(word)
    if word.isascii() and not is_turkic(language):
        small = word.lower()
        return _PLAN(
            WordPlan, (tuple([small[place] for place in movable]), sum(map(str.isalpha, word)), "mixed")
        )
    letters = tuple(lower(clusters[place], language) for place in movable)
    counted = sum(is_letter(cluster) for cluster in clusters)
    plain = len(movable) == len(word) and letters == clusters and all(map(_simple_small, clusters))
    return WordPlan("".join(letters) if plain else letters, counted, "lower" if plain else "mixed")


@functools.lru_cache(maxsize=4096)
def _simple_small(letter: str) -> bool:
    return "\u00df" <= letter <= "\u02af" or "\u0370" <= letter <= "\u052f" or letter.isascii()


class Writing:
    """Writes arrangements of letters as forms of a word."""

    def __init__(
        self, *, gap: str, as_it_is: bool, capitals_stay: bool, strictness: Strictness, language: str
    ) -> None:
        self.gap = gap
        self._as_it_is = as_it_is
        self._capitals_stay = capitals_stay
        self._strictness: Strictness = strictness
        self.language = language
        self._turkic = is_turkic(language)

    def by_letter(self, case: str) -> bool:
        """Return whether words of a case pattern are put together letter by letter."""
        return case == "mixed" or not (self._capitals_stay or case == "lower")

    def barred(self) -> frozenset[str] | None:
        """Return the small ASCII words that no form may be; None where a list does not say it."""
        return frozenset() if self._strictness == "off" else listed_words(self.language, self._strictness)

    def arranged(self, word: str, plan: WordPlan, arrangement: Arrangement) -> Spelt | None:
        """Return the form that an arrangement of letters makes; None where it makes none."""
        letters, counted, case = plan
        if not self.by_letter(case):
            permutation: Permutation
            if str in map(type, arrangement):
                joined = "".join(
                    [letters[piece] if isinstance(piece, int) else piece for piece in arrangement]
                )
                permutation = tuple([piece if isinstance(piece, int) else None for piece in arrangement])
            else:
                permutation = cast(tuple[int, ...], arrangement)
                joined = "".join(map(letters.__getitem__, permutation))
            if joined == letters and not self._as_it_is:
                return None
            if joined.isascii() or case == "lower":
                return self.dressed(joined, tail_of(permutation, counted), case)
        return self._put_together(word, letters, counted, arrangement)

    def dressed(self, joined: str, tail: Tail, case: str) -> Spelt | None:
        """Give a plain word's new letters its capitals; None where they join into other characters."""
        if not joined.isascii():
            if case != "lower" or nfc(joined) != joined or len(clusters_of(joined)) != len(joined):
                return None
        elif case != "lower":
            joined = joined.capitalize() if case == "title" else joined.upper()
        return self.gap.join(joined) if self.gap else joined, tail

    def _put_together(
        self, word: str, letters: Sequence[str], counted: int, arrangement: Arrangement
    ) -> Spelt | None:
        """Put letters in their positions one by one; None if they do not fit there."""
        parts = parts_of(word)
        arranged = [letters[piece] if isinstance(piece, int) else piece for piece in arrangement]
        if arranged == list(letters) and not self._as_it_is:
            return None
        if word.isascii() and parts.movable[-1:] == (len(letters) - 1,):
            form = self._in_front(word, arranged, arrangement, len(letters), counted)
            if form is not None:
                return None if form[0] == word else form
        return self._one_by_one(word, counted, arrangement)

    def _in_front(
        self, word: str, arranged: list[str], arrangement: Arrangement, size: int, counted: int
    ) -> Spelt | None:
        """Do the same for small ASCII letters, or with a capital first, and what comes after them: ``film's``."""
        front, joined = word[:size], "".join(arranged)
        title = self._capitals_stay and size > 1 and front.istitle()
        if not (title or front.islower()) or not joined.isascii() or self._turkic:
            return None
        shown = (joined.capitalize() if title else joined) + word[size:]
        moved = [piece if isinstance(piece, int) else None for piece in arrangement]
        tail = known_tail((*moved, *range(size, len(word))), counted, len(word))
        return self.gap.join(shown) if self.gap else shown, tail

    def _one_by_one(self, word: str, counted: int, arrangement: Arrangement) -> Spelt | None:
        parts = parts_of(word)
        if len(arrangement) == len(parts.movable):
            shown, sources = self._in_place(parts, arrangement)
        else:
            shown, sources = self._in_order(parts, arrangement)
        if any(cluster is None for cluster in shown):
            return None
        clusters = [cluster for cluster in shown if cluster is not None]
        joined = "".join(clusters)
        if not joined.isascii() and (nfc(joined) != joined or clusters_of(joined) != clusters):
            return None
        if self.gap:
            joined = self.gap.join(clusters)
        if joined == word:
            return None
        return joined, known_tail(tuple(sources), counted, len(parts.clusters))

    def _in_place(
        self, parts: WordParts, arrangement: Arrangement
    ) -> tuple[list[str | None], list[int | None]]:
        shown: list[str | None] = list(parts.clusters)
        sources: list[int | None] = list(range(len(parts.clusters)))
        for place, piece in zip(parts.movable, arrangement, strict=True):
            source = parts.movable[piece] if isinstance(piece, int) else None
            cluster = piece if isinstance(piece, str) else parts.clusters[parts.movable[piece]]
            if self._capitals_stay or source is None:
                shown[place] = with_case_of(cluster, parts.clusters[place], self.language)
            else:
                shown[place] = cluster
            sources[place] = source
        return shown, sources

    def _in_order(
        self, parts: WordParts, arrangement: Arrangement
    ) -> tuple[list[str | None], list[int | None]]:
        """Put letters in or leave some out; what may not change keeps its neighbours in order."""
        written = [parts.clusters[place] for place in parts.movable]
        capitals = len(written) > 1 and all(piece[0].isupper() for piece in written)
        models = [*written, *(["A" if capitals else "a"] * len(arrangement))]
        shown: list[str | None] = []
        sources: list[int | None] = []
        passed = 0
        movable = set(parts.movable)

        def pass_on(up_to: int) -> None:
            for place in range(passed, up_to):
                if place not in movable:
                    shown.append(parts.clusters[place])
                    sources.append(place)

        for place, piece in enumerate(arrangement):
            if isinstance(piece, int):
                pass_on(parts.movable[piece])
                passed = parts.movable[piece] + 1
                sources.append(parts.movable[piece])
                cluster = written[piece]
            else:
                sources.append(None)
                cluster = piece
            if self._capitals_stay:
                shown.append(with_case_of(cluster, models[place], self.language))
            elif isinstance(piece, int):
                shown.append(cluster)
            else:
                shown.append(with_case_of(cluster, "A" if capitals else "a", self.language))
        pass_on(len(parts.clusters))
        return shown, sources

    def is_real(self, word: str, form: Spelt) -> bool:
        """Return whether a form is a real word where those are avoided."""
        if self._strictness == "off" or self._as_it_is or len(word) > KEPT_UP_TO:
            return False
        shown = form[0].replace(self.gap, "") if self.gap else form[0]
        if is_real_word(shown, self.language, self._strictness):
            return True
        parts = parts_of(word)
        if len(parts.movable) == len(parts.clusters):
            return False
        # What moved may be a word by itself although the whole (from’s) is not listed.
        outside = set(range(len(parts.clusters))).difference(parts.movable)
        moved = "".join(
            cluster
            for cluster, source in zip(clusters_of(shown), form[1][0], strict=True)
            if source not in outside
        )
        return moved != shown and is_real_word(moved, self.language, self._strictness)


TOO_SHORT = "too short"
NO_OTHER_FORM = "no other arrangement"
NO_LETTERS_FIT = "no letters fit"
ONLY_REAL_WORDS = "only real words"
OTHER_SCRIPT = "another script than the language's"
NONE_OF_THE_FIRST = "none of the forms tried of so long a word"

_REMEMBERED = 40_000
_MAKE = tuple.__new__  # half the time of a call
_LETTERS_TRIED = 1 << 18
_LEAST_TRIED = 16

_Way = tuple[int, ...]
Table = Callable[[Sequence[str]], Sequence[_Way] | None]
Outcome: TypeAlias = "Spelt | str"
"""A word's new form, or why there is none."""


class ChangedText(NamedTuple):
    """A text with every word changed that can be, its changes, and the words that could not, with the reasons."""

    text: str
    changes: tuple[Change, ...]
    failed: list[tuple[int, str]]


_Plain = tuple[str, str, Any]
"""A plain word that the rule spells straight away: its small letters, its case, and what the rule keeps ready of it.

A bare tuple, which is taken apart in a third of the time of a named one; its forms are ASCII, so that none joins into
other characters.
"""


class _Wider(NamedTuple):
    """The same of a word whose forms may hold other letters than ASCII's."""

    letters: str
    case: str
    ready: Any


class _Listed(NamedTuple):
    """A word with few forms: its plan, the arrangements or sites that make them, and those made so far."""

    plan: WordPlan
    ways: Sequence[_Way]
    forms: list[Spelt | None]


_Remembered: TypeAlias = "_Listed | _Plain | _Wider | str | WordPlan"


class LetterForms:
    """New forms under one letter rule with certain settings."""

    def __init__(
        self, rule: ScrambleRule, least: int, writing: Writing, *, leaves_runs: bool, reorders: bool
    ) -> None:
        self.site_rule = rule if isinstance(rule, SiteRule) else None
        self.draws_sites_only = isinstance(rule, Transposed)
        self._rule = rule
        self._table: Table | None = getattr(rule, "table", None)
        spelling: Spelling[Any] | None = rule if isinstance(rule, Spelling) else None
        self._ready = spelling.ready if spelling else None
        self._spelled = spelling.spelled if spelling else None
        self._least = max(least, rule.least)
        own_reason: str | None = getattr(rule, "none_fits", None)
        self._none_fits = own_reason or (NO_OTHER_FORM if reorders else NO_LETTERS_FIT)
        self._writing = writing
        self._at_once = [case for case in ("lower", "title", "upper") if not self._writing.by_letter(case)]
        self._leaves_runs = leaves_runs
        self._new_letters: Alphabet | None = getattr(rule, "new_letters", None)
        self._writes_ascii = self._new_letters is None or self._new_letters.writes("a")
        self._writes_only_ascii = self._new_letters is None or "".join(self._new_letters.letters).isascii()
        self._barred: frozenset[str] | None = None
        self._looked_up = False
        self._language = writing.language
        # What says sooner than a plan what an ASCII word can become.
        self._at_first_sight = None if is_turkic(writing.language) or not self._writes_ascii else self._ready
        self._known: dict[str, _Remembered] = {}
        self._older: dict[str, _Remembered] = {}
        self._room = _REMEMBERED

    def plan(self, word: str) -> WordPlan:
        """Return which letters of a word may change."""
        return plan_of(word, self._language)

    def too_short(self, letters: Sequence[str]) -> bool:
        """Return whether a word has too few letters."""
        return len(letters) < self._least

    def row(self, words: Sequence[str], numbers: Sequence[int], sites: Sequence[int]) -> list[Outcome]:
        """Return, for a row of words, the first form of each that suits, or why there is none."""
        self._make_room()
        drawn = sites if self.site_rule is not None else numbers
        return list(map(self.first, words, numbers, drawn))

    def changed(self, pieces: list[str], numbers: Sequence[int], sites: Sequence[int]) -> ChangedText:
        """Change every word of a text that can be, as :meth:`row` would."""
        self._make_room()
        barred = self._barred_words()
        # Where no list says which forms are real words, every word goes the long way.
        spelled = None if barred is None else self._spelled
        bars: Container[str] = barred or ()
        has_bars = bool(barred)
        bare = not self._writing.gap
        recall, meet, too_short = self._recall, self._meet, TOO_SHORT
        heads: list[tuple[int, int, str, str]] = []
        tails: list[Tail] = []
        failed: list[tuple[int, str]] = []
        words = pieces[1::2]
        formed = words.copy()
        drawn = sites if self.site_rule is not None else numbers
        start = 0
        for place, gap, word, number, site, entry in zip(
            range(len(words)), pieces[::2], words, numbers, drawn, map(self._known.get, words), strict=False
        ):
            start += len(gap)
            if entry is None:
                entry = recall(word) or meet(word)
            outcome: Outcome
            if entry is too_short:
                start += len(word)
                continue
            if entry.__class__ is tuple and spelled is not None:
                letters, case, ready = entry
                form = spelled(letters, ready, number, site)
                if form is None or (joined := form[0]) == letters or (has_bars and joined in bars):
                    outcome = self._search(word, self.plan(word), number, site)
                else:
                    if case != "lower":
                        joined = joined.capitalize() if case == "title" else joined.upper()
                    if not bare:
                        joined = self._writing.gap.join(joined)
                    heads.append((place, start, word, joined))
                    tails.append(form[1])
                    formed[place] = joined
                    start += len(joined)
                    continue
            elif entry.__class__ is _Listed:
                index = site % len(entry.forms)
                outcome = entry.forms[index] or self._fill(word, entry, index, number, site)
            elif entry.__class__ is str:
                outcome = entry
            elif entry.__class__ is WordPlan:
                outcome = self._search(word, entry, number, site)
            else:
                outcome = self.first(word, number, site)
            if isinstance(outcome, str):
                start += len(word)
                failed.append((place, outcome))
            else:
                joined, tail = outcome
                heads.append((place, start, word, joined))
                tails.append(tail)
                formed[place] = joined
                start += len(joined)
        shown = pieces.copy()
        shown[1::2] = formed
        changes = tuple(map(_MAKE, repeat(Change), map(operator.add, heads, tails)))
        return _MAKE(ChangedText, ("".join(shown), changes, failed))

    def first(self, word: str, number: int, site_number: int) -> Outcome:
        """Return the first form of a word that suits, or why there is none."""
        entry = self._known.get(word) or self._recall(word) or self._meet(word)
        if isinstance(entry, str):
            return entry
        if isinstance(entry, _Listed):
            index = (site_number if self.site_rule else number) % len(entry.forms)
            return entry.forms[index] or self._fill(word, entry, index, number, site_number)
        if isinstance(entry, WordPlan):
            return self._search(word, entry, number, site_number)
        form = self._quick(word, entry, number, site_number)
        return form or self._search(word, self.plan(word), number, site_number)

    def _barred_words(self) -> frozenset[str] | None:
        """Return the small words that no plain form may be; None where no list says which are real words."""
        if not self._looked_up:
            self._barred, self._looked_up = self._writing.barred(), True
        return self._barred

    def _meet(self, word: str) -> _Remembered:
        """Find out what a word not met lately can become, and remember it."""
        entry: _Remembered | None = None
        cost = 2
        if self._at_first_sight and word.isascii() and word.isalpha():
            # What `_found` finds for the most common words, without a plan.
            small, case = word, "lower"
            if not word.islower():
                small, case = (
                    word.lower(),
                    "title" if word.istitle() else "upper" if word.isupper() else "mixed",
                )
            if len(word) < self._least:
                entry = TOO_SHORT
            elif case in self._at_once and (ready := self._at_first_sight(small)) is not None:
                entry = (small, case, ready) if self._writes_only_ascii else _Wider(small, case, ready)
        if entry is None:
            entry, cost = self._found(word)
        if len(word) <= KEPT_UP_TO:
            self._known[word] = entry
            self._room -= cost
        return entry

    def _found(self, word: str) -> tuple[_Remembered, int]:
        """Return what any word can become, and how much room it takes."""
        plan = plan_of(word, self._language)
        letters, _, case = plan
        entry: _Remembered = plan
        cost = 2
        if len(letters) < self._least:
            entry = TOO_SHORT
        elif self._leaves_runs and written_without_spaces(word):
            entry = WITHOUT_SPACES
        elif not self._writes(letters):
            entry = OTHER_SCRIPT
        elif (
            self._ready is not None
            and letters.__class__ is str
            and case in self._at_once
            and (ready := self._ready(letters)) is not None
        ):
            entry = (
                (letters, case, ready)
                if letters.isascii() and self._writes_only_ascii
                else _Wider(letters, case, ready)
            )
        elif self.site_rule is not None and not self.site_rule.sites(letters):
            entry = self._none_fits
        else:
            ways: Sequence[_Way] | None = None
            if isinstance(self._rule, Transposed):
                ways = self._rule.sites(letters)
            elif self._table is not None:
                ways = self._table(letters)
            if ways is not None:
                entry = _Listed(plan, ways, [None] * len(ways)) if ways else self._none_fits
                cost += len(ways) // 16
        return entry, cost

    def _fill(self, word: str, listed: _Listed, index: int, number: int, site_number: int) -> Outcome:
        """Make the form that a word's number draws; search others where it does not suit."""
        plan, ways, forms = listed
        letters, way = plan.letters, ways[index]
        form: Spelt | None
        if self._writing.by_letter(plan.case):
            arrangement: Arrangement = way
            if isinstance(self._rule, Transposed):
                arrangement = exchange(len(letters), way[0], way[1])
            form = self._writing.arranged(word, plan, arrangement)
        else:
            joined = "".join(map(letters.__getitem__, way))
            form = self._writing.dressed(joined, known_tail(way, plan.counted), plan.case)
        if form is None or self._writing.is_real(word, form):
            outcome = self._search(word, plan, number, site_number)
            if isinstance(outcome, str) and word in self._known:
                self._known[word] = outcome  # All forms were tried, so another number would find none either.
            return outcome
        self._room -= 1
        forms[index] = form
        return form

    def _quick(self, word: str, plain: _Plain | _Wider, number: int, site_number: int) -> Spelt | None:
        """Return the first candidate of a plain word where it is spelled straight away and suits."""
        assert self._spelled is not None
        letters, case, ready = plain
        spelt = self._spelled(letters, ready, number, site_number)
        if spelt is None or spelt[0] == letters:
            return None
        form = self._writing.dressed(*spelt, case)
        return None if form is None or self._writing.is_real(word, form) else form

    def _search(self, word: str, plan: WordPlan, number: int, site_number: int) -> Outcome:
        if self.site_rule is None:
            candidates = self._rule.candidates(plan.letters, number)
        else:
            candidates = self.site_rule.candidates_at(plan.letters, number, site_number)
        return self._first_of(word, plan, candidates)

    def at_site(self, word: str, site: tuple[int, int], number: int) -> Outcome:
        """Return the first form of a word that suits and changes one site, or why there is none."""
        assert self.site_rule is not None
        if self._leaves_runs and written_without_spaces(word):
            return WITHOUT_SPACES
        plan = self.plan(word)
        if not self._writes(plan.letters):
            return OTHER_SCRIPT
        return self._first_of(word, plan, self.site_rule.at(plan.letters, site, number))

    def _writes(self, letters: Sequence[str]) -> bool:
        """Return whether new letters would be of the word's script, or none come in."""
        if "".join(letters).isascii():
            return self._writes_ascii
        return self._new_letters is None or self._new_letters.writes(letters)

    def _first_of(self, word: str, plan: WordPlan, candidates: Iterator[Arrangement]) -> Outcome:
        """Return the first form that suits; of long words so many are tried that their letters make a quarter million."""
        reason = self._none_fits
        left = -1 if len(word) <= KEPT_UP_TO else max(_LEAST_TRIED, _LETTERS_TRIED // len(word))
        for arrangement in candidates:
            if not left:
                return NONE_OF_THE_FIRST
            left -= 1
            form = self._writing.arranged(word, plan, arrangement)
            if form is not None:
                if not self._writing.is_real(word, form):
                    return form
                reason = ONLY_REAL_WORDS
        return reason

    def _recall(self, word: str) -> _Remembered | None:
        entry = self._older.get(word)
        if entry is not None:
            self._known[word] = entry
            self._room -= 2 + (len(entry.forms) // 16 if isinstance(entry, _Listed) else 0)
        return entry

    def _make_room(self) -> None:
        """Forget what no text asked for since the last time, so that common words stay."""
        if self._room < 0:
            self._older, self._known = self._known, {}
            self._room = _REMEMBERED
