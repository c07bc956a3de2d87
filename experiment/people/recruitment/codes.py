"""Recruitment settings in the user's ``config.toml``: completion codes, credit address, reward.

They are under ``[recruitment.<study>]`` and never in a study: a person who read the study could otherwise be paid without
taking part.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from experiment.study.study import session_rules
from stimuli.errors import UserError, did_you_mean, unknown_name

IN_PERSON = "lab"


@dataclass(frozen=True)
class CheckRule:
    """Number of failed instructed-response checks that a platform accepts as a reason to reject."""

    long_from_minutes: float
    failed_in_long: int
    failed_in_short: int

    def needed(self, minutes: float) -> int:
        """Return how many checks must have failed in a study of this duration."""
        return self.failed_in_long if minutes >= self.long_from_minutes else self.failed_in_short


@dataclass(frozen=True)
class Signing:
    """The signature of a platform's links."""

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
        """Return whether an id has the platform's format."""
        return self.form is None or re.fullmatch(self.form, external_id) is not None


@cache
def platforms() -> Mapping[str, Platform]:
    """Return all known platforms by their name in ``study.yaml``."""
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


Outcome = Literal["complete", "no_consent", "screened_out", "failed_checks"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
OUTCOME_OF_STATE: Mapping[str, Outcome] = {
    "finished": "complete",
    "declined": "no_consent",
    "screened_out": "screened_out",
    "failed_practice": "screened_out",
    "failed_comprehension": "screened_out",
    "failed_checks": "failed_checks",
    "stopped": "no_consent",
}
SETTINGS = (*OUTCOMES, "credit_url", "reward", "minutes", "key_set", "link_key")
DEVICE = "device: "
"""Prefix of the reason of a session that ended because the browser reported an unsuitable device."""
EACH = "per participant"
"""Instead of one code: each participant gets a random code, which `wrods reconcile` compares."""
MAY_DIFFER: tuple[Outcome, ...] = ("complete", "failed_checks")
SHORTEST_LINK_KEY = 24
MEANING: Mapping[str, str] = {
    "complete": "the code of those who finish",
    "no_consent": "the code of those who do not consent",
    "screened_out": "the code of those who are not eligible",
    "failed_checks": "the code of those who failed the attention checks",
    "credit_url": "SONA: Study Information, Client-Side Completion URL",
}
CODE = re.compile(r"[A-Za-z0-9_-]{2,64}")


@dataclass(frozen=True)
class Reward:
    """A participant's pay."""

    amount: Decimal
    currency: str

    def __str__(self) -> str:
        return f"{self.amount:.2f} {self.currency}"


@dataclass(frozen=True)
class Recruitment:
    """Recruitment settings of one study."""

    study: str
    platform: Platform | None = None
    codes: Mapping[Outcome, str] = field(default_factory=dict)
    own_codes: frozenset[Outcome] = frozenset()
    needs_signature: bool = False
    key_set: str | None = None
    link_key: str | None = field(default=None, repr=False)
    credit_url: str | None = None
    reward: Reward | None = None
    minutes: float | None = None
    wanted: int | None = None
    overbook: int = 0
    failed_checks_at: int | None = None
    keep_ip_address: bool = False
    keep_user_agent: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Settings that the platform needs and the user's config lacks."""
        if self.platform is None:
            return ()
        codes = [name for name in self.platform.codes if name not in {*self.codes, *self.own_codes}]
        return (*codes, *(name for name in self.platform.settings if getattr(self, name) is None))


def recruitment_for(study: Any, config: Mapping[str, Any]) -> Recruitment:
    """Return a study's recruitment from its settings and the user's config."""
    given = config.get("recruitment", {}).get(study.id, {})
    if not isinstance(given, Mapping):
        raise UserError(
            f"[recruitment.{study.id}] is not a table", mend="Write one line `name = value` each."
        )
    where = f"config.toml, [recruitment.{study.id}]"
    for name in given:
        if name not in SETTINGS:
            raise UserError(
                f"{where}: {name!r} is not a setting",
                mend=f"{did_you_mean(str(name), SETTINGS)}Known: {', '.join(SETTINGS)}.",
            )
    privacy = study.get("participants", "privacy", default={})
    platform = platform_for(str(study.get("participants", "recruit", default=IN_PERSON)))
    if platform is not None and platform.key != "link" and study.get("participants", "completion_code"):
        raise UserError(
            f"{study.place('participants', 'completion_code')}: with recruit: {platform.key} codes do not belong in the study, "
            "where anyone who reads it could be paid without taking part",
            mend=f"Take it out{_instead(study.id, platform)}.",
        )
    return Recruitment(
        study=study.id,
        platform=platform,
        codes=_codes({name: code for name, code in given.items() if code != EACH}, where),
        own_codes=_own_codes(given, where),
        needs_signature=_needs_signature(study, platform),
        **(
            {"link_key": derived_link_key(study.id, config)}
            | {name: check(given[name], where) for name, check in _CHECKS.items() if name in given}
        ),
        wanted=study.get("participants", "wanted"),
        overbook=int(study.get("participants", "overbook", default=0)),
        failed_checks_at=_declared_limit(session_rules(study)),
        keep_ip_address=bool(privacy.get("keep_ip_address", False)),
        keep_user_agent=bool(privacy.get("keep_user_agent", False)),
    )


def _instead(study: str, platform: Platform) -> str:
    if not platform.codes:
        return f"; {platform.name} needs none of the study's"
    return f', and write {platform.codes[0]} = "…" under [recruitment.{study}] in your config.toml'


def _declared_limit(rules: Mapping[str, float]) -> int | None:
    """Return the number of failed checks from which the study excludes a session: ``2 or more``, or above a bound."""
    above = rules.get("attention_checks_failed")
    return None if above is None else math.floor(above) + 1


def _codes(given: Mapping[str, Any], where: str) -> dict[Outcome, str]:
    codes: dict[Outcome, str] = {}
    for name in OUTCOMES:
        if name not in given:
            continue
        code = str(given[name])
        if not CODE.fullmatch(code):
            raise UserError(
                f"{where}: {name} is {code!r}; a code has 2 to 64 letters and digits",
                mend="Copy the code alone, not the address that holds it.",
            )
        codes[name] = code
    twice = sorted({code for code in codes.values() if list(codes.values()).count(code) > 1})
    if twice:
        same = " and ".join(name for name, code in codes.items() if code == twice[0])
        raise UserError(
            f"{where}: {same} have the same code {twice[0]}; outcomes could not be told apart",
            mend="Make a code for each outcome on the platform.",
        )
    return codes


def _own_codes(given: Mapping[str, Any], where: str) -> frozenset[Outcome]:
    individual = [name for name in OUTCOMES if given.get(name) == EACH]
    wrong = [name for name in individual if name not in MAY_DIFFER]
    if wrong:
        raise UserError(
            f"{where}: {wrong[0]} is {EACH!r}; only {' and '.join(MAY_DIFFER)} can differ between participants",
            mend="Give one code for everybody, or leave it out.",
        )
    return frozenset(individual)


def _needs_signature(study: Any, platform: Platform | None) -> bool:
    if study.get("participants", "signed_links") is None:
        return False
    if platform is None or platform.signing is None:
        signing = [platform.key for platform in platforms().values() if platform.signing is not None]
        raise UserError(
            f"{study.place('participants', 'signed_links')}: nobody signs the links of a study with "
            f"recruit: {IN_PERSON if platform is None else platform.key}",
            mend=f"Leave signed_links out, or recruit by {' or '.join(signing)}.",
        )
    return True


def _key_set(given: object, where: str) -> str:
    parts = urlsplit(str(given))
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise UserError(
            f"{where}: key_set is {str(given)!r}; keys come by https, or from a file",
            mend="Write an https address, or the path of a file with the keys.",
        )
    return str(given)


def _link_key(given: object, where: str) -> str:
    if not isinstance(given, str) or len(given) < SHORTEST_LINK_KEY:
        raise UserError(
            f"{where}: link_key must be a text of at least {SHORTEST_LINK_KEY} characters",
            mend=f'Write link_key = "{secrets.token_hex(16)}", for example.',
        )
    return given


def derived_link_key(study: str, config: Mapping[str, Any]) -> str | None:
    """Return a key for a study's own links derived from the server's persistent signing key, None without one."""
    secret = os.environ.get("WRODS_SECRET") or config.get("serve", {}).get("secret")
    if not secret:
        return None
    return hmac.digest(str(secret).encode(), f"signed links\0{study}".encode(), "sha256").hex()


def _credit_url(given: object, where: str) -> str:
    parts = urlsplit(str(given).strip())
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "survey_code"]
    names = {name for name, _ in query}
    if parts.scheme != "https" or not parts.netloc or not {"experiment_id", "credit_token"} <= names:
        raise UserError(
            f"{where}: credit_url is {str(given)!r}; it is https and holds experiment_id and credit_token",
            mend="Copy SONA's Client-Side Completion URL from the study's information page.",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))


def read_reward(text: str, where: str = "the reward") -> Reward:
    """Return a reward such as ``2.50 GBP``."""
    amount, _, currency = text.strip().partition(" ")
    try:
        value = Decimal(amount)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0 or not re.fullmatch(r"[A-Z]{3}", currency.strip()):
        raise UserError(
            f"{where}: {text!r} is no reward", mend="Write amount and currency, such as 2.50 GBP."
        )
    return Reward(value, currency.strip())


def _minutes(given: object, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:
        raise UserError(f"{where}: minutes is {given!r}; it is a positive number", mend="Write minutes = 12.")
    return float(given)


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "key_set": _key_set, "link_key": _link_key, "credit_url": _credit_url, "minutes": _minutes,
    "reward": lambda given, where: read_reward(str(given), where),
}  # fmt: skip


def lines_to_add(recruitment: Recruitment) -> list[str]:
    """Return the lines that the user's ``config.toml`` lacks."""
    if not recruitment.missing:
        return []
    example = "https://SCHOOL.sona-systems.com/webstudy_credit.aspx?experiment_id=123&credit_token=…"
    rows = [
        f'{name} = "{example if name == "credit_url" else "…"}"   # {MEANING[name]}'
        for name in recruitment.missing
    ]
    key = (
        recruitment.study if re.fullmatch(r"[A-Za-z0-9_-]+", recruitment.study) else f'"{recruitment.study}"'
    )
    has_table = recruitment.codes or recruitment.credit_url or recruitment.reward or recruitment.minutes
    return [f"[recruitment.{key}]" + ("   # is there already" if has_table else ""), *rows]


def code_of(recruitment: Recruitment, outcome: Outcome) -> str | None:
    """Return the common code for an outcome; None if each participant gets a separate code, or none."""
    given = recruitment.codes.get(outcome)
    if given is not None or recruitment.platform is None or outcome in recruitment.own_codes:
        return given
    if outcome == "failed_checks":
        return code_of(recruitment, "complete")
    return recruitment.platform.code_when_missing.get(outcome)


def code_of_session(recruitment: Recruitment, session: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Return the code of a session that is not held; none for an unsuitable device, which only the browser reports."""
    if str(session.get("ended_reason") or "").startswith(DEVICE):
        return None
    return session.get("completion_code") or code_of(recruitment, outcome)


def missing_lines(recruitment: Recruitment, config: Path) -> Iterator[str]:
    """Yield lines that name the missing codes, the consequences, and what to add where."""
    if recruitment.platform is None:
        return
    lacking = lines_to_add(recruitment)
    if not lacking:
        return
    names = ", ".join(recruitment.missing)
    yield f"{recruitment.study}: for {recruitment.platform.name}, your config lacks {names}."
    yield from (f"  {consequence}" for consequence in _consequences(recruitment))
    yield f"  Add to {config}:"
    yield from (f"    {line}" for line in lacking)


def _consequences(recruitment: Recruitment) -> Iterator[str]:
    platform, missing = recruitment.platform, recruitment.missing
    assert platform is not None
    if "complete" in missing:
        instead = platform.code_when_missing.get("complete")
        yield (
            f"Without it, participants who finish return with {instead} and must be reviewed manually."
            if instead
            else "Without it, each participant who finishes gets a different code, which `wrods reconcile` compares."
        )
    if "credit_url" in missing:
        yield "Without it, credit must be granted manually."
    early = [name for name in missing if name in ("no_consent", "screened_out")]
    if early:
        yield "Without a code, participants who end early are asked to return their place."
    if "failed_checks" in missing:
        yield "Without failed_checks, participants who failed attention checks return with the code for complete."
