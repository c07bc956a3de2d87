"""From a study to the chapter on its trained models: build, tune, run and report, with a tiny model."""

from __future__ import annotations

import csv
import json

import pytest

from tests.experiment.tuning.conftest import tiny_model, wrods

STUDY = """\
wrods: 1
study: trained-rules
title: Which rule sorts these lines?
seed: 5
models:
  context: independent
  who:
    base: {use: "hf:tiny"}
    on-uppercase: {use: "tuned:each-uppercase"}
    on-end: {use: "tuned:each-end_punctuation"}
tuning:
  each: {model: base, on: htest, task: each, method: full, learning_rate: 0.003}
materials:
  htest: {rules: [uppercase, end_punctuation], exemplars: 2, items: 60}
design:
  lists: one
procedure:
  - block:
      order: by_set
      trial:
        - choose: {show: text, ask: Which group?, keys: {A: f, B: j}, labels: fixed}
"""


@pytest.mark.full
def test_a_trained_model_is_reported_beside_its_base(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY, "utf-8")
    tiny_model(folder / "tiny")
    for arguments in (("build",), ("tune",), ("run", "--not-registered"), ("report",)):
        done = wrods(*arguments, folder)
        assert done.exit_code == 0, done.output
    shown = {
        text.casefold()
        for line in (folder / "items.jsonl").read_text("utf-8").splitlines()
        for text in json.loads(line)["shown"].values()
    }
    for task in ("uppercase", "end_punctuation"):
        lines = (folder / "tuning" / f"each-{task}" / "training.jsonl").read_text("utf-8").splitlines()
        assert len(lines) == 1000
        assert not {json.loads(line)["provenance"]["text"].casefold() for line in lines} & shown
    (page,) = folder.glob("reports/*/report.html")
    html = page.read_text("utf-8")
    assert 'id="trained-models"' in html and "each-uppercase" in html
    (laid,) = page.parent.glob("tables/*trained_transfer_full.csv")
    with laid.open(encoding="utf-8-sig", newline="") as stream:
        rows = {row["Task tested"]: row for row in csv.DictReader(stream)}
    # a model of one layer learns which mark ends a line
    own, before = (float(rows["End punctuation"][name]) for name in ("End punctuation", "base, not trained"))
    assert own > before + 15
    (tests,) = page.parent.glob("tables/*trained_transfer_cells_full.csv")
    assert sum(1 for _ in tests.open()) > 6
    assert list(page.parent.glob("figures/*trained_loss.svg"))
    # who has an export alone has the same chapter, losses included
    for arguments in (
        ("export", folder, "--format", "psych-ds", "--out", tmp_path / "export"),
        ("report", tmp_path / "export", "--out", tmp_path / "elsewhere"),
    ):
        done = wrods(*arguments)
        assert done.exit_code == 0, done.output
    (again,) = tmp_path.glob("elsewhere/*/tables/*trained_transfer_full.csv")
    assert again.read_bytes() == laid.read_bytes()
    assert list(tmp_path.glob("elsewhere/*/figures/*trained_loss.svg"))
