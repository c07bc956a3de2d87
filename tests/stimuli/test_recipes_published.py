"""Published copies as items: what is shown, what is said about it, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.corpora import load_corpus
from stimuli.corpora.realtimeqa import recovery_sentences
from stimuli.corpora.rows import SourceText
from stimuli.errors import UserError
from stimuli.item import build_meta, read_items, write_items
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.task_items import recovery_items
from stimuli.scramble.published import protocols, published_pass

SENTENCES = (
    "The gardener wouldn’t water well-known tomatoes, often. Is it so? Yes!",
    "Nobody paid $1,250 or 3.5 pounds. Everybody left",
    "See www.example.org for more_words.",
)


def items_of(operation, texts=SENTENCES):
    sources = [SourceText(f"t{place}", text, "corpus") for place, text in enumerate(texts)]
    return recovery_items(
        sources, ItemDesign(factor="scramble", levels={"it": operation}, seed=1, published=True)
    )


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
    assert (torn["intact"], torn["shown"], torn["substituted"]) == (
        "abq\u0301cd",
        "qb\u00e1dc",
        2,
    )
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
    ] == [
        ("word", 0, 0, "Then two three", [2, 1, 0]),
        ("word", 4, 22, "Five six", [1, 0]),
    ]
    (item,) = items_of("SENT-REO-REV", ("One. Two? Three. Lost",))
    (change,) = item.changes
    assert (change["unit"], change["intact"], change["shown"]) == (
        "sentence",
        "One. Two? Three. Lost",
        " Two? Three.One.",
    )
    assert (list(change["permutation"]), change["displaced"], change["deleted"]) == ([1, 0], 2, 1)


def test_spaces_are_tidied_for_the_paper_that_did_so_only():
    for name, shown in (("KF", "a b"), ("REO-END", "a  b")):
        (item,) = items_of(name, ("a  b",))
        assert item.answer == item.shown["sentence"] == shown


def test_names_of_the_released_code_and_both_papers_stand_in_one_factor():
    texts = [SourceText("t", "The gardener came.", "c")]
    levels = {"base": "base", "kfl": "KFL", "beg": "char_swap_beg"}
    items = recovery_items(texts, ItemDesign(factor="f", levels=levels, seed=1, published=True))
    assert [item.provenance["operation"] for item in items] == ["none", "published KFL", "published REO-BEG"]
    assert [item.provenance["seed"] for item in items] == [10, 10, 42]


@pytest.mark.parametrize("level", ["KR2", "KF&Adj"])
def test_what_has_no_released_code_is_refused_by_name(level):
    with pytest.raises(UserError, match=rf"published {level.upper()} cannot be copied.*\n.*corrected mode"):
        items_of(level)


@given(st.permutations(range(6)), st.integers(1, 6))
def test_corrected_items_depend_neither_on_order_nor_on_number(order, number):
    texts = [SourceText(f"t{place}", f"Sentence {place} has words.", "c") for place in range(6)]
    levels = {"intact": "none", "RS": "RS-50", "KFL": "KFL"}
    whole = {
        (item.item_id, item.condition["f"]): item.to_json()
        for item in recovery_items(texts, ItemDesign(factor="f", levels=levels, seed=3))
    }
    some = recovery_items(
        [texts[place] for place in order[:number]], ItemDesign(factor="f", levels=levels, seed=3)
    )
    assert len(some) == 3 * number
    assert all(item.to_json() == whole[item.item_id, item.condition["f"]] for item in some)


@pytest.mark.shared
def test_the_408_sentences_in_every_condition_are_items_with_a_record_of_what_moved(shared, tmp_path):
    texts = recovery_sentences(load_corpus("realtimeqa", shared / "data/realtimeqa").records)
    levels = {name: name for name in ("RS-20", "RS-50", "RS-100", "KF", "KFL", "Sub")}
    items = recovery_items(texts, ItemDesign(factor="scramble", levels=levels, seed=1, published=True))
    assert len(items) == 408 * 6
    for item in items:
        shown = item.shown["sentence"]
        for change in item.changes:
            assert shown[change["start"] :].startswith(change["shown"])
            assert len(change["permutation"]) == len(change["intact"])
            letters = sum(source is None for source in change["permutation"])
            assert (letters > 0) == (item.condition["scramble"] == "Sub")
    write_items(tmp_path / "items.jsonl", items[:60], build_meta(1))
    assert len(read_items(tmp_path / "items.jsonl")) == 60
