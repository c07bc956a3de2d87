"""Perception tasks of Mind Scramble: which measure a table names, and how models rank in perception against completion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from analysis import load
from analysis.measures.similarity import FILE
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Material
from analysis.report.chapters.ratios import write as write_ratios
from analysis.report.studies_page import write_studies_page
from experiment.papers.mind_scramble.chapter import ABOUT, together, write
from experiment.papers.mind_scramble.chapter.measures import (
    ACCURACY,
    COSINE,
    IN_PLACE,
    NEARNESS,
    Values,
    agreements,
    floors,
    ranks,
    values_of,
)
from tests.analysis.letter_study import write_handover
from tests.analysis.measured_study import _row
from tests.analysis.test_mind_scramble import study

LEVELS = ("BASE", "REO-ALL", "REO-INT_2", "REO-INT_3", "WORD-REO-ALL", "SENT-REO-ALL")
ITEMS = 6


def perception(
    folder: Path, task: str, worth: dict[str, float], *, scorer: str | None = None, trial_type: str = "answer"
) -> tuple[Path, pd.DataFrame]:
    """Write a study in which each reader's changed answers are worth the same everywhere, those of BASE 1."""
    rows: list[dict[str, Any]] = []
    for reader, value in worth.items():
        kind = {"oracle": "baseline", "simulated": "simulated"}.get(reader, "model")
        for level in LEVELS:
            for item in range(ITEMS):
                row = _row(reader, kind, f"i{item}", level, len(rows), response="a text", correct=None)
                row |= {"study": task, "scramble": row["position"], "set": task, "trial_type": trial_type}
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
    kept = table[["session_id", "trial_index", "attempt"]].assign(
        use="hf:encoder",
        compared_with="own answer about the intact text",
        similarity=[
            1.0 if level == "BASE" else worth[reader]
            for level, reader in zip(table["scramble"], table["reader"], strict=True)
        ],
    )
    if floors is not None:
        about = zip(table["scramble"], table["reader"], strict=True)
        kept["unrelated"] = [floors[reader] if level == "BASE" else np.nan for level, reader in about]
    kept.to_parquet(made / FILE)
    return made


def test_summaries_have_the_cosine_that_was_stored_and_no_verdict(tmp_path: Path) -> None:
    tables = load(summaries(tmp_path / "summarise", {"one": 0.5, "two": 0.25}))
    (values,) = values_of(tables, "scramble")
    assert values.measure == COSINE
    assert (values.mean("one", "BASE"), values.mean("one", "REO-ALL")) == (100, 50)
    chapter = write(Material(tables))
    assert chapter is not None
    laid_out = {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}
    assert {"ms_reordering", "ms_slopes"} <= set(laid_out)
    assert "thus 100" in laid_out["ms_reordering"].note and "cosine" in laid_out["ms_slopes"].title
    ratios = write_ratios(Material(tables))
    assert ratios is not None
    (answers,) = [
        one for one in ratios.blocks if isinstance(one, ApaTable) and "Cosine of answers" in one.title
    ]
    assert "hf:encoder" in answers.note and answers.rows[2][2] == "0.500"


def test_the_released_measure_of_restored_passages_is_named_and_nearness_stands_beside(
    tmp_path: Path,
) -> None:
    folder, table = perception(
        tmp_path / "rectify", "rectify", {"one": 0.2}, scorer="published_typobench-1", trial_type="recover"
    )
    # the released parser finds no field in what was answered about REO-ALL
    lost = table["scramble"] == "REO-ALL"
    table.loc[lost, ["response_status", "score"]] = ["unparsed", None]
    factors = {"scramble": {"levels": list(LEVELS), "reference": "BASE"}}
    write_handover(folder, table, study="rectify", factors=factors, planned=[])
    places = table[["session_id", "trial_index", "attempt"]]
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
    chapter = write(Material(tables))
    assert chapter is not None
    titles = [one.title for one in chapter.blocks if isinstance(one, ApaTable) and "Reordering" in one.title]
    assert (
        "words in place as the released scorer counts them" in titles[0] and "edit distance" not in titles[0]
    )
    assert "1 − edit distance/length" in titles[1]
    axes = [one.figure.axes[0].get_ylabel() for one in chapter.blocks if hasattr(one, "svg")]
    assert axes[:2] == ["Words in place (%)", "Nearness to the intact text (%)"]
    method = " ".join(one.unescape() for one in chapter.methods)
    assert (
        "released scorer's share of words in place" in method
        and "replies without the field are left out" in method
    )


def values(measure: Any, draw: np.random.Generator, means: dict[str, float], noise: float) -> Values:
    of_items = {
        group: np.column_stack([np.full(40, 100.0), mean + draw.normal(0, noise, 40)])
        for group, mean in means.items()
    }
    return Values("scramble", ("BASE", "REO-ALL"), of_items, pd.DataFrame(), measure)


KINDS = {
    "a": "model",
    "b": "model",
    "c": "model",
    "d": "model",
    "oracle": "baseline",
    "simulated": "simulated",
}


def test_models_alone_are_ranked(tmp_path: Path) -> None:
    worth = {"oracle": 1.0, "simulated": 0.95, "large": 0.5, "small": 0.9}
    found = together([study(tmp_path / "gsm8k"), summaries(tmp_path / "summarise", worth)])
    (table,) = [one for one in found if one.name == "ranks"]
    assert [(row[0], row[2], row[4]) for row in table.rows] == [
        ("large", "1.0", "2.0"),
        ("small", "2.0", "1.0"),
    ]
    assert "Fewer than three models" in table.note
    assert "Measures: gsm8k, % correct; summarise, 100 × cosine" in table.note
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
    chapter = write(Material(tables))
    assert chapter is not None
    (table,) = [one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == "ms_floors"]
    rows = {row[0]: row[2:5] for row in table.rows}
    assert rows["parrot"] == ("100.0", "100.0", "–") and rows["large"] == ("80.0", "20.0", "75.0")
    found_together = together([study(tmp_path / "gsm8k"), folder])
    page = write_studies_page(ABOUT, found_together, tmp_path / "page", "0").read_text("utf-8")
    assert "<span class='number'>Table 2</span>" in page and "2_floors</span>" not in page
    (ranked,) = [one for one in found_together if one.name == "ranks"]
    assert [row[0] for row in ranked.rows] == ["large", "small"]
    assert "because they give similar answers to different texts: parrot (summarise)" in ranked.note
    assert "because some operations of a task have none of their answers: parrot (gsm8k)" in ranked.note
    assert "in % of the way from the cosine of answers about different texts" in ranked.note


def test_the_agreement_of_orders_is_kendall_s_with_an_interval_over_items() -> None:
    draw = np.random.default_rng(4)
    means = {"oracle": 100.0, "a": 90.0, "b": 80.0, "c": 70.0, "d": 60.0, "simulated": 99.0}
    swapped = means | {"c": 60.0, "d": 70.0}
    one = ("gsm8k", values(ACCURACY, draw, means, 3))
    same, other = (
        ("summarise", values(COSINE, draw, means, 3)),
        ("rectify", values(NEARNESS, draw, swapped, 3)),
    )
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
