"""Sandbox in which programs written by a model run against their tests without access to anything else.

A program runs in a process without network, environment, open files or other processes, with an empty folder of limited size as
its only writable place, Python's standard library as the only readable one, limits on CPU time, memory and wall time, and a
filter that allows only the system calls that plain Python needs. Its namespaces end with it. The restrictions are those of the
Linux kernel; :func:`require_sandbox` tests them, and if one is missing no program runs.

A program gives no verdict: it returns values, and a second process compares them with the expected ones. That process is
restricted in the same way and starts after the program has ended (see :mod:`experiment.scoring.assertions`), so the program can
neither know what is expected nor report false results. A program may still have memorised published tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from experiment.scoring.assertions import examine
from stimuli.errors import UserError

Fate = Literal["passed", "failed", "ended", "too_slow"]
_CHILD = Path(__file__).with_name("sandbox_child.py")
_CALLS = Path(__file__).with_name("system_calls.json")
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machines with known system calls: the kernel's architecture number of each, in the order of the file's columns."""
_MOST_SAID = 2_000_000
_REFUSED = 3
_HARMLESS = """
import datetime, random, tempfile, time
random.random(), time.sleep(0), datetime.datetime.now(), print("said")
with tempfile.TemporaryFile("w+", dir=".") as file:
    file.write("1")
    file.seek(0)
    answer = int(file.read())
"""
_TO_BEGIN = 60.0
"""Seconds that a busy machine may take to start Python."""


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of one program.

    ``wall_seconds``: from its start to its end, all tests together; ``file_kilobytes``: its folder, and any file in it.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    memory_megabytes: int = 512
    file_kilobytes: int = 1024


LIMITS = SandboxLimits()


@dataclass(frozen=True)
class Ran:
    """Result of running a program.

    ``fate``: ``passed`` (every test held), ``failed`` (one did not, or the program could not be run), ``ended`` (it ended or
    was ended before all tests: memory, CPU time, ``os._exit``), ``too_slow`` (wall time); ``held, tests``: tests that held, and
    all; ``why``: the first error, as Python reports it; ``on_trust``: tests that hold according to the program's own process,
    because they could not be split.
    """

    fate: Fate
    held: int
    tests: int
    why: str | None = None
    on_trust: int = 0


class SandboxUnavailable(UserError):
    """The sandbox does not work on this machine."""


def run_program(
    program: str, tests: Sequence[str], *, setup: str = "", limits: SandboxLimits = LIMITS
) -> Ran:
    """Run a program, then its tests, in a sandbox.

    ``tests``: statements, each of which raises if the program is wrong (``assert …``).
    """
    if sys.platform != "linux":
        raise _unavailable(f"there are none on {sys.platform}")
    examined = [examine(test, setup) for test in tests]
    asking = {
        "setup": setup,
        "program": program,
        "tests": [test.steps for test in examined],
        "calls": _calls(os.uname().machine),
        **asdict(limits),
    }
    judging = [(test.judgement, test.asked) for test in examined]
    output, complaint, code = _run_child((asking, judging), 2 * limits.wall_seconds + _TO_BEGIN)
    if code == _REFUSED:
        raise _unavailable(complaint)
    try:
        result: dict[str, Any] = json.loads(output)
    except ValueError:
        return Ran("ended", 0, len(tests), f"exit code {code} {complaint}".strip())
    return _fate(result, len(tests), sum(test.on_trust for test in examined), limits)


def _fate(result: Mapping[str, Any], tests: int, on_trust: int, limits: SandboxLimits) -> Ran:
    if result.get("late"):
        return Ran("too_slow", 0, tests, f"more than {limits.wall_seconds:g} s")
    if result["is_too_long"]:
        return Ran("failed", 0, tests, "its answers are longer than a megabyte")
    if result["raised"] is not None:
        return Ran("failed", 0, tests, _text(result["raised"]))
    if result["tests"] is None:
        return Ran("ended", 0, tests, f"exit code {result.get('code')}")
    verdicts: list[str | None] = result["tests"]
    verdicts += ["its answers could not be compared in time"] * (tests - len(verdicts))
    n_passed = sum(why is None for why in verdicts)
    why = next((_text(why) for why in verdicts if why is not None), None)
    return Ran("passed" if tests and n_passed == tests else "failed", n_passed, tests, why, on_trust)


def _text(why: str) -> str:
    """Return an error's text without characters that files and terminals cannot encode."""
    return why.encode("utf-8", "replace").decode("utf-8")


@cache
def _calls(machine: str) -> dict[str, Any]:
    """Return the numbers of a machine's system calls: those allowed, allowed with certain arguments, and tested."""
    if machine not in _ARCHITECTURES or sys.maxsize < 2**32:
        raise _unavailable(
            f"the system calls of {machine} are not known; those of {', '.join(_ARCHITECTURES)} are"
        )
    column = list(_ARCHITECTURES).index(machine)
    table = json.loads(_CALLS.read_text("utf-8"))
    return {
        "architecture": _ARCHITECTURES[machine],
        "pivot_root": table["pivot_root"][column],
        "allowed": [numbers[column] for numbers in table["allowed"].values() if numbers[column] is not None],
        "allowed_with": [
            (entry["number"][column], entry["argument"], entry["values"])
            for entry in table["allowed_with"].values()
        ],
        "tried": {name: numbers[column] for name, numbers in table["tried"].items()},
    }


def require_sandbox() -> None:
    """Raise an error unless the sandbox runs a harmless program."""
    ran = run_program(_HARMLESS, ["assert answer == 1"])
    if ran.fate != "passed":
        raise _unavailable(f"a harmless program did not pass: {ran.fate.replace('_', ' ')}, {ran.why}")


def _unavailable(why: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"programs cannot be locked in on this machine: {why}",
        mend="No program was run. It takes Linux with user namespaces for everyone "
        "(kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; a container may forbid "
        "them too). Score a copy of the study on such a machine.",
    )


def _run_child(parts: Sequence[object], seconds: float) -> tuple[bytes, str, int]:
    """Start the child on the parts of a job; return its report, error output and exit code, and end all that it started."""
    job = b"".join(
        struct.pack(">Q", len(part)) + part for part in (json.dumps(part).encode() for part in parts)
    )
    with tempfile.TemporaryFile() as outputs, tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=outputs,
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
        outputs.seek(0)
        complaints.seek(0)
        return outputs.read(_MOST_SAID), complaints.read(500).decode("utf-8", "replace"), child.returncode
