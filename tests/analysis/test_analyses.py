"""Known effects go through tables, models and contrasts and come back; structures and families are the stated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from analysis import load
from analysis.accuracy import analyse_accuracy
from analysis.contrasts import averaged_probability
from analysis.cost import analyse_time
from analysis.descriptives import describe
from analysis.families import corrected
from analysis.planned import plans
from analysis.random_structure import RandomTerm, formula, reduced
from analysis.recovery_check import recovered, recovery_plans
from analysis.results import Analysis, Contrast
from tests.analysis.conftest import Make
from tests.analysis.letter_study import ACCURACY, PLANNED, TRUTH, study_rows, write_handover


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    rows = study_rows(human=24, models=("restorer",), items=24, seed=5)
    tables = load(write_handover(tmp_path_factory.mktemp("joint"), rows, planned=PLANNED))
    return analyse_accuracy(plans(tables)[0], tables)


def test_effects_put_into_simulated_readers_come_back(tmp_path: Path) -> None:
    rows = study_rows(simulated=32, items=32, timeouts=0.0, seed=11)
    tables = load(write_handover(tmp_path, rows, truth=TRUTH))
    for plan in recovery_plans(tables):
        if plan.measure.name == "rt":
            continue
        run = analyse_accuracy if plan.measure.name == "correct" else analyse_time
        found = recovered(run(plan, tables), tables)
        effects = [one for one in found if one.covered is not None]
        assert len(effects) == 4
        assert all(one.covered for one in effects), [
            (one.label, one.truth, one.low, one.high) for one in effects
        ]
        spreads = {one.label: one for one in found if one.covered is None}
        for name in ("SD of participants", "SD of items"):
            assert spreads[name].estimate == pytest.approx(spreads[name].truth, rel=0.5)


def test_a_model_is_one_level_without_participant_variance(joint: Analysis) -> None:
    assert joint.model is not None
    first = joint.model.steps[0].formula
    assert first == (
        "correct ~ reader_group * position + (0 + people + people_initial + people_internal + people_final | participant)"
        " + (1 + model | item) + (0 + people_intact + people_initial + people_internal + people_final || item_condition)"
    )
    assert [one.term for one in joint.model.coefficients][:2] == ["(Intercept)", "reader_grouprestorer"]
    assert joint.model.rows == 24 * 24 + 96


def test_people_alone_start_with_a_slope_by_participant(handover: Make) -> None:
    tables = load(handover(human=12, items=16))
    analysis = analyse_accuracy(plans(tables)[0], tables)
    assert analysis.model is not None
    assert analysis.model.steps[0].formula == (
        "correct ~ position + (1 + position | participant) + (1 | item)"
        " + (0 + position_intact + position_initial + position_internal + position_final || item_condition)"
    )


def test_contrasts_are_the_differences_of_the_models_own_cells(joint: Analysis) -> None:
    assert joint.model is not None
    b = {one.term: one.estimate for one in joint.model.coefficients}
    found = {(one.label, one.groups): one for one in joint.contrasts}
    people = found["initial − internal", ("human",)]
    both = found["initial − internal", ("human", "restorer")]
    assert people.estimate == pytest.approx(b["positioninitial"] - b["positioninternal"])
    extra = b["reader_grouprestorer:positioninitial"] - b["reader_grouprestorer:positioninternal"]
    assert both.estimate == pytest.approx(-extra)
    restorer = found["initial − internal", ("restorer",)]
    assert people.estimate - restorer.estimate == pytest.approx(both.estimate)
    assert people.points is not None and restorer.points is not None
    assert both.points == pytest.approx(people.points - restorer.points)


def test_points_are_near_the_raw_difference_in_percent(tmp_path: Path) -> None:
    tables = load(
        write_handover(
            tmp_path, study_rows(human=24, models=("restorer",), items=24, seed=5), planned=PLANNED
        )
    )
    plan = plans(tables)[0]
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    cells = describe(used, plan.measure, "position", plan.levels)
    raw = {(cell.group, cell.level): 100 * cell.mean for cell in cells}
    within = [one for one in analyse_accuracy(plan, tables).contrasts if not one.between]
    assert len(within) == 4
    for one in within:
        (group,) = one.groups
        assert one.points == pytest.approx(raw[group, one.first] - raw[group, one.second], abs=3)
        assert one.points_low is not None and one.points_high is not None
        assert one.points_low < one.points < one.points_high


def test_a_planned_family_is_one_difference_over_its_groups(joint: Analysis) -> None:
    assert joint.correction == "Holm"
    for one in joint.contrasts:
        assert one.family == (1 if one.between else 2)
        assert one.p_adjusted >= one.p


def test_holm_and_benjamini_hochberg_adjust_as_defined() -> None:
    blank = Contrast("a", "b", ("g",), 1, 1, 1, None, 0.01, 0, 2, 0.01, 1)
    family = [replace(blank, p=p) for p in (0.01, 0.04, 0.03)]
    assert [one.p_adjusted for one in corrected(family, "holm")] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.p_adjusted for one in corrected(family, "BH")] == pytest.approx([0.03, 0.04, 0.04])


@pytest.mark.parametrize(("eta", "variance"), [(0.0, 1.0), (2.0, 0.5), (-3.0, 4.0), (1.0, 0.0)])
def test_probabilities_are_averaged_over_the_random_effects(eta: float, variance: float) -> None:
    mean, slope = averaged_probability(eta, variance)
    sd = max(np.sqrt(variance), 1e-6)
    exact, _ = integrate.quad(
        lambda x: special.expit(x) * stats.norm.pdf(x, eta, sd), eta - 10 * sd, eta + 10 * sd, points=[eta]
    )
    assert mean == pytest.approx(exact, abs=1e-6)
    step = 1e-4
    change = averaged_probability(eta + step, variance)[0] - averaged_probability(eta - step, variance)[0]
    assert slope == pytest.approx(change / (2 * step), abs=1e-6)


def test_times_outside_the_studys_bounds_are_counted_and_left_out(handover: Make) -> None:
    rows = study_rows(human=8, items=16, timeouts=0.0)
    test = rows.index[~rows["is_practice"].astype(bool)]
    rows.loc[test[:3], "reading_time"] = [50.0, 90_000.0, 70_000.0]
    exclude = {"trials": {"reading_time": "outside 200 ms to 60 s"}}
    tables = load(handover(rows, dictionary={"exclude": exclude}))
    plan = next(plan for plan in plans(tables) if plan.measure.name == "reading_time")
    analysis = analyse_time(plan, tables)
    assert analysis.model is not None and analysis.model.rows == 8 * 16 - 3
    assert any("3 of 128 times, outside the study's bounds" in remark for remark in analysis.remarks)


def test_right_and_wrong_answers_are_both_in_the_time_model(handover: Make) -> None:
    tables = load(handover(human=8, items=16, timeouts=0.0))
    plan = next(plan for plan in plans(tables) if plan.measure.name == "reading_time")
    analysis = analyse_time(plan, tables)
    assert analysis.model is not None and analysis.model.rows == 128


def test_repeated_answers_of_a_model_share_their_items_deviations(handover: Make) -> None:
    rows = study_rows(human=8, models=("restorer",), items=16)
    machine = rows[rows["reader_kind"] == "model"]
    draw = np.random.default_rng(4)
    more = []
    for variant in range(2, 7):
        own = machine.assign(prompt_variant=variant, session_id=f"variant-{variant}")
        keep = draw.random(len(own)) < 0.85
        own["correct"] = np.where(keep, own["correct"].astype(bool), ~own["correct"].astype(bool))
        more.append(own)
    tables = load(handover(pd.concat([rows, *more]), dictionary={"planned": PLANNED}))
    analysis = analyse_accuracy(plans(tables)[0], tables)
    assert analysis.model is not None
    # of one model, what is particular to an item in a condition is what the condition does to it in models
    assert "(1 + model | item_condition)" in analysis.model.steps[0].formula
    assert "(0 + model | prompt)" in analysis.model.steps[0].formula


def test_a_model_that_answers_items_alike_in_every_condition_keeps_its_direction(handover: Make) -> None:
    rows = study_rows(human=24, models=("restorer",), items=32, seed=9)
    machine = (rows["reader_kind"] == "model") & ~rows["is_practice"].astype(bool)
    item = rows["item_id"].str.removeprefix("s").where(machine, "0").astype(int)
    rows.loc[machine, "correct"] = (item > 10)[machine]
    lapse = machine & (item % 8 == 0) & (rows["position"] == "final")
    lucky = machine & (item % 8 == 1) & (rows["position"] != "final")
    rows.loc[lapse, "correct"], rows.loc[lucky, "correct"] = False, True
    tables = load(handover(rows, dictionary={"planned": PLANNED}))
    analysis = analyse_accuracy(plans(tables)[0], tables)
    assert analysis.model is not None
    used = tables.trials[tables.trials["excluded_reason"].isna() & (tables.trials["position"] == "intact")]
    shares = used.assign(correct=used["correct"].fillna(0.0)).groupby("reader_group")["correct"].mean()
    assert shares["restorer"] < shares["human"]
    b = {one.term: one for one in analysis.model.coefficients}
    assert b["reader_grouprestorer"].estimate < 0
    assert any("models' own variance dropped" in step.verdict for step in analysis.model.steps)
    assert any("answers most items alike" in text for text in analysis.model.warnings)


class TestReductionRule:
    """A singular or unfinished fit is reduced in stated steps."""

    slopes = RandomTerm("participant", "1", "position", ("position_a", "position_b"), "correlated", "")
    items = RandomTerm("item", "1", "", (), "intercept", "")

    def test_correlations_go_first(self) -> None:
        terms, told = reduced([self.slopes, self.items], {}, {"participant"}, True)
        assert formula("y", "x", terms) == "y ~ x + (1 + position_a + position_b || participant) + (1 | item)"
        assert told == "participant: correlations dropped"

    def test_then_slopes_without_variance(self) -> None:
        uncorrelated = replace(self.slopes, state="uncorrelated")
        terms, told = reduced(
            [uncorrelated, self.items], {"participant": ["position_b"]}, {"participant"}, True
        )
        assert terms[0].text() == "(1 + position_a || participant)"
        assert "position_b" in told

    def test_without_convergence_all_slopes_go(self) -> None:
        uncorrelated = replace(self.slopes, state="uncorrelated")
        terms, _ = reduced([uncorrelated, self.items], {}, {"participant", "item"}, False)
        assert [term.text() for term in terms] == ["(1 | participant)", "(1 | item)"]

    def test_an_intercept_is_never_taken_away_in_silence(self) -> None:
        plain = replace(self.slopes, state="intercept", columns=())
        terms, told = reduced([plain, self.items], {"item": ["(Intercept)"]}, {"item"}, True)
        assert terms == [plain, self.items]
        assert told == ""

    def test_every_step_is_kept(self, joint: Analysis) -> None:
        assert joint.model is not None
        steps = joint.model.steps
        assert steps[-1].formula == joint.model.formula
        assert all("dropped" in step.verdict for step in steps[:-1])
        assert "reported" in steps[-1].verdict


def test_known_accuracy_effects_have_the_right_order(joint: Analysis) -> None:
    assert joint.model is not None
    b = {one.term: one.estimate for one in joint.model.coefficients}
    assert b["positioninitial"] < b["positioninternal"] < 0
    assert b["(Intercept)"] == pytest.approx(ACCURACY["intercept"], abs=0.7)
