"""Means stand by task and way of asking: no table, figure or sentence of a report averages over them unsaid."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.plan import MEASURES
from analysis.report.answer import answer
from analysis.report.content import gather
from analysis.report.described import described
from analysis.report.nodes import PlannedFinding
from analysis.report.numbering import ReportContent
from analysis.report.subgroups import parts_of
from analysis.report.write import write_files
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS, study_rows, write_handover
from tests.analysis.test_within import FACTORS, MANNERS, asked_in_two_ways


def with_two_tasks() -> pd.DataFrame:
    """Return answers where texts are restored in two manners, and chosen about in one of them, half of these right."""
    restored = asked_in_two_ways().assign(trial_type="recover")
    restored["score"] = restored["correct"].astype(float)
    asked = restored[restored["examples"] == "without"].assign(trial_type="choose", set="questions")
    asked["session_id"] = asked["session_id"] + "-questions"
    asked["correct"] = np.arange(len(asked)) % 2 == 0
    return pd.concat([restored, asked], ignore_index=True)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory, without_chapters: None) -> ReportContent:
    return gather(load(write_handover(tmp_path_factory.mktemp("tasks"), with_two_tasks(), factors=FACTORS)))


def test_each_task_and_manner_has_means_of_its_own_once(handover: Make) -> None:
    tables = load(handover(with_two_tasks(), dictionary={"factors": FACTORS}))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    parts = list(parts_of(used, tables))
    restored = [part for part in parts if part.trials == "recover"]
    assert [(part.factor, part.within) for part in restored] == [
        ("position", (("examples", manner),)) for manner in MANNERS
    ]
    assert [(part.factor, part.within) for part in parts if part.trials == "choose"] == [
        ("position", ()),
        ("examples", ()),
    ]
    for one in described(used, tables):
        if one.part.factor != "position":
            continue
        rows = one.part.rows(used)
        own = rows.loc[(rows["reader_group"] == "a") & (rows["position"] == "final"), "correct"]
        (cell,) = (
            cell for cell in one.cells[MEASURES["correct"]] if (cell.group, cell.level) == ("a", "final")
        )
        assert cell.trials == 40 and cell.mean == pytest.approx(own.astype(float).mean())


def test_means_of_many_parts_that_no_plan_compares_are_in_files(
    tmp_path: Path, without_chapters: None
) -> None:
    plain = study_rows(human=16, items=12)
    tests = plain[~plain["is_practice"]].copy()
    shown = ("k4", "k14", "k28", "k50")
    tests["examples"] = tests["reader"].str[-2:].astype(int).mod(4).map(dict(enumerate(shown)))
    factors = {
        "position": {"levels": LEVELS, "reference": "intact"},
        "examples": {"levels": list(shown), "reference": "k4"},
    }
    planned = {"examples": {"measure": "correct", "compare": "examples", "between": ["human"]}}
    content = gather(load(write_handover(tmp_path, tests, factors=factors, planned=planned)))
    apart = [one for one in content.further_tables if "(examples k" in one.table.title]
    assert len(apart) >= 2 * len(shown) and {one.refused for one in apart} == {"one of 4 such tables"}
    assert not [one for one in content.all_figures() if "(examples k" in one.drawing.title]


def test_conditions_with_other_items_have_no_cost(tmp_path: Path, without_chapters: None) -> None:
    plain = study_rows(human=8, items=12)
    names = [one.drawing.name for one in gather(load(write_handover(tmp_path / "same", plain))).all_figures()]
    assert "cost_position" in names
    other = plain.assign(item_id=plain["item_id"] + plain["position"].fillna(""))
    names = [
        one.drawing.name for one in gather(load(write_handover(tmp_path / "other", other))).all_figures()
    ]
    assert names and "cost_position" not in names


def test_titles_and_sources_say_which_trials_a_table_and_its_figures_are_of(
    content: ReportContent, tmp_path: Path
) -> None:
    titles = [one.table.title for one in content.descriptives]
    assert any(title.endswith("by position and reader (recover, examples behind)") for title in titles)
    assert any(title.endswith("(choose)") for title in titles)
    names = [one.drawing.name for one in content.figures]
    assert len(set(names)) == len(names) and "cost_position_recover_examples_behind" in names
    page = write_files(content, tmp_path, datetime(2026, 11, 22, tzinfo=UTC)).read_text("utf-8")
    assert "trial_type recover; examples behind" in page


def test_the_opening_says_of_each_comparison_which_trials_it_is_of(content: ReportContent) -> None:
    """Each answer names its trials; the table holds all, with a heading for each task and manner."""
    opening = list(answer(content, ""))
    found = [one for one in opening if isinstance(one, PlannedFinding)]
    assert all(one.question.startswith("Accuracy by ") for one in found)
    assert all(f"recover, examples {manner} (" in found[0].text for manner in MANNERS)
    assert "choose (" in found[0].text
    assert content.answer_table is not None
    headings = [row[0] for row in content.answer_table.table.rows if len(row) == 1]
    for trials in ("choose", *(f"recover, examples {manner}" for manner in MANNERS)):
        assert f"Accuracy by position ({trials}) (percentage points)" in headings
