"""The chain notices every later change of a stored row, and holds over what a withdrawal erased."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, text, update

from experiment.scoring.trial import Score
from experiment.store import Store, chain, open_store
from experiment.store import records as r
from experiment.store.tables import chain as links
from experiment.store.tables import events, flags, regions, scores, sessions, trials
from tests.experiment.store.conftest import begin, do, look

Make = Callable[..., dict[str, Any]]
TRIAL_0, TRIAL_1 = "trial 0 (attempt 1)", "trial 1 (attempt 1)"
VERDICT = Score("yes", "valid", True, 1, "choice", 1)
REGION = {
    "region": 0,
    "shown": "Teh",
    "intact": "The",
    "is_changed": True,
    "line": 0,
    "onset_ts": 3,
    "rt": 211.5,
}


# values that come back in another form: whole numbers in columns of fractions, keys that are numbers
ODD = {"rt": 812, "hidden_ms": 0, "key_log": [{2: "b", 10: "a"}, ("x", 1.5)], "response_raw": "ja – é"}


def filled_in(store: Store, session_id: str, make_trial: Make) -> str:
    """Give a session three trials and every other kind of row."""

    def fill(connection: Connection) -> None:
        for index in range(3):
            r.store_trial(connection, make_trial(session_id, index, **ODD), [REGION])
            r.store_score(connection, session_id, index, 1, VERDICT)
        r.add_event(connection, session_id, "consent", {"version": "3f", "agreed": True}, client_uuid="e1")
        r.add_flag(connection, session_id, "suspect", "too fast", "wrods", r.TrialPlace(1))

    store.write(fill).result()
    return session_id


@pytest.fixture
def filled(store: Store, session_id: str, make_trial: Make) -> str:
    return filled_in(store, session_id, make_trial)


def verified(store: Store, session_id: str) -> chain.Verified:
    return look(store, chain.verify, session_id)


def change(store: Store, statement: Any) -> None:
    store.write(lambda connection: connection.execute(statement) and None).result()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    target = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(target) as opened:
        yield opened


def test_what_comes_back_in_another_form_holds_and_a_repeated_or_refused_trial_leaves_the_chain_whole(
    either, plan, make_trial
):
    session = filled_in(either, begin(either, plan), make_trial)
    before = verified(either, session)
    assert before.broken is None
    again = make_trial(session, 1, **ODD)
    assert do(either, r.store_trial, again, [REGION]) == "same"
    assert verified(either, session) == before
    with pytest.raises(r.TrialConflict):
        do(either, r.store_trial, make_trial(session, 1, response_raw="other"))
    found = verified(either, session)
    assert found.broken is None
    assert found.rows == before.rows + 1  # the conflict left an event, which is in the chain


CHANGES: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "an answer": (lambda s: update(trials).where(trials.c.trial_index == 1).values(response_raw="no"), TRIAL_1, "changed"),
    "a time": (lambda s: update(trials).where(trials.c.trial_index == 2).values(rt=812.0000001), "trial 2 (attempt 1)", "changed"),
    "a region's time": (lambda s: update(regions).where(regions.c.trial_index == 0).values(rt=1.0), TRIAL_0, "changed"),
    "a score": (lambda s: update(scores).where(scores.c.trial_index == 0).values(correct=False), "score 1", "changed"),
    "a lost score": (lambda s: delete(scores).where(scores.c.trial_index == 0), "score 1", "missing"),
    "who read": (lambda s: update(sessions).values(reader_kind="simulated"), "the plan with the kind of reader", "changed"),
    "a person among models": (lambda s: update(sessions).values(reader_kind="model"), "the plan with the kind of reader", "changed"),
    "an event": (lambda s: update(events).values(detail={"agreed": False}), "event 1", "changed"),
    "a lost flag": (lambda s: delete(flags), "flag 1", "missing"),
    "a lost region": (lambda s: delete(regions).where(regions.c.trial_index == 2), "trial 2 (attempt 1)", "changed"),
    "the plan": (lambda s: update(sessions).values(plan={"screens": []}), "the plan with the kind of reader", "changed"),
    "the design hash": (lambda s: update(sessions).values(design_hash="d2"), "the session", "design hash"),
    "a flag slipped in": (
        lambda s: insert(flags).values(session_id=s, kind="excluded", reason="because", made_by="me", created_at="now"),
        "flag 2", "outside the chain"),
    "a link": (lambda s: update(links).where(links.c.place == 2).values(link="0" * 64), TRIAL_0, "does not follow"),
    "a link taken out": (lambda s: delete(links).where(links.c.place == 3), "link 3", "missing"),
    "a salt wiped": (lambda s: update(links).where(links.c.place == 2).values(salt=None), TRIAL_0, "no withdrawal"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_changed_behind_the_stores_back_is_named(store, filled, what):
    statement, row, fault = CHANGES[what]
    change(store, statement(filled))
    broken = verified(store, filled).broken
    assert broken is not None
    assert broken.row == row
    assert fault in broken.fault
    assert filled in look(store, chain.chained_sessions, "positions"), "and no session escapes the check"


def test_columns_that_earlier_versions_lacked_change_a_digest_only_where_they_hold_something() -> None:
    earlier = chain._digest("salt", chain.TRIAL, {"regions": [REGION]})
    assert chain._digest("salt", chain.TRIAL, {"regions": [REGION | {"entropy": None}]}) == earlier
    assert chain._digest("salt", chain.TRIAL, {"regions": [REGION | {"entropy": 1.5}]}) != earlier
    assert chain._digest("salt", chain.TRIAL, {"regions": [REGION | {"region_names": "critical"}]}) != earlier
    assert not {"entropy", "region_names"} & set(chain._as_stored(regions, REGION))


def test_a_session_deleted_without_a_withdrawal_is_broken(store, filled):
    for table in (regions, scores, events, flags, trials, sessions):
        change(store, delete(table))
    broken = verified(store, filled).broken
    assert broken is not None and "no withdrawal" in broken.fault


def test_models_have_no_chain(store, plan, make_trial):
    model = do(store, r.create_session, plan, reader_kind="model", reader="m")
    do(store, r.store_trial, make_trial(model, 0, work_key="w"))
    with store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM chain")) == 0
        assert chain.chained_sessions(connection, "positions") == []
