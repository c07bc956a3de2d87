"""Whole runs at a server whose first tokens are not its labels: what is stored is what it said, and the run tells of it."""

from __future__ import annotations

import json
import math

import pytest
from sqlalchemy import select

from experiment.store.tables import calls
from tests.experiment.models.running import (
    TRIALS,
    invoke,
    of_store,
    remote,
    server,
    stored,
    study,
    with_models,
)

__all__ = ["server", "study"]

PROSE = {"The": 0.99, "No": 0.0025, "Yes": 0.0009}


@pytest.mark.parametrize("surface", ["chat", "completions", "responses"])
def test_a_reply_that_opens_with_other_words_is_read_as_what_it_says(study, server, surface):
    server.answer = lambda body: "The answer is Yes."
    server.logprobs = lambda body: {token: math.log(share) for token, share in PROSE.items()}
    server.prompt = lambda word: -1.0
    with_models(study, remote("one", server, f"price: free, api: {surface}"))
    done = invoke("run", study)
    assert done.exit_code == 0, done.output
    rows = stored(study)
    told = f"{surface}+logprobs+unsettled{'' if surface == 'responses' else '+prompt_logprobs'}"
    assert {(row["response"], row["response_status"]) for row in rows} == {("Yes", "valid")} and len(
        rows
    ) == TRIALS
    assert {row["path"] for row in rows} == {told}
    assert rows[0]["label_logprobs"] == pytest.approx({"Yes": math.log(0.0009), "No": math.log(0.0025)})
    assert f"{TRIALS} of {TRIALS} answers are read from the reply" in done.output
    assert f"of {TRIALS} it leaves the label open" in done.output


def test_a_reply_against_its_first_token_is_counted_and_kept_beside_it(study, server):
    server.answer = lambda body: "No"
    server.logprobs = lambda body: {"Yes": math.log(0.8), "No": math.log(0.15)}
    with_models(study, remote("one", server, "price: free"))
    done = invoke("run", study, "--json")
    assert done.exit_code == 0, done.output
    assert {row["response"] for row in stored(study)} <= {"No", None}
    assert json.loads(done.stdout)["models"][0]["first_tokens"] == {"disagrees": TRIALS}
    kept = of_store(study, select(calls.c.generated, calls.c.label_logprobs))
    assert all("No" in row["generated"] and set(row["label_logprobs"]) == {"Yes", "No"} for row in kept)
