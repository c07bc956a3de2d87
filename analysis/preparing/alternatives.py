"""The other ways in which data are usually prepared: time rules, and sessions that were flagged put back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

from analysis.preparing.bounds import Bounds, EveryTime, Spread, TimeRule
from analysis.preparing.exclusions import flag_trials
from analysis.preparing.of_plan import own_bounds

OWN = "the study's bounds"


@dataclass(frozen=True)
class Alternative:
    """One rule for times with the name under which a multiverse shows it."""

    name: str
    rule: TimeRule
    is_own: bool = False  # whether it is the one that the study declared


@cache
def _usual() -> tuple[Mapping[str, Any], ...]:
    text = resources.files(__package__).joinpath("alternatives.json").read_text("utf-8")
    return tuple(json.loads(text)["alternatives"])


def alternatives(
    measure: str,
    exclude: Mapping[str, Any] | None = None,
    factors: Collection[str] = (),
    of_plan: Mapping[str, Any] | None = None,
) -> list[Alternative]:
    """Return a multiverse's time rules: the study's own, then those of ``alternatives.json``."""
    own = own_bounds(exclude or {}, of_plan or {}, measure)
    found = [Alternative(OWN, own, True)] if own else []
    for one in _usual():
        if measure not in one["of"]:
            continue
        rule: TimeRule
        if one["rule"] == "none":
            rule = EveryTime()
        elif one["rule"] == "bounds":
            rule = Bounds(float(one["low"]), float(one["high"]))
        else:
            logged = bool(one.get("logged", False))
            rule = Spread(float(one["k"]), str(one["rule"]), tuple(factors), logged)
        found.append(Alternative(str(one["name"]), rule, own is None and one["rule"] == "none"))
    return found


def of_flagged_sessions(
    trials: pd.DataFrame,
    factors: Collection[str],
    collected: str | None = None,
    *,
    back: bool = True,
    out: Collection[str] = (),
) -> pd.DataFrame:
    """Flag a trials table anew with the sessions that the study excluded put back, and others taken out."""
    changed = trials.copy()
    given = trials["flagged_reason"].where(pd.Series(not back, index=trials.index), None)
    reason = given.mask(given.isna() & trials["session_id"].isin(set(out)), "left out for comparison")
    changed["excluded_reason"] = reason.astype(object)
    return flag_trials(changed, factors, collected)
