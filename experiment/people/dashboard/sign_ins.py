"""Accounts of the dashboard and their sign-ins, stored as rows: the cookie contains a random token, which identifies the row.

Deleting a row ends the sign-in at once in every server process. The account's *stamp* is stored with it, so that a changed
password, role or second factor ends it too. (Flask-Login stores the user in the cookie; Flask-WTF would add two packages for the
four lines that make and compare a form's token.)

Limits on tries make guessing slow without letting anyone lock others out. Failed tries are counted per address (IPv6: per /64)
and per account in each network (IPv4 /24, IPv6 /48); after a few free ones, the wait doubles with each. An address waits only
after its own failed tries, and a browser in which the account signed in before has its own count. Passwords are compared in two
lanes, one of them for known browsers, so that a flood of strangers cannot fill it.

Failed tries are recorded in the audit of each study served, summarised in a few lines per minute, with neither the password nor
an unknown name (users type one into the other's field) nor the address. A recovery code of the second factor has 80 random bits,
so a plain digest is safe to store.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyotp
import tomlkit
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from filelock import FileLock
from sqlalchemy import Connection, delete, insert, or_, select, update

from experiment.configuration import config_file, read_config
from experiment.option_choices import ROLES, Role
from experiment.people.connections import caller_of, network_of
from experiment.people.service import Throttle, require_length, token_hash
from experiment.store import Store, StoreError
from experiment.store.session_activity import stamp
from experiment.store.tables import audit, sign_ins
from stimuli.errors import UserError, unknown_name
from stimuli.files import replace_file

STEP_S = 30
STEPS_APART = 1
"""Number of earlier and later time steps whose code is accepted: clocks differ, and typing takes time."""
RECOVERY_CODES = 8
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_TOTP_CODE = re.compile(r"\d{6}")

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
class SecondFactor:
    """The stored second factor of an account."""

    secret: str = field(repr=False)
    recovery_hashes: tuple[str, ...] = field(default=(), repr=False)

    def step_of(self, given: str) -> int | None:
        """Return the time step of a given code, or None if it is not currently valid."""
        now, totp, code = int(time.time() // STEP_S), pyotp.TOTP(self.secret), without_blanks(given).encode()
        steps = range(now - STEPS_APART, now + STEPS_APART + 1)
        # every step is compared, so that the time tells nothing
        matching = [step for step in steps if hmac.compare_digest(totp.at(step * STEP_S).encode(), code)]
        return max(matching, default=None)


def looks_like_totp(given: str) -> bool:
    """Return whether a code has the format of an authenticator app, not of a recovery code."""
    return _TOTP_CODE.fullmatch(without_blanks(given)) is not None


def without_blanks(given: str) -> str:
    """Return a code without separators, in upper case, for comparison."""
    return re.sub(r"[\s-]", "", given).upper()


def new_recovery_codes() -> list[str]:
    """Return recovery codes, each in four groups of four letters or digits."""
    return [
        "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(4))
        for _ in range(RECOVERY_CODES)
    ]


def recovery_hash(name: str, code: str) -> str:
    """Return the stored hash of an account's recovery code."""
    return hashlib.sha256(f"{name}\0{without_blanks(code)}".encode()).hexdigest()


OWNER = "owner"
"""The name under which the server's own password signs in."""

NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}")

_ASSISTANT = frozenset({"see", "run", "note", "flag", "pilot"})
PERMISSIONS: Mapping[Role, frozenset[str]] = {
    "owner": _ASSISTANT
    | {"audit", "close", "download", "end", "exclude", "rate", "reconcile", "upload", "withdraw"},
    "assistant": _ASSISTANT,
    "rater": frozenset({"rate"}),
}
"""Permissions of each role. ``see`` is for the session pages; a rater may only ``rate``."""


@dataclass(frozen=True)
class Account:
    """A user who may sign in."""

    name: str
    role: Role
    password_hash: str = field(repr=False)
    second_factor: SecondFactor | None = None

    def may(self, permission: str) -> bool:
        """Return whether the account's role has one of the :data:`PERMISSIONS`."""
        return permission in PERMISSIONS[self.role]

    def stamp(self) -> str:
        """Return a digest for stored sign-ins that changes with password, role and second factor, and reveals none of them."""
        secret = "" if self.second_factor is None else self.second_factor.secret
        text = "\0".join(("account", self.name, self.role, self.password_hash, secret))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Accounts:
    """The accounts of a server: its owner's, and those currently in ``config.toml``."""

    def __init__(self, owner: Account) -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._known: tuple[dict[str, Account], SecondFactor | None] = ({}, None)

    def find(self, name: str) -> Account | None:
        """Return an account by its name, or None."""
        known, second_factor = self._kept()
        return replace(self._owner, second_factor=second_factor) if name == OWNER else known.get(name)

    def accepts(self, name: str, password: str) -> Account | None:
        """Return the account with this name and password, or None; an unknown name takes as long as a wrong password."""
        account = self.find(name)
        is_right = is_password(password, (account or self._owner).password_hash)
        return account if is_right else None

    def _kept(self) -> tuple[dict[str, Account], SecondFactor | None]:
        """Return the accounts and the owner's second factor currently in ``config.toml``."""
        try:
            there = config_file().stat()
        except FileNotFoundError:
            return {}, None
        seen = (there.st_mtime_ns, there.st_ino, there.st_size)
        with self._lock:
            if seen != self._seen:
                config = read_config()
                self._known = (
                    {account.name: account for account in read_accounts(config)},
                    owners_second_factor(config),
                )
                self._seen = seen
            return self._known


def is_password(password: str, password_hash: str) -> bool:
    """Return whether a password matches an Argon2 hash."""
    try:
        return PasswordHasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def read_accounts(config: Mapping[str, Any]) -> list[Account]:
    """Return the accounts of a configuration, by name."""
    accounts = []
    for name, settings in sorted(config.get("accounts", {}).items()):
        role = settings.get("role") if isinstance(settings, Mapping) else None
        if role not in ROLES or not isinstance(settings.get("password_hash"), str):
            raise UserError(
                f"the account {name!r} in config.toml is not complete",
                mend=f"Remove it and run: wrods user add {name} --role {'|'.join(ROLES)}",
            )
        accounts.append(Account(name, role, settings["password_hash"], _second_factor(settings)))
    return accounts


def owners_second_factor(config: Mapping[str, Any]) -> SecondFactor | None:
    """Return the second factor of the server's own account."""
    return _second_factor(config.get("serve", {}))


def _second_factor(settings: Mapping[str, Any]) -> SecondFactor | None:
    secret = settings.get("totp_secret")
    return None if secret is None else SecondFactor(str(secret), tuple(settings.get("recovery_codes", ())))


def add_account(name: str, role: str, password: str) -> Account:
    """Add an account to the user's ``config.toml``, and return it."""
    if not NAME.fullmatch(name) or name == OWNER:
        rule = "it is the server's own account" if name == OWNER else "a name has small letters and digits"
        raise UserError(f"an account cannot be called {name!r}: {rule}", mend="Choose a name such as `mara`.")
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)
    with _accounts_of() as accounts:
        if name in accounts:
            raise UserError(
                f"there is an account {name!r} already",
                mend=f"Change its password with: wrods user password {name}",
            )
        accounts[name] = tomlkit.item({"role": role, "password_hash": hashed(password)})
        return Account(name, role, str(accounts[name]["password_hash"]))


def change_password(name: str, password: str) -> None:
    """Change an account's password, which signs it out everywhere."""
    with _accounts_of() as accounts:
        _known(accounts, name)["password_hash"] = hashed(password)


def remove_account(name: str) -> None:
    """Remove an account, which signs it out everywhere."""
    with _accounts_of() as accounts:
        _known(accounts, name)
        del accounts[name]


def set_second_factor(name: str, factor: SecondFactor | None) -> None:
    """Set or, with None, remove an account's second factor; either signs it out everywhere."""
    with _settings_of(name) as settings:
        for key in ("totp_secret", "recovery_codes"):
            settings.pop(key, None)
        if factor is not None:
            settings["totp_secret"] = factor.secret
            settings["recovery_codes"] = list(factor.recovery_hashes)


def use_recovery_code(name: str, code: str) -> bool:
    """Return whether a recovery code is one of an account's, and remove it: each works once."""
    given = recovery_hash(name, code)
    with _settings_of(name) as settings:
        known = list(settings.get("recovery_codes", ()))
        if given not in known:
            return False
        settings["recovery_codes"] = [code_hash for code_hash in known if code_hash != given]
    return True


def hashed(password: str) -> str:
    """Return the Argon2 hash of a new password."""
    require_length(password)
    return PasswordHasher().hash(password)


def _known(accounts: Any, name: str) -> Any:
    if name not in accounts:
        raise unknown_name("account", name, list(accounts))
    return accounts[name]


@contextmanager
def _accounts_of() -> Iterator[Any]:
    """Open the table ``[accounts]`` for a change."""
    with _changing() as document:
        yield document.setdefault("accounts", tomlkit.table(is_super_table=True))


@contextmanager
def _settings_of(name: str) -> Iterator[Any]:
    """Open an account's table for a change; the server's own account has ``[serve]``."""
    with _changing() as document:
        if name == OWNER:
            yield document.setdefault("serve", tomlkit.table())
        else:
            yield _known(document.get("accounts", {}), name)


@contextmanager
def _changing() -> Iterator[Any]:
    """Open ``config.toml`` for a change that leaves the rest of the file byte for byte."""
    path = config_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(path.with_name(path.name + ".lock")):
        read_config(path)
        document = tomlkit.parse(path.read_text("utf-8") if path.exists() else "")
        yield document
        replace_file(path, tomlkit.dumps(document), is_private=True)


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
        query = select(sign_ins).filter_by(token_hash=token_hash(token), kind=kind).where(~_is_over(now))
        with self._store.read() as connection:
            row = connection.execute(query).first()
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
        mine = delete(sign_ins).filter_by(token_hash=token_hash(token), kind=kind)
        taken = mine.where(~_is_over(now)).returning(*sign_ins.c)
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
        whole = [] if browser is not None else [(self._codes, Caller(name))]
        return self._counted([self._count_of(f"code\0{name}", address, browser), *whole], compare)

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


def failures(connection: Connection, study: str) -> Failures:
    """Return the failed sign-ins of the last week from a study's audit."""
    since = stamp(datetime.now(UTC) - SHOWN_FOR)
    query = select(audit.c.at, audit.c.detail).filter_by(study=study, action=FAILED)
    rows = connection.execute(query.where(audit.c.at >= since).order_by(audit.c.audit_id)).all()
    tries = sum(int((row.detail or {}).get("tries", 1)) for row in rows)
    return Failures(tries, rows[-1].at if rows else None)
