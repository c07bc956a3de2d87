"""Recovery: simulate a known mixed model, fit it, and see whether estimates are unbiased and 95 % intervals hold the truth.

``make bench`` or ``python tests/benchmarks/bench_recovery.py [--sets 1000] [--designs …] [--size 64 80] [--lme4 N] [--out FOLDER]
[--workers N]``. 64 participants in two groups read 80 items in two by two conditions. Gaussian intervals are t with
Satterthwaite's degrees of freedom, logistic ones z; beside those, t with as many degrees of freedom as the least of an
effect's grouping factors leaves (``between``); for Gaussian designs also those that the exact standard error would give, which
is what chance did to the sets drawn. ``--lme4 N`` fits the first N sets by lme4 as well, ``--profile N`` finds profile intervals.
Fits are kept in FOLDER as they are made, one line each, and a run that was interrupted goes on. A data set's seed hangs on its
design, size and number alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.mixed import fit, linear_contrasts, profile_intervals
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]
SIZE = (64, 80)
"""Participants and items."""
FIXED = {"(Intercept)": 1.0, "a": -0.6, "b": 0.3, "group": -0.4, "a:b": 0.2}
"""The truth on the logit scale; log times are 6.5 plus a fifth of it."""
PEOPLE = np.array([0.8, 0.5, 0.4, 0.5])
THINGS = np.array([0.6, 0.4])
"""Standard deviations of intercept, a, b, a:b over participants, and of intercept and a over items."""
PROFILED = ("a", "group")
CORRELATION = 0.3
RESIDUAL = 0.3
FIFTH = 0.2
PARTS = {
    "crossed": (1, 1, "(1 | participant) + (1 | item)"),
    "slopes": (2, 1, "(1 + a | participant) + (1 | item)"),
    "maximal": (4, 2, "(1 + a * b | participant) + (1 + a | item)"),
}
"""Columns that vary over participants and over items, and the model's random part."""


@dataclass(frozen=True)
class Design:
    """One row of the plan."""

    structure: str
    family: str

    @property
    def name(self) -> str:
        """As the tables and files call it."""
        return f"{self.structure}-{'logistic' if self.family == 'binomial' else 'gaussian'}"

    @property
    def formula(self) -> str:
        """The model, which is the one that made the data."""
        return f"y ~ a * b + group + {PARTS[self.structure][2]}"

    @property
    def truth(self) -> dict[str, float]:
        """Fixed effects, then standard deviations, by name."""
        k, m, _ = PARTS[self.structure]
        scale = 1.0 if self.family == "binomial" else FIFTH
        fixed = {term: scale * value for term, value in FIXED.items()}
        if self.family == "gaussian":
            fixed["(Intercept)"] += 6.5
        names = ("(Intercept)", "a", "b", "a:b")
        spread = {f"SD {t}, participant": scale * s for t, s in zip(names[:k], PEOPLE[:k], strict=True)}
        spread |= {f"SD {t}, item": scale * s for t, s in zip(names[:m], THINGS[:m], strict=True)}
        return fixed | spread


DESIGNS = {d.name: d for d in (Design(s, f) for s in PARTS for f in ("binomial", "gaussian"))}


def effects(draw: np.random.Generator, levels: int, sd: Array) -> Array:
    """Draw correlated normal effects, shape (levels, k)."""
    k = len(sd)
    covariance = np.outer(sd, sd) * (CORRELATION + (1.0 - CORRELATION) * np.eye(k))
    return np.asarray(draw.normal(size=(levels, k)) @ np.linalg.cholesky(covariance).T)


def simulate(design: Design, number: int, size: tuple[int, int]) -> pd.DataFrame:
    """Make one data set."""
    k, m, _ = PARTS[design.structure]
    participants, items = size
    draw = np.random.default_rng(stable_seed("recovery", design.name, *size, number))
    participant, item = np.divmod(np.arange(participants * items), items)
    a = (participant + item) % 2 - 0.5
    b = (participant // 2 + item // 2) % 2 - 0.5
    group = participant % 4 // 2 - 0.5
    x = np.column_stack([np.ones(len(a)), a, b, a * b])
    eta = x @ [FIXED["(Intercept)"], FIXED["a"], FIXED["b"], FIXED["a:b"]] + FIXED["group"] * group
    eta += np.einsum("nk,nk->n", x[:, :k], effects(draw, participants, PEOPLE[:k])[participant])
    eta += np.einsum("nk,nk->n", x[:, :m], effects(draw, items, THINGS[:m])[item])
    if design.family == "binomial":
        y = (draw.random(len(a)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    else:
        y = 6.5 + FIFTH * eta + draw.normal(0.0, RESIDUAL, len(a))
    return pd.DataFrame({"participant": participant, "item": item, "a": a, "b": b, "group": group, "y": y})


def recover(name: str, number: int, size: tuple[int, int]) -> dict[str, Any]:
    """Fit one data set: estimate, SE and df by fixed effect, standard deviations, what the fit says of itself."""
    design = DESIGNS[name]
    found = fit(design.formula, simulate(design, number, size), family=design.family)
    table = linear_contrasts(found, np.eye(len(found.fixed)), list(found.fixed["term"]))
    table["df"] = table["df"].fillna(np.inf)
    sd = {
        f"SD {term}, {part.group}": float(value)
        for part in found.variance
        for term, value in zip(part.terms, part.sd, strict=True)
    }
    rows = table.set_index("contrast")[["estimate", "se", "df"]]
    return {
        "number": number,
        "fixed": {str(term): [float(v) for v in row] for term, row in rows.iterrows()},
        "sd": sd,
        "converged": found.converged,
        "singular": found.singular,
        "loglik": found.loglik,
    }


def profile(name: str, number: int, size: tuple[int, int]) -> dict[str, Any]:
    """Find profile intervals of one effect within and one between participants."""
    design = DESIGNS[name]
    found = fit(design.formula, simulate(design, number, size), family=design.family)
    table = profile_intervals(found, which=list(PROFILED)).set_index("parameter")
    ends = {term: [float(table.at[term, end]) for end in ("ci_low", "ci_high")] for term in PROFILED}
    return {"number": number, "intervals": ends}


def exact_errors(design: Design, size: tuple[int, int]) -> dict[str, float]:
    """Standard errors of generalised least squares at the true variances, by fixed effect."""
    k, m, _ = PARTS[design.structure]
    data = simulate(design, 0, size)
    x = np.column_stack([np.ones(len(data)), data["a"], data["b"], data["group"], data["a"] * data["b"]])
    v = RESIDUAL**2 * np.eye(len(data))
    for part, sd, columns in (
        ("participant", PEOPLE[:k], x[:, [0, 1, 2, 4][:k]]),
        ("item", THINGS[:m], x[:, :m]),
    ):
        root = FIFTH * np.linalg.cholesky(
            np.outer(sd, sd) * (CORRELATION + (1.0 - CORRELATION) * np.eye(len(sd)))
        )
        codes = data[part].to_numpy()
        v += (columns @ root @ root.T @ columns.T) * (codes[:, None] == codes[None, :])
    covariance = np.linalg.inv(x.T @ np.linalg.solve(v, x))
    return dict(zip(FIXED, np.sqrt(np.diag(covariance)).tolist(), strict=True))


def kept(file: Path) -> list[dict[str, Any]]:
    """Read the fits made so far; a last line cut short is left out."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"a broken line in {file} is fitted again", file=sys.stderr)
    return found


def file_of(name: str, size: tuple[int, int], folder: Path, kind: str = "") -> Path:
    """Where a design's fits are kept."""
    return folder / f"{name}-{size[0]}x{size[1]}{kind}.jsonl"


def missing(file: Path, sets: int) -> list[int]:
    """Numbers of the sets not yet fitted; the file is left with whole lines only."""
    there = kept(file)
    if file.exists():
        file.write_text("".join(json.dumps(f) + "\n" for f in there), "utf-8")
    done = {f["number"] for f in there}
    return [n for n in range(sets) if n not in done]


def run(
    names: Iterable[str],
    sets: int,
    size: tuple[int, int],
    folder: Path,
    workers: int,
    make: Callable[[str, int, tuple[int, int]], dict[str, Any]] = recover,
    kind: str = "",
) -> None:
    """Make what is missing, in parallel; all designs grow together."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = [(n, name) for name in names for n in missing(file_of(name, size, folder, kind), sets)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        asked = {pool.submit(make, name, n, size): name for n, name in sorted(todo)}
        for done in as_completed(asked):
            with file_of(asked[done], size, folder, kind).open("a", encoding="utf-8") as file:
                file.write(json.dumps(done.result()) + "\n")


def run_lme4(names: Iterable[str], sets: int, size: tuple[int, int], folder: Path) -> None:
    """Let lme4 fit the first sets, where R is."""
    if shutil.which("Rscript") is None:
        print("no R, so no lme4", file=sys.stderr)
        return
    for name in names:
        design, file = DESIGNS[name], file_of(name, size, folder, "-lme4")
        todo = missing(file, sets)
        if not todo:
            continue
        data = pd.concat([simulate(design, n, size).assign(number=n) for n in todo])
        with tempfile.TemporaryDirectory() as place:
            data.to_csv(Path(place) / "sets.csv", index=False)
            program = Path(__file__).resolve().parent / "recovery_peers.R"
            given = [str(Path(place) / "sets.csv"), design.formula, design.family, str(file)]
            subprocess.run(["Rscript", str(program), *given], check=True)


def share(held: Array) -> str:
    """Write a proportion in per cent with its Monte Carlo error."""
    p, n = float(np.mean(held)), len(held)
    return f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / n):.1f}"


def between(term: str, design: Design, size: tuple[int, int]) -> float:
    """Levels of the smallest grouping factor over which an effect varies, less the columns constant in its levels."""
    people, things, _ = PARTS[design.structure]
    columns = ("(Intercept)", "a", "b", "a:b")
    left = []
    if term == "group" or term in columns[:people]:
        left.append(size[0] - (2 if term in ("(Intercept)", "group") else 1))
    if term in columns[:things]:
        left.append(size[1] - 1)
    return float(min(left, default=np.inf))


def report(names: Iterable[str], sets: int, size: tuple[int, int], folder: Path) -> None:
    """Print bias and coverage with their Monte Carlo errors."""
    print(
        "| design | parameter | truth | bias ± Monte Carlo error | SE / spread | coverage, % | t between, % | exact SE, % |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    ends = []
    for name in names:
        fits = [f for f in kept(file_of(name, size, folder)) if f["number"] < sets]
        count = len(fits)
        if not count:
            continue
        exact = exact_errors(DESIGNS[name], size) if DESIGNS[name].family == "gaussian" else {}
        for term, true in DESIGNS[name].truth.items():
            ratio = covered = wider = chance = ""
            if term in FIXED:
                estimate, se, df = np.array([f["fixed"][term] for f in fits]).T
                away = np.abs(estimate - true) / se
                ratio = f"{np.sqrt(np.mean(se**2)) / np.std(estimate, ddof=1):.3f}"
                covered = share(away <= stats.t.isf(0.025, df))
                if DESIGNS[name].family == "binomial":
                    wider = share(away <= stats.t.isf(0.025, between(term, DESIGNS[name], size)))
                else:
                    chance = share(np.abs(estimate - true) <= stats.norm.isf(0.025) * exact[term])
            else:
                estimate = np.array([f["sd"][term] for f in fits])
            error = np.std(estimate, ddof=1) / np.sqrt(count)
            print(
                f"| {name} | {term} | {true:.3g} | {estimate.mean() - true:+.4f} ± {error:.4f} "
                f"| {ratio} | {covered} | {wider} | {chance} |"
            )
        ends.append(
            f"{name}: {count} sets, {sum(f['converged'] for f in fits)} converged, "
            f"{sum(f['singular'] for f in fits)} singular"
        )
    print("\n" + "\n".join(ends) + "\n")


def report_lme4(names: Iterable[str], size: tuple[int, int], folder: Path) -> None:
    """Print coverage of both engines' intervals, normal quantiles for both, on the same sets."""
    print("| design | sets | parameter | wrods, % | lme4, % | largest difference of SE, % |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        ours = {f["number"]: f for f in kept(file_of(name, size, folder))}
        both = [
            (ours[f["number"]], f) for f in kept(file_of(name, size, folder, "-lme4")) if f["number"] in ours
        ]
        for term in FIXED if both else ():
            true = DESIGNS[name].truth[term]
            found = np.array([[own["fixed"][term][:2], peer["fixed"][term]] for own, peer in both])
            held = np.abs(found[..., 0] - true) <= stats.norm.isf(0.025) * found[..., 1]
            apart = 100 * np.max(np.abs(found[:, 1, 1] / found[:, 0, 1] - 1))
            print(
                f"| {name} | {len(both)} | {term} | {share(held[:, 0])} | {share(held[:, 1])} | {apart:.2f} |"
            )
    print()


def report_profiles(names: Iterable[str], size: tuple[int, int], folder: Path) -> None:
    """Print coverage of profile intervals beside Wald's on the same sets."""
    print("| design | sets | parameter | Wald, % | profile, % |\n| --- | --- | --- | --- | --- |")
    for name in names:
        wald = {f["number"]: f["fixed"] for f in kept(file_of(name, size, folder))}
        both = [f for f in kept(file_of(name, size, folder, "-profile")) if f["number"] in wald]
        for term in PROFILED if both else ():
            true = DESIGNS[name].truth[term]
            estimate, se, df = np.array([wald[f["number"]][term] for f in both]).T
            low, high = np.array([f["intervals"][term] for f in both]).T
            held = np.abs(estimate - true) / se <= stats.t.isf(0.025, df)
            print(
                f"| {name} | {len(both)} | {term} | {share(held)} | {share((low <= true) & (true <= high))} |"
            )
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, metavar=("PARTICIPANTS", "ITEMS"))
    parser.add_argument("--lme4", type=int, default=0, metavar="N", help="fit the first N sets by lme4 too")
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="profile the first N sets")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "wrods-recovery")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    # Each worker fits with one thread.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    size = (asked.size[0], asked.size[1])
    run(asked.designs, asked.sets, size, asked.out, asked.workers)
    report(asked.designs, asked.sets, size, asked.out)
    if asked.profile:
        run(asked.designs, asked.profile, size, asked.out, asked.workers, profile, "-profile")
        report_profiles(asked.designs, size, asked.out)
    if asked.lme4:
        run_lme4(asked.designs, asked.lme4, size, asked.out)
        report_lme4(asked.designs, size, asked.out)


if __name__ == "__main__":
    main()
