"""Sessions at hand: planned trials are kept small, and only so many of them."""

from __future__ import annotations

from experiment.people import session_cache as live


def test_the_sessions_at_hand_are_bounded_by_their_trials_and_none_is_lost(site, monkeypatch):
    people = [site.begin() for _ in range(6)]
    monkeypatch.setattr(live, "MOST_TRIALS", 2 * len(people[0].trials()))
    for index in range(3):
        for person in people:
            assert person.answer(index).status == 201
    known = site.app.extensions["wrods"].live
    assert len(known._known) == 2 and known._trials == 2 * len(people[0].trials())
