"""Bounds as a plan writes them: of equivalence (``5 points``, ``1.2 times``) and of times (``outside 200 ms to 10 s``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from analysis.plan.faults import Fault
from analysis.plan.measures import Measure, Scale

_BOUND = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?(points?|%|times|ms|bits?|nats?|tokens?)")


@dataclass(frozen=True)
class Bound:
    """The smallest difference between readers that matters; a smaller one counts as none.

    Attributes
    ----------
    value : float
        Percentage points; a ratio above 1 (a difference of 1.2 times lies between 1/1.2 and 1.2); or a difference in the
        measure's own unit.
    unit : {'points', 'ratio', 'raw'}
    said : str
        As the study writes it.
    """

    value: float
    unit: Scale
    said: str = ""

    @property
    def half_width(self) -> float:
        """What the bound is on the scale of the test: points, a natural logarithm, or the measure's unit."""
        return log(self.value) if self.unit == "ratio" else self.value


def read_bound(text: str, measures: Sequence[Measure]) -> Bound:
    """Read ``5 points``, ``10%``, ``1.2 times`` or ``0.5 bits``.

    Parameters
    ----------
    text : str
    measures : sequence of Measure
        Those whose differences it bounds. Points are for shares, percentages and ratios for times and counts of tokens, other
        units for what is modelled in them.

    Raises
    ------
    Fault
        For another form, a bound that holds nothing or everything, one that is not on the measure's scale, or measures without
        a common scale.
    """
    one = measures[0]
    if len({measure.scale for measure in measures}) > 1 or (len(measures) > 1 and one.scale == "raw"):
        raise Fault(
            f" is {text!r}; differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            "Times and tokens can be compared as ratios; take the bound out otherwise.",
        )
    found = _BOUND.fullmatch(str(text).strip())
    if found is None:
        raise Fault(f" is {text!r}", "Write it like: 5 points, 10%, 1.2 times, or 0.5 bits.")
    number, unit = float(found[1]), found[2]
    scale: Scale = "points" if unit.startswith("point") else "ratio" if unit in ("%", "times") else "raw"
    if scale != one.scale or (scale == "raw" and unit.removesuffix("s") != one.unit.removesuffix("s")):
        wanted = {"points": "5 points", "ratio": "10% or 1.2 times", "raw": f"0.5 {one.unit}"}[one.scale]
        raise Fault(f" is {text!r}, which is not a bound of {one.noun}", f"Write it like: {wanted}.")
    bound = Bound(1 + number / 100 if unit == "%" else number, scale, str(text))
    if bound.half_width <= 0 or (scale == "points" and number >= 100):
        rule = f"above {1 if unit == 'times' else 0}" + (" and below 100" if scale == "points" else "")
        raise Fault(f" is {text!r}", f"A bound must be {rule}.")
    return bound
