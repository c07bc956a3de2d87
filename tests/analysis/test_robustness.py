"""Robustness: ways of asking, sets of items, no random effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from analysis import Tables, load
from analysis.plan import Plan
from analysis.plan_runner import analyse_shares
from analysis.planned import plans
from analysis.robustness import asked_otherwise, gee_check, without_item_sets
from tests.analysis.letter_study import LEVELS, PLANNED, study_rows, trial_rows, write_handover

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


def test_items_of_one_condition_each_are_right_in_0_to_100_percent(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        trial_rows(
            "m",
            "model",
            0,
            24,
            np.random.default_rng(4),
            FLAT | {LEVELS[1]: -3.0},
            None,
            all_conditions=True,
            item_effects=np.zeros(24),
        )
    )
    rows = rows[~rows["is_practice"].astype(bool)]
    of_item = rows["item_id"].astype("category").cat.codes % len(LEVELS)
    rows = rows[rows["position"] == of_item.map(dict(enumerate(LEVELS)))]
    found = asked_otherwise(load(write_handover(tmp_path, rows)), "position", permutations=5).table
    item = found.set_index("source").loc["item"]
    assert (item["lowest"], item["highest"], item["range_points"]) == (0.0, 1.0, 100.0)


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


def test_a_label_map_that_matters_shows_its_range(tmp_path: Path) -> None:
    found = asked_otherwise(asked(tmp_path, [0.0, 0.0], [-0.8, 0.8]), "position", permutations=200).table
    row = found.set_index("source").loc["label map"]
    assert row["levels"] == 2
    expected = 100 * (special.expit(1.3) - special.expit(-0.3))
    assert row["range_points"] == pytest.approx(expected, abs=10)
    assert row["p"] < 0.01


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


def test_clusters_widen_intervals_where_participants_differ_in_the_effect(tmp_path: Path) -> None:
    """Every participant has an effect of their own; a test that takes answers as independent rejects far too often."""
    draw = np.random.default_rng(6)
    naive, clustered = 0, 0
    for run in range(40):
        rows: list[dict[str, Any]] = []
        for number in range(16):
            own = FLAT | {"initial": draw.normal(0, 1.5)}
            rows += trial_rows(f"P{number:02d}", "human", number, 40, draw, own, None, all_conditions=True)
        planned = {"a": {"measure": "correct", "compare": "position", "between": ["human"]}}
        planned["a"]["contrasts"] = ["initial - intact"]
        tables = load(write_handover(tmp_path / str(run), pd.DataFrame(rows), planned=planned))
        found = gee_check(tables, plan_of(tables)).set_index("clusters")
        clustered += found.loc["participants", "p"] < 0.05
        naive += found.loc["items", "p"] < 0.05
    assert clustered <= 7
    assert naive > clustered


def test_a_conclusion_that_hangs_on_a_few_items_shows(tmp_path: Path) -> None:
    """Only five of thirty items have the effect; without the set that holds them it is gone."""
    planned = {"a": {"measure": "correct", "compare": "position", "between": ["human"]}}
    planned["a"]["contrasts"] = ["initial - intact"]
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
    tables = load(write_handover(tmp_path, pd.DataFrame(rows), planned=planned))
    found = without_item_sets(tables, plan_of(tables)).set_index("left_out")
    assert list(found.index) == ["nothing", "set odd", "set plain"]
    assert found.loc["nothing", "high"] < 0
    assert found.loc["set odd", "conclusion_changed"]
    assert found.loc["set odd", "items"] == 5
    assert found.loc["set odd", "shift"] > 2
    assert not found.loc["nothing", "reversed"]
    assert found.loc["nothing", "shift"] == 0
