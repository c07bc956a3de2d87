"""Several factors crossed: what their levels do, which cells come of them, and how lists keep them balanced."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.lists import items_of_list, list_ids
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import write_items

SENTENCES = (
    "The gardener watered tomatoes",
    "A customer returned umbrellas",
    "Several children painted dinosaurs",
    "The minister answered questions",
    "My neighbour collected postcards",
    "The director cancelled concerts",
    "A traveller described mountains",
    "The mechanic repaired machines",
)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(factors: str, rows: str = "high low high low high low high low", practice: str = "") -> Study:
        with (tmp_path / "sentences.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["item", "sentence", "band"])
            for number, (text, band) in enumerate(zip(SENTENCES, rows.split(), strict=True), 1):
                writer.writerow([f"s{number}", text, band])
        (tmp_path / "practice.csv").write_text(practice, "utf-8")
        screen = "  - practice: {items: practice.csv}\n" if practice else ""
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: crossed\ntitle: Crossed\nseed: 5\n"
            "materials:\n  sentences: sentences.csv\n"
            f"design:\n  factors: {factors}\n"
            f"procedure:\n{screen}  - block:\n      trial:\n        - recover: {{show: sentence}}\n",
            "utf-8",
        )
        return load_study(tmp_path)

    return study


POSITION = "position: {intact: none, initial: {transpose: initial}, final: {transpose: final}}"
DISTANCE = "distance: {near: {distance: 1}, far: {distance: 2}}"
BAND = "band: {low: {where: {band: low}}, high: {where: {band: high}}}"


def test_a_factor_that_sets_an_option_is_crossed_with_the_one_that_scrambles(make):
    items = make_items(make(f"{{{POSITION}, {DISTANCE}}}")).items
    assert Counter(tuple(item.condition.items()) for item in items) == {
        (("position", p), ("distance", d)): 8 for p in ("intact", "initial", "final") for d in ("near", "far")
    }
    shown = {
        tuple(item.condition.values()): item.provenance["operation"] for item in items if item.item_id == "s1"
    }
    assert shown["initial", "near"] == "transpose:initial"
    assert shown["initial", "far"] == "transpose:initial(distance=2)"
    assert shown["intact", "far"] == "none"


def test_a_factor_between_items_is_crossed_with_one_within(make):
    study = make(f"{{{BAND}, {POSITION}}}")
    items = make_items(study).items
    bands = {item.item_id: item.condition["band"] for item in items}
    assert bands == {f"s{n}": "high" if n % 2 else "low" for n in range(1, 9)}
    assert all(list(item.condition) == ["band", "position"] for item in items)
    write_items(study.folder / "items.jsonl", items, {"seed": 5})
    for list_id in list_ids(study, items):
        cells = Counter(tuple(item.condition.values()) for item in items_of_list(study, items, list_id))
        assert max(cells.values()) - min(cells.values()) <= 1
        assert len(cells) == 6


def test_each_item_comes_in_every_condition_across_lists(make):
    study = make(f"{{{BAND}, {POSITION}, {DISTANCE}}}")
    items = make_items(study).items
    lists = list_ids(study, items)
    assert len(lists) == 6
    seen = Counter(
        (item.item_id, *item.condition.values())
        for list_id in lists
        for item in items_of_list(study, items, list_id)
    )
    assert len(seen) == len(items)
    assert set(seen.values()) == {1}


def test_a_practice_row_with_an_unknown_level_names_it(make):
    practice = "item,sentence,position\np1,Another gardener watered tomatoes,finl\n"
    with pytest.raises(UserError, match="level of position 'finl'") as error:
        make_items(make(f"{{{POSITION}}}", practice=practice))
    assert error.value.mend is not None
    assert "final" in error.value.mend


@pytest.mark.parametrize(
    ("factors", "says"),
    [
        (f"{{{POSITION}, other: {{a: none, b: KFL}}}}", "position and other both scramble"),
        (f"{{{DISTANCE}}}", "no factor scrambles"),
        (f"{{{POSITION}, rate: {{a: {{rate: 0.5}}, b: none}}}}", "a factor does one thing"),
        (
            "{position: {a: {transpose: initial, distance: 1}, b: {transpose: final, distance: 1}}, "
            f"{DISTANCE}}}",
            "given distance twice",
        ),
        (f"{{{POSITION}, size: {{a: {{distanc: 1}}, b: {{distanc: 2}}}}}}", "no option 'distanc'"),
        (f"{{position: {{a: hand-made, b: {{transpose: final}}}}, {DISTANCE}}}", "made by hand"),
        (f"{{{POSITION}, shots: {{a: {{demonstrations: none}}, b: {{demonstrations: KFL}}}}}}", "corpus"),
    ],
)
def test_factors_that_cannot_be_crossed_say_why(make, factors, says):
    with pytest.raises(UserError, match=r"study\.yaml, line 8") as error:
        make(factors)
    assert says in str(error.value)
