"""Breaks what a command says into lines that every terminal holds."""

from __future__ import annotations

import textwrap

WIDTH = 96


def wrapped(paragraph: str) -> str:
    """Wrap a paragraph between words, so that names and commands stay whole; lines below its first are indented, each by itself."""
    first, *lines = paragraph.split("\n")
    return "\n".join((_filled(first), *(_filled(line, "  ", "    ") for line in lines)))


def _filled(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )
