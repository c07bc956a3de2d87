"""Whether the items that are hard for people are hard for a model, within each condition, and how much could be expected.

Over all conditions together items correlate because conditions differ; within a condition they do so because items do. No
correlation can exceed the ceiling √(reliability of people × reliability of the model), which comes from split halves of either.
A model that gave one answer an item has no halves; the ceiling then holds the people's side alone, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from analysis.answers import failures_as_wrong, judged, not_failed
from analysis.fidelity.reliability import SPLITS, Halves, halves, reliability, weighted_correlations
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

PEOPLES = ("correct", "reading_time", "rt")
MODELS = ("correct", "margin", "surprisal", "completion_tokens", "reasoning_tokens", "latency_ms")
WITHIN = "within levels"
BOOTSTRAP_SPLITS = 100
"""Splits whose halves are correlated again in every resample of items."""


@dataclass(frozen=True, eq=False)
class ItemCells:
    """One reader group's values, level by level."""

    items: tuple[str, ...]
    means: dict[str, Array]  # shape (items,): item means by level; nan where the item was not met
    halves: dict[str, Halves]  # without the levels whose units cannot be halved
    units: int  # participants, or sessions of a model


def item_cells(
    rows: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
    items: tuple[str, ...],
    seed: int,
    splits: int = SPLITS,
) -> ItemCells:
    """Average a group's values by item and level, for all its units and for random halves of them."""
    codes, units = pd.factorize(rows["unit"])
    lists = pd.factorize(rows["list"].astype(object).where(rows["list"].notna(), "-"))[0]
    strata = np.zeros(len(units), dtype=np.intp)
    strata[codes] = lists
    columns = pd.Index(items).get_indexer(pd.Index(rows["item"]))
    values = rows["value"].to_numpy(dtype=float)
    means, split = {}, {}
    for level in levels:
        own = (rows[factor] == level).to_numpy() & (columns >= 0) & np.isfinite(values)
        places, shape = (codes[own], columns[own]), (len(units), len(items))
        sums = sparse.coo_matrix((values[own], places), shape=shape).tocsr()
        counts = sparse.coo_matrix((np.ones(int(own.sum())), places), shape=shape).tocsr()
        many = np.asarray(counts.sum(axis=0)).ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            means[level] = np.asarray(sums.sum(axis=0)).ravel() / many
        if len(units) > 1 and (many > 1).sum() > 2:
            split[level] = halves(sums, counts, strata, seed, splits)
    return ItemCells(items, means, split, len(units))


def item_values(trials: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    """Return the values that items are compared by, one row a trial."""
    known = dict.fromkeys((*PEOPLES, *MODELS))
    if measure not in known:
        raise unknown_name("measure of items:", measure, known)
    used = trials["excluded_reason"].isna() & trials["item_id"].notna() & trials[factor].notna()
    if measure in ("rt", "reading_time"):
        used &= trials[f"{measure}_excluded"].isna() & (trials[measure] > 0)
        used &= not_failed(trials)
    rows = trials[used]
    if measure == "correct":
        rows = rows[judged(rows)]
        value = failures_as_wrong(rows)
    elif measure in ("margin", "surprisal"):
        value = rows[measure]
    else:
        value = pd.Series(np.log(rows[measure].where(rows[measure] > 0)), index=rows.index)
    people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    found = pd.DataFrame(
        {
            "reader_group": rows["reader_group"],
            "reader_kind": rows["reader_kind"],
            "unit": rows["reader"].where(people, rows["session_id"]),
            "list": rows["list_id"],
            "item": item_names(rows),
            factor: rows[factor],
            "value": value,
        }
    ).dropna(subset=["value"])
    if measure in ("rt", "reading_time"):
        found["value"] -= found.groupby(["reader_group", "unit"])["value"].transform("mean")
    return found


def item_means_by_level(tables: Tables, factor: str, measure: str) -> dict[str, pd.DataFrame]:
    """Return the item means that :func:`item_agreement` correlates, reader group by reader group."""
    levels = tables.levels_of(factor)
    rows = item_values(tables.trials, factor, measure)
    means = rows.groupby(["reader_group", "item", factor], observed=True)["value"].mean().unstack()
    means = means.reindex(columns=levels)
    groups = means.index.get_level_values("reader_group")
    return {group: means[groups == group].droplevel("reader_group") for group in group_order(rows)}


def item_agreement(
    tables: Tables,
    factor: str,
    measure: str = "correct",
    model_measure: str | None = None,
    *,
    splits: int = SPLITS,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Correlate people's item means with each model's, level by level."""
    levels, study = tuple(tables.levels_of(factor)), str(tables.dictionary["study"])
    asked = model_measure or measure
    for name, known in ((measure, PEOPLES), (asked, MODELS)):
        if name not in known:
            raise unknown_name("measure of items:", name, known)
    own = item_values(tables.trials, factor, measure)
    own = own[own["reader_kind"].isin(PARTICIPANT_KINDS)]
    other = item_values(tables.trials, factor, asked)
    other = other[~other["reader_kind"].isin(PARTICIPANT_KINDS)]
    if own.empty or other.empty:
        lacking = "participant" if own.empty else "model"
        raise UserError(
            f"no {lacking} has a value of {measure if own.empty else asked}", mend="Give both sides."
        )
    items = tuple(sorted(set(own["item"]) | set(other["item"])))
    cells = {}
    for rows, name in ((own, measure), (other, asked)):
        for group in group_order(rows):
            seed = stable_seed(study, "halves", name, group)
            cells[group] = item_cells(
                rows[rows["reader_group"] == group], factor, levels, items, seed, splits
            )
    random = np.random.default_rng(stable_seed(study, "items", factor, measure, asked))
    drawn = random.multinomial(len(items), np.full(len(items), 1 / len(items)), size=resamples).astype(float)
    weights = np.vstack([np.ones(len(items)), drawn])
    found = []
    for people in group_order(own):
        sure = {level: _reliabilities(cells[people], level, weights) for level in levels}
        for model in group_order(other):
            found += _rows(cells[people], cells[model], sure, weights, factor, (people, model))
    return pd.DataFrame(found)


def _reliabilities(cells: ItemCells, level: str, weights: Array) -> Array:
    """Return the reliability of one level, of all splits at first place, of fewer in every resample."""
    if level not in cells.halves:
        return np.full(len(weights), np.nan)
    made = cells.halves[level]
    few = Halves(made.first[:BOOTSTRAP_SPLITS], made.second[:BOOTSTRAP_SPLITS])
    return np.concatenate([reliability(made), reliability(few, weights[1:])])


def _rows(
    own: ItemCells,
    other: ItemCells,
    sure: dict[str, Array],
    weights: Array,
    factor: str,
    names: tuple[str, str],
) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    gathered: list[tuple[int, Array, Array, Array]] = []
    for level in own.means:
        x, y = own.means[level], other.means[level]
        both = np.isfinite(x) & np.isfinite(y)
        many = int(both.sum())
        if many < 3:
            continue
        r = weighted_correlations(x[None, :], y[None, :], weights)[:, 0]
        of_model = _reliabilities(other, level, weights)
        ranks = float(stats.spearmanr(x[both], y[both]).statistic) if np.isfinite(r[0]) else float("nan")
        row = {"people": names[0], "model": names[1], factor: level, "items": many}
        found.append(row | _told(r, sure[level], of_model) | {"rank_correlation": ranks})
        if many > 3 and np.isfinite(r[0]):
            gathered.append((many - 3, r, sure[level], of_model))
    if gathered:
        share = np.array([one[0] for one in gathered], dtype=float)
        z = np.array([np.arctanh(one[1].clip(-0.999999, 0.999999)) for one in gathered])
        r, people, model = (
            np.tanh(_averaged(z, share)),
            _averaged(np.array([one[2] for one in gathered]), share),
            _averaged(np.array([one[3] for one in gathered]), share),
        )
        row = {"people": names[0], "model": names[1], factor: WITHIN}
        row["items"] = int(
            np.isfinite(np.array([own.means[lv] + other.means[lv] for lv in own.means])).any(axis=0).sum()
        )
        found.append(row | _told(r, people, model) | {"rank_correlation": float("nan")})
    return found


def _averaged(values: Array, share: Array) -> Array:
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            (np.where(known, values, 0.0) * share[:, None]).sum(axis=0) / (known * share[:, None]).sum(axis=0)
        )


def _told(r: Array, people: Array, model: Array) -> dict[str, object]:
    """Put a correlation beside its ceiling; all shapes (1 + resamples,), the estimate first."""
    alone = not np.isfinite(model[0])
    product = people if alone else people * model
    sound = (people > 0) & (alone | (model > 0))
    ceiling = np.sqrt(np.where(sound, product, np.nan))
    with np.errstate(invalid="ignore", divide="ignore"):
        corrected = r / ceiling
    ends, top, mended = interval(r[1:]), interval(ceiling[1:]), interval(corrected[1:])
    sides = [people] if alone else [people, model]
    return {
        "correlation": float(r[0]),
        "low": ends.low,
        "high": ends.high,
        "people_reliability": float(people[0]),
        "model_reliability": float(model[0]),
        "ceiling": float(ceiling[0]),
        "ceiling_low": top.low,
        "ceiling_high": top.high,
        "ceiling_of": "people" if alone else "both",
        "corrected": float(corrected[0]),
        "corrected_low": mended.low,
        "corrected_high": mended.high,
        "unsure": any(interval(side[1:]).includes_zero for side in sides),
    }
