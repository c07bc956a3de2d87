"""Finds what was done to letters by comparing a form shown with the intact one, for items that carry no record of it.

Imported items say what was shown and what it was made of, not how. Letters that stand where they stood have stayed; of the
others, those that the intact word has and misses have moved, and the rest are new. Case does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stimuli.scramble.alignment import changes_between
from stimuli.scramble.changes import described
from stimuli.scramble.words import clusters_of, find_words, nfc

IMPORTED = "imported"
"""The operation that provenance names where an item came with its answers from elsewhere."""


def changes_of_forms(intact: Mapping[str, str], shown: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Derive the changed words of an item from its forms."""
    found: list[dict[str, Any]] = []
    for field in intact:
        if not intact[field] or not shown.get(field):
            continue
        whole, changed = (nfc(text[field]).lower() for text in (intact, shown))
        words, forms = ([word.text for word in find_words(text)] for text in (whole, changed))
        if len(words) != len(forms) or (words != forms and Counter(words) == Counter(forms)):
            return None
        for change in changes_between(whole, changed, "any"):
            found.append(_told(field, change.word, change.intact, change.shown, change.permutation))
    return found


def _told(field: str, word: int, intact: str, shown: str, aligned: Sequence[int | None]) -> dict[str, Any]:
    before, after = clusters_of(intact), clusters_of(shown)
    permutation = _in_place(before, after) if len(before) == len(after) else None
    form = described(intact, shown, permutation or aligned, pieces=len(before))
    return {"field": field, "word": word, **form._asdict(), "permutation": list(form.permutation)}


def _in_place(before: Sequence[str], after: Sequence[str]) -> list[int | None] | None:
    """Let letters stay where they can; None where letters both moved and came anew, which an alignment tells better."""
    stays = [one == other for one, other in zip(before, after, strict=True)]
    free: dict[str, list[int]] = {}
    for place, letter in enumerate(before):
        if not stays[place]:
            free.setdefault(letter, []).append(place)
    found: list[int | None] = list(range(len(after)))
    for place, letter in enumerate(after):
        if not stays[place]:
            left = free.get(letter)
            found[place] = left.pop(0) if left else None
    moved = sum(source is not None and source != place for place, source in enumerate(found))
    return None if moved and None in found else found
