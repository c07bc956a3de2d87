"""Values of ``use:``, the errors for models that cannot be loaded, and what pins a checkpoint."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.models import ModelSettings
from experiment.models.engines import open_engine
from stimuli.errors import UserError
from tests.experiment.models.running import invoke

torch = pytest.importorskip("torch")
httpx2 = pytest.importorskip("httpx2")
RepositoryNotFoundError = pytest.importorskip("huggingface_hub.errors").RepositoryNotFoundError


def mend_of(use: str, **options: object) -> str:
    with pytest.raises(UserError) as told:
        engine = open_engine(ModelSettings(use, options))
        engine._load()
    assert told.value.mend
    return str(told.value)


def test_without_pytorch_the_extra_is_named(plain_model, monkeypatch):
    original = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else original(name))
    assert 'pip install "wrods[local]"' in mend_of(f"hf:{plain_model}")


def test_a_folder_without_weights_says_what_is_missing(plain_model, tmp_path):
    folder = shutil.copytree(plain_model, tmp_path / "copy")
    (folder / "model.safetensors").unlink()
    assert "safetensors" in mend_of(f"hf:{folder}")


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [
        ("owner/mistyped", RepositoryNotFoundError, "hf auth login"),
        ("owner/mistyped", httpx2.ConnectTimeout, "connection"),
        ("no name of a model", None, "'no name of a model'"),
    ],
)
def test_the_hub_is_asked_once_whether_it_has_a_model_before_anything_is_loaded(
    name, fault, words, monkeypatch, capfd
):
    """Loading itself tries again for half a minute, and prints each try."""
    asked: list[str] = []

    def answer(url, **given):
        asked.append(str(url))
        assert given["timeout"] <= 5
        response = httpx2.Response(404, request=httpx2.Request("GET", url))
        raise fault("no", response=response) if fault is RepositoryNotFoundError else fault("no")

    def never(*_, **__):
        raise AssertionError("the model is loaded")

    monkeypatch.setattr("huggingface_hub.hf_api.get_session", lambda: SimpleNamespace(get=answer))
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", never)
    assert words in mend_of(f"hf:{name}")
    assert [one.partition("/api/")[2] for one in asked] == ([f"models/{name}"] if fault else [])
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"template": "chat"}, "template: plain"),
        ({"dtype": "float8"}, "bfloat16, float16, float32"),
        ({"device": "tpu"}, "cpu, cuda, mps"),
    ],
)
def test_options_that_a_model_cannot_follow_are_refused(plain_model, options, words):
    assert words in mend_of(f"hf:{plain_model}", **options)


def test_a_revision_changes_with_any_weight_and_not_with_the_place(plain_model, tmp_path, local):
    same = shutil.copytree(plain_model, tmp_path / "same")
    assert local(same).revision == local(plain_model).revision
    (same / "measurements.json").write_text("{}", encoding="utf-8")
    (same / "README.md").write_text("A card", encoding="utf-8")
    assert local(same).revision == local(plain_model).revision, "notes beside a model make it no other one"
    weights = bytearray((same / "model.safetensors").read_bytes())
    weights[-3] ^= 1
    (same / "model.safetensors").write_bytes(weights)
    assert local(same).revision != local(plain_model).revision


ECHO = """
from experiment.models import Reply


class Echo:
    def __init__(self, settings):
        self.settings = settings

    def describe(self):
        return {"identity": {"kind": "echo", "model": self.settings.name}}

    def answer(self, requests, follow=None):
        for request in requests:
            yield Reply(request.work_key, request.labels[-1], "answered")

    def close(self):
        pass
"""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that adds the kind ``echo``, on the path as pip would put it there."""
    site = tmp_path / "site"
    info = site / "echo_engine-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "echo_engine.py").write_text(ECHO, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-engine\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[wrods.engines]\necho = echo_engine:Echo\n", "utf-8")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "echo_engine", raising=False)


def ran(folder: Path, *words: str) -> tuple[int, list[dict[str, object]]]:
    done = invoke("run", folder, "--json", "--not-registered", *words)
    return done.exit_code, json.loads(done.stdout)["models"]


def test_an_engine_of_an_installed_package_runs_from_the_study_and_from_the_command(echo, tmp_path):
    folder = tmp_path / "s"
    copy_template("letter-position", folder)
    file = folder / "study.yaml"
    text = file.read_text("utf-8")
    assert '"baseline:random"' in text
    file.write_text(text.replace('"baseline:random"', '"echo:last"'), "utf-8")
    build_study(load_study(folder))
    code, (model,) = ran(folder, "--max-trials", "3")
    assert (code, model["use"], model["answered"]) == (0, "echo:last", 3)
    code, (model,) = ran(folder, "--max-trials", "2", "--model", "echo:other")
    assert (code, model["answered"]) == (0, 2)
