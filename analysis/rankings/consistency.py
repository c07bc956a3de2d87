"""Whether two readers err on the same items more often than their accuracies alone would make them.

Error consistency is Cohen's kappa of being right or wrong on the same trials (Geirhos, Meding & Wichmann, 2020, Beyond accuracy:
quantifying trial-by-trial behaviour of CNNs and humans by measuring error consistency, Advances in Neural Information Processing
Systems 33, 13890-13902): kappa = (observed - expected) / (1 - expected) agreement, where the agreement expected of independent
readers is p q + (1 - p)(1 - q). Both agreements are taken within each condition and then averaged: conditions that are hard for
everyone would otherwise make errors look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.rankings.vectors import ErrorVectors
from analysis.readers import PARTICIPANT_KINDS

Array = NDArray[np.float64]
Places = NDArray[np.intp]

LEAST_CELLS = 10
"""Items in conditions that a pair of units must share."""
_LEAST_ROOM = 1e-9
_BLOCKS = 30
"""Groups of items that are left out one after the other."""


def error_consistency(vectors: ErrorVectors) -> pd.DataFrame:
    """Compare the errors of every pair of reader groups, units of one group with each other too."""
    groups = list(vectors.kinds)
    right = vectors.right.toarray()
    met = vectors.met.toarray()
    share = np.divide(right, met, out=np.zeros_like(right), where=met > 0)
    present = (met > 0).astype(float)
    blocks = vectors.items % min(_BLOCKS, int(vectors.items.max()) + 1)
    levels = int(vectors.levels.max()) + 1
    several = _sums(share, present, vectors.levels, levels)
    whole = _kappas(several)
    left_out = []
    for block in range(int(blocks.max()) + 1):
        own = blocks == block
        taken = _sums(share[:, own], present[:, own], vectors.levels[own], levels)
        left_out.append(_kappas([one - other for one, other in zip(several, taken, strict=True)]).kappa)
    rows = []
    for first, one in enumerate(groups):
        for other in groups[first:]:
            inside = _pairs(vectors, one, other)
            known = inside & np.isfinite(whole.kappa) & (whole.cells >= LEAST_CELLS)
            if not known.any():
                continue
            left = np.array([np.nanmean(one[known]) for one in left_out if np.isfinite(one[known]).any()])
            kappa = float(whole.kappa[known].mean())
            half = _jackknife(left)
            rows.append(
                {
                    "one": one,
                    "other": other,
                    "pairs": int(known.sum()),
                    "cells": float(whole.cells[known].mean()),
                    "observed": float(whole.observed[known].mean()),
                    "expected": float(whole.expected[known].mean()),
                    "kappa": kappa,
                    "low": kappa - half,
                    "high": kappa + half,
                    "highest": float(whole.highest[known].mean()),
                }
            )
    found = pd.DataFrame(rows)
    return found if found.empty else _with_ceilings(found, vectors.kinds)


@dataclass(frozen=True, eq=False)
class _Kappas:
    """Agreement of all pairs of units, shapes (units, units)."""

    cells: Array
    observed: Array
    expected: Array
    kappa: Array
    highest: Array


def _sums(share: Array, present: Array, levels: Places, many: int) -> list[Array]:
    """Return shared cells, agreements, and right answers of either side in them, shape (levels, units, units) each."""
    sums = [np.zeros((many, len(share), len(share))) for _ in range(4)]
    for level in range(many):
        own = levels == level
        x, m = share[:, own], present[:, own]
        wrong = m - x
        for place, value in enumerate((m @ m.T, x @ x.T + wrong @ wrong.T, x @ m.T, m @ x.T)):
            sums[place][level] = value
    return sums


def _kappas(sums: Sequence[Array]) -> _Kappas:
    many, agreed, first, second = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        p, q = np.nan_to_num(first / many), np.nan_to_num(second / many)
        cells = many.sum(axis=0)
        expected = (many * (p * q + (1 - p) * (1 - q))).sum(axis=0) / cells
        most = (many * (1 - np.abs(p - q))).sum(axis=0) / cells
        observed = agreed.sum(axis=0) / cells
        room = np.where(1 - expected > _LEAST_ROOM, 1 - expected, np.nan)
        return _Kappas(cells, observed, expected, (observed - expected) / room, (most - expected) / room)


def _pairs(vectors: ErrorVectors, one: str, other: str) -> NDArray[np.bool_]:
    names = np.array(vectors.groups)
    inside = (names == one)[:, None] & (names == other)[None, :]
    return np.triu(inside, 1) if one == other else inside


def _jackknife(left: Array) -> float:
    """Return half the width of the interval from estimates that leave out one block each."""
    many = len(left)
    if many < 3:
        return float("nan")
    se = float(np.sqrt((many - 1) / many * ((left - left.mean()) ** 2).sum()))
    return float(stats.t(many - 1).ppf(0.975)) * se


def _with_ceilings(found: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    alike = found[(found["one"] == found["other"]) & (found["low"] > 0)]
    own = dict(zip(alike["one"], alike["kappa"], strict=True))
    ceilings, told = [], []
    for one, other in zip(found["one"], found["other"], strict=True):
        ceiling, of = float("nan"), ""
        people = next((name for name in (one, other) if kinds[name] in PARTICIPANT_KINDS), None)
        if one != other and people is not None:
            ceiling, of = own.get(people, float("nan")), people
        elif one != other:
            product = own.get(one, float("nan")) * own.get(other, float("nan"))
            both = own.get(one, -1.0) > 0 and own.get(other, -1.0) > 0
            ceiling, of = (float(np.sqrt(product)), "both") if both else (float("nan"), "")
        ceilings.append(ceiling if ceiling > 0 else float("nan"))
        told.append(of if ceiling > 0 else "")
    return found.assign(ceiling=ceilings, ceiling_of=told)
