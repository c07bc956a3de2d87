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
from experiment.people.recruitment.admission import invite
from experiment.people.response_intake import event_operation, take_copy
from experiment.people.session_cache import live_session
from experiment.store import queries
from experiment.store.backups import FOLDER, back_up
from experiment.store.chain import WITHDRAWN
from experiment.store.erasure import forget_undecided, number_of
from experiment.store.restoring import check_backup, discard
from experiment.store.tables import audit, chain, invitations, metadata, sessions, tallies

LATER = (date.today() + timedelta(days=3)).isoformat()
EARLIER = (date.today() - timedelta(days=1)).isoformat()


def everything_in(site: Any) -> str:
    with site.store.read() as connection:
        return repr([connection.execute(select(table)).all() for table in metadata.sorted_tables])


def states(site: Any) -> list[tuple[str, str | None]]:
    with site.store.read() as connection:
        return [(row["state"], row["ended_reason"]) for row in queries.sessions_overview(connection)]


def bytes_of(site: Any) -> bytes:
    folder = site.service.folder
    files = [*folder.glob("study.db*"), *(folder / FOLDER).glob("*.db")]
    return b"".join(file.read_bytes() for file in files)


def agree(person: Any) -> None:
    assert person.event("consent", person.agreement).status == 201


def test_an_agreement_names_the_text_that_was_shown(site):
    for detail, status in (
        ({"agreed": True}, 409),
        ({"agreed": True, "version": "not-the-version"}, 409),
        ({"agreed": True, "version": None}, 409),
        ({"agreed": True, "version": ["a"]}, 409),
        ({"agreed": "yes"}, 400),
        ({"agreed": None}, 400),
        ({}, 400),
    ):
        person = site.begin()
        shown = person.agreement["version"]
        told = person.event("consent", detail)
        assert told.status == status, detail
        assert status == 400 or f"this session was shown {shown}" in told.body["error"]
        assert person.caller.post(f"{person.base}/trials", person.payload(0), **person.auth).status == 425
        copy = {
            "wrods": 1, "kind": "answers", "study": "small", "session_id": person.session_id, "token": person.token,
            "items": [{"kind": "events", "body": {"client_uuid": "0123456789abcdef", "kind": "consent", "detail": detail}}],
        }  # fmt: skip
        assert take_copy(site.store, "small", copy).refused == 1
    agree(person)
    with site.store.read() as connection:
        consents = [one for one in queries.all_events(connection) if one["kind"] == "consent"]
    assert [one["detail"]["version"] for one in consents] == [shown]


def test_a_session_of_a_version_whose_plans_named_no_text_can_still_agree(site):
    person = site.begin()
    plan = {"screens": [{"kind": "consent", "html": "", "text": ""}]}
    row = {"study": "small", "token_hash": "h", "plan": plan, "reader_kind": "human"}
    live = live_session(row | {"session_id": person.session_id})
    body = {"client_uuid": "0123456789abcdef", "kind": "consent", "detail": {"agreed": True}}
    assert site.store.write(event_operation(live, body, lambda *_: None)).result().told == "stored"


def test_who_declines_leaves_a_count_and_nothing_else(recruiting, prolific):
    site = recruiting("prolific", privacy="{keep_ip_address: true}")
    for number in (1, 2):
        person = site.begin(platform=prolific)
        person.event("device", {"passed": True, "measured": {"width": 1366}})
        told = person.event("consent", {"agreed": False, "version": "1"})
        assert (told.status, told.body) == (201, {"erased": True})
        left = everything_in(site)
        assert person.session_id not in left
        assert not any(value in left for value in prolific.values())
        with site.store.read() as connection:
            assert number_of(connection, "small") == number
            assert connection.execute(select(tallies)).all() == [("small", 1, "declined", number)]
            assert connection.execute(select(chain)).all() == []
            assert connection.scalars(select(audit.c.action)).all().count(WITHDRAWN) == 0
        assert [person.finish(0).status, person.event("blur").status, person.answer(0).status] == [404] * 3


def test_a_declined_personal_link_can_be_opened_again(recruiting):
    site = recruiting("link", {})
    (made,) = site.store.write(
        lambda connection: invite(connection, "small", ["Ada"], base_url="http://localhost", days=7)
    ).result()
    given = {"invitation": made.link.partition("invitation=")[2]}
    person = site.begin(platform=given)
    person.event("consent", {"agreed": False})
    with site.store.read() as connection:
        assert connection.scalars(select(invitations.c.session_id)).all() == [None]
    assert site.begin(platform=given).session_id != person.session_id


@pytest.mark.parametrize("reader", [{"simulated": True}, {}])
def test_only_people_who_would_have_counted_are_counted_as_decliners(site, serve_study, make_study, reader):
    served = site if reader else serve_study(make_study(name="pilot"), is_pilot=True)
    if reader:
        reader = reader | {"pass": site.make_pass("simulated")}
    served.begin(**reader).event("consent", {"agreed": False})
    with served.store.read() as connection:
        assert number_of(connection, "small") == 0
        assert connection.execute(select(sessions)).all() == []


def test_decliners_of_earlier_databases_are_counted_with_those_of_today(site):
    old, new = site.begin(), site.begin()
    site.store.write(
        lambda connection: connection.execute(
            update(sessions).where(sessions.c.session_id == old.session_id).values(state="declined")
        )
    ).result()
    new.event("consent", {"agreed": False})
    with site.store.read() as connection:
        assert number_of(connection, "small") == 2


def test_who_takes_an_agreement_back_is_withdrawn_like_anybody_who_took_part(site):
    person = site.begin()
    agree(person)
    assert person.event("consent", {"agreed": False}).body == {"erased": True}
    with site.store.read() as connection:
        assert number_of(connection, "small") == 0
        assert WITHDRAWN in connection.scalars(select(audit.c.action)).all()


def test_who_stops_and_keeps_has_an_ended_session_with_all_its_answers(site):
    person = site.begin(participant="7")
    agree(person)
    person.answer(1)
    told = person.event("stop", {"then": "keep", "trial_index": 2, "attempt": 1})
    assert told.status == 201
    assert states(site) == [("stopped", "by the participant")]
    closed = person.caller.post(f"{person.base}/finish", {"trials": 1, "completed": False}, **person.auth)
    assert (closed.status, closed.body["state"]) == (200, "stopped")
    assert site.opening(participant="7").status == 403
    with site.store.read() as connection:
        assert queries.done_keys(connection, person.session_id) == [(1, 1)]


def test_who_stops_and_deletes_is_erased_at_once_and_leaves_a_tombstone(site):
    other, person = site.begin(participant="6"), site.begin(participant="7")
    agree(person)
    person.answer(0)
    person.answer(1, response_raw="a very particular answer")
    other.answer(1)
    told = person.event("stop", {"then": "delete"})
    assert (told.status, told.body) == (201, {"erased": True})
    with site.store.read() as connection:
        (noted,) = connection.execute(select(audit).where(audit.c.action == WITHDRAWN)).all()
        left = [row["session_id"] for row in queries.sessions_overview(connection)]
    assert (noted.session_id, noted.actor, left) == (person.session_id, "participant", [other.session_id])
    assert "a very particular answer" not in everything_in(site)
    assert person.event("stop", {"then": "delete"}).status == 404, "asking again finds nothing"


def test_deletion_needs_the_session_s_own_token(site):
    mine, theirs = site.begin(), site.begin()
    mine.answer(1)
    theirs.base = mine.base
    assert theirs.event("stop", {"then": "delete"}).status == 404
    assert theirs.event("consent", {"agreed": False}).status == 404
    assert [state for state, _ in states(site)] == ["started", "started"]


def test_bytes_of_deleted_answers_leave_database_and_backups_in_the_background(site):
    person = site.begin()
    agree(person)
    person.answer(1, response_raw="a very particular answer")
    back_up(site.store.address, site.service.folder / FOLDER, stem="study", automatic=True)
    assert bytes_of(site).count(b"a very particular answer") >= 2
    person.event("stop", {"then": "delete"})
    site.app.extensions["wrods"].cleaning.close()
    assert b"a very particular answer" not in bytes_of(site)


def test_deleted_answers_leave_the_files_when_a_server_that_was_killed_runs_again(site, monkeypatch):
    person = site.begin()
    agree(person)
    person.answer(1, response_raw="a very particular answer")
    folder = site.service.folder
    back_up(site.store.address, folder / FOLDER, stem="study", automatic=True)
    cleaning = site.app.extensions["wrods"].cleaning
    monkeypatch.setattr(cleaning, "after", lambda *_: None)  # killed after the commit
    person.event("stop", {"then": "delete"})
    assert bytes_of(site).count(b"a very particular answer") >= 2
    Maintenance([MaintainedStudy("small", folder, site.store, None)], (), print, lambda *noted: None).round()
    assert b"a very particular answer" not in bytes_of(site)


def test_who_declined_does_not_come_back_with_a_backup_made_by_hand(site, tmp_path):
    person = site.begin(participant="a-very-particular-person")
    folder = site.service.folder
    drawer = tmp_path / "drawer"
    drawer.mkdir()
    made = copy_of(site.store, "small", drawer, stem="small", actor="me")
    (tmp_path / "moved").mkdir()
    moved = Path(shutil.copy(made, tmp_path / "moved"))
    person.event("consent", {"agreed": False})
    site.app.extensions["wrods"].cleaning.close()
    assert b"a-very-particular-person" not in made.read_bytes()
    checked = check_backup(folder / "study.db", moved, "small", gone=remembered(folder))
    assert checked.withdrawn == 1 and b"a-very-particular-person" not in checked.ready.read_bytes()
    discard(checked.ready)


def test_whoever_has_neither_agreed_nor_declined_is_in_no_export(site, tmp_path):
    waiting, agreed = site.begin(participant="6"), site.begin(participant="7")
    agree(agreed)
    agreed.answer(0)
    for form in ("csv", "jspsych"):
        export_study(load_study(site.service.folder), site.store, tmp_path / form, form)
    exported = "".join(
        file.read_text("utf-8") for form in ("csv", "jspsych") for file in (tmp_path / form).glob("*.*")
    )
    assert agreed.session_id in exported and waiting.session_id not in exported


def test_a_finished_session_can_be_deleted_by_its_own_page(site):
    person = site.begin()
    for index in range(5):
        person.answer(index)
    assert person.finish(5).status == 200
    assert person.event("stop", {"then": "delete"}).body == {"erased": True}
    assert states(site) == []


@pytest.mark.parametrize(("until", "status"), [(LATER, 201), (EARLIER, 409)])
def test_deletion_after_the_end_holds_to_the_day_that_the_study_states(
    make_study, serve_study, until, status
):
    study = make_study(("seed: 7\n", f"seed: 7\nparticipants: {{withdraw_until: {until}}}\n"))
    site = serve_study(study)
    ended, running = site.begin(), site.begin()
    agree(ended)
    assert ended.plan["withdraw_until"] == until
    ended.event("stop", {"then": "keep"})
    told = ended.event("stop", {"then": "delete"})
    assert told.status == status
    if status == 409:
        assert f"until {until}" in told.body["error"]
        assert ("stopped", "by the participant") in states(site)
    assert running.event("stop", {"then": "delete"}).status == 201, "who is still in it can always leave"


def test_a_session_left_on_the_consent_screen_is_forgotten_and_counted(site):
    left, fresh, agreed, answered, ended = (site.begin() for _ in range(5))
    agree(agreed)
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
    assert not any(one in everything_in(site) for one in gone)
    assert left.answer(1).status == 404


def test_dashboard_status_and_export_count_those_who_declined(make_study, serve_study):
    study = make_study()
    site = serve_study(study)
    site.begin().event("consent", {"agreed": False})
    site.begin().answer(1)
    with site.store.read() as connection:
        rows = queries.sessions_overview(connection)
        told = dictionary_of(study, connection, rows)["readers"]["human"]
        shown = study_overview(rows, [1], datetime.now(UTC), declined=number_of(connection, "small"))
    assert (told["sessions"], told["declined"]) == (1, 1)
    assert shown["kinds"]["human"]["declined"] == 1
    assert status_of(study, site.store)["declined"] == 1


@pytest.mark.parametrize(("then", "counted_as"), [("keep", "undecided"), ("delete", "declined")])
def test_who_stops_before_agreeing_leaves_a_count_and_no_tombstone(site, then, counted_as):
    person = site.begin(participant="a-very-particular-person")
    assert person.event("stop", {"then": then}).body == {"erased": True}
    left = everything_in(site)
    assert person.session_id not in left and "a-very-particular-person" not in left
    with site.store.read() as connection:
        assert number_of(connection, "small", counted_as) == 1
        assert WITHDRAWN not in connection.scalars(select(audit.c.action)).all()
