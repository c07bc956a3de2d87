"""A prompt that is longer than a model reads is asked once, told by every run and by status, and is no error any more."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiment.store import records
from tests.experiment.models.running import (
    TRIALS,
    edit,
    invoke,
    money,
    of_store,
    remote,
    status_of,
    stored,
    study_in,
    with_models,
)

LONG = (
    "400",
    "This model's maximum context length is 64 tokens. However, your messages resulted in 90 tokens.",
)
PAID = "price: {input: 10, output: 1000}"


def said(done: Any) -> str:
    return " ".join(done.output.split())


def states(folder: Path) -> dict[str, int]:
    told: dict[str, int] = {}
    for row in of_store(folder, records.sessions_overview):
        told[row["state"]] = told.get(row["state"], 0) + 1
    return told


def test_prompts_that_are_too_long_are_asked_once_and_named_by_run_and_status(study, server):
    with_models(study, remote("m", server, PAID), budget="5 USD")
    server.always["Sunday"] = LONG
    first = invoke("run", study)
    assert first.exit_code == 0, first.output
    never = sum("Sunday" in text for text in server.texts)
    assert 0 < never < TRIALS and len(stored(study)) == TRIALS - never
    assert len(server.requests) == TRIALS
    again = invoke("run", study)
    assert again.exit_code == 0 and len(server.requests) == TRIALS, "asked again"
    for done in (first, again):
        assert f" {never} trials" in said(done)
        assert said(done).count("maximum context length is 64 tokens") == never
        assert "--ask-again" in said(done)
    status = said(invoke("status", study))
    assert f" {never} trials" in status and "maximum context length is 64 tokens" in status
    told = status_of(study)
    assert told["ended"]["m"]["trials"] == len(told["ended"]["m"]["faults"]) == never
    assert not told["readers"][0]["unanswered"]
    assert set(states(study)) == {"ended", "finished"} or set(states(study)) == {"ended"}
    assert money(study).set_aside == 0


@pytest.mark.full
def test_other_errors_beside_them_are_asked_again_and_keep_the_exit_code(study, server):
    with_models(study, remote("m", server))
    server.always["Sunday"] = LONG
    server.always["captain"] = ("400", "flagged")
    assert invoke("run", study).exit_code == 1
    never = sum("Sunday" in text for text in server.texts)
    flagged = sum("captain" in text and "Sunday" not in text for text in server.texts)
    assert never and flagged
    status = said(invoke("status", study))
    assert f": {flagged} error" in status and f": {never} trials" in status
    del server.always["captain"]
    server.requests.clear()
    assert invoke("run", study).exit_code == 0
    assert len(server.requests) == flagged
    assert "started" not in states(study)


@pytest.mark.full
def test_what_was_too_long_is_asked_again_where_the_server_reads_more_or_settings_change(study, server):
    with_models(study, remote("m", server))
    server.always["Sunday"] = LONG
    invoke("run", study)
    never = sum("Sunday" in text for text in server.texts)
    server.requests.clear()
    assert invoke("run", study, "--ask-again").exit_code == 0
    assert len(server.requests) == never and len(stored(study)) == TRIALS - never
    status = said(invoke("status", study))
    assert f": {never} trials" in status, "each is told once, however often it was asked"
    server.always.clear()
    server.requests.clear()
    done = invoke("run", study, "--ask-again")
    assert done.exit_code == 0 and "never" not in done.output
    assert len(server.requests) == never and len(stored(study)) == TRIALS
    assert states(study) == {"finished": 4}
    assert "never" not in invoke("status", study).output


@pytest.mark.full
def test_other_settings_ask_for_all(study, server):
    with_models(study, remote("m", server, "price: free, max_tokens: 64"))
    server.always["Sunday"] = LONG
    invoke("run", study)
    server.always.clear()
    edit(study, "max_tokens: 64", "max_tokens: 32")
    server.requests.clear()
    assert invoke("run", study, "--if-changed", "set_aside").exit_code == 0
    assert len(server.requests) == TRIALS
    assert "never" not in invoke("status", study).output


@pytest.mark.full
def test_a_run_that_is_killed_between_leaves_what_was_found_too_long(study, server):
    with_models(study, remote("m", server).replace("concurrency: 4", "concurrency: 1"))
    server.always["Sunday"] = LONG
    while invoke("run", study, "--max-trials", "17").exit_code == 0 and len(server.requests) < TRIALS:
        pass
    invoke("run", study)
    assert len(server.requests) == TRIALS == len({json.dumps(one) for one in server.requests})


def test_prompts_that_a_local_model_does_not_take_are_no_errors(tmp_path, chat_model):
    pytest.importorskip("torch")
    model = tmp_path / "short"
    shutil.copytree(chat_model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 40}))
    study = study_in(tmp_path / "positions")
    with_models(study, f'c: {{use: "hf:{model}"}}')
    first = invoke("run", study)
    assert first.exit_code == 0, first.output
    for done in (first, invoke("run", study)):
        assert re.search(rf"\b{TRIALS}\b.*\b40\b", said(done)) and "--ask-again" in said(done)
    assert states(study) == {"ended": 4}
    assert not [one for one in of_store(study, records.all_calls) if one["status"] != "error"]
    assert len(of_store(study, records.all_calls)) == TRIALS
