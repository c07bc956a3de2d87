"""Designs drawn at random, fitted by lme4 and by us in the same run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.mixed import Fit, fit, lme4_program
from tests.analysis.mixed.test_mixed_r_criteria import ONE_CALL

pytestmark = pytest.mark.r

FIXED = ("x", "a", "x + a", "a * b", "x * b", "0 + a + x", "a / x", "poly(x, 2) + b", "I(x > 0) + a:b")
RANDOM = (
    "(1 | p)",
    "(1 | p) + (1 | i)",
    "(x | p) + (1 | i)",
    "(x || p)",
    "(0 + b | p)",
    "(1 | b:i)",
    "(1 | p/b)",
)
MODELS = (
    ("y", "gaussian", None),
    ("correct", "binomial", "logit"),
    ("correct", "binomial", "probit"),
    ("correct", "binomial", "guess(0.5)"),
    ("cbind(hits, 6 - hits)", "binomial", "cloglog"),
    ("count", "poisson", "log"),
)


@dataclass(frozen=True)
class Design:
    """What is drawn: a formula, a family, codings, and the seed and size of the data."""

    formula: str
    family: str
    link: str | None
    contrast: str
    seed: int
    participants: int
    items: int

    def data(self) -> pd.DataFrame:
        rng = np.random.default_rng(self.seed)
        p, i = np.divmod(np.arange(self.participants * self.items), self.items)
        rows = pd.DataFrame({"p": p, "i": i, "x": np.round(rng.normal(size=len(p)), 3)})
        rows["a"] = np.array(["one", "two", "three"])[(p + i) % 3]
        rows["b"] = np.where((p // 2 + i) % 2 == 0, "no", "yes")
        eta = rng.normal(0, 0.9, self.participants)[p] + rng.normal(0, 0.7, self.items)[i] + 0.4 * rows["x"]
        eta += (
            rng.normal(0, 0.5, self.participants)[p] * rows["x"]
            + rng.normal(0, 0.5, (self.items, 2))[i, (p // 2 + i) % 2]
        )
        rows["y"] = np.round(eta + rng.normal(0, 0.8, len(p)), 5)
        share = 1 / (1 + np.exp(-eta))
        rows["correct"] = (rng.random(len(p)) < 0.5 + 0.5 * share).astype(int)
        rows["hits"] = rng.binomial(6, share)
        rows["count"] = rng.poisson(np.exp(0.5 + 0.6 * eta))
        return rows


@st.composite
def designs(draw: st.DrawFn) -> Design:
    response, family, link = draw(st.sampled_from(MODELS))
    formula = f"{response} ~ {draw(st.sampled_from(FIXED))} + {draw(st.sampled_from(RANDOM))}"
    contrast = draw(st.sampled_from(("treatment", "sum", "helmert", "sdif")))
    sizes = draw(st.integers(18, 30)), draw(st.integers(12, 24))
    return Design(formula, family, link, contrast, draw(st.integers(0, 10_000)), *sizes)


def compare(design: Design, folder: Path) -> tuple[Fit, dict[str, Any]]:
    data = design.data()
    file = folder / "data.csv"
    data.to_csv(file, index=False)
    contrasts = {"a": design.contrast, "b": design.contrast}
    ours = fit(design.formula, data, design.family, design.link, contrasts=contrasts)
    script = folder / "program.R"
    script.write_text(lme4_program(ours, str(file)) + ONE_CALL, "utf-8")
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return ours, json.loads(next(line for line in done.stdout.splitlines() if line.startswith("JSON "))[5:])


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(design=designs())
def test_designs_drawn_at_random_are_fitted_as_lme4_fits_them(
    design: Design, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ours, theirs = compare(design, tmp_path_factory.mktemp("design"))
    linear = design.family == "gaussian"
    se, estimate = np.array(theirs["se"]), np.array(theirs["estimate"])
    assert ours.loglik > theirs["loglik"] - 1e-5
    if ours.loglik > theirs["loglik"] + (1e-4 if linear else 1e-3) or not ours.converged:
        # lme4 stopped short, or neither found a maximum: there is nothing to compare with.
        return
    assert [t.replace('"', "'") for t in ours.fixed["term"]] == theirs["terms"]
    assert np.abs((ours.fixed["estimate"] - estimate) / se).max() < (1e-4 if linear else 2e-3)
    if not ours.singular:
        assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-4 if linear else 5e-3)
