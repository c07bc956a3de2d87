"""The grammar of plans: how contrasts are read, what is wrong with a plan, and what of it survives the export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import load
from analysis.plan import (
    LevelDifference,
    Plan,
    PlanContext,
    PlanFault,
    StudyPlan,
    faults_of,
    plan_in_brief,
    read_contrast,
    read_plan,
)
from analysis.plan.wording import EXPECTED
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.crossed_study import FACTORS, PLAN, crossed_rows, crossed_study
from tests.analysis.letter_study import PLANNED

LEVELS = {"item_type": ("word", "transposed"), "font": ("plain", "cursive")}
ODD = {"text": ("intact", "swapped in word", "no - go", "(a) x (b)"), "print": ("small", "large")}


def difference(first: str, second: str, *at: str) -> LevelDifference:
    return LevelDifference(first, second, at=at)


def read(text: str, levels: Any) -> LevelDifference | None:
    try:
        return read_contrast(text, levels)
    except PlanFault:
        return None


@pytest.mark.parametrize(
    ("text", "contrast"),
    [
        ("(transposed - word) x (cursive - plain)", difference("transposed", "word", "cursive", "plain")),
        ("(cursive − plain) × (transposed − word)", difference("cursive", "plain", "transposed", "word")),
        ("transposed - word in cursive", difference("transposed", "word", "cursive")),
        ("cursive - plain in word", difference("cursive", "plain", "word")),
        ("transposed - word", difference("transposed", "word")),
        ("(transposed - word) x (transposed - word)", None),
        ("transposed - cursive", None),
        ("transposed - word in word", None),
        ("transposed in cursive", None),
        ("(transposed - word) x cursive", None),
    ],
)
def test_contrasts_of_two_factors_are_interactions_simple_effects_and_averages(
    text: str, contrast: LevelDifference | None
) -> None:
    assert read(text, LEVELS) == contrast


@pytest.mark.parametrize(
    "contrast",
    [
        difference("swapped in word", "intact", "large"),
        difference("large", "small", "swapped in word"),
        difference("swapped in word", "intact"),
        difference("no - go", "swapped in word", "large", "small"),
        difference("large", "small", "(a) x (b)", "no - go"),
    ],
)
def test_a_level_may_hold_the_words_and_signs_of_a_contrast(contrast: LevelDifference) -> None:
    assert read(contrast.written, ODD) == read(contrast.label, ODD) == contrast


def test_a_level_that_was_read_as_a_number_is_told_to_be_quoted() -> None:
    with pytest.raises(PlanFault) as fault:
        read_contrast("1e3 - no", {"size": ("no", "1000.0")})
    assert "`1e3` was read as the number 1000.0: write it in quotes" in fault.value.args[1]


def test_what_is_no_contrast_is_told_with_the_forms_and_the_nearest_level() -> None:
    with pytest.raises(PlanFault) as raised:
        read_contrast("(transposed - word) x (cursiv - plain)", LEVELS)
    fault = raised.value
    assert fault.given == "cursiv" and "cursive" in fault.known
    assert "(transposed - word) x (cursive - plain)" in fault.remedy
    assert "font: plain, cursive" in fault.remedy


def test_everything_that_is_wrong_with_a_plan_is_found_at_once() -> None:
    spec = {
        "measure": "correct",
        "compare": ["item_type", "font"],
        "between": ["humans", "gpt"],
        "contrasts": ["transposd - word", "transposed - word", "cursive - plan"],
        "within": {"size": "large"},
        "equivalence": "10%",
        "alpha": 0.7,
        "fallback": "correct ~ font + (1 | item)",
        "exclude": {"answers": "wrong"},
    }
    found = list(faults_of(spec, PlanContext(LEVELS, ["gpt"], ["choose"])))
    places = "between.0 contrasts.0 contrasts.2 within.size equivalence alpha fallback exclude.answers"
    assert {".".join(map(str, fault.at)) for fault in found} == set(places.split())


@pytest.mark.parametrize(
    ("models", "measure", "compares_items", "faults"),
    [
        ([], "correct", False, 1),
        (["gpt"], "correct", False, 1),
        ([], "correct", True, 1),
        (["gpt"], "correct", True, 0),
        (["gpt"], "missing", True, 1),
    ],
)
def test_a_bound_that_nothing_would_be_compared_with_is_refused(
    models: list[str], measure: str, compares_items: bool, faults: int
) -> None:
    spec = {"measure": measure, "compare": "font", "between": ["human"], "equivalence": "5 points"}
    design = PlanContext(LEVELS, models, ["choose"], compares_items)
    assert [fault.path for fault in faults_of(spec, design)] == faults * [".equivalence"]


@pytest.mark.parametrize(
    ("compare", "factors", "said"),
    [
        (["font", "font"], LEVELS, "two factors"),
        (["font", "text"], {**LEVELS, "text": ("a", "plain")}, "'plain'"),
        (["font", "text"], {**LEVELS, "text": ("a",)}, "text"),
    ],
)
def test_factors_that_cannot_be_compared_together_are_refused(compare: Any, factors: Any, said: str) -> None:
    spec = {"measure": "correct", "compare": compare, "between": ["human"]}
    assert [said in fault.problem for fault in faults_of(spec, PlanContext(factors))] == [True]


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"compare": ["item_type", "fonts"]}, ("compare", 1)),
        ({"levels": ["word", "transposed"]}, ("levels",)),
        ({"levels": {"font": ["plain", "curly"]}}, ("levels", "font", 1)),
        ({"direction": {"transposed - word": "less"}}, ("direction", "transposed - word")),
    ],
)
def test_what_is_wrong_with_a_plan_of_two_factors_is_found_in_its_place(more: Any, at: Any) -> None:
    spec = {"measure": "correct", "compare": ["item_type", "font"], "between": ["human"], **more}
    assert [fault.at for fault in faults_of(spec, PlanContext(LEVELS))] == [at]


def test_a_plan_is_the_same_after_it_was_exported() -> None:
    spec = {
        "measure": {"human": "reading_time", "gpt": "surprisal"},
        "compare": ["text", "print"],
        "between": ["human", "gpt"],
        "contrasts": ["no - go − intact in large", "(swapped in word - intact) x (large - small)"],
        "direction": {"(swapped in word - intact) x (large - small)": "less"},
        "levels": {"text": ["intact", "no - go", "swapped in word"], "print": ["small", "large"]},
    }
    plan = read_plan("a", spec, ODD)
    again = read_plan("a", plan.to_json(), ODD)
    assert again.contrasts == plan.contrasts and again.levels_of == plan.levels_of
    assert [one.direction for one in plan.contrasts] == ["two-sided", "less"]
    said = plan_in_brief(again, StudyPlan((again,), ODD))
    assert "Similarity is not tested, since no bound was set. " in said
    assert said.endswith("No number of participants is planned.") and ": " not in said.partition("α")[2]
    directed = tuple(replace(contrast, direction="less") for contrast in again.contrasts)
    people = replace(again, contrasts=directed, measures={"human": again.measures["human"]})
    for members, statistic in (((people,), "t"), ((people, again), "|t|")):
        assert f"by the largest {statistic} over" in plan_in_brief(people, StudyPlan(members, ODD))
    stopped = replace(again, stop="after 60 people or on May 1.")
    assert plan_in_brief(stopped, StudyPlan((stopped,), ODD)).endswith(
        "Stopping rule: after 60 people or on May 1."
    )
    wanted = plan_in_brief(again, StudyPlan((again,), ODD, wanted=40))
    assert wanted.endswith(
        "Data collection was to stop at 40 participants with a finished session that is not excluded."
    )
    assert "[" not in said and "text × print" in said and EXPECTED["less"] in said


def test_what_check_lets_through_is_carried_out(tmp_path: Path) -> None:
    """A level called "swapped in word" once passed the check and stopped the report."""
    rows = crossed_rows(2, 8).replace({"item_type": {"transposed": "swapped in word"}})
    factors = {**FACTORS, "item_type": {**FACTORS["item_type"], "levels": ["word", "swapped in word"]}}
    spec = {**PLAN, "contrasts": ["swapped in word - word in cursive"], "direction": "two-sided"}
    levels = {name: one["levels"] for name, one in factors.items()}
    assert not list(faults_of(spec, PlanContext(levels, [], ["choose"])))
    (plan,) = plans(load(crossed_study(tmp_path, rows, {"together": spec}, factors=factors)))
    assert plan.contrasts == (LevelDifference("swapped in word", "word", at=("cursive",)),)


def test_what_depends_on_a_broken_setting_is_not_checked() -> None:
    spec = {"measure": "corect", "compare": "fonts", "between": ["human"], "contrasts": ["a - b"]}
    assert [fault.at for fault in faults_of(spec, PlanContext(LEVELS), ["measure"])] == [("compare",)]
    assert [fault.at for fault in faults_of(spec, PlanContext(None))] == [("measure",)]


def plans_of(handover: Make, readers: dict[str, Any], **spec: Any) -> list[Plan]:
    given = {"measure": "correct", "compare": "position", "between": ["human"], **spec}
    return plans(load(handover(dictionary={"planned": {"x": given}}, items=4, **readers)))


def test_planned_groups_keep_their_order_and_people_come_from_people(handover: Make) -> None:
    readers = {"human": 2, "simulated": 2, "models": ("restorer",)}
    (plan,) = plans_of(handover, readers, between=["human", "restorer"], contrasts=["initial - final"])
    assert plan.groups == ("human", "restorer")
    assert not plan.stand_in
    assert plan.contrasts == (LevelDifference("initial", "final"),)


def test_simulated_readers_stand_in_only_while_no_person_has_answered(handover: Make) -> None:
    (plan,) = plans_of(handover, {"simulated": 2, "pilot": True}, between=["human"])
    assert plan.groups == ("simulated",)
    assert plan.stand_in


def test_without_contrasts_each_level_is_compared_with_the_reference(handover: Make) -> None:
    (plan,) = plans_of(handover, {"human": 2})
    assert [one.label for one in plan.contrasts] == [
        "initial − intact",
        "internal − intact",
        "final − intact",
    ]


def test_each_group_may_have_its_own_measure(handover: Make) -> None:
    readers = {"human": 2, "models": ("restorer",)}
    measure = {"human": "reading_time", "restorer": "correct"}
    found = plans_of(handover, readers, measure=measure, between=["human", "restorer"])
    assert [(plan.measure.name, plan.groups) for plan in found if plan.planned] == [
        ("reading_time", ("human",)),
        ("correct", ("restorer",)),
    ]


def test_unknown_names_are_user_errors(handover: Make) -> None:
    with pytest.raises(UserError, match=r"(?s)compare .*'postion'.*'position'") as raised:
        plans_of(handover, {"human": 2}, compare="postion")
    assert raised.value.exit_code == 2
    with pytest.raises(UserError, match="'accuracy'"):
        plans_of(handover, {"human": 2}, measure="accuracy")


def test_an_unplanned_study_gets_exploratory_analyses_without_baselines(handover: Make) -> None:
    readers = {"human": 2, "simulated": 2, "models": ("restorer",), "baselines": ("random",)}
    found = plans(load(handover(items=4, **readers)))
    assert not any(plan.planned for plan in found)
    assert {plan.measure.name: plan.groups for plan in found} == {
        "correct": ("human", "restorer"),
        "reading_time": ("human",),
        "rt": ("human",),
    }


def test_readers_that_no_plan_names_are_compared_with_the_people_as_exploratory(handover: Make) -> None:
    planned = {"accuracy": {**PLANNED["comprehension"], "between": ["human", "restorer"]}}
    readers = {"human": 2, "models": ("restorer", "second", "third"), "baselines": ("random",)}
    found = plans(load(handover(dictionary={"planned": planned}, items=4, **readers)))
    assert [(plan.planned, plan.measure.name, plan.groups) for plan in found] == [
        (True, "correct", ("human", "restorer")),
        (False, "correct", ("human", "second", "third")),
    ]
    assert found[1].factor == "position"


def test_a_plan_that_names_levels_compares_these_alone(handover: Make) -> None:
    (plan,) = plans_of(handover, {"human": 2}, levels=["internal", "final"])
    assert plan.levels == ("internal", "final") == plan.factors["position"]
    assert [one.label for one in plan.contrasts] == ["final − internal"]
    with pytest.raises(UserError, match="'initial'"):
        plans_of(handover, {"human": 2}, levels=["inital", "final"])
    with pytest.raises(UserError, match="'intact'"):
        plans_of(handover, {"human": 2}, levels=["internal", "final"], contrasts=["final - intact"])
