"""Transpositions by position, distance and class, their controls, insertions, deletions and spaced words, on examples."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from itertools import product

import pytest

from stimuli.errors import UserError
from stimuli.scramble.alignment import count_asked, count_made, words_by_count
from stimuli.scramble.conditions import ScrambleSettings
from stimuli.scramble.edits import alphabet, shape
from stimuli.scramble.text import scramble_conditions, scramble_text
from stimuli.scramble.types import parse_operation


def shown(text, kind, *, seed=1, **settings):
    return scramble_text(text, kind, seed=seed, avoid_real_words=False, **settings).text


def drawn(text, kind, **settings):
    return {shown(text, kind, seed=seed, **settings) for seed in range(60)}


@pytest.mark.parametrize(
    ("kind", "forms"),
    [
        ("transpose:initial", {"rpoblem"}),
        ("transpose:internal_initial", {"porblem"}),
        ("transpose:internal_final", {"probelm"}),
        ("transpose:final", {"problme"}),
        ("transpose:external", {"rpoblem", "problme"}),
        ("transpose:first_and_last", {"mroblep"}),
        ("transpose:3", {"prbolem"}),
        ("transpose:after_first", {"porblem", "prbolem", "prolbem", "probelm", "problme"}),
        ("transpose:internal(distance=2)", {"pborlem", "prlboem", "proelbm"}),
        ("transpose:any(letters=vowels,distance=3)", {"preblom"}),
        ("transpose:internal(distance=3)", {"plobrem", "preblom"}),
        ("KF&Adj@1;texts=1", {"porblem", "prbolem", "prolbem", "probelm", "problme"}),
        ("reverse:all", {"melborp"}),
        ("DEL-BEG", {"roblem"}),
        ("DEL-END", {"proble"}),
        ("DEL-INT_1", {"poblem", "prblem", "prolem", "probem", "problm"}),
        ("delete:initial(count=3)", {"blem"}),
        ("space:letters", {"p·r·o·b·l·e·m"}),
        ("space:letters(gap=space)", {"p r o b l e m"}),
        ("space:letters(gap=no_break)", {"p\u00a0r\u00a0o\u00a0b\u00a0l\u00a0e\u00a0m"}),
        ("transpose:initial(spaced=true)", {"r·p·o·b·l·e·m"}),
        ("transpose:initial(spaced=true,gap=narrow)", {"\u202f".join("rpoblem")}),
    ],
)
def test_a_type_gives_exactly_these_forms(kind, forms):
    assert drawn("problem", kind) == forms


def test_sub_replaces_every_letter_and_keeps_the_pattern_of_capitals():
    form = shown("McDonald’s 4U", "Sub")
    assert all(one != other for one, other in zip(form[:8], "McDonald", strict=True))
    assert [one.isupper() for one in form[:8]] == [one.isupper() for one in "McDonald"]
    assert form[8:] == "’s 4U"


def test_inserted_letters_come_from_the_alphabet_of_the_language():
    assert {form[0] for form in drawn("дома" * 2, "INS-BEG", language="ru")} <= set(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
    )
    assert len({form[-1] for form in drawn("doors", "INS-END")}) > 12


def test_a_language_without_letters_here_is_refused_by_what_needs_them_and_only_by_that():
    for kind in ("INS-BEG", "Sub", "substitute:internal", "transpose:any(letters=vowels)"):
        with pytest.raises(UserError, match="'ko'"):
            scramble_text("한국어 단어", kind, seed=1, language="ko", avoid_real_words=False)
    assert scramble_text("한국어", "RS", seed=1, language="ko", avoid_real_words=False).changes


def test_every_alphabet_has_small_letters_of_one_character_and_both_classes():
    for language in [
        "en",
        "de",
        "fr",
        "es",
        "it",
        "nl",
        "pt",
        "tr",
        "ru",
        "el",
        "pl",
        "sv",
        "da",
        "fi",
        "uk",
    ]:
        known = alphabet(language, "a test")
        assert all(len(letter) == 1 and letter.islower() for letter in known.letters)
        assert len(set(known.letters)) == len(known.letters)
        classes = [known.letter_class(letter) for letter in known.letters]
        assert classes.count("vowel") >= 5 and classes.count("consonant") >= 14


def test_accented_letters_have_the_class_and_the_outline_that_their_base_and_marks_give():
    classes = [alphabet("fr", "a test").letter_class(letter) for letter in "éçœy'"]
    assert classes == ["vowel", "consonant", "vowel", "either", "either"]
    assert alphabet("ru", "a test").letter_class("й") == "consonant"
    shapes = {"neutral": "ai", "ascender": "bé", "descender": "gç"}
    assert all(shape(letter) == named for named, letters in shapes.items() for letter in letters)


COUNTED = "also houses problems encouraging noon mississippi parents"


@pytest.mark.parametrize("name", ["REO-INT", "INS-INT", "DEL-INT"])
def test_levels_of_a_count_change_the_same_words_each_by_its_whole_number(name):
    levels = {k: f"{name}_{k}" for k in (1, 2, 3, 4)}
    results = scramble_conditions(COUNTED, {str(k): kind for k, kind in levels.items()}, seed=3)
    assert len({tuple(change.word for change in one.changes) for one in results.values()}) == 1
    for k in levels:
        assert len(results[str(k)].changes) >= 3
        assert set(words_by_count(results[str(k)].changes)) == {k}
    stayed = {left.intact: left.reason for left in results["1"].left_intact}
    assert "fewer than 4" in stayed["also"] and "also" in results["4"].text


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("REO-INT_2", "takes fewer than 2 exchanges"),
        ("INS-INT_3", "can get fewer than 3 letters"),
        ("delete:final(count=4)", "can lose fewer than 4 letters"),
    ],
)
def test_a_word_that_cannot_take_the_whole_count_stays_with_the_reason(kind, reason):
    result = scramble_text("gate", kind, seed=1)
    assert result.text == "gate" and result.left_intact[0].reason.endswith(f": {reason}")


def test_doses_as_published_make_as_many_as_a_word_can_take_and_says_how_many():
    settings = ScrambleSettings(dose="as_published", avoid_real_words=False)
    result = scramble_conditions("also problems", {"k": "REO-INT_4"}, seed=1, settings=settings)["k"]
    assert [count_made(change) for change in result.changes] == [1, 4]
    left = scramble_conditions(
        "also problems", {"k": "exchange:internal(count=4,fewer=leave)"}, seed=1, settings=settings
    )["k"]
    assert [change.intact for change in left.changes] == ["problems"]


def test_the_number_asked_for_is_read_from_an_operation_or_its_label():
    assert count_asked("exchange:internal(count=3)@0.5") == 3
    assert count_asked(parse_operation("DEL-BEG")) == 1
    assert count_asked("transpose:internal") is None and count_asked("published REO-INT_2") is None
    assert drawn("banana", "REO-INT_1") == {"bnaana", "baanna", "bannaa", "bnnaaa"}


SITES = "garden ready hidden doctor yellow window letter already problem everything morning theory casual"


def _site(change):
    return {place for place, source in enumerate(change.permutation) if source != place}


@pytest.mark.parametrize("position", ["external", "internal", "any"])
@pytest.mark.parametrize("dose", ["equal", "as_published"])
def test_controls_act_on_the_transposed_pair_wherever_both_can(position, dose):
    settings = ScrambleSettings(dose=dose)
    kinds = {
        "T": f"transpose:{position}",
        "keep": f"substitute:{position}(shape=keep)",
        "change": f"substitute:{position}(shape=change)",
    }
    alone = {level: defaultdict(set) for level in kinds}
    for (level, kind), seed in product(kinds.items(), range(30)):
        for change in scramble_text(SITES, kind, seed=seed).changes:
            alone[level][change.intact].add(frozenset(_site(change)))
    for seed in range(20):
        sites = {
            level: {change.intact: frozenset(_site(change)) for change in one.changes}
            for level, one in scramble_conditions(SITES, kinds, seed=seed, settings=settings).items()
        }
        for word in SITES.split():
            for control in ("keep", "change"):
                taken = {sites[level][word] for level in ("T", control) if word in sites[level]}
                shared_by_all = alone["T"][word] & alone["keep"][word] & alone["change"][word]
                assert len(taken) <= 1 or not shared_by_all


def test_two_types_share_a_pair_where_a_third_can_take_none():
    settings = ScrambleSettings(dose="as_published", avoid_real_words=False)
    kinds = {
        "T": "transpose:internal(letters=vowels)",
        "S": "substitute:internal(letters=vowels)",
        "long": "substitute:internal(letters=vowels,min_letters=12)",
    }
    for seed in range(20):
        results = scramble_conditions("queasiness beautician", kinds, seed=seed, settings=settings)
        pairs = [[_site(change) for change in results[level].changes] for level in ("T", "S")]
        assert pairs[0] == pairs[1] and len(pairs[0]) == 2 and not results["long"].changes


@pytest.mark.parametrize("language", ["en", "fr"])
def test_options_under_which_no_word_can_change_are_refused_with_the_reason(language):
    with pytest.raises(UserError, match="letters: vowels, shape: change, cv: keep") as raised:
        scramble_text("a", "substitute:internal(letters=vowels,shape=change)", seed=1, language=language)
    assert "cv: any" in str(raised.value)
    assert shown("queen", "substitute:internal(letters=vowels,shape=change,cv=any)") != "queen"


@pytest.mark.parametrize(
    ("kind", "language", "word"),
    [
        ("substitute:internal", "en", "объявление"),
        ("substitute:all", "ru", "announcement"),
        ("insert:initial", "de", "ירושלים"),
        ("insert:internal", "el", "아름답습니다"),
    ],
)
def test_no_letter_of_one_script_comes_into_a_word_of_another(kind, language, word):
    result = scramble_text(word, kind, seed=3, language=language)
    assert result.text == unicodedata.normalize("NFC", word)
    assert [left.reason for left in result.left_intact] == [f"{kind}: another script than the language's"]
