"""What ``wrods status`` counts: what stands in the tables, what does not and why, and what killed runs stored."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.store import open_store, records
from experiment.store.queries import EXCLUDED
from experiment.store.tables import audit
from tests.experiment.models.running import (
    HELD_S,
    TRIALS,
    begin,
    edit,
    invoke,
    of_store,
    remote,
    server,
    stored,
    study,
    wait_until,
    with_models,
)

__all__ = ["server", "study"]


def told(folder: Path) -> dict[str, Any]:
    return dict(json.loads(invoke("status", folder, "--json").stdout))


@pytest.fixture
def named(study: Path, server: Any) -> Path:
    with_models(study, remote("m", server, "temperature: 0, price: free"))
    return study


def test_sessions_that_were_set_aside_are_named_and_not_counted(named):
    assert invoke("run", named, "--max-trials", "20").exit_code == 0
    edit(named, "temperature: 0,", "temperature: 0.7,")
    assert invoke("run", named, "--if-changed", "set_aside").exit_code == 0
    (one,) = told(named)["readers"]
    assert (one["sessions"], one["trials"], one["states"]) == (4, TRIALS, {"finished": 4})
    assert one["excluded"] == {"superseded by sessions under other settings": {"sessions": 4, "trials": 20}}
    said = " ".join(invoke("status", named).output.split())
    assert f"m (model): 4 sessions (4 finished), {TRIALS} trials" in said
    assert "excluded, not counted above: 4 sessions with 20 trials (superseded by" in said


def test_planned_models_without_a_run_are_listed(study, server):
    with_models(study, remote("m", server, "price: free"), remote("later", server, "price: free"))
    assert invoke("run", study, "--model", "m", "--max-trials", "5").exit_code in (0, 1)
    assert told(study)["not_run"] == ["later"]
    assert "later: planned, not run yet" in invoke("status", study).output


def test_an_excluded_trial_is_taken_from_what_counts(named):
    assert invoke("run", named).exit_code == 0
    first = stored(named)[0]
    with open_store(named) as store:
        store.write(
            lambda connection: records.add_flag(
                connection,
                first["session_id"],
                EXCLUDED,
                "a power cut",
                "tests",
                trial_index=first["trial_index"],
            )
        ).result()
    (one,) = told(named)["readers"]
    assert (one["sessions"], one["trials"]) == (4, TRIALS - 1)
    assert one["excluded"] == {"a power cut": {"sessions": 0, "trials": 1}}


def test_trials_that_brought_no_answer_are_counted_until_they_have_one(named, server):
    server.always["Sunday"] = "400"
    assert invoke("run", named).exit_code == 1
    failed = TRIALS - len(stored(named))
    assert failed > 0
    (one,) = told(named)["readers"]
    assert one["unanswered"] == {"error": failed}
    assert f"without an answer: {failed} error" in invoke("status", named).output
    server.always.clear()
    assert invoke("run", named).exit_code == 0
    assert told(named)["readers"][0]["unanswered"] == {}


def test_a_killed_run_is_told_with_all_that_it_stored(named, server):
    server.delay = 0.05
    process = begin("run", named)
    wait_until(lambda: len(server.requests) >= 40)
    server.delay = HELD_S  # the run is under way until it is killed, however slow this machine is
    wait_until(lambda: len(stored(named)) >= 20)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    count = len(stored(named))
    found = told(named)
    assert found["readers"][0]["trials"] == count
    (run,) = found["runs"]
    assert run["state"] == "killed" and run["stored_before"] + run["answered"] == count
    assert sum(run["response_statuses"].values()) == count
    said = invoke("status", named).output
    assert "was killed" in said and f": {count} of {TRIALS} trials" in said


def test_what_a_killed_run_held_is_told_with_the_way_to_have_it_back(study, server):
    with_models(study, remote("one", server), budget="5 USD")
    server.delay = HELD_S
    process = begin("run", study)
    wait_until(lambda: bool(server.requests))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    held = told(study)["money"]
    assert held["may_have_been_spent_usd"] > 0 and held["set_aside_usd"] == 0
    assert "release the amount with: wrods run STUDY --not-billed" in invoke("status", study).output
    assert "count as not billed now" in invoke("run", study, "--not-billed").output
    assert told(study)["money"]["left_usd"] == 5.0
    assert "Nothing is set aside" in invoke("run", study, "--not-billed").output
    actions = [row["action"] for row in of_store(study, select(audit.c.action))]
    assert actions.count("counted as not billed") == 1


def probed(server: Any) -> str:
    """Return a line that names a model which is asked first what it can give."""
    return remote("one", server).replace("probe: false", "probe: true")
