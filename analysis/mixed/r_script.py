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
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.arrays import Array
from analysis.mixed.formula import (
    FACTOR_FUNCTIONS,
    Binary,
    FunctionCall,
    Name,
    Node,
    Paren,
    as_r,
    bare,
    columns_of,
    expand_terms,
    mapped,
    nodes_of,
    read_expression,
    total,
)
from analysis.mixed.result import Fit
from analysis.mixed.variables import Factor, is_numeric
from stimuli.errors import UserError

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
        weights = [f"weights = {self.weights}"] if self.weights else []
        return [self.formula, "data = d", *weights, *([f"offset = {self.offset}"] if self.offset else [])]


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
    """Types of the columns in R (numbers, truth values, factors), and the variables that are made beforehand."""

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
            case FunctionCall("cbind", arguments, _):
                for argument in arguments:
                    self._hold(argument)
                return
        calls = _factor_calls(node)
        if calls:
            (name,) = columns_of(calls[-1])
            functions = [bare(call.function) for call in calls]
            forgotten = name in self.variables.contrasts and _FORGETFUL.intersection(functions)
            if forgotten or (functions[-1] in _FROM_FACTORS and not self.is_factor(name)):
                variable = self.variables.make(node)
                if isinstance(variable, Factor) and variable.condition is None:
                    self.after += self.factor_lines(self._name(node), variable)
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
        # R's reader trims column names.
        padded = [name for name in self.columns if name != name.strip()]
        lines = [
            f"names(d)[trimws(names(d)) == {text_in_r(name.strip())}] <- {text_in_r(name)}" for name in padded
        ]
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

    def joined(self) -> list[str]:
        """Columns that stand together as one grouping."""
        groups = [term.group for term in self.fit.model.formula.random if len(term.group) > 1]
        return list(dict.fromkeys(_column(c) for group in groups for node in group for c in columns_of(node)))

    def _too_long(self, name: str) -> bool:
        cells = self.frame.data[name]
        if name in self.read or not pd.api.types.is_integer_dtype(cells):
            return False
        return bool(np.abs(cells.to_numpy(dtype=float)).max() >= _LARGEST_WHOLE)

    def _missing_lines(self) -> list[str]:
        data = self.variables.learn_from
        incomplete = [c for c in self.columns if data[c].isna().any()]
        lines = []
        for node in [part for n in self.nodes for part in nodes_of(n)]:
            if isinstance(node, FunctionCall) and node.function in {"poly", "stats::poly"}:
                for c in columns_of(node):
                    if c in incomplete:
                        lines.append(f"d <- d[!is.na({_column(c)}), ]  # poly() takes no missing values")
        if incomplete and any(_may_be_known(node) for node in self.nodes):
            group = columns_of(self.groups[0])[0]
            lines.append(f"d[!complete.cases(d[{_texts(incomplete)}]), {text_in_r(group)}] <- NA")
        return list(dict.fromkeys(lines))


def _cells(cells: pd.Series[Any]) -> str:
    """Return the type of a column's cells: number, truth or text."""
    values = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells.unique()
    inferred = pd.api.types.infer_dtype(list(values), skipna=True)
    if is_numeric(cells) or inferred in _NUMBERS:
        return "number"
    return "truth" if inferred == "boolean" else "text"


def _factor_calls(node: Node) -> list[FunctionCall]:
    """List calls within calls that make one column a factor, the outermost first."""
    calls: list[FunctionCall] = []
    while isinstance(node, FunctionCall) and bare(node.function) in FACTOR_FUNCTIONS:
        calls.append(node)
        node = node.arguments[0]
    return calls if isinstance(node, Name) else []


def _may_be_known(node: Node) -> bool:
    return any(
        (isinstance(part, Binary) and part.op in _MAY_BE_KNOWN)
        or (isinstance(part, FunctionCall) and part.function in _MAY_BE_KNOWN_CALLS)
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


def _replaced(node: Node, made_columns: Mapping[str, str], is_group: bool = False) -> Node:
    """Replace expressions by the columns made beforehand; to the right of a bar, only plain columns are possible."""
    if as_r(node) in made_columns:
        return Name(made_columns[as_r(node)])
    match node:
        case FunctionCall("factor" | "as.factor", (inner,), ()) if is_group:
            return inner
        case FunctionCall():
            is_group = False
        case Binary("|" | "||" as bar, left, right):
            return Binary(bar, _replaced(left, made_columns), _replaced(right, {}, True))
    return mapped(node, lambda part: _replaced(part, made_columns, is_group))


def single_bars(node: Node) -> Node:
    """Write ``||`` out: lme4 reads the names inside again, without their backticks, and clmm does not read it."""
    match node:
        case Paren(Binary("||", left, right)):
            terms = expand_terms(left, as_r(left))
            parts = (["1"] if terms.intercept else []) + [f"0 + {label}" for label in terms.labels()]
            return total([Paren(Binary("|", read_expression(part), right)) for part in parts])
    return mapped(node, single_bars)


def _spelt(text: str, made_columns: Mapping[str, str]) -> str:
    tree = read_expression(text)
    replaced = _replaced(tree, made_columns)
    # a column named `if` may stand without backticks here, not in R
    if any(isinstance(part, Name) and as_r(part) != part.name for part in nodes_of(replaced)):
        return as_r(single_bars(replaced))
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
            # clmm, unlike lme4, takes the colon between two groupings for a range unless both are factors.
            *(
                f"{column} <- factor({column})"
                for column in (reading.joined() if fit.cuts is not None else ())
            ),
        ),
        formula=_spelt(fit.formula, reading.held),
        weights=_spelt(model.weights, reading.held) if model.weights else None,
        offset=_spelt(model.offset, reading.held) if model.offset else None,
    )


_STEPS = "optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6)"
_UNCHECKED = 'check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore"'
_BASES = {
    "logit": ("qlogis", "plogis", "dlogis(eta)"),
    "probit": ("qnorm", "pnorm", "dnorm(eta)"),
    "cloglog": ("(function(p) log(-log1p(-p)))", "(function(eta) -expm1(-exp(eta)))", "exp(eta - exp(eta))"),
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
_SMALL_SIGMA = 1e-3
"""Residual standard deviations below this are small compared with lmerTest's steps."""


def lme4_program(fit: Fit, file: str) -> str:
    """Write an R program that reads a CSV file and fits the model with lme4 at tight control.

    lme4's default control stops early for generalised models (log-likelihood low by 1e-4 to 1e-3, standard errors off
    by about 1 %), so the program narrows the optimiser and begins at our estimates.
    """
    # Only programs need jinja2, and simulations import this package often.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    model, link, terms = fit.model, fit.model.link, fit.model.matrices.covariance.terms
    criterion = model.criterion
    if model.numbers_given:
        raise UserError(
            f"{' and '.join(model.numbers_given)} were given as numbers, which the file does not hold",
            mend="Put them into a column and name it.",
        )
    if fit.shape is not None:
        raise UserError(
            f"no R function fits {fit.family} models by maximum likelihood",
            mend=f"In R, brms fits the same model with priors: family = {fit.family}().",
        )
    data = program_data(fit, file)
    is_linear, is_ordinary = model.family.has_scale, not terms or _ordinary_columns(fit)
    reasons = _why_written_out(fit) if fit.cuts is None else []
    is_written = bool(reasons) and fit.family != "betabinomial"
    function, arguments = ("", []) if is_written else _call(fit, data, is_ordinary)
    designs = [model.formula.fixed, *(term.design for term in model.formula.random)]
    parts = [part for design in designs for variable in design.variables for part in nodes_of(variable)]
    used = {
        "ordinal": fit.cuts is not None,
        "lme4": fit.cuts is None and fit.variance,
        "lmerTest": is_linear and fit.variance,
        "Matrix": reasons,
        "splines": {"ns", "bs"} & {part.function for part in parts if isinstance(part, FunctionCall)},
    }
    rate, spellings = f"{link.guess:.15g}", ("quantile", "probability", "density")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["text_in_r"] = text_in_r
    return environment.get_template("program.R.j2").render(
        fit=fit,
        criterion=criterion,
        data=data,
        why=reasons,
        terms=terms,
        packages=[name for name, needed in used.items() if needed],
        is_linear=is_linear,
        has_dispersion=model.family.dispersion is not None,
        guess=dict(zip(spellings, _BASES[link.base], strict=True), rate=rate) if link.guess else None,
        function=function,
        arguments=arguments,
        is_scaled=function == "lmer" and not is_ordinary,
        has_small_steps=function == "lmer"
        and len(fit.fixed) > 0
        and (fit.sigma < _SMALL_SIGMA or not is_ordinary),
        unit=np.concatenate([_row_sizes(t.transform)[t.positions[0]] for t in terms]) if terms else None,
        written=_written_out(fit) if is_written else None,
        unchecked=_UNCHECKED,
        text_in_r=text_in_r,
        numbers_in_r=numbers_in_r,
    )


def _call(fit: Fit, data: ProgramData, is_ordinary: bool) -> tuple[str, list[str]]:
    """Choose the function of R that fits the model, and its arguments."""
    model, criterion, arguments = fit.model, fit.model.criterion, data.arguments()
    family = f"family = {_family(fit)}"
    beta = numbers_in_r(fit.fixed["estimate"].to_numpy())
    if fit.cuts is not None:
        if criterion.penalty is not None or (criterion.nagq > 1 and fit.variance[0].cov.size > 1):
            raise UserError(
                "no R function computes this: clmm has neither penalty nor quadrature for slopes",
                mend="Leave --penalty or --nagq out.",
            )
        random = bool(model.formula.random)
        response, _, terms = as_r(single_bars(read_expression(data.formula))).partition("~")
        offset = f" + offset({data.offset})" if data.offset else ""
        return "clmm" if random else "clm", [
            f"ordered({response.strip()}) ~ {terms.strip()}{offset}",
            *(a for a in arguments[1:] if not a.startswith("offset")),
            f"link = {text_in_r(fit.link)}",
            *([f"nAGQ = {criterion.nagq}", "control = clmm.control(gradTol = 1e-6)"] if random else []),
        ]
    if fit.family == "betabinomial":
        return "glmmTMB::glmmTMB", [*arguments, family]
    if not fit.variance:
        if model.family.has_scale:
            return "lm", arguments
        start = [f"start = {beta}"] if len(fit.fixed) else []
        return "glm", [*arguments, family, *start, "control = glm.control(epsilon = 1e-14, maxit = 100)"]
    theta = numbers_in_r(lme4_theta(fit))
    if model.family.has_scale:
        reml = f"REML = {'TRUE' if model.reml else 'FALSE'}"
        optimizer = f'"bobyqa", {_STEPS}' if is_ordinary else f'"scaled", {_STEPS}, calc.derivs = FALSE'
        control = f"control = lmerControl(optimizer = {optimizer}, {_UNCHECKED})"
        return "lmer", [*arguments, reml, f"start = {theta}", control]
    # At its end glmer takes the determinant from the weights one iteration back. That deviance jumps, by some 4e-4 at a tolerance
    # of 1e-12, where the number of iterations changes, and standard errors that are differences of it over 1e-4 are then nonsense.
    # The tolerance stays above what rounding makes of a sum over the rows, where glmer would end with an error.
    tolerance = max(1e-13, 3e-16 * float(np.sqrt(fit.nobs)))
    narrow = f'optimizer = "bobyqa", {_STEPS}, tolPwrss = {tolerance:.2g}'
    return "glmer", [
        *arguments,
        family,
        f"nAGQ = {criterion.nagq}",
        *([f"start = list(theta = {theta}, fixef = {beta})"] if len(fit.fixed) else []),
        f"control = glmerControl({narrow}{', nAGQ0initStep = FALSE' if len(fit.fixed) else ''})",
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


def _why_written_out(fit: Fit) -> list[str]:
    """List what lme4's functions cannot do for a generalised model; empty if they can fit it."""
    model, criterion = fit.model, fit.model.criterion
    if model.family.has_scale:
        return []
    if fit.family == "betabinomial":
        return ["lme4 has no beta-binomial family, so glmmTMB fits the model."]
    terms, kind = model.matrices.covariance.terms, model.family.dispersion
    penalised = criterion.penalty is not None
    if not terms:
        reasons = {
            f"glm does not estimate {kind} by maximum likelihood": kind is not None,
            "glm has no penalty": penalised,
        }
        return [f"{reason}, so the likelihood is written out." for reason, holds in reasons.items() if holds]
    ordinary = fit.fixed["se"].between(*_ORDINARY).all() and _ordinary_columns(fit)
    canonical = fit.link in {"logit", "log"} and kind is None
    observed = criterion.information == "observed" and criterion.nagq == 1
    ml, is_negative = criterion.dispersion == "ml", fit.family == "negative.binomial"
    reasons = {
        "glmer does not estimate phi by maximum likelihood": kind == "phi" and ml,
        "glmer has the expected information only": observed and not canonical,
        "glmer has no penalty": penalised,
        "glmer has quadrature for one random effect a level only": criterion.nagq > 1
        and (len(terms) > 1 or terms[0].width > 1),
        "glmer.nb leaves theta out of standard errors and may stop before it has an answer": is_negative,
        "glmer's steps are for columns of ordinary size; here some are very small or large": ml
        and not ordinary,
    }
    first, *others = [reason for reason, holds in reasons.items() if holds] or [""]
    also = [f"Also: {reason}." for reason in others]
    return [f"{first}, so the criterion is written out over lme4's matrices.", *also] if first else []


def _ordinary_columns(fit: Fit) -> bool:
    low, high = _ORDINARY_COLUMNS
    sizes = np.concatenate([1.0 / _row_sizes(t.transform) for t in fit.model.matrices.covariance.terms])
    return bool(((sizes > low) & (sizes < high)).all())


def _row_sizes(transform: Array) -> Array:
    return np.asarray(np.sqrt((transform**2).sum(axis=1)))


def _written_out(fit: Fit) -> dict[str, Any]:
    """Return what the template needs to write the likelihood itself over lme4's matrices."""
    matrices, penalty = fit.model.matrices, fit.model.criterion.penalty
    loglik, variance = _DENSITIES[fit.family]
    r = np.asarray(np.linalg.qr(matrices.x, mode="r"))
    se = np.sqrt(np.diag(r @ fit.vcov.to_numpy() @ r.T))
    # Theta is relative to the residuals' spread, so that a tenth of the largest, or of a small one, is a step.
    size = 0.1 * max(float(np.abs(fit.theta).max(initial=0.0)), 0.2)
    log_d = [float(np.log(fit.dispersion))] if fit.dispersion is not None else []
    return {
        "family": 'poisson(link = "log")' if fit.family == "negative.binomial" else _family(fit),
        "loglik": loglik,
        "variance": variance,
        "start": np.concatenate([fit.theta, log_d, fit.fixed["estimate"].to_numpy()]),
        "unit": np.concatenate([size * np.ones(len(fit.theta)), [0.1] * len(log_d), se]),
        "penalty": None if penalty is None else penalty.on_coefficients(matrices),
    }
