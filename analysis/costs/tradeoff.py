"""Cost beside accuracy: what a condition took of a reader, and what came of it.

Costs of people are times, those of models tokens or bits; on one axis they stand as log ratios against each reader's own
baseline. Of the costs that a reader has, two are taken: what answering took (time, tokens), and bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.costs.ratios import CostProfile
from analysis.descriptives import Cell

SPENT = ("reading_time", "rt", "reasoning_tokens", "completion_tokens", "latency_ms", "prompt_tokens")
"""What answering takes; the first that a reader has and that differs between conditions is shown."""
BITS = ("surprisal", "surprisal_after", "surprisal_changed")


def shown_profiles(found: Sequence[CostProfile]) -> list[CostProfile]:
    """Choose at most one of :data:`SPENT` and one of :data:`BITS` for each reader's figures."""
    chosen: list[CostProfile] = []
    for group in dict.fromkeys(one.group for one in found):
        own = {one.measure: one for one in found if one.group == group}
        kinds = [[own[name] for name in names if name in own] for names in (SPENT, BITS)]
        varied = [next((one for one in several if _varies(one)), None) for several in kinds]
        some = [one for one in varied if one is not None]
        chosen += some or [several[0] for several in kinds if several][:1]
    return chosen


def _varies(one: CostProfile) -> bool:
    return bool(np.nanmax(np.abs(one.profile.estimate), initial=0.0) > 1e-9)


def cost_and_accuracy(shown: Sequence[CostProfile], cells: Sequence[Cell], factor: str) -> pd.DataFrame:
    """Put each reader's log ratio of cost beside the share of right answers, condition by condition."""
    right = {(cell.group, cell.level): cell for cell in cells}
    rows = []
    for one in shown:
        profile = one.profile
        costs = [(profile.intact, 0.0, float("nan"), float("nan"))]
        for place, level in enumerate(profile.levels):
            ends = profile.interval(place)
            costs.append((level, float(profile.estimate[place]), ends.low, ends.high))
        for level, ratio, low, high in costs:
            cell = right.get((one.group, level))
            if cell is None or not np.isfinite(ratio):
                continue
            rows.append(
                {
                    "reader_group": one.group,
                    "reader_kind": one.kind,
                    "measure": one.measure,
                    factor: level,
                    "log_ratio": ratio,
                    "cost_low": low,
                    "cost_high": high,
                    "correct": cell.mean,
                    "correct_low": cell.low,
                    "correct_high": cell.high,
                }
            )
    return pd.DataFrame(rows)
