"""R expressions as they stand inside a model formula: read, printed as R prints them, and handed to Python.

A formula names its columns in R's spelling (dots in names, `^` for powers, `I(x^2)`, `log(x)`), and lme4 names its
coefficients by printing those expressions. This module reads the text into a small tree, prints it back the way R's
``deparse`` does, and writes it for formulaic, which evaluates it on the data. Only listed functions are let through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stimuli.errors import UserError, unknown_name

FUNCTIONS = frozenset(
    {"I", "log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "scale", "center", "poly"}
    | {"sin", "cos", "tan", "tanh", "round", "floor", "ceiling", "pmin", "pmax", "ifelse", "as.numeric"}
    | {"factor", "as.factor", "ordered", "relevel", "C", "c", "cbind", "offset"}
)
"""Functions that a formula may call; the last line is understood by the frame, the rest are evaluated."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
    | (?P<name>(?:[^\W\d]|\.(?!\d))[\w.]*)
    | `(?P<quoted>[^`]+)`
    | (?P<text>"[^"]*"|'[^']*')
    | (?P<op>\|\||%in%|\*\*|==|!=|<=|>=|[-+*/^:|~(),=<>])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Name:
    """A column of the data."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A number or a quoted text, as written."""

    text: str


@dataclass(frozen=True)
class Call:
    """A function call; ``keywords`` holds the named arguments."""

    function: str
    arguments: tuple[Node, ...]
    keywords: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True)
class Binary:
    """Two operands and an R operator."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Unary:
    """A leading minus or plus."""

    op: str
    operand: Node


@dataclass(frozen=True)
class Paren:
    """Something in parentheses; R keeps them when it prints."""

    inner: Node


Node = Name | Literal | Call | Binary | Unary | Paren

_BINDING = {"~": 1, "||": 2, "|": 2, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5}
_BINDING |= {"*": 6, "/": 6, "%in%": 7, ":": 8, "^": 10}
_UNARY_BINDING = 9


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if found is None or found.lastgroup is None:
            rest = stripped[position:].strip()
            raise UserError(
                f"formula {text!r}: cannot read it from {rest[:20]!r} on",
                mend="Write it as for lme4, for example 'y ~ condition + (1 | participant)'; odd column names go in `backticks`.",
            )
        position = found.end()
        kind = found.lastgroup
        value = found.group(kind)
        yield ("op", "^") if value == "**" and kind == "op" else (kind, value)
    yield ("end", "")


class _Reader:
    """Operator-precedence reader with R's binding strengths."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0

    def fail(self, what: str) -> UserError:
        return UserError(
            f"formula {self.text!r}: {what}",
            mend="Write it as for lme4, for example 'y ~ condition + (1 | participant)'.",
        )

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def take(self, expected: str | None = None) -> tuple[str, str]:
        token = self.tokens[self.at]
        if expected is not None and token != ("op", expected):
            found = repr(token[1]) if token[1] else "the end"
            raise self.fail(f"expected {expected!r}, found {found}")
        self.at += 1
        return token

    def expression(self, strength: int = 0) -> Node:
        left = self.operand()
        while True:
            kind, value = self.peek()
            if kind != "op" or value not in _BINDING or _BINDING[value] < strength:
                return left
            self.take()
            # `^` groups to the right, everything else to the left.
            right = self.expression(_BINDING[value] + (0 if value == "^" else 1))
            left = Binary(value, left, right)

    def operand(self) -> Node:
        kind, value = self.take()
        if (kind, value) in {("op", "-"), ("op", "+")}:
            return Unary(value, self.expression(_UNARY_BINDING))
        if (kind, value) == ("op", "~"):
            raise self.fail("there is no response before '~'")
        if (kind, value) == ("op", "("):
            inner = self.expression()
            self.take(")")
            return Paren(inner)
        if kind in {"number", "text"}:
            return Literal(value)
        if kind == "quoted":
            return Name(value)
        if kind == "name":
            return self.call(value) if self.peek() == ("op", "(") else Name(value)
        raise self.fail(f"an operand is missing before {value!r}" if value else "it ends too early")

    def call(self, function: str) -> Node:
        if function not in FUNCTIONS:
            raise unknown_name(f"formula {self.text!r}: function", function, FUNCTIONS)
        self.take("(")
        arguments: list[Node] = []
        keywords: list[tuple[str, Node]] = []
        while self.peek() != ("op", ")"):
            named = self.peek()[0] == "name" and self.tokens[self.at + 1] == ("op", "=")
            if named:
                key = self.take()[1]
                self.take("=")
                keywords.append((key, self.expression()))
            else:
                arguments.append(self.expression())
            if self.peek() != ("op", ")"):
                self.take(",")
        self.take(")")
        if not arguments:
            raise self.fail(f"{function}() needs something inside its parentheses")
        return Call(function, tuple(arguments), tuple(keywords))


def read_expression(text: str) -> Node:
    """Read one R expression, `~` and `|` included.

    Parameters
    ----------
    text : str
        An expression in R's spelling.

    Returns
    -------
    Node
        The root of its tree.

    Raises
    ------
    UserError
        If the text is not R, or calls a function that formulas may not call.
    """
    reader = _Reader(text)
    tree = reader.expression()
    kind, value = reader.peek()
    if kind != "end":
        raise reader.fail(f"{value!r} stands where the formula should end or go on with an operator")
    return tree


def columns_of(node: Node) -> tuple[str, ...]:
    """Return the data columns that an expression reads, each once, in order of appearance."""
    found: dict[str, None] = {}

    def walk(part: Node) -> None:
        match part:
            case Name(name):
                if name not in {"TRUE", "FALSE", "pi"}:
                    found[name] = None
            case Call("C", (factor, *_), _):
                walk(factor)
            case Call(_, arguments, keywords):
                for argument in arguments:
                    walk(argument)
                for _, argument in keywords:
                    walk(argument)
            case Binary(_, left, right):
                walk(left)
                walk(right)
            case Unary(_, inner) | Paren(inner):
                walk(inner)
            case Literal():
                pass

    walk(node)
    return tuple(found)


_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\.(?!\d))[\w.]*\Z")
_TIGHT = {"/", "^", ":"}


def as_r(node: Node) -> str:
    """Print an expression as R's ``deparse`` does: ``I(x^2)``, ``log(rt + 1)``, ``a/b``."""
    match node:
        case Name(name):
            return name if _PLAIN_NAME.match(name) else f"`{name}`"
        case Literal(text):
            return '"' + text[1:-1] + '"' if text[0] in "'\"" else text
        case Call(function, arguments, keywords):
            parts = [as_r(a) for a in arguments] + [f"{k} = {as_r(v)}" for k, v in keywords]
            return f"{function}({', '.join(parts)})"
        case Binary(op, left, right):
            gap = "" if op in _TIGHT else " "
            return f"{as_r(left)}{gap}{op}{gap}{as_r(right)}"
        case Unary(op, operand):
            return f"{op}{as_r(operand)}"
        case Paren(inner):
            return f"({as_r(inner)})"


_CONSTANTS = {"TRUE": "True", "FALSE": "False", "pi": "3.141592653589793"}


def as_python(node: Node, names: Mapping[str, str]) -> str:
    """Write an expression for formulaic: columns under the names given, ``**`` for ``^``.

    Raises
    ------
    UserError
        If the expression holds an operator that has no value on a row, such as ``:`` or ``|``.
    """
    match node:
        case Name(name):
            return _CONSTANTS.get(name) or names[name]
        case Literal(text):
            return repr(text[1:-1]) if text[0] in "'\"" else text.rstrip("L")
        case Call(function, arguments, keywords):
            parts = [as_python(a, names) for a in arguments]
            parts += [f"{k.replace('.', '_')}={as_python(v, names)}" for k, v in keywords]
            return f"{function.replace('.', '_')}({', '.join(parts)})"
        case Binary(op, left, right):
            if op in {"~", "|", "||", ":", "%in%"}:
                raise UserError(
                    f"{as_r(node)!r} cannot be computed row by row",
                    mend="Inside I() and other functions use + - * / ^ and comparisons only.",
                )
            return f"({as_python(left, names)} {'**' if op == '^' else op} {as_python(right, names)})"
        case Unary(op, operand):
            return f"({op}{as_python(operand, names)})"
        case Paren(inner):
            return f"({as_python(inner, names)})"
