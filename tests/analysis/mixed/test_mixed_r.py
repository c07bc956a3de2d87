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

pytestmark = pytest.mark.r
DATA = Path(__file__).parent / "data" / "families.csv"

TWO = "(1 | participant) + (1 | item)"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    # linear mixed models
    "a slope that is no fixed effect": ("rt ~ cond + (1 + log.freq | participant)", {}),
    "slopes without correlations": (
        "rt ~ cond * agent + (1 + cond + log.freq || participant) + (1 | item)",
        {},
    ),
    "no intercept": ("rt ~ 0 + cond + (0 + agent | item) + (0 + log.freq | participant)", {}),
    "nested groups": ("rt ~ cond + (1 | agent/participant)", {}),
    "arithmetic and what learns from the rows": (
        "rt ~ I((log.freq - mean(log.freq))^2) + log(log.freq + 10) + scale(trials) + (1 | participant)",
        {},
    ),
    "polynomials and conditions": (
        f'rt ~ poly(log.freq, 2) * agent + I(cond == "initial" & log.freq > 3) + {TWO}',
        {},
    ),
    "splines and levels by other names": (
        'rt ~ ns(log.freq, 3) * agent + factor(cond, labels = c("A", "B", "C")) + (1 | participant)',
        {},
    ),
    "a transformed response": ("exp(rt) ~ agent/cond + (cond | item)", {}),
    "columns that repeat": ("rt ~ agent:cond + cond + (1 | participant)", {}),
    "contrasts and another reference": (
        "rt ~ cond * agent + (1 + cond | participant)",
        {
            "contrasts": {"cond": "helmert", "agent": "sum"},
            "levels": {"cond": ["internal", "intact", "initial"]},
        },
    ),
    "a numeric factor": ("rt ~ trials + (1 | item)", {"levels": {"trials": ["5", "3", "4", "6", "7", "8"]}}),
    "weights and offset": (
        "rt ~ cond + (1 | item)",
        {"weights": "trials", "offset": "log.freq", "reml": False},
    ),
    "missing cells and an offset in the formula": (
        "`gappy rt` ~ scale(gappy) + cond + offset(log(trials)) + (1 | gappy.item)",
        {},
    ),
    "names with spaces and of other alphabets": (
        "rt ~ `the condition` * agent + größe + (größe || participant)",
        {},
    ),
    "ordered categories": ("rt ~ degree * agent + (1 | participant) + (1 + degree | item)", {}),
    "slopes of one level": (
        'rt ~ factor(degree) + (1 + dummy(cond, "initial") || participant) + (0 + dummy(cond, "intact") | item)',
        {},
    ),
    # generalised ones
    "logit, slopes": (
        "correct ~ cond * log.freq + (1 + agent || item) + (1 | participant)",
        {"family": "binomial"},
    ),
    "probit, counts": (
        "cbind(hits, trials - hits) ~ cond + (1 + cond | participant)",
        {"family": "binomial", "link": "probit"},
    ),
    "proportions": ("hits/trials ~ agent + (1 | participant)", {"family": "binomial", "weights": "trials"}),
    "text response": ("answer ~ cond + (1 | participant)", {"family": "binomial"}),
    "rates": (f"errors ~ cond + {TWO}", {"family": "poisson", "offset": "log(trials)"}),
    "weighted counts": ("errors ~ agent + (1 | item)", {"family": "poisson", "weights": "trials"}),
}
FAMILIES = ("binomial", "negative.binomial", "inverse.gaussian")
BINOMIAL, COUNTS, INVERSE = ({"family": name} for name in FAMILIES)
CRITERIA: dict[str, tuple[str, dict[str, Any]]] = {
    "Gamma": (f"rt ~ x * cond + {TWO}", {"family": "Gamma", "link": "identity"}),
    "gaussian, log, weights": (f"rt ~ x + {TWO}", {"link": "log", "weights": "count + 1"}),
    "inverse Gaussian, log": (f"time ~ x * cond + {TWO}", INVERSE | {"link": "log"}),
    "inverse Gaussian, glmer": (
        "I(time/1000) ~ x + (1 | item)",
        INVERSE | {"link": "identity", "dispersion": "glmer"},
    ),
    "negative binomial": (f"count ~ x + {TWO}", COUNTS | {"offset": "x/2"}),
    "negative binomial, observed": ("count ~ x + (1 | item)", COUNTS | {"information": "observed"}),
    "guess rate, probit": (f"correct ~ cond + {TWO}", BINOMIAL | {"link": "guess(1/3, probit)"}),
    "quadrature": ("yes ~ x + cond + (1 | participant)", BINOMIAL | {"nagq": 9}),
    "quadrature of overdispersed counts": ("count ~ x + (1 | item)", COUNTS | {"nagq": 9}),
    "quadrature with slopes": ("yes ~ x + cond + (1 + x | participant)", BINOMIAL | {"nagq": 5}),
    "quadrature with independent slopes": (
        "count ~ x + (1 + x || participant)",
        {"family": "poisson", "nagq": 3},
    ),
    "quadrature of times": ("rt ~ x + (1 | participant)", {"family": "Gamma", "link": "log", "nagq": 5}),
    "penalty and quadrature": ("sure ~ cond * x + (1 | item)", BINOMIAL | {"penalty": "normal", "nagq": 5}),
    "a covariate of millions": ("yes ~ large + (1 | item)", BINOMIAL),
    "penalty": (f"yes ~ x * cond + (0 + x | participant) + {TWO}", BINOMIAL | {"penalty": "normal"}),
    "penalty, probit, observed": (
        "yes ~ 0 + cond + (1 | item)",
        BINOMIAL | {"link": "probit", "penalty": "normal", "information": "observed"},
    ),
    "contrasts": (
        "yes ~ cond + n + (1 | item)",
        BINOMIAL
        | {"contrasts": {"cond": {".scr.v.int": [-0.5, 0.5]}, "n": "sdif"}, "levels": {"n": ["0", "1", "2"]}},
    ),
    "factor calls": (
        'yes ~ relevel(factor(cond), ref = "scrambled") + C(factor(n), contr.sum) + (1 | factor(item))',
        BINOMIAL,
    ),
    "polynomials of levels and truth values": (
        "yes ~ ordered(n) + flag + ifelse(flag, x, 0) + (1 | item)",
        BINOMIAL | {"link": "cloglog"},
    ),
    "letters that R takes for truth values": ("letter ~ x + code + (1 | half)", BINOMIAL),
}
COLUMNS = (
    # Columns that R reads, evaluates or prints otherwise than they stand in the formula.
    "y ~ factor(cond) * z + (1 | p)|--contrasts cond=sum",
    "y ~ n + I(n^2) + (1 | p)|--levels n=3,1,2",
    "y ~ relevel(n, ref = '3') + n + (1 | factor(p))|",
    "y ~ flag + I(flag * x) + if * z + (1 | p)|--contrasts flag=helmert",
    "y ~ `if` * T + (1 + `a|b` || `the person`)|",
    "y ~ poly(gappy, 2) + I(gappy.cond %in% c('high', 'low')) + (1 | gappy.p)|",
    "y ~ ifelse(flag, gappy, 0) + (1 | deci)|",
    "y ~ `late night` + côté + TF * code + (big || p)|",
    "y6 ~ x # a remark\n + cond + (x | p)|",
    "y.big ~ I(big - 5e6) + (1 + I(big - 5e6) || p) + (1 | i)|",
    # A covariance that has lost a dimension, far from one in its units.
    "I(1000 * rt) ~ x + (x | p)|--family Gamma --link identity",
    "truth ~ C(n, contr.helmert) + (1 | code.p)|--family binomial",
    "TFanswer ~ big + (x | p)|--family binomial --nagq 3",
)
DRAWN = 4
"""Models drawn; of about two in five the data hold no such model, and ``wrods fit`` refuses them."""

Refits = dict[str, tuple[Fit, Any]]
"""Our fits, and what R said when it ran our programs."""


def refitted(
    cases: dict[str, tuple[str, dict[str, Any]]], data: pd.DataFrame, folder: Path, **others: tuple[Fit, Path]
) -> Refits:
    """Fit the cases to the data; have R run our programs of these fits, and of others that have files of their own."""
    file = folder / "data.csv"
    data.to_csv(file, index=False)
    fits = {
        name: (fit(formula, data, **options), file) for name, (formula, options) in cases.items()
    } | others
    said = answers_of_r([lme4_program(one, str(of)) for one, of in fits.values()], folder)
    return {name: (one, answer) for (name, (one, _)), answer in zip(fits.items(), said, strict=True)}


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
    folder = tmp_path_factory.mktemp("r")
    file = folder / "marked.csv"
    rows = make_data(5)[["y", "x", "p"]].rename(columns={"x": " x"})
    rows.to_csv(file, index=False, encoding="utf-8-sig")
    marked = fit("y ~ ` x` + (1 | p)", pd.read_csv(file, encoding="utf-8-sig"))
    return refitted(CASES, data, folder, marked=(marked, file))


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    data = pd.read_csv(DATA)
    data["n"], data["flag"] = data["item"] % 3, data["participant"] % 3 == 0
    data["letter"], data["half"] = np.where(data["yes"] == 1, "T", "F"), data["item"].map("0x{:02d}".format)
    data["code"] = np.where(data["participant"] % 2 == 0, "1e5", "0x1A")
    data["large"] = np.round(5e6 + 1e6 * data["x"])
    data["sure"] = ((data["cond"] == "scrambled") | (data["yes"] == 1)).astype(int)
    return data


def bare(terms: Any) -> list[str]:
    return ["".join(letter for letter in term if letter not in '"`\\') for term in terms]


def agree(ours: Fit, theirs: Any, name: str, *, exact: bool) -> None:
    """Compare fixed effects, their errors and the likelihood; ``exact`` where lme4 maximises the same function as closely."""
    assert isinstance(theirs, dict), f"{name}: R refused: {theirs}"
    assert bare(ours.fixed["term"]) == theirs["terms"], name
    se = np.array(theirs["se"])
    assert np.abs((ours.fixed["estimate"] - theirs["estimate"]) / se).max() < (1e-5 if exact else 1e-3), name
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-4 if exact else 3e-3), name
    assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-5 if exact else 1e-3), name


@pytest.mark.parametrize("case", CASES)
def test_the_printed_r_program_gives_the_printed_numbers(case: str, refits: Refits) -> None:
    ours, theirs = refits[case]
    linear = ours.family == "gaussian"
    agree(ours, theirs, case, exact=linear)
    assert ours.loglik > theirs["loglik"] - 1e-5
    if not ours.singular:
        if linear:
            assert ours.fixed["df"].to_numpy() == pytest.approx(theirs["df"], rel=1e-3)
        sd = np.concatenate([c.sd for c in ours.variance])
        assert sd == pytest.approx(theirs["sd"], rel=2e-3, abs=1e-4)


def test_a_file_whose_header_has_a_mark_and_spaces_is_read(refits: Refits) -> None:
    agree(*refits["marked"], "marked", exact=True)


@pytest.mark.full
def test_the_program_of_every_criterion_gives_its_numbers(rows: pd.DataFrame, tmp_path: Path) -> None:
    """What lme4 cannot express in one call is written out."""
    for name, (ours, theirs) in refitted(CRITERIA, rows, tmp_path).items():
        agree(ours, theirs, name, exact=False)


@pytest.mark.full
def test_programs_of_every_kind_of_column_and_of_models_drawn_at_random_give_our_numbers(
    tmp_path: Path,
) -> None:
    models = []
    for k, case in enumerate(COLUMNS):
        formula, _, options = case.partition("|--") if "|--" in case else (case[:-1], "", "")
        models.append(Drawn(k, ("--formula", formula, *(f"--{options}".split() if options else ()))))
    outcomes = run([*models, *drawn_models(DRAWN, 1)], tmp_path)
    assert len(outcomes) >= len(COLUMNS) + DRAWN // 2
    assert not {outcome.drawn: outcome.faults for outcome in outcomes if outcome.faults}
