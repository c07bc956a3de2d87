"""A real browser against a real server process: second tabs, closed tabs, a lost network, late ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.people.response_intake import read_copy, take_copy
from experiment.store import open_store
from tests.experiment.people.browsing import (
    TEXTS,
    answer,
    code,
    eventually,
    into_block,
    item_shown,
    to_the_end,
)
from tests.experiment.people.conftest import WITHOUT_BREAKS, WITHOUT_PRACTICE, settings_of, word_items
from tests.experiment.people.drills import Ledger, held_against, listen, rows_of

pytestmark = pytest.mark.browser
TRIALS = 8


@pytest.fixture
def served(make_study: Any, serve_process: Any) -> Callable[..., Any]:
    """Serve a study of eight trials to anybody who has the link, with further settings or a policy with a maximum age."""

    def run(participants: str = "", *, then: str = "") -> Any:
        if then:
            participants = f", if_interrupted: {{then: {then}, within: 30 min}}"
        changes = (WITHOUT_PRACTICE, WITHOUT_BREAKS, settings_of(f"recruit: link{participants}"))
        return serve_process(make_study(*changes, items=word_items(TRIALS)).folder)

    return run


def go_on(page: Any) -> str:
    """Continue an interrupted session; return what is shown first."""
    page.get_by_role("heading", name="Welcome back").wait_for()
    page.keyboard.press("Space")
    return item_shown(page)


@pytest.mark.full
def test_a_second_tab_is_told_and_goes_on_only_when_asked_to(served, tabs):
    process = served()
    first = tabs.new_page()
    into_block(first, process.address)
    answer(first, 3)
    open_there = item_shown(first)
    second = tabs.new_page()
    second.goto(process.address)
    second.get_by_role("heading", name=TEXTS["open_elsewhere_title"]).wait_for()
    assert len(process.sessions) == 1
    second.get_by_role("button", name="Continue here").click()
    assert go_on(second) == open_there
    first.get_by_role("heading", name=TEXTS["open_elsewhere_title"]).wait_for()
    assert to_the_end(second, TRIALS - 3)
    assert process.keys == [(index, 2 if index == 3 else 1) for index in range(TRIALS)]
    assert process.states == ["finished"]


@pytest.mark.full
def test_closed_reloaded_and_left_tabs_go_on_at_once_and_show_nothing_as_new(served, tabs):
    process = served()
    page = tabs.new_page()
    into_block(page, process.address)
    answer(page, 2)
    cut_off = item_shown(page)
    page.close()
    page = tabs.new_page()
    page.goto(process.address)
    assert go_on(page) == cut_off
    answer(page, 2)
    cut_off = item_shown(page)
    page.goto("about:blank")
    page.go_back()
    assert go_on(page) == cut_off
    page.reload()
    assert go_on(page) == cut_off
    assert to_the_end(page, TRIALS - 4)
    attempts = dict(process.keys)
    assert [attempts[index] for index in range(6)] == [1, 1, 2, 1, 3, 1]


@pytest.mark.full
def test_a_lost_network_in_the_middle_of_a_block_costs_nothing(served, tabs, request):
    process, ledger = served(), Ledger()
    page = tabs.new_page()
    listen(page, ledger)
    into_block(page, process.address)
    answer(page, 3)
    eventually(lambda: len(process.trials) == 3)
    tabs.set_offline(True)
    end = time.monotonic() + 20
    answer(page, 3)
    page.get_by_text(TEXTS["waiting"]).wait_for()
    page.wait_for_timeout(max(0.0, end - time.monotonic()) * 1000)
    assert len(process.trials) == 3
    tabs.set_offline(False)
    eventually(lambda: len(process.trials) == 6)
    assert to_the_end(page, TRIALS - 6)
    assert process.keys == [(index, 1) for index in range(TRIALS)]
    held_against(rows_of(request)[0], len(ledger.confirmed), ledger.lost(process.folder))


@pytest.mark.full
def test_an_end_that_nobody_confirms_gives_a_code_for_review_and_a_copy_that_can_be_imported(served, tabs):
    process = served(", finish_wait: 1 s")
    page = tabs.new_page()
    into_block(page, process.address)
    answer(page, TRIALS - 3)
    eventually(lambda: len(process.trials) == TRIALS - 3)
    process.kill()
    answer(page, 3)
    page.get_by_role("heading", name="About this study").wait_for()
    page.keyboard.press("Space")
    save = page.get_by_role("button", name=TEXTS["download_answers"])
    save.wait_for()
    (session,) = process.sessions
    review = page.locator(".code").inner_text()
    assert review == f"M-{session['session_id'][:8].upper()}"
    with page.expect_download() as waiting:
        save.click()
    copy = read_copy(Path(waiting.value.path()).read_bytes())
    with open_store(process.folder) as store:
        taken = take_copy(store, "small", copy)
        again = take_copy(store, "small", copy)
    assert (taken.trials, taken.refused, taken.state) == (3, 0, "finished")
    assert (again.new, again.refused) == (0, 0)
    process.start()
    assert code(page) != review
    assert process.keys == [(index, 1) for index in range(TRIALS)]


CLOCK = "window.slept = 0; const clock = Date.now; Date.now = () => clock() + window.slept"
GREETING = {"restart": TEXTS["interrupted_title"], "block": TEXTS["ended_title"]}


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
def test_a_second_tab_is_told_that_the_study_is_open_elsewhere(served, tabs):
    process = served(then="block")
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
        pytest.param("restart", "back button", marks=pytest.mark.full),
    ],
)
def test_who_comes_back_begins_again_or_is_told_that_it_is_over(served, tabs, then, way):
    process = served(then=then)
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
def test_a_computer_that_slept_too_long_ends_the_session(served, tabs):
    process = served(then="resume")
    page = tabs.new_page()
    page.add_init_script(CLOCK)
    two_answers(process, page)
    page.evaluate("window.slept = 31 * 60 * 1000")
    greeted(page, "block")
    page.get_by_text(TEXTS["timed_out"]).wait_for()
    assert process.states == ["timed_out"]


@pytest.mark.full
def test_a_clock_that_jumps_and_a_server_that_is_killed_interrupt_nothing(served, tabs, request):
    process, ledger = served(then="block"), Ledger()
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
    process = served(then="block")
    page = tabs.new_page()
    two_answers(process, page)
    page.reload()
    greeted(page, "block")
    page.get_by_role("button", name=TEXTS["someone_else"]).click()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="I agree").wait_for()
    assert process.states == ["blocked", "started"]
