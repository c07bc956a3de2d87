"""Two commands that let the same judge read at once: one reads, the other says so, and no reply is read twice."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from experiment.models.leases import leased
from experiment.store.tables import calls, scores
from tests.experiment.models.running import invoke, of_store
from tests.experiment.models.test_runs_ways import small


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
    assert invoke("score", folder, "--judge", "j").exit_code == 0
    rows = [row for row in of_store(folder, select(calls)) if row["purpose"] == "judge"]
    judged = [row for row in of_store(folder, select(scores)) if row["scorer"] == "judge:j-1"]
    assert len(rows) == len(judged) == 8 == len(server.requests) - asked
