"""Amounts as people write them, and estimates that cover what a run then costs."""

from __future__ import annotations

import random

import pytest

from experiment.models.money import dollars, estimate
from experiment.models.money.purse import Allowance
from stimuli.errors import UserError


@pytest.mark.parametrize(
    ("given", "amount"),
    [("40 USD", 40), ("$40", 40), ("0.50 usd", 0.5), ("USD 12,5", 12.5)],
)
def test_amounts_are_read_as_people_write_them(given, amount) -> None:
    assert dollars(given, "--max-cost") == amount


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
def test_an_amount_that_is_none_is_refused_with_its_place(given, said) -> None:
    with pytest.raises(UserError, match=said) as error:
        dollars(given, "--max-cost")
    assert "--max-cost" in str(error.value)


def test_the_interval_covers_what_the_rest_costs_as_often_as_it_says() -> None:
    draw = random.Random(7)
    covered = 0
    for _ in range(400):
        kinds = {"short": (0.001, 0.0002, 300), "long": (0.004, 0.001, 500)}
        costs = {name: [draw.gauss(mean, sd) for _ in range(10)] for name, (mean, sd, _) in kinds.items()}
        true = sum(draw.gauss(mean, sd) for mean, sd, n in kinds.values() for _ in range(n))
        found = estimate(costs, {name: n for name, (_, _, n) in kinds.items()})
        assert found is not None
        covered += found.low <= true <= found.high
    assert 0.91 <= covered / 400 <= 0.99


def test_one_trial_tells_no_spread_and_none_tells_nothing() -> None:
    found = estimate({"a": [2.0]}, {"a": 10})
    assert found is not None and (found.low, found.high) == (0.0, float("inf"))
    assert found.describe()["high"] is None
    assert estimate({}, {"a": 10}) is None


def test_an_allowance_is_shared_and_gives_back_what_was_not_used() -> None:
    allowance = Allowance(10)
    assert allowance.take(6) and not allowance.take(6)
    allowance.give_back(6, 1)
    assert allowance.take(9) and allowance.left == pytest.approx(0)
