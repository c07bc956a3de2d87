"""Chooses words for an experiment out of many: base words that do not resemble each other, and fillers of their lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from stimuli.errors import UserError
from stimuli.lexical.base_words import WordBounds, drawable_words, unlike
from stimuli.seeds import stable_seed

Made = TypeVar("Made")


def draw_bases(
    make: Callable[[str], Made | None], number: int, *, bounds: WordBounds, language: str, seed: int
) -> list[Made]:
    """Draw base words that look unlike each other, by the alphabet; a larger draw holds a smaller one.

    ``make``: word → what is made of it, None where nothing can be: then another word is drawn.
    """
    if number < 1:
        raise UserError(f"{number} base words are asked for; ask for one or more")
    made: dict[str, Made] = {}
    for word in _shuffled(drawable_words(language, bounds), seed, "base words"):
        if len(made) == number:
            break
        if unlike(word, made) and (one := make(word)) is not None:
            made[word] = one
    if len(made) < number:
        raise UserError(
            f"{number} base words are asked for; {len(made)} of {bounds.letters[0]} to {bounds.letters[1]} letters and "
            f"Zipf {bounds.zipf[0]:g} to {bounds.zipf[1]:g} can be drawn that do not resemble each other",
            mend="Widen letters or zipf, or ask for fewer.",
        )
    return [made[word] for word in sorted(made)]


def match_fillers(
    bases: Sequence[str], number: int, *, pool: Iterable[str], seed: int, where: str, mend: str
) -> list[str]:
    """Choose word fillers that have the lengths of the base words and resemble neither them nor each other."""
    by_length: dict[int, Iterator[str]] = {}
    candidates = sorted(set(pool))
    chosen: list[str] = []
    turns = _shuffled(bases, seed, "lengths of fillers")
    for place in range(number):
        length = len(turns[place % len(turns)])
        if length not in by_length:
            by_length[length] = _shuffled_iter([w for w in candidates if len(w) == length], seed)
        found = next((word for word in by_length[length] if unlike(word, (*bases, *chosen))), None)
        if found is None:
            raise UserError(
                f"{number} fillers are needed; {where} has too few of {length} letters that resemble no other word",
                mend=mend,
            )
        chosen.append(found)
    return sorted(chosen)


def _shuffled(words: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(words, key=lambda word: (stable_seed(seed, "lexical decision", purpose, word), word))


def _shuffled_iter(words: Sequence[str], seed: int) -> Iterator[str]:
    return iter(_shuffled(words, seed, "fillers"))
