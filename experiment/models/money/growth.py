"""What the rest of growing conversations will cost: each turn sends again what was said before, so later ones cost more.

Where turns of several lengths were asked, cost is a straight line of the characters sent (ordinary least squares; its
prediction interval has the uncertainty of the line, of single turns, and of how long answers will be). Where only first
turns were asked, the line's slope cannot be seen: it follows from the price of a token read and the tokens a character made,
between a server that reads what it knows at its cached price and one whose template takes ``MOST_AROUND`` tokens a message.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from experiment.models.money.estimate import LEVEL, Estimate
from experiment.models.money.prices import Price

AROUND, MOST_AROUND = 4, 8
"""Tokens that chat templates put around a message: usual, and most of those in use."""

MISFIT = 0.02
"""Standard deviation, as a share, by which later turns make more or fewer tokens of a character than those that were asked."""

LEAST_ASKED = 12
LEAST_RANGE = 1.25
"""A line is fitted where at least so many turns were asked, the longest so many times as long as the shortest."""


@dataclass(frozen=True)
class Asked:
    """A turn that was asked: characters and messages sent, US dollars, the tokens that the server counted, its conversation."""

    size: float
    messages: int
    cost: float
    prompt_tokens: int | None
    session: str = ""


@dataclass
class Ahead:
    """Turns that are missing."""

    # characters, messages, and for how many turns it stands
    turns: list[tuple[float, int, float]] = field(default_factory=list)
    # standard deviation of all characters together, for answers are longer or shorter than expected
    spread: float = 0.0


def estimate_growing(asked: Sequence[Asked], ahead: Ahead, price: Price) -> Estimate | None:
    """Estimate what missing turns will cost; None where nothing was asked.

    The interval is meant for cost that is a line of length, with deviations that conversations share.
    """
    if not asked:
        return None
    count = round(sum(weight for _, _, weight in ahead.turns))
    if len(asked) == 1:
        total = _by_price(asked, ahead, price, AROUND, price.input)
        return Estimate(count, 1, total, 0.0, math.inf)
    sizes = [one.size for one in asked]
    if len(asked) >= LEAST_ASKED and max(sizes) >= LEAST_RANGE * min(sizes):
        total, low, high = _by_line(asked, ahead)
    else:
        total, low, high = _by_prices(asked, ahead, price)
    return Estimate(count, len(asked), total, max(0.0, low), high)


def _quantile(freedom: int) -> float:
    from scipy import stats

    return float(stats.t.ppf(0.5 + LEVEL / 2, max(1, freedom)))


def _by_line(asked: Sequence[Asked], ahead: Ahead) -> tuple[float, float, float]:
    n = len(asked)
    mean_size, mean_cost = fmean(one.size for one in asked), fmean(one.cost for one in asked)
    squares = sum((one.size - mean_size) ** 2 for one in asked)
    slope = sum((one.size - mean_size) * (one.cost - mean_cost) for one in asked) / squares
    rest = sum((one.cost - mean_cost - slope * (one.size - mean_size)) ** 2 for one in asked) / (n - 2)
    count = sum(weight for _, _, weight in ahead.turns)
    beyond = sum(weight * (size - mean_size) for size, _, weight in ahead.turns)
    total = count * mean_cost + slope * beyond
    # a longer turn deviates by more, and turns of one conversation deviate together (sandwich estimator, Liang & Zeger, 1986)
    single = rest * sum(weight * max(1.0, size / mean_size) ** 2 for size, _, weight in ahead.turns)
    scores: dict[str, float] = {}
    for one in asked:
        left = one.cost - mean_cost - slope * (one.size - mean_size)
        pull = left * (count / n + beyond * (one.size - mean_size) / squares)
        scores[one.session] = scores.get(one.session, 0.0) + pull
    answers = (slope * ahead.spread) ** 2 + (MISFIT * total) ** 2
    half = _quantile(n - 2) * math.sqrt(rest * (count**2 / n + beyond**2 / squares) + single + answers)
    if (groups := len(scores)) > 2:
        apart = sum(score**2 for score in scores.values()) * groups / (groups - 1)
        half = max(half, _quantile(groups - 1) * math.sqrt(apart + single + answers))
    return total, total - half, total + half


def _by_prices(asked: Sequence[Asked], ahead: Ahead, price: Price) -> tuple[float, float, float]:
    n = len(asked)
    total = _by_price(asked, ahead, price, AROUND, price.input)
    ends = [
        _by_price(asked, ahead, price, around, read)
        for around in (0, MOST_AROUND)
        for read in (price.input, price.cached_input)
    ]
    shares = [one.cost / one.size for one in asked]
    relative = math.sqrt(variance(shares)) / fmean(shares)
    count = sum(weight for _, _, weight in ahead.turns)
    length = sum(size * weight for size, _, weight in ahead.turns)
    apart = math.sqrt(relative**2 * (1 / n + 1 / max(1.0, count)) + (ahead.spread / max(1.0, length)) ** 2)
    half = _quantile(n - 1) * apart * total
    return total, min(total, *ends) - half, max(total, *ends) + half


def _by_price(asked: Sequence[Asked], ahead: Ahead, price: Price, around: int, read: float) -> float:
    """Return what missing turns cost where a message takes so many tokens beside its text, and what was read before costs ``read``."""
    known = [one for one in asked if one.prompt_tokens is not None]
    if not known or price.input <= 0:
        share = fmean(one.cost for one in asked) / fmean(one.size for one in asked)
        return share * sum(size * weight for size, _, weight in ahead.turns)
    size = sum(one.size for one in known)
    tokens = float(sum(one.prompt_tokens or 0 for one in known))
    messages = sum(one.messages for one in known)
    a_character = max(0.0, tokens - around * messages) / size
    first = tokens / len(known)
    written = fmean(max(0.0, one.cost - (one.prompt_tokens or 0) * price.input / 1e6) for one in known)
    total = 0.0
    for chars, turns, weight in ahead.turns:
        sent = a_character * chars + around * turns
        total += weight * (written + (min(sent, first) * price.input + max(0.0, sent - first) * read) / 1e6)
    return total
