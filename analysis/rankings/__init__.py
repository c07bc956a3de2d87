"""How readers stand to each other: robustness by size, recovery beside the task, error patterns; models named one by one.

:mod:`~analysis.rankings.sizes` asks within a family whether larger models lose less, :mod:`~analysis.rankings.recovery_order` whether
models that restore text better also read it better, :mod:`~analysis.rankings.matching` whether error patterns tell readers apart, and
:mod:`~analysis.rankings.consistency` whether readers err alike beyond their accuracies.
"""

from analysis.rankings.consistency import error_consistency
from analysis.rankings.matching import Matching, matchings
from analysis.rankings.ranks import RankCorrelation, rank_correlation
from analysis.rankings.recovery_order import RecoveryOrder, recovery_order
from analysis.rankings.sizes import (
    Robustness,
    Size,
    read_parameters,
    robustness,
    robustness_by_size,
    robustness_table,
    sizes,
)
from analysis.rankings.vectors import ErrorVectors, error_vectors

__all__ = [
    "ErrorVectors",
    "Matching",
    "RankCorrelation",
    "RecoveryOrder",
    "Robustness",
    "Size",
    "error_consistency",
    "error_vectors",
    "matchings",
    "rank_correlation",
    "read_parameters",
    "recovery_order",
    "robustness",
    "robustness_by_size",
    "robustness_table",
    "sizes",
]
