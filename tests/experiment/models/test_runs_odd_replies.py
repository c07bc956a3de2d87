"""Replies without an answer and prompts that are too long concern one trial each: the run continues and reports each fault once."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from analysis import load
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.models.engine import Message, Reply, Request
from experiment.models.runs.remaining_work import BEGINS, fault_of, reason_of
from experiment.store import open_store, records
from experiment.store.tables import calls
from stimuli.errors import UserError
from tests.experiment.commands import change
from tests.experiment.models.api_requests import api_engine, choices
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


@pytest.mark.parametrize("size", ['"7 billion"', '"-3"', "0"])
def test_a_size_that_is_no_number_of_parameters_is_refused(study, size):
    with_models(study, f'm: {{use: "baseline:random", parameters: {size}}}')
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
    """The part of a session that the test reads."""

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
