"""Cumulative mixed models have the numbers of R's ordinal::clmm, their means those of emmeans; edges and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.fitted_model import fit as fit_table
from analysis.mixed import (
    anova,
    bootstrap,
    category_margins,
    fit,
    lme4_program,
    margins,
    predict,
    profile_intervals,
    r_squared,
    residuals,
    simulate,
)
from stimuli.errors import UserError
from tests.analysis.r_programs import told_by_r

LEVELS = ["never", "rarely", "sometimes", "often", "always"]
CROSSED = "rating ~ cond + x + (1 | participant) + (1 | item)"


def ratings(
    participants: int = 20, items: int = 12, categories: int = 5, spread: float = 0.8, seed: int = 1
) -> pd.DataFrame:
    """Draw ratings of every item by every participant, from 1 upwards."""
    rng = np.random.default_rng(seed)
    who, what = np.divmod(np.arange(participants * items), items)
    cond = np.array(["intact", "internal", "initial"])[(who + what) % 3]
    x = np.round(rng.normal(size=len(who)), 3)
    latent = rng.normal(0, spread, participants)[who] + rng.normal(0, 0.8 * spread, items)[what] + 0.4 * x
    latent += 0.7 * (cond == "internal") + rng.normal(0, 0.6 * spread, participants)[who] * x
    latent += rng.logistic(size=len(who))
    cuts = np.linspace(-2.0, 2.0, categories - 1) if categories > 2 else np.zeros(1)
    rating = 1 + (latent[:, None] > cuts).sum(axis=1)
    return pd.DataFrame(
        {
            "participant": [f"p{k:02d}" for k in who],
            "item": what + 100,
            "cond": cond,
            "x": x,
            "rating": rating,
            "gap": np.where(rating == 2, 3, rating),
            "word": np.array(LEVELS)[np.minimum(rating, 5) - 1],
            "times": rng.integers(1, 4, len(who)),
            "half": np.where(what < items // 2, "first", "second"),
        }
    )


TABLES: dict[str, dict[str, Any]] = {
    "small": {"participants": 14, "items": 10},
    "three": {"participants": 12, "items": 10, "categories": 3, "seed": 9},
    "flat": {"participants": 10, "items": 9, "spread": 0.0, "seed": 2},
}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "logit": ("small", CROSSED, {}),
    "probit": ("three", CROSSED, {"link": "probit"}),
    "cloglog and weights": ("three", CROSSED, {"link": "cloglog", "weights": "times"}),
    "an empty category": ("small", CROSSED.replace("rating", "gap"), {}),
    "words": ("three", CROSSED.replace("rating", "word"), {"levels": {"word": LEVELS}}),
    "random slopes": ("small", "rating ~ x + (1 + x | participant)", {}),
    "no variance": ("flat", CROSSED, {}),
    "no random effects": ("small", "rating ~ cond * x", {}),
    "quadrature": ("small", "rating ~ cond + (1 | participant)", {"nagq": 7}),
}
OF_PROGRAMS = ("an empty category", "words", "no random effects")
SCRIPT = r"""
suppressMessages({library(ordinal); library(emmeans)})
row <- function(x) paste(ifelse(is.finite(x), sprintf("%.10g", x), "null"), collapse = ",")
told <- function(label, ...) {
  parts <- list(...)
  cat("JSON", sprintf('{"case": "%s", %s}', label,
    paste(sprintf('"%s": [%s]', names(parts), sapply(parts, row)), collapse = ", ")), "\n")
}
say <- function(label, m) {
  s <- coef(summary(m))
  told(label, loglik = as.numeric(logLik(m)), estimate = s[, 1], se = s[, 2],
    sd = if (inherits(m, "clmm")) unlist(lapply(VarCorr(m), attr, "stddev")) else numeric(0),
    npar = attr(logLik(m), "df"))
}
"""


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return {name: ratings(**how) for name, how in TABLES.items()}


@pytest.fixture(scope="module")
def judged(
    tables: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, list[float]]]:
    folder = tmp_path_factory.mktemp("ordinal")
    lines = [SCRIPT]
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        words = ", ".join(f'"{word}"' for word in LEVELS)
        lines += [
            f'{name} <- read.csv("{folder / name}.csv")',
            f"for (y in c('rating', 'gap')) {name}[[y]] <- ordered({name}[[y]])",
            f"{name}$word <- ordered({name}$word, levels = c({words}))",
        ]
    for label, (name, formula, options) in CASES.items():
        given = f", link = '{options.get('link', 'logit')}', nAGQ = {options.get('nagq', 1)}"
        given += f", weights = {options['weights']}" if "weights" in options else ""
        fitted = f"clmm({formula}, {name}{given}, control = clmm.control(gradTol = 1e-6))"
        fitted = fitted if "|" in formula else f"clm({formula}, data = {name})"
        lines.append(f"say('{label}', {'m <- ' if label == 'logit' else ''}{fitted})")
    lines += [
        "for (mode in c('latent', 'prob', 'mean.class')) {",
        "  e <- emmeans(m, if (mode == 'prob') ~ cond | rating else ~ cond, mode = mode)",
        "  told(mode, estimate = summary(e)[[if (mode == 'latent') 'emmean' else mode]], se = summary(e)$SE)",
        "  p <- summary(pairs(e, adjust = 'holm'))",
        "  told(paste(mode, 'pairs'), estimate = p$estimate, se = p$SE, p = p$p.value)",
        "}",
        "e <- summary(emmeans(clm(rating ~ cond * half + x, data = small), ~ half | rating, mode = 'prob'))",
        "told('averaged', estimate = e$prob, se = e$SE)",
    ]
    for label in OF_PROGRAMS:
        name, formula, options = CASES[label]
        ours = fit(formula, pd.read_csv(folder / f"{name}.csv"), "ordinal", **options)
        lines.append(f"local({{ {lme4_program(ours, str(folder / f'{name}.csv'))}")
        lines.append(f"told('program of {label}', loglik = as.numeric(logLik(m)), cuts = coef(m)[1:2]) }})")
    return {numbers.pop("case"): numbers for numbers in told_by_r("\n".join(lines), folder)}


@pytest.mark.full
@pytest.mark.r
@pytest.mark.parametrize("case", CASES)
def test_cumulative_mixed_models_have_the_numbers_of_clmm(
    case: str, tables: dict[str, pd.DataFrame], judged: dict[str, dict[str, list[float]]]
) -> None:
    name, formula, options = CASES[case]
    ours, theirs = fit(formula, tables[name], "ordinal", **options), judged[case]
    assert ours.converged
    assert ours.loglik == pytest.approx(theirs["loglik"][0], abs=1e-4)
    assert ours.n_parameters == theirs["npar"][0]
    assert ours.thresholds is not None
    both = pd.concat([ours.thresholds, ours.fixed.iloc[1:]], ignore_index=True)
    size = both["se"].to_numpy()
    assert np.abs((both["estimate"] - theirs["estimate"]) / size).max() < 2e-3
    # Where a variance vanishes clmm's numerical Hessian has no inverse.
    if case == "no variance":
        assert ours.singular
    else:
        assert size == pytest.approx(np.array(theirs["se"]), rel=2e-3)
    assert sorted(sd for c in ours.variance for sd in c.sd) == pytest.approx(
        sorted(theirs["sd"]), rel=2e-3, abs=5e-3
    )


@pytest.mark.full
@pytest.mark.r
def test_means_of_ordinal_models_are_those_of_emmeans(
    tables: dict[str, pd.DataFrame], judged: dict[str, dict[str, list[float]]]
) -> None:
    ours = fit(CROSSED, tables["small"], "ordinal")
    latent, probable = margins(ours, "cond"), category_margins(ours, "cond")
    mean = category_margins(ours, "cond", mean=True)
    averaged = category_margins(fit("rating ~ cond * half + x", tables["small"], "ordinal"), "half")
    for column, numbers in judged["averaged"].items():
        assert averaged.table("response")[column].to_numpy() == pytest.approx(np.array(numbers), rel=1e-4)
    for mode, table, pairs in (
        ("latent", latent.table(), latent.pairs()),
        ("prob", probable.table("response"), probable.pairs("rating", scale="response")),
        ("mean.class", mean.table("response"), mean.pairs(scale="response")),
    ):
        for found, theirs in ((table, judged[mode]), (pairs, judged[f"{mode} pairs"])):
            for column, numbers in theirs.items():
                assert found[column].to_numpy() == pytest.approx(np.array(numbers), rel=2e-3, abs=2e-5), mode


@pytest.mark.full
@pytest.mark.r
def test_the_program_of_an_ordinal_model_has_its_numbers_in_r(
    tables: dict[str, pd.DataFrame], judged: dict[str, dict[str, list[float]]]
) -> None:
    for case in OF_PROGRAMS:
        name, formula, options = CASES[case]
        ours, theirs = fit(formula, tables[name], "ordinal", **options), judged[f"program of {case}"]
        assert ours.thresholds is not None
        assert theirs["loglik"] == pytest.approx([ours.loglik], abs=1e-3), case
        assert theirs["cuts"] == pytest.approx(ours.thresholds["estimate"].to_list()[:2], abs=1e-2), case


def test_two_categories_are_binomial_regression() -> None:
    data = ratings(categories=2, seed=5)
    ours = fit(CROSSED, data, "ordinal", "probit")
    binary = fit(
        CROSSED.replace("rating", "high"), data.assign(high=data["rating"] - 1), "binomial", "probit",
        information="observed",
    )  # fmt: skip
    assert ours.loglik == pytest.approx(binary.loglik, abs=1e-7)
    for column in ("estimate", "se"):
        assert ours.fixed[column].to_numpy() == pytest.approx(binary.fixed[column].to_numpy(), rel=1e-4)
    assert ours.thresholds is not None
    assert ours.thresholds["estimate"].to_list() == pytest.approx(
        [-binary.fixed["estimate"].iloc[0]], rel=1e-4
    )


@pytest.mark.parametrize(
    ("formula", "options", "part"),
    [
        ("word ~ x + (1 | item)", {}, "order"),
        ("one ~ cond + (1 | item)", {}, "1 different"),
        ("rating ~ 0 + cond + (1 | item)", {}, "intercept"),
        ("cbind(rating, gap) ~ cond + (1 | item)", {}, "cbind"),
        ("rating ~ x + (1 | item)", {"link": "log"}, "link"),
        ("rating ~ x + (1 | item)", {"information": "expected"}, "observed information"),
    ],
)
def test_what_no_ordinal_model_can_be_made_of_is_refused(
    formula: str, options: dict[str, Any], part: str
) -> None:
    with pytest.raises(UserError, match=part):
        fit(formula, ratings().assign(one=1), "ordinal", **options)


def test_what_follows_from_an_ordinal_fit() -> None:
    data = ratings()
    ours = fit(CROSSED, data, "ordinal")
    probabilities = predict(ours)
    assert list(probabilities) == ["1", "2", "3", "4", "5"]
    assert probabilities.sum(axis=1).to_numpy() == pytest.approx(np.ones(len(data)))
    assert ours.fitted == pytest.approx(probabilities.to_numpy() @ np.arange(1.0, 6.0))
    assert residuals(ours) == pytest.approx(data["rating"].to_numpy() - ours.fitted)
    latent = predict(ours, data.head(3), scale="link", se=True)
    assert (latent["se"] > 0.0).all()
    drawn = simulate(ours, 200, conditional=True)
    assert (drawn == 4).mean() == pytest.approx(probabilities["5"].mean(), abs=0.01)
    assert r_squared(ours).observation == pytest.approx(np.pi**2 / 3.0)
    assert anova(ours)["term"].to_list() == ["cond", "x"]
    interval = profile_intervals(ours, ["x"]).iloc[0]
    assert interval["ci_low"] < ours.fixed["estimate"].iloc[3] < interval["ci_high"]
    names = list(bootstrap(ours, 2).names)
    assert names[2:] == ["1|2", "2|3", "3|4", "4|5", "condintact", "condinternal", "x"]
    told = ours.to_json()
    assert [row["term"] for row in told["thresholds"]] == ["1|2", "2|3", "3|4", "4|5"]
    assert "(Intercept)" not in [row["term"] for row in told["fixed"]]
    assert len(told["vcov"]) == len(told["fixed"]) == 3
    assert all(row["term"] in ours.summary() for row in told["thresholds"])


def test_the_public_interface_speaks_of_ratings() -> None:
    model = fit_table(ratings(), CROSSED, "ordinal")
    assert model.coefficients["term"].to_list() == ["condintact", "condinternal", "x"]
    assert model.thresholds is not None
    assert len(model.thresholds) == 4
    shares = model.means("cond", scale="response")
    assert len(shares) == 15
    assert shares.groupby("cond")["estimate"].sum().to_list() == pytest.approx([1.0] * 3)
    pairs = model.contrasts("cond", scale="response")
    assert pairs["rating"].to_list() == [c for c in "12345" for _ in range(3)]
    assert "holm" in pairs.attrs["title"]
    with pytest.raises(UserError, match="mean"):
        model.contrasts("", scale="response")
    assert model.means("cond", scale="mean")["estimate"].between(1.0, 5.0).all()
    assert set(np.unique(model.simulate(3))) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    with pytest.raises(UserError, match="latent scale"):
        model.means("cond", slopes="x", scale="response")
    with pytest.raises(UserError, match="gaussian"):
        fit_table(ratings(), CROSSED).means("cond", scale="mean")
    assert "rating" in model.to_apa("cond")
    assert model.to_apa().count("\n- ") == 3
    for scale in ("response", "link", "mean"):
        assert model.plot("cond", scale=scale).axes
    assert model.plot().axes
    nested = fit_table(ratings(), "rating ~ x + (1 | cond/item)", "ordinal").r_script("ratings.csv")
    assert "ordered(rating) ~ x" in nested
    # To R a colon between two columns of text is a range.
    assert 'd[["item"]] <- factor(d[["item"]])' in nested
