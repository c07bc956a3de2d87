"""Words of a text, and which words of an answer stand for which words of the intact text.

A word is what wrods scrambles: a run of letters and digits, joined across apostrophes; a hyphen makes two. Words are compared in
NFC, without regard to case; punctuation is no part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rapidfuzz.distance import OSA, LCSseq

from stimuli.scramble.words import cut, nfc


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared: NFC, typographic apostrophes straightened, case folded."""
    pieces = cut(nfc(text).replace("\u2019", "'")).pieces
    return tuple(word.casefold() for word in pieces[1::2])


def same_place(intact: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """Find for each intact word the given word that stands for it."""
    places: list[int | None] = [None] * len(intact)
    for block in LCSseq.opcodes(list(intact), list(given)):
        if block.tag == "equal":
            for step in range(block.src_end - block.src_start):
                places[block.src_start + step] = block.dest_start + step
    start = given_start = 0
    for end in [place for place, found in enumerate(places) if found is not None] + [len(intact)]:
        anchor = places[end] if end < len(intact) else None
        given_end = len(given) if anchor is None else anchor
        if start < end and given_start < given_end:
            gap = _matched(tuple(intact[start:end]), tuple(given[given_start:given_end]))
            for offset, place in enumerate(gap):
                places[start + offset] = None if place is None else given_start + place
        start, given_start = end + 1, given_end + 1
    return places


@lru_cache(maxsize=4096)
def _matched(intact: tuple[str, ...], given: tuple[str, ...]) -> tuple[int | None, ...]:
    """Align words in order by the largest sum of similarities (Needleman & Wunsch, 1970), gaps free."""
    rows, columns = len(intact), len(given)
    if rows * columns > 1_000_000:
        return tuple(None for _ in intact)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            together = OSA.normalized_similarity(intact[i], given[j]) + best[i + 1][j + 1]
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    places: list[int | None] = []
    i = j = 0
    while i < rows:
        if j >= columns:
            places.append(None)
            i += 1
            continue
        alike = OSA.normalized_similarity(intact[i], given[j])
        if alike > 0 and best[i][j] == alike + best[i + 1][j + 1]:
            places.append(j)
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            places.append(None)
            i += 1
        else:
            j += 1
    return tuple(places)


def with_one_typo(given: str, intact: str, shown: str) -> bool:
    """Return whether a word is one typo from the intact one, and nearer to it than to the shown form."""
    away = int(OSA.distance(given, intact))
    return away == 0 or (away == 1 and int(OSA.distance(given, shown)) > 1)
