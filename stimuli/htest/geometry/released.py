"""Letter-geometry items: the 90 released questions as they are, and new ones, of which four share a list of options.

The released questions do not say where an added or subtracted symbol goes or how large it is. So a question stands
for a set of drawings, one for each way of placing it, and its key is right if any of them looks like it.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from stimuli.corpora.corpus import json_lines
from stimuli.errors import UserError, unknown_name
from stimuli.htest.geometry import shapes
from stimuli.htest.geometry.questions import (
    FAMILIES,
    FLAW,
    MARGIN,
    MATCH,
    Family,
    GeometryQuestion,
    flaw,
    kept_apart,
    likeness,
    operation,
    operations,
    question_name,
    questions,
    read,
    reads_as,
    same,
    similarities,
    symbol_kind,
)
from stimuli.htest.geometry.shapes import Ink, alphabet, crop, glyph, has_glyph, stem
from stimuli.seeds import generator, stable_seed

ReleasedFamily = Literal["rotation", "flip", "add_subtract", "composite"]
Drawings = dict[str, Ink]

_SYMBOL = r'"([^"]*)"'
_TURNED = r"rotate(?:d|) (?:it )?(90|180) degrees (counter|clock)"
_FLIPPED = r"flip(?:ped|) (?:\S+ )?along (?:an|the) imaginary (vertical|horizontal) line"
_DASHES = {"-": "−", "–": "−", "_": "−"}  # what the data call by three signs is one stroke

OPTIONS = 4
_ERROR = 0.6  # what a plausible error among the options weighs beside a similarity of 0 to 1
_CHANCE = 0.3  # how far the seed may move a choice, on the same scale
_TRIES = 12  # first questions that are tried for a group; the most tempting group is taken
_UNTOUCHED = 0.25  # share of items with the untouched symbol among the options in which it is right


@dataclass(frozen=True)
class Described:
    """Shapes that a released question describes."""

    family: ReleasedFamily
    drawings: (
        Mapping[str, Ink] | None
    )  # shapes by how symbols are placed; None if the question cannot be read
    reason: str = ""  # why it cannot


def released_family(question: str) -> ReleasedFamily:
    """Sort a released question by its wording."""
    if re.search(r'^Given the (letter|number|symbol) "[^"]*", what .* when rotated', question):
        return "rotation"
    if re.search(r'^Given the (letter|number|symbol) "[^"]*", what .* when flipped', question):
        return "flip"
    if re.search(r'^Given the letters "[^"]*" and "[^"]*", what .* when (added|subtracted)', question):
        return "add_subtract"
    return "composite"


def describe(question: str, style: str = "sans") -> Described:
    """Draw what a released question describes, in every way in which its symbols can be placed."""
    family = released_family(question)
    symbols = [_DASHES.get(symbol, symbol) for symbol in re.findall(_SYMBOL, question)]
    if not symbols:
        return Described(family, None, "it names no symbol")
    if missing := [symbol for symbol in symbols if not symbol or not has_glyph(symbol, style)]:
        return Described(family, None, f"a symbol is {'not in the font' if missing[0] else 'empty'}")
    inks = {symbol: glyph(symbol, style) for symbol in symbols}
    for pattern, draw in _FORMS:
        if match := re.search(pattern, question):
            drawings = draw(match, [inks[symbol] for symbol in symbols], stem(style))
            return Described(family, {way: ink for way, ink in drawings.items() if ink.size})
    return Described(family, None, "its wording is not known")


def _turned(ink: Ink, degrees: str, way: str) -> Ink:
    quarters = int(degrees) // 90
    return shapes.rotate(ink, quarters if way == "clock" else -quarters)


def _placed(ink: Ink, other: Ink) -> Iterable[tuple[str, Ink, Ink]]:
    """Yield two arrays of one size: the second symbol at nine places of the first's box, in four sizes."""
    height, width = ink.shape
    sizes = {
        "as typed": other.shape,
        "as wide": (max(1, round(other.shape[0] * width / other.shape[1])), width),
        "as tall": (height, max(1, round(other.shape[1] * height / other.shape[0]))),
        "half as tall": (height // 2, max(1, round(other.shape[1] * height / other.shape[0] / 2))),
        "two thirds as wide": (
            max(1, round(other.shape[0] * width / other.shape[1])),
            max(1, 2 * width // 3),
        ),
    }
    for (size, (rows, columns)), y, x in itertools.product(sizes.items(), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0)):
        top, left = round(y * (height - rows)), round(x * (width - columns))
        up, aside = max(0, -top), max(0, -left)
        canvas = (max(height, rows + max(top, 0)) + up, max(width, columns + max(left, 0)) + aside)
        first, second = np.zeros(canvas, dtype=np.bool_), np.zeros(canvas, dtype=np.bool_)
        first[up : up + height, aside : aside + width] = ink
        top, left = top + up, left + aside
        second[top : top + rows, left : left + columns] = shapes.scaled(other, rows, columns)
        where = f"{('top', 'middle', 'bottom')[int(2 * y)]} {('left', 'centre', 'right')[int(2 * x)]}"
        yield f"{size}, {where}", first, second


def _added(ink: Ink, other: Ink) -> Drawings:
    ways = {way: crop(first | second) for way, first, second in _placed(ink, other)}
    for name, (a, b) in {"": (ink, other), ", changed places": (other, ink)}.items():
        ways[f"side by side{name}"] = shapes.beside(a, b)
        ways[f"one above the other{name}"] = shapes.above(a, b)
        ways[f"side by side, half as tall{name}"] = _side_by_side_low(a, b)
        ways[f"laid over each other{name}"] = shapes.overlay(a, b)
    return ways


def _side_by_side_low(one: Ink, other: Ink) -> Ink:
    """Return two symbols side by side on one base line, as ``c`` and ``I`` make ``d``."""
    height = max(one.shape[0], other.shape[0])
    raised = [np.pad(ink, ((height - ink.shape[0], 0), (0, 0))) for ink in (one, other)]
    return crop(np.hstack(raised))


def _subtracted(ink: Ink, other: Ink, thickness: float) -> Drawings:
    from scipy.ndimage import distance_transform_edt

    ways: Drawings = {}
    for way, first, second in _placed(ink, other):
        if second.all():
            continue
        wide = distance_transform_edt(~second) <= thickness / 2  # an eraser is wider than the stroke it takes
        ways[way] = crop(shapes.swept(first & ~wide))
    return ways


Form = Callable[[re.Match[str], list[Ink], float], Drawings]


def _side_by_side_with_other_turn(match: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    one, other = _turned(inks[0], match[1], match[2]), _turned(inks[0], match[3], match[4])
    return {
        "side by side": np.hstack([one, other]),
        "side by side, swapped": np.hstack([other, one]),
        "one above the other": np.vstack([one, other]),
    }


def _doubled(match: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    turned = _turned(inks[0], match[1], match[2])
    overlap = round(turned.shape[1] / 5)
    joined = np.hstack([turned[:, : turned.shape[1] - overlap], turned])
    return {"touching": np.hstack([turned, turned]), "sharing a stroke": joined}


def _subtract_turn_add(match: re.Match[str], inks: list[Ink], thickness: float) -> Drawings:
    return {
        f"{first}; {second}": ink
        for first, shape in _subtracted(inks[0], inks[1], thickness).items()
        if shape.size
        for second, ink in _added(_turned(shape, match[1], match[2]), inks[-1]).items()
    }


_FORMS: tuple[tuple[str, Form], ...] = (
    (rf"when {_TURNED}", lambda found, inks, _: {"as said": _turned(inks[0], found[1], found[2])}),
    (rf"when {_FLIPPED}", lambda found, inks, _: {"as said": shapes.mirror(inks[0], found[1])}),
    (r"when added", lambda _, inks, __: _added(inks[0], inks[1])),
    (r"when subtracted", lambda _, inks, thickness: _subtracted(inks[0], inks[1], thickness)),
    (
        rf"{_FLIPPED}.*then subtract",
        lambda found, inks, thickness: _subtracted(inks[0], shapes.mirror(inks[1], found[1]), thickness),
    ),
    (rf"subtract .* from .*, Then {_TURNED}.*add ", _subtract_turn_add),
    (r'rotate "[^"]*" (90|180) degrees (counter|clock).*multiply it by 2 side-by-side', _doubled),
    (rf"{_TURNED}.*side-by-side to the version that is {_TURNED}", _side_by_side_with_other_turn),
    (
        rf"{_TURNED}.*add it below the original",
        lambda found, inks, _: {"as said": np.vstack([inks[0], _turned(inks[0], found[1], found[2])])},
    ),
    (
        rf"{_TURNED}.*subtract .* from it",
        lambda found, inks, thickness: _subtracted(_turned(inks[0], found[1], found[2]), inks[1], thickness),
    ),
)


FILE = "letter_geometry_test.jsonl"
Verdict = Literal["agree", "weak", "dispute", "unread"]


@dataclass(frozen=True)
class ReleasedGeometry:
    """One released question with its options, its key and its line in the file, from 1."""

    question: str
    options: tuple[str, ...]
    answer: str
    family: ReleasedFamily
    line: int


@dataclass(frozen=True)
class KeyReading:
    """Comparison of one released key with the rendering."""

    item: ReleasedGeometry
    verdict: Verdict  # agree: the described shape looks like the key
    way: str  # how the symbols were placed in the drawing that is nearest to the key
    nearest: tuple[tuple[str, float], ...]  # the three symbols that it looks like most, with similarities
    key_match: float | None  # similarity to the key
    note: str = ""  # why it cannot be interpreted


@dataclass(frozen=True)
class GeometryFaults:
    """Errors in the released letter-geometry items."""

    readings: tuple[KeyReading, ...]  # one for each question, in the order of the file
    contradictions: tuple[tuple[int, int], ...]  # lines of the same question with different keys
    two_right: tuple[int, ...]  # lines where another option looks like the key (O and 0)
    empty_symbol: tuple[int, ...]  # lines that name an empty symbol
    common_options: tuple[str, ...]  # the three options that stand in most items
    leak: int  # items whose key is the one option that is none of these three
    non_ascii: tuple[int, ...]  # lines whose key is not ASCII: more than one token for many models

    def by_verdict(self) -> Mapping[str, int]:
        """Return how many questions got each verdict."""
        return Counter(reading.verdict for reading in self.readings)


def load_released_geometry(folder: Path) -> tuple[ReleasedGeometry, ...]:
    """Load the released questions."""
    places = (folder / FILE, folder / "letter_geometry" / FILE)
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise UserError(f"no {FILE} in {folder}", mend="Give the folder of the released H-TEST data.")
    return tuple(_item(record, f"{path}, line {number}", number) for number, record in json_lines(path))


def _item(record: Mapping[str, Any], where: str, number: int) -> ReleasedGeometry:
    question, options, right = (record.get(key) for key in ("centerpiece", "options", "correct_options"))
    if not isinstance(question, str) or not question:
        raise UserError(f"{where}: 'centerpiece' is missing or no text")
    if not isinstance(options, list) or len(options) < 2 or {*map(type, options)} != {str} or "" in options:
        raise UserError(f"{where}: options are {options!r}; they are two or more symbols")
    if not isinstance(right, list) or len(right) != 1 or right[0] not in range(len(options)):
        among = f"one place among {len(options)} options"
        raise UserError(f"{where}: correct_options is {right!r}; it is {among}")
    return ReleasedGeometry(question, tuple(options), options[right[0]], released_family(question), number)


def geometry_faults(folder: Path) -> GeometryFaults:
    """Compare every released key with the rendering, and look for what makes options give the answer away."""
    items = load_released_geometry(folder)
    counts = Counter(option for item in items for option in item.options)
    common = tuple(sorted(counts, key=lambda option: (-counts[option], option))[:3])
    left = [[option for option in item.options if option not in common] for item in items]
    return GeometryFaults(
        readings=tuple(read_key(item) for item in items),
        contradictions=_contradictions(items),
        two_right=tuple(
            item.line
            for item in items
            if any(option != item.answer and same(option, item.answer) for option in item.options)
        ),
        empty_symbol=tuple(item.line for item in items if '""' in item.question),
        common_options=common,
        leak=sum(remaining == [item.answer] for remaining, item in zip(left, items, strict=True)),
        non_ascii=tuple(item.line for item in items if not item.answer.isascii()),
    )


def read_key(item: ReleasedGeometry) -> KeyReading:
    """State whether the drawing of a released question looks like its key."""
    described = describe(item.question)
    key = {"_": "−"}.get(item.answer, item.answer)
    if described.drawings is None or key not in alphabet():
        return KeyReading(item, "unread", "", (), None, described.reason or "the key is not in the alphabet")
    looked = {way: _look(ink, key) for way, ink in described.drawings.items()}
    way = max(looked, key=lambda placement: (_RANK[looked[placement][0]], looked[placement][2]))
    verdict, nearest, match = looked[way]
    return KeyReading(item, verdict, way, nearest, match)


_RANK: Mapping[Verdict, int] = {"agree": 2, "weak": 1, "dispute": 0, "unread": 0}


def _look(ink: Ink, key: str) -> tuple[Verdict, tuple[tuple[str, float], ...], float]:
    similar = similarities(ink)
    nearest = tuple((symbol, round(match, 3)) for symbol, match in list(similar.items())[:3])
    best = nearest[0][0]
    # A key counts by the member of its class that is most alike: W upside down is ʍ, which the data write M.
    match = max(value for symbol, value in similar.items() if same(symbol, key))
    twin = next(symbol for symbol, value in similar.items() if value == match and same(symbol, key))
    near = match >= similar[best] - (0 if same(best, key) else MARGIN)
    reading = read([ink])[0]
    if reading is not None and reading.reads() and not same(reading.symbol, key):
        verdict: Verdict = "dispute"
    elif near and match >= MATCH and flaw(ink, glyph(twin)) <= FLAW:
        verdict = "agree"
    elif near:
        verdict = "weak"
    else:
        verdict = "unread"
    return verdict, nearest, round(similar[key], 3)


def _contradictions(items: Sequence[ReleasedGeometry]) -> tuple[tuple[int, int], ...]:
    asked: dict[str, list[ReleasedGeometry]] = defaultdict(list)
    for item in items:
        asked[item.question].append(item)
    pairs = (pair for alike in asked.values() for pair in itertools.combinations(alike, 2))
    return tuple((one.line, other.line) for one, other in pairs if one.answer != other.answer)


@dataclass(frozen=True)
class GeometryItem:
    """A question with its four options."""

    question: GeometryQuestion  # its answer is one of the options
    options: tuple[str, ...]  # four symbols, in the order in which they stand
    likeness: tuple[float, ...]  # how much the computed shape looks like each option, 0 to 1
    group: int  # number of the list of options within the family; four items share it
    errors: tuple[str, ...]  # options that a plausible error gives

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
        items = tuple(_item_of_set(question, tuple(options), number) for question in group)
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
    returns = {answer: list(filter(_returns, candidates)) for answer, candidates in by_answer.items()}
    first = {answer: fitting for answer, fitting in returns.items() if fitting} or by_answer
    # Answers with many questions are begun with more often, so that few questions stay over at the end.
    weights = [len(candidates) ** 2 for candidates in first.values()]
    best: tuple[float, list[GeometryQuestion]] = (-1.0, [])
    for start in draw.choices(list(first), weights=weights, k=_TRIES):
        group = _grown(draw.choice(first[start]), by_answer, draw)
        if len(group) == OPTIONS:
            pairs = itertools.permutations(group, 2)
            worth = sum(_temptation(one, other.answer) for one, other in pairs)
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


def _item_of_set(question: GeometryQuestion, options: tuple[str, ...], group: int) -> GeometryItem:
    similar = tuple(likeness(question).get(option, 0.0) for option in options)
    errors = tuple(option for option in options if option in plausible_errors(question))
    return GeometryItem(question, options, similar, group, errors)


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
