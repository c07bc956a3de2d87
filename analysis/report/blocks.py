"""The parts of a chapter of a report, before tables and figures have numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from analysis import apa
from analysis.figures import Drawing
from analysis.mixed import Fit
from analysis.names import upper_first
from analysis.report.apa_tables import ApaTable
from analysis.results import Analysis
from analysis.robustness import Matrix
from analysis.tables import Tables

Block = Markup | ApaTable | Drawing
REFERENCE = re.compile(r"\[\[(table|figure):([^\]]+)\]\]")
_REFERENCES = re.compile(rf"(?:{REFERENCE.pattern})+")


@dataclass(frozen=True)
class ReportedFit:
    """A model whose numbers are in a chapter; its rows and an R program that refits it are written to the report's folder."""

    title: str
    fit: Fit


@dataclass(frozen=True)
class Chapter:
    """A part of a report with its heading.

    Paragraphs among its blocks have no ``<p>``; ``<h3>`` alone makes a heading, and ``[[table:NAME]]`` or ``[[figure:NAME]]`` refers
    to a table or figure of the same chapter.
    """

    name: str  # anchor of its heading
    heading: str
    blocks: tuple[Block, ...]
    marks: tuple[str, ...] = ()  # which readers in it are not data
    planned: bool = False
    methods: tuple[Markup, ...] = ()  # what was done, with which settings, from which source
    fits: tuple[ReportedFit, ...] = ()
    question: str = ""
    departures: tuple[str, ...] = ()  # names of plans from whose mixed model the residuals depart


@dataclass
class Draft:
    """The parts of a chapter written so far."""

    blocks: list[Block] = field(default_factory=list)
    methods: list[Markup] = field(default_factory=list)
    fits: list[ReportedFit] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def add(self, other: Draft) -> None:
        """Append another draft; methods and groups are not repeated."""
        self.blocks += other.blocks
        self.fits += other.fits
        for name in ("methods", "groups"):
            existing = getattr(self, name)
            existing += [entry for entry in getattr(other, name) if entry not in existing]


@dataclass(frozen=True)
class Material:
    """The data from which a chapter is written."""

    tables: Tables
    analyses: tuple[Analysis, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    told: Callable[[str], None] = lambda _: None
    matrix: Matrix = field(default_factory=Matrix)


def referred(text: Markup, numbers: dict[tuple[str, str], str]) -> Markup:
    """Put numbers where a paragraph names tables and figures; those named side by side are listed by kind."""

    def named(match: re.Match[str]) -> str:
        by_kind: dict[str, list[str]] = {}
        for kind, name in REFERENCE.findall(match[0]):
            by_kind.setdefault(kind, []).append(numbers[kind, name])
        kinds = [
            f"{upper_first(kind)}{'s' * (len(own) > 1)}\u00a0{apa.listing(own)}"
            for kind, own in by_kind.items()
        ]
        return str(escape(apa.listing(kinds)))

    return Markup(_REFERENCES.sub(named, str(text)))


def marks_of(groups: Sequence[str], kinds: dict[str, str]) -> tuple[str, ...]:
    """Return the marks that a section with these reader groups bears."""
    present = {kinds.get(group) for group in groups}
    labels = {"simulated": "simulated readers: not data", "baseline": "baselines: not data"}
    return tuple(mark for kind, mark in labels.items() if kind in present)
