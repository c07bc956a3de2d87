"""What probing one layer takes: seconds of one core and peak memory, beside a plain scikit-learn pipeline on the same folds.

Run ``python -m tests.benchmarks.bench_probing [ROWSxWIDTH ...]``. Both sides standardise on training rows, choose among six penalties
in three inner folds, and test in one of five folds; ours fits five control tasks besides, the pipeline none.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

from experiment.papers.inside.chapters.probing.probing_fit import (
    CONTROLS,
    PENALTIES,
    SECONDS_A_CELL,
    Split,
    probe_layer,
)

SIZES = ("600x4096", "4000x1024", "8000x1024")
FOLDS = 5


def states(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels of three kinds and states in which they show a little."""
    random = np.random.default_rng(rows)
    labels = random.integers(0, 3, rows)
    drawn = random.standard_normal((rows, width), dtype=np.float32)
    drawn[:, :40] += 0.15 * random.standard_normal((3, 40), dtype=np.float32)[labels]
    return drawn, labels


def ours(x: np.ndarray, y: np.ndarray, split: Split) -> tuple[float, int]:
    """Return accuracy and number of regressions."""
    random = np.random.default_rng(1)
    controls = np.array([random.permutation(y) for _ in range(CONTROLS)])
    found = probe_layer(lambda places: x[places], y, controls, [split], PENALTIES)
    return float((found.predicted[split.test] == y[split.test]).mean()), found.fits


def plain(x: np.ndarray, y: np.ndarray, split: Split) -> tuple[float, int]:
    """Return the same of a scikit-learn pipeline with its defaults but for the number of iterations."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inner = [(np.flatnonzero(split.inner != k), np.flatnonzero(split.inner == k)) for k in range(3)]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, tol=1e-6)),
        {"logisticregression__C": list(PENALTIES)},
        scoring="neg_log_loss",
        cv=inner,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(x[split.train], y[split.train])
    return float((search.predict(x[split.test]) == y[split.test]).mean()), 3 * len(PENALTIES) + 1


def measured(side: str, size: str) -> dict[str, float]:
    """Measure one side in this process."""
    rows, width = map(int, size.split("x"))
    x, y = states(rows, width)
    fold = np.arange(rows) % FOLDS
    train, test = np.flatnonzero(fold), np.flatnonzero(fold == 0)
    split = Split(train, test, np.arange(len(train)) % 3)
    (ours if side == "ours" else plain)(
        x[:60, :8], y[:60], Split(np.arange(40), np.arange(40, 60), np.arange(40) % 3)
    )
    before = time.process_time()
    accuracy, fits = (ours if side == "ours" else plain)(x, y, split)
    seconds = time.process_time() - before
    return {
        "seconds": seconds,
        "fits": fits,
        "accuracy": accuracy,
        "cell": seconds / fits / (len(train) * width),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(sizes: list[str]) -> None:
    """Print a line for each size and side, each measured in a process of its own."""
    print(
        f"{'rows x width':>14} {'side':>14} {'CPU s':>7} {'fits':>5} {'accuracy':>9} {'ns a cell':>10} {'peak MB':>8}"
    )
    for size in sizes:
        for side in ("ours", "scikit-learn"):
            done = subprocess.run(
                [sys.executable, "-m", "tests.benchmarks.bench_probing", "--one", side, size],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            one = json.loads(done.stdout)
            print(
                f"{size:>14} {side:>14} {one['seconds']:7.1f} {one['fits']:5.0f} {one['accuracy']:9.3f} "
                f"{1e9 * one['cell']:10.0f} {one['megabytes']:8.0f}",
                flush=True,
            )
    print(f"assumed by wrods before anything is computed: {1e9 * SECONDS_A_CELL:.0f} ns a cell")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(*sys.argv[2:4])))
    else:
        main(sys.argv[1:] or list(SIZES))
