"""What people see of a stimulus is the study's doing: not their system's dark mode, nor the width of their window."""

from __future__ import annotations

import math
import re

import pytest

from experiment.building.reading import CELL_PX, MARGIN_PX
from tests.browser.plans import INSTRUCTIONS, TEXTS, ab, block, choose, feedback, plan, read, trial
from tests.browser.walking import finished, respond, start, trial_shown, until

pytestmark = pytest.mark.browser

SYSTEMS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "high contrast": {"color_scheme": "dark", "forced_colors": "active"},
}
FULL_SCREEN = {"kind": "full_screen"}
LONG = " ".join(["sentence"] * 7)


WATCH_CROSS = """() => new MutationObserver(() => {
  const cross = document.querySelector(".fixation");
  if (cross) window.cross = [getComputedStyle(cross).color, getComputedStyle(document.body).backgroundColor];
}).observe(document.body, { childList: true, subtree: true })"""


def paper(page):
    return page.evaluate("() => getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize(
    ("polarity", "systems"),
    [("dark_on_light", ["light", "dark", "high contrast"]), ("light_on_dark", ["light", "high contrast"])],
)
def test_stimuli_have_the_same_pixels_whatever_the_system_prefers(serve, new_page, polarity, systems):
    pictures, pages = {}, {}
    for system in systems:
        asked = SYSTEMS[system]
        first = ab(0)
        told = block([first, trial(1, [choose()])], feedback=feedback("late", "600 ms"))
        server = serve({**plan(INSTRUCTIONS, told), "display": {"polarity": polarity}})
        page = new_page(server.address, **asked)
        page.get_by_role("heading", name=TEXTS["welcome"]).wait_for()
        pages[system] = paper(page)
        start(page)
        page.get_by_text(TEXTS["page_of"].format(page=1, pages=2)).wait_for()
        page.evaluate(WATCH_CROSS)
        for _ in INSTRUCTIONS["pages"]:
            page.get_by_role("button", name=TEXTS["go_on"]).click()
        trial_shown(page, "choose")
        cross = page.evaluate("() => window.cross")
        assert cross is not None
        pictures[system] = (cross, page.screenshot(animations="disabled"))
        page.keyboard.press("a")
        respond(page, "choose", "j", "Does the dog bark?")
        finished(page, server)
        assert paper(page) == pages[system], "the screens after the trials follow the system again"
        client = server.opened[0]["client"]
        assert (client["prefers_dark"], client["forced_colors"]) == (
            asked["color_scheme"] == "dark",
            "forced_colors" in asked,
        )
        assert pictures[system] == pictures["light"], system
    assert pages[systems[1]] != pages["light"], "the screens around trials follow the system"


def picture(page, color_scheme):
    page.emulate_media(color_scheme=color_scheme)
    return page.screenshot(animations="disabled")


def test_a_change_of_the_systems_colours_is_recorded_and_changes_no_stimulus(serve, new_page):
    server = serve(plan(block([ab(0)])))
    page = new_page(server.address, color_scheme="light")
    start(page)
    trial_shown(page, "choose")
    page.emulate_media(color_scheme="dark")
    until(lambda: any(event["kind"] == "system_display" for event in server.events))
    assert server.event("system_display")["prefers_dark"] is True
    # A busy browser may hand out a frame that is out of date, so both pictures are taken anew each time.
    until(lambda: picture(page, "light") == picture(page, "dark"))


def moving(index, lines):
    return trial(index, [read(" ".join(lines), lines=lines, **{"as": "moving_window"}), choose()])


def test_a_window_too_narrow_for_a_moving_window_is_asked_to_be_wider_before_the_trial(opened):
    server, page = opened(block([moving(0, [LONG, "and more."])]), size=(700, 600))
    page.get_by_role("heading", name=TEXTS["window_small_title"]).wait_for()
    needed = math.ceil(len(LONG) * CELL_PX) + MARGIN_PX
    assert f"at least {needed} pixels" in page.locator(".page").inner_text()
    assert page.locator(".trial").count() == 0
    page.keyboard.press("Space")
    page.get_by_role("heading", name=TEXTS["window_small_title"]).wait_for()
    page.set_viewport_size({"width": needed, "height": 600})
    trial_shown(page, "read")
    told = server.event("window_small")
    assert (told["needed"], told["width"], told["fits"]) == (needed, needed, True)
    rows = page.locator(".stimulus").evaluate(
        "(text) => text.getClientRects().length && text.innerText.split('\\n').length"
    )
    assert rows == 2
    assert not any(event["kind"] == "text_scaled" for event in server.events)


def reads_on(page):
    """Press for the next word; whether the text is read to its end."""
    page.keyboard.press("Space")
    page.wait_for_timeout(40)
    return page.locator(".trial.read").count() == 0


def test_who_cannot_widen_the_window_reads_smaller_text_and_it_is_recorded(opened):
    server, page = opened(block([moving(0, [LONG])]), block([moving(1, [LONG])]), size=(700, 600))
    page.get_by_role("button", name=TEXTS["window_small_go_on"]).click()
    for index in range(2):
        trial_shown(page, "read")
        if index == 1:  # the session's nodes are made again
            page.keyboard.press("Escape")
            page.get_by_role("button", name=TEXTS["stop_continue"]).click()
            trial_shown(page, "read")
        until(lambda: reads_on(page))
        respond(page, "choose", "j")
    finished(page, server)
    told = [event["detail"] for event in server.events if event["kind"] == "window_small"]
    assert [one["fits"] for one in told] == [False], "asked once for one width"
    assert sum(event["kind"] == "text_scaled" for event in server.events) == 3
    assert [region["line"] for region in server.trials[1, 2]["regions"]] == [0] * 7


def test_words_whose_letters_and_dashes_differ_in_width_fit_a_narrow_window(serve, new_page):
    line = "となりのひと は 庭で じてんしゃ を なおした。"
    server = serve(plan(block([moving(0, [line])]), language="ja"))
    page = new_page()
    page.set_viewport_size({"width": 700, "height": 600})
    page.goto(server.address)
    for leave in ("smaller", "wider"):
        page.locator("button.main").click()
        page.locator("button.quiet").wait_for()
        if leave == "smaller":
            page.locator("button.quiet").click()
        else:
            told = page.locator(".page", has_text=re.compile(r"\d{3,}")).inner_text()
            needed = int(re.search(r"\d{3,}", told)[0])
            page.set_viewport_size({"width": needed, "height": 600})
        respond(page, "read", "Space")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), leave
        page.reload()


def test_who_leaves_full_screen_is_asked_back_before_the_next_trial(opened):
    server, page = opened(FULL_SCREEN, block([ab(0), ab(1)]))
    page.get_by_role("button", name=TEXTS["full_screen_go"]).click()
    trial_shown(page, "choose")
    page.evaluate("() => document.exitFullscreen()")
    page.keyboard.press("a")
    page.get_by_role("heading", name=TEXTS["full_screen_title"]).wait_for()
    page.get_by_role("button", name=TEXTS["full_screen_go"]).click()
    trial_shown(page, "choose")
    assert page.evaluate("() => document.fullscreenElement !== null")
    page.keyboard.press("a")
    finished(page, server)
    told = [event["detail"] for event in server.events if event["kind"] == "full_screen"]
    assert [one["granted"] for one in told] == [True, True]
    assert told[1]["before"] == 0
