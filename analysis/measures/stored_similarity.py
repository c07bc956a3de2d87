"""Cosines of free answers that ``wrods score --similarity`` stored and a study's handover brings."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.reading import table_beside
from analysis.tables import Tables

FILE = "answer_similarity.parquet"
OWN_ANSWER, REFERENCE = "own answer about the intact text", "reference program"
"""What an answer may be compared with, as the file says it; the third is a ``right answer``."""
_PLACE = ["session_id", "trial_index", "attempt"]


def scored_similarities(tables: Tables, factor: str) -> pd.DataFrame:
    """Return the used trials whose answer was compared: ``similarity``, ``compared_with``, ``use``."""
    used = tables.trials[tables.trials["excluded_reason"].isna() & tables.trials[factor].notna()]
    kept = table_beside(tables.folder, Path(FILE).stem)
    if kept is None:
        return used.iloc[:0].assign(similarity=0.0, compared_with="", use="", unrelated=0.0)
    if "unrelated" not in kept:  # of versions that took no floor
        kept = kept.assign(unrelated=None)
    kept = kept.astype({"trial_index": float, "attempt": float, "similarity": float, "unrelated": float})
    found = used.astype({"trial_index": float, "attempt": float}).merge(kept, on=_PLACE)
    return found[found["similarity"].notna()]
