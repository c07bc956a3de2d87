"""Which words of a sentence may change: all, starred ones, those that a column names, or those that a rule chooses."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, cast

from stimuli.errors import UserError, unknown_name
from stimuli.lexicon import base_language, has_lexicon, zipf
from stimuli.scramble.words import Word, find_words, nfc, parse_stars
from stimuli.seeds import stable_seed

ALL, STARRED = "all", "starred"
SEPARATOR = "|"


@dataclass(frozen=True)
class TargetRule:
    """Chooses words of a sentence by what they are and where they stand; every part given must hold.

    Parameters
    ----------
    min_letters, max_letters : int, optional
        Bounds of the number of letters.
    min_zipf, max_zipf : float, optional
        Bounds of the Zipf frequency (log10 per billion words); a word that is not listed has 0.
    skip_frequent : int, optional
        None of the so many most frequent words of the language, which are function words in the main.
    place : {"first", "last"}, optional
        Only the first or the last word of the sentence, if the rest holds for it.
    every : int, optional
        Of the words for which the rest holds, every second, third … in reading order: the 2nd, 4th … for 2.
    number : int, optional
        So many of these a sentence, drawn with the study's seed; a smaller number is among a larger one.
    """

    min_letters: int | None = None
    max_letters: int | None = None
    min_zipf: float | None = None
    max_zipf: float | None = None
    skip_frequent: int | None = None
    place: Literal["first", "last"] | None = None
    every: int | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_letters", "max_letters", "skip_frequent", "every", "number"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UserError(f"words: {name} is {value!r}; it is a whole number, 1 or more")
        for name in ("min_zipf", "max_zipf"):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 9
            ):
                raise UserError(f"words: {name} is {value!r}; Zipf frequencies lie between 0 and 9")
        for what in ("letters", "zipf"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low is not None and high is not None and low > high:
                raise UserError(
                    f"words: min_{what} {low:g} is above max_{what} {high:g}; no word can be both",
                    mend="Exchange the two.",
                )
        if self.place not in (None, "first", "last"):
            raise unknown_name("words: place", str(self.place), ("first", "last"))
        if all(getattr(self, field.name) is None for field in fields(self)):
            raise UserError(
                "words: the rule says nothing",
                mend="Give at least one of: " + ", ".join(field.name for field in fields(self)) + ".",
            )

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Read a rule as a study writes it: ``{min_letters: 5, skip_frequent: 100}``."""
        known = [field.name for field in fields(cls)]
        for key in given:
            if key not in known:
                raise unknown_name("words: rule", str(key), known)
        return cls(**given)

    def require_language(self, language: str) -> None:
        """Refuse a language without the frequencies that the rule needs."""
        for name in ("min_zipf", "max_zipf", "skip_frequent"):
            if getattr(self, name) is not None and not has_lexicon(language):
                raise UserError(
                    f"words: {name} needs word frequencies, and there are none for language {language!r}",
                    mend="Choose words by letters or place, or star them in the text.",
                )

    def choose(self, text: str, *, language: str, seed: int, item_id: str) -> tuple[int, ...]:
        """Return the places of the words that the rule chooses, in reading order.

        Parameters
        ----------
        text : str
            The intact text in NFC.
        language : str
            Language tag.
        seed : int
            The study's seed; has a say with ``number`` only.
        item_id : str
            The item; each word's luck hangs on it and on the word's place alone.

        Raises
        ------
        UserError
            When no word fits, or fewer than ``number``.
        """
        found = find_words(text)
        places = {None: slice(None), "first": slice(1), "last": slice(-1, None)}
        fitting = [word for word in found[places[self.place]] if self._fits(word, language)]
        if self.every is not None:
            fitting = fitting[self.every - 1 :: self.every]
        wanted = self.number or 1
        if len(fitting) < wanted:
            raise UserError(
                f"the rule for words ({self}) fits {len(fitting) or 'no'} word{'s' * (len(fitting) > 1)} of {text!r}"
                + (f"; {self.number} are asked for" if self.number else ""),
                mend="Ease the rule, or star the words in the text.",
            )
        if self.number is not None:
            fitting.sort(key=lambda word: stable_seed(seed, "targets", item_id, word.index))
            fitting = fitting[: self.number]
        return tuple(sorted(word.index for word in fitting))

    def __str__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name}: {value}" for name, value in given.items() if value is not None)

    def _fits(self, word: Word, language: str) -> bool:
        if not word.movable:
            return False
        if not (self.min_letters or 0) <= word.letter_count <= (self.max_letters or word.letter_count):
            return False
        if self.min_zipf is not None or self.max_zipf is not None:
            frequency = zipf(word.text, language) or 0.0
            if frequency < (self.min_zipf or 0) or (self.max_zipf is not None and frequency > self.max_zipf):
                return False
        return self.skip_frequent is None or word.text.lower().replace("’", "'") not in _most_frequent(
            language, self.skip_frequent
        )


@dataclass(frozen=True)
class TargetColumn:
    """Words named in a column: as words or as word numbers from 1, several parted by ``|`` or spaces."""

    column: str = "targets"


Targets = Literal["all", "starred"] | TargetColumn | TargetRule


def parse_targets(given: object) -> Targets:
    """Read ``words`` of a study's scramble settings."""
    if isinstance(given, TargetColumn | TargetRule):
        return given
    if isinstance(given, str):
        if given not in (ALL, STARRED):
            raise unknown_name("words", given, (ALL, STARRED, "{column: targets}", "{min_letters: 5}"))
        return cast(Targets, given)
    if not isinstance(given, Mapping):
        raise UserError(
            f"words is {given!r}; it is all, starred, a column or a rule",
            mend="Write for example words: {column: targets}, or words: {min_letters: 5, skip_frequent: 100}.",
        )
    if "column" in given:
        if set(given) != {"column"} or not isinstance(given["column"], str):
            raise UserError(
                f"words is {dict(given)!r}; a column of targets stands alone",
                mend="Write words: {column: targets}.",
            )
        return TargetColumn(given["column"])
    return TargetRule.from_mapping(given)


def read_targets(
    text: str, targets: Targets, row: Mapping[str, Any], *, language: str, seed: int, item_id: str
) -> tuple[str, tuple[int, ...] | None]:
    """Return a row's text as it is read, in NFC, and the places of the words that may change (None for all)."""
    if targets == STARRED:
        starred = parse_stars(text)
        if not starred.words:
            raise UserError(f"no word is starred in {text!r}", mend="Mark words to change, like *this*.")
        return starred.text, starred.words
    plain = nfc(text)
    if isinstance(targets, TargetColumn):
        return plain, _named(row.get(targets.column), plain, targets.column)
    if isinstance(targets, TargetRule):
        return plain, targets.choose(plain, language=language, seed=seed, item_id=item_id)
    return plain, None


def _named(cell: object, text: str, column: str) -> tuple[int, ...]:
    entries = _entries(cell, column)
    found = find_words(text)
    places: set[int] = set()
    for entry in entries:
        if isinstance(entry, int):
            if not 1 <= entry <= len(found):
                raise UserError(
                    f"{column!r} names word {entry}; the text has words 1 to {len(found)}",
                    mend="Words are counted from 1; a hyphen parts two words, numbers are none.",
                )
            places.add(entry - 1)
        else:
            places |= {_place_of(word.text, found, column) for word in _words_of(entry, column)}
    return tuple(sorted(places))


def _entries(cell: object, column: str) -> list[int | str]:
    given = cell if isinstance(cell, list) else [cell]
    entries: list[int | str] = []
    for one in given:
        if isinstance(one, int) and not isinstance(one, bool):
            entries.append(one)
        elif isinstance(one, str):
            parts = one.replace(SEPARATOR, " ").split()
            entries += [int(part) if part.isdecimal() else part for part in parts]
        elif one is not None:
            raise UserError(f"{column!r} holds {one!r}; targets are words or word numbers")
    if not entries:
        raise UserError(
            f"{column!r} names no word", mend="Write words or word numbers, parted by | or spaces."
        )
    return entries


def _words_of(entry: str, column: str) -> Sequence[Word]:
    words = find_words(nfc(entry))
    if not words:
        raise UserError(f"{column!r} names {entry!r}, which is no word")
    return words


def _place_of(name: str, found: Sequence[Word], column: str) -> int:
    same = [word.index for word in found if word.text == name]
    same = same or [word.index for word in found if word.text.casefold() == name.casefold()]
    if not same:
        close = unknown_name("word", name, [word.text for word in found])
        raise UserError(f"{column!r} names {name!r}, which is not in the text", mend=close.mend)
    if len(same) > 1:
        numbers = " and ".join(str(place + 1) for place in same)
        raise UserError(
            f"{column!r} names {name!r}, which is in the text {len(same)} times",
            mend=f"Name the word by its number ({numbers}).",
        )
    return same[0]


@functools.lru_cache(maxsize=16)
def _most_frequent(language: str, number: int) -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.top_n_list(base_language(language), number))
