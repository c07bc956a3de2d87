"""Write operations: plain functions of the writer's connection, each safe to repeat.

Rows of trials, calls, scores, regions, flags, events and audit are added and never changed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, get_args

from sqlalchemy import Connection, Table, and_, or_, select

from experiment.store import chain
from experiment.store.database import RefusedOperation, SessionGone, is_sqlite
from experiment.store.session_activity import change_session, stamp
from experiment.store.statements import (
    insert_into,
    insert_new,
    insert_returning_key,
    insert_with_key,
    next_key,
)
from experiment.store.tables import audit, calls, events, flags, people, regions, scores, sessions, trials

Stored = Literal["stored", "same"]
PARTICIPANTS = ("human", "simulated")
"""Kinds of readers that are persons: each of their sessions has a person's key."""
FROM_PLAN = ("study", "version", "design_hash", "list_id", "order_row", "label_map", "prompt_variant", "replicate",
             "context")  # fmt: skip


class Verdict(Protocol):
    """A parser's and scorer's result for a trial (``experiment.scoring.trial.Score``)."""

    @property
    def response(self) -> str | None: ...  # noqa: D102
    @property
    def response_status(self) -> str: ...  # noqa: D102
    @property
    def correct(self) -> bool | None: ...  # noqa: D102
    @property
    def score(self) -> float | None: ...  # noqa: D102
    @property
    def scorer(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> int: ...  # noqa: D102


class TrialConflict(RefusedOperation):
    """A different payload arrived under a trial's key; the stored trial stays, and the attempt is recorded."""

    def __init__(self, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        super().__init__(
            f"trial {given['trial_index']} (attempt {given['attempt']}) is stored with other contents"
        )
        self.stored = dict(stored)
        self.given = dict(given)

    def leave_trace(self, connection: Connection) -> None:
        """Add an event that names both payloads by their digests."""
        names = ("trial_index", "attempt", "client_uuid", "work_key", "payload_hash")
        detail = {
            "given": {name: self.given.get(name) for name in names}
            | {"response_raw": (self.given.get("response_raw") or "")[:500]},
            "stored": {name: self.stored.get(name) for name in (*names, "session_id")},
        }
        add_event(connection, self.given["session_id"], "trial_conflict", detail)


class EventConflict(RefusedOperation):
    """A different event arrived under the same ``client_uuid``; the stored one stays."""


def now() -> str:
    """Return the current time in the store's format: ISO 8601, UTC, milliseconds."""
    return stamp(datetime.now(UTC))


def payload_hash(payload: object) -> str:
    """Return the SHA-256 of a JSON value in canonical form (sorted keys, no blanks, UTF-8)."""
    text = json.dumps(payload, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _insert_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> Any:
    """Insert a row unless one of its unique keys exists; return its first key, or None if it was not inserted."""
    # not rowcount: drivers disagree on it for inserts
    key = insert_new(table).first(connection, row)
    return None if key is None else key[0]


def planned_columns(planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that every trial row copies from the plan: item, condition, shown text, answer key."""
    same = ("trial_index", "block", "item_id", "trial_type", "condition", "shown", "answer", "accepted", "is_practice",
            "is_filler", "is_attention_check", "choice_order")  # fmt: skip
    return {name: planned.get(name) for name in same} | {"item_set": planned.get("set")}


def create_session(
    connection: Connection,
    plan: Mapping[str, Any],
    *,
    reader_kind: str,
    reader: str,
    session_id: str | None = None,
    person_key: str | None = None,
    **columns: Any,
) -> str:
    """Store a session with its plan and further columns, and return its id."""
    identifier = session_id or secrets.token_hex(16)
    moment = now()
    row: dict[str, Any] = {name: plan.get(name) for name in FROM_PLAN} | {
        **{
            "is_pilot": False,
            **columns,
            "session_id": identifier,
            "reader_kind": reader_kind,
            "reader": reader,
        },
        "person_key": person_key or (secrets.token_hex(16) if reader_kind in PARTICIPANTS else None),
        "state": "started",
        "plan": dict(plan),
        "planned_trials": sum(len(screen.get("trials", ())) for screen in plan["screens"]),
        "created_at": moment,
        "last_seen_at": moment,
    }
    if _insert_new(connection, sessions, row) is None:
        known = connection.scalar(select(sessions.c.session_id).where(sessions.c.session_id == identifier))
        if known is None:
            raise ValueError(f"client_uuid {columns.get('client_uuid')!r} belongs to another session")
    elif chain.has_chain(reader_kind):
        chain.begin(connection, identifier, row["design_hash"], row["plan"], reader_kind)
    return identifier


def store_trial(
    connection: Connection,
    trial: Mapping[str, Any],
    regions_of_trial: Iterable[Mapping[str, Any]] = (),
    verdict: Verdict | None = None,
) -> Stored:
    """Store one trial with its regions and its score; return ``same`` if it is stored already."""
    marks = dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "timed_out"), False)
    parts = [dict(region) for region in regions_of_trial]
    row = marks | {"attempt": 1} | dict(trial)
    if "payload_hash" not in row:
        contents = {name: value for name, value in row.items() if name not in ("created_at", "received_at")}
        row["payload_hash"] = payload_hash([contents, parts])
    row.setdefault("received_at", now())
    row.setdefault("created_at", row["received_at"])
    # requested with the trial, a score's number needs no extra round trip
    number = None if verdict is None or is_sqlite(connection) else next_key(scores).ask(connection, {})
    if _insert_new(connection, trials, row) is None:
        return _compare_with_stored(connection, row)
    if parts:
        key = {name: row[name] for name in ("session_id", "trial_index", "attempt")}
        insert_into(regions).put_off(connection, *(part | key for part in parts))
    key_in_chain = chain.trial_key(row["trial_index"], row["attempt"])
    chain.link(connection, row["session_id"], chain.TRIAL, key_in_chain, row | {"regions": parts})
    if verdict is not None:
        store_score(connection, row["session_id"], row["trial_index"], row["attempt"], verdict, number)
    return "stored"


def _compare_with_stored(connection: Connection, row: Mapping[str, Any]) -> Stored:
    place = and_(*(trials.c[name] == row[name] for name in ("session_id", "trial_index", "attempt")))
    tokens = [trials.c[name] == row[name] for name in ("client_uuid", "work_key") if row.get(name)]
    rows = connection.execute(select(trials).where(or_(place, *tokens))).mappings().all()
    for stored in rows:
        if stored["payload_hash"] != row["payload_hash"] or stored["session_id"] != row["session_id"]:
            raise TrialConflict(dict(stored), row)
    return "same"


def store_score(
    connection: Connection,
    session_id: str,
    trial_index: int,
    attempt: int,
    verdict: Verdict,
    number: Callable[[], Sequence[Any] | None] | None = None,
) -> None:
    """Add one parser's and scorer's score for a trial, under a number that was requested; the latest counts."""
    row = {
        "session_id": session_id,
        "trial_index": trial_index,
        "attempt": attempt,
        "response": verdict.response,
        "response_status": verdict.response_status,
        "correct": verdict.correct,
        "score": verdict.score,
        "scorer": verdict.scorer,
        "scorer_version": str(verdict.version),
        "created_at": now(),
    }
    key = insert_returning_key(scores).first(connection, row) if number is None else number()
    assert key is not None
    if number is not None:
        insert_with_key(scores).put_off(connection, row | {"score_id": key[0]})
    chain.link(connection, session_id, chain.SCORE, key[0], row)


def store_call(connection: Connection, call: Mapping[str, Any]) -> None:
    """Add one call to a model: columns of the calls table, with ``request_key`` and ``status`` required."""
    insert_into(calls).execute(connection, {"purpose": "answer", "created_at": now()} | dict(call))


def add_event(
    connection: Connection,
    session_id: str,
    kind: str,
    detail: Mapping[str, Any] | None = None,
    *,
    client_uuid: str | None = None,
    at: str | None = None,
) -> Stored:
    """Add an event to a session; return ``same`` if it is stored already."""
    digest = payload_hash([kind, dict(detail or {}), at])
    row = {
        "session_id": session_id,
        "client_uuid": client_uuid,
        "payload_hash": digest,
        "kind": kind,
        "detail": dict(detail or {}),
        "at": at,
        "received_at": now(),
    }
    number = _insert_new(connection, events, row)
    if number is not None:
        chain.link(connection, session_id, chain.EVENT, number, row)
        return "stored"
    stored = connection.scalar(
        select(events.c.payload_hash).where(
            events.c.session_id == session_id, events.c.client_uuid == client_uuid
        )
    )
    if stored != digest:
        raise EventConflict(f"event {client_uuid} is stored with other contents")
    return "same"


def add_flag(
    connection: Connection,
    session_id: str,
    kind: str,
    reason: str,
    made_by: str,
    *,
    trial_index: int | None = None,
    attempt: int | None = None,
) -> None:
    """Flag a session, or one trial of it, with a kind (excluded, suspect, …) and the reason."""
    row = {
        "session_id": session_id,
        "trial_index": trial_index,
        "attempt": attempt,
        "kind": kind,
        "reason": reason,
        "made_by": made_by,
        "created_at": now(),
    }
    number = connection.scalar(flags.insert().values(**row).returning(flags.c.flag_id))
    chain.link(connection, session_id, chain.FLAG, number, row)


def add_person(
    connection: Connection,
    study: str,
    session_id: str,
    source: str,
    external_id: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Store a participant's identity on a recruitment platform, separately from the answers."""
    connection.execute(
        people.insert().values(
            study=study,
            session_id=session_id,
            source=source,
            external_id=external_id,
            details=dict(details or {}),
            created_at=now(),
        )
    )


def add_audit(
    connection: Connection,
    actor: str,
    action: str,
    *,
    study: str | None = None,
    session_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record an action on the study's data in the audit."""
    connection.execute(
        audit.insert().values(
            at=now(),
            actor=actor,
            action=action,
            study=study,
            session_id=session_id,
            detail=dict(detail or {}),
        )
    )


def finish_session(
    connection: Connection,
    session_id: str,
    *,
    completion_code: str | None = None,
    held_reason: str | None = None,
) -> str:
    """Mark a session as finished and return its completion code: the given one, or a random one made once.

    A session with a ``held_reason`` has its code too, which nobody receives while the session is held.
    """
    query = select(sessions.c.state, sessions.c.completion_code).where(sessions.c.session_id == session_id)
    row = connection.execute(query).first()
    if row is None:
        raise SessionGone(session_id)
    if row.state == "finished" and row.completion_code is not None:
        return str(row.completion_code)
    code = completion_code or secrets.token_hex(4).upper()
    moment = now()
    values = {"state": "finished", "ended_reason": None, "completion_code": code, "held_reason": held_reason}
    change_session(connection, session_id, finished_at=moment, last_seen_at=moment, **values)
    return code


CollectionState = Literal["open", "paused", "closed"]
_ACTIONS: Mapping[CollectionState, str] = {
    state: f"collection {state}" for state in get_args(CollectionState)
}


@dataclass(frozen=True)
class Collection:
    """The state of data collection in a study."""

    state: CollectionState
    since: str | None = None
    by: str | None = None
    reason: str = ""


def collection_of(connection: Connection, study: str) -> Collection:
    """Return the state of data collection: open unless it was paused or closed."""
    last = connection.execute(
        select(audit.c.action, audit.c.at, audit.c.actor, audit.c.detail)
        .where(audit.c.study == study, audit.c.action.in_(_ACTIONS.values()))
        .order_by(audit.c.audit_id.desc())
        .limit(1)
    ).first()
    if last is None:
        return Collection("open")
    state = next(state for state, action in _ACTIONS.items() if action == last.action)
    return Collection(state, last.at, last.actor, str((last.detail or {}).get("reason", "")))


def set_collection(
    connection: Connection, study: str, state: CollectionState, actor: str, reason: str = ""
) -> bool:
    """Open, pause or close a study; return whether that changed anything."""
    if collection_of(connection, study).state == state:
        return False
    add_audit(connection, actor, _ACTIONS[state], study=study, detail={"reason": reason} if reason else None)
    return True
