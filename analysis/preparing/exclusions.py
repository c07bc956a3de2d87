"""Says which trials no model uses and why.

Reasons are blind to condition and outcome. A trial keeps the first reason that applies to it; a reason that
the study itself gave (a flag set by the experimenter) stands before all others.
"""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

PRACTICE, FILLER, CHECK, PILOT = "practice", "filler", "attention check", "pilot session"
LATER_ATTEMPT, OLD_VERSION = "shown again (a later attempt)", "earlier version of the design"
OTHER_DESIGN = "session of another design"
TIMED = "timed session of a reader who has others (counts for times alone)"
IDENTICAL = "identical repeat of a deterministic answer"
ORDER = (PILOT, OLD_VERSION, OTHER_DESIGN, PRACTICE, FILLER, CHECK, LATER_ATTEMPT, TIMED, IDENTICAL)
"""Reasons that are not the study's own, in the order in which they apply."""


def newest_design(trials: pd.DataFrame, collected: str | None) -> str | None:
    """Return the design hash of the newest version."""
    if collected is not None or trials.empty:
        return collected
    newest = trials.loc[(trials["version"] == trials["version"].max()) & ~trials["is_pilot"], "design_hash"]
    return next(iter(newest.mode().astype(str)), None)


def flag_trials(trials: pd.DataFrame, factors: Collection[str], collected: str | None = None) -> pd.DataFrame:
    """Fill ``excluded_reason`` for the trials that no model uses; drops and reorders nothing."""
    trials = trials.copy(deep=False)
    design = newest_design(trials, collected)
    reason = trials["excluded_reason"].where(trials["excluded_reason"].astype(bool), None)
    newest = trials["version"].max() if len(trials) else 0
    test = ~(trials["is_practice"] | trials["is_filler"] | trials["is_attention_check"])
    place = ["session_id", "trial_index"]
    first = trials.groupby(place)["attempt"].transform("min") if len(trials) else trials["attempt"]
    for name, applies in (
        (PILOT, trials["is_pilot"]),
        (OLD_VERSION, trials["version"] < newest),
        (OTHER_DESIGN, trials["design_hash"].notna() & (trials["design_hash"] != design)),
        (PRACTICE, trials["is_practice"]),
        (FILLER, trials["is_filler"]),
        (CHECK, trials["is_attention_check"]),
        (LATER_ATTEMPT, test & (trials["attempt"] > first)),
    ):
        reason = reason.mask(reason.isna() & applies.astype(bool), name)
    trials["excluded_reason"] = reason.astype(object)
    # what is left out already stands for nothing: neither for a reader's other sessions nor for an identical answer
    for name, found in (
        (TIMED, timed_beside_others),
        (IDENTICAL, lambda some: identical_repeats(some, factors)),
    ):
        applies = found(trials[test]).reindex(trials.index, fill_value=False)
        trials["excluded_reason"] = trials["excluded_reason"].mask(
            trials["excluded_reason"].isna() & applies.astype(bool), name
        )
    return trials


def timed_beside_others(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark trials of a model's timed sessions where it has others in the same version that count."""
    timed = trials["timed"].astype(bool)
    if not timed.any():
        return timed
    counts = ~timed & trials["excluded_reason"].isna()
    return timed & counts.groupby([trials["reader"], trials["version"]], dropna=False).transform("any")


def is_deterministic(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials of models that answer the same prompt alike: nothing was drawn, and nothing stood before the trial."""
    greedy = (trials["temperature"] == 0) | (trials["temperature"].isna() & trials["margin"].notna())
    alone = trials["context"].isna() | (trials["context"] == "independent")
    return (trials["reader_kind"] == "model") & greedy & alone


def identical_repeats(trials: pd.DataFrame, factors: Collection[str]) -> pd.Series[bool]:
    """Mark the second and later of a model's answers that only repeat a deterministic one."""
    usable = is_deterministic(trials) & trials["excluded_reason"].isna()
    same = ["reader", "version", "set", "item_id", "trial_type", *factors]
    same += ["prompt_variant", "label_map", "choice_order", "response_status", "response", "correct"]
    again = trials.loc[usable, same].duplicated(keep="first")
    return again.reindex(trials.index, fill_value=False)
