"""Scrambles a text or a stream of texts in corrected mode: a separate draw per word, and the same words in all conditions.

Draws depend on the seed, the item (or the text and its occurrence) and the word's position, so results do not depend on
what else is scrambled, in which order, or in which process. The words chosen at a low rate are among those chosen at a
higher one, with the same new form. Types that move words or sentences follow the same rules with sentences, or the text,
as units.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stimuli.scramble.conditions import (
    DEFAULT,
    LetterConditions,
    OrderConditions,
    Scrambled,
    ScrambleSettings,
    TextRandom,
)
from stimuli.scramble.types import Operation, OperationSpec, parse_operation
from stimuli.words import find_words, nfc


def scramble_text(
    text: str,
    operation: OperationSpec,
    *,
    seed: int,
    rate: float | None = None,
    item_id: str | None = None,
    occurrence: int = 0,
    words: Collection[int] | None = None,
    **settings: Any,
) -> Scrambled:
    """Scramble one text; ``settings`` are those of :class:`ScrambleSettings`, such as ``language`` and ``capitals``."""
    conditions = {"": parse_operation(operation, rate=rate)}
    given = ScrambleSettings(**settings)
    shown = scramble_conditions(
        text, conditions, seed=seed, item_id=item_id, occurrence=occurrence, words=words, settings=given
    )
    return shown[""]


def scramble_conditions(
    text: str,
    conditions: Mapping[str, OperationSpec],
    *,
    seed: int,
    item_id: str | None = None,
    occurrence: int = 0,
    words: Collection[int] | None = None,
    settings: ScrambleSettings = DEFAULT,
    places: Sequence[int] | None = None,
) -> dict[str, Scrambled]:
    """Scramble one text once per condition.

    With ``dose: equal`` the words that change are those that *every* condition can change, so conditions
    of the same rate change exactly the same words; a word that one of them cannot change stays intact in all and
    is reported. Conditions of different rates are nested. ``none`` conditions put no bound on the others.
    Conditions that move words share sentences in the same way; units put no bound on each other.

    A transposition and a substitution of the same position, distance and letter class act on the same pair of
    letters wherever both can. ``places`` are those of each word in the row of draws (:func:`shared_words` gives them), where
    versions of a text shall scramble their common words alike.
    """
    operations = tuple(
        (level, parse_operation(given, default_rate=settings.rate)) for level, given in conditions.items()
    )
    row = None if places is None else tuple(places)
    draws = TextRandom(seed, nfc(text) if item_id is None else item_id, occurrence, row)
    return _conditions(operations, settings).scrambled(nfc(text), draws, words)


class ScrambleConditions:
    """Conditions of a study, made ready for any number of texts."""

    def __init__(self, operations: Mapping[str, Operation], settings: ScrambleSettings) -> None:
        self._operations = dict(operations)
        of_unit: dict[str, dict[str, Operation]] = {}
        for level, operation in operations.items():
            if not operation.changes_nothing:
                of_unit.setdefault(operation.type.unit, {})[level] = operation
        self._made = [
            LetterConditions(levels, settings) if unit == "letter" else OrderConditions(levels, settings)
            for unit, levels in of_unit.items()
        ]
        self._shares = {level: given.texts for level, given in operations.items() if given.texts < 1}
        self._complete = len(of_unit) == 1 and len(of_unit[next(iter(of_unit))]) == len(operations)

    def scrambled(self, plain: str, draws: TextRandom, words: Collection[int] | None) -> dict[str, Scrambled]:
        """Scramble one text in NFC under every condition, in their order."""
        results: dict[str, Scrambled] = {}
        if self._complete:
            results = self._made[0].scrambled(plain, draws, words)
        else:
            for conditions in self._made:
                results |= conditions.scrambled(plain, draws, words)
            intact = Scrambled(plain)
            results = {level: results.get(level, intact) for level in self._operations}
        # The words that conditions share are those of all of them, whether or not a share takes this text.
        if self._shares:
            (number,) = draws.numbers(1, "which texts")
            for level, share in self._shares.items():
                if number >= share * 2**64:
                    results[level] = Scrambled(plain)
        return results


@functools.lru_cache(maxsize=32)
def _conditions(
    operations: tuple[tuple[str, Operation], ...], settings: ScrambleSettings
) -> ScrambleConditions:
    return ScrambleConditions(dict(operations), settings)


@dataclass(frozen=True)
class SharedWords:
    """The words of one version of a text in relation to those of the other versions."""

    # each word's place in the row of draws: that of the same word in the first version, or one of its own
    places: tuple[int, ...]
    words: frozenset[int]  # the words that every version has, equally often


def shared_words(versions: Sequence[tuple[str, Sequence[int]]]) -> list[SharedWords]:
    """Relate the words of versions of one text, each given with the places of its starred words.

    Starred words, equally many in each version, correspond in their order; other words by their letters and their
    number of earlier occurrences.
    """
    rows = [[word.text for word in find_words(nfc(text))] for text, _ in versions]
    counts = [Counter(row) for row in rows]
    equally_often = {name for name, n in counts[0].items() if all(n == other[name] for other in counts)}
    slots: dict[object, int] = {}
    related = []
    for number, (row, (_, starred)) in enumerate(zip(rows, versions, strict=True)):
        seen: Counter[str] = Counter()
        places = []
        for index, name in enumerate(row):
            occurrence: object = (name, seen[name])
            key = ("starred", starred.index(index)) if index in starred else occurrence
            seen[name] += 1
            places.append(slots.setdefault(key, index if number == 0 else len(slots)))
        common = frozenset(index for index, name in enumerate(row) if name in equally_often)
        related.append(SharedWords(tuple(places), common))
    return related


def common_words(text: str, operations: Sequence[OperationSpec]) -> tuple[int, ...]:
    """Return the positions of the words that all operations can change, ignoring their rates."""
    conditions = {
        str(number): replace(parse_operation(operation), rate=1.0, texts=1.0)
        for number, operation in enumerate(operations)
    }
    results = scramble_conditions(text, conditions, seed=0)
    return next((tuple(c.word for c in result.changes) for result in results.values() if result.changes), ())


_MAKE = tuple.__new__  # half the time of a call
_SLOTS = 1 << 12
_NUMBER = struct.Struct(">Q")


class Occurrences:
    """Counts earlier occurrences of each text, in sixteen to thirty-two bytes per distinct text.

    Texts are identified by 64 bits of their BLAKE2 hash: among a million distinct texts the probability that any two
    coincide is one in thirty million, and then the second merely gets the draws of a repeated text.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _SLOTS))
        self._used = 0
        self._again: dict[int, int] = {}

    def before(self, text: str) -> int:
        """Return how many times a text came before, and count it."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        key = _NUMBER.unpack(digest)[0] or 1  # 0 marks a free slot
        if not self._add(key):
            self._again[key] = self._again.get(key, 0) + 1
            return self._again[key]
        self._used += 1
        if 2 * self._used > len(self._slots):
            old_slots = self._slots
            self._slots = array("Q", bytes(16 * len(old_slots)))
            for slot in old_slots:
                if slot:
                    self._add(slot)
        return 0

    def _add(self, key: int) -> bool:
        slots, mask = self._slots, len(self._slots) - 1
        place = key & mask
        while (occupant := slots[place]) and occupant != key:
            place = (place + 1) & mask
        slots[place] = key
        return not occupant


def scramble_stream(
    texts: Iterable[str], operation: OperationSpec, *, seed: int, settings: ScrambleSettings = DEFAULT
) -> Iterator[Scrambled]:
    """Yield the texts scrambled, one by one as they come."""
    seen = Occurrences()
    conditions = ScrambleConditions({"": parse_operation(operation)}, settings)
    for text in texts:
        plain = nfc(text)
        draws = _MAKE(TextRandom, (seed, plain, seen.before(plain), None))
        yield conditions.scrambled(plain, draws, None)[""]
