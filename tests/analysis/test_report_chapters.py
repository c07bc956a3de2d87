"""Chapters of a report: tables and figures numbered in order, numbers in paragraphs, models among the report's."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from markupsafe import Markup

from analysis import load
from analysis.figures import Drawing
from analysis.report import chapters
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material, ReportedFit, referred
from analysis.report.write import write_report
from tests.analysis.conftest import Make


def _drawing() -> Drawing:
    return Drawing("bare", "A bare figure", "Nothing.", "Nothing.", "<svg></svg>", plt.figure())


def _writer(material: Material) -> Chapter:
    model = next(one.model for one in material.analyses if one.model is not None)
    assert model.source is not None
    shown = ApaTable("own", "A table of the chapter", ("a", "b"), (("1", "2.5"), ("3", "4.5")))
    text = Markup("<h3>Part</h3>"), Markup("See [[table:own]] and [[figure:bare]].")
    fits = (ReportedFit("the model of the chapter", model.source),)
    return Chapter("trial", "Trial chapter", (*text, shown, _drawing()), fits=fits, question="Why?")


def test_a_chapter_is_numbered_after_what_stands_before_it_and_its_files_are_written(
    handover: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        chapters,
        "declared",
        lambda: [chapters.Declared("none", lambda material: None), chapters.Declared("trial", _writer)],
    )
    page = write_report(load(handover(human=12, items=16)), tmp_path, datetime(2026, 11, 21, tzinfo=UTC))
    html = page.read_text("utf-8")
    assert '<h3 id="trial">Trial chapter</h3>' in html
    assert html.index('<h2 id="references">') < html.index(">Trial chapter</h3>") < html.index("Why?")
    assert "<p><h3>" not in html and "<h4>Part</h4>" in html
    (own,) = (page.parent / "tables").glob("table_*_own.csv")
    number = own.stem.split("_")[1].upper().replace("S0", "S")
    assert f"See Table\u00a0{number} and Figure\u00a0F1." in html and f'id="table-{number}"' in html
    assert "it is empty" in html, "a figure without a point is in its file only"
    assert list(csv.reader(own.open(encoding="utf-8-sig"))) == [["a", "b"], ["1", "2.5"], ["3", "4.5"]]
    assert (page.parent / "figures" / "bare.png").is_file()
    program = (page.parent / "models.R").read_text("utf-8")
    models = sorted((page.parent / "models").glob("model_*.csv"))
    assert f"# Model {len(models)}: the model of the chapter" in program and models[-1].name in program


def test_a_paragraph_that_names_what_its_chapter_lacks_is_an_authors_mistake() -> None:
    assert referred(Markup("as [[figure:a]] says"), {("figure", "a"): "4"}) == "as Figure\u00a04 says"
    with pytest.raises(KeyError):
        referred(Markup("[[table:gone]]"), {})
