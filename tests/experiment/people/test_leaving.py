"""Who declines leaves a count; who stops keeps or deletes the answers, as they say."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from experiment.checking import load_study
from experiment.cli.status import status_of
from experiment.exporting import export_study
from experiment.exporting.dictionary import dictionary_of
from experiment.integrity.maintenance import MaintainedStudy, Maintenance, copy_of
from experiment.integrity.withdrawal import remembered
from experiment.people.dashboard.study_pages import study_overview
from experiment.people.response_intake import event_operation, take_copy
from experiment.people.service import live_session
from experiment.store import records
from experiment.store.backups import FOLDER, back_up
from experiment.store.chain import WITHDRAWN
from experiment.store.erasure import forget_undecided, number_of
from experiment.store.restoring import check_backup, discard
from experiment.store.tables import audit, chain, sessions, tallies
from tests.experiment.people.conftest import prolific_id, settings_of

LATER = (date.today() + timedelta(days=3)).isoformat()
EARLIER = (date.today() - timedelta(days=1)).isoformat()


def bytes_of(site: Any) -> bytes:
    folder = site.service.folder
    files = [*folder.glob("study.db*"), *(folder / FOLDER).glob("*.db")]
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize(
    ("detail", "status"),
    [
        ({"agreed": True}, 409), ({"agreed": True, "version": "not-the-version"}, 409),
        ({"agreed": True, "version": None}, 409), ({"agreed": True, "version": ["a"]}, 409),
        ({"agreed": "yes"}, 400), ({"agreed": None}, 400), ({}, 400),
    ],
)  # fmt: skip
def test_an_agreement_names_the_text_that_was_shown(site, detail, status):
    person = site.begin()
    shown = person.agreement["version"]
    told = person.event("consent", detail)
    assert told.status == status
    assert status == 400 or shown in told.body["error"]
    assert person.post("trials", person.payload(0)).status == 425
    given = {"client_uuid": "0123456789abcdef", "kind": "consent", "detail": detail}
    assert take_copy(site.store, "small", person.copy(("events", given))).refused == 1
    person.agree()
    consents = [one["detail"]["version"] for one in site.events if one["kind"] == "consent"]
    assert consents == [shown]


def test_a_session_of_a_version_whose_plans_named_no_text_can_still_agree(site):
    person = site.begin()
    plan = {"screens": [{"kind": "consent", "html": "", "text": ""}]}
    row = {"study": "small", "token_hash": "h", "plan": plan, "reader_kind": "human"}
    live = live_session(row | {"session_id": person.session_id})
    body = {"client_uuid": "0123456789abcdef", "kind": "consent", "detail": {"agreed": True}}
    assert site.do(event_operation(live, body, lambda *_: None)).told == "stored"


def test_who_declines_leaves_a_count_and_nothing_else(recruiting, prolific):
    site = recruiting("prolific", privacy="{keep_ip_address: true}")
    old = site.begin(platform=prolific | {"PROLIFIC_PID": prolific_id("old")})
    site.change(old, state="declined")  # as earlier versions kept those who declined: they are counted too
    for number in (1, 2):
        person = site.begin(platform=prolific)
        person.event("device", {"passed": True, "measured": {"width": 1366}})
        told = person.event("consent", {"agreed": False, "version": "1"})
        assert (told.status, told.body) == (201, {"erased": True})
        left = site.everything()
        assert person.session_id not in left
        assert prolific["PROLIFIC_PID"] not in left
        assert site.read(number_of, "small") == number + 1
        assert site.rows(tallies) == [("small", 1, "declined", number)]
        assert site.rows(audit.c.action).count(WITHDRAWN) == 0
        assert person.session_id not in site.rows(chain.c.session_id)
        assert [person.finish(0).status, person.event("blur").status, person.answer(0).status] == [404] * 3


def test_only_people_who_would_have_counted_are_counted_as_decliners(site):
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")}).event("consent", {"agreed": False})
    site.begin(**{"pass": site.make_pass("pilot")}).event("consent", {"agreed": False})
    assert site.read(number_of, "small") == 0
    assert site.sessions == []


def test_who_takes_an_agreement_back_is_withdrawn_like_anybody_who_took_part(site):
    person = site.begin()
    person.agree()
    assert person.event("consent", {"agreed": False}).body == {"erased": True}
    assert site.read(number_of, "small") == 0
    assert WITHDRAWN in site.rows(audit.c.action)


def test_who_stops_and_keeps_has_an_ended_session_with_all_its_answers(site):
    person = site.begin(participant="7")
    person.answer(1)
    told = person.event("stop", {"then": "keep", "trial_index": 2, "attempt": 1})
    assert told.status == 201
    row = site.session(person)
    assert (row["state"], row["ended_reason"]) == ("stopped", "by the participant")
    closed = person.post("finish", {"trials": 1, "completed": False})
    assert (closed.status, closed.body["state"]) == (200, "stopped")
    assert site.opening(participant="7").status == 403
    assert [row["trial_index"] for row in site.trials] == [1]


WORDS = "a very particular answer"


def test_who_stops_and_deletes_is_erased_at_once_and_leaves_a_tombstone(site):
    other, person = site.begin(participant="6"), site.begin(participant="7")
    person.answer_all(response_raw=WORDS)
    other.answer(1)
    for event in (("stop", {"then": "delete"}), ("consent", {"agreed": False})):
        assert person.caller.post(f"{other.base}/events", {"client_uuid": WORDS[:16], "kind": event[0],
                                  "detail": event[1]}, **person.auth).status == 404, "not with another's token"  # fmt: skip
    assert person.finish(5).status == 200, "the page of a session that is over can still delete it"
    told = person.event("stop", {"then": "delete"})
    assert (told.status, told.body) == (201, {"erased": True})
    (noted,) = site.rows(select(audit).where(audit.c.action == WITHDRAWN))
    assert (noted.session_id, noted.actor) == (person.session_id, "participant")
    assert [row["session_id"] for row in site.sessions] == [other.session_id]
    assert WORDS not in site.everything()
    assert person.event("stop", {"then": "delete"}).status == 404, "asking again finds nothing"


@pytest.mark.parametrize("is_killed", [False, True])
def test_bytes_of_deleted_answers_leave_database_and_backups_also_after_the_server_was_killed(
    site, monkeypatch, is_killed
):
    person, folder = site.begin(), site.service.folder
    person.answer(1, response_raw=WORDS)
    back_up(site.store.address, folder / FOLDER, stem="study", automatic=True)
    if is_killed:
        monkeypatch.setattr(site.state.cleaning, "after", lambda *_: None)  # killed after the commit
    assert bytes_of(site).count(WORDS.encode()) >= 2
    person.event("stop", {"then": "delete"})
    site.state.cleaning.close()
    assert is_killed is (WORDS.encode() in bytes_of(site))
    Maintenance([MaintainedStudy("small", folder, site.store, None)], (), print, lambda *noted: None).round()
    assert WORDS.encode() not in bytes_of(site)


def test_who_declined_does_not_come_back_with_a_backup_made_by_hand(site, tmp_path):
    person = site.begin(participant="a-very-particular-person")
    folder = site.service.folder
    drawer = tmp_path / "drawer"
    drawer.mkdir()
    made = copy_of(site.store, "small", drawer, stem="small", actor="me")
    (tmp_path / "moved").mkdir()
    moved = Path(shutil.copy(made, tmp_path / "moved"))
    person.event("consent", {"agreed": False})
    site.state.cleaning.close()
    assert b"a-very-particular-person" not in made.read_bytes()
    checked = check_backup(folder / "study.db", moved, "small", gone=remembered(folder))
    assert checked.withdrawn == 1 and b"a-very-particular-person" not in checked.ready.read_bytes()
    discard(checked.ready)


def test_whoever_has_neither_agreed_nor_declined_is_in_no_export(site, tmp_path):
    waiting, agreed = site.begin(participant="6"), site.begin(participant="7")
    agreed.agree()
    agreed.answer(0)
    for form in ("csv", "jspsych"):
        export_study(load_study(site.service.folder), site.store, tmp_path / form, form)
    exported = "".join(
        file.read_text("utf-8") for form in ("csv", "jspsych") for file in (tmp_path / form).glob("*.*")
    )
    assert agreed.session_id in exported and waiting.session_id not in exported


@pytest.mark.parametrize(("until", "status"), [(LATER, 201), (EARLIER, 409)])
def test_deletion_after_the_end_holds_to_the_day_that_the_study_states(
    make_study, serve_study, until, status
):
    study = make_study(settings_of(f"withdraw_until: {until}"))
    site = serve_study(study)
    ended, running = site.begin(), site.begin()
    ended.agree()
    assert ended.plan["withdraw_until"] == until
    ended.event("stop", {"then": "keep"})
    told = ended.event("stop", {"then": "delete"})
    assert told.status == status
    if status == 409:
        assert until in told.body["error"]
        assert site.session(ended)["state"] == "stopped"
    assert running.event("stop", {"then": "delete"}).status == 201, "who is still in it can always leave"


def test_a_session_left_on_the_consent_screen_is_forgotten_and_counted(site):
    left, fresh, agreed, answered, ended = (site.begin() for _ in range(5))
    agreed.agree()
    ended.event("device", {"passed": False, "missed": ["width"]})
    answered.answer(1)

    def age(connection: Any) -> None:
        old = sessions.c.session_id != fresh.session_id
        connection.execute(update(sessions).where(old).values(last_seen_at="2026-01-01T00:00:00.000Z"))

    site.store.write(age).result()
    before = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="milliseconds")
    gone = site.store.write(lambda connection: forget_undecided(connection, "small", before)).result()
    assert set(gone) == {left.session_id, ended.session_id}
    with site.store.read() as connection:
        assert (number_of(connection, "small", "undecided"), number_of(connection, "small")) == (2, 0)
    assert not any(one in site.everything() for one in gone)
    assert left.answer(1).status == 404


def test_dashboard_status_and_export_count_those_who_declined(make_study, serve_study):
    study = make_study()
    site = serve_study(study)
    site.begin().event("consent", {"agreed": False})
    site.begin().answer(1)
    with site.store.read() as connection:
        rows = records.sessions_overview(connection)
        told = dictionary_of(study, connection, rows)["readers"]["human"]
        shown = study_overview(rows, [1], datetime.now(UTC), declined=number_of(connection, "small"))
    assert (told["sessions"], told["declined"]) == (1, 1)
    assert shown["kinds"]["human"]["declined"] == 1
    assert status_of(study, site.store)["declined"] == 1


@pytest.mark.parametrize(("then", "counted_as"), [("keep", "undecided"), ("delete", "declined")])
def test_who_stops_before_agreeing_leaves_a_count_and_no_tombstone(site, then, counted_as):
    person = site.begin(participant="a-very-particular-person")
    assert person.event("stop", {"then": then}).body == {"erased": True}
    left = site.everything()
    assert person.session_id not in left and "a-very-particular-person" not in left
    assert site.read(number_of, "small", counted_as) == 1
    assert WITHDRAWN not in site.rows(audit.c.action)
