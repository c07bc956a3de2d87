"""After a withdrawal no file of the study holds what the participant wrote, and the chain still verifies."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import func, select

from experiment.integrity import withdrawal as w
from experiment.integrity.maintenance import MaintainedStudy, Maintenance
from experiment.integrity.withdrawal import find_person
from experiment.models.journal import FILE, Journal, begin_run, intend
from experiment.scoring.trial import Score
from experiment.store import Store, chain, open_store
from experiment.store import records as r
from experiment.store.backups import back_up
from experiment.store.database import address_of, make_engine
from experiment.store.erasure import erase_sessions, what_is_due
from experiment.store.store import upgrade
from experiment.store.tables import audit, invitations, metadata, people, sessions, submissions
from tests.experiment.store.conftest import HERS, begin, do, files_with, look, sessions_in

VERDICT = Score("yes", "valid", True, 1.0, "choice", 1)
Make = Callable[..., dict[str, Any]]


def fill(store: Store, plan: dict[str, Any], make_trial: Make) -> dict[str, str]:
    """Two participants, of whom the first writes the secret everywhere it can, and models that read her answers."""
    ids = {
        "hers": begin(
            store, plan, "P001", participant_id=HERS, station="station-3", client={"browser": HERS}
        ),
        "his": begin(store, plan, "P002", station="station-3"),
    }
    forced = {"reader_kind": "model", "yoked_to": ids["hers"]}
    ids["forced"] = begin(store, plan | {"context": "teacher_forced"}, "m", **forced)
    ids["yoked"] = begin(store, plan, "m2", **forced)

    def write(c: Any) -> None:
        for index in range(40):
            hers = {"response_raw": f"{HERS} {index}" * 20, "key_log": [[HERS, 1.0]]}
            r.store_trial(c, make_trial(ids["hers"], index, **hers), [{"region": 0, "shown": HERS}])
            r.store_score(c, ids["hers"], index, 1, Score(HERS, "valid", True, 1.0, "choice", 1))
            r.store_trial(c, make_trial(ids["his"], index))
            r.store_score(c, ids["his"], index, 1, VERDICT)
            r.store_trial(c, make_trial(ids["forced"], index, work_key=f"k{index}"))
        r.add_event(c, ids["hers"], "answers", {"screen": "questions-1", "answers": {"name": HERS}})
        r.add_flag(c, ids["hers"], "excluded", f"she said: {HERS}", "me")
        r.add_audit(c, "me", "exclude", study="positions", session_id=ids["hers"], detail={"why": HERS})
        r.add_person(c, "positions", ids["hers"], "prolific", "5f" + HERS, {"PROLIFIC_PID": HERS})
        r.add_person(c, "positions", ids["hers"], "invitation", HERS)
        for call in (
            {"request_key": "q1", "session_id": ids["forced"], "request": {"t": HERS}},
            {"request_key": "q1", "request": {"t": HERS}, "requested_model": "far"},
            {
                "request_key": "q2",
                "session_id": ids["hers"],
                "purpose": "judge",
                "text": HERS,
                "requested_model": "remote-judge",
            },
        ):
            r.store_call(c, {"status": "answered"} | call)
        listed = {"source": "prolific", "external_id": "5f" + HERS, "status": "APPROVED", "imported_at": "t"}
        c.execute(submissions.insert().values(study="positions", **listed))
        named = {"token_hash": "h", "participant": HERS, "created_at": "t"}
        c.execute(invitations.insert().values(study="positions", **named))

    store.write(write).result()
    return ids


def count(store: Store, table: Any) -> int:
    with store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(table)) or 0)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    return folder


def test_no_file_holds_the_participants_words_afterwards(study, plan, make_trial, tmp_path):
    with open_store(study) as store:
        ids = fill(store, plan, make_trial)
        copy = back_up(store.address, study / "backups", stem="study")
        second = tmp_path / "stick"
        elsewhere = back_up(store.address, second, stem="study")
        do(store, r.add_audit, "me", "backup", study="positions", detail={"to": str(elsewhere)})
        assert {"study.db", copy.name} <= {*files_with(study, HERS)} | {"study.db"}
        assert files_with(second, HERS) == [elsewhere.name]
        erased, scrubbed = w.withdraw(store, "positions", study, [ids["hers"]], actor="participant")
        # with the store still open, as under `wrods serve`
        assert files_with(tmp_path, HERS) == []
        assert scrubbed.left == []
        assert sorted(scrubbed.backups) == sorted([copy, elsewhere])
        assert erased.rows["trials"] == 80 and erased.rows["calls"] == 3
        assert count(store, people) == count(store, submissions) == count(store, invitations) == 0
    assert files_with(tmp_path, HERS) == []
    assert sorted(row["reader"] for row in sessions_in(copy)) == ["P002", "m2"]


def keep_what_models_made(study: Path, key: str) -> None:
    """Write hidden states, a cached reply and one that a batch brought, all made from the secret, as runs do."""
    run, batches = study / "states" / "run-1", study / "batches"
    run.mkdir(parents=True)
    batches.mkdir()
    np.save(run / "layer_00.npy", np.frombuffer(HERS.ljust(32).encode(), dtype=np.float16)[None])
    pd.DataFrame({"work_key": [key], "row": [0], "position": [0]}).to_parquet(run / "index.parquet")
    with closing(Journal(study)) as journal:

        def answered(connection: sqlite3.Connection) -> None:
            run, _ = begin_run(connection, "positions", "run-1", "m")
            call = intend(connection, run, f"{key}:judge", 0.5, HERS.encode())
            connection.execute("INSERT INTO replies VALUES (?, ?)", (call, HERS))

        journal.write(answered)
    (study / "answers-cache.db").write_text(f"a reply that an earlier version kept: {HERS}", "utf-8")
    line = {"custom_id": key, "response": {"body": HERS}}
    (batches / "b1.answers").write_text(json.dumps(line), "utf-8")


def test_an_erasure_that_was_cut_off_before_the_bytes_is_completed_when_the_study_is_served_again(
    study, plan, make_trial, tmp_path
):
    with open_store(study) as store:
        ids = fill(store, plan, make_trial)
        keep_what_models_made(study, "k1")
        copy = back_up(store.address, study / "backups", stem="study")
        with store.read() as reading:  # its log cannot be emptied
            reading.execute(select(sessions.c.session_id)).all()
            do(store, erase_sessions, [ids["hers"]], actor="participant")
            shutil.copytree(study, tmp_path / "killed")
    killed = tmp_path / "killed"
    made = {FILE, "answers-cache.db", "b1.answers", "layer_00.npy"}
    assert {copy.name, "study.db-wal", *made} <= {*files_with(killed, HERS)}
    told: list[str] = []
    with open_store(killed) as store:
        one = MaintainedStudy("positions", killed, store, None)
        with Maintenance([one], (), told.append, lambda *noted: None):
            pass
        assert files_with(killed, HERS) == [] and told == []
        assert w.clean_up(store, "positions", killed) == []
        assert look(store, what_is_due, "positions") == {}


def test_rows_go_from_every_table_the_chain_verifies_and_the_tombstone_names_nobody(study, plan, make_trial):
    with open_store(study) as store:
        ids = fill(store, plan, make_trial)
        before, his = (look(store, chain.verify, ids[name]) for name in ("hers", "his"))
        w.erase_rows(store, study, [ids["hers"]], actor="participant")
        kept = {"chain", "audit"}  # digests without salts, and the tombstone
        with store.read() as connection:
            for table in metadata.sorted_tables:
                if "session_id" in table.c and table.name not in kept:
                    erased = table.c.session_id.in_([ids["hers"], ids["forced"]])
                    left = select(func.count()).select_from(table).where(erased)
                    assert connection.scalar(left) == 0, table.name
            after = chain.verify(connection, ids["hers"])
            assert chain.verify(connection, ids["his"]) == his
            assert ids["hers"] in chain.chained_sessions(connection, "positions")
            rows = connection.execute(select(audit).where(audit.c.action == chain.WITHDRAWN)).mappings().all()
    assert before.broken is None and after.broken is None
    assert (after.head, after.rows, after.erased) == (before.head, before.rows, before.rows)
    by_session = {row["session_id"]: row for row in rows}
    assert set(by_session) == {ids["hers"], ids["forced"]}
    assert by_session[ids["hers"]]["detail"] == {"reader_kind": "human", "version": 1, "numbers": {"P": 2}}


def test_a_tombstone_keeps_nothing_of_a_typed_number(study, plan):
    with open_store(study) as store:
        begin(store, plan, "P001")
        for typed in ("annamaria.schmidt1989", "P1989"):
            hers = begin(store, plan, typed)
            do(store, r.add_person, "positions", hers, "participant", typed)
            w.erase_rows(store, study, [hers], actor="me")
        with store.read() as connection:
            details = connection.scalars(
                select(audit.c.detail).where(audit.c.action == chain.WITHDRAWN)
            ).all()
    assert len(details) == 2 and all(detail["numbers"] in ({}, {"P": 1}) for detail in details)


def test_tombstones_of_earlier_versions_lose_typed_numbers(study):
    engine = make_engine(address_of(study))
    upgrade(engine, latest="0003")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO audit (at, actor, action, study, session_id, detail) VALUES ('t', 'me', 'withdrawn', "
            "'positions', 's1', '{\"numbers\": {\"annamaria.schmidt\": 1989}}')"
        )
    engine.dispose()
    with open_store(study) as store:
        w.clean_up(store, "positions", study)
    assert files_with(study, "annamaria") == []


def test_a_person_is_found_by_number_or_platform_id(study, plan, make_trial):
    with open_store(study) as store:
        ids = fill(store, plan, make_trial)
        with store.read() as connection:

            def found(**how: Any) -> list[str]:
                return [one.session_id for one in find_person(connection, "positions", **how)]

            assert found(participant="P001") == found(participant=HERS) == [ids["hers"]]
            assert found(platform_id="5f" + HERS) == [ids["hers"]]
            assert found(participant="P1") == found(platform_id="5f") == []


def test_the_scope_names_what_lies_beyond_reach(study, plan, make_trial):
    report = study / "reports" / "2026-11-21" / "data"
    report.mkdir(parents=True)
    (report / "trials.parquet").write_bytes(b"PAR1")
    with open_store(study) as store:
        fill(store, plan, make_trial)
        do(store, r.add_audit, "me", "backup", study="positions", detail={"to": "/nowhere/b.db"})
        do(store, r.add_audit, "me", "export", study="positions", detail={"to": str(study)})
        chosen = look(store, find_person, "positions", participant="P001")
        scope = w.scope_of(store, "positions", study, chosen)
        assert count(store, sessions) == 4
    told = "\n".join(scope.beyond)
    assert scope.derived == 1 and scope.sessions[0].trials == 40
    named = ("reports/2026-11-21", "/nowhere", f"{study}: an export", "remote-judge", "recruitment platform")
    for part in named:
        assert part in told


def test_hidden_states_of_models_that_read_the_answers_are_overwritten(study):
    run = study / "states" / "run-1"
    run.mkdir(parents=True)
    np.save(run / "layer_00.npy", np.ones((4, 8), dtype=np.float16))
    pd.DataFrame(
        {"work_key": ["a", "b", "b", "c"], "row": [0, 1, 2, 3], "position": [0, 0, 1, 0]}
    ).to_parquet(run / "index.parquet")
    kept = run / "results" / "representations_layer_00-abc.npz"
    kept.parent.mkdir()
    kept.touch()
    assert w.erase_states(study, {"z"}) == 0 and kept.is_file()
    assert w.erase_states(study, {"b", "z"}) == 2
    assert not kept.exists(), "what was computed from erased states goes with them"
    assert np.load(run / "layer_00.npy").sum(axis=1).tolist() == [8, 0, 0, 8]
    assert pd.read_parquet(run / "index.parquet")["work_key"].tolist() == ["a", "c"]


def test_a_backup_that_was_out_of_reach_is_cleaned_the_next_time(study, plan, make_trial, tmp_path):
    with open_store(study) as store:
        ids = fill(store, plan, make_trial)
        copy = back_up(store.address, tmp_path / "stick", stem="study")
        w.withdraw(store, "positions", study, [ids["hers"]], actor="me")
        assert files_with(copy.parent, HERS) == [copy.name]
        scrubbed = w.scrub(store, "positions", study, backups=[copy.parent])
    assert scrubbed.backups == [copy] and files_with(copy.parent, HERS) == []
