"""A real browser against a real server process: second tabs, closed tabs, a minute without network, late ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiment.people.response_intake import read_copy, take_copy
from experiment.store import open_store
from experiment.store import queries as q
from stimuli.item import Item
from tests.experiment.people.drills import Ledger, held_against, listen, rows_of

pytestmark = pytest.mark.browser
TRIALS = 12
PRACTICE = "  - practice: {items: practice.csv, feedback: true, pass: 50%}\n"
MATERIALS = "materials: {words: words.txt}\n"


def items() -> list[Item]:
    def item(number: int, level: str) -> Item:
        word = f"word{number:02d}"
        return Item(
            item_id=word, set_name="words", role="test", condition={"position": level}, shown={"word": f"{word} {level}"},
            intact={"word": word}, choices=(word, "other"), answer=word, covariates={"letters": 6},
            provenance={"source": "t", "source_id": word, "split": None, "licence": None, "operation": level, "seed": 7},
        )  # fmt: skip

    return [item(number, level) for number in range(TRIALS) for level in ("intact", "initial")]


@pytest.fixture
def served(make_study: Any, serve_process: Any) -> Callable[..., Any]:
    """Serve a study of twelve trials to anybody who has the link; further settings of participants are its arguments."""

    def run(participants: str = "") -> Any:
        settings = f"{MATERIALS}participants: {{recruit: link{participants}}}\n"
        changes = ((PRACTICE, ""), (MATERIALS, settings), ("      break_every: 2\n", ""))
        return serve_process(make_study(*changes, items=items()).folder)

    return run


@pytest.fixture
def tabs(chromium: Any) -> Iterator[Any]:
    """One browser of one person; its tabs share their storage."""
    context = chromium.new_context(viewport={"width": 1366, "height": 768}, accept_downloads=True)
    context.set_default_timeout(20_000)
    yield context
    context.close()


def into_block(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("heading", name="Instructions", exact=True).wait_for()
    page.keyboard.press("Space")


def item_shown(page: Any) -> str:
    page.locator(".trial.choose").wait_for()
    found = re.search(r"word\d\d (?:intact|initial)", page.locator(".trial.choose").inner_text())
    assert found is not None
    return found[0]


def answer(page: Any, count: int) -> list[str]:
    """Answer some trials, each as soon as it stands there; return what they showed."""
    shown: list[str] = []
    for _ in range(count):
        word = item_shown(page)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.keyboard.press("f")
        page.wait_for_function("(word) => !document.body.innerText.includes(word)", arg=word)
        shown.append(word)
    return shown


def to_the_end(page: Any, left: int) -> None:
    answer(page, left)
    page.get_by_role("heading", name="About this study").wait_for()
    page.keyboard.press("Space")


def code(page: Any) -> str:
    page.get_by_role("heading", name="Thank you").wait_for()
    return str(page.locator(".code").inner_text())


def rows(folder: Path) -> list[dict[str, Any]]:
    with open_store(folder) as store, store.read() as connection:
        return list(q.trials_with_scores(connection))


def sessions(folder: Path) -> list[dict[str, Any]]:
    with open_store(folder) as store, store.read() as connection:
        return q.sessions_overview(connection)


def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def keys(folder: Path) -> list[tuple[int, int]]:
    return [(row["trial_index"], row["attempt"]) for row in rows(folder)]


@pytest.mark.full
def test_a_second_tab_is_told_and_goes_on_only_when_asked_to(served, tabs):
    process = served()
    first = tabs.new_page()
    into_block(first, process.address)
    answer(first, 3)
    open_there = item_shown(first)
    second = tabs.new_page()
    second.goto(process.address)
    second.get_by_role("heading", name="The study is open elsewhere").wait_for()
    assert len(sessions(process.folder)) == 1
    second.get_by_role("button", name="Continue here").click()
    second.get_by_role("heading", name="Welcome back").wait_for()
    second.keyboard.press("Space")
    assert item_shown(second) == open_there
    first.get_by_role("heading", name="The study is open elsewhere").wait_for()
    to_the_end(second, TRIALS - 3)
    assert code(second)
    assert keys(process.folder) == [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 2),
        *((index, 1) for index in range(4, TRIALS)),
    ]
    assert [row["state"] for row in sessions(process.folder)] == ["finished"]


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
    page.get_by_role("heading", name="Welcome back").wait_for()
    page.keyboard.press("Space")
    assert item_shown(page) == cut_off
    answer(page, 2)
    cut_off = item_shown(page)
    page.goto("about:blank")
    page.go_back()
    page.get_by_role("heading", name="Welcome back").wait_for()
    page.keyboard.press("Space")
    assert item_shown(page) == cut_off
    page.reload()
    page.get_by_role("heading", name="Welcome back").wait_for()
    page.keyboard.press("Space")
    to_the_end(page, TRIALS - 4)
    assert code(page)
    attempts = dict(keys(process.folder))
    assert [attempts[index] for index in range(6)] == [1, 1, 2, 1, 3, 1]


@pytest.mark.full
def test_a_minute_without_network_in_the_middle_of_a_block_costs_nothing(served, tabs, request):
    process, ledger = served(), Ledger()
    page = tabs.new_page()
    listen(page, ledger)
    into_block(page, process.address)
    answer(page, 3)
    eventually(lambda: len(rows(process.folder)) == 3)
    tabs.set_offline(True)
    end = time.monotonic() + 60
    answer(page, 5)
    page.get_by_text("Waiting for the connection").wait_for()
    page.wait_for_timeout(max(0.0, end - time.monotonic()) * 1000)
    assert len(rows(process.folder)) == 3
    tabs.set_offline(False)
    eventually(lambda: len(rows(process.folder)) == 8, seconds=40)
    to_the_end(page, TRIALS - 8)
    assert code(page)
    assert keys(process.folder) == [(index, 1) for index in range(TRIALS)]
    held_against(rows_of(request)[0], len(ledger.confirmed), ledger.lost(process.folder))


@pytest.mark.full
def test_an_end_that_nobody_confirms_gives_a_code_for_review_and_a_copy_that_can_be_imported(served, tabs):
    process = served(", finish_wait: 1 s")
    page = tabs.new_page()
    into_block(page, process.address)
    answer(page, TRIALS - 3)
    eventually(lambda: len(rows(process.folder)) == TRIALS - 3)
    process.kill()
    to_the_end(page, 3)
    save = page.get_by_role("button", name="Download a copy of your answers")
    save.wait_for()
    (session,) = sessions(process.folder)
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
    assert keys(process.folder) == [(index, 1) for index in range(TRIALS)]
