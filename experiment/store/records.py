"""Operations of the store: plain functions of the writer's connection, each safe to repeat, and read-only queries.

Rows of trials, calls, scores, regions, flags, events and audit are added and never changed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, get_args

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, func, or_, select

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
from experiment.store.tables import (
    TRIAL_KEY,
    audit,
    calls,
    events,
    flags,
    people,
    regions,
    scores,
    sessions,
    trials,
    versions,
)

EXCLUDED, RESTORED, SUSPECT = "excluded", "restored", "suspect"
"""Kinds of flags."""
Marked = tuple[str, int | None, int | None]
"""Session, trial, attempt; None means all of them."""

Stored = Literal["stored", "same"]
PARTICIPANTS = ("human", "simulated")
"""Kinds of readers that are persons: each of their sessions has a person's key."""
TEACHER_FORCED = "teacher_forced"
"""The context of models that follow a person's answers; a plan of people names it as well."""
FROM_PLAN = ("study", "version", "design_hash", "list_id", "order_row", "label_map", "prompt_variant", "replicate",
             "context")  # fmt: skip


def excluded_sessions() -> Select[tuple[str]]:
    """Return the query for the ids of wholly excluded sessions."""
    newest = (
        select(func.max(flags.c.flag_id))
        .where(flags.c.trial_index.is_(None), flags.c.kind.in_((EXCLUDED, RESTORED)))
        .group_by(flags.c.session_id)
    )
    return select(flags.c.session_id).where(flags.c.flag_id.in_(newest), flags.c.kind == EXCLUDED)


def _of_study(table: Table, study: str) -> ColumnElement[bool]:
    return table.c.session_id.in_(select(sessions.c.session_id).where(sessions.c.study == study))


def exclusions(connection: Connection, study: str) -> dict[Marked, str]:
    """Return a study's current exclusions with the reason: whole sessions, trials, or attempts."""
    reasons: dict[Marked, str] = {}
    marks = select(flags).where(_of_study(flags, study), flags.c.kind.in_((EXCLUDED, RESTORED)))
    for flag in connection.execute(marks.order_by(flags.c.flag_id)):
        mark = (flag.session_id, flag.trial_index, flag.attempt)
        if flag.kind == EXCLUDED:
            reasons[mark] = str(flag.reason)
        else:
            reasons.pop(mark, None)
    return reasons


Row = dict[str, Any]
SESSION_COLUMNS = tuple(column for column in sessions.c if column.key not in ("plan", "client", "token_hash"))
_SCORE_COLUMNS = ("response", "response_status", "correct", "score", "scorer", "scorer_version")
_LARGEST_IN = 500
BESIDE = "also:"
"""Prefix of the name of a scorer whose verdicts are stored in addition to those that count (``wrods score --parser``)."""


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Row]:
    with connection.execute(query.execution_options(yield_per=500)) as result:
        for row in result.mappings():
            yield dict(row)


def sessions_overview(connection: Connection, study: str | None = None) -> list[Row]:
    """Return sessions, newest first: their columns without plan, with ``n_trials`` and the last ``trial_index``."""
    stored = (
        select(
            trials.c.session_id,
            func.count().label("n_trials"),
            func.max(trials.c.trial_index).label("last_trial"),
        )
        .group_by(trials.c.session_id)
        .subquery()
    )
    query = (
        select(*SESSION_COLUMNS, func.coalesce(stored.c.n_trials, 0).label("n_trials"), stored.c.last_trial)
        .join(stored, stored.c.session_id == sessions.c.session_id, isouter=True)
        .order_by(sessions.c.created_at.desc(), sessions.c.session_id)
    )
    if study is not None:
        query = query.where(sessions.c.study == study)
    return list(_rows(connection, query))


def model_sessions(connection: Connection, study: str) -> Iterator[tuple[str, bool, str]]:
    """Yield the sessions of models and baselines, each with how it was run."""
    query = select(sessions.c.session_id, sessions.c.client).where(sessions.c.study == study)
    for row in connection.execute(query.where(sessions.c.reader_kind.in_(("model", "baseline")))):
        client = row.client if isinstance(row.client, dict) else {}
        settings = client.get("settings")
        shown = settings.get("presentation") if isinstance(settings, dict) else None
        yield str(row.session_id), bool(client.get("timed")), str(shown or "text")


def session(connection: Connection, session_id: str) -> Row | None:
    """Return one session with its plan and token hash, or None."""
    row = connection.execute(select(sessions).where(sessions.c.session_id == session_id)).mappings().first()
    return None if row is None else dict(row)


def session_by_client(connection: Connection, client_uuid: str) -> Row | None:
    """Return the session that a browser began under its own token, or None."""
    row = connection.execute(select(sessions).where(sessions.c.client_uuid == client_uuid)).mappings().first()
    return None if row is None else dict(row)


def sessions_of_person(
    connection: Connection, study: str, identities: Mapping[str, str], *, pilots: bool = False
) -> list[Row]:
    """Return the sessions of a participant known by any of several ids (source → id), newest first; with ``pilots``, theirs too."""
    by_id: dict[str, Row] = {}
    for source, external_id in identities.items():
        query = select(sessions).join(people, people.c.session_id == sessions.c.session_id)
        named = (people.c.source == source, people.c.external_id == external_id)
        theirs = query.where(people.c.study == study, *named)
        by_id |= {row["session_id"]: row for row in _rows(connection, theirs)}
    counted = (row for row in by_id.values() if pilots or not row["is_pilot"])
    return sorted(counted, key=lambda row: str(row["created_at"]), reverse=True)


def done_keys(connection: Connection, session_id: str) -> list[tuple[int, int]]:
    """Return the (trial_index, attempt) pairs stored for a session, in order."""
    key = (trials.c.trial_index, trials.c.attempt)
    query = select(*key).where(trials.c.session_id == session_id).order_by(*key)
    return [(int(index), int(attempt)) for index, attempt in connection.execute(query)]


RATED = "rated"
"""The scorer of human ratings (:mod:`experiment.rating`)."""


def with_latest_score(columns: Iterable[ColumnElement[Any]] = trials.c) -> Select[Any]:
    """Return a query of trials, joined with their sessions and latest scores (null if none)."""
    of_trial = [scores.c[name] for name in TRIAL_KEY]
    latest = (
        select(
            *of_trial,
            # human ratings count, however often a parser and scorer process the answer again
            func.coalesce(
                func.max(case((scores.c.scorer == RATED, scores.c.score_id))), func.max(scores.c.score_id)
            ).label("score_id"),
        )
        .where(~scores.c.scorer.startswith(BESIDE, autoescape=True))
        .group_by(*of_trial)
        .subquery()
    )
    same_trial = and_(*(latest.c[name] == trials.c[name] for name in TRIAL_KEY))
    return (
        select(*columns, *(scores.c[name] for name in _SCORE_COLUMNS))
        .select_from(trials)
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .join(latest, same_trial, isouter=True)
        .join(scores, scores.c.score_id == latest.c.score_id, isouter=True)
    )


def trials_with_scores(connection: Connection, study: str | None = None) -> Iterator[Row]:
    """Yield trials, each with its latest score (null if none), session by session in trial order."""
    query = with_latest_score().order_by(
        sessions.c.created_at, trials.c.session_id, trials.c.trial_index, trials.c.attempt
    )
    return _rows(connection, query if study is None else query.where(sessions.c.study == study))


def trials_of_session(connection: Connection, session_id: str) -> Iterator[Row]:
    """Yield the trials of one session, each with its latest score."""
    query = with_latest_score().where(trials.c.session_id == session_id)
    return _rows(connection, query.order_by(trials.c.trial_index, trials.c.attempt))


def _all(
    table: Table, connection: Connection, study: str | None = None, *, session_id: str | None = None
) -> Iterator[Row]:
    """Yield a table in the order of its key, optionally of one study or session."""
    query = select(table).order_by(*table.primary_key.columns)
    if study is not None:
        query = query.where(_of_study(table, study))
    return _rows(connection, query if session_id is None else query.where(table.c.session_id == session_id))


all_regions, all_calls = partial(_all, regions), partial(_all, calls)
all_scores, all_flags, all_events = partial(_all, scores), partial(_all, flags), partial(_all, events)


def answers_to(connection: Connection, session_id: str, screen: str) -> list[str]:
    """Return the tokens of a screen's answers in a session, in the order of their arrival."""
    stored = select(events.c.client_uuid, events.c.detail).filter_by(session_id=session_id, kind="answers")
    answers = connection.execute(stored.order_by(events.c.event_id))
    return [str(token) for token, detail in answers if detail.get("screen") == screen]


def given_answers(connection: Connection, session_id: str) -> dict[str, Any]:
    """Return a session's answers to questions about its reader, the last one to each."""
    stored = select(events.c.detail).filter_by(session_id=session_id, kind="answers")
    return {
        name: value
        for detail in connection.scalars(stored.order_by(events.c.event_id))
        for name, value in (detail.get("answers") or {}).items()
    }


def deciding_answers(connection: Connection, session_id: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers on which it depends what a session's plan asks later."""
    questions = [question for screen in plan["screens"] for question in screen.get("questions", ())]
    wanted = {name for question in questions for name in question.get("only", {})}
    given = given_answers(connection, session_id) if wanted else {}
    return {name: value for name, value in given.items() if name in wanted}


def all_versions(connection: Connection, study: str) -> list[Row]:
    """Return the versions of a study, first to last."""
    query = select(versions).where(versions.c.study == study).order_by(versions.c.version)
    return list(_rows(connection, query))


def resolved_models(connection: Connection, study: str) -> dict[str, list[str]]:
    """Return, for each reader with calls, the model names that the servers reported."""
    named = (sessions.c.reader, calls.c.resolved_model)
    query = select(*named).join(calls, calls.c.session_id == sessions.c.session_id).distinct()
    query = query.where(sessions.c.study == study, calls.c.resolved_model.is_not(None))
    models: dict[str, list[str]] = {}
    for reader, model in connection.execute(query.order_by(*named)):
        models.setdefault(reader, []).append(model)
    return models


def counted_parameters(connection: Connection, study: str) -> dict[str, int]:
    """Return, for each reader whose engine counted them, the number of parameters in its newest run."""
    query = select(audit.c.detail).where(audit.c.study == study, audit.c.action == "run_ended")
    counts: dict[str, int] = {}
    for row in connection.execute(query.order_by(audit.c.audit_id)):
        detail = row.detail or {}
        counted = (detail.get("engine") or {}).get("parameters")
        if counted:
            counts[str(detail["reader"])] = int(counted)
    return counts


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
            "is_filler", "is_attention_check", "choice_order", "step_name")  # fmt: skip
    return {name: planned.get(name) for name in same} | {"item_set": planned.get("set")}


def is_teacher_forced(session: Mapping[str, Any]) -> bool:
    """Return whether a session is of a model whose answers are those of a person that it follows."""
    return session["context"] == TEACHER_FORCED and session["reader_kind"] not in PARTICIPANTS


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
        "is_pilot": False,
        **columns,
        "session_id": identifier,
        "reader_kind": reader_kind,
        "reader": reader,
        "person_key": person_key or (secrets.token_hex(16) if reader_kind in PARTICIPANTS else None),
        "state": "started",
        "plan": dict(plan),
        "planned_trials": _trials_in(plan),
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


def give_plan(connection: Connection, session_id: str, plan: Mapping[str, Any], reader_kind: str) -> None:
    """Store the whole plan of a session, with its list, after its reader's group became known."""
    stored = dict(plan)
    row = {name: plan.get(name) for name in FROM_PLAN}
    change_session(connection, session_id, **row, plan=stored, planned_trials=_trials_in(plan))
    chain.link_plan(connection, session_id, stored, reader_kind)


def _trials_in(plan: Mapping[str, Any]) -> int:
    return sum(len(screen.get("trials", ())) for screen in plan["screens"])


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
        key = {name: row[name] for name in TRIAL_KEY}
        insert_into(regions).put_off(connection, *(part | key for part in parts))
    key_in_chain = chain.trial_key(row["trial_index"], row["attempt"])
    chain.link(connection, row["session_id"], chain.TRIAL, key_in_chain, row | {"regions": parts})
    if verdict is not None:
        store_score(connection, row["session_id"], row["trial_index"], row["attempt"], verdict, number)
    return "stored"


def _compare_with_stored(connection: Connection, row: Mapping[str, Any]) -> Stored:
    place = and_(*(trials.c[name] == row[name] for name in TRIAL_KEY))
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
    known = select(events.c.payload_hash).filter_by(session_id=session_id, client_uuid=client_uuid)
    if connection.scalar(known) != digest:
        raise EventConflict(f"event {client_uuid} is stored with other contents")
    return "same"


class TrialPlace(NamedTuple):
    """A trial of a session, and the attempt at it."""

    trial_index: int
    attempt: int = 1


def add_flag(
    connection: Connection,
    session_id: str,
    kind: str,
    reason: str,
    made_by: str,
    trial: TrialPlace | None = None,
) -> None:
    """Flag a session, or one trial of it, with a kind (excluded, suspect, …) and the reason."""
    row = {
        "session_id": session_id,
        "trial_index": None if trial is None else trial.trial_index,
        "attempt": None if trial is None else trial.attempt,
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
    row = {"study": study, "session_id": session_id, "source": source, "external_id": external_id}
    connection.execute(people.insert(), row | {"details": dict(details or {}), "created_at": now()})


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
    row = {"actor": actor, "action": action, "study": study, "session_id": session_id}
    connection.execute(audit.insert(), row | {"at": now(), "detail": dict(detail or {})})


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
    changes = select(audit).where(audit.c.study == study, audit.c.action.in_(_ACTIONS.values()))
    last = connection.execute(changes.order_by(audit.c.audit_id.desc()).limit(1)).first()
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
