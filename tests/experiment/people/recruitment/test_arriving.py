from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.people.recruitment.admission import invite
from experiment.people.recruitment.codes import lines_to_add, missing_lines, recruitment_for
from experiment.people.recruitment.return_links import failed_checks, return_for
from experiment.store.erasure import forget_names
from experiment.store.tables import invitations, metadata, people, sessions
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.people.conftest import MTURK, PROLIFIC, agreement, config_of, prolific_id, settings_of


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

    @settings(max_examples=15, deadline=None)
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


SONA_URL = "https://school.sona-systems.com/webstudy_credit.aspx?experiment_id=123&credit_token=abc9"


def if_left(site: Any, given: dict[str, str]) -> dict[str, Any]:
    """What a page knows from the start of the way back of who declines or stops: it needs no session for that."""
    return dict(config_of(site.caller().get(f"/small/?{urlencode(given)}").text)["if_left"])


def recruitment(make_study: Callable[..., Study], recruit: str, config: dict[str, Any]) -> Any:
    study = make_study(settings_of(f"recruit: {recruit}"))
    return recruitment_for(study, {"recruitment": {"small": config}})


def test_who_finishes_declines_or_deletes_on_prolific_goes_back_with_a_code(recruiting, prolific):
    site = recruiting("prolific")
    told = if_left(site, prolific)
    assert told["completion_code"] == "C2NOCON"
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=C2NOCON"
    assert site.sessions == []
    told = site.begin(platform=prolific).complete().body
    assert told["completion_code"] == "C1DONE"
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=C1DONE"
    assert told["return_by_itself"] is True and "Prolific" in told["return_text"]


@pytest.mark.parametrize(
    ("event", "code"),
    [(("stop", {"then": "keep"}), "C2NOCON"), (("device", {"passed": False, "missed": ["screen"]}), None)],
)
def test_who_stops_has_a_code_and_whose_device_does_not_fit_returns_the_place(
    recruiting, prolific, event, code
):
    """Only the browser knows the device, and a script can report any: such an end is never paid by a code."""
    site = recruiting("prolific", eligible="{device: computer}")
    participant = site.begin(platform=prolific)
    participant.event("consent", participant.agreement)
    assert participant.event(*event).status == 201
    told = participant.leave().body
    assert told["completion_code"] == code
    if code is None:
        assert told["return_url"] is None
        assert told["return_text"] == site.service.pack.texts["return_prolific_screened_out"]
    else:
        assert told["return_url"].endswith(f"?cc={code}")


@pytest.mark.parametrize("event", [("device", {"passed": False}), ("practice", {"then": "end"})])
def test_an_end_that_the_plan_does_not_have_brings_no_code(make_study, serve_study, event):
    """Else a script is paid for a screening that the study does not have."""
    participant = serve_study(make_study((", pass: 50%", ""))).begin()
    participant.agree()
    assert participant.event(*event).status == 400
    assert participant.finish(0).status == 409


def test_without_codes_people_are_asked_to_return_their_place_or_prolific_is_told_so(recruiting, prolific):
    site = recruiting("prolific", {})
    told = if_left(site, prolific)
    assert told["return_url"] is None and told["completion_code"] is None
    assert told["return_text"] == site.service.pack.texts["return_prolific_no_consent"]
    told = site.begin(platform=prolific).complete().body
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=NOCODE"


@pytest.mark.parametrize("given", [SONA_URL, SONA_URL + "&survey_code=XXXX"])
def test_sona_grants_credit_to_the_survey_code_of_the_link(recruiting, given):
    told = recruiting("sona", {"credit_url": given}).begin(platform={"survey_code": "4711"}).complete().body
    assert told["return_url"] == f"{SONA_URL}&survey_code=4711"


def test_mturk_gives_each_a_code_to_take_along_and_leads_to_the_right_site(recruiting):
    site = recruiting("mturk", {})
    given = {"workerId": "A1", "assignmentId": "3X", "hitId": "3H"}
    told = site.begin(platform=given).complete().body
    assert len(told["completion_code"]) == 8
    assert told["return_url"] == "https://worker.mturk.com/tasks"
    assert told["return_by_itself"] is False, "the code has to be copied first"
    sandbox = {"workerId": "A2", "assignmentId": "3Y", "turkSubmitTo": "https://workersandbox.mturk.com"}
    other = site.begin(platform=given | sandbox).complete().body
    assert other["return_url"] == "https://workersandbox.mturk.com/tasks"
    assert other["completion_code"] != told["completion_code"]


@pytest.mark.parametrize(("wrong", "code"), [(True, "C4CHECK"), (False, "C1DONE")])
def test_failed_attention_checks_have_a_code_of_their_own(recruiting, prolific, wrong, code):
    site = recruiting("prolific", None, ("break_every: 2", "attention_checks: 2"))
    participant = site.begin(platform=prolific)
    planned, failed = site.planned(participant), []
    for trial in planned:
        labels = trial["steps"][-1]["labels"]
        answer = labels[0]
        if trial["is_attention_check"]:
            answer = next(label for label in labels if (label == trial["answer"]) is not wrong)
            failed += [trial["trial_index"]] if wrong else []
        assert participant.answer(trial["trial_index"], response_raw=answer).status == 201
    assert participant.finish(len(planned)).body["completion_code"] == code
    assert site.read(failed_checks, participant.session_id) == failed
    assert len(failed) == (2 if wrong else 0)


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ("{attention_checks_failed: 2 or more}", 2),
        ("{attention_checks_failed: above 0}", 1),
        ("{pastes: 3 or more}", None),
    ],
)
def test_what_the_study_declares_of_checks_comes_before_the_platforms_rule(make_study, rule, limit):
    study = make_study(("seed: 7\n", f"seed: 7\nanalysis: {{exclude: {{sessions: {rule}}}}}\n"))
    assert recruitment_for(study, {}).failed_checks_at == limit


@pytest.mark.parametrize(("recruit", "mend"), [("prolific", 'complete = "…"'), ("mturk", "MTurk")])
def test_a_code_in_the_study_is_refused_where_people_are_paid_by_it(make_study, recruit, mend):
    study = make_study(settings_of(f"recruit: {recruit}, completion_code: SECRET7"))
    with pytest.raises(UserError, match=r"participants\.completion_code") as refused:
        recruitment_for(study, {})
    assert mend in str(refused.value) and "SECRET7" not in str(refused.value)


def test_missing_codes_are_told_with_the_lines_to_add(make_study):
    given = recruitment(make_study, "prolific", {"complete": "C1"})
    lines = lines_to_add(given)
    assert lines[0].startswith("[recruitment.small]")
    assert [line.split(" = ")[0] for line in lines[1:]] == ["no_consent", "screened_out", "failed_checks"]
    told = "\n".join(missing_lines(given, Path("/home/me/config.toml")))
    assert all(line in told for line in lines) and "/home/me/config.toml" in told
    codes = {"complete": "C1", "no_consent": "C2", "screened_out": "C3", "failed_checks": "C4"}
    assert list(missing_lines(recruitment(make_study, "prolific", codes), Path("c"))) == []
    assert list(missing_lines(recruitment(make_study, "lab", {}), Path("c"))) == []


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"complet": "C1"}, "'complete'"),
        ({"complete": "https://app.prolific.com/x?cc=C1"}, "complete is 'https"),
        ({"complete": "C1", "screened_out": "C1"}, "C1"),
        ({"credit_url": "http://school.example.org"}, "experiment_id and credit_token"),
        ({"reward": "a lot"}, "2.50 GBP"),
        ({"minutes": 0}, "minutes"),
    ],
)
def test_a_wrong_setting_says_what_to_write(make_study, config, told):
    with pytest.raises(UserError, match=told):
        recruitment(make_study, "prolific", config)


def test_a_code_is_escaped_in_the_return_address(recruiting):
    service = recruiting("prolific").service
    row = {"session_id": "x", "completion_code": "A&B=C"}
    assert (return_for(service, row, "finished", platform={}).url or "").endswith("?cc=A%26B%3DC")
