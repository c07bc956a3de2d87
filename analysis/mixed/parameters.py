"""The parameters of a mixed model under lme4's names: standard deviations, correlations, residual, fixed effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .result import Fit


@dataclass(frozen=True)
class Parameter:
    """One parameter on the scale on which it is reported.

    Attributes
    ----------
    name : str
        lme4's: ``sd_Days|Subject``, ``cor_Days.(Intercept)|Subject``, ``sigma``, or a fixed effect's.
    kind : {'sd', 'cor', 'sigma', 'dispersion', 'shape', 'threshold', 'fixed'}
        What it is; ``dispersion`` is theta of the negative binomial, ``shape`` of times.
    at : int
        Random term, threshold, parameter of times, or column of X.
    row, column : int
        Within the random term; a correlation is that of ``row`` with ``column``, row > column.
    """

    name: str
    kind: str
    at: int = 0
    row: int = 0
    column: int = 0


def parameters_of(fit: Fit) -> list[Parameter]:
    """List a model's parameters in the order of lme4's ``confint``."""
    found = []
    matrices = fit.model.matrices
    for at, term in enumerate(matrices.covariance.terms):
        group = matrices.groupings[term.factor].name
        for column in range(term.width):
            name = f"sd_{term.names[column]}|{group}"
            found.append(Parameter(name, "sd", at, column, column))
            for row in range(column + 1, term.width):
                name = f"cor_{term.names[row]}.{term.names[column]}|{group}"
                found.append(Parameter(name, "cor", at, row, column))
    family = fit.model.family
    if family.has_scale or family.dispersion == "phi":
        found.append(Parameter("sigma", "sigma"))
    elif family.dispersion in {"theta", "precision"}:
        found.append(Parameter(family.dispersion, "dispersion"))
    if fit.shape is not None:
        found += [Parameter(name, "shape", at) for at, name in enumerate(fit.shape.response.terms)]
    fixed = [Parameter(name, "fixed", at) for at, name in enumerate(matrices.names)]
    if fit.thresholds is not None:
        fixed[0:1] = [Parameter(name, "threshold", at) for at, name in enumerate(fit.thresholds["term"])]
    return found + fixed


def estimate_of(fit: Fit, parameter: Parameter) -> float:
    """Estimate of a parameter; a correlation with a vanished standard deviation is nan."""
    match parameter.kind:
        case "sd":
            return float(fit.variance[parameter.at].sd[parameter.row])
        case "cor":
            return float(fit.variance[parameter.at].corr[parameter.row, parameter.column])
        case "sigma":
            return fit.sigma
        case "dispersion":
            return float(fit.dispersion) if fit.dispersion is not None else np.nan
        case "threshold":
            assert fit.thresholds is not None
            return float(fit.thresholds["estimate"].iloc[parameter.at])
        case "shape":
            assert fit.shape is not None
            return float(fit.shape.response.natural[0][parameter.at])
    return float(fit.fixed["estimate"].iloc[parameter.at])
