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
    """How many failed instructed-response checks a platform accepts as a reason to reject.

    Attributes
    ----------
    long_from_minutes : float
        From this length on a study counts as long.
    failed_in_long, failed_in_short : int
        Failed checks needed in a long and in a short study.
    """

    long_from_minutes: float
    failed_in_long: int
    failed_in_short: int

    def needed(self, minutes: float) -> int:
        """Return how many checks must have failed in a study of so many minutes."""
        return self.failed_in_long if minutes >= self.long_from_minutes else self.failed_in_short


@dataclass(frozen=True)
class Signing:
    """How the links of a platform are signed.

    Attributes
    ----------
    by : {"token", "key"}
        A JSON Web Token that the platform signed, or a signature with a key of the study's own.
    parameters : tuple of str
        Link parameters that hold the signature and what belongs to it.
    identity : str
        The signed parameter that names the person.
    signs : tuple of str
        The parameters that a token vouches for.
    claim : str or None
        The claim of the token that holds them.
    keys : str
        Where the platform publishes its keys.
    """

    by: Literal["token", "key"]
    parameters: tuple[str, ...]
    identity: str
    signs: tuple[str, ...] = ()
    claim: str | None = None
    keys: str = ""


@dataclass(frozen=True)
class Platform:
    """One recruitment platform.

    Attributes
    ----------
    key, name : str
        Its name in ``study.yaml`` and in prose.
    source : str
        What the people table calls it.
    identity, submission : str or None
        The link parameters that name the person, and this person's one submission.
    parameters : tuple of str
        Every parameter that a link must carry.
    link : str
        What follows a study's address on the platform, with the platform's own marks.
    form, example : str or None
        Pattern of the ids that name its people, and an id of nobody that has it.
    template_marks : tuple of str
        Signs that a mark was not replaced.
    preview : Mapping of str to str
        A parameter and the value by which the platform says that nobody has accepted yet.
    codes, settings : tuple of str
        What the user's config must give.
    return_url : str or None
        Pattern of the address at which a participant returns.
    returns_by_itself : bool
        The page may go there by itself; else the participant has a code to take along.
    code_when_missing : Mapping of str to str
        What a platform takes where the user gave no code.
    export, statuses : Mapping
        Columns of its CSV, and its words for the state of a submission.
    ignored_columns : tuple of str
        Columns that are known and not needed.
    checks : CheckRule or None
        Its rule for rejections, where it has one.
    sandbox : Mapping of str to str
        Parameter and return address of its test site.
    signing : Signing or None
        How its links are signed, where they can be.
    code_when_held : str or None
        What people enter there whose session is held for review, with ``{reference}`` for a reference to the session.
    """

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
    """Return the platform that ``participants.recruit`` names, None for a laboratory.

    Raises
    ------
    UserError
        No platform has this name.
    """
    if recruit == IN_PERSON:
        return None
    known = platforms()
    if recruit not in known:
        raise unknown_name("recruitment platform", recruit, (*known, IN_PERSON))
    return known[recruit]
