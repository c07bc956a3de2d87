"""What an experimenter fetches at a station: certificate and kiosk shortcut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiment.people.lab.serving import server_certificate
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.lab.stations import SYSTEMS, command, shortcut
from stimuli.errors import UserError

PAGE = "http://10.0.0.5:8000/small/"
SWITCH = "--unsafely-treat-insecure-origin-as-secure=http://10.0.0.5:8000"


@pytest.fixture
def lab(site: Any, tmp_path: Path) -> Any:
    certificate = server_certificate(tmp_path / "lab", ["lab-pc"], ["10.0.0.5"])
    set_lab(
        site.app,
        Lab(
            has_stations=True,
            origins=("http://10.0.0.5:8000", "http://lab-pc:8000"),
            authority=certificate.authority,
            fingerprint=certificate.fingerprint,
        ),
    )
    site.certificate = certificate
    return site


def test_the_certificate_page_gives_the_certificate_and_its_fingerprint(lab):
    page = lab.caller().get("/certificate")
    assert page.status == 200 and lab.certificate.fingerprint in page.text
    for system in ("Windows", "macOS", "Linux", "Firefox"):
        assert system in page.text
    file = lab.caller().get("/certificate/wrods-lab.crt")
    assert file.text == lab.certificate.authority.read_text() and "PRIVATE" not in file.text
    assert file.headers["Content-Type"] == "application/x-x509-ca-cert"


def test_private_keys_have_no_address(lab):
    for path in ("/certificate/authority.key", "/certificate/../authority.key", "/kiosk/small/authority.key"):
        assert lab.caller().get(path).status == 404


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda one: one.name)
def test_each_system_gets_a_shortcut_with_the_switch_and_a_profile_of_its_own(lab, system):
    assert SWITCH in lab.caller().get("/kiosk").text
    file = lab.caller().get(f"/kiosk/small/{system.file}", Host="10.0.0.5:8000")
    assert file.status == 200 and SWITCH in file.text and "--user-data-dir=" in file.text
    assert "--kiosk" in file.text and PAGE in file.text


def test_a_shortcut_never_names_a_host_that_is_not_this_computer_s(lab):
    file = lab.caller().get("/kiosk/small/wrods-station.sh", Host="evil.example")
    assert "evil" not in file.text and SWITCH in file.text
    named = lab.caller().get("/kiosk/small/wrods-station.sh", Host="lab-pc:8000")
    assert "http://lab-pc:8000/small/" in named.text


def test_nothing_that_a_command_line_could_run_stands_in_a_shortcut():
    for page in ('http://a/"; rm -rf ~', "http://a/$(id)", "http://a/%TEMP%", "http://a/ b"):
        with pytest.raises(UserError):
            shortcut(SYSTEMS[0], page)
        with pytest.raises(UserError):
            command(SYSTEMS[2], page)
