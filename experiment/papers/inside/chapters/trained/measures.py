"""Trained models: which there are, and how they differ from their base by condition (Cao et al., 2023) and task (H-TEST)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.answers import failures_as_wrong
from analysis.measures.accuracy import accuracy, asked
from analysis.measures.recovery import recovery, recovery_trials
from analysis.measures.resampling import interval, resampled_means
from analysis.mixed import Fit, LikelihoodRatio, fit, likelihood_ratio_test
from analysis.tables import Tables, found_above
from experiment.papers.h_test.chapter.measures import FEWEST_ITEMS, TASKS, Paired, agreeing, in_common, paired
from experiment.papers.scrambled_bench.chapter.measures import study_parts, trials_of
from stimuli.errors import UserError, reason_of
from stimuli.seeds import stable_seed

FOLDER, RECORD, LOSS = "tuning", "tuning.json", "loss.csv"
CONTROL = "FT-Ori"
"""The rule that leaves texts as they are: what more training does without scrambles."""
_LOSS_COLUMNS = ("step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds")


@dataclass(frozen=True)
class Trained:
    """A trained model that read the study."""

    group: str  # ``reader_group`` of its trials
    base: str  # ``reader_group`` of the model that it was made from
    training: str  # name of the training
    record: Mapping[str, Any] = field(default_factory=dict)  # ``tuning.json``; empty where it is not at hand

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting of the training."""
        return dict(self.record.get("settings") or {})

    @property
    def task(self) -> str | None:
        """The task of H-TEST that it was trained on; None for texts."""
        return self.settings.get("task")

    @property
    def rule(self) -> str | None:
        """Scramble of running text, such as ``FT-RS``; None for H-TEST."""
        return self.settings.get("rule")

    @property
    def is_control(self) -> bool:
        """Whether it was trained on texts as they are."""
        return bool(self.settings) and self.task is None and self.rule in (None, CONTROL)


@dataclass(frozen=True)
class ModelFamily:
    """A base model and the models trained from it, in the order in which training began."""

    base: str
    base_was_asked: bool  # whether the base has used trials
    models: tuple[Trained, ...]

    @property
    def control(self) -> Trained | None:
        """The model trained on texts as they are; None where there is none, or more than one."""
        controls = [model for model in self.models if model.is_control]
        return controls[0] if len(controls) == 1 else None


def families(tables: Tables) -> list[ModelFamily]:
    """Return the models of a study that were trained, by base; empty where none has used trials."""
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    tested_groups = set(used["reader_group"].astype(str))
    by_base: dict[str, list[Trained]] = {}
    for group, reader in tables.dictionary["readers"].items():
        settings = (reader.get("settings") or {}) if isinstance(reader, Mapping) else {}
        training, base = settings.get("trained"), settings.get("base")
        if training and base and group in tested_groups:
            trained = Trained(str(group), str(base), str(training), record_of(tables, str(training)))
            by_base.setdefault(str(base), []).append(trained)
    for models in by_base.values():
        models.sort(key=lambda model: str(model.record.get("began_at") or ""))
    return [ModelFamily(base, base in tested_groups, tuple(models)) for base, models in by_base.items()]


def record_of(tables: Tables, training: str) -> Mapping[str, Any]:
    """Return the record of a training run; empty if there is none."""
    file = _file_of(tables, training, RECORD)
    if file is None:
        return dict((tables.dictionary.get("tuning") or {}).get(training) or {})
    try:
        record = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}", mend="Restore it from a backup.") from error
    if not isinstance(record, dict):
        raise UserError(f"{file} is no record of a training", mend="Restore it from a backup.")
    return record


def loss_of(tables: Tables, training: str) -> pd.DataFrame | None:
    """Return the losses of a training; None where they are not at hand."""
    file = _file_of(tables, training, LOSS)
    losses = pd.DataFrame() if file is None else pd.read_csv(file, on_bad_lines="skip")
    if not set(_LOSS_COLUMNS) <= set(losses.columns):
        return None
    return losses[losses["seconds"].notna()].astype(dict.fromkeys(_LOSS_COLUMNS, float))


def _file_of(tables: Tables, training: str, name: str) -> Path | None:
    """Return a file of a training's record; a Psych-DS export keeps it among what is for analysis."""
    return found_above(tables.folder / "analysis", f"{FOLDER}/{training}/{name}")


GROUP = "reader_group"
ALL = "all"
RECOVERY, RIGHT = "RR", "right"
KINDS = {"rec": "sentences to recover", "qa": "questions", "problem": "word problems"}
MOST_ROWS = 60_000
"""Trials in one mixed model of models alone."""


@dataclass(frozen=True)
class TrainedMaterials:
    """Materials in which trained models are compared with their base."""

    title: str  # what they are, in words
    name: str  # in letters, digits and underscores
    measure: str  # recovery rate, or share right
    factor: str  # whose levels are the conditions; empty for none
    levels: dict[str, str]  # what a condition is called, by level, in order
    trials: pd.DataFrame  # used trials of the family with ``condition``
    measured: pd.DataFrame


@dataclass(frozen=True)
class ModelDifference:
    """Two models in one condition, over the items that both were asked."""

    condition: str  # ``second`` minus ``first``
    first: str
    second: str
    against_control: bool  # whether ``first`` is the control of training (FT-Ori), not the base
    items: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    se: float
    df: float
    p_adjusted: float = np.nan


@dataclass(frozen=True)
class Modelled:
    """A mixed model of one part."""

    fit: Fit  # with training by condition
    training: LikelihoodRatio
    interaction: LikelihoodRatio | None


def parts_of(tables: Tables, family: ModelFamily) -> list[TrainedMaterials]:
    """Return the materials on which a base model and its trained models were tested, without H-TEST's tasks."""
    members = [family.base, *(model.group for model in family.models)]
    trials = tables.trials
    trials = trials[trials["excluded_reason"].isna() & trials[GROUP].isin(members)]
    if "task" in tables.factors:
        trials = trials[trials["task"].isna()]
    parts = []
    published_parts = {part.set_name: part for part in study_parts(tables) if not part.imported}
    for set_name, rows in trials.groupby("set", sort=False, dropna=False):
        published = published_parts.get(str(set_name))
        if published is not None:
            rows = rows[rows.index.isin(trials_of(tables, published).index)]
            title = f"{published.data}, {KINDS[published.task]}, {'after' if published.few_shot else 'without'} examples"
            factor, levels = published.factor, dict(published.columns)
        else:
            title = str(set_name) if len(set(trials["set"].dropna())) > 1 else ""
            factor = next(
                (name for name, factor_levels in tables.factors.items() if rows[name].nunique() > 1), ""
            )
            levels = {level: level for level in tables.factors.get(factor, [])}
        parts += list(_measured(tables, rows, title, str(set_name), factor, levels))
    return parts


def _measured(
    tables: Tables, rows: pd.DataFrame, title: str, name: str, factor: str, levels: dict[str, str]
) -> Iterator[TrainedMaterials]:
    rows = rows.assign(condition=rows[factor].map(levels) if factor else ALL)
    rows = rows[rows["condition"].notna()]

    def present(subset: pd.DataFrame) -> dict[str, str]:
        shown, named = set(subset["condition"]), levels if factor else {ALL: ALL}
        return {level: condition for level, condition in named.items() if condition in shown}

    restored = rows["trial_type"] == "recover"
    if restored.any():
        measured = recovery_trials(rows[restored], tables.items, list(tables.factors))
        measured = measured.assign(condition=measured[factor].map(levels) if factor else ALL)
        measured = measured[measured["ed_shown"] > 0]
        if len(measured):
            yield TrainedMaterials(
                title, f"{name}_recovered", RECOVERY, factor, present(measured), rows[restored], measured
            )
    judged = asked(rows[~restored])
    if len(judged):
        yield TrainedMaterials(title, name, RIGHT, factor, present(rows), judged, pd.DataFrame())


def cells_of(part: TrainedMaterials, study: str) -> pd.DataFrame:
    """Return every model's value in every condition, in percent."""
    if part.measure == RECOVERY:
        sums = recovery(part.measured, ["condition"], study=study)
        named = {"rr": "value", "rr_low": "low", "rr_high": "high"}
        return sums.rename(columns=named)[[GROUP, "condition", "trials", "value", "low", "high"]]
    shares = accuracy(part.trials, ["condition"], study=study)
    ends = {"value": "wrong", "low": "wrong_low", "high": "wrong_high"}
    percent = {name: 100 * shares[column] for name, column in ends.items()}
    return shares[[GROUP, "condition", "trials"]].assign(**percent)


def differences(part: TrainedMaterials, family: ModelFamily) -> list[ModelDifference]:
    """Compare each trained model with the base and, trained on scrambled text, with the control, in every condition."""
    control = family.control
    asked_of = set(part.trials[GROUP].astype(str))
    pairs = [(family.base, model.group, False) for model in family.models]
    if control is not None:
        pairs += [(control.group, model.group, True) for model in family.models if not model.is_control]
    pairs = [pair for pair in pairs if {*pair[:2]} <= asked_of]
    compare = _recovered if part.measure == RECOVERY else _right
    compared = [compare(part, condition, *pair) for condition in part.levels.values() for pair in pairs]
    estimable = [difference for difference in compared if difference is not None]
    furthest = np.inf if part.measure == RECOVERY else 100.0
    table = agreeing([vars(difference) for difference in estimable], furthest)
    rows = table.to_dict("records")
    return [
        replace(difference, low=row["low"], high=row["high"], p_adjusted=row["p_adjusted"])
        for difference, row in zip(estimable, rows, strict=True)
    ]


_KEYS = ["set", "item_id"]


def _right(
    part: TrainedMaterials, condition: str, first: str, second: str, against: bool
) -> ModelDifference | None:
    rows = part.trials[part.trials["condition"] == condition]
    rows = rows.assign(right=failures_as_wrong(rows), making="", task=rows["set"].astype(str))
    comparison = paired(rows[rows[GROUP] == first], rows[rows[GROUP] == second])
    if comparison is None:
        return None
    shares = ("first", "second", "difference", "low", "high", "se")
    one, other, apart, low, high, se = (100 * getattr(comparison, name) for name in shares)
    n, p, df = comparison.items, comparison.p, comparison.df
    return ModelDifference(condition, first, second, against, n, one, other, apart, low, high, p, se, df)


def _recovered(
    part: TrainedMaterials, condition: str, first: str, second: str, against: bool
) -> ModelDifference | None:
    rows = part.measured[part.measured["condition"] == condition]
    sums = [
        rows[rows[GROUP] == group].groupby(_KEYS, dropna=False)[["ed_shown", "ed_given"]].mean()
        for group in (first, second)
    ]
    items = pd.concat(sums, axis=1, join="inner")
    if len(items) < FEWEST_ITEMS:
        return None
    values = items.to_numpy(dtype=float).reshape(-1, 2, 2)  # items, models, distances shown and answered
    shown, answered = values[..., 0], values[..., 1]
    rates = 1 - answered.mean(axis=0) / shown.mean(axis=0)
    # what an item adds to a rate of sums, to first order
    parts = rates + (shown * (1 - rates) - answered) / shown.mean(axis=0)
    gains = 100 * (parts[:, 1] - parts[:, 0])
    low, high, p, se = gains[0], gains[0], float(gains[0] == 0), 0.0
    if gains.std() > 0:
        test = stats.ttest_1samp(gains, 0.0)
        low, high, p, se = *test.confidence_interval(), float(test.pvalue), float(stats.sem(gains))
    before, after = (100 * rates).tolist()
    estimates = before, after, after - before, float(low), float(high), p, se, float(len(items) - 1)
    return ModelDifference(condition, first, second, against, len(items), *estimates)


def modelled(part: TrainedMaterials, family: ModelFamily) -> Modelled | str:
    """Fit a logistic mixed model of training by condition with a variance between items."""
    rows = part.measured if part.measure == RECOVERY else part.trials
    if len(rows) > MOST_ROWS:
        return f"there are {len(rows):,} answers; state a plan for a model of so many"
    present = set(rows[GROUP].astype(str))
    models = [name for name in (family.base, *(model.group for model in family.models)) if name in present]
    conditions = [level for level in part.levels.values() if (rows["condition"] == level).any()]
    if len(models) < 2:
        return "one model alone answered"
    data = pd.DataFrame({"training": rows[GROUP].astype(str), "condition": rows["condition"].astype(str)})
    data["item"] = rows["set"].astype(str) + " " + rows["item_id"].astype(str)
    response, random = "correct", "(1 | item)"
    if part.measure == RECOVERY:
        data[["recovered", "not_recovered"]] = rows[["recovered", "not_recovered"]].astype(float)
        data["answer"] = [str(number) for number in range(len(data))]
        words = data["recovered"] + data["not_recovered"]
        data = data[words > 0]
        # answers of one changed word each vary about their items as the binomial says, and give nothing to tell more
        random += " + (1 | answer)" if (words > 1).any() else ""
        response = "cbind(recovered, not_recovered)"
        if not data["recovered"].any():
            return "no answer restores a word that was scrambled"
        if not data["not_recovered"].any():
            return "every answer restores every word that was scrambled"
    else:
        data["correct"] = np.asarray(failures_as_wrong(rows), dtype=float)
        if data["correct"].nunique() < 2:
            return f"all answers are {'right' if data['correct'].any() else 'wrong'}"
    levels: dict[str, Sequence[str]] = {"training": models}
    formulas = ["training", "1"]
    if len(conditions) > 1:
        levels["condition"] = conditions
        formulas = ["training * condition", "training + condition", "condition"]
    try:
        of_fixed = [(fixed, {k: v for k, v in levels.items() if k in fixed}) for fixed in formulas]
        full, *smaller = (
            fit(f"{response} ~ {fixed} + {random}", data, "binomial", levels=own) for fixed, own in of_fixed
        )
        alike, none = smaller if len(conditions) > 1 else (full, *smaller)
        interaction = likelihood_ratio_test(alike, full) if len(conditions) > 1 else None
        return Modelled(full, likelihood_ratio_test(none, alike), interaction)
    except UserError as error:
        return reason_of(error)


EXACT_UP_TO = 7
"""Tasks whose orders are all gone through; of more, so many are drawn:"""
ORDERS = 9999


@dataclass(frozen=True)
class Diagonal:
    """Gain of training on the trained task beyond its gain on other tasks."""

    tasks: int  # tasks that were both trained and tested
    within: float  # mean gain in the cells of the diagonal, and off it, as shares
    across: float
    difference: float
    low: float
    high: float
    p: float  # two-sided: differences as far from 0 when trainings are assigned to test tasks in other orders
    smallest_p: float  # the smallest that any order of these gains could have


def diagonal(gains: NDArray[np.float64], seed: int = 0) -> Diagonal:
    """Test whether gains on the diagonal are others than off it."""
    n = len(gains)
    total, trace = float(gains.sum()), float(np.trace(gains))
    is_exact = n <= EXACT_UP_TO
    rng = np.random.default_rng(stable_seed(seed, "orders of trainings"))
    orders = itertools.permutations(range(n)) if is_exact else (rng.permutation(n) for _ in range(ORDERS))
    sums = gains[np.arange(n), np.array(list(orders))].sum(axis=1)
    # every cell stands on the diagonal of as many orders as every other: the mean over all orders is total / n
    apart, observed = np.abs(sums - total / n), 0 if is_exact else 1
    p, least = (
        float(((apart >= reached - 1e-12).sum() + observed) / (len(apart) + observed))
        for reached in (abs(trace - total / n), apart.max())
    )
    within, across = trace / n, (total - trace) / (n * n - n)
    return Diagonal(n, within, across, within - across, nan, nan, p, least)


AVERAGE = "average"
_ITEM = ["making", "task", "item_id"]


@dataclass(frozen=True)
class TrainedScore:
    """One test task (or all of them) of one trained model."""

    task: str  # what was tested: a task, or ``average`` (all items of all tasks)
    model: Trained
    compared: Paired  # trained minus base
    p_adjusted: float

    @property
    def in_domain(self) -> bool:
        """Whether the model was trained on the task."""
        return self.model.task == self.task


@dataclass(frozen=True)
class Transfer:
    """The table of transfer of one base."""

    base: str
    tasks: tuple[str, ...]  # rows, in the paper's order
    models: tuple[Trained, ...]
    base_accuracy: Mapping[str, float]  # share right of the base, by task and ``average`` (mean of the tasks)
    accuracy: pd.DataFrame
    cells: tuple[TrainedScore, ...]  # comparisons; a cell with fewer than ten common items is left out
    averages: tuple[TrainedScore, ...]
    diagonal: Diagonal | None  # none for fewer than two tasks both trained and tested


def transfer(
    rows: pd.DataFrame, family: ModelFamily, bound: float | None = None, seed: int = 0
) -> Transfer | None:
    """Compare what was trained from one base with the base, task by task."""
    rows_of = {str(group): group_rows for group, group_rows in rows.groupby("reader_group")}
    base = rows_of.get(family.base)
    models = [model for model in family.models if model.group in rows_of]
    if base is None or not models:
        return None
    models.sort(key=lambda model: TASKS.index(model.task) if model.task in TASKS else len(TASKS))
    tasks = tuple(task for task in TASKS if (base["task"] == task).any())
    shares = pd.DataFrame({model.group: _by_task(rows_of[model.group], tasks) for model in models})
    scores: list[tuple[str, Trained, Paired]] = []
    for model in models:
        common = in_common(base, rows_of[model.group])
        for task in (*tasks, AVERAGE):
            first, second = (rows if task == AVERAGE else rows[rows["task"] == task] for rows in common)
            if (comparison := paired(first, second, bound)) is not None:
                scores.append((task, model, comparison))
    on_tasks = {model.group: model.task for model in models if model.task in tasks}
    gains = {group: _item_gains(base, rows_of[group]) for group in on_tasks}
    return Transfer(
        family.base,
        tasks,
        tuple(models),
        {str(task): share for task, share in _by_task(base, tasks).items()},
        shares,
        _adjusted([score for score in scores if score[0] != AVERAGE]),
        _adjusted([score for score in scores if score[0] == AVERAGE]),
        diagonal_of_items(gains, on_tasks, seed),
    )


def _by_task(rows: pd.DataFrame, tasks: Sequence[str]) -> pd.Series[float]:
    shares = rows.groupby("task", observed=True)["right"].mean().reindex(list(tasks))
    shares[AVERAGE] = shares.mean()
    return shares


def _adjusted(scores: Sequence[tuple[str, Trained, Paired]]) -> tuple[TrainedScore, ...]:
    found = agreeing([vars(score) for *_, score in scores])
    return tuple(
        TrainedScore(
            task,
            model,
            replace(score, low=row["low"], high=row["high"]),
            row["p_adjusted"],
        )
        for (task, model, score), row in zip(scores, found.to_dict("records"), strict=True)
    )


def _item_gains(base: pd.DataFrame, trained: pd.DataFrame) -> pd.Series[float]:
    first, second = in_common(base, trained)
    means = [rows.groupby(_ITEM, observed=True)["right"].mean() for rows in (first, second)]
    return (means[1] - means[0]).dropna()


def diagonal_of_items(
    gains: Mapping[str, pd.Series[float]], trained_on: Mapping[str, str | None], seed: int
) -> Diagonal | None:
    """Set gains on the task trained against gains on others, with an interval over items."""
    if not gains:
        return None
    items = pd.DataFrame(gains)
    tested = items.index.get_level_values("task")
    tasks = [task for task in TASKS if task in set(trained_on.values()) and (tested == task).any()]
    models = [name for name, task in trained_on.items() if task in tasks]
    if len(tasks) < 2:
        return None
    by_task = {task: items.loc[tested == task, models].to_numpy(dtype=float) for task in tasks}
    is_trained = np.array([[trained_on[name] == task for name in models] for task in tasks])
    means = np.array([np.nanmean(values, axis=0) for values in by_task.values()])
    seeds = {task: stable_seed(seed, "diagonal of transfer", task) for task in tasks}
    drawn = np.stack([resampled_means(by_task[task], seeds[task]) for task in tasks], axis=1)
    ends = interval(np.asarray(drawn[:, is_trained].mean(axis=1) - drawn[:, ~is_trained].mean(axis=1)))
    # models that were trained on the same task count as one
    by_training = pd.DataFrame(means.T, index=[trained_on[name] for name in models]).groupby(level=0).mean()
    return replace(diagonal(by_training.loc[tasks].to_numpy().T, seed), low=ends.low, high=ends.high)


ORIGINAL = "original"


def printed_transfer() -> pd.DataFrame:
    """Return the printed table in percent, shape (10 + 1, 1 + 10): test tasks and the average by ``original`` and training tasks."""
    cells = pd.read_csv(Path(__file__).with_name("printed.csv"), comment="#")
    wide = cells.pivot(index="task", columns="trained_on", values="printed")
    return wide.loc[[*TASKS, AVERAGE], [ORIGINAL, *TASKS]]


def printed_diagonal() -> Diagonal:
    """Test whether the printed gains on the task trained are others than on other tasks."""
    table = printed_transfer().loc[[*TASKS]]
    return diagonal(table[[*TASKS]].sub(table[ORIGINAL], axis=0).to_numpy(dtype=float) / 100)
