"""Standard errors on real lexical decisions where R fails, beside the spread of estimates from data drawn from the fit.

``make bench`` or ``python tests/benchmarks/bench_mixed_bootstrap.py [--refits 200] [--models …] [--data FILE] [--keep FOLDER]
[--processes N]``. Every model is fitted, data sets are drawn from it, and it is fitted to each. SE of the fit, of the refits (root
mean square) and spread of the estimates would be one number if the sample were large; coverage is that of the refits' own Wald
intervals. Refits are kept in FOLDER as they are made. The data are not ours to pass on; where they are not, it says so.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.mixed import Fit, bootstrap, fit

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tl_lexical_decision" / "trials.csv"
MODELS = {
    "maximal": "(1 + t * f | participant) + (1 + f | string)",
    "smaller": "(1 + t + f | participant) + (1 + f | string)",
    "intercepts": "(1 | participant) + (1 | string)",
}


def decisions(file: Path) -> pd.DataFrame:
    """Read the nonwords, conditions coded plus and minus a half."""
    data = pd.read_csv(file)
    data = data[data["item_type"] != "word"].reset_index(drop=True)
    data["t"] = np.where(data["item_type"] == "transposed", 0.5, -0.5)
    data["f"] = np.where(data["font"] == "cursive", 0.5, -0.5)
    return data


def estimates_and_errors(found: Fit) -> list[float]:
    """Fixed effects, then their standard errors."""
    return [*found.fixed["estimate"], *found.fixed["se"]]


def compare(name: str, found: Fit, refits: int, processes: int, folder: Path) -> None:
    """Print a model's rows."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = bootstrap(
        found,
        refits,
        seed="lexical decision",
        statistic=estimates_and_errors,
        processes=processes,
        keep=folder / f"{name}.jsonl",
        progress=lambda done, total: print(f"\r{name}: {done} of {total}", end="", file=sys.stderr),
    )
    p = len(found.fixed)
    estimates, errors = drawn.replicates[:, :p], drawn.replicates[:, p:]
    count = len(estimates)
    for j, (term, truth, se) in enumerate(
        found.fixed[["term", "estimate", "se"]].itertuples(index=False, name=None)
    ):
        spread = float(np.std(estimates[:, j], ddof=1))
        typical = float(np.sqrt(np.mean(errors[:, j] ** 2)))
        bias = float(np.mean(estimates[:, j])) - truth
        covered = float(np.mean(np.abs(estimates[:, j] - truth) < 1.959964 * errors[:, j]))
        print(
            f"| {name} | {term} | {truth:.4f} | {se:.4f} | {typical:.4f} | {spread:.4f} ± {spread / np.sqrt(2 * count):.4f} "
            f"| {bias:+.3f} ± {spread / np.sqrt(count):.3f} "
            f"| {100 * covered:.1f} ± {100 * np.sqrt(covered * (1 - covered) / count):.1f} |",
            flush=True,
        )
    print(f"\n{name}: log-likelihood {found.loglik:.4f}; {drawn.sentence()}\n", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--refits", type=int, default=200)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "wrods-bootstrap")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    if not asked.data.exists():
        print(f"no lexical decisions at {asked.data}: nothing is measured (--data FILE)", file=sys.stderr)
        return
    data = decisions(asked.data)
    print(
        "| model | effect | estimate | SE | SE of refits | spread of refits | bias of refits | coverage, % |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.models:
        found = fit(f"correct ~ t * f + {MODELS[name]}", data, "binomial")
        compare(name, found, asked.refits, asked.processes, asked.keep)


if __name__ == "__main__":
    main()
