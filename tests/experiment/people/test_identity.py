"""Each person has one key that no outside name can be, and one number; a withdrawal erases one person or nobody."""

from __future__ import annotations

import re
from typing import Any

import pytest

from experiment.integrity import withdrawal
from experiment.people.lab.settings import written
from experiment.store import Store, open_store, records
from experiment.store.assignment import next_reader
from experiment.store.tables import ADDED, invitations, metadata, people
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import PIN, config_of, prolific_id


def test_every_person_gets_a_key_that_nobody_outside_can_name(site):
    for number in ("P001", "0" * 32, "person_key"):
        site.begin(participant=number)
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")})
    site.begin(**{"pass": site.make_pass("pilot")})
    found = [row["person_key"] for row in site.sessions]
    assert len(set(found)) == 5 and all(re.fullmatch("[0-9a-f]{32}", key) for key in found)
    assert all(row["reader"] == row["participant_id"] for row in site.sessions)


@pytest.mark.parametrize(
    ("recruit", "again"), [("lab", "interrupted"), ("lab", "declined"), ("prolific", "interrupted")]
)
def test_a_known_person_keeps_key_and_number_in_another_session(recruiting, prolific, recruit, again):
    site = recruiting(recruit, {})
    asking, other = {"participant": "17"}, {"participant": "18"}
    if recruit == "prolific":
        asking = {"platform": prolific}
        other = {"platform": prolific | {"PROLIFIC_PID": prolific_id("somebody else")}}
    first = site.begin(**asking)
    site.begin(**other)
    site.change(first, state=again)
    second = site.begin(**asking)
    rows = [site.session(one) for one in (first, second)]
    assert second.session_id != first.session_id
    assert {row["reader"] for row in rows} == {"P001" if recruit == "prolific" else "17"}
    assert len({row["person_key"] for row in rows}) == 1
    assert len({row["person_key"] for row in site.sessions}) == 2


def test_an_assigned_number_is_one_that_nobody_has_under_any_name(recruiting):
    site = recruiting("link", {})

    def earlier(connection: Any) -> None:
        given = {"study": "small", "source": "participant", "created_at": "t"}
        connection.execute(people.insert().values(external_id="P002", session_id="x", **given))
        for number in ("P001", "P003"):
            named = {"study": "small", "token_hash": number, "created_at": "t", "participant": number}
            connection.execute(invitations.insert().values(**named))
        plan = records.session(connection, first.session_id)["plan"]  # type: ignore[index]
        for odd in ("P²", "P³", "T¹"):  # as earlier versions took them
            records.create_session(connection, plan, reader_kind="human", reader=odd, participant_id=odd)

    first = site.begin()
    site.do(earlier)
    site.change(first, participant_id="P004")
    assert site.do(lambda c: next_reader(c, "small")) == "P005"
    withdrawal.erase_rows(site.store, site.service.folder, [first.session_id], actor="test")
    assert sorted(site.rows(invitations.c.participant)) == ["P001", "P003"], "of somebody called P001"
    assert site.do(lambda c: next_reader(c, "small")) == "P004"


def test_a_typed_number_that_is_another_session_s_is_refused(site):
    site.begin(**{"pass": site.make_pass("pilot")})
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")})
    person = site.begin(participant="18")

    def older(connection: Any) -> None:
        plan = records.session(connection, person.session_id)["plan"]  # type: ignore[index]
        records.create_session(connection, plan, reader_kind="model", reader="restorer")
        records.create_session(connection, plan, reader_kind="human", reader="P007", participant_id="17")

    site.do(older)
    for typed in ("T001", "S001", "restorer", "P007", "17"):
        told = site.opening(participant=typed, pin=PIN)
        assert told.status == 409 and told.body["state"] == "taken"
        assert typed in told.body["error"]
        asked = site.caller().post("/api/small/station/start", {"participant": typed})
        assert asked.body["state"] == "taken" and asked.body["unfinished"] == []


@pytest.mark.parametrize("odd", ["P²", "P٣", "T¹", "P" + "9" * 40, "P1x"])
def test_no_typed_number_keeps_others_from_getting_one(site, odd):
    site.begin(participant=odd)
    site.begin(**{"pass": site.make_pass("pilot")})
    number = written(odd, None)
    assert {row["reader"] for row in site.sessions} == {number, "T002" if number == "T1" else "T001"}
    assert site.do(lambda c: next_reader(c, "small")).startswith("P")


def test_a_laboratory_s_session_needs_a_number(site):
    assert [site.opening(participant=number).status for number in (None, "")] == [400, 400]
    assert site.sessions == []


@pytest.mark.parametrize("recruit", ["prolific", "sona", "mturk", "link"])
def test_only_a_laboratory_takes_numbers_from_links_and_requests(recruiting, recruit):
    site = recruiting(recruit, {})
    links = {
        "prolific": {"PROLIFIC_PID": prolific_id("a")}, "sona": {"survey_code": "12345"},
        "mturk": {"workerId": "A1B2C3", "assignmentId": "3X"}, "link": {},
    }  # fmt: skip
    claim = site.opening(participant="P001", platform=links[recruit])
    assert claim.status == 400 and "'P001'" in claim.body["error"]
    assert site.opening(platform=links[recruit] | {"participant": "P001"}).status == 400
    for other in set(links) - {recruit, "link"}:
        assert site.opening(platform=links[recruit] | links[other]).status == 400
    query = links[recruit] | {"participant": "P001"}
    page = site.app.test_client().get("/small/", query_string=query).text
    assert config_of(page)["participant"] is None and "P001" not in page
    assert site.sessions == []


def of_two_people_with_one_number(store: Store, plan: dict[str, Any]) -> dict[str, str]:
    """Store what earlier versions could: wrods called hers P001 and his P002, and his own number was P001."""

    def write(connection: Any) -> dict[str, str]:
        made = {"reader_kind": "human", "station": "Station 07"}
        hers = records.create_session(connection, plan, reader="P001", participant_id="17", **made)
        his = records.create_session(connection, plan, reader="P002", participant_id="P001", **made)
        records.add_person(connection, "small", hers, "participant", "17")
        records.add_person(connection, "small", his, "participant", "P001")
        records.add_person(connection, "small", his, "prolific", "5f0a", {})
        return {"hers": hers, "his": his}

    return store.write(write).result()


def test_a_number_that_fits_two_people_erases_nobody_and_shows_both(site):
    person, folder = site.begin(participant="99"), site.service.folder
    ids = of_two_people_with_one_number(site.store, site.session(person)["plan"])

    def left() -> set[str]:
        return {row["session_id"] for row in site.sessions}

    refused = wrods("withdraw", folder, "--participant", "P001", "--yes")
    assert refused.exit_code != 0 and left() == {*ids.values(), person.session_id}
    for part in (*(f"--session {one[:12]}" for one in ids.values()), "17", "P002", "Station 07", "5f0a"):
        assert part in refused.output, part
    assert wrods("withdraw", folder, "--session", ids["hers"][:12], "--yes").exit_code == 0
    assert left() == {ids["his"], person.session_id}
    # what is left fits one person only
    again = wrods("withdraw", folder, "--participant", "P001", "--yes")
    assert again.exit_code == 0 and left() == {person.session_id}


def test_a_person_withdraws_with_every_session_however_they_are_found(site):
    first = site.begin(participant="17", station="Station 01")
    site.change(state="interrupted")
    second = site.begin(participant="17", station="Station 02")
    for number in ("18", "19"):
        site.begin(participant=number, station="Station 01").answer(0)
    with site.store.read() as connection:
        for how in ({"participant": "17"}, {"session": first.session_id[:8]}):
            found = withdrawal.find_person(connection, "small", **how)
            assert {one.session_id for one in found} == {first.session_id, second.session_id}


def test_an_older_database_keeps_its_rows_and_gets_keys(make_study, serve_study):
    study = make_study()
    site = serve_study(study)
    person = site.begin(participant="99")
    ids = of_two_people_with_one_number(site.store, site.session(person)["plan"])
    before = {row["session_id"]: (row["reader"], row["participant_id"]) for row in site.sessions}

    def back_to_0003(connection: Any) -> None:
        for index in ("ix_sessions_person", "ix_sessions_participant", "ix_sessions_counted"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        for column in ("person_key", "held_reason"):
            connection.exec_driver_sql(f"ALTER TABLE sessions DROP COLUMN {column}")
        counted = "study, version, reader_kind, is_pilot, state, last_seen_at, list_id, order_row, session_id"
        connection.exec_driver_sql(f"CREATE INDEX ix_sessions_counted ON sessions ({counted})")
        for table in ("tallies", "sign_ins"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        for table in metadata.tables.values():
            for column in table.columns:
                if column.info == ADDED:
                    connection.exec_driver_sql(f"ALTER TABLE {table.name} DROP COLUMN {column.name}")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")

    site.do(back_to_0003)
    site.store.close()
    with open_store(study.folder) as store, store.read() as connection:
        found = records.sessions_overview(connection)
        assert {row["session_id"]: (row["reader"], row["participant_id"]) for row in found} == before
        assert len({row["person_key"] for row in found}) == 3
        with pytest.raises(withdrawal.SeveralPersons):
            withdrawal.find_person(connection, "small", participant="P001")
        assert [one.session_id for one in withdrawal.find_person(connection, "small", participant="17")] == [
            ids["hers"]
        ]
