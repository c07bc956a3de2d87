"""What a Method section needs of the collection reaches analysis as sums, and no person's own words with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiment.exporting.export import hand_over
from experiment.store import Store
from experiment.study import Study
from tests.experiment.exporting.test_exports import NASTY, store, study

__all__ = ["store", "study"]


@pytest.fixture
def told(study: Study, store: Store, tmp_path: Path) -> dict[str, Any]:
    folder = hand_over(study, store, tmp_path / "over")
    found: dict[str, Any] = json.loads((folder / "dictionary.json").read_text("utf-8"))
    return found


def test_dates_tokens_and_cost_of_a_model_are_sums_over_its_calls(told: dict[str, Any], store: Store) -> None:
    model = told["readers"]["hf:a/b"]
    assert model["calls"] > 3 and model["prompt_tokens"] == 31 * model["calls"]
    assert model["cost_usd"] == pytest.approx(0.002 * model["calls"])
    assert model["first_call"] <= model["last_call"] and model["first_call"][:2] == "20"
    assert model["completion_tokens"] is None and model["resolved"] == "a/b-2026-01"


def test_answers_of_people_are_summed_without_pilots_and_texts_stay_behind(told: dict[str, Any]) -> None:
    people = told["participants"]
    assert people["people"] == 2 and people["first_session"].startswith("2026-03-01")
    (age,) = people["answers"]
    assert (age["name"], age["n"], age["mean"], age["sd"]) == ("age", 2, 34, 0)
    assert NASTY[0] not in json.dumps(told, ensure_ascii=False) and "P001" not in json.dumps(people)


def test_materials_design_and_procedure_are_said_in_words(told: dict[str, Any]) -> None:
    session = told["procedure"]
    assert "item" in session["materials"] and "list" in session["lists"] and "block" in session["screens"]
    assert session["trials"].startswith("A session had ") and session["length"].startswith("roughly ")
    assert session["told"].startswith("Practice (") and "The block (" in session["told"]
