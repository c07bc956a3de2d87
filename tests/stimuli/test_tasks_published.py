"""Tasks on real corpora: published stimuli string for string, and counts of what the users' own copies give."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stimuli.corpora import load_corpus
from stimuli.corpora.realtimeqa import plain_text
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.task_items import published_passes
from stimuli.recipes.tasks import published_list, task_items

pytestmark = pytest.mark.shared
SIX = {"original": "none", "rs20": "RS-20", "rs50": "RS-50", "rs100": "RS-100", "kf": "KF", "kfl": "KFL"}
SEVEN = SIX | {"sub": "Sub"}


FIELDS = {"realtimeqa": "evidence", "dream": "dialogue", "aqua": "question"}


def list_of(shared, corpus, task, split=None):
    return published_list(corpus, shared / "data" / corpus, task=task, split=split)


def passed(listed, levels):
    """Return what each record shows in every condition, by the pass over the whole list."""
    passes = published_passes([one.texts[FIELDS[one.corpus]] for one in listed.pass_over], levels)
    return {
        record.record_id: {level: passes.passed[level][place].text for level in levels}
        for place, record in enumerate(listed.pass_over)
    }


def families(listed, task, levels, records):
    """Make the items of some records; return those of each record by condition."""
    design = ItemDesign(factor="text", levels=levels, seed=1, published=True)
    by_id = {}
    for item in task_items(task, records, design, pass_over=listed.pass_over).items:
        by_id.setdefault(item.item_id, {})[item.condition["text"]] = item
    return by_id


def released(shared, name):
    file = shared / "data" / "scrambled_bench" / "stimuli" / name
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_the_346_questions_have_the_published_evidence_in_all_seven_conditions(shared):
    listed, published = list_of(shared, "realtimeqa", "question"), released(shared, "qa_realtimeqa.jsonl")
    assert len(listed.records) == len(published) == 346
    shown = passed(listed, SEVEN)
    assert [shown[record.record_id] for record in listed.records] == [one["evidence"] for one in published]
    some = listed.records[::40]
    for one, family in zip(published[::40], families(listed, "question", SEVEN, some).values(), strict=True):
        assert {name: family[name].shown["evidence"] for name in SEVEN} == one["evidence"]
        right = one["choices"]["ABCD".index(one["answer"])]
        assert family["sub"].answer == plain_text(right)
        assert family["sub"].shown["question"] == plain_text(one["question"])


def test_the_408_sentences_to_recover_are_the_published_ones(shared):
    listed, published = list_of(shared, "realtimeqa", "recover"), released(shared, "rec_realtimeqa.jsonl")
    assert len(listed.records) == len(published) == 408
    shown = passed(listed, SIX)
    wanted = [{name: one[name] for name in SIX} for one in published]
    assert [shown[record.record_id] for record in listed.records] == wanted
    made = families(listed, "recover", SIX, listed.records[::60])
    for one, family in zip(published[::60], made.values(), strict=True):
        assert {name: family[name].shown["evidence"] for name in SIX} == {name: one[name] for name in SIX}
        assert family["kf"].answer == one["original"]


def test_a_pass_over_the_questions_alone_gives_other_strings(shared):
    listed = list_of(shared, "realtimeqa", "question")
    whole = passed(listed, {"rs50": "RS-50"})
    alone = passed(replace(listed, pass_over=listed.records), {"rs50": "RS-50"})
    assert sum(shown != whole[name] for name, shown in alone.items()) > 300
    with pytest.raises(UserError, match=repr(listed.records[9].record_id)):
        families(replace(listed, pass_over=listed.records[:9]), "question", SIX, listed.records)


@pytest.mark.full
def test_the_dialogue_that_the_paper_prints_comes_out_of_the_pass_over_dream(shared):
    assert len(list_of(shared, "dream", "question").records) == 512 + 513
    listed = list_of(shared, "dream", "question", "dev")
    assert len(listed.records) == 513
    printed = [record for record in listed.records if record.record_id == "14-349-1"]
    (family,) = families(listed, "question", {"rs100": "RS-100"}, printed).values()
    item = family["rs100"]
    begins = "M: owH goln veah uyo eben ehctnaig ni iths edmdli colosh?\nW: Fro"
    assert item.shown["dialogue"].startswith(begins)
    assert item.covariates["is_logic"] is not None and item.provenance["seed"] == 10


def test_the_problems_that_the_paper_prints_come_out_of_the_pass_over_aqua(shared):
    listed = list_of(shared, "aqua", "problem")
    shown = {name: one["rs100"] for name, one in passed(listed, {"rs100": "RS-100"}).items()}
    (printed,) = [
        name for name, text in shown.items() if "A ritna inunrgn ta a eepsd fo 100 mlesi/uhro" in text
    ]
    assert any("ieahMnc A psut otu a oy-oy ryeve 6 nsimtue." in text for text in shown.values())
    doubled = [one for one in listed.records if len(set(one.choices)) < len(one.choices)]
    assert (len(listed.records), len(doubled)) == (254, 7)
    of_doubled = [*doubled[:1], *(one for one in listed.records if one.record_id == printed)]
    made = families(listed, "problem", {"rs100": "RS-100"}, of_doubled)
    assert [one["rs100"].shown["question"] for one in made.values()] == [shown[name] for name in made]


@pytest.mark.parametrize(
    ("corpus", "task", "said"), [("squad", "question", "complete"), ("aqua", "recover", "problem")]
)
def test_what_was_not_published_is_refused(shared, corpus, task, said):
    with pytest.raises(UserError) as error:
        published_list(corpus, shared / "data" / corpus, task=task)
    assert f"task {task} " in error.value.message and said in str(error.value.mend)


@pytest.mark.parametrize(
    ("corpus", "split", "task", "items", "skipped"),
    [
        ("dream", "test", "question", 12, 0),
        ("boolq", None, "question", 12, 0),
        ("squad", None, "question", 12, 0),
        ("csqa", "dev", "complete", 12, 24),
        ("csqa", "test", "complete", 0, 50),
        ("mbpp", None, "complete", 12, 0),
        ("gsm8k", "test", "problem", 12, 0),
    ],
)
def test_every_labelled_record_of_a_corpus_suits_its_task(shared, corpus, split, task, items, skipped):
    records = load_corpus(corpus, shared / "data" / corpus, split=split).records
    made = task_items(task, records, ItemDesign(seed=1, number=items or None, on_bad="skip"))
    assert len(made.items) == items
    assert len(made.skipped) == skipped
    for item in made.items:
        assert Item.from_json(item.to_json()).to_json() == item.to_json()
