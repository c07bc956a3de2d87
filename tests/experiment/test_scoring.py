from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.parsing.replies import ResponseStatus, parse_label, parse_recovered
from experiment.scoring.trial import score_trial


def choice(
    answer: str = "A", labels: tuple[str, ...] = ("A", "B"), responses: tuple[str, ...] | None = None
) -> dict[str, Any]:
    step = {"step": "choose", "labels": list(labels), "responses": list(responses or labels), "text": "x"}
    return {"answer": answer, "steps": [step]}


def typed(answer: str, *, multiline: bool = False) -> dict[str, Any]:
    return {"answer": answer, "steps": [{"step": "recover", "text": "x", "multiline": multiline}]}


@pytest.mark.parametrize(
    "reply",
    [
        "A",
        " A",
        "A.",
        "(A)",
        "**A**",
        '"A"',
        "a",
        "A) uppercase",
        "Answer: A",
        "The answer is A.",
        "Label: A",
        "A\nbecause",
    ],
)
def test_clear_letter_replies_are_read(reply):
    assert parse_label(reply, ["A", "B"]).value == "A"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("I cannot tell", "refused"),
        ("Sorry, I can't help", "refused"),
        ("Unclear", "unparsed"),
        ("A good question", "unparsed"),
        ("Neither", "unparsed"),
        ("A or B", "unparsed"),
        ("Answer: A. No, answer: B.", "unparsed"),
        ("", "empty"),
        ("  \n", "empty"),
    ],
)
def test_replies_that_give_no_label_are_never_read_as_one(reply, status):
    parsed = parse_label(reply, ["A", "B"])
    assert (parsed.value, parsed.status) == (None, status)


@given(st.text(), st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=5, unique=True))
def test_parsers_never_raise_and_stay_in_the_vocabulary(reply, labels):
    parsed = parse_label(reply, labels)
    assert parsed.status in get_args(ResponseStatus)
    assert (parsed.value is not None) == (parsed.status == "valid")
    assert parsed.value is None or parsed.value in labels
    assert parse_recovered(reply).status in get_args(ResponseStatus)


def test_a_swapped_label_is_scored_as_the_class_that_it_stands_for():
    score = score_trial(choice("A", ("A", "B"), ("B", "A")), "B")
    assert (score.response, score.correct, score.score) == ("A", True, 1.0)


def test_a_truncated_choice_with_a_label_is_valid_and_without_one_is_truncated():
    assert score_trial(choice(), "A", reply_status="truncated").correct is True
    assert (
        score_trial(choice(), "Let me think about", reply_status="truncated").response_status == "truncated"
    )


@pytest.mark.parametrize(
    ("given_text", "correct"),
    [
        ("The dog barks.", True),
        ("the dog barks", True),
        (" The  dog barks! ", True),
        ("The dgo barks.", False),
        ("The dog", False),
    ],
)
def test_recovery_ignores_case_spacing_and_punctuation(given_text, correct):
    assert score_trial(typed("The dog barks."), given_text).correct is correct


def test_recovery_score_counts_a_transposition_as_one_edit():
    assert score_trial(typed("garden"), "gadren").score == pytest.approx(1 - 1 / 6)
    assert score_trial(typed("garden"), "garden").score == 1.0
