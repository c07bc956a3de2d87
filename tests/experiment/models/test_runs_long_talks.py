"""Conversations that become longer than a model reads end there, once, and everybody is told why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from experiment.models.engine import Reply
from experiment.models.runs.too_long import BEGINS, reason_of
from tests.experiment.models.running import TRIALS, edit, invoke, stored, study_in, with_models

torch = pytest.importorskip("torch")


class Talk:
    """As much of a session as is looked at."""

    def __init__(self, context: str) -> None:
        self.manner = type("Manner", (), {"context": context})()


def failed(error: str) -> Reply:
    return Reply("key", None, "error", error=error)


@pytest.mark.parametrize(
    "error",
    [
        "prompt and answer take 530 tokens, and the model reads at most 512",
        "HTTP 400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "HTTP 400: the request exceeds the available context size, try increasing it",
        "HTTP 400: Input length 9001 exceeds maximum context length",
        "HTTP 400: prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_what_servers_say_of_a_conversation_that_is_too_long_is_understood(error: str) -> None:
    assert str(reason_of(Talk("session"), failed(error))).startswith(BEGINS)  # type: ignore[arg-type]
    assert reason_of(Talk("independent"), failed(error)) is None, "the next trial may be shorter"  # type: ignore[arg-type]


@pytest.mark.parametrize("error", ["HTTP 500: out of memory", "no answer within 60 s", "HTTP 429: slow down"])
def test_other_faults_end_no_conversation(error: str) -> None:
    assert reason_of(Talk("session"), failed(error)) is None  # type: ignore[arg-type]


def test_a_conversation_that_grows_too_long_ends_and_is_not_asked_again(
    tmp_path: Path, chat_model: Path
) -> None:
    model = tmp_path / "short"
    shutil.copytree(chat_model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1500}))
    study = study_in(tmp_path / "positions")
    edit(study, "context: independent", "context: session")
    with_models(study, f'c: {{use: "hf:{model}"}}')
    told = invoke("check", study)
    assert "longer than the 1500 tokens that it reads" in " ".join(told.output.split())
    first = invoke("run", study)
    answered = len(stored(study))
    assert answered and first.exit_code == 0
    never = f"0 of {TRIALS} left, {TRIALS - answered} can never be answered"
    again = invoke("run", study)
    assert again.exit_code == 0 and len(stored(study)) == answered
    for said in (first.output, again.output):
        assert never in said and "not asked again" in said
        assert "asks for these again" not in said
    reasons = [
        [line for line in said.splitlines() if "sessions have ended: the conversation became longer" in line]
        for said in (first.output, again.output)
    ]
    assert reasons[0] and sorted(reasons[0]) == sorted(reasons[1])
    status = " ".join(invoke("status", study).output.split())
    assert "ended: the conversation became longer than the model reads" in status
    assert f"{answered} of {TRIALS} trials, {TRIALS - answered} can never be answered (finished)" in status
