"""Codings of factors are R's, or come from planned contrasts, which do not depend on them; and contrasts of means of levels."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.factorial import slopes_in_rows
from analysis.plan import (
    CrossedFactors,
    LevelDifference,
    PlanFault,
    StudyPlan,
    faults_of_coding,
    plans_in_words,
    read_contrast,
    read_plan,
)
from analysis.report.results.tables import model_table
from analysis.results import Analysis
from tests.analysis.conftest import planned_analyses
from tests.analysis.crossed_study import crossed_study
from tests.analysis.letter_study import trial
from tests.analysis.r_programs import lines_of_r

LEVELS = {"spelling": ("intact", "internal", "initial"), "display": ("window", "cumulative")}
FACTORS = {name: {"levels": list(levels), "reference": levels[0]} for name, levels in LEVELS.items()}
CONTRASTS = [
    "((internal + initial) / 2 - intact) x (cumulative - window)",
    "(initial - internal) x (cumulative - window)",
    "(internal + initial) / 2 - intact",
]
PLAN = {"measure": "rt", "compare": list(LEVELS), "between": ["human"], "contrasts": CONTRASTS}
FORMULA = "log(rt) ~ spelling * display + (1 + display | participant) + (1 | item)"
CODINGS = ("sum", "treatment", "helmert", "sdif", "planned")


def rows_of_times(people: int = 18, items: int = 18) -> pd.DataFrame:
    """Return times of people who see each item in one of six cells."""
    rng = np.random.default_rng(3)
    cells = [(spelling, display) for spelling in LEVELS["spelling"] for display in LEVELS["display"]]
    of_item, rows = rng.normal(0, 0.1, items), []
    for person in range(people):
        own = rng.normal(0, 0.15, 2)
        for n in range(items):
            place = (person + n) % 6
            cost = 0.1 * (place // 2) + 0.05 * (place % 2) + 0.08 * (place == 5)
            log_time = 6.4 + cost + own[0] + own[1] * (place % 2) + of_item[n] + rng.normal(0, 0.25)
            shown = dict(zip(LEVELS, cells[place], strict=True))
            rows.append(
                trial(
                    f"p{person}", "human", f"i{n:02d}", 0, correct=True, rt=float(np.exp(log_time)), **shown
                )
            )
    made = pd.DataFrame(rows)
    return made.assign(study="crossed", set="items", trial_index=made.groupby("reader").cumcount())


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Analysis]:
    """The same plan by each coding."""
    rows = rows_of_times()

    def carried(coding: str) -> Analysis:
        of_display = "sum" if coding == "planned" else coding
        plan = {**PLAN, "formula": FORMULA, "coding": {"spelling": coding, "display": of_display}}
        tables: Tables = load(
            crossed_study(tmp_path_factory.mktemp(coding), rows, {"times": plan}, factors=FACTORS)
        )
        (analysis,) = planned_analyses(tables)
        return analysis

    return {coding: carried(coding) for coding in CODINGS}


def test_contrasts_do_not_depend_on_the_coding(coded: dict[str, Analysis]) -> None:
    expected = [(one.label, one.estimate, one.se, one.df, one.p) for one in coded["sum"].contrasts]
    assert [label for label, *_ in expected] == [read_contrast(text, LEVELS).label for text in CONTRASTS]
    for coding, analysis in coded.items():
        for one, (label, *numbers) in zip(analysis.contrasts, expected, strict=True):
            assert one.label == label
            assert [one.estimate, one.se, one.df, one.p] == pytest.approx(numbers, rel=2e-3), coding


def test_a_coefficient_of_planned_coding_is_its_contrast(coded: dict[str, Analysis]) -> None:
    analysis = coded["planned"]
    (average,) = (one for one in analysis.contrasts if not one.at)
    assert analysis.model is not None
    by_term = {one.term: one.estimate for one in analysis.model.coefficients}
    assert by_term[f"spelling{average.label}"] == pytest.approx(average.estimate)


def test_every_table_of_coefficients_names_its_coding_and_what_each_compares(
    coded: dict[str, Analysis],
) -> None:
    before, after = "levels before", "mean of internal and initial − intact"
    expected = {
        "sum": ("Sum coding of spelling", "intact vs. mean", "intact vs. mean × window vs. mean"),
        "treatment": ("Treatment coding with intact/window", "internal vs. intact", "internal × cumulative"),
        "helmert": (
            "Helmert coding of spelling",
            f"initial vs. {before}",
            f"initial vs. {before} × cumulative vs. {before}",
        ),
        "sdif": (
            "Sliding-difference coding",
            "initial vs. internal",
            "initial vs. internal × cumulative vs. window",
        ),
        "planned": (
            "Planned-contrast coding of spelling and sum coding of display",
            after,
            f"{after} × window vs. mean",
        ),
    }
    for coding, (note, *terms) in expected.items():
        table = model_table(coded[coding], "model")
        shown = [str(row[0]) for row in table.rows]
        assert note in str(table.note), coding
        assert set(terms) <= set(shown), (coding, shown)
        if coding != "treatment":
            assert shown[0] == "Intercept (mean of spelling, mean of display)"


R_PROGRAM = """
suppressMessages({library(lme4); library(lmerTest)})
d <- read.csv("rows.csv", stringsAsFactors = FALSE)
d$spelling <- factor(d$spelling, c("intact", "internal", "initial")); d$display <- factor(d$display, c("window", "cumulative"))
of <- function(coding, formula) {
  code <- switch(coding, sum = contr.sum, treatment = contr.treatment, helmert = contr.helmert, sdif = MASS::contr.sdif)
  if (coding == "planned") {
    contrasts(d$spelling) <- MASS::ginv(rbind(c(-1, .5, .5), c(0, -1, 1))); contrasts(d$display) <- contr.sum(2)
  } else { contrasts(d$spelling) <- code(3); contrasts(d$display) <- code(2) }
  m <- lmer(formula, d, control = lmerControl("bobyqa", optCtrl = list(rhoend = 1e-9)))
  data.frame(coding = coding, coef(summary(m)), loglik = as.numeric(logLik(m)))
}
"""


@pytest.mark.r
def test_coefficients_are_those_of_r(coded: dict[str, Analysis], tmp_path: Path) -> None:
    calls = []
    for coding, analysis in coded.items():
        assert analysis.model is not None
        calls.append(f'of("{coding}", {analysis.model.formula})')
    rows, crossing = coded["sum"].rows, coded["sum"].plan.crossing
    assert crossing is not None
    rows = rows.assign(**slopes_in_rows(crossing, rows))
    rows.assign(log_rt=np.log(rows["rt"])).to_csv(tmp_path / "rows.csv", index=False)
    lines_of_r(f'{R_PROGRAM}write.csv(rbind({", ".join(calls)}), "found.csv", row.names = FALSE)\n', tmp_path)
    found = pd.read_csv(tmp_path / "found.csv")
    for coding, theirs in found.groupby("coding"):
        model = coded[str(coding)].model
        assert model is not None
        ours = [(one.estimate, one.se, one.statistic) for one in model.coefficients]
        estimates = [one[0] for one in ours]
        tolerance = 2e-3 * theirs["Std..Error"].to_numpy()
        assert np.abs(np.array(estimates) - theirs["Estimate"].to_numpy()).max() < tolerance.min(), coding
        assert [one[1] for one in ours] == pytest.approx(theirs["Std..Error"].tolist(), rel=3e-3), coding
        assert model.loglik == pytest.approx(theirs["loglik"].iloc[0], abs=1e-3), coding


def test_factorial_plans_are_coded_by_sums_and_formulas_by_treatment() -> None:
    def codings(**more: Any) -> dict[str, str]:
        plan = read_plan("p", PLAN | more, LEVELS)
        return {factor: plan.coding_of(factor, plan.factors) for factor in plan.factors}

    assert codings() == {"spelling": "sum", "display": "sum"}
    assert codings(formula="log(rt) ~ spelling * display + (1 | participant)") == dict.fromkeys(
        LEVELS, "treatment"
    )
    assert codings(formula="log(rt) ~ spelling + (1 | item)", coding="helmert") == dict.fromkeys(
        LEVELS, "helmert"
    )
    assert codings(coding={"spelling": "sdif"}) == {"spelling": "sdif", "display": "sum"}
    assert codings(compare="spelling", contrasts=[]) == {"spelling": "treatment"}
    written = read_plan("p", PLAN | {"coding": {"spelling": "sdif"}}, LEVELS).to_json()
    assert read_plan("p", written, LEVELS).coding == {"spelling": "sdif"}
    (lines,) = plans_in_words(StudyPlan((read_plan("p", PLAN, LEVELS),), LEVELS))
    assert sum("sum coding of spelling" in line and "(default)" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("contrasts", "count"),
    [
        (CONTRASTS, 0),
        (["internal - intact", "initial - intact"], 1),
        (["(internal - intact) x (cumulative - window)"], 1),
        (["internal - intact", "initial - internal", "(initial - intact) x (cumulative - window)"], 1),
    ],
)
def test_planned_coding_needs_as_many_independent_contrasts_as_levels_less_one(
    contrasts: list[str], count: int
) -> None:
    plan = read_plan("p", PLAN | {"contrasts": contrasts, "coding": "planned"}, LEVELS)
    assert len(list(faults_of_coding(plan))) == count


def test_means_of_levels_are_weights_that_cancel() -> None:
    crossing = CrossedFactors(("spelling", "display"), (LEVELS["spelling"], LEVELS["display"]))
    for text in CONTRASTS:
        read = read_contrast(text, LEVELS)
        assert read.written == text and pickle.loads(pickle.dumps(read)) == read
        weights = crossing.weights(read.first, read.second, read.at)
        assert sum(weights.values()) == pytest.approx(0) and len(weights) >= 4
        assert isinstance(read, LevelDifference)
    simple = read_contrast("(internal + initial) / 2 - intact in window", LEVELS)
    assert crossing.weights(simple.first, simple.second, simple.at) == {
        "internal/window": 0.5, "initial/window": 0.5, "intact/window": -1.0,
    }  # fmt: skip
    for wrong in (
        "(internal + initial) / 3 - intact",
        "(internal + intact) / 2 - intact",
        "(internal + inital) / 2 - intact",
        "(internal + window) / 2 - intact",
    ):
        with pytest.raises(PlanFault):
            read_contrast(wrong, LEVELS)
