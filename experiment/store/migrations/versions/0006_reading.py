"""What is recorded of texts that end by themselves: frames and times of trials and regions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("trials", sa.Column("shown_frames", sa.Integer(), nullable=True))
    op.add_column("trials", sa.Column("shown_ms", sa.Float(), nullable=True))
    op.add_column("regions", sa.Column("frames", sa.Integer(), nullable=True))
    op.add_column("regions", sa.Column("shown_ms", sa.Float(), nullable=True))
