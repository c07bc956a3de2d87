"""Workers of a Ray cluster: every trial is answered once, as the local engine would, also when a worker is killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from experiment.models.engine import Message, ModelSettings, Reply, Request
from experiment.models.engines import open_engine
from experiment.models.engines.ray_engine import RayEngine, open_on_ray
from experiment.models.local import LocalEngine
from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
from experiment.store import open_store
from tests.experiment.models.running import TRIALS, begin, done, edit, stored, wait_until
from tests.experiment.models.running import with_models as with_local
from tests.experiment.models.test_planning import READ, with_models

pytestmark = [pytest.mark.full]
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'wrods[ray]')")


def requests(number: int) -> list[Request]:
    return [
        Request(
            f"key-{n}", (Message("user", f"the {n} cats sleep " * (2 + n % 5)),), ("Yes", "No"), 4, 0.0, n
        )
        for n in range(number)
    ]


def settings(folder: Path, **options: object) -> ModelSettings:
    return ModelSettings(f"hf:{folder}", {"workers": 2, **options})


def test_a_whole_run_loses_a_worker_and_prints_nothing_but_its_outcome(study, plain_model):
    with_local(study, f'base: {{use: "hf:{plain_model}"}}')
    edit(study, "prompt_variants: 1", "prompt_variants: 4")
    running = begin("run", study, "--engine", "ray", "--workers", "2", "--json")
    wait_until(lambda: running.poll() is not None or sum(map(sum_of, done(study).values())) >= 40, 600)
    os.kill(workers()[0], signal.SIGKILL)
    said, told = running.communicate(timeout=300)
    (outcome,) = json.loads(said)["models"]
    assert running.returncode == 0, told
    assert (outcome["answered"], outcome["left"]) == (4 * TRIALS, 0)
    keys = [row["work_key"] for row in stored(study)]
    assert len(keys) == len(set(keys)) == 4 * TRIALS
    assert outcome["engine"]["ray"]["lost"] == 1


def sum_of(counts: Counter[tuple[int, str]]) -> int:
    return sum(counts.values())


def workers() -> list[int]:
    """Return the processes of workers on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::_Work"):
                found.append(int(folder.name))
    return found


@pytest.fixture(scope="module")
def cluster():
    """Two processors, started once the test that has a cluster of its own is over."""
    for tries_left in (2, 1, 0):
        try:
            ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False)
            break
        except Exception:  # a busy machine may not start a node within Ray's 30 seconds
            ray.shutdown()
            if not tries_left:
                raise
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_a_request_that_kills_every_worker_is_set_aside(plain_model, monkeypatch):
    engine = RayEngine(settings(plain_model, workers=1))
    begin = engine._begin

    def doomed():
        worker = begin()
        os.kill(int(ray.get(worker.pid)), signal.SIGKILL)
        return worker

    monkeypatch.setattr(engine, "_begin", doomed)
    replies = list(engine.answer(requests(3)))
    engine.close()
    assert [reply.status for reply in replies] == ["error"] * 3
    assert "3 workers" in (replies[0].error or "")


def talk(first: int, length: int) -> tuple[list[Request], Any]:
    """Return the first turns of some conversations, and what follows from each reply."""
    opening = "the cats sleep on a mat and the dogs bark at them all night " * 3

    def turn(number: int, messages: tuple[Message, ...]) -> Request:
        return Request(f"{number}/{len(messages) // 2}", messages, ("Yes", "No"), 4, 0.0, 1)

    asked = {str(n): turn(n, (Message("user", f"{opening} {n}?"),)) for n in range(first)}
    sent = {one.work_key: one for one in asked.values()}

    def follow(reply: Reply) -> list[Request]:
        before = sent[reply.work_key].messages
        number = reply.work_key.partition("/")[0]
        if len(before) // 2 + 1 >= length:
            return []
        more = (Message("assistant", str(reply.text)), Message("user", "and then?"))
        now = turn(int(number), (*before, *more))
        sent[now.work_key] = now
        return [now]

    return list(asked.values()), follow


@pytest.mark.usefixtures("cluster")
def test_two_workers_answer_each_request_once_as_one_engine_does_until_they_are_closed(plain_model):
    """One start of two workers for trials of their own, conversations, and a run that is stopped."""
    engine, own = RayEngine(settings(plain_model)), LocalEngine(ModelSettings(f"hf:{plain_model}"))
    replies = list(engine.answer(requests(60)))
    assert sorted(reply.work_key for reply in replies) == sorted(one.work_key for one in requests(60))
    talks = list(engine.answer(*talk(6, 4)))
    assert len(talks) == len({reply.work_key for reply in talks}) == 24
    alone = {one.work_key: one for one in (*own.answer(requests(60)), *own.answer(*talk(6, 4)))}
    for reply in (*replies, *talks):
        assert reply.label_logprobs == pytest.approx(alone[reply.work_key].label_logprobs, abs=1e-4)
    later = [reply for reply in talks if not reply.work_key.endswith("/0")]
    assert all((reply.cached_tokens or 0) > 40 for reply in later), "a turn goes on from what is in memory"
    about = engine.describe()
    assert about["ray"]["workers"] == 2 and about["ray"]["lost"] == 0  # type: ignore[index]
    assert about["parameters"], "a worker says what it computed with"
    replies = []
    for reply in engine.answer(requests(3000)):
        replies.append(reply)
        if len(replies) == 20:
            engine.close()
    assert 20 <= len(replies) < 3000 and len({reply.work_key for reply in replies}) == len(replies)
    assert ray.is_initialized(), "the cluster is the tests' own"


@pytest.mark.usefixtures("cluster")
def test_what_a_killed_worker_had_is_done_by_another_once(plain_model):
    engine = RayEngine(settings(plain_model))
    replies: list[Reply] = []
    for reply in engine.answer(*talk(40, 4)):
        replies.append(reply)
        if len(replies) == 50:
            os.kill(ray.get(engine._workers[0].pid), signal.SIGKILL)
    about = engine.describe()
    engine.close()
    keys = [reply.work_key for reply in replies]
    assert len(keys) == len(set(keys)) == 160 and {reply.status for reply in replies} == {"answered"}
    assert about["ray"]["lost"] == 1  # type: ignore[index]


@pytest.mark.usefixtures("cluster")
def test_a_study_comes_out_as_without_ray_with_two_models_on_one_cluster(make_study, plain_model, chat_model):
    how = "strategy: unscramble_first, max_tokens: 12"
    who = f'a: {{use: "hf:{plain_model}", {how}}}, b: {{use: "hf:{chat_model}", {how}}}'
    answers = []
    for name, opener in (("ray", open_on_ray), ("local", open_engine)):
        study = make_study(with_models("context: independent", who=who), READ, name=name)
        with open_store(study.folder) as store:
            run = CommandRun(study, store, RunOptions(version=version_of(study, store), opener=opener))
            outcomes = run.run({one: {**given, "workers": 2} for one, given in study.models.items()})
        assert [(one.left, one.failed) for one in outcomes] == [(0, 0), (0, 0)], outcomes
        answers.append({row["work_key"]: row["response_raw"] for row in stored(study.folder)})
    assert answers[0] == answers[1] and len(answers[0]) == 2 * 2 * 4


def test_other_models_are_opened_as_usual():
    assert open_on_ray(ModelSettings("baseline:random")).describe()["kind"] == "baseline"
