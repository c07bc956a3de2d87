"""The observations behind every cost of letters: trials, or single words of trials, with what was done to their letters.

A trial has one value for its whole item; where regions were recorded (moving windows, teacher forcing) each changed word has its
own, held against the same word intact, and its own place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from analysis.fidelity.items import item_values
from analysis.letters.changes import AGREED, INTACT, letter_changes, of_forms
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables, item_names
from analysis.whole_readers import draw
from stimuli.errors import UserError

OF_WORDS = {"time_changed": "rt", "surprisal_changed": "surprisal"}
MOST_ROWS = 200_000
"""Of one reader group; more are stood for by whole participants or sessions."""


@dataclass(frozen=True)
class LetterRows:
    """Values of a measure with what was done to the letters."""

    rows: pd.DataFrame
    has_intact: bool
    remarks: tuple[str, ...] = ()  # what was left out, and why
    why_none: str = ""  # why there is nothing intact to measure a cost from, in words; empty where there is


def letter_rows(tables: Tables, measure: str) -> LetterRows:
    """Return the observations of a measure."""
    if measure in OF_WORDS:
        rows, remarks = _changed_words(tables, measure)
    else:
        rows, remarks = bearable(changed_trials(tables, measure), MOST_ROWS)
    intact = rows["zone"] == INTACT
    comparable = _comparable(rows)
    if not comparable.any():
        if intact.any():
            told = "trials that show an item with its letters as they should be are left out; none of these items was also met changed"
            remarks = (*remarks, f"{intact.sum():,} {told} with the same right answer.")
        return LetterRows(rows[~intact].reset_index(drop=True), False, remarks, _why_none(rows))
    return LetterRows(rows[~intact | comparable].reset_index(drop=True), True, remarks)


def _why_none(rows: pd.DataFrame) -> str:
    """Say why no item can be held against its intact form: none was met so, it asks for another answer, or nobody met both."""
    intact = rows["zone"] == INTACT
    if not intact.any():
        return "No item was met intact"
    asked = set(rows.loc[intact, "answer"].dropna())
    if asked and asked.isdisjoint(rows.loc[~intact, "answer"].dropna()):
        return (
            "No item was met intact with the same right answer (intact items ask for another answer than changed ones, as words do "
            "beside nonwords made of them)"
        )
    return "No item was met both intact and changed with the same right answer"


def _comparable(rows: pd.DataFrame) -> pd.Series[bool]:
    """Say which intact rows are of items that are also met changed with the same right answer."""
    key = rows["item"].astype(str) + "\n" + rows["answer"].astype(str)
    intact = rows["zone"] == INTACT
    return intact & key.isin(set(key[~intact]))


def changed_trials(tables: Tables, measure: str) -> pd.DataFrame:
    """Return the values of a measure, one row a trial, with what was done to the letters of its item."""
    factors = list(tables.factors)
    if not factors:
        raise UserError("the study has no factor", mend="Compare conditions that change letters differently.")
    changes = letter_changes(tables.items, factors)
    values = item_values(tables.trials, factors[0], measure)
    told = tables.trials.loc[values.index, ["set", "item_id", *factors, "reader", "session_id"]]
    told["answer"] = tables.trials.get("answer", pd.Series(None, index=told.index, dtype=object))
    rows = values.drop(columns=factors[0]).join(told)
    known = [n for n in ("set", "item_id", *factors) if n in changes and changes[n].notna().any()]
    changes = changes.drop_duplicates(known)[
        [*known, *(n for n in changes if n not in (*factors, "set", "item_id"))]
    ]
    rows = rows.merge(changes, on=known, how="inner")
    rows["item"] = item_names(rows)
    rows["reader"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["reader_group"])
    return rows


def _changed_words(tables: Tables, measure: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row per word that some condition changes, changed or intact, with its own place in the word."""
    column = OF_WORDS[measure]
    people = column == "rt"
    words: set[str] = set()
    for batch in tables.region_batches():
        if {"is_changed", "shown", "intact"} <= set(batch):
            words |= set(_word_names(batch[batch["is_changed"].fillna(False).astype(bool)]))
    parts = []
    for batch in tables.region_batches():
        if column not in batch or not {"is_changed", "shown", "intact"} <= set(batch):
            continue
        used = batch["excluded_reason"].isna() & batch[column].notna()
        used &= batch["reader_kind"].isin(PARTICIPANT_KINDS) == people
        if people:
            used &= batch[column] > 0
        own = batch[used]
        own = own[_word_names(own).isin(words)]
        if len(own):
            keep = ["session_id", "reader_kind", "reader", "reader_group", "shown", "intact", column]
            parts.append(own[keep].assign(item=_word_names(own)))
    if not parts:
        return _empty(), ()
    rows = pd.concat(parts, ignore_index=True)
    rows["unit"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["session_id"])
    rows, remarks = bearable(rows, MOST_ROWS)
    rows["value"] = np.log(rows[column]) if people else rows[column].astype(float)
    if people:
        rows["value"] -= rows.groupby(["reader_group", "unit"])["value"].transform("mean")
    rows["reader"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["reader_group"])
    told = [_of_word(str(one), str(other)) for one, other in zip(rows["intact"], rows["shown"], strict=True)]
    described = pd.DataFrame(told, index=rows.index)
    rows = rows.drop(columns=["shown", "intact", column]).join(described)
    return rows[rows["zone"].notna()].assign(answer=None).reset_index(drop=True), remarks


def bearable(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Keep whole participants or sessions, drawn by a stable hash, up to the most rows that are fitted."""
    drawn = draw(rows["reader_group"], rows["unit"], most)
    remarks = tuple(
        f"{group}: {stay:,} of {there:,} participants or sessions, drawn by a stable hash, stand for all (at most {most:,} rows)."
        for group, (stay, there) in drawn.thinned.items()
    )
    return (rows[drawn.kept] if remarks else rows), remarks


def _word_names(regions: pd.DataFrame) -> pd.Series[str]:
    return item_names(regions) + "/" + regions["region"].astype(str)


def _empty() -> pd.DataFrame:
    names = ["reader_group", "reader_kind", "unit", "reader", "item", "value", "answer", "zone", "kind"]
    return pd.DataFrame(columns=[*names, *AGREED, *(f"same_{one}" for one in AGREED)])


@cache
def _of_word(intact: str, shown: str) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys((*AGREED, "letters"), float("nan"))
    alike: dict[str, Any] = dict.fromkeys((f"same_{one}" for one in AGREED), True)
    if intact.lower() == shown.lower():
        return {"zone": INTACT, "kind": INTACT, **nothing, **alike}
    told = of_forms(intact, shown)
    return {"zone": None, "kind": None, **nothing, **alike} if told is None else {**told, **alike}
