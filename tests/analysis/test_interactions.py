"""Interactions of two factors: against lme4 and emmeans, in points, in words, where nothing is planned, and in power."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.mixed import Fit, VarianceComponent, fit, margins
from analysis.plan import CrossedFactors, LevelDifference, Plan, cell_name, read_contrast, remarks_about
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.power.assumptions import assumed, from_mapping
from analysis.power.curves import power_table
from analysis.power.pilots import from_fit_file
from analysis.power.simulation import SimulatedDesign, SimulationQuestion, grid, planned_of
from analysis.report.results import outcome
from analysis.report.results.tables import model_table
from analysis.results import Analysis, Contrast, EstimateWithTest
from stimuli.errors import UserError
from tests.analysis.crossed_study import FACTORS, INTERACTION, PLAN, crossed_rows, crossed_study
from tests.analysis.r_programs import lines_of_r

CROSSING = CrossedFactors(("item_type", "font"), (("word", "transposed"), ("plain", "cursive")))
CONTRASTS = [INTERACTION, "transposed - word in cursive", "transposed - word in plain", "transposed - word"]
PLANNED = {
    "together": {**PLAN, "contrasts": CONTRASTS, "direction": {INTERACTION: "less"}},
    "times": {**PLAN, "measure": "rt", "contrasts": CONTRASTS},
}


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, list[Analysis]]:
    tables = load(crossed_study(tmp_path_factory.mktemp("crossed"), crossed_rows(), PLANNED))
    return tables, carry_out_all(plans(tables), tables)


def by_label(analysis: Analysis) -> dict[str, Contrast]:
    return {one.label: one for one in analysis.contrasts}


# emmeans takes Kenward and Roger's degrees of freedom (526 for an average of times here, where lmerTest and we find
# Satterthwaite's 549) wherever pbkrtest is installed and no call asks for others, so the option is set for all calls.
R_PROGRAM = """
suppressMessages({library(lme4); library(lmerTest); library(emmeans)})
emm_options(lmer.df = "satterthwaite")
d <- read.csv("rows.csv", stringsAsFactors = FALSE)
d$item_type <- factor(d$item_type, c("word", "transposed")); d$font <- factor(d$font, c("plain", "cursive"))
a <- glmer(FORMULA_A, d, binomial, control = glmerControl("bobyqa", tolPwrss = 1e-11, optCtrl = list(rhoend = 1e-9)))
b <- lmer(FORMULA_B, d, control = lmerControl("bobyqa", optCtrl = list(rhoend = 1e-9)))
of <- function(m) {
  g <- emmeans(m, ~ item_type * font)
  told <- rbind(
    as.data.frame(contrast(g, interaction = "revpairwise"))[, c("estimate", "SE", "df", "p.value")],
    as.data.frame(contrast(g, "revpairwise", by = "font", adjust = "none"))[2:1, c("estimate", "SE", "df", "p.value")],
    as.data.frame(contrast(emmeans(m, ~ item_type), "revpairwise"))[, c("estimate", "SE", "df", "p.value")])
  told
}
write.csv(rbind(of(a), of(b)), "found.csv", row.names = FALSE)
"""


@pytest.mark.r
def test_interactions_simple_effects_and_averages_are_those_of_lme4_and_emmeans(
    carried: tuple[Tables, list[Analysis]], tmp_path: Path
) -> None:
    _, (accuracy, times) = carried
    assert accuracy.model is not None and times.model is not None
    rows = accuracy.of_model.rows.assign(log_rt=np.log(accuracy.of_model.rows["rt"]))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    program = R_PROGRAM.replace("FORMULA_A", accuracy.model.formula).replace("FORMULA_B", times.model.formula)
    lines_of_r(program, tmp_path)
    found = pd.read_csv(tmp_path / "found.csv")
    ours = [*accuracy.of_model.contrasts, *times.contrasts]
    assert [one.label for one in accuracy.contrasts] == [
        read_contrast(one, CROSSING.by_factor).label for one in CONTRASTS
    ]
    for one, (_, theirs) in zip(ours, found.iterrows(), strict=True):
        two_sided = 2 * min(one.p, 1 - one.p) if one.direction != "two-sided" else one.p
        assert one.estimate == pytest.approx(theirs["estimate"], abs=2e-3 * theirs["SE"])
        assert one.se == pytest.approx(theirs["SE"], rel=2e-3)
        assert two_sided == pytest.approx(theirs["p.value"], rel=2e-2, abs=1e-9)
        if one.df is not None:
            assert one.df == pytest.approx(theirs["df"], rel=1e-2)


def test_a_model_of_two_factors_begins_with_slopes_of_both_and_of_their_interaction(
    carried: tuple[Tables, list[Analysis]],
) -> None:
    for analysis in carried[1]:
        assert analysis.model is not None
        first = analysis.model.steps[0].formula
        assert "~ item_type * font + (1 + item_type * font | participant)" in first
        assert "item_condition" in first


def test_an_interaction_in_points_is_the_difference_of_its_simple_effects(
    carried: tuple[Tables, list[Analysis]],
) -> None:
    found = by_label(carried[1][0])
    whole, here, there, average = (found[read_contrast(one, CROSSING.by_factor).label] for one in CONTRASTS)
    assert average.estimate == pytest.approx((here.estimate + there.estimate) / 2)
    assert whole.estimate == pytest.approx(here.estimate - there.estimate)
    assert whole.simple == pytest.approx((here.estimate, there.estimate))
    assert whole.direction == "less" and whole.p < 0.01


def test_a_cell_that_people_lack_leaves_the_interaction_of_a_model_tested(tmp_path: Path) -> None:
    rows = crossed_rows(12, 16, models=("gpt",))
    lacks = (rows["item_type"] == "transposed") & (rows["font"] == "cursive") & (rows["reader"] != "gpt")
    plan = {**PLAN, "between": ["human", "gpt"]}
    tables = load(crossed_study(tmp_path, rows[~lacks], {"together": plan}))
    (analysis,) = carry_out_all(plans(tables), tables)
    found = {one.groups: one for one in analysis.contrasts}
    assert found["gpt",].estimable
    assert found["human",].left_out and found["human", "gpt"].left_out
    assert any(re.search("People: .*transposed/cursive", one) for one in analysis.remarks)
    assert analysis.companion is not None
    of_model = remarks_about(analysis.companion.remarks, "model", "uncorrelated slopes")
    others = set(analysis.companion.remarks) - set(of_model)
    assert of_model and set(of_model) <= set(analysis.remarks)
    assert others and not others & set(analysis.remarks), "what a companion leaves out is named once"


@pytest.mark.parametrize(
    ("simple", "described"),
    [
        ((0.3, 0.1), "larger"),
        ((-0.1, -0.3), "smaller"),
        ((0.1, -0.2), "different"),
        ((-0.1, 0.2), "different"),
    ],
)
def test_an_interaction_claims_no_direction_of_simple_effects_that_differ_in_sign(
    simple: tuple[float, float], described: str
) -> None:
    difference = LevelDifference("transposed", "word", at=("cursive", "plain"))
    tested = EstimateWithTest(0.2, 0.05, 4.0, None, 0.01, (0.1, 0.3))
    found = Contrast.of(difference, ("human",), tested, simple=simple)
    assert outcome(found, 0.05) == described


KINDS = {"human": "human", "gpt": "model"}


def test_interactions_are_explored_where_nothing_is_planned_and_cells_are_filled(tmp_path: Path) -> None:
    tables = load(crossed_study(tmp_path, crossed_rows(4, 8), {}))
    found = [one for one in plans(tables) if one.crossing is not None]
    assert [one.name for one in found] == [
        f"{it} by item_type × font" for it in ("accuracy", "response time")
    ]
    whole = (LevelDifference("transposed", "word", at=("cursive", "plain")),)
    assert [(one.contrasts, one.planned) for one in found] == [(whole, False)] * 2
    filled = tables.trials[tables.trials["item_type × font"] != "word/cursive"]
    assert all(one.crossing is None for one in plans(replace(tables, trials=filled)))


def powered(effects: dict[str, Any], layout: str = "latin_square") -> tuple[Plan, SimulationQuestion]:
    levels = {name: one["levels"] for name, one in FACTORS.items()}
    (plan,), _ = planned_of({"together": PLAN}, levels)
    truth = assumed(plan, {"human": "human"}, from_mapping(effects, "by hand"), "by hand")
    return plan, SimulationQuestion(plan, truth, layout, 1)


MEANS = {"human": {"word/plain": 93, "word/cursive": 91, "transposed/plain": 88}}
PUT_IN = {"means": MEANS, "effects": {"human": {INTERACTION: -20}}}


def test_an_interaction_put_in_by_hand_is_the_true_difference_of_differences() -> None:
    plan, question = powered(PUT_IN)
    (difference,) = plan.contrasts
    truth = question.assumptions
    assert truth.effect(plan, difference, ("human",)) == pytest.approx(-20.0, abs=1e-6)
    assert truth.mean(plan, "human", "transposed/cursive") == pytest.approx(88 + 91 - 93 - 20, abs=1e-6)
    log_odds = {**PUT_IN, "effect_unit": "log_odds", "effects": {"human": {INTERACTION: -1.0}}}
    plan, question = powered(log_odds)
    cells = question.assumptions.cells
    whole = sum(weight * cells["human", cell] for cell, weight in plan.weights(difference).items())
    assert whole == pytest.approx(-1.0)
    lacking = {"human": {"word/plain": 93, "word/cursive": 91}}
    with pytest.raises(UserError, match=r"human .*transposed/plain"):
        powered({**PUT_IN, "means": lacking})


FORMULA = "correct ~ reader_group * item_type * font + (1 + item_type * font | participant) + (1 | item)"


def fit_file(folder: Path, formula: str = FORMULA, models: tuple[str, ...] = ("gpt",)) -> tuple[Path, Fit]:
    """Return what `wrods fit --json` prints of a study of two factors, and the fit."""
    rows = crossed_rows(12, 16, models=models).rename(columns={"item_id": "item"})
    group = rows["reader"].where(rows["reader"] == "gpt", "human")
    rows = rows.assign(participant=rows["reader"], reader_group=group)
    levels = {name: one["levels"] for name, one in FACTORS.items()}
    if "reader_group" in formula:
        levels["reader_group"] = ["human", "gpt"]
    found = fit(formula, rows.assign(correct=rows["correct"].astype(float)), "binomial", levels=levels)
    (folder / "fit.json").write_text(json.dumps(found.to_json()), "utf-8")
    return folder / "fit.json", found


def planned_pair() -> Plan:
    levels = {name: one["levels"] for name, one in FACTORS.items()}
    (plan,), _ = planned_of({"together": {**PLAN, "between": ["human", "gpt"]}}, levels)
    return plan


def test_a_fit_of_two_factors_gives_the_cells_of_its_margins_and_the_variance_of_each(tmp_path: Path) -> None:
    file, found = fit_file(tmp_path)
    plan = planned_pair()
    truth = from_fit_file(plan, file, KINDS)
    for row in margins(found, ["reader_group", "item_type", "font"]).table().to_dict("records"):
        cell = cell_name(row["item_type"], row["font"])
        assert truth.cells[row["reader_group"], cell] == pytest.approx(row["estimate"], abs=1e-6)
    cov = {one.group: one.cov for one in found.variance}
    of_people, of_items = cov["participant"], cov["item"]
    for cell in CROSSING.cells:
        pair = zip(CROSSING.pair_of(cell), CROSSING.levels, strict=True)
        a, b = (float(level == own[1]) for level, own in pair)
        z = np.array([1.0, a, b, a * b])
        assert truth.variance_in(plan, "human", cell) == pytest.approx(z @ of_people @ z + of_items[0, 0])
        assert truth.variance_in(plan, "gpt", cell) == pytest.approx(of_items[0, 0])


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ("item_type + font", "term of transposed × cursive, .*together"),
        ("item_type", "cursive vs. plain, transposed × cursive"),
    ],
)
def test_a_fit_that_lacks_what_a_plan_compares_is_refused_with_the_mend(
    tmp_path: Path, fixed: str, said: str
) -> None:
    file, _ = fit_file(tmp_path, f"correct ~ {fixed} + (1 | participant) + (1 | item)", ())
    with pytest.raises(UserError, match=said) as told:
        from_fit_file(planned_pair(), file, KINDS)
    assert "item_type * font " in str(told.value.mend)
    assert "--levels item_type=word,transposed --levels font=plain,cursive" in str(told.value.mend)


def test_power_finds_an_interaction_that_was_put_in() -> None:
    plan, question = powered(PUT_IN)
    (sizes,) = grid((24,), (32,), (1,), (1,))
    study = SimulatedDesign(question, sizes)
    outcomes = [study.simulate(number) for number in range(30)]
    (row,) = power_table(plan, question.assumptions, outcomes).to_dict("records")
    assert row["contrast"] == "(transposed − word) × (cursive − plain)"
    assert abs(row["mean_estimate"] - row["true_effect"]) < 3 * row["mean_se"] / np.sqrt(30)
    assert row["true_effect"] < 0 and row["studies"] == 30


def test_model_tables_order_slopes_of_both_factors(
    carried: tuple[Tables, list[Analysis]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = carried[1][0].of_model
    names = ("(Intercept)", "item_type_transposed", "font_cursive", "item_type_transposed_font_cursive")
    terms = tuple(VarianceComponent("participant", (name,), np.eye(1)) for name in reversed(names))
    monkeypatch.setattr(type(own.model), "variance", terms)
    rows = model_table(replace(own, model=replace(own.model)), "model").rows
    assert [row[0] for row in rows if row[0].startswith("Participant")] == [
        "Participant: intercept",
        "Participant: transposed vs. word",
        "Participant: cursive vs. plain",
        "Participant: transposed × cursive",
    ]


def test_levels_of_either_factor_can_be_left_out_of_a_plan(tmp_path: Path) -> None:
    rows = crossed_rows(12, 16)
    is_word = rows["item_type"] == "word"
    rows.loc[is_word & (rows["item_id"] > "i12"), "item_type"] = "filler"
    factors = {**FACTORS, "item_type": {"levels": ["filler", "word", "transposed"], "reference": "filler"}}
    plan = {**PLAN, "levels": {"item_type": ["word", "transposed"]}}
    tables = load(crossed_study(tmp_path, rows, {"together": plan}, factors=factors))
    (analysis,) = carry_out_all(plans(tables), tables)
    assert analysis.levels == CROSSING.cells and analysis.model is not None
    assert analysis.model.rows == int((rows["item_type"] != "filler").sum())
    assert [one.label for one in analysis.contrasts] == ["(transposed − word) × (cursive − plain)"]
    assert analysis.contrasts[0].estimable
    assert analysis.model.settings["levels"]["item_type"] == ["word", "transposed"]
