"""The first tables: sessions, trials, calls, scores, regions, flags, events, people, audit, versions."""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def columns(kind: type[sa.types.TypeEngine[Any]], *names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    """Return columns of one type; missing JSON is SQL's null."""
    made = sa.JSON(none_as_null=True) if kind is sa.JSON else kind()
    return [sa.Column(name, made, nullable=nullable) for name in names]


needed = partial(columns, nullable=False)


def upgrade() -> None:
    """Create every table of the first release."""
    op.create_table(
        "audit",
        sa.Column("audit_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "at", "actor", "action"),
        *columns(sa.Text, "study", "session_id"),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("audit_id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_session_id"), "audit", ["session_id"], unique=False)
    op.create_table(
        "calls",
        sa.Column("call_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("request_key", sa.Text(), nullable=False),
        *columns(sa.Text, "work_key", "session_id"),
        *columns(sa.Integer, "trial_index", "attempt"),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("label_logprobs", sa.JSON(none_as_null=True), nullable=True),
        *columns(sa.Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
        *columns(sa.Float, "latency_ms", "ttft_ms"),
        *columns(sa.Text, "finish_reason", "requested_model", "resolved_model"),
        *columns(sa.Float, "cost_usd", "temperature"),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        *columns(sa.Text, "dtype", "path", "error"),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_calls")),
    )
    op.create_index(op.f("ix_calls_request_key"), "calls", ["request_key"], unique=False)
    op.create_index(op.f("ix_calls_run_id"), "calls", ["run_id"], unique=False)
    op.create_index(
        op.f("ix_calls_session_id_trial_index_attempt"),
        "calls",
        ["session_id", "trial_index", "attempt"],
        unique=False,
    )
    op.create_index(op.f("ix_calls_work_key"), "calls", ["work_key"], unique=False)
    op.create_table(
        "events",
        sa.Column("event_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        *columns(sa.Text, "client_uuid", "payload_hash"),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("at", sa.Text(), nullable=True),
        sa.Column("received_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
        sa.UniqueConstraint("session_id", "client_uuid", name=op.f("uq_events_session_id_client_uuid")),
    )
    op.create_index(op.f("ix_events_session_id"), "events", ["session_id"], unique=False)
    op.create_table(
        "flags",
        sa.Column("flag_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        *columns(sa.Integer, "trial_index", "attempt"),
        *needed(sa.Text, "kind", "reason", "made_by", "created_at"),
        sa.PrimaryKeyConstraint("flag_id", name=op.f("pk_flags")),
    )
    op.create_index(op.f("ix_flags_session_id"), "flags", ["session_id"], unique=False)
    op.create_table(
        "people",
        sa.Column("person_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "study", "source", "external_id", "session_id"),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_people")),
    )
    op.create_index(op.f("ix_people_session_id"), "people", ["session_id"], unique=False)
    op.create_index(
        op.f("ix_people_study_source_external_id"), "people", ["study", "source", "external_id"], unique=False
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text(), nullable=False),
        *columns(sa.Text, "client_uuid", "token_hash"),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        *needed(sa.Text, "design_hash", "reader_kind", "reader"),
        *columns(sa.Text, "participant_id", "run_id"),
        *columns(sa.Integer, "list_id", "replicate"),
        *columns(sa.Text, "context", "yoked_to"),
        sa.Column("prompt_variant", sa.Integer(), nullable=True),
        sa.Column("label_map", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("is_pilot", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("station", sa.Text(), nullable=True),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("planned_trials", sa.Integer(), nullable=True),
        sa.Column("client", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("completion_code", sa.Text(), nullable=True),
        *needed(sa.Text, "created_at", "last_seen_at"),
        sa.Column("finished_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("client_uuid", name=op.f("uq_sessions_client_uuid")),
    )
    op.create_index(
        op.f("ix_sessions_study_version_reader_kind"),
        "sessions",
        ["study", "version", "reader_kind"],
        unique=False,
    )
    op.create_table(
        "versions",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        *needed(sa.Text, "design_hash", "design", "created_at"),
        sa.PrimaryKeyConstraint("study", "version", name=op.f("pk_versions")),
    )
    op.create_table(
        "trials",
        sa.Column("session_id", sa.Text(), nullable=False),
        *needed(sa.Integer, "trial_index", "attempt"),
        *columns(sa.Text, "client_uuid", "work_key"),
        sa.Column("payload_hash", sa.Text(), nullable=False),
        *columns(sa.Text, "block", "item_set"),
        *needed(sa.Text, "item_id", "trial_type"),
        *columns(sa.JSON, "condition", "shown"),
        sa.Column("answer", sa.Text(), nullable=True),
        *needed(sa.Boolean, "is_practice", "is_filler", "is_attention_check"),
        sa.Column("choice_order", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("response_raw", sa.Text(), nullable=True),
        sa.Column("timed_out", sa.Boolean(), nullable=False),
        *columns(sa.Float, "rt", "reading_time", "onset_ts", "paint_ts", "response_ts", "handler_ts"),
        sa.Column("frame_period", sa.Float(), nullable=True),
        sa.Column("dropped_frames", sa.Integer(), nullable=True),
        *columns(sa.Float, "hidden_ms", "blurred_ms", "first_key_ms", "typing_ms"),
        *columns(sa.Integer, "paste_count", "keyless_chars"),
        sa.Column("key_log", sa.JSON(none_as_null=True), nullable=True),
        *columns(sa.Integer, "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
        *columns(sa.Float, "latency_ms", "ttft_ms"),
        sa.Column("label_logprobs", sa.JSON(none_as_null=True), nullable=True),
        *columns(sa.Float, "margin", "surprisal", "cost_usd", "temperature"),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        *columns(sa.Text, "dtype", "path", "plugin_version"),
        *needed(sa.Text, "created_at", "received_at"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name=op.f("fk_trials_sessions")),
        sa.PrimaryKeyConstraint("session_id", "trial_index", "attempt", name=op.f("pk_trials")),
        sa.UniqueConstraint("client_uuid", name=op.f("uq_trials_client_uuid")),
        sa.UniqueConstraint("work_key", name=op.f("uq_trials_work_key")),
    )
    op.create_table(
        "regions",
        sa.Column("session_id", sa.Text(), nullable=False),
        *needed(sa.Integer, "trial_index", "attempt", "region"),
        *columns(sa.Text, "shown", "intact"),
        sa.Column("is_changed", sa.Boolean(), nullable=True),
        sa.Column("line", sa.Integer(), nullable=True),
        *columns(sa.Float, "onset_ts", "rt", "surprisal"),
        sa.Column("tokens", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id", "trial_index", "attempt"],
            ["trials.session_id", "trials.trial_index", "trials.attempt"],
            name=op.f("fk_regions_trials"),
        ),
        sa.PrimaryKeyConstraint("session_id", "trial_index", "attempt", "region", name=op.f("pk_regions")),
    )
    op.create_table(
        "scores",
        sa.Column("score_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        *needed(sa.Integer, "trial_index", "attempt"),
        sa.Column("response", sa.Text(), nullable=True),
        sa.Column("response_status", sa.Text(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        *needed(sa.Text, "scorer", "scorer_version", "created_at"),
        sa.ForeignKeyConstraint(
            ["session_id", "trial_index", "attempt"],
            ["trials.session_id", "trials.trial_index", "trials.attempt"],
            name=op.f("fk_scores_trials"),
        ),
        sa.PrimaryKeyConstraint("score_id", name=op.f("pk_scores")),
    )
    op.create_index(
        op.f("ix_scores_session_id_trial_index_attempt"),
        "scores",
        ["session_id", "trial_index", "attempt"],
        unique=False,
    )
