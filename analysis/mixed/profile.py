"""Likelihood profiles: the interval of a parameter is where the deviance, minimised over all others, stays low.

With D(v) the smallest deviance given that the parameter is v, zeta(v) = sign(v - estimate) sqrt(D(v) - D) is nearly
linear in v (Bates et al. 2015, section 5.1), and the ends of a 95 % interval lie at zeta = -1.96 and 1.96. lme4
interpolates a spline; here the ends are found to 1e-4 by the secant method. As there, linear models are profiled by
maximum likelihood whatever they were fitted by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from stimuli.errors import UserError, unknown_name

from .fitting import fit_model
from .inference import check_level
from .optimise import hessian
from .parameters import Parameter, estimate_of, parameters_of
from .pinned import Objective, Pinned
from .result import Fit

Array = NDArray[np.float64]

NEAR = 1e-4
"""Distance of zeta from its goal at which an end counts as found."""
FLAT = 1e-3
"""Least curvature, in squared standard errors, that a direction is taken to have."""
LOWER = 1e-3
"""Drop of the deviance below the fit's that is no rounding error."""


def profile_intervals(
    fit: Fit,
    which: Sequence[str] | None = None,
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Compute profile-likelihood intervals, as lme4's ``confint(method = "profile")``.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    which : sequence of str, optional
        Names of parameters as in the table; default all.
    level : float
        Coverage.
    progress : callable, optional
        Told (parameters done, parameters in all).

    Returns
    -------
    DataFrame, shape (parameters, 4)
        parameter, estimate (of the fit given), ci_low, ci_high. A standard deviation's interval that reaches zero begins
        there; a correlation's ends at -1 or 1 where the data cannot tell. Thresholds of an ordinal model, and sigma, ndt and
        beta of times, have no row.

    Raises
    ------
    UserError
        For a name that is no parameter, or a fit that did not maximise a likelihood.
    """
    check_level(level)
    if not fit.model.maximises_likelihood:
        raise UserError(
            f"a fit by {fit.method} has no likelihood to profile",
            mend="Use the parametric bootstrap (--intervals bootstrap), or fit without the penalty.",
        )
    parameters = [p for p in parameters_of(fit) if p.kind not in {"threshold", "shape"}]
    if which is not None:
        known = {p.name: p for p in parameters}
        for name in which:
            if name not in known:
                raise unknown_name("parameter", name, known)
        parameters = [known[name] for name in which]
    best = fit_model(replace(fit.model, reml=False)) if fit.model.reml else fit
    goal = float(np.sqrt(stats.chi2.isf(1.0 - level, 1)))
    rows = []
    with threadpool_limits(limits=1, user_api="blas"):
        for done, parameter in enumerate(parameters):
            low, high = _Profile(best, parameter).interval(goal)
            rows.append((parameter.name, estimate_of(fit, parameter), low, high))
            if progress is not None:
                progress(done + 1, len(parameters))
    table = pd.DataFrame(rows, columns=["parameter", "estimate", "ci_low", "ci_high"])
    table.attrs = {"method": "profile", "level": level}
    return table


class _Profile:
    """zeta of one parameter, on a scale s on which it may take any value."""

    def __init__(self, fit: Fit, parameter: Parameter) -> None:
        self.kind = parameter.kind
        self.deviance = fit.deviance
        self.pinned = Pinned(fit, parameter)
        self.estimate = estimate_of(fit, parameter)
        self.step = self._first_step(fit, parameter)
        self.parameters: Array | None = None
        self.root: Array | None = None
        # On a log scale an estimate of zero has no place.
        self.logarithmic = (
            parameter.kind in {"sd", "sigma", "dispersion"} and self.estimate > self.step * 1e-2
        )

    def _first_step(self, fit: Fit, parameter: Parameter) -> float:
        match parameter.kind:
            case "fixed":
                se = float(fit.fixed["se"].iloc[parameter.at])
                return se if np.isfinite(se) and se > 0 else 1.0
            case "cor":
                return 0.2
            case "sd":
                term = fit.model.matrices.covariance.terms[parameter.at]
                unit = 1.0 / np.linalg.norm(np.linalg.inv(term.transform)[:, parameter.row])
                linear = fit.model.family.has_scale
                return float(unit / np.sqrt(term.n_levels)) * (fit.sigma if linear else 1.0)
        return float(self.estimate / np.sqrt(fit.nobs))

    def _to_value(self, s: float) -> float:
        if self.kind == "cor":
            return float(np.tanh(s))
        return float(np.exp(s)) if self.logarithmic else s

    def _from_value(self, value: float) -> float:
        if self.kind == "cor":
            return float(np.arctanh(np.clip(value, -0.9999, 0.9999)))
        return float(np.log(value)) if self.logarithmic else value

    def interval(self, goal: float) -> tuple[float, float]:
        """Both ends, where zeta is -goal and goal."""
        if np.isnan(self.estimate):
            return (-1.0, 1.0) if self.kind == "cor" else (np.nan, np.nan)
        return self._end(-1.0, goal), self._end(1.0, goal)

    def _edge(self, side: float) -> float | None:
        """Return the last value on a side, where the range ends; None where it goes on."""
        if self.kind == "cor":
            return side
        return 0.0 if self.kind == "sd" and side < 0 else None

    def _end(self, side: float, goal: float) -> float:
        self.parameters = None
        edge = self._edge(side)
        if edge is not None and (self.estimate == edge or self.zeta(edge) < goal):
            return edge
        self.parameters = None
        start = self._from_value(self.estimate)
        step = self.step / self.estimate if self.logarithmic else self.step
        near, near_zeta = start, 0.0
        far, far_zeta = np.inf, np.inf
        at = start + side * goal * (step if self.kind == "fixed" else min(step, 0.3 / goal))
        for _ in range(60):
            found = self.zeta(self._to_value(at))
            if abs(found - goal) < NEAR:
                return self._to_value(at)
            if found > goal:
                far, far_zeta = at, found
            else:
                near, near_zeta = at, found
            if np.isfinite(far_zeta):
                share = (goal - near_zeta) / (far_zeta - near_zeta)
                at = near + (far - near) * float(np.clip(share, 0.02, 0.98))
            elif np.isfinite(far):
                at = (near + far) / 2.0
            else:
                gained = max(near_zeta, goal / 3.0)
                at = start + (near - start) * min(goal / gained * 1.02, 3.0)
            if abs(at - start) > 60.0 * max(step, 1.0 if self.logarithmic else step) and not np.isfinite(far):
                return side * np.inf if self.kind == "fixed" else np.nan
            if abs(far - near) < 1e-10 * max(1.0, abs(near)):
                return self._to_value(at)
        return np.nan

    def zeta(self, value: float) -> float:
        """Root of the rise of the deviance with the parameter held, infinite where it cannot be computed."""
        objective, start = self.pinned.at(value, self.parameters)
        if self.root is None or len(self.root) != len(start):
            self.root = _preconditioner(objective, start)
        found, lowest = _minimise(objective, start, self.root)
        if not np.isfinite(lowest):
            return np.inf
        self.parameters = found
        if lowest < self.deviance - LOWER:
            raise UserError(
                f"the profile found a deviance {self.deviance - lowest:.3g} below the fit's, so the fit is no optimum",
                mend="Fit a simpler model, or use the parametric bootstrap.",
                exit_code=1,
            )
        return float(np.sqrt(max(lowest - self.deviance, 0.0)))


def _preconditioner(objective: Objective, start: Array) -> Array:
    """Find A with A A' the inverse of the curvature at the start, shape (d, d)."""
    if not len(start):
        return np.zeros((0, 0))
    curvature = hessian(objective, start, np.full(len(start), 1e-4))
    if not np.isfinite(curvature).all():
        return np.eye(len(start))
    size = np.sqrt(np.maximum(np.abs(np.diag(curvature)), FLAT))
    values, vectors = np.linalg.eigh(curvature / np.outer(size, size))
    return np.asarray(vectors / np.sqrt(np.maximum(np.abs(values), FLAT)) / size[:, None])


def _minimise(objective: Objective, start: Array, root: Array) -> tuple[Array, float]:
    if not len(start):
        return start, objective(start)[0]

    def scaled(z: Array) -> tuple[float, Array]:
        # Line searches may visit points where nothing can be computed; they are refused there.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                value, gradient = objective(start + root @ z)
            except (np.linalg.LinAlgError, UserError, ValueError):
                return np.inf, np.zeros_like(z)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(z)
        return value, root.T @ gradient

    found = optimize.minimize(
        scaled,
        np.zeros(len(start)),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": 500, "ftol": 1e-13, "gtol": 1e-4},
    )
    return start + root @ found.x, float(found.fun)
