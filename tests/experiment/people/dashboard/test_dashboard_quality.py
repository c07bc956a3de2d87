"""Flags and their evidence: computed from rows, blind to conditions, never acting by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from experiment.people.quality import (
    UNREADABLE,
    chance_of_run,
    flagged,
    longest_run,
    measures,
    said,
    signs,
    trials_to_measure,
)
from experiment.simulated.reader import typed
from experiment.simulated.truth import Typing
from experiment.store import records
from experiment.store.records import create_session, store_call
from experiment.store.tables import trials
from tests.experiment.people.conftest import Visitor, page_of, words_of

PLANNED = {
    index: {"steps": [{"step": "choose", "labels": [f"yes{index}", f"no{index}"], "keys": ["f", "j"]}]}
    for index in range(60)
}


def row(index: int, **changed: Any) -> dict[str, Any]:
    return {
        "trial_index": index, "is_practice": False, "is_attention_check": False, "rt": 700.0 + index,
        "response_raw": f"{('yes', 'no')[(index * 7 // 3) % 2]}{index}", "hidden_ms": 0, "dropped_frames": 0,
        "paste_count": 0, "keyless_chars": 0, "key_log": None, "correct": True,
    } | changed  # fmt: skip


def kinds(rows: list[dict[str, Any]], **bounds: float) -> dict[str, str]:
    return {one.kind: one.evidence for one in flagged(measures(rows, PLANNED, bounds))}


@pytest.mark.parametrize(
    ("kind", "changed", "told"),
    [
        ("too_fast", {"rt": 120.0}, "5 of 40 "),
        ("hidden", {"hidden_ms": 2000}, "10.0 s "),
        ("dropped_frames", {"dropped_frames": 2}, " 10 frames"),
        ("pastes", {"paste_count": 1}, " 5 of 40"),
        ("keyless", {"keyless_chars": 30}, "150 "),
        ("attention_checks_failed", {"is_attention_check": True, "correct": None}, "5 of 5 "),
    ],
)
def test_each_sign_is_told_with_its_numbers(kind, changed, told):
    rows = [row(index, **(changed if index % 8 == 0 else {})) for index in range(40)]
    found = kinds(rows)
    assert list(found) == [kind]
    assert told in found[kind]


def test_the_same_key_is_noticed_although_labels_differ_from_trial_to_trial():
    found = kinds([row(index, response_raw=f"yes{index}") for index in range(40)])
    assert list(found) == ["same_key"] and re.search(r"40 of 40 .*p < \.001.*“f”", found["same_key"])
    told = [said("same_key", value) for value in (1 - 1e-9, 0.999, 0.009)]
    assert told == ["p < .001", "p = .001", "p = .991"]


LETTERS = "the quick brown fox jumps over my lazy dog again"


def log_of(between: Iterable[float]) -> list[list[Any]]:
    """Return a key log with these times between keys, ms."""
    moments = accumulate(between, initial=400.0)
    return [[moment, LETTERS[place % len(LETTERS)]] for place, moment in enumerate(moments)]


@pytest.mark.parametrize(
    ("between", "found", "told"),
    [
        (
            [80.0 + place % 2 for place in range(60)],
            ["regular_typing"],
            "variation 0.01 over 60 times between keys",
        ),
        # a constant pace with pauses between words, which a coefficient of variation does not notice
        ([60.0 if place % 6 else 900.0 for place in range(60)], ["regular_typing"], "median 60 ms"),
        ([5.0 + 1.4 * (place % 3 - 1) for place in range(60)], ["fast_typing"], "median 5 ms between keys"),
        ([0.0] * 60, ["regular_typing", "fast_typing"], "median 0 ms"),
    ],
)
def test_typing_of_a_machine_is_noticed(between, found, told):
    seen = kinds([row(0, key_log=log_of(between))])
    assert list(seen) == found
    assert any(told in evidence for evidence in seen.values())


@pytest.mark.parametrize("words_a_minute", [20, 52, 120])
def test_nobody_who_types_like_a_person_is_flagged(words_a_minute):
    """From slow typists over the mean to the fastest of the 168,000 of Dhakal et al. (2018)."""
    given_ms = Typing(key_ms=12_000 / words_a_minute, participant_sd=0.0, word_pause_ms=0.0)
    for reader in range(60):
        log = typed(LETTERS, given_ms, seed=1, name=f"S{reader}", draw=Random(reader))
        assert kinds([row(0, key_log=[list(one) for one in log])]) == {}


def test_bounds_are_the_study_s_and_practice_condition_and_correctness_count_for_nothing():
    rows = [row(index, rt=150.0 if index < 10 else 700.0) for index in range(40)]
    given = ({}, {"too_fast": 0.25}, {"too_fast": 0.24})
    assert ["too_fast" in kinds(rows, **bounds) for bounds in given] == [True, False, True]
    changed = [one | {"correct": False, "condition": {"position": "x"}} for one in rows]
    assert measures(rows, PLANNED) == measures(changed, PLANNED)
    bad = {"rt": 50.0, "paste_count": 9, "hidden_ms": 60_000}
    for apart in ({"is_practice": True}, {"step_name": "confidence"}):
        assert kinds([row(index, **bad, **apart) for index in range(10)]) == {}


@given(st.lists(st.sampled_from("fj"), min_size=1, max_size=10))
def test_the_longest_run_is_that_of_a_plain_search(keys):
    text = "".join(keys)
    assert longest_run(keys) == max(n for n in range(1, len(keys) + 1) if "f" * n in text or "j" * n in text)


@pytest.mark.parametrize(
    ("longest", "answers", "keys"), [(3, 8, 2), (4, 10, 2), (2, 6, 3), (5, 5, 2), (1, 4, 2)]
)
def test_the_chance_of_a_run_is_that_of_counting_every_sequence(longest, answers, keys):
    from itertools import product

    every = list(product(range(keys), repeat=answers))
    counted = sum(longest_run(one) >= longest for one in every) / len(every)
    assert chance_of_run(longest, answers, keys) == pytest.approx(counted)


QUICK = {"rt": 90.0, "response_ts": 10324.1, "handler_ts": 10325.0}


def rows_of(visitor: Visitor) -> dict[str, dict[str, Any]]:
    (study,) = visitor.get("/admin/data.json").json["studies"]
    return {row["reader"]: row for row in study["sessions"]}


def test_the_live_page_tells_who_is_on_which_trial_of_which_block(site, visit):
    person = site.begin(participant="17")
    for index in range(3):
        person.answer(index)
    row = rows_of(visit("ben"))["17"]
    expected = {
        "trials": 3,
        "planned": 5,
        "block": "block-1",
        "list": person.plan["list_id"],
        "state": "running",
    }
    assert {name: row[name] for name in expected} == expected


def test_nothing_is_sent_again_while_nothing_changes(site, visit):
    person = site.begin()
    visitor = visit("ben")
    first = visitor.get("/admin/data.json")
    again = visitor.get("/admin/data.json", If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["X-Wrods-Now"]
    person.answer(0)
    changed = visitor.get("/admin/data.json", If_None_Match=first.headers["ETag"])
    assert changed.status_code == 200


def test_signs_stand_beside_the_session_and_on_a_page_with_their_numbers(site, visit):
    quick, calm = site.begin(), site.begin()
    quick.answer_all(**QUICK)
    calm.answer_all()
    visitor = visit("ben")
    rows = rows_of(visitor)
    assert rows["P001"]["signs"] == ["Too fast"] and rows["P002"]["signs"] == []
    page = visitor.get("/admin/small/flags").text
    assert " .001" in page
    assert signs()["question_accuracy"]["label"] not in page, "the study declares no rule on them"
    assert re.search(r"4 of 4 .*200 ms.* 90 ms", page)
    assert "P001" in page and "P002" not in page


def test_a_session_that_cannot_be_measured_says_so_and_hides_no_other(site, visit):
    odd, quick = site.begin(), site.begin()
    odd.answer_all()
    quick.answer_all(**QUICK)
    log = update(trials).where(trials.c.session_id == odd.session_id)  # as earlier versions stored it
    site.do(lambda connection: connection.execute(log.values(key_log=[{"a": [1]}, {"a": [1]}])).close())
    visitor = visit("ben")
    rows = rows_of(visitor)
    assert rows["P001"]["signs"] == [UNREADABLE] and rows["P002"]["signs"] == ["Too fast"]
    for page in ("flags", f"sessions/{rows['P001']['key']}"):
        told = visitor.get(f"/admin/small/{page}")
        assert told.status_code == 200 and "KeyError" in told.text


def test_what_a_session_is_measured_by_is_the_same_rows_as_those_of_the_table(site):
    person = site.begin()
    person.answer_all()
    with site.store.read() as connection:
        few = trials_to_measure(connection, person.session_id)
        all_columns = list(records.trials_of_session(connection, person.session_id))
    planned = {trial["trial_index"]: trial for trial in person.trials()}
    assert measures(few, planned) == measures(all_columns, planned)
    assert not {"condition", "item_id", "shown"} & set(few[0])


def test_models_and_what_they_cost_stand_beside_people(site, visit):
    person = site.begin()

    def model(connection: Any) -> None:
        plan = records.session(connection, person.session_id)["plan"]  # type: ignore[index]
        create_session(connection, plan, session_id="m" * 32, reader_kind="model", reader="restorer")
        for cost in (0.25, 0.5):
            store_call(
                connection,
                {"request_key": str(cost), "status": "answered", "session_id": "m" * 32, "cost_usd": cost,
                 "prompt_tokens": 100, "completion_tokens": 5},
            )  # fmt: skip

    site.do(model)
    (study,) = visit("ben").get("/admin/data.json").json["studies"]
    used = {"sessions": 1, "calls": 2, "prompt_tokens": 200, "completion_tokens": 10, "cost_usd": 0.75}
    assert study["models"] == [{"reader": "restorer"} | used]
    assert study["kinds"]["model"] == {"running": 1, "all": 1} and "human" in study["kinds"]


def test_no_page_tells_condition_correctness_or_token(site, visit):
    person, visitor = site.begin(), visit("ben")
    person.answer_all()
    for path in ("/admin/", "/admin/data.json", "/admin/small/flags", page_of(person)):
        told = visitor.get(path)
        assert told.status_code == 200
        for secret in ("initial", "intact", "garden", "etacher", person.token, person.session_id, "position"):
            assert secret not in words_of(told.text), (path, secret)
