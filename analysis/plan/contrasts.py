"""Contrasts as a plan writes them: differences of two levels, of one factor or of two that are compared together.

``a - b`` is a difference; of two factors it is averaged over the other one, ``a - b in c`` is the simple effect at one of its
levels, and ``(a - b) x (c - d)`` the interaction: the difference at ``c`` minus the difference at ``d``. A text is compared with
the levels of the factors, so that levels may contain these signs and words themselves (``swapped in word``, ``no - go``).
What is wrong with a plan is a :class:`PlanFault`, which each package reports with its own places.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, Literal, get_args

Direction = Literal["two-sided", "greater", "less"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
Levels = Mapping[str, Sequence[str]]
"""Levels of each factor that is compared, the reference first."""
TIMES = " × "
"""The sign between two factors whose cells are named after both."""
IN = "/"
MOST_CELLS = 12
"""Cells of two factors whose interaction is tested although nobody planned it."""

_MINUS = re.compile(r"\s+[-−–]\s+")
_TIMES = re.compile(r"\)\s+[x×*]\s+\(")
_IN = re.compile(r"\s+in\s+")


Key = str | int


@dataclass(eq=False)
class PlanFault(Exception):
    """A setting of a plan that cannot be carried out."""

    problem: str
    remedy: str
    at: tuple[Key, ...] = ()  # the keys from the analysis to the setting
    given: str = ""
    known: Iterable[str] = ()

    def __post_init__(self) -> None:
        super().__init__(self.problem, self.remedy, self.given, tuple(self.known))

    @property
    def path(self) -> str:
        """The keys from the analysis to the setting, as they follow its name: ``.contrasts[1]``."""
        return "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in self.at)

    def below(self, *keys: Key) -> PlanFault:
        """Return the same error for a setting under these keys."""
        return replace(self, at=(*keys, *self.at))


def unknown(kind: str, name: str, known: Iterable[str], *at: Key) -> PlanFault:
    """Return the error for a name that is not among the known ones."""
    names = sorted(known)
    return PlanFault(
        f": {kind} {name!r} is not known", f"Known: {', '.join(names) or 'none'}.", at, name, names
    )


@dataclass(frozen=True)
class LevelDifference:
    """A contrast between two levels of a compared factor: ``first`` minus ``second``."""

    first: str
    second: str
    direction: Direction = "two-sided"
    at: tuple[str, ...] = ()  # one level of another factor: a simple effect; two: an interaction

    @property
    def label(self) -> str:
        """The contrast in words, with a true minus."""
        return label_of(self.first, self.second, self.at)

    def direction_in(self, groups: Sequence[str]) -> Direction:
        """Return what is expected of it in one reader group; comparisons of two are two-sided."""
        return self.direction if len(groups) == 1 else "two-sided"

    @property
    def written(self) -> str:
        """The contrast as a plan writes it."""
        return label_of(self.first, self.second, self.at, minus=" - ", times=" x ")


def label_of(
    first: str, second: str, at: tuple[str, ...] = (), *, minus: str = " − ", times: str = TIMES
) -> str:
    """Write a contrast as tables have it: ``a − b``, ``a − b in c``, or ``(a − b) × (c − d)``."""
    label = f"{first}{minus}{second}"
    if not at:
        return label
    return f"{label} in {at[0]}" if len(at) == 1 else f"({label}){times}({at[0]}{minus}{at[1]})"


def read_contrast(text: str, levels: Levels, direction: Direction = "two-sided") -> LevelDifference:
    """Read a contrast of these levels."""
    reading = next(_readings(text.strip(), levels), None)
    if reading is None:
        raise _no_contrast(text, levels)
    first, second, at = reading
    return LevelDifference(first, second, direction, at)


def _readings(text: str, levels: Levels) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the ways in which a text is a contrast: a difference, a simple effect, an interaction."""
    yield from ((first, second, ()) for _, first, second in _differences(text, levels))
    if len(levels) < 2:
        return
    for word in _IN.finditer(text):
        level = text[word.end() :]
        for factor, first, second in _differences(text[: word.start()], levels):
            if any(level in factor_levels for name, factor_levels in levels.items() if name != factor):
                yield first, second, (level,)
    if text.startswith("(") and text.endswith(")"):
        for sign in _TIMES.finditer(text):
            for factor, first, second in _differences(text[1 : sign.start()], levels):
                for other, at_first, at_second in _differences(text[sign.end() : -1], levels):
                    if other != factor:
                        yield first, second, (at_first, at_second)


def _differences(text: str, levels: Levels) -> Iterator[tuple[str, str, str]]:
    """Yield each way in which a text is the difference of two levels of one factor, with the factor."""
    for sign in _MINUS.finditer(text):
        first, second = text[: sign.start()].strip(), text[sign.end() :].strip()
        for factor, factor_levels in levels.items():
            if first != second and first in factor_levels and second in factor_levels:
                yield factor, first, second


def _no_contrast(text: str, levels: Levels) -> PlanFault:
    all_levels = [level for factor_levels in levels.values() for level in factor_levels]
    words = [word.strip() for word in re.split(r"\s+(?:[-−–x×*]|in)\s+|[()]", text) if word.strip()]
    listing = "; ".join(
        f"levels of {name}: {', '.join(factor_levels)}" for name, factor_levels in levels.items()
    )
    forms = "A contrast is `level - level`, with a space on each side of the minus"
    if len(levels) > 1 and all(len(factor_levels) > 1 for factor_levels in levels.values()):
        a, b = (f"{factor_levels[1]} - {factor_levels[0]}" for factor_levels in levels.values())
        reference = list(levels.values())[1][0]
        forms = (
            f"Write the interaction as `({a}) x ({b})`, a simple effect as `{a} in {reference}`, "
            f"a difference averaged over the other factor as `{a}`"
        )
    given = next((word for word in words if word not in all_levels), "")
    reason = (
        f"{given!r} is not a compared level"
        if given
        else "it must be the difference of two levels of one factor"
    )
    return PlanFault(f" is {text!r}; {reason}", f"{forms}; {listing}.", given=given, known=all_levels)


def usual_contrasts(levels: Levels) -> tuple[LevelDifference, ...]:
    """Return the contrasts of a plan that names none: each level against the reference; of two factors their interactions."""
    (reference, *compared), *other_factors = levels.values()
    if not other_factors:
        return against_reference([reference, *compared])
    other_reference, *other_compared = other_factors[0]
    return tuple(
        LevelDifference(level, reference, at=(other_level, other_reference))
        for level in compared
        for other_level in other_compared
    )


def against_reference(levels: Sequence[str]) -> tuple[LevelDifference, ...]:
    """Compare each level with the first, the reference."""
    return tuple(LevelDifference(level, levels[0]) for level in levels[1:])


def with_directions(texts: Sequence[str], given: Any, levels: Levels) -> tuple[LevelDifference, ...]:
    """Read contrasts with the direction of each, which is given for all or by contrast."""
    contrasts = [read_contrast(text, levels) for text in texts] or list(usual_contrasts(levels))
    directions: dict[LevelDifference, Any]
    if not isinstance(given, Mapping):
        directions = dict.fromkeys(contrasts, given or "two-sided")
    else:
        directions = {}
        for text, direction in given.items():
            try:
                contrast = read_contrast(str(text), levels)
            except PlanFault:
                contrast = None
            if contrast not in contrasts:
                raise unknown(
                    "contrast",
                    str(text),
                    [contrast.written for contrast in contrasts],
                    "direction",
                    str(text),
                )
            directions[contrast] = direction
    for direction in directions.values():
        if direction not in DIRECTIONS:
            raise unknown("direction", str(direction), DIRECTIONS, "direction")
    return tuple(
        LevelDifference(contrast.first, contrast.second, directions.get(contrast, "two-sided"), contrast.at)
        for contrast in contrasts
    )


@dataclass(frozen=True)
class CrossedFactors:
    """Two factors compared together: their cells are levels of one column (``item_type × font`` with ``word/plain`` …)."""

    factors: tuple[str, str]  # the two, in the order of the plan
    levels: tuple[tuple[str, ...], tuple[str, ...]]  # levels of each, the reference first

    @property
    def name(self) -> str:
        """Name of the column of cells."""
        return crossed_name(*self.factors)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every cell, that of both references first; the second factor varies fastest."""
        return tuple(cell_name(*pair) for pair in product(*self.levels))

    @property
    def by_factor(self) -> dict[str, tuple[str, ...]]:
        """Levels of each factor by its name."""
        return dict(zip(self.factors, self.levels, strict=True))

    def pair_of(self, cell: str) -> tuple[str, str]:
        """Return the levels of both factors that a cell shows."""
        return dict(zip(self.cells, product(*self.levels), strict=True))[cell]

    def among(self, cells: Collection[str]) -> CrossedFactors:
        """Return the crossing of the levels that these cells show."""
        pairs = [pair for pair in product(*self.levels) if cell_name(*pair) in cells]
        first, second = (
            tuple(level for level in levels if any(pair[index] == level for pair in pairs))
            for index, levels in enumerate(self.levels)
        )
        return CrossedFactors(self.factors, (first, second))

    def is_filled(self, cells: Collection[str]) -> bool:
        """Return whether every cell is among these."""
        return set(self.cells) <= set(cells)

    def weights(self, first: str, second: str, at: Sequence[str]) -> dict[str, float]:
        """Return the weight of each cell in a contrast."""
        is_swapped = not ({first, second} <= set(self.levels[0]) and set(at) <= set(self.levels[1]))
        others = self.levels[0 if is_swapped else 1]
        by_other = dict(zip(at, (1.0, -1.0), strict=False)) or dict.fromkeys(others, 1.0 / len(others))
        weights = {}
        for level, sign in ((first, 1.0), (second, -1.0)):
            for other, share in by_other.items():
                weights[cell_name(other, level) if is_swapped else cell_name(level, other)] = sign * share
        return weights


def crossed_name(first: str, second: str) -> str:
    """Name the column of the cells of two factors."""
    return f"{first}{TIMES}{second}"


def cell_name(first: str, second: str) -> str:
    """Name a cell by the levels that it shows."""
    return f"{first}{IN}{second}"


def factors_compared(spec: Mapping[str, Any]) -> list[str]:
    """Return the factor that a plan compares, or the two whose interaction it tests."""
    given = spec["compare"]
    return [str(name) for name in given] if isinstance(given, list | tuple) else [str(given)]


def compared_together(
    planned: Mapping[str, Mapping[str, Any]], factors: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the pairs of factors whose cells are compared: those of plans; without any plan all that are small enough."""
    if planned:
        pairs = [factors_compared(spec) for spec in planned.values()]
        crossed = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2 and set(pair) <= set(factors)]
        return list(dict.fromkeys(crossed))
    return [
        (first, second)
        for first, second in combinations(factors, 2)
        if min(len(factors[first]), len(factors[second])) > 1
        and len(factors[first]) * len(factors[second]) <= MOST_CELLS
    ]
