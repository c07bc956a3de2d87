"""Splits a test into requests to the program and the judgement of its answers, which the program cannot influence.

``assert f(3) == 5`` requests ``f(3)`` from the program's process and judges ``answer == 5`` in another. The program's process
contains no expected value and gives no verdict; it answers with plain values. Functions that a setup defines run in the judge
if they need only plain values. A test that cannot be split, such as one with an assertion in a loop, runs whole next to the
program and is marked as on trust.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

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
        for call in _calls(assertion):
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
            self._taken.on_trust |= any(self._holds_what_is_expected(call) for call in _calls(inner))
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


def _calls(node: ast.expr) -> list[ast.Call]:
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
