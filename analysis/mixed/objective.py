"""The criterion that is maximised: the approximation of the integral, the role of the dispersion, and an optional penalty.

With one grouping factor the integral over the random effects falls into one of k dimensions per level. Pinheiro and Bates
(1995, section 2.4) lay the nodes z of the product rule at u + S z, u the conditional mode, S S' the inverse of H there:

    d = log|H| - 2 sum_j log sum_q w_q exp(|z_q|^2 / 2 + loglik_j(u_q) - |u_q|^2 / 2).

One node is the Laplace approximation. The gradient is exact: it follows the nodes through the mode and through S.

Where predictors tell successes from failures the likelihood has no maximum; adding the log-density of a weak prior gives one
(Gelman et al. 2008; blme's ``bglmer``). The priors are normal, on predictors put to a common scale, and half-normal on the
standard deviation that each random term gives the linear predictor; both are quadratic, so all derivatives stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import special

from analysis.arrays import Array
from analysis.mixed.deviance import LaplaceDeviance, LaplacePoint
from analysis.mixed.families import Family, Link
from analysis.mixed.matrices import Frame, Matrices
from stimuli.errors import UserError, unknown_name

MOST_NODES = 100
"""Largest number of points along one dimension; the weights of more underflow."""
MOST_CELLS = 2e9
"""Rows times nodes at most."""


class QuadratureDeviance(LaplaceDeviance):
    """Deviance with ``nagq`` nodes a dimension, as a function of (theta, log dispersion, whitened beta)."""

    def __init__(
        self, frame: Frame, matrices: Matrices, family: Family, link: Link, nagq: int, observed: bool = False
    ) -> None:
        if len(matrices.effects) > 1:
            names = ", ".join(g.name for g in matrices.groupings)
            raise UserError(
                f"nAGQ = {nagq} takes one grouping factor; this model has {len(matrices.effects)} ({names})",
                mend="Use nAGQ = 1 (Laplace), or keep one grouping factor.",
            )
        (self._effects,) = matrices.effects
        nodes = float(nagq) ** self._effects.width
        if nodes * len(frame.y) > MOST_CELLS:
            raise UserError(
                f"nAGQ = {nagq} with {self._effects.width} random effects a level takes {nodes:.0f} nodes for each of "
                f"{len(frame.y)} rows",
                mend="Use fewer points, or fewer slopes.",
            )
        super().__init__(frame, matrices, family, link, observed)
        points, weights = special.roots_hermitenorm(nagq)
        logs = np.log(weights / weights.sum())
        k = self._effects.width
        self._nodes = np.array(list(product(points, repeat=k)))
        self._log_weights = np.array([sum(w) for w in product(logs, repeat=k)])
        self._log_weights = self._log_weights + (self._nodes**2).sum(axis=1) / 2.0

    def _sums(self, values: Array) -> Array:
        """Z' v by level, shape (m, k)."""
        return self.layout.part(self.layout.transpose_times(values), 0)

    def _rows(self, lam: Array, u: Array) -> Array:
        """Z Lambda u for u of shape (m, k), shape (n,)."""
        return self.layout.times(self.layout.scale([lam], u.ravel()))

    def at(self, x: Array) -> LaplacePoint:
        """Evaluate deviance and gradient at x = (theta, log dispersion, whitened beta)."""
        layout, codes, m = self.layout, self._effects.codes, self._effects.n_levels
        theta, response, beta = self.split(x)
        (lam,) = self.covariance.lambdas(theta)
        fixed = self.offset + self.x @ beta
        conditional_mode = self.modes.find([lam], fixed, response)
        mode, eta = conditional_mode.u, conditional_mode.eta
        u = layout.part(mode, 0)
        k = u.shape[1]
        inside = response.inside(eta)
        (a,) = layout.products(inside).blocks
        lower = np.linalg.cholesky(lam.T @ a @ lam + np.eye(k))
        s = np.swapaxes(np.linalg.inv(lower), 1, 2)
        logdet = 2.0 * float(np.log(np.einsum("mkk->mk", lower)).sum())

        at_node = [u + z @ np.swapaxes(s, 1, 2) for z in self._nodes]
        logs = np.empty((m, len(self._nodes)))
        for q, u_q in enumerate(at_node):
            loglik = response.loglik(fixed + self._rows(lam, u_q))
            logs[:, q] = np.bincount(codes, loglik, m) - (u_q**2).sum(axis=1) / 2.0
        logs += self._log_weights
        levels = special.logsumexp(logs, axis=1)
        deviance = logdet - 2.0 * float(levels.sum())
        share = np.exp(logs - levels[:, None])

        by_mode, by_spread = np.zeros((m, k)), np.zeros((m, k, k))
        by_fixed, by_lambda, by_dispersion = np.zeros(self.n), np.zeros((k, k)), np.zeros(self.n_dispersion)
        for q, u_q in enumerate(at_node):
            eta_q, p = fixed + self._rows(lam, u_q), share[:, q]
            rows_share = p[codes]
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
        rows = self._effects.columns @ lam
        leverages = np.einsum("ni,nij,nj->n", rows, inverse[codes], rows)
        explicit = response.inside_slope(eta) * leverages
        pull = (self._sums(explicit) @ lam - 2.0 * by_mode).ravel()
        observed = response.observed(eta)
        adjoint = layout.factor(layout.products(observed), [lam]).solve(pull).reshape(u.shape)
        feedback = self._rows(lam, adjoint)
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


@dataclass(frozen=True)
class Penalty:
    """The standard deviations of the normal priors, on the link scale."""

    intercept: float = 10.0  # of the linear predictor where all columns have their means
    coefficient: float = 2.5  # per two standard deviations, or between two values (Gelman et al., 2008)
    spread: float = 2.5  # of each random term's standard deviation, root mean square over rows; half-normal

    def __str__(self) -> str:
        return (
            f"normal({self.coefficient:g}) on coefficients per two standard deviations, normal({self.intercept:g}) on the "
            f"intercept, half-normal({self.spread:g}) on random standard deviations"
        )

    def on_coefficients(self, matrices: Matrices) -> Array:
        """Return P with penalty beta' P beta, in deviance units, shape (p, p)."""
        x, names = matrices.x, matrices.names
        size = 2.0 * x.std(axis=0)
        for j in range(x.shape[1]):
            values = np.unique(x[:, j])
            if len(values) == 2:
                size[j] = np.ptp(values)
        if "(Intercept)" not in names:
            # Without an intercept the columns hold cell means, which lie as far from zero as an intercept may.
            size = np.where(size > 0, size, np.abs(x).max(axis=0, initial=0.0))
            return np.diag((size / self.intercept) ** 2)
        intercept = names.index("(Intercept)")
        size[intercept] = 0.0
        centre = x.mean(axis=0)
        return np.asarray(
            np.diag((size / self.coefficient) ** 2) + np.outer(centre, centre) / self.intercept**2
        )


INFORMATION = ("expected", "observed")
DISPERSION = ("ml", "glmer")
PENALTIES = {"normal": Penalty()}
"""Penalties by name."""


@dataclass(frozen=True)
class Criterion:
    """Method by which the likelihood of a generalised model is computed."""

    nagq: int = 1  # quadrature points; 1 is the Laplace approximation
    information: str = "expected"  # what the Laplace determinant holds
    dispersion: str = "ml"  # whether phi is estimated by maximum likelihood or put in as lme4 does
    penalty: Penalty | None = None  # added to the log-likelihood
    penalty_name: str | None = None  # its name

    def method(self) -> str:
        """Name the criterion as a report does; plain Laplace under lme4's name."""
        rule = "Laplace" if self.nagq == 1 else "adaptive Gauss-Hermite"
        inside = ", observed information" if self.information == "observed" and self.nagq == 1 else ""
        kind = "ML" if self.dispersion == "ml" else "glmer's criterion"
        if self.penalty is not None:
            kind = f"penalised {kind} ({self.penalty_name})"
        return f"{kind}, {rule} (nAGQ={self.nagq}{inside})"


def choose_criterion(
    family: Family,
    nagq: int = 1,
    information: str | None = None,
    dispersion: str = "ml",
    penalty: str | None = None,
    is_mixed: bool = True,
) -> Criterion:
    """Look up a criterion and refuse combinations that make no sense."""
    if isinstance(nagq, bool) or nagq != int(nagq) or not 1 <= nagq <= MOST_NODES:
        raise UserError(
            f"nAGQ = {nagq} is not available; it takes a whole number from 1 to {MOST_NODES}",
            mend="1 is the Laplace approximation, 9 or more is quadrature for one grouping factor.",
        )
    if information is not None and information not in INFORMATION:
        raise unknown_name("information", information, INFORMATION)
    if dispersion not in DISPERSION:
        raise unknown_name("dispersion", dispersion, DISPERSION)
    if penalty is not None and penalty not in PENALTIES:
        raise unknown_name("penalty", penalty, PENALTIES)
    given = {"nagq": nagq != 1, "information": information is not None, "penalty": penalty is not None}
    given["dispersion"] = is_glmer = dispersion == "glmer"
    if family.has_scale:
        for name, is_given in given.items():
            if is_given:
                raise UserError(
                    f"{name} is for generalised models; the integral of a gaussian model is exact",
                    mend="Leave it out, or choose another family.",
                )
        return Criterion()
    for name, is_given in given.items():
        if is_given and not is_mixed and name != "penalty":
            raise UserError(
                f"{name} is for models with random effects; this formula has none, and its likelihood needs no approximation",
                mend="Leave it out, or add a term such as (1 | participant).",
            )
    kind, of = family.dispersion, f"the {family.name} family"
    rules = (
        (is_glmer and kind != "phi", f"dispersion = 'glmer': {of} has no dispersion phi"),
        (
            is_glmer and family.name == "gaussian",
            "dispersion = 'glmer': for gaussian responses glmer's criterion has several minima and takes others in other units",
        ),
        (is_glmer and nagq != 1, "dispersion = 'glmer': lme4's criterion has no quadrature for it"),
        (
            is_glmer and information == "observed",
            "dispersion = 'glmer': lme4's criterion holds the expected information",
        ),
        (
            is_glmer and penalty is not None,
            "dispersion = 'glmer': lme4's criterion is not a likelihood and cannot be combined with a prior",
        ),
        (
            kind in {"thresholds", "shape"} and information == "expected",
            f"information = 'expected': {family.name} models have the observed information",
        ),
        (
            kind == "precision" and information == "expected",
            f"information = 'expected' is not available for {of}",
        ),
        (kind == "precision" and penalty is not None, f"a penalty is not available for {of}"),
        (
            kind in {"phi", "shape"} and penalty is not None,
            f"penalty {penalty!r} is for responses without units, not for {of}: times do not separate",
        ),
    )
    for is_refused, reason in rules:
        if is_refused:
            raise UserError(reason, mend="Leave it out.")
    # lme4's glmer treats phi as no likelihood does, so there the textbook's approximation stands, glmmTMB's too.
    exact = kind in {"thresholds", "shape"} or (kind in {"phi", "precision"} and not is_glmer)
    return Criterion(
        int(nagq),
        information or ("observed" if exact else "expected"),
        dispersion,
        PENALTIES[penalty] if penalty is not None else None,
        penalty,
    )


def make_objective(
    frame: Frame, matrices: Matrices, family: Family, link: Link, criterion: Criterion
) -> LaplaceDeviance:
    """Make the deviance that a criterion names, its penalty added."""
    observed = criterion.information == "observed"
    objective: LaplaceDeviance
    if criterion.nagq > 1:
        objective = QuadratureDeviance(frame, matrices, family, link, criterion.nagq, observed)
    else:
        objective = LaplaceDeviance(frame, matrices, family, link, observed, criterion.dispersion == "glmer")
    if criterion.penalty is not None:
        k, first_beta = objective.covariance.size, objective.covariance.size + objective.n_dispersion
        quadratic = np.zeros((first_beta + objective.p,) * 2)
        # Columns of the random terms have mean square one, so the squares of theta sum to a term's mean variance.
        quadratic[np.arange(k), np.arange(k)] = 1.0 / criterion.penalty.spread**2
        quadratic[first_beta:, first_beta:] = (
            objective.back.T @ criterion.penalty.on_coefficients(matrices) @ objective.back
        )
        objective.penalty = quadratic
    return objective
