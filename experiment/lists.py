"""Counterbalanced lists: the items of a session, their conditions and order, with balanced orders of sets and blocks."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any, TypeVar

from experiment.orders import OrderedTrial, OrderRules, Undecided, find_order, why_impossible
from experiment.study import Study
from experiment.trials import choice_settings
from stimuli.errors import UserError, together, unknown_name
from stimuli.item import Item
from stimuli.seeds import generator

ORDER_NAMES = ("condition", "answer", "item", "set")
"""Names that constraints of an order can compare, in addition to factors and columns of the materials."""
ITEM_COLUMNS = "columns"
"""Key of an item with its cells in columns by which blocks are ordered, and steps restricted or coloured."""
KEY_OF_NAMED = "_answer"
"""End of the name of the column with the correct answers to a step with a name."""
TESTED = "tested"
"""Condition of the test trials of a study without conditions, among constraints of an order."""
PRACTICE = "practice-"
"""Prefix of the names of practice sets, before the number of their screen."""


def blocks_of(study: Study) -> list[int]:
    """Return the indices of the blocks among the procedure's screens."""
    return [place for place, screen in enumerate(study.get("procedure")) if "block" in screen]


def steps_of_blocks(study: Study) -> Iterator[tuple[tuple[str | int, ...], str, Mapping[str, Any]]]:
    """Yield the place in the study, type and settings of every step of every block."""
    for place in blocks_of(study):
        path = ("procedure", place, "block", "trial")
        for number, step in enumerate(study.get(*path)):
            ((kind, settings),) = step.items()
            yield (*path, number, kind), kind, settings


def blocks_showing(study: Study, set_name: str) -> list[int]:
    """Return the blocks, from 0, that can show items of a set: those that name it, or else those that name none.

    A set of practice items belongs to the block that its screen prepares for: the next one, or the last.
    """
    screens = study.get("procedure")
    blocks = [screen["block"] for screen in screens if "block" in screen]
    if set_name.startswith(PRACTICE):
        places = [place for place, screen in enumerate(screens) if "practice" in screen]
        number = int(set_name.removeprefix(PRACTICE)) - 1
        if number < len(places):
            before = sum("block" in screen for screen in screens[: places[number]])
            return [min(before, len(blocks) - 1)]
    naming = [number for number, block in enumerate(blocks) if set_name in block.get("sets", ())]
    return naming or [number for number, block in enumerate(blocks) if "sets" not in block]


def count_label_maps(study: Study) -> int:
    """Return the number of label maps: 1 if no block's labels are arbitrary names, 2 for two labels, 6 for three.

    Labels rotate as in :func:`balanced_order`; blocks with different numbers of labels rotate in parallel until all are
    balanced.
    """
    blocks = [study.get("procedure", place, "block") for place in blocks_of(study)]
    choosing = [choice_settings(step) for block in blocks for step in block["trial"]]
    return math.lcm(
        *(balanced_rows(len(step["keys"])) for step in choosing if step.get("labels") == "balanced")
    )


def labels_of_classes(labels: Sequence[str], label_map: int) -> dict[str, str]:
    """Return class → label shown in a label map; 0 is labels as written.

    Over all maps of a study each label is assigned to each class equally often: two labels are swapped, three are in all six
    orders, more in the rows of a balanced Latin square.
    """
    shown = dict(zip(balanced_order(labels, 0), balanced_order(labels, label_map), strict=True))
    return {name: shown[name] for name in labels}


def conditions(items: Sequence[Item]) -> int:
    """Return the number of conditions of each test item (1 if nothing varies within items)."""
    counts = Counter(item.item_id for item in items if item.role == "test")
    if not counts:
        raise UserError("there are no test items", mend="Check the materials and run `wrods build` again.")
    most = max(counts.values())
    short = [item_id for item_id, n in counts.items() if n < most]
    if short:
        raise UserError(
            f"{len(short)} of {len(counts)} items (first: {short[0]!r}) lack a condition that others have",
            mend="A Latin square needs every item in every condition: complete the materials and run `wrods build` again, or "
            "write `lists: one` under `design`.",
        )
    return most


def list_ids(
    study: Study, items: Sequence[Item], *, label_maps: str = "balanced", of_models: bool = False
) -> list[int]:
    """Return the study's list numbers, from 1.

    With ``label_maps`` ``fixed`` only those with labels as written; ``of_models``: without those that only differ in the group
    of people who see them.
    """
    rows, maps = _rows(study, items), count_label_maps(study)
    n_maps = 1 if label_maps == "fixed" else maps
    return [
        (level * maps + label_map) * rows + row + 1
        for level, cell in enumerate(study.between_cells)
        if not (of_models and _is_repeated(study, cell["condition"]))
        for label_map in range(n_maps)
        for row in range(rows)
    ]


def _is_repeated(study: Study, held: Mapping[str, str]) -> bool:
    """Return whether an earlier combination of levels between sessions differs in the group of people alone."""
    return any(held[factor] != next(iter(study.between[factor])) for factor in study.of_people)


def label_map_of(study: Study, items: Sequence[Item], list_id: int) -> int:
    """Return the number of a list's label map, 0 for labels as written (:func:`labels_of_classes`)."""
    return (list_id - 1) // _rows(study, items) % count_label_maps(study)


def session_levels(study: Study, items: Sequence[Item], list_id: int) -> dict[str, Any]:
    """Return the levels between sessions of a list: its condition and their settings."""
    return study.between_cells[(list_id - 1) // (_rows(study, items) * count_label_maps(study))]


def _rows(study: Study, items: Sequence[Item]) -> int:
    """Return the number of lists of a session's levels and labels: the conditions, or a multiple of them with other orders."""
    given = study.get("design", "lists", default="latin_square")
    if given == "one":
        return 1
    n_conditions = conditions(items)
    if given == "latin_square":
        return n_conditions
    if given % n_conditions:
        raise UserError(
            f"{study.place('design', 'lists')} is {given}, and items have {n_conditions} conditions within a session's levels; "
            "a Latin square has as many lists as conditions",
            mend=f"Write a multiple of {n_conditions}, or latin_square for {n_conditions}.",
        )
    return int(given)


def items_of_list(study: Study, items: Sequence[Item], list_id: int) -> list[Item]:
    """Return a list's test items in the order of the items file, then its fillers: those of its levels between sessions."""
    held = session_levels(study, items, list_id)["condition"]
    tested = [item for item in items if item.role == "test" and is_shown_at(item, held)]
    fillers = [item for item in items if item.role == "filler" and is_shown_at(item, held)]
    if study.get("design", "lists") == "one":
        return [*tested, *fillers]
    n_conditions = conditions(items)
    row = (list_id - 1) % n_conditions
    families = [
        list(versions) for _, versions in groupby(tested, key=lambda item: (item.set_name, item.item_id))
    ]
    by_answer = study.controls is not None and study.own is not None and study.own[1].by_answer
    groups = [
        (family[0].set_name, *_same_in_all(family), *([str(family[0].answer)] if by_answer else ()))
        for family in families
    ]
    # each group's count begins at the end of the previous one, so that remainders rotate
    place, begin = {}, 0
    for group, size in Counter(groups).items():
        place[group] = begin if study.controls is not None else 0
        begin += size
    chosen = []
    for family, group in zip(families, groups, strict=True):
        chosen.append(family[(place[group] + row) % n_conditions])
        place[group] += 1
    return [*chosen, *fillers]


def is_shown_at(item: Item, held: Mapping[str, str]) -> bool:
    """Return whether sessions of these levels show an item: one made for a level is shown at no other."""
    return all(item.condition.get(factor, level) == level for factor, level in held.items())


def _same_in_all(family: Sequence[Item]) -> list[str]:
    """Return the levels that an item has in all of its conditions, such as the frequency of its words."""
    first = family[0].condition
    return [
        level for factor, level in first.items() if all(item.condition[factor] == level for item in family)
    ]


def block_items(study: Study, chosen: Sequence[Item], number: int, list_id: int) -> list[Item]:
    """Return the items of a list that a block shows.

    A block that names ``sets`` has those; the others share the rest evenly, separately for each condition of each set.
    ``number``: the block, from 0.
    """
    blocks = [study.get("procedure", place, "block") for place in blocks_of(study)]
    named = [block.get("sets") for block in blocks]
    if named[number] is not None:
        return [item for item in chosen if item.set_name in named[number]]
    taken = {name for sets in named for name in sets or ()}
    sharing = [place for place, sets in enumerate(named) if sets is None]
    rest = [item for item in chosen if item.set_name not in taken]
    if len(sharing) == 1:
        return rest
    groups: dict[tuple[str, ...], list[Item]] = {}
    for item in rest:
        groups.setdefault((item.role, item.set_name, *item.condition.values()), []).append(item)
    dealt: set[int] = set()
    offset = 0
    for group, members in groups.items():
        order = list(members)
        generator(study.seed, "blocks", list_id, *group).shuffle(order)
        dealt |= {
            id(item)
            for place, item in enumerate(order)
            if (place + offset) % len(sharing) == sharing.index(number)
        }
        offset += len(order)
    return [item for item in rest if id(item) in dealt]


@dataclass(frozen=True)
class SessionPlace:
    """The place of a session in the design."""

    list_id: int  # from 1: row of the Latin square, label map and levels between sessions
    session_key: str | None = None  # seed of the order; models have none and share the list's order
    order_row: int = 0  # row of the balanced order of sets or blocked conditions: the list's earlier sessions


def ordered(
    study: Study,
    chosen: Sequence[Item],
    settings: Mapping[str, Any],
    place: SessionPlace,
    place_among_lists: float = 0.0,
) -> list[Item]:
    """Return a block's items in a session's order: mixed, by set or by condition in a balanced order, or as listed.

    Without a session key (models of a list) the order belongs to the list. ``settings``: the block's: ``order`` (mixed, by_set,
    as_listed, or constraints) and ``conditions`` (mixed, blocked); ``place_among_lists``: the list's relative position among
    all, from 0 to 1; lists begin at different rows, so that few sessions in each still use them evenly.
    """
    order = settings.get("order", "mixed")
    if order == "as_listed":
        return list(chosen)
    draw = generator(study.seed, "order", place.list_id, place.session_key)
    mixed = list(chosen)
    draw.shuffle(mixed)
    name_of: Callable[[Item], str]
    if order == "by_set":
        name_of = attrgetter("set_name")
    elif settings.get("conditions") == "blocked":
        name_of = _condition_of
    else:
        return mixed if order == "mixed" else _constrained(study, mixed, order, place)
    # all lists share this order of names
    names = sorted({name_of(item) for item in chosen})
    row = place.order_row + int(place_among_lists * balanced_rows(len(names)))
    balanced = balanced_order(names, row)
    together = sorted(mixed, key=lambda item: balanced.index(name_of(item)))
    if order in ("mixed", "by_set"):
        return together
    runs = (list(run) for _, run in groupby(together, key=name_of))
    return [item for run in runs for item in _constrained(study, run, order, place)]


def _constrained(
    study: Study, items: Sequence[Item], given: Mapping[str, Any], place: SessionPlace
) -> list[Item]:
    """Return items in an order under constraints: the session's own; if short searches do not find it, one of the list.

    The last search is the one with which `possible_orders` tested the list, so it finds an order.
    """
    rules = OrderRules.of(given)
    trials = [as_ordered_trial(item, rules) for item in items]
    for session_key in dict.fromkeys((place.session_key, None)):
        draw = generator(study.seed, "constrained order", place.list_id, session_key)
        with contextlib.suppress(Undecided):
            found = find_order(trials, rules, draw, is_exhaustive=False)
            if found is not None:
                return [items[index] for index in found]
    with contextlib.suppress(Undecided):
        found = find_order(trials, rules, Random(0))
        if found is not None:
            return [items[index] for index in found]
    raise UserError(
        f"no order of the trials of list {place.list_id} keeps the constraints of the block's `order`",
        mend=f"Run `wrods check {study.folder}`, which says which constraints cannot be kept.",
    )


def as_ordered_trial(item: Item, rules: OrderRules) -> OrderedTrial:
    """Return what rules of an order see of an item."""
    condition = _condition_of(item) or None
    known = {"condition": condition, "answer": item.answer, "item": item.item_id, "set": item.set_name}
    columns = {**item.key.get(ITEM_COLUMNS, {}), **item.condition, **known}
    return OrderedTrial(
        {name: columns.get(name) for name in rules.names},
        None if item.role == "filler" else condition or TESTED,
    )


def possible_orders(study: Study, items: Sequence[Item]) -> list[str]:
    """Return a message for each block whose order has constraints; raise an error if a list cannot keep them.

    Every list is tested, and with blocked conditions each run of a condition.
    """
    remarks = []
    faults: list[UserError] = []
    for number, place in enumerate(blocks_of(study)):
        settings = study.get("procedure", place, "block")
        given = settings.get("order", "mixed")
        if not isinstance(given, Mapping):
            continue
        where, rules = ("procedure", place, "block", "order"), OrderRules.of(given)
        _require_order_names(study, items, rules, where)
        is_blocked = settings.get("conditions") == "blocked"
        tested: dict[frozenset[Any], int] = {}
        lists = list_ids(study, items)
        for list_id in lists:
            shown = block_items(study, items_of_list(study, items, list_id), number, list_id)
            trials = [as_ordered_trial(item, rules) for item in shown]
            runs: dict[str | None, list[OrderedTrial]] = {}
            for trial in trials:
                runs.setdefault(trial.condition if is_blocked else None, []).append(trial)
            for run in runs.values():
                key = frozenset(Counter((*trial.values.items(), trial.condition) for trial in run).items())
                is_new = tested.setdefault(key, list_id) == list_id
                if is_new and (why := why_impossible(run, rules)) is not None:
                    name, reason = why
                    told = f"{study.place(*where, *name.split('.'))}: list {list_id}: {reason.message}"
                    faults.append(UserError(told, mend=reason.mend))
            if faults:
                break
        remarks.append(f"note: {study.place(*where)}: all {len(lists)} lists have an order that keeps it")
    if faults:
        raise together(faults)
    return remarks


def _require_order_names(
    study: Study, items: Sequence[Item], rules: OrderRules, where: tuple[str | int, ...]
) -> None:
    """Raise an error for a name that constraints compare and no item has."""
    known = [*study.factors_of_items, *ORDER_NAMES]
    columns = {name for item in items for name in item.key.get(ITEM_COLUMNS, {})}
    for rule, names in (
        ("at_most_in_a_row", rules.at_most_in_a_row),
        ("at_least_apart", rules.at_least_apart),
    ):
        for name in names:
            if name not in known and name not in columns:
                raise unknown_name(f"{study.place(*where, rule, name)}: {rule}", name, known)


def _condition_of(item: Item) -> str:
    return " × ".join(item.condition.values())


T = TypeVar("T")


def balanced_rows(n: int) -> int:
    """Return the number of rows in a balanced Latin square of n elements: n, or twice as many if n is odd."""
    return n if n % 2 == 0 or n < 2 else 2 * n


def balanced_order(things: Sequence[T], row: int) -> list[T]:
    """Return a row of the balanced Latin square of things (Williams, 1949).

    Over all rows each thing appears equally often at each position, and follows each other equally often.
    """
    n = len(things)
    if n < 2:
        return list(things)
    row %= balanced_rows(n)
    turned, row = divmod(row, n)
    steps = [place // 2 if place % 2 == 0 else n - 1 - place // 2 for place in range(n)]
    order = [things[(step + row) % n] for step in steps]
    return order[::-1] if turned else order
