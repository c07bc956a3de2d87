"""What a server may send that is no answer, or hardly one, concerns one trial: the run goes on and nothing stays broken."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import select

from analysis import load
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.store import open_store
from experiment.store.tables import calls
from stimuli.errors import UserError
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


PROSE = {"The": 0.99, "No": 0.0025, "Yes": 0.0009}


@pytest.mark.parametrize("surface", ["chat", "completions", "responses"])
def test_a_reply_that_opens_with_other_words_is_read_as_what_it_says(study, server, surface):
    server.answer = lambda body: "The answer is Yes."
    server.logprobs = lambda body: {token: math.log(share) for token, share in PROSE.items()}
    server.prompt = lambda word: -1.0
    with_models(study, remote("one", server, f"price: free, api: {surface}"))
    done = invoke("run", study)
    assert done.exit_code == 0, done.output
    rows = stored(study)
    told = f"{surface}+logprobs+unsettled{'' if surface == 'responses' else '+prompt_logprobs'}"
    assert {(row["response"], row["response_status"]) for row in rows} == {("Yes", "valid")} and len(
        rows
    ) == TRIALS
    assert {row["path"] for row in rows} == {told}
    assert rows[0]["label_logprobs"] == pytest.approx({"Yes": math.log(0.0009), "No": math.log(0.0025)})
    assert f"{TRIALS} of {TRIALS} answers" in done.output


def test_a_reply_against_its_first_token_is_counted_and_kept_beside_it(study, server):
    server.answer = lambda body: "No"
    server.logprobs = lambda body: {"Yes": math.log(0.8), "No": math.log(0.15)}
    with_models(study, remote("one", server, "price: free"))
    done = invoke("run", study, "--json")
    assert done.exit_code == 0, done.output
    assert {row["response"] for row in stored(study)} <= {"No", None}
    assert json.loads(done.stdout)["models"][0]["first_tokens"] == {"disagrees": TRIALS}
    kept = of_store(study, select(calls.c.generated, calls.c.label_logprobs))
    assert all("No" in row["generated"] and set(row["label_logprobs"]) == {"Yes", "No"} for row in kept)


def test_family_size_and_counted_parameters_are_handed_over(study, tmp_path, plain_model):
    with_models(
        study,
        f'small: {{use: "hf:{plain_model}", family: GPT, determinism: fast}}\n'
        '    big: {use: "baseline:random", family: GPT, parameters: 1.4B}',
    )
    done = invoke("run", study, "--max-trials", "4")
    assert done.exit_code == 0, done.output
    with open_store(study) as store:
        folder = hand_over(load_study(study), store, tmp_path / "handover")
    told = json.loads((folder / "dictionary.json").read_text("utf-8"))["readers"]
    assert told["small"]["settings"]["family"] == "GPT"
    assert isinstance(told["small"]["parameters"], int) and told["small"]["parameters"] > 1000
    assert told["big"]["settings"]["parameters"] == "1.4B" and "parameters" not in told["big"]


@pytest.mark.parametrize("size", ["big", "7 billion", "-3", "0"])
def test_a_size_that_is_no_number_of_parameters_is_refused(study, size):
    with_models(
        study,
        f'm: {{use: "baseline:random", parameters: "{size}"}}'
        if size != "0"
        else 'm: {use: "baseline:random", parameters: 0}',
    )
    with pytest.raises(UserError, match="parameters"):
        load_study(study)


def test_timed_sessions_say_so_in_the_table_and_count_no_trial_twice(study, tmp_path):
    with_models(study, 'r: {use: "baseline:random"}')
    for more in ((), ("--timing",)):
        done = invoke("run", study, *more)
        assert done.exit_code == 0, done.output
    assert invoke("export", study, "--out", tmp_path / "out").exit_code == 0
    with (tmp_path / "out" / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["timed"] for row in rows) == {"TRUE": TRIALS, "FALSE": TRIALS}
    by_session = {(row["session_id"], row["timed"]) for row in rows}
    assert len(by_session) == 8
    with open_store(study) as store:
        tables = load(hand_over(load_study(study), store, tmp_path / "handover"))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    assert len(used) == TRIALS and not used["timed"].any()
    assert tables.dictionary["columns"]["timed"]["type"] == "boolean"
