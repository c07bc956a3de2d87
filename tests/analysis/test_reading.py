"""One study's tables come out the same from its folder, its handover and every export; regions come with their trials."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import Tables, load
from analysis.measures.accuracy import with_chance
from analysis.tables import write_trials_csv
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import study_rows, write_handover
from tests.experiment.models.running import edit, invoke, study_in


def ran(*arguments: Any) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with simulated readers and a baseline, its report's handover, and an export of each kind."""
    folder = study_in(tmp_path_factory.mktemp("collected") / "positions")
    edit(folder, "analysis:\n", "analysis:\n  probing: {folds: 3, penalties: [0.01, 1]}\n")
    ran("simulate", folder, "--readers", 4)
    ran("run", folder, "--model", "guesser")
    for form in ("parquet", "csv", "psych-ds", "jspsych"):
        ran("export", folder, "--format", form, "--out", folder.parent / form)
    return folder


@pytest.fixture(scope="module")
def handed(collected: Path) -> Tables:
    with opened_study(collected) as opened:
        hand_over(opened.study, opened.store, collected / "reports" / "2026-11-22_10-00-00" / "data")
    return load(collected)


def test_a_studys_folder_gives_the_tables_of_its_newest_report(collected: Path, handed: Tables) -> None:
    assert handed.folder.parent.parent == collected / "reports"
    assert set(handed.trials["reader_kind"]) == {"simulated", "baseline"}
    assert handed.trials.loc[handed.trials["excluded_reason"].isna(), "position"].notna().all()
    assert handed.remarks == ()


@pytest.mark.parametrize("form", ["parquet", "csv", "psych-ds"])
def test_an_export_gives_the_trials_and_the_plan_of_the_handover(
    collected: Path, handed: Tables, form: str
) -> None:
    exported = load(collected.parent / form)
    assert exported.factors == handed.factors and exported.remarks == ()

    def told_of(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
        names = [name for name in handed.trials.columns if name != "scorer"]
        trials = tables.trials.sort_values(["session_id", "trial_index", "attempt"])[names]
        items = tables.items.sort_values(["item_id", "position"])[["item_id", "position", "shown"]]
        return trials.reset_index(drop=True), items.reset_index(drop=True)

    for one, other in zip(told_of(exported), told_of(handed), strict=True):
        pd.testing.assert_frame_equal(one, other)
    chance = with_chance(exported.trials, exported.items, exported.factors)["chance"]
    assert chance.isin([0.0, 0.5]).all()
    assert exported.dictionary["planned"].keys() == handed.dictionary["planned"].keys()
    assert exported.dictionary["probing"] == {"folds": 3, "penalties": [0.01, 1]}
    for name in handed.dictionary.keys() - {"columns", "created_at", "factors"}:
        assert exported.dictionary.get(name) == handed.dictionary[name], name
    assert exported.dictionary["truth"] and exported.dictionary["readers"]["guesser"]["kind"] == "baseline"


@pytest.mark.full
def test_an_export_is_reported_where_the_study_is_not(collected: Path, tmp_path: Path) -> None:
    shutil.copytree(collected.parent / "csv", tmp_path / "csv")
    ran("report", tmp_path / "csv", "--out", tmp_path / "reports")
    (page,) = tmp_path.glob("reports/*/report.html")
    assert "guesser" in page.read_text("utf-8")


def test_an_export_of_some_readers_tells_of_no_other(collected: Path, tmp_path: Path) -> None:
    ran("export", collected, "--format", "csv", "--kind", "baseline", "--out", tmp_path / "some")
    told = load(tmp_path / "some").dictionary
    assert list(told["readers"]) == ["guesser"] and told["truth"] is None and "participants" not in told


def test_regions_come_with_the_reader_and_condition_of_their_trial(handover: Make) -> None:
    rows = study_rows(human=2, items=4)
    rows.loc[rows.index[5], "excluded_reason"] = "fire alarm"
    folder = handover(rows)
    regions = pd.DataFrame(
        {
            "session_id": ["P001-session"] * 4,
            "trial_index": [4, 4, 5, 6],
            "attempt": [1, 1, 1, 1],
            "region": [0, 1, 0, 0],
            "shown": ["Teh", "dog", "Teh", "Teh"],
            "is_changed": [True, False, True, True],
            "rt": [300.0, 20.0, 250.0, 280.0],
            "excluded_reason": [None, "rt outside 50 ms to 10 s", None, None],
        }
    )
    regions.to_parquet(folder / "regions.parquet")
    tables = load(folder)
    trials = tables.trials.set_index(["session_id", "trial_index"])
    told = tables.regions
    assert len(told) == 4
    assert told["excluded_reason"].tolist()[:3] == [None, "rt outside 50 ms to 10 s", "fire alarm"]
    assert told["reader_group"].eq("human").all()
    assert told.loc[3, "position"] == trials.loc[("P001-session", 6), "position"]
    assert told.loc[3, "item_id"] == trials.loc[("P001-session", 6), "item_id"]


def test_a_study_that_was_never_handed_over_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("wrods: 1\n", "utf-8")
    with pytest.raises(UserError, match="wrods report"):
        load(tmp_path)


def test_tables_older_than_the_store_say_so(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("wrods: 1\n", "utf-8")
    write_handover(tmp_path / "reports" / "2026-11-21_10-00-00" / "data", study_rows(human=1, items=4))
    write_handover(tmp_path / "reports" / "2026-11-20_10-00-00" / "data", study_rows(human=2, items=4))
    for day, moment in (("20", 1000), ("21", 2000)):
        os.utime(
            tmp_path / "reports" / f"2026-11-{day}_10-00-00" / "data" / "dictionary.json", (moment, moment)
        )
    with closing(sqlite3.connect(tmp_path / "study.db")) as store, store:
        store.execute("CREATE TABLE trials (received_at TEXT)")
        store.execute("INSERT INTO trials VALUES ('2026-11-21T09:59:59.120Z')")
    # the dictionary was written at 2026-11-21T10:00:00Z
    assert load(tmp_path).remarks == ()
    assert load(tmp_path).trials["reader"].nunique() == 1
    with closing(sqlite3.connect(tmp_path / "study.db")) as store, store:
        store.execute("INSERT INTO trials VALUES ('2026-11-21T10:20:00.000Z')")
    (told,) = load(tmp_path).remarks
    assert "study.db" in told
    (tmp_path / "study.db").write_bytes(b"no database")
    assert load(tmp_path).remarks == ()


def test_a_csv_with_guards_and_line_breaks_comes_back_as_it_was(tmp_path: Path, handover: Make) -> None:
    rows = study_rows(human=1, items=4)
    odd = ["=1+1", "'-x", "a\nb", 'say "no"', "'plain", "-", "", None]
    rows["response"] = (odd * len(rows))[: len(rows)]
    tables = load(handover(rows))
    write_trials_csv(tables, tmp_path / "trials.csv")
    # write_trials_csv writes what stands there; an export guards what a spreadsheet would run
    text = (tmp_path / "trials.csv").read_text("utf-8").replace("=1+1", "'=1+1").replace("'-x", "''-x")
    export = tmp_path / "export"
    export.mkdir()
    (export / "trials.csv").write_text(text, "utf-8")
    types = {"version": "integer", "trial_index": "integer", "attempt": "integer", "correct": "boolean"}
    types |= dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot"), "boolean")
    types |= dict.fromkeys(("rt", "reading_time", "score", "replicate", "list_id"), "number")
    names = pd.read_csv(export / "trials.csv").columns
    lines = [f"| `{name}` | {types.get(name, 'string')} |  | - |" for name in names if name != "position"]
    factor = "| `position` | string |  | level of the factor position: intact, initial, internal, final; the first is the reference |"
    (export / "codebook.md").write_text("\n".join(["## trials", *lines, factor]), "utf-8")
    back = load(export).trials["response"]
    assert back.tolist() == [one or None for one in (odd * len(rows))[: len(rows)]]


def test_a_damaged_file_is_named(handover: Make) -> None:
    folder = handover(human=1, items=4)
    (folder / "trials.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match=r"trials\.parquet"):
        load(folder)
    (folder / "dictionary.json").write_text(json.dumps(["factors"]), "utf-8")
    with pytest.raises(UserError, match="'factors'"):
        load(folder)
