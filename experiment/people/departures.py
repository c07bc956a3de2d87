"""People who decline, or have their answers deleted: what is erased at once, and what is cleaned in the background.

The rows go in the transaction of the request. Bytes in the database's files and in backups follow in a thread of their
own, one study at a time; a cleaning that was cut off is made good when the study is served again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from sqlalchemy import Connection, select

from experiment.people.service import StudyService
from experiment.store import queries
from experiment.store.declining import (
    DECLINED,
    UNDECIDED,
    asks_for_consent,
    forget,
    forget_and_count,
    has_agreed,
)
from experiment.store.erasure import erase_sessions
from experiment.store.errors import SessionGone
from experiment.store.tables import sessions

ACTOR = "participant"
LATER_S = 600.0
"""How long the cleaning after somebody declined waits for others that it can cover."""

Wish = Literal["decline", "delete"]


class TooLate(Exception):
    """The session has ended, and the day until which its answers can be deleted is over."""

    def __init__(self, until: str) -> None:
        super().__init__(until)
        self.until = until


@dataclass(frozen=True)
class Departed:
    """Sessions that were erased."""

    sessions: tuple[str, ...]
    wish: Wish


def wish_of(kind: str, detail: Mapping[str, Any]) -> Wish | None:
    """Return what an event asks for, None where it erases nothing."""
    if kind == "consent" and detail.get("agreed") is False:
        return "decline"
    return "delete" if kind == "stop" and detail.get("then") == "delete" else None


def depart(connection: Connection, session_id: str, wish: Wish, withdraw_until: str | None) -> Departed:
    """Erase what is stored of a session's reader: all of it, or all but the tombstone of somebody who had agreed."""
    row = queries.session(connection, session_id)
    if row is None:
        raise SessionGone(session_id)
    of_person = _of_person(connection, row)
    theirs = [session_id] if wish == "decline" else of_person
    is_asked = wish == "decline" or asks_for_consent(row["plan"])
    if is_asked and not any(has_agreed(connection, one) for one in theirs):
        forget_and_count(connection, session_id, DECLINED)
        for other in theirs[1:]:
            forget(connection, other)
        return Departed(tuple(theirs), wish)
    is_over = withdraw_until is not None and date.today().isoformat() > withdraw_until
    if row["state"] != "started" and is_over:
        raise TooLate(str(withdraw_until))
    erased = erase_sessions(connection, of_person, actor=ACTOR)
    return Departed(tuple(erased.sessions), "delete")


def leave_unagreed(connection: Connection, session_id: str) -> Departed | None:
    """Erase and count a person's session that was ended before its reader agreed; None where it is kept."""
    row = queries.session(connection, session_id)
    if row is None or row["reader_kind"] != "human" or not asks_for_consent(row["plan"]):
        return None
    if has_agreed(connection, session_id):
        return None
    forget_and_count(connection, session_id, UNDECIDED)
    return Departed((session_id,), "decline")


def _of_person(connection: Connection, row: Mapping[str, Any]) -> list[str]:
    """Return the session and others of the same person, such as one that was interrupted and began again."""
    same = select(sessions.c.session_id).where(
        sessions.c.study == row["study"],
        sessions.c.person_key == row["person_key"],
        sessions.c.person_key.is_not(None),
    )
    return list(dict.fromkeys([row["session_id"], *connection.scalars(same)]))


class Cleaning:
    """Cleans files of erased sessions in a thread of its own, so that nobody's answer waits for it."""

    def __init__(self, tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr)) -> None:
        self._tell = tell
        self._due: dict[str, StudyService] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_urgent = False
        self._is_closing = False

    def after(self, service: StudyService, departed: Departed) -> None:
        """Note sessions that are gone beside the backups, so that none brings them back, and have the study's files cleaned."""
        from experiment.custody.withdrawal import remember

        if service.folder is None:
            return
        remember(service.folder, departed.sessions)
        with self._changed:
            self._due[service.study] = service
            self._is_urgent = self._is_urgent or departed.wish == "delete"
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="wrods-cleaning", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Clean what is due at once, and wait until it is done."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_urgent or self._is_closing, timeout=LATER_S)
                due, self._due, self._is_urgent = self._due, {}, False
                if not due:
                    self._thread = None
                    return
            for service in due.values():
                self._clean(service)

    def _clean(self, service: StudyService) -> None:
        from experiment.custody.withdrawal import clean_up

        assert service.folder is not None
        try:
            left = clean_up(service.store, service.study, service.folder)
        except Exception as error:
            # whatever it is, people are answering: say it and go on
            left = [f"{service.study}: files were not cleaned of deleted answers: {error}"]
        for line in left:
            self._tell(line)
