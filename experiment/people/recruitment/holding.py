"""Sessions held for review, and paid only once somebody releases them.

They were too fast for their plan, passed a screen unanswered, or ended early by a report that their answers do not show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from experiment.people.recruitment.codes import Recruitment, code_of
from experiment.people.times import SUSPECT
from experiment.procedure.questions import is_eligible, right_answers
from experiment.session_minutes import shortest_seconds
from experiment.store import queries
from experiment.store.records import add_audit, add_flag
from experiment.store.tables import events, scores, sessions

KEPT = "not paid: "
"""How the reason begins of a session that stays held after its review."""
SERVER = "server"
REFERENCE_LENGTH = 12


def hold_if_doubtful(
    connection: Connection,
    row: Mapping[str, Any],
    answered: Collection[int],
    recruitment: Recruitment | None,
    now: datetime,
) -> str | None:
    """Note why a session that finishes now is to be looked at first; return the reason for which its code is held.

    In a laboratory a code pays nobody, so the session is only flagged, and the reason is None.
    """
    if _is_never_held(row):
        return None
    reasons = [*screens_not_passed(connection, row), *_too_fast(row, row["plan"]["screens"], answered, now)]
    return _held(connection, row, reasons, recruitment)


def hold_early_end(
    connection: Connection,
    session_id: str,
    screen: str | None,
    recruitment: Recruitment | None,
    now: datetime,
) -> None:
    """Hold a session that has ended before its last trial, if its reader would get a code and the end is doubtful."""
    row = queries.session(connection, session_id)
    if row is None or _is_never_held(row):
        return
    if recruitment is not None and recruitment.platform and not code_of(recruitment, "screened_out"):
        return
    screens = row["plan"]["screens"]
    if screen is None:
        place = next((at for at, one in enumerate(screens) if _is_failed(connection, session_id, one)), None)
    else:
        place = next(at for at, one in enumerate(screens) if one.get("name") == screen)
    if place is None:
        reasons = ["practice was reported as not passed; the stored answers do not show it"]
    else:
        answered = {index for index, _ in queries.done_keys(connection, session_id)}
        reasons = _too_fast(row, screens[: place + 1], answered, now)
    reason = _held(connection, row, reasons, recruitment)
    if reason is not None:
        connection.execute(
            update(sessions).where(sessions.c.session_id == session_id).values(held_reason=reason)
        )


def _is_never_held(row: Mapping[str, Any]) -> bool:
    return bool(row["is_pilot"]) or row["reader_kind"] != "human"


def _too_fast(
    row: Mapping[str, Any], screens: Sequence[Mapping[str, Any]], answered: Collection[int], now: datetime
) -> list[str]:
    took = (now - datetime.fromisoformat(row["created_at"])).total_seconds()
    shortest = shortest_seconds({"screens": screens}, answered)
    if took >= shortest:
        return []
    return [f"ended after {took:.1f} s; the plan takes at least {shortest:.1f} s"]


def _held(
    connection: Connection, row: Mapping[str, Any], reasons: Sequence[str], recruitment: Recruitment | None
) -> str | None:
    """Note the reasons for which a session is to be looked at first; return them where its code is held."""
    if not reasons:
        return None
    reason, session_id = "; ".join(reasons), str(row["session_id"])
    if recruitment is None or recruitment.platform is None:
        add_flag(connection, session_id, SUSPECT, reason, SERVER)
        return None
    detail = {"reason": reason}
    add_audit(connection, SERVER, "held for review", study=row["study"], session_id=session_id, detail=detail)
    return reason


def screens_not_passed(connection: Connection, row: Mapping[str, Any]) -> list[str]:
    """Return what a session lacks of the answers that let its reader in: eligibility, instructions, practice with a criterion."""
    query = (
        select(events.c.detail)
        .where(events.c.session_id == row["session_id"], events.c.kind == "answers")
        .order_by(events.c.event_id)
    )
    # pages of earlier versions could send such events with any detail
    details = [
        detail for detail in connection.scalars(query) if {"screen", "answers"} <= (detail or {}).keys()
    ]
    found = []
    for screen in row["plan"]["screens"]:
        if _has_criterion(screen):
            needed, (right, _) = _needed(screen), _practised(connection, str(row["session_id"]), screen)
            if right < needed:
                found.append(f"practice {screen['block']!r} was not passed: {right} right of {needed} needed")
        criterion, questions = screen.get("comprehension"), screen.get("questions", ())
        if not criterion and all(question.get("accept") is None for question in questions):
            continue
        given = [detail["answers"] for detail in details if detail["screen"] == screen["name"]]
        if not given:
            found.append(f"the screen {screen['name']!r} was not answered")
        elif not (_understood(criterion, questions, given) if criterion else _let_in(questions, given)):
            found.append(f"the screen {screen['name']!r} was not passed")
    return found


def _has_criterion(screen: Mapping[str, Any]) -> bool:
    return screen["kind"] == "practice" and screen.get("pass") is not None


def _needed(practice: Mapping[str, Any]) -> int:
    share: float = practice["pass"]
    return math.ceil(share * len(practice["trials"]) - 1e-9)


def _is_failed(connection: Connection, session_id: str, screen: Mapping[str, Any]) -> bool:
    """Return whether all passes of a practice with a criterion were answered, and none well enough."""
    if not _has_criterion(screen):
        return False
    right, passes = _practised(connection, session_id, screen)
    return passes >= (screen.get("attempts") or 1) and right < _needed(screen)


def _practised(connection: Connection, session_id: str, practice: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many trials of practice were right in the best of the allowed passes, and how many passes were answered.

    A trial's first answer is its first pass, whatever its attempt: one that was seen and not answered counts as an attempt.
    """
    planned = {trial["trial_index"] for trial in practice["trials"]}
    verdicts = (
        select(scores.c.trial_index, scores.c.attempt, scores.c.correct)
        .where(scores.c.session_id == session_id, scores.c.trial_index.in_(planned))
        .order_by(scores.c.trial_index, scores.c.attempt, scores.c.score_id)
    )
    answers = {(index, attempt): bool(correct) for index, attempt, correct in connection.execute(verdicts)}
    passes, right = Counter[int](), Counter[int]()
    for (index, _), is_right in answers.items():
        passes[index] += 1
        if passes[index] <= (practice.get("attempts") or 1):
            right[passes[index]] += is_right
    return max(right.values(), default=0), min((passes[index] for index in planned), default=0)


def _let_in(questions: Sequence[dict[str, Any]], given: Sequence[Mapping[str, Any]]) -> bool:
    return all(is_eligible(list(questions), answers)[0] for answers in given)


def _understood(
    criterion: Mapping[str, Any], questions: Sequence[dict[str, Any]], given: Sequence[Mapping[str, Any]]
) -> bool:
    rounds = given[: criterion["rounds"]]
    if len(rounds) == criterion["rounds"] and criterion["if_failed"] != "end":
        return True
    return any(right_answers(questions, answers) >= criterion["needed"] for answers in rounds)


def awaits_review(row: Mapping[str, Any]) -> bool:
    """Return whether a session is held and nobody has decided on it yet."""
    reason = row["held_reason"]
    return reason is not None and not reason.startswith(KEPT)


def release(connection: Connection, session_id: str) -> bool:
    """Release a held session: its participant gets the code, and it fills a place. Say whether it was held."""
    released = connection.execute(
        update(sessions)
        .where(sessions.c.session_id == session_id, sessions.c.held_reason.is_not(None))
        .values(held_reason=None)
        .returning(sessions.c.session_id)
    )
    return released.first() is not None


def keep(connection: Connection, session_id: str, reason: str) -> bool:
    """Keep a session held after its review; say whether it awaited one."""
    kept = connection.execute(
        update(sessions)
        .where(
            sessions.c.session_id == session_id,
            sessions.c.held_reason.is_not(None),
            sessions.c.held_reason.not_like(f"{KEPT}%"),
        )
        .values(held_reason=KEPT + reason)
        .returning(sessions.c.session_id)
    )
    return kept.first() is not None


def reference_to(session_id: str) -> str:
    """Return the name by which a held session's participant and the dashboard call it."""
    return session_id[:REFERENCE_LENGTH]
