"""After a withdrawal no file of a PostgreSQL server holds the answers, or it is said which does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from experiment.integrity import withdrawal as w
from experiment.people.serving_lock import serving
from experiment.store import Store, open_store
from experiment.store import erasure as rewriting
from experiment.store import records as r
from experiment.store.backups import back_up
from experiment.store.erasure import copies_elsewhere
from tests.experiment.commands import wrods
from tests.experiment.postgres import cluster, new_database, postgres_programs, tell
from tests.experiment.store.conftest import begin, look

ARCHIVE = "the archive of PostgreSQL's write-ahead log (archive_mode on)"
ANSWERS = {"P001": "I am Xanthippe of Alopeke", "P002": "Sokrates of Alopeke am I"}
Make = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def running() -> Iterator[str | None]:
    """Run a server of these tests' own, whose every file they look into; it archives its log."""
    if postgres_programs() is None:
        yield None
        return
    with cluster("archive_mode=on", "archive_command=true", segment_mb=1) as address:
        yield address


@pytest.fixture
def server(running: str | None, require: Callable[[str, object, str], None]) -> str:
    require("postgres", running, "PostgreSQL's server programs are not installed")
    require("postgres", shutil.which("pg_dump"), "pg_dump is not installed")
    assert running is not None
    return running


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study").mkdir()
    return tmp_path / "study"


def files_with(server: str, answer: str) -> set[str]:
    """Return which files of a server hold an answer: of its databases, its log, whatever there is."""
    data = Path(str(make_url(server).query["host"])) / "data"
    return {
        path.relative_to(data).parts[0]
        for path in data.rglob("*")
        if path.is_file() and answer.encode() in path.read_bytes()
    }


def fill(store: Store, address: str, plan: dict[str, Any], make_trial: Make) -> dict[str, str]:
    """Let two people give their answer 50 times each, and PostgreSQL write them to disk and sample them."""
    ids = {}
    for reader, answer in ANSWERS.items():
        ids[reader] = begin(store, plan, reader)

        def write(c: Any, session: str = ids[reader], answer: str = answer) -> None:
            for index in range(50):
                r.store_trial(c, make_trial(session, index, response_raw=answer))

        store.write(write).result()
    tell(address, "ANALYZE", "CHECKPOINT")
    return ids


def test_no_file_of_the_server_holds_the_answers_of_one_or_of_all(server, study, plan, make_trial):
    address = new_database(server)
    with open_store(address) as store:
        ids = fill(store, address, plan, make_trial)
        hers, his = ANSWERS.values()
        assert files_with(server, hers) == files_with(server, his) == {"base", "pg_wal"}
        _, scrubbed = w.withdraw(store, "positions", study, [ids["P001"]], actor="me")
        assert files_with(server, hers) == set() and files_with(server, his) == {"base"}
        w.withdraw(store, "positions", study, [ids["P002"]], actor="participant")
        assert files_with(server, his) == set(), "samples of a table that is empty now go too"
    assert [line.partition(":")[0] for line in scrubbed.left] == [ARCHIVE]


def test_a_role_without_rights_is_told_what_stays_and_which_commands_let_it_erase(
    server, make_study, plan, make_trial, monkeypatch
):
    tell(server, "CREATE ROLE plain LOGIN")
    address = new_database(server)
    tell(address, "GRANT ALL ON SCHEMA public TO plain")
    theirs = address.replace("wrods@", "plain@")
    folder = make_study().folder
    monkeypatch.setenv("WRODS_STORE", theirs)
    with open_store(theirs) as store:
        fill(store, address, plan | {"study": "small"}, make_trial)
    done = wrods("withdraw", folder, "--participant", "P001", "--yes", "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 1 and told["erased"]["trials"] == 50 and len(told["left"]) == 3
    assert ARCHIVE in told["left"][2] and any(ARCHIVE in line for line in told["beyond"])
    samples, log = (re.split(": (?=ALTER|GRANT)", line) for line in told["left"][:2])
    assert "pg_statistic" in samples[0] and " plain " in samples[0]
    assert "64MB" in log[0]
    assert "pg_wal" in files_with(server, ANSWERS["P001"])
    tell(address, samples[1], *log[1].split("; "))
    again = wrods("withdraw", folder, "--again")
    assert files_with(server, ANSWERS["P001"]) == set()
    (line,) = [line for line in again.output.splitlines() if line.startswith("Not erased")]
    assert again.exit_code == 1 and ARCHIVE in line


def test_a_dump_that_is_restored_brings_no_answers_back(
    server, make_study, plan, make_trial, tmp_path, monkeypatch
):
    address = new_database(server)
    folder = make_study().folder
    monkeypatch.setenv("WRODS_STORE", address)
    with open_store(address) as store:
        ids = fill(store, address, plan | {"study": "small"}, make_trial)
        dump = back_up(store.address, tmp_path / "stick", stem="small")
        w.withdraw(store, "small", folder, [ids["P001"]], actor="me")
    told = json.loads(wrods("restore", folder, dump, "--yes", "--json").stdout)
    assert (told["withdrawn"], told["trials"], len(told["left"])) == (1, 50, 1)
    assert files_with(server, ANSWERS["P001"]) == set()


def test_a_replication_slot_that_keeps_the_log_is_named(server, study, plan, make_trial, monkeypatch):
    monkeypatch.setattr(rewriting, "ROUNDS", 2)
    address = new_database(server)
    tell(address, "SELECT pg_create_physical_replication_slot('standby', true)")
    with open_store(address) as store:
        ids = fill(store, address, plan, make_trial)
        _, scrubbed = w.withdraw(store, "positions", study, [ids["P001"]], actor="me")
        assert " standby" in scrubbed.left[0]
        assert files_with(server, ANSWERS["P001"]) == {"pg_wal"}
        tell(address, "SELECT pg_drop_replication_slot('standby')")
        scrubbed = w.scrub(store, "positions", study)
        assert len(scrubbed.left) == 1 and files_with(server, ANSWERS["P001"]) == set()


def test_copies_that_the_server_makes_are_listed(server, tmp_path):
    address = new_database(server)
    tell(address, f"ALTER DATABASE {make_url(address).database} SET log_statement = 'mod'")
    programs = postgres_programs()
    assert programs is not None
    receive = [programs / "pg_receivewal", f"--dbname={server}", f"--directory={tmp_path}", "--no-loop"]
    with subprocess.Popen(receive, stderr=subprocess.DEVNULL) as receiver, open_store(address) as store:
        try:
            told: list[str] = []
            while len(told) < 3:
                assert receiver.poll() is None
                told = look(store, copies_elsewhere)
        finally:
            receiver.kill()
    for line, named in zip(told, (ARCHIVE, "(pg_receivewal)", "log_statement"), strict=True):
        assert named in line


def test_what_is_put_off_is_named_and_erased_later(server, study, plan, make_trial, monkeypatch):
    address = new_database(server)

    @contextmanager
    def another(isolation: str) -> Iterator[None]:
        engine = create_engine(
            address.replace("postgresql:", "postgresql+psycopg:"), isolation_level=isolation
        )
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM trials")
            yield
        engine.dispose()

    @contextmanager
    def served_slowly() -> Iterator[None]:
        # a lock that is waited for counts as time that the rewriting takes
        with serving(store.address, "positions", b"key"), another("READ COMMITTED"):
            yield

    with open_store(address) as store:
        ids = fill(store, address, plan, make_trial)
        limited: list[tuple[Any, str, Any, str]] = [
            (another("REPEATABLE READ"), "LOCK_TRIES", 1, "table chain: "),
            (another("READ COMMITTED"), "LOCK_S", 0.1, "table trials: "),
            (served_slowly(), "SERVED_S", 0.2, " 0.2 s"),
            (nullcontext(), "MOST_BYTES", 2**20, "write-ahead log"),
        ]
        monkeypatch.setattr(rewriting, "LOCK_TRIES", 1)
        for circumstance, name, value, said in limited:
            with circumstance, monkeypatch.context() as limit:
                limit.setattr(rewriting, name, value)
                w.erase_rows(store, study, [ids["P001"]], actor="participant")
                assert said in "\n".join(w.clean_up(store, "positions", study))
                assert files_with(server, ANSWERS["P001"]) != set()
        assert len(w.clean_up(store, "positions", study)) == 1
        assert files_with(server, ANSWERS["P001"]) == set()
        assert w.clean_up(store, "positions", study) == [], "nothing is due any more"
