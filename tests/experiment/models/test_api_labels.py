"""Log-probabilities that servers tell: what is told is kept, and what is not is never made up."""

from __future__ import annotations

import pytest

from experiment.models.api.labels import (
    ScoredToken,
    completion_tokens,
    content_tokens,
    prompt_tokens,
    score_of_end,
    score_regions,
)


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
    tokens = [
        ScoredToken("Which", None),
        ScoredToken(" one", -1.0),
        ScoredToken(" is", -2.0),
        ScoredToken(" it", -0.5),
    ]
    assert score_of_end(tokens, " is it") == -2.5
    assert score_of_end(tokens, "Which one is it") is None
    assert score_of_end(tokens, " was it") is None


def test_regions_in_a_message_that_the_prompt_does_not_show_are_not_scored() -> None:
    tokens = [ScoredToken("Hello", None), ScoredToken(" there", -1.0)]
    assert score_regions(tokens, ("Goodbye",), ((0, 0, 3),)) == ()
    (first, second) = score_regions(tokens, ("Hello there",), ((0, 0, 5), (0, 6, 11)))
    assert (first.surprisal, second.surprisal) == (None, 1.0)


def test_a_region_is_found_in_its_own_message_when_another_says_the_same() -> None:
    tokens = [
        ScoredToken("<s>", None),
        ScoredToken("cat", -1.0),
        ScoredToken("\n", -0.1),
        ScoredToken("cat", -3.0),
    ]
    (score,) = score_regions(tokens, ("cat", "cat"), ((1, 0, 3),))
    assert (score.surprisal, score.tokens) == (3.1, 2), "a token of blanks belongs to what follows"
