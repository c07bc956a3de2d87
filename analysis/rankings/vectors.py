"""Which item in which condition each reader got wrong: the vectors by which readers are told apart and compared.

A unit is a participant, or one session of a model; a cell is an item in a condition. Failures count as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from analysis.fidelity.items import item_values
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_UNITS = 200
"""Participants of a group, or sessions of all models, that are compared pair by pair."""


@dataclass(frozen=True, eq=False)
class ErrorVectors:
    """Right and wrong answers, unit by unit and cell by cell."""

    right: sparse.csr_matrix  # shape (units, cells): sum of right answers (0 or 1 each) and number of answers
    met: sparse.csr_matrix  # shape (units, cells)
    names: tuple[str, ...]  # of each unit: its participant or session, and its reader group
    groups: tuple[str, ...]
    strata: Places  # shape (units,): units of one stratum met the same list
    items: Places  # shape (cells,): the item of each cell
    levels: Places  # shape (cells,): the level of each cell
    kinds: dict[str, str]  # reader kind of each group, in the order of reports
    left_out: dict[str, int]  # group → units beyond `MOST_UNITS`, drawn by a stable hash

    def units_of(self, *groups: str) -> Places:
        """Return the places of the units of some groups."""
        return np.array([place for place, one in enumerate(self.groups) if one in groups], dtype=np.intp)


def error_vectors(tables: Tables, factor: str) -> ErrorVectors:
    """Return every reader's errors; baselines, which answer by rule, are left out."""
    levels = tables.levels_of(factor)
    rows = item_values(tables.trials, factor, "correct")
    rows = rows[(rows["reader_kind"] != "baseline") & rows[factor].isin(levels)]
    if rows.empty:
        raise UserError(f"no answer under {factor} is right or wrong", mend="Give trials that are scored.")
    study = str(tables.dictionary["study"])
    once = rows.drop_duplicates(["reader_group", "unit"])
    keep: list[tuple[str, str]] = []
    left_out: dict[str, int] = {}
    models = max(1, int((kinds := once["reader_kind"]).eq("model").groupby(once["reader_group"]).any().sum()))
    for group, own in once.groupby("reader_group"):
        most = MOST_UNITS if kinds[own.index[0]] in PARTICIPANT_KINDS else max(2, MOST_UNITS // models)
        names = sorted(own["unit"], key=partial(_turn, study, str(group)))
        if len(names) > most:
            left_out[str(group)] = len(names) - most
        keep += [(str(group), str(name)) for name in sorted(names[:most])]
    units = pd.MultiIndex.from_tuples(keep)
    place = units.get_indexer(pd.MultiIndex.from_frame(rows[["reader_group", "unit"]].astype(str)))
    rows, place = rows[place >= 0], place[place >= 0]
    cells, known = pd.factorize(pd.MultiIndex.from_frame(rows[["item", factor]]))
    shape = (len(units), len(known))
    value = rows["value"].to_numpy(dtype=float)
    strata = np.zeros(len(units), dtype=np.intp)
    strata[place] = pd.factorize(rows["list"].astype(object).where(rows["list"].notna(), "-"))[0]
    return ErrorVectors(
        right=sparse.coo_matrix((value, (place, cells)), shape=shape).tocsr(),
        met=sparse.coo_matrix((np.ones(len(rows)), (place, cells)), shape=shape).tocsr(),
        names=tuple(name for _, name in keep),
        groups=tuple(group for group, _ in keep),
        strata=strata,
        items=pd.factorize(known.get_level_values(0))[0],
        levels=np.array([levels.index(level) for level in known.get_level_values(1)], dtype=np.intp),
        kinds={group: kinds_of(rows)[group] for group in group_order(rows)},
        left_out=left_out,
    )


def _turn(study: str, group: str, name: object) -> int:
    return stable_seed(study, "vectors", group, str(name))
