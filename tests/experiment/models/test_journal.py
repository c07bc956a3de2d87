"""The journal of calls: what was answered is not paid again, and what was spent is never told as less than it is."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.models.api.retrying import judge_status
from experiment.models.journal import FILE, Journal, forget, intend, run_number
from experiment.models.leases import leased
from experiment.store import open_store
from experiment.store.erasure import note_due
from experiment.store.tables import calls, reservations
from stimuli.errors import UserError
from tests.experiment.models.running import (
    ROOT,
    TRIALS,
    begin,
    edit,
    invoke,
    of_store,
    remote,
    stored,
    with_models,
)

AT_ONCE = 4
"""Requests in flight of a model that ``remote`` names."""
USD_A_TOKEN = 10e-6


def money(study: Path) -> dict[str, Any]:
    return dict(json.loads(invoke("status", study, "--json").stdout)["money"])


def billed(server: Any) -> float:
    return sum(server.billed.values()) * USD_A_TOKEN


def bounds_what_was_billed(study: Path, server: Any) -> bool:
    """Say whether the sum that was certainly spent, and the most that may have been, are on both sides of the bill."""
    told = money(study)
    most = told["spent_usd"] + told["may_have_been_spent_usd"] + told["set_aside_usd"]
    return bool(told["spent_usd"] - 1e-9 <= billed(server) <= most + 1e-9)


def test_after_kills_no_more_is_paid_again_than_was_in_flight(study, server):
    """The server kills its client while it answers, once every twenty answers; the study's folder is named from elsewhere."""
    with_models(study, remote("m", server), budget="5 USD")
    kills, says, running, answered, done = 2, server.answer, [], [], []

    def answer(body: dict[str, Any]) -> str:
        answered.append(json.dumps(body))
        if len(answered) % 20 == 0 and len(done) < kills:
            done.append(running[-1])
            running[-1].send_signal(signal.SIGKILL)
        return str(says(body))

    server.answer = answer
    for _ in range(kills):
        running.append(begin("run", os.path.relpath(study, ROOT)))
        said = running[-1].communicate(timeout=300)
        assert running[-1].returncode == -signal.SIGKILL, said
        assert len(answered) - len(set(answered)) <= AT_ONCE * len(done)
        assert bounds_what_was_billed(study, server)
    assert invoke("run", study).exit_code == 0
    assert len(answered) - len(set(answered)) <= AT_ONCE * kills and bounds_what_was_billed(study, server)
    assert len(stored(study)) == TRIALS == len(set(answered))


def test_replies_that_a_killed_run_received_are_stored_without_another_request(study, server):
    """Until the store has a reply, the journal alone has it: here the store is put back to what it was before."""
    with_models(study, remote("m", server))
    assert invoke("run", study, "--max-trials", "8").exit_code == 0
    before = (study / "study.db").read_bytes()
    assert invoke("run", study).exit_code == 0
    first = {row["work_key"]: (row["response_raw"], row["prompt_tokens"]) for row in stored(study)}
    spent = money(study)["spent_usd"]
    (study / "study.db").write_bytes(before)
    result = invoke("run", study, "--json")
    (told,) = json.loads(result.stdout)["models"]
    assert len(server.requests) == TRIALS and told["cached"] == TRIALS - 8 and told["cost_usd"] == 0
    assert {row["work_key"]: (row["response_raw"], row["prompt_tokens"]) for row in stored(study)} == first
    assert money(study)["spent_usd"] == pytest.approx(spent) == pytest.approx(billed(server))
    of_journal = [row for row in of_store(study, select(calls)) if row["from_cache"]]
    assert len(of_journal) == TRIALS - 8 and all(row["latency_ms"] is None for row in of_journal)


def test_a_judge_is_not_paid_twice_for_replies_that_the_store_lost(study, server):
    with_models(study, remote("m", server, "price: free"), remote("j", server), budget="5 USD")
    assert invoke("run", study, "--model", "m", "--max-trials", "12").exit_code == 0
    before = (study / "study.db").read_bytes()
    for _ in range(2):
        assert invoke("score", study, "--judge", "j").exit_code == 0
        judged = [row for row in of_store(study, select(calls)) if row["purpose"] == "judge"]
        assert (len(judged), len(server.requests)) == (12, 24)
        of_judge = USD_A_TOKEN * sum(row["prompt_tokens"] + row["completion_tokens"] for row in judged)
        assert money(study)["spent_usd"] == pytest.approx(of_judge)
        (study / "study.db").write_bytes(before)


def test_a_judge_that_was_killed_holds_no_money_and_goes_on_at_its_next_start(study, server):
    with_models(study, remote("m", server), remote("j", server), budget="5 USD")
    assert invoke("run", study, "--model", "m", "--max-trials", "24").exit_code == 0
    says, running, judged = server.answer, [], []

    def answer(body: dict[str, Any]) -> str:
        judged.append(json.dumps(body))
        if len(judged) == 10:
            running[0].send_signal(signal.SIGKILL)
        return str(says(body))

    server.answer = answer
    running.append(begin("score", study, "--judge", "j"))
    running[0].communicate(timeout=100)
    assert running[0].returncode == -signal.SIGKILL and bounds_what_was_billed(study, server)
    killed = money(study)
    assert killed["set_aside_usd"] == 0 and killed["may_have_been_spent_usd"] > 0
    assert invoke("score", study, "--judge", "j").exit_code == 0
    assert 24 <= len(judged) <= 24 + AT_ONCE
    assert bounds_what_was_billed(study, server)


def test_requests_of_a_command_in_progress_are_not_counted_as_lost(study, server):
    with_models(study, remote("m", server))
    assert invoke("run", study, "--max-trials", "4").exit_code == 0
    with closing(Journal(study)) as journal:
        run = journal.write(lambda connection: run_number(connection, "positions", "judge-1", "judge j"))
        journal.write(lambda connection: intend(connection, run, "k", 0.25))
    with leased(study / "study.db", "positions", "judge j"):
        assert money(study)["set_aside_usd"] == 0.25
    assert money(study)["set_aside_usd"] == 0
    assert money(study)["may_have_been_spent_usd"] == 0.25


@pytest.mark.parametrize("loss", ["missing", "without its log"])
def test_a_journal_that_lacks_runs_is_reported_with_what_it_cannot_count(study, server, loss):
    """A study's folder is copied without its journal, or without the log of the journal that a killed run left."""
    with_models(study, remote("m", server), budget="5 USD")
    if loss == "without its log":
        with closing(Journal(study)) as journal, closing(sqlite3.connect(study / FILE)):
            journal.write(lambda connection: connection.execute("PRAGMA wal_autocheckpoint = 0"))
            assert invoke("run", study, "--max-trials", "4").exit_code == 0
            assert FILE not in invoke("status", study).output
            copied = (study / FILE).read_bytes()
        (study / FILE).write_bytes(copied)
    else:
        assert invoke("run", study, "--max-trials", "4").exit_code == 0
        assert FILE not in invoke("status", study).output
        (study / FILE).unlink()
    assert len(money(study)["runs_not_in_journal"]) == 1
    for arguments in (("status",), ("run", "--max-trials", "4"), ("status",)):
        result = invoke(arguments[0], study, *arguments[1:])
        assert result.exit_code == 0 and f"{FILE}-wal" in result.output, result.output
    assert len(money(study)["runs_not_in_journal"]) == 1


def test_what_makes_another_request_is_asked_anew(study, server):
    with_models(study, remote("m", server))
    assert invoke("run", study).exit_code == 0
    assert invoke("run", study, "--timing").exit_code == 0
    edit(study, "probe: false", "probe: false, temperature: 0.5")
    assert invoke("run", study, "--if-changed", "keep_both").exit_code == 0
    edit(study, "  prompt_variants: 1\n", "  prompt_variants: 1\n  replicates: 2\n")
    assert invoke("run", study, "--if-changed", "keep_both").exit_code == 0
    assert len(server.requests) == 4 * TRIALS
    assert not any(row["from_cache"] for row in of_store(study, select(calls)))


def test_a_reply_that_gives_no_answer_is_not_taken_again(study, server):
    server.always["Sunday"] = ("raw", json.dumps({"id": "x", "choices": []}))
    with_models(study, remote("m", server))
    assert invoke("run", study).exit_code == 1
    missing = TRIALS - len(stored(study))
    assert missing > 0 and bounds_what_was_billed(study, server)
    server.always.clear()
    asked = len(server.requests)
    assert invoke("run", study).exit_code == 0
    assert len(server.requests) == asked + missing


def test_one_reply_of_another_model_costs_no_answer_of_the_right_one(study, server):
    right, seen = server.model, []

    def answer(body: dict[str, Any]) -> str:
        seen.append(body)
        server.model = "another" if len(seen) == 40 else right
        return "Yes"

    server.answer = answer
    with_models(study, remote("m", server))
    result = invoke("run", study)
    assert result.exit_code == 1 and " another" in result.output
    assert len(stored(study)) == len(server.requests) - 1
    assert invoke("run", study).exit_code == 0
    assert len(stored(study)) == TRIALS == len(server.requests) - 1
    assert {row["resolved_model"] for row in of_store(study, select(calls))} == {right}


def test_replies_of_megabytes_are_cut_where_they_are_stored(study, server):
    endless = "Yes " + os.urandom(4_000_000).hex()
    server.always["Sunday"] = ("raw", json.dumps({
        "id": "x", "model": server.model, "choices": [{"message": {"content": endless}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 10**6},
    }))  # fmt: skip
    with_models(study, remote("m", server))
    assert invoke("run", study).exit_code == 0
    long = [row for row in stored(study) if len(row["response_raw"]) > 1000]
    assert long and {row["response_status"] for row in long} <= {"truncated", "valid"}
    assert sum(file.stat().st_size for file in study.glob("*.db*")) < len(long) * 1_000_000 + 4_000_000


@pytest.mark.parametrize("asked", ["601", "999999999"])
def test_a_long_wait_that_a_server_asks_for_ends_no_run(asked):
    verdict = judge_status(429, "{}", {"retry-after": asked})
    assert verdict.again and verdict.kind == "rate_limit"
    assert verdict.after == min(float(asked), 3600)


def test_a_reply_without_a_token_count_is_told_as_what_it_can_have_cost(study, server):
    server.always["Sunday"] = ("raw", json.dumps({
        "id": "x", "model": server.model, "choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}]
    }))  # fmt: skip
    with_models(study, remote("m", server))
    assert invoke("run", study).exit_code == 0
    told = money(study)
    assert told["may_have_been_spent_usd"] > 0 and bounds_what_was_billed(study, server)


def test_money_that_an_earlier_version_set_aside_or_booked_still_counts(study, server):
    with_models(study, remote("m", server), budget="1 USD")
    assert invoke("run", study, "--max-trials", "4").exit_code == 0
    before = money(study)
    rows = [
        {
            "name": f"{state}-1", "study": "positions", "run_id": "old", "reader": "m", "open_usd": usd, "state": state,
            "created_at": "2026",
        }
        for state, usd in (("booked", 0.1), ("lost", 0.2), ("batch", 0.3))
    ]  # fmt: skip
    with open_store(study) as store:
        store.write(lambda connection: connection.execute(reservations.insert(), rows)).result()
    after = money(study)
    assert after["spent_usd"] == pytest.approx(before["spent_usd"] + 0.1)
    assert (after["may_have_been_spent_usd"], after["set_aside_usd"]) == pytest.approx((0.2, 0.3))
    assert after["left_usd"] == pytest.approx(before["left_usd"] - 0.6)
    # a study without a journal, as earlier versions leave it, is counted by its calls
    (study / FILE).unlink()
    assert money(study)["spent_usd"] == pytest.approx(after["spent_usd"])


def test_a_journal_that_may_not_be_written_fails_at_once(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
        with pytest.raises(UserError, match=FILE):
            journal.write(lambda connection: run_number(connection, "s", "r", "m"))


def of_a_later_form(file: Path) -> None:
    Journal(file.parent).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 7")
        connection.commit()


def no_database(file: Path) -> None:
    file.write_bytes(b"this is no database" * 500)


def damaged(file: Path) -> None:
    Journal(file.parent).close()
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))


@pytest.mark.parametrize("spoil", [no_database, of_a_later_form, damaged, Path.mkdir])
def test_a_journal_that_cannot_be_read_is_left_as_it_is_and_nothing_is_sent(study, server, spoil):
    with_models(study, remote("m", server))
    spoil(study / FILE)
    before = (study / FILE).is_dir() or (study / FILE).read_bytes()
    result = invoke("run", study)
    assert result.exit_code == 1 and FILE in result.output, result.output
    assert not server.requests and before == ((study / FILE).is_dir() or (study / FILE).read_bytes())
    with pytest.raises(UserError, match=FILE):
        forget(study, {"k"})
    result = invoke("status", study)
    assert result.exit_code == 1 and FILE in result.output, result.output


def test_a_withdrawal_erases_replies_and_keeps_what_they_cost(study, server):
    server.answer = lambda body: "Yes, by a most private thought"
    with_models(study, remote("m", server))
    assert invoke("run", study, "--max-trials", "3").exit_code == 0
    keys = [row["work_key"] for row in stored(study)]
    spent = money(study)
    batches = study / "batches"
    batches.mkdir()
    lines = [
        json.dumps({"custom_id": f"{key}:reason", "response": {"body": f"said to {key}"}}) for key in keys
    ]
    (batches / "token.answers").write_text("\n".join(lines), "utf-8")
    old_bytes = batches / "another name"
    old_bytes.hardlink_to(batches / "token.answers")
    with open_store(study) as store:
        store.write(lambda connection: note_due(connection, "positions", keys[:1])).result()
    assert invoke("withdraw", study, "--again").exit_code == 0
    with closing(sqlite3.connect(study / FILE)) as connection:
        kept = {key for (key,) in connection.execute("SELECT work_key FROM calls JOIN replies USING (call)")}
    assert kept == set(keys[1:])
    assert (batches / "token.answers").read_text("utf-8").splitlines() == lines[1:]
    assert set(old_bytes.read_bytes()) == {0}
    assert money(study) == spent
