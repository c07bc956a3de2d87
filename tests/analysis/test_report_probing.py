"""The chapter on probing: what it says, which rows its numbers come from, and when it is not there."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.report import chapters, content, write_report
from analysis.report.blocks import Chapter, Material
from experiment.papers.inside.chapters import probing
from experiment.papers.inside.chapters.probing.probes import Probing, probings
from experiment.papers.inside.chapters.probing.probing_intervals import accuracies
from tests.analysis.chapters import chapter_of, drawings_in, material_of, words_in
from tests.analysis.inside.probing_study import probing_study

SETTINGS = {"penalties": [0.01, 0.1], "controls": 2}


@dataclass(frozen=True)
class Reported:
    data: Path
    chapter: Chapter
    folder: Path
    lines: list[str]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    home = tmp_path_factory.mktemp("probed")
    data = probing_study(
        home,
        items=90,
        layers=4,
        from_layer={"base": 1, "mild": 3},
        strength=5.0,
        models=("net", "other"),
        probing=SETTINGS,
    )
    tables, lines = load(data), []
    chapter = chapter_of(probing.write, material_of(tables, told=lines.append))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "declared", lambda: [chapters.Declared("probing", probing.write)])
        patch.setattr(content, "plans", lambda tables: [])
        page = write_report(tables, home / "reports", datetime(2026, 11, 22, tzinfo=UTC))
    yield Reported(data, chapter, page.parent, lines)


def of_model(data: Path, name: str) -> Probing:
    return next(one for one in probings(load(data))[0] if one.group == name)


def test_tables_hold_the_unrounded_numbers_of_every_layer_and_condition(reported: Reported) -> None:
    found = accuracies(of_model(reported.data, "other"), "planted")
    path = next((reported.folder / "tables").glob("*probing_layers_answer_full.csv"))
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Model"] == "other"]
    assert len(rows) == 4 * 4 and {row["Condition"] for row in rows} == {"base", "mild", "severe", "all"}
    for place, name in enumerate(found.names):
        for layer in range(4):
            row = next(one for one in rows if one["Condition"] == name and one["Layer"] == str(layer))
            assert float(row["Accuracy [95% CI]"]) == pytest.approx(100 * found.accuracy.value[place, layer])
            assert float(row["Accuracy [95% CI] high"]) == pytest.approx(
                100 * found.accuracy.high[place, layer]
            )
            assert float(row["Control"]) == pytest.approx(100 * found.control.value[place, layer])
            if layer:
                gain = found.accuracy.value[place, layer] - found.accuracy.value[place, layer - 1]
                assert float(row["Gain [95% CI]"]) == pytest.approx(100 * gain)


def test_figures_show_values_and_intervals_of_every_layer(reported: Reported) -> None:
    figures = drawings_in(reported.chapter)
    assert set(figures) == {"probing_layers_answer", "probing_steps_answer", "probing_steps_answer_2"}
    found = accuracies(of_model(reported.data, "net"), "planted")
    axes = figures["probing_layers_answer"].figure.axes[0]
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 4]
    for place in range(3):
        assert any(np.allclose(one, 100 * found.accuracy.value[place]) for one in drawn)
    gains = figures["probing_steps_answer"].figure.axes
    assert [axes.texts[0].get_text() for axes in gains[:3]] == ["base", "mild", "severe"]


def test_without_states_or_categories_or_where_it_is_not_wanted_there_is_no_chapter(tmp_path: Path) -> None:
    data = probing_study(tmp_path, items=12, layers=2, probing="none")
    assert probing.write(Material(load(data))) is None
    assert not (tmp_path / "states" / "run-1" / "results").exists()
    (tmp_path / "states").rename(tmp_path / "elsewhere")
    assert probing.write(Material(load(data))) is None


def test_a_study_that_asks_for_what_cannot_be_had_is_told_why(tmp_path: Path) -> None:
    data = probing_study(tmp_path, items=4, layers=2, probing={"folds": 5})
    chapter = chapter_of(probing.write, load(data))
    assert not chapter.methods
    assert "net (the right answer): " in words_in(chapter)
