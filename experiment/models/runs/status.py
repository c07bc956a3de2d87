"""Progress and outcome of a run for the terminal, other viewers and messages; counts of a study's sessions and trials."""

from __future__ import annotations

import os
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, case, func, insert, select, update

from experiment.models.api.probe import UNTRIED
from experiment.models.engine import ANSWERS, UNFINISHED
from experiment.models.runs.remaining_work import ENDED, Survey, flagged, unanswered_trials
from experiment.store import Store, records
from experiment.store.records import EXCLUDED, excluded_sessions, exclusions
from experiment.store.tables import TRIAL_KEY, calls, runs, scores, sessions, trials
from stimuli.errors import UserError

PEOPLE = ("human", "simulated")

EVERY_S = 3.0
"""Seconds between updates of the status in the store."""

SILENT_S = 30.0
"""Time without an update after which a run counts as ended."""

WINDOW_S = 60.0
"""Speed is measured over this window."""


def readers_of(connection: Connection, study: str) -> list[dict[str, Any]]:
    """Return counts per reader: trials in the tables and exclusions; participants together, pilots separately.

    ``reader``, ``reader_kind``; ``sessions``, ``states`` and ``trials`` that count; ``excluded``: by ``reason`` the numbers of
    whole ``sessions`` and of ``trials``, including those in sessions that count; ``unanswered``: requested trials without an
    answer yet and further answers that wait for theirs, by the status of the last call.
    """
    readers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _standing(connection, study):
        reader = _reader(readers, row)
        reader["sessions"] += int(row.sessions)
        reader["trials"] += int(row.trials or 0)
        reader["states"][row.state] = reader["states"].get(row.state, 0) + int(row.sessions)
    _take_excluded(connection, study, readers)
    for row, status in _unanswered(connection, study):
        counts = _reader(readers, row)["unanswered"]
        counts[status] = counts.get(status, 0) + 1
    return [readers[key] for key in sorted(readers)]


def _reader(readers: dict[tuple[str, str], dict[str, Any]], row: Any) -> dict[str, Any]:
    name = "pilots" if row.is_pilot else str(row.reader_kind if row.reader_kind in PEOPLE else row.reader)
    kind = str(row.reader_kind)
    return readers.setdefault(
        (kind, name),
        {
            "reader": name, "reader_kind": kind, "sessions": 0, "trials": 0, "states": {}, "excluded": {}, "unanswered": {},
        },
    )  # fmt: skip


def _standing(connection: Connection, study: str) -> Iterator[Any]:
    """Yield counts of the sessions that are not excluded, by reader and state."""
    is_held = and_(sessions.c.state == "finished", sessions.c.held_reason.is_not(None))
    state = case((is_held, "held for review"), else_=sessions.c.state).label("state")
    counted = (
        select(
            sessions.c.session_id, sessions.c.reader_kind, sessions.c.reader, state, sessions.c.is_pilot,
            func.count(trials.c.trial_index).label("n"),
        )
        .join(trials, trials.c.session_id == sessions.c.session_id, isouter=True)
        .where(sessions.c.study == study, sessions.c.session_id.not_in(excluded_sessions()))
        .group_by(sessions.c.session_id)
        .subquery()
    )  # fmt: skip
    # participants' names are not read
    reader = func.max(counted.c.reader).label("reader")
    grouping = (counted.c.reader_kind, counted.c.state, counted.c.is_pilot)
    totals = (func.count().label("sessions"), func.sum(counted.c.n).label("trials"))
    people = counted.c.reader_kind.in_(PEOPLE)
    yield from connection.execute(select(*grouping, reader, *totals).where(people).group_by(*grouping))
    yield from connection.execute(
        select(*grouping, counted.c.reader, *totals).where(~people).group_by(*grouping, counted.c.reader)
    )


def _take_excluded(
    connection: Connection, study: str, readers: dict[tuple[str, str], dict[str, Any]]
) -> None:
    """Add exclusions by reason, and subtract excluded trials of sessions that count."""
    marks = exclusions(connection, study)
    whole = {name: why for (name, trial, _), why in marks.items() if trial is None}
    single = {mark: why for mark, why in marks.items() if mark[1] is not None and mark[0] not in whole}
    for row in _sessions(connection, sorted({*whole, *(mark[0] for mark in single)})):
        reader = _reader(readers, row)
        if row.session_id in whole:
            _add(reader, whole[row.session_id], 1, int(row.n))
            continue
        query = select(trials.c.trial_index, trials.c.attempt).where(trials.c.session_id == row.session_id)
        for trial, attempt in connection.execute(query).all():
            why = next(
                (
                    single[mark]
                    for mark in ((row.session_id, trial, None), (row.session_id, trial, attempt))
                    if mark in single
                ),
                None,
            )
            if why is not None:
                reader["trials"] -= 1
                _add(reader, why, 0, 1)


def _add(reader: dict[str, Any], reason: str, whole: int, count: int) -> None:
    before = reader["excluded"].setdefault(reason or EXCLUDED, {"sessions": 0, "trials": 0})
    before["sessions"] += whole
    before["trials"] += count


def _sessions(connection: Connection, names: list[str], at_once: int = 500) -> Iterator[Any]:
    """Yield some sessions, each with its number of trials."""
    for start in range(0, len(names), at_once):
        query = (
            select(
                sessions.c.session_id, sessions.c.reader_kind, sessions.c.reader, sessions.c.is_pilot,
                func.count(trials.c.trial_index).label("n"),
            )
            .join(trials, trials.c.session_id == sessions.c.session_id, isouter=True)
            .where(sessions.c.session_id.in_(names[start : start + at_once]))
            .group_by(sessions.c.session_id)
        )  # fmt: skip
        yield from connection.execute(query).all()


def _unanswered(connection: Connection, study: str) -> Iterator[tuple[Any, str]]:
    """Yield the session and the status of each unanswered trial that the same command would request again."""
    # the rest of a session that has ended is reported separately
    query = select(
        sessions.c.session_id, sessions.c.reader_kind, sessions.c.reader, sessions.c.is_pilot
    ).where(
        sessions.c.study == study,
        sessions.c.state != ENDED,
        sessions.c.session_id.not_in(excluded_sessions()),
    )
    by_id = {row.session_id: row for row in connection.execute(query)}
    unanswered = [
        (str(trial.last["session_id"]), trial.planned["trial_index"], str(trial.last["status"]))
        for trial in unanswered_trials(connection, study)
    ]
    never = flagged(connection, sorted({session_id for session_id, _, _ in unanswered}))
    for session_id, index, status in unanswered:
        if session_id in by_id and index not in never.get(session_id, ()):
            yield by_id[session_id], status


@dataclass
class RunStatus:
    """Progress of one model."""

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
    per_second: float = 0.0  # trials per second in the last minute
    seconds_left: float | None = None  # at that speed
    engine: str | None = None
    waits: str | None = None  # why the engine or the database waits
    stopped: str | None = None
    number: int = 0  # number of the run in the study, from 1: clocks may be set back
    process: str | None = None  # distinguishes its process from a later one with the same id
    # number of this run's answers that are `valid`, `unparsed`, …
    response_statuses: dict[str, int] = field(default_factory=dict)
    given_up: int = 0  # trials that can never be answered (too_long)

    @property
    def done(self) -> int:
        """Number of stored trials."""
        return self.stored_before + self.answered


class Speed:
    """Trials per second over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, answered: int) -> float:
        """Record the number of answered trials, and return the trials per second."""
        now = time.monotonic()
        self._seen.append((now, answered))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        began, before = self._seen[0]
        return (answered - before) / (now - began) if now - began > 0.2 else 0.0


class RunStatusTable:
    """Updates the rows of one command's models in the table of runs; ignores a database that accepts no writes."""

    def __init__(self, store: Store, study: str, version: int) -> None:
        self._store, self._study, self._version = store, study, version
        self._last: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def begin(self, run_id: str, figures: RunStatus) -> None:
        """Record the start of a model's run."""
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
        self._store.write(lambda connection: connection.execute(insert(runs), row).rowcount).result()

    def tell(self, run_id: str, figures: RunStatus, *, is_last: bool = False) -> None:
        """Store the status every few seconds, when the state changes, and at the end."""
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
            future = self._store.write(lambda connection: connection.execute(where).rowcount)
            if is_last:
                future.result()
        except UserError:
            return


def told(figures: RunStatus) -> dict[str, Any]:
    """Return a status as JSON."""
    return {name: value for name, value in vars(figures).items() if name not in ("reader", "state")}


def runs_of(connection: Connection, study: str, *, latest: bool = True) -> list[dict[str, Any]]:
    """Return the runs of a study, each with ``alive``, newest first; with ``latest`` one per reader.

    A run that did not end is dead if its process is gone (on this machine) or was silent for half a minute.
    """
    query = select(runs).where(runs.c.study == study).order_by(runs.c.began_at.desc(), runs.c.run_id.desc())
    runs_found: list[dict[str, Any]] = []
    seen: set[str] = set()
    rows = sorted(
        connection.execute(query).mappings(), key=lambda row: -int((row["figures"] or {}).get("number") or 0)
    )
    for row in rows:
        if latest and row["reader"] in seen:
            continue
        seen.add(row["reader"])
        run = {**row, "alive": is_alive(dict(row))}
        if row["ended_at"] is None:
            run["figures"] = {**(row["figures"] or {}), **_stored_of(connection, str(row["run_id"]))}
        runs_found.append(run)
    return runs_found


def _stored_of(connection: Connection, run_id: str) -> dict[str, Any]:
    """Return a run's stored results: its answers by how they were read, its failed calls and the total cost."""
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
    """Return whether a run is active; on this machine its process decides, even if it sleeps."""
    if row["ended_at"] is not None:
        return False
    if row["host"] != platform.node():
        return silent_for(row) < SILENT_S
    pid, mark = int(row["pid"]), (row["figures"] or {}).get("process")
    return _has_process(pid) and mark in (None, process_mark(pid))


def silent_for(row: Mapping[str, Any]) -> float:
    """Return the seconds since a run's last update."""
    return (datetime.now(UTC) - datetime.fromisoformat(row["seen_at"])).total_seconds()


def process_mark(pid: int) -> str | None:
    """Return when a process began, as this system reports it; None if it does not."""
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


SHOWN_ERRORS = 100
"""Trials without an answer that are listed individually; all are counted."""


@dataclass
class RunOutcome:
    """Outcome of one run of one model."""

    reader: str
    use: str
    run_id: str
    sessions: int = 0  # sessions and trials in the plan
    planned: int = 0
    # trials stored by other runs (before it or meanwhile), and by this one
    stored_before: int = 0
    answered: int = 0
    # valid stored sessions of this reader that are not planned now, from other settings or a larger plan
    other_sessions: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0  # trials that this run sent without an answer; the next run sends them again
    unanswered: dict[str, int] = field(default_factory=dict)  # number of these by final status
    # number of these by the first line of the last error
    error_kinds: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)  # number of replies by status
    # number of answers stored by this run that are `valid`, `unparsed`, `refused`, …
    response_statuses: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    first_tokens: dict[str, int] = field(default_factory=dict)
    # texts that the model was to restore first and did not (refused or truncated): it was prompted with them as they were
    unrestored: int = 0
    cost_usd: float = 0.0  # cost of this run's calls
    # largest ratio of a reply's cost to the most that its request's length and `max_tokens` allow
    dearest: float = 1.0
    cached: int = 0  # replies from the journal
    lost_usd: float = 0.0  # calls in flight of an earlier run that was killed: they may have been spent
    unanswered_usd: float = 0.0  # possible cost of this run's tries without an answer
    handed_over: int = 0  # requests submitted as batches
    batches: str = ""  # result of all batches, as text
    # trials that can never be answered: they exceed the context, or follow in conversations that did
    given_up: int = 0
    # number of the plan's conversations that ended for this reason, in this run or before it, by reason
    ended: dict[str, int] = field(default_factory=dict)
    # individual trials of this kind, in this run or before it, with the reason
    too_long: list[str] = field(default_factory=list)
    blocks: str = ""  # progress of the model, as text
    engine: dict[str, object] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None  # why the run ended early

    @property
    def left(self) -> int:
        """Number of trials still to be sent, errors included."""
        return self.planned - self.stored_before - self.answered - self.given_up

    @property
    def is_whole(self) -> bool:
        """Whether the same command would find nothing more to send."""
        return not (self.failed or self.interrupted or self.stopped)


def describe_unread(response_statuses: Mapping[str, int]) -> str:
    """Describe how many answers of a run are not valid, and how they were read; empty if all are valid."""
    invalid = {status: count for status, count in response_statuses.items() if status != "valid" and count}
    if not invalid:
        return ""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(invalid.items()))
    return f"{counts} of {sum(response_statuses.values())} answers"


def describe_read_from_reply(first_tokens: Mapping[str, int], answered: int) -> str:
    """Describe how many choices are read from the reply because their first token is inconclusive or differs."""
    why = {
        "unsettled": "leaves the label open",
        "disagrees": "makes another label most probable (as it may where answers are drawn)",
    }
    named = ", ".join(
        f"of {first_tokens[mark]} it {reason}" for mark, reason in why.items() if mark in first_tokens
    )
    return (
        f"{sum(first_tokens.values())} of {answered} answers are read from the reply, since their first token does not say the same: "
        f"{named}; the column path names them"
    )


def describe_unanswerable(outcome: RunOutcome) -> list[str]:
    """Describe which trials of a model can never be answered, why, and the remedy; empty if all can be."""
    if not outcome.given_up:
        return []
    lines = [f"{count} sessions have ended: {reason}" for reason, count in outcome.ended.items()]
    lines += [f"can never be answered: {fault}" for fault in outcome.too_long[:SHOWN_ERRORS]]
    more = len(outcome.too_long) - SHOWN_ERRORS
    in_talks = outcome.given_up - len(outcome.too_long)
    parts = [
        *([f"{in_talks} trials of sessions that ended so"] if in_talks else []),
        *([f"{len(outcome.too_long)} trials whose prompts are too long"] if outcome.too_long else []),
    ]
    fewer = "Ask for fewer trials a session, or context: independent, or name" if in_talks else "Name"
    return [
        *lines,
        *([f"… and {more} more"] if more > 0 else []),
        f"{' and '.join(parts)} can never be answered and are not asked again. What was answered is in the tables. {fewer} a model "
        "that reads more; or, where its server reads more now, give --ask-again.",
    ]


_COMPUTES = {
    "packed": "what prompts share once, many endings in one pass (packed)",
    "expanded": "what prompts share once, endings side by side (expanded)",
    "plain": "each prompt whole (plain)",
    "batched": "prompts whole, several at a time (batched)",
}


def describe_blocks(surveyed: Survey, left: int) -> str:
    """Describe the progress of a model with this many trials left."""
    total = len(surveyed.rounds)
    begun = (
        sum(surveyed.missing.get(number, 0) + surveyed.out[number] > 0 for number in surveyed.rounds)
        if left > 0
        else 0
    )
    if not begun:
        return f"all {total} blocks of each list" if total > 1 else "the one block of each list"
    return f"{total - begun} of {total} blocks of each list"


def describe_endpoint(reader: str, probe: object) -> list[str]:
    """Describe the capabilities of a model's server that the probe found; empty without a probe."""
    if not isinstance(probe, Mapping):
        return []
    labels, prompt = probe["top_logprobs"], probe["prompt_logprobs"]
    gives = [
        f"log-probabilities of the {labels} likeliest answer tokens" if labels else "",
        "log-probabilities of the prompt (surprisal)" if prompt else "",
        f"answers held to labels ({probe['structure']})"
        if probe["structure"] not in ("none", UNTRIED)
        else "",
        "temperature" if probe["temperature"] else "",
        "seed" if probe["seed"] else "",
        "system message" if probe["system_role"] else "",
        ("thoughts (counted apart)" if probe["reasoning_counts"] else "thoughts") if probe["thinks"] else "",
    ]
    lacks = [
        "" if labels else "log-probabilities of answers (choices are read from its text)",
        "" if prompt else "log-probabilities of the prompt (no surprisal)",
        "" if probe["temperature"] else "temperature",
        "" if probe["seed"] else "seed",
    ]
    heading = f"{reader}: {probe['resolved_model'] or probe['model']} at {probe['base_url']}"
    parts = [("gives", gives), ("does not give", lacks)]
    lines = [
        f"  {word}: {', '.join(filter(None, properties))}" for word, properties in parts if any(properties)
    ]
    unstable = probe["stable_prompt_logprobs"] is False
    remarks = [
        *probe["remarks"],
        *(["the same prompt had other log-probabilities twice"] if unstable else []),
    ]
    return [heading, *lines, *(f"  {remark}" for remark in remarks)]


def describe_parity(reader: str, parity: Mapping[str, object]) -> list[str]:
    """Describe the backend of a local model and its deviation from plain passes; empty without a check."""
    if not parity.get("checked"):
        return []
    method = _COMPUTES.get(str(parity["path"]), str(parity["path"]))
    difference, checked = parity.get("max_abs_difference"), parity["checked"]
    far = ""
    if isinstance(difference, float):
        prompts = "1 prompt" if checked == 1 else f"{checked} prompts"
        far = f"; in {prompts} checked, log-probabilities are at most {difference:.1g} nats from plain passes"
    return [f"{reader}: computes {method}{far}"]


def new_run_id() -> str:
    """Return a name for a run that starts now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def dead_runs(connection: Connection, study: str) -> dict[str, str]:
    """Return the readers by run of those that ended without recording it, for example killed ones."""
    rows = runs_of(connection, study, latest=False)
    return {
        str(row["run_id"]): str(row["reader"]) for row in rows if row["ended_at"] is None and not row["alive"]
    }
