"""Neighbours, bigrams and syllables: checked against counts done the long way over the same vocabulary."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import lzma
import math
from collections import Counter
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from stimuli.htest.released import rhymes_as_published
from stimuli.htest.rules import listed, rhymes, sound_alike
from stimuli.lexicon import (
    REAL_WORD_ZIPF,
    dictionary_source,
    frequent_words,
    is_real_word,
    pronounced_words,
    pronunciations,
    syllables,
    syllables_reason,
    word_list_source,
    words_source,
    zipf,
)
from stimuli.lexicon.neighbourhoods import (
    BIGRAM_MEASURES,
    LEAST_LETTERS,
    VOCABULARY_SIZE,
    bigram_frequency,
    neighbourhoods,
    spell,
    vocabulary,
    vocabulary_reason,
)

strings = st.text(max_size=10) | st.text("aáb’ß\u0301ı가नि漢", max_size=10)


@pytest.fixture(scope="module")
def english():
    listed = vocabulary("en")
    assert listed is not None
    return listed


def test_the_vocabulary_is_what_its_definition_says(english):
    assert 40_000 < len(english.spelled) == len(english.members) <= VOCABULARY_SIZE
    assert all(is_real_word(word, "en") for word in english.spelled)
    assert all(word.isalpha() and len(word) >= LEAST_LETTERS for word in english.spelled)
    assert list(english.per_million) == sorted(english.per_million, reverse=True)
    rarest = zipf(english.spelled[-1], "en")
    assert rarest is not None
    assert rarest >= REAL_WORD_ZIPF


def test_neighbours_in_english_are_words():
    words = ["the", "cat", "house", "table", "word", "business"]
    values = [(one.coltheart_n, one.old20) for one in neighbourhoods(words, "en") if one is not None]
    # computed independently over the words of SCOWL up to size 60 with Zipf 2 or more
    assert values == [(6, 1.4), (21, 1.0), (5, 1.6), (5, 1.45), (11, 1.25), (1, 2.8)]


def test_regions_share_their_languages_vocabulary(english):
    assert vocabulary("en-GB") is english


@pytest.mark.parametrize("word", ["cat", "jugde", "straightforward", "a", "z" * 40])
def test_neighbours_are_those_of_a_search_through_every_word(word, english):
    others = [other for other in english.spelled if other != word]
    nearest = sorted(Levenshtein.distance(word, other) for other in others)[:20]
    substituted = sum(len(other) == len(word) and sum(map(str.__ne__, word, other)) == 1 for other in others)
    found = neighbourhoods([word], "en")[0]
    assert found is not None
    assert found.old20 == pytest.approx(sum(nearest) / 20)
    assert found.coltheart_n == substituted


def test_bigram_frequencies_are_sums_over_the_vocabulary(english):
    types = Counter()
    tokens = Counter()
    placed = Counter()
    for word, frequency in zip(english.spelled, english.per_million, strict=True):
        for place in range(len(word) - 1):
            types[word[place : place + 2]] += 1
            tokens[word[place : place + 2]] += frequency
            if len(word) == 4:
                placed[place, word[place : place + 2]] += 1
    found = bigram_frequency("wrod", "en")
    assert found is not None
    pairs = ["wr", "ro", "od"]
    logs = [math.log10(1 + tokens[pair]) for pair in pairs]
    assert found.bigram_mean == pytest.approx(sum(logs) / 3)
    assert found.bigram_min == pytest.approx(min(logs))
    assert found.bigram_type_min == pytest.approx(min(math.log10(1 + types[pair]) for pair in pairs))
    by_place = [math.log10(1 + placed[place, pair]) for place, pair in enumerate(pairs)]
    assert found.bigram_position_type_mean == pytest.approx(sum(by_place) / 3)


@pytest.mark.parametrize(
    ("written", "language", "spelled"),
    [
        ("Judge", "en", "judge"),
        ("company’s", "en", "company"),
        ("Straße", "de", "strasse"),
        ("ISI", "tr", "ısı"),
        ("café", "fr", "cafe\u0301"),
        ("...", "en", ""),
    ],
)
def test_words_are_spelled_as_the_languages_list_has_them(written, language, spelled):
    assert spell(written, language) == spell(spelled, language)
    assert len(spell(written, language)) == len(spell(spelled, language))


def test_grapheme_clusters_count_as_one_letter():
    assert len(spell("हिन्दी", "hi")) == len(spell("कखग", "hi")) - 1  # हि + न्दी
    nearest = neighbourhoods(["हिन्दी"], "hi")[0]
    assert nearest is not None
    assert nearest.old20 >= 1


@pytest.mark.parametrize(
    ("word", "number"), [("company", 3), ("Judge", 1), ("don’t", 1), ("area", 3), ("jugde", None)]
)
def test_syllables_come_from_the_first_pronunciation(word, number):
    assert syllables(word, "en") == number


def test_what_a_language_lacks_is_not_computed_with_english():
    assert syllables("company", "de") is None
    assert "de" in str(syllables_reason("de"))
    assert vocabulary("th") is None
    assert "th" in str(vocabulary_reason("th"))
    assert neighbourhoods(["cat"], "th") == [None] and bigram_frequency("cat", "th") is None


@given(strings)
def test_measures_of_any_string_are_counts_that_make_sense(word):
    near, pairs = neighbourhoods([word], "en")[0], bigram_frequency(word, "en")
    if near is not None:
        assert near.coltheart_n >= 0
        assert near.old20 >= 1
    if pairs is not None:
        assert all(getattr(pairs, name) >= 0 for name in BIGRAM_MEASURES)
        assert pairs.bigram_min <= pairs.bigram_mean


@pytest.mark.parametrize("language", ["de", "en", "tr", "he"])
def test_frequencies_are_those_of_wordfreq(language):
    import wordfreq

    listed = wordfreq.top_n_list(language, 400)
    odd = [
        "1,000", "a1b2", "2³", "x-y", "don’t", "dno't", "naïve", "NAÏVE", "", " ", "–", "the cat", "vxqzj", "ﬁ", "№5",
    ]  # fmt: skip
    for word in [*listed, *(word[::-1] for word in listed), *map(str.upper, listed[:50]), *odd]:
        assert zipf(word, language) == wordfreq.zipf_frequency(word, language), word


FOLDER = resources.files("stimuli.lexicon")


def digest(value):
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()


def words_among(words, *settings):
    return [word for word in words.split() if is_real_word(word, *settings)]


def test_misspellings_names_and_abbreviations_are_no_words_unless_asked_for():
    strings = "teh hte thi whic thier Mary Yb kg zebu aalii café don’t won't the"
    assert words_among(strings, "en") == ["zebu", "café", "don’t", "won't", "the"]
    assert words_among(strings, "en", "frequent") == ["café", "don’t", "won't", "the"]
    assert words_among(strings, "en", "strict") == [
        "Mary",
        "Yb",
        "kg",
        "zebu",
        "aalii",
        "café",
        "don’t",
        "won't",
        "the",
    ]
    assert words_among(strings, "en", "off") == []
    assert {"teh", "hte", "whic"} <= set(words_among(strings, "en", "wordfreq:2"))


def test_languages_without_an_own_list_are_judged_by_frequency():
    assert words_among("Haus Zaunkönig Bretterwand", "de", "frequent") == ["Haus"]
    assert words_among("Haus Zaunkönig Bretterwand", "de", "words") == ["Haus", "Zaunkönig"]
    assert words_source("en", "words") == "SCOWL 2020.12.07 (words 35, words 60)"
    assert str(words_source("de", "words")).startswith("wordfreq ")


def test_the_word_list_is_the_one_that_was_derived():
    text = lzma.decompress((FOLDER / "scowl" / "english.txt.xz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == word_list_source()["sha256"]


def test_the_dictionary_is_the_released_file():
    released = gzip.decompress((FOLDER / "cmudict" / "cmudict.dict.gz").read_bytes())
    assert hashlib.sha256(released).hexdigest() == dictionary_source()["sha256"]


# The digests below were computed with the package cmudict 1.1.3.
def test_every_pronunciation_is_the_one_of_the_package_used_before():
    ways = {word: pronunciations(word) for word in pronounced_words()}
    assert (len(ways), sum(map(len, ways.values()))) == (126_052, 135_166)
    assert digest(ways) == "b39217076d75399380bc83504fd9e1c524b602c142fe08e7fc01b3fdd008a526"


def test_rhymes_of_the_h_test_and_of_5000_frequent_words_stay_the_same():
    ours = {word for words in listed("sets", of="rhymes") for word in words.split()}
    words = sorted(ours | set(frequent_words("en")[:5000]))
    by_ending = sorted(words, key=lambda word: word[::-1])
    couples = [*itertools.pairwise(words), *itertools.pairwise(by_ending)]
    labels = "".join(rhymes(" ".join(couple)) for couple in couples)
    alike = "".join("01"[sound_alike(*couple)] for couple in couples)
    published = "|".join(",".join(rhymes_as_published(word)) for word in words[::100])
    told = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in (labels, alike, published)]
    assert told == ["362930e3ef1f13b8", "0eb34594b946b4c2", "8c86a4e7ab1061d9"]


@pytest.mark.parametrize(
    ("word", "ways"),
    [
        ("read", [["R", "EH1", "D"], ["R", "IY1", "D"]]),  # "read(2)" is the second one
        ("aalto", [["AA1", "L", "T", "OW2"]]),  # a comment follows in the file
        ("read(2)", []),
        ("Read", []),
        ("jugde", []),
        ("", []),
    ],
)
def test_a_word_has_all_its_pronunciations_and_no_others(word, ways):
    assert pronunciations(word) == ways
