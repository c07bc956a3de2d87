"""Storage of a run's replies: call, trial, score and regions in one transaction; waits while the disk is full."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from experiment.models.api.responses import mark_of
from experiment.models.api.retrying import RunStopped
from experiment.models.engine import UNFINISHED, Reply, Request
from experiment.models.planning.plans import calls_before, told_of
from experiment.models.planning.session import (
    UNSCRAMBLE,
    ModelSession,
    TrialFeedback,
    is_restored,
    request_json,
    request_key,
)
from experiment.models.runs import remaining_work
from experiment.models.runs.limits import Stop
from experiment.models.runs.status import SHOWN_ERRORS, RunOutcome
from experiment.scoring.trial import Score
from experiment.store import Store, records
from experiment.store.database import StoreError, cannot_open
from experiment.store.records import excluded_sessions
from experiment.store.session_activity import end_session
from experiment.store.tables import calls, sessions, trials
from experiment.version import installed_version
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.models.states import StateWriter

T = TypeVar("T")
Operation = Callable[[Connection], "records.Stored | None"]
"""The write of one reply; returns whether a trial was new, already stored, or not answered (None)."""

MOST_WAITING = 2048
"""Unfinished writes before the run waits for the disk."""

PATIENCE_S = 600.0
"""Seconds that a run waits for a database that accepts no writes, before it ends."""

STATES_TOGETHER = 64
STATES_EVERY_S = 1.0
STATES_SHARE = 0.1
STATES_AT_MOST_S = 10.0
MOST_HELD = 1024
"""Trials or seconds until hidden states are flushed; longer if flushes would take more than this share of the time, up to a
number of seconds and of trials."""

_COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
_FIELDS = (*_COUNTS, "latency_ms", "ttft_ms", "dtype", "path")


@dataclass
class _Write:
    operation: Operation
    future: Future[records.Stored | None]
    session_id: str


@dataclass(frozen=True)
class Answerer:
    """The description of a session's reader that is stored with it."""

    kind: str  # model or baseline
    identity: Mapping[str, object]  # the engine's identity
    about: Mapping[str, object] = field(default_factory=dict)


class Recording:
    """Stores the replies of one run of one model."""

    def __init__(
        self,
        store: Store,
        outcome: RunOutcome,
        answerer: Answerer,
        stop: Stop,
        states: StateWriter | None = None,
    ) -> None:
        self.store, self.outcome = store, outcome
        self.unanswered = UnansweredTrials(outcome)
        self.waits_for: str | None = None  # why the database accepts no writes
        self._answerer, self._stop, self._states = answerer, stop, states
        self._there: set[str] = set()
        self._left: dict[str, int] = {}
        self._plugin = f"wrods {installed_version()}"
        self._writes: deque[_Write] = deque()
        self._held: list[tuple[Operation, str]] = []
        self._flushed = time.monotonic()
        self._flush_took = 0.0
        self._statuses: Counter[str] = Counter()
        self._read_as: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def begin(self, session: ModelSession, never: int) -> list[Request]:
        """Return the requests that follow from a session's stored answers; ``never`` of its trials can never be answered."""

        def stored_of(connection: Connection) -> tuple[dict[int, TrialFeedback], dict[str, str]]:
            restores = session.manner.strategy == "unscramble_first"
            before = calls_before(connection, session.session_id) if restores else {}
            return told_of(connection, session.session_id), before

        stored, before = self.read(stored_of)
        # the session's end is checked only with the last of its missing trials
        self._left[session.session_id] = len(session) - len(stored) - never
        return session.begin(stored, before)

    def keep(self, session: ModelSession, request: Request, reply: Reply, *, cost: float | None) -> None:
        """Store one reply and its cost in US dollars (None if unknown)."""
        self._count(session, request, reply, cost)
        without_states = replace(reply, states=()) if reply.states else reply
        operation = self._operation(session, request, without_states, cost=cost)
        if self._states is None:
            self._submit(operation, session.session_id)
        else:
            # a trial counts as stored only once its states are on disk
            if reply.states:
                self._states.add(reply.work_key, reply.states)
            self._held.append((operation, session.session_id))
            waited, took = time.monotonic() - self._flushed, self._flush_took
            is_due = len(self._held) >= STATES_TOGETHER or waited > STATES_EVERY_S
            is_time = waited * STATES_SHARE > took or waited > STATES_AT_MOST_S
            if (is_due and is_time) or len(self._held) >= MOST_HELD:
                self.write_held()
        self.settle(MOST_WAITING)

    def _submit(self, operation: Operation, session_id: str) -> None:
        self._writes.append(_Write(operation, self.store.write(operation), session_id))

    def write_held(self) -> None:
        """Flush states to disk, then store the trials that they belong to."""
        began = time.monotonic()
        if self._states is not None and self._held:
            self._states.flush()
        self._flushed = time.monotonic()
        self._flush_took = self._flushed - began
        operations, self._held = self._held, []
        for operation, session_id in operations:
            self._submit(operation, session_id)

    def settle(self, most: int) -> None:
        """Wait until at most ``most`` writes are unfinished, and record their results."""
        if most == 0:
            self.write_held()
        while len(self._writes) > most or (self._writes and self._writes[0].future.done()):
            write = self._writes[0]
            stored = self._done(write)
            self._writes.popleft()
            self._there.add(write.session_id)
            self.outcome.answered += stored == "stored"
            self.outcome.stored_before += stored == "same"

    def close(self) -> None:
        """Close the writer of hidden states."""
        if self._states is not None:
            states, self._states = self._states, None
            states.close()

    def finish(self, session_ids: list[str]) -> None:
        """Mark sessions as finished whose trials were all stored before."""
        for session_id in session_ids:
            self.store.write(partial(records.finish_session, session_id=session_id)).result()

    def _done(self, write: _Write) -> records.Stored | None:
        """Return the result of a write; while the database accepts none, wait and try again."""

        def again() -> records.Stored | None:
            if write.future.done() and isinstance(write.future.exception(), StoreError):
                write.future = self.store.write(write.operation)
            return write.future.result()

        try:
            return write.future.result()
        except StoreError:
            return self.patiently(again)
        except records.TrialConflict as conflict:
            raise _another_run(conflict) from conflict

    def read(self, query: Callable[[Connection], T]) -> T:
        """Read from the store, waiting while it is unavailable."""

        def attempt() -> T:
            with self.store.read() as connection:
                return query(connection)

        return self.patiently(attempt)

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Return the result of a database operation; while it is full or unavailable, report it, wait and try again."""
        began, wait = time.monotonic(), 0.5
        while True:
            try:
                result = attempt()
            except (StoreError, DBAPIError) as error:
                failure = error if isinstance(error, StoreError) else cannot_open(self.store.address, error)
                self.waits_for = failure.message
                if time.monotonic() - began > PATIENCE_S or self._stop.wait(wait):
                    raise failure from error
                wait = min(15.0, 2 * wait)
            except records.TrialConflict as conflict:
                raise _another_run(conflict) from conflict
            else:
                self.waits_for = None
                return result

    def _count(self, session: ModelSession, request: Request, reply: Reply, cost: float | None) -> None:
        outcome = self.outcome
        self._statuses[reply.status] += 1
        if not reply.from_cache:
            for name in _COUNTS:
                self._tokens[name] += getattr(reply, name) or 0
        outcome.cached += reply.from_cache
        outcome.cost_usd += cost or 0.0
        if (reason := remaining_work.reason_of(session, request, reply)) is not None:
            outcome.given_up += self._left.get(session.session_id, 0)
            outcome.ended[reason] = outcome.ended.get(reason, 0) + 1
        elif faults := remaining_work.faults_of(session, request, reply):
            outcome.given_up += len(faults)
            outcome.too_long += faults.values()
            self.unanswered.answered(reply.work_key)
        elif reply.status in UNFINISHED:
            self.unanswered.add(session.session_id, session.trial_of(reply.work_key), request, reply)
        elif request.purpose == UNSCRAMBLE:
            outcome.unrestored += not is_restored(reply.text, reply.status)
        elif ":" not in reply.work_key:
            self.unanswered.answered(reply.work_key)
            if (mark := mark_of(reply.path)) is not None:
                outcome.first_tokens[mark] = outcome.first_tokens.get(mark, 0) + 1
        outcome.statuses, outcome.tokens = dict(self._statuses), dict(self._tokens)

    def _operation(
        self, session: ModelSession, request: Request, reply: Reply, *, cost: float | None
    ) -> Operation:
        identity = self._answerer.identity
        key, _, before = reply.work_key.partition(":")
        trial = session.trial_of(reply.work_key)
        trial_key = {"session_id": session.session_id, "trial_index": trial["trial_index"], "attempt": 1}
        sampling = {"temperature": request.temperature, "seed": request.seed}
        counts = {name: getattr(reply, name) for name in _FIELDS}
        moment = records.now()
        call = {
            **trial_key, **sampling, **counts, "request_key": request_key(identity, request), "work_key": key,
            "run_id": self.outcome.run_id, "purpose": request.purpose, "request": request_json(request),
            "text": reply.text, "status": reply.status, "label_logprobs": reply.label_logprobs,
            "label_bounds": reply.label_bounds, "generated": reply.generated, "reasoning": reply.reasoning,
            "finish_reason": reply.finish_reason, "requested_model": reply.requested_model,
            "resolved_model": reply.resolved_model, "error": reply.error, "attempts": reply.attempts,
            "from_cache": reply.from_cache, "cost_usd": cost, "created_at": moment,
        }  # fmt: skip
        row: dict[str, Any] | None = None
        regions: list[dict[str, Any]] = []
        verdict: Score | None = None
        if not before and reply.status not in UNFINISHED:
            verdict = session.verdict(reply)
            regions = session.region_rows(reply)
            self._read_as[verdict.response_status] += 1
            self.outcome.response_statuses = dict(self._read_as)
            row = {
                **records.planned_columns(trial), **trial_key, **sampling, **counts, "work_key": key,
                "response_raw": session.response_raw(reply), "recorded": session.recorded(reply),
                "label_logprobs": reply.label_logprobs,
                "margin": session.margin(reply), "surprisal": session.surprisal(reply), "cost_usd": cost,
                "path": f"{reply.path or ''}{session.mark_of(key)}" or None,
                "plugin_version": self._plugin, "created_at": moment,
            }  # fmt: skip
        why = remaining_work.reason_of(session, request, reply)
        faults = {} if why is not None else remaining_work.faults_of(session, request, reply)
        session_exists = session.session_id in self._there
        is_last = False
        if row is not None or faults:
            left = self._left.get(session.session_id, 1) - max(1, len(faults))
            self._left[session.session_id] = left
            is_last = left <= 0
        planned = len(session)
        about = {"model": dict(identity), "settings": session.manner.to_json(), **self._answerer.about}
        kind, reader, run_id = self._answerer.kind, self.outcome.reader, self.outcome.run_id
        runs = count()

        def write(connection: Connection) -> records.Stored | None:
            if next(runs) and _is_written(connection, call):
                # it was committed, but the database could not confirm it
                return None if row is None else "stored"
            if not session_exists and not _is_there(connection, session.session_id):
                records.create_session(
                    connection, session.plan, reader_kind=kind, reader=reader, session_id=session.session_id,
                    run_id=run_id, yoked_to=session.yoked_to, client=about,
                )  # fmt: skip
            stored: records.Stored | None = None
            if row is not None and verdict is not None:
                earlier = _cost_before(connection, trial_key) if cost else 0.0
                trial_row = row if not earlier else row | {"cost_usd": (cost or 0.0) + earlier}
                stored = records.store_trial(connection, trial_row, regions, verdict)
            records.store_call(connection, call)
            if stored == "stored" and is_last and _is_complete(connection, session.session_id, planned):
                records.finish_session(connection, session.session_id)
            if why is not None:
                end_session(connection, session.session_id, remaining_work.ENDED, why)
            for index, fault in faults.items():
                remaining_work.flag(connection, session.session_id, index, fault)
            if is_last:
                remaining_work.close(connection, session.session_id, planned)
            return stored

        return write


def _is_there(connection: Connection, session_id: str) -> bool:
    query = select(sessions.c.session_id).where(sessions.c.session_id == session_id)
    return connection.scalar(query) is not None


def _is_written(connection: Connection, call: Mapping[str, Any]) -> bool:
    where = [calls.c[name] == call[name] for name in ("work_key", "run_id", "purpose", "created_at")]
    return connection.scalar(select(calls.c.call_id).where(*where)) is not None


def _another_run(conflict: records.TrialConflict) -> UserError:
    return UserError(
        f"another run of this study answers the same trials at this moment: {conflict}",
        mend="Let one of them end; then give the same command again.",
        exit_code=1,
    )


def _is_complete(connection: Connection, session_id: str, planned: int) -> bool:
    """Return whether all trials of a session are stored now."""
    query = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    return connection.scalar(query) == planned


def _cost_before(connection: Connection, trial_key: Mapping[str, Any]) -> float:
    """Return the cost of earlier calls for the same trial."""
    where = [calls.c[name] == value for name, value in trial_key.items()]
    return float(
        connection.scalar(select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(*where)) or 0.0
    )


class ServedModel:
    """Compares the model name that a server reports with those in the stored answers and in this run."""

    def __init__(self, reader: str, address: str, stored: Callable[[], list[str]]) -> None:
        self._reader = reader
        self._address = address
        self._stored: Callable[[], list[str]] | None = stored
        self._names: set[str] = set()

    def require(self, name: str | None) -> None:
        """Check a name that the server reports (None if it reports none)."""
        if name is None or name in self._names:
            return
        if self._stored is not None:
            self._names.update(self._stored())
            self._stored = None
        if not self._names:
            self._names.add(name)
        elif name not in self._names:
            raise RunStopped(
                f"{self._reader} has changed: its server at {self._address} reports {name}, and the stored answers are "
                f"of {', '.join(sorted(self._names))}",
                mend="Serve that model again; or give this one another name in the study; or go on in the same sessions with "
                "--if-changed keep_both: the table of calls says which model answered.",
            )


def names_stored(connection: Connection, study: str, reader: str) -> list[str]:
    """Return the names that the models of a reader's calls reported, without judges and sessions set aside."""
    query = (
        select(calls.c.resolved_model)
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .where(sessions.c.study == study, sessions.c.reader == reader)
        .where(sessions.c.session_id.not_in(excluded_sessions()))
        .where(calls.c.resolved_model.is_not(None), calls.c.purpose != "judge")
        .distinct()
    )
    return list(connection.scalars(query))


KINDS = 20
"""Largest number of kinds of errors listed in a run's outcome."""
WORDS = 120
"""Leading characters of an error's first line that distinguish kinds of errors."""


class UnansweredTrials:
    """Updates an outcome's unanswered trials; each trial is sent by at most one thread at a time."""

    def __init__(self, outcome: RunOutcome) -> None:
        self._outcome = outcome
        # status, kind and description, by work key
        self._failed: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self._statuses: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()

    def add(self, session_id: str, trial: Mapping[str, Any], request: Request, reply: Reply) -> None:
        """Record that a call for a trial brought no answer."""
        key, error = _trial(reply.work_key), reply.error or reply.status
        described = {
            "session_id": session_id, "trial_index": trial["trial_index"], "item_id": trial["item_id"],
            "purpose": request.purpose, "error": error, "work_key": key,
        }  # fmt: skip
        self._forget(key)
        self._failed[key] = status, kind, _ = (reply.status, error.splitlines()[0][:WORDS], described)
        self._statuses[status] += 1
        self._kinds[kind] += 1
        self._tell()

    def answered(self, work_key: str) -> None:
        """Record that a trial has its answer."""
        if self._forget(_trial(work_key)):
            self._tell()

    def handed_over(self, work_keys: Container[str]) -> None:
        """Record that failed trials are pending in a batch again."""
        for key in [key for key in self._failed if key in work_keys]:
            self._forget(key)
        self._tell()

    def _forget(self, key: str) -> bool:
        if key not in self._failed:
            return False
        status, kind, _ = self._failed.pop(key)
        self._statuses[status] -= 1
        self._kinds[kind] -= 1
        return True

    def _tell(self) -> None:
        outcome = self._outcome
        outcome.failed = len(self._failed)
        outcome.errors = [described for _, _, described in islice(self._failed.values(), SHOWN_ERRORS)]
        outcome.error_kinds = dict((+self._kinds).most_common(KINDS))
        outcome.unanswered = dict(+self._statuses)


def _trial(work_key: str) -> str:
    return work_key.partition(":")[0]
