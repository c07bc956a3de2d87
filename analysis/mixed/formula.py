"""Model formulas in R's spelling: read into a small tree, written as R or Python, taken apart into terms; and the notes of a fit.

A formula names its columns in R's spelling (dots in names, `^` for powers, `I(x^2)`, `log(x)`); only the functions in
``FUNCTIONS`` may be called. The algebra of ``+ - : * / ^ %in% 0 1`` follows R's ``terms.formula``: a term is a set of variables,
terms are kept in order of their size and, within a size, of appearance. Random-effects terms are expanded as lme4 does it: ``||``
falls into independent terms, ``a/b`` on the right of a bar into ``a`` and ``a:b``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from stimuli.errors import UserError, unknown_name

SENTENCES = {
    "rows_dropped": "{dropped} of {rows} rows dropped for missing values: {columns}",
    "levels_absent": "levels of {factor} that do not occur in the data are left out: {levels}",
    "columns_dropped": "fixed-effect model matrix is rank deficient so dropping {counted}: {columns}",
    "few_levels": "{group} has {count} levels; a variance estimated from {counted} levels is very imprecise, and so are tests that "
    "depend on it; make {group} a fixed effect",
    "seen_once": "{group}: {once} of {of} {levels} seen once ({names}); such levels say next to nothing of a variance and nothing of "
    "slopes",
    "columns_repeated": "({term}): {columns} can be written by the other columns of this term, so its variances and correlations "
    "cannot be told apart; leave it out",
    "term_within": "({term}) is over-parameterised: ({other}) already allows all of its variation, so their variances cannot be told "
    "apart; || does not separate the levels of a factor. Write ({other}) alone, or separate the levels by dummy() columns",
    "term_twice": "({other}) and ({term}) are one random effect written twice; only the sum of their variances can be estimated",
    "singular_variance": "boundary (singular) fit: the variance of {columns} by {group} is near zero; the model without this term "
    "fits as well",
    "singular_covariance": "boundary (singular) fit: the covariance of {columns} by {group} has lost a dimension ({lost}); consider "
    "the term without correlations (||) or with fewer slopes",
    "not_converged": "failed to converge: {why}",
    "penalised": "penalised fit: {penalty}; the log-likelihood is that of the data alone, and likelihood-ratio tests and information "
    "criteria do not hold for it",
    "glmer_dispersion": "dispersion as in lme4's glmer, whose criterion is not a likelihood: it leaves phi out of the penalty on the "
    "random effects, so that variances and standard errors depend on the unit of the response; prefer dispersion = 'ml'",
    "phi": "phi is estimated by maximum likelihood, as in glmmTMB; {elsewhere}",
    "simpler_counts": "{parameter} is {value:.2g}: the counts vary no more than {family} counts; the {lower} family fits as well",
    "below_guessing": "the mean response {mean:.3g} does not exceed the guess rate {guess:g}; the link can hardly place it, and its "
    "coefficients say little",
    "shift_at_end": "the shift ndt, {shift:.4g}, is at the end of its range, {end}; it has no standard error",
    "simpler_times": "sigma is {sigma:.4g} and beta {beta:.4g}: the times are as good as {which}",
    "uniform_cell": "possible separation: every response with {cell} is {value} (n = {n:g})",
    "variance_runs_away": "possible separation: the standard deviation of {sds} by {group} grows without limit",
    "large_se": "possible separation: the standard error of {terms} is so large that the estimate is uninformative",
    "approximate": "standard errors are approximate: the Hessian is not positive definite",
    "sketch": "a sketch: standard errors are of the average information; completed() makes those of second derivatives",
    "odds_ratios_without_meaning": "a random effect has a standard deviation of {sd:.0f} log odds: answers at most levels are all "
    "correct or all incorrect, so the odds ratios of this model are not interpretable; see the means instead",
    "odds_ratios_conditional": "a random effect has a standard deviation above {sd:g} log odds: odds ratios describe an average item "
    "and reader, and can differ from the differences in percentage points, even in sign; see the percentage points instead",
}
"""The words of each code, with its values by name."""

FACTOR_FUNCTIONS = frozenset(
    {"factor", "as.factor", "as.character", "ordered", "relevel", "droplevels", "cut", "C"}
)
"""Functions whose value is a factor."""

FUNCTIONS = FACTOR_FUNCTIONS.union(
    ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "sign", "round", "floor", "ceiling"),
    ("sin", "cos", "tan", "tanh", "scale", "poly", "ns", "bs", "pmin", "pmax", "ifelse", "c", "cbind", "I"),
    ("mean", "median", "sd", "min", "max", "dummy", "offset"),
    ("as.numeric", "as.integer", "as.logical", "as.vector"),
)
"""Functions that a formula may call."""

_CONTRAST_FUNCTION = "contr."
"""What the names of R's contrast functions begin with; ``C(f, contr.treatment(3, base = 2))`` calls one."""

_ELSEWHERE = {
    "interaction": "Write 0 + a:b for one mean a cell, or make a column.",
    "ave": "Make a column of the group means; they belong to the rows, not to the model.",
    "s": "Smooth terms are mgcv's; ns(x, 3) is a natural spline with three degrees of freedom.",
    "mm": "Write one term per grouping factor.",
}


class Note(str):
    """A note in words; ``code`` and ``values`` are what they are made from."""

    code: str
    values: Mapping[str, Any]

    def __new__(cls, code: str, **values: Any) -> Note:
        """Word the note."""
        note = super().__new__(cls, SENTENCES[code].format_map({k: _joined(v) for k, v in values.items()}))
        note.code, note.values = code, values
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.code,), dict(self.values)


def _joined(value: Any) -> Any:
    """Return a listing of several names, with a number each in brackets where there is one."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({number:.3g})" for name, number in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value


APPROXIMATE = Note("approximate")
"""What a fit notes where its Hessian gives no covariance of the fixed effects."""


_ELSEWHERE |= dict.fromkeys(("te", "ti", "t2"), _ELSEWHERE["s"])
_ELSEWHERE |= dict.fromkeys(
    ("lag", "diff", "cumsum", "rank", "quantile", "var", "sum", "rev", "rowMeans", "rowSums"),
    "Its value at a row depends on other rows; make a column.",
)
"""Functions of R and its packages that are not read, and what to do instead."""

_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
    | (?P<name>(?:(?:splines|stats|base|lme4)::)?(?:[^\W\d]|\.(?!\d))[\w.]*)
    | `(?P<quoted>[^`]+)`
    | (?P<text>"[^"]*"|'[^']*')
    | (?P<op>\|\||&&|%in%|%%|%/%|\*\*|==|!=|<=|>=|[-+*/^:|~(),=<>!&\[\]])
    )""",
    re.VERBOSE,
)
_NOTHING = re.compile(r"(?:\s|#[^\n]*)*\Z")


@dataclass(frozen=True)
class Name:
    """A column of the data."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A number or a quoted text, as written."""

    text: str


@dataclass(frozen=True)
class FunctionCall:
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


@dataclass(frozen=True)
class MatrixColumn:
    """One column of a matrix, ``scale(x)[, 1]``."""

    inner: Node
    number: str


Node = Name | Literal | FunctionCall | Binary | Unary | Paren | MatrixColumn

CONSTANTS: Mapping[str, bool | float] = {"TRUE": True, "FALSE": False, "pi": math.pi, "Inf": math.inf}
"""Names that are values."""
SHORT_TRUTH: Mapping[Node, bool] = {Name("T"): True, Name("F"): False}
"""R's other names of truth values; only where no column stands, behind the first argument of a function."""

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
LOGICAL = frozenset({"&", "&&"})
REMAINDERS = frozenset({"%%", "%/%"})

_BINDING = {"~": 1, "||": 2, "|": 2, "&&": 3, "&": 3} | dict.fromkeys(COMPARISONS, 5) | {"+": 6, "-": 6}
_BINDING |= {"*": 7, "/": 7, "%in%": 8, "%%": 8, "%/%": 8, ":": 9, "^": 11}
_PREFIX = {"!": 4, "-": 10, "+": 10}
"""Binding strengths of operators between two operands and before one (R's ``?Syntax``)."""


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while not _NOTHING.match(text, position):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            rest = text[position:].strip()
            raise UserError(
                f"formula {text!r}: cannot read it from {rest[:20]!r} on",
                mend="Write it as for lme4, for example 'y ~ condition + (1 | participant)'; odd column names go in `backticks`.",
            )
        position = match.end()
        kind = match.lastgroup
        value = match.group(kind)
        yield ("op", "^") if value == "**" and kind == "op" else (kind, value)
    yield ("end", "")


class _Reader:
    """Operator-precedence reader with R's binding strengths."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0

    def fail(self, problem: str) -> UserError:
        return UserError(
            f"formula {self.text!r}: {problem}",
            mend="Write it as for lme4, for example 'y ~ condition + (1 | participant)'.",
        )

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def take(self, expected: str | None = None) -> tuple[str, str]:
        token = self.tokens[self.at]
        if expected is not None and token != ("op", expected):
            actual = repr(token[1]) if token[1] else "the end"
            raise self.fail(f"expected {expected!r}, found {actual}")
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
        node = self.plain_operand()
        while self.peek() == ("op", "["):
            self.take()
            self.take(",")
            kind, number = self.take()
            if kind != "number" or not number.rstrip("L").isdigit():
                raise self.fail("inside [ , ] stands the number of a column, as in scale(x)[, 1]")
            self.take("]")
            node = MatrixColumn(node, number)
        return node

    def plain_operand(self) -> Node:
        kind, value = self.take()
        if kind == "op" and value in _PREFIX:
            return Unary(value, self.expression(_PREFIX[value]))
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
        plain = function.rpartition("::")[2]
        if plain in _ELSEWHERE:
            raise UserError(
                f"formula {self.text!r}: {function}() is not read in formulas", mend=_ELSEWHERE[plain]
            )
        if plain not in FUNCTIONS and not plain.startswith(_CONTRAST_FUNCTION):
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
        return FunctionCall(function, tuple(arguments), tuple(keywords))


def read_expression(text: str) -> Node:
    """Read one R expression, `~` and `|` included."""
    reader = _Reader(text)
    tree = reader.expression()
    kind, value = reader.peek()
    if kind != "end":
        raise reader.fail(f"{value!r} occurs where the formula should end or continue with an operator")
    return tree


def children_of(node: Node) -> tuple[Node, ...]:
    """Return the expressions directly inside one, arguments under their names too."""
    match node:
        case FunctionCall(_, arguments, keywords):
            return *arguments, *(value for _, value in keywords)
        case Binary(_, left, right):
            return left, right
        case Unary(_, inner) | Paren(inner) | MatrixColumn(inner, _):
            return (inner,)
    return ()


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return an expression with the expressions directly inside it changed."""
    match node:
        case FunctionCall(function, arguments, keywords):
            named = tuple((name, change(value)) for name, value in keywords)
            return FunctionCall(function, tuple(map(change, arguments)), named)
        case Binary(op, left, right):
            return Binary(op, change(left), change(right))
        case Unary(op, operand):
            return Unary(op, change(operand))
        case Paren(inner):
            return Paren(change(inner))
        case MatrixColumn(inner, number):
            return MatrixColumn(change(inner), number)
    return node


def total(nodes: Sequence[Node]) -> Node:
    """Join expressions by plus signs."""
    return reduce(lambda left, right: Binary("+", left, right), nodes)


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield an expression and all expressions inside it."""
    yield node
    for part in children_of(node):
        yield from nodes_of(part)


_OF_FIRST = {"C", "dummy", "cut", "relevel", "factor"}
"""Functions that read columns in their first argument alone."""


def columns_of(node: Node) -> tuple[str, ...]:
    """Return the data columns that an expression reads, each once, in order of appearance."""
    match node:
        case Name(name):
            return () if name in CONSTANTS else (name,)
        case FunctionCall(function, (factor, *_), _) if bare(function) in _OF_FIRST:
            return columns_of(factor)
    parts = [
        part
        for index, part in enumerate(children_of(node))
        if not (index and isinstance(node, FunctionCall) and part in SHORT_TRUTH)
    ]
    return tuple(dict.fromkeys(name for part in parts for name in columns_of(part)))


def bare(function: str) -> str:
    """Return a function's name without its package."""
    return function.rpartition("::")[2]


def is_condition(node: Node) -> bool:
    """Whether an expression yields TRUE or FALSE on a row."""
    match node:
        case FunctionCall("I", (inner,)) | Paren(inner):
            return is_condition(inner)
        case FunctionCall("as.logical", _, _) | Unary("!", _):
            return True
        case Binary(op, _, _):
            return op in COMPARISONS | LOGICAL | {"%in%", "|", "||"}
    return False


_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\.(?!\d))[\w.]*\Z")
_RESERVED = frozenset({"if", "else", "repeat", "while", "function", "for", "next", "break", "in"})
"""Words that are not names in R unless quoted with backticks."""
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
        case MatrixColumn(inner, number):
            return f"{as_r(inner)}[, {number}]"
        case FunctionCall(function, arguments, keywords):
            parts = [as_r(a) for a in arguments] + [f"{k} = {as_r(v)}" for k, v in keywords]
            return f"{function}({', '.join(parts)})"
        case Binary(op, left, right):
            gap = "" if op in _TIGHT else " "
            return f"{as_r(left)}{gap}{op}{gap}{as_r(right)}"
        case Unary(op, operand):
            return f"{op}{as_r(operand)}"
        case Paren(inner):
            return f"({as_r(inner)})"


ALL_OTHERS = Name(".")
Term = frozenset[int]
"""A model term: positions in ``Terms.variables``."""


@dataclass(frozen=True)
class Terms:
    """A one-sided model formula, expanded."""

    variables: tuple[Node, ...]  # distinct variables in order of appearance
    terms: tuple[Term, ...]  # the terms in R's order (by number of variables), without the intercept
    intercept: bool  # whether the column of ones is in

    def labels(self) -> tuple[str, ...]:
        """Names of all terms, the intercept excepted, as R has them: variables in order of appearance, joined by colons."""
        return tuple(":".join(as_r(self.variables[i]) for i in sorted(term)) for term in self.terms)


@dataclass(frozen=True)
class FormulaRandomTerm:
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
    response: Node  # left of ``~``; a ``FunctionCall('cbind', …)`` for counts
    fixed: Terms  # the fixed part, offsets taken out
    random: tuple[FormulaRandomTerm, ...]  # in the order written, ``||`` and ``/`` expanded
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

    def fail(self, problem: str, mend: str | None = None) -> UserError:
        return UserError(f"formula {self.text!r}: {problem}", mend=mend)

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
            case Name() | FunctionCall() | MatrixColumn() | Unary("!", _):
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
                base = self.expand(left)
                result = base
                for _ in range(int(power.rstrip("L")) - 1):
                    # Every term meets every other in turn, itself included, as in R.
                    result = _unique(a | b for a in result for b in base)
                return result
            case Literal(text):
                raise self.fail(
                    f"{text} is no model term", "Only 0 and 1 may stand alone, for the intercept."
                )
            case Binary(op, _, _) if op in {"|", "||"}:
                raise self.fail(
                    f"the random-effects term {as_r(node)!r} occurs where lme4 does not allow one",
                    "Put it in parentheses and add it: y ~ x + (1 + x | g).",
                )
        raise self.fail(
            f"{as_r(node)!r} is no model term", "Write arithmetic inside I(), for example I(x^2)."
        )

    def without(self, terms: list[Term], right: Node) -> list[Term]:
        if _is_zero(right):
            return _unique([frozenset(), *terms])
        removed = set(self.expand(right))
        return [t for t in terms if t not in removed]


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
    expanded = algebra.expand(tree)
    ordered = sorted((t for t in expanded if t), key=len)
    return Terms(tuple(algebra.variables), tuple(ordered), frozenset() in expanded)


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
    response, fixed_part, bars, offsets = parts_of(text)
    written = text.strip()
    if fixed_part is not None and columns is not None and ALL_OTHERS in nodes_of(fixed_part):
        others = [name for name in columns if name not in columns_of(response)]
        fixed_part = _spelt_out(fixed_part, others)
        tree = read_expression(text)
        assert isinstance(tree, Binary)
        written = as_r(Binary("~", response, _spelt_out(tree.right, others)))
    fixed = expand_terms(fixed_part, text)
    if as_r(response) in {as_r(v) for v in fixed.variables}:
        raise UserError(
            f"formula {text!r}: the response {as_r(response)} also occurs on the right side and would predict itself",
            mend="Take it out of the right side.",
        )
    random: list[FormulaRandomTerm] = []
    for bar in bars:
        random += _random_terms(bar, text)
    return Formula(written, response, fixed, tuple(random), tuple(offsets))


def _spelt_out(node: Node, others: Sequence[str]) -> Node:
    """Replace ``.`` among the summands and factors of the fixed part by the sum of all other columns."""
    match node:
        case Name("."):
            return Paren(total([Name(name) for name in others] or [Literal("1")]))
        case Binary("|" | "||", _, _) | FunctionCall() | MatrixColumn():
            return node
    return mapped(node, lambda part: _spelt_out(part, others))


def _take(node: Node, bars: list[Binary], offsets: list[Node]) -> Node | None:
    """Move summands that are random-effects terms and offsets into the lists; what is left, or None when nothing is."""
    match node:
        case Paren(Binary("|" | "||", _, _) as bar):
            bars.append(bar)
            return None
        case FunctionCall("offset", (inner,)):
            offsets.append(inner)
            return None
        case Binary("+", left, right):
            parts = [part for side in (left, right) if (part := _take(side, bars, offsets)) is not None]
            return total(parts) if parts else None
        case Binary("-", left, right):
            rest = _take(left, bars, offsets)
            return Unary("-", right) if rest is None else Binary("-", rest, right)
        case Paren(inner):
            inside = _take(inner, bars, offsets)
            return None if inside is None else Paren(inside)
    return node


def _random_terms(bar: Binary, text: str) -> list[FormulaRandomTerm]:
    """Expand ``a/b`` groups first and ``||`` second, as lme4's findbars and expandDoubleVerts do."""
    terms = expand_terms(bar.left, text)
    designs = [terms]
    if bar.op == "||":
        designs = [Terms((), (), True)] if terms.intercept else []
        for term in terms.terms:
            variables = tuple(terms.variables[i] for i in sorted(term))
            designs.append(Terms(variables, (frozenset(range(len(variables))),), False))
    result = []
    for design in designs:
        if not design.intercept and not design.terms:
            raise UserError(f"formula {text!r}: the random-effects term ({as_r(bar)}) has no columns")
        result += [FormulaRandomTerm(design, group, name) for group, name in _groups(bar.right, text)]
    return result


def _groups(node: Node, text: str) -> list[tuple[tuple[Node, ...], str]]:
    """List the grouping factors right of a bar, the innermost first, under the names that lme4 gives them."""
    match node:
        case Paren(inner):
            return _groups(inner, text)
        case Name() | FunctionCall("factor" | "as.factor", (Name(),), ()):
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
