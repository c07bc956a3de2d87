"""Published copies as items: what is shown, what is said about it, and what is refused."""

from __future__ import annotations

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.corpora.corpus import SourceText
from stimuli.item import build_meta, read_items, write_items
from stimuli.recipes.conditions import ItemDesign, describe_conditions, doses_that_do_not_rise
from stimuli.recipes.task_items import recovery_items
from stimuli.scramble.conditions import ScrambleSettings
from stimuli.scramble.published import protocols, published_pass
from tests.stimuli.designs import sentences

SENTENCES = (
    "The gardener wouldn’t water well-known tomatoes, often. Is it so? Yes!",
    "Nobody paid $1,250 or 3.5 pounds. Everybody left",
    "See www.example.org for more_words.",
)


def items_of(operations, texts=SENTENCES, **design):
    sources = [SourceText(f"t{place}", text, "corpus") for place, text in enumerate(texts)]
    levels = {"it": operations} if isinstance(operations, str) else operations
    given_design = {"factor": "scramble", "levels": levels, "seed": 1, "published": True} | design
    return recovery_items(sources, ItemDesign(**given_design))


@pytest.mark.parametrize("name", list(protocols()))
def test_items_show_what_the_pass_gives_and_say_what_changed(name, tmp_path):
    items = items_of(name)
    assert [item.shown["sentence"] for item in items] == published_pass(SENTENCES, name)
    assert [item.answer for item in items] == list(SENTENCES)
    assert {item.provenance["seed"] for item in items} == {protocols()[name].seed}
    assert all(item.provenance["operation"].startswith(f"published {name}") for item in items)
    for item in items:
        shown = item.shown["sentence"]
        assert all(shown[change["start"] :].startswith(change["shown"]) for change in item.changes)
        assert bool(item.changes) or not name.startswith(("REO-BEG", "REO-REV", "DEL", "INS", "SUB", "RS"))
    write_items(tmp_path / "items.jsonl", items, build_meta(1))
    assert len(read_items(tmp_path / "items.jsonl")) == 3


def test_combining_marks_stay_and_their_letters_count_as_new():
    (item,) = items_of("REO-REV", ("abq\u0301cd efgh",))
    assert item.shown["sentence"] == "qb\u00e1dc hgfe"
    torn, whole = item.changes
    assert (torn["intact"], torn["shown"], torn["substituted"]) == ("abq\u0301cd", "qb\u00e1dc", 2)
    assert list(whole["permutation"]) == [3, 2, 1, 0]


@pytest.mark.parametrize("name", ["RS", "KF", "KFL", "REO-ALL", "REO-REV", "REO-INT_3"])
def test_letters_that_only_moved_are_never_called_new_also_in_addresses(name):
    for item in items_of(name, ("See www.example.org and gardens.co.uk, or ask me@there-is.com.",)):
        assert item.changes
        assert all(None not in change["permutation"] for change in item.changes)


def test_moved_words_are_recorded_by_clause_and_moved_sentences_by_text():
    (item,) = items_of("WORD-REO-REV", ("Then two three, four. Five six!",))
    assert [
        (change["unit"], change["word"], change["start"], change["intact"], list(change["permutation"]))
        for change in item.changes
    ] == [("word", 0, 0, "Then two three", [2, 1, 0]), ("word", 4, 22, "Five six", [1, 0])]
    (item,) = items_of("SENT-REO-REV", ("One. Two? Three. Lost",))
    (change,) = item.changes
    shown = itemgetter("unit", "intact", "shown")(change)
    assert shown == ("sentence", "One. Two? Three. Lost", " Two? Three.One.")
    assert (list(change["permutation"]), change["displaced"], change["deleted"]) == ([1, 0], 2, 1)


def test_spaces_are_tidied_for_the_paper_that_did_so_only():
    for name, shown in (("KF", "a b"), ("REO-END", "a  b")):
        (item,) = items_of(name, ("a  b",))
        assert item.answer == item.shown["sentence"] == shown


def test_names_of_the_released_code_and_both_papers_stand_in_one_factor():
    items = items_of({"base": "base", "kfl": "KFL", "beg": "char_swap_beg"}, ["The gardener came."])
    assert [item.provenance["operation"] for item in items] == ["none", "published KFL", "published REO-BEG"]
    assert [item.provenance["seed"] for item in items] == [10, 10, 42]


@given(st.permutations(range(6)), st.integers(1, 6))
def test_corrected_items_depend_neither_on_order_nor_on_number(order, number):
    texts = [SourceText(f"t{place}", f"Sentence {place} has words.", "c") for place in range(6)]
    design = ItemDesign(factor="f", levels={"intact": "none", "RS": "RS-50", "KFL": "KFL"}, seed=3)
    whole = {(item.item_id, item.condition["f"]): item.to_json() for item in recovery_items(texts, design)}
    some = recovery_items([texts[place] for place in order[:number]], design)
    assert len(some) == 3 * number
    assert all(item.to_json() == whole[item.item_id, item.condition["f"]] for item in some)


SUMMARISED = [
    {"item": "s1", "sentence": "The *gardener* watered *tomatoes*."},
    {"item": "s2", "sentence": "A *customer* lost *it*."},
]


def summarised(**changed):
    chosen = {
        "factor": "position",
        "levels": {"intact": "none", "initial": {"transpose": "initial"}, "KFL": "KFL"},
        "seed": 1,
        "answer": None,
        "settings": ScrambleSettings(words="starred"),
    }
    return list(sentences(SUMMARISED, **(chosen | changed)).items)


def test_each_condition_has_a_row_with_what_it_changed_and_left_intact_by_reason():
    intact, initial, keep = describe_conditions(summarised())
    assert intact.left_intact == {}
    assert initial.left_intact == keep.left_intact == {"too short": 1}
    assert [intact.condition, initial.condition] == [{"position": "intact"}, {"position": "initial"}]
    assert (intact.items, intact.changed_words, intact.share_changed, intact.displaced) == (2, 0, 0, 0)
    assert (initial.items, initial.changed_words) == (2, 1.5)
    assert initial.share_changed == pytest.approx(3 / 8)
    assert (initial.displaced, initial.displacement, initial.mean_displacement) == (2, 1, 0.25)
    assert (initial.operations, initial.moved_sentences) == (("transpose:initial",), 0)


def test_substituted_inserted_and_deleted_letters_are_summed():
    levels = {name: name for name in ("SUB", "DEL-END", "INS-INT_2")}
    rows = describe_conditions(items_of(levels, ["The gardener came."] * 3))
    counts = [(row.substituted, row.inserted, row.deleted) for row in rows]
    assert counts == [(45, 0, 0), (6, 0, 0), (0, 12, 0)]
    assert [row.changed_words for row in rows] == [3, 2, 2]


def test_moved_words_count_as_changed_as_far_apart_as_they_stood_and_moved_sentences_apart():
    (row,) = describe_conditions(items_of("WORD-REO-REV", ["One two three."]))
    assert (row.displaced, row.displacement) == (2, 2)
    levels = {"words": "WORD-REO-REV", "sentences": "SENT-REO-REV"}
    words, whole = describe_conditions(items_of(levels, ["One two three. Four five."]))
    assert (words.changed_words, words.share_changed, words.moved_sentences) == (4, 0.8, 0)
    assert (whole.changed_words, whole.share_changed, whole.moved_sentences) == (0, 0, 2)


def test_a_series_whose_texts_do_not_get_further_from_the_intact_ones_is_named():
    levels = {f"k{k}": {"exchange": "internal", "count": k, "fewer": "leave"} for k in (1, 4)}
    text = ["Also the problems came when tall men left home"]
    apart, together = (
        describe_conditions(
            items_of(
                levels, text, published=False, settings=ScrambleSettings(dose=dose, avoid_real_words="off")
            )
        )
        for dose in ("as_published", "equal")
    )
    (note,) = doses_that_do_not_rise(apart, "scramble")
    assert note.startswith("k4 should change more than k1") and "k1 7.0" in note
    assert doses_that_do_not_rise(together, "scramble") == []


def test_words_that_stay_for_want_of_a_nonword_are_counted_by_length():
    levels = {"mixed": "shuffle:all"}
    settings = ScrambleSettings(avoid_real_words="words")
    (row,) = describe_conditions(items_of(levels, ["On is we film"], published=False, settings=settings))
    assert row.only_words == {2: pytest.approx(1 / 3)}


def test_words_that_took_fewer_than_the_count_are_counted_by_how_many_they_took():
    levels = {f"k{k}": {"exchange": "internal", "count": k} for k in (1, 4)}
    for dose, fewer in (("equal", {}), ("as_published", {1: 2})):
        settings = ScrambleSettings(dose=dose, avoid_real_words=False)
        items = items_of(levels, ["Also the problems came."], published=False, settings=settings)
        one, four = describe_conditions(items)
        assert (one.asked, four.asked) == (1, 4)
        assert one.fewer == {} and four.fewer == fewer
        assert four.words_by_count[4] == 1
