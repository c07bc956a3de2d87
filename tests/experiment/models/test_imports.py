"""Answers from elsewhere become sessions, once, whole or not at all, with errors that say where; the documented route runs."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from analysis import load
from analysis.measures.accuracy import with_chance
from analysis.report.chapters import Material, sensitivity
from analysis.report.method import method_parts
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from experiment.models.imports import writing
from experiment.models.imports.responses import read_mapping
from experiment.store import Store, open_store, records
from experiment.store.chain import verify
from stimuli.errors import UserError
from tests.analysis.chapters import tables_in
from tests.conftest import ROOT
from tests.experiment.commands import worked
from tests.experiment.models.running import invoke, wait_until

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


SURE = (
    "        - rate: {name: sure, from: 1, to: 7}\n        - choose: {name: seen, keys: {seen: s, new: n}}\n"
)


@pytest.mark.parametrize("kind", ["human", "model"])
def test_rows_of_further_answers_are_trials_of_the_plan_behind_those_they_are_about(folder, kind):
    (folder / "study.yaml").write_text(STUDY + SURE, "utf-8")
    mapping = MAPPING.replace("{correct: correct}", "{column: key, map: {j: word, f: nonword}}")
    (folder / "map.yaml").write_text(f"{mapping}step: step\nreader_kind: {kind}\n", "utf-8")
    given = [
        ("ebiwent", "replaced", "cursive", "EVIDENT", "", "f"),
        ("revomal", "transposed", "cursive", "REMOVAL", "", "j"),
        ("ebiwent", "replaced", "cursive", "EVIDENT", "sure", "6"),
        ("revomal", "transposed", "cursive", "REMOVAL", "seen", "new"),
        ("revomal", "transposed", "cursive", "REMOVAL", "sure", ""),
    ]
    head = "participant,list,string,item_type,font,base,step,key,rt\n"

    def table(rows):
        (folder / "trials.csv").write_text(
            head + "".join(f"P1,1,{','.join(row)},0.8\n" for row in rows), "utf-8"
        )

    table(given)
    done = take(folder)
    assert done.exit_code == 0, done.output
    assert "further answers that are not there, which count as missing: 1" in done.output
    with open_store(folder) as store, store.read() as connection:
        (session,) = records.sessions_overview(connection)
        trials = list(records.trials_of_session(connection, session["session_id"]))
    assert (session["planned_trials"], session["n_trials"], session["state"]) == (6, 5, "finished")
    assert [(trial["trial_index"], trial["step_name"], trial["response"]) for trial in trials] == [
        (0, None, "nonword"), (1, "sure", "6"), (3, None, "word"), (4, "sure", None), (5, "seen", "new"),
    ]  # fmt: skip
    assert trials[1]["score"] == 6
    assert trials[3]["response_status"] == ("timeout" if kind == "human" else "empty")
    assert "5 trials were here already" in take(folder).output
    wrong = [
        given[2],
        *given[:2],
        ("revomal", "transposed", "cursive", "REMOVAL", "sur", "3"),
        ("ebiwent", "replaced", "cursive", "EVIDENT", "seen", "new"),
        ("ebiwent", "replaced", "cursive", "EVIDENT", "seen", "seen"),
    ]
    table(wrong)
    (folder / "trials.csv").write_text(
        (folder / "trials.csv").read_text("utf-8").replace("P1,", "P2,"), "utf-8"
    )
    refused = take(folder)
    told = " ".join(refused.output.split())
    assert refused.exit_code == 1
    for part in (
        "line 2: P2 has no answer to item 'EVIDENT' before the further answer sure",
        "line 5: the step is 'sur'; further answers to item 'REMOVAL' are sure, seen Did you mean 'sure'?",
        "line 7: P2 has a second further answer seen to the same trial of item 'EVIDENT'",
    ):
        assert part in told, told


def test_columns_of_further_answers_are_trials_behind_that_of_their_row(folder):
    (folder / "study.yaml").write_text(STUDY + SURE, "utf-8")
    (folder / "map.yaml").write_text(
        f"{MAPPING}further: {{sure: confidence, seen: {{column: old, map: {{1: seen, 0: new}}}}}}\n", "utf-8"
    )
    (folder / "trials.csv").write_text(
        "participant,list,string,item_type,font,base,correct,rt,confidence,old\n"
        "P1,1,ebiwent,replaced,cursive,EVIDENT,1,0.8,6,1\nP1,1,revomal,transposed,cursive,REMOVAL,0,0.9,,0\n", "utf-8"
    )  # fmt: skip
    done = take(folder)
    assert done.exit_code == 0 and "not there, which count as missing: 1" in done.output, done.output
    with open_store(folder) as store, store.read() as connection:
        (session,) = records.sessions_overview(connection)
        trials = list(records.trials_of_session(connection, session["session_id"]))
    assert [(one["trial_index"], one["step_name"], one["response"], one["rt"]) for one in trials] == [
        (0, None, "nonword", 800), (1, "sure", "6", None), (2, "seen", "seen", None),
        (3, None, "word", 900), (5, "seen", "new", None),
    ]  # fmt: skip
    (folder / "map.yaml").write_text(f"{MAPPING}step: old\nfurther: {{sur: confidence}}\n", "utf-8")
    assert "take `step` out" in " ".join(take(folder).output.split())
    (folder / "map.yaml").write_text(f"{MAPPING}further: {{sur: confidence}}\n", "utf-8")
    (folder / "trials.csv").write_text(
        (folder / "trials.csv").read_text("utf-8").replace("P1,", "P2,"), "utf-8"
    )
    assert "line 2: the step is 'sur'" in " ".join(take(folder).output.split())


def test_every_row_that_cannot_be_taken_is_named_at_once(folder):
    rows = ROWS.replace("P1,3,revomal", ",3,revomal").replace("0.7,0", "-0.7,0").replace("0.9,1", "soon,1")
    (folder / "trials.csv").write_text(rows.replace("replaced,cursive,,", "replacd,cursive,,"), "utf-8")
    done = take(folder)
    assert done.exit_code == 2
    for part in (
        "line 3 has no reader",
        "line 5: a response time of -700",
        "line 6: rt is 'soon'",
        "line 7 has 'replacd'",
    ):
        assert part in done.output, done.output
    assert not (folder / "items.jsonl").exists()


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


@pytest.mark.parametrize("listed", ["0", "²", "1.5"])
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


ANSWERS = """\
participant,list,string,item_type,font,rt,said,base
P1,1,ebiwent,replaced,cursive,1.2,nonword,EVIDENT
P1,1,revomal,transposed,cursive,1.9,wrod,REMOVAL
P1,1,DENSITY,word,print,0.8,Word,DENSITY
P2,1,DENSITY,word,print,0.7,wrod,DENSITY
"""


LONGER = ROWS + "P2,1,CAMERA,word,print,0.5,1,CAMERA\n"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_table_that_cannot_be_taken_leaves_nothing_and_is_taken_once_mended_and_longer(folder):
    before = files(folder)
    (folder / "trials.csv").write_text(ROWS.replace("0.8228", "O.8228"), "utf-8")
    refused = take(folder)
    assert refused.exit_code == 2 and "'O.8228'" in refused.output
    assert files(folder) == before
    (folder / "trials.csv").write_text(LONGER, "utf-8")
    done = take(folder)
    assert done.exit_code == 0, done.output
    _, trials = stored(folder)
    assert [len(trials[name]) for name in ("P1", "P2")] == [3, 4]


def test_a_string_that_comes_after_sessions_are_stored_is_refused_with_a_way_out(folder):
    assert take(folder).exit_code == 0
    more = folder / "more.csv"
    more.write_text(ROWS.splitlines()[0] + "\nP3,1,CAMERA,word,print,0.5,1,CAMERA\n", "utf-8")
    refused = take(folder, table=more)
    assert refused.exit_code == 2 and "'CAMERA'" in refused.output
    other = folder / "both"
    other.mkdir()
    for name in ("study.yaml", "map.yaml"):
        shutil.copy(folder / name, other)
    given = ["import", other, folder / "trials.csv", more, "--mapping", other / "map.yaml", "--json"]
    done = invoke(*given)
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["sessions"], one["trials"]) for one in told] == [(2, 6), (1, 1)]


def test_a_fault_while_rows_are_stored_takes_back_sessions_and_items(folder, monkeypatch):
    took = writing.records.store_score
    calls: list[int] = []

    def fails(*given, **named):
        calls.append(1)
        if len(calls) == 5:
            raise MemoryError("at the fifth row")
        return took(*given, **named)

    monkeypatch.setattr(writing.records, "store_score", fails)
    assert isinstance(take(folder).exception, MemoryError)
    assert "items.jsonl" not in files(folder) and "items.meta.json" not in files(folder)
    with open_store(folder) as store, store.read() as connection:
        assert records.sessions_overview(connection) == []
        assert records.all_versions(connection, "lexical") == []
    monkeypatch.undo()
    assert take(folder).exit_code == 0


def test_answers_of_people_that_are_no_label_are_counted_and_named(folder):
    (folder / "map.yaml").write_text(MAPPING.replace("{correct: correct}", "said"), "utf-8")
    (folder / "trials.csv").write_text(ANSWERS, "utf-8")
    done = take(folder)
    assert done.exit_code == 0, done.output
    assert "2 unparsed, 2 valid" in done.output and "word, nonword" in done.output
    assert re.search(r"'wrod': 2.* trials\.csv, line 3", done.output)
    _, trials = stored(folder)
    status = [(trial["response_raw"], trial["response_status"], trial["correct"]) for trial in trials["P1"]]
    assert status == [("nonword", "valid", True), ("wrod", "unparsed", None), ("Word", "valid", True)]
    again = json.loads(take(folder, "--json").stdout)
    assert again["same"] == 4 and again["unread"]["wrod"]["count"] == 2


def test_an_item_that_a_reader_has_twice_is_told(folder):
    (folder / "trials.csv").write_text(ROWS + "P2,1,DENSITY,word,print,0.6,1,DENSITY\n", "utf-8")
    done = take(folder)
    assert done.exit_code == 0 and "'DENSITY', trials.csv, line 8" in done.output
    _, trials = stored(folder)
    assert [trial["correct"] for trial in trials["P2"]] == [False, True, None, True]


def test_what_is_handed_over_says_that_people_were_imported_and_has_the_labels_as_choices(folder):
    assert take(folder).exit_code == 0
    with opened_study(folder) as opened:
        data = hand_over(opened.study, opened.store, folder / "data")
        assert {item.choices for item in opened.study.items} == {("word", "nonword")}
    told = json.loads((data / "dictionary.json").read_text("utf-8"))["participants"]
    assert (told["imported"], told["imported_trials"]) == (2, [3, 3])
    assert told["first_session"] is None and told["last_session"] is None
    tables = load(data)
    method = " ".join(str(text) for part in method_parts(tables, (), None) for text in part.paragraphs)
    assert "two sessions" in method and "three trials" in method
    chapter = sensitivity.write(Material(tables, (), {"human": "human"}, lambda _: None))
    assert chapter is not None and list(tables_in(chapter)) == ["sensitivity"], "not by the factor"
    chance = with_chance(tables.trials, tables.items, tables.factors)["chance"]
    assert len(chance) == len(tables.trials) > 0 and set(chance) == {0.5}


def test_a_latin_square_that_the_table_cannot_fill_is_refused_with_the_mend(folder):
    (folder / "study.yaml").write_text(STUDY.replace("  lists: one\n", ""), "utf-8")
    before = files(folder)
    more = "P2,1,EVIDENT,word,print,0.5,1,EVIDENT\n"
    (folder / "trials.csv").write_text(ROWS + more, "utf-8")
    refused = take(folder)
    assert refused.exit_code == 2 and "`lists: one`" in refused.output and "wrods build" not in refused.output
    assert files(folder) == before
    (folder / "study.yaml").write_text(STUDY, "utf-8")
    assert take(folder).exit_code == 0


def test_a_release_that_cannot_be_read_leaves_no_study(tmp_path):
    (tmp_path / "outputs").mkdir()
    given = ["import", str(tmp_path / "new" / "bench"), str(tmp_path), "--from", "scrambled_bench"]
    done = invoke(*given)
    assert done.exit_code == 2 and "outputs" in done.output
    assert not (tmp_path / "new" / "bench").exists()


# what docs/runs.md prints


def printed() -> tuple[dict[str, str], list[list[str]], str]:
    """Return the files of the documented route by name, its commands, and its sample of a table."""
    text = (ROOT / "docs" / "runs.md").read_text("utf-8").partition("## Answers from elsewhere")[2]
    named = re.findall(r"`(lexical/[a-z]+\.yaml)`:\n\n```yaml\n(.*?)```", text, re.DOTALL)
    (commands,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (table,) = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    return dict(named), [shlex.split(line)[1:] for line in commands.splitlines()], table


def test_the_documented_route_runs_as_printed(tmp_path, monkeypatch):
    named, commands, table = printed()
    assert set(named) == {"lexical/study.yaml", "lexical/import.yaml"} and len(commands) == 4
    (tmp_path / "lexical").mkdir()
    for name, text in (named | {"trials.csv": table}).items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    told = [worked(*command).output for command in commands]
    assert "1 session" in told[0] and "3 trials" in told[0]
    assert "3 trials" in told[1]
    assert "lexical-data: 6 trials" in told[3]


# a command that ends half-way


HELD = """
import pathlib, sys, threading
from experiment.cli import main
from experiment.models.imports import writing

whole, asked = writing._Writing.session, threading.Event()

class Stop(writing.Stop):
    def ask(self, *given, **more):
        super().ask(*given, **more)
        asked.set()

def session(self, one):
    whole(self, one)
    pathlib.Path(sys.argv[1]).touch()
    asked.wait()

writing._Writing.session, writing.Stop = session, Stop
main(sys.argv[2:], prog_name="wrods")
"""
"""An import that makes a file once the first of its sessions is in the transaction, and goes on when it is told to stop."""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_import_that_is_ended_half_way_leaves_no_session_and_can_be_done_again(folder, end):
    half_way = folder / "half-way"
    given = ("import", folder, folder / "trials.csv", "--mapping", folder / "map.yaml")
    running = subprocess.Popen(
        [sys.executable, "-c", HELD, str(half_way), *map(str, given)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(half_way.exists)
    running.send_signal(end)
    _, told = running.communicate(timeout=60)
    assert running.returncode == (-9 if end == signal.SIGKILL else 1) and "Traceback" not in told
    with open_store(folder) as store, store.read() as connection:
        assert records.sessions_overview(connection) == []
    assert ("items.jsonl" in files(folder)) == (end == signal.SIGKILL)
    (folder / "trials.csv").write_text(LONGER, "utf-8")
    done = take(folder)
    assert done.exit_code == 0, done.output
    assert len((folder / "items.jsonl").read_text("utf-8").splitlines()) == 4


def test_an_interrupt_in_the_moment_of_the_hand_over_leaves_no_session_without_its_item(folder, monkeypatch):
    whole, handed = Store.write, threading.Event()

    def write(self, operation):
        def later(connection):
            handed.wait()
            return operation(connection)

        try:
            future = whole(self, later)
            signal.raise_signal(signal.SIGINT)
            return future
        finally:
            handed.set()

    monkeypatch.setattr(Store, "write", write)
    done = take(folder)
    assert done.exit_code == 1 and "Stopped" in done.output
    monkeypatch.undo()
    assert "items.jsonl" not in files(folder)
    with open_store(folder) as store, store.read() as connection:
        assert records.sessions_overview(connection) == []


def test_a_table_without_a_mapping_is_told_what_it_lacks(folder):
    (folder / "trials.csv").write_text(ROWS, "utf-8")
    done = invoke("import", folder, folder / "trials.csv")
    assert done.exit_code == 2 and "--mapping" in done.output and "trials.csv" in done.output
