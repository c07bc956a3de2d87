"""Words drawn from a frequency list for a lexical decision, without names and rude words, and a vocabulary test.

Frequency lists have neither capitals nor word classes, so names cannot be identified with certainty. A drawn word must
pass these rules (for English; other languages need a separate list):

1. letters of the basic alphabet only, within the bounds of length and Zipf frequency;
2. not among listed names (months, peoples, places, first names, brands, creeds) and no listed rude or distressing word:
   stems of five or more letters count at the beginning of a word, shorter ones as whole words and their inflections;
3. some other form shows that it is a common word: a listed derivation or verb form (``gardener`` for ``garden``) at
   Zipf 2 or more, or an ending that names do not have (``-tion``, ``-ness``); a form of a more frequent word without
   the final ``e`` (``sharper``, from ``sharp``) is not evidence for ``sharpe``;
4. its possessive, if listed, is no more frequent than its plural: names often have *'s* (``sharpe's``);
5. not an inflection itself (``walked``, ``walks`` of ``walk``), so that words are base forms.

Words are spread evenly over the less frequent part of a language's vocabulary; nonwords are words with letters replaced
whose letter pairs all occur in the language. Its score is the mean of the shares of words accepted and of nonwords
rejected, which guessing brings to .5. Our items have no norms: scores compare participants of one study, not studies.
"""

from __future__ import annotations

import functools
import json
import string
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any, Literal, TypeVar, cast

from stimuli.errors import UserError
from stimuli.lexicon import REAL_WORD_ZIPF, is_real_word, zipf
from stimuli.lexicon.neighbourhoods import bigram_frequency
from stimuli.seeds import generator, stable_seed
from stimuli.words import base_language, letters_of

Kind = Literal["same", "transposed", "replaced", "other"]
VOWELS = frozenset("aeiouyæøœ")


@dataclass(frozen=True)
class Relation:
    """Difference between a string and its base word, ignoring case."""

    # transposed: two letters stand in each other's place; replaced: two letters are new ones at their places; other:
    # anything else
    kind: Kind
    places: tuple[int, ...] = ()  # letters of the base word that differ, from 0; empty where lengths differ
    classes: tuple[str, ...] = ()  # consonant or vowel for each of these letters (y counts as a vowel)

    @property
    def distance(self) -> int | None:
        """Places from the first differing letter to the last; 1 for neighbours, None where nothing differs."""
        return self.places[-1] - self.places[0] if self.places else None


def relation(base: str, string: str) -> Relation:
    """Find out how a string was made from its base word."""
    before, after = letters_of(base), letters_of(string)
    if before == after:
        return Relation("same")
    if len(before) != len(after):
        return Relation("other")
    places = tuple(place for place, letter in enumerate(before) if after[place] != letter)
    classes = tuple(letter_class(before[place]) for place in places)
    if len(places) != 2:
        return Relation("other", places, classes)
    i, j = places
    if (before[i], before[j]) == (after[j], after[i]):
        return Relation("transposed", places, classes)
    fresh = after[i] != before[j] and after[j] != before[i]
    return Relation("replaced" if fresh else "other", places, classes)


def letter_class(letter: str) -> Literal["vowel", "consonant"]:
    """Return ``vowel`` or ``consonant`` for a letter, ignoring accents; ``y`` counts as a vowel."""
    return "vowel" if unicodedata.normalize("NFD", letter.casefold())[0] in VOWELS else "consonant"


Made = TypeVar("Made")


def draw_bases(
    make: Callable[[str], Made | None], number: int, *, bounds: WordBounds, language: str, seed: int
) -> list[Made]:
    """Draw base words that look unlike each other, by the alphabet; a larger draw holds a smaller one."""
    if number < 1:
        raise UserError(f"{number} base words were requested; request one or more")
    made: dict[str, Made] = {}
    for word in _shuffled(drawable_words(language, bounds), seed, "base words"):
        if len(made) == number:
            break
        if unlike(word, made) and (one := make(word)) is not None:
            made[word] = one
    if len(made) < number:
        raise UserError(
            f"{number} base words were requested; {len(made)} of {bounds.letters[0]} to {bounds.letters[1]} letters and "
            f"Zipf {bounds.zipf[0]:g} to {bounds.zipf[1]:g} can be drawn that do not resemble each other",
            mend="Widen letters or zipf, or ask for fewer.",
        )
    return [made[word] for word in sorted(made)]


def match_fillers(
    bases: Sequence[str], number: int, *, pool: Iterable[str], seed: int, where: str, mend: str
) -> list[str]:
    """Choose word fillers that have the lengths of the base words and resemble neither them nor each other."""
    by_length: dict[int, Iterator[str]] = {}
    candidates = sorted(set(pool))
    chosen: list[str] = []
    turns = _shuffled(bases, seed, "lengths of fillers")
    for place in range(number):
        length = len(turns[place % len(turns)])
        if length not in by_length:
            by_length[length] = iter(_shuffled([w for w in candidates if len(w) == length], seed, "fillers"))
        filler = next((word for word in by_length[length] if unlike(word, (*bases, *chosen))), None)
        if filler is None:
            raise UserError(
                f"{number} fillers are needed; {where} has too few of {length} letters that resemble no other word",
                mend=mend,
            )
        chosen.append(filler)
    return sorted(chosen)


def _shuffled(words: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(words, key=lambda word: (stable_seed(seed, "lexical decision", purpose, word), word))


_LISTED = 60_000
_WHOLE_WORDS_BELOW = 5
_INFLECTED = ("s", "es", "ed", "d", "ing", "er", "ers")
_EVIDENCE = ("ed", "ing", "ly", "er", "ers", "ness", "less", "ful", "able", "ment", "ally")
_ENDINGS = (
    "tion", "sion", "ness", "ment", "ance", "ence", "able", "ible", "less", "ship", "hood", "ture", "ism",
    "ity", "ous", "ive", "ful", "ical", "ual", "ial", "age",
)  # fmt: skip


@dataclass(frozen=True)
class WordBounds:
    """Bounds of length and frequency."""

    letters: tuple[int, int]  # fewest and most letters
    zipf: tuple[float, float]  # lowest and highest Zipf frequency (log10 per billion words)

    def __post_init__(self) -> None:
        for name, (low, high) in (("letters", self.letters), ("zipf", self.zipf)):
            if not 0 < low <= high:
                raise UserError(f"{name} is {[low, high]}; give a lower and an upper bound, such as [6, 9]")
        if self.zipf[0] < REAL_WORD_ZIPF:
            raise UserError(
                f"zipf begins at {self.zipf[0]:g}; below {REAL_WORD_ZIPF:g} the list mostly holds errors and names",
                mend=f"Begin at {REAL_WORD_ZIPF:g} or above.",
            )


@functools.cache
def _unwanted(language: str) -> Mapping[str, Any] | None:
    file = resources.files(__package__).joinpath(f"unwanted_{language}.json")
    return cast(Mapping[str, Any], json.loads(file.read_text("utf-8"))) if file.is_file() else None


def can_draw(language: str) -> bool:
    """Return whether words of a language can be drawn: there is a list of unwanted ones to keep out."""
    return _unwanted(base_language(language)) is not None


def require_screen(language: str) -> None:
    """Refuse to draw words of a language without a list of unwanted words."""
    if not can_draw(language):
        raise UserError(
            f"words of language {language!r} cannot be drawn: there is no list of names and rude words to keep out",
            mend="Give your own words (words: FILE), and word fillers among them (column role: filler) or fillers: 0.",
        )


@functools.cache
def _whole_words(language: str) -> frozenset[str]:
    listed = _unwanted(language) or {}
    names = {name for row in listed.get("names", ()) for name in row.split()}
    short = {stem for stem in listed.get("stems", "").split() if len(stem) < _WHOLE_WORDS_BELOW}
    return frozenset(names | {word + ending for word in names | short for ending in ("", *_INFLECTED)})


@functools.cache
def _beginnings(language: str) -> tuple[str, ...]:
    stems = (_unwanted(language) or {}).get("stems", "").split()
    return tuple(stem for stem in stems if len(stem) >= _WHOLE_WORDS_BELOW)


def is_unwanted(word: str, language: str) -> bool:
    """Return whether a word is a listed name or may offend or distress."""
    require_screen(language)
    base, plain = base_language(language), word.lower()
    parts = cast(Mapping[str, Any], _unwanted(base))["parts"]
    return (
        plain in _whole_words(base)
        or plain.startswith(_beginnings(base))
        or any(part in plain for part in parts)
    )


def is_plain_word(word: str, language: str) -> bool:
    """Return whether other forms show that a listed string is a common word, and that it is its base form."""

    def listed(form: str) -> bool:
        return (zipf(form, language) or 0) >= REAL_WORD_ZIPF

    if word.endswith("s") and not word.endswith(("ss", "us", "is", "ous")) and listed(word[:-1]):
        return False
    if word.endswith(("ed", "ing")):
        stem = word[:-2] if word.endswith("ed") else word[:-3]
        if listed(stem) or listed(f"{stem}e") or (stem[-1:] == stem[-2:-1] and listed(stem[:-1])):
            return False
    if is_like_a_name(word, language):
        return False
    if word.endswith(_ENDINGS):
        return True
    stems = [word]
    if word.endswith("e") and (zipf(word[:-1], language) or 0) <= (zipf(word, language) or 0):
        stems.append(word[:-1])
    elif word.endswith("y"):
        stems.append(f"{word[:-1]}i")
    return any(listed(stem + ending) for stem in stems for ending in _EVIDENCE)


def is_like_a_name(word: str, language: str) -> bool:
    """Return whether an English word's possessive is listed and more frequent than its plural, as those of names are."""
    plurals = (f"{word}s", f"{word}es", f"{word[:-1]}ies" if word.endswith("y") else f"{word}s")
    return (zipf(f"{word}'s", language) or 0) > max(zipf(plural, language) or 0 for plural in plurals)


@functools.lru_cache(maxsize=16)
def drawable_words(language: str, bounds: WordBounds) -> tuple[str, ...]:
    """Return the words of a language that may be drawn, most frequent first."""
    require_screen(language)
    import wordfreq

    words = []
    for word in wordfreq.top_n_list(base_language(language), _LISTED):
        if not (word.isascii() and word.isalpha() and bounds.letters[0] <= len(word) <= bounds.letters[1]):
            continue
        frequency = zipf(word, language) or 0
        if frequency < bounds.zipf[0]:
            break
        if frequency <= bounds.zipf[1] and not is_unwanted(word, language) and is_plain_word(word, language):
            words.append(word)
    return tuple(words)


def akin(one: str, other: str) -> bool:
    """Return whether two words look alike enough to prime each other: a common beginning, or two edits apart at most."""
    from rapidfuzz.distance import OSA

    shared = min(len(one), len(other), 5)
    return one[:shared] == other[:shared] or OSA.distance(one, other, score_cutoff=2) <= 2


def unlike(word: str, others: Iterable[str]) -> bool:
    """Return whether a word is akin to none of the others."""
    return not any(akin(word, other) for other in others)


BOUNDS = WordBounds((4, 10), (2.0, 4.0))
_BASES = WordBounds((5, 9), (2.5, 5.0))
_REPLACED = 2
_RAREST_PAIR = 0.7
"""Lowest count of words of the same length with a nonword's letter pair at its place, as log10(1 + count)."""
_TRIES = 200


def vocabulary_test(
    language: str, *, words: int, nonwords: int, seed: int, name: str = "vocabulary"
) -> dict[str, list[str]]:
    """Draw the items of a test."""
    return {key: list(value) for key, value in _drawn(language, words, nonwords, seed, name).items()}


@functools.lru_cache(maxsize=8)
def _drawn(language: str, words: int, nonwords: int, seed: int, name: str) -> dict[str, tuple[str, ...]]:
    draw = generator(seed, "vocabulary test", name, language)
    known = drawable_words(language, BOUNDS)
    if len(known) < 4 * words:
        raise UserError(
            f"a vocabulary test of {words} words needs more words of language {language!r} than the list has"
        )
    chosen = _spread(known, words, draw)
    invented = _invent(drawable_words(language, _BASES), nonwords, chosen, language, draw)
    shown = [*chosen, *invented]
    draw.shuffle(shown)
    return {"words": tuple(chosen), "nonwords": tuple(invented), "shown": tuple(shown)}


def score(chosen: Collection[str], words: Sequence[str], nonwords: Sequence[str]) -> float:
    """Return the score of a test, 0 to 1: the mean of words accepted and nonwords rejected, as shares."""
    accepted = sum(word in chosen for word in words) / len(words)
    rejected = sum(word not in chosen for word in nonwords) / len(nonwords)
    return (accepted + rejected) / 2


def _spread(known: Sequence[str], number: int, draw: Random) -> list[str]:
    """Draw one word from each of ``number`` equal stretches of a list in order of frequency."""
    spread: list[str] = []
    for place in range(number):
        stretch = list(known[place * len(known) // number : (place + 1) * len(known) // number])
        draw.shuffle(stretch)
        spread.append(next((word for word in stretch if unlike(word, spread)), stretch[0]))
    return spread


def _invent(
    bases: Sequence[str], number: int, taken: Sequence[str], language: str, draw: Random
) -> list[str]:
    nonwords: list[str] = []
    order = list(bases)
    draw.shuffle(order)
    for base in order:
        if len(nonwords) == number:
            return nonwords
        made = _altered(base, language, draw)
        if made is not None and unlike(made, (*taken, *nonwords)):
            nonwords.append(made)
    raise UserError(f"only {len(nonwords)} of {number} nonwords could be made in language {language!r}")


def _altered(base: str, language: str, draw: Random) -> str | None:
    """Replace letters of a word within their class, so that what comes out could be a word and is none."""
    vowels = "aeiou"
    for _ in range(_TRIES):
        letters = list(base)
        for place in draw.sample(range(len(letters)), _REPLACED):
            same = (
                vowels if letters[place] in vowels else [c for c in string.ascii_lowercase if c not in vowels]
            )
            letters[place] = draw.choice([c for c in same if c != letters[place]])
        made = "".join(letters)
        frequency = bigram_frequency(made, language)
        common = frequency is not None and frequency.bigram_position_type_min >= _RAREST_PAIR
        if common and sorted(made) != sorted(base) and not is_real_word(made, language):
            return made
    return None
