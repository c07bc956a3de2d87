"""An export that takes the place of an earlier one leaves nothing of it, touches nothing else, and replaces it whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiment.exporting import export
from experiment.exporting.export import export_study, placed
from stimuli.errors import UserError
from tests.experiment.exporting.test_exports import store, study

__all__ = ["store", "study"]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, *names: str, replace: bool = True) -> None:
    with placed(folder, replace=replace) as place:
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(name, "utf-8")


def test_what_is_not_written_again_goes_and_what_others_put_there_stays(tmp_path):
    write(tmp_path, "trials.csv", "tuning/ft-rs/loss.csv", "tuning/ft-ori/loss.csv", replace=False)
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    (tmp_path / "tuning" / "ft-ori" / "mine.txt").write_text("mine", "utf-8")
    write(tmp_path, "trials.csv", "tuning/ft-rs/loss.csv")
    assert files(tmp_path) == {
        "files.txt", "notes.txt", "trials.csv", "tuning/ft-ori/mine.txt", "tuning/ft-rs/loss.csv"
    }  # fmt: skip
    write(tmp_path, "trials.csv")
    assert not (tmp_path / "tuning" / "ft-rs").exists() and (tmp_path / "notes.txt").exists()
    with pytest.raises(UserError, match="is not empty"):
        write(tmp_path, "trials.csv", replace=False)


def test_another_form_takes_the_place_of_the_one_before(study, store, tmp_path):
    out = tmp_path / "out"
    for form, kept, gone in (
        ("parquet", "trials.parquet", "trials.csv"),
        ("csv", "trials.csv", "trials.parquet"),
        ("psych-ds", "dataset_description.json", "trials.csv"),
        ("jspsych", "codebook.md", "dataset_description.json"),
    ):
        export_study(study, store, out, form, replace=True)
        assert (out / kept).is_file() and not (out / gone).exists()
        (listed,) = out.rglob("files.txt")
        assert set(listed.read_text("utf-8").splitlines()) == files(out)


def test_an_export_that_fails_leaves_the_earlier_one_as_it_was(study, store, tmp_path, monkeypatch):
    out = tmp_path / "out"
    export_study(study, store, out, "csv")
    before = {name: (out / name).read_bytes() for name in files(out)}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_plan", full)
    with pytest.raises(OSError, match="No space"):
        export_study(study, store, out, "csv", replace=True)
    assert {name: (out / name).read_bytes() for name in files(out)} == before
    with pytest.raises(OSError, match="No space"):
        export_study(study, store, tmp_path / "new", "csv")
    assert not (tmp_path / "new").exists()


def test_a_list_of_files_reaches_nothing_outside_its_folder(tmp_path):
    out, other = tmp_path / "out", tmp_path / "other.csv"
    other.write_text("mine", "utf-8")
    write(out, "trials.csv")
    (out / "files.txt").write_text("../other.csv\n/etc/hostname\ntrials.csv\n", "utf-8")
    write(out, "items.csv")
    assert other.read_text("utf-8") == "mine" and files(out) == {"files.txt", "items.csv"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches, as pytest's own are not; rights hold in it also where tests are run by root."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        if is_root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="rights of files are others there")
def test_files_that_are_read_only_are_replaced(open_folder):
    out = open_folder / "out"
    write(out, "trials.csv")
    for name in ("trials.csv", "files.txt"):
        (out / name).chmod(0o444)
    with pytest.raises(PermissionError), (out / "trials.csv").open("a"):
        pass
    write(out, "trials.csv", "items.csv")
    assert files(out) == {"files.txt", "items.csv", "trials.csv"}
