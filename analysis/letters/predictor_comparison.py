"""Letter places, match scores and tokenisation as competing explanations of what changed words cost, reader by reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis import apa
from analysis.exclusions import repeats
from analysis.heldout import Competition, OutcomeModel, compete
from analysis.letters.changes import INTACT, MIXED
from analysis.letters.letter_costs import bearable, changed_trials
from analysis.mixed import Fit, fit
from analysis.plan.grammar import PLANNABLE
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed
from stimuli.similarity import match_scores

NOTHING = "length and frequency"
CONTROLS = ("cov_letters", "cov_zipf")
MATCHES = (
    *("match_slot", "match_open_bigram", "match_open_bigram_overlap", "match_seriol", "match_overlap_model"),
    *("match_spatial", "match_spatial_length", "match_levenshtein", "levenshtein", "osa"),
)
MOST_ROWS = 50_000
FEWEST_ROWS, FEWEST_ITEMS = 10, 10
"""Trials (accuracy: of the rarer answer, ten for the one predictor that models differ in) and items of a comparison."""


@dataclass(frozen=True)
class Competing:
    """Competing explanations."""

    table: pd.DataFrame
    competitions: dict[str, Competition]  # by reader group
    remarks: tuple[str, ...]  # what could not compete, and why
    rows: dict[str, pd.DataFrame] = field(default_factory=dict)

    def fitted(self, group: str, name: str, measure: str) -> Fit | None:
        """Fit one explanation once more and return it whole; None where it has no random effects or cannot be fitted."""
        done = self.competitions[group]
        formula = next(candidate.formula for candidate in done.candidates if candidate.name == name)
        if "|" not in formula:
            return None
        try:
            return fit(formula, self.rows[group], family=family_of(measure), reml=False)
        except UserError:
            return None


def competing_predictors(
    tables: Tables,
    measure: str = "correct",
    *,
    folds: int = 5,
    most_rows: int = MOST_ROWS,
    groups: Sequence[str] = (),
) -> Competing:
    """Let the explanations of changed letters compete for every reader."""
    rows = changed_trials(tables, measure)
    rows = rows[rows["zone"] != INTACT]
    if rows.empty:
        raise UserError("no trial shows changed letters", mend="Compare conditions that change letters.")
    items = tables.items.dropna(axis=1, how="all")
    known = [name for name in ("set", "item_id", *tables.factors) if name in items]
    covariates = [name for name in tables.items if str(name).startswith("cov_")]
    rows = rows.merge(tables.items[[*known, *covariates]].drop_duplicates(known), on=known, how="left")
    rows = _with_matches(rows)
    rows["participant"] = rows["reader"]
    study = str(tables.dictionary["study"])
    found: list[pd.DataFrame] = []
    remarks: list[str] = []
    competitions: dict[str, Competition] = {}
    kept: dict[str, pd.DataFrame] = {}
    for group in groups or group_order(rows):
        own = rows[rows["reader_group"] == group].reset_index(drop=True)
        if own.empty:
            of_group = tables.trials[tables.trials["reader_group"] == group]
            is_recorded = bool(of_group[measure].notna().any())
            noun = PLANNABLE[measure].noun
            remarks.append(
                f"{group}: no {f'changed trial with a usable {noun}' if is_recorded else f'{noun} was recorded'}."
            )
            continue
        if own["reader_kind"].iloc[0] not in PARTICIPANT_KINDS and measure != "correct":
            own = own[~repeats(own["value"], own[["item", *tables.factors]])]
        own, told = bearable(own, most_rows)
        own = own.reset_index(drop=True)
        if few := _too_few(own, measure):
            remarks.append(f"{group}: {few}")
            continue
        candidates, lacking = _candidates(own)
        remarks += [*told, *(f"{group}: {one}" for one in lacking)]
        kind = str(own["reader_kind"].iloc[0])
        random = "(1 | item)" if len(own) > own["item"].nunique() else ""
        if kind in PARTICIPANT_KINDS and own["participant"].nunique() > 1:
            random = " + ".join(["(1 | participant)", *([random] if random else [])])
        family = family_of(measure)
        done = compete(candidates, own, OutcomeModel("value", random, family), folds=folds, study=study)
        competitions[group] = done
        predictors = dict.fromkeys(column for columns in candidates.values() for column in columns)
        kept[group] = own[["value", "item", "participant", *predictors]]
        table = done.table(NOTHING, seed=stable_seed(study, "competing", measure, group))
        found.append(table.assign(reader_group=group, reader_kind=kind))
    table = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["reader_group", "name"])
    first = [name for name in ("reader_group", "reader_kind") if name in table]
    table = table[[*first, *(name for name in table if name not in first)]]
    return Competing(table, competitions, tuple(remarks), kept)


def _too_few(own: pd.DataFrame, measure: str) -> str:
    """State why a reader's trials carry no comparison of predictors; nothing where they do."""
    items, rarer = own["item"].nunique(), len(own)
    if measure == "correct":
        rarer = int(min(own["value"].sum(), len(own) - own["value"].sum()))
    if own["value"].nunique() > 1 and items >= FEWEST_ITEMS and rarer >= FEWEST_ROWS:
        by_item = own.groupby("item")["value"]
        if measure == "correct" and len(own) > items and int(by_item.nunique().max()) < 2:
            return "each item is always answered right or always wrong, so that no predictor of what changes has anything to explain."
        return ""
    what = "of the rarer answer" if measure == "correct" else "with letters changed"
    told = (
        f"{apa.counted(rarer, 'trial')} {what}, {apa.counted(items, 'item')}: too few to compare predictors"
    )
    return f"{told} (at least {FEWEST_ROWS} and {FEWEST_ITEMS})."


def family_of(measure: str) -> str:
    """Return the distribution by which explanations of a measure are fitted."""
    return "binomial" if measure == "correct" else "gaussian"


def _with_matches(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute match scores and length where the items came without covariates; means over an item's changed words."""
    if any(f"cov_{name}" in rows and rows[f"cov_{name}"].notna().all() for name in MATCHES):
        return rows
    told = {}
    for forms in set(rows["forms"]):
        scores = [match_scores(intact.lower(), shown.lower()) for intact, shown in forms]
        told[forms] = {f"cov_{name}": float(np.mean([score[name] for score in scores])) for name in scores[0]}
    computed = pd.DataFrame([told[forms] for forms in rows["forms"]], index=rows.index)
    if "cov_letters" not in rows:
        computed["cov_letters"] = rows["letters"]
    return rows.drop(columns=[name for name in computed if name in rows]).join(computed)


def _same(one: pd.Series[float], other: pd.Series[float]) -> bool:
    """Whether two standardised predictors are the same up to their sign."""
    return bool(np.allclose(one, other, atol=1e-6) or np.allclose(one, -other, atol=1e-6))


def _candidates(own: pd.DataFrame) -> tuple[dict[str, list[str]], list[str]]:
    """Name the predictors of each explanation and add their columns; those that cannot compete, or twice, are told."""
    remarks: list[str] = []
    controls = [name for name in CONTROLS if name in own and own[name].notna().all() and own[name].std() > 0]
    groups: dict[str, list[str]] = {}
    for title, of, usual in (
        ("letter place", "zone", "internal"),
        ("kind of change", "kind", "transposition"),
    ):
        for level in sorted(set(own[of]) - {usual, MIXED}):
            own[f"{of}_{level}"] = (own[of] == level).astype(float)
            groups.setdefault(title, []).append(f"{of}_{level}")
    groups["distance"] = ["distance"]
    for name in (*MATCHES, "shown_bigram_mean"):
        groups[name] = [f"cov_{name}"]
    shown, whole = (own.get(f"cov_tokens_{side}") for side in ("shown", "intact"))
    if shown is not None and whole is not None:
        own["token_ratio"] = np.log(shown.astype(float) / whole.astype(float))
        groups["token ratio"] = ["token_ratio"]
    groups["token edit distance"] = ["cov_token_edit_distance"]
    candidates = {NOTHING: list(controls)}
    seen: dict[str, str] = {}
    for name, columns in groups.items():
        there = [c for c in columns if c in own and own[c].notna().all() and own[c].std() > 1e-9]
        if not there:
            remarks.append(f"{name} cannot compete, because it is unknown for these items or does not vary.")
            continue
        for column in there:
            own[column] = (own[column] - own[column].mean()) / own[column].std()
        if len(there) == 1:
            twins = [one for one, other in seen.items() if _same(own[other], own[there[0]])]
            if twins:
                remarks.append(f"{name} is the same as {twins[0]} on these items and is represented by it.")
                continue
            seen[name] = there[0]
        candidates[name] = [*controls, *there]
    for column in controls:
        own[column] = own[column] - own[column].mean()
    return candidates, remarks
