"""The R program that fits the same model with lme4, so that a reviewer can refit every number.

Where lme4 has the criterion, the program is one call at tight control from our estimates. A penalty is added to lme4's
deviance function; the likelihood of Gamma and inverse Gaussian models, which lme4 does not compute, is written out in R
over lme4's matrices.
"""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError

from .expression import Call, columns_of, nodes_of
from .links import Link
from .result import Fit
from .variables import Factor, is_boolean, is_numeric

Array = NDArray[np.float64]

_NARROW = 'optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6)'
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


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _column(name: str) -> str:
    return f"d[[{_text(name)}]]"


def _numbers(values: Array) -> str:
    return "c(" + ", ".join(f"{v:.12g}" for v in values) + ")"


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

    Raises
    ------
    UserError
        If weights or offset are not columns of the data, or nothing in R computes the criterion.
    """
    model = fit.model
    criterion = model.criterion
    if model.numbers_given:
        raise UserError(
            f"{' and '.join(model.numbers_given)} were given as numbers, which the file does not hold",
            mend="Put them into a column and name it.",
        )
    likelihood = model.family.dispersion == "phi" and criterion.dispersion == "ml"
    own = likelihood or (criterion.information == "observed" and fit.link not in {"logit", "log"})
    own = own or (criterion.information == "observed" and model.family.dispersion is not None)
    # glmer fits without the penalty first, and stops where data separate, which is what the penalty is for.
    own = own or (criterion.penalty is not None and criterion.nagq == 1)
    if own and criterion.nagq > 1:
        raise UserError(
            f"no R program: lme4 has no quadrature for the {fit.family} family with a dispersion that is estimated",
            mend="Ask for the program of the fit with nAGQ = 1.",
        )
    if criterion.nagq > 1 and model.matrices.effects[0].width > 1:
        raise UserError(
            f"no R program: lme4 has nAGQ = {criterion.nagq} for one random effect a level only, and this model has "
            f"{model.matrices.effects[0].width}",
            mend="Ask for the program of the fit with nAGQ = 1.",
        )
    lines = [
        f"# {fit.formula}",
        *([f"# {fit.method}"] if not model.family.has_scale else []),
        *([f"# penalty: {criterion.penalty}"] if criterion.penalty is not None else []),
        "library(lme4)",
        *(["library(lmerTest)  # Satterthwaite degrees of freedom"] if model.family.has_scale else []),
        *(["library(Matrix)"] if own else []),
        *(["library(splines)"] if _has_splines(fit) else []),
        "",
        f'd <- read.csv({_text(file)}, check.names = FALSE, na.strings = c("NA", "", "NaN"){_read_as_text(fit)})',
        *_factor_lines(fit),
        *_guess_lines(model.link),
        "",
    ]
    if model.family.has_scale:
        lines += _call("lmer", _linear_arguments(fit)) + _report()
    elif own:
        lines += _written_out(fit)
    elif criterion.penalty is not None:
        lines += _penalised(fit)
    else:
        name = "glmer.nb" if _estimates_theta(fit) else "glmer"
        lines += _call(name, _generalised_arguments(fit)) + _report() + _saturated_lines(fit)
    return "\n".join(lines) + "\n"


def _has_splines(fit: Fit) -> bool:
    formula = fit.model.formula
    variables = [*formula.fixed.variables, *(v for term in formula.random for v in term.design.variables)]
    called = {part.function for v in variables for part in nodes_of(v) if isinstance(part, Call)}
    return bool(called & {"ns", "bs"})


def _call(function: str, arguments: list[str]) -> list[str]:
    return [f"m <- {function}(", *(f"  {a}," for a in arguments[:-1]), f"  {arguments[-1]}", ")", ""]


def _report() -> list[str]:
    return [
        "print(summary(m), digits = 6)",
        'print(confint(m, parm = "beta_", method = "Wald"), digits = 6)',
        "print(logLik(m), digits = 10)",
    ]


def _data_arguments(fit: Fit) -> list[str]:
    model = fit.model
    # lme4 finds no column inside factor() right of a bar; there a plain name is a factor anyway.
    plain = re.sub(r"(\|\s*)(?:as\.)?factor\(\s*([\w.]+|`[^`]+`)\s*\)", r"\1\2", fit.formula)
    arguments = [plain, "data = d"]
    arguments += [f"weights = {model.weights}"] if model.weights else []
    return arguments + ([f"offset = {model.offset}"] if model.offset else [])


def _linear_arguments(fit: Fit) -> list[str]:
    return [
        *_data_arguments(fit),
        f"REML = {'TRUE' if fit.model.reml else 'FALSE'}",
        f"start = {_numbers(lme4_theta(fit))}",
        f"control = lmerControl({_NARROW})",
    ]


def _generalised_arguments(fit: Fit) -> list[str]:
    start = f"list(theta = {_numbers(lme4_theta(fit))}, fixef = {_numbers(fit.fixed['estimate'].to_numpy())})"
    arguments = _data_arguments(fit)
    if _estimates_theta(fit):
        arguments += [f"initCtrl = list(theta = {_number(fit.dispersion)})"]
    else:
        arguments += [f"family = {_family(fit)}"]
    return [
        *arguments,
        f"nAGQ = {fit.model.criterion.nagq}",
        *([f"start = {start}"] if len(fit.fixed) else []),
        f"control = glmerControl({_NARROW}, tolPwrss = 1e-12{', nAGQ0initStep = FALSE' if len(fit.fixed) else ''})",
    ]


def _estimates_theta(fit: Fit) -> bool:
    """Whether lme4 can be asked for theta: not of penalised fits, nor by quadrature, where its log-likelihood lacks terms."""
    criterion = fit.model.criterion
    return fit.family == "negative.binomial" and criterion.penalty is None and criterion.nagq == 1


def _saturated_lines(fit: Fit) -> list[str]:
    if fit.model.criterion.nagq == 1:
        return []
    saturated = {
        "binomial": "dbinom(round(r$weights * r$y), round(r$weights), r$y, log = TRUE)",
        "poisson": "r$weights * dpois(r$y, r$y, log = TRUE)",
        "negative.binomial": f"r$weights * dnbinom(r$y, size = {_number(fit.dispersion)}, mu = r$y, log = TRUE)",
    }[fit.family]
    return [
        "# For nAGQ > 1 lme4 leaves the log-likelihood of the saturated model out.",
        "r <- m@resp",
        f"log_likelihood <- as.numeric(logLik(m)) + sum({saturated})",
        "print(log_likelihood, digits = 10)",
    ]


def _number(value: float | None) -> str:
    return f"{1.0 if value is None else value:.12g}"


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
    if fit.family == "negative.binomial":
        return f"MASS::negative.binomial(theta = {_number(fit.dispersion)})"
    if fit.model.link.guess:
        return "binomial(link = guess)"
    return f"{fit.family}(link = {_text(fit.link)})"


def _guess_lines(link: Link) -> list[str]:
    """Write the link with a guess rate as an R link object, as psyphy's mafc links are."""
    if not link.guess:
        return []
    quantile, probability, density = _BASES[link.base]
    rate = f"{link.guess:.15g}"
    return [
        "guess <- structure(list(",
        f"  linkfun = function(mu) {quantile}(pmax((mu - {rate}) / (1 - {rate}), 1e-3)),",
        f"  linkinv = function(eta) {rate} + (1 - {rate}) * {probability}(eta),",
        f"  mu.eta = function(eta) (1 - {rate}) * {density},",
        "  valideta = function(eta) TRUE,",
        f"  name = {_text(link.name)}",
        '), class = "link-glm")',
    ]


def _start_lines(fit: Fit, dispersion: bool) -> list[str]:
    theta, se = lme4_theta(fit), fit.fixed["se"].to_numpy()
    diagonal = np.concatenate(
        [(t.positions[0] == t.positions[1]).astype(float) for t in fit.model.matrices.covariance.terms]
    )
    size = 0.1 * float(np.abs(theta).max(initial=0.0)) + 1e-8 * (1.0 - diagonal)
    log_d = [float(np.log(fit.dispersion))] if dispersion and fit.dispersion is not None else []
    values = np.concatenate([theta, log_d, fit.fixed["estimate"].to_numpy()])
    units = np.concatenate([size * np.ones(len(theta)), [0.1] * len(log_d), se])
    return [
        f"n_theta <- {len(theta)}",
        f"names <- c({', '.join(_text(t) for t in fit.fixed['term'])})",
        f"start <- {_numbers(values)}",
        f"unit <- {_numbers(units)}",
    ]


def _penalty_lines(fit: Fit, dispersion: bool) -> list[str]:
    penalty = fit.model.criterion.penalty
    if penalty is None:
        return ["penalty <- function(par) 0"]
    coefficients = penalty.on_coefficients(fit.model.matrices)
    spreads = []
    for term in fit.model.matrices.covariance.terms:
        # tr(L' G L) with G the cross-products of the raw columns is the term's mean variance over rows.
        inverse = np.linalg.inv(term.transform)
        spreads.append(inverse.T @ inverse)
    lines = ["penalty <- function(par) {", "  total <- 0"]
    at = 0
    for term, gram in zip(fit.model.matrices.covariance.terms, spreads, strict=True):
        k, size = term.width, term.width * (term.width + 1) // 2
        lines += [
            f"  L <- matrix(0, {k}, {k})",
            f"  L[lower.tri(L, diag = TRUE)] <- par[{at + 1}:{at + size}]",
            f"  G <- matrix({_numbers(gram.ravel())}, {k})",
            f"  total <- total + sum(L * (G %*% L)) / {penalty.spread:g}^2",
        ]
        at += size
    p = len(coefficients)
    return [
        *lines,
        f"  beta <- par[{at + int(dispersion) + 1}:{at + int(dispersion) + p}]",
        f"  total + drop(beta %*% matrix({_numbers(coefficients.ravel())}, {p}) %*% beta)",
        "}",
    ]


def _source(name: str) -> list[str]:
    return resources.files("analysis.mixed").joinpath(name).read_text("utf-8").splitlines()


def _penalised(fit: Fit) -> list[str]:
    """Write lme4's deviance function with the penalty added."""
    return [
        *_call("glmer", _generalised_arguments(fit)),
        "deviance_at <- update(m, devFunOnly = TRUE)",
        *_start_lines(fit, False),
        *_penalty_lines(fit, False),
        "",
        *_source("search.R"),
        "print(log_likelihood, digits = 10)",
    ]


def _written_out(fit: Fit) -> list[str]:
    """Write the likelihood itself over lme4's matrices."""
    loglik, variance = _DENSITIES[fit.family]
    dispersion = fit.model.family.dispersion is not None
    family = 'poisson(link = "log")' if fit.family == "negative.binomial" else _family(fit)
    return [
        f"family <- {family}",
        f"has_dispersion <- {'TRUE' if dispersion else 'FALSE'}",
        f"information <- {_text(fit.model.criterion.information)}",
        f"loglik <- function(y, mu, w, d) {loglik}",
        f"variance <- function(mu, d) {variance}",
        f"parts <- glFormula({', '.join(_data_arguments(fit))}, family = family)",
        *_start_lines(fit, dispersion),
        *_penalty_lines(fit, dispersion),
        "",
        *_source("criterion.R"),
        "",
        *_source("search.R"),
        *(
            [f'cat({_text(str(fit.model.family.dispersion))}, exp(par[n_theta + 1]), "\\n")']
            if dispersion
            else []
        ),
        "print(log_likelihood, digits = 10)",
    ]


def _factor_lines(fit: Fit) -> list[str]:
    """Set levels and contrasts of every factor in fixed part, slopes and response, as they were used here."""
    frame = fit.model.frame
    parts = [fit.model.formula.response, *fit.model.formula.fixed.variables]
    for term in fit.model.formula.random:
        parts += term.design.variables
    columns = dict.fromkeys(c for node in parts for c in columns_of(node))
    lines = []
    for name in columns:
        given = name in frame.variables.levels or name in frame.variables.contrasts
        if is_numeric(frame.data[name]) and not given:
            continue
        if is_boolean(frame.data[name]) and not given:
            # Truth values are TRUE and FALSE to R, however the file writes them, and numbers in arithmetic.
            lines.append(f"{_column(name)} <- as.logical(toupper({_column(name)}))")
            continue
        factor = frame.variables.factor(name)
        levels = ", ".join(_text(v) for v in factor.levels)
        cells = f"toupper({_column(name)})" if is_boolean(frame.data[name]) else _column(name)
        lines.append(f"{_column(name)} <- factor({cells}, levels = c({levels}))")
        lines += _contrast_lines(_column(name), factor)
    return lines


_READ_OTHERWISE = re.compile(r"T|F|TRUE|FALSE|true|false|True|False|0[xX].*|[-+\d.]+[dDeE][-+\d]+|[-+]?Inf")
"""Texts that R's ``read.csv`` takes for truth values or numbers and pandas does not."""


def _read_as_text(fit: Fit) -> str:
    """Have R read columns as text whose every cell it would take for something else."""
    data = fit.model.frame.data
    texts = [name for name in data.columns if not is_numeric(data[name]) and not is_boolean(data[name])]
    odd = [name for name in texts if all(_READ_OTHERWISE.fullmatch(str(v)) for v in data[name].unique())]
    kinds = ", ".join(_text(name) + ' = "character"' for name in odd)
    return f", colClasses = c({kinds})" if odd else ""


def _contrast_lines(column: str, factor: Factor) -> list[str]:
    coding, count = factor.contrast, len(factor.levels)
    if coding.name == "treatment":
        return []
    if coding.name == "custom":
        cells = _numbers(coding.matrix(factor.levels).ravel(order="F"))
        lines = [f"contrasts({column}) <- matrix({cells}, {count})"]
        if coding.names != tuple(str(i + 1) for i in range(count - 1)):
            lines.append(f"colnames(contrasts({column})) <- c({', '.join(_text(n) for n in coding.names)})")
        return lines
    if coding.name == "sdif":
        return [f"contrasts({column}) <- MASS::contr.sdif(levels({column}))"]
    return [f"contrasts({column}) <- contr.{coding.name}({count})"]
