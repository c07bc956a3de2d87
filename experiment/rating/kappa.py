"""Cohen's kappa of two raters, weighted or not, with its standard error.

With p_ij the share of answers to which the raters gave levels i and j, margins p_i· and p_·j, and weights of agreement v_ij
(Cohen, 1960; 1968)::

    κ = (p_o − p_e) / (1 − p_e)        p_o = Σ v_ij p_ij        p_e = Σ v_ij p_i· p_·j

The standard error is that of Fleiss, Cohen and Everitt (1969)::

    n (1 − p_e)⁴ SE² = Σ p_ij [v_ij (1 − p_e) − (v̄_i· + v̄_·j)(1 − p_o)]² − (p_o p_e − 2 p_e + p_o)²
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Kappa:
    """An estimate with its standard error."""

    value: float
    se: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval, kappa ± 1.96 standard errors."""
        return self.value - NORMAL_95 * self.se, self.value + NORMAL_95 * self.se


def cohens_kappa(counts: Sequence[Sequence[int]], *, quadratic: bool) -> Kappa | None:
    """Return kappa of a table of counts, None where chance alone gives full agreement."""
    levels = range(len(counts))
    n = sum(map(sum, counts))
    p = [[counts[i][j] / n for j in levels] for i in levels]
    farthest = (len(counts) - 1) ** 2
    v = [[1 - (i - j) ** 2 / farthest if quadratic else float(i == j) for j in levels] for i in levels]
    row = [sum(p[i]) for i in levels]
    column = [sum(p[i][j] for i in levels) for j in levels]
    seen = sum(v[i][j] * p[i][j] for i in levels for j in levels)
    chance = sum(v[i][j] * row[i] * column[j] for i in levels for j in levels)
    if math.isclose(chance, 1):
        return None
    of_row = [sum(v[i][j] * column[j] for j in levels) for i in levels]
    of_column = [sum(v[i][j] * row[i] for i in levels) for j in levels]
    spread = sum(
        p[i][j] * (v[i][j] * (1 - chance) - (of_row[i] + of_column[j]) * (1 - seen)) ** 2
        for i in levels
        for j in levels
    )
    variance = (spread - (seen * chance - 2 * chance + seen) ** 2) / (n * (1 - chance) ** 4)
    return Kappa((seen - chance) / (1 - chance), math.sqrt(max(0.0, variance)))
