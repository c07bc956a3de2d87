"""The Laplace deviance of generalised linear mixed models and its exact gradient.

Bates et al. (2015, section 5 of the lme4 theory) evaluate at the conditional mode u(theta, beta)

    d(theta, psi, beta) = -2 sum loglik(eta) + |u|^2 + log|H|,   H = Lambda' Z'WZ Lambda + I,  eta = X beta + Z Lambda u + o,

with W the information at eta (expected, or observed: see ``responses``) and psi the log dispersion of families that have
one. The mode is found by penalised iteratively reweighted least squares, taken to rounding error, since noise there is
noise in the gradient. The gradient adds to the explicit derivatives the path through u (implicit function theorem) and
through W; it needs only leverages and block traces of H^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .blocks import Blocks, Factor, Layout, Vector, gram
from .cells import make_layout
from .families import Family, Link
from .frame import Frame
from .independence import Independence, lacks_constant, without_random_effects
from .matrices import Covariance, Matrices
from .modes import ModeNotFound, ModeSearch
from .responses import Response, make_response

Array = NDArray[np.float64]

MANY_ALIKE = 2
"""Different rows of X, in columns of X, up to which sums over rows that are alike save work."""


@dataclass(frozen=True)
class LaplacePoint:
    """The model at one (theta, psi, beta): deviance, gradient, mode ``u``, linear predictor ``eta`` (n,), its response."""

    deviance: float
    gradient: Array
    u: Vector
    eta: Array
    response: Response


@dataclass(frozen=True)
class _Solved:
    """A solution at ``x`` as the average information reuses it: u, the working weights, Z' score, Z'WZ, H's factor, the rows."""

    x: Array
    u: Vector
    inside: Array
    z_score: Vector
    a: Blocks
    h: Factor
    eta: Array
    response: Response


def _alike(x: Array) -> tuple[Array, NDArray[np.intp]] | None:
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
    """Laplace deviance as a function of (theta, log dispersion, whitened beta).

    Shapes: start_beta (p,), starts (k + n_dispersion + p,).
    """

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
        self.layout: Layout = make_layout(matrices.effects)
        self.response: Response = make_response(family, link, frame.y, frame.weights, observed, profiled)
        self.offset = frame.offset
        self.n, self.p = matrices.x.shape
        lacking = lacks_constant(matrices)
        alone: Independence = without_random_effects(frame, matrices.x, family, link, with_constant=lacking)
        self.n_dispersion = 0 if profiled else len(alone.log_dispersion)
        r = np.linalg.qr(np.sqrt(alone.weight)[:, None] * matrices.x, mode="r")
        self.back = linalg.solve_triangular(r, np.eye(self.p)) if self.p else np.zeros((0, 0))
        self.x = matrices.x @ self.back
        self.alike = _alike(self.x)
        self.start_beta = r @ alone.beta
        # the mean may lie in the random effects or, nearly, in the fixed ones
        begins = [alone, without_random_effects(frame, matrices.x, family, link)] if lacking else [alone]
        self.starts = [
            np.concatenate(
                [
                    self.covariance.start(),
                    begin.log_dispersion[: self.n_dispersion],
                    r @ begin.beta,
                ]
            )
            for begin in begins
            if begin is alone or np.isfinite(begin.log_dispersion).all()
        ]
        # Rounding in the sum of log-likelihoods, which cancels large terms where counts are large.
        noise = 1e-14 * float(
            np.sum(frame.weights * (np.abs(frame.y) + 1.0)) * (1.0 + np.abs(self.x @ self.start_beta).max())
        )
        noise = 1e-14 * self.n if family.dispersion in {"phi", "shape"} else noise
        self.modes = ModeSearch(self.layout, noise, self.response.saturated())
        self._last: _Solved | None = None

    def scales(self) -> Array:
        """Rough size of one standard error of each parameter."""
        return np.concatenate(
            [
                self.covariance.scales(),
                np.full(self.n_dispersion, np.sqrt(2.0 / self.n)),
                np.ones(self.p),
            ]
        )

    def diagonal(self) -> NDArray[np.bool_]:
        """Which parameters lie on the diagonal of a template of theta."""
        rest = np.zeros(self.n_dispersion + self.p, dtype=bool)
        return np.concatenate([self.covariance.diagonal(), rest])

    def standardise(self, x: Array) -> Array:
        """Choose among the signs of theta's columns, which are all the same model."""
        k = self.covariance.size
        return np.concatenate([self.covariance.with_positive_diagonal(x[:k]), x[k:]])

    def split(self, x: Array) -> tuple[Array, Response, Array]:
        """Take parameters apart: theta, the response at its dispersion, whitened beta."""
        k = self.covariance.size
        at = k + self.n_dispersion
        response = self.response.with_dispersion(x[k:at]) if self.n_dispersion else self.response
        return x[:k], response, x[at:]

    def coefficients(self, beta: Array) -> Array:
        """Coefficients for the columns of X from the whitened ones, shape (p,)."""
        return self.back @ beta

    def expected_vcov(self, point: LaplacePoint) -> Array:
        """Covariance of the coefficients from the expected information, as glm has it, shape (p, p); without random effects."""
        weighted = point.response.weight(point.eta)[:, None] * self.x
        return np.asarray(self.back @ np.linalg.pinv(self.x.T @ weighted, hermitian=True) @ self.back.T)

    def at(self, x: Array) -> LaplacePoint:
        """Evaluate deviance and gradient at x = (theta, log dispersion, whitened beta)."""
        layout = self.layout
        theta, response, beta = self.split(x)
        lambdas = self.covariance.lambdas(theta)
        mode = self.modes.find(lambdas, self.offset + self.x @ beta, response)
        u, eta, score = mode.u, mode.eta, mode.score
        inside = response.inside(eta)
        a = layout.products(inside)
        h = layout.factor(a, lambdas)
        fit, fit_slope = response.deviance(eta)
        deviance = fit + u.dot(u) + h.logdet

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
        z_score = layout.transpose_times(score)
        slopes = [
            one + two + 2.0 * three
            for one, two, three in zip(
                layout.outer(layout.transpose_times(d_eta), u),
                layout.outer(z_score, adjoint),
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
        self._last = _Solved(x.copy(), u, inside, z_score, a, h, eta, response)
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
        """Approximate second derivatives of the deviance, shape (d, d).

        For theta the average information of the working linear model (see ``linear``), for beta its information, for a
        log dispersion that of a normal sample, for log gaps between thresholds the squares of their slopes.
        """
        last = self._solved(x)
        k, at = self.covariance.size, self.covariance.size + self.n_dispersion
        lambdas, layout = self.covariance.lambdas(x[:k]), self.layout
        result = np.zeros((len(x), len(x)))
        if k:
            moved = layout.moved(self.covariance.entries(), lambdas, last.u, last.z_score)
            products = last.a.times(moved)
            scaled = layout.scale(lambdas, products, transpose=True)
            result[:k, :k] = gram(moved, products) - gram(scaled, last.h.solve(scaled))
        if self.n_dispersion == 1:
            result[k:at, k:at] = self.n
        elif self.n_dispersion:
            by_loglik = last.response.by_dispersion(last.eta)[0]
            result[k:at, k:at] = 2.0 * by_loglik @ by_loglik.T
        with_x, x_with_x = self._information(last.inside)
        with_x = layout.scale(lambdas, with_x, transpose=True)
        result[at:, at:] = 2.0 * (x_with_x - gram(with_x, last.h.solve(with_x)))
        return result

    def _information(self, w: Array) -> tuple[Vector, Array]:
        """Z' W X and X' W X for weights of shape (n,)."""
        if self.alike is None:
            weighted = w[:, None] * self.x
            return self.layout.transpose_times_columns(weighted), self.x.T @ weighted
        rows, group = self.alike
        sums = np.bincount(group, w, len(rows))
        by_group = self.layout.transpose_times_groups(w, group, len(rows))
        return by_group.combined(rows), rows.T @ (sums[:, None] * rows)

    def _solved(self, x: Array) -> _Solved:
        if self._last is None or not np.array_equal(self._last.x, x):
            theta, response, beta = self.split(x)
            lambdas = self.covariance.lambdas(theta)
            mode = self.modes.find(lambdas, self.offset + self.x @ beta, response)
            inside = response.inside(mode.eta)
            a = self.layout.products(inside)
            z_score = self.layout.transpose_times(mode.score)
            self._last = _Solved(
                x.copy(), mode.u, inside, z_score, a, self.layout.factor(a, lambdas), mode.eta, response
            )
        return self._last

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Deviance and gradient; infinite where the mode cannot be found."""
        try:
            point = self.at(x)
        except (ModeNotFound, np.linalg.LinAlgError):
            self.modes.forget()
            return np.inf, np.zeros_like(x)
        if not np.isfinite(point.deviance):
            self.modes.forget()
            return np.inf, np.zeros_like(x)
        return point.deviance, point.gradient
