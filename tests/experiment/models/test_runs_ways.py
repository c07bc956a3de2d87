"""Every way of asking goes through ``wrods run``: timed, tested, with hidden states, in conversations, behind thoughts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select

from analysis import load
from experiment.models import ModelSettings
from experiment.models.planning.plans import People, plan_sessions
from experiment.models.planning.prompt_preview import first_prompts
from experiment.models.runs.orchestrator import version_of
from experiment.models.states import read_index, read_layer
from experiment.papers.inside.chapters.probing import write
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import VERSION, score_trial
from experiment.store import open_store, records
from experiment.store.tables import audit, calls, regions, sessions, trials
from experiment.study import Study
from tests.analysis.chapters import chapter_of, tables_in
from tests.experiment.commands import worked
from tests.experiment.models.running import (
    TRIALS,
    edit,
    invoke,
    of_store,
    remote,
    stored,
    study_in,
    with_models,
)
from tests.experiment.models.test_planning import READ
from tests.experiment.models.test_planning import with_models as small_models
from tests.scripted_openai import ScriptedOpenAI

torch = pytest.importorskip("torch")


def run(folder: Path, *more: str) -> dict[str, Any]:
    """Run the study's one model, and return what came of it."""
    result = invoke("run", folder, "--json", *more)
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.stdout)["models"]
    return told


def local(folder: Path, more: str = "") -> str:
    return f'base: {{use: "hf:{folder}"{more}}}'


@pytest.mark.full
def test_timed_trials_run_alone_in_random_order_as_sessions_of_their_own(study, plain_model):
    with_models(study, local(plain_model))
    untimed = run(study, "--max-trials", "8")
    told = run(study, "--timing", "--max-trials", "40")
    assert (told["answered"], told["stored_before"]) == (40, 0), "untimed answers are no timed ones"
    about = {row["session_id"]: row for row in of_store(study, select(sessions))}
    timed = [
        row for row in of_store(study, select(trials)) if about[row["session_id"]]["client"].get("timed")
    ]
    others = [row for row in of_store(study, select(trials)) if row not in timed]
    assert (len(timed), len(others)) == (40, untimed["answered"])
    assert all(row["latency_ms"] > 0 and row["path"] == "plain" for row in timed)
    assert all(row["latency_ms"] is None for row in others)
    assert all(row["cached_tokens"] == 0 for row in timed), "nothing is shared"
    order = [row["trial_index"] for row in sorted(timed, key=lambda row: row["created_at"])]
    assert order != sorted(order) and order != sorted(order, reverse=True)
    again = run(study, "--timing", "--max-trials", "10")
    assert (again["stored_before"], again["answered"]) == (40, 10)


@pytest.mark.full
def test_timed_requests_to_a_server_go_one_at_a_time_and_never_come_from_the_cache(study, server):
    with_models(study, f'api: {{use: "openai:m", base_url: "{server.url}"}}')
    run(study)
    server.requests.clear()
    server.most_at_once = 0
    edit(study, "    api: {", f'    other: {{use: "openai:o", base_url: "{server.url}"}}\n    api: {{')
    assert invoke("run", study, "--timing").exit_code == 0
    assert len(server.requests) == 2 * TRIALS
    assert server.most_at_once == 1, "nor are two models of one command timed at once"
    rows = [row for row in stored(study) if row["latency_ms"] is not None]
    assert len(rows) == 2 * TRIALS and all(0 < row["ttft_ms"] <= row["latency_ms"] for row in rows)


def test_hidden_states_on_disk_belong_to_the_stored_trials(study, plain_model):
    with_models(study, local(plain_model), more="states: [last, regions]")
    told = run(study, "--max-trials", "20")
    folder = study / "states" / told["run_id"]
    index = read_index(folder)
    rows = {row["work_key"]: row for row in of_store(study, select(trials))}
    words = of_store(study, select(regions))
    assert {key for key, _, _ in index} == set(rows) and len(rows) == 20
    assert sum(position == "last" for _, _, position in index) == 20
    assert sum(position != "last" for _, _, position in index) == len(words)
    layers = [read_layer(folder, number) for number in range(3)]
    assert {layer.shape for layer in layers} == {(len(index), 32)}
    assert all(np.isfinite(layer).all() and (layer.std(axis=1) > 0).all() for layer in layers)
    (row,) = of_store(study, select(audit.c.detail).where(audit.c.action == "run_checked"))
    assert row["detail"]["parity"]["checked"] > 0 and row["detail"]["reader"] == "base"
    second = run(study, "--max-trials", "10")
    more = {key for key, _, _ in read_index(study / "states" / second["run_id"])}
    assert len(more) == 10 and not more & set(rows), "a run keeps the states of its own trials"


def small(
    make_study: Callable[..., Study], model: str, *lines: str, changes: tuple[Any, ...] = (READ,)
) -> Path:
    return make_study(small_models(*lines, who=model), *changes).folder


@pytest.mark.full
def test_a_conversation_goes_on_after_an_interruption_as_if_there_had_been_none(make_study, plain_model):
    model = f'm: {{use: "hf:{plain_model}"}}'
    whole = small(make_study, model, "context: session", "replicates: 2")
    assert run(whole)["left"] == 0
    said = {row["work_key"]: row["response_raw"] for row in stored(whole)}
    prompts = {row["work_key"]: row["request"]["messages"] for row in of_store(whole, records.all_calls)}
    cut = make_study(small_models("context: session", "replicates: 2", who=model), READ, name="cut").folder
    while run(cut, "--max-trials", "3")["left"]:
        pass
    assert {row["work_key"]: row["response_raw"] for row in stored(cut)} == said
    assert {
        row["work_key"]: row["request"]["messages"] for row in of_store(cut, records.all_calls)
    } == prompts
    turns = sorted({len(messages) for messages in prompts.values()})
    assert turns == [1, 3, 5, 7, 9], "each turn stands behind all before it"


def human_session(study: Study, answers: Callable[[Any], str | None], *, is_pilot: bool = False) -> str:
    """Store one finished session of a person."""
    plan = plan_session(study, study.items, list_id=1)

    def store_all(connection: Any) -> str:
        session_id = records.create_session(
            connection, plan, reader_kind="human", reader=f"P{is_pilot}", is_pilot=is_pilot
        )
        for trial in trials_of(plan):
            row = {**records.planned_columns(trial), "session_id": session_id, "response_raw": answers(trial)}
            row |= {"client_uuid": f"{session_id}-{trial['trial_index']}", "rt": 700.0}
            records.store_trial(connection, row)
            place = {"session_id": session_id, "trial_index": trial["trial_index"], "attempt": 1}
            records.store_score(connection, **place, verdict=score_trial(trial, row["response_raw"]))
        records.finish_session(connection, session_id)
        return session_id

    with open_store(study.folder) as store:
        version_of(study, store)
        return store.write(store_all).result()


def test_a_model_follows_a_person_and_its_answers_are_scored_as_likelihoods(make_study, plain_model):
    study = make_study(small_models("context: teacher_forced", who=f'm: {{use: "hf:{plain_model}"}}'), READ)
    person = human_session(study, lambda trial: trial["steps"][-1]["labels"][0])
    human_session(study, lambda trial: trial["steps"][-1]["labels"][0], is_pilot=True)
    told = run(study.folder)
    assert (told["planned"], told["answered"], told["left"]) == (4, 4, 0)
    about = {row["session_id"]: row for row in of_store(study.folder, select(sessions))}
    rows = [row for row in stored(study.folder) if about[row["session_id"]]["reader"] == "m"]
    assert {about[row["session_id"]]["yoked_to"] for row in rows} == {person}
    for row in rows:
        assert row["correct"] is None and row["score"] < 0
        assert row["score"] == pytest.approx(row["label_logprobs"][row["response_raw"]])
        assert (about[row["session_id"]]["context"], row["scorer"]) == (
            "teacher_forced",
            f"log_likelihood-{VERSION}",
        )
    out = study.folder / "out"
    assert invoke("export", study.folder, "--out", out).exit_code == 0
    table = pd.read_csv(next(out.rglob("trials.csv")))
    assert set(table.loc[table["reader_kind"] == "human", "response_status"]) == {"valid"}
    rescored = json.loads(invoke("score", study.folder, "--json").stdout)
    assert rescored["responses"] == 2 * 5, "only people's own answers, the pilot's among them"


def test_a_persons_own_answers_stand_in_a_teacher_forced_prompt_and_are_said_to_be_theirs(make_study):
    study = make_study(small_models("context: teacher_forced"), READ)
    human_session(study, lambda trial: trial["steps"][-1]["labels"][1])
    with open_store(study.folder) as store:
        people = People(store, study.id, 1)
        (session,) = plan_sessions(study, "m", ModelSettings("hf:m"), {"model": "m"}, people=people)
        *_, shown = first_prompts(session)
    assert [message.role for message in shown.request.messages][-3:] == ["user", "assistant", "user"]
    before = trials_of(plan_session(study, study.items, list_id=1))
    said = [trial["steps"][-1]["labels"][1] for trial in before]
    spoken = [message.content for message in shown.request.messages if message.role == "assistant"]
    assert spoken == said[: len(spoken)], "what the person answered, right or wrong"
    assert not shown.stands_in


def test_a_server_that_tells_no_probabilities_is_not_asked_to_follow_people(make_study, server):
    model = f'm: {{use: "openai:m", base_url: "{server.url}"}}'
    study = make_study(small_models("context: teacher_forced", who=model), READ)
    human_session(study, lambda trial: trial["steps"][-1]["labels"][0])
    done = invoke("run", study.folder)
    assert done.exit_code == 1 and "probabilities" in done.output, done.output
    assert server.probes and not server.requests
    labels = {label for item in study.items for label in item.choices or ()}
    server.logprobs = lambda body: dict.fromkeys(labels, -1.0)
    again = invoke("run", study.folder)
    assert again.exit_code == 0 and server.requests, again.output


def test_texts_are_unscrambled_first_and_a_restored_text_is_asked_for_once(make_study, server):
    server.answer = lambda body: "A"
    model = f'm: {{use: "openai:m", base_url: "{server.url}", probe: false, cache: false, strategy: unscramble_first, concurrency: 1}}'
    folder = small(make_study, model)
    server.script.extend(["ok"] * 3 + ["400"])
    first = json.loads(invoke("run", folder, "--json").stdout)["models"][0]
    assert first["failed"] == 1 and first["left"] == 1
    assert run(folder)["left"] == 0
    purposes = [(row["work_key"], row["purpose"], row["status"]) for row in of_store(folder, select(calls))]
    finished = [one[:2] for one in purposes if one[2] == "answered"]
    assert len(finished) == len(set(finished)) == 2 * 8, (
        "each text is restored once, each trial answered once"
    )
    assert len(stored(folder)) == 8


@pytest.mark.full
def test_a_run_ends_when_its_minutes_are_over_and_the_next_goes_on(study, server):
    server.delay = 1.0
    with_models(study, remote("api", server, "price: free"))
    result = invoke("run", study, "--max-minutes", "0.15", "--json")
    (told,) = json.loads(result.stdout)["models"]
    assert result.exit_code == 1 and "--max-minutes" in told["stopped"] and 0 < told["left"] < TRIALS
    assert len(server.requests) == told["answered"], "what was under way came in"
    server.delay = 0.0
    assert run(study)["left"] == 0 and len(server.requests) == TRIALS


def test_what_an_endpoint_gives_is_found_out_said_and_recorded_before_anything_is_asked(study, server):
    server.refuses = {"seed"}
    with_models(study, f'api: {{use: "openai:m", base_url: "{server.url}", price: {{input: 1, output: 1}}}}')
    result = invoke("run", study)
    assert result.exit_code == 0
    begun = of_store(study, select(audit).where(audit.c.action == "run"))[0]
    probe = begun["detail"]["engine"]["probe"]
    assert probe["seed"] is False and probe["resolved_model"] == "scripted-2026-01-01"
    first = min(row["created_at"] for row in of_store(study, select(calls)))
    assert begun["at"] <= first and all("seed" not in body for body in server.requests)
    assert "log-probabilities of answers" in result.stderr and "seed" in result.stderr


@pytest.mark.full
def test_a_server_that_does_not_answer_costs_its_model_the_run_and_the_others_nothing(study, server):
    gone = 'gone: {use: "openai:m", base_url: "http://127.0.0.1:9/v1"}'
    with_models(study, gone, remote("here", server, "price: free"))
    result = invoke("run", study, "--json")
    here, lost = json.loads(result.stdout)["models"]
    assert result.exit_code == 1 and here["left"] == 0 and "http://127.0.0.1:9/v1" in lost["error"]
    assert {row["reader"] for row in of_store(study, select(sessions))} == {"here"}
    actions = of_store(study, select(audit.c.detail).where(audit.c.action == "run"))
    assert [row["detail"]["reader"] for row in actions] == ["here"]


def test_a_study_with_the_former_level_stable_opens_and_check_names_what_is_done_instead(study, plain_model):
    with_models(study, local(plain_model), more="determinism: stable")
    told = invoke("check", study)
    assert told.exit_code == 0 and all(word in told.output for word in ("stable", "exact", "base"))


def test_a_server_is_kept_busy_though_blocks_are_small(tmp_path):
    """Replies make room for the next trials at once: nothing waits for the end of a block."""
    folder = study_in(tmp_path / "blocks", 4)
    with ScriptedOpenAI(answer=lambda body: "Yes") as server:
        server.delay = 0.05
        with_models(
            folder,
            remote("api", server, "price: free, concurrency_start: 16").replace(
                "concurrency: 4", "concurrency: 16"
            ),
        )
        assert run(folder)["left"] == 0
        assert server.most_at_once > 8, "the next block began before this one ended"


PROBING = "  probing:\n    predict: [answer, condition]\n    controls: 2\n    penalties: [0.001, 0.1]\n"


@pytest.mark.full
def test_a_study_whose_model_keeps_states_is_probed_by_its_report(study, plain_model):
    with_models(study, f'tiny: {{use: "hf:{plain_model}"}}', more="states: last")
    text = (study / "study.yaml").read_text("utf-8")
    edit(study, text, text.rstrip() + "\n" + PROBING)
    assert invoke("run", study).exit_code == 0
    states = next((study / "states").iterdir())
    assert len(read_index(states)) == 96
    done = worked("report", study)
    folder = Path(done.stdout.strip().splitlines()[-1]).parent
    assert "probing_layers_condition" in (folder / "report.html").read_text("utf-8")
    tables = json.loads((folder / "numbers.json").read_text("utf-8"))["tables"]
    own = {one["title"]: one for one in tables if "probing" in one["shown"]}
    overview = own["Probes of the last token's states: the right answer"]
    assert overview["rows"] == overview["of_rows"] == 96
    shown = (folder / overview["shown"]).read_text("utf-8-sig")
    assert all(level in shown for level in ("intact", "initial", "internal", "final"))
    kept = {path: path.stat().st_mtime_ns for path in (states / "results").glob("probing_*/layer_*.npz")}
    assert len(kept) == 2 * 3
    assert "probing_layers_condition" in tables_in(chapter_of(write, load(folder / "data")))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, (
        "what is kept is not computed a second time"
    )
