"""Estimated marginal means and trends, and their contrasts, on the link scale and on the response scale.

Means are those of emmeans (Lenth 2022): the model's prediction, random effects at zero, on a reference grid of all factor
levels with covariates at their mean (both values of a two-valued covariate), offsets included, averaged with equal weights
over the other factors. Trends are slopes of that prediction. Response-scale standard errors are by the delta method.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from analysis.arrays import Array
from analysis.mixed.formula import Node, as_r, columns_of
from analysis.mixed.inference import Testing, linear_contrasts, tested
from analysis.mixed.responses import TimeResponse
from analysis.mixed.result import Fit
from analysis.mixed.variables import Factor, Numeric, level_name
from stimuli.errors import UserError, unknown_name


def reference_grid(wanted: list[str], values: dict[str, list[Any]]) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Lay out all cells, those wanted varying fastest: (grid, names of the cells wanted, their number)."""
    for name in wanted:
        if name not in values:
            raise unknown_name("column of the fixed part", name, values)
        if wanted.count(name) > 1:
            raise UserError(
                f"{name!r} is named twice among the factors of the means", mend="Name each factor once."
            )
    order = [*wanted, *(c for c in values if c not in wanted)]
    # itertools.product varies its last argument fastest.
    cells = list(itertools.product(*(values[c] for c in reversed(order))))
    grid = pd.DataFrame(cells, columns=list(reversed(order)))[order] if order else pd.DataFrame(index=[0])
    size = int(np.prod([len(values[c]) for c in wanted])) if wanted else 1
    return grid, grid[wanted].iloc[:size].reset_index(drop=True), size


def rows_of(fit: Fit, grid: pd.DataFrame) -> Array:
    """Rows of X for a grid, nan where the data cannot tell the cell's mean; shape (cells, p)."""
    matrices = fit.model.matrices
    all_columns = matrices.design.matrix(grid)
    independent = list(matrices.kept)
    rows = all_columns[:, independent]
    others = [j for j in range(all_columns.shape[1]) if j not in independent]
    # A cell mean is estimable only if the dropped columns take the value that the kept ones imply.
    is_inestimable = np.abs(all_columns[:, others] - rows @ matrices.alias).max(axis=1, initial=0.0) > 1e-6
    return np.where(is_inestimable[:, None], np.nan, rows)


def offset_of(fit: Fit, grid: pd.DataFrame) -> Array:
    """Known part of the linear predictor (cells,): the mean offset, as in emmeans, or that at the grid if it has its columns."""
    frame = fit.model.frame
    total = np.full(len(grid), float(frame.offset.mean()))
    for node in fit.model.offset_nodes:
        if set(columns_of(node)) <= set(grid.columns):
            variable = frame.variables.make(node)
            assert isinstance(variable, Numeric)
            total += variable.values(grid)[:, 0] - float(variable.values(frame.data).mean())
    return total


def averaged(rows: Array, size: int) -> Array:
    """Average with equal weights over what is not asked for: (cells, …) to (size, …)."""
    return np.asarray(rows.reshape(-1, size, *rows.shape[1:]).mean(axis=0))


def grid_values(fit: Fit, at: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Choose the values of every column of the fixed part: all levels, the mean, or those given."""
    values: dict[str, list[Any]] = {}
    data = fit.model.frame.data
    nodes: list[Node] = []
    for variable in fit.model.matrices.design.variables:
        if isinstance(variable, Factor) and variable.condition is None:
            values[variable.column] = list(variable.levels)
            continue
        nodes.append(variable.node if not isinstance(variable, Factor) else variable.condition.node)  # type: ignore[union-attr]
    offsets = [node for node in fit.model.offset_nodes if set(columns_of(node)) & set(at)]
    for node in [*nodes, *offsets]:
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
        numeric = not all(isinstance(v, str) for v in values[name])
        chosen_values = list(chosen) if isinstance(chosen, list | tuple | np.ndarray) else [chosen]
        if numeric and not all(isinstance(v, int | float | np.number) for v in chosen_values):
            raise UserError(f"at {name} = {chosen!r}: {name} is a covariate", mend="Give numbers.")
        if not numeric:
            chosen_values = [level_name(v) for v in chosen_values]
            for level in chosen_values:
                if level not in values[name]:
                    raise unknown_name(f"level of {name}", level, values[name])
        values[name] = chosen_values
    return values


class PairOptions(Testing, total=False):
    """Options of comparisons; see ``Margins.pairs``."""

    scale: str


SCALES = ("link", "response", "ratio")
METHODS = ("pairwise", "revpairwise", "treatment", "consecutive", "effects")
"""Contrasts among the levels of one factor."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Marginal means of a fit, or trends along a covariate."""

    fit: Fit  # the model
    grid: pd.DataFrame  # (r, factors): the cell of each mean; the first factor varies fastest
    matrix: Array  # (r, p): link-scale means are ``matrix @ beta``; rows that the data cannot tell are nan
    known: Array  # (r,): the offset's part of each mean: the offset at the same grid, or its slope
    level_rows: Array | None = None  # (r, p): for trends, rows of the predictor where the slope is taken
    level_known: Array | None = None  # (r,): the offset there

    def table(self, scale: str = "link", level: float = 0.95, adjust: str = "none") -> pd.DataFrame:
        """Return the means with standard errors, intervals and tests against zero on the link scale.

        Parameters
        ----------
        scale : {'link', 'response'}
            Scale of estimate, se and interval; the response scale of a model of log(y) holds geometric means of y.
            Intervals of means are those of the link scale, transformed; of trends,
            symmetric.
        level : float
            Coverage of the intervals.
        adjust : str
            As for ``pairs``; the means are one family.
        """
        if scale not in SCALES[:2]:
            raise unknown_name("scale", scale, SCALES[:2])
        if scale == "response" and (self.level_rows is not None or self.fit.cuts or self.fit.shape):
            identity = np.eye(len(self.matrix))
            rows = self._estimate(identity, slice(None), scale, adjust=adjust, level=level)
            return _with_cells(self.grid, rows)
        rows = linear_contrasts(self.fit, self.matrix, level=level, adjust=adjust, known=self.known)
        rows = rows.drop(columns="contrast")
        if scale == "response":
            link = self.fit.model.back
            eta = rows["estimate"].to_numpy()
            rows["se"] = np.abs(link.slope(eta)) * rows["se"]
            ends = [link.inverse(rows[end].to_numpy()) for end in ("ci_low", "ci_high")]
            rows["estimate"] = link.inverse(eta)
            rows["ci_low"], rows["ci_high"] = np.minimum(*ends), np.maximum(*ends)
        return _with_cells(self.grid, rows)

    def pairs(
        self,
        by: Sequence[str] | str = (),
        *,
        reverse: bool = False,
        **options: Unpack[PairOptions],
    ) -> pd.DataFrame:
        """Compare every two means within each level of ``by``.

        Parameters
        ----------
        by : str or sequence of str
            Factors to hold fixed; each of their cells is a separate family.
        reverse : bool
            Later minus earlier.
        scale : {'link', 'response', 'ratio'}
            Differences of linear predictors (default), differences of means, or exp of the former (odds ratios).
        adjust : str
            ``none``, ``holm`` (default), ``bonferroni``, ``BH``, ``sidak``, ``tukey``, ``dunnett`` or ``mvt``. The table's
            ``attrs['adjustment']`` says which was used; see ``inference.suitable``.
        level : float
            Coverage of the intervals, which follow the adjustment; default 0.95.
        """
        by_factors = _several(by)
        count = self._cells(by_factors)
        first, second = np.triu_indices(count, 1)
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        ends = [(j, i) if reverse else (i, j) for i, j in pairs]
        options["means"] = count
        return self._contrast(_differences(ends, count), ends, by_factors, **options)

    def against(
        self, control: Any, by: Sequence[str] | str = (), **options: Unpack[PairOptions]
    ) -> pd.DataFrame:
        """Compare every other mean with a control; the rest as for ``pairs``, but ``dunnett``, exact here, is the default.

        Parameters
        ----------
        control : level, or tuple of levels
            The control's cell: one level for each factor that ``by`` does not hold.
        """
        by_factors = _several(by)
        count = self._cells(by_factors)
        compared = [c for c in self.grid.columns if c not in by_factors]
        wanted = tuple(level_name(v) for v in (control if isinstance(control, tuple) else (control,)))
        cells = [
            tuple(level_name(v) for v in row) for row in self.grid[compared].drop_duplicates().to_numpy()
        ]
        if wanted not in cells:
            raise unknown_name("control", " ".join(wanted), [" ".join(c) for c in cells])
        position = cells.index(wanted)
        ends = [(i, position) for i in range(count) if i != position]
        options = {"adjust": "dunnett", "with_control": True, **options}
        return self._contrast(_differences(ends, count), ends, by_factors, **options)

    def contrast(
        self,
        weights: Mapping[str, Sequence[float]],
        by: Sequence[str] | str = (),
        **options: Unpack[PairOptions],
    ) -> pd.DataFrame:
        """Estimate named combinations of the means; the rest as for ``pairs``.

        Parameters
        ----------
        weights : mapping of str to sequence of float
            Per contrast one weight per mean, in the order of ``table()`` (within a cell of ``by``).
        """
        lengths = {len(w) for w in weights.values()}
        if len(lengths) != 1:
            raise UserError("every contrast needs as many weights as there are means")
        matrix = np.array([list(w) for w in weights.values()], dtype=float)
        return self._contrast(matrix, list(weights), _several(by), **options)

    def interaction(
        self, methods: Mapping[str, str], by: Sequence[str] | str = (), **options: Unpack[PairOptions]
    ) -> pd.DataFrame:
        """Contrast contrasts: a contrast of each factor, multiplied; the rest as for ``pairs``.

        Parameters
        ----------
        methods : mapping of str to {'pairwise', 'revpairwise', 'treatment', 'consecutive', 'effects'}
            One per factor of the grid that ``by`` does not hold; ``treatment`` compares each level with the first,
            ``consecutive`` with the one before, ``effects`` with the mean of all.
        """
        by_factors = _several(by)
        names = [c for c in self.grid.columns if c not in by_factors]
        if set(methods) != set(names):
            raise UserError(f"an interaction needs a contrast for each of {', '.join(map(str, names))}")
        # The grid's first factor varies fastest, so it is the last factor of the Kronecker product.
        total: Array = np.ones((1, 1))
        labels = [""]
        for name in names:
            matrix, factor_labels = _one_factor(methods[name], list(dict.fromkeys(self.grid[name])))
            total = np.asarray(np.kron(matrix, total), dtype=float)
            labels = [f"({b}) : ({a})" if b else f"{a}" for a in factor_labels for b in labels]
        return self._contrast(total, labels, by_factors, **options)

    def _cells(self, by_factors: list[str]) -> int:
        for name in by_factors:
            if name not in self.grid:
                raise unknown_name("factor", name, [str(c) for c in self.grid.columns])
        return len(self.grid) // (len(self.grid[by_factors].drop_duplicates()) if by_factors else 1)

    def _contrast(
        self, weights: Array, labels: Sequence[Any], by: list[str], **options: Unpack[PairOptions]
    ) -> pd.DataFrame:
        options.setdefault("adjust", "holm")
        scale = options.setdefault("scale", "link")
        if scale not in SCALES:
            raise unknown_name("scale", scale, SCALES)
        count = self._cells(by)
        if weights.shape[1] != count:
            raise UserError(f"a contrast has {weights.shape[1]} weights for {count} means")
        if not len(weights):
            raise UserError("one mean leaves nothing to compare", mend="Name fewer factors in by.")
        cells = self.grid.groupby(by, sort=False).indices.items() if by else [((), np.arange(len(self.grid)))]
        compared = [c for c in self.grid.columns if c not in by]
        tables = []
        for cell, members in cells:
            names = [
                label if isinstance(label, str) else self._difference(members, label, compared, scale)
                for label in labels
            ]
            table = self._estimate(weights, members, **options)
            table.insert(0, "contrast", names)
            values = cell if isinstance(cell, tuple) else (cell,)
            for position, (name, value) in enumerate(zip(by, values, strict=True)):
                table.insert(1 + position, name, value)
            tables.append(table)
        joined = pd.concat(tables, ignore_index=True)
        joined.attrs = {**tables[0].attrs, "scale": scale}
        return joined

    def _difference(self, members: Any, ends: tuple[int, int], compared: list[Any], scale: str) -> str:
        sign = "/" if scale == "ratio" else "-"
        first, second = (
            " ".join(level_name(self.grid[c].iloc[members[end]]) for c in compared) for end in ends
        )
        return f"{first} {sign} {second}"

    def _estimate(self, weights: Array, members: Any, scale: str, **options: Unpack[Testing]) -> pd.DataFrame:
        rows = self.matrix[members]
        if scale != "response":
            offsets = weights @ self.known[members]
            table = linear_contrasts(self.fit, combined(weights, rows), known=offsets, **options)
            table = table.drop(columns="contrast")
            if scale == "link":
                return table
            if self.fit.model.back.ratio is None:
                raise UserError(
                    f"differences under the {self.fit.link} link have no ratio reading",
                    mend="Ask for scale link or response, or model log(y), whose differences are ratios of geometric means.",
                )
            table["estimate"] = np.exp(table["estimate"])
            table["se"] *= table["estimate"]
            table["ci_low"], table["ci_high"] = np.exp(table["ci_low"]), np.exp(table["ci_high"])
            return table
        values, slopes = self._on_response_scale(members)
        return tested(
            self.fit.degrees,
            combined(weights, slopes),
            combined(weights, values),
            self._covariance,
            **options,
        )

    @property
    def _covariance(self) -> Array:
        """Covariance of the parameters by which ``_on_response_scale`` has derivatives."""
        return self.fit.shape.vcov if self.fit.shape else self.fit.vcov.to_numpy()

    def _on_response_scale(self, members: Any) -> tuple[Array, Array]:
        """Means (or trends) on the response scale, shape (r,), and their derivatives by beta, shape (r, p)."""
        if self.fit.cuts is not None:
            raise UserError(
                "slopes of an ordinal model are on its latent scale",
                mend="Ask for scale link, or ratio; means also have response (probabilities of categories) and mean.",
            )
        link, beta, rows = self.fit.model.back, self.fit.fixed["estimate"].to_numpy(), self.matrix[members]
        if self.fit.shape is not None:
            return self._of_times(self.fit.shape.response, members)
        if self.level_rows is None or self.level_known is None:
            eta = rows @ beta + self.known[members]
            return link.inverse(eta), link.slope(eta)[:, None] * rows
        base = self.level_rows[members]
        eta, trend = base @ beta + self.level_known[members], rows @ beta + self.known[members]
        slope = link.slope(eta)
        return slope * trend, (link.curvature(eta) * trend)[:, None] * base + slope[:, None] * rows

    def _of_times(self, response: TimeResponse, members: Any) -> tuple[Array, Array]:
        """Mean times and their derivatives by the shape of the distribution and beta, shape (r, 2 + p)."""
        if self.level_rows is not None and self.fit.family == "shifted_lognormal":
            raise UserError(
                "slopes of a shifted lognormal model are on the log scale", mend="Ask for scale link."
            )
        rows = self.matrix[members]
        eta = rows @ self.fit.fixed["estimate"].to_numpy() + self.known[members]
        value, by_eta, by_shape = response.mean(eta)
        return value, np.hstack([by_shape, by_eta[:, None] * rows])


@dataclass(frozen=True, eq=False)
class CategoryMargins(Margins):
    """Probabilities of categories, or mean scores (``known``), with derivatives by log gaps and coefficients (``matrix``)."""

    @property
    def _covariance(self) -> Array:
        assert self.fit.cuts is not None
        return self.fit.cuts.vcov

    def _on_response_scale(self, members: Any) -> tuple[Array, Array]:
        return self.known[members], self.matrix[members]

    def _estimate(self, weights: Array, members: Any, scale: str, **options: Unpack[Testing]) -> pd.DataFrame:
        if scale != "response":
            raise UserError(
                f"scale {scale!r}: probabilities of categories are on the response scale",
                mend="Ask for response.",
            )
        return super()._estimate(weights, members, scale, **options)


def combined(weights: Array, rows: Array) -> Array:
    """Multiply weights (r, m) and rows (m, …): a sum that gives weight to a mean that is not estimable is not estimable either."""
    is_inestimable = np.isnan(rows).reshape(len(rows), -1).any(axis=1)
    products = np.asarray(weights @ np.where(np.isnan(rows), 0.0, rows))
    products[(weights[:, is_inestimable] != 0.0).any(axis=1)] = np.nan
    return products


def _with_cells(grid: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    joined = pd.concat([grid, rows], axis=1)
    joined.attrs = dict(rows.attrs)
    return joined


def _several(names: Sequence[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _differences(ends: Sequence[tuple[int, int]], count: int) -> Array:
    weights = np.zeros((len(ends), count))
    for row, (plus, minus) in enumerate(ends):
        weights[row, plus], weights[row, minus] = 1.0, -1.0
    return weights


def _one_factor(method: str, levels: list[Any]) -> tuple[Array, list[str]]:
    count = len(levels)
    if method == "effects":
        return np.eye(count) - 1.0 / count, [f"{v} effect" for v in levels]
    if method == "treatment":
        ends = [(j, 0) for j in range(1, count)]
    elif method == "consecutive":
        ends = [(j, j - 1) for j in range(1, count)]
    elif method in {"pairwise", "revpairwise"}:
        ends = list(itertools.combinations(range(count), 2))
        ends = [(j, i) for i, j in ends] if method == "revpairwise" else ends
    else:
        raise unknown_name("contrast method", method, METHODS)
    return _differences(ends, count), [f"{levels[plus]} - {levels[minus]}" for plus, minus in ends]


def margins(
    fit: Fit, factors: Sequence[str] | str, at: Mapping[str, Sequence[Any] | Any] | None = None
) -> Margins:
    """Compute marginal means of a fitted model.

    Parameters
    ----------
    factors : str or sequence of str
        Columns of the fixed part whose cells are wanted; the first varies fastest. Empty for the grand mean.
    at : mapping, optional
        Values for columns instead of all levels (factors) or the mean (covariates).
    """
    full_grid, cells, size = reference_grid(_several(factors), grid_values(fit, at or {}))
    rows, offsets = rows_of(fit, full_grid), offset_of(fit, full_grid)
    return Margins(fit, cells, averaged(rows, size), averaged(offsets, size))


def category_margins(
    fit: Fit,
    factors: Sequence[str] | str,
    at: Mapping[str, Sequence[Any] | Any] | None = None,
    *,
    mean: bool = False,
) -> CategoryMargins:
    """Compute how probable each category of an ordinal model is in the cells of its factors, or the mean score there.

    As with emmeans' modes ``prob`` and ``mean.class`` each cell of the reference grid has its probabilities, and those are
    averaged. A score is the category's own number, or its place from 1 where categories are words.

    Parameters
    ----------
    factors, at
        As for ``margins``.
    mean : bool
        Mean scores instead of probabilities.

    Returns
    -------
    CategoryMargins
        Probabilities have the response as the last column of their grid, which varies slowest: compare within it.
    """
    if fit.cuts is None:
        raise UserError(
            f"mean ratings and probabilities of categories are of ordinal models; this one is {fit.family}",
            mend="Ask for the scale link or response, or fit with family ordinal.",
        )
    full_grid, cells, size = reference_grid(_several(factors), grid_values(fit, at or {}))
    rows = rows_of(fit, full_grid)
    values, by_eta, by_gaps = fit.cuts.probabilities(
        rows @ fit.fixed["estimate"].to_numpy() + offset_of(fit, full_grid)
    )
    slopes = np.concatenate([by_gaps, by_eta[:, :, None] * rows[:, None, :]], axis=2)
    values, slopes = averaged(values, size), averaged(slopes, size)
    if mean:
        scores = fit.cuts.scores
        return CategoryMargins(fit, cells, np.einsum("rcp,c->rp", slopes, scores), values @ scores)
    name, names = as_r(fit.model.formula.response), fit.cuts.categories
    grid = pd.concat([cells.assign(**{name: category}) for category in names], ignore_index=True)
    return CategoryMargins(fit, grid, np.swapaxes(slopes, 0, 1).reshape(len(grid), -1), values.T.ravel())


def trends(
    fit: Fit,
    covariate: str,
    factors: Sequence[str] | str = (),
    at: Mapping[str, Sequence[Any] | Any] | None = None,
) -> Margins:
    """Compute slopes of the prediction along a covariate, as emmeans' ``emtrends``.

    Parameters
    ----------
    covariate : str
        A numeric column of the fixed part; it may enter through ``log()``, ``poly()`` and the like.
    factors : str or sequence of str
        Columns in whose cells the slope is wanted.
    at : mapping, optional
        As for ``margins``; for a covariate that enters nonlinearly, where the slope is taken.

    Returns
    -------
    Margins
        Its tables and contrasts are of slopes: change of the linear predictor, or of the mean, per unit of the covariate.
    """
    given = dict(at or {})
    values = grid_values(fit, given)
    if covariate not in values:
        raise unknown_name("column of the fixed part", covariate, values)
    column = fit.model.frame.data[covariate]
    is_factor = covariate in fit.model.matrices.design.factors()
    if is_factor or not pd.api.types.is_numeric_dtype(column):
        raise UserError(
            f"{covariate!r} is a factor; a trend needs a numeric column",
            mend="Ask for its means and their comparisons (--means; means() in Python).",
        )
    wanted = _several(factors)
    if covariate not in given and covariate not in wanted:
        values[covariate] = [float(column.mean())]
    full_grid, cells, size = reference_grid(wanted, values)
    step = 1e-3 * float(np.ptp(column.to_numpy(dtype=float)))
    shifted_grids = [full_grid.assign(**{covariate: full_grid[covariate] + d}) for d in (-step / 2, step / 2)]
    below, above = (rows_of(fit, grid) for grid in shifted_grids)
    known_below, known_above = (offset_of(fit, grid) for grid in shifted_grids)
    return Margins(
        fit,
        cells,
        averaged((above - below) / step, size),
        averaged((known_above - known_below) / step, size),
        averaged(rows_of(fit, full_grid), size),
        averaged(offset_of(fit, full_grid), size),
    )
