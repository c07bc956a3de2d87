"""The model without random effects, fitted by iterated least squares: a start, a scale, never a result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .blocks import Effects
from .families import Family
from .frame import Frame
from .links import Link
from .matrices import Covariance, Matrices
from .responses import Response, make_response

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Independence:
    """Fixed effects alone: coefficients ``beta`` (p,), working weights ``weight`` (n,), logs of what else is estimated."""

    beta: Array
    weight: Array
    log_dispersion: Array


def spans_constant(columns: Array) -> bool:
    """Return whether columns, shape (n, k), combine to a constant."""
    if ((columns == columns[:1]).all(axis=0) & (columns[0] != 0.0)).any():
        return True
    one = np.ones((len(columns), 1))
    return bool(np.allclose(columns @ np.linalg.lstsq(columns, one, rcond=None)[0], one, atol=1e-6))


def lacks_constant(matrices: Matrices) -> bool:
    """Return whether random effects can express a constant that the fixed effects cannot, so that they carry the mean."""
    return not spans_constant(matrices.x) and any(spans_constant(e.columns) for e in matrices.effects)


def without_random_effects(
    frame: Frame, x: Array, family: Family, link: Link, *, with_constant: bool = False
) -> Independence:
    """Fit the fixed effects alone. Shapes: x (n, p)."""
    response = make_response(family, link, frame.y, frame.weights)
    eta = response.saturated()
    p = x.shape[1]
    if with_constant:
        x = np.hstack([x, np.ones((len(x), 1))])
    beta: Array = np.zeros(x.shape[1])
    old = -np.inf
    for _ in range(25):
        new, predicted, value = _step(response, eta, frame.offset, x)
        size = 1.0
        # Links that are no maps onto the whole line can be left; half the way back is inside again.
        while not np.isfinite(value) and size > 1e-3 and np.isfinite(old):
            size /= 2.0
            new = beta + (new - beta) / 2.0
            predicted = frame.offset + x @ new
            value = float(response.loglik(predicted).sum())
        if not np.isfinite(value) or value < old - 1e-8 * abs(old):
            break
        beta, eta = new, predicted
        # Under separation the estimates run away; a start need not follow them.
        if value - old < 1e-8 * (abs(value) + 1.0) or (link.ratio and np.abs(eta).max() > 30.0):
            break
        old = value
    log_dispersion: Array = np.zeros(0)
    if family.dispersion in {"thresholds", "shape"}:
        log_dispersion = response.dispersion
    elif family.dispersion is not None:
        dispersion = _dispersion(family, frame, link.inverse(eta), x.shape[1])
        with np.errstate(divide="ignore"):
            log_dispersion = np.log(np.array([dispersion]))
        response = response.with_dispersion(np.maximum(log_dispersion, np.log(1e-300)))
    weight = response.weight(eta)
    return Independence(beta[:p], np.maximum(weight, 1e-6 * _typical(weight)), log_dispersion)


def _step(response: Response, eta: Array, offset: Array, x: Array) -> tuple[Array, Array, float]:
    w = response.weight(eta)
    w = np.maximum(w, 1e-10 * _typical(w))
    z = eta - offset + response.score(eta) / w
    root = np.sqrt(w)
    new: Array = np.asarray(np.linalg.lstsq(root[:, None] * x, root * z, rcond=None)[0], dtype=float)
    predicted = offset + x @ new
    return new, predicted, float(response.loglik(predicted).sum())


def _typical(weight: Array) -> float:
    return max(float(np.median(weight)), 1e-300)


def _dispersion(family: Family, frame: Frame, mu: Array, p: int) -> float:
    """Estimate phi or theta by moments; rough, since random effects are still in the residuals."""
    squares = frame.weights * (frame.y - mu) ** 2
    if family.dispersion == "theta":
        over = float((squares - frame.weights * mu).sum() / (frame.weights * mu**2).sum())
        return 1.0 / float(np.clip(over, 1e-2, 10.0))
    over = float((squares / family.variance(mu)).sum()) / max(len(mu) - p, 1)
    if family.dispersion == "precision":
        more = float(np.mean(frame.weights)) - 1.0
        return float(np.clip(more / max(over - 1.0, 1e-3) - 1.0, 0.5, 1e3))
    return over


def in_units_of_residuals(matrices: Matrices, frame: Frame, family: Family, link: Link) -> Matrices:
    """Measure random effects in residual standard deviations on the link scale, so that theta is of the order of one.

    Families without a dispersion have links whose unit is already of that order.
    """
    if family.dispersion not in {"phi", "shape"}:
        return matrices
    lacking = lacks_constant(matrices)
    weight = without_random_effects(frame, matrices.x, family, link, with_constant=lacking).weight
    unit = 1.0 / float(np.sqrt(np.mean(weight)))
    covariance = matrices.covariance
    terms = [replace(t, transform=t.transform * unit) for t in covariance.terms]
    return replace(
        matrices,
        covariance=Covariance(terms, covariance.widths),
        effects=tuple(Effects(e.codes, e.n_levels, e.columns * unit) for e in matrices.effects),
    )
