"""Read operations: functions of a read-only connection that return plain rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, func, select

from experiment.store.tables import (
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


def excluded_sessions() -> Select[tuple[str]]:
    """Return the query for the ids of wholly excluded sessions."""
    newest = (
        select(func.max(flags.c.flag_id))
        .where(flags.c.trial_index.is_(None), flags.c.kind.in_((EXCLUDED, RESTORED)))
        .group_by(flags.c.session_id)
    )
    return select(flags.c.session_id).where(flags.c.flag_id.in_(newest), flags.c.kind == EXCLUDED)


def exclusions(connection: Connection, study: str) -> dict[Marked, str]:
    """Return a study's current exclusions with the reason: whole sessions, trials, or attempts."""
    of_study: ColumnElement[bool] = flags.c.session_id.in_(
        select(sessions.c.session_id).where(sessions.c.study == study)
    )
    reasons: dict[Marked, str] = {}
    query = select(flags).where(of_study, flags.c.kind.in_((EXCLUDED, RESTORED))).order_by(flags.c.flag_id)
    for flag in connection.execute(query):
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
    query = select(sessions.c.session_id, sessions.c.client).where(
        sessions.c.study == study, sessions.c.reader_kind.in_(("model", "baseline"))
    )
    for row in connection.execute(query):
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
        query = (
            select(sessions)
            .join(people, people.c.session_id == sessions.c.session_id)
            .where(people.c.study == study, people.c.source == source, people.c.external_id == external_id)
        )
        by_id |= {row["session_id"]: row for row in _rows(connection, query)}
    counted = (row for row in by_id.values() if pilots or not row["is_pilot"])
    return sorted(counted, key=lambda row: str(row["created_at"]), reverse=True)


def done_keys(connection: Connection, session_id: str) -> list[tuple[int, int]]:
    """Return the (trial_index, attempt) pairs stored for a session, in order."""
    query = (
        select(trials.c.trial_index, trials.c.attempt)
        .where(trials.c.session_id == session_id)
        .order_by(trials.c.trial_index, trials.c.attempt)
    )
    return [(int(index), int(attempt)) for index, attempt in connection.execute(query)]


RATED = "rated"
"""The scorer of human ratings (:mod:`experiment.rating.rating_store`)."""


def _with_latest_score() -> Select[Any]:
    latest = (
        select(
            scores.c.session_id,
            scores.c.trial_index,
            scores.c.attempt,
            # human ratings count, however often a parser and scorer process the answer again
            func.coalesce(
                func.max(case((scores.c.scorer == RATED, scores.c.score_id))), func.max(scores.c.score_id)
            ).label("score_id"),
        )
        .where(~scores.c.scorer.startswith(BESIDE, autoescape=True))
        .group_by(scores.c.session_id, scores.c.trial_index, scores.c.attempt)
        .subquery()
    )
    same_trial = and_(
        latest.c.session_id == trials.c.session_id,
        latest.c.trial_index == trials.c.trial_index,
        latest.c.attempt == trials.c.attempt,
    )
    return (
        select(*trials.c, *(scores.c[name] for name in _SCORE_COLUMNS))
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .join(latest, same_trial, isouter=True)
        .join(scores, scores.c.score_id == latest.c.score_id, isouter=True)
    )


def trials_with_scores(connection: Connection, study: str | None = None) -> Iterator[Row]:
    """Yield trials, each with its latest score (null if none), session by session in trial order."""
    query = _with_latest_score().order_by(
        sessions.c.created_at, trials.c.session_id, trials.c.trial_index, trials.c.attempt
    )
    return _rows(connection, query if study is None else query.where(sessions.c.study == study))


def trials_of_session(connection: Connection, session_id: str) -> Iterator[Row]:
    """Yield the trials of one session, each with its latest score."""
    query = _with_latest_score().where(trials.c.session_id == session_id)
    return _rows(connection, query.order_by(trials.c.trial_index, trials.c.attempt))


def _all(
    table: Table, connection: Connection, study: str | None = None, *, session_id: str | None = None
) -> Iterator[Row]:
    """Yield a table in the order of its key, optionally of one study or session."""
    query = select(table).order_by(*table.primary_key.columns)
    if study is not None:
        query = query.where(
            table.c.session_id.in_(select(sessions.c.session_id).where(sessions.c.study == study))
        )
    return _rows(connection, query if session_id is None else query.where(table.c.session_id == session_id))


all_regions, all_calls = partial(_all, regions), partial(_all, calls)
all_scores, all_flags, all_events = partial(_all, scores), partial(_all, flags), partial(_all, events)


def answers_to(connection: Connection, session_id: str, screen: str) -> list[str]:
    """Return the tokens of a screen's answers in a session, in the order of their arrival."""
    wanted = (
        select(events.c.client_uuid, events.c.detail)
        .where(events.c.session_id == session_id, events.c.kind == "answers")
        .order_by(events.c.event_id)
    )
    return [
        str(row["client_uuid"]) for row in _rows(connection, wanted) if row["detail"].get("screen") == screen
    ]


def all_versions(connection: Connection, study: str) -> list[Row]:
    """Return the versions of a study, first to last."""
    query = select(versions).where(versions.c.study == study).order_by(versions.c.version)
    return list(_rows(connection, query))


def resolved_models(connection: Connection, study: str) -> dict[str, list[str]]:
    """Return, for each reader with calls, the model names that the servers reported."""
    query = (
        select(sessions.c.reader, calls.c.resolved_model)
        .join(calls, calls.c.session_id == sessions.c.session_id)
        .where(sessions.c.study == study, calls.c.resolved_model.is_not(None))
        .distinct()
        .order_by(sessions.c.reader, calls.c.resolved_model)
    )
    models: dict[str, list[str]] = {}
    for row in connection.execute(query):
        models.setdefault(row.reader, []).append(row.resolved_model)
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
