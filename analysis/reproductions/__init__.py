"""Published tables recomputed from released outputs, cell by cell."""

from pathlib import Path

import pandas as pd

from stimuli.papers import papers


def scrambled_bench_tables(
    source: str | Path | pd.DataFrame, *, printed: bool = False
) -> dict[str, pd.DataFrame]:
    """Make Tables 3, 4 and 5 of Cao et al. (2023) from their released outputs; numbers, or ``printed`` text as in the paper."""
    make = papers()["scrambled-bench"].part("chapter.reproduction:released_tables")
    tables: dict[str, pd.DataFrame] = make(source, printed=printed)
    return tables
