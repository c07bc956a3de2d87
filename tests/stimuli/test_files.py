"""Files are replaced whole, durably and with the rights of a file that is opened for writing."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from stimuli.files import replace_file, replacing

posix_only = pytest.mark.skipif(os.name == "nt", reason="rights and signals of POSIX")


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("content", ["é\r\n", "é\r\n".encode()], ids=["text", "bytes"])
def test_text_and_bytes_are_written_as_they_are_into_a_folder_that_is_made(tmp_path, content):
    file = tmp_path / "new" / "file.txt"
    replace_file(file, content)
    assert file.read_bytes() == b"\xc3\xa9\r\n"
    assert list(file.parent.iterdir()) == [file]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(file) as partial:
        partial.write_text("ne")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_take_its_place_goes(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError):
        replace_file(tmp_path / "there", "new")
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


@posix_only
def test_a_process_that_is_killed_while_writing_leaves_the_old_file(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from stimuli.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as partial:\n"
        "    partial.write_text('ne')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_text() == "old"


def test_the_new_file_is_on_the_disk_before_it_takes_the_old_ones_place(tmp_path, monkeypatch):
    file, seen, sync = tmp_path / "file.txt", [], os.fsync
    file.write_text("old")

    def watched(descriptor):
        seen.append((stat.S_ISREG(os.fstat(descriptor).st_mode), file.read_text()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    replace_file(file, "new")
    assert seen[0] == (True, "old")
    assert seen[1:] in ([(False, "new")], [])  # the folder after it, where a folder can be opened


@posix_only
@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077])
def test_rights_are_those_of_a_file_that_is_opened_for_writing(tmp_path, mask):
    before = os.umask(mask)
    try:
        (tmp_path / "opened").open("w").close()
        replace_file(tmp_path / "replaced", "new")
        assert rights(tmp_path / "replaced") == rights(tmp_path / "opened") == 0o666 & ~mask
    finally:
        os.umask(before)


@posix_only
def test_a_file_keeps_its_rights_and_a_private_one_is_its_owners_alone(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    file.chmod(0o640)
    replace_file(file, "new")
    assert rights(file) == 0o640
    with replacing(file, is_private=True) as partial:
        assert rights(partial) == 0o600
        partial.write_text("newer")
    assert (rights(file), file.read_text()) == (0o600, "newer")
