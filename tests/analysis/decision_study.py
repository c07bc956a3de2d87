"""The nonwords of 124 people's lexical decisions, letters transposed or replaced, as the handover of a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.analysis.letter_study import write_handover

LEVELS = ("replaced", "transposed")


def decision_rows(shared: Path, *, words: bool = False) -> pd.DataFrame:
    """Return correct answers and errors to nonwords, and to words if asked for, times in milliseconds."""
    data = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv")
    data = data if words else data[data["item_type"] != "word"]
    return pd.DataFrame(
        {
            "study": "decisions",
            "version": 1,
            "design_hash": "d1",
            "session_id": data["participant"],
            "reader_kind": "human",
            "reader": data["participant"],
            "list_id": data["list"],
            "trial_index": data.groupby("participant").cumcount(),
            "attempt": 1,
            "item_id": data["base"],
            "set": "nonwords",
            "trial_type": "choose",
            "position": data["item_type"],
            "answer": np.where(data["item_type"] == "word", "word", "nonword"),
            "response_status": "valid",
            "string": data["string"],
            "correct": data["correct"].astype(bool),
            "rt": 1000.0 * data["rt"],
            "excluded_reason": None,
        }
    ).assign(**dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot"), False))


def study(folder: Path, shared: Path, people: int = 124) -> Path:
    """Write the export of some or all people, with a planned comparison of times and bounds of 200 ms and 10 s."""
    rows = decision_rows(shared)
    rows = rows[rows["reader"].isin(rows["reader"].unique()[:people])]
    planned = {"speed": {"measure": "rt", "compare": "position", "between": ["human"], "contrasts": []}}
    factors = {"position": {"levels": list(LEVELS), "reference": LEVELS[0]}}
    exclude = {"trials": {"rt": "outside 200 ms to 10 s"}}
    return write_handover(folder, rows, planned=planned, factors=factors, exclude=exclude)
