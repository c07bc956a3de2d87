"""Published tables made again from released outputs, cell for cell."""

from analysis.published.scrambled_bench import (
    all_printed_cells,
    compare_with_print,
    imported_trials,
    printed_cells,
    released_trials,
    scrambled_bench_tables,
)

__all__ = [
    "all_printed_cells",
    "compare_with_print",
    "imported_trials",
    "printed_cells",
    "released_trials",
    "scrambled_bench_tables",
]
