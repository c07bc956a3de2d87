"""Chapters on fidelity and rankings: what they say is what their tables hold, and whatever a study lacks is named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from analysis import load
from analysis.fidelity import effects
from analysis.figures import Drawing
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import REFERENCE, Chapter, Material
from analysis.report.chapters import fidelity, rankings
from analysis.report.references import reference
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
FORMULA = "correct ~ reader_group * position + (1 | participant) + (1 | item)"
MODELS = ("restorer", "copyist")


def material_of(folder: Path, rows: pd.DataFrame, *, fitted: bool = False, **dictionary: Any) -> Material:
    tables = load(write_handover(folder, rows.reset_index(drop=True), **dictionary))
    own = [one for one in plans(tables) if one.planned] if fitted else []
    return Material(tables, tuple(carry_out_all(own, tables)), kinds_of(tables.trials))


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    rows = study_rows(human=24, models=MODELS, baselines=("random",), items=24)
    plan = PLANNED["comprehension"] | {
        "between": ["human", *MODELS],
        "equivalence": "60 points",
        "formula": FORMULA,
    }
    readers = {
        name: {"kind": "model", "sessions": 1, "settings": {"family": "F", "parameters": size}}
        for name, size in zip(MODELS, ("1B", "7B"), strict=True)
    }
    folder = tmp_path_factory.mktemp("fidelity")
    return material_of(folder, rows, fitted=True, planned={"comprehension": plan}, readers=readers)


@pytest.fixture(scope="module")
def faithful(material: Material) -> Chapter:
    chapter = fidelity.write(material)
    assert chapter is not None
    return chapter


def named(chapter: Chapter, name: str) -> ApaTable:
    return next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)


def words(chapter: Chapter) -> str:
    told = " ".join(str(one) for one in chapter.blocks if isinstance(one, Markup))
    return told.replace("<i>", "").replace("</i>", "")


def assert_whole(chapter: Chapter) -> None:
    """Every table and figure that a paragraph names is there, every source is in the bibliography."""
    there = {
        (("figure" if isinstance(b, Drawing) else "table"), b.name)
        for b in chapter.blocks
        if not isinstance(b, Markup)
    }
    assert set(REFERENCE.findall(words(chapter))) <= there
    for key in chapter.sources:
        assert reference(key)
    for block in chapter.blocks:
        if isinstance(block, Drawing):
            assert block.note and block.alternative and block.figure.get_size_inches()[0] <= 6.71
        elif isinstance(block, ApaTable):
            assert all(len(row) in (1, len(block.columns)) for row in block.rows)


def test_every_planned_effect_is_told_with_its_verdict_as_the_table_has_it(
    material: Material, faithful: Chapter
) -> None:
    assert_whole(faithful)
    assert faithful.planned and faithful.marks == ("baselines: not data",)
    table = named(faithful, "fidelity_comprehension")
    found = effects(material.analyses[0])
    assert [(row[0], row[1]) for row in table.rows] == list(
        zip(found["contrast"], found["model"], strict=True)
    )
    text = words(faithful)
    for row in table.rows:
        human, machine, apart = (re.match(r"(\S+) (\[.*\])", cell) for cell in row[2:5])
        assert human and machine and apart
        start = f"{row[0]}: people {human[1]} points, 95% CI {human[2]}; model {row[1]} {machine[1]} points"
        assert start in text
        assert f"their difference {apart[1]} points, 95% CI {apart[2]}" in text
        assert row[-2] in ("yes", "not shown")
        assert row[-1] in ("yes", "not shown")
    assert "60 points" in table.note
    assert {"schuirmann1987", "lakens2017"} <= set(faithful.sources)


def test_items_and_order_are_told_from_their_tables(faithful: Chapter) -> None:
    table = named(faithful, "items_position")
    text = words(faithful)
    within = [row for row in table.rows if row[0] == "within levels"]
    assert len(within) == 3
    for row in within:
        assert f"r = {row[2]}, 95% CI {row[3]}" in text
    assert text.count("ceiling") >= 3
    scatters = [one for one in faithful.blocks if isinstance(one, Drawing) and one.name.startswith("items_")]
    assert len(scatters) == 2  # baselines are in the table alone
    order = named(faithful, "order_position")
    assert all(f"τ = {row[2]}, 95% CI {row[3]}" in text for row in order.rows)


def test_without_a_bound_nothing_is_called_equivalent(material: Material) -> None:
    analysis = material.analyses[0]
    bare = replace(
        analysis,
        plan=replace(analysis.plan, equivalence=None),
        contrasts=tuple(replace(one, equivalence=None) for one in analysis.contrasts),
    )
    chapter = fidelity.write(replace(material, analyses=(bare,)))
    assert chapter is not None
    table = named(chapter, "fidelity_comprehension")
    assert table.columns[-1] == "Different" and "Equivalent" not in table.columns
    assert "because no bound was fixed beforehand" in table.note
    assert "Equivalence was not tested, because no bound was fixed beforehand" in words(chapter)
    assert "schuirmann1987" not in chapter.sources


def test_rankings_tell_robustness_error_patterns_and_what_is_missing(material: Material) -> None:
    chapter = rankings.write(material)
    assert chapter is not None and not chapter.planned
    assert_whole(chapter)
    text = words(chapter)
    assert "The study includes two models. With fewer than eight, these results describe these models" in text
    assert "no family includes three models of known and different size" in text
    assert "random" not in text
    for row in named(chapter, "told_apart").rows:
        assert f"{row[4]} of halves were matched to their own reader, {row[5]} by chance" in text
    consistency = named(chapter, "error_consistency")
    for row in consistency.rows:
        assert (f"κ = {row[6]}, 95% CI {row[7]}" in text) is (row[0] == "people")


@pytest.mark.parametrize("case", ["one item", "an empty condition", "two factors", "all right", "half done"])
def test_odd_studies_break_no_chapter(tmp_path: Path, case: str) -> None:
    rows = study_rows(human=6, models=("a",), items=1 if case == "one item" else 8)
    told: dict[str, Any] = {}
    if case == "an empty condition":
        rows = rows[rows["position"] != "intact"]
    elif case == "two factors":
        rows["task"] = np.where(rows["item_id"] < "s05", "easy", "hard")
        levels = {"levels": ["easy", "hard"], "reference": "easy"}
        told["factors"] = {
            "task": levels,
            "position": {"levels": ["intact", "initial", "internal", "final"], "reference": "intact"},
        }
    elif case == "all right":
        rows["correct"], rows["response_status"] = True, "valid"
    elif case == "half done":
        rows = rows[(rows["reader"] == "P001") | (rows["trial_index"] < 7)]
    material = material_of(tmp_path, rows, **told)
    for writer in (fidelity.write, rankings.write):
        chapter = writer(material)
        if chapter is not None:
            assert_whole(chapter)
            assert "nan" not in words(chapter) and "inf" not in words(chapter).replace("information", "")
