"""Lab settings of a server: stations, participant numbers in the study's pattern, and the experimenter's PIN."""

from __future__ import annotations

import hmac
import re
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask, current_app, request

from experiment.people.dashboard.sign_ins import FREE_TRIES_OF_NETWORK, FailedTries, TooManyTries, caller
from experiment.people.response_intake import Problem
from experiment.people.service import StudyService
from stimuli.audit.findings import counted
from stimuli.errors import UserError


def typed_number(service: StudyService, typed: str | None) -> str | None:
    """Return a participant's typed number in the study's format; None if the study assigns numbers itself."""
    if service.ask_participant:
        if typed is None:
            text = service.pack.texts["participant_missing"]
            raise Problem(400, text, rule="sessions in a laboratory have a typed number", state="number")
        return number_of(service, typed)
    if typed is not None:
        raise Problem(
            400,
            f"participant is {typed!r}, but numbers in this study are given by the server",
            rule="only a study with participants.recruit: lab takes participant numbers",
            mend="Leave participant out.",
        )
    return None


def number_of(service: StudyService, typed: str) -> str:
    """Return a typed number in the study's format; raise an error if it does not fit."""
    number = written(typed, service.number_pattern)
    if number is None:
        pattern = example(service.number_pattern or "#")
        text = service.pack.fill("number_pattern", example=pattern)
        raise Problem(400, text, rule=f"a number such as {pattern}", state="number")
    return number


def is_experimenter(pin: str | None) -> bool:
    """Return whether a PIN is the experimenter's; failed tries are limited like those of passwords."""
    lab = this_lab()
    if pin is None:
        return False
    by = caller(request.remote_addr)
    try:
        lab.pin_tries.begin(by)
    except TooManyTries as refusal:
        wait = int(refusal.wait_s) + 1
        raise Problem(
            429,
            "too many wrong PINs were typed here",
            rule="after ten wrong PINs each further one lengthens the wait, up to five minutes",
            mend=f"Wait {counted(wait, 'second')} and type the PIN that `wrods serve` printed.",
            retry_after_s=wait,
        ) from None
    if not lab.accepts(pin):
        return False
    lab.pin_tries.forgive(by)
    return True


def pin_needed() -> Problem:
    """Return the problem for an action that requires the experimenter's PIN."""
    rule = "continuing or ending a session takes the experimenter's PIN"
    return Problem(403, "the PIN is not right", rule=rule, state="pin")


def written(typed: str, pattern: str | None) -> str | None:
    """Return a typed number in the study's format, or None if it does not fit the pattern."""
    plain = unicodedata.normalize("NFKC", typed)
    number = "".join(letter for letter in plain if unicodedata.category(letter) not in ("Cc", "Cf")).strip()
    if pattern is None:
        return number or None
    before, marks, after = _parts(pattern)
    match = re.fullmatch(
        rf"(?:{re.escape(before)})?([0-9]{{1,{len(marks)}}})(?:{re.escape(after)})?", number, re.IGNORECASE
    )
    return None if match is None else f"{before}{match[1].zfill(len(marks))}{after}"


def example(pattern: str) -> str:
    """Return the first number of a pattern: P001 for ``P###``."""
    before, marks, after = _parts(pattern)
    return f"{before}{'1'.zfill(len(marks))}{after}"


def _parts(pattern: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"([^#]*)(#+)([^#]*)", pattern)
    if match is None:
        raise ValueError(f"{pattern!r} has no single run of #")
    return match[1], match[2], match[3]


SHORTEST_PIN = 4
MADE_DIGITS = 6


@dataclass(frozen=True)
class Lab:
    """The lab settings of one server."""

    has_stations: bool = False
    origins: tuple[str, ...] = ()
    authority: Path | None = None
    fingerprint: str | None = None
    pin: str | None = field(default=None, repr=False)
    pin_tries: FailedTries = field(default_factory=lambda: FailedTries(FREE_TRIES_OF_NETWORK), repr=False)

    def accepts(self, pin: str | None) -> bool:
        """Return, in constant time, whether a PIN is the experimenter's."""
        return self.pin is not None and hmac.compare_digest((pin or "").encode(), self.pin.encode())


def read_pin(config: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the PIN in the user's configuration (``pin`` under ``[lab]``), or a new one, and whether it is new."""
    given = config.get("lab", {}).get("pin")
    if given is None:
        return f"{secrets.randbelow(10**MADE_DIGITS):0{MADE_DIGITS}}", True
    if not isinstance(given, str) or len(given.strip()) < SHORTEST_PIN:
        raise UserError(
            f"pin under [lab] in config.toml must be a text of at least {SHORTEST_PIN} characters",
            mend='Write it in quotes, such as pin = "4711".',
        )
    return given.strip(), False


def set_lab(app: Flask, lab: Lab) -> None:
    """Set an application's lab."""
    app.extensions["wrods_lab"] = lab


def this_lab() -> Lab:
    """Return the lab of the running application; by default one without stations."""
    lab = current_app.extensions.setdefault("wrods_lab", Lab())
    assert isinstance(lab, Lab)
    return lab
