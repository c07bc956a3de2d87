"""One fit of one engine in a process of its own: prints seconds, log-likelihood and memory as JSON.

Started by ``bench_mixed.py``; only the engine ``wrods`` needs this project. Usage: ENGINE FILE FORMULA FAMILY FITS.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

Found = tuple[float, str]
"""Log-likelihood, and what the engine says of the fit."""


def memory() -> float:
    """Peak resident size so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def wrods(data: pd.DataFrame, formula: str, family: str) -> Callable[[], Found]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from analysis.mixed import fit

    def run() -> Found:
        found = fit(formula, data, family=family)
        note = ("" if found.converged else "not converged") + ("singular" if found.singular else "")
        return found.loglik, note

    return run


def glmm(data: pd.DataFrame, formula: str, family: str) -> Callable[[], Found]:
    import warnings

    import glmm as engine

    warnings.simplefilter("ignore")

    def run() -> Found:
        found = engine.fit(data, formula, family)
        told = found.diagnostics
        note = ("" if told["converged"] else "not converged") + ("singular" if told["singular"] else "")
        return float(found.loglik), note

    return run


def statsmodels(data: pd.DataFrame, formula: str, family: str) -> Callable[[], Found]:
    """MixedLM with variance components (correlations left out), or the variational approximation of a logistic model."""
    import warnings

    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
    from statsmodels.regression.mixed_linear_model import MixedLM

    warnings.simplefilter("ignore")
    fixed = formula.split(" + (")[0]
    parts = {}
    for term in formula.split(" + (")[1:]:
        columns, group = term.rstrip(")").split(" | ")
        for name in ("1", *(["a"] if "a" in columns else []), *(["b", "ab"] if "b" in columns else [])):
            product = f"C({group})" if name == "1" else f"C({group}):{name}"
            parts[f"{group} {name}"] = f"0 + {product}"

    def run() -> Found:
        if family == "binomial":
            BinomialBayesMixedGLM.from_formula(fixed, parts, data).fit_vb()
            return float("nan"), "variational, no likelihood"
        everyone = data.assign(everyone=1)
        found = MixedLM.from_formula(
            fixed, everyone, groups="everyone", vc_formula=parts, re_formula="0"
        ).fit()
        return float(found.llf), "" if found.converged else "not converged"

    return run


def main() -> None:
    """Fit as often as asked and print the fastest."""
    name, file, formula, family, fits = sys.argv[1:6]
    factors = ("participant", "item", "s", "d", "dept", "studage", "lectage", "service")
    data = pd.read_csv(file, dtype=dict.fromkeys(factors, str))
    run = {"wrods": wrods, "glmm": glmm, "statsmodels": statsmodels}[name](data, formula, family)
    before, seconds = memory(), []
    for _ in range(int(fits)):
        began = time.process_time()
        loglik, note = run()
        seconds.append(time.process_time() - began)
    print(json.dumps({"seconds": min(seconds), "loglik": loglik, "note": note, "mb": memory() - before}))


if __name__ == "__main__":
    main()
