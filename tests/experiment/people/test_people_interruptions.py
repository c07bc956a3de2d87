"""Ways to leave a session, under every policy, as the participant meets them: in a real browser, at a real server.

How a session goes on where it may be resumed, and what a reload does where it may not, is in test_people_tabs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.experiment.people.browsing import TEXTS, answer, eventually, into_block, item_shown, to_the_end
from tests.experiment.people.conftest import WITHOUT_BREAKS, WITHOUT_PRACTICE, settings_of, word_items
from tests.experiment.people.drills import Ledger, held_against, listen, rows_of

pytestmark = pytest.mark.browser
TRIALS = 12
CLOCK = "window.slept = 0; const clock = Date.now; Date.now = () => clock() + window.slept"
GREETING = {"restart": TEXTS["interrupted_title"], "block": TEXTS["ended_title"]}


@pytest.fixture
def served(make_study: Any, serve_process: Any) -> Callable[[str], Any]:
    """Serve a study of twelve trials under a policy with a maximum age."""

    def run(then: str) -> Any:
        settings = settings_of(f"recruit: link, if_interrupted: {{then: {then}, within: 30 min}}")
        changes = (WITHOUT_PRACTICE, WITHOUT_BREAKS, settings)
        return serve_process(make_study(*changes, items=word_items(TRIALS)).folder)

    return run


def two_answers(process: Any, page: Any) -> str:
    """Answer two trials; return what the third shows."""
    into_block(page, process.address)
    answer(page, 2)
    eventually(lambda: len(process.trials) == 2)
    return item_shown(page)


def greeted(page: Any, then: str) -> None:
    page.get_by_role("heading", name=GREETING[then]).wait_for()
    assert page.locator(".trial").count() == 0


@pytest.mark.full
@pytest.mark.parametrize("then", ["restart", "block"])
def test_a_second_tab_is_told_that_the_study_is_open_elsewhere(served, tabs, then):
    process = served(then)
    first = tabs.new_page()
    there = two_answers(process, first)
    second = tabs.new_page()
    second.goto(process.address)
    second.get_by_role("heading", name=TEXTS["open_elsewhere_title"]).wait_for()
    assert second.get_by_role("button", name="Continue here").count() == 0
    second.get_by_role("button", name="Try again").click()
    second.get_by_role("heading", name=TEXTS["open_elsewhere_title"]).wait_for()
    first.bring_to_front()  # a hidden tab gets no frames
    assert item_shown(first) == there
    assert to_the_end(first, TRIALS - 2)
    assert process.states == ["finished"]
    assert process.keys == [(index, 1) for index in range(TRIALS)]


@pytest.mark.parametrize(
    ("then", "way"),
    [
        ("block", "closed tab"),
        pytest.param("block", "back button", marks=pytest.mark.full),
        pytest.param("restart", "closed tab", marks=pytest.mark.full),
        pytest.param("restart", "back button", marks=pytest.mark.full),
    ],
)
def test_who_comes_back_begins_again_or_is_told_that_it_is_over(served, tabs, then, way):
    process = served(then)
    page = tabs.new_page()
    two_answers(process, page)
    if way == "back button":
        page.goto("about:blank")
        page.go_back()
    else:
        page.close(run_before_unload=False)
        page = tabs.new_page()
        page.goto(process.address)
    greeted(page, then)
    if then == "restart":
        assert process.states == ["interrupted"]
        page.keyboard.press("Space")
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="I agree").wait_for()
        assert process.states == ["interrupted", "started"]
    else:
        page.get_by_text(TEXTS["blocked"]).wait_for()
        again = tabs.new_page()
        again.goto(process.address)  # another tab does not let one in either
        greeted(again, then)
        assert process.states == ["blocked"]


@pytest.mark.full
@pytest.mark.parametrize("then", ["resume", "block"])
def test_a_computer_that_slept_too_long_ends_the_session_whatever_the_policy(served, tabs, then):
    process = served(then)
    page = tabs.new_page()
    page.add_init_script(CLOCK)
    two_answers(process, page)
    page.evaluate("window.slept = 31 * 60 * 1000")
    greeted(page, "block")
    page.get_by_text(TEXTS["timed_out"]).wait_for()
    assert process.states == ["timed_out"]


@pytest.mark.full
def test_a_clock_that_jumps_and_a_server_that_is_killed_interrupt_nothing(served, tabs, request):
    process, ledger = served("block"), Ledger()
    page = tabs.new_page()
    listen(page, ledger)
    page.add_init_script(CLOCK)
    there = two_answers(process, page)
    process.kill()
    page.evaluate("window.slept = 5 * 60 * 1000")
    assert item_shown(page) == there
    shown = answer(page, 2)
    page.get_by_text(TEXTS["waiting"]).wait_for()
    page.evaluate("window.slept = -24 * 60 * 60 * 1000")
    process.start()
    assert to_the_end(page, TRIALS - 4)
    assert process.states == ["finished"]
    assert process.keys == [(index, 1) for index in range(TRIALS)]
    assert [row["shown"]["word"] for row in process.trials][2:4] == shown
    held_against(rows_of(request)[0], len(ledger.confirmed), ledger.lost(process.folder))


@pytest.mark.full
def test_someone_else_at_the_same_browser_may_begin_after_a_session_that_is_over(served, tabs):
    process = served("block")
    page = tabs.new_page()
    two_answers(process, page)
    page.reload()
    greeted(page, "block")
    page.get_by_role("button", name=TEXTS["someone_else"]).click()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="I agree").wait_for()
    assert process.states == ["blocked", "started"]
