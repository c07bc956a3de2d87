"""Log-probabilities and token counts that servers tell: what is told is kept, and what is not is never made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.api.labels import (
    ScoredToken,
    completion_tokens,
    content_tokens,
    prompt_tokens,
    score_of_end,
    score_regions,
)
from experiment.models.api.responses import Usage, read_usage


@pytest.mark.parametrize(
    "value", [None, 3, "x", [None], [{"token": 3}], [{"logprob": "x", "token": "A"}], {}]
)
def test_no_logprobs_make_reading_fail(value):
    content_tokens(value)
    completion_tokens({"logprobs": value})
    completion_tokens({"logprobs": {"tokens": value, "token_logprobs": value}})
    prompt_tokens({"prompt_logprobs": value})
    prompt_tokens({"choices": [{"prompt_logprobs": value}]})


def test_the_end_of_a_prompt_is_scored_only_when_it_is_there_and_wholly_told():
    tokens = [
        ScoredToken("Which", None),
        ScoredToken(" one", -1.0),
        ScoredToken(" is", -2.0),
        ScoredToken(" it", -0.5),
    ]
    assert score_of_end(tokens, " is it") == -2.5
    assert score_of_end(tokens, "Which one is it") is None
    assert score_of_end(tokens, " was it") is None


def test_regions_in_a_message_that_the_prompt_does_not_show_are_not_scored():
    tokens = [ScoredToken("Hello", None), ScoredToken(" there", -1.0)]
    assert score_regions(tokens, ("Goodbye",), ((0, 0, 3),)) == ()
    (first, second) = score_regions(tokens, ("Hello there",), ((0, 0, 5), (0, 6, 11)))
    assert (first.surprisal, second.surprisal) == (None, 1.0)


def test_a_region_is_found_in_its_own_message_when_another_says_the_same():
    tokens = [
        ScoredToken("<s>", None),
        ScoredToken("cat", -1.0),
        ScoredToken("\n", -0.1),
        ScoredToken("cat", -3.0),
    ]
    (score,) = score_regions(tokens, ("cat", "cat"), ((1, 0, 3),))
    assert (score.surprisal, score.tokens) == (3.1, 2), "a token of blanks belongs to what follows"


FORMS = {
    "openai chat": {
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 30},
    },
    "openai responses": {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 150,
    },
    "cache beside, hit and miss": {
        "prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40, "completion_tokens": 50,
        "completion_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 150,
    },
    "cached input outside the input": {
        "input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30},
    },
    "thoughts outside the output": {
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150, "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 30},
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_the_same_counts(form):
    usage = read_usage({"usage": FORMS[form]})
    assert usage == Usage(prompt=100, cached=60, completion=50, reasoning=30)


COUNTS = ["prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens", "prompt_tokens_details"]


@given(
    st.dictionaries(
        st.sampled_from(COUNTS),
        st.none() | st.integers() | st.text() | st.booleans() | st.dictionaries(st.text(), st.integers()),
    )
)
def test_no_usage_makes_reading_fail(usage):
    read_usage({"usage": usage})
