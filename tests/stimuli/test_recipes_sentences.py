"""Sentences of the user's own: which words change, texts made by hand, rows that give no item."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import UserError
from stimuli.item import build_meta, read_items, write_items
from stimuli.recipes.sentences import TargetRule, describe_by_hand, parse_targets
from stimuli.scramble.conditions import ScrambleSettings
from stimuli.words import find_words
from tests.stimuli.designs import sentences

LEVELS = {"intact": "none", "initial": {"transpose": "initial"}, "KFL": "KFL"}
SENTENCE = "The gardener often watered the old tomatoes in the garden."
QUESTION = {"question": "Were the tomatoes watered?", "answer": "Yes"}


def make(*rows, **changed):
    return list(made_of(*rows, **changed).items)


def made_of(*rows, **changed):
    table = [{"item": f"s{place}", **QUESTION, **row} for place, row in enumerate(rows, 1)]
    asked = {"also_show": ["question"], "choices": ["Yes", "No"], "source": "sentences.csv"}
    return sentences(table, **({"factor": "position", "levels": LEVELS, "seed": 4711, **asked} | changed))


def changed(items):
    return {item.condition["position"]: [change["intact"] for change in item.changes] for item in items}


def only(words):
    return {"intact": [], "initial": words, "KFL": words}


# --- targets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell", ["gardener|tomatoes", "gardener tomatoes", "2 | 7", "Tomatoes, 2", "7|gardener", [2, "tomatoes"], ["2 7"]]
)  # fmt: skip
def test_targets_stand_in_a_column_as_words_or_numbers(cell):
    items = make({"sentence": SENTENCE, "targets": cell}, targets={"column": "targets"})
    assert changed(items) == only(["gardener", "tomatoes"])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        *(("gardner", "'gardener'?"), ("garden|the", "(5 and 9)"), ("§", "'§'"), ([2.5], "2.5")),
        *(("11", "1 to 10"), ("0", "word 0"), ("", "'targets'"), (None, "'targets'")),
    ],
)
def test_a_target_that_the_text_does_not_have_is_named_with_row_and_item(cell, said):
    with pytest.raises(UserError) as raised:
        make({"sentence": SENTENCE, "targets": cell}, targets={"column": "targets"})
    assert str(raised.value).startswith("row 1, item 's1' of sentences.csv: ") and said in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"min_letters": 7}, ["gardener", "watered", "tomatoes"]),
        ({"min_letters": 4, "max_letters": 6}, ["often", "garden"]),
        ({"min_letters": 4, "max_zipf": 3.9}, ["gardener", "watered", "tomatoes"]),
        ({"min_zipf": 4.5, "min_letters": 4}, ["often", "garden"]),
        ({"skip_frequent": 200, "min_letters": 4}, ["gardener", "often", "watered", "tomatoes", "garden"]),
        ({"place": "last"}, ["garden"]),
        ({"min_letters": 4, "every": 2}, ["often", "tomatoes"]),
        ({"min_letters": 4, "every": 3}, ["watered"]),
    ],
)
def test_a_rule_chooses_targets(rule, words):
    assert changed(make({"sentence": SENTENCE}, targets=rule)) == only(words)


@given(number=st.integers(1, 4), more=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_smaller_number_of_targets_lies_in_a_larger_one(number, more, seed):
    few, many = (
        set(TargetRule(min_letters=4, number=size).choose(SENTENCE, language="en", seed=seed, item_id="s1"))
        for size in sorted((number, more))
    )
    assert few <= many and len(many) == max(number, more)


def test_drawn_targets_differ_between_items_and_not_with_their_order():
    rows = [{"item": f"i{place}", "sentence": SENTENCE} for place in range(12)]
    rule = {"min_letters": 4, "number": 1}
    forward, backward = (make(*some, targets=rule) for some in (rows, rows[::-1]))
    assert {item.canonical() for item in forward} == {item.canonical() for item in backward}
    assert len({changed([item])["KFL"][0] for item in forward if item.condition["position"] == "KFL"}) > 1


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"min_letter": 5}, "'min_letters'?"),
        ({"min_letters": 0}, "min_letters is 0;"),
        ({"min_zipf": "high"}, "min_zipf is 'high'; "),
        ({"min_letters": 9, "max_letters": 5}, "min_letters 9 "),
        ({"place": "middle"}, "words: place 'middle'"),
        ({}, "rule"),
        ({"column": "a", "every": 2}, "column"),
    ],
)
def test_a_setting_for_words_that_makes_no_sense_is_refused(rule, said):
    with pytest.raises(UserError) as raised:
        parse_targets(rule)
    assert said in str(raised.value)


# --- made by hand --------------------------------------------------------------------------------------------------

BY_HAND = {
    "sentence": "The *gardener* watered the *tomatoes*.",
    "position:initial": "The agrdener watered the otmatoes.",
    "shown_replaced": "The gxrdener watered the tqmatoes.",
}
HAND_LEVELS = {
    "intact": "none",
    "initial": "hand-made",
    "replaced": {"column": "shown_replaced"},
    "final": {"transpose": "final"},
}
STARRED = ScrambleSettings(words="starred")


def test_texts_made_by_hand_are_described_like_ours(tmp_path):
    items = make(BY_HAND, levels=HAND_LEVELS, settings=STARRED)
    by_level = {item.condition["position"]: item for item in items}
    assert list(by_level) == list(HAND_LEVELS)
    operations = [item.provenance["operation"] for item in items]
    assert operations == ["none", "hand-made", "hand-made", "transpose:final"]
    initial, replaced = by_level["initial"], by_level["replaced"]
    assert initial.shown["sentence"] == BY_HAND["position:initial"]
    assert initial.intact["sentence"] == "The gardener watered the tomatoes."
    assert [list(change["permutation"])[:3] for change in initial.changes] == [[1, 0, 2], [1, 0, 2]]
    assert [list(change["permutation"])[:3] for change in replaced.changes] == [[0, None, 2], [0, None, 2]]
    assert all(item.covariates["changed_words"] == 2 for item in items[1:])
    write_items(tmp_path / "items.jsonl", items, build_meta(1))
    assert len(read_items(tmp_path / "items.jsonl")) == 4


def test_operations_change_the_words_that_the_columns_change():
    row = {"sentence": "The gardener watered tomatoes.", "position:initial": "The agrdener watered tomatoes."}
    levels = {"initial": "hand-made", "final": {"transpose": "final"}}
    assert changed(make(row, levels=levels)) == {"initial": ["gardener"], "final": ["gardener"]}
    own = ScrambleSettings(dose="as_published", avoid_real_words=False)
    every = ["The", "gardener", "watered", "tomatoes"]
    assert changed(make(row, levels=levels, settings=own))["final"] == every


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"position:initial": "The agrdener wtaered the otmatoes."},
            "column 'position:initial': .* word 3, 'watered' to 'wtaered'",
        ),
        ({"position:initial": "The agrdener watered otmatoes."}, r"\b4 words.* 5\b"),
        ({"position:initial": "The agrdener watered the otmatoes!"}, "marks .* end"),
        ({"position:initial": "The agrdener, watered the otmatoes."}, "marks .* 'watered'"),
        ({"position:initial": "The gardener watered the tomatoes."}, "'The gardener watered the tomatoes.'"),
        ({"position:initial": ""}, "'position:initial' .*empty"),
        (
            {"shown_replaced": "The gxrdener watered the tomatoes."},
            "column 'shown_replaced' .*'gardener', column 'position:initial' 'gardener', 'tomatoes'",
        ),
    ],
)
def test_a_text_made_by_hand_that_breaks_a_rule_is_named_with_row_and_column(cells, said):
    with pytest.raises(UserError) as raised:
        make(BY_HAND | cells, levels=HAND_LEVELS, settings=STARRED)
    assert re.match(f"row 1, item 's1' of sentences.csv: .*{said}", str(raised.value))
    assert raised.value.mend or not cells.get("position:initial", True)


def test_an_operation_that_cannot_change_a_word_changed_by_hand_is_named():
    row = {"sentence": "They see gardens.", "position:initial": "They ese gardens."}
    levels = {"initial": "hand-made", "final": {"transpose": "final"}}
    with pytest.raises(UserError, match=r"'final' .*transpose:final.* 'see'"):
        make(row, levels=levels)


# --- rows that give no item ----------------------------------------------------------------------------------------


def test_bad_rows_are_skipped_and_listed_where_the_study_allows():
    bad = [
        BY_HAND | {"position:initial": "The agrdener."},
        BY_HAND | {"sentence": "No star here."},
        BY_HAND | {"answer": "Perhaps"},
        BY_HAND | {"item": ""},
    ]
    made = made_of(BY_HAND, *bad, BY_HAND, levels=HAND_LEVELS, settings=STARRED, on_bad="skip")
    assert [item.item_id for item in made.items] == ["s1"] * 4 + ["s6"] * 4
    assert [one.record_id for one in made.skipped] == ["s2", "s3", "s4", "row 5"]
    for one, said in zip(made.skipped, ("2 words", "starred", "choices", "empty"), strict=True):
        assert said in one.reason and one.corpus == "sentences.csv"


WORDS = st.lists(
    st.sampled_from(["garden", "tomatoes", "watered", "often", "don’t", "see"]), min_size=1, max_size=6
)


@given(words=WORDS, data=st.data())
def test_any_reordering_by_hand_is_recorded_as_a_permutation(words, data):
    intact = " ".join(words) + "."
    mixed = ["".join(data.draw(st.permutations(word))) if word.isalpha() else word for word in words]
    shown = " ".join(mixed) + "."
    if shown == intact:
        with pytest.raises(UserError, match=f"'shown': {re.escape(repr(shown))}"):
            describe_by_hand(intact, shown, None, column="shown")
        return
    made = describe_by_hand(intact, shown, None, column="shown")
    places = {word.index: word for word in find_words(intact)}
    for change in made.changes:
        assert change.intact == places[change.word].text
        assert change.shown == shown[change.start :][: len(change.shown)]
        rebuilt = "".join(change.intact[source] for source in change.permutation)
        assert rebuilt.lower() == change.shown.lower()
    differ = {place for place in range(len(words)) if words[place] != mixed[place]}
    assert {change.word for change in made.changes} == differ
