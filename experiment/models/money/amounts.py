"""Amounts of money as a user writes them: ``40 USD``, ``$40``, ``0.50 usd``; prices are in US dollars, so amounts are too."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from stimuli.errors import UserError

_AMOUNT = re.compile(
    r"(?:(?P<before>[^\W\d_]+|[$€£¥])\s*)?(?P<number>\d+(?:[.,]\d+)?|\.\d+)\s*(?P<after>[^\W\d_]+|[$€£¥])?"
)
_THOUSANDS = re.compile(r"\d+,\d{3}")
_DOLLARS = frozenset({"USD", "$", "US$"})


def dollars(given: object, place: str) -> float:
    """Read an amount in US dollars."""
    text = str(given).strip()
    found = _AMOUNT.fullmatch(text)
    if isinstance(given, bool) or found is None:
        raise UserError(f"{place} is {given!r}, which is no amount of money", mend="Write it as 40 USD.")
    if _THOUSANDS.fullmatch(found["number"]):
        whole = found["number"].replace(",", "")
        point = found["number"].replace(",", ".")
        raise UserError(
            f"{place} is {text!r}, which may be {whole} or {point}", mend=f"Write {whole} USD or {point} USD."
        )
    currencies = {part.upper() for part in (found["before"], found["after"]) if part}
    if not currencies:
        raise UserError(f"{place} is {text!r}, without a currency", mend=f"Write it as {text} USD.")
    if not currencies <= _DOLLARS:
        named = next(iter(currencies - _DOLLARS))
        raise UserError(
            f"{place} is {text!r}; prices are in US dollars, and rates of {named} change",
            mend="Write the amount in US dollars, such as 40 USD.",
        )
    amount = float(found["number"].replace(",", "."))
    if not math.isfinite(amount) or amount <= 0:
        raise UserError(f"{place} is {text!r}; it must be above zero", mend="Write it as 40 USD.")
    return amount


def written(amount: float) -> str:
    """Return an amount for people: cents, or three significant digits where it is below a dollar."""
    if amount == 0 or abs(amount) >= 1:
        return f"{amount:,.2f} USD"
    return f"{Decimal(f'{amount:.3g}'):f} USD"
