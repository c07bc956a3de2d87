"""Variances of a pilot's accuracy, from the sums of the estimator that decides the planned contrasts; nothing is fitted.

What participants and items add to the error of each condition's mean (:class:`analysis.estimate.crossed.Sums`), divided by their
weights in it, estimates variances and covariances of shares between the cells of readers and conditions. Answers are drawn in log
odds, so each covariance becomes that of a normal predictor with the same shares: the correlation at which two dichotomised
normal variables have it (Pearson's tetrachoric correlation), which exists at 98% as at 50%.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from analysis.estimate.crossed import Answers, Layout, sums_of_model, sums_of_people
from analysis.power.assumptions import cell_name, log_odds_at
from analysis.results import VarianceTerm

Array = NDArray[np.float64]
Cell = tuple[str, str]

PROBIT = 1.702
"""Standard deviation of the normal distribution that is nearest to the standard logistic one (Camilli, 1994)."""
MOST = 0.9
"""Largest share of the latent variance that participants and items together are taken to have."""
X, W = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class Moments:
    """Means and variances of the cells of a pilot, in log odds."""

    cells: Mapping[Cell, float]  # log odds at the centre
    variance: tuple[VarianceTerm, ...]  # of participants and of items; a column for each cell


@dataclass(frozen=True)
class _Part:
    """A reader group in one condition: its share, number of answers, and what units add to the error of the mean."""

    cell: Cell
    share: float
    answers: int
    participants: Array
    weights: Array
    items: Array
    item_weights: Array
    noise: float | None


def moments(
    people: Mapping[str, Answers], models: Mapping[str, tuple[Array, Array]], layout: Layout
) -> Moments:
    """Estimate means and variances from people's answers and models' mean answers."""
    parts: list[_Part] = []
    within: dict[str, Array] = {}
    for group, answers in people.items():
        sums = sums_of_people(answers)
        within[group] = np.asarray((sums.answers.T @ sums.answers).toarray())
        for c, level in enumerate(layout.conditions):
            at = answers.condition == c
            if not at.any():
                continue
            p, i = answers.participant[at], answers.item[at]
            n_i = np.bincount(i, minlength=len(layout.items))
            each = 1.0 / (np.count_nonzero(n_i) * n_i[i])
            parts.append(
                _Part(
                    (group, str(level)),
                    float(sums.mean[c]),
                    int(at.sum()),
                    sums.participants[:, c],
                    np.bincount(p, each, len(layout.participants)).astype(float),
                    sums.items[:, c],
                    np.bincount(i, each, len(layout.items)).astype(float),
                    None,
                )
            )
    for group, (mean, noise) in models.items():
        sums = sums_of_model(layout, mean, noise)
        for c, level in enumerate(layout.conditions):
            held = np.isfinite(mean[:, c])
            many = int(held.sum())
            if many:
                nobody = np.zeros(len(layout.participants))
                own = noise[held, c]
                parts.append(
                    _Part((group, str(level)), float(sums.mean[c]), many, nobody, nobody, sums.items[:, c],
                          held / many, float(own.mean()) if (own > 0).any() else np.nan)
                )  # fmt: skip
    return _in_log_odds(
        parts, within, {str(level): c for c, level in enumerate(layout.conditions)}, set(models)
    )


def _in_log_odds(
    parts: list[_Part], within: Mapping[str, Array], place: Mapping[str, int], models: set[str]
) -> Moments:
    many = len(parts)
    of_participants, of_items = np.zeros((many, many)), np.zeros((many, many))
    shares = np.array([np.clip(one.share, 0.5 / one.answers, 1 - 0.5 / one.answers) for one in parts])
    h = stats.norm.ppf(shares)
    for a in range(many):
        for b in range(a, many):
            one, other = parts[a], parts[b]
            (group, level), (second, at) = one.cell, other.cell
            answers = within[group][place[level], place[at]] if group == second and group in within else 0.0
            by_person, by_item = (
                float(one.weights @ other.weights),
                float(one.item_weights @ other.item_weights),
            )
            if by_person > 0:
                found = (float(one.participants @ other.participants) - answers) / by_person
                of_participants[a, b] = of_participants[b, a] = _latent(found, h[a], h[b])
            if by_item > 0:
                found = (float(one.items @ other.items) - answers) / by_item
                if a == b and group in models:
                    found -= one.noise if one.noise is not None else 0.0
                    if np.isnan(found):
                        continue  # one answer to an item does not tell its difficulty from chance
                of_items[a, b] = of_items[b, a] = _latent(found, h[a], h[b])
    for a, one in enumerate(parts):
        if one.noise is not None and np.isnan(one.noise):
            # as much as its items are alike in other conditions and in other readers; the rest cannot be told from chance
            others = [b for b in range(many) if b != a and of_items[a, b] > 0]
            own = [of_items[a, b] for b in others if parts[b].cell[0] == one.cell[0]]
            own += [of_items[a, b] ** 2 / of_items[b, b] for b in others if of_items[b, b] > 0]
            of_items[a, a] = min(MOST, max(own, default=0.0))
    of_participants, of_items = _proper(of_participants), _proper(of_items)
    size = np.diag(of_participants) + np.diag(of_items)
    shrunk = np.sqrt(np.minimum(1.0, MOST / np.maximum(size, 1e-9)))
    of_participants, of_items = (part * np.outer(shrunk, shrunk) for part in (of_participants, of_items))
    latent = PROBIT / np.sqrt(1.0 - np.diag(of_participants) - np.diag(of_items))
    of_participants, of_items = (part * np.outer(latent, latent) for part in (of_participants, of_items))
    cells = {
        one.cell: log_odds_at(float(share), float(of_participants[a, a] + of_items[a, a]))
        for a, (one, share) in enumerate(zip(parts, shares, strict=True))
    }
    names = tuple(cell_name(*one.cell) for one in parts)
    person = np.array([one.cell[0] not in models for one in parts], dtype=bool)
    terms = [VarianceTerm("item", names, of_items)]
    if person.any():
        of_people = tuple(name for name, is_person in zip(names, person, strict=True) if is_person)
        terms.insert(0, VarianceTerm("participant", of_people, of_participants[np.ix_(person, person)]))
    return Moments(cells, tuple(terms))


def covariance_of_cut(rho: float, h: float, k: float) -> float:
    """Return the covariance of two dichotomies: normal variables with correlation rho, cut at h and k."""
    r = rho * (X + 1) / 2
    density = np.exp(-(h * h - 2 * r * h * k + k * k) / (2 * (1 - r * r))) / (2 * np.pi * np.sqrt(1 - r * r))
    return float(rho / 2 * (W @ density))


def _latent(covariance: float, h: float, k: float) -> float:
    """Return the correlation of two normal variables, cut at h and k, whose dichotomies have this covariance."""

    def left(rho: float) -> float:
        return covariance_of_cut(rho, h, k) - covariance

    if left(-MOST) >= 0:
        return -MOST
    return MOST if left(MOST) <= 0 else float(optimize.brentq(left, -MOST, MOST, xtol=1e-8))


def _proper(matrix: Array) -> Array:
    """Return the nearest covariance matrix: negative variances and eigenvalues become 0."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    limit = np.outer(size, size)
    values, axes = np.linalg.eigh(np.clip(matrix, -limit, limit))
    return np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)
