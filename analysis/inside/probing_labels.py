"""What is predicted from a trial's states: the right answer as this reader was shown it, its own answer, or the condition."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence

import numpy as np
import pandas as pd

MOST_CLASSES = 10
"""Answers of more kinds than this are no categories."""
Texts = pd.Series


def conditions_of(rows: pd.DataFrame, factors: Sequence[str]) -> Texts:
    """Name the condition of each trial by its levels; ``all`` without factors, None where a level is missing."""
    if not factors:
        return pd.Series("all", index=rows.index, dtype=object)
    named = [
        None if any(pd.isna(level) for level in levels) else ", ".join(map(str, levels))
        for levels in zip(*(rows[name] for name in factors), strict=True)
    ]
    return pd.Series(named, index=rows.index, dtype=object)


def labels_of(rows: pd.DataFrame, items: pd.DataFrame, target: str, factors: Sequence[str]) -> Texts:
    """Return the label of each trial; None where it has none."""
    if target == "condition":
        return conditions_of(rows, factors)
    given = rows[target].astype(object).where(rows[target].notna(), None)
    if target == "response":
        given = given.where(rows["response_status"] == "valid", None)
    options = _options(rows, items, factors)
    if options is not None and len({one for one in options if one is not None}) > 1:
        found = [
            _letter(answer, shown, order)
            for answer, shown, order in zip(given, options, rows["choice_order"], strict=True)
        ]
    else:
        maps = {text: _map(text) for text in rows["label_map"].dropna().unique()}
        found = [
            None if answer is None else maps.get(named, {}).get(str(answer), str(answer))
            for answer, named in zip(given, rows["label_map"], strict=True)
        ]
    labels = pd.Series(found, index=rows.index, dtype=object)
    return labels if 0 < labels.nunique() <= MOST_CLASSES else pd.Series(None, index=rows.index, dtype=object)


def _options(
    rows: pd.DataFrame, items: pd.DataFrame, factors: Sequence[str]
) -> list[tuple[str, ...] | None] | None:
    """Return the options of each trial's item in that condition; None where items have none."""
    if "choices" not in items or not len(items):
        return None
    keys = ["set", "item_id", *(name for name in factors if name in items)]
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for *key, text in items[[*keys, "choices"]].itertuples(index=False):
        if isinstance(text, str) and (choices := json.loads(text)):
            named = tuple(map(str, key))
            known[named] = known[named[:2]] = tuple(map(str, choices))
    if not known:
        return None
    cells = zip(*(rows[name].astype(str) for name in keys), strict=True)
    return [known.get(tuple(cell), known.get(tuple(cell[:2]))) for cell in cells]


def _letter(answer: str | None, options: tuple[str, ...] | None, order: object) -> str | None:
    """Return the letter at which an answer stood; an answer that is a letter itself stays."""
    if answer is None or options is None:
        return None
    letters = string.ascii_uppercase[: len(options)]
    if answer not in options:
        return answer if len(answer) == 1 and answer in letters else None
    place = options.index(answer)
    shown = [int(one) for one in order.split(",")] if isinstance(order, str) and order else None
    return letters[shown.index(place) if shown and place in shown else place]


def _map(text: str) -> dict[str, str]:
    """Read which label stood for which class (``Yes=A,No=B``)."""
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)


def codes_of(labels: Texts) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as numbers, −1 for none, and the names of the numbers in alphabetical order."""
    names = tuple(sorted({str(one) for one in labels.dropna()}))
    place = {name: number for number, name in enumerate(names)}
    return np.array([-1 if one is None else place[str(one)] for one in labels], dtype=np.intp), names
