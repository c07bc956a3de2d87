"""Counts of a study's sessions and trials: in the tables, excluded with reasons, and never answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from experiment.models.engine import UNFINISHED
from experiment.models.runs.context_overflow import ENDED, never_trials
from experiment.store.queries import EXCLUDED, excluded_sessions, exclusions
from experiment.store.tables import TRIAL_KEY, calls, flags, sessions, trials

PEOPLE = ("human", "simulated")


def readers_of(connection: Connection, study: str) -> list[dict[str, Any]]:
    """Return counts per reader: trials in the tables and exclusions; participants together, pilots separately.

    ``reader``, ``reader_kind``; ``sessions``, ``states`` and ``trials`` that count; ``excluded``: by ``reason`` the numbers of
    whole ``sessions`` and of ``trials``, including those in sessions that count; ``unanswered``: requested trials without an
    answer yet, by the status of the last call.
    """
    readers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _standing(connection, study):
        reader = _reader(readers, row)
        reader["sessions"] += int(row.sessions)
        reader["trials"] += int(row.trials or 0)
        reader["states"][row.state] = reader["states"].get(row.state, 0) + int(row.sessions)
    _take_excluded(connection, study, readers)
    for row in _unanswered(connection, study):
        counts = _reader(readers, row)["unanswered"]
        counts[str(row.status)] = counts.get(str(row.status), 0) + int(row.n)
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


def _unanswered(connection: Connection, study: str) -> Iterator[Any]:
    """Yield counts of trials whose last call failed and that have no answer, by reader and status."""
    of_study = select(sessions.c.session_id).where(sessions.c.study == study)
    never = never_trials(flags.c.session_id.in_(of_study)).subquery()
    is_never = and_(never.c.session_id == calls.c.session_id, never.c.trial_index == calls.c.trial_index)
    same_trial: ColumnElement[bool] = and_(*(trials.c[name] == calls.c[name] for name in TRIAL_KEY))
    last = (
        select(func.max(calls.c.call_id).label("call_id"))
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .join(trials, same_trial, isouter=True)
        .join(never, is_never, isouter=True)
        # a finished session has all its trials, and the rest of one that has ended is reported separately
        .where(
            sessions.c.study == study,
            sessions.c.state.not_in(("finished", ENDED)),
            never.c.session_id.is_(None),
            sessions.c.session_id.not_in(excluded_sessions()),
            trials.c.session_id.is_(None),
            calls.c.trial_index.is_not(None),
        )
        .group_by(*(calls.c[name] for name in TRIAL_KEY))
        .subquery()
    )
    grouping = (sessions.c.reader_kind, sessions.c.reader, sessions.c.is_pilot, calls.c.status)
    query = (
        select(*grouping, func.count().label("n"))
        .join(last, last.c.call_id == calls.c.call_id)
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .where(calls.c.status.in_(UNFINISHED))
        .group_by(*grouping)
    )
    yield from connection.execute(query)
