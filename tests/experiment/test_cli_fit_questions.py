"""``wrods fit`` answers more than coefficients: one command, one table each, the same numbers in JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit, margins, profile_intervals, with_degrees
from stimuli.errors import UserError
from tests.experiment.commands import worked, wrods

FORMULA = "rt ~ cond + freq + (1 | participant)"


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(4)
    rows = [
        (f"p{p}", ("intact", "initial", "final")[(p + i) % 3], round(rng.normal(), 3))
        for p in range(12)
        for i in range(15)
    ]
    data = pd.DataFrame(rows, columns=["participant", "cond", "freq"])
    levels = dict(zip(data["participant"].unique(), rng.normal(0, 0.2, 12), strict=True))
    data["rt"] = 6.0 + data["participant"].map(levels) + 0.1 * (data["cond"] == "initial")
    data["rt"] = (data["rt"] + rng.normal(0, 0.2, len(data))).round(4)
    data["block"] = np.where(data.index % 2 == 0, "a", "b")
    file = tmp_path_factory.mktemp("fit") / "trials.csv"
    data.to_csv(file, index=False)
    return file


def asked(trials: Path, *options: str) -> dict[str, Any]:
    done = worked("fit", trials, "--formula", FORMULA, "--json", *options)
    return dict(json.loads(done.stdout))


def test_json_has_a_key_for_each_question_and_none_unasked(trials):
    plain = asked(trials)
    more = asked(trials, "--anova", "--r2", "--means", "cond", "--equivalence", "0.2")
    assert set(more) - set(plain) == {"anova", "r_squared", "means", "contrasts", "equivalence"}
    assert more["equivalence"]["level"] == 0.9
    assert [row["equivalent"] for row in more["equivalence"]["rows"]] == [
        row["ci_low"] > -0.2 and row["ci_high"] < 0.2 for row in more["equivalence"]["rows"]
    ]


def test_the_numbers_are_those_of_the_package(trials):
    found = fit(FORMULA, pd.read_csv(trials))
    given = asked(
        trials, "--df", "kenward-roger", "--intervals", "profile", "--means", "cond", "--adjust", "tukey"
    )
    adjusted = with_degrees(found, "kenward-roger")
    assert [r["df"] for r in given["fixed"]] == pytest.approx(adjusted.fixed["df"].tolist())
    pairs = margins(adjusted, "cond").pairs(adjust="tukey")
    assert [r["p"] for r in given["contrasts"]["rows"]] == pytest.approx(pairs["p"].tolist())
    assert [r["ci_low"] for r in given["intervals"]["rows"]] == pytest.approx(
        profile_intervals(found)["ci_low"].tolist()
    )


def test_a_bootstrap_in_two_processes_gives_the_numbers_of_one(trials):
    options = ["--intervals", "bootstrap", "--replicates", "24", "--seed", "3"]
    alone = asked(trials, *options)["intervals"]
    assert asked(trials, *options, "--processes", "2")["intervals"] == alone


def test_a_control_a_slope_and_a_smaller_model_are_answered_in_words(trials):
    done = worked(
        *["fit", str(trials), "--formula", FORMULA, "--means", "cond", "--control", "intact"],
        *["--intervals", "bootstrap", "--replicates", "25", "--seed", "3"],
        *["--against", "rt ~ cond + freq + (1 + freq | participant)"],
    )
    assert "adjustment: dunnett" in done.output
    assert "final - intact" in done.output
    assert re.search(r"\b25 .*\(seed 3\)", done.output)
    assert re.search(r"chi-squared\(1\) .*chi-squared\(2\)", done.output)
    slopes = asked(trials, "--slopes", "freq")
    assert slopes["slopes"]["rows"][0]["estimate"] == pytest.approx(slopes["fixed"][-1]["estimate"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--equivalence", "0.1"], "--means"),
        (["--control", "intact"], "--means"),
        (["--means", "cond", "--control", "intakt"], "intakt"),
        (["--means", "cnd"], "cnd"),
        (["--means", "cond", "--scale", "ratio"], "ratio"),
        (["--ml", "--df", "kenward-roger"], "--reml"),
        (["--against", "rt ~ cond + (1 | participant)"], "--ml"),
        (["--intervals", "bootstrap", "--replicates", "5"], "5 refits"),
        (["--processes", "2"], "--intervals bootstrap"),
        (["--intervals", "bootstrap", "--processes", "0"], "processes is 0"),
        (["--means", "cond|cond"], "'cond'"),
        (["--means", "cond,cond"], "'cond'"),
        (["--means", " "], "--means"),
        (["--slopes", "cond"], "--means; means() in Python"),
        (["--slopes", "freq", "--adjust", "holm"], "--means"),
        (["--slopes", "freq", "--scale", "ratio"], "--means"),
        (["--adjust", "tukey"], "--adjust"),
        (["--scale", "ratio"], "--scale"),
        (["--seed", "0"], "--intervals bootstrap"),
        (["--replicates", "1000"], "--intervals bootstrap"),
        (["--intervals", "profile", "--seed", "3"], "--intervals bootstrap"),
        (["--r-script", "--anova"], "--anova"),
        (["--r-script", "--r2"], "--r2"),
        (["--r-script", "--against", "rt ~ 1 + (1 | participant)"], "--against"),
        (["--contrasts", "participant=sum"], "'participant'"),
        (["--levels", "participant=" + ",".join(f"p{k}" for k in range(12))], "'participant'"),
        (["--contrasts", "block=sum"], "'block'"),
        (["--link", ""], "--link"),
        (["--against", "rt ~ 1 + (1 | participant)"], "--ml"),
    ],
)
def test_questions_that_have_no_answer_are_refused(trials, options, said):
    done = wrods("fit", trials, "--formula", FORMULA, *options)
    assert done.exit_code != 0
    assert said in (str(done.exception) if isinstance(done.exception, UserError) else done.output)
