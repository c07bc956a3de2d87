"""A mapping of columns: codes are text as they are written, and each fault is told with its line, value and form."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from experiment.models.imports import read_mapping
from stimuli.errors import UserError
from tests.experiment.models.test_imports import MAPPING, ROWS, STUDY, take


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("study.yaml", STUDY), ("map.yaml", MAPPING), ("trials.csv", ROWS)):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def mapping(folder: Path, text: str) -> Path:
    file = folder / "map.yaml"
    file.write_text(f"reader: p\nitem: i\n{text}\n", "utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("response: {column: key, correct: key}", "response.correct is not a setting; known here: column, map"),
        ("response: {colum: key}", "response.colum is not a setting; did you mean 'column'?"),
        ("response: key\nlist: [1]", "line 4: list is [\"1\"]; it should be a column, `{column: NAME"),
        ("response: key\nlist: {value: }", "line 4: list.value is empty; it should be text"),
        ("response: key\nrt: {column: rt, unit: sec}", "rt.unit is \"sec\"; allowed: ms, s"),
        ("response: {column: key, map: {j: [a]}}", "line 3: response.map.j is [\"a\"]; it should be text"),
        ("response: key\nshow: string", "as `{string: string}`"),
        ("response: key\nitem: z", "line 4: 'item' is given twice (first on line 2)"),
        ("list: x", "response is missing"),
    ],
)  # fmt: skip
def test_each_fault_is_told_with_line_value_and_form(folder, text, said):
    with pytest.raises(UserError) as error:
        read_mapping(mapping(folder, text))
    assert said in error.value.message and "schemas" not in error.value.message


def test_several_faults_are_told_at_once(folder):
    with pytest.raises(UserError) as error:
        read_mapping(mapping(folder, "response: key\nconditon: {a: b}\nreader_kind: modell"))
    assert "line 4: conditon is not a setting; did you mean 'condition'?" in error.value.message
    assert (
        "line 5: reader_kind is \"modell\"; allowed: human, model. Did you mean 'model'?"
        in error.value.message
    )


@pytest.mark.parametrize("listed", ["0", "²", "one", "1.5", "-1"])
def test_a_list_that_is_no_whole_number_from_1_is_refused(folder, listed):
    (folder / "map.yaml").write_text(MAPPING.replace("list: list", f"list: {{value: '{listed}'}}"), "utf-8")
    refused = take(folder)
    assert refused.exit_code == 2 and f"the list is {listed!r}; it must be a whole number" in refused.output


def test_files_that_are_no_text_are_told_as_such(folder):
    (folder / "map.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8"):
        read_mapping(folder / "map.yaml")
    (folder / "map.yaml").write_text(MAPPING, "utf-8")
    whole = gzip.compress((ROWS * 50).encode())
    for content in (whole[: len(whole) // 2], b"participant,list"):
        (folder / "cut.csv.gz").write_bytes(content)
        refused = take(folder, table=folder / "cut.csv.gz")
        assert refused.exit_code == 2 and "not a complete gzip file" in refused.output
    (folder / "t.jsonl").write_text(json.dumps({"participant": "P"}) + "\n[1]\n", "utf-8")
    assert "line 2 is not a JSON object" in take(folder, table=folder / "t.jsonl").output
