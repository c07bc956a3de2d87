"""A provider's job: files by the rules, money before anything is sent, one job whatever ends the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiment.checking import load_study
from experiment.models.journal import spending
from experiment.papers.inside.tuning import api, trainings
from experiment.papers.inside.tuning.api import check_chats
from experiment.papers.inside.tuning.records import read_curve
from experiment.store import open_store
from stimuli.errors import UserError
from tests.experiment.commands import change
from tests.experiment.tuning.conftest import build_study, wrods
from tests.experiment.tuning.scripted_jobs import ScriptedJobs

STUDY = """\
wrods: 1
study: tunes
title: Which animal is named?
seed: 7
models:
  budget: 1 USD
  who:
    gpt: {{use: "openai:small-1", base_url: "{url}", price: free}}
    trained: {{use: "tuned:animals"}}
tuning:
  animals: {{model: gpt, on: prompts.jsonl, epochs: 2, price: 25}}
materials: {{sentences: sentences.csv}}
design:
  lists: one
procedure:
  - block:
      trial:
        - choose: {{show: sentence, ask: Cat?, keys: {{"yes": f, "no": j}}}}
"""


@pytest.fixture
def server() -> Iterator[ScriptedJobs]:
    with ScriptedJobs() as running:
        yield running


def write(folder: Path, server: ScriptedJobs, number: int = 60) -> Path:
    folder.mkdir(exist_ok=True)
    return build_study(folder, STUDY.format(url=server.url), asked=8, learnt=number, prompt=str)


@pytest.fixture
def study(tmp_path: Path, server: ScriptedJobs) -> Path:
    return write(tmp_path / "study", server)


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(api, "POLL_S", 0.01)


def spent(folder: Path) -> float:
    with open_store(folder) as store, store.read() as connection:
        return spending(connection, load_study(folder)).total


def test_nothing_is_sent_or_spent_without_submit_and_consent(study, server):
    done = wrods("tune", study)
    assert done.exit_code == 0, done.output
    assert " USD" in done.output and "--submit" in done.output
    folder = study / "tuning" / "animals"
    first = json.loads((folder / "api-training.jsonl").read_text("utf-8").splitlines()[0])
    assert [one["role"] for one in first["messages"]] == ["user", "assistant"]
    spec = json.loads((folder / "api-job.json").read_text("utf-8"))["spec"]
    assert spec["seed"] == 7 and spec["method"]["supervised"]["hyperparameters"] == {"n_epochs": 2}
    done = wrods("tune", study, "--submit")
    assert done.exit_code == 2 and "--yes" in done.output
    assert not server.files and not server.jobs


def test_a_job_is_made_followed_and_its_model_reads_the_study(study, server):
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code == 0, done.output
    (job,) = server.jobs.values()
    assert job["seed"] == 7 and job["method"]["supervised"]["hyperparameters"]["n_epochs"] == 2
    record = json.loads((study / "tuning" / "animals" / "tuning.json").read_text("utf-8"))
    assert record["state"] == "finished" and record["model_name"] == "ft:small-1:lab:animals:x"
    assert record["cost_usd"] == pytest.approx(0.3) and spent(study) == pytest.approx(0.3)
    curve = read_curve(study / "tuning" / "animals" / "loss.csv")
    assert [one.training_loss for one in curve] == [2.5, 1.5, 0.5, 0.25] and curve[-1].validation_loss == 0.5
    assert load_study(study).models["trained"] == {
        "use": "openai:ft:small-1:lab:animals:x", "base_url": server.url, "trained": "animals", "base": "gpt",
    }  # fmt: skip
    again = wrods("tune", study, "--submit", "--yes", "--json")
    assert json.loads(again.stdout)["trainings"][0]["was_finished"] and len(server.jobs) == 1


def test_a_command_that_ends_while_the_job_runs_is_gone_on_with_without_submit(study, server):
    server.becomes = ["running"]
    done = wrods("tune", study, "--submit", "--yes", "--max-minutes", "0.02")
    assert done.exit_code == 1 and "running" in done.output, done.output
    assert 0 < spent(study) <= 1
    assert "wrods tune" in wrods("check", study).output
    server.becomes = ["succeeded"]
    done = wrods("tune", study)
    assert done.exit_code == 0, done.output
    assert len(server.jobs) == 1 and len(server.files) == 1


def test_a_job_whose_name_was_lost_is_found_again_and_never_made_twice(study, server):
    server.loses_next_answer = True
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code == 1 and len(server.jobs) == 1, done.output
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code == 0, done.output
    assert len(server.jobs) == 1 and len(server.files) == 1


def test_a_job_that_failed_says_why_and_what_stays_counted(study, server):
    server.becomes = ["failed"]
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code == 1 and "line 3 is odd" in done.output and " USD" in done.output


def test_a_budget_that_does_not_hold_the_most_is_told_before_anything_is_sent(tmp_path, server):
    study = write(tmp_path / "study", server, number=600)
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code == 1 and "models: budget" in done.output, done.output
    assert not server.files
    done = wrods("tune", study, "--submit", "--yes", "--max-cost", "0.01 USD")
    assert done.exit_code == 2 and "0.01 USD" in done.output


def test_a_server_that_refuses_says_so_and_the_same_command_goes_on(study, server):
    server.refuses = 404
    done = wrods("tune", study, "--submit", "--yes")
    assert done.exit_code != 0 and "no such thing" in done.output, done.output
    server.refuses = None
    assert wrods("tune", study).exit_code == 0
    assert len(server.jobs) == 1


GOOD = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
LONG = {"role": "assistant", "content": "a " * 200_000}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "messages"),
        ([{"role": "reader", "content": "a"}], "'reader'"),
        ([{"role": "user", "content": ""}], "empty"),
        (GOOD["messages"][::-1], "last message"),
        (GOOD["messages"][1:], ""),
        ([GOOD["messages"][0], LONG], "tokens"),
    ],
)
def test_each_rule_of_the_format_names_its_line(messages, why):
    lines = [json.dumps(GOOD)] * 12
    check_chats(lines, Path("f.jsonl"))
    for bad, said in ((json.dumps({"messages": messages}), why), ("{", "JSON")):
        with pytest.raises(UserError, match=f"line 4: .*{said}"):
            check_chats([*lines[:3], bad, *lines[4:]], Path("f.jsonl"))
    with pytest.raises(UserError, match=" 9 "):
        check_chats(lines[:9], Path("f.jsonl"))


def test_running_text_is_no_job(study):
    (study / "texts.txt").write_text("\n\n".join(f"Text number {n} is here." for n in range(20)), "utf-8")
    change(study / "study.yaml", ("on: prompts.jsonl", "on: texts.txt"))
    done = wrods("tune", study)
    assert done.exit_code == 2 and "texts.txt" in done.output
    assert trainings(load_study(study))["animals"].is_api


def test_money_that_a_killed_command_set_aside_is_not_set_aside_again(study, server, monkeypatch):
    change(study / "study.yaml", ("budget: 1 USD", "budget: 0.3 USD"))
    once = api._set_aside

    def and_dies(*given: Any) -> None:
        once(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(api, "_set_aside", and_dies)
        assert wrods("tune", study, "--submit", "--yes").exit_code != 0
    most = spent(study)
    assert 0.15 < most < 0.3 and not server.jobs  # set aside twice it would be beyond the budget
    server.becomes = ["running"]
    done = wrods("tune", study, "--submit", "--yes", "--max-minutes", "0.02")
    assert "running" in done.output, done.output
    assert spent(study) == pytest.approx(most) and len(server.jobs) == 1
