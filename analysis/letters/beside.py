"""People's cost of reading changed letters beside each model's cost, place by place: the pairs that the main figure shows.

Costs are of whole texts against the same texts intact. Of a model that reads from left to right, the surprisal of the words before
a change is the same in both, so that its difference is that of the changed words and of all words after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.letters.costs_of_letters import SEPARATOR, GroupCosts

TIME, BITS, RIGHT = "time", "bits", "correct"


@dataclass(frozen=True)
class Cost:
    """One cost with the ends of its interval (nan where there is none) and the items behind it."""

    value: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class Beside:
    """What one kind of change at one place costs people and a model.

    Attributes
    ----------
    kind, place : str
        As :func:`analysis.letters.letter_changes` names them.
    people, model : dict of str to Cost
        By measure: ``time`` (log ratio against intact, people), ``bits`` (surprisal of the text, the model), ``correct`` (share of
        right answers lost, both); what was not measured is not there.
    """

    kind: str
    place: str
    people: Mapping[str, Cost]
    model: Mapping[str, Cost]


@dataclass(frozen=True)
class Pair:
    """People and one model.

    Attributes
    ----------
    people, people_kind, model : str
        Reader groups, and the people's reader kind.
    rows : tuple of Beside
        Kinds of change in turn, each place by place; those for which people have a time.
    """

    people: str
    people_kind: str
    model: str
    rows: tuple[Beside, ...]


def beside(
    times: Sequence[GroupCosts],
    bits: Sequence[GroupCosts],
    right: Sequence[GroupCosts],
    kinds: Sequence[str],
    places: Sequence[str],
) -> list[Pair]:
    """Put people's costs beside those of each model.

    Parameters
    ----------
    times, bits, right : sequence of GroupCosts
        By kind and zone, as :func:`~analysis.letters.costs_of_letters.group_costs` gives them: people's reading times, models'
        surprisal, and the accuracy of both.
    kinds, places : sequence of str
        Which, in the order of the rows.

    Returns
    -------
    list of Pair
        People (participants where there are some, else simulated readers) with each model that has surprisal or accuracy, those that
        tell surprisal first; empty where nobody has times or no model tells surprisal.
    """
    timed = sorted(times, key=lambda one: one.kind != "human")
    if not timed or not bits:
        return []
    who = timed[0]
    models = {one.group: one.kind for one in (*bits, *right) if one.kind == "model"}
    of_right = {one.group: one for one in right}
    of_bits = {one.group: one for one in bits}
    level_of = {(kind, place): f"{kind}{SEPARATOR}{place}" for kind in kinds for place in places}
    people = {TIME: who, RIGHT: of_right.get(who.group)}
    found = []
    for model in models:
        own = {BITS: of_bits.get(model), RIGHT: of_right.get(model)}
        rows = tuple(
            Beside(kind, place, _costs(people, level), _costs(own, level))
            for (kind, place), level in level_of.items()
            if level in who.profile.levels
        )
        if any(row.model for row in rows):
            found.append(Pair(who.group, who.kind, model, rows))
    return found


def _costs(given: Mapping[str, GroupCosts | None], level: str) -> dict[str, Cost]:
    costs = {}
    for measure, one in given.items():
        if one is not None and level in one.profile.levels:
            place = one.profile.levels.index(level)
            ends = one.profile.interval(place)
            value = float(one.profile.estimate[place])
            costs[measure] = Cost(value, ends.low, ends.high, one.items_of[level])
    return costs
