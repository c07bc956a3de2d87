"""The planned contrasts under every check that the design allows.

The design chooses the checks, never an outcome. Rules of one kind (limits of times, sets of items) are one check, regardless of
their number. A significant contrast is *the same* where the check's interval excludes zero on the same side, *weaker* where it
includes zero, and *reversed* where the estimate has the other sign; another one *appears* where the check's interval excludes zero.

Estimating equations ignore either dependence in turn (clusters are participants, or items), with an identity link, so that 0% and
100% stay in, and exchangeable correlation (Liang & Zeger, 1986); below 50 clusters they are bias-reduced (Mancl & DeRouen, 2001).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from analysis.carrying_out import carry_out
from analysis.contrasts import compared
from analysis.frames import FAILURES, ModelData, accuracy_rows, in_model, rating_rows, time_data
from analysis.plan import RATING, Plan
from analysis.preparing.exclusions import time_bounds
from analysis.results import Analysis, Contrast
from analysis.robustness.multiverse import accuracy_multiverse, time_multiverse
from analysis.tables import Tables, item_names
from analysis.whole_readers import drawn_readers
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

SAME, WEAKER, REVERSED, APPEARS = "same", "weaker", "reversed", "appears"
SCALE, LINEAR = "Log odds", "Linear mixed model"
BY_PARTICIPANTS, BY_ITEMS = "Clustered by participants", "Clustered by items"
ITEM_SETS, LIMITS, MILLISECONDS, ANSWERS = (
    "Item sets left out",
    "Other time limits",
    "Milliseconds",
    "Other answers",
)
FAILED, SESSIONS = "Other scoring of failures", "Other sessions"
DECISIVE = (SCALE, LINEAR, BY_PARTICIPANTS, BY_ITEMS, ITEM_SETS)
"""Checks whose failure makes a result fragile: another scale or model, another treatment of participants and items, items left out."""
CHECKS = (*DECISIVE, LIMITS, MILLISECONDS, ANSWERS, FAILED, SESSIONS)
"""In the order of the matrix' columns."""
FOLDS = 4
"""Sets of items where the study has one."""
MOST_REFITTED = 60_000
"""Rows of a model times sets of items above which it is not fitted again without each set."""
MOST_CHECKED, MOST_PREPARED = 50_000, 200_000
"""Analysed trials above which estimating equations, and other preparations, take whole readers drawn by a stable hash."""
MOST_MODELS = 6
"""Planned analyses that are checked."""
Ends = tuple[float, float, float]
"""An estimate and the ends of its interval."""


@dataclass(frozen=True)
class Cell:
    """The outcome of a check, with its estimate and interval."""

    outcome: str  # one of 'same', 'weaker', 'reversed', 'appears'
    estimate: float  # on the check's own scale; of several rules in one check, those of the one that is named
    low: float
    high: float
    where: str = ""  # which rule or set of items it is; empty where the check has one form
    differing: int = 0  # how many forms of the check do not find the same, of how many
    of: int = 1

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low * self.high > 0


@dataclass(frozen=True)
class Checked:
    """A planned contrast with its checks."""

    analysis: Analysis
    contrast: Contrast
    cells: dict[str, Cell] = field(default_factory=dict)  # by check; those that do not apply are not there

    @property
    def agreeing(self) -> int:
        """How many checks find the same."""
        return sum(cell.outcome == SAME for cell in self.cells.values())


@dataclass(frozen=True)
class Matrix:
    """All planned contrasts with their checks, and what could not be checked, in sentences."""

    rows: tuple[Checked, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that apply to any contrast, in order."""
        return tuple(name for name in CHECKS if any(name in row.cells for row in self.rows))

    def checked(self, contrast: Contrast) -> Checked | None:
        """Return the row of this very contrast."""
        return next((row for row in self.rows if row.contrast is contrast), None)


def judged(planned: Contrast, alpha: float, found: Ends) -> str:
    """Return what a check's estimate and interval say of a planned contrast."""
    estimate, low, high = found
    if planned.p_adjusted >= alpha:
        return APPEARS if low * high > 0 else SAME
    if estimate * planned.estimate < 0:
        return REVERSED
    return SAME if low * high > 0 else WEAKER


def robustness_matrix(
    analyses: Sequence[Analysis], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> Matrix:
    """Check every planned contrast of accuracy, of ratings and of people's times."""
    planned = [one for one in analyses if one.plan.planned] or list(analyses)
    wanted = [one for one in planned if _can_be_checked(one)]
    rows: list[Checked] = []
    unchecked = [one.plan.name for one in wanted[MOST_MODELS:]]
    told_of = f"Only the first {MOST_MODELS} analyses were checked; not checked: {'; '.join(unchecked)}."
    remarks = [told_of] if unchecked else []
    small, drawn = drawn_readers(tables, MOST_CHECKED) if wanted else (tables, "")
    prepared, _ = drawn_readers(tables, MOST_PREPARED) if wanted else (tables, "")
    remarks += [drawn] if drawn else []
    for analysis in wanted[:MOST_MODELS]:
        told(f"checks: {analysis.plan.name}")
        own = {(one.label, one.groups): Checked(analysis, one) for one in analysis.contrasts if one.estimable}
        checks: tuple[tuple[Callable[[Analysis, Tables], Iterator[Found]], Tables], ...] = (
            (_other_scale, tables),
            (_estimating_equations, small),
            (_without_items, tables),
            (_prepared_otherwise, prepared),
        )
        for check, given in checks:
            try:
                for name, key, forms in check(analysis, given):
                    if key in own and (cell := _worst(own[key].contrast, analysis.plan.alpha, forms)):
                        own[key].cells[name] = cell
            except UserError as error:
                remarks.append(f"{analysis.plan.name}: {error.message}.")
            except (ArithmeticError, ValueError) as error:
                remarks.append(f"{analysis.plan.name}: a check could not be computed ({error}).")
        rows += own.values()
    return Matrix(tuple(rows), tuple(dict.fromkeys(remarks)))


def _can_be_checked(one: Analysis) -> bool:
    if not one.has_results or not one.contrasts or one.plan.measure.of == "models":
        return False
    return one.plan.measure.name in ("correct", "rating") or one.plan.measure.unit == "ms"


Key = tuple[str, tuple[str, ...]]
Found = tuple[str, Key, list[tuple[str, Ends]]]
"""Name of a check, label and groups of a contrast, and each form of the check with what it found."""


def _worst(planned: Contrast, alpha: float, forms: Iterable[tuple[str, Ends]]) -> Cell | None:
    """Sum up the forms of a check: one that most of many forms fail has failed, and so has one that any of few sets fails."""
    known = [(where, found) for where, found in forms if all(value == value for value in found)]
    if not known:
        return None
    outcomes = [(judged(planned, alpha, found), where, found) for where, found in known]
    rank = (SAME, APPEARS, WEAKER, REVERSED)
    differing = [one for one in outcomes if one[0] != SAME]
    # of many near-identical rules some exclude nothing by chance
    counts = len(differing) > (len(outcomes) / 2 if len(outcomes) > FOLDS + 1 else 0)
    outcome, where, found = max(differing, key=lambda one: rank.index(one[0])) if counts else outcomes[0]
    return Cell(outcome, *found, where, len(differing), len(outcomes))


def _other_scale(analysis: Analysis, _: Tables) -> Iterator[Found]:
    for one in () if analysis.companion is None else analysis.companion.contrasts:
        if one.estimable:
            name = SCALE if analysis.plan.measure.scale == "points" else LINEAR
            yield name, (one.label, one.groups), [("", (one.estimate, one.low, one.high))]


def _estimating_equations(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    for one in gee_check(tables, analysis.plan).to_dict("records"):
        name = BY_PARTICIPANTS if one["clusters"] == PARTICIPANTS else BY_ITEMS
        yield name, _key(one), [("", (float(one["estimate"]), float(one["low"]), float(one["high"])))]


def _without_items(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    sets = item_sets(tables, analysis.plan, FOLDS)
    if analysis.model is not None and len(sets) * len(analysis.rows) > MOST_REFITTED:
        return
    left = without_item_sets(tables, analysis.plan, FOLDS, analysis)
    without = left[left["left_out"] != NOTHING]
    for _, own in without.groupby(["contrast", "groups"], sort=False):
        yield ITEM_SETS, _key(own.iloc[0].to_dict()), _forms(own, "left_out", "without ")


def _prepared_otherwise(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    """Vary one choice of preparation at a time and keep the others as the study made them."""
    plan = analysis.plan
    if plan.measure.name == "rating":
        return
    if plan.measure.name == "correct":
        try:
            found = accuracy_multiverse(tables, plan)
        except UserError:
            found = accuracy_multiverse(tables, plan, failures=FAILURES[:2])
    else:
        found = time_multiverse(tables, plan)
    if found.empty or not found["low"].notna().any():
        return
    primary = found[found["is_primary"]].iloc[0]
    for choice, name in (
        ("rule", LIMITS),
        ("scale", MILLISECONDS),
        ("answers", ANSWERS),
        ("sessions", SESSIONS),
    ):
        others = [one for one in ("rule", "scale", "answers", "sessions") if one != choice]
        varied = found[(found[others] == primary[others]).all(axis=1) & (found[choice] != primary[choice])]
        if plan.measure.name == "correct":
            name = FAILED if name == LIMITS else name
            if choice == "rule" and not found["removed"].max() > 0:
                continue
        for (contrast, group), own in varied.groupby(["contrast", "group"], sort=False):
            yield name, (str(contrast), (str(group),)), _forms(own, choice)


def _forms(rows: pd.DataFrame, named: str, before: str = "") -> list[tuple[str, Ends]]:
    return [
        (f"{before}{one[named]}", (float(one["estimate"]), float(one["low"]), float(one["high"])))
        for one in rows.to_dict("records")
    ]


def _key(one: Mapping[Any, Any]) -> Key:
    return str(one["contrast"]), tuple(str(one["groups"]).split(" − "))


NOTHING = "nothing"
MOST_SETS = 10


def item_sets(tables: Tables, plan: Plan, folds: int = MOST_SETS) -> dict[str, frozenset[str]]:
    """Return the sets of items to leave out: the study's own sets where it has several, else folds of its items."""
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna() & trials["item_id"].notna() & trials[plan.factor].notna()]
    names = item_names(used)
    items = sorted(names.unique())
    if len(items) < 3 or folds < 2:
        raise UserError(
            f"{len(items)} items in {folds} folds", mend="Leaving items out takes three items and two folds."
        )
    if used["set"].nunique() > 1:
        by = {
            f"set {one}": frozenset(names[used["set"] == one])
            for one in sorted(used["set"].dropna().unique())
        }
        return by
    study = str(tables.dictionary["study"])
    order = sorted(items, key=lambda item: stable_seed(study, "item sets", item))
    many = min(folds, len(items))
    return {f"items {n + 1} of {many}": frozenset(order[n::many]) for n in range(many)}


def without_item_sets(
    tables: Tables, plan: Plan, folds: int = MOST_SETS, analysis: Analysis | None = None
) -> pd.DataFrame:
    """Carry out a plan without each set of items: a row for each set and contrast, those of all items first."""
    written = plan
    if analysis is not None and analysis.model is not None and analysis.companion is None:
        written = replace(plan, formula=analysis.model.formula, fallback=None)
    found = [_left_rows(carry_out(plan, tables) if analysis is None else analysis, NOTHING, 0)]
    names = item_names(tables.trials)
    for name, items in item_sets(tables, plan, folds).items():
        given = replace(tables, trials=tables.trials[~names.isin(items)])
        found.append(_left_rows(carry_out(written, given, companion=False), name, len(items)))
    table = pd.concat([one for one in found if len(one)] or found[:1], ignore_index=True)
    base = found[0].set_index(["contrast", "groups"])
    if not base.empty:
        base = base.reindex(pd.MultiIndex.from_frame(table[["contrast", "groups"]])).reset_index(drop=True)
        known = table["estimate"].notna() & base["estimate"].notna()
        table["shift"] = (table["estimate"] - base["estimate"]) / base["_se"]
        table["reversed"] = (np.sign(table["estimate"]) != np.sign(base["estimate"])) & known
        sure = [(one["low"] * one["high"] > 0) for one in (table, base)]
        table["conclusion_changed"] = (sure[0] != sure[1]) & known
    return table.drop(columns="_se")


def _left_rows(analysis: Analysis, name: str, without: int) -> pd.DataFrame:
    nan, numbers = float("nan"), {"estimate": "estimate", "low": "low", "high": "high", "p": "p", "_se": "se"}
    rows = [
        {"left_out": name, "items": without, "contrast": one.label, "groups": " − ".join(one.groups)}
        | {column: getattr(one, field) if one.estimable else nan for column, field in numbers.items()}
        | {"points": nan if one.crossed is None else one.estimate}
        for one in analysis.contrasts
        if not one.left_out
    ]
    return pd.DataFrame(rows, columns=["left_out", "items", "contrast", "groups", *numbers, "points"])


PARTICIPANTS, ITEMS = CLUSTERS = ("participants", "items")
FEW = 50
LARGEST = 400
"""Rows of a cluster above which the bias-reduced covariance would take longer than it is worth."""


def gee_check(tables: Tables, plan: Plan) -> pd.DataFrame:
    """Carry out a plan's contrasts without random effects."""
    if plan.measure.name == "correct":
        data = in_model(accuracy_rows(tables.trials, plan)[0], plan)
    elif plan.measure == RATING:
        data = in_model(rating_rows(tables.trials, plan)[0], plan)
    elif plan.measure.unit == "ms":
        data = time_data(tables.trials, plan, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    else:
        raise UserError(
            f"{plan.measure.noun}: no check by estimating equations", mend="Give accuracy, ratings or a time."
        )
    if not data.can_be_fitted:
        raise UserError(f"{plan.name}: there is nothing to compare", mend="; ".join(data.remarks) or None)
    return pd.DataFrame([row for clusters in CLUSTERS for row in _checked(plan, data, clusters)])


def _checked(plan: Plan, data: ModelData, clusters: str) -> Iterator[dict[str, object]]:
    rows = data.rows
    cells = [(group, level) for group in data.groups for level in data.levels]
    place = {cell: n for n, cell in enumerate(cells)}
    at = np.array([place[cell] for cell in zip(rows["reader_group"], rows[plan.factor], strict=True)])
    x = np.zeros((len(rows), len(cells)))
    x[np.arange(len(rows)), at] = 1.0
    names = rows["item"]
    if clusters == PARTICIPANTS:
        people = rows["reader_group"].isin(data.participant_groups)
        names = (rows["reader_group"] + "/" + rows["participant"]).where(
            people, rows["reader_group"] + "/" + rows["item"]
        )
    codes = pd.factorize(names)[0]
    number = int(codes.max()) + 1
    if number < 3:
        return
    order = np.argsort(codes, kind="stable")
    y = rows[plan.measure.response].to_numpy(dtype=float) * (100.0 if plan.measure.scale == "points" else 1.0)
    few = number < FEW and np.bincount(codes).max() <= LARGEST
    model = sm.GEE(y[order], x[order], groups=codes[order], cov_struct=sm.cov_struct.Exchangeable())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = model.fit(cov_type="bias_reduced" if few else "robust")
    beta, cov = np.asarray(done.params), np.asarray(done.cov_params())
    for difference in plan.contrasts:
        levels = plan.weights(difference)
        if not set(levels) <= set(data.levels):
            continue
        for groups in compared(data.groups):
            weights = np.zeros(len(cells))
            for sign, group in zip((1.0, -1.0), groups, strict=False):
                for level, weight in levels.items():
                    weights[place[group, level]] += sign * weight
            yield {
                "clusters": clusters,
                "number": number,
                "correlation": float(model.cov_struct.dep_params),
                "contrast": difference.label,
                "groups": " − ".join(groups),
                **_wald(weights, beta, cov),
            }


def _wald(
    weights: NDArray[np.float64], beta: NDArray[np.float64], cov: NDArray[np.float64]
) -> dict[str, float]:
    value, variance = float(weights @ beta), float(weights @ cov @ weights)
    # clustered in two ways, a variance can come out below 0: it then says nothing
    se = variance**0.5 if variance >= 0 else float("nan")
    half = float(stats.norm.ppf(0.975)) * se
    p = float(2 * stats.norm.sf(abs(value) / se)) if se > 0 else float("nan")
    return {"estimate": value, "se": se, "low": value - half, "high": value + half, "p": p}
