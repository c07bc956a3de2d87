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
    """The conditional mode."""

    u: Vector  # spherical random effects
    eta: Array  # (n,): linear predictor there
    score: Array  # (n,): derivative of the log-likelihood with respect to eta


class ModeSearch:
    """Finds modes, each beginning where the last one ended. Shapes: saturated (n,)."""

    def __init__(self, layout: Layout, noise: float, saturated: Array) -> None:
        self.layout, self.noise, self._saturated = layout, noise, saturated
        self.forget()

    def forget(self) -> None:
        """Begin the next search at zero."""
        self._u, self._is_warm = self.layout.zeros(), False
        self._kept: Factor | None = None

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
        """Climb by scoring steps, halved until they do not go down. Shapes: fixed (n,)."""
        if self._is_warm and np.isfinite(self._at(lambdas, fixed, response, self._u)[2]):
            return self._search(lambdas, fixed, response, self._u)
        self.forget()
        try:
            return self._search(lambdas, fixed, response, self._u)
        except ModeNotFound:
            return self._search(lambdas, fixed, response, self._from_saturated(lambdas, fixed, response))

    def _at(
        self, lambdas: list[Array], fixed: Array, response: Response, u: Vector
    ) -> tuple[Vector, Array, float]:
        eta = fixed + self.layout.times(self.layout.scale(lambdas, u))
        return u, eta, 2.0 * float(response.loglik(eta).sum()) - u.dot(u)

    def _search(self, lambdas: list[Array], fixed: Array, response: Response, u: Vector) -> Mode:
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
            decrement = gradient.dot(step)
            # Below 1e-12 a decrement that no longer shrinks is rounding error.
            if 0.0 <= decrement < TOLERANCE or (fresh and 0.25 * previous < decrement < 1e-12):
                self._u, self._kept, self._is_warm = u, h, True
                return Mode(u, eta, score)
            if not fresh and not 0.0 < decrement <= CONTRACTION * previous:
                h = None
                continue
            previous = decrement
            u, eta, value = self._climb(response, lambdas, fixed, (u, value), step)
            fresh = False
        raise ModeNotFound

    def _from_saturated(self, lambdas: list[Array], fixed: Array, response: Response) -> Vector:
        """Take the first step of iterated least squares from the saturated model."""
        eta = self._saturated
        weight = response.weight(eta)
        working = weight * (eta - fixed) + response.score(eta)
        h = self.layout.factor(self.layout.products(weight), lambdas)
        return h.solve(self.layout.scale(lambdas, self.layout.transpose_times(working), transpose=True))

    def _climb(
        self,
        response: Response,
        lambdas: list[Array],
        fixed: Array,
        start: tuple[Vector, float],
        step: Vector,
    ) -> tuple[Vector, Array, float]:
        u, value = start
        size = 1.0
        slack = self.noise + 1e-12 * abs(value)
        while size >= 1e-10:
            new = self._at(lambdas, fixed, response, u + step * size)
            if new[2] >= value - slack:
                return new
            size /= 2.0
        raise ModeNotFound
