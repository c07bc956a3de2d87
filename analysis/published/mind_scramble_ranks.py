"""How models rank in perception against completion (Mind Scramble, 2024, Table 2 against Table 1), and how well the orders agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.measures.accuracy import GROUP
from analysis.measures.resampling import interval, where_it_varies
from analysis.published.mind_scramble import Values
from analysis.published.mind_scramble_floors import drawn_worth, worth
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

FEWEST_MODELS = 3
"""Two models are in the same order or not: no correlation says more of them."""
Part = tuple[str, Values]


@dataclass(frozen=True)
class Agreement:
    """How alike two tasks order the same models."""

    completion: str
    perception: str
    models: int  # models in both; those with the same rank in both
    same: int
    tau: float
    low: float
    high: float


def ranks(parts: Sequence[Part], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Rank models by their mean over reorderings in each part, of cosines by their place above the floor."""
    groups = _models(parts, kinds)
    table = pd.DataFrame(index=pd.Index(groups, name=GROUP))
    for name, values in parts:
        table[name] = [worth(values, group) for group in groups]
        table[f"rank {name}"] = table[name].rank(ascending=False)
    return table


def alike_throughout(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the models that cannot be ranked in a part since they say the same of every text, each with the part."""
    return [
        (group, name)
        for name, values in parts
        for group in values.floors
        if kinds.get(group) == "model" and np.isnan(worth(values, group))
    ]


def not_in_all(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the models that have no mean in a part but are in another, each with the part."""
    every = dict.fromkeys(
        group for _, values in parts for group in values.of_items if kinds.get(group) == "model"
    )
    return [
        (group, name)
        for group in every
        for name, values in parts
        if group not in values.floors and not (group in values.of_items and np.isfinite(worth(values, group)))
    ]


def agreements(
    completed: Sequence[Part], perceived: Sequence[Part], kinds: Mapping[str, str]
) -> list[Agreement]:
    """Compare models' order in completion and in perception tasks; empty below three models."""
    found = []
    for one in completed:
        for other in perceived:
            groups = _models([one, other], kinds)
            if len(groups) < FEWEST_MODELS:
                continue
            table = ranks([one, other], kinds).loc[groups]
            drawn = [drawn_worth(values, groups, stable_seed(name, "ranks")) for name, values in (one, other)]
            means = [table[name].to_numpy(dtype=float)[None, :] for name, _ in (one, other)]
            ends = where_it_varies(interval(_taus(*drawn)))
            same = int((table[f"rank {one[0]}"] == table[f"rank {other[0]}"]).sum())
            found.append(
                Agreement(one[0], other[0], len(groups), same, float(_taus(*means)[0]), ends.low, ends.high)
            )
    return found


def _models(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[str]:
    """Return the models with a mean in every part."""
    return [
        group
        for group in (parts[0][1].of_items if parts else ())
        if kinds.get(group) == "model"
        and all(group in values.of_items and np.isfinite(worth(values, group)) for _, values in parts)
    ]


def _taus(one: Array, other: Array) -> Array:
    """Return Kendall's τ-b of each row of two tables, shape (rows, models) each; nan where all of a row are tied."""
    pairs = list(combinations(range(one.shape[1]), 2))
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    # what differs by less than rounding is tied
    signs = [np.sign(np.round(table[:, first] - table[:, second], 9)) for table in (one, other)]
    with np.errstate(invalid="ignore", divide="ignore"):
        untied = np.sqrt((signs[0] ** 2).sum(axis=1) * (signs[1] ** 2).sum(axis=1))
        return np.asarray((signs[0] * signs[1]).sum(axis=1) / untied)
