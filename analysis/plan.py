"""One analysis as it is planned: its measure, contrasts with their direction, bound, level, family, model, exclusions.

The texts that a study writes (``initial - internal``, ``5 points``, ``10%``, ``1.2 times``) are read here. What a plan leaves
unsaid has the defaults of :class:`Plan`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, Literal, get_args

import pandas as pd

from analysis.crossing import Crossing
from analysis.measures import Measure
from analysis.within import Within, shown
from stimuli.errors import UserError, unknown_name

Direction = Literal["two-sided", "greater", "less"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
ALPHA = 0.05
"""Level of every test where nothing else is said."""

_BOUND = re.compile(r"([0-9]*\.?[0-9]+) ?(points?|%|times|ms|bits?|nats?|tokens?)")
_PARTICIPANTS = re.compile(r"(?:at )?([0-9]+) participants?")


_SIDES = re.compile(r"\s+[-−–]\s+")
_INTERACTION = re.compile(r"\(([^()]+)\)\s+[x×*]\s+\(([^()]+)\)")
_SIMPLE = re.compile(r"(.+?)\s+in\s+(.+)")


@dataclass(frozen=True)
class Difference:
    """A contrast between two levels of a compared factor: ``first`` minus ``second``.

    Attributes
    ----------
    first, second : str
    direction : {'two-sided', 'greater', 'less'}
        What is expected of the difference within a reader: greater or less than nothing, or either. Comparisons between
        readers are two-sided.
    at : tuple of str
        Where two factors are compared together, levels of the other one: the level at which the difference is taken (a simple
        effect), or the two between which the difference is compared (an interaction); without any it is averaged over all.
    """

    first: str
    second: str
    direction: Direction = "two-sided"
    at: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The contrast in words, with a true minus."""
        return label_of(self.first, self.second, self.at)


def label_of(first: str, second: str, at: tuple[str, ...] = ()) -> str:
    """Write a contrast as tables have it: ``a − b``, ``a − b in c``, or ``(a − b) × (c − d)``."""
    label = f"{first} − {second}"
    if not at:
        return label
    return f"{label} in {at[0]}" if len(at) == 1 else f"({label}) × ({at[0]} − {at[1]})"


@dataclass(frozen=True)
class Bound:
    """The smallest difference between readers that matters; a smaller one counts as none.

    Attributes
    ----------
    value : float
        Percentage points; a ratio above 1 (a difference of 1.2 times lies between 1/1.2 and 1.2); or a difference in the
        measure's own unit.
    unit : {'points', 'ratio', 'raw'}
    said : str
        As the study writes it.
    """

    value: float
    unit: Literal["points", "ratio", "raw"]
    said: str = ""

    @property
    def half_width(self) -> float:
        """What the bound is on the scale of the test: points, a natural logarithm, or the measure's unit."""
        return log(self.value) if self.unit == "ratio" else self.value


@dataclass(frozen=True)
class Plan:
    """One analysis to run.

    Attributes
    ----------
    name : str
        The key in the study, or a name for an exploratory analysis.
    planned : bool
        Whether the study named it.
    measure : Measure
    factor : str
    levels : tuple of str
        Levels of the factor, reference first.
    groups : tuple of str
        Reader groups, in the order in which the study names them.
    contrasts : tuple of Difference
        With the direction of each.
    stand_in : bool
        Whether simulated readers take the place of people.
    remarks : tuple of str
        What of the plan could not be taken as written.
    trials : str or None
        Only trials that end with this step (choose, recover …), where blocks answer in different ways.
    within : tuple of (str, str)
        Only trials that show these levels of other factors, such as ``(("examples", "few-shot"),)``.
    key : str
        The key in the study, also where readers with different measures make it several analyses; empty for exploratory ones.
    alpha : float
        Level of its tests.
    family : str
        Name of the family in which its tests are corrected together with those of other analyses; empty where each contrast
        is a family of its own, over its readers.
    equivalence : Bound or None
        The bound of its equivalence tests, for differences between its first reader group and each other.
    formula, fallback : str or None
        Its own model in lme4's notation, and the one that takes its place where it is singular or does not converge.
    exclude : mapping
        Exclusions beyond the study's: ``trials`` (time → bounds), ``sessions`` (sign → rule), ``answers: wrong``.
    stop : str or None
        When collection stops; None for the study's wanted participants.
    factors : mapping
        Levels of every factor of the study, which a model of its own may name, and by whose cells sessions are counted.
    crossing : Crossing or None
        Two factors that are compared together; ``factor`` and ``levels`` are then the column of their cells and the cells.
    """

    name: str
    planned: bool
    measure: Measure
    factor: str
    levels: tuple[str, ...]
    groups: tuple[str, ...]
    contrasts: tuple[Difference, ...]
    stand_in: bool = False
    remarks: tuple[str, ...] = ()
    trials: str | None = None
    within: Within = ()
    key: str = ""
    alpha: float = ALPHA
    family: str = ""
    equivalence: Bound | None = None
    formula: str | None = None
    fallback: str | None = None
    exclude: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stop: str | None = None
    factors: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    crossing: Crossing | None = None

    def weights(self, difference: Difference) -> dict[str, float]:
        """Return what a contrast weighs each level (or cell of two factors) with."""
        if self.crossing is None:
            return {difference.first: 1.0, difference.second: -1.0}
        return self.crossing.weights(difference.first, difference.second, difference.at)

    @property
    def subset(self) -> bool:
        """Whether it is of some of a study's trials alone."""
        return self.trials is not None or bool(self.within)

    def holds(self, trials: pd.DataFrame) -> pd.Series[bool]:
        """Mark the trials that are of its kind and show its levels of other factors."""
        kept = shown(trials, self.within)
        return kept if self.trials is None else kept & (trials["trial_type"] == self.trials)

    @property
    def participants_at_stop(self) -> int | None:
        """How many participants its own stopping rule names; None where it has none or says it otherwise."""
        found = _PARTICIPANTS.fullmatch(self.stop.strip()) if self.stop else None
        return int(found[1]) if found else None


def read_contrast(
    text: str,
    levels: list[str],
    where: str = "contrast",
    direction: str = "two-sided",
    crossing: Crossing | None = None,
) -> Difference:
    """Read ``initial - internal``; a UserError names the nearest level or direction where one is misspelt.

    Of two factors that are compared together also ``initial - internal in print`` and ``(initial - internal) x (cursive - print)``.
    """
    if direction not in DIRECTIONS:
        raise unknown_name(f"{where}.direction:", direction, DIRECTIONS)
    if crossing is not None:
        return _read_crossed(str(text).strip(), crossing, where, direction)
    first, second = _read_sides(str(text), [levels], text, where, "Write: a - b.")
    return Difference(first, second, direction)


def _read_crossed(text: str, crossing: Crossing, where: str, direction: Direction) -> Difference:
    own, others = crossing.levels
    mend = crossed_mend(crossing)
    if found := _INTERACTION.fullmatch(text):
        first, second = _read_sides(found[1], [own, others], text, where, mend)
        rest = others if {first, second} <= set(own) else own
        return Difference(first, second, direction, _read_sides(found[2], [rest], text, where, mend))
    simple = _SIMPLE.fullmatch(text)
    if simple is None or set(_SIDES.split(text)) <= {*own, *others}:
        return Difference(*_read_sides(text, [own, others], text, where, mend), direction)
    first, second = _read_sides(simple[1], [own, others], text, where, mend)
    rest = others if {first, second} <= set(own) else own
    if simple[2] not in rest:
        raise unknown_name(f"{where}.contrasts: level", simple[2], rest)
    return Difference(first, second, direction, (simple[2],))


def crossed_mend(crossing: Crossing) -> str:
    """Say how contrasts of two factors are written."""
    a, b = (f"{own[1]} - {own[0]}" for own in crossing.levels)
    return (
        f"Write the interaction as ({a}) x ({b}), a simple effect as {a} in {crossing.levels[1][0]}, a difference averaged over the "
        f"other factor as {a}."
    )


def _read_sides(said: str, of: Sequence[Sequence[str]], text: str, where: str, mend: str) -> tuple[str, str]:
    """Read ``a - b`` with both sides of one factor, given the levels of each."""
    sides = _SIDES.split(said.strip())
    if len(sides) != 2 or sides[0] == sides[1]:
        raise UserError(f"{where}.contrasts: {text!r} is not the difference of two levels", mend=mend)
    known = [level for levels in of for level in levels]
    for side in sides:
        if side not in known:
            raise unknown_name(f"{where}.contrasts: level", side, known)
    if not any(set(sides) <= set(levels) for levels in of):
        raise UserError(f"{where}.contrasts: {text!r} takes levels of two factors apart", mend=mend)
    return sides[0], sides[1]


def read_bound(text: str, measure: Measure, where: str = "equivalence") -> Bound:
    """Read ``5 points``, ``10%``, ``1.2 times`` or ``0.5 bits``.

    Parameters
    ----------
    text : str
    measure : Measure
        Points are for shares, percentages and ratios for times and counts of tokens, other units for what is modelled in them.
    where : str
        What an error calls the place.

    Raises
    ------
    UserError
        For another form, a bound that holds nothing or everything, or one that is not on the measure's scale.
    """
    found = _BOUND.fullmatch(str(text).strip())
    if found is None:
        raise UserError(f"{where} is {text!r}", mend="Write it like: 5 points, 10%, 1.2 times, or 0.5 bits.")
    number, unit = float(found[1]), found[2]
    if unit.startswith("point"):
        bound = Bound(number, "points", str(text))
    elif unit in ("%", "times"):
        bound = Bound(1 + number / 100 if unit == "%" else number, "ratio", str(text))
    else:
        bound = Bound(number, "raw", str(text))
    same_unit = bound.unit != "raw" or unit.removesuffix("s") == measure.unit.removesuffix("s")
    if bound.unit != measure.scale or not same_unit:
        wanted = {
            "points": "in percentage points, such as 5 points",
            "ratio": "as a ratio, such as 10% or 1.2 times",
            "raw": f"in its unit, such as 0.5 {measure.unit}",
        }[measure.scale]
        raise UserError(f"{where} is {text!r}; differences in {measure.noun} are bounded {wanted}")
    if bound.half_width <= 0 or (bound.unit == "points" and bound.value >= 100):
        rule = "lies above 1" if unit == "times" else "lies above 0"
        rule += " and below 100" if bound.unit == "points" else ""
        raise UserError(f"{where} is {text!r}; a bound {rule}")
    return bound


def against_reference(levels: list[str], direction: str = "two-sided") -> tuple[Difference, ...]:
    """Compare each level with the first, the reference."""
    return tuple(read_contrast(f"{level} - {levels[0]}", levels, direction=direction) for level in levels[1:])


def interactions(crossing: Crossing, direction: Direction = "two-sided") -> tuple[Difference, ...]:
    """Compare each level of the first factor with its reference, between each level of the second and its reference."""
    (base, *own), (ground, *others) = crossing.levels
    return tuple(Difference(one, base, direction, (other, ground)) for one in own for other in others)
