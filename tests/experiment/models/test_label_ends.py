"""Labels of which one begins another: what is compared excludes each other, so that the longer one can win."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.api.first_token import first_token_scores
from experiment.models.api.labels import Token, tokens_of_end
from experiment.models.label_ends import begins_another, disjoint_logprobs

PATHS = {"agree": (1,), "agree strongly": (1, 2), "agree strongly now": (1, 2, 3), "agreeable": (4,)}


def test_the_longer_label_wins_where_more_than_half_of_the_shorter_goes_on_to_it() -> None:
    told = {"agree": math.log(0.5), "agree strongly": math.log(0.3)}
    found = disjoint_logprobs(told, PATHS)
    assert found == pytest.approx({"agree": math.log(0.2), "agree strongly": math.log(0.3)})
    assert max(found, key=lambda label: found[label]) == "agree strongly"


def test_labels_whose_tokens_differ_stay_as_they_are() -> None:
    told = {"agree": -1.0, "agreeable": -1.5}
    assert disjoint_logprobs(told, PATHS) == told


@given(st.lists(st.floats(0.01, 0.99), min_size=4, max_size=4))
def test_what_labels_share_is_counted_once(steps: list[float]) -> None:
    first, second, third, other = steps
    shares = {
        "agree": first,
        "agree strongly": first * second,
        "agree strongly now": first * second * third,
        "agreeable": (1 - first) * other,
    }
    found = disjoint_logprobs({label: math.log(share) for label, share in shares.items()}, PATHS)
    total = sum(math.exp(value) for value in found.values())
    assert total == pytest.approx(first + shares["agreeable"], rel=1e-6)


def test_rounding_leaves_a_label_a_finite_number() -> None:
    found = disjoint_logprobs({"agree": -1.0, "agree strongly": -0.9999999}, PATHS)
    assert math.isfinite(found["agree"]) and found["agree"] < -20


def test_a_first_token_that_begins_two_labels_names_neither() -> None:
    token = Token("agree", math.log(0.9), (("agree", math.log(0.9)), ("no", math.log(0.05))))
    scores = first_token_scores([token], "agree strongly", ("agree", "agree strongly", "no"))
    assert scores is not None and scores.best is None
    assert set(scores.logprobs) == {"no"} and set(scores.bounds) == {"agree", "agree strongly"}
    assert begins_another("agree", ("agree", "agree strongly"))
    assert not begins_another("agree strongly", ("agree", "agree strongly"))


def test_the_tokens_of_an_ending_are_those_that_hold_it() -> None:
    tokens = [Token(text, -1.0) for text in ("Well", "?", " agree", " strong", "ly")]
    assert tokens_of_end(tokens, " agree strongly") == (" agree", " strong", "ly")
    assert tokens_of_end(tokens[:3], " agree") == (" agree",)
