"""An import is whole or nothing, says what it could not read, and runs as the documentation prints it."""

from __future__ import annotations

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
from experiment.store import Store, open_store, records
from tests.analysis.chapters import tables_in
from tests.conftest import ROOT
from tests.experiment.commands import worked
from tests.experiment.models.running import invoke, wait_until
from tests.experiment.models.test_imports import MAPPING, ROWS, STUDY, stored, take
from tests.experiment.models.test_imports import folder as folder

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
    assert "two sessions" in method and "3 trials" in method
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
