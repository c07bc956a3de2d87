"""Who may do what: session tokens, passes, and limits on how often something is tried.

Tokens are compared in constant time and kept as digests only; network addresses are kept as keyed digests in memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from itsdangerous import BadSignature, URLSafeTimedSerializer

PassKind = Literal["pilot", "simulated", "arrival", "resume"]
PASS_AGE: Mapping[PassKind, timedelta] = {
    "pilot": timedelta(hours=12),
    "simulated": timedelta(hours=12),
    "arrival": timedelta(hours=12),
    "resume": timedelta(days=1),
}
MOST_TOKENS = 8
TIMES_DIFFER_S = 1e-9


def session_token(secret: bytes, session_id: str) -> str:
    """Return the token (256 bits) with which a browser speaks for a session.

    It is derived, so that a browser that lost the reply to its first request gets the same token again.
    """
    digest = hmac.digest(secret, b"session token\0" + session_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def token_hash(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", errors="replace")).hexdigest()


def is_token(token: str, stored_hash: str | None) -> bool:
    """Say, in constant time, whether a token is one of those whose digests are stored, a blank between them."""
    given = token_hash(token)
    return any(hmac.compare_digest(given, one) for one in (stored_hash or "").split())


def with_token(stored_hash: str | None, token: str) -> str:
    """Return stored digests with one more token's: a page that was given an earlier one still sends what it holds."""
    known = (stored_hash or "").split()
    given = token_hash(token)
    return " ".join([*(one for one in known if one != given), given][-MOST_TOKENS:])


@dataclass(frozen=True)
class Pass:
    """What a genuine pass says."""

    kind: PassKind
    told: Mapping[str, str]


class Passes:
    """Signed passes for one study, each good for a while: from experimenters, or for an arrival that was checked."""

    def __init__(self, secret: bytes) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="wrods pass")

    def make(self, study: str, kind: PassKind, **told: str) -> str:
        """Return a new pass."""
        return self._signer.dumps([study, kind, told])

    def read(self, given: str, study: str) -> Pass | None:
        """Return what a pass says; None where it is not genuine, not fresh or of another study."""
        try:
            (of_study, kind, told), made = self._signer.loads(given, return_timestamp=True)
        except (BadSignature, ValueError, TypeError):
            return None
        age = datetime.now(UTC) - made
        return Pass(kind, told) if of_study == study and age <= PASS_AGE[kind] else None


class Throttle:
    """Count tries per caller and say how long one has to wait.

    ``most`` tries are free at once, and another every ``window_s / most`` seconds. Of each caller one number is kept: when its
    next try would be free. It is found by a keyed digest of the caller's name, and so many numbers are kept that two callers
    seldom share one; however many callers there are, they take no more memory.
    """

    CALLERS = 65_536

    def __init__(self, most: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = window_s / most
        self._ahead_s = window_s - self._every_s
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._free_from = array("d", bytes(8 * self.CALLERS))

    def wait(self, caller: str | None, tries: int = 1) -> float:
        """Count a try (or several) and return 0, or the seconds to wait when there were too many."""
        name = (caller or "").encode("utf-8", errors="replace")
        digest = hashlib.blake2b(name, digest_size=4, key=self._salt).digest()
        place = int.from_bytes(digest) % self.CALLERS
        moment = self._clock()
        # two threads at once may count one try less, which no limit here depends on
        free_from = max(self._free_from[place], moment)
        wait = free_from - moment - self._ahead_s
        if wait > TIMES_DIFFER_S:
            return wait
        self._free_from[place] = free_from + tries * self._every_s
        return 0.0
