"""Minimise a smooth deviance with an exact gradient, and judge what was found.

Quasi-Newton steps come near; Newton steps, with a Hessian from central differences of the gradient, finish. Theta is
free to change sign, because a bound at zero would hold the search at a saddle where the gradient vanishes. Convergence
is a statement about the point (Newton decrement small, no direction of negative curvature), not about the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

STEP = 1e-3
"""Step of the central differences, in rough standard errors."""
DECREMENT = 1e-6
"""Largest Newton decrement, in deviance units, of a converged fit."""
FLAT = 1e-7
"""Eigenvalues below this share of the largest count as zero."""


ARRIVED = 1e-11
"""Expected fall of the deviance at which quasi-Newton steps end."""
REACH = 0.5
"""Share of itself by which a quasi-Newton step changes a parameter, about, at most."""
LEAST = 1e-3
"""Curvature that a metric is given at least, in units where that of a well-determined parameter is near two."""


@runtime_checkable
class Curved(Protocol):
    """An objective that knows about how curved it is."""

    def metric(self, x: Array) -> Array:
        """Approximate second derivatives, positive semidefinite, shape (d, d)."""

    def nearer(self, x: Array) -> Array:
        """Guess from a first guess, shape (d,)."""


@dataclass(frozen=True)
class Optimum:
    """A minimum and its neighbourhood.

    Attributes
    ----------
    x : ndarray, shape (d,)
        Where.
    value : float
        The deviance there.
    gradient : ndarray, shape (d,)
        Its gradient.
    hessian : ndarray, shape (d, d)
        Its second derivatives.
    decrement : float
        Estimated distance of ``value`` from the minimum, times two.
    lowest : float
        Smallest eigenvalue of the scaled Hessian over the largest.
    evaluations : int
        How often the deviance was computed.
    """

    x: Array
    value: float
    gradient: Array
    hessian: Array
    decrement: float
    lowest: float
    evaluations: int

    @property
    def converged(self) -> bool:
        """Whether this is a minimum as far as second derivatives tell."""
        return bool(np.isfinite(self.value) and self.decrement < DECREMENT and self.lowest > -1e-4)


def differences(function: Callable[[Array], Array], x: Array, steps: Array) -> Array:
    """Differentiate a vector or array function by central differences.

    Returns
    -------
    ndarray
        First axis is the argument that moved, shape (d, …).
    """
    rows = []
    for i, step in enumerate(steps):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        rows.append((function(up) - function(down)) / (2.0 * step))
    return np.array(rows)


def hessian(objective: Objective, x: Array, steps: Array) -> Array:
    """Second derivatives from central differences of the gradient, shape (d, d)."""
    raw = differences(lambda at: objective(at)[1], x, steps)
    return np.asarray((raw + raw.T) / 2.0)


class _Scaled:
    """The objective in units of rough standard errors, counting its calls."""

    def __init__(self, objective: Objective, scales: Array) -> None:
        self.objective, self.scales, self.calls = objective, scales, 0

    def __call__(self, z: Array) -> tuple[float, Array]:
        self.calls += 1
        # Line searches may visit extreme points; their infinite values are refused there.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self.objective(z * self.scales)
        return value, gradient * self.scales

    def metric(self, z: Array) -> Array:
        """Return the objective's own approximate second derivatives at z."""
        assert isinstance(self.objective, Curved)
        return self.objective.metric(z * self.scales) * np.outer(self.scales, self.scales)

    def curvature(self, z: Array) -> tuple[Array, Array]:
        """Second derivatives at z, after shrinking units that proved too rough: (z in the new units, hessian)."""
        for _ in range(6):
            found = hessian(self, z, np.full(len(z), STEP))
            stretch = np.sqrt(np.maximum(np.diag(found) / 2.0, 1.0))
            if not np.isfinite(found).all() or stretch.max(initial=1.0) < 10.0:
                break
            self.scales, z = self.scales / stretch, z * stretch
        return z, found


def _descend(f: _Scaled, z: Array) -> Array:
    if isinstance(f.objective, Curved):
        return _descend_metric(f, z)
    found = optimize.minimize(
        f,
        z,
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": 2000, "ftol": 1e-12, "gtol": 1e-5},
    )
    return np.asarray(found.x)


def _descend_metric(f: _Scaled, z: Array) -> Array:
    """Quasi-Newton steps that begin from the objective's own metric at each point (Nocedal and Wright 2006, 7.2)."""
    value, gradient = f(z)
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


def _polish(f: _Scaled, z: Array) -> tuple[Array, float, Array, Array, float, float]:
    """Newton steps until the decrement is rounding error: (z, value, gradient, hessian, decrement, lowest)."""
    for attempt in range(12):
        z, curvature = f.curvature(z)
        value, gradient = f(z)
        if not np.isfinite(curvature).all():
            return z, value, gradient, curvature, np.inf, -np.inf
        lambdas, vectors = np.linalg.eigh(curvature)
        top = max(float(lambdas[-1]), 1e-300)
        along = vectors.T @ gradient
        steep = lambdas > FLAT * top
        decrement = float(np.sum(along[steep] ** 2 / lambdas[steep]))
        lowest = float(lambdas[0] / top)
        saddle = lowest < -1e-4
        if (decrement < 1e-10 and not saddle) or attempt == 11:
            return z, value, gradient, curvature, decrement, lowest
        if saddle:
            # The gradient may vanish at a saddle: leave along the negative curvature.
            out = vectors[:, 0] * (-1.0 if along[0] > 0 else 1.0)
            z_new = min((z + size * out for size in (0.1, 0.5, 2.0)), key=lambda at: f(at)[0])
            z_new = _descend(f, z_new)
        else:
            step = -vectors[:, steep] @ (along[steep] / lambdas[steep])
            z_new = z + step
        value_new = f(z_new)[0]
        halvings = 0
        while not value_new <= value + 1e-11 * (abs(value) + 1.0) and halvings < 20:
            z_new = (z + z_new) / 2.0
            value_new = f(z_new)[0]
            halvings += 1
        if halvings == 20:
            return z, value, gradient, curvature, decrement, lowest
        z = z_new
    raise AssertionError("unreachable")


def minimise(
    objective: Objective,
    start: Array,
    scales: Array,
    diagonal: NDArray[np.bool_],
    standardise: Callable[[Array], Array],
) -> Optimum:
    """Find the minimum of a deviance that is even in the signs of theta's columns.

    Parameters
    ----------
    objective : callable
        x -> (deviance, gradient).
    start : ndarray, shape (d,)
        First guess.
    scales : ndarray, shape (d,)
        Rough standard errors.
    diagonal : ndarray of bool, shape (d,)
        Entries of theta that lie on a template's diagonal.
    standardise : callable
        Chooses among equivalent signs.
    """
    f = _Scaled(objective, scales)
    if isinstance(objective, Curved):
        start = objective.nearer(start)
    best = _polish(f, standardise(_descend(f, start / f.scales) * f.scales) / f.scales)
    z, value, gradient, curvature, decrement, lowest = best
    scales = f.scales
    near_zero = diagonal & (np.abs(z * scales) < 1e-3)
    if near_zero.any():
        again = z * scales
        again[near_zero] = 0.1
        other = _polish(f, standardise(_descend(f, again / f.scales) * f.scales) / f.scales)
        if other[1] < value - 1e-9:
            z, value, gradient, curvature, decrement, lowest = other
            scales = f.scales
    x = standardise(z * scales)
    flipped = np.where(np.sign(x) * np.sign(z) < 0, -1.0, 1.0)
    return Optimum(
        x,
        value,
        flipped * gradient / scales,
        np.outer(flipped, flipped) * curvature / np.outer(scales, scales),
        decrement,
        lowest,
        f.calls,
    )
