"""How H-TEST's answers were read, labelled and explained, on trials whose verdicts are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from experiment.papers.h_test.chapter import write
from experiment.papers.h_test.chapter.measures import (
    TASKS,
    asked,
    between_makings,
    both_parsers,
    family_pairs,
    is_as_published,
    label_maps,
    rules_by_task,
)
from tests.analysis.test_report_h_test import READERS, rows_of, study


def trials(task: str, number: int = 20, reader: str = "talker") -> pd.DataFrame:
    return pd.DataFrame(
        {
            **{"reader_group": reader, "reader_kind": "model", "session_id": f"{reader}-{task}"},
            "trial_index": range(number),
            **{"attempt": 1, "making": "", "task": task, "item_id": [f"{task}-{n}" for n in range(number)]},
        }
    )


def parsed(
    rows: pd.DataFrame, published: Sequence[float | None], corrected: Sequence[float | None]
) -> pd.DataFrame:
    place = rows[["session_id", "trial_index", "attempt"]]
    return place.assign(
        published=pd.Series(published, dtype=float), corrected=pd.Series(corrected, dtype=float)
    )


def test_both_parsers_are_told_with_what_each_leaves_unread(tmp_path: Path) -> None:
    one, other = trials("uppercase"), trials("rhyme")
    # of 20 replies 5 are "I cannot tell": A to the published parser (right 4 times), nothing to a correct one
    told = parsed(one, [1.0] * 14 + [0.0] * 6, [1.0] * 10 + [0.0] * 5 + [None] * 5)
    alike = parsed(other, [1.0] * 10 + [0.0] * 10, [1.0] * 10 + [0.0] * 10)
    pd.concat([told, alike]).to_parquet(tmp_path / "published_parsing.parquet")
    unasked = trials("uppercase", reader="P1")
    found = both_parsers(pd.concat([one, other, unasked]), tmp_path, TASKS)
    assert [(read.reader_group, read.task) for read in found] == [
        ("talker", "uppercase"),
        ("talker", "rhyme"),
        ("talker", "average"),
    ]
    first, second, mean = found
    assert (first.published, first.corrected, first.turned) == (0.7, 0.5, 9)
    assert (first.unread_published, first.unread_corrected) == (0.0, 0.25)
    assert first.compared is not None and first.compared.p > 0.05 and first.compared.high > 0
    assert second.turned == 0 and second.compared is not None and second.compared.p == 1
    assert (
        mean.replies == 40 and mean.published == pytest.approx(0.6) and mean.corrected == pytest.approx(0.5)
    )
    assert mean.unread_corrected == pytest.approx(0.125)


def test_a_reader_that_was_not_asked_every_task_has_no_mean_of_both_parsers(tmp_path: Path) -> None:
    one, other = trials("uppercase"), trials("rhyme")
    further = trials("palindrome", reader="P1")
    pd.concat([parsed(rows, [1.0] * 20, [1.0] * 20) for rows in (one, other)]).to_parquet(
        tmp_path / "published_parsing.parquet"
    )
    asked_of_others = pd.concat([one, other, further])
    assert {read.task for read in both_parsers(asked_of_others, tmp_path)} == {"uppercase", "rhyme"}
    pooled = both_parsers(asked_of_others, tmp_path, is_pooled=True)
    assert {read.task for read in pooled} == {"uppercase", "rhyme", "average"}


def test_a_reader_that_says_a_throughout_is_found_out_by_swapped_labels() -> None:
    maps = ["A=A,B=B"] * 10 + ["A=B,B=A"] * 10
    classes = ["A"] * 6 + ["B"] * 4 + ["A"] * 6 + ["B"] * 4
    meant = ["A"] * 10 + ["B"] * 10  # the letter A stands for class A, then for class B
    rows = pd.DataFrame({"reader_group": "m", "label_map": maps, "response": meant, "answered": 1.0})
    rows["right"] = [float(a == b) for a, b in zip(classes, meant, strict=True)]
    (one,) = label_maps(rows).to_dict("records")
    assert (one["published"], one["swapped"]) == (0.6, 0.4) and one["counterbalanced"] == pytest.approx(0.5)
    assert one["says_a_published"] == one["says_a_swapped"] == 1.0
    assert label_maps(rows[:10]).empty and is_as_published("A=A,B=B") and not is_as_published("A=B,B=A")


def test_unread_answers_name_no_letter() -> None:
    rows = pd.DataFrame({"reader_group": "m", "label_map": ["A=A,B=B", "A=A,B=B", "A=B,B=A"], "right": 0.0})
    rows = rows.assign(response=pd.Series(["B", None, "A"], dtype="string"), answered=[1.0, 0.0, 1.0])
    (one,) = label_maps(rows).to_dict("records")
    assert one["says_a_published"] == 0.0 and one["says_a_swapped"] == 0.0


def test_rules_stand_beside_what_the_same_readers_sorted() -> None:
    sorting = [
        {"reader_group": "human", "session_id": who, "task": "rhyme", "right": right}
        for who, rights in (("a", (1, 1)), ("b", (1, 0)), ("c", (0, 0)))
        for right in rights
    ]
    stating: list[dict[str, Any]] = [
        {"session_id": "a", "score": 1.0, "scorer": "rated-1"},
        {"session_id": "b", "score": 0.5, "scorer": "rated-1"},
        {"session_id": "c", "score": None, "scorer": None},
    ]
    said = pd.DataFrame(stating).assign(
        reader_group="human", item_id="released-rhyme rule", response_status="valid"
    )
    (one,) = rules_by_task(pd.DataFrame(sorting), said).to_dict("records")
    assert one["task"] == "rhyme" and one["sorted"] == pytest.approx(0.5)
    assert (one["stated"], one["rated"], one["right"]) == (3, 2, 1)
    assert one["sorted_knowing"] == 1.0 and one["sorted_otherwise"] == 0.5


def test_makings_are_alike_only_within_the_bound() -> None:
    draw = np.random.default_rng(1)
    one, other = (
        trials("uppercase", 400).assign(right=draw.integers(0, 2, 400).astype(float)) for _ in range(2)
    )
    within, wide = between_makings(one, other, 0.02), between_makings(one, other, 0.3)
    assert within is not None and wide is not None and within.p_equal > 0.05 > wide.p_equal
    none = between_makings(one, other)
    assert none is not None and np.isnan(none.p_equal)


def test_models_of_one_size_keep_the_order_of_the_study() -> None:
    """So that a model before and after more training is a pair."""
    settings = {"family": "F", "parameters": "1B"}
    readers = {name: {"kind": "model", "settings": settings} for name in ("plain", "more-data")}
    assert family_pairs(readers) == [("F", "plain", "more-data")]


def test_the_chapter_shows_parsers_labels_and_rules(tmp_path: Path) -> None:
    rows = rows_of("small", "model", tasks=("uppercase", "rhyme"), ks=(4, 14)) + rows_of(
        "P1", "human", tasks=("uppercase", "rhyme"), ks=(4,)
    )
    for number, row in enumerate(rows):
        row["label_map"] = "A=A,B=B" if number % 2 else "A=B,B=A"
        row["response"] = None if row["is_filler"] else "A"
    folder = tmp_path / "h"
    tables = study(folder, rows, {**READERS, "human": {"kind": "human"}})
    found = asked(tables)
    assert found is not None
    own = found.trials[found.trials["reader_group"] == "small"]
    place = own[["session_id", "trial_index", "attempt"]]
    place.assign(published=own["right"], corrected=1.0).to_parquet(folder / "published_parsing.parquet")
    chapter = write(Material(tables))
    assert chapter is not None
    shown = {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}
    assert {"h_test_parsers", "h_test_labels", "h_test_rules_tasks"} <= set(shown)
    average = shown["h_test_parsers"].rows[-1]
    assert average[0] == "Average" and average[2] == "100.0" and len(shown["h_test_parsers"].rows) == 4
    text = " ".join(str(one) for one in chapter.blocks)
    assert "Every answer could be read" in text and "by a correct one" in text
