"""Further answers about an item, each in a row with the name of its step."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column to trials."""
    op.add_column("trials", sa.Column("step_name", sa.Text(), nullable=True))
