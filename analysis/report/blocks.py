"""What a chapter of a report is made of, before tables and figures have numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from analysis.figures import Drawing
from analysis.mixed import Fit
from analysis.report.apa_tables import ApaTable
from analysis.results import Analysis
from analysis.robustness.matrix import Matrix
from analysis.tables import Tables

Block = Markup | ApaTable | Drawing
REFERENCE = re.compile(r"\[\[(table|figure):([^\]]+)\]\]")


@dataclass(frozen=True)
class ReportedFit:
    """A model whose numbers stand in a chapter; its rows and an R program that refits it go into the report's folder.

    Attributes
    ----------
    title : str
    fit : analysis.mixed.Fit
    """

    title: str
    fit: Fit


@dataclass(frozen=True)
class Chapter:
    """A part of a report under a heading of its own.

    Attributes
    ----------
    name : str
        Letters, digits and hyphens; the anchor of its heading.
    heading : str
    blocks : tuple of Markup, ApaTable or Drawing
        Paragraphs (without ``<p>``; ``<h3>`` alone makes a heading), tables and figures in the order in which they are read. A
        paragraph names a table or figure of the same chapter as ``[[table:NAME]]`` or ``[[figure:NAME]]``; the report
        puts the number there.
    marks : tuple of str
        Which readers in it are not data (:func:`marks_of`).
    planned : bool
        Whether it answers what the study planned; every other chapter is marked as exploratory.
    methods : tuple of Markup
        Paragraphs for the Method section: what was done, with which settings, from which source.
    fits : tuple of ReportedFit
    question : str
        What it answers; :data:`analysis.report.chapters.DECLARED` says it.
    sources : tuple of str
        Keys in ``analysis/report/references.bib`` of what the text cites.
    """

    name: str
    heading: str
    blocks: tuple[Block, ...]
    marks: tuple[str, ...] = ()
    planned: bool = False
    methods: tuple[Markup, ...] = ()
    fits: tuple[ReportedFit, ...] = ()
    sources: tuple[str, ...] = ()
    question: str = ""


@dataclass(frozen=True)
class Material:
    """What a chapter is written from.

    Attributes
    ----------
    tables : Tables
    analyses : tuple of Analysis
        The planned and exploratory analyses that were carried out already.
    kinds : dict
        Reader kind of every reader group in the trials table.
    told : callable
        Called with a line before each slow step.
    matrix : Matrix
        The planned contrasts under each check.
    """

    tables: Tables
    analyses: tuple[Analysis, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    told: Callable[[str], None] = lambda _: None
    matrix: Matrix = field(default_factory=Matrix)


def referred(text: Markup, numbers: dict[tuple[str, str], str]) -> Markup:
    """Put numbers where a paragraph names tables and figures.

    Parameters
    ----------
    text : Markup
    numbers : dict
        Of ``("table" or "figure", name)``.

    Raises
    ------
    KeyError
        Where a paragraph names what its chapter does not hold: a mistake of the chapter's author.
    """

    def number(match: re.Match[str]) -> str:
        kind, name = match.groups()
        word = "Table" if kind == "table" else "Figure"
        return str(escape(f"{word}\u00a0{numbers[kind, name]}"))

    return Markup(REFERENCE.sub(number, str(text)))


def marks_of(groups: Sequence[str], kinds: dict[str, str]) -> tuple[str, ...]:
    """Return the marks that a section with these reader groups bears."""
    own = {kinds.get(group) for group in groups}
    marks = ["simulated readers: not data"] if "simulated" in own else []
    return tuple(marks + (["baselines: not data"] if "baseline" in own else []))
