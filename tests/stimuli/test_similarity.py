"""Match scores: what the Match Calculator prints, values worked by hand, and what holds for any two strings."""

from __future__ import annotations

import csv
import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.similarity import (
    SCORES,
    edit_similarity,
    levenshtein,
    match_scores,
    open_bigram,
    osa,
    overlap_model,
    overlap_open_bigram,
    seriol,
    slot,
    spatial_coding,
    spatial_coding_by_length,
)
from stimuli.words import clusters_of, letters_of, nfc, without_case

MATCHES = [name for name in SCORES if name.startswith("match_")]
words = st.text(max_size=12) | st.text("aáb’-ß\u0301ı가नि漢", max_size=12)


def printed(value):
    """Round half up to two decimals, as the Match Calculator prints."""
    return f"{math.floor(value * 100 + 0.5 + 1e-9) / 100:.2f}"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("column", "scheme"),
    [
        ("absolute", slot),
        ("open_bigram_binary", open_bigram),
        ("open_bigram_overlap", overlap_open_bigram),
        ("seriol_2001", seriol),
        ("solar_spatial", spatial_coding),
    ],
)
def test_all_pairs_of_the_match_calculator_agree_to_two_decimals(column, scheme, shared):
    with (shared / "data/form_priming/match_calculator.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5460
    differing = [
        (row["target"], row["prime"], row[column], value)
        for row in rows
        if printed(value := scheme(row["target"], row["prime"])) != row[column]
    ]
    assert not differing


@pytest.mark.parametrize(
    ("target", "shown", "slots", "pairs", "narrow", "by_length", "edits", "swaps"),
    [
        ("judge", "jugde", 0.60, 0.89, 0.86, 0.91, 2, 1),
        ("judge", "jupte", 0.60, 0.22, 0.71, 0.71, 2, 2),
        ("judge", "ujdge", 0.60, 0.78, 0.72, 0.77, 2, 1),
        ("casino", "caniso", 0.67, 0.67, 0.77, 0.83, 2, 2),
        ("casino", "caviro", 0.67, 0.33, 0.75, 0.75, 2, 2),
        ("problem", "porblem", 0.71, 0.87, 0.89, 0.96, 2, 1),
        ("problem", "rpoblem", 0.71, 0.87, 0.78, 0.85, 2, 1),
        ("problem", "pborelm", 0.43, 0.60, 0.69, 0.83, 4, 3),
        ("problem", "pelborm", 0.43, 0.13, 0.57, 0.66, 4, 4),
    ],
)
def test_scores_agree_with_values_worked_out_from_the_formulas(
    target, shown, slots, pairs, narrow, by_length, edits, swaps
):
    assert slot(target, shown) == pytest.approx(slots, abs=0.006)
    assert open_bigram(target, shown) == pytest.approx(pairs, abs=0.006)
    # These values put exp(−(d / 1.25)²) where the Match Calculator has exp(−d² / (2 · 1.25²)).
    assert spatial_coding(target, shown, sigma=1.25 / math.sqrt(2)) == pytest.approx(narrow, abs=0.006)
    assert spatial_coding_by_length(target, shown) == pytest.approx(by_length, abs=0.006)
    assert (levenshtein(target, shown), osa(target, shown)) == (edits, swaps)


def test_letters_that_occur_twice_are_matched_one_to_one():
    assert spatial_coding("aa", "ab") == pytest.approx((1 + 1) / 4)
    assert spatial_coding("anna", "anna") == 1
    assert slot("anna", "nana") == 0.5


def test_overlap_model_by_hand():
    first, second = (NormalDist(place, 1.25 * (1 - math.exp(-place))) for place in (1, 2))

    def share(letter, slot):
        return letter.cdf(slot + 0.5) - letter.cdf(slot - 0.5)

    whole = share(first, 1) + share(second, 2)
    assert overlap_model("ab", "ba") == pytest.approx((share(first, 2) + share(second, 1)) / whole)
    assert overlap_model("ab", "ax") == pytest.approx(share(first, 1) / whole)


def test_letters_are_grapheme_clusters_of_the_composed_form_without_case():
    assert letters_of("Cafe\u0301") == letters_of("CAFÉ") == ("c", "a", "f", "é")
    assert match_scores("Cafe\u0301", "café") == match_scores("cafe", "cafe")
    assert osa("हिन्दी", "हिदीन्") <= 2


def test_turkish_pairs_each_of_its_two_letters_i_with_its_own_capital():
    assert match_scores("ışık", "IŞIK", "tr")["levenshtein"] == 0
    assert match_scores("izmir", "İZMİR", "tr-TR")["levenshtein"] == 0
    assert match_scores("ışık", "IŞIK", "de")["levenshtein"] == 2


@given(words, st.sampled_from([None, "de", "el", "tr"]))
def test_no_letter_is_lost_or_won_by_leaving_case_aside(word, language):
    assert len(letters_of(word, language)) == len(clusters_of(nfc(word)))
    assert without_case(word, language) == "".join(letters_of(word, language))


@pytest.mark.parametrize(
    ("target", "shown"), [("", ""), ("", "a"), ("a", ""), ("a", "a"), ("a", "b"), ("A", "a")]
)
def test_words_of_one_letter_or_none_match_where_they_are_equal(target, shown):
    scores = match_scores(target, shown)
    assert {scores[name] for name in MATCHES} == {float(target.casefold() == shown.casefold())}


@given(words)
def test_a_word_matches_itself_fully(word):
    scores = match_scores(word, word)
    assert all(scores[name] == pytest.approx(1) for name in MATCHES)
    assert scores["levenshtein"] == scores["osa"] == 0


@given(words, words)
def test_scores_of_any_strings_lie_between_0_and_1(target, shown):
    scores = match_scores(target, shown)
    assert list(scores) == list(SCORES)
    assert all(0 <= scores[name] <= 1 for name in MATCHES)
    assert scores["osa"] <= scores["levenshtein"] <= max(len(letters_of(target)), len(letters_of(shown)))


@given(words, words)
def test_edit_distances_do_not_depend_on_the_order_of_the_words(one, other):
    assert levenshtein(one, other) == levenshtein(other, one)
    assert osa(one, other) == osa(other, one)
    assert edit_similarity(one, other) == edit_similarity(other, one)


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8).flatmap(
        lambda letters: st.tuples(st.just("".join(letters)), st.permutations(letters).map("".join))
    )
)
def test_slots_and_spatial_coding_of_an_arrangement_do_not_depend_on_the_order(pair):
    one, other = pair
    assert slot(one, other) == slot(other, one)
    if len(set(one)) == len(one):
        assert spatial_coding(one, other) == pytest.approx(spatial_coding(other, one))


@given(st.text("abc", min_size=1, max_size=6), st.text("xyz", min_size=1, max_size=6))
def test_words_without_a_common_letter_do_not_match(one, other):
    scores = match_scores(one, other)
    assert {scores[name] for name in MATCHES} == {0.0}
