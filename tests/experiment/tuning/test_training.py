"""Training on this machine: it helps, resumes after any interruption, refuses what it cannot do, and is reported."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.exporting.tables import trial_rows
from experiment.models.runs.limits import Deadline, Stop
from experiment.papers.inside.tuning import trainings
from experiment.papers.inside.tuning.records import held, read_curve
from experiment.papers.inside.tuning.training import Progress, Trainer, last_checkpoint, train_here
from experiment.store import open_store
from stimuli.errors import UserError
from tests.experiment.commands import change
from tests.experiment.tuning.conftest import tiny_model, write_study, wrods


def train(folder: Path, name: str, *, after: int | None = None):
    """Train; with ``after`` the end is asked for behind so many steps."""
    stop = Stop()

    def tell(progress: Progress) -> None:
        if after is not None and progress.step >= after:
            stop.ask("enough")

    study = load_study(folder)
    return train_here(study, trainings(study)[name], stop=stop, clock=Deadline(None), tell=tell)


def weights(folder: Path, name: str) -> bytes:
    return (folder / "tuning" / name / "model" / "model.safetensors").read_bytes()


def shares_right(folder: Path) -> dict[str, float]:
    with open_store(folder) as store, store.read() as connection:
        rows = list(trial_rows(connection, load_study(folder).id))
    found: dict[str, list[bool]] = {}
    for row in rows:
        found.setdefault(str(row["reader"]), []).append(bool(row["correct"]))
    return {reader: sum(right) / len(right) for reader, right in found.items()}


def test_training_helps_on_items_that_were_not_trained_whole_and_beside_the_weights(study):
    done = wrods("tune", study, "--training", "whole", "--training", "beside")
    assert done.exit_code == 0, done.output
    assert done.output.endswith(f"Next: wrods run {study}\n"), "the study names both"
    done = wrods("run", study, "--not-registered")
    assert done.exit_code == 0, done.output
    right = shares_right(study)
    assert right["base"] <= 0.7
    assert right["whole"] >= 0.95 and right["beside"] >= 0.9, right
    for name in ("whole", "beside"):
        record = json.loads((study / "tuning" / name / "tuning.json").read_text("utf-8"))
        assert record["state"] == "finished" and record["base"] == "base" and record["base_revision"]
        assert record["validation_loss"] < record["first_validation_loss"] / 2
        assert record["records"]["sha256"] and record["versions"]["torch"]
        curve = read_curve(study / "tuning" / name / "loss.csv")
        assert [one.step for one in curve] == list(range(record["steps"] + 1))
        assert (study / "tuning" / name / "loss.png").stat().st_size > 1000
    assert (study / "tuning" / "beside" / "adapter" / "adapter_model.safetensors").is_file()
    with open_store(study) as store:
        files = hand_over(load_study(study), store, study / "handed-over")
    told = json.loads((files / "dictionary.json").read_text("utf-8"))
    assert told["readers"]["whole"]["settings"]["trained"] == "whole"
    assert told["readers"]["whole"]["settings"]["base"] == "base"
    assert told["tuning"]["beside"]["settings"]["method"] == "lora"
    assert "trained" not in told["readers"]["base"]["settings"]
    again = wrods("tune", study, "--training", "whole", "--json")
    assert json.loads(again.stdout)["trainings"][0]["was_finished"] is True
    change(study / "study.yaml", ('    whole: {use: "tuned:whole"}\n', ""))
    again = wrods("tune", study, "--training", "whole")
    assert again.output.endswith(f"Next: wrods run {study} --model tuned:whole\n"), "the study names it not"


def test_a_training_that_was_stopped_ends_with_the_same_weights_bit_for_bit(tmp_path):
    name, short = "beside", {"beside": ", texts: 60"}
    whole, parted = write_study(tmp_path / "whole", **short), write_study(tmp_path / "parted", **short)
    assert train(whole, name).state == "finished"
    for after in (2, 5):
        outcome = train(parted, name, after=after)
        assert (outcome.state, outcome.steps) == ("stopped", after)
    assert train(parted, name).state == "finished"
    assert weights(whole, name) == weights(parted, name)
    curves = [read_curve(folder / "tuning" / name / "loss.csv") for folder in (whole, parted)]
    one, other = ([(at.step, at.training_loss, at.validation_loss) for at in curve] for curve in curves)
    assert one == other and len(one) > 6


@pytest.mark.full
def test_a_training_that_was_killed_at_any_moment_ends_with_the_same_weights(tmp_path):
    every = ", checkpoint_every: 0.001 min"
    whole, killed = (write_study(tmp_path / name, texts=every) for name in ("whole", "killed"))
    assert train(whole, "texts").state == "finished"
    command = [sys.executable, "-m", "experiment.cli", "tune", str(killed), "--training", "texts", "--json"]
    kills = 0
    for delay in (0.0, 0.2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = killed / "tuning" / "texts"
        while process.poll() is None and not (folder / "checkpoints").exists():
            time.sleep(0.005)
        time.sleep(delay)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        if (folder / "model").exists():
            break
    assert train(killed, "texts").state == "finished"
    assert kills
    assert weights(whole, "texts") == weights(killed, "texts")


@pytest.mark.full
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(study, monkeypatch):
    train(study, "texts", after=2)
    folder = study / "tuning" / "texts"
    before = last_checkpoint(folder)
    assert before is not None and before[1].step == 2

    def full(file: Path, tensors: object) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(file))

    with monkeypatch.context() as patched:
        patched.setattr("experiment.papers.inside.tuning.training.write_tensors", full)
        done = wrods("tune", study, "--training", "texts")
    assert done.exit_code == 1 and "space" in done.output.lower(), done.output
    assert last_checkpoint(folder) == before
    assert not list((folder / "checkpoints").glob(".partial*"))
    assert train(study, "texts").state == "finished"


def test_other_settings_another_base_and_a_second_command_do_not_go_on_with_a_training(study):
    train(study, "texts", after=2)
    with held(trainings(load_study(study))["texts"]):
        done = wrods("tune", study, "--training", "texts")
    assert done.exit_code == 1 and " texts " in done.output
    change(study / "study.yaml", ("rule: FT-RS,", "rule: FT-RS, learning_rate: 0.5,"))
    with pytest.raises(UserError, match=r"learning_rate .*2e-05 .*0\.5"):
        train(study, "texts")
    change(study / "study.yaml", ("rule: FT-RS, learning_rate: 0.5,", "rule: FT-RS,"))
    change(study / "tiny" / "config.json", ('"attention_dropout": 0.1', '"attention_dropout": 0.2'))
    with pytest.raises(UserError, match="revision"):
        train(study, "texts")


@pytest.mark.full
def test_memory_that_runs_out_halves_what_is_computed_at_once(study, monkeypatch):
    plain = Trainer._loss
    seen: list[int] = []

    def tight(self: Trainer, part):
        seen.append(part.ids.size)
        if part.ids.size > 64:
            raise RuntimeError("CUDA out of memory")
        return plain(self, part)

    monkeypatch.setattr(Trainer, "_loss", tight)
    assert train(study, "texts").state == "finished"
    assert max(seen) > 64 >= seen[-1]
    record = json.loads((study / "tuning" / "texts" / "tuning.json").read_text("utf-8"))
    assert record["tokens_at_once"] <= 96


@pytest.mark.full
def test_a_trained_model_can_be_trained_further(study):
    train(study, "texts")
    change(
        study / "study.yaml",
        ("tuning:\n", "tuning:\n  further: {model: read, on: texts.txt, epochs: 1}\n"),
        ("    base: {", '    read: {use: "tuned:texts"}\n    base: {'),
    )
    assert train(study, "further").state == "finished"
    assert weights(study, "further") != weights(study, "texts")


@pytest.mark.full
def test_gradient_checkpointing_changes_memory_and_not_the_weights(tmp_path):
    plain = write_study(tmp_path / "plain")
    thrifty = write_study(tmp_path / "thrifty", texts=", gradient_checkpointing: true")
    for folder in (plain, thrifty):
        train(folder, "texts")
    from safetensors.torch import load_file

    one, other = (
        load_file(folder / "tuning" / "texts" / "model" / "model.safetensors") for folder in (plain, thrifty)
    )
    assert one.keys() == other.keys()
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-5


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
