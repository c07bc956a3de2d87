"""People's reading times on the log scale and on their own, side by side.

A difference on the log scale is a ratio: it says that a condition costs everyone the same percentage. On the scale of
milliseconds it says that it costs everyone the same time. Where readers or groups differ in speed both cannot be true, and an
interaction can be there on one scale and absent on the other (Loftus, 1978, Memory & Cognition 6, 312-319; Lo & Andrews, 2015,
Frontiers in Psychology 6:1171). So both are fitted: log times with a normal, times with a Gamma distribution and identity
link. Both models go through the same reduction of random effects, each on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1

import pandas as pd

from analysis.cost import analyse_time
from analysis.plan import Measure, Plan
from analysis.random_structure import MOST_COLUMNS_BESIDE
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError

FAMILIES = ("Gamma", "inverse.gaussian")
_COLUMNS = [
    *("contrast", "groups", "log_estimate", "log_low", "log_high", "log_p"),
    *("percent", "percent_low", "percent_high", "ms", "ms_low", "ms_high", "ms_p", "agree"),
]


@dataclass(frozen=True)
class TimeScales:
    """One comparison of times on both scales."""

    log: Analysis  # of log times, and of milliseconds
    own: Analysis
    table: pd.DataFrame


def time_scales(
    plan: Plan, tables: Tables, family: str = "Gamma", *, on_log: Analysis | None = None
) -> TimeScales:
    """Carry out a plan of ``rt`` or ``reading_time`` on both scales."""
    if plan.measure.unit != "ms":
        raise UserError(f"{plan.measure.noun} is no time", mend="Give a plan of rt or reading_time.")
    if family not in FAMILIES:
        raise UserError(f"family {family!r} for times", mend=f"Choose among {', '.join(FAMILIES)}.")
    name = plan.measure.name
    logged = replace(plan.measure, family="gaussian", logged=True, response=f"log_{name}", link=None)
    own = Measure(name, plan.measure.title, plan.measure.noun, family, False, "ms", name, "identity")
    if on_log is None:
        on_log = analyse_time(replace(plan, measure=logged), tables, most_columns=MOST_COLUMNS_BESIDE)
    # a bound is a ratio: it belongs to the log scale alone
    plain = replace(plan, name=f"{plan.name} (ms)", measure=own, equivalence=None)
    on_own = analyse_time(plain, tables, most_columns=MOST_COLUMNS_BESIDE)
    return TimeScales(on_log, on_own, _beside(on_log, on_own))


def _beside(log: Analysis, own: Analysis) -> pd.DataFrame:
    others = {(one.label, one.groups): one for one in own.contrasts}
    rows = []
    for one in log.contrasts:
        other = others.get((one.label, one.groups))
        rows.append(
            {
                "contrast": one.label,
                "groups": " − ".join(one.groups),
                **_numbers(one, "log", "log_estimate"),
                **_percents(one),
                **_numbers(other, "ms", "ms"),
                "agree": _verdict(one, other),
            }
        )
    return pd.DataFrame(rows, columns=_COLUMNS)


def _numbers(one: Contrast | None, head: str, first: str) -> dict[str, float]:
    nan = float("nan")
    values = (one.estimate, one.low, one.high, one.p) if one is not None and one.estimable else (nan,) * 4
    return dict(zip((first, f"{head}_low", f"{head}_high", f"{head}_p"), values, strict=True))


def _percents(one: Contrast) -> dict[str, float]:
    values = (one.estimate, one.low, one.high) if one.estimable else (float("nan"),) * 3
    names = ("percent", "percent_low", "percent_high")
    return {name: 100 * expm1(value) for name, value in zip(names, values, strict=True)}


def _side(one: Contrast) -> int:
    return 1 if one.low > 0 else -1 if one.high < 0 else 0


def _verdict(one: Contrast, other: Contrast | None) -> str:
    if other is None or not (one.estimable and other.estimable):
        return "not estimable"
    sides = _side(one), _side(other)
    if sides[0] == sides[1]:
        return "same"
    return "opposite" if sides[0] * sides[1] < 0 else "one scale only"
