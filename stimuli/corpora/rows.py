"""Texts and raw records of JSON files one by one with their lines; one broken record does not take the others along."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from stimuli.errors import UserError


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
