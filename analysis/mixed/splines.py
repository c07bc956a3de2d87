"""Regression splines with the bases of R's ``splines`` package: ``bs`` and ``ns``.

A B-spline basis over the boundary knots and the inner ones (de Boor 1978, chapter 9); a natural spline is the part of the
cubic basis whose second derivative vanishes at both ends, and goes on as a line beyond them. Which basis of that part is
taken is a convention; this is R's, from the QR decomposition of the two constraints.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.interpolate import BSpline

from stimuli.errors import UserError

Array = NDArray[np.float64]


def bs(
    data: Any,
    df: int | None = None,
    knots: ArrayLike | None = None,
    degree: int = 3,
    intercept: bool = False,
    Boundary_knots: Sequence[float] | None = None,
    _state: MutableMapping[str, Any] | None = None,
) -> Array:
    """Evaluate a B-spline basis, R's ``bs``; knots are learnt from the data fitted.

    Parameters
    ----------
    data : array_like, shape (n,)
        A covariate.
    df : int, optional
        Columns wanted; the inner knots are then quantiles.
    knots : array_like, optional
        Inner knots.
    degree : int
        Of the pieces.
    intercept : bool
        Whether the first column stays.
    Boundary_knots : (float, float), optional
        Default: the range of the data. Beyond them the outer pieces go on.
    _state : mapping, optional
        Keeps the knots for other rows; formulaic hands it over.

    Returns
    -------
    ndarray, shape (n, df)
    """
    x = np.asarray(data, dtype=float)
    state = {} if _state is None else _state
    if "knots" not in state:
        inner = None if df is None else df - (degree + 1) + int(not intercept)
        state["knots"] = _all_knots("bs", x, inner, df, knots, Boundary_knots, degree + 1)
    basis = _basis(state["knots"], degree)(x)
    return np.asarray(basis if intercept else basis[:, 1:])


def ns(
    data: Any,
    df: int | None = None,
    knots: ArrayLike | None = None,
    intercept: bool = False,
    Boundary_knots: Sequence[float] | None = None,
    _state: MutableMapping[str, Any] | None = None,
) -> Array:
    """Evaluate a natural cubic spline basis, R's ``ns``; knots are learnt from the data fitted.

    Parameters
    ----------
    data : array_like, shape (n,)
        A covariate.
    df, knots, intercept, Boundary_knots
        As for :func:`bs`.

    Returns
    -------
    ndarray, shape (n, df)
    """
    x = np.asarray(data, dtype=float)
    state = {} if _state is None else _state
    if "knots" not in state:
        inner = None if df is None else df - 1 - int(intercept)
        state["knots"] = _all_knots("ns", x, inner, df, knots, Boundary_knots, 4)
    spline = _basis(state["knots"], 3)
    ends = state["knots"][[0, -1]]
    inside = np.clip(x, *ends)
    basis = spline(inside) + (x - inside)[:, None] * spline.derivative()(inside)
    bent = spline.derivative(2)(ends)
    first = 0 if intercept else 1
    rotation, _ = linalg.qr(bent[:, first:].T)
    return np.asarray((basis[:, first:] @ rotation)[:, 2:])


def _all_knots(
    function: str,
    x: Array,
    inner: int | None,
    df: int | None,
    knots: ArrayLike | None,
    ends: Sequence[float] | None,
    order: int,
) -> Array:
    """Boundary knots ``order`` times each, with the inner knots between."""
    low, high = (float(x.min()), float(x.max())) if ends is None else sorted(float(e) for e in ends)
    if knots is not None:
        between = np.atleast_1d(np.asarray(knots, dtype=float))
    elif inner is None:
        between = np.empty(0)
    elif inner < 0:
        raise UserError(
            f"{function}(df = {df}) is too few columns; this spline has at least {df - inner if df else 1}",
            mend="Ask for more degrees of freedom, or a lower degree.",
        )
    else:
        within = x[(x >= low) & (x <= high)]
        between = np.quantile(within, np.linspace(0.0, 1.0, inner + 2)[1:-1])
    outside = between[(between <= low) | (between >= high)]
    if len(outside):
        raise UserError(
            f"{function}(): the knot {outside[0]:g} does not lie between the boundary knots {low:g} and {high:g}",
            mend="Give inner knots within the range of the data, or wider Boundary.knots.",
        )
    return np.sort(np.concatenate([np.full(order, low), np.full(order, high), between]))


def _basis(knots: Array, degree: int) -> BSpline:
    return BSpline(knots, np.eye(len(knots) - degree - 1), degree)
