"""Mixed models: processor time of our engine beside lme4, glmmTMB, statsmodels and ``glmm`` (PyPI), in the same run.

``make bench`` or ``python tests/benchmarks/bench_mixed.py [--only small large insteval memory] [--engines …] [--match TEXT]
[--cap SECONDS]``. Every fit has a process of its own, one thread and at most ten minutes of processor time; times are
processor seconds of the fit alone, the least of three fits for the small models, of one for the others. Engines run at their
defaults, and their log-likelihoods stand beside ours: equal models reach equal ones, and a lower one is an answer that is not
the maximum. ``glmm`` gets an environment of its own (``--peers PYTHON`` names one that is there). InstEval's rows come from
R's lme4.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stimuli.seeds import stable_seed

HERE = Path(__file__).resolve().parent
ENGINES = ("wrods", "lme4", "glmmTMB", "glmm", "statsmodels")
PARTS = ("small", "large", "insteval", "memory")
GLMM = "glmm==0.6.2"
WAITS = 4
"""How many times its processor time a process may take by the clock, other programs being at work too."""
MOST_MEMORY = 12 << 30
"""Bytes that a fit may take; a peer that wants more has failed as one that wants more time."""
RANDOM = {
    "intercepts": "(1 | participant) + (1 | item)",
    "slope": "(1 + a | participant) + (1 | item)",
    "maximal": "(1 + a + b + ab | participant) + (1 + a | item)",
}
RESPONSES = {"binomial": ("accuracy", "correct"), "gaussian": ("log time", "log_rt")}
INSTEVAL = {
    "InstEval, three intercepts": "y ~ 1 + (1 | s) + (1 | d) + (1 | dept)",
    "InstEval, service by department": "y ~ service * dept + (1 | s) + (1 | d)",
}


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    file: Path
    formula: str
    family: str
    fits: int


@dataclass(frozen=True)
class Told:
    """What an engine's process said, or why it said nothing."""

    seconds: float | None
    loglik: float
    note: str
    mb: float | None


def rows(participants: int, items: int) -> pd.DataFrame:
    """Simulate crossed participants and items: two conditions within both, accuracy and log response time."""
    draw = np.random.default_rng(stable_seed("bench_mixed", participants, items))
    participant, item = np.divmod(np.arange(participants * items), items)
    a = (participant + item) % 2 - 0.5
    b = (participant // 2 + item // 2) % 2 - 0.5
    people = draw.normal(0, (0.7, 0.4, 0.3, 0.3), (participants, 4))
    things = draw.normal(0, (0.5, 0.3), (items, 2))
    x = np.column_stack([np.ones(len(a)), a, b, a * b])
    eta = x @ [1.5, -0.8, 0.3, 0.2] + np.einsum("nk,nk->n", x, people[participant])
    eta += things[item, 0] + things[item, 1] * a
    log_rt = 6.7 - 0.1 * eta + draw.normal(0, 0.3, len(a))
    correct = (draw.random(len(a)) < 1 / (1 + np.exp(-eta))).astype(int)
    return pd.DataFrame(
        {
            "participant": participant,
            "item": item,
            "a": a,
            "b": b,
            "ab": a * b,
            "correct": correct,
            "log_rt": log_rt,
        }
    )


def simulated(folder: Path, participants: int, items: int, fits: int) -> list[Case]:
    """Write the rows and name their six models."""
    file = folder / f"rows_{participants * items}.csv"
    rows(participants, items).to_csv(file, index=False)
    return [
        Case(
            f"{participants * items:,} rows, {told}, {name}",
            file,
            f"{response} ~ a + b + ab + {random}",
            family,
            1 if name == "maximal" else fits,
        )
        for family, (told, response) in RESPONSES.items()
        for name, random in RANDOM.items()
    ]


def insteval(folder: Path) -> list[Case]:
    """Let R write its InstEval data, where R is."""
    if shutil.which("Rscript") is None:
        print("no R, so no InstEval", file=sys.stderr)
        return []
    file = folder / "InstEval.csv"
    program = f'data(InstEval, package = "lme4"); write.csv(InstEval, "{file}", row.names = FALSE)'
    subprocess.run(["Rscript", "-e", program], check=True, capture_output=True)
    return [Case(name, file, formula, "gaussian", 1) for name, formula in INSTEVAL.items()]


def peers(folder: Path, given: str | None) -> str | None:
    """Python with ``glmm``: the one given, or a throw-away environment; None where it cannot be installed."""
    if given:
        return given
    place = folder / "glmm"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", GLMM, "pandas"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"{GLMM} cannot be installed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return str(python)


def _limits(cap: float) -> Callable[[], None]:
    """Set what a process may take before it starts: processor time, and memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(cap), int(cap) + 5))

    return limit


def _spent_by_children() -> float:
    """Processor seconds of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def told(engine: str, case: Case, glmm: str | None, cap: float) -> Told:
    """Fit a case in a process of its own."""
    nothing = Told(None, math.nan, "not installed", None)
    arguments = [str(case.file), case.formula, case.family, str(case.fits)]
    if engine in ("lme4", "glmmTMB"):
        if shutil.which("Rscript") is None:
            return nothing
        command = ["Rscript", str(HERE / "mixed_peers.R"), engine, *arguments]
    else:
        python = glmm if engine == "glmm" else sys.executable
        if python is None:
            return nothing
        command = [python, str(HERE / "mixed_peers.py"), engine, *arguments]
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
    )
    before = _spent_by_children()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=WAITS * cap,
            check=False,
            env={**os.environ, **threads},
            preexec_fn=_limits(cap),
        )
    except subprocess.TimeoutExpired:
        spent = _spent_by_children() - before
        return Told(None, math.nan, f"> {spent:.0f} s (stopped after {WAITS * cap:.0f} s by the clock)", None)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Told(None, math.nan, f"> {cap:.0f} s", None)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        print(f"{engine}, {case.name}: {last}", file=sys.stderr)
        missing = "there is no package" in done.stderr or "No module named" in done.stderr
        return nothing if missing else Told(None, math.nan, "failed", None)
    return Told(**json.loads(done.stdout.splitlines()[-1]))


def cell(found: Told, own: Told) -> str:
    """Seconds, how many times ours, and the log-likelihood above ours, with what the engine says."""
    if found.seconds is None:
        return found.note
    text = f"{found.seconds:.2f}" if found.seconds < 100 else f"{found.seconds:.0f}"
    if found is own:
        return f"{text} ({found.note})" if found.note else text
    notes = [found.note] if found.note else []
    if not math.isnan(found.loglik) and abs(found.loglik - own.loglik) > 5e-5:
        notes.append(f"logLik {found.loglik - own.loglik:+.4f}")
    ratio = f" ({found.seconds / own.seconds:.1f}×)" if own.seconds else ""
    return "; ".join([text + ratio, *notes])


def table(cases: list[Case], engines: list[str], glmm: str | None, cap: float) -> None:
    """Print the cases, an engine a column."""
    print(f"| model | {' | '.join(engines)} | logLik wrods | load |")
    print(f"| --- |{' --- |' * len(engines)} --- | --- |")
    for case in cases:
        load = os.getloadavg()[0]
        found = {engine: told(engine, case, glmm, cap) for engine in engines}
        own = found.get("wrods", Told(None, math.nan, "", None))
        cells = " | ".join(cell(found[engine], own) for engine in engines)
        print(f"| {case.name} | {cells} | {own.loglik:.4f} | {load:.0f} |", flush=True)
    print()


def memory(folder: Path, cap: float) -> None:
    """Print our peak memory as rows grow: participants by the same 400 items, and students who meet few lecturers."""
    print(
        "| rows | accuracy, slope, MB | log time, slope, MB | sparsely crossed, MB |\n| --- | --- | --- | --- |"
    )
    for participants in (125, 250, 500):
        crossed = simulated(folder, participants, 400, 1)
        draw = np.random.default_rng(stable_seed("bench_mixed", "sparse", participants))
        n = participants * 400
        student, lecturer = draw.integers(0, n // 25, n), draw.integers(0, 1000, n)
        y = draw.normal(0, 0.3, n // 25)[student] + draw.normal(0, 0.5, 1000)[lecturer] + draw.normal(0, 1, n)
        file = folder / f"sparse_{n}.csv"
        pd.DataFrame({"s": student, "d": lecturer, "y": y}).to_csv(file, index=False)
        sparse = Case("", file, "y ~ 1 + (1 | s) + (1 | d)", "gaussian", 1)
        chosen = [
            next(c for c in crossed if c.name.endswith(f"{kind}, slope")) for kind in ("accuracy", "time")
        ]
        found = [told("wrods", case, None, cap) for case in (*chosen, sparse)]
        cells = " | ".join(f.note if f.mb is None else f"{f.mb:.0f}" for f in found)
        print(f"| {n:,} | {cells} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--match", default="", help="fit only models whose name holds this text")
    parser.add_argument(
        "--cap", type=float, default=600.0, help="processor seconds that one process may take"
    )
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has glmm")
    asked = parser.parse_args()

    def show(cases: list[Case]) -> None:
        table([c for c in cases if asked.match in c.name], asked.engines, glmm, asked.cap)

    print(f"Processor seconds, one thread, each process at most {asked.cap:.0f} s; in brackets times ours\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        glmm = peers(folder, asked.peers) if "glmm" in asked.engines and asked.only != ["memory"] else None
        if "small" in asked.only:
            show(simulated(folder, 60, 120, 3))
        if "large" in asked.only:
            show(simulated(folder, 500, 400, 1))
        if "insteval" in asked.only:
            show(insteval(folder))
        if "memory" in asked.only:
            memory(folder, asked.cap)


if __name__ == "__main__":
    main()
