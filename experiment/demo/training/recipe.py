"""The training recipe: every choice that determines the demo model's weights, read from one data file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

RECIPE_FILE = Path(__file__).with_name("recipe.json")


@dataclass(frozen=True)
class Recipe:
    """Choices fixed before any held-out result was known.

    Attributes
    ----------
    seed : int
        Root of every random draw: initial weights, words of a batch, their scrambles.
    vocabulary : int
        Number of the most frequent eligible English words, before words are held out.
    shortest, longest : int
        Word length in letters.
    held_out_one_in : int
        One word in this many is held out, by a stable hash of the word.
    width, depth, heads, inner_width : int
        Transformer size: hidden width, layers, attention heads, feed-forward width.
    steps, batch, parts : int
        Optimiser steps, examples per step, and parts of similar word length that a batch is cut into.
    peak_rate, warmup_steps, weight_decay, clip_norm : float or int
        AdamW peak learning rate, linear warm-up (cosine to zero after it), decay of matrices, gradient norm.
    beta1, beta2 : float
        AdamW decay of the two moments.
    autocast : bool
        Whether matrix products run in bfloat16 (weights and optimiser stay in float32).
    """

    seed: int
    vocabulary: int
    shortest: int
    longest: int
    held_out_one_in: int
    width: int
    depth: int
    heads: int
    inner_width: int
    steps: int
    batch: int
    parts: int
    peak_rate: float
    warmup_steps: int
    weight_decay: float
    clip_norm: float
    beta1: float
    beta2: float
    autocast: bool


def read_recipe(path: Path = RECIPE_FILE) -> Recipe:
    """Return the recipe file's contents; its keys are the attributes of :class:`Recipe`."""
    return Recipe(**json.loads(path.read_text(encoding="utf-8")))
