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
from analysis.descriptives import ALIKE_BETWEEN
from analysis.mixed import APPROXIMATE
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.content import gather
from analysis.report.method import method_parts
from analysis.report.numbering import ReportContent
from analysis.report.results import verdict
from analysis.report.write import render
from analysis.results import Analysis
from tests.analysis.letter_study import PLANNED, comparison, study_rows, trial, write_handover
from tests.analysis.measured_study import RECOVERED_WORDS, typed_study

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning"),
    pytest.mark.usefixtures("without_chapters"),
]


def told(folder: Path, rows: pd.DataFrame, **dictionary: Any) -> tuple[ReportContent, str]:
    """Gather and render a report without writing its files; return the page's words too."""
    content = gather(load(write_handover(folder, rows, **dictionary)))
    page = render(content, datetime(2026, 11, 21, tzinfo=UTC))
    words = re.sub(r"<svg.*?</svg>|<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return content, " ".join(html.unescape(words).split())


def by_measure(content: ReportContent) -> dict[str, Analysis]:
    return {section.analysis.plan.measure.name: section.analysis for section in content.exploratory}


@pytest.mark.usefixtures("without_figures")
def test_models_only_have_accuracy_and_no_times(tmp_path: Path) -> None:
    content, words = told(tmp_path, study_rows(models=("a", "b"), items=24))
    assert list(by_measure(content)) == ["correct"] and "Cousineau" not in words


@pytest.mark.usefixtures("without_figures")
def test_an_empty_condition_is_named_and_the_rest_compared(tmp_path: Path) -> None:
    content, words = told(
        tmp_path,
        study_rows(human=8, items=12).assign(rt=None, reading_time=None).query("position != 'final'"),
    )
    assert re.search(r"[^.]*\bfinal\b[^.]* people\.", words) and "final − intact." in words
    accuracy = by_measure(content)["correct"]
    assert accuracy.levels == ("intact", "initial", "internal")
    assert [one.label for one in accuracy.contrasts] == ["initial − intact", "internal − intact"]


def test_one_participant_has_no_model_but_a_description(tmp_path: Path) -> None:
    content, _ = told(tmp_path, study_rows(human=1, items=12))
    assert not any(section.analysis.model for section in content.sections)
    assert content.descriptives and len(list(content.all_figures())) == 3, "no item is in two conditions"


@pytest.mark.usefixtures("without_figures")
def test_a_study_half_done_is_analysed_as_far_as_it_is(tmp_path: Path) -> None:
    rows = study_rows(human=6, items=8)
    unfinished = (rows["reader"] == "P006") & (rows["trial_index"] > 8)
    content, words = told(tmp_path, rows[~unfinished], planned=PLANNED)
    assert content.planned[1].analysis.model is not None and "restorer: " in words


@pytest.mark.usefixtures("without_figures")
def test_a_model_that_is_always_right_is_compared_with_people(tmp_path: Path) -> None:
    rows = study_rows(human=8, models=("restorer",), items=12)
    rows.loc[rows["reader_kind"] == "model", "correct"] = True
    content, words = told(tmp_path, rows, planned={"comprehension": PLANNED["comprehension"]})
    analysis = content.planned[0].analysis
    assert analysis.groups == ("human", "restorer") and analysis.model is not None
    assert all(one.estimable for one in analysis.contrasts)
    assert re.search(r"restorer [^.]* 100\.0%", words)


@pytest.mark.usefixtures("without_figures", "without_companions")
def test_a_floor_of_a_measure_that_no_plan_compares_is_no_caution(tmp_path: Path) -> None:
    rows = study_rows(human=5, models=("restorer",), items=8).assign(rt=None)
    rows.loc[rows["reader_kind"] == "model", "correct"] = False
    planned = {"time": {"measure": "reading_time", "compare": "position", "between": ["human"]}}
    of_times, unplanned = (told(tmp_path / str(len(plan)), rows, planned=plan)[0] for plan in (planned, {}))
    assert not of_times.cautions and unplanned.cautions


@pytest.mark.usefixtures("without_figures", "without_companions")
@pytest.mark.parametrize("status", ["valid", "unparsed"])
def test_a_model_at_the_floor_is_a_caution_and_one_without_a_valid_answer_is_not_tested(
    tmp_path: Path, status: str
) -> None:
    rows = study_rows(human=8, models=("restorer",), items=12)
    is_model = rows["reader_kind"] == "model"
    rows.loc[is_model, "correct"] = False
    rows.loc[is_model, "response_status"] = status
    content, _ = told(tmp_path, rows, planned={"comprehension": PLANNED["comprehension"]})
    tested = [one for one in content.planned[0].analysis.contrasts if "restorer" in one.groups]
    assert any(one.estimable for one in tested) is (status == "valid")
    assert ["restorer" in caution for caution in content.cautions] == [True] * (status == "valid")


@pytest.mark.usefixtures("without_figures")
def test_an_estimate_of_zero_is_on_neither_side(tmp_path: Path) -> None:
    rows = study_rows(human=8, items=12, timeouts=0.0).assign(correct=True)
    planned = {"comprehension": {**PLANNED["comprehension"], "between": ["human"]}}
    content, _ = told(tmp_path, rows, planned=planned)
    analysis = content.planned[0].analysis
    directed = (replace(analysis.contrasts[0], direction=direction) for direction in ("less", "greater"))
    said = [verdict([one], analysis, content.kinds) for one in directed]
    assert analysis.contrasts[0].estimate == 0 and said[0].replace("lower", "higher") == said[1]


@pytest.mark.usefixtures("without_figures", "without_companions")
def test_words_that_nobody_recovers_are_told_in_the_answer_and_by_no_caution(tmp_path: Path) -> None:
    folder = typed_study(tmp_path, people=8, planned=RECOVERED_WORDS)
    assert not gather(load(folder)).cautions
    trials = pd.read_parquet(folder / "trials.parquet")
    trials.assign(response="nothing", correct=False, score=0.0).to_parquet(folder / "trials.parquet")
    content = gather(load(folder))
    assert not content.cautions and content.planned[0].analysis.only_value == 0.0


@pytest.mark.usefixtures("without_figures")
def test_people_who_are_all_right_are_estimated_without_a_model(tmp_path: Path) -> None:
    content, _ = told(tmp_path, study_rows(human=8, items=12, timeouts=0.0).assign(correct=True, rt=None))
    found = by_measure(content)
    assert found["correct"].model is None and found["reading_time"].model is not None
    assert all(one.estimable and one.estimate == 0 and one.se > 0 for one in found["correct"].contrasts)


@pytest.fixture(scope="module")
def one_ceiling(
    tmp_path_factory: pytest.TempPathFactory, without_chapters: None
) -> tuple[ReportContent, str]:
    """Report of a factor between participants, in one of whose conditions every answer is correct."""
    shares = {"internal": 0.8, "initial": 0.5, "final": 1.0}
    draw = np.random.default_rng(3)
    rows = [
        trial(
            f"p{person:02d}", "human", f"i{item:02d}", item,
            order=order, len=("short", "long")[(person + item) % 2], correct=bool(draw.random() < share),
        )
        for turn, (order, share) in enumerate(shares.items())
        for person in range(8 * turn, 8 * (turn + 1))
        for item in range(24)
    ]  # fmt: skip
    levels = {"order": list(shares), "len": ["short", "long"]}
    factors = {name: {"levels": names, "reference": names[0]} for name, names in levels.items()}
    return told(tmp_path_factory.mktemp("ceiling"), pd.DataFrame(rows), factors=factors)


def test_a_ceiling_of_one_part_is_told_of_this_part_alone(one_ceiling: tuple[ReportContent, str]) -> None:
    content, _ = one_ceiling
    analyses = {section.analysis.plan.name: section.analysis for section in content.sections}
    (caution,) = content.cautions
    assert [name for name in analyses if name in caution] == ["accuracy by len (order final)"]
    assert any(ALIKE_BETWEEN in one.drawing.note for one in content.all_figures())
    # what an analysis tests is not said to be untested
    accuracy = analyses["accuracy by order"]
    labels = {contrast.label for contrast in accuracy.estimable}
    assert "final − internal" in labels and "final" not in accuracy.of_model.levels
    assert not any(label in remark for label in labels for remark in accuracy.remarks)
    # and only analyses with a model are said to be checked
    (together,) = [section for section in content.exploratory if section.parts]
    assert [section.analysis.model is not None for section in together.parts] == [True, True, False]
    (checked,) = re.findall(r"[^.]*\(Supplement\)[^.]*\.", str(together.paragraphs[0]))
    assert "order internal and order initial" in checked and "final" not in checked


def test_the_method_describes_the_least_variance_where_it_was_used(
    one_ceiling: tuple[ReportContent, str],
) -> None:
    content, _ = one_ceiling
    (crossed,) = [one.analysis for one in content.sections if one.analysis.plan.crossing is not None]
    free = [
        replace(one, crossed=replace(one.crossed, parts=replace(one.crossed.parts, least=0.0)))
        for one in crossed.contrasts
        if one.crossed is not None
    ]
    with_limit, without = (
        " ".join(text for part in method_parts(content.tables, (one,), None) for text in part.paragraphs)
        for one in (crossed, replace(crossed, contrasts=tuple(free)))
    )
    assert 0 < len(with_limit) - len(without) < 300


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize("readers", [{"pilot": True}, {"baselines": ("random", "oracle")}, {"human": 0}])
def test_without_data_there_is_a_flow_table_and_no_claim(tmp_path: Path, readers: dict[str, Any]) -> None:
    rows = study_rows(items=8, **readers) if readers != {"human": 0} else study_rows(human=1).iloc[:0]
    content, _ = told(tmp_path, rows)
    assert not content.sections and content.flow.table.rows


@pytest.mark.usefixtures("without_figures", "without_companions")
def test_a_changed_design_and_too_few_people_are_said_on_the_page(tmp_path: Path) -> None:
    (same, page), (other, longer) = (
        told(
            tmp_path / now,
            study_rows(human=people, items=4).assign(rt=None, reading_time=None),
            design_hash=now,
        )
        for now, people in (("d1", 5), ("d9", 4))
    )
    assert (same.tables.design_changed, other.tables.design_changed) == (False, True)
    assert page.count("design") < longer.count("design")
    assert len(other.cautions) == len(same.cautions) + 1, "fewer than five people"
    assert other.tables.trials["excluded_reason"].isna().any()


def test_without_a_positive_definite_hessian_nothing_is_estimable(tmp_path: Path) -> None:
    rows = study_rows(human=8, models=("restorer",), items=32)
    tables = load(write_handover(tmp_path, rows, planned={"accuracy": PLANNED["comprehension"]}))
    model = carry_out(plans(tables)[0], tables).model
    assert model is not None and model.source is not None and model.determined
    source = replace(model.source, warnings=(*model.source.warnings, APPROXIMATE))
    doubtful = replace(model, source=source)
    assert not doubtful.determined and not any(one.estimable for one in doubtful.coefficients)


@pytest.mark.usefixtures("without_figures", "without_companions")
def test_sessions_without_a_trial_are_counted_in_the_flow(tmp_path: Path) -> None:
    readers = {
        "human": {"kind": "human", "sessions": 4, "finished": 2, "pilot_sessions": 0},
        "late": {"kind": "model", "sessions": 1, "finished": 0, "settings": {"leading_space": True}},
        "early": {"kind": "model", "sessions": 1, "pilot_sessions": 1, "finished": 1},
    }
    content, words = told(
        tmp_path, study_rows(human=3, items=4).assign(rt=None, reading_time=None), readers=readers
    )
    assert content.flow.table.columns == ("", "People", "late", "early")
    assert ["".join(row[1:]) for row in content.flow.table.rows[:3]] == ["411", "111", "210"]
    assert "a space before each label" in words


def test_contrasts_with_one_participant_or_two_items_are_named(tmp_path: Path) -> None:
    rows = study_rows(human=4, models=("restorer",), items=8, timeouts=0.0)
    is_human = rows["reader_kind"] == "human"
    alone = ~rows["position"].isin(["final", "initial"]) | (rows["reader"] == "P001")
    rows = rows[(is_human & alone) | (~is_human & rows["item_id"].isin(["s01", "s02"]))]
    planned = {
        name: comparison("final - initial", "internal - intact", between=[name])["a"]
        for name in ("human", "restorer")
    }
    tables = load(write_handover(tmp_path, rows, planned=planned))
    people, model = (carry_out(plan, tables, companion=False).remarks for plan in plans(tables))
    (alone,) = (remark for remark in people if "final − initial" in remark)
    assert "internal − intact" not in alone
    assert any("two items" in remark for remark in model)
