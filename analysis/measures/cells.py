"""Which columns make the cells that a measure is taken in."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from stimuli.errors import unknown_name


def cell_columns(trials: pd.DataFrame, by: Sequence[str] | str) -> list[str]:
    """Return the columns that are named, of which one may be given as text alone."""
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in trials.columns:
            raise unknown_name("by: column", name, list(trials.columns))
    return names
