"""Writes what a run brings in: call, trial, score and regions of a reply in one transaction, and waits where the disk is full."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from experiment.models.api.first_token import mark_of
from experiment.models.engine import UNFINISHED, Reply, Request
from experiment.models.money import Purse
from experiment.models.planning import ModelSession, request_json, request_key
from experiment.models.planning.restoring import UNSCRAMBLE, is_restored
from experiment.models.runs import too_long
from experiment.models.runs.limits import Stop
from experiment.models.runs.outcome import Outcome
from experiment.models.runs.served import Served
from experiment.models.runs.unanswered import Unanswered
from experiment.scoring.trial import Score
from experiment.store import Store, records
from experiment.store.database import StoreError, cannot_open
from experiment.store.tables import calls, sessions, trials
from experiment.version import installed_version
from stimuli.errors import UserError

T = TypeVar("T")

MOST_WAITING = 2048
"""Writes under way before the run waits for the disk."""

PATIENCE_S = 600.0
"""How long a run waits for a database that takes no writes, before it ends."""

STATES_TOGETHER = 64
STATES_EVERY_S = 1.0
STATES_SHARE = 0.1
STATES_AT_MOST_S = 10.0
MOST_HELD = 1024
"""So many trials wait for one flush of their hidden states, or so long; longer where flushes would take more than this share of
the time, up to so many seconds and trials."""

_COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
_FIELDS = (*_COUNTS, "latency_ms", "ttft_ms", "dtype", "path")


class StateWriter(Protocol):
    """Keeps hidden states (``experiment.models.states``)."""

    def add(self, work_key: str, states: Any) -> None: ...  # noqa: D102
    def flush(self) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass
class _Write:
    operation: Callable[[Connection], records.Stored | None]
    future: Future[records.Stored | None]
    session_id: str


class Recording:
    """Writes the replies of one run of one model."""

    def __init__(
        self,
        store: Store,
        outcome: Outcome,
        *,
        kind: str,
        identity: Mapping[str, object],
        about: Mapping[str, object],
        purse: Purse,
        stop: Stop,
        states: StateWriter | None = None,
    ) -> None:
        self.store = store
        self.served: Served | None = None
        self.outcome = outcome
        self.unanswered = Unanswered(outcome)
        self.waits_for: str | None = None
        self._kind = kind
        self._identity = identity
        self._about = dict(about)
        self._purse = purse
        self._stop = stop
        self._states = states
        self._there: set[str] = set()
        self._left: dict[str, int] = {}
        self._plugin = f"wrods {installed_version()}"
        self._writes: deque[_Write] = deque()
        self._held: list[tuple[Callable[[Connection], records.Stored | None], str]] = []
        self._lock = threading.Lock()
        self._under_way = 0
        self._flushed = time.monotonic()
        self._flush_took = 0.0
        self._statuses: Counter[str] = Counter()
        self._read_as: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def expect(self, session_id: str, left: int) -> None:
        """Note how many trials of a session are missing, so that its end is looked for with the last of them alone."""
        self._left[session_id] = left

    def keep(
        self, session: ModelSession, request: Request, reply: Reply, *, back: float, cost: float | None
    ) -> None:
        """Write one reply."""
        if self.served is not None and not reply.from_cache:
            self.served.require(reply.resolved_model)
        self._count(session, request, reply, cost)
        kept = replace(reply, states=()) if reply.states else reply
        operation = self._operation(session, request, kept, back=back, cost=cost)
        if self._states is None:
            self._submit(operation, session.session_id)
        else:
            # a trial counts as stored only once its states are on disk
            if reply.states:
                self._states.add(reply.work_key, reply.states)
            self._held.append((operation, session.session_id))
            waited, took = time.monotonic() - self._flushed, self._flush_took
            many = len(self._held) >= STATES_TOGETHER or waited > STATES_EVERY_S
            is_time = waited * STATES_SHARE > took or waited > STATES_AT_MOST_S
            if (many and is_time) or len(self._held) >= MOST_HELD:
                self.write_held()
        self.settle(MOST_WAITING)

    def _submit(self, operation: Callable[[Connection], records.Stored | None], session_id: str) -> None:
        self._writes.append(_Write(operation, self._written(operation), session_id))

    def _written(self, operation: Callable[[Connection], records.Stored | None]) -> Future[Any]:
        future = self.store.write(operation)
        with self._lock:
            self._under_way += 1
        future.add_done_callback(self._note_written)
        return future

    def _note_written(self, future: Future[Any]) -> None:
        with self._lock:
            self._under_way -= 1

    @property
    def is_writing(self) -> bool:
        """Whether writes are under way, or wait for a database that takes none."""
        return self._under_way > 0 or self.waits_for is not None

    def write_held(self) -> None:
        """Put states on disk, then the trials that they belong to."""
        began = time.monotonic()
        if self._states is not None and self._held:
            self._states.flush()
        self._flushed = time.monotonic()
        self._flush_took = self._flushed - began
        held, self._held = self._held, []
        for operation, session_id in held:
            self._submit(operation, session_id)

    def settle(self, most: int) -> None:
        """Wait for writes until at most so many are under way, and take their outcome."""
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
        """Close what keeps hidden states."""
        if self._states is not None:
            states, self._states = self._states, None
            states.close()

    def finish(self, session_ids: list[str]) -> None:
        """Mark sessions as finished whose trials were all stored before."""
        for session_id in session_ids:
            self.store.write(partial(records.finish_session, session_id=session_id)).result()

    def _done(self, write: _Write) -> records.Stored | None:
        """Return what a write came to; where the database takes none, wait and try again."""

        def again() -> records.Stored | None:
            if write.future.done() and isinstance(write.future.exception(), StoreError):
                write.future = self._written(write.operation)
            return write.future.result()

        try:
            return write.future.result()
        except StoreError:
            return self.patiently(again)
        except records.TrialConflict as conflict:
            raise _another_run(conflict) from conflict

    def read(self, query: Callable[[Connection], T]) -> T:
        """Read from the store, waiting where it is out of reach."""

        def attempt() -> T:
            with self.store.read() as connection:
                return query(connection)

        return self.patiently(attempt)

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Return what asking the database came to; where it is full or out of reach, say so, wait and try again."""
        began, wait = time.monotonic(), 0.5
        while True:
            try:
                found = attempt()
            except (StoreError, DBAPIError) as error:
                told = error if isinstance(error, StoreError) else cannot_open(self.store.address, error)
                self.waits_for = told.message
                if time.monotonic() - began > PATIENCE_S or self._stop.wait(wait):
                    raise told from error
                wait = min(15.0, 2 * wait)
            except records.TrialConflict as conflict:
                raise _another_run(conflict) from conflict
            else:
                self.waits_for = None
                return found

    def _count(self, session: ModelSession, request: Request, reply: Reply, cost: float | None) -> None:
        outcome = self.outcome
        self._statuses[reply.status] += 1
        if not reply.from_cache:
            for name in _COUNTS:
                self._tokens[name] += getattr(reply, name) or 0
        outcome.cached += reply.from_cache
        outcome.cost_usd += cost or 0.0
        if (reason := too_long.reason_of(session, request, reply)) is not None:
            outcome.given_up += self._left.get(session.session_id, 0)
            outcome.ended[reason] = outcome.ended.get(reason, 0) + 1
        elif (fault := too_long.fault_of(session, request, reply)) is not None:
            outcome.given_up += 1
            outcome.too_long.append(fault)
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
        self, session: ModelSession, request: Request, reply: Reply, *, back: float, cost: float | None
    ) -> Callable[[Connection], records.Stored | None]:
        """Return the write of one reply; it says whether a trial was new, there already, or not answered (None)."""
        key, _, before = reply.work_key.partition(":")
        trial = session.trial_of(reply.work_key)
        place = {"session_id": session.session_id, "trial_index": trial["trial_index"], "attempt": 1}
        sampling = {"temperature": request.temperature, "seed": request.seed}
        counts = {name: getattr(reply, name) for name in _FIELDS}
        moment = records.now()
        call = {
            **place, **sampling, **counts, "request_key": request_key(self._identity, request), "work_key": key,
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
                **records.planned_columns(trial), **place, **sampling, **counts, "work_key": key,
                "response_raw": session.response_raw(reply), "label_logprobs": reply.label_logprobs,
                "margin": reply.margin, "surprisal": session.surprisal(reply), "cost_usd": cost,
                "path": f"{reply.path or ''}{session.mark_of(key)}" or None,
                "plugin_version": self._plugin, "created_at": moment,
            }  # fmt: skip
        why = too_long.reason_of(session, request, reply)
        fault = None if why is not None else too_long.fault_of(session, request, reply)
        known = session.session_id in self._there
        is_last = False
        if row is not None or fault is not None:
            left = self._left.get(session.session_id, 1) - 1
            self._left[session.session_id] = left
            is_last = left <= 0
        planned = len(session)
        about = {"model": dict(self._identity), "settings": session.manner.to_json(), **self._about}
        purse, kind, reader, run_id = self._purse, self._kind, self.outcome.reader, self.outcome.run_id

        runs = count()

        def write(connection: Connection) -> records.Stored | None:
            if next(runs) and _is_written(connection, call):
                # it was committed, and the database could not say so any more
                return None if row is None else "stored"
            if not known and not _is_there(connection, session.session_id):
                records.create_session(
                    connection, session.plan, reader_kind=kind, reader=reader, session_id=session.session_id,
                    run_id=run_id, yoked_to=session.yoked_to, client=about,
                )  # fmt: skip
            stored: records.Stored | None = None
            if row is not None and verdict is not None:
                earlier = _cost_before(connection, place) if cost else 0.0
                told = row if not earlier else row | {"cost_usd": (cost or 0.0) + earlier}
                stored = records.store_trial(connection, told, regions, verdict)
            records.store_call(connection, call)
            if stored == "stored" and is_last and _is_complete(connection, session.session_id, planned):
                records.finish_session(connection, session.session_id)
            if why is not None:
                too_long.end(connection, session.session_id, why)
            if fault is not None:
                too_long.flag(connection, session.session_id, int(trial["trial_index"]), fault)
            if is_last:
                too_long.close(connection, session.session_id, planned)
            purse.settled(connection, back)
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
    """Say whether all trials of a session are stored now."""
    query = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    return connection.scalar(query) == planned


def _cost_before(connection: Connection, place: Mapping[str, Any]) -> float:
    """Return what earlier calls for the same trial cost."""
    where = [calls.c[name] == value for name, value in place.items()]
    return float(
        connection.scalar(select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(*where)) or 0.0
    )
