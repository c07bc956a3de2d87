"""A deterministic model's answers to the same prompt are one observation, also across conditions that a prompt does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.descriptives import describe
from analysis.exclusions import COUNTED_ONCE, unseen
from analysis.frames import ModelData, accuracy_data
from analysis.measures.accuracy import against_chance, with_chance
from analysis.plan import MEASURES, Plan, against_reference
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.described import with_copies_told
from tests.analysis.letter_study import LEVELS, study_rows, write_handover

FONTS = ["print", "cursive"]
FACTORS = {
    "position": {"levels": LEVELS, "reference": "intact"},
    "font": {"levels": FONTS, "reference": "print"},
}
ITEMS = 8


def both_fonts(rows: pd.DataFrame) -> pd.DataFrame:
    """Show every trial in both fonts: people answer anew, the model gives the same answer to the same text."""
    again = rows.assign(font="cursive", trial_index=rows["trial_index"] + 1000)
    people = again["reader_kind"] == "human"
    turned = people & (again["trial_index"] % 5 == 0) & again["correct"].notna()
    again.loc[turned, "correct"] = ~again.loc[turned, "correct"].astype(bool)
    return pd.concat([rows.assign(font="print"), again], ignore_index=True)


def study(folder: Path, *, exemplars: bool = False, alike: bool = True, **changes: Any) -> Tables:
    rows = both_fonts(study_rows(human=6, models=("restorer",), items=ITEMS, timeouts=0.0).assign(**changes))
    write_handover(folder, rows, factors=FACTORS)
    items = rows.loc[
        ~rows["is_practice"].astype(bool), ["set", "item_id", "position", "font"]
    ].drop_duplicates()
    items = items.assign(role="test", choices='["yes", "no"]')
    texts = items["item_id"] + " " + items["position"] + ("" if alike else " " + items["font"])
    items["shown"] = [json.dumps({"sentence": text}) for text in texts]
    if exemplars:
        items = pd.concat([items, items.head(1).assign(role="exemplar", item_id="solved")])
    items.to_parquet(folder / "items.parquet")
    return load(folder)


def data_of(tables: Tables, factor: str, **changes: Any) -> ModelData:
    levels = tables.levels_of(factor)
    plan = Plan(
        "a", False, MEASURES["correct"], factor, tuple(levels), ("human", "restorer"), against_reference(levels),
        factors={name: tuple(own) for name, own in tables.factors.items()}, **changes,
    )  # fmt: skip
    return accuracy_data(tables.trials, plan)


def many(data: ModelData) -> dict[str, int]:
    return data.rows["reader_group"].value_counts().to_dict()


def test_copies_across_a_factor_that_prompts_do_not_show_count_once(tmp_path: Path) -> None:
    tables = study(tmp_path)
    data = data_of(tables, "position")
    assert many(data) == {"human": 6 * ITEMS * 2, "restorer": ITEMS * 4}
    assert [remark for remark in data.remarks if f" {ITEMS * 4} " in remark]
    assert tables.trials["excluded_reason"].isna().sum() == 6 * ITEMS * 2 + ITEMS * 8


def test_a_comparison_of_what_prompts_do_not_show_keeps_its_conditions_and_says_what_they_are(
    tmp_path: Path,
) -> None:
    data = data_of(study(tmp_path), "font")
    # of the four conditions of position each shows another text
    assert many(data)["restorer"] == ITEMS * 8
    assert unseen("restorer", "font") in data.remarks


@pytest.mark.parametrize(
    "changes", [{"temperature": 0.7}, {"context": "session"}, {"alike": False}, {"exemplars": True}]
)
def test_answers_that_were_drawn_or_asked_otherwise_all_count(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    data = data_of(study(tmp_path, **changes), "position")
    assert many(data)["restorer"] == ITEMS * 8
    assert not any(f" {ITEMS * 4} " in remark for remark in data.remarks)


def test_means_and_chance_count_copied_answers_once(tmp_path: Path) -> None:
    tables = study(tmp_path)
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    levels = tuple(LEVELS)
    cells = [
        one for one in describe(used, MEASURES["correct"], "position", levels) if one.group == "restorer"
    ]
    assert {one.trials for one in cells} == {ITEMS}
    asked = with_chance(tables.trials, tables.items, tables.factors)
    chance = against_chance(asked, ["position"], study="t").set_index(["reader_group", "position"])
    own = chance.loc["restorer"]
    assert set(own["trials"]) == {ITEMS} == {*own["answered"]}
    exact = stats.binomtest(int(own.loc["final", "correct"]), ITEMS, 0.5)
    assert own.loc["final", "p"] == pytest.approx(exact.pvalue)
    assert set(chance.loc["human", "trials"]) == {6 * ITEMS * 2 // len(levels)}
    by_font = against_chance(asked, ["font"], study="t").set_index(["reader_group", "font"])
    assert by_font.loc[("restorer", "print"), "trials"] == ITEMS * len(levels)
    table = ApaTable("t", "t", (), (), "", Origin(where=()))
    assert with_copies_told(table, used, "position").origin == Origin(where=(), rows=COUNTED_ONCE)
    assert with_copies_told(table, used, "font") is table
