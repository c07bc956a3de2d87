"""Missing answers of a study that compares two factors: counted by cell, with a model of both and of their interaction."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.plan import cell_name
from analysis.report.blocks import Chapter
from analysis.report.chapters import missing
from tests.analysis.chapters import (
    chapter_of,
    material_of,
    not_carried_out,
    rows_by_head,
    rows_in,
    tables_in,
    words_in,
)
from tests.analysis.crossed_study import CELLS, crossed_rows, crossed_study
from tests.analysis.letter_study import LEVELS, study_rows, timed_out, write_handover

OF_SIX = dict(zip(CELLS, (1, 2, 2, 4), strict=True))
"""Answers that are missing in a cell of the six of each person, and of the six to each item."""


@pytest.fixture(scope="module")
def chapter(tmp_path_factory: pytest.TempPathFactory) -> Chapter:
    rows = crossed_rows(24, 24)
    person, item = rows["reader"].str[1:].astype(int), rows["item_id"].str[1:].astype(int)
    lost = np.array([OF_SIX[cell] for cell in zip(rows["item_type"], rows["font"], strict=True)])
    rows = timed_out(rows, (person // 4 + item // 4) % 6 < lost)
    tables = load(crossed_study(tmp_path_factory.mktemp("missing"), rows))
    return chapter_of(missing.write, material_of(tables, not_carried_out(tables)))


def test_missing_answers_are_counted_in_every_cell(chapter: Chapter) -> None:
    rows = rows_in(tables_in(chapter)["missing_item_type_font"])
    found = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    assert found == {cell_name(*cell): (144, 24 * lost) for cell, lost in OF_SIX.items()}
    ways = tables_in(chapter)["three_ways_item_type_font"]
    assert "item_type × font" in ways.title


def test_the_model_of_missing_answers_has_the_interaction_that_the_counts_have(chapter: Chapter) -> None:
    (fit,) = [one.fit for one in chapter.fits]
    assert "missing ~ item_type * font" in fit.formula
    odds = {cell: lost / (6 - lost) for cell, lost in OF_SIX.items()}
    plain, cursive, swapped, both = (odds[cell] for cell in CELLS)
    by_hand = float(np.log(both / swapped / (cursive / plain)))
    of_both = next(row for _, row in fit.fixed.iterrows() if ":" in row["term"])
    # sum coding: a coefficient is a quarter of the difference of differences
    assert 4 * abs(of_both["estimate"]) == pytest.approx(abs(by_hand), abs=1e-3)
    # without any variance of people and items the standard error of log odds is that of the counts
    counts = [24 * lost for lost in OF_SIX.values()] + [144 - 24 * lost for lost in OF_SIX.values()]
    assert 4 * of_both["se"] == pytest.approx(float(np.sqrt(np.sum(1 / np.array(counts)))), rel=1e-2)


def test_parts_of_a_study_share_their_tables_of_missing_answers(tmp_path: Path) -> None:
    rows = study_rows(human=10, items=12, timeouts=0.4)
    rows["manner"] = np.where(pd.factorize(rows["session_id"])[0] % 2, "aloud", "silently")
    position = {"levels": LEVELS, "reference": "intact"}
    factors = {"position": position, "manner": {"levels": ["aloud", "silently"], "reference": "aloud"}}
    tables = load(write_handover(tmp_path, rows, factors=factors))
    found = chapter_of(missing.write, material_of(tables, not_carried_out(tables)))
    for name in ("missing_position", "three_ways_position", "missing_model_position_differences"):
        heads = rows_by_head(tables_in(found)[name])
        assert {head.split(":")[0] for head in heads} == {"manner aloud", "manner silently"}
    said = words_in(found)
    assert re.search("missing answers by position .*two levels of manner", said)
    assert "None" not in said


@pytest.mark.parametrize("flagged", [0, 2])
def test_exclusions_have_a_heading_where_there_are_any(flagged: int) -> None:
    facts = {"flow": None, "rules": None, "why_no_rules": "", "has_no_rules": True, "reasons": ["fast: 2"]}
    blocks = missing.LAYOUT.blocks("exclusions", flagged=flagged, **facts)
    assert ("<h3>Exclusions</h3>" in blocks) is bool(flagged)


def test_the_difference_told_of_missing_answers_is_the_planned_interaction(chapter: Chapter) -> None:
    rows = rows_in(tables_in(chapter)["missing_model_item_type_font_differences"])
    assert [row[0] for row in rows] == ["(transposed − word) × (cursive − plain)"]


@pytest.mark.parametrize("contrasts", [["initial - intact"], []])
def test_what_a_plan_tests_of_missing_answers_is_not_tested_again(
    contrasts: list[str], tmp_path: Path
) -> None:
    planned = {"gaps": {"measure": "missing", "compare": "position", "between": ["human"]}}
    planned["gaps"] |= {"contrasts": contrasts}
    tables = load(write_handover(tmp_path, study_rows(human=10, items=12, timeouts=0.4), planned=planned))
    written = tables_in(chapter_of(missing.write, material_of(tables, not_carried_out(tables))))
    name = "missing_model_position_differences"
    again = [row[0] for row in rows_in(written[name])] if name in written else []
    assert again == (["internal − intact", "final − intact"] if contrasts else [])
