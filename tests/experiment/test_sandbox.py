"""Programs that models wrote run locked in: hostile ones reach nothing, honest ones are judged by their tests."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.parsing.free_answers import program_of
from experiment.scoring import sandbox
from experiment.scoring.sandbox import Ran, SandboxLimits, SandboxUnavailable, require_sandbox, run_program

SMALL = SandboxLimits(wall_seconds=3, cpu_seconds=1, memory_megabytes=128, file_kilobytes=64)
ALWAYS = ["assert True"]


@pytest.fixture
def anywhere() -> None:
    """Mark a test that needs no sandbox."""


ANYWHERE = pytest.mark.usefixtures("anywhere")


@pytest.fixture(scope="module")
def missing() -> str | None:
    """Return which lock this machine does not give."""
    try:
        require_sandbox()
    except SandboxUnavailable as error:
        return error.message
    return None


@pytest.fixture(autouse=True)
def locked_in(request: pytest.FixtureRequest, missing: str | None) -> None:
    if missing is not None and request.node.get_closest_marker("usefixtures") is None:
        pytest.skip(f"no sandbox here: {missing}")


def test_a_program_is_right_where_every_test_holds():
    program = "def double(number):\n    return factor * number"
    ran = run_program(program, ["assert double(2) == 4", "assert double(-1) == -2"], setup="factor = 2")
    assert (ran.fate, ran.held, ran.tests, ran.why) == ("passed", 2, 2, None)


@pytest.mark.parametrize(
    "program", ["def f(:", "f()", "\x00", "import sys; sys.exit(0)", "raise KeyboardInterrupt"]
)
def test_programs_that_do_not_run_are_wrong(program):
    assert run_program(program, ALWAYS, limits=SMALL).fate == "failed"


ESCAPES = sorted((Path(__file__).parent / "escapes").glob("*.py"))
NO_PROGRAM_KNOWS = [
    "assert f(60) == 1548008755920",  # so long that no address or number holds it by chance
    "assert f(-1) == -18",
    "assert abs(f(0.5) - 0.25) < 1e-9",
    "assert same(f('ab'), {'a': [1, 2.0], 'b': (3,)})",
]
SETUP = "def same(got, wanted):\n    return got == wanted"


def test_a_corpus_of_hostile_programs_reaches_nothing_and_forges_nothing():
    """Each file says in its first lines how its program must fare, and what its first error says."""
    assert len(ESCAPES) >= 75
    honest = "def f(x):\n    return 2 * x"
    programs = [file.read_text("utf-8") for file in ESCAPES]
    said = [dict(re.findall(r"^# (fate|why): (.*)$", program, re.MULTILINE)) for program in programs]

    def run(program: str, fate: str) -> Ran:
        # a processor that is shared must not end by the clock what is to end by its own time
        limits = replace(SMALL, wall_seconds=1.5 if fate == "too_slow" else 120)
        return run_program(program, NO_PROGRAM_KNOWS, setup=SETUP, limits=limits)

    with ThreadPoolExecutor(8) as pool:
        hostile = pool.map(run, programs, (one["fate"] for one in said))
        beside = pool.map(lambda n: run_program(honest, [f"assert f({n}) == {2 * n}"]), range(8))
        found = list(hostile)
        assert {ran.fate for ran in beside} == {"passed"}, "honest programs are judged as ever"
    wrong = []
    for file, expected, ran in zip(ESCAPES, said, found, strict=True):
        why = (ran.why or "").encode("utf-8").decode("utf-8")
        if (ran.fate, ran.held, ran.tests) != (expected["fate"], 0, 4) or expected.get("why", "") not in why:
            wrong.append(f"{file.name}: {ran}")
    assert not wrong, "\n".join(wrong)
    assert not Path("/outside").exists()


def test_the_machine_s_own_network_is_out_of_reach():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        program = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)"
        ran = run_program(program, ALWAYS, limits=SMALL)
    assert ran.fate == "failed" and ran.why is not None and ran.why.startswith("PermissionError")


def test_nothing_is_inherited(monkeypatch, tmp_path):
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


def test_no_process_outlives_its_program():
    before = {int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()}
    run_program("import time\ntime.sleep(100)", ALWAYS, limits=SandboxLimits(wall_seconds=0.3))
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
def test_whoever_is_not_root_has_a_sandbox_too(tmp_path):
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no Python that others may run")
    child = Path("/tmp") / f"sandbox-child-{os.getpid()}.py"
    child.write_text(sandbox._CHILD.read_text("utf-8"), "utf-8")
    child.chmod(0o644)
    program = "import os\ndef f(x):\n    return os.path.exists('/etc')"
    asking = {
        "setup": "", "program": program, "tests": [[("ask", "f(1)")]], "calls": sandbox._calls(os.uname().machine),
        "cpu_seconds": 2, "memory_megabytes": 256, "file_kilobytes": 64, "wall_seconds": 10,
    }  # fmt: skip
    parts = [json.dumps(part).encode() for part in (asking, [("assert __answer_0__ is False", 1)])]
    job = b"".join(struct.pack(">Q", len(part)) + part for part in parts)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", child], input=job, capture_output=True, env={}, user=65534,
            group=65534, extra_groups=[], cwd="/", timeout=60, check=False,
        )  # fmt: skip
    finally:
        child.unlink()
    if done.returncode == 3 and b"users" in done.stderr:
        pytest.skip(f"only root has namespaces here: {done.stderr.decode()}")
    assert json.loads(done.stdout)["tests"] == [None], done.stderr


@ANYWHERE
def test_where_a_lock_is_missing_nothing_runs(tmp_path, monkeypatch):
    trace = tmp_path / "ran"
    broken = tmp_path / "child.py"
    source = sandbox._CHILD.read_text("utf-8")
    broken.write_text(
        source.replace("libc.unshare(NEW_NAMESPACES", "libc.unshare(-1 | NEW_NAMESPACES"), "utf-8"
    )
    monkeypatch.setattr(sandbox, "_CHILD", broken)
    with pytest.raises(SandboxUnavailable) as caught:
        run_program(f"open({str(trace)!r}, 'w').write('x')", ALWAYS)
    assert "namespaces" in str(caught.value)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("lock", "leak"),
    [
        ("(resource.RLIMIT_NPROC, 1, 1),", ""),
        ("(resource.RLIMIT_AS, size, size),", ""),
        ("lines.append((RETURN, 0, 0, DENY))", "lines.append((RETURN, 0, 0, ALLOW))"),
        ("            filter_calls(calls)\n", ""),
        ('called("leaving the old root", libc.umount2(b"/old", DETACH))\n    os.rmdir("/old")', "pass"),
    ],
    ids=["processes", "memory", "calls", "no filter", "files"],
)
def test_a_lock_that_does_not_hold_is_found_out(lock, leak, tmp_path, monkeypatch):
    leaky = tmp_path / "child.py"
    source = sandbox._CHILD.read_text("utf-8")
    assert source.count(lock) == 1
    leaky.write_text(source.replace(lock, leak), "utf-8")
    monkeypatch.setattr(sandbox, "_CHILD", leaky)
    with pytest.raises(SandboxUnavailable):
        run_program("pass", ALWAYS)


@ANYWHERE
def test_machines_whose_system_calls_are_not_known_are_refused():
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        sandbox._calls("riscv64")


@ANYWHERE
def test_other_systems_are_refused(monkeypatch):
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
def test_the_marks_of_the_paper_s_prompt_are_no_part_of_the_program(reply):
    assert program_of(reply) == DOUBLES


@ANYWHERE
@pytest.mark.parametrize("program", ["if 3 >code: print(1)", "{1: 2}", "x = {'a': 1}", "s = '{def}'"])
def test_a_program_that_looks_like_a_mark_stays_whole(program):
    assert program_of(program) == program
