"""Nuisance features of a text, by which readers or models could sort items without using the rule.

The shortcut test (:mod:`stimuli.audit.shortcut`) may use every feature named here except those that a rule declares
itself to be about. ``Rule.about`` is a frozenset of names out of :func:`about_names`:

- a feature, such as ``"marks"``, or a family, such as ``"repetition"``, which stands for all its features (a name of
  both, such as ``"capitals"``, is the family);
- ``"vocabulary"``: which words occur at all (a bag of words, letters only, without case, each word once);
- ``"first_word"`` or ``"last_word"``: only that word is the rule's matter, so the bag leaves it out and keeps the rest;
- ``"word:seven"``: one word that the rule is about, which the bag leaves out wherever it stands.

A rule declares what decides its answer and what necessarily follows from that (repeating a word lowers the
type/token ratio), and nothing that better items could have kept equal: undeclared features are tested.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from stimuli.errors import unknown_name
from stimuli.files import data_file
from stimuli.lexicon import has_lexicon, zipf
from stimuli.words import without_case

Tokenizer = Callable[[str], Sequence[object]]

VOCABULARY, FIRST_WORD, LAST_WORD, ONE_WORD = "vocabulary", "first_word", "last_word", "word:"

FAMILIES: Mapping[str, Mapping[str, str]] = data_file("features.json")
"""Features by family, each with what it measures in plain words."""

FEATURES: Mapping[str, str] = {name: words for family in FAMILIES.values() for name, words in family.items()}
"""What each feature measures, by its name."""

_WORD = re.compile(r"[^\W\d_]+")
_SIMPLE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_VOWELS = frozenset("aeiou")
_VOWEL_GROUP = re.compile("[aeiouy]+")
_APOSTROPHES = frozenset("'’ʼ")
_NOWHERE = -1.0
_OF_FREQUENCIES = ("rarest_position", "commonest_position", "first_word_zipf", "last_word_zipf")


@dataclass(frozen=True)
class Exempt:
    """Features, words and word positions that a rule declares, and that tests therefore ignore."""

    features: frozenset[str] = frozenset()
    vocabulary: bool = False
    first_word: bool = False
    last_word: bool = False
    words: frozenset[str] = frozenset()


def about_names() -> tuple[str, ...]:
    """Return every name that ``Rule.about`` may hold, single words (``word:seven``) apart."""
    return tuple(dict.fromkeys((*FEATURES, *FAMILIES, VOCABULARY, FIRST_WORD, LAST_WORD)))


def exempt(about: Iterable[str]) -> Exempt:
    """Sort the names that a rule declares itself to be about."""
    features: set[str] = set()
    words: set[str] = set()
    given = frozenset(about)
    for name in sorted(given):
        if name.startswith(ONE_WORD):
            words.add(without_case(name.removeprefix(ONE_WORD)))
        elif name in FAMILIES:
            features |= FAMILIES[name].keys()
        elif name in FEATURES:
            features.add(name)
        elif name not in (VOCABULARY, FIRST_WORD, LAST_WORD):
            raise unknown_name("feature", name, about_names())
    return Exempt(
        frozenset(features), VOCABULARY in given, FIRST_WORD in given, LAST_WORD in given, frozenset(words)
    )


def bag(text: str, without: Exempt | None = None) -> frozenset[str]:
    """Return the different words of a text, letters only and without case, less those that a rule is about."""
    without = without or Exempt()
    if without.vocabulary:
        return frozenset()
    words = _WORD.findall(without_case(text))
    retained = words[1 if without.first_word else 0 : len(words) - 1 if without.last_word else len(words)]
    return frozenset(retained) - without.words


def text_features(
    text: str, *, language: str, tokenizer: Tokenizer | None = None, leave_out: Collection[str] = ()
) -> dict[str, float]:
    """Measure the nuisance features of a text."""
    text = unicodedata.normalize("NFC", text)
    measured: dict[str, float] = {}
    for part in (_lengths, _marks, _repetition, _ends, _positions, _outer_words):
        measured |= part(text)
    measured |= _frequencies(text, language)
    if tokenizer is not None:
        tokens = len(tokenizer(text))
        measured |= {"tokens_given": tokens, "characters_per_token": len(text) / tokens if tokens else 0.0}
    return {name: float(measured[name]) for name in FEATURES if name in measured and name not in leave_out}


def unavailable_features(language: str, tokenizer: Tokenizer | None) -> dict[str, str]:
    """Return why features cannot be measured, by feature."""
    missing: dict[str, str] = {}
    if not has_lexicon(language):
        reason = f"no word list for language {language!r}"
        missing |= dict.fromkeys((*FAMILIES["frequency"], *_OF_FREQUENCIES), reason)
    if tokenizer is None:
        missing |= dict.fromkeys(("tokens_given", "characters_per_token"), "no tokenizer given")
    return missing


def _lengths(text: str) -> dict[str, float]:
    letters = [len(word) for word in _WORD.findall(text)] or [0]
    return {
        "characters": len(text),
        "words": len(text.split()),
        "mean_word_length": fmean(letters),
        "shortest_word": min(letters),
        "longest_word": max(letters),
        "tokens_simple": len(_SIMPLE.findall(text)),
    }


@functools.cache
def _is_hyphen(character: str) -> bool:
    return unicodedata.category(character) == "Pd"


@functools.cache
def _is_mark(character: str) -> bool:
    return (
        unicodedata.category(character).startswith("P")
        and not _is_hyphen(character)
        and character not in _APOSTROPHES
    )


@functools.cache
def _is_symbol(character: str) -> bool:
    return unicodedata.category(character).startswith("S")


def _marks(text: str) -> dict[str, float]:
    first = next(filter(str.isalpha, text), "")
    words = text.split()
    return {
        "marks": sum(map(_is_mark, text)),
        "apostrophes": sum(map(text.count, _APOSTROPHES)),
        "symbols": sum(map(_is_symbol, text)),
        "final_mark": bool(text.rstrip()) and _is_mark(text.rstrip()[-1]),
        "spaces": sum(map(str.isspace, text)),
        "hyphens": sum(map(_is_hyphen, text)),
        "digits": sum(map(str.isdigit, text)),
        "capitals": sum(map(str.isupper, text)),
        "first_capital": first.isupper(),
        "capitalised_words": sum(word[0].isupper() for word in words),
    }


def _repetition(text: str) -> dict[str, float]:
    plain = without_case(text)
    words = _WORD.findall(plain)
    letters = list(filter(str.isalpha, plain))
    bare = list(map(_plain, letters))
    return {
        "type_token_ratio": len(set(words)) / len(words) if words else 1.0,
        "repeated_words": len(words) - len(set(words)),
        "adjacent_repeats": sum(map(operator.eq, words, words[1:])),
        "letter_types": len(set(letters)) / len(letters) if letters else 1.0,
        "doubled_letters": sum(map(operator.eq, letters, letters[1:])),
        "vowel_share": sum(map(_is_vowel, letters)) / len(letters) if letters else 0.0,
        "vowel_groups": vowel_groups(text),
        "accents": sum(map(operator.ne, bare, letters)),
        "mirrored": sum(map(operator.eq, letters, reversed(letters))) / len(letters) if letters else 0.0,
    }


def vowel_groups(text: str) -> int:
    """Return the number of runs of vowel letters (a, e, i, o, u, y, with or without accents)."""
    plain = text.lower() if text.isascii() else "".join(map(_plain, text.casefold()))
    return len(_VOWEL_GROUP.findall(plain))


@functools.cache
def _plain(character: str) -> str:
    return unicodedata.normalize("NFD", character)[0]


@functools.cache
def _is_vowel(character: str) -> bool:
    return _plain(character.casefold()) in _VOWELS


def _place(letter: str) -> float:
    plain = _plain(letter.casefold())
    return ord(plain) - ord("a") + 1 if "a" <= plain <= "z" else 27.0


def _ends(text: str) -> dict[str, float]:
    shown = text.strip()
    letters = list(filter(str.isalpha, shown))
    return {
        "first_vowel": bool(letters) and _is_vowel(letters[0]),
        "first_letter_place": _place(letters[0]) if letters else 0.0,
        "first_not_letter": not shown or not shown[0].isalpha(),
        "last_vowel": bool(letters) and _is_vowel(letters[-1]),
        "last_letter_place": _place(letters[-1]) if letters else 0.0,
        "last_not_letter": not shown or not shown[-1].isalpha(),
    }


def _where(text: str, holds: Callable[[str], bool]) -> float:
    flags = list(map(holds, text))
    return flags.index(True) / max(len(text) - 1, 1) if True in flags else _NOWHERE


def _word_position(values: Sequence[float]) -> float:
    return values.index(max(values)) / max(len(values) - 1, 1) if values else _NOWHERE


def _positions(text: str) -> dict[str, float]:
    lengths = [len(word) for word in _WORD.findall(text)]
    return {
        "capital_position": _where(text, str.isupper),
        "mark_position": _where(text, _is_mark),
        "hyphen_position": _where(text, _is_hyphen),
        "digit_position": _where(text, str.isdigit),
        "longest_position": _word_position(lengths),
        "shortest_position": _word_position([-length for length in lengths]),
    }


def _outer_words(text: str) -> dict[str, float]:
    words = _WORD.findall(text) or [""]
    return {
        f"{place}_word_{name}": measure(word)
        for place, word in (("first", words[0]), ("last", words[-1]))
        for name, measure in (("letters", len), ("vowel_groups", vowel_groups))
    }


def _frequencies(text: str, language: str) -> dict[str, float]:
    if not has_lexicon(language):
        return {}
    frequencies = [zipf(word, language) for word in _WORD.findall(text)]
    known = [frequency for frequency in frequencies if frequency is not None and math.isfinite(frequency)]
    if len(known) < len(frequencies):
        return {}
    return {
        "zipf_mean": fmean(known) if known else 0.0,
        "zipf_min": min(known, default=0.0),
        "zipf_max": max(known, default=0.0),
        "rarest_position": _word_position([-frequency for frequency in known]),
        "commonest_position": _word_position(known),
        "first_word_zipf": known[0] if known else 0.0,
        "last_word_zipf": known[-1] if known else 0.0,
    }
