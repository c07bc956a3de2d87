"""What conditions did to their items, in numbers."""

from __future__ import annotations

import pytest

from stimuli.corpora.rows import SourceText
from stimuli.recipes.conditions import ItemDesign, describe_conditions
from stimuli.recipes.task_items import recovery_items
from stimuli.scramble.conditions import ScrambleSettings
from tests.stimuli.designs import sentences

ROWS = [
    {"item": "s1", "sentence": "The *gardener* watered *tomatoes*."},
    {"item": "s2", "sentence": "A *customer* lost *it*."},
]


def made(**changed):
    chosen = {
        "factor": "position",
        "levels": {"intact": "none", "initial": {"transpose": "initial"}, "KFL": "KFL"},
        "seed": 1,
        "answer": None,
        "settings": ScrambleSettings(words="starred"),
    }
    return list(sentences(ROWS, **(chosen | changed)).items)


def test_each_condition_has_a_row_with_what_it_changed():
    intact, initial, _ = describe_conditions(made())
    assert [intact.condition, initial.condition] == [{"position": "intact"}, {"position": "initial"}]
    assert (intact.items, intact.changed_words, intact.share_changed, intact.displaced) == (2, 0, 0, 0)
    assert (initial.items, initial.changed_words) == (2, 1.5)
    assert initial.changed_words_sd == pytest.approx(0.5**0.5)
    assert initial.share_changed == pytest.approx(3 / 8)
    assert (initial.displaced, initial.displacement, initial.mean_displacement) == (2, 1, 0.25)
    assert (initial.operations, initial.moved_sentences) == (("transpose:initial",), 0)


def test_words_left_intact_are_counted_by_reason():
    intact, initial, keep = describe_conditions(made())
    assert intact.left_intact == {}
    assert initial.left_intact == keep.left_intact == {"too short": 1}


def test_substituted_inserted_and_deleted_letters_are_summed():
    texts = [SourceText(f"t{place}", "The gardener came.", "c") for place in range(3)]
    levels = {name: name for name in ("SUB", "DEL-END", "INS-INT_2")}
    rows = describe_conditions(
        recovery_items(texts, ItemDesign(factor="scramble", levels=levels, seed=1, published=True))
    )
    assert [(row.substituted, row.inserted, row.deleted) for row in rows] == [
        (45, 0, 0),
        (6, 0, 0),
        (0, 12, 0),
    ]
    assert [row.changed_words for row in rows] == [3, 2, 2]


def test_displacement_is_the_mean_over_the_letters_that_left_their_place():
    texts = [SourceText("t", "Some gardeners came.", "c")]
    levels = {"swap": {"transpose": "internal"}, "REV": "REO-REV", "SUB": "SUB"}
    swap, reverse, substituted = describe_conditions(
        recovery_items(
            texts, ItemDesign(factor="scramble", levels=levels, seed=1, settings=ScrambleSettings())
        )
    )
    assert (swap.displaced, swap.displacement) == (2, 1)
    assert reverse.displacement > 2 * swap.displacement
    assert substituted.displacement == 0


def test_words_that_change_places_are_as_far_apart_as_they_stood():
    texts = [SourceText("t", "One two three.", "c")]
    (row,) = describe_conditions(
        recovery_items(
            texts, ItemDesign(factor="order", levels={"turned": "WORD-REO-REV"}, seed=1, published=True)
        )
    )
    assert (row.displaced, row.displacement) == (2, 2)


def test_moved_words_count_as_changed_and_moved_sentences_apart():
    texts = [SourceText("t", "One two three. Four five.", "c")]
    levels = {"words": "WORD-REO-REV", "sentences": "SENT-REO-REV"}
    words, whole = describe_conditions(
        recovery_items(texts, ItemDesign(factor="order", levels=levels, seed=1, published=True))
    )
    assert (words.changed_words, words.share_changed, words.moved_sentences) == (4, 0.8, 0)
    assert (whole.changed_words, whole.share_changed, whole.moved_sentences) == (0, 0, 2)


def test_words_that_took_fewer_than_the_count_are_counted_by_how_many_they_took():
    texts = [SourceText("t", "Also the problems came.", "c")]
    levels = {f"k{k}": {"exchange": "internal", "count": k} for k in (1, 4)}
    for eligibility, fewer in (("common", {}), ("own", {1: 2})):
        settings = ScrambleSettings(eligibility=eligibility, avoid_real_words=False)
        one, four = describe_conditions(
            recovery_items(texts, ItemDesign(factor="k", levels=levels, seed=1, settings=settings))
        )
        assert (one.asked, four.asked) == (1, 4)
        assert one.fewer == {} and four.fewer == fewer
        assert four.words_by_count[4] == 1
