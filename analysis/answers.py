"""The one rule by which all analyses decide whether a trial was answered, can be right or wrong, and is right."""

from __future__ import annotations

import pandas as pd


def is_valid(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials with a valid answer."""
    return trials["response_status"] == "valid"


def not_failed(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials with a valid answer and those that asked for none (reading alone): their times count."""
    return trials["response_status"].isna() | is_valid(trials)


def unjudged(trials: pd.DataFrame, name: str = "correct") -> pd.Series[bool]:
    """Mark valid answers that nothing says right or wrong of: they are no errors, and in no mean."""
    return is_valid(trials) & trials[name].isna()


def never_answered(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials of readers of whom no analyzed answer is valid: they have no mean, interval or test."""
    if "never_answered" in trials:
        return trials["never_answered"].eq(True)
    return pd.Series(False, index=trials.index)


def without_valid_answers(trials: pd.DataFrame) -> pd.Series[bool]:
    """Find the trials that :func:`never_answered` marks, in a whole table whose exclusions are known."""
    asked = trials["response_status"].notna() & (
        trials["excluded_reason"].isna() | trials["step_name"].notna()
    )
    valid = (asked & is_valid(trials)).groupby(trials["reader_group"]).transform("any")
    return trials["response_status"].notna() & ~is_valid(trials) & ~valid.astype(bool)


def judged(trials: pd.DataFrame, name: str = "correct") -> pd.Series[bool]:
    """Mark the trials that asked for an answer that is right or wrong.

    A failed answer is wrong unless the same readers' valid answers to trials of its kind are never judged, or there are none at all.
    """
    asked = trials["response_status"].notna() & ~unjudged(trials, name) & ~never_answered(trials)
    failed = asked & ~is_valid(trials)
    if not failed.any():
        return asked
    kinds = [column for column in ("set", "trial_type") if column in trials]
    none = pd.Series(0, index=trials.index)
    kind = trials.groupby(kinds, sort=False, dropna=False, observed=True).ngroup() if kinds else none
    can_be_right = is_valid(trials) & trials[name].notna()
    if "answer" in trials:
        none_valid = ~is_valid(trials).groupby(kind).transform("any")
        can_be_right |= none_valid & trials["answer"].notna()
    elif not is_valid(trials).any():
        return asked
    judged_at_all = can_be_right.groupby(kind).transform("any")
    if "reader_group" in trials:
        own = [kind, trials["reader_group"]]
        by_own = can_be_right.groupby(own, observed=True).transform("any")
        judged_at_all &= by_own | ~is_valid(trials).groupby(own, observed=True).transform("any")
    return asked & (~failed | judged_at_all)


def is_choice(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials that are answered with one of their labels."""
    return trials["is_choice"] if "is_choice" in trials else trials["trial_type"] == "choose"


def choice_types(trials: pd.DataFrame) -> tuple[str, ...]:
    """Return the types of these trials."""
    return tuple(sorted(trials.loc[is_choice(trials), "trial_type"].unique()))


def failures_as_wrong(trials: pd.DataFrame) -> pd.Series[float]:
    """Return ``correct`` (0 or 1) with 0 for every answer that is not valid; for trials that are ``judged``."""
    return trials["correct"].where(is_valid(trials), 0.0)
