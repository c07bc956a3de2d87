"""Mind Scramble's tables and figures from a study with known truth, and from studies that have but a part of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.preprocessing.exclusions import IDENTICAL
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from analysis.report.studies_page import write_studies_page
from analysis.tables import Tables
from experiment.papers.mind_scramble.chapter import ABOUT, similarity_table, together, unit_table, write
from experiment.papers.mind_scramble.chapter import measures as paper
from experiment.papers.mind_scramble.chapter.measures import Near, stored_texts
from stimuli.errors import UserError
from tests.analysis.inside.representation_study import representation_study
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
    (values,) = paper.values_of(tables, "scramble")
    for level, share in TRUTH.items():
        assert values.mean("large", level) == pytest.approx(100 * share, abs=1e-9)
        assert values.replicates("large", level) == (REPLICATES, pytest.approx(100 / ITEMS))


def test_identical_repeats_of_a_deterministic_model_count_in_the_means_of_its_replicates(
    tmp_path: Path,
) -> None:
    """Elsewhere they count once; a replicate of the few items that differ would be a mean of other items."""
    folder = study(tmp_path / "gsm8k")
    trials = pd.read_parquet(folder / "trials.parquet")
    trials["temperature"] = 0.0
    trials.to_parquet(folder / "trials.parquet")
    tables = load(folder)
    assert (tables.trials["excluded_reason"] == IDENTICAL).mean() > 0.5
    (values,) = paper.values_of(tables, "scramble")
    for level, share in TRUTH.items():
        assert values.mean("large", level) == pytest.approx(100 * share, abs=1e-9)
        assert values.replicates("large", level) == (REPLICATES, pytest.approx(100 / ITEMS))
    trials["correct"] = (
        trials["correct"]
        .where(trials["replicate"] == 1)
        .groupby([trials[name] for name in ("reader", "item_id", "scramble")])
        .transform("max")
    )
    trials.to_parquet(folder / "trials.parquet")
    (alike,) = paper.values_of(load(folder), "scramble")
    assert np.isnan(alike.replicates("large", "BASE")[1]), "replicates that are all alike have no spread"


def test_a_fault_that_turns_no_reply_has_no_interval(tmp_path: Path) -> None:
    folder = study(tmp_path / "gsm8k")
    file = folder / "published_scoring.parquet"
    rows = pd.read_parquet(file)
    rows["value"] = rows["value"].where(rows["rule"] != "a fault", 1.0)
    rows.to_parquet(file)
    prices = paper.fault_prices(load(folder)).set_index(["reader_group", "rule"])
    same, mended = prices.loc[("large", "a fault")], prices.loc[("large", "corrected")]
    assert (same["price"], same["turned"]) == (0, 0) and np.isnan(same["low"]) and np.isnan(same["high"])
    assert mended["low"] < mended["price"] < mended["high"]
    assert list(dict.fromkeys(prices.index.get_level_values(0))) == ["large", "small"]


def test_retention_is_the_mean_and_its_share_of_base(tables: Tables) -> None:
    (values,) = paper.values_of(tables, "scramble")
    mean, share = paper.kept(values, "large", paper.EDITS)
    assert mean == pytest.approx(77.5)
    assert share == pytest.approx(100 * 77.5 / 90)


def test_a_reader_without_answers_to_one_operation_has_no_retention(tables: Tables) -> None:
    (values,) = paper.values_of(tables, "scramble")
    partial = values.of_items["large"].copy()
    partial[:, values.levels.index("DEL-END")] = np.nan
    lacking = replace(values, of_items=values.of_items | {"large": partial})
    assert np.isnan(paper.kept(lacking, "large", paper.EDITS)).all()
    assert np.isfinite(paper.kept(lacking, "small", paper.EDITS)).all()
    # an operation that the study does not have is lacking in no reader
    fewer = [level for level in values.levels if level != "DEL-END"]
    cut = replace(
        values,
        levels=tuple(fewer),
        of_items={
            name: own[:, [values.levels.index(one) for one in fewer]] for name, own in values.of_items.items()
        },
    )
    assert np.isfinite(paper.kept(cut, "large", paper.EDITS)).all()


def test_slopes_are_points_for_each_operation(tables: Tables) -> None:
    (values,) = paper.values_of(tables, "scramble")
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
    assert one["items"] == ITEMS and one["replies"] == ITEMS * REPLICATES * len(TRUTH)
    # every other item has the fault in all its replies: the interval is that of 40 items, not of 1,560 replies
    assert one["high"] - one["low"] == pytest.approx(2 * 1.96 * 100 * (0.25 / ITEMS) ** 0.5, rel=0.15)
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


@pytest.mark.parametrize(
    "levels", [("BASE", "REO-ALL", "INS-BEG", "SENT-REO-REV"), ("BASE", "REO-INT_1", "REO-INT_3", "DEL-END")]
)
def test_a_part_of_the_operations_gives_a_part_of_the_tables(tmp_path: Path, levels: tuple[str, ...]) -> None:
    chapter = write(Material(load(study(tmp_path / "part", levels=levels))))
    assert chapter is not None
    assert len(chapter.blocks) > 4


def test_studies_together_have_ranks_and_a_page(tmp_path: Path) -> None:
    one, other = study(tmp_path / "gsm8k"), study(tmp_path / "csqa", "csqa", better=-0.3)
    found = {table.name: table for table in together([one, other])}
    assert set(found) == {"table_1", "table_3", "ranks", "faults"}
    assert "Fewer than three models" in found["ranks"].note
    by_reader = {row[0]: row for row in found["ranks"].rows}
    assert (by_reader["large"][2], by_reader["large"][4]) == ("1.0", "2.0")
    done = invoke("reproduce", "mind-scramble", one, other, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tables"] == ["table_1", "table_3", "ranks", "faults"]
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "csqa" in page and "http" not in page and "<script" not in page
    assert (tmp_path / "out" / "table_1.csv").is_file() and "href='table_1.csv'" in page
    with pytest.raises(UserError, match="are called gsm8k"):
        together([one, one])


def test_similarities_come_from_the_command_s_file(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()

    def kept(**told: Any) -> None:
        (folder / "similarity.json").write_text(json.dumps({"use": "m"} | told), "utf-8")

    assert stored_texts(folder) is None
    kept(shown={"REO-ALL": {"items": 3, "mean": 0.75}})
    found = stored_texts(folder)
    assert found == ("m", (Near("text alone", {"REO-ALL": 0.75}),))
    assert np.isnan(found[1][0].floor) and unit_table("t", [("s", found[1])], "m") is None
    (folder / "similarity.json").write_text("[]", "utf-8")
    with pytest.raises(UserError, match="is not what wrods score"):
        stored_texts(folder)
    (folder / "items.jsonl").write_text("{}\n", "utf-8")
    kept(shown={"DEL-BEG": {"items": 1, "mean": 0.5}}, items=hashlib.sha256(b"{}\n").hexdigest())
    assert stored_texts(folder) is not None
    (folder / "items.jsonl").write_text("{} \n", "utf-8")
    with pytest.raises(UserError, match="other items than the study has now"):
        stored_texts(folder)


def cosines(of: str, floor: float, by_unit: tuple[float, float, float], cut: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(len(of))
    shown = {}
    for prefix, mean in zip(("", "WORD-", "SENT-"), by_unit, strict=True):
        for name in ("REO-ALL", "REO-REV"):
            values = [mean + draw.normal(0, 0.01) for _ in range(20)]
            shown[f"{prefix}{name}"] = {
                "items": 20,
                "mean": float(np.mean(values)),
                "of": [f"s/i{n}" for n in range(20)],
                "cosines": values,
            }
    return {"shown": shown, "unrelated": {"cosines": [floor - 0.01, floor + 0.01]}, "texts": 140, "cut": cut}


def test_table_4_has_its_floor_and_whole_prompts_beside_texts(tmp_path: Path) -> None:
    folder = study(tmp_path / "gsm8k")
    told = cosines("text", 0.2, (0.6, 0.8, 0.95)) | {"use": "m"}
    told["prompts"] = cosines("prompt", 0.7, (0.85, 0.93, 0.98), cut=3)
    (folder / "similarity.json").write_text(json.dumps(told), "utf-8")
    chapter = write(Material(load(folder)))
    assert chapter is not None
    laid_out = {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}
    text, share, whole, _ = laid_out["ms_similarity"].rows
    assert (text[0], share[0], whole[0]) == ("Text alone", "% of the way", "Whole prompt")
    assert text[1].values[0] == pytest.approx(0.6, abs=0.01) and text[-1] == "0.200"
    assert share[1].values[0] == pytest.approx(50, abs=1.5) and whole[-1] == "0.700"
    assert (
        "Longer than the model's input, so that their end is not in the vectors: 3 of 140 (gsm8k, whole prompt)"
        in laid_out["ms_similarity"].note
    )
    units = laid_out["ms_similarity_units"].rows
    assert [row[0] for row in units[:5]] == [
        "gsm8k, text alone",
        "Character",
        "Word",
        "Sentence",
        "Different texts",
    ]
    assert units[2][5].values[0] == pytest.approx(0.2, abs=0.02) and units[2][6].values[0] > 0.18
    said = " ".join(str(block) for block in chapter.blocks if isinstance(block, str))
    assert "each above the one before, as in the paper; different texts have 0.200" in said
    assert (
        len(similarity_table("t", [("a", stored_texts(folder)[1]), ("b", stored_texts(folder)[1])], "m").rows)
        == 8
    )


def test_the_floors_interval_counts_each_pair_for_both_its_items(tmp_path: Path) -> None:
    """The error of a mean over pairs, from leaving out each item with its pairs in turn."""
    vectors = np.random.default_rng(4).normal(0.3, 1, (40, 12))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = vectors @ vectors.T
    n = len(cosine)

    def floor(kept: np.ndarray) -> float:
        part = cosine[np.ix_(kept, kept)]
        return float((part.sum() - len(part)) / (len(part) * (len(part) - 1)))

    without = np.array([floor(np.delete(np.arange(n), place)) for place in range(n)])
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    means = (cosine.sum(axis=1) - 1) / (n - 1)
    near = Near("text alone", {}, unrelated=tuple(means), pairs=n * (n - 1) // 2, with_all=True)
    low, high = near.floor_ends("s")
    assert near.floor == pytest.approx(floor(np.arange(n)))
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.06)
    assert np.isnan(
        Near("text alone", {}, unrelated=(0.1, 0.2), pairs=1, with_all=True).floor_ends("s")
    ).all()
    (tmp_path / "items.jsonl").write_text("{}\n", "utf-8")
    told = cosines("text", 0.2, (0.6, 0.8, 0.95)) | {"use": "m"}
    told["unrelated"] = {"pairs": 780, "of": [f"s/i{place}" for place in range(n)], "cosines": list(means)}
    (tmp_path / "similarity.json").write_text(json.dumps(told), "utf-8")
    use, parts = stored_texts(tmp_path)
    assert parts[0].with_all and parts[0].floor_ends("s") == (low, high)
    assert "with those of all others, 780 pairs" in similarity_table("t", [("s", parts)], use).note


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
    assert prices["price"] == pytest.approx(32.5) and prices["low"] <= 32.5 <= prices["high"]
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


def test_studies_with_hidden_states_have_figure_5_and_how_alike_their_maps_are(tmp_path: Path) -> None:
    folders = [
        representation_study(tmp_path / name, name=name, items=10, seed=seed, models={"one": (0, 4)})
        for seed, name in enumerate(("squad", "boolq"))
    ]
    found = {one.name: one for one in together([one / "reports" / "data" for one in folders])}
    assert "figure_5" in found and "one: boolq" in found["figure_5"].alternative
    head, row = found["figure_5_alike"].rows
    assert head[0] == "one" and row[0] == "squad, boolq" and row[3].values[0] > 0.98
    page = write_studies_page(ABOUT, list(found.values()), tmp_path / "out", "1")
    assert "<figure>" in page.read_text("utf-8") and (tmp_path / "out" / "figure_5.png").is_file()
