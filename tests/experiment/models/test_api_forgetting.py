"""Replies that a withdrawal erases beside the store: gone from the file and from its old bytes; others, paid for, stay throughout."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from experiment.models.api import reply_cache
from experiment.models.api.batch import FOLDER
from experiment.models.api.reply_cache import forget_replies


def answers_of_a_batch(folder: Path, *work: str) -> Path:
    file = folder / FOLDER / "b1.answers"
    file.parent.mkdir(parents=True)
    lines = [json.dumps({"custom_id": f"{key}:1", "said": f"reply to {key}"}) for key in work]
    file.write_text("\n".join(lines), "utf-8")
    return file


def test_replies_go_from_the_file_and_from_the_bytes_that_it_had(tmp_path: Path) -> None:
    file = answers_of_a_batch(tmp_path, "kept", "withdrawn")
    beside = tmp_path / "old bytes"
    beside.hardlink_to(file)
    assert forget_replies(tmp_path, ["withdrawn"]) == (1, [])
    assert "reply to kept" in file.read_text("utf-8") and "withdrawn" not in file.read_text("utf-8")
    assert set(beside.read_bytes()) == {0}


def test_a_file_of_withdrawn_replies_alone_is_gone(tmp_path: Path) -> None:
    file = answers_of_a_batch(tmp_path, "withdrawn")
    assert forget_replies(tmp_path, ["withdrawn"]) == (1, []) and not file.exists()


def test_replies_that_stay_outlast_an_end_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = answers_of_a_batch(tmp_path, "kept", "withdrawn")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for owner, step in ((reply_cache, "replace_file"), (os, "fsync")):
        with monkeypatch.context() as at:
            at.setattr(owner, step, killed)
            with pytest.raises(KeyboardInterrupt):
                forget_replies(tmp_path, ["withdrawn"])
        assert "reply to kept" in file.read_text("utf-8"), step
