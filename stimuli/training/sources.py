"""Reads texts to train on from what users have, one after another and never all at once.

Plain text, JSON Lines with a field, Parquet and Arrow (Wikipedia as the package ``datasets`` keeps it), a folder of any of
these, and the output of WikiExtractor (files ``wiki_00`` with ``<doc>`` or with JSON lines).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stimuli.corpora.rows import array_rows, line_rows
from stimuli.corpora.source_text import SourceText
from stimuli.errors import UserError, missing_column

_WIKI = re.compile(r"wiki_\d+")
_DOC = re.compile(r"<doc\b(?P<attributes>[^>]*)>\s*")
_ID = re.compile(r'\bid="(?P<id>[^"]*)"')
_ABOUT_A_DATA_SET = {"dataset_info.json", "dataset_dict.json", "state.json"}
_ROWS_AT_ONCE = 256
_BYTE_ORDER_MARK = "\ufeff"
_KNOWN = "texts (.txt), JSON Lines (.jsonl, .ndjson, .json), Parquet (.parquet), Arrow (.arrow) or WikiExtractor's wiki_00"


@dataclass(frozen=True)
class TextFiles:
    """Texts of files and folders; each time it is gone through, the files are read again, with flat memory."""

    # files, or folders whose files of a known kind count, in the order of their names
    paths: tuple[Path, ...]
    field: str = "text"  # which field of a row holds the text

    def __post_init__(self) -> None:
        if not self.paths:
            raise UserError("no file of texts is given", mend="Give a file or a folder with texts.")

    def files(self) -> list[tuple[Path, bool]]:
        """Return the files that are read, each with whether it was found in a folder."""
        found: list[tuple[Path, bool]] = []
        for path in self.paths:
            if path.is_file():
                if _reader(path) is None:
                    raise UserError(f"{path} is of no known kind", mend=f"Known: {_KNOWN}.")
                found.append((path, False))
            elif path.is_dir():
                inside = sorted(file for file in path.rglob("*") if file.is_file() and _reader(file))
                if not inside:
                    raise UserError(f"{path} holds no texts", mend=f"Known: {_KNOWN}.")
                found += [(file, True) for file in inside]
            else:
                raise UserError(f"{path} does not exist", mend="Give a file or a folder with texts.")
        return found

    def __iter__(self) -> Iterator[SourceText]:
        for file, in_folder in self.files():
            read = _reader(file)
            assert read is not None
            for source_id, text in read(file, self, in_folder):
                if text.strip():
                    yield SourceText(source_id, text, file.name)


_Reader = Callable[[Path, TextFiles, bool], Iterable[tuple[str, str]]]


def _reader(file: Path) -> _Reader | None:
    if file.name in _ABOUT_A_DATA_SET or file.name.startswith("."):
        return None
    if _WIKI.fullmatch(file.name):
        return _wiki
    return _READERS.get(file.suffix.lower())


def _plain(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    if in_folder:
        yield file.stem, "".join(line for _, line in _lines(file))
        return
    gathered: list[str] = []
    begin = 0
    for number, line in _lines(file):
        text = line.rstrip("\n")
        if text.strip():
            begin = begin if gathered else number
            gathered.append(text)
        elif gathered:
            yield f"{file.stem}, line {begin}", "\n".join(gathered)
            gathered = []
    if gathered:
        yield f"{file.stem}, line {begin}", "\n".join(gathered)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise UserError(f"{file}, line {number}: not UTF-8", mend="Save the file as UTF-8.") from None
            line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            yield number, line.replace("\r\n", "\n")


def _json(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        is_list = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    for number, row in array_rows(file) if is_list else line_rows(file):
        if isinstance(row, UserError):
            raise row
        yield _of_row(row, asked.field, f"{file}, line {number}", f"{file.stem}, line {number}")


def _of_row(row: Mapping[str, Any], field: str, where: str, named: str) -> tuple[str, str]:
    if field not in row:
        raise _no_field(where, field, row)
    text = row[field]
    if text is not None and not isinstance(text, str):
        raise UserError(f"{where}: {field!r} is {text!r}, not a text", mend="Name the field with the text.")
    own = row.get("id")
    return (str(own) if isinstance(own, str | int) else named), text or ""


def _no_field(where: str, field: str, there: Iterable[str]) -> UserError:
    error = missing_column(where, field, there)
    return UserError(error.message, mend=f"{error.mend} Name the field with the text: field: NAME.")


def _parquet(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(file)
        there = table.schema_arrow.names
        columns = _columns(file, asked.field, there)
        yield from _of_batches(file, asked.field, table.iter_batches(_ROWS_AT_ONCE, columns=columns))
    except (ArrowInvalid, OSError) as error:
        raise UserError(f"{file} cannot be read as Parquet: {error}", mend=_AGAIN) from None


def _arrow(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    import pyarrow

    try:
        with pyarrow.memory_map(str(file)) as mapped:
            try:
                stream = pyarrow.ipc.open_stream(mapped)
            except pyarrow.ArrowInvalid:
                whole = pyarrow.ipc.open_file(mapped)
                batches = (whole.get_batch(place) for place in range(whole.num_record_batches))
                there = whole.schema.names
            else:
                batches, there = iter(stream), stream.schema.names
            columns = _columns(file, asked.field, there)
            parts = (
                batch.select(columns).slice(begin, _ROWS_AT_ONCE)
                for batch in batches
                for begin in range(0, batch.num_rows, _ROWS_AT_ONCE)
            )
            yield from _of_batches(file, asked.field, parts)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(f"{file} cannot be read as Arrow: {error}", mend=_AGAIN) from None


_AGAIN = "Is the file cut off? Get it again and compare its size."


def _columns(file: Path, field: str, there: list[str]) -> list[str]:
    if field not in there:
        raise _no_field(str(file), field, there)
    return [field, "id"] if "id" in there and field != "id" else [field]


def _of_batches(file: Path, field: str, batches: Iterable[Any]) -> Iterator[tuple[str, str]]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield _of_row(row, field, f"{file}, row {number}", f"{file.stem}, row {number}")


def _wiki(file: Path, asked: TextFiles, in_folder: bool) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        if stream.read(1) == b"{":
            yield from _json(file, asked, in_folder)
            return
    gathered: list[str] | None = None
    named = ""
    for number, line in _lines(file):
        if opened := _DOC.match(line):
            own = _ID.search(opened["attributes"])
            named = own["id"] if own else f"{file.name}, line {number}"
            gathered = []
        elif line.startswith("</doc>"):
            if gathered is not None:
                yield named, "".join(gathered).strip("\n")
            gathered = None
        elif gathered is not None:
            gathered.append(line)
    if gathered is not None:
        raise UserError(f"{file}: the article {named!r} has no </doc>", mend=_AGAIN)


_READERS: Mapping[str, _Reader] = {
    ".txt": _plain,
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".parquet": _parquet,
    ".arrow": _arrow,
}
