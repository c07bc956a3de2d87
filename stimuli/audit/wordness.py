"""Lexical decisions: what being a word or none implies, and what should still agree between words and nonwords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stimuli.covariate_table import BIGRAMS, NEIGHBOURS
from stimuli.covariates import words_covariates
from stimuli.item import Item

RELATION = "relation"
"""Covariate by which lexical decisions say how a string was made from its base word."""

ABOUT = (
    "frequency",
    "rarest_position",
    "commonest_position",
    "first_word_zipf",
    "last_word_zipf",
    "tokens_given",
    "characters_per_token",
    "vocabulary",
)
"""Features of the shortcut test that tell words from nonwords by what these are: nonwords have no frequency, and
tokenizers hold words whole."""

NEARNESS = (*NEIGHBOURS, *BIGRAMS)
"""Covariates that say how near a string is to the words of the language: words are nearer than most nonwords."""

OF_BASE = ("zipf", "syllables")
"""Covariates of the word itself or of the one that a nonword was made from: nonwords have none of their own."""

BY_DESIGN = ("zipf",)
"""Covariates that a lexical decision varies on purpose: fillers have bounds of frequency of their own."""


def decides_words(items: Sequence[Item]) -> bool:
    """Tell whether items are those of a lexical decision: one string each, with its relation to a base word."""
    return bool(items) and all(RELATION in item.covariates and len(item.shown) == 1 for item in items)


def string_covariates(items: Sequence[Item], language: str) -> list[Mapping[str, object]]:
    """Describe what each line shows, word or nonword, by measures that both have."""
    shown = words_covariates([next(iter(item.shown.values())) for item in items], language)
    return [
        {
            **{name: _rounded(measured[name]) for name in ("letters", *NEARNESS)},
            **{name: item.covariates.get(name) for name in OF_BASE},
        }
        for item, measured in zip(items, shown, strict=True)
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
