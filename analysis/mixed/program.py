"""The R program that fits the same model with lme4, or an ordinal one with clmm, so that a reviewer can refit every number.

Without random effects it calls lm or glm. Where lme4 has the criterion, the program is one call at tight control from our
estimates. What these do not compute is written out in R, over lme4's matrices, and the program says why.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError

from .deparse import as_r
from .expression import Call, columns_of, nodes_of, read_expression
from .links import Link
from .program_data import ProgramData, numbers_in_r, program_data, single_bars, text_in_r
from .result import Fit

Array = NDArray[np.float64]

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

    Raises
    ------
    UserError
        If weights or offset are not columns of the data.
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
