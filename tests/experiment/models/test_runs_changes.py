"""A model or a design that changed between two runs: which sessions count, and what is never stored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiment.exporting.tables import trial_rows
from tests.experiment.models.running import (
    TRIALS,
    edit,
    invoke,
    of_store,
    remote,
    server,
    stored,
    study,
    with_models,
)

__all__ = ["server", "study"]


def counted(folder: Path) -> Counter[tuple[Any, Any]]:
    """Count the trials of the trials table by temperature and reason of exclusion."""
    rows = of_store(folder, trial_rows, "positions")
    return Counter((row["temperature"], row["excluded_reason"]) for row in rows)


def run_ok(folder: Path, *more: str) -> str:
    done = invoke("run", folder, *more)
    assert done.exit_code == 0, done.output
    return str(done.output)


@pytest.fixture
def named(study: Path, server: Any) -> Path:
    with_models(study, remote("m", server, "temperature: 0, price: free"))
    return study


@pytest.mark.full
def test_a_change_that_is_taken_back_changes_the_sessions_places_in_one_step(named):
    run_ok(named)
    edit(named, "temperature: 0,", "temperature: 0.7,")
    run_ok(named, "--if-changed", "set_aside")
    (aside,) = {reason for _, reason in counted(named) if reason}
    assert counted(named) == {(0.0, aside): TRIALS, (0.7, None): TRIALS}
    edit(named, "temperature: 0.7,", "temperature: 0,")
    told = run_ok(named)
    assert counted(named) == {(0.0, None): TRIALS, (0.7, aside): TRIALS}
    assert "4 sessions made before the change that was taken back count again" in told
    assert len(stored(named)) == 2 * TRIALS
    run_ok(named)
    assert counted(named) == {(0.0, None): TRIALS, (0.7, aside): TRIALS}


def test_a_run_that_is_refused_changes_no_session(named):
    run_ok(named, "--max-trials", "2")
    edit(named, "temperature: 0,", "temperature: 0.7,")
    run_ok(named, "--if-changed", "set_aside")
    before = counted(named)
    edit(named, "temperature: 0.7,", "temperature: 0.5,")
    refused = invoke("run", named)
    assert refused.exit_code == 1 and "has changed" in refused.output
    assert counted(named) == before


@pytest.mark.parametrize(
    ("command", "file", "old", "new", "said"),
    [
        ("simulate", "sentences.csv", "Sunday", "Monday", "sentences.csv was edited"),
        ("run", "study.yaml", "min_letters: 5", "min_letters: 6", "materials.scramble.min_letters: 5 → 6"),
    ],
)
def test_items_of_another_design_are_refused_before_anything_is_stored(
    named, server, command, file, old, new, said
):
    text = (named / file).read_text("utf-8")
    assert old in text
    (named / file).write_text(text.replace(old, new, 1), "utf-8")
    refused = invoke(command, named)
    assert refused.exit_code == 1, refused.output
    assert "the items were built from another design" in refused.output and "wrods build" in refused.output
    assert said in refused.output
    assert server.requests == []
    assert not (named / "study.db").exists() or stored(named) == []
    checked = invoke("check", named)
    assert checked.exit_code == 0 and said in checked.output
    assert invoke("build", named).exit_code == 0
    assert "another design" not in invoke("check", named).output


def test_items_built_anew_after_a_session_show_what_became_of_one(named):
    run_ok(named)
    file = named / "sentences.csv"
    text = file.read_text("utf-8")
    word = text.splitlines()[1].split(",")[1].split()[1].strip("*")
    file.write_text(text.replace(word, word + "ers", 1), "utf-8")
    assert invoke("build", named).exit_code == 0
    refused = invoke("run", named)
    assert refused.exit_code == 2 and "the items were rebuilt: " in refused.output
    assert f"{word}ers" in refused.output and "sentence of " in refused.output
    (named / "items.jsonl").unlink()
    missing = invoke("run", named, "--new-version")
    assert missing.exit_code == 2 and "has no built items" in missing.output
    assert "wrods build" in missing.output and len(stored(named)) == TRIALS
