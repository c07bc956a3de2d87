"""Scores programs by their items' tests in a sandbox, in which what a model wrote runs without access to anything else.

A program runs in a process without network, environment, open files or other processes, with an empty folder of limited size as
its only writable place, Python's standard library as the only readable one, limits on CPU time, memory and wall time, and a
filter that allows only the system calls that plain Python needs. Its namespaces end with it. The restrictions are those of the
Linux kernel; :func:`require_sandbox` tests them, and if one is missing no program runs.

A program gives no verdict: it returns values, and a second process compares them with the expected ones. That process is
restricted in the same way and starts after the program has ended, so the program can
neither know what is expected nor report false results. A program may still have memorised published tests.

Mind Scramble never ran the programs of MBPP; it compared their embeddings with those of a different model's programs. Here a
program is correct if every test holds; its score is the proportion that hold. A program that exits, or uses too much time or
memory, is wrong. Scores have the scorer ``executed`` and count until others are requested.

``assert f(3) == 5`` requests ``f(3)`` from the program's process and judges ``answer == 5`` in another. The program's process
contains no expected value and gives no verdict; it answers with plain values. Functions that a setup defines run in the judge
if they need only plain values. A test that cannot be split, such as one with an assertion in a loop, runs whole next to the
program and is marked as on trust.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from experiment.scoring.rescoring import EXECUTED, StoredResponse, responses, write_scores
from experiment.scoring.trial import Score
from experiment.store import Store
from experiment.study import Study
from experiment.trials.own import FOLDER, PARSER, given_of, record_faults, sha256
from experiment.trust import are_trusted
from stimuli.errors import UserError
from stimuli.item import Item

Step = tuple[Literal["do", "ask"], str]
BUILTINS = frozenset(dir(builtins))
CONSTANTS = frozenset(name for name in BUILTINS if not callable(getattr(builtins, name)))
MODULES = frozenset({
    "cmath", "collections", "datetime", "decimal", "fractions", "functools", "itertools", "math", "operator", "re",
    "statistics", "string", "sys",
})  # fmt: skip
"""Standard library modules that a judge imports if an assertion names them."""
CONVERSIONS = frozenset({
    "abs", "all", "any", "bool", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "next", "repr", "round",
    "set", "sorted", "str", "sum", "tuple",
})  # fmt: skip
"""Functions of one argument that return a plain value; the program is tested on what they return."""
_READERS = frozenset({"delattr", "getattr", "hasattr", "setattr", "vars"})
_PLAIN = (bool, bytes, complex, dict, float, frozenset, int, list, range, set, str, tuple)
_ATTRIBUTES = frozenset(name for kind in _PLAIN for name in dir(kind))
_BINDERS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.NamedExpr)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

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

VERSION = 2
AT_ONCE = 64
FATES = {
    "passed": "every test held",
    "failed": "a test did not hold, or the program does not run",
    "ended": "ended before the tests were through (memory, processor time, or by itself)",
    "too_slow": "took too long",
}


@dataclass(frozen=True)
class Examined:
    """A test that was split.

    ``steps``: what runs in the program's process, in order: statements to execute, expressions to evaluate; ``judgement``:
    source that raises if the test does not hold; ``__answer_0__`` is the value of the first expression; ``on_trust``: whether
    the program's process could make the test hold without answering it.
    """

    steps: tuple[Step, ...]
    judgement: str
    on_trust: bool = False

    @property
    def asked(self) -> int:
        """Number of values that it requests."""
        return sum(kind == "ask" for kind, _ in self.steps)


def examine(test: str, setup: str = "") -> Examined:
    """Return the parts of a test."""
    try:
        return _examined(test, setup)
    except _UNREADABLE:
        return Examined((("do", test),), "", on_trust=True)


def _examined(test: str, setup: str) -> Examined:
    statements = ast.parse(test).body
    imports = [*_imports(before := _parsed(setup)), *_imports(statements)]
    if not any(isinstance(statement, ast.Assert) for statement in statements) or any(
        map(_is_whole, statements)
    ):
        return Examined((("do", test),), "", on_trust=True)
    imported = {alias.asname or alias.name.split(".")[0] for stmt in imports for alias in stmt.names}
    bound = _bound(statements)
    helpers = {name: stmt for name, stmt in _helpers(before, imported).items() if name not in bound}
    functions = {name for name, stmt in helpers.items() if not _is_constant(stmt)}
    taken = _Taken(imported, functions, frozenset(_bound(before)), frozenset(bound))
    named = {
        node.id for helper in helpers.values() for node in ast.walk(helper) if isinstance(node, ast.Name)
    }
    judged = [f"import {name}" for name in sorted(named & MODULES - imported)]
    judged += [ast.unparse(stmt) for stmt in (*imports, *helpers.values())]
    for statement in statements:
        if not isinstance(statement, ast.Assert):
            taken.steps.append(("do", ast.unparse(statement)))
            continue
        written = ast.unparse(statement.test)
        assertion = taken.apart(statement.test)
        modules = sorted({node.id for node in ast.walk(assertion) if isinstance(node, ast.Name)} & MODULES)
        judged += [f"import {name}" for name in modules]
        judged.append(f"assert {ast.unparse(assertion)}, {written!r}")
    return Examined(tuple(taken.steps), "\n".join(judged), taken.on_trust)


def _parsed(setup: str) -> list[ast.stmt]:
    try:
        return ast.parse(setup).body
    except _UNREADABLE:
        return []


def _imports(statements: Iterable[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    return [statement for statement in statements if isinstance(statement, ast.Import | ast.ImportFrom)]


def _bound(statements: Iterable[ast.AST]) -> Counter[str]:
    """Return how often statements define or assign each name, without imports."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    assigned = [
        node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    return Counter([*assigned, *(node.name for node in nodes if isinstance(node, _DEFINITIONS))])


def _helpers(setup: Sequence[ast.stmt], imported: set[str]) -> dict[str, ast.stmt]:
    """Return the functions of a setup that a judge can run, and the constants that they may need, by name.

    A function that inspects objects, calls its arguments or needs a name of the program must run next to the program.
    """
    times = _bound(setup)
    by_name: dict[str, ast.stmt] = {}
    for stmt in setup:
        if isinstance(stmt, ast.FunctionDef):
            by_name[stmt.name] = stmt
        elif isinstance(stmt, ast.Assign) and (isinstance(stmt.value, ast.Lambda) or _is_constant(stmt)):
            by_name |= {target.id: stmt for target in stmt.targets if isinstance(target, ast.Name)}
    by_name = {name: stmt for name, stmt in by_name.items() if times[name] == 1}
    while True:
        known_names = (BUILTINS - _READERS) | MODULES | imported | by_name.keys()
        judgeable = {
            name: stmt
            for name, stmt in by_name.items()
            if _needs_plain_values_only(stmt, known_names, imported)
        }
        if len(judgeable) == len(by_name):
            return judgeable
        by_name = judgeable


def _is_constant(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    try:
        hash(ast.literal_eval(statement.value))
    except (*_UNREADABLE, TypeError):
        return False
    return True


def _needs_plain_values_only(statement: ast.stmt, known_names: Iterable[str], imported: set[str]) -> bool:
    inner = _bound(node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt))
    callable_names = {
        *known_names,
        *(node.name for node in ast.walk(statement) if isinstance(node, _DEFINITIONS)),
    }
    if _names_of_others((statement,), {*callable_names, *inner}):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Global | ast.ClassDef | ast.Import | ast.ImportFrom):
            return False
        if isinstance(node, ast.Attribute):
            if node.attr not in _ATTRIBUTES and _root(node) not in MODULES | imported:
                return False
        elif isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else None
            if called not in callable_names and not isinstance(node.func, ast.Attribute):
                return False
    return True


def _root(node: ast.expr) -> str | None:
    """Return the first name in a chain of attributes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_whole(statement: ast.stmt) -> bool:
    """Return whether a test with this statement runs whole: it defines something, or asserts within another statement."""
    inner = (node for node in ast.walk(statement) if node is not statement)
    return isinstance(statement, _DEFINITIONS) or any(isinstance(node, ast.Assert) for node in inner)


@dataclass
class _Taken:
    """The assertions of one test, split one after another."""

    imported: set[str]
    functions: set[str]
    of_setup: frozenset[str]
    of_test: frozenset[str]
    steps: list[Step] = field(default_factory=list)
    on_trust: bool = False

    def apart(self, assertion: ast.expr) -> ast.expr:
        known_names = BUILTINS | MODULES | self.imported | self.functions
        if not _names_of_others((assertion,), known_names) or self._gives_functions(assertion, known_names):
            known_names -= self.functions
        if not _names_of_others((assertion,), known_names):
            # a program may be asked to write a function that Python has too
            known_names = known_names - BUILTINS | CONSTANTS
        visitor = _Asking(known_names, self)
        return cast("ast.expr", visitor.visit(assertion))

    def _gives_functions(self, assertion: ast.expr, known_names: Iterable[str]) -> bool:
        """Return whether a function of the setup receives one of the program's, which no judge can call."""
        for call in _calls_in(assertion):
            if isinstance(call.func, ast.Name) and call.func.id in self.functions:
                for given in _given(call):
                    is_function = isinstance(given, ast.Lambda | ast.Name)
                    if is_function and _names_of_others(
                        (given,), {*known_names, *self.of_setup, *self.of_test}
                    ):
                        return True
        return False


class _Asking(ast.NodeTransformer):
    """Replaces what only the program can evaluate by names for its answers."""

    def __init__(self, known_names: Iterable[str], taken: _Taken) -> None:
        self._known = frozenset(known_names)
        self._taken = taken
        self._is_compared = False

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or not _names_of_others((node,), self._known):
            return node if isinstance(node, ast.expr) else super().visit(node)
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            self._taken.on_trust |= all(_names_of_others((side,), self._known) for side in sides)
        inner = _converted(node, self._known)
        self._taken.on_trust |= isinstance(inner, _BINDERS)
        if isinstance(inner, _BINDERS) or _is_the_programs(inner, self._known):
            self._taken.on_trust |= any(self._holds_what_is_expected(call) for call in _calls_in(inner))
            name = f"__answer_{sum(kind == 'ask' for kind, _ in self._taken.steps)}__"
            self._taken.steps.append(("ask", ast.unparse(node)))
            return ast.Name(name, ast.Load())
        before = self._is_compared
        self._is_compared |= _needs_more_than_truth(node)
        try:
            return self.generic_visit(node)
        finally:
            self._is_compared = before

    def _holds_what_is_expected(self, call: ast.Call) -> bool:
        """Return whether the program would judge its own answer: ``close(f(3), 5)``, or a function of the setup."""
        parts = [node for given in _given(call) for node in self._own(given)]
        answers = [node for node in parts if self._is_answer(node)]
        if _names_of_others((call.func,), self._known) & self._taken.of_setup:
            return bool(answers) or not self._is_compared
        return not self._is_compared and 0 < len(answers) < len(parts)

    def _own(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the answers and constants in a function's arguments, without descending into the answers."""
        if self._is_answer(node) or isinstance(node, ast.Constant):
            yield node
        elif not isinstance(node, _BINDERS):
            for inner in ast.iter_child_nodes(node):
                yield from self._own(inner)

    def _is_answer(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._taken.of_test
        known_names = self._known | self._taken.of_setup
        return isinstance(node, ast.Call) and bool(_names_of_others((node.func,), known_names))


def _calls_in(node: ast.expr) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _given(call: ast.Call) -> list[ast.expr]:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [argument.value if isinstance(argument, ast.Starred) else argument for argument in given]


def _needs_more_than_truth(node: ast.expr) -> bool:
    """Return whether an expression judges values: a comparison with more than a Boolean, or a function that the judge runs."""
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        return not any(isinstance(side, ast.Constant) and side.value in (True, False) for side in sides)
    return isinstance(node, ast.Call) and not (
        isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS
    )


def _converted(node: ast.expr, known_names: frozenset[str]) -> ast.expr:
    """Return the argument inside conversions such as ``sorted(…)``, which contains no expected value."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CONVERSIONS & known_names
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    ):
        node = node.args[0]
    return node


def _is_the_programs(node: ast.expr, known_names: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute | ast.Subscript):
        return bool(_names_of_others((node.value,), known_names))
    if not isinstance(node, ast.Call):
        return False
    # modules cannot be called: this is a function of the program with a module's name
    is_no_module = isinstance(node.func, ast.Name) and node.func.id in MODULES
    return is_no_module or bool(_names_of_others((node.func,), known_names))


def _names_of_others(nodes: Sequence[ast.AST], known_names: Iterable[str]) -> set[str]:
    """Return the names that expressions read and that neither Python nor they themselves define."""
    names, bound = set(), set(known_names)
    for node in (inner for expression in nodes for inner in ast.walk(expression)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Name):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MODULES:
            bound.discard(node.func.id)
    return names - bound


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
    examined = [examine(test, setup) for test in tests]
    judging = [(test.judgement, test.asked) for test in examined]
    result = _result_of(program, setup, [test.steps for test in examined], judging, limits)
    if isinstance(result, str):
        return Ran("ended", 0, len(tests), result)
    return _fate(result, len(tests), sum(test.on_trust for test in examined), limits)


def _result_of(
    program: str,
    setup: str,
    tests: Sequence[Sequence[Step]],
    judging: Sequence[tuple[str, int]] | None,
    limits: SandboxLimits,
) -> dict[str, Any] | str:
    """Return what the child reports of a program and its tests, or of their values without a judge; or else why it ended."""
    if sys.platform != "linux":
        raise _unavailable(f"there are none on {sys.platform}")
    asking = {
        "setup": setup,
        "program": program,
        "tests": tests,
        "calls": _calls(os.uname().machine),
        **asdict(limits),
    }
    processes = 1 if judging is None else 2
    output, complaint, code = _run_child((asking, judging), processes * limits.wall_seconds + _TO_BEGIN)
    if code == _REFUSED:
        raise _unavailable(complaint)
    try:
        return dict(json.loads(output))
    except ValueError:
        return f"exit code {code} {complaint}".strip()


def evaluate(program: str, expression: str, limits: SandboxLimits = LIMITS) -> tuple[str | None, str | None]:
    """Run a program in a sandbox and return the text that an expression gives after it; None, and why, if it gives none."""
    result = _result_of(program, "", [[("ask", expression)]], None, limits)
    if isinstance(result, str):
        return None, result
    if not result.get("tests"):
        return None, _fate(result | {"tests": None}, 1, 0, limits).why
    (answer,) = result["tests"]
    if "raised" in answer:
        return None, _text(answer["raised"])
    (value,) = answer["values"]
    is_text = isinstance(value, list) and value[:1] == ["str"]
    return (value[1], None) if is_text else (None, "it gives no text")


PARSER_SECONDS = 2
"""Longest that the parser of a lab's own trial type may take."""


def read_reply(
    about: Mapping[str, Any], step: Mapping[str, Any], reply: str
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the fields that the lab's parser reads in a model's reply; None, and why, if it reads none or wrong ones."""
    source = about["parser"]
    if not are_trusted([sha256(source)]):
        raise UserError(
            f"{FOLDER}/{step['type']}/{PARSER} would run here, and nobody on this account has agreed to that",
            mend="Give `wrods trust` with the study.",
        )
    fields, why = _fields_in(source, json.dumps(given_of(step), sort_keys=True), reply)
    if fields is None:
        return None, why
    faults = record_faults(about["fields"], fields)
    return (None, "; ".join(faults.values())) if faults else (fields, None)


@lru_cache(maxsize=512)
def _fields_in(source: str, step: str, reply: str) -> tuple[dict[str, Any] | None, str | None]:
    limits = SandboxLimits(wall_seconds=PARSER_SECONDS, cpu_seconds=PARSER_SECONDS)
    call = f"__import__('json').dumps(parse({reply!r}, __import__('json').loads({step!r})))"
    text, why = evaluate(source, call, limits)
    if text is None:
        return None, why
    try:
        fields = json.loads(text)
    except ValueError:
        return None, "parse returned no JSON"
    if fields is None:
        return None, "the parser reads no answer in it"
    return (fields, None) if isinstance(fields, dict) else (None, "parse returned no dictionary of fields")


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


@dataclass
class Executed:
    """Result of running programs.

    ``programs``: programs that were run; ``fates``: how they ended, by reader: (reader, one of :data:`FATES`); ``unread``:
    replies without a program (empty, refused, truncated); ``unknown``: answers to items that the study no longer has, which
    were not run; ``on_trust``: tests of those programs that cannot be judged outside the program's own process.
    """

    programs: int = 0
    fates: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: int = 0
    unknown: int = 0
    on_trust: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        fates = [
            {"reader": reader, "fate": fate, "programs": n}
            for (reader, fate), n in sorted(self.fates.items())
        ]
        numbers = {name: getattr(self, name) for name in ("programs", "unread", "unknown", "on_trust")}
        return {**numbers, "fates": fates}

    def told(self) -> Iterator[str]:
        """Yield the outcome in lines."""
        yield f"{EXECUTED}: {self.programs} programs run against their tests."
        for (reader, fate), number in sorted(self.fates.items()):
            yield f"  {number:>6}  {reader}: {FATES[fate]}"
        if self.unread:
            yield f"  {self.unread} replies hold no program and count as they stand."
        if self.on_trust:
            yield (
                f"  {self.on_trust} tests ran in the programs' own processes, where a program can make them pass: write "
                "each as `assert call == value`."
            )
        if self.unknown:
            yield f"  {self.unknown} answers are to items that the study no longer has: build it as it was."


def execute_programs(
    study: Study,
    store: Store,
    *,
    reader: str | None = None,
    dry_run: bool = False,
    limits: SandboxLimits = LIMITS,
) -> Executed:
    """Run every program in a study's answers, and store the scores."""
    tested = {item.item_id: item for item in study.items if item.key.get("tests")}
    if not tested:
        raise UserError(
            "no item of this study has tests that a program must pass",
            mend="Programs come from the corpus mbpp with the task complete, answered with read_as: code.",
        )
    require_sandbox()
    outcome = Executed()
    workers = max(1, min(8, os.cpu_count() or 1))
    with store.read() as connection, ThreadPoolExecutor(workers) as pool:
        stream = responses(study, connection, reader=reader)
        while batch := list(islice(stream, AT_ONCE)):
            programs = [response for response in batch if _is_program(response)]
            scored = []
            judged = pool.map(lambda response: _judged(response, tested, limits), programs)
            for response, (score, ran) in zip(programs, judged, strict=True):
                if score is None:
                    outcome.unknown += 1
                    continue
                if ran is None:
                    outcome.unread += 1
                else:
                    outcome.programs += 1
                    outcome.on_trust += ran.on_trust
                    outcome.fates[response.reader, ran.fate] += 1
                compared = ("scorer", "response", "correct", "score")
                if any((response.counts or {}).get(name, ...) != getattr(score, name) for name in compared):
                    scored.append((response, score))
            if not dry_run:
                write_scores(store, scored)
    return outcome


def _is_program(response: StoredResponse) -> bool:
    return response.trial["steps"][-1].get("read_as") == "code" and not response.trial.get("is_practice")


def _judged(
    response: StoredResponse, tested: Mapping[str, Item], limits: SandboxLimits
) -> tuple[Score | None, Ran | None]:
    """Return the score of a program and its run: none of a reply that holds no program, neither to an item that is unknown."""
    read = response.scored()
    named = replace(read, scorer=f"{EXECUTED}-{VERSION}", version=VERSION)
    if read.response_status != "valid" or read.response is None:
        return named, None
    item = tested.get(str(response.trial["item_id"]))
    if item is None:
        return None, None
    tests: Sequence[str] = item.key["tests"]
    ran = run_program(read.response, tests, setup=str(item.key.get("setup") or ""), limits=limits)
    return replace(named, correct=ran.fate == "passed", score=ran.held / len(tests)), ran
