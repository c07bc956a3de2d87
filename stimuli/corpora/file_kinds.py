"""Recognizes files that are not text by their first bytes, whatever their name says."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from stimuli.errors import UserError

WORKBOOK = "an Excel workbook"
OLD_WORKBOOK = "an old Excel workbook, or one with a password"
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0", OLD_WORKBOOK),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"BZh", "a file compressed by bzip2"),
    (b"\xfd7zXZ", "a file compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet table"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"{\\rtf", "a rich text document"),
)
_INSIDE_ZIP: tuple[tuple[str, str], ...] = (
    ("xl/workbook", WORKBOOK),
    ("word/document", "a Word document"),
    ("Index/", "a Numbers or Pages document"),
)


def kind_of_bytes(raw: bytes) -> str | None:
    """Return what a file is that is no text, such as ``an Excel workbook``; None where nothing says so."""
    if raw.startswith(b"PK\x03\x04"):
        return _kind_of_zip(raw)
    return next((kind for beginning, kind in _BEGINNINGS if raw.startswith(beginning)), None)


def _kind_of_zip(raw: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = archive.namelist()
            if "mimetype" in names and b"opendocument.spreadsheet" in archive.read("mimetype")[:100]:
                return "an OpenDocument spreadsheet"
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError):
        return "a ZIP archive that is cut off"
    return next(
        (kind for begin, kind in _INSIDE_ZIP if any(name.startswith(begin) for name in names)),
        "a ZIP archive",
    )


def refuse_other_kinds(raw: bytes, path: Path) -> None:
    """Refuse the bytes of a file that should be text and is something else."""
    kind = kind_of_bytes(raw)
    if kind is None:
        return
    if kind == WORKBOOK:
        mend = f"Call it {path.with_suffix('.xlsx').name}, or save it as CSV (UTF-8) in Excel."
    elif "ZIP" in kind or "compressed" in kind or "archive" in kind:
        mend = "Unpack it, and name the file that was in it."
    else:
        mend = "Open it in the program that made it and save it as CSV (UTF-8)."
    raise UserError(f"{path} is {kind}, not a text file", mend=mend)
