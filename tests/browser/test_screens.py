"""Screens around the trials: device, full screen, size of the screen, questions, breaks; and what a reload makes of them."""

from __future__ import annotations

import re

import pytest

from tests.browser.plans import BACKGROUND, DEVICE, TEXTS, block, choose, question, questions, read, trial
from tests.browser.walking import finished, leave, respond, start, trial_shown, until

pytestmark = pytest.mark.browser

CARD = {"kind": "screen_size", "character_mm": 3.0}
FULL = {"kind": "full_screen"}
ONE = block([trial(0, [choose()])])
AGE = question("age", "number", "How old are you, in years?", **{"from": 0, "to": 120})
REFUSE = "Element.prototype.requestFullscreen = () => Promise.reject(new TypeError('not here'))"


def answer_and_finish(page, server):
    respond(page, "choose", "j")
    finished(page, server)


def test_a_fitting_device_passes_without_a_page_and_is_recorded(opened):
    server, page = opened(DEVICE, ONE)
    answer_and_finish(page, server)
    told = server.event("device")
    assert (told["passed"], told["missed"]) == (True, [])
    measured = told["measured"]
    assert (measured["width"], measured["height"], measured["device"]) == (1366, 768, "computer")
    assert measured["browser"].startswith("Chrome")
    assert measured["cross_origin_isolated"] is True
    assert measured["refresh_hz"] > 0


def test_a_small_window_is_told_what_is_needed_and_may_grow(opened):
    server, page = opened({**DEVICE, "width": 1000}, ONE, size=(700, 768))
    page.get_by_text(
        TEXTS["need_window"].format(width=1000, height=500, has_width=700, has_height=768)
    ).wait_for()
    page.set_viewport_size({"width": 1200, "height": 768})
    page.get_by_role("button", name=TEXTS["check_again"]).click()
    answer_and_finish(page, server)
    assert server.event("device_missed")["missed"] == ["window"]
    assert server.event("device")["passed"] is True


def test_the_page_fills_the_screen_on_a_key_and_leaves_it_at_the_end(opened):
    server, page = opened(FULL, ONE)
    leave(page.get_by_role("heading", name=TEXTS["full_screen_title"]))
    trial_shown(page, "choose")
    assert page.evaluate("() => document.fullscreenElement !== null")
    page.keyboard.press("j")
    finished(page, server)
    assert page.evaluate("() => document.fullscreenElement === null")
    assert server.event("full_screen") == {"granted": True, "reason": None}


def test_a_refused_screen_is_noted_and_the_study_goes_on(opened):
    server, page = opened(FULL, ONE, script=REFUSE)
    leave(page.get_by_role("heading", name=TEXTS["full_screen_title"]))
    leave(page.get_by_text(TEXTS["full_screen_refused"]))
    answer_and_finish(page, server)
    assert server.event("full_screen") == {"granted": False, "reason": "not here"}


def letter_width(page):
    """Width of one letter of the stimulus on the screen, CSS pixels."""
    return page.locator(".stimulus").evaluate(
        """(text) => {
          const range = document.createRange();
          range.setStart(text.firstChild, 0);
          range.setEnd(text.firstChild, 10);
          return range.getBoundingClientRect().width / 10;
        }"""
    )


def test_letters_have_the_width_that_the_card_gives(opened):
    server, page = opened(CARD, block([trial(0, [read()]), trial(1, [choose()])]))
    page.locator(".card").wait_for()
    before = page.locator(".card").bounding_box()["width"]
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    after = page.locator(".card").bounding_box()
    assert after["width"] == pytest.approx(before + 5 * 0.01 * 85.6, abs=0.1)
    assert after["width"] / after["height"] == pytest.approx(85.6 / 53.98, rel=0.01)
    page.get_by_role("button", name=TEXTS["card_fits"]).click()
    trial_shown(page, "read")
    told = server.event("screen_size")
    assert told["px_per_mm"] == pytest.approx(after["width"] / 85.6, abs=0.01)
    assert (told["remembered"], told["pixel_ratio"]) == (False, 1)
    assert letter_width(page) == pytest.approx(3.0 * told["px_per_mm"], rel=0.01)
    page.reload()  # the size is kept for this browser and screen
    leave(page.get_by_role("heading", name=TEXTS["resume_title"]))
    trial_shown(page, "read")
    assert letter_width(page) == pytest.approx(3.0 * told["px_per_mm"], rel=0.01)


def test_the_card_can_be_dragged_and_its_size_is_offered_again(opened):
    server, page = opened(CARD, ONE, config={"participant": "P001"})
    box = page.locator(".card").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 260, steps=4)
    page.mouse.up()
    assert page.locator(".card").bounding_box()["width"] == pytest.approx(400, abs=1)
    page.get_by_role("button", name=TEXTS["card_fits"]).click()
    trial_shown(page, "choose")
    server.config["participant"] = "P002"
    page.goto(server.address)
    start(page)
    page.get_by_text(TEXTS["screen_size_again"]).wait_for()
    assert page.locator(".card").bounding_box()["width"] == pytest.approx(400, abs=1)


def test_questions_are_answered_by_keyboard_alone(opened):
    server, page = opened(questions(*BACKGROUND), ONE)
    page.get_by_role("heading", name=TEXTS["questions_title"]).wait_for()
    press = page.keyboard.press
    press("Tab")
    page.keyboard.type("English")  # in the list of languages
    press("Tab")
    page.keyboard.type("33")
    press("Tab")
    press("Space")
    press("ArrowDown")  # secondary
    press("Tab")
    press("Space")  # Latin
    for _ in range(4):
        press("Tab")
    press("Space")
    press("ArrowRight")  # 2
    press("Tab")
    press("Space")  # yes
    press("Tab")
    page.keyboard.type("Middlemarch")
    press("Tab")
    press("Space")  # garden
    press("ArrowRight")
    press("Space")  # shelf
    press("ArrowDown")
    press("Tab")
    press("Space")
    press("ArrowRight")  # now and then
    press("Tab")
    press("Space")  # never
    press("Tab")
    press("Space")
    press("ArrowLeft")  # 7
    press("Tab")
    press("ArrowRight")  # the line is marked, right of its middle
    press("Tab")
    page.keyboard.type("in bed")  # asked since now and then
    press("Tab")
    press("Enter")
    answer_and_finish(page, server)
    assert server.answers["questions-1"] == {
        "first": "English",
        "age": 33,
        "school": "secondary",
        "scripts": ["Latin"],
        "ease": 2,
        "glasses": "yes",
        "book": "Middlemarch",
        "words": ["garden", "shelf"],
        "habit_bed": "now and then",
        "habit_bus": "never",
        "films_home": "7",
        "effort": 51,
        "where": "in bed",
    }


def test_missing_and_impossible_answers_are_marked_and_mended(opened):
    book = question("book", "text", "Which book?", optional=True)
    choice = question("school", "choice", "Which school?", ["primary", "secondary"])
    server, page = opened(questions(AGE, choice, book), ONE)
    page.locator("#wrods-question-0").fill("130")
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    page.get_by_text(TEXTS["number_between"].format(**{"from": 0, "to": 120})).wait_for()
    page.get_by_text(TEXTS["answer_needed"]).wait_for()
    assert page.evaluate("() => document.activeElement.id") == "wrods-question-0"
    page.locator("#wrods-question-0").fill("13")
    page.get_by_text("secondary").click()
    page.get_by_text(TEXTS["number_between"].format(**{"from": 0, "to": 120})).wait_for(state="hidden")
    page.locator(".questions > .problem").wait_for(state="hidden")
    page.locator("#wrods-question-2").press("Enter")
    answer_and_finish(page, server)
    assert server.answers["questions-1"] == {"age": 13, "school": "secondary", "book": None}


def test_after_a_reload_nothing_is_asked_again_but_the_screen(opened):
    trials = block([trial(0, [choose()]), trial(1, [choose()])])
    server, page = opened(DEVICE, questions(AGE), FULL, trials)
    page.locator("#wrods-question-0").fill("40")
    page.keyboard.press("Enter")
    leave(page.get_by_role("heading", name=TEXTS["full_screen_title"]))
    respond(page, "choose", "j")
    until(lambda: (0, 1) in server.trials)
    page.reload()
    leave(page.get_by_role("heading", name=TEXTS["resume_title"]))
    leave(page.get_by_role("heading", name=TEXTS["full_screen_title"]))
    answer_and_finish(page, server)
    assert [index for index, _ in server.trials] == [0, 1]
    assert [event["kind"] for event in server.events].count("device") == 1
    assert len(server.posts("/answers")) == 1


def test_pages_and_breaks_hold_their_minimum_time(opened):
    slow = {
        "kind": "instructions",
        "pages": [{"html": "<p>One.</p>", "minimum_ms": 4000}, {"html": "<p>Two.</p>"}],
    }
    pause = {"kind": "break", "html": "<p>Look out of the window.</p>", "minimum_ms": 700}
    trials = block([trial(0, [choose()]), trial(1, [choose()])], 1, break_minimum_ms=700)
    server, page = opened(slow, trials, pause)
    go_on = page.get_by_role("button", name=TEXTS["go_on"], disabled=False)
    leave(page.get_by_text("One."))
    assert page.get_by_text("One.").is_visible()
    before, after = TEXTS["go_on_in"].split("{seconds}")
    page.get_by_text(re.compile(rf"{before}[1-4]{after}")).wait_for()
    go_on.wait_for()
    page.keyboard.press("Space")
    leave(page.get_by_text("Two."))
    respond(page, "choose", "j")
    page.get_by_role("heading", name=TEXTS["break_title"]).wait_for()
    assert page.get_by_role("progressbar").get_attribute("aria-valuenow") == "50"
    go_on.wait_for()
    page.keyboard.press("Space")
    respond(page, "choose", "j")
    page.get_by_text("Look out of the window.").wait_for()
    go_on.wait_for()
    page.keyboard.press("Space")
    finished(page, server)
    first, second = server.event("instructions")["view_history"]
    assert first["viewing_time"] >= 4000
    assert second["page_index"] == 1
    breaks = [event["detail"] for event in server.events if event["kind"] == "break"]
    assert [(one["block"], one["after"]) for one in breaks] == [("block-1", 0), (None, 1)]
    assert all(one["duration"] >= 700 for one in breaks)
