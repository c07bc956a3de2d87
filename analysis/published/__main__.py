"""``python -m analysis.published FOLDER``: Tables 3, 4 and 5 of Scrambled Bench from its released outputs."""

from __future__ import annotations

import sys

from analysis.published.scrambled_bench import compare_with_print, scrambled_bench_tables
from stimuli.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of a released folder and how many cells are those in print; 0 where all are, 1 otherwise."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        print("Give the folder that holds outputs/ and stimuli/.", file=sys.stderr)
        return 2
    try:
        tables = scrambled_bench_tables(given[0], printed=True)
    except UserError as error:
        print(error.message, error.mend or "", sep="\n", file=sys.stderr)
        return 2
    for number, table in tables.items():
        print(f"Table {number}\n{table.to_string()}\n")
    cells = compare_with_print(tables)
    different = cells[~cells["same"]]
    print(f"{int(cells['same'].sum())} of {len(cells)} cells are those in print.")
    if len(different):
        print(different.to_string(index=False))
    return int(len(different) > 0)


if __name__ == "__main__":
    sys.exit(main())
