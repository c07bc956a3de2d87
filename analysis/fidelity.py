"""Fidelity of a model to people: in effects, in single items as far as scores are reliable, and in the order of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from analysis.answers import failures_as_wrong, judged, not_failed
from analysis.arrays import Array, Mask
from analysis.costs.ratios import CostProfile, Profile, group_profiles
from analysis.measures.resampling import RESAMPLES, draw_units, interval, spearman_brown, with_ends
from analysis.plan import PLANNABLE, Bound, LevelDifference
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.results import Analysis, Contrast
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

SPLITS = 1000
_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class SplitHalves:
    """Item means of the two halves of many splits."""

    first: Array  # shape (splits, items); nan where no reader of that half met the item
    second: Array  # shape (splits, items)


def halves(
    sums: sparse.csr_matrix,
    counts: sparse.csr_matrix,
    strata: NDArray[np.intp],
    seed: int,
    splits: int = SPLITS,
) -> SplitHalves:
    """Deal readers into halves, again and again."""
    readers, items = sums.shape
    if readers < 2:
        subject = "one reader has" if readers == 1 else "without readers there are"
        raise UserError(
            f"{subject} no halves of readers to hold against each other, so that reliability and ceiling are unknown",
            mend="Halves need two readers at least.",
        )
    if splits < 1:
        raise UserError(f"splits: {splits}", mend="Give one split of the readers into halves at least.")
    n_splits = max(1, min(splits, _CELLS // max(items, readers)))
    random = np.random.default_rng(seed)
    in_first = np.zeros((n_splits, readers))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        ranks = random.random((n_splits, len(members))).argsort(axis=1).argsort(axis=1)
        # of an odd number the extra reader goes to either half by chance
        extra = random.integers(0, 2, size=(n_splits, 1)) * (len(members) % 2)
        in_first[:, members] = ranks < len(members) // 2 + extra
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.asarray((sums.T @ in_first.T) / (counts.T @ in_first.T)).T
        second = np.asarray((sums.T @ (1 - in_first).T) / (counts.T @ (1 - in_first).T)).T
    return SplitHalves(first, second)


def weighted_correlations(array: Array, other: Array, weights: Array) -> Array:
    """Correlate rows under several weightings of their columns."""
    present = np.isfinite(array) & np.isfinite(other)
    is_present = present.astype(float).T
    # deviations from the row's own mean keep the sums of squares small and so exact
    x, y = (np.where(present, side - row_means(side, present), 0.0).T for side in (array, other))
    n = weights @ is_present
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x, mean_y = (weights @ x) / n, (weights @ y) / n
        xx = (weights @ (x * x)) / n - mean_x**2
        yy = (weights @ (y * y)) / n - mean_y**2
        xy = (weights @ (x * y)) / n - mean_x * mean_y
        tiny = 1e-12
        return np.asarray(np.where((xx > tiny) & (yy > tiny), xy / np.sqrt(xx * yy), np.nan))


def row_means(values: Array, present: Mask) -> Array:
    """Return the mean of the present values of each row, shape (rows, 1)."""
    counts = np.maximum(present.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.where(present, values, 0.0).sum(axis=1, keepdims=True) / counts)


def reliability(split_halves: SplitHalves, weights: Array | None = None) -> Array:
    """Return the stepped-up mean correlation of halves."""
    if weights is None:
        weights = np.ones((1, split_halves.first.shape[1]))
    r = weighted_correlations(split_halves.first, split_halves.second, weights)
    is_finite = np.isfinite(r)
    with np.errstate(invalid="ignore"):
        mean = np.where(is_finite, r, 0.0).sum(axis=1) / is_finite.sum(axis=1)
    return spearman_brown(mean)


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
    halves: dict[str, SplitHalves]  # without the levels whose units cannot be halved
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
        in_level = (rows[factor] == level).to_numpy() & (columns >= 0) & np.isfinite(values)
        indices, shape = (codes[in_level], columns[in_level]), (len(units), len(items))
        sums = sparse.coo_matrix((values[in_level], indices), shape=shape).tocsr()
        counts = sparse.coo_matrix((np.ones(int(in_level.sum())), indices), shape=shape).tocsr()
        item_counts = np.asarray(counts.sum(axis=0)).ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            means[level] = np.asarray(sums.sum(axis=0)).ravel() / item_counts
        if len(units) > 1 and (item_counts > 1).sum() > 2:
            split[level] = halves(sums, counts, strata, seed, splits)
    return ItemCells(items, means, split, len(units))


def item_values(trials: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    """Return the values that items are compared by, one row a trial."""
    measures = dict.fromkeys((*PEOPLES, *MODELS))
    if measure not in measures:
        raise unknown_name("measure of items:", measure, measures)
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
    table = pd.DataFrame(
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
        table["value"] -= table.groupby(["reader_group", "unit"])["value"].transform("mean")
    return table


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
    other_measure = model_measure or measure
    for name, allowed in ((measure, PEOPLES), (other_measure, MODELS)):
        if name not in allowed:
            raise unknown_name("measure of items:", name, allowed)
    person_rows = item_values(tables.trials, factor, measure)
    person_rows = person_rows[person_rows["reader_kind"].isin(PARTICIPANT_KINDS)]
    model_rows = item_values(tables.trials, factor, other_measure)
    model_rows = model_rows[~model_rows["reader_kind"].isin(PARTICIPANT_KINDS)]
    if person_rows.empty or model_rows.empty:
        missing = "participant" if person_rows.empty else "model"
        raise UserError(
            f"no {missing} has a value of {PLANNABLE[measure if person_rows.empty else other_measure].noun}",
            mend="Give both sides.",
        )
    items = tuple(sorted(set(person_rows["item"]) | set(model_rows["item"])))
    cells = {}
    for rows, name in ((person_rows, measure), (model_rows, other_measure)):
        for group in group_order(rows):
            seed = stable_seed(study, "halves", name, group)
            cells[group] = item_cells(
                rows[rows["reader_group"] == group], factor, levels, items, seed, splits
            )
    random = np.random.default_rng(stable_seed(study, "items", factor, measure, other_measure))
    weights = np.vstack([np.ones(len(items)), draw_units(random, len(items), resamples)])
    comparisons = []
    for people in group_order(person_rows):
        reliabilities = {level: _reliabilities(cells[people], level, weights) for level in levels}
        for model in group_order(model_rows):
            comparisons += _rows(cells[people], cells[model], reliabilities, weights, factor, (people, model))
    return pd.DataFrame(comparisons)


def _reliabilities(cells: ItemCells, level: str, weights: Array) -> Array:
    """Return the reliability of one level, of all splits at first place, of fewer in every resample."""
    if level not in cells.halves:
        return np.full(len(weights), np.nan)
    all_splits = cells.halves[level]
    few_splits = SplitHalves(all_splits.first[:BOOTSTRAP_SPLITS], all_splits.second[:BOOTSTRAP_SPLITS])
    return np.concatenate([reliability(all_splits), reliability(few_splits, weights[1:])])


def _rows(
    people_cells: ItemCells,
    model_cells: ItemCells,
    reliabilities: dict[str, Array],
    weights: Array,
    factor: str,
    names: tuple[str, str],
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    by_level: list[tuple[Array, ...]] = []
    for level in people_cells.means:
        x, y = people_cells.means[level], model_cells.means[level]
        is_shared = np.isfinite(x) & np.isfinite(y)
        n_items = int(is_shared.sum())
        if n_items < 3:
            continue
        r = weighted_correlations(x[None, :], y[None, :], weights)[:, 0]
        of_model = _reliabilities(model_cells, level, weights)
        ranks = (
            float(stats.spearmanr(x[is_shared], y[is_shared]).statistic)
            if np.isfinite(r[0])
            else float("nan")
        )
        row = {"people": names[0], "model": names[1], factor: level, "items": n_items}
        rows.append(row | _told(r, reliabilities[level], of_model) | {"rank_correlation": ranks})
        if n_items > 3 and np.isfinite(r[0]):
            by_level.append((np.array(n_items - 3.0), r, reliabilities[level], of_model))
    if by_level:
        share, correlations, people, model = (np.array(part) for part in zip(*by_level, strict=True))
        r = np.tanh(_averaged(np.arctanh(correlations.clip(-0.999999, 0.999999)), share))
        met = np.isfinite(
            np.array([people_cells.means[level] + model_cells.means[level] for level in people_cells.means])
        ).any(axis=0)
        row = {"people": names[0], "model": names[1], factor: WITHIN, "items": int(met.sum())}
        summary = _told(r, _averaged(people, share), _averaged(model, share))
        rows.append(row | summary | {"rank_correlation": float("nan")})
    return rows


def _averaged(values: Array, share: Array) -> Array:
    is_finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            (np.where(is_finite, values, 0.0) * share[:, None]).sum(axis=0)
            / (is_finite * share[:, None]).sum(axis=0)
        )


def _told(r: Array, people: Array, model: Array) -> dict[str, object]:
    """Return a correlation and its ceiling; all shapes (1 + resamples,), the estimate first."""
    people_only = not np.isfinite(model[0])
    product = people if people_only else people * model
    sound = (people > 0) & (people_only | (model > 0))
    ceiling = np.sqrt(np.where(sound, product, np.nan))
    with np.errstate(invalid="ignore", divide="ignore"):
        corrected = r / ceiling
    ends, sides = interval(r[1:]), [people] if people_only else [people, model]
    return {
        "correlation": float(r[0]),
        "low": ends.low,
        "high": ends.high,
        "people_reliability": float(people[0]),
        "model_reliability": float(model[0]),
        **with_ends("ceiling", ceiling),
        "ceiling_of": "people" if people_only else "both",
        **with_ends("corrected", corrected),
        "unsure": any(interval(side[1:]).includes_zero for side in sides),
    }


def accuracy_profiles(tables: Tables, factor: str, *, resamples: int = RESAMPLES) -> list[CostProfile]:
    """Return what each level costs every reader group in accuracy (shares lost, failures wrong)."""
    return trial_profiles(tables, factor, "correct", resamples=resamples)


def trial_profiles(
    tables: Tables, factor: str, measure: str, *, resamples: int = RESAMPLES
) -> list[CostProfile]:
    """Return what each level costs every reader group that has a measure; more is worse."""
    rows = item_values(tables.trials, factor, measure).rename(columns={"unit": "reader"})
    if measure in ("correct", "margin"):
        rows["value"] = -rows["value"]
    seed = (str(tables.dictionary["study"]), "accuracy" if measure == "correct" else measure)
    found = group_profiles(rows, factor, tuple(tables.levels_of(factor)), seed, resamples)
    return [CostProfile(group, kind, measure, profile, 0) for group, kind, profile in found]


def rank_agreement(people: CostProfile, models: Sequence[CostProfile]) -> pd.DataFrame:
    """Compare the order of conditions, the intact one included, between people and each model."""
    rows = []
    for model in models:
        common = [level for level in people.profile.levels if level in model.profile.levels]
        if len(common) < 2 or people.profile.intact != model.profile.intact:
            raise UserError(
                f"{people.group} and {model.group} have {len(common) + 1} conditions in common",
                mend="An order needs three conditions.",
            )
        people_costs, model_costs = _with_intact(people.profile, common), _with_intact(model.profile, common)
        signs = _signs(people_costs) == _signs(model_costs)
        is_complete = np.isfinite(people_costs[1:]).all(axis=1) & np.isfinite(model_costs[1:]).all(axis=1)
        rows.append(
            {
                "people": people.group,
                "measure": people.measure,
                "model": model.group,
                "model_measure": model.measure,
                "levels": len(common) + 1,
                **with_ends("tau", kendall(people_costs, model_costs)),
                **with_ends("rho", spearman(people_costs, model_costs)),
                "same_order": float(signs.all(axis=1)[1:][is_complete].mean())
                if is_complete.any()
                else float("nan"),
                "by_chance": 1.0 / factorial(len(common) + 1),
            }
        )
    return pd.DataFrame(rows)


def _with_intact(profile: Profile, common: list[str]) -> Array:
    """Return the estimate and its draws with the intact level at 0, shape (1 + resamples, 1 + levels)."""
    columns = [profile.levels.index(level) for level in common]
    draws = np.vstack([profile.estimate, profile.draws])[:, columns]
    return np.column_stack([np.zeros(len(draws)), draws])


def _signs(values: Array) -> Array:
    first, second = np.triu_indices(values.shape[1], 1)
    return np.sign(values[:, first] - values[:, second])


def kendall(array: Array, other: Array) -> Array:
    """Return Kendall's tau-b of paired rows, shapes (rows, conditions); nan where a row has only ties or a nan."""
    return _cosines(_signs(array), _signs(other))


def _cosines(x: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


def spearman(array: Array, other: Array) -> Array:
    """Return Spearman's rho of paired rows, shapes (rows, conditions); nan where a row has only ties or a nan."""
    ranks = []
    for side in (array, other):
        rank = stats.rankdata(side, axis=1)
        rank[~np.isfinite(side).all(axis=1)] = np.nan
        ranks.append(rank - rank.mean(axis=1, keepdims=True))
    return _cosines(*ranks)


EQUIVALENT, DIFFERENT, BOTH, UNDECIDED = "equivalent", "different", "equivalent and different", "undecided"
NOT_ESTIMABLE = "not estimable"
POINTS, MODELLED = "points", "modelled"
_NAN = float("nan")


def effects(analysis: Analysis, people: Analysis | None = None) -> pd.DataFrame:
    """Return every contrast of the first reader group, paired with that of each other group."""
    first = people or analysis
    own_groups, groups = (
        side.plan.groups if side.plan.planned else side.groups for side in (first, analysis)
    )
    models = groups[1:] if people is None else groups
    if not models or not own_groups:
        remarks = "; ".join(analysis.remarks)
        raise UserError(
            f"{analysis.plan.name}: one reader group is no comparison",
            mend=remarks or "Give two groups in `between`.",
        )
    unit = POINTS if analysis.plan.measure.family == "binomial" else MODELLED
    contrast_of = {
        (contrast.label, contrast.groups): contrast for contrast in (*first.contrasts, *analysis.contrasts)
    }
    human = own_groups[0]
    rows = []
    for difference in analysis.plan.contrasts:
        for model in models:
            keys = ((human,), (model,), (human, model))
            contrasts = [
                contrast_of[difference.label, key] for key in keys if (difference.label, key) in contrast_of
            ]
            if len(contrasts) < len(keys):
                continue
            human_contrast, model_contrast, gap = contrasts
            rows.append(
                {
                    "contrast": difference.label,
                    "people": human,
                    "model": model,
                    "unit": unit,
                    **_ends("human", human_contrast),
                    **_ends("machine", model_contrast),
                    **_ends("difference", gap),
                    "p": gap.p_adjusted if gap.estimable else _NAN,
                    **_equivalence(gap),
                    "why": gap.left_out,
                }
            )
    return _judged(pd.DataFrame(rows), analysis.plan.alpha) if rows else pd.DataFrame()


def _equivalence(contrast: Contrast) -> dict[str, float]:
    test = contrast.equivalence
    names = ("bound", "equivalence_low", "equivalence_high", "equivalence_p")
    values = (_NAN,) * 4 if test is None else (test.half_width, test.low, test.high, test.p_adjusted)
    return dict(zip(names, values, strict=True))


def _ends(prefix: str, contrast: Contrast) -> dict[str, float]:
    values = (contrast.estimate, contrast.low, contrast.high) if contrast.estimable else (_NAN,) * 3
    return dict(zip((prefix, f"{prefix}_low", f"{prefix}_high"), values, strict=True))


def _judged(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    is_different = (rows["difference_low"] > 0) | (rows["difference_high"] < 0)
    is_equivalent = rows["equivalence_p"] < alpha
    is_estimable = rows["difference_low"].notna()
    rows["same_direction"] = np.sign(rows["human"]) == np.sign(rows["machine"])
    rows["verdict"] = np.select(
        [~is_estimable, is_equivalent & is_different, is_equivalent, is_different],
        [NOT_ESTIMABLE, BOTH, EQUIVALENT, DIFFERENT],
        UNDECIDED,
    )
    return rows


def cost_effects(
    people: CostProfile,
    models: Sequence[CostProfile],
    contrasts: Sequence[LevelDifference],
    bound: Bound | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Return differences between levels of people's and each model's cost, as log ratios."""
    if bound is not None and bound.unit != "ratio":
        raise UserError(
            f"a bound of {bound.said or bound.value} for log ratios", mend="Write it like: 10%, or 1.2 times."
        )
    rows = []
    for model in models:
        for difference in contrasts:
            people_cost, model_cost = (_contrast(side.profile, difference) for side in (people, model))
            if people_cost is None or model_cost is None:
                continue
            draws = (people_cost - model_cost)[1:]
            equivalence_interval = interval(draws, 1 - 2 * alpha)
            limit = _NAN if bound is None else bound.half_width
            p_equivalence = max(_share(draws >= limit, draws), _share(draws <= -limit, draws))
            rows.append(
                {
                    "contrast": difference.label,
                    "people": people.group,
                    "measure": people.measure,
                    "model": model.group,
                    "model_measure": model.measure,
                    "unit": "log ratio",
                    **with_ends("human", people_cost),
                    **with_ends("machine", model_cost),
                    **with_ends("difference", people_cost - model_cost),
                    "p": min(1.0, 2 * min(_share(draws >= 0, draws), _share(draws <= 0, draws))),
                    "bound": limit,
                    "equivalence_low": equivalence_interval.low,
                    "equivalence_high": equivalence_interval.high,
                    "equivalence_p": _NAN if bound is None else p_equivalence,
                }
            )
    if not rows:
        labels = ", ".join(difference.label for difference in contrasts) or "none"
        raise UserError(
            f"no contrast ({labels}) is in the profiles", mend=f"Levels: {', '.join(people.profile.levels)}."
        )
    return _judged(pd.DataFrame(rows), alpha)


def _share(is_beyond: np.ndarray, draws: np.ndarray) -> float:
    defined = np.isfinite(draws)
    if not defined.any():
        return _NAN
    return max(float(is_beyond[defined].mean()), 1.0 / int(defined.sum()))


def _contrast(profile: Profile, difference: LevelDifference) -> Array | None:
    """Return a contrast of costs and its draws, shape (1 + resamples,); None where a level is not in the profile."""
    weights = difference.level_weights
    if not set(weights) <= {profile.intact, *profile.levels}:
        return None
    costs = dict(
        zip([profile.intact, *profile.levels], _with_intact(profile, list(profile.levels)).T, strict=True)
    )
    return np.asarray(sum(weight * costs[level] for level, weight in weights.items()))
