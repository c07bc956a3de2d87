"""Orders under constraints: kept in every session, found if there is one, refused with the rules that exclude each other."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.orders import OrderedTrial, OrderRules, find_order, why_impossible
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError


def keeps(order: Sequence[OrderedTrial], rules: OrderRules) -> bool:
    """Check an order from scratch."""
    for name, most in rules.at_most_in_a_row.items():
        runs = itertools.groupby(order, key=lambda trial: trial.values[name])
        if any(value is not None and len(list(run)) > most for value, run in runs):
            return False
    for name, least in rules.at_least_apart.items():
        values = [trial.values[name] for trial in order]
        for index, value in enumerate(values):
            if value is not None and value in values[index + 1 : index + 1 + least]:
                return False
    tests = [index for index, trial in enumerate(order) if trial.condition is not None]
    if tests and tests[0] < rules.fillers_first:
        return False
    if any(later - earlier <= rules.fillers_between for earlier, later in itertools.pairwise(tests)):
        return False
    conditions = [str(order[index].condition) for index in tests]
    if rules.is_balanced and len(set(conditions)) > 1:
        follows = Counter(pair for pair in itertools.pairwise(conditions) if pair[0] != pair[1])
        counts = [follows[pair] for pair in itertools.permutations(sorted(set(conditions)), 2)]
        return max(counts) - min(counts) <= 1
    return True


CELLS = st.sampled_from([("a", "x"), ("a", None), ("b", "x"), ("b", "y"), (None, "y"), (None, None)])
RULES = st.builds(
    OrderRules,
    at_most_in_a_row=st.dictionaries(st.sampled_from(["condition", "topic"]), st.integers(1, 2)),
    at_least_apart=st.dictionaries(st.just("topic"), st.integers(1, 2)),
    fillers_between=st.integers(0, 1),
    fillers_first=st.integers(0, 1),
    is_balanced=st.booleans(),
)


@given(cells=st.lists(CELLS, min_size=1, max_size=6), rules=RULES, seed=st.integers(0, 99))
def test_an_order_is_found_exactly_if_there_is_one(cells, rules, seed):
    trials = [OrderedTrial({"condition": condition, "topic": topic}, condition) for condition, topic in cells]
    found = find_order(trials, rules, Random(seed))
    if found is None:
        assert not any(keeps(order, rules) for order in itertools.permutations(trials))
        assert why_impossible(trials, rules) is not None
    else:
        assert sorted(found) == list(range(len(trials)))
        assert keeps([trials[index] for index in found], rules)
        assert why_impossible(trials, rules) is None


def trials(conditions: Sequence[str], each: int, fillers: int = 0) -> list[OrderedTrial]:
    made = [
        OrderedTrial({"condition": condition, "topic": f"t{number}", "answer": "yn"[number % 2]}, condition)
        for number in range(each)
        for condition in conditions
    ]
    return made + [OrderedTrial({"condition": None, "topic": None, "answer": "y"}, None)] * fillers


@pytest.mark.parametrize(
    ("found_in", "rules"),
    [
        (trials("abcdef", 6), OrderRules({"condition": 1}, {"topic": 5})),
        (trials("abcdef", 12), OrderRules({"answer": 2}, {"topic": 3}, is_balanced=True)),
        (trials("ab", 12, 26), OrderRules({"condition": 2}, fillers_between=1, fillers_first=3)),
        (trials("ab", 20), OrderRules({"condition": 1})),
    ],
)
def test_tight_orders_are_found_and_differ_between_sessions(found_in, rules):
    orders = [find_order(found_in, rules, Random(seed)) for seed in range(10)]
    assert all(order is not None and keeps([found_in[index] for index in order], rules) for order in orders)
    assert len({tuple(order or ()) for order in orders}) > 1
    reordered = Random(1).sample(found_in, len(found_in))
    again = find_order(reordered, rules, Random(0))
    assert [reordered[place].condition for place in again or ()] == [
        found_in[place].condition for place in orders[0] or ()
    ]


@pytest.mark.parametrize(
    ("given_trials", "rules", "place", "named"),
    [
        (trials("ab", 12, 25), OrderRules({}, {}, 1, 3), "fillers_between", ["fillers_first"]),
        (trials("ab", 12, 20), OrderRules({}, {}, 1), "fillers_between", ["24", "23", "20", "3"]),
        (trials("a", 30) + trials("b", 10), OrderRules({"condition": 2}), "at_most_in_a_row.condition", ["30 of 40", "22", "'a'"]),
        (trials("a", 6), OrderRules({"condition": 6}, {"answer": 2}), "at_least_apart.answer", ["3 of 6", "'y'"]),
        (trials("ab", 10) + trials("c", 2), OrderRules({"condition": 1}, {}, 0, 0, True), "at_most_in_a_row.condition", ["transit"]),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_named_with_its_counts(given_trials, rules, place, named):
    why = why_impossible(given_trials, rules)
    assert why is not None and why[0] == place
    assert [name for name in named if name not in str(why[1])] == []


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(order: str, more: str = "") -> Study:
        rows = "".join(
            f"s{number},The *gardener* number{number} left,{'Yes' if number % 3 else 'No'},{'' if number < 2 else f't{number % 4}'},\n"
            for number in range(12)
        )
        fillers = "".join(
            f"f{number},A filler,{'Yes' if number % 2 else 'No'},,filler\n" for number in range(14)
        )
        (tmp_path / "sentences.csv").write_text(f"item,sentence,answer,topic,role\n{rows}{fillers}", "utf-8")
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: orders\ntitle: Orders\nseed: 5\n"
            "materials: {sentences: sentences.csv, scramble: {words: starred}}\n"
            "design:\n  factors: {spelling: {intact: none, inner: {transpose: internal}}}\n"
            f"procedure:\n  - block:\n      order: {order}\n{more}"
            '      trial:\n        - choose: {show: sentence, keys: {"Yes": j, "No": f}}\n',
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def test_every_session_of_a_study_keeps_its_constraints_in_an_order_of_its_own(make):
    study = make(
        "{at_most_in_a_row: {condition: 2, answer: 4}, at_least_apart: {topic: 2}, fillers_between: 1, fillers_first: 2}"
    )
    built = build_study(study)
    rules = OrderRules.of(study.get("procedure", 0, "block", "order"))
    topics = {item.item_id: item.key["columns"]["topic"] for item in built.items}
    assert topics["s0"] is None and topics["s2"] == "t2"
    orders = set()
    for list_id, key in itertools.product((1, 2), ("one", "two", None)):
        shown = trials_of(plan_session(study, built.items, list_id=list_id, session_key=key))
        seen = [
            OrderedTrial(
                {
                    "condition": trial["condition"].get("spelling"),
                    "answer": trial["answer"],
                    "topic": topics[trial["item_id"]],
                },
                trial["condition"].get("spelling"),
            )
            for trial in shown
        ]
        assert keeps(seen, rules)
        orders.add(tuple(trial["item_id"] for trial in shown))
    assert len(orders) == 6


def test_with_blocked_conditions_constraints_hold_within_each_run(make):
    study = make("{at_most_in_a_row: {answer: 3}}", "      conditions: blocked\n")
    built = build_study(study)
    shown = trials_of(plan_session(study, built.items, list_id=1, session_key="one"))
    runs = [
        list(run) for _, run in itertools.groupby(shown, key=lambda trial: trial["condition"].get("spelling"))
    ]
    assert len(runs) == 3
    for run in runs[:2] if runs[0][0]["condition"] else runs[1:]:
        answers = [len(list(same)) for _, same in itertools.groupby(run, key=lambda trial: trial["answer"])]
        assert max(answers) <= 3


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ("{at_most_in_a_row: {spellling: 2}}", ["line 10", "'spellling'", "spelling"]),
        ("{at_most_in_a_row: {spelling: 0}}", ["line 10", "spelling"]),
        ("{fillers_between: 2}", ["list 1", "22", "14", "8"]),
        ("{at_least_apart: {answer: 3}}", ["list 1", "answer"]),
        ("{in_a_row: {spelling: 2}}", ["in_a_row", "at_most_in_a_row"]),
        ("blocked", ["'blocked'", "by_set"]),
    ],
)
def test_faulty_constraints_are_refused_before_anyone_takes_part(make, order, named):
    with pytest.raises(UserError) as error:
        make_items(make(order))
    assert [name for name in named if name not in str(error.value).replace('"blocked"', "'blocked'")] == []


def test_a_session_whose_short_searches_fail_has_the_order_with_which_its_list_was_tested(make, monkeypatch):
    study = make("{at_most_in_a_row: {condition: 2}, fillers_between: 1}")
    built = build_study(study)
    monkeypatch.setattr("experiment.orders.RESTARTS", 0)
    shown = trials_of(plan_session(study, built.items, list_id=1, session_key="one"))
    tests = [place for place, trial in enumerate(shown) if not trial["is_filler"]]
    assert len(tests) == 12 and all(later - earlier > 1 for earlier, later in itertools.pairwise(tests))


def test_fillers_that_two_constraints_need_are_counted_together():
    rules = OrderRules.of({"fillers_between": 1, "fillers_first": 2})
    trials = [OrderedTrial({}, "a")] * 4 + [OrderedTrial({}, None)] * 4
    name, reason = why_impossible(trials, rules)
    assert name in ("fillers_between", "fillers_first")
    assert "5 fillers" in reason.message and "1 filler." in str(reason.mend)
    assert why_impossible([*trials, OrderedTrial({}, None)], rules) is None
