"""The R program beside fits that lme4 cannot express in one call gives our numbers too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, fit, lme4_program

DATA = Path(__file__).parent / "data" / "families.csv"
WRITTEN_OUT = r"""
cat("JSON", sprintf('{"terms": [%s], "estimate": [%s], "se": [%s], "loglik": %.12g}',
  paste(sprintf('"%s"', gsub('"', "'", rownames(fixed))), collapse = ","), paste(sprintf("%.12g", fixed[, 1]), collapse = ","),
  paste(sprintf("%.12g", fixed[, 2]), collapse = ","), log_likelihood), "\n")
"""
ONE_CALL = r"""
table <- coef(summary(m))
cat("JSON", sprintf('{"terms": [%s], "estimate": [%s], "se": [%s], "loglik": %.12g}',
  paste(sprintf('"%s"', gsub('"', "'", rownames(table))), collapse = ","), paste(sprintf("%.12g", table[, 1]), collapse = ","),
  paste(sprintf("%.12g", table[, 2]), collapse = ","), as.numeric(logLik(m))), "\n")
"""

TWO = "(1 | participant) + (1 | item)"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Gamma": (f"rt ~ x * cond + {TWO}", {"family": "Gamma", "link": "identity"}),
    "Gamma, log, weights": (f"rt ~ x + {TWO}", {"family": "Gamma", "link": "log", "weights": "count + 1"}),
    "gaussian, log": (f"rt ~ x + {TWO}", {"link": "log", "weights": "count + 1"}),
    "inverse Gaussian, log": (f"time ~ x * cond + {TWO}", {"family": "inverse.gaussian", "link": "log"}),
    "inverse Gaussian": (
        "time ~ x + (1 + x | participant)",
        {"family": "inverse.gaussian", "link": "identity"},
    ),
    "inverse Gaussian, glmer": (
        "I(time/1000) ~ x + (1 | item)",
        {"family": "inverse.gaussian", "link": "identity", "dispersion": "glmer"},
    ),
    "negative binomial": (f"count ~ x + {TWO}", {"family": "negative.binomial", "offset": "x/2"}),
    "negative binomial, observed": (
        "count ~ x + (1 | item)",
        {"family": "negative.binomial", "information": "observed"},
    ),
    "guess rate": (f"correct ~ x + {TWO}", {"family": "binomial", "link": "guess(0.5)"}),
    "guess rate, probit": (
        "correct ~ cond + (1 | item)",
        {"family": "binomial", "link": "guess(1/3, probit)"},
    ),
    "cloglog": ("yes ~ x + (1 | item)", {"family": "binomial", "link": "cloglog"}),
    "quadrature": ("yes ~ x + cond + (1 | participant)", {"family": "binomial", "nagq": 9}),
    "quadrature of counts": ("count ~ x + (1 | item)", {"family": "poisson", "nagq": 15}),
    "quadrature of overdispersed counts": (
        "count ~ x + (1 | item)",
        {"family": "negative.binomial", "nagq": 9},
    ),
    "quadrature with slopes": (
        "yes ~ x + cond + (1 + x | participant)",
        {"family": "binomial", "nagq": 5},
    ),
    "quadrature with independent slopes": (
        "count ~ x + (1 + x || participant)",
        {"family": "poisson", "nagq": 3},
    ),
    "quadrature of times": ("rt ~ x + (1 | participant)", {"family": "Gamma", "link": "log", "nagq": 5}),
    "penalty and quadrature": (
        "sure ~ cond * x + (1 | item)",
        {"family": "binomial", "penalty": "normal", "nagq": 5},
    ),
    "a covariate of millions": ("yes ~ large + (1 | item)", {"family": "binomial"}),
    "slopes of millions": ("rt ~ large + (1 + large | item)", {}),
    "penalty": (
        "yes ~ x * cond + (1 + x | participant) + (1 | item)",
        {"family": "binomial", "penalty": "normal"},
    ),
    "penalty, probit, observed": (
        "yes ~ 0 + cond + (1 | item)",
        {"family": "binomial", "link": "probit", "penalty": "normal", "information": "observed"},
    ),
    "successive differences": ("yes ~ n + (1 | item)", {"family": "binomial", "contrasts": {"n": "sdif"}}),
    "own contrasts": (
        "yes ~ cond + (1 | item)",
        {"family": "binomial", "contrasts": {"cond": {".scr.v.int": [-0.5, 0.5]}}},
    ),
    "factor calls": (
        'yes ~ relevel(factor(cond), ref = "scrambled") + C(factor(n), contr.sum) + (1 | item)',
        {"family": "binomial"},
    ),
    "polynomials of levels": ("yes ~ ordered(n) + (1 | item)", {"family": "binomial"}),
    "truth values": ("yes ~ flag + (1 | item)", {"family": "binomial"}),
    "truth values in arithmetic": (
        "yes ~ as.numeric(flag) + I(flag * x) + ifelse(flag, x, 0) + (1 | item)",
        {"family": "binomial"},
    ),
    "letters that R takes for truth values": ("letter ~ x + code + (1 | half)", {"family": "binomial"}),
    "a group made a factor": ("yes ~ x + (1 | factor(item))", {"family": "binomial"}),
    "penalty on separated data": (
        "sure ~ cond * x + (1 | item)",
        {"family": "binomial", "penalty": "normal"},
    ),
}


@pytest.fixture(scope="module")
def refits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Fit, Any]]:
    folder = tmp_path_factory.mktemp("criteria")
    data = pd.read_csv(DATA)
    data["n"], data["flag"] = data["item"] % 3, data["participant"] % 3 == 0
    data["letter"], data["half"] = np.where(data["yes"] == 1, "T", "F"), data["item"].map("0x{:02d}".format)
    data["code"] = np.where(data["participant"] % 2 == 0, "1e5", "0x1A")
    data["large"] = np.round(5e6 + 1e6 * data["x"])
    data["sure"] = ((data["cond"] == "scrambled") | (data["yes"] == 1)).astype(int)
    file = folder / "data.csv"
    data.to_csv(file, index=False)
    fits, parts = {}, []
    for name, (formula, options) in CASES.items():
        options = dict(options)
        if options.get("contrasts") == {"n": "sdif"}:
            options["levels"] = {"n": ["0", "1", "2"]}
        fits[name] = fit(formula, data, **options)
        program = lme4_program(fits[name], str(file))
        tail = WRITTEN_OUT if "deviance_at" in program else ONE_CALL
        if "saturated" in program:
            tail = tail.replace("as.numeric(logLik(m))", "log_likelihood")
        parts.append(f"tryCatch({{\n{program}\n{tail}\n")
        parts.append(
            '}, error = function(e) cat("JSON", encodeString(conditionMessage(e), quote = "\\""), "\\n"))\n'
        )
    script = folder / "programs.R"
    script.write_text("\n".join(parts), "utf-8")
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("JSON ")]
    return {name: (fits[name], answer) for name, answer in zip(CASES, answers, strict=True)}


@pytest.mark.r
@pytest.mark.full
@pytest.mark.parametrize("case", list(CASES))
def test_the_program_of_every_criterion_gives_its_numbers(
    case: str, refits: dict[str, tuple[Fit, Any]]
) -> None:
    ours, theirs = refits[case]
    assert isinstance(theirs, dict), f"R refused: {theirs}"
    assert [t.replace('"', "'") for t in ours.fixed["term"]] == [t.replace('"', "'") for t in theirs["terms"]]
    se = np.array(theirs["se"])
    assert np.abs((ours.fixed["estimate"] - theirs["estimate"]) / se).max() < 1e-3
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=3e-3)
    assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-3)
