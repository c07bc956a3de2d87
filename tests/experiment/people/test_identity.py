"""Each person has one key that no outside name can be, and one number; a withdrawal erases one person or nobody."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select, update

from experiment.integrity import withdrawal
from experiment.integrity import withdrawal as persons
from experiment.people.lab.settings import written
from experiment.store import Store, open_store, queries, records
from experiment.store.assignment import next_reader
from experiment.store.tables import invitations, people, sessions
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import PIN
from tests.experiment.people.recruitment.conftest import prolific_id


def rows(site: Any) -> dict[str, dict[str, Any]]:
    with site.store.read() as connection:
        return {row["session_id"]: row for row in queries.sessions_overview(connection)}


def keys(site: Any) -> list[str]:
    return [row["person_key"] for row in rows(site).values()]


def test_every_person_gets_a_key_that_nobody_outside_can_name(site):
    for number in ("P001", "0" * 32, "person_key"):
        site.begin(participant=number)
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")})
    site.begin(**{"pass": site.make_pass("pilot")})
    found = keys(site)
    assert len(set(found)) == 5 and all(re.fullmatch("[0-9a-f]{32}", key) for key in found)
    assert all(row["reader"] == row["participant_id"] for row in rows(site).values())


@pytest.mark.parametrize("again", ["interrupted", "declined"])
def test_a_person_known_by_number_keeps_key_and_number_in_another_session(site, again):
    first = site.begin(participant="17")
    site.store.write(lambda c: c.execute(update(sessions).values(state=again)) and None).result()
    second = site.begin(participant="17")
    told = rows(site)
    assert second.session_id != first.session_id
    assert told[first.session_id]["person_key"] == told[second.session_id]["person_key"]
    assert {row["reader"] for row in told.values()} == {"17"}


def test_a_person_known_by_a_platform_keeps_key_and_number_in_another_session(recruiting, prolific):
    site = recruiting("prolific")
    first = site.begin(platform=prolific)
    site.begin(platform=prolific | {"PROLIFIC_PID": prolific_id("somebody else")})
    site.store.write(
        lambda c: (
            c.execute(
                update(sessions).where(sessions.c.session_id == first.session_id).values(state="interrupted")
            )
            and None
        )
    ).result()
    second = site.begin(platform=prolific)
    told = rows(site)
    assert told[second.session_id]["reader"] == told[first.session_id]["reader"] == "P001"
    assert len(set(keys(site))) == 2


def test_an_assigned_number_is_one_that_nobody_has_under_any_name(recruiting):
    site = recruiting("link", {})

    def earlier(connection: Any) -> None:
        given = {"study": "small", "source": "participant", "created_at": "t"}
        connection.execute(people.insert().values(external_id="P002", session_id="x", **given))
        named = {"study": "small", "token_hash": "h", "created_at": "t"}
        connection.execute(invitations.insert().values(participant="P003", **named))

    first = site.begin()
    site.store.write(earlier).result()
    site.store.write(lambda c: c.execute(update(sessions).values(participant_id="P004")) and None).result()
    assert site.store.write(lambda c: next_reader(c, "small")).result() == "P005"
    withdrawal.erase_rows(site.store, site.service.folder, [first.session_id], actor="test")
    assert site.store.write(lambda c: next_reader(c, "small")).result() == "P004"


def test_a_typed_number_that_is_another_session_s_is_refused(site):
    site.begin(**{"pass": site.make_pass("pilot")})
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")})
    person = site.begin(participant="18")

    def older(connection: Any) -> None:
        plan = queries.session(connection, person.session_id)["plan"]  # type: ignore[index]
        records.create_session(connection, plan, reader_kind="model", reader="restorer")
        records.create_session(connection, plan, reader_kind="human", reader="P007", participant_id="17")

    site.store.write(older).result()
    for typed in ("T001", "S001", "restorer", "P007", "17"):
        told = site.opening(participant=typed, pin=PIN)
        assert told.status == 409 and told.body["state"] == "taken"
        assert f"{typed} belongs to another session" in told.body["error"]
        asked = site.caller().post("/api/small/station/start", {"participant": typed})
        assert asked.body["state"] == "taken" and asked.body["unfinished"] == []


def test_no_number_of_an_earlier_version_keeps_others_from_getting_one(site):
    person = site.begin()

    def older(connection: Any) -> str:
        plan = queries.session(connection, person.session_id)["plan"]  # type: ignore[index]
        for odd in ("P²", "P³", "T¹"):
            records.create_session(connection, plan, reader_kind="human", reader=odd, participant_id=odd)
        return next_reader(connection, "small")

    assert site.store.write(older).result() == "P002"


@pytest.mark.parametrize("odd", ["P²", "P٣", "T¹", "P" + "9" * 40, "P1x"])
def test_no_typed_number_keeps_others_from_getting_one(site, odd):
    site.begin(participant=odd)
    site.begin(**{"pass": site.make_pass("pilot")})
    with site.store.read() as connection:
        readers = {row["reader"] for row in queries.sessions_overview(connection)}
    number = written(odd, None)
    assert readers == {number, "T002" if number == "T1" else "T001"}
    assert site.store.write(lambda c: next_reader(c, "small")).result().startswith("P")


def test_a_laboratory_s_session_needs_a_number(site):
    for number in (None, ""):
        assert site.opening(participant=number).status == 400
    assert rows(site) == {}


@pytest.mark.parametrize("recruit", ["prolific", "sona", "mturk", "link"])
def test_only_a_laboratory_takes_numbers_from_links_and_requests(recruiting, recruit):
    site = recruiting(recruit, {})
    links = {
        "prolific": {"PROLIFIC_PID": prolific_id("a")},
        "sona": {"survey_code": "12345"},
        "mturk": {"workerId": "A1B2C3", "assignmentId": "3X"},
        "link": {},
    }
    claim = site.opening(participant="P001", platform=links[recruit])
    assert claim.status == 400 and "'P001'" in claim.body["error"]
    assert site.opening(platform=links[recruit] | {"participant": "P001"}).status == 400
    for other in set(links) - {recruit, "link"}:
        assert site.opening(platform=links[recruit] | links[other]).status == 400
    query = "&".join(f"{name}={value}" for name, value in links[recruit].items())
    page = site.app.test_client().get(f"/small/?participant=P001&{query}").text
    assert '"participant": null' in page and "P001" not in page
    assert rows(site) == {}


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


def test_a_number_that_fits_two_people_erases_nobody_and_shows_both(make_study, site):
    person = site.begin(participant="99")
    folder = site.service.folder
    with site.store.read() as connection:
        plan = queries.session(connection, person.session_id)["plan"]  # type: ignore[index]
    ids = of_two_people_with_one_number(site.store, plan)
    refused = wrods("withdraw", folder, "--participant", "P001", "--yes")
    assert refused.exit_code != 0 and "nothing was erased" in refused.output
    assert set(rows(site)) == {*ids.values(), person.session_id}
    for one in ids.values():
        assert f"--session {one[:12]}" in refused.output
    for part in (
        "P001 (typed 17)",
        "P002 (typed P001)",
        "Station 07",
        "prolific 5f0a",
        "0 trials",
        "began 20",
    ):
        assert part in refused.output, part
    chosen = ["withdraw", str(folder), "--session", ids["hers"][:12], "--yes"]
    assert wrods(*chosen).exit_code == 0
    assert set(rows(site)) == {ids["his"], person.session_id}
    # what is left fits one person only
    again = wrods("withdraw", folder, "--participant", "P001", "--yes")
    assert again.exit_code == 0 and set(rows(site)) == {person.session_id}


def test_a_person_withdraws_with_every_session_however_they_are_found(site):
    first = site.begin(participant="17", station="Station 01")
    site.store.write(lambda c: c.execute(update(sessions).values(state="interrupted")) and None).result()
    second = site.begin(participant="17", station="Station 02")
    site.begin(participant="18", station="Station 01")
    with site.store.read() as connection:
        at = persons.datetime.fromisoformat(rows(site)[second.session_id]["created_at"])
        for how in (
            {"participant": "17"},
            {"session": first.session_id[:8]},
            {"station": "Station 02", "at": at},
        ):
            found = persons.find_person(connection, "small", **how)
            assert {one.session_id for one in found} == {first.session_id, second.session_id}


def test_two_people_at_one_station_at_one_moment_are_told_apart(site):
    for number in ("17", "18"):
        site.begin(participant=number, station="Station 01").answer(0)
    with site.store.read() as connection:
        at = persons.datetime.now(persons.UTC)
        site.store.write(
            lambda c: c.execute(update(sessions).values(last_seen_at="2999-01-01T00:00:00.000Z")) and None
        ).result()
    with site.store.read() as connection, pytest.raises(persons.SeveralPersons) as several:
        persons.find_person(connection, "small", station="Station 01", at=at)
    assert {one.reader for one in several.value.found} == {"17", "18"}


def test_withdrawing_p001_leaves_the_invitation_of_somebody_called_p001(recruiting):
    site = recruiting("link", {})
    person = site.begin()
    named = {"study": "small", "token_hash": "h", "participant": "P001", "created_at": "t"}
    site.store.write(lambda c: c.execute(invitations.insert().values(**named)) and None).result()
    withdrawal.erase_rows(site.store, site.service.folder, [person.session_id], actor="test")
    with site.store.read() as connection:
        assert connection.scalars(select(invitations.c.participant)).all() == ["P001"]


def test_an_older_database_keeps_its_rows_and_gets_keys(make_study, serve_study):
    study = make_study()
    site = serve_study(study)
    person = site.begin(participant="99")
    with site.store.read() as connection:
        plan = queries.session(connection, person.session_id)["plan"]  # type: ignore[index]
    ids = of_two_people_with_one_number(site.store, plan)
    before = {key: (row["reader"], row["participant_id"]) for key, row in rows(site).items()}

    def back_to_0003(connection: Any) -> None:
        for index in ("ix_sessions_person", "ix_sessions_participant", "ix_sessions_counted"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        for column in ("person_key", "held_reason"):
            connection.exec_driver_sql(f"ALTER TABLE sessions DROP COLUMN {column}")
        counted = "study, version, reader_kind, is_pilot, state, last_seen_at, list_id, order_row, session_id"
        connection.exec_driver_sql(f"CREATE INDEX ix_sessions_counted ON sessions ({counted})")
        for table in ("tallies", "sign_ins"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")

    site.store.write(back_to_0003).result()
    site.store.close()
    with open_store(study.folder) as store, store.read() as connection:
        found = queries.sessions_overview(connection)
        assert {row["session_id"]: (row["reader"], row["participant_id"]) for row in found} == before
        assert len({row["person_key"] for row in found}) == 3
        with pytest.raises(persons.SeveralPersons):
            persons.find_person(connection, "small", participant="P001")
        assert [one.session_id for one in persons.find_person(connection, "small", participant="17")] == [
            ids["hers"]
        ]
