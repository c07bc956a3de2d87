"""What is known of the platforms that send participants: their link parameters, returns, exports and rules, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from stimuli.errors import unknown_name

IN_PERSON = "lab"


@dataclass(frozen=True)
class CheckRule:
    """How many failed instructed-response checks a platform accepts as a reason to reject."""

    long_from_minutes: float
    failed_in_long: int
    failed_in_short: int

    def needed(self, minutes: float) -> int:
        """Return how many checks must have failed in a study of so many minutes."""
        return self.failed_in_long if minutes >= self.long_from_minutes else self.failed_in_short


@dataclass(frozen=True)
class Signing:
    """How the links of a platform are signed."""

    by: Literal["token", "key"]
    parameters: tuple[str, ...]
    identity: str
    signs: tuple[str, ...] = ()
    claim: str | None = None
    keys: str = ""


@dataclass(frozen=True)
class Platform:
    """One recruitment platform."""

    key: str
    name: str
    source: str
    identity: str | None
    submission: str | None
    parameters: tuple[str, ...]
    link: str
    form: str | None
    example: str | None
    template_marks: tuple[str, ...]
    preview: Mapping[str, str]
    codes: tuple[str, ...]
    settings: tuple[str, ...]
    return_url: str | None
    returns_by_itself: bool
    code_when_missing: Mapping[str, str]
    export: Mapping[str, tuple[str, ...]] | None
    ignored_columns: tuple[str, ...]
    statuses: Mapping[str, str]
    checks: CheckRule | None
    sandbox: Mapping[str, str]
    signing: Signing | None
    code_when_held: str | None

    def has_form(self, external_id: str) -> bool:
        """Return whether an id can be one of the platform's."""
        return self.form is None or re.fullmatch(self.form, external_id) is not None


@cache
def platforms() -> Mapping[str, Platform]:
    """Return every known platform by its name in ``study.yaml``."""
    text = resources.files(__package__).joinpath("platforms.json").read_text("utf-8")
    return {key: _platform(key, given) for key, given in json.loads(text)["platforms"].items()}


def _platform(key: str, given: Mapping[str, Any]) -> Platform:
    lists = ("parameters", "template_marks", "codes", "settings", "ignored_columns")
    export, signing = given["export"], given.get("signing")
    return Platform(
        **{
            "sandbox": {},
            "form": None,
            "example": None,
            "code_when_held": None,
            **given,
            "key": key,
            **{name: tuple(given[name]) for name in lists},
            "export": None if export is None else {name: tuple(columns) for name, columns in export.items()},
            "signing": None if signing is None else _signing(signing),
            "checks": None if given["checks"] is None else CheckRule(**given["checks"]),
        }
    )


def _signing(given: Mapping[str, Any]) -> Signing:
    return Signing(**{**given, **{name: tuple(given.get(name, ())) for name in ("parameters", "signs")}})


def platform_for(recruit: str) -> Platform | None:
    """Return the platform that ``participants.recruit`` names, None for a laboratory."""
    if recruit == IN_PERSON:
        return None
    known = platforms()
    if recruit not in known:
        raise unknown_name("recruitment platform", recruit, (*known, IN_PERSON))
    return known[recruit]
