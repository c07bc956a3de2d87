"""Small trials tables with known cells, as load returns them."""

from __future__ import annotations

from typing import Any

import pandas as pd

EMPTY = {
    "session_id": "s1",
    "attempt": 1.0,
    "reader_kind": "model",
    "reader": "m",
    "reader_group": "m",
    "set": "words",
    "trial_type": "choose",
    "prompt_variant": 1.0,
    "answer": None,
    "response": None,
    "response_status": "valid",
    "correct": 1.0,
    "excluded_reason": None,
    "timed": False,
    "prompt_tokens": None,
    "completion_tokens": None,
    "reasoning_tokens": None,
    "latency_ms": None,
    "ttft_ms": None,
    "surprisal": None,
    "cost_usd": None,
}


def trials_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Complete rows to a trials table; items and places count from 0 where they are not given."""
    made = [{**EMPTY, "item_id": f"i{n}", "trial_index": float(n), **row} for n, row in enumerate(rows)]
    table = pd.DataFrame(made)
    numbers = ["correct", *(name for name in EMPTY if name.endswith(("tokens", "_ms", "_usd"))), "surprisal"]
    for name in numbers:
        table[name] = table[name].astype(float)
    return table
