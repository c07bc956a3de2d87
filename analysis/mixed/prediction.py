"""Predictions for old and new rows, and the random effects' modes, with standard errors.

With M = Cov(b | y) at the estimates, G = M Z'WX and Phi the covariance of the fixed effects, the error of a row's linear
predictor x'beta + z'b has variance z'Mz + (x - G'z)' Phi (x - G'z) (Henderson's mixed-model equations; Bates et al. 2015,
section 5.4, for M). The variance parameters count as known. For generalised models M and W are those at the mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from stimuli.errors import UserError, unknown_name

from .blocks import Vector
from .cells import make_layout
from .covariance import TermCovariance
from .design import Design, make_design
from .expression import Name, Node, columns_of
from .formula import RandomTerm
from .inference import check_level
from .ordered import OrderedResponse
from .result import Fit
from .simulation import effects_unit
from .variables import level_name

Array = NDArray[np.float64]

SCALES = ("response", "link")
NEW_LEVELS = ("refuse", "population")
BATCH = 256
"""Rows whose variances are computed at once."""


@dataclass(frozen=True)
class _Term:
    """A random term as new rows need it."""

    random: RandomTerm
    covariance: TermCovariance
    design: Design
    place: int


def predict(
    fit: Fit,
    data: pd.DataFrame | None = None,
    *,
    random: bool = True,
    scale: str = "response",
    new_levels: str = "refuse",
    se: bool = False,
    level: float = 0.95,
) -> pd.DataFrame:
    """Predict rows: conditionally on the random effects, or for the population.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    data : DataFrame, shape (m, columns), optional
        New rows with the model's columns, offset included; default the rows used. A row with a missing cell gets nan.
    random : bool
        With the random effects at their modes; else at zero (lme4's ``re.form = NA``).
    scale : {'response', 'link'}
        Means, or the linear predictor; of an ordinal model the probabilities of its categories, or the latent mean.
    new_levels : {'refuse', 'population'}
        What to do with levels that the fit has not seen: refuse, or put their random effects at zero; their standard
        errors then hold the whole variance of such a level.
    se : bool
        Also standard errors and intervals. On the response scale standard errors are by the delta method, intervals
        those of the link scale, transformed.
    level : float
        Coverage of the intervals, which take the normal distribution.

    Returns
    -------
    DataFrame, shape (m, 1) or (m, 4)
        estimate, and with ``se`` also se, ci_low, ci_high; index of ``data``. Probabilities have a column for each category.

    Raises
    ------
    UserError
        If a column is missing, a cell holds a level not seen, or offsets were given as numbers.
    """
    if data is not None and data.columns.has_duplicates:
        twice = str(data.columns[data.columns.duplicated()][0])
        raise UserError(f"the new rows have two columns named {twice!r}", mend="Rename one of them.")
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    if se and scale == "response" and fit.cuts is not None:
        raise UserError(
            "predicted probabilities of categories come without standard errors",
            mend="Ask for scale='link', or for category_margins(), which has them.",
        )
    if se and scale == "response" and fit.family == "shifted_lognormal":
        raise UserError(
            "predicted times of a shifted lognormal model come without standard errors",
            mend="Ask for scale='link', or for margins() on the response scale, which has them.",
        )
    if new_levels not in NEW_LEVELS:
        raise unknown_name("treatment of new levels", new_levels, NEW_LEVELS)
    check_level(level)
    given = fit.model.frame.data if data is None else data.rename(columns=str)
    terms = _terms(fit) if random else []
    complete = _complete(fit, given, terms, known_offset=data is None)
    rows = given.loc[complete].reset_index(drop=True)
    matrices = fit.model.matrices
    x = matrices.design.matrix(rows)[:, list(matrices.kept)] if len(rows) else np.empty((0, len(fit.fixed)))
    eta = x @ fit.fixed["estimate"].to_numpy(dtype=float)
    eta = eta + (fit.model.frame.offset if data is None else _offset(fit, rows))
    parts = [(term, *_random_rows(fit, term, rows, new_levels)) for term in terms]
    for term, z, codes in parts:
        group = matrices.groupings[term.covariance.factor].name
        modes = fit.modes[group].to_numpy()[:, term.place : term.place + term.covariance.width]
        eta = eta + np.where(codes >= 0, np.einsum("nk,nk->n", z, modes[codes]), 0.0)
    columns = {"estimate": eta}
    if se:
        error = np.sqrt(_Errors(fit).variance(x, parts)) if len(rows) else np.empty(0)
        half = stats.norm.isf((1.0 - level) / 2.0) * error
        columns |= {"se": error, "ci_low": eta - half, "ci_high": eta + half}
    if fit.cuts is not None and scale == "response":
        columns = dict(zip(fit.cuts.categories, fit.cuts.probabilities(eta)[0].T, strict=True))
    elif scale == "response":
        columns = _on_response_scale(fit, columns)
    whole = pd.DataFrame(np.nan, index=given.index, columns=list(columns))
    whole.loc[complete] = np.column_stack(list(columns.values()))
    return whole


def random_modes(fit: Fit) -> pd.DataFrame:
    """List the random effects' conditional modes with their conditional standard deviations (lme4's ``ranef``).

    Returns
    -------
    DataFrame, shape (random effects, 5)
        group, term, level, mode, sd. For generalised models sd comes from the curvature at the mode; the variance
        parameters and fixed effects count as known.

    Raises
    ------
    UserError
        If the model has no random effects.
    """
    matrices = fit.model.matrices
    if not fit.variance:
        raise UserError("the model has no random effects", mend="Add a term such as (1 | participant).")
    blocks = _Errors(fit).mode_covariances()
    tables = []
    places: dict[int, int] = {}
    for term in matrices.covariance.terms:
        grouping = matrices.groupings[term.factor]
        place = places.get(term.factor, 0)
        places[term.factor] = place + term.width
        modes = fit.modes[grouping.name].to_numpy()[:, place : place + term.width]
        part = slice(term.at, term.at + term.width)
        spread = np.einsum(
            "ij,mjk,ik->mi", term.transform, blocks[term.factor][:, part, part], term.transform
        )
        for k, name in enumerate(term.names):
            tables.append(
                pd.DataFrame(
                    {
                        "group": grouping.name,
                        "term": name,
                        "level": list(grouping.levels),
                        "mode": modes[:, k],
                        "sd": np.sqrt(np.maximum(spread[:, k], 0.0)),
                    }
                )
            )
    return pd.concat(tables, ignore_index=True)


def random_columns(fit: Fit) -> list[tuple[TermCovariance, Array]]:
    """Give each random term's columns as the user wrote them, shape (nobs, k), in the order of ``fit.variance``."""
    matrices = fit.model.matrices
    found = []
    for term in matrices.covariance.terms:
        used = matrices.effects[term.factor].columns[:, term.at : term.at + term.width]
        found.append((term, used @ np.linalg.inv(term.transform)))
    return found


def _terms(fit: Fit) -> list[_Term]:
    matrices, model = fit.model.matrices, fit.model
    found = []
    for random in model.formula.random:
        design = make_design(random.design, model.frame.variables)
        place = 0
        for term in matrices.covariance.terms:
            if matrices.groupings[term.factor].name != random.name:
                continue
            if term.names == design.names:
                found.append(_Term(random, term, design, place))
                break
            place += term.width
    return found


def _complete(fit: Fit, data: pd.DataFrame, terms: list[_Term], *, known_offset: bool) -> NDArray[np.bool_]:
    formula = fit.model.formula
    nodes: list[Node] = list(formula.fixed.variables)
    for term in terms:
        nodes += [*term.random.design.variables, *term.random.group]
    if not known_offset:
        nodes += fit.model.offset_nodes
    needed = list(dict.fromkeys(c for node in nodes for c in columns_of(node)))
    for name in needed:
        if name not in data.columns:
            raise unknown_name("column", name, list(data.columns))
    return np.asarray(data[needed].notna().all(axis=1), dtype=bool)


def _offset(fit: Fit, rows: pd.DataFrame) -> Array:
    model = fit.model
    if "offset" in model.numbers_given:
        raise UserError(
            "the offset was given as numbers, which new rows do not have", mend="Name a column as offset."
        )
    total = np.zeros(len(rows))
    for node in model.offset_nodes:
        total += model.frame.variables.make(node).values(rows)[:, 0]  # type: ignore[union-attr]
    return total


def _random_rows(
    fit: Fit, term: _Term, rows: pd.DataFrame, new_levels: str
) -> tuple[Array, NDArray[np.intp]]:
    """Columns of a term, shape (m, k), and levels of its grouping factor, -1 for new ones."""
    grouping = fit.model.matrices.groupings[term.covariance.factor]
    columns = [n.name if isinstance(n, Name) else columns_of(n)[0] for n in term.random.group]
    labels = rows[columns[0]].map(level_name)
    for column in columns[1:]:
        labels = labels + ":" + rows[column].map(level_name)
    place = {label: at for at, label in enumerate(grouping.levels)}
    codes = np.array([place.get(label, -1) for label in labels], dtype=np.intp)
    if new_levels == "refuse" and (codes < 0).any():
        first = labels[codes < 0].iloc[0]
        raise UserError(
            f"{first!r} of {grouping.name} is a level that the fit has not seen",
            mend="Ask for new_levels='population', or predict with random=False.",
        )
    return (term.design.matrix(rows) if len(rows) else np.empty((0, term.covariance.width))), codes


def _on_response_scale(fit: Fit, columns: dict[str, Array]) -> dict[str, Array]:
    link, eta = fit.model.link, columns["estimate"]
    result = {"estimate": fit.shape.response.mean(eta)[0] if fit.shape else link.inverse(eta)}
    if "se" in columns:
        ends = [link.inverse(columns[end]) for end in ("ci_low", "ci_high")]
        result["se"] = np.abs(link.slope(eta)) * columns["se"]
        result["ci_low"], result["ci_high"] = np.minimum(*ends), np.maximum(*ends)
    return result


class _Errors:
    """Covariance of the random effects given the data, in the columns used (see ``Matrices.effects``)."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        model = fit.model
        self.matrices = model.matrices
        self.layout = make_layout(self.matrices.effects)
        self.lambdas = self.matrices.covariance.lambdas(fit.theta)
        self.unit = effects_unit(fit)
        self.weights = _working_weights(fit)
        self.factor = self.layout.factor(self.layout.products(self.weights), self.lambdas)

    def mode_covariances(self) -> list[Array]:
        """Per grouping factor the conditional covariance of each level's effects, shape (m, k, k)."""
        layout, blocks = self.layout, []
        for f, effect in enumerate(layout.factors):
            found = np.empty((effect.n_levels, effect.width, effect.width))
            size = max(1, BATCH // effect.width)
            for start in range(0, effect.n_levels, size):
                levels = np.arange(start, min(start + size, effect.n_levels))
                count = len(levels) * effect.width
                unit = Vector(np.zeros((layout.m1, layout.k1, count)), np.zeros((layout.q2, count)))
                column = np.arange(count).reshape(len(levels), effect.width)
                at = np.arange(effect.width)
                self._block(unit, f)[levels[:, None], at, column] = 1.0
                solved = self._block(self._given_data(unit), f)
                found[levels] = solved[levels[:, None, None], at[:, None], column[:, None, :]]
            blocks.append(self.unit**2 * found)
        return blocks

    def _block(self, b: Vector, f: int) -> Array:
        """View the part of a vector with columns that belongs to a grouping factor, shape (m, k, c)."""
        return b.first if f == 0 else self.layout.block(b.rest, f)

    def variance(self, x: Array, parts: list[tuple[_Term, Array, NDArray[np.intp]]]) -> Array:
        """Variance of the error of each row's linear predictor, shape (m,)."""
        phi = self.fit.vcov.to_numpy()
        if not parts:
            return np.asarray(np.einsum("ni,ij,nj->n", x, phi, x))
        weighted = self.weights[:, None] * self.matrices.x
        g = self._given_data(self.layout.transpose_times_columns(weighted))
        total = np.empty(len(x))
        for start in range(0, len(x), BATCH):
            rows = slice(start, min(start + BATCH, len(x)))
            z = self._columns_of(rows, parts)
            mz = self._given_data(z)
            own = np.einsum("mkc,mkc->c", z.first, mz.first) + np.einsum("qc,qc->c", z.rest, mz.rest)
            gz = np.einsum("mkp,mkc->cp", g.first, z.first) + z.rest.T @ g.rest
            gap = x[rows] - gz
            total[rows] = self.unit**2 * own + np.einsum("ni,ij,nj->n", gap, phi, gap)
        for term, z_raw, codes in parts:
            cov = self.unit**2 * term.covariance.relative_covariance(self.fit.theta)
            new = np.einsum("ni,ij,nj->n", z_raw, cov, z_raw)
            total += np.where(codes < 0, new, 0.0)
        return total

    def _given_data(self, r: Vector) -> Vector:
        """Lambda H^-1 Lambda' r."""
        layout = self.layout
        inner = self.factor.solve(layout.scale(self.lambdas, r, transpose=True))
        return layout.scale(self.lambdas, inner)

    def _columns_of(self, rows: slice, parts: list[tuple[_Term, Array, NDArray[np.intp]]]) -> Vector:
        layout, count = self.layout, rows.stop - rows.start
        found = Vector(np.zeros((layout.m1, layout.k1, count)), np.zeros((layout.q2, count)))
        at = np.arange(count)
        for term, z_raw, codes in parts:
            known = codes[rows] >= 0
            used = (z_raw[rows] @ term.covariance.transform)[known]
            place = slice(term.covariance.at, term.covariance.at + term.covariance.width)
            block = self._block(found, term.covariance.factor)
            block[codes[rows][known], place, at[known]] = used
        return found


def _working_weights(fit: Fit) -> Array:
    """Weights W at the mode, in units where the relative covariance is Lambda Lambda'; shape (n,)."""
    model = fit.model
    w = model.frame.weights
    if model.family.has_scale:
        return w
    if fit.shape is not None:
        return fit.shape.response.observed(fit.eta)
    if fit.cuts is not None:
        return OrderedResponse(model.link, model.frame.y, w, fit.cuts.log_gaps).observed(fit.eta)
    mu, slope = fit.fitted, model.link.slope(fit.eta)
    if model.family.takes_trials:
        mu = np.clip(mu, 1e-15, 1.0 - 1e-15)
    d = fit.dispersion or 1.0
    information, _ = model.family.density.information(
        mu, w, 1.0 if model.criterion.dispersion == "glmer" else d
    )
    return np.asarray(information * slope**2)
