from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from analysis import load
from analysis.answers import judged
from analysis.costs.ratios import costs_by_level
from analysis.descriptives import (
    ALIKE_BETWEEN,
    ALIKE_WITHIN,
    BETWEEN,
    OVER_ITEMS,
    TOO_FEW_WITHIN,
    WITHIN,
    ConditionMean,
    describe,
    describe_rows,
    why_no_interval,
)
from analysis.exclusions import flow
from analysis.intervals import share_over_items, wilson, within_participant_half_widths
from analysis.measures.accuracy import accuracy, against_chance
from analysis.plan import MEASURES, PLANNABLE
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.described.layouts import descriptive_table, students_told
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS, comparison, study_rows, timed_out, write_handover

POSITIONS = tuple(LEVELS)


def used_trials(handover: Make, **readers: Any) -> pd.DataFrame:
    trials = load(handover(**readers)).trials
    return trials[trials["excluded_reason"].isna()].copy()


@pytest.mark.parametrize(("right", "n"), [(0, 12), (7, 48), (48, 48)])
def test_wilson_interval_agrees_with_statsmodels(right: int, n: int) -> None:
    assert wilson(right / n, n) == pytest.approx(proportion_confint(right, n, method="wilson"), abs=1e-9)


def test_within_participant_intervals_ignore_differences_between_participants() -> None:
    draw = np.random.default_rng(1)
    means = draw.normal(0, 1, (20, 3))
    apart = means + draw.normal(0, 100, (20, 1))
    assert within_participant_half_widths(apart) == pytest.approx(within_participant_half_widths(means))


def test_conditions_between_participants_have_student_s_intervals_over_participants(handover: Make) -> None:
    used = used_trials(handover, human=12, items=12)
    own = used["reader"].str[1:].astype(int) % len(POSITIONS)
    apart = used[used["position"] == own.map(dict(enumerate(POSITIONS)))]
    cells = describe(apart, MEASURES["correct"], "position", POSITIONS)
    assert {cell.interval for cell in cells} == {BETWEEN, ALIKE_BETWEEN} and len(cells) == 4
    for cell in cells:
        shown = apart[apart["position"] == cell.level]
        means = shown["correct"].fillna(0).astype(float).groupby(shown["reader"]).mean()
        # participants who do not differ tell of no others
        assert (cell.interval == ALIKE_BETWEEN) == (means.nunique() == 1)
        if cell.interval == ALIKE_BETWEEN:
            assert np.isnan([cell.low, cell.high]).all()
            continue
        expected = DescrStatsW(means).tconfint_mean()
        assert (cell.low, cell.high) == pytest.approx((max(expected[0], 0), min(expected[1], 1)))
    assert costs_by_level(apart, MEASURES["correct"], "position", POSITIONS, "study") == []


def test_the_spread_of_a_geometric_mean_is_geometric_in_every_unit() -> None:
    factors = np.array([0.5, 1.0, 2.0])

    def cells(unit: float) -> list[tuple[float, float]]:
        rows = pd.DataFrame({"reader": list("abc") * 2, "form": ["intact"] * 3 + ["mild"] * 3})
        rows["value"] = np.log(unit * np.concatenate([400 * factors, 500 * factors**0.5]))
        rows = rows.assign(reader_group="human", reader_kind="human")
        found = describe_rows(rows, MEASURES["rt"], "form", ("intact", "mild"))
        return [(cell.mean / unit, cell.sd) for cell in found]

    expected = [(400, 2.0), (500, 2**0.5)]
    for unit in (1.0, 1000.0):
        for found, (mean, spread) in zip(cells(unit), expected, strict=True):
            assert found == pytest.approx((mean, spread))


@pytest.mark.parametrize(
    ("means", "reason"),
    [
        ([[0.5, 0.25], [0.75, 0.5], [1.0, 0.75]], ALIKE_WITHIN),
        ([[0.1, 0.1], [0.1, 0.1]], ALIKE_WITHIN),
        ([[0.5, 0.25], [0.75, np.nan], [0.75, np.nan]], TOO_FEW_WITHIN),
        ([[0.5, np.nan], [0.5, np.nan], [np.nan, 0.1], [np.nan, 0.1]], ALIKE_BETWEEN),
    ],
)
@pytest.mark.parametrize("measure", ["correct", "rt"])
def test_a_missing_interval_is_explained_by_what_is_missing(
    means: list[list[float]], reason: str, measure: str
) -> None:
    rows = pd.DataFrame(means, columns=["intact", "mild"]).rename_axis("reader").reset_index()
    rows = rows.melt("reader", var_name="form").dropna().assign(reader_group="human", reader_kind="human")
    assert why_no_interval(describe_rows(rows, MEASURES[measure], "form", ("intact", "mild"))) == reason


def test_a_mixed_design_has_within_participant_intervals_in_each_group() -> None:
    draw = np.random.default_rng(3)
    values = {"de": draw.normal(0.6, 0.1, (5, 2)), "en": draw.normal(0.5, 0.1, (7, 2))}
    rows = pd.DataFrame(
        (f"{group}{i}", f"{form}/{group}", value)
        for group, means in values.items()
        for i, both in enumerate(means)
        for form, value in zip(("intact", "mild"), both, strict=True)
    ).set_axis(["reader", "cell", "value"], axis=1).assign(reader_group="human", reader_kind="human")  # fmt: skip
    cells = ("intact/de", "intact/en", "mild/de", "mild/en")
    found = {cell.level: cell for cell in describe_rows(rows, MEASURES["correct"], "cell", cells)}
    for group, means in values.items():
        for form, half in zip(("intact", "mild"), within_participant_half_widths(means), strict=True):
            cell = found[f"{form}/{group}"]
            assert (cell.high - cell.low) / 2 == pytest.approx(half)
            assert cell.interval == WITHIN


def test_a_timeout_counts_as_wrong_and_valid_only_stands_beside_it(handover: Make) -> None:
    used = used_trials(handover, human=2, items=8, timeouts=0.0)
    used["correct"] = 1.0
    late = used.index[used["position"] == "final"][:1]
    used.loc[late, ["correct", "response_status"]] = [None, "timeout"]
    cells = {cell.level: cell for cell in describe(used, MEASURES["correct"], "position", POSITIONS)}
    assert cells["final"].mean == pytest.approx(0.75)
    shares = accuracy(used, ["position"], resamples=0).set_index("position")
    assert shares.loc["final", "wrong"] == pytest.approx(0.75)
    assert shares.loc["final", "valid_only"] == 1.0
    assert shares.loc["final", "valid"] == 3


def test_people_are_averaged_by_participant_and_models_over_items(handover: Make) -> None:
    used = used_trials(handover, human=5, models=("restorer",), items=12)
    cells = describe(used, MEASURES["correct"], "position", POSITIONS)
    assert {(cell.group, cell.units) for cell in cells} == {("human", 5), ("restorer", 12)}
    assert all(np.isnan(cell.sd) for cell in cells if cell.group == "restorer")


def test_accuracy_cost_is_in_percentage_points_lost(handover: Make) -> None:
    used = used_trials(handover, models=("restorer",), items=8)
    used["correct"] = (used["position"] == "intact") | (used["item_id"] > "s04")
    found = {one.level: one for one in costs_by_level(used, MEASURES["correct"], "position", POSITIONS, "s")}
    assert found["final"].cost == pytest.approx(50.0)
    assert 0 <= found["final"].low < 50 < found["final"].high <= 100


def test_an_answer_that_nobody_judged_is_in_no_mean(handover: Make) -> None:
    rows = study_rows(human=4, items=8, timeouts=0.0)
    rows["correct"] = rows["correct"].astype(object)
    intact = rows.index[(rows["position"] == "intact") & ~rows["is_practice"].astype(bool)]
    rows.loc[intact, "correct"] = True
    rows.loc[intact[:2], "correct"] = None
    used = used_trials(handover, rows=rows)
    cells = describe(used, MEASURES["correct"], "position", ("intact", "final"))
    (cell,) = (one for one in cells if one.level == "intact")
    assert (cell.trials, cell.mean) == (len(intact) - 2, 1.0)
    row = accuracy(used, ["position"], resamples=0).set_index("position").loc["intact"]
    assert (row["trials"], row["wrong"]) == (len(intact) - 2, 1.0)


def test_missing_answers_are_no_errors_where_valid_ones_are_never_judged(handover: Make) -> None:
    """A summary that is not there is not wrong while no summary is right: accuracy would be made of failures alone."""
    used = used_trials(handover, human=3, items=8, timeouts=0.0)
    used["correct"] = np.nan
    used.loc[used.index[:2], "response_status"] = "empty"
    assert not judged(used).any()
    assert not describe(used, MEASURES["correct"], "position", POSITIONS)
    (not_valid,) = (stage for stage in flow(used, {}).index if stage.endswith(": empty"))
    used.loc[used.index[-1], "correct"] = 1.0
    (wrong,) = (stage for stage in flow(used, {}).index if stage.endswith(": empty"))
    assert judged(used).sum() == 3 and wrong != not_valid


def test_missing_answers_of_a_model_are_no_errors_where_only_people_are_judged(handover: Make) -> None:
    """A published scorer gives models a score alone, whereas people are right or wrong."""
    used = used_trials(handover, human=3, models=("m",), items=8, timeouts=0.0)
    own = used.index[used["reader_group"] == "m"]
    used.loc[own, "correct"] = np.nan
    used.loc[own[:2], "response_status"] = "unparsed"
    assert set(used.loc[judged(used), "reader_group"]) == {"human"}
    assert {cell.group for cell in describe(used, MEASURES["correct"], "position", POSITIONS)} == {"human"}
    used.loc[own, "response_status"] = "empty"
    assert judged(used).sum() == len(used), "without one valid answer, it could have been right"


def test_a_reader_without_one_valid_answer_has_no_mean_and_no_test(tmp_path: Path) -> None:
    """One missing answer among valid ones is wrong; if all are missing, they say nothing about conditions."""
    rows = study_rows(human=3, models=("lost", "kept"), items=8, timeouts=0.0)
    is_lost = (rows["reader"] == "lost") | ((rows["reader"] == "kept") & (rows["item_id"] == "s01"))
    tables = load(
        write_handover(
            tmp_path, timed_out(rows, is_lost), planned=comparison("final - intact", between=["lost"])
        )
    )
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    cells = describe(used, MEASURES["correct"], "position", POSITIONS)
    assert {cell.group for cell in cells} == {"human", "kept"}
    assert sum(cell.trials for cell in cells if cell.group == "kept") == 32
    (contrast,) = carry_out(plans(tables)[0], tables).contrasts
    assert not contrast.estimable
    stages = [stage for stage in flow(tables.trials, {}).index if stage.endswith(": timeout")]
    assert len(stages) == 2, "counted as wrong, and not valid"


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_intervals_of_items_answered_several_times_hold_as_often_as_they_say(spread: float) -> None:
    draw = np.random.default_rng(11)
    held, widths = [], []
    for _ in range(2000):
        ease = np.clip(draw.choice([0.75 - spread, 0.75 + spread], 24), 0, 1)
        low, high = share_over_items(draw.binomial(5, ease) / 5, np.full(24, 5.0))
        held.append(low <= 0.75 <= high)
        widths.append(high - low)
    assert 0.935 <= np.mean(held) <= 0.975
    low, high = wilson(0.75, 24)
    assert np.mean(widths) < (0.55 if spread == 0 else 0.85) * (high - low)


def test_means_of_a_model_and_its_accuracy_against_chance_have_one_interval(handover: Make) -> None:
    tables = load(handover(models=("restorer",), items=12, timeouts=0.0))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    again = [used.assign(replicate=n, session_id=f"s{n}", temperature=1.0) for n in (1, 2, 3)]
    trials = pd.concat(again, ignore_index=True).drop(columns="same_prompt")
    draw = np.random.default_rng(3)
    trials["correct"] = (draw.random(len(trials)) < 0.8).astype(float)
    trials["chance"], trials["trial_type"] = 0.5, "choose"
    cells = {one.level: one for one in describe(trials, MEASURES["correct"], "position", POSITIONS)}
    found = against_chance(trials, ["position"], study="t").set_index("position")
    for level in POSITIONS:
        own = found.loc[level]
        assert (own["unit_low"], own["unit_high"]) == pytest.approx((cells[level].low, cells[level].high))
        assert own["unit_low"] > wilson(cells[level].mean, 12)[0]


def test_a_note_of_intervals_says_where_equal_items_leave_none() -> None:
    cells = [
        ConditionMean("model", "model", level, 4, 4, mean, np.nan, *ends, OVER_ITEMS)
        for level, mean, ends in (("intact", 0.5, (0.2, 0.8)), ("shuffled", 0.0, (np.nan, np.nan)))
    ]
    assert students_told(cells) != students_told(cells[:1])


@pytest.mark.parametrize(
    ("name", "unit"), [("surprisal", "bits"), ("margin", "nats"), ("prompt_tokens", "tokens")]
)
def test_a_mean_keeps_the_unit_of_its_measure(name: str, unit: str) -> None:
    """Only shares become percent; a value in a trial without a valid answer is no 0."""
    trials = pd.DataFrame({"item_id": ["i1", "i2", "i3"], "cond": "intact", name: [200.0, 300.0, 400.0]})
    trials = trials.assign(reader="m", reader_group="m", reader_kind="model", correct=[1.0, 0.0, None])
    trials = trials.assign(
        response=["A", "B", None], answer="A", response_status=["valid", "valid", "unparsed"]
    )
    measure = PLANNABLE[name]
    cells = describe(trials.iloc[: 2 if measure.logged else 3], measure, "cond", ("intact",))
    mean = np.sqrt(200 * 300) if measure.logged else 300
    assert [cell.mean for cell in cells] == pytest.approx([mean])
    table = descriptive_table(cells, measure, "cond")
    assert table.title.endswith(f"({unit}) by cond and reader")
    assert f"{mean:.0f}" in {cell.removesuffix(".00") for row in table.rows for cell in row}
