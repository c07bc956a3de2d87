"""Parts of a report's chapter that tests read: tables by name, rows under a head, figures, and paragraphs as plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from analysis import Tables
from analysis.figures import Drawing
from analysis.planned import plans
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material
from analysis.report.inline import plain_text
from analysis.results import Analysis


def material_of(tables: Tables, analyses: Iterable[Analysis] = (), **more: Any) -> Material:
    return Material(tables, tuple(analyses), kinds_of(tables.trials), **more)


def not_carried_out(tables: Tables) -> list[Analysis]:
    """Return analyses of a study's plans without results, for chapters that need the plans alone."""
    return [Analysis(plan, None, (), (), (), ()) for plan in plans(tables)]


def chapter_of(write: Callable[[Material], Chapter | None], given: Tables | Material) -> Chapter:
    """Write a chapter that must be there."""
    chapter = write(given if isinstance(given, Material) else material_of(given))
    assert chapter is not None
    return chapter


def tables_in(chapter: Chapter) -> dict[str, ApaTable]:
    return {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}


def drawings_in(chapter: Chapter) -> dict[str, Drawing]:
    return {one.name: one for one in chapter.blocks if isinstance(one, Drawing)}


def words_in(chapter: Chapter) -> str:
    return " ".join(plain_text(one) for one in chapter.blocks if isinstance(one, str)).replace("\u00a0", " ")


def rows_by_head(table: ApaTable) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows under each head; those above the first head under no name."""
    head, found = "", dict[str, list[tuple[str, ...]]]({"": []})
    for row in table.rows:
        if isinstance(row, Head):
            head = str(row[0])
            found.setdefault(head, [])
        else:
            found[head].append(row)
    return {head: rows for head, rows in found.items() if head or rows}


def rows_in(table: ApaTable) -> list[tuple[str, ...]]:
    """Return the rows of a table without its heads."""
    return [row for row in table.rows if not isinstance(row, Head)]


def rows_under(table: ApaTable, head: str) -> list[tuple[str, ...]]:
    """Return the rows under the first head that begins so."""
    return next(rows for own, rows in rows_by_head(table).items() if own.startswith(head))
