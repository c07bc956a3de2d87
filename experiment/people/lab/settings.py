"""What a server knows of its lab: whether it has stations, where they reach it, and the experimenter's PIN."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask, current_app

from experiment.people.dashboard.sign_in_limits import FREE_TRIES_OF_NETWORK, FailedTries
from stimuli.errors import UserError

SHORTEST_PIN = 4
MADE_DIGITS = 6


@dataclass(frozen=True)
class Lab:
    """The lab side of one server."""

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
    """Return the PIN that the user's configuration sets (``pin`` under ``[lab]``), else a new one, and whether it is new."""
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
    """Tell an application of its lab."""
    app.extensions["wrods_lab"] = lab


def this_lab() -> Lab:
    """Return the lab of the running application; one without stations where none was set."""
    lab = current_app.extensions.setdefault("wrods_lab", Lab())
    assert isinstance(lab, Lab)
    return lab
