"""Accounts that may sign in: those in the user's ``config.toml``, and the owner's, with the server's password.

Passwords are stored as Argon2 hashes. Each sign-in is stored with a *stamp* of its account; changing the password, role or
second factor, or removing the account, ends its sign-ins everywhere.

The second factor is a code from an authenticator app (TOTP, RFC 6238) or a recovery code for a lost phone. A recovery code has
80 random bits, so a plain digest is safe to store; each works once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyotp
import tomlkit
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from filelock import FileLock

from experiment.configuration import config_file, read_config
from experiment.option_choices import ROLES, Role
from experiment.people.service import require_length
from stimuli.errors import UserError, unknown_name
from stimuli.files import replace_file

STEP_S = 30
STEPS_APART = 1
"""Number of earlier and later time steps whose code is accepted: clocks differ, and typing takes time."""
RECOVERY_CODES = 8
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_TOTP_CODE = re.compile(r"\d{6}")


@dataclass(frozen=True)
class SecondFactor:
    """The stored second factor of an account."""

    secret: str = field(repr=False)
    recovery_hashes: tuple[str, ...] = field(default=(), repr=False)

    def step_of(self, given: str) -> int | None:
        """Return the time step of a given code, or None if it is not currently valid."""
        now = int(time.time() // STEP_S)
        totp = pyotp.TOTP(self.secret)
        matching_step = None
        for step in range(now - STEPS_APART, now + STEPS_APART + 1):
            if hmac.compare_digest(totp.at(step * STEP_S).encode(), without_blanks(given).encode()):
                matching_step = step
        return matching_step


def looks_like_totp(given: str) -> bool:
    """Return whether a code has the format of an authenticator app, not of a recovery code."""
    return _TOTP_CODE.fullmatch(without_blanks(given)) is not None


def without_blanks(given: str) -> str:
    """Return a code without separators, in upper case, for comparison."""
    return re.sub(r"[\s-]", "", given).upper()


def new_secret() -> str:
    """Return a new secret for an authenticator app."""
    return pyotp.random_base32()


def app_address(name: str, secret: str) -> str:
    """Return the ``otpauth://`` address that an authenticator app reads."""
    return pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name="wrods")


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
