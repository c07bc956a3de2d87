"""What may stand under ``use:``, kinds of installed packages included, and what is said before anything is opened."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from tests.experiment.models.running import invoke

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
