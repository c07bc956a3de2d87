"""The cost of changed letters: values by position and kind, contrasts, surprisal of parts, people compared with models."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from analysis.arrays import Array
from analysis.cluster_sampling import draw
from analysis.costs.ratios import Profile, group_profiles
from analysis.fidelity import item_values
from analysis.letters.changes import AGREED, INTACT, MIXED, letter_changes, of_forms
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name

OF_WORDS = {"time_changed": "rt", "surprisal_changed": "surprisal"}
MOST_ROWS = 200_000
"""Of one reader group; more are stood for by whole participants or sessions."""


@dataclass(frozen=True)
class LetterRows:
    """Values of a measure with what was done to the letters."""

    rows: pd.DataFrame
    has_intact: bool
    remarks: tuple[str, ...] = ()  # what was left out, and why
    why_none: str = ""  # why there is nothing intact to measure a cost from, in words; empty where there is


def letter_rows(tables: Tables, measure: str, kinds: Collection[str] | None = None) -> LetterRows:
    """Return the observations of a measure, of all readers or of readers of some kinds."""
    if measure in OF_WORDS:
        rows, remarks = _changed_words(tables, measure)
    else:
        rows, remarks = bearable(changed_trials(tables, measure), MOST_ROWS)
    if kinds is not None:
        rows = rows[rows["reader_kind"].isin(kinds)].reset_index(drop=True)
    intact = rows["zone"] == INTACT
    # intact rows of items that are also met changed with the same right answer
    key = rows["item"].astype(str) + "\n" + rows["answer"].astype(str)
    comparable = intact & key.isin(set(key[~intact]))
    if not comparable.any():
        if intact.any():
            told = "trials that show an item with its letters as they should be are left out; none was also shown changed"
            remarks = (*remarks, f"{intact.sum():,} {told} with the same right answer.")
        return LetterRows(rows[~intact].reset_index(drop=True), False, remarks, _why_none(rows))
    return LetterRows(rows[~intact | comparable].reset_index(drop=True), True, remarks)


def _why_none(rows: pd.DataFrame) -> str:
    """State why no item can be compared with its intact form: none was shown so, its answer differs, or no reader saw both."""
    intact = rows["zone"] == INTACT
    if not intact.any():
        return "No item was met intact"
    asked = set(rows.loc[intact, "answer"].dropna())
    if asked and asked.isdisjoint(rows.loc[~intact, "answer"].dropna()):
        return (
            "No item was shown intact with the same correct answer (intact items require another answer than changed ones, as words "
            "do compared with nonwords made from them)"
        )
    return "No item was met both intact and changed with the same right answer"


def changed_trials(tables: Tables, measure: str) -> pd.DataFrame:
    """Return the values of a measure, one row a trial, with what was done to the letters of its item."""
    factors = list(tables.factors)
    if not factors:
        raise UserError("the study has no factor", mend="Compare conditions that change letters differently.")
    changes = letter_changes(tables.items, factors)
    values = item_values(tables.trials, factors[0], measure)
    told = tables.trials.loc[values.index, ["set", "item_id", *factors, "reader", "session_id"]]
    told["answer"] = tables.trials.get("answer", pd.Series(None, index=told.index, dtype=object))
    rows = values.drop(columns=factors[0]).join(told)
    keys = ["set", "item_id", *factors]
    known = [name for name in keys if name in changes and changes[name].notna().any()]
    changes = changes.drop_duplicates(known).drop(
        columns=[n for n in keys if n in changes and n not in known]
    )
    rows = rows.merge(changes, on=known, how="inner")
    rows["item"] = item_names(rows)
    rows["reader"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["reader_group"])
    return rows


def _changed_words(tables: Tables, measure: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row per word that some condition changes, changed or intact, with its own place in the word."""
    column = OF_WORDS[measure]
    people = column == "rt"
    words: set[str] = set()
    for batch in tables.region_batches():
        if {"is_changed", "shown", "intact"} <= set(batch):
            words |= set(_word_names(batch[batch["is_changed"].fillna(False).astype(bool)]))
    parts = []
    for batch in tables.region_batches():
        if column not in batch or not {"is_changed", "shown", "intact"} <= set(batch):
            continue
        used = batch["excluded_reason"].isna() & batch[column].notna()
        used &= batch["reader_kind"].isin(PARTICIPANT_KINDS) == people
        if people:
            used &= batch[column] > 0
        own = batch[used]
        own = own[_word_names(own).isin(words)]
        if len(own):
            keep = ["session_id", "reader_kind", "reader", "reader_group", "shown", "intact", column]
            parts.append(own[keep].assign(item=_word_names(own)))
    if not parts:
        names = ["reader_group", "reader_kind", "unit", "reader", "item", "value", "answer", "zone", "kind"]
        return pd.DataFrame(columns=[*names, *AGREED, *(f"same_{one}" for one in AGREED)]), ()
    rows = pd.concat(parts, ignore_index=True)
    rows["unit"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["session_id"])
    rows, remarks = bearable(rows, MOST_ROWS)
    rows["value"] = np.log(rows[column]) if people else rows[column].astype(float)
    if people:
        rows["value"] -= rows.groupby(["reader_group", "unit"])["value"].transform("mean")
    rows["reader"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["reader_group"])
    told = [_of_word(str(one), str(other)) for one, other in zip(rows["intact"], rows["shown"], strict=True)]
    described = pd.DataFrame(told, index=rows.index)
    rows = rows.drop(columns=["shown", "intact", column]).join(described)
    return rows[rows["zone"].notna()].assign(answer=None).reset_index(drop=True), remarks


def bearable(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Keep whole participants or sessions, drawn by a stable hash, up to the most rows that are fitted."""
    drawn = draw(rows["reader_group"], rows["unit"], most)
    remarks = tuple(
        f"{group}: {stay:,} of {there:,} participants or sessions, drawn by a stable hash, stand for all (at most {most:,} rows)."
        for group, (stay, there) in drawn.thinned.items()
    )
    return (rows[drawn.kept] if remarks else rows), remarks


def _word_names(regions: pd.DataFrame) -> pd.Series[str]:
    return item_names(regions) + "/" + regions["region"].astype(str)


@cache
def _of_word(intact: str, shown: str) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys((*AGREED, "letters"), float("nan"))
    alike: dict[str, Any] = dict.fromkeys((f"same_{one}" for one in AGREED), True)
    if intact.lower() == shown.lower():
        return {"zone": INTACT, "kind": INTACT, **nothing, **alike}
    told = of_forms(intact, shown)
    return {"zone": None, "kind": None, **nothing, **alike} if told is None else {**told, **alike}


BY = ("zone", "kind", "place", "place_from_end", "distance")
LOWER_IS_WORSE = ("correct", "margin")
SEPARATOR = " / "
ROUNDING = 1e-12
"""Share of its largest part below which a sum of floating-point numbers counts as zero."""


@dataclass(frozen=True, eq=False)
class GroupCosts:
    """The cost of each level of changed letters for one reader group."""

    group: str
    kind: str
    profile: Profile  # levels are named as `letter_costs` says
    items_of: dict[str, int]  # items met in each level


@dataclass(frozen=True)
class LetterContrast:
    """One contrast of kinds or places of change."""

    name: str  # in words, such as ``substitution − transposition``
    weights: dict[str, float]  # of the levels whose weighted sum is asked for

    @classmethod
    def of_pairs(cls, name: str, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> LetterContrast:
        """Ask for the difference between two sides, each the mean of its levels, averaged over pairs of sides."""
        weights: dict[str, float] = {}
        for pair in pairs:
            for sign, side in zip((1, -1), pair, strict=True):
                for level in side:
                    weights[level] = weights.get(level, 0.0) + sign / len(side) / len(pairs)
        return cls(name, weights)

    @classmethod
    def of_slope(cls, name: str, places: dict[str, float]) -> LetterContrast:
        """Ask by how much the cost grows with each step of a number that belongs to the levels (least squares)."""
        middle = sum(places.values()) / len(places)
        spread = sum((place - middle) ** 2 for place in places.values())
        return cls(name, {level: (one - middle) / spread for level, one in places.items()})


def letter_costs(
    tables: Tables, by: str | Sequence[str], measure: str = "correct", *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Return costs by what was done to the letters."""
    return cost_table(_asked(tables, by, measure, resamples))


def cost_table(costs: Sequence[GroupCosts]) -> pd.DataFrame:
    """Lay out profiles as :func:`letter_costs` returns them."""
    found = [
        {
            "reader_group": one.group,
            "reader_kind": one.kind,
            "level": level,
            "cost": cost,
            "low": low,
            "high": high,
            "items_of_level": one.items_of[level],
            "is_tested": level in one.profile.tested,
            **{name: getattr(one.profile, name) for name in ("participants", "items", "resampled")},
        }
        for one in costs
        for level, cost, low, high in one.profile.costs()
    ]
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
    asked = [LetterContrast.of_pairs(f"{first} − {second}", [((first,), (second,))])]
    found = contrast_table(costs, asked).drop(columns="draws")
    if found.empty:
        seen = {level for cost in costs for level in cost.profile.levels}
        raise unknown_name("level of changed letters:", first if first not in seen else second, seen)
    return found


def contrast_table(costs: Sequence[GroupCosts], questions: Sequence[LetterContrast]) -> pd.DataFrame:
    """Answer questions of profiles."""
    names = ["reader_group", "reader_kind", "contrast", "difference", "low", "high", "p", "draws"]
    found = []
    for question, one in product(questions, costs):
        profile = one.profile
        if not set(question.weights) <= set(profile.levels):
            continue
        weights = np.array([question.weights.get(level, 0.0) for level in profile.levels])
        used = weights != 0
        parts = np.vstack([profile.estimate, profile.draws])[:, used]
        difference = float(_without_noise(parts[0] @ weights[used], parts[0]))
        draws = _without_noise(parts[1:] @ weights[used], parts[1:])
        ends, defined = interval(draws), draws[np.isfinite(draws)]
        p = float("nan")
        if len(defined) and np.isfinite(ends.low):
            p = min(1.0, 2 * max(min((defined >= 0).mean(), (defined <= 0).mean()), 1 / len(defined)))
        numbers = (difference, ends.low, ends.high, p, np.sort(defined))
        found.append((one.group, one.kind, question.name, *numbers))
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
    given: LetterRows, by: str | Sequence[str], measure: str, study: str, *, resamples: int = RESAMPLES
) -> list[GroupCosts]:
    """Return the costs of every reader group that has any; see :func:`letter_costs`."""
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in BY:
            raise unknown_name("letters by:", name, BY)
    rows = _with_levels(given, names)
    if measure in LOWER_IS_WORSE:
        rows["value"] = (measure == "correct" and not given.has_intact) - rows["value"]
    if not given.has_intact:
        # a 0 beside each item of each reader makes a cost the value itself
        changed = rows[rows["level"] != INTACT]
        zero = changed.drop_duplicates(["reader_group", "reader", "item"]).assign(level=INTACT, value=0.0)
        rows = pd.concat([changed, zero], ignore_index=True)
    levels = sorted(set(rows["level"]) - {INTACT}, key=natural)
    items = rows.groupby(["reader_group", "level"], observed=True)["item"].nunique()
    return [
        GroupCosts(group, kind, profile, {level: int(items[group, level]) for level in profile.levels})
        for group, kind, profile in group_profiles(
            rows, "level", (INTACT, *levels), (study, "cost", measure), resamples
        )
    ]


def _with_levels(given: LetterRows, names: Sequence[str]) -> pd.DataFrame:
    """Name the level of every row; rows whose changed words disagree in the properties compared are left out."""
    rows = given.rows.copy()
    intact = rows["zone"] == INTACT
    agreed = pd.Series(True, index=rows.index)
    for name in names:
        if name in AGREED:
            agreed &= rows[f"same_{name}"].astype(bool)
        elif len(names) > 1:
            agreed &= rows[name] != MIXED
    rows, intact = rows[intact | agreed], intact[intact | agreed]
    told = (rows[name].map(lambda v: v if isinstance(v, str) else f"{v:g}").astype(object) for name in names)
    level = reduce(lambda one, other: one + SEPARATOR + other, told)
    return rows.assign(level=level.where(~intact, INTACT))


def natural(level: str) -> tuple[tuple[int, float, str], ...]:
    """Order levels: words by the alphabet, places by number."""
    parts = []
    for part in level.split(SEPARATOR):
        try:
            parts.append((0, float(part), ""))
        except ValueError:
            parts.append((1, 0.0, part))
    return tuple(parts)


CHANGED, AFTER = "bits_changed", "bits_after"
_TRIAL = ["session_id", "trial_index", "attempt"]
_READ = {"is_changed", "surprisal"}


def surprisal_parts(tables: Tables) -> dict[str, Tables]:
    """Return the tables twice, with the surprisal of a part of each text instead of the whole."""
    sums = _sums(tables, _changed_regions(tables))
    if sums.empty:
        return {}
    key = pd.MultiIndex.from_frame(tables.trials[_TRIAL])
    return {
        name: replace(tables, trials=tables.trials.assign(surprisal=sums[name].reindex(key).to_numpy()))
        for name in (CHANGED, AFTER)
    }


def _changed_regions(tables: Tables) -> pd.Series[int]:
    """Return the numbers of the regions that some condition changes, by item."""
    parts = []
    for batch in tables.region_batches():
        if "is_changed" in batch:
            own = batch[batch["is_changed"].fillna(False).astype(bool)]
            parts.append(pd.DataFrame({"item": item_names(own), "region": own["region"]}).drop_duplicates())
    if not parts:
        return pd.Series(dtype=int)
    return pd.concat(parts).drop_duplicates().set_index("item")["region"].astype(int)


def _sums(tables: Tables, words: pd.Series[int]) -> pd.DataFrame:
    """Sum models' surprisal over the words of ``words`` and over the others behind the first of them, trial by trial."""
    known = pd.MultiIndex.from_arrays([words.index, words])
    first = words.groupby(level=0).min()
    parts = [pd.DataFrame(columns=[*_TRIAL, CHANGED, AFTER]).set_index(_TRIAL)]
    for batch in tables.region_batches() if len(words) else ():
        if not set(batch) >= _READ:
            continue
        own = batch[batch["surprisal"].notna() & ~batch["reader_kind"].isin(PARTICIPANT_KINDS)]
        own = own.assign(item=item_names(own))
        own = own[own["item"].isin(first.index)]
        if len(own):
            region = own["region"].astype(int)
            changed = pd.MultiIndex.from_arrays([own["item"], region]).isin(known)
            after = ~changed & (region > own["item"].map(first))
            told = {CHANGED: own["surprisal"].where(changed), AFTER: own["surprisal"].where(after)}
            parts.append(own[_TRIAL].assign(**told).groupby(_TRIAL, sort=False).sum(min_count=1))
    sums = pd.concat(parts[1:] or parts).groupby(level=_TRIAL).sum(min_count=1)
    sums = sums[sums[CHANGED].notna()]
    return sums.assign(**{AFTER: sums[AFTER].fillna(0.0)})


TIME, BITS, RIGHT = "time", "bits", "correct"
MOST_DISTANCES = 4
"""Of changes at one place; where there are more, they are told together."""


@dataclass(frozen=True)
class CostInterval:
    """One cost with the ends of its interval (nan where there is none) and the items behind it."""

    value: float
    low: float
    high: float
    items: int
    is_tested: bool = False  # whether it is reported in the Results


@dataclass(frozen=True)
class HumanModelCost:
    """The cost of one kind of change at one position for people and a model."""

    kind: str  # as `analysis.letters.letter_changes` names them
    place: str
    people: Mapping[str, CostInterval]
    model: Mapping[str, CostInterval]
    distance: str = ""  # places between the two letters, or empty: all distances together


@dataclass(frozen=True)
class HumanModelPair:
    """People and one model."""

    people: str  # reader groups, and the people's reader kind
    people_kind: str
    model: str
    rows: tuple[HumanModelCost, ...]

    @property
    def together(self) -> tuple[HumanModelCost, ...]:
        """Rows of places, all distances together."""
        return tuple(row for row in self.rows if not row.distance)

    @property
    def apart(self) -> tuple[HumanModelCost, ...]:
        """Rows of single distances, and of positions without distances."""
        split = {(row.kind, row.place) for row in self.rows if row.distance}
        return tuple(row for row in self.rows if row.distance or (row.kind, row.place) not in split)


def beside(
    times: Sequence[GroupCosts],
    of_models: Mapping[str, Sequence[GroupCosts]],
    right: Sequence[GroupCosts],
    kinds: Sequence[str],
    places: Sequence[str],
) -> list[HumanModelPair]:
    """Pair people's costs with those of each model."""
    timed = sorted(times, key=lambda time: time.kind != "human")
    bits = of_models.get(BITS, ())
    if not timed or not bits:
        return []
    who = timed[0]
    models = {one.group: one.kind for one in (*bits, *right) if one.kind == "model"}
    people = {TIME: _of(who.group, times), RIGHT: _of(who.group, right)}
    keys = [key for kind in kinds for place in places for key in _keys(people[TIME], kind, place)]
    found = []
    for model in models:
        own = {name: _of(model, costs) for name, costs in (*of_models.items(), (RIGHT, right))}
        rows = tuple(
            HumanModelCost(kind, place, _costs(people, level), _costs(own, level), distance)
            for kind, place, distance, level in keys
        )
        if any(row.model for row in rows):
            found.append(HumanModelPair(who.group, who.kind, model, rows))
    return found


def _of(group: str, costs: Sequence[GroupCosts]) -> list[GroupCosts]:
    return [cost for cost in costs if cost.group == group]


def _keys(times: Sequence[GroupCosts], kind: str, place: str) -> list[tuple[str, str, str, str]]:
    """Return kind, place, distance and level of a place that people met: all distances together, then each of several."""
    levels = [level for time in times for level in time.profile.levels]
    whole = f"{kind}{SEPARATOR}{place}"
    if whole not in levels:
        return []
    split = sorted((level for level in levels if level.startswith(whole + SEPARATOR)), key=natural)
    if place == "outer" or not 1 < len(split) <= MOST_DISTANCES:
        split = []
    return [(kind, place, "", whole), *((kind, place, one.split(SEPARATOR)[2], one) for one in split)]


def _costs(given: Mapping[str, Sequence[GroupCosts]], level: str) -> dict[str, CostInterval]:
    return {
        measure: CostInterval(value, low, high, one.items_of[level], level in one.profile.tested)
        for measure, several in given.items()
        for one in several
        for name, value, low, high in one.profile.costs()
        if name == level
    }
