"""Sessions at hand: planned trials are kept small, and only so many of them."""

from __future__ import annotations

from typing import Any

import pytest

from experiment.people import session_cache as live
from experiment.people.session_cache import PlannedTrials


def test_planned_trials_are_those_of_the_plan() -> None:
    trials = [
        {"trial_index": index, "shown": {"word": "Gärten"}, "choice_order": [1, 0]} for index in (3, 0, 7)
    ]
    planned = PlannedTrials(trials)
    assert dict(planned) == {trial["trial_index"]: trial for trial in trials}
    assert len(planned) == 3 and 7 in planned and 1 not in planned
    assert planned.get(1) is None


def test_the_sessions_at_hand_are_bounded_by_their_trials_and_none_is_lost(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [site.begin() for _ in range(6)]
    monkeypatch.setattr(live, "MOST_TRIALS", 2 * len(people[0].trials()))
    for index in range(3):
        for person in people:
            assert person.answer(index).status == 201
    known = site.app.extensions["wrods"].live
    assert len(known._known) == 2 and known._trials == 2 * len(people[0].trials())


def test_participants_requests_set_no_cookie_and_carry_every_header(site: Any) -> None:
    told = site.begin().answer(0)
    assert told.headers.get("Set-Cookie") is None and told.headers.get("Vary") is None
    for name in ("Content-Security-Policy", "Cross-Origin-Opener-Policy", "X-Content-Type-Options"):
        assert len(told.headers.get_all(name)) == 1
    assert told.headers["Cache-Control"] == "no-store"
