"""Measures of every session, kept at hand: a session is measured again when it has new trials, at most twice a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from analysis.plan import RIGHT_SHARE
from experiment.people.quality import UNREADABLE, Measure, measures
from experiment.store.tables import scores, sessions, trials

AGAIN_AFTER_S = 30.0
MEASURED_KINDS = ("human", "simulated")
MEASURED = tuple(
    trials.c[name]
    for name in (
        *(
            "trial_index",
            "attempt",
            "is_practice",
            "is_filler",
            "is_attention_check",
            "timed_out",
            "response_raw",
            "rt",
            "hidden_ms",
        ),
        *("dropped_frames", "paste_count", "keyless_chars", "key_log"),
    )
)
Keys = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True)
class _Kept:
    trials: int
    at: float
    found: list[Measure]


class Findings:
    """Measures by session, for all studies of a server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._keys: dict[str, Keys] = {}

    def of(
        self,
        connection: Connection,
        rows: Iterable[Mapping[str, Any]],
        bounds: Mapping[str, float],
        *,
        within_s: float | None = None,
    ) -> dict[str, list[Measure]]:
        """Return the measures of people's (and simulated readers') sessions."""
        found = {}
        until = None if within_s is None else self._clock() + within_s
        has_measured = False
        for row in rows:
            if row["reader_kind"] not in MEASURED_KINDS or not row["n_trials"]:
                continue
            kept, is_current = self._known(row)
            # at least one each time, so that all are measured in the end however little time there is
            if is_current or (has_measured and until is not None and self._clock() > until):
                found[row["session_id"]] = [] if kept is None else kept.found
            else:
                found[row["session_id"]] = self._measure(connection, row, bounds)
                has_measured = True
        return found

    def forget(self, session_id: str) -> None:
        """Drop what is known of a session that is gone."""
        with self._lock:
            self._kept.pop(session_id, None)
            self._keys.pop(session_id, None)

    def _known(self, row: Mapping[str, Any]) -> tuple[_Kept | None, bool]:
        """Return what is known of a session, and whether it still holds."""
        with self._lock:
            kept = self._kept.get(row["session_id"])
        if kept is None:
            return None, False
        is_running = row["state"] == "started"
        holds = is_running and self._clock() - kept.at < AGAIN_AFTER_S
        return kept, kept.trials == row["n_trials"] or holds

    def _measure(
        self, connection: Connection, row: Mapping[str, Any], bounds: Mapping[str, float]
    ) -> list[Measure]:
        session_id = row["session_id"]
        with self._lock:
            keys = self._keys.get(session_id)
        if keys is None:
            keys = keys_of_plan(connection, session_id)
        rows = trials_to_measure(connection, session_id, answers=RIGHT_SHARE in bounds)
        try:
            found = measures(rows, keys, bounds)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # one session's rows keep nobody from seeing the others
            why = f"its rows cannot be measured ({type(error).__name__})"
            found = [Measure(UNREADABLE, 1.0, 0.0, why)]
        with self._lock:
            self._kept[session_id] = _Kept(row["n_trials"], self._clock(), found)
            self._keys[session_id] = keys
        return found


def trials_to_measure(
    connection: Connection, session_id: str, *, answers: bool = False
) -> list[dict[str, Any]]:
    """Return what :func:`experiment.people.quality.measures` reads of a session's trials, without condition and item.

    ``correct`` is filled for attention checks, and for other answers only where a declared rule asks for their share.
    """
    query = (
        select(*MEASURED)
        .where(trials.c.session_id == session_id)
        .order_by(trials.c.trial_index, trials.c.attempt)
    )
    rows = [dict(row) | {"correct": None} for row in connection.execute(query).mappings()]
    if answers or any(row["is_attention_check"] for row in rows):
        judged = select(scores.c.trial_index, scores.c.attempt, scores.c.correct)
        judged = judged.where(scores.c.session_id == session_id).order_by(scores.c.score_id)
        newest = {(row.trial_index, row.attempt): row.correct for row in connection.execute(judged)}
        for row in rows:
            if answers or row["is_attention_check"]:
                row["correct"] = newest.get((row["trial_index"], row["attempt"]))
    return rows


def keys_of_plan(connection: Connection, session_id: str) -> Keys:
    """Return of a session's planned trials the answering step's labels and keys, by ``trial_index``."""
    plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id)) or {}
    return {
        trial["trial_index"]: {"steps": [{name: trial["steps"][-1].get(name) for name in ("labels", "keys")}]}
        for screen in plan.get("screens", ())
        for trial in screen.get("trials", ())
    }
