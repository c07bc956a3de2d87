"""Columns for timed sessions at scale: leases, reasons, ratings, invitations, submissions, a hash chain, further measures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns to sessions, trials and people, and new tables."""
    with op.batch_alter_table("trials") as trials:
        trials.add_column(sa.Column("accepted", sa.JSON(none_as_null=True), nullable=True))
        trials.add_column(sa.Column("early_responses", sa.Integer(), nullable=True))
        trials.add_column(sa.Column("early_keys", sa.JSON(none_as_null=True), nullable=True))
        trials.add_column(sa.Column("insertions", sa.JSON(none_as_null=True), nullable=True))
        trials.add_column(sa.Column("hint_ms", sa.Float(), nullable=True))
        trials.add_column(sa.Column("prime_frames", sa.Integer(), nullable=True))
        trials.add_column(sa.Column("prime_ms", sa.Float(), nullable=True))
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("ended_reason", sa.Text(), nullable=True))
        sessions.add_column(sa.Column("order_row", sa.Integer(), nullable=True))
        sessions.add_column(sa.Column("lease", sa.Text(), nullable=True))
        sessions.add_column(sa.Column("lease_until", sa.Text(), nullable=True))
    op.create_index(
        "ix_sessions_heard", "sessions", ["session_id", "state", "lease", "lease_until", "last_seen_at"]
    )
    op.create_index("ix_sessions_reader", "sessions", ["study", "reader"])
    counted = [
        "study",
        "version",
        "reader_kind",
        "is_pilot",
        "state",
        "last_seen_at",
        "list_id",
        "order_row",
        "session_id",
    ]
    op.create_index("ix_sessions_counted", "sessions", counted)
    op.create_table(
        "ratings",
        sa.Column("rating_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("trial_index", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("rubric", sa.Text(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("rating_id", name=op.f("pk_ratings")),
        sa.ForeignKeyConstraint(
            ["session_id", "trial_index", "attempt"],
            ["trials.session_id", "trials.trial_index", "trials.attempt"],
            name=op.f("fk_ratings_trials"),
        ),
    )
    op.create_index(
        op.f("ix_ratings_session_id_trial_index_attempt"), "ratings", ["session_id", "trial_index", "attempt"]
    )
    op.create_table(
        "invitations",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("participant", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_invitations")),
    )
    op.create_index(op.f("ix_invitations_study"), "invitations", ["study"])
    op.create_table(
        "submissions",
        sa.Column("submission_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("imported_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_submissions")),
    )
    op.create_index(
        op.f("ix_submissions_study_source_external_id"), "submissions", ["study", "source", "external_id"]
    )
    op.create_table(
        "chain",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("row_key", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "place", name=op.f("pk_chain")),
    )
