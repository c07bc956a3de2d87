"""A PostgreSQL server of the tests' own, run by an unprivileged user from a scratch folder."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from experiment.store import open_store

__all__ = ["postgres_cluster", "postgres_url"]
# PostgreSQL refuses to run as root
_AS_USER: dict[str, Any] = (
    {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
)


def postgres_programs() -> Path | None:
    """Find the folder of PostgreSQL's server programs, which Debian keeps off the PATH."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which("initdb")
    folders += [Path(found).parent] if found else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def cluster(*settings: str, segment_mb: int = 16) -> Iterator[str]:
    """Run a PostgreSQL server of our own on a socket in a scratch folder; give the address of its first database."""
    programs = postgres_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="wrods-pg-"))
    if _AS_USER:
        shutil.chown(folder, _AS_USER["user"], _AS_USER["group"])
    data = folder / "data"
    run = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": folder} | _AS_USER
    subprocess.run(
        [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "wrods",
            "--auth=trust",
            "-E",
            "UTF8",
            "-N",
            f"--wal-segsize={segment_mb}",
        ],
        **run,
    )
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=100"
    options += "".join(f" -c {setting}" for setting in settings)
    subprocess.run(
        [programs / "pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start"], **run
    )
    try:
        yield f"postgresql://wrods@/postgres?host={folder}"
    finally:
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[str]:
    """Run the server of most tests."""
    with cluster() as address:
        yield address


def restart_postgres(url: str, how: str) -> None:
    """Stop the server of an address (``fast``: its clients are cut off; ``immediate``: it dies as in a crash) and start it again."""
    programs = postgres_programs()
    assert programs is not None
    folder = Path(url.partition("?host=")[2])
    command = [programs / "pg_ctl", "-D", folder / "data", "-w", "-m", how, "-l", folder / "log", "restart"]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=folder, **_AS_USER
    )


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, require: Callable[[str, object, str], None]) -> str:
    """Give the address of a new PostgreSQL database without rows."""
    require("postgres", postgres_programs(), "PostgreSQL's server programs are not installed")
    require("postgres", importlib.util.find_spec("psycopg"), "the extra `postgres` is not installed")
    cluster = request.getfixturevalue("postgres_cluster")
    return new_database(cluster, f"TEMPLATE {migrated(cluster)}")


@cache
def migrated(cluster: str) -> str:
    """Run the migrations once in a cluster; return the name of the database that other ones are copies of."""
    address = new_database(cluster)
    open_store(address).close()
    return str(make_url(address).database)


def new_database(cluster: str, how: str = "") -> str:
    """Make an empty database in a cluster and return its address."""
    name = f"study_{secrets.token_hex(4)}"
    tell(cluster, f"CREATE DATABASE {name} OWNER wrods {how}")
    return cluster.replace("/postgres?", f"/{name}?")


def tell(address: str, *statements: str) -> None:
    """Give statements to a database, as the superuser of its cluster."""
    engine = create_engine(
        address.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()
