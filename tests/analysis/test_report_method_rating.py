"""The Method section tells who rated what, blind to what, on which scale, and what became of differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis import load
from analysis.preprocessing.exclusions import ORDER
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
    assert "consisted of full screen and a block of trials" in said["Procedure"]
    assert "In 2 of these trials readers were asked to state the rule of the set" in said["Procedure"]
    told = said["Rating"]
    assert told.startswith(
        "The statements of rules of people and language models were rated by two people each"
    )
    for words in (
        "on a scale from 0 to 2 (the study's rubric.md defines each rating).",
        "neither who had answered nor the condition",
        "Cohen's κ of their ratings before any decision, with quadratic weights: see the chapter on H-TEST.",
        "of 4 on which they differed, 3 were decided (1 by discussion, 2 by a third rater) and ",
        "1 is not decided and counts as not rated.",
        "stated correctly with the highest rating",
    ):
        assert words in told, words
