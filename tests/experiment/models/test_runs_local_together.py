"""Several models on one machine: their weights stay where they fit, and each run's record says what was computed by."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.models.runs import conducting
from experiment.models.runs.conducting import fit_together, size_of
from experiment.models.settings import ModelSettings
from experiment.store.tables import audit
from tests.experiment.models.running import invoke, of_store, with_models

torch = pytest.importorskip("torch")
BLOCKS = 2
COMPARED = ("parameters", "system_role", "dtype", "revision")


def ended(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the record of each model's run says of its engine."""
    rows = of_store(folder, select(audit.c.detail).where(audit.c.action == "run_ended"))
    return {row["detail"]["reader"]: row["detail"]["engine"] for row in rows}


@pytest.mark.parametrize(
    "stay", [True, pytest.param(False, marks=pytest.mark.full)], ids=["weights stay", "loaded anew each turn"]
)
def test_the_record_of_two_local_models_says_what_that_of_one_says(
    study, plain_model, chat_model, tmp_path, monkeypatch, stay
) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(study, alone)
    with_models(alone, f'chat: {{use: "hf:{chat_model}"}}')
    assert invoke("run", alone).exit_code == 0
    with_models(study, f'base: {{use: "hf:{plain_model}"}}', f'chat: {{use: "hf:{chat_model}"}}')
    opened: list[bool] = []
    made = conducting.Run._make_room
    monkeypatch.setattr(
        conducting.Run, "_make_room", lambda run, part: (opened.append(True), made(run, part))
    )
    if not stay:
        monkeypatch.setattr(conducting, "fit_together", lambda models: False)
    assert invoke("run", study).exit_code == 0
    assert bool(opened) is not stay, "two models of some kilobytes fit"
    (one,), both = ended(alone).values(), ended(study)
    assert {name: both["chat"][name] for name in COMPARED} == {name: one[name] for name in COMPARED}
    for told in both.values():
        assert told["parity"]["path"] == "packed" and told["parity"]["checked"] > 0
        assert told["parameters"] > 0
    assert both["chat"]["tokens_forwarded"] >= one["tokens_forwarded"]
    if stay:
        assert both["chat"]["tokens_forwarded"] == pytest.approx(one["tokens_forwarded"], rel=0.2)


def test_weights_fit_as_long_as_memory_has_room_for_their_files(plain_model, tmp_path, monkeypatch) -> None:
    models = [ModelSettings(f"hf:{plain_model}", {})] * 2
    size = size_of(models[0])
    assert size == (plain_model / "model.safetensors").stat().st_size
    for share, fits in ((2.1, True), (1.9, False)):
        monkeypatch.setattr(conducting, "free_memory", lambda share=share: share * size / conducting.SHARE)
        assert fit_together(models) is fits


def test_weights_stored_in_16_bits_and_computed_in_32_take_twice_their_file(plain_model, tmp_path) -> None:
    folder = tmp_path / "half"
    shutil.copytree(plain_model, folder)
    config = (folder / "config.json").read_text("utf-8")
    (folder / "config.json").write_text(config.replace('"float32"', '"bfloat16"'), "utf-8")
    stored = (folder / "model.safetensors").stat().st_size
    assert size_of(ModelSettings(f"hf:{folder}", {"dtype": "float32", "device": "cpu"})) == 2 * stored
    assert size_of(ModelSettings(f"hf:{folder}", {"dtype": "bfloat16", "device": "cpu"})) == stored


def test_a_model_whose_weights_are_not_here_is_not_taken_to_fit(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert size_of(ModelSettings("hf:nobody/nothing-such", {})) is None
    assert not fit_together([ModelSettings("hf:nobody/nothing-such", {})])


def test_free_memory_counts_what_the_file_cache_would_give_up() -> None:
    told = dict(
        line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines()
    ) if Path("/proc/meminfo").exists() else {}  # fmt: skip
    free = conducting.free_memory()
    assert free > 0
    if told and not torch.cuda.is_available():
        assert free <= 1.2 * 1024 * int(told["MemAvailable"].split()[0])
