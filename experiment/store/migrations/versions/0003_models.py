"""Columns for model runs: money reserved for requests in flight, run status, and all contents of a reply."""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def columns(kind: type[sa.types.TypeEngine[Any]], *names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    """Return columns of one type; missing JSON is SQL's null."""
    made = sa.JSON(none_as_null=True) if kind is sa.JSON else kind()
    return [sa.Column(name, made, nullable=nullable) for name in names]


needed = partial(columns, nullable=False)


def upgrade() -> None:
    """Add the tables of reservations and runs, and columns of calls."""
    op.create_table(
        "reservations",
        *needed(sa.Text, "name", "study", "run_id", "reader"),
        *needed(sa.Float, "open_usd"),
        *needed(sa.Text, "state", "created_at"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_reservations")),
    )
    op.create_index(op.f("ix_reservations_study"), "reservations", ["study"])
    op.create_table(
        "runs",
        *needed(sa.Text, "run_id", "study"),
        *needed(sa.Integer, "version"),
        *needed(sa.Text, "reader", "host"),
        *needed(sa.Integer, "pid"),
        *needed(sa.Text, "state"),
        *columns(sa.JSON, "figures"),
        *needed(sa.Text, "began_at", "seen_at"),
        *columns(sa.Text, "ended_at"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_study"), "runs", ["study"])
    for column in (
        *columns(sa.Text, "generated", "reasoning"),
        *columns(sa.JSON, "label_bounds"),
        *columns(sa.Boolean, "from_cache"),
    ):
        op.add_column("calls", column)
