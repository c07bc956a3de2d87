"""Covariates of items: properties of words, amount of change, similarity to the intact text, and tokens.

``covariates.json`` gives the definition, unit and source of each.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from stimuli.errors import UserError
from stimuli.files import data_file
from stimuli.item import ChangeRecord
from stimuli.lexicon import syllables, syllables_reason, zipf
from stimuli.lexicon.neighbourhoods import bigram_frequency, bigram_tokens, neighbourhoods, vocabulary_reason
from stimuli.scramble.changes import Change
from stimuli.scramble.types import without_gaps
from stimuli.similarity import match_scores
from stimuli.words import Word, clusters_of, find_words, is_letter, nfc


class Tokenizer(Protocol):
    """An object that encodes text: a transformers tokenizer, one of the tokenizers library, a tiktoken encoding."""

    def encode(self, text: str, /) -> Any:
        """Return the ids of a text's tokens, or an object that has them as ``ids``."""
        ...


def token_measures(intact: str, shown: str, tokenizer: Tokenizer) -> dict[str, float | None]:
    """Compare the tokens of a text before and after a change."""
    from rapidfuzz.distance import Levenshtein

    before = token_ids(intact, tokenizer)
    after = before if shown == intact else token_ids(shown, tokenizer)
    return {
        "tokens_intact": len(before),
        "tokens_shown": len(after),
        "token_edit_distance": int(Levenshtein.distance(before, after)),
        "characters_per_token": len(shown) / len(after) if after else None,
    }


def token_ids(text: str, tokenizer: Tokenizer) -> Sequence[int]:
    """Return the ids of a text's tokens, without those set around every text."""
    encoded: Any = tokenizer.encode(text, **_plain(tokenizer))
    ids = getattr(encoded, "ids", encoded)
    return [int(token) for token in ids]


def _plain(tokenizer: Tokenizer) -> dict[str, Any]:
    try:
        known = inspect.signature(tokenizer.encode).parameters
    except (TypeError, ValueError):
        return {"add_special_tokens": False} if hasattr(tokenizer, "token_to_id") else {}
    if "add_special_tokens" in known:
        return {"add_special_tokens": False}
    return {"disallowed_special": ()} if "disallowed_special" in known else {}


def load_tokenizer(name_or_path: str | Path) -> Tokenizer:
    """Load a tokenizer from a folder, a ``tokenizer.json`` or the Hugging Face hub (offline: its local cache)."""
    given = str(name_or_path)
    place = Path(given).expanduser()
    if not given.strip():
        raise UserError("tokenizer '' names nothing", mend="Give a folder, a tokenizer.json or owner/name.")
    try:
        loaded: Tokenizer
        if place.is_file():
            from tokenizers import Tokenizer as FastTokenizer

            loaded = FastTokenizer.from_file(str(place))
            return loaded
        if not place.is_dir() and (
            given.startswith((".", "/", "~")) or given.count("/") > 1 or "\\" in given
        ):
            raise UserError(
                f"tokenizer {given!r}: there is no such folder or file",
                mend="Correct the path, or name a model of the Hugging Face hub as owner/name.",
            )
        from transformers import AutoTokenizer

        loaded = AutoTokenizer.from_pretrained(str(place) if place.is_dir() else given)
        return loaded
    except UserError:
        raise
    except Exception as error:  # each tokenizer class fails in its own way on a damaged or missing file
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"tokenizer {given!r} cannot be loaded: {why}",
            mend="Give a folder with tokenizer.json or tokenizer_config.json, the file tokenizer.json itself, or the"
            " name of a model on the Hugging Face hub (owner/name), which must be in the local cache when offline.",
        ) from error


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


@functools.cache
def covariate_table() -> tuple[CovariateInfo, ...]:
    """Return every covariate in the order in which items have them."""
    return tuple(CovariateInfo(**row) for row in data_file("covariates.json"))


def _names(group: str, prefix: str = "") -> tuple[str, ...]:
    return tuple(
        covariate.name
        for covariate in covariate_table()
        if covariate.group == group and covariate.name.startswith(prefix)
    )


WORD, BIGRAMS, TOKENS = _names("word"), _names("word", "bigram_"), _names("token")
NEIGHBOURS = ("coltheart_n", "old20")
MATCHES = tuple(name for name in _names("form") if not name.startswith("shown_"))


def displacement(changes: Iterable[ChangeRecord]) -> float:
    """Return how many places displaced letters (words, sentences) moved on average; 0 where none moved."""
    moved = [
        abs(place - source)
        for change in changes
        for place, source in enumerate(change["permutation"])
        if source is not None and source != place
    ]
    return fmean(moved) if moved else 0.0


Covariates = dict[str, float | str | None]


def unavailable(language: str) -> dict[str, str]:
    """Name the covariates that a language lacks, each with the reason; they are null in its items.

    Nothing is ever computed with another language's resources.
    """
    lacking: dict[str, str] = {}
    without_list = vocabulary_reason(language)
    if without_list is not None:
        names = ("zipf", *NEIGHBOURS, *BIGRAMS, *(f"shown_{name}" for name in _OF_SHOWN))
        lacking |= dict.fromkeys(names, without_list)
    without_sounds = syllables_reason(language)
    if without_sounds is not None:
        lacking["syllables"] = without_sounds
    return lacking


_OF_SHOWN = ("bigram_mean", "bigram_min")
_OF_FORM = (*(f"shown_{name}" for name in _OF_SHOWN), *MATCHES)


def words_covariates(words: Iterable[str], language: str) -> list[dict[str, float | None]]:
    """Return letters, neighbours, bigrams and frequency (0 if not listed) of each word or nonword."""
    written = [nfc(word) for word in words]
    neighbourhoods(written, language)
    return [dict(_word_covariates(word, language)) for word in written]


@functools.lru_cache(maxsize=200_000)
def _word_covariates(word: str, language: str) -> Mapping[str, float | None]:
    near = neighbourhoods([word], language)[0]
    pairs = bigram_frequency(word, language)
    return {
        "letters": sum(is_letter(cluster) for cluster in clusters_of(word)),
        "zipf": zipf(word, language),
        **{name: getattr(near, name, None) for name in NEIGHBOURS},
        **{name: getattr(pairs, name, None) for name in BIGRAMS},
        "syllables": syllables(word, language),
    }


def text_covariates(
    text: str, *, language: str, targets: Collection[int] | None = None, changes: Sequence[Change] = ()
) -> Covariates:
    """Describe a text as one condition shows it.

    Target words are those that conditions change, all words where there are none. Measures of changed forms are
    means over the words whose letters changed here; where none did (the intact condition, or words and sentences
    that moved whole) they are those of the target words as they stand, so that matches are 1, distances 0 and
    shown bigrams the words' own, and every condition has a value to regress on.
    """
    words = _words_of(text)
    described = [word for word in words if targets and word.index in targets] or list(words)
    covariates: Covariates = {**_word_means(tuple(word.text for word in described), language)}
    covariates |= {
        "words": len(words),
        "changed_words": sum(map(_words_changed, changes)),
        "mean_displacement": _mean([change.mean_displacement for change in changes]) or 0,
    }
    altered = [(change.intact, change.shown) for change in changes if change.unit == "letter"]
    covariates |= _form_means(altered or [(word.text, word.text) for word in described], language)
    return covariates


def _words_changed(change: Change) -> int:
    return {"letter": 1, "word": change.displaced}.get(change.unit, 0)


@functools.lru_cache(maxsize=8)
def _words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a text; all conditions of an item ask for them one after the other."""
    return tuple(find_words(nfc(text)))


@functools.lru_cache(maxsize=8)
def _word_means(words: tuple[str, ...], language: str) -> Mapping[str, float | None]:
    measured = words_covariates(words, language)
    means = {name: _mean([measures[name] for measures in measured]) for name in WORD}
    return means | {"letters": means["letters"] or 0}


def _form_means(pairs: Sequence[tuple[str, str]], language: str) -> dict[str, float | None]:
    """Return mean measures of changed forms; spaces set between letters are not letters of the form."""
    measured = list(zip(*[_form(intact, shown, language) for intact, shown in pairs], strict=True))
    columns = measured or [()] * len(_OF_FORM)
    return {name: _mean(column) for name, column in zip(_OF_FORM, columns, strict=True)}


@functools.lru_cache(maxsize=200_000)
def _form(intact: str, shown: str, language: str) -> tuple[float | None, ...]:
    """Return the measures of one changed form, by the names of ``_OF_FORM``."""
    form = "".join(without_gaps(shown).split())
    scores = match_scores(intact, form, language)
    bigrams: tuple[float | None, ...] = bigram_tokens(form, language) or (None,) * len(_OF_SHOWN)
    return *bigrams, *[scores[name] for name in MATCHES]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _rounded(fmean(known)) if known else None


def _rounded(value: float | None) -> float | None:
    if value is None:
        return None
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded
