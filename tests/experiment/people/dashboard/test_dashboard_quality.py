"""Flags and their evidence: computed from rows, blind to conditions, never acting by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.people.quality import chance_of_run, flagged, longest_run, measures, said
from experiment.simulated.reader import typed
from experiment.simulated.truth import Typing

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
        ("too_fast", {"rt": 120.0}, "5 of 40 answers under 200 ms"),
        ("hidden", {"hidden_ms": 2000}, "10.0 s hidden, in 5 of 40 trials"),
        ("dropped_frames", {"dropped_frames": 2}, "5 of 40 trials, 10 frames"),
        ("pastes", {"paste_count": 1}, "5 pastes or drops tried, in 5 of 40"),
        ("keyless", {"keyless_chars": 30}, "150 characters without a key stroke"),
        ("attention_checks_failed", {"is_attention_check": True, "correct": None}, "5 of 5 checks missed"),
    ],
)
def test_each_sign_is_told_with_its_numbers(kind, changed, told):
    rows = [row(index, **(changed if index % 8 == 0 else {})) for index in range(40)]
    found = kinds(rows)
    assert list(found) == [kind]
    assert told in found[kind]


def test_the_same_key_is_noticed_although_labels_differ_from_trial_to_trial():
    found = kinds([row(index, response_raw=f"yes{index}") for index in range(40)])
    assert found == {"same_key": "longest run 40 of 40 answers (by chance p < .001); 40 of them with “f”"}
    assert [said("same_key", value) for value in (1 - 1e-9, 0.999, 0.009)] == [
        "p < .001",
        "p = .001",
        "p = .991",
    ]


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
    for reader in range(200):
        log = typed(LETTERS, given_ms, seed=1, name=f"S{reader}", draw=Random(reader))
        assert kinds([row(0, key_log=[list(one) for one in log])]) == {}


def test_practice_counts_for_nothing():
    bad = {"rt": 50.0, "paste_count": 9, "hidden_ms": 60_000, "is_practice": True}
    assert kinds([row(index, **bad) for index in range(10)]) == {}


def test_a_study_may_state_other_bounds():
    rows = [row(index, rt=150.0 if index < 10 else 700.0) for index in range(40)]
    assert "too_fast" in kinds(rows)
    assert "too_fast" not in kinds(rows, too_fast=0.25)
    assert "too_fast" in kinds(rows, too_fast=0.24)


def test_neither_condition_nor_correctness_of_a_test_trial_matters():
    rows = [row(index, rt=100.0) for index in range(30)]
    changed = [one | {"correct": False, "condition": {"position": "x"}} for one in rows]
    assert measures(rows, PLANNED) == measures(changed, PLANNED)


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
