"""Lexical decisions of 124 people, imported as anybody would import them, give the models that the data's own page prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from analysis import load
from analysis.mixed import Fit, fit
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.results import Analysis, FittedModelResult
from analysis.tables import Tables
from experiment.cli import main
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from tests.conftest import ROOT

PRINTED = {"(Intercept)": 3.030439, "t": -1.727145, "f": -0.622641, "t:f": 0.693293}
ERRORS = {"(Intercept)": 0.120903, "t": 0.137786, "f": 0.096817, "t:f": 0.194514}
LOGLIK = -2566.36196
VARIANCES = (0.479036, 0.466768, -0.056495, 0.509932)
"""As the page of the data prints them (lme4, bobyqa at tight control)."""


def nonwords(trials: pd.DataFrame) -> pd.DataFrame:
    rows = trials[trials["item_type"] != "word"].reset_index(drop=True)
    return rows.assign(
        t=(rows["item_type"] == "transposed") - 0.5,
        f=(rows["font"] == "cursive") - 0.5,
        right=rows["correct"].astype(int),
    )


def as_printed(found: Fit) -> None:
    """Hold a fit against the printed one: likelihood, coefficients, errors, variances."""
    assert found.nobs == 9920 and found.converged
    assert found.loglik == pytest.approx(LOGLIK, abs=2e-3)
    table = found.fixed.set_index("term")
    for term, value in PRINTED.items():
        assert table.loc[term, "estimate"] == pytest.approx(value, abs=2e-3)
        assert table.loc[term, "se"] == pytest.approx(ERRORS[term], rel=5e-3)
    parts = {part.group: part.cov for part in found.variance}
    base = next(cov for group, cov in parts.items() if group != "participant")
    people = parts["participant"]
    assert (people[0, 0], people[1, 1], people[0, 1], base[0, 0]) == pytest.approx(VARIANCES, abs=3e-3)


@pytest.mark.shared
def test_the_table_itself_gives_the_printed_model(shared: Path) -> None:
    rows = nonwords(pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv"))
    as_printed(fit("right ~ t * f + (1 + t | participant) + (1 | base)", rows, "binomial"))


@pytest.fixture(scope="module")
def imported(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, dict[str, Analysis]]:
    """The study of the sample report with its people, its planned analyses of people carried out."""
    folder = tmp_path_factory.mktemp("people") / "lexical"
    shutil.copytree(ROOT / "tests" / "sample" / "study", folder)
    table = shared / "data" / "tl_lexical_decision" / "trials.csv"
    done = CliRunner().invoke(
        main, ["import", str(folder), str(table), "--mapping", str(folder / "import.yaml")]
    )
    assert done.exit_code == 0, done.output
    with opened_study(folder) as opened:
        tables = load(hand_over(opened.study, opened.store, folder / "handed-over"))
    own = [plan for plan in plans(tables) if plan.planned and plan.groups == ("human",)]
    return tables, {one.plan.name: one for one in carry_out_all(own, tables)}


def model_of(analysis: Analysis) -> FittedModelResult:
    assert analysis.model is not None, analysis.remarks
    assert analysis.model.converged and not analysis.model.singular
    return analysis.model


@pytest.mark.full
@pytest.mark.shared
def test_imported_trials_give_the_printed_model(imported: tuple[Tables, dict[str, Analysis]]) -> None:
    tables, _ = imported
    as_printed(fit("right ~ t * f + (1 + t | participant) + (1 | item_id)", in_use(tables), "binomial"))


def in_use(tables: Tables) -> pd.DataFrame:
    trials = tables.trials[tables.trials["excluded_reason"].isna()]
    return nonwords(trials.assign(participant=trials["reader"]))


@pytest.mark.full
@pytest.mark.shared
def test_the_planned_analysis_is_the_printed_model_in_other_codes(
    imported: tuple[Tables, dict[str, Analysis]],
) -> None:
    analysis = imported[1]["nonwords"]
    model = model_of(analysis)
    assert len(analysis.rows) == 9920 and model.loglik == pytest.approx(LOGLIK, abs=2e-3)
    b = {one.term: one.estimate for one in model.coefficients}
    first, t, f, both = (
        b[name]
        for name in ("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive")
    )
    # A half is half way between the levels, so that lower terms hold half of the higher ones.
    halves = (first + t / 2 + f / 2 + both / 4, t + both / 2, f + both / 2, both)
    assert halves == pytest.approx(tuple(PRINTED.values()), abs=2e-3)


@pytest.mark.full
@pytest.mark.shared
def test_right_answers_to_transposed_nonwords_take_longer(
    imported: tuple[Tables, dict[str, Analysis]],
) -> None:
    """The plan's model of log times has the rows that it says; transposed letters and cursive cost time."""
    tables, analyses = imported
    analysis = analyses["times of nonwords"]
    model = model_of(analysis)
    rows = in_use(tables)
    rows = rows[rows["rt"].between(200, 10_000) & (rows["right"] == 1)]
    assert len(analysis.rows) == len(rows)
    b = {one.term: one.estimate for one in model.coefficients}
    assert b["item_typetransposed"] > 0 and b["fontcursive"] > 0
    (contrast,) = analysis.contrasts
    assert contrast.p < 0.001
