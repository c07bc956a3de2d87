"""Rules by which a time counts or does not: the study's own bounds, and the usual alternatives of the literature.

Bounds fixed beforehand are the rule to preregister: they are blind to reader, condition and outcome. Rules that look at a
participant's own times in a condition are here so that a multiverse can show what they would have changed; they
remove more where times are more skewed, which depends on the condition (Miller, 2023, JEP: General 152, 3291-3312).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from analysis.plan import Fault, read_times
from stimuli.errors import UserError, error_at

MAD_TO_SD = 1.4826
"""What makes the median absolute deviation of a normal distribution its standard deviation."""


class TimeRule(Protocol):
    """Says which times count."""

    @property
    def said(self) -> str:
        """What is wrong with a time that does not count, in words."""

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return which rows have a time that counts."""


@dataclass(frozen=True)
class Bounds:
    """Times in milliseconds within which a trial is used; both ends belong to the range."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse bounds between which nothing lies."""
        if not 0 <= self.low < self.high:
            raise UserError(
                f"time bounds {self.low:g} to {self.high:g} ms",
                mend="The first bound is the lower one, from 0.",
            )

    @property
    def said(self) -> str:
        """What is wrong with a time that does not count, in words."""
        return f"outside the study's bounds ({self.low:g} to {self.high:g} ms)"

    def within(self, other: Bounds | None) -> Bounds:
        """Return the bounds within these and others."""
        return self if other is None else Bounds(max(self.low, other.low), min(self.high, other.high))

    def holds(self, times: pd.Series[float]) -> pd.Series[bool]:
        """Return which times lie within the bounds."""
        return times.between(self.low, self.high)

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return which rows have a time within the bounds."""
        return self.holds(rows[measure])


@dataclass(frozen=True)
class EveryTime:
    """Every time counts."""

    @property
    def said(self) -> str:
        """What is wrong with a time that does not count, in words."""
        return "no rule"

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return True for every row."""
        return pd.Series(True, index=rows.index)


@dataclass(frozen=True)
class Spread:
    """Times within k spreads of the centre of a participant's times in a condition."""

    k: float  # how many spreads to either side still count
    kind: str = "sd"
    by: tuple[str, ...] = ()  # columns that make a cell, beside reader group and reader: the factors
    logged: bool = False  # whether the spread is that of log times

    def __post_init__(self) -> None:
        """Refuse spreads that keep nothing and kinds that nobody knows."""
        if not self.k > 0:
            raise UserError(
                f"a time rule of {self.k:g} spreads", mend="Give a number above 0, for example 2.5."
            )
        if self.kind not in ("sd", "mad"):
            raise UserError(f"a time rule of kind {self.kind!r}", mend="Write sd or mad.")

    @property
    def said(self) -> str:
        """What is wrong with a time that does not count, in words."""
        spread, centre = ("SD", "mean") if self.kind == "sd" else ("MAD", "median")
        logs = " of log times" if self.logged else ""
        return f"more than {self.k:g} {spread} from the participant's {centre} in the condition{logs}"

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return which rows lie within the spread of their cell; a cell without spread (one time) keeps all."""
        times = np.log(rows[measure]) if self.logged else rows[measure].astype(float)
        keys = [rows[name] for name in ("reader_group", "reader", *self.by)]

        def per_cell(values: pd.Series[float], what: Literal["mean", "std", "median"]) -> pd.Series[Any]:
            cells: pd.Series[Any] = values.groupby(keys, dropna=False, observed=True).transform(what)
            return cells

        if self.kind == "sd":
            away = (times - per_cell(times, "mean")).abs()
            spread = per_cell(times, "std")
        else:
            away = (times - per_cell(times, "median")).abs()
            spread = MAD_TO_SD * per_cell(away, "median")
        return (away <= self.k * spread) | ~(spread > 0)


def time_bounds(exclude: dict[str, Any], measure: str) -> Bounds | None:
    """Return the bounds that a study gives for a time measure, or None."""
    rule = (exclude.get("trials") or {}).get(measure)
    if rule is None:
        return None
    try:
        return Bounds(*read_times(rule))
    except Fault as fault:
        raise error_at(f"analysis.exclude.trials.{measure}", *fault.args) from None


def time_reasons(trials: pd.DataFrame, exclude: dict[str, Any], measure: str) -> pd.Series[str]:
    """Say why a trial's time counts in no model of times; None where it does, and where there is no time."""
    bounds = time_bounds(exclude, measure)
    reason = pd.Series(np.full(len(trials), None), index=trials.index, dtype=object)
    if bounds is None:
        return reason
    outside = trials[measure].notna() & ~bounds.holds(trials[measure])
    return reason.mask(outside, f"{measure} {exclude['trials'][measure]}")
