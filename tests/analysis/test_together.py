"""Analyses that nobody planned, of one measure by one factor in several parts of a study, share paragraphs and one table."""

from __future__ import annotations

import pytest

from analysis import load
from analysis.report.answer import answer
from analysis.report.apa_tables import Head
from analysis.report.content import gather
from analysis.report.inline import plain_text
from analysis.report.nodes import Heading, Paragraph, PlannedFinding
from analysis.report.numbering import ReportContent
from analysis.report.reading_order import manuscript, supplement
from tests.analysis.conftest import Make
from tests.analysis.test_within import FACTORS, asked_in_two_ways


@pytest.fixture
def content(handover: Make, without_chapters: None) -> ReportContent:
    return gather(load(handover(asked_in_two_ways(), dictionary={"factors": FACTORS})))


def test_parts_of_a_study_share_paragraphs_and_a_table(content: ReportContent) -> None:
    by_position, by_examples, _ = content.exploratory
    assert [len(one.each) for one in content.exploratory] == [2, 4, 1] and len(content.sections) == 7
    nodes = manuscript(content, ())[0]
    headings = [plain_text(one.text) for one in nodes if isinstance(one, Heading) and one.level == 3]
    assert (
        "Accuracy by position (two analyses)" in headings
        and "Accuracy by examples (four analyses)" in headings
    )
    told = [plain_text(one.text) for one in nodes if isinstance(one, Paragraph)]
    assert sum("were significant, in" in one for one in told) == 2
    (found,) = [one for one in told if "examples behind (" in one]
    significant = [
        one for part in by_position.each for one in part.analysis.estimable if one.p_adjusted < 0.05
    ]
    assert len(significant) == 8
    assert found.startswith(
        "Of 18 comparisons, eight differences were significant, in two analyses: examples"
    )
    # the table of all differences, and no other for a part
    names = [one.table.name for one in content.all_tables() if "differences_" in one.table.name]
    assert sum("by_position" in one and "examples" not in one for one in names) == 1 and len(names) == 3
    (every,) = [one for one in by_position.tables if "differences" in one.table.name]
    rows = [row for row in every.table.rows if not isinstance(row, Head)]
    assert len(rows) == sum(len(part.analysis.contrasts) for part in by_position.each) == 18
    heads = [str(row[0]) for row in every.table.rows if isinstance(row, Head)]
    assert heads[0] == "examples without: a" and heads[-1].startswith(
        "examples behind: Difference of differences"
    )
    shown = [one for one in supplement(content, [], ()) if one in (*by_position.tables, *by_examples.tables)]
    assert shown


def test_the_answer_has_one_question_for_parts_of_a_study(content: ReportContent) -> None:
    found = [one for one in answer(content, "") if isinstance(one, PlannedFinding)]
    questions = [plain_text(one.question) for one in found]
    assert questions[0].startswith("Accuracy by position (two analyses)") and "four analyses" in questions[1]
    assert not any("(examples" in one for one in questions)


def test_a_remark_names_the_parts_that_it_is_of(handover: Make, without_chapters: None) -> None:
    rows = asked_in_two_ways()
    kept = ~((rows["examples"] == "behind") & (rows["reader"] == "b"))
    content = gather(load(handover(rows[kept], dictionary={"factors": FACTORS})))
    (*_, last) = content.exploratory[0].paragraphs
    assert "In examples behind: b: no trials" in plain_text(last)
