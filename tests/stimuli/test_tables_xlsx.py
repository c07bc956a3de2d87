"""XLSX workbooks: cells are text as they are seen, and what a sheet cannot give is said."""

from __future__ import annotations

import datetime

import openpyxl
import pytest

from stimuli.corpora.tables import as_seen, describe_table, read_table
from stimuli.errors import UserError


def workbook(folder, rows, *, formats=None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    path = folder / "t.xlsx"
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("value", "number_format", "seen"),
    [
        ("007", "General", "007"),
        (7, "000", "007"),
        (3, "General", "3"),
        (3.0, "General", "3"),
        (3.5, "General", "3.5"),
        (3.5, "0.00", "3.50"),
        (0.1 + 0.2, "General", "0.3"),
        (2.5, "0", "3"),
        (0.25, "0%", "25%"),
        (1234567.5, "#,##0.00", "1,234,567.50"),
        (-7, "000", "-007"),
        (1e20, "General", "1e+20"),
        (True, "General", "TRUE"),
        (None, "General", ""),
        (datetime.datetime(2026, 11, 21), "dd/mm/yy", "2026-11-21"),
        (datetime.datetime(2026, 11, 21, 14, 30), "General", "2026-11-21 14:30:00"),
        (datetime.time(14, 30), "General", "14:30:00"),
    ],
)
def test_a_cell_is_written_as_it_is_seen(value, number_format, seen):
    assert as_seen(value, number_format) == seen


def test_the_first_filled_row_is_the_header_and_empty_columns_are_left_out(tmp_path):
    path = workbook(
        tmp_path,
        [
            [],
            [None, "item", "sentence", None, "list"],
            [None, 7, " Über alles ", None, 3.0],
            [],
            [None, "b", "x", None, 2],
        ],
        formats={"B3": "000"},
    )
    table = read_table(path, required=["item", "sentence"])
    assert table.rows == (
        {"item": "007", "sentence": "Über alles", "list": "3"},
        {"item": "b", "sentence": "x", "list": "2"},
    )
    assert table.numbers == (3, 5)
    assert (table.description.format, table.description.encoding, table.description.delimiter) == (
        "xlsx",
        None,
        None,
    )


def test_a_sheet_is_read_by_name_and_others_are_told(tmp_path):
    path = workbook(tmp_path, [["item"], ["a"]])
    book = openpyxl.load_workbook(path)
    book.create_sheet("words").append(["item"])
    book["words"].append(["b"])
    book.save(path)
    assert read_table(path, sheet="words")[0] == {"item": "b"}
    assert read_table(path)[0] == {"item": "a"}
    assert any("'words'" in note for note in describe_table(path).notes)
    with pytest.raises(UserError, match="Did you mean 'words'"):
        read_table(path, sheet="word")


def test_a_formula_without_a_result_and_an_error_are_bad_rows(tmp_path):
    path = workbook(tmp_path, [["item", "n"], ["a", "=1+1"], ["b", "#N/A"], ["c", 1]])
    with pytest.raises(UserError, match="line 2: cell B2 holds a formula without its result"):
        read_table(path)
    table = read_table(path, on_bad="skip")
    assert [row["item"] for row in table] == ["c"]
    assert [(bad.line, "B3" in bad.reason) for bad in table.bad] == [(2, False), (3, True)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_workbook_cut_in_the_middle_is_named(tmp_path, share):
    path = workbook(tmp_path, [["item", "text"], *([n, f"text {n}"] for n in range(200))])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(UserError, match=r"t\.xlsx is no complete XLSX workbook"):
        read_table(path)
