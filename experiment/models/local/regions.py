"""Finds the tokens of regions in a text and turns log-probabilities into surprisal.

Many tokenizers put the blank before a word into the word's first token. The probability of such a token then holds that
of a word ending before it, and misses that its own word ends. Following Pimentel and Meister (2024, "How to compute the
probability of a word", EMNLP) and Oh and Schuler (2024), the probability that a new word begins is taken out before the
region and put in behind it: for tokens t₁ … tₙ of a region after a context c, and B the tokens that can begin a word or
end the text, p(region | c) = p(t₁ … tₙ | c) · p(B | c t₁ … tₙ) / p(B | c). What stands in the text decides where that is
done: behind a region that goes on without a blank (before a comma, say) no word ends, and before one that begins without
a blank none begins; so the surprisals of regions that follow one another always sum to that of all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import RegionScore

_BLANKS = frozenset({"Ġ", "▁", "Ċ", "ĉ", "č", "ċ", "Č", " ", "\n", "\t", "\r"})
"""How tokenizers of bytes, of pieces of sentences, and of characters write blanks and line ends."""

_BLANK_BYTES = frozenset({"<0x20>", "<0x0A>", "<0x09>", "<0x0D>"})


@dataclass(frozen=True)
class RegionTokens:
    """Tokens of one region in a row."""

    # first, last: positions of its first token and behind its last
    first: int
    last: int
    begins_word: bool  # whether its first token can begin a word: it holds the blank before it
    ends_word: bool  # whether the next token can begin a word, or there is none

    @property
    def is_scored(self) -> bool:
        """Whether it has tokens, and something stands before them."""
        return 1 <= self.first < self.last


def find_regions(
    text: str,
    offsets: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
    begins: Sequence[bool],
    special_before: int = 0,
) -> list[RegionTokens]:
    """Return the tokens of each stretch of a text.

    A token belongs to the region of its first character that is no blank, so that the blank before a word goes with it
    and a single blank right before a region with the region. A token over a border between two regions is the first
    one's.

    ``offsets``: first character of each token and the one behind its last; tokenizers differ in whether the blank
    before a word lies within.
    ``spans``: in order of the text, not overlapping.
    ``begins``: whether each token can begin a word.
    ``special_before``: how many special tokens stand before the text; positions in the result count them.
    """
    offsets = _without_gaps(text, offsets)
    starts: list[int] = []
    for start, end in offsets:
        at = start
        while at < end and text[at].isspace():
            at += 1
        starts.append(at)
    found = []
    place = 0
    for start, end in spans:
        while place < len(starts) and (starts[place] < start or _is_blank(text, offsets[place], start)):
            place += 1
        first = place
        while place < len(starts) and starts[place] < end:
            place += 1
        while first > 0 and first < place and _is_leading(text, offsets[first - 1], start):
            first -= 1
        begins_word = first < place and begins[first]
        ends_word = place >= len(begins) or begins[place]
        found.append(RegionTokens(first + special_before, place + special_before, begins_word, ends_word))
    return found


def asked(regions: Sequence[RegionTokens], ids: Sequence[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return targets and borders that a row is asked for these regions."""
    targets, borders = [], []
    for region in regions:
        if region.is_scored:
            targets += [(position, int(ids[position])) for position in range(region.first, region.last)]
            if region.ends_word:
                borders.append(region.last)
            if region.begins_word:
                borders.append(region.first)
    return targets, sorted(set(borders))


def score(
    regions: Sequence[RegionTokens],
    ids: Sequence[int],
    logprobs: Mapping[tuple[int, int], float],
    borders: Mapping[int, float],
    *,
    marks_beginnings: bool,
) -> tuple[RegionScore, ...]:
    """Return what each region cost, in nats.

    ``marks_beginnings``: whether the tokenizer's tokens hold the blank before a word; without such tokens nothing
    is corrected.
    """
    scores = []
    for region in regions:
        count = region.last - region.first
        if not region.is_scored:
            scores.append(RegionScore(None, count))
            continue
        total = math.fsum(
            logprobs[position, int(ids[position])] for position in range(region.first, region.last)
        )
        if marks_beginnings:
            total += borders[region.last] if region.ends_word else 0.0
            total -= borders[region.first] if region.begins_word else 0.0
        scores.append(RegionScore(-total, count))
    return tuple(scores)


def word_beginnings(tokenizer: Any, vocabulary: int) -> list[bool]:
    """Return for every token whether a new word can begin with it: it opens with a blank, or is special (ends the text).

    ``vocabulary``: size of the model's output; ids beyond the tokenizer's own begin nothing.
    """
    special = set(tokenizer.all_special_ids)
    begins = [False] * vocabulary
    for piece, number in tokenizer.get_vocab().items():
        if number < vocabulary:
            begins[number] = number in special or piece[:1] in _BLANKS or piece in _BLANK_BYTES
    return begins


def _without_gaps(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return offsets in which a token holds the blanks before it, also where the tokenizer reports it without."""
    found: list[tuple[int, int]] = []
    before = 0
    for start, end in offsets:
        start = before if before < start and text[before:start].isspace() else start
        found.append((start, end))
        before = max(before, end)
    return found


def _is_blank(text: str, offset: tuple[int, int], before: int) -> bool:
    """Whether a token is blanks alone and ends before a region begins."""
    return text[offset[0] : offset[1]].isspace() and offset[1] <= before


def _is_leading(text: str, offset: tuple[int, int], start: int) -> bool:
    """Whether a token is the one blank right before a region."""
    return offset[1] == start and offset[1] - offset[0] == 1 and text[offset[0] : offset[1]] == " "
