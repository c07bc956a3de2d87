"""Accuracy with failures counted as wrong, left out or at chance, missing answers, and tests against chance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import failures_as_wrong, is_choice, is_valid, judged
from analysis.exclusions import each_answer_once
from analysis.intervals import share_over_items
from analysis.measures.resampling import interval, resampled_ratios
from analysis.mixed.inference import corrected
from analysis.readers import PARTICIPANT_KINDS, kinds_of
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed


def cell_columns(trials: pd.DataFrame, by: Sequence[str] | str) -> list[str]:
    """Return the columns that are named, of which one may be given as text alone."""
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in trials.columns:
            raise unknown_name("by: column", name, list(trials.columns))
    return names


GROUP = "reader_group"


def asked(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the used trials that asked for an answer that can be right or wrong."""
    return trials[trials["excluded_reason"].isna() & judged(trials)]


def with_chance(
    trials: pd.DataFrame, items: pd.DataFrame, factors: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Add ``chance``: 1 / number of choices for choices, 0 for typed answers."""
    chance = pd.Series(0.0, index=trials.index)
    choosing = is_choice(trials)
    if choosing.any():
        if "choices" not in items:
            raise UserError("the items table has no column 'choices'", mend="Export the study again.")
        keys = [name for name in ("set", "item_id") if name in items]
        items = items.assign(_many=items["choices"].map(_many))
        choice_counts = items.groupby(keys)["_many"].agg(["min", "max"])
        # where conditions differ in their number of choices the line of the very condition says it
        is_same = (choice_counts["min"] == choice_counts["max"]).all()
        keys += [name for name in factors if name in items and not is_same]
        lines = items.groupby(keys, dropna=False)["_many"].first()
        n_choices = trials.loc[choosing, keys].merge(lines.reset_index(), on=keys, how="left")["_many"]
        used = trials.loc[choosing, "excluded_reason"].isna().to_numpy()
        n_unknown = int((n_choices.isna().to_numpy() & used).sum())
        if n_unknown:
            raise UserError(
                f"the items table does not say how many choices {n_unknown:,} trials had",
                mend="Export the study again, with the items that its sessions showed.",
            )
        chance.loc[choosing] = (1.0 / n_choices.to_numpy(dtype=float)).tolist()
    return trials.assign(chance=chance)


def accuracy(
    trials: pd.DataFrame, by: Sequence[str] | str = (), *, study: str = "", resamples: int = 2000
) -> pd.DataFrame:
    """Return accuracy with failures wrong, left out and at chance, with bootstrap intervals and bounds."""
    by = cell_columns(trials, by)
    rows = _cells(trials, by)
    kinds = kinds_of(rows) if len(rows) else {}
    results = []
    for key, answers in rows.groupby([GROUP, *by], observed=True, sort=False):
        cell = dict(zip([GROUP, *by], map(str, key), strict=True))
        valid = is_valid(answers)
        right = answers["correct"].where(valid, 0.0)
        guessed = (
            answers["correct"].where(valid, answers["chance"]) if "chance" in answers else right * np.nan
        )
        n, missing, correct = len(answers), int((~valid).sum()), int(right.sum())
        names = ["reader"] if kinds[cell[GROUP]] in PARTICIPANT_KINDS else ["set", "item_id"]
        sums = pd.DataFrame({"n": 1.0, "valid": valid.astype(float), "right": right, "guessed": guessed})
        sums = sums.groupby(answers.groupby(names, dropna=False).ngroup()).sum(min_count=1)
        summary: dict[str, Any] = {
            "trials": n,
            "valid": n - missing,
            "missing": missing,
            "correct": correct,
            "missing_share": missing / n,
            "wrong": float(right.mean()),
            "valid_only": float(answers["correct"].where(valid).mean()),
            "chance": float(guessed.mean()),
            "lowest": correct / n,
            "highest": (correct + missing) / n,
        }
        # one set of drawn units for all three ways, which are thus compared on the same resamples
        numerators, denominators = (
            sums[list(names)].to_numpy() for names in zip(*_WAYS.values(), strict=True)
        )
        if resamples:
            seed = stable_seed(study, "accuracy", *map(str, key))
            drawn = resampled_ratios(numerators, denominators, seed, resamples)
            for name, draws in zip(_WAYS, drawn.T, strict=True):
                ends = interval(draws)
                summary |= {f"{name}_low": ends.low, f"{name}_high": ends.high}
        results.append({**cell, **summary})
    return pd.DataFrame(results)


def missingness(trials: pd.DataFrame, by: Sequence[str] | str = ()) -> pd.DataFrame:
    """Count answers by status: what was missing, where, and of which kind."""
    by = cell_columns(trials, by)
    rows = _cells(trials, by, judged=False)
    keys = [GROUP, *by]
    counts = rows.groupby([*keys, "response_status"], observed=True).size().unstack(fill_value=0)
    statuses = [name for name in counts.columns if name != "valid"]
    table = pd.DataFrame({"trials": counts.sum(axis=1)})
    table["missing"] = counts[statuses].sum(axis=1).astype(int)
    table["missing_share"] = table["missing"] / table["trials"]
    return table.join(counts).reset_index()


def adjusted_accuracy(trials: pd.DataFrame, by: Sequence[str] | str = ()) -> pd.DataFrame:
    """Return accuracy, that of the answered, and the out-of-context ratio (Lee & Lim, 2024, appendix D)."""
    by = cell_columns(trials, by)
    table = accuracy(trials, by, resamples=0)
    renamed = {
        **{name: name for name in (GROUP, *by, "trials")},
        "valid": "answered",
        "correct": "correct",
        "wrong": "accuracy",
        "valid_only": "adjusted_accuracy",
        "missing_share": "out_of_context_ratio",
    }
    return table[list(renamed)].rename(columns=renamed)


_WAYS = {"wrong": ("right", "n"), "valid_only": ("right", "valid"), "chance": ("guessed", "n")}
"""Ways to count answers that failed, with the sums whose ratio each is."""


def _cells(trials: pd.DataFrame, by: Sequence[str], *, judged: bool = True) -> pd.DataFrame:
    answered = trials["excluded_reason"].isna() & trials["response_status"].notna()
    rows = asked(trials) if judged else trials[answered]
    return rows[rows[list(by)].notna().all(axis=1)] if by else rows


def _many(choices: Any) -> float:
    try:
        options = json.loads(choices) if isinstance(choices, str) else None
    except ValueError:
        return float("nan")
    return float(len(options)) if isinstance(options, list) and options else float("nan")


ALPHA = 0.05
LEAST_PARTICIPANTS = 6
"""Fewer give no verdict: by a two-sided sign test, p exceeds .05 even if the accuracy of each is above chance."""


def against_chance(trials: pd.DataFrame, by: Sequence[str] | str, *, study: str = "") -> pd.DataFrame:
    """Compare the accuracy of choices with chance in each cell."""
    by = cell_columns(trials, by)
    rows = _cells(trials, by)
    rows = each_answer_once(rows[is_choice(rows) & (rows["chance"] > 0)], by)
    if rows.empty:
        return pd.DataFrame()
    keys = [GROUP, *by]
    table = accuracy(rows, by, study=study)
    cells = rows.assign(_right=failures_as_wrong(rows)).groupby(keys, observed=True, sort=False)
    table["chance"] = cells["chance"].mean().to_numpy()
    tests = [
        stats.binomtest(int(k), int(n), float(p))
        for k, n, p in zip(table["correct"], table["trials"], table["chance"], strict=True)
    ]
    ends = [test.proportion_ci(0.95, "exact") for test in tests]
    kinds = kinds_of(rows)
    units = [
        (row["wrong_low"], row["wrong_high"])
        if kinds[row[GROUP]] in PARTICIPANT_KINDS
        else _over_items(answers)
        for row, (_, answers) in zip(table.to_dict("records"), cells, strict=True)
    ]
    p = np.array([float(test.pvalue) for test in tests])
    result = pd.DataFrame(
        {
            **{name: table[name] for name in keys},
            "kind": [kinds[str(group)] for group in table[GROUP]],
            "trials": table["trials"],
            "correct": table["correct"],
            "answered": table["valid"],
            "accuracy": table["wrong"],
            **dict(zip(("low", "high"), np.array([(end.low, end.high) for end in ends]).T, strict=True)),
            **dict(zip(("unit_low", "unit_high"), np.array(units).T, strict=True)),
            "chance": table["chance"],
            "p": p,
            "p_adjusted": corrected(p, "BH"),
            "adjusted_accuracy": table["valid_only"],
            "out_of_context_ratio": table["missing_share"],
        }
    )
    is_few = result["kind"].isin(PARTICIPANT_KINDS) & (
        cells["reader"].nunique().to_numpy() < LEAST_PARTICIPANTS
    )
    is_significant = (result["p_adjusted"] < ALPHA) & ~is_few
    below = (
        is_significant & (result["accuracy"] < result["chance"]) & ~(result["unit_high"] >= result["chance"])
    )
    above = (
        is_significant & (result["accuracy"] > result["chance"]) & ~(result["unit_low"] <= result["chance"])
    )
    result["verdict"] = np.where(below, "below", np.where(above, "above", ""))
    return result


def at_chance(
    trials: pd.DataFrame,
    items: pd.DataFrame,
    factors: Mapping[str, Sequence[str]],
    factor: str,
    level: str,
    study: str = "",
) -> set[str]:
    """Return the models (and baselines) that choose answers in a level, but are not shown to exceed chance there."""
    try:
        tests = against_chance(with_chance(trials, items, factors), [factor], study=study)
    except UserError:  # without the number of choices, chance is unknown
        return set()
    if tests.empty:
        return set()
    is_shown = tests["kind"].isin(PARTICIPANT_KINDS) | (tests["verdict"] == "above")
    return set(tests.loc[(tests[factor] == level) & ~is_shown, GROUP].astype(str))


def _over_items(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the interval of one reader's proportion correct in a cell, over its items."""
    shares = rows.groupby(["set", "item_id"], dropna=False)["_right"].agg(["mean", "size"])
    return share_over_items(shares["mean"].to_numpy(dtype=float), shares["size"].to_numpy(dtype=float))
