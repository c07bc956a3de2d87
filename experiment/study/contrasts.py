"""How a plan writes contrasts: differences of two levels, of one factor or of two that are compared together.

``a - b`` is a difference; of two factors it is averaged over the other one, ``a - b in c`` is the simple effect at one of its
levels, and ``(a - b) x (c - d)`` the interaction: the difference at ``c`` minus the difference at ``d``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stimuli.errors import did_you_mean

_MINUS = re.compile(r"\s+[-−–]\s+")
_INTERACTION = re.compile(r"\(([^()]+)\)\s+[x×*]\s+\(([^()]+)\)")
_IN = re.compile(r"\s+in\s+")

Levels = Mapping[str, Sequence[str]]
"""Levels of each factor that is compared, the reference first."""


@dataclass(frozen=True)
class Sides:
    """A contrast taken apart: ``first`` minus ``second``, at no, one or two levels of another factor."""

    first: str
    second: str
    at: tuple[str, ...] = ()


def read_sides(text: str, levels: Levels) -> Sides | None:
    """Take a contrast apart; None where it is none of these levels."""
    known = {level for own in levels.values() for level in own}
    if len(levels) > 1 and (found := _INTERACTION.fullmatch(text.strip())):
        own, other = _difference(found[1], levels), _difference(found[2], levels)
        apart = own is not None and other is not None and _factor(own[0], levels) != _factor(other[0], levels)
        return Sides(*own, other) if own is not None and other is not None and apart else None
    own = _difference(text, levels)
    if own is not None:
        return Sides(*own)
    # A level may itself be called "swapped in word", so that each "in" is tried.
    for word in _IN.finditer(text.strip()) if len(levels) > 1 else ():
        own, at = _difference(text.strip()[: word.start()], levels), text.strip()[word.end() :]
        if own is not None and at in known and _factor(own[0], levels) != _factor(at, levels):
            return Sides(*own, (at,))
    return None


def _difference(text: str, levels: Levels) -> tuple[str, str] | None:
    sides = _MINUS.split(text.strip())
    if len(sides) != 2 or sides[0] == sides[1]:
        return None
    of_one = any(set(sides) <= set(own) for own in levels.values())
    return (sides[0], sides[1]) if of_one else None


def _factor(level: str, levels: Levels) -> str:
    return next(name for name, own in levels.items() if level in own)


def usual_contrasts(levels: Levels) -> list[str]:
    """Return the contrasts of a plan that names none: each level against the reference; of two factors their interactions."""
    (base, *own), *others = levels.values()
    if not others:
        return [f"{level} - {base}" for level in own]
    ground, *rest = others[0]
    return [f"({level} - {base}) x ({other} - {ground})" for level in own for other in rest]


def how_written(text: str, levels: Levels) -> str:
    """Say how contrasts of these levels are written, and which level may have been meant."""
    known = [level for own in levels.values() for level in own]
    words = [word.strip() for word in re.split(r"\s+(?:[-−–x×*]|in)\s+|[()]", text) if word.strip()]
    hints = [did_you_mean(word, known) for word in words if word not in known]
    there = "; ".join(f"levels of {name}: {', '.join(own)}" for name, own in levels.items())
    forms = "A contrast is `level - level`, with a space on each side of the minus"
    if len(levels) > 1:
        a, b = (f"{own[1]} - {own[0]}" for own in levels.values())
        ground = list(levels.values())[1][0]
        forms = (
            f"Write the interaction as `({a}) x ({b})`, a simple effect as `{a} in {ground}`, a difference averaged over the other "
            f"factor as `{a}`"
        )
    return f"{next((hint for hint in hints if hint), '')}{forms}; {there}."
