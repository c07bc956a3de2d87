"""Detects the encoding of a text file and reports how certain it is; a guess is always reported.

A byte-order mark, the zero bytes of UTF-16 and valid UTF-8 are certain. Anything else is a guess among old code
pages, and is reported as one: the description of the table then shows words that depend on it.
"""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from stimuli.corpora.corpus import opened
from stimuli.errors import UserError
from stimuli.files import data_file

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
    """Return the kind of a file that is not text, such as ``an Excel workbook``; None if none is recognised."""
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


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {
    "utf-8-sig": "UTF-8",
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
}
_WORD = re.compile(r"[^\W\d_]+")
# Least share of letter pairs that a language explains (charset-normalizer's coherence) for a guess to be taken.
LEAST_COHERENCE = 0.1
# Bytes that the guess looks at; more does not make it better.
_LOOKED_AT = 200_000


@dataclass(frozen=True)
class DecodedFile:
    """A file's text and how it was read."""

    text: str  # the text, without a byte-order mark
    encoding: str  # Python's name of the encoding
    known_by: str  # how the encoding is known: byte-order mark, valid UTF-8, zero bytes, given, or guessed…

    @property
    def is_guess(self) -> bool:
        """Whether the encoding was guessed."""
        return self.known_by.startswith("guessed")

    @property
    def said(self) -> str:
        """Encoding and how it is known, in words."""
        return f"{encoding_name(self.encoding)} ({self.known_by})"

    def witnesses(self, number: int = 5) -> list[str]:
        """Return words with letters beyond ASCII: a wrong guess shows in them."""
        words = (word for word in _WORD.findall(self.text) if not word.isascii())
        return list(dict.fromkeys(words))[:number]


def encoding_name(encoding: str) -> str:
    """Return the name by which people know an encoding."""
    if encoding in _NAMES:
        return _NAMES[encoding]
    return f"Windows-{encoding[2:]}" if re.fullmatch(r"cp125\d", encoding) else encoding


def read_decoded(path: Path, *, encoding: str | None = None, language: str | None = None) -> DecodedFile:
    """Read a file of texts."""
    with opened(path) as stream:
        raw = stream.read()
    refuse_other_kinds(raw, path)
    decoded = _given(raw, encoding, path) if encoding else _certain(raw, path) or _guess(raw, language, path)
    zero = decoded.text.find("\0")
    if zero >= 0:
        raise UserError(
            f"{path}, line {decoded.text.count(chr(10), 0, zero) + 1}: a zero byte, which no text holds",
            mend="The file is damaged or not a text file; save it again as UTF-8.",
        )
    return decoded


def _given(raw: bytes, encoding: str, path: Path) -> DecodedFile:
    try:
        name = codecs.lookup(encoding).name
        text = raw.decode(name)
    except LookupError:
        raise UserError(
            f"encoding {encoding!r} is not known", mend="Known: utf-8, utf-16, cp1252, cp1251, …."
        ) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: byte 0x{raw[error.start]:02X} does not fit {encoding}"
        ) from None
    return DecodedFile(text.removeprefix("\ufeff"), name, "given")


def _certain(raw: bytes, path: Path) -> DecodedFile | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            try:
                return DecodedFile(raw.decode(encoding), encoding, "byte-order mark")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}: begins as {encoding_name(encoding)}, but byte {error.start} does not fit",
                    mend="Is the file cut off? Save it again as UTF-8.",
                ) from None
    without_mark = _utf_16_without_mark(raw)
    if without_mark:
        return without_mark
    try:
        return DecodedFile(raw.decode("utf-8"), "utf-8", "valid UTF-8")
    except UnicodeDecodeError:
        return None


def _utf_16_without_mark(raw: bytes) -> DecodedFile | None:
    """Take zero bytes that stand all at even or all at odd places as halves of UTF-16 characters."""
    even, odd = raw[0::2].count(0), raw[1::2].count(0)
    if len(raw) % 2 or not even + odd or min(even, odd) > 0:
        return None
    encoding = "utf-16-le" if odd else "utf-16-be"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return None
    ends = text.count("\n")
    is_text = (even + odd) * 8 >= len(raw) or 0 < raw.count(b"\n") <= 2 * ends
    return DecodedFile(text, encoding, "zero bytes") if is_text else None


def _guess(raw: bytes, language: str | None, path: Path) -> DecodedFile:
    """Take the first code page that decodes the file; by language, by how usual it is, or by the texts that come out."""
    code_page, latin_pages = _code_page(language), _data()["latin"]
    is_latin = code_page in latin_pages or _looks_latin(raw)
    ranked = _ranked(raw, "latin" if is_latin else "other")
    by_language = [(code_page, f"guessed from the language {language}")] if code_page else []
    by_texts = [
        (name, f"guessed, coherence {coherence:.2f}")
        for name, _, coherence in (ranked if is_latin else ranked[:1])
        if coherence >= LEAST_COHERENCE
    ]
    candidates = [*by_texts, *by_language]
    if (
        is_latin
    ):  # Windows-1252, unless the language has another page or another page explains the texts better
        western = min((chaos for name, chaos, _ in ranked if name == "cp1252"), default=None)
        fits = not ranked or (western is not None and western <= ranked[0][1])
        candidates = [
            *(by_language if code_page in latin_pages and code_page != "cp1252" else ()),
            *([("cp1252", "guessed, it fits and is the most common")] if fits else ()),
            *by_texts,
            ("cp1252", "guessed, nothing fits better"),
        ]
    for name, known_by in candidates:
        with suppress(UnicodeDecodeError):
            return DecodedFile(raw.decode(name), name, known_by)
    perhaps = f" (perhaps {encoding_name(ranked[0][0])})" if ranked else ""
    raise UserError(
        f"{path} is not UTF-8, and its encoding is uncertain{perhaps}",
        mend="Save it as UTF-8, or state its encoding.",
    )


def _looks_latin(raw: bytes) -> bool:
    """Whether words with letters beyond ASCII have ASCII letters too, as in Latin script and no other."""
    words = [word for word in _WORD.findall(raw[:_LOOKED_AT].decode("latin-1")) if not word.isascii()]
    beyond = sum(not letter.isascii() for word in words for letter in word)
    return beyond * 2 <= sum(map(len, words))


def _ranked(raw: bytes, script: str) -> list[tuple[str, float, float]]:
    """Return encoding, chaos and coherence of charset-normalizer's guesses, best first; twins of a guess too."""
    from charset_normalizer import from_bytes

    matches = from_bytes(raw[:_LOOKED_AT], cp_isolation=list(_data()[script]))
    return [
        (name, match.chaos, match.coherence)
        for match in matches
        for name in dict.fromkeys([match.encoding, *match.could_be_from_charset])
    ]


def _code_page(language: str | None) -> str | None:
    wanted = (language or "").lower().split("-")[0]
    pages: Mapping[str, list[str]] = _data()["by_language"]
    return next((page for page, languages in pages.items() if wanted in languages), None)


def _data() -> Mapping[str, Any]:
    return cast(Mapping[str, Any], data_file("corpora/encodings.json"))
