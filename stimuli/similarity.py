"""Similarity of a changed word to the intact one: orthographic match scores and edit distances.

Case never changes how many letters a word has: ``ß`` and the ligature ``ﬁ`` are one letter each, whatever Unicode's full
case folding (``ss``, ``fi``) makes of them. A final sigma is a sigma. Turkish and Azerbaijani have two letters i.

The target's pairs are looked up among those of the shown form; a score is Σ w(pair in target) · w(pair in shown) over
the target's own sum of squares, at most 1. Words of one letter have no pair: they match fully where they are equal.

What the papers leave open is settled by the 5,460 pairs of six-letter words that Davis's Match Calculator prints (all
agree to two decimals): which weights products and norm use (overlap open bigrams), and every weight of SERIOL. SERIOL's
weights were recovered from these values, each to about ± .005; other word lengths follow by the same rule.
"""

from __future__ import annotations

import functools
import math
import string
from collections import Counter
from collections.abc import Callable, Mapping

from rapidfuzz.distance import OSA, Levenshtein

from stimuli.words import Letters, letters_of

Pair = tuple[str, str]

OPEN_BIGRAM_REACH = 3
"""Largest distance between the letters of an open bigram: at most two letters are between them."""

OVERLAP_WEIGHTS = {1: 1.0, 2: 0.61, 3: 0.14, -1: 0.14}
"""Weight by signed distance: exp(−(distance − 1)² / 2) in two decimals; −1 are neighbours in reversed order."""

SERIOL_FIRST_LETTER = (1.0, 0.5985, 0.362, 0.359)
"""Weight by place of the pair's first letter; the last holds from there on."""
SERIOL_APART = 0.603
"""Factor for pairs that are no neighbours."""
SERIOL_OUTER_PAIR = 0.935
"""Weight of the pair at the places of the target's first and last letter."""


def open_bigram(target: str, shown: str) -> float:
    """Share of the target's open bigrams that the shown form has, all weighing 1 (Grainger & van Heuven, 2003)."""
    template, code = letters_of(target), letters_of(shown)
    pairs = _open_bigrams(template)
    if not pairs:
        return float(template == code)
    return len(pairs & _open_bigrams(code)) / len(pairs)


def overlap_open_bigram(target: str, shown: str) -> float:
    """Match of open bigrams that weigh by distance, reversed neighbours included (Grainger et al., 2006).

    The norm is that of the weights before they are rounded (see :data:`OVERLAP_WEIGHTS`).
    """
    template, code = letters_of(target), letters_of(shown)
    return _match(_overlap_code(template), _overlap_code(code), _overlap_norm(template), template == code)


def seriol(target: str, shown: str) -> float:
    """Match of open bigrams that weigh by place, as SERIOL's do (Whitney, 2001; weights see above)."""
    template, code = letters_of(target), letters_of(shown)
    last = len(template) - 1
    pairs = _seriol_code(template, last)
    norm = sum(weight * weight for weight in pairs.values())
    return _match(pairs, _seriol_code(code, last), norm, template == code)


def _match(template: Mapping[Pair, float], code: Mapping[Pair, float], norm: float, equal: bool) -> float:
    if not template:
        return float(equal)
    return min(1.0, sum(weight * code.get(pair, 0.0) for pair, weight in template.items()) / norm)


@functools.lru_cache(maxsize=50_000)
def _open_bigrams(letters: Letters) -> frozenset[Pair]:
    return frozenset(
        (first, second)
        for place, first in enumerate(letters)
        for second in letters[place + 1 : place + 1 + OPEN_BIGRAM_REACH]
    )


def _overlap_weights(letters: Letters, by_distance: Mapping[int, float]) -> dict[Pair, float]:
    code: dict[Pair, float] = {}
    for distance, weight in by_distance.items():
        for place in range(max(0, -distance), len(letters) - max(0, distance)):
            pair = (letters[place], letters[place + distance])
            if weight > code.get(pair, 0.0):
                code[pair] = weight
    return code


@functools.lru_cache(maxsize=50_000)
def _overlap_code(letters: Letters) -> Mapping[Pair, float]:
    return _overlap_weights(letters, OVERLAP_WEIGHTS)


@functools.lru_cache(maxsize=50_000)
def _overlap_norm(letters: Letters) -> float:
    unrounded = {distance: math.exp(-((distance - 1) ** 2) / 2) for distance in OVERLAP_WEIGHTS}
    return sum(weight * weight for weight in _overlap_weights(letters, unrounded).values())


@functools.lru_cache(maxsize=50_000)
def _seriol_code(letters: Letters, last: int) -> Mapping[Pair, float]:
    code: dict[Pair, float] = {}
    for place, first in enumerate(letters):
        neighbour = SERIOL_FIRST_LETTER[min(place, len(SERIOL_FIRST_LETTER) - 1)]
        for other in range(place + 1, len(letters)):
            weight = neighbour if other == place + 1 else neighbour * SERIOL_APART
            if place == 0 and other == last > 1:
                weight = SERIOL_OUTER_PAIR
            pair = (first, letters[other])
            if weight > code.get(pair, 0.0):
                code[pair] = weight
    return code


MATCH_CALCULATOR_SIGMA = 1.25
LENGTH_SIGMA = (0.48, 0.24)
"""σ₀ and k of σ = σ₀ + k · letters of the shown form (Davis, 2010, Table 3)."""


def slot(target: str, shown: str) -> float:
    """Share of the target's places that hold the same letter in the shown form (absolute position)."""
    template, code = letters_of(target), letters_of(shown)
    if not template:
        return float(not code)
    return sum(map(str.__eq__, template, code)) / len(template)


def spatial_coding(target: str, shown: str, sigma: float = MATCH_CALCULATOR_SIGMA) -> float:
    """Match of spatial coding as the Match Calculator computes it (Davis, 2010; SOLAR).

    Letters of the target find their like in the shown form one to one, the nearest first. A pair at delay d adds
    exp(−(x − d)² / 2σ²) to the superposition at x; its height at the best of the delays, and 1 for each outer
    letter that the two words share, are divided by the target's letters + 2.
    """
    return _spatial(target, shown, 2 * sigma * sigma)


def spatial_coding_by_length(target: str, shown: str) -> float:
    """Match of spatial coding with the paper's receivers: exp(−((x − d) / σ)²), σ = 0.48 + 0.24 · letters shown."""
    base, slope = LENGTH_SIGMA
    sigma = base + slope * len(letters_of(shown))
    return _spatial(target, shown, sigma * sigma)


def _spatial(target: str, shown: str, width: float) -> float:
    template, code = letters_of(target), letters_of(shown)
    if not template or not code:
        return float(template == code)
    near = _receiver(width)
    counts = Counter(_delays(template, code))
    peak = max((sum(count * near(abs(x - d)) for d, count in counts.items()) for x in counts), default=0.0)
    outer = (template[0] == code[0]) + (template[-1] == code[-1])
    return float((peak + outer) / (len(template) + 2))


@functools.lru_cache(maxsize=256)
def _receiver(width: float) -> Callable[[int], float]:
    return functools.cache(lambda distance: math.exp(-(distance**2) / width))


@functools.lru_cache(maxsize=4)
def _delays(template: Letters, code: Letters) -> tuple[int, ...]:
    """Return the distance of each letter of the target from its match in the shown form."""
    if len(set(template)) == len(template) and len(set(code)) == len(code):
        place = {letter: index for index, letter in enumerate(code)}
        return tuple(place[letter] - index for index, letter in enumerate(template) if letter in place)
    candidates = sorted(
        (abs(there - here), here, there)
        for here, letter in enumerate(template)
        for there, other in enumerate(code)
        if letter == other
    )
    taken_here: set[int] = set()
    taken_there: set[int] = set()
    delays = []
    for _, here, there in candidates:
        if here not in taken_here and there not in taken_there:
            taken_here.add(here)
            taken_there.add(there)
            delays.append(there - here)
    return tuple(delays)


def overlap_model(target: str, shown: str) -> float:
    """Match of the overlap model (Gomez, Ratcliff & Perea, 2008).

    The position of the i-th letter of the shown form is normally distributed around i; each letter of the target adds
    the probability of the same letter within half a position of it. The sum is divided by that of the target
    with itself, at most 1. The SD of the i-th letter is 1.25 · (1 − exp(−i)), with parameters of this package, not
    Gomez and colleagues' estimates: the asymptote is the Match Calculator's uncertainty of positions.
    """
    template, code = letters_of(target), letters_of(shown)
    if not template or not code:
        return float(template == code)
    return min(1.0, _overlap(template, code) / _self_overlap(template))


def _overlap(template: Letters, code: Letters) -> float:
    return sum(
        _area(place, slot)
        for slot, letter in enumerate(template)
        for place, other in enumerate(code)
        if letter == other
    )


@functools.lru_cache(maxsize=50_000)
def _self_overlap(template: Letters) -> float:
    return _overlap(template, template)


@functools.cache
def _area(place: int, slot: int) -> float:
    """Return the probability of the letter at a position of the shown form in a slot of the template."""
    sd = MATCH_CALCULATOR_SIGMA * (1 - math.exp(-(place + 1)))
    scale = sd * math.sqrt(2)
    return (math.erf((slot + 0.5 - place) / scale) - math.erf((slot - 0.5 - place) / scale)) / 2


def levenshtein(target: str, shown: str) -> int:
    """Return the least number of letters to insert, delete or substitute (Levenshtein, 1966)."""
    return int(Levenshtein.distance(letters_of(target), letters_of(shown)))


def osa(target: str, shown: str) -> int:
    """Return the same with a swap of two neighbours as one edit (optimal string alignment; Damerau, 1964)."""
    return int(OSA.distance(letters_of(target), letters_of(shown)))


def edit_similarity(target: str, shown: str) -> float:
    """Return 1 − Levenshtein distance / letters of the longer word, from 0 to 1; 1 for two empty words."""
    return float(Levenshtein.normalized_similarity(letters_of(target), letters_of(shown)))


SCORES: Mapping[str, Callable[[str, str], float]] = {
    "match_slot": slot,
    "match_open_bigram": open_bigram,
    "match_open_bigram_overlap": overlap_open_bigram,
    "match_seriol": seriol,
    "match_overlap_model": overlap_model,
    "match_spatial": spatial_coding,
    "match_spatial_length": spatial_coding_by_length,
    "match_levenshtein": edit_similarity,
    "levenshtein": levenshtein,
    "osa": osa,
}
"""The scores by name; those named ``match_`` lie between 0 (nothing shared) and 1 (the same word)."""


_SIGNS = (*string.ascii_lowercase, *map(chr, range(0x4E00, 0x9F00)))
"""Signs that do not combine and stand for themselves without case and in every Unicode form; the cheapest first."""


def match_scores(target: str, shown: str, language: str | None = None) -> dict[str, float]:
    """Compare a changed word with the intact one on every scheme."""
    return dict(zip(SCORES, _of_words(target, shown, language), strict=True))


@functools.lru_cache(maxsize=200_000)
def _of_words(target: str, shown: str, language: str | None) -> tuple[float, ...]:
    """Return the scores of two words; texts repeat their commonest words, and so do their scrambles."""
    return _scores(*_pattern(letters_of(target, language), letters_of(shown, language)))


def _pattern(target: Letters, shown: Letters) -> tuple[str, str]:
    """Return both words with signs for their letters, numbered by first occurrence, so that results can be cached."""
    signs: dict[str, str] = {}
    for letter in (*target, *shown):
        if letter not in signs:
            signs[letter] = _SIGNS[len(signs)]
    return "".join([signs[letter] for letter in target]), "".join([signs[letter] for letter in shown])


@functools.lru_cache(maxsize=300_000)
def _scores(target: str, shown: str) -> tuple[float, ...]:
    return tuple(score(target, shown) for score in SCORES.values())
