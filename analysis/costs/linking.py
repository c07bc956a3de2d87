"""Whether a model's surprisal foretells people's reading times, in milliseconds a bit.

The relation is taken to be linear on the scale of milliseconds (Smith & Levy, 2013, Cognition 128, 302-319; Shain, Meister, Pimentel,
Cotterell & Levy, 2024, PNAS 121). What surprisal adds is the gain in log-likelihood of words of items that the model of times
has not seen, over the same model without it. A scrambled word's own surprisal measures how improbable the string is and into how
many tokens it falls; words that were not changed, which follow it, are therefore told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.costs.clustered import clustered_slopes
from analysis.costs.words import WordTable, region_rows, word_table
from analysis.heldout import FOLDS, compete
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

ALL, UNCHANGED, CHANGED = WORDS = ("all", "unchanged", "changed")
BASELINE = ("letters", "zipf", "place")
BASELINE_SPILLED = ("previous_letters", "previous_zipf", "second_letters", "second_zipf")
SURPRISAL_SPILLED = ("previous_surprisal", "second_surprisal")


def linking(
    tables: Tables,
    factor: str,
    *,
    words: Sequence[str] = WORDS,
    folds: int = FOLDS,
    table: WordTable | None = None,
) -> pd.DataFrame:
    """Regress words' mean times on each model's surprisal, with and without baseline predictors."""
    for one in words:
        if one not in WORDS:
            raise unknown_name("words:", one, WORDS)
    table = word_table(tables, factor) if table is None else table
    means = word_means(tables, table)
    groups = [group for group in group_order(tables.trials) if f"rt {group}" in means]
    models = [group for group in group_order(tables.trials) if f"surprisal {group}" in means]
    if not groups or not models:
        lacking = "time of a person" if not groups else "surprisal of a model"
        raise UserError(
            f"no word has a {lacking}",
            mend="People need `as: moving_window`, models one that gives surprisal.",
        )
    found = []
    for group in groups:
        for model in models:
            rows = _rows(means, table, group, model)
            for which in words:
                own = rows if which == ALL else rows[rows["is_changed"] == (which == CHANGED)]
                found += _linked(own, str(tables.dictionary["study"]), folds, (group, model, which))
    return pd.DataFrame(found)


def word_means(tables: Tables, table: WordTable) -> pd.DataFrame:
    """Return the mean time and surprisal of every word, in two passes over the regions."""
    heard: list[pd.DataFrame] = []
    by_reader = ["reader_group", "reader"]
    for batch in region_rows(tables, table):
        timed = batch[batch["reader_kind"].isin(PARTICIPANT_KINDS) & (batch["rt"] > 0)]
        heard.append(_sums([timed.assign(number=timed["rt"])], by_reader, first=True))
        if len(heard) > 8:
            heard = [_sums(heard, by_reader)]
    speeds = _sums(heard, by_reader)
    speeds["speed"] = speeds["sum"] / speeds["count"]
    means = table.words
    parts: dict[str, list[pd.DataFrame]] = {}
    for batch in region_rows(tables, table):
        timed = batch[batch["reader_kind"].isin(PARTICIPANT_KINDS) & (batch["rt"] > 0)]
        timed = timed.merge(speeds[[*by_reader, "speed"]], on=by_reader, how="left")
        timed = timed.assign(number=timed["rt"] - timed["speed"])
        machine = batch[~batch["reader_kind"].isin(PARTICIPANT_KINDS) & batch["surprisal"].notna()]
        for head, rows in (("rt", timed), ("surprisal", machine.assign(number=machine["surprisal"]))):
            for group, one in rows.groupby("reader_group", sort=False):
                held = parts.setdefault(f"{head} {group}", [])
                held.append(_sums([one], table.on, first=True))
                if len(held) > 8:
                    held[:] = [_sums(held, table.on)]
    for name, held in parts.items():
        sums = _sums(held, table.on)
        head, _, group = name.partition(" ")
        level = 0.0
        if head == "rt":
            level = float(speeds.loc[speeds["reader_group"] == group, "speed"].mean())
        sums[name] = sums["sum"] / sums["count"] + level
        sums = sums.rename(columns={"count": f"n {group}"})
        kept = [*table.on, name, *([f"n {group}"] if head == "rt" else [])]
        means = means.merge(sums[kept], on=table.on, how="left")
    return means


def _sums(parts: list[pd.DataFrame], on: list[str], *, first: bool = False) -> pd.DataFrame:
    whole = pd.concat(parts, ignore_index=True)
    cells = whole.groupby(on, dropna=False, sort=False)
    if first:
        return cells["number"].agg(["sum", "count"]).reset_index()
    return cells[["sum", "count"]].sum().reset_index()


def _rows(means: pd.DataFrame, table: WordTable, group: str, model: str) -> pd.DataFrame:
    rows = means.rename(
        columns={f"rt {group}": "mean_rt", f"n {group}": "times", f"surprisal {model}": "surprisal"}
    )
    cells = rows.groupby(["set", "item_id", *table.factors], dropna=False, sort=False)
    for back, name in enumerate(SURPRISAL_SPILLED, start=1):
        there = rows["region"] - cells["region"].shift(back) == back
        rows[name] = cells["surprisal"].shift(back).where(there)
    rows["item"] = item_names(rows)
    needed = ["mean_rt", "surprisal", *SURPRISAL_SPILLED]
    return rows.dropna(subset=needed)


def rows_of(rows: pd.DataFrame, base: Sequence[str], added: Sequence[str]) -> pd.DataFrame:
    """Return the rows in which nothing that a regression names is missing."""
    return rows.dropna(subset=["mean_rt", "times", *base, *added]).reset_index(drop=True)


def _independent(rows: pd.DataFrame, names: list[str]) -> list[str]:
    """Leave out predictors that those before them determine: with two changed words length says all that place says."""
    kept: list[str] = []
    for name in names:
        values = rows[[*kept, name]].dropna().to_numpy(dtype=float)
        if np.linalg.matrix_rank(values - values.mean(axis=0)) > len(kept):
            kept.append(name)
    return kept


def _slopes(
    rows: pd.DataFrame, base: list[str], added: list[str], random: str
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the slope of a word's own surprisal and that of all, each with its ends; nan where items are too few."""
    try:
        found = clustered_slopes(rows_of(rows, base, added), "mean_rt", [*base, *added], "times", random)
    except UserError:
        nothing = (float("nan"),) * 3
        return nothing, nothing
    return found.of(["surprisal"]), found.of(added)


def _linked(
    rows: pd.DataFrame, study: str, folds: int, names: tuple[str, str, str]
) -> list[dict[str, float | str | bool | int]]:
    found: list[dict[str, float | str | bool | int]] = []
    if rows["item"].nunique() < 2 or rows["surprisal"].std() == 0:
        return found
    told = {n for n in (*BASELINE, *BASELINE_SPILLED) if rows[n].notna().all() and rows[n].std() > 0}
    random = "(1 | item)" if len(rows) > rows["item"].nunique() else ""
    for baseline in (False, True):
        for spilled in (False, True):
            base = [n for n in BASELINE if baseline and n in told]
            base += [n for n in BASELINE_SPILLED if baseline and spilled and n in told]
            base = _independent(rows, base)
            added = ["surprisal", *(SURPRISAL_SPILLED if spilled else ())]
            done = compete(
                {"without": base, "with": [*base, *added]},
                rows,
                response="mean_rt",
                random=random,
                weights="times",
                folds=folds,
                study=study,
            )
            gain, ends = done.gain("with", "without", seed=stable_seed(study, "gain", *names))
            without, full = done.candidates
            slope, total = _slopes(rows, base, added, random)
            found.append(
                {
                    **dict(zip(("reader_group", "model", "words"), names, strict=True)),
                    "baseline": baseline,
                    "spill_over": spilled,
                    "slope": slope[0],
                    "slope_low": slope[1],
                    "slope_high": slope[2],
                    **dict(zip(("slope_total", "total_low", "total_high"), total, strict=True)),
                    "gain": gain,
                    "gain_low": ends.low,
                    "gain_high": ends.high,
                    "delta_aic": full.aic - without.aic,
                    "words_used": done.rows,
                    "items": done.items,
                    "sound": full.sound and without.sound,
                }
            )
    return found
