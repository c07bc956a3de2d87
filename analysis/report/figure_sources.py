"""The tables that hold the numbers of each figure, and the sources of the few figures without such a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.names import plain
from analysis.readers import is_several
from analysis.report.apa_tables import Origin
from analysis.report.numbering import Illustrated, Numbered, ReportContent
from analysis.report.results.tables import origin_of_trials
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
        return FigureSource((), origin_of_trials(checked, computed))
    return FigureSource(tuple(table.number for table in in_chapter))


def _in_chapter(figure: Illustrated, content: ReportContent) -> Sequence[Numbered]:
    for part in content.chapters:
        if any(block is figure for block in part.blocks):
            return [block for block in part.blocks if isinstance(block, Numbered)]
    return ()


def _bare(numbered: Numbered) -> str:
    """Return the name of a table without its number."""
    return re.sub(r"^table_[sf]?\d+_", "", numbered.table.name)
