"""Every screen passes axe-core in light and dark and can be worked by keyboard alone."""

from __future__ import annotations

import pytest

from experiment.languages import pack_for
from tests.browser.plans import (
    BACKGROUND,
    CONSENT,
    DEBRIEF,
    DEVICE,
    INSTRUCTIONS,
    TEXTS,
    ab,
    answer,
    block,
    choose,
    feedback,
    multiple_choice,
    plan,
    practice,
    prime,
    questions,
    rate,
    read,
    recover,
    slide,
    trial,
)
from tests.browser.walking import finished, leave, respond, trial_shown, violations, violations_light_and_dark

pytestmark = pytest.mark.browser


def test_axe_finds_nothing_on_any_screen_in_light_and_dark(serve, new_page):
    tries = [trial(0, [choose()], answer="yes"), trial(1, [recover()], answer="garden")]
    shown = [
        ab(2),
        multiple_choice(3),
        trial(4, [read(), choose()]),
        trial(5, [recover(multiline=True)]),
        trial(6, [answer()]),
    ]
    screens = plan(CONSENT, INSTRUCTIONS, practice(tries), block(shown, break_every=2), DEBRIEF)
    server = serve(screens, config={"ask_participant": True})
    page = new_page(server.address)
    checked = []

    def check(*selector_and_key):
        selector, key = selector_and_key
        page.locator(selector).wait_for()
        assert violations_light_and_dark(page) == [], selector
        checked.append(selector)
        page.keyboard.press(key)

    page.get_by_label(TEXTS["participant_number"]).fill("P001")
    page.get_by_label(TEXTS["participant_number"]).focus()
    check("text=Welcome", "Enter")
    page.get_by_role("button", name=TEXTS["agree"]).focus()
    check("text=What is stored", "Enter")
    check("text=Page 1 of 2", "Space")
    check("text=Page 2 of 2", "Space")
    check(".trial.choose", "f")
    check(".page.bad", "Space")
    page.locator(".trial.recover input").wait_for()
    page.keyboard.type("garden")
    check(".trial.recover", "Enter")
    check(".page.good", "Space")
    check("text=End of practice", "Space")
    check(".exemplars", "a")
    check(".choices.listed", "b")
    check("text=Time for a break", "Space")
    check(".trial.read", "Space")
    check(".trial.choose", "j")
    page.locator("textarea").wait_for()
    page.keyboard.type("a")
    check("textarea", "Control+Enter")
    check("text=Time for a break", "Space")
    page.locator(".trial.answer textarea").wait_for()
    page.keyboard.type("verbs first")
    check(".trial.answer", "Control+Enter")
    check("text=About this study", "Space")
    check("text=Your completion code", "Tab")
    assert len(checked) == 19


def test_axe_finds_nothing_on_the_rarer_screens(serve, new_page):
    page = new_page(serve(plan(CONSENT, block([ab(0)]))).address)
    page.get_by_role("button", name=TEXTS["start"]).click()
    page.get_by_role("button", name=TEXTS["decline"]).click()
    page.get_by_role("heading", name=TEXTS["declined_title"]).wait_for()
    assert violations(page) == []
    page.get_by_role("button", name=TEXTS["back"]).click()
    page.get_by_role("button", name=TEXTS["start"]).click()
    page.get_by_role("button", name=TEXTS["agree"]).click()
    trial_shown(page, "choose")
    page.reload()
    page.get_by_role("heading", name=TEXTS["resume_title"]).wait_for()
    assert violations(page) == []
    preview = {"mode": "preview", "preview_plan": plan(block([ab(0)]))}
    page.goto(serve(plan(), config=preview).address)
    trial_shown(page, "choose")
    assert violations(page) == []


def test_axe_finds_nothing_on_the_screens_around_the_trials_in_light_and_dark(serve, new_page):
    window = read("one two", lines=["one two"], **{"as": "moving_window"})
    shown = [
        trial(0, [window, choose(time_limit_ms=4000)]),
        trial(1, [answer("Seven hungry dOgs", hint="Look at the capitals.")]),
        trial(2, [prime(mask_ms=5000), choose("garden")]),
        trial(3, [rate()]),
        trial(4, [slide()]),
    ]
    slow = {"kind": "break", "html": None, "minimum_ms": 6000}
    size = {"kind": "screen_size", "character_mm": 3.0}
    screens = plan(
        DEVICE,
        {"kind": "full_screen"},
        size,
        questions(*BACKGROUND),
        block(shown, feedback=feedback("late")),
        slow,
    )
    server = serve(screens)
    page = new_page()
    page.add_init_script("Element.prototype.requestFullscreen = () => Promise.reject(new Error('no'))")
    page.set_viewport_size({"width": 700, "height": 768})
    page.goto(server.address)
    page.get_by_role("button", name=TEXTS["start"]).click()

    def check(selector):
        page.locator(selector).first.wait_for()
        assert violations_light_and_dark(page) == [], selector

    check(".needs")
    page.set_viewport_size({"width": 1366, "height": 768})
    page.get_by_role("button", name=TEXTS["check_again"]).click()
    check("text=Full screen")
    page.keyboard.press("Space")
    check("text=does not allow full screen")
    page.keyboard.press("Space")
    check(".card")
    page.get_by_role("button", name=TEXTS["card_fits"]).click()
    check(".questions")
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    check(".question .problem:not(:empty)")
    fill_background(page)
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    check(".trial.read")
    page.keyboard.press("Space")
    page.locator(".word:not([aria-hidden])").wait_for()
    check(".trial.read")
    for word in ("one", "two"):
        leave(page.locator(".word:not([aria-hidden])", has_text=word))
    check(".page.bad")
    page.keyboard.press("Space")
    page.get_by_role("button", name=TEXTS["show_hint"]).click()
    check(".clue .words")
    page.keyboard.type("capitals")
    page.keyboard.press("Control+Enter")
    check(".trial.prime")
    respond(page, "choose", "j")
    check(".rating button")
    page.keyboard.press("3")
    check(".rating input")
    page.keyboard.press("ArrowRight")
    check(".rating input:not(.untouched)")
    page.keyboard.press("Enter")
    check(".wait")


def test_axe_finds_nothing_in_a_maze_or_where_parts_stand_alone(opened):
    maze = {
        "parts": ["The", "dog"],
        "foils": ["x-x-x", "ran"],
        "sides": ["left", "right"],
        "keys": ["f", "j"],
        "wrong": "retry",
    }
    alone = {"parts": ["The dog", "barks."], "lines": ["The dog", "barks."], "as": "centred"}
    trials = [
        trial(0, [read("The dog", **maze, **{"as": "maze"})]),
        trial(1, [read("The dog barks.", **alone)]),
    ]
    server, page = opened(block(trials))
    leave(page.locator(".maze"), "f")
    leave(page.locator(".maze .stimulus", has_text="dog"), "f")
    page.locator(".maze .notice", has_text=TEXTS["feedback_incorrect"]).wait_for()
    assert violations_light_and_dark(page) == []
    page.locator(".maze button").nth(1).click()
    page.locator(".word").first.wait_for()
    for words in ("The dog", "barks."):
        page.keyboard.press("Space")
        page.locator(".word:not([aria-hidden])", has_text=words.split()[0]).wait_for()
        assert violations_light_and_dark(page) == []
    page.keyboard.press("Space")
    finished(page, server)


def fill_background(page):
    page.locator("select").select_option("English")
    page.locator("#wrods-question-1").fill("33")
    for words in ("secondary", "Latin", "yes", "garden"):
        page.get_by_text(words, exact=True).click()
    page.locator(".scale input").nth(4).check()
    for row in page.get_by_role("radiogroup").all():
        row.get_by_role("radio").first.check(force=True)
    page.get_by_role("slider").click()


def test_no_screen_breaks_when_its_text_is_twice_as_large(serve, new_page):
    shown = [
        ab(0),
        multiple_choice(1),
        trial(2, [recover()]),
        trial(3, [read(), answer("Why?", hint="Think.")]),
    ]
    server = serve(plan(INSTRUCTIONS, questions(*BACKGROUND), block(shown)))
    page = new_page(server.address)
    page.evaluate("() => { document.documentElement.style.fontSize = '225%' }")

    def fits(selector):
        page.locator(selector).first.wait_for()
        wide = page.evaluate(
            """() => [...document.querySelectorAll("#wrods-stage *")].filter((part) => {
              const { left, right } = part.getBoundingClientRect();
              return right > innerWidth + 1 || left < -1;
            }).map((part) => part.outerHTML.slice(0, 80))"""
        )
        assert wide == [], selector

    page.get_by_role("button", name=TEXTS["start"]).click()
    fits("text=Page 1 of 2")
    page.keyboard.press("Space")
    fits("text=Page 2 of 2")
    page.keyboard.press("Space")
    fits(".questions")
    fill_background(page)
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    fits(".exemplars")
    page.keyboard.press("a")
    fits(".choices.listed")
    page.keyboard.press("b")
    fits(".trial.recover")
    page.keyboard.type("garden")
    page.keyboard.press("Enter")
    fits(".trial.read")
    page.keyboard.press("Space")
    fits(".trial.answer")


def test_nothing_moves_for_those_who_want_it_so(serve, new_page):
    server = serve(plan(questions(*BACKGROUND)))
    page = new_page(server.address, reduced_motion="reduce")
    page.get_by_role("button", name=TEXTS["start"]).click()
    page.locator(".questions").wait_for()
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((part) => {
          const { transitionDuration, animationName } = getComputedStyle(part);
          return parseFloat(transitionDuration) > 0 || animationName !== "none";
        }).length"""
    )
    assert moving == 0


@pytest.mark.parametrize("language", ["ar", "he"])
def test_pages_in_right_to_left_languages_keep_their_texts_in_place(serve, new_page, language):
    text = {"ar": "ذهب الولد إلى المدرسة.", "he": "הילד הלך לבית הספר."}[language]
    prose = {"kind": "instructions", "pages": [{"html": f"<p>{text}</p>", "text": text}]}
    study = plan(prose, block([trial(0, [choose(text, ask=text)])]), language=language)
    server = serve(study | {"title": text, "items_language": "fa"})
    page = new_page(server.address)
    page.get_by_role("button", name=pack_for(language).texts["start"]).click()
    page.get_by_text(text).last.wait_for()
    assert page.locator("html").evaluate("(html) => [html.lang, html.dir]") == [language, "rtl"]
    assert violations(page) == []
    for selector in (".prose", "header h1"):
        assert page.locator(selector).evaluate("(part) => getComputedStyle(part).direction") == "rtl", (
            selector
        )
    page.keyboard.press("Space")
    trial_shown(page, "choose")
    assert violations(page) == []
    for selector in (".stimulus", ".ask"):
        assert page.locator(selector).evaluate("(part) => getComputedStyle(part).direction") == "rtl", (
            selector
        )
    spoken = [page.locator(part).get_attribute("lang") for part in (".stimulus", ".ask")]
    assert spoken == ["fa", language], "items have a language of their own"
    places = {key: page.locator("kbd", has_text=key).bounding_box()["x"] for key in "FJ"}
    assert places["F"] < places["J"], "keys lie as on the keyboard"
    assert page.locator(".stop").bounding_box()["x"] < 100, "the control to stop is at the end of the line"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def focused(page):
    return page.evaluate(
        "() => [document.activeElement.tagName, document.activeElement.textContent.trim().slice(0, 40)]"
    )


def test_the_focus_goes_to_each_new_screen(serve, new_page):
    server = serve(plan(CONSENT, block([trial(0, [choose()]), trial(1, [recover()])])))
    page = new_page(server.address)
    page.get_by_role("heading", name=TEXTS["welcome"]).wait_for()
    assert focused(page) == ["H2", TEXTS["welcome"]]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=TEXTS["consent_title"]).wait_for()
    assert focused(page) == ["H2", TEXTS["consent_title"]]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    trial_shown(page, "choose")
    assert focused(page)[0] == "SECTION"
    page.keyboard.press("j")
    trial_shown(page, "recover")
    assert focused(page)[0] == "INPUT"


def test_tab_walks_through_the_choices_and_out_again_and_enter_chooses(opened):
    server, page = opened(block([trial(0, [choose()])]))
    trial_shown(page, "choose")
    walked = []
    for _ in range(3):
        page.keyboard.press("Tab")
        walked.append(focused(page)[0])
    assert walked == ["BUTTON", "BUTTON", "BUTTON"]
    assert focused(page)[1] == TEXTS["stop"], (
        "the control to stop comes behind what the trial is answered with"
    )
    page.keyboard.press("Tab")
    assert focused(page)[0] == "BODY"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=TEXTS["finished_title"]).wait_for()
    assert server.trials[0, 1]["response_raw"] == "no"
