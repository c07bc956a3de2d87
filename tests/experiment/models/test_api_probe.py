"""The probe finds out, in a few tiny requests, what an endpoint has; and says it in plain words."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models import Message
from experiment.models.api.engine import capabilities
from experiment.models.api.formats import ApiFormat, Dialect, RequestOptions
from experiment.models.api.probe import NEEDS
from experiment.models.api.retrying import RunStopped
from stimuli.errors import UserError
from tests.experiment.models.api_requests import api_engine, api_settings, choice, choices
from tests.scripted_answers import word_logprob
from tests.scripted_openai import ScriptedOpenAI


@pytest.fixture
def server() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI(answer=lambda body: "A") as running:
        yield running


def test_a_plain_server_is_found_to_give_answers_and_little_else(server):
    server.answer = lambda body: "hello"
    found = capabilities(api_settings(server))
    assert (found.top_logprobs, found.prompt_logprobs, found.structure) == (0, False, "none")
    assert found.seed and found.temperature and found.system_role
    assert found.resolved_model == server.model
    assert len(found.gaps(["label_logprobs", "surprisal", "choices"])) == 2
    assert len(found.gaps(NEEDS)) >= 3
    with pytest.raises(UserError, match="surprisal"):
        found.gaps(["surprisals"])  # type: ignore[list-item]


def test_a_rich_server_is_found_to_be_rich(server):
    server.answer = lambda body: "hello"
    server.logprobs = lambda body: {"A": math.log(0.9), "B": math.log(0.1)}
    server.prompt = word_logprob
    server.heeds.add("json_schema")
    found = capabilities(api_settings(server))
    assert (found.top_logprobs, found.prompt_logprobs, found.structure) == (20, True, "json_schema")
    assert found.stable_prompt_logprobs and found.thinks and found.reasoning_counts and found.cached_counts
    assert found.gaps(["label_logprobs", "long_labels", "surprisal", "sampling", "reasoning"]) == []
    assert len(found.gaps(["states"])) == 1


def test_a_model_that_opens_its_answers_with_other_words_is_told_of(server):
    server.answer = lambda body: "The first is A"
    server.logprobs = lambda body: {"The": math.log(0.99), "A": math.log(0.004), "b": math.log(0.002)}
    found = capabilities(api_settings(server))
    assert found.top_logprobs == 20
    assert any("0.006" in one for one in found.sentences()), found.remarks
    server.logprobs = lambda body: {" a": math.log(0.6), "The": math.log(0.3)}
    assert not capabilities(api_settings(server)).remarks


def test_a_server_whose_prompt_probabilities_depend_on_what_came_before_is_warned_of(server):
    count = itertools.count()
    server.prompt = lambda word: -1.0 - next(count) * 1e-3
    found = capabilities(api_settings(server))
    assert found.prompt_logprobs and found.stable_prompt_logprobs is False
    assert any("--no-enable-prefix-caching" in one for one in found.sentences())


@pytest.mark.parametrize(
    ("refused", "field", "value"),
    [
        ("seed", "seed", False),
        ("temperature", "temperature", False),
        ("system", "system_role", False),
        ("logprobs", "top_logprobs", 0),
        ("top_logprobs", "top_logprobs", 0),
        ("max_tokens", "limit_name", "max_completion_tokens"),
        ("prompt_logprobs", "prompt_logprobs", False),
        ("response_format", "structure", "guided_choice"),
    ],
)
def test_what_a_server_refuses_is_found_out_and_never_sent_again(server, refused, field, value):
    server.logprobs = lambda body: {"A": math.log(0.9), "B": math.log(0.1)}
    server.prompt = word_logprob
    server.heeds |= {"json_schema", "guided_choice"}
    server.answer = lambda body: (
        "A" if "first in the alphabet" in str(body) or "trial" in str(body) else "hello"
    )
    server.refuses.add(refused)
    engine = api_engine(server)
    assert getattr(engine.probe(), field) == value
    assert {reply.status for reply in engine.answer(choices(5))} == {"answered"}
    assert len(server.requests) == 5, "no request of the run was refused"


def test_a_server_that_takes_logprobs_and_sends_none_is_not_asked_for_them(server):
    engine = api_engine(server)
    list(engine.answer(choices(3)))
    assert not any("logprobs" in body for body in server.requests)
    (remark,) = engine.probe().remarks
    assert "log-probabilities" in remark


@pytest.mark.parametrize(
    ("draws", "heeds_seed", "draws_differ"),
    [("seed", True, True), ("chance", False, True), ("nothing", None, False)],
)
def test_three_draws_tell_whether_a_server_draws_and_heeds_a_seed(server, draws, heeds_seed, draws_differ):
    server.draws = draws
    found = capabilities(api_settings(server))
    assert (found.heeds_seed, found.draws_differ) == (heeds_seed, draws_differ)
    assert bool(found.gaps(["sampling"])) == (draws == "nothing")


def test_prompt_probabilities_that_are_not_those_of_answers_are_not_used(server):
    server.logprobs = lambda body: {" A": math.log(0.9), " B": math.log(0.1)}
    server.prompt = word_logprob
    found = capabilities(api_settings(server, api="completions"))
    assert found.prompt_logprobs and not found.remarks
    server.agrees = False
    found = capabilities(api_settings(server, api="completions"))
    assert not found.prompt_logprobs and any(" nats" in one for one in found.remarks)


def test_what_switches_off_a_servers_own_sampling_is_sent_until_it_is_refused(server):
    engine = api_engine(server)
    assert engine.probe().unfiltered == ("top_k", "min_p", "repetition_penalty", "repeat_penalty")
    list(engine.answer([choice(1, temperature=1.0), choice(2, temperature=1.0, top_k=7), choice(3)]))
    drawn, cut, greedy = sorted(server.requests, key=lambda body: body["messages"][0]["content"])
    assert (drawn["top_k"], drawn["min_p"], drawn["repetition_penalty"], drawn["top_p"]) == (-1, 0, 1, 1)
    assert cut["top_k"] == 7
    assert "top_k" not in greedy and greedy["repeat_penalty"] == 1
    server.refuses |= {"min_p", "repeat_penalty"}
    assert api_engine(server).probe().unfiltered == ("top_k", "repetition_penalty")


def test_a_server_that_fails_without_a_word_is_asked_for_less(server):
    server.logprobs = lambda body: {"A": math.log(0.9), "B": math.log(0.1)}
    server.breaks_on.add("seed")
    engine = api_engine(server)
    found = engine.probe()
    assert (found.seed, found.top_logprobs, found.unfiltered[0]) == (False, 20, "top_k")
    assert any("seed" in one for one in found.remarks)
    assert {reply.status for reply in engine.answer(choices(5, temperature=1.0))} == {"answered"}
    server.breaks_on |= {"top_logprobs", "min_p"}
    found = api_engine(server).probe()
    assert (found.seed, found.top_logprobs, found.unfiltered, found.temperature) == (False, 0, (), False)
    # what the study gives is asked for all the same
    server.breaks_on = {"temperature"}
    found = capabilities(api_settings(server, temperature=0.7))
    assert found.temperature and any("500" in one for one in found.remarks)


@pytest.mark.parametrize(
    "words",
    [
        "the upstream was restarted",
        "'max_tokens' is too large: 5000. This model's maximum context length is 4096 tokens",
        "the context ended before a stopword, see textual notes",
    ],
)
def test_words_that_only_sound_like_a_parameter_change_nothing(words):
    wishes, dialect = RequestOptions(label_only=True), Dialect("max_tokens")
    before = asdict(dialect)
    sent = ApiFormat("m", dialect, wishes).body(choice(1, stop=("x",)))[1] | {"stream": True, "text": {}}
    assert not dialect.learn(words, sent, wishes)
    assert asdict(dialect) == before


def test_the_probe_is_made_once_in_a_run_and_recorded(server):
    server.heeds.add("guided_choice")
    engine = api_engine(server)
    assert engine.describe()["probe"] is None
    list(engine.answer(choices(3)))
    made = len(server.probes)
    list(engine.answer(choices(3)))
    assert len(server.probes) == made <= 16
    described = engine.describe()["probe"]
    assert described["requests"] == made and described["sentences"]
    json.dumps(engine.describe())


def test_a_server_that_is_not_there_stops_before_anything_is_asked():
    with ScriptedOpenAI() as gone:
        pass
    with pytest.raises(RunStopped, match=gone.url):
        api_engine(gone).probe()


@given(
    st.lists(
        st.sampled_from(
            ["temperature", "top_logprobs", "logprobs", "seed", "stop", "system role", "max_tokens", "not supported",
             "response_format", "echo", "prompt_logprobs", "unsupported", "max_completion_tokens", "top_k", ""]
        ), max_size=4,
    ).map(" ".join),
    st.sampled_from(["chat", "completions", "responses"]),
)  # fmt: skip
def test_no_refusal_is_learned_from_without_end(words, surface):
    wishes = RequestOptions(surface=surface, label_only=True)
    dialect = Dialect("max_tokens", prompt_logprobs=True)
    request = choice(
        1, temperature=0.5, stop=("x",), top_k=5, messages=(Message("system", "s"), Message("user", "u"))
    )
    speaker = ApiFormat("m", dialect, wishes)
    for _ in range(20):
        try:
            if not dialect.learn(words, speaker.body(request)[1], wishes):
                return
        except RunStopped:
            return
    assert "max_tokens" in words and "max_completion_tokens" in words, "only these two can go to and fro"
