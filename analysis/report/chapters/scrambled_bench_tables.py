"""Tables 1 and 3 to 8 of Scrambled Bench, laid out as in the paper: two rows a reader, and the printed values of five models below."""

from __future__ import annotations

import math

import pandas as pd

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.measures.resampling import Interval, where_it_varies
from analysis.published import all_printed_cells
from analysis.published.scrambled_bench_study import CATEGORIES, COLUMNS, StudyPart
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin

PRINTED = ("GPT-4", "GPT-3.5-turbo", "text-davinci-003", "Falcon-180b", "Llama-2-70b")
"""The five models that the paper's text speaks of."""
IN_PRINT = "In print (Cao et al., 2023)"
FLAG = "†"
_RATE = "Values below 0 are shown; the paper prints them as “< 0”."


def paper_tables(part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str]) -> list[ApaTable]:
    """Lay out a part's cells.

    Parameters
    ----------
    part : StudyPart
    cells : pandas.DataFrame
        From :func:`analysis.published.scrambled_bench_study.part_cells`.
    kinds : dict
        Reader kind of each group, in the order of the rows.

    Returns
    -------
    list of ApaTable
        One; of DREAM with categories three.
    """
    if part.task == "problem":
        return [_problems(part, cells, kinds)]
    columns = [name for name in COLUMNS if (cells["column"] == name).any()]
    names = ("ED", "RR") if part.task == "rec" else ("Acc", "RPG")
    made = [_pairs(part, cells[cells["category"] == "all"], kinds, columns, names)]
    there = [name for name in CATEGORIES if (cells["category"] == name).any()]
    if there:
        made += [
            _by_category(part, cells, kinds, columns, there, table, measure)
            for table, measure in (("7", "Acc"), ("8", "RPG"))
        ]
    return made


def _pairs(
    part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str], columns: list[str], names: tuple[str, str]
) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, kind in kinds.items():
        own = cells[cells[GROUP] == group].set_index("column")
        for place, name in enumerate(names):
            head = marked(group, kind) if place == 0 else ""
            rows.append((head, name, *(_number(own, column, name) for column in columns)))
        rows.append(("", "95% CI", *(_interval(own, column, names[1]) for column in columns)))
    rows += _in_print(part.table, names, columns)
    about = (
        "ED = mean character edit distance from the intact sentence; RR = recovery rate in %"
        if names[0] == "ED"
        else "Acc = % correct, failures as wrong; RPG = relative performance gain in %, where intact text is answered better than "
        "substituted"
    )
    interval = f"95% CI: of {names[1]}, percentile bootstrap. {_flag_note(cells)}"
    shown = "Columns: share of words with all letters shuffled; KF, KFL, KR2, KL&KR1, KF&KR1 as in the paper."
    note = f"{about}. {interval}{_RATE} {shown}"
    return ApaTable(
        f"scrambled_bench_{part.table}",
        f"Scrambled Bench, Table {part.table}: {_title(part)}",
        ("Reader", "Measure", *columns),
        tuple(rows),
        note,
        _origin(part),
        of_paper=True,
    )


def _by_category(
    part: StudyPart,
    cells: pd.DataFrame,
    kinds: dict[str, str],
    columns: list[str],
    categories: list[str],
    table: str,
    measure: str,
) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, kind in kinds.items():
        for place, category in enumerate(("all", *categories)):
            own = cells[(cells[GROUP] == group) & (cells["category"] == category)].set_index("column")
            head = marked(group, kind) if place == 0 else ""
            rows.append((head, category, *(_number(own, column, measure) for column in columns)))
    rows += _in_print(table, [f"{measure} {name}" for name in ("all", *CATEGORIES)], columns)
    flag = _flag_note(cells) if measure == "RPG" else ""
    note = (
        f"{measure} in %; a question may be in several categories. {flag}{_RATE} In print “all” is over 1,024 questions and the "
        "categories over 1,025; here both are over what this study asked."
    )
    return ApaTable(
        f"scrambled_bench_{table}",
        f"Scrambled Bench, Table {table}: {measure} by category of question (DREAM)",
        ("Reader", "Category", *columns),
        tuple(rows),
        note,
        _origin(part),
        of_paper=True,
    )


def _problems(part: StudyPart, cells: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    columns = [name for name in COLUMNS if (cells["examples"] == name).any()]
    problems = [name for name in COLUMNS if (cells["column"] == name).any()]
    rows: list[tuple[str, ...]] = []
    for group, kind in kinds.items():
        for place, problem in enumerate(problems):
            own = cells[(cells[GROUP] == group) & (cells["column"] == problem)].set_index("examples")
            head = marked(group, kind) if place == 0 else ""
            rows.append((head, problem, *(_number(own, column, "Acc") for column in columns)))
    printed = all_printed_cells()
    told = printed[printed["table"] == "1"].set_index(["model", "column", "measure"])["printed"]
    rows.append(Head([IN_PRINT]))
    for model in PRINTED[:3]:
        for place, problem in enumerate(("Ori", "20%", "50%", "100%")):
            found = [
                str(told.get((model, problem, f"Acc examples {column}"), apa.MISSING)) for column in columns
            ]
            rows.append((model if place == 0 else "", problem, *found))
    note = (
        "% correct, failures as wrong. Rows: scramble of the problem; columns: scramble of the worked examples. In print an answer is "
        "what stands behind the last “answer is ”; where a reply was cut at 256 tokens or says it otherwise it is wrong."
    )
    return ApaTable(
        "scrambled_bench_1",
        "Scrambled Bench, Table 1: word problems behind worked examples (AQuA-RAT)",
        ("Reader", "Problem", *(f"Examples {column}" for column in columns)),
        tuple(rows),
        note,
        _origin(part),
        of_paper=True,
    )


def _in_print(table: str, measures: tuple[str, ...] | list[str], columns: list[str]) -> list[tuple[str, ...]]:
    printed = all_printed_cells()
    cells = printed[printed["table"] == table].set_index(["model", "measure", "column"])["printed"]
    rows: list[tuple[str, ...]] = [Head([IN_PRINT])]
    for model in PRINTED:
        for place, measure in enumerate(measures):
            found = [str(cells.get((model, measure, column), apa.MISSING)) for column in columns]
            rows.append((model if place == 0 else "", measure.rpartition(" ")[2], *found))
    return rows


def _number(own: pd.DataFrame, column: str, measure: str) -> str:
    if column not in own.index:
        return apa.MISSING
    value = float(own[measure].astype(float).loc[column])
    if value != value:
        return apa.MISSING
    return apa.number(value, 2) + (FLAG if measure == "RPG" and own["flagged"].loc[column] else "")


def _interval(own: pd.DataFrame, column: str, measure: str) -> str:
    """Write the interval of a ratio; nothing of a column that makes its denominator, where it is what it is."""
    if column not in own.index or own[measure].isna().loc[column]:
        return apa.MISSING
    ends = where_it_varies(Interval(*(float(own[end].astype(float).loc[column]) for end in ("low", "high"))))
    return apa.MISSING if math.isnan(ends.low) else apa.interval(ends.low, ends.high, 1)


def _flag_note(cells: pd.DataFrame) -> str:
    """Say what the mark at a ratio means; nothing where none has it."""
    flagged = "flagged" in cells and (cells["flagged"].astype(bool) & cells["RPG"].notna()).any()
    return (
        f"{FLAG} the interval of intact − substituted includes 0 or is missing, so that the ratio says nothing. "
        if flagged
        else ""
    )


def _title(part: StudyPart) -> str:
    if part.task == "rec":
        return (
            f"sentences recovered {'behind examples' if part.few_shot else 'without examples'} ({part.data})"
        )
    return f"questions about scrambled text ({part.data})"


def _origin(part: StudyPart) -> Origin:
    return Origin(
        columns=("response", "correct", "response_status", "reader_group", "item_id", part.factor),
        rows=f"set {part.set_name}, excluded_reason empty; failures as wrong, missing texts as empty",
    )
