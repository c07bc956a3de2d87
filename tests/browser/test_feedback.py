"""What readers are told: after trials, by the server's word, and behind questions about the instructions."""

from __future__ import annotations

import re

import pytest

from tests.browser.plans import (
    INSTRUCTIONS,
    TEXTS,
    block,
    choose,
    comprehension,
    feedback,
    practice,
    question,
    rate,
    trial,
)
from tests.browser.walking import finished, leave, respond, trial_shown, until, violations

pytestmark = pytest.mark.browser

KEYS = question("keys", "choice", "Which key means yes?", ["F", "J"])
FINGERS = question("fingers", "yes_no", "Do you use two fingers?", ["yes", "no"])


# Every heading that the page ever showed, however short: a slow machine may look only after it is gone.
# A key that is struck while something is told answers nothing.
NOTED = """window.headings = []; new MutationObserver(() => {
  const heading = document.querySelector("#wrods-stage h2")?.textContent;
  if (heading === undefined || heading === window.headings.at(-1)) return;
  window.headings.push(heading);
  if (document.querySelector(".page.feedback"))
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "j", code: "KeyJ", bubbles: true }));
}).observe(document, { childList: true, subtree: true })"""


def told(server):
    return [event["detail"] for event in server.events if event["kind"] == "feedback"]


def headings(page, *names):
    """Return which of some headings the page showed, in their order."""
    wanted = {TEXTS[name]: name for name in names}
    return [wanted[shown] for shown in page.evaluate("() => window.headings") if shown in wanted]


def asked(index, **more):
    return trial(index, [choose(f"Question number {index}?", **more)])


def test_the_server_says_whether_an_answer_was_right_and_the_page_tells_it_for_its_time(opened):
    verdicts = {0: "correct", 1: "incorrect"}
    trials = [asked(index) for index in range(3)]
    server, page = opened(
        block(trials, feedback=feedback("accuracy", "900 ms")), verdicts=verdicts, script=NOTED
    )
    for index in range(3):  # nothing is told of the third
        respond(page, "choose", "f", f"number {index}?")
    finished(page, server)
    assert headings(page, "feedback_correct", "feedback_incorrect") == [
        "feedback_correct",
        "feedback_incorrect",
    ]
    assert [server.trials[index, 1]["response_raw"] for index in range(3)] == ["no"] * 3
    shown = told(server)
    assert [(one["trial_index"], one["attempt"], one["told"], one["shown"]) for one in shown] == [
        (0, 1, "correct", True),
        (1, 1, "incorrect", True),
    ]
    assert all(one["duration"] >= 880 for one in shown)
    assert all(server.trials[one["trial_index"], 1]["response_ts"] < one["onset_ts"] for one in shown)


def test_a_further_answer_follows_at_once_before_feedback_and_breaks(opened):
    late = feedback("late", "600 ms")
    confidence = {
        "labels": ["unsure", "sure"],
        "responses": ["1", "2"],
        "keys": ["1", "2"],
        "low": None,
        "high": None,
    }
    trials = [
        trial(
            index + more,
            [rate(None, ask=f"How sure are you of {index}?", **confidence)],
            step_name="confidence",
            interval_ms=0,
            fixation_ms=0,
        )
        if more
        else asked(index, time_limit_ms=700)
        for index in (0, 2)
        for more in (0, 1)
    ]
    server, page = opened(block(trials, 1, feedback=late), script=NOTED)
    for place in (0, 2):
        trial_shown(page, "rate", f"How sure are you of {place}?")  # time ran out, and nothing was told yet
        assert headings(page, "feedback_late") == ["feedback_late"] * (place // 2)
        assert violations(page) == []
        page.keyboard.press("2")
        if place == 0:
            page.get_by_role("heading", name=TEXTS["break_title"]).wait_for()
            page.get_by_text("1 of 2").wait_for()
            page.get_by_role("button", name=TEXTS["go_on"]).click()
    finished(page, server)
    order = ["feedback_late", "break_title", "feedback_late"]
    assert headings(page, "feedback_late", "break_title") == order
    rows = [server.trials[index, 1] for index in range(4)]
    assert [row["response_raw"] for row in rows] == [None, "sure", None, "sure"]
    assert [one["trial_index"] for one in told(server)] == [0, 2]
    assert [event["detail"]["after"] for event in server.events if event["kind"] == "break"] == [1]


def test_without_a_connection_nothing_is_told_and_that_is_recorded(opened):
    trials = [asked(0), asked(1, time_limit_ms=700)]
    server, page = opened(block(trials, feedback=feedback("accuracy_and_late", "500 ms")), script=NOTED)
    trial_shown(page, "choose", "number 0?")
    page.context.set_offline(True)
    page.keyboard.press("j")
    page.get_by_role("heading", name=TEXTS["saving_title"]).wait_for()
    assert headings(page, "feedback_correct", "feedback_incorrect", "feedback_late") == ["feedback_late"], (
        "the clock needs no connection"
    )
    page.context.set_offline(False)
    finished(page, server)
    missed, late = told(server)
    assert (missed["trial_index"], missed["told"], missed["shown"]) == (0, None, False)
    assert missed["reason"] == "no_connection"
    assert (late["trial_index"], late["told"], late["shown"]) == (1, "late", True)


def test_a_server_that_is_slow_to_answer_makes_nobody_wait_for_long(opened):
    trials = [asked(index) for index in range(2)]
    server, page = opened(
        block(trials, feedback=feedback("accuracy")),
        verdicts={0: "correct"},
        reply_with={"trials": [503] * 100},
    )
    respond(page, "choose", "j", "number 0?")
    page.get_by_text(TEXTS["waiting"]).wait_for()
    trial_shown(page, "choose", "number 1?")
    server.reply_with["trials"].clear()
    until(lambda: server.trials.get((0, 1)))
    page.keyboard.press("j")
    finished(page, server)
    assert told(server)[0]["reason"] == "no_connection"


def answer_questions(page, key):
    page.get_by_role("heading", name=TEXTS["comprehension_title"]).wait_for()
    page.get_by_text(key, exact=True).click()
    page.get_by_text("no" if key == "F" else "yes", exact=True).click()
    page.get_by_role("button", name=TEXTS["go_on"]).click()


def turn_pages(page, first=1, last=2):
    for number in range(first, last + 1):
        page.get_by_text(TEXTS["page_of"].format(page=number, pages=last)).wait_for()
        leave(page.get_by_role("heading", name=TEXTS["instructions_title"]))


def test_instructions_are_shown_again_until_the_questions_about_them_are_answered(opened):
    server, page = opened(
        INSTRUCTIONS, comprehension(KEYS, FINGERS), block([trial(0, [choose()])]), then=["again", "go_on"]
    )
    turn_pages(page)
    page.get_by_role("heading", name=TEXTS["comprehension_title"]).wait_for()
    assert violations(page) == []
    answer_questions(page, "F")
    page.get_by_role("heading", name=TEXTS["comprehension_again_title"]).wait_for()
    assert violations(page) == []
    page.keyboard.press("Space")
    turn_pages(page, 2, 3)
    answer_questions(page, "J")
    respond(page, "choose", "j")
    finished(page, server)
    read = [event["detail"] for event in server.events if event["kind"] == "instructions"]
    assert [one.get("round") for one in read] == [None, 2]
    assert server.answers["comprehension-1"] == {"keys": "J", "fingers": "yes"}
    assert len(server.judged) == 2  # each round once, although it is sent twice


def test_who_keeps_missing_the_instructions_is_thanked_and_ends(opened):
    server, page = opened(
        INSTRUCTIONS, comprehension(KEYS, FINGERS, rounds=1), block([trial(0, [choose()])]), then=["end"]
    )
    turn_pages(page)
    answer_questions(page, "F")
    page.get_by_role("heading", name=TEXTS["practice_failed_title"]).wait_for()
    page.get_by_text(TEXTS["comprehension_failed"]).wait_for()
    assert violations(page) == []
    assert not server.trials
    assert server.posts("/finish")[-1].body["completed"] is False


def test_after_a_reload_between_two_answers_the_same_screens_follow_and_it_is_recorded(opened):
    confidence = {"labels": ["unsure", "sure"], "responses": ["1", "2"], "keys": ["1", "2"]}
    late, more = feedback("late", "600 ms"), {"interval_ms": 0, "fixation_ms": 0}
    trials = [
        each
        for index in (0, 2)
        for each in (
            trial(index, [choose(time_limit_ms=500)]),
            trial(
                index + 1,
                [rate("The dog barks.", ask="How sure are you?", **confidence)],
                step_name="sure",
                **more,
            ),
        )
    ]
    server, page = opened(block(trials, feedback=late))
    screens = []
    for is_reloaded in (False, True):
        trial_shown(page, "rate", "The dog barks.")  # the time of the choice before it is over
        if is_reloaded:
            page.reload()
            leave(page.get_by_role("heading", name=TEXTS["resume_title"]))
            trial_shown(page, "rate", "The dog barks.")
        screens.append(re.sub(r"stimulus-\d+", "", page.locator(".trial.rate").inner_html()))
        page.keyboard.press("2")
        page.get_by_role("heading", name=TEXTS["feedback_late"]).wait_for()
    finished(page, server)
    assert screens[0] == screens[1]
    assert [(one["trial_index"], one["attempt"]) for one in told(server)] == [(0, 1), (2, 1)]
    assert server.event("resume") == {"trial_index": 3}
    assert sorted(server.trials) == [(0, 1), (1, 1), (2, 1), (3, 2)]


def test_a_reload_in_a_second_pass_of_practice_records_the_answer_that_it_waits_for(opened):
    sure = {"labels": ["unsure", "sure"], "responses": ["1", "2"], "keys": ["1", "2"]}
    trials = [
        trial(0, [choose("Does it bark?")], answer="yes"),
        trial(1, [rate("The dog barks.", ask="How sure are you?", **sure)], step_name="sure"),
    ]
    server, page = opened(practice(trials, feedback=None, **{"pass": 1.0}))
    for key in ("f", "j"):
        respond(page, "choose", key)
        trial_shown(page, "rate", "The dog barks.")
        if key == "j":
            page.reload()
            leave(page.get_by_role("heading", name=TEXTS["resume_title"]))
        respond(page, "rate", "2")
        leave(
            page.get_by_text(TEXTS["practice_again" if key == "f" else "practice_passed"].partition("{")[0])
        )
    finished(page, server)
    assert server.event("resume") == {"trial_index": 1}
