"""Mind Scramble's tables and figures from a study with known truth, and from studies that have but a part of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.published import mind_scramble as paper
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from analysis.report.chapters.mind_scramble import write
from analysis.report.chapters.mind_scramble_tables import similarity_of_inputs
from analysis.report.mind_scramble_together import tables_together
from analysis.tables import Tables
from stimuli.errors import UserError
from tests.analysis.letter_study import write_handover
from tests.analysis.measured_study import _row
from tests.experiment.models.running import invoke

TRUTH = {
    "BASE": 0.9, "REO-ALL": 0.5, "REO-INT": 0.8, "REO-INT_1": 0.85, "REO-INT_2": 0.8, "REO-INT_3": 0.75, "REO-INT_4": 0.7,
    "INS-BEG": 0.8, "DEL-BEG": 0.7, "INS-END": 0.85, "DEL-END": 0.75, "WORD-REO-ALL": 0.6, "SENT-REO-REV": 0.9,
}  # fmt: skip
ITEMS = 40
REPLICATES = 3


def study(
    folder: Path, name: str = "gsm8k", levels: tuple[str, ...] = tuple(TRUTH), *, better: float = 0.0
) -> Path:
    """Write a study in which exactly the stated share of items is right, for two models that differ by a constant."""
    rows: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    for reader, more in (("large", better), ("small", -0.2)):
        for level in levels:
            for replicate in range(1, REPLICATES + 1):
                for item in range(ITEMS):
                    right = item < round((TRUTH[level] + more) * ITEMS) + (replicate - 2)
                    row = _row(reader, "model", f"i{item:02d}", level, len(rows), correct=right, response="1")
                    row |= {
                        "study": name,
                        "scramble": row["position"],
                        "set": "complete",
                        "trial_type": "answer",
                    }
                    row |= {"replicate": replicate, "answer": "1", "score": float(right)}
                    row |= {
                        "prompt_tokens": 100 if level == "BASE" else 150,
                        "completion_tokens": 20,
                        "latency_ms": None,
                    }
                    rows.append(row)
                    place = {key: row[key] for key in ("session_id", "trial_index", "attempt")}
                    for rule, value in (
                        ("released", 1.0),
                        ("a fault", float(item % 2)),
                        ("mended", float(right)),
                    ):
                        faults.append(place | {"data_set": name, "rule": rule, "value": value})
    factors = {"scramble": {"levels": list(levels), "reference": levels[0]}}
    write_handover(folder, pd.DataFrame(rows), study=name, factors=factors, planned=[])
    pd.DataFrame(faults).to_parquet(folder / "published_scoring.parquet")
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("ms") / "gsm8k"))


def test_values_are_those_that_were_put_in(tables: Tables) -> None:
    values = paper.values_of(tables, "scramble")
    assert values is not None
    for level, share in TRUTH.items():
        assert values.mean("large", level) == pytest.approx(100 * share, abs=1e-9)
        assert values.replicates("large", level) == (REPLICATES, pytest.approx(100 / ITEMS))


def test_retention_is_the_mean_and_its_share_of_base(tables: Tables) -> None:
    values = paper.values_of(tables, "scramble")
    assert values is not None
    mean, share = paper.kept(values, "large", paper.EDITS)
    assert mean == pytest.approx(77.5)
    assert share == pytest.approx(100 * 77.5 / 90)


def test_slopes_are_points_for_each_operation(tables: Tables) -> None:
    values = paper.values_of(tables, "scramble")
    assert values is not None
    found = {one.group: one for one in paper.slopes(values)}
    assert set(found) == {"large", "small"}
    one = found["large"]
    assert one.counts == (0, 1, 2, 3, 4)
    assert one.slope == pytest.approx(-5.0)
    assert one.low < one.slope < one.high


def test_the_price_of_a_fault_is_the_difference_of_the_rules(tables: Tables) -> None:
    prices = paper.fault_prices(tables).set_index(["reader_group", "rule"])
    one = prices.loc[("large", "a fault")]
    assert (one["released"], one["value"], one["price"]) == (100.0, 50.0, 50.0)
    assert one["low"] < 50 < one["high"]
    assert one["turned"] == one["replies"] / 2


def test_the_chapter_has_the_paper_s_layouts(tables: Tables) -> None:
    chapter = write(Material(tables))
    assert chapter is not None
    laid_out = {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}
    assert set(laid_out) == {"ms_reordering", "ms_edits", "ms_slopes", "ms_faults"}
    head = laid_out["ms_reordering"].columns
    assert head[:3] == ("Reader", "BASE", "Character ALL")
    assert [row[0] for row in laid_out["ms_edits"].rows][-2:] == ["Mean", "% of BASE"]
    assert laid_out["ms_edits"].rows[-2][1] == "77.5"
    figures = [one.name for one in chapter.blocks if hasattr(one, "svg")]
    assert figures == ["ms_series", "ms_costs"]


def test_without_the_paper_s_operations_there_is_no_chapter(tmp_path: Path) -> None:
    named = {"red": 0.9, "green": 0.5}
    TRUTH.update(named)
    try:
        tables = load(study(tmp_path / "other", levels=tuple(named)))
    finally:
        for name in named:
            del TRUTH[name]
    assert write(Material(tables)) is None


@pytest.mark.parametrize(
    "levels", [("BASE", "REO-ALL", "INS-BEG", "SENT-REO-REV"), ("BASE", "REO-INT_1", "REO-INT_3", "DEL-END")]
)
def test_a_part_of_the_operations_gives_a_part_of_the_tables(tmp_path: Path, levels: tuple[str, ...]) -> None:
    chapter = write(Material(load(study(tmp_path / "part", levels=levels))))
    assert chapter is not None
    assert len(chapter.blocks) > 4


def test_studies_together_have_ranks_and_a_page(tmp_path: Path) -> None:
    one, other = study(tmp_path / "gsm8k"), study(tmp_path / "csqa", "csqa", better=-0.3)
    found = {table.name: table for table in tables_together([one, other])}
    assert set(found) == {"table_1", "table_3", "ranks", "faults"}
    by_reader = {row[0]: row for row in found["ranks"].rows}
    assert (by_reader["large"][2], by_reader["large"][4]) == ("1.0", "2.0")
    done = invoke("reproduce", "mind-scramble", one, other, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tables"] == ["table_1", "table_3", "ranks", "faults"]
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "csqa" in page and "http" not in page and "<script" not in page
    assert (tmp_path / "out" / "table_1.csv").is_file() and "href='table_1.csv'" in page
    with pytest.raises(UserError, match="are called gsm8k"):
        tables_together([one, one])


def test_similarities_come_from_the_command_s_file(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    assert similarity_of_inputs(folder) is None
    (folder / "similarity.json").write_text(
        '{"use": "m", "shown": {"REO-ALL": {"items": 3, "mean": 0.75}}}', "utf-8"
    )
    assert similarity_of_inputs(folder) == ("m", {"REO-ALL": 0.75})
    (folder / "similarity.json").write_text("[]", "utf-8")
    with pytest.raises(UserError, match="is not what wrods score"):
        similarity_of_inputs(folder)
    (folder / "items.jsonl").write_text("{}\n", "utf-8")
    told = {"use": "m", "shown": {"DEL-BEG": {"items": 1, "mean": 0.5}}}
    told["items"] = hashlib.sha256(b"{}\n").hexdigest()
    (folder / "similarity.json").write_text(json.dumps(told), "utf-8")
    assert similarity_of_inputs(folder) == ("m", {"DEL-BEG": 0.5})
    (folder / "items.jsonl").write_text("{} \n", "utf-8")
    with pytest.raises(UserError, match="other items than the study has now"):
        similarity_of_inputs(folder)


def test_the_cosine_of_programs_has_its_price_and_says_how_well_it_orders(tmp_path: Path) -> None:
    folder = study(tmp_path / "mbpp", "mbpp")
    rows = pd.read_parquet(folder / "published_scoring.parquet")
    places = rows[rows["rule"] == "mended"]
    # every second program passes; cosines are .9 and .8, those of a quarter of the programs the other way round
    passes = np.arange(len(places)) % 2 == 0
    cosine = np.where(passes ^ (np.arange(len(places)) % 4 == 0), 0.9, 0.8)
    parts = [
        places.assign(data_set="mbpp", rule="released", value=cosine),
        places.assign(data_set="mbpp", rule="programs are never run", value=passes.astype(float)),
    ]
    pd.concat(parts).to_parquet(folder / "published_scoring.parquet")
    tables = load(folder)
    prices = paper.fault_prices(tables).set_index("reader_group").loc["large"]
    assert prices["value"] == pytest.approx(50) and prices["released"] == pytest.approx(82.5)
    assert prices["price"] == pytest.approx(32.5) and prices["low"] < 32.5 < prices["high"]
    # passing: half .9, half .8; failing: all .8
    assert prices["ordered"] == pytest.approx(75) and np.isnan(prices["turned"])
    chapter = write(Material(tables))
    assert chapter is not None
    said = " ".join(str(block) for block in chapter.blocks if isinstance(block, str))
    assert (
        "mean cosine of 0.825" in said
        and "50.0% pass their tests" in said
        and "In 75.0% of the pairs" in said
    )
    assert "difference of" not in said


def test_no_numbers_are_made_up_for_levels_that_nobody_saw(tables: Tables) -> None:
    values = paper.values_of(tables, "scramble")
    assert values is not None
    assert np.isnan(values.mean("large", "REO-REV"))
