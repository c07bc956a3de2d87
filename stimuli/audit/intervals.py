"""Simultaneous intervals for shares of right answers, exact for single items, by cluster for items that belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DIGITS = 4
LEVEL = 0.95
_PSEUDO = 2


@dataclass(frozen=True)
class Interval:
    """A share with its interval, rounded to four decimals."""

    estimate: float
    low: float
    high: float


def sidak(tests: int, level: float = LEVEL) -> float:
    """Return the error that each of some tests may have so that all intervals hold together (Šidák, 1967)."""
    return 1.0 - math.pow(level, 1.0 / max(tests, 1))


def exact_interval(right: int, number: int, tests: int = 1) -> Interval:
    """Return the Clopper–Pearson interval of a share, simultaneous over ``tests`` of them (Clopper & Pearson, 1934)."""
    from scipy.special import betaincinv

    half = sidak(tests) / 2
    low = 0.0 if right == 0 else float(betaincinv(right, number - right + 1, half))
    high = 1.0 if right == number else float(betaincinv(right + 1, number - right, 1 - half))
    return Interval(round(right / number, DIGITS), round(low, DIGITS), round(high, DIGITS))


def cluster_interval(scores: Sequence[float], weights: Sequence[float], tests: int = 1) -> Interval:
    """Return the interval of a weighted share over clusters, simultaneous over ``tests`` of them.

    Members of a pair are answered alike more or less often than strangers, so the cluster is what varies: the
    share is a ratio of cluster totals, its variance that of the linearised totals (Cochran, 1977, eq. 6.13), its
    distribution Student's t. Two clusters that are all right and two that are all wrong are added, after Agresti
    and Coull (1998), so that the interval has a width even where all clusters agree.
    """
    from scipy.special import stdtrit

    estimate = math.fsum(scores) / math.fsum(weights)
    usual = math.fsum(weights) / len(weights)
    score = [*scores, *[usual] * _PSEUDO, *[0.0] * _PSEUDO]
    weight = [*weights, *[usual] * (2 * _PSEUDO)]
    centre = math.fsum(score) / math.fsum(weight)
    number = len(weight)
    squares = math.fsum((s - centre * w) ** 2 for s, w in zip(score, weight, strict=True))
    error = math.sqrt(number / (number - 1) * squares) / math.fsum(weight)
    reach = float(stdtrit(number - 1, 1 - sidak(tests) / 2)) * error
    return Interval(
        round(estimate, DIGITS),
        round(max(min(centre - reach, estimate), 0.0), DIGITS),
        round(min(max(centre + reach, estimate), 1.0), DIGITS),
    )
