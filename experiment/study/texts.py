"""Converts a study's Markdown texts to safe HTML for participants and plain text for models, with a version for the record.

An incomplete text has placeholders, such as ``[FILL IN: e-mail address]``; only pilots see it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from experiment.media import digest_of, served_name
from stimuli.errors import UserError

PLACEHOLDER = re.compile(r"\[FILL\s+IN\b[^\]]*\]?")
SCREEN_HEADINGS = 2
"""Heading levels of the page itself: the study's title and the screen's; a text's highest heading comes right below."""


@dataclass(frozen=True)
class Placeholder:
    """A part of a text that is not written yet, with its first line (from 1)."""

    line: int
    words: str


@dataclass(frozen=True)
class StudyText:
    """One text: HTML without raw tags or scripts, plain text, the first 16 hex digits of its SHA-256, and placeholders."""

    html: str
    text: str
    version: str
    placeholders: tuple[Placeholder, ...] = ()
    # pictures in the text: file by the name under which pages load it
    pictures: Mapping[str, Path] = field(default_factory=dict)


@cache
def _markdown(*, with_pictures: bool) -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    return markdown if with_pictures else markdown.disable(["image"])


def version_of(text: bytes) -> str:
    """Return the version of a text for the record."""
    return hashlib.sha256(text).hexdigest()[:16]


def render_text(text: str, folder: Path | None = None) -> StudyText:
    """Return rendered Markdown; raw HTML in it is shown as text, and pictures only if they are files in a folder.

    Raises
    ------
    UserError
        A picture is missing, or is no picture that every browser shows.
    """
    tidy = text.replace("\r\n", "\n").strip()
    markdown = _markdown(with_pictures=folder is not None)
    tokens = markdown.parse(tidy)
    pictures: dict[str, Path] = {}
    for image in [part for token in tokens for part in token.children or () if part.type == "image"]:
        name = unquote(str(image.attrGet("src")))
        if folder is None or "://" in name:
            tokens = _markdown(with_pictures=False).parse(tidy)
            pictures = {}
            break
        served = served_name({"sha256": digest_of(folder, name, "image"), "file": name})
        image.attrSet("src", f"media/{served}")
        pictures[served] = folder / name
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    highest = min((int(token.tag[1]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1]) - highest + 1 + SCREEN_HEADINGS)}"
    for token in tokens:
        _join_lines(token.children or [])
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    version = version_of("\n".join([tidy, *pictures]).encode("utf-8"))
    return StudyText(html, _plain(tokens), version, tuple(placeholders_in(text)), pictures)


def _join_lines(tokens: Sequence[Token]) -> None:
    """Join the lines of a paragraph without a space where the script writes none between words, as in Chinese and Japanese."""
    for place, token in enumerate(tokens):
        before, after = ("".join(part.content for part in side) for side in (tokens[:place], tokens[place:]))
        if token.type == "softbreak" and _is_unspaced(before[-1:]) and _is_unspaced(after[:1]):
            token.type = "text"


def _is_unspaced(character: str) -> bool:
    is_wide = character != "" and unicodedata.east_asian_width(character) in ("W", "F")
    return is_wide and not unicodedata.name(character, "").startswith("HANGUL")


def placeholders_in(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders in a text."""
    for match in PLACEHOLDER.finditer(text):
        yield Placeholder(text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()))


def _plain(tokens: Sequence[Token]) -> str:
    """Return rendered Markdown as text without marks, with one line per paragraph."""
    blocks: list[str] = []
    numbers: list[int | None] = []
    mark, cells, in_list = "", [], False
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            numbers.append(int(token.attrGet("start") or 1) if token.type == "ordered_list_open" else None)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            numbers.pop()
            in_list = bool(numbers)
        elif token.type == "list_item_open":
            number = numbers[-1]
            mark = "- " if number is None else f"{number}. "
            numbers[-1] = None if number is None else number + 1
        elif token.type == "tr_open":
            cells = [""]
        elif token.type == "tr_close":
            blocks.append(" | ".join(cells[1:]))
            cells = []
        elif token.type == "inline":
            words = _inline(token.children or [])
            if cells:
                cells.append(words)
            elif mark and in_list:
                blocks[-1] += f"\n{mark}{words}"
            else:
                blocks.append(mark + words)
            in_list, mark = bool(numbers), ""
        elif token.type in ("fence", "code_block"):
            blocks.append(token.content.rstrip())
    return "\n\n".join(blocks)


def _inline(tokens: Sequence[Token]) -> str:
    breaks = {"softbreak": " ", "hardbreak": "\n"}
    return "".join(
        f"[{token.content}]" if token.type == "image" else breaks.get(token.type, token.content)
        for token in tokens
    )


def read_text(folder: Path, name: str, place: str) -> StudyText:
    """Return a study's text file, rendered; `place` is where it is named (`study.yaml, line 12: …`)."""
    file = folder / name
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(
            f"{place} names {name!r}, which is not in the study's folder", mend=f"Write {file}."
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{place} names {name!r}, which is not UTF-8", mend="Save it as UTF-8.") from None
    if not text.strip():
        raise UserError(f"{place} names {name!r}, which is empty", mend=f"Write the text into {file}.")
    try:
        return render_text(text, folder)
    except UserError as fault:
        raise UserError(f"{place}: {name}: {fault.message}", mend=fault.mend) from None
