"""From materials to items: sentences, recovery, H-TEST and words in their conditions."""

from __future__ import annotations

from collections import Counter

import pytest

from stimuli.corpora.corpus import SourceText
from stimuli.errors import UserError
from stimuli.recipes.conditions import ItemDesign, draw_some
from stimuli.recipes.htest import ABTaskDesign, htest_released_items
from stimuli.recipes.sentences import choose_foils, word_items
from stimuli.recipes.task_items import recovery_items
from stimuli.scramble.conditions import ScrambleSettings
from tests.stimuli.designs import sentences

POSITIONS = {
    "intact": "none",
    "initial": {"transpose": "initial"},
    "internal": {"transpose": "internal"},
    "final": {"transpose": "final"},
}
STARRED = ScrambleSettings(words="starred", min_letters=5, avoid_real_words=True)
ROWS = [
    {
        "item": "s01",
        "sentence": "The *gardener* watered the *tomatoes* often.",
        "question": "Were the tomatoes watered?",
        "answer": "Yes",
    },
    {
        "item": "s02",
        "sentence": "A *customer* lost the *umbrella*.",
        "question": "Was it sold?",
        "answer": "No",
    },
]


def make(rows=ROWS, **changed):
    given = {
        "factor": "position",
        "levels": POSITIONS,
        "seed": 4711,
        "settings": STARRED,
        "also_show": ["question"],
        "choices": ["Yes", "No"],
        "source": "sentences.csv",
    }
    return list(sentences(rows, **(given | changed)).items)


def test_each_row_stands_in_every_condition_under_one_id():
    items = make()
    assert [(item.item_id, item.condition["position"]) for item in items] == [
        (identity, level) for identity in ("s01", "s02") for level in POSITIONS
    ]
    assert items[0].shown == {
        "sentence": "The gardener watered the tomatoes often.",
        "question": "Were the tomatoes watered?",
    }
    assert items[1].shown["sentence"] == "The agrdener watered the otmatoes often."
    assert items[3].shown["sentence"] == "The gardenre watered the tomatose often."


def test_only_starred_words_change_and_the_same_in_every_condition():
    items = make()
    for item in items:
        changed = [change["word"] for change in item.changes]
        starred = {"s01": [1, 4], "s02": [1, 4]}[item.item_id]
        assert changed == ([] if item.condition["position"] == "intact" else starred)
        assert all(change["field"] == "sentence" for change in item.changes)


def test_covariates_describe_the_words_that_conditions_change():
    items = make()
    for item in items[:4]:
        assert (item.covariates["letters"], item.covariates["words"]) == (8, 6)
        assert item.covariates["zipf"] == items[0].covariates["zipf"] != None  # noqa: E711
    assert [item.covariates["changed_words"] for item in items[:4]] == [0, 2, 2, 2]
    assert [item.covariates["mean_displacement"] for item in items[:4]] == [0, 0.25, 0.25, 0.25]


def test_a_practice_row_is_shown_in_the_condition_that_it_names():
    rows = [row | {"position": level} for row, level in zip(ROWS, ("final", "intact"), strict=True)]
    items = make(rows, level="position", role="practice")
    assert [(item.item_id, item.condition, item.role) for item in items] == [
        ("s01", {"position": "final"}, "practice"),
        ("s02", {"position": "intact"}, "practice"),
    ]
    everywhere = {item.condition["position"]: item for item in make()[:4]}
    assert items[0].shown == everywhere["final"].shown


def test_missing_columns_levels_and_choices_are_named():
    with pytest.raises(UserError, match="'question'"):
        make(also_show=["qestion"])
    with pytest.raises(UserError, match="'midle'"):
        make([ROWS[0] | {"position": "midle"}], level="position")
    with pytest.raises(UserError, match=r"\['Yes', 'Yes'\]"):
        make(choices=["Yes", "Yes"])


TEXTS = [
    SourceText(f"t{n}", text, "corpus")
    for n, text in enumerate(["Words  are scrambled.", "Reading takes time."])
]


def test_recovery_asks_for_the_intact_text():
    items = recovery_items(TEXTS, ItemDesign(factor="scramble", levels={"RS": "RS", "KFL": "KFL"}, seed=1))
    assert [item.answer for item in items] == [
        "Words  are scrambled.",
        "Words  are scrambled.",
        "Reading takes time.",
        "Reading takes time.",
    ]
    assert all(item.choices is None and item.shown["sentence"] != item.answer for item in items)


def test_fewer_texts_are_drawn_after_scrambling_and_lie_in_a_larger_draw():
    texts = [SourceText(f"t{n}", f"Number {n} reading words", "corpus") for n in range(12)]
    every = recovery_items(texts, ItemDesign(factor="f", levels={"KF": "KF"}, seed=1, published=True))
    some = recovery_items(
        texts, ItemDesign(factor="f", levels={"KF": "KF"}, seed=1, published=True, number=4)
    )
    shown = {item.item_id: item.shown for item in every}
    assert len(some) == 4 and all(shown[item.item_id] == item.shown for item in some)
    ids = [text.source_id for text in texts]
    few, more = (draw_some(ids, number, seed=1, key=str) for number in (3, 7))
    assert set(few) < set(more) and sorted(few, key=ids.index) == few
    with pytest.raises(UserError, match=r"13 .* 12"):
        recovery_items(texts, ItemDesign(factor="f", levels={"KF": "KF"}, seed=1, number=13))


@pytest.mark.shared
def test_released_htest_items_have_exemplars_first_and_both_labels(shared):
    items = htest_released_items(
        shared / "data/htest", ABTaskDesign(exemplars=14, items=40, seed=1), ["uppercase", "start_vowel"]
    )
    assert [item.set_name for item in items] == ["uppercase"] * 54 + ["start_vowel"] * 54
    first = items[:54]
    assert [item.role for item in first] == ["exemplar"] * 14 + ["test"] * 40
    assert Counter(item.answer for item in first[14:]) == {"A": 20, "B": 20}
    assert all(item.choices == ("A", "B") and item.condition == {"task": item.set_name} for item in items)
    assert [item.item_id for item in first[14:]] == sorted(item.item_id for item in first[14:])
    every = htest_released_items(shared / "data/htest", ABTaskDesign(exemplars=50, seed=1))
    assert len(every) == 10 * 250 and len({item.item_id for item in every}) == 2500


def test_a_word_is_shown_scrambled_with_itself_and_its_foil_as_choices():
    items = word_items(
        ["garden", "market"],
        ItemDesign(factor="p", levels=POSITIONS, seed=1),
        foils=["harden", "marker", "danger"],
    ).items
    assert [item.shown["word"] for item in items[:2]] == ["garden", "agrden"]
    assert items[0].choices == ("garden", "harden") and items[4].choices == ("marker", "market")
    assert {item.answer for item in items} == {"garden", "market"}
    assert all(item.covariates["foil_distance"] == 1 for item in items)


def test_a_foil_is_the_closest_word_of_its_length_and_no_anagram():
    # "danger" is an anagram of "garden"; "golden" and "warden" have its length, "gardens" has not.
    assert choose_foils(["garden"], ["danger", "golden", "warden", "gardens"]) == {"garden": "warden"}


def test_words_that_give_no_item_are_named():
    with pytest.raises(UserError, match=r"foil .*'garden'"):
        word_items(["garden"], ItemDesign(factor="p", levels=POSITIONS, seed=1), foils=["danger", "tree"])
    with pytest.raises(UserError, match=r"'garden' .* 2 "):
        word_items(["garden", "garden "], ItemDesign(factor="p", levels=POSITIONS, seed=1), foils=["harden"])
    with pytest.raises(UserError, match=r"item 'grass'.*'initial'"):
        word_items(["grass"], ItemDesign(factor="p", levels=POSITIONS, seed=1), foils=["grade"])
    with pytest.raises(UserError, match="unspaced: change"):
        word_items(["にほんご"], ItemDesign(factor="p", levels=POSITIONS, seed=1), foils=["かたかな"])
