"""Every pack has all of English's texts, with the same places to fill, in its own words and with its own marks."""

from __future__ import annotations

import json

import pytest

from experiment.languages import fault_of_text, find_pack, pack_file, pack_for, pack_languages
from stimuli.errors import UserError

ENGLISH = pack_for("en").texts
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
def test_a_pack_has_exactly_the_texts_of_english(language):
    texts = pack_for(language).texts
    assert set(texts) - set(ENGLISH) == set() and set(ENGLISH) - set(texts) == set()


@pytest.mark.parametrize("language", pack_languages())
def test_every_text_fills_the_same_places_as_in_english_and_none_is_empty(language):
    wrong = {
        key: text
        for key, text in pack_for(language).texts.items()
        if fault_of_text(text, ENGLISH[key]) or text != text.strip()
    }
    assert not wrong


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_left_in_english(language):
    same = {key for key, text in pack_for(language).texts.items() if text == ENGLISH[key]}
    assert same == SAME_AS_ENGLISH[language]


def test_there_is_a_pack_of_each_language_that_the_documentation_lists():
    listed = ["ar", "de", "en", "es", "fr", "he", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "zh"]
    assert list(pack_languages()) == listed
    assert {language for language in listed if pack_for(language).direction == "rtl"} == {"ar", "he"}
    heads = [json.loads(pack_file(language).read_text("utf-8")) for language in listed]
    assert not any(head["checked_by_native_reader"] for head in heads)


@pytest.mark.parametrize(
    ("tag", "pack"),
    [
        ("pt-BR", "pt"),
        ("en-GB", "en"),
        ("es-419", "es"),
        ("zh-CN", "zh"),
        ("zh-Hans-HK", "zh"),
        ("zh-Hant", None),
        ("zh-TW", None),
        ("ru-Latn", None),
        ("fi", None),
    ],
)
def test_a_tag_gets_the_pack_of_its_language_and_script_whatever_its_region(tag, pack):
    found = find_pack(tag)
    assert (found and found.language) == pack
    if pack is None:
        with pytest.raises(UserError, match=f"{tag}.*never mixes"):
            pack_for(tag)


def test_values_keep_their_order_in_texts_from_right_to_left():
    assert "\u20682027-03-31\u2069" in pack_for("ar").fill("expired_text", until="2027-03-31")
    assert "until 2027-03-31." in pack_for("en").fill("expired_text", until="2027-03-31")
