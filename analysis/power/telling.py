"""Writes down what a power analysis assumed and found: as text, CSV, JSON and figure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.mixed.result import lined_up
from analysis.plan import Measure
from analysis.power.curves import AXES, needed, power_table
from analysis.power.simulation import Outcome, Question
from analysis.readers import PARTICIPANT_KINDS


@dataclass(frozen=True)
class Told:
    """One plan's power."""

    question: Question
    table: pd.DataFrame  # see `analysis.power.power_table`
    needed: pd.DataFrame  # see `analysis.power.needed`
    wanted: float
    remarks: tuple[str, ...]  # what was assumed, left out or cannot be said

    @property
    def stem(self) -> str:
        """File name of this plan, without ending."""
        return "power_" + re.sub(r"[^A-Za-z0-9]+", "_", self.question.plan.name).strip("_")

    def to_json(self) -> dict[str, Any]:
        """Return plain values; what is not defined is None."""
        plan = self.question.plan
        bound = plan.equivalence
        return {
            "plan": plan.name,
            "alpha": plan.alpha,
            "equivalence": None if bound is None else {"value": bound.value, "unit": bound.unit},
            "wanted": self.wanted,
            "question": self.question.to_json(),
            "source": self.question.assumptions.source,
            "means": [
                {"reader": g, "condition": c, "mean": self.question.assumptions.mean(plan, g, c)}
                for g in plan.groups
                for c in plan.levels
            ],
            "power": _plain(self.table),
            "needed": _plain(self.needed),
            "remarks": list(self.remarks),
        }

    def text(self) -> str:
        """Write everything for a terminal."""
        plan, truth = self.question.plan, self.question.assumptions
        lines = [f"{plan.name}: {plan.measure.noun} by {plan.factor}, {', '.join(plan.groups)}"]
        bound = f"; equivalence within {_bound(plan)}" if plan.equivalence is not None else ""
        lines += [f"Level {plan.alpha:g}{bound}. Effects: {truth.source}."]
        head = ["", *plan.levels]
        rows = [[g, *(_mean(truth.mean(plan, g, c), plan.measure) for c in plan.levels)] for g in plan.groups]
        unit = {
            "points": "percent correct, averaged over participants and items",
            "ratio": f"geometric means, {plan.measure.unit}",
            "raw": plan.measure.unit,
        }[plan.measure.scale]
        lines += ["", f"Assumed means ({unit})", *lined_up([head, *rows], {0}), "", "Power"]
        lines += [*lined_up(self._power_rows(), {0, 1}), "", *self._counts()]
        if len(self.needed):
            lines += ["", f"Needed for a power of {self.wanted:g}", *lined_up(self._needed_rows(), {0, 1, 2})]
        else:
            lines += [
                "",
                "One size only: give several, such as --participants 20,40,60, to find how many are needed.",
            ]
        return "\n".join([*lines, "", *(f"- {one}" for one in self.remarks)]).rstrip()

    def _varying(self) -> list[str]:
        plan = self.question.plan
        kinds = self.question.assumptions.kinds
        people = ["participants"] if any(kinds[one] in PARTICIPANT_KINDS for one in plan.groups) else []
        return [*people, "items", *(a for a in AXES[2:] if self.table[a].nunique() > 1)]

    def _power_rows(self) -> list[list[str]]:
        measure = self.question.plan.measure
        varying = self._varying()
        rows = [["test", "readers", *varying, "true", "power", "95% CI", "unadjusted"]]
        for one in self.table.to_dict("records"):
            true = {
                "points": f"{round(one['true_effect'], 1) + 0.0:+.1f} pts",
                "ratio": f"{100 * math.expm1(one['true_effect']):+.1f} %",
                "raw": f"{one['true_effect']:+.2f} {measure.unit}",
            }[measure.scale]
            equal = "≈ " if one["kind"] == "equivalence" else ""
            rows.append(
                [
                    f"{equal}{one['contrast']}",
                    str(one["readers"]),
                    *(str(one[a]) for a in varying),
                    true,
                    f"{100 * one['power']:.1f}%",
                    f"[{100 * one['power_low']:.1f}, {100 * one['power_high']:.1f}]",
                    "" if math.isnan(one["power_unadjusted"]) else f"{100 * one['power_unadjusted']:.1f}%",
                ]
            )
        return rows

    def _needed_rows(self) -> list[list[str]]:
        varying = self._varying()
        rows = [["test", "readers", "of", *varying, "number", "95% CI"]]
        for one in self.needed.to_dict("records"):
            sizes = self.table[one["of"]]
            low, high = one["low"], one["high"]
            ends = [
                f"> {sizes.max()}" if math.isnan(low) else f"{low:.0f}",
                f"> {sizes.max()}" if math.isnan(high) else f"{high:.0f}",
            ]
            number = {
                "no": f"more than {sizes.max()}",
                "at the smallest": f"at most {sizes.min()}",
            }.get(one["reached"], f"{one['number']:.0f}")
            equal = "≈ " if one["kind"] == "equivalence" else ""
            said = ["" if math.isnan(one[a]) else f"{one[a]:.0f}" for a in varying]
            rows.append(
                [
                    f"{equal}{one['contrast']}",
                    str(one["readers"]),
                    str(one["of"]),
                    *said,
                    number,
                    f"[{ends[0]}, {ends[1]}]",
                ]
            )
        return rows

    def _counts(self) -> list[str]:
        """Say how many studies there were, and how those without an estimate count."""
        once = self.table.drop_duplicates(list(AXES))
        total = int(once["studies"].sum())
        lines = [f"{total:,} simulated studies."]
        if self.question.plan.measure.family == "binomial":
            lines[0] += (
                " Every one has an estimate of each contrast in percentage points, also at 0% and 100%."
            )
            return lines

        def share(name: str) -> str:
            return f"{100 * float((once[name] * once['studies']).sum()) / total:.1f}%"

        lines[0] += (
            f" Of their mixed models {share('reduced')} were reduced on the way and {share('singular')} are singular as reported "
            f"(they count as they are); {share('not_converged')} did not converge and {share('no_model')} could not be fitted "
            "(they count as having found nothing)."
        )
        worst = self.table.sort_values("not_determined").iloc[-1]
        if worst["not_determined"] > 0:
            lines.append(
                f"The data did not determine {worst['contrast']} ({worst['readers']}) in up to "
                f"{100 * worst['not_determined']:.1f}% of the studies of a size, which also counts as having found nothing."
            )
        return lines


def _bound(plan: Any) -> str:
    bound = plan.equivalence
    return str(bound.said or f"{bound.value:g} {bound.unit}")


def _mean(value: float, measure: Measure) -> str:
    return f"{value:,.0f}" if measure.scale == "ratio" else f"{value:.1f}"


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def tell(question: Question, outcomes: Sequence[Outcome], wanted: float, remarks: Sequence[str] = ()) -> Told:
    """Count what simulated studies found."""
    table = power_table(question.plan, question.assumptions, outcomes)
    said = (*remarks, *question.assumptions.remarks)
    return Told(question, table, needed(table, wanted), wanted, tuple(dict.fromkeys(said)))


def write(told: Told, folder: Path) -> list[Path]:
    """Write table and needed numbers as CSV, everything as JSON, and the figure as SVG and PNG."""
    from analysis.figures.simulation import power_figure

    folder.mkdir(parents=True, exist_ok=True)
    table, numbers, everything = (
        folder / f"{told.stem}{ending}" for ending in (".csv", "_needed.csv", ".json")
    )
    told.table.to_csv(table, index=False)
    told.needed.to_csv(numbers, index=False)
    everything.write_text(json.dumps(told.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    plan = told.question.plan
    drawing = power_figure(
        told.stem, f"Power of {plan.name}", told.table, told.needed, told.wanted, plan.alpha
    )
    return [table, numbers, everything, *drawing.save(folder)]
