"""Texts compared by their vectors: shown with intact, free answers with what is right or with those about the intact text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.exporting.tables import trial_rows
from experiment.models import ModelSettings
from experiment.models.judges.similarity import (
    PLACEHOLDER,
    Embedder,
    compare_texts,
    embedding_settings,
    nearness,
    shown_texts,
    told,
)
from experiment.scoring.similarities import similarity_rows
from experiment.store import Store, open_store
from experiment.store.records import all_scores
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.models.running import invoke
from tests.experiment.models.test_rescoring import run
from tests.experiment.models.tiny_models import tiny_llama

YAML = """\
wrods: 1
study: near
title: Near
seed: 3
materials: {sentences: s.csv, scramble: {words: all}}
design: {factors: {letters: {intact: none, scrambled: {shuffle: all}}}}
models:
  EMBEDDINGS
  who: {m: {use: "hf:m"}, n: {use: "hf:m"}}
procedure:
  - block: {trial: [{answer: {show: sentence, ask: Summarise the text.}}]}
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("encoder"), seed=3)


def written(folder: Path, embeddings: str) -> Study:
    (folder / "study.yaml").write_text(YAML.replace("EMBEDDINGS", embeddings), "utf-8")
    (folder / "s.csv").write_text(
        "item,sentence\na,The garden behind the house is green.\nb,The river runs along the old wall.\n",
        "utf-8",
    )
    return load_study(folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build_study(written(folder, f'embeddings: {{use: "hf:{encoder}"}}'))
    return folder


@pytest.fixture
def study(tmp_path: Path, built: Path) -> Study:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return load_study(tmp_path)


@pytest.fixture
def store(study: Study) -> Iterator[Store]:
    with open_store(study.folder) as opened:
        yield opened


def said_of(trial: dict[str, Any]) -> str:
    is_intact = trial["condition"]["letters"] == "intact"
    return f"about {trial['item_id']}" if is_intact else f"perhaps {trial['item_id']}"


def test_answers_are_compared_with_the_same_models_about_the_intact_text_and_those_have_a_floor(
    study, store, encoder
):
    run(study, store, said_of, reader="m")
    run(study, store, lambda trial: "the same", reader="n")
    embedder = Embedder(ModelSettings(f"hf:{encoder}"))
    outcome = compare_texts(study, store, Embedder(embedding_settings(study)))
    found = {(one.reader, one.item_id, one.condition["letters"]): one.similarity for one in outcome.answers}
    assert len(found) == 8 and outcome.alone == outcome.unread == 0
    for (reader, item_id, level), similarity in found.items():
        if reader == "n" or level == "intact":
            assert similarity == pytest.approx(1, abs=1e-5)
        else:
            one, other = embedder.embed([f"perhaps {item_id}", f"about {item_id}"])
            assert similarity == pytest.approx(float(np.dot(one, other)), abs=1e-5)
    one, other = embedder.embed(["about a", "about b"])
    assert outcome.floors["m"] == pytest.approx([float(one @ other)] * 2, abs=1e-5)
    assert outcome.floors["n"] == pytest.approx([1, 1], abs=1e-5), "it says the same of both texts"
    with store.read() as connection:
        rows = list(similarity_rows(study, connection))
    kept = [row["unrelated"] for row in rows]
    assert len(rows) == 8 and sum(value is None for value in kept) == 4, "of answers about intact texts alone"
    assert max(value for value in kept if value is not None) == pytest.approx(1, abs=1e-5)
    assert any(" n " in line and line.endswith(": 1.000") for line in told(outcome))


def test_shown_texts_are_compared_with_intact_ones_and_different_intact_ones_are_the_floor(
    study, store, encoder
):
    embedder = Embedder(ModelSettings(f"hf:{encoder}"))
    shown = compare_texts(study, store, Embedder(embedding_settings(study))).texts.shown
    assert shown["intact"] == pytest.approx([1, 1], abs=1e-5) and len(shown["scrambled"]) == 2
    assert max(shown["scrambled"]) < 0.999
    found = nearness(embedder, shown_texts(study.items))
    texts = {one.item: one.intact for one in shown_texts(study.items)}
    one, other = embedder.embed(list(texts.values()))
    assert found.unrelated == pytest.approx([float(one @ other)] * 2, abs=1e-6)
    assert found.items["scrambled"] == ["sentences/a", "sentences/b"]
    again = nearness(embedder, [shown_texts(study.items)[0]])
    assert again.unrelated == [] and again.pairs == 0, "one item has no other one"


def test_whole_prompts_are_kept_until_the_items_or_the_model_change(study, store):
    def kept(*options: str) -> dict[str, Any]:
        done = invoke("score", study.folder, "--similarity", *options)
        assert done.exit_code == 0, done.output
        return json.loads((study.folder / "similarity.json").read_text("utf-8"))

    first = kept("--prompts")
    assert first["prompts"]["shown"]["scrambled"]["items"] == len(first["unrelated"]["of"]) == 2
    assert first["unrelated"]["pairs"] == 1
    assert kept()["prompts"] == first["prompts"]
    file = study.folder / "similarity.json"
    file.write_text(json.dumps(first | {"items": "others"}), "utf-8")
    assert "prompts" not in kept()
    assert invoke("score", study.folder, "--prompts").exit_code == 2


@pytest.mark.parametrize("published", [True, False])
def test_a_reply_without_an_answer_is_the_placeholder_only_where_scored_as_published(
    study, store, encoder, monkeypatch, published
):
    monkeypatch.setattr(type(study), "published", property(lambda self: ("scoring",) if published else ()))
    run(
        study,
        store,
        lambda trial: "" if trial["condition"]["letters"] == "scrambled" else "a text",
        reader="m",
    )
    outcome = compare_texts(study, store, Embedder(embedding_settings(study)), dry_run=True)
    assert outcome.unread == 2 and outcome.placeholders == published
    levels = [one.condition["letters"] for one in outcome.answers]
    assert levels.count("scrambled") == (2 if published else 0)
    if published:
        one, other = Embedder(ModelSettings(f"hf:{encoder}")).embed([PLACEHOLDER, "a text"])
        values = [one.similarity for one in outcome.answers if one.condition["letters"] == "scrambled"]
        assert values == pytest.approx([float(one @ other)] * 2, abs=1e-5)


def test_similarities_stand_beside_and_change_no_verdict(study, store):
    run(study, store, said_of, reader="m")

    def tables() -> list[Any]:
        with store.read() as connection:
            return [(row["correct"], row["score"], row["scorer"]) for row in trial_rows(connection, study.id)]

    before = tables()
    compare_texts(study, store, Embedder(embedding_settings(study)), dry_run=True)
    with store.read() as connection:
        assert not [row for row in all_scores(connection) if "similarity" in row["scorer"]]
    compare_texts(study, store, Embedder(embedding_settings(study)))
    with store.read() as connection:
        beside = [row for row in all_scores(connection) if row["scorer"].startswith("also:similarity:hf:")]
    assert len(beside) == 4 and all(row["correct"] is None for row in beside)
    assert tables() == before


def test_the_command_prints_means_and_each_answer(study, store):
    run(study, store, said_of, reader="m")
    done = invoke("score", study.folder, "--similarity", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {(one["reader"], one["condition"], one["answers"]) for one in told["answers_by_condition"]} == {
        ("m", "intact", 2),
        ("m", "scrambled", 2),
    }
    assert len(told["answers"]) == 4
    kept = json.loads((study.folder / "similarity.json").read_text("utf-8"))
    assert (
        kept["shown"] == told["shown"]
        and told["prompts"] is None
        and kept["use"] == told["use"]
        and len(kept["items"]) == 64
    )
    done = invoke("score", study.folder, "--similarity", "--parser", "published")
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{use: "baseline:random"}', "kind of embedding model 'baseline' is not known"),
        ('{use: "hf:x", base_url: "http://localhost:1/v1"}', "base_url does not apply to hf:x"),
        ('{use: "package:x", revision: main}', "revision does not apply to package:x"),
        ('{use: "openai:e", device: cpu}', "device does not apply to openai:e"),
        ('{use: "openai:e", temperature: 0}', "temperature is not a setting"),
    ],
)
def test_what_an_embedding_model_cannot_be_is_said_with_its_line(tmp_path, given, said):
    with pytest.raises(UserError, match="models: embeddings"):
        embedding_settings(written(tmp_path, "replicates: 1"))
    with pytest.raises(UserError) as fault:
        written(tmp_path, f"embeddings: {given}")
    assert said in str(fault.value) and "study.yaml, line 8" in str(fault.value)
