"""The planned analyses and exclusion rules of a study, which :mod:`analysis.plan` reads and checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.plan import (
    KEYLESS,
    PlanContext,
    PlannedAnalysis,
    StudyPlan,
    faults_of,
    faults_of_families,
    read_plan,
    read_sign_rule,
)
from experiment.study.faults import Faults, factor_settings
from experiment.study.format import validator

if TYPE_CHECKING:
    from experiment.study.study import Study

PLANNED = ("analysis", "planned")


def planned_analyses(study: Study) -> list[PlannedAnalysis]:
    """Return the planned analyses of a validated study, with every default."""
    factors = {name: list(levels) for name, levels in study.factors.items()}
    return [read_plan(str(name), spec, factors) for name, spec in study.get(*PLANNED, default={}).items()]


def study_plan(study: Study) -> StudyPlan:
    """Return the planned analyses of a study with what their description needs."""
    return StudyPlan(
        tuple(planned_analyses(study)),
        {name: list(levels) for name, levels in study.factors.items()},
        study.get("analysis", "exclude", default={}),
        study.get("participants", "wanted"),
        _compares_items(study),
        _signs_in_words(),
    )


def _signs_in_words() -> dict[str, str]:
    """Return the description of each sign of careless answering in the study format."""
    schema: Any = validator().schema
    signs = schema["properties"]["analysis"]["properties"]["exclude"]["properties"]["sessions"]["properties"]
    return {name: str(sign["description"]).partition(", such as")[0] for name, sign in signs.items()}


def check_planned(study: Study, faults: Faults) -> None:
    """Add all errors of the planned analyses to ``faults``."""
    given = study.get(*PLANNED, default={})
    for name in given if isinstance(given, Mapping) else ():
        path, spec = (*PLANNED, str(name)), given[name]
        if isinstance(spec, Mapping):
            faults.check(_check_plan, study, faults, path)
    faults.check(_check_families, study, faults, reads=[PLANNED])


def _check_plan(study: Study, faults: Faults, path: tuple[str, ...]) -> None:
    """Check one plan, except for parts whose settings violate the schema."""
    broken = [
        keys[len(path)] for keys in faults.broken if keys[: len(path)] == path and len(keys) > len(path)
    ]
    factors = (
        {name: list(levels) for name, levels in study.factors.items()}
        if faults.is_sound(*factor_settings())
        else None
    )
    models = study.models if faults.is_sound(("models", "who")) else None
    steps = (
        {
            str(next(iter(screen["block"]["trial"][-1])))
            for screen in study.get("procedure")
            if "block" in screen
        }
        if faults.is_sound(("procedure",))
        else None
    )
    design = PlanContext(factors, models, steps, _compares_items(study), allows_assistive_input(study))
    faults.add(study.place, path, faults_of(study.get(*path), design, [str(key) for key in broken]))


def _check_families(study: Study, faults: Faults) -> None:
    faults.add(study.place, PLANNED, faults_of_families(study.get(*PLANNED, default={})))


def _compares_items(study: Study) -> bool:
    """Return whether the report compares conditions of one reader over the same items, with a plan's bound."""
    return study.own is not None


def session_rules(study: Study) -> dict[str, float]:
    """Return the declared exclusion rules for sessions: sign → the value above which it counts.

    The proportion of correct answers, which is bad if low, is stored as the proportion of wrong ones.
    """
    given = study.get("analysis", "exclude", "sessions", default={})
    rules = {sign: read_sign_rule(sign, text).above for sign, text in given.items()}
    return {**rules, KEYLESS: math.inf} if allows_assistive_input(study) else rules


def allows_assistive_input(study: Study) -> bool:
    """Return whether text without key strokes is not a sign of carelessness in a study."""
    return bool(study.get("participants", "assistive_input"))
