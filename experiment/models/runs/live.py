"""What a run tells while it goes on: figures for the terminal, and in the store for whoever looks from elsewhere."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, func, insert, select, update

from experiment.models.engine import ANSWERS, UNFINISHED
from experiment.store import Store, records
from experiment.store.tables import TRIAL_KEY, calls, runs, scores, trials
from stimuli.errors import UserError

EVERY_S = 3.0
"""How often figures go to the store."""

SILENT_S = 30.0
"""A run that was not heard of for so long is taken as dead."""

WINDOW_S = 60.0
"""Speed is that of the last minute."""


@dataclass
class Figures:
    """How far one model is."""

    reader: str
    # `waits` (for its turn), `probe`, `runs`, `finished`, `stopped`, `interrupted`, `failed`
    state: str = "waits"
    planned: int = 0  # trials; `failed` counts those whose calls brought no answer
    stored_before: int = 0
    answered: int = 0
    failed: int = 0
    cached: int = 0
    error_kinds: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0
    per_second: float = 0.0  # trials answered a second in the last minute
    seconds_left: float | None = None  # at that speed
    engine: str | None = None
    waits: str | None = None  # what the engine or the database waits for
    estimate: dict[str, object] | None = None
    stopped: str | None = None
    number: int = 0  # which run of the study it is, counted from 1: clocks may be set back
    process: str | None = None  # what tells its process from another one that has the same number later
    # how many of the answers of this run are `valid`, `unparsed`, …
    response_statuses: dict[str, int] = field(default_factory=dict)
    given_up: int = 0  # trials that can never be answered (too_long)

    @property
    def done(self) -> int:
        """Trials that are stored."""
        return self.stored_before + self.answered


class Speed:
    """Trials a second over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, answered: int) -> float:
        """Note how many trials are answered now, and return how many there are a second."""
        now = time.monotonic()
        self._seen.append((now, answered))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        began, before = self._seen[0]
        return (answered - before) / (now - began) if now - began > 0.2 else 0.0


class Board:
    """Keeps the rows of one command's models in the table of runs; a database that takes no writes does not disturb it."""

    def __init__(self, store: Store, study: str, version: int) -> None:
        self._store, self._study, self._version = store, study, version
        self._last: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def begin(self, run_id: str, figures: Figures) -> None:
        """Note that a model's run begins."""
        moment = records.now()
        with self._store.read() as connection:
            query = select(func.count()).select_from(runs).where(runs.c.study == self._study)
            figures.number = int(connection.scalar(query) or 0) + 1
        figures.process = process_mark(os.getpid())
        row = {
            "run_id": run_id, "study": self._study, "version": self._version, "reader": figures.reader,
            "host": platform.node(), "pid": os.getpid(), "state": figures.state, "figures": told(figures),
            "began_at": moment, "seen_at": moment,
        }  # fmt: skip
        self._store.write(lambda connection: _insert(connection, row)).result()

    def tell(self, run_id: str, figures: Figures, *, is_last: bool = False) -> None:
        """Write figures every few seconds, when the state changes, and the last ones always."""
        with self._lock:
            now = time.monotonic()
            last, state = self._last.get(run_id, (-EVERY_S, ""))
            if not is_last and state == figures.state and now - last < EVERY_S:
                return
            self._last[run_id] = (now, figures.state)
        moment = records.now()
        values: dict[str, Any] = {"state": figures.state, "figures": told(figures), "seen_at": moment}
        if is_last:
            values["ended_at"] = moment
        where = update(runs).where(runs.c.run_id == run_id).values(**values)
        try:
            future = self._store.write(lambda connection: _execute(connection, where))
            if is_last:
                future.result()
        except UserError:
            return


def told(figures: Figures) -> dict[str, Any]:
    """Return figures as JSON."""
    return {name: value for name, value in vars(figures).items() if name not in ("reader", "state")}


def _insert(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(runs), dict(row))


def _execute(connection: Connection, statement: Any) -> None:
    connection.execute(statement)


def runs_of(connection: Connection, study: str, *, latest: bool = True) -> list[dict[str, Any]]:
    """Return the runs of a study with ``alive`` beside each, newest first; of each reader the latest one.

    A run that did not end is dead when its process is gone (on this machine) or was silent for half a minute. What it
    told last is seconds old, so its answers are counted in the store.
    """
    query = select(runs).where(runs.c.study == study).order_by(runs.c.began_at.desc(), runs.c.run_id.desc())
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    rows = sorted(
        connection.execute(query).mappings(), key=lambda row: -int((row["figures"] or {}).get("number") or 0)
    )
    for row in rows:
        if latest and row["reader"] in seen:
            continue
        seen.add(row["reader"])
        one = {**row, "alive": is_alive(dict(row))}
        if row["ended_at"] is None:
            one["figures"] = {**(row["figures"] or {}), **_stored_of(connection, str(row["run_id"]))}
        found.append(one)
    return found


def _stored_of(connection: Connection, run_id: str) -> dict[str, Any]:
    """Return what the store holds of a run: its answers, how they were read, its failed calls and what all of them cost."""
    of_run = calls.c.run_id == run_id
    same_trial = and_(*(trials.c[name] == calls.c[name] for name in TRIAL_KEY))
    answered = (
        select(*(trials.c[name] for name in TRIAL_KEY))
        .join(calls, same_trial)
        .where(of_run, calls.c.purpose.in_(ANSWERS), calls.c.status.not_in(UNFINISHED))
        .distinct()
        .subquery()
    )
    first = (
        select(func.min(scores.c.score_id))
        .join(answered, and_(*(scores.c[name] == answered.c[name] for name in TRIAL_KEY)))
        .group_by(*(scores.c[name] for name in TRIAL_KEY))
    )
    read_as = (
        select(scores.c.response_status, func.count())
        .where(scores.c.score_id.in_(first))
        .group_by(scores.c.response_status)
    )
    failed = (
        select(func.count())
        .select_from(calls)
        .join(trials, same_trial, isouter=True)
        .where(of_run, calls.c.status.in_(UNFINISHED), trials.c.session_id.is_(None))
    )
    cost = select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(of_run)
    return {
        "answered": int(connection.scalar(select(func.count()).select_from(answered)) or 0),
        "failed": int(connection.scalar(failed) or 0),
        "cost_usd": float(connection.scalar(cost) or 0.0),
        "response_statuses": {str(name): int(n) for name, n in connection.execute(read_as)},
    }


def is_alive(row: Mapping[str, Any]) -> bool:
    """Say whether a run goes on; on this machine its process tells, also one that sleeps."""
    if row["ended_at"] is not None:
        return False
    if row["host"] != platform.node():
        return silent_for(row) < SILENT_S
    pid, mark = int(row["pid"]), (row["figures"] or {}).get("process")
    return _has_process(pid) and mark in (None, process_mark(pid))


def silent_for(row: Mapping[str, Any]) -> float:
    """Return the seconds since a run was last heard of."""
    return (datetime.now(UTC) - datetime.fromisoformat(row["seen_at"])).total_seconds()


def process_mark(pid: int) -> str | None:
    """Return when a process began, in the words of the system that runs now; None where it does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        began = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
    return f"{boot} {began}"


def _has_process(pid: int) -> bool:
    if pid == os.getpid() or os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
