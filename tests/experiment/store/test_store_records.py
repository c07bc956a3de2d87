from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from experiment.integrity.build_provenance import DesignChanged, differences, ensure_version
from experiment.store import Store, open_store
from experiment.store import records as q
from experiment.store import records as r
from experiment.store.assignment import PlacesOf, assign_list, free_order_row, next_reader
from experiment.store.records import EXCLUDED
from experiment.store.tables import sessions
from tests.experiment.store.conftest import begin


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Hold what a database does by itself, types and counts, on SQLite and on PostgreSQL."""
    target = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(target) as opened:
        yield opened


def test_a_work_key_names_one_trial_only(store, session_id, make_trial):
    first = make_trial(session_id, 0, work_key="k", client_uuid=None)
    assert store.write(lambda c: r.store_trial(c, first)).result() == "stored"
    with pytest.raises(r.TrialConflict):
        store.write(lambda c: r.store_trial(c, make_trial(session_id, 1, work_key="k"))).result()
    with store.read() as connection:
        assert [trial["work_key"] for trial in q.trials_of_session(connection, session_id)] == ["k"]


def test_a_stored_trial_comes_back_as_it_was_given(either, plan, make_trial):
    session = begin(either, plan)
    odd = {
        "response_raw": "größer \U0001f600 \n'; --",
        "rt": 0.1 + 0.2,
        "key_log": [["a", 1.5]],
        "seed": 2**62,
    }
    given_trial = make_trial(session, 0, **odd)
    either.write(lambda c: r.store_trial(c, given_trial)).result()
    with either.read() as connection:
        (stored,) = q.trials_of_session(connection, session)
    assert {name: stored[name] for name in given_trial} == given_trial
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        either.write(lambda c: r.store_trial(c, make_trial("nobody", 0))).result()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.randoms(use_true_random=False), indices=st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_scrambled_and_repeated_posts_leave_exactly_the_right_rows(either, plan, make_trial, order, indices):
    session = begin(either, plan)
    order.shuffle(indices)
    futures = [
        either.write(lambda c, index=index: r.store_trial(c, make_trial(session, index))) for index in indices
    ]
    told = Counter(future.result() for future in futures)
    with either.read() as connection:
        assert q.done_keys(connection, session) == sorted({(index, 1) for index in indices})
    assert told["stored"] == len(set(indices))


def test_a_model_session_with_a_given_id_is_made_once(store, plan):
    for _ in range(2):
        made = store.write(
            lambda c: r.create_session(c, plan, reader_kind="model", reader="qwen", session_id="m-1")
        ).result()
        assert made == "m-1"
    with store.read() as connection:
        assert [row["session_id"] for row in q.sessions_overview(connection)] == ["m-1"]


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


def test_lists_never_differ_by_more_than_one(either, plan):
    filled: Counter[int] = Counter({1: 0, 2: 0, 3: 0, 4: 0})
    for _ in range(23):
        filled[arrive(either, plan)] += 1
        assert max(filled.values()) - min(filled.values()) <= 1


def test_pilots_and_simulated_readers_do_not_fill_lists_of_people(store, plan):
    for _ in range(5):
        arrive(store, plan, is_pilot=True)
        arrive(store, plan, reader_kind="simulated")
    assert sorted(arrive(store, plan) for _ in range(4)) == [1, 2, 3, 4]


def test_excluded_and_long_abandoned_sessions_leave_their_place(store, plan):
    for _ in range(8):
        arrive(store, plan)
    with store.read() as connection:
        rows = q.sessions_overview(connection)
    excluded = next(row for row in rows if row["list_id"] == 3)
    store.write(lambda c: r.add_flag(c, excluded["session_id"], EXCLUDED, "no sound", "lab")).result()
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
    store.write(lambda c: r.add_person(c, "positions", session_id, "PROLIFIC_PID", "Person-X")).result()
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
    assert store.write(lambda c: ensure_version(c, "positions", "d1", old)).result() == 1
    assert store.write(lambda c: ensure_version(c, "positions", "d1", old)).result() == 1
    with pytest.raises(DesignChanged, match=r"design\.lists: 4 → 2") as refused:
        store.write(lambda c: ensure_version(c, "positions", "d2", new)).result()
    assert "--new-version" in str(refused.value)
    assert store.write(lambda c: ensure_version(c, "positions", "d2", new, new_version=True)).result() == 2
    assert store.write(lambda c: ensure_version(c, "positions", "d1", old)).result() == 1
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
    store.write(lambda c: ensure_version(c, "positions", "d1", "{}")).result()
    if who is not None:
        arrive(store, plan, **who)
    changed = store.write(lambda c: ensure_version(c, "positions", "d2", '{"a": 1}'))
    if found is None:
        with pytest.raises(DesignChanged, match="a: 1 is new"):
            changed.result()
    else:
        assert changed.result() == max(found)
    with store.read() as connection:
        told = {row["version"]: row["design_hash"] for row in q.all_versions(connection, "positions")}
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
