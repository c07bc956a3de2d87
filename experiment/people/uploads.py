"""Takes the copy of answers that a participant downloaded when the server did not confirm them.

Each answer goes through the same checks and operations as one that came over the wire, so an answer that had arrived
after all is counted as the same, and taking a copy twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jsonschema.exceptions import best_match
from sqlalchemy import Connection

from experiment.people import bodies, taking
from experiment.people.access import is_token
from experiment.people.departures import Departed, TooLate
from experiment.people.live import LiveSession, live_session
from experiment.people.problems import Problem
from experiment.people.recruitment.codes import Recruitment
from experiment.people.recruitment.holding import hold_early_end, hold_if_doubtful
from experiment.people.service import ScoreTrial, present
from experiment.scoring.trial import score_trial
from experiment.store import SessionGone, Store, attendance, queries, records
from stimuli.errors import UserError

LARGEST_COPY = 64 * 1024 * 1024
WRAPPING = 3
"""How much deeper an answer lies in a copy than in a request."""
_SCHEMAS = {"trials": "trial", "events": "event", "answers": "answers"}


@dataclass(frozen=True)
class Taken:
    """What became of a copy."""

    new: int
    same: int
    refused: int
    trials: int
    reasons: tuple[str, ...]
    session_id: str
    reader: str
    state: str
    departed: Departed | None = None


def read_copy(data: bytes) -> dict[str, Any]:
    """Read a copy of answers.

    Raises
    ------
    UserError
        The file is too large, or no copy of answers.
    """
    if len(data) > LARGEST_COPY:
        raise UserError(
            "the file is larger than any copy of answers",
            mend="Give the JSON file that the participant's page offered.",
        )
    try:
        return _checked(bodies.parse(data, bodies.DEEPEST + WRAPPING))
    except Problem as problem:
        raise _no_copy(str(problem.body["rule"])) from None


def take_copy(
    store: Store,
    study: str,
    copy: Mapping[str, Any],
    *,
    recruitment: Recruitment | None = None,
    score: ScoreTrial = score_trial,
    clock: Callable[[], datetime] = present,
) -> Taken:
    """Store what a copy of answers holds and the store lacks; end the session where that completes it, as its page would.

    Parameters
    ----------
    store : Store
        The study's store.
    study : str
        The study's id.
    copy : Mapping
        ``{"wrods": 1, "kind": "answers", "study", "session_id", "token", "items": [{kind, body}]}``.
    recruitment : Recruitment, optional
        The study's, where participants are paid by code: sessions that were too fast are held.
    score : callable
        Judges a trial.
    clock : callable
        The time of day.

    Raises
    ------
    UserError
        It is no copy of answers, of another study, or its session is not here.
    """
    given = _checked(copy)
    if given["study"] != study:
        raise UserError(
            f"the answers are of the study {given['study']!r}, not of {study!r}",
            mend="Name the study that they belong to.",
        )
    with store.read() as connection:
        row = queries.session(connection, given["session_id"])
    if (
        row is None
        or not row["plan"]
        or row["study"] != study
        or not is_token(given["token"], row["token_hash"])
    ):
        raise UserError(
            "the session of these answers is not in this store",
            mend="Check that the study's store is the one that collected them; "
            "the answers of somebody who was withdrawn are not taken.",
            exit_code=1,
        )
    live = live_session(row)

    def hold(connection: Connection, session_id: str, screen: str | None) -> None:
        hold_early_end(connection, session_id, screen, recruitment, clock())

    waiting = [(item["kind"], _queue(store, live, score, hold, item)) for item in given["items"]]
    outcomes = [(kind, _outcome(queued)) for kind, queued in waiting]
    results = [
        (kind, outcome.told if isinstance(outcome, taking.Taken) else outcome) for kind, outcome in outcomes
    ]
    state = store.write(lambda connection: _complete(connection, live, recruitment, clock())).result()
    told = [outcome for _, outcome in results]
    return Taken(
        new=told.count("stored"),
        same=told.count("same"),
        refused=sum(one not in ("stored", "same", "erased") for one in told),
        trials=results.count(("trials", "stored")),
        reasons=tuple(dict.fromkeys(one for one in told if one not in ("stored", "same", "erased"))),
        session_id=live.session_id,
        reader=str(row["reader"]),
        state=state,
        departed=next(
            (one.departed for _, one in outcomes if isinstance(one, taking.Taken) and one.departed), None
        ),
    )


def _checked(copy: object) -> dict[str, Any]:
    error = best_match(bodies.validator("copy").iter_errors(copy))
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path) or "the file"
        raise _no_copy(f"{place}: {error.message}"[:200])
    assert isinstance(copy, dict)
    return copy


def _no_copy(why: str) -> UserError:
    return UserError(
        f"this is no copy of answers ({why})", mend="Give the JSON file that the participant's page offered."
    )


def _queue(
    store: Store, live: LiveSession, score: ScoreTrial, hold: taking.HoldEarlyEnd, item: Mapping[str, Any]
) -> Future[taking.Taken] | str:
    """Queue an answer for the writer, or say why it cannot be taken."""
    kind, body = item["kind"], item["body"]
    error = best_match(bodies.validator(_SCHEMAS[kind]).iter_errors(body))
    if error is not None:
        return f"{kind}: {'.'.join(str(part) for part in error.absolute_path)} is not accepted"
    try:
        if kind == "trials":
            return store.write(taking.trial(live, score, body))
        return store.write((taking.event if kind == "events" else taking.answers)(live, body, hold))
    except Problem as problem:
        return str(problem)


def _outcome(queued: Future[taking.Taken] | str) -> taking.Taken | str:
    if isinstance(queued, str):
        return queued
    try:
        return queued.result()
    except (records.TrialConflict, records.EventConflict) as conflict:
        return str(conflict)
    except taking.SessionEnded:
        return "the session has ended"
    except taking.NotAgreed:
        return "the participant has not agreed to take part"
    except SessionGone:
        return "the session was withdrawn"
    except TooLate as late:
        return f"answers could be deleted until {late.until}"


def _complete(
    connection: Connection, live: LiveSession, recruitment: Recruitment | None, now: datetime
) -> str:
    row = queries.session(connection, live.session_id)
    state = "withdrawn" if row is None else str(row["state"])
    done = queries.done_keys(connection, live.session_id)
    answered = {index for index, _ in done}
    if row is None or state not in attendance.MAY_FINISH or not attendance.has_all(live.trials, answered):
        return state
    held = hold_if_doubtful(connection, row, answered, recruitment, now)
    attendance.complete_session(connection, live.session_id, held)
    return "finished"
