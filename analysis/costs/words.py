"""The words that a study shows, each with its place beside the changed word, its length, frequency and the words before it.

Regions are read twice, batch by batch: once for the words themselves, which are as many as the items have words however many
readers there are, once for what readers did with them. Only sums or the rows that are asked for are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.lexicon import zipf
from stimuli.scramble.words import find_words, is_letter, nfc

TARGET, NEXT, SECOND = ZONES = ("target", "target + 1", "target + 2")
"""The changed word, the first and the second intact word after it."""

COVARIATES = ("letters", "zipf", "previous_letters", "previous_zipf")
SPILLED = ("previous_letters", "previous_zipf", "second_letters", "second_zipf")
_KEY = ["set", "item_id"]


@dataclass(frozen=True)
class WordTable:
    """The words of a study."""

    words: pd.DataFrame
    factor: str  # the factor whose levels change words
    levels: tuple[str, ...]  # its levels, the intact one first
    factors: tuple[str, ...]  # all factors of the study

    @property
    def on(self) -> list[str]:
        """The columns by which a region finds its word."""
        return [*_KEY, *self.factors, "region"]


def word_table(tables: Tables, factor: str) -> WordTable:
    """Collect the words of a study from its regions."""
    factors, levels = tables.factors, tables.levels_of(factor)
    names = [*_KEY, *factors, "region"]
    parts: list[pd.DataFrame] = []
    for batch in used_regions(tables):
        if batch["region"].isna().any():
            raise UserError(
                "regions.parquet: a region has no number", mend="Number regions from 0 in a trial."
            )
        parts.append(batch[[*names, "shown", "intact", "is_changed"]].drop_duplicates(names))
        if len(parts) > 8:
            parts = [pd.concat(parts, ignore_index=True).drop_duplicates(names)]
    if not parts:
        raise UserError(
            "no word has a time or a surprisal of its own",
            mend="Let people read with `as: moving_window`, and models give surprisal (see docs/trials.md).",
        )
    words = pd.concat(parts, ignore_index=True).drop_duplicates(names).sort_values(names, ignore_index=True)
    words["is_changed"] = words["is_changed"].fillna(False).astype(bool)
    if not words["is_changed"].any():
        raise UserError(
            "no region is marked as changed, so no word is a target",
            mend="Compare conditions that change words.",
        )
    words["word"] = (
        words["set"].astype(str) + "/" + words["item_id"] + "/" + words["region"].map("{:g}".format)
    )
    words["zone"] = _zones(words, [*_KEY, *factors], factor, levels[0])
    _describe(words, list(factors), str(tables.dictionary["language"]))
    return WordTable(words, factor, tuple(levels), tuple(factors))


def used_regions(tables: Tables) -> Iterator[pd.DataFrame]:
    """Yield the regions of trials with an item whose own and whose trial's reason is empty, batch by batch."""
    for batch in tables.region_batches():
        kept = batch[batch["excluded_reason"].isna() & batch["item_id"].notna()].copy()
        if not len(kept):
            continue
        for name in ("rt", "surprisal"):
            kept[name] = pd.to_numeric(kept[name]).astype(float) if name in kept else np.nan
        kept["region"] = pd.to_numeric(kept["region"]).astype(float)
        yield kept


def region_rows(tables: Tables, table: WordTable) -> Iterator[pd.DataFrame]:
    """Yield the used regions with all that is known of their words, batch by batch."""
    own = ["shown", "intact", "is_changed"]
    for batch in used_regions(tables):
        yield batch.drop(columns=[n for n in own if n in batch]).merge(table.words, on=table.on, how="left")


def _zones(words: pd.DataFrame, cell: list[str], factor: str, intact: str) -> pd.Series[str]:
    """Say of every word how far behind a changed one it stands."""
    base = words[factor] == intact
    anywhere = set(words.loc[words["is_changed"], [*_KEY, "region"]].itertuples(index=False, name=None))
    places = list(words[[*_KEY, "region"]].itertuples(index=False, name=None))
    ever = np.fromiter((place in anywhere for place in places), dtype=bool, count=len(places))
    target = pd.Series(np.where(base, ever, words["is_changed"]), index=words.index)
    by = words.groupby(cell, dropna=False, sort=False).ngroup()
    follows = (words["region"].diff() == 1) & (by.diff() == 0)
    first = target.shift(1, fill_value=False) & follows
    second = target.shift(2, fill_value=False) & follows & follows.shift(1, fill_value=False)
    named = np.select([target, first, second], np.array(ZONES, dtype=object), default="")
    zone: pd.Series[str] = pd.Series(named, index=words.index, dtype=object).replace("", None)
    return zone


def _describe(words: pd.DataFrame, factors: list[str], language: str) -> None:
    letters = {text: letters_in(text) for text in words["shown"].dropna().unique()}
    frequency = {text: frequency_of(text, language) for text in words["intact"].dropna().unique()}
    words["letters"] = words["shown"].map(letters).astype(float)
    words["zipf"] = words["intact"].map(frequency).astype(float)
    words["place"] = words["region"]
    cells = words.groupby([*_KEY, *factors], dropna=False, sort=False)
    for back, head in ((1, "previous"), (2, "second")):
        there = words["region"] - cells["region"].shift(back) == back
        for name in ("letters", "zipf"):
            words[f"{head}_{name}"] = cells[name].shift(back).where(there)


def letters_in(text: str) -> int:
    """Count the letters of a region, as grapheme clusters; punctuation does not count."""
    return sum(is_letter(cluster) for word in find_words(nfc(text)) for cluster in word.clusters)


def frequency_of(text: str, language: str) -> float:
    """Return the mean Zipf frequency of a region's words; nan where the language has no list or the region no word."""
    found = [zipf(word.text, language) for word in find_words(nfc(text))]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else float("nan")
