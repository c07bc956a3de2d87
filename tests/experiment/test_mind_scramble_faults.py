"""The price of each fault in Mind Scramble's scorers: what the released rule says, and the same rule without one fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from experiment.papers.mind_scramble import verdicts
from experiment.papers.mind_scramble.verdicts import CORRECTED, RELEASED, SCORERS, fault_rows, values_of

DIGITS = "digits are run together: 3.5 is 35, −5 is 5, 5 of 6 is 56"
EMPTY = "an empty answer is right"
LONGER = "an answer that holds the right one is right"
PART = "a part of the right answer is right"
LEFT_OUT = "replies without the field are left out"


def worth(kind: str, reply: str, *accepted: str, mended: float | None = None) -> dict[str, float | None]:
    return dict(values_of(kind, reply, accepted[0], accepted, mended))


@pytest.mark.parametrize(
    ("answer", "gold", "released", "without"),
    [
        ("3.5", "35", 1, 0),
        ("-5", "5", 1, 0),
        ("18.00", "18", 0, 1),
        ("$18", "18", 1, 1),
        ("17", "18", 0, 0),
        ("none", "18", 0, 0),
    ],
)
def test_numbers_by_their_digits(answer, gold, released, without):
    found = worth("gsm8k", f">process: so\n>answer_number: {answer}", gold)
    assert (found[RELEASED], found[DIGITS]) == (released, without)


@pytest.mark.parametrize(
    ("answer", "released", "without"), [("yes", 1, 1), ("'yes'", 1, 1), ("Yes.", 0, 1), ("no", 0, 0)]
)
def test_yes_in_small_letters_only(answer, released, without):
    found = worth("boolq", f">reason: so\n>answer: {answer}", "yes")
    (fault,) = SCORERS["boolq"].without
    assert (found[RELEASED], found[fault]) == (released, without)


@pytest.mark.parametrize(
    ("answer", "wrong_without"),
    [("", EMPTY), ("in the city of Paris or Rome", LONGER), ("Par", PART), ("Paris", None)],
)
@pytest.mark.parametrize("kind", ["squad", "csqa"])
def test_one_text_within_the_other(kind, answer, wrong_without):
    found = worth(kind, f">reason: so\n>answer: {answer}", "Paris")
    assert found[RELEASED] == 1
    for fault in (EMPTY, LONGER, PART):
        assert found[fault] == (fault != wrong_without)


def test_a_reply_without_the_field_is_left_out_as_released_and_counts_once_mended():
    found = worth("rectify", "I cannot do that.", "the old captain")
    assert (found[RELEASED], found[LEFT_OUT]) == (None, 0.0)


@pytest.mark.parametrize("kind", sorted(SCORERS))
@pytest.mark.parametrize(
    "reply", ["", ">answer:", "answer", ">fixed: ", ">answer_number: ∞", "\x00>answer: {}"]
)
def test_no_rule_raises(kind, reply):
    for value in worth(kind, reply, "gold").values():
        assert value is None or 0 <= value <= 1


@pytest.mark.parametrize(("published", "rules"), [(["items", "prompts"], {RELEASED, CORRECTED}), ([], set())])
def test_only_replies_to_the_papers_prompts_are_priced(monkeypatch, published, rules):
    """Who was not asked for the field that the released rule reads is not wrong for want of it."""
    trial = {"trial_index": 1, "steps": [{}], "answer": "Yes", "accepted": []}
    reply: Any = SimpleNamespace(
        reader_kind="model",
        plan={"published": published},
        trial=trial,
        raw="Yes",
        session_id="s",
        attempt=1,
        counts=None,
    )
    monkeypatch.setattr(verdicts, "responses", lambda study, connection: iter([reply]))
    monkeypatch.setattr(verdicts, "data_set_of", lambda trial: "boolq")
    nothing: Any = None
    monkeypatch.setattr(verdicts, "_corrected", lambda response, kind: 1.0)
    assert rules <= {row["rule"] for row in fault_rows(nothing, nothing)}
    assert bool(rules) == bool(list(fault_rows(nothing, nothing)))
