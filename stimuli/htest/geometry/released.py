"""The released letter geometry: its 90 questions as they are, and what rendering says about their keys."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stimuli.corpora.source_text import json_lines
from stimuli.errors import UserError
from stimuli.htest.geometry.glyphs import Ink, alphabet, glyph
from stimuli.htest.geometry.likeness import FLAW, MARGIN, MATCH, flaw, read, same, similarities
from stimuli.htest.geometry.wording import ReleasedFamily, describe, released_family

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
    """What rendering says about one released key."""

    item: ReleasedGeometry  # the question
    # agree: the described shape looks like the key
    verdict: Verdict
    way: str  # how the symbols were placed in the drawing that is nearest to the key
    # the three symbols that this drawing looks like most, with similarities
    nearest: tuple[tuple[str, float], ...]
    key_match: float | None  # similarity to the key
    note: str = ""  # why it cannot be interpreted


@dataclass(frozen=True)
class GeometryFaults:
    """What is wrong with the released letter geometry."""

    readings: tuple[KeyReading, ...]  # one for each question, in the order of the file
    # lines of questions that are word for word the same and have different keys
    contradictions: tuple[tuple[int, int], ...]
    # lines whose options hold two symbols that look the same (O and 0), one of them the key
    two_right: tuple[int, ...]
    empty_symbol: tuple[int, ...]  # lines that name an empty symbol
    common_options: tuple[str, ...]  # the three options that stand in most items
    # items answered rightly by "the option that is none of these three" (the key where exactly one is left)
    leak: int
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
    if (
        not isinstance(options, list)
        or len(options) < 2
        or not all(isinstance(o, str) and o for o in options)
    ):
        raise UserError(f"{where}: options are {options!r}; they are two or more symbols")
    if not isinstance(right, list) or len(right) != 1 or right[0] not in range(len(options)):
        raise UserError(
            f"{where}: correct_options is {right!r}; it is one place among {len(options)} options"
        )
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
        leak=sum(rest == [item.answer] for rest, item in zip(left, items, strict=True)),
        non_ascii=tuple(item.line for item in items if not item.answer.isascii()),
    )


def read_key(item: ReleasedGeometry) -> KeyReading:
    """Say whether the drawing of a released question looks like its key."""
    described = describe(item.question)
    key = {"_": "−"}.get(item.answer, item.answer)
    if described.drawings is None or key not in alphabet():
        return KeyReading(item, "unread", "", (), None, described.reason or "the key is not in the alphabet")
    looked = {way: _look(ink, key) for way, ink in described.drawings.items()}
    way = max(looked, key=lambda one: (_RANK[looked[one][0]], looked[one][2]))
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
    return tuple(
        (one.line, other.line)
        for some in asked.values()
        for place, one in enumerate(some)
        for other in some[place + 1 :]
        if one.answer != other.answer
    )
