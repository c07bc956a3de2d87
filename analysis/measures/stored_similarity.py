"""Cosine similarities that a study has stored as scores of its answers."""

from __future__ import annotations

import pandas as pd

SCORER = "similarity"


def scored_similarities(trials: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Return the used trials whose score is a cosine of answers (``wrods score --similarity``), where answers count so."""
    named = trials["scorer"].astype(str).str.startswith(SCORER)
    return trials[trials["excluded_reason"].isna() & named & trials["score"].notna() & trials[factor].notna()]
