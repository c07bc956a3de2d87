"""Trained models beside their base, condition by condition over the same items: recovery rates and shares right.

After Figure 9 of Cao et al. (2023). What training on scrambled text does beyond more training is the contrast with the model that
was trained on the same texts as they are (FT-Ori).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong
from analysis.inside.trained import Family
from analysis.measures.accuracy import accuracy, asked
from analysis.measures.recovery import recovery, recovery_trials
from analysis.measures.resampling import bootstrap
from analysis.mixed import Fit, LikelihoodRatio, fit, likelihood_ratio_test
from analysis.mixed.adjustments import corrected
from analysis.published.h_test_tables import FEWEST_ITEMS, paired, sign_flips
from analysis.published.scrambled_bench_study import study_parts, trials_of
from analysis.tables import Tables
from stimuli.errors import UserError, reason_of
from stimuli.seeds import stable_seed

GROUP = "reader_group"
ALL = "all"
RECOVERY, RIGHT = "RR", "right"
MOST_ROWS = 60_000
"""Trials in one mixed model of models alone."""


@dataclass(frozen=True)
class Part:
    """Materials in which trained models are compared with their base."""

    title: str  # what they are, in words
    name: str  # in letters, digits and underscores
    measure: str  # recovery rate, or share right
    factor: str  # whose levels are the conditions; empty for none
    levels: dict[str, str]  # what a condition is called, by level, in order
    trials: pd.DataFrame  # used trials of the family with ``condition``
    measured: pd.DataFrame


@dataclass(frozen=True)
class Difference:
    """Two models in one condition, over the items that both were asked."""

    condition: str  # ``second`` minus ``first``
    first: str
    second: str
    against_control: bool  # whether ``first`` is the control of training (FT-Ori), not the base
    items: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float = np.nan


@dataclass(frozen=True)
class Modelled:
    """A mixed model of one part."""

    fit: Fit  # with training by condition
    training: LikelihoodRatio
    interaction: LikelihoodRatio | None


def parts_of(tables: Tables, family: Family) -> list[Part]:
    """Return the materials of a study that a base and its trained models were asked about, H-TEST's tasks left out."""
    members = [family.base, *(one.group for one in family.models)]
    trials = tables.trials
    trials = trials[trials["excluded_reason"].isna() & trials[GROUP].isin(members)]
    if "task" in tables.factors:
        trials = trials[trials["task"].isna()]
    found = []
    known = {one.set_name: one for one in study_parts(tables) if not one.imported}
    for set_name, rows in trials.groupby("set", sort=False, dropna=False):
        published = known.get(str(set_name))
        if published is not None:
            own = trials_of(tables, published)
            rows = rows[rows.index.isin(own.index)]
            kind = {"rec": "sentences to recover", "qa": "questions", "problem": "word problems"}[
                published.task
            ]
            title = f"{published.data}, {kind}, {'behind' if published.few_shot else 'without'} examples"
            factor, levels = published.factor, dict(published.columns)
        else:
            title = str(set_name) if len(set(trials["set"].dropna())) > 1 else ""
            factor = next((name for name, some in tables.factors.items() if rows[name].nunique() > 1), "")
            levels = {level: level for level in tables.factors.get(factor, [])}
        found += list(_measured(tables, rows, title, str(set_name), factor, levels))
    return found


def _measured(
    tables: Tables, rows: pd.DataFrame, title: str, name: str, factor: str, levels: dict[str, str]
) -> Iterator[Part]:
    conditions = rows[factor].map(levels) if factor else pd.Series(ALL, index=rows.index)
    rows = rows.assign(condition=conditions)
    rows = rows[rows["condition"].notna()]
    levels = {level: said for level, said in levels.items() if (rows["condition"] == said).any()} or {
        ALL: ALL
    }
    restored = rows["trial_type"] == "recover"
    nothing = pd.DataFrame()
    if restored.any():
        measured = recovery_trials(rows[restored], tables.items, list(tables.factors))
        said = measured[factor].map(levels) if factor else ALL
        measured = measured.assign(condition=said)
        measured = measured[measured["ed_shown"] > 0]
        if len(measured):
            kept = {level: one for level, one in levels.items() if (measured["condition"] == one).any()}
            yield Part(title, f"{name}_recovered", RECOVERY, factor, kept, rows[restored], measured)
    judged = asked(rows[~restored])
    if len(judged):
        yield Part(title, name, RIGHT, factor, levels, judged, nothing)


def cells_of(part: Part, study: str) -> pd.DataFrame:
    """Return every model's value in every condition, in percent."""
    if part.measure == RECOVERY:
        sums = recovery(part.measured, ["condition"], study=study)
        named = {"rr": "value", "rr_low": "low", "rr_high": "high"}
        return sums.rename(columns=named)[[GROUP, "condition", "trials", "value", "low", "high"]]
    shares = accuracy(part.trials, ["condition"], study=study)
    ends = {
        "value": 100 * shares["wrong"],
        "low": 100 * shares["wrong_low"],
        "high": 100 * shares["wrong_high"],
    }
    return shares[[GROUP, "condition", "trials"]].assign(**ends)


def differences(part: Part, family: Family, study: str, seed: int = 0) -> list[Difference]:
    """Compare each trained model with the base and, trained on scrambled text, with the control, in every condition."""
    control = family.control
    asked_of = {str(group) for group in part.trials[GROUP].unique()}
    pairs = [(family.base, one.group, False) for one in family.models]
    if control is not None:
        pairs += [(control.group, one.group, True) for one in family.models if not one.is_control]
    found = []
    for condition in part.levels.values():
        for first, second, against_control in pairs:
            if {first, second} <= asked_of:
                compare = _recovered if part.measure == RECOVERY else _right
                one = compare(part, condition, first, second, study, seed)
                found += [] if one is None else [(one, against_control)]
    adjusted = corrected(np.array([one.p for one, _ in found]), "BH")
    return [
        Difference(**{**one.__dict__, "against_control": against, "p_adjusted": float(p)})
        for (one, against), p in zip(found, adjusted, strict=True)
    ]


_KEYS = ["set", "item_id"]


def _right(part: Part, condition: str, first: str, second: str, study: str, seed: int) -> Difference | None:
    rows = part.trials[part.trials["condition"] == condition]
    rows = rows.assign(right=failures_as_wrong(rows), making="", task=rows["set"].astype(str))
    met = paired(rows[rows[GROUP] == first], rows[rows[GROUP] == second], None, seed)
    if met is None:
        return None
    return Difference(
        condition, first, second, False, met.items, 100 * met.first, 100 * met.second, 100 * met.difference,
        100 * met.low, 100 * met.high, met.p,
    )  # fmt: skip


def _recovered(
    part: Part, condition: str, first: str, second: str, study: str, seed: int
) -> Difference | None:
    rows = part.measured[part.measured["condition"] == condition]
    sums = [
        rows[rows[GROUP] == group].groupby(_KEYS, dropna=False)[["ed_shown", "ed_given"]].mean()
        for group in (first, second)
    ]
    both = sums[0].add_suffix("_1").join(sums[1].add_suffix("_2"), how="inner")
    if len(both) < FEWEST_ITEMS:
        return None
    values = both[["ed_shown_1", "ed_given_1", "ed_shown_2", "ed_given_2"]].to_numpy(dtype=float)
    rates = _rates(values.mean(axis=0)[None, :])[0]
    ends = bootstrap(
        values,
        lambda means: np.asarray(_rates(means)[:, 1] - _rates(means)[:, 0]),
        stable_seed(study, "trained", condition, first, second),
    )
    gains = (values[:, 2] - values[:, 3]) - (values[:, 0] - values[:, 1])
    return Difference(
        condition, first, second, False, len(both), rates[0], rates[1], rates[1] - rates[0], ends.low, ends.high,
        sign_flips(gains, seed),
    )  # fmt: skip


def _rates(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Recovery rates in percent, shape (rows, 2), from mean distances shown and answered of two models, shape (rows, 4)."""
    return 100.0 * np.stack(
        [(means[:, at] - means[:, at + 1]) / means[:, at] for at in (0, 2)],
        axis=1,
    )


def modelled(part: Part, family: Family) -> Modelled | str:
    """Fit a logistic mixed model of training by condition with a variance between items."""
    rows = part.measured if part.measure == RECOVERY else part.trials
    if len(rows) > MOST_ROWS:
        return f"there are {len(rows):,} answers; state a plan for a model of so many"
    present = set(rows[GROUP].astype(str))
    models = [name for name in (family.base, *(one.group for one in family.models)) if name in present]
    conditions = [one for one in part.levels.values() if (rows["condition"] == one).any()]
    if len(models) < 2:
        return "one model alone answered"
    data = pd.DataFrame({"training": rows[GROUP].astype(str), "condition": rows["condition"].astype(str)})
    data["item"] = rows["set"].astype(str) + " " + rows["item_id"].astype(str)
    if part.measure == RECOVERY:
        data["recovered"], data["not_recovered"] = (
            rows["recovered"].astype(float),
            rows["not_recovered"].astype(float),
        )
        data["answer"] = [str(place) for place in range(len(data))]
        words = data["recovered"] + data["not_recovered"]
        data = data[words > 0]
        # answers of one changed word each vary about their items as the binomial says, and give nothing to tell more
        random = "(1 | item) + (1 | answer)" if (words > 1).any() else "(1 | item)"
        response = "cbind(recovered, not_recovered)"
        if not data["recovered"].any():
            return "no answer restores a word that was scrambled"
        if not data["not_recovered"].any():
            return "every answer restores every word that was scrambled"
    else:
        data["correct"] = np.asarray(failures_as_wrong(rows), dtype=float)
        response, random = "correct", "(1 | item)"
        if data["correct"].nunique() < 2:
            return f"all answers are {'right' if data['correct'].any() else 'wrong'}"
    levels: dict[str, Sequence[str]] = {"training": models}
    if len(conditions) > 1:
        levels["condition"] = conditions
    try:
        if len(conditions) == 1:
            whole = fit(f"{response} ~ training + {random}", data, "binomial", levels=levels)
            none = fit(f"{response} ~ 1 + {random}", data, "binomial")
            return Modelled(whole, likelihood_ratio_test(none, whole), None)
        whole = fit(f"{response} ~ training * condition + {random}", data, "binomial", levels=levels)
        alike = fit(f"{response} ~ training + condition + {random}", data, "binomial", levels=levels)
        none = fit(f"{response} ~ condition + {random}", data, "binomial", levels={"condition": conditions})
    except UserError as error:
        return reason_of(error)
    return Modelled(whole, likelihood_ratio_test(none, alike), likelihood_ratio_test(alike, whole))
