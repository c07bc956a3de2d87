"""Blocks that answer in different ways: a lexical decision, then the same words typed; rules chosen, then stated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.lists import list_ids
from experiment.models.prompts.prompter import render
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.item import build_meta, write_items

STUDY = """\
wrods: 1
study: mixed
title: Decided, then typed
seed: 11
materials:
  lexical_decision: {words: words.txt}
design:
  factors:
    form: {intact: none, moved: {transpose: internal}}
procedure:
  - practice: {items: practice.csv}
  - block:
      trial:
        - choose: {show: word, keys: {word: j, nonword: f}, time_limit: 3 s}
      attention_checks: 1
  - block:
      trial:
        - recover: {show: word, ask: Type the word as it should be., minimum: 500 ms}
      attention_checks: 1
"""
WORDS = ["garden", "planet", "marble", "basket", "window", "orange", "silver", "button"]
MakeMixed = Callable[..., Study]


@pytest.fixture
def mixed(tmp_path: Path) -> MakeMixed:
    def make(*changes: tuple[str, str]) -> Study:
        text = STUDY
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (tmp_path / "study.yaml").write_text(text, "utf-8")
        (tmp_path / "words.txt").write_text("\n".join(WORDS), "utf-8")
        (tmp_path / "practice.csv").write_text("item,word,answer\np1,tabel,nonword\n", "utf-8")
        (tmp_path / "typed.csv").write_text("item,word,answer\np2,tabel,table\n", "utf-8")
        study = load_study(tmp_path)
        write_items(tmp_path / "items.jsonl", make_items(study).items, build_meta(11))
        return load_study(tmp_path)

    return make


NO_PRACTICE = ("  - practice: {items: practice.csv}\n", "")


def trials_in(study: Study, list_id: int = 1) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, study.items, list_id=list_id, session_key="s"))


def test_each_block_answers_in_its_own_way_and_no_word_comes_twice(mixed):
    study = mixed(NO_PRACTICE)
    for list_id in list_ids(study, study.items):
        trials = trials_in(study, list_id)
        kinds = {
            trial["block"]: {t["trial_type"] for t in trials if t["block"] == trial["block"]}
            for trial in trials
        }
        assert kinds == {"block-1": {"choose"}, "block-2": {"recover"}}
        shown = [trial["item_id"] for trial in trials]
        assert len(set(shown)) == len(shown)
        tested = [trial for trial in trials if not (trial["is_attention_check"] or trial["is_filler"])]
        assert sorted(trial["item_id"] for trial in tested) == sorted(WORDS)


def test_models_are_asked_for_a_label_in_one_block_and_for_the_word_in_the_other(mixed):
    study = mixed(NO_PRACTICE)
    plan = plan_session(study, study.items, list_id=1)
    for trial in trials_of(plan):
        made = render(plan, trial)
        if trial["trial_type"] == "choose":
            assert made.labels == ("word", "nonword")
        else:
            assert made.labels is None
            if not trial["is_attention_check"]:
                assert "Type the word as it should be." in made.messages[-1].content


RULES = """\
wrods: 1
study: rules
title: Rules chosen and completed
seed: 3
materials: {htest: {rules: all, exemplars: 4, items: 4}}
design: {lists: one}
procedure:
  - practice: {rule: PRACTISED, number: 4}
  - block:
      sets: [FIRST]
      trial: [{choose: {show: text, keys: {A: f, B: j}}}]
      feedback: accuracy
  - block:
      sets: [SECOND]
      trial: [{answer: {show: text, ask: Which letter is it?}}]
"""


def test_sets_may_be_answered_in_different_ways_and_practice_shows_examples_as_they_do(tmp_path):
    from stimuli.htest.rules import rules

    first, second, practised = list(rules())[:3]
    text = RULES.replace("FIRST", first).replace("SECOND", second).replace("PRACTISED", practised)
    (tmp_path / "study.yaml").write_text(text.replace("rules: all", f"rules: [{first}, {second}]"), "utf-8")
    study = load_study(tmp_path)
    write_items(tmp_path / "items.jsonl", make_items(study).items, build_meta(3))
    trials = trials_in(load_study(tmp_path))
    assert [(trial["set"], trial["trial_type"]) for trial in trials] == [
        *[("practice-1", "choose")] * 4,
        *[(first, "choose")] * 4,
        *[(second, "answer")] * 4,
    ]
    assert {len(trial["exemplars"]) for trial in trials} == {4}
    examples = {trial["set"]: [one["text"] for one in trial["exemplars"]] for trial in trials}
    assert len({text for texts in examples.values() for text in texts}) == 12
    assert not {trial["shown"]["text"] for trial in trials} & {
        t for texts in examples.values() for t in texts
    }
    assert {trial["answer"] for trial in trials} == {"A", "B"}
