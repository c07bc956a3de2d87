"""The server's own pages in a real browser: nothing breaks the content policy, and they keep themselves up to date."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from experiment.people.connections import listen
from experiment.people.preview import create_preview_app
from experiment.people.server import StudyServer
from tests.experiment.people.browsing import walk
from tests.experiment.people.conftest import settings_of

pytestmark = pytest.mark.browser


def test_a_participant_walks_through_a_study_with_the_line_cut_and_the_page_reloaded(site, page):
    page.goto(site.address)
    page.fill("#wrods-participant", "17")
    page.get_by_role("button", name="Start").click()

    def reload_in_the_last_trial() -> None:
        page.context.set_offline(False)
        page.get_by_text("Which word is it?").wait_for()
        page.reload()

    moments = {2: lambda: page.context.set_offline(True), 4: reload_in_the_last_trial}
    walk(page, "completion code", at_trial=moments)
    (session,), rows = site.sessions, site.trials
    kinds = {event["kind"] for event in site.events}
    assert session["state"] == "finished" and session["participant_id"] == "17"
    assert session["completion_code"] in page.locator("#wrods-root").inner_text()
    # A trial that was on the screen when the page was reloaded is shown again, as its second attempt.
    assert [(row["trial_index"], row["attempt"]) for row in rows] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2)]
    assert all(row["response_status"] == "valid" for row in rows)
    assert all(row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"]) for row in rows)
    assert {"consent", "instructions", "practice"} <= kinds
    assert page.evaluate("window.crossOriginIsolated") is True


def press(page: Any, words: str) -> None:
    """Go to a button with the Tab key alone, and press it."""
    page.locator("button", has_text=words).first.wait_for()
    for _ in range(50):
        if page.evaluate("words => document.activeElement?.textContent.endsWith(words)", words):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reached {words!r}")


@pytest.mark.parametrize(("language", "scheme"), [("de", "light"), ("ar", "dark")])
def test_a_whole_study_is_taken_left_continued_and_deleted_by_keyboard_alone(
    make_study, serve_study, tabs, language, scheme
):
    site = serve_study(make_study(settings_of("recruit: link"), ("title:", f"language: {language}\ntitle:")))
    words = site.service.pack.texts
    page = tabs.new_page()
    page.emulate_media(color_scheme=scheme)
    page.goto(site.address)
    assert page.evaluate("() => document.documentElement.dir") == site.service.pack.direction
    press(page, words["start"])
    press(page, words["agree"])

    def answer(until: Callable[[], object]) -> None:
        while not until():
            button = page.locator("button.main")
            if button.count():
                press(page, str(button.first.text_content()))
            elif page.locator(".trial").count():
                page.keyboard.press("f")
            page.wait_for_timeout(100)

    answer(lambda: len(site.trials) == 3)
    page.keyboard.press("Escape")
    press(page, words["stop_later"])
    page.get_by_role("heading", name=words["stop_later"]).wait_for()
    page.close()
    page = tabs.new_page()
    page.goto(site.address)
    page.get_by_role("heading", name=words["resume_title"]).wait_for()
    answer(page.locator("button", has_text=words["delete_now"]).count)
    assert len(site.trials) == 5
    press(page, words["delete_now"])
    press(page, words["delete_now"])
    page.get_by_role("heading", name=words["deleted_title"]).wait_for()
    assert site.trials == site.sessions == []


def test_the_preview_shows_both_sides_and_follows_the_file(make_study, page):
    study = make_study()
    app = create_preview_app(study)
    server = StudyServer(app, listen("127.0.0.1", 0))
    threading.Thread(target=server.run, daemon=True).start()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.locator("#prompt", has_text=re.compile(r"\w")).wait_for()
    page.select_option("#screen", label="Trial 3")
    page.locator("#prompt .message").first.wait_for()
    page.select_option("#condition", label="position: initial")
    item = page.input_value("#item")
    file = study.folder / "study.yaml"
    file.write_text(file.read_text().replace("Which word is it?", "What does it say?"))
    page.locator("#prompt", has_text="What does it say?").wait_for()
    assert (page.input_value("#item"), page.input_value("#condition")) == (item, "position: initial")
    server.close()
