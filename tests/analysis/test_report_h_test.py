"""H-TEST's tables, paired tests and figures on trials whose shares are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.figures import Drawing
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material
from experiment.papers.h_test.chapter import write
from experiment.papers.h_test.chapter.measures import (
    TASKS,
    Paired,
    accuracy,
    asked,
    between_makings,
    family_pairs,
    paired,
    printed,
    rules_stated,
    size_of,
    thinking_pairs,
)

KS = (4, 14, 28, 50)
BETWEEN: dict[str, dict[str, Any]] = {
    "items_from": {name: {"items": name} for name in ("released", "fresh", "matched")},
    "examples": {f"k{k}": {"exemplars": k} for k in KS},
}
READERS: dict[str, dict[str, Any]] = {
    "small": {"kind": "model", "use": "hf:small", "settings": {"family": "F", "parameters": "1B"}},
    "large": {"kind": "model", "use": "hf:large", "settings": {"family": "F", "parameters": "7B"}},
    "large-thinks": {"kind": "model", "use": "hf:large", "settings": {"strategy": "chain_of_thought"}},
}
RIGHT = {"small": 0.5, "large": 0.8, "large-thinks": 0.8, "P1": 0.9, "guesser": 0.5}


def rows_of(
    reader: str, kind: str, *, items: int = 10, tasks: tuple[str, ...] = TASKS, ks: tuple[int, ...] = KS
) -> list[dict[str, Any]]:
    """Make a reader's trials: right in a share of items that is its own, ten points fewer with matched items."""
    made: list[dict[str, Any]] = []
    for making in BETWEEN["items_from"]:
        share = RIGHT[reader] - (0.1 if making == "matched" else 0)
        for k in ks:
            session = f"{reader}-{making}-{k}"
            for task in tasks:
                if task == "rhyme" and making == "fresh":
                    continue
                for item in range(items + 1):
                    stated = item == items
                    unread = reader == "large-thinks" and item == 0
                    right = item >= round((1 - share) * items)
                    made.append(
                        {
                            **{"study": "h", "version": 1, "session_id": session, "design_hash": "d"},
                            **{"reader_kind": kind, "reader": reader, "trial_index": len(made), "attempt": 1},
                            **{"set": task, "task": task, "items_from": making, "examples": f"k{k}"},
                            "item_id": f"{task} rule" if stated else f"{making}-{task}-{item}",
                            **{"is_practice": False, "is_filler": stated, "is_attention_check": False},
                            **{"is_pilot": False, "excluded_reason": None, "label_map": "A=A,B=B"},
                            "trial_type": "answer" if stated else "choose",
                            "response_status": "unparsed" if unread else "valid",
                            "correct": None if stated or unread else right,
                            "score": (1.0 if task != "rhyme" else 0.5)
                            if stated and kind == "human"
                            else None,
                            "scorer": "rated-1" if stated and kind == "human" else None,
                        }
                    )
    return made


def study(folder: Path, rows: list[dict[str, Any]], readers: Mapping[str, Any] = READERS) -> Tables:
    """Write a handover and load it."""
    folder.mkdir(parents=True, exist_ok=True)
    trials = pd.DataFrame(rows)
    for name in ("correct", "is_pilot", "is_practice", "is_filler", "is_attention_check"):
        trials[name] = trials[name].astype("boolean")
    trials["score"] = trials["score"].astype(float)
    trials["scorer"] = trials["scorer"].astype("string")
    trials["excluded_reason"] = trials["excluded_reason"].astype("string")
    trials.to_parquet(folder / "trials.parquet")
    pd.DataFrame({"session_id": pd.Series(dtype=str)}).to_parquet(folder / "regions.parquet")
    factors = {"task": list(TASKS), **{name: list(levels) for name, levels in BETWEEN.items()}}
    dictionary = {
        **{"study": "h", "title": "H", "versions": [1], "design_hash": "d", "language": "en", "seed": 1},
        "factors": {name: {"levels": levels, "reference": levels[0]} for name, levels in factors.items()},
        **{
            "between": BETWEEN,
            "readers": dict(readers),
            "planned": {},
            "exclude": {},
            "truth": None,
            "columns": {},
        },
        **{"created_at": "2026-11-21T10:00:00Z", "wrods": "0"},
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary), "utf-8")
    return load(folder)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    rows = [row for name in READERS for row in rows_of(name, "model")] + rows_of("P1", "human", ks=(4,))
    return study(tmp_path_factory.mktemp("h"), rows, {**READERS, "human": {"kind": "human"}})


@pytest.fixture(scope="module")
def chapter(tables: Tables) -> Chapter:
    made = write(Material(tables))
    assert made is not None
    return made


def table(chapter: Chapter, name: str) -> ApaTable:
    return next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)


def test_what_cannot_be_read_is_wrong_and_adjusted_accuracy_leaves_it_out(tables: Tables) -> None:
    found = asked(tables)
    assert found is not None and found.ks == KS and found.makings == ("released", "fresh", "matched")
    shares = accuracy(found.trials, ("k", "making"))
    one = shares.query(
        "reader_group == 'large-thinks' and k == 14 and making == 'released' and task == 'average'"
    ).iloc[0]
    assert one["accuracy"] == pytest.approx(0.8) and one["out_of_context"] == pytest.approx(0.1)
    assert one["adjusted"] == pytest.approx(8 / 9)
    other = shares.query(
        "reader_group == 'small' and k == 50 and making == 'matched' and task == 'uppercase'"
    ).iloc[0]
    assert other["accuracy"] == pytest.approx(0.4)


def test_the_full_table_is_laid_out_as_the_papers(chapter: Chapter) -> None:
    full = table(chapter, "h_test_full_released")
    names = [row[0] for row in full.rows]
    assert (
        names[0] == "k = 4" and names[1] == "Uppercase" and names[11] == "Average" and names[12] == "k = 14"
    )
    assert full.columns[1:] == ("People", "large", "large-thinks", "small")
    assert full.rows[11] == ("Average", "90.0", "80.0", "80.0", "50.0")
    assert full.rows[13][1] == "–"


def test_p_and_interval_of_a_pair_are_of_one_t_test() -> None:
    first = pd.DataFrame({"making": "", "task": "t", "item_id": range(40), "right": [1.0] * 20 + [0.0] * 20})
    second = first.assign(right=[1.0] * 15 + [0.0] * 5 + [1.0] * 13 + [0.0] * 7)
    found = paired(first, second, 0.5)
    assert found is not None and found.changed == 18 and found.items == 40
    test = stats.ttest_rel(second["right"], first["right"])
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval()))
    assert found.difference == pytest.approx(8 / 40) and found.p_equal < 0.01
    twice = paired(pd.concat([first, first]), pd.concat([second, second]), 0.5)
    assert twice == found


def test_four_changed_items_are_no_difference() -> None:
    first = pd.DataFrame({"making": "", "task": "t", "item_id": range(100), "right": 1.0})
    found = paired(first, first.assign(right=[0.0] * 4 + [1.0] * 96))
    assert found is not None and found.p > 0.05 and found.high > 0


def test_conditions_without_a_difference_are_alike_only_with_enough_items() -> None:
    few = pd.DataFrame({"making": "", "task": "t", "item_id": range(10), "right": 1.0})
    many = pd.DataFrame({"making": "", "task": "t", "item_id": range(100), "right": 1.0})
    one, other = paired(few, few, 0.05), paired(many, many, 0.05)
    assert one is not None and other is not None
    assert one.p == other.p == 1 and one.p_equal > 0.2 and other.p_equal < 0.01
    assert other.difference == 0 and other.high == -other.low == pytest.approx(0.02, abs=0.001)
    gone = paired(many, many.assign(right=0.0))
    assert gone is not None and gone.difference == gone.low == -1 and -1 < gone.high < -0.9
    assert paired(few[:9], few[:9]) is None


@pytest.mark.full
def test_equal_shares_hold_the_level_of_the_test() -> None:
    """Of 400 pairs of conditions without a difference about one in twenty is significant."""
    draw = np.random.default_rng(2)
    p = []
    for _ in range(400):
        both = [
            pd.DataFrame(
                {
                    "making": "",
                    "task": "t",
                    "item_id": range(80),
                    "right": draw.integers(0, 2, 80).astype(float),
                }
            )
            for _ in range(2)
        ]
        found = paired(both[0], both[1])
        assert isinstance(found, Paired)
        p.append(found.p)
    assert 0.005 < np.mean(np.array(p) < 0.05) < 0.07


def test_makings_are_contrasted_over_the_tasks_that_both_have(tables: Tables, chapter: Chapter) -> None:
    found = asked(tables)
    assert found is not None
    own = found.trials[found.trials["reader_group"] == "large"]
    one = between_makings(own[own["making"] == "fresh"], own[own["making"] == "matched"])
    assert one is not None and one.tasks == 9 and one.difference == pytest.approx(-0.1)
    told = {(row[0], row[1]): row[4] for row in table(chapter, "h_test_makings").rows}
    assert told["large", "fresh − released"] == "0.0" and told["large", "matched − fresh"] == "−10.0"


def test_models_are_paired_by_family_and_by_thoughts() -> None:
    assert family_pairs(READERS) == [("F", "small", "large")] and thinking_pairs(READERS) == [
        ("large", "large-thinks")
    ]
    assert (
        size_of("1.4B") == 1.4e9
        and size_of("7 M") == 7e6
        and size_of("many") is None
        and size_of(None) is None
    )


def test_the_chapter_compares_what_the_paper_claims_has_no_effect(chapter: Chapter) -> None:
    compared, head = {}, ""
    for row in table(chapter, "h_test_paired").rows:
        head = row[0] if isinstance(row, Head) else head
        compared[head, row[0]] = row
    assert compared["small, released items", "k = 4, k = 50"][5] == "0.0"
    assert compared["small, released items", "small, large (F)"][5] == "30.0"
    assert ("large, matched items", "direct, chain of thought (large-thinks)") in compared
    text = " ".join(str(one) for one in chapter.blocks if not isinstance(one, ApaTable | Drawing))
    assert "because no bound was fixed beforehand" in text and "large 80.0%" in text
    assert "adjusted <i>p</i> &lt; .05 (differences are the second condition minus the first)." in text


def test_a_run_that_is_not_finished_is_compared_over_labels_that_both_conditions_asked(
    tmp_path: Path,
) -> None:
    """Swapped labels, all answered wrong, were asked with four examples alone: fourteen examples are no better for that."""
    rows = [
        one | {"label_map": labels, "correct": labels == "A=A,B=B" and not one["is_filler"]}
        for one in rows_of("small", "model", tasks=TASKS[:1], ks=(4, 14))
        for labels in ("A=A,B=B", "A=B,B=A")
        if labels == "A=A,B=B" or one["examples"] == "k4"
    ]
    chapter = write(Material(study(tmp_path / "t", rows)))
    assert chapter is not None
    table = next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == "h_test_paired")
    told = {row[0]: row for row in table.rows if not isinstance(row, Head)}
    assert told["k = 4, k = 14"][1:6] == ("10", "0", "100.0", "100.0", "0.0")
    assert told["labels as published, swapped"][3:6] == ("100.0", "0.0", "\u2212100.0")


def test_rules_that_people_state_are_counted_as_in_table_7(tables: Tables, chapter: Chapter) -> None:
    found = asked(tables)
    assert found is not None
    stated = rules_stated(found.statements).query("reader_group == 'human'").iloc[0]
    assert (stated["rated"], stated["right"], stated["readers"]) == (29, 27, 1)
    rules = table(chapter, "h_test_rules")
    assert rules.columns == ("", "k = 4", "k = 14", "k = 28", "k = 50")
    place = [row[0] for row in rules.rows].index("People")
    right, given, readers = rules.rows[place + 1 : place + 4]
    assert right[1:] == ("27/29", "–", "–", "–") and given[1] == "29" and readers[1:] == ("1", "0", "0", "0")


def test_printed_cells_show_which_averages_the_paper_got_wrong() -> None:
    cells = printed().dropna(subset=["k"]).set_index(["k", "model", "task"])["printed"].sort_index()
    claude = cells.loc[(50, "Claude V2")]
    assert claude["average"] == 0.619 and claude.drop("average").mean() == pytest.approx(0.6185)
    llama = cells.loc[(50, "LLaMA 2 70B")]
    assert llama["average"] == 0.448 and llama.drop("average").mean() == pytest.approx(0.4515)
    geometry = printed()[printed()["k"].isna()]
    assert set(geometry["task"]) == {"letter_geometry"} and len(geometry) == 6
