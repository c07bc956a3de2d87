"""The corrected scrambles on examples: positions, capitals, real words, conditions, and what is refused."""

from __future__ import annotations

import pytest

from stimuli.errors import UserError
from stimuli.scramble import scramble_text
from stimuli.scramble.conditions import ScrambleSettings
from stimuli.scramble.text import scramble_conditions


def test_every_new_form_of_a_word_comes_up_about_equally_often():
    forms = [scramble_text("abc", "RS", seed=seed, avoid_real_words=False).text for seed in range(1500)]
    counts = {form: forms.count(form) for form in set(forms)}
    assert set(counts) == {"acb", "bac", "bca", "cab", "cba"}
    assert all(220 < count < 380 for count in counts.values())


@pytest.mark.parametrize("word", ["aaab", "noon", "see", "Otto", "aA", "abababababab", "mississippi"])
def test_the_original_string_never_comes_back_when_there_is_another(word):
    others = [scramble_text(word, "RS", seed=seed, avoid_real_words=False).text for seed in range(40)]
    if len(set(word.lower())) > 1:
        assert word not in others
    else:
        assert set(others) == {word}


def test_a_word_of_equal_letters_is_left_intact_with_the_reason():
    result = scramble_text("aaa", "RS", seed=1)
    assert result.text == "aaa" and not result.changes
    assert [left.reason for left in result.left_intact] == ["shuffle:all: no other arrangement"]


def test_capitals_stay_in_place_or_move_with_their_letter():
    assert scramble_text("Haus", "transpose:initial", seed=1, language="de").text == "Ahus"
    assert scramble_text("Haus", "transpose:initial", seed=1, capitals="move").text == "aHus"
    assert scramble_text("McDonald", "transpose:initial", seed=1).text == "CmDonald"


def test_a_change_says_where_which_and_how_far():
    result = scramble_text("Teh… the dog", "transpose:final", seed=1, words=[2])
    (change,) = result.changes
    assert result.text == "Teh… the dgo"
    assert (change.word, change.start, change.intact, change.shown) == (2, 9, "dog", "dgo")
    assert (change.permutation, change.displaced, change.mean_displacement) == ((0, 2, 1), 2, 0.667)


def test_real_words_are_avoided_while_something_else_is_left():
    may_be, avoided = (
        {scramble_text("trial", "transpose:internal", seed=n, avoid_real_words=avoid).text for n in range(40)}
        for avoid in (False, True)
    )
    assert "trail" in may_be and avoided == {"tiral"}


def test_strictness_says_what_counts_as_a_word():
    def forms(strictness):
        return {
            scramble_text("the", "transpose:any", seed=n, avoid_real_words=strictness).text for n in range(20)
        }

    assert forms("words") == {"hte", "teh"} and forms("wordfreq:2") == {"the"}
    with pytest.raises(UserError, match=r"(?s)avoid_real_words is 'lax'.*off, frequent, words, strict"):
        forms("lax")


@pytest.mark.parametrize(("word", "language"), [("on", "en"), ("он", "ru")])
def test_a_word_that_could_only_become_a_real_word_is_left_intact(word, language):
    result = scramble_text(word, "RS", seed=1, avoid_real_words=True, language=language)
    assert result.text == word
    assert [left.reason for left in result.left_intact] == ["shuffle:all: only real words"]


def test_a_named_word_that_is_too_short_is_reported():
    result = scramble_text("we gather", "keep:first_and_last", seed=1, words=[0, 1])
    assert [(left.intact, left.reason) for left in result.left_intact] == [
        ("we", "keep:first_and_last: too short")
    ]


def test_the_rate_of_the_settings_holds_where_an_operation_says_none():
    settings = ScrambleSettings(rate=0.5)
    results = scramble_conditions(
        "alpha bravo gamma delta", {"a": "RS", "b": "RS-100"}, seed=5, settings=settings
    )
    assert (len(results["a"].changes), len(results["b"].changes)) == (2, 4)


def test_scripts_without_latin_letters_are_scrambled_too():
    for text in ("предложение", "πρόταση", "جملة", "문장입니다", "वाक्य है"):
        result = scramble_text(text, "RS", seed=1)
        assert result.text != text and len(result.text) == len(text)
