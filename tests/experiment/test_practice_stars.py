"""Where words to change are starred, sentences without stars can be practised, and shown as fillers, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from stimuli.errors import UserError
from stimuli.item import Item

STUDY = """\
wrods: 1
study: practice
title: Practice
seed: 3
materials: {sentences: s.csv, scramble: {words: starred, min_letters: 4}}
design: {factors: {spelling: {intact: none, swapped: {transpose: internal}}}}
procedure:
  - practice: {items: p.csv}
  - block: {trial: [{read: {show: sentence}}, {choose: {show: question, keys: {"Yes": j, "No": f}}}]}
"""
TESTED = "a,The *garden* is green.,Green?,Yes,\nb,The *river* runs along.,Still?,No,\n"


def items(folder: Path, practice: str, tested: str = TESTED, text: str = STUDY) -> list[Item]:
    (folder / "study.yaml").write_text(text, "utf-8")
    (folder / "s.csv").write_text(f"item,sentence,question,answer,role\n{tested}", "utf-8")
    (folder / "p.csv").write_text(practice, "utf-8")
    return [item for item in make_items(load_study(folder)).items if item.role != "test"]


def test_practice_rows_say_at_which_level_they_are_shown(tmp_path):
    rows = "sentence,question,answer,spelling\nThe dog barks.,Barks?,Yes,intact\nThe *kitten* sleeps.,Barks?,No,swapped\n"
    plain, changed = items(tmp_path, rows)
    assert (plain.shown["sentence"], plain.changes) == ("The dog barks.", ())
    assert [change["intact"] for change in changed.changes] == ["kitten"]


def test_a_sentence_without_stars_at_a_level_that_changes_words_names_level_and_mend(tmp_path):
    with pytest.raises(UserError) as fault:
        items(tmp_path, "sentence,question,answer,spelling\nThe dog barks.,Barks?,Yes,swapped\n")
    assert "p.csv, line 2" in str(fault.value) and "level 'swapped' changes starred words" in str(fault.value)
    assert "show the text as it is, at level 'intact'" in str(fault.value.mend)


def test_a_study_without_an_intact_level_practises_on_starred_words(tmp_path):
    text = STUDY.replace("intact: none, swapped", "ends: {transpose: final}, swapped")
    with pytest.raises(UserError, match="level 'ends' changes starred words"):
        items(tmp_path, "sentence,question,answer\nThe dog barks.,Barks?,Yes\n", text=text)


def test_a_sentence_to_be_tested_without_stars_is_still_refused(tmp_path):
    with pytest.raises(UserError, match=r"s\.csv, line 2, item 'a': no word is starred"):
        items(
            tmp_path,
            "sentence,question,answer\nThe dog barks.,Barks?,Yes\n",
            "a,The garden is green.,Green?,Yes,\n",
        )
