from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from experiment.models.leases import leased
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.reconciliation import import_submissions, parse_export, reconciliation
from experiment.people.response_intake import Problem
from experiment.people.service import service_for
from experiment.people.session_start import Arrival, open_session
from experiment.store import Store, StoreError, open_store
from experiment.store import records as q
from experiment.store import records as r
from experiment.store.assignment import PlacesOf, assign_list, next_reader
from experiment.store.records import sessions_overview
from stimuli.errors import UserError
from tests.experiment.people.conftest import prolific_id
from tests.experiment.store.conftest import ROOT, begin


def put(index: int, trial: dict[str, Any]) -> Callable[[Connection], str]:
    del index
    return lambda connection: r.store_trial(connection, trial)


def test_one_failing_operation_takes_no_other_with_it(store, session_id, make_trial):
    def broken(connection: Connection) -> None:
        r.store_trial(connection, make_trial(session_id, 7))
        raise ZeroDivisionError

    futures: list[Future[Any]] = [store.write(put(i, make_trial(session_id, i))) for i in range(5)]
    failing = store.write(broken)
    futures += [store.write(put(i, make_trial(session_id, i))) for i in range(20, 25)]
    assert {future.result() for future in futures} == {"stored"}
    with pytest.raises(ZeroDivisionError):
        failing.result()
    with store.read() as connection:
        assert (7, 1) not in q.done_keys(connection, session_id)


def test_an_operation_that_loses_the_transaction_is_reported_and_the_others_are_kept(
    store, session_id, make_trial
):
    def lose(connection: Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("SELECT no_such_column FROM trials")

    futures: list[Future[Any]] = [store.write(put(i, make_trial(session_id, i))) for i in range(3)]
    lost = store.write(lose)
    futures += [store.write(put(i, make_trial(session_id, i))) for i in range(3, 6)]
    assert {future.result() for future in futures} == {"stored"}
    with pytest.raises(StoreError):
        lost.result()
    with store.read() as connection:
        assert len(q.done_keys(connection, session_id)) == 6


def test_a_locked_database_is_told_to_every_waiter_and_the_writer_lives_on(
    tmp_path, plan, make_trial, monkeypatch
):
    monkeypatch.setattr("experiment.store.database.BUSY_TIMEOUT_S", 0)
    with open_store(tmp_path) as store, open_store(tmp_path) as other:
        made = begin(store, plan)
        holding, let_go = threading.Event(), threading.Event()

        def hold(connection: Connection) -> None:
            holding.set()
            let_go.wait(timeout=60)

        held = other.write(hold)
        assert holding.wait(timeout=60)
        refused = [store.write(put(i, make_trial(made, i))) for i in range(4)]
        for future in refused:
            with pytest.raises(StoreError, match="locked"):
                future.result(timeout=60)
        let_go.set()
        held.result()
        assert store.write(put(0, make_trial(made, 0))).result() == "stored"


def test_closing_writes_what_is_queued(tmp_path, plan, make_trial):
    store = open_store(tmp_path, group_ms=10_000)
    made = store.write(lambda c: r.create_session(c, plan, reader_kind="model", reader="q", session_id="m"))
    futures = [store.write(put(i, make_trial("m", i))) for i in range(200)]
    store.close()
    assert made.result(timeout=0) == "m"
    assert {future.result(timeout=0) for future in futures} == {"stored"}
    with pytest.raises(StoreError, match="closed"):
        store.write(lambda c: None)
    store.close()
    with open_store(tmp_path) as again, again.read() as connection:
        assert len(q.done_keys(connection, "m")) == 200


def test_a_cancelled_write_is_not_made(tmp_path, plan):
    with open_store(tmp_path) as store:
        started, go_on = threading.Event(), threading.Event()

        def slow(connection: Connection) -> None:
            started.set()
            go_on.wait(timeout=60)

        store.write(slow)
        assert started.wait(timeout=60)
        future = store.write(lambda c: r.create_session(c, plan, reader_kind="human", reader="P"))
        with pytest.raises(NotDone):
            future.result(timeout=0.01)
        assert future.cancel()
        go_on.set()
        store.write(lambda c: None).result()
        with store.read() as connection:
            assert q.sessions_overview(connection) == []


WRITES = """
import sys
from experiment.store import open_store, records as r
folder, session, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with open_store(folder) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for index in range(first, first + count):
        trial = {"session_id": session, "trial_index": index, "item_id": "i", "trial_type": "choose",
                 "response_raw": "x" * 200}
        store.write(lambda c, trial=trial: r.store_trial(c, trial)).result()
        print(index, flush=True)
"""


def writing_process(folder: Path, session: str, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITES, str(folder), session, str(first), str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_may_make_the_same_new_store(tmp_path, plan):
    opened: list[Store] = []
    threads = [threading.Thread(target=lambda: opened.append(open_store(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for number, store in enumerate(opened):
        store.write(
            lambda c, number=number: r.create_session(c, plan, reader_kind="human", reader=f"P{number}")
        ).result()
    with opened[0].read() as connection:
        assert len(q.sessions_overview(connection)) == 4
    for store in opened:
        store.close()


def test_a_killed_process_loses_nothing_that_it_confirmed(store, session_id):
    assert store.path is not None
    process = writing_process(store.path.parent, session_id, 0, 100_000)
    start(process)
    assert process.stdout is not None
    confirmed = [int(process.stdout.readline()) for _ in range(40)]
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    confirmed += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    with store.read() as connection:
        stored = {index for index, _ in q.done_keys(connection, session_id)}
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    assert set(confirmed) <= stored
    assert len(stored) <= len(confirmed) + 1


@pytest.mark.postgres
def test_two_stores_on_one_postgresql_number_readers_and_fill_lists_without_a_clash(postgres_url, plan):
    def arrive(connection: Connection) -> int:
        chosen = assign_list(connection, PlacesOf("positions", 1), [1, 2, 3], 7)
        reader = next_reader(connection, "positions")
        r.create_session(connection, plan | {"list_id": chosen}, reader_kind="human", reader=reader)
        return chosen

    with open_store(postgres_url) as one, open_store(postgres_url) as other:
        futures = [store.write(arrive) for _ in range(30) for store in (one, other)]
        chosen = [future.result() for future in futures]
        with one.read() as connection:
            readers = [row["reader"] for row in q.sessions_overview(connection)]
    assert sorted(chosen.count(list_id) for list_id in (1, 2, 3)) == [20, 20, 20]
    assert sorted(readers) == [f"P{number:03d}" for number in range(1, 61)]


HOLD = """
import sys, time
from experiment.models.leases import leased

with leased(sys.argv[1], "positions", "hf:./a model"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_a_model_is_leased_once_and_others_of_the_study_or_of_another_are_free(target):
    with leased(target, "positions", "gpt"):
        with (
            pytest.raises(UserError, match=r"\bgpt\b") as refused,
            leased(target, "positions", "gpt"),
        ):
            pass
        assert refused.value.exit_code == 1
        with leased(target, "positions", "GPT"), leased(target, "other", "gpt"):
            pass
    with leased(target, "positions", "gpt"):
        pass


def test_a_killed_process_frees_its_lease(target):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, target], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UserError, match=r"hf:./a model"), leased(target, "positions", "hf:./a model"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=30)
    deadline = time.monotonic() + 60
    while True:
        try:
            with leased(target, "positions", "hf:./a model"):
                return
        except UserError:
            assert time.monotonic() < deadline, "the lease outlived its process"
            time.sleep(0.05)


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


@pytest.mark.postgres
def test_books_are_compared_and_places_given_back_on_postgresql(make_study, postgres_url):
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: prolific, wanted: 1}\n"))
    with open_store(postgres_url) as store:
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
