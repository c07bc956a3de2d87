"""Models and options of ``wrods fit`` drawn at random, their R programs run by R, and both sets of numbers compared."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner

from experiment.cli.fit import fit
from stimuli.errors import UserError

REPORT = r"""
.out <- if (exists("deviance_at")) list(terms = rownames(fixed), estimate = fixed[, 1], se = fixed[, 2], df = NULL,
  loglik = log_likelihood,
  sd = unlist(lapply(seq_along(basis), function(t) sqrt(rowSums((basis[[t]] %*% template(par, t))^2))))) else {
  table <- coef(summary(m))
  list(terms = rownames(table), estimate = table[, "Estimate"], se = table[, "Std. Error"],
    df = if ("df" %in% colnames(table)) table[, "df"],
    loglik = if (exists("log_likelihood")) log_likelihood else as.numeric(logLik(m)),
    sd = unlist(lapply(VarCorr(m), attr, "stddev"))) }
.row <- function(x) paste(sprintf("%.12g", as.numeric(x)), collapse = ",")
cat("JSON", sprintf('{"terms": [%s], "estimate": [%s], "se": [%s], "df": [%s], "loglik": %.12g, "sd": [%s]}',
  paste(sprintf('"%s"', gsub('["`\\\\]', "", .out$terms)), collapse = ","), .row(.out$estimate), .row(.out$se), .row(.out$df),
  .out$loglik, .row(.out$sd)), "\n")
"""

NUMBERS = ("x", "z", "big", "tiny", "`odd name`", "größe", "T", "`if`", "`a|b`", "n", "gappy", "flag")
FACTORS = ("cond", "TF", "code", "flag", "`late night`", "gappy.cond", "côté")
CALLS = (
    "I(x^2)", "log(e)", "scale(gappy)", "poly(z, 2)", "poly(gappy, 2)", "ns(x, 3)", "I(flag * x)", "as.numeric(flag)",
    "ifelse(flag, x, 0)", 'I(cond == "high")', "factor(n)", "ordered(n)", 'relevel(cond, ref = "mid")', "cut(z, 3)",
    'relevel(factor(n), ref = "2")', "C(cond, contr.sum)", "I(x - mean(x))", "factor(cond)", "as.character(TF)",
    'I(gappy.cond %in% c("high", "low"))', "I(x > 0 & flag)", "sqrt(big)", "relevel(n, ref = '3')", "C(n, contr.helmert)",
)  # fmt: skip
GROUPS = ("p", "code.p", "`the person`", "factor(p)", "gappy.p", "deci")
RANDOM = (
    "(1 | {g})", "(1 | {g})", "(1 | {g}) + (1 | i)", "(x | {g})", "(x || {g})", "(1 + `odd name` || {g})", "(big | {g})",
    "(0 + cond | {g})", "(1 | {g}/TF)", "(tiny || {g}) + (1 | i)", "(1 | i:TF) + (1 | {g})", "(0 + z | {g})",
    "(1 + flag | {g}) + (1 | i)", "(1 | {g}) + (0 + x | {g})", "(1 + I(z / 10) | {g})", "(TF || i)",
)  # fmt: skip
RESPONSES: tuple[tuple[str, str, tuple[str | None, ...]], ...] = (
    ("y", "gaussian", (None,)),
    ("log(rt)", "gaussian", (None,)),
    ("rt", "gaussian", ("log",)),
    ("correct", "binomial", ("logit", "probit", "cloglog", "guess(0.5)", "guess(1/3, probit)")),
    ("answer", "binomial", ("logit",)),
    ("TFanswer", "binomial", ("logit", "probit")),
    ("truth", "binomial", ("logit",)),
    ("I(rt > 500)", "binomial", ("logit",)),
    ("cbind(hits, 6 - hits)", "binomial", ("logit", "cloglog")),
    ("hits/6", "binomial", ("logit", "probit")),
    ("count", "poisson", ("log",)),
    ("spread", "negative.binomial", ("log",)),
    ("rt", "Gamma", ("log", "identity", "inverse")),
    ("rt", "inverse.gaussian", ("log", "identity")),
)


@dataclass(frozen=True)
class Drawn:
    """One model: its data's seed and the arguments of ``wrods fit``."""

    seed: int
    arguments: tuple[str, ...]


@dataclass
class Outcome:
    """What came of one model; ``faults`` is empty where R gives our numbers."""

    drawn: Drawn
    ours: dict[str, Any]
    theirs: Any = None
    faults: list[str] = field(default_factory=list)


def make_data(seed: int) -> pd.DataFrame:
    """20 participants by 14 items with columns of every kind."""
    rng = np.random.default_rng(seed)
    p, i = np.divmod(np.arange(20 * 14), 14)
    d = pd.DataFrame({"p": p + 1, "i": i})
    count = len(d)
    d["code.p"] = [f"0x{k:02d}" for k in p]
    d["deci"] = 0.1 + p * 100000.5
    d["the person"] = np.array(["Åsa", "b\u00e9a", "Zoë O'Neil"])[p % 3] + p.astype(str).astype(object)
    d["x"], d["z"] = rng.normal(size=count).round(3), rng.uniform(1, 9, count).round(3)
    d["big"], d["tiny"] = (5e6 + 1e6 * rng.normal(size=count)).round(), 1e-5 * rng.normal(1, 0.5, count)
    d["odd name"], d["größe"] = rng.normal(size=count).round(3), rng.normal(3, 1, count).round(2)
    d["T"], d["if"], d["a|b"] = (rng.normal(size=count).round(3) for _ in range(3))
    d["e"], d["w"] = rng.uniform(1, 4, count).round(2), rng.uniform(0.5, 2, count).round(2)
    d["n"] = rng.integers(1, 4, count)
    d["cond"] = np.array(["low", "mid", "high"])[(p + i) % 3]
    d["TF"], d["flag"] = np.array(["T", "F"])[(p // 2 + i) % 2], rng.random(count) < 0.4
    d["code"] = np.array(["1e5", "007x", "0x1A"])[rng.integers(0, 3, count)]
    d["late night"], d["côté"] = (
        d["TF"].map({"T": "a b", "F": 'c"d'}),
        d["cond"].map({"low": "é", "mid": "f", "high": "z"}),
    )
    d["gappy"], d["gappy.cond"] = (
        d["z"].mask(rng.random(count) < 0.03),
        d["cond"].mask(rng.random(count) < 0.03),
    )
    d["gappy.p"] = d["code.p"].mask(rng.random(count) < 0.02)
    slope = rng.normal(0, 0.4, 20)[p] * d["x"]
    eta = (
        rng.normal(0, 0.8, 20)[p]
        + rng.normal(0, 0.5, 14)[i]
        + 0.4 * d["x"]
        + slope
        + 0.3 * (d["cond"] == "high")
    )
    d["y"] = (eta + rng.normal(0, 0.8, count)).round(5)
    share = 1 / (1 + np.exp(-eta))
    d["correct"] = (rng.random(count) < 0.5 + 0.5 * share).astype(int)
    d["answer"], d["TFanswer"] = (
        np.where(d["correct"] == 1, "no", "yes"),
        np.where(d["correct"] == 1, "T", "F"),
    )
    d["truth"], d["hits"] = d["correct"] == 1, rng.binomial(6, share)
    d["count"] = rng.poisson(np.exp(0.5 + 0.5 * eta))
    d["spread"] = rng.negative_binomial(2, 2 / (2 + np.exp(1 + 0.4 * eta)))
    d["rt"] = (600 * np.exp(0.1 * eta) * rng.gamma(12, 1 / 12, count)).round(1)
    d["y6"], d["y.big"] = 1e-6 * d["y"], d["y"] + rng.normal(0, 0.6, 20)[p] * (d["big"] / 1e6 - 5)
    return d


def draw(seed: int) -> Drawn:
    """Draw a model and options that ``wrods fit`` takes alone, though not always together."""
    rng = np.random.default_rng([77, seed])

    def one(of: Any) -> Any:
        return of[rng.integers(len(of))]

    response, family, links = one(RESPONSES)
    link = one(links)
    words = [str(one(one((NUMBERS, FACTORS, CALLS)))) for _ in range(rng.integers(1, 4))]
    fixed = words[0] if rng.random() > 0.05 else "1"
    for word in words[1:]:
        fixed += (" * " if fixed != "1" and rng.random() < 0.25 else " + ") + word
    fixed = ("0 + " if rng.random() < 0.08 else "") + fixed
    fixed += " + offset(log(e))" if rng.random() < 0.1 and link in {None, "logit", "log"} else ""
    nagq = int(one((3, 5, 9))) if family != "gaussian" and rng.random() < 0.3 else 1
    group = one(GROUPS)
    random = str(
        one(RANDOM if nagq == 1 else ("(1 | {g})", "(x | {g})", "(0 + z | {g})", "(flag || {g})"))
    ).format(g=group)
    given = ["--formula", f"{response} ~ {fixed} + {random}", "--family", family]
    given += ["--link", link] if link else []
    given += ["--nagq", str(nagq)] if nagq > 1 else []
    if response == "hits/6":
        given += ["--weights", "n * 6 / n"]
    elif "cbind" not in response and family != "binomial" and rng.random() < 0.15:
        given += ["--weights", "w"]
    given += ["--offset", "z/10"] if rng.random() < 0.08 and link in {None, "logit", "log"} else []
    if family == "gaussian" and link is None and rng.random() < 0.3:
        given += ["--ml"]
    if family in {"binomial", "poisson", "negative.binomial"}:
        given += ["--penalty", "normal"] if rng.random() < 0.2 else []
        given += ["--information", "observed"] if rng.random() < 0.15 else []
    for name in ("cond", "TF", "n", "flag"):
        if name in given[1] and rng.random() < 0.3:
            given += ["--contrasts", f"{name}={one(('sum', 'helmert', 'sdif', 'poly'))}"]
    if "cond" in given[1] and rng.random() < 0.3:
        given += ["--levels", "cond=mid,low,high"]
    if " n" in given[1] and rng.random() < 0.3:
        given += ["--levels", "n=3,1,2"]
    if response == "answer" and rng.random() < 0.5:
        given += ["--levels", "answer=yes,no"]
    return Drawn(seed, tuple(given))


def _said(file: Path, drawn: Drawn, option: str) -> str | None:
    done = CliRunner().invoke(fit, [str(file), *drawn.arguments, option])
    if isinstance(done.exception, UserError):
        return None
    if done.exception is not None:
        raise RuntimeError(f"{drawn}: {done.exception!r}") from done.exception
    return done.stdout


def drawn_models(count: int, first: int) -> Iterator[Drawn]:
    """Draw models, those that are refused among them."""
    yield from (draw(first * 10_000 + k) for k in range(count))


def answers_of_r(programs: list[str], folder: Path, minutes: int = 20) -> list[Any]:
    """Run programs one after the other in one R session; return what each says of its model ``m``, or its error."""
    parts = []
    for number, program in enumerate(programs):
        script = folder / f"program{number}.R"
        script.write_text(program, "utf-8")
        parts.append(
            f"rm(list = ls(all.names = TRUE)); tryCatch(withCallingHandlers({{ sys.source('{script}', globalenv())\n{REPORT}"
        )
        parts.append('}, warning = function(w) invokeRestart("muffleWarning")), error = function(e)')
        parts.append('cat("JSON", encodeString(conditionMessage(e), quote = "\\""), "\\n"))')
    script = folder / "all.R"
    script.write_text("\n".join(parts), "utf-8")
    done = subprocess.run(
        ["Rscript", str(script)], capture_output=True, text=True, timeout=60 * minutes, check=False
    )
    said = [line[5:] for line in done.stdout.splitlines() if line.startswith("JSON ")]
    if len(said) != len(programs):
        raise RuntimeError(f"{len(said)} answers of {len(programs)}: {done.stderr[-2000:]}")
    found = []
    for answer in said:
        try:
            found.append(json.loads(answer.replace("NaN", "null").replace("Inf", "1e300")))
        except json.JSONDecodeError:
            found.append(answer)
    return found


def run(models: list[Drawn], folder: Path, minutes: int = 20) -> list[Outcome]:
    """Fit each model here and in R, those left out that ``wrods fit`` refuses."""
    outcomes, programs = [], []
    for drawn in models:
        file = folder / f"data{drawn.seed}.csv"
        make_data(drawn.seed).to_csv(file, index=False)
        told = _said(file, drawn, "--json")
        if told is not None:
            outcomes.append(Outcome(drawn, json.loads(told)))
            programs.append(str(_said(file, drawn, "--r-script")))
    for outcome, answer in zip(outcomes, answers_of_r(programs, folder, minutes), strict=True):
        outcome.theirs = answer
        outcome.faults = faults(outcome.ours, outcome.theirs)
    return outcomes


def faults(ours: dict[str, Any], theirs: Any) -> list[str]:
    """Say where R's numbers are not ours."""
    if not isinstance(theirs, dict):
        return [f"R stopped: {theirs}"]
    rows = ours["fixed"]
    found = []
    terms = ["".join(c for c in row["term"] if c not in '"`\\') for row in rows]
    if terms != theirs["terms"]:
        found.append(f"terms {terms} / {theirs['terms']}")
    linear = ours["family"] == "gaussian" and ours["link"] == "identity"
    if len(rows) != len(theirs["estimate"]):
        return [*found, "another number of coefficients"]
    if abs(ours["loglik"] - theirs["loglik"]) > 1e-3:
        found.append(f"loglik {ours['loglik']:.6f} / {theirs['loglik']:.6f}")
    for row, estimate, se in zip(rows, theirs["estimate"], theirs["se"], strict=True):
        if row["se"] is None or not row["se"] < 50 * max(abs(row["estimate"]), 1e-12) + 1e6:
            continue
        if abs(row["estimate"] - estimate) > 3e-3 * row["se"]:
            found.append(f"{row['term']}: {row['estimate']:.6g} / {estimate:.6g} (SE {row['se']:.3g})")
        if se is None or abs(row["se"] / se - 1) > (1e-3 if linear else 5e-3):
            found.append(f"SE of {row['term']}: {row['se']:.6g} / {se}")
    if linear and not ours["singular"]:
        for row, df in zip(rows, theirs["df"], strict=True):
            if abs(row["df"] / df - 1) > 5e-3:
                found.append(f"df of {row['term']}: {row['df']:.5g} / {df:.5g}")
    return found
