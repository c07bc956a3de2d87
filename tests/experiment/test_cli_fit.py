"""``wrods fit`` on a CSV file, as a shell user meets it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from experiment.cli.fit import fit
from stimuli.errors import UserError

MODEL = "correct ~ cond + (1 | participant)"


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    """Write 12 participants by 20 trials with a text condition, a level called None, and one empty cell."""
    rng = np.random.default_rng(12)
    data = pd.DataFrame(
        [(f"p{p}", i) for p in range(12) for i in range(20)], columns=["participant", "item.no"]
    )
    data["cond"] = np.array(["intact", "None"])[np.arange(len(data)) % 2]
    lift = rng.normal(0, 0.7, 12).repeat(20) + 0.6 * (data["cond"] == "intact")
    data["correct"] = (rng.random(len(data)) < 1 / (1 + np.exp(-lift))).astype(int).astype(object)
    data["rt"] = np.round(np.exp(6.5 - 0.1 * lift + rng.normal(0, 0.2, len(data))), 1)
    data["year"] = 2020 + np.arange(len(data)) % 3
    data["n"], data["share"] = 4, rng.integers(0, 5, len(data)) / 4
    data.loc[5, "correct"] = ""
    file = tmp_path / "trials.csv"
    data.to_csv(file, index=False)
    return file


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(fit, [str(a) for a in arguments])


def numbers(*arguments: str | Path) -> dict[str, object]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.exception or result.output
    return dict(json.loads(result.output))


def terms(content: dict[str, object]) -> list[str]:
    rows = content["fixed"]
    assert isinstance(rows, list)
    return [row["term"] for row in rows]


def test_levels_set_the_reference_and_make_numbers_a_factor(trials):
    content = numbers(
        trials, "--formula", "rt ~ cond + year + (1 | participant)",
        "--levels", "cond=intact, None", "--levels", "year=2021,2020,2022",
    )  # fmt: skip
    assert terms(content) == ["(Intercept)", "condNone", "year2020", "year2022"]


def test_ml_and_reml_differ_and_reml_is_the_default(trials):
    formula = "log(rt) ~ cond + (1 | participant) + (1 | item.no)"
    default, reml, ml = (numbers(trials, "--formula", formula, *o) for o in ([], ["--reml"], ["--ml"]))
    assert default == reml
    assert (reml["method"], ml["method"]) == ("REML", "ML")
    assert reml["loglik"] != ml["loglik"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--formula", "correct ~ kond + (1 | participant)", "--family", "binomial"], "Did you mean 'cond'?"),
        (["--formula", MODEL, "--levels", "cond"], "not of the form NAME=VALUE"),
        (["--formula", MODEL, "--levels", "cond=a", "--levels", "cond=b"], "names 'cond' twice"),
        (["--formula", MODEL, "--family", "binomial", "--reml"], "--reml is for the gaussian family"),
        (["--formula", MODEL, "--family", "binomial", "--nagq", "0"], "nAGQ = 0 is not available"),
        (["--formula", MODEL, "--json", "--r-script"], "Choose one"),
        (["--formula", MODEL, "--reml", "--link", "log"], "not for gaussian with the log link"),
        (["--formula", MODEL, "--contrasts", "agent=1,2"], "'agent'"),
    ],
)
def test_wrong_use_says_what_to_mend(arguments, says, trials):
    error = run(trials, *arguments).exception
    assert isinstance(error, UserError)
    assert error.exit_code == 2
    assert says in str(error)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "odd.csv"),
        (b"", "odd.csv"),
        (b"a,b\n", "header"),
        (b"a;b\n1;2\n", "semicolon"),
        (b"a\tb\n1\t2\n", "tab"),
        (b"a,b\n1,2\n1,2,3,4\n", "line 3"),
        (b"a,b\n\xff\xfe,2\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_csv_is_named(content, says, tmp_path):
    file = tmp_path / "odd.csv"
    if content is not None:
        file.write_bytes(content)
    error = run(file, "--formula", "b ~ 1 + (1 | a)").exception
    assert isinstance(error, UserError)
    assert str(file) in str(error)
    assert says in str(error)


@pytest.mark.r
def test_the_r_script_runs_and_prints_the_same_likelihood(trials):
    arguments = (trials, "--formula", MODEL, "--family", "binomial", "--levels", "cond=intact,None")
    script = trials.with_suffix(".R")
    script.write_text(run(*arguments, "--r-script").output, "utf-8")
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loglik = numbers(*arguments)["loglik"]
    assert isinstance(loglik, float)
    printed = next(line for line in done.stdout.splitlines() if line.startswith("'log Lik.'"))
    assert float(printed.split()[2]) == pytest.approx(loglik, abs=1e-4)


FAMILIES = Path(__file__).parents[1] / "analysis" / "mixed" / "data" / "families.csv"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--family", "Gamma", "--link", "identity", "--formula", "rt ~ x + (1 | item)"], "phi"),
        (["--family", "inverse.gaussian", "--link", "log", "--formula", "time ~ x + (1 | item)"], "phi"),
        (["--family", "negative.binomial", "--formula", "count ~ x + (1 | item)"], "theta"),
        (
            ["--family", "binomial", "--link", "guess(0.5)", "--formula", "correct ~ x + (1 | item)"],
            "guess(0.5) link",
        ),
        (
            ["--family", "binomial", "--nagq", "9", "--formula", "yes ~ x + (1 | item)"],
            "adaptive Gauss-Hermite (nAGQ=9)",
        ),
        (
            ["--family", "binomial", "--penalty", "normal", "--formula", "yes ~ cond + (1 | item)"],
            "penalised ML (normal)",
        ),
        (
            ["--family", "binomial", "--contrasts", "cond=-.5,.5", "--formula", "yes ~ cond + (1 | item)"],
            "cond1",
        ),
    ],
    ids=[
        "Gamma",
        "inverse Gaussian",
        "negative binomial",
        "guess rate",
        "quadrature",
        "penalty",
        "own contrasts",
    ],
)
def test_every_kind_of_model_can_be_asked_for(options, says):
    result = run(FAMILIES, *options)
    assert result.exit_code == 0, result.exception
    assert says in result.output
    assert "library(lme4)" in run(FAMILIES, *options, "--r-script").output
