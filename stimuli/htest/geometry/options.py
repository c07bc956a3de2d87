"""Letter-geometry items: four questions share a list of options, and each option is the answer to one of them.

The list and its order therefore give no information about the answer: a rule that uses only the options is correct for
exactly one question in four. The distractors are still tempting: the answers of a group's questions look similar, are the
unchanged symbol, or are the result of the wrong operation.

Readers who know this and remember answers could exclude options when a list is repeated. If that matters (feedback,
exemplars and test items from one draw), only one question of each list is used, drawn with the seed.

For the condition without evidence, the symbols of a question are replaced: its wording and options stay the same, but the
question gives no information about the correct answer, so accuracy above chance must come from the options alone.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from stimuli.errors import UserError, unknown_name
from stimuli.htest.geometry.questions import (
    FAMILIES,
    Family,
    GeometryQuestion,
    kept_apart,
    likeness,
    operation,
    operations,
    question_name,
    questions,
    read,
    reads_as,
    same,
    symbol_kind,
)
from stimuli.htest.geometry.released import describe
from stimuli.htest.geometry.shapes import alphabet
from stimuli.seeds import generator, stable_seed

OPTIONS = 4
_ERROR = 0.6  # what a plausible error among the options weighs beside a similarity of 0 to 1
_CHANCE = 0.3  # how far the seed may move a choice, on the same scale
_TRIES = 12  # first questions that are tried for a group; the most tempting group is taken
_UNTOUCHED = 0.25  # share of items with the untouched symbol among the options in which it is right


@dataclass(frozen=True)
class GeometryItem:
    """A question with its four options."""

    question: GeometryQuestion  # the question; its answer is one of the options
    options: tuple[str, ...]  # four symbols, in the order in which they stand
    likeness: tuple[float, ...]  # how much the computed shape looks like each option, 0 to 1
    group: int  # number of the list of options within the family; four items share it
    # options that a plausible error gives: the untouched symbol, or the result of another operation of the family
    errors: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The right option."""
        return self.question.answer


def generate_geometry(
    n: int, *, seed: int, families: Sequence[str] = FAMILIES, asked_of_each: int = OPTIONS
) -> tuple[GeometryItem, ...]:
    """Make letter-geometry items, as nearly as can be the same number of each family."""
    for family in families:
        if family not in FAMILIES:
            raise unknown_name("family of geometry questions", family, FAMILIES)
    if not families or len(set(families)) != len(families):
        raise UserError(
            f"families are {list(families)}; each is named once, and there is at least one",
            mend=f"Choose among {', '.join(FAMILIES)}.",
        )
    if n % asked_of_each:
        raise UserError(
            f"n is {n!r}; each list of options has {asked_of_each} questions, "
            f"so the number of items is a multiple of {asked_of_each}",
            mend=f"Use {n + asked_of_each - n % asked_of_each}.",
        )
    lists = n // asked_of_each
    made: list[GeometryItem] = []
    for place, family in enumerate(families):
        wanted = lists // len(families) + (place < lists % len(families))
        groups = list(itertools.islice(_groups(cast(Family, family), seed), wanted))
        if wanted > len(groups):
            raise UserError(
                f"{wanted * asked_of_each} {family} items were requested, but there are {len(groups) * asked_of_each}",
                mend="Ask for fewer items, or name more families.",
            )
        made.extend(item for group in groups for item in group[:asked_of_each])
    return tuple(made)


def _groups(family: Family, seed: int) -> Iterator[tuple[GeometryItem, ...]]:
    """Yield groups of a family's questions until no four different answers are left."""
    draw = generator(seed, "letter geometry", family)
    left = {question.name: question for question in questions(family)}
    numbers = itertools.count(1)
    balance = [0, 0]
    places: list[int] = []
    while group := _group(left, draw, balance):
        for question in group:
            del left[question.name]
        draw.shuffle(group)
        if not places:
            places = draw.sample(range(OPTIONS), OPTIONS)
        options = [question.answer for question in group[1:]]
        draw.shuffle(options)
        # Where one question a list is asked, this one, its answer stands in every place equally often.
        options.insert(places.pop(), group[0].answer)
        number = next(numbers)
        items = tuple(_item(question, tuple(options), number) for question in group)
        balance[0] += sum(_returns(question) for question in group)
        balance[1] += sum(_untouched(item.question, item.options) for item in items)
        yield items


def _untouched(question: GeometryQuestion, options: Sequence[str]) -> bool:
    return any(same(symbol, option) for symbol in question.symbols for option in options)


def _returns(question: GeometryQuestion) -> bool:
    """Return whether the result is the untouched symbol: an H turned upside down."""
    return _untouched(question, (question.answer,))


def _group(
    left: Mapping[str, GeometryQuestion], draw: random.Random, balance: Sequence[int]
) -> list[GeometryQuestion]:
    """Put four questions together whose answers tempt each other's readers; [] where no four answers are left."""
    returning = balance[0] <= _UNTOUCHED * balance[1]
    by_answer: dict[str, list[GeometryQuestion]] = {}
    for question in left.values():
        if returning or not _returns(question):
            by_answer.setdefault(question.answer, []).append(question)
    if not by_answer:
        return []
    first = {
        answer: fitting
        for answer, candidates in by_answer.items()
        if (fitting := [question for question in candidates if _returns(question)])
    }
    first = first or by_answer
    # Answers with many questions are begun with more often, so that few questions stay over at the end.
    starts = draw.choices(
        list(first), weights=[len(candidates) ** 2 for candidates in first.values()], k=_TRIES
    )
    best: tuple[float, list[GeometryQuestion]] = (-1.0, [])
    for start in starts:
        group = _grown(draw.choice(first[start]), by_answer, draw)
        if len(group) == OPTIONS:
            worth = sum(
                _temptation(one, other.answer) for one in group for other in group if one is not other
            )
            best = max(best, (worth, group), key=lambda pair: pair[0])
    return best[1]


def _grown(
    first: GeometryQuestion, by_answer: Mapping[str, Sequence[GeometryQuestion]], draw: random.Random
) -> list[GeometryQuestion]:
    group = [first]
    while len(group) < OPTIONS:
        spare = any(_returns(member) for member in group)
        free = {
            answer: usable
            for answer, candidates in by_answer.items()
            if not any(kept_apart(answer, member.answer) for member in group)
            and (usable := [member for member in candidates if not (spare and _returns(member))])
        }
        if not free:
            return []
        worth = {
            answer: sum(_temptation(member, answer) for member in group) + _CHANCE * draw.random()
            for answer in free
        }
        answer = max(worth, key=worth.__getitem__)
        group.append(max(free[answer], key=lambda member: _fit(member, group, draw)))
    return group


def _fit(question: GeometryQuestion, group: Sequence[GeometryQuestion], draw: random.Random) -> float:
    return sum(_temptation(question, member.answer) for member in group) + _CHANCE * draw.random()


@functools.lru_cache(maxsize=65536)
def _temptation(question: GeometryQuestion, option: str) -> float:
    """Return how tempting a wrong option is: its similarity to the shape, more if a plausible error gives it."""
    return likeness(question).get(option, 0.0) + (_ERROR if option in plausible_errors(question) else 0.0)


@functools.cache
def plausible_errors(question: GeometryQuestion) -> frozenset[str]:
    """Return what a reader who errs may answer: the untouched symbol, or what another operation gives."""
    if len(question.operations) == 2:
        others = [(name,) for name in question.operations]
    else:
        step = operation(question.operations[0])
        others = [
            (other.name,)
            for other in operations().values()
            if (other.family, other.takes) == (step.family, step.takes) and other.name != step.name
        ]
    symbols = {reads_as(question.symbols, names) for names in others} | set(question.symbols)
    return frozenset(
        symbol for symbol in symbols if symbol is not None and not kept_apart(symbol, question.answer)
    )


def _item(question: GeometryQuestion, options: tuple[str, ...], group: int) -> GeometryItem:
    similar = likeness(question)
    return GeometryItem(
        question,
        options,
        tuple(similar.get(option, 0.0) for option in options),
        group,
        tuple(option for option in options if option in plausible_errors(question)),
    )


_QUOTED = re.compile(r'"([^"]+)"')
_SUM = re.compile(r"\((\S+) ([+-]) (\S*)\)")
"""How released questions say once more what is added or subtracted: (c + I)."""
_STROKES = ("_", "-", "–", "−", "|", "/")
_SYMBOLS_TRIED = 40
"""Drawn symbols that are tried in a released question, whose drawings take time."""


def other_symbols(
    question: GeometryQuestion, options: Sequence[str], seed: int, name: str, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """Return symbols for a computed question, drawn by the seed, whose result is none of the options and like none."""
    family = questions(question.family)

    def drawn(candidates: Iterator[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return sorted(
            set(candidates), key=lambda symbols: stable_seed(seed, "geometry substitutes", name, *symbols)
        )

    asked = drawn(
        other.symbols
        for other in family
        if other.operations == question.operations and _is_far((other.answer,), options)
    )
    others = drawn(other.symbols for other in family if len(other.symbols) == len(question.symbols))
    again: tuple[str, ...] | None = None
    for symbols in itertools.chain(asked, others):
        if set(symbols) & set(question.symbols) or not _is_far(symbols, options):
            continue
        result = reads_as(symbols, question.operations)
        if result is not None and not _is_far((result,), options):
            continue
        if question_name(symbols, question.operations) not in taken:
            return symbols
        again = again or symbols
    if again is not None:
        return again
    raise UserError(
        f"no other symbols fit the question {question.text()!r}",
        mend="Leave the level Sub out, or ask for items of other families.",
    )


def other_wording(
    question: str, options: Sequence[str], seed: int, name: str, taken: Collection[str] = ()
) -> str:
    """Return a released question with other symbols of the same kinds, of which no option can be the result."""
    symbols = list(dict.fromkeys(_QUOTED.findall(question)))
    if not symbols:
        return question
    tried = ""
    for number in range(_SYMBOLS_TRIED):
        tried = _reworded(question, _other_of_kind(symbols, options, (seed, name, number)))
        if tried in taken:
            continue
        drawings = describe(tried).drawings
        readings = [] if drawings is None else read(list(drawings.values()))
        if not any(
            reading is not None and reading.reads() and not _is_far((reading.symbol,), options)
            for reading in readings
        ):
            return tried
    return tried


def _reworded(question: str, others: Mapping[str, str]) -> str:
    quoted = _QUOTED.sub(lambda match: f'"{others[match[1]]}"', question)
    return _SUM.sub(
        lambda match: f"({others.get(match[1], match[1])} {match[2]} {others.get(match[3], match[3])})",
        quoted,
    )


def _kind(symbol: str) -> str:
    """Return what stands for what: a stroke for a stroke, a capital for a capital."""
    return "stroke" if symbol in _STROKES else symbol_kind(symbol)


def _other_of_kind(
    symbols: Sequence[str], options: Sequence[str], draw: tuple[int, str, int]
) -> dict[str, str]:
    """Return another symbol of its kind for each, no two the same, none of them an option or in the question."""
    others: dict[str, str] = {}
    for symbol in symbols:
        kind = _kind(symbol)
        free = [
            candidate
            for candidate in alphabet()
            if _kind(candidate) == kind
            and candidate not in others.values()
            and not any(kept_apart(candidate, known) for known in symbols)
        ]
        best = [candidate for candidate in free if _is_far((candidate,), options)] or free
        ordered = sorted(
            best, key=lambda candidate: stable_seed(draw[0], "geometry substitutes", *draw[1:], candidate)
        )
        others[symbol] = ordered[0] if ordered else symbol
    return others


def _is_far(symbols: Sequence[str], options: Sequence[str]) -> bool:
    return not any(kept_apart(symbol, option) for symbol in symbols for option in options)
