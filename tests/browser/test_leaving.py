"""The Stop control, and what each way out of a session shows, sends and leaves to keep."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.browser.plans import (
    CONSENT,
    DEBRIEF,
    TEXTS,
    block,
    choose,
    practice,
    prime,
    question,
    questions,
    read,
    recover,
    trial,
)
from tests.browser.walking import finished, leave, respond, trial_shown, until, violations

pytestmark = pytest.mark.browser


def asked(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [trial(first + i, [choose(f"Question number {first + i}?")]) for i in range(count)]


def agreed(opened: Any, *screens: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    server, page = opened(CONSENT, *screens, **more)
    page.get_by_role("button", name=TEXTS["agree"]).click()
    return server, page


def stops(server: Any) -> list[dict[str, Any]]:
    return [event["detail"] for event in server.events if event["kind"] == "stop"]


KEPT = """() => new Promise((tell) => {
  const opening = indexedDB.open("wrods");
  opening.onsuccess = () => {
    const kept = opening.result.transaction("outbox").objectStore("outbox").getAll();
    kept.onsuccess = () => (opening.result.close(), tell(kept.result.length));
  };
})"""
"""How many answers and events the browser still holds."""


def test_stop_can_be_opened_on_every_screen_and_closed_without_a_trace_on_it(opened):
    """By Escape and by the button; the keys of the screen do nothing meanwhile, and the focus comes back."""
    about = questions(question("book", "text", "Which book did you read last?", optional=True))
    pause = {"kind": "break", "html": None, "minimum_ms": 0}
    server, page = opened(CONSENT, about, block(asked(1)), pause, DEBRIEF)
    stop = page.get_by_role("button", name=TEXTS["stop"], exact=True)
    page.get_by_role("heading", name=TEXTS["consent_title"]).wait_for()
    assert stop.count() == 0, "before the agreement there is nothing to stop but to disagree"
    page.get_by_role("button", name=TEXTS["agree"]).click()
    dialog = page.get_by_role("dialog", name=TEXTS["stop_title"])
    field = page.locator("#wrods-question-0")
    field.fill("a novel")
    page.keyboard.press("Escape")
    dialog.wait_for()
    assert violations(page) == []
    assert page.evaluate("() => document.activeElement.textContent") == TEXTS["stop_continue"]
    for _ in range(8):  # the focus stays in the dialog, or in the browser's own controls
        page.keyboard.press("Tab")
        inside = page.evaluate(
            "() => document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"
        )
        assert inside
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("() => document.activeElement.id") == "wrods-question-0"
    assert field.input_value() == "a novel"
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    respond(page, "choose", "j")
    page.get_by_role("heading", name=TEXTS["break_title"]).wait_for()
    stop.click()
    dialog.wait_for()
    page.keyboard.press("x")
    page.get_by_role("button", name=TEXTS["stop_continue"]).click()
    leave(page.get_by_role("heading", name=TEXTS["break_title"]))
    leave(page.get_by_role("heading", name=TEXTS["debrief_title"]))
    finished(page, server)
    assert [told["then"] for told in stops(server)] == ["continue", "continue"]
    assert sorted(server.trials) == [(0, 1)]


def test_a_trial_that_was_stopped_comes_again_as_its_second_attempt(opened):
    window = read("one two", lines=["one two"], **{"as": "moving_window"})
    steps = {
        "choose": [choose("Question number 0?")],
        "window": [window, choose("Question number 1?")],
        "recover": [recover()],
        "prime": [prime(mask_ms=4000), choose("Question number 3?")],
    }
    trials = [trial(index, each) for index, each in enumerate(steps.values())]
    server, page = agreed(opened, block([*trials, *asked(1, first=4)]))
    dialog = page.get_by_role("dialog")

    def uncover(*words):
        for word in words:
            page.keyboard.press("Space")
            page.locator(".word:not([aria-hidden])", has_text=word).wait_for()

    for index, kind in enumerate(steps):
        first = {"window": "read"}.get(kind, kind)
        trial_shown(page, first)
        if kind == "window":
            uncover("one")
        if kind == "recover":
            page.keyboard.type("gar")
        page.keyboard.press("Escape")
        dialog.wait_for()
        until(lambda: page.locator(".trial, .fixation").count() == 0)
        assert dialog.get_by_text(TEXTS["stop_item_again"]).count() == 1
        page.keyboard.press("j")
        page.keyboard.press("f")
        assert (index, 1) not in server.trials
        page.get_by_role("button", name=TEXTS["stop_continue"]).click()
        if kind != "prime":  # which passes by itself
            trial_shown(page, first)
        if kind == "window":
            uncover("one", "two")
            page.keyboard.press("Space")
        if kind == "recover":
            page.keyboard.type("garden")
            page.keyboard.press("Enter")
        else:
            respond(page, "choose", "j", f"Question number {index}?")
    respond(page, "choose", "j", "Question number 4?")
    finished(page, server)
    assert sorted(server.trials) == [(0, 2), (1, 2), (2, 2), (3, 2), (4, 1)]
    assert stops(server) == [{"then": "continue", "trial_index": index, "attempt": 1} for index in range(4)]
    shown = [tuple(event["detail"].values()) for event in server.events if event["kind"] == "shown"]
    assert shown[:2] == [(0, 1), (0, 2)]


def test_who_stops_and_keeps_is_debriefed_and_can_still_delete(opened):
    server, page = agreed(opened, block(asked(3)), DEBRIEF)
    respond(page, "choose", "j", "Question number 0?")
    trial_shown(page, "choose", "Question number 1?")
    page.get_by_role("button", name=TEXTS["stop"], exact=True).click()
    page.get_by_role("button", name=TEXTS["stop_keep"]).click()
    page.get_by_role("heading", name=TEXTS["stopped_title"]).wait_for()
    page.get_by_text("We study which letter positions carry a sentence.").wait_for()
    page.get_by_text(TEXTS["withdraw_later"].format(participant="P001")).wait_for()
    assert page.get_by_role("button", name=TEXTS["stop"], exact=True).count() == 0
    assert violations(page) == []
    assert stops(server) == [{"then": "keep", "trial_index": 1, "attempt": 1}]
    assert server.posts("/finish")[0].body == {"trials": 1, "completed": False}
    assert page.evaluate(KEPT) == 0, "the next person at this computer finds nothing"
    page.reload()
    page.get_by_role("heading", name=TEXTS["stopped_title"]).wait_for()
    page.get_by_role("button", name=TEXTS["delete_now"]).click()
    page.get_by_role("dialog", name=TEXTS["delete_title"]).get_by_role("button", name=TEXTS["back"]).click()
    assert len(stops(server)) == 1, "it asks once before it deletes"
    page.get_by_role("button", name=TEXTS["delete_now"]).click()
    page.get_by_role("dialog").get_by_role("button", name=TEXTS["delete_now"]).click()
    page.get_by_role("heading", name=TEXTS["deleted_title"]).wait_for()
    assert stops(server)[1:] == [{"then": "delete"}]


def test_an_end_that_the_server_does_not_confirm_keeps_the_answers_and_still_debriefs(opened):
    """As after the return to a backup from before the session began."""
    server, page = agreed(opened, block(asked(3)), DEBRIEF, reply_with={"finish": [404]})
    respond(page, "choose", "j", "Question number 0?")
    respond(page, "choose", "Escape", "Question number 1?")
    page.get_by_role("button", name=TEXTS["stop_keep"]).click()
    page.get_by_role("heading", name=TEXTS["saving_title"]).wait_for()
    with page.expect_download() as saving:
        page.get_by_role("button", name=TEXTS["download_answers"]).click()
    kinds = [item["kind"] for item in json.loads(saving.value.path().read_text("utf-8"))["items"]]
    assert kinds.count("trials") == 1
    page.get_by_text("We study which letter positions carry a sentence.").wait_for()
    assert page.evaluate(KEPT) == len(kinds)
    assert violations(page) == []
    page.get_by_role("button", name=TEXTS["try_again"]).click()
    page.get_by_role("heading", name=TEXTS["stopped_title"]).wait_for()
    assert page.evaluate(KEPT) == 0
    assert [sent.status for sent in server.posts("/finish")] == [404, 200]


def test_a_server_that_lost_the_end_of_a_session_hears_of_it_again(opened):
    server, page = agreed(opened, block(asked(3)), reply_with={"finish": [409]})
    respond(page, "choose", "j", "Question number 0?")
    trial_shown(page, "choose", "Question number 1?")
    until(lambda: server.trials and any(event["kind"] == "shown" for event in server.events))
    server.events.clear()  # acknowledged, yet not there any more
    page.keyboard.press("Escape")
    page.get_by_role("button", name=TEXTS["stop_keep"]).click()
    page.get_by_role("heading", name=TEXTS["stopped_title"]).wait_for()
    assert {"consent", "stop"} <= {event["kind"] for event in server.events}
    assert [sent.status for sent in server.posts("/finish")] == [409, 200]


def test_deleting_without_a_network_waits_survives_a_reload_and_sends_nothing_else(opened):
    server, page = agreed(opened, block(asked(3)), DEBRIEF)
    trial_shown(page, "choose", "Question number 0?")
    until(lambda: any(event["kind"] == "shown" for event in server.events))
    sent = len(server.events)
    page.route("**/sessions/**", lambda route: route.abort())
    page.keyboard.press("j")
    respond(page, "choose", "Escape", "Question number 1?")
    page.get_by_role("button", name=TEXTS["stop_delete"]).click()
    page.get_by_role("button", name=TEXTS["delete_now"]).click()
    page.get_by_role("heading", name=TEXTS["deleting_title"]).wait_for()
    page.get_by_text(TEXTS["deleting_text"]).wait_for()
    assert violations(page) == []
    page.reload()
    page.get_by_role("heading", name=TEXTS["deleting_title"]).wait_for()
    assert server.erased == set()
    page.unroute("**/sessions/**")
    page.evaluate("() => window.dispatchEvent(new Event('online'))")
    page.get_by_role("heading", name=TEXTS["deleted_title"]).wait_for()
    page.get_by_text("We study which letter positions carry a sentence.").wait_for()
    assert server.trials == {}, "an answer that waited is not sent any more"
    assert [event["detail"] for event in server.events[sent:]] == [{"then": "delete"}]
    assert page.evaluate("() => Object.keys(localStorage)") == []


def test_finishing_later_says_until_when_and_goes_on_from_there(opened):
    policy = {"if_interrupted": {"then": "resume", "within_ms": 3_600_000}}
    server, page = agreed(opened, block(asked(2)), study=policy)
    respond(page, "choose", "j", "Question number 0?")
    respond(page, "choose", "Escape", "Question number 1?")
    page.get_by_role("button", name=TEXTS["stop_later"]).click()
    page.get_by_role("heading", name=TEXTS["stop_later"]).wait_for()
    page.get_by_text(TEXTS["stop_later_until"].partition("{until}")[0]).wait_for()
    until(lambda: any(sent.body.get("release") for sent in server.posts("/lease")))
    again = page.context.new_page()
    page.close()
    again.goto(server.address)
    leave(again.get_by_role("heading", name=TEXTS["resume_title"]))
    respond(again, "choose", "j", "Question number 1?")
    finished(again, server)
    assert sorted(server.trials) == [(0, 1), (1, 2)]
    assert [told["then"] for told in stops(server)] == ["later"]


@pytest.mark.parametrize(("any_browser", "within_ms"), [(True, None), (True, 3_600_000)])
def test_who_finishes_later_is_told_whether_it_must_be_in_this_browser(opened, any_browser, within_ms):
    policy = {"if_interrupted": {"then": "resume", "within_ms": within_ms}}
    _, page = agreed(opened, block(asked(2)), study=policy, config={"any_browser": any_browser})
    respond(page, "choose", "Escape", "Question number 0?")
    page.get_by_role("button", name=TEXTS["stop_later"]).click()
    timed = "stop_later_link_until" if within_ms else "stop_later_text"
    before, until, _ = TEXTS[timed if any_browser else "stop_later_until"].partition("{until}")
    told = page.get_by_text(before).inner_text()
    assert bool(re.search(r"\d{4}", told)) == bool(until), "until when"


def test_a_response_key_is_never_taken_for_stop(opened):
    server, page = opened(block([trial(0, [choose("Question number 0?", keys=["escape", "f"])])]))
    respond(page, "choose", "Escape")
    finished(page, server)
    assert server.trials[0, 1]["response_raw"] == "yes"


def test_who_is_turned_away_is_debriefed(opened):
    tries = [trial(0, [choose()], answer="yes")]
    server, page = agreed(
        opened, practice(tries, attempts=1, feedback=None), block(asked(1, first=1)), DEBRIEF
    )
    respond(page, "choose", "f")
    leave(page.get_by_text(TEXTS["practice_score"].format(right=0, total=1)))
    page.get_by_role("heading", name=TEXTS["practice_failed_title"]).wait_for()
    until(lambda: any(event["kind"] == "practice" for event in server.events))
    assert server.event("practice")["then"] == "end" and sorted(server.trials) == [(0, 1)]
    page.get_by_text("We study which letter positions carry a sentence.").wait_for()
    page.get_by_role("button", name=TEXTS["receipt_save"]).wait_for()


def test_the_consent_form_can_be_kept_as_one_readable_file(opened, new_page):
    _, page = opened(CONSENT, block(asked(1)), DEBRIEF)
    page.route("**/events", lambda route: route.abort())  # without a network too
    page.get_by_role("button", name=TEXTS["agree"]).click()
    respond(page, "choose", "Escape")
    with page.expect_download() as saving:
        page.get_by_role("button", name=TEXTS["receipt_save"]).click()
    page.get_by_role("status").get_by_text(TEXTS["receipt_saved"]).wait_for()
    assert saving.value.suggested_filename == "consent-demo.html"
    text = saving.value.path().read_text("utf-8")
    assert "http" not in text and "<script" not in text
    kept = new_page()
    kept.set_viewport_size({"width": 390, "height": 800})
    kept.set_content(text)
    for words in (
        "Which letter positions carry a sentence?",
        "You read short texts and answer a question about each.",
        "You agreed to this form on",
        "Version of the text: 3f2a",
        "give your participant number: P001",
    ):
        kept.get_by_text(words).first.wait_for()
    assert violations(kept) == []
    assert kept.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
