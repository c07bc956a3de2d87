"""Every call to a model is exported, and a trial that a model never answered has its row, until it is answered."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from sqlalchemy import Connection

from analysis.tables import load
from experiment.checking import load_study
from experiment.exporting import ExportChoice, export_study
from experiment.exporting.export import hand_over
from experiment.exporting.tables import own_columns, read_csv, trial_rows
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import score_trial
from experiment.store import open_store, records
from tests.experiment.exporting.psychds_rules import faults
from tests.experiment.models.running import (
    PRICE,
    TRIALS,
    invoke,
    of_store,
    remote,
    stored,
    study_in,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI

KEY = "sk-test-0123456789abcdef"


class Failing(NamedTuple):
    """A study of which one item's trials failed, each time they were asked."""

    folder: Path
    item: str
    times: int
    server: ScriptedOpenAI


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failing]:
    """A study of which one item's trials failed, each time they were asked; every test but the last leaves it as it is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LAB_API_KEY", KEY)
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
        folder = study_in(tmp_path_factory.mktemp("failing") / "positions")
        with ScriptedOpenAI(answer=lambda body: "Yes") as server:
            with_models(folder, remote("m", server, f"key_env: LAB_API_KEY, {PRICE}"))
            tested = [item for item in load_study(folder).items if item.role == "test"]
            family = [item for item in tested if item.item_id == tested[0].item_id]
            for one in family:
                server.always[one.shown["sentence"]] = "400"
            done = invoke("run", folder)
            assert done.exit_code == 1, done.output
            yield Failing(folder, family[0].item_id, len(family), server)


def calls_of(folder: Path, out: Path, *more: str) -> list[dict[str, Any]]:
    done = invoke("export", folder, "--out", out, *more)
    assert done.exit_code == 0, done.output
    return list(read_csv(out / "calls.csv", own_columns("calls")))


def last_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each trial's last call: one that fails among those that are asked first for the price is asked twice."""
    found = {}
    for call in calls:
        found[call["session_id"], int(call["trial_index"])] = call
    return list(found.values())


def test_a_trial_whose_calls_all_failed_has_a_row_that_says_so_and_analysis_counts_it(failing, tmp_path):
    folder, item, times, _ = failing
    assert invoke("export", folder, "--out", tmp_path / "out").exit_code == 0
    rows = pd.read_csv(tmp_path / "out" / "trials.csv")
    assert len(stored(folder)) == TRIALS - times and len(rows) == TRIALS
    failed = rows[rows["response_status"] == "error"]
    assert set(failed["item_id"]) == {item} and len(failed) == times
    assert failed[["correct", "response", "scorer"]].isna().all(axis=None)
    assert failed[["work_key", "answer"]].notna().all(axis=None)
    assert set(rows["response_status"]) == {"valid", "error"}
    assert list(rows["reader"].unique()) == ["m"] and not rows.duplicated(["session_id", "trial_index"]).any()
    places = [list(own["trial_index"]) for _, own in rows.groupby("session_id", sort=False)]
    assert all(one == list(range(one[0], one[0] + TRIALS // 4)) for one in places)
    with open_store(folder) as store:
        hand_over(load_study(folder), store, tmp_path / "over")
    trials = load(tmp_path / "over").trials
    assert len(trials) == TRIALS and (trials["response_status"] == "error").sum() == times, "not missing"


def test_each_call_is_a_row_with_its_error_model_and_reason(failing, tmp_path):
    folder, _, times, _ = failing
    every = calls_of(folder, tmp_path / "out")
    calls = last_calls(every)
    assert len(calls) == TRIALS
    failed = [call for call in calls if call["status"] == "error"]
    assert len(failed) == times and all(call["error"] for call in failed)
    answered = [call for call in calls if call["status"] == "answered"]
    assert {(call["resolved_model"], call["finish_reason"], call["text"]) for call in answered} == {
        ("scripted-2026-01-01", "stop", "Yes")
    }
    assert {(call["purpose"], call["from_cache"]) for call in every} == {("answer", False)}
    assert all(call["prompt_tokens"] and call["cost_usd"] for call in answered)
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    keys = set(zip(trials["session_id"], trials["trial_index"], trials["attempt"], strict=True))
    assert {(call["session_id"], call["trial_index"], call["attempt"]) for call in calls} == keys


def test_what_was_sent_is_exported_only_on_demand_and_keys_never(failing, tmp_path):
    folder = failing.folder
    assert "request" not in calls_of(folder, tmp_path / "short")[0]
    long = calls_of(folder, tmp_path / "long", "--prompts")
    assert all(json.loads(call["request"])["messages"] for call in long)
    for path in (tmp_path / "short", tmp_path / "long"):
        assert all(KEY.encode() not in file.read_bytes() for file in path.iterdir())


@pytest.mark.parametrize("form", ["parquet", "psych-ds", "jspsych"])
def test_calls_are_in_every_form_of_export(failing, tmp_path, form):
    folder, _, times, _ = failing
    out = tmp_path / "out"
    with open_store(folder) as store:
        export_study(load_study(folder), store, out, form, choice=ExportChoice(kinds=frozenset({"model"})))
    if form == "parquet":
        calls = pd.read_parquet(out / "calls.parquet").to_dict("records")
    elif form == "psych-ds":
        assert faults(out) == []
        (file,) = (out / "data").glob("*description-calls_data.csv")
        with file.open(encoding="utf-8", newline="") as opened:
            calls = list(csv.DictReader(opened))
        sidecar = json.loads(file.with_suffix(".json").read_text("utf-8"))
        assert {one["name"] for one in sidecar["variableMeasured"]} == set(calls[0])
        assert "| `resolved_model` |" in (out / "documentation" / "codebook.md").read_text("utf-8")
    else:
        files = sorted(out.glob("*_calls.json"))
        assert len(files) == 4
        calls = [call for file in files for call in json.loads(file.read_text("utf-8"))]
    calls = last_calls(calls)
    assert len(calls) == TRIALS and sum(call["status"] == "error" for call in calls) == times


def test_postgresql_streams_failed_trials_and_calls_between_the_others(tmp_path, postgres_url, monkeypatch):
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    folder = study_in(tmp_path / "positions")
    with ScriptedOpenAI(answer=lambda body: "Yes") as server:
        with_models(folder, remote("m", server))
        first = next(item for item in load_study(folder).items if item.role == "test")
        server.always[first.shown["sentence"]] = "400"
        assert invoke("run", folder).exit_code == 1
    assert not (folder / "study.db").exists()
    calls = last_calls(calls_of(folder, tmp_path / "out"))
    rows = pd.read_csv(tmp_path / "out" / "trials.csv")
    assert len(calls) == len(rows) == TRIALS
    assert (rows["response_status"] == "error").sum() == sum(call["status"] == "error" for call in calls) > 0
    assert not rows.duplicated(["session_id", "trial_index"]).any()


def test_only_trials_whose_last_call_failed_have_a_row_and_it_costs_what_all_its_calls_cost(make_study):
    study = make_study()
    plan = plan_session(study, study.items, list_id=1, session_key=None, version=1)
    first, second, third, fourth = list(trials_of(plan))[:4]

    def call(trial: dict[str, Any], purpose: str, status: str, cost: float | None = None) -> dict[str, Any]:
        return {
            "session_id": "s1", "trial_index": trial["trial_index"], "attempt": 1, "request_key": "k", "purpose": purpose,
            "work_key": f"w{trial['trial_index']}", "status": status, "cost_usd": cost,
            "error": "no answer in time" if status == "timeout" else None,
        }  # fmt: skip

    def write(connection: Connection) -> None:
        records.create_session(connection, plan, reader_kind="model", reader="m", session_id="s1", run_id="r")
        # the run ended after a step; a step and then the answer failed; failed and answered later; never reached
        records.store_call(connection, call(first, "unscramble", "answered", 0.5))
        records.store_call(connection, call(second, "unscramble", "answered", 0.25))
        records.store_call(connection, call(second, "answer", "timeout", 0.125))
        records.store_call(connection, call(third, "answer", "error"))
        records.store_call(connection, call(third, "answer", "answered", 0.1))
        place = {"session_id": "s1", "trial_index": third["trial_index"], "attempt": 1}
        records.store_trial(connection, records.planned_columns(third) | place | {"response_raw": "Yes"})
        records.store_score(connection, **place, verdict=score_trial(third, str(third["answer"])))

    with open_store(study.folder) as store:
        store.write(write).result()
        with store.read() as connection:
            rows = list(trial_rows(connection, study.id))
    told = [(row["trial_index"], row["response_status"], row["cost_usd"]) for row in rows]
    assert told == [(second["trial_index"], "timeout", 0.375), (third["trial_index"], "valid", None)]
    assert rows[0]["item_id"] == second["item_id"] and rows[0]["shown"] == second["shown"]
    assert rows[0]["work_key"] == f"w{second['trial_index']}" and rows[0]["correct"] is None
    assert {row["trial_index"] for row in rows}.isdisjoint({first["trial_index"], fourth["trial_index"]})


def test_the_row_of_a_failed_trial_gives_way_to_its_answer(failing, monkeypatch):
    monkeypatch.setenv("LAB_API_KEY", KEY)
    folder = failing.folder
    failing.server.always.clear()
    assert invoke("run", folder).exit_code == 0
    rows = of_store(folder, lambda connection: trial_rows(connection, "positions"))
    found = [row["response_status"] for row in rows]
    assert found == ["valid"] * TRIALS
