"""Candidates for matched sets, what they are matched on, and their covariates as whole numbers.

Everything that decides between candidates is a whole number: a covariate in thousandths of its standard deviation over
all candidates. Sums and costs are then exact, and the same candidates give the same sets on every machine.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

SMD_LIMIT = 0.10
"""Largest absolute standardised mean difference that counts as matched (Austin, 2009, Statistics in Medicine 28:3083)."""

_DIGITS = 6


@dataclass(frozen=True)
class Spread:
    """How one covariate is spread in one group: number of values, mean, sample SD, least and greatest value."""

    covariate: str
    group: str
    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class Contrast:
    """Standardised mean difference of one covariate between two groups; None where no spread makes it countable."""

    covariate: str
    one: str
    other: str
    smd: float | None

    def exceeds(self, limit: float = SMD_LIMIT) -> bool:
        """Tell whether the groups differ by more than a limit; a difference without any spread always does."""
        return self.smd is None or abs(self.smd) > limit


@dataclass(frozen=True)
class Balance:
    """Spread of every covariate in every group, and the contrast of every pair of groups."""

    spreads: tuple[Spread, ...]
    contrasts: tuple[Contrast, ...]

    def largest(self, covariate: str) -> Contrast | None:
        """Return the contrast of a covariate that is farthest from zero, or None for a single group."""
        own = [contrast for contrast in self.contrasts if contrast.covariate == covariate]
        return max(own, key=lambda one: math.inf if one.smd is None else abs(one.smd), default=None)

    def covariates(self) -> tuple[str, ...]:
        """Return the covariates in the order of the table."""
        return tuple(dict.fromkeys(spread.covariate for spread in self.spreads))


def balance(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    weights: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    overall: bool = False,
) -> Balance:
    """Describe covariates by group."""
    spreads: list[Spread] = []
    contrasts: list[Contrast] = []
    for covariate, groups in values.items():
        present = {
            group: _Values(own, None if weights is None else weights[covariate][group])
            for group, own in groups.items()
            if own
        }
        spreads += [_spread(covariate, group, own) for group, own in present.items()]
        least = (
            _Values([value for own in present.values() for value in own.values]).variance if overall else 0.0
        )
        contrasts += [
            Contrast(covariate, one, other, _difference(present[one], present[other], least))
            for one, other in itertools.combinations(present, 2)
        ]
    return Balance(tuple(spreads), tuple(contrasts))


def standardised_difference(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the standardised mean difference of two groups.

    The difference of the means over the root of the mean of both sample variances (Cohen, 1988, p. 44). Equal
    means give 0 whatever the spread; unequal means without any spread give None.
    """
    return _difference(_Values(one), _Values(other))


class _Values:
    """Values of one group with their weights, the sum of the weights, mean and sample variance."""

    def __init__(self, values: Sequence[float], weights: Sequence[float] | None = None) -> None:
        self.values = values
        if weights is None:
            self.number: float = len(values)
            self.mean = math.fsum(values) / self.number if values else 0.0
            squares = math.fsum((value - self.mean) ** 2 for value in values)
        else:
            self.number = math.fsum(weights)
            self.mean = math.fsum(map(operator.mul, values, weights)) / self.number
            squares = math.fsum(
                weight * (value - self.mean) ** 2 for value, weight in zip(values, weights, strict=True)
            )
        self.variance = squares / (self.number - 1) if self.number > 1 and len(values) > 1 else 0.0


def _difference(one: _Values, other: _Values, least: float = 0.0) -> float | None:
    mean_one, mean_other = one.mean, other.mean
    difference = mean_one - mean_other
    # A mean of equal decimals may miss them by the last bit.
    if abs(difference) <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return 0.0
    spread = math.sqrt(max((one.variance + other.variance) / 2, least))
    if spread <= 1e-12 * max(abs(mean_one), abs(mean_other), 1.0):
        return None
    return round(difference / spread, _DIGITS)


def _spread(covariate: str, group: str, own: _Values) -> Spread:
    return Spread(
        covariate,
        group,
        max(round(own.number), 1),
        round(own.mean, _DIGITS),
        round(math.sqrt(own.variance), _DIGITS),
        min(own.values),
        max(own.values),
    )


Whole = NDArray[np.int64]
Missing = Literal["error", "exclude"]
PER_SD = 1000
ROUNDING = 1e-9


@dataclass(frozen=True)
class Candidate:
    """Something that may be picked: its id, the condition that it could stand for, and its covariates."""

    id: str
    group: str
    covariates: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Tolerance:
    """How closely sets agree on a covariate."""

    # items matched with each other differ by at most this; 0 asks for the same value. None asks nothing of single
    # items. Texts match only where they are the same
    within: float | None = None
    smd: float = SMD_LIMIT  # largest absolute standardised mean difference between two sets


@dataclass(frozen=True)
class Measured:
    """Candidates in a fixed order that depends on the seed and on their ids only."""

    candidates: tuple[Candidate, ...]  # n candidates without missing covariates
    numbers: dict[str, NDArray[np.float64]]  # values of each numeric covariate
    whole: Whole  # the c numeric covariates, in thousandths of their SD from the least value
    codes: dict[str, Whole]  # a number for each text of a text-valued covariate
    excluded: tuple[tuple[str, str], ...]  # candidates left out because a covariate is missing


def tolerances(on: Mapping[str, float | Tolerance]) -> dict[str, Tolerance]:
    """Read the tolerances of a matching."""
    if not on:
        raise UserError(
            "match: no covariate is named", mend="Name one and its tolerance, such as {zipf: 0.2}."
        )
    read = {}
    for name, given in on.items():
        one = given if isinstance(given, Tolerance) else Tolerance(within=given)
        for what, value in (("tolerance", one.within), ("smd", one.smd)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0
            ):
                raise UserError(f"match: the {what} of {name} is {value!r}; it is a number from 0 upwards")
        read[name] = one
    return read


def measure(
    candidates: Sequence[Candidate], on: Mapping[str, Tolerance], *, seed: int, missing: Missing
) -> Measured:
    """Check candidates and bring them into an order that their given order does not touch."""
    twice = [name for name, number in Counter(one.id for one in candidates).items() if number > 1]
    if twice:
        raise UserError(f"match: the id {min(twice)!r} stands twice among the candidates")
    known = {name for one in candidates for name in one.covariates}
    for name in on:
        if candidates and name not in known:
            raise unknown_name("covariate", name, known or {"(none)"})
    kept, excluded = [], []
    for one in sorted(candidates, key=lambda c: (stable_seed(seed, "match order", c.id), c.id)):
        lacking = [name for name in on if _is_missing(one.covariates.get(name))]
        if lacking and missing == "error":
            raise UserError(
                f"match: candidate {one.id!r} ({one.group}) has no {lacking[0]}",
                mend=f"Fill it in, leave {lacking[0]} out of match, or exclude what lacks it with missing: exclude.",
            )
        if lacking:
            excluded.append((one.id, lacking[0]))
        else:
            kept.append(one)
    numbers: dict[str, NDArray[np.float64]] = {}
    codes: dict[str, Whole] = {}
    for name in on:
        column = [one.covariates[name] for one in kept]
        texts = [isinstance(value, str) for value in column]
        if any(texts) and not all(texts):
            odd = kept[texts.index(not texts[0])]
            raise UserError(
                f"match: {name} is {column[0]!r} for {kept[0].id!r} and {odd.covariates[name]!r} for {odd.id!r}; "
                "it is a number for all or a text for all"
            )
        if any(texts):
            place = {text: number for number, text in enumerate(sorted({str(value) for value in column}))}
            codes[name] = np.array([place[str(value)] for value in column], dtype=np.int64)
        else:
            numbers[name] = np.array([float(value) for value in column if value is not None], dtype=float)
    columns = [_whole(values) for values in numbers.values()]
    whole = np.stack(columns, axis=1) if columns else np.zeros((len(kept), 0), dtype=np.int64)
    return Measured(tuple(kept), numbers, whole, codes, tuple(sorted(excluded)))


def _is_missing(value: float | str | None) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _whole(values: NDArray[np.float64]) -> Whole:
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if spread <= ROUNDING * max(1.0, abs(mean)):
        return np.zeros(len(values), dtype=np.int64)
    steps: Whole = np.rint((values - values.min()) / spread * PER_SD).astype(np.int64)
    return steps


def allowed_between(
    measured: Measured, wanted: Mapping[str, Tolerance], one: Whole, other: Whole
) -> NDArray[np.bool_]:
    """Return which of two lists of candidates may be matched, shape (len(one), len(other))."""
    allowed = np.ones((len(one), len(other)), dtype=bool)
    for name, codes in measured.codes.items():
        if name in wanted:
            allowed &= codes[one][:, None] == codes[other][None, :]
    for name, values in measured.numbers.items():
        within = wanted[name].within if name in wanted else None
        if within is not None:
            allowed &= np.abs(values[one][:, None] - values[other][None, :]) <= within + ROUNDING
    return allowed


def distance_between(measured: Measured, wanted: Mapping[str, Tolerance], one: Whole, other: Whole) -> Whole:
    """Return the summed distance of candidates in thousandths of a standard deviation."""
    total = np.zeros((len(one), len(other)), dtype=np.int64)
    for place, name in enumerate(measured.numbers):
        if name in wanted:
            column = measured.whole[:, place]
            total += np.abs(column[one][:, None] - column[other][None, :])
    return total
