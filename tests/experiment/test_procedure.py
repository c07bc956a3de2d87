from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.lists import list_ids
from experiment.models.prompts.prompter import render
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item
from tests.experiment.conftest import make_item, small_items

CLASSES = ("keys: [f, j], answer_by: text", "keys: {A: f, B: j}, labels: balanced")


def class_items() -> list[Item]:
    return [
        Item(**{**make_item(f"h{i}", level, f"text {i}{level}", "A", "B").__dict__, "answer": "AB"[i % 2]})
        for i in range(4)
        for level in ("intact", "initial")
    ]


@pytest.mark.parametrize(("labels", "maps"), [("ABC", 6), ("ABCD", 4), ("ABCDE", 10)])
def test_each_of_several_labels_stands_for_each_class_equally_often(make_study, labels, maps):
    keys = ", ".join(f"{label}: {key}" for label, key in zip(labels, "fjkls", strict=False))
    items = [
        Item(
            **{
                **make_item(f"h{i}", level, f"text {i}{level}", "A", "B").__dict__,
                "answer": labels[i % len(labels)],
            }
        )
        for i in range(2 * len(labels))
        for level in ("intact", "initial")
    ]
    study = make_study((CLASSES[0], f"keys: {{{keys}}}, labels: balanced"), items=items)
    lists = list_ids(study, study.items)
    assert len(lists) == 2 * maps
    meant: Counter[tuple[str, str]] = Counter()
    answers_of_always_a: Counter[str] = Counter()
    for list_id in lists:
        plan = plan_session(study, study.items, list_id=list_id)
        meant.update(plan["label_map"].items())
        for trial in trials_of(plan):
            step = trial["steps"][-1]
            assert [plan["label_map"][name] for name in step["responses"]] == step["labels"] == list(labels)
            answers_of_always_a[step["responses"][0]] += 1
    assert len(meant) == len(labels) ** 2 and set(meant.values()) == {2 * maps // len(labels)}
    assert len(answers_of_always_a) == len(labels) and len(set(answers_of_always_a.values())) == 1
    assert plan_session(study, items, list_id=1)["label_map"] == {label: label for label in labels}


def test_an_item_without_one_of_the_conditions_is_named(make_study):
    items = [
        item for item in small_items() if (item.item_id, item.condition["position"]) != ("w2", "initial")
    ]
    study = make_study(items=items)
    with pytest.raises(UserError, match="first: 'w2'"):
        list_ids(study, study.items)


def test_the_same_session_unfolds_to_the_same_plan_and_another_to_another_order(make_study):
    study = make_study()
    one, again = (plan_session(study, study.items, list_id=1, session_key="s1") for _ in range(2))
    assert one == again
    orders = {
        tuple(
            t["item_id"] for t in trials_of(plan_session(study, study.items, list_id=1, session_key=f"s{i}"))
        )
        for i in range(12)
    }
    assert len(orders) > 3


def values_of(thing: object) -> list[object]:
    if isinstance(thing, dict):
        return [value for part in thing.values() for value in values_of(part)]
    if isinstance(thing, list):
        return [value for part in thing for value in values_of(part)]
    return [thing]


def test_nothing_in_a_participant_s_plan_tells_the_answer_of_a_test_item(make_study):
    items = [
        Item(**{**item.__dict__, "item_id": item.answer}) for item in small_items() if item.role == "test"
    ]
    study = make_study(items=[*items, small_items()[-1]])
    plan = plan_session(study, study.items, list_id=1, session_key="s")
    full = trials_of(plan)
    for seen, trial in zip(trials_of(participant_view(plan)), full, strict=True):
        if trial["is_practice"]:
            assert seen["answer"] == trial["answer"]
            continue
        assert not {"answer", "intact", "condition", "set", "item_id", "choice_order"} & set(seen)
        step = seen["steps"][-1]
        assert "responses" not in step
        outside = {**seen, "steps": [{k: v for k, v in step.items() if k not in ("labels", "text", "lines")}]}
        assert trial["answer"] not in values_of(outside)
    assert "answer" in full[1], "the stored plan keeps the key"


def test_more_choices_than_keys_are_refused(make_study):
    study = make_study(("keys: [f, j]", "keys: [f, j, k]"))
    with pytest.raises(UserError, match=r"\b2\b.*\b3\b"):
        plan_session(study, study.items, list_id=1)


def test_a_field_that_items_lack_is_refused(make_study):
    study = make_study(("show: word", "show: sentence"))
    with pytest.raises(UserError, match="'sentence'"):
        plan_session(study, study.items, list_id=1)


def test_random_choice_order_differs_between_sessions_and_keeps_the_key(make_study):
    study = make_study(("answer_by: text", "answer_by: letter, choice_order: random"))
    firsts = set()
    for i in range(10):
        trial = trials_of(plan_session(study, study.items, list_id=1, session_key=str(i)))[1]
        step = trial["steps"][-1]
        assert step["labels"] == ["A", "B"]
        assert step["options"] == step["responses"]
        assert trial["answer"] in step["responses"]
        firsts.add((trial["item_id"], step["options"][0]))
    assert len(firsts) > len({item_id for item_id, _ in firsts})


def test_solved_trials_and_the_trial_itself_have_one_form(make_study):
    exemplars = [
        Item(
            **{
                **make_item(f"e{i}", "intact", f"solved {i}", "A", "B", role="exemplar").__dict__,
                "answer": "AB"[i],
                "set_name": "words",
            }
        )
        for i in range(2)
    ]
    study = make_study(
        CLASSES, items=[*class_items(), *exemplars, make_item("p0", "intact", "x", "A", "B", role="practice")]
    )
    plan = plan_session(study, study.items, list_id=1)
    trial = trials_of(plan)[1]
    content = render(plan, trial).messages[0].content
    assert "Scrambled word: solved 0\nAnswer: A\n" in content
    assert "Scrambled word: solved 1\nAnswer: B\n" in content
    assert content.endswith(f"Scrambled word: {trial['steps'][-1]['text']}\nAnswer:")
    assert content.index("Which word is it?") < content.index("solved 0")


def test_swapped_labels_are_swapped_in_solved_trials_too(make_study):
    exemplar = Item(
        **{**make_item("e0", "intact", "solved 0", "A", "B", role="exemplar").__dict__, "set_name": "words"}
    )
    exemplar = Item(**{**exemplar.__dict__, "answer": "A", "condition": {}})
    study = make_study(
        CLASSES, items=[*class_items(), exemplar, make_item("p0", "intact", "x", "A", "B", role="practice")]
    )
    content = (
        render(plan := plan_session(study, study.items, list_id=3), trials_of(plan)[1]).messages[0].content
    )
    assert "solved 0\nAnswer: B\n" in content


WORDS = """\
wrods: 1
study: words
title: Words
seed: 3
materials: {words: words.csv}
design: {factors: {letters: {intact: none, scrambled: KFL, substituted: Sub, nothing: withhold}}}
procedure:
  - block:
      trial:
        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}
"""


def sentences(folder: Path) -> Study:
    copy_template("letter-position", folder)
    file = folder / "study.yaml"
    text = file.read_text("utf-8")
    begin, end = text.index("    position:"), text.index("  lists: latin_square")
    levels = "    position: {intact: none, internal: {transpose: internal}, final: Sub, initial: withhold}\n"
    file.write_text(text[:begin] + levels + text[end:], "utf-8")
    return load_study(folder)


def test_a_question_is_asked_without_its_sentence(tmp_path):
    study = sentences(tmp_path / "s")
    items = make_items(study).items
    withheld = [one for one in items if one.condition["position"] == "initial" and one.role == "test"]
    assert len(withheld) == 24
    assert all(one.shown["sentence"] == "" and one.shown["question"] and not one.changes for one in withheld)
    assert {one.provenance["operation"] for one in withheld} == {"withheld"}
    plan = plan_session(study, items, list_id=1)
    for trial in trials_of(plan):
        steps = [step["step"] for step in trial["steps"]]
        is_withheld = trial["condition"]["position"] == "initial"
        assert steps == (["choose"] if is_withheld else ["read", "choose"])
        prompt = render(plan, trial)
        assert bool(prompt.regions) != is_withheld
        assert trial["steps"][-1]["text"] in prompt.messages[0].content
    assert '"intact"' not in json.dumps(participant_view(plan))


def test_a_withheld_text_cannot_be_asked_back(tmp_path):
    text = WORDS.replace(
        "choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}",
        "recover: {show: word}",
    )
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    (tmp_path / "words.csv").write_text("word\ngarden\n", "utf-8")
    with pytest.raises(UserError, match=r"design\.factors"):
        load_study(tmp_path)
