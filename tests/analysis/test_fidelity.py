"""How faithful a model is to people: effects with bounds, items with their ceiling, order of conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from analysis import load
from analysis.costs.ratios import CostProfile, Profile, cost_profiles, unit_costs
from analysis.fidelity import (
    cost_effects,
    effects,
    halves,
    item_agreement,
    item_means_by_level,
    kendall,
    rank_agreement,
    reliability,
    spearman,
    trial_profiles,
)
from analysis.plan import Bound, LevelDifference
from analysis.plan_runner import analyse_shares
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis.crossed_study import crossed_rows, crossed_study
from tests.analysis.letter_study import LEVELS, PLANNED, TIME, study_rows, trial_rows, write_handover


def planned(**changes: Any) -> dict[str, Any]:
    return {"comprehension": PLANNED["comprehension"] | changes}


def test_every_planned_effect_stands_beside_the_models_with_a_verdict_against_the_bound(
    tmp_path: Path,
) -> None:
    rows = study_rows(human=20, models=("restorer",), items=28, seed=4)
    tables = load(write_handover(tmp_path, rows, planned=planned(equivalence="60 points")))
    plan = next(one for one in plans(tables) if one.planned)
    analysis = analyse_shares(plan, tables)
    found = effects(analysis).set_index("contrast")
    assert list(found.index) == ["initial − internal", "final − internal"]
    points = {(one.label, one.groups): one.estimate for one in analysis.contrasts}
    row = found.loc["initial − internal"]
    assert row["human"] == points["initial − internal", ("human",)]
    assert row["machine"] == points["initial − internal", ("restorer",)]
    assert row["difference"] == pytest.approx(row["human"] - row["machine"])
    assert row["bound"] == 60
    assert row["equivalence_low"] > row["difference_low"]
    inside = row["equivalence_low"] > -60 and row["equivalence_high"] < 60
    assert inside and row["verdict"].startswith("equivalent")


def test_a_models_cost_equal_to_peoples_is_equivalent_within_a_tenth_and_another_is_different(
    tmp_path: Path,
) -> None:
    rows = study_rows(human=48, models=("same", "flat"), items=48, seed=2)
    cost = rows["position"].map({k: (0.0 if k == "intercept" else v) for k, v in TIME.items()}).fillna(0.0)
    noise = pd.Series(np.random.default_rng(1).normal(0, 0.05, len(rows)), index=rows.index)
    same = np.exp(3 + cost + noise).where(rows["reader"] == "same")
    rows["surprisal"] = same.where(rows["reader"] != "flat", np.exp(3 + noise))
    rows["surprisal"] = rows["surprisal"].where(rows["reader_kind"] == "model")
    tables = load(write_handover(tmp_path, rows))
    profiles = {
        (one.group, one.measure): one for one in cost_profiles(unit_costs(tables, "position"), study="t")
    }
    contrasts = [LevelDifference("initial", "internal"), LevelDifference("initial", "intact")]
    models = [profiles["same", "surprisal"], profiles["flat", "surprisal"]]
    bound = Bound(1.15, "ratio", "15%")
    found = cost_effects(profiles["human", "reading_time"], models, contrasts, bound)
    table = found.set_index(["model", "contrast"])
    first = table.loc[("same", "initial − intact")]
    assert first["human"] == pytest.approx(TIME["initial"], abs=0.05)
    assert first["verdict"].startswith("equivalent")
    assert first["equivalence_p"] < 0.05
    other = table.loc[("flat", "initial − intact")]
    assert other["verdict"] == "different"
    assert other["p"] < 0.01
    assert not table.loc[("flat", "initial − internal"), "verdict"].startswith("equivalent")
    with pytest.raises(UserError, match="5 points"):
        cost_effects(profiles["human", "reading_time"], models, contrasts, Bound(5, "points", "5 points"))
    with pytest.raises(UserError, match="a − b"):
        cost_effects(profiles["human", "reading_time"], models, [LevelDifference("a", "b")])


def test_halves_are_dealt_within_lists() -> None:
    """Each list shows its own items; halves of equal size within lists give each item as many readers in either half."""
    counts = sparse.csr_matrix(np.kron(np.eye(2), np.ones((4, 3))))
    values = sparse.csr_matrix(np.kron(np.eye(2), np.arange(4.0)[:, None] * np.ones((1, 3))))
    found = halves(values, counts, np.repeat([0, 1], 4), seed=1, splits=50)
    assert found.first.shape == (50, 6)
    assert found.first + found.second == pytest.approx(np.full((50, 6), 3.0))
    with pytest.raises(UserError, match="two readers"):
        halves(values[:1], counts[:1], np.array([0]), seed=1)


def test_a_model_whose_one_session_meets_an_item_twice_in_a_condition_has_correlations_without_a_reliability(
    tmp_path: Path,
) -> None:
    """Of two factors an item is shown in each condition of the other: that makes answers, but no second reader."""
    tables = load(crossed_study(tmp_path, crossed_rows(12, 24, models=("gpt",))))
    found = item_agreement(tables, "item_type", "correct", resamples=20)
    assert set(found["item_type"]) == {"word", "transposed", "within levels"}
    assert found["correlation"].notna().all() and found["model_reliability"].isna().all()
    assert found["people_reliability"].notna().any()


def test_reliability_is_the_share_of_variance_that_items_have() -> None:
    """σ²(items) / (σ²(items) + σ²(residual) / participants) = 1 / (1 + 9 / 18) = 2/3."""
    draw = np.random.default_rng(3)
    values = draw.normal(0, 1, 400)[None, :] + draw.normal(0, 3, (18, 400))
    found = halves(
        sparse.csr_matrix(values), sparse.csr_matrix(np.ones_like(values)), np.zeros(18, int), 1, 300
    )
    assert reliability(found)[0] == pytest.approx(2 / 3, abs=0.05)


def item_study(path: Path, share: float, *, seed: int = 1, people: int = 60, items: int = 120) -> Any:
    """A study in which a model's item difficulties correlate with people's by ``share`` within every condition."""
    draw = np.random.default_rng(seed)
    own = draw.normal(0, 1.2, items)
    other = share * own + np.sqrt(1 - share**2) * draw.normal(0, 1.2, items)
    shift = {"intercept": 1.0, "initial": -1.0, "internal": -0.3, "final": -0.6}
    rows = []
    for number in range(people):
        rows += trial_rows(f"P{number:03d}", "human", number, items, draw, shift, None, item_effects=own)
    for session in range(8):
        made = trial_rows("m", "model", 0, items, draw, shift, None, all_conditions=True, item_effects=other)
        rows += [
            row | {"session_id": f"m-{session}", "temperature": 1.0, "replicate": session + 1} for row in made
        ]
    return load(write_handover(path, pd.DataFrame(rows)))


def test_item_correlations_divided_by_their_ceiling_are_those_put_in(tmp_path: Path) -> None:
    found = item_agreement(item_study(tmp_path, 0.6), "position", splits=200, resamples=400)
    row = found.set_index("position").loc["within levels"]
    assert row["ceiling"] < 0.95
    assert row["correlation"] < row["corrected"]
    assert row["corrected_low"] < 0.6 < row["corrected_high"]
    assert row["corrected"] == pytest.approx(0.6, abs=0.12)
    assert row["ceiling_of"] == "both"
    assert not row["unsure"]
    assert (found["items"] == 120).all()
    assert found.set_index("position").loc["final", "corrected"] == pytest.approx(
        found.set_index("position").loc["final", "correlation"]
        / found.set_index("position").loc["final", "ceiling"]
    )


def test_a_model_with_one_answer_an_item_has_only_peoples_ceiling(tmp_path: Path) -> None:
    tables = load(write_handover(tmp_path, study_rows(human=40, models=("restorer",), items=40)))
    found = item_agreement(tables, "position", splits=100, resamples=200)
    assert set(found["ceiling_of"]) == {"people"}
    assert found["model_reliability"].isna().all()
    row = found.iloc[0]
    assert row["ceiling"] == pytest.approx(np.sqrt(row["people_reliability"])) or np.isnan(row["ceiling"])
    with pytest.raises(UserError, match="'speed'"):
        item_agreement(tables, "position", "speed")
    with pytest.raises(UserError, match="surprisal"):
        item_agreement(tables, "position", "correct", "surprisal")


def test_rank_correlations_are_those_of_scipy() -> None:
    draw = np.random.default_rng(5)
    one, other = draw.integers(0, 4, (30, 5)).astype(float), draw.normal(size=(30, 5))
    tau, rho = kendall(one, other), spearman(one, other)
    for row in range(30):
        if len(set(one[row])) > 1:
            assert tau[row] == pytest.approx(stats.kendalltau(one[row], other[row]).statistic)
            assert rho[row] == pytest.approx(stats.spearmanr(one[row], other[row]).statistic)
    assert np.isnan(kendall(np.ones((1, 3)), other[:1, :3])[0])


def flat(group: str, estimate: list[float], spread: float, seed: int) -> CostProfile:
    draws = np.array(estimate) + np.random.default_rng(seed).normal(0, spread, (500, len(estimate)))
    profile = Profile("intact", tuple(LEVELS[1:]), np.array(estimate), draws, 0, 40, "items")
    return CostProfile(group, "model", "surprisal", profile, 0)


def test_the_order_of_conditions_is_sure_where_costs_lie_apart_and_open_where_they_do_not() -> None:
    people = flat("human", [0.3, 0.1, 0.2], 0.01, 1)
    found = rank_agreement(
        people, [flat("alike", [3.0, 1.0, 2.0], 0.1, 2), flat("noise", [0.1, 0.1, 0.1], 0.2, 3)]
    )
    alike, noise = found.iloc[0], found.iloc[1]
    assert (alike["tau"], alike["rho"], alike["levels"]) == (1.0, 1.0, 4)
    assert alike["same_order"] > 0.99
    assert alike["by_chance"] == pytest.approx(1 / 24)
    assert noise["same_order"] < 0.25
    assert noise["tau_low"] < 0 < noise["tau_high"]
    lone = CostProfile(
        "m", "model", "correct", Profile("intact", ("final",), np.ones(1), np.ones((9, 1)), 0, 3, "items"), 0
    )
    with pytest.raises(UserError, match=r"\bm \w+ 2 "):
        rank_agreement(people, [lone])


@pytest.mark.shared
def test_split_halves_of_real_lexical_decisions_agree_with_a_loop(shared: Path) -> None:
    """124 people, transposed nonwords: reliability of items' log times by a plain loop over 200 splits."""
    data = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv")
    own = data[(data["item_type"] == "transposed") & (data["rt"] > 0.2)].copy()
    own["value"] = np.log(own["rt"]) - np.log(own["rt"]).groupby(own["participant"]).transform("mean")
    table = own.pivot_table(index="participant", columns="base", values="value")
    lists = own.drop_duplicates("participant").set_index("participant")["list"].loc[table.index].to_numpy()
    draw = np.random.default_rng(1)
    found = []
    for _ in range(200):
        first = np.zeros(len(table), dtype=bool)
        for one in np.unique(lists):
            members = np.flatnonzero(lists == one)
            first[draw.permutation(members)[: len(members) // 2]] = True
        sides = table[first].mean(), table[~first].mean()
        found.append(sides[0].corr(sides[1]))
    mean = float(np.mean(found))
    present = table.notna().to_numpy().astype(float)
    made = halves(
        sparse.csr_matrix(table.fillna(0).to_numpy()),
        sparse.csr_matrix(present),
        pd.factorize(lists)[0],
        seed=4,
        splits=1000,
    )
    ours = float(reliability(made)[0])
    assert ours == pytest.approx(2 * mean / (1 + mean), abs=0.02)
    assert 0.3 < ours < 0.95


def test_item_means_are_those_that_are_correlated(tmp_path: Path) -> None:
    tables = load(write_handover(tmp_path, study_rows(human=12, models=("restorer",), items=16, timeouts=0)))
    found = item_means_by_level(tables, "position", "correct")
    assert list(found) == ["human", "restorer"] and list(found["human"].columns) == LEVELS
    table = item_agreement(tables, "position", splits=20, resamples=20).set_index("position")
    for level in LEVELS:
        both = pd.concat([found["human"][level], found["restorer"][level]], axis=1).dropna()
        r = both.iloc[:, 0].corr(both.iloc[:, 1])
        assert table.loc[level, "correlation"] == pytest.approx(r, nan_ok=True)
        assert table.loc[level, "items"] == len(both)


def test_profiles_of_other_measures_hold_what_each_level_adds(tmp_path: Path) -> None:
    rows = study_rows(human=24, models=("restorer",), items=24)
    machine = rows["reader_kind"] == "model"
    bits = rows["position"].map({"intact": 10.0, "initial": 19.0, "internal": 14.0, "final": 16.0})
    tables = load(write_handover(tmp_path, rows.assign(surprisal=bits.where(machine))))
    (people,) = trial_profiles(tables, "position", "reading_time", resamples=200)
    (model,) = trial_profiles(tables, "position", "surprisal", resamples=200)
    assert model.profile.estimate == pytest.approx([9.0, 4.0, 6.0])
    assert people.profile.estimate == pytest.approx([TIME[one] for one in LEVELS[1:]], abs=0.06)
    assert rank_agreement(people, [model]).iloc[0]["tau"] == 1.0
