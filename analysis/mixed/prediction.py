"""Quantities that a fit gives for rows: predictions, random effects' modes, residuals, simulated responses, explained variance.

With M = Cov(b | y) at the estimates, G = M Z'WX and Phi the covariance of the fixed effects, the error of a row's linear
predictor x'beta + z'b has variance z'Mz + (x - G'z)' Phi (x - G'z) (Henderson's mixed-model equations; Bates et al. 2015,
section 5.4, for M). The variance parameters count as known; for generalised models M and W are those at the mode.

R squared is that of Nakagawa and Schielzeth (2013), Johnson (2014, random slopes) and Nakagawa, Johnson and Schielzeth
(2017), from the variances var(X beta) of the fixed part, mean z' Sigma z of the random part, and of observations on the link
scale: the marginal R^2 is the first over the sum, the conditional one the first two over the sum.

A simulated residual is the place of an observation among new data of the same row, with new random effects (Dunn & Smyth, 1996;
Hartig's DHARMa): uniform from 0 to 1 if the model holds. Residuals of a participant hang together, so their tests compare the
statistic of the data with that of each simulated data set instead of taking residuals as independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import sparse, stats
from scipy.linalg import cho_factor, cho_solve

from analysis.arrays import Array, Index, Mask
from analysis.mixed.blocks import make_layout
from analysis.mixed.fitting import fit_model
from analysis.mixed.formula import FormulaRandomTerm, Node, columns_of
from analysis.mixed.inference import check_level
from analysis.mixed.matrices import MatrixDesign, TermCovariance, make_design
from analysis.mixed.result import Fit
from analysis.mixed.variables import level_name
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed


def effects_unit(fit: Fit) -> float:
    """Return the factor between relative and absolute standard deviations of the random effects."""
    model = fit.model
    relative = model.family.has_scale or model.criterion.dispersion == "glmer"
    return fit.sigma if relative else 1.0


def simulate(fit: Fit, count: int = 1, *, seed: int | str = 0, conditional: bool = False) -> Array:
    """Draw responses from a fitted model.

    Parameters
    ----------
    count : int
        How many data sets.
    seed : int or str
        Another one gives other draws; the same one the same, on every machine.
    conditional : bool
        Keep the random effects at their modes; else draw new ones (lme4's ``use.u``).

    Returns
    -------
    ndarray, shape (nobs, count)
        For the rows used, in their order, as in ``fit.model.frame.y``: proportions of successes for binomial models, places of
        categories from 0 for ordinal ones.
    """
    if count < 1:
        raise UserError(f"count is {count}; at least one data set can be drawn")
    rng = np.random.default_rng(stable_seed("mixed model", "simulate", seed))
    model = fit.model
    frame, matrices = model.frame, model.matrices
    fixed = frame.offset + matrices.x @ fit.fixed["estimate"].to_numpy(dtype=float)
    lambdas = matrices.covariance.lambdas(fit.theta)
    unit = effects_unit(fit)
    dispersion = fit.sigma**2 if model.family.has_scale else (fit.dispersion or 1.0)
    result = np.empty((fit.nobs, count))
    for column in range(count):
        eta = fit.eta
        if not conditional:
            eta = fixed.copy()
            for effect, lam in zip(matrices.effects, lambdas, strict=True):
                b = unit * rng.normal(size=(effect.n_levels, effect.width)) @ lam.T
                eta += np.einsum("nk,nk->n", effect.columns, b[effect.codes])
        if fit.cuts is not None:
            above = np.cumsum(fit.cuts.probabilities(eta)[0], axis=1)[:, :-1]
            result[:, column] = (rng.random(fit.nobs)[:, None] > above).sum(axis=1)
            continue
        if fit.shape is not None:
            result[:, column] = fit.shape.response.draw(rng, eta)
            continue
        mu = model.link.inverse(eta)
        if model.family.positive and not np.all(mu > 0):
            raise UserError(
                f"the {model.link.name} link gives a mean of {mu.min():.4g}; {model.family.name} means are positive",
                mend="Simulate with conditional=True, or fit with the log link.",
                exit_code=1,
            )
        result[:, column] = model.family.draw(rng, mu, frame.weights, dispersion)
    return result


SCALES = ("response", "link")
NEW_LEVELS = ("refuse", "population")
BATCH = 256
"""Rows whose variances are computed at once."""


_Term = tuple[FormulaRandomTerm, TermCovariance, MatrixDesign]
"""A random term as new rows need it."""
_Part = tuple[TermCovariance, Array, Index]
"""A random term, its columns in new rows, and the levels there."""


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
    """
    if data is not None and data.columns.has_duplicates:
        duplicate = str(data.columns[data.columns.duplicated()][0])
        raise UserError(f"the new rows have two columns named {duplicate!r}", mend="Rename one of them.")
    for what, chosen, choices in (
        ("scale", scale, SCALES),
        ("treatment of new levels", new_levels, NEW_LEVELS),
    ):
        if chosen not in choices:
            raise unknown_name(what, chosen, choices)
    is_ordinal = fit.cuts is not None
    if se and scale == "response" and (is_ordinal or fit.family == "shifted_lognormal"):
        what = "probabilities of categories" if is_ordinal else "times of a shifted lognormal model"
        other = "category_margins()" if is_ordinal else "margins() on the response scale"
        raise UserError(
            f"predicted {what} come without standard errors",
            mend=f"Ask for scale='link', or for {other}, which has them.",
        )
    check_level(level)
    given = fit.model.frame.data if data is None else data.rename(columns=str)
    terms = _terms(fit) if random else []
    complete = _complete(fit, given, terms, known_offset=data is None)
    rows = given.loc[complete].reset_index(drop=True)
    matrices = fit.model.matrices
    x = matrices.design.matrix(rows)[:, list(matrices.kept)] if len(rows) else np.empty((0, len(fit.fixed)))
    eta = x @ fit.fixed["estimate"].to_numpy(dtype=float)
    eta = eta + (fit.model.frame.offset if data is None else _offset(fit, rows))
    parts = [(term[1], *_random_rows(fit, term, rows, new_levels)) for term in terms]
    for term, z, codes in parts:
        modes = fit.modes[matrices.groupings[term.factor].name].to_numpy()[:, term.columns]
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
    table = pd.DataFrame(np.nan, index=given.index, columns=list(columns))
    table.loc[complete] = np.column_stack(list(columns.values()))
    return table


def random_modes(fit: Fit) -> pd.DataFrame:
    """List the random effects' conditional modes with their conditional standard deviations (lme4's ``ranef``).

    Returns
    -------
    DataFrame, shape (random effects, 5)
        group, term, level, mode, sd. For generalised models sd comes from the curvature at the mode; the variance
        parameters and fixed effects count as known.
    """
    matrices = fit.model.matrices
    if not fit.variance:
        raise UserError("the model has no random effects", mend="Add a term such as (1 | participant).")
    blocks = _Errors(fit).mode_covariances()
    tables = []
    for term in matrices.covariance.terms:
        grouping, part = matrices.groupings[term.factor], term.columns
        modes = fit.modes[grouping.name].to_numpy()[:, part]
        spread = np.einsum(
            "ij,mjk,ik->mi", term.transform, blocks[term.factor][:, part, part], term.transform
        )
        for k, name in enumerate(term.names):
            sd = np.sqrt(np.maximum(spread[:, k], 0.0))
            levels = {"group": grouping.name, "term": name, "level": list(grouping.levels)}
            tables.append(pd.DataFrame({**levels, "mode": modes[:, k], "sd": sd}))
    return pd.concat(tables, ignore_index=True)


def _terms(fit: Fit) -> list[_Term]:
    matrices, model, terms = fit.model.matrices, fit.model, []
    for random in model.formula.random:
        design = make_design(random.design, model.frame.variables)
        term = next(
            t
            for t in matrices.covariance.terms
            if matrices.groupings[t.factor].name == random.name and t.names == design.names
        )
        terms.append((random, term, design))
    return terms


def _complete(fit: Fit, data: pd.DataFrame, terms: list[_Term], *, known_offset: bool) -> Mask:
    formula = fit.model.formula
    nodes: list[Node] = list(formula.fixed.variables)
    for random, _, _ in terms:
        nodes += [*random.design.variables, *random.group]
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


def _random_rows(fit: Fit, term: _Term, rows: pd.DataFrame, new_levels: str) -> tuple[Array, Index]:
    """Columns of a term, shape (m, k), and levels of its grouping factor, -1 for new ones."""
    random, covariance, design = term
    grouping = fit.model.matrices.groupings[covariance.factor]
    columns = [columns_of(n)[0] for n in random.group]
    labels = rows[columns[0]].map(level_name)
    for column in columns[1:]:
        labels = labels + ":" + rows[column].map(level_name)
    positions = {label: position for position, label in enumerate(grouping.levels)}
    codes = np.array([positions.get(label, -1) for label in labels], dtype=np.intp)
    if new_levels == "refuse" and (codes < 0).any():
        first = labels[codes < 0].iloc[0]
        raise UserError(
            f"{first!r} of {grouping.name} is a level that the fit has not seen",
            mend="Ask for new_levels='population', or predict with random=False.",
        )
    return (design.matrix(rows) if len(rows) else np.empty((0, covariance.width))), codes


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
        # W at the mode, in units where the relative covariance is Lambda Lambda'
        self.weights = model.frame.weights if fit.response is None else fit.response.weight(fit.eta)
        self.factor = self.layout.factor(self.layout.products(self.weights), self.lambdas)

    def mode_covariances(self) -> list[Array]:
        """Per grouping factor the conditional covariance of each level's effects, shape (m, k, k)."""
        pairs = zip(self.layout.pairs, self.factor.invert().blocks, strict=True)
        blocks = [block for pair, block in pairs if pair.f == pair.g]
        return [self.unit**2 * (lam @ block @ lam.T) for lam, block in zip(self.lambdas, blocks, strict=True)]

    def variance(self, x: Array, parts: list[_Part]) -> Array:
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
            mode_variance = np.einsum("qc,qc->c", z, mz)
            gap = x[rows] - z.T @ g
            total[rows] = self.unit**2 * mode_variance + np.einsum("ni,ij,nj->n", gap, phi, gap)
        for term, z_raw, codes in parts:
            cov = self.unit**2 * term.relative_covariance(self.fit.theta)
            new_variance = np.einsum("ni,ij,nj->n", z_raw, cov, z_raw)
            total += np.where(codes < 0, new_variance, 0.0)
        return total

    def _given_data(self, r: Array) -> Array:
        """Lambda H^-1 Lambda' r."""
        layout = self.layout
        inner = self.factor.solve(layout.scale(self.lambdas, r, transpose=True))
        return layout.scale(self.lambdas, inner)

    def _columns_of(self, rows: slice, parts: list[_Part]) -> Array:
        layout, count = self.layout, rows.stop - rows.start
        columns = np.zeros((layout.q, count))
        row_numbers = np.arange(count)
        for term, z_raw, codes in parts:
            is_known = codes[rows] >= 0
            used = (z_raw[rows] @ term.transform)[is_known]
            self.layout.part(columns, term.factor)[
                codes[rows][is_known], term.columns, row_numbers[is_known]
            ] = used
        return columns


KINDS = ("response", "pearson", "deviance")


def residuals(fit: Fit, kind: str = "response") -> Array:
    """Compute residuals for the rows used, in their order, as lme4 does.

    Parameters
    ----------
    kind : {'response', 'pearson', 'deviance'}
        y - mu; that times sqrt(w / V(mu)); or the signed root of each row's part of the deviance. Neither of the latter
        is divided by the residual standard deviation or the dispersion phi. Of an ordinal model y is the category's score
        and mu its expectation, and there is no deviance of a saturated model.
    """
    if kind not in KINDS:
        raise unknown_name("kind of residual", kind, KINDS)
    frame, family = fit.model.frame, fit.model.family
    y, w, mu = frame.y, frame.weights, fit.fitted
    if fit.cuts is not None:
        if kind == "deviance":
            raise UserError(
                "an ordinal model has no deviance residuals", mend="Ask for response or pearson residuals."
            )
        scores = fit.cuts.scores
        raw = scores[y.astype(int)] - mu
        variance = fit.cuts.probabilities(fit.eta)[0] @ scores**2 - mu**2
        return np.asarray(raw * (np.sqrt(w / variance) if kind == "pearson" else 1.0))
    raw = y - mu
    if fit.shape is not None and kind == "deviance":
        raise UserError(
            f"the {family.name} family has no deviance residuals", mend="Take Pearson's, kind='pearson'."
        )
    if kind == "response":
        return np.asarray(raw)
    # Theta of the negative binomial is part of the variance function; phi of others only a factor.
    d = fit.dispersion if family.dispersion == "theta" and fit.dispersion is not None else 1.0
    if family.dispersion == "precision":
        if kind == "deviance":
            raise UserError(
                "the betabinomial family has no deviance residuals", mend="Take Pearson's, kind='pearson'."
            )
        w = w / (1.0 + (w - 1.0) / (1.0 + (fit.dispersion or 0.0)))
    if kind == "pearson":
        variance = fit.shape.response.variance(fit.eta) if fit.shape else family.variance(mu, d)
        return np.asarray(raw * np.sqrt(w / variance))
    saturated = np.where(y > 0, y, 1e-300) if family.name in {"poisson", "negative.binomial"} else y
    with np.errstate(divide="ignore", invalid="ignore"):
        part = 2.0 * (family.loglik(y, saturated, w, d) - family.loglik(y, mu, w, d))
    return np.asarray(np.sign(raw) * np.sqrt(np.maximum(part, 0.0)))


LATENT = {"logit": np.pi**2 / 3.0, "probit": 1.0, "cloglog": np.pi**2 / 6.0}
"""Variance of the latent error of binary and ordinal models, by link."""


@dataclass(frozen=True)
class RSquared:
    """Explained variance and its parts, in squared units of the linear predictor."""

    marginal: float  # marginal, conditional: share of the fixed part; of fixed and random part
    conditional: float
    icc_adjusted: float  # share of the random part in what the fixed part leaves
    icc_unadjusted: float  # in everything
    fixed: float  # fixed, random, observation: the variances
    random: float
    observation: float
    basis: str  # where the observations' variance comes from


def r_squared(fit: Fit) -> RSquared:
    """Compute Nakagawa's R^2 and the intraclass correlations of a fitted model.

    Poisson, negative binomial, Gamma and inverse Gaussian models with log link take the lognormal approximation
    log(1 + V(mu) / mu^2) at mu = exp(intercept) of the model without predictors, as the R package performance does; other
    links the delta method there. Binomial and ordinal models take the variance of the latent error (pi^2 / 3 for the logit).
    """
    x = fit.model.matrices.x
    fixed = float(np.var(x @ fit.fixed["estimate"].to_numpy(dtype=float), ddof=1))
    random = by_observation = 0.0
    for component, term in zip(fit.variance, fit.model.matrices.covariance.terms, strict=True):
        used = fit.model.matrices.effects[term.factor].columns[:, term.columns]
        z = used @ np.linalg.inv(term.transform)  # as the user wrote them
        mean = float(np.sum(component.cov * (z.T @ z)) / len(z))
        if term.n_levels == fit.nobs:
            by_observation += mean
        else:
            random += mean
    variance, basis = _observation_variance(fit)
    observation = variance + by_observation
    total = fixed + random + observation
    return RSquared(
        fixed / total,
        (fixed + random) / total,
        random / (random + observation),
        random / total,
        fixed,
        random,
        observation,
        basis + (" and the observation-level random effect" if by_observation else ""),
    )


def _observation_variance(fit: Fit) -> tuple[float, str]:
    family, link = fit.model.family, fit.model.link
    if family.has_scale:
        return fit.sigma**2, "the residual variance"
    if family.dispersion == "precision":
        raise UserError(
            "R squared is not defined for the betabinomial family",
            mend="Leave it out, or choose the binomial family.",
        )
    if family.name == "shifted_lognormal":
        return fit.sigma**2, "the variance of log(y - ndt)"
    if fit.shape is not None:
        return float(fit.shape.response.variance(np.zeros(1))[0]), "sigma squared plus beta squared"
    base = link.base
    if family.name in {"binomial", "ordinal"}:
        return LATENT[base], f"the latent error of the {base} link"
    matrices = replace(fit.model.matrices, x=np.ones((fit.nobs, 1)), names=("(Intercept)",))
    null = fit_model(replace(fit.model, matrices=matrices))  # without predictors
    eta = np.array([float(null.fixed["estimate"].iloc[0])])
    mu = link.inverse(eta)
    d = fit.dispersion if fit.dispersion is not None else 1.0
    phi = d if family.dispersion == "phi" else 1.0
    variance = phi * family.variance(mu, d)
    if base == "log":
        return float(np.log1p(variance / mu**2)[0]), "the lognormal approximation"
    return float((variance / link.slope(eta) ** 2)[0]), "the delta method"


SIMULATIONS = 250
MOST_CELLS = 10_000_000
"""Rows times simulations; of more rows there are fewer simulations."""


@dataclass(frozen=True)
class SimulatedResiduals:
    """Places of the observations among simulated ones, with three tests."""

    residuals: Array  # (nobs,): from 0 to 1, in the order of the rows used
    distance: float  # Kolmogorov and Smirnov's, from uniform residuals, with its p
    p_uniform: float
    dispersion: float  # variance about the simulated means over that of simulated data, with its two-sided p
    p_dispersion: float
    outliers: int  # observations beyond all simulated ones of their row, with the p of so many
    p_outliers: float
    simulations: int


def simulated_residuals(fit: Fit, count: int = SIMULATIONS, *, seed: int | str = 0) -> SimulatedResiduals:
    """Compare each observation with simulated ones of its row; fewer data sets than ``count`` where rows are very many."""
    count = max(20, min(count, MOST_CELLS // fit.nobs))
    responses = np.column_stack([fit.model.frame.y, simulate(fit, count, seed=seed)])
    means = responses[:, 1:].mean(axis=1)
    spread = ((responses - means[:, None]) ** 2).mean(axis=0)
    rng = np.random.default_rng(stable_seed("mixed model", "residuals", seed))
    # ties are broken at random: of discrete responses, the residual is drawn from the step of the distribution function
    ties = 1e-7 * max(float(np.ptp(responses)), 1e-12) * rng.random(responses.shape)
    ranks = np.argsort(np.argsort(responses + ties, axis=1), axis=1)
    outside = ((ranks == 0) | (ranks == count)).sum(axis=0)
    places: Array = (ranks + rng.random(responses.shape)) / (count + 1)
    residuals = places[:, 0].copy()
    places.sort(axis=0)
    steps = np.arange(fit.nobs + 1)[:, None] / fit.nobs
    distance = np.maximum((steps[1:] - places).max(axis=0), (places - steps[:-1]).max(axis=0))

    def beyond(values: Array) -> float:
        return float((1 + (values[1:] >= values[0]).sum()) / (count + 1))

    return SimulatedResiduals(
        residuals,
        float(distance[0]),
        beyond(distance),
        float(spread[0] / spread[1:].mean()),
        min(1.0, 2 * min(beyond(spread), beyond(-spread))),
        int(outside[0]),
        beyond(outside.astype(float)),
        count,
    )


def influence(fit: Fit, grouping: str) -> pd.DataFrame:
    """Return by how much the fixed effects change if a unit is left out, shape (levels, p), at the variances of the fit.

    Exact for a linear mixed model of given variances; one step from the fit for others (Cook, 1986). With P = V^-1 - V^-1 X
    (X' V^-1 X)^-1 X' V^-1, leaving out rows D changes beta by -(X' V^-1 X)^-1 X' V^-1_D (P_DD)^-1 (V^-1 r)_D.
    """
    matrices, family, frame = fit.model.matrices, fit.model.family, fit.model.frame
    units = next((candidate for candidate in matrices.groupings if candidate.name == grouping), None)
    if units is None or fit.cuts is not None or fit.shape is not None:
        kind = "ordinal" if fit.cuts is not None else fit.family
        reason = f"the model has no {grouping!r}" if units is None else f"{kind} models have no such step"
        raise UserError(f"influence: {reason}", mend=f"Grouping factors: {', '.join(fit.groups) or 'none'}.")
    dispersion = fit.dispersion if fit.dispersion is not None else 1.0
    slope = fit.model.link.slope(fit.eta)
    precision = frame.weights / family.variance(fit.fitted, dispersion)
    precision = precision / (fit.sigma**2 if family.has_scale else 1.0)
    score, w = precision * (frame.y - fit.fitted) * slope, precision * slope**2
    unit, lambdas = effects_unit(fit), matrices.covariance.lambdas(fit.theta)
    effects = zip(matrices.effects, lambdas, strict=True)
    zl = sparse.hstack([e.matrix(unit * e.columns @ lam) for e, lam in effects], format="csr")
    factor = cho_factor(np.eye(zl.shape[1]) + (zl.T @ zl.multiply(w[:, None])).toarray())
    weighed = zl.multiply(w[:, None]).tocsr()
    x, vcov = matrices.x, fit.vcov.to_numpy()
    inverse_x = w[:, None] * x - weighed @ cho_solve(factor, weighed.T @ x)
    changes = []
    order = np.argsort(units.codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(units.codes[order])) + 1):
        weighed_rows, xd = weighed[rows].toarray(), inverse_x[rows]
        left = np.diag(w[rows]) - weighed_rows @ cho_solve(factor, weighed_rows.T) - xd @ vcov @ xd.T
        changes.append(-vcov @ xd.T @ np.linalg.lstsq(left, score[rows], rcond=1e-10)[0])
    return pd.DataFrame(np.array(changes), index=list(units.levels), columns=list(fit.vcov.columns))
