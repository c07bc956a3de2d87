"""The chapter on trained models: its words, tables and figures, and the whole report around it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from analysis import Tables
from analysis.figures import Drawing
from analysis.figures.inside import loss_figure
from analysis.published.h_test import TASKS
from analysis.readers import kinds_of
from analysis.report import write_report
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import REFERENCE, Chapter, Material
from analysis.report.chapters.trained import write
from analysis.report.references import reference
from tests.analysis.trained_study import h_test_study, scrambled_study

FIVE = ("uppercase", "palindrome", "end_ly", "rhyme", "repeated_word")


def chapter_of(tables: Tables) -> Chapter:
    made = write(Material(tables, (), kinds_of(tables.trials)))
    assert made is not None
    return made


@pytest.fixture(scope="module")
def h_test(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return h_test_study(tmp_path_factory.mktemp("h"), FIVE)


@pytest.fixture(scope="module")
def scrambled(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return scrambled_study(tmp_path_factory.mktemp("s"), items=25)


@pytest.fixture(scope="module")
def of_h_test(h_test: Tables) -> Chapter:
    return chapter_of(h_test)


@pytest.fixture(scope="module")
def of_scrambled(scrambled: Tables) -> Chapter:
    return chapter_of(scrambled)


def words(chapter: Chapter) -> str:
    return " ".join(str(one) for one in chapter.blocks if not isinstance(one, ApaTable | Drawing))


def table(chapter: Chapter, name: str) -> ApaTable:
    return next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)


def test_transfer_is_laid_out_as_table_8(of_h_test: Chapter) -> None:
    laid = table(of_h_test, "trained_transfer")
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


def test_unrounded_cells_lose_their_marks(of_h_test: Chapter, tmp_path: Path) -> None:
    laid = table(of_h_test, "trained_transfer")
    laid.save(tmp_path)
    with (tmp_path / "trained_transfer_full.csv").open(encoding="utf-8-sig") as stream:
        rows = list(csv.reader(stream))
    assert float(rows[1][2]) == pytest.approx(85)


def test_every_cell_has_its_test(of_h_test: Chapter) -> None:
    tests = table(of_h_test, "trained_transfer_cells")
    own = [row for row in tests.rows if len(row) > 1]
    assert len(own) == 5 * 6 and tests.drawn


def test_words_say_what_helped_and_how_many_tasks_that_takes(of_h_test: Chapter) -> None:
    told = words(of_h_test)
    assert "of the 5 cells in domain 5 are better, of the 20 out of domain none differs" in told
    assert "The table of comparisons has 1 more." in told
    assert "gained 35.0 points on average" in told and "permutation p = .008 over 5 tasks" in told
    assert "a difference of 2.4, permutation p = .0" in told


def test_two_tasks_say_that_they_cannot_be_significant(tmp_path: Path) -> None:
    told = words(chapter_of(h_test_study(tmp_path, FIVE[:2])))
    assert "With so few tasks, <i>p</i> cannot be below .50" in told


def test_method_tells_every_setting_in_words(of_h_test: Chapter, of_scrambled: Chapter) -> None:
    told = " ".join(map(str, of_h_test.methods))
    for said in (
        "Hu et al., 2022; rank 16, alpha 32, dropout 0.05",
        "up to 0.0002",
        "first 3% of the steps",
        "cosine decay",
        "three epochs",
        "512 tokens",
    ):
        assert said in told
    told = " ".join(map(str, of_scrambled.methods))
    assert "in all its weights" in told and "the same words changed" in told and "FT-" not in told
    assert (
        "in 69% of the texts, drawn one by one with a chance of 60%, 30% of the words with more than two letters had"
        in told
    )
    assert "13 consecutive words of one, were excluded: 2 per training run." in told


def test_scrambled_text_is_set_against_base_and_control(of_scrambled: Chapter) -> None:
    laid = table(of_scrambled, "trained_conditions_recover_recovered")
    heads = [row[0] for row in laid.rows if len(row) == 1]
    assert heads[0].startswith("Compared with base") and heads[1].startswith("Compared with ft-ori")
    assert len([row for row in laid.rows if len(row) > 1]) == 9 + 6
    assert "training × condition χ²(6)" in words(of_scrambled)
    assert len(of_scrambled.fits) == 1


def test_references_are_in_the_bibliography(of_h_test: Chapter, of_scrambled: Chapter) -> None:
    cited = {key for made in (of_h_test, of_scrambled) for key in made.sources}
    assert {"hu2022", "loshchilov2019", "lee2024htest", "cao2023"} <= cited
    assert all(reference(key).year for key in cited)


def test_what_paragraphs_name_is_in_the_chapter(of_h_test: Chapter, of_scrambled: Chapter) -> None:
    for made in (of_h_test, of_scrambled):
        there = {("table", one.name) for one in made.blocks if isinstance(one, ApaTable)}
        there |= {("figure", one.name) for one in made.blocks if isinstance(one, Drawing)}
        assert set(REFERENCE.findall(words(made))) <= there


def test_a_base_that_was_not_asked_is_told(tmp_path: Path) -> None:
    told = words(chapter_of(scrambled_study(tmp_path, items=12, base_asked=False)))
    assert "base itself did not read the study" in told


def test_a_training_without_record_is_told(tmp_path: Path) -> None:
    made = chapter_of(h_test_study(tmp_path, FIVE[:2], records=False))
    assert "No record of the training is available for" in " ".join(map(str, made.methods))
    assert not [one for one in made.blocks if isinstance(one, Drawing) and one.name == "trained_loss"]


@pytest.mark.full
def test_the_whole_report_holds_the_chapter(h_test: Tables, tmp_path: Path) -> None:
    page = write_report(h_test, tmp_path)
    html = page.read_text("utf-8")
    assert 'id="trained-models"' in html and "laid out as Table 8" in html
    numbers = json.loads((page.parent / "numbers.json").read_text("utf-8"))
    assert "trained_transfer" in json.dumps(numbers)
    assert list(page.parent.glob("tables/*trained_transfer_cells_full.csv"))


def test_losses_that_fall_far_stand_on_a_logarithmic_axis() -> None:
    steps = pd.DataFrame(
        {"step": range(4), "training_loss": [6.7, 1.0, 0.3, 0.2], "validation_loss": [6.7, None, None, 0.2]}
    )
    for curve, is_log in ((steps, True), (steps.assign(training_loss=1.0, validation_loss=0.9), False)):
        drawn = loss_figure("loss", "Loss", [("one", curve)])
        assert (drawn.figure.axes[0].get_yscale() == "log") is is_log
        assert ("logarithmic" in drawn.note) is is_log


def test_no_head_of_the_ten_by_ten_table_breaks_inside_a_word_in_word() -> None:
    """Measured in a serif font that is wider than the one the file asks for."""
    from docx import Document as WordFile
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    from analysis.report import docx_file
    from analysis.report.chapters.h_test import NAMES
    from analysis.report.numbered import Numbered

    heads = [NAMES[task] for task in TASKS]
    rows = [(name, "50.0", *["50.5*"] * 9, "85.0†*") for name in heads]
    word = WordFile()
    docx_file._styles(word)
    columns = ("Task tested", "Qwen3-0.6B, not trained", *heads)
    laid = ApaTable("transfer", "Transfer", columns, tuple(rows))
    docx_file._table(word, Numbered(1, laid))
    size, widths = docx_file.fitted_columns(laid)
    assert size >= 6.5 and sum(widths) <= 6.5 + 1e-9
    (table,) = word.tables
    serif = FontProperties(family="DejaVu Serif")
    for cell in [*table.rows[0].cells, *(row.cells[0] for row in table.rows)]:
        room = cell.width.inches - 2 * 40 / 1440
        for piece in cell.text.replace("-", "- ").split():
            assert TextPath((0, 0), piece, size=size, prop=serif).get_extents().width / 72 <= room, piece
