"""The sensitivity of the planned sample, for ``wrods check``: detectable differences and equivalence, before any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stimuli.errors import UserError

if TYPE_CHECKING:
    from analysis.plan import Measure, Plan
    from analysis.power.expected import Expected
    from experiment.study import Study
    from stimuli.item import Item

ACCURACIES = (75.0, 95.0)
"""Percent correct for which the sensitivity of accuracy is given: the middle of the scale and near a ceiling."""
SUGGESTED = {"points": "10 points", "ratio": "10%"}
REASONS = {
    "points": "one answer in ten",
    "ratio": "a tenth of the time or length",
}


@dataclass(frozen=True)
class Sensitivity:
    """A paragraph for each planned analysis, and its numbers for ``--json``."""

    paragraphs: tuple[str, ...]
    numbers: tuple[dict[str, Any], ...]


def sensitivity_of(study: Study, items: Sequence[Item]) -> Sensitivity:
    """Work out what the planned analyses of a study can detect, with the usual spreads of participants and items.

    Nothing where the study plans no analysis, or does not say how many participants it wants.
    """
    from analysis.power.simulation import planned_of
    from analysis.readers import PARTICIPANT_KINDS
    from experiment.cli.power import kinds_of_plan, planned_of_study

    known = planned_of_study(study, items)
    if not known.planned or not known.items:
        return Sensitivity((), ())
    try:
        plans, _ = planned_of(known.planned, known.factors)
    except UserError:
        return Sensitivity((), ())
    paragraphs, numbers = [], []
    for plan in plans:
        kinds = kinds_of_plan(plan, known)
        with_people = any(kind in PARTICIPANT_KINDS for kind in kinds.values())
        if plan.measure.scale not in SUGGESTED or (with_people and not known.participants):
            continue
        tests = _tests(plan, plans)
        found = _numbers(plan, kinds, known, tests)
        if found is not None:
            numbers.append(found)
            paragraphs.append(_told(plan, found))
    return Sensitivity(tuple(paragraphs), tuple(numbers))


def _tests(plan: Plan, plans: Sequence[Plan]) -> tuple[int, int]:
    """Return how many differences, and how many equivalences, are adjusted together with those of a plan."""
    from analysis.contrasts import compared
    from analysis.power.simulation import is_joined

    own = [one for one in plans if one is plan or is_joined(plan, one)]
    return (
        sum(len(one.contrasts) * len(compared(one.groups)) for one in own),
        max(1, sum(len(one.contrasts) * (len(one.groups) - 1) for one in own)),
    )


def _numbers(plan: Plan, kinds: dict[str, str], known: Any, tests: tuple[int, int]) -> dict[str, Any] | None:
    from analysis.plan import read_bound
    from analysis.power.assumptions import Given, assumed
    from analysis.power.expected import expected_precision, items_needed
    from analysis.power.simulation import Sizes, layout_of

    layout = layout_of(plan, known.layouts)
    sizes = Sizes(known.participants or 0, known.items, known.prompts, known.replicates)
    bound = plan.equivalence or read_bound(SUGGESTED[plan.measure.scale], [plan.measure])
    own = bound.half_width
    several = len(plan.groups) > 1
    assumptions = []
    for mean in ACCURACIES if plan.measure.scale == "points" else (1000.0,):
        given = [Given("mean", group, level, mean) for group in plan.groups for level in plan.levels]
        try:
            truth = assumed(plan, kinds, given, "usual spreads")
            expected = expected_precision(plan, truth, sizes, layout, tests[0])
        except UserError:
            return None
        least = _of_readers(expected)
        found: dict[str, Any] = {
            "mean": mean if plan.measure.scale == "points" else None,
            "detectable": {readers: _shown(one.detectable, plan.measure) for readers, one in least.items()},
            "half_width": {readers: _shown(one.half_width, plan.measure) for readers, one in least.items()},
        }
        if several:
            widest = max((one for one in expected if len(one.groups) == 2), key=lambda one: one.se)
            found["equivalence"] = {
                "probability": round(widest.equivalence(own, tests[1]), 3),
                "reachable_bound": _shown(widest.reachable_bound(tests[1]), plan.measure),
                "items_needed": items_needed(plan, truth, sizes, layout, own, tests),
            }
        assumptions.append(found)
    return {
        "plan": plan.name,
        "measure": plan.measure.name,
        "participants": sizes.participants or None,
        "items": sizes.items,
        "tests": tests[0],
        "unit": "points" if plan.measure.scale == "points" else "percent",
        "equivalence_bound": plan.equivalence.said if plan.equivalence else None,
        "suggested_bound": SUGGESTED[plan.measure.scale] if several and plan.equivalence is None else None,
        "assumed": assumptions,
    }


def _of_readers(expected: Sequence[Expected]) -> dict[str, Expected]:
    """Return the least precise contrast of each reader, and of each pair of readers that is compared."""
    found: dict[str, Expected] = {}
    for one in expected:
        readers = " − ".join(one.groups)
        if readers not in found or one.se > found[readers].se:
            found[readers] = one
    return found


def _shown(value: float, measure: Measure) -> float:
    """Return a difference in points, or a ratio's logarithm in percent."""
    from math import expm1

    return round(value if measure.scale == "points" else 100 * expm1(value), 1)


def _told(plan: Plan, found: dict[str, Any]) -> str:
    unit = " points" if found["unit"] == "points" else "%"
    people = f"{found['participants']} participants, " if found["participants"] else ""
    first, *others = found["assumed"]
    at = f" at {first['mean']:g}% correct" if first["mean"] is not None else ""
    together = f", {found['tests']} tests adjusted together" if found["tests"] > 1 else ""
    listed = []
    for readers, value in first["detectable"].items():
        elsewhere = ", ".join(f"{one['detectable'][readers]:g} at {one['mean']:g}%" for one in others)
        listed.append(f"{readers} {value:g}{unit}" + (f" ({elsewhere})" if elsewhere else ""))
    lines = [
        f"Sensitivity of {found['plan']} ({people}{found['items']} items{together}; usual variation between participants and items): "
        f"the smallest difference that 80% of such studies find{at}: {'; '.join(listed)}."
    ]
    if "equivalence" in first:
        lines += _equivalence_told(plan, found, unit)
    return "\n".join(lines)


def _equivalence_told(plan: Plan, found: dict[str, Any], unit: str) -> list[str]:
    first, *others = found["assumed"]
    planned, suggested = found["equivalence_bound"], found["suggested_bound"]
    lines = []
    if planned is None:
        lines.append(
            "No equivalence bound is planned, so the report cannot conclude that readers are similar, however small the difference. "
            f"Which difference would be too small to matter? Add it to the plan before data collection, for example `equivalence: "
            f"{suggested}` ({REASONS[plan.measure.scale]})."
        )
    chance = f"{100 * first['equivalence']['probability']:.0f}%"
    chance += "".join(
        f" ({100 * one['equivalence']['probability']:.0f}% at {one['mean']:g}%)" for one in others
    )
    needed = first["equivalence"]["items_needed"]
    line = (
        f"If there is no difference, {chance} of such studies conclude equivalence within {planned or suggested}; 80% would within "
        f"{first['equivalence']['reachable_bound']:g}{unit}."
    )
    if first["equivalence"]["probability"] < 0.8:
        line += (
            f" For 80% within {planned or suggested}, plan about {needed} items."
            if needed
            else f" No number of items up to {20 * found['items']:,} is enough with these participants."
        )
    return [*lines, line]
