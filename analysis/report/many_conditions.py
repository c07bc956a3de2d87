"""Says what differences of many conditions from one reference come to: how many differ and which way, the greatest and the smallest.

Twenty-six conditions against one intact text make twenty-six sentences for every reader; a table holds those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from markupsafe import Markup, escape

from analysis import apa
from analysis.readers import headed_as, is_several, named
from analysis.report.equivalent import of_conditions
from analysis.report.many_readers import MOST_SINGLY
from analysis.report.verdicts import NOT_SIGNIFICANT, listed, outcome, scale_remark, words_of_direction
from analysis.results import Analysis, Contrast

MOST_LEVELS = 6
"""Conditions of which the difference from one reference is told one by one."""
T = TypeVar("T")


def crowds(
    found: Sequence[T], contrast: Callable[[T], Contrast], analysis: Callable[[T], object]
) -> tuple[list[list[T]], list[T]]:
    """Part comparisons into those of many conditions with one reference, and the others."""
    together: dict[tuple[int, str], list[T]] = {}
    for one in found:
        tested = contrast(one)
        if not tested.at:
            together.setdefault((id(analysis(one)), tested.second), []).append(one)
    many = [own for own in together.values() if len({contrast(one).first for one in own}) > MOST_LEVELS]
    crowded = {id(one) for own in many for one in own}
    return many, [one for one in found if id(one) not in crowded]


def of_many_conditions(
    found: Sequence[Contrast],
    analysis: Analysis,
    kinds: dict[str, str],
    in_brackets: Callable[[Contrast], Markup],
) -> Markup:
    """Write what the differences of many conditions from one reference come to, reader by reader."""
    said: list[Markup] = []
    for between in (False, True):
        readers: dict[tuple[str, ...], list[Contrast]] = {}
        for one in found:
            if one.between == between:
                readers.setdefault(one.groups, []).append(one)
        models = {groups: own for groups, own in readers.items() if not is_several(groups[-1], kinds)}
        if len(models) <= MOST_SINGLY:
            models = {}
        said += [
            _of_reader(own, analysis, kinds, in_brackets)
            for groups, own in readers.items()
            if groups not in models
        ]
        alike: dict[tuple[str, str], list[list[Contrast]]] = {}
        for groups, own in models.items():
            key = (groups[0] if between else "", kinds.get(groups[-1], "model"))
            alike.setdefault(key, []).append(own)
        said += [_of_models(own, analysis, kinds, in_brackets) for own in alike.values()]
    return Markup(" ").join(said)


def _of_reader(
    found: Sequence[Contrast],
    analysis: Analysis,
    kinds: dict[str, str],
    in_brackets: Callable[[Contrast], Markup],
) -> Markup:
    """Say of one reader, or one pair, in how many conditions it differs from the reference, and where most and least."""
    first, noun, title = found[0], analysis.plan.measure.noun, analysis.plan.measure.title
    reference, many = f"the {first.second} condition", apa.counted(len(found), "condition")
    differ = _differing(found, analysis)
    who = named(first.groups[-1], kinds)
    if first.between:
        beside = f"between {named(first.groups[0], kinds)} and {who}"
        begin = f"The difference in {noun} from {reference}"
        said = (
            f"{begin} differed {beside} in {_share(len(differ), len(found))}"
            if differ
            else f"Whether the difference in {noun} from {reference} differs {beside} remains open in all {many}"
        )
        told = escape(f"{said}.") + _extremes(differ or found, bool(differ), in_brackets)
        return told + escape("".join(f" {one}" for one in _remarks(found)))
    if not differ:
        said = f"Whether {noun} of {who} differs from {reference} remains open in all {many}"
        return escape(f"{said}.") + _extremes(found, False, in_brackets)
    lower, higher = words_of_direction(analysis) or ("lower", "higher")
    parts: list[str] = []
    for word, own in (
        (lower, [one for one in differ if one.estimate < 0]),
        (higher, [one for one in differ if one.estimate >= 0]),
    ):
        if own:
            parts.append(f"{word} in {apa.count(len(own)) if parts else _share(len(own), len(found))}")
    group = first.groups[-1]
    if lower == "lower":
        subject = f"{title} of {who} was"
    else:
        subject = f"{headed_as(group, kinds)} {'were' if is_several(group, kinds) else 'was'}"
    said = f"{subject} {' and '.join(parts)} than in {reference}."
    return escape(said) + _extremes(differ, True, in_brackets)


def _of_models(
    found: Sequence[Sequence[Contrast]],
    analysis: Analysis,
    kinds: dict[str, str],
    in_brackets: Callable[[Contrast], Markup],
) -> Markup:
    """Say of many models in how many conditions the one with fewest and the one with most differ, and where most."""
    order = sorted(found, key=lambda own: len(_differing(own, analysis)))
    few, most = (len(_differing(own, analysis)) for own in (order[0], order[-1]))
    first, noun, title = found[0][0], analysis.plan.measure.noun, analysis.plan.measure.title
    who = listed([own[0].groups[-1] for own in found], kinds)
    least, most_of = (own[0].groups[-1] for own in (order[0], order[-1]))
    count = f"{few} each" if few == most else f"{few} ({least}) to {most} ({most_of})"
    where = f"in {count} of {apa.counted(max(len(own) for own in found), 'condition')}"
    reference = f"the {first.second} condition"
    said = (
        f"The difference in {noun} from {reference} differed between {named(first.groups[0], kinds)} and {who} {where}."
        if first.between
        else f"{title} of {who} differed significantly from {reference} {where}."
    )
    greatest = max((one for own in found for one in own), key=_size)
    told = escape(
        f" The greatest difference was that of {greatest.groups[-1]} in the {greatest.first} condition"
    )
    return escape(said) + told + in_brackets(greatest)


def _remarks(found: Sequence[Contrast]) -> list[str]:
    """Say in how many conditions the difference between two readers reverses in log odds, and in how many it counts as none."""
    many = apa.counted(len(found), "condition")
    told = []
    on_scale = sum(bool(scale_remark(one)) for one in found)
    if on_scale:
        told.append(f"In log odds they differ the other way in {apa.count(on_scale)} of {many}.")
    return [*told, *of_conditions(found)]


def _differing(found: Sequence[Contrast], analysis: Analysis) -> list[Contrast]:
    return [one for one in found if outcome(one, analysis.plan.alpha) != NOT_SIGNIFICANT]


def _share(some: int, of: int) -> str:
    return (
        f"all {apa.counted(of, 'condition')}"
        if some == of
        else f"{apa.count(some)} of {apa.counted(of, 'condition')}"
    )


def _size(one: Contrast) -> float:
    """Return how large a difference is, whichever way, on the scale that is shown."""
    return abs(one.estimate)


def _extremes(
    found: Sequence[Contrast], significant: bool, in_brackets: Callable[[Contrast], Markup]
) -> Markup:
    """Name the greatest difference with its size, and the smallest of those that are significant."""
    greatest, smallest = max(found, key=_size), min(found, key=_size)
    said = escape(f" The greatest difference was in the {greatest.first} condition") + in_brackets(greatest)
    if significant and smallest is not greatest:
        said += escape(f" The smallest significant one was in the {smallest.first} condition") + in_brackets(
            smallest
        )
    return said
