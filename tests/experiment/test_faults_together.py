"""`wrods check` reports every problem of a study at once, each with file, line, value, rule and nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from experiment.cli import main

STUDY = """\
wrods: 1
study: many
title: Many faults
seed: 7
participants: {wantd: 20}
materials:
  sentences: sentences.csv
  scramble: {words: starred}
design:
  factors:
    position: {intact: none, initial: {transpose: inital}}
procedure:
  - consent: consent.md
  - practice: {items: practice.csv}
  - block:
      trial:
        - read: {show: sentence}
        - choose: {show: question, keys: {"Yes": banana, "No": f}}
  - debrief: debreif.md
analysis:
  planned:
    first: {measure: correct, compare: positon, between: [human]}
    second: {measure: correct, compare: position, between: [humans], contrasts: [final - intact]}
"""
SENTENCES = (
    "item,sentence,question,answer\ns1,The *garden* is green.,Is it?,Yes\ns2,A *market* opens.,Does it?,No\n"
)
PRACTICE = "item,sentence,question,answer,position\np1,The *basket* is full.,Is it?,Yes,intact\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(STUDY, "utf-8")
    (tmp_path / "sentences.csv").write_text(SENTENCES, "utf-8")
    (tmp_path / "practice.csv").write_text(PRACTICE, "utf-8")
    for name in ("consent", "debrief"):
        (tmp_path / f"{name}.md").write_text("Some text.", "utf-8")
    return tmp_path


def told(folder: Path, *changes: tuple[str, str, str]) -> list[str]:
    """Return what check says of a study whose files were changed by replacements."""
    for name, old, new in changes:
        file = folder / name
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")
    result = CliRunner().invoke(main, ["check", str(folder)])
    assert result.exit_code == 2, result.output
    return result.output.removeprefix("Error: ").splitlines()


RIGHT = (
    ("study.yaml", "wantd", "wanted"),
    ("study.yaml", "inital", "initial"),
    ("study.yaml", "banana", "j"),
    ("study.yaml", "debreif", "debrief"),
    ("study.yaml", "positon", "position"),
    ("study.yaml", "humans", "human"),
    ("study.yaml", "final - intact", "initial - intact"),
)


def test_every_fault_of_a_study_is_reported_at_once_in_the_order_of_its_lines(folder):
    faults = [line for line in told(folder) if not line.startswith("  ")]
    expected = [
        ("line 5: participants.wantd", "did you mean 'wanted'"),
        ("line 11: design.factors.position.initial", "inital"),
        ("line 18: procedure[3].block.trial[2].choose.keys.Yes", "no keyboard has this key"),
        ("line 19: procedure[4].debrief", "'debreif.md'"),
        ("line 22: analysis.planned.first.compare", "'positon'"),
        ("line 23: analysis.planned.second.between[1]", "'humans'"),
        ("line 23: analysis.planned.second.contrasts[1]", "'final - intact'"),
    ]
    assert len(faults) == len(expected), "\n".join(faults)
    for fault, (place, said) in zip(faults, expected, strict=True):
        assert fault.startswith(f"study.yaml, {place}"), fault
        assert said in fault


def test_faults_of_tables_stand_beside_those_of_the_plan(folder):
    bad_plan = [change for change in RIGHT if change[2] != "position"]
    lines = told(folder, *bad_plan, ("practice.csv", "position", "posiiton"), ("sentences.csv", "s2,", "s1,"))
    said = "\n".join(lines)
    assert "practice.csv: column 'posiiton' is not read; did you mean 'position'?" in said
    assert "sentences.csv, line 3: item 's1' is listed twice" in said
    assert "compare is 'positon'" in said


def test_a_fault_that_another_one_causes_is_not_reported(folder):
    lines = told(
        folder,
        *[change for change in RIGHT if change[1] != "inital"],
        ("study.yaml", "position: {intact", "Position: {intact"),
    )
    assert len([line for line in lines if "study.yaml" in line]) == 1, lines
