"""The released letter geometry: 90 questions as they are, and the faults that rendering finds in them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from stimuli.errors import UserError
from stimuli.htest.geometry.released import describe, geometry_faults, load_released_geometry
from stimuli.recipes.htest import geometry_released_items


@pytest.fixture(scope="module")
def faults(shared):
    return geometry_faults(shared / "data/htest")


@pytest.mark.shared
def test_all_90_questions_load_as_released(shared):
    items = load_released_geometry(shared / "data/htest")
    path = shared / "data/htest/letter_geometry/letter_geometry_test.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(items) == 90 and load_released_geometry(path.parent) == items
    for item, record in zip(items, records, strict=True):
        assert (item.question, list(item.options)) == (record["centerpiece"], record["options"])
        assert item.answer == record["options"][record["correct_options"][0]]
    kinds = Counter(item.family for item in items)
    assert kinds == {"rotation": 45, "flip": 25, "add_subtract": 14, "composite": 6}


@pytest.mark.shared
def test_rendering_agrees_with_most_keys_and_disputes_the_known_ones(faults):
    assert [one.item.line for one in faults.readings if not one.nearest] == list(faults.empty_symbol) == [76]
    found = faults.by_verdict()
    assert found["agree"] >= 70 and sum(found.values()) == 90
    disputed = [one for one in faults.readings if one.verdict == "dispute"]
    asked = {(one.item.question.split('"')[1], one.item.answer) for one in disputed}
    assert asked == {("S", "5"), ("6", "g")} and len(disputed) == 4
    nearest = {one.item.question.split('"')[1]: one.nearest[0][0] for one in disputed}
    assert nearest == {"S": "S", "6": "9"}


@pytest.mark.shared
def test_contradictions_doubles_keys_beyond_ascii_and_the_giveaway_are_found(faults):
    by_line = {one.item.line: one.item for one in faults.readings}
    assert len(faults.contradictions) == 2
    for first, second in faults.contradictions:
        assert by_line[first].question == by_line[second].question
        assert {by_line[first].answer, by_line[second].answer} == {"g", "9"}
    assert [{"O", "0"} <= set(by_line[line].options) for line in faults.two_right] == [True, True]
    assert len(faults.non_ascii) == 12
    assert {by_line[line].answer for line in faults.non_ascii} == set("Ǝ∀ƐЯ")
    # the option that is none of these three is right in 79 of 90
    assert set(faults.common_options) == {"O", "E", "Ɛ"} and faults.leak == 79


@pytest.mark.shared
def test_released_questions_become_items_with_their_own_options(shared):
    made = geometry_released_items(shared / "data/htest")
    released = load_released_geometry(shared / "data/htest")
    assert len({one.item_id for one in made}) == len(made) == 90
    for one, source in zip(made, released, strict=True):
        asked = (one.shown["question"], one.choices, one.answer)
        assert asked == (source.question, source.options, source.answer)
        assert one.condition == {"family": source.family}
        assert type(one).from_json(one.to_json()) is not None and one.provenance["licence"] == "MIT"


TURNED = 'Given the letter "{}", what is it most likely to look like when rotated 180 degrees clockwise?'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("What is this?", "symbol"),
        ('Given the letter "A", what does it most likely sing?', "wording"),
        (TURNED.format(""), "empty"),
        (TURNED.format("字"), "font"),
    ],
)
def test_what_cannot_be_interpreted_says_why(text, reason):
    described = describe(text)
    assert described.drawings is None and reason in described.reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"options": ["a", "b"], "correct_options": [0]}', "centerpiece"),
        ('{"centerpiece": "x", "options": ["a"], "correct_options": [0]}', "options"),
        ('{"centerpiece": "x", "options": ["a", "b"], "correct_options": [2]}', "correct_options"),
        ('{"centerpiece": "x", ', "JSON"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    good = '{"centerpiece": "x", "options": ["a", "b"], "correct_options": [0]}\n'
    (tmp_path / "letter_geometry_test.jsonl").write_text(good + line, encoding="utf-8")
    with pytest.raises(UserError, match=f"line 2.*{message}"):
        load_released_geometry(tmp_path)
