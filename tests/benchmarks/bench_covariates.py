"""Words per second of neighbours, bigrams and match scores, beside the plain way to compute OLD20 and a package for it.

Run with ``make bench`` or alone. The plain way compares each word with every vocabulary word in rapidfuzz, over the
same vocabulary in the same run. The package ``old20`` is timed where it is installed; wordkit has no such measures.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stimuli.covariates import text_covariates
from stimuli.lexicon.neighbourhoods import bigram_frequency, neighbourhoods, vocabulary
from stimuli.scramble.text import scramble_conditions
from stimuli.scramble.types import parse_operation
from stimuli.similarity import match_scores

WORDS, PAIRS, SENTENCES = 2000, 20_000, 400
LEVELS = ("none", "KFL", "RS-20", "RS-50", "RS-100", "Sub")


def timed(name: str, number: int, unit: str, work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    seconds = time.process_time() - begin
    print(f"{name:<58}{number / seconds:>12,.0f} {unit}/s {seconds:>8.2f} s")
    return number / seconds


def plain_old20(words: list[str], everything: list[str]) -> np.ndarray:
    """Return OLD20 from all distances; each word is in the vocabulary."""
    found = []
    for begin in range(0, len(words), 100):
        distances = cdist(words[begin : begin + 100], everything, scorer=Levenshtein.distance, dtype=np.uint8)
        found.append(np.sort(np.partition(distances, 20, axis=1)[:, :21], axis=1)[:, 1:].mean(axis=1))
    return np.concatenate(found)


def main() -> None:
    listed = vocabulary("en")
    assert listed is not None
    draw = random.Random(1)
    everything = list(listed.spelled)
    words = draw.sample(everything, WORDS)
    neighbourhoods(["warm"], "en")
    bigram_frequency("warm", "en")
    pairs = [(word, "".join(draw.sample(word, len(word)))) for word in draw.choices(everything, k=PAIRS)]

    print(f"English, {len(everything):,} words; one process, processor time\n")
    ours = timed("Coltheart's N and OLD20", WORDS, "words", lambda: neighbourhoods(words, "en"))
    plain = timed("OLD20, every word compared", WORDS, "words", lambda: plain_old20(words, everything))
    agree = np.allclose(
        plain_old20(words, everything), [one.old20 for one in neighbourhoods(words, "en") if one]
    )
    print(f"  ours / plain: {ours / plain:.1f}; same values: {agree}")
    if importlib.util.find_spec("old20"):
        from old20 import old20

        few = words[:50]
        timed("OLD20 by the package old20", len(few), "words", lambda: old20(few, everything))
    else:
        print("  the package old20 is not installed: not compared")
    timed(
        "eight bigram frequencies", WORDS, "words", lambda: [bigram_frequency(word, "en") for word in words]
    )
    timed(
        "eight match scores and two distances", PAIRS, "pairs", lambda: [match_scores(*one) for one in pairs]
    )

    operations = {name: parse_operation(name) for name in LEVELS}
    texts = [" ".join(draw.choices(everything, k=16)) for _ in range(SENTENCES)]
    scrambled = [
        scramble_conditions(text, operations, seed=1, item_id=str(n)) for n, text in enumerate(texts)
    ]

    def describe() -> None:
        for text, results in zip(texts, scrambled, strict=True):
            for result in results.values():
                text_covariates(text, language="en", changes=result.changes)

    lines = SENTENCES * len(LEVELS)
    timed(
        f"covariates of {SENTENCES} sentences of rare words in {len(LEVELS)} conditions",
        lines,
        "items",
        describe,
    )


if __name__ == "__main__":
    main()
