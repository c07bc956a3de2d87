"""Planned differences that a model does not hold: not estimable, said with the reason, and counted in their families.

A reader at ceiling, or a condition without trials, stays out of a model. What was planned of it was a test of its family
all the same: without it the others would be corrected less than was planned.
"""

from __future__ import annotations

from collections.abc import Iterable

from analysis.families import adjusted
from analysis.frames import ModelData
from analysis.plan import Difference, Plan
from analysis.readers import headed, spoken
from analysis.results import Contrast

NOT_WITH_OTHERS = "not in one model with the others"


def all_untested(plan: Plan, data: ModelData, why: str) -> tuple[Contrast, ...]:
    """Return the contrasts of a plan of which nothing could be fitted; none of an exploratory one."""
    if not plan.planned:
        return ()
    found = [
        untested(difference, groups, why_not(difference, groups, plan, data) or why)
        for difference in plan.contrasts
        for groups in compared(plan.groups)
    ]
    return tuple(adjusted([(plan, found)])[0])


def untested(difference: Difference, groups: tuple[str, ...], why: str) -> Contrast:
    """Return a planned contrast that is not in the model: not estimable, and still one of its family."""
    nan = float("nan")
    return Contrast(
        first=difference.first,
        second=difference.second,
        groups=groups,
        estimate=nan,
        se=nan,
        statistic=nan,
        df=None,
        p=nan,
        low=nan,
        high=nan,
        p_adjusted=nan,
        family=1,
        estimable=False,
        direction=difference.direction if len(groups) == 1 else "two-sided",
        left_out=why,
        at=difference.at,
    )


def untested_in_words(contrasts: Iterable[Contrast]) -> str:
    """Say which planned differences are not in the model, in which readers, and why; empty where all are."""
    by_why: dict[str, dict[str, list[str]]] = {}
    for one in contrasts:
        if one.left_out:
            who = " beside ".join(spoken(group) for group in one.groups)
            by_why.setdefault(one.left_out, {}).setdefault(who, []).append(one.label)
    told = []
    for why, by_reader in by_why.items():
        labels = list(dict.fromkeys(label for own in by_reader.values() for label in own))
        told.append(f"{', '.join(labels)} of {' and of '.join(by_reader)} ({why})")
    return "; ".join(told)


def compared(groups: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return each reader group alone, and the first with each other."""
    return [*((group,) for group in groups), *((groups[0], group) for group in groups[1:])]


def why_not(difference: Difference, groups: tuple[str, ...], plan: Plan, data: ModelData) -> str:
    """Say why the data of a model do not hold a difference of readers; empty where they do."""
    without = [
        f"{headed(group)}: {data.unmodelled.get(group) or NOT_WITH_OTHERS}"
        for group in groups
        if group not in data.groups
    ]
    levels = [level for level in plan.weights(difference) if level not in data.levels]
    without += [data.unmodelled_levels.get(level, f"{level} is not in the model") for level in levels]
    return "; ".join(dict.fromkeys(without))
