"""The size of an effect on the scale that a reader feels (points of accuracy, percent of time), and *p*, as running text has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from analysis import apa
from analysis.plan import Measure
from analysis.report.apa_tables import decimals
from analysis.results import Contrast, as_percent

POINTS, PERCENT, ODDS, OWN = "points", "percent", "odds ratio", "own unit"


@dataclass(frozen=True)
class ResponseScaleEffect:
    """One or several effects on one scale."""

    scale: str
    values: tuple[float, ...]
    ends: tuple[
        float, float
    ]  # interval of the first; infinite on the side that a directional test leaves open
    places: int
    unit: str  # what follows a number; empty for an odds ratio

    @property
    def value(self) -> str:
        """The first effect without its unit."""
        return apa.ratio(self.values[0]) if self.scale == ODDS else apa.number(self.values[0], self.places)

    @property
    def size(self) -> str:
        """The first effect with its unit."""
        return f"odds ratio {self.value}" if self.scale == ODDS else f"{self.value}{self.unit}"

    @property
    def interval(self) -> str:
        """Its interval, in brackets."""
        return apa.ratio_interval(*self.ends) if self.scale == ODDS else apa.interval(*self.ends, self.places)

    @property
    def _extremes(self) -> tuple[str, str]:
        write = apa.ratio if self.scale == ODDS else lambda value: apa.number(value, self.places)
        return write(min(self.values)), write(max(self.values))

    @property
    def tied(self) -> str:
        """Effects that are equal apart from their sign."""
        values = " or ".join(dict.fromkeys(self._extremes))
        return f"an odds ratio of {values}" if self.scale == ODDS else f"{values}{self.unit}"

    @property
    def is_single(self) -> bool:
        """Whether all effects are printed with the same number."""
        least, most = self._extremes
        return least == most

    @property
    def range(self) -> str:
        """The smallest and the largest effect with their unit."""
        least, most = self._extremes
        if self.scale == ODDS:
            return f"odds ratios {least} to {most}"
        return f"{least}{self.unit} each" if self.is_single else f"{least} to {most}{self.unit}"


def places_of(contrasts: Sequence[Contrast]) -> int:
    """Return the decimals of all contrasts of an analysis on the modelled scale: the smallest standard error decides."""
    known = [contrast.se for contrast in contrasts if contrast.estimable and contrast.se > 0]
    return decimals(min(known, default=1.0), 2)


def felt(
    contrasts: Sequence[Contrast], measure: Measure, among: Sequence[Contrast] = ()
) -> ResponseScaleEffect:
    """Return effects of one measure on the response scale; ``among`` the contrasts of their analysis, all have the same decimals."""
    first, raw = contrasts[0], tuple(contrast.estimate for contrast in contrasts)
    if measure.scale == "points" and all(contrast.crossed is not None for contrast in contrasts):
        return ResponseScaleEffect(POINTS, raw, (first.low, first.high), 1, " percentage points")
    if measure.family == "binomial":
        low, high = (float(np.exp(end)) for end in (first.low, first.high))
        return ResponseScaleEffect(ODDS, tuple(float(np.exp(value)) for value in raw), (low, high), 2, "")
    if measure.scale == "raw":
        places = places_of(among or contrasts)
        return ResponseScaleEffect(OWN, raw, (first.low, first.high), places, f" {measure.unit}".rstrip())
    ends = (as_percent(first.low), as_percent(first.high))
    return ResponseScaleEffect(PERCENT, tuple(as_percent(value) for value in raw), ends, 1, "%")


def p_said(value: float | None) -> Markup:
    """Write *p* in italics with its value, of which no line break parts it."""
    return Markup("<i>p</i>\u00a0{}").format(apa.p_phrase(value).removeprefix("p ").replace(" ", "\u00a0"))


def p_of_all(values: Collection[float], *, at_least: bool = False) -> str:
    """Write the *p* that none exceeds, or the least; of one value, that value."""
    phrase = apa.p_value(min(values) if at_least else max(values))
    if phrase[0] in "<>":
        return phrase.replace(" ", "\u00a0") + (" each" if len(values) > 1 else "")
    return f"{'=' if len(values) == 1 else '≥' if at_least else '≤'}\u00a0{phrase}"
