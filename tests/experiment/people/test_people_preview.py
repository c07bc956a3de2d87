from __future__ import annotations

import json
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from experiment.building import make_items
from experiment.models.prompts.prompter import render
from experiment.people.preview import create_preview_app
from experiment.procedure import plan_session, trials_of


@pytest.fixture
def study(make_study: Any) -> Any:
    return make_study(
        ("seed: 7\n", "seed: 7\nmodels: {prompt_variants: 2, who: {g: {use: 'baseline:random'}}}\n")
    )


@pytest.fixture
def visitor(study: Any) -> FlaskClient:
    app = create_preview_app(study)
    client: FlaskClient = app.test_client()
    return client


def data_of(page: str, name: str) -> dict[str, Any]:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def choices(visitor: FlaskClient) -> dict[str, Any]:
    told: dict[str, Any] = data_of(visitor.get("/").text, "preview-config")["choices"]
    return told


def test_every_item_can_be_chosen_in_every_condition(visitor):
    offered = choices(visitor)
    trials = {
        (row["item"], row["condition"])
        for rows in offered["screens"].values()
        for row in rows
        if row["trial"]
    }
    items = {item for item, _ in trials}
    assert trials == {(item, f"position: {level}") for item in items for level in ("intact", "initial")}
    assert offered["lists"] == [1, 2] and offered["variants"] == 2
    kinds = [row["kind"] for row in offered["screens"]["1"]]
    assert kinds == ["consent", "instructions", "practice", *["block"] * 4, "debrief"]


def test_the_prompt_is_that_of_a_run(study, visitor):
    items = make_items(study).items
    for variant in (1, 2):
        plan = {**plan_session(study, items, list_id=2), "prompt_variant": variant}
        told = visitor.get(f"/prompt.json?list=2&variant={variant}&trial=2").json
        rendered = render(plan, trials_of(plan)[2])
        assert [(m["role"], m["content"]) for m in told["messages"]] == [
            (m.role, m.content) for m in rendered.messages
        ]
        assert told["labels"] == list(rendered.labels or ())
    assert told["is_read"] is False
    assert visitor.get("/prompt.json?list=1&screen=0").json == {"none": True}


def test_a_saved_file_is_shown_anew_a_broken_one_told_and_nothing_is_stored(study, visitor):
    def files() -> list[str]:
        return sorted(path.name for path in study.folder.rglob("*"))

    before, there = visitor.get("/stamp.json").json, files()
    assert visitor.get("/stamp.json").json == before
    file = study.folder / "study.yaml"
    right = file.read_text()
    file.write_text(right.replace("A small study", "Another title"))
    assert visitor.get("/stamp.json").json != before
    assert "Another title" in visitor.get("/").text
    file.write_text(right.replace("title:", "titel:"))
    page = visitor.get("/")
    assert page.status_code == 200 and "titel" in page.text
    assert visitor.get("/screen").status_code == 409
    file.write_text(right)
    for path in ("/", "/screen?list=1", "/prompt.json?list=1&trial=1", "/stamp.json"):
        assert visitor.get(path).status_code == 200
    assert "A small study" in visitor.get("/").text
    assert files() == there


def test_other_names_of_this_computer_do_not_reach_the_preview(visitor):
    assert visitor.get("/", headers={"Host": "evil.example:8001"}).status_code == 403
    assert visitor.get("/", headers={"Host": "127.0.0.1:8001"}).status_code == 200
