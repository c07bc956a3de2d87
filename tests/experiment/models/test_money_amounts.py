"""Amounts of money are read as they were meant, and written without powers of ten."""

from __future__ import annotations

import pytest

from experiment.models.money.amounts import dollars, written
from stimuli.errors import UserError


@pytest.mark.parametrize(
    ("given", "amount"),
    [("40 USD", 40.0), ("$0.50", 0.5), ("0,5 USD", 0.5), ("1000 USD", 1000.0), ("1.000 USD", 1.0)],
)
def test_amounts_are_read(given: str, amount: float) -> None:
    assert dollars(given, "--max-cost") == amount


@pytest.mark.parametrize("given", ["1,000 USD", "$12,500"])
def test_a_comma_that_may_part_thousands_is_refused_with_both_readings(given: str) -> None:
    with pytest.raises(UserError, match=r"which may be (1000 or 1\.000|12500 or 12\.500)"):
        dollars(given, "--max-cost")


@pytest.mark.parametrize(
    ("amount", "text"),
    [(8.4e-05, "0.000084 USD"), (0.0179, "0.0179 USD"), (0.0, "0.00 USD"), (1234.5, "1,234.50 USD")],
)
def test_small_amounts_are_written_in_full(amount: float, text: str) -> None:
    assert written(amount) == text
