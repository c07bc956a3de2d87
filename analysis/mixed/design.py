"""Model matrices column by column as R's ``model.matrix`` makes them, with R's names.

R codes a factor inside a term by contrasts when an earlier term holds the rest of that term, and by one column per level
otherwise (``TermCode`` in R's model.c; Chambers and Hastie 1992, section 2.4.1); without an intercept the first factor
gets all its levels. Columns that repeat earlier ones are then dropped and named, as lme4 does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli.errors import UserError

from .formula import Terms
from .variables import Factor, Numeric, Variable, Variables

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-7
"""R's tolerance for a column that others explain (``qr(X, tol = 1e-7)``)."""


@dataclass(frozen=True)
class Design:
    """A recipe for a model matrix.

    Attributes
    ----------
    terms : Terms
        What the columns stand for.
    variables : tuple of Variable
        Parallel to ``terms.variables``.
    full : frozenset of (int, int)
        (term, variable) pairs coded with a column for every level.
    names : tuple of str
        Column names, R's.
    """

    terms: Terms
    variables: tuple[Variable, ...]
    full: frozenset[tuple[int, int]]
    names: tuple[str, ...]

    def matrix(self, data: pd.DataFrame) -> Array:
        """Evaluate on data without missing cells; shape (n, p)."""
        n = len(data)
        blocks = [np.ones((n, 1))] if self.terms.intercept else []
        evaluated: dict[tuple[int, bool], Array] = {}
        for t, term in enumerate(self.terms.terms):
            block = np.ones((n, 1))
            for v in sorted(term):
                key = (v, (t, v) in self.full)
                if key not in evaluated:
                    evaluated[key] = _columns(self.variables[v], data, key[1])
                # The earlier variable's columns run fastest.
                block = (evaluated[key][:, :, None] * block[:, None, :]).reshape(n, -1)
            blocks.append(block)
        return np.hstack(blocks) if blocks else np.empty((n, 0))

    def factors(self) -> dict[str, Factor]:
        """Return the factors among the variables, by column."""
        return {v.column: v for v in self.variables if isinstance(v, Factor) and v.condition is None}


def _columns(variable: Variable, data: pd.DataFrame, full: bool) -> Array:
    if isinstance(variable, Numeric):
        return variable.values(data)
    coding = np.eye(len(variable.levels)) if full else variable.coding()[0]
    return np.asarray(coding[variable.codes(data)])


def _column_names(variable: Variable, full: bool) -> list[str]:
    if isinstance(variable, Numeric):
        return [variable.label + s for s in variable.suffixes]
    suffixes = variable.shown if full else variable.coding()[1]
    return [variable.label + s for s in suffixes]


def make_design(terms: Terms, variables: Variables) -> Design:
    """Decide the coding of every factor in every term.

    Parameters
    ----------
    terms : Terms
        A one-sided formula.
    variables : Variables
        Makes each variable from the data.

    Raises
    ------
    UserError
        If a factor has fewer than two levels.
    """
    made = tuple(variables.make(node) for node in terms.variables)
    for variable in made:
        if isinstance(variable, Factor) and len(variable.levels) < 2:
            raise UserError(
                f"{variable.label!r} has only the level {', '.join(variable.levels) or '(none)'} in the rows used",
                mend="A factor needs two levels or more; drop it from the formula or look at the missing rows.",
            )
    is_factor = [isinstance(v, Factor) for v in made]
    full: set[tuple[int, int]] = set()
    for t, term in enumerate(terms.terms):
        for v in term:
            rest = term - {v}
            if is_factor[v] and rest and not any(rest <= earlier for earlier in terms.terms[:t]):
                full.add((t, v))
    if not terms.intercept:
        first = next(
            ((t, v) for t, term in enumerate(terms.terms) for v in sorted(term) if is_factor[v]), None
        )
        full |= {first} if first else set()
    names = ["(Intercept)"] if terms.intercept else []
    for t, term in enumerate(terms.terms):
        block = [""]
        for v in sorted(term):
            block = [f"{a}:{b}" if a else b for b in _column_names(made[v], (t, v) in full) for a in block]
        names += block
    return Design(terms, made, frozenset(full), tuple(names))


def independent_columns(x: Array) -> list[int]:
    """Return the columns that earlier ones do not explain, in order, by R's rule for rank.

    Parameters
    ----------
    x : ndarray, shape (n, p)
        A model matrix.
    """
    found = np.empty(x.shape, order="F")
    kept: list[int] = []
    for j in range(x.shape[1]):
        column, basis = x[:, j], found[:, : len(kept)]
        size = float(np.linalg.norm(column))
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        if size > 0 and left > RANK_TOLERANCE * size:
            found[:, len(kept)] = rest / left
            kept.append(j)
    return kept
