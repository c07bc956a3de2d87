"""Writes numbers as the APA manual (7th ed., section 6.36 and table 6.5) wants them, as plain text with a true minus sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal

from analysis.plan.wording import NUMBERS as NUMBERS
from analysis.plan.wording import worded as worded

MINUS, MISSING = "−", "–"
MOST_TESTS_NAMED = 3
"""Planned tests and analyses, whose names are long, that a sentence names; of more it says how many they are."""
_DIGITS = 14
"""That count of a number; what sums and quotients of binary fractions leave behind them does not."""
_WIDE = Context(prec=400)
_SAME = 1e-12
"""Ends of an interval that are no farther apart are one number, but for rounding errors."""


class Written(str):
    """Text made of numbers, with these numbers unrounded."""

    values: tuple[float, ...]  # a number, two ends, or an estimate and its ends; nan: none

    @classmethod
    def of(cls, text: str, *values: float | None) -> Written:
        """Write a text and remember its numbers."""
        written = cls(text)
        written.values = tuple(math.nan if value is None else float(value) for value in values)
        return written


def joined(*parts: str) -> str:
    """Join written numbers by spaces; an estimate with its interval keeps the numbers of both."""
    values = [value for part in parts for value in getattr(part, "values", ())]
    return Written.of(" ".join(parts), *values)


def rounded(value: float, decimals: int) -> Decimal:
    """Round as by hand, halves away from zero: 49 of 80 is 61.3% however it was reckoned (61.25, 61.25000000000001)."""
    exact = Decimal(f"{value:.{_DIGITS}g}")
    return exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _WIDE)


def number(value: float | None, decimals: int = 2, *, leading_zero: bool = True) -> str:
    """Write a number with fixed decimals, commas between thousands, a true minus, and no negative zero."""
    if value is None or math.isnan(value):
        return Written.of(MISSING, value)
    if math.isinf(value):
        return Written.of("∞" if value > 0 else f"{MINUS}∞", value)
    magnitude = rounded(abs(value), decimals)
    text = f"{magnitude:,.{decimals}f}"
    sign = MINUS if value < 0 and magnitude else ""
    if not leading_zero and text.startswith("0."):
        text = text[1:]
    return Written.of(sign + text, value)


def count(value: float) -> str:
    """Write a whole number with commas between thousands."""
    return Written.of(f"{int(rounded(value, 0)):,}".replace("-", MINUS), value)


def p_value(value: float | None) -> str:
    """Write p without its name, to three decimals: ``.032``, ``< .001``, ``> .999``; ``< .050`` where rounding would hide that."""
    if value is None or math.isnan(value):
        return Written.of(MISSING, value)
    if not 0 <= value <= 1:
        raise ValueError(f"p is {value}; a probability lies between 0 and 1")
    if value < 0.001:
        return Written.of("< .001", value)
    if value >= 0.9995:
        return Written.of("> .999", value)
    if 0.0495 <= value < 0.05:
        return Written.of("< .050", value)
    return number(value, 3, leading_zero=False)


def p_phrase(value: float | None) -> str:
    """Write p with its name: ``p = .032``, ``p < .001``."""
    text = p_value(value)
    return f"p {text}" if text[0] in "<>" else f"p = {text}"


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def without_width(low: float | None, high: float | None) -> bool:
    """Whether both ends of an interval are one number: where nothing varies, nothing is known of other cases."""
    if low is None or high is None:
        return False
    return math.isfinite(low) and math.isclose(low, high, rel_tol=_SAME, abs_tol=_SAME)


def interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    """Write the two ends of an interval in brackets, ``[3.1, ∞)`` if one is open; an en dash where there is none, or no width.

    The ends have more decimals where rounding would hide on which side of zero they lie.
    """
    return _ends(low, high, lambda end: number(end, decimals + _more(low, high, decimals)))


def _more(low: float | None, high: float | None, decimals: int) -> int:
    """Return how many decimals are missing for ends of an interval that are not zero to be printed so."""
    ends = [abs(end) for end in (low, high) if end and math.isfinite(end)]
    return max((next((n for n in range(3) if rounded(end, decimals + n)), 0) for end in ends), default=0)


def _ends(
    low: float | None, high: float | None, write: Callable[[float | None], str], least: float = -math.inf
) -> str:
    if (_missing(low) and _missing(high)) or without_width(low, high):
        return Written.of(MISSING, low, high)
    opening, closing = "(" if low == least else "[", ")" if high == math.inf else "]"
    return Written.of(f"{opening}{write(low)}, {write(high)}{closing}", low, high)


def span(lowest: float | None, highest: float | None, decimals: int = 2) -> str:
    """Write from where to where values lie, in brackets; all may be the same."""
    return Written.of(f"[{number(lowest, decimals)}, {number(highest, decimals)}]", lowest, highest)


def with_ends(value: float, low: float, high: float, decimals: int = 2, unit: str = "") -> str:
    """Write an estimate with its interval, ``12.3% [4.5, 20.1]``; alone where there is no interval, or none of any width."""
    text = number(value, decimals) + (unit if math.isfinite(value) else "")
    is_known = not (_missing(low) or _missing(high) or without_width(low, high))
    return f"{text} {interval(low, high, decimals)}" if is_known else text


def degrees_of_freedom(value: float | None) -> str:
    """Write degrees of freedom: whole where they are, else to two decimals; none where infinite."""
    if value is None or math.isnan(value) or math.isinf(value):
        return Written.of(MISSING, value)
    return count(value) if float(value).is_integer() else number(value)


def correlation(value: float | None) -> str:
    """Write a correlation to two decimals without a zero before the point."""
    return number(value, 2, leading_zero=False)


def correlations(low: float, high: float) -> str:
    """Write the two ends of a correlation's interval in brackets; an en dash alone where there is none, or none of any width."""
    return _ends(low, high, correlation) if math.isfinite(low) else Written.of(MISSING, low, high)


def percent(share: float | None, decimals: int = 1) -> str:
    """Write a proportion as a percentage."""
    if share is None or math.isnan(share):
        return Written.of(MISSING, share)
    return Written.of(f"{number(100 * share, decimals)}%", 100 * share)


def ratio(value: float | None) -> str:
    """Write an odds ratio or other ratio: two decimals, three below 0.1, none above 1,000."""
    if value is None or math.isnan(value) or math.isinf(value):
        return number(value)
    if value >= 1000:
        return count(value)
    if value == 0:
        return Written.of("0", value)
    if value < 0.001:
        return Written.of("< 0.001", value)
    return number(value, 2 if value >= 0.1 else 3)


def bayes_factor(value: float | None) -> str:
    """Write a Bayes factor to two decimals, to three digits below 0.1, and beyond 1,000 or 1/1,000 as a bound."""
    if value is None or math.isnan(value):
        return Written.of(MISSING, value)
    if value > 1000 or value < 0.001:
        return Written.of("> 1,000" if value > 1 else "< 0.001", value)
    return number(value, 2 if value >= 0.1 else 3)


def ratio_interval(low: float | None, high: float | None) -> str:
    """Write the two ends of a ratio's interval in brackets, as :func:`interval` does; it hides no more that 1 lies outside."""
    if low is not None and high is not None and (extra := _more(low - 1, high - 1, 2)):
        return _ends(low, high, lambda end: number(end, 2 + extra), 0.0)
    return _ends(low, high, ratio, 0.0)


def milliseconds(value: float | None) -> str:
    """Write a time in whole milliseconds."""
    if value is None or math.isnan(value):
        return Written.of(MISSING, value)
    return Written.of(f"{count(value)}\u00a0ms", value)


def listing(parts: Sequence[str], last: str = "and") -> str:
    """Join words as a sentence lists them: ``a``, ``a and b``, ``a, b, and c``; after a negation, ``last`` is "or"."""
    if len(parts) < 3:
        return f" {last} ".join(parts)
    return f"{', '.join(parts[:-1])}, {last} {parts[-1]}"


def counted(value: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: ``1 session``, ``12 sessions``."""
    return f"{count(value)} {singular if value == 1 else plural or singular + 's'}"


def few_named(names: Sequence[str], noun: str, between: str = "", plural: str | None = None) -> str:
    """Name up to three tests or analyses, in a list or with a sign between them; of more, say how many they are."""
    if len(names) > MOST_TESTS_NAMED:
        return worded(len(names), noun, plural)
    return between.join(names) if between else listing(names)


def opening(value: int, singular: str, plural: str | None = None) -> str:
    """Begin a sentence with a count and its noun, never with digits: ``Two models``, ``A total of 12 models``."""
    text = worded(value, singular, plural)
    return f"A total of {text}" if text[0].isdigit() else f"{text[0].upper()}{text[1:]}"


def spelled(value: int) -> str:
    """Write a count without its noun: ``none``, below 10 as a word, else in digits."""
    return "none" if not value else NUMBERS[value] if value < len(NUMBERS) else count(value)


def some_of(part: int, total: int, noun: str) -> str:
    """Write how many of several: ``two of three tests``, ``all three tests``, ``both tests``, ``the one test``."""
    if part < total:
        return (
            f"{spelled(part)} of {worded(total, noun)}"
            if total < len(NUMBERS)
            else f"{count(part)} of {counted(total, noun)}"
        )
    return {1: f"the one {noun}", 2: f"both {noun}s"}.get(total, f"all {worded(total, noun)}")


def day(text: str) -> str:
    """Write the day of an ISO 8601 time as APA does: ``March 3, 2026``."""
    moment = datetime.fromisoformat(str(text))
    return f"{moment:%B} {moment.day}, {moment.year}"


def between_dates(first: str, last: str) -> str:
    """Write the first and the last day: ``between March 3, 2026, and March 9, 2026``."""
    start, end = day(first), day(last)
    return f"on {start}" if start == end else f"between {start}, and {end}"
