"""Fresh items of our rules hold no shortcut: not for the audit, nor for a classifier and features that it does not use."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
import wordfreq
from sklearn.ensemble import RandomForestClassifier

from stimuli.audit.shortcut import ENOUGH_ITEMS, MARGIN, shortcut_test
from stimuli.htest.rules import rules
from stimuli.recipes.htest import generate
from tests.stimuli.audited import item

ITEMS, FOLDS = 2000, 3
WORD_PLACES = ("first", "second", "last_but_one", "last")
BY_THE_RULE = {
    "repeated_word": "a word said twice moves every word between its two places",
    "spelled_math": "the operation's words stand at one of two places, which is the rule",
    "spelled_number": "the number's word stands at one of two places, which is the rule",
    "longest_last": "the length of the last word is the rule",
}


@functools.cache
def ranks():
    """Rank words by frequency; words of one frequency share a rank."""
    found = {}
    before, shared = None, 0
    for place, word in enumerate(wordfreq.top_n_list("en", 300_000), 1):
        frequency = wordfreq.word_frequency(word, "en")
        if frequency != before:
            before, shared = frequency, place
        found[word] = shared
    return found


def features(text):
    words = re.findall(r"[^\W\d_]+", text.lower())
    half = len(words) // 2 or 1
    told = {"characters": float(len(text)), "words": float(len(words))}
    for name, values in (
        ("rank", [float(np.log10(ranks().get(word, 300_000))) for word in words]),
        ("length", [float(len(word)) for word in words]),
        ("syllables", [float(len(re.findall("[aeiouy]+", word))) for word in words]),
    ):
        at = dict(zip(WORD_PLACES, (values[0], values[:2][-1], values[-2:][0], values[-1]), strict=True))
        told |= {f"{name}_{place}": value for place, value in at.items()}
        told |= {f"{name}_sum": sum(values), f"{name}_spread": float(np.std(values))}
        told[f"{name}_halves"] = float(np.mean(values[:half]) - np.mean(values[half:] or [0.0]))
        told[f"{name}_most"] = values.index(max(values)) / len(values)
        told[f"{name}_least"] = values.index(min(values)) / len(values)
    return told


def accuracy(items):
    """Return the cross-validated share of right answers, and the upper bound of its 95% interval over pairs."""
    measured = [features(item.text) for item in items]
    numbers = np.array([list(one.values()) for one in measured])
    labels = np.array([item.label == "A" for item in items])
    pairs = np.array([item.pair or 0 for item in items])
    folds = np.random.default_rng(1).integers(0, FOLDS, pairs.max() + 1)[pairs]
    right = np.zeros(len(items))
    for fold in range(FOLDS):
        forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=fold)
        forest.fit(numbers[folds != fold], labels[folds != fold])
        right[folds == fold] = forest.predict(numbers[folds == fold]) == labels[folds == fold]
    by_pair = np.array([right[pairs == pair].mean() for pair in np.unique(pairs)])
    error = by_pair.std(ddof=1) / len(by_pair) ** 0.5
    return float(by_pair.mean()), float(by_pair.mean() + 1.96 * error)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(rules()))
def test_neither_the_audit_nor_a_forest_sorts_fresh_items_but_by_the_rule(name):
    items = generate(name, exemplars=0, items=ITEMS, seed=20240601).test
    asked = [
        item(
            f"{name}-{one.number}",
            one.text,
            one.label,
            set_name=name,
            choices=("A", "B"),
            covariates={"pair": one.pair},
        )
        for one in items
    ]
    about = {name: rules()[name].about}
    (own,) = shortcut_test({name: asked}, language="en", seed=1, about=about, together=len(rules())).tasks
    assert own.items >= ENOUGH_ITEMS and own.verdict == "passes", (own.accuracy, own.telling)
    assert own.upper is not None and own.upper <= 0.5 + MARGIN
    share, upper = accuracy(items)
    assert share > 0.6 if name in BY_THE_RULE else upper <= 0.55, (share, BY_THE_RULE.get(name))
