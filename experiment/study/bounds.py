"""Bounds as a study writes them, of signs (``2 or more``, ``above 20%``, ``below 70%``) and times (``outside 200 ms to 10 s``)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiment.study.durations import milliseconds
from experiment.study.yaml_source import KeyPath
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.study.study import Study

RIGHT_SHARE = "question_accuracy"
"""The one sign of which little is bad; it is kept as the share of wrong answers."""
KEYLESS = "keyless"
"""The sign of text without key strokes, which no bound holds where a study allows assistive input."""
OUTSIDE = "outside "
_OR_MORE = re.compile(r"([0-9]+) or more")
_SIDED = re.compile(r"(above|below) ([0-9.]+) ?(%|ms|s|min)?")
_JUST_BELOW = 1e-9


def session_rules(study: Study) -> dict[str, float]:
    """Return the declared rules by which sessions may be excluded: sign → the value above which it counts.

    Raises
    ------
    UserError
        A rule bounds its sign from the wrong side, or a share lies outside 0 to 100%.
    """
    path = ("analysis", "exclude", "sessions")
    given: Mapping[str, str] = study.get(*path, default={})
    rules = {sign: read_rule(study, (*path, sign), text) for sign, text in given.items()}
    return {**rules, KEYLESS: math.inf} if study.get("participants", "assistive_input") else rules


@dataclass(frozen=True)
class Bounds:
    """Between which times a measure counts.

    Attributes
    ----------
    low, high : float
        Milliseconds, both still counting.
    said : str
        As the study writes it: ``outside 50 ms to 10 s``.
    """

    low: float
    high: float
    said: str


def region_bounds(study: Study) -> Bounds | None:
    """Return between which times the time on a region counts (``analysis.exclude.regions``); None where all do."""
    said = study.get("analysis", "exclude", "regions", "rt")
    return None if said is None else read_bounds(study, ("analysis", "exclude", "regions", "rt"), said)


def read_bounds(study: Study, path: KeyPath, said: str) -> Bounds:
    """Read the bounds of a measure of trials or regions, which stand at a place in the study.

    Raises
    ------
    UserError
        The first bound is not the lower one.
    """
    low, high = (float(milliseconds(part)) for part in said.removeprefix(OUTSIDE).split(" to "))
    if low >= high:
        raise UserError(f"{study.place(*path)} is {said!r}; the first bound is the lower one")
    return Bounds(low, high, said)


def read_rule(study: Study, path: KeyPath, text: str) -> float:
    """Return the value above which a sign counts, by the rule that stands at a place in the study.

    Raises
    ------
    UserError
        As :func:`session_rules`.
    """
    place, sign = study.place(*path), str(path[-1])
    if sign == KEYLESS and study.get("participants", "assistive_input"):
        raise UserError(
            f"{place} excludes for text without key strokes, which participants.assistive_input allows",
            mend="Take one of the two out.",
        )
    whole = _OR_MORE.fullmatch(text)
    if whole:
        return int(whole[1]) - _JUST_BELOW
    found = _SIDED.fullmatch(text)
    assert found is not None, "the schema lets no other form through"
    side, number, unit = found[1], float(found[2]), found[3]
    if (side == "below") != (sign == RIGHT_SHARE):
        wanted = "below 70%" if sign == RIGHT_SHARE else "above 20%"
        raise UserError(
            f"{place} is {text!r}; {sign} is bounded from the other side", mend=f"Write for example {wanted}."
        )
    if unit == "%":
        if number > 100:
            raise UserError(f"{place} is {text!r}; a share lies between 0% and 100%")
        number /= 100
    elif unit is not None:
        number = float(milliseconds(f"{found[2]} {unit}"))
    return 1 - number if sign == RIGHT_SHARE else number
