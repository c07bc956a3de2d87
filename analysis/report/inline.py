"""Takes the markup of a paragraph apart into runs of text, so that Word and LaTeX can set what the page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser

from markupsafe import Markup, escape

_STYLES = {
    "i": "italic",
    "em": "italic",
    "var": "italic",
    "b": "bold",
    "strong": "bold",
    "code": "code",
    "sub": "sub",
    "sup": "sup",
}
_NOTE_SYMBOLS = re.compile(r"\b(N|n|SD|p)\b(?= (=|is|adjusted)\b| =| values?\b)")
_SYMBOLS = re.compile(
    r"(?<![\w−-])(?:(?:N|n|M|SD|SE|b|p|r|z)(?=[ \u00a0](?:=|<|>|&lt;|&gt;)[ \u00a0][−\d.])"
    r"|t(?=\([\d.,]+\)[ \u00a0]=)|p(?= values?\b))"
)
_IN_HEADS = re.compile(r"(?<!\w)(?:b|SE|z|t|df|p|M|SD|n|OR|R²|r)(?!\w)")
_TAGS = re.compile(r"(<code>.*?</code>|<[^>]+>)")


@dataclass(frozen=True)
class TextRun:
    """A piece of text in one style."""

    text: str
    italic: bool = False
    bold: bool = False
    code: bool = False
    sub: bool = False
    sup: bool = False


class _Runs(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.runs: list[TextRun] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.handle_data(" ")
        elif tag in _STYLES:
            self.open.append(_STYLES[tag])

    def handle_endtag(self, tag: str) -> None:
        style = _STYLES.get(tag)
        if style in self.open:
            self.open.reverse()
            self.open.remove(style)
            self.open.reverse()

    def handle_data(self, data: str) -> None:
        styled = TextRun(data, **dict.fromkeys(self.open, True))
        if self.runs and replace(self.runs[-1], text=data) == styled:
            styled = replace(styled, text=self.runs.pop().text + data)
        self.runs.append(styled)


def runs_of(markup: str) -> list[TextRun]:
    """Return a paragraph's runs in order; tags that set no style are left out, their text is kept."""
    parser = _Runs()
    parser.feed(str(markup))
    parser.close()
    return parser.runs


def plain_text(markup: str) -> str:
    """Return a paragraph's words alone."""
    return "".join(run.text for run in runs_of(markup))


def head_markup(column: str, is_symbol: bool) -> Markup:
    """Set a column head: statistical symbols are in italics where it is one."""
    return Markup(_IN_HEADS.sub(r"<i>\g<0></i>", str(escape(column)))) if is_symbol else escape(column)


def with_symbols(markup: str) -> Markup:
    """Set the statistical symbols of a paragraph in italics where they precede values, unless they already are."""
    parts = _TAGS.split(str(markup))
    return Markup(
        "".join(part if _TAGS.fullmatch(part) else _SYMBOLS.sub(r"<i>\g<0></i>", part) for part in parts)
    )


def note_markup(text: str) -> Markup:
    """Set the statistical symbols of a note in italics."""
    return Markup(_NOTE_SYMBOLS.sub(r"<i>\1</i>", str(escape(text))))
