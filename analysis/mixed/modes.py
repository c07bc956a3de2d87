"""Conditional modes of the random effects by penalised iteratively reweighted least squares, few factorings each.

Given theta and beta, u maximises 2 loglik(X beta + Z Lambda u + o) - |u|^2. A scoring step solves in H = Lambda' Z'WZ Lambda + I.
The factor of H costs far more than a step, and changes little from step to step and from one evaluation to its neighbour, so
it is kept as long as steps made with it shrink fast (the chord method; Ortega and Rheinboldt 1970, section 7.1); at the mode it
is made anew, since the deviance needs log|H| there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .blocks import Factor, Layout, Vector
from .responses import Response

Array = NDArray[np.float64]

TOLERANCE = 1e-18
"""Newton decrement (squared distance in units of the conditional spread) at which the mode counts as found."""
CONTRACTION = 0.01
"""A kept factor is made anew once a step shrinks the decrement by less than this."""


class ModeNotFound(ArithmeticError):
    """The conditional mode could not be found; the parameters are out of any sensible range."""


@dataclass(frozen=True)
class Mode:
    """The conditional mode.

    Attributes
    ----------
    u : Vector
        Spherical random effects.
    eta : ndarray, shape (n,)
        Linear predictor there.
    score : ndarray, shape (n,)
        Derivative of the log-likelihood with respect to eta.
    """

    u: Vector
    eta: Array
    score: Array


class ModeSearch:
    """Finds modes, each beginning where the last one ended.

    Parameters
    ----------
    layout : Layout
        Products with Z.
    noise : float
        Rounding error of the summed log-likelihood.
    """

    def __init__(self, layout: Layout, noise: float) -> None:
        self.layout, self.noise = layout, noise
        self._u = layout.zeros()
        self._kept: Factor | None = None

    def forget(self) -> None:
        """Begin the next search at zero."""
        self._u, self._kept = self.layout.zeros(), None

    def keep(self, factor: Factor) -> None:
        """Begin the next search with this factor."""
        self._kept = factor

    def _factor(self, response: Response, eta: Array, lambdas: list[Array], near: bool) -> Factor:
        """Factor the information for steps: expected, or near the mode, where scoring is slow, observed."""
        if near and not response.canonical:
            try:
                return self.layout.factor(self.layout.products(response.observed(eta)), lambdas)
            except np.linalg.LinAlgError:
                pass
        return self.layout.factor(self.layout.products(response.weight(eta)), lambdas)

    def find(self, lambdas: list[Array], fixed: Array, response: Response) -> Mode:
        """Climb by scoring steps, halved until they do not go down.

        Parameters
        ----------
        lambdas : list of ndarray
            Lambda per grouping factor.
        fixed : ndarray, shape (n,)
            Linear predictor without random effects.
        response : Response
            The data.

        Raises
        ------
        ModeNotFound
            If the likelihood is none at the start, no step goes up, or 200 do not arrive.
        """
        layout = self.layout
        u = self._u
        eta = fixed + layout.times(layout.scale(lambdas, u))
        value = _objective(response, eta, u)
        if not np.isfinite(value):
            self.forget()
            u, eta = self._u, fixed
            value = _objective(response, eta, u)
        if not np.isfinite(value):
            raise ModeNotFound
        h, fresh, previous = self._kept, False, np.inf
        for _ in range(200):
            score = response.score(eta)
            gradient = layout.scale(lambdas, layout.transpose_times(score), transpose=True) - u
            if h is None:
                h, fresh = self._factor(response, eta, lambdas, previous < 0.1 * layout.n), True
            step = h.solve(gradient)
            decrement = gradient.dot(step)
            # Below 1e-12 a decrement that no longer shrinks is rounding error.
            if 0.0 <= decrement < TOLERANCE or (fresh and 0.25 * previous < decrement < 1e-12):
                self._u, self._kept = u, h
                return Mode(u, eta, score)
            if not fresh and not 0.0 < decrement <= CONTRACTION * previous:
                h = None
                continue
            previous = decrement
            u, eta, value = self._climb(response, lambdas, fixed, (u, eta, value), step)
            fresh = False
        raise ModeNotFound

    def _climb(
        self,
        response: Response,
        lambdas: list[Array],
        fixed: Array,
        start: tuple[Vector, Array, float],
        step: Vector,
    ) -> tuple[Vector, Array, float]:
        u, _, value = start
        layout, size = self.layout, 1.0
        slack = self.noise + 1e-12 * abs(value)
        while size >= 1e-10:
            u_new = u + step * size
            eta_new = fixed + layout.times(layout.scale(lambdas, u_new))
            value_new = _objective(response, eta_new, u_new)
            if value_new >= value - slack:
                return u_new, eta_new, value_new
            size /= 2.0
        raise ModeNotFound


def _objective(response: Response, eta: Array, u: Vector) -> float:
    return 2.0 * float(response.loglik(eta).sum()) - u.dot(u)
