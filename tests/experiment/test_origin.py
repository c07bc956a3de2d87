"""Items know what they were built from: what is another design, and what is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.integrity.build_provenance import BUILT_FROM, changed_since_build, require_current_items
from experiment.models.runs import CommandRun, RunOptions, version_of
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import meta_path, read_meta

CORPUS = """\
wrods: 1
study: outside
title: Words from elsewhere
seed: 3
materials: {words: ../norms/words.txt, audit: {shortcut: false}}
design:
  factors:
    position: {intact: none, initial: {transpose: initial}}
procedure:
  - block:
      trial:
        - choose: {show: word, ask: Which word is it?, keys: [f, j]}
models:
  who:
    r: {use: "baseline:random"}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with words and a study of them, built."""
    place = tmp_path_factory.mktemp("built") / "place"
    (place / "norms").mkdir(parents=True)
    (place / "norms" / "words.txt").write_text("garden\nbasket\nplanet\nmarble\n", "utf-8")
    folder = place / "outside"
    folder.mkdir()
    (folder / "study.yaml").write_text(CORPUS, "utf-8")
    build_study(load_study(folder))
    return place


@pytest.fixture
def outside(built: Path, tmp_path: Path) -> Path:
    """A study whose words lie outside its folder, built."""
    return shutil.copytree(built, tmp_path, dirs_exist_ok=True) / "outside"


def changed(folder: Path, old: str, new: str) -> list[str]:
    file = folder / "study.yaml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    return changed_since_build(load_study(folder))


@pytest.mark.parametrize("template", ["letter-position", "htest-people", "your-own"])
def test_a_template_that_was_built_is_of_its_design(tmp_path, template):
    copy_template(template, tmp_path / "study")
    build_study(load_study(tmp_path / "study"))
    study = load_study(tmp_path / "study")
    assert changed_since_build(study) == []
    require_current_items(study)
    noted = read_meta(study.folder / "items.jsonl")[BUILT_FROM]
    assert len(noted["sha256"]) == 64 and noted["settings"]["seed"] == study.seed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed: 3", "seed: 4", "seed: 3 → 4"),
        ("{transpose: initial}", "{transpose: final}", 'position.initial.transpose: "initial" → "final"'),
        ("{words: ../norms/words.txt", "{words: ../norms/words.txt, items: 2", "materials.items: 2 is new"),
        ("title: Words", "language: de\ntitle: Words", 'language: "en" → "de"'),
        ("keys: [f, j]", "keys: {garden: f, basket: j}", "procedure.block-1.trial[0].choose.labels"),
    ],
)
def test_what_shapes_items_makes_another_design(outside, old, new, said):
    lines = changed(outside, old, new)
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ask: Which word is it?", "ask: Which word was it?"),
        ("keys: [f, j]", "keys: [d, k], time_limit: 3 s"),
        ("title: Words", "title: Some words"),
        ("shortcut: false", "shortcut: true"),
        ("baseline:random", "baseline:oracle"),
    ],
)
def test_what_items_do_not_hold_asks_for_no_other_build(outside, old, new):
    assert changed(outside, old, new) == []


def test_a_file_outside_is_compared_where_it_is_and_missing_elsewhere(outside):
    words = outside.parent / "norms" / "words.txt"
    words.write_text("garden\nbasket\nplanet\ncastle\n", "utf-8")
    assert changed_since_build(load_study(outside)) == ["../norms/words.txt was edited"]
    words.unlink()
    assert changed_since_build(load_study(outside)) == []


def without_origin(folder: Path) -> Study:
    """Take what the items were built from out of their sidecar, as an earlier wrods wrote none."""
    sidecar = meta_path(folder / "items.jsonl")
    told = json.loads(sidecar.read_text("utf-8"))
    del told[BUILT_FROM]
    sidecar.write_text(json.dumps(told), "utf-8")
    return load_study(folder)


def test_items_of_an_earlier_wrods_are_built_again_unless_sessions_were_held_with_them(outside):
    study = load_study(outside)
    with open_store(outside) as store:
        version = version_of(study, store)
        with pytest.raises(UserError, match="does not say what it was built from") as told:
            version_of(without_origin(outside), store)
        assert "wrods build" in str(told.value)
        CommandRun(study, store, RunOptions(version=version)).run(study.models)
        assert version_of(load_study(outside), store) == 1


def test_items_without_an_origin_are_refused_in_a_served_study_too(make_study):
    from experiment.people.service import service_for

    study = without_origin(make_study().folder)
    with open_store(study.folder) as store, pytest.raises(UserError, match="wrods build"):
        service_for(study, store)
