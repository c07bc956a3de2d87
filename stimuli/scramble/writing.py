"""Puts new letters into a word: its capitals, the characters that stay, the spaces, and whether it is real then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from stimuli.lexicon import is_turkic
from stimuli.scramble.capitals import with_case_of
from stimuli.scramble.changes import KEPT_UP_TO, Permutation, Spelt, Tail, known_tail, tail_of
from stimuli.scramble.orders import Arrangement
from stimuli.scramble.real_words import is_real, listed_words
from stimuli.scramble.word_plans import Parts, Plan, parts_of
from stimuli.scramble.words import clusters_of, nfc


class Writing:
    """How forms are written under certain settings.

    Parameters
    ----------
    gap : str
        What stands between the characters of the form; empty where nothing does.
    as_it_is : bool
        Whether a word may stand with its letters as they were, spaced only.
    capitals_stay : bool
        Whether capitals stay at their place in the word.
    avoid_real_words : bool
        Whether forms that are real words count as such; a word of more than 64 letters is none.
    language : str
        For capitals and real words.
    """

    def __init__(
        self, *, gap: str, as_it_is: bool, capitals_stay: bool, avoid_real_words: bool, language: str
    ) -> None:
        self.gap = gap
        self._as_it_is = as_it_is
        self._capitals_stay = capitals_stay
        self._avoid = avoid_real_words
        self._language = language
        self._turkic = is_turkic(language)

    def by_letter(self, case: str) -> bool:
        """Tell whether words of a case pattern are put together letter by letter."""
        return case == "mixed" or not (self._capitals_stay or case == "lower")

    def barred(self) -> frozenset[str] | None:
        """Return the small ASCII words that no form may be; None where a list does not say it."""
        return listed_words(self._language) if self._avoid else frozenset()

    def arranged(self, word: str, plan: Plan, arrangement: Arrangement) -> Spelt | None:
        """Return the form that an arrangement of letters makes; None where it makes none."""
        letters, counted, case = plan
        if not self.by_letter(case):
            permutation: Permutation
            if str in map(type, arrangement):
                joined = "".join([letters[one] if isinstance(one, int) else one for one in arrangement])
                permutation = tuple([one if isinstance(one, int) else None for one in arrangement])
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
        """Put letters in their places one by one; None where they cannot stand there.

        They may join into other characters there, or lack the case of the place.
        """
        parts = parts_of(word)
        arranged = [letters[one] if isinstance(one, int) else one for one in arrangement]
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
        """Do the same for small ASCII letters, or with a capital first, and what comes after them: ``film's``.

        None where the capitals are others.
        """
        front, joined = word[:size], "".join(arranged)
        title = self._capitals_stay and size > 1 and front.istitle()
        if not (title or front.islower()) or not joined.isascii() or self._turkic:
            return None
        shown = (joined.capitalize() if title else joined) + word[size:]
        moved = [one if isinstance(one, int) else None for one in arrangement]
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

    def _in_place(self, parts: Parts, arrangement: Arrangement) -> tuple[list[str | None], list[int | None]]:
        shown: list[str | None] = list(parts.clusters)
        sources: list[int | None] = list(range(len(parts.clusters)))
        for place, one in zip(parts.movable, arrangement, strict=True):
            source = parts.movable[one] if isinstance(one, int) else None
            cluster = one if isinstance(one, str) else parts.clusters[parts.movable[one]]
            if self._capitals_stay or source is None:
                shown[place] = with_case_of(cluster, parts.clusters[place], self._language)
            else:
                shown[place] = cluster
            sources[place] = source
        return shown, sources

    def _in_order(self, parts: Parts, arrangement: Arrangement) -> tuple[list[str | None], list[int | None]]:
        """Put letters in or leave some out; what may not change keeps its neighbours in order.

        A capital stays at its place counted from the word's beginning; in a word of capitals new letters are capitals.
        """
        written = [parts.clusters[place] for place in parts.movable]
        capitals = len(written) > 1 and all(one[0].isupper() for one in written)
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

        for place, one in enumerate(arrangement):
            if isinstance(one, int):
                pass_on(parts.movable[one])
                passed = parts.movable[one] + 1
                sources.append(parts.movable[one])
                cluster = written[one]
            else:
                sources.append(None)
                cluster = one
            if self._capitals_stay:
                shown.append(with_case_of(cluster, models[place], self._language))
            elif isinstance(one, int):
                shown.append(cluster)
            else:
                shown.append(with_case_of(cluster, "A" if capitals else "a", self._language))
        pass_on(len(parts.clusters))
        return shown, sources

    def is_real(self, word: str, form: Spelt) -> bool:
        """Tell whether a form is a real word where those are avoided."""
        if not self._avoid or self._as_it_is or len(word) > KEPT_UP_TO:
            return False
        shown = form[0].replace(self.gap, "") if self.gap else form[0]
        if is_real(shown, self._language):
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
        return moved != shown and is_real(moved, self._language)
