"""The Answer grades each planned question by its test and its checks, in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import apa, load
from analysis.exclusions import reasons_named
from analysis.plan import MEASURES, RATING
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.answer import MOST_FINDINGS, answer, answer_tables, as_text
from analysis.report.blocks import Chapter
from analysis.report.content import gather
from analysis.report.document import manuscript
from analysis.report.effect_sizes import felt
from analysis.report.grades import (
    CLEAR,
    CONTRADICTED,
    EQUIVALENT,
    FRAGILE,
    OPEN,
    SUPPORTED,
    Grade,
    grade_of,
    support_of,
)
from analysis.report.inline import plain_text
from analysis.report.nodes import Facts, Paragraph, PlannedFinding
from analysis.report.numbering import LONGEST, ExhibitNumbers, NumberedChapter, ReportContent, Section
from analysis.report.planned_effects import planned_effects
from analysis.report.provenance import _estimates
from analysis.report.results import MOST_SINGLY, differences, of_many_conditions, paragraphs, runs
from analysis.results import Contrast, Equivalence
from analysis.robustness import (
    BY_ITEMS,
    BY_PARTICIPANTS,
    ITEM_SETS,
    LIMITS,
    SAME,
    SCALE,
    CheckedContrast,
    CheckOutcome,
    Matrix,
)
from tests.analysis.conftest import no_figures_of_means
from tests.analysis.crossed_study import INTERACTION, PLAN, crossed_rows, crossed_study
from tests.analysis.letter_study import PLANNED, comparison, study_rows, write_handover

pytestmark = pytest.mark.usefixtures("without_chapters", "without_figures")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory, without_chapters: None) -> ReportContent:
    rows = study_rows(human=16, models=("restorer",), items=16).assign(rt=None)
    planned = {"comprehension": PLANNED["comprehension"]}
    with no_figures_of_means():
        return gather(load(write_handover(tmp_path_factory.mktemp("answer"), rows, planned=planned)))


def test_the_answer_waits_for_no_figure_library() -> None:
    asked = "import sys, analysis.report; print({'matplotlib', 'docx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def findings(content: ReportContent) -> list[PlannedFinding]:
    return [one for one in answer(content, "") if isinstance(one, PlannedFinding)]


def limits(content: ReportContent) -> dict[str, str]:
    return dict(next(one for one in answer(content, "") if isinstance(one, Facts)).pairs)


def test_each_planned_difference_is_answered_for_people_and_between_people_and_the_model(
    content: ReportContent,
) -> None:
    found = findings(content)
    (section,) = content.planned
    labels = dict.fromkeys(one.label for one in section.analysis.contrasts)
    assert len(found) == min(2 * len(labels), MOST_FINDINGS)
    first = section.analysis.contrasts[0]
    assert first.first in found[0].question and "people's accuracy" in plain_text(found[0].question)
    assert "people and model restorer" in found[1].question
    assert re.search(r"\d .*people .*\d .*restorer, .*\d percentage points", plain_text(found[1].text))
    assert all("percentage points" in one.text and "CI" not in one.text and one.models for one in found), (
        "p and interval are in the table"
    )


SIGNIFICANT = {
    "no check applies": ({}, SUPPORTED),
    "all agree": ({SCALE: "same", LIMITS: "same"}, CLEAR),
    "another preparation weakens it": ({SCALE: "same", LIMITS: "not significant"}, SUPPORTED),
    "another scale weakens it": ({SCALE: "not significant", LIMITS: "same"}, FRAGILE),
    "items as clusters weaken it": ({BY_ITEMS: "not significant"}, FRAGILE),
    "another analysis finds the opposite": ({BY_ITEMS: "reversed"}, CONTRADICTED),
}


def checked(content: ReportContent, outcomes: dict[str, str], p: float = 0.001) -> CheckedContrast:
    analysis = content.planned[0].analysis
    one = replace(analysis.contrasts[0], p_adjusted=p, estimate=-2.0)
    return CheckedContrast(
        analysis, one, {name: CheckOutcome(said, 1.0, 0.5, 1.5, True) for name, said in outcomes.items()}
    )


@pytest.mark.parametrize(("outcomes", "grade"), SIGNIFICANT.values(), ids=SIGNIFICANT)
def test_the_worst_check_decides_how_certain_a_significant_result_is(
    content: ReportContent, outcomes: dict[str, str], grade: Grade
) -> None:
    row = checked(content, outcomes)
    assert grade_of(row.contrast, row.analysis, Matrix((row,))) is grade
    agreeing = sum(one == SAME for one in outcomes.values())
    assert (f"{agreeing} of {len(outcomes)} checks agree" in support_of(row)) is (
        0 < agreeing < len(outcomes)
    )


def test_an_interaction_that_log_odds_reverse_is_fragile_in_answer_and_results(tmp_path: Path) -> None:
    """At its ceiling, the large model loses fewer points than the small one and more in log odds."""
    rows = study_rows(human=0, models=("large", "small"), items=60)
    wrong = {
        ("large", "initial"): 9,
        ("large", "internal"): 4,
        ("small", "initial"): 40,
        ("small", "internal"): 18,
    }
    up_to = [wrong.get(pair, 3) for pair in zip(rows["reader"], rows["position"], strict=True)]
    rows["correct"] = (pd.factorize(rows["item_id"])[0] >= up_to).astype(float)
    planned = comparison("initial - internal", between=("large", "small"))
    given = gather(load(write_handover(tmp_path, rows, planned=planned)))
    (row,) = [one for one in given.matrix.rows if one.contrast.reverses]
    assert row.contrast.between and row.contrast.estimate > 0 > row.contrast.log_odds
    cell = row.cells[SCALE]
    assert cell.outcome == "reversed" and cell.estimate == row.contrast.log_odds and not cell.excludes_zero
    assert grade_of(row.contrast, row.analysis, given.matrix) is FRAGILE
    assert "in 1 of " in support_of(row) and "log odds" in support_of(row)
    nodes, _ = manuscript(given)
    results = " ".join(plain_text(node.text) for node in nodes if isinstance(node, Paragraph))
    assert (
        "initial − internal (large vs. small)"
        in results.partition("did not hold in all robustness checks")[0]
    )


def test_what_is_not_significant_is_open_unless_it_is_equivalent(content: ReportContent) -> None:
    row = checked(content, {SCALE: "appears"}, p=0.4)
    assert grade_of(row.contrast, row.analysis, Matrix((row,))) is OPEN
    both = checked(content, {SCALE: "appears", BY_ITEMS: "appears"}, p=0.4)
    assert support_of(both).endswith(" (log odds, clustered by items)")
    sets = {ITEM_SETS: replace(both.cells[SCALE], forms=1, of=4)}
    assert support_of(replace(both, cells=both.cells | sets)) == (
        "a difference appears in 2 of 3 checks (log odds, clustered by items) "
        "and in 1 of 4 forms of another check (item sets left out)"
    )
    assert support_of(replace(both, cells=sets)).endswith("in 1 of 4 forms of one check (item sets left out)")
    many = checked(content, dict.fromkeys((SCALE, BY_PARTICIPANTS, BY_ITEMS, ITEM_SETS), "appears"), p=0.4)
    assert " 4 checks" in support_of(many)
    alike = checked(content, {SCALE: "same", BY_ITEMS: "same", LIMITS: "appears"}, p=0.4)
    assert support_of(alike).startswith("2 of 3 checks are open too; a difference appears in 1 of 3 ")
    clear = checked(content, {SCALE: "same"})
    analysis = replace(clear.analysis, contrasts=(clear.contrast,))
    shown, _ = answer_tables([analysis], Matrix((clear,)), ExhibitNumbers())
    assert shown is not None and "Clear: significant, and all checks agree." in str(shown.table.note)
    equal = Equivalence(0.5, 0.2, 1.0, -2.5, None, 0.01, 0.01, 1, 0.1, 0.9, 0.9, True)
    equivalent = replace(alike, contrast=replace(row.contrast, equivalence=equal))
    assert grade_of(equivalent.contrast, row.analysis, Matrix((equivalent,))) is EQUIVALENT
    assert support_of(equivalent).startswith("2 of 3 checks show no difference; ")


def test_a_failing_check_changes_the_headline_and_is_named_below(content: ReportContent) -> None:
    section = content.planned[0]
    row = checked(content, {SCALE: "not significant", BY_ITEMS: "same"})
    analysis = replace(section.analysis, contrasts=(row.contrast,))
    given = replace(content, planned=(replace(section, analysis=analysis),), matrix=Matrix((row,)))
    (found,) = findings(given)
    assert found.grade == "Fragile" and plain_text(found.text).startswith("Perhaps:")
    assert re.fullmatch(r"1 of 2 .* 1 of 2 \(log odds\)", found.support)
    assert "1 of 2 " in limits(given)["Robustness"]


def crowded(content: ReportContent, significant: dict[str, int], levels: int = 26) -> ReportContent:
    """Give the first plan as many conditions against one reference: of each reader the last ones differ, the last one most."""
    section = content.planned[0]
    one = next(one for one in section.analysis.contrasts if one.groups == ("human",))
    contrasts = tuple(
        replace(
            one, first=f"c{place}", second="intact", groups=(group,), estimate=-1.0 * (place + 1),
            low=-1.5 * (place + 1), high=-0.5 * (place + 1),
            p_adjusted=0.001 if place >= levels - many else 0.5,
        )
        for group, many in significant.items() for place in range(levels)
    )  # fmt: skip
    kinds = {group: "human" if group == "human" else "model" for group in significant}
    analysis = replace(section.analysis, contrasts=contrasts)
    return replace(content, planned=(replace(section, analysis=analysis),), kinds=kinds)


def test_each_planned_analysis_is_answered_though_the_first_alone_has_too_many_questions(
    content: ReportContent,
) -> None:
    section = content.planned[0]
    one = next(one for one in section.analysis.contrasts if one.groups == ("human",))
    many = [replace(one, first=f"c{place}", second=f"d{place}", p_adjusted=0.5) for place in range(8)]
    many[-1] = replace(many[-1], p_adjusted=0.001)
    analyses = (replace(section.analysis, contrasts=tuple(own)) for own in (many, [one]))
    first, second = (replace(section, analysis=analysis) for analysis in analyses)
    both = replace(content, planned=(first, second))
    told = findings(both)[:MOST_FINDINGS]
    asked = findings(replace(content, planned=(second,)))[0].question
    assert [found.question for found in told].count(asked) == 1
    assert sum(bool(re.search(r"\bc\d", found.question)) for found in told) == MOST_FINDINGS - 1
    assert sum("c7" in found.question and found.grade != "Open" for found in told) == 1, "what is found"
    assert re.search(r"\bThree [^.:]* open\.", " ".join(as_text(answer(both, "")).split())), (
        "the others' grades"
    )


def test_a_question_that_refers_to_another_follows_it(content: ReportContent) -> None:
    section = content.planned[0]
    human = next(one for one in section.analysis.contrasts if one.groups == ("human",))
    pair = next(one for one in section.analysis.contrasts if one.between)
    labels = [(f"c{number}", f"d{number}") for number in range(8)]
    own = [
        replace(one, first=first, second=second, p_adjusted=0.001 if one is pair and first == "c7" else 0.5)
        for first, second in labels
        for one in (human, pair)
    ]
    given = replace(section, analysis=replace(section.analysis, contrasts=tuple(own)))
    questions = [found.question for found in findings(replace(content, planned=(given,)))]
    (place,) = [place for place, question in enumerate(questions) if "c7" in question]
    assert place < MOST_FINDINGS and "in this respect" in questions[place + 1]


def test_conditions_with_one_reference_share_an_answer_where_there_are_too_many_questions(
    content: ReportContent,
) -> None:
    few = findings(crowded(content, {"human": 1}, levels=4))
    assert len(few) == 4 and all(re.search(r"\bc\d", found.question) for found in few)
    section = crowded(content, {"human": 1}, levels=4).planned[0]
    other = tuple(replace(one, second="untouched") for one in section.analysis.contrasts)
    another = replace(section, analysis=replace(section.analysis, contrasts=other))
    many = findings(replace(content, planned=(section, another)))
    assert len(many) == 2
    assert not any(re.search(r"\bc\d", found.question) for found in many)


def test_readers_without_a_difference_share_a_sentence_apart_from_pairs(content: ReportContent) -> None:
    given = crowded(content, {"human": 0, "restorer": 0, "other": 1}, levels=7)
    (section,) = given.planned
    contrasts = section.analysis.contrasts
    pairs = [replace(one, groups=("human", "restorer"), p_adjusted=0.5) for one in contrasts[:7]]
    analysis = replace(section.analysis, contrasts=(*contrasts, *pairs))
    (found,) = findings(replace(given, planned=(replace(section, analysis=analysis),)))
    text = plain_text(found.text)
    assert "seven conditions for people or model restorer." in text
    assert "between people and model restorer." in text and "vs." not in text.partition("No ")[2]


def test_of_many_models_those_that_differ_are_named_with_their_sizes(content: ReportContent) -> None:
    section = content.planned[0]
    one = replace(section.analysis.contrasts[0], estimate=12.0)
    ps = {"m1": 0.001, "m2": 0.5, "m3": 0.5}
    own = tuple(replace(one, groups=(model,), p_adjusted=p) for model, p in ps.items())
    given = replace(content, planned=(replace(section, analysis=replace(section.analysis, contrasts=own)),))
    (found,) = findings(replace(given, kinds=dict.fromkeys(ps, "model")))
    assert one.first in found.question and one.second in found.question and "three models" in found.question
    assert re.match(
        r"Model m1 \w+ \(12\.0 percentage points; \w+\); for models m2 and m3,", plain_text(found.text)
    )


def test_what_no_plan_asked_is_answered_for_these_data_alone(content: ReportContent) -> None:
    section = content.planned[0]
    row = checked(content, {SCALE: "same"})
    analysis = replace(
        section.analysis, contrasts=(row.contrast,), plan=replace(section.analysis.plan, planned=False)
    )
    given = replace(content, planned=(), exploratory=(replace(section, analysis=analysis),))
    (found,) = findings(given)
    assert not plain_text(found.text).startswith(("Yes", "Probably")) and "these data" in plain_text(
        found.text
    )


def test_largest_differences_that_are_tied_are_counted_with_all_their_values(content: ReportContent) -> None:
    models = [f"m{number}" for number in range(5)]
    section = crowded(content, dict.fromkeys(models, 3)).planned[0]
    first, *others = section.analysis.contrasts
    kinds = dict.fromkeys(models, "model")
    turned = [
        replace(one, estimate=-one.estimate, p_adjusted=0.002) if one.first == "c25" else one
        for one in others
        if one.groups != ("m4",)
    ]
    last = [one for one in others if one.groups == ("m4",)]
    text = plain_text(of_many_conditions([first, *turned, *last], section.analysis, kinds))
    size = felt([last[-1]], section.analysis.plan.measure)
    assert "5 largest differences" in text and size.value in text and ".002" in text
    assert "CI" not in text, "no interval is that of all"


def test_of_many_models_every_comparison_is_told_in_one_run_of_one_outcome(tmp_path: Path) -> None:
    models = ("m1", "m2", "m3", "m4", "m5")
    plan = PLANNED["comprehension"] | {"between": ["human", *models]}
    rows = study_rows(human=16, models=models, items=24)
    tables = load(write_handover(tmp_path, rows, planned={"comprehension": plan}))
    analysis = carry_out(plans(tables)[0], tables, companion=False)
    kinds = {"human": "human", **dict.fromkeys(models, "model")}
    found = [one for one in analysis.contrasts if one.label == analysis.contrasts[0].label]
    told = runs(found, kinds, analysis.plan.alpha)
    assert sorted(id(one) for run in told for one in run) == sorted(map(id, found))
    for run in told:
        assert len({(one.between, one.p_adjusted < 0.05) for one in run}) == 1
    few = [one for one in found if one.groups[-1] in ("human", *models[:MOST_SINGLY])]
    assert runs(few, kinds, 0.05) == [[one] for one in sorted(few, key=lambda one: one.between)]


def test_planned_comparisons_with_models_that_remain_open_share_a_sentence_where_they_are_many(
    content: ReportContent,
) -> None:
    (section,) = content.planned
    kinds = {"human": "human", "restorer": "model", "other": "model"}
    still_open = [replace(one, p_adjusted=0.5) for one in section.analysis.contrasts]
    with_models = [one for one in still_open if one.groups != ("human",)]

    def written(copies: int) -> str:
        others = [
            replace(one, first=f"{one.first} {n}", second=f"{one.second} {n}")
            for n in range(copies)
            for one in still_open
        ]
        return plain_text(" ".join(differences(others, section.analysis, kinds, "S1")))

    few, many = written(1), written(6)
    assert len(with_models) == 4 and few.count("CI") == len(still_open)
    assert many.count("CI") == 6 * (len(still_open) - len(with_models)) and "24 other comparisons" in many


@pytest.mark.parametrize(
    ("means", "estimate", "is_explained"),
    [
        ((0.8, 0.9), -10.0, False),
        ((0.8, 0.9), -5.0, True),
        ((1.0, 0.8333), 16.81, True),  # 100.0% and 83.3%, and 16.8 points
        ((0.96454, 0.83336), 13.118, False),  # 96.5% and 83.3%, and 13.1 points: rounding alone
        ((0.9, 0.8), 10.04, False),  # as printed
    ],
)
def test_answer_and_results_explain_estimates_that_are_not_differences_of_the_means(
    content: ReportContent, means: tuple[float, float], estimate: float, is_explained: bool
) -> None:
    (section,) = content.planned
    one = replace(section.analysis.contrasts[0], estimate=estimate, p_adjusted=0.001)
    analysis = replace(section.analysis, contrasts=(one,))
    (cell,) = [cell for cell in section.cells if (cell.group, cell.level) == (one.groups[0], one.second)]
    cells = tuple(
        replace(cell, level=level, mean=mean)
        for level, mean in zip((one.first, one.second), means, strict=True)
    )
    results = plain_text(" ".join(paragraphs(analysis, cells, content.kinds)))
    assert ("same weight" in results) is is_explained
    (found,) = findings(replace(content, planned=(replace(section, analysis=analysis, cells=cells),)))
    assert ("if every item counts alike" in found.text) is is_explained


def test_conditions_in_which_models_have_the_same_means_share_them(content: ReportContent) -> None:
    (section,) = content.planned
    models, levels = [f"m{n}" for n in range(5)], [f"l{n}" for n in range(5)]
    plan = replace(section.analysis.plan, groups=tuple(models))
    analysis = replace(section.analysis, plan=plan, contrasts=())
    cell = section.cells[0]
    cells = [
        replace(cell, group=model, kind="model", level=level, mean=turn / 10 + (level == "l4" and moved))
        for moved in (0.0, 0.5)
        for turn, model in enumerate(models)
        for level in levels
    ]
    for some, alike in (
        (cells[:25], "each of five conditions"),
        (cells[25:], "the l0, l1, l2, and l3 conditions"),
    ):
        text = plain_text(" ".join(paragraphs(analysis, some, dict.fromkeys(models, "model"))))
        assert text.count("0.0% to 40.0%") == 1 and alike in text


def test_all_differences_of_an_analysis_have_the_same_decimals() -> None:
    numbers = (0.268, 0.04, 2.5, 30.0, 0.01, 0.1, 0.4, 0.01, 1)
    precise = Contrast("a", "b", ("human",), *numbers)
    coarse = replace(precise, first="c", se=0.06)
    raw = RATING
    assert [felt([one], raw, (precise, coarse)).value for one in (precise, coarse)] == ["0.268"] * 2
    assert felt([coarse], raw).value == "0.27"


def test_the_answer_names_the_models_from_which_residuals_depart_but_no_mere_check(
    content: ReportContent,
) -> None:
    (section,) = content.planned
    assert section.analysis.companion is not None, "its mixed model only checks the estimates"
    fitted = replace(section.analysis, companion=None)

    def doubted(sections: Sequence[Section]) -> str:
        departures = tuple(one.analysis.plan.name for one in sections)
        chapter = NumberedChapter(Chapter("model-checks", "Model checks", (), departures=departures), ())
        return limits(replace(content, planned=tuple(sections), chapters=(chapter,))).get("Fit", "")

    two = [
        replace(section, analysis=replace(fitted, plan=replace(fitted.plan, name=name)))
        for name in ("naming <b>", "reading")
    ]
    assert "depart" not in doubted([section])
    where = "(Supplement, Model checks)."
    one, both = doubted(two[:1]), doubted(two)
    assert f"The residuals of naming &lt;b&gt; depart significantly from the model {where}" in one
    assert (
        f"The residuals of naming &lt;b&gt; and reading depart significantly from their models {where}"
        in both
    )
    assert fitted.model is not None and fitted.model.singular
    assert "The fits of naming &lt;b&gt; and reading are singular" in both, "one doubt does not hide another"


def test_answers_that_are_all_alike_are_told_once_and_are_no_evidence_of_similarity(tmp_path: Path) -> None:
    rows = study_rows(human=6, models=("restorer",), items=8, timeouts=0)
    rows = rows.assign(correct=True, reading_time=1000.0, rt=None)
    content = gather(load(write_handover(tmp_path, rows, planned=PLANNED)))
    (one,) = findings(content)
    told = " ".join(map(str, [one.markup, *limits(content).values()]))
    assert (
        told.count(
            "correct in every condition, so there is nothing to compare; any difference remains possible"
        )
        == 1
    )
    assert "agree" not in told and "ceiling" not in told and one.grade == ""
    assert "reading could not be carried out (all values of reading time are the same)" in told
    (section, _) = content.planned
    shown = Equivalence(0.0, 1.0, 5.0, 2.0, None, 0.01, 0.01, 1, -2.0, 2.0, 0.9, True)
    contrasts = [
        replace(contrast, equivalence=shown if contrast.between else None)
        for contrast in section.analysis.contrasts
    ]
    bounded = replace(section, analysis=replace(section.analysis, contrasts=tuple(contrasts)))
    grades = [finding.grade for finding in findings(replace(content, planned=(bounded,)))]
    assert EQUIVALENT.word in grades, "the planned estimate can show it"
    apart = study_rows(human=3, items=8, timeouts=0).query("position == 'initial'").assign(correct=True)
    nothing = gather(load(write_handover(tmp_path / "one", apart, planned=PLANNED)))
    said = str(limits(nothing)["Plan"])
    assert not findings(nothing) and "comprehension could not be carried out" in said
    assert said.count("People: no trials in internal;") == 1


@pytest.mark.usefixtures("without_companions")
def test_the_answer_is_told_as_text_before_the_rest_is_made_and_is_that_of_the_page(tmp_path: Path) -> None:
    told: list[str] = []
    rows = study_rows(human=6, models=("restorer",), items=8)
    content = gather(load(write_handover(tmp_path, rows, planned=PLANNED)), told.append)
    (place,) = [place for place, step in enumerate(told) if step.startswith("Answer\n")]
    assert told[place] == as_text(answer(content, ""))
    assert told[place - 1].startswith("checks: ") and "figures" in told[place:]
    assert f"\nRobustness: {limits(content)['Robustness'][:20]}" in told[place]
    assert max(map(len, told[place].splitlines())) <= 100


def test_of_many_contrasts_those_with_the_smallest_p_are_printed_and_all_are_in_a_file(
    content: ReportContent,
) -> None:
    numbered = content.answer_table
    assert numbered is not None and numbered in list(answer(content, ""))
    analyses = [section.analysis for section in content.planned]
    (one,) = analyses
    for many, number in ((1, "1"), (15, "1"), (60, "F1")):
        own = [replace(one.contrasts[0], first=f"c{n}", p_adjusted=abs(n - 30) / 60) for n in range(many)]
        shown, excerpt = answer_tables([replace(one, contrasts=tuple(own))], content.matrix, ExhibitNumbers())
        assert shown is not None
        nodes = list(answer(replace(content, answer_table=shown, answer_excerpt=excerpt), ""))
        assert (shown.number, shown in nodes, bool(shown.refused)) == (number, many <= 15, many > 15)
        assert len(shown.table.rows) == many + 1 and (excerpt is None) == (many <= 15)
    assert excerpt is not None and excerpt in nodes and excerpt.number == "1"
    smallest = sorted(contrast.p_adjusted for contrast in own)[:15]
    assert sorted(float(row[2].values[0]) for row in excerpt.table.rows[1:]) == pytest.approx(smallest)
    assert any(re.search(r"Table F1 .*\(60 rows", str(getattr(one, "text", ""))) for one in nodes)
    paper, _ = manuscript(replace(content, answer_table=shown, answer_excerpt=excerpt))
    assert any(re.search(r"Table 1 .*\b15 of 60 .*Table F1", str(getattr(one, "text", ""))) for one in paper)
    for significant, rows in ((40, LONGEST), (20, 20), (2, 2), (1, 12), (0, 12)):
        own = [replace(one, p_adjusted=0.001 if n < significant else 1.0) for n, one in enumerate(own)]
        _, excerpt = answer_tables(
            [replace(analyses[0], contrasts=tuple(own))], content.matrix, ExhibitNumbers()
        )
        assert excerpt is not None and len(excerpt.table.rows) == rows + 1, "no row of the same p is cut off"
        assert not excerpt.refused
    all_significant = replace(
        analyses[0], contrasts=tuple(replace(one, p_adjusted=0.001) for one in own[:16])
    )
    shown, excerpt = answer_tables([all_significant], content.matrix, ExhibitNumbers())
    assert shown is not None and not shown.refused and excerpt is None


def test_the_table_refers_to_the_robustness_matrix_only_if_there_is_one(content: ReportContent) -> None:
    analyses = [section.analysis for section in content.planned]
    for matrix in (content.matrix, Matrix()):
        shown, _ = answer_tables(analyses, matrix, ExhibitNumbers())
        assert shown is not None and ("Supplement" in shown.table.note) is bool(matrix.checks)


def test_a_contrast_of_two_plans_is_detectable_once(content: ReportContent) -> None:
    (section,) = content.planned
    plan, own = replace(section.analysis.plan, name="again"), section.analysis.contrasts
    again = replace(section.analysis, plan=plan, contrasts=tuple(replace(one) for one in own))
    given = replace(content, planned=(section, replace(section, analysis=again)))
    assert limits(given)["Sensitivity"] == limits(content)["Sensitivity"]


def test_a_name_that_ends_in_parentheses_is_not_put_in_others(content: ReportContent) -> None:
    (section,) = content.planned
    names = ("reading (reading time of the verb)", "comprehension")
    analyses = [replace(section.analysis, plan=replace(section.analysis.plan, name=name)) for name in names]
    analyses[1] = replace(
        analyses[1], contrasts=tuple(replace(one, first="other") for one in section.analysis.contrasts)
    )
    given = replace(content, planned=tuple(replace(section, analysis=analysis) for analysis in analyses))
    told = limits(given)["Sensitivity"]
    assert "))" not in told and "(accuracy)" in told and "(comprehension)" in told


def test_a_contrast_that_no_possible_size_would_make_detectable_is_told_beside_detectable_ones(
    content: ReportContent,
) -> None:
    (section,) = content.planned
    first, *others = section.analysis.contrasts

    def sensitivity(*contrasts: Contrast) -> str:
        analysis = replace(section.analysis, contrasts=contrasts)
        return limits(replace(content, planned=(replace(section, analysis=analysis),)))["Sensitivity"]

    imprecise = replace(first, se=1e3, low=-100.0, high=100.0, p_adjusted=1.0)
    assert sensitivity(imprecise, *others) != sensitivity(*others)


def test_bounds_of_equivalence_are_corrected_within_their_family(content: ReportContent) -> None:
    (section,) = content.planned
    analysis, plan = section.analysis, section.analysis.plan
    between = [replace(one, p_adjusted=0.5, equivalence=None) for one in analysis.contrasts if one.between]
    unmade = [
        replace(between[0], first=f"unmade {n}", estimable=False, left_out="no trials") for n in range(6)
    ]

    def bounds(*families: str, and_also: Sequence[Contrast] = ()) -> set[float]:
        sections = []
        for family in families:
            own = [replace(contrast, first=f"{contrast.first} {family}") for contrast in between]
            planned = replace(plan, name=family, family=family)
            given = replace(analysis, plan=planned, contrasts=(*own, *and_also))
            sections.append(replace(section, analysis=given))
        told = limits(replace(content, planned=tuple(sections)))["Sensitivity"]
        assert "from these data, they serve only to plan a new study." in told
        return set(map(float, re.findall(r"\d+\.\d", told.partition("The smallest")[2].partition("Open")[0])))

    alone = bounds("first")
    assert alone and alone <= bounds("first", "second")
    assert min(bounds("first", and_also=unmade)) > min(alone), "what could not be made counts"


@pytest.mark.usefixtures("without_companions")
def test_exclusions_of_people_and_models_are_counted_apart(tmp_path: Path) -> None:
    rows = study_rows(human=6, models=("restorer",), items=8)
    for name, column in (("attention check", "is_attention_check"), ("filler", "is_filler")):
        of_each = rows[~rows["is_practice"]].groupby("reader").head(1 if column == "is_filler" else 2).index
        rows.loc[of_each, ["excluded_reason", column]] = [name, True]
    planned = {"comprehension": PLANNED["comprehension"]}
    content = gather(load(write_handover(tmp_path, rows, planned=planned)))
    named = reasons_named(content.tables.trials)
    people = named[content.tables.trials["reader_kind"] == "human"].value_counts()
    sample = limits(content)["Sample"]
    method = " ".join(str(one) for part in content.method for one in part.paragraphs)
    for reason, many in people.items():
        counted = f"{apa.worded(many, 'trial')} ({reason})"
        assert counted in sample and counted in method


def test_a_directed_contrast_of_one_reader_is_told_in_its_direction_and_without_what_is_absent(
    tmp_path: Path,
) -> None:
    """Nothing compares readers or times: neither a bound of equivalence nor milliseconds concern this report."""
    planned = comparison("initial - intact")
    planned["a"] |= {"direction": "less", "equivalence": "5 points"}
    content = gather(load(write_handover(tmp_path / "h", study_rows(human=10, items=9), planned=planned)))
    (finding,) = findings(content)
    assert " differ" not in finding.question and " lower " in finding.question
    results = " ".join(text for section in content.planned for text in section.paragraphs)
    assert "two-sided" not in results and " differs" not in results
    assert not content.standing.departures or not any("bound" in one for one in content.standing.departures)
    method = " ".join(text for part in content.method for text in part.paragraphs)
    assert "milliseconds" not in method and "one-sided" in method
    ((_, (effect,)),) = planned_effects([content.planned[0].analysis], content.matrix, (), {}).values()
    assert effect.low == -np.inf and np.isfinite(effect.high)
    ends = f"(−∞, {apa.number(effect.high, 1)}]"
    assert ends in results and content.answer_table is not None
    assert any(ends in cell for row in content.answer_table.table.rows for cell in row)
    (told,) = _estimates(content)
    assert (told["low"], told["high"]) == (None, effect.high)


def test_the_open_end_of_a_directed_difference_of_times_is_no_percentage() -> None:
    numbers = (-0.1, 0.04, -2.5, 30.0, 0.01, -np.inf, -0.032, 0.01, 1)
    directed = Contrast("a", "b", ("human",), *numbers, direction="less")
    assert felt([directed], MEASURES["rt"]).interval == "(−∞, −3.1]"


def test_an_interaction_is_told_by_the_difference_at_each_level(tmp_path: Path) -> None:
    plan = PLAN | {"contrasts": [INTERACTION]}
    content = gather(load(crossed_study(tmp_path, crossed_rows(16, 16), {"together": plan})))
    (section,) = content.planned
    (contrast,) = section.analysis.contrasts
    (finding,) = findings(content)
    for level, value in zip(contrast.at, contrast.simple, strict=True):
        assert re.search(f"{apa.number(value, 1)} percentage points [^.]*{level} condition", finding.text)
