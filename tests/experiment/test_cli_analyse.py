"""``wrods analyse``: a table from elsewhere becomes the tables of a study, or all of its problems are named."""

from __future__ import annotations

import copy
import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from scipy import stats

from analysis import load
from analysis.descriptives import describe
from analysis.exclusions import of_flagged_sessions
from analysis.long_table import Roles, hand_over_table
from analysis.names import MARK
from analysis.plan import RATING
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.content import gather
from analysis.report.method import method_parts
from analysis.report.write import claimed_folder, dated_folder
from analysis.robustness import robustness_matrix
from tests.analysis.letter_study import PLANNED, study_rows, write_handover
from tests.experiment.commands import worked, wrods

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def rows() -> pd.DataFrame:
    """Twelve people who saw each item in one condition, and two models that saw it in both."""
    rng = np.random.default_rng(2)
    people = [(f"p{p}", f"i{i}", ("b", "a")[(p + i) % 2], "human") for p in range(12) for i in range(16)]
    models = [("", f"i{i}", cond, model) for model in ("m-1", "m-2") for i in range(16) for cond in "ab"]
    table = pd.DataFrame([*people, *models], columns=["who", "item", "cond", "agent"])
    chance = 0.6 + 0.3 * (table["cond"] == "b")
    table["acc"] = (rng.random(len(table)) < chance).astype(int)
    table["rt"] = np.where(table["agent"] == "human", rng.gamma(9, 0.07, len(table)).round(3), np.nan)
    return table


def analyse(folder: Path, table: pd.DataFrame, *options: str) -> Result:
    file = folder / "trials.csv"
    table.to_csv(file, index=False)
    usual = [
        "--participant",
        "who",
        "--item",
        "item",
        "--condition",
        "cond=b,a",
        "--out",
        str(folder / "out"),
    ]
    return wrods("analyse", file, *usual, *options)


def test_people_and_models_of_a_table_are_those_of_a_study(rows, tmp_path):
    rows["acc"] = rows["acc"].astype(float)
    rows.loc[3, ["acc", "rt"]] = np.nan
    roles = Roles("who", "item", {"cond": ["b", "a"]}, "acc", "rt", model="agent=m-1,m-2", seconds=True)
    tables = load(hand_over_table(rows, roles, tmp_path / "data", WHEN))
    trials = tables.trials
    assert tables.factors == {"cond": ["b", "a"]}
    sessions = trials.groupby("reader_group")["session_id"].nunique()
    assert sessions.to_dict() == {"human": 12, "m-1": 1, "m-2": 1}
    assert trials.loc[3, "excluded_reason"] == "no response in the table"
    assert trials["excluded_reason"].count() == 1
    assert trials["flagged_reason"].count() == 0, "a trial without a response flags no session"
    back = of_flagged_sessions(trials, tables.factors, tables.dictionary["collected_design_hash"])
    assert back["excluded_reason"].equals(trials["excluded_reason"])
    used = trials[trials["excluded_reason"].isna()]
    means = used.groupby(["reader_group", "cond"])["correct"].mean()
    human = rows[rows["agent"] == "human"].drop(index=3)
    assert means["human"].to_dict() == pytest.approx(human.groupby("cond")["acc"].mean().to_dict())
    assert trials["rt"].median() == pytest.approx(1000 * rows["rt"].median())
    found = {plan.measure.name: plan.groups for plan in plans(tables)}
    assert found == {"correct": ("human", "m-1", "m-2"), "rt": ("human",)}


def test_a_model_without_a_response_was_not_tested(rows, tmp_path):
    rows["acc"] = rows["acc"].astype(float)
    rows.loc[rows["agent"] == "m-2", "acc"] = np.nan
    rows.loc[3, "acc"] = np.nan
    roles = Roles("who", "item", {"cond": ["b", "a"]}, "acc", model="agent=m-1,m-2")
    tables = load(hand_over_table(rows, roles, tmp_path / "data", WHEN))
    told = {part.heading: " ".join(part.paragraphs) for part in method_parts(tables, (), None)}
    only_other = tables.trials["reader_group"] != "m-2"
    without = replace(tables, trials=tables.trials[only_other], dictionary=copy.deepcopy(tables.dictionary))
    del without.dictionary["readers"]["m-2"]
    of_other = {part.heading: " ".join(part.paragraphs) for part in method_parts(without, (), None)}
    models = told["Language models"]
    assert models.startswith(of_other["Language models"]) and models.count("m-2") == 1


def test_ratings_of_people_and_models_are_compared_in_scale_points(rows, tmp_path):
    rng = np.random.default_rng(3)
    rows["rated"] = np.round(3.5 + (rows["cond"] == "b") + rng.normal(0, 1, len(rows)))
    rows.loc[7, "rated"] = np.nan
    roles = Roles("who", "item", {"cond": ["b", "a"]}, rating="rated", model="agent=m-1,m-2")
    tables = load(hand_over_table(rows, roles, tmp_path / "data", WHEN))
    (plan,) = plans(tables)
    assert plan.measure == RATING and plan.groups == ("human", "m-1", "m-2")
    analysis = carry_out(plan, tables)
    found = {one.groups: one for one in analysis.contrasts}
    own = rows[rows["agent"] == "human"].groupby("cond")["rated"].mean()
    assert found["human",].estimate == pytest.approx(own["a"] - own["b"], abs=0.1)
    of_items = rows[rows["agent"] == "m-1"].pivot(index="item", columns="cond", values="rated")
    paired = stats.ttest_rel(of_items["a"], of_items["b"])
    assert found["m-1",].statistic == pytest.approx(paired.statistic) and found["m-1",].df == paired.df
    for model in ("m-1", "m-2"):
        apart = found["human",].estimate - found[model,].estimate
        assert found["human", model].estimate == pytest.approx(apart)
    matrix = robustness_matrix([analysis], tables)
    assert matrix.checks == (
        "Linear mixed model",
        "Cumulative link model",
        "Clustered by participants",
        "Clustered by items",
        "Item sets left out",
    )
    assert all(len(row.cells) >= 2 for row in matrix.rows)
    cells = {
        (cell.group, cell.level): cell.mean for cell in describe(tables.trials, RATING, "cond", ("b", "a"))
    }
    assert cells["m-1", "b"] == pytest.approx(
        rows[(rows["agent"] == "m-1") & (rows["cond"] == "b")]["rated"].mean()
    )


def test_all_problems_are_named_at_once_and_nothing_is_written(rows, tmp_path):
    rows.loc[[4, 5], "acc"] = 2
    rows.loc[[6, 8], "rt"] = [-0.4, 0]
    rows.loc[7, "cond"] = "B"
    rows.loc[200, "who"] = "p1"
    asked = ["--correct", "acc", "--rt", "rt", "--model", "agent=m-1,m-3", "--condition", "block"]
    done = analyse(tmp_path, rows, *asked)
    assert done.exit_code == 2
    for said in (
        "--condition block: ",
        "block_condition",
        "'2' in 2 rows (first: line 6)",
        "a cell must be 1, true, yes, 0, false, or no",
        "'-0.4' and '0.0' in 2 rows (first: line 8)",
        "--seconds",
        "'B' in line 9",
        "'m-3'",
        "in line 202",
        " 32 rows",
    ):
        assert said in str(done.output), done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({}, ["--correct", "accc"], "'acc'"),
        ({}, [], "--correct COLUMN, --rt COLUMN"),
        ({"cond": "b"}, ["--correct", "acc"], "'a'"),
        ({}, ["--correct", "acc", "--rt", "acc"], "--rt acc"),
        ({"who": "p1"}, ["--correct", "acc"], "'p1'"),
    ],
)
def test_a_table_that_cannot_be_analysed_is_refused(changes, options, says, rows, tmp_path):
    done = analyse(tmp_path, rows[rows["agent"] == "human"].assign(**changes), *options)
    assert done.exit_code == 2 and says in done.output


@pytest.mark.r
@pytest.mark.full
def test_r_recomputes_differences_of_ratings(rows, tmp_path):
    rng = np.random.default_rng(3)
    rows["rated"] = np.clip(np.round(3.5 + (rows["cond"] == "b") + rng.normal(0, 1, len(rows))), 1, 7)
    done = analyse(tmp_path, rows, "--rating", "rated", "--model", "agent=m-1,m-2")
    assert done.exit_code == 0, done.output
    folder = Path(done.output.splitlines()[-1]).parent
    ran = subprocess.run(["Rscript", "models.R"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0 and "estimates 1: agrees" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.full
def test_a_table_has_the_report_of_a_study(rows, tmp_path):
    asked = ["--correct", "acc", "--rt", "rt", "--seconds", "--model", "agent=m-1,m-2"]
    done = analyse(tmp_path, rows, *asked)
    assert done.exit_code == 0, done.output
    page = Path(done.output.splitlines()[-1])
    assert "imported" in page.read_text("utf-8") and (page.parent / "models.R").exists()
    worked("report", page.parent / "data", "--out", tmp_path / "again")


MEANS = ["--mean", "human:intact=93", "--mean", "human:swapped=80"]
SMALL = ["--participants", "6,12", "--items", "12", "--studies", "10", "--processes", "1"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    worked("new", folder, "--from", "your-own")
    return folder


def test_a_study_without_items_or_answers_gets_its_power(study):
    done = worked("power", study, "--planned", "comprehension", *SMALL, *MEANS)
    assert "20 simulated studies" in done.output
    assert " 0.8\n" in done.output
    table = pd.read_csv(study / "power" / "power_comprehension.csv")
    assert table["participants"].tolist() == [6, 12]
    assert (table["studies"] == 10).all()
    for ending in (".json", ".svg", ".png", "_needed.csv"):
        assert (study / "power" / f"power_comprehension{ending}").stat().st_size > 0


def test_effects_come_from_a_file_by_hand_or_a_table(study, tmp_path):
    hand = tmp_path / "effects.yaml"
    hand.write_text("source: a guess\nmeans: {human: {intact: 93, swapped: 80}}\n", "utf-8")
    table = tmp_path / "effects.csv"
    table.write_text(
        "quantity,of,condition,value,unit,source\n"
        "mean,human,intact,93,percent,A (2001)\nmean,human,swapped,80,percent,B (2002)\n",
        "utf-8",
    )
    words = ["power", study, "--planned", "comprehension", *SMALL, "--json"]
    by_hand, by_table = wrods(*words, "--effects", hand), wrods(*words, "--effects", table)
    (one,), (other,) = json.loads(by_hand.stdout), json.loads(by_table.stdout)
    assert one["power"] == other["power"]
    assert "a guess" in one["source"]
    assert "A (2001); B (2002)" in other["source"]


def test_a_handover_is_study_and_pilot_in_one(tmp_path):
    rows = study_rows(simulated=12, items=16, models=("restorer",))
    folder = write_handover(tmp_path / "handover", rows, planned=PLANNED)
    words = ["--participants", "8", "--items", "12", "--fits", "2", "--processes", "1", "--json"]
    done = worked("power", folder, "--effects", folder, "--replicates", "2", *words)
    accuracy, times = json.loads(done.stdout)
    assert {one["readers"] for one in accuracy["power"]} == {"human", "restorer", "human − restorer"}
    assert {one["kind"] for one in times["power"]} == {"difference"}
    assert any("imulated" in one for one in accuracy["remarks"])
    assert any("temperature 0" in one for one in accuracy["remarks"])


def test_a_study_with_answers_is_a_pilot_without_a_report(tmp_path):
    folder = tmp_path / "study"
    for words in (
        ("new", folder, "--from", "letter-position"),
        ("build", folder),
        ("simulate", folder, "--readers", 8),
    ):
        worked(*words)
    words = ["--planned", "reading", "--participants", "6", "--fits", "2", "--processes", "1", "--json"]
    done = worked("power", folder, "--effects", folder, *words)
    (told,) = json.loads(done.stdout)
    assert told["source"] == f"pilot {folder}"
    assert told["power"][0]["items"] > 1
    assert not (folder / "reports").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--effects"),
        (MEANS, "--planned comprehension"),
        (["--planned", "comprehention", *MEANS], "'comprehension'"),
        (["--planned", "comprehension", *MEANS[:2]], "--mean human:swapped="),
        (["--planned", "comprehension", "--mean", "human:swaped=80"], "'swapped'"),
        (["--planned", "comprehension", *MEANS, "--items", "few"], "'few'"),
        (["--planned", "comprehension", *MEANS, "--items", "1"], "items: 1"),
        (["--planned", "comprehension", *MEANS, "--layout", "latin"], "'latin'"),
        (["--planned", "comprehension", *MEANS, "--fits", "0"], "studies is 0"),
        (["--planned", "comprehension", *MEANS, "--wanted", "80"], " 80"),
        (["--planned", "comprehension", *MEANS, "--equivalence", "5 ms"], "'5 ms'"),
        (["--planned", "comprehension", "--effects", "none.yaml"], "none.yaml"),
        (["--planned", "comprehension", "--effects", __file__], ".json, .csv"),
        (["--planned", "comprehension", "--effects", "."], "dictionary.json"),
    ],
)
def test_what_is_missing_or_wrong_ends_with_two(words, told, study):
    done = wrods(
        "power", study, "--participants", "6", "--items", "8", "--fits", "1", "--processes", "1", *words
    )
    assert done.exit_code == 2, done.output
    assert told in done.output


def test_two_reports_of_one_second_have_a_folder_each_and_no_report_leaves_none(tmp_path):
    when = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    with claimed_folder(tmp_path, when) as first, claimed_folder(tmp_path, when) as second:
        assert first == when and second == when + timedelta(seconds=1)
        (dated_folder(tmp_path, second) / "report.html").write_text("")
    assert [one.name for one in tmp_path.iterdir()] == [dated_folder(tmp_path, second).name]


def test_steps_of_a_report_name_columns_as_the_table_does(tmp_path):
    """A condition called ``kind`` has another name inside, as it is also a column of wrods."""
    rows = [(f"p{p}", f"i{i}", "ab"[(p + i) % 2], int((p * i) % 3 > 0)) for p in range(8) for i in range(8)]
    table = pd.DataFrame(rows, columns=["who", "item", "kind", "ok"])
    when = datetime(2026, 3, 1, tzinfo=UTC)
    steps: list[str] = []
    gather(
        load(hand_over_table(table, Roles("who", "item", {"kind": []}, correct="ok"), tmp_path, when)),
        steps.append,
    )
    assert any("kind" in step for step in steps) and not any(MARK in step for step in steps)
