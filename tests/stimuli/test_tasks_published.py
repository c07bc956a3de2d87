"""Tasks on real corpora: published stimuli string for string, and counts of what the users' own copies give."""

from __future__ import annotations

import json

import pytest

from stimuli.corpora import load_corpus
from stimuli.corpora.realtimeqa import plain_text
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.tasks import published_list, task_items

pytestmark = pytest.mark.shared
SIX = {"original": "none", "rs20": "RS-20", "rs50": "RS-50", "rs100": "RS-100", "kf": "KF", "kfl": "KFL"}
SEVEN = SIX | {"sub": "Sub"}


def published(shared, corpus, task, levels, **changed):
    listed = published_list(corpus, shared / "data" / corpus, task=task, split=changed.pop("split", None))
    return task_items(
        task,
        listed.records,
        ItemDesign(factor="text", levels=levels, seed=1, published=True),
        pass_over=listed.pass_over,
        **changed,
    )


def families(made):
    by_id = {}
    for item in made.items:
        by_id.setdefault(item.item_id, {})[item.condition["text"]] = item
    return list(by_id.values())


def lines(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_the_346_questions_have_the_published_evidence_in_all_seven_conditions(shared):
    released = lines(shared / "data" / "scrambled_bench" / "stimuli" / "qa_realtimeqa.jsonl")
    made = families(published(shared, "realtimeqa", "question", SEVEN))
    assert len(made) == len(released) == 346
    for one, family in zip(released, made, strict=True):
        assert {name: family[name].shown["evidence"] for name in SEVEN} == one["evidence"]
        right = one["choices"]["ABCD".index(one["answer"])]
        assert family["sub"].answer == plain_text(right)
        assert family["sub"].shown["question"] == plain_text(one["question"])


def test_the_408_sentences_to_recover_are_the_published_ones(shared):
    released = lines(shared / "data" / "scrambled_bench" / "stimuli" / "rec_realtimeqa.jsonl")
    made = families(published(shared, "realtimeqa", "recover", SIX))
    assert len(made) == len(released) == 408
    for one, family in zip(released, made, strict=True):
        assert {name: family[name].shown["evidence"] for name in SIX} == {name: one[name] for name in SIX}
        assert family["kf"].answer == one["original"]


def test_a_pass_over_the_questions_alone_gives_other_strings(shared):
    listed = published_list("realtimeqa", shared / "data" / "realtimeqa", task="question")
    some = ItemDesign(factor="text", levels={"rs50": "RS-50"}, seed=1, published=True)
    alone = task_items("question", listed.records, some)
    whole = task_items("question", listed.records, some, pass_over=listed.pass_over)
    assert len(alone.items) == len(whole.items)
    assert sum(a.shown != b.shown for a, b in zip(alone.items, whole.items, strict=True)) > 300
    with pytest.raises(UserError, match=repr(listed.records[9].record_id)):
        task_items("question", listed.records, some, pass_over=listed.records[:9])


@pytest.mark.full
def test_the_dialogue_that_the_paper_prints_comes_out_of_the_pass_over_dream(shared):
    assert len(published_list("dream", shared / "data" / "dream", task="question").records) == 512 + 513
    made = published(shared, "dream", "question", {"rs100": "RS-100"}, split="dev")
    assert len(made.items) == 513
    (printed,) = [item for item in made.items if item.item_id == "14-349-1"]
    begins = "M: owH goln veah uyo eben ehctnaig ni iths edmdli colosh?\nW: Fro"
    assert printed.shown["dialogue"].startswith(begins)
    assert printed.covariates["is_logic"] is not None and printed.provenance["seed"] == 10


def test_the_problems_that_the_paper_prints_come_out_of_the_pass_over_aqua(shared):
    made = published(shared, "aqua", "problem", {"rs100": "RS-100"})
    shown = "\n".join(item.shown["question"] for item in made.items)
    assert "A ritna inunrgn ta a eepsd fo 100 mlesi/uhro, eakts 10 hurso" in shown
    assert "ieahMnc A psut otu a oy-oy ryeve 6 nsimtue." in shown
    doubled = [item for item in made.items if len(set(item.choices or ())) < len(item.choices or ())]
    assert (len(made.items), len(doubled), len(made.skipped)) == (254, 7, 0)


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
        ("dream", "test", "question", 60, 0),
        ("boolq", None, "question", 60, 0),
        ("squad", None, "question", 60, 0),
        ("csqa", "dev", "complete", 60, 24),
        ("csqa", "test", "complete", 0, 50),
        ("mbpp", None, "complete", 60, 0),
        ("gsm8k", "test", "problem", 60, 0),
    ],
)
def test_every_labelled_record_of_a_corpus_suits_its_task(shared, corpus, split, task, items, skipped):
    records = load_corpus(corpus, shared / "data" / corpus, split=split).records
    made = task_items(task, records, ItemDesign(seed=1, number=items or None, on_bad="skip"))
    assert len(made.items) == items
    assert len(made.skipped) == skipped
    for item in made.items:
        assert Item.from_json(item.to_json()).to_json() == item.to_json()
