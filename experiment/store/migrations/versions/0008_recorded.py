"""What a lab's own trial types record."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column to trials."""
    op.add_column("trials", sa.Column("recorded", sa.JSON(none_as_null=True), nullable=True))
