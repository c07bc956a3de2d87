"""Edit distance, recovery rate and recovered words of answers whose counts are known."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measures.recovery import (
    edit_distance,
    recovered_words,
    recovery,
    recovery_rate,
    recovery_trials,
    same_place,
    with_one_typo,
    words_of,
)
from stimuli.errors import UserError
from tests.analysis.measured import trials_of

INTACT = "The judge slept in court today."
SHOWN = "The jugde slpet in cuort today."


def counts(answer: str | None, intact: str = INTACT, shown: str = SHOWN) -> tuple[int, int, int, int, int]:
    found = recovered_words(intact, shown, answer)
    return found.changed, found.recovered, found.with_one_typo, found.unchanged, found.kept


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (INTACT, (3, 3, 3, 3, 3)),
        ("the JUDGE slept in court, today", (3, 3, 3, 3, 3)),  # case and punctuation do not count
        (SHOWN, (3, 0, 0, 3, 3)),  # an echo is one exchange away and recovers nothing
        ("The judgge slept in cuort today", (3, 1, 2, 3, 3)),  # one letter too many; one echo
        ("The jdge slept in courtt tday", (3, 1, 3, 3, 2)),  # typing errors in changed and unchanged words
        ("The judge in court today.", (3, 2, 2, 3, 3)),  # a word left out does not shift the rest
        ("I think it says: the judge slept in court today", (3, 3, 3, 3, 3)),
        ("The magistrate slept in court today.", (3, 2, 2, 3, 3)),
        ("court slept judge", (3, 1, 1, 3, 0)),  # out of order
        ("", (3, 0, 0, 3, 0)),
        (None, (3, 0, 0, 3, 0)),
    ],
)
def test_words_recovered_of_words_changed(answer: str | None, expected: tuple[int, ...]) -> None:
    assert counts(answer) == expected


def test_words_moved_count_where_they_stand_in_another_place() -> None:
    assert counts("we read old books", "we read old books", "old we read books")[:2] == (3, 3)
    assert counts("old we read books", "we read old books", "old we read books")[1] < 3


def test_a_word_that_the_shown_text_lost_is_changed() -> None:
    assert counts("we read old books", "we read old books", "we read books") == (1, 1, 1, 3, 3)


def test_a_capital_alone_is_no_change() -> None:
    assert counts("ann reads", "Ann reads", "aNn reads") == (0, 0, 0, 2, 2)


def test_words_are_those_that_are_scrambled() -> None:
    assert words_of("The re-do don\u2019t caf\u0065\u0301!") == ("the", "re", "do", "don't", "caf\u00e9")


def test_words_between_equal_ones_are_matched_by_their_letters() -> None:
    intact, answer = words_of("a blue house by the lake"), words_of("a huose by the big lkae")
    assert same_place(intact, answer) == [0, None, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("given_word", "is_it"),
    [("judge", True), ("judgee", True), ("jdge", True), ("juxge", True), ("jugde", False), ("jugd", False)],
)
def test_a_typo_must_lead_nearer_to_the_intact_word(given_word: str, is_it: bool) -> None:
    assert with_one_typo(given_word, "judge", "jugde") is is_it


@given(st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "abc"]), max_size=9), st.data())
def test_counts_never_pass_what_they_count(words: list[str], data: st.DataObject) -> None:
    shown = [word[::-1] if data.draw(st.booleans()) else word for word in words]
    answer = data.draw(st.lists(st.sampled_from(["ab", "dc", "ef", "x", "abc"]), max_size=9))
    changed, recovered, tolerant, unchanged, kept = counts(" ".join(answer), " ".join(words), " ".join(shown))
    assert 0 <= recovered <= tolerant <= changed
    assert 0 <= kept <= unchanged
    assert changed + unchanged == len(words)
    whole = counts(" ".join(words), " ".join(words), " ".join(shown))
    assert whole[1] == whole[0]
    assert whole[4] == whole[3]


def test_the_recovery_rate_is_one_minus_what_is_left() -> None:
    # GPT-4, few-shot, RS-20 in the released outputs: 11,043 characters before, 606 after
    assert recovery_rate(11_043, 606) == pytest.approx(94.51, abs=0.005)
    assert recovery_rate(11_043, 606, "printed") == pytest.approx(-94.51, abs=0.005)
    assert recovery_rate(100, 150) == -50
    assert recovery_rate(0, 3) != recovery_rate(0, 3)
    with pytest.raises(UserError, match="corrected"):
        recovery_rate(10, 5, "correct")


def test_the_edit_distance_counts_characters() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("jugde", "judge") == 2
    assert edit_distance(" The End ", "the end") == 2


def recovery_study() -> tuple[pd.DataFrame, pd.DataFrame]:
    other, shown = "Old books smell of dust.", "Odl bokos smell of dsut."
    texts = {"a": (INTACT, SHOWN), "b": (other, shown)}
    items = pd.DataFrame(
        {
            "set": "words",
            "item_id": list(texts),
            "cond": "kf",
            "shown": [json.dumps({"sentence": seen}) for _, seen in texts.values()],
            "intact": [json.dumps({"sentence": text}) for text, _ in texts.values()],
        }
    )
    base: dict[str, Any] = {"trial_type": "recover", "cond": "kf"}
    trials = trials_of(
        [
            {**base, "item_id": "a", "answer": INTACT, "response": "The judge slept in cuort today."},
            {**base, "item_id": "b", "answer": other, "response": other},
            {
                **base,
                "item_id": "b",
                "answer": other,
                "response": None,
                "response_status": "refused",
                "reader_group": "r",
            },
            {**base, "item_id": "b", "answer": other, "response": other, "excluded_reason": "practice"},
            {"item_id": "a", "cond": "kf", "answer": "yes", "response": "yes"},
        ]
    )
    return trials, items


def test_each_restored_text_has_its_counts_for_a_binomial_model() -> None:
    measured = recovery_trials(*recovery_study(), ["cond"], rows_at_once=2)
    first, second, third = measured.to_dict("records")
    assert (first["ed_shown"], first["ed_given"]) == (6, 2)
    assert (first["changed"], first["recovered"], first["not_recovered"]) == (3, 2, 1)
    assert (second["changed"], second["recovered"], second["ed_given"]) == (3, 3, 0)
    assert (third["recovered"], third["ed_given"]) == (0, len("Old books smell of dust."))


def test_sums_by_cell_are_those_of_their_trials() -> None:
    table = recovery(recovery_trials(*recovery_study(), ["cond"]), ["cond"], resamples=200)
    row = table[table["reader_group"] == "m"].to_dict("records")[0]
    assert (row["changed"], row["recovered"]) == (6, 5)
    assert row["ed_shown"] == 6
    assert row["ed"] == 1
    assert row["rr"] == pytest.approx(100 * (12 - 2) / 12)
    assert row["rr_low"] <= row["rr"] <= row["rr_high"]
    printed = recovery(recovery_trials(*recovery_study(), ["cond"]), ["cond"], sign="printed", resamples=0)
    assert printed["rr"].iloc[0] == pytest.approx(-row["rr"])


def test_a_text_that_no_item_shows_is_named() -> None:
    trials, items = recovery_study()
    with pytest.raises(UserError, match="shows item 'b'"):
        recovery_trials(trials, items[:1], ["cond"])
    with pytest.raises(UserError, match="no column 'shown'"):
        recovery_trials(trials, items.drop(columns="shown"), ["cond"])
