"""A session goes on by its own token, a signed or personal link, or an experimenter; passes let pilots and simulated readers in."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from experiment.people import service as access
from tests.experiment.people.conftest import PIN, Visitor, page_of


def test_a_known_platform_id_alone_never_returns_a_session_or_token(recruiting, prolific):
    site = recruiting("prolific")
    person = site.begin(platform=prolific)
    person.answer(0)
    for more in ({}, {"take": True}, {"take": True, "pin": "0000"}, {"pin": None}):
        for link in (prolific, {"PROLIFIC_PID": prolific["PROLIFIC_PID"]}):
            told = site.opening(platform=link, **more)
            assert told.status == 403
            assert not told.body.keys() & {"token", "session_id", "plan", "done"}
            texts = site.service.pack.texts
            assert (told.body["title"], told.body["error"]) == (
                texts["begun_elsewhere_title"],
                texts["begun_elsewhere"],
            )
            assert told.body["mend"]
    assert [row["state"] for row in site.sessions] == ["started"]
    assert person.answer(1).status == 201, "the session is not touched"


STATES = (
    *("started", "finished", "timed_out", "screened_out", "failed_practice", "failed_comprehension"),
    *("failed_checks", "stopped", "blocked", "ended"),
)


@pytest.mark.parametrize("recruit", ["prolific", "lab"])
def test_a_known_id_or_number_alone_is_told_the_same_however_it_stands_with_its_session(
    recruiting, prolific, recruit
):
    site = recruiting(recruit, {}, if_interrupted="{then: resume, within: 10 min}")
    link = {"PROLIFIC_PID": prolific["PROLIFIC_PID"]}
    asking = {"platform": link} if recruit == "prolific" else {"participant": "17"}
    person = site.begin(**asking)
    person.answer(0)
    told, pages = set(), set()
    for state in STATES:
        for seen in ("2026-01-01T00:00:00.000Z", "2126-01-01T00:00:00.000Z"):
            site.change(state=state, last_seen_at=seen)
            answer = site.opening(**asking)
            told.add((answer.status, answer.text))
            pages.add(site.caller().get(f"/small/?{urlencode(link)}").status)
            assert [row["state"] for row in site.sessions] == [state], "asking changes nothing"
    ((status, text),) = told
    assert status == 403 and "researchers" in text and "debrief" not in text
    assert pages == {200}
    own = site.session(person)["client_uuid"]
    assert site.opening(**asking, client_uuid=own).status == 409, "its own browser is told"


def test_the_same_browser_goes_on_by_its_token_or_by_what_it_asked_under(recruiting, prolific):
    site = recruiting("prolific")
    token = str(uuid.uuid4())
    person = site.begin(platform=prolific, client_uuid=token)
    person.answer(0)
    lost_reply = site.begin(platform=prolific, client_uuid=token)
    assert (lost_reply.session_id, lost_reply.done) == (person.session_id, [[0, 1]])
    reload = person.post("resume", {})
    assert (reload.status, reload.body["done"]) == (200, [[0, 1]])


def test_a_lab_served_in_public_sends_people_to_the_researchers_not_to_a_pin(make_study, serve_study):
    site = serve_study(make_study(), config={"public_url": "https://study.example"})
    site.begin(participant="17")
    told = site.opening(participant="17", pin="0000")
    assert (told.status, told.body["error"]) == (403, site.service.pack.texts["begun_elsewhere"])


def resume_link(visitor: Visitor, person: Any) -> dict[str, str]:
    """Make a link on the session's page; return its parameters."""
    assert visitor.post(page_of(person, "resume-link")).status_code == 302
    told = visitor.get(page_of(person)).text.replace("&amp;", "&")
    address = re.search(r"https?://\S+/small/\?resume=[\w.-]+", told)
    assert address is not None, told
    return {name: values[0] for name, values in parse_qs(urlsplit(address[0]).query).items()}


def test_an_experimenter_s_link_continues_a_session_once(site, visit):
    person = site.begin(participant="17")
    person.answer(0)
    assistant = visit("ben")
    link = resume_link(assistant, person)
    page = site.app.test_client().get("/small/", query_string=link).text
    assert f'"resume": "{link["resume"]}"' in page and '"ask_participant": false' in page
    token = str(uuid.uuid4())
    again = site.begin(platform=link, client_uuid=token)
    assert (again.session_id, again.done, again.status) == (person.session_id, [[0, 1]], 200)
    assert again.token != person.token
    assert again.answer(1).status == 201
    assert person.answer(2).status == 201, "answers on their way from the old browser are kept"
    spent = site.opening(platform=link)
    assert spent.status == 403 and spent.body["error"] == site.service.pack.texts["resume_link_spent"]
    assert site.begin(platform=link, client_uuid=token).session_id == person.session_id, "a lost reply"
    assert [one["session_id"] for one in site.sessions] == [person.session_id]
    assert "made a link to continue" in visit("ada").get("/admin/small/audit").text


def test_a_resume_link_is_no_pass_for_anything_else_and_grows_old(site, visit, monkeypatch):
    person, other = site.begin(participant="17"), site.make_pass("pilot")
    link = resume_link(visit("ben"), person)
    assert site.opening(**{"pass": link["resume"]}).status == 403
    assert site.opening(platform={"resume": other}).status == 403
    assert site.opening(platform={"resume": "x" * 200}).status == 403
    monkeypatch.setitem(access.PASS_AGE, "resume", timedelta(seconds=-1))
    assert site.opening(platform=link).status == 403


def test_a_session_that_has_ended_gets_no_link(site, visit):
    person = site.begin(participant="17")
    person.event("consent", person.agreement)
    person.event("stop", {"then": "keep"})
    visitor = visit("ben")
    assert "resume-link" not in visitor.get(page_of(person)).text
    assert visitor.post(page_of(person, "resume-link")).status_code == 400


def test_nobody_posts_a_simulated_session_without_the_pass(site, monkeypatch):
    passes = site.state.passes
    others = [access.Passes(b"another key").make("small", "simulated"), passes.make("small", "pilot")]
    others += [passes.make("other", "simulated")]
    monkeypatch.setitem(access.PASS_AGE, "simulated", timedelta(seconds=-1))
    for given in ({}, *({"pass": one} for one in (*others, passes.make("small", "simulated")))):
        told = site.opening(**{"simulated": True} | given)
        assert told.status == 403 and "pass" in told.body["rule"]
    assert site.sessions == []


def test_a_pass_does_not_make_a_pilot_of_a_person_or_a_person_of_a_reader(site):
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated"), "participant": "17", "pin": PIN})
    site.begin(**{"pass": site.make_pass("pilot"), "participant": "17"})
    site.begin(**{"pass": site.make_pass("simulated"), "participant": "17"})
    told = {(row["reader"], row["reader_kind"], row["is_pilot"]) for row in site.sessions}
    assert told == {("S001", "simulated", False), ("T001", "human", True), ("17", "human", False)}
