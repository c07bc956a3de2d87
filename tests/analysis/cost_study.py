"""A study with any number of conditions, people and models whose costs the tests know, as its handover."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import trial, write_handover

STEP = 0.1
"""What each further condition adds to the log of people's times; a model's tokens and bits grow by twice as much."""


def rows_of(
    levels: Sequence[str],
    *,
    people: int = 8,
    models: Sequence[str] = (),
    items: int = 16,
    kind: str = "human",
    factor: str = "form",
    seed: int = 1,
    with_tokens: bool = True,
) -> pd.DataFrame:
    """Return trials in which condition k costs people k steps and models 2 k steps, with accuracy falling alike."""
    draw = np.random.default_rng(seed)
    hard = draw.normal(0, 0.1, items)
    rows: list[dict[str, Any]] = []
    for number in range(people):
        own = draw.normal(0, 0.2)
        for item in range(items):
            place = (item + number) % len(levels)
            time = float(np.exp(7.0 + STEP * place + own + hard[item] + draw.normal(0, 0.2)))
            right = bool(draw.random() < 0.95 - 0.05 * place)
            rows.append(_row(f"P{number:04d}", kind, levels[place], item, right) | {"reading_time": time})
    for turn, name in enumerate(models):
        for item in range(items):
            for place, level in enumerate(levels):
                grown = float(np.exp(2 * STEP * place + draw.normal(0, 0.05)))
                cost = {
                    "prompt_tokens": 40.0,
                    "completion_tokens": 100.0 * (turn + 1) * grown,
                    "reasoning_tokens": 60.0 * grown if turn % 2 else None,
                    "surprisal": (50.0 + item) * grown,
                }
                right = bool(draw.random() < 0.9 - 0.06 * place)
                rows.append(_row(name, "model", level, item, right) | (cost if with_tokens else {}))
    trials = pd.DataFrame(rows).rename(columns={"level": factor})
    trials["trial_index"] = trials.groupby("session_id").cumcount()
    return trials


def _row(reader: str, kind: str, level: str, item: int, right: bool) -> dict[str, Any]:
    numbers = ("rt", "reading_time", "surprisal", "prompt_tokens", "completion_tokens", "reasoning_tokens")
    more = {"study": "forms", "set": "texts", "level": level, "correct": right, **dict.fromkeys(numbers)}
    return trial(reader, kind, f"t{item:03d}", 0, **more)


def study(folder: Path, levels: Sequence[str], *, factor: str = "form", **readers: Any) -> Path:
    """Write the study's handover; the first level is the reference."""
    trials = rows_of(levels, factor=factor, **readers)
    trials["position"] = trials[factor]
    factors = {factor: {"levels": list(levels), "reference": levels[0]}}
    return write_handover(folder, trials, factors=factors, study="forms")
