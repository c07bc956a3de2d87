"""Several models in one run: side by side a block at a time, within money and limits, told from elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from experiment.checking import load_study
from experiment.models.leases import leased
from experiment.models.runs import environment, orchestrator
from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
from experiment.store import open_store
from experiment.store.tables import audit, calls, scores
from tests.experiment.models.running import (
    TRIALS,
    begin,
    invoke,
    money,
    of_store,
    remote,
    spread,
    wait_until,
    with_models,
)
from tests.experiment.models.test_runs_ways import small

BLOCKS = 4


def are_within_one_block(folder: Path, models: int, probed: int = 0) -> bool:
    """Say whether all models and lists are within one block of each other, trials of the probe aside."""
    return spread(folder, models) <= TRIALS // 16 + probed


def test_the_record_of_a_run_says_what_was_spent(study, server):
    with_models(study, remote("one", server), budget="40 USD")
    first = invoke("run", study, "--max-trials", "20", "--json")
    result = invoke("run", study)
    assert result.exit_code == 0, result.output
    assert len(server.requests) == TRIALS
    *_, begun, ended = (
        row for row in of_store(study, select(audit).where(audit.c.action.in_(("run", "run_ended"))))
    )
    cost = json.loads(first.stdout)["models"][0]["cost_usd"] + ended["detail"]["cost_usd"]
    assert money(study).total == pytest.approx(cost)
    assert begun["detail"]["price"]["input"] == 10 and begun["detail"]["budget_usd"] == 40
    assert {"processor", "cores", "memory", "gpus"} <= set(begun["detail"]["hardware"])
    assert begun["detail"]["versions"]["python"]


def test_max_cost_binds_all_models_of_a_command_together(study, server):
    with_models(study, remote("one", server), remote("two", server))
    result = invoke("run", study, "--max-cost", "0.02 USD", "--json")
    told = json.loads(result.stdout)["models"]
    assert result.exit_code == 1
    spent = sum(one["cost_usd"] for one in told)
    assert 0 < spent <= 0.02 + 1e-9
    assert all("max-cost" in one["stopped"] for one in told), told
    assert are_within_one_block(study, 2, probed=2)
    assert sum(row["cost_usd"] for row in of_store(study, select(calls))) == pytest.approx(spent)


def test_a_budget_binds_two_commands_at_the_same_time(study, server):
    server.delay = 0.01
    with_models(study, remote("one", server), remote("two", server), budget="0.03 USD")
    beside = begin("run", study, "--model", "one")
    wait_until(lambda: bool(server.requests) or beside.poll() is not None)
    invoke("run", study, "--model", "two")
    beside.communicate(timeout=300)
    spent = money(study)
    assert 0.015 <= spent.spent <= 0.03 + 1e-9
    assert spent.set_aside == pytest.approx(0) and spent.unknown == pytest.approx(0)


def test_a_model_without_a_price_is_left_out_before_anything_is_sent(study, server):
    with_models(
        study,
        'gpt: {use: "openai:gpt-of-nobody", base_url: "https://api.example.org/v1"}',
        'guesser: {use: "baseline:random"}',
    )
    result = invoke("run", study, "--json")
    guesser, gpt = json.loads(result.stdout)["models"]
    assert result.exit_code == 1 and guesser["answered"] == TRIALS and "openai:gpt-of-nobody" in gpt["error"]


def test_a_full_database_holds_the_run_up_and_costs_nothing(study, server):
    """A page limit stands for a full disk; SQLite reports both alike."""
    loaded = load_study(study)
    given = {"use": "openai:m", "base_url": server.url, "price": "free", "cache": False, "probe": False}
    with open_store(study) as store:
        version = version_of(loaded, store)
        most = ["full"]

        @event.listens_for(store._writing, "begin")
        def _limit(connection: Any) -> None:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1 if most else 1 << 30}")

        waits: list[str | None] = []

        def draw(figures: Any) -> None:
            waits.extend(one.waits for one in figures)
            if any(waits) and most:
                most.clear()

        most.clear()
        run = CommandRun(loaded, store, RunOptions(version=version, draw=draw))
        prepare = run._prepare

        def prepared(*arguments: Any) -> Any:
            part = prepare(*arguments)
            most.append("full")
            return part

        run._prepare = prepared  # type: ignore[method-assign]
        (outcome,) = run.run({"m": given})
    assert any("full" in str(one) for one in waits), "the run says what it waits for"
    assert outcome.answered == TRIALS == len(server.requests) and outcome.is_whole


def test_a_judge_that_reads_already_is_not_asked_by_a_second_command(make_study, server):
    def answer(body: dict[str, Any]) -> str:
        return (
            "A"
            if "because of the letters" in body["messages"][-1]["content"]
            else "It may be, because of the letters."
        )

    server.answer = answer
    m = f'm: {{use: "openai:m", base_url: "{server.url}", probe: false, strategy: chain_of_thought, judge: j}}'
    j = f'j: {{use: "openai:j", base_url: "{server.url}", probe: false, cache: false}}'
    folder = small(make_study, f"{m}, {j}", changes=())
    assert json.loads(invoke("run", folder, "--model", "m", "--json").stdout)["models"][0]["left"] == 0
    asked = len(server.requests)
    with leased(folder, "small", "judge j"):
        second = invoke("score", folder, "--judge", "j")
    assert second.exit_code == 1 and "judge j" in second.output
    assert len(server.requests) == asked
    for _ in range(2):
        assert invoke("score", folder, "--judge", "j").exit_code == 0
    rows = [row for row in of_store(folder, select(calls)) if row["purpose"] == "judge"]
    judged = [row for row in of_store(folder, select(scores)) if row["scorer"] == "judge:j-1"]
    assert len(rows) == len(judged) == 8 == len(server.requests) - asked


COMPARED = ("parameters", "system_role", "dtype", "revision")


def ended(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the record of each model's run says of its engine."""
    rows = of_store(folder, select(audit.c.detail).where(audit.c.action == "run_ended"))
    return {row["detail"]["reader"]: row["detail"]["engine"] for row in rows}


@pytest.mark.parametrize("stay", [True, False], ids=["weights stay", "loaded anew each turn"])
def test_the_record_of_two_local_models_says_what_that_of_one_says(
    study, plain_model, chat_model, tmp_path, monkeypatch, stay
):
    pytest.importorskip("torch")
    alone = tmp_path / "alone"
    shutil.copytree(study, alone)
    with_models(alone, f'chat: {{use: "hf:{chat_model}"}}')
    assert invoke("run", alone).exit_code == 0
    with_models(study, f'base: {{use: "hf:{plain_model}"}}', f'chat: {{use: "hf:{chat_model}"}}')
    opened: list[bool] = []
    made = orchestrator.CommandRun._make_room
    monkeypatch.setattr(
        orchestrator.CommandRun, "_make_room", lambda run, part: (opened.append(True), made(run, part))
    )
    if not stay:
        monkeypatch.setattr(environment, "fit_together", lambda models: False)
    assert invoke("run", study).exit_code == 0
    # with four rounds there are five turns: who is last in a round is first in the next
    assert len(opened) == (0 if stay else 5), "two models of some kilobytes fit"
    (one,), both = ended(alone).values(), ended(study)
    assert {name: both["chat"][name] for name in COMPARED} == {name: one[name] for name in COMPARED}
    for told in both.values():
        assert told["parity"]["path"] == "packed" and told["parity"]["checked"] > 0
        assert told["parameters"] > 0
    assert both["chat"]["tokens_forwarded"] >= one["tokens_forwarded"]
    if stay:
        assert both["chat"]["tokens_forwarded"] == pytest.approx(one["tokens_forwarded"], rel=0.2)
