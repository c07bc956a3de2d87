"""What the operating system refuses is told in words, with the file and what to do; nothing half-made is left."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import Result

from experiment.checking import load_study
from experiment.cli import MENDS, as_user_error
from experiment.cli import terminal as module
from experiment.cli.report import tell_step
from experiment.cli.terminal import WorkProgress
from experiment.papers.inside.chapters.layers.hidden_states import LayersDone
from tests.experiment.commands import change, worked, wrods

ROOT = Path(__file__).resolve().parents[2]


def full_disk(*given: Any, **options: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/study")


def told_plainly(told: Result, *words: str) -> None:
    assert told.exit_code == 1, told.output
    assert isinstance(told.exception, SystemExit), told.exception
    assert "Error: " in told.output and all(word in told.output for word in words), told.output


def test_a_full_disk_is_told_with_file_reason_and_mend(tmp_path, monkeypatch):
    worked("new", tmp_path / "s")
    monkeypatch.setattr(os, "replace", full_disk)
    monkeypatch.setattr(Path, "replace", full_disk)
    monkeypatch.setattr(Path, "write_text", full_disk)
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    told_plainly(wrods("build", tmp_path / "s"), "/somewhere/study: no space left", MENDS[errno.ENOSPC])


@pytest.mark.parametrize("there", [False, True])
def test_a_study_that_cannot_be_copied_whole_leaves_nothing_behind(tmp_path, monkeypatch, there):
    folder = tmp_path / "deep" / "s"
    if there:
        folder.mkdir(parents=True)
    monkeypatch.setattr(Path, "write_text", full_disk)
    told_plainly(wrods("new", folder), "no space left")
    assert folder.exists() == there and not list(tmp_path.rglob("*.*"))
    assert (tmp_path / "deep").exists() == there
    monkeypatch.undo()
    worked("new", folder)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_a_place_that_takes_no_files_is_told(tmp_path):
    told_plainly(wrods("new", "/proc/x"), "/proc/x: ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_told(tmp_path):
    tmp_path.chmod(0o500)
    told_plainly(wrods("new", tmp_path / "s"), "permission denied", "s: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_table_that_finds_no_space_is_told_although_only_its_text_says_so(tmp_path):
    table = tmp_path / "trials.parquet"
    table.symlink_to("/dev/full")  # a link, because pyarrow removes what it could not write
    with pytest.raises(OSError) as full:
        pyarrow.parquet.write_table(pa.table({"a": list(range(100_000))}), table)
    said = str(as_user_error(full.value))
    assert "no space left" in said


def test_the_module_calls_itself_by_the_commands_name():
    for words in (("--help",), ("run", "x", "--nonsense")):
        command = [sys.executable, "-m", "experiment.cli", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert "Usage: wrods" in said and "experiment.cli" not in said


@pytest.mark.parametrize(
    ("name", "study_id"),
    [
        ("Größe 1", "grosse-1"),
        ("Smørrebrød æøå", "smorrebrod-aeoa"),
        ("Łódź_ESTUDIO-Ñandú", "lodz_estudio-nandu"),
        ("İstanbul ıșık", "istanbul-isik"),
        ("研究", "your-own"),
        ("É" * 100, "e" * 64),
    ],
)
def test_a_studys_id_keeps_the_letters_of_its_folders_name(tmp_path, name, study_id):
    worked("new", tmp_path / name)
    assert load_study(tmp_path / name).id == study_id


WHAT = "probing net (the right answer)"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    yield now


def test_elsewhere_a_line_comes_every_ten_seconds_and_says_how_long_the_rest_takes(clock, capsys):
    with WorkProgress("layers") as progress:
        tell_step(progress, "figures")
        for number in range(4):
            clock[0] = 6.0 * number
            tell_step(progress, LayersDone(WHAT, number, 29))
    assert capsys.readouterr().err.splitlines() == [
        "  figures",
        f"  {WHAT}: 2 of 29 layers, about 3 min left",
    ]


def test_work_that_was_done_before_says_nothing_of_the_speed(clock, capsys):
    with WorkProgress("steps") as progress:
        progress.draw("ft-rs", 900, 1000)
        clock[0] = 20.0
        progress.draw("ft-rs", 910, 1000, "loss 1.250")
    assert capsys.readouterr().err == "ft-rs: 910 of 1,000 steps, loss 1.250, about 3 min left\n"


def test_on_a_terminal_each_name_has_a_bar_that_ends_full(monkeypatch, capsys):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    with WorkProgress("layers") as progress:
        for what in (WHAT, "representations of net"):
            for number in range(4):
                tell_step(progress, LayersDone(what, number, 4))
        tell_step(progress, "files")
    told = capsys.readouterr().err
    assert told.count("4/4") == 2 and WHAT in told and "representations of net" in told
    assert told.rstrip().endswith("files")


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
        - choose: {show: question, keys: {"Yes": banana, "No": left arrow}}
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
        change(file, (old, new))
    result = wrods("check", folder)
    assert result.exit_code == 2, result.output
    return result.output.removeprefix("Error: ").splitlines()


RIGHT = (
    ("study.yaml", "wantd", "wanted"),
    ("study.yaml", "inital", "initial"),
    ("study.yaml", "banana", "j"),
    ("study.yaml", "left arrow", "f"),
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
        ("line 18: procedure[3].block.trial[2].choose.keys.No", "'ArrowLeft'"),
        ("line 18: procedure[3].block.trial[2].choose.keys.Yes", "banana"),
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
    assert re.search("practice.csv: .*'posiiton'.*'position'", said)
    assert "sentences.csv, line 3: item 's1'" in said and "compare is 'positon'" in said


def test_a_fault_that_another_one_causes_is_not_reported(folder):
    lines = told(
        folder,
        *[change for change in RIGHT if change[1] != "inital"],
        ("study.yaml", "position: {intact", "Position: {intact"),
    )
    assert len([line for line in lines if "study.yaml" in line]) == 1, lines
