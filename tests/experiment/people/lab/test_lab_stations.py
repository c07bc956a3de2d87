"""Sessions belong to the number that the experimenter enters: continued, ended with a reason, or refused."""

from __future__ import annotations

import http.client
from typing import Any

import pytest

from experiment.people.lab.settings import Lab, set_lab, written
from experiment.store.erasure import UNDECIDED, number_of
from tests.experiment.people.conftest import PIN


def ask(site: Any, **body: Any) -> Any:
    return site.caller().post("/api/small/station/start", body)


def end(site: Any, **body: Any) -> Any:
    return site.caller().post("/api/small/station/end", {"pin": PIN} | body)


@pytest.mark.parametrize(
    ("typed", "number"),
    [("P014", "P014"), ("p14", "P014"), (" 14 ", "P014"), ("P0014", None), ("Q014", None), ("P", None)],
)
def test_numbers_are_written_as_the_study_has_them(typed, number):
    assert written(typed, "P###") == number


def test_a_number_is_new_then_unfinished_then_finished(site):
    assert ask(site, participant="P014").body["state"] == "new"
    person = site.begin(participant="P014", station="Station 07")
    for index in range(3):
        assert person.answer(index).status == 201
    told = ask(site, participant="P014").body
    assert told["state"] == "unfinished"
    (left,) = told["unfinished"]
    # trial 0 is practice: two of four test trials are done
    assert (left["participant"], left["next_trial"], left["trials"]) == ("P014", 3, 4)
    assert left["station"] == "Station 07"
    for index in (3, 4):
        person.answer(index)
    (left,) = ask(site, participant="P014").body["unfinished"]
    assert (left["next_trial"], left["trials"]) == (5, 4), "no trial is left, the session is not over"
    assert person.finish(5).status == 200
    told = ask(site, participant="P014").body
    assert told["state"] == "finished" and told["unfinished"] == []


def test_a_station_lists_its_own_unfinished_sessions_only(site):
    site.begin(participant="P001", station="Station 01")
    site.begin(participant="P002", station="Station 02")
    site.begin(participant="P003", station="Station 02")
    there = ask(site, station="Station 02").body["unfinished"]
    assert sorted(one["participant"] for one in there) == ["P002", "P003"]
    assert ask(site, station="Station 09").body["unfinished"] == []
    assert ask(site).body["unfinished"] == []


def test_a_session_goes_on_at_another_station_which_is_noted(site):
    first = site.begin(participant="P014", station="Station 07")
    first.answer(0)
    second = site.begin(participant="P014", station="Station 03", take=True, pin=PIN)
    assert second.session_id == first.session_id and second.done == [[0, 1]]
    (row,) = site.sessions
    assert row["station"] == "Station 03"
    (resumed,) = (one for one in site.events if one["kind"] == "resumed")
    assert resumed["detail"]["station"] == "Station 03"


def test_a_session_ended_with_a_reason_keeps_its_answers_and_refuses_its_number(site):
    person = site.begin(participant="P014", station="Station 07")
    person.answer(0)
    person.answer(1)
    assert end(site, participant="P014", reason="  ").status == 400, "it needs a reason and a session"
    assert end(site, participant="P015", reason="x").status == 404
    for headers in ({"Origin": "https://evil.example"}, {"X_Wrods": ""}):
        body = {"participant": "P014", "reason": "x", "pin": PIN}
        assert site.caller().post("/api/small/station/end", body, **headers).status == 403
    assert end(site, participant="P014", reason=" fire alarm ", station="Station 07").body == {"ended": True}
    (row,) = site.sessions
    assert (row["state"], row["ended_reason"], row["n_trials"]) == ("ended", "experimenter: fire alarm", 2)
    assert end(site, participant="P014", reason="once more").status == 200
    assert site.sessions[0]["ended_reason"] == "experimenter: fire alarm"
    assert ask(site, participant="P014").body["state"] == "ended"
    assert site.opening(participant="P014").status == 403
    refused = site.opening(participant="P014", pin=PIN)
    assert (refused.status, refused.body["state"]) == (409, "ended"), "an experimenter is told why"
    assert ask(site, station="Station 07").body["unfinished"] == []
    assert person.answer(2).status == 201, "trials that waited at the station are stored"
    assert site.sessions[0]["n_trials"] == 3 and site.sessions[0]["state"] == "ended"


def test_a_number_that_was_mistyped_is_free_again_when_it_is_ended_before_the_first_trial(site):
    site.begin(participant="P041").answer(0)  # practice
    end(site, participant="P041", reason="mistyped")
    assert ask(site, participant="P041").body["state"] == "new"
    assert site.begin(participant="P041").status == 201


def test_a_session_ended_before_consent_is_erased_and_counted(site):
    site.begin(participant="P041").event("answers", {"diagnosis": "a very particular one"})
    assert end(site, participant="P041", reason="walked out").body == {"ended": True}
    with site.store.read() as connection:
        assert number_of(connection, "small", UNDECIDED) == 1
    left = site.everything()
    assert "P041" not in left and "a very particular one" not in left


@pytest.mark.parametrize("pin", [PIN, None])
def test_nobody_continues_or_ends_a_session_without_the_pin(site, pin):
    set_lab(site.app, Lab(pin=pin))
    person = site.begin(participant="P014")
    person.answer(0)
    for wrong in ({"pin": None}, {"pin": "0000"}, {"pin": "None"}, {"pin": ""}):
        assert site.opening(participant="P014", **wrong).status == 403
        assert end(site, participant="P014", reason="x", **wrong).status == 403
    assert site.opening(participant="P015").status == 201, "a new participant needs none"
    expected = 403 if pin is None else 200
    assert site.opening(participant="P014", pin=PIN).status == expected
    assert end(site, participant="P014", reason="x", pin=PIN).status == expected


def at(site: Any, address: str) -> Any:
    """Return the browser of a station with an address of its own."""
    caller = site.caller()
    caller.connection = http.client.HTTPConnection(
        "127.0.0.1", site.port, timeout=60, source_address=(address, 0)
    )
    return caller


def test_pins_cannot_be_tried_out_from_one_station_or_many_and_the_experimenter_is_not_kept_out(site):
    site.begin(participant="P014")

    def tries(address: str, *pins: str) -> list[int]:
        station = at(site, address)
        given = ({"participant": "P014", "reason": "x", "pin": pin} for pin in pins)
        told = [station.post("/api/small/station/end", body) for body in given]
        assert all("Wait" in one.body["mend"] for one in told if one.status == 429)
        return [one.status for one in told]

    wrong = [f"{number:04}" for number in range(10)]
    assert tries("127.0.7.1", *wrong, *wrong[:2]) == [403] * 10 + [429] * 2
    for host in range(2, 40):
        assert tries(f"127.0.7.{host}", *wrong) == [403] + [429] * 9
    assert tries("127.0.7.1", PIN) == [429], "the right one is not looked at either"
    assert tries("127.0.7.77", PIN) == [200], "at a station of the same network"
