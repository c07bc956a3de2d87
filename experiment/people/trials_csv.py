"""The trials table as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiment.columns import trial_columns
from experiment.exporting.cells import cell, line
from experiment.rows.trials import trial_rows
from experiment.store import Store


def trials_csv(store: Store, study: str, factors: Sequence[str]) -> Iterator[str]:
    """Write a study's trials line by line: the columns of the trials table, then one a factor."""
    columns = {name: column.type == "string" for name, column in trial_columns().items()}
    columns |= dict.fromkeys(factors, True)
    yield line(columns)
    with store.read() as connection:
        for row in trial_rows(connection, study):
            yield line(cell(row.get(name), is_text=is_text) for name, is_text in columns.items())
