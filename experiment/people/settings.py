"""What the server needs to know beside the studies: password, signing key, addresses; never from a study."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from stimuli.errors import UserError


@dataclass(frozen=True)
class PeopleSettings:
    """Settings of one server."""

    password_hash: str = field(repr=False)
    secret: bytes = field(repr=False)
    public_url: str | None = None
    entries_per_minute: int = 60
    hosts: tuple[str, ...] = ()
    patience_s: float = 15.0

    def accepts(self, password: str) -> bool:
        """Say whether a password is the right one."""
        try:
            return PasswordHasher().verify(self.password_hash, password)
        except (VerificationError, InvalidHashError):
            return False


SHORTEST_PASSWORD = 10


def require_length(password: str, name: str = "the password") -> None:
    """Refuse a password that is soon guessed."""
    if len(password) < SHORTEST_PASSWORD:
        raise UserError(
            f"{name} is too short", mend=f"Take at least {SHORTEST_PASSWORD} characters, such as four words."
        )


def read_settings(
    config: Mapping[str, Any], *, public_url: str | None = None
) -> tuple[PeopleSettings, str | None]:
    """Put settings together from the environment and the user's configuration.

    The password is ``WRODS_PASSWORD``, or ``password`` or ``password_hash`` (Argon2) under ``[serve]``; the signing
    key is ``WRODS_SECRET`` or ``secret`` there, else a new one each start; ``entries_per_minute`` and ``hosts`` are there too.
    """
    serve: Mapping[str, Any] = config.get("serve", {})
    password = os.environ.get("WRODS_PASSWORD") or serve.get("password")
    if password:
        require_length(str(password), "the owner's password (WRODS_PASSWORD, or password under [serve])")
    known_hash = None if password else serve.get("password_hash")
    made = None
    if not password and not known_hash:
        made = password = "-".join(secrets.token_hex(2) for _ in range(4))
    secret = os.environ.get("WRODS_SECRET") or serve.get("secret")
    if secret is not None and len(str(secret)) < 16:
        raise UserError(
            "the signing key (WRODS_SECRET or secret under [serve]) is too short",
            mend="Give at least 16 characters, or leave it out.",
        )
    key = str(secret).encode() if secret else secrets.token_bytes(32)
    # the same password under the same key has the same hash, so that a restart signs nobody out
    salt = hmac.digest(key, b"owner's password", "sha256")[:16]
    settings = PeopleSettings(
        password_hash=str(known_hash) if known_hash else PasswordHasher().hash(str(password), salt=salt),
        secret=key,
        public_url=None if public_url is None else public_url.rstrip("/"),
        entries_per_minute=_entries_per_minute(serve),
        hosts=_hosts(serve),
    )
    return settings, made


def _entries_per_minute(serve: Mapping[str, Any]) -> int:
    """Return how many sessions one address may begin: a whole university may share one."""
    given = serve.get("entries_per_minute", PeopleSettings.entries_per_minute)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UserError(
            f"entries_per_minute under [serve] is {given!r}", mend="Give a whole number, such as 300."
        )
    return given


def _hosts(serve: Mapping[str, Any]) -> tuple[str, ...]:
    given = serve.get("hosts", [])
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        raise UserError(
            f"hosts under [serve] is {given!r}", mend='Give a list of names, such as ["lab.example.edu"].'
        )
    return tuple(given)
