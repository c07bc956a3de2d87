"""What comparisons of conditions came to, in the same words wherever a report tells of them; others write the numbers beside."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import apa
from analysis.readers import headed_as, is_several, named
from analysis.results import Analysis, Contrast

NOT_ESTIMABLE, NOT_SIGNIFICANT = "not estimable", "not significant"
UNDETERMINED = "these data do not determine it"
DIRECTION = "In log odds it points the other way: the difference in percentage points may come from different starting levels."


LARGER, SMALLER, OPPOSITE = "larger", "smaller", "opposite"


def outcome(one: Contrast, alpha: float) -> str:
    """Say in a word what a comparison came to: not estimable, not significant, lower or higher.

    An interaction of two factors in one reader: whether the difference at the first level is larger or smaller than that at the
    second, or opposite to it.
    """
    if not one.estimable:
        return NOT_ESTIMABLE
    if one.p_adjusted >= alpha:
        return NOT_SIGNIFICANT
    if len(one.simple) == 2:
        here, there = one.simple
        return OPPOSITE if here * there < 0 else LARGER if abs(here) > abs(there) else SMALLER
    return "lower" if one.estimate < 0 else "higher"


def verdict(found: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str]) -> str:
    """Write what one comparison came to, or what several that came to the same have in common."""
    first, measure = found[0], analysis.plan.measure
    groups = [one.groups[-1] for one in found]
    who = listed(groups, kinds)
    where = f" within {first.at[0]}" if len(first.at) == 1 else ""
    both = f"the {first.first} and the {first.second} condition{where}"
    difference = f"difference in {measure.noun} between {both}"
    result = outcome(first, analysis.plan.alpha)
    if first.interaction:
        return _interaction(first, result, difference, who, kinds)
    if first.between:
        beside = f"between {named(first.groups[0], kinds)} and {who}"
        if result == NOT_ESTIMABLE:
            return f"Whether the {difference} differs {beside} cannot be estimated: {UNDETERMINED}"
        if result == NOT_SIGNIFICANT:
            return f"Whether the {difference} differs {beside} remains open"
        return f"The {difference} differed {beside}"
    if result == NOT_ESTIMABLE:
        return f"The {difference} cannot be estimated for {who}: {UNDETERMINED}"
    if result == NOT_SIGNIFICANT:
        return f"Whether {measure.noun} of {who} differs between {both} remains open"
    than = f"in the {first.first} than in the {first.second} condition{where}"
    how = _accurate_or_fast(first, analysis)
    if how is None:
        verb = "were" if measure.title.partition(",")[0].endswith("s") else "was"
        return f"{measure.title} of {who} {verb} {result} {than}"
    several = len(found) > 1 or is_several(groups[0], kinds)
    subject = headed_as(groups[0], kinds) if len(found) == 1 else f"{who[0].upper()}{who[1:]}"
    return f"{subject} {'were' if several else 'was'} {how} {than}"


def _interaction(one: Contrast, result: str, difference: str, who: str, kinds: dict[str, str]) -> str:
    """Say whether a difference between conditions depends on another factor, or on it otherwise in one reader than in others."""
    conditions = f"the {one.at[0]} and the {one.at[1]} condition"
    if one.between:
        beside = f"between {named(one.groups[0], kinds)} and {who}"
        changes = f"the {difference} changes between {conditions}"
        if result == NOT_ESTIMABLE:
            return f"Whether how much {changes} differs {beside} cannot be estimated: {UNDETERMINED}"
        if result == NOT_SIGNIFICANT:
            return f"Whether how much {changes} differs {beside} remains open"
        return f"How much {changes} differed {beside}"
    if result == NOT_ESTIMABLE:
        return f"Whether the {difference} differs between {conditions} cannot be estimated for {who}: {UNDETERMINED}"
    if result == NOT_SIGNIFICANT:
        return f"Whether the {difference} differs between {conditions} remains open for {who}"
    if result == OPPOSITE:
        return f"The {difference} had opposite directions in {conditions} for {who}"
    return f"The {difference} was {result} in the {one.at[0]} than in the {one.at[1]} condition for {who}"


def listed(groups: Sequence[str], kinds: dict[str, str]) -> str:
    """Name several reader groups in a sentence: ``people, the models a and b, and the baseline random``."""
    single = [group for group in groups if is_several(group, kinds)]
    told = [named(group, kinds) for group in single]
    for kind in ("model", "baseline"):
        names = [group for group in groups if group not in single and kinds.get(group, "model") == kind]
        if names:
            told.append(f"the {kind}{'s' if len(names) > 1 else ''} {apa.listing(names)}")
    return apa.listing(told)


def _accurate_or_fast(one: Contrast, analysis: Analysis) -> str | None:
    """Say a difference in accuracy or time in a word of its own; None of any other measure."""
    words = words_of_direction(analysis)
    return None if words is None else words[0 if one.estimate < 0 else 1]


def words_of_direction(analysis: Analysis) -> tuple[str, str] | None:
    """Return what readers are where their accuracy or time is lower, and where it is higher; None of any other measure."""
    measure = analysis.plan.measure
    if measure.response != "correct" and not (measure.logged and measure.unit == "ms"):
        return None
    return ("less accurate", "more accurate") if measure.family == "binomial" else ("faster", "slower")


def scale_remark(one: Contrast) -> str:
    """Say where an interaction that is certain in percentage points points the other way in log odds; empty elsewhere."""
    reverses = one.orders > 1 and one.excludes_zero and one.log_odds * one.estimate < 0
    return DIRECTION if reverses else ""
