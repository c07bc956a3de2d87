"""Several models on one machine: their weights stay where they fit, and each run's record says what was computed by."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.models.runs import environment, orchestrator
from experiment.store.tables import audit
from tests.experiment.models.running import invoke, of_store, with_models

torch = pytest.importorskip("torch")
BLOCKS = 2
COMPARED = ("parameters", "system_role", "dtype", "revision")


def ended(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the record of each model's run says of its engine."""
    rows = of_store(folder, select(audit.c.detail).where(audit.c.action == "run_ended"))
    return {row["detail"]["reader"]: row["detail"]["engine"] for row in rows}


@pytest.mark.parametrize("stay", [True, False], ids=["weights stay", "loaded anew each turn"])
def test_the_record_of_two_local_models_says_what_that_of_one_says(
    study, plain_model, chat_model, tmp_path, monkeypatch, stay
):
    alone = tmp_path / "alone"
    shutil.copytree(study, alone)
    with_models(alone, f'chat: {{use: "hf:{chat_model}"}}')
    assert invoke("run", alone).exit_code == 0
    with_models(study, f'base: {{use: "hf:{plain_model}"}}', f'chat: {{use: "hf:{chat_model}"}}')
    opened: list[bool] = []
    made = orchestrator.CommandRun._make_room
    monkeypatch.setattr(
        orchestrator.CommandRun, "_make_room", lambda run, part: (opened.append(True), made(run, part))
    )
    if not stay:
        monkeypatch.setattr(environment, "fit_together", lambda models: False)
    assert invoke("run", study).exit_code == 0
    # with two rounds there are three turns: who is last in the first is first in the second
    assert len(opened) == (0 if stay else 3), "two models of some kilobytes fit"
    (one,), both = ended(alone).values(), ended(study)
    assert {name: both["chat"][name] for name in COMPARED} == {name: one[name] for name in COMPARED}
    for told in both.values():
        assert told["parity"]["path"] == "packed" and told["parity"]["checked"] > 0
        assert told["parameters"] > 0
    assert both["chat"]["tokens_forwarded"] >= one["tokens_forwarded"]
    if stay:
        assert both["chat"]["tokens_forwarded"] == pytest.approx(one["tokens_forwarded"], rel=0.2)
