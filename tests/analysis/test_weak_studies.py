"""Whatever a study lacks, the report says all that can be said, names the rest, and never breaks."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.contrasts import contrasts_of
from analysis.frames import accuracy_data
from analysis.mixed import APPROXIMATE
from analysis.multiple_comparisons import by_largest_t
from analysis.report.content import Already, _bare, _section, gather
from analysis.report.numbering import ExhibitNumbers, ReportContent
from analysis.report.write import render
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning"),
    pytest.mark.usefixtures("without_chapters"),
]


def told(folder: Path, rows: pd.DataFrame, **dictionary: Any) -> tuple[ReportContent, str]:
    """Gather and render a report without writing its files; return the page's words too."""
    content = gather(load(write_handover(folder, rows.reset_index(drop=True), **dictionary)))
    page = render(content, datetime(2026, 11, 21, tzinfo=UTC))
    words = re.sub(r"<svg.*?</svg>|<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return content, " ".join(html.unescape(words).split())


def test_models_only_have_accuracy_and_no_times(tmp_path: Path) -> None:
    content, words = told(tmp_path, study_rows(models=("a", "b"), items=24))
    assert [section.analysis.plan.measure.name for section in content.exploratory] == ["correct"]
    assert "Reading time by position" not in words
    assert "within-participant" not in words and "Cousineau" not in words
    assert (
        "Means have intervals over items (Wilson's of the effective number of answers for accuracy" in words
    )


def test_an_empty_condition_is_named_and_the_rest_compared(tmp_path: Path) -> None:
    rows = study_rows(human=8, items=12)
    content, words = told(tmp_path, rows[rows["position"] != "final"])
    assert "People: no trials in final." in words
    assert "No trial of position final could be analyzed." in words
    assert "Not tested, since a condition has no trials: final − intact." in words
    accuracy = content.exploratory[0].analysis
    assert accuracy.levels == ("intact", "initial", "internal")
    assert [one.label for one in accuracy.contrasts] == ["initial − intact", "internal − intact"]


def test_one_participant_has_no_model_but_a_description(tmp_path: Path) -> None:
    content, words = told(tmp_path, study_rows(human=1, items=12))
    assert not any(section.analysis.model for section in content.sections)
    assert "There is one participant" in words
    assert "no claim can be made about people in general" in words
    assert "random effects of each mixed model" not in words
    assert "the estimates concern this participant" in words
    assert "Participants' means have no interval" in words and "Note. </" not in words
    assert "Each point is the mean of one participant and has no interval." in words
    assert len(list(content.all_figures())) == 3, "no item is in two conditions, so nothing has a cost"


def test_a_study_half_done_is_analysed_as_far_as_it_is(tmp_path: Path) -> None:
    rows = study_rows(human=7, items=12)
    unfinished = (rows["reader"] == "P007") & (rows["trial_index"] > 8)
    content, words = told(tmp_path, rows[~unfinished], planned=PLANNED)
    assert content.planned[1].analysis.model is not None
    assert "restorer: no trials to analyze" in words


@pytest.mark.parametrize("right", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_model_that_is_always_right_or_wrong_is_compared_with_people(tmp_path: Path, right: bool) -> None:
    rows = study_rows(human=8, models=("restorer",), items=12)
    rows.loc[rows["reader_kind"] == "model", "correct"] = right
    content, words = told(tmp_path, rows, planned=PLANNED)
    analysis = content.planned[0].analysis
    assert analysis.groups == ("human", "restorer") and analysis.model is not None
    assert all(one.estimable for one in analysis.contrasts)
    assert f"Model restorer responded correctly on {'100.0' if right else '0.0'}% of trials" in words
    assert "the interval allows for one more item" in words


def test_people_who_are_all_right_are_estimated_without_a_model(tmp_path: Path) -> None:
    rows = study_rows(human=8, items=12, timeouts=0.0).assign(correct=True)
    content, _ = told(tmp_path, rows)
    found = {section.analysis.plan.measure.name: section.analysis for section in content.exploratory}
    assert found["correct"].model is None and found["reading_time"].model is not None
    assert all(one.estimable and one.estimate == 0 and one.se > 0 for one in found["correct"].contrasts)


@pytest.mark.parametrize("readers", [{"pilot": True}, {"baselines": ("random", "oracle")}])
def test_without_data_there_is_a_flow_table_and_no_claim(tmp_path: Path, readers: dict[str, Any]) -> None:
    content, words = told(tmp_path, study_rows(items=8, **readers))
    assert not content.sections
    assert "Recorded and analyzed sessions and trials" in words


def test_a_study_without_any_trial_still_has_a_page(tmp_path: Path) -> None:
    content, words = told(tmp_path, study_rows(human=1, items=4).iloc[:0])
    assert not content.sections and "There are no trials to describe yet." in words


def test_a_study_without_factors_still_has_a_page(tmp_path: Path) -> None:
    content, words = told(tmp_path, study_rows(human=2, items=8), factors={})
    assert not content.sections and "Sessions and trials" in words


@pytest.mark.parametrize("now", [pytest.param("d1", marks=pytest.mark.full), "d9"])
def test_a_design_that_changed_since_is_said_on_the_page(tmp_path: Path, now: str) -> None:
    content, words = told(tmp_path, study_rows(human=4, items=8), design_hash=now)
    assert ("The study's design has changed since these answers were collected" in words) is (now == "d9")
    assert content.tables.trials["excluded_reason"].isna().any()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> ReportContent:
    rows = study_rows(human=8, models=("restorer",), items=32)
    planned = {"accuracy": PLANNED["comprehension"]}
    folder = write_handover(tmp_path_factory.mktemp("fitted"), rows, planned=planned)
    return gather(load(folder))


def undetermined(content: ReportContent, se: float) -> ReportContent:
    """Give every fixed effect of the planned model an absurd standard error, as the engine does under separation."""
    section = content.planned[0]
    analysis = section.analysis
    model = analysis.model
    assert model is not None and model.source is not None
    vcov = model.source.vcov * 0.0 + np.diag(np.full(len(model.source.vcov), se**2))
    source = replace(model.source, vcov=vcov)
    wide = replace(model, source=source)
    data = accuracy_data(content.tables.trials, replace(analysis.plan, groups=("human",)))
    plan = replace(analysis.plan, groups=("human",))
    tested = contrasts_of(plan, data, wide)
    analysis = replace(analysis, plan=plan, model=wide, groups=("human",), contrasts=tested, companion=None)
    return replace(
        content,
        planned=(_section(_bare(analysis, []), [], content.kinds, ExhibitNumbers(), Already()),),
    )


@pytest.mark.parametrize("se", [141_421.0, 10.5, float("nan")])
def test_what_is_not_estimable_is_an_en_dash_and_a_sentence(fitted: ReportContent, se: float) -> None:
    section = undetermined(fitted, se).planned[0]
    for numbered in section.tables:
        assert "are not estimable" in numbered.table.note
    effects = [row for row in section.tables[1].table.rows if row[0] == "initial vs. intact"]
    assert effects and set(effects[0][1:]) == {"–"}
    differences = [row for row in section.tables[0].table.rows if row[0] == "initial − internal"]
    assert differences and all(set(row[1:]) == {"–"} for row in differences)
    text = " ".join(section.paragraphs)
    assert "cannot be estimated for people: these data do not determine it." in text
    assert "<i>b</i>" not in text and "percentage points" not in text


def test_without_a_positive_definite_hessian_nothing_is_estimable(fitted: ReportContent) -> None:
    model = fitted.planned[0].analysis.model
    assert model is not None and model.source is not None and model.determined
    source = replace(model.source, warnings=(*model.source.warnings, APPROXIMATE))
    doubtful = replace(model, source=source)
    assert not doubtful.determined and not any(one.estimable for one in doubtful.coefficients)


def test_a_difference_that_is_not_estimable_stays_in_its_family(fitted: ReportContent) -> None:
    two = fitted.planned[0].analysis.contrasts[:2]
    first, second = by_largest_t([two[0], replace(two[1], p=float("nan"), estimable=False)], [0.05, 0.05])
    alone = by_largest_t(two[:1], [0.05])[0]
    assert first.family == 2 and alone.p_adjusted <= first.p_adjusted <= 2 * alone.p_adjusted
    assert np.isnan(second.p_adjusted)


def test_warnings_stand_before_the_results_that_they_doubt(fitted: ReportContent) -> None:
    section = replace(fitted.planned[0], warnings=("These are doubtful.",))
    page = render(replace(fitted, planned=(section,)), datetime(2026, 11, 21, tzinfo=UTC))
    assert page.index("These are doubtful.") < page.index(str(section.paragraphs[0]))


@pytest.mark.parametrize(("people", "said"), [(4, True), (5, False)])
def test_fewer_than_five_people_are_said_to_be_too_few(tmp_path: Path, people: int, said: bool) -> None:
    content, _ = told(tmp_path, study_rows(human=people, items=8), planned={})
    assert any("too few to generalize" in one for one in content.cautions) is said


def test_sessions_without_a_trial_are_counted_alike_in_method_and_flow(tmp_path: Path) -> None:
    readers = {
        "human": {"kind": "human", "sessions": 4, "finished": 2, "pilot_sessions": 0},
        "late": {"kind": "model", "sessions": 1, "finished": 0, "settings": {"leading_space": True}},
        "early": {"kind": "model", "sessions": 1, "pilot_sessions": 1, "finished": 1},
    }
    content, words = told(tmp_path, study_rows(human=3, items=8), readers=readers)
    flow = {row[0]: row[1:] for row in content.flow.table.rows}
    assert content.flow.table.columns == ("", "People", "late", "early")
    assert flow["Sessions begun"] == ("4", "1", "1")
    assert flow["of these without a trial"] == ("1", "1", "1")
    assert flow["of these not finished"] == ("2", "1", "0")
    assert "who began four sessions. Two sessions were not finished." in words
    assert "Model early was queried. One pilot session is not included in any analysis." in words
    assert "leading space yes" in words
