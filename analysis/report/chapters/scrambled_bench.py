"""Scrambled Bench's tables and figures from a study's own run, beside what the paper prints."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.scrambled_bench import Panel, panels_figure, size_figure
from analysis.measures.accuracy import GROUP
from analysis.published.scrambled_bench_study import CATEGORIES, StudyPart, part_cells, study_parts, trials_of
from analysis.rankings import sizes
from analysis.readers import group_order, kinds_of
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.scrambled_bench_tables import paper_tables

TYPES = Panel("Types of scramble (Figure 2)", ("100%", "KF", "KFL"))
RATES = Panel("Share of scrambled words (Figure 3)", ("20%", "50%", "100%"), joined=True)
LETTERS = Panel("Letters that stay (Figure 6)", ("KR2", "KL&KR1", "KF&KR1", "KFL"))
FEWEST_SIZES = 2

METHOD = Markup(
    "Tables and figures after Cao et al. (2023). Recovery: ED is the mean character edit distance of the answer from the intact "
    "text, RR = (Σ shown − Σ answered)/Σ shown. Questions: Acc is the percentage of right answers, failures as wrong; RPG = "
    "(scrambled − substituted)/(intact − substituted). A level is put into the paper’s column by what the items say was done to "
    "them. Ratios are of sums over all answers; 95% percentile bootstraps, 2,000 resamples."
)


def write(material: Material) -> Chapter | None:
    """Write the paper's tables and figures of a study that holds a part of it; None for any other study."""
    tables = material.tables
    parts = study_parts(tables)
    if not parts:
        return None
    blocks: list[Block] = []
    shown: set[str] = set()
    for part in parts:
        own = trials_of(tables, part)
        own = own[own["excluded_reason"].isna() & own["response_status"].notna()]
        if own.empty:
            continue
        material.told(f"Scrambled Bench: {part.data}")
        cells = part_cells(tables, part, str(tables.dictionary["study"]))
        if cells.empty:
            continue
        order = [group for group in group_order(own) if (cells[GROUP] == group).any()]
        kinds = {group: kinds_of(own)[group] for group in order}
        shown |= set(order)
        blocks += _part(part, cells, kinds, tables.dictionary["readers"])
    if not blocks:
        return None
    kinds = kinds_of(tables.trials)
    return Chapter(
        "scrambled-bench",
        "The tables and figures of Scrambled Bench",
        tuple(blocks),
        marks_of(tuple(shown), kinds),
        methods=(METHOD,),
        sources=("cao2023",),
    )


def _part(
    part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str], readers: dict[str, dict[str, object]]
) -> list[Block]:
    manner = "behind examples" if part.few_shot or part.task == "problem" else "without examples"
    kind = {"rec": "Sentences to recover", "qa": "Questions", "problem": "Word problems"}[part.task]
    laid = paper_tables(part, cells, kinds)
    listed = ", ".join(f"[[table:{one.name}]]" for one in laid)
    many = apa.count(int(cells.loc[cells["category"] == "all", "items"].max()))
    told = [
        escape(f"{kind} ({part.data}, {manner}): ")
        + Markup(listed)
        + escape(
            f" {'has' if len(laid) == 1 else 'have'} this study’s readers in the paper’s layout, "
            f"with up to {many} {'items' if part.task == 'qa' else 'answers'} in a cell, "
            f"and below them {'three' if part.task == 'problem' else 'five'} models as the paper prints them."
        )
    ]
    lacking = [name for name in ("Ori", "Sub") if name not in set(cells["column"])]
    if part.task == "qa" and lacking:
        told.append(
            escape(
                f"RPG has no value here: the study has no level {' and none '.join(lacking)} of the paper."
            )
        )
    stem = f"scrambled_bench_{part.table}"
    figures: list[Block] = []
    if part.task != "problem":
        measure, label = ("RR", "Recovery rate") if part.task == "rec" else ("RPG", "Relative gain")
        all_cells = cells[(cells["category"] == "all") & cells[measure].notna()]
        drawn = all_cells.assign(place=all_cells["column"], value=all_cells[measure])
        there = set(drawn["place"])
        panels = [
            Panel(one.title, tuple(place for place in one.places if place in there), one.joined)
            for one in (TYPES, RATES, LETTERS)
        ]
        panels = [one for one in panels if len(one.places) > 1]
        if panels:
            title = f"{label} by scramble and reader: {part.data}, {manner}"
            figures.append(panels_figure(f"{stem}_scrambles", title, drawn, panels, label, kinds))
        figures += _categories(stem, cells, measure, label, kinds)
        figures += _sizes(stem, drawn, label, part, kinds, readers)
    return [Markup(" ").join(told), *laid, *figures]


def _categories(
    stem: str, cells: pd.DataFrame, measure: str, label: str, kinds: dict[str, str]
) -> list[Block]:
    there = [name for name in CATEGORIES if ((cells["category"] == name) & cells[measure].notna()).any()]
    if not there:
        return []
    titles = {"100%": "All letters shuffled", "KF": "First letter kept", "KFL": "First and last letter kept"}
    panels, parts = [], []
    for column, title in titles.items():
        own = cells[(cells["column"] == column) & cells[measure].notna()]
        if own.empty:
            continue
        panels.append(Panel(f"{title} (Figure 4)", ("all", *there)))
        parts.append(own.assign(place=own["category"], value=own[measure], panel=panels[-1].title))
    return [
        panels_figure(
            f"{stem}_categories", f"{label} by category of question and reader", pd.concat(parts), panels, label, kinds
        )
    ]  # fmt: skip


def _sizes(
    stem: str,
    drawn: pd.DataFrame,
    label: str,
    part: StudyPart,
    kinds: dict[str, str],
    readers: dict[str, dict[str, object]],
) -> list[Block]:
    known = sizes({name: readers[name] for name in kinds if name in readers and kinds[name] == "model"})
    own = drawn[drawn["place"] == "100%"]
    own = own.assign(
        parameters=[known[g].parameters if g in known else float("nan") for g in own[GROUP]]
    ).dropna(subset=["parameters"])
    if own[GROUP].nunique() < FEWEST_SIZES:
        return []
    title = f"{label} with all letters shuffled, by number of parameters: {part.data} (Figure 5)"
    return [size_figure(f"{stem}_sizes", title, own, label, kinds)]
