"""The way back to a platform, in a real browser: offered only when the server has every answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from experiment.bundle import bundle_folder
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.return_links import release
from experiment.store.queries import sessions_overview
from stimuli.errors import UserError
from tests.experiment.people.recruitment.conftest import prolific_id

sync_api = pytest.importorskip("playwright.sync_api")
PlaywrightTimeout = sync_api.TimeoutError
BACK = "Return to the recruitment website"
pytestmark = pytest.mark.browser
AXE = Path(__file__).resolve().parents[4] / "static" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    try:
        bundle_folder()
    except UserError as error:
        pytest.skip(str(error))
    context = chromium.new_context(viewport={"width": 1366, "height": 768})
    yield context.new_page()
    context.close()


def walk(page: Any, until: str) -> None:
    """Answer whatever the page shows until some words appear."""
    stage = page.locator("#wrods-root")
    onward = page.locator("button.main", has_not_text=BACK)
    for _ in range(1500):
        words = stage.inner_text()
        if until in words:
            return
        if "I agree" in words:
            page.get_by_role("button", name="I agree").click()
        elif onward.count():
            # the page may have gone on since its words were read; the way back is not to be taken by mistake
            with suppress(PlaywrightTimeout):
                onward.first.click(timeout=2000)
        else:
            page.keyboard.press("f" if "Which word is it?" in words else "Space")
        page.wait_for_timeout(40)
    pytest.fail(f"the page never said {until!r}; it says {stage.inner_text()!r}")


def states(site: Any) -> list[str]:
    with site.store.read() as connection:
        return [row["state"] for row in sessions_overview(connection)]


def test_a_participant_of_prolific_goes_back_with_the_code_when_all_is_stored(recruiting, prolific, page):
    site = recruiting("prolific")
    arrived: list[tuple[str, list[str]]] = []

    def prolific_site(route: Any) -> None:
        arrived.append((route.request.url, states(site)))
        route.fulfill(body="Thank you", content_type="text/plain")

    page.route("https://app.prolific.com/**", prolific_site)
    address = f"http://127.0.0.1:{site.port}/small/?{urlencode(prolific)}"
    page.goto(address)
    walk(page, "C1DONE")
    assert arrived == [], "nobody is sent away before the server has everything"
    page.get_by_role("button", name=BACK).click()
    page.wait_for_url("https://app.prolific.com/**")
    assert arrived == [("https://app.prolific.com/submissions/complete?cc=C1DONE", ["finished"])]
    page.goto(address)
    link = page.get_by_role("link", name="Back to Prolific")
    assert link.get_attribute("href") == "https://app.prolific.com/submissions/complete?cc=C1DONE"


@pytest.mark.full
def test_a_page_whose_session_was_held_shows_the_code_once_it_is_released(make_study, serve_study, page):
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: link}\n"))
    site = serve_study(
        study, recruitment=recruitment_for(study, {}), clock=lambda: datetime.fromtimestamp(0, UTC)
    )
    address = f"http://127.0.0.1:{site.port}/small/"
    held = site.service.pack.texts["return_held"]
    page.goto(address)
    walk(page, held)
    with site.store.read() as connection:
        (row,) = sessions_overview(connection)
    again = page.context.new_page()
    again.goto(address)
    again.get_by_text(held).wait_for()
    site.store.write(lambda connection: release(connection, row["session_id"])).result()
    for opened in (page, again):
        opened.reload()
        opened.get_by_text(row["completion_code"]).wait_for()
    assert len(states(site)) == 1


def test_who_cannot_begin_reads_why_and_nothing_asks_them_to_start(recruiting, prolific, page):
    site = recruiting("prolific", wanted=1)
    site.begin(platform=prolific | {"PROLIFIC_PID": prolific_id("somebody"), "SESSION_ID": "else"})
    page.goto(f"http://127.0.0.1:{site.port}/small/?{urlencode(prolific)}")
    assert page.get_by_role("heading", name="All places are taken at the moment").is_visible()
    assert page.get_by_role("button").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert len(states(site)) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_those_who_cannot_begin(recruiting, page, scheme):
    if not AXE.exists():
        pytest.skip("axe-core comes with the development packages of static/")
    site = recruiting("mturk", {}, wanted=1)
    link = {"workerId": "A1", "assignmentId": "3X", "hitId": "3H"}
    participant = site.begin(platform=link)
    for index in range(len(participant.trials())):
        participant.answer(index)
    participant.finish(len(participant.trials()))
    page.emulate_media(color_scheme=scheme)
    for told, given in {
        "The link is incomplete": {},
        "Preview": {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"},
        "You have already taken part": link,
        "This study is complete": link | {"workerId": "A2", "assignmentId": "3Y"},
    }.items():
        page.goto(f"http://127.0.0.1:{site.port}/small/?{urlencode(given)}")
        page.get_by_role("heading", name=told).wait_for()
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("() => axe.run(document)")["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], told
