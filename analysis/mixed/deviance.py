"""The deviances that are minimised, with exact gradients: profiled for linear mixed models, Laplace's for generalised ones.

Of linear models: Bates et al. (2015), eq. 34 (ML) and eq. 41 (REML): with H = Lambda' Z'WZ Lambda + I, the penalised residual sum of
squares r^2(theta) and R_X'R_X the information of beta,

    d(theta)   = log|H|                + n (1 + log(2 pi r^2 / n)) - sum log w
    d_R(theta) = log|H| + log|R_X|^2   + (n-p) (1 + log(2 pi r^2 / (n-p))) - sum log w.

All that depends on the data enters through cross-products formed once, so an evaluation costs nothing in n. The fixed
columns are made orthonormal and y replaced by its scaled least-squares residual, for accuracy only.

Of generalised models: Bates et al. (2015, section 5 of the lme4 theory) evaluate at the conditional mode u(theta, beta)

    d(theta, psi, beta) = -2 sum loglik(eta) + |u|^2 + log|H|,   H = Lambda' Z'WZ Lambda + I,  eta = X beta + Z Lambda u + o,

with W the information at eta (expected, or observed: see ``responses``) and psi the log dispersion of families that have one.
The gradient adds to the explicit derivatives the path through u (implicit function theorem) and through W; it needs only
leverages and block traces of H^-1.

The mode is found by penalised iteratively reweighted least squares, taken to rounding error, since noise there is noise in the
gradient. The factor of H costs far more than a scoring step and changes little from step to step and from one evaluation to its
neighbour, so it is kept as long as steps made with it shrink fast (the chord method; Ortega and Rheinboldt 1970, section 7.1);
at the mode it is recomputed, since the deviance needs log|H| there. The search starts from the model without random effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from analysis.arrays import Array, Index, Mask
from analysis.mixed.blocks import EffectsLayout, Factor, Products, RandomEffectsBlock, make_layout
from analysis.mixed.families import Family, Link
from analysis.mixed.matrices import Covariance, Frame, Matrices
from analysis.mixed.responses import ResponseModel, make_response
from stimuli.errors import UserError

TOLERANCE = 1e-18
"""Newton decrement (squared distance in units of the conditional spread) at which the mode counts as found."""
CONTRACTION = 0.01
"""A kept factor is recomputed once a step shrinks the decrement by less than this."""

NO_RESIDUAL = 1e-10
"""Residual sum of squares per row, as a share of that of least squares, that is rounding error."""


class ModeNotFound(ArithmeticError):
    """The conditional mode could not be found; the parameters are out of any sensible range."""


@dataclass(frozen=True)
class Mode:
    """The conditional mode."""

    u: Array  # spherical random effects
    eta: Array  # (n,): linear predictor there
    score: Array  # (n,): derivative of the log-likelihood with respect to eta


class ModeSearch:
    """Finds modes, each beginning where the last one ended. Shapes: saturated (n,)."""

    def __init__(self, layout: EffectsLayout, noise: float, saturated: Array) -> None:
        self.layout, self.noise, self._saturated = layout, noise, saturated
        self.forget()

    def forget(self) -> None:
        """Begin the next search at zero."""
        self._u, self._is_warm = np.zeros(self.layout.q), False
        self._kept: Factor | None = None

    def keep(self, factor: Factor) -> None:
        """Begin the next search with this factor."""
        self._kept = factor

    def _factor(self, response: ResponseModel, eta: Array, lambdas: list[Array], is_near: bool) -> Factor:
        """Factor the information for steps: expected, or near the mode, where scoring is slow, observed."""
        if is_near and not response.canonical:
            try:
                return self.layout.factor(self.layout.products(response.observed(eta)), lambdas)
            except np.linalg.LinAlgError:
                pass
        return self.layout.factor(self.layout.products(response.weight(eta)), lambdas)

    def find(self, lambdas: list[Array], fixed: Array, response: ResponseModel) -> Mode:
        """Climb by scoring steps, halved until they do not go down. Shapes: fixed (n,)."""
        if self._is_warm and np.isfinite(self._at(lambdas, fixed, response, self._u)[2]):
            return self._search(lambdas, fixed, response, self._u)
        self.forget()
        try:
            return self._search(lambdas, fixed, response, self._u)
        except ModeNotFound:
            return self._search(lambdas, fixed, response, self._from_saturated(lambdas, fixed, response))

    def _at(
        self, lambdas: list[Array], fixed: Array, response: ResponseModel, u: Array
    ) -> tuple[Array, Array, float]:
        eta = fixed + self.layout.times(self.layout.scale(lambdas, u))
        return u, eta, 2.0 * float(response.loglik(eta).sum()) - float(u @ u)

    def _search(self, lambdas: list[Array], fixed: Array, response: ResponseModel, u: Array) -> Mode:
        layout = self.layout
        u, eta, value = self._at(lambdas, fixed, response, u)
        if not np.isfinite(value):
            raise ModeNotFound
        h, fresh, previous = self._kept, False, np.inf
        for _ in range(200):
            score = response.score(eta)
            gradient = layout.scale(lambdas, layout.transpose_times(score), transpose=True) - u
            if h is None:
                h, fresh = self._factor(response, eta, lambdas, previous < 0.1 * layout.n), True
            step = h.solve(gradient)
            decrement = float(gradient @ step)
            # Below 1e-12 a decrement that no longer shrinks is rounding error.
            if 0.0 <= decrement < TOLERANCE or (fresh and 0.25 * previous < decrement < 1e-12):
                self._u, self._kept, self._is_warm = u, h, True
                return Mode(u, eta, score)
            if not fresh and not 0.0 < decrement <= CONTRACTION * previous:
                h = None
                continue
            previous, fresh, size = decrement, False, 1.0
            slack = self.noise + 1e-12 * abs(value)
            while not (candidate := self._at(lambdas, fixed, response, u + step * size))[2] >= value - slack:
                size /= 2.0
                if size < 1e-10:
                    raise ModeNotFound
            u, eta, value = candidate
        raise ModeNotFound

    def _from_saturated(self, lambdas: list[Array], fixed: Array, response: ResponseModel) -> Array:
        """Take the first step of iterated least squares from the saturated model."""
        eta = self._saturated
        weight = response.weight(eta)
        working = weight * (eta - fixed) + response.score(eta)
        h = self.layout.factor(self.layout.products(weight), lambdas)
        return h.solve(self.layout.scale(lambdas, self.layout.transpose_times(working), transpose=True))


@dataclass(frozen=True)
class Independence:
    """Fixed effects alone: coefficients ``beta`` (p,), working weights ``weight`` (n,), logs of what else is estimated."""

    beta: Array
    weight: Array
    log_dispersion: Array


def spans_constant(columns: Array) -> bool:
    """Return whether columns, shape (n, k), combine to a constant."""
    if ((columns == columns[:1]).all(axis=0) & (columns[0] != 0.0)).any():
        return True
    constant = np.ones((len(columns), 1))
    return bool(np.allclose(columns @ np.linalg.lstsq(columns, constant, rcond=None)[0], constant, atol=1e-6))


def lacks_constant(matrices: Matrices) -> bool:
    """Return whether random effects can express a constant that the fixed effects cannot, so that they carry the mean."""
    return not spans_constant(matrices.x) and any(spans_constant(e.columns) for e in matrices.effects)


def without_random_effects(
    frame: Frame, x: Array, family: Family, link: Link, *, with_constant: bool = False
) -> Independence:
    """Fit the fixed effects alone. Shapes: x (n, p)."""
    response = make_response(family, link, frame.y, frame.weights)
    eta = response.saturated()
    p = x.shape[1]
    if with_constant:
        x = np.hstack([x, np.ones((len(x), 1))])
    beta: Array = np.zeros(x.shape[1])
    previous_value = -np.inf
    for _ in range(25):
        w = response.weight(eta)
        w = np.maximum(w, 1e-10 * _typical(w))
        root, z = np.sqrt(w), eta - frame.offset + response.score(eta) / w
        new_beta: Array = np.asarray(np.linalg.lstsq(root[:, None] * x, root * z, rcond=None)[0], dtype=float)
        predicted = frame.offset + x @ new_beta
        value, size = float(response.loglik(predicted).sum()), 1.0
        # Links that are no maps onto the whole line can be left; half the way back is inside again.
        while not np.isfinite(value) and size > 1e-3 and np.isfinite(previous_value):
            size /= 2.0
            new_beta = beta + (new_beta - beta) / 2.0
            predicted = frame.offset + x @ new_beta
            value = float(response.loglik(predicted).sum())
        if not np.isfinite(value) or value < previous_value - 1e-8 * abs(previous_value):
            break
        beta, eta = new_beta, predicted
        # Under separation the estimates run away; a start need not follow them.
        if value - previous_value < 1e-8 * (abs(value) + 1.0) or (link.ratio and np.abs(eta).max() > 30.0):
            break
        previous_value = value
    log_dispersion: Array = np.zeros(0)
    if family.dispersion in {"thresholds", "shape"}:
        log_dispersion = response.dispersion
    elif family.dispersion is not None:
        dispersion = _dispersion(family, frame, link.inverse(eta), x.shape[1])
        with np.errstate(divide="ignore"):
            log_dispersion = np.log(np.array([dispersion]))
        response = response.with_dispersion(np.maximum(log_dispersion, np.log(1e-300)))
    weight = response.weight(eta)
    return Independence(beta[:p], np.maximum(weight, 1e-6 * _typical(weight)), log_dispersion)


def _typical(weight: Array) -> float:
    return max(float(np.median(weight)), 1e-300)


def _dispersion(family: Family, frame: Frame, mu: Array, p: int) -> float:
    """Estimate phi or theta by moments; rough, since random effects are still in the residuals."""
    squares = frame.weights * (frame.y - mu) ** 2
    if family.dispersion == "theta":
        ratio = float((squares - frame.weights * mu).sum() / (frame.weights * mu**2).sum())
        return 1.0 / float(np.clip(ratio, 1e-2, 10.0))
    ratio = float((squares / family.variance(mu)).sum()) / max(len(mu) - p, 1)
    if family.dispersion == "precision":
        extra_trials = float(np.mean(frame.weights)) - 1.0
        return float(np.clip(extra_trials / max(ratio - 1.0, 1e-3) - 1.0, 0.5, 1e3))
    return ratio


def in_units_of_residuals(matrices: Matrices, frame: Frame, family: Family, link: Link) -> Matrices:
    """Measure random effects in residual standard deviations on the link scale, so that theta is of the order of one."""
    if family.dispersion not in {"phi", "shape"}:
        return matrices  # the link's unit is already of that order
    lacking = lacks_constant(matrices)
    weight = without_random_effects(frame, matrices.x, family, link, with_constant=lacking).weight
    unit = 1.0 / float(np.sqrt(np.mean(weight)))
    covariance = matrices.covariance
    terms = [replace(t, transform=t.transform * unit) for t in covariance.terms]
    return replace(
        matrices,
        covariance=Covariance(terms, covariance.widths),
        effects=tuple(RandomEffectsBlock(e.codes, e.n_levels, e.columns * unit) for e in matrices.effects),
    )


MANY_ALIKE = 2
"""Different rows of X, in columns of X, up to which summing over identical rows saves work."""


@dataclass(frozen=True)
class LaplacePoint:
    """The model at one (theta, psi, beta): deviance, gradient, mode ``u``, linear predictor ``eta`` (n,), its response."""

    deviance: float
    gradient: Array
    u: Array
    eta: Array
    response: ResponseModel


@dataclass(frozen=True)
class _SolvedLaplace:
    """A solution at ``x`` as the average information reuses it: u, the working weights, Z' score, Z'WZ, H's factor, the rows."""

    x: Array
    u: Array
    inside: Array
    z_score: Array
    a: Products
    h: Factor
    eta: Array
    response: ResponseModel


def _alike(x: Array) -> tuple[Array, Index] | None:
    """Return the different rows of X, shape (g, p), and which of them each row is, (n,); None where they are more than columns."""
    p = x.shape[1]
    key = x @ np.cos(np.arange(1.0, p + 1.0))
    rounded = np.round(key / (1e-9 * (np.abs(key).max(initial=0.0) + 1e-300)))
    _, first, group = np.unique(rounded, return_index=True, return_inverse=True)
    if len(first) > MANY_ALIKE * p:
        return None
    rows = x[first]
    is_true = all(np.allclose(x[:, j], rows[group, j], rtol=1e-9, atol=1e-12) for j in range(p))
    return (rows, group) if is_true else None


class LaplaceDeviance:
    """Laplace deviance as a function of (theta, log dispersion, whitened beta), shape (k + n_dispersion + p,)."""

    def __init__(
        self,
        frame: Frame,
        matrices: Matrices,
        family: Family,
        link: Link,
        observed: bool = False,
        profiled: bool = False,
    ) -> None:
        self.covariance: Covariance = matrices.covariance
        self.layout: EffectsLayout = make_layout(matrices.effects)
        self.response: ResponseModel = make_response(family, link, frame.y, frame.weights, observed, profiled)
        self.offset = frame.offset
        self.n, self.p = matrices.x.shape
        lacking = lacks_constant(matrices)
        independence: Independence = without_random_effects(
            frame, matrices.x, family, link, with_constant=lacking
        )
        self.n_dispersion = 0 if profiled else len(independence.log_dispersion)
        r = np.linalg.qr(np.sqrt(independence.weight)[:, None] * matrices.x, mode="r")
        self.back = linalg.solve_triangular(r, np.eye(self.p)) if self.p else np.zeros((0, 0))
        self.x = matrices.x @ self.back
        self.alike = _alike(self.x)
        self.start_beta = r @ independence.beta
        # the mean may lie in the random effects or, nearly, in the fixed ones
        fits = (
            [independence, without_random_effects(frame, matrices.x, family, link)]
            if lacking
            else [independence]
        )
        self.starts = [
            np.concatenate([self.covariance.start(), fit.log_dispersion[: self.n_dispersion], r @ fit.beta])
            for fit in fits
            if fit is independence or np.isfinite(fit.log_dispersion).all()
        ]
        # Rounding in the sum of log-likelihoods, which cancels large terms where counts are large.
        noise = 1e-14 * float(
            np.sum(frame.weights * (np.abs(frame.y) + 1.0)) * (1.0 + np.abs(self.x @ self.start_beta).max())
        )
        noise = 1e-14 * self.n if family.dispersion in {"phi", "shape"} else noise
        self.modes = ModeSearch(self.layout, noise, self.response.saturated())
        self.penalty: Array | None = (
            None  # (d, d): Q of a penalty x' Q x, such as minus twice a log prior density
        )
        self._last: _SolvedLaplace | None = None

    def scales(self) -> Array:
        """Rough size of one standard error of each parameter."""
        dispersion = np.full(self.n_dispersion, np.sqrt(2.0 / self.n))
        return np.concatenate([self.covariance.scales(), dispersion, np.ones(self.p)])

    def diagonal(self) -> Mask:
        """Mask of the parameters on the diagonal of a template of theta."""
        rest = np.zeros(self.n_dispersion + self.p, dtype=bool)
        return np.concatenate([self.covariance.diagonal(), rest])

    def standardise(self, x: Array) -> Array:
        """Choose among the signs of theta's columns, which are all the same model."""
        k = self.covariance.size
        return np.concatenate([self.covariance.with_positive_diagonal(x[:k]), x[k:]])

    def split(self, x: Array) -> tuple[Array, ResponseModel, Array]:
        """Take parameters apart: theta, the response at its dispersion, whitened beta."""
        k = self.covariance.size
        dispersion_end = k + self.n_dispersion
        response = self.response.with_dispersion(x[k:dispersion_end]) if self.n_dispersion else self.response
        return x[:k], response, x[dispersion_end:]

    def coefficients(self, beta: Array) -> Array:
        """Coefficients for the columns of X from the whitened ones, shape (p,)."""
        return self.back @ beta

    def at(self, x: Array) -> LaplacePoint:
        """Evaluate deviance and gradient at x = (theta, log dispersion, whitened beta)."""
        self._last = None
        last, layout = self._solved(x), self.layout
        u, eta, h, response = last.u, last.eta, last.h, last.response
        lambdas = self.covariance.lambdas(x[: self.covariance.size])
        fit, fit_slope = response.deviance(eta)
        deviance = fit + float(u @ u) + h.logdet

        inverse = h.invert()
        leverages = inverse.leverages()
        observed = response.observed(eta)
        explicit = fit_slope + response.inside_slope(eta) * leverages
        # How the mode's motion feeds back: adjoint of the mode equations, in the observed information.
        pull = layout.scale(lambdas, layout.transpose_times(explicit), transpose=True) + u * 2.0
        h_observed = h if response.canonical else layout.factor(layout.products(observed), lambdas)
        self.modes.keep(h_observed)
        adjoint = h_observed.solve(pull)
        feedback = layout.times(layout.scale(lambdas, adjoint))
        d_eta = explicit - observed * feedback
        slopes = [
            by_eta + by_mode + 2.0 * trace
            for by_eta, by_mode, trace in zip(
                layout.outer(layout.transpose_times(d_eta), u),
                layout.outer(last.z_score, adjoint),
                inverse.trace_terms(),
                strict=True,
            )
        ]
        d_dispersion = np.zeros(self.n_dispersion)
        if self.n_dispersion:
            by_loglik, by_score, by_inside = response.by_dispersion(eta)
            total = -2.0 * by_loglik.sum(-1) + (by_inside * leverages).sum(-1) + (by_score * feedback).sum(-1)
            d_dispersion[:] = total
        gradient = np.concatenate([self.covariance.gradient(slopes), d_dispersion, self.x.T @ d_eta])
        return LaplacePoint(deviance, gradient, u, eta, response)

    def nearer(self, x: Array) -> Array:
        """Guess theta from the spread of the modes at a first guess."""
        theta, response, beta = self.split(x)
        lambdas = self.covariance.lambdas(theta)
        try:
            u = self.modes.find(lambdas, self.offset + self.x @ beta, response).u
        except (ModeNotFound, np.linalg.LinAlgError):
            self.modes.forget()
            return x
        b = self.layout.scale(lambdas, u)
        levels = [f.n_levels for f in self.layout.factors]
        moments = [s / m for s, m in zip(self.layout.outer(b, b), levels, strict=True)]
        return np.concatenate([self.covariance.from_moments(moments), x[self.covariance.size :]])

    def metric(self, x: Array) -> Array:
        """Approximate second derivatives of the deviance, shape (d, d)."""
        # For theta the average information of the working linear model (see ``linear``), for beta its information, for a
        # log dispersion that of a normal sample, for log gaps between thresholds the squares of their slopes.
        last = self._solved(x)
        k, dispersion_end = self.covariance.size, self.covariance.size + self.n_dispersion
        lambdas, layout = self.covariance.lambdas(x[:k]), self.layout
        result = np.zeros((len(x), len(x)))
        if k:
            derivatives = layout.moved(self.covariance.entries, lambdas, last.u, last.z_score)
            products = last.a.times(derivatives)
            scaled = layout.scale(lambdas, products, transpose=True)
            result[:k, :k] = derivatives.T @ products - scaled.T @ last.h.solve(scaled)
        if self.n_dispersion == 1:
            result[k:dispersion_end, k:dispersion_end] = self.n
        elif self.n_dispersion:
            by_loglik = last.response.by_dispersion(last.eta)[0]
            result[k:dispersion_end, k:dispersion_end] = 2.0 * by_loglik @ by_loglik.T
        with_x, x_with_x = self._information(last.inside)
        with_x = layout.scale(lambdas, with_x, transpose=True)
        result[dispersion_end:, dispersion_end:] = 2.0 * (x_with_x - with_x.T @ last.h.solve(with_x))
        return result if self.penalty is None else result + 2.0 * self.penalty

    def _information(self, w: Array) -> tuple[Array, Array]:
        """Z' W X and X' W X for weights of shape (n,)."""
        if self.alike is None:
            weighted = w[:, None] * self.x
            return self.layout.transpose_times_columns(weighted), self.x.T @ weighted
        rows, group = self.alike
        sums = np.bincount(group, w, len(rows))
        by_group = self.layout.transpose_times(w, group, len(rows))
        return by_group @ rows, rows.T @ (sums[:, None] * rows)

    def _solved(self, x: Array) -> _SolvedLaplace:
        if self._last is None or not np.array_equal(self._last.x, x):
            theta, response, beta = self.split(x)
            lambdas = self.covariance.lambdas(theta)
            mode = self.modes.find(lambdas, self.offset + self.x @ beta, response)
            inside = response.inside(mode.eta)
            a = self.layout.products(inside)
            z_score = self.layout.transpose_times(mode.score)
            self._last = _SolvedLaplace(
                x.copy(), mode.u, inside, z_score, a, self.layout.factor(a, lambdas), mode.eta, response
            )
        return self._last

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Deviance, penalty included, and gradient; infinite where the mode cannot be found."""
        try:
            point = self.at(x)
            result = point.deviance, point.gradient
        except (ModeNotFound, np.linalg.LinAlgError):
            result = np.inf, np.zeros_like(x)
        if not np.isfinite(result[0]):
            self.modes.forget()
            return np.inf, np.zeros_like(x)
        if self.penalty is None:
            return result
        return result[0] + float(x @ self.penalty @ x), result[1] + 2.0 * (self.penalty @ x)


@dataclass(frozen=True)
class LinearPoint:
    """The model at one theta, in the working scale of y and X."""

    logdet: float  # log|H|, plus log|R_X|^2 under REML
    logdet_slope: Array  # (theta,): its gradient
    rss: float  # r^2(theta)
    rss_slope: Array  # (theta,): its gradient
    information: Array  # (p, p): R_X' R_X = X' V^-1 X at sigma = 1
    beta: Array  # (p,): profiled coefficients
    u: Array  # spherical random effects


@dataclass(frozen=True)
class _Solved:
    """Parts of a solution for later use: the factor of H, sums of blocks of A Lambda P, and Z'W times the residual."""

    point: LinearPoint
    lambdas: list[Array]
    h: Factor
    traces: list[Array]
    z_residual: Array


class LinearDeviance:
    """Deviance of a linear mixed model as a function of theta."""

    def __init__(self, frame: Frame, matrices: Matrices, reml: bool) -> None:
        self.reml = reml
        self.covariance: Covariance = matrices.covariance
        self.layout: EffectsLayout = make_layout(matrices.effects)
        root = np.sqrt(frame.weights)
        self.n, self.p = matrices.x.shape
        target = frame.y - frame.offset
        q, self.r = np.linalg.qr(root[:, None] * matrices.x)
        self.ols = linalg.solve_triangular(self.r, q.T @ (root * target)) if self.p else np.zeros(0)
        residual = target - matrices.x @ self.ols
        self.scale = float(np.sqrt(np.mean(frame.weights * residual**2))) or 1.0
        x = q / root[:, None]
        columns = np.column_stack([x, residual / self.scale])
        self.a = self.layout.products(frame.weights)
        weighted = np.asfortranarray(frame.weights[:, None] * columns)
        self.c = self.layout.transpose_times_columns(weighted)
        self.s = columns.T @ weighted
        log_weights = float(np.log(frame.weights).sum())
        self.df = self.n - self.p if reml else self.n
        self.constant = self.df * (1.0 + np.log(2.0 * np.pi / self.df)) - log_weights
        self.constant += 2.0 * self.df * np.log(self.scale)
        if reml and self.p:
            self.constant += 2.0 * float(np.log(np.abs(np.diag(self.r))).sum())
        self._met: dict[bytes, LinearPoint] = {}
        self._last: _Solved | None = None

    def at(self, theta: Array) -> LinearPoint:
        """Solve the penalised least-squares problem at one theta; points met lately are remembered."""
        key = np.round(theta / self.covariance.scales() * 1e10).tobytes()
        if key not in self._met:
            while len(self._met) > 4 * len(theta) + 4:
                del self._met[next(iter(self._met))]
            self._met[key] = self._solve(theta)
        return self._met[key]

    def _solve(self, theta: Array) -> LinearPoint:
        p = self.p
        lambdas = self.covariance.lambdas(theta)
        h = self.layout.factor(self.a, lambdas)
        scaled_c = self.layout.scale(lambdas, self.c, transpose=True)
        g = h.solve(scaled_c)
        residual_c = self.c - self.a.times(self.layout.scale(lambdas, g))
        s = self.s - scaled_c.T @ g
        s = (s + s.T) / 2.0
        information = s[:p, :p]
        factor = np.linalg.cholesky(information)
        beta = linalg.lapack.dpotrs(factor, s[:p, p], lower=1)[0] if p else np.zeros(0)
        rss = float(s[p, p] - s[:p, p] @ beta)
        contrast = np.append(-beta, 1.0)
        u, z_residual = g @ contrast, residual_c @ contrast
        rss_slope = -2.0 * self.covariance.gradient(self.layout.outer(z_residual, u))
        logdet = h.logdet
        traces = h.invert().trace_terms()
        slopes = [2.0 * b for b in traces]
        if self.reml and p:
            logdet += 2.0 * float(np.log(np.diag(factor)).sum())
            # Zeros for the response spare cutting the fixed columns out.
            inverse = np.zeros((p + 1, p + 1))
            inverse[:p, :p] = linalg.lapack.dpotrs(factor, np.eye(p), lower=1)[0]
            q = residual_c @ inverse
            slopes = [a - 2.0 * b for a, b in zip(slopes, self.layout.outer(q, g), strict=True)]
        point = LinearPoint(logdet, self.covariance.gradient(slopes), rss, rss_slope, information, beta, u)
        self._last = _Solved(point, lambdas, h, traces, z_residual)
        return point

    def scales(self) -> Array:
        """Rough size of one standard error of each entry of theta."""
        return self.covariance.scales()

    def diagonal(self) -> Mask:
        """Mask of the entries of theta on a template's diagonal."""
        return self.covariance.diagonal()

    def standardise(self, theta: Array) -> Array:
        """Choose among the signs of theta's columns, which are all the same model."""
        return self.covariance.with_positive_diagonal(theta)

    def nearer(self, theta: Array) -> Array:
        """Guess theta from the spread of the random effects at the first guess, Lambda = I."""
        # That spread is too large by about the variance of their errors, the blocks of P = H^-1 = I - A P.
        solution = self._solution(theta)
        levels = [f.n_levels for f in self.layout.factors]
        squares = self.layout.outer(solution.point.u, solution.point.u)
        sigma2 = max(solution.point.rss / self.df, NO_RESIDUAL)
        return self.covariance.from_moments(
            [
                _less(square / m / sigma2, np.eye(len(square)) - (trace + trace.T) / (2.0 * m))
                for square, trace, m in zip(squares, solution.traces, levels, strict=True)
            ]
        )

    def _solution(self, theta: Array) -> _Solved:
        point = self.at(theta)
        if self._last is None or self._last.point is not point:
            self._solve(theta)
        assert self._last is not None
        return self._last

    def metric(self, theta: Array) -> Array:
        """Average of observed and expected second derivatives of the deviance, shape (theta, theta)."""
        # The average information of Gilmour, Thompson and Cullis (1995): with f_i = dV/dtheta_i V^-1 (y - X beta), its
        # entries are f_i' P f_j / sigma^2, here with sigma profiled out. It needs solves only.
        last, p = self._solution(theta), self.p
        point = last.point
        derivatives = self.layout.moved(self.covariance.entries, last.lambdas, last.point.u, last.z_residual)
        products = self.a.times(derivatives)
        scaled = self.layout.scale(last.lambdas, products, transpose=True)
        solved = last.h.solve(scaled)
        squares = derivatives.T @ products - scaled.T @ solved
        if p:
            with_x = (self.c.T @ derivatives)[:p]
            with_x -= (self.layout.scale(last.lambdas, self.c, transpose=True).T @ solved)[:p]
            squares -= with_x.T @ np.linalg.solve(point.information, with_x)
        projections, sigma2 = last.z_residual @ derivatives, point.rss / self.df
        return np.asarray(squares / sigma2 - np.outer(projections, projections) / (sigma2**2 * self.df))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Profiled deviance and its gradient."""
        point = self.at(theta)
        if point.rss < NO_RESIDUAL * self.n:
            raise UserError(
                "the model reproduces the response exactly; no residual variance is left to estimate",
                mend="Look whether the response is a copy of a covariate or constant within groups.",
            )
        value = point.logdet + self.df * float(np.log(point.rss)) + self.constant
        return value, point.logdet_slope + self.df * point.rss_slope / point.rss

    def sigma(self, point: LinearPoint) -> float:
        """Residual standard deviation in the units of y."""
        return self.scale * float(np.sqrt(point.rss / self.df))

    def coefficients(self, point: LinearPoint) -> Array:
        """Return the fixed effects for the columns of X, shape (p,)."""
        if not self.p:
            return np.zeros(0)
        return self.ols + self.scale * linalg.solve_triangular(self.r, point.beta)

    def variance(self, point: LinearPoint) -> Array:
        """Covariance of the fixed effects at sigma = 1, shape (p, p)."""
        if not self.p:
            return np.zeros((0, 0))
        back = linalg.solve_triangular(self.r, np.eye(self.p))
        return np.asarray(back @ linalg.inv(point.information) @ back.T)

    def effects(self, point: LinearPoint, theta: Array) -> Array:
        """Random effects b = Lambda u for the columns of Z, in the units of y."""
        return self.layout.scale(self.covariance.lambdas(theta), point.u) * self.scale


def _less(spread: Array, error: Array) -> Array:
    """Take one covariance matrix from another, in no direction more than nine tenths of what is there."""
    size = np.maximum(np.trace(spread) / len(spread), 1e-10)
    root = np.linalg.cholesky(spread + 1e-8 * size * np.eye(len(spread)))
    half = np.linalg.solve(root, error)
    shares, axes = np.linalg.eigh(np.linalg.solve(root, half.T))
    back = root @ axes
    return np.asarray((back * np.clip(1.0 - shares, 0.1, 1.0)) @ back.T)
