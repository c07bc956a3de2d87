"""How long probing takes and how much memory, before anything is computed."""

from __future__ import annotations

from analysis.inside.probing_fit import IN_64_BITS, MOST_CELLS
from analysis.inside.probing_settings import FOLDS, INNER_FOLDS, Settings

SECONDS_A_CELL = 6e-8
"""Seconds of one core for a training row's dimension in one regression: 4.5e-8 to 9.3e-8 (tests/benchmarks/bench_probing.py)."""


def probing_seconds(trials: int, layers: int, width: int, settings: Settings, models: int = 1) -> float:
    """Return about how many seconds of one core the probes of a study take."""
    folds = 1 if settings.test else settings.folds or FOLDS
    trained = trials * (folds - 1) / folds if folds > 1 else trials
    regressions = folds * (INNER_FOLDS * len(settings.penalties) + 1 + settings.controls)
    return models * len(settings.predict) * layers * regressions * trained * width * SECONDS_A_CELL


def probing_bytes(trials: int, width: int) -> float:
    """Return about how many bytes the training rows of one layer take at once: themselves, and two thirds of them in inner folds."""
    cells = min(trials * width, MOST_CELLS)
    return cells * (4 + 8 + 16 / 3 if cells <= IN_64_BITS else 4 + 8 / 3)
