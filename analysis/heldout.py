"""Which predictors explain a response best: models compared by AIC and by how well they foretell items they have not seen.

All models have one response, one set of rows and one random part and differ in their predictors; they are fitted by maximum
likelihood, since likelihoods under REML do not compare across fixed effects. Items are dealt into folds; the held-out
log-likelihood is the sum over rows of the log density that a model fitted without the row's fold gives to it, with the
random effect of a new item and the uncertainty of the estimates integrated out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.contrasts import averaged_probabilities
from analysis.measures.resampling import Interval, interval
from analysis.mixed import fit, predict
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

FAMILIES = ("gaussian", "binomial")
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Candidate:
    """One of several competing models."""

    name: str
    formula: str
    parameters: int  # fixed effects, variances and the residual variance
    loglik: float  # of the maximum-likelihood fit to all rows; nan where it could not be fitted
    aic: float
    held_out: Array
    terms: pd.DataFrame
    sound: bool  # whether the fit to all rows and those of all folds converged


@dataclass(frozen=True)
class Competition:
    """Competing models of the same rows."""

    candidates: tuple[Candidate, ...]
    items: int
    rows: int
    folds: int

    def gain(self, name: str, over: str, *, seed: int = 0, resamples: int = 2000) -> tuple[float, Interval]:
        """Return how many nats a row a candidate gains over another one in held-out items, with a bootstrap over items."""
        named = {one.name: one for one in self.candidates}
        for asked in (name, over):
            if asked not in named:
                raise unknown_name("candidate:", asked, named)
        difference = named[name].held_out - named[over].held_out
        if not np.isfinite(difference).all():
            return float("nan"), Interval(float("nan"), float("nan"), 1.0)
        drawn = np.random.default_rng(seed).multinomial(
            len(difference), np.full(len(difference), 1 / len(difference)), size=resamples
        )
        per_row = self.rows / len(difference)
        return float(difference.sum() / self.rows), interval(drawn @ difference / len(difference) / per_row)

    def table(self, over: str, *, seed: int = 0) -> pd.DataFrame:
        """Return the candidates, best AIC first."""
        rows = []
        for one in self.candidates:
            gain, ends = self.gain(one.name, over, seed=seed)
            rows.append(
                {
                    **{n: getattr(one, n) for n in ("name", "formula", "parameters", "loglik", "aic")},
                    "held_out": float(one.held_out.sum()),
                    "gain": gain,
                    "gain_low": ends.low,
                    "gain_high": ends.high,
                    "items": self.items,
                    "rows": self.rows,
                    "sound": one.sound,
                }
            )
        found = pd.DataFrame(rows)
        found.insert(5, "delta_aic", found["aic"] - found["aic"].min())
        likely = np.exp(-found["delta_aic"] / 2)
        found.insert(6, "weight", likely / likely.sum())
        return found.sort_values("aic", ignore_index=True)


def compete(
    candidates: Mapping[str, Sequence[str]],
    data: pd.DataFrame,
    *,
    response: str,
    random: str = "(1 | item)",
    family: str = "gaussian",
    weights: str | None = None,
    folds: int = FOLDS,
    study: str = "",
) -> Competition:
    """Fit competing models and hold them out item by item."""
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
    many = min(folds, len(names))
    dealt = np.random.default_rng(stable_seed(study, "folds", response, len(names))).permutation(len(names))
    fold_of_item = np.empty(len(names), dtype=int)
    fold_of_item[dealt] = np.arange(len(names)) % many
    fold = fold_of_item[codes]
    found = []
    for name, given in candidates.items():
        model = _Model(response, tuple(given), random, family, weights)
        whole = model.fitted(rows)
        density = np.full(len(rows), np.nan)
        sound = whole is not None and whole.sound
        for one in range(many):
            part = model.fitted(rows[fold != one])
            if part is None:
                sound = False
                continue
            density[fold == one] = part.log_density(rows[fold == one])
            sound = sound and part.sound
        sums = np.bincount(codes, density, minlength=len(names)).astype(float)
        nan, empty = float("nan"), pd.DataFrame(columns=["term", "estimate", "se", "low", "high"])
        found.append(
            Candidate(
                name,
                model.formula,
                whole.parameters if whole else 0,
                whole.loglik if whole else nan,
                2 * (whole.parameters - whole.loglik) if whole else nan,
                sums,
                whole.terms if whole else empty,
                sound,
            )
        )
    return Competition(tuple(found), len(names), len(rows), many)


@dataclass(frozen=True)
class _Model:
    response: str
    predictors: tuple[str, ...]
    random: str
    family: str
    weights: str | None

    @property
    def formula(self) -> str:
        fixed = " + ".join(self.predictors) or "1"
        return f"{self.response} ~ {fixed}" + (f" + {self.random}" if self.random else "")

    def fitted(self, rows: pd.DataFrame) -> _Fitted | None:
        """Fit, or None where the data cannot carry the model."""
        try:
            return _Fitted(self, rows)
        except (UserError, np.linalg.LinAlgError, FloatingPointError):
            return None


def _density(family: str, y: Array, eta: Array, se: Array, residual: Array) -> Array:
    """Return the log density of y with a normal linear predictor integrated out; all shapes (rows,)."""
    if family == "gaussian":
        return np.asarray(stats.norm.logpdf(y, eta, np.sqrt(se**2 + residual**2)))
    p = averaged_probabilities(eta, se**2)[0]
    return np.asarray(np.log(np.where(y > 0.5, p, 1 - p).clip(1e-300)))


class _Fitted:
    def __init__(self, model: _Model, rows: pd.DataFrame) -> None:
        self._model = model
        self._fit = fit(model.formula, rows, family=model.family, reml=False, weights=model.weights)
        self.loglik, self.parameters = self._fit.loglik, self._fit.n_parameters
        self.sound = self._fit.converged and not self._fit.model.matrices.dropped
        fixed = self._fit.fixed
        self.terms = fixed[["term", "estimate", "se"]].assign(low=fixed["ci_low"], high=fixed["ci_high"])

    def log_density(self, rows: pd.DataFrame) -> Array:
        told = predict(self._fit, rows, scale="link", new_levels="population", se=True)
        weight = rows[self._model.weights].to_numpy(dtype=float) if self._model.weights else 1.0
        residual = np.full(len(rows), self._fit.sigma) / np.sqrt(weight)
        eta, se = (told[name].to_numpy(dtype=float) for name in ("estimate", "se"))
        return _density(
            self._model.family, rows[self._model.response].to_numpy(dtype=float), eta, se, residual
        )
