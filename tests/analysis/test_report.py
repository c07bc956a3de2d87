"""A report holds what its files hold, numbers its chapters in order, and tells means of the trials analysed."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import UTC, datetime
from math import exp
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from markupsafe import Markup

from analysis import load
from analysis.figures import Drawing
from analysis.figures.conditions import BUILT_IN
from analysis.figures.drawing import NOT_DATA
from analysis.plan import MEASURES
from analysis.report import chapters, method, numbering
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material, ReportedFit, referred
from analysis.report.content import gather
from analysis.report.document import document_of, supplement, words_in
from analysis.report.inline import plain_text
from analysis.report.nodes import Heading, Paragraph
from analysis.report.numbering import (
    MOST_FIGURES,
    MOST_TABLES,
    MOST_WORDS,
    Illustrated,
    Numbered,
    in_order,
    refusal,
    refusal_of_figure,
)
from analysis.report.results.tables import model_table
from analysis.report.write import render, write_report
from analysis.results import FittedModelResult
from analysis.tables import write_trials_csv
from experiment.cli import main
from tests.analysis.conftest import Make, Rehearsal
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = pytest.mark.usefixtures("without_chapters")


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<svg.*?</svg>|<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL).split())


def test_the_page_needs_nothing_from_elsewhere(rehearsal: Rehearsal) -> None:
    fetched = re.findall(r'(?:src|href)\s*=\s*["\'](?!#)([^"\']*)', rehearsal.html)
    assert fetched == []
    for tag in ("<script", "<link", "<img", "<iframe", "@import", "url(http", "@font-face"):
        assert tag not in rehearsal.html


def test_ids_are_unique_and_every_reference_is_in_the_page(rehearsal: Rehearsal) -> None:
    ids = re.findall(r'\bid="([^"]+)"', rehearsal.html)
    assert len(ids) == len(set(ids))
    wanted = re.findall(r'(?:href="|url\()#([^")]+)', rehearsal.html)
    assert wanted and set(wanted) <= set(ids)


def test_the_contents_name_every_part_in_the_order_of_the_page(rehearsal: Rehearsal) -> None:
    contents = re.search(r'<nav class="contents".*?</nav>', rehearsal.html, flags=re.DOTALL)
    assert contents is not None
    entries = [name for _, name in re.findall(r'<a href="#([^"]+)">(.*?)</a>', contents.group())]
    assert entries[:5] == ["Answer", "Method", "Results", "References", "Supplement"]
    places = [rehearsal.html.index(f">{name}<", contents.end()) for name in entries]
    assert places == sorted(places)


def test_the_manuscript_stays_within_its_budget(rehearsal: Rehearsal) -> None:
    nodes = document_of(rehearsal.content, datetime(2026, 11, 21, tzinfo=UTC)).nodes
    begins = next(
        place for place, node in enumerate(nodes) if isinstance(node, Heading) and node.text == "Method"
    )
    assert 300 < words_in(nodes[begins:]) <= MOST_WORDS + 400
    assert sum(isinstance(node, Numbered) for node in nodes) <= MOST_TABLES
    assert sum(isinstance(node, Illustrated) for node in nodes) <= MOST_FIGURES


def test_the_manuscript_names_each_of_its_tables_and_figures_and_cites_each_reference(
    rehearsal: Rehearsal,
) -> None:
    nodes = document_of(rehearsal.content, datetime(2026, 11, 21, tzinfo=UTC)).nodes
    paragraphs = [node for node in nodes if isinstance(node, Paragraph)]
    words = plain_text(" ".join(str(node.text) for node in paragraphs if node.kind != "reference"))
    for noun, kind in (("Table", Numbered), ("Figure", Illustrated)):
        ranges = re.findall(rf"{noun}s? (\d+)(?: (?:to|and) (\d+))?", words)
        named = {str(n) for first, last in ranges for n in range(int(first), int(last or first) + 1)}
        printed = {node.number for node in nodes if isinstance(node, kind)}
        assert len(printed) > 1 and printed <= named
    authors = [re.split("[,.(]", plain_text(node.text))[0] for node in paragraphs if node.kind == "reference"]
    assert len(authors) > 8 and all(author in words for author in authors)


def test_tables_and_figures_are_numbered_in_the_order_of_the_page(
    rehearsal: Rehearsal, handover: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbering, "MOST_TABLES", 1)
    monkeypatch.setattr(numbering, "MOST_FIGURES", 0)
    plan = PLANNED["comprehension"] | {"contrasts": ["initial - internal"]}
    rows = study_rows(human=6, items=8, models=("restorer",)).assign(rt=None)
    small = gather(load(handover(rows, dictionary={"planned": {"one": plan}})))
    for content in (rehearsal.content, small):
        nodes = document_of(content, datetime(2026, 11, 21, tzinfo=UTC)).all_nodes
        for kind in (Numbered, Illustrated):
            numbers = [node.number for node in nodes if isinstance(node, kind)]
            assert len(numbers) > 1 and numbers == sorted(numbers, key=in_order)


def test_a_model_without_a_maximum_is_no_check_and_its_numbers_are_not_printed(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (analysis,) = (one.analysis for one in rehearsal.content.planned if one.analysis.companion is not None)
    assert analysis.model is not None
    assert not model_table(analysis, "before").withheld
    has_check = ["points" in method._analysis(rehearsal.tables, (analysis,), ())["checks"]]
    monkeypatch.setattr(FittedModelResult, "runs_away", True)
    again = replace(analysis, model=replace(analysis.model))
    again = replace(again, companion=replace(analysis.companion, model=again.model))
    has_check.append("points" in method._analysis(rehearsal.tables, (again,), ())["checks"])
    assert has_check == [True, False]
    table = model_table(again, "after")
    assert table.withheld and refusal(table, []) == table.withheld
    assert again.model is not None and not any(effect.estimable for effect in again.model.coefficients)


def test_what_is_not_printed_is_listed_with_its_file_and_the_reason(rehearsal: Rehearsal) -> None:
    refused = [one for one in rehearsal.content.all_tables() if one.refused]
    listed = rehearsal.html.split('id="in-files"')[1]
    for one in refused:
        assert f"tables/{one.table.name}.csv" in listed
        assert f'id="table-{one.number}"' not in rehearsal.html
    assert refused


def test_figures_tables_trials_and_models_lie_beside_the_page(rehearsal: Rehearsal) -> None:
    folder = rehearsal.page.parent
    assert folder.name == "2026-11-21_10-00-00"
    for name in ("condition_correct_and_reading_time_position", "cost_position", "recovery"):
        assert (folder / "figures" / f"{name}.svg").read_text("utf-8").count("<svg") == 1
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    shown = [path for path in sorted((folder / "tables").glob("*.csv")) if not path.stem.endswith("_full")]
    assert {path.stem for path in shown} == {one.table.name for one in rehearsal.content.all_tables()}
    assert all(path.with_name(f"{path.stem}_full.csv").is_file() for path in shown)
    assert len(pd.read_csv(folder / "trials.csv")) == len(rehearsal.tables.trials)


def test_the_r_script_names_a_file_of_rows_for_each_model(rehearsal: Rehearsal) -> None:
    folder = rehearsal.page.parent
    program = (folder / "models.R").read_text("utf-8")
    files = re.findall(r'rows_of\("([^"]+)"', program)
    models = [section.analysis.model for section in rehearsal.content.sections if section.analysis.model]
    assert len(files) == len(models) >= 3
    for file, model in zip(files, models, strict=True):
        assert model.formula in program
        assert len(pd.read_csv(folder / file)) == model.rows


def test_simulated_and_baseline_readers_are_marked_on_every_figure_they_are_in(rehearsal: Rehearsal) -> None:
    figures = list(rehearsal.content.all_figures())
    assert len(figures) == 4
    for one in figures:
        texts = " ".join(text.get_text() for text in one.drawing.figure.texts)
        assert NOT_DATA in texts
        if one.drawing.name in ("condition_correct_and_reading_time_position", "cost_position"):
            assert texts.count("Baselines") == 1


def test_what_simulated_readers_were_given_has_a_mark_next_to_its_contrast(rehearsal: Rehearsal) -> None:
    content = rehearsal.content
    *_, forest = content.figures[0].drawing.figure.axes
    marks = [line for line in forest.lines if line.get_marker() == BUILT_IN]
    drawn = [line.get_xdata()[0] for line in marks]
    pixels_of_a_row = abs(float(np.diff(forest.transData.transform([(0, 0), (0, 1)])[:, 1])[0]))
    above = (min(line.get_ydata()[0] for line in marks) - min(forest.get_ylim())) * pixels_of_a_row
    assert above > marks[0].get_markersize() / 2 * forest.figure.dpi / 72
    given = {one.label: one.truth for one in content.recovery if one.measure == "reading_time"}
    told = [one for one in content.planned if one.analysis.plan.measure.name == "reading_time"]
    wanted = [
        given.get(f"{one.first} − intact", 0.0) - given.get(f"{one.second} − intact", 0.0)
        for one in told[0].analysis.contrasts
        if one.groups == ("simulated",)
    ]
    assert wanted and drawn == pytest.approx([100 * (exp(one) - 1) for one in wanted])


def test_a_pilot_visitor_is_on_the_figures_and_in_no_model(rehearsal: Rehearsal) -> None:
    for one in rehearsal.content.figures:
        texts = [text.get_text() for axes in one.drawing.figure.axes for text in axes.texts]
        assert "you (pilot)" in texts, one.drawing.name
        assert "pilot" in one.drawing.note
    for section in rehearsal.content.sections:
        model = section.analysis.model
        assert model is not None and model.source is not None
        assert "P999" not in set(model.source.model.frame.data["participant"])


def test_the_page_is_the_same_for_the_same_data(rehearsal: Rehearsal) -> None:
    again = render(rehearsal.content, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    assert again == re.sub(r'<details class="source">.*?</details>', "", rehearsal.html)


def test_integers_and_truth_values_stay_whole_in_trials_csv(tmp_path: Path) -> None:
    seed = 7_065_549_240_709_325_123
    rows = study_rows(human=2, models=("restorer",), items=4)
    machine = (rows["reader_kind"] == "model").to_numpy()
    rows["seed"] = pd.array([seed if one else None for one in machine], dtype="Int64")
    rows["replicate"] = rows["replicate"].astype("Int64")
    rows["response_raw"] = 'a "quoted",\ntext'
    tables = load(write_handover(tmp_path / "handover", rows))
    write_trials_csv(tables, tmp_path / "trials.csv")
    with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert {row["seed"] for row in written} == {str(seed), ""}
    assert {row["replicate"] for row in written} == {"1", ""}
    assert [row["trial_index"] for row in written] == [str(one) for one in rows["trial_index"]]
    assert {row["correct"] for row in written} <= {"TRUE", "FALSE", ""}
    assert {row["is_practice"] for row in written} == {"TRUE", "FALSE"}
    assert {row["response_raw"] for row in written} == {'a "quoted",\ntext'}
    assert [row["excluded_reason"] or None for row in written] == list(tables.trials["excluded_reason"])


def test_an_unknown_chapter_is_refused_with_the_list_of_optional_ones(
    handover: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        chapters, "declared", lambda: [chapters.Declared("fidelity", lambda _: None, is_optional=True)]
    )
    folder = handover(study_rows(human=4, items=8))
    result = CliRunner().invoke(
        main, ["report", str(folder), "--out", str(tmp_path / "out"), "--with", "costs"]
    )
    assert result.exit_code != 0 and "--with costs" in result.output
    assert "fidelity" in result.output and not (tmp_path / "out").exists()


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
    rows = study_rows(human=6, items=8).assign(rt=None, reading_time=None)
    page = write_report(load(handover(rows)), tmp_path, datetime(2026, 11, 21, tzinfo=UTC))
    html = page.read_text("utf-8")
    assert '<h3 id="trial">Trial chapter</h3>' in html
    assert html.index('<h2 id="references">') < html.index(">Trial chapter</h3>") < html.index("Why?")
    assert "<p><h3>" not in html and "<h4>Part</h4>" in html
    (own,) = (page.parent / "tables").glob("table_*_own.csv")
    number = own.stem.split("_")[1].upper().replace("S0", "S")
    assert f"See Table\u00a0{number} and Figure\u00a0F1." in html and f'id="table-{number}"' in html
    assert refusal_of_figure(_drawing()) in html, "a figure without a point is in its file only"
    assert list(csv.reader(own.open(encoding="utf-8-sig"))) == [["a", "b"], ["1", "2.5"], ["3", "4.5"]]
    assert (page.parent / "figures" / "bare.png").is_file()
    program = (page.parent / "models.R").read_text("utf-8")
    models = sorted((page.parent / "models").glob("model_*.csv"))
    assert f"# Model {len(models)}: the model of the chapter" in program and models[-1].name in program


def test_a_paragraph_that_names_what_its_chapter_lacks_is_an_authors_mistake() -> None:
    assert referred(Markup("as [[figure:a]] says"), {("figure", "a"): "4"}) == "as Figure\u00a04 says"
    with pytest.raises(KeyError):
        referred(Markup("[[table:gone]]"), {})


COMPARED = ["initial", "final"]
WITH_RULES = {
    "quick": {
        "measure": "reading_time",
        "compare": "position",
        "levels": COMPARED,
        "between": ["human"],
        "exclude": {"trials": {"reading_time": "outside 200 ms to 4 s"}, "answers": "wrong"},
    },
    "right": {"measure": "correct", "compare": "position", "levels": COMPARED, "between": ["human"]},
}


@pytest.mark.usefixtures("without_figures")
def test_means_of_a_plan_are_of_its_own_trials_and_levels(tmp_path: Path) -> None:
    rows = study_rows(human=8, items=16, timeouts=0.0)
    test = ~rows["is_practice"].astype(bool)
    slow = rows.index[test & (rows["trial_index"] % 7 == 0)]
    rows.loc[slow, "reading_time"] = 9000.0
    tables = load(write_handover(tmp_path, rows, planned=WITH_RULES))
    content = gather(tables)
    quick, right = content.planned

    used = tables.trials[tables.trials["excluded_reason"].isna() & tables.trials["position"].isin(COMPARED)]
    outside = int((used["reading_time"] > 4000).sum())
    wrong = int(((used["reading_time"] <= 4000) & (used["correct"] == 0)).sum())
    kept = used[(used["reading_time"] <= 4000) & (used["correct"] == 1)]
    logs = np.log(kept["reading_time"]).groupby([kept["reader"], kept["position"]]).mean()
    means = np.exp(logs.groupby(level=1).mean())

    said = re.sub(r"<[^>]+>", "", " ".join(map(str, quick.paragraphs))).replace("\u00a0", " ")
    for level in COMPARED:
        assert f"M = {means[level]:,.0f} ms" in said
    assert re.search(
        rf"{len(used):,} trials: {outside} \(reading time outside 200 ms to 4 s\), {wrong} \(", said
    )
    (table,) = [one for one in quick.tables if one.table.name.endswith("means_quick")]
    assert f"(Table {table.number})" in said
    assert [row[1] for row in table.table.rows if len(row) > 1] == [
        f"{(kept['position'] == level).sum()}" for level in COMPARED
    ]
    assert quick.analysis.model is not None and quick.analysis.model.rows == len(kept)
    # accuracy has all trials of its levels, whose means the table of all trials has already
    assert not any("means_" in one.table.name for one in right.tables)


def test_a_measure_without_a_model_is_named_as_not_checked_and_has_no_empty_section(
    rehearsal: Rehearsal,
) -> None:
    """As where simulated readers are always right: nothing can be said of the recovery of accuracy."""
    content = rehearsal.content
    (*_, fitted) = (one for one in content.planned if one.analysis.model is not None)
    none = replace(fitted.analysis, model=None, companion=None, contrasts=(), remarks=())
    plan = replace(none.plan, name="recovery of accuracy", measure=MEASURES["correct"], planned=False)
    empty = replace(fitted, analysis=replace(none, plan=plan), tables=(), cells=())
    nodes = supplement(replace(content, recovery_sections=(fitted, empty)), [])
    headings = [plain_text(node.text) for node in nodes if isinstance(node, Heading)]
    assert fitted.analysis.plan.heading in headings and "Recovery of accuracy" not in headings
    said = " ".join(plain_text(node.text) for node in nodes if isinstance(node, Paragraph))
    assert "Effects on accuracy were not checked because no model could be fitted." in said
    assert "The results to cite are those of the planned analyses." in said
