"""How often people and a model that are alike are found to differ, by the model that a report fits unless told otherwise.

``make bench`` or ``python tests/benchmarks/bench_type_one.py [--sets 300] [--designs …] [--size 24 24] [--out FOLDER]``. Whole
studies are drawn in which a condition does the same to people and to a model, on the log odds scale: participants, items, what
conditions do to either, and what is particular to the model all scatter. Each study goes through the report's own path (rows,
justified random structure, fit, reduction, test), and p < .05 of the difference of differences is counted: in all, and by the
random structure that was reported. Fits are kept in FOLDER as they are made, a line each, and a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.intervals import wilson
from analysis.plan import MEASURES, Plan, against_reference
from analysis.power import Given, Question, Sizes, Study, assumed
from analysis.results import Analysis

ALPHA = 0.05
LEVELS = ("intact", "initial", "internal", "final")
SPREADS = {
    "participant": 0.7,
    "participant_slope": 0.5,
    "item": 0.5,
    "item_slope": 0.8,
    "item_models": 0.5,
    "item_slope_models": 0.8,
    "item_reader": 0.25,
    "item_cell": 0.35,
    "prompt": 0.2,
    "session": 0.1,
}
"""Standard deviations in log odds; items, and what conditions do to them, correlate at .5 between people and models."""


@dataclass(frozen=True)
class Design:
    """One null: log odds of the reference in people and in each model, what every further condition does to all of them."""

    readers: dict[str, float]
    costs: tuple[float, ...]
    prompts: int = 1
    replicates: int = 1

    def question(self, name: str) -> Question:
        """Put the design into the words of a power analysis, which draws and analyses it."""
        levels = LEVELS[: 1 + len(self.costs)]
        plan = Plan(name, True, MEASURES["correct"], "position", levels, tuple(self.readers),
                    against_reference(list(levels)), alpha=ALPHA)  # fmt: skip
        given = [
            Given("mean", reader, level, begun - cost, "log_odds")
            for reader, begun in self.readers.items()
            for level, cost in zip(levels, (0.0, *self.costs), strict=True)
        ]
        given += [Given("sd", part, "", value) for part, value in SPREADS.items()]
        kinds = {reader: "human" if reader == "human" else "model" for reader in self.readers}
        return Question(plan, assumed(plan, kinds, given, "benchmark"), "latin_square", True, 1)


DESIGNS = {
    "no cost": Design({"human": 1.7, "model": 1.7}, (0.0,)),
    "the same cost": Design({"human": 2.2, "model": 2.2}, (1.0,)),
    "the same cost, the model better": Design({"human": 1.5, "model": 2.7}, (1.0,)),
    "the same cost, five wordings": Design({"human": 2.2, "model": 2.2}, (1.0,), prompts=5),
    "the same cost, five sampled answers": Design({"human": 2.2, "model": 2.2}, (1.0,), replicates=5),
    "the same costs, two models, four conditions": Design(
        {"human": 2.2, "one": 2.2, "other": 2.2}, (1.2, 0.4, 0.7)
    ),
}


def random_part(formula: str) -> str:
    """Return the random terms of a formula."""
    return " + ".join(re.findall(r"\([^()]*\|[^()]*\)", formula))


def record(number: int, analysis: Analysis) -> dict[str, Any]:
    """Return what is counted of one study."""
    model = analysis.model
    tests = [one for one in analysis.contrasts if one.estimable]
    return {
        "number": number,
        "structure": random_part(model.formula) if model else "no model",
        "steps": len(model.steps) if model else 0,
        "stands": bool(model and model.converged and not model.singular),
        "people": [[one.p, one.estimate, one.se] for one in tests if one.groups == ("human",)],
        "between": [[one.p, one.estimate, one.se, one.low, one.high] for one in tests if one.between],
    }


def kept(file: Path, design: str, sizes: Sizes, sets: int) -> list[dict[str, Any]]:
    """Draw and analyse the studies that a file does not hold yet."""
    found: list[dict[str, Any]] = []
    if file.exists():
        lines = file.read_text("utf-8").splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        file.write_text("".join(line for line in lines if line.endswith("\n")), "utf-8")
    study = Study(DESIGNS[design].question(design), sizes)
    with file.open("a", encoding="utf-8") as out:
        for number in range(len(found), sets):
            found.append(record(number, study.analysed(number)))
            out.write(json.dumps(found[-1]) + "\n")
            out.flush()
    return found[:sets]


def rate(tests: Iterable[list[float]]) -> str:
    """Write how many of the tests are significant, with Wilson's interval of the share."""
    p = [one[0] for one in tests]
    if not p:
        return "0 of 0"
    hits = sum(one < ALPHA for one in p)
    low, high = wilson(hits / len(p), len(p))
    return f"{hits} of {len(p)}: {hits / len(p):.3f} [{low:.3f}, {high:.3f}]"


def show(design: str, found: list[dict[str, Any]], seconds: float) -> None:
    """Print one design: false alarms in all, coverage, and false alarms by the structure that was reported."""
    between = [test for one in found for test in one["between"]]
    covered = sum(test[3] <= 0.0 <= test[4] for test in between)
    bias = sum(test[1] for test in between) / max(1, len(between))
    without = sum(not one["between"] for one in found)
    print(
        f"\n## {design}: {len(found)} studies, {without} without a test, {seconds / len(found):.2f} CPU s a study"
    )
    print(
        f"people − model: {rate(between)}; intervals that hold 0: {covered / max(1, len(between)):.3f}; mean {bias:+.3f}"
    )
    counted("fits down to the reported one", found, lambda one: str(one["steps"]))
    counted(
        "reported random structure", found, lambda one: f"`{one['structure'].replace('|', chr(92) + '|')}`"
    )


def counted(head: str, found: list[dict[str, Any]], of: Callable[[dict[str, Any]], str]) -> None:
    """Print false alarms by what is said of a study, the most frequent first."""
    print(f"\n| {head} | studies | of them sound | p < .05 of people − model |")
    print("| --- | --- | --- | --- |")
    for said, many in Counter(map(of, found)).most_common():
        own = [one for one in found if of(one) == said]
        tests = [test for one in own for test in one["between"]]
        print(f"| {said} | {many} | {sum(one['stands'] for one in own)} | {rate(tests)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--size", nargs=2, type=int, default=(24, 24), metavar=("PARTICIPANTS", "ITEMS"))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = asked.out or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        for design in asked.designs:
            size = replace(
                Sizes(*asked.size), prompts=DESIGNS[design].prompts, replicates=DESIGNS[design].replicates
            )
            begun = time.process_time()
            file = folder / f"{re.sub('[^a-z]+', '_', design)}_{size.key}.jsonl"
            found = kept(file, design, size, asked.sets)
            show(design, found, time.process_time() - begun)


if __name__ == "__main__":
    main()
