"""Sessions that are going on, kept at hand so that a trial does not read its whole plan from disk each time."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from experiment.people.access import is_token
from experiment.store import Store, queries
from experiment.store.declining import asks_for_consent

MOST_TRIALS = 100_000
"""How many planned trials are kept at hand, of all sessions together: about 100 MB where each shows a sentence."""


class PlannedTrials(Mapping[int, Mapping[str, Any]]):
    """The planned trials of a session by their index, each kept as JSON until it is wanted.

    As objects, those of a few hundred sessions would be millions, which Python's collection of garbage goes through time and
    again while everybody waits.
    """

    def __init__(self, trials: Iterable[Mapping[str, Any]]) -> None:
        self._texts = {
            trial["trial_index"]: json.dumps(trial, separators=(",", ":")).encode() for trial in trials
        }

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        found = json.loads(self._texts[index])
        assert isinstance(found, dict)
        return found

    def __contains__(self, index: object) -> bool:
        return index in self._texts

    def __iter__(self) -> Iterator[int]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True)
class LiveSession:
    """What answering needs of a session: its planned trials, its questions and criteria by screen, who may speak for it."""

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


def _planned(plan: Mapping[str, Any]) -> PlannedTrials:
    return PlannedTrials(trial for screen in plan["screens"] for trial in screen.get("trials", ()))


def _questions(plan: Mapping[str, Any]) -> dict[str, Sequence[dict[str, Any]]]:
    return {
        screen["name"]: screen["questions"] for screen in plan["screens"] if screen["kind"] == "questions"
    }


def _with(plan: Mapping[str, Any], kind: str, name: str, entry: str) -> dict[str, Mapping[str, Any]]:
    """Return an entry of the screens of a kind that have one, by their name."""
    return {
        screen[name]: screen[entry]
        for screen in plan["screens"]
        if screen["kind"] == kind and screen.get(entry)
    }


def live_session(row: Mapping[str, Any]) -> LiveSession:
    """Return what answering needs of a stored session with a plan."""
    plan = row["plan"]
    live = LiveSession(
        row["session_id"],
        row["study"],
        row["token_hash"],
        _planned(plan),
        _questions(plan),
        _with(plan, "questions", "name", "comprehension"),
        _with(plan, "block", "block", "feedback"),
        plan.get("withdraw_until"),
        above_consent=frozenset(
            screen["name"]
            for screen in takewhile(lambda screen: screen["kind"] != "consent", plan["screens"])
            if screen["kind"] == "questions"
        ),
        consents=tuple(
            screen["version"]
            for screen in plan["screens"]
            if screen["kind"] == "consent" and "version" in screen
        ),
        sends_away=frozenset(
            screen["kind"]
            for screen in plan["screens"]
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
        """Return the session for which a token speaks, or None."""
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
        """Drop a session that is gone."""
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
