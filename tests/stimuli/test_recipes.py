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
    dict(zip(("item", "sentence", "question", "answer"), row, strict=True))
    for row in (
        ("s01", "The *gardener* watered the *tomatoes* often.", "Were the tomatoes watered?", "Yes"),
        ("s02", "A *customer* lost the *umbrella*.", "Was it sold?", "No"),
    )
]


def make(rows=ROWS, **changed):
    asked = {"also_show": ["question"], "choices": ["Yes", "No"], "source": "sentences.csv"}
    given = {"factor": "position", "levels": POSITIONS, "seed": 4711, "settings": STARRED, **asked}
    return list(sentences(rows, **(given | changed)).items)


def test_each_row_stands_in_every_condition_under_one_id_with_its_starred_words_changed_and_described():
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

    for item in items:
        starred = [] if item.condition["position"] == "intact" else [("sentence", 1), ("sentence", 4)]
        assert [(change["field"], change["word"]) for change in item.changes] == starred
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


def recovered(*texts, **design):
    sources = [SourceText(f"t{n}", text, "corpus") for n, text in enumerate(texts)]
    return recovery_items(sources, ItemDesign(**{"factor": "f", "levels": {"KF": "KF"}, "seed": 1} | design))


def test_recovery_asks_for_the_intact_text():
    texts = ("Words  are scrambled.", "Reading takes time.")
    items = recovered(*texts, levels={"RS": "RS", "KFL": "KFL"})
    assert [item.answer for item in items] == [text for text in texts for _ in range(2)]
    assert all(item.choices is None and item.shown["sentence"] != item.answer for item in items)


def test_fewer_texts_are_drawn_after_scrambling_and_lie_in_a_larger_draw():
    texts = [f"Number {n} reading words" for n in range(12)]
    shown = {item.item_id: item.shown for item in recovered(*texts, published=True)}
    some = recovered(*texts, published=True, number=4)
    assert len(some) == 4 and all(shown[item.item_id] == item.shown for item in some)
    ids = [f"t{n}" for n in range(12)]
    few, more = (draw_some(ids, number, seed=1, key=str) for number in (3, 7))
    assert set(few) < set(more) and sorted(few, key=ids.index) == few
    with pytest.raises(UserError, match=r"13 .* 12"):
        recovered(*texts, number=13)


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


def words_with(words, foils):
    return word_items(words, ItemDesign(factor="p", levels=POSITIONS, seed=1), foils=foils).items


def test_a_word_is_shown_scrambled_with_itself_and_its_foil_as_choices():
    items = words_with(["garden", "market"], ["harden", "marker", "danger"])
    assert [item.shown["word"] for item in items[:2]] == ["garden", "agrden"]
    assert items[0].choices == ("garden", "harden") and items[4].choices == ("marker", "market")
    assert {item.answer for item in items} == {"garden", "market"}
    assert all(item.covariates["foil_distance"] == 1 for item in items)


def test_a_foil_is_the_closest_word_of_its_length_and_no_anagram():
    # "danger" is an anagram of "garden"; "golden" and "warden" have its length, "gardens" has not.
    assert choose_foils(["garden"], ["danger", "golden", "warden", "gardens"]) == {"garden": "warden"}


@pytest.mark.parametrize(
    ("words", "foils", "said"),
    [
        (["garden"], ["danger", "tree"], r"foil .*'garden'"),
        (["garden", "garden "], ["harden"], r"'garden' .* 2 "),
        (["grass"], ["grade"], r"item 'grass'.*'initial'"),
        (["にほんご"], ["かたかな"], "unspaced: change"),
    ],
)
def test_words_that_give_no_item_are_named(words, foils, said):
    with pytest.raises(UserError, match=said):
        words_with(words, foils)
