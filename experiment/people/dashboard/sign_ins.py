"""Sign-ins to the dashboard, kept in the store: the cookie holds a random token, and the token's row says whose it is.

Deleting a row ends the sign-in at once and in every server process. The stamp of the account is kept with it, so that a
changed password, role or second factor ends it too. (Flask-Login keeps who is signed in inside the cookie and has had no
release since 2023; Flask-WTF would add two packages for the four lines that make and compare a form's token.)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from experiment.people.access import token_hash
from experiment.store import Store, StoreError
from experiment.store.attendance import stamp
from experiment.store.tables import sign_ins

SIGN_IN = "sign-in"
LINK = "link"
SECOND_STEP = "second step"
"""The password was right, and a code of the second factor is still to come."""
BROWSER = "browser"
"""A browser in which the account signed in before: tries from there are counted by themselves."""
SPENT = "spent code"

IDLE = timedelta(hours=12)
"""A sign-in that opened no page for so long has ended; the live page's own requests do not count."""
LASTS = {
    SIGN_IN: timedelta(days=7),
    LINK: timedelta(minutes=15),
    SECOND_STEP: timedelta(minutes=5),
    BROWSER: timedelta(days=90),
    SPENT: timedelta(minutes=5),
}
"""How long a row counts, however often it is used."""
SEEN_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class SignIn:
    """A row of the table: a sign-in, or something that leads to one."""

    token_hash: str
    kind: str
    account: str
    stamp: str
    created_at: str
    seen_at: str
    expires_at: str


class SignIns:
    """The open sign-ins, one-time links and known browsers of a server."""

    def __init__(
        self, store: Store | None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._opened = store
        self._clock = clock

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise StoreError("no study is served, so nobody can sign in", mend="Serve one.")
        return self._opened

    def begin(self, kind: str, account: str, account_stamp: str) -> str:
        """Keep a new row, and return its token once it is stored."""
        token = secrets.token_urlsafe(32)
        row = self._row(kind, token_hash(token), account, account_stamp)
        self._store.write(lambda connection: self._insert(connection, row)).result()
        return token

    def find(self, kind: str, token: str, *, is_used: bool = False) -> SignIn | None:
        """Return the row of a token if it still counts; ``is_used`` notes that somebody is there."""
        now = self._clock()
        with self._store.read() as connection:
            row = connection.execute(
                select(sign_ins).where(
                    sign_ins.c.token_hash == token_hash(token), sign_ins.c.kind == kind, ~_is_over(now)
                )
            ).first()
        if row is None:
            return None
        found = SignIn(**row._mapping)
        if is_used and not stamp(now - SEEN_AGAIN) < found.seen_at <= stamp(now):
            seen = update(sign_ins).where(sign_ins.c.token_hash == found.token_hash)
            self._store.write(lambda connection: connection.execute(seen.values(seen_at=stamp(now))).close())
        return found

    def use_once(self, kind: str, token: str) -> SignIn | None:
        """Return the row of a token and delete it: of two who come at once, in any process, one gets it."""
        now = self._clock()
        taken = (
            delete(sign_ins)
            .where(sign_ins.c.token_hash == token_hash(token), sign_ins.c.kind == kind, ~_is_over(now))
            .returning(*sign_ins.c)
        )
        row = self._store.write(lambda connection: connection.execute(taken).first()).result()
        return None if row is None else SignIn(**row._mapping)

    def spend(self, name: str, account: str) -> bool:
        """Return whether something that counts once (a code of the second factor) was not used before, and mark it as used."""
        row = self._row(SPENT, token_hash(name), account, "")

        def mark(connection: Connection) -> bool:
            known = select(sign_ins.c.kind).where(sign_ins.c.token_hash == row["token_hash"])
            if connection.execute(known).first() is not None:
                return False
            self._insert(connection, row)
            return True

        return self._store.write(mark).result()

    def open_ones(self, account: str | None = None) -> list[SignIn]:
        """Return the sign-ins and unused links, of one account or of all, the newest first."""
        query = select(sign_ins).where(sign_ins.c.kind.in_((SIGN_IN, LINK)), ~_is_over(self._clock()))
        if account is not None:
            query = query.where(sign_ins.c.account == account)
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(sign_ins.c.created_at.desc())).all()
        return [SignIn(**row._mapping) for row in rows]

    def end(self, hashed: str) -> None:
        """End a sign-in or a link; return when no process accepts it any more."""
        gone = delete(sign_ins).where(sign_ins.c.token_hash == hashed)
        self._store.write(lambda connection: connection.execute(gone).close()).result()

    def end_all(self, account: str) -> None:
        """End all that an account has: sign-ins, links and known browsers."""
        gone = delete(sign_ins).where(sign_ins.c.account == account, sign_ins.c.kind != SPENT)
        self._store.write(lambda connection: connection.execute(gone).close()).result()

    def _row(self, kind: str, hashed: str, account: str, account_stamp: str) -> dict[str, Any]:
        now = self._clock()
        return {
            "token_hash": hashed,
            "kind": kind,
            "account": account,
            "stamp": account_stamp,
            "created_at": stamp(now),
            "seen_at": stamp(now),
            "expires_at": stamp(now + LASTS[kind]),
        }

    def _insert(self, connection: Connection, row: dict[str, Any]) -> None:
        connection.execute(delete(sign_ins).where(_is_over(self._clock())))
        connection.execute(insert(sign_ins).values(row))


def _is_over(now: datetime) -> Any:
    """Return the condition for rows that count no longer."""
    is_idle = (sign_ins.c.kind == SIGN_IN) & (sign_ins.c.seen_at <= stamp(now - IDLE))
    return or_(sign_ins.c.expires_at <= stamp(now), is_idle)
