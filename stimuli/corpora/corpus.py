"""A corpus: its title, source, licence and files, and its raw records one by one; a broken record does not take the others along."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from stimuli.errors import UserError

NOTHING: Mapping[str, float | str | None] = MappingProxyType({})


@dataclass(frozen=True)
class SourceText:
    """An intact text of a corpus."""

    source_id: str  # names the text within its corpus
    text: str  # the text
    source: str  # corpus or file that it comes from
    split: str | None = None  # part of the corpus, where it has parts
    licence: str | None = None  # licence of the corpus, None where none is stated


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of every filled line of a JSONL file; a broken line is an error."""
    for number, row in line_rows(path):
        if isinstance(row, UserError):
            raise row
        yield number, dict(row)


def json_object(raw: bytes, where: str) -> dict[str, Any]:
    """Read one line that holds a JSON object."""
    try:
        record = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{where}: not UTF-8", mend="Save the file as UTF-8.") from None
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise UserError(f"{where}: not valid JSON ({reason} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(record, dict):
        raise UserError(f"{where}: a line holds one JSON object, not {type(record).__name__}")
    return record


RawRecord = Mapping[str, Any]
Numbered = tuple[int, RawRecord | UserError]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_CUT_OFF = "Is the file cut off? Get it again and compare its size."


def json_rows(path: Path) -> Iterator[Numbered]:
    """Yield line and record of a JSONL file or of a JSON file that holds a list; a broken one as its error."""
    with opened(path) as stream:
        first = stream.read(4096).removeprefix(_BYTE_ORDER_MARK).lstrip()
    return array_rows(path) if first.startswith(b"[") else line_rows(path)


def line_rows(path: Path) -> Iterator[Numbered]:
    """Yield line and record of every filled line of a JSONL file; a broken one as its error."""
    with opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
            if not line.strip():
                continue
            try:
                yield number, json_object(line, f"{path}, line {number}")
            except UserError as error:
                cut = not raw.endswith(b"\n") and "not valid JSON" in error.message
                yield number, UserError(error.message, mend=_CUT_OFF) if cut else error


def array_rows(path: Path, *, after: re.Pattern[str] | None = None) -> Iterator[Numbered]:
    """Yield line and element of a list in a JSON file; where the list breaks off, its error comes last."""
    with opened(path) as stream:
        try:
            text = stream.read().removeprefix(_BYTE_ORDER_MARK).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 at byte {error.start}", mend="Save it as UTF-8.") from None
    start = after.search(text) if after else _SPACE.match(text)
    assert start is not None
    begin = start.end()
    if not text.startswith("[", begin):
        raise UserError(f"{path}: no list of records begins there")
    decoder = json.JSONDecoder()
    line, counted = 1, 0
    place = _past_space(text, begin + 1)
    while not text.startswith("]", place):
        line, counted = line + text.count("\n", counted, place), place
        try:
            element, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            reason = (
                error.msg.removesuffix(" at")
                if isinstance(error, json.JSONDecodeError)
                else "nested too deep"
            )
            yield line, UserError(f"{path}, line {line}: not valid JSON ({reason})", mend=_CUT_OFF)
            return
        yield line, element if isinstance(element, dict) else {"": element}
        place = _past_space(text, place)
        if text.startswith(",", place):
            place = _past_space(text, place + 1)
        elif not text.startswith("]", place):
            line += text.count("\n", counted, place)
            yield line, UserError(f"{path}, line {line}: the list of records has no end", mend=_CUT_OFF)
            return


def _past_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def opened(path: Path) -> BinaryIO:
    """Open a file of materials."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a file") from None


@dataclass(frozen=True)
class Record:
    """One record of a corpus: texts by field and what is asked about them."""

    record_id: str  # names the record within its corpus and split; the same in every load
    corpus: str  # name in the registry, such as ``dream``
    split: str | None  # part of the corpus, where it has parts
    licence: str | None  # licence of the corpus, None where none is stated
    texts: Mapping[str, str]  # texts by field, such as ``{"dialogue": …, "question": …}``
    choices: tuple[str, ...] | None  # texts of the options, without letters; None where the answer is open
    answer: str | None  # text of the right choice, a number, a phrase or code; None where not labelled
    answers: tuple[str, ...] = ()  # others that count as right
    rationale: str | None = None  # worked solution
    tests: tuple[str, ...] = ()  # assertions that a program has to pass
    setup: str | None = None  # code that runs before the tests
    # what else is known (category, concept); becomes covariates of items
    extra: Mapping[str, float | str | None] = field(default_factory=lambda: NOTHING)
    file: str = ""  # where the record stands; line 0 where a file has no lines of its own
    line: int = 0


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be read."""

    file: str  # where it stands; line 0 where the file has no lines
    line: int
    reason: str  # what is wrong, in one sentence


@dataclass(frozen=True)
class Loaded:
    """Records loaded from a corpus, and problems with them."""

    records: tuple[Record, ...]  # in the order of the corpus
    bad: tuple[BadRecord, ...] = ()  # what could not be read; empty where a bad record stops the load
    duplicates: tuple[tuple[str, ...], ...] = ()  # ids of records with the same texts, a tuple a text
    warnings: tuple[str, ...] = ()  # for users of the corpus: restrictive licence, records without an answer
    files: tuple[Path, ...] = ()  # what was read, for the hashes of a build's sources; empty for the hub


@dataclass(frozen=True)
class CorpusSplit:
    """Files of a corpus that belong to one split."""

    split: str | None  # name of the split; None where the file does not tell, so that records or the user do
    names: tuple[str, ...]  # patterns of file names
    many: bool = False  # whether several files make up the part; otherwise two are an error, never a pool
    # why the part is loaded from a folder only when its split is asked for, in words for the user
    left_out: str | None = None

    def holds(self, file: Path) -> bool:
        """Whether a file belongs to this part by its name."""
        return any(fnmatch(file.name, name) for name in self.names)


@dataclass(frozen=True)
class Hub:
    """Location of a corpus on the Hugging Face hub, and the conversion of its rows to original raw records."""

    repository: str  # owner and name, such as ``openai/gsm8k``
    configuration: str | None = None  # configuration that is taken where the user names none
    splits: Mapping[str, str] = field(default_factory=dict)  # the hub's split by ours, where names differ
    # rows of the hub → raw records as the corpus's own files have them
    original: Callable[[Iterable[RawRecord]], Iterable[RawRecord]] = iter


@dataclass(frozen=True)
class Corpus:
    """A corpus that wrods can read; others add theirs by the entry-point group ``wrods.corpora``."""

    name: str  # name in the study file, such as ``dream``
    title: str  # name in prose, and the publication
    citation: str
    licence: str | None  # as stated by the corpus; None where none is stated
    fields: tuple[str, ...]  # text fields of a record
    reading_field: str  # the field that is scrambled where the study names none
    parts: tuple[CorpusSplit, ...]  # its files, the first fitting part counts
    # (raw record, place) → records; raises UserError (from ``place.fault``) for a broken one
    read: Callable[[RawRecord, RecordLocation], Iterable[Record]]
    # file → line and raw record, or the error of a broken one; JSONL and JSON lists by default
    rows: Callable[[Path], Iterator[Numbered]] = json_rows
    hub: Hub | None = None  # where the hub has it
    notice: str | None = None  # what the licence asks of who uses the corpus; a build prints it
    # published selections by name: (records, files) → records in the published order
    selections: Mapping[str, Callable[[Sequence[Record], Sequence[Path]], Sequence[Record]]] = field(
        default_factory=dict
    )
    # names of ``extra`` entries that tell the same record in two versions, beside equal texts
    same: tuple[str, ...] = ()
    # patterns of other files that are read where they stand in a file's folder, such as annotations
    beside: tuple[str, ...] = ()

    def part_of(self, file: Path) -> CorpusSplit | None:
        """Return the part that a file belongs to by its name."""
        return next((part for part in self.parts if part.holds(file)), None)


@dataclass(frozen=True)
class RecordLocation:
    """Location of a raw record; makes its records and its errors."""

    corpus: Corpus  # what is loaded
    split: str | None  # the file's split
    file: Path  # the file, or the hub's name as a path
    line: int  # line of the file, or row of the hub's table, from 1

    @property
    def said(self) -> str:
        """The place in words."""
        return f"{self.file}, line {self.line}"

    @property
    def part_id(self) -> str:
        """Split, or the file's name without ending where the split is not known; begins ids made from lines."""
        return self.split or self.file.stem

    def fault(self, reason: str, *, mend: str | None = None) -> UserError:
        """Build the error for this raw record."""
        return UserError(f"{self.said}: {reason}", mend=mend)

    def value(self, row: RawRecord, key: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """Return a value that a raw record must have, of a kind; an error asks whether the file is one of this corpus."""
        ask = f"Is this a file of {self.corpus.title}?"
        if key not in row:
            raise self.fault(f"{key!r} is missing", mend=ask)
        value = row[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise self.fault(f"{key!r} is {value!r}, not {_in_words(kind)}", mend=ask)
        return value

    def text(self, row: RawRecord, key: str) -> str:
        """Return a text that a raw record must have, not empty."""
        text: str = self.value(row, key, str)
        if not text.strip():
            raise self.fault(f"{key!r} is empty")
        return text

    def texts(self, row: RawRecord, key: str) -> tuple[str, ...]:
        """Return a list of texts that a raw record must have."""
        values = self.value(row, key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.fault(f"{key!r} is a list of texts, not {values!r}")
        return tuple(values)

    def record(self, record_id: str, texts: Mapping[str, str], *, answer: str | None, **known: Any) -> Record:
        """Make a record of this place: corpus, split, licence, file and line come from it, unless a split is given."""
        return Record(
            record_id=record_id,
            corpus=self.corpus.name,
            licence=self.corpus.licence,
            texts=texts,
            answer=answer,
            file=self.file.name,
            line=self.line,
            **{"choices": None, **known, "split": known.get("split") or self.split},
        )


def _in_words(kind: type[Any] | tuple[type[Any], ...]) -> str:
    words = {str: "a text", list: "a list", dict: "an object", bool: "true or false", int: "a number"}
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(words.get(kind, kind.__name__) for kind in kinds)
