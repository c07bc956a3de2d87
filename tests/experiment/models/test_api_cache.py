"""The cache: keyed by everything that makes a request, marked, without times, and never across models or replicates."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.integrity.withdrawal import scrub
from experiment.models import Message, Reply, Request
from experiment.models.api import reply_cache
from experiment.models.api.batch import FOLDER
from experiment.models.api.formats import RequestOptions
from experiment.models.api.reply_cache import FILE, Cache, cache_key, forget_answers, forget_replies
from experiment.models.engine import RegionScore, Span
from experiment.store import open_store
from experiment.store.erasure import note_due
from stimuli.errors import UserError
from tests.experiment.models.api_requests import api_engine, choice, choices
from tests.experiment.models.running import invoke, remote, stored, with_models

ABOUT = {"engine": "openai", "base_url": "http://a/v1", "model": "m", "wishes": RequestOptions().describe()}


requests = st.builds(
    Request,
    work_key=st.just("k"),
    messages=st.lists(
        st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=6)), max_size=3
    ).map(tuple),
    labels=st.none() | st.lists(st.text(max_size=3), max_size=3).map(tuple),
    max_tokens=st.integers(1, 9),
    temperature=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 9),
    stop=st.lists(st.text(max_size=2), max_size=2).map(tuple),
    also_text=st.booleans(),
    regions=st.lists(st.builds(Span, st.integers(0, 2), st.integers(0, 2), st.integers(3, 5)), max_size=2).map(tuple),
    states=st.sampled_from([(), ("last",)]),
    top_p=st.sampled_from([0.9, 1.0]),
    top_k=st.none() | st.integers(1, 3),
    replicate=st.integers(1, 3),
)  # fmt: skip


@given(requests, requests)
def test_two_requests_have_one_key_only_when_they_are_the_same_in_every_field(one, other):
    assert (cache_key(ABOUT, one) == cache_key(ABOUT, other)) == (one == other)


def test_what_answers_and_every_wish_of_the_study_makes_the_key():
    about = [ABOUT, *({**ABOUT, name: "else"} for name in ("engine", "base_url", "model"))]
    for field in fields(RequestOptions):
        other = {"surface": "responses", "leading_space": False, "extra_body": {"a": 1}}.get(
            field.name, "else"
        )
        about.append({**ABOUT, "wishes": replace(RequestOptions(), **{field.name: other}).describe()})
    assert len({cache_key(one, choice(1)) for one in about}) == len(about)


def test_the_same_study_asks_nothing_twice_and_marks_what_it_did_not_ask(server, tmp_path):
    first = list(api_engine(server, folder=tmp_path).answer(choices(30)))
    asked = len(server.requests)
    second = list(api_engine(server, folder=tmp_path).answer(choices(30)))
    assert asked == len(server.requests) == 30
    assert not any(reply.from_cache for reply in first) and all(reply.from_cache for reply in second)
    assert all(reply.cost_usd == 0.0 and reply.latency_ms is None for reply in second)
    told = {reply.work_key: (reply.text, reply.prompt_tokens, reply.finish_reason) for reply in first}
    assert told == {
        reply.work_key: (reply.text, reply.prompt_tokens, reply.finish_reason) for reply in second
    }


def test_faults_empty_and_cut_answers_are_not_kept(server, tmp_path):
    server.always = {"trial 1 ": "400", "trial 2 ": "empty", "trial 3 ": "length", "trial 4 ": "refusal"}
    statuses = {
        reply.work_key: reply.status for reply in api_engine(server, folder=tmp_path).answer(choices(6))
    }
    assert statuses["k3"] == "truncated"
    server.always.clear()
    again = {
        reply.work_key: reply.from_cache for reply in api_engine(server, folder=tmp_path).answer(choices(6))
    }
    assert again == {"k0": True, "k1": False, "k2": False, "k3": False, "k4": True, "k5": True}


def test_timed_runs_neither_read_nor_write_the_cache(server, tmp_path):
    list(api_engine(server, folder=tmp_path).answer(choices(3)))
    timed = list(api_engine(server, folder=tmp_path, timing=True).answer(choices(3)))
    assert len(server.requests) == 6 and all(reply.latency_ms for reply in timed)


def test_a_withdrawal_leaves_no_byte_of_an_answer(tmp_path):
    cache = Cache(tmp_path / FILE)
    cache.keep("a", Reply("work-a", "a most private text", "answered"))
    cache.keep("b", Reply("work-b", "another", "answered"))
    cache.keep("c", Reply("work-a:reason", "a most private thought", "answered"))
    assert cache.forget(["work-a", "work-z"]) == 2
    assert cache.find("a", choice(1)) is None and cache.find("b", choice(1)) is not None
    cache.close()
    assert forget_answers(tmp_path, ["work-b"]) == 1 and forget_answers(tmp_path / "none", ["work-b"]) == 0
    assert not any(b"most private" in file.read_bytes() for file in tmp_path.iterdir())


def test_all_that_a_reply_says_comes_back(tmp_path):
    reply = Reply(
        "k1", "A", "answered", {"A": -0.1}, 10, 2, 3, 1, None, None, "stop", "m", "m-1", path="chat+logprobs",
        generated="A.", reasoning="because", regions=(RegionScore(1.5, 2), RegionScore(None, 1)),
        label_bounds={"B": -4.0},
    )  # fmt: skip
    cache = Cache(tmp_path / FILE)
    cache.keep("key", reply)
    cache.close()
    again = Cache(tmp_path / FILE)
    assert again.find("key", choice(1)) == replace(reply, from_cache=True)
    again.close()


def another_database(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE sessions (name TEXT)")
        connection.commit()


def of_another_form(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, reply TEXT)")
        connection.commit()


def of_a_later_form(file: Path) -> None:
    Cache(file).close()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 7")


def no_database(file: Path) -> None:
    file.write_bytes(b"this is no database" * 500)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (no_database, "file is not a database"),
        (another_database, "it is another database"),
        (of_another_form, "written by another version of wrods (form 0"),
        (of_a_later_form, "written by another version of wrods (form 7; this one reads 1)"),
    ],
)
def test_a_cache_that_cannot_be_used_is_told_once_and_left_as_it_is(server, tmp_path, spoil, why):
    file = tmp_path / FILE
    spoil(file)
    before = file.read_bytes()
    engine = api_engine(server, folder=tmp_path)
    said: list[str] = []
    engine.cache.say = said.append
    for _ in range(2):
        assert len(list(engine.answer(choices(5)))) == 5
    (line,) = said
    assert str(file) in line and why in line and "No answer is taken from it" in line
    assert file.read_bytes() == before and len(server.requests) == 10
    with pytest.raises(UserError, match="may hold answers that are to be erased"):
        forget_answers(tmp_path, ["k1"])


def test_an_answer_in_the_cache_that_cannot_be_read_is_told_and_asked_anew(server, tmp_path):
    list(api_engine(server, folder=tmp_path).answer(choices(5)))
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("UPDATE answers SET reply = '[1]'")
        connection.commit()
    engine = api_engine(server, folder=tmp_path)
    said: list[str] = []
    engine.cache.say = said.append
    assert [one.from_cache for one in engine.answer(choices(5))] == [False] * 5
    assert len(said) == 1 and FILE in said[0]


def test_a_run_says_that_its_cache_cannot_be_used(study, server):
    with_models(study, remote("m", server).replace("cache: false, ", ""))
    no_database(study / FILE)
    done = invoke("run", study, "--max-trials", "3")
    assert done.exit_code == 0, done.output
    assert (
        done.stderr.count("cannot be used: file is not a database") == 1
        and f"m: {study / FILE}" in done.stderr
    )


def test_outside_a_study_nothing_is_kept(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    list(api_engine(server).answer(choices(2)))
    assert list(tmp_path.iterdir()) == []


def test_a_withdrawal_erases_replies_from_the_cache_and_from_batches(study, server):
    with_models(study, remote("m", server).replace("cache: false, ", ""))
    assert invoke("run", study, "--max-trials", "3").exit_code == 0
    keys = [row["work_key"] for row in stored(study)]
    (study / "batches").mkdir()
    answers = study / "batches" / "token.answers"
    lines = [{"custom_id": key, "response": {"body": f"said to {key}"}} for key in keys]
    answers.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    with open_store(study) as store:
        store.write(lambda connection: note_due(connection, "positions", keys[:1])).result()
        scrubbed = scrub(store, "positions", study)
        assert (scrubbed.replies, scrubbed.left) == (2, [])
    with contextlib.closing(sqlite3.connect(study / FILE)) as connection:
        kept = {key for (key,) in connection.execute("SELECT work_key FROM answers")}
    assert kept == set(keys[1:])
    assert [json.loads(line)["custom_id"] for line in answers.read_text("utf-8").splitlines()] == keys[1:]
    no_database(study / FILE)
    with open_store(study) as store:
        store.write(lambda connection: note_due(connection, "positions", keys)).result()
        (told,) = scrub(store, "positions", study).left
    assert FILE in told and "Delete the file" in told and not answers.exists()


def answers_of_a_batch(folder: Path, *work: str) -> Path:
    file = folder / FOLDER / "b1.answers"
    file.parent.mkdir(parents=True)
    lines = [json.dumps({"custom_id": f"{key}:1", "said": f"reply to {key}"}) for key in work]
    file.write_text("\n".join(lines), "utf-8")
    return file


def test_replies_go_from_the_file_and_from_the_bytes_that_it_had(tmp_path):
    file = answers_of_a_batch(tmp_path, "kept", "withdrawn")
    beside = tmp_path / "old bytes"
    beside.hardlink_to(file)
    assert forget_replies(tmp_path, ["withdrawn"]) == (1, [])
    assert "reply to kept" in file.read_text("utf-8") and "withdrawn" not in file.read_text("utf-8")
    assert set(beside.read_bytes()) == {0}


def test_replies_that_stay_outlast_an_end_in_the_middle(tmp_path, monkeypatch):
    file = answers_of_a_batch(tmp_path, "kept", "withdrawn")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for owner, step in ((reply_cache, "replace_file"), (os, "fsync")):
        with monkeypatch.context() as at:
            at.setattr(owner, step, killed)
            with pytest.raises(KeyboardInterrupt):
                forget_replies(tmp_path, ["withdrawn"])
        assert "reply to kept" in file.read_text("utf-8"), step
