"""What the operating system refuses is told in words, with the file and what to do; nothing half-made is left."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from experiment.checking import load_study
from experiment.cli import as_user_error, main

ROOT = Path(__file__).resolve().parents[2]


def wrods(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="wrods")


def full_disk(*given: Any, **options: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/study")


def told_plainly(told: Result, *words: str) -> None:
    assert told.exit_code == 1, told.output
    assert isinstance(told.exception, SystemExit), told.exception
    assert "Error: " in told.output and all(word in told.output for word in words), told.output


def test_a_full_disk_is_told_with_file_reason_and_mend(tmp_path, monkeypatch):
    assert wrods("new", tmp_path / "s").exit_code == 0
    monkeypatch.setattr(os, "replace", full_disk)
    monkeypatch.setattr(Path, "replace", full_disk)
    monkeypatch.setattr(Path, "write_text", full_disk)
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    told_plainly(wrods("build", tmp_path / "s"), "/somewhere/study: no space left", "Free some space")


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
    assert wrods("new", folder).exit_code == 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_a_place_that_takes_no_files_is_told(tmp_path):
    told_plainly(wrods("new", "/proc/x"), "/proc/x: ", "Check the path")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_told(tmp_path):
    tmp_path.chmod(0o500)
    told_plainly(wrods("new", tmp_path / "s"), "permission denied", "yours to write to")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_table_that_finds_no_space_is_told_although_only_its_text_says_so(tmp_path):
    table = tmp_path / "trials.parquet"
    table.symlink_to("/dev/full")  # a link, because pyarrow removes what it could not write
    with pytest.raises(OSError) as full:
        pyarrow.parquet.write_table(pa.table({"a": list(range(100_000))}), table)
    said = str(as_user_error(full.value))
    assert "no space left" in said and "Free some space" in said


def test_the_module_calls_itself_by_the_commands_name():
    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "experiment.cli", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    for words in (("--help",), ("run", "--help"), ("run", "x", "--nonsense")):
        assert "Usage: wrods" in said(*words) and "experiment.cli" not in said(*words)


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
    assert wrods("new", tmp_path / name).exit_code == 0
    assert load_study(tmp_path / name).id == study_id
