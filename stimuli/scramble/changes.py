"""Records of changes: new positions of letters in a word, words in a sentence, or sentences in a text."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

Permutation = tuple[int | None, ...]
Tail = tuple[Permutation, int, float, int, int, int, str]
Spelt = tuple[str, Tail]
"""What a span becomes, and what a record says of it after ``shown``."""

KEPT_UP_TO = 64
"""Most letters of a word that anything is remembered of: longer ones are rare, and their records as long as they."""


class Change(NamedTuple):
    """One changed span of a text: a word, and for words that moved their sentence, for sentences the text."""

    word: int  # place, in reading order from 0, of the span's first word in the intact text
    start: int  # characters of the shown text (NFC) before the span
    intact: str  # the span before and after
    shown: str
    # for each place of the shown span, the place of the intact span whose piece (grapheme cluster, word, sentence)
    # stands there; None where a new letter stands. Spaces that were set between letters are no places
    permutation: Permutation
    displaced: int  # number of pieces that stand at another place than before
    # mean distance from their place, over the letters of the intact word (the words or sentences of the span), in
    # places, three decimals
    mean_displacement: float
    substituted: int = 0  # number of letters replaced by new ones, added, and taken out
    inserted: int = 0
    deleted: int = 0
    unit: str = "letter"  # what moved


class SpanForm(NamedTuple):
    """A span's new form: a :class:`Change` without its position in a text."""

    intact: str
    shown: str
    permutation: Permutation
    displaced: int
    mean_displacement: float
    substituted: int = 0
    inserted: int = 0
    deleted: int = 0
    unit: str = "letter"

    def at(self, word: int, start: int) -> Change:
        """Return the change that this form makes at a place of a text."""
        return Change._make((word, start, *self))


def described(
    intact: str,
    shown: str,
    permutation: Sequence[int | None],
    *,
    pieces: int,
    counted: int | None = None,
    unit: str = "letter",
) -> SpanForm:
    """Describe a new form from the places that its pieces come from."""
    displaced, total, new = _moves(permutation)
    if not new and pieces == len(permutation):
        mean = round(total / (counted or pieces or 1), 3)
        return SpanForm(intact, shown, tuple(permutation), displaced, mean, 0, 0, 0, unit)
    missing = pieces - len(permutation) + new
    replaced = min(new, missing)
    mean = round(total / (counted or pieces or 1), 3)
    return SpanForm(
        intact, shown, tuple(permutation), displaced, mean, replaced, new - replaced, missing - replaced, unit
    )


def _moves(permutation: Sequence[int | None]) -> tuple[int, int, int]:
    """Return how many pieces moved, how far all together, and how many are new."""
    if None not in permutation:
        sources = cast(Sequence[int], permutation)
        places = range(len(sources))
        apart = list(map(operator.sub, sources, places))
        return len(apart) - apart.count(0), sum(map(abs, apart)), 0
    displaced = total = new = 0
    for place, source in enumerate(permutation):
        if source is None:
            new += 1
        elif source != place:
            displaced += 1
            total += abs(place - source)
    return displaced, total, new


def tail_of(permutation: Permutation, letters: int, pieces: int | None = None) -> Tail:
    """Return what a form of a word says after ``intact`` and ``shown``."""
    pieces = letters if pieces is None else pieces
    if len(permutation) != pieces or None in permutation:
        return described("", "", permutation, pieces=pieces, counted=letters)[2:]
    displaced, total, _ = _moves(permutation)
    return permutation, displaced, round(total / letters, 3), 0, 0, 0, "letter"


_known_tail = functools.lru_cache(maxsize=1 << 15)(tail_of)


def known_tail(permutation: Permutation, letters: int, pieces: int | None = None) -> Tail:
    """Return the same as :func:`tail_of`, remembered for words of common length."""
    remembers = len(permutation) <= KEPT_UP_TO
    return (_known_tail if remembers else tail_of)(permutation, letters, pieces)


def fewest_moves(letters: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return from which place each wanted letter comes when equal letters move least."""
    stays = [letter == letters[place] for place, letter in enumerate(wanted)]
    free: dict[str, list[int]] = {}
    for place, letter in enumerate(letters):
        if not stays[place]:
            free.setdefault(letter, []).append(place)
    waiting = {letter: iter(places) for letter, places in free.items()}
    return [place if stays[place] else next(waiting[letter]) for place, letter in enumerate(wanted)]


@functools.lru_cache(maxsize=1 << 14)
def _equal_places(letters: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    last = dict(zip(letters, range(len(letters)), strict=True))
    earlier: dict[str, list[int]] = {}
    for place, letter in enumerate(letters):
        if last[letter] != place:
            earlier.setdefault(letter, []).append(place)
    return tuple([(*places, last[letter]) for letter, places in earlier.items()])


def settled(letters: Sequence[str], order: list[int]) -> list[int]:
    """Return an order of letters with equal ones moving least, as :func:`fewest_moves`, from the order itself."""
    size = len(letters)
    if len(set(letters)) == size:
        return order
    short = size <= KEPT_UP_TO
    groups = (
        _equal_places(letters) if short and isinstance(letters, str) else _equal_places.__wrapped__(letters)
    )
    where = order.index if short else sorted(range(size), key=order.__getitem__).__getitem__
    for group in groups:
        if len(group) == 2:
            _settle_two(group, where, order)
            continue
        targets = sorted(map(where, group))
        stay = set(group).intersection(targets)
        leaving = iter([place for place in group if place not in stay])
        for target in targets:
            order[target] = target if target in stay else next(leaving)
    return order


def _settle_two(pair: tuple[int, ...], where: Callable[[int], int], order: list[int]) -> None:
    """Do for two equal letters what :func:`settled` does for any number, in a third of the time."""
    first, second = pair
    earlier, later = where(first), where(second)
    if earlier > later:
        earlier, later = later, earlier
    if earlier == second or later == first:
        order[earlier], order[later] = second, first
    else:
        order[earlier], order[later] = first, second
