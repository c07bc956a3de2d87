"""Robustness: other wordings, items, estimators, exclusions and scales, in numbers and in the chapters that tell of them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from analysis import Tables, load
from analysis.exclusions import alternatives
from analysis.measures.recovery import recovery_trials
from analysis.plan import Plan
from analysis.plan_runner import analyse_shares, carry_out, carry_out_all
from analysis.planned import plans
from analysis.report.answer import answer_tables
from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import asking, missing, robustness
from analysis.report.document import SIMULATED
from analysis.report.grades import grade_of, support_of
from analysis.report.numbering import ExhibitNumbers
from analysis.report.planned_effects import planned_effects
from analysis.results import Contrast
from analysis.robustness import (
    ANSWERS,
    APPEARS,
    BY_ITEMS,
    BY_PARTICIPANTS,
    FAILED,
    ITEM_SETS,
    NOT_SIGNIFICANT,
    ONE_TYPO,
    REVERSED,
    SAME,
    SCALE,
    SCORED,
    SESSIONS,
    CheckForm,
    CheckOutcome,
    Matrix,
    _worst,
    asked_otherwise,
    gee_check,
    outcome_of,
    robustness_matrix,
    share_multiverse,
    time_multiverse,
    without_item_sets,
)
from stimuli.errors import UserError
from tests.analysis.chapters import chapter_of, material_of, rows_by_head, rows_in, tables_in, words_in
from tests.analysis.conftest import Make, planned_analyses
from tests.analysis.letter_study import (
    LEVELS,
    PLANNED,
    comparison,
    study_rows,
    timed_out,
    trial_rows,
    write_handover,
)
from tests.analysis.measured_study import RECOVERED_WORDS, typed_study

FLAT = dict.fromkeys(LEVELS, 0.0) | {"intercept": 0.5}


def plan_of(tables: Tables) -> Plan:
    return next(one for one in plans(tables) if one.planned)


def asked(folder: Path, prompts: list[float], maps: list[float], *, items: int = 30) -> Tables:
    """A model asked in every wording and label map, each with its own log odds."""
    draw = np.random.default_rng(4)
    difficulty = draw.normal(0, 1.0, items)
    rows: list[dict[str, Any]] = []
    for n, prompt in enumerate(prompts):
        for m, label in enumerate(maps):
            shift = FLAT | {"intercept": 0.5 + prompt + label}
            made = trial_rows(
                "m", "model", 0, items, draw, shift, None, all_conditions=True, item_effects=difficulty
            )
            named = {
                "session_id": f"m-{n}-{m}",
                "prompt_variant": n + 1,
                "label_map": f"map-{m}",
                "temperature": 1.0,
            }
            rows += [row | named for row in made if not row["is_practice"]]
    return load(write_handover(folder, pd.DataFrame(rows)))


def test_the_variance_of_wordings_and_items_is_that_put_in(tmp_path: Path) -> None:
    wordings = [-1.2, -0.8, -0.3, 0.0, 0.3, 0.8, 1.2, 0.0]
    found = asked_otherwise(asked(tmp_path, wordings, [0.0, 0.0]), "position", permutations=200).table
    table = found.set_index("source")
    assert table.loc["prompt", "sd"] == pytest.approx(np.std(wordings), abs=0.2)
    assert table.loc["item", "sd"] == pytest.approx(1.0, abs=0.35)
    assert table.loc["prompt", "range_points"] > 2 * table.loc["prompt", "range_by_chance"]
    assert table.loc["prompt", "p"] < 0.01
    assert np.isnan(table.loc["label map", "sd"])
    assert table.loc["label map", "p"] > 0.01
    assert table.loc["label map", "range_points"] < 5
    shares = table["share"].dropna()
    assert 0 < shares.sum() < 1


def test_estimating_equations_hold_the_raw_difference_and_stand_beside_the_mixed_model(
    tmp_path: Path,
) -> None:
    planned = {"comprehension": PLANNED["comprehension"]}
    rows = study_rows(human=32, models=("restorer",), items=32, timeouts=0)
    tables = load(write_handover(tmp_path, rows, planned=planned))
    plan = plan_of(tables)
    analysis = analyse_shares(plan, tables)
    found = gee_check(tables, plan)
    planned = {(one.label, one.groups): one.estimate for one in analysis.contrasts}
    assert set(found["clusters"]) == {"participants", "items"}
    table = found.set_index(["clusters", "contrast", "groups"])
    used = tables.trials[tables.trials["excluded_reason"].isna() & (tables.trials["reader"] == "restorer")]
    means = used.groupby("position")["correct"].mean()
    for clusters in ("participants", "items"):
        row = table.loc[(clusters, "initial − internal", "restorer")]
        assert row["estimate"] == pytest.approx(100 * (means["initial"] - means["internal"]), abs=0.01)
        assert row["low"] < row["estimate"] < row["high"]
        own = table.loc[(clusters, "initial − internal", "human")]
        assert own["estimate"] == pytest.approx(planned["initial − internal", ("human",)], abs=3)
    assert table.loc[("participants", "initial − internal", "human"), "number"] == 64


def test_estimating_equations_keep_a_model_that_is_always_right(tmp_path: Path) -> None:
    rows = study_rows(human=12, models=("restorer",), items=12)
    rows.loc[(rows["reader"] == "restorer") & (rows["position"] != "internal"), "correct"] = True
    tables = load(write_handover(tmp_path, rows, planned={"comprehension": PLANNED["comprehension"]}))
    found = gee_check(tables, plan_of(tables)).set_index(["clusters", "contrast", "groups"])
    own = found.xs("restorer", level="groups")
    assert own["estimate"].notna().all() and own.loc[("items", "final − internal"), "low"] > 0
    assert found.loc[("participants", "final − internal", "human − restorer"), "se"] > 0


def test_a_check_without_variance_finds_nothing(tmp_path: Path) -> None:
    """A model is wrong on one item, in all conditions alike: its differences vary by errors of rounding alone."""
    rows = study_rows(human=12, models=("restorer",), items=12)
    of_model = rows["reader"] == "restorer"
    rows.loc[of_model, "correct"] = rows.loc[of_model, "item_id"] != rows.loc[of_model, "item_id"].iloc[0]
    tables = load(write_handover(tmp_path, rows, planned={"comprehension": PLANNED["comprehension"]}))
    own = gee_check(tables, plan_of(tables)).set_index(["groups", "clusters"]).loc[("restorer", "items")]
    assert (own["se"] == 0).all() and own["p"].isna().all()


@pytest.mark.parametrize(("unit", "clusters"), [("reader", "participants"), ("item_id", "items")])
def test_a_contrast_is_clustered_by_the_units_between_which_it_varies(
    tmp_path: Path, unit: str, clusters: str
) -> None:
    rows = study_rows(human=12, items=24)
    rows["position"] = np.take(LEVELS, pd.factorize(rows[unit])[0] % len(LEVELS))
    tables = load(write_handover(tmp_path, rows, planned={"comprehension": PLANNED["comprehension"]}))
    assert set(gee_check(tables, plan_of(tables))["clusters"]) == {clusters}


def test_clusters_widen_intervals_where_participants_differ_in_the_effect(tmp_path: Path) -> None:
    """Every participant has an effect of their own; a test that takes answers as independent rejects far too often."""
    draw = np.random.default_rng(6)
    naive, clustered = 0, 0
    for run in range(12):
        rows: list[dict[str, Any]] = []
        for number in range(16):
            own = FLAT | {"initial": draw.normal(0, 1.5)}
            rows += trial_rows(f"P{number:02d}", "human", number, 40, draw, own, None, all_conditions=True)
        tables = handed(tmp_path / str(run), pd.DataFrame(rows), planned=comparison("initial - intact"))
        found = gee_check(tables, plan_of(tables)).set_index("clusters")
        clustered += found.loc["participants", "p"] < 0.05
        naive += found.loc["items", "p"] < 0.05
    assert clustered <= 2
    assert naive > clustered


def test_a_conclusion_that_hangs_on_a_few_items_shows(tmp_path: Path) -> None:
    """Only five of thirty items have the effect; without the set that holds them it is gone."""
    draw = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for number in range(30):
        own = trial_rows(f"P{number:02d}", "human", number, 30, draw, FLAT, None, all_conditions=True)
        for row in own:
            odd = row["item_id"] in {f"s{n:02d}" for n in range(1, 6)}
            row["set"] = "odd" if odd else "plain"
            if odd and row["position"] == "initial":
                row["correct"], row["response"] = bool(draw.random() < 0.02), "no"
        rows += own
    tables = handed(tmp_path, pd.DataFrame(rows), planned=comparison("initial - intact"))
    found = without_item_sets(tables, plan_of(tables)).set_index("left_out")
    assert list(found.index) == ["nothing", "set odd", "set plain"]
    assert found.loc["nothing", "high"] < 0
    assert found.loc["set odd", "conclusion_changed"]
    assert found.loc["set odd", "items"] == 5
    assert found.loc["set odd", "shift"] > 2
    assert not found.loc["nothing", "reversed"]
    assert found.loc["nothing", "shift"] == 0


BOUNDS = {"trials": {"reading_time": "outside 300 ms to 9 s"}}
READING = {"reading": {**PLANNED["reading"], "contrasts": ["initial - intact"]}}


def late_in_initial(rows: pd.DataFrame) -> pd.Series:
    return rows["position"].eq("initial") & (rows["trial_index"] % 4 == 0) & rows["reader_kind"].eq("human")


def tables_of(handover: Make, rows: pd.DataFrame | None = None, **exclude: object) -> Tables:
    rows = study_rows(human=16, models=("restorer",), items=24) if rows is None else rows
    planned = {**READING, "comprehension": PLANNED["comprehension"]}
    return load(handover(rows, dictionary={"exclude": {**BOUNDS, **exclude}, "planned": planned}))


def test_every_usual_choice_is_a_universe_and_one_is_the_studys_own(handover: Make) -> None:
    tables = tables_of(handover)
    found = time_multiverse(tables, plans(tables)[0])
    assert set(found["scale"]) == {"log", "ms"}
    assert set(found["answers"]) == {"all valid answers", "right answers only"}
    rules = {one.name for one in alternatives("reading_time", tables.dictionary["exclude"])}
    assert set(found["rule"]) == rules
    assert len(found) == 2 * 2 * len(rules)
    own = found[found["is_primary"]]
    assert own[["rule", "scale", "answers"]].to_numpy().tolist() == [
        ["the study's bounds", "log", "all valid answers"]
    ]
    assert found["removed"].min() == 0
    assert found["removed"].max() > 0.02


def test_a_universes_difference_is_students_over_participants(handover: Make) -> None:
    tables = tables_of(handover)
    found = time_multiverse(tables, plans(tables)[0])
    found = found[(found["scale"] == "ms") & (found["answers"] == "all valid answers")]
    row = found[found["rule"] == "the study's bounds"].iloc[0]
    trials = tables.trials
    used = trials[
        trials["excluded_reason"].isna()
        & (trials["reader_kind"] == "human")
        & (trials["response_status"] == "valid")
        & trials["reading_time"].between(300, 9000)
    ]
    means = used.pivot_table(index="reader", columns="position", values="reading_time")
    test = stats.ttest_rel(means["initial"], means["intact"])
    assert row["estimate"] == pytest.approx((means["initial"] - means["intact"]).mean())
    assert (row["t"], row["p"], row["df"]) == pytest.approx((test.statistic, test.pvalue, 15))
    ends = test.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    assert row["trials"] == len(used)


def test_bounds_and_answers_that_a_plan_fixed_are_its_own_universe_and_open_in_the_others(
    handover: Make,
) -> None:
    """The plan narrows the study's upper bound, and takes right answers alone."""
    tables = tables_of(handover)
    of_plan = {"trials": {"reading_time": "outside 200 ms to 2 s"}, "answers": "wrong"}
    plan = replace(plans(tables)[0], exclude=of_plan)
    found = time_multiverse(tables, plan)
    own = found[found["is_primary"]]
    assert own[["rule", "scale", "answers"]].to_numpy().tolist() == [
        ["the study's bounds", "log", "right answers only"]
    ]
    trials = tables.trials
    used = trials[
        trials["excluded_reason"].isna()
        & (trials["reader_kind"] == "human")
        & (trials["correct"] == 1)
        & trials["reading_time"].between(300, 2000)
    ]
    means = np.log(used["reading_time"]).groupby([used["reader"], used["position"]]).mean().unstack()
    difference = (means["initial"] - means["intact"]).mean()
    assert own["estimate"].item() == pytest.approx(100 * np.expm1(difference))
    assert own["trials"].item() == len(used)
    every = found[(found["rule"] == "no rule") & (found["scale"] == "log")].set_index("answers")
    assert every.loc["all valid answers", "trials"] > every.loc["right answers only", "trials"] > len(used)
    assert (every["removed"] == 0).all()


def test_results_are_given_with_and_without_flagged_sessions(handover: Make) -> None:
    rows = study_rows(human=10, items=24, timeouts=0.0)
    rows.loc[rows["reader"] == "P001", "excluded_reason"] = "missed both checks"
    checks = rows.index[(rows["reader"] == "P002") & ~rows["is_practice"].astype(bool)][:2]
    rows.loc[checks, "is_attention_check"] = True
    rows.loc[checks, "correct"] = False
    tables = tables_of(handover, rows, sessions={"attention_checks_failed": "2 or more"})
    found = time_multiverse(tables, plans(tables)[0])
    found = found[(found["scale"] == "log") & (found["answers"] == "all valid answers")]
    units = found.groupby("sessions", sort=False)["units"].max().to_dict()
    assert units == {
        "as the study excluded": 9,
        "excluded sessions back": 10,
        "without all that meet a rule": 8,
    }
    assert found.loc[found["is_primary"], "sessions"].unique().tolist() == ["as the study excluded"]


def test_another_preparation_is_a_check_only_of_contrasts_whose_trials_it_changes(handover: Make) -> None:
    rows = study_rows(human=12, models=("restorer",), items=24, timeouts=0.0)
    rows = timed_out(rows, late_in_initial(rows))
    rows.loc[rows["reader"] == "P001", "excluded_reason"] = "missed both checks"
    tables = tables_of(handover, rows)
    matrix = robustness_matrix([carry_out(plans(tables)[1], tables, companion=False)], tables)
    within = [row for row in matrix.rows if not row.contrast.between]
    assert {"human", "restorer"} == {row.contrast.groups[0] for row in within}
    for row in within:
        is_human = row.contrast.groups == ("human",)
        is_of_initial = "initial" in (row.contrast.first, row.contrast.second)
        assert (FAILED in row.cells) == (is_of_initial and is_human)
        assert (SESSIONS in row.cells) == is_human


@pytest.mark.parametrize("are_some_wrong", [True, False])
def test_right_answers_alone_are_a_check_of_times_only_where_some_are_wrong(
    handover: Make, are_some_wrong: bool
) -> None:
    rows = study_rows(human=12, items=24, timeouts=0.0)
    rows["correct"] |= not are_some_wrong
    tables = tables_of(handover, rows)
    (row,) = robustness_matrix([carry_out(plans(tables)[0], tables)], tables).rows
    assert (ANSWERS in row.cells) == are_some_wrong


@pytest.mark.full
def test_accuracy_is_compared_with_failures_wrong_left_out_and_at_chance(handover: Make) -> None:
    rows = study_rows(human=12, models=("restorer",), items=24, timeouts=0.0)
    tables = tables_of(handover, timed_out(rows, late_in_initial(rows)))
    found = share_multiverse(tables, plans(tables)[1])
    found = found[found["contrast"] == "initial − internal"]
    people = found[found["group"] == "human"].set_index("rule")
    assert list(people.index) == ["failures wrong", "failures left out", "failures at chance"]
    wrong, left_out, chance = (people.loc[name, "estimate"] for name in people.index)
    assert wrong < chance < left_out
    assert people["is_primary"].tolist() == [True, False, False]
    assert found.loc[found["group"] == "restorer", "estimate"].nunique() == 1


def test_a_multiverse_of_the_wrong_measure_or_without_a_common_time_is_refused(handover: Make) -> None:
    tables = tables_of(handover)
    reading, comprehension = plans(tables)[:2]
    with pytest.raises(UserError, match=comprehension.measure.noun):
        time_multiverse(tables, comprehension)
    with pytest.raises(UserError, match=reading.measure.noun):
        share_multiverse(tables, reading)
    with pytest.raises(UserError, match="10000 to 9000 ms"):
        time_multiverse(
            tables, replace(reading, exclude={"trials": {"reading_time": "outside 10 s to 20 s"}})
        )


def test_recovered_words_are_compared_under_each_scoring_and_treatment_of_failures(tmp_path: Path) -> None:
    folder = typed_study(tmp_path, people=12, planned=RECOVERED_WORDS)
    trials = pd.read_parquet(folder / "trials.parquet")
    trials = timed_out(trials, (trials["position"] == "blue") & (trials["trial_index"] % 5 == 0))
    trials.to_parquet(folder / "trials.parquet")
    tables = load(folder)
    plan = plans(tables)[0]
    found = share_multiverse(tables, plan)
    assert set(found["rule"]) == {"failures wrong", "failures left out"}
    by = found.set_index(["rule", "scale"])["estimate"]
    measured = recovery_trials(tables.trials, tables.items, list(tables.factors))
    valid = measured[measured["response_status"] == "valid"]
    for rule, rows in (("failures wrong", measured), ("failures left out", valid)):
        shares = rows.assign(share=rows["recovered"] / rows["changed"]).groupby(["reader", "position"])
        sums = shares[["recovered", "changed", "ed_shown", "ed_given"]].sum()
        expected = {
            "points": shares["share"].mean(),
            "with every word counted alike": sums["recovered"] / sums["changed"],
            "in the recovery rate": 1 - sums["ed_given"] / sums["ed_shown"],
        }
        for scale, means in expected.items():
            table = means.unstack()
            difference = 100 * (table["blue"] - table["green"]).mean()
            assert by[rule, scale] == pytest.approx(difference), (rule, scale)
    assert found[found["is_primary"]]["scale"].tolist() == ["points"]
    assert by["failures wrong", "points"] < by["failures left out", "points"]


WRITERS = {"missing": missing.write, "robustness": robustness.write}
EXCLUDE = {
    "trials": {"reading_time": "outside 200 ms to 60 s"},
    "sessions": {"attention_checks_failed": "2 or more"},
}


def checked_material(tables: Tables, *, companion: bool = True) -> Material:
    analyses = planned_analyses(tables, companion=companion) or carry_out_all(plans(tables), tables)
    return material_of(tables, analyses, matrix=robustness_matrix(analyses, tables))


def handed(folder: Path, rows: pd.DataFrame, **dictionary: Any) -> Tables:
    return load(write_handover(folder, rows, **dictionary))


def lossy_rows() -> pd.DataFrame:
    """People whose answers are missing more often in the initial condition, one flagged session, one model, one odd item."""
    rows = study_rows(human=20, models=("restorer",), items=16, timeouts=0.0)
    draw = np.random.default_rng(8).random(len(rows))
    person = (rows["reader_kind"] == "human") & ~rows["is_practice"].astype(bool)
    lost = person & (draw < rows["position"].map({"initial": 0.3}).fillna(0.05))
    rows.loc[person & (rows["item_id"] == "s07"), "correct"] = False
    rows = timed_out(rows, lost)
    rows.loc[rows["reader"] == "P001", "excluded_reason"] = "missed both checks"
    return rows


@dataclass(frozen=True)
class Written:
    tables: Tables
    material: Material
    chapters: dict[str, Chapter]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    planned = {"comprehension": PLANNED["comprehension"], **READING}
    tables = handed(tmp_path_factory.mktemp("lossy"), lossy_rows(), planned=planned, exclude=EXCLUDE)
    given = checked_material(tables)
    found = {name: write(given) for name, write in WRITERS.items()}
    return Written(tables, given, {name: one for name, one in found.items() if one is not None})


def test_accuracy_stands_three_ways_side_by_side(written: Written) -> None:
    trials = written.tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader"].str.startswith("P"))]
    own = used[used["position"] == "initial"]
    valid = own["response_status"] == "valid"
    right = (own["correct"] == 1).sum()
    ways = rows_by_head(tables_in(written.chapters["missing"])["three_ways_position"])
    row = next(one for one in ways["People"] if one[0] == "initial")
    assert row[1] == str(len(own))
    shares = right / len(own), right / valid.sum(), (right + 0.5 * (~valid).sum()) / len(own)
    expected = [100 * share for share in shares]
    assert [row[3], row[4], row[6]] == [f"{one:.1f}" for one in expected]
    assert row[8] == f"[{expected[0]:.1f}, {100 * (right + (~valid).sum()) / len(own):.1f}]"
    assert "restorer" not in ways  # it has no missing answer


def test_missing_answers_have_a_model_that_is_exploratory_and_in_the_r_script(written: Written) -> None:
    chapter = written.chapters["missing"]
    assert [one.title for one in chapter.fits] == ["missing answers by position"]
    assert "model restorer" in words_in(chapter)
    differences = tables_in(chapter)["missing_model_position_differences"]
    assert "Benjamini" in differences.note
    row = differences.rows[1]
    assert row[0] == "initial − internal" and float(row[1]) > 1.0
    steps = [one for name, one in tables_in(chapter).items() if name.endswith("_steps")]
    assert all(one.rows[-1][2].endswith("reduce") or "reported" in one.rows[-1][2] for one in steps)


def test_the_flow_counts_readers_sessions_and_trials_to_the_end(written: Written) -> None:
    flow = rows_by_head(tables_in(written.chapters["missing"])["exclusion_flow"])
    rows = flow["People"]
    assert rows[0][:2] == ("Recorded", "20")
    left = next(one for one in rows if one[0] == "Excluded: missed both checks")
    assert left[1:5] == ("19", "1", "19", "1")
    used = written.tables.trials["excluded_reason"].isna() & (written.tables.trials["reader_kind"] == "human")
    assert rows[-1][5] == str(int(used.sum()))
    assert flow["People: reading times"][0][0] == "Analyzed"
    assert "1 session (missed both checks: 1)" in words_in(written.chapters["missing"])


def test_every_planned_contrast_is_a_row_and_each_kind_of_check_one_column(written: Written) -> None:
    matrix = written.material.matrix
    planned = [one for one in written.material.analyses if one.plan.planned]
    assert [row.contrast for row in matrix.rows] == [
        one for each in planned for one in each.contrasts if one.estimable
    ]
    laid = tables_in(written.chapters["robustness"])["matrix"]
    assert laid.columns == ("Contrast", *matrix.checks, "Agree", "Checks") and len(matrix.checks) <= 9
    (row,) = (one for one in matrix.rows if one.analysis.plan.measure.name == "reading_time")
    assert row.cells["Other time limits"].of > 1 and 0 < row.agreeing <= len(row.cells)


@pytest.mark.parametrize(
    ("p", "found", "outcome"),
    [
        (0.01, (-3.0, -5.0, -1.0), SAME),
        (0.01, (-3.0, -7.0, 1.0), NOT_SIGNIFICANT),
        (0.01, (3.0, -1.0, 7.0), REVERSED),
        (0.40, (-3.0, -5.0, -1.0), APPEARS),
        (0.40, (3.0, -1.0, 7.0), SAME),
        (0.40, (3.0, 1.0, 5.0), REVERSED),
    ],
)
def test_a_check_is_the_same_not_significant_reversed_or_shows_what_the_plan_did_not(
    p: float, found: tuple[float, float, float], outcome: str
) -> None:
    planned = Contrast("a", "b", ("human",), -2.0, 1.0, -2.0, None, p, -4.0, 0.0, p, 1)
    assert outcome_of(planned, 0.05, *found) == outcome


@pytest.mark.parametrize(
    ("estimates", "outcome", "forms"),
    [
        ([-0.1, -2, -2, -2], NOT_SIGNIFICANT, 1),
        ([-0.1, -0.1, 0.5, -2], REVERSED, 1),
        ([-0.1, -2, -2, -2, -2, -2], SAME, 5),
        ([-0.1, -0.1, -0.1, -0.1, -2, -2], NOT_SIGNIFICANT, 4),
    ],
)
def test_a_check_in_many_forms_has_the_outcome_of_most_and_counts_those_that_have_it(
    estimates: list[float], outcome: str, forms: int
) -> None:
    planned = Contrast(
        "a", "b", ("human",), -2.0, 0.5, -4.0, None, 0.001, -3.0, -1.0, 0.001, 1, reach=1.96
    )  # fmt: skip
    cell = _worst(planned, 0.05, [CheckForm(str(turn), value, 0.5) for turn, value in enumerate(estimates)])
    assert cell is not None and (cell.outcome, cell.forms, cell.of) == (outcome, forms, len(estimates))


def test_a_check_has_the_tail_probability_of_the_interval_that_it_checks(tmp_path: Path) -> None:
    """Of many planned contrasts each has a wide interval; a check with Student's would find differences by that alone."""
    pairs = [f"{one} - {other}" for one, other in itertools.combinations(LEVELS, 2)]
    planned = {"comprehension": PLANNED["comprehension"] | {"contrasts": pairs}}
    tables = handed(tmp_path, study_rows(human=12, models=("restorer",), items=16), planned=planned)
    given = checked_material(tables, companion=False)
    found = gee_check(tables, given.analyses[0].plan).set_index(["clusters", "contrast", "groups"])
    for row in given.matrix.rows:
        one, cell = row.contrast, row.cells[BY_ITEMS]
        z = (cell.estimate - cell.low) / found.loc[("items", one.label, " − ".join(one.groups)), "se"]
        assert z > 2.5
        if np.isfinite(one.low) and one.low > -one.furthest:
            tail = stats.t.sf((one.estimate - one.low) / one.se, one.df)
            assert stats.norm.sf(z) == pytest.approx(tail, rel=1e-6)


def test_a_contrast_of_two_plans_is_checked_tabled_and_drawn_once(tmp_path: Path) -> None:
    twice = {
        other: {**PLANNED["comprehension"], "contrasts": ["initial - internal", other]}
        for other in ("final - internal", "final - initial")
    }
    tables = handed(tmp_path, study_rows(human=12, models=("restorer",), items=16), planned=twice)
    given = checked_material(tables, companion=False)
    labels = ["initial − internal", "final − internal", "final − initial"]
    assert sorted(row.contrast.label for row in given.matrix.rows) == sorted(3 * labels)
    for analysis in given.analyses:
        assert all(given.matrix.checked(analysis, one) for one in analysis.contrasts)
    tested, _ = answer_tables(given.analyses, given.matrix, ExhibitNumbers())
    assert tested is not None and len(rows_in(tested.table)) == 9
    ((unit, effects),) = planned_effects(given.analyses, given.matrix, [], {}).values()
    assert unit == "percentage points"
    assert len({(one.label, one.reader) for one in effects}) == len(effects) == 9
    assert list(dict.fromkeys(one.label for one in effects)) == labels


def test_every_analysis_is_checked_while_that_is_cheap_and_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = {
        f"plan {n}": {**PLANNED["comprehension"], "between": ["human"], "contrasts": [f"{one} - {other}"]}
        for n, (one, other) in enumerate(list(itertools.permutations(LEVELS, 2))[:7])
    }
    tables = handed(tmp_path, study_rows(human=5, items=8), planned=planned)
    analyses = planned_analyses(tables, companion=False)
    matrix = robustness_matrix(analyses, tables)
    assert len(matrix.rows) == len(planned) == 7 and all(row.cells for row in matrix.rows)
    assert not any("not checked" in one for one in matrix.remarks)
    monkeypatch.setattr("analysis.robustness.MOST_COST", 0)
    few = robustness_matrix(analyses, tables)
    assert len(few.rows) == 6
    (told,) = (one for one in few.remarks if "not checked" in one)
    assert "plan 6 (1 contrast)" in told
    assert support_of(few.checked(analyses[-1], analyses[-1].contrasts[0])) == "not checked"


def test_recovered_words_have_the_checks_of_shares_and_scorings_of_their_own(tmp_path: Path) -> None:
    given = checked_material(load(typed_study(tmp_path, planned=RECOVERED_WORDS)))
    (row,) = given.matrix.rows
    assert {SCALE, BY_PARTICIPANTS, BY_ITEMS, ITEM_SETS, SCORED} == set(row.cells)
    assert {cell.outcome for cell in row.cells.values()} == {SAME} and row.cells[SCORED].of == 3
    used = row.analysis.rows.groupby("position")["share"].mean()
    assert row.cells[BY_ITEMS].estimate == pytest.approx(100 * (used["blue"] - used["green"]), abs=3)
    assert grade_of(row.contrast, row.analysis, given.matrix).word == "Clear"


def test_a_difference_that_depends_on_how_words_are_scored_is_no_clear_one(tmp_path: Path) -> None:
    """Words of the blue condition come back with one letter doubled: near enough with one typo allowed, and never exact."""
    folder = typed_study(tmp_path, planned=RECOVERED_WORDS)
    trials = pd.read_parquet(folder / "trials.parquet")
    blue = trials["position"] == "blue"
    doubled = trials["answer"].str.replace(r"\b([a-zA-Z]+)\b", lambda m: m[1] + m[1][-1], regex=True)
    trials["response"] = doubled.where(blue, trials["response"])
    trials.to_parquet(folder / "trials.parquet")
    given = checked_material(load(folder))
    (row,) = given.matrix.rows
    cell = row.cells[SCORED]
    assert cell.outcome == REVERSED and cell.where == ONE_TYPO
    assert grade_of(row.contrast, row.analysis, given.matrix).word == "Contradicted"
    assert ONE_TYPO in words_in(chapter_of(robustness.write, given))


@pytest.mark.parametrize(
    ("measure", "between", "checks"),
    [
        ("missing", "human", {SCALE, BY_PARTICIPANTS, BY_ITEMS, ITEM_SETS}),
        ("surprisal", "restorer", {BY_ITEMS, ITEM_SETS}),
    ],
)
def test_every_planned_measure_has_checks(
    tmp_path: Path, measure: str, between: str, checks: set[str]
) -> None:
    rows = study_rows(human=12, models=("restorer",), items=16, timeouts=0.2)
    draw = np.random.default_rng(2)
    rows["surprisal"] = np.where(rows["reader"] == "restorer", draw.normal(40, 5, len(rows)), np.nan)
    plan = comparison("initial - intact", measure=measure, between=[between])
    found = checked_material(handed(tmp_path, rows, planned=plan)).matrix
    assert [set(row.cells) for row in found.rows] == [checks]


def test_simulated_readers_and_baselines_are_marked_and_never_called_people(tmp_path: Path) -> None:
    rows = study_rows(simulated=4, models=("a",), baselines=("random",), items=8)
    chapter = chapter_of(missing.write, handed(tmp_path, rows))
    assert chapter.marks[:1] == SIMULATED and "baselines" in chapter.marks[1]
    assert "people" not in words_in(chapter).lower()


UNSURE = Contrast("a", "b", ("human",), 2.4, 1.0, 2.4, 40.0, 0.02, -0.8, 5.6, 0.3, 24, reach=3.2)
"""p = .02 by itself, .3 in a family of 24."""


def test_with_less_than_two_degrees_of_freedom_nothing_is_told_to_be_detectable() -> None:
    assert [np.isfinite(replace(UNSURE, df=df).detectable) for df in (None, 40.0, 2.0, 0.93)] == [
        True
    ] * 3 + [False]


def test_a_check_that_finds_just_what_a_family_leaves_open_shows_no_difference() -> None:
    found = CheckForm("", 2.4, 1.0, 40.0).judged(UNSURE, 0.05)
    assert found is not None and found.outcome == SAME
    assert (found.low, found.high) == pytest.approx((UNSURE.low, UNSURE.high))


def test_an_interval_ends_at_the_limits_of_shares_but_not_of_recovery_rates() -> None:
    one = replace(UNSURE, furthest=100.0)
    forms = [
        CheckForm("", -87.0, 10.0, 40.0, is_bounded=bounded).judged(one, 0.05) for bounded in (True, False)
    ]
    assert [None if form is None else form.low for form in forms] == [-100.0, pytest.approx(-87.0 - 32.0)]
    assert CheckForm("one participant", -10.0, 0.0).judged(one, 0.05) is None, (
        "a check counts with an interval"
    )


def test_a_check_of_a_directional_test_looks_on_its_side() -> None:
    numbers = (-1.0, 1.0, -1.0, None, 0.84, -2.6, np.inf, 0.84, 1)
    one = Contrast("a", "b", ("human",), *numbers, direction="greater", reach=1.64)
    below, above = (CheckForm("", estimate, 1.0).judged(one, 0.05) for estimate in (-4.0, 4.0))
    assert below is not None and above is not None
    assert (below.outcome, above.outcome) == (SAME, REVERSED)
    assert above.low == pytest.approx(4.0 - 1.64) and above.high == np.inf and above.excludes_zero


def test_ways_of_asking_are_told_with_their_model(tmp_path: Path) -> None:
    tables = asked(tmp_path, [-1.4, -0.7, 0.0, 0.7, 1.4], [0.0], items=16)
    chapter = chapter_of(asking.write, checked_material(tables))
    assert [one.title for one in chapter.fits] == ["correct responses of m by source"]
    found = {row[0]: row for row in rows_by_head(tables_in(chapter)["asked_position"])["m"]}
    assert float(found["prompt"][2]) == pytest.approx(1.0, abs=0.5)
    assert found["session"][2] == "–"
    assert re.search("model m .* prompt", words_in(chapter))
    assert "(1 | source_prompt_variant)" in words_in(chapter)


def test_a_label_map_that_matters_shows_its_range(tmp_path: Path) -> None:
    found = asked_otherwise(asked(tmp_path, [0.0, 0.0], [-0.8, 0.8]), "position", permutations=200).table
    row = found.set_index("source").loc["label map"]
    assert row["levels"] == 2
    expected = 100 * (special.expit(1.3) - special.expit(-0.3))
    assert row["range_points"] == pytest.approx(expected, abs=10)
    assert row["p"] < 0.01


def test_the_name_of_an_exploratory_analysis_is_not_capitalized_within_a_sentence(tmp_path: Path) -> None:
    rows = study_rows(human=6, items=8).assign(rt=None, reading_time=None)
    given = checked_material(handed(tmp_path, rows))
    first, *others = given.matrix.rows
    differing = replace(first, cells={BY_ITEMS: CheckOutcome(APPEARS, 1.0, 0.5, 1.5, True)})
    chapter = chapter_of(robustness.write, replace(given, matrix=Matrix((differing, *others))))
    name = first.analysis.plan.name
    assert name[0].islower() and f" {name}, " in words_in(chapter)
