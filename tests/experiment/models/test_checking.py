"""What a study says of its models is checked above it, told by every command, and held against what each model gives."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.checking.settings import model_settings
from experiment.procedure import plan_session
from experiment.scoring.rescoring import require_judge
from stimuli.errors import UserError
from tests.experiment.commands import change
from tests.experiment.models.running import invoke
from tests.scripted_answers import word_logprob

STUDY = """\
wrods: 1
study: held
title: Held against
seed: 7
materials: {sentences: sentences.csv, scramble: {words: starred}}
design: {factors: {spelling: {intact: none, swapped: {transpose: internal}}}}
models:
MODELS
procedure:
  - block:
      trial:
        - read: {show: sentence}
        - choose: {show: question, keys: {"Yes": j, "No": f}}
analysis:
  planned:
    accuracy: {measure: correct, compare: spelling, between: [human, m]}
    time: {measure: {human: reading_time, m: reading_time}, compare: spelling, between: [human, m]}
"""
ASKED_FOR = ("logprobs", "seed", "max_tokens", "n", "temperature")
ROWS = "item,sentence,question,answer\na,The *garden* is green.,Green?,Yes\nb,The *river* runs.,Still?,No\n"


def written(folder: Path, models: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(STUDY.replace("MODELS", models), "utf-8")
    (folder / "sentences.csv").write_text(ROWS, "utf-8")
    return folder


def one(use: str, more: str = "", shared: str = "") -> str:
    return f'{shared}  who: {{m: {{use: "{use}"{more}}}}}'


def checked(folder: Path, *options: str) -> dict[str, Any]:
    done = invoke("check", folder, "--json", *options)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)["models"]["m"]
    return found


@pytest.mark.parametrize(
    "command",
    [["check"], ["build"], ["run", "--dry-run"], ["run"], ["serve"], ["freeze"], ["status"], ["score"], ["export", "--out", "OUT"],
     ["simulate"], ["invite", "--base-url", "https://study.example.org", "--number", "1"], ["report"]],
    ids=" ".join,
)  # fmt: skip
def test_every_command_that_loads_a_study_tells_a_fault_of_its_models_with_its_line(tmp_path, command):
    folder = written(tmp_path / "s", one("baseline:random", ", dtype: float16"))
    options = [str(tmp_path / "out") if one == "OUT" else one for one in command[1:]]
    done = invoke(command[0], folder, *options)
    assert done.exit_code != 0
    assert "study.yaml, line 8: models.who.m.dtype" in done.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        *((f", extra_body: {{{name}: 2}}", rf"m\.extra_body.*\b{name}\b") for name in ASKED_FOR),
        (", extra_body: {logprobs: false}, api: completions", "logprobs"),
        (", api: responses, template: plain", "api: completions"),
        (", api: chat, template: plain", "template: plain"),
        (", api: completions, template: chat", "template: chat"),
        (", api: chats", "chat"),
        (", label_scoring: all", "whole"),
        (", extra_body: x", r"m\.extra_body"),
        (", concurrency_start: 200", r"\b200\b.*\b100\b"),
        (", concurrency: 4, concurrency_start: 5", r"\b5\b.*\b4\b"),
    ],
)
def test_settings_of_a_server_that_contradict_each_other_are_told_with_their_line(tmp_path, more, said):
    folder = written(tmp_path / "s", one("openai:m", more))
    with pytest.raises(UserError) as error:
        load_study(folder)
    assert re.search(rf"study\.yaml, line 8: models\.who\.(?=m).*{said}", error.value.message)
    load_study(written(tmp_path / "t", one("openai:m", ", concurrency: 200, concurrency_start: 150")))


def test_a_baseline_is_no_judge(tmp_path):
    who = '  who: {m: {use: "hf:m", strategy: chain_of_thought, judge: g}, g: {use: "baseline:random"}}'
    with pytest.raises(UserError, match=r"line 8: models\.who\.m\.judge.*'g'"):
        load_study(written(tmp_path / "s", who))
    other = who.replace(", strategy: chain_of_thought, judge: g", "")
    with pytest.raises(UserError, match="'g'"):
        require_judge(load_study(written(tmp_path / "t", other)), "g")


def test_a_probe_is_kept_and_what_the_server_lacks_is_named(tmp_path, server):
    folder = written(tmp_path / "s", one("openai:scripted", f", base_url: {server.url}"))
    told = checked(folder, "--probe")
    assert re.search(r"\b20\d\d", told["known_from"])
    said = " ".join(told["gaps"])
    assert "label_logprobs" in said and "surprisal" in said
    asked = len(server.probes) + len(server.requests)
    again = checked(folder)
    assert (again["gaps"], again["known_from"]) == (told["gaps"], told["known_from"])
    assert len(server.probes) + len(server.requests) == asked, "what is kept is not asked again"
    written(folder, one("openai:another", f", base_url: {server.url}"))
    assert checked(folder)["known_from"] is None, "another model at the same address is another"


def test_long_labels_are_to_be_scored_whole_where_the_server_can(tmp_path, server):
    server.logprobs = lambda body: {"Certainly": math.log(0.9), "Never": math.log(0.1)}
    server.prompt = word_logprob
    for scoring, gaps in (("", 1), (", label_scoring: whole", 0)):
        folder = written(tmp_path / "s", one("openai:scripted", f", base_url: {server.url}{scoring}"))
        change(folder / "study.yaml", ('"Yes": j, "No": f', "Certainly: j, Never: f"))
        change(folder / "sentences.csv", (",Yes", ",Certainly"), (",No", ",Never"))
        told = checked(folder, "--probe")
        assert "long_labels" in told["asked"] and len(told["gaps"]) == gaps
        assert not gaps or "label_scoring: whole" in told["gaps"][0]


def test_a_server_that_cannot_be_probed_is_an_error_and_the_study_is_said_all_the_same(tmp_path):
    folder = written(tmp_path / "s", one("openai:gone", ', base_url: "http://127.0.0.1:9/v1", timeout: 1'))
    done = invoke("check", folder, "--probe")
    assert done.exit_code == 1
    assert "wrods build" in done.output and "http://127.0.0.1:9/v1" in done.output


def test_a_local_model_is_looked_into_without_its_weights(tmp_path):
    from transformers import LlamaConfig, T5Config

    LlamaConfig().save_pretrained(str(tmp_path / "llama"))
    T5Config().save_pretrained(str(tmp_path / "t5"))
    folder = written(tmp_path / "s", one(f"hf:{tmp_path / 'llama'}", shared="  states: last\n"))
    told = checked(folder)
    assert (told["known_from"], told["gaps"]) == ("its checkpoint", [])
    assert "states" in told["asked"]
    written(folder, one(f"hf:{tmp_path / 't5'}", shared="  states: last\n"))
    said = " ".join(checked(folder)["gaps"])
    assert "surprisal" in said and "hidden states" in said


def test_gigabytes_of_hidden_states_are_those_that_a_run_writes(tmp_path, plain_model, monkeypatch):
    from experiment.models.states import read_index

    folder = written(tmp_path / "s", one(f"hf:{plain_model}", shared="  states: [mean, last, regions]\n"))
    told = checked(folder)
    size, trials = told["states"], told["trials"]
    assert size["positions"] == ["last", "regions", "mean"] and size["free_bytes"] > 0
    assert told["hours"] is None and "--max-minutes" in " ".join(told["size"])
    build_study(load_study(folder))
    done = invoke("run", folder, "--not-registered")
    assert done.exit_code == 0, done.output
    (run,) = (folder / "states").iterdir()
    index = read_index(run)
    assert len(index) == size["rows"] > 2 * trials
    layers = list(run.glob("layer_*.npy"))
    assert len(layers) == size["files"]
    assert sum(path.stat().st_size - 128 for path in layers) == size["bytes"]
    assert checked(folder)["hours"] is None, "so few trials say nothing of the speed"
    monkeypatch.setattr("experiment.checking.resource_estimates.ENOUGH", 2)
    assert checked(folder)["hours"] > 0


def test_hours_come_from_a_run_and_a_full_disk_is_told(tmp_path, monkeypatch):
    from transformers import LlamaConfig, T5Config

    from experiment.checking import resource_estimates

    LlamaConfig(hidden_size=4096, num_hidden_layers=32).save_pretrained(str(tmp_path / "llama"))
    use = f"hf:{tmp_path / 'llama'}"
    folder = written(tmp_path / "s", one(use, shared="  states: mean\n"))
    size = checked(folder)["states"]
    assert size["bytes"] == size["rows"] * 33 * 4096 * 2 and size["rows"] == checked(folder)["trials"]
    monkeypatch.setattr(resource_estimates, "free_bytes", lambda _: 1000)
    assert "0.0 MB" in " ".join(checked(folder)["size"])
    study = load_study(folder)
    plan = plan_session(study, make_items(study).items, list_id=1)
    told = resource_estimates.size_of(study, model_settings(study, "m"), plan, 7200, {use: 2.0})
    assert told["hours"] == 1.0 and "2.0" in told["size"][1] and "60 minutes" in told["size"][1]
    T5Config().save_pretrained(str(tmp_path / "t5"))
    written(folder, one(f"hf:{tmp_path / 't5'}", shared="  states: last\n"))
    assert checked(folder)["states"] is None
    written(folder, one("hf:nobody/has-this", shared="  states: last\n"))
    told = checked(folder)
    assert told["states"]["bytes"] is None and "width × 2" in " ".join(told["size"])


def test_a_model_of_the_hub_is_not_downloaded_to_look_into_it(tmp_path):
    told = checked(written(tmp_path / "s", one("hf:nobody/not-on-this-machine")))
    assert told["known_from"] is None and told["held_against"]


def test_planned_analyses_that_a_model_has_no_value_for_are_named(tmp_path):
    planned = checked(written(tmp_path / "s", one("baseline:random")))["planned"]
    assert planned["accuracy"]["lack"] is None
    assert "surprisal" in planned["time"]["lack"]
    planned = checked(written(tmp_path / "s", one("baseline:random", shared="  context: teacher_forced\n")))[
        "planned"
    ]
    assert "log-likelihood" in planned["accuracy"]["lack"]


def test_check_says_that_answers_of_people_may_not_be_sent_to_a_model_elsewhere(tmp_path):
    more = ', base_url: "https://api.example.org/v1", price: {input: 1, output: 1}'
    shared = "  context: teacher_forced\n"
    said = checked(written(tmp_path / "s", one("openai:m", more, shared)))["held_against"]
    (refused,) = [sentence for sentence in said if "send_answers_to_apis" in sentence]
    assert "openai:m" in refused
    more = ', base_url: "http://127.0.0.1:9/v1"'
    own = checked(written(tmp_path / "t", one("openai:m", more, shared)))
    assert "likelihoods" in own["asked"] and "choices" not in own["asked"]
    assert not any("send_answers_to_apis" in sentence for sentence in own["held_against"])


@pytest.mark.parametrize(
    ("measure", "lack"),
    [("surprisal", "surprisal"), ("margin", "labels"), ("latency_ms", None), ("missing", None)],
)
def test_a_planned_measure_is_held_against_what_a_server_was_found_to_give(tmp_path, measure, lack, server):
    folder = written(tmp_path / "s", one("openai:scripted", f", base_url: {server.url}, price: free"))
    said = "missing" if measure == "missing" else f"{{human: reading_time, m: {measure}}}"
    change(folder / "study.yaml", ("{human: reading_time, m: reading_time}", said))
    before = checked(folder)["planned"]["time"]
    assert before["lack"] is None
    if measure in ("surprisal", "margin"):
        assert measure in before["proviso"]
    after = checked(folder, "--probe")["planned"]["time"]
    assert (after["lack"] is None) if lack is None else (lack in after["lack"]), after
    if measure == "latency_ms":
        assert "--timing" in after["proviso"]


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("surprisal", r"line 17: analysis\.planned\.time\.measure is 'surprisal', which people do not have"),
        ("{human: margin, m: margin}", r"line 17: analysis\.planned\.time\.measure\.human is 'margin'"),
        ("{m: reasoning_tokens}", r"line 17: analysis\.planned\.time\.between\[1\]: human has no measure"),
        ("{human: rt, m: rt, n: rt}", r"measure\.n: reader 'n' is not known"),
        ("latency", r"(?s)is \"latency\"; allowed: correct, .*Did you mean 'latency_ms'"),
    ],
)
def test_a_measure_that_a_reader_cannot_have_is_refused_with_its_line(tmp_path, measure, said):
    folder = written(tmp_path / "s", one("baseline:random"))
    change(folder / "study.yaml", ("{human: reading_time, m: reading_time}", measure))
    with pytest.raises(UserError, match=said):
        load_study(folder)
