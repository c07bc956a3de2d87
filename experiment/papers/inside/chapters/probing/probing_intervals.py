"""Intervals for the accuracy of probes: items are resampled, the same ones for every layer and condition.

Intervals over folds are widened (:func:`widening`) after Nadeau and Bengio (2003), since folds share training items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.arrays import Array, Index, Mask
from analysis.intervals import without_spread
from analysis.measures.resampling import percentile_ends, resampled_ratios
from experiment.papers.inside.chapters.probing.probes import Probing
from experiment.papers.inside.chapters.probing.probing_fit import CONDITION
from stimuli.seeds import stable_seed

RESAMPLES = 2000
LEVEL = 0.95
ALL = "all"
"""The name of all conditions together."""
_UNMOVED = "; where all items are alike (all right, or judged alike by two probes), by Wilson's bound on the share that could differ"
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ProbeEstimates:
    """A value of every condition and layer."""

    value: Array  # shape (conditions, layers): with percentile intervals, each by itself
    low: Array  # shape (conditions, layers)
    high: Array  # shape (conditions, layers)
    low_all: Array  # shape (conditions, layers): simultaneous over all of these values
    high_all: Array  # shape (conditions, layers)
    unmoved: Mask


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Proportions correct of one model's probes."""

    names: tuple[str, ...]  # the conditions, and all of them together behind them where there are several
    trials: Index  # shape (conditions,): held-out trials
    units: int  # families that were drawn again
    widened: float  # factor of intervals' widths (`widening`)
    chance: Array
    accuracy: ProbeEstimates
    steps: ProbeEstimates  # accuracy at a layer minus that at the one before; shape (conditions, layers − 1)
    against: ProbeEstimates
    control: ProbeEstimates  # accuracy of the control task, the mean over its shuffles
    selectivity: ProbeEstimates  # accuracy minus that of the control task

    @property
    def intervals(self) -> str:
        """The method of a single interval, in words."""
        wider = (
            f", {self.widened:.2f} times as wide since folds share training items" if self.widened > 1 else ""
        )
        parts = (self.accuracy, self.steps, self.against, self.control, self.selectivity)
        return f"percentile bootstraps over items{wider}{_UNMOVED if any(part.unmoved.any() for part in parts) else ''}"


@dataclass(frozen=True, eq=False)
class Probed:
    """One model's probes with what they get right."""

    probing: Probing
    found: Accuracies

    @property
    def name(self) -> str:
        """The model."""
        return self.probing.group

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions without all of them together."""
        return self.probing.conditions

    @property
    def last(self) -> int:
        """The last layer."""
        return len(self.probing.layers) - 1

    @property
    def by_label(self) -> tuple[float, float]:
        """Least and greatest chance as labels' frequencies give it; single conditions that are predicted have another."""
        chance = self.found.chance[-1:] if self.probing.target == CONDITION else self.found.chance
        return float(chance.min()), float(chance.max())

    def first_above(self, index: int) -> int | None:
        """Return the first layer at which a condition's accuracy lies above chance, all layers and conditions taken together."""
        above = np.flatnonzero(self.found.accuracy.low_all[index] > self.found.chance[index])
        return int(above[0]) if len(above) else None

    def steepest(self, index: int) -> int | None:
        """Return the layer that adds most to a condition's accuracy; None where none adds anything."""
        gained = self.found.steps.value[index]
        return int(np.argmax(gained)) + 1 if gained.size and gained.max() > 0 else None


def accuracies(probing: Probing, study: str, resamples: int = RESAMPLES) -> Accuracies:
    """Return accuracy, steps, differences and selectivity of a model's probes, with intervals."""
    tested = probing.tested
    label, condition, family = probing.label[tested], probing.condition[tested], probing.family[tested]
    right = np.stack([layer.predicted[tested] == label for layer in probing.layers], axis=1).astype(float)
    nothing = np.full(len(label), np.nan)
    controlled = [layer.controls == probing.controls for layer in probing.layers]
    is_any = len(probing.controls) > 0
    learnt = np.stack([it[:, tested].mean(axis=0) if is_any else nothing for it in controlled], axis=1)
    names = (*probing.conditions, ALL) if len(probing.conditions) > 1 else probing.conditions
    n_conditions, layers = len(probing.conditions), len(probing.layers)
    sums, counts = _sums(np.concatenate([right, learnt], axis=1), condition, family, n_conditions)
    shares = _shares(
        sums, counts, stable_seed(study, "probing items", probing.group, probing.target), resamples
    )
    accuracy, control = shares[..., :layers], shares[..., layers:]
    estimates = {
        "accuracy": accuracy,
        "control": control,
        "steps": np.diff(accuracy, axis=2),
        "against": accuracy[:, 1:n_conditions] - accuracy[:, :1],
        "selectivity": accuracy - control,
    }
    trials = np.bincount(condition, minlength=n_conditions)
    units = (counts > 0).sum(axis=0)
    wider = widening(len(probing.dealt.splits))
    return Accuracies(
        names=names,
        trials=np.append(trials, trials.sum()) if n_conditions > 1 else trials,
        units=len(counts),
        widened=wider,
        chance=_chance(probing, tested),
        **{
            name: _estimates(
                values[0],
                values[1:],
                wider,
                np.minimum(units[1:n_conditions], units[0]) if name == "against" else units,
                least=0.0 if name in ("accuracy", "control") else -1.0,
            )
            for name, values in estimates.items()
        },
    )


def _chance(probing: Probing, tested: Mask) -> Array:
    """Return chance as :class:`Accuracies` says, shape (conditions, layers), all conditions together last where there are several."""
    label, condition = probing.label[tested], probing.condition[tested]
    guess, n_conditions, layers = 1.0 / len(probing.classes), len(probing.conditions), len(probing.layers)
    common = (probing.majority[tested] == label).astype(float)
    if probing.target == CONDITION:
        predicted = np.stack([layer.predicted[tested] for layer in probing.layers], axis=1)
        chance = [(predicted == probing.classes.index(level)).mean(axis=0) for level in probing.conditions]
    else:
        chance = [
            np.full(layers, max(guess, common[condition == index].mean())) for index in range(n_conditions)
        ]
    chance += [np.full(layers, max(guess, common.mean()))] if n_conditions > 1 else []
    return np.stack(chance)


def widening(splits: int) -> float:
    """Return how much wider than a bootstrap's a cross-validated interval is (Nadeau & Bengio, 2003)."""
    return float(np.sqrt(1 + splits / (splits - 1))) if splits > 1 else 1.0


def _sums(right: Array, condition: Index, family: Index, conditions: int) -> tuple[Array, Array]:
    """Return what each family got right, by condition and column, and how many trials it has there; all conditions last."""
    units, unit = np.unique(family, return_inverse=True)
    sums, counts = np.zeros((len(units), conditions, right.shape[1])), np.zeros((len(units), conditions))
    np.add.at(sums, (unit, condition), right)
    np.add.at(counts, (unit, condition), 1.0)
    if conditions > 1:
        sums = np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)
        counts = np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)
    return sums, counts


def _shares(sums: Array, counts: Array, seed: int, resamples: int) -> Array:
    """Return shares and those of each draw, shape (1 + draws, conditions, columns)."""
    units, conditions, columns = sums.shape
    drawn = resampled_ratios(sums.reshape(units, -1), np.repeat(counts, columns, axis=1), seed, resamples)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = sums.sum(axis=0) / counts.sum(axis=0)[:, None]
    return np.concatenate([value[None], drawn.reshape(resamples, conditions, columns)])


def _estimates(value: Array, draws: Array, wider: float, units: Index, least: float) -> ProbeEstimates:
    """Put percentile and simultaneous intervals around values, both within ``least`` and 1."""
    low, high = percentile_ends(draws, LEVEL)
    is_finite = np.isfinite(value)
    error = np.full(value.shape, np.nan)
    error[is_finite] = np.nanstd(draws[:, is_finite], axis=0, ddof=1)
    moved = is_finite & (error > _ROUNDING)
    unmoved = is_finite & ~moved & np.isfinite(draws).any(axis=0)
    away = np.abs(draws[:, moved] - value[moved]) / error[moved]
    errors = float(np.quantile(np.nanmax(away, axis=1, initial=0.0), LEVEL))
    pointwise = float(stats.norm.ppf(0.5 + LEVEL / 2))
    bounds = [low, high, value - errors * error, value + errors * error]
    others = [
        end
        for multiplier in (pointwise, max(pointwise, errors))
        for end in without_spread(value, units[:, None], least, multiplier)
    ]
    ends = [np.where(unmoved, other, end) for other, end in zip(others, bounds, strict=True)]
    ends = [np.clip(value + wider * (end - value), least, 1.0) for end in ends]
    return ProbeEstimates(value, ends[0], ends[1], ends[2], ends[3], unmoved)
