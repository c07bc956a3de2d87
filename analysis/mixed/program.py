"""The R program that fits the same model with lme4 (ordinal: clmm; no random effects: lm, glm), so that a reviewer can refit it.

Where lme4 has the criterion, the program is one call at tight control from our estimates. What it does not compute is
written out in R over lme4's matrices, and the program says why. All cells are read as text, since R would take T and F for
truth values and 0x1A for a number. Where R cannot evaluate a variable as written (``relevel()`` of numbers, arithmetic with
a column that is also a factor, contrasts that ``factor()`` forgets), the program makes it a column of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli.errors import UserError

from .expression import (
    FACTOR_FUNCTIONS,
    Binary,
    Call,
    Column,
    Name,
    Node,
    Paren,
    Unary,
    as_r,
    bare,
    columns_of,
    nodes_of,
    read_expression,
)
from .formula import expand_terms
from .links import Link
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
    """The beginning of an R program."""

    lines: tuple[str, ...]  # R code that makes the data frame ``d``
    formula: str  # the model formula for it
    weights: str | None  # weights, offset: expressions for it
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
    """Write the lines that read the file, and the formula in terms of what they made."""
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


_STEPS = "optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6)"
_NARROW = f'optimizer = "bobyqa", {_STEPS}'
_UNCHECKED = 'check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore"'
_BASES = {
    "logit": ("qlogis", "plogis", "dlogis(eta)"),
    "probit": ("qnorm", "pnorm", "dnorm(eta)"),
    "cloglog": (
        "(function(p) log(-log1p(-p)))",
        "(function(eta) -expm1(-exp(eta)))",
        "exp(eta - exp(eta))",
    ),
}
_DENSITIES = {
    "gaussian": ("dnorm(y, mu, sqrt(d / w), log = TRUE)", "d + 0 * mu"),
    "Gamma": ("dgamma(y, shape = w / d, scale = mu * d / w, log = TRUE)", "d * mu^2"),
    "inverse.gaussian": (
        "0.5 * log(w / (2 * pi * d * y^3)) - w * (y - mu)^2 / (2 * d * mu^2 * y)",
        "d * mu^3",
    ),
    "negative.binomial": ("w * dnbinom(y, size = d, mu = mu, log = TRUE)", "mu + mu^2 / d"),
    "binomial": ("dbinom(round(w * y), round(w), mu, log = TRUE)", "mu * (1 - mu)"),
    "poisson": ("w * dpois(y, mu, log = TRUE)", "mu"),
}


_ORDINARY = (2e-3, 5.0)
"""Standard errors that glmer's Hessian, by steps of 1e-4, can tell."""
_ORDINARY_COLUMNS = (0.05, 20.0)
"""Root mean squares of columns with random slopes for which bobyqa's steps are right."""

_ROUGH = "# glmer takes these standard errors from differences of a deviance that it finds to a tolerance: a few per cent."
_NO_FIT = (
    "# The results are fixed, vcov and log_likelihood; an m of a program before this one is of another model.",
    'rm(list = intersect("m", ls()))',
)
_SMALL_SIGMA = 1e-3
"""Residual standard deviations below this are small beside lmerTest's steps."""


def lme4_program(fit: Fit, file: str) -> str:
    """Write an R program that reads a CSV file and fits the model with lme4 at tight control.

    lme4's default control stops early for generalised models (log-likelihood low by 1e-4 to 1e-3, standard errors off
    by about 1 %), so the program narrows the optimiser and begins at our estimates.

    Parameters
    ----------
    fit : Fit
        The model to repeat.
    file : str
        The CSV file's name as R should open it.

    Returns
    -------
    str
        The program, ending in a newline.
    """
    model = fit.model
    criterion = model.criterion
    if model.numbers_given:
        raise UserError(
            f"{' and '.join(model.numbers_given)} were given as numbers, which the file does not hold",
            mend="Put them into a column and name it.",
        )
    data = program_data(fit, file)
    if fit.cuts is not None:
        return _ordinal_program(fit, data)
    if fit.shape is not None:
        raise UserError(
            f"no R function fits {fit.family} models by maximum likelihood",
            mend=f"In R, brms fits the same model with priors: family = {fit.family}().",
        )
    why = _why_written_out(fit)
    lines = [
        f"# {' '.join(fit.formula.split())}",
        *([f"# {fit.method}"] if not model.family.has_scale else []),
        *([f"# penalty: {criterion.penalty}"] if criterion.penalty is not None else []),
        *(f"# {reason}" for reason in why),
        *([_ROUGH] if criterion.dispersion == "glmer" else []),
        *(["library(lme4)"] if fit.variance else []),
        *(
            ["library(lmerTest)  # Satterthwaite degrees of freedom"]
            if model.family.has_scale and fit.variance
            else []
        ),
        *(["library(Matrix)"] if why else []),
        *(["library(splines)"] if _has_splines(fit) else []),
        "",
        *data.lines,
        *_guess_lines(model.link),
        "",
    ]
    if fit.family == "betabinomial":
        family = f"family = betabinomial(link = {text_in_r(fit.link)})"
        lines += _call("glmmTMB::glmmTMB", [*data.arguments(), family])
        lines += ["print(summary(m), digits = 6)", "print(logLik(m), digits = 10)"]
    elif not (fit.variance or why):
        lines += _independent(fit, data)
    elif model.family.has_scale:
        lines += _linear(fit, data)
    elif why:
        lines += _written_out(fit, data)
    else:
        lines += _call("glmer", _generalised_arguments(fit, data)) + _report(fit) + _saturated_lines(fit)
    return "\n".join(lines) + "\n"


def _ordinal_program(fit: Fit, data: ProgramData) -> str:
    criterion, random = fit.model.criterion, bool(fit.model.formula.random)
    if criterion.penalty is not None or (criterion.nagq > 1 and fit.variance[0].cov.size > 1):
        raise UserError(
            "no R function computes this: clmm has neither penalty nor quadrature for slopes",
            mend="Leave --penalty or --nagq out.",
        )
    response, _, terms = as_r(single_bars(read_expression(data.formula))).partition("~")
    arguments = [
        f"ordered({response.strip()}) ~ {terms.strip()}{f' + offset({data.offset})' if data.offset else ''}",
        "data = d",
        *([f"weights = {data.weights}"] if data.weights else []),
        f"link = {text_in_r(fit.link)}",
        *([f"nAGQ = {criterion.nagq}", "control = clmm.control(gradTol = 1e-6)"] if random else []),
    ]
    joined = [term.group for term in fit.model.formula.random if len(term.group) > 1]
    columns = dict.fromkeys(text_in_r(c) for group in joined for node in group for c in columns_of(node))
    lines = [
        f"# {' '.join(fit.formula.split())}",
        f"# {fit.method}",
        "library(ordinal)",
        *(["library(splines)"] if _has_splines(fit) else []),
        "",
        *data.lines,
        # clmm, unlike lme4, takes the colon between two groupings for a range unless both are factors.
        *(f"d[[{column}]] <- factor(d[[{column}]])" for column in columns),
        "",
        *_call("clmm" if random else "clm", arguments),
        "print(summary(m), digits = 6)",
        "print(logLik(m), digits = 10)",
    ]
    return "\n".join(lines) + "\n"


def _why_written_out(fit: Fit) -> list[str]:
    """Say what lme4's functions cannot do of a generalised model; empty where they can."""
    model, criterion = fit.model, fit.model.criterion
    if model.family.has_scale:
        return []
    if fit.family == "betabinomial":
        return ["lme4 has no beta-binomial family, so glmmTMB fits the model."]
    terms = model.matrices.covariance.terms
    reasons = []
    if not terms:
        if model.family.dispersion is not None:
            reasons.append(f"glm does not estimate {model.family.dispersion} by maximum likelihood")
        if criterion.penalty is not None:
            reasons.append("glm has no penalty")
        return [f"{reason}, so the likelihood is written out." for reason in reasons]
    if model.family.dispersion == "phi" and criterion.dispersion == "ml":
        reasons.append("glmer does not estimate phi by maximum likelihood")
    canonical = fit.link in {"logit", "log"} and model.family.dispersion is None
    if criterion.information == "observed" and criterion.nagq == 1 and not canonical:
        reasons.append("glmer has the expected information only")
    if criterion.penalty is not None:
        reasons.append("glmer has no penalty")
    if criterion.nagq > 1 and (len(terms) > 1 or terms[0].width > 1):
        reasons.append("glmer has quadrature for one random effect a level only")
    if fit.family == "negative.binomial":
        reasons.append("glmer.nb leaves theta out of standard errors and may stop before it has an answer")
    if criterion.dispersion == "ml" and not (_ordinary_estimates(fit) and _ordinary_columns(fit)):
        reasons.append("glmer's steps are for columns of ordinary size; here some are very small or large")
    return [f"{reason}, so the criterion is written out over lme4's matrices." for reason in reasons[:1]] + [
        f"Also: {reason}." for reason in reasons[1:]
    ]


def _ordinary_estimates(fit: Fit) -> bool:
    low, high = _ORDINARY
    return bool(fit.fixed["se"].between(low, high).all())


def _ordinary_columns(fit: Fit) -> bool:
    low, high = _ORDINARY_COLUMNS
    sizes = np.concatenate([1.0 / _row_sizes(t.transform) for t in fit.model.matrices.covariance.terms])
    return bool(((sizes > low) & (sizes < high)).all())


def _row_sizes(transform: Array) -> Array:
    return np.asarray(np.sqrt((transform**2).sum(axis=1)))


def _has_splines(fit: Fit) -> bool:
    formula = fit.model.formula
    variables = [*formula.fixed.variables, *(v for term in formula.random for v in term.design.variables)]
    called = {part.function for v in variables for part in nodes_of(v) if isinstance(part, Call)}
    return bool(called & {"ns", "bs"})


def _call(function: str, arguments: list[str]) -> list[str]:
    return [f"m <- {function}(", *(f"  {a}," for a in arguments[:-1]), f"  {arguments[-1]}", ")", ""]


def _independent(fit: Fit, data: ProgramData) -> list[str]:
    """Call lm or glm for a model of fixed effects alone."""
    if fit.model.family.has_scale:
        likelihood = (
            []
            if fit.model.reml
            else ["# lm's standard errors divide by rows less coefficients, ML's by rows."]
        )
        called = [*likelihood, *_call("lm", data.arguments())]
    else:
        start = [f"start = {numbers_in_r(fit.fixed['estimate'].to_numpy())}"] if len(fit.fixed) else []
        control = "control = glm.control(epsilon = 1e-14, maxit = 100)"
        called = _call("glm", [*data.arguments(), f"family = {_family(fit)}", *start, control])
    return [
        *called,
        "print(summary(m), digits = 6)",
        f"print({'confint' if fit.model.family.has_scale else 'confint.default'}(m), digits = 6)",
        "print(logLik(m), digits = 10)",
    ]


def _report(fit: Fit) -> list[str]:
    intervals = ['print(confint(m, parm = "beta_", method = "Wald"), digits = 6)']
    if fit.model.family.has_scale:
        # lme4's Wald intervals are normal; these go with lmerTest's p values.
        intervals = [
            "table <- coef(summary(m))",
            'half <- qt(0.975, table[, "df"]) * table[, "Std. Error"]',
            'print(cbind("2.5 %" = table[, "Estimate"] - half, "97.5 %" = table[, "Estimate"] + half), digits = 6)',
        ]
    return [
        "print(summary(m), digits = 6)",
        *(intervals if len(fit.fixed) else []),
        "print(logLik(m), digits = 10)",
    ]


def _linear(fit: Fit, data: ProgramData) -> list[str]:
    arguments = [
        *data.arguments(),
        f"REML = {'TRUE' if fit.model.reml else 'FALSE'}",
        f"start = {numbers_in_r(lme4_theta(fit))}",
    ]
    terms = fit.model.matrices.covariance.terms
    unit = np.concatenate([_row_sizes(t.transform)[t.positions[0]] for t in terms])
    degrees = [f"unit <- {numbers_in_r(unit)}", *_source("degrees.R"), ""] if len(fit.fixed) else []
    if _ordinary_columns(fit):
        control = f"lmerControl({_NARROW}, {_UNCHECKED})"
        fitted = _call("lmer", [*arguments, f"control = {control}"])
        return [*fitted, *(degrees if fit.sigma < _SMALL_SIGMA else []), *_report(fit)]
    control = f'lmerControl(optimizer = "scaled", {_STEPS}, calc.derivs = FALSE, {_UNCHECKED})'
    return [
        "# Steps as large as the columns ask for: bobyqa takes the same for all parameters.",
        "scaled <- function(fn, par, lower, upper, control) {",
        f"  unit <- {numbers_in_r(unit)}",
        "  found <- minqa::bobyqa(par / unit, function(z) fn(z * unit), lower / unit, upper / unit, control)",
        "  list(par = found$par * unit, fval = found$fval, feval = found$feval, conv = 0, message = found$msg)",
        "}",
        *_call("lmer", [*arguments, f"control = {control}"]),
        *degrees,
        *_report(fit),
    ]


def _generalised_arguments(fit: Fit, data: ProgramData) -> list[str]:
    at_once = ", nAGQ0initStep = FALSE" if len(fit.fixed) else ""
    start = f"list(theta = {numbers_in_r(lme4_theta(fit))}, fixef = {numbers_in_r(fit.fixed['estimate'].to_numpy())})"
    return [
        *data.arguments(),
        f"family = {_family(fit)}",
        f"nAGQ = {fit.model.criterion.nagq}",
        *([f"start = {start}"] if len(fit.fixed) else []),
        f"control = glmerControl({_NARROW}, tolPwrss = {_pirls_tolerance(fit):.2g}{at_once})",
    ]


def _pirls_tolerance(fit: Fit) -> float:
    """Return the relative change of the deviance at which glmer's search for the modes ends.

    At its end glmer takes the determinant from the weights one iteration back. That deviance jumps, by some 4e-4 at a tolerance of
    1e-12, where the number of iterations changes, and standard errors that are differences of it over 1e-4 are then nonsense. The
    tolerance stays above what rounding makes of a sum over the rows, where glmer would end with an error.
    """
    return max(1e-13, 3e-16 * float(np.sqrt(fit.nobs)))


def _saturated_lines(fit: Fit) -> list[str]:
    if fit.model.criterion.nagq == 1:
        return []
    saturated = {
        "binomial": "dbinom(round(r$weights * r$y), round(r$weights), r$y, log = TRUE)",
        "poisson": "r$weights * dpois(r$y, r$y, log = TRUE)",
    }[fit.family]
    return [
        "# For nAGQ > 1 lme4 leaves the log-likelihood of the saturated model out.",
        "r <- m@resp",
        f"log_likelihood <- as.numeric(logLik(m)) + sum({saturated})",
        "print(log_likelihood, digits = 10)",
    ]


def lme4_theta(fit: Fit) -> Array:
    """Return theta as lme4 has it: per term the lower triangle of the relative covariance factor, column by column."""
    parts = []
    for term in fit.model.matrices.covariance.terms:
        raw = term.transform @ term.template(fit.theta)
        lower = np.asarray(np.linalg.qr(raw.T, mode="r")).T
        lower = lower * np.where(np.diag(lower) < 0, -1.0, 1.0)
        parts.append(lower[term.positions])
    return np.concatenate(parts)


def _family(fit: Fit) -> str:
    if fit.model.link.guess:
        return "binomial(link = guess)"
    return f"{fit.family}(link = {text_in_r(fit.link)})"


def _guess_lines(link: Link) -> list[str]:
    """Write the link with a guess rate as an R link object, as psyphy's mafc links are."""
    if not link.guess:
        return []
    quantile, probability, density = _BASES[link.base]
    rate = f"{link.guess:.15g}"
    return [
        "guess <- structure(list(",
        f"  linkfun = function(mu) {quantile}(pmax((mu - {rate}) / (1 - {rate}), 1e-3)),",
        f"  linkinv = function(eta) pmin({rate} + (1 - {rate}) * {probability}(eta), 1 - .Machine$double.eps),",
        f"  mu.eta = function(eta) (1 - {rate}) * {density},",
        "  valideta = function(eta) TRUE,",
        f"  name = {text_in_r(link.name)}",
        '), class = "link-glm")',
    ]


def _start_lines(fit: Fit) -> list[str]:
    """Write start and unit of every parameter: theta, log dispersion, coefficients along the directions of X."""
    matrices = fit.model.matrices
    r = np.asarray(np.linalg.qr(matrices.x, mode="r"))
    along = np.sqrt(np.diag(r @ fit.vcov.to_numpy() @ r.T))
    # Theta is relative to the residuals' spread, so that a tenth of the largest, or of a small one, is a step.
    size = 0.1 * max(float(np.abs(fit.theta).max(initial=0.0)), 0.2)
    log_d = [float(np.log(fit.dispersion))] if fit.dispersion is not None else []
    values = np.concatenate([fit.theta, log_d, fit.fixed["estimate"].to_numpy()])
    units = np.concatenate([size * np.ones(len(fit.theta)), [0.1] * len(log_d), along])
    bases = [
        f"matrix({numbers_in_r(t.transform.ravel(order='F'))}, {t.width})" for t in matrices.covariance.terms
    ]
    return [
        f"names <- c({', '.join(text_in_r(t) for t in fit.fixed['term'])})",
        f"start <- {numbers_in_r(values)}",
        f"unit <- {numbers_in_r(units)}",
        f"basis <- list({', '.join(bases)})",
    ]


def _penalty_lines(fit: Fit) -> list[str]:
    penalty, matrices = fit.model.criterion.penalty, fit.model.matrices
    if penalty is None:
        return ["penalty <- function(par) 0"]
    coefficients = penalty.on_coefficients(matrices)
    k, p = matrices.covariance.size, len(coefficients)
    return [
        "penalty <- function(par) {",
        f"  beta <- par[{len(fit.theta) + int(fit.dispersion is not None)} + seq_len({p})]",
        f"  P <- matrix({numbers_in_r(coefficients)}, {p})",
        "  # In orthonormal columns the squares of theta sum to a term's mean variance over rows.",
        f"  sum(par[seq_len({k})]^2) / {penalty.spread:g}^2 + drop(beta %*% P %*% beta)",
        "}",
    ]


def _source(name: str) -> list[str]:
    return resources.files(__package__).joinpath(name).read_text("utf-8").splitlines()


def _written_out(fit: Fit, data: ProgramData) -> list[str]:
    """Write the likelihood itself over lme4's matrices."""
    loglik, variance = _DENSITIES[fit.family]
    model, criterion = fit.model, fit.model.criterion
    dispersion = model.family.dispersion is not None
    family = 'poisson(link = "log")' if fit.family == "negative.binomial" else _family(fit)
    return [
        *_NO_FIT,
        f"family <- {family}",
        f"has_dispersion <- {'TRUE' if dispersion else 'FALSE'}",
        f"positive <- {'FALSE' if fit.family == 'gaussian' else 'TRUE'}",
        f"information <- {text_in_r(criterion.information)}",
        f"points <- {criterion.nagq}",
        f"loglik <- function(y, mu, w, d) {loglik}",
        f"variance <- function(mu, d) {variance}",
        *(
            [
                f"parts <- glFormula({', '.join(data.arguments())}, family = family,",
                f"  control = glmerControl({_UNCHECKED}))",
            ]
            if fit.variance
            else [
                f"frame <- model.frame({', '.join(data.arguments())})",
                'parts <- list(fr = frame, X = model.matrix(attr(frame, "terms"), frame))',
            ]
        ),
        *_start_lines(fit),
        *_penalty_lines(fit),
        "",
        *_source("criterion.R"),
        "",
        *([*_source("quadrature.R"), ""] if criterion.nagq > 1 else []),
        *_source("search.R"),
        *(
            [f'cat({text_in_r(str(model.family.dispersion))}, exp(par[n_theta + 1]), "\\n")']
            if dispersion
            else []
        ),
        "print(log_likelihood, digits = 10)",
    ]
