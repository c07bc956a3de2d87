"""The trials that an analysis uses: reasons to exclude, time and session rules, a plan's exclusions, and tables that count them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from analysis.answers import is_valid, judged, not_failed
from analysis.names import in_words
from analysis.plan import PLANNABLE, RIGHT_SHARE, PlanFault, SignRule, read_sign_rule, read_times
from analysis.readers import group_order, kinds_of
from stimuli.errors import UserError, error_at

PRACTICE, FILLER, CHECK, PILOT = "practice", "filler", "attention check", "pilot session"
LATER_ATTEMPT, OLD_VERSION = "shown again (a later attempt)", "earlier version of the design"
OTHER_DESIGN = "session of another design"
TIMED = "timed session of a reader who has others (counts for times alone)"
IDENTICAL = "identical repeat of a deterministic answer"
FURTHER = "further answer (counts where a plan names its step)"
ORDER = (PILOT, OLD_VERSION, OTHER_DESIGN, PRACTICE, FILLER, CHECK, LATER_ATTEMPT, TIMED, IDENTICAL, FURTHER)
"""Reasons that are not the study's own, in the order in which they apply."""

RULE = " rule"
"""How the item of a trial that asks for a rule ends, behind the name of its set."""
STATED = "statements of rules, analyzed separately"


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
    position = ["session_id", "trial_index"]
    first = trials.groupby(position)["attempt"].transform("min") if len(trials) else trials["attempt"]
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
    for name in (TIMED, IDENTICAL):
        test_trials = trials[test]
        applies = (
            timed_beside_others(test_trials) if name == TIMED else identical_repeats(test_trials, factors)
        )
        applies = applies.reindex(trials.index, fill_value=False).astype(bool)
        reason = trials["excluded_reason"]
        trials["excluded_reason"] = reason.mask(reason.isna() & applies, name)
    if "step_name" in trials:
        reason = trials["excluded_reason"]
        trials["excluded_reason"] = reason.mask(reason.isna() & trials["step_name"].notna(), FURTHER)
    return trials


def usable(trials: pd.DataFrame, step: str | None) -> pd.Series[bool]:
    """Mark the trials that an analysis of trials ending with ``step`` (None: all) uses; further answers only by their name."""
    reason = trials["excluded_reason"]
    return reason.isna() if step is None else reason.isna() | (reason == FURTHER)


def timed_beside_others(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark trials of a model's timed sessions where it has others in the same version that count."""
    timed = trials["timed"].astype(bool)
    if not timed.any():
        return timed
    counts = ~timed & trials["excluded_reason"].isna()
    return timed & counts.groupby([trials["reader"], trials["version"]], dropna=False).transform("any")


def is_deterministic(trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials of models with identical answers to identical prompts: no sampling, and no context before the trial."""
    greedy = (trials["temperature"] == 0) | (trials["temperature"].isna() & trials["margin"].notna())
    is_independent = trials["context"].isna() | (trials["context"] == "independent")
    return (trials["reader_kind"] == "model") & greedy & is_independent


def identical_repeats(trials: pd.DataFrame, factors: Collection[str]) -> pd.Series[bool]:
    """Mark the second and later of a model's answers that only repeat a deterministic one."""
    usable = is_deterministic(trials) & trials["excluded_reason"].isna()
    columns = ["reader", "version", "set", "item_id", "trial_type", *factors]
    columns += ["prompt_variant", "label_map", "choice_order", "response_status", "response", "correct"]
    is_repeat = trials.loc[usable, columns].duplicated(keep="first")
    return is_repeat.reindex(trials.index, fill_value=False)


MAD_TO_SD = 1.4826
"""What makes the median absolute deviation of a normal distribution its standard deviation."""


@dataclass(frozen=True)
class Bounds:
    """Times in milliseconds within which a trial is used; both ends belong to the range."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse bounds between which nothing lies."""
        if not 0 <= self.low < self.high:
            raise UserError(
                f"time bounds {self.low:g} to {self.high:g} ms",
                mend="The first bound is the lower one, from 0.",
            )

    @property
    def said(self) -> str:
        """Why a time does not count, in words."""
        return f"outside the study's bounds ({self.low:,.10g} to {self.high:,.10g} ms)"

    def within(self, other: Bounds | None) -> Bounds:
        """Return the bounds within these and others."""
        return self if other is None else Bounds(max(self.low, other.low), min(self.high, other.high))

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return which rows have a time within the bounds."""
        return rows[measure].between(self.low, self.high)


@dataclass(frozen=True)
class EveryTime:
    """Every time counts."""

    @property
    def said(self) -> str:
        """Why a time does not count, in words."""
        return "no rule"

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return True for every row."""
        return pd.Series(True, index=rows.index)


@dataclass(frozen=True)
class SpreadTrimming:
    """Times within k spreads of the centre of a participant's times in a condition."""

    k: float  # how many spreads to either side still count
    kind: str = "sd"
    by: tuple[str, ...] = ()  # columns that make a cell, beside reader group and reader: the factors
    logged: bool = False  # whether the spread is that of log times

    def __post_init__(self) -> None:
        """Refuse spreads that keep nothing and kinds that nobody knows."""
        if not self.k > 0:
            raise UserError(
                f"a time rule of {self.k:g} spreads", mend="Give a number above 0, for example 2.5."
            )
        if self.kind not in ("sd", "mad"):
            raise UserError(f"a time rule of kind {self.kind!r}", mend="Write sd or mad.")

    @property
    def said(self) -> str:
        """Why a time does not count, in words."""
        spread, centre = ("SD", "mean") if self.kind == "sd" else ("MAD", "median")
        logs = " of log times" if self.logged else ""
        return f"more than {self.k:g} {spread} from the participant's {centre} in the condition{logs}"

    def keeps(self, rows: pd.DataFrame, measure: str) -> pd.Series[bool]:
        """Return which rows lie within the spread of their cell; a cell without spread (one time) keeps all."""
        times = np.log(rows[measure]) if self.logged else rows[measure].astype(float)
        keys = [rows[name] for name in ("reader_group", "reader", *self.by)]

        centre: Literal["mean", "median"] = "mean" if self.kind == "sd" else "median"
        distance = (times - times.groupby(keys, dropna=False, observed=True).transform(centre)).abs()
        if self.kind == "sd":
            spread = times.groupby(keys, dropna=False, observed=True).transform("std")
        else:
            spread = MAD_TO_SD * distance.groupby(keys, dropna=False, observed=True).transform("median")
        return (distance <= self.k * spread) | ~(spread > 0)


TimeRule = Bounds | EveryTime | SpreadTrimming
"""A rule that decides which times count: it ``keeps`` them, and ``said`` is why another does not count."""


def time_bounds(exclude: dict[str, Any], measure: str) -> Bounds | None:
    """Return the bounds that a study gives for a time measure, or None."""
    rule = (exclude.get("trials") or {}).get(measure)
    if rule is None:
        return None
    try:
        return Bounds(*read_times(rule))
    except PlanFault as fault:
        raise error_at(f"analysis.exclude.trials.{measure}", *fault.args) from None


def time_reasons(trials: pd.DataFrame, exclude: dict[str, Any], measure: str) -> pd.Series[str]:
    """State why a trial's time counts in no model of times; None where it does, and where there is no time."""
    bounds = time_bounds(exclude, measure)
    reason = pd.Series(np.full(len(trials), None), index=trials.index, dtype=object)
    if bounds is None:
        return reason
    outside = trials[measure].notna() & ~bounds.keeps(trials, measure)
    return reason.mask(outside, f"{measure} {exclude['trials'][measure]}")


FASTEST_MS = 200.0
"""An answer in less than this counts as too fast, as on the dashboard."""


def declared_rules(exclude: Mapping[str, Any]) -> list[SignRule]:
    """Read ``analysis.exclude.sessions`` of a study."""
    rules = []
    for sign, rule in (exclude.get("sessions") or {}).items():
        try:
            rules.append(read_sign_rule(str(sign), rule))
        except PlanFault as fault:
            raise error_at(f"analysis.exclude.sessions.{sign}", *fault.args) from None
    return rules


def session_signs(trials: pd.DataFrame) -> pd.DataFrame:
    """Measure the signs of careless answering of every session of people or simulated readers."""
    rows = trials[trials["reader_kind"].isin(["human", "simulated"]) & ~trials["is_practice"].astype(bool)]
    if "step_name" in rows:
        rows = rows[rows["step_name"].isna()]
    signs = rows.groupby("session_id", sort=True)[["reader_group", "reader"]].first()
    for sign, measure in _SIGNS.items():
        signs[sign] = measure(rows).reindex(signs.index).astype(float)
    return signs


def sessions_against_rules(trials: pd.DataFrame, exclude: Mapping[str, Any]) -> pd.DataFrame:
    """Hold every session against every declared rule."""
    signs = session_signs(trials)
    is_flagged = (
        trials["flagged_reason"].notna() if "flagged_reason" in trials else trials["excluded_reason"].notna()
    )
    excluded = is_flagged.groupby(trials["session_id"]).all().reindex(signs.index)
    columns = ["session_id", "reader_group", "reader", "sign", "rule", "value", "meets", "excluded"]
    tables = []
    for rule in declared_rules(exclude):
        value = signs.get(rule.sign, pd.Series(float("nan"), index=signs.index))
        meets = rule.meets(value).astype("boolean")
        meets = meets if rule.sign in signs else meets.mask(meets.notna())
        rows = signs[["reader_group", "reader"]].assign(
            sign=rule.sign, rule=rule.said, value=value, meets=meets, excluded=excluded.astype(bool)
        )
        tables.append(rows.reset_index(names="session_id"))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _by_session(
    rows: pd.DataFrame, column: str, is_sign: Callable[[Any], Any] = lambda values: values
) -> Any:
    """Group the values of a column, or whether each is a flag, by session; nothing if the column is absent."""
    present = rows[rows[column].notna()] if column in rows else rows.iloc[:0].assign(**{column: np.nan})
    return is_sign(present[column].astype(float)).groupby(present["session_id"])


def _missed_checks(rows: pd.DataFrame) -> Any:
    checks = rows[rows["is_attention_check"].astype(bool)]
    return (~(checks["correct"] == 1)).groupby(checks["session_id"]).sum()


def _right_share(rows: pd.DataFrame) -> Any:
    test_trials = rows[~rows["is_attention_check"].astype(bool) & ~rows["is_filler"].astype(bool)]
    judged = test_trials[test_trials["correct"].notna() | (test_trials["response_status"] == "timeout")]
    return (judged["correct"] == 1).groupby(judged["session_id"]).mean()


_SIGNS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "attention_checks_failed": _missed_checks,
    RIGHT_SHARE: _right_share,
    "too_fast": lambda rows: _by_session(rows, "rt", lambda times: times < FASTEST_MS).mean(),
    "hidden": lambda rows: _by_session(rows, "hidden_ms").sum(),
    "dropped_frames": lambda rows: _by_session(rows, "dropped_frames", lambda counts: counts > 0).mean(),
    "pastes": lambda rows: _by_session(rows, "paste_count").sum(),
    "keyless": lambda rows: _by_session(rows, "keyless_chars").sum(),
}


def same_prompts(trials: pd.DataFrame, items: pd.DataFrame, factors: Collection[str]) -> pd.Series[float]:
    """Give each prompt of a deterministic model a number, the same for all trials with that prompt."""
    numbers = pd.Series(np.nan, index=trials.index)
    item_factors = [name for name in factors if name in items and items[name].notna().any()]
    usable = is_deterministic(trials) & trials["excluded_reason"].isna()
    if not item_factors or "shown" not in items or not usable.any():
        return numbers
    if "role" in items and (items["role"] == "exemplar").any():
        return numbers
    keys = [name for name in ("set", "item_id") if name in items and name in trials] + item_factors
    texts = [name for name in ("shown", "choices", "key") if name in items]
    test_items = items[items["role"] == "test"] if "role" in items else items
    prompts = test_items[[*keys, *texts]].drop_duplicates(keys)
    others = [name for name in factors if name not in item_factors]
    settings = ["version", "block", "trial_type", "prompt_variant", "label_map", "choice_order"]
    prompt_columns = ["reader", "set", "item_id", *settings, *others, *texts]
    rows = trials.loc[
        usable, ["reader", *settings, *dict.fromkeys(["set", "item_id", *item_factors]), *others]
    ]
    rows = rows.merge(prompts, on=keys, how="left").set_index(rows.index)
    prompted = rows[rows["shown"].notna()]
    numbers.loc[prompted.index] = (
        prompted.groupby(prompt_columns, dropna=False, sort=False).ngroup().astype(float)
    )
    return numbers


def copies(rows: pd.DataFrame, by: Iterable[str]) -> pd.Series[bool]:
    """Mark answers that repeat an earlier one to the same prompt within the levels of some factors."""
    has_prompt = rows["same_prompt"].notna()
    is_copy = pd.Series(False, index=rows.index)
    if has_prompt.any():
        columns = ["same_prompt", *by, "response_status", "response", "correct"]
        is_copy[has_prompt] = rows.loc[has_prompt, columns].duplicated(keep="first")
    return is_copy


NEGLIGIBLE = 0.01
"""Standard deviation of repeats, as a share of that between items and conditions, that is numerical error of a model's engine."""


def repeats(values: pd.Series[float], cells: pd.DataFrame) -> pd.Series[bool]:
    """Mark values that repeat an earlier one of their cell, if the repeats of a reader differ by no more than numerical error.

    What a model computes of a text does not depend on what is asked afterwards: its repeats, such as those of prompt variants, are
    one value, and their differences no variance. Results in 16 bits differ by about a thousandth between ways of computing them.
    """
    keys = list(cells)
    within = values - values.groupby([cells[key] for key in keys], dropna=False, observed=True).transform(
        "mean"
    )
    is_repeat = cells.duplicated(keep="first")
    spread = values[~is_repeat].std()
    freedoms = int(is_repeat.sum())
    if not freedoms or np.sqrt((within**2).sum() / freedoms) > NEGLIGIBLE * spread:
        return pd.Series(False, index=values.index)
    return is_repeat


COUNTED_ONCE = "answers of models at temperature 0, or scored, that copy another to the same prompt in a condition count once"
"""What :func:`each_answer_once` does, as tables say it."""


def each_answer_once(rows: pd.DataFrame, by: Iterable[str]) -> pd.DataFrame:
    """Leave out what :func:`copies` marks; rows of which prompts are not known stay as they are."""
    if "same_prompt" not in rows:
        return rows
    is_copy = copies(rows, by)
    return rows[~is_copy] if is_copy.any() else rows


def unseen(group: str, factor: str) -> str:
    """Return the sentence on a model that :func:`not_told_apart` names."""
    return f"Model {group} received the same prompts in all conditions of {factor}: A lack of differences there is not a finding."


def not_told_apart(rows: pd.DataFrame, factor: str) -> list[str]:
    """Return the models to which no prompt shows the level of a factor, in the table's order."""
    prompted = rows[rows["same_prompt"].notna()]
    if prompted.empty:
        return []
    levels = prompted.groupby(["reader_group", "same_prompt"], sort=False)[factor].nunique()
    is_uniform = (levels > 1).groupby(level=0, sort=False).all()
    is_complete = rows["same_prompt"].notna().groupby(rows["reader_group"]).all()
    return [str(group) for group in is_uniform.index[is_uniform] if is_complete[group]]


def left_out_by_plan(
    rows: pd.DataFrame, trials: pd.DataFrame, exclude: Mapping[str, Any]
) -> tuple[pd.Series[bool], list[str]]:
    """Mark the rows that a plan leaves out, and say why and how many."""
    left_out = pd.Series(False, index=rows.index)
    counts = []
    for reason, applies in _rules(rows, trials, exclude):
        counts.append(f"{int((applies & ~left_out).sum()):,} ({reason})")
        left_out |= applies
    sentence = f"Left out as planned for this analysis, of {len(rows):,} trials: {', '.join(counts)}."
    return left_out, [sentence] if counts else []


def own_bounds(study: Mapping[str, Any], plan: Mapping[str, Any], measure: str) -> Bounds | None:
    """Return an analysis' time bounds: the study's and the plan's, the narrower on either side."""
    of_plan = time_bounds(dict(plan), measure)
    of_study = time_bounds(dict(study), measure)
    return of_study if of_plan is None else of_plan.within(of_study)


def keeps_right_answers_alone(exclude: Mapping[str, Any]) -> bool:
    """Whether a plan leaves out valid wrong answers."""
    return exclude.get("answers") == "wrong"


def without_choices(exclude: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """Return a plan's exclusions without its bounds of a time and its choice of answers, which a multiverse varies."""
    others = {name: rule for name, rule in (exclude.get("trials") or {}).items() if name != measure}
    return {kind: rules for kind, rules in {**exclude, "trials": others, "answers": None}.items() if rules}


def _rules(
    rows: pd.DataFrame, trials: pd.DataFrame, exclude: Mapping[str, Any]
) -> Iterator[tuple[str, pd.Series[bool]]]:
    for sign, rule in (exclude.get("sessions") or {}).items():
        against = sessions_against_rules(trials, {"sessions": {sign: rule}})
        meets = against.loc[against["meets"].fillna(False).astype(bool), "session_id"]
        yield f"of sessions with {in_words(sign)} {rule}", rows["session_id"].isin(meets)
    for column in exclude.get("trials") or {}:
        bounds = time_bounds(dict(exclude), str(column))
        if column not in rows or bounds is None:
            raise UserError(f"analysis.planned: exclude.trials.{column} is no column of times")
        reason = f"{PLANNABLE[str(column)].noun} {exclude['trials'][column]}"
        yield reason, rows[column].notna() & ~bounds.keeps(rows, column)
    if keeps_right_answers_alone(exclude):
        yield "answered incorrectly", is_valid(rows) & (rows["correct"] == 0)


OWN = "the study's bounds"


@dataclass(frozen=True)
class Alternative:
    """One rule for times with the name under which a multiverse shows it."""

    name: str
    rule: TimeRule
    is_own: bool = False  # whether it is the one that the study declared


def alternatives(
    measure: str,
    exclude: Mapping[str, Any] | None = None,
    factors: Collection[str] = (),
    of_plan: Mapping[str, Any] | None = None,
) -> list[Alternative]:
    """Return a multiverse's time rules: the study's own, then those of ``alternatives.json``."""
    bounds = own_bounds(exclude or {}, of_plan or {}, measure)
    rules = [Alternative(OWN, bounds, True)] if bounds else []
    content = json.loads(Path(__file__).with_name("alternatives.json").read_text("utf-8"))
    for entry in content["alternatives"]:
        if measure not in entry["of"]:
            continue
        rule: TimeRule = EveryTime()
        if entry["rule"] == "bounds":
            rule = Bounds(float(entry["low"]), float(entry["high"]))
        elif entry["rule"] != "none":
            rule = SpreadTrimming(float(entry["k"]), entry["rule"], tuple(factors), bool(entry.get("logged")))
        rules.append(Alternative(entry["name"], rule, bounds is None and entry["rule"] == "none"))
    return rules


NO_RESPONSE = "no response in the table"
"""Why a trial of an imported table is excluded, not its session."""


def of_flagged_sessions(
    trials: pd.DataFrame,
    factors: Collection[str],
    collected: str | None = None,
    *,
    back: bool = True,
    out: Collection[str] = (),
) -> pd.DataFrame:
    """Flag a trials table again, with the sessions that the study excluded put back and others taken out."""
    changed = trials.copy()
    flagged = trials["flagged_reason"].where(pd.Series(not back, index=trials.index), None)
    reason = flagged.mask(flagged.isna() & trials["session_id"].isin(set(out)), "left out for comparison")
    reason = reason.mask(trials["excluded_reason"] == NO_RESPONSE, NO_RESPONSE)
    changed["excluded_reason"] = reason.astype(object)
    return flag_trials(changed, factors, collected)


def is_statement(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return which trials ask for the rule of a set of items."""
    return trials["is_filler"].astype(bool) & trials["item_id"].astype(str).str.endswith(RULE)


def reasons_named(trials: pd.DataFrame) -> pd.Series[str]:
    """Return why trials are excluded in words: statements of rules are fillers too, but are not called so."""
    reasons = trials["excluded_reason"].replace({FILLER: f"{FILLER} items", CHECK: f"{CHECK}s"})
    return reasons.mask((trials["excluded_reason"] == FILLER) & is_statement(trials), STATED)


def flow(trials: pd.DataFrame, readers: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Count who and what is analysed and why the rest is not."""
    groups = group_order(trials)
    groups += [name for name, spec in readers.items() if name not in groups and spec.get("sessions")]
    counts: dict[str, list[int]] = {}
    parts = {group: trials[trials["reader_group"] == group] for group in groups}

    def count(stage: str, measure: Any) -> None:
        counts[stage] = [int(measure(part)) for part in parts.values()]

    for group, part in parts.items():
        record, with_trials = readers.get(group, {}), int(part["session_id"].nunique())
        started, finished = int(record.get("sessions") or with_trials), record.get("finished")
        counts.setdefault("Declined to take part", []).append(int(record.get("declined") or 0))
        counts.setdefault("Sessions begun", []).append(started)
        counts.setdefault("of these without a trial", []).append(max(started - with_trials, 0))
        counts.setdefault("of these not finished", []).append(
            0 if finished is None else started - int(finished)
        )
    counts = {
        stage: numbers for stage, numbers in counts.items() if any(numbers) or stage == "Sessions begun"
    }
    count("Trials recorded", len)
    reasons = reasons_named(trials)
    for reason in _in_order(reasons):
        count(f"Excluded: {reason}", lambda part, reason=reason: (reasons[part.index] == reason).sum())
    parts = {group: part[part["excluded_reason"].isna()] for group, part in parts.items()}
    count("Sessions analyzed", lambda part: part["session_id"].nunique())
    count("Trials analyzed", len)
    can_be_wrong = judged(trials)
    for outcome, rows in (("counted as wrong", can_be_wrong), ("not valid", ~can_be_wrong)):
        statuses = trials.loc[trials["excluded_reason"].isna() & rows, "response_status"].dropna().unique()
        for status in sorted(s for s in statuses if s != "valid"):
            count(
                f"of these {outcome}: {status}",
                lambda part, s=status, marked=rows: (
                    marked[part.index] & (part["response_status"] == s)
                ).sum(),
            )
    return pd.DataFrame(counts, index=groups).T


def _in_order(reasons: pd.Series[str]) -> list[str]:
    """Return the reasons of exclusions in the order in which they apply: the study's own, then :data:`ORDER`."""
    present = list(reasons.value_counts().index)
    fillers = [reason for reason in present if reason in (f"{FILLER} items", STATED)]
    details = {FILLER: fillers, CHECK: [f"{CHECK}s"]}
    order = [reason for stage in ORDER for reason in details.get(stage, [stage]) if reason in present]
    return [*(reason for reason in present if reason not in order), *order]


def flow_steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Count participants, sessions and trials that are left after each step, and say why the others went."""
    trials = trials.assign(excluded_reason=reasons_named(trials))
    steps = _in_order(trials["excluded_reason"])
    kinds = kinds_of(trials)
    rows: list[dict[str, Any]] = []
    for group in group_order(trials):
        part = trials.loc[trials["reader_group"] == group, ["reader", "session_id", "excluded_reason"]]
        left = [part[~part["excluded_reason"].isin(steps[:number])] for number in range(len(steps) + 1)]
        rows += _steps(zip(["recorded", *steps], left, strict=True), group, kinds[group])
    return pd.DataFrame(rows, columns=_COLUMNS)


def time_steps(trials: pd.DataFrame, measure: str, rule: TimeRule | None = None) -> pd.DataFrame:
    """Go on from the analysed trials to those whose times are in a model of times."""
    used = trials["excluded_reason"].isna()
    readers = trials.loc[used, ["reader_group", "reader_kind"]]
    kinds = kinds_of(readers)
    rows: list[dict[str, Any]] = []
    for group in group_order(readers):
        part = trials[used & (trials["reader_group"] == group)]
        if not part[measure].notna().any():
            continue
        answered = not_failed(part)
        timed = answered & (part[measure] > 0)
        sessions = part[["reader", "session_id"]]
        stages = [
            ("analyzed", sessions),
            ("no valid answer", sessions[answered]),
            ("no time", sessions[timed]),
        ]
        if rule is not None:
            timed_rows = part[timed]
            stages.append((rule.said, sessions[timed][rule.keeps(timed_rows, measure)]))
        rows += _steps(stages, group, kinds[group])
    return pd.DataFrame(rows, columns=_COLUMNS)


_COUNTED = ("readers", "sessions", "trials")
_COLUMNS = ("step", "why", "group", "kind", *_COUNTED, *(f"{name}_lost" for name in _COUNTED))


def _steps(stages: Iterable[tuple[str, pd.DataFrame]], group: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield what is left after each stage, and what went with it."""
    previous: dict[str, int] = {}
    for number, (reason, left) in enumerate(stages):
        sizes = (int(left["reader"].nunique()), int(left["session_id"].nunique()), len(left))
        counts = dict(zip(_COUNTED, sizes, strict=True))
        losses = {f"{name}_lost": previous.get(name, size) - size for name, size in counts.items()}
        yield {"step": number, "why": reason, "group": group, "kind": kind, **counts, **losses}
        previous = counts
