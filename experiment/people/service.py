"""A study as the pages need it, its active sessions in memory, access control, and the server's settings.

Access control comprises session tokens, passes, and rate limits. Tokens are compared in constant time and stored only as
digests; network addresses are kept in memory as keyed digests.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from argon2 import PasswordHasher
from itsdangerous import BadSignature, URLSafeTimedSerializer

from experiment.languages import Pack
from experiment.people.recruitment.codes import Recruitment, recruitment_for
from experiment.rating import Rating, rating_for
from experiment.store import Store, records
from experiment.store.chain import awaits_group
from experiment.store.erasure import asks_for_consent
from experiment.store.records import Verdict
from experiment.study import Study
from experiment.study.study import session_rules
from experiment.trials.own import plugins_of
from stimuli.errors import UserError

PassKind = Literal["pilot", "simulated", "arrival", "resume"]
PASS_AGE: Mapping[PassKind, timedelta] = {
    "pilot": timedelta(hours=12),
    "simulated": timedelta(hours=12),
    "arrival": timedelta(hours=12),
    "resume": timedelta(days=1),
}
MOST_TOKENS = 8
TIMES_DIFFER_S = 1e-9


def session_token(secret: bytes, session_id: str) -> str:
    """Return the token (256 bits) of a browser for a session.

    It is derived, so that a browser that lost the reply to its first request gets the same token again.
    """
    digest = hmac.digest(secret, b"session token\0" + session_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def token_hash(token: str) -> str:
    """Return the stored hash of a token."""
    return hashlib.sha256(token.encode("utf-8", errors="replace")).hexdigest()


def is_token(token: str, stored_hash: str | None) -> bool:
    """Return, in constant time, whether a token is one of those whose digests are stored, separated by blanks."""
    given = token_hash(token)
    return any(hmac.compare_digest(given, stored) for stored in (stored_hash or "").split())


def with_token(stored_hash: str | None, token: str) -> str:
    """Return stored digests with one more token's: a page with an earlier token can still send its answers."""
    known = (stored_hash or "").split()
    given = token_hash(token)
    return " ".join([*(digest for digest in known if digest != given), given][-MOST_TOKENS:])


@dataclass(frozen=True)
class AccessPass:
    """The contents of a valid pass."""

    kind: PassKind
    told: Mapping[str, str]


class Passes:
    """Signed passes for one study with limited validity: from experimenters, or for an arrival that was checked."""

    def __init__(self, secret: bytes) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="wrods pass")

    def make(self, study: str, kind: PassKind, **told: str) -> str:
        """Return a new pass."""
        return self._signer.dumps([study, kind, told])

    def read(self, given: str, study: str) -> AccessPass | None:
        """Return the contents of a pass; None if it is invalid, expired or of a different study."""
        try:
            (of_study, kind, contents), made = self._signer.loads(given, return_timestamp=True)
        except (BadSignature, ValueError, TypeError):
            return None
        age = datetime.now(UTC) - made
        return AccessPass(kind, contents) if of_study == study and age <= PASS_AGE[kind] else None


class Throttle:
    """Counts tries per caller and returns the time to wait.

    ``most`` tries are allowed at once, and another every ``window_s / most`` seconds. Each caller has one number, the time of
    its next allowed try, at a keyed digest of the caller's name. There are so many numbers that two callers seldom share one;
    their memory does not grow with the number of callers.
    """

    CALLERS = 65_536

    def __init__(self, most: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = window_s / most
        self._ahead_s = window_s - self._every_s
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._free_from = array("d", bytes(8 * self.CALLERS))

    def wait(self, caller: str | None, tries: int = 1) -> float:
        """Count a try (or several); return 0, or the seconds to wait if there were too many."""
        name = (caller or "").encode("utf-8", errors="replace")
        digest = hashlib.blake2b(name, digest_size=4, key=self._salt).digest()
        place = int.from_bytes(digest) % self.CALLERS
        moment = self._clock()
        # two simultaneous threads may miss one try, which no limit here depends on
        free_from = max(self._free_from[place], moment)
        wait = free_from - moment - self._ahead_s
        if wait > TIMES_DIFFER_S:
            return wait
        self._free_from[place] = free_from + tries * self._every_s
        return 0.0


MOST_TRIALS = 100_000
"""Largest number of planned trials in the cache, over all sessions: about 100 MB if each shows a sentence."""


class PlannedTrials(Mapping[int, Mapping[str, Any]]):
    """The planned trials of a session by their index, each stored as JSON until it is needed.

    As objects, those of a few hundred sessions would be millions, which Python's garbage collection would scan repeatedly while
    everyone waits.
    """

    def __init__(self, trials: Iterable[Mapping[str, Any]]) -> None:
        self._texts = {
            trial["trial_index"]: json.dumps(trial, separators=(",", ":")).encode() for trial in trials
        }

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        trial = json.loads(self._texts[index])
        assert isinstance(trial, dict)
        return trial

    def __contains__(self, index: object) -> bool:
        return index in self._texts

    def __iter__(self) -> Iterator[int]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True)
class LiveSession:
    """The parts of a session needed for answers: its planned trials, questions and criteria by screen, and tokens."""

    session_id: str
    study: str
    token_hash: str | None
    trials: Mapping[int, Mapping[str, Any]]
    questions: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    comprehension: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    feedback: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    withdraw_until: str | None = None
    agreed: threading.Event = field(default_factory=threading.Event)
    above_consent: frozenset[str] = frozenset()
    consents: tuple[str, ...] = ()
    sends_away: frozenset[str] = frozenset()
    own_types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    awaits_group: bool = False
    grouping: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def live_session(row: Mapping[str, Any]) -> LiveSession:
    """Return the cached form of a stored session with a plan."""
    plan = row["plan"]
    screens = plan["screens"]
    question_screens = [screen for screen in screens if screen["kind"] == "questions"]
    consents = [place for place, screen in enumerate(screens) if screen["kind"] == "consent"]
    above = screens[: consents[0]] if consents else screens
    live = LiveSession(
        row["session_id"],
        row["study"],
        row["token_hash"],
        PlannedTrials(trial for screen in screens for trial in screen.get("trials", ())),
        {screen["name"]: screen["questions"] for screen in question_screens},
        {
            screen["name"]: screen["comprehension"]
            for screen in question_screens
            if screen.get("comprehension")
        },
        {
            screen["block"]: screen["feedback"]
            for screen in screens
            if screen["kind"] == "block" and screen.get("feedback")
        },
        plan.get("withdraw_until"),
        above_consent=frozenset(screen["name"] for screen in above if screen["kind"] == "questions"),
        consents=tuple(screens[place]["version"] for place in consents if "version" in screens[place]),
        sends_away=frozenset(
            screen["kind"]
            for screen in screens
            if screen["kind"] == "device" or (screen["kind"] == "practice" and screen.get("pass") is not None)
        ),
        own_types=plan.get("own_types", {}),
        awaits_group=awaits_group(plan),
        grouping={
            screen["name"]: screen for screen in question_screens if {"groups", "is_answered"} & screen.keys()
        },
    )
    if row["reader_kind"] != "human" or not asks_for_consent(plan):
        live.agreed.set()
    return live


class LiveSessions:
    """The sessions of all studies served, the most recent in memory."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, LiveSession] = OrderedDict()
        self._trials = 0
        self._lock = threading.Lock()

    def find(self, store: Store, study: str, session_id: str, token: str) -> LiveSession | None:
        """Return the session that a token is for, or None."""
        with self._lock:
            known = self._known.get(session_id)
            if known is not None:
                self._known.move_to_end(session_id)
        if known is None or not is_token(token, known.token_hash):
            known = self._load(store, session_id)
        if known is None or known.study != study or not is_token(token, known.token_hash):
            return None
        return known

    def forget(self, session_id: str) -> None:
        """Remove a session that is gone."""
        with self._lock:
            self._drop(session_id)

    def _load(self, store: Store, session_id: str) -> LiveSession | None:
        with store.read() as connection:
            row = records.session(connection, session_id)
        if row is None or not row["plan"]:
            return None
        loaded = live_session(row)
        if loaded.awaits_group:  # its plan is about to change
            return loaded
        with self._lock:
            self._drop(session_id)
            self._known[session_id] = loaded
            self._trials += len(loaded.trials)
            while self._trials > MOST_TRIALS and len(self._known) > 1:
                self._drop(next(iter(self._known)))
        return loaded

    def _drop(self, session_id: str) -> None:
        dropped = self._known.pop(session_id, None)
        self._trials -= 0 if dropped is None else len(dropped.trials)


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
    entries = serve.get("entries_per_minute", PeopleSettings.entries_per_minute)
    hosts = serve.get("hosts", [])
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


class ListsOfGroup(NamedTuple):
    """The levels of a group of people, and the lists of its sessions."""

    condition: Mapping[str, str]
    lists: tuple[int, ...]


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
    plan_session: Callable[[int | None, str, int], Plan]
    participant_view: Callable[[Plan], Plan]
    score: ScoreTrial
    factors: tuple[str, ...] = ()
    groups: tuple[ListsOfGroup, ...] = ()
    is_pilot: bool = False
    ask_participant: bool = False
    completion_code: str | None = None
    recruitment: Recruitment | None = None
    left_within: timedelta | None = None
    finish_wait_ms: int = 60_000
    number_pattern: str | None = None
    folder: Path | None = None
    media: Mapping[str, Path] = field(default_factory=dict)
    session_rules: Mapping[str, float] = field(default_factory=dict)
    session_rules_said: Mapping[str, str] = field(default_factory=dict)
    rating: Rating | None = None
    plugins: Mapping[str, str] = field(default_factory=dict)
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
    from experiment.lists import list_ids, session_levels
    from experiment.media import served_files
    from experiment.procedure import participant_view, plan_session
    from experiment.scoring.trial import score_trial
    from experiment.study.groups import groups_of
    from stimuli.durations import milliseconds

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
        groups=tuple(
            ListsOfGroup(
                group["condition"],
                tuple(
                    list_id
                    for list_id in lists
                    if group["condition"].items()
                    <= session_levels(study, items, list_id)["condition"].items()
                ),
            )
            for group in groups_of(study)
        ),
        is_pilot=is_pilot,
        ask_participant=study.get("participants", "recruit", default="lab") == "lab",
        completion_code=None if code is None else str(code),
        recruitment=recruitment_for(study, config or {}),
        left_within=None if within is None else timedelta(milliseconds=milliseconds(within)),
        finish_wait_ms=milliseconds(study.get("participants", "finish_wait", default="60 s")),
        number_pattern=None if number is None else str(number),
        folder=study.folder,
        media=served_files(study.folder, items) | study.pictures_of_texts,
        session_rules=session_rules(study),
        session_rules_said=study.get("analysis", "exclude", "sessions", default={}),
        rating=rating_for(study),
        plugins=plugins_of(study),
    )
