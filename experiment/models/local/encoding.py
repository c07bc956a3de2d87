"""Texts to tokens: what a text has in common with earlier ones is tokenised once, and never otherwise than as a whole.

A tokenizer first splits a text into pieces and then turns each piece into tokens by itself. Where a piece begins, two
texts that are equal up to the end of that piece therefore have the same tokens before it, and what follows has the
tokens that it would have alone. Such a *border* is looked for between texts that begin alike, and is taken only after
the tokens before it and those of the rest, put together, were those of the whole. A tokenizer that does not split (the
pieces of :meth:`word_ids` say so) has no borders, and each of its texts is tokenised whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WORTH_BORDER = 256
"""Characters that texts must have in common before a border is looked for; also how much a rest may have before a
deeper one is."""

_LOOKAHEAD = 2
_TRIES = 6
_RECENT = 4
_MOST = 32


@dataclass(frozen=True)
class Encoded:
    """A whole text in tokens.

    Attributes
    ----------
    ids : tuple of int
    offsets : list of (int, int)
        First character of each token and the one behind its last.
    words : list of int or None
        Which piece of the text each token is part of.
    """

    ids: tuple[int, ...]
    offsets: list[tuple[int, int]]
    words: list[int | None]


@dataclass(frozen=True)
class _Border:
    """A place in a text before which its tokens are known.

    Attributes
    ----------
    text : str
        Up to the end of the piece that begins at the border; texts that begin so have these tokens.
    """

    text: str
    cut: int
    ids: tuple[int, ...]


class TextEncoder:
    """Turns texts into tokens without special ones.

    Parameters
    ----------
    tokenizer
        A transformers tokenizer.

    Attributes
    ----------
    characters : int
        How many characters were tokenised so far.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.characters = 0
        self._borders: list[_Border] = []
        self._recent: list[str] = []

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a whole text."""
        known = max(
            (border for border in self._borders if text.startswith(border.text)),
            key=lambda border: border.cut,
            default=None,
        )
        if known is not None and len(text) - known.cut <= 4 * WORTH_BORDER:
            return known.ids + self._plain(text[known.cut :])
        if not getattr(self.tokenizer, "is_fast", False) or len(text) < WORTH_BORDER:
            return self._plain(text)
        whole = self.whole(text)
        self._learn(text, whole, 0 if known is None else known.cut)
        return whole.ids

    def whole(self, text: str) -> Encoded:
        """Return the tokens of a whole text and where they stand.

        Raises
        ------
        ValueError
            The tokenizer does not say where its tokens stand.
        """
        if not getattr(self.tokenizer, "is_fast", False):
            raise ValueError("this tokenizer does not say which characters its tokens stand for")
        self.characters += len(text)
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return Encoded(tuple(found["input_ids"]), found["offset_mapping"], found.word_ids(0))

    def _plain(self, text: str) -> tuple[int, ...]:
        self.characters += len(text)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _learn(self, text: str, whole: Encoded, known: int) -> None:
        """Look for a border between this text and those before it, deeper than the one that was known."""
        common = max((_common(text, other) for other in self._recent), default=0)
        self._recent = [*self._recent[1 - _RECENT :], text]
        if common < known + WORTH_BORDER:
            return
        tries = 0
        end = len(whole.ids)
        for place in range(len(whole.ids) - 1, 0, -1):
            if whole.words[place] is None or whole.words[place] == whole.words[place - 1]:
                continue
            cut, behind = whole.offsets[place - 1][1], whole.offsets[end - 1][1]
            end = place
            if behind + _LOOKAHEAD > common or not text[cut:behind].strip():
                continue
            if whole.ids[:place] + self._plain(text[cut:]) == whole.ids:
                border = _Border(text[: behind + _LOOKAHEAD], cut, whole.ids[:place])
                self._borders = [*self._borders[1 - _MOST :], border]
                return
            tries += 1
            if tries == _TRIES:
                return


def _common(left: str, right: str) -> int:
    """Return how many leading characters two texts have in common."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
