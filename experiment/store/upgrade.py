"""Brings a database to the tables of this version, after a backup of an existing file."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect

from experiment.store import erasure
from experiment.store.database import is_sqlite, lock_for_change
from experiment.store.tables import LATEST_REVISION, metadata
from stimuli.errors import UserError

MIGRATIONS = Path(__file__).parent / "migrations"
BACKUPS = "backups"


def revision_of(connection: Connection) -> str | None:
    """Return the migration that a database stands at, or None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def upgrade(engine: Engine, *, scripts: Path = MIGRATIONS, latest: str = LATEST_REVISION) -> Path | None:
    """Run the migrations that a database still lacks, all of them or none."""
    with engine.connect() as connection, connection.begin():
        found = revision_of(connection)
        _refuse_strange(connection, found)
    if found == latest:
        return None
    backup = _back_up(Path(engine.url.database or ""), found) if found and is_sqlite(engine) else None
    with engine.connect() as connection, connection.begin():
        lock_for_change(connection)
        # another process may have upgraded while this one waited for the lock
        if revision_of(connection) != latest:
            _run(connection, scripts, latest)
    return backup


def _refuse_strange(connection: Connection, found: str | None) -> None:
    if found is not None or not is_sqlite(connection):
        return
    ours = set(metadata.tables)
    strange = sorted(set(inspect(connection).get_table_names()) - ours)
    if strange:
        raise UserError(
            f"{connection.engine.url.database} belongs to something else: it has a table {strange[0]!r}",
            mend="Move that file away; wrods then makes its own.",
        )


def _run(connection: Connection, scripts: Path, latest: str) -> None:
    # imported here: an up-to-date store opens without Alembic
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    # Alembic loads the scripts outside the package, where its modules need not be importable
    config.attributes.update(connection=connection, erasure=erasure)
    try:
        command.upgrade(config, latest)
    except CommandError as error:
        if "Can't locate revision" not in str(error):
            raise
        raise UserError(
            "this store was written by a newer version of wrods",
            mend="Update wrods (pip install --upgrade wrods); the store was left as it is.",
        ) from error


def _back_up(database: Path, revision: str) -> Path:
    folder = database.parent / BACKUPS
    folder.mkdir(exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = folder / f"{database.stem}-{re.sub(r'[^0-9A-Za-z]', '', revision)}-{moment}.db"
    copy.touch(mode=0o600, exist_ok=False)
    source = sqlite3.connect(database)
    destination = sqlite3.connect(copy)
    try:
        source.backup(destination)
    finally:
        destination.close()
        source.close()
    return copy
