"""Bounds of equivalence (``5 points``), times (``outside 200 ms to 10 s``) and signs (``above 20%``) as written; priors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

from analysis.plan.contrasts import PlanFault, unknown
from analysis.plan.measures import Measure, Scale

RIGHT_SHARE = "question_accuracy"
"""The one sign of which little is bad."""
KEYLESS = "keyless"
"""The sign of text without key strokes, which no rule holds where a study allows assistive input."""
NOT_IN_TRIALS = ("same_key", "regular_typing", "fast_typing")
"""Signs made of key strokes, which only the store has."""
SIGNS = (
    *("attention_checks_failed", RIGHT_SHARE, "too_fast", "hidden", "dropped_frames", "pastes", KEYLESS),
    *NOT_IN_TRIALS,
)
"""Signs of careless answering by which sessions can be excluded."""

_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_BOUND = re.compile(rf"{_NUMBER} ?(points?|%|times|ms|bits?|nats?|tokens?)")
_TIMES = re.compile(rf"outside {_NUMBER} ?(ms|s|min) to {_NUMBER} ?(ms|s|min)")
_OR_MORE = re.compile(r"([0-9]+) or more")
_SIDED = re.compile(rf"(above|below) {_NUMBER} ?(%|ms|s|min)?")
_UNITS = {"%": 0.01, "ms": 1.0, "s": 1000.0, "min": 60_000.0, None: 1.0}
_JUST_BELOW = 1e-9


@dataclass(frozen=True)
class Bound:
    """The smallest difference between readers that matters; a smaller one is negligible."""

    value: float  # points, a ratio above 1, or the measure's own unit
    unit: Scale  # one of 'points', 'ratio', 'raw'
    said: str = ""  # as the study writes it

    @property
    def half_width(self) -> float:
        """The bound on the scale of the test: points, a natural logarithm, or the measure's unit."""
        return log(self.value) if self.unit == "ratio" else self.value


def read_bound(text: str, measures: Sequence[Measure]) -> Bound:
    """Read ``5 points``, ``10%``, ``1.2 times`` or ``0.5 bits``."""
    first = measures[0]
    if len({measure.scale for measure in measures}) > 1 or (len(measures) > 1 and first.scale == "raw"):
        raise PlanFault(
            f" is {text!r}; differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            "Times and tokens can be compared as ratios; take the bound out otherwise.",
        )
    match = _BOUND.fullmatch(str(text).strip())
    if match is None:
        raise PlanFault(f" is {text!r}", "Write it like: 5 points, 10%, 1.2 times, or 0.5 bits.")
    number, unit = float(match[1]), match[2]
    scale: Scale = "points" if unit.startswith("point") else "ratio" if unit in ("%", "times") else "raw"
    if scale != first.scale or (scale == "raw" and unit.removesuffix("s") != first.unit.removesuffix("s")):
        wanted = {"points": "5 points", "ratio": "10% or 1.2 times", "raw": f"0.5 {first.unit}"}[first.scale]
        raise PlanFault(f" is {text!r}, which is not a bound of {first.noun}", f"Write it like: {wanted}.")
    bound = Bound(1 + number / 100 if unit == "%" else number, scale, str(text))
    if bound.half_width <= 0 or (scale == "points" and number >= 100):
        rule = f"above {1 if unit == 'times' else 0}" + (" and below 100" if scale == "points" else "")
        raise PlanFault(f" is {text!r}", f"A bound must be {rule}.")
    return bound


def read_times(text: str) -> tuple[float, float]:
    """Read the times in milliseconds between which a measure counts: ``outside 200 ms to 10 s``."""
    match = _TIMES.fullmatch(str(text).strip())
    if match is None:
        raise PlanFault(f" is {text!r}", "Write it like: outside 200 ms to 10 s.")
    low, high = float(match[1]) * _UNITS[match[2]], float(match[3]) * _UNITS[match[4]]
    if low >= high:
        raise PlanFault(
            f" is {text!r}; the first bound must be the lower one", "Write it like: outside 200 ms to 10 s."
        )
    return low, high


@dataclass(frozen=True)
class SignRule:
    """A rule by which sessions may be excluded."""

    sign: str
    said: str  # as the study writes it
    bound: float  # in the sign's unit: shares from 0 to 1, milliseconds, counts
    side: str  # one of 'or more', 'above', 'below'

    def meets(self, values: Any) -> Any:
        """Return which values meet the rule; one that was not measured does not."""
        if self.side == "or more":
            return values >= self.bound
        return values > self.bound if self.side == "above" else values < self.bound

    @property
    def above(self) -> float:
        """The value above which the sign counts; the sign of which little is bad is kept as its complement to 1."""
        if self.side == "or more":
            return self.bound - _JUST_BELOW
        return 1 - self.bound if self.side == "below" else self.bound


def read_sign_rule(sign: str, text: str) -> SignRule:
    """Read the rule of a sign: ``2 or more``, ``above 20%``, ``below 70%``."""
    if sign not in SIGNS:
        raise unknown("sign", sign, SIGNS)
    example = "below 70%" if sign == RIGHT_SHARE else "2 or more, or above 20%"
    if match := _OR_MORE.fullmatch(str(text).strip()):
        rule = SignRule(sign, str(text), float(match[1]), "or more")
    elif match := _SIDED.fullmatch(str(text).strip()):
        rule = SignRule(sign, str(text), float(match[2]) * _UNITS[match[3]], match[1])
    else:
        raise PlanFault(f" is {text!r}", f"Write it like: {example}.")
    if (rule.side == "below") != (sign == RIGHT_SHARE):
        raise PlanFault(f" is {text!r}; {sign} is bounded from the other side", f"Write it like: {example}.")
    if match[match.lastindex or 1] == "%" and rule.bound > 1:
        raise PlanFault(f" is {text!r}; a share must be between 0% and 100%", f"Write it like: {example}.")
    return rule


DF = {"normal": inf, "cauchy": 1.0, "t": None}
"""Degrees of freedom of each kind of prior; ``t`` has its own."""


@dataclass(frozen=True)
class Prior:
    """A prior on a difference if there is one: a t distribution around zero, of which a direction keeps one half."""

    kind: str  # one of 'normal', 'cauchy', 't'
    scale: float  # in percentage points, natural-log units of times and counts, or the measure's unit
    df: float  # degrees of freedom; 1 of the Cauchy, infinite of the normal
    unit: str  # of the scale, in words

    @property
    def given(self) -> dict[str, Any]:
        """The prior as a plan writes it."""
        return {"prior": self.kind, "scale": self.scale, **({"df": self.df} if self.kind == "t" else {})}

    @property
    def said(self) -> str:
        """The prior in words."""
        kind = {"normal": "normal", "cauchy": "Cauchy"}.get(self.kind, f"t (df = {self.df:g})")
        return f"{kind} prior with {'SD' if self.kind == 'normal' else 'scale'} {self.scale:g} {self.unit}"


def read_prior(given: Mapping[str, Any], measures: Sequence[Measure]) -> Prior:
    """Read the prior of the differences in these measures."""
    kind, df = str(given.get("prior", "cauchy")), given.get("df")
    if kind not in DF:
        raise unknown("prior", kind, DF, "prior")
    if len({(measure.scale, measure.unit if measure.scale == "raw" else "") for measure in measures}) > 1:
        raise PlanFault(
            f": differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            "Plan an analysis for each measure.",
        )
    for key, needed in (("scale", True), ("df", kind == "t")):
        value = given.get(key)
        if not needed and value is not None:
            raise PlanFault(
                f" is {value!r}; a {kind} prior has none", "Take it out, or write prior: t.", (key,)
            )
        if needed and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf):
            raise PlanFault(f" is {value!r}; it must be a number above 0", "For example 10.", (key,))
    unit = "natural-log units" if measures[0].scale == "ratio" else measures[0].unit_of_difference
    return Prior(kind, float(given["scale"]), float(DF[kind] or df or inf), unit)
