"""Runs a study's model sessions: what is planned minus what is stored, each trial on disk as it is answered.

A reply becomes one write: trial, call and score together, and the session's end with its last trial. Killing the
process loses at most what was not yet answered or stood in the last quarter of a second; the same command then asks
for that alone. A reply that is no answer (an error on the way) is kept as a call and its trial stays to be asked.
"""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from experiment.freezing import refuse_if_changed
from experiment.models.api.retrying import RunStopped
from experiment.models.engine import UNFINISHED, Engine, Reply
from experiment.models.leases import LEASE_FILES
from experiment.models.opening import open_engine
from experiment.models.planning import Work, plan_work, request_json, right_answers
from experiment.models.settings import ModelSettings
from experiment.scoring import score_trial
from experiment.store import Store, queries, records
from experiment.study import Study
from experiment.version import installed_version
from stimuli.errors import UserError

MOST_WAITING = 2048
"""Writes under way before the run waits for the disk."""

_CALL_FIELDS = (
    "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "latency_ms", "ttft_ms", "dtype", "path",
)  # fmt: skip


@dataclass
class Outcome:
    """What one run of one model came to.

    Attributes
    ----------
    sessions, planned : int
        Sessions and trials of the plan.
    stored_before, answered : int
        Trials that were stored without this run (when it began, or by another meanwhile), and those stored by it.
    errors : list of dict
        ``session_id``, ``trial_index``, ``item_id`` and ``error`` of each trial without an answer.
    other_sessions : int
        Sessions of this reader in the store that are not planned now: of another revision, setting or wider plan.
    statuses : dict
        How often which reply status came.
    stopped : str or None
        Why the run ended early.
    """

    reader: str
    use: str
    run_id: str
    sessions: int = 0
    planned: int = 0
    stored_before: int = 0
    answered: int = 0
    other_sessions: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    engine: dict[str, object] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None

    @property
    def left(self) -> int:
        """Trials still to be asked, errors included."""
        return self.planned - self.stored_before - self.answered

    @property
    def is_whole(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.errors or self.interrupted or self.stopped)


Progress = Callable[[int, int, Mapping[str, int]], None]
"""Told after each reply: done, total, and how often which status came."""


def version_of(study: Study, store: Store, *, new_version: bool = False) -> int:
    """Note a study's design in the store and return its version.

    Raises
    ------
    UserError
        The study differs from what was frozen, or the design changed after data were collected and no new version was
        asked for.
    """
    refuse_if_changed(study)
    design = json.dumps(study.design, ensure_ascii=False, sort_keys=True)
    return store.write(
        lambda connection: records.ensure_version(
            connection, study.id, study.design_hash, design, new_version=new_version
        )
    ).result()


def plan_model(
    study: Study, reader: str, settings: ModelSettings, engine: Engine, *, version: int = 1
) -> list[Work]:
    """Return all work that a study asks of one model."""
    identity = engine.describe()["identity"]
    assert isinstance(identity, dict)
    work = plan_work(study, reader, settings, identity, version=version)
    if not work:
        raise UserError(
            "no trial of this study asks for an answer",
            mend="Give the block a choose, recover or answer step.",
        )
    return work


def run_model(
    study: Study,
    reader: str,
    use: str,
    options: Mapping[str, object],
    store: Store,
    *,
    version: int,
    max_trials: int | None = None,
    progress: Progress | None = None,
    opener: Callable[[ModelSettings], Engine] = open_engine,
) -> Outcome:
    """Ask one model for everything that is planned and not stored.

    Parameters
    ----------
    reader : str
        The model's name in the study.
    use : str
        What answers, as ``kind:name``.
    options : mapping
        The model's other settings.
    max_trials : int, optional
        Ask at most so many in this run; the rest stays for the next.
    opener : callable
        Opens the engine.

    Raises
    ------
    UserError
        The engine cannot be opened, or the study has nothing to ask.
    """
    answers: dict[str, str] = {}
    settings = ModelSettings(use, options, study.folder, answers)
    engine = opener(settings)
    try:
        work = plan_model(study, reader, settings, engine, version=version)
        answers.update(right_answers(work))
        outcome, missing = _compare_with_store(study, store, work, Outcome(reader, use, _run_id()), version)
        if missing:
            with _Recording(study, store, outcome, settings, missing) as recording:
                recording.begin(engine)
                _ask(engine, missing[:max_trials], recording, progress)
                recording.end(engine)
        outcome.engine = engine.describe()
    finally:
        engine.close()
    return outcome


def _compare_with_store(
    study: Study, store: Store, work: Sequence[Work], outcome: Outcome, version: int
) -> tuple[Outcome, list[Work]]:
    """Count what is planned and stored, and return what is missing."""
    with store.read() as connection:
        stored = queries.stored_work_keys(connection, (one.work_key for one in work))
        held = [
            row for row in queries.sessions_overview(connection, study.id) if row["reader"] == outcome.reader
        ]
    planned = {one.session.session_id for one in work}
    outcome.sessions, outcome.planned, outcome.stored_before = len(planned), len(work), len(stored)
    outcome.other_sessions = sum(
        row["session_id"] not in planned and row["version"] == version for row in held
    )
    return outcome, [one for one in work if one.work_key not in stored]


def _ask(engine: Engine, missing: Sequence[Work], recording: _Recording, progress: Progress | None) -> None:
    """Take replies from the engine until it has no more, is interrupted, or stops the run."""
    outcome = recording.outcome
    asked = {one.work_key: one for one in missing}
    with _interruptible(engine) as interrupted:
        try:
            for reply in engine.answer([one.request for one in missing]):
                recording.keep(asked.pop(reply.work_key), reply)
                if progress is not None:
                    progress(len(missing) - len(asked), len(missing), outcome.statuses)
        except RunStopped as stop:
            outcome.stopped = str(stop)
        outcome.interrupted = interrupted.is_set() and bool(asked)


class _Recording:
    """Writes what one run brings in, and the run's own record."""

    def __init__(
        self, study: Study, store: Store, outcome: Outcome, settings: ModelSettings, missing: Sequence[Work]
    ) -> None:
        self.study = study
        self.store = store
        self.outcome = outcome
        self.settings = settings
        self._left_of_session = Counter(one.session.session_id for one in missing)
        self._begun: set[str] = set()
        self._statuses: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._writes: deque[Future[records.Stored | None]] = deque()

    def __enter__(self) -> _Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self._settle(0)

    def begin(self, engine: Engine) -> None:
        """Note that the run begins: versions, settings, engine, state of the repository."""
        self._note(
            "run",
            {
                "planned": self.outcome.planned,
                "stored_before": self.outcome.stored_before,
                **self._facts(engine),
            },
        )

    def end(self, engine: Engine) -> None:
        """Wait until all is on disk, then note what the run came to."""
        self._settle(0)
        outcome = self.outcome
        self._note(
            "run_ended",
            {
                "answered": outcome.answered, "left": outcome.left, "errors": len(outcome.errors),
                "statuses": outcome.statuses, "tokens": outcome.tokens, "interrupted": outcome.interrupted,
                "stopped": outcome.stopped, "engine": engine.describe(),
            },
        )  # fmt: skip

    def keep(self, work: Work, reply: Reply) -> None:
        """Write one reply: call, and trial with score where it is an answer."""
        self._statuses[reply.status] += 1
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"):
            self._tokens[name] += getattr(reply, name) or 0
        self.outcome.statuses, self.outcome.tokens = dict(self._statuses), dict(self._tokens)
        session_id = work.session.session_id
        begins = session_id not in self._begun
        self._begun.add(session_id)
        finished = False
        if reply.status in UNFINISHED:
            self.outcome.errors.append(
                {
                    "session_id": session_id, "trial_index": work.trial["trial_index"],
                    "item_id": work.trial["item_id"], "error": reply.error or reply.status,
                }
            )  # fmt: skip
        else:
            self._left_of_session[session_id] -= 1
            finished = self._left_of_session[session_id] == 0
        operation = self._operation(work, reply, begins=begins, finished=finished)
        self._writes.append(self.store.write(operation))
        self._settle(MOST_WAITING)

    def _operation(
        self, work: Work, reply: Reply, *, begins: bool, finished: bool
    ) -> Callable[[Connection], records.Stored | None]:
        """Return the write of one reply; it says whether a trial was new, there already, or not answered (None)."""
        session, trial, run_id = work.session, work.trial, self.outcome.run_id
        place = {"session_id": session.session_id, "trial_index": trial["trial_index"], "attempt": 1}
        sampling = {"temperature": work.request.temperature, "seed": work.request.seed}
        counts = {name: getattr(reply, name) for name in _CALL_FIELDS}
        call = {
            **place, **sampling, **counts, "request_key": work.request_key, "work_key": work.work_key, "run_id": run_id,
            "request": request_json(work.request), "text": reply.text, "status": reply.status,
            "label_logprobs": reply.label_logprobs, "finish_reason": reply.finish_reason,
            "requested_model": reply.requested_model, "resolved_model": reply.resolved_model,
            "error": reply.error, "attempts": reply.attempts, "created_at": records.now(),
        }  # fmt: skip
        row = {
            **records.planned_columns(trial), **place, **sampling, **counts, "work_key": work.work_key,
            "response_raw": reply.text, "label_logprobs": reply.label_logprobs, "margin": reply.margin,
            "plugin_version": f"wrods {installed_version()}", "created_at": call["created_at"],
        }  # fmt: skip
        is_answer = reply.status not in UNFINISHED
        verdict = score_trial(trial, reply.text, reply_status=reply.status) if is_answer else None
        kind = "baseline" if self.settings.kind == "baseline" else "model"
        reader = self.outcome.reader

        def write(connection: Connection) -> records.Stored | None:
            if begins:
                records.create_session(
                    connection, session.plan, reader_kind=kind, reader=reader,
                    session_id=session.session_id, run_id=run_id,
                )  # fmt: skip
            stored = None if verdict is None else records.store_trial(connection, row)
            records.store_call(connection, call)
            if stored == "stored" and verdict is not None:
                records.store_score(connection, **place, verdict=verdict)
            if finished:
                records.finish_session(connection, session.session_id)
            return stored

        return write

    def _settle(self, most: int) -> None:
        """Wait for writes until at most so many are under way, and take their outcome."""
        while len(self._writes) > most or (self._writes and self._writes[0].done()):
            future = self._writes.popleft()
            try:
                stored = future.result()
            except records.TrialConflict as conflict:
                raise UserError(
                    f"another run of this study answers the same trials at this moment: {conflict}",
                    mend="Let one of them end; then give the same command again.",
                    exit_code=1,
                ) from conflict
            self.outcome.answered += stored == "stored"
            self.outcome.stored_before += stored == "same"

    def _facts(self, engine: Engine) -> dict[str, Any]:
        options = {name: value for name, value in self.settings.options.items() if name != "key_env"}
        return {
            "wrods": installed_version(),
            "design_hash": self.study.design_hash,
            "options": options,
            "engine": engine.describe(),
            "git": git_state(self.study.folder),
        }

    def _note(self, action: str, detail: Mapping[str, Any]) -> None:
        outcome = self.outcome
        named = {"run_id": outcome.run_id, "reader": outcome.reader, "use": outcome.use, **detail}
        self.store.write(
            lambda connection: records.add_audit(
                connection, "wrods run", action, study=self.study.id, detail=named
            )
        ).result()


@contextmanager
def _interruptible(engine: Engine) -> Iterator[threading.Event]:
    """Let the first Ctrl-C or SIGTERM end the run in order, and the second at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def end(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        engine.close()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def git_state(folder: Path) -> dict[str, object] | None:
    """Return commit and whether files were changed, where the study lies in a git repository."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--", ".", f":(exclude,glob)**/{LEASE_FILES}")),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
