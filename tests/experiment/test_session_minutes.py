"""How long a session may take, told by ``wrods check``: what people read, answer, write and wait for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from experiment.cli import main
from experiment.session_minutes import session_duration, shortest_seconds


def step(**given: Any) -> dict[str, Any]:
    return {"step": "choose", "text": None, "minimum_ms": 0, "time_limit_ms": None, **given}


def trial(*steps: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"set": "s", "exemplars": [], "fixation_ms": 0, "interval_ms": 0, "steps": list(steps), **given}


def block(*trials: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {
        "kind": "block",
        "feedback": None,
        "break_every": None,
        "break_minimum_ms": 0,
        "trials": list(trials),
        **given,
    }


def test_the_shortest_session_is_what_no_page_lets_anybody_skip():
    pages = {
        "kind": "instructions",
        "pages": [{"text": "many words " * 99, "minimum_ms": 5000}, {"text": "few"}],
    }
    prime = step(step="prime", mask_ms=500, prime_ms=50, backward_ms=50, frames=None)
    primed = trial(prime, step(), trial_index=0, fixation_ms=400, interval_ms=300)
    read = trial(step(step="read", minimum_ms=2000), step(minimum_ms=1000), trial_index=1)
    screens = [pages, {"kind": "break", "text": None, "minimum_ms": 3000}, block(primed, read)]
    plan = {"screens": screens}
    assert shortest_seconds(plan, ()) == pytest.approx(8)
    assert shortest_seconds(plan, {0}) == pytest.approx(8 + 0.7 + 0.6 + 0.2)
    assert shortest_seconds(plan, {0, 1}) == pytest.approx(9.5 + 3)


def test_a_statement_counts_a_minute_and_what_its_limit_allows_is_told_apart():
    told = session_duration(
        {"screens": [block(trial(step(step="answer", multiline=True, time_limit_ms=180_000)))]}
    )
    assert (told.minutes, told.limits_allow) == (pytest.approx(1), pytest.approx(2))
    short = session_duration(
        {"screens": [block(trial(step(step="answer", multiline=True, time_limit_ms=20_000)))]}
    )
    assert (short.minutes, short.limits_allow) == (pytest.approx(1 / 3), pytest.approx(0))


@pytest.mark.full
def test_check_tells_the_minutes_of_each_level_between_sessions_and_what_limits_allow(tmp_path):
    runner = CliRunner()
    runner.invoke(main, ["new", str(tmp_path / "s"), "--from", "htest-people"])
    numbers = json.loads(runner.invoke(main, ["check", str(tmp_path / "s"), "--json"]).output)
    few, many = (numbers["minutes_by_levels"][level] for level in ("few", "many"))
    assert numbers["minutes"] == many > few > 20, "ten statements and 120 lines do not fit twenty minutes"
    assert numbers["minutes_that_limits_allow"] == 20
    said = " ".join(runner.invoke(main, ["check", str(tmp_path / "s")]).output.split())
    assert f"{few:.0f} minutes (few), {many:.0f} minutes (many)" in said
    assert "time limits allow 20 minutes more" in said
    assert (
        "The instructions are followed by 2 questions, all to be answered correctly within 2 rounds" in said
    )
    assert "gives no feedback" in said and "2 attention checks among them" in said
