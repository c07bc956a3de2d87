"""Scrambles a stream of texts of any length with flat memory, each as it would come out alone."""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator

from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.settings import DEFAULT, Draws, Scrambled, ScrambleSettings
from stimuli.scramble.text import Conditions, OperationSpec
from stimuli.scramble.words import nfc

_MAKE = tuple.__new__  # half the time of a call
_SLOTS = 1 << 12
_NUMBER = struct.Struct(">Q")


class Occurrences:
    """Counts how often each text came before, in sixteen to thirty-two bytes a distinct text.

    Texts are told apart by 64 bits of their BLAKE2 hash: in a million distinct ones two are taken for the same
    with a chance of one in thirty million, and then the second merely has the draws of a repeated text.
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
            kept = self._slots
            self._slots = array("Q", bytes(16 * len(kept)))
            for one in kept:
                if one:
                    self._add(one)
        return 0

    def _add(self, key: int) -> bool:
        slots, mask = self._slots, len(self._slots) - 1
        place = key & mask
        while (there := slots[place]) and there != key:
            place = (place + 1) & mask
        slots[place] = key
        return not there


def scramble_stream(
    texts: Iterable[str],
    operation: OperationSpec,
    *,
    seed: int,
    rate: float | None = None,
    settings: ScrambleSettings = DEFAULT,
) -> Iterator[Scrambled]:
    """Scramble texts one by one as they come."""
    return _scrambled(texts, parse_operation(operation, rate=rate), seed, settings)


def _scrambled(
    texts: Iterable[str], operation: Operation, seed: int, settings: ScrambleSettings
) -> Iterator[Scrambled]:
    seen = Occurrences()
    conditions = Conditions({"": operation}, settings)
    for text in texts:
        plain = nfc(text)
        draws = _MAKE(Draws, (seed, plain, seen.before(plain)))
        yield conditions.scrambled(plain, draws, None)[""]
