"""Runs of a real study against a real store: exact resume, extension, and what happens when a run is cut short."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiment.checking import load_study
from experiment.models.api.engine import ApiEngine
from experiment.models.engine import Follow, Reply, Request
from experiment.models.engines import BaselineEngine
from experiment.models.leases import LEASE_FILES, leased
from experiment.models.runs.environment import git_state
from experiment.models.runs.limits import CommandLimits
from experiment.models.runs.orchestrator import run_model, version_of
from experiment.models.runs.status import RunOutcome
from experiment.store import open_store, records
from stimuli.errors import UserError
from tests.experiment.models.running import (
    TRIALS,
    begin,
    edit,
    invoke,
    of_store,
    remote,
    status_of,
    stored,
    wait_until,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI


def run_here(folder: Path, server: ScriptedOpenAI, if_changed: str = "stop", **options: Any) -> RunOutcome:
    """Run the scripted model in this process, without waits."""
    loaded = load_study(folder)
    given = {"base_url": server.url, "concurrency": 4, **options}
    with open_store(folder) as store:
        version = version_of(loaded, store)
        return run_model(
            loaded,
            "scripted",
            {"use": "openai:scripted", **given},
            store,
            version=version,
            if_changed=if_changed,
            opener=lambda settings: ApiEngine(settings, pace=0.0),
        )


def test_a_run_stores_every_trial_with_its_call_and_score_and_finishes_its_sessions(study, server):
    outcome = run_here(study, server)
    assert (outcome.planned, outcome.answered, outcome.left) == (TRIALS, TRIALS, 0)
    trials = stored(study)
    assert len(trials) == len({trial["work_key"] for trial in trials}) == TRIALS
    for trial in trials:
        assert (trial["response_raw"], trial["response"], trial["response_status"]) == ("Yes", "Yes", "valid")
        assert trial["correct"] == (trial["answer"] == "Yes")
        assert (trial["temperature"], trial["cached_tokens"], trial["reasoning_tokens"]) == (0.0, 2, 5)
    calls = of_store(study, records.all_calls)
    assert {call["work_key"] for call in calls} == {trial["work_key"] for trial in trials}
    assert Counter(call["request"]["messages"][0]["content"] for call in calls) == Counter(server.texts)
    sessions = of_store(study, records.sessions_overview)
    assert [session["state"] for session in sessions] == ["finished"] * 4
    assert {session["reader_kind"] for session in sessions} == {"model"}
    assert (
        {session["n_trials"] for session in sessions}
        == {session["planned_trials"] for session in sessions}
        == {24}
    )


def test_an_interrupted_run_keeps_what_is_finished_and_says_how_to_go_on(study, server):
    server.delay = 0.03
    with_models(study, remote("scripted", server, "price: free"))
    running = begin("run", study)
    wait_until(lambda: len(server.requests) >= 30)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 1
    assert said and "Traceback" not in said
    kept = stored(study)
    assert len(kept) == len(server.requests) < TRIALS, "every request that was sent is stored"
    server.delay = 0.0
    assert invoke("run", study).exit_code == 0
    assert len(server.requests) == len(stored(study)) == TRIALS


def test_two_runs_of_a_model_at_once_ask_nothing_twice(study, server):
    going_on = threading.Event()
    server.answer = lambda body: "Yes" if going_on.wait(300) else ""
    guesser = 'guesser: {use: "baseline:random"}'
    edit(study, guesser, f"{remote('gpt', server, 'price: free')}\n    {guesser}")
    first = begin("run", study, "--model", "gpt")
    try:
        wait_until(lambda: bool(server.requests) or first.poll() is not None)
        second = invoke("run", study, "--json", "--max-minutes", "1")
        assert first.poll() is None, "the first was still under way"
    finally:
        going_on.set()
    assert first.wait(timeout=120) == 0 and second.exit_code == 1, second.output
    guesser, refused = json.loads(second.stdout)["models"]
    assert guesser["answered"] == TRIALS and "gpt" in refused["error"]
    assert len(server.requests) == TRIALS
    assert len(stored(study)) == 2 * TRIALS


def test_answers_that_came_in_from_elsewhere_meanwhile_are_not_left(study):
    loaded = load_study(study)

    class Overtaken(BaselineEngine):
        """Answers after another run has stored the same answers."""

        def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
            with open_store(study) as other:
                assert (
                    run_model(
                        loaded,
                        "random",
                        {"use": "baseline:random"},
                        other,
                        version=1,
                        limits=CommandLimits(trials=10),
                    ).answered
                    == 10
                )
            yield from super().answer(requests, follow)

    with open_store(study) as store:
        version = version_of(loaded, store)
        outcome = run_model(
            loaded, "random", {"use": "baseline:random"}, store, version=version, opener=Overtaken
        )
    assert (outcome.stored_before, outcome.answered, outcome.left) == (10, TRIALS - 10, 0)
    assert len(stored(study)) == TRIALS


def test_a_lease_is_no_change_of_the_study_to_git(study):
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", "-C", str(study), *words], check=True)
    with leased(study, "positions", "gpt"):
        assert list(study.glob(LEASE_FILES))
        state = git_state(study)
    assert state is not None and state["changed"] is False
    (study / "states" / "run-1").mkdir(parents=True)
    (study / "states" / "run-1" / "layer_00.npy").write_bytes(b"states")
    state = git_state(study)
    assert state is not None and state["changed"] is False, "what commands write is no change of the study"
    (study / "study.yaml").write_text("", "utf-8")
    state = git_state(study)
    assert state is not None and state["changed"] is True


def test_a_trial_that_keeps_failing_is_listed_and_asked_again_by_the_next_run(study, server):
    failing = load_study(study).items[0].shown["question"]
    server.always[failing] = "500"
    first = run_here(study, server)
    count = len(first.errors)
    assert count > 0 and first.left == count and not first.is_whole
    assert {error["item_id"] for error in first.errors} == {load_study(study).items[0].item_id}
    assert len(stored(study)) == TRIALS - count
    statuses = Counter(call["status"] for call in of_store(study, records.all_calls))
    assert statuses == {"answered": TRIALS - count, "error": count}
    (told,) = status_of(study)["readers"]
    assert told["unanswered"] == {"error": count} and f": {count} error" in invoke("status", study).output
    server.always.clear()
    server.requests.clear()
    second = run_here(study, server)
    assert second.is_whole and second.answered == count == len(server.requests)
    assert len(stored(study)) == TRIALS
    assert {row["state"] for row in of_store(study, records.sessions_overview)} == {"finished"}
    assert status_of(study)["readers"][0]["unanswered"] == {}


def test_a_wider_study_asks_only_for_what_is_new(study, server):
    run_here(study, server)
    before = {trial["work_key"] for trial in stored(study)}
    edit(study, "prompt_variants: 1", "prompt_variants: 2\n  replicates: 2")
    server.requests.clear()
    outcome = run_here(study, server)
    assert outcome.planned == 4 * TRIALS and outcome.stored_before == TRIALS
    assert len(server.requests) == 3 * TRIALS
    assert before < {trial["work_key"] for trial in stored(study)}


def test_another_model_or_setting_is_never_given_the_answers_of_the_first(study, server):
    run_here(study, server)
    server.requests.clear()
    with pytest.raises(UserError, match=r"\b4 .*\b96 (.|\n)*temperature: null → 0\.7") as told:
        run_here(study, server, temperature=0.7)
    assert "set_aside" in str(told.value) and server.requests == []
    warm = run_here(study, server, "keep_both", temperature=0.7)
    assert len(server.requests) == TRIALS and warm.stored_before == 0 and warm.other_sessions == 4
    with ScriptedOpenAI() as moved:
        assert run_here(study, moved, "keep_both").stored_before == TRIALS
        assert moved.requests == []
    sampled = [trial["seed"] for trial in stored(study) if trial["temperature"] == 0.7]
    assert len(set(sampled)) == TRIALS


def test_a_model_that_is_not_there_is_named_with_what_to_do(study, tmp_path):
    (tmp_path / "weights.gguf").touch()
    for name, config in (("empty", "{}"), ("broken", "not json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config)
    for use, words in [
        (f"hf:{tmp_path}/nowhere", f"{tmp_path}/nowhere"),
        (f"hf:{study}", "config.json"),
        (f"hf:{tmp_path}/weights.gguf", "weights.gguf"),
        (f"hf:{tmp_path}/empty", "tokenizer"),
        (f"hf:{tmp_path}/broken", "tokenizer"),
        ("hf:owner/model", "'owner/model'"),
        ("baseline:lucky", "always_a, oracle, oracle_with_lapses, random"),
        ("gpt-4", "'gpt-4'"),
        ("opnai:gpt", "Did you mean 'openai'"),
        ("echo:x", "'echo'"),
        ("hf:", "'hf:'"),
    ]:
        done = invoke("run", study, "--model", use)
        assert done.exit_code in (1, 2) and words in done.output and isinstance(done.exception, SystemExit)
        assert not (study / "study.db").exists() or not stored(study)


def test_a_dry_run_shows_the_prompt_as_sent_and_leaves_no_trace(study, server):
    done = invoke("run", study, "--model", "openai:scripted", "--base-url", server.url, "--dry-run", "--json")
    (shown,) = json.loads(done.stdout)
    assert (shown["trials"], shown["sessions"]) == (TRIALS, 4)
    assert not (study / "study.db").exists() and server.requests == []
    run_here(study, server, concurrency=1)
    assert shown["prompts"][0]["body"]["messages"] == server.requests[0]["messages"]
