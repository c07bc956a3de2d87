"""What the store knows that planning goes on from: answers of a session, calls before them, people's finished sessions."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, and_, func, select

from experiment.models.engine import UNFINISHED
from experiment.models.planning.restoring import UNSCRAMBLE, given_back
from experiment.models.planning.session import Person, Told
from experiment.store import Store
from experiment.store.tables import calls, scores, sessions, trials


def told_of(connection: Connection, session_id: str) -> dict[int, Told]:
    """Return the answers of a session by trial index, with the verdict by which feedback was given: each trial's first.

    Where a trial was shown more than once, its last attempt counts.
    """
    first = (
        select(
            scores.c.session_id,
            scores.c.trial_index,
            scores.c.attempt,
            func.min(scores.c.score_id).label("score_id"),
        )
        .where(scores.c.session_id == session_id)
        .group_by(scores.c.session_id, scores.c.trial_index, scores.c.attempt)
        .subquery()
    )
    same = and_(first.c.trial_index == trials.c.trial_index, first.c.attempt == trials.c.attempt)
    query = (
        select(trials.c.trial_index, trials.c.response_raw, trials.c.timed_out, scores.c.correct)
        .join(first, same, isouter=True)
        .join(scores, scores.c.score_id == first.c.score_id, isouter=True)
        .where(trials.c.session_id == session_id)
        .order_by(trials.c.trial_index, trials.c.attempt)
    )
    return {
        int(row.trial_index): Told(row.response_raw, row.correct, bool(row.timed_out))
        for row in connection.execute(query)
    }


def calls_before(connection: Connection, session_id: str) -> dict[str, str]:
    """Return the texts of a session's finished calls that come before answers, by work key (``key:unscramble``).

    The text of a call that was cut short, declined or empty is empty: it is not made again, and nothing of it is used.
    """
    query = select(calls.c.work_key, calls.c.purpose, calls.c.text, calls.c.status).where(
        calls.c.session_id == session_id,
        calls.c.purpose.in_((UNSCRAMBLE, "reason")),
        calls.c.status.not_in(UNFINISHED),
    )
    found = connection.execute(query.order_by(calls.c.call_id))
    return {f"{row.work_key}:{row.purpose}": given_back(row.text, row.status) for row in found}


class People:
    """The finished sessions of people, read one at a time; pilots and sessions of other versions are left out."""

    def __init__(self, store: Store, study: str, version: int) -> None:
        self.store = store
        self.study = study
        self.version = version

    def ids(self) -> list[str]:
        """Return the sessions' ids, in the order in which they began."""
        query = (
            select(sessions.c.session_id)
            .where(
                sessions.c.study == self.study,
                sessions.c.version == self.version,
                sessions.c.reader_kind == "human",
                sessions.c.state == "finished",
                sessions.c.is_pilot.is_(False),
            )
            .order_by(sessions.c.created_at, sessions.c.session_id)
        )
        with self.store.read() as connection:
            return list(connection.scalars(query))

    def __iter__(self) -> Iterator[Person]:
        """Read one session after the other."""
        for session_id in self.ids():
            with self.store.read() as connection:
                plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id))
                if plan is not None:
                    yield Person(session_id, plan, told_of(connection, session_id))
