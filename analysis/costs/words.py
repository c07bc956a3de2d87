"""Reading times and surprisal word by word: profiles around a changed word, spill-over, and surprisal linked to times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from analysis import apa
from analysis.arrays import Array
from analysis.cluster_sampling import place_in_order
from analysis.descriptives import OVER_ITEMS
from analysis.estimation import SimplificationResult, climb, slopes
from analysis.frames import indicator
from analysis.heldout import FOLDS, OutcomeModel, compete
from analysis.intervals import over_items, within_participant_half_widths
from analysis.mixed import fit, margins
from analysis.names import upper_first
from analysis.readers import PARTICIPANT_KINDS, group_order, spoken
from analysis.regions import NAMES, frequency_of, letters_in
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

TARGET, NEXT, SECOND = ZONES = ("target", "target + 1", "target + 2")
"""The changed word, the first and the second intact word after it."""

_COVARIATES = {
    "letters": "the length of a word",
    "zipf": "the frequency of a word",
    "previous_letters": "the length of the word before it",
    "previous_zipf": "the frequency of the word before it",
}
COVARIATES = tuple(_COVARIATES)
SPILLED = ("previous_letters", "previous_zipf", "second_letters", "second_zipf")
_KEY = ["set", "item_id"]


@dataclass(frozen=True)
class WordTable:
    """The words of a study."""

    words: pd.DataFrame
    factor: str  # the factor whose levels change words
    levels: tuple[str, ...]  # its levels, the intact one first
    factors: tuple[str, ...]  # all factors of the study

    @property
    def on(self) -> list[str]:
        """The columns by which a region finds its word."""
        return [*_KEY, *self.factors, "region"]


def word_table(tables: Tables, factor: str) -> WordTable:
    """Collect the words of a study from its regions."""
    factors, levels = tables.factors, tables.levels_of(factor)
    names = [*_KEY, *factors, "region"]
    parts: list[pd.DataFrame] = []
    for batch in used_regions(tables):
        if batch["region"].isna().any():
            raise UserError(
                "regions.parquet: a region has no number", mend="Number regions from 0 in a trial."
            )
        parts.append(batch[[*names, "shown", "intact", "is_changed"]].drop_duplicates(names))
        if len(parts) > 8:
            parts = [pd.concat(parts, ignore_index=True).drop_duplicates(names)]
    if not parts:
        raise UserError(
            "no word has its own time or surprisal",
            mend="Let people read with `as: moving_window`, and models give surprisal (see docs/trials.md).",
        )
    words = pd.concat(parts, ignore_index=True).drop_duplicates(names).sort_values(names, ignore_index=True)
    words["is_changed"] = words["is_changed"].fillna(False).astype(bool)
    if not words["is_changed"].any():
        raise UserError(
            "no region is marked as changed, so no word is a target",
            mend="Compare conditions that change words.",
        )
    words["word"] = (
        words["set"].astype(str) + "/" + words["item_id"] + "/" + words["region"].map("{:g}".format)
    )
    words["zone"] = _zones(words, [*_KEY, *factors], factor, levels[0])
    _describe(words, list(factors), str(tables.dictionary["language"]))
    return WordTable(words, factor, tuple(levels), tuple(factors))


def used_regions(tables: Tables) -> Iterator[pd.DataFrame]:
    """Yield the regions of trials with an item whose own and whose trial's reason is empty, batch by batch."""
    for batch in tables.region_batches():
        regions = batch[batch["excluded_reason"].isna() & batch["item_id"].notna()].copy()
        if not len(regions):
            continue
        for name in ("rt", "surprisal"):
            regions[name] = pd.to_numeric(regions[name]).astype(float) if name in regions else np.nan
        regions["region"] = pd.to_numeric(regions["region"]).astype(float)
        yield regions


def region_rows(tables: Tables, table: WordTable) -> Iterator[pd.DataFrame]:
    """Yield the used regions with all that is known of their words, batch by batch."""
    word_columns = ["shown", "intact", "is_changed"]
    for batch in used_regions(tables):
        yield batch.drop(columns=[n for n in word_columns if n in batch]).merge(
            table.words, on=table.on, how="left"
        )


class KeyedSums:
    """Sums and counts of a number by keys, added up batch by batch."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = list(keys)
        self._parts: list[pd.DataFrame] = []

    def add(self, rows: pd.DataFrame, name: str) -> None:
        """Add the numbers of a column that are there."""
        cells = rows[rows[name].notna()].groupby(self._keys, dropna=False, sort=False)[name]
        self._parts.append(cells.agg(["sum", "count"]).reset_index())
        if len(self._parts) > 8:
            self._parts = [self.table]

    @property
    def table(self) -> pd.DataFrame:
        """A row for each combination of keys, with ``sum`` and ``count``."""
        if not self._parts:
            return pd.DataFrame(columns=[*self._keys, "sum", "count"])
        parts = pd.concat(self._parts, ignore_index=True)
        return parts.groupby(self._keys, dropna=False, sort=False)[["sum", "count"]].sum().reset_index()


def _zones(words: pd.DataFrame, cell: list[str], factor: str, intact: str) -> pd.Series[str]:
    """State of every word how far behind a changed one it stands."""
    changed_anywhere = words.groupby([*_KEY, "region"], dropna=False)["is_changed"].transform("any")
    target = words["is_changed"].where(words[factor] != intact, changed_anywhere)
    cell_code = words.groupby(cell, dropna=False, sort=False).ngroup()
    follows = (words["region"].diff() == 1) & (cell_code.diff() == 0)
    first = target.shift(1, fill_value=False) & follows
    second = target.shift(2, fill_value=False) & follows & follows.shift(1, fill_value=False)
    zones = np.select([target, first, second], np.array(ZONES, dtype=object), default="")
    return pd.Series(zones, index=words.index, dtype=object).replace("", None)


def _describe(words: pd.DataFrame, factors: list[str], language: str) -> None:
    letters = {text: letters_in(text) for text in words["shown"].dropna().unique()}
    frequency = {text: frequency_of(text, language) for text in words["intact"].dropna().unique()}
    words["letters"] = words["shown"].map(letters).astype(float)
    words["zipf"] = words["intact"].map(frequency).astype(float)
    words["place"] = words["region"]
    cells = words.groupby([*_KEY, *factors], dropna=False, sort=False)
    for lag, prefix in ((1, "previous"), (2, "second")):
        is_adjacent = words["region"] - cells["region"].shift(lag) == lag
        for name in ("letters", "zipf"):
            words[f"{prefix}_{name}"] = cells[name].shift(lag).where(is_adjacent)


BEFORE, AFTER = 2, 3
TIME, SURPRISAL = "time", "surprisal"
WITHIN_PARTICIPANTS, WITHIN_ITEMS, NONE = "within participants", "within items", "none"


@dataclass(frozen=True)
class ReadingProfile:
    """Means by place around a changed word, or around the first word of a named region."""

    table: pd.DataFrame
    factor: str
    levels: tuple[str, ...]  # the one against which costs are measured first
    # the first place of each named region, and the one after its last, in most items; empty around changed words
    regions: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def reading_profile(tables: Tables, factor: str, table: WordTable | None = None) -> ReadingProfile:
    """Average times and surprisal by place, with intervals by Cousineau (2005) and Morey (2008)."""
    table = word_table(tables, factor) if table is None else table
    table = replace(table, words=table.words.assign(at=places(table)))
    return ReadingProfile(_by_place(region_rows(tables, table), factor, table.levels), factor, table.levels)


def region_profile(tables: Tables, factor: str, region: str) -> ReadingProfile:
    """Average times and surprisal by place around the first word of a named region, as :func:`reading_profile` does.

    A place has means where at least half of the items have a word there; it reaches two words beyond all named regions.
    """
    on, levels = [*_KEY, *tables.factors], tuple(tables.levels_of(factor))
    parts = []
    for batch in used_regions(tables):
        if NAMES in batch:
            named = batch.loc[batch[NAMES].notna(), [*on, "region", NAMES]].drop_duplicates()
            parts.append(named.assign(name=named[NAMES].str.split(",")).explode("name"))
    words = pd.concat(parts, ignore_index=True).drop_duplicates() if parts else pd.DataFrame()
    if words.empty or not (words["name"] == region).any():
        return ReadingProfile(_by_place(iter(()), factor, levels), factor, levels)
    first = (
        words[words["name"] == region].groupby(on, dropna=False)["region"].min().rename("first").reset_index()
    )
    words = words.merge(first, on=on)
    spans = (words["region"] - words["first"]).groupby([words[name] for name in [*on, "name"]], dropna=False)
    ends = pd.DataFrame({"first": spans.min(), "end": spans.max() + 1}).reset_index("name")
    regions = {
        str(name): (int(rows["first"].mode()[0]), int(rows["end"].mode()[0]))
        for name, rows in ends.groupby("name", sort=False)
    }
    reach = min(begin for begin, _ in regions.values()) - BEFORE, max(end for _, end in regions.values()) + 1

    def placed() -> Iterator[pd.DataFrame]:
        for batch in used_regions(tables):
            rows = batch.merge(first, on=on)
            rows["at"] = rows["region"] - rows["first"]
            yield rows[rows["at"].between(*reach)]

    table = _by_place(placed(), factor, levels)
    common = table.groupby("place")["words"].transform("sum")
    return ReadingProfile(table[common >= common.max() / 2], factor, levels, regions)


def _by_place(batches: Iterator[pd.DataFrame], factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    """Average the words of batches by their place in the column ``at``."""
    keys = ["measure", "reader_group", "reader_kind", "unit", factor, "at"]
    sums = KeyedSums(keys)
    for batch in batches:
        rows = batch[batch["at"].notna() & batch[factor].notna()]
        people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
        rows = rows.assign(
            measure=np.where(people, TIME, SURPRISAL),
            unit=rows["reader"].where(people, item_names(rows)),
            value=np.where(people, rows["rt"].where(rows["rt"] > 0), rows["surprisal"]),
        )
        sums.add(rows, "value")
    columns = [*keys[:3], factor, "place", "mean", "low", "high", "interval", "units", "words"]
    cells = sums.table
    if cells.empty:
        return pd.DataFrame(columns=columns)
    cells["value"] = cells["sum"] / cells["count"]
    parts = []
    for measure in (TIME, SURPRISAL):
        rows_of_measure = cells[cells["measure"] == measure]
        for group in group_order(rows_of_measure):
            rows_of_group = rows_of_measure[rows_of_measure["reader_group"] == group]
            parts.append(_means(rows_of_group, factor, levels).assign(measure=measure, reader_group=group))
    return pd.concat(parts, ignore_index=True)[columns]


def places(table: WordTable) -> Array:
    """Return each word's distance from a changed one, nan if none is near; shape (words,)."""
    words = table.words
    cell_code = words.groupby(["set", "item_id", *table.factors], dropna=False, sort=False).ngroup()
    changed = words["region"].where(words["zone"] == TARGET)
    since = (words["region"] - changed.groupby(cell_code).ffill()).to_numpy(dtype=float)
    until = (changed.groupby(cell_code).bfill() - words["region"]).to_numpy(dtype=float)
    before = np.where(until <= BEFORE, -until, np.nan)
    return np.where(since <= AFTER, since, before)


def _means(frame: pd.DataFrame, factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    kind = str(frame["reader_kind"].iloc[0])
    words = frame.groupby([factor, "at"])["count"].sum().to_dict()
    order = {level: index for index, level in enumerate(levels)}
    rows = []
    for distance in sorted({int(value) for value in frame["at"].to_numpy()}):
        cells = frame[frame["at"] == distance]
        wide = cells.pivot_table(index="unit", columns=factor, values="value", aggfunc="mean")
        half = within_participant_half_widths(wide.dropna().to_numpy(dtype=float))
        for index, level in enumerate(wide.columns):
            values = wide[level].dropna().to_numpy(dtype=float)
            ends = _interval(values, float(half[index]), kind in PARTICIPANT_KINDS)
            counts = {"units": len(values), "words": int(words[level, distance])}
            rows.append({"reader_kind": kind, factor: level, "place": distance, **ends, **counts})
    table = pd.DataFrame(rows)
    return table.sort_values([factor, "place"], key=lambda c: c.map(order) if c.name == factor else c)


def _interval(values: Array, half: float, person: bool) -> dict[str, float | str]:
    mean = float(values.mean())
    if np.isfinite(half):
        method = WITHIN_PARTICIPANTS if person else WITHIN_ITEMS
        return {"mean": mean, "low": mean - half, "high": mean + half, "interval": method}
    low, high = (float("nan"), float("nan")) if person else over_items(values, limits=None)
    return {"mean": mean, "low": low, "high": high, "interval": OVER_ITEMS if np.isfinite(low) else NONE}


LOG, OWN = SCALES = ("log", "ms")
MOST_ROWS = 200_000
_KEPT = ("reader_group", "reader", "session_id", "trial_index", "attempt", "item", "zone", "rt")


@dataclass(frozen=True)
class SpillOver:
    """Costs of single words."""

    table: pd.DataFrame
    models: dict[tuple[str, str, str], SimplificationResult]
    remarks: tuple[str, ...]  # what was left out, in sentences


def spill_over(
    tables: Tables,
    factor: str,
    *,
    most_rows: int = MOST_ROWS,
    covariates: tuple[str, ...] = COVARIATES,
    table: WordTable | None = None,
) -> SpillOver:
    """Model the times of changed words and of the two words after them."""
    table = word_table(tables, factor) if table is None else table
    unknown = [name for name in covariates if name not in table.words]
    if unknown:
        raise UserError(
            f"covariate {unknown[0]!r} is not known of words", mend=f"Choose among {', '.join(COVARIATES)}."
        )
    rows, remarks = _zone_rows(tables, table, most_rows, covariates)
    if rows.empty:
        raise UserError(
            "no person has a time on a changed word or on one after it",
            mend="Let people read with `as: moving_window`; models have no reading times.",
        )
    parts: list[pd.DataFrame] = []
    models: dict[tuple[str, str, str], SimplificationResult] = {}
    several = rows["reader_group"].nunique() > 1
    fitted_zones: set[str] = set()
    lacking: dict[str, dict[str, None]] = {}  # covariates that a model could not have, with its zones
    for group, zone in product(group_order(rows), ZONES):
        rows_of_zone = rows[(rows["reader_group"] == group) & (rows["zone"] == zone)].reset_index(drop=True)
        levels = [level for level in table.levels if (rows_of_zone[factor] == level).any()]
        if len(levels) < 2 or levels[0] != table.levels[0]:
            remarks.append(f"{zone}: no words to compare for reader group {group}.")
            continue
        of_trials = _by_trial(rows_of_zone, factor, covariates)
        varying = [name for name in covariates if of_trials[name].std() > 1e-9]
        fitted_zones.add(named := f"{zone} ({spoken(group)})" if several else zone)
        for name in set(covariates) - {*varying}:
            lacking.setdefault(name, {})[named] = None
        for scale in SCALES:
            simplification, notes = _fitted(of_trials, factor, levels, scale, varying)
            models[group, zone, scale] = simplification
            remarks += [f"{zone}: {note}" for note in notes if scale == LOG]
            if simplification.fit is None:
                remarks.append(f"{zone}, {scale} scale: {simplification.steps[-1]}")
            else:
                costs = _told(of_trials, simplification, factor, levels, scale)
                parts.append(costs.assign(reader_group=group, zone=zone))
    remarks += _not_covariates(lacking, fitted_zones)
    columns = ["reader_group", "zone", "scale", factor]
    all_costs = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return SpillOver(
        all_costs[[*columns, *(n for n in all_costs if n not in columns)]], models, tuple(remarks)
    )


def _not_covariates(lacking: Mapping[str, Mapping[str, None]], all_zones: set[str]) -> list[str]:
    """State which covariates were left out, and in which zones if not in all."""
    names_of: dict[tuple[str, ...], list[str]] = {}
    for name in (name for name in COVARIATES if name in lacking):
        zones = () if all_zones <= {*lacking[name]} else tuple(lacking[name])
        names_of.setdefault(zones, []).append(_COVARIATES[name])
    return [
        f"{upper_first(apa.listing(names))} {'was' if len(names) == 1 else 'were'} unknown or constant"
        f"{' for ' + apa.listing(zones) if zones else ''} and therefore not {'a covariate' if len(names) == 1 else 'covariates'}."
        for zones, names in names_of.items()
    ]


def _zone_rows(
    tables: Tables, table: WordTable, most_rows: int, covariates: tuple[str, ...]
) -> tuple[pd.DataFrame, list[str]]:
    """Collect the times of the words that a model needs, of as many participants as it should hold."""
    people = tables.trials[tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)]
    parts: list[pd.DataFrame] = []
    n_rows, threshold = 0, 1.0
    order = {str(reader): place_in_order(str(reader)) for reader in people["reader"].unique()}
    untimed = 0
    columns = list(dict.fromkeys([*_KEPT, "reader_kind", table.factor, *covariates]))
    for batch in region_rows(tables, table):
        batch = batch[batch["reader_kind"].isin(PARTICIPANT_KINDS)]
        selected = batch[batch["zone"].notna() & (batch["reader"].map(order) <= threshold)]
        untimed += int((~(selected["rt"] > 0)).sum())
        selected = selected[selected["rt"] > 0]
        parts.append(selected.assign(item=item_names(selected))[columns])
        n_rows += len(selected)
        while n_rows > most_rows and threshold > 0.01:
            threshold *= 0.8
            parts = [part[part["reader"].map(order) <= threshold] for part in parts]
            n_rows = sum(map(len, parts))
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    remarks = [f"Words without a time above 0: {untimed:,}; in no model."] if untimed else []
    if threshold < 1.0:
        remarks.append(
            f"Of {len(order):,} participants {rows['reader'].nunique():,} are in the models of single words, drawn by a "
            f"stable hash, since more than {most_rows:,} rows say nothing more and take hours."
        )
    return rows, remarks


def _by_trial(rows: pd.DataFrame, factor: str, covariates: tuple[str, ...]) -> pd.DataFrame:
    """Average the words that a trial has in a zone; one row a trial."""
    keys = ["reader", "session_id", "trial_index", "attempt", "item", factor]
    means = {name: (name, "mean") for name in covariates if name not in keys}
    trials = (
        rows.assign(log_rt=np.log(rows["rt"]))
        .groupby(keys, sort=False, dropna=False)
        .agg(rt=("rt", "mean"), log_rt=("log_rt", "mean"), words=("rt", "size"), **means)
    )
    return trials.reset_index().rename(columns={"reader": "participant"})


def _fitted(
    trials: pd.DataFrame, factor: str, levels: list[str], scale: str, covariates: Sequence[str]
) -> tuple[SimplificationResult, list[str]]:
    remarks: list[str] = []
    for name in covariates:
        # the first word of a text has none before it: at the mean it neither adds nor takes away
        trials[f"c_{name}"] = (trials[name] - trials[name].mean()).fillna(0.0)
    columns = [indicator(factor, level) for level in levels[1:]]
    for name, level in zip(columns, levels[1:], strict=True):
        trials[name] = (trials[factor] == level).astype(float)
    fixed = " + ".join([factor, *(f"c_{name}" for name in covariates)])
    people = trials["participant"].nunique()
    random = slopes(columns if people > len(columns) + 1 else [], "participant", extra="(1 | item)")
    if people < 2:
        random = ["(1 | item)"]
        remarks.append("one participant; the result cannot be generalized.")
    settings = {"levels": {factor: levels}}
    if scale == LOG:
        return climb(f"log_rt ~ {fixed}", random, trials, **settings), remarks
    return climb(f"rt ~ {fixed}", random, trials, family="Gamma", link="identity", **settings), remarks


def _told(
    trials: pd.DataFrame, simplification: SimplificationResult, factor: str, levels: list[str], scale: str
) -> pd.DataFrame:
    assert simplification.fit is not None
    means = margins(simplification.fit, [factor])
    table = means.against(levels[0], adjust="none")
    base_mean = float(means.table()["estimate"].iloc[0])
    base = float(np.exp(base_mean)) if scale == LOG else base_mean
    columns = table[["estimate", "se", "df", "ci_low", "ci_high", "p"]].reset_index(drop=True)
    columns = columns.rename(columns={"ci_low": "low", "ci_high": "high"})
    columns = pd.DataFrame({"scale": scale, factor: levels[1:], "intact": base}).join(columns)
    for end, name in (("", "estimate"), ("_low", "low"), ("_high", "high")):
        columns[f"percent{end}"] = 100 * (np.expm1(columns[name]) if scale == LOG else columns[name] / base)
    if scale == OWN:
        # the interval of a ratio of two estimates is not the interval of its numerator
        columns[["percent_low", "percent_high"]] = np.nan
    return columns.assign(
        rows=len(trials),
        participants=trials["participant"].nunique(),
        items=trials["item"].nunique(),
        words=int(trials["words"].sum()),
        stands=simplification.stands,
    )


@dataclass(frozen=True, eq=False)
class WordSlopes:
    """Slopes with their covariance over items."""

    names: tuple[str, ...]  # predictors, the intercept first
    estimate: Array  # shape (p,)
    cov: Array  # shape (p, p)
    items: int

    def of(self, names: Sequence[str]) -> tuple[float, float, float]:
        """Return the sum of several slopes and the ends of its 95% interval."""
        weights = np.array([float(name in names) for name in self.names])
        value = float(weights @ self.estimate)
        half = float(stats.t.ppf(0.975, self.items - 1) * np.sqrt(weights @ self.cov @ weights))
        return value, value - half, value + half


def clustered_slopes(
    rows: pd.DataFrame, response: str, predictors: Sequence[str], weights: str, random: str
) -> WordSlopes:
    """Regress a response on numeric predictors with items as clusters."""
    names = ("(Intercept)", *predictors)
    codes, items = pd.factorize(rows["item"])
    x = np.column_stack([np.ones(len(rows)), rows[list(predictors)].to_numpy(dtype=float)])
    if np.linalg.matrix_rank(x) < len(names):
        raise UserError("the predictors are linearly dependent", mend="Leave one of them out.")
    if len(items) <= len(names):
        raise UserError(f"{len(items)} items for {len(names)} coefficients", mend="Take fewer predictors.")
    y, w = rows[response].to_numpy(dtype=float), rows[weights].to_numpy(dtype=float)
    ratio = 0.0
    if random:
        model = fit(f"{response} ~ {' + '.join(predictors) or '1'} + {random}", rows, weights=weights)
        ratio = float(model.variance[0].cov[0, 0] / model.sigma**2)

    def whitened(column: Array) -> Array:
        """Multiply by the inverse of diag(1/w) + ratio 11', item by item (Sherman & Morrison)."""
        weighted = w * column
        share = np.bincount(codes, weighted) * ratio / (1.0 + ratio * np.bincount(codes, w))
        return np.asarray(weighted - w * share[codes])

    whitened_x = np.column_stack([whitened(column) for column in x.T])
    bread = np.linalg.inv(x.T @ whitened_x)
    beta = bread @ (whitened_x.T @ y)
    scores = whitened_x * (y - x @ beta)[:, None]
    sums = np.column_stack([np.bincount(codes, column) for column in scores.T])
    n_items = len(items)
    return WordSlopes(names, beta, bread @ (sums.T @ sums) @ bread * n_items / (n_items - 1), n_items)


ALL, UNCHANGED, CHANGED = WORDS = ("all", "unchanged", "changed")
BASELINE = ("letters", "zipf", "place")
SURPRISAL_SPILLED = ("previous_surprisal", "second_surprisal")


def linking(
    tables: Tables,
    factor: str,
    *,
    words: Sequence[str] = WORDS,
    folds: int = FOLDS,
    table: WordTable | None = None,
) -> pd.DataFrame:
    """Regress words' mean times on each model's surprisal, with and without baseline predictors."""
    for word in words:
        if word not in WORDS:
            raise unknown_name("words:", word, WORDS)
    table = word_table(tables, factor) if table is None else table
    means = word_means(tables, table)
    groups = [group for group in group_order(tables.trials) if f"rt {group}" in means]
    models = [group for group in group_order(tables.trials) if f"surprisal {group}" in means]
    if not groups or not models:
        missing = "time of a person" if not groups else "surprisal of a model"
        raise UserError(
            f"no word has a {missing}",
            mend="People need `as: moving_window`, models one that gives surprisal.",
        )
    table_rows = []
    for group, model in product(groups, models):
        rows = _rows(means, table, group, model)
        for word_set in words:
            selected = rows if word_set == ALL else rows[rows["is_changed"] == (word_set == CHANGED)]
            table_rows += _linked(selected, str(tables.dictionary["study"]), folds, (group, model, word_set))
    return pd.DataFrame(table_rows)


def word_means(tables: Tables, table: WordTable) -> pd.DataFrame:
    """Return the mean time and surprisal of every word, in two passes over the regions."""
    by_reader = ["reader_group", "reader"]
    reader_sums = KeyedSums(by_reader)
    for batch in region_rows(tables, table):
        reader_sums.add(batch[batch["reader_kind"].isin(PARTICIPANT_KINDS) & (batch["rt"] > 0)], "rt")
    speeds = reader_sums.table
    speeds["speed"] = speeds["sum"] / speeds["count"]
    means = table.words
    parts: dict[str, KeyedSums] = {}
    for batch in region_rows(tables, table):
        timed = batch[batch["reader_kind"].isin(PARTICIPANT_KINDS) & (batch["rt"] > 0)]
        timed = timed.merge(speeds[[*by_reader, "speed"]], on=by_reader, how="left")
        timed = timed.assign(number=timed["rt"] - timed["speed"])
        machine = batch[~batch["reader_kind"].isin(PARTICIPANT_KINDS)].rename(columns={"surprisal": "number"})
        for measure, rows in (("rt", timed), ("surprisal", machine[machine["number"].notna()])):
            for group, rows_of_group in rows.groupby("reader_group", sort=False):
                parts.setdefault(f"{measure} {group}", KeyedSums(table.on)).add(rows_of_group, "number")
    for name, part in parts.items():
        sums = part.table
        measure, _, group = name.partition(" ")
        level = 0.0
        if measure == "rt":
            level = float(speeds.loc[speeds["reader_group"] == group, "speed"].mean())
        sums[name] = sums["sum"] / sums["count"] + level
        sums = sums.rename(columns={"count": f"n {group}"})
        columns = [*table.on, name, *([f"n {group}"] if measure == "rt" else [])]
        means = means.merge(sums[columns], on=table.on, how="left")
    return means


def _rows(means: pd.DataFrame, table: WordTable, group: str, model: str) -> pd.DataFrame:
    rows = means.rename(
        columns={f"rt {group}": "mean_rt", f"n {group}": "times", f"surprisal {model}": "surprisal"}
    )
    cells = rows.groupby(["set", "item_id", *table.factors], dropna=False, sort=False)
    for lag, name in enumerate(SURPRISAL_SPILLED, start=1):
        is_adjacent = rows["region"] - cells["region"].shift(lag) == lag
        rows[name] = cells["surprisal"].shift(lag).where(is_adjacent)
    rows["item"] = item_names(rows)
    needed = ["mean_rt", "surprisal", *SURPRISAL_SPILLED]
    return rows.dropna(subset=needed)


def _independent(rows: pd.DataFrame, names: list[str]) -> list[str]:
    """Leave out predictors that those before them determine: with two changed words length says all that place says."""
    independent: list[str] = []
    for name in names:
        values = rows[[*independent, name]].dropna().to_numpy(dtype=float)
        if np.linalg.matrix_rank(values - values.mean(axis=0)) > len(independent):
            independent.append(name)
    return independent


def _slopes(
    rows: pd.DataFrame, base: list[str], added: list[str], random: str
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the slope of a word's own surprisal and that of all, each with its ends; nan where items are too few."""
    try:
        complete = rows.dropna(subset=["mean_rt", "times", *base, *added]).reset_index(drop=True)
        model = clustered_slopes(complete, "mean_rt", [*base, *added], "times", random)
    except UserError:
        missing = (float("nan"),) * 3
        return missing, missing
    return model.of(["surprisal"]), model.of(added)


def _linked(
    rows: pd.DataFrame, study: str, folds: int, names: tuple[str, str, str]
) -> list[dict[str, float | str | bool | int]]:
    table_rows: list[dict[str, float | str | bool | int]] = []
    if rows["item"].nunique() < 2 or rows["surprisal"].std() == 0:
        return table_rows
    available = {n for n in (*BASELINE, *SPILLED) if rows[n].notna().all() and rows[n].std() > 0}
    random = "(1 | item)" if len(rows) > rows["item"].nunique() else ""
    for baseline, spilled in product((False, True), repeat=2):
        base = [n for n in BASELINE if baseline and n in available]
        base += [n for n in SPILLED if baseline and spilled and n in available]
        base = _independent(rows, base)
        added = ["surprisal", *(SURPRISAL_SPILLED if spilled else ())]
        competition = compete(
            {"without": base, "with": [*base, *added]},
            rows,
            OutcomeModel("mean_rt", random, weights="times"),
            folds=folds,
            study=study,
        )
        gain, ends = competition.gain("with", "without", seed=stable_seed(study, "gain", *names))
        without, full = competition.candidates
        slope, total = _slopes(rows, base, added, random)
        table_rows.append(
            {
                **dict(zip(("reader_group", "model", "words"), names, strict=True)),
                "baseline": baseline,
                "spill_over": spilled,
                **dict(zip(("slope", "slope_low", "slope_high"), slope, strict=True)),
                **dict(zip(("slope_total", "total_low", "total_high"), total, strict=True)),
                "gain": gain,
                "gain_low": ends.low,
                "gain_high": ends.high,
                "delta_aic": full.aic - without.aic,
                "words_used": competition.rows,
                "items": competition.items,
                "sound": full.sound and without.sound,
            }
        )
    return table_rows
