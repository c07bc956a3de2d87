"""Come near the minimum of a smooth deviance: quasi-Newton steps that begin from what the model knows of its curvature.

A deviance of a mixed model has an average information (``LinearDeviance.metric``), close to its second derivatives near the
minimum. L-BFGS with that matrix as its starting metric (Nocedal and Wright 2006, section 7.2) needs some six to ten
evaluations where one that begins from the identity needs thirty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

ARRIVED = 1e-11
"""Expected fall of the deviance at which quasi-Newton steps end."""
REACH = 0.5
"""Share of itself by which a quasi-Newton step changes a parameter, about, at most."""
ROUNDING = 1e-15
"""Share of itself by which a number changes in other units and back."""
LEAST = 1e-3
"""Curvature that a metric is given at least, in units where that of a well-determined parameter is near two."""


@runtime_checkable
class Curved(Protocol):
    """An objective that knows about how curved it is."""

    def metric(self, x: Array) -> Array:
        """Approximate second derivatives, positive semidefinite, shape (d, d)."""

    def nearer(self, x: Array) -> Array:
        """Guess from a first guess, shape (d,)."""


class Scaled:
    """The objective in units of rough standard errors, counting its calls."""

    def __init__(self, objective: Objective, scales: Array) -> None:
        self.objective, self.scales, self.calls = objective, scales, 0
        self.curved = objective if isinstance(objective, Curved) else None
        self._known: tuple[tuple[Array, float, Array], ...] = ()
        self._keeps = False

    def __call__(self, z: Array) -> tuple[float, Array]:
        """Value and gradient at z."""
        x = z * self.scales
        for known, value, gradient in self._known:
            if (np.abs(known - x) <= ROUNDING * np.abs(x)).all():
                return value, gradient * self.scales
        self.calls += 1
        # Line searches may visit extreme points; their infinite values are refused there.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self.objective(x)
        if self._keeps:
            latest = x.copy(), value, gradient
            self._known = latest, min((latest, *self._known), key=lambda point: point[1])
        return value, gradient * self.scales

    def keep(self) -> None:
        """Evaluate anew what was met before, and from here on do not ask twice for the latest and for the lowest point.

        Where the conditional mode is not unique a deviance depends on where its search began: one that was met on the way down
        may not be there for those who come back. So this is for deviances without modes, and for many rows.
        """
        self._keeps = True

    def metric(self, z: Array) -> Array:
        """Return the objective's own approximate second derivatives at z."""
        assert self.curved is not None
        return self.curved.metric(z * self.scales) * np.outer(self.scales, self.scales)


def descend(f: Scaled, z: Array) -> Array:
    """Go down from z, in the units of f, shape (d,)."""
    if f.curved is not None:
        return _descend_metric(f, z)
    found = optimize.minimize(
        f,
        z,
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": 2000, "ftol": 1e-12, "gtol": 1e-5},
    )
    return np.asarray(found.x)


def _descend_metric(f: Scaled, z: Array) -> Array:
    """Quasi-Newton steps that begin from the objective's own metric at each point (Nocedal and Wright 2006, 7.2)."""
    value, gradient = f(z)
    if not np.isfinite(value):
        return z
    pairs: list[tuple[Array, Array]] = []
    for _ in range(500):
        metric = f.metric(z)
        # A variance shrinks by a factor more readily than it passes through zero.
        bound = np.abs(gradient) / (REACH * np.abs(z) + 1.0)
        metric.flat[:: len(z) + 1] = np.maximum(np.diag(metric), bound)
        sizes, axes = np.linalg.eigh(metric)
        sizes = np.maximum(sizes, LEAST)
        step = -_two_loop(gradient, pairs, sizes, axes)
        slope = float(gradient @ step)
        if not slope < 0.0:
            pairs, step = [], -axes @ ((axes.T @ gradient) / sizes)
            slope = float(gradient @ step)
        if not slope < -ARRIVED:
            break
        length = 1.0
        while True:
            z_new = z + length * step
            value_new, gradient_new = f(z_new)
            if value_new <= value + 1e-4 * length * slope:
                break
            fall = 2.0 * (value_new - value - length * slope)
            best = -slope * length**2 / fall if np.isfinite(value_new) else 0.0
            length = float(np.clip(best, 0.1 * length, 0.5 * length))
            if length < 1e-10:
                return z
        move, turn = z_new - z, gradient_new - gradient
        if move @ turn > 1e-10 * np.sqrt((move @ move) * (turn @ turn)):
            pairs = [*pairs[-29:], (move, turn)]
        z, value, gradient = z_new, value_new, gradient_new
    return z


def _two_loop(gradient: Array, pairs: list[tuple[Array, Array]], sizes: Array, axes: Array) -> Array:
    """Apply the inverse of the metric, corrected by what earlier steps told of the curvature."""
    q = gradient.copy()
    weights = []
    for move, turn in reversed(pairs):
        weights.append(float(move @ q) / float(move @ turn))
        q -= weights[-1] * turn
    r = np.asarray(axes @ ((axes.T @ q) / sizes))
    for (move, turn), weight in zip(pairs, reversed(weights), strict=True):
        r += move * (weight - float(turn @ r) / float(move @ turn))
    return r
