"""Amounts as people write them, and limits of a command."""

from __future__ import annotations

import pytest

from experiment.models.costs.budget import CommandLimit
from experiment.models.costs.prices import format_usd, parse_usd
from stimuli.errors import UserError


@pytest.mark.parametrize(
    ("given", "amount"), [("40 USD", 40), ("$40", 40), ("0.50 usd", 0.5), ("USD 12,5", 12.5)]
)
def test_amounts_are_read_as_people_write_them(given, amount):
    assert parse_usd(given, "--max-cost") == amount


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("40 EUR", "US dollars"),
        ("€5", "US dollars"),
        ("cheap", "no amount"),
        ("0 USD", "above zero"),
        ("-3 USD", "no amount"),
        (True, "no amount"),
        ("5", "without a currency"),
        (5, "without a currency"),
    ],
)
def test_an_amount_that_is_none_is_refused_with_its_place(given, said):
    with pytest.raises(UserError, match=said) as error:
        parse_usd(given, "--max-cost")
    assert "--max-cost" in str(error.value)


def test_small_amounts_keep_three_digits():
    assert (format_usd(12.3), format_usd(0.00123), format_usd(0)) == ("12.30 USD", "0.00123 USD", "0.00 USD")


def test_a_limit_is_shared_and_gives_back_what_was_not_used():
    limit = CommandLimit(10)
    assert limit.take(6) and not limit.take(6)
    limit.settle(6, 1)
    assert limit.take(9) and limit.left == pytest.approx(9)
