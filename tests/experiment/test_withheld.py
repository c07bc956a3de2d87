"""No-evidence and substituted-letter arms come from study.yaml, for sentences, words and corpora, for people and models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.models.prompts import render
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError

WORDS = """\
wrods: 1
study: words
title: Words
seed: 3
materials: {words: words.csv}
design: {factors: {letters: {intact: none, scrambled: KFL, substituted: Sub, nothing: withhold}}}
procedure:
  - block:
      trial:
        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}
"""


def sentences(folder: Path) -> Study:
    copy_template("letter-position", folder)
    file = folder / "study.yaml"
    text = file.read_text("utf-8")
    begin, end = text.index("    position:"), text.index("  lists: latin_square")
    levels = "    position: {intact: none, internal: {transpose: internal}, final: Sub, initial: withhold}\n"
    file.write_text(text[:begin] + levels + text[end:], "utf-8")
    return load_study(folder)


def test_a_question_is_asked_without_its_sentence(tmp_path):
    study = sentences(tmp_path / "s")
    items = make_items(study).items
    withheld = [one for one in items if one.condition["position"] == "initial" and one.role == "test"]
    assert len(withheld) == 24
    assert all(one.shown["sentence"] == "" and one.shown["question"] and not one.changes for one in withheld)
    assert {one.provenance["operation"] for one in withheld} == {"withheld"}
    plan = plan_session(study, items, list_id=1)
    for trial in trials_of(plan):
        steps = [step["step"] for step in trial["steps"]]
        is_withheld = trial["condition"]["position"] == "initial"
        assert steps == (["choose"] if is_withheld else ["read", "choose"])
        prompt = render(plan, trial)
        assert bool(prompt.regions) != is_withheld
        assert trial["steps"][-1]["text"] in prompt.messages[0].content
    assert '"intact"' not in json.dumps(participant_view(plan))


def test_substituted_letters_keep_length_and_place_of_the_same_words(tmp_path):
    items = make_items(sentences(tmp_path / "s")).items
    by_id: dict[str, dict[str, Any]] = {}
    for one in items:
        if one.role == "test":
            by_id.setdefault(one.item_id, {})[one.condition["position"]] = one
    for versions in by_id.values():
        moved = {(change["word"], change["start"]) for change in versions["internal"].changes}
        assert {(change["word"], change["start"]) for change in versions["final"].changes} == moved
        assert all(change["substituted"] == len(change["intact"]) for change in versions["final"].changes)


def test_a_withheld_text_cannot_be_asked_back(tmp_path):
    text = WORDS.replace(
        "choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}",
        "recover: {show: word}",
    )
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    (tmp_path / "words.csv").write_text("word\ngarden\n", "utf-8")
    with pytest.raises(UserError, match="withheld cannot be restored"):
        load_study(tmp_path)
