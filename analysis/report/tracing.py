"""Says of every table and paragraph where its numbers come from: model, rows, R lines, columns, unrounded CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.report.apa_tables import Origin
from analysis.report.document import Document, Heading, Paragraph
from analysis.report.inline import plain_text
from analysis.report.numbered import Content, Numbered

SCHEMA = 1
"""Version of the layout of ``numbers.json``."""


@dataclass(frozen=True)
class ModelFiles:
    """Where one model of the report lies.

    Attributes
    ----------
    number : int
    title, formula : str
    rows_file : str
        ``models/model_01.csv``.
    rows : int
    first_line, last_line : int
        Its lines in ``models.R``, from 1.
    """

    number: int
    title: str
    formula: str
    rows_file: str
    rows: int
    first_line: int
    last_line: int

    def said(self) -> str:
        """Name rows and lines in words."""
        return f"model {self.number}: {self.rows_file}, models.R lines {self.first_line}–{self.last_line}"


def sources_in_words(content: Content, models: Mapping[int, ModelFiles]) -> dict[int, str]:
    """Return one line for each table, by its number, that says where its numbers come from."""
    chapters = _chapters(content)
    return {
        one.number: f"Numbers: tables/{one.table.name}_full.csv (unrounded). "
        f"From {_from(one, content, models, chapters.get(one.number))}."
        for one in content.all_tables()
    }


def _chapters(content: Content) -> dict[int, Any]:
    return {
        one.number: part.chapter
        for part in content.chapters
        for one in part.blocks
        if isinstance(one, Numbered)
    }


def _fits(one: Numbered, content: Content, chapter: Any) -> list[int]:
    """Return the numbers of the models behind a table: its own, or those of its chapter where it says nothing."""
    origin = one.table.origin
    fits = (
        origin.fits
        if origin is not None
        else tuple(reported.fit for reported in chapter.fits)
        if chapter
        else ()
    )
    return [number for fit in fits for number in content.number_of_fit(fit)]


def _from(one: Numbered, content: Content, models: Mapping[int, ModelFiles], chapter: Any) -> str:
    origin = one.table.origin or Origin()
    parts = [models[number].said() for number in _fits(one, content, chapter) if number in models]
    if origin.columns:
        parts.append(f"{origin.file}, columns {', '.join(origin.columns)}")
    elif not parts:
        parts.append(f"trials.csv by the chapter {chapter.name}" if chapter else origin.file)
    return "; ".join([*parts, *([origin.rows] if origin.rows else [])])


def numbers_of(document: Document, content: Content, models: Mapping[int, ModelFiles]) -> dict[str, Any]:
    """Return what ``numbers.json`` holds.

    Returns
    -------
    dict
        ``models`` (number, formula, rows file, number of rows, first and last line in models.R), ``tables`` (number, whether printed,
        CSV as shown, CSV unrounded, LaTeX file, numbers of models, columns and rows of which file), ``figures``,
        ``paragraphs`` (anchor in the page, heading, first words, numbers of tables and models, origin in words),
        ``dictionary`` (what the study handed over of readers, participants and procedure).
    """
    chapters = _chapters(content)
    tables = []
    printed = {node.number for node in document.nodes if isinstance(node, Numbered)}
    for one in content.all_tables():
        origin = one.table.origin or Origin()
        fits = _fits(one, content, chapters.get(one.number))
        tables.append(
            {
                "number": one.number,
                "title": one.table.title,
                "shown": f"tables/{one.table.name}.csv",
                "unrounded": f"tables/{one.table.name}_full.csv",
                "latex": f"latex/{one.table.name}.tex",
                "printed": one.number in printed,
                "models": fits,
                "file": origin.file if origin.columns or not fits else None,
                "columns": list(origin.columns),
                "rows": origin.rows,
            }
        )
    dictionary = content.tables.dictionary
    return {
        "layout": SCHEMA,
        "models": [
            {
                "number": one.number,
                "title": one.title,
                "formula": one.formula,
                "rows_file": one.rows_file,
                "rows": one.rows,
                "program": "models.R",
                "lines": [one.first_line, one.last_line],
            }
            for one in models.values()
        ],
        "tables": tables,
        "figures": [
            {"number": one.number, "title": one.drawing.title, "file": f"figures/{one.drawing.name}.svg"}
            for one in content.all_figures()
        ],
        "paragraphs": list(_paragraphs(document)),
        "dictionary": {
            name: dictionary.get(name) for name in ("readers", "participants", "procedure", "exclude")
        },
    }


def _paragraphs(document: Document) -> list[dict[str, Any]]:
    found, part, section = [], "", ""
    for node in document.nodes:
        if isinstance(node, Heading):
            part, section = (plain_text(node.text), "") if node.level == 2 else (part, plain_text(node.text))
        elif isinstance(node, Paragraph) and node.anchor:
            found.append(
                {
                    "anchor": node.anchor,
                    "heading": " / ".join(one for one in (part, section) if one),
                    "begins": plain_text(node.text)[:80],
                    "tables": list(node.tables),
                    "models": list(node.models),
                    "from": node.origin,
                }
            )
    return found
