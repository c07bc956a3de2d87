"""The relative covariance factor Lambda as a function of theta, per grouping factor.

Bates et al. (2015, eq. 4): Sigma = sigma^2 Lambda Lambda', with Lambda block-diagonal and one lower-triangular template
per random term. Here the terms of one grouping factor share a (k, k) matrix, block-diagonal over terms, and the raw
columns of a term are first made orthonormal, which leaves the model unchanged and theta well scaled; ``covariance``
goes back to the columns as the user wrote them. Theta is not bounded: deviance is even in every column's sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SINGULAR = 1e-4
"""lme4's tolerance for a relative standard deviation that counts as zero."""


@lru_cache(maxsize=64)
def _lower_triangle(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    columns, rows = np.triu_indices(k)
    return rows.astype(np.intp), columns.astype(np.intp)


@dataclass(frozen=True)
class TermCovariance:
    """One random term's place in theta and in its grouping factor's Lambda.

    Attributes
    ----------
    factor : int
        Which grouping factor.
    at : int
        First column within that factor.
    names : tuple of str, length k
        Column names.
    transform : ndarray, shape (k, k)
        T with (columns used) = (raw columns) T; upper triangular.
    theta : slice
        Place in theta; the lower triangle, column by column.
    n_levels : int
        Levels of the grouping factor.
    """

    factor: int
    at: int
    names: tuple[str, ...]
    transform: Array
    theta: slice
    n_levels: int

    @property
    def width(self) -> int:
        """Columns k."""
        return len(self.names)

    @property
    def positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of the lower triangle, column-major."""
        return _lower_triangle(self.width)

    def template(self, theta: Array) -> Array:
        """Return the (k, k) lower-triangular factor for the columns used."""
        matrix = np.zeros((self.width, self.width))
        matrix[self.positions] = theta[self.theta]
        return matrix

    def relative_covariance(self, theta: Array) -> Array:
        """Lambda Lambda' for the raw columns, shape (k, k)."""
        raw = self.transform @ self.template(theta)
        return raw @ raw.T

    def _sizes(self, theta: Array) -> tuple[Array, Array]:
        """Relative standard deviations of the raw columns, and given the columns before, for columns of unit size."""
        raw = self.transform @ self.template(theta)
        scale = 1.0 / np.sqrt(np.sum(np.linalg.inv(self.transform) ** 2, axis=0))
        own = np.abs(np.diag(np.linalg.qr(raw.T, mode="r")))
        return np.sqrt(np.sum(raw**2, axis=1)) / scale, own / scale

    def is_singular(self, theta: Array) -> bool:
        """Whether some combination of the (unit-scaled) columns has a relative standard deviation near zero."""
        sizes = np.linalg.svd(self.template(theta), compute_uv=False)
        return bool(min(sizes.min(), self._sizes(theta)[1].min()) < SINGULAR)

    def lost(self, theta: Array) -> list[str]:
        """Say of each column that has no variance of its own what became of it."""
        whole, own = self._sizes(theta)
        told = []
        for j, name in enumerate(self.names):
            if whole[j] < SINGULAR:
                told.append(f"{name} does not vary")
            elif own[j] < SINGULAR:
                told.append(f"{name} varies only along with {', '.join(self.names[:j])}")
        return told


class Covariance:
    """All random terms of a model.

    Parameters
    ----------
    terms : sequence of TermCovariance
        In lme4's order.
    widths : sequence of int
        Columns of each grouping factor.
    """

    def __init__(self, terms: Sequence[TermCovariance], widths: Sequence[int]) -> None:
        self.terms, self.widths = tuple(terms), tuple(widths)
        self.size = sum(t.width * (t.width + 1) // 2 for t in self.terms)
        self._scales = np.empty(self.size)
        for term in self.terms:
            self._scales[term.theta] = 1.0 / np.sqrt(2.0 * term.n_levels)

    def lambdas(self, theta: Array) -> list[Array]:
        """Per grouping factor the (k, k) Lambda."""
        mats = [np.zeros((k, k)) for k in self.widths]
        for term in self.terms:
            part = slice(term.at, term.at + term.width)
            mats[term.factor][part, part] = term.template(theta)
        return mats

    def gradient(self, slopes: Sequence[Array]) -> Array:
        """Collect derivatives with respect to Lambda's entries, one (k, k) array a factor, into theta's order."""
        result = np.empty(self.size)
        for term in self.terms:
            part = slice(term.at, term.at + term.width)
            result[term.theta] = slopes[term.factor][part, part][term.positions]
        return result

    def entries(self) -> list[tuple[int, int, int]]:
        """Where each entry of theta lies: grouping factor, row and column of its Lambda."""
        result = [(0, 0, 0)] * self.size
        for term in self.terms:
            rows, columns = term.positions
            for at, i, j in zip(
                range(term.theta.start, term.theta.stop), rows.tolist(), columns.tolist(), strict=True
            ):
                result[at] = (term.factor, term.at + i, term.at + j)
        return result

    def diagonal(self) -> NDArray[np.bool_]:
        """Which entries of theta are on a template's diagonal."""
        result = np.zeros(self.size, dtype=bool)
        for term in self.terms:
            rows, columns = term.positions
            result[term.theta] = rows == columns
        return result

    def start(self) -> Array:
        """Return unit relative standard deviations without correlation."""
        return self.diagonal().astype(float)

    def from_moments(self, moments: Sequence[Array]) -> Array:
        """Theta whose relative covariances are near given ones, (k, k) per grouping factor, and safely inside.

        Correlations are drawn halfway to zero, and no relative standard deviation is less than 0.03: a search that begins
        on the boundary may stay there.
        """
        result = np.empty(self.size)
        for term in self.terms:
            part = slice(term.at, term.at + term.width)
            moment = moments[term.factor][part, part]
            size = np.diag(np.maximum(np.diag(moment), 1e-3))
            result[term.theta] = np.linalg.cholesky((moment + size) / 2.0)[term.positions]
        return result

    def scales(self) -> Array:
        """Rough size of one standard error of each entry of theta: 1 / sqrt(2 levels)."""
        return self._scales

    def with_positive_diagonal(self, theta: Array) -> Array:
        """Flip the sign of template columns whose diagonal entry is negative; the model is the same."""
        result = theta.copy()
        for term in self.terms:
            matrix = term.template(theta)
            matrix = matrix * np.where(np.diag(matrix) < 0, -1.0, 1.0)
            result[term.theta] = matrix[term.positions]
        return result


def orthonormalising(columns: Array) -> Array:
    """Find T, upper triangular, such that (columns T) has orthonormal columns times sqrt(n).

    Parameters
    ----------
    columns : ndarray, shape (n, k)
        Raw columns of one random term. Where they are (nearly) collinear, T only scales.

    Returns
    -------
    ndarray, shape (k, k)
    """
    n, k = columns.shape
    size = np.sqrt(np.mean(columns**2, axis=0))
    size[size == 0] = 1.0
    if k == 1:
        return np.diag(1.0 / size)
    r = np.linalg.qr(columns / size, mode="r") / np.sqrt(n) if n >= k else np.zeros((k, k))
    pivots = np.diag(r)
    if np.abs(pivots).min() < 1e-6:
        return np.diag(1.0 / size)
    r = r * np.where(pivots < 0, -1.0, 1.0)[:, None]
    return np.asarray(np.linalg.inv(r) / size[:, None])
