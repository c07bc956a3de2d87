"""Texts as designed: frozen lines, moving windows, masked primes, hints."""

from __future__ import annotations

import time

import pytest

from tests.browser.plans import TEXTS, answer, block, choose, plan, prime, rate, read, recover, trial
from tests.browser.walking import finished, leave, respond, start, trial_shown, until

pytestmark = pytest.mark.browser

TEXT = "Teh dgo barks at the  postman."
WORDS = TEXT.split()
LINES = ["Teh dgo barks", "at the  postman."]
ARABIC = ["ذهب الولد إلى المدرسة", "ثم عاد إلى البيت"]


def shown(opened, *trials, kind):
    server, page = opened(block(list(trials)))
    trial_shown(page, kind)
    return server, page


def lines_shown(page, selector=".stimulus"):
    """The rows in which a text stands on the screen, and whether it fits in its place."""
    return page.locator(selector).evaluate(
        """(text) => {
          const tops = new Map();
          const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
          for (let node; (node = walker.nextNode()); ) {
            for (let at = 0; at < node.length; at++) {
              const range = document.createRange();
              range.setStart(node, at);
              range.setEnd(node, at + 1);
              if (node.data[at] === "\\n") continue;
              const top = Math.round(range.getBoundingClientRect().top);
              tops.set(top, (tops.get(top) ?? "") + node.data[at]);
            }
          }
          const { left, right } = text.getBoundingClientRect();
          const size = parseFloat(getComputedStyle(text).fontSize);
          return { rows: [...tops.values()], fits: left >= 0 && right <= innerWidth, size };
        }"""
    )


def test_a_text_stands_in_exactly_the_lines_of_the_plan(opened):
    steps = {"read": read, "choose": choose, "recover": recover, "answer": answer}
    trials = [trial(index, [step(TEXT, lines=LINES)]) for index, step in enumerate(steps.values())]
    _, page = opened(block(trials))
    for kind, onward in zip(steps, ("Space", "j", "Enter", None), strict=True):
        trial_shown(page, kind)
        assert lines_shown(page)["rows"] == LINES
        if kind == "recover":
            page.keyboard.type("the")
        if onward:
            page.keyboard.press(onward)


def test_a_line_that_does_not_fit_makes_the_text_smaller_never_wraps_and_is_noted(opened):
    long = " ".join(["longer"] * 12)
    server, page = shown(opened, trial(0, [read(long, lines=[long, "short"]), choose()]), kind="read")
    full = lines_shown(page)["size"]
    page.set_viewport_size({"width": 500, "height": 700})
    until(lambda: lines_shown(page)["size"] < full)
    text = lines_shown(page)
    assert (text["rows"], text["fits"]) == ([long, "short"], True)
    until(lambda: any(event["kind"] == "text_scaled" for event in server.events))
    assert 0.3 <= server.event("text_scaled")["scale"] < 1


def test_a_text_that_is_judged_wraps_on_a_phone_rather_than_become_too_small(opened):
    long = "The key to the old cabinets of the house was on the table near the door."
    steps = {"rate": rate, "choose": choose, "answer": answer}
    trials = [trial(index, [step(long, lines=[long])]) for index, step in enumerate(steps.values())]
    _, page = opened(block(trials))
    for kind, onward in zip(steps, "3j ", strict=True):
        trial_shown(page, kind)
        page.set_viewport_size({"width": 390, "height": 844})
        until(lambda: page.locator(".stimulus.wrapped").count() == 1)
        text = lines_shown(page)
        assert text["size"] >= 14 and text["fits"] and len(text["rows"]) > 1
        page.set_viewport_size({"width": 1280, "height": 800})
        until(lambda: page.locator(".stimulus.wrapped").count() == 0)
        assert lines_shown(page)["rows"] == [long]
        page.keyboard.press(onward)


def test_each_line_runs_in_its_own_direction(opened):
    lines = [*ARABIC, "and back home"]
    _, page = shown(opened, trial(0, [read(" ".join(lines), lines=lines)]), kind="read")
    edges = page.locator(".stimulus").evaluate(
        """(text) => text.textContent.split("\\n").map((line, index, all) => {
          const start = all.slice(0, index).join("\\n").length + (index ? 1 : 0);
          const range = document.createRange();
          range.setStart(text.firstChild, start);
          range.setEnd(text.firstChild, start + line.length);
          const [box, whole] = [range.getBoundingClientRect(), text.getBoundingClientRect()];
          return { left: box.left - whole.left, right: whole.right - box.right };
        })"""
    )
    assert [min(edge, key=edge.get) for edge in edges if max(edge.values()) > 2] in (
        ["right", "left"],
        ["right", "right", "left"],
    )


def test_a_moving_window_shows_one_word_at_a_time_and_times_each(opened):
    reading = read(TEXT, lines=LINES, **{"as": "moving_window"})
    server, page = shown(opened, trial(0, [reading, choose()]), kind="read")
    covered = ["--- --- -----", "-- ---  --------"]
    assert lines_shown(page)["rows"] == covered
    seen = []
    for number in range(len(WORDS)):
        page.keyboard.press("Space")
        page.wait_for_function(
            "(number) => [...document.querySelectorAll('.word')].findIndex((word) => !word.hasAttribute('aria-hidden')) === number",
            arg=number,
        )
        rows = lines_shown(page)["rows"]
        seen.append(" ".join(rows).replace("-", "").split())
        assert [len(row) for row in rows] == [len(line) for line in LINES]
        time.sleep(0.03)
    assert seen == [[word] for word in WORDS]
    page.keyboard.press("Space")
    respond(page, "choose", "j")
    finished(page, server)
    row = server.trials[0, 1]
    regions = row["regions"]
    assert [region["region"] for region in regions] == list(range(len(WORDS)))
    assert [region["line"] for region in regions] == [0, 0, 0, 1, 1, 1]
    onsets = [region["onset_ts"] for region in regions]
    assert onsets == sorted(onsets)
    assert all(region["rt"] > 0 for region in regions)
    last = regions[-1]
    assert row["reading_time"] == pytest.approx(last["onset_ts"] + last["rt"] - onsets[0], abs=1e-6)
    assert row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"], abs=1e-6)


PARTS = [" ".join(WORDS[:2]), " ".join(WORDS[2:4]), " ".join(WORDS[4:])]


def test_parts_are_uncovered_one_after_another(opened):
    modes = ["moving_window", "cumulative", "centred"]
    trials = [
        trial(
            index,
            [read(TEXT, lines=PARTS if mode == "centred" else LINES, parts=PARTS, **{"as": mode}), choose()],
        )
        for index, mode in enumerate(modes)
    ]
    server, page = opened(block(trials))
    text = page.locator(".trial.read .stimulus")
    for mode in modes:
        trial_shown(page, "read")
        assert set(text.inner_text()) <= set("- \n")
        seen = []
        for number in range(len(PARTS)):
            page.keyboard.press("Space")
            page.wait_for_function(
                "(last) => [...document.querySelectorAll('.word:not([aria-hidden])')].at(-1)?.textContent === last",
                arg=PARTS[number].split()[-1],
            )
            seen.append(" ".join(page.locator(".word:not([aria-hidden])").all_inner_texts()))
            if mode == "centred":
                assert text.inner_text() == PARTS[number]
                box = text.bounding_box()
                assert box["x"] + box["width"] / 2 == pytest.approx(page.viewport_size["width"] / 2, abs=2)
        if mode == "cumulative":
            assert seen == [" ".join(PARTS[: number + 1]) for number in range(len(PARTS))]
        else:
            assert seen == PARTS
        page.keyboard.press("Space")
        respond(page, "choose", "j")
    finished(page, server)
    for index, mode in enumerate(modes):
        regions = server.trials[index, 1]["regions"]
        assert [region["region"] for region in regions] == [0, 1, 2]
        assert [region["line"] for region in regions] == ([None] * 3 if mode == "centred" else [0, 0, 1])
        assert all(region["rt"] > 0 for region in regions)


def test_parts_of_an_rsvp_stand_for_their_frames_without_a_key(serve, new_page):
    reading = read(TEXT, lines=PARTS, parts=PARTS, part_ms=[200, 100, 150], blank_ms=50, **{"as": "rsvp"})
    server = serve(plan(block([trial(0, [reading, choose()], fixation_ms=400)])))
    page = new_page(server.address)
    page.get_by_role("button", name=TEXTS["start"]).wait_for()
    watch_paints(page)  # from before the trial: on a slow machine a part may be gone before it is looked for
    start(page)
    trial_shown(page, "choose")
    painted = page.evaluate("() => window.painted")
    shown_parts = [text for (kind, text), _ in runs([tuple(one) for one in painted]) if "read" in kind]
    assert [text for text in shown_parts if text.strip()] == PARTS
    assert len(shown_parts) == 5, "a blank stands between two parts"
    page.keyboard.press("j")
    finished(page, server)
    row = server.trials[0, 1]
    regions = row["regions"]
    assert [region["region"] for region in regions] == [0, 1, 2]
    assert not any("rt" in region for region in regions)
    for region, ms in zip(regions, [200, 100, 150], strict=True):
        assert region["frames"] >= 1
        assert region["shown_ms"] > ms / 2  # to the nearest frame, and one frame early rather than late
    assert row["reading_time"] is None
    assert row["shown_ms"] >= sum(region["shown_ms"] for region in regions)
    assert row["rt"] is not None


FOILS = ["x-x-x", "ran", "blue", "of", "never"]
SIDES = ["left", "right", "right", "left", "right"]


def in_a_maze(wrong):
    words = ["The", "old", "dog", "barks", "again."]
    return read(
        " ".join(words),
        lines=[],
        parts=words,
        foils=FOILS,
        sides=SIDES,
        keys=["f", "j"],
        wrong=wrong,
        **{"as": "maze"},
    )


def pair_shown(page, place, words):
    left, right = (words[place], FOILS[place]) if SIDES[place] == "left" else (FOILS[place], words[place])
    page.wait_for_function(
        "(pair) => [...document.querySelectorAll('.maze .stimulus')].map((word) => word.textContent).join() === pair",
        arg=f"{left},{right}",
    )


@pytest.mark.parametrize("wrong", ["end", "retry"])
def test_a_maze_times_each_choice_and_tells_of_a_foil(opened, wrong):
    reading = in_a_maze(wrong)
    server, page = shown(opened, trial(0, [reading]), trial(1, [in_a_maze(wrong)]), kind="read")
    for place in range(5):
        pair_shown(page, place, reading["parts"])
        page.keyboard.press("f" if SIDES[place] == "left" else "j")
        time.sleep(0.03)
    pair_shown(page, 0, reading["parts"])
    page.keyboard.press("f")
    pair_shown(page, 1, reading["parts"])
    page.keyboard.press("f")
    if wrong == "retry":
        page.locator(".maze .notice", has_text=TEXTS["feedback_incorrect"]).wait_for()
        time.sleep(0.1)
        for place in range(1, 5):
            pair_shown(page, place, reading["parts"])
            page.locator(".maze button").nth(["left", "right"].index(SIDES[place])).click()
    finished(page, server)
    through, stumbled = server.trials[0, 1], server.trials[1, 1]
    assert [region["is_correct"] for region in through["regions"]] == [True] * 5
    assert all(region["rt"] == region["right_rt"] > 0 for region in through["regions"])
    last = through["regions"][-1]
    assert through["reading_time"] == pytest.approx(
        last["onset_ts"] + last["rt"] - through["onset_ts"], abs=1e-6
    )
    assert (through["rt"], through["timed_out"]) == (None, False)
    assert [region["is_correct"] for region in stumbled["regions"]] == [True, False] + [True] * 3 * (
        wrong == "retry"
    )
    slip = stumbled["regions"][1]
    if wrong == "retry":
        assert slip["right_rt"] >= slip["rt"] + 100
        assert stumbled["reading_time"] > 0
    else:
        assert (slip["right_rt"], stumbled["reading_time"]) == (None, None)


def test_a_held_space_bar_uncovers_one_word(opened):
    reading = read(TEXT, lines=LINES, **{"as": "moving_window"})
    _, page = shown(opened, trial(0, [reading]), kind="read")
    for _ in range(6):
        page.keyboard.down("Space")
        time.sleep(0.04)
    page.keyboard.up("Space")
    assert page.locator(".word:not([aria-hidden])").all_inner_texts() == ["Teh"]


def test_a_moving_window_lets_nobody_leave_before_its_minimum_time(opened):
    reading = read("one two", lines=["one two"], minimum_ms=4000, **{"as": "moving_window"})
    server, page = shown(opened, trial(0, [reading]), kind="read")
    page.keyboard.press("Space")
    leave(page.locator(".word:not([aria-hidden])", has_text="one"))
    leave(page.locator(".word:not([aria-hidden])", has_text="two"))
    assert page.locator(".trial.read").is_visible()
    leave(page.locator(".trial.read button:not([aria-disabled])"))
    finished(page, server)
    assert server.trials[0, 1]["reading_time"] >= 4000
    assert server.trials[0, 1]["rt"] is None


def watch_paints(page):
    """Note, before each frame, what the stage showed until then."""
    page.evaluate(
        """() => {
          window.painted = [];
          const look = () => {
            const shown = document.querySelector(".stimulus")?.textContent ?? "";
            const kind = document.querySelector(".trial")?.className ?? "";
            window.painted.push([kind, shown]);
            requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        }"""
    )


def runs(values):
    """Squeeze repeats: value and how many in a row."""
    found = []
    for value in values:
        if found and found[-1][0] == value:
            found[-1][1] += 1
        else:
            found.append([value, 1])
    return found


def test_mask_prime_and_target_follow_without_an_empty_frame(serve, new_page):
    behind = {"backward_mask": "%%%%%%", "backward_ms": 100}
    trials = [
        trial(0, [prime("gadren"), choose("garden")], fixation_ms=400),
        trial(1, [prime("letred", **behind), choose("letter")], fixation_ms=400),
    ]
    server = serve(plan(block(trials)))
    page = new_page(server.address)
    page.get_by_role("button", name=TEXTS["start"]).wait_for()
    watch_paints(page)  # from before the trial: on a slow machine a cross may be gone before it is looked for
    start(page)
    respond(page, "choose", "j", "garden")
    respond(page, "choose", "j", "letter")
    finished(page, server)
    painted = runs([tuple(one) for one in page.evaluate("() => window.painted")])
    texts = [shown for (_, shown), _ in painted]
    begin = 0
    for wanted in (["######", "gadren", "garden"], ["######", "letred", "%%%%%%", "letter"]):
        begin = texts.index("######", begin)
        assert texts[begin : begin + len(wanted)] == wanted
        assert painted[begin - 1][0] == ("", "")  # the cross, with nothing between it and the mask
        begin += 1
    for row in server.trials.values():
        assert row["prime_frames"] >= 1
        assert row["prime_ms"] > 25  # of 50, to the nearest frame
        assert row["response_raw"] == "yes"
        assert row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"], abs=1e-6)


def test_a_prime_of_counted_frames_stands_for_at_least_these(opened):
    trials = [trial(i, [prime("gadren", frames=4, mask_ms=100), choose(f"garden {i}")]) for i in range(3)]
    server, page = opened(block(trials))
    for i in range(3):
        respond(page, "choose", "f", f"garden {i}")
    finished(page, server)
    assert all(row["prime_frames"] >= 4 for row in server.trials.values())


def test_however_many_examples_there_are_item_and_answers_stay_in_view(opened):
    def many(number):
        lines = (f"seven hungry dogs wait outside {place}." for place in range(number))
        return [{"text": line, "label": "AB"[place % 2]} for place, line in enumerate(lines)]

    given = {"labels": ["A", "B"], "responses": ["A", "B"], "keys": ["a", "b"]}
    numbers = (28, 150)
    trials = [
        trial(index, [choose(f"{number} Teachers walk home.", **given)], exemplars=many(number))
        for index, number in enumerate(numbers)
    ]
    _, page = opened(block(trials))
    for number in numbers:
        trial_shown(page, "choose", f"{number} Teachers")
        assert page.locator(".exemplars li").count() == number
        for selector in (".stimulus", ".choices", ".exemplars"):
            box = page.locator(selector).bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= 768, selector
        scrolls = number == 150
        assert (page.locator(".exemplars").get_attribute("tabindex") == "0") is scrolls
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        if scrolls:
            page.wait_for_function("() => document.querySelector('.exemplars').scrollTop > 0")
        page.keyboard.press("a")


def test_twenty_eight_long_examples_are_all_seen_beside_item_and_statement(opened):
    many = [
        {
            "text": f"the biologist and the {place} carpenters borrowed lemons and paintings",
            "label": "AB"[place % 2],
        }
        for place in range(28)
    ]
    item = choose("the biologist and two carpenters borrowed lemons", labels=["A", "B"], responses=["A", "B"])
    statement = answer(None, ask="What tells A from B? Write the rule in your own words.", multiline=True)
    trials = [trial(0, [item], exemplars=many), trial(1, [statement], exemplars=many)]
    _, page = shown(opened, *trials, kind="choose")
    for kind in ("choose", "answer"):
        trial_shown(page, kind)
        box = page.locator(".exemplars").bounding_box()
        lines = [line.bounding_box() for line in page.locator(".exemplars li").all()]
        assert all(
            box["y"] <= line["y"] and line["y"] + line["height"] <= box["y"] + box["height"] + 1
            for line in lines
        )
        assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight"), (
            "nothing is out of view"
        )
        assert page.locator(".exemplars").evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 12
        page.keyboard.press("f")


def test_the_cross_stands_where_the_middle_of_the_text_will(opened):
    _, page = opened(block([trial(0, [choose("garden")], fixation_ms=4000)]))
    page.locator(".fixation").wait_for()
    cross = page.locator(".fixation").bounding_box()
    trial_shown(page, "choose")
    text = page.locator(".stimulus").bounding_box()
    for side, size in (("x", "width"), ("y", "height")):
        assert cross[side] + cross[size] / 2 == pytest.approx(text[side] + text[size] / 2, abs=1.5)
