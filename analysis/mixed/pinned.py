"""Deviances with one parameter held at a value, the others free: what a likelihood profile minimises.

A standard deviation or a correlation is pinned by writing its term's relative covariance as L L' in the user's columns,
those concerned first: then L_11 is the standard deviation, and (rho, sqrt(1 - rho^2)) the direction of the second row. A
fixed effect is pinned by moving its column into the offset. In linear models sigma is profiled out, except where it is
pinned itself or follows from a pinned standard deviation, sigma = v / L_11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .covariance import Covariance
from .criterion import make_objective
from .laplace import LaplaceDeviance
from .linear import LinearDeviance
from .parameters import Parameter
from .result import Fit

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

SMALLEST = 1e-3
"""Relative standard deviation that stands in for none where its logarithm is a parameter."""


class PinnedCovariance(Covariance):
    """All random terms of a model, with one term parametrised so that a quantity of it can be held.

    The parameters are those of the other terms, as they were, then the free ones of this term.

    Parameters
    ----------
    base : Covariance
        The model's.
    parameter : Parameter
        A ``sd`` or ``cor``.
    follows : bool
        Whether L_11 of a pinned standard deviation is free, because sigma follows from it.
    """

    def __init__(self, base: Covariance, parameter: Parameter, follows: bool) -> None:
        super().__init__(base.terms, base.widths)
        self.parameter, self.follows = parameter, follows
        self.term = base.terms[parameter.at]
        first = [parameter.row] if parameter.kind == "sd" else [parameter.column, parameter.row]
        self.order = [*first, *(i for i in range(self.term.width) if i not in first)]
        self.back = np.linalg.inv(self.term.transform)
        # In these units every column of the term has root mean square one.
        self.unit = 1.0 / np.sqrt(np.sum(self.back**2, axis=0))[self.order]
        own = np.zeros(base.size, dtype=bool)
        own[self.term.theta] = True
        self.others = np.flatnonzero(~own)
        rows, columns = np.tril_indices(self.term.width)
        open_rows = rows >= len(first)
        self.rest = (rows[open_rows], columns[open_rows])
        self.logs = 2 if parameter.kind == "cor" else int(follows)
        self.whole = base.size
        self.size = len(self.others) + self.logs + len(self.rest[0])
        self.value = 0.0

    def at_estimate(self, theta: Array) -> Array:
        """Return the free parameters of the estimate, shape (size,)."""
        raw = (self.term.transform @ self.term.template(theta))[self.order] / self.unit[:, None]
        lower: Array = np.asarray(np.linalg.qr(raw.T, mode="r")).T
        lower = lower * np.where(np.diag(lower) < 0, -1.0, 1.0)
        sizes = np.linalg.norm(lower[: self.logs], axis=1)
        return np.concatenate([theta[self.others], np.log(np.maximum(sizes, SMALLEST)), lower[self.rest]])

    def _lower(self, psi: Array) -> Array:
        free = psi[len(self.others) :]
        lower = np.zeros((self.term.width, self.term.width))
        lower[self.rest] = free[self.logs :]
        if self.parameter.kind == "cor":
            lower[0, 0] = np.exp(free[0])
            lower[1, :2] = np.exp(free[1]) * np.array([self.value, np.sqrt(max(1.0 - self.value**2, 0.0))])
        else:
            lower[0, 0] = np.exp(free[0]) if self.follows else self.value / self.unit[0]
        return lower

    def _theta(self, psi: Array) -> Array:
        theta = np.zeros(self.whole)
        theta[self.others] = psi[: len(self.others)]
        return theta

    def lambdas(self, theta: Array) -> list[Array]:
        """Per grouping factor the (k, k) relative covariance factor; that of the pinned term is not triangular."""
        mats = super().lambdas(self._theta(theta))
        raw = np.empty((self.term.width, self.term.width))
        raw[self.order] = self.unit[:, None] * self._lower(theta)
        part = slice(self.term.at, self.term.at + self.term.width)
        mats[self.term.factor][part, part] = self.back @ raw
        self._last = self._lower(theta)
        return mats

    def gradient(self, slopes: list[Array] | tuple[Array, ...]) -> Array:  # type: ignore[override]
        """Collect derivatives with respect to Lambda's entries into those of the free parameters."""
        theta = np.empty(self.whole)
        for term in self.terms:
            part = slice(term.at, term.at + term.width)
            theta[term.theta] = slopes[term.factor][part, part][term.positions]
        part = slice(self.term.at, self.term.at + self.term.width)
        by_lower = self.unit[:, None] * (self.back.T @ slopes[self.term.factor][part, part])[self.order]
        by_log = [float(by_lower[r] @ self._last[r]) for r in range(self.logs)]
        return np.concatenate([theta[self.others], by_log, by_lower[self.rest]])

    def diagonal(self) -> NDArray[np.bool_]:
        """No parameter may change its sign here."""
        return np.zeros(self.size, dtype=bool)

    def start(self) -> Array:
        """Return a neutral point; profiles begin at the estimate."""
        return np.zeros(self.size)

    def scales(self) -> Array:
        """Rough size of one standard error of each parameter."""
        own = np.full(self.size - len(self.others), 1.0 / np.sqrt(2.0 * self.term.n_levels))
        result = np.empty(self.whole)
        for term in self.terms:
            result[term.theta] = 1.0 / np.sqrt(2.0 * term.n_levels)
        return np.concatenate([result[self.others], own])

    def with_positive_diagonal(self, theta: Array) -> Array:
        """Leave the signs alone."""
        return theta


class Pinned:
    """The deviance of a model with one parameter held.

    Parameters
    ----------
    fit : Fit
        Estimates by maximum likelihood.
    parameter : Parameter
        Which.
    """

    def __init__(self, fit: Fit, parameter: Parameter) -> None:
        self.fit, self.parameter = fit, parameter
        self.linear = fit.model.family.has_scale
        self.beta = fit.fixed["estimate"].to_numpy(dtype=float)

    def at(self, value: float, before: Array | None) -> tuple[Objective, Array]:
        """Make the deviance at a value, and where to begin: the parameters found ``before``, or the estimate's.

        Parameters
        ----------
        value : float
            What the parameter is held at.
        before : ndarray or None
            Parameters as ``describe`` returned them for a neighbouring value.
        """
        match self.parameter.kind:
            case "fixed":
                return self._without_column(value, before)
            case "sigma" | "dispersion":
                return self._with_dispersion(value, before)
        return self._with_covariance(value, before)

    def _without_column(self, value: float, before: Array | None) -> tuple[Objective, Array]:
        model, j = self.fit.model, self.parameter.at
        keep = [i for i in range(model.matrices.x.shape[1]) if i != j]
        x = model.matrices.x
        frame = replace(model.frame, offset=model.frame.offset + value * x[:, j])
        matrices = replace(model.matrices, x=x[:, keep])
        if self.linear:
            return LinearDeviance(frame, matrices, False), self.fit.theta if before is None else before
        objective = make_objective(frame, matrices, model.family, model.link, model.criterion)
        if before is None:
            before = _generalised_start(self.fit, objective, self.fit.theta, self.beta[keep])
        return objective, before

    def _with_dispersion(self, value: float, before: Array | None) -> tuple[Objective, Array]:
        model = self.fit.model
        if self.linear:
            base = LinearDeviance(model.frame, model.matrices, False)
            theta = self.fit.theta if before is None else before
            return _given_sigma(base, lambda _: (value, 0)), theta
        objective = make_objective(model.frame, model.matrices, model.family, model.link, model.criterion)
        k = objective.covariance.size
        held = np.log(value**2 if self.parameter.kind == "sigma" else value)

        def pinned(x: Array) -> tuple[float, Array]:
            deviance, gradient = objective(np.insert(x, k, held))
            return deviance, np.delete(gradient, k)

        if before is None:
            before = np.delete(_generalised_start(self.fit, objective, self.fit.theta, self.beta), k)
        return pinned, before

    def _with_covariance(self, value: float, before: Array | None) -> tuple[Objective, Array]:
        model, kind = self.fit.model, self.parameter.kind
        follows = self.linear and kind == "sd" and value > 0.0
        covariance = PinnedCovariance(model.matrices.covariance, self.parameter, follows)
        covariance.value = value
        matrices = replace(model.matrices, covariance=covariance)
        psi = covariance.at_estimate(self.fit.theta)
        if not self.linear:
            objective = make_objective(model.frame, matrices, model.family, model.link, model.criterion)
            if before is None:
                before = _generalised_start(self.fit, objective, psi, self.beta)
            return objective, before
        base = LinearDeviance(model.frame, matrices, False)
        if before is None or len(before) != len(psi):
            before = psi
        if not follows:
            return base, before
        at = len(covariance.others)
        return _given_sigma(base, lambda x: (value / (covariance.unit[0] * float(np.exp(x[at]))), at)), before


def _generalised_start(fit: Fit, objective: LaplaceDeviance, theta: Array, beta: Array) -> Array:
    middle = fit.end[len(fit.theta) :][: objective.n_dispersion]
    return np.concatenate([theta, middle, np.linalg.solve(objective.back, beta) if len(beta) else beta])


def _given_sigma(base: LinearDeviance, sigma_of: Callable[[Array], tuple[float, int]]) -> Objective:
    """Turn off the profiling of sigma: d = log|H| + n log(2 pi sigma^2) + r^2 / sigma^2 - sum log w.

    ``sigma_of`` gives sigma and the place of the parameter whose exponential divides it, where sigma is not fixed.
    """
    n = base.n
    log_weights = base.constant - n * (1.0 + np.log(2.0 * np.pi / n)) - 2.0 * n * np.log(base.scale)

    def deviance(x: Array) -> tuple[float, Array]:
        sigma, at = sigma_of(x)
        point = base.at(x)
        share = (base.scale / sigma) ** 2
        value = point.logdet + n * np.log(2.0 * np.pi * sigma**2) + point.rss * share + log_weights
        gradient = point.logdet_slope + point.rss_slope * share
        if isinstance(base.covariance, PinnedCovariance):
            gradient = gradient.copy()
            gradient[at] += 2.0 * (point.rss * share - n)
        return float(value), gradient

    return deviance
