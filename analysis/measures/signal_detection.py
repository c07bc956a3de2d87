"""Signal detection for two-class answers: d', criterion, and a probit mixed model of response by truth and condition."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis import apa
from analysis.answers import is_choice, is_valid
from analysis.cluster_sampling import draw, shares, units_of
from analysis.intervals import half_width
from analysis.measures.accuracy import cell_columns
from analysis.measures.resampling import interval, resampled_means
from analysis.mixed import Fit, fit, linear_contrasts
from analysis.names import plain, upper_first
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order, kinds_of, named, spoken
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

GROUP = "reader_group"


@dataclass(frozen=True)
class SignalDetection:
    """Sensitivity and bias from counts."""

    d_prime: float  # a criterion above 0 is a bias against answering "signal"
    criterion: float
    d_prime_se: float
    criterion_se: float
    beta: float  # ln of the likelihood ratio at the criterion, d' x c


def _corrected(
    said: NDArray[np.float64], trials: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rates and numbers of trials of both classes with the log-linear correction; the last axis is the classes.

    Each class's share of all trials is added to its count, and twice that to its trials, whether or not a rate is 0 or 1. With
    equal classes these are 0.5 and 1, as in Hautus (1995, Behavior Research Methods, Instruments, & Computers 27, 46-51). Fixed
    halves would give a reader with one answer throughout to unequal classes a d' other than 0.
    """
    share = np.where(
        trials > 0, trials / trials.sum(axis=-1, keepdims=True), 0.5
    )  # a resample may lack a class
    corrected = trials + 2 * share
    return (said + share) / corrected, corrected


def sensitivity(hits: float, signals: float, false_alarms: float, others: float) -> SignalDetection:
    """Return d' and c of one reader in one condition, with the log-linear correction."""
    if min(hits, false_alarms) < 0 or hits > signals or false_alarms > others:
        raise UserError(
            f"{hits:g} hits of {signals:g} and {false_alarms:g} false alarms of {others:g}",
            mend="Hits and false alarms lie between 0 and their numbers of trials.",
        )
    rates, counts = _corrected(np.array([hits, false_alarms]), np.array([signals, others]))
    z = stats.norm.ppf(rates)
    variance = rates * (1 - rates) / counts / stats.norm.pdf(z) ** 2
    d_prime, criterion = float(z[0] - z[1]), float(-(z[0] + z[1]) / 2)
    se = float(np.sqrt(variance.sum()))
    return SignalDetection(d_prime, criterion, se, se / 2, d_prime * criterion)


def classes_of(trials: pd.DataFrame) -> tuple[str, str]:
    """Return the two classes that answers name, in alphabetical order."""
    classes = sorted(trials["answer"].dropna().unique())
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:4])) or "none"
        raise UserError(
            f"signal detection needs two classes of answers, and these trials have {len(classes)} ({shown})",
            mend="Choose trials of one task with two answers, such as A and B.",
        )
    return str(classes[0]), str(classes[1])


def signal_detection(
    trials: pd.DataFrame, by: Sequence[str] | str = (), signal: str | None = None
) -> pd.DataFrame:
    """Return sensitivity and bias of each reader in each cell."""
    by = cell_columns(trials, by)
    rows = _answered(trials, by, signal)
    results = []
    keys = [GROUP, "reader", *by]
    for key, answers in rows.groupby(keys, observed=True, sort=False):
        valid = answers[answers["said_signal"].notna()]
        is_signal, said_signal = valid["truth"] > 0, valid["said_signal"] == 1
        counts = {
            "hits": int((said_signal & is_signal).sum()),
            "signals": int(is_signal.sum()),
            "false_alarms": int((said_signal & ~is_signal).sum()),
            "others": int((~is_signal).sum()),
        }
        has_both = counts["signals"] > 0 and counts["others"] > 0
        estimates = vars(sensitivity(**counts)) if has_both else dict.fromkeys(_SENSITIVITY, float("nan"))
        if has_both and not answers["reader_kind"].isin(PARTICIPANT_KINDS).any():
            estimates = estimates | _errors_over_items(valid, counts)
        missing = {"missing": len(answers) - len(valid)}
        results.append(dict(zip(keys, key, strict=True)) | counts | missing | estimates)
    return pd.DataFrame(results)


def _errors_over_items(valid: pd.DataFrame, counts: Mapping[str, int]) -> dict[str, float]:
    """Return the standard errors of d' and c over the items that one reader answered, some perhaps several times.

    The deviations of an item's answers from the rates are summed (linearization), so answers to one item may depend on one another.
    Below the errors of independent answers there is no certainty: these are the least, with one answer per item if all are alike.
    """
    is_signal = (valid["truth"] > 0).to_numpy()
    said = valid["said_signal"].to_numpy(dtype=float)
    keys = [name for name in ("set", "item_id") if name in valid]
    items = valid.groupby(keys, dropna=False).ngroup().to_numpy()
    n_items = int(items.max()) + 1
    counted = np.array([counts["hits"], counts["false_alarms"]])
    of_classes = np.array([counts["signals"], counts["others"]])
    parts, least = [], 0.0
    for of_class, said_so, trials, rate, corrected in zip(
        (is_signal, ~is_signal), counted, of_classes, *_corrected(counted, of_classes), strict=True
    ):
        density = float(stats.norm.pdf(stats.norm.ppf(rate)))
        deviations = np.where(of_class, said - said_so / trials, 0.0)
        parts.append(np.bincount(items, deviations, n_items) / corrected / density)
        is_constant = said_so in (0, trials)
        independent = len(set(items[of_class])) if is_constant else trials
        least += rate * (1 - rate) / (independent + corrected - trials) / density**2
    hits, false_alarms = parts
    scale = n_items / max(n_items - 1, 1)
    of_sum, of_difference = (
        scale * float((part**2).sum()) for part in (hits + false_alarms, hits - false_alarms)
    )
    return {
        "d_prime_se": float(np.sqrt(max(of_difference, least))),
        "criterion_se": float(np.sqrt(max(of_sum, least)) / 2),
    }


@dataclass(frozen=True)
class ProbitData:
    """A probit model of responses, ready for :func:`analysis.mixed.fit`."""

    rows: pd.DataFrame
    formula: str  # response by truth x condition (x reader group)
    settings: dict[str, Any]  # ``family``, ``link`` and ``levels`` for ``fit``
    cells: tuple[dict[str, str], ...]
    signal: str  # the class that counts as signal


def probit_data(
    trials: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    groups: Sequence[str],
    signal: str | None = None,
    random: Sequence[str] | None = None,
) -> ProbitData:
    """Write the probit model whose coefficients of truth are d' and whose others are minus the criterion."""
    rows = _answered(trials, (factor,), signal)
    rows = rows[rows["said_signal"].notna() & rows[factor].isin(levels) & rows[GROUP].isin(groups)].copy()
    if rows.empty:
        raise UserError(
            "no valid answers in these conditions and reader groups",
            mend="Name conditions that were answered.",
        )
    rows["participant"] = rows["reader"]
    rows["item"] = rows["item_id"]
    several_groups = len(groups) > 1
    person = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    rows["people"] = person.astype(float)
    rows["people_truth"] = rows["people"] * rows["truth"]
    rows["item_reader"] = rows["item"] + ":" + rows[GROUP]
    if random is None:
        random = ["(1 | item)"]
        if person.any():
            random = ["(0 + people + people_truth | participant)", *random]
        if several_groups:
            random = [*random, "(1 | item_reader)"]
    fixed = f"truth * {factor}" + (f" * {GROUP}" if several_groups else "")
    factor_levels: dict[str, list[str]] = {factor: list(levels)}
    cells = [{factor: level} for level in levels]
    if several_groups:
        factor_levels[GROUP] = list(groups)
        cells = [{GROUP: group, **cell} for group in groups for cell in cells]
    return ProbitData(
        rows.reset_index(drop=True),
        f"said_signal ~ {fixed} + " + " + ".join(random),
        {"family": "binomial", "link": "probit", "levels": factor_levels},
        tuple(cells),
        classes_of(rows)[0] if signal is None else signal,
    )


def sensitivity_and_bias(fit: Fit, data: ProbitData) -> pd.DataFrame:
    """Read d' and criterion of each cell, with intervals, from a fitted probit model."""
    rows = [
        ({**cell, "measure": measure}, weights[measure])
        for cell, weights in zip(data.cells, _weights(fit, data), strict=True)
        for measure in MEASURED
    ]
    return _told(fit, rows)


def differences_in_sensitivity(fit: Fit, data: ProbitData) -> pd.DataFrame:
    """Test differences of d' and criterion from the reference, within and between reader groups."""
    weights = _weights(fit, data)
    factor = next(iter(name for name in data.settings["levels"] if name != GROUP))
    reference, *others = data.settings["levels"][factor]
    groups = data.settings["levels"].get(GROUP, [None])
    weights_of = {(cell.get(GROUP), cell[factor]): weights[index] for index, cell in enumerate(data.cells)}
    rows: list[tuple[dict[str, Any], NDArray[np.float64]]] = []
    for measure, level in product(MEASURED, others):
        within = {
            group: weights_of[group, level][measure] - weights_of[group, reference][measure]
            for group in groups
        }
        comparisons: dict[tuple[Any, ...], NDArray[np.float64]] = {
            (group,): within[group] for group in groups
        }
        comparisons |= {(groups[0], group): within[groups[0]] - within[group] for group in groups[1:]}
        names = {"first": level, "second": reference, "measure": measure}
        rows += [(names | {"groups": compared}, row) for compared, row in comparisons.items()]
    return _told(fit, rows)


MEASURED = ("d_prime", "criterion")


def _weights(fit: Fit, data: ProbitData) -> list[dict[str, NDArray[np.float64]]]:
    """Write d' and criterion of each cell as linear functions of the fixed effects."""
    terms = [str(term) for term in fit.fixed["term"]]
    levels = data.settings["levels"]
    weights: list[dict[str, NDArray[np.float64]]] = []
    for cell in data.cells:
        present = [f"{name}{cell[name]}" for name in levels if cell[name] != levels[name][0]]
        # coefficients as lme4 names them: those with truth sum to d', those without to minus the criterion
        summed = [subset for size in range(len(present) + 1) for subset in combinations(present, size)]
        d_prime = {":".join(["truth", *subset]) for subset in summed}
        bias = {":".join(subset) or "(Intercept)" for subset in summed}
        signed = ((1.0, d_prime), (-1.0, bias))
        rows = (np.array([sign * (term in names) for term in terms]) for sign, names in signed)
        weights.append(dict(zip(MEASURED, rows, strict=True)))
    return weights


def _told(fit: Fit, rows: list[tuple[dict[str, Any], NDArray[np.float64]]]) -> pd.DataFrame:
    table = linear_contrasts(fit, np.array([row for _, row in rows]))
    numbers = table[["estimate", "se", "statistic", "p", "ci_low", "ci_high"]]
    return pd.concat([pd.DataFrame([names for names, _ in rows]), numbers.reset_index(drop=True)], axis=1)


_SENSITIVITY = ("d_prime", "criterion", "d_prime_se", "criterion_se", "beta")


def _answered(trials: pd.DataFrame, by: Sequence[str], signal: str | None) -> pd.DataFrame:
    """Return used trials that asked for an answer, with ``truth`` and ``said_signal`` (nan where not valid)."""
    used = trials["excluded_reason"].isna() & trials["response_status"].notna() & trials["answer"].notna()
    rows = trials[used & trials[list(by)].notna().all(axis=1)].copy()
    first, other = classes_of(rows)
    chosen = first if signal is None else signal
    if chosen not in (first, other):
        raise unknown_name("signal:", chosen, (first, other))
    valid = is_valid(rows) & rows["response"].isin([first, other])
    rows["truth"] = np.where(rows["answer"] == chosen, 0.5, -0.5)
    said_signal: NDArray[np.float64] = np.where(valid, (rows["response"] == chosen).astype(float), np.nan)
    rows["said_signal"] = said_signal
    return rows


COUNTED = ("hits", "signals", "false_alarms", "others")
MOST_ROWS = 40_000
"""Answers in one model; beyond, whole participants (or sessions of a model) are drawn by a stable hash."""
LEVELS_WITH_SLOPES = 4
"""A factor of more levels gets no slopes by participant: two components a level are too many to estimate."""
NO_VARIANCE, NOT_CONVERGED = "their variance was estimated as zero", "the model did not converge with them"
EFFECTS = {
    "people": "by-participant intercepts (bias)",
    "people_truth": "by-participant slopes of truth (sensitivity)",
    "item": "by-item intercepts",
    "item_reader": "by-item intercepts for each reader",
}
"""Random effects in words, except slopes by level."""
ZERO = 1e-3
"""A standard deviation below this on the probit scale counts as zero."""


@dataclass(frozen=True)
class Classes:
    """Trials that ask for one of two classes."""

    signal: str
    other: str
    sets: tuple[str, ...]  # sets of items that ask so; empty where items have none
    trials: pd.DataFrame  # the used trials
    noun: str = ""  # what a sentence puts before the name of a class, where labels have the same names

    @property
    def signal_in_words(self) -> str:
        """The class that counts as the signal, as sentences name it."""
        return f"{self.noun}{self.signal}"

    @property
    def other_in_words(self) -> str:
        """The other class."""
        return f"{self.noun}{self.other}"


def two_class_trials(trials: pd.DataFrame, items: pd.DataFrame) -> list[Classes]:
    """Find the trials that ask for one of the same two classes: A and B, word and nonword, yes and no."""
    used = trials["excluded_reason"].isna() & is_choice(trials)
    rows = trials[used & trials["answer"].notna() & trials["response_status"].notna()]
    offered, leading = _offered(items)
    sets_of_classes: dict[tuple[str, str], list[str]] = {}
    names = rows["set"].fillna("")
    for name, answers in rows["answer"].groupby(names):
        classes = sorted(map(str, answers.unique()))
        if len(classes) == 2 and offered.get(str(name), 2) == 2:
            classes = classes[::-1] if leading.get(str(name)) == classes[1] else classes
            sets_of_classes.setdefault((classes[0], classes[1]), []).append(str(name))
    return [
        Classes(signal, other, tuple(name for name in sets if name), rows[names.isin(sets)])
        for (signal, other), sets in sets_of_classes.items()
    ]


def _offered(items: pd.DataFrame) -> tuple[dict[str, int], dict[str, str]]:
    """Return how many choices an item of each set offers at most, and which one its first item names first."""
    if "choices" not in items or items.empty:
        return {}, {}
    names = items["set"].fillna("") if "set" in items else pd.Series("", index=items.index)
    n_choices: dict[str, int] = {}
    first: dict[str, str] = {}
    distinct = pd.DataFrame({"set": names.astype(str), "choices": items["choices"]}).drop_duplicates()
    for name, given in distinct.itertuples(index=False):
        if isinstance(given, str) and (choices := json.loads(given)):
            n_choices[name] = max(n_choices.get(name, 0), len(choices))
            first.setdefault(name, str(choices[0]))
    return n_choices, first


def of_groups(classes: Classes, factor: str | None, levels: Sequence[str] = ()) -> pd.DataFrame:
    """Return hits, false alarms, d' and criterion of every reader group in every level."""
    table = signal_detection(classes.trials, [factor] if factor else [], classes.signal)
    if table.empty:
        return table
    kinds = kinds_of(classes.trials)
    cells = [
        (group, level, table[(table[GROUP] == group) & (table[factor] == level if factor else True)])
        for group, level in product(group_order(classes.trials), levels if factor else [""])
    ]
    return pd.DataFrame(
        [
            {GROUP: group, "kind": kinds[group], "level": level, **_of_cell(rows, kinds[group], level)}
            for group, level, rows in cells
            if len(rows)
        ]
    )


def _of_cell(rows: pd.DataFrame, kind: str, level: str) -> dict[str, Any]:
    with_both = rows[(rows["signals"] > 0) & (rows["others"] > 0)]
    person = kind in PARTICIPANT_KINDS
    too_few = len(with_both) < 2 or 2 * len(with_both) < len(rows)
    pooled = person and too_few and bool(rows["signals"].any() and rows["others"].any())
    # counts and rates are of the same readers
    counted = rows if pooled or with_both.empty else with_both
    summary: dict[str, Any] = {"readers": len(counted), "of": len(rows), "pooled": pooled}
    summary |= {name: int(counted[name].sum()) for name in COUNTED} | {"missing": int(rows["missing"].sum())}
    if pooled:
        return summary | _pooled(rows, level)
    nan = float("nan")
    for rate, said, trials in (
        ("hit_rate", "hits", "signals"),
        ("false_alarm_rate", "false_alarms", "others"),
    ):
        summary[rate] = float((counted[said] / counted[trials].where(counted[trials] > 0)).mean())
    for name in MEASURED:
        values = with_both[name].to_numpy(dtype=float)
        centre = float(values.mean()) if len(values) else nan
        half = half_width(values) if person else nan
        if not person and len(values) == 1:
            half = float(stats.norm.ppf(0.975) * with_both[f"{name}_se"].iloc[0])
        summary |= {name: centre, f"{name}_low": centre - half, f"{name}_high": centre + half}
    return summary


def _pooled(rows: pd.DataFrame, level: str) -> dict[str, Any]:
    """Return rates, d' and criterion of all counts of a cell together, with a bootstrap over participants."""
    counts = rows[list(COUNTED)].to_numpy(dtype=float)
    total = sensitivity(*counts.sum(axis=0))
    summary: dict[str, Any] = {
        "hit_rate": float(counts[:, 0].sum() / counts[:, 1].sum()),
        "false_alarm_rate": float(counts[:, 2].sum() / counts[:, 3].sum()),
    }
    seed = stable_seed("signal detection", str(rows[GROUP].iloc[0]), level)
    sums = resampled_means(counts, seed) * len(counts)
    z = stats.norm.ppf(_corrected(sums[:, ::2], sums[:, 1::2])[0])
    drawn = {"d_prime": z[:, 0] - z[:, 1], "criterion": -(z[:, 0] + z[:, 1]) / 2}
    for name, draws in drawn.items():
        ends = interval(draws)
        summary |= {name: getattr(total, name), f"{name}_low": ends.low, f"{name}_high": ends.high}
    return summary


@dataclass(frozen=True)
class ProbitModel:
    """A fitted model of responses."""

    data: ProbitData
    fit: Fit
    omitted: Mapping[str, list[str]]  # random effects that were left out, in words, by reason
    remarks: tuple[str, ...]  # which readers and levels are not in it and why, and whether answers were drawn
    groups: tuple[str, ...]
    levels: tuple[str, ...]


def probit_model(classes: Classes, factor: str, levels: Sequence[str]) -> ProbitModel | list[str]:
    """Fit response by truth x condition x reader group; return why, in sentences, if that is impossible."""
    rows = classes.trials[classes.trials[factor].isin(list(levels))]
    groups, model_levels, remarks, absent = _in_model(rows, factor, levels, classes)
    if len(model_levels) < 2:
        why = "because fewer than two conditions could be compared"
        return [*remarks, f"Responses by {factor} were not modeled, {why}."]
    remarks += (
        [f"The model of responses by {factor} does not include {apa.listing(absent)}."] if absent else []
    )
    rows = rows[rows[GROUP].isin(groups) & rows[factor].isin(model_levels)]
    rows, drawn = _drawn(rows)
    remarks += [drawn] if drawn else []
    terms, grouped = _random(rows, factor, model_levels, groups)
    left_out: dict[str, list[str]] = {}
    while True:
        data = probit_data(
            rows, factor, model_levels, groups, classes.signal, random=_written(terms, grouped)
        )
        for level in model_levels[1:]:
            shown = (data.rows[factor] == level).astype(float)
            data.rows[_slope(level)] = shown * data.rows["people"]
            data.rows[_slope(level, truth=True)] = data.rows[_slope(level)] * data.rows["truth"]
        try:
            fitted = fit(data.formula, data.rows, **data.settings)
        except (UserError, np.linalg.LinAlgError, FloatingPointError) as error:
            message = error.message if isinstance(error, UserError) else str(error)
            return [*remarks, f"The model of responses by {factor} could not be fitted: {message}."]
        dropped = _without_variance(fitted, terms, grouped)
        if not dropped or (fitted.converged and not fitted.singular):
            omitted = {reason: list(_effects(names, model_levels)) for reason, names in left_out.items()}
            return ProbitModel(data, fitted, omitted, tuple(remarks), tuple(groups), tuple(model_levels))
        reason = NO_VARIANCE if fitted.converged else NOT_CONVERGED
        left_out.setdefault(reason, []).extend(dropped)
        terms = [term for term in terms if term not in dropped]
        grouped = [name for name in grouped if name not in dropped]


def _repeats_itself(rows: pd.DataFrame, factor: str) -> bool:
    """Whether items were repeated in a condition, always with the same answer."""
    answers = rows.groupby(["item_id", factor, "answer"], observed=True)["response"].agg(["size", "nunique"])
    return bool((answers["size"] > 1).any() and (answers["nunique"] <= 1).all())


def _in_model(
    rows: pd.DataFrame, factor: str, levels: Sequence[str], classes: Classes
) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the groups and levels of the model, why conditions have no d′, and the readers that it does not include."""
    kinds = kinds_of(rows) if len(rows) else {}
    candidates = [group for group in group_order(rows) if kinds[group] in DATA_KINDS] if kinds else []
    if not any(kinds[group] == "human" for group in candidates):
        candidates = [group for group in kinds if kinds[group] == "simulated"] + candidates
    valid = rows[is_valid(rows) & rows["response"].isin([classes.signal, classes.other])]
    said_signal = (valid["response"] == classes.signal).astype(float)
    shares = said_signal.groupby([valid[GROUP], valid[factor], valid["answer"]]).mean()
    groups: list[str] = []
    model_levels: list[str] = []
    remarks: list[str] = []
    absent: list[str] = []
    without: dict[tuple[str, str], list[str]] = {}
    for group in candidates:
        answers = (classes.signal, classes.other)
        usable = [n for n in levels if all(0 < shares.get((group, n, answer), 0) < 1 for answer in answers)]
        unusable = [level for level in levels if level not in usable]
        why: dict[str, list[str]] = {}
        for level in unusable:
            why.setdefault(
                _why_unusable(rows[rows[GROUP] == group], factor, level, classes, shares), []
            ).append(level)
        for reason, of_reason in why.items():
            where = "in every condition"
            if len(of_reason) < len(levels):
                where = f"in the {apa.listing(of_reason)} condition{'s' if len(of_reason) > 1 else ''}"
            without.setdefault((where, reason), []).append(named(group, kinds))
        if usable and kinds[group] == "model" and _repeats_itself(valid[valid[GROUP] == group], factor):
            remarks.append(
                f"Answers of {spoken(group)} cannot be modeled, because they were the same whenever an item was repeated in a "
                "condition: the variance of items would have no limit."
            )
        elif not groups and len(usable) > 1:
            groups, model_levels = [group], usable
        elif groups and set(model_levels) <= set(usable):
            groups.append(group)
        else:
            absent.append(spoken(group))
    told = [
        f"{upper_first(where)}, {reason.format(apa.listing(who))}."
        for (where, reason), who in without.items()
    ]
    return groups, model_levels, [*told, *remarks], absent


def _why_unusable(
    rows: pd.DataFrame, factor: str, level: str, classes: Classes, shares: pd.Series[float]
) -> str:
    """Return why a reader has no d′ in a condition without a correction; braces stand for the reader."""
    asked = rows[rows[factor] == level]
    (group,) = asked[GROUP].unique() if len(asked) else ("",)
    answers = [answer for answer in (classes.signal, classes.other) if (asked["answer"] == answer).any()]
    answered = [answer for answer in answers if (group, level, answer) in shares]
    if len(answers) < 2:
        return "{} did not meet both classes" if answers else "{} met no trial"
    if len(answered) < 2:
        return "{} gave no valid answer" + (" to one class" if answered else "")
    always, never = (
        sum(float(shares[group, level, answer]) == end for answer in answers) for end in (1.0, 0.0)
    )
    how = {
        (2, 0): "always answered {}",
        (0, 2): "never answered {}",
        (1, 1): "always answered {} on trials of one class and never on trials of the other",
        (0, 1): "never answered {} on trials of one class",
    }.get((always, never), "always answered {} on trials of one class")
    return f"{{}} {how.format(classes.signal)}, so d′ is undefined without a correction"


def _drawn(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Keep whole participants, or sessions of a model, until as many answers are left as one model is fitted to."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    drawn = draw(rows[GROUP], units_of(rows), shares(rows[GROUP], MOST_ROWS))
    return rows[drawn.kept], (
        f"The model of responses was fitted to {int(drawn.kept.sum()):,} of {len(rows):,} answers: those of "
        f"{drawn.fewer()} participants and sessions of models, drawn by a stable hash."
    )


def _slope(level: str, *, truth: bool = False) -> str:
    return f"people_{plain(level)}" + ("_truth" if truth else "")


def _random(
    rows: pd.DataFrame, factor: str, levels: Sequence[str], groups: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the columns by which participants differ, and the grouping columns with an intercept each."""
    person = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    people = rows[person]
    terms: list[str] = []
    if people["reader"].nunique() > 1:
        terms = ["people", "people_truth"]
        per_cell = people.groupby(["reader", factor, "answer"], observed=True).size()
        within = bool((people.groupby("reader")[factor].nunique() > 1).any())
        if within and len(levels) <= LEVELS_WITH_SLOPES and per_cell.median() >= 2:
            terms += [_slope(level, truth=truth) for level in levels[1:] for truth in (False, True)]
    grouped = ["item"] if rows["item_id"].nunique() > 1 else []
    grouped += ["item_reader"] if len(groups) > 1 and grouped else []
    return terms, grouped


def _written(terms: Sequence[str], grouped: Sequence[str]) -> list[str]:
    participant_terms = [f"(0 + {' + '.join(terms)} || participant)"] if terms else []
    return participant_terms + [f"(1 | {name})" for name in grouped]


def _without_variance(fitted: Fit, terms: Sequence[str], grouped: Sequence[str]) -> list[str]:
    """Name the terms to drop next: all components at zero; if none is and the fit fails, the last one. One term remains."""
    at_zero = [
        name if name in terms else component.group
        for component in fitted.variance
        for name, variance in zip(component.terms, np.diag(component.cov), strict=True)
        if variance < ZERO**2
    ]
    all_terms = [*terms, *grouped]
    dropped = [term for term in all_terms if term in at_zero]
    if not dropped and not fitted.converged:
        dropped = [*grouped[1:], *terms[2:]][-1:]
    return dropped[: len(all_terms) - 1]


def _effects(names: Collection[str], levels: Sequence[str]) -> Iterator[str]:
    """Yield random effects in words; slopes of several levels on one measure together."""
    yield from (words for name, words in EFFECTS.items() if name in names)
    for truth, measure in ((False, "bias"), (True, "sensitivity")):
        with_slopes = [level for level in levels[1:] if _slope(level, truth=truth) in names]
        if with_slopes:
            yield f"by-participant slopes of {apa.listing(with_slopes)} on {measure}"
