"""Finds the person who is to be withdrawn: all their sessions, or a refusal where what was given fits several people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from experiment.store.assignment import INVITED, NETWORK, TYPED
from experiment.store.queries import SESSION_COLUMNS
from experiment.store.records import PARTICIPANTS
from experiment.store.tables import people, sessions, trials


@dataclass(frozen=True)
class Found:
    """A session of the person who withdraws; ``person`` is their key inside the store, ``known_as`` their outside names."""

    session_id: str
    person: str
    reader: str
    participant_id: str | None
    state: str
    is_pilot: bool
    station: str | None
    began_at: str
    trials: int
    known_as: tuple[str, ...] = ()


class SeveralPersons(Exception):
    """What was given fits more than one person; ``found`` holds the sessions of all of them."""

    def __init__(self, found: Sequence[Found]) -> None:
        super().__init__(f"{len({one.person for one in found})} persons")
        self.found = tuple(found)


def find_person(
    connection: Connection,
    study: str,
    *,
    participant: str | None = None,
    platform_id: str | None = None,
    station: str | None = None,
    at: datetime | None = None,
    session: str | None = None,
) -> list[Found]:
    """Return all sessions of one person, found by number, platform id, station and time, or one of the sessions.

    Parameters
    ----------
    connection : Connection
        A reading connection.
    study : str
        The study's id.
    participant : str, optional
        Their number, in older databases one of two, or the name under which they were invited.
    platform_id : str, optional
        The id at the recruitment platform, as long as it is kept.
    station, at : str and datetime, optional
        A station, and a moment at which the session ran there; without a zone it is this computer's time.
    session : str, optional
        A session's id, or so many of its first characters that no other begins with them.

    Returns
    -------
    list of Found
        In the order in which they began; empty where nobody fits.

    Raises
    ------
    SeveralPersons
        What was given fits more than one person.
    """
    is_persons = (sessions.c.study == study, sessions.c.reader_kind.in_(PARTICIPANTS))
    query = select(sessions.c.session_id, sessions.c.person_key).where(*is_persons)

    def named(*which: ColumnElement[bool]) -> ColumnElement[bool]:
        return sessions.c.session_id.in_(select(people.c.session_id).where(people.c.study == study, *which))

    if participant is not None:
        query = query.where(
            or_(
                sessions.c.reader == participant,
                sessions.c.participant_id == participant,
                named(people.c.source.in_((TYPED, INVITED)), people.c.external_id == participant),
            )
        )
    elif platform_id is not None:
        query = query.where(named(people.c.external_id == platform_id))
    elif station is not None and at is not None:
        moment = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        query = query.where(
            sessions.c.station == station,
            sessions.c.created_at <= moment,
            or_(sessions.c.finished_at >= moment, sessions.c.last_seen_at >= moment),
        )
    elif session is not None:
        query = query.where(sessions.c.session_id.startswith(session, autoescape=True))
    else:
        raise ValueError("a person is found by number, platform id, station and time, or session")
    matched = connection.execute(query).all()
    keys = {row.person_key for row in matched if row.person_key is not None}
    theirs = select(*SESSION_COLUMNS).where(
        *is_persons,
        or_(
            sessions.c.person_key.in_(keys),
            sessions.c.session_id.in_([row.session_id for row in matched]),
        ),
    )
    found = [
        _found(connection, dict(row))
        for row in connection.execute(theirs.order_by(sessions.c.created_at)).mappings()
    ]
    if len({one.person for one in found}) > 1:
        raise SeveralPersons(found)
    return found


def _found(connection: Connection, row: Mapping[str, Any]) -> Found:
    session_id = str(row["session_id"])
    trials_stored = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    names = connection.execute(
        select(people.c.source, people.c.external_id).where(
            people.c.session_id == session_id, people.c.source.not_in((TYPED, NETWORK))
        )
    )
    return Found(
        session_id=session_id,
        person=str(row["person_key"] or session_id),
        reader=row["reader"],
        participant_id=row["participant_id"],
        state=row["state"],
        is_pilot=row["is_pilot"],
        station=row["station"],
        began_at=row["created_at"],
        trials=int(connection.scalar(trials_stored) or 0),
        known_as=tuple(f"{source} {external_id}" for source, external_id in names),
    )
