"""Stations in real Chromium, off localhost: over plain http, over the certificate, by the kiosk switch, through power cuts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from experiment.people.app import create_app
from experiment.people.connections import lan_addresses
from experiment.people.lab.serving import ServerCertificate, open_lab
from experiment.people.lab.stations import SWITCHES
from experiment.people.service import service_for
from experiment.store import open_store
from experiment.study import Study
from tests.conftest import PATIENCE_S, new_context, program
from tests.experiment.people.browsing import (
    QUESTION,
    TEXTS,
    eventually,
    fits,
    violations_light_and_dark,
    walk,
)
from tests.experiment.people.conftest import PIN, Running

pytestmark = pytest.mark.browser
TRIALS = 5  # one of practice, four of the block


@dataclass
class LabSite(Running):
    """A study served to stations at this computer's own network address."""

    certificate: ServerCertificate | None = None
    host: str = ""

    def page(self, scheme: str = "http", query: str = "") -> str:
        return f"{scheme}://{self.host}:{self.port}/small/{query}"

    def trials_of(self, participant: str) -> list[dict[str, Any]]:
        (session,) = (one["session_id"] for one in self.sessions if one["participant_id"] == participant)
        return [row for row in self.trials if row["session_id"] == session]


@pytest.fixture
def lab(
    make_study: Callable[..., Study], settings: Any, tmp_path: Path, require: Callable[..., None]
) -> Iterator[LabSite]:
    addresses = lan_addresses()
    require("chromium", addresses, "this computer has no network address")
    study = make_study()
    with ExitStack() as opened:
        store = opened.enter_context(open_store(study.folder))
        service = service_for(study, store)
        app = create_app({study.id: service}, config=settings)
        at = open_lab(app, host=None, port=0, pin=PIN, certificates=tmp_path / "lab", tell=lambda _: None)
        threading.Thread(target=at.server.run, daemon=True).start()
        opened.callback(at.server.close)
        yield LabSite(at.server.port, app, store, service, certificate=at.certificate, host=addresses[0])


@pytest.fixture
def station(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a page in a browser of its own, with switches; an error on the page fails the test at the end."""
    troubles: list[str] = []
    with ExitStack() as running:

        def open_station(address: str, *switches: str) -> Any:
            browser = chromium
            if switches:
                browser = chromium.browser_type.launch(
                    executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu", *switches]
                )
                running.callback(browser.close)
            context = new_context(browser)
            running.callback(context.close)
            page = context.new_page()
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.goto(address)
            return page

        yield open_station
    assert troubles == []


def name_station(page: Any, name: str) -> None:
    page.get_by_label(TEXTS["station_name"]).fill(name)
    page.get_by_role("button", name=TEXTS["station_keep"]).click()


def begin(page: Any, number: str) -> None:
    page.get_by_label("Participant number").fill(number)
    page.get_by_role("button", name="Start").click()


def go_on(page: Any, number: str, trial: int) -> None:
    """Enter the experimenter's PIN where an unfinished session is shown, and continue it."""
    page.get_by_label("Experimenter's PIN").fill(PIN)
    page.get_by_role("button", name=f"Continue {number} at trial {trial}").click()


def assert_whole(rows: list[dict[str, Any]]) -> None:
    """Every trial once, with its times."""
    assert sorted({row["trial_index"] for row in rows}) == list(range(TRIALS))
    assert len(rows) == TRIALS
    for row in rows:
        assert row["rt"] > 0 and row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"])
        assert row["onset_ts"] > 0 and row["frame_period"] > 0


def facts(page: Any) -> dict[str, bool]:
    found: dict[str, bool] = page.evaluate(
        "() => ({secure: isSecureContext, isolated: crossOriginIsolated, uuid: 'randomUUID' in crypto, "
        "locks: 'locks' in navigator, persist: typeof navigator.storage?.persist === 'function'})"
    )
    return found


def test_over_plain_http_a_station_says_what_it_lacks_and_loses_nothing(lab, station):
    page = station(lab.page())
    name_station(page, "7")
    assert set(facts(page).values()) == {False}
    notice = page.locator(".lacking")
    notice.wait_for()
    said = notice.inner_text()
    assert all(TEXTS[f"lacks_{name}"] in said for name in ("clock", "storage", "safe"))
    assert notice.get_by_role("link").get_attribute("href") == "/certificate"
    begin(page, "P014")
    walk(page, "completion code")
    (session,) = lab.sessions
    assert (session["state"], session["participant_id"]) == ("finished", "P014")
    assert session["station"] == "Station 07"
    assert_whole(lab.trials_of("P014"))


def test_the_kiosk_switch_gives_the_same_without_a_certificate(lab, station):
    origin = lab.page().removesuffix("/small/")
    plain = [switch for switch in SWITCHES if switch != "--kiosk"]  # headless Chromium has no screen to fill
    page = station(lab.page(), *plain, f"--unsafely-treat-insecure-origin-as-secure={origin}")
    name_station(page, "7")
    assert set(facts(page).values()) == {True} and page.locator(".lacking").count() == 0


@dataclass
class Computer:
    """A station's Chromium as a process of its own, which a power cut ends."""

    process: subprocess.Popen[bytes]
    browser: Any
    page: Any

    def cut_power(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)


@pytest.fixture
def computer(chromium: Any) -> Iterator[Callable[[Path, str], Computer]]:
    started: list[subprocess.Popen[bytes]] = []

    def switch_on(profile: Path, address: str) -> Computer:
        port_file = profile / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        process = subprocess.Popen(
            [
                str(program("chromium")), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--remote-debugging-port=0", f"--user-data-dir={profile}", "--window-size=1366,768", "about:blank",
            ],
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        eventually(lambda: port_file.exists() and len(port_file.read_text().split()) > 1)
        port = port_file.read_text().split()[0]
        browser = chromium.browser_type.connect_over_cdp(f"http://127.0.0.1:{port}")
        browser.contexts[0].set_default_timeout(1000 * PATIENCE_S)
        page = browser.contexts[0].new_page()
        page.goto(address)
        return Computer(process, browser, page)

    yield switch_on
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)


def test_after_a_power_cut_an_empty_browser_continues_at_the_right_trial(lab, computer, tmp_path):
    first = computer(tmp_path / "before", lab.page(query="?station=7"))
    begin(first.page, "P014")
    walk(first.page, "completion code", answers=2)
    first.page.get_by_text(QUESTION).wait_for()
    eventually(lambda: len(lab.trials_of("P014")) == 2)
    first.cut_power()

    second = computer(tmp_path / "after", lab.page(query="?station=7"))
    page = second.page
    page.get_by_text(TEXTS["unfinished_here"]).wait_for()
    page.get_by_role("button", name="Continue P014 at trial 2").click()
    go_on(page, "P014", 2)
    page.get_by_text("You are continuing as participant P014.").wait_for()
    walk(page, "completion code")
    assert_whole(lab.trials_of("P014"))
    attempts = {row["trial_index"]: row["attempt"] for row in lab.trials_of("P014")}
    assert attempts == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}, "the trial that was on the screen is not new"
    (session,) = lab.sessions
    assert session["state"] == "finished"


@pytest.mark.full
def test_trials_that_could_not_be_sent_before_a_power_cut_go_out_from_the_start_screen(
    lab, computer, tmp_path
):
    first = computer(tmp_path / "kept", lab.page(query="?station=7"))
    begin(first.page, "P014")
    walk(first.page, "completion code", answers=2)
    eventually(lambda: len(lab.trials_of("P014")) == 2)
    first.browser.contexts[0].set_offline(True)
    walk(first.page, "completion code", answers=2)
    assert len(lab.trials_of("P014")) == 2
    first.cut_power()

    page = computer(tmp_path / "kept", lab.page(query="?station=7")).page
    page.get_by_label("Participant number").wait_for()
    eventually(lambda: len(lab.trials_of("P014")) == 4)
    assert lab.sessions[0]["state"] == "started"
    page.get_by_role("button", name="Continue P014 at trial 4").wait_for()


@pytest.mark.full
def test_the_start_screen_ends_a_session_with_a_reason_and_takes_a_new_participant(lab, station):
    page = station(lab.page(query="?station=7"))
    begin(page, "P014")
    walk(page, "completion code", answers=2)
    eventually(lambda: len(lab.trials_of("P014")) == 2)
    other = station(lab.page(query="?station=7"))
    other.get_by_role("button", name="End P014").click()
    other.get_by_role("button", name="End the session of P014").click()
    other.get_by_text("Please enter a reason").wait_for()
    other.get_by_label("Reason").fill("fire alarm")
    other.get_by_label("Experimenter's PIN").fill(PIN)
    other.get_by_role("button", name="End the session of P014").click()
    other.get_by_text("The session of P014 has ended.").wait_for()
    assert lab.sessions[0]["ended_reason"] == "experimenter: fire alarm"
    begin(other, "P014")
    other.get_by_text(TEXTS["number_ended"].format(participant="P014")).wait_for()
    begin(other, "P015")
    walk(other, "completion code")
    begin_again = other.get_by_role("button", name=re.compile("another participant"))
    begin_again.click()
    begin(other, "P015")
    other.get_by_text("P015 has already taken part").wait_for()


def test_the_start_screens_pass_axe_in_light_and_dark_and_ask_for_the_pin(lab, station):
    page = station(lab.page())
    page.get_by_label(TEXTS["station_name"]).wait_for()
    assert violations_light_and_dark(page) == []
    name_station(page, "7")
    begin(page, "P014")
    page.get_by_role("button", name="I agree").wait_for()
    other = station(lab.page(query="?station=7"))
    other.get_by_text(TEXTS["unfinished_here"]).wait_for()
    assert violations_light_and_dark(other) == []
    assert fits(other)
    other.get_by_role("button", name="Continue P014").click()
    other.get_by_role("heading", name="P014 has already begun").wait_for()
    assert violations_light_and_dark(other) == []
    other.keyboard.type("0000\n")
    other.get_by_text(TEXTS["pin_wrong"]).wait_for()
    begin(other, "P014")
    other.get_by_role("heading", name="P014 has already begun").wait_for()
    other.get_by_role("button", name="End P014").click()
    other.get_by_label("Experimenter's PIN").wait_for()
    assert violations_light_and_dark(other) == []
    other.keyboard.type("fire alarm\n")  # Enter goes to the PIN, which is empty
    other.keyboard.type(f"{PIN}\n")
    other.get_by_text("The session of P014 has ended.").wait_for()
    for path in ("/certificate", "/kiosk"):
        other.goto(lab.page().removesuffix("/small/") + path)
        assert violations_light_and_dark(other) == []


@pytest.mark.full
def test_a_browser_that_was_given_the_certificate_as_the_page_says_trusts_the_server(lab, chromium, tmp_path):
    certutil = shutil.which("certutil")
    if certutil is None:
        pytest.skip("certutil (libnss3-tools) is not installed")
    assert lab.certificate is not None
    folder = tmp_path / "home" / ".pki" / "nssdb"
    folder.mkdir(parents=True)
    database = f"sql:{folder}"
    file = str(lab.certificate.authority)
    subprocess.run([certutil, "-d", database, "-N", "--empty-password"], check=True)
    subprocess.run([certutil, "-d", database, "-A", "-t", "C,,", "-n", "wrods-lab", "-i", file], check=True)
    browser = chromium.browser_type.launch(
        executable_path=program("chromium"),
        args=["--no-sandbox"],
        env=os.environ | {"HOME": str(tmp_path / "home")},
    )
    page = new_context(browser).new_page()
    page.goto(lab.page("https"))
    assert set(facts(page).values()) == {True}
    browser.close()
