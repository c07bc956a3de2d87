"""Reading word by word: mean times, and a model's mean surprisal, at each place before and behind a changed word.

The place of a word is counted from the changed word before it (0 is the changed word itself, 1 the first word after it) up to
three words behind; only then from the next changed one (-1 the word before it). In the level against which costs are measured
the same words count as changed that any other level changes, so that all levels show the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.costs.words import TARGET, WordTable, region_rows, word_table
from analysis.descriptives import OVER_ITEMS
from analysis.intervals import over_items, within_participant_half_widths
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names

BEFORE, AFTER = 2, 3
TIME, SURPRISAL = "time", "surprisal"
WITHIN_PARTICIPANTS, WITHIN_ITEMS, NONE = "within participants", "within items", "none"


@dataclass(frozen=True)
class ReadingProfile:
    """Means by place around a changed word."""

    table: pd.DataFrame
    factor: str
    levels: tuple[str, ...]  # the one against which costs are measured first


def reading_profile(tables: Tables, factor: str, table: WordTable | None = None) -> ReadingProfile:
    """Average times and surprisal by place, with intervals by Cousineau (2005) and Morey (2008)."""
    table = word_table(tables, factor) if table is None else table
    table = replace(table, words=table.words.assign(at=places(table)))
    keys = ["measure", "reader_group", "reader_kind", "unit", factor, "at"]
    sums: list[pd.DataFrame] = []
    for batch in region_rows(tables, table):
        rows = batch[batch["at"].notna() & batch[factor].notna()]
        people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
        rows = rows.assign(
            measure=np.where(people, TIME, SURPRISAL),
            unit=rows["reader"].where(people, item_names(rows)),
            value=np.where(people, rows["rt"].where(rows["rt"] > 0), rows["surprisal"]),
        )
        rows = rows[rows["value"].notna()]
        sums.append(rows.groupby(keys, sort=False)["value"].agg(["sum", "count"]).reset_index())
        if len(sums) > 8:
            sums = [_summed(sums, keys)]
    columns = [*keys[:3], factor, "place", "mean", "low", "high", "interval", "units", "words"]
    if not sums or not any(len(part) for part in sums):
        return ReadingProfile(pd.DataFrame(columns=columns), factor, table.levels)
    cells = _summed(sums, keys)
    cells["value"] = cells["sum"] / cells["count"]
    found = []
    for measure in (TIME, SURPRISAL):
        own = cells[cells["measure"] == measure]
        for group in group_order(own):
            one = own[own["reader_group"] == group]
            found.append(_means(one, factor, table.levels).assign(measure=measure, reader_group=group))
    return ReadingProfile(pd.concat(found, ignore_index=True)[columns], factor, table.levels)


def places(table: WordTable) -> NDArray[np.float64]:
    """Return each word's place around a changed one, nan where none is near; shape (words,)."""
    words = table.words
    by = words.groupby(["set", "item_id", *table.factors], dropna=False, sort=False).ngroup()
    changed = words["region"].where(words["zone"] == TARGET)
    since = (words["region"] - changed.groupby(by).ffill()).to_numpy(dtype=float)
    until = (changed.groupby(by).bfill() - words["region"]).to_numpy(dtype=float)
    before = np.where(until <= BEFORE, -until, np.nan)
    return np.where(since <= AFTER, since, before)


def _summed(parts: list[pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    whole = pd.concat(parts, ignore_index=True)
    return whole.groupby(keys, sort=False, as_index=False)[["sum", "count"]].sum()


def _means(one: pd.DataFrame, factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    kind = str(one["reader_kind"].iloc[0])
    words = one.groupby([factor, "at"])["count"].sum().to_dict()
    order = {level: place for place, level in enumerate(levels)}
    rows = []
    for at in sorted({int(value) for value in one["at"].to_numpy()}):
        there = one[one["at"] == at]
        wide = there.pivot_table(index="unit", columns=factor, values="value", aggfunc="mean")
        half = within_participant_half_widths(wide.dropna().to_numpy(dtype=float))
        for place, level in enumerate(wide.columns):
            values = wide[level].dropna().to_numpy(dtype=float)
            rows.append(
                {
                    "reader_kind": kind,
                    factor: level,
                    "place": at,
                    **_interval(values, float(half[place]), kind in PARTICIPANT_KINDS),
                    "units": len(values),
                    "words": int(words[level, at]),
                }
            )
    found = pd.DataFrame(rows)
    return found.sort_values([factor, "place"], key=lambda c: c.map(order) if c.name == factor else c)


def _interval(values: NDArray[np.float64], half: float, person: bool) -> dict[str, float | str]:
    mean = float(values.mean())
    if np.isfinite(half):
        how = WITHIN_PARTICIPANTS if person else WITHIN_ITEMS
        return {"mean": mean, "low": mean - half, "high": mean + half, "interval": how}
    low, high = (float("nan"), float("nan")) if person else over_items(values, limits=None)
    return {"mean": mean, "low": low, "high": high, "interval": OVER_ITEMS if np.isfinite(low) else NONE}
