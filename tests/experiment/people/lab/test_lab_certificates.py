"""The lab's own certificate authority: made once, kept private, unable to vouch for anyone else's site."""

from __future__ import annotations

import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from experiment.people.lab.serving import server_certificate
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.lab.stations import SYSTEMS, command, shortcut
from stimuli.errors import UserError

NAMES = ["lab-pc", "lab-pc.local"]


def asked_for(chain: Path) -> tuple[list[str], list[str]]:
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName), [
        str(one) for one in names.get_values_for_type(x509.IPAddress)
    ]


def test_the_authority_is_made_once_and_the_certificate_only_when_an_address_is_new(tmp_path):
    first = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5", "fd00::2"])
    assert first.is_renewed and asked_for(first.chain) == (NAMES, ["10.0.0.5", "fd00::2"])
    again = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5"])
    assert not again.is_renewed and again.fingerprint == first.fingerprint
    moved = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.9"])
    assert moved.is_renewed and moved.fingerprint == first.fingerprint
    assert asked_for(moved.chain) == (NAMES, ["10.0.0.9"])
    later = datetime.now(UTC) + timedelta(days=380)
    renewed = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.9"], moment=later)
    assert renewed.is_renewed and renewed.fingerprint == first.fingerprint, "before it ends"
    renamed = server_certificate(tmp_path / "lab", ["other-pc"], ["10.0.0.9"])
    assert renamed.is_renewed and renamed.fingerprint != first.fingerprint, "an authority for the new name"


def test_stations_accept_the_certificate_for_its_names_alone(tmp_path):
    made = server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    leaf = x509.load_pem_x509_certificate(made.chain.read_bytes())
    builder = PolicyBuilder().store(Store([authority])).time(datetime.now(UTC))
    builder.build_server_verifier(x509.DNSName("lab-pc")).verify(leaf, [])
    with pytest.raises(VerificationError):
        builder.build_server_verifier(x509.DNSName("bank.example")).verify(leaf, [])


def test_the_authority_can_vouch_for_this_computer_s_names_only(tmp_path):
    made = server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    names = [one.value for one in limits.value.permitted_subtrees or [] if isinstance(one, x509.DNSName)]
    assert limits.critical and set(names) == {"localhost", "local", *NAMES}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
def test_private_keys_are_readable_by_their_owner_alone(tmp_path):
    server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5"])
    for name in ("authority.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "lab" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "lab").stat().st_mode) == 0o700


def test_damaged_files_are_named_with_a_way_out(tmp_path):
    server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    (tmp_path / "authority.key").write_text("nothing")
    with pytest.raises(UserError, match=str(tmp_path)):
        server_certificate(tmp_path, NAMES, ["10.0.0.5"])


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
    for path in ("/certificate/authority.key", "/certificate/../authority.key", "/kiosk/small/authority.key"):
        assert lab.caller().get(path).status == 404, "private keys have no address"


def test_each_system_gets_a_shortcut_with_the_switch_and_a_profile_of_its_own(lab):
    assert SWITCH in lab.caller().get("/kiosk").text
    for system in SYSTEMS:
        file = lab.caller().get(f"/kiosk/small/{system.file}", Host="10.0.0.5:8000")
        assert file.status == 200 and SWITCH in file.text and "--user-data-dir=" in file.text
        assert "--kiosk" in file.text and PAGE in file.text
    # and never names a host that is not this computer's
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
