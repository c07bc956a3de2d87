"""A session goes on by its own token, a signed or personal link, or an experimenter; passes let pilots and simulated readers in."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from sqlalchemy import update

from experiment.people import session_cache as access
from experiment.people.recruitment.admission import invite
from experiment.store import queries
from experiment.store.tables import sessions
from tests.experiment.people.conftest import PIN
from tests.experiment.people.dashboard.conftest import Visitor, _cheap_hashes, people, visit

__all__ = ["_cheap_hashes", "people", "visit"]


def stored(site: Any) -> list[dict[str, Any]]:
    with site.store.read() as connection:
        return queries.sessions_overview(connection)


def test_a_known_platform_id_alone_never_returns_a_session_or_token(recruiting, prolific):
    site = recruiting("prolific")
    person = site.begin(platform=prolific)
    person.answer(0)
    for more in ({}, {"take": True}, {"take": True, "pin": "0000"}, {"pin": None}):
        for link in (prolific, {"PROLIFIC_PID": prolific["PROLIFIC_PID"]}):
            told = site.opening(platform=link, **more)
            assert told.status == 403
            assert not told.body.keys() & {"token", "session_id", "plan", "done"}
            assert "another browser" in told.body["error"] and "researchers" in told.body["mend"]
            assert told.body["title"] == "You have already begun this study"
    assert [row["state"] for row in stored(site)] == ["started"]
    assert person.answer(1).status == 201, "the session is not touched"


STATES = (
    *("started", "finished", "timed_out", "screened_out", "failed_practice", "failed_comprehension"),
    *("failed_checks", "stopped", "blocked", "ended"),
)


def test_a_known_id_alone_is_told_the_same_however_it_stands_with_its_session(recruiting, prolific):
    site = recruiting("prolific", if_interrupted="{then: resume, within: 10 min}")
    person = site.begin(platform=prolific)
    person.answer(0)
    link = {"PROLIFIC_PID": prolific["PROLIFIC_PID"]}
    told, pages = set(), set()
    for state in STATES:
        for seen in ("2026-01-01T00:00:00.000Z", "2126-01-01T00:00:00.000Z"):
            changed = update(sessions).values(state=state, last_seen_at=seen)
            site.store.write(lambda c, changed=changed: c.execute(changed).close()).result()
            answer = site.opening(platform=link)
            told.add((answer.status, answer.text))
            pages.add(site.caller().get(f"/small/?{urlencode(link)}").status)
            assert [row["state"] for row in stored(site)] == [state], "asking changes nothing"
    ((status, text),) = told
    assert status == 403 and "researchers" in text and "debrief" not in text
    assert pages == {200}
    assert site.opening(platform=link, client_uuid=person_uuid(site, person)).status == 409, (
        "its own browser is told"
    )


def person_uuid(site: Any, person: Any) -> str:
    with site.store.read() as connection:
        row = queries.session(connection, person.session_id)
    assert row is not None
    return str(row["client_uuid"])


def test_a_number_alone_is_told_the_same_however_it_stands_with_its_session(site):
    site.begin(participant="17").answer(0)
    told = set()
    for state in STATES:
        site.store.write(
            lambda c, state=state: c.execute(update(sessions).values(state=state)).close()
        ).result()
        answer = site.opening(participant="17")
        told.add((answer.status, answer.text))
    ((status, text),) = told
    assert status == 403 and "researchers" in text


def test_the_same_browser_goes_on_by_its_token_or_by_what_it_asked_under(recruiting, prolific):
    site = recruiting("prolific")
    token = str(uuid.uuid4())
    person = site.begin(platform=prolific, client_uuid=token)
    person.answer(0)
    lost_reply = site.begin(platform=prolific, client_uuid=token)
    assert (lost_reply.session_id, lost_reply.done) == (person.session_id, [[0, 1]])
    reload = person.caller.post(f"{person.base}/resume", {}, **person.auth)
    assert (reload.status, reload.body["done"]) == (200, [[0, 1]])


def test_a_personal_link_goes_on_in_another_browser(recruiting):
    site = recruiting("link", {})
    made = site.store.write(
        lambda c: invite(c, "small", ["ada"], base_url="https://x.org", days=None)
    ).result()
    token = parse_qs(urlsplit(made[0].link).query)["invitation"][0]
    first = site.begin(platform={"invitation": token})
    assert site.begin(platform={"invitation": token}).session_id == first.session_id


def test_a_lab_served_in_public_sends_people_to_the_researchers_not_to_a_pin(make_study, serve_study):
    site = serve_study(make_study(), config={"public_url": "https://study.example"})
    site.begin(participant="17")
    told = site.opening(participant="17", pin="0000")
    assert told.status == 403 and "another browser" in told.body["error"]


def resume_link(site: Any, visitor: Visitor, person: Any) -> dict[str, str]:
    """Make a link on the session's page; return its parameters."""
    key = person.session_id[:12]
    shown = visitor.get(f"/admin/small/sessions/{key}").text
    assert "Make a link to continue" in shown
    assert visitor.post(f"/admin/small/sessions/{key}/resume-link").status_code == 302
    told = visitor.get(f"/admin/small/sessions/{key}").text.replace("&amp;", "&")
    address = re.search(r"https?://\S+/small/\?resume=[\w.-]+", told)
    assert address is not None, told
    return {name: values[0] for name, values in parse_qs(urlsplit(address[0]).query).items()}


def test_an_experimenter_s_link_continues_a_session_once(site, visit):
    person = site.begin(participant="17")
    person.answer(0)
    assistant = visit("ben")
    link = resume_link(site, assistant, person)
    page = site.app.test_client().get("/small/", query_string=link).text
    assert f'"resume": "{link["resume"]}"' in page and '"ask_participant": false' in page
    token = str(uuid.uuid4())
    again = site.begin(platform=link, client_uuid=token)
    assert (again.session_id, again.done, again.status) == (person.session_id, [[0, 1]], 200)
    assert again.token != person.token
    assert again.answer(1).status == 201
    assert person.answer(2).status == 201, "answers on their way from the old browser are kept"
    spent = site.opening(platform=link)
    assert spent.status == 403 and "works once" in spent.body["error"]
    assert site.begin(platform=link, client_uuid=token).session_id == person.session_id, "a lost reply"
    told = [one for one in stored(site) if one["session_id"] == person.session_id]
    assert len(told) == len(stored(site)) == 1
    assert "made a link to continue" in visit("ada").get("/admin/small/audit").text


def test_a_resume_link_is_no_pass_for_anything_else_and_grows_old(site, visit, monkeypatch):
    person, other = site.begin(participant="17"), site.make_pass("pilot")
    link = resume_link(site, visit("ben"), person)
    assert site.opening(**{"pass": link["resume"]}).status == 403
    assert site.opening(platform={"resume": other}).status == 403
    assert site.opening(platform={"resume": "x" * 200}).status == 403
    monkeypatch.setitem(access.PASS_AGE, "resume", timedelta(seconds=-1))
    assert site.opening(platform=link).status == 403


def test_a_session_that_has_ended_gets_no_link(site, visit):
    person = site.begin(participant="17")
    person.event("consent", person.agreement)
    person.event("stop", {"then": "keep"})
    key = person.session_id[:12]
    visitor = visit("ben")
    assert "Make a link to continue" not in visitor.get(f"/admin/small/sessions/{key}").text
    assert visitor.post(f"/admin/small/sessions/{key}/resume-link").status_code == 400


def test_nobody_posts_a_simulated_session_without_the_pass(site, monkeypatch):
    passes = site.app.extensions["wrods"].passes
    others = [access.Passes(b"another key").make("small", "simulated"), passes.make("small", "pilot")]
    others += [passes.make("other", "simulated")]
    monkeypatch.setitem(access.PASS_AGE, "simulated", timedelta(seconds=-1))
    for given in ({}, *({"pass": one} for one in (*others, passes.make("small", "simulated")))):
        told = site.opening(**{"simulated": True} | given)
        assert told.status == 403 and "pass" in told.body["rule"]
    assert stored(site) == []


def test_a_pass_does_not_make_a_pilot_of_a_person_or_a_person_of_a_reader(site):
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated"), "participant": "17", "pin": PIN})
    site.begin(**{"pass": site.make_pass("pilot"), "participant": "17"})
    site.begin(**{"pass": site.make_pass("simulated"), "participant": "17"})
    told = {(row["reader"], row["reader_kind"], row["is_pilot"]) for row in stored(site)}
    assert told == {("S001", "simulated", False), ("T001", "human", True), ("17", "human", False)}
