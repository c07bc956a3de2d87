"""What people say of effects becomes what data are drawn from: by hand, by table, from a pilot, from a fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

from analysis import load
from analysis.contrasts import averaged_probability
from analysis.crossed_variance import EstimateLayout, ItemAnswers, model_means
from analysis.mixed import fit, margins
from analysis.plan import MEASURES, LevelDifference, Plan
from analysis.power.assumptions import (
    EffectStatement,
    assumed,
    from_mapping,
    from_option,
    from_table,
)
from analysis.power.pilots import from_fit_file, from_pilot, moments
from analysis.power.simulation import SimulatedDesign, SimulationQuestion, Sizes, grid, trials
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import ACCURACY, LEVELS, TIME, study_rows, write_handover

KINDS = {"human": "human", "gpt": "model"}
SWAPPED = (LevelDifference("swapped", "intact"),)
PLAN = Plan(
    "comprehension", True, MEASURES["correct"], "spelling", ("intact", "swapped"), ("human", "gpt"), SWAPPED
)
TIMES = replace(PLAN, name="reading", measure=MEASURES["reading_time"], groups=("human",))
Said = EffectStatement
CELLS = {
    ("human", "intact"): 90.0,
    ("human", "swapped"): 80.0,
    ("gpt", "intact"): 95.0,
    ("gpt", "swapped"): 85.0,
}
MEANS = [Said("mean", *cell, value) for cell, value in CELLS.items()]


def test_a_mean_in_percent_is_an_average_over_participants_and_items() -> None:
    found = assumed(PLAN, KINDS, MEANS, "test")
    for one in MEANS:
        spread = found.variance_in(PLAN, one.of, one.level)
        eta = found.cells[one.of, one.level]
        assert 100 * averaged_probability(eta, spread) == pytest.approx(one.value)
        assert found.mean(PLAN, one.of, one.level) == pytest.approx(one.value)
        assert eta > special.logit(one.value / 100)


@pytest.mark.parametrize(
    ("value", "unit", "difference"),
    [(-10.0, "points", None), (-0.7, "log_odds", -0.7), (0.5, "odds_ratio", np.log(0.5))],
)
def test_effects_are_counted_from_the_reference(value: float, unit: str, difference: float | None) -> None:
    found = assumed(PLAN, KINDS, [*MEANS, Said("effect", "human", "swapped", value, unit)], "test")
    if difference is None:
        assert found.mean(PLAN, "human", "swapped") == pytest.approx(80)
        assert found.effect(PLAN, PLAN.contrasts[0], ("human",)) == pytest.approx(-10)
        assert found.effect(PLAN, PLAN.contrasts[0], ("human", "gpt")) == pytest.approx(0, abs=1e-6)
    else:
        assert found.cells["human", "swapped"] - found.cells["human", "intact"] == pytest.approx(difference)


@pytest.mark.parametrize(
    ("value", "unit", "ratio"), [(10.0, "percent", 1.1), (1.1, "ratio", 1.1), (0.1, "log", np.exp(0.1))]
)
def test_effects_on_times_are_ratios(value: float, unit: str, ratio: float) -> None:
    given = [Said("mean", "human", "intact", 800.0), Said("effect", "human", "swapped", value, unit)]
    found = assumed(TIMES, {"human": "human"}, given, "test")
    assert np.exp(found.effect(TIMES, TIMES.contrasts[0], ("human",))) == pytest.approx(ratio)
    assert found.mean(TIMES, "human", "intact") < 800


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([Said("mean", "humans", "intact", 90)], "'human'"),
        ([Said("mean", "human", "intakt", 90)], "'intact'"),
        ([Said("mean", "human", "intact", 90, "ms")], "unit 'ms'"),
        ([Said("mean", "human", "intact", 100)], "both excluded"),
        ([Said("mean", "human", "intact", float("nan"))], "nan"),
        ([Said("mode", "human", "intact", 90)], "quantity 'mode'"),
        ([Said("effect", "human", "intact", 5)], "'intact' .*reference"),
        ([Said("effect", "human", "swapped", -5)], "human .*intact"),
        ([Said("sd", "participants", "", 1)], "'participant'"),
        ([Said("sd", "item", "", -1)], "0 or more"),
        ([Said("correlation", "item", "", 1.5)], "-1 and 1"),
        ([*MEANS[:3]], "gpt .*swapped"),
        ([*MEANS, Said("effect", "human", "swapped", -95)], "0 and 100"),
        ([*MEANS, Said("effect", "human", "swapped", -1, "odds_ratio")], "ratio"),
    ],
)
def test_what_makes_no_sense_is_told(given: list[EffectStatement], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assumed(PLAN, KINDS, given, "test")


TABLE = """\
quantity,of,condition,value,unit,source
mean,human,intact,93,percent,"Rayner et al. (2006), Table 1"
effect,human,swapped,-7,points,"Rayner et al. (2006), Table 1"
mean,gpt,intact,96,percent,pilot of the lab
effect,gpt,swapped,-2,points,pilot of the lab
sd,participant,,0.8,,Jaeger (2008)
"""


def test_a_table_of_the_literature_says_means_effects_and_spreads(tmp_path: Path) -> None:
    file = tmp_path / "effects.csv"
    file.write_text(TABLE, "utf-8")
    given = from_table(file)
    assert given[0].source == "Rayner et al. (2006), Table 1"
    found = assumed(PLAN, KINDS, given, "table")
    assert found.mean(PLAN, "human", "swapped") == pytest.approx(86)
    assert found.mean(PLAN, "gpt", "swapped") == pytest.approx(94)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("quantity,of", "quantity,who", "column 'of'"),
        ("93,percent", "viele,percent", "line 2: 'viele'"),
        (",pilot of the lab", ",", "line 4: .*source"),
        (TABLE.split("\n", 1)[1], "", "values"),
        ("human,intact", "hunan,intact", "line 2: reader 'hunan'"),
    ],
)
def test_faults_of_a_table_are_told_with_their_line(old: str, new: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "effects.csv"
    file.write_text(TABLE.replace(old, new), "utf-8")
    with pytest.raises(UserError, match=told):
        assumed(PLAN, KINDS, from_table(file), "table")


def test_a_file_by_hand_says_the_same_as_options() -> None:
    told = {
        "means": {"human": {"intact": 90}, "gpt": {"intact": 95, "swapped": 85}},
        "effects": {"human": {"swapped": -10}},
        "spreads": {"participant": 0.9},
        "correlations": {"participant": 0.2},
    }
    options = [("mean", "human:intact=90"), ("mean", "gpt:intact=95%"), ("mean", "gpt:swapped=85percent")]
    options += [
        ("effect", "human:swapped=-10points"),
        ("sd", "participant=0.9"),
        ("correlation", "participant=0.2"),
    ]
    by_file = assumed(PLAN, KINDS, from_mapping(told, "file"), "test")
    by_options = assumed(PLAN, KINDS, [from_option(*one) for one in options], "test")
    assert by_file.to_json() == by_options.to_json()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"mean": {}}, "'means'"),
        ({"means": {"human": 90}}, "mapping"),
        ({"means": {"human": {"intact": "high"}}}, "'high'"),
        ({"source": "me"}, "values"),
    ],
)
def test_faults_of_a_file_by_hand_are_told(told: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_mapping(told, "file")


def test_a_pilot_gives_the_effects_that_it_was_made_with(handover: Make) -> None:
    tables = load(handover(simulated=24, items=24, models=("restorer",)))
    plan = replace(PLAN, factor="position", levels=tuple(LEVELS), groups=("human", "restorer"))
    found = from_pilot(plan, tables, {"human": "human", "restorer": "model"})
    for level in LEVELS[1:]:
        effect = found.cells["human", level] - found.cells["human", "intact"]
        assert effect == pytest.approx(ACCURACY[level], abs=0.6)
    assert ("restorer", "initial") in found.cells
    assert any("Simulated readers" in one for one in found.remarks)
    study = trials(plan, found.kinds, Sizes(8, 8), "latin_square")
    assert set(study["reader_group"]) == {"human", "restorer"}


def test_a_pilot_of_times_brings_its_residual_and_open_groups_can_be_given(handover: Make) -> None:
    tables = load(handover(simulated=12, items=16))
    plan = replace(TIMES, factor="position", levels=tuple(LEVELS))
    found = from_pilot(plan, tables, {"human": "human"})
    assert found.sigma == pytest.approx(0.3, abs=0.05)
    effect = found.cells["human", "initial"] - found.cells["human", "intact"]
    assert effect == pytest.approx(TIME["initial"], abs=0.1)
    accuracy = replace(PLAN, factor="position", levels=tuple(LEVELS))
    known = from_pilot(accuracy, tables, KINDS)
    with pytest.raises(UserError, match=r"gpt .*intact"):
        assumed(accuracy, KINDS, [], "test", known)
    filled = assumed(accuracy, KINDS, [Said("mean", "gpt", c, 90) for c in LEVELS], "test", known)
    assert filled.mean(accuracy, "gpt", "final") == pytest.approx(90)
    with pytest.raises(UserError, match=r"pilot .*'item'"):
        assumed(accuracy, KINDS, [Said("sd", "item", "", 1)], "test", known)


@pytest.mark.parametrize("asked", [PLAN, TIMES])
def test_trials_of_a_pilot_alone_count_as_those_of_a_study(asked: Plan, tmp_path: Path) -> None:
    plan = replace(asked, factor="position", levels=tuple(LEVELS), groups=("human",))
    rows = study_rows(human=12, items=16)
    further = rows.assign(
        step_name="sure", trial_index=rows["trial_index"] + 1000, reading_time=9000.0, correct=False
    )
    apart = [rows.assign(**{flag: True}, correct=False, reading_time=9000.0, trial_index=rows["trial_index"] + offset)
             for offset, flag in ((2000, "is_practice"), (3000, "is_filler"), (4000, "is_attention_check"))]  # fmt: skip
    found = [
        from_pilot(
            plan, load(write_handover(tmp_path / str(pilot), pd.concat(parts).assign(is_pilot=pilot))), KINDS
        ).cells
        for pilot, parts in ((False, [rows]), (True, [rows, further, *apart]))
    ]
    assert found[0] == found[1]


def test_variances_come_from_a_pilot_by_moments() -> None:
    """Over ten pilots, means and covariances in log odds are those that the answers were drawn with."""
    spreads = {
        "participant": 1.0,
        "participant_slope": 0.5,
        "item": 0.9,
        "item_slope": 0.4,
        "item_models": 1.2,
    }
    given = [Said("sd", name, "", value) for name, value in spreads.items()]
    truth = assumed(PLAN, KINDS, [*MEANS, *given], "test")
    study = SimulatedDesign(SimulationQuestion(PLAN, truth, "latin_square", 1), Sizes(60, 100, 1, 5))
    rows = study.table
    people, model = rows[rows["reader_group"] == "human"], rows[rows["reader_group"] == "gpt"]
    items, readers = (tuple(pd.unique(names)) for names in (rows["item_id"], people["reader"]))
    layout = EstimateLayout(PLAN.levels, items, readers)
    made = []
    for number in range(10):
        y = study.draw(number)
        own = [people[name].to_numpy() for name in ("reader", "item_id", "spelling")]
        told = [model[name].to_numpy() for name in ("item_id", "spelling", "prompt_variant")]
        answers = ItemAnswers.of(y[people.index], *own, layout)
        made.append(moments({"human": answers}, {"gpt": model_means(y[model.index], *told, layout)}, layout))
    of_people, of_items = (np.mean([one.variance[place].cov for one in made], axis=0) for place in (0, 1))
    np.testing.assert_allclose(of_people, [[1.0, 1.0], [1.0, 1.25]], atol=0.3)
    exact = np.array([[0.89, 0.81], [0.81, 0.89]])
    np.testing.assert_allclose(of_items[:2, :2], exact, atol=0.3)
    np.testing.assert_allclose(of_items[:2, 2:], [[0.65, 0.54], [0.54, 0.65]], atol=0.3)
    assert of_items[2, 2] == pytest.approx(2.16, abs=0.8)
    for cell, exact_cell in truth.cells.items():
        assert np.mean([one.cells[cell] for one in made]) == pytest.approx(exact_cell, abs=0.35)


@pytest.fixture
def fitted(tmp_path: Path) -> tuple[Path, pd.DataFrame]:
    """A fit of people and a model as `wrods fit --json` prints it, and its cell means."""
    rng = np.random.default_rng(4)
    table = trials(PLAN, KINDS, Sizes(20, 20, 1, 2), "latin_square")
    table = table.assign(
        participant=table["reader"], item=table["item_id"], correct=rng.integers(0, 2, len(table))
    )
    levels = {"spelling": ["intact", "swapped"], "agent": ["human", "gpt"]}
    formula = "correct ~ agent * spelling + (1 | participant) + (1 | item)"
    found = fit(formula, table.assign(agent=table["reader_group"]), "binomial", levels=levels)
    file = tmp_path / "fit.json"
    file.write_text(json.dumps(found.to_json()), "utf-8")
    return file, margins(found, ["agent", "spelling"]).table()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"spellingswapped"', '"spelling1"', "level of spelling"),
        ('"group": "item"', '"group": "sentence"', "grouping column 'sentence'"),
        ('"binomial"', '"gaussian"', "gaussian"),
        ('"fixed"', '"fixes"', "`wrods fit --json`"),
        ('"link": "logit"', '"link": "probit"', "link probit"),
    ],
)
def test_a_fit_that_says_something_else_is_told(
    old: str, new: str, told: str, fitted: tuple[Path, pd.DataFrame]
) -> None:
    file, _ = fitted
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(UserError, match=told):
        from_fit_file(PLAN, file, KINDS)


def test_correlations_that_contradict_each_other_are_told() -> None:
    plan = replace(PLAN, levels=("intact", "a", "b", "c"))
    cells = [Said("mean", group, level, 90.0) for group in plan.groups for level in plan.levels]
    with pytest.raises(UserError, match="correlations of participant"):
        assumed(plan, KINDS, [*cells, Said("correlation", "participant", "", -1.0)], "test")


@pytest.mark.parametrize(("participants", "told"), [((1,), "participants: 1 "), ((), "participants")])
def test_sizes_that_are_none_are_told(participants: tuple[int, ...], told: str) -> None:
    with pytest.raises(UserError, match=told):
        grid(participants, (8,), (1,), (1,))
