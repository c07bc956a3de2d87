"""The window: no waves, nothing read ahead without need, waiting requests hold no place, every stop is in order."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models import Request
from experiment.models.api.retrying import RunStopped
from experiment.models.api.sending import Limiter
from tests.experiment.models.api_requests import api_engine, choice, choices
from tests.scripted_openai import ScriptedOpenAI


def test_a_million_requests_are_read_only_as_there_is_room(server):
    read = []

    def planned() -> Iterator[Request]:
        for number in range(1_000_000):
            read.append(number)
            yield choice(number)

    engine = api_engine(server, concurrency=4)
    answered = 0
    for _ in engine.answer(planned()):
        answered += 1
        assert len(read) - answered <= 2 * 4 + 64 + 1
        if answered == 50:
            engine.close()
    assert 50 <= answered < 200


def test_a_request_told_to_wait_gives_its_place_back_and_the_others_go_on(server):
    server.always["trial 0 "] = ("429", "1")
    limiter = Limiter(start=1, cap=1)
    engine = api_engine(server, limiter, concurrency=1, pace=1.0)
    begun = time.monotonic()
    seen = []
    for reply in engine.answer(choices(20)):
        seen.append(reply.work_key)
        if len(seen) == 19:
            assert time.monotonic() - begun < 60
            waiting = engine.status()
            assert waiting.waiting == 1 and "429" in str(waiting.why)
            assert waiting.waiting_until is not None and waiting.waiting_until > time.time() - 5
            assert re.search(r"\d\d:\d\d:\d\d", str(waiting))
            server.always.clear()
    assert seen[-1] == "k0" and len(seen) == 20


def test_two_models_share_the_places_of_one_server(server):
    server.delay = 0.01
    limiter = Limiter(start=6, cap=6)
    replies: list[str] = []

    def ask(first: int) -> None:
        engine = api_engine(server, limiter, concurrency=6)
        replies.extend(reply.work_key for reply in engine.answer(choice(first + n) for n in range(60)))

    threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(replies) == len(set(replies)) == 120
    assert server.most_at_once <= 6


def test_a_caller_that_goes_away_ends_the_run(server):
    server.delay = 0.01
    for _ in api_engine(server).answer(choices(10_000)):
        break
    sent = len(server.requests)
    time.sleep(0.1)
    assert len(server.requests) == sent < 200


def test_a_network_that_comes_back_costs_no_request():
    with ScriptedOpenAI() as first:
        port = int(first.url.split(":")[2].split("/")[0])
        engine = api_engine(first, concurrency=2, pace=0.02)
        source = engine.answer(choices(40))
        replies = [next(source).work_key for _ in range(5)]
    later: list[ScriptedOpenAI] = []

    def come_back() -> None:
        time.sleep(0.3)
        later.append(ScriptedOpenAI(port=port).__enter__())

    thread = threading.Thread(target=come_back)
    thread.start()
    rest = list(source)
    thread.join()
    later[0].__exit__(None, None, None)
    assert sorted(replies + [reply.work_key for reply in rest]) == sorted(f"k{n}" for n in range(40))
    assert {reply.status for reply in rest} == {"answered"}


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://models.example.org/v1/chat/completions", "https://models.example.org/v1 "),
        ("/openai/v1/chat/completions", "/openai/v1 "),
        ("https://login.example.org/?next=1", "https://login.example.org/?next=1 "),
        ("", "base_url"),
    ],
)
def test_no_redirect_is_followed_with_the_key_and_where_it_leads_is_named(server, location, named):
    server.elsewhere = location
    for probe, sent in ((True, (1, 0)), (False, (1, 1))):
        with pytest.raises(RunStopped, match=r"30[278]") as stopped:
            list(api_engine(server, probe=probe, concurrency=1).answer(choices(50)))
        assert named in str(stopped.value)
        assert (len(server.probes), len(server.requests)) == sent


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def full(limiter: Limiter) -> None:
    while limiter.take():
        pass


def good_round(limiter: Limiter) -> None:
    full(limiter)
    for _ in range(limiter.limit):
        limiter.succeeded()


def test_places_double_in_good_rounds_until_the_cap():
    limiter = Limiter(start=4, cap=20)
    seen = []
    for _ in range(4):
        seen.append(limiter.limit)
        good_round(limiter)
    assert seen == [4, 8, 16, 20]


def test_an_episode_shrinks_once_and_growth_waits_as_long_as_the_server_said():
    clock = Clock()
    limiter = Limiter(start=50, cap=100, clock=clock)
    full(limiter)
    for _ in range(30):
        limiter.limited(99.0, 8.0)
    assert (limiter.limit, limiter.cuts) == (40, 1)
    good_round(limiter)
    assert limiter.limit == 40
    clock.now += 9
    good_round(limiter)
    assert limiter.limit == 44


def test_when_nothing_but_refusals_comes_back_nothing_is_sent_until_the_wait_is_over():
    clock = Clock()
    limiter = Limiter(start=4, cap=4, clock=clock)
    for _ in range(6):
        limiter.limited(99.0, 20.0)
    assert not limiter.take() and 19 < limiter.held_for() <= 20
    clock.now += 21
    assert limiter.take()


@given(st.lists(st.sampled_from(["take", "leave", "good", "limited", "later"]), max_size=200))
def test_places_stay_between_one_and_the_cap_and_no_more_are_taken(steps):
    clock = Clock()
    limiter = Limiter(start=3, cap=9, clock=clock)
    for step in steps:
        before = limiter.in_flight
        if step == "take":
            assert limiter.take() == (before < limiter.limit and limiter.held_for() == 0)
        elif step == "leave" and before:
            limiter.leave()
        elif step == "good" and before:
            limiter.succeeded()
        elif step == "limited" and before:
            limiter.limited(clock.now, 1.0)
        elif step == "later":
            clock.now += 3
        assert 1 <= limiter.limit <= 9 and limiter.in_flight >= 0
