"""The lines that ``wrods scramble`` reads and writes: text, or a field of JSON objects."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import click

from stimuli.corpora.source_text import json_object
from stimuli.errors import UserError, did_you_mean

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = (b"\r\n", b"\n")


@dataclass
class Line:
    """One line: number, JSON object where it has one, text (None for an empty line of JSONL), and what ended it."""

    number: int
    record: dict[str, Any] | None
    field: str | None
    text: str | None
    ended: bytes = b"\n"

    def write(self, out: IO[bytes], shown: str | None) -> None:
        """Write the line with another text, all else as it came."""
        if self.record is not None and self.field is not None:
            whole = {**self.record, self.field: shown}
            shown = json.dumps(whole, ensure_ascii=False)
            if not shown.isascii() and _SURROGATE.search(shown):
                shown = json.dumps(whole)  # half of a pair is no UTF-8, but JSON can write it as it came
        out.write((shown or "").encode("utf-8") + self.ended)


@dataclass
class Source:
    """Where the lines come from; names those that cannot be read."""

    file: Path | None
    field: str | None
    skip_bad: bool
    left_out: int = 0
    read: int = 0

    def lines(self) -> Iterator[Line]:
        """Read line by line."""
        where = self._where()
        with ExitStack() as open_files:
            ended = b"\n"
            stream = sys.stdin.buffer if self._is_stdin() else open_files.enter_context(self._open())
            for number, raw in enumerate(stream, 1):
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                self.read = number
                # A last line without an end of its own gets that of the lines before it.
                ended = next((mark for mark in _LINE_ENDS if line.endswith(mark)), ended)
                line = line.removesuffix(ended)
                try:
                    found = self._read(number, line, f"{where}, line {number}")
                except UserError as error:
                    if not self.skip_bad:
                        raise UserError(
                            error.message,
                            mend=" ".join(
                                [
                                    error.mend or "",
                                    "Lines before it are written; --on-bad skip leaves such lines out.",
                                ]
                            ).strip(),
                        ) from None
                    self.left_out += 1
                    click.echo(f"left out: {error.message}", err=True)
                else:
                    yield replace(found, ended=ended)

    def _read(self, number: int, line: bytes, where: str) -> Line:
        if self.field is None:
            return Line(number, None, None, _decoded(line, where))
        if not line.strip():
            return Line(number, None, self.field, None)
        record = json_object(line, where)
        return Line(number, record, self.field, _text_of(record, self.field, where))

    def tell_left_out(self) -> None:
        """Say on standard error how many lines could not be read, or that there was none."""
        if not self.read:
            click.echo(f"{self._where()} is empty: nothing to scramble", err=True)
        if self.left_out:
            lines = "1 line" if self.left_out == 1 else f"{self.left_out:,} lines"
            click.echo(f"{lines} left out", err=True)

    def _where(self) -> str:
        return "standard input" if self._is_stdin() else str(self.file)

    def _is_stdin(self) -> bool:
        return self.file is None or str(self.file) == "-"

    def _open(self) -> IO[bytes]:
        assert self.file is not None
        try:
            return self.file.open("rb")
        except FileNotFoundError:
            raise UserError(
                f"{self.file} does not exist", mend="Check the name, or pipe the text in."
            ) from None
        except (IsADirectoryError, PermissionError) as error:
            raise UserError(
                f"{self.file} cannot be read: {error.strerror}", mend="Name a text file that you may read."
            ) from None


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where}: byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8",
            mend="Save the text as UTF-8.",
        ) from None


def _text_of(record: dict[str, Any], field: str, where: str) -> str:
    if field not in record:
        hint = did_you_mean(field, record)
        raise UserError(
            f"{where}: field {field!r} is missing",
            mend=f"{hint}Say which field with --field; there are: {', '.join(record) or 'none'}.",
        )
    if not isinstance(record[field], str):
        raise UserError(
            f"{where}: field {field!r} holds no text but {json.dumps(record[field])[:60]}",
            mend='Write a text there ("" for none), or name another field with --field.',
        )
    return str(record[field])
