"""The audit holds words against nonwords as a list shows them, and finds what else sorts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stimuli.audit.audit import audit_items
from stimuli.covariates import words_covariates
from stimuli.lexicon.base_words import WordBounds, drawable_words
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.lexical_decision import lexical_decision_items
from tests.stimuli.audited import item, told
from tests.stimuli.designs import word_records


def words_and_nonwords(bases, fillers, *, levels):
    records = word_records(drawable_words("en", WordBounds((6, 8), (4.0, 5.0)))[:bases], source="t")
    design = ItemDesign(factor="form", levels=levels, seed=1, on_bad="skip")
    return list(lexical_decision_items(records, design, {"fillers": fillers}).items)


FORMS = {"word": "none", "TL": "transpose:internal", "SL": "substitute:internal"}


def test_words_and_nonwords_are_counted_as_a_list_shows_them():
    items = words_and_nonwords(48, 16, levels=FORMS)
    bases = len({one.item_id for one in items if one.role == "test"})
    audit = audit_items(items, language="en", shortcut=False)
    assert audit.choices is not None
    (found,) = audit.choices.sets
    assert found.items == bases + 16
    assert dict(found.answers) == {
        "nonword": pytest.approx(2 * bases / 3, abs=0.01),
        "word": pytest.approx(bases / 3 + 16, abs=0.01),
    }
    assert not told(audit, "choices")


def test_words_are_held_against_nonwords_by_the_strings_that_are_shown():
    items = words_and_nonwords(30, 10, levels=FORMS)
    audit = audit_items(items, language="en", shortcut=False)
    assert audit.balance is not None
    (by_answer,) = [one for one in audit.balance.groupings if one.by == "answer"]
    roles = {one.name: one.role for one in by_answer.covariates}
    assert roles["letters"] == roles["syllables"] == "item"
    assert roles["zipf"] == "design"
    assert roles["old20"] == roles["coltheart_n"] == roles["bigram_mean"] == "wordness"
    mean = {(one.covariate, one.group): one.mean for one in by_answer.balance.spreads}
    nonwords = [one for one in items if one.answer == "nonword"]
    strings = words_covariates([one.shown["word"] for one in nonwords], "en")
    assert mean["old20", "nonword"] == pytest.approx(
        sum(float(one["old20"] or 0) for one in strings) / len(strings)
    )
    assert mean["old20", "nonword"] > mean["old20", "word"]
    (line,) = [one for one in told(audit, "balance") if "bigram_position_min" in one]
    assert line.startswith("look: ")


def test_the_shortcut_test_sorts_words_from_nonwords_without_what_a_nonword_is():
    items = words_and_nonwords(60, 20, levels=FORMS)
    audit = audit_items(items, language="en")
    assert audit.shortcut is not None
    (task,) = audit.shortcut.tasks
    assert task.answers == ("nonword", "word") and task.accuracy
    assert {"frequency", "vocabulary"} <= set(task.about)
    assert task.groups == len({one.item_id for one in items})
    assert not any("zipf" in one.feature for one in task.telling)


def test_fillers_longer_than_every_nonword_are_a_shortcut():
    made = words_and_nonwords(60, 0, levels={"TL": "transpose:internal", "SL": "substitute:internal"})
    longer = drawable_words("en", WordBounds((10, 12), (3.5, 5.0)))[:60]
    pattern = made[0]
    covariates = {**pattern.covariates, "relation": "same"}
    own = {"role": "filler", "condition": {}, "answer": "word", "changes": (), "covariates": covariates}
    words = [replace(pattern, item_id=word, shown={"word": word}, **own) for word in longer]
    audit = audit_items([*made, *words], language="en")
    assert any("100%" in line and line.startswith("mend") for line in told(audit, "shortcut"))
    assert any("letters" in line and line.startswith("mend") for line in told(audit, "balance"))


def told_of_changes(shown, intact=None):
    """Return what is said of items shown in the conditions of two factors, as (item, position): (low, high)."""
    items = [
        item(name, text, condition={"position": position, "length": length}, intact={"text": intact or ""})
        for (name, position), texts in shown.items()
        for length, text in zip(("low", "high"), texts, strict=True)
    ]
    return told(audit_items(items, language="en", shortcut=False), "changes")


def test_levels_that_show_every_item_alike_are_to_be_mended():
    (found,) = told_of_changes({("a", "internal"): ("wrods", "wrods")})
    assert found.startswith("mend: ") and all(name in found for name in ("low", "high", "length"))


def test_levels_that_show_some_items_alike_are_counted():
    some = {("a", "internal"): ("wrods", "words"), ("b", "internal"): ("lettres", "lettres")}
    (found,) = told_of_changes(some, "as it was")
    assert found.startswith("look: ") and " of length " in found and " 1 of 2 " in found


def test_intact_texts_are_the_same_under_every_option_of_a_scramble():
    crossed = {("a", "intact"): ("words", "words"), ("a", "internal"): ("wrods", "wodrs")}
    assert not told_of_changes(crossed, "words")
