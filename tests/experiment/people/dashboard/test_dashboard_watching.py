"""The live page and its data: who is where, only what changed, and never a condition."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from experiment.people.quality import SessionMetrics, measures, trials_to_measure
from experiment.store import queries
from experiment.store.tables import calls, trials
from tests.experiment.people.dashboard.conftest import Visitor, words_of


def rows_of(visitor: Visitor) -> dict[str, dict[str, Any]]:
    (study,) = visitor.get("/admin/data.json").json["studies"]
    return {row["reader"]: row for row in study["sessions"]}


def test_the_live_page_tells_who_is_on_which_trial_of_which_block(site, visit):
    person = site.begin(participant="17")
    for index in range(3):
        person.answer(index)
    row = rows_of(visit("ben"))["17"]
    assert (row["trials"], row["planned"], row["block"], row["list"]) == (
        3,
        5,
        "block-1",
        person.plan["list_id"],
    )
    assert row["state"] == "running"


def test_nothing_is_sent_again_while_nothing_changes(site, visit):
    person = site.begin()
    visitor = visit("ben")
    first = visitor.get("/admin/data.json")
    again = visitor.get("/admin/data.json", If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["X-Wrods-Now"]
    person.answer(0)
    changed = visitor.get("/admin/data.json", If_None_Match=first.headers["ETag"])
    assert changed.status_code == 200


def test_signs_stand_beside_the_session_and_on_a_page_with_their_numbers(site, visit):
    quick, calm = site.begin(), site.begin()
    for index in range(5):
        quick.answer(index, rt=90.0, response_ts=10324.1, handler_ts=10325.0)
        calm.answer(index)
    visitor = visit("ben")
    rows = rows_of(visitor)
    assert rows["P001"]["signs"] == ["Too fast"] and rows["P002"]["signs"] == []
    page = visitor.get("/admin/small/flags").text
    assert "flagged if this probability is below .001" in page
    assert "Wrong answers" not in page, "the study declares no rule on them"
    assert "4 of 4 answers under 200 ms; median 90 ms" in page
    assert "P001" in page and "P002" not in page


def test_a_session_that_cannot_be_measured_says_so_and_hides_no_other(site, visit):
    odd, quick = site.begin(), site.begin()
    for index in range(5):
        odd.answer(index)
        quick.answer(index, rt=90.0, response_ts=10324.1, handler_ts=10325.0)
    log = update(trials).where(trials.c.session_id == odd.session_id)  # as earlier versions stored it
    site.store.write(
        lambda connection: connection.execute(log.values(key_log=[{"a": [1]}, {"a": [1]}])).close()
    ).result()
    visitor = visit("ben")
    rows = rows_of(visitor)
    assert rows["P001"]["signs"] == ["could not be summarized"] and rows["P002"]["signs"] == ["Too fast"]
    for page in ("flags", f"sessions/{rows['P001']['key']}"):
        told = visitor.get(f"/admin/small/{page}")
        assert told.status_code == 200 and "its rows cannot be measured (KeyError)" in told.text


def test_what_a_session_is_measured_by_is_the_same_rows_as_those_of_the_table(site):
    person = site.begin()
    for index in range(5):
        person.answer(index)
    with site.store.read() as connection:
        few = trials_to_measure(connection, person.session_id)
        all_columns = list(queries.trials_of_session(connection, person.session_id))
    planned = {trial["trial_index"]: trial for trial in person.trials()}
    assert measures(few, planned) == measures(all_columns, planned)
    assert not {"condition", "item_id", "shown"} & set(few[0])


def test_measuring_stops_when_its_time_is_up_and_goes_on_later(site):
    people = [site.begin() for _ in range(4)]
    for person in people:
        person.answer(0)
        person.answer(1)
    findings = SessionMetrics()
    with site.store.read() as connection:
        rows = queries.sessions_overview(connection, "small")
        measured = [sum(map(bool, findings.of(connection, rows, {}, within_s=-1).values())) for _ in range(5)]
    assert measured == [1, 2, 3, 4, 4]


def test_models_and_what_they_cost_stand_beside_people(site, visit):
    from experiment.store.records import create_session, store_call

    person = site.begin()

    def model(connection: Any) -> None:
        plan = queries.session(connection, person.session_id)["plan"]  # type: ignore[index]
        create_session(connection, plan, session_id="m" * 32, reader_kind="model", reader="restorer")
        for cost in (0.25, 0.5):
            store_call(
                connection,
                {"request_key": str(cost), "status": "answered", "session_id": "m" * 32, "cost_usd": cost,
                 "prompt_tokens": 100, "completion_tokens": 5},
            )  # fmt: skip

    site.store.write(model).result()
    (study,) = visit("ben").get("/admin/data.json").json["studies"]
    assert study["models"] == [
        {
            "reader": "restorer",
            "sessions": 1,
            "calls": 2,
            "prompt_tokens": 200,
            "completion_tokens": 10,
            "cost_usd": 0.75,
        }
    ]
    assert study["kinds"]["model"] == {"running": 1, "all": 1} and "human" in study["kinds"]
    with site.store.read() as connection:
        assert connection.execute(calls.select()).first() is not None


def test_no_page_tells_condition_correctness_or_token(site, visit):
    person, visitor = site.begin(), visit("ben")
    for index in range(5):
        person.answer(index)
    for path in (
        "/admin/",
        "/admin/data.json",
        "/admin/small/flags",
        f"/admin/small/sessions/{person.session_id[:12]}",
    ):
        told = visitor.get(path)
        assert told.status_code == 200
        for secret in ("initial", "intact", "garden", "etacher", person.token, person.session_id, "position"):
            assert secret not in words_of(told.text), (path, secret)
