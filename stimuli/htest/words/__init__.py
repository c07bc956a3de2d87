"""Our own words for H-TEST items, as data files, and the filling of carrier sentences with them."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from stimuli.features import vowel_groups
from stimuli.lexicon import zipf

_GAP = re.compile(r"\{([a-z]+)(\d?)\}")
_NOUNS = {"person": "people", "thing": "things", "animal": "animals"}


@functools.cache
def data(name: str) -> Mapping[str, Any]:
    """Return a data file of this folder by its name (``nouns``, ``sentences``, ``numbers``, ``rhymes``, ``mentioned``)."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@functools.cache
def listed(name: str, *, of: str = "sentences") -> tuple[str, ...]:
    """Return one list of a data file, such as ``listed("people", of="nouns")``."""
    return tuple(data(of)[name])


def drawn(kind: str, draw: random.Random) -> str:
    """Draw a word of a kind that a carrier sentence names (``person``, ``things``, ``verb``, ``place``)."""
    if kind in _NOUNS:
        return draw.choice(listed(_NOUNS[kind], of="nouns"))
    if kind == "people" or kind in _NOUNS.values():
        return draw.choice(listed(kind, of="nouns")) + "s"
    if kind in ("verb", "base"):
        return draw.choice(listed("verbs")) + ("s" if kind == "verb" else "")
    return draw.choice(listed(kind))


def fill(sentence: str, draw: random.Random, **given: str) -> str:
    """Fill the gaps of a carrier: with what is given, else with draws; a gap's name gets one word, others another."""
    words = dict(given)

    def word(gap: re.Match[str]) -> str:
        name = gap[1] + gap[2]
        if name not in words:
            chosen = drawn(_KINDS.get(gap[1], gap[1]), draw)
            while chosen in words.values():
                chosen = drawn(_KINDS.get(gap[1], gap[1]), draw)
            words[name] = chosen
        return words[name]

    return _GAP.sub(word, sentence)


@functools.cache
def mentioned_words() -> tuple[str, ...]:
    """Return the words of all kinds that a sentence can mention as words, by the alphabet."""
    nouns = (noun for kind in _NOUNS.values() for noun in listed(kind, of="nouns"))
    return tuple(sorted({*listed("ly", of="mentioned"), *listed("rest", of="mentioned"), *nouns}))


@functools.cache
def twins(*, as_long: bool = True) -> tuple[tuple[str, str], ...]:
    """Return every two mentioned words with one Zipf frequency and as many runs of vowels, in both orders."""
    alike: dict[tuple[float | None, int], list[str]] = {}
    for word in mentioned_words():
        alike.setdefault((zipf(word, "en"), vowel_groups(word)), []).append(word)
    return tuple(
        (one, other)
        for words in alike.values()
        for one, other in itertools.permutations(words, 2)
        if (len(one) == len(other) if as_long else len(one) > len(other))
    )


_KINDS = {"place": "places"}
