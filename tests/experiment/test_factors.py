"""Several factors crossed: what their levels do, which cells come of them, and how lists keep them balanced."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.lists import items_of_list, list_ids
from experiment.models import ModelSettings
from experiment.models.planning.plans import plan_sessions
from experiment.models.prompts.prompter import render
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.study import Study
from stimuli.audit.audit import audit_items
from stimuli.errors import UserError
from stimuli.htest.geometry.questions import kept_apart, questions, reads_as
from stimuli.htest.rules import rule
from stimuli.item import write_items

SENTENCES = (
    "The gardener watered tomatoes",
    "A customer returned umbrellas",
    "Several children painted dinosaurs",
    "The minister answered questions",
    "My neighbour collected postcards",
    "The director cancelled concerts",
    "A traveller described mountains",
    "The mechanic repaired machines",
)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(factors: str, rows: str = "high low high low high low high low", practice: str = "") -> Study:
        with (tmp_path / "sentences.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["item", "sentence", "band"])
            for number, (text, band) in enumerate(zip(SENTENCES, rows.split(), strict=True), 1):
                writer.writerow([f"s{number}", text, band])
        (tmp_path / "practice.csv").write_text(practice, "utf-8")
        screen = "  - practice: {items: practice.csv}\n" if practice else ""
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: crossed\ntitle: Crossed\nseed: 5\n"
            "materials:\n  sentences: sentences.csv\n"
            f"design:\n  factors: {factors}\n"
            f"procedure:\n{screen}  - block:\n      trial:\n        - recover: {{show: sentence}}\n",
            "utf-8",
        )
        return load_study(tmp_path)

    return study


POSITION = "position: {intact: none, initial: {transpose: initial}, final: {transpose: final}}"
DISTANCE = "distance: {near: {distance: 1}, far: {distance: 2}}"
BAND = "band: {low: {where: {band: low}}, high: {where: {band: high}}}"


def test_a_factor_that_sets_an_option_is_crossed_with_the_one_that_scrambles(make):
    items = make_items(make(f"{{{POSITION}, {DISTANCE}}}")).items
    assert Counter(tuple(item.condition.items()) for item in items) == {
        (("position", p), ("distance", d)): 8 for p in ("intact", "initial", "final") for d in ("near", "far")
    }
    shown = {
        tuple(item.condition.values()): item.provenance["operation"] for item in items if item.item_id == "s1"
    }
    assert shown["initial", "near"] == "transpose:initial"
    assert shown["initial", "far"] == "transpose:initial(distance=2)"
    assert shown["intact", "far"] == "none"


def test_a_factor_between_items_is_crossed_with_one_within(make):
    study = make(f"{{{BAND}, {POSITION}}}")
    items = make_items(study).items
    bands = {item.item_id: item.condition["band"] for item in items}
    assert bands == {f"s{n}": "high" if n % 2 else "low" for n in range(1, 9)}
    assert all(list(item.condition) == ["band", "position"] for item in items)
    write_items(study.folder / "items.jsonl", items, {"seed": 5})
    for list_id in list_ids(study, items):
        cells = Counter(tuple(item.condition.values()) for item in items_of_list(study, items, list_id))
        assert max(cells.values()) - min(cells.values()) <= 1
        assert len(cells) == 6


def test_rows_that_no_level_picks_are_told_with_their_cells_and_the_nearest_value(make):
    study = make(f"{{{BAND}, {POSITION}}}")
    table = study.folder / str(study.get("materials", "sentences"))
    text = table.read_text("utf-8")
    table.write_text(text.replace("high", "hihg", 1), "utf-8")
    told = " ".join(make_items(load_study(study.folder)).remarks)
    assert (
        "1 of 8 rows are in no level and are left out: item s1: band is 'hihg', did you mean 'high'?" in told
    )


def test_each_item_comes_in_every_condition_across_lists(make):
    study = make(f"{{{BAND}, {POSITION}, {DISTANCE}}}")
    items = make_items(study).items
    lists = list_ids(study, items)
    assert len(lists) == 6
    for list_id in lists:
        shown = [item.item_id for item in items_of_list(study, items, list_id)]
        assert len(shown) == len(set(shown)) == len(items) / 6
    seen = Counter(
        (item.item_id, *item.condition.values())
        for list_id in lists
        for item in items_of_list(study, items, list_id)
    )
    assert len(seen) == len(items)
    assert set(seen.values()) == {1}


def test_a_practice_row_with_an_unknown_level_names_it(make):
    practice = "item,sentence,position\np1,Another gardener watered tomatoes,finl\n"
    with pytest.raises(UserError, match="'finl'") as error:
        make_items(make(f"{{{POSITION}}}", practice=practice))
    assert error.value.mend is not None
    assert "final" in error.value.mend


@pytest.mark.parametrize(
    ("factors", "says"),
    [
        (f"{{{POSITION}, other: {{a: none, b: KFL}}}}", "position and other"),
        (f"{{{DISTANCE}}}", "'distance'"),
        (f"{{{POSITION}, rate: {{a: {{rate: 0.5}}, b: none}}}}", "'rate'"),
        (
            "{position: {a: {transpose: initial, distance: 1}, b: {transpose: final, distance: 1}}, "
            f"{DISTANCE}}}",
            "'a × near'",
        ),
        (f"{{{POSITION}, size: {{a: {{distanc: 1}}, b: {{distanc: 2}}}}}}", "'distanc'"),
        (f"{{position: {{a: hand-made, b: {{transpose: final}}}}, {DISTANCE}}}", "'a × near'"),
        (
            f"{{{POSITION}, shots: {{a: {{demonstrations: none}}, b: {{demonstrations: KFL}}}}}}",
            "`demonstrations`",
        ),
    ],
)
def test_factors_that_cannot_be_crossed_say_why(make, factors, says):
    with pytest.raises(UserError, match=r"study\.yaml, line 8") as error:
        make(factors)
    assert says in str(error.value)


HTEST = """\
wrods: 1
study: arms
title: Arms
seed: 3
materials: {htest: {rules: [uppercase, start_vowel, palindrome], exemplars: 4, items: 12}}
design:
  factors: {evidence: {intact: none, substituted: Sub}}
  between:
    examples:
      right: {exemplars: 4}
      none: {exemplars: 0, texts: {task.md: none.md}}
      shuffled: {exemplars: 4, example_labels: shuffled}
models: {who: {guess: {use: "baseline:random"}}}
procedure:
  - instructions: task.md
  - block:
      trial:
        - choose: {show: text, ask: Which group?, keys: {A: f, B: j}, labels: balanced}
"""
GEOMETRY = """\
wrods: 1
study: geo
title: Geometry
seed: 3
materials: {letter_geometry: {}, items: 48}
design: {factors: {evidence: {intact: none, substituted: Sub, nothing: withhold}}}
procedure:
  - block:
      trial:
        - choose: {show: question, keys: [a, s, d, f]}
"""


def study(folder: Path, text: str, *changes: tuple[str, str]) -> Study:
    folder.mkdir(exist_ok=True)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "study.yaml").write_text(text, "utf-8")
    (folder / "task.md").write_text("Solved lines stand above each line.", "utf-8")
    (folder / "none.md").write_text("There are no solved lines.", "utf-8")
    return load_study(folder)


def asked_in(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial for trial in trials_of(plan) if not trial["is_practice"]]


def test_letters_of_a_text_are_replaced_and_all_else_stays(tmp_path):
    items = make_items(study(tmp_path / "s", HTEST)).items
    by_id: dict[str, dict[str, Any]] = {}
    for item in items:
        if item.role == "test":
            by_id.setdefault(item.item_id, {})[item.condition["evidence"]] = item
    assert len(by_id) == 36
    for versions in by_id.values():
        intact, other = versions["intact"], versions["substituted"]
        shown, was = other.shown["text"], intact.shown["text"]
        assert shown != was and other.intact["text"] == was and other.answer == intact.answer
        assert [(c.isalpha(), c.isupper(), c if not c.isalpha() else "") for c in shown] == [
            (c.isalpha(), c.isupper(), c if not c.isalpha() else "") for c in was
        ]
        assert all(change["substituted"] == len(change["intact"]) for change in other.changes)
    exemplars = [item for item in items if item.role == "exemplar"]
    assert len(exemplars) == 12 and not any(item.changes for item in exemplars)


def test_both_classes_meet_every_level_in_every_list(tmp_path):
    """Classes take turns in the file: counted together, one list would show all A intact and all B replaced."""
    made = study(tmp_path / "s", HTEST)
    items = make_items(made).items
    for list_id in list_ids(made, items):
        cells = Counter(
            (item.set_name, item.answer, item.condition["evidence"])
            for item in items_of_list(made, items, list_id)
        )
        assert set(cells.values()) == {3} and len(cells) == 12


def test_sessions_see_right_examples_none_or_labels_that_tell_nothing(tmp_path):
    made = study(tmp_path / "s", HTEST)
    build_study(made)
    found: dict[str, list[dict[str, Any]]] = {}
    for list_id in list_ids(made, made.items):
        plan = plan_session(made, made.items, list_id=list_id)
        assert "shuffled" not in json.dumps(participant_view(plan))
        for trial in asked_in(plan):
            found.setdefault(trial["condition"]["examples"], []).append({**trial, "plan": plan})
    assert {len(trial["exemplars"]) for trial in found["none"]} == {0}
    rules = {name: rule(name).predicate for name in ("uppercase", "start_vowel", "palindrome")}
    for level, share in (("right", 1.0), ("shuffled", 0.5)):
        for trial in found[level]:
            labels = trial["plan"]["label_map"]
            examples = trial["exemplars"]
            assert Counter(one["label"] for one in examples) == {"A": 2, "B": 2}
            right = [labels[rules[trial["set"]](one["text"])] == one["label"] for one in examples]
            assert sum(right) / 4 == share
    texts = {level: {one["text"] for trial in found[level] for one in trial["exemplars"]} for level in found}
    assert texts["right"] == texts["shuffled"] and len(texts["right"]) == 12
    prompt = render(found["none"][0]["plan"], found["none"][0]).messages[0].content
    assert prompt.startswith("There are no solved lines.") and "Examples:" not in prompt
    assert (
        "Solved lines stand above"
        in render(found["shuffled"][0]["plan"], found["shuffled"][0]).messages[0].content
    )


def test_models_and_people_read_the_same_arms(tmp_path):
    made = study(tmp_path / "s", HTEST)
    build_study(made)
    sessions = list(plan_sessions(made, "guess", ModelSettings("baseline:random"), {"kind": "baseline"}))
    assert len(sessions) == 12
    by_level: dict[str, int] = {}
    for session in sessions:
        for request in session.begin({}):
            trial = session.trial_of(request.work_key)
            level = trial["condition"]["examples"]
            by_level[level] = by_level.get(level, 0) + 1
            content = request.messages[-1].content
            assert trial["steps"][-1]["text"] in content
            assert all(one["text"] in content for one in trial["exemplars"])
    assert by_level == {"right": 144, "none": 144, "shuffled": 144}


def test_a_geometry_question_is_asked_of_other_symbols_or_left_out(tmp_path):
    made = study(tmp_path / "s", GEOMETRY)
    items = make_items(made).items
    assert len(items) == 144
    by_name = {one.name: one for family in made.factors["family"] for one in questions(family)}
    texts = [item.shown["question"] for item in items if item.condition["evidence"] != "nothing"]
    assert len(set(texts)) == 96, "no question is asked twice"
    for item in items:
        level, question = item.condition["evidence"], by_name[item.provenance["source_id"]]
        if level == "nothing":
            assert item.shown["question"] == "" and item.intact["question"] == question.text()
        if level == "substituted":
            said = item.shown["question"]
            symbols = next((one.symbols for one in by_name.values() if one.text() == said), None)
            assert said != question.text()
            if symbols is not None:
                result = reads_as(symbols, question.operations)
                assert not any(kept_apart(str(result), option) for option in item.choices or ())
    findings = audit_items(items, language="en", shortcut=False).findings()
    assert not [one for one in findings if one.level != "look" and one.section != "balance"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("substituted: Sub", "substituted: Sbu"), "'Sub'"),
        (("substituted: Sub", "nothing: withhold"), "is 'withhold'"),
        (("intact: none, substituted: Sub", "substituted: Sub, intact: none"), "evidence.substituted: "),
        (("substituted: Sub}}", "substituted: Sub}, x: {a: none, b: Sub}}"), " 2 "),
        (("substituted: Sub", "substituted: Sub, again: Sub"), "evidence: "),
        (("substituted: Sub", "substituted: {shuffle: all}"), "is {'shuffle': 'all'}"),
        (("exemplars: 0, texts", "exemplars: 6, texts"), "none.exemplars is 6"),
        (("exemplars: 4, example", "exemplars: 2, example"), "shuffled.example_labels"),
        (("texts: {task.md", "texts: {tsk.md"), "'task.md'"),
        (("none.md}", "gone.md}"), "'gone.md'"),
    ],
)  # fmt: skip
def test_what_cannot_be_an_arm_is_said_with_its_line(tmp_path, change, said):
    with pytest.raises(UserError) as fault:
        study(tmp_path / "s", HTEST, change)
    assert said in str(fault.value) and "study.yaml, line " in str(fault.value)
