"""What calls to a provider cost: prices, the most that a request may cost, estimates, and budgets that hold across runs."""

from experiment.models.money.amounts import dollars, written
from experiment.models.money.estimate import Estimate, estimate
from experiment.models.money.prices import FREE, Price, price_of
from experiment.models.money.purse import Allowance, Purse, Spending, spending
from experiment.models.money.till import Till

__all__ = [
    "FREE",
    "Allowance",
    "Estimate",
    "Price",
    "Purse",
    "Spending",
    "Till",
    "dollars",
    "estimate",
    "price_of",
    "spending",
    "written",
]
