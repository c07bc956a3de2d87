"""Conversations that become longer than a model reads end there, once, and everybody is told why."""

from __future__ import annotations

import json
import shutil

import pytest

from experiment.models.engine import Message, Reply, Request
from experiment.models.runs.remaining_work import BEGINS, fault_of, reason_of
from tests.experiment.models.running import TRIALS, edit, invoke, status_of, stored, study_in, with_models

torch = pytest.importorskip("torch")


class Talk:
    """As much of a session as is looked at."""

    def __init__(self, context: str, practice: str = "none") -> None:
        self.manner = type("PromptingSettings", (), {"context": context, "practice": practice})()

    def trial_of(self, work_key: str) -> dict[str, object]:
        return {"is_practice": work_key == "practice", "item_id": "s1", "trial_index": 3}


ASKED = Request(
    "key",
    (Message("user", "Is this sentence too long for the maximum context of a model?"),),
    None,
    8,
    0.0,
    1,
)


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
        "HTTP 400: flagged: Is this sentence too long for the maximum context of a model?",
    ],
)
def test_other_faults_end_no_conversation_whatever_they_quote(error):
    assert reason_of(Talk("session"), ASKED, failed(error)) is None  # type: ignore[arg-type]
    assert fault_of(Talk("independent"), ASKED, failed(error)) is None  # type: ignore[arg-type]


def test_a_conversation_that_grows_too_long_ends_and_is_not_asked_again(tmp_path, chat_model):
    model = tmp_path / "short"
    shutil.copytree(chat_model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1500}))
    study = study_in(tmp_path / "positions")
    edit(study, "context: independent", "context: session")
    with_models(study, f'c: {{use: "hf:{model}"}}')
    told = invoke("check", study)
    assert "1500 tokens" in " ".join(told.output.split())
    first = invoke("run", study)
    answered = len(stored(study))
    assert answered and first.exit_code == 0
    planned = status_of(study)["runs"][0]["planned"]
    assert planned >= TRIALS
    again = invoke("run", study)
    assert again.exit_code == 0 and len(stored(study)) == answered
    for said in (first.output, again.output):
        assert f" {planned - answered} " in said and "--ask-again" in said, said
    reasons = [
        [line for line in said.splitlines() if BEGINS in line] for said in (first.output, again.output)
    ]
    assert reasons[0] and sorted(reasons[0]) == sorted(reasons[1])
    status = " ".join(invoke("status", study).output.split())
    assert BEGINS in status and f"{answered} of {planned} trials, {planned - answered} " in status
