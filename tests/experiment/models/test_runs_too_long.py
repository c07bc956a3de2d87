"""A prompt or talk that is longer than a model reads is asked once, told by every run and by status, and is no error."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiment.models.engine import Message, Reply, Request
from experiment.models.runs.remaining_work import BEGINS, fault_of, reason_of
from experiment.store import records
from tests.experiment.commands import change
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
    with_models(study, remote("m", server, "price: free, max_tokens: 64"))
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


def reading(folder: Path, tokens: int, chat_model: Path) -> Path:
    """The study with a local model that reads so many tokens."""
    pytest.importorskip("torch")
    model = folder / "short"
    shutil.copytree(chat_model, model)
    change(model / "config.json", ('"max_position_embeddings": 512', f'"max_position_embeddings": {tokens}'))
    study = study_in(folder / "positions")
    with_models(study, f'c: {{use: "hf:{model}"}}')
    return study


def test_prompts_that_a_local_model_does_not_take_are_no_errors(tmp_path, chat_model):
    study = reading(tmp_path, 40, chat_model)
    first = invoke("run", study)
    assert first.exit_code == 0, first.output
    for done in (first, invoke("run", study)):
        assert re.search(rf"\b{TRIALS}\b.*\b40\b", said(done)) and "--ask-again" in said(done)
    assert states(study) == {"ended": 4}
    assert not [one for one in of_store(study, records.all_calls) if one["status"] != "error"]
    assert len(of_store(study, records.all_calls)) == TRIALS


def test_a_conversation_that_grows_too_long_ends_and_is_not_asked_again(tmp_path, chat_model):
    study = reading(tmp_path, 1500, chat_model)
    edit(study, "context: independent", "context: session")
    assert "1500 tokens" in said(invoke("check", study))
    first = invoke("run", study)
    answered = len(stored(study))
    assert answered and first.exit_code == 0
    planned = status_of(study)["runs"][0]["planned"]
    assert planned >= TRIALS
    again = invoke("run", study)
    assert again.exit_code == 0 and len(stored(study)) == answered
    for done in (first, again):
        assert f" {planned - answered} " in done.output and "--ask-again" in done.output, done.output
    reasons = [[line for line in done.output.splitlines() if BEGINS in line] for done in (first, again)]
    assert reasons[0] and sorted(reasons[0]) == sorted(reasons[1])
    status = said(invoke("status", study))
    assert BEGINS in status and f"{answered} of {planned} trials, {planned - answered} " in status


class Talk:
    """As much of a session as is looked at."""

    def __init__(self, context: str, practice: str = "none") -> None:
        self.manner = type("PromptingSettings", (), {"context": context, "practice": practice})()

    def trial_of(self, work_key: str) -> dict[str, object]:
        return {"is_practice": work_key == "practice", "item_id": "s1", "trial_index": 3}


QUESTION = "Is this sentence too long for the maximum context of a model?"
ASKED = Request("key", (Message("user", QUESTION),), None, 8, 0.0, 1)


def failed(error: str, key: str = "key") -> Reply:
    return Reply(key, None, "error", error=error)


@pytest.mark.parametrize(
    "error",
    [
        "prompt and answer take 530 tokens, and the model reads at most 512",
        "HTTP 400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "HTTP 400: the request exceeds the available context size, try increasing it",
        "HTTP 400: Input length 9001 exceeds maximum context length",
        "HTTP 400: prompt is too long: 210000 tokens > 200000 maximum",
        "the answer may take 90 tokens, and the model writes at most 64; a lower max_tokens lets it",
        "HTTP 422: Input validation error: `inputs` must have less than 1024 tokens. Given: 3000",
        "HTTP 422: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens",
        "HTTP 400: The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "HTTP 400: The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        "HTTP 400: Trying to keep the first 5000 tokens when context the overflows.",
    ],
)
def test_what_servers_say_of_a_conversation_that_is_too_long_is_understood(error):
    assert str(reason_of(Talk("session"), ASKED, failed(error))).startswith(BEGINS)  # type: ignore[arg-type]
    assert reason_of(Talk("independent"), ASKED, failed(error)) is None, "the next trial may be shorter"  # type: ignore[arg-type]
    assert fault_of(Talk("session"), ASKED, failed(error)) is None  # type: ignore[arg-type]
    assert fault_of(Talk("independent"), ASKED, failed(error)) == f"item s1 (trial 3): {error}"  # type: ignore[arg-type]


def test_practice_that_the_model_answers_is_a_conversation_with_all_that_is_behind_it():
    error = "prompt and answer take 530 tokens, and the model reads at most 512"
    talk = Talk("independent", "answered")
    assert str(reason_of(talk, ASKED, failed(error, "practice"))).startswith(BEGINS)  # type: ignore[arg-type]
    assert reason_of(talk, ASKED, failed(error)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [
        "HTTP 500: out of memory",
        "no answer within 60 s",
        "HTTP 429: slow down",
        "HTTP 400: flagged: 'too long for the maximum context of a model'",
        f"HTTP 400: flagged: {QUESTION}",
    ],
)
def test_other_faults_end_no_conversation_whatever_they_quote(error):
    assert reason_of(Talk("session"), ASKED, failed(error)) is None  # type: ignore[arg-type]
    assert fault_of(Talk("independent"), ASKED, failed(error)) is None  # type: ignore[arg-type]
