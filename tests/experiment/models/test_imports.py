"""Answers from elsewhere: tables of responses and released outputs become sessions, once, with errors that say where."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from experiment.models.imports.responses import read_mapping
from experiment.store import open_store, records
from experiment.store.chain import verify
from stimuli.errors import UserError
from tests.experiment.models.running import invoke

STUDY = """\
wrods: 1
study: lexical
title: Lexical decision
seed: 1
models:
  yoke: human
  who:
    oracle: {use: "baseline:oracle"}
materials: {words: strings.csv}
design:
  factors:
    item_type:
      replaced: {where: {item_type: replaced}}
      transposed: {where: {item_type: transposed}}
      word: {where: {item_type: word}}
    font: {print: {where: {font: print}}, cursive: {where: {font: cursive}}}
  lists: one
procedure:
  - block:
      trial:
        - choose: {show: string, ask: Is this a word?, keys: {word: j, nonword: f}}
"""
MAPPING = """\
reader: participant
list: list
item: base
show: {string: string}
intact: {string: base}
condition: {item_type: item_type, font: font}
answer: {column: item_type, map: {word: word, transposed: nonword, replaced: nonword}}
response: {correct: correct}
rt: {column: rt, unit: s}
"""
ROWS = """\
participant,list,string,item_type,font,rt,correct,base
P1,3,ebiwent,replaced,cursive,1.2264,1,EVIDENT
P1,3,revomal,transposed,cursive,1.9944,0,REMOVAL
P1,3,DENSITY,word,print,0.8228,1,DENSITY
P2,1,DENSITY,word,print,0.7,0,DENSITY
P2,1,revomal,transposed,cursive,0.9,1,REMOVAL
P2,1,ebiwent,replaced,cursive,,,EVIDENT
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("study.yaml", STUDY), ("map.yaml", MAPPING), ("trials.csv", ROWS)):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def take(folder: Path, *more: str, table: Path | None = None):
    given = ("import", folder, table or folder / "trials.csv", "--mapping", folder / "map.yaml", *more)
    return invoke(*given)


def stored(folder: Path):
    with open_store(folder) as store, store.read() as connection:
        sessions = {
            row["reader"]: row
            for row in records.sessions_overview(connection)
            if row["reader_kind"] == "human"
        }
        return sessions, {
            name: list(records.trials_of_session(connection, row["session_id"]))
            for name, row in sessions.items()
        }


def test_each_reader_becomes_a_session_with_list_and_row_order(folder):
    done = take(folder)
    assert done.exit_code == 0, done.output
    sessions, trials = stored(folder)
    assert {name: (row["list_id"], row["state"]) for name, row in sessions.items()} == {
        "P1": (3, "finished"), "P2": (1, "finished")
    }  # fmt: skip
    assert [trial["shown"]["string"] for trial in trials["P1"]] == ["ebiwent", "revomal", "DENSITY"]
    assert [trial["shown"]["string"] for trial in trials["P2"]] == ["DENSITY", "revomal", "ebiwent"]
    assert [(trial["response"], trial["correct"], trial["rt"]) for trial in trials["P1"]] == [
        ("nonword", True, 1226.4), ("word", False, 1994.4), ("word", True, 822.8)
    ]  # fmt: skip
    assert [trial["response_status"] for trial in trials["P2"]] == ["valid", "valid", "timeout"]
    with open_store(folder) as store, store.read() as connection:
        assert all(verify(connection, row["session_id"]).broken is None for row in sessions.values())


def test_a_table_imported_again_adds_nothing_and_another_answer_is_refused(folder):
    assert take(folder).exit_code == 0
    again = json.loads(take(folder, "--json").stdout)
    assert (again["sessions"], again["trials"], again["same"]) == (0, 0, 6)
    (folder / "trials.csv").write_text(ROWS.replace("1.9944,0", "1.9944,1"), "utf-8")
    refused = take(folder)
    assert refused.exit_code == 1 and "trials.csv, line 3" in refused.output
    _, trials = stored(folder)
    assert trials["P1"][1]["response"] == "word"


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_second_row_of_a_trial_with_further_answers_is_no_repetition_of_it(folder, is_asked):
    more = "        - rate: {name: confidence, from: 1, to: 7}\n" if is_asked else ""
    (folder / "study.yaml").write_text(STUDY + more, "utf-8")
    assert take(folder).exit_code == 0
    again = ROWS.replace("P1", "P3").replace("P2", "P4") + "P4,1,DENSITY,word,print,0.5,1,DENSITY\n"
    (folder / "trials.csv").write_text(again, "utf-8")
    done = take(folder)
    told = " ".join(done.output.split())
    assert (done.exit_code, "further answers (confidence)" in told) == (
        (1, True) if is_asked else (0, False)
    ), told
    assert ("line 8: P4 has a second row for item 'DENSITY'" in told) == is_asked


def test_models_judge_the_same_strings_in_the_same_order(folder):
    assert take(folder).exit_code == 0
    done = invoke("run", folder)
    assert done.exit_code == 0, done.output
    with open_store(folder) as store, store.read() as connection:
        sessions = records.sessions_overview(connection)
        yoked = {row["yoked_to"]: row for row in sessions if row["reader_kind"] == "baseline"}
        people = [row for row in sessions if row["reader_kind"] == "human"]
        assert len(yoked) == len(people) == 2
        for person in people:
            theirs, models = (
                [
                    trial["shown"]["string"]
                    for trial in records.trials_of_session(connection, one["session_id"])
                ]
                for one in (person, yoked[person["session_id"]])
            )
            assert models == theirs


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "P1,3,revomal,transposed",
            "P1,3,revomal,transposd",
            ["trials.csv, line 3", "'transposd'", "transposed"],
        ),
        ("1.9944,0,", "soon,0,", ["line 3", "'soon'"]),
        ("1.9944,0,", "1.9944,2,", ["line 3", "'2'", "1 or 0"]),
        ("P1,3,DENSITY", ",3,DENSITY", ["line 4", "reader"]),
        ("P2,1,revomal", "P2,1,removal", ["line 6", "removal"]),
        ("participant,list", "person,list", ["line 2", "'participant'"]),
        (",EVIDENT\nP1,3,rev", ",EVIDENT,more\nP1,3,rev", ["line 2", "cells"]),
        ("0.7,0", "-0.7,0", ["line 5", "-700"]),
        ("correct,base", "correct,rt", ["columns 6 and 8", "'rt'"]),
    ],
)
def test_a_row_that_cannot_be_taken_is_named_with_its_value_and_the_mend(folder, before, after, said):
    assert before in ROWS
    (folder / "trials.csv").write_text(ROWS.replace(before, after), "utf-8")
    done = take(folder)
    assert done.exit_code != 0 and "Traceback" not in done.output
    assert all(part in done.output for part in said), done.output


def test_responses_of_a_model_come_from_jsonl_with_their_calls(folder):
    assert take(folder).exit_code == 0
    mapping = MAPPING.replace(
        "reader: participant", "reader: {value: gpt-9}\nreader_kind: model\nprompt: prompt"
    )
    mapping = mapping.replace("response: {correct: correct}", "response: output").replace(
        "rt: {column: rt, unit: s}\n", ""
    )
    (folder / "map.yaml").write_text(mapping + "prediction: read\n", "utf-8")
    row = {
        "list": "1",
        "string": "DENSITY",
        "item_type": "word",
        "font": "print",
        "base": "DENSITY",
        "prompt": "Word?",
    }
    table = folder / "gpt.jsonl"
    table.write_text(json.dumps({**row, "output": "Word.", "read": "word"}) + "\n", "utf-8")
    done = take(folder, "--json", table=table)
    told = json.loads(done.stdout)
    assert (told["trials"], told["predictions"], told["agreeing"]) == (1, 1, 1), done.output
    with open_store(folder) as store, store.read() as connection:
        (call,) = records.all_calls(connection)
        (session,) = (row for row in records.sessions_overview(connection) if row["reader_kind"] == "model")
    assert call["request"]["messages"][0]["content"] == "Word?" and session["reader"] == "gpt-9"


def test_a_name_that_stands_twice_in_a_json_line_is_refused(folder):
    table = folder / "answers.jsonl"
    table.write_text('{"participant": "P1", "rt": 1, "rt": 2}\n', "utf-8")
    done = take(folder, table=table)
    assert done.exit_code == 2 and "line 1: 'rt'" in done.output


def test_a_reader_whose_rows_name_two_lists_is_refused_or_told_apart_by_session(folder):
    file = folder / "trials.csv"
    file.write_text(file.read_text("utf-8").replace("P1,3,DENSITY", "P1,4,DENSITY"), "utf-8")
    done = take(folder)
    assert done.exit_code == 2
    assert all(part in done.output for part in ("line 4: P1", "line 2", "`session`"))
    (folder / "map.yaml").write_text(f"{MAPPING}session: list\n", "utf-8")
    assert take(folder).exit_code == 0
    with open_store(folder) as store, store.read() as connection:
        rows = [row for row in records.sessions_overview(connection) if row["reader"] == "P1"]
    assert sorted((row["list_id"], row["n_trials"]) for row in rows) == [(3, 2), (4, 1)]


@pytest.mark.parametrize(
    ("factor", "unit", "mend"),
    [
        (1000, "s", "`unit: ms` in map.yaml"),
        (1, "ms", "`unit: s` in map.yaml"),
        (0.001, "s", " 0.9 ms"),
        (1e6, "ms", " 900,000 ms"),
    ],
)
def test_times_of_another_size_than_peoples_are_remarked_upon(folder, factor, unit, mend):
    file = folder / "trials.csv"
    cells = [line.split(",") for line in file.read_text("utf-8").splitlines()]
    rows = [[*row[:5], str(float(row[5]) * factor) if row[5] else "", *row[6:]] for row in cells[1:]]
    file.write_text("\n".join(",".join(row) for row in [cells[0], *rows]), "utf-8")
    (folder / "map.yaml").write_text(MAPPING.replace("unit: s", f"unit: {unit}"), "utf-8")
    done = take(folder)
    assert done.exit_code == 0 and mend in done.output


def test_a_table_of_a_spreadsheet_with_decimal_commas_is_read(folder):
    file = folder / "trials.csv"
    file.write_text(file.read_text("utf-8").replace(",", ";").replace(".", ","), "utf-8")
    assert take(folder).exit_code == 0
    _, trials = stored(folder)
    assert [trial["rt"] for trial in trials["P1"]] == [1226.4, 1994.4, 822.8]


def mapping(folder: Path, text: str) -> Path:
    file = folder / "map.yaml"
    file.write_text(f"reader: p\nitem: i\n{text}\n", "utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("response: {column: key, correct: key}", "column, map"),
        ("response: {colum: key}", "'column'"),
        ("response: key\nlist: [1]", "line 4: list is [\"1\"]"),
        ("response: key\nlist: {value: }", "line 4: list.value"),
        ("response: key\nrt: {column: rt, unit: sec}", "rt.unit is \"sec\""),
        ("response: key\nrt: rt", "{column: rt, unit: ms}"),
        ("response: {column: key, map: {j: [a]}}", "line 3: response.map.j"),
        ("response: key\nshow: string", "as `{string: string}`"),
        ("response: key\nitem: z", "line 4: 'item'"),
        ("list: x", "response"),
    ],
)  # fmt: skip
def test_each_fault_is_told_with_line_value_and_form(folder, text, said):
    with pytest.raises(UserError) as error:
        read_mapping(mapping(folder, text))
    assert said in error.value.message and "schemas" not in error.value.message


def test_several_faults_are_told_at_once(folder):
    with pytest.raises(UserError) as error:
        read_mapping(mapping(folder, "response: key\nconditon: {a: b}\nreader_kind: modell"))
    for place, meant in (("line 4: conditon", "'condition'"), ("line 5: reader_kind", "'model'")):
        assert re.search(f"{place}.*{meant}", error.value.message)


@pytest.mark.parametrize("listed", ["0", "²", "one", "1.5", "-1"])
def test_a_list_that_is_no_whole_number_from_1_is_refused(folder, listed):
    (folder / "map.yaml").write_text(MAPPING.replace("list: list", f"list: {{value: '{listed}'}}"), "utf-8")
    refused = take(folder)
    assert refused.exit_code == 2 and repr(listed) in refused.output


def test_files_that_are_no_text_are_told_as_such(folder):
    (folder / "map.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"map\.yaml.*UTF-8"):
        read_mapping(folder / "map.yaml")
    (folder / "map.yaml").write_text(MAPPING, "utf-8")
    whole = gzip.compress((ROWS * 50).encode())
    for content in (whole[: len(whole) // 2], b"participant,list"):
        (folder / "cut.csv.gz").write_bytes(content)
        refused = take(folder, table=folder / "cut.csv.gz")
        assert refused.exit_code == 2 and "cut.csv.gz" in refused.output
    (folder / "t.jsonl").write_text(json.dumps({"participant": "P"}) + "\n[1]\n", "utf-8")
    assert "t.jsonl, line 2" in take(folder, table=folder / "t.jsonl").output
