"""Scrambled Bench's tables and figures from a study's run, with the paper's values for comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis import apa
from analysis.figures.drawing import TALLEST, WIDTH, Drawing, MarkStyle, looks, shortened, shown_of, styled
from analysis.figures.marks import INK, handle, key_below, numbered, percent, points
from analysis.figures.panels import LOWEST, Room, deepest, lettered, readers_by_place, stacked
from analysis.measures.accuracy import GROUP
from analysis.measures.resampling import BootstrapInterval, where_it_varies
from analysis.rankings import sizes
from analysis.readers import group_order, kinds_of, marked
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from experiment.papers.scrambled_bench.chapter.measures import (
    COLUMNS,
    StudyPart,
    part_cells,
    study_parts,
    trials_of,
)
from experiment.papers.scrambled_bench.chapter.reproduction import CATEGORIES, all_printed_cells

WORDS = Path(__file__).with_name("figures.yaml")

ROW, LEGEND_ROW = 2.1, 0.2
LONGEST_NAME = 44
LABELS = {"RR": "Recovery rate", "RPG": "Relative gain"}


@dataclass(frozen=True)
class PanelAxis:
    """One panel: its title, the values of ``place`` from left to right, and whether they are a scale along which points are joined."""

    title: str
    places: tuple[str, ...]
    joined: bool = False


def panels_figure(
    name: str,
    title: str,
    cells: pd.DataFrame,
    panels: Sequence[PanelAxis],
    measure: str,
    kinds: dict[str, str],
) -> Drawing:
    """Draw a point for every value, panels below each other; Scrambled Bench draws bars and leaves values below 0 out."""
    shown = cells[
        cells["value"].notna() & cells["place"].isin([at for panel in panels for at in panel.places])
    ]
    look = shown_of(kinds, set(shown[GROUP]))
    foot = LEGEND_ROW * math.ceil(len(look) / 2) + 0.35
    depth = deepest(panel.places for panel in panels)
    row = min(ROW, (TALLEST - foot) / len(panels) - 0.55 - depth)
    room = stacked(row, 0.1 * WIDTH, depth, foot, above=0.4, right=0.03 * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for number, (axes, panel) in enumerate(zip(drawn, panels, strict=True)):
            panel_cells = cells[cells["panel"] == panel.title] if "panel" in cells else cells
            shown_places = [place for place in panel.places if (panel_cells["place"] == place).any()]
            readers_by_place(axes, panel_cells, shown_places, look, join=1.3 if panel.joined else 0.0)
            axes.set_ylabel(LABELS[measure])
            axes.set_title(lettered(number, len(panels), panel.title))
        _legend(figure, look)
    absent = [mark.label for group, mark in looks(kinds).items() if group not in look]
    values = {"title": title, "shown": shown, "absent": absent, "lowest": LOWEST, "measure": measure}
    return Drawing.described(name, figure, look, WORDS / "scrambled_bench", **values)


def sizes_figure(name: str, title: str, cells: pd.DataFrame, label: str, kinds: dict[str, str]) -> Drawing:
    """Draw a value against the number of parameters, on a logarithmic scale."""
    look = shown_of(kinds, set(cells[GROUP]))
    room = Room(
        2.1, left=0.1 * WIDTH, right=0.03 * WIDTH, top=0, above=0.4, below=0.5 + LEGEND_ROW * math.ceil(len(look) / 2)
    )  # fmt: skip
    with styled():
        figure, (axes,) = room.panels(1)
        for group, mark in look.items():
            group_cells = cells[cells[GROUP] == group]
            points(axes, mark, group_cells["parameters"], group_cells["value"], size=6, edge=1.4)
        axes.set(xscale="log", xlabel="Parameters", ylabel=label)
        axes.axhline(0, color=INK, lw=0.8, zorder=1)
        numbered(axes.yaxis, percent)
        _legend(figure, look)
    return Drawing.described(name, figure, look, WORDS / "scrambled_bench_sizes", title=title, cells=cells)


def _legend(figure: Figure, look: Mapping[str, MarkStyle]) -> None:
    handles = [handle(mark, shortened(mark.label, LONGEST_NAME)) for mark in look.values()]
    key_below(figure, handles, 2, handlelength=3.2, labelspacing=0.25)


TYPES = PanelAxis("Types of scramble (as in their Figure 2)", ("100%", "KF", "KFL"))
RATES = PanelAxis("Share of scrambled words (as in their Figure 3)", ("20%", "50%", "100%"), joined=True)
LETTERS = PanelAxis("Letters that stay (as in their Figure 6)", ("KR2", "KL&KR1", "KF&KR1", "KFL"))
FEWEST_SIZES = 2
IN_PRINT = "In print (Cao et al., 2023)"

LAYOUT = ChapterLayout(Path(__file__).parent)
PRINTED = ("GPT-4", "GPT-3.5-turbo", "text-davinci-003", "Falcon-180b", "Llama-2-70b")
"""The five models that the paper's text discusses."""
FLAG = "†"
Row = dict[str, Any]


def write(material: Material) -> Chapter | None:
    """Write the paper's tables and figures of a study that holds a part of it; None for any other study."""
    tables = material.tables
    parts = study_parts(tables)
    if not parts:
        return None
    blocks: list[Block] = []
    shown: set[str] = set()
    for part in parts:
        used_trials = trials_of(tables, part)
        used_trials = used_trials[
            used_trials["excluded_reason"].isna() & used_trials["response_status"].notna()
        ]
        if used_trials.empty:
            continue
        material.told(f"Scrambled Bench: {part.data}")
        cells = part_cells(tables, part, str(tables.dictionary["study"]))
        if cells.empty:
            continue
        order = [group for group in group_order(used_trials) if (cells[GROUP] == group).any()]
        kinds = {group: kinds_of(used_trials)[group] for group in order}
        shown |= set(order)
        blocks += _part(part, cells, kinds, tables.dictionary["readers"])
    methods = [LAYOUT.sentences("methods", tasks={part.task for part in parts})]
    return LAYOUT.chapter("scrambled-bench", blocks, shown, kinds_of(tables.trials), methods)


def _part(
    part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str], readers: dict[str, dict[str, object]]
) -> list[Block]:
    manner = "after examples" if part.few_shot or part.task == "problem" else "without examples"
    stem = f"scrambled_bench_{part.table}"
    figures: list[Block] = []
    if part.task != "problem":
        measure = "RR" if part.task == "rec" else "RPG"
        label = LABELS[measure]
        drawn = cells[(cells["category"] == "all") & cells[measure].notna()]
        drawn = drawn.assign(place=drawn["column"], value=drawn[measure])
        places = set(drawn["place"])
        panels = [
            PanelAxis(axis.title, tuple(place for place in axis.places if place in places), axis.joined)
            for axis in (TYPES, RATES, LETTERS)
        ]
        panels = [panel for panel in panels if len(panel.places) > 1]
        if panels:
            title = f"{label} by scramble and reader: {part.data}, {manner}"
            figures.append(panels_figure(f"{stem}_scrambles", title, drawn, panels, measure, kinds))
        figures += _categories(stem, cells, measure, kinds)
        by_size = _sizes(drawn, kinds, readers)
        if by_size[GROUP].nunique() >= FEWEST_SIZES:
            title = f"{label} with all letters shuffled, by number of parameters: {part.data} (Figure 5)"
            figures.append(sizes_figure(f"{stem}_sizes", title, by_size, label, kinds))
    return LAYOUT.blocks(
        "part",
        part=part,
        manner=manner.replace("behind", "after"),
        laid=_tables(part, cells, kinds),
        figures=figures,
        many=int(cells.loc[cells["category"] == "all", "items"].max()),
        lacking=[name for name in ("Ori", "Sub") if name not in set(cells["column"])],
    )


def _tables(part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str]) -> list[ApaTable]:
    """Lay out a part's cells in one table; those of DREAM with categories in three."""
    if part.task == "problem":
        return [_problems(part, cells, kinds)]
    columns = [name for name in COLUMNS if (cells["column"] == name).any()]
    names = ("ED", "RR") if part.task == "rec" else ("Acc", "RPG")
    overall = cells[cells["category"] == "all"].set_index("column")
    measured: Lines = {name: (overall, partial(_number, measure=name)) for name in names}
    measured["95% CI"] = overall, partial(_interval, measure=names[1])
    title = f"questions about scrambled text ({part.data})"
    if part.task == "rec":
        title = f"sentences recovered {'after' if part.few_shot else 'without'} examples ({part.data})"
    values: dict[str, Any] = {
        "title": title,
        "is_answered": part.task == "qa",
        "is_flagged": _is_flagged(overall),
    }
    rows = _by_reader(measured, columns, kinds) + _in_print(part.table, names, columns)
    tables = [_laid("pairs", part, rows, columns, what="Measure", **values)]
    categories = [name for name in CATEGORIES if (cells["category"] == name).any()]
    for table, measure in (("7", "Acc"), ("8", "RPG")) if categories else ():
        by_category: Lines = {
            name: (cells[cells["category"] == name].set_index("column"), partial(_number, measure=measure))
            for name in ("all", *categories)
        }
        printed = _in_print(table, [f"{measure} {name}" for name in ("all", *CATEGORIES)], columns)
        values = {"measured": measure, "is_flagged": measure == "RPG" and _is_flagged(cells)}
        rows = _by_reader(by_category, columns, kinds) + printed
        tables.append(_laid("categories", part, rows, columns, table, what="Category", **values))
    return tables


Lines = dict[str, tuple[pd.DataFrame, Callable[[pd.DataFrame, str], str]]]
"""Lines of a reader, each with the cells of all readers by column and what writes one of them."""


def _by_reader(lines: Lines, columns: Sequence[str], kinds: dict[str, str]) -> list[Row]:
    """Return the same lines of each reader."""
    rows: list[Row] = []
    for group, kind in kinds.items():
        group_lines = {name: (cells[cells[GROUP] == group], write) for name, (cells, write) in lines.items()}
        texts = {name: {c: write(cells, c) for c in columns} for name, (cells, write) in group_lines.items()}
        rows += _rows(marked(group, kind), texts)
    return rows


def _problems(part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    columns = [name for name in COLUMNS if (cells["examples"] == name).any()]
    lines: Lines = {
        name: (cells[cells["column"] == name].set_index("examples"), partial(_number, measure="Acc"))
        for name in COLUMNS
        if (cells["column"] == name).any()
    }
    rows = _by_reader(lines, columns, kinds)
    printed = _printed("1")
    for model in PRINTED[:3]:
        by_problem = {
            name: {c: printed.get((model, f"Acc examples {c}", name), apa.MISSING) for c in columns}
            for name in ("Ori", "20%", "50%", "100%")
        }
        rows += _rows(model, by_problem, IN_PRINT)
    return _laid("problems", part, rows, columns, "1", what="Problem", head="Examples ")


def _laid(
    key: str, part: StudyPart, rows: list[Row], columns: list[str], table: str = "", **values: Any
) -> ApaTable:
    cells = [cell for row in rows for cell in row["cells"].values()]
    facts = {
        "head": "",
        "number_of": table or part.table,
        "columns": columns,
        "part_of": part,
        "has_shares": any(column.endswith("%") for column in columns),
        "kept": [column for column in columns if column.startswith("K")],
        "is_below_0": any(cell.startswith(("−", "< 0")) for cell in cells),
        **values,
    }
    return LAYOUT.table(key, rows, f"scrambled_bench_{facts['number_of']}", **facts)


def _rows(reader: str, cells: dict[str, dict[str, str]], part: str = "") -> list[Row]:
    """Return a reader's rows, of which the first names the reader."""
    return [
        {"part": part, "reader": "" if index else reader, "measure": name, "cells": row_cells}
        for index, (name, row_cells) in enumerate(cells.items())
    ]


def _in_print(table: str, measures: Sequence[str], columns: list[str]) -> list[Row]:
    printed = _printed(table)
    rows: list[Row] = []
    for model in PRINTED:
        by_measure = {
            measure.rpartition(" ")[2]: {c: printed.get((model, measure, c), apa.MISSING) for c in columns}
            for measure in measures
        }
        rows += _rows(model, by_measure, IN_PRINT)
    return rows


def _printed(table: str) -> dict[Any, str]:
    """Return a table's printed cells by model, measure and column."""
    cells = all_printed_cells()
    keys = ["model", "measure", "column"]
    return cells[cells["table"] == table].set_index(keys)["printed"].astype(str).to_dict()


def _number(cells: pd.DataFrame, column: str, measure: str) -> str:
    value = float(cells[measure].astype(float).get(column, math.nan))
    if math.isnan(value):
        return apa.MISSING
    return apa.number(value, 2) + (FLAG if measure == "RPG" and cells["flagged"].loc[column] else "")


def _interval(cells: pd.DataFrame, column: str, measure: str) -> str:
    """Write the interval of a ratio; nothing of a column that makes its denominator, where it is what it is."""
    if column not in cells.index or cells[measure].isna().loc[column]:
        return apa.MISSING
    ends = where_it_varies(
        BootstrapInterval(*(float(cells[end].astype(float).loc[column]) for end in ("low", "high")))
    )
    return apa.MISSING if math.isnan(ends.low) else apa.interval(ends.low, ends.high, 1)


def _is_flagged(cells: pd.DataFrame) -> bool:
    """Return whether a ratio of the cells has the mark."""
    return "flagged" in cells and bool((cells["flagged"].astype(bool) & cells["RPG"].notna()).any())


def _categories(stem: str, cells: pd.DataFrame, measure: str, kinds: dict[str, str]) -> list[Block]:
    titles = {"100%": "All letters shuffled", "KF": "First letter kept", "KFL": "First and last letter kept"}
    drawn = cells[cells["column"].isin(titles) & cells[measure].notna()]
    present = [name for name in CATEGORIES if (drawn["category"] == name).any()]
    if not present:
        return []
    drawn = drawn.assign(
        place=drawn["category"], value=drawn[measure], panel=drawn["column"].map(titles) + " (Figure 4)"
    )
    shown = [f"{title} (Figure 4)" for column, title in titles.items() if (drawn["column"] == column).any()]
    panels = [PanelAxis(title, ("all", *present)) for title in shown]
    title = f"{LABELS[measure]} by category of question and reader"
    return [panels_figure(f"{stem}_categories", title, drawn, panels, measure, kinds)]


def _sizes(drawn: pd.DataFrame, kinds: dict[str, str], readers: dict[str, dict[str, object]]) -> pd.DataFrame:
    """Return the values of models of known sizes with all letters shuffled."""
    models = {name: readers[name] for name in kinds if name in readers and kinds[name] == "model"}
    parameters = {name: size.parameters for name, size in sizes(models).items()}
    shuffled = drawn[(drawn["place"] == "100%") & drawn[GROUP].isin(parameters)]
    return shuffled.assign(parameters=shuffled[GROUP].map(parameters).astype(float)).dropna(
        subset=["parameters"]
    )
