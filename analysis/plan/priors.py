"""Priors of Bayes factors as a plan declares them: ``{prior: cauchy, scale: 10}``, on the scale of the planned differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from analysis.plan.faults import Fault, unknown
from analysis.plan.measures import Measure

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
    if len({(one.scale, one.unit if one.scale == "raw" else "") for one in measures}) > 1:
        raise Fault(
            f": differences in {' and '.join(one.name for one in measures)} have no scale in common",
            "Plan an analysis for each measure.",
        )
    for key, needed in (("scale", True), ("df", kind == "t")):
        value = given.get(key)
        if not needed and value is not None:
            raise Fault(f" is {value!r}; a {kind} prior has none", "Take it out, or write prior: t.", (key,))
        if needed and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf):
            raise Fault(f" is {value!r}; it must be a number above 0", "For example 10.", (key,))
    unit = "natural-log units" if measures[0].scale == "ratio" else measures[0].unit_of_difference
    return Prior(kind, float(given["scale"]), float(DF[kind] or df or inf), unit)
