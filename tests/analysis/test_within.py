"""Parts of a study: what sessions differ by is neither pooled nor averaged over, in analyses, means, chapters and texts alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.frames import accuracy_data
from analysis.plan import MEASURES
from analysis.plan_runner import carry_out
from analysis.planned import parted_by_sessions, plans
from analysis.random_structure import justified
from analysis.report.answer import answer
from analysis.report.blocks import Material
from analysis.report.chapters import missing, rankings
from analysis.report.content import gather
from analysis.report.described import described
from analysis.report.nodes import PlannedFinding
from analysis.report.numbering import ReportContent
from analysis.report.subgroups import parts_of
from tests.analysis.chapters import chapter_of, material_of, rows_by_head, rows_in, tables_in
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS, study_rows, write_handover

MANNERS = ("without", "behind")
FACTORS = {
    "position": {"levels": LEVELS, "reference": "intact"},
    "examples": {"levels": list(MANNERS), "reference": "without"},
}
RIGHT = {"without": (0.9, 0.6, 0.5, 0.7), "behind": (0.95, 0.35, 0.2, 0.3)}
"""Share right by manner and position."""


def asked_in_two_ways(sessions: int = 1, items: int = 40) -> pd.DataFrame:
    """Return answers of two models: each session holds all items in one position and one manner, as released outputs do."""
    plain, draw = study_rows(models=("a", "b"), items=items), np.random.default_rng(9)
    tests = plain[~plain["is_practice"]]
    parts = []
    for manner in MANNERS:
        for number in range(sessions):
            named = tests["reader"] + "-" + tests["position"] + f"-{manner}-{number}"
            own = tests.assign(examples=manner, session_id=named, replicate=number + 1, temperature=1.0)
            share = own["position"].map(dict(zip(LEVELS, RIGHT[manner], strict=True)))
            parts.append(own.assign(correct=draw.random(len(own)) < share, response_status="valid"))
    return pd.concat(parts, ignore_index=True)


def tables_of(handover: Make, rows: pd.DataFrame, **planned: Any) -> Tables:
    plan = {"x": {"measure": "correct", "between": ["a", "b"], **planned}} if planned else {}
    return load(handover(rows, dictionary={"factors": FACTORS, "planned": plan}))


def test_unplanned_comparisons_are_made_within_each_way_of_asking(handover: Make) -> None:
    found = plans(tables_of(handover, asked_in_two_ways()))
    assert [plan.name for plan in found] == [
        *(f"accuracy by position (examples {manner})" for manner in MANNERS),
        *(f"accuracy by examples (position {level})" for level in LEVELS),
        "accuracy by position × examples",
    ]
    assert found[1].within == (("examples", "behind"),)


def test_a_comparison_within_one_way_of_asking_sees_none_of_the_other(handover: Make) -> None:
    rows = asked_in_two_ways()
    tables = tables_of(handover, rows)
    for plan in plans(tables)[:2]:
        analysis = carry_out(plan, tables)
        assert len(analysis.rows) == len(rows) / 2
        own = rows[(rows["examples"] == dict(plan.within)["examples"]) & (rows["reader"] == "a")]
        shares = own.groupby("position")["correct"].mean()
        (tested,) = [
            one for one in analysis.contrasts if one.label == "final − intact" and one.groups == ("a",)
        ]
        assert tested.estimate == pytest.approx(100 * (shares["final"] - shares["intact"]), abs=2.5)


def test_factors_that_vary_within_sessions_are_averaged_over(handover: Make) -> None:
    rows = asked_in_two_ways()
    rows["session_id"] = rows["reader"]
    assert parted_by_sessions(rows, "position", FACTORS) == [()]
    found = [plan.name for plan in plans(tables_of(handover, rows))]
    assert found == ["accuracy by position", "accuracy by examples", "accuracy by position × examples"]


@pytest.mark.parametrize(("sessions", "has_a_variance"), [(2, False), (6, True)])
def test_sessions_are_counted_per_cell_of_all_factors(
    handover: Make, sessions: int, has_a_variance: bool
) -> None:
    """Two sessions of each position and manner are eight of each manner, and no variance that could be told from positions."""
    tables = tables_of(handover, asked_in_two_ways(sessions), compare="examples")
    (plan,) = plans(tables)
    terms, remarks = justified(accuracy_data(tables.trials, plan), plan.factor)
    told = "Each session of a model holds one condition of examples and one of the design's other factors"
    assert any(term.group == "model_session" for term in terms) == has_a_variance
    assert any(told in remark for remark in remarks) != has_a_variance


def with_two_tasks(items: int = 40) -> pd.DataFrame:
    """Return answers where texts are restored in two manners, and chosen about in one of them, half of these right."""
    restored = asked_in_two_ways(items=items).assign(trial_type="recover")
    restored["score"] = restored["correct"].astype(float)
    asked = restored[restored["examples"] == "without"].assign(trial_type="choose", set="questions")
    asked["session_id"] = asked["session_id"] + "-questions"
    asked["correct"] = np.arange(len(asked)) % 2 == 0
    return pd.concat([restored, asked], ignore_index=True)


def test_each_task_and_manner_has_means_of_its_own_once(handover: Make) -> None:
    tables = load(handover(with_two_tasks(), dictionary={"factors": FACTORS}))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    parts = list(parts_of(used, tables))
    restored = [part for part in parts if part.trials == "recover"]
    assert [(part.factor, part.within) for part in restored] == [
        ("position", (("examples", manner),)) for manner in MANNERS
    ]
    assert [(part.factor, part.within) for part in parts if part.trials == "choose"] == [
        ("position", ()),
        ("examples", ()),
    ]
    for one in described(used, tables):
        if one.part.factor != "position":
            continue
        rows = one.part.rows(used)
        own = rows.loc[(rows["reader_group"] == "a") & (rows["position"] == "final"), "correct"]
        (cell,) = (
            cell for cell in one.cells[MEASURES["correct"]] if (cell.group, cell.level) == ("a", "final")
        )
        assert cell.trials == 40 and cell.mean == pytest.approx(own.astype(float).mean())


@pytest.fixture(scope="module")
def of_tasks(tmp_path_factory: pytest.TempPathFactory, without_chapters: None) -> ReportContent:
    return gather(load(write_handover(tmp_path_factory.mktemp("tasks"), with_two_tasks(16), factors=FACTORS)))


def test_every_table_figure_and_heading_names_the_trials_that_it_is_of(of_tasks: ReportContent) -> None:
    titles = [one.table.title for one in of_tasks.descriptives]
    assert any(title.endswith("(recovered texts, examples behind)") for title in titles)
    assert any(title.endswith("(choices)") for title in titles)
    names = [one.drawing.name for one in of_tasks.figures]
    assert len(set(names)) == len(names) and "cost_position_recover_examples_behind" in names
    found = [one for one in answer(of_tasks, "") if isinstance(one, PlannedFinding)]
    assert all(f"recovered texts, examples {manner} (" in found[0].text for manner in MANNERS)
    assert of_tasks.answer_table is not None
    headings = rows_by_head(of_tasks.answer_table.table)
    for trials in ("choices", *(f"recovered texts, examples {manner}" for manner in MANNERS)):
        assert any(f"({trials})" in one for one in headings)


def test_analyses_of_parts_share_paragraphs_a_table_and_a_question(of_tasks: ReportContent) -> None:
    assert [len(one.each) for one in of_tasks.exploratory] == [3, 4, 1] and len(of_tasks.sections) == 8
    names = [one.table.name for one in of_tasks.all_tables() if "differences_" in one.table.name]
    assert len(names) == 3, "a table of all differences, and none for a part"
    by_position = of_tasks.exploratory[0]
    (every,) = [one for one in by_position.tables if "differences" in one.table.name]
    rows = rows_in(every.table)
    assert len(rows) == sum(len(part.analysis.contrasts) for part in by_position.each) == 27
    heads = list(rows_by_head(every.table))
    assert heads[0] == "recovered texts, examples without: a" and heads[-1].startswith("choices: ")
    questions = [str(one.question) for one in answer(of_tasks, "") if isinstance(one, PlannedFinding)]
    assert sum("position (" in one for one in questions) == 1


@pytest.fixture
def material(handover: Make) -> Material:
    """Two models restore texts in two manners and answer about them in one; of what is restored behind examples some is missing."""
    rows = with_two_tasks()
    behind = (
        (rows["trial_type"] == "recover") & (rows["examples"] == "behind") & (rows["position"] == "final")
    )
    lost = rows.index[behind & (rows["reader"] == "a")][:7]
    rows["correct"] = rows["correct"].astype(object)
    rows.loc[lost, ["correct", "response_status"]] = [None, "unparsed"]
    return material_of(load(handover(rows, dictionary={"factors": FACTORS})))


def test_missing_answers_are_counted_in_the_way_of_asking_in_which_they_are_missing(
    material: Material,
) -> None:
    found = tables_in(chapter_of(missing.write, material))
    assert [name for name in found if name.startswith("missing_")] == [
        "missing_position_recover_examples_behind"
    ]
    # no answer of b is missing
    (rows,) = rows_by_head(found["missing_position_recover_examples_behind"]).values()
    of_a = {row[0]: row[1:4] for row in rows}
    assert set(of_a) == set(LEVELS) and of_a["final"] == ("40", "7", "17.5")


def test_what_scrambling_costs_and_common_errors_are_told_for_each_way_by_itself(material: Material) -> None:
    found = tables_in(chapter_of(rankings.write, material))
    ways = [*(f"recover_examples_{manner}" for manner in MANNERS), "choose"]
    for kind in ("robustness", "told_apart"):
        assert [name for name in found if name.startswith(f"{kind}_")] == [f"{kind}_{way}" for way in ways]
    rows = material.tables.trials
    own = rows[(rows["trial_type"] == "choose") & (rows["reader"] == "a") & (rows["position"] == "intact")]
    (row,) = (row for row in found["robustness_choose"].rows if row[0] == "a")
    assert float(row[3]) == pytest.approx(100 * own["correct"].astype(float).mean(), abs=0.05)
    origin = found["error_consistency_recover_examples_behind"].origin
    assert origin is not None and origin.where is not None
    assert [one.said() for one in origin.where][-2:] == ["trial_type recover", "examples behind"]


def test_a_factor_that_is_one_level_wherever_the_other_has_several_parts_nothing() -> None:
    rows = pd.DataFrame({"session_id": [*"aabb"], "text": [*"xyzz"], "manner": [*"ppqq"]})
    factors = {"text": [*"xyz"], "manner": [*"pq"]}
    assert parted_by_sessions(rows, "text", factors) == [(("manner", "p"),)]
    assert parted_by_sessions(rows.iloc[2:], "text", factors) == [()]


def test_a_plan_says_within_which_levels_it_compares(handover: Make) -> None:
    rows = asked_in_two_ways()
    (plan,) = plans(tables_of(handover, rows, compare="position", within={"examples": "behind"}))
    assert plan.within == (("examples", "behind"),)


def test_means_of_many_parts_that_no_plan_compares_are_in_files(
    tmp_path: Path, without_chapters: None
) -> None:
    plain = study_rows(human=16, items=12)
    tests = plain[~plain["is_practice"]].copy()
    shown = ("k4", "k14", "k28", "k50")
    tests["examples"] = tests["reader"].str[-2:].astype(int).mod(4).map(dict(enumerate(shown)))
    factors = {
        "position": {"levels": LEVELS, "reference": "intact"},
        "examples": {"levels": list(shown), "reference": "k4"},
    }
    planned = {"examples": {"measure": "correct", "compare": "examples", "between": ["human"]}}
    content = gather(load(write_handover(tmp_path, tests, factors=factors, planned=planned)))
    apart = [one for one in content.further_tables if "(examples k" in one.table.title]
    assert len(apart) >= 2 * len(shown) and {one.refused for one in apart} == {"one of 4 such tables"}
    assert not [one for one in content.all_figures() if "(examples k" in one.drawing.title]


def test_conditions_with_other_items_have_no_cost(tmp_path: Path, without_chapters: None) -> None:
    rows = study_rows(models=("a",), items=8)
    others = rows.assign(item_id=rows["item_id"] + rows["position"].fillna(""))
    names = [
        [one.drawing.name for one in gather(load(write_handover(tmp_path / name, own))).all_figures()]
        for name, own in (("same", rows), ("others", others))
    ]
    assert ["cost_position" in own for own in names] == [True, False] and names[1]
