"""What papers' parsers made of replies leaves with every export, and a report of the export reads it as that of the study does."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import load
from analysis.measures.similarity import scored_similarities
from experiment.checking import load_study
from experiment.exporting import export_study
from experiment.exporting.export import hand_over
from experiment.integrity.build_provenance import ensure_version
from experiment.papers.h_test.chapter.measures import both_parsers
from experiment.scoring.similarities import RIGHT_ANSWER, STORED_AS
from experiment.scoring.trial import Score
from experiment.store import Store, open_store, records
from experiment.study import Study
from tests.experiment.conftest import small_items
from tests.experiment.exporting.psychds_rules import faults
from tests.experiment.models.test_planning import with_models
from tests.experiment.models.test_rescoring import HTEST, run

REPLIES = 8


@pytest.fixture
def asked(make_study: Callable[..., Study]) -> Iterator[tuple[Study, Store]]:
    """A study of H-TEST whose model said once what both parsers read, else what the published one takes for A."""
    items = [
        replace(one, choices=None, answer="A" if number % 4 < 2 else "B")
        for number, one in enumerate(small_items())
    ]
    small = make_study(
        with_models(who='m: {use: "hf:m"}'),
        HTEST,
        ("\n  - practice: {items: practice.csv, feedback: true, pass: 50%}", ""),
        items=items,
    )
    file = small.folder / "study.yaml"
    htest = "materials: {htest: {rules: [uppercase, palindrome], exemplars: 2, items: 2}}"
    text = file.read_text("utf-8").replace("materials: {words: words.txt}", htest)
    file.write_text(text.replace("{transpose: initial}", "Sub"), "utf-8")
    study = load_study(small.folder)
    with open_store(study.folder) as store:
        store.write(lambda c: ensure_version(c, study.id, study.design_hash, "{}")).result()
        said = iter(["B", *["I cannot tell"] * REPLIES])
        run(study, store, lambda trial: next(said))
        yield study, store


def read_by(folder: Path) -> list[Any]:
    trials = load(folder).trials.assign(making="", task="uppercase")
    return both_parsers(trials, folder, ["uppercase"])


@pytest.mark.parametrize("form", ["csv", "parquet", "psych-ds"])
def test_a_report_of_an_export_tells_both_parsers_as_that_of_the_study_does(asked, tmp_path, form):
    study, store = asked
    done = export_study(study, store, tmp_path / "out", form)
    assert done.rows["published_parsing"] == REPLIES
    book = next((tmp_path / "out").rglob("codebook.md")).read_text("utf-8")
    assert "## published_parsing" in book and "| `corrected` | number |" in book
    (own,) = read_by(hand_over(study, store, tmp_path / "data"))
    (one,) = read_by(tmp_path / "out")
    assert one == own and one.replies == REPLIES and one.turned == REPLIES - 1
    assert (one.unread_published, one.unread_corrected) == (0.0, (REPLIES - 1) / REPLIES)
    assert form != "psych-ds" or faults(tmp_path / "out") == []


def test_cosines_of_answers_are_exported_where_they_were_taken(asked, tmp_path):
    study, store = asked
    assert "answer_similarity" not in export_study(study, store, tmp_path / "before", "csv").rows
    with store.read() as connection:
        session = records.sessions_overview(connection, study.id)[0]["session_id"]
    verdict = Score("", "valid", None, 0.25, f"{STORED_AS}hf:e-1", 1)
    store.write(lambda c: records.store_score(c, session, 0, 1, verdict)).result()
    export_study(study, store, tmp_path / "out", "csv")
    with (tmp_path / "out" / "answer_similarity.csv").open(encoding="utf-8", newline="") as opened:
        (row,) = csv.DictReader(opened)
    assert row["similarity"] == "0.25" and row["compared_with"] == RIGHT_ANSWER
    tables = load(tmp_path / "out")
    assert scored_similarities(tables, "position")["similarity"].tolist() == [0.25]
