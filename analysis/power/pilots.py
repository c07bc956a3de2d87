"""Assumptions from a pilot's data or a fitted model: accuracy by moments on the probit scale, else the plan's mixed model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats

from analysis.arrays import Array
from analysis.contrasts import cell_means
from analysis.crossed_variance import EstimateLayout, ItemAnswers, model_means, sums_of_model, sums_of_people
from analysis.estimation import analyse
from analysis.exclusions import PILOT, flag_trials, time_bounds
from analysis.factorial import slope_columns, slopes_in_words
from analysis.frames import accuracy_rows, indicator, quantity_data, time_data
from analysis.mixed import VarianceComponent
from analysis.plan import RATING, Plan
from analysis.power.assumptions import Assumptions, cell_name, default_spreads, log_odds_at, value_in_cell
from analysis.readers import PARTICIPANT_KINDS, kinds_of
from analysis.tables import Tables
from stimuli.errors import UserError

Cell = tuple[str, str]

PROBIT = 1.702
"""Standard deviation of the normal distribution that is nearest to the standard logistic one (Camilli, 1994)."""
MOST = 0.9
"""Largest share of the latent variance that participants and items together are taken to have."""
X, W = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class Moments:
    """Means and variances of the cells of a pilot, in log odds."""

    cells: Mapping[Cell, float]  # log odds at the centre
    variance: tuple[VarianceComponent, ...]  # of participants and of items; a column for each cell


@dataclass(frozen=True)
class _Part:
    """A reader group in one condition: its share, number of answers, and what units add to the error of the mean."""

    cell: Cell
    share: float
    answers: int
    participants: Array
    weights: Array
    items: Array
    item_weights: Array
    noise: float | None


def moments(
    people: Mapping[str, ItemAnswers], models: Mapping[str, tuple[Array, Array]], layout: EstimateLayout
) -> Moments:
    """Estimate means and variances from people's answers and models' mean answers."""
    parts: list[_Part] = []
    within: dict[str, Array] = {}
    for group, answers in people.items():
        sums = sums_of_people(answers)
        within[group] = np.asarray((sums.answers.T @ sums.answers).toarray())
        for c, level in enumerate(layout.conditions):
            in_condition = answers.condition == c
            if not in_condition.any():
                continue
            p, i = answers.participant[in_condition], answers.item[in_condition]
            n_i = np.bincount(i, minlength=len(layout.items))
            weight = 1.0 / (np.count_nonzero(n_i) * n_i[i])
            parts.append(
                _Part(
                    (group, str(level)),
                    float(sums.mean[c]),
                    int(in_condition.sum()),
                    sums.participants[:, c],
                    np.bincount(p, weight, len(layout.participants)).astype(float),
                    sums.items[:, c],
                    np.bincount(i, weight, len(layout.items)).astype(float),
                    None,
                )
            )
    for group, (mean, noise) in models.items():
        sums = sums_of_model(layout, mean, noise)
        for c, level in enumerate(layout.conditions):
            is_known = np.isfinite(mean[:, c])
            n_items = int(is_known.sum())
            if n_items:
                nobody = np.zeros(len(layout.participants))
                variances = noise[is_known, c]
                parts.append(
                    _Part((group, str(level)), float(sums.mean[c]), n_items, nobody, nobody, sums.items[:, c],
                          is_known / n_items, float(variances.mean()) if (variances > 0).any() else np.nan)
                )  # fmt: skip
    return _in_log_odds(
        parts, within, {str(level): c for c, level in enumerate(layout.conditions)}, set(models)
    )


def _in_log_odds(
    parts: list[_Part], within: Mapping[str, Array], column_of: Mapping[str, int], models: set[str]
) -> Moments:
    n_parts = len(parts)
    of_participants, of_items = np.zeros((n_parts, n_parts)), np.zeros((n_parts, n_parts))
    shares = np.array([np.clip(part.share, 0.5 / part.answers, 1 - 0.5 / part.answers) for part in parts])
    h = stats.norm.ppf(shares)
    for a, b in combinations_with_replacement(range(n_parts), 2):
        part, other = parts[a], parts[b]
        (group, level), (other_group, other_level) = part.cell, other.cell
        answers = (
            within[group][column_of[level], column_of[other_level]]
            if group == other_group and group in within
            else 0.0
        )
        by_person, by_item = (
            float(part.weights @ other.weights),
            float(part.item_weights @ other.item_weights),
        )
        if by_person > 0:
            covariance = (float(part.participants @ other.participants) - answers) / by_person
            of_participants[a, b] = of_participants[b, a] = _latent(covariance, h[a], h[b])
        if by_item > 0:
            covariance = (float(part.items @ other.items) - answers) / by_item
            covariance -= part.noise if a == b and part.noise is not None else 0.0
            if not np.isnan(covariance):  # one answer to an item does not tell its difficulty from chance
                of_items[a, b] = of_items[b, a] = _latent(covariance, h[a], h[b])
    for a, part in enumerate(parts):
        if part.noise is not None and np.isnan(part.noise):
            # as much as its items are alike in other conditions and in other readers; the rest cannot be told from chance
            others = [b for b in range(n_parts) if b != a and of_items[a, b] > 0]
            candidates = [of_items[a, b] for b in others if parts[b].cell[0] == part.cell[0]]
            candidates += [of_items[a, b] ** 2 / of_items[b, b] for b in others if of_items[b, b] > 0]
            of_items[a, a] = min(MOST, max(candidates, default=0.0))
    of_participants, of_items = _proper(of_participants), _proper(of_items)
    size = np.diag(of_participants) + np.diag(of_items)
    shrunk = np.sqrt(np.minimum(1.0, MOST / np.maximum(size, 1e-9)))
    of_participants, of_items = (part * np.outer(shrunk, shrunk) for part in (of_participants, of_items))
    latent = PROBIT / np.sqrt(1.0 - np.diag(of_participants) - np.diag(of_items))
    of_participants, of_items = (part * np.outer(latent, latent) for part in (of_participants, of_items))
    cells = {
        part.cell: log_odds_at(float(share), float(of_participants[a, a] + of_items[a, a]))
        for a, (part, share) in enumerate(zip(parts, shares, strict=True))
    }
    names = tuple(cell_name(*part.cell) for part in parts)
    person = np.array([part.cell[0] not in models for part in parts], dtype=bool)
    terms = [VarianceComponent("item", names, of_items)]
    if person.any():
        of_people = tuple(name for name, is_person in zip(names, person, strict=True) if is_person)
        terms.insert(0, VarianceComponent("participant", of_people, of_participants[np.ix_(person, person)]))
    return Moments(cells, tuple(terms))


def covariance_of_cut(rho: float, h: float, k: float) -> float:
    """Return the covariance of two dichotomies: normal variables with correlation rho, cut at h and k."""
    r = rho * (X + 1) / 2
    density = np.exp(-(h * h - 2 * r * h * k + k * k) / (2 * (1 - r * r))) / (2 * np.pi * np.sqrt(1 - r * r))
    return float(rho / 2 * (W @ density))


def _latent(covariance: float, h: float, k: float) -> float:
    """Return the correlation of two normal variables, cut at h and k, whose dichotomies have this covariance."""

    def left(rho: float) -> float:
        return covariance_of_cut(rho, h, k) - covariance

    if left(-MOST) >= 0:
        return -MOST
    return MOST if left(MOST) <= 0 else float(optimize.brentq(left, -MOST, MOST, xtol=1e-8))


def _proper(matrix: Array) -> Array:
    """Return the nearest covariance matrix: negative variances and eigenvalues become 0."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    limit = np.outer(size, size)
    values, axes = np.linalg.eigh(np.clip(matrix, -limit, limit))
    return np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)


DRAWN = ("participant", "item", "item_condition", "item_reader", "item_cell", "prompt", "model_session")
"""Grouping columns of a fit whose effects can be drawn."""


def from_pilot(plan: Plan, tables: Tables, kinds: Mapping[str, str], name: str = "") -> Assumptions:
    """Take a pilot's estimates as true: accuracy by moments, else the plan's mixed model."""
    trials, remarks = tables.trials, []
    reason = trials["excluded_reason"]
    if reason.notna().all() and (reason == PILOT).any():
        trials = trials.assign(is_pilot=False, excluded_reason=reason.where(reason != PILOT, None))
        trials = flag_trials(trials, tables.factors)
        remarks.append("The pilot's sessions are marked as pilots; they are in no other analysis.")
    present_kinds = kinds_of(trials[trials["excluded_reason"].isna()])
    group_names = dict.fromkeys(plan.groups)
    if "human" in group_names and "human" not in present_kinds and "simulated" in present_kinds:
        group_names = {("simulated" if group == "human" else group): None for group in group_names}
        remarks.append("Simulated readers stand in for people: their effects were specified, not measured.")
    pilot_plan = replace(plan, groups=tuple(group for group in group_names if group in present_kinds))
    if plan.measure.family == "binomial":
        base = Assumptions({}, (), None, kinds, f"pilot {name or tables.folder}", tuple(remarks))
        return _by_moments(plan, pilot_plan, trials, base)
    if plan.measure.of == "models" or plan.measure == RATING:
        data = quantity_data(trials, pilot_plan, tables.factors)
    else:
        data = time_data(trials, pilot_plan, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    analysis = analyse(pilot_plan, data)
    model = analysis.model
    if model is None:
        explanation = " ".join(analysis.remarks) or "it has no trials of the plan's readers"
        raise UserError(f"the pilot gives no model for {plan.name}: {explanation}", exit_code=1)
    if not model.determined:
        raise UserError(
            f"the pilot does not determine the effects of {plan.name}",
            mend="Give means by hand, or run more pilot sessions.",
            exit_code=1,
        )
    cells = {
        (_as_planned(group, plan), level): float(weights @ model.beta)
        for (group, level), weights in cell_means(plan.factor, data, model).items()
    }
    if model.singular or len(model.steps) > 1:
        remarks.append("The pilot's model was reduced or is singular: some of its variances count as zero.")
    remarks += [
        f"Pilot: {model.rows:,} trials, "
        + ", ".join(f"{count} levels of {name}" for name, count in model.units.items())
        + ". Its estimates are taken as the truth; their own uncertainty is not in the power.",
        *analysis.remarks,
    ]
    variance = tuple(_renamed(term, plan, kinds) for term in model.variance)
    sigma = model.sigma if plan.measure.family == "gaussian" else None
    return Assumptions(cells, variance, sigma, kinds, f"pilot {name or tables.folder}", tuple(remarks))


def _as_planned(group: str, plan: Plan) -> str:
    """Return the plan's name of a pilot's readers: simulated ones stand in for people."""
    return "human" if group == "simulated" and "human" in plan.groups else group


def _by_moments(plan: Plan, pilot_plan: Plan, trials: pd.DataFrame, base: Assumptions) -> Assumptions:
    """Estimate means and variances of accuracy; a reader whom the pilot lacks gets the items of one whom it has."""
    kinds, remarks = base.kinds, [*base.remarks]
    rows, left_out = accuracy_rows(trials, pilot_plan)
    rows["reader_group"] = [_as_planned(group, plan) for group in rows["reader_group"]]
    if rows.empty:
        raise UserError(f"the pilot has no answers of the readers of {plan.name}", exit_code=1)
    is_person = rows["reader_group"].map(lambda group: kinds[group] in PARTICIPANT_KINDS)
    layout = EstimateLayout(
        plan.levels, tuple(pd.unique(rows["item"])), tuple(pd.unique(rows.loc[is_person, "participant"]))
    )
    people, models = {}, {}
    for group, rows_of_group in rows.groupby("reader_group", sort=False):
        y, item, shown = (rows_of_group[name].to_numpy() for name in ("correct", "item", plan.factor))
        if kinds[str(group)] in PARTICIPANT_KINDS:
            people[str(group)] = ItemAnswers.of(
                y, rows_of_group["participant"].to_numpy(), item, shown, layout
            )
        else:
            variant = rows_of_group["prompt_variant"].astype(str).to_numpy(dtype=object)
            models[str(group)] = model_means(y, item, shown, variant, layout)
    estimates = moments(people, models, layout)
    for group in (*people, *models):
        missing_levels = [level for level in plan.levels if (group, level) not in estimates.cells]
        if missing_levels:
            raise UserError(
                f"the pilot has no answers of {group} in {', '.join(missing_levels)}, which {plan.name} compares",
                mend="Run more pilot sessions, or give all values by hand (--mean).",
                exit_code=1,
            )
    remarks += [
        f"Pilot: {len(rows):,} answers, {len(layout.participants)} participants, {len(layout.items)} items. Its means and variances "
        "are taken as the truth, so that the power does not include their own uncertainty.",
        *left_out,
    ]
    absent = [group for group in plan.groups if group not in {*people, *models}]
    variance = estimates.variance
    for group in absent:
        variance = _lent(variance, plan, group, kinds)
    if absent:
        remarks.append(
            f"The pilot has no answers of {', '.join(absent)}: items are taken to vary as in {next(iter([*people, *models]))}, with "
            f"a correlation of {SHARED:g}."
        )
    return replace(base, cells=estimates.cells, variance=variance, remarks=tuple(remarks))


SHARED = 0.5
"""Correlation of items between a reader group of the pilot and one that it lacks."""


def _lent(
    variance: tuple[VarianceComponent, ...], plan: Plan, group: str, kinds: Mapping[str, str]
) -> tuple[VarianceComponent, ...]:
    """Give a reader group that the pilot lacks the items of the first that it has, and people a usual spread of participants."""
    terms = []
    names = tuple(cell_name(group, level) for level in plan.levels)
    for term in variance:
        if term.group == "item":
            first = next(group for group in plan.groups if cell_name(group, plan.levels[0]) in term.terms)
            indices = [term.terms.index(cell_name(first, level)) for level in plan.levels]
            joined = np.vstack([np.eye(len(term.terms)), SHARED * np.eye(len(term.terms))[indices]])
            cov = joined @ term.cov @ joined.T
            cov[-len(names) :, -len(names) :] += (1 - SHARED**2) * term.cov[np.ix_(indices, indices)]
            term = VarianceComponent("item", (*term.terms, *names), cov)
        terms.append(term)
    if kinds[group] in PARTICIPANT_KINDS:
        default_sd = float(default_spreads(plan.measure)["participant"]["value"])
        terms.append(VarianceComponent("participant", names, np.full((len(names),) * 2, default_sd**2)))
    return tuple(terms)


def _renamed(term: VarianceComponent, plan: Plan, kinds: Mapping[str, str]) -> VarianceComponent:
    """Confine a pilot's participant effects to people where the plan has models too."""
    mixed = len({kinds[group] in PARTICIPANT_KINDS for group in plan.groups}) > 1
    if not mixed or term.group != "participant":
        return term
    names = {"(Intercept)": "people"}
    for level in plan.levels:
        names[f"{plan.factor}{level}"] = names[indicator(plan.factor, level)] = indicator("people", level)
    if plan.crossing is not None:
        slopes = [name for name in term.terms if name not in names and not name.startswith("people")]
        names |= {name: f"people:{name}" for name in slopes}
    return VarianceComponent(term.group, tuple(names.get(name, name) for name in term.terms), term.cov)


def from_fit_file(plan: Plan, file: Path, kinds: Mapping[str, str]) -> Assumptions:
    """Read what ``wrods fit --json`` printed."""
    try:
        content = json.loads(file.read_text("utf-8"))
        fixed = {str(row["term"]): float(row["estimate"]) for row in content["fixed"]}
        family, variance = str(content["family"]), list(content["variance"])
        response = str(content["formula"]).split("~")[0].strip()
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} is not what `wrods fit --json` prints", mend="Make it with: wrods fit … --json > FILE."
        ) from error
    if family != plan.measure.family:
        raise UserError(
            f"{file} holds a {family} model; {plan.measure.noun} needs a {plan.measure.family} one"
        )
    if family == "binomial" and content.get("link", "logit") != "logit":
        raise UserError(f"{file} has the link {content['link']}; accuracy is planned with the logit")
    terms = tuple(_term(component, plan, file) for component in variance)
    of_people = any(term.group == "participant" for term in terms)
    groups = _readers_of(fixed, plan, kinds, file, of_people=of_people)
    _check_compared(fixed, plan, file)
    cells = {(group, level): _cell(fixed, group, level, plan) for group in groups for level in plan.levels}
    remarks = (f"The response of the fit is {response}.",)
    sigma = float(content["sigma"]) if family == "gaussian" else None
    renamed = tuple(_renamed(term, plan, kinds) for term in terms)
    return Assumptions(cells, renamed, sigma, kinds, f"fit {file.name}", remarks)


def _compared(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the levels of each compared factor, the reference first."""
    if plan.crossing is None:
        return {plan.factor: plan.levels}
    return dict(zip(plan.crossing.factors, plan.crossing.levels, strict=True))


def _columns(plan: Plan) -> dict[str, str]:
    """Name in words every column of a fit that tells conditions apart, interactions with a colon between their parts."""
    if plan.crossing is not None:
        columns = {*slope_columns(plan.crossing)}
        of_readers = {*slope_columns(plan.crossing, "people"), *slope_columns(plan.crossing, "model")}
        words_of = slopes_in_words(plan.crossing)
        return {name: words for name, words in words_of.items() if name in columns or name not in of_readers}
    return {
        name: f"{level} vs. {plan.levels[0]}"
        for level in plan.levels[1:]
        for name in (f"{plan.factor}{level}", indicator(plan.factor, level))
    }


def _fit_anew(plan: Plan) -> str:
    compared = _compared(plan)
    levels = " ".join(f"--levels {name}={','.join(names)}" for name, names in compared.items())
    return f"Fit {' * '.join(compared)} with {levels}"


def _check_compared(fixed: Mapping[str, float], plan: Plan, file: Path) -> None:
    """Refuse a fit that has no term of what the plan compares: to say nothing of an effect is not to say that it is 0."""
    columns = {frozenset(name.split(":")): words for name, words in _columns(plan).items()}
    present = {columns.get(frozenset(name.split(":"))) for name in fixed}
    missing = [words for words in dict.fromkeys(columns.values()) if words not in present]
    if missing:
        raise UserError(
            f"{file}: the fit has no term of {', '.join(missing)}, which {plan.name} compares",
            mend=f"{_fit_anew(plan)}, to data with trials in every condition; where there are none, give the means by hand (--mean).",
        )


def _readers_of(
    fixed: Mapping[str, float], plan: Plan, kinds: Mapping[str, str], file: Path, *, of_people: bool
) -> tuple[str, ...]:
    """Return the plan's readers that a fit is of: those that its terms name, and the one that is its reference."""
    parts = {part for name in fixed if name != "(Intercept)" for part in name.split(":")}
    for part in parts:
        if part not in _columns(plan) and _reader_in(part, plan) is None:
            raise UserError(
                f"{file}: the term {part!r} is neither a level of {' nor of '.join(_compared(plan))} nor a reader of the plan",
                mend=f"{_fit_anew(plan)} and the plan's readers: {', '.join(plan.groups)}.",
            )
    named = {_reader_in(part, plan) for part in parts}
    reference = [group for group in plan.groups if group not in named]
    if of_people and not named & set(plan.groups):
        people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
        reference = people or reference
    if len(reference) > 1:
        raise UserError(
            f"{file}: the fit does not tell {' and '.join(reference)} apart",
            mend="Fit with a column that names the readers as the plan does, crossed with what is compared.",
        )
    return tuple(group for group in plan.groups if group in named or group in reference)


def _reader_in(part: str, plan: Plan) -> str | None:
    """Return the reader that a treatment-coded term is of (``agentgpt``); None where it is of none."""
    if part in _columns(plan):
        return None
    ends = [group for group in plan.groups if part.endswith(group) and part != group]
    return max(ends, key=len) if ends and not part.startswith(tuple(_compared(plan))) else None


def _cell(fixed: Mapping[str, float], group: str, level: str, plan: Plan) -> float:
    """Add up the terms that hold in a cell."""
    columns = _columns(plan)

    def shown(part: str) -> float:
        if part in columns:
            return value_in_cell(part, plan, level, person=False)
        return float(_reader_in(part, plan) == group)

    return sum(
        value * (1.0 if name == "(Intercept)" else prod(shown(part) for part in name.split(":")))
        for name, value in fixed.items()
    )


def _term(component: Any, plan: Plan, file: Path) -> VarianceComponent:
    group = str(component["group"]).split(".")[0]
    drawn = _drawn_by(plan)
    names: Sequence[str] = [str(name) for name in component["terms"]]
    if group not in DRAWN:
        raise UserError(
            f"{file}: nothing is known about the grouping column {group!r}",
            mend="Name the columns participant and item, and leave others out.",
        )
    for name in names:
        if name not in drawn and not set(name.split(":")) <= drawn:
            raise UserError(
                f"{file}: the random effect {name!r} by {group} cannot be drawn",
                mend=f"Random slopes are of {' and '.join(_compared(plan))}; leave others out.",
            )
    return VarianceComponent(group, tuple(names), np.array(component["cov"], dtype=float))


def _drawn_by(plan: Plan) -> set[str]:
    """Return the columns whose random slopes can be drawn."""
    columns = {"(Intercept)", "people", "model", *_columns(plan)}
    if plan.crossing is not None:
        return columns | set(slopes_in_words(plan.crossing))
    return columns | {
        indicator(name, level) for name in (plan.factor, "people", "model") for level in plan.levels
    }
