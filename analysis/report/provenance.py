"""The sources of the numbers in every table, figure and paragraph: model, rows, R lines, columns, unrounded CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis import apa
from analysis.names import plain
from analysis.readers import is_several
from analysis.report.apa_tables import Origin
from analysis.report.document import Document
from analysis.report.filters import Condition, many
from analysis.report.inline import plain_text
from analysis.report.nodes import Heading, Paragraph, PlannedFinding
from analysis.report.numbering import Illustrated, Numbered, ReportContent, in_order
from analysis.report.results.tables import origin_of_contrasts
from analysis.tables import SAID
from stimuli.papers import papers

SAME_NUMBERS = (
    (r"condition_score_(.+)", ("descriptives_correct_{}",)),
    (r"condition_(.+?)_and_([a-z]+(?:_time)?)_(.+)", ("descriptives_{0}_{2}", "descriptives_{1}_{2}")),
    (r"(?:all_conditions|condition)_(.+)", ("descriptives_{}",)),
    (r"fidelity_map_(.+)", ("fidelity_{}",)),
    (r"(profiles_models_.+)_plane", ("{}",)),
    (r"(recovered_text(?:_.+)?)", ("{}", "{}_rates")),
    (r"robustness_by_size", ("robustness", "size_slopes")),
)
"""Patterns of figures' names, and of those of the tables with the same numbers; of those that fit, the first with a table is taken."""
OF_THE_SAME_NAME = (r"(.+)", ("{}",))

NAMELESS = ("signal detection",)
"""Purposes of draws whose seed does not hold the study's name."""

SCHEMA = 3
"""Version of the layout of ``numbers.json``."""
TRIALS, REGIONS, ITEMS = "trials.csv", "regions.csv.gz", "items.csv"
ALWAYS = ("excluded_reason", "reader_group", *SAID)
"""Columns of trials.csv that it has although they may be empty."""
LARGE = 5_000_000
"""Files of as many bytes have their size said."""


@dataclass(frozen=True)
class FigureSource:
    """The source of a figure's numbers."""

    tables: tuple[str, ...] = ()
    origin: Origin | None = None


def figure_source(figure: Illustrated, content: ReportContent) -> FigureSource:
    """State where the numbers of a figure come from: tables of the same numbers, else those of its chapter, else trials."""
    name = figure.drawing.name
    in_chapter = _in_chapter(figure, content)
    tables = list(content.all_tables())
    of_papers = [pair for paper in papers().values() for pair in paper.figure_tables.items()]
    for pattern, stems in (*SAME_NUMBERS, *of_papers, OF_THE_SAME_NAME):
        if match := re.fullmatch(pattern, name):
            table_pattern = "|".join(stem.format(*map(re.escape, match.groups())) for stem in stems)
            numbers = [
                table.number for table in (in_chapter or tables) if re.fullmatch(table_pattern, _bare(table))
            ]
            if figure.drawing.effects and content.answer_table is not None:
                numbers = [content.answer_table.number, *numbers]
            if numbers:
                return FigureSource(tuple(numbers))
    if name.startswith("items_"):
        numbers = [
            table.number
            for table in in_chapter
            if _bare(table).startswith("items_") and name.endswith(_bare(table)[5:])
        ]
        if numbers:
            return FigureSource(tuple(numbers))
    if name.startswith("model_checks_"):
        planned = [each.analysis for section in content.planned for each in section.each]
        checked = [each for each in planned if name == f"model_checks_{plain(each.plan.name)}"]
        people = any(is_several(group, content.kinds) for each in checked for group in each.groups)
        ranks = (
            "ranks of the observations among 250 simulated data sets; "
            if any(each.fit for each in checked)
            else ""
        )
        units = "each participant and each item" if people else "each item"
        computed = f"{ranks}planned estimates without {units} in turn; by wrods alone"
        fits = tuple(each.fit for each in checked if each.fit is not None)
        origin = replace(origin_of_contrasts(checked), fits=fits, computed=computed)
        return FigureSource((), origin)
    return FigureSource(tuple(table.number for table in in_chapter))


def _in_chapter(figure: Illustrated, content: ReportContent) -> Sequence[Numbered]:
    for part in content.chapters:
        if any(block is figure for block in part.blocks):
            return [block for block in part.blocks if isinstance(block, Numbered)]
    return ()


def _bare(numbered: Numbered) -> str:
    """Return the name of a table without its number."""
    return re.sub(r"^table_[sf]?\d+_", "", numbered.table.name)


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model of the report."""

    number: int
    title: str
    formula: str
    rows_file: str
    rows: int
    size: int  # bytes
    first_line: int  # in models.R, from 1
    last_line: int

    def said(self) -> str:
        """Name rows and lines in words; of a large file its size."""
        size = f", {self.size / 1e6:.1f} MB" if self.size >= LARGE else ""
        return (
            f"model {self.number}: {self.rows_file} ({apa.count(self.rows)} rows{size}), "
            f"models.R lines {self.first_line}–{self.last_line}"
        )


def sources_in_words(content: ReportContent, models: Mapping[int, ModelFiles]) -> dict[str, str]:
    """Return one line for each table, by its number, that says where its numbers come from."""
    chapters, counts = _chapters(content), RowCounter(content)
    return {
        table.number: f"Numbers: tables/{table.table.name}_full.csv (unrounded). "
        f"From {_from(table.table.origin or Origin(), fits, models, counts)}."
        for table in content.all_tables()
        for fits in (_fits(table, content, chapters.get(table.number)),)
    }


def figures_in_words(content: ReportContent, models: Mapping[int, ModelFiles]) -> dict[str, str]:
    """Return one line for each figure, by its number, that says where its numbers come from."""
    counts, lines = RowCounter(content), {}
    for figure in content.all_figures():
        source = figure_source(figure, content)
        if source.tables:
            numbers = apa.listing(sorted(source.tables, key=in_order))
            lines[figure.number] = f"Numbers: Table{'s' if len(source.tables) > 1 else ''} {numbers}."
        elif source.origin is not None:
            fits = _numbers_of(source.origin, content)
            lines[figure.number] = f"Numbers: {_from(source.origin, fits, models, counts)}."
    return lines


class RowCounter:
    """Counts the rows behind numbers, each set of conditions once."""

    def __init__(self, content: ReportContent) -> None:
        self.tables = content.tables
        self.known: dict[tuple[str, tuple[Condition, ...]], tuple[int, int] | None] = {}

    def of(self, origin: Origin) -> tuple[int, int] | None:
        """Return how many rows of the file the numbers are made of, and how many it has; None where conditions do not say it."""
        if origin.where is None:
            return None
        key = (origin.file, origin.where)
        if key not in self.known:
            self.known[key] = self._count(*key)
        return self.known[key]

    def columns(self, origin: Origin) -> list[str]:
        """Return the columns behind numbers that this study has; of trials those that hold anything."""
        names = dict.fromkeys(origin.columns)
        if origin.file != TRIALS:
            return list(names)
        # a column that a study lacks is read as empty, or as FALSE throughout
        cells = {
            column: self.tables.trials[column].dropna() for column in names if column in self.tables.trials
        }
        return [
            column for column in names
            if column in ALWAYS
            or (column in cells and len(cells[column]) and (cells[column].dtype != bool or cells[column].any()))
        ]  # fmt: skip

    def _count(self, file: str, where: tuple[Condition, ...]) -> tuple[int, int] | None:
        if file == TRIALS:
            return many(self.tables.trials, where), len(self.tables.trials)
        if file == REGIONS:
            parts = [(many(batch, where), len(batch)) for batch in self.tables.region_batches()]
            return sum(used for used, _ in parts), sum(total for _, total in parts)
        return None


def files_named(content: ReportContent) -> set[str]:
    """Return the files of the report that its tables name, beyond the trials and models."""
    origins = [table.table.origin for table in content.all_tables() if table.table.origin is not None]
    return {name for origin in origins for name in (origin.file, *origin.beside)} & {REGIONS, ITEMS}


def _chapters(content: ReportContent) -> dict[str, Any]:
    return {
        block.number: part.chapter
        for part in content.chapters
        for block in part.blocks
        if isinstance(block, Numbered)
    }


def _fits(numbered: Numbered, content: ReportContent, chapter: Any) -> list[int]:
    """Return the numbers of the models behind a table: its own, or those of its chapter where it says nothing."""
    origin = numbered.table.origin
    fits = () if origin is None else origin.fits
    if chapter and origin is None:
        fits = tuple(reported.fit for reported in chapter.fits)
    return _numbers_of(Origin(tuple(fits)), content)


def _numbers_of(origin: Origin, content: ReportContent) -> list[int]:
    """Return the numbers of the models of an origin."""
    return [number for fit in origin.fits for number in content.number_of_fit(fit)]


def _from(origin: Origin, fits: Sequence[int], models: Mapping[int, ModelFiles], counts: RowCounter) -> str:
    parts = [models[number].said() for number in fits if number in models]
    if origin.columns or origin.where is not None or not parts:
        return ". ".join([*(["; ".join(parts)] if parts else []), *_rows_said(origin, counts)])
    texts = [text for text in (origin.rows, origin.computed) if text]
    return ". ".join(["; ".join(parts), *(f"{text[0].upper()}{text[1:]}" for text in texts)])


def _rows_said(origin: Origin, counts: RowCounter) -> list[str]:
    """State which rows and columns of which file, and what is made of them, a sentence each without its full stop."""
    counted = counts.of(origin)
    rows = origin.file
    if counted is not None:
        conditions = "; ".join(condition.said() for condition in origin.where or ())
        rows += f", {apa.count(counted[0])} of {apa.count(counted[1])} rows" + (
            f": {conditions}" if conditions else ""
        )
    rows += f"; {origin.rows}" if origin.rows else ""
    sentences = [rows]
    if origin.columns:
        sentences.append(f"Columns {', '.join(counts.columns(origin))}")
    if origin.beside:
        sentences.append(f"With {' and '.join(origin.beside)}")
    if origin.computed:
        sentences.append(f"{origin.computed[0].upper()}{origin.computed[1:]}")
    if origin.seed:
        purposes = ", ".join(origin.seed)
        is_nameless = origin.seed[0] in NAMELESS
        seeded = f"{purposes}, without the study's name" if is_nameless else f"the study's name, {purposes}"
        sentences.append(f"Random numbers: seeded by {seeded}")
    return sentences


def _rows_told(origin: Origin, counts: RowCounter) -> dict[str, Any]:
    """Return the rows as ``numbers.json`` gives them."""
    counted = counts.of(origin)
    return {
        "columns": counts.columns(origin),
        "where": None if origin.where is None else [condition.told() for condition in origin.where],
        "rows": None if counted is None else counted[0],
        "of_rows": None if counted is None else counted[1],
        "further": origin.rows,
        "beside": list(origin.beside),
        "computed": origin.computed,
        "seed": list(origin.seed),
    }


def numbers_of(
    document: Document, content: ReportContent, models: Mapping[int, ModelFiles]
) -> dict[str, Any]:
    """Return what ``numbers.json`` holds."""
    chapters, counts = _chapters(content), RowCounter(content)
    tables = []
    printed = {node.number for node in document.all_nodes if isinstance(node, Numbered)}
    for table in content.all_tables():
        origin = table.table.origin or Origin()
        fits = _fits(table, content, chapters.get(table.number))
        tables.append(
            {
                "number": table.number,
                "title": table.table.title,
                "shown": f"tables/{table.table.name}.csv",
                "unrounded": f"tables/{table.table.name}_full.csv",
                "latex": f"latex/{table.table.name}.tex",
                "printed": table.number in printed,
                "models": fits,
                "file": origin.file if origin.columns or origin.where is not None or not fits else None,
                **_rows_told(origin, counts),
            }
        )
    dictionary = content.tables.dictionary
    return {
        "layout": SCHEMA,
        "models": [
            {
                **{
                    name: getattr(model, name) for name in ("number", "title", "formula", "rows_file", "rows")
                },
                **{"bytes": model.size, "program": "models.R", "lines": [model.first_line, model.last_line]},
            }
            for model in models.values()
        ],
        "estimates": list(_estimates(content)),
        "tables": tables,
        "figures": [_figure_told(figure, content, counts) for figure in content.all_figures()],
        "paragraphs": list(_paragraphs(document)),
        "dictionary": {
            name: dictionary.get(name)
            for name in ("readers", "participants", "procedure", "exclude", "truth")
        },
    }


def _estimates(content: ReportContent) -> Iterator[dict[str, Any]]:
    """Describe every tested difference: on which scale, with which standard error, adjusted p, interval and family."""
    for section in content.sections:
        plan = section.analysis.plan
        for contrast in section.analysis.estimable:
            yield {
                "analysis": section.heading,
                "planned": plan.planned,
                "measure": plan.measure.name,
                "contrast": contrast.label,
                "readers": list(contrast.groups),
                "scale": plan.measure.unit_of_difference
                if contrast.crossed is not None
                else plan.measure.scale,
                **{name: getattr(contrast, name) for name in ("estimate", "se", "df", "p_adjusted")},
                **{
                    name: end if np.isfinite(end) else None
                    for name, end in (("low", contrast.low), ("high", contrast.high))
                },
                "level": 1 - plan.alpha,
                "tests": contrast.family,
                "adjusted_by": contrast.correction,
            }


def _figure_told(illustrated: Illustrated, content: ReportContent, counts: RowCounter) -> dict[str, Any]:
    source = figure_source(illustrated, content)
    entry = {
        "number": illustrated.number,
        "title": illustrated.drawing.title,
        "file": f"figures/{illustrated.drawing.name}.svg",
    }
    origin = source.origin
    if origin is None:
        return {**entry, "tables": list(source.tables)}
    models = _numbers_of(origin, content)
    file = origin.file if origin.columns or not models else None
    return {**entry, "tables": [], "models": models, "from": file, **_rows_told(origin, counts)}


def _paragraphs(document: Document) -> list[dict[str, Any]]:
    entries, part, section = [], "", ""
    for node in document.all_nodes:
        if isinstance(node, Heading):
            part, section = (plain_text(node.text), "") if node.level == 2 else (part, plain_text(node.text))
        elif isinstance(node, Paragraph | PlannedFinding) and node.anchor:
            entries.append(
                {
                    "anchor": node.anchor,
                    "heading": " / ".join(title for title in (part, section) if title),
                    "begins": plain_text(node.text)[:80],
                    "tables": list(node.tables),
                    "models": list(node.models),
                    "from": node.origin if isinstance(node, Paragraph) else "",
                }
            )
    return entries
