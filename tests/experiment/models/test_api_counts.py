"""Token counts mean the same whatever a provider calls them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.api.responses import Usage, read_usage

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
def test_every_form_is_read_as_the_same_counts(form) -> None:
    usage = read_usage({"usage": FORMS[form]})
    assert usage == Usage(prompt=100, cached=60, completion=50, reasoning=30)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "prompt_tokens",
                "completion_tokens",
                "total_tokens",
                "reasoning_tokens",
                "prompt_tokens_details",
            ]
        ),
        st.one_of(
            st.none(), st.integers(), st.text(), st.booleans(), st.dictionaries(st.text(), st.integers())
        ),
    )
)
def test_no_usage_makes_reading_fail(usage) -> None:
    read_usage({"usage": usage})
