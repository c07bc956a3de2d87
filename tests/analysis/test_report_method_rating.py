"""The Method section tells who rated what, blind to what, on which scale, and what became of differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import load
from analysis.preparing.exclusions import ORDER
from analysis.report.inline import plain_text
from analysis.report.method import method_parts
from analysis.tables import Tables
from tests.analysis.letter_study import study_rows, write_handover

PAIR = {"raters": [1, 2], "answers": 29, "same": 25, "kappa": 0.5, "low": 0.2, "high": 0.8}
RATING: dict[str, Any] = {
    **{"rubric": "rubric.md", "scale": [0, 2], "raters": 2, "people": 2},
    **{"answers": 30, "complete": 29, "differing": 4, "decided": 3, "by_discussion": 1},
    "agreements": [PAIR | {"weights": "quadratic"}],
}
PROCEDURE = {
    **{"materials": "8 items.", "lists": "1 list.", "screens": ["full_screen", "block"], "limits": ""},
    **{"trials": "A session had 8 trials", "length": "roughly 2 minutes", "told": ""},
}


def of(folder: Path, rating: dict[str, Any], fillers: tuple[str, ...] = ()) -> Tables:
    """Write a study of which each participant's last trials are fillers of these names."""
    rows = study_rows(human=4, models=("restorer",), items=8)
    rows["is_filler"] = False
    for _, own in rows.groupby("session_id"):
        for place, name in zip(own.index[-len(fillers) :] if fillers else [], fillers, strict=True):
            rows.loc[place, ["item_id", "is_filler", "trial_type"]] = [name, True, "answer"]
    return load(write_handover(folder, rows, rating=rating, procedure=PROCEDURE))


def said_of(tables: Tables) -> dict[str, str]:
    parts = method_parts(tables, (), None)
    return {one.heading: " ".join(plain_text(text) for text in one.paragraphs) for one in parts}


def test_statements_of_rules_are_no_fillers_and_their_raters_are_told(tmp_path: Path) -> None:
    assert "filler" in ORDER
    tables = of(tmp_path, RATING, ("rhyme rule", "uppercase rule"))
    broken_off = tables.trials["is_filler"].astype(bool) & (tables.trials["reader"] == "P001")
    assert broken_off.sum() == 2
    rows = tables.trials.drop(index=tables.trials.index[broken_off][:1])
    assert "In 2 of these trials" in said_of(replace(tables, trials=rows))["Procedure"]
    said = said_of(tables)
    assert "statements of rules, analyzed separately (8 trials)" in said["Participants"]
    assert "filler" not in said["Participants"]
    assert "consisted of full screen and block" in said["Procedure"]
    assert "In 2 of these trials readers were asked to state the rule of the set" in said["Procedure"]
    told = said["Rating"]
    assert told.startswith(
        "The statements of rules of people and language models were rated by two people each"
    )
    for words in (
        "on a scale from 0 to 2 (the study’s rubric.md defines each rating).",
        "neither who had answered nor the condition",
        "Cohen’s κ of their ratings before any decision, with quadratic weights: see the chapter on H-TEST.",
        "of 4 on which they differed, 3 were decided (1 by discussion, 2 by a third rater) and ",
        "1 is not decided and counts as not rated.",
        "stated correctly with the highest rating",
    ):
        assert words in told, words


def test_fillers_beside_statements_are_told_as_both(tmp_path: Path) -> None:
    said = said_of(of(tmp_path, RATING, ("f1", "rhyme rule")))["Participants"]
    assert "filler items and statements of rules, analyzed separately (8 trials)" in said
    assert "filler items (8 trials)" in said_of(of(tmp_path / "b", RATING, ("f1", "f2")))["Participants"]


def test_a_study_without_statements_has_its_agreement_in_the_method(tmp_path: Path) -> None:
    told = said_of(of(tmp_path, RATING | {"people": 3, "decided": 0, "by_discussion": 0}))["Rating"]
    assert "The free answers of people and language models were rated by two people each" in told
    assert "3 people in all" in told and "the question, the intact text, and the answer" in told
    assert "of 4 on which they differed, 4 are not decided and count as not rated" in told
    assert (
        "29 of 30 answers have all ratings." in told
        and "κ = .50, quadratic weights, 95% CI [.20, .80]" in told
    )


@pytest.mark.parametrize("rating", [None, RATING | {"answers": 0}])
def test_nothing_is_told_where_nothing_is_rated(tmp_path: Path, rating: dict[str, Any] | None) -> None:
    assert "Rating" not in said_of(of(tmp_path, rating or {}))


def test_answers_that_wait_for_their_raters_are_said_to_wait(tmp_path: Path) -> None:
    waiting = RATING | {"complete": 0, "differing": 0, "decided": 0, "agreements": [], "people": 0}
    told = said_of(of(tmp_path, waiting))["Rating"]
    assert "are to be rated by two people each" in told and told.endswith(
        "none of the 30 has all ratings yet."
    )
