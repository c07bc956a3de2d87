"""Cache of active sessions, so that a trial does not load its whole plan from disk, and access control.

Access control comprises session tokens, passes, and rate limits. Tokens are compared in constant time and stored only as
digests; network addresses are kept in memory as keyed digests.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from itsdangerous import BadSignature, URLSafeTimedSerializer

from experiment.store import Store, queries
from experiment.store.erasure import asks_for_consent

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
    """Return the token (256 bits) of a browser for a session.

    It is derived, so that a browser that lost the reply to its first request gets the same token again.
    """
    digest = hmac.digest(secret, b"session token\0" + session_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def token_hash(token: str) -> str:
    """Return the stored hash of a token."""
    return hashlib.sha256(token.encode("utf-8", errors="replace")).hexdigest()


def is_token(token: str, stored_hash: str | None) -> bool:
    """Return, in constant time, whether a token is one of those whose digests are stored, separated by blanks."""
    given = token_hash(token)
    return any(hmac.compare_digest(given, stored) for stored in (stored_hash or "").split())


def with_token(stored_hash: str | None, token: str) -> str:
    """Return stored digests with one more token's: a page with an earlier token can still send its answers."""
    known = (stored_hash or "").split()
    given = token_hash(token)
    return " ".join([*(digest for digest in known if digest != given), given][-MOST_TOKENS:])


@dataclass(frozen=True)
class AccessPass:
    """The contents of a valid pass."""

    kind: PassKind
    told: Mapping[str, str]


class Passes:
    """Signed passes for one study with limited validity: from experimenters, or for an arrival that was checked."""

    def __init__(self, secret: bytes) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="wrods pass")

    def make(self, study: str, kind: PassKind, **told: str) -> str:
        """Return a new pass."""
        return self._signer.dumps([study, kind, told])

    def read(self, given: str, study: str) -> AccessPass | None:
        """Return the contents of a pass; None if it is invalid, expired or of a different study."""
        try:
            (of_study, kind, contents), made = self._signer.loads(given, return_timestamp=True)
        except (BadSignature, ValueError, TypeError):
            return None
        age = datetime.now(UTC) - made
        return AccessPass(kind, contents) if of_study == study and age <= PASS_AGE[kind] else None


class Throttle:
    """Counts tries per caller and returns the time to wait.

    ``most`` tries are allowed at once, and another every ``window_s / most`` seconds. Each caller has one number, the time of
    its next allowed try, at a keyed digest of the caller's name. There are so many numbers that two callers seldom share one;
    their memory does not grow with the number of callers.
    """

    CALLERS = 65_536

    def __init__(self, most: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = window_s / most
        self._ahead_s = window_s - self._every_s
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._free_from = array("d", bytes(8 * self.CALLERS))

    def wait(self, caller: str | None, tries: int = 1) -> float:
        """Count a try (or several); return 0, or the seconds to wait if there were too many."""
        name = (caller or "").encode("utf-8", errors="replace")
        digest = hashlib.blake2b(name, digest_size=4, key=self._salt).digest()
        place = int.from_bytes(digest) % self.CALLERS
        moment = self._clock()
        # two simultaneous threads may miss one try, which no limit here depends on
        free_from = max(self._free_from[place], moment)
        wait = free_from - moment - self._ahead_s
        if wait > TIMES_DIFFER_S:
            return wait
        self._free_from[place] = free_from + tries * self._every_s
        return 0.0


MOST_TRIALS = 100_000
"""Largest number of planned trials in the cache, over all sessions: about 100 MB if each shows a sentence."""


class PlannedTrials(Mapping[int, Mapping[str, Any]]):
    """The planned trials of a session by their index, each stored as JSON until it is needed.

    As objects, those of a few hundred sessions would be millions, which Python's garbage collection would scan repeatedly while
    everyone waits.
    """

    def __init__(self, trials: Iterable[Mapping[str, Any]]) -> None:
        self._texts = {
            trial["trial_index"]: json.dumps(trial, separators=(",", ":")).encode() for trial in trials
        }

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        trial = json.loads(self._texts[index])
        assert isinstance(trial, dict)
        return trial

    def __contains__(self, index: object) -> bool:
        return index in self._texts

    def __iter__(self) -> Iterator[int]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True)
class LiveSession:
    """The parts of a session needed for answers: its planned trials, questions and criteria by screen, and tokens."""

    session_id: str
    study: str
    token_hash: str | None
    trials: Mapping[int, Mapping[str, Any]]
    questions: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    comprehension: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    feedback: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    withdraw_until: str | None = None
    agreed: threading.Event = field(default_factory=threading.Event)
    above_consent: frozenset[str] = frozenset()
    consents: tuple[str, ...] = ()
    sends_away: frozenset[str] = frozenset()


def live_session(row: Mapping[str, Any]) -> LiveSession:
    """Return the cached form of a stored session with a plan."""
    plan = row["plan"]
    screens = plan["screens"]
    question_screens = [screen for screen in screens if screen["kind"] == "questions"]
    consents = [place for place, screen in enumerate(screens) if screen["kind"] == "consent"]
    above = screens[: consents[0]] if consents else screens
    live = LiveSession(
        row["session_id"],
        row["study"],
        row["token_hash"],
        PlannedTrials(trial for screen in screens for trial in screen.get("trials", ())),
        {screen["name"]: screen["questions"] for screen in question_screens},
        {
            screen["name"]: screen["comprehension"]
            for screen in question_screens
            if screen.get("comprehension")
        },
        {
            screen["block"]: screen["feedback"]
            for screen in screens
            if screen["kind"] == "block" and screen.get("feedback")
        },
        plan.get("withdraw_until"),
        above_consent=frozenset(screen["name"] for screen in above if screen["kind"] == "questions"),
        consents=tuple(screens[place]["version"] for place in consents if "version" in screens[place]),
        sends_away=frozenset(
            screen["kind"]
            for screen in screens
            if screen["kind"] == "device" or (screen["kind"] == "practice" and screen.get("pass") is not None)
        ),
    )
    if row["reader_kind"] != "human" or not asks_for_consent(plan):
        live.agreed.set()
    return live


class LiveSessions:
    """The sessions of all studies served, the most recent in memory."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, LiveSession] = OrderedDict()
        self._trials = 0
        self._lock = threading.Lock()

    def find(self, store: Store, study: str, session_id: str, token: str) -> LiveSession | None:
        """Return the session that a token is for, or None."""
        with self._lock:
            known = self._known.get(session_id)
            if known is not None:
                self._known.move_to_end(session_id)
        if known is None or not is_token(token, known.token_hash):
            known = self._load(store, session_id)
        if known is None or known.study != study or not is_token(token, known.token_hash):
            return None
        return known

    def forget(self, session_id: str) -> None:
        """Remove a session that is gone."""
        with self._lock:
            self._drop(session_id)

    def _load(self, store: Store, session_id: str) -> LiveSession | None:
        with store.read() as connection:
            row = queries.session(connection, session_id)
        if row is None or not row["plan"]:
            return None
        loaded = live_session(row)
        with self._lock:
            self._drop(session_id)
            self._known[session_id] = loaded
            self._trials += len(loaded.trials)
            while self._trials > MOST_TRIALS and len(self._known) > 1:
                self._drop(next(iter(self._known)))
        return loaded

    def _drop(self, session_id: str) -> None:
        dropped = self._known.pop(session_id, None)
        self._trials -= 0 if dropped is None else len(dropped.trials)
