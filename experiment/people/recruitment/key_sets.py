"""The published keys of platforms (JSON Web Key Sets, RFC 7517): fetched when first needed, kept for a day and through outages."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

FRESH_S = 24 * 3600
TRY_AGAIN_S = 60
"""So long after a fetch nothing is fetched again, whatever keys tokens name."""
PATIENCE_S = 5
LARGEST = 256 * 1024
SMALLEST_BITS = 2048

Find = Callable[[str], RSAPublicKey | None]


class KeysUnavailable(Exception):
    """A platform's keys cannot be reached, and none are known from before."""


@dataclass
class _Known:
    keys: Mapping[str, RSAPublicKey]
    fetched_at: float | None = None
    tried_at: float | None = None


class KeySets:
    """The keys of platforms by the address, or the file, of their set."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def of(self, place: str) -> Find:
        """Return what finds a key by its id in the set at an address or in a file; it raises ``KeysUnavailable``."""
        return lambda key_id: self._find(place, key_id)

    def _find(self, place: str, key_id: str) -> RSAPublicKey | None:
        now = self._clock()
        known = self._known.get(place)
        if known is not None and key_id in known.keys and now - (known.fetched_at or 0) <= FRESH_S:
            return known.keys[key_id]  # without waiting for anybody who fetches
        with self._lock:
            known = self._known.setdefault(place, _Known({}))
            is_old = known.fetched_at is None or now - known.fetched_at > FRESH_S
            # a key that is not known may be a new one
            may_try = known.tried_at is None or now - known.tried_at > TRY_AGAIN_S
            if (is_old or key_id not in known.keys) and may_try:
                known.tried_at = now
                try:
                    known.keys = read_keys(_fetched(place))
                    known.fetched_at = now
                except (OSError, ValueError):
                    pass  # those from before go on being good
            if known.fetched_at is None:
                raise KeysUnavailable(place)
            return known.keys.get(key_id)


def _fetched(place: str) -> bytes:
    if not place.startswith(("https://", "http://")):
        return Path(place).expanduser().read_bytes()
    with urllib.request.urlopen(place, timeout=PATIENCE_S) as reply:
        return bytes(reply.read(LARGEST))


def read_keys(data: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA keys of a set by their id."""
    given = json.loads(data)
    entries = given.get("keys") if isinstance(given, dict) else None
    found = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("kty") == "RSA" and entry.get("use", "sig") == "sig":
            key = _key(entry)
            if key.key_size >= SMALLEST_BITS:
                found[str(entry.get("kid"))] = key
    if not found:
        raise ValueError("the set has no RSA key for signatures")
    return found


def _key(entry: Mapping[str, Any]) -> RSAPublicKey:
    return RSAPublicNumbers(_number(entry.get("e")), _number(entry.get("n"))).public_key()


def _number(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("a number of the key is missing")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
