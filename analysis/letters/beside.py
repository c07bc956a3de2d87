"""People's cost of reading changed letters beside each model's cost, place by place: the pairs that the main figure shows.

Costs are of whole texts against the same texts intact. Of a model that reads from left to right, the surprisal of the words before
a change is the same in both, so that its difference is that of the changed words and of all words after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.letters.costs_of_letters import SEPARATOR, GroupCosts, natural

TIME, BITS, RIGHT = "time", "bits", "correct"
MOST_DISTANCES = 4
"""Of changes at one place; where there are more, they are told together."""


@dataclass(frozen=True)
class Cost:
    """One cost with the ends of its interval (nan where there is none) and the items behind it."""

    value: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class Beside:
    """What one kind of change at one place costs people and a model."""

    kind: str  # as `analysis.letters.letter_changes` names them
    place: str
    people: Mapping[str, Cost]
    model: Mapping[str, Cost]
    distance: str = ""  # places between the two letters, or empty: all distances together


@dataclass(frozen=True)
class Pair:
    """People and one model."""

    people: str  # reader groups, and the people's reader kind
    people_kind: str
    model: str
    rows: tuple[Beside, ...]

    @property
    def together(self) -> tuple[Beside, ...]:
        """Rows of places, all distances together."""
        return tuple(row for row in self.rows if not row.distance)

    @property
    def apart(self) -> tuple[Beside, ...]:
        """Rows of single distances, and of places that have no distances of their own."""
        split = {(row.kind, row.place) for row in self.rows if row.distance}
        return tuple(row for row in self.rows if row.distance or (row.kind, row.place) not in split)


def beside(
    times: Sequence[GroupCosts],
    of_models: Mapping[str, Sequence[GroupCosts]],
    right: Sequence[GroupCosts],
    kinds: Sequence[str],
    places: Sequence[str],
) -> list[Pair]:
    """Put people's costs beside those of each model."""
    timed = sorted(times, key=lambda one: one.kind != "human")
    bits = of_models.get(BITS, ())
    if not timed or not bits:
        return []
    who = timed[0]
    models = {one.group: one.kind for one in (*bits, *right) if one.kind == "model"}
    people = {TIME: _of(who.group, times), RIGHT: _of(who.group, right)}
    keys = [key for kind in kinds for place in places for key in _keys(people[TIME], kind, place)]
    found = []
    for model in models:
        own = {name: _of(model, costs) for name, costs in (*of_models.items(), (RIGHT, right))}
        rows = tuple(
            Beside(kind, place, _costs(people, level), _costs(own, level), distance)
            for kind, place, distance, level in keys
        )
        if any(row.model for row in rows):
            found.append(Pair(who.group, who.kind, model, rows))
    return found


def _of(group: str, costs: Sequence[GroupCosts]) -> list[GroupCosts]:
    return [one for one in costs if one.group == group]


def _keys(times: Sequence[GroupCosts], kind: str, place: str) -> list[tuple[str, str, str, str]]:
    """Return kind, place, distance and level of a place that people met: all distances together, then each of several."""
    levels = [level for one in times for level in one.profile.levels]
    whole = f"{kind}{SEPARATOR}{place}"
    if whole not in levels:
        return []
    split = sorted((one for one in levels if one.startswith(whole + SEPARATOR)), key=natural)
    if place == "outer" or not 1 < len(split) <= MOST_DISTANCES:
        split = []
    return [
        (kind, place, "", whole),
        *((kind, place, level.split(SEPARATOR)[2], level) for level in split),
    ]


def _costs(given: Mapping[str, Sequence[GroupCosts]], level: str) -> dict[str, Cost]:
    costs = {}
    for measure, several in given.items():
        for one in several:
            if level in one.profile.levels:
                place = one.profile.levels.index(level)
                ends = one.profile.interval(place)
                value = float(one.profile.estimate[place])
                costs[measure] = Cost(value, ends.low, ends.high, one.items_of[level])
    return costs
