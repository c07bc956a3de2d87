"""The form in which every corpus hands over a text, and line-by-line reading that names a broken line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Yield line number and object of every filled line of a JSONL file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a JSONL file") from None
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if raw.strip():
            yield number, json_object(raw, f"{path}, line {number}")


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
