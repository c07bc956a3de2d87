"""Published scrambles, copied bug for bug: names and known errors of the protocols are in ``protocols.json``.

Cao et al. (2023): one pass over the whole list of texts uses one random stream, so every text depends on those before it.
Words are split at non-word characters (``don’t`` is two), digits keep their positions, capitals move with their letters,
and a shuffled word can be unchanged (``see``), as in the released code.

TypoBench (2024) published no stimuli; this follows its released code. One stream, seeded once, is used for all texts. Three
units move: letters of a token (a run of letters, digits and underscores), words of a clause, and sentences of a text.
Inserted letters (INS) were drawn with a string hash that differs between processes. A stable hash of the same parts replaces
it: letters come from the same pool and depend only on word and position, but are not those of any released run.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stimuli.errors import UserError, unknown_name
from stimuli.scramble.types import (
    Operation,
    OperationSpec,
    Options,
    checked_percent,
    checked_rate,
    parse_operation,
    scramble_type,
)
from stimuli.seeds import stable_seed
from stimuli.words import scramble_data

_RATE = re.compile(r"(?P<name>.+?)(?:@(?P<share>[^@]+)|-(?P<percent>\d{1,3}(?:\.\d+)?))")
_STEPS = 10


@dataclass(frozen=True)
class ProtocolFault:
    """Behaviour of the released code that readers of the paper would not expect."""

    key: str  # short name, the same for every protocol that has the fault
    says: str  # what happens, in a sentence, with shares measured on the papers' data where there are any


@dataclass(frozen=True)
class Protocol:
    """A published protocol."""

    name: str  # the paper's name in upper case: KFL, REO-INT_2, WORD-REO-ADJ
    paper: str  # cao2023 or typobench2024
    title: str  # the paper
    code: str | None  # the released code's name for it, where that differs
    seed: int  # the seed of the published stream
    stream: str  # how the published code draws, in words
    in_tenths: bool  # whether it has a rate, in steps of 10 %
    kin: str  # a name of the same operation in the registry of scramble types, for describing what changed
    does: str  # what the code does, in the words of a Method section; empty if it is what ``kin`` does
    stand_in: bool  # whether draws that cannot be copied are replaced by others of the same making
    faults: tuple[ProtocolFault, ...]  # what a copy reproduces


@dataclass(frozen=True)
class PublishedOperation:
    """A published protocol at a rate; ``protocol`` is None for the intact condition."""

    protocol: Protocol | None
    rate: float = 1.0

    @property
    def in_words(self) -> str:
        """The operation in the words of a Method section: ``all letters shuffled in 50% of the words``."""
        if self.protocol is None:
            return "unchanged"
        rate = "" if self.rate == 1 else f" in {100 * self.rate:.3g}% of the words"
        return f"{self.protocol.does or parse_operation(self.protocol.kin).in_words}{rate}"

    @property
    def label(self) -> str:
        """Name for provenance: ``published RS@0.5``, with a note if some draws are stand-ins."""
        if self.protocol is None:
            return "none"
        rate = "" if self.rate == 1 else f"@{self.rate:g}"
        stand_in = ", stand-in for salted hash" if self.protocol.stand_in else ""
        return f"published {self.protocol.name}{rate}{stand_in}"

    @property
    def steps(self) -> int:
        """The rate in tenths."""
        return round(self.rate * _STEPS)

    @property
    def seed(self) -> int | None:
        """Seed of the published stream, None for the intact condition."""
        return None if self.protocol is None else self.protocol.seed


def _data() -> Mapping[str, Any]:
    return scramble_data("protocols")


@functools.cache
def protocols() -> Mapping[str, Protocol]:
    """Return every protocol with released code by the paper's name for it."""
    by_name: dict[str, Protocol] = {}
    for entry in _data()["protocols"]:
        paper = _data()["papers"][entry["paper"]]
        for k in entry.get("k", [None]):
            name = str(entry["name"]).format(k=k)
            by_name[name] = Protocol(
                name=name,
                paper=entry["paper"],
                title=paper["title"],
                code=str(entry["code"]).format(k=k) if "code" in entry else None,
                seed=paper["seed"],
                stream=paper["stream"],
                in_tenths=entry.get("rates") == "tenths",
                kin=entry.get("kin", name),
                does=entry.get("does", "").format(k=k),
                stand_in=entry.get("stand_in", False),
                faults=tuple(
                    ProtocolFault(key, _data()["faults"][key]) for key in (*paper["faults"], *entry["faults"])
                ),
            )
    return by_name


@functools.cache
def _by_any_name() -> Mapping[str, Protocol]:
    names = dict(protocols())
    for protocol in protocols().values():
        if protocol.code:
            names[protocol.code.upper()] = protocol
    return names


@functools.cache
def _by_operation() -> Mapping[tuple[str, Options], Protocol]:
    """Return the protocols by type and options of the corrected operation that goes by the same name."""
    by_operation: dict[tuple[str, Options], Protocol] = {}
    for protocol in protocols().values():
        if protocol.kin == protocol.name:
            operation = parse_operation(protocol.name)
            by_operation.setdefault((operation.type.name, operation.options), protocol)
    return by_operation


def published_operation(given: OperationSpec, *, rate: float | None = None) -> PublishedOperation:
    """Read a published operation."""
    named, inside = _named(given)
    name = named if isinstance(named, str) else named.name
    if rate is not None and inside is not None and checked_rate(rate) != inside:
        raise UserError(
            f"scramble {name!r} already says rate {inside:g}, but rate {rate:g} is given as well",
            mend="Say the rate once.",
        )
    given_rate = rate if rate is not None else inside
    if name in _data()["intact"]:
        return PublishedOperation(None)
    protocol = named if isinstance(named, Protocol) else _by_any_name().get(_without_task(name))
    if protocol is None:
        raise _not_published(name)
    chosen = PublishedOperation(protocol, 1.0 if given_rate is None else checked_rate(given_rate))
    _check_rate(chosen)
    return chosen


def _named(given: OperationSpec) -> tuple[Protocol | str, float | None]:
    """Return the protocol that is meant, or a name that has none, and the rate inside ``given``."""
    if isinstance(given, str):
        name = _upper(given)
        if _is_known(name):
            return name, None
        match = _RATE.fullmatch(name)
        if match is not None and _is_known(match["name"]):
            share, percent = match["share"], match["percent"]
            return match["name"], checked_percent(percent, given) if share is None else checked_rate(share)
        base = re.split(r"[(@;]", _upper(given))[0].strip()
        if not _is_type(base) and not _is_type(re.sub(r"-[\d.]+$", "", base)):
            return name, None
    operation = parse_operation(given)
    rate = operation.rate if operation.rate != 1 else None
    name_given = _upper(operation.said or operation.type.name)
    if operation.changes_nothing:
        return _data()["intact"][0], rate
    if name_given in _data()["unreleased"]:
        return name_given, rate
    return _protocol_of(operation, name_given), rate


def _is_type(name: str) -> bool:
    try:
        scramble_type(name)
    except UserError:
        return False
    return True


def _protocol_of(operation: Operation, said: str) -> Protocol:
    """Return the protocol of an operation; refuse a share of the texts, and options that were not published."""
    kind = operation.type.name
    akin = [protocol for (name, _), protocol in _by_operation().items() if name == kind]
    protocol = _by_any_name().get(said) or _by_operation().get((kind, operation.options))
    if protocol is None and not akin:
        for name in _data()["unreleased"]:
            if parse_operation(name).type.name == kind:
                raise _not_published(name)
        raise UserError(
            f"published {operation.name}: no paper released code for it",
            mend=f"Published are: {_published_names()}. Anything else needs the corrected mode.",
        )
    protocol = protocol or akin[0]
    implied = parse_operation(protocol.kin).options
    extra = [option for option in operation.options if option not in implied]
    if extra:
        written = ", ".join(f"{name}: {str(value).lower()}" for name, value in extra)
        counted = any(name == "count" for name, _ in extra)
        others = [
            protocol_of_kind.name for protocol_of_kind in akin if counted and protocol_of_kind is not protocol
        ]
        raise UserError(
            f"published {protocol.name} was released without options; {written} has no say in a copy",
            mend=f"Leave {'it' if len(extra) == 1 else 'them'} out, or use the corrected mode."
            + (f" Published as well: {', '.join(others)}." if others else ""),
        )
    if operation.texts != 1:
        raise UserError(
            f"published {protocol.name} changes every text; share {operation.texts:g} of the texts was not published",
            mend="Leave the share out, or use the corrected mode.",
        )
    return protocol


def _published_names() -> str:
    readable = {
        protocol.name: parse_operation(protocol.name).name
        for protocol in protocols().values()
        if protocol.kin == protocol.name
    }
    return ", ".join(f"{name} ({readable[name]})" if name in readable else name for name in protocols())


def _upper(name: str) -> str:
    return re.sub(r"\s*:\s*", ":", name.strip()).upper()


def _is_known(name: str) -> bool:
    return _without_task(name) in _by_any_name() or name in _data()["unreleased"] or name in _data()["intact"]


def _without_task(name: str) -> str:
    for suffix in _data()["task_suffixes"]:
        name = name.removesuffix(suffix)
    return name


def _not_published(name: str) -> UserError:
    if name in _data()["unreleased"]:
        title = _data()["papers"][_data()["unreleased"][name]]["title"].partition(",")[0]
        return UserError(
            f"published {name} cannot be copied: {title} describe it, and its code was never released",
            mend="Use the corrected mode.",
        )
    error = unknown_name("published scramble", name.lower() if ":" in name else name, protocols())
    return UserError(error.message, mend=f"{error.mend} Anything else needs the corrected mode.")


def _check_rate(chosen: PublishedOperation) -> None:
    assert chosen.protocol is not None
    name, rate = chosen.protocol.name, chosen.rate
    if chosen.protocol.in_tenths:
        if abs(rate * _STEPS - chosen.steps) > 1e-9:
            raise UserError(
                f"published {name} has no rate {rate:g}; it goes in steps of 0.1",
                mend="Use a multiple of 0.1, or the corrected mode.",
            )
    elif rate != 1:
        raise UserError(
            f"published {name} changes every word that it can; rate {rate:g} was not published",
            mend="Leave the rate out, or use the corrected mode.",
        )


def describe(given: OperationSpec) -> str:
    """State in a few sentences what a published copy is: paper, name of the released code, stream, stand-ins, faults."""
    chosen = published_operation(given)
    if chosen.protocol is None:
        return "The intact text."
    protocol = chosen.protocol
    code = f" (in its code {protocol.code})" if protocol.code else ""
    rate = f" at rate {chosen.rate:g}" if chosen.rate != 1 else ""
    sentences = [
        f"{protocol.name}{rate} as released by {protocol.title}{code}.",
        f"Draws: {protocol.stream}, seed {protocol.seed}.",
        *(fault.says for fault in protocol.faults),
    ]
    return " ".join(sentences)


PUBLISHED_SEED = 10
WORD_BOUNDARY = re.compile(r"(\W)")
_SPACES = re.compile(r" +")
_KEPT = {"KF": (1, 0), "KFL": (1, 1)}


def scramble_cao(texts: Sequence[str], operation: PublishedOperation, seed: int) -> list[str]:
    """Make one pass over a list of texts: RS in its nested steps of 10 %, KF, KFL or Sub."""
    assert operation.protocol is not None
    name = operation.protocol.name
    if name == "RS":
        return _in_steps(texts, operation.steps, seed)
    draw = random.Random(seed)
    if name == "SUB":
        return [
            _chosen_words(text, lambda words: len(words), lambda t: _other_letters(t, draw), draw)
            for text in texts
        ]
    first, last = _KEPT[name]
    return [
        tidy("".join(_keep(token, first, last, draw) for token in WORD_BOUNDARY.split(text)))
        for text in texts
    ]


def scramble_demonstrations(texts: Sequence[str], rate: float) -> list[str]:
    """Scramble few-shot demonstrations as published: RS in one go, without the steps of 10 %."""
    share = checked_rate(rate)
    draw = random.Random(PUBLISHED_SEED)
    return [
        _chosen_words(
            text, lambda words: round(len(words) * share), lambda token: _keep(token, 0, 0, draw), draw
        )
        for text in texts
    ]


def tidy(text: str) -> str:
    """Make runs of spaces one space and line ends line feeds, as the released code did after scrambling."""
    return "\n".join(_SPACES.sub(" ", line) for line in text.splitlines())


def _in_steps(texts: Sequence[str], steps: int, seed: int) -> list[str]:
    tokens = [WORD_BOUNDARY.split(text) for text in texts]
    eligible = [_eligible(row) for row in tokens]
    waiting = [list(places) for places in eligible]
    for step in range(1, steps + 1):
        draw = random.Random(seed)
        for row, places, left in zip(tokens, eligible, waiting, strict=True):
            count = round(0.1 * len(places) * step) - round(0.1 * len(places) * (step - 1))
            for place in draw.sample(left, count):
                row[place] = _keep(row[place], 0, 0, draw)
                left.remove(place)
    return [tidy("".join(row)) for row in tokens]


def _chosen_words(
    text: str, count: Callable[[Sequence[int]], int], change: Callable[[str], str], draw: random.Random
) -> str:
    """Change ``count`` of a text's words of two or more letters, in the order in which they are drawn."""
    row = WORD_BOUNDARY.split(text)
    eligible = _eligible(row)
    for place in draw.sample(eligible, count(eligible)):
        row[place] = change(row[place])
    return tidy("".join(row))


def _eligible(row: Sequence[str]) -> list[int]:
    return [place for place, token in enumerate(row) if sum(map(str.isalpha, token)) >= 2]


def _other_letters(token: str, draw: random.Random) -> str:
    """Put for every letter another of a to z and A to Z."""
    return "".join(
        draw.choice(string.ascii_letters.replace(character, "")) if character.isalpha() else character
        for character in token
    )


def _keep(token: str, first: int, last: int, draw: random.Random) -> str:
    """Shuffle the letters of a token but for the outer ones that are kept; digits keep their places."""
    places = [place for place, character in enumerate(token) if character.isalpha()]
    if len(places) < first + last + 2:
        return token
    inner = places[first : len(places) - last]
    characters = list(token)
    for place, source in zip(inner, _different_shuffle(inner, draw), strict=True):
        characters[place] = token[source]
    return "".join(characters)


def _different_shuffle(places: Sequence[int], draw: random.Random) -> list[int]:
    """Shuffle so that the order differs: at one index, drawn first, the partner comes from strictly below."""
    order = list(places)
    (forced,) = draw.sample(range(1, len(order)), 1)
    for i in range(len(order) - 1, 0, -1):
        partner = int(draw.random() * (i if i == forced else i + 1))
        order[i], order[partner] = order[partner], order[i]
    return order


CLAUSE_MARKS = ".!?,;:"
MASK = "_"
_CLAUSE = re.compile(f"[^{CLAUSE_MARKS}]+[{CLAUSE_MARKS}]")
_SENTENCE = re.compile("[^.!]+[.!?]")
_LONGEST_LEFT_ALONE = 3
_EXCHANGE = 0.5


@dataclass(frozen=True)
class MovedSpan:
    """A clause with reordered words, or a text with reordered sentences."""

    begin: int  # characters of the intact and of the shown text before it
    start: int
    intact: str  # the span before and after
    shown: str
    # for each place of the shown span, that of the intact span whose piece stands there
    order: tuple[int, ...]
    pieces: int  # number of pieces of the intact span, dropped ones included


@dataclass(frozen=True)
class Passed:
    """A text after a pass, with its reordered clauses or sentences (not recorded for letters)."""

    text: str
    spans: tuple[MovedSpan, ...] = ()


def trace(texts: Sequence[str], operation: PublishedOperation, seed: int) -> list[Passed]:
    """Return texts transformed with one random stream, with their reordered words or sentences."""
    assert operation.protocol is not None
    change = _transform(operation.protocol.name)
    draw = random.Random(seed)
    return [change(text, draw) for text in texts]


_Transform = Callable[[str, random.Random], Passed]
_Reorder = Callable[[list[int], random.Random], None]


def _transform(name: str) -> _Transform:
    unit, _, kind = name.partition("-REO-")
    if unit in ("WORD", "SENT"):
        moved = _words_moved if unit == "WORD" else _sentences_moved
        reorder = _REORDERS[kind]
        return lambda text, draw: moved(text, lambda order: reorder(order, draw), reverse=kind == "REV")
    if name == "REO-REV":
        return lambda text, draw: Passed("".join(token[::-1] for token in WORD_BOUNDARY.split(text)))
    operation, _, position = name.partition("-")
    place, _, times = position.partition("_")
    change = _LETTERS[operation]

    def each_token(text: str, draw: random.Random) -> Passed:
        return Passed(
            "".join(
                change(token, place, int(times or 0), draw)
                if len(token) > _LONGEST_LEFT_ALONE and not any(map(str.isdigit, token))
                else token
                for token in WORD_BOUNDARY.split(text)
            )
        )

    return each_token


def _reordered(token: str, place: str, times: int, draw: random.Random) -> str:
    letters = list(token)
    last = len(letters) - 1
    if place == "ALL":
        draw.shuffle(letters)
    elif place == "INT" and not times:
        inner = letters[1:-1]
        draw.shuffle(inner)
        letters[1:-1] = inner
    elif place == "INT":
        for _ in range(times):
            _exchange(letters, *draw.sample(range(1, last), 2))
    else:
        middle = len(letters) // 2
        _exchange(letters, *{"BEG": (0, 1), "END": (last - 1, last), "MID": (middle - 1, middle)}[place])
    return "".join(letters)


def _exchange(things: list[str], one: int, other: int) -> None:
    things[one], things[other] = things[other], things[one]


def _masked(token: str, place: str, times: int, draw: random.Random) -> str:
    letters = list(token)
    for position in _positions(token, place, times, draw, end=len(token) - 1):
        letters[position] = MASK
    return "".join(letters)


def _lengthened(token: str, place: str, times: int, draw: random.Random) -> str:
    # Places were drawn in the intact token and not moved on: a later letter can land beside or before an earlier one.
    for position in _positions(token, place, times, draw, end=len(token)):
        token = token[:position] + _inserted(token, position) + token[position:]
    return token


def _positions(token: str, place: str, times: int, draw: random.Random, *, end: int) -> list[int]:
    if place == "INT":
        return draw.sample(range(1, len(token) - 1), min(len(token) // 2, times))
    return [0 if place == "BEG" else end]


def _inserted(token: str, position: int) -> str:
    """Draw the letter to insert; the stable hash stands in for Python's salted one."""
    draw = random.Random(stable_seed("TypoBench insertion", token) + len(token) + position)
    return draw.choice(token + string.ascii_letters)


_LETTERS = {"REO": _reordered, "DEL": _masked, "INS": _lengthened}


def _words_moved(text: str, reorder: Callable[[list[int]], None], *, reverse: bool) -> Passed:
    """Reorder the words of each clause and set one space behind its mark; what follows the last mark is lost."""
    done: list[str] = []
    spans: list[MovedSpan] = []
    start = 0
    for match in _CLAUSE.finditer(text):
        clause = match.group()
        inner = clause[:-1].strip() if reverse else clause.strip()[:-1]
        words = inner.split(" ")
        order = list(range(len(words)))
        reorder(order)
        shown = " ".join(words[place] for place in order)
        if shown != inner:
            begin = match.start() + len(clause) - len(clause.lstrip())
            spans.append(MovedSpan(begin, start, inner, shown, tuple(order), len(words)))
        done.append(f"{shown}{clause[-1]} ")
        start += len(done[-1])
    return Passed("".join(done), tuple(spans))


def _sentences_moved(text: str, reorder: Callable[[list[int]], None], *, reverse: bool) -> Passed:
    """Reorder the sentences of a text and join them as they are; what follows the last mark is lost."""
    pieces = [(match.start(), match.end()) for match in _SENTENCE.finditer(text)]
    order = list(range(len(pieces)))
    reorder(order)
    shown = "".join(text[slice(*pieces[place])] for place in order)
    if shown == text:
        return Passed(text)
    lost = [
        begin
        for begin, end in itertools.pairwise([0, *itertools.chain(*pieces), len(text)])
        if (begin, end) not in pieces and re.search(r"\w", text[begin:end])
    ]
    places = [place + sum(begin < pieces[place][0] for begin in lost) for place in order]
    return Passed(shown, (MovedSpan(0, 0, text, shown, tuple(places), len(pieces) + len(lost)),))


def _neighbours_exchanged(order: list[int], draw: random.Random) -> None:
    """Go from left to right; with even odds exchange two neighbours and go on after them."""
    place = 0
    while place < len(order) - 1:
        if draw.random() < _EXCHANGE:
            order[place], order[place + 1] = order[place + 1], order[place]
            place += 1
        place += 1


_REORDERS: dict[str, _Reorder] = {
    "ALL": lambda order, draw: draw.shuffle(order),
    "ADJ": _neighbours_exchanged,
    "REV": lambda order, draw: order.reverse(),
}


def published_pass(
    texts: Sequence[str],
    operation: OperationSpec | PublishedOperation,
    *,
    rate: float | None = None,
    seed: int | None = None,
) -> list[str]:
    """Scramble a list of texts as the published stimuli were."""
    if not isinstance(operation, PublishedOperation):
        operation = published_operation(operation, rate=rate)
    if operation.protocol is None:
        return list(texts)
    seed = operation.protocol.seed if seed is None else seed
    if operation.protocol.paper == "cao2023":
        return scramble_cao(texts, operation, seed)
    return [passed.text for passed in trace(texts, operation, seed)]
