"""Names of the regions that a word is in, and the entropy of what a model expects in its place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add columns of regions, empty for earlier rows."""
    op.add_column("regions", sa.Column("entropy", sa.Float(), nullable=True))
    op.add_column("regions", sa.Column("region_names", sa.Text(), nullable=True))
