"""Workers of a Ray cluster: every trial is answered once, as the local engine would, also when a worker is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from experiment.models.engine import Message, Reply, Request
from experiment.models.local import LocalEngine
from experiment.models.ray_engine import RayEngine, open_on_ray
from experiment.models.settings import ModelSettings

pytestmark = [pytest.mark.full]
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'wrods[ray]')")


def requests(number: int) -> list[Request]:
    return [
        Request(
            f"key-{n}",
            (Message("user", f"the {n} cats sleep on a mat " * (1 + n % 3)),),
            ("Yes", "No"),
            4,
            0.0,
            n,
        )
        for n in range(number)
    ]


def settings(folder: Path, **options: object) -> ModelSettings:
    return ModelSettings(f"hf:{folder}", {"workers": 2, **options})


@pytest.fixture(autouse=True, scope="module")
def _two_processors():
    ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_two_workers_answer_each_request_once_as_one_engine_does(plain_model) -> None:
    asked = requests(60)
    engine = RayEngine(settings(plain_model))
    replies = list(engine.answer(asked))
    about = engine.describe()
    engine.close()
    assert sorted(reply.work_key for reply in replies) == sorted(one.work_key for one in asked)
    alone = {one.work_key: one for one in LocalEngine(ModelSettings(f"hf:{plain_model}")).answer(asked)}
    for reply in replies:
        assert reply.label_logprobs == pytest.approx(alone[reply.work_key].label_logprobs, abs=1e-4)
    assert about["ray"]["workers"] == 2 and about["ray"]["lost"] == 0  # type: ignore[index]
    assert about["parameters"], "a worker says what it computed with"


def test_what_a_killed_worker_had_is_done_by_another_once(plain_model) -> None:
    asked = requests(1500)
    engine = RayEngine(settings(plain_model))
    replies: list[Reply] = []
    for reply in engine.answer(asked):
        replies.append(reply)
        if len(replies) == 5:
            os.kill(engine.worker_pids()[0], signal.SIGKILL)
    about = engine.describe()
    engine.close()
    keys = [reply.work_key for reply in replies]
    assert len(keys) == len(set(keys)) == 1500
    assert {reply.status for reply in replies} == {"answered"}
    assert about["ray"]["lost"] == 1  # type: ignore[index]


def test_what_follows_from_a_reply_is_answered_too(plain_model) -> None:
    first = requests(4)

    def follow(reply: Reply) -> list[Request]:
        number = int(reply.work_key.removeprefix("key-"))
        if number >= 100:
            return []
        return [Request(f"key-{number + 100}", (Message("user", "and then"),), ("Yes", "No"), 4, 0.0, 1)]

    engine = RayEngine(settings(plain_model))
    found = {reply.work_key for reply in engine.answer(first, follow)}
    engine.close()
    assert found == {f"key-{n}" for n in (0, 1, 2, 3, 100, 101, 102, 103)}


def test_a_request_that_kills_every_worker_is_set_aside(plain_model, monkeypatch) -> None:
    engine = RayEngine(settings(plain_model, workers=1))
    deadly = requests(3)
    replies = []
    losses = 0
    for reply in _killing(engine, deadly):
        replies.append(reply)
        losses += reply.status == "error"
    engine.close()
    assert len(replies) == 3 and losses == 3
    assert "3 workers were lost with this request" in (replies[0].error or "")


def _killing(engine: RayEngine, asked: list[Request]):
    """Answer with workers that die as soon as they are given work."""
    begin = engine._begin

    def doomed():
        worker = begin()
        os.kill(int(ray.get(worker.pid)), signal.SIGKILL)
        return worker

    engine._begin = doomed  # type: ignore[method-assign]
    yield from engine.answer(asked)


def test_other_models_are_opened_as_usual() -> None:
    assert open_on_ray(ModelSettings("baseline:random")).describe()["kind"] == "baseline"
