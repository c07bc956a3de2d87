"""A planned contrast without each participant and item is what the estimate without them says."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from analysis import load
from analysis.plan_runner import carry_out, carry_out_all
from analysis.planned import plans
from analysis.report.chapters import model_checks
from analysis.report.inline import plain_text
from analysis.shares import influences
from tests.analysis.chapters import chapter_of, material_of, words_in
from tests.analysis.conftest import Make, planned_analyses
from tests.analysis.letter_study import PLANNED, comparison, study_rows


def test_shares_are_estimated_without_each_unit(handover: Make) -> None:
    tables = load(
        handover(study_rows(human=10, items=8, models=("restorer",)), dictionary={"planned": PLANNED})
    )
    plan = next(one for one in plans(tables) if one.measure.name == "correct")
    whole = carry_out(plan, tables, companion=False)
    changes = influences(whole, tables)
    assert {unit: len(table) for unit, table in changes.items()} == {"participant": 10, "item": 8}
    for unit, column, name in (("participant", "reader", "P004"), ("item", "item_id", "s03")):
        trials = tables.trials[tables.trials[column] != name]
        without = carry_out(plan, replace(tables, trials=trials), companion=False)
        expected = [
            (other.estimate - one.estimate) / one.se
            for one, other in zip(whole.contrasts, without.contrasts, strict=True)
        ]
        (found,) = [row for label, row in changes[unit].iterrows() if str(label).endswith(name)]
        assert found.to_numpy() == pytest.approx(np.array(expected))


def test_a_model_that_is_too_large_to_be_checked_is_named(
    handover: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_checks, "MOST_ROWS", 50)
    tables = load(handover(study_rows(human=10, items=8), dictionary={"planned": PLANNED}))
    chapter = chapter_of(model_checks.write, material_of(tables, carry_out_all(plans(tables), tables)))
    assert len(chapter.blocks) == 2
    assert re.search(r"\b50 \w+ \(80\)", words_in(chapter))
    assert not any(chapter.methods), "nothing was left out"


def test_the_chapter_names_the_most_influential_participant(handover: Make) -> None:
    rows = study_rows(human=12, items=12, models=("restorer",))
    tables = load(handover(rows, dictionary={"planned": PLANNED}))
    analyses = carry_out_all(plans(tables), tables)
    chapter = chapter_of(model_checks.write, material_of(tables, analyses))
    said = [plain_text(one) for one in chapter.blocks if isinstance(one, str)]
    assert len(said) == 2 and all(re.search(r"participant .*\d SE \(", one) for one in said)
    of_accuracy = [one for one in analyses if one.plan.measure.name == "correct"]
    without_times = chapter_of(model_checks.write, material_of(tables, of_accuracy))
    assert ["for times" in " ".join(one.methods) for one in (chapter, without_times)] == [True, False]
    # the likelihood of the first model has no maximum, so that there is nothing to check
    assert ["uniformity p" in one for one in said] == [False, True]
    assert all(" ([[figure:model_checks_" in one and one.endswith(".") for one in said), (
        "the figure is named first"
    )


def test_the_chapter_names_the_contrast_whose_outcome_depends_on_single_units(handover: Make) -> None:
    tables = load(
        handover(
            study_rows(human=6, items=8),
            dictionary={"planned": comparison("initial - internal", "final - internal")},
        )
    )
    (analysis,) = planned_analyses(tables, companion=False)
    first, second = analysis.contrasts
    barely = replace(first, statistic=2.0, reach=1.99)
    far = replace(second, statistic=99.0, reach=2.0)
    chapter = chapter_of(
        model_checks.write, material_of(tables, [replace(analysis, contrasts=(barely, far))])
    )
    (said,) = (plain_text(one) for one in chapter.blocks if isinstance(one, str))
    assert re.search(
        r"the outcome changes for initial − internal \(people\) if (any one of \w+ participants|participant P)",
        said,
    ), said
    assert "final" not in said.partition("the outcome changes")[2]


def test_residuals_that_depart_from_a_model_are_told_of_its_plans(
    handover: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = load(handover(study_rows(human=10, items=8), dictionary={"planned": PLANNED}))
    analyses = carry_out_all(plans(tables), tables)
    for p, departed in ((0.2, ()), (0.004, ("comprehension", "reading"))):
        checked = SimpleNamespace(
            p_uniform=p, p_dispersion=0.9, p_outliers=0.9, dispersion=1.0, outliers=3, residuals=None
        )
        monkeypatch.setattr(model_checks, "simulated_residuals", lambda *_, checked=checked, **__: checked)
        chapter = chapter_of(model_checks.write, material_of(tables, analyses))
        assert chapter.departures == departed


def test_a_mixed_model_that_two_plans_share_is_checked_once_and_items_have_one_name(handover: Make) -> None:
    rows = study_rows(human=16, items=16)
    of_people = PLANNED["comprehension"] | {"between": ["human"]}
    shared = {
        name: of_people | {"contrasts": [contrast]}
        for name, contrast in (("first", "initial - internal"), ("second", "final - internal"))
    }
    tables = load(handover(rows, dictionary={"planned": shared | {"reading": PLANNED["reading"]}}))
    chapter = chapter_of(model_checks.write, material_of(tables, carry_out_all(plans(tables), tables)))
    said = [plain_text(one) for one in chapter.blocks if isinstance(one, str)]
    assert [one.count("uniformity") for one in said] == [1, 0, 1] and "first" in said[1]
    items = [re.findall(r"SE \(([^)]*)\)", one)[1] for one in said]
    assert all(item.startswith("s") and "/" not in item for item in items)
