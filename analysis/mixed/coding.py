"""How a factor's levels become columns: R's named contrasts, and contrasts given as numbers.

formulaic supplies treatment, sum, Helmert and polynomial contrasts; successive differences (``MASS::contr.sdif``) follow
Venables and Ripley (2002, section 6.2). Contrasts of the user's own are the columns of R's ``contrasts(f) <- matrix``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from formulaic.transforms.contrasts import (
    HelmertContrasts,
    PolyContrasts,
    SumContrasts,
    TreatmentContrasts,
)
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

Array = NDArray[np.float64]

Given = str | Sequence[Sequence[float]] | Mapping[str, Sequence[float]]
"""Contrasts as a user gives them: a name, one column of numbers a contrast, or such columns by name."""

_FORMULAIC = {
    "treatment": TreatmentContrasts,
    "sum": SumContrasts,
    "helmert": HelmertContrasts,
    "poly": PolyContrasts,
}
CONTRASTS = (*_FORMULAIC, "sdif")
"""Contrast codings by name, as R's contr.treatment, contr.sum, …"""
_POWERS = {1: ".L", 2: ".Q", 3: ".C"}


@dataclass(frozen=True)
class Coding:
    """A contrast coding of one factor.

    Attributes
    ----------
    name : str
        One of ``CONTRASTS``, or ``custom``.
    columns : tuple of tuple of float
        The custom contrasts, each with one number per level; empty for named codings.
    names : tuple of str
        Names of the custom contrasts.
    """

    name: str = "treatment"
    columns: tuple[tuple[float, ...], ...] = ()
    names: tuple[str, ...] = ()

    def matrix(self, levels: Sequence[str]) -> Array:
        """Contrast matrix, shape (levels, levels - 1)."""
        count = len(levels)
        if self.name == "custom":
            return np.array(self.columns, dtype=float).T
        if self.name == "sdif":
            j = np.arange(1.0, count)
            below = np.arange(1, count + 1)[:, None] > j
            return np.asarray(np.where(below, j / count, j / count - 1.0))
        return np.asarray(_FORMULAIC[self.name]().get_coding_matrix(list(levels)), dtype=float)

    def suffixes(self, levels: Sequence[str]) -> tuple[str, ...]:
        """Return what R appends to the factor's name for each column."""
        count = len(levels) - 1
        if self.name == "custom":
            return self.names
        if self.name == "treatment":
            return tuple(levels[1:])
        if self.name == "sdif":
            return tuple(f"{b}-{a}" for a, b in pairwise(levels))
        if self.name == "poly":
            return tuple(_POWERS.get(i + 1, f"^{i + 1}") for i in range(count))
        return tuple(str(i + 1) for i in range(count))


def read_coding(factor: str, given: Given, levels: Sequence[str]) -> Coding:
    """Check contrasts as a user gives them.

    Parameters
    ----------
    factor : str
        The column's name, for messages.
    given : str, sequence of sequences, or mapping of str to sequence
        A name; or one sequence of numbers a contrast, in the order of the levels.
    levels : sequence of str
        The factor's levels.

    Raises
    ------
    UserError
        If the name is not known, or the numbers do not tell the levels apart.
    """
    if isinstance(given, str):
        name = given.removeprefix("contr.")
        if name not in CONTRASTS:
            raise unknown_name(f"contrast of {factor}", name, CONTRASTS)
        return Coding(name)
    names = tuple(str(k) for k in given) if isinstance(given, Mapping) else ()
    raw = given.values() if isinstance(given, Mapping) else given
    columns = tuple(tuple(float(v) for v in column) for column in raw)
    wanted = len(levels) - 1
    order = ", ".join(levels)
    for i, column in enumerate(columns):
        if len(column) != len(levels):
            raise UserError(
                f"contrast {i + 1} of {factor} has {len(column)} numbers; the factor has {len(levels)} levels ({order})",
                mend="Give one number per level, in the order of the levels.",
            )
    if len(columns) != wanted:
        raise UserError(
            f"{factor} has {len(columns)} contrasts; a factor with {len(levels)} levels takes {wanted}",
            mend="Add contrasts until every difference between levels is covered.",
        )
    square = np.column_stack([np.ones(len(levels)), np.array(columns).T])
    if not np.isfinite(square).all() or np.linalg.matrix_rank(square) < len(levels):
        raise UserError(
            f"the contrasts of {factor} do not tell its levels apart ({order})",
            mend="No contrast may be constant over levels or a combination of the others.",
        )
    return Coding("custom", columns, names or tuple(str(i + 1) for i in range(wanted)))
