"""How far a run is and what it came to: figures for the terminal, rows in the store for whoever looks from elsewhere, words."""

from __future__ import annotations

import os
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, func, insert, select, update

from experiment.models.api.probe import UNTRIED
from experiment.models.costs.budget import close_abandoned, release
from experiment.models.engine import ANSWERS, UNFINISHED
from experiment.models.leases import leased
from experiment.models.runs.remaining_work import Survey
from experiment.store import Store, records
from experiment.store.tables import TRIAL_KEY, calls, runs, scores, trials
from stimuli.errors import UserError

EVERY_S = 3.0
"""How often figures go to the store."""

SILENT_S = 30.0
"""Time without an update after which a run counts as ended."""

WINDOW_S = 60.0
"""Speed is that of the last minute."""


@dataclass
class RunStatus:
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


class RunStatusTable:
    """Keeps the rows of one command's models in the table of runs; a database that takes no writes does not disturb it."""

    def __init__(self, store: Store, study: str, version: int) -> None:
        self._store, self._study, self._version = store, study, version
        self._last: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def begin(self, run_id: str, figures: RunStatus) -> None:
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
        self._store.write(lambda connection: connection.execute(insert(runs), row).rowcount).result()

    def tell(self, run_id: str, figures: RunStatus, *, is_last: bool = False) -> None:
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
            future = self._store.write(lambda connection: connection.execute(where).rowcount)
            if is_last:
                future.result()
        except UserError:
            return


def told(figures: RunStatus) -> dict[str, Any]:
    """Return figures as JSON."""
    return {name: value for name, value in vars(figures).items() if name not in ("reader", "state")}


def runs_of(connection: Connection, study: str, *, latest: bool = True) -> list[dict[str, Any]]:
    """Return the runs of a study with ``alive`` beside each, newest first; of each reader the latest one.

    A run that did not end is dead when its process is gone (on this machine) or was silent for half a minute.
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
    """Return whether a run goes on; on this machine its process tells, also one that sleeps."""
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


SHOWN_ERRORS = 100
"""Trials without an answer that are listed one by one; all are counted."""


@dataclass
class RunOutcome:
    """What one run of one model came to."""

    reader: str
    use: str
    run_id: str
    sessions: int = 0  # sessions and trials of the plan
    planned: int = 0
    # trials that were stored without this run (when it began, or by another meanwhile), and those stored by it
    stored_before: int = 0
    answered: int = 0
    # sessions of this reader in the store that are not planned now and count: of another setting or a wider plan
    other_sessions: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0  # how many trials were asked by this run and have no answer; the next run asks for them
    unanswered: dict[str, int] = field(default_factory=dict)  # how many of these ended in which status
    # by how many of these which error came last, in the words of its first line
    error_kinds: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)  # how often which reply status came
    # how the answers stored by this run were read: how many are `valid`, `unparsed`, `refused`, …
    response_statuses: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    first_tokens: dict[str, int] = field(default_factory=dict)
    # texts that the model was to restore first and did not (it refused, or was cut off): it was asked about them as they were
    unrestored: int = 0
    cost_usd: float = 0.0  # what the calls of this run cost
    # how many times the most that a request can cost, by its length and `max_tokens`, the dearest reply did cost
    dearest: float = 1.0
    cached: int = 0  # replies that came from the cache
    lost_usd: float = 0.0  # what an earlier run that was killed had set aside: it may have been spent
    unanswered_usd: float = 0.0  # what tries of this run that brought no answer may have cost
    handed_over: int = 0  # requests that were handed over as batches
    batches: str = ""  # what became of all batches, in words
    # trials that can never be answered: longer than the model reads, or of conversations that became so before them
    given_up: int = 0
    # how many conversations of the plan ended so, in this run or before it, by reason
    ended: dict[str, int] = field(default_factory=dict)
    # those that are so by themselves, in this run or before it, with the reason
    too_long: list[str] = field(default_factory=list)
    blocks: str = ""  # how far the model is, in words
    engine: dict[str, object] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None  # why the run ended early

    @property
    def left(self) -> int:
        """Trials still to be asked, errors included."""
        return self.planned - self.stored_before - self.answered - self.given_up

    @property
    def is_whole(self) -> bool:
        """Whether the same command would ask for nothing more that this one was to ask for."""
        return not (self.failed or self.interrupted or self.stopped)


def describe_unread(response_statuses: Mapping[str, int]) -> str:
    """State how many answers of a run are not valid, and as what they were read; empty where all are."""
    other = {status: count for status, count in response_statuses.items() if status != "valid" and count}
    if not other:
        return ""
    named = ", ".join(f"{count} {status}" for status, count in sorted(other.items()))
    return f"{named} of {sum(response_statuses.values())} answers"


def describe_read_from_reply(first_tokens: Mapping[str, int], answered: int) -> str:
    """State how many choices are read from the reply because their first token does not say the same."""
    why = {
        "unsettled": "leaves the label open",
        "disagrees": "makes another label most probable (as it may where answers are drawn)",
    }
    named = ", ".join(
        f"of {first_tokens[mark]} it {said}" for mark, said in why.items() if mark in first_tokens
    )
    return (
        f"{sum(first_tokens.values())} of {answered} answers are read from the reply, since their first token does not say the same: "
        f"{named}; the column path names them"
    )


def describe_unanswerable(outcome: RunOutcome) -> list[str]:
    """State which trials of a model can never be answered, why, and what lets them be asked; nothing where all can be."""
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


def describe_blocks(found: Survey, left: int) -> str:
    """State in words how far a model is that has so many trials left."""
    total = len(found.rounds)
    begun = sum(found.missing.get(one, 0) + found.out[one] > 0 for one in found.rounds) if left > 0 else 0
    if not begun:
        return f"all {total} blocks of each list" if total > 1 else "the one block of each list"
    return f"{total - begun} of {total} blocks of each list"


def describe_endpoint(reader: str, probe: object) -> list[str]:
    """State what a model's server can give, as the probe found out; nothing where there was none."""
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
    said = f"{reader}: {probe['resolved_model'] or probe['model']} at {probe['base_url']}"
    parts = [("gives", gives), ("does not give", lacks)]
    lines = [f"  {word}: {', '.join(filter(None, some))}" for word, some in parts if any(some)]
    unstable = probe["stable_prompt_logprobs"] is False
    remarks = [
        *probe["remarks"],
        *(["the same prompt had other log-probabilities twice"] if unstable else []),
    ]
    return [said, *lines, *(f"  {remark}" for remark in remarks)]


def describe_parity(reader: str, parity: Mapping[str, object]) -> list[str]:
    """State by which way a model on this machine computes and how far it is from plain passes; nothing where none was checked."""
    if not parity.get("checked"):
        return []
    how = _COMPUTES.get(str(parity["path"]), str(parity["path"]))
    apart, checked = parity.get("max_abs_difference"), parity["checked"]
    far = ""
    if isinstance(apart, float):
        prompts = "1 prompt" if checked == 1 else f"{checked} prompts"
        far = f"; in {prompts} checked, log-probabilities are at most {apart:.1g} nats from plain passes"
    return [f"{reader}: computes {how}{far}"]


def new_run_id() -> str:
    """Return the name of a run that begins now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def dead_runs(connection: Connection, study: str) -> dict[str, str]:
    """Return the readers of the runs that ended without saying so, as those that were killed, by run."""
    found = runs_of(connection, study, latest=False)
    return {
        str(row["run_id"]): str(row["reader"])
        for row in found
        if row["ended_at"] is None and not row["alive"]
    }


def count_as_not_billed(store: Store, study: str, target: Path | str, *, actor: str) -> float:
    """Give back what requests without an answer may have cost, and note who said so; what a live run has set aside stays."""
    with store.read() as connection:
        readers = set(dead_runs(connection, study).values())
    for reader in sorted(readers):
        # where another run of the model is under way, that run has done it
        with suppress(UserError), leased(target, study, reader):
            close_abandoned(store, study, reader)

    def give_back(connection: Connection) -> float:
        amount = release(connection, study)
        if amount:
            detail = {"usd": amount}
            records.add_audit(connection, actor, "counted as not billed", study=study, detail=detail)
        return amount

    return store.write(give_back).result()
