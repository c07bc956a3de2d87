"""Programs that models wrote run locked in: hostile ones reach nothing, honest ones are judged by their tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.parsing.free_answers import program_of
from experiment.scoring import sandbox
from experiment.scoring.sandbox import Limits, SandboxUnavailable, require_sandbox, run_program

SMALL = Limits(wall_seconds=3, cpu_seconds=1, memory_megabytes=128, file_kilobytes=64)
ALWAYS = ["assert True"]


@pytest.fixture
def anywhere() -> None:
    """Mark a test that needs no sandbox."""


ANYWHERE = pytest.mark.usefixtures("anywhere")


@pytest.fixture(autouse=True)
def locked_in(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("usefixtures") is not None:
        return
    try:
        require_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"no sandbox here: {error.message}")


def test_a_program_is_right_where_every_test_holds() -> None:
    program = "def double(number):\n    return factor * number"
    ran = run_program(program, ["assert double(2) == 4", "assert double(-1) == -2"], setup="factor = 2")
    assert (ran.fate, ran.held, ran.tests, ran.why) == ("passed", 2, 2, None)


def test_tests_that_fail_are_counted_one_by_one() -> None:
    ran = run_program("def f(x):\n    return x", ["assert f(1) == 1", "assert f(1) == 2", "assert f(2) == 2"])
    assert (ran.fate, ran.held) == ("failed", 2)
    assert ran.why is not None and ran.why.startswith("AssertionError")


def test_python_s_own_library_is_there() -> None:
    program = "import collections, heapq, itertools, math, random, re, decimal\nrandom.random()"
    assert run_program(program, ["assert math.gcd(4, 6) == 2"]).fate == "passed"


@pytest.mark.parametrize(
    "program", ["def f(:", "f()", "\x00", "import sys; sys.exit(0)", "raise KeyboardInterrupt"]
)
def test_programs_that_do_not_run_are_wrong(program: str) -> None:
    assert run_program(program, ALWAYS, limits=SMALL).fate == "failed"


HOSTILE = {
    "the network by address": "import socket\nsocket.create_connection(('1.1.1.1', 53), timeout=1)",
    "the machine itself by network": "import socket\nsocket.create_connection(('127.0.0.1', PORT), timeout=1)",
    "a name on the network": "import socket\nsocket.getaddrinfo('example.org', 80)",
    "passwords": "open('/etc/passwd').read()",
    "the environment of others": "open('/proc/1/environ', 'rb').read()",
    "the tests' own files": f"open({str(Path(__file__))!r}).read()",
    "the home": f"import os\nos.listdir({str(Path.home() / '.config')!r})",
    "writing outside its folder": "open('/outside', 'w').write('x')",
    "writing into Python's library": "import os\nopen(os.__file__, 'a').write('x')",
    "climbing out of its folder": "open('../../outside', 'w').write('x')",
    "a large file": "open('large', 'wb').write(b'x' * 10**7)",
    "many files": "for number in range(10_000): open(f'file{number}', 'w').close()",
    "memory": "hoard = bytearray(10**9)",
    "a fork bomb": "import os\nwhile True: os.fork()",
    "a shell": "import subprocess\nsubprocess.run(['/bin/sh', '-c', 'true'], check=True)",
    "threads": "import threading\nthreading.Thread(target=print).start()",
    "other processes": "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "mounting": "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.mount(b'tmpfs', b'/work', b'tmpfs', 0, None): raise OSError(ctypes.get_errno())",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_program_is_stopped_at(what: str) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        program = HOSTILE[what].replace("PORT", str(listening.getsockname()[1]))
        ran = run_program(program, ALWAYS, limits=SMALL)
    assert ran.fate == "failed", ran
    assert ran.why is not None
    assert ran.why.split(":")[0] in {
        "OSError", "FileNotFoundError", "PermissionError", "MemoryError", "BlockingIOError", "RuntimeError",
        "ProcessLookupError", "gaierror",
    }  # fmt: skip
    assert not Path("/outside").exists()


@pytest.mark.parametrize(
    ("program", "fate"),
    [
        ("while True: pass", "ended"),
        ("import time\ntime.sleep(100)", "too_slow"),
        ("import os\nos._exit(0)", "ended"),
        ("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", "ended"),
        ("import ctypes\nctypes.string_at(0)", "ended"),
    ],
)
def test_programs_that_do_not_end_or_end_themselves_are_wrong(program: str, fate: str) -> None:
    # a processor that is shared must not end by the clock what is to end by its own time
    limits = SMALL if fate == "too_slow" else replace(SMALL, wall_seconds=120)
    assert run_program(program, ALWAYS, limits=limits).fate == fate


def test_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret")
    kept = (tmp_path / "secret").open("w+")
    os.set_inheritable(kept.fileno(), True)
    program = (
        "import os\nbad = [name for name in os.environ if name != 'LC_CTYPE']\nassert not bad, bad\n"
        "assert os.listdir('.') == [] and os.getcwd() == '/work'\n"
        "there = []\n"
        "for number in range(3, 16):\n"
        "    try:\n        os.fstat(number)\n        there.append(number)\n    except OSError: pass\n"
        "assert len(there) <= 1, there"  # where its own report goes
    )
    ran = run_program(program, ALWAYS, limits=SMALL)
    kept.close()
    assert ran.fate == "passed", ran


def test_a_report_of_its_own_making_is_not_believed() -> None:
    forged = (
        "import os, json\nfor number in range(3, 16):\n    try:\n"
        "        os.write(number, json.dumps({'word': 'x', 'held': 1, 'why': None}).encode() + b'\\n')\n"
        "    except OSError: pass\nos._exit(0)"
    )
    assert run_program(forged, ALWAYS, limits=SMALL).fate == "ended"


def test_no_process_outlives_its_program() -> None:
    before = {int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()}
    run_program("import time\ntime.sleep(100)", ALWAYS, limits=Limits(wall_seconds=0.3))
    mine = [
        number
        for number in {int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()} - before
        if b"sandbox_child" in _command_line(number)
    ]
    assert mine == []


def _command_line(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become somebody else")
def test_whoever_is_not_root_has_a_sandbox_too(tmp_path: Path) -> None:
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no Python that others may run")
    child = Path("/tmp") / f"sandbox-child-{os.getpid()}.py"
    child.write_text(sandbox._CHILD.read_text("utf-8"), "utf-8")
    child.chmod(0o644)
    job = (
        '{"word": "w", "setup": "", "program": "import os\\nassert not os.path.exists(\'/etc\')", "tests": ["assert True"], '
        '"cpu_seconds": 2, "memory_megabytes": 256, "file_kilobytes": 64, "wall_seconds": 10}'
    )
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", child], input=job, text=True, capture_output=True, env={}, user=65534,
            group=65534, extra_groups=[], cwd="/", timeout=60, check=False,
        )  # fmt: skip
    finally:
        child.unlink()
    if done.returncode == 3 and "users" in done.stderr:
        pytest.skip(f"only root has namespaces here: {done.stderr}")
    assert '"held": 1' in done.stdout, done.stderr


@ANYWHERE
def test_where_a_lock_is_missing_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "ran"
    broken = tmp_path / "child.py"
    source = sandbox._CHILD.read_text("utf-8")
    broken.write_text(
        source.replace("libc.unshare(NEW_NAMESPACES", "libc.unshare(-1 | NEW_NAMESPACES"), "utf-8"
    )
    monkeypatch.setattr(sandbox, "_CHILD", broken)
    with pytest.raises(SandboxUnavailable) as caught:
        run_program(f"open({str(trace)!r}, 'w').write('x')", ALWAYS)
    assert "cannot be locked in" in caught.value.message
    assert "namespaces" in str(caught.value)
    assert not trace.exists()


@ANYWHERE
def test_a_lock_that_does_not_hold_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaky = tmp_path / "child.py"
    source = sandbox._CHILD.read_text("utf-8")
    leaky.write_text(source.replace("(resource.RLIMIT_NPROC, 1, 1),", ""), "utf-8")
    monkeypatch.setattr(sandbox, "_CHILD", leaky)
    with pytest.raises(SandboxUnavailable):
        run_program("pass", ALWAYS)


@ANYWHERE
def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="darwin"):
        run_program("pass", ALWAYS)


DOUBLES = "def f(x):\n    return 2 * x"


@ANYWHERE
@pytest.mark.parametrize(
    "reply",
    [
        f">code: {DOUBLES}",
        f"code:\n{DOUBLES}",
        f">code:\n{DOUBLES}\n",
        DOUBLES,
        f"Here is the program:\n>code: {DOUBLES}",
        f"Sure. >code: {DOUBLES}",
        f">code: {DOUBLES}\n>explanation: it doubles ```x```",
        f">code: {{{DOUBLES}}}",
        f">code:\n```python\n{DOUBLES}\n```\n>explanation: so",
        f"```python\n>code: {DOUBLES}\n```",
        f"For example\n```\nf(1)\n```\n>code: {DOUBLES}",
        f">code: {DOUBLES}\n>explanation:\n```\nf(1)\n```",
    ],
)
def test_the_marks_of_the_paper_s_prompt_are_no_part_of_the_program(reply: str) -> None:
    assert program_of(reply) == DOUBLES


@ANYWHERE
@pytest.mark.parametrize("program", ["if 3 >code: print(1)", "{1: 2}", "x = {'a': 1}", "s = '{def}'"])
def test_a_program_that_looks_like_a_mark_stays_whole(program: str) -> None:
    assert program_of(program) == program


def test_programs_behind_marks_pass_their_tests() -> None:
    for reply in (f"Here it is:\n>code: {DOUBLES}", f">code: {DOUBLES}\n>explanation: doubles x"):
        assert run_program(program_of(reply), ["assert f(2) == 4"]).fate == "passed"
