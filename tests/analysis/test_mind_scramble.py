"""Mind Scramble's tables and figures from studies with known truth: completion tasks, perception tasks, and a part of them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from analysis import load
from analysis.exclusions import IDENTICAL
from analysis.measures.similarity import FILE, OWN_ANSWER
from analysis.report.apa_tables import Head
from analysis.report.chapters.ratios import write as write_ratios
from analysis.report.studies_page import write_studies_page
from analysis.tables import Tables
from experiment.papers.mind_scramble.chapter import (
    ABOUT,
    ABOVE_FLOOR,
    similarity_table,
    together,
    unit_table,
    write,
)
from experiment.papers.mind_scramble.chapter import measures as paper
from experiment.papers.mind_scramble.chapter.measures import (
    ACCURACY,
    COSINE,
    IN_PLACE,
    NEARNESS,
    Near,
    Values,
    agreements,
    floors,
    ranks,
    stored_texts,
    values_of,
)
from experiment.papers.mind_scramble.chapters import answers
from stimuli.errors import UserError
from tests.analysis.chapters import chapter_of, tables_in, words_in
from tests.analysis.inside.representation_study import representation_study
from tests.analysis.letter_study import write_handover
from tests.analysis.measured_study import row as measured_row
from tests.experiment.models.running import invoke

TRUTH = {
    "BASE": 0.9, "REO-ALL": 0.5, "REO-INT": 0.8, "REO-INT_1": 0.85, "REO-INT_2": 0.8, "REO-INT_3": 0.75, "REO-INT_4": 0.7,
    "INS-BEG": 0.8, "DEL-BEG": 0.7, "INS-END": 0.85, "DEL-END": 0.75, "WORD-REO-ALL": 0.6, "SENT-REO-REV": 0.9,
}  # fmt: skip
ITEMS = 40
REPLICATES = 3
PLACE = ["session_id", "trial_index", "attempt"]


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
                    told = {"correct": right, "response": "1"}
                    row = measured_row(reader, "model", f"i{item:02d}", level, len(rows), **told)
                    row |= {"study": name, "scramble": level, "set": "complete", "trial_type": "answer"}
                    row |= {"replicate": replicate, "answer": "1", "score": float(right)}
                    row |= {"prompt_tokens": 100 if level == "BASE" else 150, "completion_tokens": 20}
                    rows.append(row | {"latency_ms": None})
                    place = {key: row[key] for key in PLACE} | {"data_set": name}
                    values = {"released": 1.0, "a fault": float(item % 2), "mended": float(right)}
                    faults += [place | {"rule": rule, "value": value} for rule, value in values.items()]
    factors = {"scramble": {"levels": list(levels), "reference": levels[0]}}
    write_handover(folder, pd.DataFrame(rows), study=name, factors=factors, planned=[])
    pd.DataFrame(faults).to_parquet(folder / "published_scoring.parquet")
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("ms") / "gsm8k"))


def test_values_are_those_put_in_and_identical_repeats_of_a_deterministic_model_count_in_the_means(
    tables: Tables, tmp_path: Path
) -> None:
    """Elsewhere they count once; a replicate of the few items that differ would be a mean of other items."""
    folder = study(tmp_path / "gsm8k")
    trials = pd.read_parquet(folder / "trials.parquet").assign(temperature=0.0)
    trials.to_parquet(folder / "trials.parquet")
    repeated = load(folder)
    assert (repeated.trials["excluded_reason"] == IDENTICAL).mean() > 0.5
    for one in (tables, repeated):
        (values,) = paper.values_of(one, "scramble")
        for level, share in TRUTH.items():
            assert values.mean("large", level) == pytest.approx(100 * share, abs=1e-9)
            assert values.replicates("large", level) == (REPLICATES, pytest.approx(100 / ITEMS))
    first = trials["correct"].where(trials["replicate"] == 1)
    keys = [trials[name] for name in ("reader", "item_id", "scramble")]
    trials["correct"] = first.groupby(keys).transform("max")
    trials.to_parquet(folder / "trials.parquet")
    (alike,) = paper.values_of(load(folder), "scramble")
    assert np.isnan(alike.replicates("large", "BASE")[1]), "replicates that are all alike have no spread"


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
    chapter = chapter_of(write, tables)
    laid_out = tables_in(chapter)
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
    chapter = chapter_of(write, load(study(tmp_path / "part", levels=levels)))
    assert len(chapter.blocks) > 4


def test_studies_together_have_ranks_and_a_page(tmp_path: Path) -> None:
    one, other = study(tmp_path / "gsm8k"), study(tmp_path / "csqa", "csqa", better=-0.3)
    found = {table.name: table for table in together([one, other])}
    assert set(found) == {"table_1", "table_3", "ranks", "faults"}
    by_reader = {row[0]: row for row in found["ranks"].rows}
    assert (by_reader["large"][2], by_reader["large"][4]) == ("1.0", "2.0")
    done = invoke("reproduce", "mind-scramble", one, other, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tables"] == ["table_1", "table_3", "ranks", "faults"]
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "csqa" in page and "http" not in page and "<script" not in page
    assert (tmp_path / "out" / "table_1.csv").is_file() and "href='table_1.csv'" in page
    with pytest.raises(UserError, match="gsm8k"):
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
    with pytest.raises(UserError, match=r"similarity\.json"):
        stored_texts(folder)
    (folder / "items.jsonl").write_text("{}\n", "utf-8")
    kept(shown={"DEL-BEG": {"items": 1, "mean": 0.5}}, items=hashlib.sha256(b"{}\n").hexdigest())
    assert stored_texts(folder) is not None
    (folder / "items.jsonl").write_text("{} \n", "utf-8")
    with pytest.raises(UserError, match=r"similarity\.json .*items"):
        stored_texts(folder)


def cosines(of: str, floor: float, by_unit: tuple[float, float, float], cut: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(len(of))
    shown = {}
    for prefix, mean in zip(("", "WORD-", "SENT-"), by_unit, strict=True):
        for name in ("REO-ALL", "REO-REV"):
            values = (mean + draw.normal(0, 0.01, 20)).tolist()
            of_items = {"of": [f"s/i{n}" for n in range(20)], "cosines": values}
            shown[f"{prefix}{name}"] = {"items": 20, "mean": float(np.mean(values)), **of_items}
    return {"shown": shown, "unrelated": {"cosines": [floor - 0.01, floor + 0.01]}, "texts": 140, "cut": cut}


def test_table_4_has_its_floor_and_whole_prompts_beside_texts(tmp_path: Path) -> None:
    folder = study(tmp_path / "gsm8k")
    told = cosines("text", 0.2, (0.6, 0.8, 0.95)) | {"use": "m"}
    told["prompts"] = cosines("prompt", 0.7, (0.85, 0.93, 0.98), cut=3)
    (folder / "similarity.json").write_text(json.dumps(told), "utf-8")
    chapter = chapter_of(write, load(folder))
    laid_out = tables_in(chapter)
    text, share, whole, _ = laid_out["ms_similarity"].rows
    assert (text[0], share[0], whole[0]) == ("Text alone", "% of the way", "Whole prompt")
    assert text[1].values[0] == pytest.approx(0.6, abs=0.01) and text[-1] == "0.200"
    assert share[1].values[0] == pytest.approx(50, abs=1.5) and whole[-1] == "0.700"
    assert "3 of 140 (gsm8k, whole prompt)" in laid_out["ms_similarity"].note
    units = laid_out["ms_similarity_units"].rows
    kinds = ["Character", "Word", "Sentence", "Different texts"]
    assert [row[0] for row in units[:5]] == ["gsm8k, text alone", *kinds]
    assert units[2][5].values[0] == pytest.approx(0.2, abs=0.02) and units[2][6].values[0] > 0.18
    assert "0.200" in words_in(chapter)
    _, stored = stored_texts(folder)
    assert len(similarity_table("t", [("a", stored), ("b", stored)], "m").rows) == 8


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
    few = Near("text alone", {}, unrelated=(0.1, 0.2), pairs=1, with_all=True)
    assert np.isnan(few.floor_ends("s")).all()
    (tmp_path / "items.jsonl").write_text("{}\n", "utf-8")
    told = cosines("text", 0.2, (0.6, 0.8, 0.95)) | {"use": "m"}
    told["unrelated"] = {"pairs": 780, "of": [f"s/i{place}" for place in range(n)], "cosines": list(means)}
    (tmp_path / "similarity.json").write_text(json.dumps(told), "utf-8")
    use, parts = stored_texts(tmp_path)
    assert parts[0].with_all and parts[0].floor_ends("s") == (low, high)
    assert "780 pairs" in similarity_table("t", [("s", parts)], use).note


def test_the_cosine_of_programs_has_its_price_and_says_how_well_it_orders(tmp_path: Path) -> None:
    folder = study(tmp_path / "mbpp", "mbpp")
    rows = pd.read_parquet(folder / "published_scoring.parquet")
    places = rows[rows["rule"] == "mended"]
    # every second program passes; cosines are .9 and .8, those of a quarter of the programs the other way round
    passes = np.arange(len(places)) % 2 == 0
    cosine = np.where(passes ^ (np.arange(len(places)) % 4 == 0), 0.9, 0.8)
    values = {"released": cosine, "programs are never run": passes.astype(float)}
    parts = [places.assign(data_set="mbpp", rule=rule, value=value) for rule, value in values.items()]
    pd.concat(parts).to_parquet(folder / "published_scoring.parquet")
    tables = load(folder)
    prices = paper.fault_prices(tables).set_index("reader_group").loc["large"]
    assert prices["value"] == pytest.approx(50) and prices["released"] == pytest.approx(82.5)
    assert prices["price"] == pytest.approx(32.5) and prices["low"] <= 32.5 <= prices["high"]
    # passing: half .9, half .8; failing: all .8
    assert prices["ordered"] == pytest.approx(75) and np.isnan(prices["turned"])
    chapter = chapter_of(write, tables)
    said = words_in(chapter)
    assert "0.825" in said and "50.0%" in said and "75.0%" in said and not re.search(r"\bnan\b", said)


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


LEVELS = ("BASE", "REO-ALL", "REO-INT_2", "REO-INT_3", "WORD-REO-ALL", "SENT-REO-ALL")
FEW_ITEMS = 6


def perception(
    folder: Path, task: str, worth: dict[str, float], *, scorer: str | None = None, trial_type: str = "answer"
) -> tuple[Path, pd.DataFrame]:
    """Write a study in which each reader's changed answers are worth the same everywhere, those of BASE 1."""
    rows: list[dict[str, Any]] = []
    for reader, value in worth.items():
        kind = {"oracle": "baseline", "simulated": "simulated"}.get(reader, "model")
        for level in LEVELS:
            for item in range(FEW_ITEMS):
                told = {"response": "a text", "correct": None}
                row = measured_row(reader, kind, f"i{item}", level, len(rows), **told)
                row |= {"study": task, "scramble": level, "set": task, "trial_type": trial_type}
                row |= {"replicate": 1, "answer": None, "scorer": scorer or "accepted-1"}
                row["score"] = (1.0 if level == "BASE" else value) if scorer else None
                rows.append(row)
    table = pd.DataFrame(rows)
    factors = {"scramble": {"levels": list(LEVELS), "reference": "BASE"}}
    write_handover(folder, table, study=task, factors=factors, planned=[])
    return folder, table


def summaries(folder: Path, worth: dict[str, float], floors: dict[str, float] | None = None) -> Path:
    """Write a study of summaries; ``floors`` are the cosines of each reader's answers about different intact texts."""
    made, table = perception(folder, "summarise", worth)
    is_base = table["scramble"] == "BASE"
    kept = table[PLACE].assign(use="hf:encoder", compared_with="own answer about the intact text")
    kept["similarity"] = table["reader"].map(worth).mask(is_base, 1.0)
    if floors is not None:
        kept["unrelated"] = table["reader"].map(floors).where(is_base)
    kept.to_parquet(made / FILE)
    return made


def test_summaries_have_the_cosine_that_was_stored_and_no_verdict(tmp_path: Path) -> None:
    tables = load(summaries(tmp_path / "summarise", {"one": 0.5, "two": 0.25}))
    (values,) = values_of(tables, "scramble")
    assert values.measure == COSINE
    assert (values.mean("one", "BASE"), values.mean("one", "REO-ALL")) == (100, 50)
    chapter = chapter_of(write, tables)
    laid_out = tables_in(chapter)
    assert {"ms_reordering", "ms_slopes"} <= set(laid_out)
    assert "thus 100" in laid_out["ms_reordering"].note and "cosine" in laid_out["ms_slopes"].title
    ratios = chapter_of(write_ratios, tables)
    (answers,) = [one for one in tables_in(ratios).values() if "Cosine of answers" in one.title]
    assert "hf:encoder" in answers.note and answers.rows[2][2] == "0.500"


def test_valid_answers_that_wait_for_scoring_are_counted_beside_costs(tmp_path: Path) -> None:
    folder, table = perception(tmp_path / "summarise", "summarise", {"one": 0.0, "two": 0.0, "oracle": 0.0})
    table["prompt_tokens"] = 100 + 50 * (table["scramble"] != "BASE")
    table.assign(completion_tokens=20).to_parquet(folder / "trials.parquet")
    count = len(LEVELS) * FEW_ITEMS
    chapter = chapter_of(write, load(folder))
    assert f"{2 * count} valid answers are not scored yet: wrods score --similarity" in words_in(chapter)
    assert [one.name for one in chapter.blocks if hasattr(one, "svg")] == ["ms_costs"]
    compared = table[(table["reader"] == "one") & (table["scramble"] != "REO-ALL")]
    similarities = compared[PLACE].assign(use="hf:encoder", compared_with=OWN_ANSWER, similarity=0.9)
    similarities.to_parquet(folder / FILE)
    told = words_in(chapter_of(write, load(folder)))
    assert f"{count} valid answers are not scored yet" in told, "what scoring left out does not wait for it"


def test_the_released_measure_of_restored_passages_is_named_beside_nearness(tmp_path: Path) -> None:
    how = {"scorer": "published_typobench-1", "trial_type": "recover"}
    folder, table = perception(tmp_path / "rectify", "rectify", {"one": 0.2}, **how)
    # the released parser finds no field in what was answered about REO-ALL
    lost = table["scramble"] == "REO-ALL"
    table.loc[lost, ["response_status", "score"]] = ["unparsed", None]
    factors = {"scramble": {"levels": list(LEVELS), "reference": "BASE"}}
    write_handover(folder, table, study="rectify", factors=factors, planned=[])
    places = table[PLACE]
    rows = [
        places.assign(data_set="rectify", rule="released", value=table["score"].astype(float)),
        places.assign(data_set="rectify", rule="mended", value=np.where(lost, 0.0, 0.9)),
    ]
    pd.concat(rows).to_parquet(folder / "published_scoring.parquet")
    tables = load(folder)
    released, near = values_of(tables, "scramble")
    assert (released.measure, near.measure) == (IN_PLACE, NEARNESS)
    assert released.mean("one", "WORD-REO-ALL") == pytest.approx(20)
    assert np.isnan(released.mean("one", "REO-ALL")), "as released, they are in no mean"
    assert (near.mean("one", "WORD-REO-ALL"), near.mean("one", "REO-ALL")) == (90, 0)
    chapter = chapter_of(write, tables)
    titles = [one.title for one in tables_in(chapter).values() if "Reordering" in one.title]
    assert all(one.measure.name in title for one, title in zip((released, near), titles, strict=False))
    axes = [one.figure.axes[0].get_ylabel() for one in chapter.blocks if hasattr(one, "svg")]
    assert axes[:2] == ["Words in place (%)", "Nearness to the intact text (%)"]
    method = " ".join(one.unescape() for one in chapter.methods)
    assert IN_PLACE.method in method


def values(measure: Any, draw: np.random.Generator, means: dict[str, float], noise: float) -> Values:
    of_items = {
        group: np.column_stack([np.full(40, 100.0), mean + draw.normal(0, noise, 40)])
        for group, mean in means.items()
    }
    return Values("scramble", ("BASE", "REO-ALL"), of_items, pd.DataFrame(), measure)


KINDS = dict.fromkeys("abcd", "model") | {"oracle": "baseline", "simulated": "simulated"}


def test_models_alone_are_ranked(tmp_path: Path) -> None:
    worth = {"oracle": 1.0, "simulated": 0.95, "large": 0.5, "small": 0.9}
    found = together([study(tmp_path / "gsm8k"), summaries(tmp_path / "summarise", worth)])
    (table,) = [one for one in found if one.name == "ranks"]
    ranked = [(row[0], row[2], row[4]) for row in table.rows]
    assert ranked == [("large", "1.0", "2.0"), ("small", "2.0", "1.0")]
    assert re.search("gsm8k, .*; summarise, .*cosine", table.note)
    assert [one.name for one in found][:3] == ["table_1", "table_2", "table_3"]
    heads = [row[0] for one in found if one.name == "table_2" for row in one.rows if isinstance(row, Head)]
    assert heads == [], "one task needs no head"


def test_who_says_the_same_of_every_text_is_not_ranked_first(tmp_path: Path) -> None:
    """Its cosine with its own answer is 1 for want of content: the cosine of its answers about different texts is 1 too."""
    worth = {"large": 0.8, "small": 0.9, "parrot": 1.0}
    folder = summaries(tmp_path / "summarise", worth, {"large": 0.2, "small": 0.6, "parrot": 1.0})
    tables = load(folder)
    (found,) = values_of(tables, "scramble")
    told = {one.group: (one.mean, one.floor, one.share) for one in floors(found, "summarise")}
    assert told["large"] == pytest.approx((80, 20, 75))
    assert told["small"] == pytest.approx((90, 60, 75))
    assert told["parrot"][:2] == pytest.approx((100, 100)) and np.isnan(told["parrot"][2])
    ((_, answered),) = answers(tables)
    assert "75%" in answered and answered.count("0.600") == 1 and answered.count("1.000") == 2
    chapter = chapter_of(write, tables)
    rows = {row[0]: row[2:5] for row in tables_in(chapter)["ms_floors"].rows}
    assert rows["parrot"] == ("100.0", "100.0", "–") and rows["large"] == ("80.0", "20.0", "75.0")
    found_together = together([study(tmp_path / "gsm8k"), folder])
    page = write_studies_page(ABOUT, found_together, tmp_path / "page", "0").read_text("utf-8")
    assert "<span class='number'>Table 2</span>" in page and "2_floors</span>" not in page
    (ranked,) = [one for one in found_together if one.name == "ranks"]
    assert [row[0] for row in ranked.rows] == ["large", "small"]
    assert "parrot (summarise)" in ranked.note and "parrot (gsm8k)" in ranked.note
    assert ABOVE_FLOOR in ranked.note


def test_the_agreement_of_orders_is_kendall_s_with_an_interval_over_items() -> None:
    draw = np.random.default_rng(4)
    means = {"oracle": 100.0, "a": 90.0, "b": 80.0, "c": 70.0, "d": 60.0, "simulated": 99.0}
    swapped = means | {"c": 60.0, "d": 70.0}
    one = ("gsm8k", values(ACCURACY, draw, means, 3))
    same = ("summarise", values(COSINE, draw, means, 3))
    other = ("rectify", values(NEARNESS, draw, swapped, 3))
    alike, apart = agreements([one], [same, other], KINDS)
    assert (alike.models, alike.same, alike.tau) == (4, 4, 1)
    assert np.isnan(alike.low) and np.isnan(alike.high), "the order is the same in all resamples"
    assert (apart.same, apart.tau) == (2, pytest.approx(kendalltau([4, 3, 2, 1], [4, 3, 1, 2]).statistic))
    noisy = ("translate", values(COSINE, draw, means, 60))
    (unsure,) = agreements([one], [noisy], KINDS)
    assert unsure.low < 1 and unsure.high - unsure.low > 0.2
    assert list(ranks([one, same], KINDS).index) == ["a", "b", "c", "d"]
    assert agreements([one], [same], KINDS | {"c": "baseline", "d": "human"}) == []
    tied = ("squad", values(ACCURACY, draw, dict.fromkeys(means, 50.0), 0))
    (undefined,) = agreements([tied], [same], KINDS)
    assert np.isnan(undefined.tau) and np.isnan(undefined.low)
