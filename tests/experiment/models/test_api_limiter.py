"""Places at a server: more while all is well and they are used, fewer once in an episode of refusals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from experiment.models.api.limiter import Limiter


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
