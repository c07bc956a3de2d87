"""The chapter on trained models: its words, tables and figures, and the whole report around it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import Tables
from analysis.report import write_report
from analysis.report.answer import answer
from analysis.report.blocks import Chapter
from analysis.report.content import gather
from analysis.report.nodes import PlannedFinding
from experiment.papers.inside.chapters.trained import write
from tests.analysis.chapters import chapter_of, rows_by_head, rows_in, tables_in, words_in
from tests.analysis.trained_study import h_test_study, scrambled_study

FIVE = ("uppercase", "palindrome", "end_ly", "rhyme", "repeated_word")


@pytest.fixture(scope="module")
def h_test(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return h_test_study(tmp_path_factory.mktemp("h"), FIVE)


@pytest.fixture(scope="module")
def of_h_test(h_test: Tables) -> Chapter:
    return chapter_of(write, h_test)


def test_transfer_is_laid_out_as_table_8(of_h_test: Chapter) -> None:
    laid = tables_in(of_h_test)["trained_transfer"]
    assert laid.columns == (
        "Task tested", "base, not trained", "Uppercase", "Palindrome", "End ly", "Rhyme", "Repeated word",
    )  # fmt: skip
    assert [row[0] for row in laid.rows] == [
        "Uppercase",
        "Palindrome",
        "End ly",
        "Rhyme",
        "Repeated word",
        "Average",
    ]
    for place, row in enumerate(laid.rows[:5]):
        assert row[1] == "50.0"
        assert [cell for cell in row[2:] if "†" in cell] == [row[2 + place]] == ["85.0†*"]


def test_every_cell_has_its_test(of_h_test: Chapter) -> None:
    tests = tables_in(of_h_test)["trained_transfer_cells"]
    assert len(rows_in(tests)) == 5 * 6 and tests.drawn


def test_training_runs_that_differ_in_their_batches_are_described_together(tmp_path: Path) -> None:
    tables = h_test_study(tmp_path, FIVE[:2])
    file = tmp_path / "tuning" / "each-palindrome" / "tuning.json"
    record = json.loads(file.read_text("utf-8"))
    record["schedule"]["batch_tokens"] = 2725
    file.write_text(json.dumps(record), "utf-8")
    chapter = chapter_of(write, tables)
    methods = words_in(replace(chapter, blocks=chapter.methods))
    assert methods.count("AdamW") == 1 and "512 to 2,725 tokens" in methods


def test_scrambled_text_is_set_against_base_and_control(tmp_path: Path) -> None:
    chapter = chapter_of(write, scrambled_study(tmp_path, items=25))
    (base, nine), (control, six) = rows_by_head(
        tables_in(chapter)["trained_conditions_recover_recovered"]
    ).items()
    assert base.startswith("Compared with base") and control.startswith("Compared with ft-ori")
    assert (len(nine), len(six)) == (9, 6)
    assert "training × condition χ²(6)" in words_in(chapter)
    assert len(chapter.fits) == 1


@pytest.mark.full
def test_the_whole_report_holds_the_chapter(h_test: Tables, tmp_path: Path) -> None:
    page = write_report(h_test, tmp_path)
    html = page.read_text("utf-8")
    assert 'id="trained-models"' in html
    numbers = json.loads((page.parent / "numbers.json").read_text("utf-8"))
    assert "trained_transfer" in json.dumps(numbers)
    assert list(page.parent.glob("tables/*trained_transfer_cells_full.csv"))


@pytest.mark.usefixtures("without_chapters", "without_figures")
def test_the_answer_of_a_study_with_trained_models_compares_them_with_their_base(
    h_test: Tables, of_h_test: Chapter, tmp_path: Path
) -> None:
    content = gather(h_test)
    first, second, *_ = [one for one in answer(content, "") if isinstance(one, PlannedFinding)]
    (_, *over_all) = [
        row for row in rows_in(tables_in(of_h_test)["trained_transfer_cells"]) if row[0] == "All items"
    ]
    assert "base" in first.question and len(over_all) == 4
    assert second.text in words_in(of_h_test), "the chapter has the same sentence"
    assert "five tasks" in first.question and "35.0 points" in first.text, "what was trained is in the answer"
    by_condition = gather(scrambled_study(tmp_path, items=25))
    (question, text), *others = by_condition.leading
    assert not others and "base" in question and "ft-rs" in text and "ft-ori" not in text
