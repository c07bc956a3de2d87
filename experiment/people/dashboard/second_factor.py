"""The second factor of an account: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for a lost phone.

A recovery code has 80 random bits, so a plain digest of it is safe to keep; each works once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass, field

import pyotp

STEP_S = 30
STEPS_APART = 1
"""A code of the step before or after counts too: clocks differ, and typing takes time."""
RECOVERY_CODES = 8
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_TOTP_CODE = re.compile(r"\d{6}")


@dataclass(frozen=True)
class SecondFactor:
    """What is kept of an account's second factor."""

    secret: str = field(repr=False)
    recovery_hashes: tuple[str, ...] = field(default=(), repr=False)

    def step_of(self, given: str, moment: float | None = None) -> int | None:
        """Return the time step whose code was given, None where it is none of those that count now."""
        now = int((time.time() if moment is None else moment) // STEP_S)
        totp = pyotp.TOTP(self.secret)
        found = None
        for step in range(now - STEPS_APART, now + STEPS_APART + 1):
            if hmac.compare_digest(totp.at(step * STEP_S).encode(), without_blanks(given).encode()):
                found = step
        return found


def looks_like_totp(given: str) -> bool:
    """Return whether a code has the form of an authenticator app's, not of a recovery code."""
    return _TOTP_CODE.fullmatch(without_blanks(given)) is not None


def without_blanks(given: str) -> str:
    """Return a code as it is compared: people type it in groups."""
    return re.sub(r"[\s-]", "", given).upper()


def new_secret() -> str:
    """Return a secret for an authenticator app."""
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
    """Return what is kept of an account's recovery code."""
    return hashlib.sha256(f"{name}\0{without_blanks(code)}".encode()).hexdigest()
