"""The experimenter's pages in a real browser: accessible, up to date, and a rating by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiment.rating import answers_of
from tests.experiment.people.browsing import fits, violations_light_and_dark
from tests.experiment.people.conftest import page_of
from tests.experiment.people.dashboard.test_dashboard_rating import rated

pytestmark = pytest.mark.browser
__all__ = ["rated"]


@pytest.fixture
def enter(tabs: Any) -> Callable[..., Any]:
    """Return a function that opens the pages of a server as the owner."""

    def open_page(site: Any, path: str = "/admin/") -> Any:
        page = tabs.new_page()
        base = f"http://127.0.0.1:{site.port}"
        page.goto(f"{base}/admin/enter/{site.state.make_link()}")
        page.goto(base + path)
        return page

    return open_page


def test_pages_fit_a_phone_and_axe_finds_nothing_on_any_in_light_and_dark(rated, enter):
    page = enter(rated)
    page.get_by_text("Up to date").wait_for()
    key = page.locator("tbody th a").first.get_attribute("href")
    base = f"http://127.0.0.1:{rated.port}"
    assert violations_light_and_dark(page) == []
    study = f"{base}/admin/small"
    for address in (
        base + key, f"{base}{key}/withdrawal", f"{study}/flags", f"{study}/quality", f"{study}/audit", f"{study}/rating",
        f"{study}/rating/agreement", f"{base}/admin/rating", f"{base}/admin/signed-in", f"{base}/admin/",
    ):  # fmt: skip
        page.goto(address)
        page.locator(".panel:visible").first.wait_for()
        assert violations_light_and_dark(page) == [], address
        page.set_viewport_size({"width": 390, "height": 844})
        assert fits(page), address
        widths = page.locator(".panel").evaluate_all("panels => panels.map(panel => panel.offsetWidth)")
        assert min(widths) > 300, address
        page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{study}/quality")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("This was check 1").wait_for()
    assert violations_light_and_dark(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{base}{page_of(rated.begin())}")
    page.get_by_role("button", name="Make a link").click()
    page.get_by_text("resume=").wait_for()
    assert fits(page)
    page.context.clear_cookies()
    page.goto(f"{base}/admin/login")
    assert violations_light_and_dark(page) == []


@pytest.mark.full
def test_the_live_page_follows_what_happens_without_reloading(site, enter):
    page = enter(site)
    page.get_by_text("No sessions yet").wait_for()
    person = site.begin(participant="17")
    person.answer(0)
    page.get_by_text("1 of 5").wait_for()
    link = page.locator("tbody th a").first
    link.focus()
    person.answer(1)
    page.get_by_text("2 of 5").wait_for()
    assert page.evaluate("() => document.activeElement.textContent") == "17"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="17").wait_for()


def test_the_times_of_a_session_are_drawn_and_told_without_the_drawing(site, enter):
    person = site.begin()
    person.answer_all()
    page = enter(site, page_of(person))
    plot = page.get_by_role("img", name="Response times of 5 trials")
    plot.wait_for()
    assert plot.locator("canvas").count() == 1
    assert page.locator("table.trials").get_by_text("813").count() == 1


def test_answers_are_rated_by_digits_and_arrows_alone(rated, enter):
    page = enter(rated, "/admin/small/rating")
    heading = page.locator("section.rate h2")
    assert heading.inner_text() == "Answer 1 of 6"
    page.keyboard.press("ArrowRight")
    page.get_by_text("Answer 2 of 6").wait_for()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Answer 1 of 6").wait_for()
    page.locator("#note").focus()
    page.keyboard.type("2 halves")
    page.keyboard.press("Enter")  # a note is never sent with a rating that nobody chose
    assert heading.inner_text() == "Answer 1 of 6"
    page.keyboard.press("Tab")
    page.locator("h1").click()
    for done in range(1, 7):
        page.keyboard.press("2")
        page.get_by_text(f"You have rated {done} of 6").wait_for()
    page.get_by_text("All done").wait_for()
    given = [one.ratings[0] for one in rated.read(answers_of, "small", rated.service.rating)]
    assert {one.value for one in given} == {2}
    assert sorted(one.note or "" for one in given) == ["", "", "", "", "", "2 halves"]
