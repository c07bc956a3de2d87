"""Whether a conclusion depends on the preparation of the data, a few items, the random effects, or the wording of prompts.

The design chooses the checks of planned contrasts, never an outcome. A check's interval has the tail probability of the contrast's
interval, so both are adjusted for the same family. Estimating equations have an identity link and exchangeable correlation (Liang &
Zeger, 1986), bias-reduced below 50 clusters (Mancl & DeRouen, 2001); a universe is one set of choices of preparation (Steegen et
al., 2016).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.genmod.cov_struct import Exchangeable
from statsmodels.genmod.generalized_estimating_equations import GEE

from analysis import apa
from analysis.answers import failures_as_wrong, is_valid, judged, not_failed
from analysis.arrays import Array, Index
from analysis.cluster_sampling import drawn_readers
from analysis.contrasts import compared, contrasts_of
from analysis.estimation import SimplificationResult, climb
from analysis.exclusions import (
    alternatives,
    keeps_right_answers_alone,
    of_flagged_sessions,
    sessions_against_rules,
    time_bounds,
    without_choices,
)
from analysis.frames import (
    CENTRED,
    ModelData,
    analysed_as_planned,
    in_model,
    quantity_data,
    time_data,
)
from analysis.intervals import reach
from analysis.measures.accuracy import with_chance
from analysis.mixed import fit
from analysis.plan import RATING, WORDS_WITH_ONE_TYPO, Measure, Plan
from analysis.plan_runner import analysed_rows, carry_out
from analysis.random_structure import VARIANTS_FOR_A_VARIANCE
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.results import HUGE, Analysis, Contrast, FittedModelResult, each_test
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

SAME, NOT_SIGNIFICANT, REVERSED, APPEARS = "same", "not significant", "reversed", "appears"
SCALE, LINEAR, CUMULATIVE = "Log odds", "Linear mixed model", "Cumulative link model"
BY_PARTICIPANTS, BY_ITEMS = "Clustered by participants", "Clustered by items"
ITEM_SETS, LIMITS, MILLISECONDS, ANSWERS = (
    "Item sets left out",
    "Other time limits",
    "Milliseconds",
    "Other answers",
)
FAILED, SCORED, SESSIONS = "Other scoring of failures", "Other scoring of words", "Other sessions"
DECISIVE = (SCALE, LINEAR, CUMULATIVE, BY_PARTICIPANTS, BY_ITEMS, ITEM_SETS)
"""Checks whose failure makes a result fragile: another scale or model, another treatment of participants and items, items left out."""
CHECKS = (*DECISIVE, LIMITS, MILLISECONDS, ANSWERS, FAILED, SCORED, SESSIONS)
"""In the order of the matrix' columns."""
MOST_POINTS = 11
"""Points of a scale up to which ratings are also modelled as ordered categories."""
FOLDS = 4
"""Sets of items where the study has one."""
FEW_FORMS = FOLDS + 1
"""Forms of a check up to which one that differs decides; of more, the majority does."""
MOST_REFITTED = 60_000
"""Rows of a model times sets of items above which it is not fitted again without each set."""
MOST_CHECKED, MOST_PREPARED = 50_000, 200_000
"""Analysed trials above which estimating equations, and other preparations, take whole readers drawn by a stable hash."""
MOST_COST, FEWEST_CHECKED = 300_000, 6
"""Analysed trials, refits included, up to which analyses are checked; and how many always are."""


@dataclass(frozen=True)
class CheckForm:
    """One form of a check: what it estimates on its own scale."""

    where: str  # which rule or set of items it is; empty where the check has one form
    estimate: float  # of a log ratio in logs
    se: float
    df: float | None = None  # None where the statistic is z
    scale: str = ""  # ``LOG`` for differences of logs that are shown in percent
    is_bounded: bool = True  # whether no difference on its scale exceeds the largest one of the contrast

    def judged(self, planned: Contrast, alpha: float) -> CheckOutcome | None:
        """Compare it with a planned contrast, whose adjustment its interval takes; None where it has no interval."""
        limited = planned if self.is_bounded else replace(planned, furthest=np.inf)
        low, high = limited.ends_around(self.estimate, self.se, self.df)
        has_no_width = not self.se > 0 or apa.without_width(low, high)  # too few clusters, for example
        if (
            (has_no_width and not planned.is_constant)
            or not np.isfinite(self.estimate)
            or np.isnan([low, high]).any()
        ):
            return None
        outcome = outcome_of(planned, alpha, self.estimate, low, high)
        # a directional test has no interval on its other side, where a check may still contradict it
        ends = replace(limited, direction="two-sided").ends_around(self.estimate, self.se, self.df)
        estimate, low, high = _in_unit((self.estimate, low, high), self.scale)
        return CheckOutcome(outcome, estimate, low, high, ends[0] * ends[1] > 0, self.where)


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a check, with its estimate and interval."""

    outcome: str  # one of 'same', 'not significant', 'reversed', 'appears'
    estimate: float  # on the check's own scale; of several rules in one check, those of the one that is named
    low: float
    high: float
    excludes_zero: bool  # on either side, whatever the direction of the test
    where: str = ""  # which rule or set of items it is; empty where the check has one form
    forms: int = 1  # how many forms of the check have this outcome, of how many
    of: int = 1


@dataclass(frozen=True)
class CheckedContrast:
    """A planned contrast with its checks."""

    analysis: Analysis
    contrast: Contrast
    cells: dict[str, CheckOutcome] = field(
        default_factory=dict
    )  # by check; those that do not apply are not there

    @property
    def agreeing(self) -> int:
        """Number of checks that find the same."""
        return sum(cell.outcome == SAME for cell in self.cells.values())


@dataclass(frozen=True)
class Matrix:
    """All planned contrasts with their checks, and what could not be checked, in sentences."""

    rows: tuple[CheckedContrast, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that apply to any contrast, in order."""
        return tuple(name for name in CHECKS if any(name in row.cells for row in self.rows))

    @cached_property
    def _by_test(self) -> dict[tuple[object, ...], CheckedContrast]:
        return {row.analysis.test_of(row.contrast): row for row in self.rows}

    def checked(self, analysis: Analysis, contrast: Contrast) -> CheckedContrast | None:
        """Return the row of a contrast, which analyses that share it have in common; None where it was not checked."""
        return self._by_test.get(analysis.test_of(contrast))


def outcome_of(planned: Contrast, alpha: float, estimate: float, low: float, high: float) -> str:
    """Return what a check's estimate and interval say of a planned contrast, on the side on which this is tested."""
    is_shown = (low > 0 and planned.side >= 0) or (high < 0 and planned.side <= 0)
    is_open, is_opposite = planned.p_adjusted >= alpha, estimate * planned.estimate < 0
    if is_opposite and (is_shown or not is_open):
        return REVERSED
    if is_open:
        return APPEARS if is_shown else SAME
    return SAME if is_shown else NOT_SIGNIFICANT


def robustness_matrix(
    analyses: Sequence[Analysis], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> Matrix:
    """Check every planned contrast, one that several analyses share in the first of them."""
    planned = [analysis for analysis in analyses if analysis.plan.planned] or list(analyses)
    tests = each_test(planned)
    costs = np.cumsum([_cost(analysis) for analysis, _ in tests])
    n_checked = max(FEWEST_CHECKED, int((costs <= MOST_COST).sum()))
    rows: list[CheckedContrast] = []
    remarks = [_unchecked(tests[n_checked:])] if n_checked < len(tests) else []
    small, drawn = drawn_readers(tables, MOST_CHECKED) if tests else (tables, "")
    prepared, _ = drawn_readers(tables, MOST_PREPARED) if tests else (tables, "")
    remarks += [drawn] if drawn else []
    for analysis, contrasts in tests[:n_checked]:
        told(f"checks: {analysis.plan.name}")
        checked = {
            (contrast.label, contrast.groups): CheckedContrast(analysis, contrast) for contrast in contrasts
        }
        checks: tuple[tuple[Callable[[Analysis, Tables], Iterator[Found]], Tables], ...] = (
            (_other_scale, tables),
            (_ordered_categories, tables),
            (_estimating_equations, small),
            (_without_items, tables),
            (_prepared_otherwise, prepared),
        )
        # of answers that are all alike every check finds the same
        for check, data in checks if analysis.only_value is None else ():
            try:
                for name, key, forms in check(analysis, data):
                    if key in checked and (cell := _worst(checked[key].contrast, analysis.plan.alpha, forms)):
                        checked[key].cells[name] = cell
            except UserError as error:
                remarks.append(f"{analysis.plan.name}: {error.message}.")
            except (ArithmeticError, ValueError) as error:
                remarks.append(f"{analysis.plan.name}: a check could not be computed ({error}).")
        for row in checked.values():
            if row.contrast.reverses:
                of_means = CheckOutcome(REVERSED, row.contrast.log_odds, np.nan, np.nan, False)
                row.cells.setdefault(SCALE, of_means)
        rows += checked.values()
    return Matrix(tuple(rows), tuple(dict.fromkeys(remarks)))


def _cost(analysis: Analysis) -> int:
    """Return about how long the checks of an analysis take, in analysed trials, with those of mixed models that are fitted again."""
    rows = max(len(analysis.rows), 2_500)
    is_refitted = analysis.model is not None and analysis.companion is None and FOLDS * rows <= MOST_REFITTED
    return min(rows, MOST_CHECKED) + is_refitted * FOLDS * rows


def _unchecked(left: Sequence[tuple[Analysis, Sequence[Contrast]]]) -> str:
    """Name the contrasts that were not checked."""
    parts = [
        f"{analysis.plan.name} ({apa.counted(len(contrasts), 'contrast')})" for analysis, contrasts in left
    ]
    count = apa.counted(sum(len(contrasts) for _, contrasts in left), "contrast")
    return f"To limit computing time, {count} of later analyses were not checked: {'; '.join(parts)}."


Key = tuple[str, tuple[str, ...]]
Found = tuple[str, Key, list[CheckForm]]
"""Name of a check, label and groups of a contrast, and each form of the check."""


def _worst(planned: Contrast, alpha: float, forms: Iterable[CheckForm]) -> CheckOutcome | None:
    """Sum up the forms of a check: one that most of many forms fail has failed, and so has one that any of few sets fails."""
    cells = [cell for form in forms if (cell := form.judged(planned, alpha)) is not None]
    if not cells:
        return None
    rank = (SAME, APPEARS, NOT_SIGNIFICANT, REVERSED)
    differing = [cell for cell in cells if cell.outcome != SAME]
    # of many near-identical rules some exclude nothing by chance
    counts = len(differing) > (len(cells) / 2 if len(cells) > FEW_FORMS else 0)
    shown = max(
        differing if counts else [cell for cell in cells if cell.outcome == SAME],
        key=lambda cell: rank.index(cell.outcome),
    )
    return replace(shown, forms=sum(cell.outcome == shown.outcome for cell in cells), of=len(cells))


def _other_scale(analysis: Analysis, _: Tables) -> Iterator[Found]:
    for contrast in () if analysis.companion is None else analysis.companion.contrasts:
        if contrast.estimable:
            name = SCALE if analysis.plan.measure.scale == "points" else LINEAR
            yield (
                name,
                (contrast.label, contrast.groups),
                [CheckForm("", contrast.estimate, contrast.se, contrast.df, is_bounded=name != SCALE)],
            )


def _ordered_categories(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    """Refit the linear model of people's ratings as a cumulative link model, where they are few whole points."""
    companion = analysis.companion
    if analysis.plan.measure != RATING or companion is None or companion.model is None:
        return
    rows, _ = analysed_rows(analysis.plan, tables)
    data = in_model(rows[rows["reader_group"].isin(companion.plan.groups)], companion.plan)
    points = data.rows[RATING.response].unique()
    if not 2 < len(points) <= MOST_POINTS or (points % 1).any():
        return
    settings = dict(companion.model.settings) | {"family": "ordinal"}
    source = fit(companion.model.formula, data.rows, **settings)
    if not source.converged:
        raise UserError("the cumulative link model did not converge, and is no check")
    for contrast in contrasts_of(companion.plan, data, FittedModelResult(source, settings, source.groups)):
        if contrast.estimable:
            form = CheckForm("", contrast.estimate, contrast.se, contrast.df, is_bounded=False)
            yield CUMULATIVE, (contrast.label, contrast.groups), [form]


def _estimating_equations(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    trials = tables.trials
    people = set(trials.loc[trials["reader_kind"].isin(PARTICIPANT_KINDS), "reader_group"])
    for row in gee_check(tables, analysis.plan).to_dict("records"):
        name = BY_PARTICIPANTS if row["clusters"] == PARTICIPANTS else BY_ITEMS
        if name == BY_PARTICIPANTS and not people & set(_key(row)[1]):
            continue  # a model's clusters are its items either way
        yield name, _key(row), [CheckForm("", float(row["estimate"]), float(row["se"]))]


def _without_items(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    sets = item_sets(tables, analysis.plan, FOLDS)
    if analysis.model is not None and len(sets) * len(analysis.rows) > MOST_REFITTED:
        return
    forms_by_key: dict[Key, list[CheckForm]] = {}
    for name, _, contrast in _left_out(_as_fitted(analysis), tables, sets):
        forms_by_key.setdefault((contrast.label, contrast.groups), []).append(
            CheckForm(f"without {name}", contrast.estimate, contrast.se, contrast.df)
        )
    for key, forms in forms_by_key.items():
        yield ITEM_SETS, key, forms


def _prepared_otherwise(analysis: Analysis, tables: Tables) -> Iterator[Found]:
    """Vary one choice of preparation at a time and keep the others as the study made them."""
    plan = analysis.plan
    of_shares = plan.measure.scale == "points"
    if not of_shares and (plan.measure.of != "people" or plan.covariates):
        return  # these compare means as they are, without covariates
    multiverse = (
        share_multiverse(tables, plan) if of_shares else time_multiverse(tables, plan, one_at_a_time=True)
    )
    if multiverse.empty or not multiverse["low"].notna().any():
        return
    primary = multiverse[multiverse["is_primary"]].iloc[0]
    for choice, name in (
        ("rule", FAILED if of_shares else LIMITS),
        ("scale", SCORED if of_shares else MILLISECONDS),
        ("answers", ANSWERS),
        ("sessions", SESSIONS),
    ):
        others = [column for column in ("rule", "scale", "answers", "sessions") if column != choice]
        varied = multiverse[
            (multiverse[others] == primary[others]).all(axis=1) & (multiverse[choice] != primary[choice])
        ]
        for (contrast, group), rows in varied.groupby(["contrast", "group"], sort=False):
            if name == FAILED and not (rows[["removed_first", "removed_second"]] > 0).any(axis=None):
                continue  # no answer failed that this contrast compares
            if name in (LIMITS, ANSWERS, SESSIONS):  # the same trials again are no check
                own = multiverse[multiverse["is_primary"] & (multiverse["contrast"] == contrast)]
                rows = rows[~rows["selection"].isin(own.loc[own["group"] == group, "selection"])]
                if rows.empty:
                    continue
            yield (
                name,
                (str(contrast), (str(group),)),
                [
                    # a recovery rate has no lowest value: an answer can be further from the intact text than what was shown
                    CheckForm(
                        *(str(row[choice]), row["difference"], row["se"], row["df"], row["scale"]),
                        is_bounded=row[choice] != BY_CHARACTERS,
                    )
                    for row in rows.to_dict("records")
                ],
            )


def _key(row: Mapping[Any, Any]) -> Key:
    return str(row["contrast"]), tuple(str(row["groups"]).split(" − "))


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
        sets = sorted(used["set"].dropna().unique())
        return {f"set {set_name}": frozenset(names[used["set"] == set_name]) for set_name in sets}
    study = str(tables.dictionary["study"])
    order = sorted(items, key=lambda item: stable_seed(study, "item sets", item))
    n_sets = min(folds, len(items))
    return {f"item set {n + 1} of {n_sets}": frozenset(order[n::n_sets]) for n in range(n_sets)}


def _left_out(
    plan: Plan, tables: Tables, sets: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, int, Contrast]]:
    """Yield each set of items, their number, and every contrast of a plan without them."""
    names = item_names(tables.trials)
    for name, items in sets.items():
        reduced = replace(tables, trials=tables.trials[~names.isin(items)])
        for contrast in carry_out(plan, reduced, companion=False).contrasts:
            if not contrast.left_out:
                yield name, len(items), contrast


def _as_fitted(analysis: Analysis) -> Plan:
    """Return the plan of an analysis with the formula of its model as the one to fit."""
    if analysis.model is None or analysis.companion is not None:
        return analysis.plan
    return replace(analysis.plan, formula=analysis.model.formula, fallback=None)


def without_item_sets(
    tables: Tables, plan: Plan, folds: int = MOST_SETS, analysis: Analysis | None = None
) -> pd.DataFrame:
    """Carry out a plan without each set of items: a row for each set and contrast, those of all items first."""
    written = plan if analysis is None else _as_fitted(analysis)
    full_analysis = carry_out(plan, tables) if analysis is None else analysis
    full_contrasts = {
        (contrast.label, contrast.groups): contrast
        for contrast in full_analysis.contrasts
        if not contrast.left_out
    }
    contrasts = [(NOTHING, 0, contrast) for contrast in full_contrasts.values()]
    contrasts += _left_out(written, tables, item_sets(tables, plan, folds))
    nan, rows = float("nan"), []
    for name, n_left_out, contrast in contrasts:
        base = full_contrasts.get((contrast.label, contrast.groups))
        ends, shift, is_reversed, is_changed = (nan, nan), nan, False, False
        if base is not None and base.estimable and contrast.estimable:
            ends = base.ends_around(contrast.estimate, contrast.se, contrast.df)
            shift = (contrast.estimate - base.estimate) / base.se
            is_reversed = bool(np.sign(contrast.estimate) != np.sign(base.estimate))
            is_changed = (ends[0] * ends[1] > 0) != (base.low * base.high > 0)
        numbers = (contrast.estimate, *ends, contrast.p) if contrast.estimable else (nan,) * 4
        points = nan if contrast.crossed is None else contrast.estimate
        labels = (name, n_left_out, contrast.label, " − ".join(contrast.groups))
        rows.append((*labels, *numbers, points, shift, is_reversed, is_changed))
    return pd.DataFrame(rows, columns=_LEFT)


_LEFT = (
    *("left_out", "items", "contrast", "groups", "estimate", "low", "high", "p"),
    *("points", "shift", "reversed", "conclusion_changed"),
)


PARTICIPANTS, ITEMS = CLUSTERS = ("participants", "items")
FEW = 50
ROUNDING = 1e-7
"""Share of the range of an outcome below which a standard error is zero."""
LARGEST = 400
"""Rows of a cluster above which the bias-reduced covariance would take longer than it is worth."""


def gee_check(tables: Tables, plan: Plan) -> pd.DataFrame:
    """Carry out a plan's contrasts without random effects, clustered by participants and by items.

    Clusters of one kind leave out how the others differ: contrasts between participants are not clustered by items, nor those
    between items by participants.
    """
    if plan.measure.of_means:
        data = in_model(analysed_rows(plan, tables)[0], plan)
    elif plan.measure.is_quantity:
        data = quantity_data(tables.trials, plan, tables.factors)
    else:
        data = time_data(tables.trials, plan, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    if not data.can_be_fitted:
        raise UserError(f"{plan.name}: there is nothing to compare", mend="; ".join(data.remarks) or None)
    return pd.DataFrame([row for clusters in CLUSTERS for row in _checked(plan, data, clusters)])


def _checked(plan: Plan, data: ModelData, clusters: str) -> Iterator[dict[str, object]]:
    rows = data.rows
    cells = [(group, level) for group in data.groups for level in data.levels]
    column_of = {cell: n for n, cell in enumerate(cells)}
    columns = np.array(
        [column_of[cell] for cell in zip(rows["reader_group"], rows[plan.factor], strict=True)]
    )
    x = np.zeros((len(rows), len(cells)))
    x[np.arange(len(rows)), columns] = 1.0
    covariates = rows[[f"{name}{CENTRED}" for name in plan.covariates]].to_numpy(dtype=float)
    x = np.hstack([x, covariates])
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
    of_shares = plan.measure.scale == "points"
    y = rows[plan.measure.value if of_shares else plan.measure.response].to_numpy(dtype=float)
    y = 100.0 * y if of_shares else y
    if not np.ptp(y):
        return
    is_small = number < FEW and np.bincount(codes).max() <= LARGEST
    model = GEE(y[order], x[order], groups=codes[order], cov_struct=Exchangeable())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(cov_type="bias_reduced" if is_small else "robust")
    beta, cov = np.asarray(fitted.params), np.asarray(fitted.cov_params())
    others = ["reader_group", "item" if clusters == PARTICIPANTS else "participant"]
    seen_by = rows[rows["reader_group"].isin(data.participant_groups)].groupby(others)[plan.factor].agg(set)
    seen_groups = seen_by.index.get_level_values("reader_group")
    for difference in plan.contrasts:
        levels = plan.weights(difference)
        if not set(levels) <= set(data.levels):
            continue
        within = {
            group for group, seen in zip(seen_groups, seen_by, strict=True) if len(seen & set(levels)) > 1
        }
        for groups in compared(data.groups):
            if not set(groups) & set(data.participant_groups) <= within:
                continue
            weights = np.zeros(x.shape[1])
            for sign, group in zip((1.0, -1.0), groups, strict=False):
                for level, weight in levels.items():
                    weights[column_of[group, level]] += sign * weight
            value, variance = float(weights @ beta), float(weights @ cov @ weights)
            se = variance**0.5 if variance >= 0 else float("nan")
            if abs(variance) < (ROUNDING * np.ptp(y)) ** 2:
                se = 0.0  # nothing but errors of rounding
            half = float(stats.norm.ppf(0.975)) * se
            p = float(2 * stats.norm.sf(abs(value) / se)) if se > 0 else float("nan")
            numbers = (value, se, value - half, value + half, p)
            yield {
                "clusters": clusters,
                "number": number,
                "correlation": float(model.cov_struct.dep_params),
                "contrast": difference.label,
                "groups": " − ".join(groups),
                **dict(zip(("estimate", "se", "low", "high", "p"), numbers, strict=True)),
            }


AS_EXCLUDED, BACK, STRICT = "as the study excluded", "excluded sessions back", "without all that meet a rule"
VALID, RIGHT = "all valid answers", "right answers only"
LOG, RAW, POINTS = "log", "ms", "points"
WRONG, LEFT_OUT, AT_CHANCE = FAILURES = ("wrong", "left out", "chance")
"""How answers that are not valid are counted; the first is the primary analysis."""
SAID = {"chance": "at chance"}
ONE_TYPO, NO_TYPO = "with one typo allowed", "without a typo"
BY_WORDS, BY_CHARACTERS = "with every word counted alike", "in the recovery rate"


@dataclass(frozen=True)
class Universe:
    """One set of choices."""

    sessions: str  # in words; ``rule`` is the rule for times, or what becomes of missing answers
    rule: str
    answers: str
    scale: str
    is_primary: bool  # whether all choices are the study's own


def session_choices(tables: Tables) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the trials as the study excluded sessions, then each other choice that differs, one at a time."""
    yield AS_EXCLUDED, tables.trials
    factors, collected = list(tables.dictionary["factors"]), tables.dictionary["collected_design_hash"]
    if tables.trials["flagged_reason"].notna().any():
        yield BACK, of_flagged_sessions(tables.trials, factors, collected, back=True)
    against_rules = sessions_against_rules(tables.trials, tables.dictionary["exclude"])
    if len(against_rules):
        meeting = against_rules[
            against_rules["meets"].fillna(False).astype(bool) & ~against_rules["excluded"]
        ]
        if len(meeting):
            session_ids = set(meeting["session_id"])
            yield STRICT, of_flagged_sessions(tables.trials, factors, collected, back=False, out=session_ids)


def time_multiverse(tables: Tables, plan: Plan, *, one_at_a_time: bool = False) -> pd.DataFrame:
    """Compare times under every rule for times, scale and choice of answers and sessions, or varying one of these at a time."""
    if plan.measure.unit != "ms":
        raise UserError(
            f"{plan.measure.noun} is no time", mend="Give a plan of rt, reading_time or region_time."
        )
    name = plan.measure.name
    rules = alternatives(plan.measure.kind, tables.dictionary["exclude"], [plan.factor], plan.exclude)
    own_answers = RIGHT if keeps_right_answers_alone(plan.exclude) else VALID
    plan = replace(plan, exclude=without_choices(plan.exclude, name))
    comparisons: list[dict[str, Any]] = []
    for sessions, trials in session_choices(tables):
        for choice in (VALID, RIGHT):
            rows = trials
            if choice == RIGHT:
                rows = trials[trials["response_status"].isna() | (trials["correct"] == 1)]
            times = analysed_as_planned(rows, plan)[0]
            is_timed = not_failed(times) & times["reader_kind"].isin(PARTICIPANT_KINDS)
            times = times[is_timed & (times[name] > 0)]
            for rule in rules:
                is_kept = rule.rule.keeps(times, name) if len(times) else times["item_id"].notna()
                for scale in (LOG, RAW):
                    matches = (sessions == AS_EXCLUDED, choice == own_answers, rule.is_own)
                    others = [*matches, (scale == LOG) == plan.measure.logged].count(False)
                    if one_at_a_time and others > 1:
                        continue
                    universe = Universe(sessions, rule.name, choice, scale, not others)
                    value = times[name].astype(float)
                    value = value.apply(np.log) if scale == LOG else value
                    removed = (~is_kept).astype(float)
                    values = times[["reader_group", plan.factor]].assign(unit=times["reader"], value=value)
                    comparisons += _compared(
                        universe, values.assign(weight=1.0, used=is_kept, gone=removed), plan
                    )
    return pd.DataFrame(comparisons)


def share_multiverse(tables: Tables, plan: Plan) -> pd.DataFrame:
    """Compare shares with missing answers as wrong, left out and at chance, under each choice of sessions and scoring of words."""
    measure = plan.measure
    if measure.scale != "points":
        raise UserError(
            f"{measure.noun} is no share", mend="Give a plan of accuracy, recovered words or missing answers."
        )
    ways = {"correct": FAILURES, "missing": FAILURES[:1]}.get(measure.name, FAILURES[:2])
    if AT_CHANCE in ways:
        try:
            trials_with_chance = with_chance(tables.trials, tables.items, tables.factors)
            tables = replace(tables, trials=trials_with_chance)
        except UserError:
            ways = FAILURES[:2]
    comparisons: list[dict[str, Any]] = []
    for sessions, trials in session_choices(tables):
        rows = analysed_rows(plan, replace(tables, trials=trials))[0]
        people, is_missing = rows["reader_kind"].isin(PARTICIPANT_KINDS), ~is_valid(rows)
        unit, factors = rows["participant"].where(people, rows["item"]), rows[["reader_group", plan.factor]]
        for way in ways:
            rule = f"failures {SAID.get(way, way)}"
            stand_in = rows["chance"] if way == AT_CHANCE else float("nan")
            for scale, (value, weight) in _scorings(rows, measure).items():
                is_primary = scale == POINTS and sessions == AS_EXCLUDED and way == WRONG
                universe = Universe(sessions, rule, VALID, scale, is_primary)
                value = value if way == WRONG else value.where(~is_missing, stand_in)
                values = factors.assign(unit=unit, value=value, weight=weight)
                comparisons += _compared(
                    universe, values.assign(used=True, gone=is_missing.astype(float)), plan
                )
    return pd.DataFrame(comparisons)


def _scorings(rows: pd.DataFrame, measure: Measure) -> dict[str, tuple[pd.Series[float], Any]]:
    """Return each scoring's value of an answer and its weight; of words also those by typos, by words and by characters."""
    scorings: dict[str, tuple[pd.Series[float], Any]] = {POINTS: (rows[measure.value], 1.0)}
    if measure.value != "share":
        return scorings
    other, scoring = ("recovered", NO_TYPO) if measure == WORDS_WITH_ONE_TYPO else ("with_one_typo", ONE_TYPO)
    rate = 1.0 - rows["ed_given"] / rows["ed_shown"]
    return scorings | {
        scoring: (rows[other] / rows["changed"], 1.0),
        BY_WORDS: (rows["share"], rows["changed"]),
        BY_CHARACTERS: (rate, rows["ed_shown"]),
    }


def _compared(universe: Universe, rows: pd.DataFrame, plan: Plan) -> list[dict[str, Any]]:
    """Compare each reader group's means over units: ``unit, value, weight``, whether a row is ``used``, and ``gone`` (0 or 1)."""
    comparisons, size = [], 1.0 if universe.scale in (LOG, RAW) else 100.0
    for group, rows_of_group in rows.groupby("reader_group", sort=False):
        used = rows_of_group[rows_of_group["used"]]
        if used.empty:
            continue
        weight = used["weight"].where(used["value"].notna())
        weighted = used.assign(weight=weight, value=used["value"] * weight)
        sums = weighted.groupby(["unit", plan.factor])[["value", "weight"]].sum()
        means = (sums["value"] / sums["weight"]).unstack()
        removed = rows_of_group.groupby(plan.factor)["gone"].mean()
        for contrast in plan.contrasts:
            weights = pd.Series(plan.weights(contrast))
            if set(weights.index) <= set(means.columns):
                differences = size * means[weights.index].mul(weights).sum(axis="columns", skipna=False)
                compared_trials = used.index[used[plan.factor].isin(weights.index)]
                comparisons.append(
                    {
                        **vars(universe), "group": group, "contrast": contrast.label, "trials": len(used),
                        "selection": hash(tuple(compared_trials)),
                        "removed": float(rows_of_group["gone"].mean()),
                        "removed_first": float(removed[weights.index[weights > 0]].mean()),
                        "removed_second": float(removed[weights.index[weights < 0]].mean()),
                        **_paired(differences, universe.scale),
                    }
                )  # fmt: skip
    return comparisons


def _paired(differences: pd.Series[float], scale: str) -> dict[str, Any]:
    """Return mean difference, Student's 95% interval and test over units that have both levels."""
    values, nan = differences.dropna().to_numpy(dtype=float), float("nan")
    count = len(values)
    estimate = float(values.mean()) if count else nan
    se = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    df, t, half = (count - 1, estimate / se, reach(se, count - 1)) if se else (nan, nan, nan)
    ends = _in_unit((estimate, estimate - half, estimate + half), scale)
    p = float(2 * stats.t.sf(abs(t), df))
    return {
        "units": count,
        **dict(zip(("estimate", "low", "high"), ends, strict=True)),
        "difference": estimate,
        "se": se or nan,
        "t": t,
        "df": df,
        "p": p,
    }


def _in_unit(values: Iterable[float], scale: str) -> list[float]:
    """Return differences of logs in percent, others as they are."""
    return [100.0 * float(np.expm1(value)) if scale == LOG else value for value in values]


SOURCES = {
    "prompt": "prompt_variant",
    "label map": "label_map",
    "choice order": "choice_order",
    "session": "session_id",
    "item": "item",
}
LATENT = float(np.pi**2 / 3)
"""Variance of the logistic distribution: that of an answer on the scale of log odds."""


MOST_ANSWERS = 20_000
"""Answers of one model above which whole items are drawn."""


@dataclass(frozen=True)
class PromptComparison:
    """Variation of each model's answers with prompts, labels, orders, sessions and items."""

    table: pd.DataFrame  # a row for each model and source
    models: Mapping[str, SimplificationResult]
    remarks: tuple[str, ...]  # what was drawn, in sentences


def asked_otherwise(tables: Tables, factor: str, *, permutations: int = 500) -> PromptComparison:
    """Split the variation of each model's correct responses by its sources; beyond 20,000 answers whole items are drawn."""
    if factor not in tables.factors:
        raise unknown_name("factor:", factor, tables.factors)
    trials = tables.trials
    used = trials["excluded_reason"].isna() & ~trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used &= judged(trials) & trials[factor].notna() & trials["item_id"].notna()
    rows = trials[used].copy()
    if rows.empty:
        raise UserError("no model answered", mend="Run a model first: wrods run.")
    rows["right"] = failures_as_wrong(rows)
    rows["item"] = item_names(rows)
    study, table_rows = str(tables.dictionary["study"]), []
    models: dict[str, SimplificationResult] = {}
    remarks: list[str] = []
    for group in group_order(rows):
        answers = rows[rows["reader_group"] == group]
        if len(answers) > MOST_ANSWERS:
            items = sorted(
                answers["item"].unique(), key=lambda item: stable_seed(study, "asked otherwise", item)
            )
            n_items = max(2, int(len(items) * MOST_ANSWERS / len(answers)))
            answers = answers[answers["item"].isin(items[:n_items])]
            remarks.append(f"{group}: {n_items:,} of {len(items):,} items, drawn whole by a stable hash.")
        group_rows, simplification = _of_model(
            answers.reset_index(drop=True), factor, group, study, permutations
        )
        table_rows += group_rows
        if simplification is not None:
            models[group] = simplification
    return PromptComparison(pd.DataFrame(table_rows, columns=_COLUMNS), models, tuple(remarks))


_COLUMNS = [
    *("reader_group", "source", "levels", "sd", "share", "singular", "lowest", "highest"),
    *("range_points", "range_by_chance", "p"),
]


def _of_model(
    answers: pd.DataFrame, factor: str, group: str, study: str, permutations: int
) -> tuple[list[dict[str, object]], SimplificationResult | None]:
    levels = {name: int(answers[column].nunique()) for name, column in SOURCES.items()}
    varied = {name: SOURCES[name] for name, n_levels in levels.items() if n_levels > 1}
    for name in varied:
        answers[f"source_{varied[name]}"] = answers[varied[name]].astype(str)
    # sources that name the same groups (one session a prompt) cannot be told apart; the first says it all
    sources: dict[str, str] = {}
    for name, column in varied.items():
        codes = pd.factorize(answers[column])[0]
        if levels[name] >= VARIANTS_FOR_A_VARIANCE and not any(
            _same(codes, pd.factorize(answers[other])[0]) for other in sources.values()
        ):
            sources[name] = column
    deviation, simplification = _deviations(answers, factor, sources)
    singular = None if simplification is None or simplification.fit is None else simplification.fit.singular
    total = sum(sd**2 for sd in deviation.values()) + LATENT
    rows: list[dict[str, object]] = []
    for name, column in varied.items():
        codes = pd.factorize(answers[column])[0]
        means = _level_means(answers["right"].to_numpy(dtype=float), codes, pd.factorize(answers[factor])[0])
        ends = means
        if answers.groupby(codes)[factor].nunique().min() < answers[factor].nunique():
            # means that are set right for conditions that a level lacks are deviations, and can lie beyond 0 and 100%
            plain_means = (
                answers.groupby([codes, factor], observed=True)["right"].mean().groupby(level=0).mean()
            )
            ends = plain_means.to_numpy(dtype=float)
            means = ends if name == "item" else means
        drawn = np.array([])
        in_one_condition = answers.assign(_code=codes).groupby(["item", factor])["_code"].nunique()
        if name != "item" and (in_one_condition > 1).any():
            seed = stable_seed(study, "asked otherwise", group, name)
            drawn = _by_chance(answers, factor, codes, np.random.default_rng(seed), permutations)
        sd = deviation.get(name, float("nan"))
        between, by_chance, p = float(np.nanmax(means) - np.nanmin(means)), float("nan"), float("nan")
        if len(drawn):
            by_chance = 100 * float(drawn.mean())
            p = float((1 + (drawn >= between - 1e-12).sum()) / (1 + len(drawn)))
        of_levels = (float(np.nanmin(ends)), float(np.nanmax(ends)), 100 * between, by_chance, p)
        row = (group, name, levels[name], sd, sd**2 / total, singular, *of_levels)
        rows.append(dict(zip(_COLUMNS, row, strict=True)))
    return rows, simplification if deviation else None


def _same(index: Index, other: Index) -> bool:
    pairs = len(np.unique(np.column_stack([index, other]), axis=0))
    return bool(pairs == index.max() + 1 == other.max() + 1)


def _deviations(
    answers: pd.DataFrame, factor: str, sources: dict[str, str]
) -> tuple[dict[str, float], SimplificationResult | None]:
    several_levels = answers[factor].nunique() > 1
    if not sources or answers["right"].nunique() < 2:
        return {}, None
    random = " + ".join(f"(1 | source_{column})" for column in sources.values())
    fixed = f"right ~ {factor}" if several_levels else "right ~ 1"
    simplification = climb(fixed, [random], answers, family="binomial")
    if simplification.fit is None or not simplification.fit.converged:
        return {}, None
    sd_by_group = {component.group: float(component.sd[0]) for component in simplification.fit.variance}
    if (
        max(sd_by_group.values()) > HUGE
    ):  # answers alike in every condition: the variance ran away and says nothing
        return {}, simplification
    return {name: sd_by_group[f"source_{column}"] for name, column in sources.items()}, simplification


def _level_means(right: Array, codes: Index, conditions: Index) -> Array:
    """Average each level's answers over conditions, each condition weighted alike; shape (levels,)."""
    n_conditions = int(conditions.max()) + 1
    cells = codes * n_conditions + conditions
    size = (int(codes.max()) + 1) * n_conditions
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(cells, right, minlength=size) / np.bincount(cells, minlength=size)
    table = means.reshape(-1, n_conditions)
    # a level that lacks a condition is compared in those that it has, as deviations from the condition's mean
    base = np.bincount(conditions, right, minlength=n_conditions) / np.bincount(
        conditions, minlength=n_conditions
    )
    return np.asarray(base.mean() + np.nanmean(table - base, axis=1))


def _by_chance(
    answers: pd.DataFrame, factor: str, codes: Index, random: np.random.Generator, permutations: int
) -> Array:
    """Return ranges of level means with answers permuted within item and condition; shape (permutations,)."""
    conditions, right = pd.factorize(answers[factor])[0], answers["right"].to_numpy(dtype=float)
    cell = answers.groupby(["item", factor], sort=False).ngroup().to_numpy()
    order = np.argsort(cell, kind="stable")
    drawn = np.empty(permutations)
    for n in range(permutations):
        shuffled = np.lexsort((random.random(len(answers)), cell))
        permuted = np.empty_like(right)
        permuted[order] = right[shuffled]
        means = _level_means(permuted, codes, conditions)
        drawn[n] = np.nanmax(means) - np.nanmin(means)
    return drawn
