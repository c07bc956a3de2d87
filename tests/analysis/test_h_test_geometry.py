"""Letter geometry against chance, against a rule that sees no letter, and beside H-TEST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.figures import Drawing
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from experiment.papers.h_test.chapter import together
from experiment.papers.h_test.chapter import write_geometry as write
from experiment.papers.h_test.chapter.measures import (
    accuracy,
    asked,
    both_tests,
    by_option_alone,
    geometry,
    mean_with_ends,
    share,
)
from stimuli.errors import UserError
from stimuli.recipes.htest import geometry_released_items
from tests.analysis.test_report_h_test import READERS, rows_of, study
from tests.experiment.models.running import invoke

SHARES = {"small": 10, "large": 30, "P1": 36}


def questions(folder: Path) -> Tables:
    """Write a study of 40 questions, of which each reader answers so many right."""
    rows: list[dict[str, Any]] = [
        {
            **{"study": "g", "version": 1, "session_id": f"g-{reader}", "design_hash": "d", "attempt": 1},
            **{"reader_kind": "human" if reader == "P1" else "model", "reader": reader, "trial_index": item},
            **{"set": "letter_geometry", "family": "rotation" if item % 2 else "flip", "item_id": f"q{item}"},
            **{"is_practice": False, "is_filler": False, "is_attention_check": False, "is_pilot": False},
            **{"excluded_reason": None, "trial_type": "choose", "response_status": "valid"},
            "correct": item < right,
        }
        for reader, right in SHARES.items()
        for item in range(40)
    ]
    folder.mkdir(parents=True)
    trials = pd.DataFrame(rows)
    for name in ("correct", "is_pilot", "is_practice", "is_filler", "is_attention_check"):
        trials[name] = trials[name].astype("boolean")
    trials["excluded_reason"] = trials["excluded_reason"].astype("string")
    trials.to_parquet(folder / "trials.parquet")
    pd.DataFrame({"session_id": pd.Series(dtype=str)}).to_parquet(folder / "regions.parquet")
    dictionary = {
        **{"study": "g", "title": "G", "versions": [1], "design_hash": "d", "language": "en", "seed": 1},
        "factors": {"family": {"levels": ["rotation", "flip"], "reference": "rotation"}},
        **{"between": {}, "readers": {}, "planned": {}, "exclude": {}, "truth": None, "columns": {}},
        **{"created_at": "2026-11-21T10:00:00Z", "wrods": "0"},
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary), "utf-8")
    return load(folder)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Tables]:
    folder = tmp_path_factory.mktemp("both")
    rows = [row for name in ("small", "large") for row in rows_of(name, "model", ks=(4, 50))]
    return study(folder / "tasks", rows, READERS), questions(folder / "letters")


def test_shares_are_tested_against_chance(both: tuple[Tables, Tables]) -> None:
    rows = geometry(both[1])
    assert rows is not None
    for reader, right in SHARES.items():
        own = share(rows[rows["reader"] == reader])
        assert (own.items, own.value) == (40, right / 40)
        if reader != "P1":
            assert own.p == pytest.approx(stats.binomtest(right, 40, 0.25).pvalue)
    twice = rows[rows["reader"] == "small"]
    again = share(pd.concat([twice, twice]))
    units = [1.0] * 10 + [0.0] * 30
    assert again.answers == 80 and again.p == pytest.approx(stats.ttest_1samp(units, 0.25).pvalue)


def test_the_chapter_tells_each_kind_of_question(both: tuple[Tables, Tables]) -> None:
    chapter = write(Material(both[1]))
    assert chapter is not None and write(Material(both[0])) is None
    table = next(one for one in chapter.blocks if isinstance(one, ApaTable))
    assert [row[0] for row in table.rows] == ["People", "Rotation", "Flip", "All questions"] + [
        name for reader in ("large", "small") for name in (reader, "Rotation", "Flip", "All questions")
    ]
    assert table.rows[3][3] == "90.0" and "large 75.0%" in " ".join(str(one) for one in chapter.blocks)


@pytest.mark.shared
def test_a_rule_about_options_alone_answers_79_of_the_90_released_questions(shared: Path) -> None:
    items = [
        {"set": item.set_name, "item_id": item.item_id, "role": item.role, "answer": item.answer}
        | {"choices": json.dumps(item.choices)}
        for item in geometry_released_items(shared / "data" / "htest")
    ]
    assert by_option_alone(pd.DataFrame(items)) == (79, 90)
    assert by_option_alone(pd.DataFrame(items).assign(set="other")) is None
    assert by_option_alone(pd.DataFrame()) is None


def test_readers_of_both_tests_are_set_side_by_side(both: tuple[Tables, Tables]) -> None:
    found, rows = asked(both[0]), geometry(both[1])
    assert found is not None and rows is not None
    points = {one.group: one for one in both_tests(found, rows)}
    assert set(points) == {"small", "large"}
    assert points["large"].x[0] == pytest.approx(80) and points["large"].y[0] == pytest.approx(75)
    assert points["large"].x[1] < 80 < points["large"].x[2]
    # the figure has the interval of the table
    ends = stats.binomtest(30, 40).proportion_ci(method="wilson")
    assert points["large"].y[1:] == pytest.approx((100 * ends.low, 100 * ends.high))


def test_intervals_are_students_over_people_and_wilsons_of_a_models_answers() -> None:
    rows = pd.DataFrame(
        {"reader": reader, "task": "flip", "item_id": f"q{item}", "right": float(item < right)}
        for reader, right in {"P1": 4, "P2": 7, "P3": 9}.items()
        for item in range(10)
    )
    people = mean_with_ends(rows.assign(reader_kind="human"))
    low, high = stats.t.interval(0.95, 2, loc=200 / 3, scale=stats.sem([40, 70, 90]))
    assert high > 100 and people == pytest.approx((200 / 3, low, 100.0))
    alone = mean_with_ends(rows[rows["reader"] == "P1"].assign(reader_kind="human"))
    assert alone[0] == 40 and np.isnan(alone[1:]).all()
    # a model that is right in all of ten items may be wrong in others
    perfect = mean_with_ends(rows.assign(reader_kind="model", right=1.0))
    assert perfect == pytest.approx(
        (100.0, 100 * stats.binomtest(10, 10).proportion_ci(method="wilson").low, 100.0)
    )
    # of three answers to an item all count, as far as items do not differ
    half = rows.assign(
        reader_kind="model", right=[1.0] * 5 + [0.0] * 5 + [0.0] * 5 + [1.0] * 5 + [1.0] * 5 + [0.0] * 5
    )
    thrice = mean_with_ends(half)
    few, many = (stats.binomtest(n // 2, n).proportion_ci(method="wilson") for n in (10, 30))
    assert 100 * few.low < thrice[1] <= 100 * many.low < 100 * many.high <= thrice[2] < 100 * few.high
    assert thrice[2] - thrice[1] == pytest.approx(100 * (many.high - many.low), rel=0.1)


def test_reproducing_h_test_makes_a_page_of_figure_5_from_both_studies_in_either_order(
    both: tuple[Tables, Tables], tmp_path: Path
) -> None:
    tasks, letters = (one.folder for one in both)
    done = invoke("reproduce", "h-test", letters, tasks, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "o" / "index.html").read_text("utf-8")
    assert "H-TEST against letter geometry" in page and "As printed in the paper" in page
    assert {one.name for one in (tmp_path / "o").iterdir()} >= {
        "figure_5.png", "figure_5.svg", "figure_5_numbers.csv",
    }  # fmt: skip
    assert [one.name for one in together([tasks, letters])] == ["figure_5", "figure_5_numbers"]
    for given, said in (
        ([tasks], "needs two studies; 1 given"),
        ([tasks, tasks], "has letter geometry"),
        ([letters, letters], "has H-TEST's tasks"),
    ):
        with pytest.raises(UserError, match=said):
            together(given)


def test_a_reader_who_has_not_answered_all_tasks_has_no_average_and_no_point(
    both: tuple[Tables, Tables], tmp_path: Path
) -> None:
    """Tasks differ in how hard they are: a mean of some is no mean of all."""
    tables = both[0]
    trials = tables.trials
    last = sorted(trials["task"].dropna().unique())[-1]
    gone = (trials["reader"] == "small") & (trials["task"] == last) & (trials["examples"] == "k50")
    part = study(tmp_path / "part", trials[~gone].to_dict("records"), READERS)
    found, rows = asked(part), geometry(both[1])
    assert found is not None and rows is not None
    assert {one.group for one in both_tests(found, rows)} == {"large"}
    shares = accuracy(found.trials, ("k",))
    means = shares[shares["task"] == "average"].set_index(["reader_group", "k"])["accuracy"]
    assert np.isnan(means["small", 50]) and means[[("small", 4), ("large", 4)]].notna().all()
    told: list[str] = []
    drawing, _ = together([part.folder, both[1].folder], told.append)
    assert told == ["Excluded because not all tasks were answered: small."]
    assert isinstance(drawing, Drawing) and drawing.note.endswith(told[0])
