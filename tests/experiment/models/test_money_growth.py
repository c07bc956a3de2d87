"""Estimates of conversations: each turn sends again what was said before, and the interval covers what the rest then costs."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from experiment.models.money.growth import Ahead, Asked, estimate_growing
from experiment.models.money.prices import Price
from tests.experiment.models.running import edit, invoke, remote, with_models

PRICE = Price(10.0, 10.0, 10.0, 1.0, "test")
TURNS = 48


def talk(
    draw: random.Random, name: int = 0, *, around: int, a_character: float, cached: float = 1.0
) -> list[Asked]:
    """Return the turns of one conversation as a server with so many tokens around each message bills them."""
    turns: list[Asked] = []
    chars, before = 0, 0
    for number in range(TURNS):
        chars += 500 if number == 0 else round(draw.gauss(160, 25))
        messages = 2 * number + 1
        tokens = round(chars * a_character * draw.gauss(1, 0.01)) + around * messages
        written = max(1, round(draw.gauss(20, 6)))
        cost = ((tokens - before) * 10 + before * 10 * cached + written * 10) / 1e6
        turns.append(Asked(float(chars), messages, cost, tokens, str(name)))
        before = tokens if cached < 1.0 else 0
        chars += 15
    return turns


@pytest.mark.parametrize("around", [0, 3, 5])
@pytest.mark.parametrize("asked", [1, 6, 24])
def test_the_interval_covers_what_growing_conversations_cost(asked, around) -> None:
    """Fresh (first turns alone were asked) and resumed after six or 24 of 48 turns; at least 90 of 100 are covered."""
    draw = random.Random(around + asked)
    covered = 0
    for _ in range(200):
        rate = draw.uniform(0.2, 0.35)
        talks = [
            talk(draw, number, around=around, a_character=rate * draw.gauss(1, 0.02)) for number in range(8)
        ]
        known = [turn for one in talks for turn in one[:asked]]
        left = [turn for one in talks for turn in one[asked:]]
        found = estimate_growing(known, Ahead([(one.size, one.messages, 1.0) for one in left]), PRICE)
        assert found is not None and found.trials == len(left)
        covered += found.low <= sum(one.cost for one in left) <= found.high
    assert covered >= 180, covered


@pytest.fixture
def conversations(study, server) -> Any:
    """One conversation a list, with feedback, at a server that bills by the character and three tokens a message."""

    def answered(body: dict[str, Any]) -> str:
        tokens = sum(len(one["content"]) + 12 for one in body["messages"]) // 4
        server.usage = {"prompt_tokens": tokens, "completion_tokens": 3}
        return "Yes"

    server.answer = answered
    model = remote("one", server, "price: {input: 10, output: 10}").replace(
        "concurrency: 4", "concurrency: 1"
    )
    with_models(study, model, budget="40 USD")
    edit(study, "  prompt_variants: 1\n", "  prompt_variants: 3\n")
    edit(study, "context: independent", "context: session")
    return study


@pytest.mark.full
@pytest.mark.parametrize("before", [0, pytest.param(60, marks=pytest.mark.full)])
def test_a_run_of_conversations_costs_what_it_was_said_to_cost(conversations, before) -> None:
    if before:
        assert invoke("run", conversations, "--max-trials", str(before)).exit_code == 0
    result = invoke("run", conversations, "--json")
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.stdout)["models"]
    estimate = told["estimate"]
    sampled = int(re.search(r"one: (\d+) trials asked", result.stderr).group(1))
    assert sampled + estimate["trials"] == told["planned"]
    with_probe = told["cost_usd"]
    rest = with_probe if before else with_probe * 0.97
    assert estimate["low"] <= rest <= estimate["high"], (estimate, with_probe)
    assert estimate["total"] == pytest.approx(with_probe, rel=0.25)
