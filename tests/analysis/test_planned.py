from __future__ import annotations

from typing import Any

import pytest

from analysis import load
from analysis.plan import LevelDifference, Plan
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED


def planned(handover: Make, readers: dict[str, Any], **spec: Any) -> list[Plan]:
    given = {"measure": "correct", "compare": "position", "between": ["human"], **spec}
    return plans(load(handover(dictionary={"planned": {"x": given}}, items=4, **readers)))


def test_planned_groups_keep_their_order_and_people_come_from_people(handover: Make) -> None:
    readers = {"human": 2, "simulated": 2, "models": ("restorer",)}
    (plan,) = planned(handover, readers, between=["human", "restorer"], contrasts=["initial - final"])
    assert plan.groups == ("human", "restorer")
    assert not plan.stand_in
    assert plan.contrasts == (LevelDifference("initial", "final"),)


def test_simulated_readers_stand_in_only_while_no_person_has_answered(handover: Make) -> None:
    (plan,) = planned(handover, {"simulated": 2, "pilot": True}, between=["human"])
    assert plan.groups == ("simulated",)
    assert plan.stand_in


def test_without_contrasts_each_level_is_compared_with_the_reference(handover: Make) -> None:
    (plan,) = planned(handover, {"human": 2})
    assert [one.label for one in plan.contrasts] == [
        "initial − intact",
        "internal − intact",
        "final − intact",
    ]


def test_each_group_may_have_its_own_measure(handover: Make) -> None:
    readers = {"human": 2, "models": ("restorer",)}
    measure = {"human": "reading_time", "restorer": "correct"}
    found = planned(handover, readers, measure=measure, between=["human", "restorer"])
    assert [(plan.measure.name, plan.groups) for plan in found if plan.planned] == [
        ("reading_time", ("human",)),
        ("correct", ("restorer",)),
    ]


def test_unknown_names_are_user_errors(handover: Make) -> None:
    with pytest.raises(UserError, match=r"(?s)compare .*'postion'.*'position'") as raised:
        planned(handover, {"human": 2}, compare="postion")
    assert raised.value.exit_code == 2
    with pytest.raises(UserError, match="'accuracy'"):
        planned(handover, {"human": 2}, measure="accuracy")


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
    (plan,) = planned(handover, {"human": 2}, levels=["internal", "final"])
    assert plan.levels == ("internal", "final") == plan.factors["position"]
    assert [one.label for one in plan.contrasts] == ["final − internal"]
    with pytest.raises(UserError, match="'initial'"):
        planned(handover, {"human": 2}, levels=["inital", "final"])
    with pytest.raises(UserError, match="'intact'"):
        planned(handover, {"human": 2}, levels=["internal", "final"], contrasts=["final - intact"])
