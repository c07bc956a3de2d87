"""The command ``wrods`` under a clock that a test can set while it runs: ``python shifted_clock.py FILE serve …``.

The file holds eight bytes, the seconds by which this process's time of day differs from the computer's.
"""

from __future__ import annotations

import datetime
import mmap
import struct
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = struct.Struct("d")


def set_clock(file: Path, seconds: float) -> None:
    """Let the time of day of processes that were started with a file differ by so many seconds from now on."""
    if not file.exists():
        file.write_bytes(SECONDS.pack(0))
    with file.open("r+b") as stream:
        stream.write(SECONDS.pack(seconds))


def shift(file: Path) -> None:
    """Let this process's time of day follow a file."""
    with file.open("rb") as stream:
        shared = mmap.mmap(stream.fileno(), SECONDS.size, access=mmap.ACCESS_READ)
    real, real_ns = time.time, time.time_ns

    def ahead() -> float:
        return float(SECONDS.unpack_from(shared)[0])

    class Moment(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return super().now(tz) + datetime.timedelta(seconds=ahead())

    time.time = lambda: real() + ahead()
    time.time_ns = lambda: real_ns() + int(ahead() * 1e9)
    datetime.datetime = Moment  # type: ignore[misc]


if __name__ == "__main__":
    shift(Path(sys.argv.pop(1)))
    from experiment.cli import main

    main()
