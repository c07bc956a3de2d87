"""What holds for a whole set of materials, and what a scrambled text says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

from stimuli.errors import UserError, unknown_name
from stimuli.lexicon import require_lexicon, tells_words
from stimuli.scramble.changes import Change
from stimuli.scramble.registry import checked_rate
from stimuli.seeds import stable_draws_of

Capitals = Literal["stay_in_place", "move"]
Eligibility = Literal["common", "own"]


@dataclass(frozen=True)
class ScrambleSettings:
    """What holds for a whole set of materials, beside the operation."""

    # fewest letters of a word that may change; a type's own minimum holds where it is higher
    min_letters: int = 0
    # whether a capital stays at its place in the word or goes with its letter
    capitals: Capitals = "stay_in_place"
    # never show a real word (see stimuli.lexicon.REAL_WORD_ZIPF) in place of another: a word with no other form
    # stays intact. None does so where the language has a word list
    avoid_real_words: bool | None = None
    language: str = "en"  # language tag, for the word list and for capitals
    # which words may change; stars are read by whoever reads the materials
    words: Literal["all", "starred"] = "all"
    eligibility: Eligibility = "common"  # common: the same words change in every condition
    rate: float = 1.0  # share of the eligible words that change, where an operation does not say its own

    def __post_init__(self) -> None:
        if (
            isinstance(self.min_letters, bool)
            or not isinstance(self.min_letters, int)
            or self.min_letters < 0
        ):
            raise UserError(f"min_letters is {self.min_letters!r}; it is a whole number, 0 or more")
        for name, value, known in (
            ("capitals", self.capitals, get_args(Capitals)),
            ("words", self.words, ("all", "starred")),
            ("eligibility", self.eligibility, get_args(Eligibility)),
        ):
            if value not in known:
                raise unknown_name(f"scramble setting {name}:", str(value), known)
        checked_rate(self.rate)
        if self.avoid_real_words:
            require_lexicon(self.language)

    @property
    def avoids_real_words(self) -> bool:
        """Whether forms that are real words are passed over."""
        if self.avoid_real_words is None:
            return tells_words(self.language)
        return self.avoid_real_words

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], *, language: str) -> Self:
        """Read ``materials.scramble`` of a study."""
        known = set(cls.__dataclass_fields__)
        for key in given:
            if key not in known:
                raise unknown_name("scramble setting", str(key), known)
        return cls(**{"language": language, **given})


DEFAULT = ScrambleSettings()


class LeftIntact(NamedTuple):
    """A word that was meant to change and stays as it is; a named tuple, as :class:`Change` is, for there are many."""

    word: int
    intact: str
    reason: str


class Scrambled(NamedTuple):
    """A scrambled text in NFC, its changed words, and the words that were meant to change and could not."""

    text: str
    changes: tuple[Change, ...] = ()
    left_intact: tuple[LeftIntact, ...] = ()


class Draws(NamedTuple):
    """The draws that belong to one text."""

    seed: int  # the study's seed
    item: str  # id of the item, or the text itself
    occurrence: int  # how many times the same text came before

    def numbers(self, count: int, purpose: str, *names: str) -> tuple[int, ...]:
        """Return 64 random bits for each of a row of words or sentences."""
        return stable_draws_of(count, (self.seed, f"scramble: {purpose}", *names), self.item, self.occurrence)


def number_at(rate: float, eligible: int) -> int:
    """Return how many of the eligible change at a rate: to the nearest, a half up."""
    return int(rate * eligible + 0.5)
