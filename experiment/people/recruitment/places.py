"""How many more may take part: finished sessions and those under way, against what the study wants.

The count runs in the transaction that begins a session, so two people who arrive together cannot both get the last
place. Places of those who returned, timed out or fell silent are open again, on the list that they had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection, case, func, select

from experiment.store.assignment import STARTED_RECENTLY, is_finished, is_under_way
from experiment.store.collection import collection_of
from experiment.store.database import lock_for_change
from experiment.store.exclusions import excluded_sessions
from experiment.store.tables import sessions

if TYPE_CHECKING:
    from experiment.people.service import StudyService

TRY_AGAIN_MINUTES = 30


@dataclass(frozen=True)
class Refusal:
    """Why somebody cannot begin."""

    kind: Literal["full", "busy", "paused", "closed"]
    title: str
    text: str
    mend: str


@dataclass(frozen=True)
class Places:
    """Sessions of people that hold a place."""

    finished: int
    under_way: int


def places_taken(connection: Connection, service: StudyService) -> Places:
    """Count the sessions that hold a place: people's, neither pilots nor excluded, of the present version of the design."""
    recently = min(STARTED_RECENTLY, service.left_within or STARTED_RECENTLY)
    finished = func.sum(case((is_finished(), 1), else_=0))
    under_way = func.sum(case((is_under_way(recently), 1), else_=0))
    found = connection.execute(
        select(finished, under_way).where(
            sessions.c.study == service.study,
            sessions.c.version == service.version,
            sessions.c.reader_kind == "human",
            sessions.c.is_pilot.is_(False),
            sessions.c.session_id.not_in(excluded_sessions()),
        )
    ).one()
    return Places(int(found[0] or 0), int(found[1] or 0))


def place_for(connection: Connection, service: StudyService) -> Refusal | None:
    """Say whether one more person may begin, and let nobody else decide until the writer's transaction ends.

    Call it in the transaction that then creates the session; see :func:`refusal_for`.
    """
    lock_for_change(connection)
    return refusal_for(connection, service)


def refusal_for(connection: Connection, service: StudyService) -> Refusal | None:
    """Say whether one more person may begin at this moment."""
    state = collection_of(connection, service.study).state
    if state != "open":
        words = service.pack.texts
        return Refusal(state, words[f"{state}_title"], words[f"{state}_text"], "")
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.wanted is None:
        return None
    taken = places_taken(connection, service)
    words = service.pack.texts
    if taken.finished >= recruitment.wanted:
        key = recruitment.platform.key
        mend = "" if key == "link" else service.pack.fill("full_return", platform=recruitment.platform.name)
        return Refusal("full", words["full_title"], words["full_text"], mend)
    if taken.finished + taken.under_way >= recruitment.wanted + recruitment.overbook:
        text = service.pack.fill("busy_text", minutes=TRY_AGAIN_MINUTES)
        return Refusal("busy", words["busy_title"], text, "")
    return None
