"""Two servers for one study: who may serve it, who is refused, and that a claim ends with its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from experiment.people.serving_lock import _SharedClaim, serving
from experiment.store.database import address_of
from stimuli.errors import UserError
from tests.experiment.commands import wrods

ROOT = Path(__file__).resolve().parents[3]
KEY, OTHER_KEY = b"a signing key for tests", b"another signing key"


def test_a_second_server_of_a_study_is_refused_and_told_who_serves_it(make_study):
    study = make_study()
    with serving(address_of(study.folder), study.id, KEY) as announce:
        announce("http://localhost:8123/small/")
        told = wrods("serve", study.folder, "--no-browser", "--port", "0")
        assert told.exit_code == 1
        assert (
            f"small is already being served by process {os.getpid()} on {socket.gethostname()}" in told.output
        )
        assert "UTC at http://localhost:8123/small/" in told.output and "stop it first" in told.output
        assert not (study.folder / "study.db").exists(), "the second server touches nothing"
        run = wrods("run", study.folder, "--model", "baseline:random", "--yes")
        assert run.exit_code == 0, run.output
    with serving(address_of(study.folder), study.id, KEY):
        pass
    assert not list(study.folder.glob("*.serving-*.json"))


def test_studies_are_claimed_one_by_one(tmp_path):
    address = address_of(tmp_path)
    with (
        serving(address, "one", KEY),
        serving(address, "two", KEY),
        pytest.raises(UserError, match="one is already being served"),
        serving(address, "one", KEY),
    ):
        pass


def test_a_claim_ends_with_its_process_however_it_ends(tmp_path):
    code = (
        "import sys, time; from experiment.people.serving_lock import serving; "
        "from experiment.store.database import address_of\n"
        "with serving(address_of(sys.argv[1]), 'small', b'key') as announce:\n"
        "    announce('http://here/'); print('held', flush=True); time.sleep(60)"
    )
    held = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert held.stdout is not None and held.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=rf"process {held.pid} on .* at http://here/"),
            serving(address_of(tmp_path), "small", KEY),
        ):
            pass
    finally:
        held.kill()
        held.wait()
    with serving(address_of(tmp_path), "small", KEY):
        pass


def test_servers_on_postgresql_share_a_study_with_one_signing_key_and_not_with_two(postgres_url):
    address = address_of(postgres_url)
    with serving(address, "small", KEY), serving(address, "small", KEY):
        with (
            pytest.raises(
                UserError, match=rf"another signing key: by wrods serve on .*, process {os.getpid()}"
            ),
            serving(address, "small", OTHER_KEY),
        ):
            pass
        with serving(address, "another-study", OTHER_KEY):
            pass
    with serving(address, "small", OTHER_KEY):
        pass


def test_a_claim_on_postgresql_is_taken_again_after_its_connection_broke(postgres_url):
    address = address_of(postgres_url)
    claim = _SharedClaim(address, "small", KEY)
    claim.take()
    assert claim._connection is not None
    claim._connection.connection.dbapi_connection.close()  # type: ignore[union-attr]
    claim.renew()
    with pytest.raises(UserError, match="another signing key"), serving(address, "small", OTHER_KEY):
        pass
    claim.close()
    with serving(address, "small", OTHER_KEY):
        pass
