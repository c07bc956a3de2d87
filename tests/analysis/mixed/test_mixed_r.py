"""The R program that we print gives the numbers that we print, whatever model, criterion, options and columns there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, fit, lme4_program
from tests.analysis.mixed.conftest import Simulate
from tests.analysis.mixed.drawn_programs import Drawn, answers_of_r, drawn_models, make_data, run
from tests.analysis.r_programs import lines_of_r

pytestmark = pytest.mark.r
DATA = Path(__file__).parent / "data" / "families.csv"

LINEAR = {
    "a slope that is no fixed effect": ("rt ~ cond + (1 + log.freq | participant)", {}),
    "two slopes without correlations": (
        "rt ~ cond * agent + (1 + cond + log.freq || participant) + (1 | item)",
        {},
    ),
    "an independent slope without intercept": (
        "rt ~ log.freq + (0 + log.freq | participant) + (1 | item)",
        {},
    ),
    "a factor without intercept": ("rt ~ 0 + cond + (0 + agent | item)", {}),
    "nested groups": ("rt ~ cond + (1 | agent/participant)", {}),
    "an interaction of groups": ("rt ~ cond + (1 | agent:item) + (1 | participant)", {}),
    "arithmetic": ("rt ~ I((log.freq - 3)^2) + log(log.freq + 10) + (1 | participant)", {}),
    "transforms that learn": ("rt ~ scale(trials) + poly(log.freq, 2) * agent + (1 | participant)", {}),
    "a comparison": ("rt ~ I(log.freq > 3) * agent + (1 | participant) + (1 | item)", {}),
    "a transformed response": ("exp(rt) ~ agent/cond + (cond | item)", {}),
    "columns that repeat": ("rt ~ agent:cond + cond + (1 | participant)", {}),
    "sum contrasts": ("rt ~ agent * cond + (1 | item)", {"contrasts": {"cond": "sum", "agent": "sum"}}),
    "helmert contrasts": ("rt ~ cond + (1 + cond | participant)", {"contrasts": {"cond": "helmert"}}),
    "another reference": ("rt ~ cond + (1 | item)", {"levels": {"cond": ["internal", "intact", "initial"]}}),
    "a numeric factor": ("rt ~ trials + (1 | item)", {"levels": {"trials": ["5", "3", "4", "6", "7", "8"]}}),
    "weights and offset": (
        "rt ~ cond + (1 | item)",
        {"weights": "trials", "offset": "log.freq", "reml": False},
    ),
    "an offset in the formula": ("rt ~ cond + offset(log(trials)) + (1 | item)", {}),
    "missing cells": ("`gappy rt` ~ scale(gappy) + cond + (1 | gappy.item)", {}),
    "names with spaces": ("rt ~ `the condition` * agent + (1 | item)", {}),
    "names of other alphabets": ("rt ~ größe + (größe || participant)", {}),
    "natural spline": ("rt ~ ns(log.freq, 3) * agent + (1 | participant)", {}),
    "spline slopes": ("rt ~ bs(log.freq, df = 4) + (1 + log.freq | participant)", {}),
    "centred in the formula": ("rt ~ I(log.freq - mean(log.freq)) * agent + (1 | item)", {}),
    "levels by other names": ('rt ~ factor(cond, labels = c("A", "B", "C")) + (1 | participant)', {}),
    "intervals": ("rt ~ cut(log.freq, 3) + (1 | participant)", {}),
    "ordered categories": ("rt ~ degree * agent + (1 | participant) + (1 + degree | item)", {}),
    "a factor of ordered categories": ("rt ~ factor(degree) + (1 | item)", {"reml": False}),
    "conditions": ('rt ~ I(cond == "initial" & log.freq > 3) + (1 | participant)', {}),
    "slopes of one level": (
        'rt ~ cond + (1 + dummy(cond, "initial") || participant) + (0 + dummy(cond, "intact") | item)',
        {},
    ),
}

GENERALISED = {
    "logit, slopes": ("correct ~ cond * log.freq + (1 + agent || item) + (1 | participant)", "binomial", {}),
    "probit": ("correct ~ cond + (1 | participant) + (1 | item)", "binomial", {"link": "probit"}),
    "probit, counts": (
        "cbind(hits, trials - hits) ~ cond + (1 + cond | participant)",
        "binomial",
        {"link": "probit"},
    ),
    "counts": ("cbind(hits, trials - hits) ~ agent + (1 | participant) + (1 | item)", "binomial", {}),
    "proportions": ("hits/trials ~ agent + (1 | participant)", "binomial", {"weights": "trials"}),
    "text response": ("answer ~ cond + (1 | participant)", "binomial", {}),
    "rates": ("errors ~ cond + (1 | participant) + (1 | item)", "poisson", {"offset": "log(trials)"}),
    "counts of errors": ("errors ~ agent * cond + (1 + log.freq | participant)", "poisson", {}),
    "weighted counts": ("errors ~ agent + (1 | item)", "poisson", {"weights": "trials"}),
}
TWO = "(1 | participant) + (1 | item)"
FAMILIES = ("binomial", "negative.binomial", "inverse.gaussian")
BINOMIAL, COUNTS, INVERSE = ({"family": name} for name in FAMILIES)
CRITERIA: dict[str, tuple[str, dict[str, Any]]] = {
    "Gamma": (f"rt ~ x * cond + {TWO}", {"family": "Gamma", "link": "identity"}),
    "Gamma, log, weights": (f"rt ~ x + {TWO}", {"family": "Gamma", "link": "log", "weights": "count + 1"}),
    "gaussian, log": (f"rt ~ x + {TWO}", {"link": "log", "weights": "count + 1"}),
    "inverse Gaussian, log": (f"time ~ x * cond + {TWO}", INVERSE | {"link": "log"}),
    "inverse Gaussian": ("time ~ x + (1 + x | participant)", INVERSE | {"link": "identity"}),
    "inverse Gaussian, glmer": (
        "I(time/1000) ~ x + (1 | item)",
        INVERSE | {"link": "identity", "dispersion": "glmer"},
    ),
    "negative binomial": (f"count ~ x + {TWO}", COUNTS | {"offset": "x/2"}),
    "negative binomial, observed": ("count ~ x + (1 | item)", COUNTS | {"information": "observed"}),
    "guess rate": (f"correct ~ x + {TWO}", BINOMIAL | {"link": "guess(0.5)"}),
    "guess rate, probit": ("correct ~ cond + (1 | item)", BINOMIAL | {"link": "guess(1/3, probit)"}),
    "cloglog": ("yes ~ x + (1 | item)", BINOMIAL | {"link": "cloglog"}),
    "quadrature": ("yes ~ x + cond + (1 | participant)", BINOMIAL | {"nagq": 9}),
    "quadrature of counts": ("count ~ x + (1 | item)", {"family": "poisson", "nagq": 15}),
    "quadrature of overdispersed counts": ("count ~ x + (1 | item)", COUNTS | {"nagq": 9}),
    "quadrature with slopes": ("yes ~ x + cond + (1 + x | participant)", BINOMIAL | {"nagq": 5}),
    "quadrature with independent slopes": (
        "count ~ x + (1 + x || participant)",
        {"family": "poisson", "nagq": 3},
    ),
    "quadrature of times": ("rt ~ x + (1 | participant)", {"family": "Gamma", "link": "log", "nagq": 5}),
    "penalty and quadrature": ("sure ~ cond * x + (1 | item)", BINOMIAL | {"penalty": "normal", "nagq": 5}),
    "a covariate of millions": ("yes ~ large + (1 | item)", BINOMIAL),
    "slopes of millions": ("rt ~ large + (1 + large | item)", {}),
    "penalty": ("yes ~ x * cond + (1 + x | participant) + (1 | item)", BINOMIAL | {"penalty": "normal"}),
    "penalty, probit, observed": (
        "yes ~ 0 + cond + (1 | item)",
        BINOMIAL | {"link": "probit", "penalty": "normal", "information": "observed"},
    ),
    "successive differences": (
        "yes ~ n + (1 | item)",
        BINOMIAL | {"contrasts": {"n": "sdif"}, "levels": {"n": ["0", "1", "2"]}},
    ),
    "own contrasts": (
        "yes ~ cond + (1 | item)",
        BINOMIAL | {"contrasts": {"cond": {".scr.v.int": [-0.5, 0.5]}}},
    ),
    "factor calls": (
        'yes ~ relevel(factor(cond), ref = "scrambled") + C(factor(n), contr.sum) + (1 | item)',
        BINOMIAL,
    ),
    "polynomials of levels": ("yes ~ ordered(n) + (1 | item)", BINOMIAL),
    "truth values": ("yes ~ flag + (1 | item)", BINOMIAL),
    "truth values in arithmetic": (
        "yes ~ as.numeric(flag) + I(flag * x) + ifelse(flag, x, 0) + (1 | item)",
        BINOMIAL,
    ),
    "letters that R takes for truth values": ("letter ~ x + code + (1 | half)", BINOMIAL),
    "a group made a factor": ("yes ~ x + (1 | factor(item))", BINOMIAL),
    "penalty on separated data": ("sure ~ cond * x + (1 | item)", BINOMIAL | {"penalty": "normal"}),
}


CASES = {name: (formula, options) for name, (formula, options) in LINEAR.items()}
CASES |= {
    name: (formula, {"family": family, **options}) for name, (formula, family, options) in GENERALISED.items()
}
Refits = dict[str, tuple[Fit, Any]]
"""Our fits, and what R said when it ran our programs."""


def refitted(cases: dict[str, tuple[str, dict[str, Any]]], data: pd.DataFrame, folder: Path) -> Refits:
    file = folder / "data.csv"
    data.to_csv(file, index=False)
    fits = {name: fit(formula, data, **options) for name, (formula, options) in cases.items()}
    said = answers_of_r([lme4_program(one, str(file)) for one in fits.values()], folder)
    return {name: (fits[name], answer) for name, answer in zip(fits, said, strict=True)}


@pytest.fixture(scope="module")
def refits(crossed: Simulate, tmp_path_factory: pytest.TempPathFactory) -> Refits:
    data = crossed(seed=4, participants=20, items=15)
    data["answer"] = np.where(data["correct"] == 1, "yes", "no")
    data["the condition"] = data["cond"]
    data["degree"] = pd.Categorical(data["cond"], ["intact", "internal", "initial"], ordered=True)
    data["größe"] = data["log.freq"] ** 2
    data["gappy rt"] = data["rt"].mask(data.index.isin([3, 50]))
    data["gappy"] = data["log.freq"].mask(data.index.isin([7, 8, 50]))
    data["gappy.item"] = data["item"].mask(data.index == 9)
    return refitted(CASES, data, tmp_path_factory.mktemp("r"))


@pytest.fixture(scope="module")
def of_criteria(tmp_path_factory: pytest.TempPathFactory) -> Refits:
    data = pd.read_csv(DATA)
    data["n"], data["flag"] = data["item"] % 3, data["participant"] % 3 == 0
    data["letter"], data["half"] = np.where(data["yes"] == 1, "T", "F"), data["item"].map("0x{:02d}".format)
    data["code"] = np.where(data["participant"] % 2 == 0, "1e5", "0x1A")
    data["large"] = np.round(5e6 + 1e6 * data["x"])
    data["sure"] = ((data["cond"] == "scrambled") | (data["yes"] == 1)).astype(int)
    return refitted(CRITERIA, data, tmp_path_factory.mktemp("criteria"))


def bare(terms: Any) -> list[str]:
    return ["".join(letter for letter in term if letter not in '"`\\') for term in terms]


def agree(ours: Fit, theirs: Any, *, exact: bool) -> None:
    """Compare fixed effects, their errors and the likelihood; ``exact`` where lme4 maximises the same function as closely."""
    assert isinstance(theirs, dict), f"R refused: {theirs}"
    assert bare(ours.fixed["term"]) == theirs["terms"]
    se = np.array(theirs["se"])
    assert np.abs((ours.fixed["estimate"] - theirs["estimate"]) / se).max() < (1e-5 if exact else 1e-3)
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-4 if exact else 3e-3)
    assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-5 if exact else 1e-3)


@pytest.mark.parametrize("case", CASES)
def test_the_printed_r_program_gives_the_printed_numbers(case: str, refits: Refits) -> None:
    ours, theirs = refits[case]
    linear = ours.family == "gaussian"
    agree(ours, theirs, exact=linear)
    assert ours.loglik > theirs["loglik"] - 1e-5
    if not ours.singular:
        if linear:
            assert ours.fixed["df"].to_numpy() == pytest.approx(theirs["df"], rel=1e-3)
        sd = np.concatenate([c.sd for c in ours.variance])
        assert sd == pytest.approx(theirs["sd"], rel=2e-3, abs=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("case", CRITERIA)
def test_the_program_of_every_criterion_gives_its_numbers(case: str, of_criteria: Refits) -> None:
    """What lme4 cannot express in one call is written out."""
    agree(*of_criteria[case], exact=False)


FEW = 12
"""Models drawn; of about two in five the data hold no such model, and ``wrods fit`` refuses them."""


@pytest.mark.full
def test_programs_of_models_drawn_at_random_give_our_numbers(tmp_path: Path) -> None:
    outcomes = run(list(drawn_models(FEW, 1)), tmp_path)
    assert len(outcomes) >= FEW // 2
    assert not {outcome.drawn: outcome.faults for outcome in outcomes if outcome.faults}


COLUMNS = (
    # Columns that R reads, evaluates or prints otherwise than they stand in the formula.
    "y ~ factor(cond) * z + (1 | p)|--contrasts cond=sum",
    "y ~ n + I(n^2) + (1 | p)|--levels n=3,1,2",
    "y ~ relevel(n, ref = '3') + n + (1 | factor(p))|",
    "y ~ flag + I(flag * x) + (1 | p)|--contrasts flag=helmert",
    "y ~ if * z + (1 | p)|",
    "y ~ `if` * T + (1 + `a|b` || `the person`)|",
    "y ~ poly(gappy, 2) + I(gappy.cond %in% c('high', 'low')) + (1 | gappy.p)|",
    "y ~ ifelse(flag, gappy, 0) + (1 | deci)|",
    "y ~ `late night` + côté + TF * code + (big || p)|",
    "y ~ x # a remark\n + (1 | p)|",
    "y6 ~ x + cond + (x | p)|",
    "y.big ~ big + (big | p)|",
    "y.big ~ I(big - 5e6) + (1 + I(big - 5e6) || p) + (1 | i)|",
    "rt ~ x + (1 | p)|--family inverse.gaussian",
    # A covariance that has lost a dimension, far from one in its units.
    "I(1000 * rt) ~ x + (x | p)|--family Gamma --link identity",
    "truth ~ C(n, contr.helmert) + (1 | code.p)|--family binomial",
    "TFanswer ~ big + (x | p)|--family binomial --nagq 3",
)


@pytest.mark.full
def test_programs_read_every_kind_of_column_as_we_do(tmp_path: Path) -> None:
    models = []
    for k, case in enumerate(COLUMNS):
        formula, _, options = case.partition("|--") if "|--" in case else (case[:-1], "", "")
        models.append(Drawn(k, ("--formula", formula, *(f"--{options}".split() if options else ()))))
    outcomes = run(models, tmp_path)
    assert len(outcomes) == len(COLUMNS)
    assert not {outcome.drawn.arguments: outcome.faults for outcome in outcomes if outcome.faults}


def test_a_file_whose_header_has_a_mark_and_spaces_is_read(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    rows = make_data(5)[["y", "x", "p"]].rename(columns={"x": " x"})
    rows.to_csv(file, index=False, encoding="utf-8-sig")
    found = fit("y ~ ` x` + (1 | p)", pd.read_csv(file, encoding="utf-8-sig"))
    program = lme4_program(found, str(file)) + 'cat("B", sprintf("%.10g", fixef(m)), "\\n")\n'
    said = next(line for line in lines_of_r(program, tmp_path) if line.startswith("B "))
    assert np.array(said.split()[1:], dtype=float) == pytest.approx(
        found.fixed["estimate"].to_numpy(), rel=1e-5
    )
