"""Match by letters and their places: absolute slots, spatial coding and the overlap model."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from stimuli.similarity.letters import Letters, letters_of

MATCH_CALCULATOR_SIGMA = 1.25
LENGTH_SIGMA = (0.48, 0.24)
"""σ₀ and k of σ = σ₀ + k · letters of the shown form (Davis, 2010, Table 3)."""


def slot(target: str, shown: str) -> float:
    """Share of the target's places that hold the same letter in the shown form (absolute position)."""
    template, code = letters_of(target), letters_of(shown)
    if not template:
        return float(not code)
    return sum(map(str.__eq__, template, code)) / len(template)


def spatial_coding(target: str, shown: str, sigma: float = MATCH_CALCULATOR_SIGMA) -> float:
    """Match of spatial coding as the Match Calculator computes it (Davis, 2010; SOLAR).

    Letters of the target find their like in the shown form one to one, the nearest first. A pair at delay d adds
    exp(−(x − d)² / 2σ²) to the superposition at x; its height at the best of the delays, and 1 for each outer
    letter that the two words share, are divided by the target's letters + 2.
    """
    return _spatial(target, shown, 2 * sigma * sigma)


def spatial_coding_by_length(target: str, shown: str) -> float:
    """Match of spatial coding with the paper's receivers: exp(−((x − d) / σ)²), σ = 0.48 + 0.24 · letters shown."""
    base, slope = LENGTH_SIGMA
    sigma = base + slope * len(letters_of(shown))
    return _spatial(target, shown, sigma * sigma)


def _spatial(target: str, shown: str, width: float) -> float:
    template, code = letters_of(target), letters_of(shown)
    if not template or not code:
        return float(template == code)
    near = _receiver(width)
    counts = Counter(_delays(template, code))
    peak = max((sum(count * near(abs(x - d)) for d, count in counts.items()) for x in counts), default=0.0)
    outer = (template[0] == code[0]) + (template[-1] == code[-1])
    return float((peak + outer) / (len(template) + 2))


@functools.lru_cache(maxsize=256)
def _receiver(width: float) -> Callable[[int], float]:
    return functools.cache(lambda distance: math.exp(-(distance**2) / width))


@functools.lru_cache(maxsize=4)
def _delays(template: Letters, code: Letters) -> tuple[int, ...]:
    """Return how far each letter of the target is from its like; both forms of the score ask for them."""
    if len(set(template)) == len(template) and len(set(code)) == len(code):
        place = {letter: index for index, letter in enumerate(code)}
        return tuple(place[letter] - index for index, letter in enumerate(template) if letter in place)
    candidates = sorted(
        (abs(there - here), here, there)
        for here, letter in enumerate(template)
        for there, other in enumerate(code)
        if letter == other
    )
    taken_here: set[int] = set()
    taken_there: set[int] = set()
    delays = []
    for _, here, there in candidates:
        if here not in taken_here and there not in taken_there:
            taken_here.add(here)
            taken_there.add(there)
            delays.append(there - here)
    return tuple(delays)


@dataclass(frozen=True)
class OverlapParameters:
    """The two parameters of the overlap model's short form: the SD of the i-th letter is d · (1 − exp(−r · i)).

    The first letter is placed best, and the SDs of later ones approach ``asymptote``. The defaults are this
    package's, not Gomez and colleagues' estimates: the asymptote is the uncertainty of places that the Match
    Calculator uses, and the rate lets the first letter's SD be 63 % of it. Give those of your source where you
    have one.
    """

    asymptote: float = MATCH_CALCULATOR_SIGMA  # d, in letters
    rate: float = 1.0  # r, per letter

    def sd(self, place: int) -> float:
        """Return the SD of a letter's place, in letters; ``place`` counts from 0."""
        return self.asymptote * (1 - math.exp(-self.rate * (place + 1)))


DEFAULT_OVERLAP = OverlapParameters()


def overlap_model(target: str, shown: str, parameters: OverlapParameters = DEFAULT_OVERLAP) -> float:
    """Match of the overlap model (Gomez, Ratcliff & Perea, 2008).

    The letter at place i of the shown form is spread normally around i; each letter of the target adds what of
    its like lies inside its own slot, from half a place before to half a place after. Divided by what the
    target's own letters give, at most 1.
    """
    template, code = letters_of(target), letters_of(shown)
    if not template or not code:
        return float(template == code)
    return min(1.0, _overlap(template, code, parameters) / _self_overlap(template, parameters))


def _overlap(template: Letters, code: Letters, parameters: OverlapParameters) -> float:
    area = _areas(parameters)
    return sum(
        area(place, there)
        for there, letter in enumerate(template)
        for place, other in enumerate(code)
        if letter == other
    )


@functools.lru_cache(maxsize=50_000)
def _self_overlap(template: Letters, parameters: OverlapParameters) -> float:
    return _overlap(template, template, parameters)


@functools.lru_cache(maxsize=16)
def _areas(parameters: OverlapParameters) -> Callable[[int, int], float]:
    """Return the function that says how much of a letter shown at a place lies in a slot of the template."""

    @functools.cache
    def area(place: int, there: int) -> float:
        scale = parameters.sd(place) * math.sqrt(2)
        return (math.erf((there + 0.5 - place) / scale) - math.erf((there - 0.5 - place) / scale)) / 2

    return area
