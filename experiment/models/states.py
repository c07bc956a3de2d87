"""Hidden states on disk: one 16-bit memory map per layer, and an index with the work key and position of each row.

Rows are first written to the layer files and made durable; then the file headers get the new length, and last the index names
the new rows. Only indexed rows are valid: rows beyond them were being written when the process died, and the next writer
overwrites them.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from experiment.models.engine import State
from stimuli.errors import UserError
from stimuli.files import free_bytes, gigabytes, replacing

INDEX = "index.parquet"
HEADER_BYTES = 128
_MOST_WAITING = 512
_GROWTH = 8
_MOST_BYTES = 2**28
"""Rows wait until there are this many, or an eighth of those on disk (the index is rewritten each time), or this many bytes."""


class StateWriter(AbstractContextManager["StateWriter"]):
    """Writes the hidden states of one run into ``states/<run>``, unless the disk has no space for ``expected`` rows."""

    def __init__(self, folder: Path, expected: int = 0) -> None:
        self.folder = folder
        self._expected = expected
        folder.mkdir(parents=True, exist_ok=True)
        self._index: list[tuple[str, int, str]] = read_index(folder)
        self._known = {(key, position) for key, _, position in self._index}
        self._waiting: list[tuple[str, str, NDArray[np.float16]]] = []
        self._files: list[BinaryIO] = []
        self._shape: tuple[int, int] | None = None
        if self._index:
            self._open(*_shape_of(folder, len(self._index)))

    def __exit__(self, *fault: object) -> None:
        self.close()

    @property
    def rows(self) -> int:
        """Number of rows on disk and in the index."""
        return len(self._index)

    def add(self, work_key: str, states: Iterable[State]) -> None:
        """Queue the states of one reply, of shape (layers + 1, width); those already stored are skipped."""
        for state in states:
            if (work_key, state.position) in self._known:
                continue
            layers, width = state.layers.shape
            if self._shape is None:
                self._open(layers, width)
            if self._shape != (layers, width):
                raise UserError(
                    f"{self.folder} holds states of {self._shape and self._shape[0]} layers by "
                    f"{self._shape and self._shape[1]}, and this model gives {layers} by {width}",
                    mend="Store the states of another model in a separate run.",
                )
            self._known.add((work_key, state.position))
            self._waiting.append((work_key, state.position, state.layers))
        waiting, (layers, width) = len(self._waiting), self._shape or (0, 0)
        is_heavy = waiting * layers * width * 2 >= _MOST_BYTES
        if waiting >= max(_MOST_WAITING, len(self._index) // _GROWTH) or is_heavy:
            self.flush()

    def flush(self) -> None:
        """Make all queued rows durable, and then add them to the index."""
        if not self._waiting or self._shape is None:
            return
        try:
            self._write(self._shape[1])
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise UserError(
                f"the disk is full: hidden states of {len(self._waiting):,} more rows do not fit in {self.folder}",
                mend="Free some space, then run the same command again to resume.",
                exit_code=1,
            ) from error

    def _write(self, width: int) -> None:
        first = len(self._index)
        block = np.stack([layers for _, _, layers in self._waiting], axis=1).astype(np.float16, copy=False)
        for file, rows in zip(self._files, block, strict=True):
            file.seek(HEADER_BYTES + first * width * 2)
            file.write(np.ascontiguousarray(rows).tobytes())
            file.flush()
            os.fsync(file.fileno())
        total = first + len(self._waiting)
        for file in self._files:
            file.seek(0)
            file.write(_header(total, width))
            file.flush()
            os.fsync(file.fileno())
        new_rows = [(key, first + n, position) for n, (key, position, _) in enumerate(self._waiting)]
        write_index(self.folder, [*self._index, *new_rows])
        self._index += new_rows
        self._waiting = []

    def close(self) -> None:
        """Flush and close."""
        try:
            self.flush()
        finally:
            for file in self._files:
                file.close()
            self._files = []

    def _open(self, layers: int, width: int) -> None:
        needed, free = self._expected * layers * width * 2, free_bytes(self.folder)
        if free < needed:
            raise UserError(
                f"hidden states of {self._expected:,} rows need {gigabytes(needed)}, and {gigabytes(free)} are free in "
                f"{self.folder}",
                mend="Free some space, put the study on a larger disk, or keep fewer positions (models: states).",
                exit_code=1,
            )
        self._shape = (layers, width)
        for number in range(layers):
            path = layer_path(self.folder, number)
            path.touch()
            file = path.open("r+b")
            self._files.append(file)
            if not self._index:
                file.truncate(0)
                file.write(_header(0, width))


def layer_path(folder: Path, layer: int) -> Path:
    """Return the file of one layer; 0 is the embedding output, the last is the last block before the final norm."""
    return folder / f"layer_{layer:02d}.npy"


def read_layer(folder: Path, layer: int) -> NDArray[np.float16]:
    """Return the states of one layer, a memory map of shape (rows of the index, width)."""
    rows = len(read_index(folder))
    states: NDArray[np.float16] = np.load(layer_path(folder, layer), mmap_mode="r")
    return states[:rows]


def read_index(folder: Path) -> list[tuple[str, int, str]]:
    """Return work key, row and position of every row, in order; empty if nothing is written yet."""
    import pyarrow.parquet as parquet

    path = folder / INDEX
    if not path.is_file():
        return []
    table = parquet.read_table(path)
    columns = [table.column(name).to_pylist() for name in ("work_key", "row", "position")]
    return list(zip(*columns, strict=True))


def write_index(folder: Path, rows: Sequence[tuple[str, int, str]]) -> None:
    """Replace the index durably and atomically."""
    import pyarrow
    import pyarrow.parquet as parquet

    keys, numbers, positions = zip(*rows, strict=True) if rows else ((), (), ())
    table = pyarrow.table(
        {
            "work_key": pyarrow.array(keys, pyarrow.string()),
            "row": pyarrow.array(numbers, pyarrow.int64()),
            "position": pyarrow.array(positions, pyarrow.string()),
        }
    )
    with replacing(folder / INDEX) as new_file:
        parquet.write_table(table, new_file)


def _shape_of(folder: Path, rows: int) -> tuple[int, int]:
    """Return the number of layers and their width on disk, or raise an error that states what is damaged."""
    layers = 0
    widths: set[int] = set()
    while (path := layer_path(folder, layers)).is_file():
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            width = int(np.lib.format.read_array_header_1_0(file)[0][1])
        widths.add(width)
        if path.stat().st_size < HEADER_BYTES + rows * width * 2:
            raise _broken(folder, f"{path.name} is shorter than {INDEX} says")
        layers += 1
    if len(widths) != 1:
        raise _broken(folder, f"the layers are missing, or of unlike width: {sorted(widths)}")
    return layers, widths.pop()


def _broken(folder: Path, damage: str) -> UserError:
    return UserError(
        f"the hidden states in {folder} are damaged: {damage}",
        mend="Restore the folder from a backup, or move it away; its trials then have no states.",
    )


def _header(rows: int, width: int) -> bytes:
    """Return a NumPy header (format 1.0) of constant length, so that the file can grow."""
    description = f"{{'descr': '<f2', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    room = HEADER_BYTES - 10
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", room) + description.ljust(room - 1).encode("latin1") + b"\n"
    )
