"""Cosine similarity of paired vectors with a permuted baseline, and similarities stored by ``wrods score``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.arrays import Array
from analysis.measures.resampling import bootstrap
from analysis.tables import Tables, joined_beside
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


def cosines(array: NDArray[np.floating], other: NDArray[np.floating]) -> Array:
    """Return the cosine of each pair of rows."""
    if array.ndim != 2 or array.shape != other.shape:
        raise UserError(
            f"vectors of shapes {array.shape} and {other.shape}",
            mend="Give two tables of the same shape: a row per pair, a column per dimension.",
        )
    values = np.empty(len(array))
    for block in (slice(start, start + _ROWS) for start in range(0, len(array), _ROWS)):
        values[block] = _cosine(array[block].astype(float), other[block].astype(float))
    return values


def similarity(
    array: NDArray[np.floating], other: NDArray[np.floating], seed: int, permutations: int = 1000
) -> VectorSimilarity:
    """Return mean cosine, centred cosine, and the baseline of permuted pairs."""
    paired = cosines(array, other)
    first, second = (np.asarray(side, dtype=float) for side in (array, other))
    if not len(paired):
        raise UserError("similarity of 0 pairs of vectors", mend="Give at least one pair.")
    observed = float(np.nanmean(paired))
    ends = bootstrap(paired[:, None], lambda means: means[:, 0], seed)
    mean = (first.sum(axis=0) + second.sum(axis=0)) / (2 * len(array))
    centred = _cosine(first - mean, second - mean)
    a, b = _unit(first), _unit(second)
    random = np.random.default_rng(seed)
    # the mean over permuted pairs is a sum over the matrix of all cosines, taken row by row
    drawn = np.array(
        [np.nanmean(np.einsum("ij,ij->i", a, b[random.permutation(len(b))])) for _ in range(permutations)]
    )
    higher = int((drawn >= observed - 1e-12).sum())
    return VectorSimilarity(
        len(paired),
        observed,
        ends.low,
        ends.high,
        float(np.nanmean(centred)) if len(paired) > 1 else float("nan"),
        float(drawn.mean()) if permutations and len(paired) > 1 else float("nan"),
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
    table = joined_beside(used, tables.folder, Path(FILE).stem)
    if table is None:
        return used.iloc[:0].assign(similarity=0.0, compared_with="", use="", unrelated=0.0)
    if "unrelated" not in table:  # of versions that took no floor
        table = table.assign(unrelated=None)
    table = table.astype({"similarity": float, "unrelated": float})
    return table[table["similarity"].notna()]
