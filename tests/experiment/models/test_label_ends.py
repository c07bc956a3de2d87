"""Labels of which one begins another: what is compared excludes each other, so that the longer one can win."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.label_ends import disjoint_logprobs

PATHS = {"agree": (1,), "agree strongly": (1, 2), "agree strongly now": (1, 2, 3), "agreeable": (4,)}


@given(st.lists(st.floats(0.01, 0.99), min_size=4, max_size=4))
def test_what_labels_share_is_counted_once(steps):
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
