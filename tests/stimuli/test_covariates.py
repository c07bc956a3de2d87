"""Covariates of items: means over the right words, comparable over conditions, honest about what is missing."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.covariates import (
    MATCHES,
    TOKENS,
    WORD,
    covariate_table,
    text_covariates,
    unavailable,
    words_covariates,
)
from stimuli.scramble.text import scramble_conditions
from stimuli.similarity import SCORES, match_scores
from tests.write_covariate_page import PAGE, covariate_page

TEXT = "The company’s engineers solved another problem."
LEVELS = {"intact": "none", "inner": "KFL", "all": "RS"}


def described(language="en"):
    results = scramble_conditions(TEXT, LEVELS, seed=3)
    targets = {change.word for result in results.values() for change in result.changes}
    return {
        level: text_covariates(TEXT, language=language, targets=targets, changes=result.changes)
        for level, result in results.items()
    }


def test_measures_of_changed_forms_are_means_over_the_changed_words():
    result = scramble_conditions(TEXT, {"inner": "KFL"}, seed=3)["inner"]
    told = text_covariates(TEXT, language="en", changes=result.changes)
    pairs = [match_scores(change.intact, change.shown) for change in result.changes]
    assert len(pairs) > 2
    for name in MATCHES:
        assert told[name] == pytest.approx(fmean(pair[name] for pair in pairs), abs=0.0006)


def test_all_conditions_can_be_regressed_the_intact_one_matches_fully_and_words_measure_the_same_in_all():
    conditions = described()
    for name in WORD:
        assert len({one[name] for one in conditions.values()}) == 1, name
    intact = conditions["intact"]
    assert {intact[name] for name in MATCHES if name.startswith("match_")} == {1}
    assert (intact["levenshtein"], intact["osa"], intact["changed_words"]) == (0, 0, 0)
    assert intact["shown_bigram_mean"] == intact["bigram_mean"]
    assert all(value is not None for one in conditions.values() for value in one.values())


def test_gaps_between_letters_do_not_change_how_a_word_matches():
    for gap in ("dot", "narrow", "no_break", "space"):
        result = scramble_conditions(TEXT, {"wide": f"space:letters(gap={gap})"}, seed=3)["wide"]
        assert text_covariates(TEXT, language="en", changes=result.changes)["match_slot"] == 1


def test_english_lacks_nothing_and_other_languages_are_never_counted_with_english():
    assert unavailable("en") == {}
    assert set(unavailable("de")) == {"syllables"}
    assert {"zipf", "coltheart_n", "old20", "bigram_mean", "shown_bigram_min"} <= set(unavailable("th"))
    german, english = (words_covariates(["engineer"], language)[0] for language in ("de", "en"))
    assert german["old20"] != english["old20"]


def test_the_table_names_every_covariate_once_and_in_the_items_order():
    names = [entry.name for entry in covariate_table()]
    assert names == [*text_covariates(TEXT, language="en"), *TOKENS]
    assert list(WORD) == list(words_covariates(["word"], "en")[0])
    assert list(MATCHES) == list(SCORES)


def test_the_page_of_covariates_is_made_from_the_table():
    assert PAGE.read_text("utf-8") == covariate_page(), "run: python -m tests.write_covariate_page"


@given(st.text(max_size=40))
def test_any_text_can_be_described(text):
    told = text_covariates(text, language="en")
    assert told == text_covariates(text, language="en")
    assert all(value is None or value == round(value, 3) for value in told.values())
