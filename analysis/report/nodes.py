"""The nodes of a report: headings, paragraphs, lists, tables and figures, which page, Word file and LaTeX file all render."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from analysis.report.numbered import Illustrated, Numbered

SUPPLEMENT = "supplement"
"""Anchor of the supplement, whose sections the page folds; in Word and LaTeX it is a file of its own."""


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
    tables : tuple of str
        Numbers of the tables that hold its numbers.
    models : tuple of int
        Numbers of the models.
    origin : str
        Where else they come from, in words.
    """

    text: Markup
    kind: str = "body"
    anchor: str = ""
    tables: tuple[str, ...] = ()
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
class Finding:
    """What one planned question came to.

    Attributes
    ----------
    question : str
    text : Markup
        The answer in one sentence.
    grade : str
        How certain it is: Clear, Supported, Fragile, Contradicted, Equivalent, Open, Not estimable; empty for a summary.
    support : str
        How many checks agree, and which do not.
    tables : tuple of str
        Numbers of the tables that hold its numbers.
    models : tuple of int
        Numbers of the models.
    anchor : str
        ``p1`` … as of a paragraph.
    """

    question: str
    text: Markup
    grade: str
    support: str
    tables: tuple[str, ...] = ()
    models: tuple[int, ...] = ()
    anchor: str = ""


Node = Heading | Paragraph | Bullets | Facts | Finding | Numbered | Illustrated
