"""Models trained on tasks of H-TEST, tested on all of them: the table of transfer, with a test behind every cell.

Lee and Lim (2024, Figure 6 and Table 8) call the changes insignificant without a test. Here every cell is compared with the base
item by item, and what a model gains on its own task is set against what it gains on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.inside.trained import Family, Trained
from analysis.measures.diagonal import Diagonal, diagonal
from analysis.measures.resampling import interval, resampled_means
from analysis.mixed.adjustments import corrected
from analysis.published.h_test_pairs import in_common
from analysis.published.h_test_tables import TASKS, Paired, paired
from stimuli.seeds import stable_seed

AVERAGE = "average"
_ITEM = ["making", "task", "item_id"]


@dataclass(frozen=True)
class Cell:
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
    cells: tuple[Cell, ...]  # comparisons; a cell with fewer than ten common items is left out
    averages: tuple[Cell, ...]
    diagonal: Diagonal | None  # none for fewer than two tasks both trained and tested


def transfer(
    rows: pd.DataFrame, family: Family, bound: float | None = None, seed: int = 0
) -> Transfer | None:
    """Compare what was trained from one base with the base, task by task."""
    rows_of = {str(group): own for group, own in rows.groupby("reader_group")}
    base = rows_of.get(family.base)
    models = [one for one in family.models if one.group in rows_of]
    if base is None or not models:
        return None
    models.sort(key=lambda one: TASKS.index(one.task) if one.task in TASKS else len(TASKS))
    tasks = tuple(task for task in TASKS if (base["task"] == task).any())
    shares = pd.DataFrame({one.group: _by_task(rows_of[one.group], tasks) for one in models})
    found: list[tuple[str, Trained, Paired]] = []
    whole: list[tuple[str, Trained, Paired]] = []
    for one in models:
        first, second = in_common(base, rows_of[one.group])
        for task in tasks:
            own = first[first["task"] == task], second[second["task"] == task]
            found += [(task, one, met)] if (met := paired(*own, bound, seed)) is not None else []
        whole += [(AVERAGE, one, met)] if (met := paired(first, second, bound, seed)) is not None else []
    gains = {one.group: _item_gains(base, rows_of[one.group]) for one in models if one.task in tasks}
    return Transfer(
        family.base,
        tasks,
        tuple(models),
        {str(task): float(share) for task, share in _by_task(base, tasks).items()},
        shares,
        tuple(_adjusted(found)),
        tuple(_adjusted(whole)),
        diagonal_of_items(gains, {one.group: str(one.task) for one in models if one.task in tasks}, seed),
    )


def _by_task(rows: pd.DataFrame, tasks: Sequence[str]) -> pd.Series[float]:
    shares = rows.groupby("task", observed=True)["right"].mean().reindex(list(tasks))
    shares[AVERAGE] = shares.mean()
    return shares


def _adjusted(found: Sequence[tuple[str, Trained, Paired]]) -> Iterator[Cell]:
    adjusted = corrected(np.array([one.p for *_, one in found]), "BH")
    for (task, model, one), p in zip(found, adjusted, strict=True):
        yield Cell(task, model, one, float(p))


def _item_gains(base: pd.DataFrame, trained: pd.DataFrame) -> pd.Series[float]:
    first, second = in_common(base, trained)
    means = [rows.groupby(_ITEM, observed=True)["right"].mean() for rows in (first, second)]
    return (means[1] - means[0]).dropna()


def diagonal_of_items(
    gains: Mapping[str, pd.Series[float]], trained_on: Mapping[str, str], seed: int
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
    own = np.array([[trained_on[name] == task for name in models] for task in tasks])
    means = np.array([np.nanmean(values, axis=0) for values in by_task.values()])
    drawn = np.stack(
        [
            resampled_means(values, stable_seed(seed, "diagonal of transfer", task))
            for task, values in by_task.items()
        ],
        axis=1,
    )
    ends = interval(np.asarray(drawn[:, own].mean(axis=1) - drawn[:, ~own].mean(axis=1)))
    found = diagonal(_square(means, tasks, [trained_on[name] for name in models]), seed)
    return Diagonal(
        found.tasks,
        found.within,
        found.across,
        found.difference,
        ends.low,
        ends.high,
        found.p,
        found.smallest_p,
    )


def _square(means: NDArray[np.float64], tasks: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """Average the columns of models that were trained on the same task."""
    return np.array(
        [means[:, [place for place, task in enumerate(columns) if task == one]].mean(axis=1) for one in tasks]
    ).T
