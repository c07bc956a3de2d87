"""Expressions written out: as R prints them, which is how lme4 names coefficients, and as Python for formulaic."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stimuli.errors import UserError

from .expression import (
    CONSTANTS,
    REMAINDERS,
    SHORT_TRUTH,
    Binary,
    Call,
    Column,
    Literal,
    Name,
    Node,
    Paren,
    Unary,
    bare,
)

_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\.(?!\d))[\w.]*\Z")
_RESERVED = frozenset({"if", "else", "repeat", "while", "function", "for", "next", "break", "in"})
"""Words that are no names in R unless they stand between backticks."""
_TIGHT = {"/", "^", ":", *REMAINDERS}


def _number_as_r(text: str) -> str:
    """Print a number as R does: 15 digits, and scientific where that is shorter."""
    if text.endswith("L"):
        return text
    value = float(text)
    mantissa, _, exponent = f"{value:.14e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = int(exponent)
    scientific = f"{mantissa}e{power:+03d}"
    digits = len(mantissa.replace(".", "").lstrip("-"))
    fixed = f"{value:.{max(digits - 1 - power, 0)}f}"
    return fixed if len(fixed) <= len(scientific) else scientific


def as_r(node: Node) -> str:
    """Print an expression as R's ``deparse`` does: ``I(x^2)``, ``log(rt + 1)``, ``a/b``."""
    match node:
        case Name(name):
            plain = _PLAIN_NAME.match(name) and name not in _RESERVED
            return name if plain else "`" + name.replace("\\", "\\\\") + "`"
        case Literal(text) if text[0] in "'\"":
            return '"' + text[1:-1].replace('"', '\\"') + '"'
        case Literal(text):
            return _number_as_r(text)
        case Column(inner, number):
            return f"{as_r(inner)}[, {number}]"
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


_SPELT = {"^": "**", "%/%": "//", "%%": "%", "&&": "&"}


def as_python(node: Node, names: Mapping[str, str]) -> str:
    """Write an expression for formulaic: columns under the names given, ``**`` for ``^``.

    Raises
    ------
    UserError
        If the expression holds an operator that has no value on a row, such as ``:`` or ``|``.
    """
    match node:
        case Name(name):
            return CONSTANTS.get(name) or names[name]
        case Literal(text):
            return repr(text[1:-1]) if text[0] in "'\"" else text.rstrip("L")
        case Call(function, arguments, keywords):
            parts = [as_python(a, names) for a in arguments[:1]]
            parts += [SHORT_TRUTH.get(a) or as_python(a, names) for a in arguments[1:]]
            parts += [
                f"{k.replace('.', '_')}={SHORT_TRUTH.get(v) or as_python(v, names)}" for k, v in keywords
            ]
            return f"{bare(function).replace('.', '_')}({', '.join(parts)})"
        case Binary("%in%", left, right):
            return f"is_in({as_python(left, names)}, {as_python(right, names)})"
        case Binary("|" | "||", _, _):
            raise UserError(
                f"{as_r(node)!r}: lme4 takes | for the bar of a random-effects term, also inside functions",
                mend="Make a column, or turn it round: !(a == 1 & b == 1) for a != 1 | b != 1.",
            )
        case Binary(op, left, right):
            if op in {"~", ":"}:
                raise UserError(
                    f"{as_r(node)!r} cannot be computed row by row",
                    mend="Inside I() and other functions use + - * / ^ and comparisons only.",
                )
            return f"({as_python(left, names)} {_SPELT.get(op, op)} {as_python(right, names)})"
        case Unary("!", operand):
            return f"negated({as_python(operand, names)})"
        case Unary(op, operand):
            return f"({op}{as_python(operand, names)})"
        case Paren(inner):
            return f"({as_python(inner, names)})"
        case Column(inner, number):
            return f"column_of({as_python(inner, names)}, {number.rstrip('L')})"
