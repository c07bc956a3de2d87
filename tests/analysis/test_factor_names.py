from __future__ import annotations

import ast
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import analysis
from analysis import Tables, load
from analysis.frames import TAKEN
from analysis.names import MARK, as_given
from analysis.report import write_report
from analysis.report.content import CALCULATED, marked
from tests.analysis.letter_study import LEVELS, study_rows, write_handover

FACTORS_OF_PAPERS = {"condition", "examples", "making", "task", "text"}
"""Factors that every study with a paper's materials has; chapters look for them by name."""


def _tables(name: str, folder: Path) -> Tables:
    """Return a study with this factor, which its plan names in every way in which a plan can."""
    rows = study_rows(human=4, models=("restorer",), items=8).rename(columns={"position": name})
    rows["font"] = ["plain", "cursive"] * (len(rows) // 2)
    rows["rt"] = None  # one time is enough
    plan = {
        "measure": {"human": "correct"},
        "compare": name,
        "between": ["human"],
        "contrasts": ["final - intact"],
    }
    factors = {
        name: {"levels": LEVELS, "reference": "intact"},
        "font": {"levels": ["plain", "cursive"], "reference": "plain"},
    }
    return load(write_handover(folder / name, rows, factors=factors, planned={"p": plan}))


def _written(folder: Path) -> dict[str, str]:
    """Return the names and texts of a report's files; of a Word file its document."""
    found = {}
    for file in folder.rglob("*"):
        if file.suffix == ".docx":
            with zipfile.ZipFile(file) as parts:
                found[file.name] = parts.read("word/document.xml").decode()
        elif file.is_file() and file.suffix != ".png":
            found[file.name] = file.read_text("utf-8")
        else:
            found[file.name] = ""
    return found


def test_a_report_has_the_same_numbers_and_the_users_name_whatever_a_factor_is_called(tmp_path: Path) -> None:
    """Factors named like calculated columns ended reports in a traceback, and then were printed as ``kind_``."""
    numbers = {}
    for name in ("spelling", "item"):
        written = _written(write_report(_tables(name, tmp_path), tmp_path / f"{name}-report").parent)
        numbers[name] = sorted(re.findall(r"-?\d+\.\d+", written["numbers.json"]))
        assert not [file for file, text in written.items() if MARK in file + text]
        assert f"condition_correct_{name}.svg" in written
        assert f"by {name}" in written["report.html"].lower()
        assert name in written["trials.csv"].split("\n", 1)[0].replace('"', "").split(",")
    assert numbers["item"] == numbers["spelling"]
    header, *_ = written["model_01.csv"].splitlines()
    assert {"item", "item_factor"} <= set(header.split(","))  # the item of a model, and the factor


def test_a_factor_is_marked_wherever_a_study_names_it(tmp_path: Path) -> None:
    tables = _tables("mean", tmp_path)
    planned = {
        "pair": {"compare": ["mean", "font"], "levels": {"mean": ["intact", "final"]}, "contrasts": ["final - intact"]},
        "own": {
            "compare": "font",
            "within": {"mean": "final"},
            "formula": "log_rt ~ mean * mean(mean) + my.mean + (mean | item)",
            "coding": {"mean": "sum"},
        },
    }  # fmt: skip
    effects = {"mean": {"final": -1.0}, "font x mean": {"cursive x final": 0.5}}
    truth = {
        "accuracy": {"effects": effects},
        "lapses": {"rate": 0.0},
        "regions": {"scale": "log_ms", "effects": {"mean": effects}},
        "steps": {"mean": {"effects": effects}},
    }
    dictionary = tables.dictionary | {"planned": planned, "truth": truth, "between": {"mean": {"final": {}}}}
    crossed = tables.trials.assign(**{"mean × font": "final/plain"})
    found = marked(replace(tables, trials=crossed, dictionary=dictionary))
    own, name = found.dictionary, f"mean{MARK}"
    assert list(found.factors) == [name, "font"]
    assert {name, f"{name} × font"} <= set(found.trials) and "mean" not in found.trials
    assert own["planned"]["pair"]["compare"] == [name, "font"]
    assert own["planned"]["pair"]["levels"] == {name: ["intact", "final"]}
    assert own["planned"]["own"]["within"] == {name: "final"}
    assert own["planned"]["own"]["formula"] == f"log_rt ~ {name} * mean({name}) + my.mean + ({name} | item)"
    assert own["planned"]["own"]["coding"] == {name: "sum"}
    renamed = {name: {"final": -1.0}, f"font x {name}": {"cursive x final": 0.5}}
    assert own["truth"]["accuracy"]["effects"] == renamed
    assert own["truth"]["regions"]["effects"] == {"mean": renamed}
    assert own["truth"]["steps"] == {"mean": {"effects": renamed}}
    assert own["between"] == {name: {"final": {}}}
    assert as_given(str(own)) == str(dictionary)


def test_a_formula_of_a_factor_called_like_the_groups_of_models_keeps_the_groups(tmp_path: Path) -> None:
    tables = _tables("item", tmp_path)
    plan = {"compare": "item", "formula": "correct ~ item + (1 + item || participant) + (1 | item)"}
    found = marked(replace(tables, dictionary=tables.dictionary | {"planned": {"p": plan}}))
    name = f"item{MARK}"
    assert found.dictionary["planned"]["p"] == {
        "compare": name,
        "formula": f"correct ~ {name} + (1 + {name} || participant) + (1 | item)",
    }


def test_tables_of_other_factors_stay_as_they_are(tmp_path: Path) -> None:
    tables = _tables("spelling", tmp_path)
    assert marked(tables) is tables


@pytest.mark.parametrize("folder", ["analysis", "experiment/papers"])
def test_every_column_that_a_report_adds_to_a_table_is_known(folder: str) -> None:
    root = Path(analysis.__file__).parents[1]
    added = {
        keyword.arg
        for file in (root / folder).rglob("*.py")
        if "reproduc" not in str(file)  # released tables of papers, which have no factors of a study
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "assign"
        for keyword in node.keywords
        if keyword.arg and keyword.arg[0].islower()
    }
    assert added - CALCULATED - TAKEN - FACTORS_OF_PAPERS == set()
