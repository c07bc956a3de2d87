"""Comparisons of readers: robustness by size, recovery order, error patterns and error consistency (Geirhos et al., 2020)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse, stats

from analysis.answers import failures_as_wrong, is_valid, judged, never_answered
from analysis.arrays import Array, Index, Mask
from analysis.fidelity import item_values, kendall, row_means, spearman
from analysis.intervals import reach
from analysis.measures.levels import scrambled_levels
from analysis.measures.resampling import RESAMPLES, interval, resampled_means, with_ends
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Places = Index

MOST_UNITS = 200
"""Participants of a group, or sessions of all models, that are compared pair by pair."""


@dataclass(frozen=True, eq=False)
class ErrorVectors:
    """Right and wrong answers, unit by unit and cell by cell."""

    right: sparse.csr_matrix  # shape (units, cells): sum of right answers (0 or 1 each) and number of answers
    met: sparse.csr_matrix  # shape (units, cells)
    names: tuple[str, ...]  # of each unit: its participant or session, and its reader group
    groups: tuple[str, ...]
    strata: Places  # shape (units,): units of one stratum met the same list
    items: Places  # shape (cells,): the item of each cell
    levels: Places  # shape (cells,): the level of each cell
    kinds: dict[str, str]  # reader kind of each group, in the order of reports
    left_out: dict[str, int]  # group → units beyond `MOST_UNITS`, drawn by a stable hash

    def units_of(self, *groups: str) -> Places:
        """Return the places of the units of some groups."""
        return np.array([index for index, group in enumerate(self.groups) if group in groups], dtype=np.intp)


def error_vectors(tables: Tables, factor: str) -> ErrorVectors:
    """Return every reader's errors; baselines, which answer by rule, are left out."""
    levels = tables.levels_of(factor)
    rows = item_values(tables.trials, factor, "correct")
    rows = rows[(rows["reader_kind"] != "baseline") & rows[factor].isin(levels)]
    if rows.empty:
        raise UserError(f"no answer under {factor} is right or wrong", mend="Give trials that are scored.")
    study = str(tables.dictionary["study"])
    unit_rows = rows.drop_duplicates(["reader_group", "unit"])
    unit_keys: list[tuple[str, str]] = []
    left_out: dict[str, int] = {}
    models = max(
        1, int((kinds := unit_rows["reader_kind"]).eq("model").groupby(unit_rows["reader_group"]).any().sum())
    )
    for group, rows_of_group in unit_rows.groupby("reader_group"):
        limit = (
            MOST_UNITS if kinds[rows_of_group.index[0]] in PARTICIPANT_KINDS else max(2, MOST_UNITS // models)
        )
        names = sorted(
            rows_of_group["unit"], key=lambda name: stable_seed(study, "vectors", str(group), str(name))
        )
        if len(names) > limit:
            left_out[str(group)] = len(names) - limit
        unit_keys += [(str(group), str(name)) for name in sorted(names[:limit])]
    units = pd.MultiIndex.from_tuples(unit_keys)
    unit_index = units.get_indexer(pd.MultiIndex.from_frame(rows[["reader_group", "unit"]].astype(str)))
    rows, unit_index = rows[unit_index >= 0], unit_index[unit_index >= 0]
    cells, unique_cells = pd.factorize(pd.MultiIndex.from_frame(rows[["item", factor]]))
    shape = (len(units), len(unique_cells))
    value = rows["value"].to_numpy(dtype=float)
    strata = np.zeros(len(units), dtype=np.intp)
    strata[unit_index] = pd.factorize(rows["list"].astype(object).where(rows["list"].notna(), "-"))[0]
    return ErrorVectors(
        right=sparse.coo_matrix((value, (unit_index, cells)), shape=shape).tocsr(),
        met=sparse.coo_matrix((np.ones(len(rows)), (unit_index, cells)), shape=shape).tocsr(),
        names=tuple(name for _, name in unit_keys),
        groups=tuple(group for group, _ in unit_keys),
        strata=strata,
        items=pd.factorize(unique_cells.get_level_values(0))[0],
        levels=np.array([levels.index(level) for level in unique_cells.get_level_values(1)], dtype=np.intp),
        kinds={group: kinds_of(rows)[group] for group in group_order(rows)},
        left_out=left_out,
    )


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
    sums = _sums(share, present, vectors.levels, levels)
    kappas = _kappas(sums)
    left_out_kappas = []
    for block in range(int(blocks.max()) + 1):
        in_block = blocks == block
        taken = _sums(share[:, in_block], present[:, in_block], vectors.levels[in_block], levels)
        left_out_kappas.append(
            _kappas([total - other for total, other in zip(sums, taken, strict=True)]).kappa
        )
    rows = []
    for first, group in enumerate(groups):
        for other in groups[first:]:
            inside = _pairs(vectors, group, other)
            usable = inside & np.isfinite(kappas.kappa) & (kappas.cells >= LEAST_CELLS)
            if not usable.any():
                continue
            left = np.array(
                [np.nanmean(kappa[usable]) for kappa in left_out_kappas if np.isfinite(kappa[usable]).any()]
            )
            means = {name: float(value[usable].mean()) for name, value in vars(kappas).items()}
            half = _jackknife(left)
            ends = {"low": means["kappa"] - half, "high": means["kappa"] + half}
            rows.append({"one": group, "other": other, "pairs": int(usable.sum()), **means, **ends})
    table = pd.DataFrame(rows)
    return table if table.empty else _with_ceilings(table, vectors.kinds)


@dataclass(frozen=True, eq=False)
class _Kappas:
    """Agreement of all pairs of units, shapes (units, units)."""

    cells: Array
    observed: Array
    expected: Array
    kappa: Array
    highest: Array


def _sums(share: Array, present: Array, levels: Places, n_levels: int) -> list[Array]:
    """Return shared cells, agreements, and correct answers of either reader in them, shape (levels, units, units) each."""
    sums = [np.zeros((n_levels, len(share), len(share))) for _ in range(4)]
    for level in range(n_levels):
        in_level = levels == level
        x, m = share[:, in_level], present[:, in_level]
        errors = m - x
        for index, value in enumerate((m @ m.T, x @ x.T + errors @ errors.T, x @ m.T, m @ x.T)):
            sums[index][level] = value
    return sums


def _kappas(sums: Sequence[Array]) -> _Kappas:
    counts, agreed, first, second = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        p, q = np.nan_to_num(first / counts), np.nan_to_num(second / counts)
        cells = counts.sum(axis=0)
        expected = (counts * (p * q + (1 - p) * (1 - q))).sum(axis=0) / cells
        highest = (counts * (1 - np.abs(p - q))).sum(axis=0) / cells
        observed = agreed.sum(axis=0) / cells
        beyond_chance = np.where(1 - expected > _LEAST_ROOM, 1 - expected, np.nan)
        return _Kappas(
            cells,
            observed,
            expected,
            (observed - expected) / beyond_chance,
            (highest - expected) / beyond_chance,
        )


def _pairs(vectors: ErrorVectors, group: str, other: str) -> Mask:
    names = np.array(vectors.groups)
    inside = (names == group)[:, None] & (names == other)[None, :]
    return np.triu(inside, 1) if group == other else inside


def _jackknife(left: Array) -> float:
    """Return half the width of the interval from estimates that leave out one block each."""
    n_blocks = len(left)
    if n_blocks < 3:
        return float("nan")
    return reach(float(np.sqrt((n_blocks - 1) / n_blocks * ((left - left.mean()) ** 2).sum())), n_blocks - 1)


def _with_ceilings(table: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    within_group = table[(table["one"] == table["other"]) & (table["low"] > 0)]
    kappa_of = dict(zip(within_group["one"], within_group["kappa"], strict=True))
    ceilings, sources = [], []
    for group, other in zip(table["one"], table["other"], strict=True):
        ceiling, source = float("nan"), ""
        people = next((name for name in (group, other) if kinds[name] in PARTICIPANT_KINDS), None)
        if group != other and people is not None:
            ceiling, source = kappa_of.get(people, float("nan")), people
        elif group != other:
            product = kappa_of.get(group, float("nan")) * kappa_of.get(other, float("nan"))
            both_positive = kappa_of.get(group, -1.0) > 0 and kappa_of.get(other, -1.0) > 0
            ceiling, source = (float(np.sqrt(product)), "both") if both_positive else (float("nan"), "")
        ceilings.append(ceiling if ceiling > 0 else float("nan"))
        sources.append(source if ceiling > 0 else "")
    return table.assign(ceiling=ceilings, ceiling_of=sources)


PERMUTATIONS = 5000
_COUNTED = 5040
CELLS, CONDITIONS = "the same items", "means of conditions"
PROFILE, SHAPE = "accuracy and pattern", "pattern alone"


@dataclass(frozen=True)
class Matching:
    """Proportion of halves that match the other half of the same reader, and its chance level."""

    readers: int
    features: str
    of: str  # `PROFILE`, or `SHAPE`: each reader's overall accuracy is taken away first
    accuracy: float  # share of halves that find their own reader (both ways); ties count by their share
    chance: float  # the mean of the same share over relabelled halves
    p: float  # one-sided: share of relabellings with at least that accuracy
    smallest_p: float  # the smallest p that so many relabellings allow


def matchings(vectors: ErrorVectors, groups: Sequence[str], study: str = "") -> list[Matching]:
    """Match halves of readers: of the participants of one group, or of several models."""
    units = vectors.units_of(*groups)
    lists = vectors.strata[units]
    if len(groups) == 1:
        list_sizes = np.bincount(lists, minlength=1)[lists] if len(units) else lists
        units, lists = units[list_sizes > 1], lists[list_sizes > 1]
        owner, strata = np.arange(len(units)), lists
    else:
        owner = np.array([list(groups).index(vectors.groups[unit]) for unit in units], dtype=np.intp)
        strata = np.zeros(len(np.unique(owner)), dtype=np.intp)
    readers = np.unique(owner)
    if len(readers) < 2:
        raise UserError(
            f"{len(readers)} readers of {', '.join(groups)} cannot be told apart",
            mend="Give two or more who met the same items.",
        )
    right, met = vectors.right[units].toarray(), vectors.met[units].toarray()
    times_met = [(met[owner == reader] > 0).sum(axis=0) for reader in readers]
    by_session = all((counts > 1).sum() * 2 > (counts > 0).sum() for counts in times_met)
    random = np.random.default_rng(stable_seed(study, "halves of readers", *groups))
    # sums of answers minus the mean of their cell over all readers
    residual = right - met * np.nan_to_num(_mean(right.sum(axis=0), met.sum(axis=0)))
    levels = int(vectors.levels.max()) + 1
    results = []
    kinds = [PROFILE, SHAPE] if by_session or levels > 1 else [PROFILE]
    shuffles = _relabellings(strata, random)
    if by_session:
        halves = _halves_of_sessions(residual, met, owner, lists, readers, random)
    else:
        halves = _halves_of_items(residual, met, owner, readers, vectors, random)
    for kind in kinds:
        first, other = (
            half - row_means(half, np.isfinite(half)) if kind == SHAPE else half for half in halves
        )
        share = _shares(first, other, shuffles)
        drawn, added = share[1:], 0 if _is_counted(strata) else 1
        above = int((drawn >= share[0] - 1e-9).sum())
        p, best = (added + above) / (added + len(drawn)), 1 / (added + len(drawn))
        features = CELLS if by_session else CONDITIONS
        results.append(Matching(len(readers), features, kind, float(share[0]), float(drawn.mean()), p, best))
    return results


def _halves_of_sessions(
    residual: Array, met: Array, owner: Places, lists: Places, readers: Places, random: np.random.Generator
) -> list[Array]:
    """Deal each reader's sessions of each list; features are cells."""
    sums = [[np.zeros((len(readers), residual.shape[1])) for _ in range(2)] for _ in range(2)]
    for row, reader in enumerate(readers):
        for list_code in np.unique(lists[owner == reader]):
            sessions = random.permutation(np.flatnonzero((owner == reader) & (lists == list_code)))
            for half, part in enumerate((sessions[::2], sessions[1::2])):
                sums[half][0][row] += residual[part].sum(axis=0)
                sums[half][1][row] += met[part].sum(axis=0)
    return [_mean(*pair) for pair in sums]


def _halves_of_items(
    residual: Array,
    met: Array,
    owner: Places,
    readers: Places,
    vectors: ErrorVectors,
    random: np.random.Generator,
) -> list[Array]:
    """Deal items, the same way for all readers; features are means of residuals in each level."""
    items, levels = vectors.items, vectors.levels
    n_items = int(items.max()) + 1
    first = random.permutation(n_items) < n_items / 2
    to_level = np.eye(int(levels.max()) + 1)[levels]
    halves = []
    for half in (first[items], ~first[items]):
        sums = np.vstack([(residual[owner == reader].sum(axis=0) * half) @ to_level for reader in readers])
        counts = np.vstack([(met[owner == reader].sum(axis=0) * half) @ to_level for reader in readers])
        halves.append(_mean(sums, counts))
    return halves


def _mean(sums: Array, counts: Array) -> Array:
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _distances(array: Array, other: Array) -> Array:
    """Return mean squared distances over features that both have, shape (readers, readers); inf where they share none."""
    present, other_present = np.isfinite(array).astype(float), np.isfinite(other).astype(float)
    x, y = np.nan_to_num(array), np.nan_to_num(other)
    shared = present @ other_present.T
    squares = (x**2) @ other_present.T + present @ (y**2).T - 2 * x @ y.T
    return np.asarray(np.divide(squares, shared, out=np.full_like(shared, np.inf), where=shared > 0))


def _shares(array: Array, other: Array, shuffles: Places) -> Array:
    """Return the share that finds itself, as dealt and under each relabelling; shape (1 + relabellings,)."""
    shares = np.zeros(len(shuffles) + 1)
    distance = _distances(array, other)
    rows = np.arange(len(distance))
    for table in (distance, distance.T):
        is_nearest = table <= table.min(axis=1, keepdims=True) + 1e-12
        credit = is_nearest / is_nearest.sum(axis=1, keepdims=True)
        shares[0] += credit[rows, rows].mean() / 2
        shares[1:] += credit[rows[None, :], shuffles].mean(axis=1) / 2
    return shares


def _is_counted(strata: Places) -> bool:
    return len(np.unique(strata)) == 1 and factorial(min(len(strata), 20)) <= _COUNTED


def _relabellings(strata: Places, random: np.random.Generator) -> Places:
    """Return orders of readers that stay within strata: all of few readers, 5,000 drawn ones otherwise."""
    n_readers = len(strata)
    if _is_counted(strata):
        return np.array(list(permutations(range(n_readers))), dtype=np.intp)
    orders = np.tile(np.arange(n_readers), (PERMUTATIONS, 1))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        orders[:, members] = random.permuted(orders[:, members], axis=1)
    return orders


_MOST_COUNTED = 8
_DRAWN = 20_000


@dataclass(frozen=True)
class RankCorrelation:
    """The agreement of two rank orders of the same readers."""

    readers: int
    tau: float  # Kendall's tau-b and Spearman's rho; nan where a side does not vary
    rho: float
    p: float  # two-sided, of tau, over all orders of one side; nan where tau is
    smallest_p: float  # the smallest p that so many readers allow
    exact: bool


def rank_correlation(array: Array, other: Array, seed: int = 0) -> RankCorrelation:
    """Correlate the ranks of paired values (Kendall, 1938; Spearman, 1904)."""
    is_finite = np.isfinite(array) & np.isfinite(other)
    x, y = array[is_finite], other[is_finite]
    n = len(x)
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        nan = float("nan")
        return RankCorrelation(n, nan, nan, nan, nan, True)
    tau, rho = float(kendall(x[None], y[None])[0]), float(spearman(x[None], y[None])[0])
    if n <= _MOST_COUNTED:
        taus = kendall(x[None], np.array(list(permutations(y))))
        p = float((np.abs(taus) >= abs(tau) - 1e-9).mean())
        smallest = float((np.abs(taus) >= np.abs(taus).max() - 1e-9).mean())
        return RankCorrelation(n, tau, rho, p, smallest, True)
    if len(np.unique(x)) == len(np.unique(y)) == n:
        p = float(stats.kendalltau(x, y, method="exact").pvalue)
        lowest = float(stats.kendalltau(np.arange(n), np.arange(n), method="exact").pvalue)
        return RankCorrelation(n, tau, rho, p, lowest, True)
    random = np.random.default_rng(seed)
    taus = kendall(x[None], random.permuted(np.tile(y, (_DRAWN, 1)), axis=1))
    p = (1 + int((np.abs(taus) >= abs(tau) - 1e-9).sum())) / (1 + _DRAWN)
    return RankCorrelation(n, tau, rho, p, 1 / (1 + _DRAWN), False)


LEAST_MODELS = 3


@dataclass(frozen=True, eq=False)
class RecoveryOrder:
    """Two orders of the same models."""

    table: pd.DataFrame
    correlation: RankCorrelation
    tau_low: float
    tau_high: float
    rho_low: float
    rho_high: float
    recovery_items: int
    task_items: int
    at_chance: tuple[str, ...] = ()  # models that are not ranked


def recovery_order(
    tables: Tables, factor: str, at_chance: Collection[str] = (), *, resamples: int = RESAMPLES
) -> RecoveryOrder:
    """Compare the order of models in recovery with that in the task, on scrambled levels alone; those at chance have none."""
    changed = scrambled_levels(tables, factor)
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["item_id"].notna() & trials[factor].isin(changed)
    rows = trials[used & (trials["reader_kind"] == "model")]
    typed = (rows["trial_type"] == "recover") & rows["response_status"].notna()
    recovery = rows[typed & (rows["score"].notna() | ~is_valid(rows)) & ~never_answered(rows)]
    task = rows[(rows["trial_type"] != "recover") & judged(rows)]
    parts = {
        "recovery": _item_means(recovery, recovery["score"].where(is_valid(recovery), 0.0)),
        "task": _item_means(task, failures_as_wrong(task)),
    }
    shared = set(parts["recovery"].columns) & set(parts["task"].columns)
    compared = [group for group in group_order(rows) if group in shared] if len(rows) else []
    models = [group for group in compared if group not in at_chance]
    unranked = tuple(group for group in compared if group in at_chance)
    if len(models) < LEAST_MODELS:
        above_chance = ", and accuracy above chance with intact text" * bool(unranked)
        raise UserError(
            f"{len(models)} models have both recovery and a task under {factor}{above_chance}",
            mend="An order needs three models, each with a block of type recover and another one.",
        )
    names = parts["recovery"].index.union(parts["task"].index)
    values = np.hstack(
        [part.reindex(index=names, columns=models).to_numpy(dtype=float) for part in parts.values()]
    )
    observed = np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)
    seed = stable_seed(str(tables.dictionary["study"]), "recovery order", factor)
    drawn = 100 * np.vstack([observed, resampled_means(values, seed, resamples)])
    sides = {"recovery": drawn[:, : len(models)], "task": drawn[:, len(models) :]}
    table = pd.DataFrame({"model": models})
    for name, side in sides.items():
        table = table.join(pd.DataFrame([with_ends(name, draws) for draws in side.T]))
        table[f"{name}_rank"] = table[name].rank(ascending=False)
    tau, rho = (interval(measure(sides["recovery"], sides["task"])[1:]) for measure in (kendall, spearman))
    ranked = rank_correlation(sides["recovery"][0], sides["task"][0], seed)
    ends = (tau.low, tau.high, rho.low, rho.high)
    n_recovered, n_asked = map(len, parts.values())
    return RecoveryOrder(table, ranked, *ends, n_recovered, n_asked, unranked)


def _item_means(rows: pd.DataFrame, value: pd.Series[float]) -> pd.DataFrame:
    """Return the mean of each item (rows) and model (columns)."""
    if rows.empty:
        return pd.DataFrame()
    return value.groupby([item_names(rows), rows["reader_group"]], observed=True).mean().unstack()


LEAST_MEMBERS = 3
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMBT])")
_TIMES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
MEASURES = ("lost", "retention")


@dataclass(frozen=True)
class ModelSize:
    """The known size of a model."""

    family: str | None
    parameters: float  # nan where nobody said or counted it
    counted: bool  # whether the run counted them; else the study says so


def read_parameters(given: object) -> float:
    """Read ``1.4B``, ``350M`` or a whole number."""
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return float(given)
    match = _SIZE.fullmatch(str(given).strip())
    if match is None:
        raise UserError(
            f"{given!r} is no number of parameters", mend="Write it like: 350M, 1.4B, or 124439808."
        )
    return float(match[1]) * _TIMES[match[2]]


def sizes(readers: Mapping[str, Mapping[str, Any]]) -> dict[str, ModelSize]:
    """Return family and size of every model among a dictionary's readers."""
    model_sizes = {}
    for name, spec in readers.items():
        if spec.get("kind") != "model":
            continue
        settings = spec.get("settings") or {}
        declared, counted = settings.get("parameters"), spec.get("parameters")
        parameters = (
            read_parameters(declared if declared is not None else counted)
            if declared or counted
            else float("nan")
        )
        family = settings.get("family")
        model_sizes[str(name)] = ModelSize(
            None if family is None else str(family), parameters, declared is None and bool(counted)
        )
    return model_sizes


@dataclass(frozen=True, eq=False)
class Robustness:
    """Each model's accuracy retained under scrambling, with the same resamples of items for all models."""

    models: tuple[str, ...]
    intact: Array
    lost: Array  # shape (1 + resamples, models)
    retention: Array  # shape (1 + resamples, models)
    items: int


def robustness(tables: Tables, factor: str, *, resamples: int = RESAMPLES) -> Robustness:
    """Measure what scrambling costs each model, failures counted as wrong."""
    levels = [tables.levels_of(factor)[0], *scrambled_levels(tables, factor)]
    rows = item_values(tables.trials, factor, "correct")
    rows = rows[(rows["reader_kind"] == "model") & rows[factor].isin(levels)]
    typed = tables.trials.loc[rows.index, "trial_type"] == "recover"
    rows = rows if typed.all() else rows[~typed]
    means = rows.groupby(["item", "reader_group", factor], observed=True)["value"].mean().unstack([1, 2])
    changed = levels[1:]
    models = [
        group
        for group in group_order(rows)
        if (group, levels[0]) in means and any((group, level) in means for level in changed)
    ]
    if not models:
        raise UserError(
            f"no model has answers in {levels[0]!r} and another level of {factor}",
            mend="Run models on the intact level too.",
        )
    columns = pd.MultiIndex.from_product([models, levels])
    values = means.reindex(columns=columns).to_numpy(dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)
    seed = stable_seed(str(tables.dictionary["study"]), "robustness", factor)
    draws = resampled_means(values, seed, resamples)
    cells = 100 * np.vstack([observed, draws]).reshape(1 + resamples, len(models), len(levels))
    intact, scrambled = cells[:, :, 0], cells[:, :, 1:]
    present = np.isfinite(scrambled)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(present, scrambled, 0.0).sum(axis=2) / present.sum(axis=2)
        retained = np.where(intact > 0, 100 * left / intact, np.nan)
    return Robustness(tuple(models), intact, intact - left, retained, len(values))


def robustness_table(result: Robustness, model_sizes: Mapping[str, ModelSize]) -> pd.DataFrame:
    """Lay out each model's robustness with its family and size."""
    rows = []
    for index, model in enumerate(result.models):
        size = model_sizes.get(model, ModelSize(None, float("nan"), False))
        row: dict[str, Any] = {"model": model, **vars(size), "items": result.items}
        for name in ("intact", *MEASURES):
            row |= with_ends(name, getattr(result, name)[:, index])
        rows.append(row)
    return pd.DataFrame(rows)


def robustness_by_size(
    result: Robustness, model_sizes: Mapping[str, ModelSize], study: str = ""
) -> pd.DataFrame:
    """Regress robustness on the size of models within each family of three or more sizes."""
    rows = []
    families = dict.fromkeys(size.family for size in model_sizes.values() if size.family is not None)
    for family in families:
        members = [
            index
            for index, model in enumerate(result.models)
            if model in model_sizes
            and model_sizes[model].family == family
            and np.isfinite(model_sizes[model].parameters)
        ]
        x = np.log10([model_sizes[result.models[index]].parameters for index in members])
        if len(members) < LEAST_MEMBERS or len(np.unique(x)) < LEAST_MEMBERS:
            continue
        for name in MEASURES:
            y = getattr(result, name)[:, members]
            slopes = _slopes(x, y)
            ends, spread = interval(slopes[1:]), _student(x, y[0], slopes[0])
            order = rank_correlation(x, y[0], stable_seed(study, "size", str(family), name))
            rows.append(
                {
                    "family": family,
                    "measure": name,
                    "models": len(members),
                    "slope": float(slopes[0]),
                    "items_low": ends.low,
                    "items_high": ends.high,
                    "low": slopes[0] - spread,
                    "high": slopes[0] + spread,
                    **{name: value for name, value in vars(order).items() if name != "readers"},
                }
            )
    return pd.DataFrame(rows)


def _slopes(x: Array, y: Array) -> Array:
    centred = x - x.mean()
    return np.asarray((y - y.mean(axis=1, keepdims=True)) @ centred / (centred @ centred))


def _student(x: Array, y: Array, slope: float) -> float:
    """Return half the width of the slope's interval over models."""
    df = len(x) - 2
    centred = x - x.mean()
    residual = y - y.mean() - slope * centred
    return reach(float(np.sqrt((residual @ residual) / df / (centred @ centred))), df)
