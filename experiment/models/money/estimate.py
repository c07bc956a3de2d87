"""What the rest of a run will cost, from trials that were truly asked: a total by kind of trial with its interval.

Kinds differ in length, so each is a stratum: the total is the sum over kinds of trials left times their mean cost, its
variance that of the sampled means and of the trials still to come, its degrees of freedom Satterthwaite's (Cochran, 1977,
Sampling Techniques, 5.4). A kind with one trial in the sample takes the other kinds' relative spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, variance

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """What trials that are left will cost, in US dollars."""

    trials: int  # trials left
    sampled: int  # trials from which it is estimated
    total: float  # the estimate and its 95% interval; infinite upwards where one trial alone is known
    low: float
    high: float

    def describe(self) -> dict[str, object]:
        """Return it as the record of a run keeps it; an unknown end is null."""
        return {name: None if value == math.inf else value for name, value in asdict(self).items()}


def estimate(
    costs: Mapping[str, Sequence[float]], left: Mapping[str, int], *, growth: float = 1.0
) -> Estimate | None:
    """Estimate what is left to be paid."""
    sample = {kind: list(values) for kind, values in costs.items() if values}
    everything = [cost for values in sample.values() for cost in values]
    if not everything:
        return None
    overall = fmean(everything)
    spread = _relative_spread(sample, everything)
    total = squared = satterthwaite = 0.0
    for kind, count in left.items():
        values = sample.get(kind, [])
        mean, n = (fmean(values), len(values)) if values else (overall, len(everything))
        total += count * mean
        own = variance(values) if len(values) > 1 else (None if spread is None else (spread * mean) ** 2)
        if own is None:
            squared = math.inf
            continue
        part = count * (count + n) * own / n
        squared += part
        satterthwaite += part**2 / max(1, n - 1)
    total *= growth
    if squared == math.inf:
        return Estimate(sum(left.values()), len(everything), total, 0.0, math.inf)
    half = 0.0
    if squared > 0:
        from scipy import stats

        half = float(stats.t.ppf(0.5 + LEVEL / 2, squared**2 / satterthwaite)) * math.sqrt(squared) * growth
    return Estimate(sum(left.values()), len(everything), total, max(0.0, total - half), total + half)


def _relative_spread(sample: Mapping[str, Sequence[float]], everything: Sequence[float]) -> float | None:
    """Return the spread within kinds over their means, pooled; that of all trials where no kind has two."""
    known = [values for values in sample.values() if len(values) > 1 and fmean(values) > 0]
    if known:
        weight = sum(len(values) - 1 for values in known)
        return math.sqrt(sum((len(v) - 1) * variance(v) / fmean(v) ** 2 for v in known) / weight)
    if len(everything) > 1 and fmean(everything) > 0:
        return math.sqrt(variance(everything)) / fmean(everything)
    return 0.0 if len(everything) > 1 else None
