"""Pays the calls that find out what a server can give, from the same money and the same tokens as a run's trials."""

from __future__ import annotations

from experiment.models.api.counts import Usage
from experiment.models.money.prices import Price
from experiment.models.money.purse import Allowance, Purse


class Till:
    """Pays one call after the other."""

    def __init__(self, price: Price, purse: Purse, tokens: Allowance | None = None) -> None:
        self.price, self.purse, self.tokens = price, purse, tokens
        self.spent = 0.0
        self.why: str | None = None
        self._most = 0.0
        self._count = 0

    def take(self, read: int, written: int) -> bool:
        """Set aside what a call can cost that reads and writes so many tokens at most; ``why`` says why there is no money."""
        most = self.price.most_of(read, written)
        if not self.purse.take(most):
            self.why = self.purse.why
            return False
        if self.tokens is not None and not self.tokens.take(read + written):
            self.purse.untake(most)
            self.why = "the tokens of this command (--max-tokens) are used"
            return False
        self._most, self._count = most, read + written
        return True

    def settle(self, usage: Usage) -> None:
        """Note what the call did cost; what its server did not count costs the most it can have cost."""
        cost, used = self._most, self._count
        if usage.prompt is not None and usage.completion is not None:
            cost, used = self.price.of_usage(usage), usage.prompt + usage.completion
        if self.tokens is not None:
            self.tokens.give_back(self._count, used)
        self.spent += cost
        self.purse.spend(self._most, cost)

    def refused(self) -> None:
        """Know that the server refused the call, and bills nothing."""
        self.settle(Usage(prompt=0, completion=0))

    def lose(self) -> None:
        """Know that nobody will say what the call did cost: the most it can have cost stays counted."""
        self.purse.lose(self._most)
        if self.tokens is not None:
            self.tokens.give_back(self._count, self._count)
