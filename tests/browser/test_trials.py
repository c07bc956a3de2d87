"""Each kind of trial under real key strokes: what is recorded, and when."""

from __future__ import annotations

import time

import pytest

from tests.browser.plans import TEXTS, answer, block, choose, rate, read, recover, slide, trial
from tests.browser.walking import finished, leave, respond, trial_shown, until, violations
from tests.conftest import PATIENCE_S, picture, sound

pytestmark = pytest.mark.browser

EARLY_MS = 5000
"""A minimum time within which even a slow machine has struck some keys."""
FIELDS = {
    "client_uuid", "trial_index", "attempt", "response_raw", "timed_out", "rt", "reading_time", "onset_ts", "paint_ts",
    "response_ts", "handler_ts", "frame_period", "dropped_frames", "hidden_ms", "blurred_ms", "first_key_ms", "typing_ms",
    "paste_count", "keyless_chars", "insertions",
    "early_responses", "early_keys", "key_log", "hint_ms", "prime_frames", "prime_ms", "shown_frames", "shown_ms", "regions",
    "plugin_version", "created_at", "next",
}  # fmt: skip


def run_one(opened, planned, act, *, kind="choose", **more):
    """Show one trial, act on it when it is up, and return its row."""
    server, page = opened(block([planned]), **more)
    if act is not None:  # what ends by itself may be over before a slow machine looks for it
        trial_shown(page, kind)
        act(page)
    finished(page, server)
    return server.trials[0, 1]


def press_after(key, delay):
    def act(page):
        time.sleep(delay / 1000)
        page.keyboard.press(key)

    return act


def assert_times_are_honest(row, delay):
    assert row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"], abs=1e-6)
    assert delay - 5 < row["rt"] < delay + 1000 * PATIENCE_S
    assert row["handler_ts"] >= row["response_ts"] > row["onset_ts"] > 0
    assert row["frame_period"] > 0
    assert row["onset_ts"] - row["frame_period"] <= row["paint_ts"] < row["response_ts"]
    assert row["hidden_ms"] == 0
    assert row["dropped_frames"] >= 0


def test_a_choice_by_key_records_every_field(opened):
    row = run_one(opened, trial(0, [choose()]), press_after("J", 300))  # with the shift lock on
    assert set(row) == FIELDS
    assert row["response_raw"] == "yes"
    assert row["timed_out"] is False
    assert row["plugin_version"] == "wrods-choose 0.1.0"
    assert row["reading_time"] is None
    assert_times_are_honest(row, 300)


def test_other_keys_and_shortcuts_are_no_answers_and_a_choice_can_be_clicked(opened):
    def act(page):
        for key in ("x", "Enter", "Control+j", "F2"):
            page.keyboard.press(key)
        time.sleep(0.1)
        page.get_by_role("button", name="no").click()

    assert run_one(opened, trial(0, [choose()]), act)["response_raw"] == "no"


def test_a_key_pressed_before_the_onset_and_held_is_no_answer(opened):
    server, page = opened({"kind": "break", "html": None, "minimum_ms": 0}, block([trial(0, [choose()])]))
    page.get_by_role("heading", name=TEXTS["break_title"]).wait_for()
    page.keyboard.down("j")
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    trial_shown(page, "choose")
    for _ in range(5):
        page.keyboard.down("j")  # the keyboard repeats a key that is held
        time.sleep(0.03)
    assert page.locator(".trial.choose").is_visible()
    page.keyboard.up("j")
    page.keyboard.press("f")
    finished(page, server)
    assert server.trials[0, 1]["response_raw"] == "no"


@pytest.mark.parametrize("step", [choose, recover])
def test_time_runs_out_and_what_was_typed_is_kept(opened, step):
    typed, limit = {choose: (None, 300), recover: ("gar", 5000)}[step]
    act = (lambda page: page.keyboard.type(typed)) if typed else None
    row = run_one(opened, trial(0, [step(time_limit_ms=limit)]), act, kind="recover")
    assert (row["response_raw"], row["timed_out"], row["rt"]) == (typed, True, None)
    assert row["response_ts"] is row["handler_ts"] is None and row["onset_ts"] > 0


def test_a_blocked_page_does_not_lengthen_the_response_time(opened):
    """The key's own time stamp counts, not the moment at which a busy page comes to see it."""
    server, page = opened(block([trial(i, [choose()]) for i in range(3)]))
    for i in range(3):
        trial_shown(page, "choose")
        page.evaluate(
            """() => setTimeout(() => {
              const end = performance.now() + 2000;
              while (performance.now() < end);
            }, 0)"""
        )
        page.keyboard.press("j")
        until(lambda i=i: (i, 1) in server.trials)
    finished(page, server)
    # a loaded machine may press a key only after the block; one that came inside it is enough
    row = max(server.trials.values(), key=lambda row: row["handler_ts"] - row["response_ts"])
    assert row["handler_ts"] - row["response_ts"] > 300
    assert row["rt"] < row["handler_ts"] - row["onset_ts"] - 300
    assert row["dropped_frames"] > 0


def test_a_rating_by_digit_key_records_every_field(opened):
    row = run_one(opened, trial(0, [rate()]), press_after("6", 300), kind="rate")
    assert set(row) == FIELDS
    assert (row["response_raw"], row["timed_out"]) == ("6", False)
    assert row["plugin_version"] == "wrods-rate 0.1.0"
    assert_times_are_honest(row, 300)


def test_named_points_can_be_clicked_and_early_presses_count_for_nothing(opened):
    names = ["guessing", "unsure", "fairly sure", "certain"]
    step = rate(labels=names, keys=list("1234"), low=None, high=None, minimum_ms=3000)

    def act(page):
        page.keyboard.press("1")
        page.locator(".rating button:not([aria-disabled])").first.wait_for()
        page.get_by_role("button", name="fairly sure").click()

    row = run_one(opened, trial(0, [step]), act, kind="rate")
    assert (row["response_raw"], row["early_responses"], row["early_keys"][0][1]) == (
        "fairly sure",
        1,
        "guessing",
    )


def test_a_slider_has_no_handle_and_gives_no_answer_until_it_is_touched(opened):
    timed = [trial(2, [rate(time_limit_ms=300)]), trial(3, [slide(time_limit_ms=300)])]
    server, page = opened(block([trial(0, [slide()]), trial(1, [slide(text="Another.")]), *timed]))
    trial_shown(page, "rate")
    box = page.locator(".rating input").bounding_box()

    def beside_the_line(share):
        x, y = box["x"] + share * box["width"], box["y"] + box["height"] / 2 + 8
        return page.screenshot(clip={"x": x - 2, "y": y, "width": 4, "height": 2})

    assert beside_the_line(0.5) == beside_the_line(0.25)
    page.keyboard.press("Enter")
    page.locator(".rating .actions button").dispatch_event("click")
    page.keyboard.press("ArrowRight")
    assert beside_the_line(0.5) != beside_the_line(0.25)
    page.keyboard.press("Enter")
    trial_shown(page, "rate", "Another.")  # it can be set where its middle is clicked
    box = page.locator(".rating input").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.get_by_role("button", name=TEXTS["done"]).click()
    finished(page, server)
    rows = [server.trials[index, 1] for index in range(4)]
    assert [(row["response_raw"], row["timed_out"]) for row in rows] == [
        ("51", False), ("50", False), (None, True), (None, True),
    ]  # fmt: skip
    assert rows[2]["rt"] is rows[3]["rt"] is None


def test_reading_and_choosing_are_one_row(opened):
    server, page = opened(block([trial(0, [read(), choose()])]))
    trial_shown(page, "read")
    time.sleep(0.4)
    page.keyboard.press("Space")
    trial_shown(page, "choose")
    time.sleep(0.2)
    page.keyboard.press("j")
    finished(page, server)
    assert list(server.trials) == [(0, 1)]
    row = server.trials[0, 1]
    assert 395 < row["reading_time"] < 1000 * PATIENCE_S
    assert_times_are_honest(row, 200)


def test_reading_cannot_end_before_its_minimum(opened):
    def act(page):
        page.keyboard.press("Space")
        assert page.locator(".trial.read").is_visible()
        page.locator(".trial.read button:not([aria-disabled])").click()
        respond(page, "choose", "j")

    row = run_one(opened, trial(0, [read(minimum_ms=3000), choose()]), act, kind="read")
    assert row["reading_time"] >= 3000


def test_a_recovery_records_how_it_was_typed(opened):
    def act(page):
        time.sleep(0.2)
        page.keyboard.type("gardem", delay=40)
        page.keyboard.press("Backspace")
        page.keyboard.type("n")
        page.keyboard.press("Enter")

    row = run_one(opened, trial(0, [recover()]), act, kind="recover")
    assert set(row) == FIELDS
    assert row["response_raw"] == "garden"
    assert [key for _, key in row["key_log"]] == [*"gardem", "Backspace", "n"]
    assert 195 < row["first_key_ms"] < row["rt"]
    assert row["first_key_ms"] + row["typing_ms"] == pytest.approx(row["rt"], abs=1e-6)
    assert (row["paste_count"], row["keyless_chars"]) == (0, 0)
    assert row["plugin_version"] == "wrods-recover 0.1.0"
    assert_times_are_honest(row, 400)


def test_a_free_answer_to_a_question_alone_is_typed_over_several_lines(opened):
    def act(page):
        page.keyboard.type("Words that name")
        page.keyboard.press("Enter")
        page.keyboard.type("an animal.")
        page.keyboard.press("Control+Enter")

    row = run_one(opened, trial(0, [answer()]), act, kind="answer")
    assert set(row) == FIELDS
    assert row["response_raw"] == "Words that name\nan animal."
    assert (row["paste_count"], row["keyless_chars"]) == (0, 0)
    assert row["plugin_version"] == "wrods-answer 0.1.0"
    assert_times_are_honest(row, 0)


def test_nothing_helps_with_the_spelling_and_pasting_is_refused_and_counted(opened):
    def act(page):
        field = page.locator("#wrods-answer")
        names = (
            "spellcheck",
            "autocorrect",
            "autocomplete",
            "autocapitalize",
            "translate",
            "writingsuggestions",
        )
        assert [field.get_attribute(name) for name in names] == ["false", "off", "off", "off", "no", "false"]
        stimulus = page.locator(".stimulus")
        assert (stimulus.get_attribute("translate"), stimulus.get_attribute("lang")) == ("no", "en")
        page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.stimulus'))")
        page.keyboard.press("Control+c")
        page.locator("#wrods-answer").click()
        page.keyboard.press("Control+v")
        page.keyboard.press("Control+v")
        assert page.locator("#wrods-answer").input_value() == ""
        page.keyboard.type("gar")
        page.keyboard.press("Enter")

    row = run_one(opened, trial(0, [recover()]), act, kind="recover")
    assert (row["response_raw"], row["paste_count"], row["keyless_chars"]) == ("gar", 2, 0)


def test_characters_that_no_key_typed_are_counted_and_taken_back(opened):
    def act(page):
        page.keyboard.type("ga")
        page.keyboard.insert_text("rden")  # as dictation and autofill do
        page.wait_for_function("() => document.querySelector('#wrods-answer').value === 'ga'")
        page.get_by_text(TEXTS["no_pasting"]).wait_for()
        page.keyboard.type("p")
        page.keyboard.press("Enter")

    row = run_one(opened, trial(0, [recover()]), act, kind="recover")
    assert (row["response_raw"], row["keyless_chars"]) == ("gap", 4)
    assert [how for _, how in row["insertions"]] == ["insertText"]
    assert [key for _, key in row["key_log"]] == [*"gap"]


def compose(page, text):
    """Let an input method show what it composes, as Chromium hands it to a page after a key stroke."""
    session = page.context.new_cdp_session(page)
    stroke = {"key": "Process", "code": "KeyA", "windowsVirtualKeyCode": 229}
    session.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **stroke})
    session.send("Input.dispatchKeyEvent", {"type": "keyUp", **stroke})
    ends = {"selectionStart": len(text), "selectionEnd": len(text)}
    session.send("Input.imeSetComposition", {"text": text, **ends})


def test_what_an_input_method_composes_is_recorded_apart_from_text_without_keys(opened):
    server, page = opened(block([trial(0, [recover()])]))
    trial_shown(page, "recover")
    for text in ("n", "に", "にh", "にほ", "日本"):
        compose(page, text)
    page.keyboard.insert_text("日本")  # what is composed is committed
    assert page.locator("#wrods-answer").input_value() == "日本"
    page.keyboard.press("Enter")
    finished(page, server)
    row = server.trials[0, 1]
    assert (row["response_raw"], row["paste_count"], row["keyless_chars"]) == ("日本", 0, 0)
    told = [event["detail"]["characters"] for event in server.events if event["kind"] == "composition"]
    assert told == [2]


def test_dictated_text_stays_and_is_recorded_where_a_study_allows_it(opened):
    def act(page):
        page.keyboard.insert_text("the garden")
        page.keyboard.press("Enter")

    row = run_one(opened, trial(0, [recover()]), act, kind="recover", study={"assistive_input": True})
    assert (row["response_raw"], row["keyless_chars"]) == ("the garden", 10)
    assert [how for _, how in row["insertions"]] == ["insertText"]


@pytest.mark.parametrize("step", [choose, recover])
def test_nothing_is_answered_before_the_minimum_time_and_early_keys_are_kept(opened, step):
    kind = step()["step"]
    first, last = {"choose": ("jf", "j"), "recover": ("ga", "Enter")}[kind]

    def act(page):
        page.keyboard.type(first)
        button = page.locator(".choices button, .actions button").first
        assert button.get_attribute("aria-disabled") == "true"
        button.click(force=True)
        if kind != "choose":
            assert page.locator("#wrods-answer").input_value() == ""
        page.wait_for_function(
            "() => !document.querySelector('.choices button, .actions button').hasAttribute('aria-disabled')"
        )
        if kind != "choose":
            page.keyboard.type("odd")
        page.keyboard.press(last)

    row = run_one(opened, trial(0, [step(minimum_ms=EARLY_MS)]), act, kind=kind)
    names = [key for _, key in row["early_keys"]]
    assert names == (["yes", "no", "no"] if kind == "choose" else ["g", "a"])
    assert row["early_responses"] == len(names)
    assert all(0 < at < EARLY_MS for at, _ in row["early_keys"])
    assert row["rt"] >= EARLY_MS - 1e-6
    assert row["response_raw"] == ("yes" if kind == "choose" else "odd")
    if kind != "choose":
        assert [key for _, key in row["key_log"]] == [*"odd"]


def test_an_empty_answer_is_asked_about_once(opened):
    def act(page):
        page.keyboard.press("Enter")
        leave(page.get_by_text(TEXTS["empty_again"]), "Enter")

    row = run_one(opened, trial(0, [recover()]), act, kind="recover")
    assert (row["response_raw"], row["timed_out"]) == ("", False)


def test_time_in_another_window_is_recorded(opened):
    def act(page):
        page.evaluate("() => window.dispatchEvent(new Event('blur'))")
        time.sleep(0.3)
        page.evaluate("() => window.dispatchEvent(new Event('focus'))")
        time.sleep(0.1)
        page.keyboard.press("j")

    row = run_one(opened, trial(0, [choose()]), act)
    assert 290 < row["blurred_ms"] < row["rt"]


def test_stimuli_are_drawn_as_text_never_as_markup_in_the_page_s_own_font_letter_by_letter(opened):
    nasty = "<img src=x onerror=alert(1)> & <b>Lettre διαβάζω ещё</b>"
    _, page = opened(block([trial(0, [choose(nasty)])]))
    trial_shown(page, "choose")
    assert page.locator(".stimulus").inner_text() == nasty
    assert page.locator(".stimulus *").count() == 0
    style = page.locator(".stimulus").evaluate(
        "(e) => [getComputedStyle(e).fontFamily, getComputedStyle(e).fontVariantLigatures]"
    )
    assert style[0].startswith('"Source Code Pro Variable"')
    assert style[1] == "none"
    assert page.evaluate("() => [...document.fonts].filter((f) => f.status === 'loaded').length") >= 3


def test_pictures_and_sounds_are_there_with_the_onset_and_sounds_say_when_they_began(opened):
    seen = {"kind": "image", "name": "a1.png", "text": "a red field"}
    heard = {"kind": "audio", "name": "b2.wav", "text": None}
    server, page = opened(
        block(
            [
                trial(0, [choose(None, ask="Is it red?", media=[seen])]),
                trial(1, [choose("Loud?", media=[heard])]),
            ]
        ),
        media={"a1.png": picture(), "b2.wav": sound()},
        withheld={"a1.png": 1},
        size=(390, 800),
    )
    trial_shown(page, "choose")
    image = page.get_by_role("img", name="a red field")
    assert image.evaluate("image => [image.complete, image.naturalWidth]") == [True, 40]
    box = image.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.keyboard.press("j")
    until(lambda: (0, 1) in server.trials)
    leave(page.get_by_text("Loud?"), "f")
    finished(page, server)
    first, second = server.trials[0, 1], server.trials[1, 1]
    assert [first["response_raw"], second["response_raw"]] == ["yes", "no"]
    assert first["paint_ts"] is not None
    (start,) = server.event("media")["starts"]
    assert (start["kind"], start["name"]) == ("audio", "b2.wav")
    assert start["start_ts"] == pytest.approx(
        second["onset_ts"], abs=second["frame_period"]
    )  # the same frame


@pytest.mark.parametrize(("key", "given"), [(" ", "word"), (None, "nonword")])
def test_waiting_is_an_answer_where_a_label_has_no_key(opened, key, given):
    step = choose("gadren", labels=["word", "nonword"], responses=["word", "nonword"], keys=["space", "none"])
    row = run_one(
        opened,
        trial(0, [step | {"time_limit_ms": 30_000 if key else 300}]),
        press_after(key, 200) if key else None,
    )
    assert row["response_raw"] == given
    assert row["timed_out"] is False
    assert (row["rt"] is None) == (key is None)


def test_a_text_has_the_colours_and_size_of_its_style(opened):
    style = {"colour": "#c00000", "background": "white", "size": "200%"}
    _, page = opened(block([trial(0, [choose("blau", style=style)]), trial(1, [choose("grau")])]))

    def look():
        page.locator(".trial.choose .stimulus").wait_for()
        script = "text => { const is = getComputedStyle(text); return [is.color, is.backgroundColor, parseFloat(is.fontSize)]; }"
        return page.locator(".stimulus").evaluate(script)

    colour, background, size = look()
    assert (colour, background) == ("rgb(192, 0, 0)", "rgb(255, 255, 255)")
    page.keyboard.press("j")
    page.get_by_text("grau").wait_for()
    plain_colour, _, plain_size = look()
    assert plain_colour != colour
    assert size == pytest.approx(2 * plain_size)


def test_pictures_are_buttons_where_the_choices_are_files(opened):
    pictures = [{"kind": "image", "name": f"{letter}.png", "text": f"picture {letter}"} for letter in "ab"]
    step = choose(
        "The dog barks.", labels=["A", "B"], responses=["a", "b"], options=["", ""], pictures=pictures
    )
    server, page = opened(
        block([trial(0, [step])]), media={"a.png": picture(), "b.png": picture()}, size=(390, 800)
    )
    trial_shown(page, "choose")
    boxes = [page.get_by_role("img", name=f"picture {letter}").bounding_box() for letter in "ab"]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    page.get_by_role("button", name="picture b").click()
    finished(page, server)
    assert server.trials[0, 1]["response_raw"] == "B"


def test_several_labels_are_ticked_by_keys_and_clicks_and_given_with_enter(opened):
    words = ["gar", "den", "dog"]
    given = {
        "labels": list("ABC"),
        "responses": words,
        "keys": list("abc"),
        "options": words,
        "several": True,
    }
    trials = [trial(index, [choose(f"Words, number {index}?", **given)]) for index in (0, 1)]
    server, page = opened(block(trials))
    for index in (0, 1):
        trial_shown(page, "choose", f"number {index}?")
        boxes, done = page.get_by_role("checkbox"), page.get_by_role("button", name=TEXTS["done"])
        assert boxes.count() == 3 and done.get_attribute("aria-disabled") == "true"
        assert violations(page) == []
        page.keyboard.press("Enter")  # nothing is ticked yet
        page.keyboard.press("c")
        boxes.nth(0).click()
        page.keyboard.press("b")
        page.keyboard.press("b")
        assert [boxes.nth(place).get_attribute("aria-checked") for place in range(3)] == [
            "true",
            "false",
            "true",
        ]
        if index:
            done.click()
        else:
            page.keyboard.press("Enter")  # the button that was clicked has the focus, and keeps its tick
    finished(page, server)
    assert [server.trials[index, 1]["response_raw"] for index in (0, 1)] == ["A, C", "A, C"]
    assert all(server.trials[index, 1]["rt"] > 0 for index in (0, 1))
