"""Chat, completions and responses: what is sent, how what comes back is read, and what is timed."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from experiment.models import Message
from experiment.models.api.engine import ApiEngine
from experiment.models.api.formats import STRUCTURES, THOUGHT_ROOM
from experiment.models.api.retrying import NoAnswer, RunStopped, put_together
from experiment.models.engine import ModelSettings, Span
from experiment.models.servers import find_key, server_of
from stimuli.errors import UserError
from tests.experiment.models.api_requests import api_engine, choice, choices
from tests.scripted_answers import word_logprob
from tests.scripted_openai import ScriptedOpenAI

SURFACES = ("chat", "completions", "responses")
TOLD = {"A": math.log(0.5), " A": math.log(0.1), "B": math.log(0.3), "C": math.log(0.05)}


@pytest.fixture
def server() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI(answer=lambda body: "A") as running:
        running.logprobs = lambda body: TOLD
        yield running


@pytest.mark.parametrize("surface", SURFACES)
def test_each_form_gives_answer_counts_and_label_logprobs(server, surface):
    replies = list(api_engine(server, api=surface).answer(choices(5)))
    assert len(server.requests) == 5 and len(replies) == 5
    for reply in replies:
        assert (reply.text, reply.generated, reply.status) == ("A", "A", "answered")
        assert reply.label_logprobs == pytest.approx({"A": math.log(0.6), "B": math.log(0.3)})
        assert reply.label_bounds is None
        assert reply.margin == pytest.approx(math.log(2))
        assert reply.path == f"{surface}+logprobs"
        assert (reply.cached_tokens, reply.reasoning_tokens, reply.resolved_model) == (2, 5, server.model)


def test_plain_template_means_completions_with_messages_joined_as_local_models_read_them(server):
    request = choice(1, messages=(Message("system", "Read."), Message("user", "Which?")))
    list(api_engine(server, template="plain").answer([request]))
    assert server.paths == ["/v1/completions"]
    assert server.requests[0]["prompt"] == "Read.\n\nWhich?"


def test_the_responses_form_keeps_nothing_at_the_server_and_gives_the_thought(server):
    (reply,) = api_engine(server, api="responses", reasoning_effort="low").answer([choice(1)])
    sent = server.requests[0]
    assert sent["store"] is False and sent["reasoning"] == {"effort": "low"}
    assert sent["max_output_tokens"] == 16 + THOUGHT_ROOM
    assert reply.reasoning == "It is one of two."


def test_reasoning_effort_gives_room_for_thoughts_and_is_never_dropped(server):
    list(api_engine(server, reasoning_effort="high", thinking_tokens=500).answer([choice(1)]))
    assert server.requests[0]["reasoning_effort"] == "high"
    assert server.requests[0]["max_tokens"] == 8 + 500
    server.refuses.add("reasoning_effort")
    with pytest.raises(RunStopped, match="reasoning_effort"):
        list(api_engine(server, reasoning_effort="high").answer([choice(1)]))


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_a_thought_told_apart_is_kept_apart(server, name):
    server.message = {name: "Odd is A."}
    (reply,) = api_engine(server).answer([choice(1)])
    assert (reply.text, reply.reasoning) == ("A", "Odd is A.")


def test_a_thought_inside_the_answer_is_taken_out_and_a_cut_one_leaves_no_answer():
    with ScriptedOpenAI(answer=lambda body: "<think>B or A?</think>\n\nA") as server:
        (reply,) = api_engine(server).answer([choice(1)])
        assert (reply.text, reply.reasoning, reply.status) == ("A", "B or A?", "answered")
    with ScriptedOpenAI(answer=lambda body: "<think>B or") as server:
        server.script.append("length")
        (reply,) = api_engine(server).answer([choice(1)])
        assert (reply.text, reply.reasoning, reply.status) == ("", "B or", "truncated")


def test_seeds_are_those_of_the_request_and_sent_only_where_something_is_drawn(server):
    list(api_engine(server).answer(choices(6, temperature=0.7)))
    assert sorted(body["seed"] for body in server.requests) == [0, 1, 2, 3, 4, 5]
    server.requests.clear()
    list(api_engine(server).answer(choices(3)))
    assert not any("seed" in body for body in server.requests)


def test_without_a_system_role_its_text_opens_the_first_message(server):
    request = choice(1, messages=(Message("system", "Be brief."), Message("user", "Which?")))
    list(api_engine(server, system_role=False).answer([request]))
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Be brief.\n\nWhich?"}]
    server.refuses.add("system")
    server.requests.clear()
    found = api_engine(server)
    list(found.answer([request]))
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Be brief.\n\nWhich?"}]
    assert found.describe()["dialect"]["system"] is False
    with pytest.raises(RunStopped, match="system_role"):
        list(api_engine(server, system_role=True).answer([request]))


@pytest.mark.parametrize("way", STRUCTURES)
def test_an_answer_is_held_to_the_labels_in_the_way_that_the_server_heeds(server, way):
    server.heeds.add(way)
    server.answer = lambda body: "Hello there"
    engine = api_engine(server, label_only=True)
    server.logprobs = None
    (reply,) = engine.answer([choice(1)])
    assert engine.describe()["probe"]["structure"] == way
    assert (reply.text, reply.status) == ("A", "answered")


@pytest.mark.parametrize("surface", ["chat", "completions"])
def test_labels_of_any_length_are_scored_where_the_server_tells_the_prompts_probabilities(server, surface):
    server.prompt = word_logprob
    labels = ("odd", "not odd at all")
    (reply,) = api_engine(server, api=surface, label_scoring="whole").answer([choice(1, labels=labels)])
    assert reply.label_logprobs == pytest.approx({"odd": -0.75, "not odd at all": -0.25 * 11})
    assert (reply.text, reply.path, reply.status) == ("odd", f"{surface}+prompt_logprobs", "answered")
    assert len(server.requests) == 2
    assert reply.prompt_tokens is not None and reply.prompt_tokens > 10


@pytest.mark.parametrize("surface", ["chat", "completions"])
def test_surprisal_of_regions_comes_from_the_prompts_probabilities(server, surface):
    server.prompt = word_logprob
    text = "The big tac sat on it"
    regions = (Span(1, 4, 7), Span(1, 8, 11), Span(1, 12, 21))
    messages = (Message("system", "Read this tac."), Message("user", text))
    (reply,) = api_engine(server, api=surface).answer(
        [choice(1, messages=messages, labels=None, regions=regions, purpose="read")]
    )
    assert [score.surprisal for score in reply.regions] == pytest.approx([0.75, 0.75, 0.25 * 7])
    assert [score.tokens for score in reply.regions] == [1, 1, 3]
    assert reply.text == "A"


@pytest.mark.parametrize("surface", SURFACES)
def test_a_text_ends_before_the_first_stop_text_whether_or_not_the_server_looks_for_it(server, surface):
    server.answer = lambda body: "It is A.\n\nNext: B."
    server.script.append("length")
    (reply,) = api_engine(server, api=surface).answer([choice(1, labels=None, stop=("Next:", "\n\n"))])
    assert (reply.text, reply.status) == ("It is A.", "answered")


def test_openais_own_models_get_openais_own_parameters_alone():
    def sent(**options: object) -> dict[str, object]:
        engine = ApiEngine(ModelSettings("openai:gpt-4.1-mini", options, sends=False))
        return engine.preview(choice(1, temperature=1.0))["body"]

    for options in ({}, {"base_url": "https://lab.openai.azure.com/openai/v1"}):
        assert sent(**options).keys() == {
            "model", "messages", "max_completion_tokens", "temperature", "seed", "top_p", "logprobs", "top_logprobs",
        }  # fmt: skip


def test_extra_body_reaches_the_server(server):
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    list(api_engine(server, extra_body=extra).answer([choice(1)]))
    list(api_engine(server, thinking=False).answer([choice(1)]))
    for body in server.requests:
        assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_azure_addresses_name_deployment_and_version(server, monkeypatch):
    monkeypatch.setenv("LAB_API_KEY", "azure-key")
    root = server.url.removesuffix("/v1")
    engine = api_engine(server, base_url=root, api_version="2024-10-21", key_env="LAB_API_KEY")
    (reply,) = engine.answer([choice(1)])
    assert reply.status == "answered"
    assert server.paths == ["/openai/deployments/scripted/chat/completions"]
    assert server.headers[0]["api-key"] == "azure-key"
    assert "max_completion_tokens" in server.requests[0]


def test_azures_key_goes_to_azures_own_addresses_alone(server, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    with pytest.raises(UserError, match=r"api_version(.|\n)*key_env"):
        api_engine(server, api_version="2024-10-21")
    for url in ("https://lab.openai.azure.com", "https://lab.openai.azure.com/openai/v1"):
        assert find_key({"base_url": url}) == "azure-key"
    assert find_key({"base_url": "https://openai.azure.com.example.org/v1"}) is None


@pytest.mark.parametrize("url", ["http://api.openai.com/v1", "http://lab.openai.azure.com/openai/v1"])
def test_a_key_is_never_sent_in_the_open(url):
    with pytest.raises(UserError, match=url):
        server_of({"base_url": url})


@pytest.mark.parametrize("surface", SURFACES)
def test_a_timed_answer_has_the_time_of_its_first_token_and_says_all_else_as_ever(server, surface):
    server.answer = lambda body: "A long answer"
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
