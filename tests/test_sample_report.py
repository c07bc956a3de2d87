"""The sample report in the documentation holds figures and numbers, and nothing of the data set that states no licence."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.sample.keeping import KEPT, keep, number_items, strings_in
from tests.write_sample_report import KEPT as FOLDER


def test_the_sample_report_holds_summaries_alone() -> None:
    assert {one.name for one in FOLDER.iterdir()} == set(KEPT)
    rows = {path.name: len(path.read_text("utf-8").splitlines()) for path in (FOLDER / "tables").iterdir()}
    assert rows and max(rows.values()) < 124, "no table has a row a participant"
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 4e6


@pytest.mark.shared
def test_no_string_that_people_judged_stands_in_the_sample_report(shared: Path) -> None:
    given = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv", usecols=["string", "base"])
    assert list(strings_in(FOLDER, {*given["string"], *given["base"]})) == []


def test_strings_are_found_in_any_file_and_words_of_prose_in_capitals_alone(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").write_text("item,1\nrevomal,2\nMEMORY,3\n", "utf-8")
    (tmp_path / "report.html").write_text("<p>kept in memory of Revomal</p>", "utf-8")
    found = [(path.name, word) for path, word in strings_in(tmp_path, ["revomal", "MEMORY", "other"])]
    assert found == [("report.html", "Revomal"), ("a.csv", "MEMORY"), ("a.csv", "revomal")]


def test_items_have_numbers_in_place_of_names_and_what_is_kept_has_no_trials(tmp_path: Path) -> None:
    names = pd.DataFrame({"item_id": ["MEMORY", "EVIDENT", "MEMORY"]})
    for table in ("items", "trials"):
        names.to_parquet(tmp_path / f"{table}.parquet")
    assert number_items(tmp_path) == {"EVIDENT": "item 01", "MEMORY": "item 02"}
    assert list(pd.read_parquet(tmp_path / "trials.parquet")["item_id"]) == ["item 02", "item 01", "item 02"]
    report = tmp_path / "report"
    for folder in ("tables", "models", "data"):
        (report / folder).mkdir(parents=True)
    for name in ("report.html", "models.R", "references.bib", "trials.csv", "models/model_01.csv"):
        (report / name).write_text("x", "utf-8")
    (report / "numbers.json").write_text(json.dumps({}), "utf-8")
    keep(report, tmp_path / "kept")
    assert {one.name for one in (tmp_path / "kept").iterdir()} == set(KEPT)
