"""Every number of a report stands in the file to which the report traces it, unrounded."""

from __future__ import annotations

import csv
import html
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import apa, load
from analysis.report.chapters import optional_names
from analysis.report.content import gather
from analysis.report.provenance import SAME_NUMBERS
from analysis.report.write import write_files
from tests.analysis.conftest import Rehearsal
from tests.analysis.test_report_r import MODELS, run_in_r, small_study

NUMBER = re.compile(r"(?<![\w.])−?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?![\w])")


@pytest.fixture(scope="module")
def told(rehearsal: Rehearsal) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((rehearsal.page.parent / "numbers.json").read_text("utf-8"))
    return found


def values_in(file: Path) -> list[float]:
    found = []
    with file.open(encoding="utf-8-sig", newline="") as rows:
        for row in csv.reader(rows):
            for cell in row:
                try:
                    found.append(float(cell))
                except ValueError:
                    continue
    return found


def is_written(number: str, values: list[float]) -> bool:
    """Whether one of the values is written so: with as many decimals, with or without the zero before the point."""
    decimals = len(number.partition(".")[2])
    bare = (
        number.replace("−.", "−0.")
        if number.startswith("−.")
        else f"0{number}"
        if number.startswith(".")
        else number
    )
    return any(apa.number(value, decimals) == bare for value in values)


def numbers_in(text: str) -> list[str]:
    return [one for one in NUMBER.findall(text) if re.search(r"\d", one)]


def body_of_table(page: str, number: str) -> str:
    part = page.split(f'<div class="table" id="table-{number}">')[1].split("</table>")[0]
    return part.split("<tbody>")[1]


def test_each_number_in_a_table_of_the_page_is_in_its_unrounded_file(
    rehearsal: Rehearsal, told: dict[str, Any]
) -> None:
    checked = 0
    for one in (one for one in told["tables"] if one["printed"]):
        values = values_in(rehearsal.page.parent / one["unrounded"])
        cells = re.findall(r"<td>(.*?)</td>", body_of_table(rehearsal.html, one["number"]), re.DOTALL)
        for cell in cells:
            for number in numbers_in(html.unescape(cell)):
                if not re.search(r"[<>] \S*$", html.unescape(cell)):
                    assert is_written(number, values), (one["title"], cell)
                    checked += 1
    assert checked > 150


def test_each_statistic_in_a_sentence_is_in_a_table_that_its_paragraph_names(
    rehearsal: Rehearsal, told: dict[str, Any]
) -> None:
    files = {one["number"]: rehearsal.page.parent / one["unrounded"] for one in told["tables"]}
    checked = 0
    for one in told["paragraphs"]:
        if not one["models"]:
            continue
        text = rehearsal.html.split(f'<p id="{one["anchor"]}"')[1].split(">", 1)[1].split("</p>")[0]
        said = html.unescape(re.sub(r"<code>.*?</code>|</?i>", "", text)).replace("\u00a0", " ")
        values = [value for table in one["tables"] for value in values_in(files[table])]
        statistics = re.findall(r"\b(?:M|SD|b|SE|z|OR|ORs|t\([\d.,]+\)) = (−?[\d.,]*\d)", said)
        statistics += [end for ends in re.findall(r"\[([^\]]+)\]", said) for end in ends.split(", ")]
        for number in statistics:
            assert is_written(number, values), (one["begins"], number)
            checked += 1
    assert checked > 60


def test_rows_and_lines_of_each_model_are_where_they_are_said_to_be(
    rehearsal: Rehearsal, told: dict[str, Any]
) -> None:
    folder = rehearsal.page.parent
    lines = (folder / "models.R").read_text("utf-8").splitlines()
    assert len(told["models"]) == len(rehearsal.content.all_fits()) >= 3
    for one, reported in zip(told["models"], rehearsal.content.all_fits(), strict=True):
        assert len(pd.read_csv(folder / one["rows_file"])) == one["rows"] == reported.fit.nobs
        first, last = one["lines"]
        own = lines[first - 1 : last]
        assert own[0] == f"# Model {one['number']}: {reported.title}"
        assert sum(line.startswith("# Model ") for line in own) == 1
        assert any(one["rows_file"] in line for line in own) and one["formula"] in " ".join(own)


def holds(rows: pd.DataFrame, condition: dict[str, Any]) -> pd.Series[bool]:
    """Whether a condition of numbers.json holds of rows of a CSV file, all cells read as text."""
    if "any" in condition:
        return pd.concat([holds(rows, one) for one in condition["any"]], axis=1).any(axis=1)
    cells = rows[condition["column"]]
    if "above" in condition:
        return pd.to_numeric(cells, errors="coerce") > condition["above"]
    if "is" in condition:
        return cells.isin(condition["is"])
    return ~cells.isin(condition["not"])


def walk(page: Path) -> int:
    """Hold the trace of each table and figure of a report against the files beside it; return how many rows were recounted."""
    folder, text = page.parent, page.read_text("utf-8")
    told: dict[str, Any] = json.loads((folder / "numbers.json").read_text("utf-8"))
    lines = (folder / "models.R").read_text("utf-8").splitlines()
    models = {one["number"]: one for one in told["models"]}
    tables: dict[str, pd.DataFrame] = {}
    recounted = 0
    for one in [
        *told["tables"],
        *({"models": [], **figure, "file": figure.get("from")} for figure in told["figures"]),
    ]:
        name = one["title"]
        if "shown" not in one and one["tables"]:
            assert set(one["tables"]) <= {table["number"] for table in told["tables"]}, name
            continue
        assert one["models"] or one["computed"], f"{name}: neither a model nor a computation"
        assert one["models"] or one["file"], f"{name}: no rows"
        for number in one["models"]:
            first, last = models[number]["lines"]
            assert any(models[number]["rows_file"] in line for line in lines[first - 1 : last]), name
        for file in ([one["file"]] if one["file"] else []) + one["beside"]:
            assert file.startswith("numbers.json") or (folder / file).is_file(), (name, file)
        if one["file"] is None:
            continue
        assert one["columns"], f"{name}: no columns"
        if one["file"].startswith("numbers.json"):
            assert told["dictionary"]["readers"], name
            continue
        if one["file"] not in tables:
            tables[one["file"]] = pd.read_csv(folder / one["file"], dtype=str, keep_default_na=False)
        rows = tables[one["file"]]
        assert set(one["columns"]) <= set(rows), (name, set(one["columns"]) - set(rows))
        assert one["where"] is not None, f"{name}: which rows?"
        kept = pd.Series(True, index=rows.index)
        for condition in one["where"]:
            kept &= holds(rows, condition)
        assert kept.sum() == one["rows"] > 0 and len(rows) == one["of_rows"], name
        recounted += 1
        if "shown" in one and one["where"] and not one["further"]:
            shown = pd.read_csv(folder / one["unrounded"], encoding="utf-8-sig", dtype=str)
            if "Trials" in shown:
                assert pd.to_numeric(shown["Trials"], errors="coerce").sum() == one["rows"], name
        if one.get("printed"):
            part = text.split(f'id="table-{one["number"]}"')[1].split("</div>")[0]
            assert f"{one['rows']:,} of {one['of_rows']:,} rows" in part, name
    return recounted


def test_each_table_and_figure_is_traced_to_rows_and_to_a_model_or_a_computation(
    rehearsal: Rehearsal, told: dict[str, Any]
) -> None:
    assert walk(rehearsal.page) >= 5
    for one in (one for one in told["tables"] if one["printed"]):
        part = rehearsal.html.split(f'id="table-{one["number"]}"')[1].split("</div>")[0]
        assert one["unrounded"] in part and (rehearsal.page.parent / one["latex"]).is_file()
        for model in one["models"]:
            assert re.search(rf"model {model}: models/model_{model:02d}\.csv \(.* models\.R ", part)


@pytest.mark.full
@pytest.mark.r
@pytest.mark.parametrize("name", MODELS)
def test_every_chapter_is_traced_and_its_models_agree_with_lme4(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    gathered = gather(load(small_study(name, tmp_path / "handover", request)), wanted=optional_names())
    titles = [one.title for one in gathered.all_fits()]
    assert [part for part in MODELS[name] if not any(part in title for title in titles)] == []
    page = write_files(gathered, tmp_path, datetime(2026, 11, 21, tzinfo=UTC))
    assert walk(page) >= 8
    status, said = run_in_r(page.parent)
    assert sorted(said) == list(range(1, len(titles) + 1))
    assert {line.split(";")[0] for line in said.values()} == {"agrees"}, said
    assert status == 0


@pytest.mark.parametrize(("pattern", "stems"), SAME_NUMBERS)
def test_tables_with_the_numbers_of_a_figure_are_named_by_groups_of_its_name(
    pattern: str, stems: tuple[str, ...]
) -> None:
    groups = [f"g{number}" for number in range(re.compile(pattern).groups)]
    assert all("{" not in stem.format(*groups) for stem in stems)
