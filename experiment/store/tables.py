"""The tables of the store: one place that knows every column's name.

Trials, calls, scores, regions, ratings, flags, events, chain and audit are only ever added to, except that a withdrawal
(:mod:`experiment.store.erasure`) takes rows out. Factor levels live in ``trials.condition`` and become columns of their
own at handover; who a participant is lives in ``people``, ``submissions`` and ``invitations``, apart from responses.
Times of day are ISO 8601 texts in UTC, durations are milliseconds.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
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

LATEST_REVISION = "0004"
"""The migration that these tables correspond to."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _json(name: str) -> Column[object]:
    return Column(name, JSON(none_as_null=True))


versions = Table(
    "versions",
    metadata,
    Column("study", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("design_hash", Text, nullable=False),
    Column("design", Text, nullable=False),
    Column("created_at", Text, nullable=False),
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
    Column("design_hash", Text, nullable=False),
    Column("reader_kind", Text, nullable=False),
    Column("reader", Text, nullable=False),
    Column("participant_id", Text),
    Column("run_id", Text),
    Column("list_id", Integer),
    Column("order_row", Integer),
    Column("replicate", Integer),
    Column("context", Text),
    Column("yoked_to", Text),
    Column("prompt_variant", Integer),
    _json("label_map"),
    Column("is_pilot", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("station", Text),
    _json("plan"),
    Column("planned_trials", Integer),
    _json("client"),
    Column("completion_code", Text),
    Column("created_at", Text, nullable=False),
    Column("last_seen_at", Text, nullable=False),
    Column("finished_at", Text),
    Column("ended_reason", Text),
    Column("lease", Text),
    Column("lease_until", Text),
    Column("person_key", Text),
    Column("held_reason", Text),
    Index(None, "study", "version", "reader_kind"),
    Index("ix_sessions_person", "study", "person_key"),
    # a row holds its plan, up to megabytes: what is asked at each trial and each arrival is answered without it
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
    Column("study", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("session_id", Text, nullable=False, index=True),
    _json("details"),
    Column("created_at", Text, nullable=False),
    Index(None, "study", "source", "external_id"),
)

TRIAL_KEY = ("session_id", "trial_index", "attempt")

trials = Table(
    "trials",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.session_id"), nullable=False),
    Column("trial_index", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("client_uuid", Text, unique=True),
    Column("work_key", Text, unique=True),
    Column("payload_hash", Text, nullable=False),
    Column("block", Text),
    Column("item_set", Text),
    Column("item_id", Text, nullable=False),
    Column("trial_type", Text, nullable=False),
    _json("condition"),
    _json("shown"),
    Column("answer", Text),
    _json("accepted"),
    Column("is_practice", Boolean, nullable=False),
    Column("is_filler", Boolean, nullable=False),
    Column("is_attention_check", Boolean, nullable=False),
    _json("choice_order"),
    Column("response_raw", Text),
    Column("timed_out", Boolean, nullable=False),
    # people
    Column("rt", Float),
    Column("reading_time", Float),
    Column("onset_ts", Float),
    Column("paint_ts", Float),
    Column("response_ts", Float),
    Column("handler_ts", Float),
    Column("frame_period", Float),
    Column("dropped_frames", Integer),
    Column("hidden_ms", Float),
    Column("blurred_ms", Float),
    Column("first_key_ms", Float),
    Column("typing_ms", Float),
    Column("paste_count", Integer),
    Column("keyless_chars", Integer),
    _json("key_log"),
    Column("early_responses", Integer),
    _json("early_keys"),
    _json("insertions"),
    Column("hint_ms", Float),
    Column("prime_frames", Integer),
    Column("prime_ms", Float),
    # models
    Column("prompt_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("latency_ms", Float),
    Column("ttft_ms", Float),
    _json("label_logprobs"),
    Column("margin", Float),
    Column("surprisal", Float),
    Column("cost_usd", Float),
    Column("temperature", Float),
    Column("seed", BigInteger),
    Column("dtype", Text),
    Column("path", Text),
    # always
    Column("plugin_version", Text),
    Column("created_at", Text, nullable=False),
    Column("received_at", Text, nullable=False),
    PrimaryKeyConstraint(*TRIAL_KEY),
)

regions = Table(
    "regions",
    metadata,
    Column("session_id", Text, nullable=False),
    Column("trial_index", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("region", Integer, nullable=False),
    Column("shown", Text),
    Column("intact", Text),
    Column("is_changed", Boolean),
    Column("line", Integer),
    Column("onset_ts", Float),
    Column("rt", Float),
    Column("surprisal", Float),
    Column("tokens", Integer),
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
    Column("trial_index", Integer),
    Column("attempt", Integer),
    Column("run_id", Text, index=True),
    Column("purpose", Text, nullable=False),
    _json("request"),
    Column("text", Text),
    Column("status", Text, nullable=False),
    _json("label_logprobs"),
    Column("prompt_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("latency_ms", Float),
    Column("ttft_ms", Float),
    Column("finish_reason", Text),
    Column("requested_model", Text),
    Column("resolved_model", Text),
    Column("cost_usd", Float),
    Column("temperature", Float),
    Column("seed", BigInteger),
    Column("dtype", Text),
    Column("path", Text),
    Column("error", Text),
    Column("attempts", Integer),
    Column("created_at", Text, nullable=False),
    Column("generated", Text),
    Column("reasoning", Text),
    _json("label_bounds"),
    Column("from_cache", Boolean),
    Index(None, "session_id", "trial_index", "attempt"),
)

scores = Table(
    "scores",
    metadata,
    Column("score_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    Column("trial_index", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("response", Text),
    Column("response_status", Text, nullable=False),
    Column("correct", Boolean),
    Column("score", Float),
    Column("scorer", Text, nullable=False),
    Column("scorer_version", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    ForeignKeyConstraint(TRIAL_KEY, [f"trials.{name}" for name in TRIAL_KEY]),
    Index(None, *TRIAL_KEY),
)

ratings = Table(
    "ratings",
    metadata,
    Column("rating_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    Column("trial_index", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("rater", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("rubric", Text, nullable=False),
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
"""Counts of people of whom nothing else is stored, such as those who declined to take part."""

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("stamp", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("seen_at", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
)
"""Open sign-ins to the dashboard and one-time links to it; ending one deletes its row."""

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
    Column("study", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("code", Text),
    _json("details"),
    Column("imported_at", Text, nullable=False),
    Index(None, "study", "source", "external_id"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("name", Text, primary_key=True),
    Column("study", Text, nullable=False, index=True),
    Column("run_id", Text, nullable=False),
    Column("reader", Text, nullable=False),
    Column("open_usd", Float, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("study", Text, nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("reader", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("state", Text, nullable=False),
    _json("figures"),
    Column("began_at", Text, nullable=False),
    Column("seen_at", Text, nullable=False),
    Column("ended_at", Text),
)
"""One model in one command: what is done so far, told every few seconds; what was run and how stands in ``audit``."""

chain = Table(
    "chain",
    metadata,
    Column("session_id", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("row_key", Text, nullable=False),
    Column("salt", Text),
    Column("digest", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    PrimaryKeyConstraint("session_id", "place"),
)
"""A session's rows as salted digests, each linked to the one before; it outlives the rows and their salts."""

flags = Table(
    "flags",
    metadata,
    Column("flag_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False, index=True),
    Column("trial_index", Integer),
    Column("attempt", Integer),
    Column("kind", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False, index=True),
    Column("client_uuid", Text),
    Column("payload_hash", Text),
    Column("kind", Text, nullable=False),
    _json("detail"),
    Column("at", Text),
    Column("received_at", Text, nullable=False),
    UniqueConstraint("session_id", "client_uuid"),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", Integer, primary_key=True, autoincrement=True),
    Column("at", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("study", Text),
    Column("session_id", Text, index=True),
    _json("detail"),
)
