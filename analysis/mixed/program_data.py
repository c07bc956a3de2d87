"""How the R program reads the file: every column as what it was here, and the formula as R can evaluate it.

All cells are read as text, since R would take T and F for truth values and 0x1A for a number. Where R cannot evaluate a
variable as it is written (``relevel()`` of numbers, arithmetic with a column that is a factor too, contrasts that
``factor()`` forgets), the program makes it a column of that name, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .deparse import as_r
from .expression import (
    FACTOR_FUNCTIONS,
    Binary,
    Call,
    Column,
    Name,
    Node,
    Paren,
    Unary,
    bare,
    columns_of,
    nodes_of,
    read_expression,
)
from .formula import expand_terms
from .result import Fit
from .variables import Factor, is_numeric

Array = NDArray[np.float64]

_NUMBERS = frozenset({"integer", "floating", "mixed-integer-float", "decimal"})
_FROM_FACTORS = frozenset({"relevel", "C", "droplevels"})
"""Functions that R has for factors only; here they take any column."""
_FORGETFUL = FACTOR_FUNCTIONS - {"as.factor", "C", "cut"}
"""Functions of factors that drop contrasts in R and keep them here."""
_MAY_BE_KNOWN = frozenset({"%in%", "&", "&&"})
_MAY_BE_KNOWN_CALLS = frozenset({"ifelse", "pmin", "pmax"})
"""Operators and functions with a value although a cell that they read is missing; such rows are left out here."""
_LARGEST_WHOLE = 2**53
_ODD_TEXT = re.compile(r"[#\n\r\\]")


@dataclass(frozen=True)
class ProgramData:
    """The beginning of an R program.

    Attributes
    ----------
    lines : tuple of str
        R code that makes the data frame ``d``.
    formula : str
        The model formula for it.
    weights, offset : str or None
        Expressions for it.
    """

    lines: tuple[str, ...]
    formula: str
    weights: str | None
    offset: str | None

    def arguments(self) -> list[str]:
        """Write what lmer, glmer and glFormula take alike."""
        given = [f"weights = {self.weights}"] if self.weights else []
        return [self.formula, "data = d", *given, *([f"offset = {self.offset}"] if self.offset else [])]


def text_in_r(value: str) -> str:
    """Quote a text for R."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def numbers_in_r(values: Array) -> str:
    """Write numbers as an R vector, shape (k,)."""
    return "c(" + ", ".join(f"{v:.12g}" for v in np.asarray(values, dtype=float).ravel()) + ")"


def _column(name: str) -> str:
    return f"d[[{text_in_r(name)}]]"


def _texts(values: Iterable[str]) -> str:
    return "c(" + ", ".join(text_in_r(v) for v in values) + ")"


class _Reading:
    """Which columns are numbers, truth values and factors to R, and which variables are made beforehand."""

    def __init__(self, fit: Fit) -> None:
        model = fit.model
        self.fit, self.frame = fit, model.frame
        self.variables = model.frame.variables
        formula = model.formula
        extra = [read_expression(text) for text in (model.weights, model.offset) if text]
        self.nodes: list[Node] = [formula.response, *formula.fixed.variables, *formula.offsets, *extra]
        for term in formula.random:
            self.nodes += term.design.variables
        self.groups = [node for term in formula.random for node in term.group]
        self.read = tuple(dict.fromkeys(c for node in self.nodes for c in columns_of(node)))
        grouping = (c for node in self.groups for c in columns_of(node))
        self.columns = tuple(dict.fromkeys([*self.read, *grouping]))
        self.cells = {name: _cells(self.frame.data[name]) for name in self.columns}
        self.held: dict[str, str] = {}
        self.before: list[str] = []
        self.after: list[str] = []
        for node in self.nodes:
            self._hold(node)

    def given(self, name: str) -> bool:
        """Whether levels or contrasts were given for a column."""
        return name in self.variables.levels or name in self.variables.contrasts

    def is_factor(self, name: str) -> bool:
        """Whether a column is a factor in R."""
        if name not in self.read:
            return False
        wanted = self.given(name) or self.cells[name] == "text"
        return wanted or (self.cells[name] == "number" and not is_numeric(self.frame.data[name]))

    def _hold(self, node: Node) -> None:
        match node:
            case Name():
                return
            case Call("cbind", arguments, _):
                for argument in arguments:
                    self._hold(argument)
                return
        calls = _factor_calls(node)
        if calls:
            (name,) = columns_of(calls[-1])
            functions = [bare(call.function) for call in calls]
            forgotten = name in self.variables.contrasts and _FORGETFUL.intersection(functions)
            if forgotten or (functions[-1] in _FROM_FACTORS and not self.is_factor(name)):
                made = self.variables.make(node)
                if isinstance(made, Factor) and made.condition is None:
                    self.after += self.factor_lines(self._name(node), made)
            return
        if any(self.is_factor(c) and self.cells[c] != "text" for c in columns_of(node)):
            self.before.append(f"{_column(self._name(node))} <- with(d, {as_r(node)})")

    def _name(self, node: Node) -> str:
        label = as_r(node)
        self.held[label] = label.replace("`", "")
        return self.held[label]

    def factor_lines(self, name: str, factor: Factor) -> list[str]:
        """Make a factor with the levels and contrasts that it had here."""
        levels, labels = _texts(factor.levels), factor.printed
        if self.cells[factor.column] == "number":
            levels = numbers_in_r(np.array(factor.levels, dtype=float))
            # R prints 100000 as 1e+05.
            labels = labels or factor.levels
        named = f", labels = {_texts(labels)}" if labels else ""
        target = _column(name)
        is_ordered = factor.contrast.name == "poly" and self.variables.is_ordered(factor.column)
        ordered = ", ordered = TRUE" if is_ordered else ""
        lines = [f"{target} <- factor({_column(factor.column)}, levels = {levels}{named}{ordered})"]
        return lines if is_ordered else lines + _contrast_lines(target, factor)

    def lines(self) -> list[str]:
        """Turn texts into what they stand for."""
        lines = [f"names(d)[{i}] <- {text_in_r(name)}" for i, name in self._respelt()]
        numbers = [c for c in self.columns if self.cells[c] == "number" and not self._too_long(c)]
        truths = [c for c in self.columns if self.cells[c] == "truth"]
        if numbers:
            lines += [f"numbers <- {_texts(numbers)}", "d[numbers] <- lapply(d[numbers], as.numeric)"]
        if truths:
            lines += [f"truths <- {_texts(truths)}"]
            lines += ["d[truths] <- lapply(d[truths], function(cells) as.logical(toupper(cells)))"]
        lines += self._missing_lines()
        if self.held:
            lines.append("# Variables that R does not evaluate as they are written in the formula:")
        lines += self.before
        response = self.fit.model.formula.response
        for name in self.columns:
            if self.is_factor(name):
                lines += self.factor_lines(name, self.variables.factor(name))
            elif Name(name) == response and self.cells[name] == "truth":
                lines.append(f"{_column(name)} <- as.numeric({_column(name)})")
        return lines + self.after

    def _too_long(self, name: str) -> bool:
        cells = self.frame.data[name]
        if name in self.read or not pd.api.types.is_integer_dtype(cells):
            return False
        return bool(np.abs(cells.to_numpy(dtype=float)).max() >= _LARGEST_WHOLE)

    def _respelt(self) -> list[tuple[str, str]]:
        """Column names that R's reader would trim."""
        odd = [name for name in self.columns if name != name.strip()]
        return [(f"trimws(names(d)) == {text_in_r(name.strip())}", name) for name in odd]

    def _missing_lines(self) -> list[str]:
        whole = self.variables.learn_from
        gappy = [c for c in self.columns if whole[c].isna().any()]
        lines = []
        for node in [part for n in self.nodes for part in nodes_of(n)]:
            if isinstance(node, Call) and node.function in {"poly", "stats::poly"}:
                for c in columns_of(node):
                    if c in gappy:
                        lines.append(f"d <- d[!is.na({_column(c)}), ]  # poly() takes no missing values")
        if gappy and any(_may_be_known(node) for node in self.nodes):
            group = columns_of(self.groups[0])[0]
            lines.append(f"d[!complete.cases(d[{_texts(gappy)}]), {text_in_r(group)}] <- NA")
        return list(dict.fromkeys(lines))


def _cells(cells: pd.Series[Any]) -> str:
    """Tell what the cells of a column are: number, truth or text."""
    values = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells.unique()
    found = pd.api.types.infer_dtype(list(values), skipna=True)
    if is_numeric(cells) or found in _NUMBERS:
        return "number"
    return "truth" if found == "boolean" else "text"


def _factor_calls(node: Node) -> list[Call]:
    """List calls within calls that make one column a factor, the outermost first."""
    calls: list[Call] = []
    while isinstance(node, Call) and bare(node.function) in FACTOR_FUNCTIONS:
        calls.append(node)
        node = node.arguments[0]
    return calls if isinstance(node, Name) else []


def _may_be_known(node: Node) -> bool:
    return any(
        (isinstance(part, Binary) and part.op in _MAY_BE_KNOWN)
        or (isinstance(part, Call) and part.function in _MAY_BE_KNOWN_CALLS)
        for part in nodes_of(node)
    )


def _contrast_lines(column: str, factor: Factor) -> list[str]:
    coding, count = factor.contrast, len(factor.levels)
    if coding.name == "treatment":
        return []
    if coding.name == "custom":
        cells = numbers_in_r(coding.matrix(factor.levels).ravel(order="F"))
        lines = [f"contrasts({column}) <- matrix({cells}, {count})"]
        if coding.names != tuple(str(i + 1) for i in range(count - 1)):
            lines.append(f"colnames(contrasts({column})) <- {_texts(coding.names)}")
        return lines
    if coding.name == "sdif":
        return [f"contrasts({column}) <- MASS::contr.sdif(levels({column}))"]
    return [f"contrasts({column}) <- contr.{coding.name}({count})"]


def _replaced(node: Node, held: Mapping[str, str], is_group: bool = False) -> Node:
    """Put the columns made beforehand in place of their expressions; right of a bar stand plain columns."""
    if as_r(node) in held:
        return Name(held[as_r(node)])
    match node:
        case Call("factor" | "as.factor", (inner,), ()) if is_group:
            return inner
        case Call(function, arguments, keywords):
            parts = tuple(_replaced(a, held) for a in arguments)
            return Call(function, parts, tuple((k, _replaced(v, held)) for k, v in keywords))
        case Binary("|" | "||" as bar, left, right):
            return Binary(bar, _replaced(left, held), _replaced(right, {}, True))
        case Binary(op, left, right):
            return Binary(op, _replaced(left, held, is_group), _replaced(right, held, is_group))
        case Unary(op, operand):
            return Unary(op, _replaced(operand, held, is_group))
        case Paren(inner):
            return Paren(_replaced(inner, held, is_group))
        case Column(inner, number):
            return Column(_replaced(inner, held), number)
    return node


def single_bars(node: Node) -> Node:
    """Write ``||`` out: lme4 reads the names inside again, without their backticks, and clmm does not read it."""
    match node:
        case Paren(Binary("||", left, right)):
            terms = expand_terms(left, as_r(left))
            parts = (["1"] if terms.intercept else []) + [f"0 + {label}" for label in terms.labels()]
            bars: list[Node] = [Paren(Binary("|", read_expression(part), right)) for part in parts]
            total = bars[0]
            for bar in bars[1:]:
                total = Binary("+", total, bar)
            return total
        case Binary(op, left, right):
            return Binary(op, single_bars(left), single_bars(right))
        case Paren(inner):
            return Paren(single_bars(inner))
    return node


def _spelt(text: str, held: Mapping[str, str]) -> str:
    tree = read_expression(text)
    replaced = _replaced(tree, held)
    if any(isinstance(part, Name) and as_r(part) != part.name for part in nodes_of(replaced)):
        replaced = single_bars(replaced)
    return text if replaced == tree and not _ODD_TEXT.search(text) else as_r(replaced)


def program_data(fit: Fit, file: str) -> ProgramData:
    """Write the lines that read the file, and the formula in terms of what they made.

    Parameters
    ----------
    fit : Fit
        The model to repeat; weights and offset name columns.
    file : str
        The CSV file's name as R should open it.
    """
    reading = _Reading(fit)
    model = fit.model
    return ProgramData(
        lines=(
            f'd <- read.csv({text_in_r(file)}, colClasses = "character", check.names = FALSE,',
            '  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")',
            *reading.lines(),
        ),
        formula=_spelt(fit.formula, reading.held),
        weights=_spelt(model.weights, reading.held) if model.weights else None,
        offset=_spelt(model.offset, reading.held) if model.offset else None,
    )
