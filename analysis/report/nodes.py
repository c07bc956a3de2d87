"""The nodes of a report: headings, paragraphs, lists, tables and figures, which page, Word file and LaTeX file all render."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from analysis.report.numbering import Illustrated, Numbered

SUPPLEMENT = "supplement"
"""Anchor of the supplement, whose sections the page folds; in Word and LaTeX it is a separate file."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a part), 3 (a section) or 4 (within one), with marks for what in it is not data."""

    level: int
    text: Markup
    marks: tuple[str, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: Markup  # <i>, <b>, <code>, <sub> and <sup> at most
    kind: str = "body"  # or warning, small, reference
    anchor: str = ""  # p1 …; empty where it holds no number of the study
    tables: tuple[str, ...] = ()  # numbers of the tables that hold its numbers
    models: tuple[int, ...] = ()
    origin: str = ""  # where else they come from, in words


@dataclass(frozen=True)
class Bullets:
    """A list, numbered where its order matters."""

    items: tuple[Markup, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms with their descriptions."""

    pairs: tuple[tuple[str, str | Markup], ...]


@dataclass(frozen=True)
class PlannedFinding:
    """The outcome of one planned question."""

    question: Markup
    text: Markup
    grade: str  # how certain it is; empty for a summary
    support: str  # how many checks agree, and which do not
    tables: tuple[str, ...] = ()
    models: tuple[int, ...] = ()
    anchor: str = ""
    follows: bool = False  # "in this respect" refers to the question before

    @property
    def markup(self) -> Markup:
        """Question, answer and grade as one paragraph."""
        told = Markup(" {}{}.").format(self.support[:1].upper(), self.support[1:])
        if self.grade.lower() not in self.text.lower():
            told = Markup(" <b>{}: {}.</b>").format(self.grade, self.support)
        return Markup("<i>{}</i> {}{}").format(self.question, self.text, told if self.grade else "")


Node = Heading | Paragraph | Bullets | Facts | PlannedFinding | Numbered | Illustrated
