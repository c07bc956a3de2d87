"""Assigns each arriving participant a number and the list with the fewest readers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select

from experiment.store.chain import PLAN, WITHDRAWN
from experiment.store.database import lock_for_change
from experiment.store.records import excluded_sessions
from experiment.store.session_activity import stamp
from experiment.store.tables import audit, chain, invitations, people, sessions, trials
from stimuli.seeds import generator

STARTED_RECENTLY = timedelta(hours=2)
WITHOUT_TRIAL = timedelta(minutes=10)
"""Time for which a session without a stored trial holds a place: enough for the consent form and the instructions."""
TYPED, INVITED = "participant", "invitation"
"""Sources of participants' names: a typed number, and the name of an invitation."""
NETWORK = "network"
"""The source of a network address, which identifies nobody."""
PREFIXES = {"human": "P", "simulated": "S"}
PILOT_PREFIX = "T"
"""Prefixes of assigned numbers by kind of reader, and of pilots."""


def next_reader(connection: Connection, study: str, prefix: str = "P") -> str:
    """Return the next free number for a reader of a study: P001, P002, … in the order of arrival.

    Free numbers have no session, under either name in older databases, and no invitation.
    """
    lock_for_change(connection)
    numbers = numbers_taken(connection, study, prefix)
    # a withdrawn participant's number is not reused
    tombstones = connection.scalars(select(audit.c.detail).filter_by(study=study, action=WITHDRAWN))
    numbers += [int((detail or {}).get("numbers", {}).get(prefix, 0)) for detail in tombstones]
    # names that begin like a number: typed in earlier versions, or invited
    of_study = (
        select(sessions.c.participant_id).where(sessions.c.study == study),
        select(people.c.external_id).where(people.c.study == study, people.c.source.in_((TYPED, INVITED))),
        select(invitations.c.participant).where(invitations.c.study == study),
    )
    others: set[str] = set()
    for names in of_study:
        (name,) = names.selected_columns
        others.update(connection.scalars(names.where(name.startswith(prefix, autoescape=True))))
    free = (f"{prefix}{number:03d}" for number in count(max(numbers, default=0) + 1))
    return next(number for number in free if number not in others)


def numbers_taken(connection: Connection, study: str, prefix: str, *, but: Collection[str] = ()) -> list[int]:
    """Return the numbers of a study's readers whose names are a prefix and digits, except some names."""
    readers = select(sessions.c.reader).where(sessions.c.study == study).distinct()
    taken = connection.scalars(readers.where(sessions.c.reader.startswith(prefix, autoescape=True)))
    ends = (name[len(prefix) :] for name in taken if name not in but)
    return [int(number) for number in ends if number.isascii() and number.isdecimal()]


def typed_numbers(connection: Connection, study: str) -> set[str]:
    """Return the numbers typed in a study, which may identify a person."""
    return set(connection.scalars(select(people.c.external_id).filter_by(study=study, source=TYPED)))


def number_is_taken(connection: Connection, study: str, number: str) -> bool:
    """Return whether a typed number belongs to another session for which nobody typed it."""
    typed = select(people.c.session_id).filter_by(study=study, source=TYPED, external_id=number)
    named = or_(sessions.c.reader == number, sessions.c.participant_id == number)
    others = select(sessions.c.session_id).where(sessions.c.study == study, named)
    return connection.scalar(others.where(sessions.c.session_id.not_in(typed)).limit(1)) is not None


def is_finished() -> ColumnElement[bool]:
    """Return the condition for sessions that fill a place for good: finished, and not held for review."""
    return and_(sessions.c.state == "finished", sessions.c.held_reason.is_(None))


def is_under_way(started_within: timedelta) -> ColumnElement[bool]:
    """Return the condition for unfinished sessions that hold a place: active, with a trial or just begun, or just given a list."""
    present = datetime.now(UTC)
    just_now = stamp(present - WITHOUT_TRIAL)
    plans = exists().where(chain.c.session_id == sessions.c.session_id, chain.c.kind == PLAN)
    return and_(
        sessions.c.state == "started",
        sessions.c.last_seen_at >= stamp(present - started_within),
        or_(
            sessions.c.created_at >= just_now,
            exists().where(trials.c.session_id == sessions.c.session_id),
            plans.where(chain.c.created_at >= just_now),
        ),
    )


@dataclass(frozen=True)
class PlacesOf:
    """Sessions that fill places on lists: finished or active, and not excluded."""

    study: str
    version: int
    reader_kind: str = "human"
    is_pilot: bool = False
    started_within: timedelta = STARTED_RECENTLY

    def condition(self) -> ColumnElement[bool]:
        """Return the condition for sessions that fill a place."""
        return and_(
            sessions.c.study == self.study,
            sessions.c.version == self.version,
            sessions.c.reader_kind == self.reader_kind,
            sessions.c.is_pilot == self.is_pilot,
            or_(is_finished(), is_under_way(self.started_within)),
            sessions.c.session_id.not_in(excluded_sessions()),
        )


def assign_list(connection: Connection, places: PlacesOf, lists: Sequence[int], seed: int) -> int:
    """Return the list with the fewest readers, at random among ties.

    Sessions without a stored trial count only for ten minutes after they began or got their list, and those excluded or held for
    review not at all. Call it in the transaction that creates the session or gives it its list, so that no other decision
    intervenes.
    """
    lock_for_change(connection)
    counted = connection.execute(
        select(sessions.c.list_id, func.count()).where(places.condition()).group_by(sessions.c.list_id)
    )
    filled: dict[int, int] = {int(list_id): int(n) for list_id, n in counted if list_id is not None}
    fewest = min(filled.get(list_id, 0) for list_id in lists)
    open_lists = [list_id for list_id in lists if filled.get(list_id, 0) == fewest]
    of_study = sessions.c.study == places.study
    arrivals = connection.scalar(select(func.count()).select_from(sessions).where(of_study))
    return generator(seed, "list", places.version, places.reader_kind, arrivals).choice(open_lists)


def free_order_row(connection: Connection, places: PlacesOf, list_id: int) -> int:
    """Return the first row of a list's balanced orders that none of its counted sessions has.

    Without dropouts, this is the number of the list's counted sessions; a reopened place returns its own row, so that the
    orders stay balanced. Call it like :func:`assign_list`.
    """
    lock_for_change(connection)
    of_list = (places.condition(), sessions.c.list_id == list_id)
    taken = set(connection.scalars(select(sessions.c.order_row).where(*of_list)))
    return next(row for row in count() if row not in taken)
