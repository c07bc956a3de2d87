"""Exploratory models of very many answers are fitted to some of the people and sessions, drawn at random.

An evaluation of a logistic mixed model costs what its rows and the square of its participants cost, and a fit takes some hundred
and fifty. Beyond ``MOST_ROWS`` rows a model that nobody planned is fitted to whole people and whole sessions of models, the same
share of each reader's. Which ones follows from their names alone, so that every model of a study has the same. Planned models
have every row, and so have linear models, whose evaluations cost nothing in rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.frames import ModelData
from analysis.plan import Plan
from analysis.whole_readers import draw, shares

MOST_ROWS = 100_000
"""Rows of a generalised model that nobody planned, about."""
FEWEST = 10
"""People, or sessions, that each reader keeps at least, where it has them."""


def thinned(plan: Plan, data: ModelData) -> tuple[ModelData, list[str]]:
    """Keep the rows that a model is fitted to, and say which where that is not all."""
    rows = data.rows
    if plan.planned or plan.measure.family == "gaussian" or len(rows) <= MOST_ROWS:
        return data, []
    is_person = (rows["people"] == 1).to_numpy()
    units = rows["session_id"].where(~is_person, rows["participant"]).astype(str)
    kept = np.zeros(len(rows), dtype=bool)
    groups = rows["reader_group"].astype(str)
    chosen = draw(groups, units, shares(groups, MOST_ROWS), FEWEST).kept
    for group in data.groups:
        own = (groups == group).to_numpy()
        drawn = own & chosen
        kept |= drawn if _as_varied(rows, plan, own, drawn) else own
    if kept.all():
        return data, []
    parts = [
        f"{units[kept & kind].nunique():,} of {units[kind].nunique():,} {noun}"
        for kind, noun in ((is_person, "participants"), (~is_person, "sessions of models"))
        if kind.any()
    ]
    told = (
        f"The model is fitted to {int(kept.sum()):,} of {len(rows):,} rows, of {' and '.join(parts)}, drawn at random within each "
        f"reader: models that were not planned are fitted to about {MOST_ROWS:,} rows, planned ones to all."
    )
    return replace(data, rows=rows[kept].reset_index(drop=True)), [told]


def _as_varied(rows: pd.DataFrame, plan: Plan, own: NDArray[np.bool_], drawn: NDArray[np.bool_]) -> bool:
    """Whether the rows drawn hold every condition of a reader, each with more than one value of the response."""
    response = plan.measure.response

    def varied(part: NDArray[np.bool_]) -> int:
        return int((rows[part].groupby(plan.factor, observed=True)[response].nunique() > 1).sum())

    return varied(drawn) == varied(own)
