"""Of many models a report says what they have in common, and leaves each one's statistics to the tables."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from analysis import load
from analysis.report.content import gather
from analysis.report.inline import plain_text
from analysis.report.numbering import ReportContent
from analysis.report.results import MOST_SINGLY, runs
from analysis.results import Analysis, Contrast
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

MODELS = ("m1", "m2", "m3", "m4", "m5")
PLAN = PLANNED["comprehension"] | {
    "between": ["human", *MODELS],
    "formula": "correct ~ reader_group * position + (1 | participant) + (1 | item)",
}
KINDS = {"human": "human", **dict.fromkeys(MODELS, "model")}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory, without_chapters: None) -> ReportContent:
    rows = study_rows(human=16, models=MODELS, items=24)
    folder = tmp_path_factory.mktemp("many")
    return gather(load(write_handover(folder, rows, planned={"comprehension": PLAN})))


def plainly(text: Markup) -> str:
    return plain_text(text).replace("\u00a0", " ")


def sentences(content: ReportContent) -> list[str]:
    section = content.planned[0]
    return [plainly(text) for text in section.paragraphs]


def test_people_have_all_statistics_and_models_are_told_together(content: ReportContent) -> None:
    section = content.planned[0]
    text = " ".join(sentences(content))
    tested = [one for one in section.analysis.contrasts if not one.left_out]
    labels = {one.label for one in tested}
    of_people = [one for one in tested if one.groups == ("human",)]
    assert len(tested) == len(labels) * 11, "people, five models, and people against each"
    assert text.count("SE = ") == sum(
        1 for one in tested if one.groups == ("human",) or alone(one, section.analysis)
    )
    for one in of_people:
        assert f"{one.estimate:.1f}".replace("-", "−") in text
    assert section.tables[0].table.title.startswith("Differences")
    assert (
        f"Table {section.tables[0].number} has each difference with its estimate, test, and interval." in text
    )


def alone(one: Contrast, analysis: Analysis) -> bool:
    found = [other for other in analysis.contrasts if other.label == one.label]
    return [one] in runs(found, KINDS, analysis.plan.alpha)


def test_every_comparison_is_in_one_run_of_one_outcome(content: ReportContent) -> None:
    analysis = content.planned[0].analysis
    found = [one for one in analysis.contrasts if one.label == analysis.contrasts[0].label]
    told = runs(found, KINDS, analysis.plan.alpha)
    assert sorted(id(one) for run in told for one in run) == sorted(map(id, found))
    for run in told:
        assert len({(one.between, one.p_adjusted < 0.05) for one in run}) == 1
    few = [one for one in found if one.groups[-1] in ("human", *MODELS[:MOST_SINGLY])]
    assert runs(few, KINDS, 0.05) == [[one] for one in sorted(few, key=lambda one: one.between)]
