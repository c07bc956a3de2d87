"""Seeded subsets of corpora, texts for recovery, and a corpus of one's own."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.corpora import Corpus, CorpusSplit, Record, SourceText, corpora, load_corpus, subset, texts_of
from stimuli.errors import UserError
from tests.write_corpora_page import PAGE as CORPORA_PAGE
from tests.write_corpora_page import corpora_page


def records(sizes):
    made = [(stratum, n) for stratum, size in sizes.items() for n in range(size)]
    return [
        Record(f"{of}-{n}", "aqua", "test", None, {"question": f"{n}?"}, None, of, extra={"kind": of})
        for of, n in made
    ]


SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1)


@given(
    sizes=SIZES, seed=st.integers(0, 9), by=st.sampled_from([None, "kind", "answer", "split"]), data=st.data()
)
def test_a_larger_draw_holds_a_smaller_one(sizes, seed, by, data):
    everything = records(sizes)
    large = data.draw(st.integers(0, len(everything)))
    small = data.draw(st.integers(0, large))
    ids = [record.record_id for record in subset(everything, large, seed, by)]
    assert len(ids) == large
    assert {record.record_id for record in subset(everything, small, seed, by)} <= set(ids)
    assert ids == [record.record_id for record in everything if record.record_id in ids]


@given(sizes=SIZES, seed=st.integers(0, 9), by=st.sampled_from([None, "kind"]), data=st.data())
def test_the_order_of_files_does_not_change_what_is_drawn(sizes, seed, by, data):
    everything = records(sizes)
    number = data.draw(st.integers(0, len(everything)))
    drawn = subset(everything, number, seed, by)
    again = subset(data.draw(st.permutations(everything)), number, seed, by)
    assert {record.record_id for record in drawn} == {record.record_id for record in again}


@given(a=st.integers(1, 60), b=st.integers(1, 60), seed=st.integers(0, 9), data=st.data())
def test_two_strata_are_drawn_in_proportion(a, b, seed, data):
    number = data.draw(st.integers(0, a + b))
    drawn = Counter(record.answer for record in subset(records({"a": a, "b": b}), number, seed, "answer"))
    assert abs(drawn["a"] - number * a / (a + b)) < 1


def test_too_many_and_an_unknown_field_are_refused():
    with pytest.raises(UserError, match=r"5 .* 4"):
        subset(records({"a": 4}), 5, 1)
    with pytest.raises(UserError, match="'kind'"):
        subset(records({"a": 4}), 2, 1, "kinds")


def test_a_draw_from_dream_is_spread_over_its_categories(shared):
    loaded = load_corpus("dream", shared / "data/dream", split="test", selection="annotated")
    drawn = subset(loaded.records, 128, 4711, "categories")
    whole = Counter(record.extra["categories"] for record in loaded.records)
    for categories, number in Counter(record.extra["categories"] for record in drawn).items():
        assert abs(number - whole[categories] / 4) <= 1


def test_texts_for_recovery_are_distinct_and_carry_split_and_licence():
    one = Record("1", "dream", "test", "L", {"dialogue": "M: Hi.", "question": "Q1?"}, None, None)
    two = Record("2", "dream", "test", "L", {"dialogue": "M: Hi.", "question": "Q2?"}, None, None)
    bare = Record("3", "dream", "test", "L", {"question": "Q2?"}, None, None)
    assert texts_of([one, two, bare]) == [SourceText("1", "M: Hi.", "dream", "test", "L")]
    assert [text.source_id for text in texts_of([one, two, bare], "question")] == ["1", "2"]
    with pytest.raises(UserError, match=r"'dialog' .*\n.*'dialogue'"):
        texts_of([one], "dialog")


def read_riddle(row, place):
    yield place.record(place.text(row, "id"), {"riddle": place.text(row, "riddle")}, answer=row["solution"])


RIDDLES = Corpus(
    name="riddles",
    title="Riddles",
    citation="Us (2026).",
    licence="CC0-1.0",
    fields=("riddle",),
    reading_field="riddle",
    parts=(CorpusSplit("test", ("riddles*.jsonl",)),),
    read=read_riddle,
)


@pytest.fixture
def installed(monkeypatch):
    def install(corpus):
        entry = SimpleNamespace(name=corpus.name, value="package:CORPUS", load=lambda: corpus)
        groups = {"wrods.corpora": [entry]}
        monkeypatch.setattr(metadata, "entry_points", lambda *, group: groups.get(group, []))
        corpora.cache_clear()

    yield install
    corpora.cache_clear()


def test_a_package_adds_a_corpus_in_ten_lines(installed, tmp_path):
    installed(RIDDLES)
    row = {"id": "r1", "riddle": "What has keys?", "solution": "a piano"}
    (tmp_path / "riddles.jsonl").write_text(json.dumps(row) + '\n{"id": "r2"}\n', encoding="utf-8")
    loaded = load_corpus("riddles", tmp_path, on_bad="skip")
    (record,) = loaded.records
    told = (record.corpus, record.split, record.licence, record.answer)
    assert told == ("riddles", "test", "CC0-1.0", "a piano")
    assert [(bad.line, "'riddle'" in bad.reason) for bad in loaded.bad] == [(2, True)]
    assert texts_of(loaded.records)[0].text == "What has keys?"


def test_a_package_cannot_add_a_corpus_with_a_known_name_or_without_its_reading_field(installed):
    installed(replace(RIDDLES, name="dream"))
    with pytest.raises(UserError, match=r"'dream' .*wrods\.corpora"):
        corpora()
    installed(replace(RIDDLES, reading_field="solution"))
    with pytest.raises(UserError, match="'solution'"):
        corpora()


def test_the_page_of_corpora_is_up_to_date():
    page = CORPORA_PAGE.read_text("utf-8")
    assert page == corpora_page(page), "run: python -m tests.write_corpora_page"
    assert all(f"| `{name}` |" in page for name in corpora())
