"""The chapter on representations, from hidden states of known truth."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.measures.levels import levels_of
from analysis.report.blocks import Chapter, Material
from analysis.tables import Tables
from experiment.papers.inside.chapters.layers import layer_maps as inside
from experiment.papers.inside.chapters.layers.hidden_states import kept_states
from experiment.papers.inside.chapters.layers.layer_maps import represented
from experiment.papers.inside.chapters.representations import write
from tests.analysis.chapters import chapter_of, tables_in, words_in
from tests.analysis.inside.representation_study import MOVED, representation_study

CHANGED = [name for name in MOVED if name != "BASE"]


def found_in(tables: Tables) -> list[inside.Represented]:
    return represented(tables, levels_of(tables.items, "scramble", list(MOVED)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return representation_study(tmp_path_factory.mktemp("states") / "study")


@pytest.fixture(scope="module")
def chapter(folder: Path) -> Chapter:
    return chapter_of(write, load(folder / "reports" / "data"))


def test_maps_are_cosines_of_each_item_with_itself_intact(folder: Path) -> None:
    tables = load(folder / "reports" / "data")
    one = next(own for own in found_in(tables) if own.group == "one")
    assert one.pattern.conditions == tuple(CHANGED) and one.pattern.layers == 7 and one.position == "mean"
    (kept,) = [own for own in kept_states(tables, "mean") if own.group == "one"]
    states = kept.layer(3).astype(float)
    rows = kept.rows
    for condition in ("REO-REV", "SENT-REO-ALL"):
        base = states[(rows["scramble"] == "BASE").to_numpy()]
        changed = states[(rows["scramble"] == condition).to_numpy()]
        own = (base * changed).sum(1) / np.linalg.norm(base, axis=1) / np.linalg.norm(changed, axis=1)
        place = CHANGED.index(condition)
        np.testing.assert_allclose(one.pattern.cosine[:, place, 3], own, atol=1e-5)
    of_layer = dict(zip(CHANGED, one.pattern.map()[:, 3], strict=True))
    assert of_layer["REO-REV"] < of_layer["SENT-REO-ALL"]


def test_the_chapter_sets_the_floor_beside_every_cosine(chapter: Chapter) -> None:
    rows = tables_in(chapter)["representations_scramble"].rows
    own = {row[0]: row for row in rows[1 : len(CHANGED) + 2]}
    raw = {name: float(row[2]) for name, row in own.items()}
    centred = {name: float(row[4].replace("−", "-")) for name, row in own.items()}
    assert raw["different items"] > 0.8, "states share a large part"
    assert abs(centred["different items"]) < 0.15 < centred["SENT-REO-ALL"] - centred["REO-REV"]
    assert raw["SENT-REO-ALL"] > raw["WORD-REO-ALL"] > raw["REO-REV"]
    low, high = own["REO-ALL"][3].values
    assert low < own["REO-ALL"][2].values[0] < high
    said = words_in(chapter)
    assert re.search(r"one: [^(;]*REO-REV \([^;]*SENT-REO-ALL \(", said), "from the least to the most similar"
    cell = tables_in(chapter)["representations_cells_scramble"]
    assert cell.drawn and len(cell.rows) == 2 + 8 * 7 + 8 * 5


def test_models_of_unlike_depth_are_compared_at_relative_depths(chapter: Chapter) -> None:
    beside = tables_in(chapter)["representations_models_scramble"]
    ((name, cosine, r, both, between, first, second, corrected, _, p, adjusted),) = beside.rows
    assert cosine.values[0] > 0.98 > r.values[0] > both.values[0] and r.values[0] > between.values[0]
    assert name == "one, two" and "5 relative depths" in beside.note
    assert cosine.values[0] > 0.98 > corrected.values[0] and between.values[0] < first.values[0]
    assert second.values[0] > 0.3 and p.values[0] == adjusted.values[0] == pytest.approx(0.001)
    said = words_in(chapter)
    assert re.search(r"\b4 [^.]* 4 .* p = \.500", said)
    assert "Finn et al., 2015" in chapter.methods[0] and "Yu et al., 2024" in chapter.methods[0]


def test_sets_of_items_are_parts_of_their_own_and_compared(tmp_path: Path) -> None:
    folder = representation_study(
        tmp_path / "study", models={"one": (0, 4)}, items=12, sets=("squad", "boolq")
    )
    chapter = chapter_of(write, load(folder / "reports" / "data"))
    head, row = tables_in(chapter)["representations_sets_scramble"].rows
    assert head[0] == "one" and row[0] == "squad, boolq"
    cosine, r, p = (row[place].values[0] for place in (3, 4, 5))
    assert cosine > 0.98 and r > 0.7 and p <= 1 / 5040 + 1e-9 * 50
    assert "1/5,040" in tables_in(chapter)["representations_sets_scramble"].note


def test_states_of_the_last_token_are_taken_and_told_where_no_means_were_kept(tmp_path: Path) -> None:
    folder = representation_study(tmp_path / "study", models={"one": (0, 3)}, items=10, position="last")
    chapter = chapter_of(write, load(folder / "reports" / "data"))
    assert "last token" in tables_in(chapter)["representations_scramble"].note
    (methods,) = chapter.methods
    assert "last token" in methods and "over the tokens" not in methods
    assert "Finn et al." not in methods, "one model is compared with no other"


def test_layers_of_equal_states_are_left_out_of_means_of_centred_cosines(tmp_path: Path) -> None:
    folder = representation_study(tmp_path / "study", models={"one": (0, 4)}, items=10)
    (file,) = (folder / "states").glob("*/layer_00.npy")
    states = np.load(file)
    np.save(file, np.repeat(states[:1], len(states), axis=0))
    chapter = chapter_of(write, load(folder / "reports" / "data"))
    laid = tables_in(chapter)["representations_scramble"]
    values = {row[0]: row[4].values[0] for row in laid.rows[1:]}
    assert np.isfinite(list(values.values())).all() and "layer 0" in laid.note
    del values["different items"]
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    assert re.search(rf"one: [^(;]*{least} \([^;]*{most} \(", words_in(chapter))


def test_few_items_have_maps_and_a_study_without_states_has_no_chapter(tmp_path: Path) -> None:
    data = representation_study(tmp_path / "study", models={"one": (0, 2)}, items=4) / "reports" / "data"
    assert len(found_in(load(data))) == 1 and tables_in(chapter_of(write, load(data)))
    away = tmp_path / "elsewhere"
    data.rename(away)
    assert write(Material(load(away))) is None
