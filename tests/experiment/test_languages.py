"""Every pack has all of English's texts, with the same places to fill, in its own words and with its own marks."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from experiment.languages import pack_for
from experiment.languages.packs import pack_languages

ENGLISH = pack_for("en").texts
PLACE = re.compile(r"\{(\w+)\}")
OTHERS = [language for language in pack_languages() if language != "en"]
KEYS = {"key_enter", "key_control"}
SAME_AS_ENGLISH = {
    **dict.fromkeys(("ar", "he", "ja", "ko", "pl", "pt", "ru", "tr", "zh"), KEYS),
    "de": {"pilot", "station"},
    "es": {"no", "key_control"},
    "fr": {"key_control"},
    "it": {"no", "key_control"},
    "nl": {*KEYS, "pilot"},
}
"""Texts that are the same in another language."""


@pytest.mark.parametrize("language", OTHERS)
def test_a_pack_has_exactly_the_texts_of_english(language: str) -> None:
    texts = pack_for(language).texts
    assert set(texts) - set(ENGLISH) == set() and set(ENGLISH) - set(texts) == set()


@pytest.mark.parametrize("language", pack_languages())
def test_every_text_fills_the_same_places_as_in_english_and_none_is_empty(language: str) -> None:
    wrong = {
        key: text
        for key, text in pack_for(language).texts.items()
        if Counter(PLACE.findall(text)) != Counter(PLACE.findall(ENGLISH[key]))
        or text != text.strip()
        or not text
        or re.search(r"[{}]", PLACE.sub("", text))
    }
    assert not wrong


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_left_in_english(language: str) -> None:
    same = {key for key, text in pack_for(language).texts.items() if text == ENGLISH[key]}
    assert same == SAME_AS_ENGLISH[language]
