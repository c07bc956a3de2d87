"""Batches that are out, beside everything else that happens to a study meanwhile: nothing is paid twice, nothing is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.store.tables import calls, trials
from tests.experiment.models.running import (
    TRIALS,
    edit,
    invoke,
    money,
    of_store,
    remote,
    status_of,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI

PRICE = "price: {input: 10, output: 10, batch: 0.5}"


@pytest.fixture
def handed(study: Path, server: ScriptedOpenAI) -> Path:
    """A study all of whose trials were handed over."""
    with_models(study, remote("one", server, PRICE), budget="40 USD")
    result = invoke("run", study, "--batch")
    assert result.exit_code == 0, result.output
    return study


def told(study: Path, *more: str) -> dict[str, Any]:
    result = invoke("run", study, "--json", *more)
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["models"]
    return dict(one)


def of_batches(server: ScriptedOpenAI) -> float:
    """Return what the batches' answers cost at half of 10 USD for a million tokens."""
    total = 0
    for batch in server.batches.batches.values():
        if batch["output_file_id"]:
            for line in server.batches.files[batch["output_file_id"]].decode().split("\n"):
                usage = (json.loads(line)["response"]["body"]).get("usage") or {}
                total += usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    return total * 5e-6


def test_a_plain_run_sends_nothing_again_and_collects_what_is_done_as_status_tells(handed, server):
    reserved = money(handed).set_aside
    result = invoke("run", handed)
    assert result.exit_code == 0, result.output
    assert not server.requests, "what is out is paid already"
    assert money(handed).set_aside == reserved > 0
    assert f"{TRIALS} requests" in result.stderr, result.stderr
    assert "--cancel-batches" in result.stderr and "--batch" in result.stderr
    (batch,) = status_of(handed)["batches"]
    assert (batch["reader"], batch["batch_id"], batch["status"]) == ("one", "batch-0", "in_progress")
    assert batch["requests"] == TRIALS
    assert f"batch-0 of one: in_progress, 0 of {TRIALS} done" in invoke("status", handed).stdout
    server.batches.end()
    collected = told(handed)
    assert (collected["answered"], collected["left"]) == (TRIALS, 0) and not server.requests
    assert money(handed).set_aside == 0
    assert money(handed).spent == pytest.approx(of_batches(server)) and of_batches(server) > 0
    assert "collected" in invoke("status", handed).stdout


def failed_calls(study: Path) -> list[dict[str, Any]]:
    return [dict(row) for row in of_store(study, select(calls).where(calls.c.status == "error"))]


@pytest.mark.full
def test_what_a_batch_did_not_bring_is_kept_as_errors_that_status_counts(handed, server):
    keys = [line["custom_id"] for line in server.batches.lines("batch-0")]
    server.batches.fails.add(keys[0])
    server.batches.end("expired", done=lambda key: key in keys[:40])
    result = invoke("run", handed, "--batch", "--max-trials", "6")
    assert result.exit_code == 1, "56 failed, and six of them are out again"
    failed = failed_calls(handed)
    assert {row["work_key"] for row in failed} == {keys[0], *keys[40:]} and len(failed) == TRIALS - 39
    assert all(row["cost_usd"] == 0 and row["path"].endswith("+batch") for row in failed)
    assert all("This request was expired." in row["error"] for row in failed if row["work_key"] != keys[0])
    (reader,) = status_of(handed)["readers"]
    assert reader["trials"] == 39 and reader["unanswered"] == {"error": TRIALS - 39}
    server.batches.fails.clear()
    server.batches.end()
    assert told(handed)["left"] == 0
    (reader,) = status_of(handed)["readers"]
    assert reader["trials"] == TRIALS and reader["unanswered"] == {}
    assert len(failed_calls(handed)) == TRIALS - 39, "what happened stays in the books"


def test_answers_and_lines_of_a_batch_that_cannot_be_read_are_kept_and_in_the_books(handed, server):
    server.batches.end()
    (batch,) = server.batches.batches.values()
    name = batch["output_file_id"]
    whole = server.batches.files[name]
    first, second, *lines = whole.decode().splitlines()
    spoilt = json.loads(first)
    spoilt["response"]["body"] |= {"choices": []}
    server.batches.files[name] = "\n".join([json.dumps(spoilt), second[:-9], *lines]).encode()
    assert told(handed)["left"] == 0 and len(server.requests) == 2
    assert sorted(call["cost_usd"] > 0 for call in failed_calls(handed)) == [False, True]
    (kept,) = (handed / "batches").glob("*.unread")
    assert kept.read_text("utf-8") == second[:-9]
    rows = of_store(handed, select(calls))
    assert money(handed).total == pytest.approx(sum(row["cost_usd"] for row in rows))
    live = sum(row["cost_usd"] for row in rows if "+batch" not in row["path"])
    server.batches.files[name] = "\n".join([json.dumps(spoilt), *lines]).encode()
    assert money(handed).spent - live == pytest.approx(of_batches(server))


def test_an_answer_that_holds_line_ends_of_unicode_is_stored(handed, server):
    mark = "\u2028\u2029\u0085"
    server.answer = lambda body: f"I looked twice.{mark}Answer: Yes"
    server.batches.writes_ascii = False
    server.batches.end()
    assert told(handed)["left"] == 0 and not server.requests
    assert all(mark in row["response_raw"] for row in of_store(handed, select(trials)))
    assert money(handed).total == pytest.approx(of_batches(server))


@pytest.mark.full
def test_a_batch_that_was_never_made_holds_no_money(study, server):
    with_models(study, remote("one", server, PRICE), budget="40 USD")
    server.batches.refuses_next = True
    assert invoke("run", study, "--batch").exit_code == 1
    (batch,) = status_of(study)["batches"]
    assert not batch["seen_at"] and not batch["is_collected"]
    assert invoke("run", study, "--batch").exit_code == 0
    out = money(study).set_aside
    server.batches.end()
    assert told(study)["left"] == 0
    assert out > 0 and money(study).set_aside == 0
    assert money(study).total == pytest.approx(of_batches(server))


def test_answers_of_a_changed_model_are_paid_for_in_the_books_and_kept(handed, server):
    server.batches.end()
    edit(handed, "probe: false", "temperature: 0.5, probe: false")
    refused = invoke("run", handed)
    assert refused.exit_code == 1 and "--if-changed" in refused.output, refused.output
    assert not server.requests
    assert money(handed).set_aside == 0 and money(handed).spent == pytest.approx(of_batches(server))
    # the change is taken back: they are stored, and cost nothing further
    edit(handed, "temperature: 0.5, probe: false", "probe: false")
    assert told(handed)["left"] == 0 and not server.requests
    assert money(handed).total == money(handed).spent == pytest.approx(of_batches(server))
    assert {row["temperature"] for row in of_store(handed, select(trials))} == {0.0}


@pytest.mark.full
def test_a_changed_model_goes_on_without_them_where_it_is_told_to(handed, server):
    edit(handed, "probe: false", "temperature: 0.5, probe: false")
    assert invoke("run", handed, "--batch").exit_code == 1
    assert len(server.batches.batches) == 1, "nothing is handed over before somebody decides"
    server.batches.end()
    result = invoke("run", handed, "--if-changed", "set_aside")
    assert result.exit_code == 0, result.output
    assert f"{TRIALS} answers" in result.stderr, result.stderr
    assert len(server.requests) == TRIALS
    spent = sum(row["cost_usd"] for row in of_store(handed, select(calls)))
    assert money(handed).total == pytest.approx(spent + of_batches(server))
    again = invoke("run", handed)
    assert again.exit_code == 0, "it was decided once"


@pytest.mark.full
def test_answers_that_were_stored_meanwhile_are_booked(handed, server, tmp_path):
    """The folder's note of what is out was away while a run went on."""
    (handed / "batches").rename(tmp_path / "away")
    assert told(handed)["left"] == 0
    (tmp_path / "away").rename(handed / "batches")
    server.batches.end()
    assert invoke("run", handed).exit_code == 0
    live = sum(row["cost_usd"] for row in of_store(handed, select(calls)))
    assert money(handed).total == pytest.approx(live + of_batches(server)) and money(handed).set_aside == 0
    assert len(of_store(handed, select(trials))) == TRIALS


def test_a_batch_can_be_given_up(handed, server):
    some = {line["custom_id"] for line in server.batches.lines("batch-0")[:10]}
    result = invoke("run", handed, "--cancel-batches")
    assert result.exit_code == 0 and "cancelling" in result.output, result.output
    assert not server.requests and len(server.batches.batches) == 1
    server.batches.end("cancelled", done=lambda key: key in some)
    assert told(handed)["answered"] == TRIALS and len(server.requests) == TRIALS - 10
    assert money(handed).set_aside == 0


@pytest.mark.full
def test_a_batch_that_the_provider_does_not_know_any_more_can_be_given_up(handed, server):
    aside = money(handed).set_aside
    server.batches.batches.clear()
    stopped = invoke("run", handed)
    assert stopped.exit_code == 1 and "--cancel-batches" in stopped.output, stopped.output
    assert not server.requests
    assert invoke("run", handed, "--cancel-batches").exit_code == 0
    assert money(handed).set_aside == 0 and money(handed).unknown == pytest.approx(aside)
    assert told(handed)["left"] == 0
