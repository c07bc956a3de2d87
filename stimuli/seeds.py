"""Seeds of all random draws: a stable hash of named parts, never global state or hash salt.

:func:`stable_seed` returns one number, :func:`stable_draws_of` the numbers of a whole sequence (the words of a text) from
one hash, and :class:`Draw` derives further draws from one of these numbers. All are the same on every machine, in every
process and in any order of work.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import struct
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _hashlib import HASHXOF

Part = str | int | float | None
Thing = TypeVar("Thing")

_MASK = (1 << 64) - 1
_WEYL = 0x9E3779B97F4A7C15


def stable_seed(*parts: Part) -> int:
    """Hash the parts that a draw belongs to, from wide to narrow, to a 64-bit seed that is the same on every machine."""
    return int.from_bytes(hashlib.sha256(_as_bytes(_written(parts))).digest()[:8], "big")


def generator(*parts: Part) -> random.Random:
    """Return a private generator seeded by :func:`stable_seed`."""
    return random.Random(stable_seed(*parts))


def stable_draws_of(count: int, common: tuple[Part, ...], text: str, number: int) -> tuple[int, ...]:
    """Return 64-bit numbers from the SHAKE-128 stream over the parts ``[*common, text, number]``, eight bytes each."""
    stream = _begun(*common).copy()
    stream.update(_ended(text, number))
    return _numbers(count).unpack(stream.digest(8 * count))


@functools.lru_cache(maxsize=1024)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}Q")


def _written(parts: Sequence[Part]) -> str:
    """Write parts as a JSON array, piece by piece, for that is several times as fast as json.dumps."""
    pieces = [
        encode_basestring(part)
        if isinstance(part, str)
        else str(part)
        if type(part) is int
        else json.dumps(part)
        for part in parts
    ]
    return f"[{','.join(pieces)}]"


def _as_bytes(written: str) -> bytes:
    return written.encode("utf-8", "surrogatepass")


@functools.lru_cache(maxsize=256, typed=True)
def _begun(*parts: Part) -> HASHXOF:
    """Return the hash of the first parts, to be copied and gone on with."""
    return hashlib.shake_128(_as_bytes(f"{_written(parts)[:-1]},"))


@functools.lru_cache(maxsize=16)
def _ended(text: str, number: int) -> bytes:
    """Return how the last parts are written; remembered, since a text has several rows of draws."""
    return _as_bytes(f"{encode_basestring(text)},{number}]")


class Draw:
    """Small draws from one 64-bit number, further numbers by the counter of SplitMix64 (Steele, Lea & Flood, 2014).

    Made for a few draws a word: it costs a tenth of seeding :class:`random.Random`. The bias of :meth:`below`
    stays under 2**-16.
    """

    __slots__ = ("_left", "_room", "_state")

    def __init__(self, number: int) -> None:
        self._state = number
        self._left = number
        self._room = 1 << 64

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to ``bound - 1``."""
        if self._room < bound << 16:
            self._state = (self._state + _WEYL) & _MASK
            mixed = self._state
            mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
            self._left, self._room = mixed ^ (mixed >> 31), 1 << 64
        self._left, value = divmod(self._left, bound)
        self._room //= bound
        return value

    def dealt(self, things: Sequence[Thing]) -> Iterator[Thing]:
        """Yield all things in random order, one draw per thing, computed lazily."""
        pool = list(things)
        while pool:
            yield pool.pop(self.below(len(pool)))
