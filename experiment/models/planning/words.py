"""The words of a trial that is read, as rows of the regions table; a model's surprisal is put beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiment.models.engine import RegionScore
from experiment.models.prompts import read_step
from experiment.models.prompts.prompter import intact_text


def words_of(trial: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the words that a trial shows to be read: ``region``, ``shown``, ``intact``, ``is_changed``, ``line``.

    ``intact`` and ``is_changed`` are None where shown and intact text have other numbers of words.
    """
    step = read_step(trial)
    if step is None:
        return []
    shown = step["text"].split()
    intact = intact_text(trial, step["text"]).split()
    lines = [line for line, words in enumerate(step["lines"] or ()) for _ in words.split()]
    same = len(intact) == len(shown)
    return [
        {
            "region": place,
            "shown": word,
            "intact": intact[place] if same else None,
            "is_changed": intact[place] != word if same else None,
            "line": lines[place] if len(lines) == len(shown) else None,
        }
        for place, word in enumerate(shown)
    ]


def region_rows(trial: Mapping[str, Any], scores: Sequence[RegionScore]) -> list[dict[str, Any]]:
    """Return a trial's rows of the regions table, with surprisal in bits; none where the engine told none."""
    words = words_of(trial)
    if len(scores) != len(words):
        return []
    return [
        word | {"surprisal": _bits(score.surprisal), "tokens": score.tokens}
        for word, score in zip(words, scores, strict=True)
    ]


def trial_surprisal(scores: Sequence[RegionScore]) -> float | None:
    """Return the surprisal of all that was read, in bits; None where a word's is not known.

    A word in which no token begins (it is part of the token before) has none of its own and takes none away.
    """
    known = [score.surprisal for score in scores if score.surprisal is not None]
    if not known or any(score.surprisal is None and score.tokens for score in scores):
        return None
    return _bits(math.fsum(known))


def _bits(nats: float | None) -> float | None:
    return None if nats is None else nats / math.log(2)
