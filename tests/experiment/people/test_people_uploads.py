"""Copies of answers that a participant downloaded: taken once, whatever had arrived, and only where they belong."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from sqlalchemy import select

from experiment.integrity.withdrawal import remembered
from experiment.people.response_intake import read_copy, take_copy
from experiment.store import queries as q
from experiment.store.backups import FOLDER, back_up
from experiment.store.tables import audit
from stimuli.errors import UserError
from tests.experiment.commands import wrods


def copy_of(person: Any, trials: int = 5, **changed: Any) -> dict[str, Any]:
    event = {"client_uuid": str(uuid.UUID(int=7)), "kind": "blur", "detail": {"ts": 1.5}, "at": None}
    items = [{"kind": "trials", "body": person.payload(index)} for index in range(trials)]
    return {
        "wrods": 1, "kind": "answers", "study": "small", "session_id": person.session_id, "token": person.token,
        "items": [*items, {"kind": "events", "body": event}],
    } | changed  # fmt: skip


def test_a_copy_adds_what_did_not_arrive_and_completes_the_session(site):
    person = site.begin(participant="1")
    person.answer(0)
    person.answer(2)
    taken = take_copy(site.store, "small", read_copy(json.dumps(copy_of(person)).encode()))
    assert (taken.new, taken.same, taken.refused, taken.trials) == (4, 2, 0, 3)
    assert (taken.reader, taken.state) == ("1", "finished")
    with site.store.read() as connection:
        rows = list(q.trials_with_scores(connection))
    assert [row["trial_index"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["scorer"] for row in rows)
    assert person.finish(5).body["completion_code"], "the page, still open, gets its code all the same"


def test_taking_a_copy_again_changes_nothing(site):
    person = site.begin(participant="1")
    person.agree()
    copy = copy_of(person, 3)

    def everything() -> list[Any]:
        with site.store.read() as connection:
            tables = (q.trials_with_scores, q.all_scores, q.all_events, q.sessions_overview)
            return [list(table(connection)) for table in tables]

    assert take_copy(site.store, "small", copy).new == 4
    before = everything()
    again = take_copy(site.store, "small", copy)
    assert (again.new, again.same, again.refused, again.state) == (0, 4, 0, "started")
    after = everything()
    for rows in (*before, *after):
        for row in rows:
            row.pop("last_seen_at", None)
    assert after == before


def test_a_copy_that_has_answers_deleted_cleans_the_files_too(site, tmp_path):
    person = site.begin(participant="a-very-particular-person")
    folder = site.service.folder
    backup = back_up(site.store.address, folder / FOLDER, stem="study")
    given = {"client_uuid": str(uuid.UUID(int=8)), "kind": "consent", "detail": {"agreed": False}, "at": None}
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(copy_of(person, 0, items=[{"kind": "events", "body": given}])))
    done = wrods("import", folder, file, "--json")
    told = json.loads(done.stdout)
    assert (told["refused"], told["state"]) == (0, "withdrawn"), done.output
    assert person.session_id in remembered(folder)
    assert b"a-very-particular-person" not in backup.read_bytes()
    with site.store.read() as connection:
        assert person.session_id not in repr(connection.execute(select(audit)).all())


def test_what_contradicts_a_stored_answer_is_refused_with_the_reason(site):
    person = site.begin(participant="1")
    person.answer(0, response_raw="something else")
    copy = copy_of(person, 2)
    copy["items"].append({"kind": "trials", "body": {"trial_index": "x"}})
    copy["items"].append({"kind": "trials", "body": person.payload(1) | {"trial_index": 99, "attempt": 2}})
    taken = take_copy(site.store, "small", copy)
    assert (taken.new, taken.same, taken.refused) == (2, 0, 3)
    assert any("stored with other contents" in reason for reason in taken.reasons)
    assert "there is no trial 99" in taken.reasons


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"token": "another token"}, "not in this store"),
        ({"session_id": "0" * 32}, "not in this store"),
        ({"study": "big"}, "of the study 'big'"),
        ({"wrods": 2}, "not a copy of answers"),
        ({"items": "x"}, "not a copy of answers"),
        ({"extra": 1}, "not a copy of answers"),
    ],
)
def test_what_does_not_belong_here_is_refused_in_words(site, changed, told):
    person = site.begin(participant="1")
    with pytest.raises(UserError, match=told):
        take_copy(site.store, "small", copy_of(person, 1, **changed))
    with site.store.read() as connection:
        assert not list(q.trials_with_scores(connection))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"[" * 2000, b'{"wrods": NaN}'])
def test_a_file_that_is_no_copy_is_refused_in_words(data):
    with pytest.raises(UserError, match="not a copy of answers"):
        read_copy(data)


def test_wrods_import_tells_the_counts(site, tmp_path):
    person = site.begin(participant="1")
    file = tmp_path / "small-answers.json"
    copy = copy_of(person)
    agreed = {"client_uuid": str(uuid.UUID(int=8)), "kind": "consent", "detail": person.agreement}
    copy["items"].insert(0, {"kind": "events", "body": agreed})
    file.write_text(json.dumps(copy), "utf-8")
    folder = str(site.store.path.parent)
    told = wrods("import", folder, file)
    assert told.exit_code == 0, told.output
    assert "1 (finished): 7 new (5 of them trials), 0 were here already, 0 refused." in told.output
    again = wrods("import", folder, file, "--json")
    assert json.loads(again.output)["same"] == 7
    file.write_text("{}", "utf-8")
    wrong = wrods("import", folder, file)
    assert wrong.exit_code != 0 and "not a copy of answers" in wrong.output
