"""Costs by reader, item and condition as log ratios to the intact level with bootstraps, and response times by level on two scales."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import expm1
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from analysis.answers import not_failed
from analysis.arrays import Array
from analysis.cluster_sampling import draw
from analysis.costs.words import NEXT, SECOND, TARGET, KeyedSums, WordTable, region_rows, word_table
from analysis.descriptives import ConditionMean, scored
from analysis.measures.resampling import (
    FEWEST_UNITS,
    RESAMPLES,
    BootstrapInterval,
    draw_units,
    interval,
    resampled_means,
)
from analysis.measures.resampling import means as means_of
from analysis.measures.retention import COSTS, costs_of
from analysis.plan import Measure, Plan
from analysis.plan_runner import analyse_time
from analysis.random_structure import MOST_COLUMNS_BESIDE
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from analysis.results import Analysis, Contrast, as_percent, estimated_of
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

MOST_TRIALS = 20_000
"""Analysed trials of one group of participants."""

FAMILIES = ("Gamma", "inverse.gaussian")
_CONTRAST_COLUMNS = [
    *("contrast", "groups", "log_estimate", "log_low", "log_high", "log_p"),
    *("percent", "percent_low", "percent_high", "ms", "ms_low", "ms_high", "ms_p", "agree"),
]
_PERCENTS = {"percent": "log_estimate", "percent_low": "log_low", "percent_high": "log_high"}


def fewer_participants(tables: Tables, most_trials: int = MOST_TRIALS) -> tuple[Tables, tuple[str, ...]]:
    """Keep as many whole participants of each group as have together at most this many analysed trials."""
    trials = tables.trials
    people = trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used = people & trials["excluded_reason"].isna()
    drawn = draw(trials.loc[used, "reader_group"], trials.loc[used, "reader"], most_trials, fewest=2)
    if not drawn.thinned:
        return tables, ()
    dropped = pd.MultiIndex.from_frame(
        trials.loc[used, ["reader_group", "reader"]][~drawn.kept].drop_duplicates()
    )
    names = pd.MultiIndex.from_frame(trials[["reader_group", "reader"]])
    remarks = tuple(
        f"Of {n_all:,} participants, {n_kept:,} are in it, whole and drawn by a stable hash: models of more than "
        f"{most_trials:,} trials take hours and say little more."
        for n_kept, n_all in drawn.thinned.values()
    )
    return replace(tables, trials=trials[~(people & names.isin(dropped))]), remarks


PEOPLE_AND_ITEMS, ITEMS, PEOPLE = "participants and items", "items", "participants"
_CELLS = 2_000_000
"""Resamples x (participants + items) held at a time."""


@dataclass(frozen=True, eq=False)
class Profile:
    """The cost of each level compared with the first one."""

    intact: str  # the level against which costs are measured
    levels: tuple[str, ...]  # without the intact level
    estimate: Array
    draws: Array
    participants: int  # how many the estimates rest on; ``participants`` is 0 where the reader is one model
    items: int
    resampled: str  # what was drawn
    tested: Mapping[str, BootstrapInterval] = field(
        default_factory=dict
    )  # of levels that planned or exploratory analyses estimate

    def with_estimated(self, analyses: Iterable[Analysis], measure: str, group: str) -> Profile:
        """Return the profile with what analyses estimate of its levels against the intact one, as shares and log ratios."""
        estimates = estimated_of(analyses, measure, group)
        scale = 0.01 if measure == "correct" else 1.0
        return self.with_tested(
            {
                level: (scale * contrast.estimate, scale * contrast.low, scale * contrast.high)
                for level in self.levels
                if (contrast := estimates.get((level, self.intact)))
            }
        )

    def with_tested(self, tested: Mapping[str, tuple[float, float, float]]) -> Profile:
        """Return the profile with the estimates and ends that the Results have for some of its levels."""
        pairs = zip(self.levels, self.estimate, strict=True)
        estimate = np.array([tested.get(level, (value,))[0] for level, value in pairs])
        ends = {level: BootstrapInterval(low, high) for level, (_, low, high) in tested.items()}
        return replace(self, estimate=estimate, tested=ends)

    def interval(self, index: int, level: float = 0.95) -> BootstrapInterval:
        """Return the interval of one level: that of the Results, or else the percentile interval."""
        if self.levels[index] in self.tested:
            return self.tested[self.levels[index]]
        return interval(self.draws[:, index], level)

    def costs(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield each level with its cost and the ends of its interval."""
        for index, level in enumerate(self.levels):
            ends = self.interval(index)
            yield level, float(self.estimate[index]), ends.low, ends.high


@dataclass(frozen=True)
class ShownIntervals:
    """The kinds of intervals of the costs in a table or figure; as text, the words after “Costs have” in its note."""

    over_people: bool  # bootstrapped over participants and items
    over_items: bool  # bootstrapped over the items of a model
    from_analyses: bool  # those of planned and exploratory analyses

    @classmethod
    def of(cls, costs: Iterable[tuple[str, bool, float]]) -> ShownIntervals:
        """Take of each cost its reader's kind, whether an analysis estimates it, and the lower end of its interval (nan: none)."""
        shown = [
            (kind in PARTICIPANT_KINDS, is_tested) for kind, is_tested, low in costs if not np.isnan(low)
        ]
        bootstrapped = {is_person for is_person, is_tested in shown if not is_tested}
        return cls(True in bootstrapped, False in bootstrapped, any(is_tested for _, is_tested in shown))

    @property
    def is_resampled(self) -> bool:
        """Whether any interval is a bootstrap."""
        return self.over_people or self.over_items

    @property
    def _units(self) -> list[str]:
        return ["participants and items"] * self.over_people + ["a model's items"] * self.over_items

    @property
    def units(self) -> str:
        """The resampled units."""
        return ", or ".join(self._units)

    def __str__(self) -> str:
        """Name the intervals; empty where no cost has one."""
        over = ", or over ".join(self._units)
        bootstraps = f"95% percentile bootstrap intervals over {over}" if over else ""
        if self.from_analyses:
            return (
                f"{bootstraps}; differences that planned or exploratory analyses estimate have the intervals of these analyses"
                if bootstraps
                else "the intervals of the planned and exploratory analyses"
            )
        return bootstraps


def group_profiles(
    rows: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
    seed: tuple[str, ...],
    resamples: int = RESAMPLES,
) -> Iterator[tuple[str, str, Profile]]:
    """Yield each reader group with its kind and its profile, where it has an item both in the first level and in another."""
    kinds = kinds_of(rows)
    for group in group_order(rows):
        rows_of_group = rows[rows["reader_group"] == group]
        present = tuple(level for level in levels if (rows_of_group[factor] == level).any())
        if len(present) > 1 and present[0] == levels[0]:
            make = crossed_profile if kinds[group] in PARTICIPANT_KINDS else paired_profile
            with suppress(UserError):  # no item in two levels: nothing to compare
                profile = make(rows_of_group, factor, present, stable_seed(*seed, group), resamples)
                yield group, kinds[group], profile


def crossed_profile(
    rows: pd.DataFrame, factor: str, levels: tuple[str, ...], seed: int, resamples: int = RESAMPLES
) -> Profile:
    """Return the profile of participants, resampling participants and items."""
    rows = rows[rows[factor].isin(levels) & rows["value"].notna()]
    if not (rows[factor] == levels[0]).any():
        raise UserError(
            f"no value in {levels[0]!r}, the level against which costs are measured",
            mend="Give the level without a change, and trials that show it.",
        )
    readers, reader_names = pd.factorize(rows["reader"], sort=True)
    items, names_of_items = pd.factorize(rows["item"], sort=True)
    shape = (len(reader_names), len(names_of_items))
    sums, counts = [], []
    for level in levels:
        in_level = (rows[factor] == level).to_numpy()
        indices = (readers[in_level], items[in_level])
        data = rows["value"].to_numpy(dtype=float)[in_level]
        sums.append(sparse.coo_matrix((data, indices), shape=shape).tocsr())
        counts.append(sparse.coo_matrix((np.ones(len(data)), indices), shape=shape).tocsr())
    estimate = _of_weights(sums, counts, np.ones((1, shape[0])), np.ones((1, shape[1])))[0]
    if min(shape) < FEWEST_UNITS:
        draws = np.full((resamples, len(levels) - 1), np.nan)
        return Profile(levels[0], levels[1:], estimate, draws, *shape, PEOPLE_AND_ITEMS)
    random = np.random.default_rng(seed)
    at_once = max(1, _CELLS // sum(shape))
    drawn = []
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        person_weights, item_weights = (draw_units(random, units, count) for units in shape)
        drawn.append(_of_weights(sums, counts, person_weights, item_weights))
    return Profile(levels[0], levels[1:], estimate, np.concatenate(drawn), *shape, PEOPLE_AND_ITEMS)


def paired_profile(
    rows: pd.DataFrame, factor: str, levels: tuple[str, ...], seed: int, resamples: int = RESAMPLES
) -> Profile:
    """Return the profile of one model, whose items are their own controls; items are resampled."""
    rows = rows[rows[factor].isin(levels) & rows["value"].notna()]
    means = rows.pivot_table(index="item", columns=factor, values="value", aggfunc="mean", observed=True)
    table = means.reindex(columns=list(levels)).to_numpy(dtype=float)
    differences = table[:, 1:] - table[:, :1]
    usable = differences[np.isfinite(differences).any(axis=1)]
    if not len(usable):
        raise UserError(
            f"no item has a value both in {levels[0]!r} and in another level",
            mend="Give the level without a change, and items that are shown in several levels.",
        )
    draws = resampled_means(usable, seed, resamples)
    return Profile(levels[0], levels[1:], means_of(usable), draws, 0, len(usable), ITEMS)


def _of_weights(sums: list[sparse.csr_matrix], counts: list[sparse.csr_matrix], w: Array, v: Array) -> Array:
    """Return the profile under weights of participants ``w`` (resamples, P) and items ``v`` (resamples, I)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.asarray((s @ v.T) / (n @ v.T)).T for s, n in zip(sums, counts, strict=True)]
        profile = []
        for mean in means[1:]:
            difference = mean - means[0]
            present = np.isfinite(difference) * w
            profile.append((np.where(present > 0, difference, 0.0) * w).sum(axis=1) / present.sum(axis=1))
    return np.column_stack(profile)


MEASURES_OF_PEOPLE = ("reading_time", "rt", "time_changed", "time_after")
OF_WORDS = ("surprisal_changed", "surprisal_after")
MEASURES_OF_MODELS = (*COSTS, *OF_WORDS)
_NAMED = json.loads(Path(__file__).with_name("measures.json").read_text("utf-8"))["measures"]
UNITS: dict[str, str] = {name: entry["unit"] for name, entry in _NAMED.items()}
TITLES: dict[str, str] = {name: entry["title"] for name, entry in _NAMED.items()}
"""What tables and figures call the measures."""
_OF_TRIALS = (
    *("reader_group", "reader_kind", "set", "item_id", "excluded_reason", "timed", "latency_ms", "ttft_ms"),
    *("prompt_tokens", "completion_tokens", "reasoning_tokens", "surprisal", "cost_usd"),
)
_COLUMNS = ["measure", "reader_group", "reader_kind", "reader", "item"]


@dataclass(frozen=True)
class UnitCosts:
    """Costs by reader, item and condition."""

    rows: pd.DataFrame
    factor: str
    levels: tuple[str, ...]  # the intact one first
    remarks: tuple[str, ...]  # what could not be measured, and why


def unit_costs(
    tables: Tables, factor: str, table: WordTable | None = None, *, of_words: bool = True
) -> UnitCosts:
    """Collect all costs that a study recorded."""
    levels = tables.levels_of(factor)
    parts = [_times(tables, factor, name) for name in ("reading_time", "rt")]
    machines = ~tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)
    of_models = tables.trials.loc[machines, [*_OF_TRIALS, factor]]
    parts += [_of_models(of_models, factor, name) for name in COSTS]
    remarks: tuple[str, ...] = ()
    try:
        parts += [_of_words(tables, factor, table)] if of_words else []
    except UserError as error:
        remarks = (f"No costs of single words: {error.message}.",)
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return UnitCosts(rows, factor, tuple(levels), remarks)


def timed_trials(trials: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    """Return the used trials of people with a valid answer to an item and a time within the study's bounds."""
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used &= not_failed(trials) & trials["item_id"].notna() & trials[f"{measure}_excluded"].isna()
    columns = ["reader_group", "reader_kind", "reader", "set", "item_id", factor, measure]
    return trials.loc[used & (trials[measure] > 0), columns]


def _times(tables: Tables, factor: str, measure: str) -> pd.DataFrame:
    rows = timed_trials(tables.trials, factor, measure)
    rows = rows[rows[factor].notna()]
    rows = rows.assign(measure=measure, item=item_names(rows), value=np.log(rows[measure]))
    means = _averaged(rows, factor, "value")
    means["cost"] = np.exp(means["value"])
    return means


def _of_models(machines: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    rows = costs_of(machines, measure)
    rows = rows[rows[factor].notna()]
    rows = rows.assign(reader=rows["reader_group"], measure=measure, item=item_names(rows))
    return _logged(_averaged(rows, factor, "cost"))


def _of_words(tables: Tables, factor: str, table: WordTable | None) -> pd.DataFrame:
    table = word_table(tables, factor) if table is None else table
    sums = KeyedSums([*_COLUMNS, factor])
    for batch in region_rows(tables, table):
        rows = batch[batch["zone"].notna() & batch[factor].notna()]
        people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
        part = rows["zone"].map({TARGET: "changed", NEXT: "after", SECOND: "after"})
        rows = rows.assign(
            measure=np.where(people, "time_", "surprisal_") + part,
            reader=rows["reader"].where(people, rows["reader_group"]),
            item=item_names(rows),
            number=np.where(people, np.log(rows["rt"].where(rows["rt"] > 0)), rows["surprisal"]),
        )
        sums.add(rows, "number")
    cells = sums.table
    cells["mean"] = cells.pop("sum") / cells["count"]
    cells = cells.rename(columns={"count": "trials"})
    people = cells["reader_kind"].isin(PARTICIPANT_KINDS)
    cells["cost"] = np.where(people, np.exp(cells["mean"].where(people)), cells["mean"])
    return _logged(cells.drop(columns="mean"))


def _averaged(rows: pd.DataFrame, factor: str, name: str) -> pd.DataFrame:
    cells = rows.groupby([*_COLUMNS, factor], sort=False)[name].agg(["mean", "count"]).reset_index()
    return cells.rename(columns={"mean": name, "count": "trials"})


def _logged(rows: pd.DataFrame) -> pd.DataFrame:
    rows["value"] = np.log(rows["cost"].where(rows["cost"] > 0))
    return rows


@dataclass(frozen=True)
class CostProfile:
    """The cost profile of one reader group in one measure."""

    group: str
    kind: str
    measure: str
    profile: Profile  # log ratios
    without: int  # cells of reader, item and level that have no logarithm, since they cost 0

    @property
    def names(self) -> dict[str, str]:
        """Its name in the rows of tables."""
        return {"measure": self.measure, "reader_group": self.group, "reader_kind": self.kind}

    @property
    def varies(self) -> bool:
        """Whether any level costs more or less than the intact one."""
        return bool(np.nanmax(np.abs(self.profile.estimate), initial=0.0) > 1e-9)

    @property
    def scaled(self) -> tuple[Array, Array]:
        """The profile and its draws, each divided by its own mean over the levels: shapes (k,) and (resamples, k)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = self.profile.estimate / self.profile.estimate.mean()
            return estimate, self.profile.draws / self.profile.draws.mean(axis=1, keepdims=True)


def cost_profiles(costs: UnitCosts, *, study: str = "", resamples: int = RESAMPLES) -> list[CostProfile]:
    """Return every reader group's profile in every measure that it has intact and in another level."""
    results = []
    for measure, rows in costs.rows.groupby("measure", sort=False):
        logged, missing = rows[rows["value"].notna()], rows.loc[rows["value"].isna(), "reader_group"]
        seed = (study, "cost", str(measure))
        for group, kind, profile in group_profiles(logged, costs.factor, costs.levels, seed, resamples):
            results.append(CostProfile(group, kind, str(measure), profile, int((missing == group).sum())))
    return results


@dataclass(frozen=True)
class LevelCost:
    """The cost of one level for one reader group."""

    group: str
    kind: str
    level: str
    cost: float  # percentage points of accuracy lost, or percent of time added
    low: float  # ends of its 95% interval; nan where there is none
    high: float
    is_tested: bool = False  # whether cost and interval are those of the Results


def costs_by_level(
    trials: pd.DataFrame,
    measure: Measure,
    factor: str,
    levels: tuple[str, ...],
    study: str,
    analyses: Sequence[Analysis] = (),
) -> list[LevelCost]:
    """Return the cost of every level but the reference for every reader group, as analyses estimate it where they do."""
    rows = scored(trials[trials[factor].notna()], measure)
    rows = rows[["reader_group", "reader_kind", "reader", "set", "item_id", factor, "value"]]
    rows = rows.assign(item=item_names(rows))
    rows = rows[rows["reader_kind"].isin(PARTICIPANT_KINDS)] if measure.logged else rows
    costs = []
    for group, kind, profile in group_profiles(rows, factor, levels, (study, "cost", measure.name)):
        estimated = profile.with_estimated(analyses, measure.name, group)
        for level, *values in estimated.costs():
            cost, *ends = [as_percent(value) if measure.logged else -100 * value for value in values]
            if np.isfinite(cost):
                low, high = sorted(ends)
                costs.append(LevelCost(group, kind, level, cost, low, high, level in estimated.tested))
    return costs


def log_ratios(measured: list[CostProfile], factor: str) -> pd.DataFrame:
    """Return the log ratios as a table."""
    rows = [
        {
            **profile.names,
            "unit": UNITS[profile.measure],
            factor: level,
            "log_ratio": estimate,
            "low": low,
            "high": high,
            "is_tested": level in profile.profile.tested,
            "percent": 100 * float(np.expm1(estimate)),
            **{name: getattr(profile.profile, name) for name in ("participants", "items", "resampled")},
            "without": profile.without,
        }
        for profile in measured
        for level, estimate, low, high in profile.profile.costs()
    ]
    return pd.DataFrame(rows)


def profiles(
    measured: list[CostProfile], factor: str, reference: tuple[str, str] | None = None
) -> pd.DataFrame:
    """Return profiles scaled to their own mean, each paired with that of the reference reader."""
    usual = [
        profile
        for profile in measured
        if profile.kind in PARTICIPANT_KINDS and len(profile.profile.levels) > 1
    ]
    requested = [profile for profile in measured if (profile.group, profile.measure) == reference]
    chosen = next(iter(usual if reference is None else requested), None)
    if chosen is None and reference is not None:
        available = ", ".join(f"{profile.group} {profile.measure}" for profile in measured)
        raise UserError(f"no profile of {reference[0]} in {reference[1]}", mend=f"There are: {available}.")
    rows = []
    for profile in measured:
        if len(profile.profile.levels) < 2:
            continue
        scaled, draws = profile.scaled
        mean = interval(profile.profile.draws.mean(axis=1))
        other, other_draws = scaled * np.nan, draws * np.nan
        if chosen is not None and chosen is not profile and chosen.profile.levels == profile.profile.levels:
            other, other_draws = chosen.scaled
        for index, level in enumerate(profile.profile.levels):
            ends, difference = interval(draws[:, index]), interval(draws[:, index] - other_draws[:, index])
            rows.append(
                {
                    **profile.names,
                    factor: level,
                    "scaled": float(scaled[index]),
                    "low": ends.low,
                    "high": ends.high,
                    "mean_log_ratio": float(profile.profile.estimate.mean()),
                    "mean_low": mean.low,
                    "mean_high": mean.high,
                    "unsure": mean.includes_zero,
                    "difference": float(scaled[index] - other[index]),
                    "difference_low": difference.low,
                    "difference_high": difference.high,
                }
            )
    return pd.DataFrame(rows)


SPENT = ("reading_time", "rt", "reasoning_tokens", "completion_tokens", "latency_ms", "prompt_tokens")
"""What answering takes; the first that a reader has and that differs between conditions is shown."""
BITS = ("surprisal", "surprisal_after", "surprisal_changed")


def shown_profiles(measured: Sequence[CostProfile]) -> list[CostProfile]:
    """Choose at most one of :data:`SPENT` and one of :data:`BITS` for each reader's figures."""
    chosen: list[CostProfile] = []
    for group in dict.fromkeys(profile.group for profile in measured):
        by_measure = {profile.measure: profile for profile in measured if profile.group == group}
        kinds = [[by_measure[name] for name in names if name in by_measure] for names in (SPENT, BITS)]
        varied = [[profile for profile in options if profile.varies] for options in kinds]
        varying = [options[0] for options in varied if options]
        chosen += varying or [options[0] for options in kinds if options][:1]
    return chosen


def cost_and_accuracy(
    shown: Sequence[CostProfile], cells: Sequence[ConditionMean], factor: str
) -> pd.DataFrame:
    """Pair each reader's log ratio of cost with the proportion correct, condition by condition."""
    right = {(cell.group, cell.level): cell for cell in cells}
    nan = float("nan")
    rows = []
    for profile in shown:
        for level, ratio, low, high in ((profile.profile.intact, 0.0, nan, nan), *profile.profile.costs()):
            cell = right.get((profile.group, level))
            if cell is not None and np.isfinite(ratio):
                costs = {"log_ratio": ratio, "cost_low": low, "cost_high": high}
                costs["is_tested"] = level in profile.profile.tested
                accuracy = {"correct": cell.mean, "correct_low": cell.low, "correct_high": cell.high}
                rows.append({**profile.names, factor: level, **costs, **accuracy})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class TimeScales:
    """One comparison of times on both scales."""

    log: Analysis  # of log times, and of milliseconds
    own: Analysis
    table: pd.DataFrame


def time_scales(
    plan: Plan, tables: Tables, family: str = "Gamma", *, on_log: Analysis | None = None
) -> TimeScales:
    """Carry out a plan of ``rt`` or ``reading_time`` on both scales."""
    if plan.measure.unit != "ms":
        raise UserError(f"{plan.measure.noun} is no time", mend="Give a plan of rt or reading_time.")
    if family not in FAMILIES:
        raise UserError(f"family {family!r} for times", mend=f"Choose among {', '.join(FAMILIES)}.")
    name = plan.measure.name
    logged = replace(plan.measure, family="gaussian", logged=True, response=f"log_{name}", link=None)
    raw_measure = Measure(name, plan.measure.title, plan.measure.noun, family, False, "ms", name, "identity")
    if on_log is None:
        on_log = analyse_time(replace(plan, measure=logged), tables, most_columns=MOST_COLUMNS_BESIDE)
    # a bound is a ratio: it belongs to the log scale alone
    plain = replace(plan, name=f"{plan.name} (ms)", measure=raw_measure, equivalence=None)
    on_own = analyse_time(plain, tables, most_columns=MOST_COLUMNS_BESIDE)
    return TimeScales(on_log, on_own, _beside(on_log, on_own))


def _beside(on_log: Analysis, on_own: Analysis) -> pd.DataFrame:
    others = {(contrast.label, contrast.groups): contrast for contrast in on_own.contrasts}
    rows = []
    for contrast in on_log.contrasts:
        other = others.get((contrast.label, contrast.groups))
        log = _numbers(contrast, "log", "log_estimate")
        names = {
            "contrast": contrast.label,
            "groups": " − ".join(contrast.groups),
            "agree": _verdict(contrast, other),
        }
        percents = {prefix: 100 * expm1(log[name]) for prefix, name in _PERCENTS.items()}
        rows.append({**names, **log, **percents, **_numbers(other, "ms", "ms")})
    return pd.DataFrame(rows, columns=_CONTRAST_COLUMNS)


def _numbers(contrast: Contrast | None, prefix: str, first: str) -> dict[str, float]:
    nan = float("nan")
    values = (
        (contrast.estimate, contrast.low, contrast.high, contrast.p)
        if contrast is not None and contrast.estimable
        else (nan,) * 4
    )
    return dict(zip((first, f"{prefix}_low", f"{prefix}_high", f"{prefix}_p"), values, strict=True))


def _verdict(contrast: Contrast, other: Contrast | None) -> str:
    if other is None or not (contrast.estimable and other.estimable):
        return "not estimable"
    first, second = (int(test.low > 0) - int(test.high < 0) for test in (contrast, other))
    if first == second:
        return "same"
    return "opposite" if first * second < 0 else "one scale only"


PERCENTILES = (5, 10, 25, 50, 75, 90, 95)
_BINS = 512


@dataclass(frozen=True, eq=False)
class TimeSpread:
    """The times of one group of participants in one condition."""

    group: str
    kind: str
    measure: str
    level: str
    percentiles: Array  # shape (7,): of all times together, ms; `PERCENTILES`
    medians: Array  # shape (participants,): of each participant, ms
    grid: Array
    density: Array  # shape (bins,)
    trials: int


def time_spreads(tables: Tables, factor: str, measure: str) -> list[TimeSpread]:
    """Describe each group's times in every level: valid answers within the study's bounds."""
    rows = timed_trials(tables.trials, factor, measure)
    kinds = kinds_of(rows)
    spreads = []
    for group, level in product(group_order(rows), tables.levels_of(factor)):
        cell = rows[(rows["reader_group"] == group) & (rows[factor] == level)]
        if len(cell):
            times = cell[measure].to_numpy(dtype=float)
            medians = cell.groupby("reader")[measure].median().to_numpy(dtype=float)
            ends, (grid, density) = np.percentile(times, PERCENTILES), log_density(times)
            spread = TimeSpread(group, kinds[group], measure, level, ends, medians, grid, density, len(times))
            spreads.append(spread)
    return spreads


def log_density(times: Array) -> tuple[Array, Array]:
    """Return a grid of times and the density of their logarithms there: counts in bins, smoothed."""
    logs = np.log(times)
    spread = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
    iqr = float(np.subtract(*np.percentile(logs, [75, 25]))) / 1.349
    smallest = min(value for value in (spread, iqr, np.inf) if value > 0)
    width = 0.9 * smallest * len(logs) ** -0.2 if np.isfinite(smallest) else 0.02
    edges = np.linspace(logs.min() - 4 * width, logs.max() + 4 * width, _BINS + 1)
    step = float(edges[1] - edges[0])
    counts, _ = np.histogram(logs, edges)
    radius = max(1, min(_BINS // 2 - 1, int(np.ceil(4 * width / step))))
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    middles = (edges[:-1] + edges[1:]) / 2
    return np.exp(middles), smooth / (len(logs) * step)
