"""Timed runs: one request at a time, the first token's time beside the whole, and no time that is not a measure."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from experiment.models.api.retrying import NoAnswer, put_together
from tests.experiment.models.api_requests import api_engine, choice, choices
from tests.scripted_openai import ScriptedOpenAI


@pytest.fixture
def server() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI(answer=lambda body: "A long answer") as running:
        running.logprobs = lambda body: {"A": math.log(0.6), "B": math.log(0.3)}
        yield running


@pytest.mark.parametrize("surface", ["chat", "completions", "responses"])
def test_a_timed_answer_has_the_time_of_its_first_token_and_says_all_else_as_ever(server, surface):
    (timed,) = api_engine(server, timing=True, api=surface).answer([choice(1, labels=None)])
    (plain,) = api_engine(server, api=surface).answer([choice(1, labels=None)])
    assert 0 < timed.ttft_ms < timed.latency_ms
    assert (plain.ttft_ms, plain.latency_ms) == (None, None)
    for name in ("text", "status", "prompt_tokens", "completion_tokens", "finish_reason", "resolved_model"):
        assert getattr(timed, name) == getattr(plain, name), name
    assert [body.get("stream") for body in server.requests] == [True, None]


@pytest.mark.parametrize("refused", ["stream", "stream_options"])
def test_a_server_that_does_not_stream_is_timed_as_a_whole(server, refused):
    server.refuses.add(refused)
    replies = list(api_engine(server, timing=True).answer(choices(3)))
    assert {reply.status for reply in replies} == {"answered"}
    assert [reply.latency_ms is None for reply in replies] == [True, False, False], (
        "the first was asked again"
    )
    assert (replies[2].ttft_ms is None) == (refused == "stream")


def put(*lines: str) -> object:
    async def stream() -> AsyncIterator[bytes]:
        for line in lines:
            yield line.encode()

    with ThreadPoolExecutor(1) as thread:  # a browser test before may have left a loop in this one
        return thread.submit(asyncio.run, put_together(stream())).result()


def test_a_stream_that_breaks_off_is_no_answer():
    chunk = json.dumps({"choices": [{"delta": {"content": "The ans"}, "finish_reason": None}]})
    with pytest.raises(NoAnswer, match="broke"):
        put(f"data: {chunk}", "")
    with pytest.raises(NoAnswer, match="no JSON"):
        put("data: {half")
    with pytest.raises(NoAnswer, match="overloaded"):
        put('data: {"error": {"message": "overloaded"}}')
