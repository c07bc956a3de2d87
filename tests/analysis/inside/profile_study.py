"""People and a model of known truth for the chapter on condition profiles: shapes over conditions that are each reader's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import write_handover
from tests.analysis.measured_study import row as measured_row

LEVELS = ["base", "near", "middle", "far"]
MEAN = np.array([0.0, -0.2, -0.5, -0.9])


def profile_study(
    folder: Path, own: float, *, people: int = 16, each: int = 12, seed: int = 1, kind: str = "human"
) -> Path:
    """Write people whose log times follow profiles of their own, by so much, and answers that do as well."""
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    readers = [(f"P{n:02d}", kind) for n in range(people)] + [("net", "model")]
    for reader, sort in readers:
        shape = own * draw.normal(size=4)
        level = 0.3 * draw.normal()
        for item in range(4 * each):
            place = item % 4
            share = 1 / (1 + np.exp(-(1.5 + 2 * MEAN[place] + 3 * shape[place])))
            told = {"correct": draw.random() < share, "response": "1"}
            row = measured_row(reader, sort, f"i{item:03d}", LEVELS[place], len(rows), **told)
            time = np.exp(7 + level - 0.3 * MEAN[place] + 0.3 * shape[place] + 0.15 * draw.normal())
            rows.append(row | {"trial_type": "choose", "rt": time if sort == kind else None})
    factors = {"position": {"levels": LEVELS, "reference": "base"}}
    return write_handover(folder, pd.DataFrame(rows), factors=factors)
