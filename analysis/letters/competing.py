"""Letter places, match scores and tokenisation as competing explanations of what changed words cost, reader by reader.

Every explanation is a model of the changed trials alone (the intact form would make any of them look good), with the words' length
and frequency in all of them, fitted by maximum likelihood and held out item by item (:mod:`analysis.heldout`). Akaike weights
are of the models in the table; that the best one is good says its held-out gain over the words' length and frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.heldout import Competition, compete
from analysis.letters.changes import INTACT, MIXED
from analysis.letters.costs_of_letters import changed_trials
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

NOTHING = "length and frequency"
CONTROLS = ("cov_letters", "cov_zipf")
MATCHES = (
    *("match_slot", "match_open_bigram", "match_open_bigram_overlap", "match_seriol", "match_overlap_model"),
    *("match_spatial", "match_spatial_length", "match_levenshtein", "levenshtein", "osa"),
)
MOST_ROWS = 50_000


@dataclass(frozen=True)
class Competing:
    """Competing explanations.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per reader group and explanation, best AIC first: ``reader_group, reader_kind`` and the columns of
        :meth:`analysis.heldout.Competition.table`; gains are over ``length and frequency``.
    competitions : dict of str to Competition
        By reader group.
    remarks : tuple of str
        What could not compete, and why.
    """

    table: pd.DataFrame
    competitions: dict[str, Competition]
    remarks: tuple[str, ...]


def competing_predictors(
    tables: Tables,
    measure: str = "correct",
    *,
    folds: int = 5,
    most_rows: int = MOST_ROWS,
    groups: Sequence[str] = (),
) -> Competing:
    """Let the explanations of changed letters compete for every reader.

    Parameters
    ----------
    tables : Tables
        Items need their covariates (``cov_match_…``, and ``cov_tokens_…`` where the study names a tokenizer).
    measure : str
        As :func:`analysis.fidelity.items.item_values`; ``correct`` is modelled as binomial.
    folds : int
        Of items.
    most_rows : int
        Rows of one reader group above which whole participants are drawn by a stable hash (of a model: rows).
    groups : sequence of str
        Reader groups; all by default.

    Raises
    ------
    UserError
        As :func:`~analysis.letters.costs_of_letters.changed_trials`; where no item is changed.
    """
    rows = changed_trials(tables, measure)
    rows = rows[rows["zone"] != INTACT]
    if rows.empty:
        raise UserError("no trial shows changed letters", mend="Compare conditions that change letters.")
    known = [name for name in ("set", "item_id", *tables.factors) if name in tables.items]
    known = [name for name in known if tables.items[name].notna().any()]
    covariates = [name for name in tables.items if str(name).startswith("cov_")]
    rows = rows.merge(tables.items[[*known, *covariates]].drop_duplicates(known), on=known, how="left")
    rows["participant"] = rows["reader"]
    study, found, remarks, competitions = str(tables.dictionary["study"]), [], [], {}
    for group in groups or group_order(rows):
        own = rows[rows["reader_group"] == group].reset_index(drop=True)
        if own.empty:
            remarks.append(f"{group}: no changed trial.")
            continue
        own, told = _of_bearable_size(own, study, most_rows)
        candidates, lacking = _candidates(own)
        remarks += [f"{group}: {one}" for one in (*told, *lacking)]
        kind = str(own["reader_kind"].iloc[0])
        random = "(1 | item)" if len(own) > own["item"].nunique() else ""
        if kind in PARTICIPANT_KINDS and own["participant"].nunique() > 1:
            random = " + ".join(["(1 | participant)", *([random] if random else [])])
        if own["value"].nunique() < 2 or own["item"].nunique() < 2:
            remarks.append(f"{group}: all values are equal, or there is one item; nothing can be explained.")
            continue
        family = "binomial" if measure == "correct" else "gaussian"
        done = compete(
            candidates, own, response="value", random=random, family=family, folds=folds, study=study
        )
        competitions[group] = done
        table = done.table(NOTHING, seed=stable_seed(study, "competing", measure, group))
        found.append(table.assign(reader_group=group, reader_kind=kind))
    table = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["reader_group", "name"])
    first = [name for name in ("reader_group", "reader_kind") if name in table]
    table = table[[*first, *(name for name in table if name not in first)]]
    return Competing(table, competitions, tuple(remarks))


def _of_bearable_size(own: pd.DataFrame, study: str, most: int) -> tuple[pd.DataFrame, list[str]]:
    if len(own) <= most:
        return own, []
    units = own["unit"].drop_duplicates()
    drawn = units.map(lambda unit: stable_seed(study, "competing", str(unit))).sort_values()
    sizes = own["unit"].value_counts()
    held = units.loc[drawn.index].map(sizes).cumsum() <= most
    kept = set(units.loc[drawn.index][held])
    if not kept:
        kept = {units.loc[drawn.index].iloc[0]}
    left = own[own["unit"].isin(kept)].reset_index(drop=True)
    told = f"{len(kept):,} of {len(units):,} participants or sessions, drawn by a stable hash, stand for all ({most:,} rows)."
    return left, [told]


def _candidates(own: pd.DataFrame) -> tuple[dict[str, list[str]], list[str]]:
    """Name the predictors of each explanation and add their columns; those that cannot compete are told."""
    remarks: list[str] = []
    controls = [name for name in CONTROLS if name in own and own[name].notna().all() and own[name].std() > 0]
    groups: dict[str, list[str]] = {}
    for level in sorted(set(own["zone"]) - {"internal", MIXED}):
        own[f"zone_{level}"] = (own["zone"] == level).astype(float)
        groups.setdefault("letter place", []).append(f"zone_{level}")
    for level in sorted(set(own["kind"]) - {"transposition", MIXED}):
        own[f"kind_{level}"] = (own["kind"] == level).astype(float)
        groups.setdefault("kind of change", []).append(f"kind_{level}")
    groups["distance"] = ["distance"]
    for name in (*MATCHES, "shown_bigram_mean"):
        groups[name] = [f"cov_{name}"]
    shown, whole = (own.get(f"cov_tokens_{side}") for side in ("shown", "intact"))
    if shown is not None and whole is not None:
        own["token_ratio"] = np.log(shown.astype(float) / whole.astype(float))
        groups["token ratio"] = ["token_ratio"]
    groups["token edit distance"] = ["cov_token_edit_distance"]
    candidates = {NOTHING: list(controls)}
    for name, columns in groups.items():
        there = [c for c in columns if c in own and own[c].notna().all() and own[c].std() > 1e-9]
        if not there:
            remarks.append(f"{name} cannot compete: it is not known of these items or does not vary.")
            continue
        for column in there:
            own[column] = (own[column] - own[column].mean()) / own[column].std()
        candidates[name] = [*controls, *there]
    for column in controls:
        own[column] = own[column] - own[column].mean()
    return candidates, remarks
