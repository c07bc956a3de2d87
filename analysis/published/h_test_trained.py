"""Table 8 of H-TEST as printed: gpt-3.5-turbo-0613 before and after training on each task, and what its numbers say of themselves.

Percent of 200 items at k = 50. The paper prints no test and no answers: of each cell only the largest p of McNemar's test can be
told that any overlap of the two sets of answers allows. The diagonal can be set against the rest, as in a study of one's own
(:func:`analysis.measures.diagonal.diagonal`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import StringIO

import pandas as pd
from scipy import stats

from analysis.measures.diagonal import Diagonal, diagonal
from analysis.published.h_test_tables import TASKS

ORIGINAL, AVERAGE = "original", "average"
ITEMS = 200
"""Items of a task."""
_HALF = 0.05 + 1e-9
"""The printed averages have one decimal or two; one decimal is off by at most this."""


@dataclass(frozen=True)
class PrintedAverage:
    """A printed average beside the mean of its printed cells, in percent."""

    trained_on: str
    printed: float
    mean: float

    @property
    def agrees(self) -> bool:
        """Whether the print is the mean, rounded or cut to one decimal or more."""
        return abs(self.printed - self.mean) < 2 * _HALF


@cache
def printed_transfer() -> pd.DataFrame:
    """Return the printed table in percent, shape (10 + 1, 1 + 10): test tasks and the average by ``original`` and training tasks."""
    text = resources.files(__package__).joinpath("h_test_trained.csv").read_text("utf-8")
    cells = pd.read_csv(StringIO(text), comment="#")
    wide = cells.pivot(index="task", columns="trained_on", values="printed")
    return wide.loc[[*TASKS, AVERAGE], [ORIGINAL, *TASKS]]


def printed_averages() -> list[PrintedAverage]:
    """Set the printed column averages beside the means of the printed cells."""
    table = printed_transfer()
    means = table.loc[list(TASKS)].mean()
    return [
        PrintedAverage(str(column), float(table[column][AVERAGE]), float(means[column]))
        for column in table.columns
    ]


def printed_diagonal() -> Diagonal:
    """Test whether the printed gains on the task trained are others than on other tasks."""
    table = printed_transfer().loc[list(TASKS)]
    gains = table[list(TASKS)].sub(table[ORIGINAL], axis=0)
    return diagonal(gains.to_numpy(dtype=float) / 100)


def largest_p(first: float, second: float, items: int = ITEMS) -> float:
    """Return McNemar's largest exact p for two shares of the same items, whatever their overlap."""
    one, other = round(items * first / 100), round(items * second / 100)
    gained = min(other, items - one)
    lost = gained + one - other
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def impossible_cells(items: int = ITEMS) -> list[tuple[str, str, float]]:
    """Return the printed cells that are no share of so many items: test task, training task, percent."""
    table = printed_transfer().loc[list(TASKS)]
    found = []
    for task, row in table.iterrows():
        for column, value in row.items():
            if abs(value * items / 100 - round(value * items / 100)) > 1e-6:
                found.append((str(task), str(column), float(value)))
    return found
