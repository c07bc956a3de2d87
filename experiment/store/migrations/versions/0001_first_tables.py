"""The first tables: sessions, trials, calls, scores, regions, flags, events, people, audit, versions."""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
TRIAL = ["session_id", "trial_index", "attempt"]


def columns(kind: type[sa.types.TypeEngine[Any]], *names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    """Return columns of one type; missing JSON is SQL's null."""
    made = sa.JSON(none_as_null=True) if kind is sa.JSON else kind()
    return [sa.Column(name, made, nullable=nullable) for name in names]


needed = partial(columns, nullable=False)


def index(table: str, *names: str) -> None:
    """Create an index of some columns under its conventional name."""
    op.create_index(op.f("_".join(("ix", table, *names))), table, list(names))


def upgrade() -> None:
    """Create every table of the first release."""
    op.create_table(
        "audit",
        sa.Column("audit_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "at", "actor", "action"),
        *columns(sa.Text, "study", "session_id"),
        *columns(sa.JSON, "detail"),
        sa.PrimaryKeyConstraint("audit_id", name=op.f("pk_audit")),
    )
    index("audit", "session_id")
    op.create_table(
        "calls",
        sa.Column("call_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "request_key"),
        *columns(sa.Text, "work_key", "session_id"),
        *columns(sa.Integer, "trial_index", "attempt"),
        *columns(sa.Text, "run_id"),
        *needed(sa.Text, "purpose"),
        *columns(sa.JSON, "request"),
        *columns(sa.Text, "text"),
        *needed(sa.Text, "status"),
        *columns(sa.JSON, "label_logprobs"),
        *columns(sa.Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
        *columns(sa.Float, "latency_ms", "ttft_ms"),
        *columns(sa.Text, "finish_reason", "requested_model", "resolved_model"),
        *columns(sa.Float, "cost_usd", "temperature"),
        *columns(sa.BigInteger, "seed"),
        *columns(sa.Text, "dtype", "path", "error"),
        *columns(sa.Integer, "attempts"),
        *needed(sa.Text, "created_at"),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_calls")),
    )
    index("calls", "request_key")
    index("calls", "run_id")
    index("calls", *TRIAL)
    index("calls", "work_key")
    op.create_table(
        "events",
        sa.Column("event_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "session_id"),
        *columns(sa.Text, "client_uuid", "payload_hash"),
        *needed(sa.Text, "kind"),
        *columns(sa.JSON, "detail"),
        *columns(sa.Text, "at"),
        *needed(sa.Text, "received_at"),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
        sa.UniqueConstraint("session_id", "client_uuid", name=op.f("uq_events_session_id_client_uuid")),
    )
    index("events", "session_id")
    op.create_table(
        "flags",
        sa.Column("flag_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "session_id"),
        *columns(sa.Integer, "trial_index", "attempt"),
        *needed(sa.Text, "kind", "reason", "made_by", "created_at"),
        sa.PrimaryKeyConstraint("flag_id", name=op.f("pk_flags")),
    )
    index("flags", "session_id")
    op.create_table(
        "people",
        sa.Column("person_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "study", "source", "external_id", "session_id"),
        *columns(sa.JSON, "details"),
        *needed(sa.Text, "created_at"),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_people")),
    )
    index("people", "session_id")
    index("people", "study", "source", "external_id")
    op.create_table(
        "sessions",
        *needed(sa.Text, "session_id"),
        *columns(sa.Text, "client_uuid", "token_hash"),
        *needed(sa.Text, "study"),
        *needed(sa.Integer, "version"),
        *needed(sa.Text, "design_hash", "reader_kind", "reader"),
        *columns(sa.Text, "participant_id", "run_id"),
        *columns(sa.Integer, "list_id", "replicate"),
        *columns(sa.Text, "context", "yoked_to"),
        *columns(sa.Integer, "prompt_variant"),
        *columns(sa.JSON, "label_map"),
        *needed(sa.Boolean, "is_pilot"),
        *needed(sa.Text, "state"),
        *columns(sa.Text, "station"),
        *columns(sa.JSON, "plan"),
        *columns(sa.Integer, "planned_trials"),
        *columns(sa.JSON, "client"),
        *columns(sa.Text, "completion_code"),
        *needed(sa.Text, "created_at", "last_seen_at"),
        *columns(sa.Text, "finished_at"),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("client_uuid", name=op.f("uq_sessions_client_uuid")),
    )
    index("sessions", "study", "version", "reader_kind")
    op.create_table(
        "versions",
        *needed(sa.Text, "study"),
        *needed(sa.Integer, "version"),
        *needed(sa.Text, "design_hash", "design", "created_at"),
        sa.PrimaryKeyConstraint("study", "version", name=op.f("pk_versions")),
    )
    op.create_table(
        "trials",
        *needed(sa.Text, "session_id"),
        *needed(sa.Integer, "trial_index", "attempt"),
        *columns(sa.Text, "client_uuid", "work_key"),
        *needed(sa.Text, "payload_hash"),
        *columns(sa.Text, "block", "item_set"),
        *needed(sa.Text, "item_id", "trial_type"),
        *columns(sa.JSON, "condition", "shown"),
        *columns(sa.Text, "answer"),
        *needed(sa.Boolean, "is_practice", "is_filler", "is_attention_check"),
        *columns(sa.JSON, "choice_order"),
        *columns(sa.Text, "response_raw"),
        *needed(sa.Boolean, "timed_out"),
        *columns(
            sa.Float,
            "rt",
            "reading_time",
            "onset_ts",
            "paint_ts",
            "response_ts",
            "handler_ts",
            "frame_period",
        ),
        *columns(sa.Integer, "dropped_frames"),
        *columns(sa.Float, "hidden_ms", "blurred_ms", "first_key_ms", "typing_ms"),
        *columns(sa.Integer, "paste_count", "keyless_chars"),
        *columns(sa.JSON, "key_log"),
        *columns(sa.Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
        *columns(sa.Float, "latency_ms", "ttft_ms"),
        *columns(sa.JSON, "label_logprobs"),
        *columns(sa.Float, "margin", "surprisal", "cost_usd", "temperature"),
        *columns(sa.BigInteger, "seed"),
        *columns(sa.Text, "dtype", "path", "plugin_version"),
        *needed(sa.Text, "created_at", "received_at"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name=op.f("fk_trials_sessions")),
        sa.PrimaryKeyConstraint("session_id", "trial_index", "attempt", name=op.f("pk_trials")),
        sa.UniqueConstraint("client_uuid", name=op.f("uq_trials_client_uuid")),
        sa.UniqueConstraint("work_key", name=op.f("uq_trials_work_key")),
    )
    op.create_table(
        "regions",
        *needed(sa.Text, "session_id"),
        *needed(sa.Integer, "trial_index", "attempt", "region"),
        *columns(sa.Text, "shown", "intact"),
        *columns(sa.Boolean, "is_changed"),
        *columns(sa.Integer, "line"),
        *columns(sa.Float, "onset_ts", "rt", "surprisal"),
        *columns(sa.Integer, "tokens"),
        sa.ForeignKeyConstraint(TRIAL, [f"trials.{name}" for name in TRIAL], name=op.f("fk_regions_trials")),
        sa.PrimaryKeyConstraint("session_id", "trial_index", "attempt", "region", name=op.f("pk_regions")),
    )
    op.create_table(
        "scores",
        sa.Column("score_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "session_id"),
        *needed(sa.Integer, "trial_index", "attempt"),
        *columns(sa.Text, "response"),
        *needed(sa.Text, "response_status"),
        *columns(sa.Boolean, "correct"),
        *columns(sa.Float, "score"),
        *needed(sa.Text, "scorer", "scorer_version", "created_at"),
        sa.ForeignKeyConstraint(TRIAL, [f"trials.{name}" for name in TRIAL], name=op.f("fk_scores_trials")),
        sa.PrimaryKeyConstraint("score_id", name=op.f("pk_scores")),
    )
    index("scores", *TRIAL)
