"""The Batch API: hand over, leave, come back, collect; nothing twice, nothing lost, every fault said."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.models.api import batch
from experiment.models.api.batch import BatchApi, Ledger
from experiment.models.api.retrying import RunStopped
from experiment.models.engine import ModelSettings, Request
from stimuli.errors import UserError
from tests.experiment.models.api_requests import api_settings, choice, choices


@pytest.fixture
def study(server, tmp_path: Path) -> ModelSettings:
    return api_settings(server, folder=tmp_path)


def submit(settings: ModelSettings, requests: Iterable[Request]) -> Ledger:
    api = BatchApi(settings)
    api.submit(requests)
    return api.ledger


def looked(settings: ModelSettings) -> Ledger:
    api = BatchApi(settings)
    api.look()
    return api.ledger


def cancelled(settings: ModelSettings) -> Ledger:
    api = BatchApi(settings)
    api.cancel()
    return api.ledger


def test_what_was_handed_over_is_collected_by_another_command(server, study):
    server.answer = lambda body: "A"
    server.logprobs = lambda body: {"A": math.log(0.7), "B": math.log(0.3)}
    assert [one.requests for one in submit(study, choices(6)).batches] == [6]
    (first, second, *_) = server.batches.lines("batch-0")
    assert (first["custom_id"], first["method"], first["url"]) == ("k0", "POST", "/v1/chat/completions")
    assert second["body"]["messages"][0]["content"] == "trial 1 is odd"
    kept = b"".join(file.read_bytes() for file in (study.folder / batch.FOLDER).iterdir())
    assert b"trial" not in kept and b"k1" in kept, "nothing of what was asked stays in the folder"
    for _ in range(2):
        handed = submit(study, choices(10))
        assert [one.requests for one in handed.batches] == [6, 4], "only what is new is handed over"
    assert [one.status for one in handed.batches] == ["in_progress"] * 2
    assert list(BatchApi(study).collect(choices(10))) == []
    server.batches.end()
    assert [one.status for one in looked(study).batches] == ["completed"] * 2
    replies = {reply.work_key: reply for reply in BatchApi(study).collect(choices(10))}
    assert set(replies) == {f"k{n}" for n in range(10)}
    assert {reply.path for reply in replies.values()} == {"chat+logprobs+batch"}
    assert replies["k1"].label_logprobs == pytest.approx({"A": math.log(0.7), "B": math.log(0.3)})
    assert replies["k1"].latency_ms is None and replies["k1"].prompt_tokens == 4
    assert list(BatchApi(study).collect(choices(10))) == []
    assert "collected" in str(looked(study))


def test_a_file_holds_no_more_than_the_api_takes(server, study, monkeypatch):
    monkeypatch.setattr(batch, "MOST_REQUESTS", 4)
    assert [one.requests for one in submit(study, choices(10)).batches] == [4, 4, 2]
    monkeypatch.setattr(batch, "MOST_BYTES", 600)
    handed = submit(study, (choice(n) for n in range(100, 110)))
    assert sum(one.requests for one in handed.batches[3:]) == 10
    assert max(len(content) for content in list(server.batches.files.values())[3:]) <= 600


def test_a_batch_whose_making_was_answered_to_nobody_is_found_and_not_made_twice(server, study):
    server.batches.loses_next_answer = True
    with pytest.raises(RunStopped, match=server.url):
        submit(study, choices(5))
    assert len(server.batches.batches) == 1
    handed = submit(study, choices(5))
    assert len(server.batches.batches) == len(handed.batches) == 1
    server.batches.end()
    assert len(list(BatchApi(study).collect(choices(5)))) == 5


def test_collecting_that_was_cut_short_is_done_again(server, study):
    submit(study, choices(6))
    server.batches.end()
    taken = BatchApi(study).collect(choices(6))
    stored = {next(taken).work_key, next(taken).work_key}
    taken.close()
    left = [choice(n) for n in range(6) if f"k{n}" not in stored]
    assert {reply.work_key for reply in BatchApi(study).collect(left)} == {f"k{n}" for n in range(6)} - stored


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_did_not_come_to_can_be_handed_over_again(server, study, status):
    submit(study, choices(6))
    if status == "cancelled":
        assert cancelled(study).batches[0].status == "cancelling"
    server.batches.end(status, done=lambda key: key in ("k0", "k1"))
    replies = {reply.work_key: reply for reply in BatchApi(study).collect(choices(6))}
    assert {key for key, reply in replies.items() if reply.status == "answered"} == {"k0", "k1"}
    assert all(status in str(replies[f"k{n}"].error) for n in range(2, 6))
    left = [choice(n) for n in range(2, 6)]
    assert submit(study, left).batches[1].requests == 4


def test_a_batch_that_was_refused_says_why_for_each_request(server, study):
    submit(study, choices(3))
    server.batches.end("failed")
    replies = list(BatchApi(study).collect(choices(3)))
    assert [reply.status for reply in replies] == ["error"] * 3
    assert all("line 1 is not valid" in str(reply.error) for reply in replies)


def test_two_entries_that_ask_one_model_each_collect_their_own(server, study):
    warm = replace(study, options={**study.options, "temperature": 1.0})
    submit(study, choices(2))
    submit(warm, (choice(number) for number in range(10, 13)))
    server.batches.end()
    assert {reply.work_key for reply in BatchApi(study).collect(choices(2))} == {"k0", "k1"}
    theirs = list(BatchApi(warm).collect([choice(number) for number in range(10, 13)]))
    assert [reply.status for reply in theirs] == ["answered"] * 3
    assert all(one.is_collected for one in looked(study).batches)


def test_labels_of_any_length_need_several_calls_and_are_refused(server, tmp_path):
    study = api_settings(server, folder=tmp_path, label_scoring="whole")
    with pytest.raises(UserError, match="label_scoring"):
        submit(study, choices(2))


def test_a_server_without_batches_is_said_to_be_so(server, tmp_path):
    study = api_settings(server, folder=tmp_path, base_url=f"{server.url}/nowhere")
    with pytest.raises(RunStopped, match=study.options["base_url"]) as stopped:
        submit(study, choices(2))
    assert "--batch" in str(stopped.value.mend)


def test_a_command_that_died_before_a_batch_was_made_leaves_its_requests_free(server, study, monkeypatch):
    server.batches.loses_next_answer = True
    with pytest.raises(RunStopped):
        submit(study, choices(5))
    server.batches.batches.clear()
    assert looked(study).batches == []
    assert [one.requests for one in submit(study, choices(5)).batches] == [5]
