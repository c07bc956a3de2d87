"""A model or a design that changed between two runs: which sessions count, and what is never stored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiment.exporting.tables import trial_rows
from experiment.models import ModelSettings
from experiment.models.api.engine import ApiEngine
from tests.experiment.models.running import TRIALS, edit, invoke, of_store, remote, stored, with_models
from tests.scripted_openai import ScriptedOpenAI


def counted(folder: Path) -> Counter[tuple[Any, Any]]:
    """Count the trials of the trials table by temperature and reason of exclusion."""
    rows = of_store(folder, trial_rows, "positions")
    return Counter((row["temperature"], row["excluded_reason"]) for row in rows)


def run_ok(folder: Path, *more: str) -> str:
    done = invoke("run", folder, *more)
    assert done.exit_code == 0, done.output
    return str(done.output)


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
    assert "4 sessions" in told
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
    assert refused.exit_code == 1 and "→ 0.5" in refused.output
    assert counted(named) == before


@pytest.mark.parametrize(
    ("command", "file", "old", "new", "said"),
    [
        ("simulate", "sentences.csv", "Sunday", "Monday", "sentences.csv"),
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
    assert said in refused.output and "wrods build" in refused.output
    assert server.requests == []
    assert not (named / "study.db").exists() or stored(named) == []
    checked = invoke("check", named)
    assert checked.exit_code == 0 and said in checked.output
    assert invoke("build", named).exit_code == 0
    assert invoke("check", named).output.count(said) < checked.output.count(said)


def test_items_built_anew_after_a_session_show_what_became_of_one(named):
    run_ok(named)
    file = named / "sentences.csv"
    text = file.read_text("utf-8")
    word = text.splitlines()[1].split(",")[1].split()[1].strip("*")
    file.write_text(text.replace(word, word + "ers", 1), "utf-8")
    assert invoke("build", named).exit_code == 0
    refused = invoke("run", named)
    assert refused.exit_code == 2 and f"{word}ers" in refused.output
    (named / "items.jsonl").unlink()
    missing = invoke("run", named, "--new-version")
    assert missing.exit_code == 2 and "wrods build" in missing.output and len(stored(named)) == TRIALS


@pytest.fixture
def begun(study, server):
    """A study of which some is answered, by a model that is probed."""
    with_models(study, remote("m", server, "price: free").replace("probe: false, ", ""))
    assert invoke("run", study, "--max-trials", "10").exit_code == 0
    return study


def test_another_port_and_host_name_go_on_in_the_same_sessions(begun, server):
    with ScriptedOpenAI(answer=lambda body: "Yes") as other:
        edit(begun, server.url, other.url.replace("127.0.0.1", "localhost"))
        done = invoke("run", begun)
        assert done.exit_code == 0, done.output
        assert len(other.requests) == TRIALS - 10
    assert len(stored(begun)) == TRIALS
    assert len({one["session_id"] for one in stored(begun)}) == 4


def test_another_model_behind_an_address_of_ones_own_stops_the_run_with_both_names(begun, server):
    server.model = "other-model"
    server.requests.clear()
    done = invoke("run", begun)
    told = " ".join(done.output.split())
    assert done.exit_code == 1 and not server.requests
    assert "other-model" in told and "scripted-2026-01-01" in told
    assert invoke("run", begun, "--if-changed", "keep_both").exit_code == 0
    assert len(stored(begun)) == TRIALS


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("http://localhost:8000/v1", "http://127.0.0.1:8001/v1", True),
        ("http://gpu3:8000/v1", "http://192.168.1.7:8000/v1/", True),
        ("https://a.example.org/v1", "https://b.example.org/v1", False),
        ("https://a.example.org/v1", "http://localhost:8000/v1", False),
    ],
)
def test_addresses_name_models_of_public_hosts_alone(first, second, are_one):
    named = [
        ApiEngine(ModelSettings("openai:m", {"base_url": url})).describe()["identity"]
        for url in (first, second)
    ]
    assert (named[0] == named[1]) is are_one
