"""What a change of letters costs by where it is, by its kind and by its distance, for people and each model.

A cost is the difference from the intact form on the scale of :func:`analysis.fidelity.items.item_values`: shares of right
answers lost, log ratios of times and tokens, bits of surprisal. Costs are never divided by a spread. Where no item was met
intact with the same right answer, levels are told as they are (:attr:`~analysis.letters.rows.LetterRows.has_intact`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.letters.changes import AGREED, INTACT, MIXED
from analysis.letters.rows import LetterRows, letter_rows
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

BY = ("zone", "kind", "place", "place_from_end", "distance")
LOWER_IS_WORSE = ("correct", "margin")
SEPARATOR = " / "
ROUNDING = 1e-12
"""Share of the largest of its parts below which a sum of floating-point numbers is no number of its own."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupCosts:
    """What levels of changed letters cost one reader group."""

    group: str
    kind: str
    profile: Profile  # levels are named as `letter_costs` says
    items_of: dict[str, int]  # items met in each level


@dataclass(frozen=True)
class Question:
    """One contrast of kinds or places of change."""

    name: str  # in words, such as ``substitution − transposition``
    weights: dict[str, float]  # of the levels whose weighted sum is asked for

    @classmethod
    def of_pairs(cls, name: str, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Question:
        """Ask for the difference between two sides, each the mean of its levels, averaged over pairs of sides."""
        weights: dict[str, float] = {}
        for pair in pairs:
            for sign, side in zip((1, -1), pair, strict=True):
                for level in side:
                    weights[level] = weights.get(level, 0.0) + sign / len(side) / len(pairs)
        return cls(name, weights)

    @classmethod
    def of_slope(cls, name: str, places: dict[str, float]) -> Question:
        """Ask by how much the cost grows with each step of a number that belongs to the levels (least squares)."""
        middle = sum(places.values()) / len(places)
        spread = sum((one - middle) ** 2 for one in places.values())
        return cls(name, {level: (one - middle) / spread for level, one in places.items()})


def letter_costs(
    tables: Tables, by: str | Sequence[str], measure: str = "correct", *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Return costs by what was done to the letters."""
    return cost_table(_asked(tables, by, measure, resamples))


def cost_table(costs: Sequence[GroupCosts]) -> pd.DataFrame:
    """Lay out profiles as :func:`letter_costs` returns them."""
    found = []
    for one in costs:
        profile = one.profile
        for place, level in enumerate(profile.levels):
            ends = profile.interval(place)
            found.append(
                {
                    "reader_group": one.group,
                    "reader_kind": one.kind,
                    "level": level,
                    "cost": float(profile.estimate[place]),
                    "low": ends.low,
                    "high": ends.high,
                    "participants": profile.participants,
                    "items": profile.items,
                    "items_of_level": one.items_of[level],
                    "resampled": profile.resampled,
                }
            )
    return pd.DataFrame(found)


def letter_contrast(
    tables: Tables,
    first: str,
    second: str,
    by: str | Sequence[str] = "kind",
    measure: str = "correct",
    *,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Return how much more one kind of change costs than another, e.g. transposition than substitution."""
    costs = _asked(tables, by, measure, resamples)
    asked = [Question.of_pairs(f"{first} − {second}", [((first,), (second,))])]
    found = contrast_table(costs, asked).drop(columns="draws")
    if found.empty:
        seen = {level for one in costs for level in one.profile.levels}
        raise unknown_name("level of changed letters:", first if first not in seen else second, seen)
    return found


def contrast_table(costs: Sequence[GroupCosts], questions: Sequence[Question]) -> pd.DataFrame:
    """Answer questions of profiles."""
    found = []
    for question in questions:
        for one in costs:
            profile = one.profile
            if not set(question.weights) <= set(profile.levels):
                continue
            weights = np.array([question.weights.get(level, 0.0) for level in profile.levels])
            used = weights != 0
            draws = _without_noise(profile.draws[:, used] @ weights[used], profile.draws[:, used])
            ends, defined = interval(draws), draws[np.isfinite(draws)]
            p = float("nan")
            if len(defined) and np.isfinite(ends.low):
                p = min(1.0, 2 * max(min((defined >= 0).mean(), (defined <= 0).mean()), 1 / len(defined)))
            found.append(
                {
                    "reader_group": one.group,
                    "reader_kind": one.kind,
                    "contrast": question.name,
                    "difference": float(
                        _without_noise(profile.estimate[used] @ weights[used], profile.estimate[used])
                    ),
                    "low": ends.low,
                    "high": ends.high,
                    "p": p,
                    "draws": np.sort(defined),
                }
            )
    names = ["reader_group", "reader_kind", "contrast", "difference", "low", "high", "p", "draws"]
    return pd.DataFrame(found, columns=names)


def agreeing(draws: Array, level: float, significant: bool) -> tuple[float, float]:
    """Return a percentile interval that excludes 0 exactly where the bootstrap's p is below 1 - ``level``."""
    outside = max(0, math.ceil(round(len(draws) * (1 - level) / 2, 9)) - 1)
    low, high = float(draws[outside]), float(draws[-1 - outside])
    return (low, high) if significant else (min(low, 0.0), max(high, 0.0))


def _without_noise(sums: Array, parts: Array) -> Array:
    """Take sums that are nothing but the rounding of their parts as the zeros they stand for; such a sum has no sign to count."""
    largest = np.max(np.abs(parts), initial=0.0, where=np.isfinite(parts))
    return np.where(np.abs(sums) <= ROUNDING * largest, 0.0, sums)


def _asked(tables: Tables, by: str | Sequence[str], measure: str, resamples: int) -> list[GroupCosts]:
    given = letter_rows(tables, measure)
    found = group_costs(given, by, measure, str(tables.dictionary["study"]), resamples=resamples)
    if not found:
        raise UserError(
            "no reader met both intact and changed items",
            mend="Give the design a level `none` to compare with.",
        )
    return found


def group_costs(
    given: LetterRows,
    by: str | Sequence[str],
    measure: str,
    study: str,
    *,
    resamples: int = RESAMPLES,
) -> list[GroupCosts]:
    """Return the costs of every reader group that has any; see :func:`letter_costs`."""
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in BY:
            raise unknown_name("letters by:", name, BY)
    rows = _with_levels(given, names)
    if measure in LOWER_IS_WORSE:
        rows["value"] = (measure == "correct" and not given.has_intact) - rows["value"]
    found = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        levels = sorted(set(own["level"]) - {INTACT}, key=natural)
        if not given.has_intact:
            own = _beside_zero(own)
        if not levels or INTACT not in set(own["level"]):
            continue
        kind = str(own["reader_kind"].iloc[0])
        make = crossed_profile if kind in PARTICIPANT_KINDS else paired_profile
        seed = stable_seed(study, "letters", measure, *names, group)
        try:
            profile = make(own, "level", (INTACT, *levels), seed, resamples)
        except UserError:  # an item of a model has no intact form beside it
            continue
        many = own.groupby("level", observed=True)["item"].nunique().to_dict()
        found.append(GroupCosts(group, kind, profile, {level: int(many[level]) for level in levels}))
    return found


def _with_levels(given: LetterRows, names: Sequence[str]) -> pd.DataFrame:
    """Name the level of every row; rows whose changed words do not agree in what is asked for are left out."""
    rows = given.rows.copy()
    intact = rows["zone"] == INTACT
    agreed = pd.Series(True, index=rows.index)
    for name in names:
        if name in AGREED:
            agreed &= rows[f"same_{name}"].astype(bool)
        elif len(names) > 1:
            agreed &= rows[name] != MIXED
    rows, intact = rows[intact | agreed], intact[intact | agreed]
    told = [rows[name].map(lambda v: v if isinstance(v, str) else f"{v:g}") for name in names]
    level = told[0].astype(object)
    for other in told[1:]:
        level = level + SEPARATOR + other
    return rows.assign(level=level.where(~intact, INTACT))


def _beside_zero(own: pd.DataFrame) -> pd.DataFrame:
    """Put a 0 beside each item of each reader, so that a cost is the value itself."""
    changed = own[own["level"] != INTACT]
    zero = changed.drop_duplicates(["reader", "item"]).assign(level=INTACT, value=0.0)
    return pd.concat([changed, zero], ignore_index=True)


def natural(level: str) -> tuple[tuple[int, float, str], ...]:
    """Order levels: words by the alphabet, places by number."""
    parts = []
    for part in level.split(SEPARATOR):
        try:
            parts.append((0, float(part), ""))
        except ValueError:
            parts.append((1, 0.0, part))
    return tuple(parts)
