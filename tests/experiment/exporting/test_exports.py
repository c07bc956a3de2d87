"""What an export holds can be read back, opens safely in a spreadsheet, and meets the standards that it names."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from analysis import load
from experiment.columns import region_columns, trial_columns
from experiment.exporting import ExportChoice, export, export_study
from experiment.exporting.export import placed
from experiment.exporting.tables import cell, read_csv, tables_of, text_of
from experiment.integrity.build_provenance import ensure_version
from experiment.lists import list_ids
from experiment.procedure import plan_session, trials_of
from experiment.procedure.questions import vocabulary
from experiment.scoring.trial import score_trial
from experiment.store import Store, open_store, records
from experiment.store import records as r
from experiment.store.tables import events, sessions, trials
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.exporting.psychds_rules import faults

QUESTIONS = """\
participants: {wanted: 2, completion_code: PAYME77, eligible: {age: [18, 65]}}
about: {authors: [Ada Lovelace], licence: "https://creativecommons.org/licenses/by/4.0/", keywords: [reading]}
procedure:
  - questions:
      hobby: {ask: "What do you like to do?", type: text}
      languages: {ask: Which languages?, type: several, options: [de, en, fr]}
      words: {ask: Which are words?, type: vocabulary, words: 4, nonwords: 2}
"""
PLATFORM_ID = "5f8d0d55a1b2c3"
NASTY = (
    '=HYPERLINK("http://evil")', "'=x", "\tx", '-2,"b"\nc', "@SUM(A1)", "\rx", "+1", "Grüße 🙂", "'quoted'", "TRUE", "1e5",
)  # fmt: skip
SENT = "Is this the sentence that was sent?"
CALL = {
    "attempt": 1, "status": "answered", "text": NASTY[0], "generated": NASTY[4], "reasoning": "@think", "finish_reason": "stop",
    "request": {"messages": [{"role": "user", "content": SENT}]}, "resolved_model": "a/b-2026-01", "requested_model": "a/b",
    "label_logprobs": {"Yes": -0.1, "No": -2.5}, "label_bounds": {"maybe": -9.0}, "from_cache": False, "cost_usd": 0.002,
    "error": '=cmd|"/c calc"!A1', "attempts": 2, "prompt_tokens": 31,
}  # fmt: skip


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    return make_study(("procedure:\n", QUESTIONS))


@pytest.fixture
def store(study: Study) -> Iterator[Store]:
    with open_store(study.folder) as opened:
        fill(study, opened)
        yield opened


MINUTE = "2026-03-01T10:00:"


def fill(study: Study, store: Store) -> None:
    """Two people, a pilot, a simulated reader and a model; the first person answers with all that is nasty in a cell."""
    design = json.dumps(study.design)
    version = store.write(lambda c: ensure_version(c, study.id, study.design_hash, design)).result()
    readers = (
        ("human", "P001"),
        ("human", "P002"),
        ("human", "T001"),
        ("simulated", "S001"),
        ("model", "hf:a/b"),
    )
    for (kind, reader), list_id in zip(readers, cycle(list_ids(study, study.items)), strict=False):
        plan = plan_session(study, study.items, list_id=list_id, session_key=reader, version=version)
        store.write(partial(take_part, study=study, plan=plan, kind=kind, reader=reader)).result()


def take_part(c: Connection, study: Study, plan: dict[str, Any], kind: str, reader: str) -> None:
    session = r.create_session(
        c, plan, reader_kind=kind, reader=reader, participant_id=reader, is_pilot=reader == "T001",
        person_key="one person" if kind == "human" else None, client={"browser": "firefox", "width": 1366},
    )  # fmt: skip
    for index, planned in enumerate(trials_of(plan)):
        raw = NASTY[index % len(NASTY)] if reader == "P001" else planned["answer"]
        row = r.planned_columns(planned) | {
            "session_id": session, "client_uuid": f"{session}{index}", "response_raw": raw, "rt": 512.4 + index,
            "onset_ts": -3.5, "plugin_version": "wrods-choose 0.1.0", "created_at": f"{MINUTE}{10 + index}.000Z",
            "received_at": f"{MINUTE}{10 + index}.200Z",
        }  # fmt: skip
        region = {"region": 0, "shown": raw, "intact": "x", "is_changed": True, "line": 0, "rt": 200.0}
        r.store_trial(c, row, [region])
        r.store_score(c, session, index, 1, score_trial(planned, raw))
        if kind == "model":
            r.store_call(c, CALL | {"session_id": session, "trial_index": index, "request_key": f"{index}"})
    if kind == "human":
        test = vocabulary(study, "words", study.get("procedure")[0]["questions"]["words"])
        words = [*test["words"], test["nonwords"][0]]
        answers = {"hobby": NASTY[0], "languages": ["de", "fr"], "words": words}
        r.add_person(c, study.id, session, "prolific", PLATFORM_ID, {"PROLIFIC_PID": PLATFORM_ID})
        for name, event, detail, at in (
            ("1", "answers", {"screen": "eligibility", "answers": {"age": 34}}, "01.000Z"),
            ("2", "answers", {"screen": "questions-1", "answers": answers}, "05.000Z"),
            ("3", "blur", {}, "12.500Z"),
        ):
            r.add_event(c, session, event, detail, client_uuid=name, at=MINUTE + at)
        r.finish_session(c, session)
    times = {"created_at": f"{MINUTE}00.000Z"}
    times |= {"finished_at": "2026-03-01T10:06:30.000Z"} if kind == "human" else {}
    c.execute(update(sessions).where(sessions.c.session_id == session).values(**times))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_row_and_value_is_read_back_as_it_is_stored(study, store, tmp_path, form):
    done = export_study(study, store, tmp_path / "out", form)
    with store.read() as connection:
        tables = {table.name: table for table in tables_of(study, connection, ExportChoice())}
        assert list(tables["trials"].columns) == [*trial_columns(), *study.factors]
        assert list(tables["regions"].columns) == list(region_columns())
        for name, table in tables.items():
            file = tmp_path / "out" / f"{name}.{form}"
            stored = [{column: row.get(column) for column in table.columns} for row in table.rows()]
            if form == "csv":
                found = list(read_csv(file, table.columns))
                # an empty text and null are one in CSV
                stored = [{k: None if v == "" else v for k, v in row.items()} for row in stored]
            else:
                found = pd.read_parquet(file, dtype_backend="pyarrow").astype(object).to_dict("records")
                found = [{k: None if v is pd.NA else v for k, v in row.items()} for row in found]
            assert found == stored, name
            assert done.rows[name] == len(stored) > 0


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_no_text_is_a_formula_in_a_spreadsheet_and_each_can_be_had_back(text):
    shown = cell(text, is_text=True)
    assert not str(shown).lstrip().startswith(("=", "+", "-", "@", "|", "%=", "＝"))
    assert text_of(str(shown)) == text
    for formula in (
        "=1+1", "\n=1+1", "\r\n=1", "\ufeff=1+1", "＝1+1", "＋1", "－1", "＠SUM(1)", "%=1", "|calc", " =1", "\u200b=1",
        "\x0b=1", "\u2028=1", "''=1", "\ttext",
    ):  # fmt: skip
        assert cell(formula, is_text=True) == f"'{formula}"


def test_participants_have_answers_by_question_eligibility_times_and_a_vocabulary_score(
    study, store, tmp_path
):
    export_study(study, store, tmp_path / "out", "parquet")
    table = pd.read_parquet(tmp_path / "out" / "participants.parquet").set_index("reader")
    assert set(table.index) == {"P001", "P002", "T001", "S001"}
    hers, simulated = table.loc["P001"], table.loc["S001"]
    for name, value in {
        "answer_age": 34, "answer_hobby": NASTY[0], "answer_languages": '["de", "fr"]', "eligible": True,
        "state": "finished", "minutes": 6.5, "browser": "firefox", "width": 1366,
        "vocabulary_words": 0.75,  # every word and one of two nonwords taken
    }.items():  # fmt: skip
        assert hers[name] == value, name
    assert hers["trials_stored"] == hers["trials_planned"] > 0
    assert simulated["eligible"] is None and simulated[["answer_age", "minutes"]].isna().all()


@pytest.mark.parametrize("form", ["csv", "parquet", "jspsych", "psych-ds"])
def test_no_platform_id_and_no_code_is_exported_and_pilots_and_kinds_can_be_left_out(
    study, store, tmp_path, form
):
    def exported(folder: Path, choice: ExportChoice) -> bytes:
        export_study(study, store, folder, form, choice=choice)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return b"".join(
            # compression may break a word in two
            pd.read_parquet(path).to_csv().encode() if path.suffix == ".parquet" else path.read_bytes()
            for path in files
        )

    every = exported(tmp_path / "all", ExportChoice())
    people = exported(tmp_path / "people", ExportChoice(pilots=False, kinds=frozenset({"human"})))
    for secret in (PLATFORM_ID, "PAYME77"):
        assert secret.encode() not in every
    for reader, is_left in (
        ("P001", True),
        ("P002", True),
        ("T001", False),
        ("S001", False),
        ("hf:a/b", False),
    ):
        assert (reader.encode() in every, reader.encode() in people) == (True, is_left), reader


def test_jspsych_files_use_its_names_and_its_order(study, store, tmp_path):
    export_study(study, store, tmp_path / "out", "jspsych")
    (file,) = (path for path in (tmp_path / "out").glob("P001_*.json") if "interactions" not in path.name)
    rows = json.loads(file.read_text("utf-8"))
    assert [row["trial_index"] for row in rows] == list(range(len(rows)))
    assert [row["trial_type"] for row in rows[:3]] == ["wrods-answers", "wrods-answers", "wrods-choose"]
    assert rows[0]["response"] == {"age": 34} and rows[1]["question_order"] == ["hobby", "languages", "words"]
    trial = rows[2]
    # the reader's clock is 200 ms behind the server's
    assert (trial["rt"], trial["rt_exact"], trial["plugin_version"], trial["time_elapsed"]) == (
        512,
        512.4,
        "0.1.0",
        10_200,
    )
    assert (trial["response"], trial["task"], trial["session_trial_index"]) == (NASTY[0], "choose", 0)
    with store.read() as connection:
        first = next(records.trials_of_session(connection, trial["session_id"]))
    assert (
        trial["stimulus"] == "\n\n".join(first["shown"].values())
        and trial["position"] == first["condition"]["position"]
    )
    assert "internal_node_id" not in trial
    interactions = json.loads(next((tmp_path / "out").glob("P001_*_interactions.json")).read_text("utf-8"))
    # after answers (0, 1) and three trials (2, 3, 4) comes the one that was interrupted
    assert interactions == [{"event": "blur", "trial": 5, "time": 12_700}]


@pytest.mark.parametrize("form", ["csv", "jspsych", "psych-ds"])
def test_odd_times_and_answers_of_one_session_leave_the_export_of_all_whole(study, store, tmp_path, form):
    """Earlier versions stored times of day and numbers that there are not."""

    def spoil(connection: Any) -> None:
        connection.execute(
            update(trials).where(trials.c.trial_index == 0).values(created_at="2026-11-24T::::::Z")
        ).close()
        odd = {"screen": "eligibility", "answers": {"age": 10**400}}
        connection.execute(
            update(events).where(events.c.kind == "answers", events.c.event_id == 1).values(detail=odd)
        ).close()

    store.write(spoil).result()
    done = export_study(study, store, tmp_path / "out", form)
    assert done.missing == ()
    everything = "".join(path.read_text("utf-8") for path in (tmp_path / "out").rglob("*.[cj]s*"))
    assert "P001" in everything and "P002" in everything


def test_a_psychds_folder_meets_every_must_and_should(study, store, tmp_path):
    done = export_study(study, store, tmp_path / "out", "psych-ds")
    assert faults(tmp_path / "out") == []
    assert (
        set(done.rows) == {"trials", "regions", "participants", "events", "event_details", "calls", "items"}
        and done.missing == ()
    )
    told = json.loads((tmp_path / "out" / "dataset_description.json").read_text("utf-8"))
    assert told["author"] == [{"@type": "Person", "name": "Ada Lovelace"}]
    variables = {one["name"]: one for one in told["variableMeasured"]}
    assert variables["dropped_frames"]["description"].count("1.5") == 1
    assert variables["first_key_ms"]["unitText"] == "ms" and "intact" in variables["position"]["description"]


def change_json(file: Path, **changed: Any) -> None:
    given = json.loads(file.read_text("utf-8")) | changed
    file.write_text(json.dumps({name: value for name, value in given.items() if value is not None}), "utf-8")


def data_file(folder: Path) -> Path:
    return next((folder / "data").glob("*description-trials_data.csv"))


def rewrite(file: Path, change: Callable[[list[list[str]]], None]) -> None:
    with file.open("r", encoding="utf-8", newline="") as opened:
        rows = list(csv.reader(opened))
    change(rows)
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(rows)


BREAKS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no description": (lambda f: (f / "dataset_description.json").unlink(), "must: there is a dataset_description.json"),
    "no JSON": (lambda f: (f / "dataset_description.json").write_text("{"), "must: dataset_description.json is valid JSON"),
    "no context": (lambda f: change_json(f / "dataset_description.json", **{"@context": None}), "namespace"),
    "another type": (lambda f: change_json(f / "dataset_description.json", **{"@type": "Thing"}), "type is Dataset"),
    "no name": (lambda f: change_json(f / "dataset_description.json", name=None), "must: the description has name"),
    "no variables": (lambda f: change_json(f / "dataset_description.json", variableMeasured=["rt"]), "names every column"),
    "odd property": (lambda f: change_json(f / "dataset_description.json", colour="red"), "has no property colour"),
    "odd author": (lambda f: change_json(f / "dataset_description.json", author=[{"@type": "PropertyValue"}]), "an author is"),
    "no data": (lambda f: shutil.rmtree(f / "data"), "must: there is a folder data/"),
    "a name": (lambda f: data_file(f).rename(f / "data" / "trials.csv"), "is named by keywords"),
    "Latin-1": (lambda f: data_file(f).write_bytes("größe\r\n".encode("latin-1")), "is UTF-8"),
    "a short row": (lambda f: rewrite(data_file(f), lambda rows: rows[1].pop()), "as many cells"),
    "a header twice": (lambda f: rewrite(data_file(f), lambda rows: rows[0].__setitem__(2, "study")), "stands twice"),
    "a row id twice": (lambda f: rewrite(data_file(f), lambda rows: rows[2].__setitem__(0, rows[1][0])), "row_id"),
    "a new column": (lambda f: rewrite(data_file(f), lambda rows: rows[0].__setitem__(2, "mystery")), "(not mystery)"),
    "no sidecar": (lambda f: data_file(f).with_suffix(".json").unlink(), "has a sidecar"),
    "no ignore file": (lambda f: (f / ".psychds-ignore").unlink(), "psychds-ignore"),
    **{
        f"no {name}": (lambda f, name=name: shutil.rmtree(f / name), f"should: there is a folder {name}/")
        for name in ("materials", "documentation", "analysis", "results", "products")
    },
}  # fmt: skip


def test_the_checker_sees_each_rule_broken(study, store, tmp_path):
    whole = tmp_path / "whole"
    export_study(study, store, whole, "psych-ds")
    for name, (spoil, said) in BREAKS.items():
        copy = tmp_path / "copy"
        shutil.copytree(whole, copy)
        spoil(copy)
        found = faults(copy)
        assert any(said in fault for fault in found), (name, found)
        shutil.rmtree(copy)


@pytest.mark.parametrize("form", ["csv", "parquet", "psych-ds"])
def test_an_export_says_which_factors_hold_for_a_whole_session_what_is_planned_and_what_is_excluded(
    make_study, tmp_path, form
):
    planned = (
        "analysis:\n  exclude: {trials: {rt: outside 150 ms to 8 s}}\n"
        "  planned: {forms: {measure: correct, compare: position, between: [human]}}\n"
    )
    between = "design:\n  between: {voice: {calm: {texts: {debrief.md: consent.md}}, loud: {texts: {debrief.md: instructions.md}}}}\n"
    study = make_study(("design:\n", between), ("procedure:\n", planned + QUESTIONS))
    with open_store(study.folder) as store:
        fill(study, store)
        export_study(study, store, tmp_path / "out", form)
    tables = load(tmp_path / "out")
    assert tables.factors == {"position": ["intact", "initial"], "voice": ["calm", "loud"]}
    assert tables.dictionary["between"] == study.between
    assert set(tables.dictionary["planned"]) == {"forms"} and not tables.remarks
    assert tables.dictionary["exclude"] == {"trials": {"rt": "outside 150 ms to 8 s"}}
    book = next((tmp_path / "out").rglob("codebook.md")).read_text("utf-8")
    for factor, levels in tables.factors.items():
        assert re.search(rf"\b{factor}\b.*: {', '.join(levels)};", book)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, *names: str, replace: bool = True) -> None:
    with placed(folder, replace=replace) as place:
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(name, "utf-8")


def test_what_is_not_written_again_goes_and_what_others_put_there_stays(tmp_path):
    write(tmp_path, "trials.csv", "tuning/ft-rs/loss.csv", "tuning/ft-ori/loss.csv", replace=False)
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    (tmp_path / "tuning" / "ft-ori" / "mine.txt").write_text("mine", "utf-8")
    write(tmp_path, "trials.csv", "tuning/ft-rs/loss.csv")
    assert files(tmp_path) == {
        "files.txt", "notes.txt", "trials.csv", "tuning/ft-ori/mine.txt", "tuning/ft-rs/loss.csv"
    }  # fmt: skip
    write(tmp_path, "trials.csv")
    assert not (tmp_path / "tuning" / "ft-rs").exists() and (tmp_path / "notes.txt").exists()
    with pytest.raises(UserError, match=re.escape(str(tmp_path))):
        write(tmp_path, "trials.csv", replace=False)


def test_another_form_takes_the_place_of_the_one_before(study, store, tmp_path):
    out = tmp_path / "out"
    for form, kept, gone in (
        ("parquet", "trials.parquet", "trials.csv"),
        ("csv", "trials.csv", "trials.parquet"),
        ("psych-ds", "dataset_description.json", "trials.csv"),
        ("jspsych", "codebook.md", "dataset_description.json"),
    ):
        export_study(study, store, out, form, replace=True)
        assert (out / kept).is_file() and not (out / gone).exists()
        (listed,) = out.rglob("files.txt")
        assert set(listed.read_text("utf-8").splitlines()) == files(out)


def test_an_export_that_fails_leaves_the_earlier_one_as_it_was(study, store, tmp_path, monkeypatch):
    out = tmp_path / "out"
    export_study(study, store, out, "csv")
    before = {name: (out / name).read_bytes() for name in files(out)}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_plan", full)
    with pytest.raises(OSError, match="No space"):
        export_study(study, store, out, "csv", replace=True)
    assert {name: (out / name).read_bytes() for name in files(out)} == before
    with pytest.raises(OSError, match="No space"):
        export_study(study, store, tmp_path / "new", "csv")
    assert not (tmp_path / "new").exists()


def test_a_list_of_files_reaches_nothing_outside_its_folder(tmp_path):
    out, other = tmp_path / "out", tmp_path / "other.csv"
    other.write_text("mine", "utf-8")
    write(out, "trials.csv")
    (out / "files.txt").write_text("../other.csv\n/etc/hostname\ntrials.csv\n", "utf-8")
    write(out, "items.csv")
    assert other.read_text("utf-8") == "mine" and files(out) == {"files.txt", "items.csv"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches, as pytest's own are not; rights hold in it also where tests are run by root."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        if is_root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="rights of files are others there")
def test_files_that_are_read_only_are_replaced(open_folder):
    out = open_folder / "out"
    write(out, "trials.csv")
    for name in ("trials.csv", "files.txt"):
        (out / name).chmod(0o444)
    with pytest.raises(PermissionError), (out / "trials.csv").open("a"):
        pass
    write(out, "trials.csv", "items.csv")
    assert files(out) == {"files.txt", "items.csv", "trials.csv"}
