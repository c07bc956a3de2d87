"""A study as the pages need it, independent of its file and items; and the server's settings."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from argon2 import PasswordHasher

from experiment.languages import Pack
from experiment.people.recruitment.codes import Recruitment, recruitment_for
from experiment.rating.answers import Rating, rating_for
from experiment.store import Store
from experiment.store.records import Verdict
from experiment.study import Study
from experiment.study.plans import session_rules
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


SHORTEST_PASSWORD = 10


def require_length(password: str, name: str = "the password") -> None:
    """Raise an error for a password that is too short."""
    if len(password) < SHORTEST_PASSWORD:
        raise UserError(
            f"{name} is too short", mend=f"Take at least {SHORTEST_PASSWORD} characters, such as four words."
        )


def read_settings(
    config: Mapping[str, Any], *, public_url: str | None = None
) -> tuple[PeopleSettings, str | None]:
    """Return settings from the environment and the user's configuration, and the generated password if there was none.

    The password is ``WRODS_PASSWORD``, or ``password`` or ``password_hash`` (Argon2) under ``[serve]``; the signing key is
    ``WRODS_SECRET`` or ``secret`` there, else a new one each start; ``entries_per_minute`` and ``hosts`` are there too.
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
    # a whole university may share one address
    entries, hosts = (
        serve.get("entries_per_minute", PeopleSettings.entries_per_minute),
        serve.get("hosts", []),
    )
    if isinstance(entries, bool) or not isinstance(entries, int) or entries < 1:
        raise UserError(
            f"entries_per_minute under [serve] is {entries!r}", mend="Give a whole number, such as 300."
        )
    if not isinstance(hosts, list) or not all(isinstance(name, str) and name for name in hosts):
        raise UserError(
            f"hosts under [serve] is {hosts!r}", mend='Give a list of names, such as ["lab.example.edu"].'
        )
    key = str(secret).encode() if secret else secrets.token_bytes(32)
    # the same password under the same key has the same hash, so that a restart signs nobody out
    salt = hmac.digest(key, b"owner's password", "sha256")[:16]
    settings = PeopleSettings(
        password_hash=str(known_hash) if known_hash else PasswordHasher().hash(str(password), salt=salt),
        secret=key,
        public_url=None if public_url is None else public_url.rstrip("/"),
        entries_per_minute=entries,
        hosts=tuple(hosts),
    )
    return settings, made


Plan = dict[str, Any]


def present() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class ScoreTrial(Protocol):
    """Scores a response to a planned trial (``experiment.scoring.trial.score_trial``)."""

    def __call__(  # noqa: D102
        self, trial: Mapping[str, Any], response_raw: str | None, *, timed_out: bool = False
    ) -> Verdict: ...


@dataclass(frozen=True)
class StudyService:
    """One study as it is served."""

    study: str
    title: str
    shown_title: str
    language: str
    pack: Pack
    seed: int
    store: Store
    version: int
    design_hash: str
    list_ids: tuple[int, ...]
    plan_session: Callable[[int, str, int], Plan]
    participant_view: Callable[[Plan], Plan]
    score: ScoreTrial
    factors: tuple[str, ...] = ()
    is_pilot: bool = False
    ask_participant: bool = False
    completion_code: str | None = None
    recruitment: Recruitment | None = None
    left_within: timedelta | None = None
    finish_wait_ms: int = 60_000
    number_pattern: str | None = None
    folder: Path | None = None
    session_rules: Mapping[str, float] = field(default_factory=dict)
    session_rules_said: Mapping[str, str] = field(default_factory=dict)
    rating: Rating | None = None
    clock: Callable[[], datetime] = present

    def screens(self, plan: Plan | None = None) -> dict[str, Mapping[str, Any]]:
        """Return the screens of a plan by kind, as a participant sees them; without one, of a session of the first list."""
        plan = plan or self.plan_session(self.list_ids[0], "", 0)
        return {screen["kind"]: screen for screen in self.participant_view(plan)["screens"]}


def service_for(
    study: Study,
    store: Store,
    *,
    is_pilot: bool = False,
    new_version: bool = False,
    config: Mapping[str, Any] | None = None,
) -> StudyService:
    """Return a study with its store, recording its design as a version; recruitment codes come from the user's config."""
    from experiment.integrity.build_provenance import note_design, require_current_items
    from experiment.integrity.freezing import refuse_if_changed
    from experiment.lists import list_ids
    from experiment.procedure import participant_view, plan_session
    from experiment.scoring.trial import score_trial
    from experiment.study.durations import milliseconds

    pack = study.pack
    require_current_items(study, store)
    refuse_if_changed(study)
    items = study.items
    version = store.write(lambda connection: note_design(connection, study, new_version=new_version)).result()
    lists = tuple(list_ids(study, items))
    # one-time draws of plans (words of a vocabulary test …) take seconds; no participant should wait for them
    plan_session(study, items, list_id=lists[0], session_key="", order_row=0, version=version)
    code = study.get("participants", "completion_code")
    within = study.get("participants", "if_interrupted", "within")
    number = study.get("participants", "number")
    return StudyService(
        study=study.id,
        title=study.title,
        shown_title=study.shown_title,
        language=study.language,
        pack=pack,
        seed=study.seed,
        store=store,
        version=version,
        design_hash=study.design_hash,
        list_ids=lists,
        plan_session=lambda list_id, session_key, order_row: plan_session(
            study, items, list_id=list_id, session_key=session_key, order_row=order_row, version=version
        ),
        participant_view=participant_view,
        score=score_trial,
        factors=tuple(study.factors),
        is_pilot=is_pilot,
        ask_participant=study.get("participants", "recruit", default="lab") == "lab",
        completion_code=None if code is None else str(code),
        recruitment=recruitment_for(study, config or {}),
        left_within=None if within is None else timedelta(milliseconds=milliseconds(within)),
        finish_wait_ms=milliseconds(study.get("participants", "finish_wait", default="60 s")),
        number_pattern=None if number is None else str(number),
        folder=study.folder,
        session_rules=session_rules(study),
        session_rules_said=study.get("analysis", "exclude", "sessions", default={}),
        rating=rating_for(study),
    )
