"""Chapters on fidelity and rankings: what they say is what their tables hold, and whatever a study lacks is named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.apa import p_phrase
from analysis.fidelity import effects
from analysis.plan_deviations import why_no_bound
from analysis.report.blocks import REFERENCE, Chapter, Material
from analysis.report.chapters import fidelity, rankings
from tests.analysis.chapters import chapter_of, drawings_in, material_of, tables_in, words_in
from tests.analysis.conftest import planned_analyses
from tests.analysis.letter_study import LEVELS, PLANNED, study_rows, write_handover

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
FORMULA = "correct ~ reader_group * position + (1 | participant) + (1 | item)"
MODELS = ("restorer", "copyist")


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    rows = study_rows(human=16, models=MODELS, baselines=("random",), items=16)
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
    tables = load(write_handover(folder, rows, planned={"comprehension": plan}, readers=readers))
    return material_of(tables, planned_analyses(tables))


@pytest.fixture(scope="module")
def faithful(material: Material) -> Chapter:
    return chapter_of(fidelity.write, material)


def assert_whole(chapter: Chapter) -> None:
    """Every table and figure that a paragraph names is there."""
    tables, drawings = tables_in(chapter), drawings_in(chapter)
    there = {("table", name) for name in tables} | {("figure", name) for name in drawings}
    assert set(REFERENCE.findall(words_in(chapter))) <= there
    for drawing in drawings.values():
        assert drawing.note and drawing.alternative and drawing.figure.get_size_inches()[0] <= 6.71
    for table in tables.values():
        assert all(len(row) in (1, len(table.columns)) for row in table.rows)


def test_every_planned_effect_is_told_with_its_verdict_as_the_table_has_it(
    material: Material, faithful: Chapter
) -> None:
    assert_whole(faithful)
    assert faithful.planned and "baselines" in faithful.marks[0]
    table = tables_in(faithful)["fidelity_comprehension"]
    assert table.origin is not None and "reader_group" in table.origin.columns, (
        "models have no rows in the fit"
    )
    found = effects(material.analyses[0])
    assert [(row[0], row[1]) for row in table.rows] == list(
        zip(found["contrast"], found["model"], strict=True)
    )
    text = words_in(faithful)
    verdicts = {
        (row["contrast"], row["model"]): (row["differs"], p_phrase(row["p"]))
        for row in fidelity._printed(found, material.analyses[0]).to_dict("records")
    }
    for row in table.rows:
        differs, p = verdicts[row[0], row[1]]
        (told,) = (one for one in text.split(". ") if f"The {row[0]} effect" in one)
        sides = re.split("did not differ significantly|but not significantly", told)
        assert f"model {row[1]} ({p})" in sides[0 if differs == "yes" else 1]
        assert row[-2] == differs
        assert row[-1] in ("yes", "not shown")
    assert "60 points" in table.note
    assert "Schuirmann, 1987" in " ".join(faithful.methods)


def test_items_and_order_are_told_from_their_tables(faithful: Chapter) -> None:
    table, order = (tables_in(faithful)[name] for name in ("items_position", "order_position"))
    text = words_in(faithful)
    within = [row for row in table.rows if row[0] == "within levels"]
    assert len(within) == 3
    for row in within:
        assert f"r = {row[2]}, 95% CI {row[3]}" in text
    assert text.count("ceiling") >= 3
    # baselines are in the table alone
    assert sum(name.startswith("items_") for name in drawings_in(faithful)) == 2
    assert all(f"τ = {row[2]}, 95% CI {row[3]}" in text for row in order.rows)


def test_without_a_bound_nothing_is_called_equivalent(material: Material) -> None:
    analysis = material.analyses[0]
    bare = replace(
        analysis,
        plan=replace(analysis.plan, equivalence=None),
        contrasts=tuple(replace(one, equivalence=None) for one in analysis.contrasts),
    )
    chapter = chapter_of(fidelity.write, replace(material, analyses=(bare,)))
    table = tables_in(chapter)["fidelity_comprehension"]
    assert table.columns[-1] == "Different" and "Equivalent" not in table.columns
    assert why_no_bound([]) in table.note and why_no_bound([]) in words_in(chapter)
    assert "Schuirmann" not in " ".join(chapter.methods)


def test_rankings_tell_robustness_error_patterns_and_what_is_missing(material: Material) -> None:
    chapter = chapter_of(rankings.write, material)
    assert not chapter.planned
    assert_whole(chapter)
    text = words_in(chapter)
    assert re.search(r"\btwo models\b.* eight\b", text) and "family" in text
    assert "random" not in text
    for row in tables_in(chapter)["told_apart"].rows:
        assert re.search(f"{row[4]} [^.]* {row[5]} by chance", text)
    for row in tables_in(chapter)["error_consistency"].rows:
        assert (f"κ = {row[6]}, 95% CI {row[7]}" in text) is (row[0] == "people")


@pytest.mark.parametrize("case", ["one item", "an empty condition", "two factors", "all right", "half done"])
def test_odd_studies_break_no_chapter(tmp_path: Path, case: str) -> None:
    rows = study_rows(human=6, models=("a",), items=1 if case == "one item" else 8)
    factors = {"position": {"levels": LEVELS, "reference": "intact"}}
    if case == "an empty condition":
        rows = rows[rows["position"] != "intact"]
    elif case == "two factors":
        rows["task"] = np.where(rows["item_id"] < "s05", "easy", "hard")
        factors = {"task": {"levels": ["easy", "hard"], "reference": "easy"}, **factors}
    elif case == "all right":
        rows["correct"], rows["response_status"] = True, "valid"
    elif case == "half done":
        rows = rows[(rows["reader"] == "P001") | (rows["trial_index"] < 7)]
    material = material_of(load(write_handover(tmp_path, rows, factors=factors)))
    for writer in (fidelity.write, rankings.write):
        chapter = writer(material)
        if chapter is not None:
            assert_whole(chapter)
            assert not re.search("nan|inf(?!ormation)", words_in(chapter))
