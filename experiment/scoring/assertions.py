"""Takes a test apart: what the program is asked, and what is judged of its answers where the program has no say.

``assert f(3) == 5`` asks the program's process for ``f(3)`` and judges ``answer == 5`` in another. The program's process holds
no expected value and gives no verdict; it answers with plain values. A test that cannot be taken apart so, such as one whose
assertion stands in a loop, runs whole beside the program and is marked as held on trust.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

Step = tuple[Literal["do", "ask"], str]
BUILTINS = frozenset(dir(builtins))
CONSTANTS = frozenset(name for name in BUILTINS if not callable(getattr(builtins, name)))
MODULES = frozenset({
    "cmath", "collections", "datetime", "decimal", "fractions", "functools", "itertools", "math", "operator", "re",
    "statistics", "string", "sys",
})  # fmt: skip
"""Modules of Python's library that a judge imports where an assertion names them."""
CONVERSIONS = frozenset({
    "abs", "all", "any", "bool", "dict", "float", "frozenset", "int", "len", "list", "max", "min", "next", "repr", "round",
    "set", "sorted", "str", "sum", "tuple",
})  # fmt: skip
"""Functions that give a plain value of one argument: the program is asked for what they give."""
_BINDERS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.NamedExpr)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Examined:
    """A test taken apart.

    Attributes
    ----------
    steps : tuple of Step
        What runs in the program's process, in order: statements to do, expressions to ask for.
    judgement : str
        Source that raises where the test does not hold; ``__answer_0__`` is the value of the first expression.
    on_trust : bool
        Whether the program's process could make the test hold without answering it.
    """

    steps: tuple[Step, ...]
    judgement: str
    on_trust: bool = False

    @property
    def asked(self) -> int:
        """How many values it asks for."""
        return sum(kind == "ask" for kind, _ in self.steps)


def examine(test: str, setup: str = "") -> Examined:
    """Take a test apart.

    Parameters
    ----------
    test : str
        Statements, of which assertions are judged.
    setup : str
        Source that runs before the program; a judge has what it imports.
    """
    try:
        return _examined(test, setup)
    except _UNREADABLE:
        return Examined((("do", test),), "", on_trust=True)


def _examined(test: str, setup: str) -> Examined:
    statements = ast.parse(test).body
    imports = [*_imports(setup), *(one for one in statements if isinstance(one, ast.Import | ast.ImportFrom))]
    if not any(isinstance(one, ast.Assert) for one in statements) or any(map(_is_whole, statements)):
        return Examined((("do", test),), "", on_trust=True)
    taken = _Taken({alias.asname or alias.name.split(".")[0] for one in imports for alias in one.names})
    judged = [ast.unparse(one) for one in imports]
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


def _imports(setup: str) -> list[ast.Import | ast.ImportFrom]:
    try:
        return [one for one in ast.parse(setup).body if isinstance(one, ast.Import | ast.ImportFrom)]
    except _UNREADABLE:
        return []


def _is_whole(statement: ast.stmt) -> bool:
    """Return whether a test with this statement runs whole: it defines something, or asserts within another statement."""
    inner = (node for node in ast.walk(statement) if node is not statement)
    return isinstance(statement, _DEFINITIONS) or any(isinstance(node, ast.Assert) for node in inner)


@dataclass
class _Taken:
    """The assertions of one test, taken apart one after the other."""

    imported: set[str]
    steps: list[Step] = field(default_factory=list)
    on_trust: bool = False

    def apart(self, assertion: ast.expr) -> ast.expr:
        known = BUILTINS | MODULES | self.imported
        if not _names_of_others((assertion,), known):
            # a program may be asked to write a function that Python has too
            known = known - BUILTINS | CONSTANTS
        apart = _Asking(known, self)
        return cast("ast.expr", apart.visit(assertion))


class _Asking(ast.NodeTransformer):
    """Replaces what only the program can evaluate by names of its answers."""

    def __init__(self, known: Iterable[str], taken: _Taken) -> None:
        self._known = frozenset(known)
        self._taken = taken

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or not _names_of_others((node,), self._known):
            return node if isinstance(node, ast.expr) else super().visit(node)
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            self._taken.on_trust |= all(_names_of_others((side,), self._known) for side in sides)
        inner = _converted(node, self._known)
        self._taken.on_trust |= isinstance(inner, _BINDERS)
        if isinstance(inner, _BINDERS) or _is_the_programs(inner, self._known):
            name = f"__answer_{sum(kind == 'ask' for kind, _ in self._taken.steps)}__"
            self._taken.steps.append(("ask", ast.unparse(node)))
            return ast.Name(name, ast.Load())
        return self.generic_visit(node)


def _converted(node: ast.expr, known: frozenset[str]) -> ast.expr:
    """Return what is inside conversions such as ``sorted(…)``: nothing of what is expected stands there."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CONVERSIONS & known
        and len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    ):
        node = node.args[0]
    return node


def _is_the_programs(node: ast.expr, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute | ast.Subscript):
        return bool(_names_of_others((node.value,), known))
    if not isinstance(node, ast.Call):
        return False
    # no module can be called: that is a function of the program's with its name
    is_no_module = isinstance(node.func, ast.Name) and node.func.id in MODULES
    return is_no_module or bool(_names_of_others((node.func,), known))


def _names_of_others(nodes: Sequence[ast.AST], known: Iterable[str]) -> set[str]:
    """Return the names that expressions read and that neither Python nor they themselves define."""
    names, bound = set(), set(known)
    for node in (found for one in nodes for found in ast.walk(one)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Name):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MODULES:
            bound.discard(node.func.id)
    return names - bound
