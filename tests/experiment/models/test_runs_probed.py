"""From a study file to the chapter on probing: a local model answers with its hidden states kept, and the report reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiment.models.states import read_index
from tests.experiment.models.running import edit, invoke, with_models

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
PROBING = "  probing:\n    predict: [answer, condition]\n    controls: 2\n    penalties: [0.001, 0.1]\n"


def report(study: Path) -> tuple[Path, str]:
    """Write a report; return its folder and what was told meanwhile."""
    done = invoke("report", study)
    assert done.exit_code == 0, done.output
    return Path(done.stdout.strip().splitlines()[-1]).parent, done.stderr


@pytest.mark.full
def test_a_study_whose_model_keeps_states_is_probed_by_its_report(study, plain_model):
    with_models(study, f'tiny: {{use: "hf:{plain_model}"}}', more="states: last")
    text = (study / "study.yaml").read_text("utf-8")
    edit(study, text, text.rstrip() + "\n" + PROBING)
    assert invoke("run", study).exit_code == 0
    states = next((study / "states").iterdir())
    assert len(read_index(states)) == 96
    folder, _ = report(study)
    page = (folder / "report.html").read_text("utf-8")
    assert (
        "Probing of hidden layers" in page
        and "Accuracy of probes by layer and condition: the condition" in page
    )
    tables = json.loads((folder / "numbers.json").read_text("utf-8"))["tables"]
    own = {one["title"]: one for one in tables if "probing" in one["shown"]}
    overview = own["Probes of the last token's states: the right answer"]
    assert overview["rows"] == overview["of_rows"] == 96
    shown = (folder / overview["shown"]).read_text("utf-8-sig")
    assert all(level in shown for level in ("intact", "initial", "internal", "final"))
    kept = {path: path.stat().st_mtime_ns for path in (states / "results").glob("probing_*/layer_*.npz")}
    assert len(kept) == 2 * 3
    report(study)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, (
        "what is kept is not computed a second time"
    )
