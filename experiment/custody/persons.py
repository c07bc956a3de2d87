"""Finds the person who is to be withdrawn: all their sessions, or a refusal where what was given fits several people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from experiment.store.assignment import INVITED, NETWORK, TYPED
from experiment.store.queries import SESSION_COLUMNS
from experiment.store.records import PARTICIPANTS
from experiment.store.tables import invitations, people, sessions, trials

_LOOK_ALIKES = str.maketrans("авекмнорстухіјѕ" + "αβεικμνορτυχ", "abekmhopctyxijs" + "abeikmnoptyx")
"""Cyrillic and Greek letters that look like Latin ones, in lower case."""


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
    """Return all sessions of one person, found by number, platform id, station and time, or one of the sessions."""
    is_persons = (sessions.c.study == study, sessions.c.reader_kind.in_(PARTICIPANTS))
    query = select(sessions.c.session_id, sessions.c.person_key).where(*is_persons)
    if "" in (participant, platform_id, station, session):
        raise ValueError("an empty name fits everybody or nobody")

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
            sessions.c.station.in_(_stations(connection, study, station)),
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
        or_(sessions.c.person_key.in_(keys), sessions.c.session_id.in_([row.session_id for row in matched])),
    )
    found = [
        _found(connection, dict(row))
        for row in connection.execute(theirs.order_by(sessions.c.created_at)).mappings()
    ]
    if len({one.person for one in found}) > 1:
        raise SeveralPersons(found)
    return found


def look_alikes(connection: Connection, study: str, participant: str) -> list[str]:
    """Return the numbers and names of other participants that can be taken for one: ``p1`` and ``Р001`` for ``P001``."""
    of_persons = (sessions.c.study == study, sessions.c.reader_kind.in_(PARTICIPANTS))
    named = (people.c.study == study, people.c.source.in_((TYPED, INVITED)))
    queries = (
        select(sessions.c.reader).where(*of_persons),
        select(sessions.c.participant_id).where(*of_persons, sessions.c.participant_id.is_not(None)),
        select(people.c.external_id).where(*named),
        select(invitations.c.participant).where(invitations.c.study == study),
    )
    names = {str(name) for query in queries for name in connection.scalars(query)}
    return sorted(name for name in names - {participant} if _folded(name) == _folded(participant))


def unopened_links(connection: Connection, study: str, participant: str) -> list[str]:
    """Return the digests of personal links that were made for somebody and have begun no session."""
    return list(
        connection.scalars(
            select(invitations.c.token_hash).where(
                invitations.c.study == study,
                invitations.c.participant == participant,
                invitations.c.session_id.is_(None),
            )
        )
    )


def _folded(name: str) -> str:
    """Return a name without what a reader overlooks: case, width, invisible characters, spaces, leading zeros, alphabets."""
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKES)
    plain = "".join(
        letter for letter in plain if unicodedata.category(letter) not in ("Cf", "Mn", "Zs", "Pd")
    )
    return re.sub(r"(?<!\d)0+(?=\d)", "", plain)


def _stations(connection: Connection, study: str, given: str) -> list[str]:
    """Return the stations of a study that are meant: of that name, or with that number (``7`` is also ``Station 07``)."""
    names: Iterable[str | None] = connection.scalars(
        select(sessions.c.station).where(sessions.c.study == study).distinct()
    )
    return [
        name for name in names if name and (name.casefold() == given.casefold() or _is_number(name, given))
    ]


def _is_number(station: str, given: str) -> bool:
    found = re.fullmatch(r"\D*?0*(\d+)", station)
    return found is not None and given.isdecimal() and int(found[1]) == int(given)


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
