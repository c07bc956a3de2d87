"""Cosine similarity of paired vectors with a permuted baseline, and similarities stored by ``wrods score``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.arrays import Array
from analysis.measures.resampling import bootstrap
from analysis.table_io import joined_beside
from analysis.tables import Tables
from stimuli.errors import UserError

_ROWS = 4096


@dataclass(frozen=True)
class VectorSimilarity:
    """Similarity of paired vectors."""

    pairs: int
    cosine: float  # mean cosine and its 95% bootstrap interval over pairs
    low: float
    high: float
    centred: float  # mean cosine after the mean vector of both sides together is taken away
    unpaired: float  # mean cosine of vectors of different pairs (permuted): the baseline
    p: float  # share of permutations whose mean cosine is at least as high, counting the observed one


def cosines(one: NDArray[np.floating], other: NDArray[np.floating]) -> Array:
    """Return the cosine of each pair of rows."""
    if one.ndim != 2 or one.shape != other.shape:
        raise UserError(
            f"vectors of shapes {one.shape} and {other.shape}",
            mend="Give two tables of the same shape: a row per pair, a column per dimension.",
        )
    found = np.empty(len(one))
    for some in (slice(start, start + _ROWS) for start in range(0, len(one), _ROWS)):
        found[some] = _cosine(one[some].astype(float), other[some].astype(float))
    return found


def similarity(
    one: NDArray[np.floating], other: NDArray[np.floating], seed: int, permutations: int = 1000
) -> VectorSimilarity:
    """Return mean cosine, centred cosine, and the baseline of permuted pairs."""
    own = cosines(one, other)
    first, second = (np.asarray(side, dtype=float) for side in (one, other))
    if not len(own):
        raise UserError("similarity of 0 pairs of vectors", mend="Give at least one pair.")
    observed = float(np.nanmean(own))
    ends = bootstrap(own[:, None], lambda means: means[:, 0], seed)
    mean = (first.sum(axis=0) + second.sum(axis=0)) / (2 * len(one))
    centred = _cosine(first - mean, second - mean)
    a, b = _unit(first), _unit(second)
    random = np.random.default_rng(seed)
    # the mean over permuted pairs is a sum over the matrix of all cosines, taken row by row
    drawn = np.array(
        [np.nanmean(np.einsum("ij,ij->i", a, b[random.permutation(len(b))])) for _ in range(permutations)]
    )
    higher = int((drawn >= observed - 1e-12).sum())
    return VectorSimilarity(
        len(own),
        observed,
        ends.low,
        ends.high,
        float(np.nanmean(centred)) if len(own) > 1 else float("nan"),
        float(drawn.mean()) if permutations and len(own) > 1 else float("nan"),
        (higher + 1) / (permutations + 1),
    )


def _unit(rows: Array) -> Array:
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, size, out=np.full_like(rows, np.nan), where=size > 0))


def _cosine(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", _unit(a), _unit(b)))


FILE = "answer_similarity.parquet"
OWN_ANSWER, REFERENCE = "own answer about the intact text", "reference program"
"""What an answer may be compared with, as the file says it; the third is a ``right answer``."""


def scored_similarities(tables: Tables, factor: str) -> pd.DataFrame:
    """Return the used trials whose answer was compared: ``similarity``, ``compared_with``, ``use``."""
    used = tables.trials[tables.trials["excluded_reason"].isna() & tables.trials[factor].notna()]
    found = joined_beside(used, tables.folder, Path(FILE).stem)
    if found is None:
        return used.iloc[:0].assign(similarity=0.0, compared_with="", use="", unrelated=0.0)
    if "unrelated" not in found:  # of versions that took no floor
        found = found.assign(unrelated=None)
    found = found.astype({"similarity": float, "unrelated": float})
    return found[found["similarity"].notna()]
