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

from .blocks import Layout, PenalisedCholesky, Vector
from .covariance import Covariance
from .families import Family, Link
from .frame import Frame
from .independence import Independence, without_random_effects
from .matrices import Matrices
from .responses import Response, make_response

Array = NDArray[np.float64]

MODE_TOLERANCE = 1e-18
"""Newton decrement (squared distance in units of the conditional spread) at which the mode counts as found."""


@dataclass(frozen=True)
class LaplacePoint:
    """The model at one (theta, psi, beta): deviance, gradient, mode ``u``, linear predictor ``eta`` (n,), its response."""

    deviance: float
    gradient: Array
    u: Vector
    eta: Array
    response: Response


class ModeNotFound(ArithmeticError):
    """The conditional mode could not be found; the parameters are out of any sensible range."""


class LaplaceDeviance:
    """Laplace deviance as a function of (theta, log dispersion, whitened beta).

    Parameters
    ----------
    frame : Frame
        Response, weights, offset.
    matrices : Matrices
        X and Z.
    family, link : Family, Link
        How the response arises.
    observed : bool
        Whether the determinant holds the observed information, as glmmTMB's does, or the expected, as lme4's.
    profiled : bool
        Whether the dispersion is lme4's, put in rather than estimated; see ``responses.ProfiledResponse``.

    Attributes
    ----------
    start_beta : ndarray, shape (p,)
        Whitened coefficients of the model without random effects.
    n_dispersion : int
        Log dispersions among the parameters, 0 or 1.
    start : ndarray, shape (k + n_dispersion + p,)
        Where a search may begin.
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
        self.layout = Layout(matrices.effects)
        self.response: Response = make_response(family, link, frame.y, frame.weights, observed, profiled)
        self.offset = frame.offset
        self.n, self.p = matrices.x.shape
        self.n_dispersion = int(family.dispersion is not None and not profiled)
        alone: Independence = without_random_effects(frame, matrices.x, family, link)
        r = np.linalg.qr(np.sqrt(alone.weight)[:, None] * matrices.x, mode="r")
        self.back = linalg.solve_triangular(r, np.eye(self.p)) if self.p else np.zeros((0, 0))
        self.x = matrices.x @ self.back
        self.start_beta = r @ alone.beta
        self.start = np.concatenate(
            [
                self.covariance.start(),
                np.full(self.n_dispersion, np.log(alone.dispersion)),
                self.start_beta,
            ]
        )
        self._mode = self.layout.zeros()
        # Rounding in the sum of log-likelihoods, which cancels large terms where counts are large.
        self._noise = 1e-14 * float(
            np.sum(frame.weights * (np.abs(frame.y) + 1.0)) * (1.0 + np.abs(self.x @ self.start_beta).max())
        )
        if family.dispersion == "phi":
            self._noise = 1e-14 * self.n

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
        response = self.response.with_dispersion(float(x[k])) if self.n_dispersion else self.response
        return x[:k], response, x[at:]

    def coefficients(self, beta: Array) -> Array:
        """Coefficients for the columns of X from the whitened ones, shape (p,)."""
        return self.back @ beta

    def _objective(self, response: Response, eta: Array, u: Vector) -> float:
        return 2.0 * float(response.loglik(eta).sum()) - u.dot(u)

    def _step(self, response: Response, eta: Array, lambdas: list[Array], near: bool) -> PenalisedCholesky:
        """Factor the information for a step: expected, or near the mode, where scoring is slow, observed."""
        if near and not response.canonical:
            try:
                return PenalisedCholesky(self.layout, self.layout.products(response.observed(eta)), lambdas)
            except np.linalg.LinAlgError:
                pass
        return PenalisedCholesky(self.layout, self.layout.products(response.weight(eta)), lambdas)

    def mode(
        self, lambdas: list[Array], fixed: Array, response: Response | None = None
    ) -> tuple[Vector, Array, PenalisedCholesky]:
        """Maximise loglik - |u|^2 / 2 over u by scoring steps, halved until they do not go down.

        Parameters
        ----------
        lambdas : list of ndarray
            Lambda per grouping factor.
        fixed : ndarray, shape (n,)
            Linear predictor without random effects.
        response : Response, optional
            At the dispersion wanted; default that of the families without one.

        Returns
        -------
        u : Vector
        eta : ndarray, shape (n,)
        factor : PenalisedCholesky
            Of the last step's information at eta: the expected one for canonical links.
        """
        layout, response = self.layout, self.response if response is None else response
        u = self._mode
        eta = fixed + layout.times(layout.scale(lambdas, u))
        value = self._objective(response, eta, u)
        if not np.isfinite(value):
            u = layout.zeros()
            eta = fixed
            value = self._objective(response, eta, u)
        if not np.isfinite(value):
            raise ModeNotFound
        previous = np.inf
        for _ in range(200):
            h = self._step(response, eta, lambdas, previous < 0.1 * self.n)
            gradient = layout.scale(lambdas, layout.transpose_times(response.score(eta)), transpose=True) - u
            step = h.solve(gradient)
            decrement = gradient.dot(step)
            # Below 1e-12 a decrement that no longer shrinks is rounding error.
            if decrement < MODE_TOLERANCE or (decrement < 1e-12 and decrement > 0.25 * previous):
                return u, eta, h
            previous = decrement
            size = 1.0
            slack = self._noise + 1e-12 * abs(value)
            while True:
                u_new = u + step * size
                eta_new = fixed + layout.times(layout.scale(lambdas, u_new))
                value_new = self._objective(response, eta_new, u_new)
                if value_new >= value - slack:
                    break
                size /= 2.0
                if size < 1e-10:
                    raise ModeNotFound
            u, eta, value = u_new, eta_new, value_new
        raise ModeNotFound

    def at(self, x: Array) -> LaplacePoint:
        """Evaluate deviance and gradient at x = (theta, log dispersion, whitened beta)."""
        layout = self.layout
        theta, response, beta = self.split(x)
        lambdas = self.covariance.lambdas(theta)
        u, eta, last = self.mode(lambdas, self.offset + self.x @ beta, response)
        self._mode = u
        h = (
            last
            if response.canonical
            else PenalisedCholesky(layout, layout.products(response.inside(eta)), lambdas)
        )
        fit, fit_slope = response.deviance(eta)
        deviance = fit + u.dot(u) + h.logdet

        inverse = h.invert()
        leverages = inverse.leverages()
        score, observed = response.score(eta), response.observed(eta)
        explicit = fit_slope + response.inside_slope(eta) * leverages
        # How the mode's motion feeds back: adjoint of the mode equations, in the observed information.
        pull = layout.scale(lambdas, layout.transpose_times(explicit), transpose=True) + u * 2.0
        h_observed = (
            h if response.canonical else PenalisedCholesky(layout, layout.products(observed), lambdas)
        )
        adjoint = h_observed.solve(pull)
        feedback = layout.times(layout.scale(lambdas, adjoint))
        d_eta = explicit - observed * feedback
        slopes = [
            a + b + 2.0 * c
            for a, b, c in zip(
                layout.outer(layout.transpose_times(d_eta), u),
                layout.outer(layout.transpose_times(score), adjoint),
                inverse.trace_terms(),
                strict=True,
            )
        ]
        d_dispersion = np.zeros(self.n_dispersion)
        if self.n_dispersion:
            by_loglik, by_score, by_inside = response.by_dispersion(eta)
            total = -2.0 * by_loglik.sum() + (by_inside * leverages).sum() + (by_score * feedback).sum()
            d_dispersion[0] = total
        gradient = np.concatenate([self.covariance.gradient(slopes), d_dispersion, self.x.T @ d_eta])
        return LaplacePoint(deviance, gradient, u, eta, response)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Deviance and gradient; infinite where the mode cannot be found."""
        try:
            point = self.at(x)
        except (ModeNotFound, np.linalg.LinAlgError):
            self._mode = self.layout.zeros()
            return np.inf, np.zeros_like(x)
        if not np.isfinite(point.deviance):
            self._mode = self.layout.zeros()
            return np.inf, np.zeros_like(x)
        return point.deviance, point.gradient
