"""Which features and words differ most between the answers, each by itself and in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stimuli.features import FEATURES

_MOST = 6
_FEWEST_TEXTS = 5


@dataclass(frozen=True)
class Telling:
    """One feature that differs between answers.

    Attributes
    ----------
    feature : str
        Name of a feature, or ``word: …``.
    measures : str
        What it is, in plain words.
    by_answer : tuple of float
        Its mean in each answer class (for a word: the share of texts that hold it).
    alone : float
        Share of texts that one cut on this feature alone sorts rightly, classes weighted alike.
    """

    feature: str
    measures: str
    by_answer: tuple[float, ...]
    alone: float


def most_telling(
    names: Sequence[str],
    numbers: NDArray[np.float64],
    bags: Sequence[frozenset[str]],
    labels: NDArray[np.int64],
    answers: Sequence[str],
) -> tuple[Telling, ...]:
    """Return the features and words that sort the most texts by one cut each, best first.

    ``labels``: place of each text's answer among ``answers``.
    """
    classes = len(answers)
    found = [
        Telling(
            name,
            FEATURES[name],
            _means(numbers[:, place], labels, classes),
            _cut(numbers[:, place], labels, classes),
        )
        for place, name in enumerate(names)
    ]
    texts: dict[str, list[int]] = {}
    for place, own in enumerate(bags):
        for word in own:
            texts.setdefault(word, []).append(place)
    sizes = np.bincount(labels, minlength=classes)
    for word in sorted(texts):
        if len(texts[word]) < _FEWEST_TEXTS:
            continue
        shares = np.bincount(labels[texts[word]], minlength=classes) / sizes
        alone = 1 / classes + (float(shares.max()) - float(shares.min())) / classes
        found.append(
            Telling(
                f"word: {word}",
                "texts that hold this word",
                tuple(np.round(shares, 3).tolist()),
                round(alone, 3),
            )
        )
    told = [one for one in found if one.alone > 1 / classes + 5e-4]
    return tuple(sorted(told, key=lambda one: (-one.alone, one.feature))[:_MOST])


def _means(values: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> tuple[float, ...]:
    return tuple(round(float(values[labels == label].mean()), 3) for label in range(classes))


def _cut(values: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> float:
    """Return the best balanced share that one cut sorts: what lies above to one class, the rest to another."""
    steps = np.unique(values)
    if len(steps) < 2:
        return round(1 / classes, 3)
    place = np.searchsorted(steps, values)
    counts = np.stack([np.bincount(place[labels == label], minlength=len(steps)) for label in range(classes)])
    below = np.cumsum(counts, axis=1)[:, :-1] / counts.sum(axis=1, keepdims=True)
    best = 0.0
    for low in range(classes):
        for high in range(classes):
            if low != high:
                best = max(best, float((below[low] + 1 - below[high]).max()))
    return round(best / classes, 3)
