"""The last place of a study goes to one person, also where two servers share a database."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.reconciliation import import_submissions, parse_export, reconciliation
from experiment.people.request_validation import Problem
from experiment.people.service import service_for
from experiment.people.session_start import Arrival, open_session
from experiment.store import open_store
from experiment.store.queries import sessions_overview
from tests.experiment.people.recruitment.conftest import prolific_id

KINDS = pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])


@KINDS
def test_two_servers_give_out_as_many_places_as_there_are(make_study, request, kind):
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: link, wanted: 4}\n"))
    target: Path | str = study.folder if kind == "sqlite" else request.getfixturevalue("postgres_url")
    told: list[str] = []
    with open_store(target) as one, open_store(target) as other:
        services = [
            replace(service_for(study, store), recruitment=recruitment_for(study, {}))
            for store in (one, other)
        ]

        def arrive(place: int) -> None:
            service: Any = services[place % 2]

            def begin(connection: Connection) -> None:
                body = {"client_uuid": str(uuid.uuid4())}
                open_session(connection, service, body, Arrival(), secret=b"a key for this test")

            try:
                service.store.write(begin).result(timeout=60)
                told.append("in")
            except Problem as refusal:
                told.append(refusal.body["rule"])

        people = [threading.Thread(target=arrive, args=(place,)) for place in range(16)]
        for person in people:
            person.start()
        for person in people:
            person.join()
        with one.read() as connection:
            lists = sorted(row["list_id"] for row in sessions_overview(connection))
    assert sorted(told) == ["busy"] * 12 + ["in"] * 4
    assert lists == [1, 1, 2, 2] or lists == [0, 0, 1, 1]


@KINDS
def test_books_are_compared_and_places_given_back_in_either_store(make_study, request, kind):
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: prolific, wanted: 1}\n"))
    target: Path | str = study.folder if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(target) as store:
        service = replace(service_for(study, store), recruitment=recruitment_for(study, {}))
        recruitment = service.recruitment
        assert recruitment is not None

        def begin(connection: Connection, name: str) -> str:
            body = {"client_uuid": str(uuid.uuid4())}
            arrival = Arrival({"PROLIFIC_PID": prolific_id(name), "SESSION_ID": f"s-{name}"})
            return open_session(connection, service, body, arrival, secret=b"a key").session_id

        first = store.write(lambda connection: begin(connection, "one")).result()
        with pytest.raises(Problem):
            store.write(lambda connection: begin(connection, "two")).result()
        one, two = prolific_id("one"), prolific_id("two")
        contents = f"Submission id,Participant id,Status\ns-one,{one},RETURNED\ns-two,{two},APPROVED\n"
        done = import_submissions(store, recruitment, parse_export(contents.encode(), "x.csv"), actor="test")
        report = reconciliation(store, recruitment)
        second = store.write(lambda connection: begin(connection, "two")).result()
    assert (done.new, done.returned) == (2, 1)
    assert [(line.session_id, line.state, line.marks) for line in report.lines] == [
        (first, "returned", ("returned",)), (None, None, ("paid_without_data",)),
    ]  # fmt: skip
    assert second != first
