"""How well groups of items agree on a covariate: mean, SD, range, and the standardised mean difference.

Groups of items are whole populations of materials, not samples, so differences are described by their size and never
by a p-value. Sums are exact (``math.fsum``), so that the numbers do not depend on the order of the items.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SMD_LIMIT = 0.10
"""Largest absolute standardised mean difference that counts as matched (Austin, 2009, Statistics in Medicine 28:3083)."""

_DIGITS = 6


@dataclass(frozen=True)
class Spread:
    """How one covariate is spread in one group: number of values, mean, sample SD, least and greatest value.

    Where values weigh less than 1, the number is the rounded sum of their weights.
    """

    covariate: str
    group: str
    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class Contrast:
    """Standardised mean difference of one covariate between two groups; None where no spread makes it countable."""

    covariate: str
    one: str
    other: str
    smd: float | None

    def exceeds(self, limit: float = SMD_LIMIT) -> bool:
        """Tell whether the groups differ by more than a limit; a difference without any spread always does."""
        return self.smd is None or abs(self.smd) > limit


@dataclass(frozen=True)
class Balance:
    """Spread of every covariate in every group, and the contrast of every pair of groups."""

    spreads: tuple[Spread, ...]
    contrasts: tuple[Contrast, ...]

    def largest(self, covariate: str) -> Contrast | None:
        """Return the contrast of a covariate that is farthest from zero, or None for a single group."""
        own = [contrast for contrast in self.contrasts if contrast.covariate == covariate]
        return max(own, key=lambda one: math.inf if one.smd is None else abs(one.smd), default=None)

    def covariates(self) -> tuple[str, ...]:
        """Return the covariates in the order of the table."""
        return tuple(dict.fromkeys(spread.covariate for spread in self.spreads))


def balance(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    weights: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    overall: bool = False,
) -> Balance:
    """Describe covariates by group."""
    spreads: list[Spread] = []
    contrasts: list[Contrast] = []
    for covariate, groups in values.items():
        present = {
            group: _Values(own, None if weights is None else weights[covariate][group])
            for group, own in groups.items()
            if own
        }
        spreads += [_spread(covariate, group, own) for group, own in present.items()]
        least = (
            _Values([value for own in present.values() for value in own.values]).variance if overall else 0.0
        )
        contrasts += [
            Contrast(covariate, one, other, _difference(present[one], present[other], least))
            for one, other in itertools.combinations(present, 2)
        ]
    return Balance(tuple(spreads), tuple(contrasts))


def standardised_difference(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the standardised mean difference of two groups.

    The difference of the means over the root of the mean of both sample variances (Cohen, 1988, p. 44). Equal means
    give 0 whatever the spread; unequal means without any spread give None.
    """
    return _difference(_Values(one), _Values(other))


class _Values:
    """Values of one group with their weights, the sum of the weights, mean and sample variance."""

    def __init__(self, values: Sequence[float], weights: Sequence[float] | None = None) -> None:
        self.values = values
        if weights is None:
            self.number: float = len(values)
            self.mean = math.fsum(values) / self.number if values else 0.0
            squares = math.fsum((value - self.mean) ** 2 for value in values)
        else:
            self.number = math.fsum(weights)
            self.mean = math.fsum(map(operator.mul, values, weights)) / self.number
            squares = math.fsum(
                weight * (value - self.mean) ** 2 for value, weight in zip(values, weights, strict=True)
            )
        self.variance = squares / (self.number - 1) if self.number > 1 and len(values) > 1 else 0.0


def _difference(one: _Values, other: _Values, least: float = 0.0) -> float | None:
    mean_one, mean_other = one.mean, other.mean
    difference = mean_one - mean_other
    # A mean of equal decimals may miss them by the last bit.
    if abs(difference) <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return 0.0
    spread = math.sqrt(max((one.variance + other.variance) / 2, least))
    if spread <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return None
    return round(difference / spread, _DIGITS)


def _spread(covariate: str, group: str, own: _Values) -> Spread:
    return Spread(
        covariate,
        group,
        max(round(own.number), 1),
        round(own.mean, _DIGITS),
        round(math.sqrt(own.variance), _DIGITS),
        min(own.values),
        max(own.values),
    )
