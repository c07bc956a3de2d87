from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from experiment.people.recruitment import admission as invitations
from experiment.store.erasure import forget_names
from experiment.store.queries import sessions_overview
from experiment.store.tables import invitations as invitations_table
from experiment.store.tables import metadata, people, sessions
from stimuli.errors import UserError
from tests.experiment.people.conftest import agreement
from tests.experiment.people.recruitment.conftest import prolific_id

MTURK = {
    "workerId": "A1B2C3",
    "assignmentId": "3XYZ",
    "hitId": "3HIT",
    "turkSubmitTo": "https://www.mturk.com",
}


def query(given: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())


def stored(site: Any) -> list[dict[str, Any]]:
    with site.store.read() as connection:
        return sessions_overview(connection)


def everything_in(site: Any) -> str:
    with site.store.read() as connection:
        rows = [
            tuple(row) for table in metadata.sorted_tables for row in connection.execute(select(table)).all()
        ]
    return repr(rows)


def finish(participant: Any) -> Any:
    for index in range(len(participant.trials())):
        participant.answer(index)
    return participant.finish(len(participant.trials()))


def invited(site: Any, names: list[str], **given: Any) -> list[invitations.Invitation]:
    made: list[invitations.Invitation] = site.store.write(
        lambda connection: invitations.invite(
            connection, site.service.study, names, base_url="https://lab.example.org", **({"days": 7} | given)
        )
    ).result()
    return made


def test_a_link_without_the_platforms_number_is_explained_and_begins_nothing(recruiting, prolific):
    site = recruiting("prolific")
    page = site.caller().get("/small/?STUDY_ID=abc")
    assert page.status == 403
    assert "The link is incomplete" in page.text and "PROLIFIC_PID" in page.text and "Prolific" in page.text
    told = site.opening(platform={"STUDY_ID": "abc"})
    assert told.status == 403 and told.body["rule"] == "missing"
    assert stored(site) == []
    assert site.caller().get(f"/small/?{query(prolific)}").status == 200


@pytest.mark.parametrize(
    ("recruit", "name", "mark"),
    [
        ("prolific", "PROLIFIC_PID", "{{%PROLIFIC_PID%}}"),
        ("prolific", "SESSION_ID", "{{%SESSION_ID%}}"),
        ("sona", "survey_code", "%SURVEY_CODE%"),
        ("mturk", "workerId", "${workerId}"),
    ],
)
def test_a_mark_that_the_platform_did_not_replace_is_named(recruiting, prolific, recruit, name, mark):
    site = recruiting(recruit, {})
    given = ({**prolific} if recruit == "prolific" else {}) | {name: mark}
    page = site.caller().get(f"/small/?{query(given)}")
    assert page.status == 403
    assert "contains a placeholder" in page.text and name in page.text
    # browsers also send the marks as they stand in the address
    bare = site.caller().get(
        f"/small/?{name}={mark.replace('{', '%7B').replace('}', '%7D').replace(' ', '')}"
    )
    assert bare.status == 403
    assert site.opening(platform=given).body["rule"] == "unreplaced"
    assert stored(site) == []


def test_the_preview_of_mturk_shows_the_consent_and_stores_nothing(recruiting):
    site = recruiting("mturk", {})
    given = MTURK | {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    page = site.caller().get(f"/small/?{query(given)}")
    assert page.status == 200
    assert "The consent" in page.text and "wrods-config" not in page.text
    assert site.opening(platform=given).status == 403
    assert stored(site) == []
    page = site.caller().get(f"/small/?{query(MTURK)}&other=1").text
    config = json.loads(page.partition('id="wrods-config">')[2].partition("</script>")[0])
    assert config["platform"] == MTURK, "the browser gets every parameter, and nothing else"


def test_the_same_person_goes_on_and_is_told_after_the_end(recruiting, prolific):
    site = recruiting("prolific")
    first = site.begin(platform=prolific)
    assert site.opening(platform=prolific, take=True).status == 403, "an id alone continues nothing"
    assert finish(first).status == 200
    assert site.opening(platform=prolific).status == 403
    page = site.caller().get(f"/small/?{query(prolific)}")
    assert page.status == 200 and "You have already taken part" in page.text
    assert "C1DONE" in page.text and "https://app.prolific.com/submissions/complete?cc=C1DONE" in page.text
    assert len(stored(site)) == 1


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
    finish(first)
    third = site.opening(platform=given[2])
    assert third.status == 403 and third.body["rule"] == "busy"
    assert "All places are taken at the moment" in third.body["title"]
    assert "All places are taken" in site.caller().get(f"/small/?{query(given[2])}").text
    assert second.answer(0).status == 201, "who is under way goes on"
    list_id = next(row["list_id"] for row in stored(site) if row["session_id"] == second.session_id)
    site.store.write(
        lambda connection: (
            connection.execute(
                update(sessions).where(sessions.c.session_id == second.session_id).values(state="returned")
            )
            and None
        )
    ).result()
    newcomer = site.begin(platform=given[2])
    assert newcomer.plan["study"] == "small"
    row = next(row for row in stored(site) if row["session_id"] == newcomer.session_id)
    assert row["list_id"] == list_id
    finish(newcomer)
    fourth = site.opening(platform=prolific | {"PROLIFIC_PID": prolific_id("d")})
    assert fourth.body["rule"] == "full" and "return your place on Prolific" in fourth.body["mend"]


def test_overbooking_lets_more_begin_but_nobody_after_enough_have_finished(recruiting):
    site = recruiting("link", {}, wanted=1, overbook=1)
    first, second = site.begin(), site.begin()
    assert site.opening().body["rule"] == "busy"
    finish(first)
    assert site.opening().body["rule"] == "full"
    assert finish(second).status == 200, "who was let in may finish"


def test_a_personal_link_begins_one_session_and_resumes_it(recruiting):
    site = recruiting("link", {})
    made, other = invited(site, ["ada@example.org", "grace@example.org"])
    token = made.link.partition("invitation=")[2]
    assert made.link.startswith("https://lab.example.org/small/?invitation=") and len(token) == 22
    given = {"invitation": token}
    assert site.caller().get(f"/small/?{query(given)}").status == 200
    first = site.begin(platform=given)
    assert site.begin(platform=given).session_id == first.session_id
    finish(first)
    page = site.caller().get(f"/small/?{query(given)}")
    assert "You have already taken part" in page.text
    assert site.opening(platform=given).body["rule"] == "again"
    another = site.begin(platform={"invitation": other.link.partition("invitation=")[2]})
    assert another.session_id != first.session_id


@pytest.mark.parametrize("signed_links", [None, "required"])
def test_a_personal_link_vouches_for_no_platform_id_beside_it(recruiting, prolific, signed_links):
    site = recruiting("prolific", **({} if signed_links is None else {"signed_links": signed_links}))
    passes = site.app.extensions["wrods"].passes
    (made,) = invited(site, ["mallory"])
    link = {"invitation": made.link.partition("invitation=")[2]}
    mine = site.begin(platform=link)
    victim = site.begin(platform=prolific, **{"pass": passes.make("small", "arrival", **prolific)})
    told = site.opening(platform=link | prolific)
    assert told.status == 403, told.text
    assert "token" not in told.body
    assert site.begin(platform=link).session_id == mine.session_id != victim.session_id
    if signed_links:
        free = prolific | {"PROLIFIC_PID": prolific_id("somebody else")}
        assert site.opening(platform=link | free).body["rule"] == "unsigned"


def test_only_digests_of_personal_links_are_stored_and_names_stay_with_the_invitation(recruiting):
    site = recruiting("link", {})
    (made,) = invited(site, ["ada@example.org"])
    token = made.link.partition("invitation=")[2]
    session = site.begin(platform={"invitation": token})
    assert token not in everything_in(site)
    (row,) = stored(site)
    assert row["participant_id"] == row["reader"] == "P001"
    with site.store.read() as connection:
        assert connection.execute(select(invitations_table.c.session_id)).scalar() == session.session_id


def test_a_study_with_personal_links_lets_nobody_else_in(recruiting):
    site = recruiting("link", {})
    invited(site, ["one"])
    for token in ("", "wrong", "AAAAAAAAAAAAAAAAAAAAAA"):
        page = site.caller().get(f"/small/?invitation={token}")
        assert page.status == 403
        assert ("This link is not known" if token else "This study is by invitation only") in page.text
        given = {"invitation": token} if token else {}
        assert site.opening(platform=given).body["rule"] == ("unknown" if token else "uninvited")
    assert stored(site) == []


def test_an_expired_link_says_until_when_it_held(recruiting):
    site = recruiting("link", {})
    (made,) = invited(site, ["one"], days=-1)
    token = made.link.partition("invitation=")[2]
    page = site.caller().get(f"/small/?invitation={token}")
    assert "This link has expired" in page.text and (made.expires_at or "?")[:10] in page.text
    assert site.opening(platform={"invitation": token}).body["rule"] == "expired"


def test_who_has_a_link_is_not_invited_twice_by_mistake(recruiting):
    site = recruiting("link", {})
    (old,) = invited(site, ["one"])
    with pytest.raises(UserError, match="one: have a link already"):
        invited(site, ["one", "two"])
    (new,) = invited(site, ["one"], again=True)
    assert site.opening(platform={"invitation": old.link.partition("invitation=")[2]}).status == 403
    site.begin(platform={"invitation": new.link.partition("invitation=")[2]})
    with pytest.raises(UserError, match="took part"):
        invited(site, ["one"], again=True)


@pytest.mark.parametrize("is_kept", [False, True])
def test_address_and_user_agent_are_stored_only_where_the_study_says_so(recruiting, prolific, is_kept):
    privacy = "{keep_ip_address: true, keep_user_agent: true}" if is_kept else "{}"
    site = recruiting("prolific", privacy=privacy)
    body = {"client_uuid": "0123456789abcdef-1", "platform": prolific, "client": {"browser": "Chrome 140"}}
    header = {"User_Agent": "A very particular browser/9.1"}
    answer = site.caller().post("/api/small/sessions", body, **header)
    assert answer.status == 201
    before = everything_in(site)
    assert "A very particular browser" not in before and "127.0.0.1" not in before, "nobody has agreed yet"
    detail = agreement(answer.body["plan"])
    agreed = {"client_uuid": "0123456789abcdef-2", "kind": "consent", "detail": detail}
    address = f"/api/small/sessions/{answer.body['session_id']}/events"
    header["Authorization"] = f"Bearer {answer.body['token']}"
    assert [site.caller().post(address, agreed, **header).status for _ in range(2)] == [201, 200]
    kept = everything_in(site)
    assert kept.count("127.0.0.1") <= 1, "an agreement that arrives twice is noted once"
    assert ("A very particular browser" in kept) is is_kept
    assert ("127.0.0.1" in kept) is is_kept
    assert "Chrome 140" in kept, "the coarse class is kept anyway"


def test_platform_ids_stand_in_the_people_table_alone(recruiting, prolific):
    site = recruiting("prolific")
    finish(site.begin(platform=prolific))
    with site.store.read() as connection:
        elsewhere = {
            table.name: repr([tuple(row) for row in connection.execute(select(table)).all()])
            for table in metadata.sorted_tables
            if table is not people
        }
    for name, rows in elsewhere.items():
        assert not any(value in rows for value in prolific.values()), name
    assert all(value in everything_in(site) for value in prolific.values())


def test_a_used_link_is_good_for_nothing_more_when_the_name_is_forgotten(recruiting):
    site = recruiting("link", {})
    (made,) = invited(site, ["ada@example.org"])
    link = {"invitation": made.link.partition("invitation=")[2]}
    finish(site.begin(platform=link))
    assert site.store.write(lambda connection: forget_names(connection, "small", "2999")).result() == 2
    assert "ada@example.org" not in everything_in(site)
    assert site.opening(platform=link).body["rule"] == "again"
    assert len(stored(site)) == 1


def test_a_link_whose_name_is_forgotten_still_begins_its_one_session(recruiting):
    site = recruiting("link", {})
    made = invited(site, ["ada@example.org", "link-001"])
    assert site.store.write(lambda connection: forget_names(connection, "small", "2999")).result() == 1
    assert "link-001" in everything_in(site), "links for nobody in particular are counted on"
    links = [{"invitation": one.link.partition("invitation=")[2]} for one in made]
    first, second = (site.begin(platform=link) for link in links)
    assert first.session_id != second.session_id
    assert site.begin(platform=links[0]).session_id == first.session_id


def test_versions_of_browser_and_system_are_kept_coarse(recruiting):
    site = recruiting("link", {})
    site.begin(client={"browser": "Chrome 140.0.7339.81", "system": "iOS 17.5.1", "width": 1366.5})
    with site.store.read() as connection:
        (client,) = connection.execute(select(sessions.c.client)).scalars()
    assert client == {"browser": "Chrome 140", "system": "iOS 17", "width": 1366.5}


@pytest.mark.parametrize("recruit", ["prolific", "sona", "mturk", "link"])
def test_no_link_breaks_the_page(recruiting, recruit):
    site = recruiting(recruit, {})
    invited(site, ["one"])
    visitor = site.app.test_client()
    names = (
        "PROLIFIC_PID",
        "SESSION_ID",
        "survey_code",
        "id",
        "workerId",
        "assignmentId",
        "invitation",
        "pilot",
        "x",
    )

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
    assert stored(site) == []
