"""Texts that no training may see: those of the study, and what is as good as them.

For A/B texts: the same words in any order, with any capitals, marks and notation of numbers and operations, and for rhymes
any couple of them. For running text: a sample that is one of the texts, or that has a row of words in common with one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from stimuli.htest.predicates import plain_words
from stimuli.htest.words import data

ROW = 13
"""Words in a row that tell that a sample holds a study's text (as for contamination in Brown et al., 2020)."""
_FEWEST = 8
"""Words from which a shorter text is looked for inside samples, whole; a few words stand in many texts by chance."""
_PARTED = re.compile(r"[\W_]+")

Key = tuple[str, ...]


def word_keys(text: str, task: str | None = None) -> set[Key]:
    """Return what two A/B texts have in common when one is a near copy of the other."""
    keys = {_key(text)}
    if task == "rhyme":
        keys |= {_key(part) for part in text.split(",")}
    return {key for key in keys if key}


def barred_keys(task: str, held_out: Iterable[str], of_other_tasks: Iterable[str] = ()) -> set[Key]:
    """Return what no line of a training set of a task may have in common with a study's texts."""
    own = (word_keys(text, task) for text in held_out)
    return set().union(*own, *(word_keys(text) for text in of_other_tasks))


def _key(text: str) -> Key:
    named = _operations().sub(lambda found: f" {_OPERATIONS[found[0].strip()]} ", text.casefold())
    words = _PARTED.split(" ".join(plain_words(named)))
    return tuple(sorted(_digits().get(word, word) for word in words if word))


_OPERATIONS = {
    way: f"operation{place}"
    for place, ways in enumerate(
        (
            ("plus", "+"),
            ("minus", "-", "−"),
            ("times", "multiplied by", "*", "×"),
            ("divided by", "over", "/", "÷"),
            ("modulo", "percent", "%"),
            ("equal to", "equals", "equals to", "="),
            ("approximately equal to", "≈"),
            ("less than", "smaller than", "<"),
            ("greater than", "more than", "larger than", ">"),
            ("to the power of", "power of", "^"),
        )
    )
    for way in ways
}
"""Ways to write an operation, under one name for all that mean the same."""


@functools.cache
def _operations() -> re.Pattern[str]:
    ways = "|".join(map(re.escape, sorted(_OPERATIONS, key=len, reverse=True)))
    return re.compile(rf"(?<!\S)(?:{ways})(?!\S)")


@functools.cache
def _digits() -> dict[str, str]:
    words: list[str] = data("numbers")["number_words"]
    # Up to twenty a word's place is its value; the tens and powers stand behind in their order.
    values = [*range(21), *range(30, 100, 10), 100, 1000, 10**6, 10**9]
    return {word: str(value) for word, value in zip(words, values, strict=True)}


class HeldOut:
    """Texts of a study that samples of running text, prompts and replies must not hold."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole: set[Key] = set()
        self._rows: dict[int, set[int]] = {}
        for text in texts:
            words = _running_words(text)
            if not words:
                continue
            self._whole.add(words)
            if len(words) >= _FEWEST:
                size = min(ROW, len(words))
                self._rows.setdefault(size, set()).update(map(hash, _rows(words, size)))

    def in_text(self, text: str) -> bool:
        """Tell whether a sample is one of the texts, or has 13 words in a row of one (a shorter one of 8 or more words: all)."""
        words = _running_words(text)
        return words in self._whole or self._has_row(words)

    def in_prompt(self, text: str) -> bool:
        """Tell whether a prompt or a reply has one of the texts as a line of its own, a caption before it or not, or a row of one."""
        return self._has_row(_running_words(text)) or any(
            _running_words(part) in self._whole
            for line in text.splitlines()
            for part in (line, line.partition(":")[2])
        )

    def _has_row(self, words: Key) -> bool:
        return any(hash(row) in known for size, known in self._rows.items() for row in _rows(words, size))


def _running_words(text: str) -> Key:
    return tuple(word for word in _PARTED.split(text.casefold()) if word)


def _rows(words: Key, size: int) -> Iterator[Key]:
    return (words[begin : begin + size] for begin in range(len(words) - size + 1))
