"""The deviance by adaptive Gauss-Hermite quadrature, for one grouping factor.

With one factor the integral over the random effects falls into one of k dimensions per level. Pinheiro and Bates (1995,
section 2.4) lay the nodes z of the product rule at u + S z, u the conditional mode, S S' the inverse of H there:

    d = log|H| - 2 sum_j log sum_q w_q exp(|z_q|^2 / 2 + loglik_j(u_q) - |u_q|^2 / 2).

One node is the Laplace approximation. The gradient is exact: it follows the nodes through the mode and through S.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .blocks import Vector
from .families import Family, Link
from .frame import Frame
from .laplace import LaplaceDeviance, LaplacePoint
from .matrices import Matrices

Array = NDArray[np.float64]

MOST_NODES = 100
"""Largest number of points along one dimension; the weights of more underflow."""
MOST_CELLS = 2e9
"""Rows times nodes at most."""


class QuadratureDeviance(LaplaceDeviance):
    """Deviance with ``nagq`` nodes a dimension, as a function of (theta, log dispersion, whitened beta).

    Parameters
    ----------
    frame, matrices, family, link, observed
        As for ``LaplaceDeviance``; ``matrices`` holds one grouping factor.
    nagq : int
        Nodes along each dimension.
    """

    def __init__(
        self,
        frame: Frame,
        matrices: Matrices,
        family: Family,
        link: Link,
        nagq: int,
        observed: bool = False,
    ) -> None:
        super().__init__(frame, matrices, family, link, observed)
        (effects,) = matrices.effects
        self._codes, self._columns, self._m = effects.codes, effects.columns, effects.n_levels
        points, weights = special.roots_hermitenorm(nagq)
        logs = np.log(weights / weights.sum())
        k = effects.width
        self._nodes = np.array(list(product(points, repeat=k)))
        self._log_weights = np.array([sum(w) for w in product(logs, repeat=k)])
        self._log_weights = self._log_weights + (self._nodes**2).sum(axis=1) / 2.0

    def _sums(self, values: Array) -> Array:
        """Z' v by level, shape (m, k)."""
        return np.stack(
            [np.bincount(self._codes, values * c, self._m) for c in self._columns.T],
            axis=1,
        )

    def _predictor(self, fixed: Array, lam: Array, u: Array) -> Array:
        return np.asarray(fixed + np.einsum("nk,nk->n", self._columns, (u @ lam.T)[self._codes]))

    def at(self, x: Array) -> LaplacePoint:
        """Evaluate deviance and gradient at x = (theta, log dispersion, whitened beta)."""
        layout = self.layout
        theta, response, beta = self.split(x)
        (lam,) = self.covariance.lambdas(theta)
        fixed = self.offset + self.x @ beta
        found = self.modes.find([lam], fixed, response)
        mode, eta = found.u, found.eta
        u = mode.first
        k = u.shape[1]
        inside = response.inside(eta)
        a = np.empty((self._m, k, k))
        for i in range(k):
            a[:, :, i] = self._sums(inside * self._columns[:, i])
        lower = np.linalg.cholesky(lam.T @ a @ lam + np.eye(k))
        s = np.swapaxes(np.linalg.inv(lower), 1, 2)
        logdet = 2.0 * float(np.log(np.einsum("mkk->mk", lower)).sum())

        at_node = [u + z @ np.swapaxes(s, 1, 2) for z in self._nodes]
        logs = np.empty((self._m, len(self._nodes)))
        for q, u_q in enumerate(at_node):
            loglik = response.loglik(self._predictor(fixed, lam, u_q))
            logs[:, q] = np.bincount(self._codes, loglik, self._m) - (u_q**2).sum(axis=1) / 2.0
        logs += self._log_weights
        levels = special.logsumexp(logs, axis=1)
        deviance = logdet - 2.0 * float(levels.sum())
        share = np.exp(logs - levels[:, None])

        by_mode, by_spread = np.zeros((self._m, k)), np.zeros((self._m, k, k))
        by_fixed, by_lambda, by_dispersion = np.zeros(self.n), np.zeros((k, k)), np.zeros(self.n_dispersion)
        for q, u_q in enumerate(at_node):
            eta_q, p = self._predictor(fixed, lam, u_q), share[:, q]
            rows_share = p[self._codes]
            # Nodes where no mean exists have no share, and slopes that are no numbers.
            score = np.where(rows_share > 0.0, rows_share * response.score(eta_q), 0.0)
            sums = self._sums(score)
            by_fixed -= 2.0 * score
            by_lambda -= 2.0 * sums.T @ u_q
            pulled = sums @ lam - p[:, None] * u_q
            by_mode += pulled
            by_spread += pulled[:, :, None] * self._nodes[q]
            if self.n_dispersion:
                by_node = np.where(rows_share > 0.0, rows_share * response.by_dispersion(eta_q)[0], 0.0)
                by_dispersion -= 2.0 * by_node.sum(-1)

        # How S moves with H (derivative of a Cholesky factor), added to the derivative of log|H|.
        c = np.swapaxes(s, 1, 2) @ by_spread
        upper = np.triu(c)
        moved = upper + np.swapaxes(np.triu(c, 1), 1, 2)
        inverse = s @ (np.eye(k) + moved) @ np.swapaxes(s, 1, 2)
        rows = self._columns @ lam
        leverages = np.einsum("ni,nij,nj->n", rows, inverse[self._codes], rows)
        explicit = response.inside_slope(eta) * leverages
        pull = Vector(self._sums(explicit) @ lam - 2.0 * by_mode, mode.rest)
        observed = response.observed(eta)
        adjoint = layout.factor(layout.products(observed), [lam]).solve(pull).first
        feedback = np.einsum("nk,nk->n", self._columns, (adjoint @ lam.T)[self._codes])
        d_eta = explicit - observed * feedback
        slope = by_lambda + self._sums(d_eta).T @ u + self._sums(response.score(eta)).T @ adjoint
        slope += 2.0 * np.einsum("mik,mkj->ij", a @ lam, inverse)
        d_dispersion = np.zeros(self.n_dispersion)
        if self.n_dispersion:
            _, by_score, by_inside = response.by_dispersion(eta)
            total = by_dispersion + (by_inside * leverages).sum(-1) + (by_score * feedback).sum(-1)
            d_dispersion[:] = total
        gradient = np.concatenate(
            [self.covariance.gradient([slope]), d_dispersion, self.x.T @ (d_eta + by_fixed)]
        )
        return LaplacePoint(deviance, gradient, mode, eta, response)
