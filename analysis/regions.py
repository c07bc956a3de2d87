"""Times, surprisal and entropy of named regions, one value a trial, and the length and frequency of what is read.

Values are summed over the words of a region; a region of which one word has none, or is excluded, has none either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.plan.grammar import OF_FIXATIONS
from analysis.plan.plans import regions_of
from stimuli.lexicon import zipf
from stimuli.words import find_words, is_letter, nfc

NAMES = "region_names"
SUMMED = {"region_time": "rt", **{name: name for name in ("surprisal", "entropy", *OF_FIXATIONS)}}
"""The measures of a region, and the column of its words that each sums."""
OF_WORDS = ("letters", "zipf", "previous_zipf")
"""Covariates that describe what is read."""
_TRIAL = ["session_id", "trial_index", "attempt"]


def letters_in(text: str) -> int:
    """Count the letters of a region, as grapheme clusters; punctuation does not count."""
    return sum(is_letter(cluster) for word in find_words(nfc(text)) for cluster in word.clusters)


def frequency_of(text: str, language: str) -> float:
    """Return the mean Zipf frequency of a region's words; nan where the language has no list or the region no word."""
    frequencies = [zipf(word.text, language) for word in find_words(nfc(text))]
    listed = [value for value in frequencies if value is not None]
    return float(np.mean(listed)) if listed else float("nan")


def covariate_column(covariate: str, region: str | None) -> str:
    """Name the column of the trials that holds a covariate: of a region, of the whole text, or of the trial itself."""
    if covariate not in OF_WORDS:
        return covariate
    return f"{covariate}_{region or 'of_text'}"


def planned_columns(
    planned: Collection[Mapping[str, Any]],
    trials: pd.DataFrame,
    items: pd.DataFrame,
    region_batches: Iterable[pd.DataFrame],
    *,
    factors: Collection[str],
    language: str,
) -> dict[str, pd.Series[Any]]:
    """Return the columns of trials that planned analyses of regions, and with covariates, need."""
    columns: dict[str, pd.Series[Any]] = {}
    if any("covariates" in spec and not regions_of(spec) for spec in planned):
        columns |= _of_texts(trials, items, factors)
    regions = dict.fromkeys(name for spec in planned for name in regions_of(spec))
    if not regions:
        return columns
    words = pd.concat([*_words_in(region_batches, regions)], ignore_index=True)
    places = pd.MultiIndex.from_frame(trials[_TRIAL])
    for region in regions:
        values = _of_region(words[words["name"] == region], language)
        values = values[~values.index.duplicated()].reindex(places)
        columns |= {f"{name}_{region}": pd.Series(values[name].to_numpy(), trials.index) for name in values}
    return columns


def _words_in(region_batches: Iterable[pd.DataFrame], regions: Collection[str]) -> Iterator[pd.DataFrame]:
    """Yield the words in these regions, each once for every region, with the intact word before it."""
    columns = [*_TRIAL, "name", "region", "shown", "intact", "before", "is_excluded_itself", *SUMMED.values()]
    yield pd.DataFrame(columns=columns, dtype=object)
    last = pd.DataFrame()
    for batch in region_batches:
        rows = pd.concat([last, batch], ignore_index=True)
        for name in (NAMES, *SUMMED.values()):
            rows[name] = rows.get(name, np.nan)
        is_next = (rows[_TRIAL] == rows[_TRIAL].shift()).all(axis=1) & (rows["region"].diff() == 1)
        rows["before"] = rows["intact"].shift().where(is_next)
        last, rows = batch.tail(1), rows.iloc[len(last) :]
        named = rows[rows[NAMES].notna()]
        named = named.assign(name=named[NAMES].astype(str).str.split(",")).explode("name")
        yield named.loc[named["name"].isin(regions), columns]


def _of_region(words: pd.DataFrame, language: str) -> pd.DataFrame:
    """Return the values of a region in each trial, with the length and frequency of its words."""
    texts = words[["shown", "intact", "before"]]
    letters = texts["shown"].map({text: letters_in(text) for text in texts["shown"].dropna().unique()})
    known = pd.unique(texts[["intact", "before"]].to_numpy().ravel())
    frequency = {text: frequency_of(text, language) for text in known if isinstance(text, str)}
    is_out = words["is_excluded_itself"].astype(bool)
    values = {
        name: pd.to_numeric(words[column]).astype(float).mask(is_out) for name, column in SUMMED.items()
    }
    frame = pd.DataFrame(
        {
            **{name: words[name] for name in _TRIAL},
            **values,
            "letters": letters.astype(float),
            "zipf": texts["intact"].map(frequency).astype(float),
            "previous_zipf": texts["before"].map(frequency).astype(float),
        }
    )
    trials = frame.groupby(_TRIAL, sort=False)
    size = trials.size()
    sums = trials[[*SUMMED, "letters"]].sum()
    complete = trials[[*SUMMED, "letters"]].count().eq(size, axis=0)
    return sums.where(complete).assign(
        zipf=trials["zipf"].mean(), previous_zipf=trials["previous_zipf"].first()
    )


def _of_texts(
    trials: pd.DataFrame, items: pd.DataFrame, factors: Collection[str]
) -> dict[str, pd.Series[Any]]:
    """Return the letters and the mean frequency of the text of each trial's item in its condition."""
    keys = [name for name in ("set", "item_id", *factors) if name in items]
    described = [name for name in ("cov_letters", "cov_words", "cov_zipf") if name in items]
    of_items = items[[*keys, *described]].drop_duplicates(keys)
    joined = trials[keys].merge(of_items, on=keys, how="left")
    values = {name: pd.to_numeric(joined[name]).to_numpy(dtype=float) for name in described}
    if "cov_letters" in values:  # on average a word
        values["cov_letters"] = values["cov_letters"] * values.pop("cov_words", np.ones(len(joined)))
    return {
        covariate_column(name.removeprefix("cov_"), None): pd.Series(column, trials.index)
        for name, column in values.items()
    }
