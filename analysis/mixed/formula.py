"""A mixed-model formula in R's spelling, taken apart into response, fixed terms and random-effects terms.

The algebra of ``+ - : * / ^ %in% 0 1`` follows R's ``terms.formula``: a term is a set of variables, terms are kept in
order of their size and, within a size, of appearance. Random-effects terms are expanded as lme4 does it: ``||`` falls
into independent terms, ``a/b`` on the right of a bar into ``a`` and ``a:b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stimuli.errors import UserError

from .expression import (
    COMPARISONS,
    LOGICAL,
    REMAINDERS,
    Binary,
    Call,
    Column,
    Literal,
    Name,
    Node,
    Paren,
    Unary,
    as_r,
    columns_of,
    mapped,
    nodes_of,
    read_expression,
    total,
)

ALL_OTHERS = Name(".")
Term = frozenset[int]
"""A model term: positions in ``Terms.variables``."""


@dataclass(frozen=True)
class Terms:
    """A one-sided model formula, expanded."""

    variables: tuple[Node, ...]  # distinct variables in order of appearance
    terms: tuple[Term, ...]  # the terms in R's order (by number of variables), without the intercept
    intercept: bool  # whether the column of ones is in

    def label(self, term: Term) -> str:
        """Name a term as R does: its variables in order of appearance, joined by colons."""
        return ":".join(as_r(self.variables[i]) for i in sorted(term))

    def labels(self) -> tuple[str, ...]:
        """Names of all terms, the intercept excepted."""
        return tuple(self.label(t) for t in self.terms)


@dataclass(frozen=True)
class RandomTerm:
    """One ``(terms | group)``."""

    design: Terms  # left of the bar
    group: tuple[Node, ...]  # the factors whose interaction is the grouping factor, usually one
    name: str  # the grouping factor's name as lme4 gives it, ``b:a`` for b within a

    def text(self) -> str:
        """Print the term as lme4 would, ``1 + x | g``."""
        parts = (["1"] if self.design.intercept else ["0"]) + list(self.design.labels())
        return f"{' + '.join(parts)} | {self.name}"


@dataclass(frozen=True)
class Formula:
    """A whole mixed-model formula."""

    text: str  # as given, the columns that ``.`` stands for written out
    response: Node  # left of ``~``; a ``Call('cbind', …)`` for counts
    fixed: Terms  # the fixed part, offsets taken out
    # in the order written, ``||`` and ``/`` expanded; empty for a model of fixed effects alone
    random: tuple[RandomTerm, ...]
    offsets: tuple[Node, ...] = ()  # what stood in ``offset()``

    def columns(self) -> tuple[str, ...]:
        """Every data column that the formula reads, each once."""
        nodes: list[Node] = [self.response, *self.fixed.variables, *self.offsets]
        for term in self.random:
            nodes += [*term.design.variables, *term.group]
        return tuple(dict.fromkeys(c for n in nodes for c in columns_of(n)))


class _Algebra:
    """R's term arithmetic over lists of variable sets; the empty set is the intercept."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: list[Node] = []
        self.labels: dict[str, int] = {}

    def fail(self, what: str, mend: str | None = None) -> UserError:
        return UserError(f"formula {self.text!r}: {what}", mend=mend)

    def variable(self, node: Node) -> list[Term]:
        if node == ALL_OTHERS:
            raise self.fail("'.' stands for all other columns in the fixed part only", "Name the columns.")
        label = as_r(node)
        if label not in self.labels:
            self.labels[label] = len(self.variables)
            self.variables.append(node)
        return [frozenset({self.labels[label]})]

    def expand(self, node: Node) -> list[Term]:
        match node:
            case Paren(inner):
                return self.expand(inner)
            case Literal("1") | Name("TRUE"):
                return [frozenset()]
            case Literal("0") | Name("FALSE"):
                return []
            case Name() | Call() | Column() | Unary("!", _):
                return self.variable(node)
            case Binary(op, _, _) if op in COMPARISONS | LOGICAL | REMAINDERS:
                return self.variable(node)
            case Binary("+", left, right):
                first = self.expand(left)
                if _is_zero(right):
                    return [t for t in first if t]
                return _unique(first + self.expand(right))
            case Binary("-", left, right):
                return self.without(self.expand(left), right)
            case Unary("-", operand):
                return self.without([frozenset()], operand)
            case Unary("+", operand):
                return self.expand(operand)
            case Binary(":", left, right):
                return _cross(self.expand(left), self.expand(right))
            case Binary("*", left, right):
                a, b = self.expand(left), self.expand(right)
                return _unique([*a, *b, *_cross(a, b)])
            case Binary("%in%", left, right):
                return _cross(self.expand(left), [_union(self.expand(right))])
            case Binary("/", left, right):
                a, b = self.expand(left), self.expand(right)
                return _unique([*a, *_cross([_union(a)], b)])
            case Binary("^", left, Literal(power)) if power.rstrip("L").isdigit() and int(power.rstrip("L")):
                once = self.expand(left)
                result = once
                for _ in range(int(power.rstrip("L")) - 1):
                    # Every term meets every other in turn, itself included, as in R.
                    result = _unique(a | b for a in result for b in once)
                return result
            case Literal(text):
                raise self.fail(
                    f"{text} is no model term", "Only 0 and 1 may stand alone, for the intercept."
                )
            case Binary(op, _, _) if op in {"|", "||"}:
                raise self.fail(
                    f"the random-effects term {as_r(node)!r} stands where lme4 does not allow one",
                    "Put it in parentheses and add it: y ~ x + (1 + x | g).",
                )
        raise self.fail(
            f"{as_r(node)!r} is no model term", "Write arithmetic inside I(), for example I(x^2)."
        )

    def without(self, terms: list[Term], right: Node) -> list[Term]:
        if _is_zero(right):
            return _unique([frozenset(), *terms])
        gone = set(self.expand(right))
        return [t for t in terms if t not in gone]


def _is_zero(node: Node) -> bool:
    return node == Literal("0") or (isinstance(node, Paren) and _is_zero(node.inner))


def _unique(terms: Iterable[Term]) -> list[Term]:
    return list(dict.fromkeys(terms))


def _union(terms: Iterable[Term]) -> Term:
    return frozenset().union(*terms)


def _cross(left: list[Term], right: list[Term]) -> list[Term]:
    return _unique(a | b for a in left for b in right)


def expand_terms(node: Node | None, text: str) -> Terms:
    """Expand the right side of a formula into R's ordered terms; the intercept is in unless removed."""
    algebra = _Algebra(text)
    implied = Literal("1")
    tree = implied if node is None else _intercept_first(node)
    found = algebra.expand(tree)
    ordered = sorted((t for t in found if t), key=len)
    return Terms(tuple(algebra.variables), tuple(ordered), frozenset() in found)


def _intercept_first(node: Node) -> Node:
    """Put R's implied ``1 +`` before the leftmost summand, so that ``- 1`` and ``0 +`` take it away again."""
    match node:
        case Binary(op, left, right) if op in {"+", "-"}:
            return Binary(op, _intercept_first(left), right)
        case Unary("-", operand):
            return Binary("-", Literal("1"), operand)
        case _ if _is_zero(node):
            return Literal("0")
    return Binary("+", Literal("1"), node)


def parts_of(text: str) -> tuple[Node, Node | None, list[Binary], list[Node]]:
    """Take a formula apart: response, fixed part (None where there is none), random-effects terms, offsets."""
    tree = read_expression(text)
    if not isinstance(tree, Binary) or tree.op != "~":
        raise UserError(
            f"formula {text!r} has no '~'",
            mend="Put the response before it and the model after it: 'y ~ x + (1 | participant)'.",
        )
    bars: list[Binary] = []
    offsets: list[Node] = []
    return tree.left, _take(tree.right, bars, offsets), bars, offsets


def read_formula(text: str, columns: Sequence[str] | None = None) -> Formula:
    """Read a mixed-model formula as an lme4 user writes it."""
    response, rest, bars, offsets = parts_of(text)
    spelt = text.strip()
    if rest is not None and columns is not None and ALL_OTHERS in nodes_of(rest):
        others = [name for name in columns if name not in columns_of(response)]
        rest = _spelt_out(rest, others)
        whole = read_expression(text)
        assert isinstance(whole, Binary)
        spelt = as_r(Binary("~", response, _spelt_out(whole.right, others)))
    fixed = expand_terms(rest, text)
    if as_r(response) in {as_r(v) for v in fixed.variables}:
        raise UserError(
            f"formula {text!r}: the response {as_r(response)} stands on the right side too and would explain itself",
            mend="Take it out of the right side.",
        )
    random: list[RandomTerm] = []
    for bar in bars:
        random += _random_terms(bar, text)
    return Formula(spelt, response, fixed, tuple(random), tuple(offsets))


def _spelt_out(node: Node, others: Sequence[str]) -> Node:
    """Put the sum of all other columns where ``.`` stands among the summands and factors of the fixed part."""
    match node:
        case Name("."):
            return Paren(total([Name(name) for name in others] or [Literal("1")]))
        case Binary("|" | "||", _, _) | Call() | Column():
            return node
    return mapped(node, lambda part: _spelt_out(part, others))


def _take(node: Node, bars: list[Binary], offsets: list[Node]) -> Node | None:
    """Move summands that are random-effects terms and offsets into the lists; what is left, or None when nothing is."""
    match node:
        case Paren(Binary("|" | "||", _, _) as bar):
            bars.append(bar)
            return None
        case Call("offset", (inner,)):
            offsets.append(inner)
            return None
        case Binary("+", left, right):
            kept = [part for side in (left, right) if (part := _take(side, bars, offsets)) is not None]
            return total(kept) if kept else None
        case Binary("-", left, right):
            rest = _take(left, bars, offsets)
            return Unary("-", right) if rest is None else Binary("-", rest, right)
        case Paren(inner):
            inside = _take(inner, bars, offsets)
            return None if inside is None else Paren(inside)
    return node


def _random_terms(bar: Binary, text: str) -> list[RandomTerm]:
    """Expand ``a/b`` groups first and ``||`` second, as lme4's findbars and expandDoubleVerts do."""
    whole = expand_terms(bar.left, text)
    designs = [whole]
    if bar.op == "||":
        designs = [Terms((), (), True)] if whole.intercept else []
        for term in whole.terms:
            variables = tuple(whole.variables[i] for i in sorted(term))
            designs.append(Terms(variables, (frozenset(range(len(variables))),), False))
    result = []
    for design in designs:
        if not design.intercept and not design.terms:
            raise UserError(f"formula {text!r}: the random-effects term ({as_r(bar)}) has no columns")
        result += [RandomTerm(design, group, name) for group, name in _groups(bar.right, text)]
    return result


def _groups(node: Node, text: str) -> list[tuple[tuple[Node, ...], str]]:
    """List the grouping factors right of a bar, the innermost first, under the names that lme4 gives them."""
    match node:
        case Paren(inner):
            return _groups(inner, text)
        case Name() | Call("factor" | "as.factor", (Name(),), ()):
            column = Name(columns_of(node)[0])
            return [((column,), as_r(column))]
        case Binary(":", left, right):
            return [(a + b, f"{m}:{n}") for a, m in _groups(left, text) for b, n in _groups(right, text)]
        case Binary("/", left, right):
            outer = _groups(left, text)
            around, name = outer[0]
            name = f"({name})" if len(around) > 1 else name
            return [(inner + around, f"{n}:{name}") for inner, n in _groups(right, text)] + outer
    raise UserError(
        f"formula {text!r}: {as_r(node)!r} is no grouping factor",
        mend="Right of the bar stands a column, a:b or a/b; write one term per grouping factor.",
    )
