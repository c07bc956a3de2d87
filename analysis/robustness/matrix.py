"""The planned contrasts under every check that the design allows.

The design chooses the checks, never an outcome. Rules of one kind (limits of times, sets of items) are one check, however many
they are. A planned contrast that is significant is *the same* where the check's interval excludes zero on the same side,
*weaker* where it includes zero, and *reversed* where the estimate has the other sign; one that is not significant *appears* where
the check's interval excludes zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis.frames import FAILURES
from analysis.multiverse import accuracy_multiverse, time_multiverse
from analysis.results import Analysis, Contrast
from analysis.robustness.bounding import drawn_readers
from analysis.robustness.leave_out import NOTHING, item_sets, without_item_sets
from analysis.robustness.marginal import PARTICIPANTS, gee_check
from analysis.tables import Tables
from stimuli.errors import UserError

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
    """What a check came to."""

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
    remarks = [f"{one.plan.name} was not checked." for one in wanted[MOST_MODELS:]]
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
    left = without_item_sets(tables, analysis.plan, FOLDS, analysis).table
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
