"""Profile-likelihood and parametric bootstrap intervals.

With D(v) the smallest deviance given that the parameter is v, zeta(v) = sign(v - estimate) sqrt(D(v) - D) is nearly
linear in v (Bates et al. 2015, section 5.1), and the ends of a 95 % interval lie at zeta = -1.96 and 1.96. lme4
interpolates a spline; here the ends are found to 1e-4 by the secant method. Linear models are profiled by maximum likelihood.

A standard deviation or a correlation is pinned by writing its term's relative covariance as L L' in the user's columns,
those concerned first: then L_11 is the standard deviation, and (rho, sqrt(1 - rho^2)) the direction of the second row. A
fixed effect is pinned by moving its column into the offset. In linear models sigma is profiled out, except where it is
pinned itself or follows from a pinned standard deviation, sigma = v / L_11.

The bootstrap refits the model to responses drawn from it, with new random effects for every data set: lme4's ``bootMer`` with
``use.u = FALSE``. Refits that fail are counted and reported, never replaced. A refit depends on the fit, the seed and its own
number alone, so neither the number of processes nor an interruption changes anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from analysis.arrays import Array
from analysis.mixed.deviance import LinearDeviance
from analysis.mixed.fitting import fit_model
from analysis.mixed.inference import check_level
from analysis.mixed.matrices import Covariance
from analysis.mixed.objective import make_objective
from analysis.mixed.optimise import hessian
from analysis.mixed.prediction import simulate
from analysis.mixed.result import Fit
from analysis.processes import run_tasks
from stimuli.errors import UserError, unknown_name
from stimuli.files import replacing


@dataclass(frozen=True)
class ReportedParameter:
    """One parameter on the scale on which it is reported."""

    name: str  # lme4's: ``sd_Days|Subject``, ``cor_Days.(Intercept)|Subject``, ``sigma``, or a fixed effect's
    kind: str  # what it is; ``dispersion`` is theta of the negative binomial, ``shape`` of times
    estimate: float  # a correlation with a vanished standard deviation is nan
    at: int = 0  # random term, or column of X
    row: int = 0  # row >= column: within the random term
    column: int = 0


def parameters_of(fit: Fit) -> list[ReportedParameter]:
    """List a model's parameters in the order of lme4's ``confint``."""
    parameters = []
    matrices, family = fit.model.matrices, fit.model.family
    for index, (term, part) in enumerate(zip(matrices.covariance.terms, fit.variance, strict=True)):
        group = matrices.groupings[term.factor].name
        for column, name in enumerate(term.names):
            parameters.append(
                ReportedParameter(f"sd_{name}|{group}", "sd", float(part.sd[column]), index, column, column)
            )
            for row in range(column + 1, term.width):
                label, estimate = f"cor_{term.names[row]}.{name}|{group}", float(part.corr[row, column])
                parameters.append(ReportedParameter(label, "cor", estimate, index, row, column))
    if family.has_scale or family.dispersion == "phi":
        parameters.append(ReportedParameter("sigma", "sigma", fit.sigma))
    elif fit.dispersion is not None and family.dispersion is not None:
        parameters.append(ReportedParameter(family.dispersion, "dispersion", fit.dispersion))
    fixed = [
        ReportedParameter(name, "fixed", value, index)
        for index, (name, value) in enumerate(
            zip(matrices.names, fit.fixed["estimate"].tolist(), strict=True)
        )
    ]
    for kind, table in (("shape", fit.distribution), ("threshold", fit.thresholds)):
        if table is not None:
            parameters += [
                ReportedParameter(name, kind, value) for name, value in table[["term", "estimate"]].to_numpy()
            ]
    return parameters + (fixed if fit.thresholds is None else fixed[1:])


def _estimates(fit: Fit) -> list[float]:
    return [parameter.estimate for parameter in parameters_of(fit)]


Objective = Callable[[Array], tuple[float, Array]]

SMALLEST = 1e-3
"""Relative standard deviation that stands in for none where its logarithm is a parameter."""


class PinnedCovariance(Covariance):
    """All random terms of a model; the parameters are those of the other terms, then of one of which a quantity is held."""

    def __init__(self, base: Covariance, parameter: ReportedParameter, value: float, follows: bool) -> None:
        super().__init__(base.terms, base.widths)
        self.parameter, self.value, self.follows = parameter, value, follows
        self.term = base.terms[parameter.at]
        first = [parameter.row] if parameter.kind == "sd" else [parameter.column, parameter.row]
        self.order = [*first, *(i for i in range(self.term.width) if i not in first)]
        self.back = np.linalg.inv(self.term.transform)
        # In these units every column of the term has root mean square one.
        self.unit = 1.0 / np.sqrt(np.sum(self.back**2, axis=0))[self.order]
        in_term = np.zeros(base.size, dtype=bool)
        in_term[self.term.theta] = True
        self.others = np.flatnonzero(~in_term)
        rows, columns = np.tril_indices(self.term.width)
        open_rows = rows >= len(first)
        self.rest = (rows[open_rows], columns[open_rows])
        self.logs = 2 if parameter.kind == "cor" else int(follows)
        self.whole = base.size
        self.size = len(self.others) + self.logs + len(self.rest[0])

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

    def lambdas(self, theta: Array) -> list[Array]:
        """Per grouping factor the (k, k) relative covariance factor; that of the pinned term is not triangular."""
        full_theta = np.zeros(self.whole)
        full_theta[self.others] = theta[: len(self.others)]
        mats = super().lambdas(full_theta)
        raw = np.empty((self.term.width, self.term.width))
        self._last = self._lower(theta)
        raw[self.order] = self.unit[:, None] * self._last
        part = self.term.columns
        mats[self.term.factor][part, part] = self.back @ raw
        return mats

    def gradient(self, slopes: Sequence[Array]) -> Array:
        """Collect derivatives with respect to Lambda's entries into those of the free parameters."""
        theta, part = super().gradient(slopes), self.term.columns
        by_lower = self.unit[:, None] * (self.back.T @ slopes[self.term.factor][part, part])[self.order]
        by_log = [float(by_lower[r] @ self._last[r]) for r in range(self.logs)]
        return np.concatenate([theta[self.others], by_log, by_lower[self.rest]])

    def start(self) -> Array:
        """Return a neutral point; profiles begin at the estimate."""
        return np.zeros(self.size)

    def scales(self) -> Array:
        """Rough size of one standard error of each parameter."""
        term_scales = np.full(self.size - len(self.others), 1.0 / np.sqrt(2.0 * self.term.n_levels))
        return np.concatenate([self._scales[self.others], term_scales])


def pinned(
    fit: Fit, parameter: ReportedParameter, value: float, before: Array | None
) -> tuple[Objective, Array]:
    """Make the deviance with a parameter held, and where to begin: the parameters found ``before``, or the estimate's."""
    model, kind, column = fit.model, parameter.kind, parameter.at
    frame, matrices, theta = model.frame, model.matrices, fit.theta
    beta = fit.fixed["estimate"].to_numpy(dtype=float)
    # In a linear model with this held, sigma follows from another parameter.
    follows = model.family.has_scale and kind == "sd" and value > 0.0
    if kind == "fixed":
        frame = replace(frame, offset=frame.offset + value * matrices.x[:, column])
        matrices = replace(matrices, x=np.delete(matrices.x, column, axis=1))
        beta = np.delete(beta, column)
    elif kind in {"sd", "cor"}:
        covariance = PinnedCovariance(matrices.covariance, parameter, value, follows)
        matrices, theta = replace(matrices, covariance=covariance), covariance.at_estimate(theta)
    if model.family.has_scale:
        base = LinearDeviance(frame, matrices, False)
        start = theta if before is None or len(before) != len(theta) else before
        return _given_sigma(base, value) if follows or kind == "sigma" else base, start
    objective = make_objective(frame, matrices, model.family, model.link, model.criterion)
    middle = fit.end[len(fit.theta) :][: objective.n_dispersion]
    start = np.concatenate([theta, middle, np.linalg.solve(objective.back, beta) if len(beta) else beta])
    if kind not in {"sigma", "dispersion"}:
        return objective, start if before is None else before
    k, log_dispersion = len(theta), np.log(value**2 if kind == "sigma" else value)

    def without_dispersion(x: Array) -> tuple[float, Array]:
        deviance, gradient = objective(np.insert(x, k, log_dispersion))
        return deviance, np.delete(gradient, k)

    return without_dispersion, np.delete(start, k) if before is None else before


def _given_sigma(base: LinearDeviance, value: float) -> Objective:
    """Turn off the profiling of sigma: d = log|H| + n log(2 pi sigma^2) + r^2 / sigma^2 - sum log w."""
    covariance = base.covariance
    n = base.n
    log_weights = base.constant - n * (1.0 + np.log(2.0 * np.pi / n)) - 2.0 * n * np.log(base.scale)

    def deviance(x: Array) -> tuple[float, Array]:
        sigma, position = value, 0
        if isinstance(covariance, PinnedCovariance):
            position = len(covariance.others)
            sigma = value / (covariance.unit[0] * float(np.exp(x[position])))
        point = base.at(x)
        share = (base.scale / sigma) ** 2
        total = point.logdet + n * np.log(2.0 * np.pi * sigma**2) + point.rss * share + log_weights
        gradient = point.logdet_slope + point.rss_slope * share
        if isinstance(covariance, PinnedCovariance):
            gradient = gradient.copy()
            gradient[position] += 2.0 * (point.rss * share - n)
        return float(total), gradient

    return deviance


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
    """
    check_level(level)
    if not fit.model.maximises_likelihood:
        raise UserError(
            f"a fit by {fit.method} has no likelihood to profile",
            mend="Use the parametric bootstrap (--intervals bootstrap), or fit without the penalty.",
        )
    reported = {p.name: p.estimate for p in parameters_of(fit) if p.kind not in {"threshold", "shape"}}
    for name in which or ():
        if name not in reported:
            raise unknown_name("parameter", name, reported)
    best = fit_model(replace(fit.model, reml=False)) if fit.model.reml else fit
    parameters = {p.name: p for p in parameters_of(best)}
    wanted = list(reported if which is None else which)
    goal = float(np.sqrt(stats.chi2.isf(1.0 - level, 1)))
    rows = []
    with threadpool_limits(limits=1, user_api="blas"):
        for done, name in enumerate(wanted, start=1):
            rows.append((name, reported[name], *_Profile(best, parameters[name]).interval(goal)))
            if progress is not None:
                progress(done, len(wanted))
    table = pd.DataFrame(rows, columns=["parameter", "estimate", "ci_low", "ci_high"])
    table.attrs = {"method": "profile", "level": level}
    return table


class _Profile:
    """zeta of one parameter, on a scale s on which it may take any value."""

    def __init__(self, fit: Fit, parameter: ReportedParameter) -> None:
        self.kind = parameter.kind
        self.deviance = fit.deviance
        self.pinned = partial(pinned, fit, parameter)
        self.estimate = parameter.estimate
        self.step = self._first_step(fit, parameter)
        self.parameters: Array | None = None
        self.root: Array | None = None
        # On a log scale an estimate of zero has no place.
        self.logarithmic = (
            parameter.kind in {"sd", "sigma", "dispersion"} and self.estimate > self.step * 1e-2
        )

    def _first_step(self, fit: Fit, parameter: ReportedParameter) -> float:
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
        """Return the last value on a side where the range ends; None where it has no end."""
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
        s = start + side * goal * (step if self.kind == "fixed" else min(step, 0.3 / goal))
        for _ in range(60):
            zeta = self.zeta(self._to_value(s))
            if abs(zeta - goal) < NEAR:
                return self._to_value(s)
            if zeta > goal:
                far, far_zeta = s, zeta
            else:
                near, near_zeta = s, zeta
            if np.isfinite(far_zeta):
                share = (goal - near_zeta) / (far_zeta - near_zeta)
                s = near + (far - near) * float(np.clip(share, 0.02, 0.98))
            elif np.isfinite(far):
                s = (near + far) / 2.0
            else:
                gained = max(near_zeta, goal / 3.0)
                s = start + (near - start) * min(goal / gained * 1.02, 3.0)
            if abs(s - start) > 60.0 * max(step, 1.0 if self.logarithmic else step) and not np.isfinite(far):
                return side * np.inf if self.kind == "fixed" else np.nan
            if abs(far - near) < 1e-10 * max(1.0, abs(near)):
                return self._to_value(s)
        return np.nan

    def zeta(self, value: float) -> float:
        """Root of the rise of the deviance with the parameter held, infinite where it cannot be computed."""
        objective, start = self.pinned(value, self.parameters)
        if self.root is None or len(self.root) != len(start):
            self.root = _preconditioner(objective, start)
        optimum, lowest = _minimise(objective, start, self.root)
        if not np.isfinite(lowest):
            return np.inf
        self.parameters = optimum
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

    result = optimize.minimize(
        scaled,
        np.zeros(len(start)),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 30, "maxiter": 500, "ftol": 1e-13, "gtol": 1e-4},
    )
    return start + root @ result.x, float(result.fun)


Statistic = Callable[[Fit], Sequence[float]]


@dataclass(frozen=True)
class Refit:
    """Result of one drawn data set."""

    number: int  # which draw, from 0
    values: tuple[float, ...] | None  # the statistic; None where the model could not be fitted
    converged: bool = False  # converged, singular: as the fit reports them
    singular: bool = False


@dataclass(frozen=True, eq=False)
class RefitPlan:
    """Everything that refits depend on."""

    fit: Fit  # the model that responses are drawn from and that is fitted to them
    statistic: Statistic  # fit -> numbers
    seed: int | str  # of the draws

    def refit(self, number: int) -> Refit:
        """Draw one data set and fit the model to it."""
        y = simulate(self.fit, seed=f"{self.seed} bootstrap {number}")[:, 0]
        model = self.fit.model
        try:
            refit = fit_model(replace(model, frame=replace(model.frame, y=y)))
            values = tuple(float(v) for v in self.statistic(refit))
        except (UserError, np.linalg.LinAlgError, ArithmeticError):
            return Refit(number, None)
        return Refit(number, values, refit.converged, refit.singular)

    def mark(self) -> str:
        """Hash of data, model, seed and statistic: what a file of refits belongs to."""
        model, digest = self.fit.model, hashlib.sha256()
        name = getattr(self.statistic, "__qualname__", type(self.statistic).__qualname__)
        name = "Estimates" if self.statistic is _estimates else name
        words = [model.formula.text, self.fit.family, self.fit.link, self.fit.method, str(model.criterion)]
        digest.update(json.dumps([*words, str(self.seed), name]).encode())
        frame, effects = model.frame, model.matrices.effects
        rows = frame.y, frame.weights, frame.offset, model.matrices.x
        for numbers in (*rows, *(e.codes for e in effects), *(e.columns for e in effects)):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()


def _kept_refits(file: Path, plan: RefitPlan) -> dict[int, Refit]:
    """Read the refits in a file, one JSON line each after a line that identifies the model and data; create it if it is missing."""
    header = {"refits of": plan.mark(), "seed": str(plan.seed), "formula": plan.fit.formula}
    try:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        records = [record for record in map(_read_line, lines) if record is not None]
        if lines and (not records or records[0] != header):
            raise UserError(
                f"{file} does not hold refits of this model, these data and this seed",
                mend="Name another file, or delete this one.",
            )
        for record in records[1:]:
            if record["values"] is not None:
                record["values"] = tuple(np.nan if v is None else float(v) for v in record["values"])
        refits = {record["number"]: Refit(**record) for record in records[1:]}
        # A line cut short by an interruption goes; all else is written again.
        with replacing(file) as part:
            part.write_text(json.dumps(header) + "\n" + "".join(map(_line, refits.values())), "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file} cannot hold refits: {error}", mend="Name a file that can be written."
        ) from error
    return refits


def _line(refit: Refit) -> str:
    line = asdict(refit)
    if refit.values is not None:
        line["values"] = [None if np.isnan(v) else v for v in refit.values]
    return json.dumps(line) + "\n"


def _read_line(line: str) -> dict[str, Any] | None:
    """Return the content of a line; None for one that an interruption cut short."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


KINDS = ("percentile", "basic", "normal")
FEWEST = 20
"""Refits without which no interval is given."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates from data sets drawn from a fitted model."""

    names: tuple[str, ...]  # what was estimated
    estimate: Array  # (q,): from the data
    replicates: Array  # (r, q): from the data sets drawn, failed refits left out
    failed: int  # refits that could not be done
    unconverged: int  # refits among the replicates that did not converge, or were singular
    singular: int
    seed: int | str  # of the draws

    @property
    def se(self) -> Array:
        """Standard deviation over the replicates, shape (q,)."""
        return np.asarray(np.nanstd(self.replicates, axis=0, ddof=1))

    @property
    def bias(self) -> Array:
        """Mean of the replicates less the estimate, shape (q,)."""
        return np.asarray(np.nanmean(self.replicates, axis=0) - self.estimate)

    def intervals(self, level: float = 0.95, kind: str = "percentile") -> pd.DataFrame:
        """Compute bootstrap intervals.

        Parameters
        ----------
        level : float
            Coverage.
        kind : {'percentile', 'basic', 'normal'}
            Quantiles of the replicates; those mirrored at the estimate; or estimate less bias plus or minus z standard
            errors (Davison and Hinkley 1997, chapter 5).

        Returns
        -------
        DataFrame, shape (q, 6)
            parameter, estimate, se, bias, ci_low, ci_high.
        """
        check_level(level)
        if kind not in KINDS:
            raise unknown_name("kind of bootstrap interval", kind, KINDS)
        if len(self.replicates) < FEWEST:
            raise UserError(
                f"{len(self.replicates)} refits are too few for intervals; {FEWEST} is the least, 1000 is usual"
            )
        tail = (1.0 - level) / 2.0
        low, high = np.nanquantile(self.replicates, [tail, 1.0 - tail], axis=0)
        if kind == "basic":
            low, high = 2.0 * self.estimate - high, 2.0 * self.estimate - low
        elif kind == "normal":
            middle, half = self.estimate - self.bias, stats.norm.isf(tail) * self.se
            low, high = middle - half, middle + half
        table = pd.DataFrame(
            {
                "parameter": list(self.names),
                "estimate": self.estimate,
                "se": self.se,
                "bias": self.bias,
                "ci_low": low,
                "ci_high": high,
            }
        )
        table.attrs = {"method": f"bootstrap, {kind}", "level": level, "replicates": len(self.replicates)}
        return table

    def sentence(self) -> str:
        """Report the number of refits, and how many failed, did not converge or were singular."""
        counted = f"{len(self.replicates)} refits to responses drawn from the model (seed {self.seed})"
        outcomes = {"failed and are left out": self.failed, "did not converge": self.unconverged}
        outcomes["were singular"] = self.singular
        return "; ".join([counted, *(f"{count} {outcome}" for outcome, count in outcomes.items() if count)])


def bootstrap(
    fit: Fit,
    replicates: int = 1000,
    *,
    seed: int | str = 0,
    statistic: Statistic | None = None,
    names: Sequence[str] | None = None,
    processes: int = 1,
    keep: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Bootstrap a fitted model parametrically.

    Parameters
    ----------
    replicates : int
        Data sets to draw.
    seed : int or str
        A different seed gives different draws. Replicate k does not depend on the number of replicates or processes.
    statistic : callable, optional
        Fit -> numbers; default all parameters as ``profile_intervals`` names them.
    names : sequence of str, optional
        Names of the statistic's numbers.
    processes : int
        Refits that run at once, each in its own interpreter with one thread. A script that asks for several must have its
        work under ``if __name__ == "__main__":``.
    keep : str or Path, optional
        A file that stores refits as they are made: after an interruption, the same call resumes, and a call for more
        replicates adds to them.
    progress : callable, optional
        Told (refits done, refits in all).
    """
    if replicates < 1:
        raise UserError(
            f"replicates is {replicates}; at least one data set must be drawn", mend="1000 are usual."
        )
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one must work", mend="Give 1 or more.")
    if statistic is None:
        names, statistic = [p.name for p in parameters_of(fit)], _estimates
    estimate = np.array(statistic(fit), dtype=float)
    if names is not None and len(names) != len(estimate):
        raise UserError(
            f"{len(names)} names are given; the statistic has {len(estimate)} numbers", mend="Name each once."
        )
    plan, file = RefitPlan(fit, statistic, seed), None if keep is None else Path(keep)
    done = {} if file is None else _kept_refits(file, plan)
    missing = [number for number in range(replicates) if number not in done]
    n_done = replicates - len(missing)
    if progress is not None and n_done:
        progress(n_done, replicates)
    for count, refit in enumerate(run_tasks(RefitPlan.refit, plan, missing, processes), start=n_done + 1):
        done[refit.number] = refit
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(_line(refit))
        if progress is not None:
            progress(count, replicates)
    refits = [done[number] for number in range(replicates)]
    fitted = [r for r in refits if r.values is not None]
    if not fitted:
        raise UserError(
            f"none of {replicates} refits could be done",
            mend="Look at the warnings of the fit; a simpler model may have an answer.",
            exit_code=1,
        )
    labels = tuple(names) if names is not None else tuple(f"t{i + 1}" for i in range(len(estimate)))
    return Bootstrap(
        labels,
        estimate,
        np.array([r.values for r in fitted]),
        len(refits) - len(fitted),
        sum(not r.converged for r in fitted),
        sum(r.singular for r in fitted),
        seed,
    )
