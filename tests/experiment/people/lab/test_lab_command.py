"""``wrods serve --lan`` and ``--kiosk`` as an experimenter meets them."""

from __future__ import annotations

import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiment.people.lab.serving import Meeting, firewall_hint
from tests.conftest import ROOT
from tests.experiment.commands import wrods

ADDRESS = "127.0.0.1"


@contextmanager
def serving(folder: Path, config: Path, *options: str) -> Iterator[Callable[[str], str]]:
    """Run the command; the function waits until it has said something that fits and returns all that it said."""
    said = config.parent / "said.txt"
    command = [sys.executable, "-m", "experiment.cli", "serve", str(folder), "--port", "0", "--no-browser"]
    environment = os.environ | {"XDG_CONFIG_HOME": str(config), "PYTHONUNBUFFERED": "1"}
    with said.open("w") as out:
        process = subprocess.Popen(
            [*command, *options], cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
        )

    def wait_for(pattern: str) -> str:
        end = time.monotonic() + 60
        while not re.search(pattern, said.read_text("utf-8")):
            assert process.poll() is None and time.monotonic() < end, said.read_text("utf-8")
            time.sleep(0.1)
        return said.read_text("utf-8")

    try:
        yield wait_for
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert "Every confirmed answer is stored." in said.read_text("utf-8") and process.returncode == 0


@pytest.mark.full
def test_lan_prints_where_stations_come_in_and_what_to_fetch_and_tries_it(make_study, tmp_path):
    config = tmp_path / "config"
    with serving(make_study().folder, config, "--lan", "--host", ADDRESS) as wait_for:
        said = wait_for(r"reached\s+127\.0\.0\.1:\d+")
        (port,) = set(re.findall(r"https://127\.0\.0\.1:(\d+)/", said))
        authority = config / "wrods" / "lab" / "authority.pem"
        context = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection(ADDRESS, int(port), context=context)
        connection.request("GET", "/certificate")
        page = connection.getresponse().read().decode()
        (fingerprint,) = re.findall(r"fingerprint ([0-9A-F:]{95})", said)
        assert fingerprint in page and "/kiosk" in said


@pytest.mark.full
def test_kiosk_prints_a_shortcut_for_each_system_and_makes_no_certificate(make_study, tmp_path):
    config = tmp_path / "config"
    with serving(make_study().folder, config, "--kiosk", "--host", ADDRESS) as wait_for:
        said = wait_for(r"reached\s+127\.0\.0\.1:\d+")
    for system in ("Windows", "macOS", "Linux"):
        assert re.search(
            rf"{system}\s.*--unsafely-treat-insecure-origin-as-secure=http://127\.0\.0\.1:\d+ ", said
        )
    assert not (config / "wrods" / "lab").exists()


def test_stations_and_a_public_address_do_not_go_together(make_study):

    folder = str(make_study().folder)
    told = wrods("serve", folder, "--lan", "--public", "https://study.example")
    assert told.exit_code != 0 and "--public is for a server behind a proxy" in told.output


def test_a_station_is_named_when_it_first_connects_and_only_then():
    told: list[str] = []
    meeting = Meeting([ADDRESS], told.append)
    for address in ("10.0.0.31", "10.0.0.31", ADDRESS, "10.0.0.32", "127.0.0.1", "::1"):
        meeting.meet(address)
    assert [line.split() for line in told] == [
        ["station", "10.0.0.31", "has", "connected"],
        ["station", "10.0.0.32", "has", "connected"],
    ]


def test_a_firewall_that_is_on_is_named_with_the_command_that_opens_the_port(tmp_path, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("firewalld is Linux's")
    program = tmp_path / "firewall-cmd"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --state) echo running;; --query-port=8000/tcp) echo "$OPEN";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPEN", "no")
    assert firewall_hint(8000) == "firewalld is on: sudo firewall-cmd --add-port=8000/tcp"
    monkeypatch.setenv("OPEN", "yes")
    assert firewall_hint(8000) is None
