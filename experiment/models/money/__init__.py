"""What calls to a provider cost: prices, the most that a request may cost, and budgets that hold across runs."""

from experiment.models.money.prices import FREE, Price, price_of
from experiment.models.money.purse import Purse, Spending, spending

__all__ = ["FREE", "Price", "Purse", "Spending", "price_of", "spending"]
