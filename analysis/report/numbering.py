"""The content of a report with numbered tables and figures, and which of these are printed: no two that show the same.

A refused table or figure keeps its number and its file; the report lists it with the reason under "Tables and figures in files".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from analysis import apa
from analysis.descriptives import ConditionMean
from analysis.figures import Drawing
from analysis.mixed import Fit
from analysis.names import stem_of
from analysis.parameter_recovery import Recovered
from analysis.plan_deviations import PlanStatus
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, ReportedFit, referred
from analysis.report.method import MethodPart
from analysis.results import Analysis
from analysis.robustness import Matrix
from analysis.tables import Tables

MOST_EMPTY, MOST_SHOWN = 0.6, 0.6
"""Shares of cells that are empty, and of numbers that one printed table holds already, above which a table is not printed."""
FEWEST_NUMBERS = 5
"""A table of fewer numbers is told apart from others by them alone and never counts as shown."""
LONGEST = 24
"""Rows above which a table is in its file only; no journal would print it."""

MOST_TABLES, MOST_FIGURES, MOST_WORDS = 5, 4, 2500
"""What the manuscript holds at most, the Answer's table and figure included; the rest goes into the supplement."""
MANUSCRIPT, SUPPLEMENT, FILES = "", "S", "F"
"""Places: what the number of a table or figure begins with."""


def refusal(table: ApaTable, printed: Collection[ApaTable]) -> str:
    """Return why a table is not worth printing; empty if it is, as is any that is laid out as in a paper or declared by the plan."""
    if table.of_paper:
        return ""
    rows = [row for row in table.rows if not isinstance(row, Head)]
    if table.withheld:
        return table.withheld
    if table.drawn:
        return "a figure shows these numbers"
    if len(rows) > LONGEST:
        return f"{len(rows)} rows"
    if len(rows) < 2:
        return "one row" if rows else "no rows"
    cells = list(_cells(table))
    if sum(cell in ("", apa.MISSING) for cell in cells) > MOST_EMPTY * len(cells):
        return "most cells are empty"
    columns = [
        [str(row[index]) for row in rows if len(row) > index] for index in range(1, len(table.columns))
    ]
    if not any(len(set(column)) > 1 for column in columns):
        return "nothing varies"
    numbers = numbers_in(table)
    if len(numbers) >= FEWEST_NUMBERS:
        for other in printed:
            if len(numbers & numbers_in(other)) >= MOST_SHOWN * len(numbers):
                return f"most of its numbers are in the table “{other.title}”"
    return ""


def _cells(table: ApaTable) -> Iterator[str]:
    """Yield the cells behind the first of each row, as many as the columns of its part of the table have heads."""
    width = len(table.columns)
    for row in table.rows:
        if isinstance(row, Head):
            named = sum(map(bool, row))
            width = named if named > 1 else len(table.columns)
        else:
            yield from (str(cell).strip() for cell in row[1:width])


def numbers_in(table: ApaTable) -> set[tuple[str, ...]]:
    """Return the numbers and intervals of a table before rounding, by which other ones may look alike; whole numbers are left out."""
    cells = (cell for row in table.rows if not isinstance(row, Head) for cell in row[1:])
    numbers: set[tuple[str, ...]] = set()
    for cell in cells:
        values = [f"{value:.9g}" for value in getattr(cell, "values", ())]
        numbers |= {tuple(values[:1]), tuple(values[1:])} if len(values) == 3 else {tuple(values)}
    return {number for number in numbers if any("." in value for value in number)}


def refusal_of_figure(drawing: Drawing) -> str:
    """Return why a figure is not worth printing: it is empty, or holds one point; empty if it is worth it."""
    points = 0
    for axes in drawing.figure.axes:
        if axes.images or axes.patches:
            return ""
        points += sum(_points(line.get_xydata()) for line in axes.lines)
        points += sum(_points(collection.get_offsets()) for collection in axes.collections)
        points += sum(
            len(np.atleast_1d(path.vertices)) > 4
            for collection in axes.collections
            for path in collection.get_paths()
        )
    return "" if points > 1 else "no more than one point" if points else "it is empty"


def _points(values: object) -> int:
    points: np.ndarray = np.atleast_2d(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
    return int(np.isfinite(points).all(axis=1).sum()) if points.shape[1] == 2 else 0


@dataclass(frozen=True)
class Numbered:
    """A table with its number in the report."""

    number: str  # 3 in the manuscript, S4 in the supplement, F2 of a table that is in its file only
    table: ApaTable
    refused: str = ""  # why it is in its file only; empty for a printed one


@dataclass(frozen=True)
class Illustrated:
    """A figure with its number in the report; see :class:`Numbered`."""

    number: str
    drawing: Drawing
    refused: str = ""


def place_of(number: str) -> tuple[str, int]:
    """Return place and count of a number."""
    place = number[0] if number[0].isalpha() else MANUSCRIPT
    return place, int(number.removeprefix(place))


def in_order(number: str) -> tuple[int, int]:
    """Return what numbers are sorted by: the manuscript's, the supplement's, those in files."""
    place, count = place_of(number)
    return (MANUSCRIPT, SUPPLEMENT, FILES).index(place), count


@dataclass(frozen=True)
class Section:
    """One analysis as the page shows it, or several that are told together: ``parts``, of which ``analysis`` is the first."""

    heading: str
    marks: tuple[str, ...]
    paragraphs: tuple[Markup, ...]
    tables: tuple[Numbered, ...]
    analysis: Analysis
    warnings: tuple[Markup, ...]
    cells: tuple[ConditionMean, ...] = ()  # means of the trials that it analyses
    parts: tuple[Section, ...] = ()

    @property
    def each(self) -> tuple[Section, ...]:
        """Every analysis of it."""
        return self.parts or (self,)


@dataclass(frozen=True)
class NumberedChapter:
    """A chapter with its tables and figures numbered, and the question that it answers."""

    chapter: Chapter
    blocks: tuple[Markup | Numbered | Illustrated, ...]
    methods: tuple[Markup, ...] = ()
    question: str = ""


@dataclass(frozen=True)
class ReportContent:
    """The whole content of a report, numbered."""

    tables: Tables
    flow: Numbered
    kinds: dict[str, str]
    descriptives: tuple[Numbered, ...] = ()
    remarks: tuple[Markup, ...] = ()  # on the descriptive values
    cautions: tuple[Markup, ...] = ()  # before any result: how few have answered
    figures: tuple[Illustrated, ...] = ()
    further_tables: tuple[Numbered, ...] = ()  # of measures and factors that no planned analysis compares
    further_figures: tuple[Illustrated, ...] = ()
    standing: PlanStatus = field(default_factory=PlanStatus)
    leading: tuple[
        tuple[Markup, Markup], ...
    ] = ()  # without a plan: questions of the study's paper, each with its answer
    planned: tuple[Section, ...] = ()
    exploratory: tuple[Section, ...] = ()
    chapters: tuple[NumberedChapter, ...] = ()
    recovery: tuple[Recovered, ...] = ()
    recovery_sections: tuple[Section, ...] = ()
    recovery_table: Numbered | None = None
    recovery_figure: Illustrated | None = None
    method: tuple[MethodPart, ...] = ()
    models_table: Numbered | None = None
    matrix: Matrix = field(default_factory=Matrix)
    answer_table: Numbered | None = None
    answer_excerpt: Numbered | None = None  # where that is in its file only

    @property
    def has_people(self) -> bool:
        """Whether any trial of a person (pilot sessions apart) is analysed."""
        trials = self.tables.trials
        return bool((trials["excluded_reason"].isna() & (trials["reader_kind"] == "human")).any())

    @property
    def sections(self) -> tuple[Section, ...]:
        """Every analysis of the report."""
        return tuple(subsection for section in self._laid for subsection in section.each)

    @property
    def _laid(self) -> tuple[Section, ...]:
        return (*self.planned, *self.exploratory, *self.recovery_sections)

    def all_tables(self) -> Iterator[Numbered]:
        """Return every table in the order of its number."""
        named = (self.models_table, self.answer_table, self.answer_excerpt, self.recovery_table, self.flow)
        tables = [table for table in named if table]
        tables += [*self.descriptives, *self.further_tables]
        all_sections = [*self.sections, *(section for section in self._laid if section.parts)]
        tables += [table for section in all_sections for table in section.tables]
        tables += [block for part in self.chapters for block in part.blocks if isinstance(block, Numbered)]
        return iter(sorted(tables, key=lambda table: in_order(table.number)))

    def all_fits(self) -> list[ReportedFit]:
        """Return every model of the report in the order of its number."""
        titled = [(section.heading, section.analysis.fit) for section in self.sections]
        fits = [ReportedFit(title, fit) for title, fit in titled if fit is not None]
        return fits + [fit for part in self.chapters for fit in part.chapter.fits]

    @property
    def has_program(self) -> bool:
        """Whether there is anything that ``models.R`` recomputes."""
        tested = (contrast for section in self.sections for contrast in section.analysis.contrasts)
        return bool(self.all_fits()) or any(
            contrast.crossed is not None and contrast.estimable for contrast in tested
        )

    def number_of_fit(self, fit: Fit | None) -> tuple[int, ...]:
        """Return the number of a model, or nothing where it is none of the report's."""
        return tuple(n for n, reported in enumerate(self.all_fits(), 1) if reported.fit is fit)[:1]

    def described_in(self, analysis: Analysis) -> tuple[str, ...]:
        """Return the number of the table that holds the means of an analysis' measure by its factor."""
        plan = analysis.plan
        tables = (*self.descriptives, *self.further_tables)
        for stem in (stem_of(plan.factor, plan.trials, plan.within), plan.factor):
            name = f"descriptives_{plan.measure.name}_{stem}"
            numbers = tuple(table.number for table in tables if table.table.name.endswith(name))
            if numbers:
                return numbers
        return ()

    def all_figures(self) -> Iterator[Illustrated]:
        """Return every figure in the order of its number."""
        figures = [*self.figures, *self.further_figures, *filter(None, [self.recovery_figure])]
        figures += [
            block for part in self.chapters for block in part.blocks if isinstance(block, Illustrated)
        ]
        return iter(sorted(figures, key=lambda figure: in_order(figure.number)))


@dataclass
class ExhibitNumbers:
    """Counts tables and figures as they come, by place, and sends those not worth printing to their files."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    printed: list[ApaTable] = field(default_factory=list)

    def has_room(self, kind: str) -> bool:
        """Whether the manuscript has room for one more ``table`` or ``figure``."""
        return self.counts[kind, MANUSCRIPT] < (MOST_TABLES if kind == "table" else MOST_FIGURES)

    def table(self, table: ApaTable, place: str = SUPPLEMENT, refused: str = "") -> Numbered:
        """Assign a table its number, ``refused`` for a reason that it does not hold itself; its file's name begins with the number."""
        refused = refused or refusal(table, self.printed)
        number = self._next("table", FILES if refused else place)
        if not refused:
            self.printed.append(table)
        letter, digits = place_of(number)
        return Numbered(
            number, replace(table, name=f"table_{letter.lower()}{digits:02d}_{table.name}"), refused
        )

    def figure(self, drawing: Drawing, place: str = SUPPLEMENT) -> Illustrated:
        """Assign a figure its number."""
        refused = refusal_of_figure(drawing)
        return Illustrated(self._next("figure", FILES if refused else place), drawing, refused)

    def _next(self, kind: str, place: str) -> str:
        if place == MANUSCRIPT and not self.has_room(kind):
            place = SUPPLEMENT
        self.counts[kind, place] += 1
        return f"{place}{self.counts[kind, place]}"

    def chapter(self, chapter: Chapter) -> NumberedChapter:
        """Assign numbers to what a chapter contains; its paragraphs name tables and figures by number."""
        blocks: list[Markup | Numbered | Illustrated] = []
        numbers: dict[tuple[str, str], str] = {}
        for block in chapter.blocks:
            if isinstance(block, Markup):
                blocks.append(block)
                continue
            is_figure = isinstance(block, Drawing)
            shown = self.figure(block) if isinstance(block, Drawing) else self.table(block)
            numbers["figure" if is_figure else "table", block.name] = shown.number
            blocks.append(shown)
        referred_blocks = tuple(
            referred(block, numbers) if isinstance(block, Markup) else block for block in blocks
        )
        return NumberedChapter(
            chapter,
            referred_blocks,
            tuple(referred(method, numbers) for method in chapter.methods),
            chapter.question,
        )
