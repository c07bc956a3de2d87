"""Models rate: by the probability of each point where they tell it, else by what they write; sliders by what they write."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from tests.experiment.commands import wrods
from tests.scripted_openai import ScriptedOpenAI

STUDY = """\
wrods: 1
study: rated
title: Rated
seed: 3
materials: {{sentences: sentences.csv}}
design: {{factors: {{order: [good, bad]}}}}
procedure:
  - block: {{trial: [{{rate: {{show: sentence, ask: How good is this?, {scale}}}}}]}}
models:
  who:
    reader: {{{model}}}
"""


def rows(folder: Path, scale: str, model: str) -> list[dict[str, Any]]:
    """Return the exported trials of a study that a model has taken."""
    folder.mkdir()
    sentences = [f"s{n},The {word} sleeps.,The sleeps {word}." for n, word in enumerate(("cat", "dog"))]
    (folder / "sentences.csv").write_text(
        "\n".join(["item,sentence:good,sentence:bad", *sentences]) + "\n", "utf-8"
    )
    (folder / "study.yaml").write_text(STUDY.format(scale=scale, model=model), "utf-8")
    build_study(load_study(folder))
    for command in (("run", folder), ("export", folder, "--out", folder / "out")):
        done = wrods(*command)
        assert done.exit_code == 0, done.output
    with (folder / "out" / "trials.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("scale", "points"),
    [
        ("from: 0, to: 10", {str(n): n for n in range(11)}),
        ("points: [guessing, fairly sure, certain]", {"guessing": 1, "fairly sure": 2, "certain": 3}),
    ],
)
def test_a_local_model_rates_by_the_mean_of_the_points_by_their_probabilities(
    tmp_path: Path, plain_model: Path, scale: str, points: dict[str, int]
) -> None:
    for row in rows(tmp_path / "study", scale, f'use: "hf:{plain_model}"'):
        shares = {label: math.exp(value) for label, value in json.loads(row["label_logprobs"]).items()}
        assert shares.keys() == points.keys()
        mean = sum(share * points[label] for label, share in shares.items()) / sum(shares.values())
        assert float(row["rating"]) == pytest.approx(mean)
        assert row["response_status"] == "valid" and row["response_raw"] in points
        assert row["correct"] == row["score"] == ""


@pytest.mark.parametrize(
    ("scale", "reply", "status", "rating"),
    [
        ("points: [guessing, certain]", "certain", "valid", "2"),
        ("as: slider, from: 0, to: 100, high: perfect", "Perfect.", "valid", "100"),
        ("as: slider, from: 0, to: 100", "162", "unparsed", ""),
    ],
)
def test_a_model_that_tells_no_probabilities_rates_by_what_it_writes(
    tmp_path: Path, scale: str, reply: str, status: str, rating: str
) -> None:
    with ScriptedOpenAI(answer=lambda body: reply) as server:
        model = f'use: "openai:scripted", base_url: "{server.url}"'
        for row in rows(tmp_path / "study", scale, model):
            assert (row["response_status"], row["rating"].removesuffix(".0")) == (status, rating)
