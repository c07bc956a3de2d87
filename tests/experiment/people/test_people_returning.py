"""Who comes back to a session, who may go on, in which tab, and what was shown by then."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from experiment.people import service as access
from experiment.store.session_activity import stamp
from tests.experiment.people.conftest import PIN, Visitor, page_of, settings_of

TABS = [f"tab-{name * 16}" for name in "abc"]


def interrupted(then: str, within: str | None = None) -> tuple[str, str]:
    limit = f", within: {within}" if within else ""
    return settings_of(f"if_interrupted: {{then: {then}{limit}}}")


def come_back(person: Any, tab: str | None = None, **body: Any) -> Any:
    return person.post("resume", body, **({"X_Wrods_Lease": tab} if tab else {}))


def hold(person: Any, tab: str, **body: Any) -> Any:
    return person.post("lease", body, X_Wrods_Lease=tab)


def left(site: Any, person: Any, minutes: float) -> None:
    """As if a session had been left some minutes ago."""
    moment = stamp(datetime.now(UTC) - timedelta(minutes=minutes))
    site.change(person, last_seen_at=moment, lease_until=moment)


def test_a_session_goes_on_where_it_was_left_with_what_was_shown(site):
    person = site.begin(participant="1")
    person.event("shown", {"trial_index": 0, "attempt": 1})
    assert person.answer(1, next=[2, 1]).status == 201
    again = come_back(person)
    assert (again.status, again.body["state"]) == (200, "started")
    assert again.body["done"] == [[1, 1]]
    assert again.body["shown"] == [[0, 1], [2, 1]]
    assert "token" not in again.body
    elsewhere = site.opening(participant="1", pin=PIN).body
    assert elsewhere["shown"] == [[0, 1], [2, 1]]
    looked = person.caller.get(person.base, **person.auth).body
    assert (looked["done"], looked["shown"]) == (again.body["done"], again.body["shown"])


def test_a_session_that_was_left_too_long_has_ended_and_says_so(make_study, serve_study):
    site = serve_study(make_study(interrupted("resume", "30 min")))
    person = site.begin(participant="1")
    person.event("consent", person.agreement)
    left(site, person, 29)
    assert come_back(person).status == 200
    left(site, person, 31)
    refused = come_back(person)
    assert (refused.status, refused.body["state"]) == (409, "timed_out")
    assert refused.body["error"] == site.service.pack.texts["timed_out"]
    row = site.session(person)
    assert (row["state"], row["ended_reason"]) == ("timed_out", "left for more than 30 min")
    by_number = site.opening(participant="1", pin=PIN)
    assert (by_number.status, by_number.body["error"]) == (409, refused.body["error"])


def test_answers_of_a_session_that_timed_out_are_kept_and_who_stayed_may_finish(make_study, serve_study):
    site = serve_study(make_study(interrupted("resume", "30 min")))
    person = site.begin(participant="1")
    left(site, person, 31)
    site.begin(participant="2")
    assert site.session(person)["state"] == "timed_out"
    assert [person.answer(index).status for index in range(5)] == [201] * 5
    assert person.leave().body["state"] == "timed_out", "a page that stops is told that this is the end"
    assert person.finish(5).status == 200
    assert site.session(person)["state"] == "finished"


def test_a_place_that_was_left_too_long_reopens_on_its_list_and_order(make_study, serve_study):
    site = serve_study(make_study(interrupted("resume", "10 min")))
    people = [site.begin(participant=str(number)) for number in range(4)]
    plans = [site.session(person)["plan"] for person in people]
    rows = {(plan["list_id"], plan["order_row"]) for plan in plans}
    assert rows == {(list_id, row) for list_id in (1, 2) for row in (0, 1)}
    left(site, people[0], 11)
    replaced = site.session(site.begin(participant="new"))["plan"]
    assert (replaced["list_id"], replaced["order_row"]) == (plans[0]["list_id"], plans[0]["order_row"])
    assert site.session(people[0])["state"] == "timed_out"


def test_restart_begins_a_new_session_and_keeps_the_old_one(make_study, serve_study):
    site = serve_study(make_study(interrupted("restart")))
    token = str(uuid.uuid4())
    person = site.begin(participant="1", client_uuid=token)
    assert site.begin(participant="1", client_uuid=token).session_id == person.session_id, "a lost reply"
    person.answer(0)
    again = site.begin(participant="1", pin=PIN)
    assert (again.status, again.done) == (201, [])
    assert again.session_id != person.session_id
    assert site.session(person)["state"] == "interrupted"
    assert [row["session_id"] for row in site.trials] == [person.session_id]
    told = come_back(person)
    assert (told.status, told.body["state"]) == (409, "interrupted")
    again.answer(0)
    assert come_back(again).body["state"] == "interrupted", "a reload counts as an interruption"


def test_only_the_browser_that_left_a_session_begins_the_next_one(make_study, serve_study):
    """Whoever knows an id could begin its next session, and have the earlier answers deleted from there."""
    site = serve_study(make_study(interrupted("restart")))
    tokens = [str(uuid.uuid4()) for _ in range(4)]
    person = site.begin(participant="1", client_uuid=tokens[0])
    person.answer(0)
    for round_ in (1, 2):
        assert come_back(person).body["state"] == "interrupted"
        for stranger in ({}, {"previous": tokens[3]}):
            told = site.opening(participant="1", **stranger)
            assert told.status == 403 and "token" not in told.body
        person = site.begin(participant="1", client_uuid=tokens[round_], previous=tokens[round_ - 1])
        person.answer(0)
    assert person.event("stop", {"then": "delete"}).status in (200, 201)
    assert site.trials == [], "the person's earlier answers are deleted too"


def test_block_refuses_with_an_explanation(make_study, serve_study):
    site = serve_study(make_study(interrupted("block")))
    person = site.begin(participant="1")
    assert come_back(person).status == 200, "nothing was recorded yet"
    person.event("consent", person.agreement)
    assert come_back(person).status == 200, "no trial was met yet: a reload at the consent shuts nobody out"
    person.event("shown", {"trial_index": 0, "attempt": 1})
    told = come_back(person)
    assert (told.status, told.body["state"]) == (409, "blocked")
    assert told.body["error"] == site.service.pack.texts["blocked"]
    assert site.opening(participant="1").status == 403
    assert person.answer(0).status == 201, "an answer on its way is kept all the same"


def test_a_second_tab_is_told_and_may_take_over(site):
    first, second, third = TABS
    person = site.begin(participant="1")
    assert come_back(person, first).status == 200
    told = come_back(person, second)
    assert (told.status, told.body["may_take"]) == (423, True)
    assert told.body["error"] == site.service.pack.texts["open_elsewhere"]
    assert hold(person, second).status == 423
    opened = {"participant": "1", "client_uuid": str(uuid.uuid4()), "pin": PIN}
    by_number = site.caller().post("/api/small/sessions", opened, X_Wrods_Lease=third)
    assert by_number.status == 423 and "plan" not in by_number.body
    assert come_back(person, second, take=True).status == 200
    assert hold(person, first).status == 423
    assert hold(person, first, take=True).status == 200
    assert hold(person, second).status == 423


def test_an_answer_from_the_tab_that_lost_its_session_is_kept_and_the_tab_is_told(site):
    first, second, _ = TABS
    person = site.begin(participant="1")
    come_back(person, first)
    come_back(person, second, take=True)
    person.agree()
    for index, headers in enumerate(({"X_Wrods_Lease": first}, {"X_Wrods_Lease": second}, {})):
        told = person.post("trials", person.payload(index), **headers)
        assert (told.status, told.body["elsewhere"]) == (201, index == 0), "what names no tab claims none"
    assert hold(person, second).status == 200


def test_a_lease_ends_half_a_minute_after_its_tab_was_heard_of_also_where_a_clock_was_set_back(site):
    first, second, _ = TABS
    person = site.begin(participant="1")
    come_back(person, first)
    until = datetime.fromisoformat(site.session(person)["lease_until"])
    assert timedelta(seconds=25) < until - datetime.now(UTC) <= timedelta(seconds=30)
    site.change(person, lease_until=stamp(datetime.now(UTC) - timedelta(seconds=1)))
    assert come_back(person, second).status == 200
    site.change(person, lease_until=stamp(datetime.now(UTC) + timedelta(hours=1)))
    assert come_back(person, first).status == 200


@pytest.mark.parametrize("then", ["restart", "block"])
def test_a_session_that_cannot_be_resumed_is_not_lost_to_a_second_tab(make_study, serve_study, then):
    site = serve_study(make_study(interrupted(then)))
    first, second, _ = TABS
    person = site.begin(participant="1")
    come_back(person, first)
    person.answer(0)
    told = come_back(person, second, take=True)
    assert (told.status, told.body["may_take"]) == (423, False)
    assert site.session(person)["state"] == "started"


def test_a_page_with_an_earlier_token_still_delivers_after_the_server_got_a_new_key(make_study, serve_study):
    study = make_study()
    site = serve_study(study, config={"secret": b"one signing key of a server"})
    before = site.begin(participant="1")
    restarted = serve_study(study, config={"secret": b"and another one after restart"})
    after = restarted.begin(participant="1", pin=PIN)
    assert after.session_id == before.session_id and after.token != before.token
    before.caller = restarted.caller()
    assert [before.answer(0).status, after.answer(1).status] == [201, 201]


def test_too_many_requests_of_one_session_wait_and_others_do_not(make_study, serve_study, monkeypatch):
    monkeypatch.setattr("experiment.people.server_state.SENDINGS_PER_MINUTE", 6)
    site = serve_study(make_study())
    person, other = site.begin(), site.begin()
    told = [person.answer(0) for _ in range(6)]
    assert [one.status for one in told] == [201, 200, 200, 200, 200, 429], "the agreement counts too"
    assert int(told[-1].headers["Retry-After"]) >= 1
    assert other.answer(0).status == 201


def test_a_session_cannot_fill_the_disk_with_events(make_study, serve_study, monkeypatch):
    monkeypatch.setattr("experiment.people.server_state.KILOBYTES_PER_HOUR", 64)
    site = serve_study(make_study())
    person, other = site.begin(), site.begin()
    assert person.event("blur", {"text": "x" * 40_000}).status == 413
    told = [person.event("blur", {"text": "x" * 20_000}).status for _ in range(4)]
    assert told[0] == 201 and told[-1] == 429
    assert other.answer(0).status == 201


def test_a_page_cannot_name_odd_trials_tabs_or_events_that_the_server_records_itself(site):
    person = site.begin()
    assert person.answer(1, next=[99, 1]).status == person.answer(1, next=[2]).status == 400
    for name in ("short", "x" * 65, "tab with blanks and more", "ünïcödé-ünïcödé-ün"):
        assert hold(person, name.encode("utf-8").decode("latin-1")).status == 400
    assert person.post("lease", {}).status == 400
    for kind in ("answers", "resumed", "ended_at_station", "ended_by_experimenter", "trial_conflict"):
        told = person.event(kind, {"by": "owner"})
        assert told.status == 400 and kind in str(told.body)


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
            assert told.body["title"] == texts["begun_elsewhere_title"]
            assert told.body["error"] == texts["begun_elsewhere"]
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
