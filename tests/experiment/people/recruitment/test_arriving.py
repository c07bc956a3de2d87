from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.people.recruitment.admission import invite
from experiment.store.erasure import forget_names
from experiment.store.tables import invitations, metadata, people, sessions
from stimuli.errors import UserError
from tests.experiment.people.conftest import MTURK, PROLIFIC, agreement, config_of, prolific_id


def invited(site: Any, names: list[str], **given: Any) -> list[dict[str, str]]:
    """Invite people; return what the page sends of each one's link."""
    base = "https://lab.example.org"
    made = site.do(lambda c: invite(c, site.service.study, names, base_url=base, **({"days": 7} | given)))
    assert all(one.link.startswith(f"{base}/small/?invitation=") for one in made)
    return [{"invitation": one.link.partition("invitation=")[2]} for one in made]


@pytest.mark.parametrize(
    ("recruit", "given", "rule", "told"),
    [
        ("prolific", {"STUDY_ID": "abc"}, "missing", "PROLIFIC_PID"),
        ("prolific", PROLIFIC | {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}, "unreplaced", "PROLIFIC_PID"),
        ("prolific", PROLIFIC | {"SESSION_ID": "{{%SESSION_ID%}}"}, "unreplaced", "SESSION_ID"),
        ("sona", {"survey_code": "%SURVEY_CODE%"}, "unreplaced", "survey_code"),
        ("mturk", {"workerId": "${workerId}"}, "unreplaced", "workerId"),
        ("link", {}, "uninvited", ""),
        ("link", {"invitation": "wrong"}, "unknown", ""),
        ("link", {"invitation": "AAAAAAAAAAAAAAAAAAAAAA"}, "unknown", ""),
        ("link", "expired", "expired", ""),
    ],
)
def test_a_link_that_cannot_be_is_explained_and_begins_nothing(recruiting, recruit, given, rule, told):
    site = recruiting(recruit, {})
    if recruit == "link":
        (old,) = invited(site, ["one"], days=-1)
        given = old if given == "expired" else given
    # browsers also send marks as they stand in the address
    bare = urlencode(given, safe="%$")
    for address in (urlencode(given), bare):
        page = site.caller().get(f"/small/?{address}")
        assert page.status == 403 and told in page.text and "wrods-config" not in page.text
    refused = site.opening(platform=given)
    assert (refused.status, refused.body["rule"]) == (403, rule)
    assert site.sessions == []


def test_the_preview_of_mturk_shows_the_consent_and_stores_nothing(recruiting):
    site = recruiting("mturk", {})
    worker = MTURK | {"turkSubmitTo": "https://www.mturk.com"}
    given = worker | {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    page = site.caller().get(f"/small/?{urlencode(given)}")
    assert page.status == 200
    assert "The consent" in page.text and "wrods-config" not in page.text
    assert site.opening(platform=given).status == 403
    assert site.sessions == []
    page = site.caller().get(f"/small/?{urlencode(worker)}&other=1").text
    assert config_of(page)["platform"] == worker, "the browser gets every parameter, and nothing else"


def test_simulated_readers_and_pilots_need_no_platform(recruiting):
    site = recruiting("prolific", wanted=1)
    for _ in range(2):
        simulated = {"simulated": True, "pass": site.make_pass("simulated")}
        assert site.opening(**simulated).status == 201
    given = site.make_pass("pilot")
    assert site.opening(**{"pass": given}).status == 201
    assert site.caller().get(f"/small/?pilot={given}").status == 200


def test_one_person_too_many_is_refused_with_the_reason_and_a_returned_place_reopens(recruiting, prolific):
    site = recruiting("prolific", wanted=2)
    given = [prolific | {"PROLIFIC_PID": prolific_id(name), "SESSION_ID": f"s-{name}"} for name in "abc"]
    first, second = (site.begin(platform=one) for one in given[:2])
    first.complete()
    third = site.opening(platform=given[2])
    assert third.status == 403 and third.body["rule"] == "busy"
    title = site.service.pack.texts["busy_title"]
    assert third.body["title"] == title and title in site.caller().get(f"/small/?{urlencode(given[2])}").text
    assert second.answer(0).status == 201, "who is under way goes on"
    site.change(second, state="returned")
    newcomer = site.begin(platform=given[2])
    assert site.session(newcomer)["list_id"] == site.session(second)["list_id"]
    newcomer.complete()
    fourth = site.opening(platform=prolific | {"PROLIFIC_PID": prolific_id("d")})
    assert fourth.body["rule"] == "full" and "Prolific" in fourth.body["mend"]


def test_overbooking_lets_more_begin_but_nobody_after_enough_have_finished(recruiting):
    site = recruiting("link", {}, wanted=1, overbook=1)
    first, second = site.begin(), site.begin()
    assert site.opening().body["rule"] == "busy"
    first.complete()
    assert site.opening().body["rule"] == "full"
    assert second.complete().status == 200, "who was let in may finish"


def test_a_personal_link_begins_one_session_in_any_browser_and_only_its_digest_is_stored(recruiting):
    site = recruiting("link", {})
    given, other = invited(site, ["ada@example.org", "grace@example.org"])
    assert len(given["invitation"]) == 22
    page = site.caller().get(f"/small/?{urlencode(given)}")
    assert page.status == 200 and config_of(page.text)["any_browser"]
    first = site.begin(platform=given)
    assert site.begin(platform=given).session_id == first.session_id
    assert given["invitation"] not in site.everything()
    (row,) = site.sessions
    assert row["participant_id"] == row["reader"] == "P001", "the name stays with the invitation"
    assert first.session_id in site.rows(invitations.c.session_id)
    first.complete()
    page = site.caller().get(f"/small/?{urlencode(given)}")
    assert page.status == 200 and "wrods-config" not in page.text
    assert "The debrief" in page.text, "whoever comes back in any browser is debriefed"
    assert site.opening(platform=given).body["rule"] == "again"
    another = site.begin(platform=other)
    assert another.session_id != first.session_id
    another.event("consent", {"agreed": False})
    again = site.begin(platform=other)
    assert again.session_id != another.session_id, "who declined may think better of it"


@pytest.mark.parametrize("signed_links", [None, "required"])
def test_a_personal_link_vouches_for_no_platform_id_beside_it(recruiting, prolific, signed_links):
    site = recruiting("prolific", **({} if signed_links is None else {"signed_links": signed_links}))
    passes = site.state.passes
    (link,) = invited(site, ["mallory"])
    mine = site.begin(platform=link)
    victim = site.begin(platform=prolific, **{"pass": passes.make("small", "arrival", **prolific)})
    told = site.opening(platform=link | prolific)
    assert told.status == 403, told.text
    assert "token" not in told.body
    assert site.begin(platform=link).session_id == mine.session_id != victim.session_id
    if signed_links:
        free = prolific | {"PROLIFIC_PID": prolific_id("somebody else")}
        assert site.opening(platform=link | free).body["rule"] == "unsigned"


def test_who_has_a_link_is_not_invited_twice_by_mistake(recruiting):
    site = recruiting("link", {})
    (old,) = invited(site, ["one"])
    with pytest.raises(UserError, match="one"):
        invited(site, ["one", "two"])
    (new,) = invited(site, ["one"], again=True)
    assert site.opening(platform=old).status == 403
    site.begin(platform=new)
    with pytest.raises(UserError, match="one"):
        invited(site, ["one"], again=True)


@pytest.mark.parametrize("is_kept", [False, True])
def test_address_and_user_agent_are_stored_only_where_the_study_says_so(recruiting, prolific, is_kept):
    privacy = "{keep_ip_address: true, keep_user_agent: true}" if is_kept else "{}"
    site = recruiting("prolific", privacy=privacy)
    body = {"client_uuid": "0123456789abcdef-1", "platform": prolific, "client": {"browser": "Chrome 140"}}
    header = {"User_Agent": "A very particular browser/9.1"}
    answer = site.caller().post("/api/small/sessions", body, **header)
    assert answer.status == 201
    before = site.everything()
    assert "A very particular browser" not in before and "127.0.0.1" not in before, "nobody has agreed yet"
    detail = agreement(answer.body["plan"])
    agreed = {"client_uuid": "0123456789abcdef-2", "kind": "consent", "detail": detail}
    address = f"/api/small/sessions/{answer.body['session_id']}/events"
    header["Authorization"] = f"Bearer {answer.body['token']}"
    assert [site.caller().post(address, agreed, **header).status for _ in range(2)] == [201, 200]
    kept = site.everything()
    assert kept.count("127.0.0.1") <= 1, "an agreement that arrives twice is noted once"
    assert ("A very particular browser" in kept) is is_kept
    assert ("127.0.0.1" in kept) is is_kept
    assert "Chrome 140" in kept, "the coarse class is kept anyway"


def test_platform_ids_stand_in_the_people_table_alone_and_versions_are_kept_coarse(recruiting, prolific):
    site = recruiting("prolific")
    client = {"browser": "Chrome 140.0.7339.81", "system": "iOS 17.5.1", "width": 1366.5}
    site.begin(platform=prolific, client=client).complete()
    elsewhere = {
        table.name: repr(site.rows(table)) for table in metadata.sorted_tables if table is not people
    }
    for name, rows in elsewhere.items():
        assert not any(value in rows for value in prolific.values()), name
    assert all(value in site.everything() for value in prolific.values())
    assert site.rows(sessions.c.client) == [{"browser": "Chrome 140", "system": "iOS 17", "width": 1366.5}]


def test_links_hold_to_one_session_each_when_their_names_are_forgotten(recruiting):
    site = recruiting("link", {})
    used, unused, nobody = invited(site, ["ada@example.org", "bob@example.org", "link-001"])
    site.begin(platform=used).complete()
    assert site.do(lambda connection: forget_names(connection, "small", "2999")) == 3
    left = site.everything()
    assert "ada@example.org" not in left and "bob@example.org" not in left
    assert "link-001" in left, "links for nobody in particular are counted on"
    assert site.opening(platform=used).body["rule"] == "again"
    first, second = (site.begin(platform=link) for link in (unused, nobody))
    assert first.session_id != second.session_id
    assert site.begin(platform=unused).session_id == first.session_id


@pytest.mark.parametrize("recruit", ["prolific", "sona", "mturk", "link"])
def test_no_link_breaks_the_page(recruiting, recruit):
    site = recruiting(recruit, {})
    invited(site, ["one"])
    visitor = site.app.test_client()
    names = (*PROLIFIC, "survey_code", "id", "workerId", "assignmentId", "invitation", "pilot", "x")

    @settings(max_examples=40, deadline=None)
    @given(st.dictionaries(st.sampled_from(names), st.text(max_size=300) | st.just("\0")))
    def visit(parameters: dict[str, str]) -> None:
        encoded = {name: value.encode("utf-8", "surrogatepass") for name, value in parameters.items()}
        answer = visitor.get(f"/small/?{urlencode(encoded)}")
        assert answer.status_code in (200, 403)
        assert "<script>alert" not in answer.text

    visit()
    page = visitor.get("/small/?PROLIFIC_PID={{<script>alert(1)</script>}}&workerId=${<script>alert(1)}")
    assert "<script>alert" not in page.text
    assert site.sessions == []
