"""Says what holds of many readers so that it can be read: people and a few models one by one, of more models what they have in common.

Four models in five conditions make sixteen differences with all their statistics; a table holds those, and a sentence tells of
which models a difference holds, how large it is among them, and the p that none of them exceeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from markupsafe import Markup, escape

from analysis import apa
from analysis.readers import is_several
from analysis.report.equivalent import of_readers
from analysis.report.felt import felt
from analysis.report.verdicts import (
    NOT_ESTIMABLE,
    NOT_SIGNIFICANT,
    listed,
    outcome,
    scale_remark,
    verdict,
)
from analysis.results import Analysis, Contrast

MOST_SINGLY = 3
"""Models, or pairs of readers, of which one difference is told one by one."""
T = TypeVar("T")


def runs(
    found: Sequence[T],
    contrast: Callable[[T], Contrast],
    kinds: dict[str, str],
    alpha: float,
    alone: Callable[[T], bool] = lambda _: False,
) -> list[list[T]]:
    """Part the comparisons of one difference into those that are told one by one and those told together."""
    told: list[list[T]] = []
    for between in (False, True):
        own = [one for one in found if contrast(one).between == between]
        free = [one for one in own if not alone(one) and (between or _of_model(contrast(one), kinds))]
        together: dict[tuple[str, str], list[T]] = {}
        for one in own:
            if len(free) <= MOST_SINGLY or not any(one is other for other in free):
                told.append([one])
                continue
            first = contrast(one).groups[0]
            key = (first if between else kinds.get(first, "model"), outcome(contrast(one), alpha))
            if key not in together:
                together[key] = []
                told.append(together[key])
            together[key].append(one)
    return told


def _of_model(one: Contrast, kinds: dict[str, str]) -> bool:
    return not is_several(one.groups[0], kinds)


def of_many(found: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str]) -> Markup:
    """Write what several readers, or pairs with one reader, have in common in one difference."""
    said = verdict(found, analysis, kinds)
    result = outcome(found[0], analysis.plan.alpha)
    if result == NOT_ESTIMABLE:
        return escape(f"{said}.")
    end = Markup(" ({}; {}).").format(felt(found, analysis.plan.measure).range, _p_of_all(found, result))
    return escape(said) + end + escape("".join(f" {one}" for one in _remarks(found, kinds)))


def _p_of_all(found: Sequence[Contrast], result: str) -> Markup:
    """Write the p that none exceeds, or, of what is not significant, the least."""
    values = [one.p_adjusted for one in found]
    phrase = apa.p_value(min(values) if result == NOT_SIGNIFICANT else max(values))
    sign = "≥" if result == NOT_SIGNIFICANT else "≤"
    said = f"{phrase} each" if phrase[0] in "<>" else f"{sign} {phrase}"
    return Markup("<i>p</i>\u00a0{}").format(said.replace(" ", "\u00a0", 1))


def _remarks(found: Sequence[Contrast], kinds: dict[str, str]) -> list[str]:
    """Say of which of several an interaction reverses in log odds, and which differences between readers count as none."""
    reversed_in = [one.groups[-1] for one in found if scale_remark(one)]
    told = [f"In log odds it points the other way for {listed(reversed_in, kinds)}."] if reversed_in else []
    return [*told, *of_readers(found, kinds)]
