"""Columns for timed sessions at scale: leases, reasons, ratings, invitations, submissions, a hash chain, further measures."""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
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
    """Add columns to sessions, trials and people, and new tables."""
    for column in (
        *columns(sa.JSON, "accepted"),
        *columns(sa.Integer, "early_responses"),
        *columns(sa.JSON, "early_keys", "insertions"),
        *columns(sa.Float, "hint_ms"),
        *columns(sa.Integer, "prime_frames"),
        *columns(sa.Float, "prime_ms"),
    ):
        op.add_column("trials", column)
    for column in (
        *columns(sa.Text, "ended_reason"),
        *columns(sa.Integer, "order_row"),
        *columns(sa.Text, "lease", "lease_until"),
    ):
        op.add_column("sessions", column)
    op.create_index(
        "ix_sessions_heard", "sessions", ["session_id", "state", "lease", "lease_until", "last_seen_at"]
    )
    op.create_index("ix_sessions_reader", "sessions", ["study", "reader"])
    counted = ["study", "version", "reader_kind", "is_pilot", "state", "last_seen_at"]
    op.create_index("ix_sessions_counted", "sessions", [*counted, "list_id", "order_row", "session_id"])
    op.create_table(
        "ratings",
        sa.Column("rating_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "session_id"),
        *needed(sa.Integer, "trial_index", "attempt"),
        *needed(sa.Text, "rater", "role", "rubric"),
        *needed(sa.Integer, "value"),
        *columns(sa.Text, "note"),
        *needed(sa.Text, "created_at"),
        sa.PrimaryKeyConstraint("rating_id", name=op.f("pk_ratings")),
        sa.ForeignKeyConstraint(TRIAL, [f"trials.{name}" for name in TRIAL], name=op.f("fk_ratings_trials")),
    )
    index("ratings", *TRIAL)
    op.create_table(
        "invitations",
        *needed(sa.Text, "token_hash", "study", "participant"),
        *columns(sa.Text, "session_id"),
        *needed(sa.Text, "created_at"),
        *columns(sa.Text, "expires_at"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_invitations")),
    )
    index("invitations", "study")
    op.create_table(
        "submissions",
        sa.Column("submission_id", sa.Integer(), autoincrement=True, nullable=False),
        *needed(sa.Text, "study", "source", "external_id", "status"),
        *columns(sa.Text, "code"),
        *columns(sa.JSON, "details"),
        *needed(sa.Text, "imported_at"),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_submissions")),
    )
    index("submissions", "study", "source", "external_id")
    op.create_table(
        "chain",
        *needed(sa.Text, "session_id"),
        *needed(sa.Integer, "place"),
        *needed(sa.Text, "kind", "row_key"),
        *columns(sa.Text, "salt"),
        *needed(sa.Text, "digest", "link", "created_at"),
        sa.PrimaryKeyConstraint("session_id", "place", name=op.f("pk_chain")),
    )
