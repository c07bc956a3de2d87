"""Statements that are prepared once write what SQLAlchemy's own would, and fail as they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from experiment.store import Store, open_store
from experiment.store.statements import PreparedStatement, insert_into
from experiment.store.tables import trials


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Store]:
    target = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(target) as opened:
        yield opened


def trial_rows(store: Store) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [dict(row) for row in connection.execute(select(trials)).mappings()]


WHOLE = {"attempt": 1, "timed_out": False, "payload_hash": "h", "created_at": "c", "received_at": "c"}
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    raw=st.none() | TEXT,
    rt=st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32),
    log=st.none() | st.lists(st.lists(st.integers(0, 99) | TEXT, max_size=2), max_size=3),
    late=st.booleans(),
)
def test_a_prepared_insert_stores_what_the_plain_one_stores(
    store, session_id, make_trial, raw, rt, log, late
):
    row = make_trial(session_id, 0, response_raw=raw, rt=rt, key_log=log, timed_out=late) | {
        "attempt": 1, "payload_hash": "h", "created_at": "2026", "received_at": "2026",
    }  # fmt: skip

    def both(connection: Any) -> tuple[Any, Any]:
        found = []
        for write in (
            lambda: connection.execute(trials.insert().values(**row)),
            lambda: insert_into(trials).execute(connection, row),
        ):
            write()
            found.append(dict(connection.execute(select(trials)).mappings().one()))
            connection.execute(trials.delete())
        return found[0], found[1]

    plain, prepared = store.write(both).result()
    assert prepared == plain


def test_what_is_put_off_comes_before_what_is_given_after_it(store, session_id, make_trial):
    count = PreparedStatement(lambda _: select(func.count()).select_from(trials))

    def counts(connection: Any) -> list[int]:
        found = []
        for index in range(3):
            asked = count.ask(connection, {})
            insert_into(trials).put_off(connection, make_trial(session_id, index) | WHOLE)
            if index == 0:
                found.append(count.first(connection, {})[0])  # type: ignore[index]
            elif index == 1:
                found.append(connection.scalar(select(func.count()).select_from(trials)))
            found.append(asked()[0])  # type: ignore[index]
        return found

    assert store.write(counts).result() == [1, 0, 2, 1, 2]
    assert [row["trial_index"] for row in trial_rows(store)] == [0, 1, 2]


def test_an_error_of_what_was_put_off_belongs_to_its_operation(store, session_id, make_trial):
    orphan = make_trial("no such session", 0) | WHOLE

    def fail(connection: Any) -> None:
        insert_into(trials).put_off(connection, orphan)
        raise RuntimeError("after it was put off")

    queued = [
        store.write(lambda c: insert_into(trials).put_off(c, make_trial(session_id, 1) | WHOLE)),
        store.write(lambda c: insert_into(trials).put_off(c, orphan)),
        store.write(fail),
        store.write(lambda c: insert_into(trials).put_off(c, make_trial(session_id, 2) | WHOLE)),
    ]
    with pytest.raises(IntegrityError):
        queued[1].result()
    with pytest.raises((RuntimeError, IntegrityError) if store.path else RuntimeError):
        queued[2].result()
    assert queued[0].result() is None and queued[3].result() is None
    assert [row["trial_index"] for row in trial_rows(store)] == [1, 2]
