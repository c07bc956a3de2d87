"""What tests against the bound of a plan came to, in words: of two readers, of several, and of two over many conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis import apa
from analysis.readers import named
from analysis.report.verdicts import listed
from analysis.results import Analysis, Contrast

_WITHIN = "within the bound fixed beforehand"
_COME_TO = {True: "are equivalent", False: "were not shown to be equivalent"}


def of_one(one: Contrast, analysis: Analysis) -> str:
    """Say whether two readers are equivalent within the plan's bound; a difference within it is not shown to be none."""
    test, bound = one.equivalence, analysis.plan.equivalence
    if test is None or bound is None:
        return ""
    level = f"{100 * test.level:.3g}%"
    if bound.unit == "ratio":
        ends = apa.interval(float(np.exp(test.low)), float(np.exp(test.high)))
        edges = f"ratios from {apa.number(1 / bound.value)} to {apa.number(bound.value)}"
    else:
        ends = apa.interval(test.low, test.high, 1 if bound.unit == "points" else 2)
        unit = "percentage points" if bound.unit == "points" else analysis.plan.measure.unit
        edges = f"±{bound.value:g} {unit}"
    statistic = "z" if test.df is None else f"t({apa.degrees_of_freedom(test.df)})"
    tested = f"{statistic} = {apa.number(test.statistic)}, {apa.p_phrase(test.p_adjusted)}"
    return f"The two readers {_COME_TO[test.equivalent]} {_WITHIN} ({edges}): {level} CI {ends}, {tested}."


def of_readers(found: Sequence[Contrast], kinds: dict[str, str]) -> list[str]:
    """Say of which of several readers the difference from one reader counts as none, and of which it does not."""
    told = []
    for equal, verdict in _COME_TO.items():
        own = [one for one in found if one.equivalence is not None and one.equivalence.equivalent == equal]
        if own:
            who = listed([one.groups[-1] for one in own], kinds)
            told.append(
                f"{who[0].upper()}{who[1:]} and {named(own[0].groups[0], kinds)} {verdict} {_WITHIN}."
            )
    return told


def of_conditions(found: Sequence[Contrast]) -> list[str]:
    """Say in how many conditions the difference between two readers counts as none."""
    tested = [one.equivalence for one in found if one.equivalence is not None]
    if not tested:
        return []
    none, many = apa.count(sum(one.equivalent for one in tested)), apa.counted(len(found), "condition")
    return [f"The two readers {_COME_TO[True]} {_WITHIN} in {none} of {many}."]
