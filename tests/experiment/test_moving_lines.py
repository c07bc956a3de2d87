"""Lines of a moving window are fixed before anyone reads them, and `check` says where they break."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from experiment.building import make_items
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError

CHOOSE = (
    "        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}\n"
    "      break_every: 2\n"
)
READ = "        - read: {show: sentence, as: moving_window}\n        - recover: {show: sentence, ask: Type it.}\n"
LONG = "The *gardener* gave the very old roses plenty of fresh cold water before the sun went down again."


def reading(make_study: Callable[..., Study], *changes: tuple[str, str], block: str = "") -> Study:
    """Return a study whose sentences are read word by word."""
    small = make_study()
    (small.folder / "sentences.csv").write_text(
        f"item,sentence\nlong,{LONG}\nshort,The *dog* barks.\n", "utf-8"
    )
    return make_study(
        (
            "materials: {words: words.txt}",
            "materials: {sentences: sentences.csv, scramble: {words: starred}}",
        ),
        ("  - practice: {items: practice.csv, feedback: true, pass: 50%}\n", ""),
        (CHOOSE, f"{READ}{block}"),
        *changes,
    )


def test_check_says_how_many_texts_break_and_after_which_word(make_study):
    remarks = make_items(reading(make_study)).remarks
    (said,) = [line for line in remarks if "moving window" in line]
    assert re.search(r"line 12: procedure\[3\]\.block: 2 of 4 .* 2 .*long intact.*'water'", said)
    assert f"line_length: {len(LONG) - 2} " in said


def test_a_line_wider_than_the_smallest_window_is_refused_with_the_length_that_fits(make_study):
    small = ("seed: 7\n", "seed: 7\nparticipants: {eligible: {screen: 1024x640}}\n")
    with pytest.raises(UserError, match=r"long intact .*\b6\d\b.*\b56\b") as told:
        make_items(reading(make_study, small))
    assert "line_length: 56" in str(told.value)
    shorter = reading(make_study, small, block="      line_length: 56\n")
    assert make_items(shorter).items


def test_everyone_gets_the_same_breaks_in_the_plan(make_study):
    study = reading(make_study)
    items = make_items(study).items
    breaks = set()
    for key in ("one", "two", "three"):
        plan = plan_session(study, items, list_id=1, session_key=key)
        (lines,) = [
            tuple(map(len, step["lines"]))
            for trial in trials_of(plan)
            for step in trial["steps"]
            if step["step"] == "read" and trial["item_id"] == "long"
        ]
        breaks.add(lines)
    assert len(breaks) == 1
