"""What every covariate is: one table, from which the docs page and data dictionaries are made."""

from __future__ import annotations

import functools
from dataclasses import dataclass

ALL = "all"
LISTED = "those with a wordfreq list"
ENGLISH = "English"


@dataclass(frozen=True)
class CovariateInfo:
    """A covariate of items."""

    name: str  # its key in items and column in tables
    title: str  # in a few words, for figures and tables
    definition: str  # what it is, with its formula
    unit: str  # what one of it is
    source: str  # paper or resource
    languages: str  # where it is available
    group: str  # word, change, form or token


_BIGRAM = "log10(1 + count)"
_VOCABULARY = "wordfreq list"


def _bigrams() -> list[CovariateInfo]:
    entries = []
    for place, where in (
        ("", "anywhere in a word"),
        ("position_", "at the same place of words of the same length"),
    ):
        for kind, counted in (
            ("", "summed frequency per million of the vocabulary words with the bigram"),
            ("type_", "number of vocabulary words with the bigram"),
        ):
            for which, words in (("mean", "mean"), ("min", "minimum")):
                entries.append(
                    CovariateInfo(
                        f"bigram_{place}{kind}{which}",
                        f"{words} bigram frequency ({'types' if kind else 'tokens'}{', by position' if place else ''})",
                        f"{words.capitalize()} over the word's neighbouring letter pairs of log10(1 + {counted}), {where}",
                        _BIGRAM,
                        f"{_VOCABULARY}; Solso & Juel (1980)" if place else _VOCABULARY,
                        LISTED,
                        "word",
                    )
                )
    return entries


def _of_words() -> list[CovariateInfo]:
    return [
        CovariateInfo(
            "letters",
            "letters",
            "Letters of the word, as grapheme clusters",
            "letters",
            "Unicode UAX #29",
            ALL,
            "word",
        ),
        CovariateInfo(
            "zipf",
            "Zipf frequency",
            "log10 of the word's frequency per billion words; 0 where it is not listed",
            "log10 per billion words",
            "wordfreq; van Heuven, Mandera, Keuleers & Brysbaert (2014)",
            LISTED,
            "word",
        ),
        CovariateInfo(
            "coltheart_n",
            "Coltheart's N",
            "Vocabulary words of the same length that differ in one letter; the word itself does not count; "
            "spelled as the list spells it, German ß as ss",
            "words",
            f"{_VOCABULARY}; Coltheart, Davelaar, Jonasson & Besner (1977)",
            LISTED,
            "word",
        ),
        CovariateInfo(
            "old20",
            "OLD20",
            "Mean Levenshtein distance to the 20 nearest vocabulary words other than the word itself",
            "letters",
            f"{_VOCABULARY}; Yarkoni, Balota & Yap (2008)",
            LISTED,
            "word",
        ),
        *_bigrams(),
        CovariateInfo(
            "syllables",
            "syllables",
            "Vowels with a stress mark in the word's first pronunciation",
            "syllables",
            "CMU Pronouncing Dictionary",
            ENGLISH,
            "word",
        ),
    ]


def _of_changes() -> list[CovariateInfo]:
    return [
        CovariateInfo("words", "words", "Words of the text", "words", "", ALL, "change"),
        CovariateInfo(
            "changed_words",
            "changed words",
            "Words whose letters changed, or that stand at another place of their sentence",
            "words",
            "",
            ALL,
            "change",
        ),
        CovariateInfo(
            "mean_displacement",
            "mean displacement",
            "Mean distance from their place over all letters of a changed word (words of a sentence, sentences of a"
            " text), those that stayed included; averaged over changed words; 0 where none changed",
            "places",
            "",
            ALL,
            "change",
        ),
    ]


_MATCHES = (
    (
        "match_slot",
        "match, absolute slots",
        "Share of the word's places that hold the same letter",
        "McClelland & Rumelhart (1981)",
    ),
    (
        "match_open_bigram",
        "match, open bigrams",
        "Share of the word's ordered letter pairs with at most two letters between that the changed form has",
        "Grainger & van Heuven (2003)",
    ),
    (
        "match_open_bigram_overlap",
        "match, overlap open bigrams",
        "Σ w·w′ / Σ w² over ordered pairs, w = 1, .61, .14 for 0, 1, 2 letters between and .14 for reversed neighbours",
        "Grainger, Granier, Farioli, Van Assche & van Heuven (2006)",
    ),
    (
        "match_seriol",
        "match, SERIOL 2001",
        "Σ w·w′ / Σ w² over ordered pairs at any distance; w falls from the first letter on, is higher for neighbours and"
        " for the outer pair (weights recovered from the Match Calculator's values)",
        "Whitney (2001); Davis's Match Calculator",
    ),
    (
        "match_overlap_model",
        "match, overlap model",
        "Area of the changed form's letters, spread normally around their places, inside the word's slots; SD of the i-th"
        " letter 1.25·(1 − exp(−i)), parameters of this package, not estimates of the paper",
        "Gomez, Ratcliff & Perea (2008)",
    ),
    (
        "match_spatial",
        "match, spatial coding",
        "(height of the superposed receivers exp(−d²/2σ²), σ = 1.25, + shared outer letters) / (letters + 2)",
        "Davis (2010); Davis's Match Calculator",
    ),
    (
        "match_spatial_length",
        "match, spatial coding by length",
        "The same with receivers exp(−(d/σ)²), σ = 0.48 + 0.24 · letters of the changed form",
        "Davis (2010)",
    ),
    (
        "match_levenshtein",
        "match, Levenshtein",
        "1 − Levenshtein distance / letters of the longer form",
        "Levenshtein (1966)",
    ),
)


def _of_forms() -> list[CovariateInfo]:
    entries = [
        CovariateInfo(
            f"shown_bigram_{which}",
            f"{words} bigram frequency of the changed form",
            f"As bigram_{which}, of the changed form; near 0 where a pair of letters hardly occurs in the language",
            _BIGRAM,
            _VOCABULARY,
            LISTED,
            "form",
        )
        for which, words in (("mean", "mean"), ("min", "minimum"))
    ]
    entries += [
        CovariateInfo(name, title, definition, "share, 0 to 1", source, ALL, "form")
        for name, title, definition, source in _MATCHES
    ]
    return [
        *entries,
        CovariateInfo(
            "levenshtein",
            "Levenshtein distance",
            "Least number of letters to insert, delete or substitute between word and changed form",
            "edits",
            "Levenshtein (1966)",
            ALL,
            "form",
        ),
        CovariateInfo(
            "osa",
            "optimal string alignment distance",
            "The same with a swap of two neighbouring letters as one edit",
            "edits",
            "Damerau (1964)",
            ALL,
            "form",
        ),
    ]


def _of_tokens() -> list[CovariateInfo]:
    return [
        CovariateInfo(name, title, definition, unit, "the tokenizer named in the study", ALL, "token")
        for name, title, definition, unit in (
            ("tokens_intact", "tokens of the intact text", "Tokens of the intact text", "tokens"),
            ("tokens_shown", "tokens of the shown text", "Tokens of the text as shown", "tokens"),
            (
                "token_edit_distance",
                "token edit distance",
                "Levenshtein distance between the intact and the shown text's lists of tokens",
                "tokens",
            ),
            (
                "characters_per_token",
                "characters per token",
                "Characters of the text as shown / its tokens",
                "characters per token",
            ),
        )
    ]


@functools.cache
def covariate_table() -> tuple[CovariateInfo, ...]:
    """Return every covariate in the order in which items have them."""
    return (*_of_words(), *_of_changes(), *_of_forms(), *_of_tokens())


def covariate_info(name: str) -> CovariateInfo | None:
    """Return what is known of a covariate by name; None for one that a study brought itself."""
    return next((entry for entry in covariate_table() if entry.name == name), None)


WORD = tuple(entry.name for entry in _of_words())
NEIGHBOURS = ("coltheart_n", "old20")
BIGRAMS = tuple(entry.name for entry in _bigrams())
MATCHES = tuple(entry.name for entry in _of_forms() if not entry.name.startswith("shown_"))
TOKENS = tuple(entry.name for entry in _of_tokens())
