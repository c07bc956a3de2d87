"""What a changed word costs people, word by word: on the word itself and on the two intact words after it.

For each zone (target, target + 1, target + 2) the times of the same words are compared between levels, with length, frequency
and the word before as covariates: once as logarithms (a linear mixed model: ratios), once as they are (Gamma with identity
link: milliseconds), since a logarithm can take away or turn round what milliseconds show (Lo & Andrews, 2015, Frontiers in
Psychology 6:1171). Where a trial has several words of a zone they are averaged first: the level belongs to the trial, and
words of one trial are no independent evidence of it. All zones are read in one pass; where there are more rows than a
model should hold, whole participants are drawn by a stable hash, and the remarks say how many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.costs.words import COVARIATES, ZONES, WordTable, region_rows, word_table
from analysis.frames import indicator
from analysis.ladder import Climb, climb, slopes
from analysis.mixed import margins
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names
from analysis.whole_readers import place_in_order
from stimuli.errors import UserError

LOG, OWN = SCALES = ("log", "ms")
MOST_ROWS = 200_000
_KEPT = ("reader_group", "reader", "session_id", "trial_index", "attempt", "item", "zone", "rt")


@dataclass(frozen=True)
class SpillOver:
    """Costs of single words."""

    table: pd.DataFrame
    models: dict[tuple[str, str, str], Climb]
    remarks: tuple[str, ...]  # what was left out, in sentences


def spill_over(
    tables: Tables,
    factor: str,
    *,
    most_rows: int = MOST_ROWS,
    covariates: tuple[str, ...] = COVARIATES,
    table: WordTable | None = None,
) -> SpillOver:
    """Model the times of changed words and of the two words after them."""
    table = word_table(tables, factor) if table is None else table
    unknown = [name for name in covariates if name not in table.words]
    if unknown:
        raise UserError(
            f"covariate {unknown[0]!r} is not known of words", mend=f"Choose among {', '.join(COVARIATES)}."
        )
    rows, remarks = _rows(tables, table, most_rows, covariates)
    if rows.empty:
        raise UserError(
            "no person has a time on a changed word or on one after it",
            mend="Let people read with `as: moving_window`; models have no reading times.",
        )
    found: list[pd.DataFrame] = []
    models: dict[tuple[str, str, str], Climb] = {}
    for group in group_order(rows):
        for zone in ZONES:
            own = rows[(rows["reader_group"] == group) & (rows["zone"] == zone)].reset_index(drop=True)
            levels = [level for level in table.levels if (own[factor] == level).any()]
            if len(levels) < 2 or levels[0] != table.levels[0]:
                remarks.append(f"{zone}: no words to compare for reader group {group}.")
                continue
            rows_of_trials = _by_trial(own, factor, covariates)
            for scale in SCALES:
                climbed, told = _fitted(rows_of_trials, factor, levels, scale, covariates)
                models[group, zone, scale] = climbed
                remarks += [f"{zone}: {one}" for one in told if scale == LOG]
                if climbed.fit is None:
                    remarks.append(f"{zone}, {scale} scale: {climbed.steps[-1]}")
                    continue
                found.append(
                    _told(rows_of_trials, climbed, factor, levels, scale).assign(
                        reader_group=group, zone=zone
                    )
                )
    columns = ["reader_group", "zone", "scale", factor]
    whole = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)
    return SpillOver(whole[[*columns, *(n for n in whole if n not in columns)]], models, tuple(remarks))


def _rows(
    tables: Tables, table: WordTable, most: int, covariates: tuple[str, ...]
) -> tuple[pd.DataFrame, list[str]]:
    """Collect the times of the words that a model needs, of as many participants as it should hold."""
    people = tables.trials[tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)]
    parts: list[pd.DataFrame] = []
    held, threshold = 0, 1.0
    order = {str(reader): place_in_order(str(reader)) for reader in people["reader"].unique()}
    untimed = 0
    columns = list(dict.fromkeys([*_KEPT, "reader_kind", table.factor, *covariates]))
    for batch in region_rows(tables, table):
        batch = batch[batch["reader_kind"].isin(PARTICIPANT_KINDS)]
        kept = batch[batch["zone"].notna() & (batch["reader"].map(order) <= threshold)]
        untimed += int((~(kept["rt"] > 0)).sum())
        kept = kept[kept["rt"] > 0]
        parts.append(kept.assign(item=item_names(kept))[columns])
        held += len(kept)
        while held > most and threshold > 0.01:
            threshold *= 0.8
            parts = [part[part["reader"].map(order) <= threshold] for part in parts]
            held = sum(map(len, parts))
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    remarks = [f"Words without a time above 0: {untimed:,}; in no model."] if untimed else []
    if threshold < 1.0:
        remarks.append(
            f"Of {len(order):,} participants {rows['reader'].nunique():,} are in the models of single words, drawn by a "
            f"stable hash, since more than {most:,} rows say nothing more and take hours."
        )
    return rows, remarks


def _by_trial(own: pd.DataFrame, factor: str, covariates: tuple[str, ...]) -> pd.DataFrame:
    """Average the words that a trial has in a zone; one row a trial."""
    keys = ["reader", "session_id", "trial_index", "attempt", "item", factor]
    told = {name: (name, "mean") for name in covariates if name not in keys}
    trials = (
        own.assign(log_rt=np.log(own["rt"]))
        .groupby(keys, sort=False, dropna=False)
        .agg(rt=("rt", "mean"), log_rt=("log_rt", "mean"), words=("rt", "size"), **told)
    )
    return trials.reset_index().rename(columns={"reader": "participant"})


def _fitted(
    own: pd.DataFrame, factor: str, levels: list[str], scale: str, covariates: tuple[str, ...]
) -> tuple[Climb, list[str]]:
    told, used = [], []
    for name in covariates:
        values = own[name]
        if values.notna().sum() == 0 or not values.std() > 1e-9:
            told.append(f"{name} is not known or does not vary; not a covariate.")
            continue
        # the first word of a text has none before it: at the mean it neither adds nor takes away
        own[f"c_{name}"] = (values - values.mean()).fillna(0.0)
        used.append(f"c_{name}")
    columns = [indicator(factor, level) for level in levels[1:]]
    for name, level in zip(columns, levels[1:], strict=True):
        own[name] = (own[factor] == level).astype(float)
    fixed = " + ".join([factor, *used])
    random = slopes(
        columns if own["participant"].nunique() > len(columns) + 1 else [], "participant", extra="(1 | item)"
    )
    if own["participant"].nunique() < 2:
        random = ["(1 | item)"]
        told.append("one participant; nothing can be said beyond them.")
    settings = {"levels": {factor: levels}}
    if scale == LOG:
        return climb(f"log_rt ~ {fixed}", random, own, **settings), told
    return climb(f"rt ~ {fixed}", random, own, family="Gamma", link="identity", **settings), told


def _told(own: pd.DataFrame, climbed: Climb, factor: str, levels: list[str], scale: str) -> pd.DataFrame:
    assert climbed.fit is not None
    means = margins(climbed.fit, [factor])
    table = means.against(levels[0], adjust="none")
    middle = float(means.table()["estimate"].iloc[0])
    base = float(np.exp(middle)) if scale == LOG else middle
    columns = {
        name: table[name].to_numpy(dtype=float) for name in ("estimate", "se", "df", "ci_low", "ci_high", "p")
    }
    percents = {
        f"percent{end}": 100 * np.expm1(columns[name]) if scale == LOG else 100 * columns[name] / base
        for end, name in (("", "estimate"), ("_low", "ci_low"), ("_high", "ci_high"))
    }
    if scale == OWN:
        # the interval of a ratio of two estimates is not the interval of its numerator
        percents["percent_low"] = percents["percent_high"] = np.full(len(table), np.nan)
    return pd.DataFrame(
        {
            "scale": scale,
            factor: levels[1:],
            "intact": base,
            "estimate": columns["estimate"],
            "se": columns["se"],
            "df": columns["df"],
            "low": columns["ci_low"],
            "high": columns["ci_high"],
            "p": columns["p"],
            **percents,
            "rows": len(own),
            "participants": own["participant"].nunique(),
            "items": own["item"].nunique(),
            "words": int(own["words"].sum()),
            "stands": climbed.stands,
        }
    )
