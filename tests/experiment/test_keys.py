"""Keys of a study: what a keyboard sends, and what check says of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiment.building import make_items
from experiment.study.keys import key_fault, key_name
from stimuli.errors import UserError

NAMES = json.loads(Path(__file__).with_name("key_names.json").read_text("utf-8"))


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_a_key_has_one_name_however_it_is_written(written, name):
    assert key_name(written) == name


@pytest.mark.parametrize(
    "key",
    [
        "f",
        "J",
        1,
        "9",
        "٣",
        "é",
        "ñ",
        "ß",
        "й",
        "ж",
        "λ",
        "ש",
        "ع",
        "ก",
        "क",
        ";",
        "/",
        "ArrowLeft",
        "left",
        "space",
        "enter",
    ],
)
def test_what_one_stroke_sends_is_a_key(key):
    assert key_fault(key) is None


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("banana", "no keyboard has this key"),
        ("left arrow", "did you mean 'ArrowLeft'"),
        ("arow left", "did you mean 'ArrowLeft'"),
        ("space bar", "did you mean 'Space'"),
        ("numpad 4", "did you mean '4'"),
        ("KeyJ", "did you mean 'j'"),
        ("→", "did you mean 'ArrowRight'"),
        (12, "no keyboard has this key"),
        ("", "no keyboard has this key"),
        ("Esc", "leaves full screen"),
        ("Tab", "moves from control to control"),
        ("shift", "Sticky Keys"),
        ("F5", "function keys"),
        ("ctrl+j", "one key, pressed alone"),
        ("字", "input method"),
        ("가", "input method"),
        ("ṽ", "by itself"),
        ("😀", "by itself"),
    ],
)
def test_what_no_stroke_sends_or_the_screens_use_is_no_key(key, said):
    assert said in str(key_fault(key))


@pytest.mark.parametrize("keys", ["[f, banana]", "{a: f, b: left arrow}", "[f, Escape]", "{a: f, b: 12}"])
def test_an_impossible_key_is_refused_with_its_line(make_study, keys):
    with pytest.raises(UserError, match=r"study\.yaml, line 15: .*keys.* is .*(keyboard|key leaves)"):
        make_study(("keys: [f, j]", f"keys: {keys}"))


@pytest.mark.parametrize(
    "keys", ["[f, F]", "{a: left, b: ArrowLeft}", '{a: 1, b: "١"}', "{a: ' ', b: space}", "[i, ı]"]
)
def test_two_answers_with_one_key_are_refused(make_study, keys):
    with pytest.raises(UserError, match=r"line 15: .*is the same key"):
        make_study(("keys: [f, j]", f"keys: {keys}"))


def test_a_sign_that_other_keyboards_write_otherwise_is_remarked(make_study):
    made = make_items(make_study(("keys: [f, j]", "keys: [';', j]")))
    assert any("line 15" in remark and "';'" in remark and "Shift" in remark for remark in made.remarks)
