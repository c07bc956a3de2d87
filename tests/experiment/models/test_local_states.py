"""Hidden states on disk: whole after any death, never twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from experiment.models.engine import State
from experiment.models.states import StateWriter, layer_path, read_index, read_layer
from stimuli.errors import UserError


def state(number: int, position: str = "last", layers: int = 3, width: int = 8) -> State:
    return State(
        position,
        np.full((layers, width), number, dtype=np.float16) + np.arange(layers, dtype=np.float16)[:, None],
    )


def test_states_come_back_by_layer_and_row(tmp_path):
    with StateWriter(tmp_path / "run") as writer:
        for number in range(5):
            writer.add(f"k{number}", [state(number), state(number + 100, "region 0")])
        writer.flush()
        writer.add("k5", [state(5)])
    index = read_index(tmp_path / "run")
    assert [row for _, row, _ in index] == list(range(11))
    for layer in range(3):
        found = read_layer(tmp_path / "run", layer)
        assert found.dtype == np.float16 and found.shape == (11, 8)
        assert isinstance(found, np.memmap)
        for key, row, position in index:
            expected = int(key[1:]) + (100 if position != "last" else 0) + layer
            assert (found[row] == expected).all()
        plain = np.load(layer_path(tmp_path / "run", layer))
        assert plain.shape == (11, 8)


def test_rows_that_the_index_does_not_name_are_written_over(tmp_path, monkeypatch):
    with StateWriter(tmp_path) as writer:
        writer.add("k0", [state(0)])
    dying = StateWriter(tmp_path)
    dying.add("lost", [state(77)])
    monkeypatch.setattr(
        "experiment.models.states.write_index", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        dying.flush()
    monkeypatch.undo()
    assert read_layer(tmp_path, 1).shape == (1, 8), "the index is the truth"
    with StateWriter(tmp_path) as writer:
        writer.add("k1", [state(1)])
    assert read_index(tmp_path) == [("k0", 0, "last"), ("k1", 1, "last")]
    assert read_layer(tmp_path, 0)[:, 0].tolist() == [0, 1]
    assert np.load(layer_path(tmp_path, 0)).shape == (2, 8)


def test_killing_the_writer_at_any_moment_leaves_whole_rows(tmp_path):
    code = """
        import sys, numpy as np
        from pathlib import Path
        from experiment.models.engine import State
        from experiment.models.states import StateWriter
        writer = StateWriter(Path(sys.argv[1]))
        number = writer.rows
        while True:
            writer.add(f"k{number}", [State("last", np.full((4, 64), number % 1000, dtype=np.float16))])
            number += 1
            if number % 7 == 0:
                writer.flush()
                print(writer.rows, flush=True)
    """
    known = 0
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(5):
            known = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        index = read_index(tmp_path)
        assert len(index) >= known, "what was flushed is there"
        assert [key for key, _, _ in index] == [f"k{n}" for n in range(len(index))]
        for layer in range(4):
            assert read_layer(tmp_path, layer)[:, 5].tolist() == [n % 1000 for n in range(len(index))]


def test_damaged_layers_are_told_and_not_written_to(tmp_path):
    with StateWriter(tmp_path) as writer:
        writer.add("k0", [state(0)])
    with layer_path(tmp_path, 1).open("r+b") as file:
        file.truncate(130)
    with pytest.raises(UserError, match=r"layer_01\.npy.*index\.parquet"):
        StateWriter(tmp_path)
    for layer in range(3):
        layer_path(tmp_path, layer).unlink()
    with pytest.raises(UserError, match=re.escape(str(tmp_path))):
        StateWriter(tmp_path)


def test_a_disk_without_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("experiment.models.states.free_bytes", lambda _: 10_000)
    with StateWriter(tmp_path / "small", expected=200) as writer:
        writer.add("k0", [state(0)])
    with (
        pytest.raises(UserError, match=r"\b300\b.*\b0\.0 MB.*\b0\.0 MB") as error,
        StateWriter(tmp_path / "large", expected=300) as writer,
    ):
        writer.add("k0", [state(0)])
    assert "models: states" in (error.value.mend or "")
    assert not list((tmp_path / "large").iterdir())


def test_a_disk_that_fills_up_leaves_what_was_durable(tmp_path, monkeypatch):
    import errno

    with StateWriter(tmp_path) as writer:
        writer.add("k0", [state(0)])
        writer.flush()
        writer.add("k1", [state(1)])
        with monkeypatch.context() as full:
            full.setattr(
                "experiment.models.states.write_index",
                lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")),
            )
            with pytest.raises(UserError, match=r" 1 .*" + re.escape(str(tmp_path))):
                writer.flush()
        assert read_index(tmp_path) == [("k0", 0, "last")]
    assert read_index(tmp_path) == [("k0", 0, "last"), ("k1", 1, "last")], "with room again nothing is lost"


def test_states_of_another_shape_are_refused(tmp_path):
    with StateWriter(tmp_path) as writer:
        writer.add("k0", [state(0)])
        with pytest.raises(UserError, match=r"\b3\b.*\b8\b.*\b3\b.*\b9\b"):
            writer.add("k1", [state(1, width=9)])
