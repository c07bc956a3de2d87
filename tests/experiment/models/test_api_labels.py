"""Probabilities of labels: what is told is kept, what is not told is bounded and never made up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.api.labels import (
    Token,
    completion_tokens,
    content_tokens,
    first_token_scores,
    prompt_tokens,
    score_of_end,
    score_regions,
)


def told(**shares: float) -> list[Token]:
    alternatives = tuple((text, math.log(share)) for text, share in shares.items())
    return [Token(alternatives[0][0], alternatives[0][1], alternatives)]


def test_a_label_that_is_not_among_the_told_has_a_bound_and_no_probability() -> None:
    scores = first_token_scores(told(A=0.7, B=0.2), "A", ("A", "B", "C"))
    assert scores.logprobs == pytest.approx({"A": math.log(0.7), "B": math.log(0.2)})
    assert scores.bounds == pytest.approx({"C": math.log(0.1)})
    assert scores.best == "A"


def test_a_label_of_several_tokens_is_bounded_by_how_it_may_begin() -> None:
    scores = first_token_scores(told(un=0.5, yes=0.3), "unsure", ("yes", "unsure"))
    assert scores.bounds == pytest.approx({"unsure": math.log(0.7)})
    assert scores.best is None, "unsure may be more probable than yes"


def test_nothing_is_said_where_no_alternatives_were_told() -> None:
    assert first_token_scores([], "A", ("A",)) is None
    assert first_token_scores([Token("A", -0.1)], "A", ("A",)) is None


def test_the_first_token_is_that_of_the_answer_and_not_of_the_thought() -> None:
    thought = [
        Token("<think>", 0.0, (("<think>", 0.0),)),
        Token("B", 0.0, (("B", 0.0),)),
        Token("</think>", 0.0),
    ]
    answer = told(A=0.9, B=0.1)
    assert first_token_scores([*thought, *answer], "A", ("A", "B")).best == "A"
    blank = [Token("\n\n", 0.0, (("\n\n", 0.0),))]
    assert first_token_scores([*blank, *answer], "A", ("A", "B")).best == "A"


@given(
    st.dictionaries(
        st.sampled_from(["A", " A", "B", "b", "The", "AB", " "]), st.floats(0.001, 0.14), min_size=1
    ),
    st.sets(st.sampled_from(["A", "B", "AB", "ABC"]), min_size=1),
)
def test_every_label_has_a_probability_or_a_bound_and_probabilities_never_exceed_one(shares, labels) -> None:
    alternatives = tuple((text, math.log(share)) for text, share in shares.items())
    scores = first_token_scores([Token(alternatives[0][0], 0.0, alternatives)], None, sorted(labels))
    assert set(scores.logprobs) | set(scores.bounds) == labels
    assert not set(scores.logprobs) & set(scores.bounds)
    assert all(value <= 0 for value in (*scores.logprobs.values(), *scores.bounds.values()))
    untold = 1 - sum(shares.values())
    for label, bound in scores.bounds.items():
        assert math.exp(bound) >= untold - 1e-9, label


@pytest.mark.parametrize(
    "value", [None, 3, "x", [None], [{"token": 3}], [{"logprob": "x", "token": "A"}], {}]
)
def test_no_logprobs_make_reading_fail(value) -> None:
    content_tokens(value)
    completion_tokens({"logprobs": value})
    completion_tokens({"logprobs": {"tokens": value, "token_logprobs": value}})
    prompt_tokens({"prompt_logprobs": value})
    prompt_tokens({"choices": [{"prompt_logprobs": value}]})


def test_the_end_of_a_prompt_is_scored_only_when_it_is_there_and_wholly_told() -> None:
    tokens = [Token("Which", None), Token(" one", -1.0), Token(" is", -2.0), Token(" it", -0.5)]
    assert score_of_end(tokens, " is it") == -2.5
    assert score_of_end(tokens, "Which one is it") is None
    assert score_of_end(tokens, " was it") is None


def test_regions_in_a_message_that_the_prompt_does_not_show_are_not_scored() -> None:
    tokens = [Token("Hello", None), Token(" there", -1.0)]
    assert score_regions(tokens, ("Goodbye",), ((0, 0, 3),)) == ()
    (first, second) = score_regions(tokens, ("Hello there",), ((0, 0, 5), (0, 6, 11)))
    assert (first.surprisal, second.surprisal) == (None, 1.0)


def test_a_region_is_found_in_its_own_message_when_another_says_the_same() -> None:
    tokens = [Token("<s>", None), Token("cat", -1.0), Token("\n", -0.1), Token("cat", -3.0)]
    (score,) = score_regions(tokens, ("cat", "cat"), ((1, 0, 3),))
    assert (score.surprisal, score.tokens) == (3.1, 2), "a token of blanks belongs to what follows"
