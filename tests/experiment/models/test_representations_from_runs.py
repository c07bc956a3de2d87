"""From a run of tiny models that keep mean states to the chapter on representations, and to several studies together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.measures.levels import levels_of
from experiment.building import build_study
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.papers.inside.chapters.layers.layer_maps import represented
from experiment.papers.inside.chapters.representations import write
from experiment.store import open_store
from tests.analysis.chapters import chapter_of, tables_in
from tests.experiment.models.running import invoke
from tests.experiment.models.tiny_models import tiny_llama

pytest.importorskip("torch")

pytestmark = pytest.mark.full

ANIMALS = ("dog", "horse", "garden", "river", "winter", "captain", "window", "doctor", "letter", "summer")
YAML = """\
wrods: 1
study: tiny
title: Tiny
seed: 3
models:
  states: [mean, last]
  determinism: exact
  who:
    one: {{use: "hf:{one}", max_tokens: 2}}
    two: {{use: "hf:{two}", max_tokens: 2}}
materials: {{sentences: s.csv, scramble: {{words: all}}}}
design:
  factors:
    scramble:
      BASE: none
      REO-ALL: REO-ALL
      REO-INT: REO-INT
      REO-REV: REO-REV
      WORD-REO-ALL: WORD-REO-ALL
procedure:
  - block: {{trial: [{{answer: {{show: sentence, ask: What is it about?}}}}]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    for seed, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        tiny_llama(folder / name, seed=seed + 5)
    study = folder / "study"
    study.mkdir()
    (study / "study.yaml").write_text(YAML.format(one=folder / "one", two=folder / "two"), "utf-8")
    rows = [
        f"i{n},The friendly {name} waited quietly behind another building." for n, name in enumerate(ANIMALS)
    ]
    (study / "s.csv").write_text("\n".join(["item,sentence", *rows]) + "\n", "utf-8")
    build_study(load_study(study))
    done = invoke("run", study)
    assert done.exit_code == 0, done.output
    loaded = load_study(study)
    with open_store(study) as store:
        hand_over(loaded, store, study / "reports" / "data")
    return study


def test_mean_states_of_a_run_become_maps_of_its_models(folder):
    tables = load(folder / "reports" / "data")
    does = levels_of(tables.items, "scramble", tables.factors["scramble"])
    found = represented(tables, does)
    assert sorted(one.group for one in found) == ["one", "two"] and {one.position for one in found} == {
        "mean"
    }
    for one in found:
        assert one.intact == "BASE" and len(one.pattern.items) == len(ANIMALS) and one.other_wording == 0
        assert one.pattern.conditions == ("REO-ALL", "REO-INT", "REO-REV", "WORD-REO-ALL")
        means = one.pattern.map()
        assert np.isfinite(means).all() and (means < 1).all()
        words, letters = means[-1].mean(), means[:-1].mean()
        assert words > letters, "the same words in another order share their tokens"
        embedded = one.pattern.cosine[:, :, 0]
        assert embedded[:, -1].min() > 0.97, "the mean of embeddings hardly knows the order of words"
        assert embedded[:, :-1].max() < embedded[:, -1].min()


def test_the_report_of_the_run_has_the_chapter(folder):
    tables = tables_in(chapter_of(write, load(folder / "reports" / "data")))
    names = ("representations", "representations_cells", "representations_models")
    assert {f"{name}_scramble" for name in names} <= set(tables)
    assert "tokens" in tables["representations_scramble"].note
