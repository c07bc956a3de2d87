"""The server's own pages in a real browser: nothing breaks the content policy, and they keep themselves up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from experiment.bundle import bundle_folder
from experiment.people.preview import create_preview_app
from experiment.people.server import StudyServer
from experiment.store.queries import all_events, sessions_overview, trials_with_scores
from stimuli.errors import UserError

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1366, "height": 768})
    opened = context.new_page()
    opened.problems = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on("console", lambda told: told.type == "error" and opened.problems.append(told.text))
    yield opened
    context.close()


def walk(page: Any, until: str, *, at_trial: dict[int, Callable[[], None]] | None = None) -> None:
    """Answer whatever the page shows with its first key until some words appear."""
    moments = dict(at_trial or {})
    answered = 0
    stage = page.locator("#wrods-root")
    for _ in range(2000):
        words = stage.inner_text()
        if until in words:
            return
        if "I agree" in words:
            page.get_by_role("button", name="I agree").click()
        elif page.locator("button.main").count():
            page.locator("button.main").first.click()
        elif "Which word is it?" in words:
            page.keyboard.press("f")
            page.wait_for_function("() => !document.body.innerText.includes('Which word is it?')")
            answered += 1
            moments.pop(answered, lambda: None)()
        else:
            page.keyboard.press("Space")
        page.wait_for_timeout(40)
    pytest.fail(f"the page never said {until!r}; it says {stage.inner_text()!r}")


def require_bundle() -> None:
    try:
        bundle_folder()
    except UserError as error:
        pytest.skip(str(error))


def test_a_participant_walks_through_a_study_with_the_line_cut_and_the_page_reloaded(site, page):
    require_bundle()
    page.goto(f"http://127.0.0.1:{site.port}/small/")
    page.fill("#wrods-participant", "17")
    page.get_by_role("button", name="Start").click()

    def reload_in_the_last_trial() -> None:
        page.context.set_offline(False)
        page.get_by_text("Which word is it?").wait_for()
        page.reload()

    moments = {2: lambda: page.context.set_offline(True), 4: reload_in_the_last_trial}
    walk(page, "completion code", at_trial=moments)
    with site.store.read() as connection:
        (session,) = sessions_overview(connection)
        rows = list(trials_with_scores(connection))
        kinds = {event["kind"] for event in all_events(connection)}
    assert session["state"] == "finished" and session["participant_id"] == "17"
    assert session["completion_code"] in page.locator("#wrods-root").inner_text()
    # A trial that was on the screen when the page was reloaded is shown again, as its second attempt.
    assert [(row["trial_index"], row["attempt"]) for row in rows] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2)]
    assert all(row["response_status"] == "valid" for row in rows)
    assert all(row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"]) for row in rows)
    assert {"consent", "instructions", "practice"} <= kinds
    assert page.evaluate("window.crossOriginIsolated") is True
    assert [problem for problem in page.problems if "ERR_INTERNET_DISCONNECTED" not in problem] == []


def press(page: Any, words: str) -> None:
    """Go to a button with the Tab key alone, and press it."""
    page.locator("button", has_text=words).first.wait_for()
    for _ in range(50):
        if page.evaluate("words => document.activeElement?.textContent.endsWith(words)", words):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reached {words!r}")


@pytest.mark.parametrize(
    ("language", "scheme"),
    [("de", "light"), ("ar", "dark"), pytest.param("ja", "dark", marks=pytest.mark.full)],
)
def test_a_whole_study_is_taken_left_continued_and_deleted_by_keyboard_alone(
    make_study, serve_study, chromium, language, scheme
):
    require_bundle()
    settings = f"language: {language}\nseed: 7\nparticipants: {{recruit: link}}\n"
    site = serve_study(make_study(("seed: 7\n", settings)))
    words = site.service.pack.texts
    context = chromium.new_context(viewport={"width": 1366, "height": 768}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{site.port}/small/")
    assert page.evaluate("() => document.documentElement.dir") == site.service.pack.direction
    press(page, words["start"])
    press(page, words["agree"])

    def stored() -> int:
        with site.store.read() as connection:
            return len(list(trials_with_scores(connection)))

    def answer(until: Callable[[], object]) -> None:
        while not until():
            button = page.locator("button.main")
            if button.count():
                press(page, str(button.first.text_content()))
            elif page.locator(".trial").count():
                page.keyboard.press("f")
            page.wait_for_timeout(100)

    answer(lambda: stored() == 3)
    page.keyboard.press("Escape")
    press(page, words["stop_later"])
    page.get_by_role("heading", name=words["stop_later"]).wait_for()
    page.close()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{site.port}/small/")
    page.get_by_role("heading", name=words["resume_title"]).wait_for()
    answer(page.locator("button", has_text=words["delete_now"]).count)
    assert stored() == 5
    press(page, words["delete_now"])
    press(page, words["delete_now"])
    page.get_by_role("heading", name=words["deleted_title"]).wait_for()
    context.close()
    with site.store.read() as connection:
        assert list(trials_with_scores(connection)) == sessions_overview(connection) == []


@pytest.mark.full
def test_the_sessions_page_follows_what_happens(site, page):
    link = site.app.extensions["wrods"].make_link()
    page.goto(f"http://127.0.0.1:{site.port}/admin/enter/{link}")
    page.get_by_text("No sessions yet").wait_for()
    person = site.begin(participant="17")
    person.answer(0)
    row = page.locator(".sessions tbody tr").first
    row.wait_for()
    assert (
        row.inner_text().startswith("17\t") and "1 of 5" in row.inner_text() and "running" in row.inner_text()
    )
    for index in range(1, 5):
        person.answer(index)
    code = person.finish(5).body["completion_code"]
    page.locator(".sessions code", has_text=code).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.problems == []


def test_the_preview_shows_both_sides_and_follows_the_file(make_study, page):
    study = make_study()
    app = create_preview_app(study)
    server = StudyServer(app, "127.0.0.1", 0)
    threading.Thread(target=server.run, daemon=True).start()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.get_by_text("Models do not meet this screen.").wait_for()
    page.select_option("#screen", label="Trial 3")
    page.locator("#prompt .message").first.wait_for()
    page.select_option("#condition", label="position: initial")
    item = page.input_value("#item")
    file = study.folder / "study.yaml"
    file.write_text(file.read_text().replace("Which word is it?", "What does it say?"))
    page.locator("#prompt", has_text="What does it say?").wait_for()
    assert (page.input_value("#item"), page.input_value("#condition")) == (item, "position: initial")
    assert page.problems == []
    server.close()
