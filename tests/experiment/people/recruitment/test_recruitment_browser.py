"""The way back to a platform, in a real browser: offered only when the server has every answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from experiment.people.recruitment.return_links import release
from tests.experiment.people.browsing import BACK, TEXTS, fits, violations_light_and_dark, walk

pytestmark = pytest.mark.browser


def test_a_participant_of_prolific_goes_back_with_the_code_when_all_is_stored(recruiting, prolific, page):
    site = recruiting("prolific")
    arrived: list[tuple[str, list[str]]] = []

    def prolific_site(route: Any) -> None:
        arrived.append((route.request.url, [row["state"] for row in site.sessions]))
        route.fulfill(body="Thank you", content_type="text/plain")

    page.route("https://app.prolific.com/**", prolific_site)
    address = f"{site.address}?{urlencode(prolific)}"
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
def test_a_page_whose_session_was_held_shows_the_code_once_it_is_released(recruiting, page):
    site = recruiting("link", {}, clock=lambda: datetime.fromtimestamp(0, UTC))
    address = site.address
    held = site.service.pack.texts["return_held"]
    page.goto(address)
    walk(page, held)
    (row,) = site.sessions
    again = page.context.new_page()
    again.goto(address)
    again.get_by_text(held).wait_for()
    site.store.write(lambda connection: release(connection, row["session_id"])).result()
    for opened in (page, again):
        opened.reload()
        opened.get_by_text(row["completion_code"]).wait_for()
    assert len([row["state"] for row in site.sessions]) == 1


def test_who_cannot_begin_reads_why_on_pages_without_a_button_in_which_axe_finds_nothing(recruiting, page):
    site = recruiting("mturk", {}, wanted=1)
    link = {"workerId": "A1", "assignmentId": "3X", "hitId": "3H"}
    site.begin(platform=link).complete()
    for told, given in {
        "missing_title": {},
        "preview_title": {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"},
        "again_title": link,
        "full_title": link | {"workerId": "A2", "assignmentId": "3Y"},
    }.items():
        page.goto(f"{site.address}?{urlencode(given)}")
        page.get_by_role("heading", name=TEXTS[told]).wait_for()
        assert violations_light_and_dark(page) == [], told
        assert page.get_by_role("button").count() == 0 and fits(page), told
