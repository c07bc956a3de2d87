"""The screens around the trials, several blocks, checks, balanced orders and levels between sessions."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from experiment.building import make_items
from experiment.checking import load_study
from experiment.cli import main
from experiment.lists import balanced_order, balanced_rows, list_ids
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.procedure.questions import eligibility_questions, is_eligible
from experiment.procedure.steps import break_lines, cells
from experiment.scoring.trial import score_trial
from experiment.session_minutes import session_duration, shortest_seconds
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import build_meta, write_items

DEBRIEF = "  - debrief: debrief.md\n"
CHOOSE = (
    "choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}"
)
SECOND = f"  - block:\n      trial:\n        - {CHOOSE}\n"


def plan_of(study: Study, **more: Any) -> dict[str, Any]:
    return plan_session(study, study.items, **{"list_id": 1, "session_key": "s", **more})


def kinds(plan: dict[str, Any]) -> list[str]:
    return [screen["kind"] for screen in plan["screens"]]


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(" \n"), max_size=200),
    st.integers(1, 40),
)
def test_breaking_lines_loses_nothing_and_keeps_to_the_length(text, length):
    lines = break_lines(text, length)
    assert " ".join(lines).split() == text.split()
    assert "".join(lines).replace(" ", "") == text.replace("\n", "").replace(" ", "")
    assert all(cells(line) <= length or " " not in line.strip() for line in lines)


@given(st.integers(2, 12))
def test_each_set_stands_at_each_place_and_follows_each_other_equally_often(n):
    rows = [balanced_order(range(n), row) for row in range(balanced_rows(n))]
    assert all(sorted(row) == list(range(n)) for row in rows)
    places = Counter((place, one) for row in rows for place, one in enumerate(row))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(places) == n * n and len(set(places.values())) == 1
    assert len(follows) == n * (n - 1) and len(set(follows.values())) == 1


def test_blocks_share_the_items_of_a_list_evenly_over_conditions(make_study):
    study = make_study((DEBRIEF, f"  - break: {{minimum: 30 s}}\n{SECOND}{DEBRIEF}"))
    plan = plan_of(study)
    assert kinds(plan)[-4:] == ["block", "break", "block", "debrief"]
    first, second = (screen["trials"] for screen in plan["screens"] if screen["kind"] == "block")
    assert {t["item_id"] for t in first} | {t["item_id"] for t in second} == {"w0", "w1", "w2", "w3"}
    for trials in (first, second):
        assert Counter(t["condition"]["position"] for t in trials) == {"intact": 1, "initial": 1}
    assert [t["trial_index"] for t in trials_of(plan)] == list(range(5))
    assert {t["block"] for t in second} == {"block-2"}


def test_blocked_conditions_come_one_after_the_other_in_a_balanced_order(make_study):
    study = make_study(("break_every: 2", "conditions: blocked"))
    orders = []
    for row in (0, 1):
        shown = [t["condition"]["position"] for t in trials_of(plan_of(study, order_row=row))[1:]]
        assert shown in (
            ["intact", "intact", "initial", "initial"],
            ["initial", "initial", "intact", "intact"],
        )
        orders.append(shown[0])
    assert len(set(orders)) == 2


def test_checks_say_what_to_answer_and_are_scored_by_it(make_study):
    study = make_study(
        ("break_every: 2", "attention_checks: 2"), ("keys: [f, j], answer_by: text", "keys: [f, j]")
    )
    seen = set()
    for key in "abcdef":
        trials = [t for t in trials_of(plan_of(study, session_key=key)) if not t["is_practice"]]
        checks = [t for t in trials if t["is_attention_check"]]
        assert len(checks) == 2 and len(trials) == 6
        assert not trials[0]["is_attention_check"]
        places = [i for i, t in enumerate(trials) if t["is_attention_check"]]
        assert places[1] > places[0] + 1
        for check in checks:
            (step,) = check["steps"]
            assert f"“{check['answer']}”" in step["text"]
            assert score_trial(check, check["answer"]).correct
            wrong = next(label for label in step["labels"] if label != check["answer"])
            assert score_trial(check, wrong).correct is False
            seen.add(check["answer"])
    assert seen == {"A", "B"}


ELIGIBLE = (
    "seed: 7\n",
    "seed: 7\nparticipants:\n  eligible: {first_language: de, age: [18, 65], device: computer, screen: 1024x640}\n",
)


def test_eligibility_comes_after_consent_and_its_right_answers_stay_on_the_server(make_study):
    study = make_study(ELIGIBLE)
    plan = plan_of(study)
    assert kinds(plan)[:4] == ["consent", "device", "questions", "instructions"]
    assert plan["screens"][1] == {
        "kind": "device", "device": "computer", "browsers": None, "width": 1024, "height": 640, "refresh_hz": None
    }  # fmt: skip
    assert [q["name"] for q in plan["screens"][2]["questions"]] == ["first_language", "age"]
    for question in participant_view(plan)["screens"][2]["questions"]:
        assert "accept" not in question


@pytest.mark.parametrize(
    ("answers", "missed"),
    [
        ({"first_language": "de", "age": 18}, []),
        ({"first_language": "de", "age": "65"}, []),
        ({"first_language": "other", "age": 30}, ["first_language"]),
        ({"first_language": "de", "age": 66}, ["age"]),
        ({"first_language": "de", "age": "old"}, ["age"]),
        ({}, ["first_language", "age"]),
    ],
)
def test_answers_let_in_or_not(make_study, answers, missed):
    assert is_eligible(eligibility_questions(make_study(ELIGIBLE)), answers) == (not missed, missed)


def test_questions_of_one_s_own_come_in_the_form_of_a_plan(make_study):
    own = (
        "  - questions:\n"
        "      reading: {ask: How often do you read?, type: scale, from: 1, to: 7, low: never, high: daily}\n"
        "      glasses: {ask: Do you wear glasses?, type: yes_no, optional: true}\n"
        "      words: {ask: Which are words?, type: vocabulary, words: 6, nonwords: 4}\n"
    )
    screen = plan_of(make_study((DEBRIEF, own + DEBRIEF)))["screens"][-2]
    assert (screen["kind"], screen["name"], screen["screening"]) == ("questions", "questions-1", False)
    reading, glasses, words = screen["questions"]
    assert (reading["from"], reading["to"], reading["low"]) == (1, 7, "never")
    assert glasses["optional"] and [o["value"] for o in glasses["options"]] == ["yes", "no"]
    assert len(words["options"]) == 10


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("a: {ask: x, type: choice}", "`options:`"),
        ("a: {ask: x, type: scale, from: 7, to: 1}", " 7 to 1"),
        ("a: {ask: x, type: number, accept: 3}", "`accept`"),
    ],
)
def test_a_question_that_cannot_be_asked_is_named(make_study, question, says):
    with pytest.raises(UserError, match=r"study\.yaml, line") as error:
        make_study((DEBRIEF, f"  - questions:\n      {question}\n{DEBRIEF}"))
    assert says in str(error.value)


HTEST = """\
wrods: 1
study: rules
title: Rules
seed: 3
materials: {htest: {rules: [uppercase, starts_with_vowel, palindrome], exemplars: 4, items: 4}}
design:
  lists: one
  between: {k: {none: {exemplars: 0}, two: {exemplars: 2}, four: {exemplars: 4}}}
procedure:
  - practice: {rule: repeated_word, number: 4}
  - block:
      order: by_set
      trial:
        - choose: {show: text, keys: {A: f, B: j}, labels: balanced}
      state_rule: {ask: What tells A from B?, time_limit: 3 min, hint: Look at the letters.}
"""


@pytest.fixture(scope="module")
def rules_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    from stimuli.htest.rules import rules

    folder = tmp_path_factory.mktemp("rules")
    first, second, third, other = list(rules())[:4]
    text = HTEST.replace("[uppercase, starts_with_vowel, palindrome]", f"[{first}, {second}, {third}]")
    (folder / "study.yaml").write_text(text.replace("repeated_word", other), "utf-8")
    study = load_study(folder)
    write_items(folder / "items.jsonl", make_items(study).items, build_meta(3))
    return study


def test_levels_between_sessions_are_crossed_with_label_maps(rules_study):
    lists = list_ids(rules_study, rules_study.items)
    assert lists == [1, 2, 3, 4, 5, 6]
    assert list_ids(rules_study, rules_study.items, label_maps="fixed") == [1, 3, 5]
    shown = {}
    for list_id in lists:
        plan = plan_of(rules_study, list_id=list_id)
        trials = [t for t in trials_of(plan) if t["trial_type"] == "choose" and not t["is_practice"]]
        assert len({t["condition"]["k"] for t in trials}) == 1
        shown[list_id] = (
            trials[0]["condition"]["k"], len(trials[0]["exemplars"]), plan["label_map"]["A"]
        )  # fmt: skip
    assert list(shown.values()) == [
        ("none", 0, "A"), ("none", 0, "B"), ("two", 2, "A"), ("two", 2, "B"), ("four", 4, "A"), ("four", 4, "B")
    ]  # fmt: skip


def test_the_rule_is_asked_for_after_each_task_and_judged_by_nobody_here(rules_study):
    trials = [t for t in trials_of(plan_of(rules_study)) if not t["is_practice"]]
    asked = [i for i, t in enumerate(trials) if t["trial_type"] == "answer"]
    assert asked == [4, 9, 14]
    for place in asked:
        statement = trials[place]
        (step,) = statement["steps"]
        assert (step["time_limit_ms"], step["hint"], step["text"]) == (180_000, "Look at the letters.", None)
        assert statement["item_id"] == f"{trials[place - 1]['set']} rule"
        assert statement["is_filler"] and statement["answer"] is None
        assert score_trial(statement, "Words that name animals.").correct is None


def test_tasks_come_in_a_balanced_order_over_sessions(rules_study):
    orders = []
    for row in range(6):
        trials = [t for t in trials_of(plan_of(rules_study, order_row=row)) if not t["is_practice"]]
        orders.append(tuple(dict.fromkeys(t["set"] for t in trials)))
    assert len(set(orders)) == 6


def step(**given: Any) -> dict[str, Any]:
    return {"step": "choose", "text": None, "minimum_ms": 0, "time_limit_ms": None, **given}


def trial(*steps: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"set": "s", "exemplars": [], "fixation_ms": 0, "interval_ms": 0, "steps": list(steps), **given}


def block(*trials: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {
        "kind": "block",
        "feedback": None,
        "break_every": None,
        "break_minimum_ms": 0,
        "trials": list(trials),
        **given,
    }


def test_the_shortest_session_is_what_no_page_lets_anybody_skip():
    pages = {
        "kind": "instructions",
        "pages": [{"text": "many words " * 99, "minimum_ms": 5000}, {"text": "few"}],
    }
    prime = step(step="prime", mask_ms=500, prime_ms=50, backward_ms=50, frames=None)
    primed = trial(prime, step(), trial_index=0, fixation_ms=400, interval_ms=300)
    read = trial(step(step="read", minimum_ms=2000), step(minimum_ms=1000), trial_index=1)
    screens = [pages, {"kind": "break", "text": None, "minimum_ms": 3000}, block(primed, read)]
    plan = {"screens": screens}
    assert shortest_seconds(plan, ()) == pytest.approx(8)
    assert shortest_seconds(plan, {0}) == pytest.approx(8 + 0.7 + 0.6 + 0.2)
    assert shortest_seconds(plan, {0, 1}) == pytest.approx(9.5 + 3)


def test_a_statement_counts_a_minute_and_what_its_limit_allows_is_told_apart():
    told = session_duration(
        {"screens": [block(trial(step(step="answer", multiline=True, time_limit_ms=180_000)))]}
    )
    assert (told.minutes, told.limits_allow) == (pytest.approx(1), pytest.approx(2))
    short = session_duration(
        {"screens": [block(trial(step(step="answer", multiline=True, time_limit_ms=20_000)))]}
    )
    assert (short.minutes, short.limits_allow) == (pytest.approx(1 / 3), pytest.approx(0))


@pytest.mark.full
def test_check_tells_the_minutes_of_each_level_between_sessions_and_what_limits_allow(tmp_path):
    runner = CliRunner()
    runner.invoke(main, ["new", str(tmp_path / "s"), "--from", "htest-people"])
    numbers = json.loads(runner.invoke(main, ["check", str(tmp_path / "s"), "--json"]).output)
    few, many = (numbers["minutes_by_levels"][level] for level in ("few", "many"))
    assert numbers["minutes"] == many > few > 20, "ten statements and 120 lines do not fit twenty minutes"
    assert numbers["minutes_that_limits_allow"] == 20
