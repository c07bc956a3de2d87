"""A whole visit: consent to completion code, through bad networks, reloads and refusals."""

from __future__ import annotations

import pytest

from tests.browser.plans import (
    CONSENT,
    DEBRIEF,
    INSTRUCTIONS,
    TEXTS,
    block,
    choose,
    plan,
    practice,
    read,
    trial,
)
from tests.browser.walking import finished, leave, respond, start, trial_shown, until

pytestmark = pytest.mark.browser


def questions(count, first=0, **more):
    return [trial(first + i, [choose(f"Question number {first + i}?")], **more) for i in range(count)]


def answer(page, *numbers, key="j"):
    for number in numbers:
        trial_shown(page, "choose", f"Question number {number}?")
        page.keyboard.press(key)


def test_a_visit_from_start_to_code(serve, new_page):
    server = serve(
        plan(CONSENT, INSTRUCTIONS, block(questions(2)), DEBRIEF),
        config={"ask_participant": True, "platform": {"STUDY_ID": "x"}},
    )
    page = new_page(server.address)
    page.get_by_role("heading", name=TEXTS["welcome"]).wait_for()
    page.keyboard.press("Enter")  # the field has the focus
    page.get_by_text(TEXTS["participant_missing"]).wait_for()
    assert page.get_by_label(TEXTS["participant_number"]).evaluate(
        "(field) => field === document.activeElement"
    )
    page.keyboard.type(" P007 ")
    page.keyboard.press("Enter")
    page.get_by_role("button", name=TEXTS["agree"]).click()
    leave(page.get_by_text(TEXTS["page_of"].format(page=1, pages=2)))
    page.get_by_role("button", name=TEXTS["back"]).click()
    leave(page.get_by_text(TEXTS["page_of"].format(page=1, pages=2)))
    leave(page.get_by_text(TEXTS["page_of"].format(page=2, pages=2)))
    answer(page, 0, 1)
    leave(page.get_by_role("heading", name=TEXTS["debrief_title"]))
    finished(page, server)

    opened = server.opened[0]
    assert (opened["participant"], opened["platform"]) == ("P007", {"STUDY_ID": "x"})
    client = opened["client"]
    assert client["browser"].startswith("Chrome")
    assert (client["system"], client["device"], client["width"]) == ("Linux", "computer", 1366)
    assert client["cross_origin_isolated"] is True
    assert client["refresh_hz"] > 0
    assert server.event("consent") | {"duration": 0} == {"agreed": True, "version": "3f2a", "duration": 0}
    assert [view["page_index"] for view in server.event("instructions")["view_history"]] == [0, 1, 0, 1]
    assert sorted(server.trials) == [(0, 1), (1, 1)]
    assert server.posts("/finish")[0].body == {"trials": 2, "completed": True}


def test_whom_the_server_puts_off_at_the_start_is_not_told_of_the_network_or_of_answers(opened):
    server, page = opened(block(questions(1)), reply_with={"sessions": [429, 503, 503, 503]})
    page.get_by_role("status").get_by_text(TEXTS["out_of_order"]).wait_for()
    answer(page, 0)
    finished(page, server)


def test_who_declines_is_thanked_and_nothing_more_is_asked(opened):
    server, page = opened(CONSENT, block(questions(1)), DEBRIEF)
    page.get_by_role("button", name=TEXTS["decline"]).click()
    page.get_by_role("heading", name=TEXTS["declined_title"]).wait_for()
    debriefing = page.locator("details")
    assert not debriefing.locator(".prose").is_visible()
    debriefing.locator("summary").press("Enter")
    assert debriefing.get_by_text("which letter positions carry a sentence").is_visible()
    assert server.event("consent") == {"agreed": False}
    assert not server.trials
    told = len([sent for sent in server.posts("s") if "/sessions/" in sent.path])
    page.reload()
    page.get_by_role("heading", name=TEXTS["declined_title"]).wait_for()
    assert (server.posts("/finish"), told) == ([], 1), "nothing is sent but that they declined"
    page.get_by_role("button", name=TEXTS["back"]).click()  # they may think better of it
    start(page)
    page.get_by_role("heading", name=TEXTS["consent_title"]).wait_for()
    assert len(server.opened) == 2


def test_practice_tells_right_from_wrong_and_repeats_until_it_is_passed(opened):
    tries = [trial(i, [choose(f"Question number {i}?")], answer="yes") for i in range(2)]
    server, page = opened(practice(tries, **{"pass": 1.0}), block(questions(1, first=2)))
    answer(page, 0, key="f")
    page.get_by_role("heading", name=TEXTS["feedback_incorrect"]).wait_for()
    leave(page.get_by_text(TEXTS["feedback_answer"].format(answer="yes")))
    answer(page, 1)
    leave(page.get_by_role("heading", name=TEXTS["feedback_correct"]))
    leave(page.get_by_text(TEXTS["practice_again"].partition("{")[0]))
    for number in (0, 1):
        answer(page, number)
        leave(page.get_by_role("heading", name=TEXTS["feedback_correct"]))
    leave(page.get_by_text(TEXTS["practice_passed"]))
    answer(page, 2)
    finished(page, server)
    assert sorted(server.trials) == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)]
    verdicts = [event["detail"] for event in server.events if event["kind"] == "practice"]
    assert [(v["pass"], v["right"], v["then"]) for v in verdicts] == [(1, 1, "again"), (2, 2, "go on")]


def login(route):
    route.fulfill(status=200, content_type="text/html", body="<p>Please log in to the hotel's network</p>")


def lost_reply(route):
    assert route.fetch().status in (200, 201)
    route.abort()


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (lambda route: route.abort(), [201, 201, 201]),
        (login, [201, 201, 201]),
        # the server stored it, the reply never came: the same again is answered 200 and counts once
        (lost_reply, [201, 200, 200, 201, 201]),
    ],
    ids=["no network", "a login page in between", "lost replies"],
)
def test_troubles_on_the_way_lose_and_double_nothing(opened, trouble, told):
    server, page = opened(block(questions(3)))
    caught = []

    def twice(route):
        caught.append(1)
        trouble(route) if len(caught) <= 2 else route.continue_()

    page.route("**/trials", twice)
    answer(page, 0, 1, 2)
    finished(page, server)
    assert sorted(server.trials) == [(0, 1), (1, 1), (2, 1)]
    assert [sent.status for sent in server.posts("/trials")] == told


@pytest.mark.parametrize("is_offline", [False, True])
def test_a_reload_goes_on_where_the_reader_was_and_sends_what_waited(opened, is_offline):
    server, page = opened(CONSENT, INSTRUCTIONS, block(questions(3)))
    page.get_by_role("button", name=TEXTS["agree"]).click()
    for number in (1, 2):
        leave(page.get_by_text(TEXTS["page_of"].format(page=number, pages=2)))
    if is_offline:
        page.route("**/trials", lambda route: route.abort())
    answer(page, 0)
    trial_shown(page, "choose", "Question number 1?")
    assert not (is_offline and server.trials)
    page.unroute("**/trials")
    page.reload()
    leave(page.get_by_role("heading", name=TEXTS["resume_title"]))
    answer(page, 1, 2)
    finished(page, server)
    # The trial that was on the screen was seen before: what is answered is its second attempt.
    assert sorted(server.trials) == [(0, 1), (1, 2), (2, 1)]
    assert len(server.opened) == 1
    assert sum(event["kind"] == "consent" for event in server.events) == 1


def test_answers_of_an_earlier_session_are_sent_when_the_page_is_opened_again(opened):
    server, page = opened(block(questions(2)))
    page.route("**/trials", lambda route: route.abort())
    answer(page, 0)
    trial_shown(page, "choose", "Question number 1?")
    again = page.context.new_page()  # a new tab: another session, the same browser
    page.close()
    again.goto(server.address)
    again.get_by_role("heading", name=TEXTS["welcome"]).wait_for()
    until(lambda: (0, 1) in server.trials)


def test_finishing_sends_again_what_the_server_lacks(opened):
    server, page = opened(block(questions(3)), lose_trials=1)
    answer(page, 0, 1, 2)
    finished(page, server)
    assert sorted(server.trials) == [(0, 1), (1, 1), (2, 1)]
    assert [sent.status for sent in server.posts("/finish")] == [409, 200]


@pytest.mark.parametrize("is_mistyped", [False, True])
def test_another_participant_starts_afresh_on_a_lab_machine(serve, new_page, is_mistyped):
    server = serve(plan(block(questions(2))), config={"ask_participant": True})
    page = new_page(server.address)
    page.get_by_label(TEXTS["participant_number"]).fill("P001")
    page.keyboard.press("Enter")
    answer(page, 0)
    if is_mistyped:
        trial_shown(page, "choose", "Question number 1?")
        page.reload()
        page.get_by_text(TEXTS["resume_number"].format(participant="P001")).wait_for()
        page.get_by_role("button", name=TEXTS["not_me"]).click()
    else:
        answer(page, 1)
        finished(page, server)
        page.get_by_role("button", name=TEXTS["next_participant"]).click()
    page.get_by_label(TEXTS["participant_number"]).fill("P002")
    page.keyboard.press("Enter")
    answer(page, 0, 1)
    finished(page, server)
    assert [opened["participant"] for opened in server.opened] == ["P001", "P002"]
    both = [(0, 1), (1, 1)]
    assert [sorted(server.stored[name]) for name in ("s1", "s2")] == [both[: 1 if is_mistyped else 2], both]


def test_a_preview_shows_its_screens_and_sends_nothing(serve, new_page):
    screens = plan(block([trial(0, [read(), choose()])]))
    server = serve(plan(), config={"mode": "preview", "preview_plan": screens})
    page = new_page(server.address)
    page.get_by_text(TEXTS["preview"]).wait_for()
    respond(page, "read", "Space")
    respond(page, "choose", "j")
    page.get_by_role("heading", name=TEXTS["preview_end_title"]).wait_for()
    assert server.sent == []
    assert page.evaluate("() => sessionStorage.length") == 0
    assert page.evaluate("() => indexedDB.databases().then((all) => all.length)") == 0


WITHOUT = {
    "Element Timing": "Object.defineProperty(PerformanceObserver, 'supportedEntryTypes', { get: () => [] })",
    "IndexedDB": "Object.defineProperty(window, 'indexedDB', { get: () => { throw new Error('denied') } })",
    "the clipboard": "Object.defineProperty(navigator, 'clipboard', { get: () => undefined })",
}


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_browser_without_something_still_delivers_every_answer(opened, missing):
    allowed = "answers are kept in memory only" if missing == "IndexedDB" else None
    server, page = opened(block(questions(2)), allowed=allowed, script=WITHOUT[missing])
    answer(page, 0, 1)
    finished(page, server)
    page.get_by_role("button", name=TEXTS["copy"]).click()
    assert sorted(server.trials) == [(0, 1), (1, 1)]
    assert (server.trials[0, 1]["paint_ts"] is None) == (missing == "Element Timing")
    assert len({row["client_uuid"] for row in server.trials.values()}) == 2


def test_a_station_counts_no_trials_of_a_session_without_a_list(serve, new_page):
    server = serve(plan(block(questions(1))), config={"ask_participant": True})
    page = new_page()
    left = {"next_trial": 1, "last_seen_at": "2026-11-20T10:00:00+00:00", "station": "Station 03"}
    unfinished = [{**left, "participant": "P001", "trials": 0}, {**left, "participant": "P002", "trials": 48}]
    page.route(
        "**/station/start", lambda route: route.fulfill(json={"state": "new", "unfinished": unfinished})
    )
    page.add_init_script("localStorage.setItem('wrods-station', 'Station 03')")
    page.goto(server.address)
    page.get_by_text("trial 1 of 48").wait_for()
    assert "?" not in page.locator(".unfinished").inner_text()
    assert "P001: Nov 20, 2026" in page.locator(".unfinished").inner_text()
