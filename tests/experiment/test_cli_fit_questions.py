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
from tests.experiment.commands import wrods

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
    done = wrods("fit", trials, "--formula", FORMULA, "--json", *options)
    assert done.exit_code == 0, done.output
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
    done = wrods(
        *["fit", str(trials), "--formula", FORMULA, "--means", "cond", "--control", "intact"],
        *["--intervals", "bootstrap", "--replicates", "25", "--seed", "3"],
        *["--against", "rt ~ cond + freq + (1 + freq | participant)"],
    )
    assert done.exit_code == 0, done.output
    assert "adjustment: dunnett" in done.output
    assert "final - intact" in done.output
    assert re.search(r"\b25 .*\(seed 3\)", done.output)
    assert re.search(r"chi-squared\(1\) .*chi-squared\(2\)", done.output)
    slopes = asked(trials, "--slopes", "freq")
    assert slopes["slopes"]["rows"][0]["estimate"] == pytest.approx(slopes["fixed"][-1]["estimate"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--equivalence", "0.1"], "comparisons of means"),
        (["--control", "intact"], "compared with other means"),
        (["--means", "cond", "--control", "intakt"], "intakt"),
        (["--means", "cnd"], "cnd"),
        (["--means", "cond", "--scale", "ratio"], "no ratio reading"),
        (["--ml", "--df", "kenward-roger"], "fitted by ML"),
        (["--against", "rt ~ cond + (1 | participant)"], "REML likelihoods"),
        (["--intervals", "bootstrap", "--replicates", "5"], "too few"),
        (["--processes", "2"], "--processes belongs to the bootstrap"),
        (["--intervals", "bootstrap", "--processes", "0"], "at least one must work"),
        (["--means", "cond|cond"], "'cond' is named twice"),
        (["--means", "cond,cond"], "'cond' is named twice"),
        (["--means", " "], "--means is empty"),
        (["--slopes", "cond"], "--means; means() in Python"),
        (["--slopes", "freq", "--adjust", "holm"], "an adjustment is of comparisons, and one slope"),
        (["--slopes", "freq", "--scale", "ratio"], "the ratio scale is of comparisons"),
        (["--adjust", "tukey"], "none are requested"),
        (["--scale", "ratio"], "none are requested"),
        (["--seed", "0"], "--seed belongs to the bootstrap"),
        (["--replicates", "1000"], "--replicates belongs to the bootstrap"),
        (["--intervals", "profile", "--seed", "3"], "--seed belongs to the bootstrap"),
        (["--r-script", "--anova"], "--anova has no part in it"),
        (["--r-script", "--r2"], "--r2 has no part in it"),
        (["--r-script", "--against", "rt ~ 1 + (1 | participant)"], "--against has no part in it"),
        (["--contrasts", "participant=sum"], "only groups rows"),
        (["--levels", "participant=" + ",".join(f"p{k}" for k in range(12))], "only groups rows"),
        (["--contrasts", "block=sum"], "which the formula does not read"),
        (["--link", ""], "--link is empty"),
        (["--against", "rt ~ 1 + (1 | participant)"], "--ml"),
    ],
)
def test_questions_that_have_no_answer_are_refused(trials, options, said):
    done = wrods("fit", trials, "--formula", FORMULA, *options)
    assert done.exit_code != 0
    assert said in (str(done.exception) if isinstance(done.exception, UserError) else done.output)
