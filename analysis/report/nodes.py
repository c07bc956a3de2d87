"""The nodes of a report: headings, paragraphs, lists, tables and figures, which page, Word file and LaTeX file all render."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from analysis.report.numbered import Illustrated, Numbered

SUPPLEMENT = "supplement"
"""Anchor of the part that a paper would put into its supplement; the page shows its sections folded."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a part), 3 (a section) or 4 (within one), with marks that say what in it is no data."""

    level: int
    text: Markup
    marks: tuple[str, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    Attributes
    ----------
    text : Markup
        With ``<i>``, ``<b>``, ``<code>``, ``<sub>`` and ``<sup>`` at most.
    kind : {'body', 'warning', 'small', 'reference'}
    anchor : str
        ``p1`` …; empty where it holds no number of the study.
    tables : tuple of int
        Numbers of the tables that hold its numbers.
    models : tuple of int
        Numbers of the models.
    origin : str
        Where else they come from, in words.
    """

    text: Markup
    kind: str = "body"
    anchor: str = ""
    tables: tuple[int, ...] = ()
    models: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list, numbered where its order matters."""

    items: tuple[Markup, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms with what is said of each."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Filed:
    """A table too long to print: its number, its title, and how many rows lie in its file."""

    shown: Numbered
    rows: int

    @property
    def number(self) -> int:
        """Number of the table."""
        return self.shown.number

    @property
    def said(self) -> str:
        """Where it lies, in words."""
        return f"{self.rows} rows, in tables/{self.shown.table.name}.csv."


Node = Heading | Paragraph | Bullets | Facts | Numbered | Illustrated | Filed
