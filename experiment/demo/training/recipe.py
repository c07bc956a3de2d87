"""The demo model's recipe, its training words and held-out words, and the eight scrambles used in training.

The scrambles are implemented here, separately from the ``stimuli`` package, so that a later change to the item builder cannot
change what the stored model was trained on.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

from stimuli.seeds import generator, stable_seed

RECIPE_FILE = Path(__file__).with_name("recipe.json")


@dataclass(frozen=True)
class Recipe:
    """Choices fixed before any held-out result was known."""

    seed: int  # root of every random draw: initial weights, words of a batch, their scrambles
    vocabulary: int  # number of the most frequent eligible English words, before words are held out
    shortest: int
    longest: int  # letters of a word
    held_out_one_in: int  # one word in this many is held out, by a stable hash of the word
    width: int
    depth: int
    heads: int
    inner_width: int
    steps: int
    batch: int  # examples per step
    parts: int  # of similar word length, into which a batch is cut
    peak_rate: float
    warmup_steps: int  # linear; after it, half a cosine to zero
    weight_decay: float  # of matrices
    clip_norm: float
    beta1: float
    beta2: float
    autocast: bool  # whether matrix products run in bfloat16; weights and optimiser stay in float32


def read_recipe(path: Path = RECIPE_FILE) -> Recipe:
    """Return the recipe file's contents; its keys are the attributes of :class:`Recipe`."""
    return Recipe(**json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class WordSplit:
    """Training and held-out words, each in alphabetical order, with no word in both."""

    training: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """One scrambled word and the word that it was made from."""

    shown: str
    word: str


def split_words(recipe: Recipe) -> WordSplit:
    """Return wordfreq's most frequent English words of plain letters, some held out by a stable hash."""
    import wordfreq

    plain = re.compile(f"[a-z]{{{recipe.shortest},{recipe.longest}}}")
    eligible = (word for word in wordfreq.iter_wordlist("en") if plain.fullmatch(word))
    words = sorted(islice(eligible, recipe.vocabulary))
    held_out = {word for word in words if is_held_out(word, recipe.held_out_one_in)}
    return WordSplit(
        training=tuple(word for word in words if word not in held_out),
        held_out=tuple(word for word in words if word in held_out),
    )


def is_held_out(word: str, one_in: int) -> bool:
    """Return whether a word is held out; depends only on the word, not on the list."""
    return stable_seed("demo model", "held out", word) % one_in == 0


def _exchange(word: str, left: int) -> str:
    return word[:left] + word[left + 1] + word[left] + word[left + 2 :]


def _transpose_at(word: str, places: range, draw: random.Random) -> str:
    changing = [place for place in places if word[place] != word[place + 1]]
    return _exchange(word, draw.choice(changing)) if changing else word


def _shuffle_between(word: str, start: int, stop: int, draw: random.Random) -> str:
    letters = list(word[start:stop])
    if len(set(letters)) < 2:
        return word
    while True:
        draw.shuffle(letters)
        shuffled = word[:start] + "".join(letters) + word[stop:]
        if shuffled != word:
            return shuffled


SCRAMBLES: dict[str, Callable[[str, random.Random], str]] = {
    "intact": lambda word, draw: word,
    "initial_transposition": lambda word, draw: _transpose_at(word, range(1), draw),
    "internal_transposition": lambda word, draw: _transpose_at(word, range(1, len(word) - 2), draw),
    "final_transposition": lambda word, draw: _transpose_at(word, range(len(word) - 2, len(word) - 1), draw),
    "adjacent_transposition": lambda word, draw: _transpose_at(word, range(len(word) - 1), draw),
    "keep_first": lambda word, draw: _shuffle_between(word, 1, len(word), draw),
    "keep_first_last": lambda word, draw: _shuffle_between(word, 1, len(word) - 1, draw),
    "full": lambda word, draw: _shuffle_between(word, 0, len(word), draw),
}


def scramble(word: str, kind: str, draw: random.Random) -> str:
    """Return a word of at least four letters scrambled, so that it differs from the intact one if the kind allows it."""
    return SCRAMBLES[kind](word, draw)


class ExampleSource:
    """Training examples: a word in proportion to its Zipf frequency, each kind of scramble equally often.

    The Zipf frequency is the base-10 logarithm of occurrences in a billion words, so that a very common word is drawn about
    twice as often as a rare one, not ten thousand times as often.
    """

    def __init__(self, recipe: Recipe, words: tuple[str, ...]) -> None:
        import wordfreq

        self._recipe = recipe
        self._words = words
        self._kinds = tuple(SCRAMBLES)
        self._cumulative = list(accumulate(wordfreq.zipf_frequency(word, "en") for word in words))

    def batch(self, step: int) -> list[Example]:
        """Return the examples of one step; depends only on the recipe's seed and the step's number."""
        draw = generator(self._recipe.seed, "demo model", "batch", step)
        words = draw.choices(self._words, cum_weights=self._cumulative, k=self._recipe.batch)
        return [Example(scramble(word, draw.choice(self._kinds), draw), word) for word in words]


def words_sha256(words: Sequence[str]) -> str:
    """Return the SHA-256 of a list of words, one per line, which can verify a list without storing it."""
    return hashlib.sha256(("\n".join(words) + "\n").encode("utf-8")).hexdigest()
