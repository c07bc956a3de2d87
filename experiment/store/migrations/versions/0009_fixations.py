"""Times on words and regions from imported fixations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the columns, empty for earlier rows."""
    for name in ("first_fixation", "gaze", "go_past", "total_time"):
        op.add_column("regions", sa.Column(name, sa.Float(), nullable=True))
