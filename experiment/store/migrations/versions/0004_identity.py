"""Identity of a person inside the store, held payments, counts of people who declined, and sign-ins to the dashboard."""

from __future__ import annotations

import secrets
from collections import defaultdict

import sqlalchemy as sa
from alembic import context, op

revision = "0004"
down_revision = "0003"

COUNTED = ["study", "version", "reader_kind", "is_pilot", "state", "last_seen_at", "list_id", "order_row", "session_id",
           "created_at", "held_reason"]  # fmt: skip
_sessions = sa.table("sessions", *map(sa.column, ("session_id", "study", "reader_kind", "person_key")))
_people = sa.table("people", *map(sa.column, ("session_id", "study", "source", "external_id")))


def upgrade() -> None:
    """Add columns and tables, give each stored person a key, and remove typed numbers from tombstones."""
    op.add_column("sessions", sa.Column("person_key", sa.Text(), nullable=True))
    op.add_column("sessions", sa.Column("held_reason", sa.Text(), nullable=True))
    op.drop_index("ix_sessions_counted", "sessions")
    op.create_index("ix_sessions_counted", "sessions", COUNTED)
    op.create_index("ix_sessions_person", "sessions", ["study", "person_key"])
    op.create_index("ix_sessions_participant", "sessions", ["study", "participant_id"])
    op.create_table(
        "tallies",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("study", "version", "kind", name=op.f("pk_tallies")),
    )
    op.create_table(
        "sign_ins",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("token_hash", "kind", "account", "stamp", "created_at", "seen_at", "expires_at")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_sign_ins")),
    )
    _give_keys(op.get_bind())
    attributes = context.config.attributes
    for study in attributes["clean_tombstones"](op.get_bind()):
        attributes["note_due"](op.get_bind(), study)


def _give_keys(connection: sa.Connection) -> None:
    """Give sessions with a shared external id the same key, and every other session of a person its own."""
    sessions_of_id: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in connection.execute(sa.select(_people).where(_people.c.source != "network")):
        sessions_of_id[(row.study, row.source, row.external_id)].append(row.session_id)
    known = connection.scalars(
        sa.select(_sessions.c.session_id).where(_sessions.c.reader_kind.in_(("human", "simulated")))
    )
    parent = {session_id: session_id for session_id in known}

    def root(session_id: str) -> str:
        while parent[session_id] != session_id:
            parent[session_id] = parent[parent[session_id]]
            session_id = parent[session_id]
        return session_id

    for shared in sessions_of_id.values():
        stored = [session_id for session_id in shared if session_id in parent]
        for session_id in stored[1:]:
            parent[root(session_id)] = root(stored[0])
    keys: dict[str, str] = defaultdict(lambda: secrets.token_hex(16))
    values = [{"of": session_id, "key": keys[root(session_id)]} for session_id in parent]
    if values:
        connection.execute(
            sa.update(_sessions)
            .where(_sessions.c.session_id == sa.bindparam("of"))
            .values(person_key=sa.bindparam("key")),
            values,
        )
