"""Power: known power comes back, and nothing is found where nothing is."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from analysis.plan import MEASURES, OF_MODELS, Bound, LevelDifference, Plan
from analysis.power.assumptions import EffectStatement, assumed, without_effects
from analysis.power.curves import needed, power_table, tell, write
from analysis.power.expected import expected_precision, items_needed
from analysis.power.simulation import (
    Layout,
    SimulatedDesign,
    SimulationQuestion,
    Sizes,
    grid,
    simulate,
    sizes_of,
)
from analysis.processes import run_tasks
from stimuli.errors import UserError

SWAPPED = (LevelDifference("swapped", "intact"),)
TIMES = Plan("reading", True, MEASURES["rt"], "spelling", ("intact", "swapped"), ("human",), SWAPPED)
ACCURACY = replace(TIMES, name="comprehension", measure=MEASURES["correct"])
BOTH = replace(ACCURACY, groups=("human", "gpt"), equivalence=Bound(20.0, "points", "20 points"))
KINDS = {"human": "human", "gpt": "model"}
SLOPE, ITEM_SLOPE, RESIDUAL = 0.2, 0.1, 0.2


def of_times(effect: float, layout: Layout = "crossed", seed: int = 5) -> SimulationQuestion:
    """People's log times with a given effect: slopes scatter enough for the model to be reduced rarely."""
    spreads = {"participant": 0.2, "participant_slope": SLOPE, "item": 0.1, "residual": RESIDUAL}
    spreads["item_slope"] = ITEM_SLOPE
    given = [
        EffectStatement("mean", "human", "intact", 6.5, "log_ms"),
        EffectStatement("effect", "human", "swapped", effect, "log"),
    ]
    given += [EffectStatement("sd", name, "", value) for name, value in spreads.items()]
    return SimulationQuestion(TIMES, assumed(TIMES, {"human": "human"}, given, "test"), layout, seed)


def of_accuracy(plan: Plan = BOTH, human: float = 78.0, gpt: float = 85.0) -> SimulationQuestion:
    means = {"human": (88.0, human), "gpt": (90.0, gpt)}
    given = [
        EffectStatement("mean", group, level, value)
        for group in plan.groups
        for level, value in zip(plan.levels, means[group], strict=True)
    ]
    given += [EffectStatement("sd", name, "", 0.3) for name in ("item_slope", "item_slope_models")]
    kinds = {group: KINDS[group] for group in plan.groups}
    return SimulationQuestion(plan, assumed(plan, kinds, given, "test"), "latin_square", 3)


def run(question: SimulationQuestion, sizes: list[Sizes], studies: int, processes: int = 1) -> pd.DataFrame:
    outcomes = simulate(question, sizes, studies, processes=processes)
    return power_table(question.plan, question.assumptions, outcomes)


def quasi_f(values: np.ndarray) -> float:
    """Return p of the difference of two conditions over random participants and items (Clark, 1973).

    ``values`` has shape (participants, items, 2). Mean squares of participants × condition and items × condition, less that
    of the residual, are what the difference varies by; Satterthwaite's degrees of freedom.
    """
    participants, items, _ = values.shape
    own = values - values.mean(axis=2, keepdims=True)
    effect = own.mean(axis=(0, 1))
    by_person, by_item = own.mean(axis=1), own.mean(axis=0)
    of_persons = items * ((by_person - effect) ** 2).sum() / (participants - 1)
    of_items = participants * ((by_item - effect) ** 2).sum() / (items - 1)
    cells = (participants - 1) * (items - 1)
    both = values.mean(axis=2)
    rest = both - both.mean(axis=1, keepdims=True) - both.mean(axis=0) + both.mean()
    left = own - by_person[:, None] - by_item + effect
    residual = ((left**2).sum() + 2 * (rest**2).sum()) / (2 * cells)
    assert min(of_persons, of_items) > residual
    size = of_persons + of_items - residual
    parts = (of_persons**2 / (participants - 1), of_items**2 / (items - 1), residual**2 / (2 * cells))
    df = size**2 / sum(parts)
    t = (effect[1] - effect[0]) / np.sqrt(2 * size / (participants * items))
    return float(2 * stats.t.sf(abs(t), df))


def test_each_p_of_a_crossed_design_is_that_of_the_quasi_f_test() -> None:
    study = SimulatedDesign(of_times(0.1), Sizes(16, 8))
    compared = 0
    for number in range(8):
        rows = study.table.assign(y=study.draw(number))
        wide = rows.pivot_table(index=["reader", "item_id"], columns="spelling", values="y")
        values = wide[["intact", "swapped"]].to_numpy().reshape(16, 8, 2)
        outcome = study.simulate(number)
        (found,) = outcome.found
        if outcome.steps == 1:
            p = quasi_f(values)
            assert found.p == pytest.approx(p, rel=2e-3)
            compared += 1
    assert compared >= 4


@pytest.mark.full
def test_power_of_a_crossed_contrast_is_the_analytic_one() -> None:
    """The contrast of a crossed design varies over participants and items by slopes and residual."""
    fits, participants, items, effect = 150, 16, 8, 0.18
    table = run(of_times(effect), [Sizes(participants, items)], fits)
    left = 2 * RESIDUAL**2 / (participants * items)
    of_persons, of_items = SLOPE**2 / participants + left, ITEM_SLOPE**2 / items + left
    size = of_persons + of_items - left
    parts = (of_persons**2 / (participants - 1), of_items**2 / (items - 1))
    df = size**2 / (sum(parts) + left**2 / (2 * (participants - 1) * (items - 1)))
    critical, centre = stats.t.ppf(0.975, df), effect / np.sqrt(size)
    exact = float(stats.nct.sf(critical, df, centre) + stats.nct.cdf(-critical, df, centre))
    assert 0.6 < exact < 0.9
    assert abs(table["power"][0] - exact) < 3 * np.sqrt(exact * (1 - exact) / fits)
    assert table["power_low"][0] < exact < table["power_high"][0]


def test_exclusions_of_a_plan_leave_the_drawn_trials_as_they_are() -> None:
    """A plan that leaves out wrong answers or slow trials ended in a traceback."""
    question = of_times(0.1)
    of_times_and_sessions = {"trials": {"rt": "outside 200 ms to 6 s"}, "sessions": {"too_fast": "above 20%"}}
    excluding = replace(question, plan=replace(TIMES, exclude={**of_times_and_sessions, "answers": "wrong"}))
    sizes = Sizes(participants=8, items=8)
    assert SimulatedDesign(excluding, sizes).data.rows.equals(SimulatedDesign(question, sizes).data.rows)


@pytest.mark.full
def test_a_null_effect_is_found_as_often_as_the_level_says() -> None:
    question = of_times(0.2, "latin_square")
    null = replace(question, assumptions=without_effects(question.assumptions, TIMES))
    table = run(null, [Sizes(12, 12)], 200)
    low, high = stats.binom.ppf([0.001, 0.999], 200, 0.05)
    assert low <= table["found"][0] <= high
    assert table["true_effect"][0] == 0
    assert np.isnan(table["wrong_sign"][0])


def test_accuracy_holds_the_level_as_one_family_and_finds_what_is_there() -> None:
    question = of_accuracy()
    null = replace(question, assumptions=without_effects(question.assumptions, BOTH))
    table = run(null, [Sizes(24, 24)], 100)
    own = table[table["kind"] == "difference"]
    most = stats.binom.ppf(0.999, 100, 0.05) / 100
    assert (own["power_unadjusted"] <= most).all() and own["power"].sum() <= most
    assert (own["power"] <= own["power_unadjusted"]).all() and own["power_unadjusted"].max() > 0.01
    assert (own["mean_estimate"].abs() < 4 * own["mean_se"] / np.sqrt(100)).all() and (
        own["true_effect"] == 0
    ).all()
    alike = table[table["kind"] == "equivalence"]["power"].item()
    assert alike > run(question, [Sizes(24, 24)], 40).set_index("kind").loc["equivalence", "power"]


GRID = grid((8,), (8, 12), (1,), (1,))


@pytest.mark.full
def test_two_processes_give_the_same_table_as_one() -> None:
    one, two = (run(of_accuracy(), GRID, 10, processes=many) for many in (1, 2))
    pd.testing.assert_frame_equal(two, one, check_exact=True)


@pytest.mark.parametrize(("studies", "processes", "told"), [(0, 1, "studies is 0"), (3, 0, "processes is 0")])
def test_impossible_runs_are_refused(studies: int, processes: int, told: str) -> None:
    with pytest.raises(UserError, match=told):
        simulate(of_times(0.1), [Sizes(4, 4)], studies, processes=processes)


@pytest.mark.parametrize("layout", ["latin_square", "crossed", "between_items", "between_participants"])
def test_the_expected_precision_is_that_of_simulated_studies(layout: Layout) -> None:
    means = [EffectStatement("mean", group, level, 75.0) for group in KINDS for level in BOTH.levels]
    truth, size = assumed(BOTH, KINDS, means, "test"), Sizes(32, 40)
    expected = expected_precision(BOTH, truth, size, layout, 3)
    table = power_table(BOTH, truth, simulate(SimulationQuestion(BOTH, truth, layout, 1), [size], 40))
    drawn = table[table["kind"] == "difference"]["mean_se"].tolist()
    assert [one.se for one in expected] == pytest.approx(drawn, rel=0.08)
    assert [one.groups for one in expected] == [("human",), ("gpt",), ("human", "gpt")]
    between = expected[-1]
    assert between.equivalence(between.reachable_bound(1), 1) == pytest.approx(0.8)
    assert between.detectable > between.half_width > 1.96 * between.se
    wide = items_needed(BOTH, truth, size, layout, between.reachable_bound(1) / 2, (3, 1))
    assert wide is not None and wide > 3 * size.items
    assert items_needed(BOTH, truth, size, layout, 0.1, (3, 1)) is None


def test_drawn_answers_have_the_means_that_were_given() -> None:
    study = SimulatedDesign(replace(of_accuracy(), layout="crossed"), Sizes(4, 200))
    cells = study.table.groupby(["reader_group", "spelling"]).indices
    shares = np.array([[y[rows].mean() for rows in cells.values()] for y in map(study.draw, range(600))])
    means = {
        ("human", "intact"): 0.88,
        ("human", "swapped"): 0.78,
        ("gpt", "intact"): 0.9,
        ("gpt", "swapped"): 0.85,
    }
    error = shares.std(axis=0) / np.sqrt(600)
    for place, cell in enumerate(cells):
        assert abs(shares[:, place].mean() - means[cell]) < 3.5 * error[place]
    effect = EffectStatement("effect", "human", "swapped", 50.0)
    given = [EffectStatement("mean", "human", "intact", 900.0), effect]
    times = assumed(TIMES, {"human": "human"}, given, "test")
    study = SimulatedDesign(SimulationQuestion(TIMES, times, "crossed", 1), Sizes(400, 200))
    drawn = np.exp(study.table.assign(y=study.draw(0)).set_index("spelling")["y"]).groupby("spelling").mean()
    assert drawn["intact"] == pytest.approx(900, rel=0.05)
    assert drawn["swapped"] - drawn["intact"] == pytest.approx(50, abs=20)


def curve(powers: list[float], sizes: list[int], studies: int = 1000) -> pd.DataFrame:
    found = [round(studies * power) for power in powers]
    table = pd.DataFrame({"participants": sizes, "found": found}).assign(studies=studies, items=10)
    return table.assign(kind="difference", contrast="a − b", readers="human", prompts=1, replicates=1)


def test_the_needed_number_is_that_of_the_true_curve() -> None:
    sizes = [10, 20, 40, 60, 80]
    powers = [float(TTestPower().power(0.5, n, 0.05)) for n in sizes]
    exact = TTestPower().solve_power(0.5, power=0.8, alpha=0.05)
    (one,) = needed(curve(powers, sizes), 0.8).to_dict("records")
    assert one["reached"] == "yes"
    assert one["number"] == pytest.approx(exact, abs=2)
    assert one["low"] < exact < one["high"]
    few = needed(curve(powers, sizes, studies=60), 0.8).to_dict("records")[0]
    assert few["high"] - few["low"] > one["high"] - one["low"]


def test_a_power_out_of_reach_or_reached_at_once_is_said_so() -> None:
    far = needed(curve([0.1, 0.2], [10, 20]), 0.8).to_dict("records")[0]
    assert far["reached"] == "no" and np.isnan([far["number"], far["high"]]).all()
    near = needed(curve([0.9, 0.99], [10, 20]), 0.8).to_dict("records")[0]
    assert (near["reached"], near["number"]) == ("at the smallest", 10)
    assert needed(curve([0.9], [10]), 0.8).empty
    with pytest.raises(UserError, match="between 0 and 1"):
        needed(curve([0.1, 0.2], [10, 20]), 1.0)


def test_results_are_written_as_tables_and_a_figure(tmp_path: Path) -> None:
    question = of_accuracy()
    outcomes = simulate(question, GRID, 30)
    told = tell(question, outcomes, 0.6)
    paths = write(told, tmp_path)
    assert {path.suffix for path in paths} == {".csv", ".json", ".svg", ".png"}
    table = power_table(question.plan, question.assumptions, outcomes)
    assert pd.read_csv(paths[0])["found"].tolist() == table["found"].tolist()
    everything = json.loads(paths[2].read_text("utf-8"))
    assert everything["power"][0]["studies"] == 30
    assert everything["question"]["layout"] == "latin_square"
    assert re.search("Power .*items", paths[3].read_text("utf-8"))
    text = told.text()
    assert "60 simulated studies" in text
    assert "power of 0.6" in text and re.search(r"participant .*0\.71", text)


MODELS = replace(ACCURACY, name="words", groups=("big", "small"))
OF_TWO = {"big": "model", "small": "model"}


def of_models(measure: str, unit: str, **spreads: float) -> SimulationQuestion:
    plan = replace(MODELS, measure=OF_MODELS[measure])
    given = [EffectStatement("mean", group, level, value) for group, level, value in
             (("big", "intact", 40.0), ("big", "swapped", 52.0), ("small", "intact", 30.0), ("small", "swapped", 30.0))]  # fmt: skip
    given += [EffectStatement("sd", name, "", value, unit) for name, value in spreads.items()]
    return SimulationQuestion(plan, assumed(plan, OF_TWO, given, "test"), "latin_square", 7)


@pytest.mark.parametrize(
    ("question", "effect"),
    [
        (of_models("completion_tokens", "log"), np.log(52 / 40)),
        (of_models("latency_ms", "log", item=0.2), np.log(52 / 40)),
        (of_models("surprisal", "bits", item=6.0, item_slope=4.0, residual=3.0), 12.0),
    ],
)
def test_tokens_latency_and_surprisal_of_models_are_simulated_without_participants(
    question: SimulationQuestion, effect: float
) -> None:
    sizes = sizes_of(question.plan, OF_TWO, grid((20, 40), (16,), (1,), (2,)))
    repeats = 1 if question.plan.measure.name == "surprisal" else 2
    assert [one.key for one in sizes] == [f"0x16x1x{repeats}"]
    outcomes = simulate(question, sizes, 5)
    assert all(one.fitted for one in outcomes)
    table = power_table(question.plan, question.assumptions, outcomes).set_index("readers")
    assert table.loc["big", "true_effect"] == pytest.approx(effect)
    # five studies: the mean of their estimates lies within four of its standard errors
    near = 4 * table.loc["big", "mean_se"] / 5**0.5
    assert table.loc["big", "mean_estimate"] == pytest.approx(effect, abs=near)
    assert table.loc["big", "power"] > table.loc["small", "power"]
    text = tell(question, outcomes, 0.8).text()
    measure = question.plan.measure
    means = measure.unit if measure.scale == "raw" else f"geometric means, {measure.unit}"
    heading = text.split("Power\n")[1].split("\n")[0]
    assert f"Assumed means ({means})" in text and "items" in heading and "participants" not in heading


def test_the_null_is_one_in_points_also_where_conditions_scatter_differently() -> None:
    given = [EffectStatement("sd", "participant_slope", "", 2.0)]
    given += [EffectStatement("mean", group, level, 90.0) for group in KINDS for level in BOTH.levels]
    truth = without_effects(assumed(BOTH, KINDS, given, "test"), BOTH)
    assert truth.cells["human", "intact"] < truth.cells["human", "swapped"]
    assert all(truth.mean(BOTH, *cell) == pytest.approx(90) for cell in truth.cells)


def product(shared: int, task: int) -> int:
    return shared * task


def end(shared: int, task: int) -> int:
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_task_is_done_once(processes: int) -> None:
    assert sorted(run_tasks(product, 3, range(5), processes)) == [0, 3, 6, 9, 12]


def test_a_process_that_ends_in_its_work_names_the_remedy() -> None:
    with pytest.raises(UserError, match="--processes"):
        list(run_tasks(end, 3, range(2), 2))
