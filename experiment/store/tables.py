"""The tables of the store, with the names of all columns.

Rows of trials, calls, scores, regions, ratings, flags, events, chain and audit are only added, except that a withdrawal
(:mod:`experiment.store.erasure`) removes them. Factor levels are in ``trials.condition`` and become separate columns on export;
participants' identities are in ``people``, ``submissions`` and ``invitations``, separate from responses. Times of day are ISO
8601 texts in UTC, durations are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import NoneType
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from experiment.store.database import UnreadableJson

LATEST_REVISION = "0010"
"""The migration that these tables correspond to."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


NUMBER = int | float
COUNTS = {"*": NUMBER}
SHAPES: Mapping[str, Any] = {
    "plan": {
        "if_interrupted": ({"then": str, "within_ms": NUMBER | None}, NoneType),
        "screens": [
            {
                "kind": str,
                "version": str | None,
                "pages": ([dict], NoneType),
                "trials": [
                    {
                        "trial_index": int,
                        **dict.fromkeys(("fixation_ms", "interval_ms"), NUMBER | None),
                        "steps": [{"step": str}],
                    }
                ],
            }
        ],
    },
    "figures": {
        **dict.fromkeys(
            ("planned", "stored_before", "answered", "failed", "cached", "number", "given_up"), int
        ),
        "error_kinds": COUNTS,
        "tokens": COUNTS,
        "response_statuses": COUNTS,
        **dict.fromkeys(("cost_usd", "per_second"), NUMBER),
        "seconds_left": NUMBER | None,
        **dict.fromkeys(("engine", "waits", "stopped", "process"), str | None),
    },
    "audit": {
        "engine": {"parameters": int | None},
        "numbers": {"*": int},
        "work_keys": [str],
        "token_hash": str,
        "tries": int,
    },
}
"""Shapes of columns whose parts are read one by one: of an object's members by name (``*``: of all others), of a list's elements.

A tuple has alternatives.
"""


class JsonOf(TypeDecorator[Any]):
    """JSON of one kind, an object or a list; anything else that a column returns was not written by wrods.

    ``shape``: a name in :data:`SHAPES`.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, kind: type[dict[str, Any]] | type[list[Any]], shape: str = "") -> None:
        super().__init__(none_as_null=True)
        self.kind, self.shape = kind, shape

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return a stored value unless it is of another kind."""
        if not self.admits(value):
            raise UnreadableJson
        return value

    def admits(self, value: Any) -> bool:
        """Return whether a value is of this kind and shape, or null."""
        return value is None or (
            isinstance(value, self.kind) and _has_shape(value, SHAPES.get(self.shape, object))
        )


def _has_shape(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_has_shape(value, alternative) for alternative in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(element, shape[0]) for element in value)
    if isinstance(shape, Mapping):
        others = shape.get("*", object)
        return isinstance(value, dict) and all(
            _has_shape(member, shape.get(name, others)) for name, member in value.items()
        )
    return isinstance(value, shape)


def _object(name: str, shape: str = "") -> Column[Any]:
    return Column(name, JsonOf(dict, shape or name))


def _list(name: str) -> Column[Any]:
    return Column(name, JsonOf(list))


def _columns(kind: type[TypeEngine[Any]], *names: str, nullable: bool = True) -> list[Column[Any]]:
    return [Column(name, kind, nullable=nullable) for name in names]


_needed = partial(_columns, nullable=False)


versions = Table(
    "versions",
    metadata,
    Column("study", Text, nullable=False),
    Column("version", Integer, nullable=False),
    *_needed(Text, "design_hash", "design", "created_at"),
    PrimaryKeyConstraint("study", "version"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("client_uuid", Text, unique=True),
    Column("token_hash", Text),
    Column("study", Text, nullable=False),
    Column("version", Integer, nullable=False),
    *_needed(Text, "design_hash", "reader_kind", "reader"),
    *_columns(Text, "participant_id", "run_id"),
    *_columns(Integer, "list_id", "order_row", "replicate"),
    *_columns(Text, "context", "yoked_to"),
    Column("prompt_variant", Integer),
    _object("label_map"),
    Column("is_pilot", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("station", Text),
    _object("plan"),
    Column("planned_trials", Integer),
    _object("client"),
    Column("completion_code", Text),
    *_needed(Text, "created_at", "last_seen_at"),
    *_columns(Text, "finished_at", "ended_reason", "lease", "lease_until", "person_key", "held_reason"),
    Index(None, "study", "version", "reader_kind"),
    Index("ix_sessions_person", "study", "person_key"),
    # a row contains its plan, up to megabytes: queries at each trial and arrival avoid it
    Index("ix_sessions_heard", "session_id", "state", "lease", "lease_until", "last_seen_at"),
    Index("ix_sessions_reader", "study", "reader"),
    Index("ix_sessions_participant", "study", "participant_id"),
    Index(
        "ix_sessions_counted",
        *("study", "version", "reader_kind", "is_pilot", "state", "last_seen_at"),
        *("list_id", "order_row", "session_id", "created_at", "held_reason"),
    ),
)

people = Table(
    "people",
    metadata,
    Column("person_id", Integer, primary_key=True, autoincrement=True),
    *_needed(Text, "study", "source", "external_id"),
    Column("session_id", Text, nullable=False, index=True),
    _object("details"),
    Column("created_at", Text, nullable=False),
    Index(None, "study", "source", "external_id"),
)

TRIAL_KEY = ("session_id", "trial_index", "attempt")

ADDED = {"added": True}
"""Marks a column of a chained table that earlier versions did not have: a null in it is in no digest."""

trials = Table(
    "trials",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.session_id"), nullable=False),
    *_needed(Integer, "trial_index", "attempt"),
    Column("client_uuid", Text, unique=True),
    Column("work_key", Text, unique=True),
    Column("payload_hash", Text, nullable=False),
    *_columns(Text, "block", "item_set"),
    *_needed(Text, "item_id", "trial_type"),
    _object("condition"),
    _object("shown"),
    Column("answer", Text),
    _list("accepted"),
    *_needed(Boolean, "is_practice", "is_filler", "is_attention_check"),
    _list("choice_order"),
    Column("response_raw", Text),
    Column("timed_out", Boolean, nullable=False),
    # people
    *_columns(Float, "rt", "reading_time", "onset_ts", "paint_ts", "response_ts", "handler_ts"),
    Column("frame_period", Float),
    Column("dropped_frames", Integer),
    *_columns(Float, "hidden_ms", "blurred_ms", "first_key_ms", "typing_ms"),
    *_columns(Integer, "paste_count", "keyless_chars"),
    _list("key_log"),
    Column("early_responses", Integer),
    _list("early_keys"),
    _list("insertions"),
    Column("hint_ms", Float),
    Column("prime_frames", Integer),
    Column("prime_ms", Float),
    Column("shown_frames", Integer, info=ADDED),
    Column("shown_ms", Float, info=ADDED),
    # a lab's own trial types: the fields of each, by type
    Column("recorded", JsonOf(dict, "recorded"), info=ADDED),
    Column("step_name", Text, info=ADDED),
    # models
    *_columns(Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
    *_columns(Float, "latency_ms", "ttft_ms"),
    _object("label_logprobs"),
    *_columns(Float, "margin", "surprisal", "cost_usd", "temperature"),
    Column("seed", BigInteger),
    *_columns(Text, "dtype", "path"),
    # always
    Column("plugin_version", Text),
    *_needed(Text, "created_at", "received_at"),
    PrimaryKeyConstraint(*TRIAL_KEY),
)

regions = Table(
    "regions",
    metadata,
    Column("session_id", Text, nullable=False),
    *_needed(Integer, "trial_index", "attempt", "region"),
    *_columns(Text, "shown", "intact"),
    Column("is_changed", Boolean),
    Column("line", Integer),
    *_columns(Float, "onset_ts", "rt", "surprisal"),
    Column("tokens", Integer),
    Column("entropy", Float, info=ADDED),
    Column("region_names", Text, info=ADDED),
    Column("frames", Integer, info=ADDED),
    Column("shown_ms", Float, info=ADDED),
    Column("foil", Text, info=ADDED),
    Column("side", Text, info=ADDED),
    Column("is_correct", Boolean, info=ADDED),
    Column("right_rt", Float, info=ADDED),
    Column("margin", Float, info=ADDED),
    *(Column(name, Float, info=ADDED) for name in ("first_fixation", "gaze", "go_past", "total_time")),
    PrimaryKeyConstraint(*TRIAL_KEY, "region"),
    ForeignKeyConstraint(TRIAL_KEY, [f"trials.{name}" for name in TRIAL_KEY]),
)

calls = Table(
    "calls",
    metadata,
    Column("call_id", Integer, primary_key=True, autoincrement=True),
    Column("request_key", Text, nullable=False, index=True),
    Column("work_key", Text, index=True),
    Column("session_id", Text),
    *_columns(Integer, "trial_index", "attempt"),
    Column("run_id", Text, index=True),
    Column("purpose", Text, nullable=False),
    _object("request"),
    Column("text", Text),
    Column("status", Text, nullable=False),
    _object("label_logprobs"),
    *_columns(Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
    *_columns(Float, "latency_ms", "ttft_ms"),
    *_columns(Text, "finish_reason", "requested_model", "resolved_model"),
    *_columns(Float, "cost_usd", "temperature"),
    Column("seed", BigInteger),
    *_columns(Text, "dtype", "path", "error"),
    Column("attempts", Integer),
    Column("created_at", Text, nullable=False),
    *_columns(Text, "generated", "reasoning"),
    _object("label_bounds"),
    Column("from_cache", Boolean),
    Index(None, "session_id", "trial_index", "attempt"),
)

scores = Table(
    "scores",
    metadata,
    Column("score_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    *_needed(Integer, "trial_index", "attempt"),
    Column("response", Text),
    Column("response_status", Text, nullable=False),
    Column("correct", Boolean),
    Column("score", Float),
    *_needed(Text, "scorer", "scorer_version", "created_at"),
    ForeignKeyConstraint(TRIAL_KEY, [f"trials.{name}" for name in TRIAL_KEY]),
    Index(None, *TRIAL_KEY),
)

ratings = Table(
    "ratings",
    metadata,
    Column("rating_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    *_needed(Integer, "trial_index", "attempt"),
    *_needed(Text, "rater", "role", "rubric"),
    Column("value", Integer, nullable=False),
    Column("note", Text),
    Column("created_at", Text, nullable=False),
    ForeignKeyConstraint(TRIAL_KEY, [f"trials.{name}" for name in TRIAL_KEY]),
    Index(None, *TRIAL_KEY),
)

tallies = Table(
    "tallies",
    metadata,
    Column("study", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("study", "version", "kind"),
)
"""Counts of people without other stored data, such as those who declined to take part."""

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", Text, primary_key=True),
    *_needed(Text, "kind", "account", "stamp", "created_at", "seen_at", "expires_at"),
)
"""Active sign-ins to the dashboard and one-time links to it; ending one deletes its row."""

invitations = Table(
    "invitations",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("study", Text, nullable=False, index=True),
    Column("participant", Text, nullable=False),
    Column("session_id", Text),
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text),
)

submissions = Table(
    "submissions",
    metadata,
    Column("submission_id", Integer, primary_key=True, autoincrement=True),
    *_needed(Text, "study", "source", "external_id", "status"),
    Column("code", Text),
    _object("details"),
    Column("imported_at", Text, nullable=False),
    Index(None, "study", "source", "external_id"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("name", Text, primary_key=True),
    Column("study", Text, nullable=False, index=True),
    *_needed(Text, "run_id", "reader"),
    Column("open_usd", Float, nullable=False),
    *_needed(Text, "state", "created_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("study", Text, nullable=False, index=True),
    Column("version", Integer, nullable=False),
    *_needed(Text, "reader", "host"),
    Column("pid", Integer, nullable=False),
    Column("state", Text, nullable=False),
    _object("figures"),
    *_needed(Text, "began_at", "seen_at"),
    Column("ended_at", Text),
)
"""One model in one command: its progress, updated every few seconds; what was run and how is in ``audit``."""

chain = Table(
    "chain",
    metadata,
    Column("session_id", Text, nullable=False),
    Column("place", Integer, nullable=False),
    *_needed(Text, "kind", "row_key"),
    Column("salt", Text),
    *_needed(Text, "digest", "link", "created_at"),
    PrimaryKeyConstraint("session_id", "place"),
)
"""A session's rows as salted digests, each linked to the one before; it outlives the rows and their salts."""

flags = Table(
    "flags",
    metadata,
    Column("flag_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False, index=True),
    *_columns(Integer, "trial_index", "attempt"),
    *_needed(Text, "kind", "reason", "made_by", "created_at"),
)

events = Table(
    "events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False, index=True),
    *_columns(Text, "client_uuid", "payload_hash"),
    Column("kind", Text, nullable=False),
    _object("detail"),
    Column("at", Text),
    Column("received_at", Text, nullable=False),
    UniqueConstraint("session_id", "client_uuid"),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", Integer, primary_key=True, autoincrement=True),
    *_needed(Text, "at", "actor", "action"),
    Column("study", Text),
    Column("session_id", Text, index=True),
    _object("detail", "audit"),
)
