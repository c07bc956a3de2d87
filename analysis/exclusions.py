"""Says which trials no model uses and why, and counts them: the flow table of a report.

Reasons are blind to condition and outcome. A trial keeps the first reason that applies to it; a reason that
the study itself gave (a flag set by the experimenter) stands before all others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.readers import group_order
from stimuli.errors import UserError

PRACTICE, FILLER, CHECK, PILOT = "practice", "filler", "attention check", "pilot session"
LATER_ATTEMPT, OLD_VERSION = "shown again (a later attempt)", "earlier version of the design"
OTHER_DESIGN = "session of another design"
TIMED = "timed session of a reader who has others (counts for times alone)"
IDENTICAL = "identical repeat of a deterministic answer"

_BOUNDS = re.compile(r"outside ([0-9.]+) ?(ms|s) to ([0-9.]+) ?(ms|s)")
_MS = {"ms": 1.0, "s": 1000.0}


@dataclass(frozen=True)
class Bounds:
    """Times in milliseconds within which a trial is used; both ends belong to the range."""

    low: float
    high: float

    def holds(self, times: pd.Series[float]) -> pd.Series[bool]:
        """Return which times lie within the bounds."""
        return times.between(self.low, self.high)


def newest_design(trials: pd.DataFrame, collected: str | None) -> str | None:
    """Return the design hash of the newest version.

    Parameters
    ----------
    trials : pandas.DataFrame
    collected : str or None
        What the store noted for that version. Without it, the hash that most of the version's trials bear.
    """
    if collected is not None or trials.empty:
        return collected
    newest = trials.loc[(trials["version"] == trials["version"].max()) & ~trials["is_pilot"], "design_hash"]
    return next(iter(newest.mode().astype(str)), None)


def flag_trials(trials: pd.DataFrame, factors: Collection[str], collected: str | None = None) -> pd.DataFrame:
    """Fill ``excluded_reason`` for the trials that no model uses; drops and reorders nothing.

    Parameters
    ----------
    trials : pandas.DataFrame
        A checked trials table with ``reader_group``.
    factors : collection of str
        The columns that together make the condition.
    collected : str, optional
        Design hash of the newest version, as the store noted it.
    """
    trials = trials.copy()
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
    """Mark trials of a model's timed sessions where it has others in the same version that count.

    Both are answers to the same trials; counted together, each would count twice.
    """
    timed = trials["timed"].astype(bool)
    reader = pd.Series(
        list(zip(trials["reader"], trials["version"], strict=True)), trials.index, dtype=object
    )
    others = set(reader[~timed & trials["excluded_reason"].isna()])
    return timed & reader.isin(others)


def identical_repeats(trials: pd.DataFrame, factors: Collection[str]) -> pd.Series[bool]:
    """Mark the second and later of a model's answers that only repeat a deterministic one.

    A model at temperature 0 (or one whose labels are scored, which has no temperature) that got the same prompt
    for the same item and gave the same answer tells nothing new: one row stands for all of them.
    """
    greedy = trials["temperature"].isna() | (trials["temperature"] == 0)
    alone = trials["context"].isna() | (trials["context"] == "independent")
    usable = trials[(trials["reader_kind"] == "model") & greedy & alone & trials["excluded_reason"].isna()]
    same = ["reader", "version", "set", "item_id", *factors, "prompt_variant", "label_map"]
    same += ["response_status", "response", "correct"]
    return usable[same].astype(str).duplicated(keep="first").reindex(trials.index, fill_value=False)


def time_bounds(exclude: dict[str, Any], measure: str) -> Bounds | None:
    """Return the bounds that a study gives for a time measure, or None.

    Raises
    ------
    UserError
        Where the rule is not of the form ``outside 200 ms to 10 s``.
    """
    rule = (exclude.get("trials") or {}).get(measure)
    if rule is None:
        return None
    found = _BOUNDS.fullmatch(str(rule).strip())
    if found is None:
        raise UserError(
            f"analysis.exclude.trials.{measure} is {rule!r}", mend="Write it like: outside 200 ms to 10 s."
        )
    return Bounds(float(found[1]) * _MS[found[2]], float(found[3]) * _MS[found[4]])


def flow(trials: pd.DataFrame, readers: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Count who and what is analysed and why the rest is not.

    Parameters
    ----------
    trials : pandas.DataFrame
        A flagged trials table with ``reader_group``.
    readers : mapping
        The dictionary's readers: how many sessions each began and finished, those without a trial too.

    Returns
    -------
    pandas.DataFrame
        One row per stage, one column per reader group: sessions begun, those of them without a trial and those not
        finished (where there are any), trials recorded, trials left out under each
        reason that occurs, trials analysed, and of these the answers that could not be scored, by status.
    """
    groups = group_order(trials)
    groups += [name for name, one in readers.items() if name not in groups and one.get("sessions")]
    counts: dict[str, list[int]] = {}
    parts = {group: trials[trials["reader_group"] == group] for group in groups}

    def count(stage: str, of: Any) -> None:
        counts[stage] = [int(of(part)) for part in parts.values()]

    with_trials = {group: int(part["session_id"].nunique()) for group, part in parts.items()}
    begun = {group: int(readers.get(group, {}).get("sessions") or with_trials[group]) for group in groups}
    finished = {group: readers.get(group, {}).get("finished") for group in groups}
    counts["Sessions begun"] = list(begun.values())
    for stage, some in (
        ("of these without a trial", [max(begun[group] - with_trials[group], 0) for group in groups]),
        (
            "of these not finished",
            [begun[group] - int(done) if (done := finished[group]) is not None else 0 for group in groups],
        ),
    ):
        if any(some):
            counts[stage] = some
    count("Trials recorded", len)
    reasons = list(trials["excluded_reason"].dropna().value_counts().index)
    for reason in reasons:
        count(f"Left out: {reason}", lambda part, reason=reason: (part["excluded_reason"] == reason).sum())
    used = {group: part[part["excluded_reason"].isna()] for group, part in parts.items()}
    parts = used
    count("Sessions analysed", lambda part: part["session_id"].nunique())
    count("Trials analysed", len)
    statuses = trials.loc[trials["excluded_reason"].isna(), "response_status"].dropna().unique()
    for status in sorted(s for s in statuses if s != "valid"):
        count(
            f"of these counted as wrong: {status}",
            lambda part, s=status: (part["response_status"] == s).sum(),
        )
    return pd.DataFrame(counts, index=groups).T
