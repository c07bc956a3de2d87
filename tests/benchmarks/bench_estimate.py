"""False alarms, coverage, power and equivalence of the planned comparison of people with a model, and of two simpler tests.

``make bench`` or ``python tests/benchmarks/bench_estimate.py [--studies 600] [--participants 16 40] [--items 16 40 80]
[--reference FILE] [--out FILE]``. Whole
studies are drawn from a probit model: four conditions in a Latin square, two of which are compared; participants, items and
what conditions do to either vary; the model answers the same items deterministically, with answers that agree over conditions
or not, or is sampled once or five times. The true percentages are known exactly. Each study is analysed as a report does, and by
a paired t over items and a t over participants, on the same data. ``--reference`` takes a table of another program's results in the
same cells (columns participants, items, level, scenario, what, model, method, rejected), whose power is printed next to ours.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.crossed_variance import (
    CrossedEstimate,
    EstimateLayout,
    ItemAnswers,
    estimate,
    sums_of_model,
    sums_of_people,
)

Floats = NDArray[np.float64]

CONDITIONS = 4
SD = {"participant": 0.5, "participant by condition": 0.25, "item": 0.5, "item by condition": 0.3}
WHOLE = float(np.sqrt(1 + sum(sd**2 for sd in SD.values())))
SHARED = 0.5
"""Correlation of what is difficult for people with what is difficult for the model."""
LEVELS = {"ceiling": (0.98, 0.86), "middle": (0.75, 0.63), "floor": (0.05, 0.17)}
MODELS = {
    "deterministic, consistent": (0.9, 0.0, 1),
    "deterministic, inconsistent": (0.1, 0.0, 1),
    "sampled once": (0.5, 0.4, 1),
    "sampled five times": (0.5, 0.4, 5),
}
"""Share of an item's latent variance that all conditions have in common, noise of each answer, answers to an item."""
BOUND = 0.10
METHODS = ("report", "t over items", "t over participants")


@dataclass(frozen=True)
class Cell:
    """One kind of study: its size, the percentages of people and of the model in the two conditions, and the model."""

    participants: int
    items: int
    level: str
    model: str
    effect: str

    @property
    def shares(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Percentages right, of people and of the model."""
        a, b = LEVELS[self.level]
        return {
            "none": ((a, a), (a, a)),
            "people": ((a, b), (a, a)),
            "both": ((a, b), (a, b)),
        }[self.effect]


def draw(cell: Cell, rng: np.random.Generator) -> tuple[ItemAnswers, Floats]:
    """Draw one study: people's answers, and the model's means, shape (items, 2)."""
    people, items = cell.participants, cell.items
    shares, own = cell.shares
    able, hard = rng.normal(0, SD["participant"], people), rng.standard_normal(items)
    p, i = (one.ravel() for one in np.meshgrid(np.arange(people), np.arange(items), indexing="ij"))
    at = (p + i) % CONDITIONS
    parts = []
    for c in range(2):
        seen = at == c
        latent = (
            stats.norm.ppf(shares[c]) * WHOLE
            + (able + rng.normal(0, SD["participant by condition"], people))[p]
        )
        latent += (SD["item"] * hard + rng.normal(0, SD["item by condition"], items))[i]
        latent += rng.standard_normal(len(p))
        parts.append((latent[seen] > 0, p[seen], i[seen], np.full(int(seen.sum()), c)))
    y, p, i, c_ = (np.concatenate(one) for one in zip(*parts, strict=True))
    layout = EstimateLayout((0, 1), tuple(range(items)), tuple(range(people)))
    kept, noise, times = MODELS[cell.model]
    mine = SHARED * hard + np.sqrt(1 - SHARED**2) * rng.standard_normal(items)
    means = []
    for share in own:
        base = np.sqrt(kept * (1 - noise)) * mine + np.sqrt((1 - kept) * (1 - noise)) * rng.standard_normal(
            items
        )
        each = base[:, None] + np.sqrt(noise) * rng.standard_normal((items, times))
        means.append((each + stats.norm.ppf(share) > 0).mean(axis=1))
    return ItemAnswers(layout, y.astype(float), p, i, c_), np.column_stack(means)


def simpler(people: ItemAnswers, model: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the t over items and that over participants of the difference: estimates, standard errors and degrees."""
    z = people.value - model[people.item, people.condition]
    found = []
    for unit, size in (
        (people.item, len(people.layout.items)),
        (people.participant, len(people.layout.participants)),
    ):
        means = [
            np.bincount(unit[at], z[at], size) / np.bincount(unit[at], minlength=size)
            for at in (people.condition == 0, people.condition == 1)
        ]
        d = means[1] - means[0]
        found.append((d.mean(), d.std(ddof=1) / np.sqrt(size), size - 1))
    e, se, df = zip(*found, strict=True)
    return np.array(e), np.array(se), np.array(df)


def study(cell: Cell, studies: int, seed: int) -> dict[str, Any]:
    """Draw and analyse the studies of a cell; return what happened in how many, by quantity."""
    rng = np.random.default_rng(seed)
    shares, own = cell.shares
    effects = {"people": shares[1] - shares[0], "model": own[1] - own[0]}
    effects["difference"] = effects["people"] - effects["model"]
    weights = {0: -1.0, 1: 1.0}
    counts: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    spent = 0.0
    for _ in range(studies):
        people, model = draw(cell, rng)
        begun = time.process_time()
        found: dict[str, CrossedEstimate | None] = {
            "people": estimate(sums_of_people(people), weights),
            "model": estimate(sums_of_model(people.layout, model), weights),
            "difference": estimate(sums_of_people(people, model), weights),
        }
        spent += time.process_time() - begun
        for what, one in found.items():
            assert one is not None
            counts.setdefault(("report", what), []).append((one.value, one.se, one.df))
        for name, each in zip(METHODS[1:], zip(*simpler(people, model), strict=True), strict=True):
            counts.setdefault((name, "difference"), []).append(each)
    rows = []
    for (method, what), values in counts.items():
        e, se, df = np.array(values, dtype=float).T
        ok = se > 1e-9
        half, half90 = (stats.t.ppf(q, df) * np.where(ok, se, 1.0) for q in (0.975, 0.95))
        truth = effects[what]
        rows.append(
            {
                "method": method,
                "what": what,
                "effect": truth,
                "rejected": float((ok & (np.abs(e) > half)).mean()),
                "covered": float((ok & (np.abs(e - truth) <= half)).mean()),
                "equivalent": float((ok & (np.abs(e) + half90 < BOUND)).mean()),
                "at the bound": float((ok & (np.abs(e) + half90 < abs(truth))).mean()) if truth else np.nan,
                "width": float(200 * half[ok].mean()) if ok.any() else np.nan,
                "without": float(1 - ok.mean()),
            }
        )
    return {"cell": cell, "rows": rows, "cpu_ms": 1000 * spent / studies / 3}


def over(results: list[dict[str, Any]], method: str, what: str) -> list[tuple[Cell, dict[str, Any]]]:
    """Return the rows of one method and quantity in all cells."""
    return [
        (one["cell"], row)
        for one in results
        for row in one["rows"]
        if (row["method"], row["what"]) == (method, what)
    ]


def mean_and_worst(values: list[float], worst: Any) -> str:
    return f"{np.mean(values):.3f} ({worst(values):.3f})" if values else "–"


def share(rows: list[dict[str, Any]], name: str, studies: int) -> str:
    """Write a share over the studies of several cells, with twice its standard error."""
    values = [row[name] for row in rows if np.isfinite(row[name])]
    if not values:
        return "–"
    p = float(np.mean(values))
    return f"{p:.3f} ± {2 * np.sqrt(max(p * (1 - p), 1e-9) / studies / len(values)):.3f}"


def show(results: list[dict[str, Any]], studies: int) -> None:
    """Print the table over all cells, the same by level and model, then what a study of each size can show."""
    print(f"\n{len(results)} kinds of study, {studies} studies of each\n")
    print(
        "| | False alarms, mean (worst) | Coverage, mean (worst) | Power, 12 points | Width, points | Studies without a variance |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for method, what in (
        ("report", "people"), ("report", "model"), ("report", "difference"),
        ("t over items", "difference"), ("t over participants", "difference"),
    ):  # fmt: skip
        rows = over(results, method, what)
        null = [row["rejected"] for _, row in rows if row["effect"] == 0]
        real = [row["rejected"] for _, row in rows if row["effect"] != 0]
        head = {"report": what, "t over items": "difference, paired t over items"}.get(
            method, f"difference, {method}"
        )
        print(
            f"| {head} | {mean_and_worst(null, max)} | {mean_and_worst([row['covered'] for _, row in rows], min)} | "
            f"{np.mean(real):.2f} | {np.nanmean([row['width'] for _, row in rows]):.1f} | "
            f"{max(row['without'] for _, row in rows):.3f} |"
        )
    print(f"\nMean CPU time of an estimate: {np.mean([one['cpu_ms'] for one in results]):.2f} ms\n")
    print("The difference between people and the model, over all sizes, with twice the simulation error\n")
    print("| Level, model | False alarms | Both change: false alarms | Coverage | Power, 12 points |")
    print("| --- | --- | --- | --- | --- |")
    heads = [(level, model) for level in LEVELS for model in MODELS]
    for level, model in heads:
        own = [
            (cell.effect, row)
            for cell, row in over(results, "report", "difference")
            if (cell.level, cell.model) == (level, model)
        ]
        by = {effect: [row for name, row in own if name == effect] for effect in ("none", "people", "both")}
        print(
            f"| {level}, {model} | {share(by['none'], 'rejected', studies)} | {share(by['both'], 'rejected', studies)} | "
            f"{share([row for _, row in own], 'covered', studies)} | {share(by['people'], 'rejected', studies)} |"
        )
    print(
        "\nTwo one-sided tests at a bound that equals the true difference: equivalence is concluded wrongly\n"
    )
    print("| Level | People | Model | Difference |\n| --- | --- | --- | --- |")
    for level in LEVELS:
        told = [
            share(
                [row for cell, row in over(results, "report", what) if cell.level == level],
                "at the bound",
                studies,
            )
            for what in ("people", "model", "difference")
        ]
        print(f"| {level} | " + " | ".join(told) + " |")
    print(
        "\nPower for a difference of 12 points / equivalence within ±10 points where both change by 12 / width in points\n"
    )
    print("| Participants × items | " + " | ".join(f"{level}, {model}" for level, model in heads) + " |")
    print("| --- |" + " --- |" * len(heads))
    sizes = dict.fromkeys((one["cell"].participants, one["cell"].items) for one in results)
    for participants, items in sizes:
        told = []
        for level, model in heads:
            by_effect = {
                cell.effect: row
                for cell, row in over(results, "report", "difference")
                if (cell.participants, cell.items, cell.level, cell.model)
                == (participants, items, level, model)
            }
            told.append(
                f"{by_effect['people']['rejected']:.2f} / {by_effect['both']['equivalent']:.2f} / {by_effect['both']['width']:.0f}"
            )
        print(f"| {participants} × {items} | " + " | ".join(told) + " |")


REFERENCE_NAMES = {
    "none": "null",
    "people": "people only",
    "both": "equal effects",
    "deterministic, consistent": "fixed, consistent",
    "deterministic, inconsistent": "fixed, inconsistent",
    "sampled five times": "sampled 5 times",
}


def compare(results: list[dict[str, Any]], file: Path, studies: int) -> None:
    """Print power and false alarms next to those of a reference in the same cells."""
    with file.open(encoding="utf-8") as opened:
        told = {
            tuple(row[name] for name in ("participants", "items", "level", "scenario", "model")): float(
                row["rejected"]
            )
            for row in csv.DictReader(opened)
            if (row["what"], row["method"]) == ("difference", "crossed, one more")
        }
    print(
        "\n| Difference | cells | here | reference | most below the reference |\n| --- | --- | --- | --- | --- |"
    )
    for name, effect in (
        ("power, 12 points", "people"),
        ("false alarms", "none"),
        ("both change: false alarms", "both"),
    ):
        pairs = []
        for cell, row in over(results, "report", "difference"):
            place = (str(cell.participants), str(cell.items), cell.level,
                     REFERENCE_NAMES.get(effect, effect), REFERENCE_NAMES.get(cell.model, cell.model))  # fmt: skip
            if cell.effect == effect and place in told:
                pairs.append((row["rejected"], told[place]))
        if pairs:
            own, its = np.array(pairs).T
            print(
                f"| {name} | {len(pairs)} | {own.mean():.3f} | {its.mean():.3f} | {(its - own).max():.3f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=600)
    parser.add_argument("--participants", type=int, nargs="+", default=[16, 40, 80])
    parser.add_argument("--items", type=int, nargs="+", default=[16, 40, 80])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--out", type=Path, help="JSON of all cells")
    asked = parser.parse_args()
    cells = [
        Cell(*one)
        for one in product(asked.participants, asked.items, LEVELS, MODELS, ("none", "people", "both"))
    ]
    with ProcessPoolExecutor(asked.processes) as pool:
        results = list(pool.map(study, cells, [asked.studies] * len(cells), range(len(cells))))
    if asked.out:
        plain = [{**one, "cell": asdict(one["cell"])} for one in results]
        asked.out.write_text(json.dumps(plain, indent=1) + "\n", "utf-8")
    show(results, asked.studies)
    if asked.reference:
        compare(results, asked.reference, asked.studies)


if __name__ == "__main__":
    main()
