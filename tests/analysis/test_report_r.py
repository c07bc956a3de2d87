"""The R script beside a report, run as it lies there, gives the numbers of every model and difference that the report holds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from markupsafe import Markup

from analysis import load
from analysis.mixed import fit
from analysis.report import chapters
from analysis.report.blocks import Chapter, Material, ReportedFit
from analysis.report.content import gather
from analysis.report.numbering import ReportContent
from analysis.report.refitting import refit_lines, write_models
from analysis.report.write import write_files
from tests.analysis import cost_study, decision_study, word_study
from tests.analysis.conftest import Rehearsal
from tests.analysis.letter_study import PLANNED, TRUTH, study_rows, write_handover
from tests.analysis.measured_study import class_study, typed_study
from tests.analysis.r_programs import run_models

pytestmark = pytest.mark.r


def further_models(material: Material) -> Chapter:
    """A chapter whose models are of other families: times on their own scale, logs with another structure, counts."""
    trials = material.tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader_kind"] == "human")]
    rows = used[used["reading_time"] > 0][["reading_time", "position", "participant_id", "item_id"]].copy()
    rows["seconds"] = rows["reading_time"] / 1000
    levels = {"position": ["intact", "initial", "internal", "final"]}
    counts = used.groupby(["participant_id", "position"], as_index=False).agg(
        right=("correct", "sum"), all=("correct", "size")
    )
    counts["wrong"] = counts["all"] - counts["right"].astype(int)
    counts["right"] = counts["right"].astype(int)
    fits = (
        ReportedFit(
            "times on their own scale",
            fit("seconds ~ position + (1 | participant_id)", rows, "Gamma", link="identity", levels=levels),
        ),
        ReportedFit("ML", fit("log(seconds) ~ position + (1 | participant_id) + (1 | item_id)", rows, reml=False, levels=levels)),
        ReportedFit("counts", fit("cbind(right, wrong) ~ position + (1 | participant_id)", counts, "binomial", levels=levels)),
        ReportedFit("a Poisson model", fit("wrong ~ position + (1 | participant_id)", counts, "poisson", levels=levels)),
    )  # fmt: skip
    return Chapter("further", "Further models", (Markup("Models of other families."),), fits=fits)


LINE = re.compile(r"model (\d+): (.*)")
VERDICT = re.compile(r"(.*?)(: (?:agrees|DIFFERS).*)")


def models_of(lines: list[str]) -> dict[int, str]:
    return {int(one[1]): one[2] for one in map(LINE.fullmatch, lines) if one}


def run_in_r(report: Path, *asked: object) -> tuple[int, dict[int, str]]:
    """Return the program's status and what it says of each model."""
    status, lines = run_models(report, *asked)
    return status, models_of(lines)


def estimates_of(lines: list[str]) -> dict[str, str]:
    """Return what the program says of each set of recomputed differences in shares."""
    return {one[1]: one[2] for one in map(VERDICT.fullmatch, lines) if one}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ReportContent, Path]]:
    folder = tmp_path_factory.mktemp("report")
    rows = study_rows(human=12, models=("restorer",), items=12, seed=5).assign(rt=None)
    tables = load(write_handover(folder / "handover", rows, planned=PLANNED))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "declared", lambda: [chapters.Declared("further", further_models)])
        gathered = gather(tables)
    yield gathered, write_files(gathered, folder, datetime(2026, 11, 21, tzinfo=UTC)).parent


@pytest.fixture(scope="module")
def lines(content: tuple[ReportContent, Path]) -> list[str]:
    """What the whole program prints of a report in which nothing is wrong."""
    status, lines = run_models(content[1])
    assert status == 0
    return lines


def test_each_model_of_a_report_agrees_with_lme4(
    content: tuple[ReportContent, Path], lines: list[str]
) -> None:
    fits = [one.fit for one in content[0].all_fits()]
    assert len(fits) >= 6
    assert {("binomial", "logit"), ("gaussian", "identity"), ("Gamma", "identity"), ("poisson", "log")} <= {
        (one.family, one.link) for one in fits
    }
    said = models_of(lines)
    assert sorted(said) == list(range(1, len(fits) + 1))
    for number, line in said.items():
        assert line.startswith("agrees; largest relative difference"), line
        assert ("criterion" in line) >= (fits[number - 1].family == "Gamma")


def test_every_planned_estimate_is_recomputed_in_base_r(
    content: tuple[ReportContent, Path], lines: list[str]
) -> None:
    gathered, report = content
    program = (report / "models.R").read_text("utf-8")
    planned = next(one.analysis for one in gathered.planned if one.analysis.plan.measure.name == "correct")
    for one in planned.contrasts:
        assert f"estimate = {one.estimate:.12g}, se = {one.se:.12g}" in program
        assert f"low = {one.low:.12g}, high = {one.high:.12g}" in program
    said = estimates_of(lines)
    assert all(said[name].startswith(": agrees") for name in ("estimates 1", "family measure: correct"))


@pytest.mark.usefixtures("without_figures")
def test_a_one_sided_test_without_data_counts_in_r_as_it_does_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapters, "declared", list)
    rows = study_rows(human=6, items=8, seed=5).query("position != 'final'")
    planned = {"comprehension": PLANNED["comprehension"] | {"between": ["human"], "direction": "greater"}}
    gathered = gather(load(write_handover(tmp_path / "handover", rows, planned=planned)))
    contrasts = gathered.planned[0].analysis.contrasts
    assert sorted(one.estimable for one in contrasts) == [False, True]
    report = write_files(gathered, tmp_path, datetime(2026, 11, 21, tzinfo=UTC)).parent
    status, lines = run_models(report, "estimates")
    assert status == 0 and estimates_of(lines)["family measure: correct"].startswith(": agrees")


def test_a_wrong_estimate_in_a_report_is_found(content: tuple[ReportContent, Path], tmp_path: Path) -> None:
    report = tmp_path / "wrong"
    shutil.copytree(content[1], report)
    program = (report / "models.R").read_text("utf-8")
    for name in ("estimate", "df", "high"):
        pattern = rf"(label = [^\n]*?\b{name} = )(-?[\d.e+-]+)"
        program, found = re.subn(pattern, lambda m: f"{m[1]}{float(m[2]) + 5:.12g}", program, count=1)
        assert found == 1
    (report / "models.R").write_text(program, "utf-8")
    status, lines = run_models(report, "estimates")
    assert status == 1
    said = estimates_of(lines)
    for where, kind in (
        ("estimates 1", "estimates"),
        ("estimates 1", "degrees"),
        ("family measure: correct", "ends of intervals"),
    ):
        assert said[where].startswith(": DIFFERS") and kind in said[where]


WRONG = {
    2: {
        "b = c(": "tested differences",
        "df = c(": "degrees of freedom",
        "estimate = c(": "fixed effects",
        "variance = c(": "variance components",
        "loglik = ": "log-likelihood",
    },
    5: {"se = c(": "standard errors"},
}
"""Which numbers of which models are changed by a twentieth, and what R then says differs."""


def test_a_wrong_number_in_a_report_is_found(content: tuple[ReportContent, Path], tmp_path: Path) -> None:
    report = tmp_path / "wrong"
    shutil.copytree(content[1], report)
    head, *models = (report / "models.R").read_text("utf-8").split("\n# Model ")
    for number, before in ((number, before) for number, kinds in WRONG.items() for before in kinds):
        pattern = rf"(\n?  (?:linear.*)?\b{re.escape(before)})(-?[\d.e+-]+)"
        models[number - 1], found = re.subn(
            pattern, lambda m: f"{m[1]}{float(m[2]) - 0.05 * abs(float(m[2])) - 0.001:.12g}", models[number - 1], count=1
        )  # fmt: skip
        assert found == 1, (number, before)
    (report / "models.R").write_text("\n# Model ".join([head, *models]), "utf-8")
    status, said = run_in_r(report, *WRONG)
    assert status == 1 and sorted(said) == sorted(WRONG)
    for number, kinds in WRONG.items():
        assert said[number].startswith("DIFFERS by"), said[number]
        assert all(kind in said[number] for kind in kinds.values()), said[number]


PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def in_r(value: Any) -> str:
    """Write a value of a JSON file as R's jsonlite reads it without simplifying."""
    if isinstance(value, dict):
        return "list(" + ", ".join(f"`{name}` = {in_r(one)}" for name, one in value.items()) + ")"
    if isinstance(value, list):
        return "list(" + ", ".join(map(in_r, value)) + ")"
    return "NULL" if value is None else json.dumps(value)


def test_the_documented_lines_of_r_find_the_rows_of_each_table(rehearsal: Rehearsal, tmp_path: Path) -> None:
    folder = rehearsal.page.parent
    told = json.loads((folder / "numbers.json").read_text("utf-8"))
    traced = [one for one in told["tables"] if one["where"] is not None and one["file"].endswith(".csv")]
    assert any(one["where"] for one in traced) and any(not one["where"] for one in traced)
    lines = PAGE.read_text("utf-8").split("```r\ntold <- ")[1].split("```")[0].split("\n", 1)[1]
    assert lines.rstrip().endswith("== told$rows")
    code = "".join(
        f"told <- {in_r({name: one[name] for name in ('file', 'where', 'rows')})}\n{lines}\n"
        for one in traced
    )
    (tmp_path / "rows.R").write_text(code, "utf-8")
    done = subprocess.run(
        ["Rscript", str(tmp_path / "rows.R")], cwd=folder, capture_output=True, text=True, timeout=300, check=True
    )  # fmt: skip
    assert done.stdout.split() == ["[1]", "TRUE"] * len(traced)


@pytest.mark.full
def test_rows_of_many_trials_are_packed_and_read_by_r(
    content: tuple[ReportContent, Path], lines: list[str], tmp_path: Path
) -> None:
    found = write_models(content[0], tmp_path, many_rows=100)
    assert {Path(one.rows_file).suffix for one in found.values() if one.rows > 100} == {".gz"}
    assert all((tmp_path / one.rows_file).stat().st_size == one.size for one in found.values())
    assert not list((tmp_path / "models").glob("model_01.csv"))
    assert run_in_r(tmp_path, 1) == (0, {1: models_of(lines)[1]})


def test_a_model_without_a_maximum_is_said_to_have_none(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"right": [0, 1] * 20 + [1] * 20, "side": ["a"] * 40 + ["b"] * 20, "who": list("pqrst") * 12}
    )
    apart = fit("right ~ side + (1 | who)", rows, "binomial")
    assert apart.fixed["se"].max() > 100
    lines = list(refit_lines(1, "apart", apart, "rows.csv", None))
    assert lines[-1].endswith('no_maximum = "sideb grows without end")')


def test_a_variance_that_makes_every_answer_certain_has_no_maximum() -> None:
    who, items = ("model", *"pqrstuvw"), range(24)
    rows = pd.DataFrame(
        [
            (one, item, side, int(one == "model" and item % 3 == 0))
            for one in who
            for item in items
            for side in "ab"
        ],
        columns=["who", "item", "side", "missing"],
    )
    certain = fit("missing ~ side + (1 | who) + (1 | item)", rows, "binomial")
    lines = list(refit_lines(1, "certain", certain, "rows.csv", None))
    assert re.search(r'no_maximum = "[^"]*the standard deviation by item\b', lines[-1])


FORMS = ("as written", "mild", "strong")
MODELS = {
    "typed": (),
    "costs": (
        "Reading time by form",
        "milliseconds (Gamma, identity link)",
        "correct responses of large by source",
    ),
    "words": ("times of single words by position", "milliseconds (Gamma, identity link)"),
    "decisions": ("speed", "milliseconds (Gamma, identity link)"),
    "classes": ("signal detection by position", "correct responses of net by source"),
    "known effects": ("Recovery of response time", "reading", "milliseconds (Gamma, identity link)"),
}
"""Small studies, and parts of the titles of models that their reports must hold."""


def small_study(name: str, folder: Path, request: pytest.FixtureRequest) -> Path:
    """Write the handover of a study with the models above."""
    if name == "words":
        return word_study.study(folder, people=8, items=24)
    if name == "decisions":
        return decision_study.study(folder, request.getfixturevalue("shared"), people=40)
    if name == "typed":
        return typed_study(folder)
    if name == "classes":
        return class_study(folder)
    if name == "costs":
        return cost_study.study(folder, FORMS, people=18, models=("small", "large"), items=18)
    people_alone = {**PLANNED, "comprehension": {**PLANNED["comprehension"], "between": ["human"]}}
    rows = study_rows(simulated=16, baselines=("random", "always"), items=16)
    return write_handover(folder, rows, planned=people_alone, truth=TRUTH)


@pytest.mark.full
def test_a_search_of_lme4_that_stops_short_is_carried_on(
    content: tuple[ReportContent, Path], tmp_path: Path
) -> None:
    report = tmp_path / "short"
    shutil.copytree(content[1], report)
    head, first, *others = (report / "models.R").read_text("utf-8").split("\n# Model ")
    assert "m <- glmer(" in first
    first, found = re.subn(r"fixef = c\(([-\d.e]+)", lambda m: f"fixef = c({float(m[1]) + 0.005:.12g}", first)
    first, ended = re.subn(r"maxfun = 1e6", "maxfun = 2", first)
    assert found == ended == 1
    (report / "models.R").write_text("\n# Model ".join([head, first, *others]), "utf-8")
    status, said = run_in_r(report, 1)
    assert status == 0 and said[1].startswith("agrees"), said
    assert "deviance" in said[1]
