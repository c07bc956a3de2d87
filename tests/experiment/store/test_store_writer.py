from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from experiment.integrity.build_provenance import DesignChanged, differences, ensure_version
from experiment.models.leases import leased
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.reconciliation import import_submissions, parse_export, reconciliation
from experiment.people.response_intake import Problem
from experiment.people.service import service_for
from experiment.people.session_start import Arrival, open_session
from experiment.store import Store, StoreError, open_store
from experiment.store import records as q
from experiment.store import records as r
from experiment.store.assignment import PlacesOf, assign_list, free_order_row, next_reader
from experiment.store.records import EXCLUDED, sessions_overview
from experiment.store.tables import sessions
from stimuli.errors import UserError
from tests.experiment.people.conftest import prolific_id
from tests.experiment.store.conftest import ROOT, begin, do, look


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
    assert (7, 1) not in look(store, q.done_keys, session_id)


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
    assert len(look(store, q.done_keys, session_id)) == 6


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
        assert look(store, q.sessions_overview) == []


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
        begin(store, plan, f"P{number}")
    assert len(look(opened[0], q.sessions_overview)) == 4
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
        readers = [row["reader"] for row in look(one, q.sessions_overview)]
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
        with pytest.raises(UserError, match=r"\bgpt\b") as refused, leased(target, "positions", "gpt"):
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
    holder.communicate(timeout=60)
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
        lists = sorted(row["list_id"] for row in look(one, sessions_overview))
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

        first = do(store, begin, "one")
        with pytest.raises(Problem):
            do(store, begin, "two")
        one, two = prolific_id("one"), prolific_id("two")
        contents = f"Submission id,Participant id,Status\ns-one,{one},RETURNED\ns-two,{two},APPROVED\n"
        done = import_submissions(store, recruitment, parse_export(contents.encode(), "x.csv"), actor="test")
        report = reconciliation(store, recruitment)
        second = do(store, begin, "two")
    assert (done.new, done.returned) == (2, 1)
    assert [(line.session_id, line.state, line.marks) for line in report.lines] == [
        (first, "returned", ("returned",)), (None, None, ("paid_without_data",)),
    ]  # fmt: skip
    assert second != first


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Hold what a database does by itself, types and counts, on SQLite and on PostgreSQL."""
    target = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(target) as opened:
        yield opened


def test_a_work_key_names_one_trial_only(store, session_id, make_trial):
    first = make_trial(session_id, 0, work_key="k", client_uuid=None)
    assert do(store, r.store_trial, first) == "stored"
    with pytest.raises(r.TrialConflict):
        do(store, r.store_trial, make_trial(session_id, 1, work_key="k"))
    assert [trial["work_key"] for trial in look(store, q.trials_of_session, session_id)] == ["k"]


def test_a_stored_trial_comes_back_as_it_was_given(either, plan, make_trial):
    session = begin(either, plan)
    odd = {
        "response_raw": "größer \U0001f600 \n'; --",
        "rt": 0.1 + 0.2,
        "key_log": [["a", 1.5]],
        "seed": 2**62,
    }
    given_trial = make_trial(session, 0, **odd)
    do(either, r.store_trial, given_trial)
    (stored,) = look(either, q.trials_of_session, session)
    assert {name: stored[name] for name in given_trial} == given_trial
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        do(either, r.store_trial, make_trial("nobody", 0))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.randoms(use_true_random=False), indices=st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_scrambled_and_repeated_posts_leave_exactly_the_right_rows(store, plan, make_trial, order, indices):
    session = begin(store, plan)
    order.shuffle(indices)
    futures = [
        store.write(lambda c, index=index: r.store_trial(c, make_trial(session, index))) for index in indices
    ]
    told = Counter(future.result() for future in futures)
    assert look(store, q.done_keys, session) == sorted({(index, 1) for index in indices})
    assert told["stored"] == len(set(indices))


def test_a_model_session_with_a_given_id_is_made_once(store, plan):
    for _ in range(2):
        made = do(store, r.create_session, plan, reader_kind="model", reader="qwen", session_id="m-1")
        assert made == "m-1"
    assert [row["session_id"] for row in look(store, q.sessions_overview)] == ["m-1"]


def arrive(store: Store, plan: dict[str, Any], **who: Any) -> int:
    def operation(connection: Any) -> int:
        kind = who.get("reader_kind", "human")
        pilot = who.get("is_pilot", False)
        chosen = assign_list(connection, PlacesOf("positions", 1, kind, pilot), [1, 2, 3, 4], 7)
        r.create_session(
            connection,
            plan | {"list_id": chosen},
            reader_kind=kind,
            reader=next_reader(connection, "positions"),
            is_pilot=pilot,
        )
        return chosen

    return store.write(operation).result()


def test_lists_never_differ_by_more_than_one(store, plan):
    filled: Counter[int] = Counter({1: 0, 2: 0, 3: 0, 4: 0})
    for _ in range(23):
        filled[arrive(store, plan)] += 1
        assert max(filled.values()) - min(filled.values()) <= 1


def test_pilots_and_simulated_readers_do_not_fill_lists_of_people(store, plan):
    for _ in range(5):
        arrive(store, plan, is_pilot=True)
        arrive(store, plan, reader_kind="simulated")
    assert sorted(arrive(store, plan) for _ in range(4)) == [1, 2, 3, 4]


def test_excluded_and_long_abandoned_sessions_leave_their_place(store, plan):
    for _ in range(8):
        arrive(store, plan)
    rows = look(store, q.sessions_overview)
    excluded = next(row for row in rows if row["list_id"] == 3)
    do(store, r.add_flag, excluded["session_id"], EXCLUDED, "no sound", "lab")
    assert arrive(store, plan) == 3
    abandoned = next(row for row in rows if row["list_id"] == 2)
    long_ago = (
        update(sessions)
        .where(sessions.c.session_id == abandoned["session_id"])
        .values(last_seen_at="2020-01-01T00:00:00.000Z")
    )
    store.write(lambda c: c.execute(long_ago).close()).result()
    assert arrive(store, plan) == 2


def test_a_person_is_found_again_by_any_of_their_ids(store, session_id):
    do(store, r.add_person, "positions", session_id, "PROLIFIC_PID", "Person-X")
    with store.read() as connection:
        found = q.sessions_of_person(
            connection, "positions", {"PROLIFIC_PID": "Person-X", "participant": "17"}
        )
        other = q.sessions_of_person(connection, "another-study", {"PROLIFIC_PID": "Person-X"})
        told = str(q.sessions_overview(connection))
    assert [row["session_id"] for row in found] == [session_id]
    assert other == []
    assert "Person-X" not in told


def test_a_changed_design_is_refused_with_its_difference_once_people_answered(store, session_id):
    del session_id
    old, new = '{"design": {"lists": 4, "keys": ["j", "f"]}}', '{"design": {"lists": 2, "keys": ["j"]}}'
    assert do(store, ensure_version, "positions", "d1", old) == 1
    assert do(store, ensure_version, "positions", "d1", old) == 1
    with pytest.raises(DesignChanged, match=r"design\.lists: 4 → 2") as refused:
        do(store, ensure_version, "positions", "d2", new)
    assert "--new-version" in str(refused.value)
    assert do(store, ensure_version, "positions", "d2", new, new_version=True) == 2
    assert do(store, ensure_version, "positions", "d1", old) == 1
    assert differences(old, new) == ["design.lists: 4 → 2", 'design.keys[1]: "f" is gone']


@pytest.mark.parametrize(
    ("who", "found"),
    [
        (None, {1: "d2"}),  # nobody answered: the design takes the other's place
        *((one, {1: "d1", 2: "d2"}) for one in ({"is_pilot": True}, {"reader_kind": "simulated"})),
        ({"reader_kind": "model", "is_pilot": True}, {1: "d1", 2: "d2"}),
        # sessions that are data bind the design
        *(({"reader_kind": kind}, None) for kind in ("human", "model", "baseline")),
    ],
)
def test_a_changed_design_replaces_follows_or_is_refused_by_who_answered_the_last(store, plan, who, found):
    do(store, ensure_version, "positions", "d1", "{}")
    if who is not None:
        arrive(store, plan, **who)
    changed = store.write(lambda c: ensure_version(c, "positions", "d2", '{"a": 1}'))
    if found is None:
        with pytest.raises(DesignChanged, match="a: 1 is new"):
            changed.result()
    else:
        assert changed.result() == max(found)
    told = {row["version"]: row["design_hash"] for row in look(store, q.all_versions, "positions")}
    assert told == (found or {1: "d1"})


def test_orders_begin_anew_with_a_new_version_so_that_each_version_is_balanced(store, plan):
    def begin(version: int) -> int:
        def write(connection: Any) -> int:
            row = free_order_row(connection, PlacesOf("positions", version), 1)
            given = plan | {"version": version, "order_row": row}
            r.create_session(
                connection, given, reader_kind="human", reader=next_reader(connection, "positions")
            )
            return row

        return store.write(write).result()

    assert [begin(1), begin(1), begin(2), begin(1), begin(2)] == [0, 1, 0, 2, 1]
