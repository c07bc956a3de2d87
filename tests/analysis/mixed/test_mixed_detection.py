"""Signal detection as a formula option: the classical numbers, R's probit model, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.fitted_model import fit
from stimuli.errors import UserError
from tests.analysis.r_programs import told_by_r

R_PROGRAM = """
suppressMessages(library(lme4))
d <- read.csv("rows.csv", stringsAsFactors = TRUE)
d$s <- d$is_old - 0.5
m <- glmer(yes ~ cond * s + (s | participant), d, binomial("probit"), nAGQ = 1,
  control = glmerControl("bobyqa", optCtrl = list(rhoend = 1e-8, maxfun = 1e5), tolPwrss = 1e-12))
b <- coef(summary(m))
cat("JSON", sprintf('{"b": [%s], "se": [%s]}', paste(b[, 1], collapse = ","), paste(b[, 2], collapse = ",")), "\\n")
invisible(capture.output(source("ours.R")))
cat("JSON", sprintf("[%s]", paste(c(fixef(m), logLik(m)), collapse = ",")), "\\n")
"""


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    n, people = 1440, 24
    made = pd.DataFrame({"participant": np.arange(n) % people, "is_old": rng.integers(0, 2, n)})
    made["cond"] = rng.choice(["intact", "scrambled"], n)
    hard = (made["cond"] == "scrambled").to_numpy(dtype=float)
    own = rng.normal(0, [0.4, 0.5], (people, 2))[made["participant"]]
    sensitivity, criterion = 1.6 - 0.7 * hard + own[:, 1], 0.3 - 0.4 * hard + own[:, 0]
    made["yes"] = (rng.normal(size=n) < sensitivity * (made["is_old"] - 0.5) - criterion).astype(int)
    return made.assign(kind=np.where(made["is_old"] == 1, "old", "new"))


def test_without_conditions_the_estimates_are_the_classical_ones(rows: pd.DataFrame) -> None:
    found = fit(rows, "yes ~ 1", signal="is_old").signal_detection().set_index("measure")
    many = rows.groupby("is_old")["yes"].agg(["mean", "size"])
    rates, sizes = many["mean"].to_numpy(), many["size"].to_numpy()
    z = stats.norm.ppf(rates)
    # Gourevitch and Galanter (1967).
    variance = rates * (1 - rates) / sizes / stats.norm.pdf(z) ** 2
    assert found["estimate"]["d'"] == pytest.approx(z[1] - z[0], abs=1e-6)
    assert found["estimate"]["c"] == pytest.approx(-z.sum() / 2, abs=1e-6)
    assert found["se"].to_numpy() == pytest.approx(np.sqrt(variance.sum()) * np.array([1, 0.5]), rel=1e-5)


@pytest.mark.r
def test_conditions_change_both_measures_as_in_rs_probit_model(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = fit(rows, "yes ~ cond + (1 | participant)", signal="kind=old")
    found = model.signal_detection()
    assert list(found["measure"]) == ["d'", "d'", "c", "c"]
    assert list(found["term"]) == ["(Intercept)", "condscrambled"] * 2
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "ours.R").write_text(model.r_script("rows.csv"), "utf-8")
    theirs, again = told_by_r(R_PROGRAM, tmp_path)
    assert again[:-1] == pytest.approx(model.coefficients["estimate"].to_list(), abs=2e-3 * min(theirs["se"]))
    assert again[-1] == pytest.approx(model.to_json()["loglik"], abs=1e-3)
    b, se = (np.array(theirs[key])[[2, 3, 0, 1]] for key in ("b", "se"))
    assert np.abs(found["estimate"] - np.array([1, 1, -1, -1]) * b).max() < 2e-3 * se.min()
    assert found["se"].to_numpy() == pytest.approx(se, rel=1e-2)
    test = model.against("yes ~ 1 + (1 | participant)")
    assert test["df"].iloc[0] == 2 and test["p"].iloc[0] < 1e-4


@pytest.mark.parametrize(
    ("formula", "options", "said"),
    [
        ("yes ~ 1", {"signal": "kind"}, "signal trials"),
        ("yes ~ 1", {"signal": "kind=odd"}, "level of kind"),
        ("yes ~ 1", {"signal": "is_odd"}, "is_odd"),
        ("yes ~ 0 + cond", {"signal": "is_old"}, "intercept"),
        ("yes ~ cond", {"signal": "is_old", "link": "logit"}, "probit .*gaussian and logit"),
    ],
)
def test_what_is_no_signal_detection_model_is_refused(
    rows: pd.DataFrame, formula: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        fit(rows, formula, **options)
