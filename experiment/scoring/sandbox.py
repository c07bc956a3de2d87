"""Runs programs that a model wrote against their tests, where they can reach and harm nothing.

A program runs in a child process without network, environment, open files or other processes, with an empty folder of bounded size
as its only writable place, Python's own library as the only thing to read, and limits on processor time, memory and wall
time. Its namespaces die with it. The locks are those of the Linux kernel (user, network, process and mount namespaces, resource
limits); :func:`require_sandbox` tries them, and where one is missing no program runs at all. What remains: a program runs in the
same process as its tests, so one that is written to deceive them (an object that equals everything) can pass.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from stimuli.errors import UserError

Fate = Literal["passed", "failed", "ended", "too_slow"]
_CHILD = Path(__file__).with_name("sandbox_child.py")
_MOST_SAID = 2_000_000
_TO_BEGIN = 60.0
"""Seconds that a busy machine may take to start Python."""


@dataclass(frozen=True)
class Limits:
    """What a program may use.

    Attributes
    ----------
    wall_seconds : float
        From its start to its end, all tests together.
    cpu_seconds : int
        Processor time.
    memory_megabytes : int
        Address space.
    file_kilobytes : int
        Its folder, and any file in it.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    memory_megabytes: int = 512
    file_kilobytes: int = 1024


LIMITS = Limits()


@dataclass(frozen=True)
class Ran:
    """What came of a program.

    Attributes
    ----------
    fate : str
        ``passed`` (every test held), ``failed`` (one did not, or the program could not be run), ``ended`` (it ended itself or was
        ended before the tests were through: memory, processor time, ``os._exit``), ``too_slow`` (wall time).
    held, tests : int
        Tests that held, and all.
    why : str or None
        The first error, in Python's words.
    """

    fate: Fate
    held: int
    tests: int
    why: str | None = None


class SandboxUnavailable(UserError):
    """Programs cannot be locked in on this machine."""


def run_program(program: str, tests: Sequence[str], *, setup: str = "", limits: Limits = LIMITS) -> Ran:
    """Run a program, then its tests, in a sandbox.

    Parameters
    ----------
    program : str
        Python source.
    tests : sequence of str
        Statements, each of which raises where the program is wrong (``assert …``).
    setup : str
        Source that runs before the program.
    limits : Limits

    Raises
    ------
    SandboxUnavailable
        A lock is missing on this machine; nothing was run.
    """
    if sys.platform != "linux":
        raise _unavailable(f"there are none on {sys.platform}")
    word = secrets.token_hex(16)
    job = {
        "word": word,
        "setup": setup,
        "program": program,
        "tests": list(tests),
        **asdict(limits),
    }
    said, complaint, code = _run_child(json.dumps(job).encode(), limits.wall_seconds + _TO_BEGIN)
    told = list(_reports(said))
    if not any(one.get("locked") for one in told):
        raise _unavailable(complaint or f"the child ended with exit code {code} before it was locked in")
    own = [one for one in told if one.get("word") == word]
    found = next((one for one in own if "held" in one), None)
    if any("late" in one for one in own):
        return Ran("too_slow", 0, len(tests), f"more than {limits.wall_seconds:g} s")
    if found is None:
        return Ran("ended", 0, len(tests), f"exit code {code}")
    held, why = int(found["held"]), found["why"]
    return Ran("passed" if tests and held == len(tests) else "failed", held, len(tests), why)


def require_sandbox() -> None:
    """Try the sandbox with a harmless program.

    Raises
    ------
    SandboxUnavailable
        Names the lock that is missing and how it can be had.
    """
    found = run_program("answer = 1", ["assert answer == 1"])
    if found.fate != "passed":
        raise _unavailable(f"a harmless program did not pass: {found.fate.replace('_', ' ')}, {found.why}")


def _unavailable(why: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"programs cannot be locked in on this machine: {why}",
        mend="No program was run. It takes Linux with user namespaces for everyone "
        "(kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; a container may forbid "
        "them too). Score a copy of the study on such a machine.",
    )


def _run_child(job: bytes, seconds: float) -> tuple[bytes, str, int]:
    """Start the child on a job and return what it reported, its complaint and its exit code; ends all it started."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=said,  # a file, whose size the child's limits bound
            stderr=complaints,
            cwd="/",
            env={},
            close_fds=True,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(job, timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        said.seek(0)
        complaints.seek(0)
        return said.read(_MOST_SAID), complaints.read(500).decode("utf-8", "replace"), child.returncode


def _reports(said: bytes) -> Iterator[dict[str, Any]]:
    """Read the lines that are reports; a program may have written others."""
    for line in said.splitlines():
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict):
                yield told
