"""The template classics: each part can be built, answered by simulated readers, and analysed as planned."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from analysis import load
from analysis.parameter_recovery import recovered, recovery_plans
from analysis.plan_runner import carry_out
from analysis.planned import plans
from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.exporting.export import hand_over
from experiment.lists import list_ids
from experiment.store import open_store
from experiment.templates import parts_of
from tests.experiment.commands import let_take_part

TEMPLATE = "classics"


@pytest.mark.parametrize("part", parts_of(TEMPLATE))
def test_each_part_is_answered_and_every_planned_difference_is_estimated(tmp_path, part):
    folder = tmp_path / "study"
    copy_template(TEMPLATE, folder, part=part)
    build_study(load_study(folder))
    findings = json.loads((folder / "audit/audit.json").read_text("utf-8"))["findings"]
    assert not [finding for finding in findings if finding["level"] == "mend"]
    study = load_study(folder)
    with open_store(folder) as store:
        # too few readers for estimates, enough for every condition of every item
        let_take_part(study, store, readers=max(2, len(list_ids(study, study.items))))
        tables = load(hand_over(study, store, tmp_path / "tables"))
    planned = [plan for plan in plans(tables) if plan.planned]
    assert {plan.key for plan in planned} == set(study.get("analysis", "planned"))
    for plan in planned:
        estimates = carry_out(plan, tables).contrasts
        assert len(estimates) == len(plan.contrasts) and all(one.estimable for one in estimates), plan
    compared = recovery_plans(tables)
    if (
        tables.trials["trial_type"] == "answer"
    ).any():  # times to the first key are simulated, and those between keys
        assert {plan.measure.name for plan in compared} == {"correct"}
    crossed = [plan for plan in compared if plan.crossing is not None]
    interactions = [one for plan in crossed for one in recovered(carry_out(plan, tables), tables)]
    assert all(math.isfinite(one.estimate) for one in interactions)
    assert bool(interactions) == any(plan.crossing is not None for plan in planned)


def test_the_page_of_the_template_lists_each_part_with_its_title():
    page = (Path(__file__).parents[2] / "docs/classics.md").read_text("utf-8")
    assert all(f"`{part}`" in page for part in parts_of(TEMPLATE))
