"""Inference compared with R itself where there is no reference fit: unbalanced data, new rows, offsets, logs, signal detection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.fitted_model import FittedModel
from analysis.fitted_model import fit as fit_table
from analysis.mixed import (
    Fit,
    equivalence_tests,
    fit,
    margins,
    predict,
    random_modes,
    residuals,
    trends,
)
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate
from tests.analysis.r_programs import lines_of_r
from tests.conftest import skip_or_fail

pytestmark = pytest.mark.r

PROGRAM = r"""
suppressMessages(library(lme4))
d <- read.csv("data.csv", check.names = FALSE); n <- read.csv("new.csv", check.names = FALSE)
for (k in c("agent", "cond", "participant", "item")) d[[k]] <- factor(d[[k]])
for (k in c("agent", "cond")) n[[k]] <- factor(n[[k]], levels = levels(d[[k]]))
t1 <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, maxfun = 1e6))
t2 <- glmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12)
out <- function(x, name) write.csv(as.data.frame(x), paste0(name, ".csv"))
lin <- lmer(rt ~ cond * agent + log.freq + (1 + log.freq | participant) + (1 | item), d, control = t1)
acc <- glmer(correct ~ cond * agent + log.freq + (1 | participant) + (1 | item), d, binomial, control = t2)
cnt <- glmer(errors ~ cond + (1 | participant), d, poisson, control = t2)
hit <- glmer(cbind(hits, trials - hits) ~ cond + (1 | participant), d, binomial("probit"), control = t2)
for (m in c("lin", "acc", "cnt", "hit")) {
  f <- get(m)
  out(sapply(c("response", "pearson", "deviance"), function(k) residuals(f, k)), paste0(m, "_residuals"))
  out(ranef(f, condVar = TRUE), paste0(m, "_modes"))
  out(cbind(predict(f, n, re.form = NA), predict(f, n, allow.new.levels = TRUE), predict(f, n, re.form = NA, type = "response"),
            predict(f, n, allow.new.levels = TRUE, type = "response")), paste0(m, "_new"))
}
if (requireNamespace("emmeans", quietly = TRUE)) {
  library(emmeans)
  e <- emmeans(acc, ~ cond | agent)
  table <- function(x, ...) as.data.frame(summary(x, infer = TRUE, ...))
  out(table(contrast(e, "trt.vs.ctrl", ref = "intact"), adjust = "mvt"), "dunnett")
  out(table(pairs(regrid(e)), adjust = "tukey"), "response_pairs")
  r <- contrast(regrid(emmeans(acc, ~ cond * agent)), interaction = c("consec", "revpairwise"))
  out(table(r, adjust = "none"), "response_interaction")
  out(table(contrast(e, "eff"), adjust = "sidak"), "effects")
  s <- glmer(correct ~ cond * log.freq + (1 | participant), d, binomial, control = t2)
  out(table(emtrends(s, ~ cond, var = "log.freq")), "trends")
  q <- lmer(rt ~ cond * poly(log.freq, 2) + (1 | participant), d, control = t1)
  out(table(pairs(emtrends(q, ~ cond, var = "log.freq")), adjust = "none"), "trend_pairs")
  out(as.data.frame(test(pairs(e), delta = 0.8, side = "equivalence", adjust = "none")), "equivalence")
  emm_options(lmer.df = "asymptotic")
  say <- function(e, name) {
    s <- as.data.frame(summary(e, infer = c(TRUE, TRUE), adjust = "none"))
    value <- intersect(c("emmean", "rate", "response", "estimate", "ratio"), names(s))[1]
    out(data.frame(estimate = s[[value]], se = s[["SE"]]), name)
  }
  counts <- glmer(errors ~ cond + log.freq + offset(log(trials)) + (1 | participant), d, poisson, control = t2)
  times <- lmer(log(ms) ~ cond * log.freq + (1 | participant) + (1 | item), d, control = t1)
  shifted <- lmer(rt ~ cond + offset(log.freq * 0.2) + (1 | participant), d, control = t1)
  say(emmeans(counts, ~ cond), "counts")
  say(emmeans(counts, ~ cond, type = "response"), "counts_response")
  say(emmeans(counts, ~ cond, offset = log(2), type = "response"), "counts_of_two_trials")
  say(pairs(regrid(emmeans(counts, ~ cond))), "counts_pairs")
  say(emmeans(shifted, ~ cond), "shifted")
  say(emmeans(times, ~ cond), "times")
  say(emmeans(times, ~ cond, type = "response"), "times_response")
  say(pairs(emmeans(times, ~ cond), type = "response"), "times_ratios")
  say(pairs(regrid(emmeans(times, ~ cond))), "times_pairs")
}
r <- read.csv("signals.csv", stringsAsFactors = TRUE)
r$s <- r$is_old - 0.5
m <- glmer(yes ~ cond * s + (s | participant), r, binomial("probit"), control = t2)
out(coef(summary(m))[, 1:2], "detection")
invisible(capture.output(source("ours.R")))
out(data.frame(value = c(fixef(m), logLik(m))), "detection_by_ours")
"""

COUNTS = "errors ~ cond + log.freq + offset(log(trials)) + (1 | participant)"
TIMES = "log(ms) ~ cond * log.freq + (1 | participant) + (1 | item)"
SHIFTED = "rt ~ cond + offset(log.freq * 0.2) + (1 | participant)"
LINEAR = "rt ~ cond * agent + log.freq + (1 + log.freq | participant) + (1 | item)"
MODELS = {
    "lin": (LINEAR, "gaussian", None),
    "acc": ("correct ~ cond * agent + log.freq + (1 | participant) + (1 | item)", "binomial", None),
    "cnt": ("errors ~ cond + (1 | participant)", "poisson", None),
    "hit": ("cbind(hits, trials - hits) ~ cond + (1 | participant)", "binomial", "probit"),
}


class Beside:
    """Data, our fits and the tables that R wrote."""

    def __init__(self, folder: Path, data: pd.DataFrame, new: pd.DataFrame) -> None:
        self.folder, self.data, self.new = folder, data, new
        self.fits: dict[str, Fit] = {
            name: fit(formula, data, family, link) for name, (formula, family, link) in MODELS.items()
        }

    def table(self, name: str) -> pd.DataFrame:
        file = self.folder / f"{name}.csv"
        if not file.exists():
            skip_or_fail("r", f"R does not have the package that makes {name}, or could not compute it")
        return pd.read_csv(file, index_col=0)


@pytest.fixture(scope="module")
def signals() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    n, people = 960, 20
    made = pd.DataFrame({"participant": np.arange(n) % people, "is_old": rng.integers(0, 2, n)})
    made["cond"] = rng.choice(["intact", "scrambled"], n)
    hard = (made["cond"] == "scrambled").to_numpy(dtype=float)
    own = rng.normal(0, [0.4, 0.5], (people, 2))[made["participant"]]
    sensitivity, criterion = 1.6 - 0.7 * hard + own[:, 1], 0.3 - 0.4 * hard + own[:, 0]
    made["yes"] = (rng.normal(size=n) < sensitivity * (made["is_old"] - 0.5) - criterion).astype(int)
    return made.assign(kind=np.where(made["is_old"] == 1, "old", "new"))


@pytest.fixture(scope="module")
def detection(signals: pd.DataFrame) -> FittedModel:
    return fit_table(signals, "yes ~ cond + (1 | participant)", signal="kind=old")


@pytest.fixture(scope="module")
def beside(
    crossed: Simulate,
    signals: pd.DataFrame,
    detection: FittedModel,
    tmp_path_factory: pytest.TempPathFactory,
) -> Beside:
    folder = tmp_path_factory.mktemp("r-inference")
    rng = np.random.default_rng(3)
    data = crossed(seed=9, participants=18, items=14, spread=0.9)
    data["log.freq"] = np.round(data["log.freq"] - 3.0 + rng.normal(0, 0.3, len(data)), 3)
    slopes = dict(zip(data["participant"].unique(), rng.normal(0, 0.25, 18), strict=True))
    data["rt"] = np.round(data["rt"] + data["participant"].map(slopes) * data["log.freq"], 5)
    data["ms"] = np.round(np.exp(data["rt"]), 3)
    data = data[rng.random(len(data)) < 0.8].reset_index(drop=True)
    new = data.sample(12, random_state=1).reset_index(drop=True)
    new.loc[:3, "participant"] = "somebody new"
    data.to_csv(folder / "data.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    signals.to_csv(folder / "signals.csv", index=False)
    (folder / "ours.R").write_text(detection.r_script("signals.csv"), "utf-8")
    lines_of_r(PROGRAM, folder)
    return Beside(folder, data, new)


@pytest.mark.parametrize("model", list(MODELS))
def test_residuals_are_lme4s(beside: Beside, model: str) -> None:
    theirs = beside.table(f"{model}_residuals")
    for kind in ("response", "pearson", "deviance"):
        ours = residuals(beside.fits[model], kind)
        assert ours == pytest.approx(theirs[kind].to_numpy(), abs=1e-5 if model == "lin" else 1e-3)


@pytest.mark.parametrize("model", list(MODELS))
def test_modes_and_their_conditional_deviations_are_lme4s(beside: Beside, model: str) -> None:
    theirs = beside.table(f"{model}_modes").astype({"grp": str})
    ours = random_modes(beside.fits[model]).astype({"level": str})
    both = ours.merge(
        theirs, left_on=["group", "term", "level"], right_on=["grpvar", "term", "grp"], validate="1:1"
    )
    assert len(both) == len(ours) == len(theirs)
    assert both["sd"].to_numpy() == pytest.approx(both["condsd"].to_numpy(), rel=2e-3)
    assert (both["mode"] - both["condval"]).abs().max() < 2e-3 * both["sd"].max()


@pytest.mark.parametrize("model", list(MODELS))
def test_predictions_for_new_rows_and_levels_are_lme4s(beside: Beside, model: str) -> None:
    theirs, found = beside.table(f"{model}_new").to_numpy(), beside.fits[model]
    ours = [
        predict(found, beside.new, random=random, scale=scale, new_levels="population")["estimate"]
        for scale in ("link", "response")
        for random in (False, True)
    ]
    assert np.column_stack(ours) == pytest.approx(theirs, abs=2e-4)


def agree(ours: pd.DataFrame, theirs: pd.DataFrame, p: float = 1e-4) -> None:
    """Compare tables row by row; emmeans calls its columns by what they hold."""
    estimate = next(c for c in theirs.columns if c == "estimate" or c.endswith(".trend"))
    low, high = (
        (next(c for c in theirs.columns if c.endswith(end)) for end in (".LCL", ".UCL"))
        if any(c.endswith(".LCL") for c in theirs.columns)
        else ("lower.CL", "upper.CL")
    )
    se = theirs["SE"].to_numpy()
    assert ours["se"].to_numpy() == pytest.approx(se, rel=2e-3)
    assert np.abs(ours["estimate"].to_numpy() - theirs[estimate].to_numpy()).max() < 1e-3 * se.max()
    assert ours["p"].to_numpy() == pytest.approx(theirs["p.value"].to_numpy(), abs=p)
    # emmeans solves for mvt's critical values by simulation.
    slack = 2e-2 if p > 1e-3 else 3e-3
    assert (np.abs(ours["ci_low"].to_numpy() - theirs[low].to_numpy()) / se).max() < slack
    assert (np.abs(ours["ci_high"].to_numpy() - theirs[high].to_numpy()) / se).max() < slack


def test_dunnetts_comparisons_are_emmeans_exact_ones(beside: Beside) -> None:
    cells = margins(beside.fits["acc"], ["cond", "agent"])
    ours = cells.against("intact", "agent", adjust="dunnett")
    assert ours.attrs["adjustment"] == "dunnett"
    theirs = beside.table("dunnett")
    # R orders the levels alphabetically, so do we.
    assert [c.replace("(", "").replace(")", "") for c in theirs["contrast"]] == list(ours["contrast"])
    agree(ours, theirs, p=2e-3)


def test_contrasts_of_means_on_the_response_scale_are_emmeans(beside: Beside) -> None:
    cells = margins(beside.fits["acc"], ["cond", "agent"])
    agree(cells.pairs("agent", scale="response", adjust="tukey"), beside.table("response_pairs"))
    ours = cells.interaction({"cond": "consecutive", "agent": "revpairwise"}, scale="response", adjust="none")
    agree(ours, beside.table("response_interaction"))


def test_effects_around_the_mean_are_emmeans(beside: Beside) -> None:
    cells = margins(beside.fits["acc"], ["cond", "agent"])
    weights = np.eye(3) - 1 / 3
    named = dict(zip(("initial", "intact", "internal"), weights.tolist(), strict=True))
    agree(cells.contrast(named, "agent", adjust="sidak"), beside.table("effects"))


def test_trends_and_their_comparisons_are_emmeans(beside: Beside) -> None:
    logistic = fit("correct ~ cond * log.freq + (1 | participant)", beside.data, "binomial")
    agree(trends(logistic, "log.freq", "cond").table(), beside.table("trends"))
    curved = fit("rt ~ cond * poly(log.freq, 2) + (1 | participant)", beside.data)
    ours, theirs = trends(curved, "log.freq", "cond").pairs(adjust="none"), beside.table("trend_pairs")
    # emmeans takes a one-sided difference, ours is central, which is exact for a quadratic.
    assert ours["estimate"].to_numpy() == pytest.approx(theirs["estimate"].to_numpy(), rel=5e-3)


def test_equivalence_tests_are_emmeans(beside: Beside) -> None:
    pairs = margins(beside.fits["acc"], ["cond", "agent"]).pairs("agent", adjust="none")
    ours, theirs = equivalence_tests(pairs, 0.8), beside.table("equivalence")
    assert ours["p"].to_numpy() == pytest.approx(theirs["p.value"].to_numpy(), abs=1e-3)
    assert (ours["equivalent"] == ((ours["ci_low"] > -0.8) & (ours["ci_high"] < 0.8))).all()


def test_means_hold_offsets_and_lead_back_from_logs_as_emmeans_does(beside: Beside) -> None:
    counts = fit(COUNTS, beside.data, "poisson")
    times, shifted = (margins(fit(formula, beside.data), "cond") for formula in (TIMES, SHIFTED))
    of = margins(counts, "cond")
    for name, ours in (
        ("counts", of.table()),
        ("counts_response", of.table("response")),
        ("counts_of_two_trials", margins(counts, "cond", at={"trials": 2}).table("response")),
        ("counts_pairs", of.pairs(scale="response", adjust="none")),
        ("shifted", shifted.table()),
        ("times", times.table()),
        ("times_response", times.table("response")),
        ("times_ratios", times.pairs(scale="ratio", adjust="none")),
        ("times_pairs", times.pairs(scale="response", adjust="none")),
    ):
        theirs = beside.table(name)
        assert ours["estimate"].to_numpy() == pytest.approx(theirs["estimate"].to_numpy(), rel=3e-4), name
        assert ours["se"].to_numpy() == pytest.approx(theirs["se"].to_numpy(), rel=2e-3), name


def test_slopes_of_counts_count_the_offset(beside: Beside) -> None:
    counts = fit(COUNTS, beside.data, "poisson")
    slope, mean = (
        found.table("response")["estimate"].iloc[0]
        for found in (trends(counts, "log.freq", "cond"), margins(counts, "cond"))
    )
    b = counts.fixed.set_index("term").loc["log.freq", "estimate"]
    assert slope == pytest.approx(b * mean, rel=1e-6)


def test_conditions_change_sensitivity_and_criterion_as_in_rs_probit_model(
    beside: Beside, detection: FittedModel
) -> None:
    found = detection.signal_detection()
    assert list(found["measure"]) == ["d'", "d'", "c", "c"]
    assert list(found["term"]) == ["(Intercept)", "condscrambled"] * 2
    b, se = beside.table("detection").to_numpy()[[2, 3, 0, 1]].T
    assert np.abs(found["estimate"] - np.array([1, 1, -1, -1]) * b).max() < 2e-3 * se.min()
    assert found["se"].to_numpy() == pytest.approx(se, rel=1e-2)
    *again, loglik = beside.table("detection_by_ours")["value"]
    assert again == pytest.approx(detection.coefficients["estimate"].to_list(), abs=2e-3 * se.min())
    assert loglik == pytest.approx(detection.to_json()["loglik"], abs=1e-3)
    test = detection.against("yes ~ 1 + (1 | participant)")
    assert test["df"].iloc[0] == 2 and test["p"].iloc[0] < 1e-3


def test_without_conditions_sensitivity_and_criterion_are_the_classical_ones(signals: pd.DataFrame) -> None:
    found = fit_table(signals, "yes ~ 1", signal="is_old").signal_detection().set_index("measure")
    many = signals.groupby("is_old")["yes"].agg(["mean", "size"])
    rates, sizes = many["mean"].to_numpy(), many["size"].to_numpy()
    z = stats.norm.ppf(rates)
    # Gourevitch and Galanter (1967).
    variance = rates * (1 - rates) / sizes / stats.norm.pdf(z) ** 2
    assert found["estimate"]["d'"] == pytest.approx(z[1] - z[0], abs=1e-6)
    assert found["estimate"]["c"] == pytest.approx(-z.sum() / 2, abs=1e-6)
    assert found["se"].to_numpy() == pytest.approx(np.sqrt(variance.sum()) * np.array([1, 0.5]), rel=1e-5)


@pytest.mark.parametrize(
    ("formula", "options", "said"),
    [
        ("yes ~ 1", {"signal": "kind"}, "signal trials"),
        ("yes ~ 1", {"signal": "kind=odd"}, "level of kind"),
        ("yes ~ 0 + cond", {"signal": "is_old"}, "intercept"),
        ("yes ~ cond", {"signal": "is_old", "link": "logit"}, "probit .*gaussian and logit"),
    ],
)
def test_what_is_no_signal_detection_model_is_refused(
    signals: pd.DataFrame, formula: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        fit_table(signals, formula, **options)
