"""A study of two crossed factors, item type and font, with effects that are known, as the handover of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import trial, write_handover

FACTORS = {
    "item_type": {"levels": ["word", "transposed"], "reference": "word"},
    "font": {"levels": ["plain", "cursive"], "reference": "plain"},
}
INTERACTION = "(transposed - word) x (cursive - plain)"
PLAN = {"measure": "correct", "compare": ["item_type", "font"], "between": ["human"]}
CELLS = [(kind, font) for kind in FACTORS["item_type"]["levels"] for font in FACTORS["font"]["levels"]]
LOG_ODDS = {
    ("word", "plain"): 2.2,
    ("word", "cursive"): 1.9,
    ("transposed", "plain"): 1.4,
    ("transposed", "cursive"): 0.0,
}


def crossed_rows(
    people: int = 24,
    items: int = 24,
    models: Sequence[str] = (),
    truth: Mapping[tuple[str, str], float] = LOG_ODDS,
    seed: int = 1,
) -> pd.DataFrame:
    """Return trials: people see each item in one cell of a Latin square, models in all of them."""
    rng = np.random.default_rng(seed)
    item = rng.normal(0, 0.6, (items, 4)) * [1, 0.4, 0.4, 0.4]
    rows = []
    for reader in range(people + len(models)):
        person = reader < people
        own = rng.normal(0, 1, 4) * [0.5, 0.4, 0.4, 0.4] * person
        for n in range(items):
            for place in [(reader + n) % 4] if person else range(4):
                item_type, font = CELLS[place]
                a, b = place // 2 - 0.5, place % 2 - 0.5
                eta = truth[item_type, font] + float((own + item[n]) @ [1, a, b, a * b])
                name = f"p{reader}" if person else models[reader - people]
                told = {
                    "item_type": item_type,
                    "font": font,
                    "correct": bool(rng.random() < 1 / (1 + np.exp(-eta))),
                    "rt": float(np.exp(6.5 - 0.05 * eta + rng.normal(0, 0.25))) if person else np.nan,
                }
                rows.append(trial(name, "human" if person else "model", f"i{n:02d}", 0, **told))
    made = pd.DataFrame(rows)
    return made.assign(study="crossed", set="items", trial_index=made.groupby("reader").cumcount())


def crossed_study(
    folder: Path, rows: pd.DataFrame, planned: Mapping[str, Mapping[str, Any]] | None = None, **more: Any
) -> Path:
    """Write the handover of such a study; unless told otherwise with the interaction of accuracy as its plan."""
    given = {"together": PLAN} if planned is None else planned
    return write_handover(folder, rows, planned=given, **{"factors": FACTORS, **more})
