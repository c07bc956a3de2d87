"""A refusal of one prompt changes nothing for the others, whatever words it uses, and costs nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiment.models.api.retrying import RunStopped, judge_status, words_about_parameters
from tests.experiment.models.running import TRIALS, invoke, remote, server, stored, study, with_models
from tests.experiment.models.test_runs_money import money

__all__ = ["server", "study"]

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
@pytest.mark.parametrize("behaviour", ["401", pytest.param("quota", marks=pytest.mark.full)])
def test_requests_that_are_refused_outright_cost_nothing(study, server, behaviour):
    with_models(study, remote("m", server, "price: {input: 10, output: 1000}"), budget="1 USD")
    server.always["."] = behaviour
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
        with pytest.raises(RunStopped, match="nothing left to spend"):
            judge_status(429, body, {})
    words = json.dumps({"error": {"message": "Rate limit reached. Please try again in 20ms."}})
    assert judge_status(429, words, {}).after == 0.02
