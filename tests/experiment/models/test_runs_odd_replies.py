"""What a server may send that is no answer, or hardly one, concerns one trial: the run goes on and nothing stays broken."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from sqlalchemy import select

from experiment.store.tables import calls
from tests.experiment.models.api_requests import api_engine, choices
from tests.experiment.models.running import TRIALS, invoke, of_store, remote, stored, with_models
from tests.experiment.models.running import server as server
from tests.experiment.models.running import study as study

MODEL = "scripted-2026-01-01"
CUT_EMOJI = "Yes \ud83d"
ODD = "trial 5 "
FIRST = {"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -0.1}]}


def chat(content: str = "A", *, usage: object = None, first: dict[str, Any] | None = None) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    told = {} if first is None else {"logprobs": {"content": [first]}}
    return {"id": "x", "model": MODEL, "choices": [choice | told], "usage": usage or {}}


def alternatives(logprob: float) -> dict[str, Any]:
    return FIRST | {"top_logprobs": [{"token": "A", "logprob": logprob}, {"token": "B", "logprob": -1.0}]}


HARDLY = {
    "half an emoji": json.dumps(chat(CUT_EMOJI)),
    "a NUL": json.dumps(chat("A\0")),
    "a count beyond all numbers": json.dumps(chat(usage={"prompt_tokens": 10**30, "completion_tokens": 1})),
    "a probability above 1": json.dumps(chat(first=alternatives(1e308))),
    "an integer as no float holds": json.dumps(chat(first=alternatives(-(10**400)))),
    "no number": json.dumps(chat(first=alternatives(math.nan))),
    "a byte-order mark": "\ufeff" + json.dumps(chat()),
}  # fmt: skip


@pytest.mark.parametrize("body", HARDLY.values(), ids=HARDLY)
def test_an_odd_reply_is_read_as_far_as_it_can_be_stored(server, body):
    server.always[ODD] = ("raw", body)
    replies = {reply.work_key: reply for reply in api_engine(server, probe=False).answer(choices(12))}
    assert len(replies) == 12
    odd = replies["k5"]
    assert odd.status == "answered" and odd.attempts == 1
    json.dumps([odd.text, odd.generated, odd.label_logprobs], ensure_ascii=False).encode()
    assert "\0" not in str(odd.text)
    assert odd.prompt_tokens is None
    assert all(value <= 0 and math.isfinite(value) for value in (odd.label_logprobs or {}).values())


@pytest.mark.parametrize("body", ["[" * 200_000, '{"choices": ' * 100_000], ids=["lists", "objects"])
def test_a_reply_nested_without_end_is_that_requests_error(server, body):
    server.always[ODD] = ("raw", body)
    replies = {reply.work_key: reply for reply in api_engine(server, probe=False).answer(choices(12))}
    assert replies.pop("k5").status == "error"
    assert [reply.status for reply in replies.values()] == ["answered"] * 11


def test_a_reply_that_wrods_cannot_take_apart_is_that_requests_error_with_its_name(server, monkeypatch):
    from experiment.models.api import formats

    counted = formats.read_usage

    def fail(payload: Any) -> Any:
        if payload["id"] == "odd":
            raise LookupError("a form never seen")
        return counted(payload)

    monkeypatch.setattr(formats, "read_usage", fail)
    server.always[ODD] = ("raw", json.dumps(chat() | {"id": "odd"}))
    replies = {reply.work_key: reply for reply in api_engine(server, probe=False).answer(choices(12))}
    odd = replies.pop("k5")
    assert odd.status == "error" and "LookupError a form never seen" in str(odd.error)
    assert [reply.status for reply in replies.values()] == ["answered"] * 11


def test_half_an_emoji_ends_no_run(study, server):
    line = remote("m", server).replace("cache: false, ", "")
    with_models(study, line, remote("other", server))
    text = server_text(study)
    server.always[text] = (
        "raw",
        json.dumps(chat(CUT_EMOJI, usage={"prompt_tokens": 1, "completion_tokens": 1})),
    )
    ended = invoke("run", study)
    assert ended.exit_code == 0, ended.output
    assert len(stored(study / "study.db")) == 2 * TRIALS
    told = [
        row["text"] for row in of_store(study / "study.db", select(calls)) if "\ufffd" in str(row["text"])
    ]
    assert told


def server_text(folder: Any) -> str:
    """Return the question of one item, as requests say it."""
    row = (folder / "sentences.csv").read_text("utf-8").splitlines()[3]
    return str(row.split(",")[2])
