"""Builds the data of one model from the trials table and says which groups and levels cannot be in it, and why.

A reader group whose answers in some condition are all right or all wrong stays out of a logistic model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.answers import is_valid, judged, never_answered, not_failed
from analysis.exclusions import (
    IDENTICAL,
    TIMED,
    EveryTime,
    TimeRule,
    copies,
    left_out_by_plan,
    not_told_apart,
    repeats,
    unseen,
    usable,
)
from analysis.factorial import TELLING, slopes_in_rows
from analysis.measures.recovery import recovery_trials
from analysis.mixed.formula import columns_of, read_formula
from analysis.names import plain
from analysis.plan import TIMES, WORDS_WITH_ONE_TYPO, CrossedFactors, Measure, Plan, Remark
from analysis.planned import held_by
from analysis.readers import PARTICIPANT_KINDS, headed, spoken
from analysis.regions import covariate_column
from analysis.tables import ADDED, LONG, OPTIONAL, REQUIRED, Tables, item_names, joined
from stimuli.errors import UserError, unknown_name


@dataclass(frozen=True)
class ModelData:
    """Rows of one model."""

    rows: pd.DataFrame  # one row per analysed trial of the reader groups that stayed in
    groups: tuple[str, ...]  # reader groups in the model, in the plan's order
    levels: tuple[str, ...]  # levels of the compared factor in the model, reference first
    participant_groups: tuple[str, ...]  # of people or simulated readers; others: one model each
    machine_groups: tuple[str, ...]
    remarks: tuple[str, ...]  # what was left out of the model, in sentences
    unmodelled: Mapping[str, str] = field(default_factory=dict)  # groups not in the model → why
    unmodelled_levels: Mapping[str, str] = field(default_factory=dict)
    crossing: CrossedFactors | None = None  # two factors compared together; ``levels`` are their cells
    columns: tuple[str, ...] = ()  # of the rows, but for those that random terms need

    @property
    def analysed_rows(self) -> pd.DataFrame:
        """The rows without the columns that random terms need."""
        return self.rows[list(self.columns)]

    @property
    def can_be_fitted(self) -> bool:
        """Whether at least two levels of the factor are left in at least one group."""
        return len(self.groups) > 0 and len(self.levels) > 1


OF_RECORDING = frozenset({
    "context", "design_hash", "scorer", "yoked_to", "cached_tokens", "cost_usd", "dropped_frames", "hidden_ms", "typing_ms",
    "first_key_ms", "paste_count", "keyless_chars", "ttft_ms", "flagged_reason", "rt_excluded", "reading_time_excluded",
    "is_practice", "is_pilot", "study",
})  # fmt: skip
"""Columns that say how a trial was recorded; a model's rows have them only where its plan names them."""

ALSO_TIMED = (TIMED, IDENTICAL)
"""Reasons that are none for a measure of time of models: every timed trial is a measurement."""


def analysed_as_planned(trials: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials that a plan can use, and in sentences what its own exclusions left out."""
    used = usable(trials, plan.trials)
    if plan.measure.name == "latency_ms":
        used |= trials["excluded_reason"].isin(ALSO_TIMED)
    used &= (
        trials["reader_group"].isin(plan.groups)
        & trials[plan.factor].isin(plan.levels)
        & trials["item_id"].notna()
        & held_by(plan, trials)
    )
    named = {plan.measure.name, *plan.factors, *(plan.exclude.get("trials") or {})}
    named.update(re.findall(r"\w+", f"{plan.formula or ''} {plan.fallback or ''}"))
    rows = trials.loc[used, [name for name in trials if name not in OF_RECORDING or name in named]]
    is_left_out, remarks = left_out_by_plan(rows, trials, plan.exclude)
    rows = _only(rows, ~is_left_out)
    several_sets = rows["set"].nunique(dropna=False) > 1
    items = item_names(rows) if several_sets else rows["item_id"]
    return _each_prompt_once(rows.assign(item=items, participant=rows["reader"]), plan, remarks)


def _only(rows: pd.DataFrame, is_kept: pd.Series[bool]) -> pd.DataFrame:
    """Return the rows that are kept, without a copy of a table of which all are."""
    return rows if is_kept.all() else rows[is_kept].copy()


def _each_prompt_once(rows: pd.DataFrame, plan: Plan, remarks: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Keep one of a deterministic model's equal answers to the same prompt in a condition of the plan, and note this."""
    if "same_prompt" not in rows or plan.measure.name == "latency_ms":
        return rows, remarks
    written = f"{plan.formula or ''} {plan.fallback or ''}"
    compared = [plan.factor] if plan.crossing is None else list(plan.crossing.factors)
    factors = [
        *compared,
        *(name for name in plan.factors if name not in compared and name in rows and name in written),
    ]
    is_copy = copies(rows, factors)
    if is_copy.any():
        remarks = [
            *remarks,
            f"The analysis does not include {apa.counted(int(is_copy.sum()), 'answer')} of models at temperature 0, or scored, for "
            "being the same as another to the same prompt, in conditions that a prompt does not tell apart.",
        ]
        rows = _only(rows, ~is_copy)
    notes = [unseen(group, factor) for factor in factors for group in not_told_apart(rows, factor)]
    return rows, [*remarks, *notes]


def _keep(rows: pd.DataFrame, is_kept: pd.Series[bool], remarks: list[str], reason: str) -> pd.DataFrame:
    """Return the rows that are kept; a remark says how many are not, and why."""
    count = int((~is_kept).sum())
    if count:
        remarks.append(f"Of {len(rows):,} trials, we left out {count:,}, because {reason}.")
    return rows[is_kept].copy()


def accuracy_data(trials: pd.DataFrame, plan: Plan) -> ModelData:
    """Return the data of a logistic model of accuracy, in which an answer that is not valid (a timeout too) counts as wrong."""
    rows, remarks = accuracy_rows(trials, plan)
    return in_model(rows, plan, share="correct", remarks=remarks)


def accuracy_rows(trials: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return the judged trials of a plan with 0 or 1 in ``correct``, failures as 0, and in sentences what was left out of them."""
    rows, remarks = analysed_as_planned(trials, plan)
    rows = _only(rows, judged(rows))
    rows.loc[~is_valid(rows), "correct"] = 0.0
    return rows, remarks


def missing_rows(trials: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials that asked for an answer, with whether each brought no valid one in ``missing``, and what was left out."""
    rows, remarks = analysed_as_planned(trials, plan)
    rows = _only(rows, rows["response_status"].notna() & ~never_answered(rows))
    rows["missing"] = (~is_valid(rows)).astype(float)
    rows[TELLING] = rows["missing"] if rows["missing"].mean() <= 0.5 else 1.0 - rows["missing"]
    return rows, remarks


def time_data(trials: pd.DataFrame, plan: Plan, rule: TimeRule | None) -> ModelData:
    """Return the data of a model of (log) times: valid answers with a time above 0 that the rule keeps."""
    rows, remarks = analysed_as_planned(trials, plan)
    measure = plan.measure
    times = rows[measure.name]
    valid = not_failed(rows)
    n_invalid = int((~valid).sum())
    if n_invalid:
        remarks.append(
            f"The analysis does not include {n_invalid:,} of {len(rows):,} trials, because the answer was not valid."
        )
    timed = valid & (times > 0)
    untimed = int((valid & ~(times > 0)).sum())
    if untimed:
        without = f"{apa.counted(untimed, 'valid answer')} without a {measure.noun}"
        reason = "" if measure.region is None else ", of which a word has no time or was excluded"
        remarks.append(f"The analysis does not include {without}{reason}.")
    if rule is not None and timed.any():
        is_kept = rule.keeps(rows[timed], measure.name).reindex(rows.index, fill_value=False)
        n_outside = int((timed & ~is_kept).sum())
        if n_outside:
            remarks.append(
                f"The analysis does not include {n_outside:,} of {int(timed.sum()):,} times, because they were {rule.said}."
            )
        elif not isinstance(rule, EveryTime):
            remarks.append(f"No time was {rule.said}.")
        timed &= is_kept
    rows = with_covariates(_only(rows, timed), plan, remarks)
    rows[measure.response] = np.log(rows[measure.name]) if measure.logged else rows[measure.name]
    return in_model(rows, plan, remarks=remarks)


CENTRED = "_centred"
"""End of the name of a covariate's column in a model."""


def with_covariates(rows: pd.DataFrame, plan: Plan, remarks: list[str]) -> pd.DataFrame:
    """Return the rows that have every covariate of a plan, each minus its mean; a remark says how many have not."""
    columns = {name: covariate_column(name, plan.measure.region) for name in plan.covariates}
    missing = [name for name, column in columns.items() if column not in rows]
    if missing:
        raise UserError(
            f"{plan.name}: {apa.listing(missing)} of what was read is not known: the items have no such covariate",
            mend="Take it out of covariates, or build the items again.",
        )
    has_all = rows[list(columns.values())].notna().all(axis=1)
    if not has_all.all():
        remarks.append(
            f"The analysis does not include {int((~has_all).sum()):,} of {len(rows):,} trials without "
            f"{apa.listing(list(columns))}."
        )
        rows = rows[has_all].copy()
    for name, column in columns.items():
        rows[f"{name}{CENTRED}"] = rows[column].astype(float) - rows[column].astype(float).mean()
    return rows


ALWAYS = {"correct": ("always wrong", "always right"), "missing": ("never missing", "always missing")}
"""What a share of none and of all means."""
NO_TRIALS = "no trials"
MANY = 8
"""Conditions above which all are not named one by one."""


def in_model(
    rows: pd.DataFrame,
    plan: Plan,
    share: str | None = None,
    remarks: Iterable[str] = (),
    *,
    is_check: bool = False,
) -> ModelData:
    """Keep the reader groups and levels that one model, or one that checks other estimates, can hold; say what stays out."""
    remarks = list(remarks)
    usable: dict[str, list[str]] = {}
    reasons_of: dict[str, dict[str, str]] = {}
    for group in plan.groups:
        rows_of_group = rows[rows["reader_group"] == group]
        if rows_of_group.empty:
            remarks.append(f"No trials of {spoken(group)} could be analyzed.")
            continue
        cells = rows_of_group.groupby(plan.factor, observed=True)[share or plan.measure.name]
        low, high = cells.min().to_dict(), cells.max().to_dict()
        missing = [level for level in plan.levels if level not in low]
        constant = [
            level
            for level in plan.levels
            if share is not None and level in low and low[level] == high[level] and low[level] in (0, 1)
        ]
        if missing:
            remarks.append(f"No trials of {spoken(group)} in {apa.listing(missing)} could be analyzed.")
        at_ends: dict[str, str] = {}
        if constant:
            words = ALWAYS.get(share or "", ("never recovered", "always recovered"))
            at_ends = {level: words[int(high[level])] for level in constant}
            description = " and ".join(
                f"{reason} in {_every(names, plan)}" for reason, names in _grouped(at_ends).items()
            )
            subject = "answers" if share in ALWAYS else "changed words"
            remark = f"For {spoken(group)}, {subject} were {description}"
            reason = "so an effect on the logit scale is infinite and has no estimate."
            remarks.append(Remark(f"{remark}, {reason}", "model"))
        reasons_of[group] = {**dict.fromkeys(missing, NO_TRIALS), **at_ends}
        usable[group] = [level for level in plan.levels if level not in reasons_of[group]]
    groups, levels = _largest_common(usable, plan, remarks, is_check=is_check)
    rows = rows[rows["reader_group"].isin(groups) & rows[plan.factor].isin(levels)]
    kinds = rows.drop_duplicates("reader_group").set_index("reader_group")["reader_kind"].to_dict()
    people = tuple(group for group in groups if kinds.get(group) in PARTICIPANT_KINDS)
    machines = tuple(group for group in groups if group not in people)
    crossing = None if plan.crossing is None else plan.crossing.among(levels)
    columns = tuple(map(str, rows.columns))
    rows = _with_structure_columns(rows, plan, levels, people, crossing)
    without = [group for group in plan.groups if group not in groups]
    return ModelData(
        rows, tuple(groups), tuple(levels), people, machines, tuple(remarks),
        {group: _why_not(reasons_of.get(group)) for group in without},
        {
            level: f"{headed(groups[0])}: {reasons_of[groups[0]][level]} in {level}"
            for level in plan.levels
            if groups and level not in levels
        },
        crossing, columns,
    )  # fmt: skip


def _every(levels: list[str], plan: Plan) -> str:
    """Name levels; all of many as such."""
    return f"all {len(levels)} conditions" if len(levels) == len(plan.levels) > MANY else apa.listing(levels)


def _grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the levels of each reason."""
    return {
        reason: [level for level, given in reasons.items() if given == reason] for reason in reasons.values()
    }


def _why_not(reasons: Mapping[str, str] | None) -> str:
    """State why a reader group is not in a model, from what bars each of its levels; None for one without trials."""
    if reasons is None:
        return f"{NO_TRIALS} to analyze"
    return "; ".join(f"{reason} in {', '.join(levels)}" for reason, levels in _grouped(reasons).items())


def _largest_common(
    usable: dict[str, list[str]], plan: Plan, remarks: list[str], *, is_check: bool
) -> tuple[list[str], list[str]]:
    """Keep the first group with a testable difference (else with two levels), its levels, and groups that have all of these."""
    can_be_fitted = [group for group, levels in usable.items() if len(levels) > 1]
    testable = [
        group
        for group in can_be_fitted
        if any(set(plan.weights(contrast)) <= set(usable[group]) for contrast in plan.contrasts)
    ]
    first = next(iter([*testable, *can_be_fitted]), None)
    groups: list[str] = []
    levels: list[str] = [] if first is None else usable[first]
    for group, shown in usable.items():
        if first is not None and (group == first or (groups and set(levels) <= set(shown))):
            groups.append(group)
            continue
        is_untested = first is not None and not groups and group in can_be_fitted
        if is_check:
            remark = f"The mixed-effects model that checks the estimates does not include {spoken(group)}."
        else:
            remark = (
                f"The model can test no difference for {spoken(group)} and holds the other readers"
                if is_untested
                else f"No model can be fitted for {spoken(group)}"
            )
            remark += "; the descriptive values are in the tables and figures."
        remarks.append(Remark(remark, "model"))
    return groups, levels


def indicator(factor: str, level: str) -> str:
    """Name the numeric column that is 1 where a factor has a level."""
    return plain(*factor.split(TIMES), level)


def _with_structure_columns(
    rows: pd.DataFrame,
    plan: Plan,
    levels: list[str],
    people: tuple[str, ...],
    crossing: CrossedFactors | None,
) -> pd.DataFrame:
    """Add the columns that random terms need: who is a person, who a model, which level is shown, in which other conditions."""
    factor = plan.factor
    is_person = rows["reader_group"].isin(people).astype(float)
    added: dict[str, Any] = {"people": is_person, "model": 1.0 - is_person}
    for level in levels:
        shown = (rows[factor] == level).astype(float)
        added[indicator(factor, level)] = shown
        added[indicator("people", level)] = shown * is_person
        added[indicator("model", level)] = shown * added["model"]
    if crossing is not None:
        marked = rows.assign(people=is_person, model=added["model"])
        for kind in ("", "people", "model"):
            added |= slopes_in_rows(crossing, marked, kind)
    machine = rows["machine"] if "machine" in rows else rows["reader_group"]
    added["machine"] = machine
    added["machine_condition"] = joined(machine, rows[factor])
    added["item_condition"] = joined(rows["item"], rows[factor])
    added["item_reader"] = joined(rows["item"], machine)
    added["item_cell"] = joined(added["item_reader"], rows[factor])
    others = pd.Series("", index=rows.index, dtype=object)
    for name in plan.factors:
        if name not in (factor, *(crossing.factors if crossing else ())) and name in rows:
            others = joined(others, rows[name])
    added["other_conditions"] = others
    # people's sessions are one level, in which no model's term is: thousands of empty ones would be carried through each fit
    added["model_session"] = joined(machine, rows["session_id"]).where(is_person == 0.0, machine)
    variants = rows["prompt_variant"].map(lambda variant: "-" if pd.isna(variant) else f"{variant:g}")
    added["prompt"] = joined(machine, variants)
    unchanged = rows.drop(columns=[name for name in added if name in rows])
    # together: hundreds of single columns would be slow, and pandas would warn
    return pd.concat([unchanged, pd.DataFrame(added, index=rows.index)], axis=1).reset_index(drop=True)


ROUNDING = 1e-6
"""Range of a model's values, as a share of the largest, that is nothing but rounding in 32 bits."""

_LEAD = "lead of the correct label"
LEAD = Measure("lead", _LEAD.capitalize(), _LEAD, "gaussian", False, "nats", "lead", of="models")
"""Log-probability of the correct label minus that of its best rival: with two labels, the log odds of the correct one."""

_PLACE = ["session_id", "trial_index", "attempt"]


def quantity_data(trials: pd.DataFrame, plan: Plan, factors: Iterable[str] = ()) -> ModelData:
    """Return the data of a model of surprisal, margins, tokens, latency or an own number: every trial with it, valid or not.

    ``factors`` are those of the study, whose conditions are not repeats of one another.
    """
    rows, remarks = analysed_as_planned(trials, plan)
    measure = plan.measure
    has_value = rows[measure.name].notna()
    if measure.logged:
        none = has_value & ~(rows[measure.name] > 0)
        if none.any():
            remarks.append(
                f"The analysis does not include {int(none.sum()):,} of {int(has_value.sum()):,} trials with a {measure.noun} of 0, "
                "which has no logarithm."
            )
        has_value &= ~none
    n_missing = int(rows[measure.name].isna().sum())
    if n_missing and has_value.any():
        remarks.append(
            f"The analysis does not include {n_missing:,} of {len(rows):,} trials without a {measure.noun}."
        )
    rows = rows[has_value].copy()
    rows[measure.response] = np.log(rows[measure.name]) if measure.logged else rows[measure.name]
    for group, values in rows.groupby("reader_group")[measure.response]:
        if np.ptp(values) <= ROUNDING * values.abs().max():
            remarks.append(
                f"The model does not include {spoken(str(group))}, with the same {measure.noun} in every trial."
            )
            rows = rows[rows["reader_group"] != group]
    if measure.name != "latency_ms" and not measure.is_own:
        rows = _without_repeats(rows, measure, [*plan.factors, *factors], remarks)
    return in_model(rows, plan, remarks=remarks)


def _without_repeats(
    rows: pd.DataFrame, measure: Measure, factors: Iterable[str], remarks: list[str]
) -> pd.DataFrame:
    """Keep one of the values of an item in a condition that a model repeats but for numerical error, and note this."""
    cells = ["item", *dict.fromkeys(name for name in factors if name in rows)]
    for group, of_group in rows.groupby("reader_group", sort=False):
        is_repeat = repeats(of_group[measure.response], of_group[cells])
        if is_repeat.any():
            repeated = f"{apa.counted(int(is_repeat.sum()), 'trial')} of {spoken(str(group))}"
            remarks.append(
                f"The analysis does not include {repeated} whose {measure.noun} repeats that of the same item in the same condition, "
                "apart from numerical error."
            )
            rows = rows.drop(index=of_group.index[is_repeat])
    return rows


def lead_data(tables: Tables, plan: Plan) -> ModelData:
    """Return the data of a model of the lead of the correct label: the margin of a right choice, minus that of a wrong one."""
    rows, remarks = analysed_as_planned(tables.trials, plan)
    has_lead = rows["margin"].notna() & rows["correct"].notna()
    reason = "they have no probabilities of labels or are neither right nor wrong"
    rows = _keep(rows, has_lead, remarks, reason)
    right = rows["correct"].to_numpy(dtype=float) > 0
    rows[LEAD.name] = np.where(right, rows["margin"], -rows["margin"])
    if not _two_labels(tables) and not right.all():
        remarks.append(
            "Items have more than two labels: where the choice was wrong the correct label is taken to be second, the best that "
            "it can be."
        )
    rows = _without_repeats(rows, LEAD, [*plan.factors, *tables.factors], remarks)
    return in_model(rows, plan, remarks=remarks)


def _two_labels(tables: Tables) -> bool:
    if "choices" not in tables.items.columns:
        return False
    n_choices = tables.items["choices"].dropna().map(lambda text: len(json.loads(text) or []))
    return bool((n_choices[n_choices > 0] == 2).all())


def rating_rows(trials: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials of a plan that have a rating, and what was left out."""
    rows, remarks = analysed_as_planned(trials, plan)
    return _keep(rows, rows["rating"].notna(), remarks, "they have no rating"), remarks


def words_rows(tables: Tables, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return trials with changed words, the ``share`` of them that each typed answer recovers, and what was left out."""
    rows, remarks = analysed_as_planned(tables.trials, plan)
    measured = recovery_trials(tables.trials, tables.items, list(tables.factors))
    counts = measured[[*_PLACE, "changed", "recovered", "with_one_typo", "ed_shown", "ed_given"]]
    rows = rows.merge(counts, on=_PLACE, how="inner", validate="one_to_one")
    rows = _keep(rows, rows["changed"] != 0, remarks, "no word was changed in them")
    rows["not_recovered"] = rows["changed"] - rows["recovered"]
    rows["recovered_with_one_typo"] = rows["with_one_typo"]
    rows["beyond_one_typo"] = rows["changed"] - rows["with_one_typo"]
    column = "with_one_typo" if plan.measure == WORDS_WITH_ONE_TYPO else "recovered"
    rows["share"] = rows[MODELLED] = rows[column] / rows["changed"]
    shares = rows.loc[rows["changed"] > 1, "share"]
    extreme = float(shares.isin([0.0, 1.0]).mean()) if len(shares) else 0.0
    if len(shares) and extreme < ALL_OR_NONE:
        rows["answer_given"] = rows["session_id"] + ":" + rows["trial_index"].astype(str)
    elif len(shares):
        # an answer counts once, as recovered or not, instead of each of its words
        for column, complement in (
            ("recovered", "not_recovered"),
            ("recovered_with_one_typo", "beyond_one_typo"),
        ):
            rows[column] = (rows[column] / rows["changed"] >= 0.5).astype(float)
            rows[complement] = 1.0 - rows[column]
        rows[MODELLED] = (rows["share"] >= 0.5).astype(float)
        remark = (
            f"In {apa.percent(extreme)} of the answers, all changed words are recovered or none. Words of one answer are therefore "
            "not independent: each answer counts once in the logistic model, as recovered if at least half of its words are."
        )
        remarks.append(Remark(remark, "model"))
    return rows, remarks


MODELLED = "share_recovered"
"""The share of words that the logistic model sees: 0 or 1 where each answer counts once."""
ALL_OR_NONE = 0.9
"""From this share of answers on whose words come back together the variance between answers has no bound."""


STRUCTURE = (
    *("reader_group", "participant", "item", "item_reader", "item_cell", "prompt", "people", "model"),
    *("item_condition", "model_session", "machine", "machine_condition"),
    *("session_id", "list_id", "block", "set", "trial_index", "prompt_variant", "label_map", "choice_order"),
    *("replicate", "answer_given"),
)
"""Columns that every model may name, in addition to the response and the study's factors."""
TAKEN = {*REQUIRED, *OPTIONAL, *LONG, *ADDED, *STRUCTURE, "participant_id", "run_id", "presentation"}
"""Names that columns of tables and models have; a factor needs another."""


def check_own_formula(
    text: str, measure: Measure, compare: Sequence[str], factors: Collection[str], *, several_readers: bool
) -> None:
    """Check a planned formula before there are data."""
    formula = read_formula(text)
    if not formula.random:
        raise UserError(
            f"{text!r} has no random-effects term; a planned model must generalise over participants or items",
            mend="Add one, for example '+ (1 | participant)'.",
        )
    left, right = text.split("~", 1)
    response = "".join(left.split())
    if response != "".join(measure.response.split()):
        raise UserError(
            f"{text!r} models {left.strip()!r}; {measure.noun} is {measure.response!r} in a model",
            mend=f"Write: {measure.response} ~{right}",
        )
    responses = set(columns_of(formula.response))
    allowed = {*STRUCTURE, *factors, *responses}
    for name in formula.columns():
        if name not in allowed:
            kind = f"{text!r} names a column that models do not have:"
            raise unknown_name(kind, name, sorted(allowed - responses))
    fixed = {word for label in formula.fixed.labels() for word in label.split(":")}
    for name in [*compare, *(["reader_group"] if several_readers else [])]:
        if name not in fixed:
            raise UserError(
                f"{text!r} has no fixed effect of {name}, which the analysis compares",
                mend=f"Write it as {name}, as a plain column.",
            )
    if len(compare) > 1 and not any(
        set(compare) <= set(label.split(":")) for label in formula.fixed.labels()
    ):
        raise UserError(
            f"{text!r} has no interaction of {' and '.join(compare)}, which the analysis compares",
            mend=f"Write them as {' * '.join(compare)}.",
        )
