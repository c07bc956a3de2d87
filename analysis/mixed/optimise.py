"""Minimise a smooth deviance with an exact gradient, and judge what was found.

Quasi-Newton steps come near; their starting metric is the model's average information (``LinearDeviance.metric``), with which
six to ten evaluations do where the identity needs thirty. Newton steps finish, with a Hessian
from differences of the gradient: central ones if the Hessian becomes a covariance, one-sided ones if it only judges the
point or the data are many. Theta can change sign, because a bound at zero would hold the search at a saddle. Convergence is
a statement about the point (small Newton decrement, no direction of negative curvature), not about the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from analysis.arrays import Array, Mask


class Objective(Protocol):
    """A deviance that knows about how curved it is."""

    def __call__(self, x: Array, /) -> tuple[float, Array]:
        """Value and gradient, shape (d,)."""

    def metric(self, x: Array) -> Array:
        """Approximate second derivatives, positive semidefinite, shape (d, d)."""

    def nearer(self, x: Array) -> Array:
        """Guess from a first guess, shape (d,)."""

    def scales(self) -> Array:
        """Rough size of one standard error of each parameter, shape (d,)."""

    def diagonal(self) -> Mask:
        """Mask of the parameters on the diagonal of a template of theta, shape (d,)."""

    def standardise(self, x: Array) -> Array:
        """Choose among the signs of theta's columns, which are all the same model."""


ARRIVED = 1e-11
"""Expected fall of the deviance at which quasi-Newton steps end."""
REACH = 0.5
"""Share of itself by which a quasi-Newton step changes a parameter, about, at most."""
ROUNDING = 1e-15
"""Share of itself by which a number changes in other units and back."""
LEAST = 1e-3
"""Curvature that a metric is given at least, in units where that of a well-determined parameter is near two."""


class Scaled:
    """The objective in units of rough standard errors, counting its calls."""

    def __init__(self, objective: Objective, scales: Array) -> None:
        self.objective, self.scales, self.calls = objective, scales, 0
        self._known: tuple[tuple[Array, float, Array], ...] = ()
        self._keeps = False

    def __call__(self, z: Array) -> tuple[float, Array]:
        """Value and gradient at z."""
        x = z * self.scales
        for evaluated, value, gradient in self._known:
            if (np.abs(evaluated - x) <= ROUNDING * np.abs(x)).all():
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
        """From here on do not ask twice for the latest and for the lowest point."""
        # Where the conditional mode is not unique a deviance depends on where its search began: one that was met on the way
        # down may not be there for those who come back. So this is for deviances without modes, and for many rows.
        self._keeps = True

    def metric(self, z: Array) -> Array:
        """Return the objective's own approximate second derivatives at z."""
        return self.objective.metric(z * self.scales) * np.outer(self.scales, self.scales)


def descend(f: Scaled, z: Array) -> Array:
    """Go down from z (d,) by quasi-Newton steps that begin from the objective's own metric (Nocedal and Wright 2006, 7.2)."""
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
    """Apply the inverse of the metric, corrected by the curvature that earlier steps found."""
    q = gradient.copy()
    weights = []
    for move, turn in reversed(pairs):
        weights.append(float(move @ q) / float(move @ turn))
        q -= weights[-1] * turn
    r = np.asarray(axes @ ((axes.T @ q) / sizes))
    for (move, turn), weight in zip(pairs, reversed(weights), strict=True):
        r += move * (weight - float(turn @ r) / float(move @ turn))
    return r


STEP = 1e-3
"""Step of the differences, in rough standard errors."""
DECREMENT = 1e-6
"""Largest Newton decrement, in deviance units, of a converged fit."""
SETTLED = 1e-10
"""Newton decrement at which Newton steps end."""
NEAR = 1e-6
"""Newton decrement below which a step keeps the Hessian: a distance of a thousandth of a standard error."""
SADDLE = -1e-4
"""Share of the largest eigenvalue below which a negative one is no rounding error."""
FLAT = 1e-7
"""Eigenvalues below this share of the largest count as zero."""


@dataclass(frozen=True)
class Optimum:
    """A minimum and its neighbourhood."""

    x: Array  # (d,): where
    value: float  # the deviance there
    gradient: Array  # (d,): its gradient
    hessian: Array  # (d, d): its second derivatives
    decrement: float  # estimated distance of ``value`` from the minimum, times two
    lowest: float  # smallest eigenvalue of the scaled Hessian over the largest
    evaluations: int  # how often the deviance was computed
    is_sketch: bool = False  # whether the second derivatives are the objective's own approximation

    @property
    def converged(self) -> bool:
        """Whether this is a minimum as far as second derivatives tell."""
        return bool(np.isfinite(self.value) and self.decrement < DECREMENT and self.lowest > SADDLE)


def differences(function: Callable[[Array], Array], x: Array, steps: Array, is_rough: bool = False) -> Array:
    """Differentiate by central differences, or to one side at half the cost: first axis is the argument that moved."""
    moves = np.diag(steps)
    if is_rough:
        base_value = function(x)
        return np.array(
            [(function(x + move) - base_value) / step for move, step in zip(moves, steps, strict=True)]
        )
    return np.array(
        [
            (function(x + move) - function(x - move)) / (2.0 * step)
            for move, step in zip(moves, steps, strict=True)
        ]
    )


def hessian(
    objective: Callable[[Array], tuple[float, Array]], x: Array, steps: Array, is_rough: bool = False
) -> Array:
    """Second derivatives from differences of the gradient, shape (d, d)."""
    raw = differences(lambda point: objective(point)[1], x, steps, is_rough)
    return np.asarray((raw + raw.T) / 2.0)


def _curvature(f: Scaled, z: Array, is_rough: bool) -> tuple[Array, Array]:
    """Second derivatives at z, after shrinking units that proved too rough: (z in the new units, hessian)."""
    for _ in range(6):
        curvature = hessian(f, z, np.full(len(z), STEP), is_rough)
        stretch = np.sqrt(np.maximum(np.diag(curvature) / 2.0, 1.0))
        if not np.isfinite(curvature).all() or stretch.max(initial=1.0) < 10.0:
            break
        f.scales, z = f.scales / stretch, z * stretch
    return z, curvature


class _Candidate:
    """A point in the units of f, judged by its gradient and a Hessian, with the Newton step and the direction of least curvature."""

    def __init__(self, f: Scaled, z: Array, curvature: Array) -> None:
        self.z, self.scales, self.curvature = z, f.scales, curvature
        self.value, self.gradient = f(z)
        self.decrement, self.lowest = np.inf, -np.inf
        if np.isfinite(curvature).all():
            sizes, axes = np.linalg.eigh(curvature)
            top = max(float(sizes[-1]), 1e-300)
            projections = axes.T @ self.gradient
            steep = sizes > FLAT * top
            self.decrement = float(np.sum(projections[steep] ** 2 / sizes[steep]))
            self.lowest = float(sizes[0] / top)
            self.step = -axes[:, steep] @ (projections[steep] / sizes[steep])
            self.out = axes[:, 0] * (-1.0 if projections[0] > 0 else 1.0)


def _polish(f: Scaled, z: Array, is_rough: bool) -> _Candidate:
    """Newton steps until the decrement is rounding error."""
    if is_rough:
        f.keep()
    z, curvature = _curvature(f, z, is_rough)
    best = _Candidate(f, z, curvature)
    for _ in range(12):
        saddle = best.lowest < SADDLE
        if not np.isfinite(best.decrement) or (best.decrement < SETTLED and not saddle):
            return best
        if saddle:
            # The gradient may vanish at a saddle: leave along the negative curvature.
            z_new = min((best.z + size * best.out for size in (0.1, 0.5, 2.0)), key=lambda point: f(point)[0])
            z_new = descend(f, z_new)
        else:
            z_new = best.z + best.step
        halvings = 0
        while not f(z_new)[0] <= best.value + 1e-11 * (abs(best.value) + 1.0):
            z_new, halvings = (best.z + z_new) / 2.0, halvings + 1
            if halvings == 20:
                return best
        # A step of a thousandth of a standard error leaves second derivatives as they are.
        if saddle or best.decrement > NEAR:
            z_new, curvature = _curvature(f, z_new, is_rough)
        best = _Candidate(f, z_new, curvature)
    return best


def minimise(
    objective: Objective,
    start: Array,
    *,
    is_rough: bool = False,
    may_be_sketched: Callable[[Array], bool] = lambda x: False,
) -> Optimum:
    """Find the minimum of a deviance that is even in the signs of theta's columns; start (d,)."""
    if not len(start):
        # A linear model without random effects: beta and sigma are profiled out, and nothing is left to search.
        return Optimum(start, objective(start)[0], start, np.zeros((0, 0)), 0.0, 1.0, 1)
    f, standardise = Scaled(objective, objective.scales()), objective.standardise
    x = standardise(descend(f, objective.nearer(start) / f.scales) * f.scales)
    near_zero = objective.diagonal() & (np.abs(x) < 1e-3)
    if near_zero.any():
        # A variance at zero may be a saddle where the gradient vanishes: look once more from beyond, unless that leads back.
        beyond = np.where(near_zero, 0.1, x) / f.scales
        value, slope = f(beyond)
        if not (value > f(x / f.scales)[0] and (slope[near_zero] > 0.0).all()):
            retried = standardise(descend(f, beyond) * f.scales)
            x = min((x, retried), key=lambda point: f(point / f.scales)[0])
    if may_be_sketched(x):
        f.keep()
        sketched = _Candidate(f, x / f.scales, f.metric(x / f.scales))
        if sketched.decrement < DECREMENT:
            return _optimum(f, sketched, standardise, is_sketch=True)
    return _optimum(f, _polish(f, x / f.scales, is_rough), standardise)


def finish(objective: Objective, x: Array, *, is_rough: bool) -> Optimum:
    """Judge a minimum that ``minimise`` sketched by its second derivatives; arguments as there, x the minimum."""
    f = Scaled(objective, objective.scales())
    return _optimum(f, _polish(f, x / f.scales, is_rough), objective.standardise)


def _optimum(
    f: Scaled, best: _Candidate, standardise: Callable[[Array], Array], *, is_sketch: bool = False
) -> Optimum:
    x = standardise(best.z * best.scales)
    flipped = np.where(np.sign(x) * np.sign(best.z) < 0, -1.0, 1.0)
    return Optimum(
        x,
        best.value,
        flipped * best.gradient / best.scales,
        np.outer(flipped, flipped) * best.curvature / np.outer(best.scales, best.scales),
        best.decrement,
        best.lowest,
        f.calls,
        is_sketch,
    )
