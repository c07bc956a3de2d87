"""What is recorded of each choice in a maze."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("regions", sa.Column("foil", sa.Text(), nullable=True))
    op.add_column("regions", sa.Column("side", sa.Text(), nullable=True))
    op.add_column("regions", sa.Column("is_correct", sa.Boolean(), nullable=True))
    op.add_column("regions", sa.Column("right_rt", sa.Float(), nullable=True))
    op.add_column("regions", sa.Column("margin", sa.Float(), nullable=True))
