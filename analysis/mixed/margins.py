"""Estimated marginal means and their contrasts, on the link scale and on the response scale.

Means are those of emmeans (Lenth 2022): the model's prediction, random effects at zero, on a reference grid of all
factor levels with covariates at their mean (both values of a two-valued covariate), averaged with equal weights over
what is not asked for. Response-scale standard errors are by the delta method.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

from .expression import columns_of
from .inference import linear_contrasts, wald_table
from .result import Fit
from .variables import Factor, level_name

Array = NDArray[np.float64]

SCALES = ("link", "response", "ratio")


@dataclass(frozen=True, eq=False)
class Margins:
    """Marginal means of a fit.

    Attributes
    ----------
    fit : Fit
        The model.
    grid : DataFrame, shape (r, factors)
        The cell of each mean; the first factor varies fastest.
    matrix : ndarray, shape (r, p)
        Means on the link scale are ``matrix @ beta``; rows that the data cannot tell are nan.
    """

    fit: Fit
    grid: pd.DataFrame
    matrix: Array

    def table(self, scale: str = "link", level: float = 0.95) -> pd.DataFrame:
        """Return the means with standard errors, intervals and tests against zero on the link scale.

        Parameters
        ----------
        scale : {'link', 'response'}
            Scale of estimate, se and interval.
        level : float
            Coverage of the intervals.
        """
        rows = linear_contrasts(self.fit, self.matrix, level=level).drop(columns="contrast")
        if scale == "response":
            link = self.fit.model.link
            eta = rows["estimate"].to_numpy()
            rows["se"] = link.slope(eta) * rows["se"]
            for column in ("estimate", "ci_low", "ci_high"):
                rows[column] = link.inverse(rows[column].to_numpy())
        elif scale != "link":
            raise unknown_name("scale", scale, ("link", "response"))
        return pd.concat([self.grid, rows], axis=1)

    def pairs(
        self,
        by: Sequence[str] | str = (),
        *,
        reverse: bool = False,
        scale: str = "link",
        adjust: str = "holm",
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Compare every two means within each level of ``by``.

        Parameters
        ----------
        by : str or sequence of str
            Factors to hold fixed; each of their cells is a family of its own.
        reverse : bool
            Later minus earlier.
        scale : {'link', 'response', 'ratio'}
            Differences of linear predictors, differences of means, or exp of the former (odds ratios).
        adjust : str
            ``none``, ``holm``, ``bonferroni``, ``BH``, ``sidak`` or ``tukey``.
        """
        held = [by] if isinstance(by, str) else list(by)
        count = len(self.grid) // max(1, len(self.grid.drop_duplicates(held)) if held else 1)
        first, second = np.triu_indices(count, 1)
        weights = np.zeros((len(first), count))
        weights[np.arange(len(first)), first] = -1.0 if reverse else 1.0
        weights[np.arange(len(first)), second] = 1.0 if reverse else -1.0
        ends = [(j, i) if reverse else (i, j) for i, j in zip(first, second, strict=True)]
        return self._contrast(weights, ends, held, scale, adjust, level, count)

    def contrast(
        self,
        weights: Mapping[str, Sequence[float]],
        by: Sequence[str] | str = (),
        *,
        scale: str = "link",
        adjust: str = "holm",
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Estimate named combinations of the means within each level of ``by``.

        Parameters
        ----------
        weights : mapping of str to sequence of float
            Per contrast one weight per mean, in the order of ``table()`` (within a cell of ``by``).
        by, scale, adjust, level
            As for ``pairs``.
        """
        held = [by] if isinstance(by, str) else list(by)
        return self._contrast(
            np.array([list(w) for w in weights.values()], dtype=float),
            list(weights),
            held,
            scale,
            adjust,
            level,
        )

    def interaction(
        self, methods: Mapping[str, str], *, scale: str = "link", adjust: str = "holm", level: float = 0.95
    ) -> pd.DataFrame:
        """Contrast contrasts: a contrast of each factor, multiplied.

        Parameters
        ----------
        methods : mapping of str to {'pairwise', 'revpairwise', 'treatment'}
            One per factor of the grid; ``treatment`` compares each level with the first.
        """
        names = list(self.grid.columns)
        if set(methods) != set(names):
            raise UserError(f"an interaction needs a contrast for each of {', '.join(names)}")
        # The grid's first factor varies fastest, so it is the last factor of the Kronecker product.
        total: Array = np.ones((1, 1))
        labels = [""]
        for name in names:
            matrix, own = _one_factor(methods[name], list(dict.fromkeys(self.grid[name])))
            total = np.asarray(np.kron(matrix, total), dtype=float)
            labels = [f"({b}) : ({a})" if b else f"{a}" for a in own for b in labels]
        return self._contrast(total, labels, [], scale, adjust, level)

    def _contrast(
        self,
        weights: Array,
        labels: Sequence[Any],
        by: list[str],
        scale: str,
        adjust: str,
        level: float,
        family_size: int | None = None,
    ) -> pd.DataFrame:
        if scale not in SCALES:
            raise unknown_name("scale", scale, SCALES)
        for name in by:
            if name not in self.grid:
                raise unknown_name("factor", name, [str(c) for c in self.grid.columns])
        cells = self.grid.groupby(by, sort=False).indices.items() if by else [((), np.arange(len(self.grid)))]
        free = [c for c in self.grid.columns if c not in by]
        tables = []
        for cell, members in cells:
            if weights.shape[1] != len(members):
                raise UserError(f"a contrast has {weights.shape[1]} weights for {len(members)} means")
            names = [
                label
                if isinstance(label, str)
                else self._difference(members[label[0]], members[label[1]], free, scale)
                for label in labels
            ]
            table = self._estimate(weights, self.matrix[members], scale, adjust, level, family_size)
            table.insert(0, "contrast", names)
            values = cell if isinstance(cell, tuple) else (cell,)
            for at, (name, value) in enumerate(zip(by, values, strict=True)):
                table.insert(1 + at, name, value)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def _difference(self, i: int, j: int, free: list[Any], scale: str) -> str:
        sign = "/" if scale == "ratio" else "-"
        first, second = (" ".join(str(self.grid[c].iloc[at]) for c in free) for at in (i, j))
        return f"{first} {sign} {second}"

    def _estimate(
        self, weights: Array, means: Array, scale: str, adjust: str, level: float, family_size: int | None
    ) -> pd.DataFrame:
        if scale != "response":
            table = linear_contrasts(
                self.fit, weights @ means, adjust=adjust, level=level, family_size=family_size
            ).drop(columns="contrast")
            if scale == "ratio":
                if self.fit.model.link.ratio is None:
                    raise UserError(f"differences under the {self.fit.link} link have no ratio reading")
                table["estimate"] = np.exp(table["estimate"])
                table["se"] = table["estimate"] * table["se"]
                table["ci_low"], table["ci_high"] = np.exp(table["ci_low"]), np.exp(table["ci_high"])
            return table
        link = self.fit.model.link
        eta = means @ self.fit.fixed["estimate"].to_numpy()
        jacobian = weights @ (link.slope(eta)[:, None] * means)
        vcov = self.fit.vcov.to_numpy()
        se = np.sqrt(np.einsum("ri,ij,rj->r", jacobian, vcov, jacobian))
        df = self.fit.degrees.df(jacobian, vcov) if self.fit.degrees is not None else None
        return wald_table(
            weights @ link.inverse(eta), se, df, adjust=adjust, level=level, family_size=family_size
        )


def _one_factor(method: str, levels: list[Any]) -> tuple[Array, list[str]]:
    count = len(levels)
    if method == "treatment":
        ends = [(j, 0) for j in range(1, count)]
    elif method in {"pairwise", "revpairwise"}:
        ends = list(itertools.combinations(range(count), 2))
        ends = [(j, i) for i, j in ends] if method == "revpairwise" else ends
    else:
        raise unknown_name("contrast method", method, ("pairwise", "revpairwise", "treatment"))
    matrix = np.zeros((len(ends), count))
    for row, (plus, minus) in enumerate(ends):
        matrix[row, plus], matrix[row, minus] = 1.0, -1.0
    return matrix, [f"{levels[plus]} - {levels[minus]}" for plus, minus in ends]


def margins(
    fit: Fit, factors: Sequence[str] | str, at: Mapping[str, Sequence[Any] | Any] | None = None
) -> Margins:
    """Compute marginal means of a fitted model.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    factors : str or sequence of str
        Columns of the fixed part whose cells are wanted; the first varies fastest.
    at : mapping, optional
        Values for columns in place of all levels (factors) or the mean (covariates).

    Returns
    -------
    Margins

    Raises
    ------
    UserError
        For a column that is not in the fixed part.
    """
    wanted = [factors] if isinstance(factors, str) else list(factors)
    values = _grid_values(fit, at or {})
    for name in wanted:
        if name not in values:
            raise unknown_name("column of the fixed part", name, values)
    order = [*wanted, *(c for c in values if c not in wanted)]
    # itertools.product varies its last argument fastest.
    cells = list(itertools.product(*(values[c] for c in reversed(order))))
    grid = pd.DataFrame(cells, columns=list(reversed(order)))[order] if order else pd.DataFrame(index=[0])
    matrices = fit.model.matrices
    whole = matrices.design.matrix(grid)
    kept = list(matrices.kept)
    rows = whole[:, kept]
    others = [j for j in range(whole.shape[1]) if j not in kept]
    # A cell mean is estimable only if the dropped columns take the value that the kept ones imply.
    lost = np.abs(whole[:, others] - rows @ matrices.alias).max(axis=1, initial=0.0) > 1e-6
    rows = np.where(lost[:, None], np.nan, rows)
    size = int(np.prod([len(values[c]) for c in wanted])) if wanted else 1
    matrix = rows.reshape(-1, size, rows.shape[1]).mean(axis=0)
    return Margins(fit, grid[wanted].iloc[:size].reset_index(drop=True), matrix)


def _grid_values(fit: Fit, at: Mapping[str, Any]) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    data = fit.model.frame.data
    for variable in fit.model.matrices.design.variables:
        if isinstance(variable, Factor) and variable.condition is None:
            values[variable.column] = list(variable.levels)
            continue
        node = variable.node if not isinstance(variable, Factor) else variable.condition.node  # type: ignore[union-attr]
        for column in columns_of(node):
            cells = data[column]
            if not pd.api.types.is_numeric_dtype(cells):
                values.setdefault(column, list(fit.model.frame.variables.factor(column).levels))
                continue
            distinct = np.unique(cells.to_numpy(dtype=float))
            values.setdefault(column, distinct.tolist() if len(distinct) == 2 else [float(cells.mean())])
    for name, chosen in at.items():
        if name not in values:
            raise unknown_name("column of the fixed part", name, values)
        several = list(chosen) if isinstance(chosen, list | tuple | np.ndarray) else [chosen]
        if all(isinstance(v, str) for v in values[name]):
            several = [level_name(v) for v in several]
            for level in several:
                if level not in values[name]:
                    raise unknown_name(f"level of {name}", level, values[name])
        values[name] = several
    return values
