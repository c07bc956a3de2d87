"""Orders of a block's trials under constraints, solved exactly or refused with the reason; nothing is relaxed."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from analysis.plan import listing, worded
from stimuli.errors import UserError

Value = str | None
Kind = tuple[Value, ...]
"""A trial as the rules see it: its value of each name, and its condition if it is a test trial."""

RESTART_NODES, RESTARTS = 500, 40
MOST_NODES = 200_000
"""Steps after which an exhaustive search gives up: the order is then undecided, and refused."""


@dataclass(frozen=True)
class OrderRules:
    """The constraints of a block's order."""

    at_most_in_a_row: Mapping[str, int] = field(default_factory=dict)  # the longest run of one value, by name
    at_least_apart: Mapping[str, int] = field(default_factory=dict)  # other trials between two of one value
    fillers_between: int = 0  # fillers between two test trials, at least
    fillers_first: int = 0  # fillers before the first test trial, at least
    is_balanced: bool = False  # whether each condition follows each other one equally often, give or take one

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> OrderRules:
        """Read the rules as a study writes them."""
        return cls(
            given.get("at_most_in_a_row", {}),
            given.get("at_least_apart", {}),
            given.get("fillers_between", 0),
            given.get("fillers_first", 0),
            given.get("transitions") == "balanced",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names whose values the rules compare."""
        return tuple(dict.fromkeys([*self.at_most_in_a_row, *self.at_least_apart]))

    def in_words(self) -> list[str]:
        """Describe the rules in phrases."""
        phrases = []
        for name, most in self.at_most_in_a_row.items():
            phrases.append(f"at most {worded(most, 'trial')} in a row with the same {name}")
        for name, least in self.at_least_apart.items():
            phrases.append(f"at least {worded(least, 'trial')} between two with the same {name}")
        if self.fillers_between:
            phrases.append(f"at least {worded(self.fillers_between, 'filler')} between two test trials")
        if self.fillers_first:
            phrases.append(f"at least {worded(self.fillers_first, 'filler')} first")
        if self.is_balanced:
            phrases.append("each condition after each other one equally often (±1)")
        return phrases

    def parts(self) -> Iterator[tuple[str, OrderRules]]:
        """Yield each single rule, with its place in the study."""
        for name, most in self.at_most_in_a_row.items():
            yield f"at_most_in_a_row.{name}", OrderRules(at_most_in_a_row={name: most})
        for name, least in self.at_least_apart.items():
            yield f"at_least_apart.{name}", OrderRules(at_least_apart={name: least})
        for name in ("fillers_between", "fillers_first"):
            if number := getattr(self, name):
                yield name, OrderRules(**{name: number})
        if self.is_balanced:
            yield "transitions", OrderRules(is_balanced=True)


def joined(parts: Sequence[OrderRules]) -> OrderRules:
    """Return several rules as one."""
    return OrderRules(
        {name: most for part in parts for name, most in part.at_most_in_a_row.items()},
        {name: least for part in parts for name, least in part.at_least_apart.items()},
        max((part.fillers_between for part in parts), default=0),
        max((part.fillers_first for part in parts), default=0),
        any(part.is_balanced for part in parts),
    )


@dataclass(frozen=True)
class OrderedTrial:
    """A trial as the rules see it."""

    values: Mapping[str, Value]  # by name; None is free of the rules
    condition: Value  # None of a filler


class Undecided(Exception):
    """No order was found, and none was ruled out within the limit."""


def find_order(
    trials: Sequence[OrderedTrial], rules: OrderRules, draw: Random, *, is_exhaustive: bool = True
) -> list[int] | None:
    """Return the trials' places in an order that keeps the rules; None if there is none.

    An exhaustive search follows the short ones unless it is declined; :class:`Undecided` is raised if it ends at its limit. Which
    kinds of trials the order has, and whether there is one, depends on the draws and the numbers of trials alone.
    """
    places: dict[Kind, list[int]] = {}
    for place, trial in enumerate(trials):
        kind = (*(trial.values[name] for name in rules.names), trial.condition)
        places.setdefault(kind, []).append(place)
    counts = {kind: len(places[kind]) for kind in sorted(places, key=repr)}
    kinds = _kinds_in_order(counts, rules, draw, is_exhaustive=is_exhaustive)
    if kinds is None:
        return None
    for members in places.values():
        draw.shuffle(members)
    return [places[kind].pop() for kind in kinds]


def why_impossible(trials: Sequence[OrderedTrial], rules: OrderRules) -> tuple[str, UserError] | None:
    """Return the place of a rule that cannot be kept, with the reason and the remedy; None if an order keeps all rules.

    The reason names a smallest set of rules that no order keeps. An order that the search neither finds nor rules out counts
    as impossible.
    """
    try:
        if find_order(trials, rules, Random(0)) is not None:
            return None
    except Undecided:
        names = [name for name, _ in rules.parts()]
        return names[0], UserError(
            f"no order that keeps {listing(names)} was found or ruled out in {MOST_NODES:,} steps",
            mend="Relax one of them.",
        )
    names = _conflict(trials, rules)
    part = dict(rules.parts())[names[0]]
    if len(names) == 1:
        return names[0], _reason(names[0], trials, part)
    if set(names) == {"fillers_between", "fillers_first"}:
        return names[0], _lacking_fillers(trials, rules)
    return names[0], UserError(
        f"no order keeps {listing(names)} together, although each alone can be kept",
        mend="Relax one of them.",
    )


def _conflict(trials: Sequence[OrderedTrial], rules: OrderRules) -> list[str]:
    """Return the places of a smallest set of rules that no order of the trials keeps."""
    parts = dict(rules.parts())
    for size in range(1, len(parts)):
        for names in itertools.combinations(parts, size):
            with contextlib.suppress(Undecided):
                if find_order(trials, joined([parts[name] for name in names]), Random(0)) is None:
                    return list(names)
    return list(parts)


def _reason(name: str, trials: Sequence[OrderedTrial], rule: OrderRules) -> UserError:
    """Return why no order keeps a single rule, by the counts that rule it out."""
    total = len(trials)
    if rule.fillers_between or rule.fillers_first:
        return _lacking_fillers(trials, rule)
    if rule.is_balanced:
        return UserError(
            "transitions cannot be balanced with these numbers of trials",
            mend="Show each condition equally often.",
        )
    ((compared, limit),) = (*rule.at_most_in_a_row.items(), *rule.at_least_apart.items())
    counts = Counter(trial.values[compared] for trial in trials if trial.values[compared] is not None)
    (value, count), *_ = counts.most_common(1)
    others = total - count
    fitting = limit * (others + 1) if rule.at_most_in_a_row else 1 + others // limit
    return UserError(
        f"{name} is {limit}; {count} of {total} trials have the {compared} {value!r}, and at most {fitting} fit among {others} others",
        mend=f"Balance the {compared}, or relax this constraint.",
    )


def _lacking_fillers(trials: Sequence[OrderedTrial], rule: OrderRules) -> UserError:
    """Return how many fillers are needed between and before the test trials."""
    fillers = sum(trial.condition is None for trial in trials)
    tests = len(trials) - fillers
    needed = rule.fillers_between * max(tests - 1, 0) + rule.fillers_first
    given = {"fillers_between": rule.fillers_between, "fillers_first": rule.fillers_first}
    told = " and ".join(f"{name} is {number}" for name, number in given.items() if number)
    return UserError(
        f"{told}; {tests} test trials need {needed} fillers, and there are {fillers}",
        mend=f"Add {needed - fillers} filler{'s' * (needed - fillers > 1)}.",
    )


def _kinds_in_order(
    counts: Mapping[Kind, int], rules: OrderRules, draw: Random, *, is_exhaustive: bool
) -> list[Kind] | None:
    for _ in range(RESTARTS):
        search = _Search(counts, rules, draw, RESTART_NODES)
        try:
            return search.run()
        except Undecided:
            continue
    if not is_exhaustive:
        raise Undecided
    return _Search(counts, rules, draw, MOST_NODES).run()


class _Search:
    """A depth-first search from the first trial to the last, with counts that rule out dead ends."""

    def __init__(self, counts: Mapping[Kind, int], rules: OrderRules, draw: Random, most_nodes: int) -> None:
        self.left = dict(counts)
        self.rules, self.draw, self.most_nodes = rules, draw, most_nodes
        self.order: list[Kind] = []
        self.nodes = 0
        self.dead: set[object] = set()
        self.names = {name: index for index, name in enumerate(rules.names)}
        conditions = sorted({str(kind[-1]) for kind in counts if kind[-1] is not None})
        self.follows: Counter[tuple[str, str]] = Counter()
        self.pairs = list(itertools.permutations(conditions, 2)) if rules.is_balanced else []

    def run(self) -> list[Kind] | None:
        """Return an order; None if there is none."""
        return list(self.order) if self._completed() else None

    def _completed(self) -> bool:
        if not any(self.left.values()):
            return self._is_balanced(0)
        state = self._state()
        if state in self.dead:
            return False
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise Undecided
        for kind in self._candidates():
            pair = self._pair(kind)
            self.order.append(kind)
            self._place(kind, pair, 1)
            if self._is_possible() and self._completed():
                return True
            self._place(kind, pair, -1)
            self.order.pop()
        self.dead.add(state)
        return False

    def _candidates(self) -> list[Kind]:
        """Return the kinds that can come next, in a random order that favours what is left most and pairs that are rare."""
        fitting = [kind for kind, number in self.left.items() if number and self._fits(kind)]
        rank = {kind: self.draw.random() ** (1 / self.left[kind]) for kind in fitting}
        fitting.sort(key=lambda kind: rank[kind], reverse=True)
        if self.pairs:
            fitting.sort(key=lambda kind: self.follows[pair] if (pair := self._pair(kind)) else 0)
        return fitting

    def _fits(self, kind: Kind) -> bool:
        """Return whether a kind can come next, by the trials so far."""
        rules, order = self.rules, self.order
        if kind[-1] is not None:
            if len(order) < rules.fillers_first:
                return False
            since = self._fillers_since_test()
            if since is not None and since < rules.fillers_between:
                return False
        for name, most in rules.at_most_in_a_row.items():
            value = kind[self.names[name]]
            if value is not None and self._run(name) == (value, most):
                return False
        for name, least in rules.at_least_apart.items():
            value = kind[self.names[name]]
            if value is not None and any(
                earlier[self.names[name]] == value for earlier in order[max(0, len(order) - least) :]
            ):
                return False
        return True

    def _run(self, name: str) -> tuple[Value, int]:
        """Return the last value of a name and the length of its run at the end of the order, up to the limit."""
        index, most = self.names[name], self.rules.at_most_in_a_row[name]
        if not self.order:
            return None, 0
        value, length = self.order[-1][index], 0
        for kind in reversed(self.order[-most:]):
            if kind[index] != value:
                break
            length += 1
        return value, length

    def _fillers_since_test(self) -> int | None:
        """Return the number of fillers after the last test trial, up to the limit; None before the first."""
        for number, kind in enumerate(reversed(self.order)):
            if kind[-1] is not None:
                return number
        return None

    def _pair(self, kind: Kind) -> tuple[str, str] | None:
        """Return the transition that a kind would make, between two different conditions."""
        if not self.pairs or kind[-1] is None:
            return None
        last = self._last_condition()
        return None if last is None or last == kind[-1] else (last, kind[-1])

    def _last_condition(self) -> str | None:
        return next((kind[-1] for kind in reversed(self.order) if kind[-1] is not None), None)

    def _place(self, kind: Kind, pair: tuple[str, str] | None, times: int) -> None:
        self.left[kind] -= times
        if pair:
            self.follows[pair] += times

    def _is_possible(self) -> bool:
        """Return whether counts leave room for the trials that are left."""
        rules = self.rules
        total = sum(self.left.values())
        tests = sum(number for kind, number in self.left.items() if kind[-1] is not None)
        if tests:
            since = self._fillers_since_test()
            waiting = 0 if since is None else max(0, rules.fillers_between - since)
            needed = max(rules.fillers_between * (tests - 1) + waiting, rules.fillers_first - len(self.order))
            if total - tests < needed:
                return False
        for name, most in rules.at_most_in_a_row.items():
            value_at_end, length = self._run(name)
            for value, number in self._numbers(name).items():
                room = most - length if value == value_at_end else most
                if number > room + most * (total - number):
                    return False
        for name, least in rules.at_least_apart.items():
            for value, number in self._numbers(name).items():
                if (number - 1) * (least + 1) + 1 + self._waiting(name, value) > total:
                    return False
        return self._is_balanced(tests)

    def _numbers(self, name: str) -> dict[Value, int]:
        """Return the number of remaining trials with each value of a name."""
        numbers: dict[Value, int] = {}
        for kind, number in self.left.items():
            value = kind[self.names[name]]
            if number and value is not None:
                numbers[value] = numbers.get(value, 0) + number
        return numbers

    def _waiting(self, name: str, value: Value) -> int:
        """Return how many trials have to pass before a value can come again."""
        least = self.rules.at_least_apart[name]
        for number, kind in enumerate(reversed(self.order[-least:])):
            if kind[self.names[name]] == value:
                return least - number
        return 0

    def _is_balanced(self, tests: int) -> bool:
        """Return whether transitions between conditions can still be made equally often, give or take one."""
        if not self.pairs:
            return True
        most = max(self.follows[pair] for pair in self.pairs)
        return sum(max(0, most - 1 - self.follows[pair]) for pair in self.pairs) <= tests

    def _state(self) -> object:
        """Return what the rest of the order depends on."""
        runs = tuple(self._run(name) for name in self.rules.at_most_in_a_row)
        window = max(self.rules.at_least_apart.values(), default=0)
        recent = tuple(self.order[-window:]) if window else ()
        since = self._fillers_since_test()
        fillers = None if since is None else min(since, self.rules.fillers_between)
        early = min(len(self.order), self.rules.fillers_first)
        last = self._last_condition() if self.pairs else None
        follows = tuple(self.follows[pair] for pair in self.pairs)
        return tuple(self.left.values()), runs, recent, fillers, early, last, follows
