"""Compare models with different predictors by AIC and by their predictions for held-out items.

All are fitted by maximum likelihood, since likelihoods under REML do not compare across fixed effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from analysis.arrays import Array
from analysis.contrasts import averaged_probability
from analysis.measures.resampling import BootstrapInterval, interval
from analysis.mixed import APPROXIMATE, Fit, fit, predict
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

FAMILIES = ("gaussian", "binomial")
FOLDS = 10
TERMS = ["term", "estimate", "se", "low", "high"]


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """One of several competing models."""

    name: str
    formula: str
    parameters: int  # fixed effects, variances and the residual variance
    loglik: float  # of the maximum-likelihood fit to all rows; nan where it could not be fitted
    aic: float
    held_out: Array
    terms: pd.DataFrame
    sound: bool  # whether the fits to all rows and of all folds converged to what the data determine


@dataclass(frozen=True)
class Competition:
    """Competing models of the same rows."""

    candidates: tuple[CandidateModel, ...]
    items: int
    rows: int
    folds: int

    def gain(
        self, name: str, over: str, *, seed: int = 0, resamples: int = 2000
    ) -> tuple[float, BootstrapInterval]:
        """Return how many nats a row a candidate gains over another one in held-out items, with a bootstrap over items."""
        by_name = {candidate.name: candidate for candidate in self.candidates}
        for candidate in (name, over):
            if candidate not in by_name:
                raise unknown_name("candidate:", candidate, by_name)
        difference = by_name[name].held_out - by_name[over].held_out
        if not np.isfinite(difference).all():
            return float("nan"), BootstrapInterval(float("nan"), float("nan"), 1.0)
        drawn = np.random.default_rng(seed).multinomial(
            len(difference), np.full(len(difference), 1 / len(difference)), size=resamples
        )
        per_row = self.rows / len(difference)
        return float(difference.sum() / self.rows), interval(drawn @ difference / len(difference) / per_row)

    def table(self, over: str, *, seed: int = 0) -> pd.DataFrame:
        """Return the candidates, best AIC first."""
        rows = []
        for candidate in self.candidates:
            gain, ends = self.gain(candidate.name, over, seed=seed)
            row = {
                name: getattr(candidate, name) for name in ("name", "formula", "parameters", "loglik", "aic")
            }
            row |= {"held_out": float(candidate.held_out.sum()), "gain": gain, "gain_low": ends.low}
            row |= {"gain_high": ends.high, "items": self.items, "rows": self.rows, "sound": candidate.sound}
            rows.append(row)
        table = pd.DataFrame(rows)
        table.insert(5, "delta_aic", table["aic"] - table["aic"].min())
        likelihood = np.exp(-table["delta_aic"] / 2)
        table.insert(6, "weight", likelihood / likelihood.sum())
        return table.sort_values("aic", ignore_index=True)


@dataclass(frozen=True)
class OutcomeModel:
    """What all candidates share: the column that they explain, random effects, family, and the column of weights."""

    response: str
    random: str = "(1 | item)"
    family: str = "gaussian"
    weights: str | None = None


def compete(
    candidates: Mapping[str, Sequence[str]],
    data: pd.DataFrame,
    outcome: OutcomeModel,
    *,
    folds: int = FOLDS,
    study: str = "",
) -> Competition:
    """Fit competing models and hold them out item by item."""
    response, random, family, weights = outcome.response, outcome.random, outcome.family, outcome.weights
    if family not in FAMILIES:
        raise unknown_name("family of competing models:", family, FAMILIES)
    if folds < 2:
        raise UserError(f"{folds} folds", mend="Give 2 or more: one is held out, the others are fitted.")
    predictors = list(dict.fromkeys(name for names in candidates.values() for name in names))
    needed = [response, "item", *predictors, *([weights] if weights else [])]
    for name in needed:
        if name not in data:
            raise unknown_name("column:", name, [str(column) for column in data])
    rows = data.dropna(subset=needed).reset_index(drop=True)
    codes, names = pd.factorize(rows["item"])
    if len(names) < 2:
        raise UserError(f"{len(names)} item with all predictors", mend="Give two items at least.")
    n_folds = min(folds, len(names))
    permutation = np.random.default_rng(stable_seed(study, "folds", response, len(names))).permutation(
        len(names)
    )
    fold = np.argsort(permutation)[codes] % n_folds
    results = []
    for name, columns in candidates.items():
        formula = f"{response} ~ {' + '.join(columns) or '1'}" + (f" + {random}" if random else "")
        full = _fitted(formula, rows, family, weights)
        sound, density = _is_sound(full), np.full(len(rows), np.nan)
        for held_out in range(n_folds):
            part = _fitted(formula, rows[fold != held_out], family, weights)
            sound &= _is_sound(part)
            # where the data do not determine a fit, the errors of its predictions are noise
            if part is not None and APPROXIMATE not in part.warnings:
                density[fold == held_out] = _log_density(part, rows[fold == held_out], response, weights)
        sums = np.bincount(codes, density, minlength=len(names)).astype(float)
        parameters, loglik = (0, float("nan")) if full is None else (full.n_parameters, full.loglik)
        terms = pd.DataFrame(columns=TERMS)
        if full is not None:
            terms = full.fixed.rename(columns={"ci_low": "low", "ci_high": "high"})[TERMS]
        aic = 2 * (parameters - loglik)
        results.append(CandidateModel(name, formula, parameters, loglik, aic, sums, terms, sound))
    return Competition(tuple(results), len(names), len(rows), n_folds)


def _fitted(formula: str, rows: pd.DataFrame, family: str, weights: str | None) -> Fit | None:
    """Fit, or None where the data cannot carry the model."""
    try:
        return fit(formula, rows, family=family, reml=False, weights=weights)
    except (UserError, np.linalg.LinAlgError, FloatingPointError):
        return None


def _is_sound(fitted: Fit | None) -> bool:
    if fitted is None or APPROXIMATE in fitted.warnings:
        return False
    return fitted.converged and not fitted.model.matrices.dropped


def _log_density(fitted: Fit, rows: pd.DataFrame, response: str, weights: str | None) -> Array:
    """Return the log density of each response with a normal linear predictor integrated out, shape (rows,)."""
    predicted = predict(fitted, rows, scale="link", new_levels="population", se=True)
    eta, se = (predicted[name].to_numpy(dtype=float) for name in ("estimate", "se"))
    y = rows[response].to_numpy(dtype=float)
    if fitted.family == "gaussian":
        residual = fitted.sigma / np.sqrt(rows[weights].to_numpy(dtype=float) if weights else 1.0)
        return np.asarray(stats.norm.logpdf(y, eta, np.sqrt(se**2 + residual**2)))
    p = averaged_probability(eta, se**2)
    return np.asarray(np.log(np.where(y > 0.5, p, 1 - p).clip(1e-300)))
