"""Foils of a maze that a model makes: as long and as frequent as their words, surprising in every version, and listed once."""

from __future__ import annotations

import csv
import math

import pytest

from experiment.building import build_study, make_items
from experiment.building.distractors import FILE, Place, find_foils
from experiment.checking import load_study
from experiment.models import Message, ModelSettings, Request
from experiment.models.engine import Span
from experiment.models.local import LocalEngine
from experiment.procedure import plan_session, trials_of
from stimuli.errors import UserError
from stimuli.lexicon import zipf
from tests.experiment.models.tiny_models import tiny_llama

pytest.importorskip("torch")

STUDY = """
wrods: 1
study: a-maze
title: A maze
language: en
seed: 5
models: {{who: {{tiny: {{use: "hf:{model}"}}, chance: {{use: "baseline:random"}}}}}}
materials: {{sentences: sentences.csv, distractors: {{made_by: {maker}, min_bits: {bits}}}}}
design: {{factors: {{fit: [good, bad]}}, lists: latin_square}}
procedure:
  - consent: text.md
  - block: {{trial: [{{read: {{show: sentence, as: maze, keys: [f, j]}}}}]}}
  - debrief: text.md
"""
SENTENCES = "item,sentence\n1,The baker put the {bread|engine} into the oven.\n2,Our old dog {barks|reads} at night.\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_llama(folder)
    return folder


@pytest.fixture
def make(tmp_path, model):
    def write(*, maker="tiny", bits=1):
        (tmp_path / "sentences.csv").write_text(SENTENCES, "utf-8")
        (tmp_path / "text.md").write_text("# Text\n\nSome text.", "utf-8")
        (tmp_path / "study.yaml").write_text(STUDY.format(model=model, maker=maker, bits=bits), "utf-8")
        return load_study(tmp_path)

    return write


def rows_of(study):
    with (study.folder / FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_foils_match_their_words_and_versions_share_what_they_have_in_common(make, model):
    study = make()
    (said,) = [line for line in make_items(study).remarks if FILE in line]
    assert "14 words" in said
    build_study(study)
    rows = rows_of(study)
    assert [row["word"] for row in rows if row["item"] == "2"] == [
        "old",
        "dog",
        "barks",
        "at",
        "night.",
        "reads",
    ]
    night = next(row for row in rows if row["word"] == "night.")
    assert night["after"] == "Our old dog barks at | Our old dog reads at"
    assert night["foil"].endswith(".")
    engine = LocalEngine(ModelSettings(f"hf:{model}"))
    for row in rows:
        word, foil = row["word"].strip("."), row["foil"].strip(".")
        assert abs(len(foil) - max(len(word), 3)) <= 2
        assert zipf(foil.lower(), "en") > 0
        least = min(bits_of(engine, before, row["foil"]) for before in row["after"].split(" | "))
        assert float(row["bits"]) == pytest.approx(least, abs=0.01)
        assert float(row["bits"]) >= 1
    for item in ("1", "2"):
        foils = [row["foil"] for row in rows if row["item"] == item]
        assert len(set(foils)) == len(foils)


def bits_of(engine, before, foil):
    text = f"{before} {foil}"
    span = Span(0, len(before) + 1, len(text))
    (reply,) = engine.answer([Request("k", (Message("user", text),), ("A",), 1, 0.0, 1, regions=(span,))])
    return reply.regions[0].surprisal / math.log(2)


def test_a_list_is_made_once_and_may_be_corrected_by_hand(make, monkeypatch):
    study = make()
    build_study(study)
    text = (study.folder / FILE).read_text("utf-8")
    rows = rows_of(study)
    corrected = text.replace(f",{rows[0]['foil']},", ",zebra,")
    (study.folder / FILE).write_text(corrected, "utf-8")
    monkeypatch.setattr("experiment.models.engines.open_engine", lambda settings: pytest.fail("asked again"))
    study = load_study(study.folder)
    build_study(study)
    assert (study.folder / FILE).read_text("utf-8") == corrected
    study = load_study(study.folder)
    trials = trials_of(plan_session(study, study.items, list_id=1, session_key="s"))
    shown = next(trial["steps"][0] for trial in trials if trial["item_id"] == "1")
    assert shown["foils"][:2] == ["x-x-x", "zebra"]
    assert "x-x-x" not in shown["foils"][1:]


def test_a_changed_sentence_gets_new_foils_and_the_others_stay(make):
    study = make()
    build_study(study)
    before = rows_of(study)
    (study.folder / "sentences.csv").write_text(SENTENCES.replace("night", "noon"), "utf-8")
    build_study(load_study(study.folder))
    after = rows_of(study)
    assert [row["word"] for row in after] == [row["word"].replace("night", "noon") for row in before]
    assert [row for row in after if row["word"] != "noon."] == [
        row for row in before if row["word"] != "night."
    ]


def test_the_most_surprising_foil_is_taken_and_told_where_none_reaches_the_threshold(make):
    study = make(bits=900)
    built = build_study(study)
    (said,) = [line for line in built.made.remarks if FILE in line]
    assert "14 are below 900 bits" in said


@pytest.mark.parametrize(("maker", "named"), [("chance", "hf:"), ("tyni", "tiny")])
def test_only_a_local_model_of_the_study_makes_foils(make, maker, named):
    with pytest.raises(UserError, match=named):
        make(maker=maker)


def test_candidates_do_not_depend_on_other_places(model):
    engine = LocalEngine(ModelSettings(f"hf:{model}"))
    one, other = Place("1", "garden", ("The old",)), Place("2", "basket", ("A new",))
    alone = find_foils(engine, [one], language="en", seed=1, min_bits=1)
    both = find_foils(engine, [other, one], language="en", seed=1, min_bits=1)
    assert both[1] == alone[0]
