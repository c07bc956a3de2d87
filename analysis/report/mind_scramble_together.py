"""Mind Scramble's tables over several studies, a data set or task each, and perception against completion.

From a shell, after each study has its report (or an export)::

    python -m analysis.report.mind_scramble_together gsm8k boolq csqa rectify --out tables

prints Tables 1 to 4 with a part for each study and the readers' ranks, and writes them as CSV into the folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis import load
from analysis.published.mind_scramble import Values, factor_of, fault_prices, values_of
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.chapters.mind_scramble_tables import (
    edit_table,
    fault_table,
    rank_table,
    reordering_table,
    similarity_of_inputs,
    similarity_table,
)
from stimuli.errors import UserError


def tables_together(folders: Sequence[Path]) -> list[ApaTable]:
    """Lay out Tables 1 to 4, ranks and faults over several studies.

    Parameters
    ----------
    folders : sequence of Path
        Studies with a report, or their exports.

    Raises
    ------
    UserError
        A study has none of the paper's operations, or two have the same name.
    """
    completed: list[tuple[str, Values]] = []
    restored: list[tuple[str, Values]] = []
    kinds: dict[str, str] = {}
    prices, near, use = [], [], ""
    for folder in folders:
        tables = load(folder)
        factor = factor_of(tables)
        if factor is None:
            raise UserError(
                f"{folder} has none of Mind Scramble's operations",
                mend="Give studies made from the template mind-scramble, whose levels keep their names.",
            )
        name = str(tables.dictionary["study"])
        if any(name == other for other, _ in (*completed, *restored)):
            raise UserError(f"two studies are called {name}", mend="Name each once.")
        kinds |= kinds_of(tables.trials)
        if (values := values_of(tables, factor)) is not None:
            (restored if values.is_restored else completed).append((name, values))
        prices.append(fault_prices(tables))
        if (told := similarity_of_inputs(tables.folder)) is not None:
            use = told[0]
            near.append((name, told[1]))
    found: list[ApaTable] = []
    if completed:
        found += [
            reordering_table("table_1", completed, kinds, number=1),
            edit_table("table_3", completed, kinds),
        ]
    if restored:
        found.append(reordering_table("table_2", restored, kinds, number=2))
    if near:
        found.append(similarity_table("table_4", near, use))
    if len(completed) + len(restored) > 1:
        found.append(rank_table("ranks", [*completed, *restored], kinds))
    together = pd.concat(prices, ignore_index=True) if prices else pd.DataFrame()
    return [*found, fault_table("faults", together, kinds)] if len(together) else found


def main(given: Sequence[str] | None = None) -> int:
    """Print the tables, and write them where ``--out`` says."""
    parser = argparse.ArgumentParser(prog="python -m analysis.report.mind_scramble_together")
    parser.add_argument("studies", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="folder for CSV files")
    asked = parser.parse_args(given)
    try:
        found = tables_together(asked.studies)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    for table in found:
        print(f"\n{table.title}\n")
        print("\n".join("  ".join(f"{cell:<14}" for cell in row) for row in (table.columns, *table.rows)))
        print(f"\n{table.note}")
        if asked.out is not None:
            table.save(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
