"""What is put into simulated readers and an oracle with lapses comes back out of a report: server, store, scoring, models, tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from analysis.report import chapters
from tests.experiment.commands import change, worked

READERS, REPLICATES, LAPSES = 48, 4, 0.3
ACCURACY = {"initial": -1.4, "internal": -0.5, "final": -0.9}
TIME = {"initial": 0.30, "internal": 0.10, "final": 0.18}
TRUTH = {
    "accuracy": {
        "scale": "logit", "intercept": 2.2, "effects": {"position": ACCURACY}, "participant_sd": 0.6, "item_sd": 0.5,
    },
    "time": {
        "scale": "log_ms", "intercept": 7.2, "effects": {"position": TIME}, "participant_sd": 0.2, "item_sd": 0.08,
        "slope_sd": 0.05, "residual_sd": 0.25,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a study of letter positions, let readers with these effects and the oracle take part, and report."""
    folder = tmp_path_factory.mktemp("whole") / "positions"
    worked("new", folder, "--from", "letter-position", "--part", "short")
    changes = (
        ('guesser: {use: "baseline:random"}',
         f'oracle: {{use: "baseline:oracle_with_lapses", lapse_rate: {LAPSES}}}'),
        ("between: [human]", "between: [human, oracle]"),
        ("prompt_variants: 5", f"prompt_variants: 1\n  replicates: {REPLICATES}"),
        (", time_limit: 10 s", ""),
    )  # fmt: skip
    change(folder / "study.yaml", *changes, count=1)  # of the plans the first, which is of accuracy
    (folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    worked("build", folder)
    worked("simulate", folder, "--readers", READERS)
    worked("run", folder)
    with pytest.MonkeyPatch.context() as patch:
        # chapters have tests and studies of their own
        patch.setattr(chapters, "declared", lambda: ())
        worked("report", folder)
    (made,) = (one for one in (folder / "reports").iterdir() if (one / "tables").is_dir())
    return made


def rows_of(report: Path, name: str) -> list[list[str]]:
    (path,) = (report / "tables").glob(f"table_[0-9sf]*_{name}.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def numbers(cell: str) -> list[float]:
    return [float(part.replace("−", "-")) for part in cell.strip("[]").split(",")]


def near(truth: float, low: float, high: float) -> bool:
    """Whether a truth is in an interval of twice the width: one in twenty 95% intervals does not contain it."""
    return abs(truth - (low + high) / 2) <= high - low


@pytest.mark.full
def test_position_costs_in_accuracy_and_time_lie_in_the_reports_intervals(report: Path) -> None:
    found, inside = {}, []
    head = ""
    for row in rows_of(report, "recovery"):
        if " − intact" in row[0]:
            found[head, row[0].removesuffix(" − intact")] = row
        elif not any(row[1:]):
            head = row[0]
    for title, given in (("Accuracy (log odds)", ACCURACY), ("Reading time (log ms)", TIME)):
        for level, truth in given.items():
            row = found[title, level]
            low, high = numbers(row[4])
            assert near(truth, low, high), row
            assert high - low < 1.6, "an interval that says something"
            inside.append(low <= truth <= high)
            assert float(row[1].replace("−", "-")) == pytest.approx(truth, abs=0.005)
    assert len(inside) == 6 and sum(inside) >= 4


@pytest.mark.full
def test_the_rate_of_the_oracles_lapses_lies_in_the_reports_interval(report: Path) -> None:
    (row,) = (row for row in rows_of(report, "recovery") if row[0] == "lapses of oracle")
    low, high = numbers(row[4])
    assert near(LAPSES, low, high) and high - low < 0.25
    assert row[-1] == ("yes" if low <= LAPSES <= high else "no")


def share(level: str) -> float:
    """Return the percentage of correct answers that the effects of a level give, over participants and items."""
    sd = np.hypot(TRUTH["accuracy"]["participant_sd"], TRUTH["accuracy"]["item_sd"])  # type: ignore[call-overload]
    among = stats.norm.ppf((np.arange(1000) + 0.5) / 1000) * sd
    return float(100 * special.expit(TRUTH["accuracy"]["intercept"] + ACCURACY[level] + among).mean())  # type: ignore[operator]


@pytest.mark.full
def test_the_planned_comparison_of_readers_holds_what_was_put_in(report: Path) -> None:
    """People differ between positions, the oracle does not: each difference, and the difference of differences."""
    planned = {f"{level} − internal": share(level) - share("internal") for level in ("initial", "final")}
    rows = rows_of(report, "differences_comprehension")
    place = next(row.index("95% CI") for row in rows if "95% CI" in row)
    seen = 0
    who = ""
    for row in rows:
        if row[0] in planned:
            truth = {"simulated readers": planned[row[0]], "oracle": 0.0}.get(who.lower(), planned[row[0]])
            low, high = numbers(row[place])
            assert near(truth, low, high), (who, row)
            seen += 1
        elif not any(row[1:]):
            who = row[0]
    assert seen == 6
