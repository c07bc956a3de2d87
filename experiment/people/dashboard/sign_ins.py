"""Sign-ins to the dashboard, stored as rows: the cookie contains a random token, which identifies the row of its account.

Deleting a row ends the sign-in at once in every server process. The account's stamp is stored with it, so that a changed
password, role or second factor ends it too. (Flask-Login stores the user in the cookie and has had no release since 2023;
Flask-WTF would add two packages for the four lines that make and compare a form's token.)

Limits on sign-in tries make guessing slow without letting anyone lock others out. Failed tries are counted per address (IPv6:
per /64) and per account in each network (IPv4 /24, IPv6 /48). A few are free; then the wait grows twofold with each. An address
waits only after its own failed tries, and its first try is always checked, so that guessers slow down only each other. No count
covers a whole account or the server, so that no stranger can lock either. A browser in which the account signed in before has
its own count, so its user can still sign in from a guesser's address.

Passwords are compared by few threads at once, since each comparison is costly by design. There are two lanes, one of them for
known browsers, so that a flood of strangers cannot fill it. If a lane's short queue is full, the user is asked to try again.

Failed tries are recorded in the audit of each study served, so that an owner sees them. Neither the password nor an unknown
name is stored (users type one into the other's field), nor the address. Any number of tries is summarised in a few lines per
minute, each with its count.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, insert, or_, select, update

from experiment.people.connections import caller_of, network_of
from experiment.people.session_cache import Throttle, token_hash
from experiment.store import Store, StoreError
from experiment.store.session_activity import stamp
from experiment.store.tables import audit, sign_ins

SIGN_IN = "sign-in"
LINK = "link"
SECOND_STEP = "second step"
"""The password was correct, and a code of the second factor is still required."""
BROWSER = "browser"
"""A browser in which the account signed in before: its tries are counted separately."""
SPENT = "spent code"

IDLE = timedelta(hours=12)
"""Period without an opened page after which a sign-in ends; the live page's automatic requests do not count."""
LASTS = {
    SIGN_IN: timedelta(days=7),
    LINK: timedelta(minutes=15),
    SECOND_STEP: timedelta(minutes=5),
    BROWSER: timedelta(days=90),
    SPENT: timedelta(minutes=5),
}
"""Longest validity of a row, regardless of its use."""
SEEN_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class SignIn:
    """A row of the table: a sign-in, or a step towards one."""

    token_hash: str
    kind: str
    account: str
    stamp: str
    created_at: str
    seen_at: str
    expires_at: str


class SignIns:
    """The active sign-ins, one-time links and known browsers of a server."""

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
        """Store a new row, and return its token."""
        token = secrets.token_urlsafe(32)
        row = self._row(kind, token_hash(token), account, account_stamp)
        self._store.write(lambda connection: self._insert(connection, row)).result()
        return token

    def find(self, kind: str, token: str, *, is_used: bool = False) -> SignIn | None:
        """Return the row of a token if it is still valid; ``is_used`` records activity."""
        now = self._clock()
        with self._store.read() as connection:
            row = connection.execute(
                select(sign_ins).where(
                    sign_ins.c.token_hash == token_hash(token), sign_ins.c.kind == kind, ~_is_over(now)
                )
            ).first()
        if row is None:
            return None
        sign_in = SignIn(**row._mapping)
        if is_used and not stamp(now - SEEN_AGAIN) < sign_in.seen_at <= stamp(now):
            seen = update(sign_ins).where(sign_ins.c.token_hash == sign_in.token_hash)
            self._store.write(lambda connection: connection.execute(seen.values(seen_at=stamp(now))).close())
        return sign_in

    def use_once(self, kind: str, token: str) -> SignIn | None:
        """Return the row of a token and delete it: of two simultaneous uses, in any process, only one succeeds."""
        now = self._clock()
        taken = (
            delete(sign_ins)
            .where(sign_ins.c.token_hash == token_hash(token), sign_ins.c.kind == kind, ~_is_over(now))
            .returning(*sign_ins.c)
        )
        row = self._store.write(lambda connection: connection.execute(taken).first()).result()
        return None if row is None else SignIn(**row._mapping)

    def spend(self, name: str, account: str) -> bool:
        """Mark something that works once (a code of the second factor) as used; return False if it was used before."""
        row = self._row(SPENT, token_hash(name), account, "")

        def mark(connection: Connection) -> bool:
            known = select(sign_ins.c.kind).where(sign_ins.c.token_hash == row["token_hash"])
            if connection.execute(known).first() is not None:
                return False
            self._insert(connection, row)
            return True

        return self._store.write(mark).result()

    def open_ones(self, account: str | None = None) -> list[SignIn]:
        """Return the sign-ins and unused links of one account or all, newest first."""
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
        """End all sign-ins, links and known browsers of an account."""
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
    """Return the condition for expired rows."""
    is_idle = (sign_ins.c.kind == SIGN_IN) & (sign_ins.c.seen_at <= stamp(now - IDLE))
    return or_(sign_ins.c.expires_at <= stamp(now), is_idle)


T = TypeVar("T")

FREE_TRIES = 5
FREE_TRIES_OF_NETWORK = 10
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
FORGET_AFTER_S = 3600.0
"""A count restarts after this time without a failed try."""
MOST_COUNTS = 50_000
LANE_QUEUE = 3
"""Tries that may wait in each lane: server threads that a flood can block."""
LANE_WAIT_S = 5.0


class TooManyTries(Exception):
    """A sign-in try that was not checked."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"wait {wait_s:.0f} s")
        self.wait_s = wait_s


@dataclass
class _Count:
    failed: int = 0
    latest: float = 0.0


@dataclass(frozen=True)
class Caller:
    """The source of a try: an address, and the target with its network."""

    address: str
    network: str | None = None


def caller(address: str | None, what: str = "") -> Caller:
    """Return the source of a try on something (an account's password, for example) from an address."""
    return Caller(caller_of(address or ""), f"{what}\0{network_of(address or '')}")


class FailedTries:
    """Counts failed tries by caller, and determines the wait before the next one.

    Counts are kept in memory under keyed digests, with a monotonic clock.
    """

    def __init__(self, free: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = free
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._counts: OrderedDict[bytes, _Count] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, caller: Caller) -> None:
        """Count a try as failed until :meth:`forgive` reverses it."""
        moment = self._clock()
        with self._lock:
            counts = self._counts_of(caller)
            for count in counts:
                if moment - count.latest > FORGET_AFTER_S:
                    count.failed = 0
            address_count, *shared = counts
            wait = _wait(address_count.failed - self._free)
            if address_count.failed:
                wait = max(wait, *(_wait(count.failed - FREE_TRIES_OF_NETWORK) for count in shared), 0.0)
            rest = address_count.latest + wait - moment
            if rest > 0:
                raise TooManyTries(rest)
            for count in counts:
                count.failed += 1
                count.latest = moment

    def forgive(self, caller: Caller) -> None:
        """Reverse a counted try that was correct, or was not checked."""
        with self._lock:
            for count in self._counts_of(caller):
                count.failed = max(0, count.failed - 1)

    def _counts_of(self, caller: Caller) -> list[_Count]:
        network = [] if caller.network is None else [f"network\0{caller.network}"]
        return [self._count(name) for name in (f"address\0{caller.address}", *network)]

    def _count(self, caller: str) -> _Count:
        key = hmac.digest(self._salt, caller.encode("utf-8", errors="replace"), "sha256")[:16]
        count = self._counts.setdefault(key, _Count())
        self._counts.move_to_end(key)
        while len(self._counts) > MOST_COUNTS:
            self._counts.popitem(last=False)
        return count


def _wait(over: int) -> float:
    return 0.0 if over < 0 else min(FIRST_WAIT_S * 2.0 ** min(over, 30), LONGEST_WAIT_S)


class Lane:
    """Allows one password comparison at a time, with a short queue."""

    def __init__(self, queue: int = LANE_QUEUE, wait_s: float = LANE_WAIT_S) -> None:
        self._places = threading.Semaphore(1 + queue)
        self._turn = threading.Semaphore(1)
        self._wait_s = wait_s

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn."""
        if not self._places.acquire(blocking=False):
            raise TooManyTries(self._wait_s)
        try:
            if not self._turn.acquire(timeout=self._wait_s):
                raise TooManyTries(self._wait_s)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()


class SignInLimits:
    """All limits on signing in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._by_address = FailedTries(FREE_TRIES, clock)
        self._by_browser = FailedTries(FREE_TRIES, clock)
        self._codes = FailedTries(FREE_TRIES_OF_NETWORK, clock)
        self._strangers = Lane()
        self._known = Lane()

    def password(
        self, name: str, address: str | None, browser: str | None, compare: Callable[[], T | None]
    ) -> T | None:
        """Return the result of a password comparison if its turn has come."""
        lane = self._strangers if browser is None else self._known

        def in_turn() -> T | None:
            with lane.turn():
                return compare()

        return self._counted([self._count_of(name, address, browser)], in_turn)

    def code(
        self, name: str, address: str | None, browser: str | None, compare: Callable[[], T | None]
    ) -> T | None:
        """Return the result of comparing a code of the second factor, for which only users with the password are asked.

        A code has six digits, so tries are also counted for the account as a whole. Only someone with the password can exhaust
        them, and a known browser has its own count.
        """
        counts = [self._count_of(f"code\0{name}", address, browser)]
        return self._counted(
            counts if browser is not None else [*counts, (self._codes, Caller(name))], compare
        )

    def recovery_code(self, name: str, address: str | None, compare: Callable[[], T | None]) -> T | None:
        """Return the result of comparing a recovery code, which is too long to be guessed: other failed codes do not delay it."""
        by = Caller(f"recovery\0{name}\0{caller(address).address}")
        return self._counted([(self._by_address, by)], compare)

    def _count_of(self, what: str, address: str | None, browser: str | None) -> tuple[FailedTries, Caller]:
        if browser is not None:
            return self._by_browser, Caller(browser)
        return self._by_address, caller(address, what)

    def _counted(self, counts: list[tuple[FailedTries, Caller]], compare: Callable[[], T | None]) -> T | None:
        """Count a try as failed while it is compared, so that parallel tries are limited like sequential ones."""
        begun: list[tuple[FailedTries, Caller]] = []
        is_wrong = False
        try:
            for tries, by in counts:
                tries.begin(by)
                begun.append((tries, by))
            result = compare()
            is_wrong = result is None
            return result
        finally:
            if not is_wrong:
                for tries, by in begun:
                    tries.forgive(by)


FAILED = "sign-in failed"
NOBODY = "nobody signed in"
LINES_PER_MINUTE = 10
SHOWN_FOR = timedelta(days=7)


@dataclass(frozen=True)
class Failures:
    """Failed sign-ins of the last week."""

    tries: int
    latest: str | None


class FailedSignIns:
    """Counts failed tries and decides which of them get a line in the audit."""

    def __init__(self, lines: Throttle | None = None) -> None:
        self._lines = lines or Throttle(LINES_PER_MINUTE, 60)
        self._lock = threading.Lock()
        self._untold: Counter[tuple[str, str]] = Counter()

    def told(self, known_name: str | None, why: str) -> list[dict[str, Any]]:
        """Count a try; return the details of the lines that are due: one for each account and reason since the last ones."""
        with self._lock:
            self._untold[known_name or "unknown name", why] += 1
            if self._lines.wait(None):
                return []
            untold, self._untold = self._untold, Counter()
        return [
            {"account": account, "why": reason, "tries": tries} for (account, reason), tries in untold.items()
        ]


def failures(connection: Connection, study: str, clock: Callable[[], datetime] | None = None) -> Failures:
    """Return the failed sign-ins of the last week from a study's audit."""
    since = stamp((clock() if clock else datetime.now(UTC)) - SHOWN_FOR)
    query = select(audit.c.at, audit.c.detail).where(
        audit.c.study == study, audit.c.action == FAILED, audit.c.at >= since
    )
    rows = connection.execute(query.order_by(audit.c.audit_id)).all()
    return Failures(
        sum(int((row.detail or {}).get("tries", 1)) for row in rows), rows[-1].at if rows else None
    )


def most(found: Iterable[Failures]) -> Failures:
    """Return the largest of several studies' failures, since all of their audits contain the same tries."""
    return max(found, key=lambda failures_of_study: failures_of_study.tries, default=Failures(0, None))
