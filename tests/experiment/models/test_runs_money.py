"""Prices, and the spending that a run reports, compared with what the server bills."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from experiment.checking import load_study
from experiment.models import Message, ModelSettings, Reply, Request
from experiment.models.api.engine import ApiEngine
from experiment.models.api.prices import price_of
from experiment.models.api.probe import UNTRIED
from experiment.models.api.retrying import RunStopped, judge_status, words_about_parameters
from experiment.models.costs import format_usd, parse_usd
from experiment.models.leases import leased
from experiment.models.runs.model_worker import batch_price
from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
from experiment.store import open_store
from experiment.store.tables import audit, calls
from stimuli.errors import UserError
from tests.experiment.models.running import (
    TRIALS,
    edit,
    invoke,
    money,
    of_store,
    remote,
    stored,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI

PROBED = "price: {input: 10, output: 10}"


def probed(name: str, server: ScriptedOpenAI, more: str = PROBED) -> str:
    """Return a line that names a model whose server is probed."""
    return f'{name}: {{use: "openai:{name}", base_url: "{server.url}", concurrency: 4, cache: false, {more}}}'


def bill(server: ScriptedOpenAI, price: float = 10) -> float:
    """Return what the server bills at one price for tokens read and written."""
    return sum(server.billed.values()) * price / 1e6


def test_what_the_probe_of_a_server_cost_is_in_the_books(study, server):
    with_models(study, probed("one", server), budget="5 USD")
    result = invoke("run", study, "--json")
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.stdout)["models"]
    assert len(server.probes) > 5
    assert told["cost_usd"] == pytest.approx(bill(server))
    assert money(study).total == money(study).spent == pytest.approx(bill(server))
    of_trials = sum(row["cost_usd"] for row in of_store(study, select(calls)))
    assert of_trials < money(study).spent


def test_a_probe_is_paid_once_for_runs_judges_and_checks_unless_it_is_requested_again(study, server):
    with_models(study, probed("one", server))
    assert invoke("check", study, "--probe").exit_code == 0
    first = list(server.probes)
    for _ in range(2):
        assert invoke("run", study, "--max-trials", "4").exit_code == 0
    assert server.probes == first and len(server.requests) == 8
    assert money(study).total == pytest.approx(bill(server))
    assert invoke("check", study, "--probe").exit_code == 0
    assert len(server.probes) == 2 * len(first)
    assert money(study).total == pytest.approx(bill(server))


def test_a_probe_under_other_settings_or_of_a_free_server_is_made_anew(study, server):
    with_models(study, probed("one", server))
    assert invoke("run", study, "--max-trials", "4").exit_code == 0
    first = len(server.probes)
    edit(study, "cache: false", "cache: false, temperature: 0.5")
    assert invoke("run", study, "--max-trials", "4", "--if-changed", "keep_both").exit_code == 0
    between = len(server.probes)
    edit(study, PROBED, "price: free")
    assert invoke("run", study, "--max-trials", "4", "--if-changed", "keep_both").exit_code == 0
    assert first <= between < len(server.probes)


def test_a_server_that_another_command_probes_is_not_asked(study, server):
    with_models(study, probed("one", server))
    with leased(study, load_study(study).id, "check one"):
        second = invoke("check", study, "--probe")
    assert second.exit_code == 1 and "check one" in second.output
    assert not server.probes and not server.requests
    assert invoke("check", study, "--probe").exit_code == 0 and server.probes


def test_a_judge_is_paid_with_all_that_finding_out_about_its_server_costs(study, server):
    with ScriptedOpenAI(answer=lambda body: "Yes") as judging:
        judging.script.extend(["ok", "malformed", "cut"] * 4)
        with_models(study, remote("one", server, "price: free"), probed("j", judging), budget="5 USD")
        assert invoke("run", study, "--model", "one", "--max-trials", "20").exit_code == 0
        result = invoke("score", study, "--judge", "j")
        assert result.exit_code == 0, result.output
        assert len(judging.probes) > 5 and len(judging.requests) > 20
        spent = money(study)
        answered = sum(row["cost_usd"] or 0.0 for row in of_store(study, select(calls)))
        assert 0 < answered < spent.spent < bill(judging) <= spent.total


def test_no_server_is_probed_once_the_money_is_gone(study, server):
    with_models(study, probed("one", server, "price: {input: 24, output: 24}"), budget="0.01 USD")
    result = invoke("run", study)
    assert result.exit_code == 1 and "models: budget" in result.output
    assert not server.requests and 0 < bill(server, 24) <= 0.01
    asked = len(server.probes)
    assert invoke("run", study).exit_code == 1
    assert bill(server, 24) <= 0.01 and len(server.probes) <= asked + 1
    assert money(study).spent == pytest.approx(bill(server, 24))


def test_a_model_that_thinks_is_asked_for_one_answer_with_room_for_thoughts(study, server):
    server.usage = {"completion_tokens": 900, "completion_tokens_details": {"reasoning_tokens": 899}}
    server.refuses = {"seed"}
    with_models(study, probed("one", server, f"reasoning_effort: high, {PROBED}"))
    result = invoke("run", study, "--max-trials", "1")
    assert result.exit_code == 0, result.output
    roomy = [body for body in server.probes if body["max_tokens"] > 500]
    assert len(roomy) <= 2, "one that is refused, one that is answered"
    (begun,) = of_store(study, select(audit.c.detail).where(audit.c.action == "run"))
    assert begun["detail"]["engine"]["probe"]["structure"] == UNTRIED


@pytest.mark.full
def test_tries_that_are_billed_and_bring_nothing_stay_counted(study, server):
    """A server that works, bills, and breaks off: half of the sentences once, one of them each time."""
    server.script.extend(["ok", "malformed", "cut", "drop", "malformed"] * 12)
    server.always["gardener"] = "malformed"
    with_models(study, remote("one", server), budget="40 USD")
    result = invoke("run", study, "--json")
    (told,) = json.loads(result.stdout)["models"]
    assert 0 < told["left"] < TRIALS
    spent = money(study)
    answered = sum(row["cost_usd"] or 0.0 for row in of_store(study, select(calls)))
    assert spent.spent == pytest.approx(answered)
    assert told["unanswered_usd"] == pytest.approx(spent.unknown) and spent.set_aside == pytest.approx(0)
    assert spent.spent < bill(server) <= spent.total


def test_a_budget_binds_what_is_billed_when_most_tries_break_off(study, server):
    server.rates = {"malformed": 0.4, "cut": 0.3}
    with_models(study, remote("one", server), budget="0.05 USD")
    loaded = load_study(study)
    with open_store(study) as store:
        run = CommandRun(
            loaded,
            store,
            RunOptions(version=version_of(loaded, store), opener=lambda given: ApiEngine(given, pace=0)),
        )
        (outcome,) = run.run(loaded.models)
    assert "budget" in str(outcome.stopped) and outcome.answered
    assert 0 < bill(server) <= 0.05
    assert money(study).total <= 0.05 + 1e-9


@pytest.mark.parametrize("probe", ["probe: true", "probe: false"])
def test_labels_that_cannot_be_scored_whole_stop_the_run(study, server, probe):
    server.refuses = {"prompt_logprobs"}
    more = f"label_scoring: whole, price: free, {probe}"
    with_models(study, f'one: {{use: "openai:one", base_url: "{server.url}", cache: false, {more}}}')
    result = invoke("run", study)
    assert result.exit_code == 1 and "label_scoring: whole" in result.output, result.output
    assert not of_store(study, select(calls))


@pytest.mark.full
def test_a_server_that_counts_more_than_can_be_is_told_and_the_budget_holds(study, server):
    with_models(study, remote("one", server), budget="0.3 USD")
    server.usage = {"prompt_tokens": 3000, "completion_tokens": 1, "total_tokens": 3001}
    done = invoke("run", study)
    assert done.exit_code == 1 and "budget" in done.output
    assert "max_tokens" in done.output
    spent = money(study).spent
    # what was sent before the first count came, four at once, is all that may exceed it
    assert spent <= 0.3 + 4 * 0.03001 and len(server.requests) < TRIALS


SENT = {
    "model": "m", "seed": 3, "stop": ["\n"], "logprobs": True, "top_logprobs": 20, "temperature": 1.0,
    "messages": [{"role": "user", "content": "Read the sentence.\nThe store closed and made him stop at the seed bank."}],
}  # fmt: skip


def body(message: str, **more: Any) -> str:
    return json.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    "refusal",
    [
        body("Your prompt was flagged: 'the logprobs of the stream'", code="invalid_prompt", param=None),
        body("flagged: The store closed and made him stop at the seed bank."),
        body('I will not answer "made him stop at the seed" for anybody'),
        body("too much of a seed", param="messages.[0].content"),
        json.dumps(
            {"detail": [{"loc": ["body", "messages"], "msg": "prompt is longer than allowed", "input": SENT}]}
        ),
    ],
)
def test_words_of_the_prompt_are_not_taken_for_parameters(refusal):
    left = words_about_parameters(refusal, SENT).lower()
    assert not any(name in left for name in ("seed", "stop", "store", "stream", "logprobs", "temperature"))


def test_one_refused_item_leaves_all_others_asked_alike(study, server):
    """The message names parameters and quotes nothing; by then the same ones were answered."""
    with_models(
        study, remote("m", server, "temperature: 1, price: free").replace("concurrency: 4", "concurrency: 1")
    )
    server.logprobs = lambda body: {"Yes": -0.1, "No": -2.3}
    server.always["Sunday"] = ("400", "flagged: it speaks of the seed, the logprobs and of temperature")
    assert invoke("run", study).exit_code == 1
    refused = sum("Sunday" in json.dumps(one["messages"]) for one in server.requests)
    assert 0 < refused < TRIALS and len(stored(study)) == TRIALS - refused
    forms = {("seed" in one, "logprobs" in one, "temperature" in one) for one in server.requests}
    assert forms == {(True, True, True)}


@pytest.mark.full
def test_requests_that_are_refused_outright_cost_nothing(study, server):
    with_models(study, remote("m", server, "price: {input: 10, output: 1000}"), budget="1 USD")
    server.always["."] = "quota"
    for _ in range(2):
        assert invoke("run", study).exit_code == 1
    assert money(study).total == 0
    server.always.clear()
    assert invoke("run", study).exit_code == 0
    assert len(stored(study)) == TRIALS


def test_a_limit_by_the_minute_is_waited_for_and_no_empty_account():
    """As Gemini's endpoint says it."""
    said = (
        "You exceeded your current quota, please check your plan and billing details. Quota exceeded for metric: "
        "free_tier_requests, limit: 15\nPlease retry in 38.86s."
    )
    gemini = json.dumps([{"error": {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED"}}])
    verdict = judge_status(429, gemini, {})
    assert (verdict.kind, verdict.after) == ("rate_limit", 38.86)
    assert judge_status(429, gemini, {"retry-after": "2"}).after == 2
    openai = json.dumps(
        {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    )
    for body in (openai, json.dumps({"error": {"message": "You exceeded your current quota, please check"}})):
        with pytest.raises(RunStopped, match="429"):
            judge_status(429, body, {})
    words = json.dumps({"error": {"message": "Rate limit reached. Please try again in 20ms."}})
    assert judge_status(429, words, {}).after == 0.02


def settings(name: str, **options: object) -> ModelSettings:
    return ModelSettings(f"openai:{name}", options)


def test_a_listed_model_and_its_dated_snapshot_have_one_price_with_its_date():
    price = price_of(settings("gpt-4.1-mini-2025-04-14"))
    assert (price.input, price.cached_input, price.output) == (0.4, 0.1, 1.6)
    assert price_of(settings("gpt-4.1-mini")) == price
    assert "2026-10-03" in price.source


def test_a_model_without_a_price_is_refused_until_one_is_given():
    with pytest.raises(UserError, match="openai:gpt-unheard-of") as error:
        price_of(settings("gpt-unheard-of"))
    assert "price: {input" in str(error.value.mend)
    with pytest.raises(UserError, match=r"https://api\.example\.org/v1"):
        price_of(settings("gpt-4.1-mini", base_url="https://api.example.org/v1"))
    assert price_of(settings("gpt-unheard-of", price={"input": 1, "output": 2})).cached_input == 1
    assert price_of(settings("gpt-unheard-of", price="free")).is_free


@pytest.mark.parametrize(
    "url",
    ["http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://192.168.1.7/v1", "http://gpu3:8000/v1"],
)
def test_a_server_of_ones_own_costs_nothing(url):
    assert price_of(settings("Qwen/Qwen3-8B", base_url=url)).is_free
    assert price_of(ModelSettings("hf:Qwen/Qwen3-8B")).is_free


@pytest.mark.parametrize(
    "price", [{"input": 1}, {"input": -1, "output": 2}, {"input": 1, "output": "2"}, {"input": 1, "output": 2, "out": 3}, "cheap", 3]
)  # fmt: skip
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(UserError, match=r"price.*\bm\b"):
        price_of(settings("m", price=price))


def test_a_reply_costs_its_fresh_its_cached_and_its_written_tokens():
    price = price_of(settings("m", price={"input": 2, "cached_input": 0.5, "output": 8, "batch": 0.5}))
    reply = Reply(
        "k",
        "A",
        "answered",
        prompt_tokens=1000,
        cached_tokens=600,
        completion_tokens=100,
        reasoning_tokens=90,
    )
    assert price.of(reply) == pytest.approx((400 * 2 + 600 * 0.5 + 100 * 8) / 1e6)
    assert batch_price(price).of(reply) == pytest.approx(price.of(reply) / 2)
    assert price.of(Reply("k", "A", "answered", from_cache=True)) == 0
    assert price.of(Reply("k", "A", "answered")) is None


@given(st.text(max_size=300), st.integers(0, 500), st.integers(0, 500))
def test_no_reply_costs_more_than_its_request_can(text, cached, written):
    price = price_of(settings("m", price={"input": 2, "cached_input": 0.5, "output": 8}))
    request = Request("k", (Message("user", text),), None, 500, 0.0, 1)
    read = len(text.encode()) + 16
    reply = Reply(
        "k", "", "answered", prompt_tokens=read, cached_tokens=min(cached, read), completion_tokens=written
    )
    assert price.of(reply) <= price.most(request) + 1e-12


@pytest.mark.parametrize(
    ("options", "read", "written"),
    [
        ({}, 1 + 16, 8),
        ({"thinking_tokens": 500}, 1 + 16, 508),
        ({"reasoning_effort": "low"}, 1 + 16, 8 + 4096),
        ({"label_only": True}, 1 + 16 + 256, 8 + 16),
        ({"label_scoring": "whole"}, 3 * 17 + 2 * 17, 8 + 2),
        ({"api": "responses"}, 1 + 16, 8 + 16),
    ],
)
def test_the_worst_case_holds_all_that_a_request_may_read_and_write(options, read, written):
    price = price_of(settings("x", price={"input": 1e6, "output": 1e6}, **options))
    request = Request("k", (Message("user", "a"),), ("A", "B"), 8, 0.0, 0)
    assert price.most_tokens(request) == (read, written)
    assert price.most(request) == read + written


@pytest.mark.parametrize(
    ("given", "amount"), [("40 USD", 40), ("$40", 40), ("0.50 usd", 0.5), ("USD 12,5", 12.5)]
)
def test_amounts_are_read_as_people_write_them(given, amount):
    assert parse_usd(given, "--max-cost") == amount


def test_small_amounts_keep_three_digits():
    assert (format_usd(12.3), format_usd(0.00123), format_usd(0)) == ("12.30 USD", "0.00123 USD", "0.00 USD")
