"""Chapters on exclusions, on other ways to prepare the data, and on robustness: what they say is what the data hold."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from analysis import Tables, apa, load
from analysis.carrying_out import carry_out_all
from analysis.figures import Drawing
from analysis.mixed import lme4_program
from analysis.multiverse import accuracy_multiverse, time_multiverse
from analysis.planned import plans
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import REFERENCE, Chapter, Material
from analysis.report.chapters import alternatives, missing, robustness
from analysis.report.chapters.alternatives_tables import same_conclusion
from analysis.report.chapters.robustness_shown import by_class, fitted_models
from analysis.results import Analysis
from analysis.robustness import deviations, drawn_readers
from tests.analysis.letter_study import LEVELS, PLANNED, study_rows, trial_rows, write_handover

WRITERS = {"missing": missing.write, "alternatives": alternatives.write, "robustness": robustness.write}
EXCLUDE = {
    "trials": {"reading_time": "outside 200 ms to 60 s"},
    "sessions": {"attention_checks_failed": "2 or more"},
}
READING = {"reading": {**PLANNED["reading"], "contrasts": ["initial - intact"]}}


def handed(folder: Path, rows: pd.DataFrame, **dictionary: Any) -> Tables:
    return load(write_handover(folder, rows.reset_index(drop=True), **dictionary))


def material(tables: Tables) -> Material:
    return Material(tables, tuple(carry_out_all(plans(tables), tables)), kinds_of(tables.trials))


def texts(chapter: Chapter) -> str:
    return " ".join(str(one) for one in chapter.blocks if isinstance(one, Markup))


def table(chapter: Chapter, name: str) -> ApaTable:
    return next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)


def figure(chapter: Chapter, name: str) -> Drawing:
    return next(one for one in chapter.blocks if isinstance(one, Drawing) and one.name == name)


def under(found: ApaTable, head: str) -> list[tuple[str, ...]]:
    """Return the rows below a head of a table."""
    rows: list[tuple[str, ...]] = []
    inside = False
    for row in found.rows:
        if isinstance(row, Head):
            inside = row[0] == head
        elif inside:
            rows.append(row)
    return rows


def lossy_rows() -> pd.DataFrame:
    """People whose answers are missing more often in the initial condition, one flagged session, one model, one odd item."""
    rows = study_rows(human=20, models=("restorer",), items=24, timeouts=0.0)
    draw = np.random.default_rng(8).random(len(rows))
    person = (rows["reader_kind"] == "human") & ~rows["is_practice"].astype(bool)
    lost = person & (draw < rows["position"].map({"initial": 0.3}).fillna(0.05))
    rows["correct"] = rows["correct"].astype(object)
    hard = person & (rows["item_id"] == "s07")
    rows.loc[hard, "correct"] = False
    rows.loc[lost, "response_status"] = "timeout"
    rows.loc[lost, ["correct", "response"]] = None
    rows.loc[rows["reader"] == "P001", "excluded_reason"] = "missed both checks"
    return rows


@dataclass(frozen=True)
class Written:
    tables: Tables
    material: Material
    chapters: dict[str, Chapter]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    planned = {"comprehension": PLANNED["comprehension"], **READING}
    tables = handed(tmp_path_factory.mktemp("lossy"), lossy_rows(), planned=planned, exclude=EXCLUDE)
    given = material(tables)
    found = {name: write(given) for name, write in WRITERS.items()}
    return Written(tables, given, {name: one for name, one in found.items() if one is not None})


def test_every_table_and_figure_that_is_named_is_there_once(written: Written) -> None:
    assert set(written.chapters) == set(WRITERS)
    for chapter in written.chapters.values():
        named = set(REFERENCE.findall(texts(chapter)))
        tables = [one.name for one in chapter.blocks if isinstance(one, ApaTable)]
        figures = [one.name for one in chapter.blocks if isinstance(one, Drawing)]
        assert len(set(tables)) == len(tables) and len(set(figures)) == len(figures)
        there = {("table", name) for name in tables} | {("figure", name) for name in figures}
        assert named <= there
        assert {("figure", name) for name in figures} <= named


def test_accuracy_stands_three_ways_side_by_side(written: Written) -> None:
    trials = written.tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader"].str.startswith("P"))]
    own = used[used["position"] == "initial"]
    valid = own["response_status"] == "valid"
    right = (own["correct"] == 1).sum()
    ways = table(written.chapters["missing"], "three_ways_position")
    row = next(one for one in under(ways, "People") if one[0] == "initial")
    assert row[1] == str(len(own))
    expected = [
        100 * right / len(own),
        100 * right / valid.sum(),
        100 * (right + 0.5 * (~valid).sum()) / len(own),
    ]
    assert [row[3], row[5], row[7]] == [f"{one:.1f}" for one in expected]
    assert row[9] == f"[{expected[0]:.1f}, {100 * (right + (~valid).sum()) / len(own):.1f}]"
    machine = under(ways, "restorer")[0]
    assert machine[3] == machine[5] == machine[7]


def test_percentages_in_the_prose_are_those_of_the_tables(written: Written) -> None:
    chapter = written.chapters["missing"]
    said = next(
        str(one) for one in chapter.blocks if isinstance(one, Markup) and "three_ways_position" in one
    )
    found = re.findall(r"(\d+\.\d)%", said)
    cells = {
        cell
        for name in ("three_ways_position", "missing_position")
        for row in table(chapter, name).rows
        for cell in row
    }
    assert len(found) == 4
    assert set(found) <= {str(cell) for cell in cells}


def test_missing_answers_have_a_model_that_is_exploratory_and_in_the_r_script(written: Written) -> None:
    chapter = written.chapters["missing"]
    assert [one.title for one in chapter.fits] == ["missing answers by position"]
    assert "No answer of the model restorer is missing" in texts(chapter)
    assert "Benjamini" in table(chapter, "missing_model_position_differences").note
    row = table(chapter, "missing_model_position_differences").rows[1]
    assert row[0] == "initial − internal" and float(row[1]) > 1.0
    steps = [one for one in chapter.blocks if isinstance(one, ApaTable) and one.name.endswith("_steps")]
    assert all(one.rows[-1][2].endswith("reduce") or "reported" in one.rows[-1][2] for one in steps)


def test_the_flow_counts_readers_sessions_and_trials_to_the_end(written: Written) -> None:
    flow = table(written.chapters["missing"], "exclusion_flow")
    rows = under(flow, "People")
    assert rows[0][:2] == ("Recorded", "20")
    left = next(one for one in rows if one[0] == "left out: missed both checks")
    assert left[1:5] == ("19", "1", "19", "1")
    used = written.tables.trials["excluded_reason"].isna() & (written.tables.trials["reader_kind"] == "human")
    assert rows[-1][5] == str(int(used.sum()))
    assert under(flow, "People: times that count, reading time")[0][0] == "Analysed"
    assert "flagged 1 session (missed both checks: 1)" in texts(written.chapters["missing"])


def test_the_multiverse_of_times_is_in_table_and_figure(written: Written) -> None:
    chapter = written.chapters["alternatives"]
    reading = next(one for one in plans(written.tables) if one.measure.name == "reading_time")
    found = time_multiverse(written.tables, reading)
    own = found[found["is_primary"]].iloc[0]
    summary = next(one for one in table(chapter, "multiverse_2").rows if "percent" in one[0])
    assert summary[1] == str(int((found["scale"] == "log").sum()))
    assert summary[2] == f"{own['estimate']:.1f} [{own['low']:.1f}, {own['high']:.1f}]"
    each = table(chapter, "multiverse_2_universes")
    assert len([one for one in each.rows if not isinstance(one, Head)]) == len(found)
    assert sum("the study's own)" in one[0] for one in each.rows) == 1
    assert set(found["sessions"]) == {"as the study excluded", "excluded sessions back"}
    drawn = figure(chapter, "multiverse_2_people")
    assert "initial − intact, milliseconds" in drawn.alternative


def test_models_with_the_flagged_session_back_stand_beside_the_reported_ones(written: Written) -> None:
    chapter = written.chapters["alternatives"]
    found = table(chapter, "sessions_1")
    assert found.columns == ("Difference", "As the study excluded", "Excluded sessions back")
    titles = [one.title for one in chapter.fits]
    assert titles == ["comprehension, excluded sessions back", "reading, excluded sessions back"]
    own, again = written.material.analyses[0], chapter.fits[0].fit
    assert own.model is not None and again.nobs == own.model.rows + 24
    one = own.contrasts[0]
    row = next(row for row in found.rows if row[0] == f"{one.label}, People")
    assert row[1].startswith(f"{one.estimate:.2f}".replace("-", "−"))
    assert row[2] != row[1]


def test_with_failures_otherwise_the_conclusion_is_said_to_change(tmp_path: Path) -> None:
    """People never err, they only run out of time: the difference is there with failures as wrong, and gone without them."""
    rows = study_rows(human=12, items=24, timeouts=0.0).assign(correct=True)
    rows["correct"] = rows["correct"].astype(object)
    lost = (
        (rows["position"] == "initial") & (rows["trial_index"] % 3 == 0) & ~rows["is_practice"].astype(bool)
    )
    rows.loc[lost, "response_status"], rows.loc[lost, "correct"] = "timeout", None
    planned = {"c": {"measure": "correct", "compare": "position", "between": ["human"]}}
    planned["c"]["contrasts"] = ["initial - intact"]
    tables = handed(tmp_path, rows, planned=planned)
    found = accuracy_multiverse(tables, plans(tables)[0])
    assert same_conclusion(found).tolist() == [True, False, True]
    chapter = alternatives.write(material(tables))
    assert chapter is not None
    assert "2 of 3 universes lead to the conclusion of the study&#39;s own choice" in texts(chapter)
    assert "most often with failures left out" in texts(chapter)


def test_the_heat_map_has_the_shares_by_hand(written: Written) -> None:
    chapter = written.chapters["robustness"]
    trials = written.tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader"] == "restorer")]
    shares = 100 * used.assign(right=used["correct"] == 1).groupby("position")["right"].mean()
    told = ", ".join(f"{level} {apa.number(shares[level], 0)}" for level in LEVELS)
    assert f"restorer: {told}" in figure(chapter, "heat_map_position").alternative


def test_a_heat_map_of_many_readers_and_classes_fits_a_page_and_its_heads_are_words(tmp_path: Path) -> None:
    rows = study_rows(human=6, models=("one", "two", "three", "four"), items=24)
    number = pd.Series(pd.factorize(rows["item_id"])[0], index=rows.index)

    def drawn(classes: int) -> Drawing:
        tables = handed(tmp_path / str(classes), rows.assign(set="class_" + (number % classes).astype(str)))
        found = by_class(Material(tables, (), kinds_of(tables.trials)))
        return next(one for one in found if isinstance(one, Drawing) and one.name == "heat_map_position")

    all_four, four_of_six = drawn(4), drawn(6)
    heads = {text.get_text() for text in all_four.figure.axes[0].texts}
    assert {"class 0", "class 1", "class 2", "class 3"} <= heads
    assert "largest of" not in all_four.note and "The 4 largest of 6 classes are shown." in four_of_six.note
    assert four_of_six.figure.get_figheight() == all_four.figure.get_figheight() < 8


def test_a_model_has_no_deviation_where_participants_alone_differ(written: Written) -> None:
    analysis = next(one for one in written.material.analyses if len(one.groups) > 1)
    assert analysis.model is not None and analysis.model.source is not None
    found = deviations(analysis.model.source)
    people = found[found["group"] == "participant"]
    assert len(people) and not people["level"].isin(analysis.groups).any()


def test_the_most_deviating_item_is_named_and_modes_are_the_models_own(written: Written) -> None:
    analysis = next(one for one in written.material.analyses if one.plan.measure.name == "correct")
    assert analysis.model is not None and analysis.model.source is not None
    found = deviations(analysis.model.source)
    items = found[(found["group"] == "item") & (found["term"] == "(Intercept)")]
    assert items.iloc[0]["level"].endswith("s07")
    modes = analysis.model.source.modes["item"]["(Intercept)"]
    assert items["mode"].tolist() == pytest.approx(sorted(modes.tolist()))
    assert ((items["high"] - items["low"]) / items["sd"]).to_numpy() == pytest.approx(2 * 1.959964, rel=1e-5)
    chapter = written.chapters["robustness"]
    rows = [one for one in table(chapter, "deviations_1").rows if one[0].startswith("Items: intercept")]
    assert rows and rows[0][4].startswith(str(items.iloc[0]["level"]))
    assert "s07" in figure(chapter, "caterpillar_1").alternative


def test_models_without_sets_of_items_go_into_the_r_script(written: Written) -> None:
    chapter = written.chapters["robustness"]
    titles = [one.title for one in chapter.fits]
    assert [one for one in titles if one.startswith("comprehension")] == [
        f"comprehension, without items {n} of 4" for n in range(1, 5)
    ]
    found = table(chapter, "without_items_1")
    assert found.origin is not None and len(found.origin.fits) == 4
    row = next(one for one in found.rows if one[0] == "initial − internal, People")
    betas = [one.fixed.set_index("term")["estimate"] for one in found.origin.fits]
    rest = [one["positioninitial"] - one["positioninternal"] for one in betas]
    assert (row[2], row[3]) == tuple(f"{one:.2f}".replace("-", "−") for one in (min(rest), max(rest)))


SAY = r"""
cat("JSON", sprintf('{"terms": [%s], "estimate": [%s], "loglik": %.12g, "rows": %d}',
  paste(sprintf('"%s"', names(fixef(m))), collapse = ","), paste(sprintf("%.12g", fixef(m)), collapse = ","),
  as.numeric(logLik(m)), nobs(m)), "\n")
"""


@pytest.mark.r
def test_lme4_refits_the_models_of_these_chapters(written: Written, tmp_path: Path) -> None:
    by_title = {one.title: one.fit for chapter in written.chapters.values() for one in chapter.fits}
    chosen = [
        by_title[title]
        for title in (
            "missing answers by position",
            "comprehension, excluded sessions back",
            "comprehension, without items 2 of 4",
            "reading, without items 1 of 4",
        )
    ]
    programs = []
    for number, fit in enumerate(chosen):
        fit.model.frame.data.to_csv(tmp_path / f"{number}.csv", index=False)
        programs.append(f"{lme4_program(fit, f'{number}.csv')}\n{SAY}")
    (tmp_path / "models.R").write_text("\n".join(programs), "utf-8")
    done = subprocess.run(
        ["Rscript", "models.R"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("JSON ")]
    for ours, theirs in zip(chosen, said, strict=True):
        assert list(ours.fixed["term"]) == theirs["terms"] and ours.nobs == theirs["rows"]
        away = (ours.fixed["estimate"] - np.array(theirs["estimate"])) / ours.fixed["se"]
        assert away.abs().max() < 2e-3
        assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-3)


def test_a_conclusion_that_hangs_on_one_set_of_items_is_named(tmp_path: Path) -> None:
    flat = dict.fromkeys(LEVELS, 0.0) | {"intercept": 0.5}
    draw = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for number in range(12):
        own = trial_rows(f"P{number:02d}", "human", number, 14, draw, flat, None, all_conditions=True)
        for row in own:
            odd = row["item_id"] in {"s01", "s02", "s03", "s04"}
            row["set"] = "odd" if odd else "plain"
            if odd and row["position"] == "initial" and not row["is_practice"]:
                row["correct"], row["response"] = bool(draw.random() < 0.02), "no"
        rows += own
    planned = {"a": {"measure": "correct", "compare": "position", "between": ["human"]}}
    planned["a"]["contrasts"] = ["initial - intact"]
    chapter = robustness.write(material(handed(tmp_path, pd.DataFrame(rows), planned=planned)))
    assert chapter is not None
    assert "These conclusions hang on which items are in: initial − intact, People (1 set of 2)." in texts(
        chapter
    )
    assert under(table(chapter, "classes_position"), "odd")[0][0] == "People"


def test_checks_without_random_effects_are_adjusted_together(written: Written) -> None:
    chapter = written.chapters["robustness"]
    found = table(chapter, "without_random_effects_1")
    heads = [one[0] for one in found.rows if isinstance(one, Head)]
    assert [one.split(" (")[0] for one in heads] == ["Clusters: participants", "Clusters: items"]
    assert "Benjamini" in found.note
    assert "conclusions of the mixed model about 0 are the same" in texts(chapter)


def test_ways_of_asking_are_told_with_their_model(tmp_path: Path) -> None:
    flat = dict.fromkeys(LEVELS, 0.0) | {"intercept": 0.3}
    draw = np.random.default_rng(4)
    rows: list[dict[str, Any]] = []
    for n, prompt in enumerate((-1.4, -0.7, 0.0, 0.7, 1.4)):
        shift = flat | {"intercept": 0.3 + prompt}
        made = trial_rows("m", "model", 0, 16, draw, shift, None, all_conditions=True)
        named = {"session_id": f"m-{n}", "prompt_variant": n + 1, "temperature": 1.0}
        rows += [row | named for row in made if not row["is_practice"]]
    chapter = robustness.write(material(handed(tmp_path, pd.DataFrame(rows))))
    assert chapter is not None
    assert [one.title for one in chapter.fits] == ["right answers of m by source"]
    found = {row[0]: row for row in under(table(chapter, "asked_position"), "m")}
    assert float(found["prompt"][2]) == pytest.approx(1.0, abs=0.5)
    assert found["session"][2] == "–"
    assert "Right answers of the model m differ by prompt" in texts(chapter)
    assert "(1 | source_prompt_variant)" in texts(chapter)


def test_of_a_big_study_whole_readers_are_drawn_and_the_chapter_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = study_rows(human=60, models=("restorer",), items=8)
    tables = handed(tmp_path, rows)
    smaller, told = drawn_readers(tables, 200)
    used = smaller.trials[smaller.trials["excluded_reason"].isna()]
    people = used[used["reader_kind"] == "human"]
    assert 20 <= people["reader"].nunique() < 60
    assert set(people.groupby("reader").size()) == {8}
    assert drawn_readers(tables, 200)[1] == told
    assert f"People: {people['reader'].nunique()} of 60 participants" in told
    assert drawn_readers(tables, 10_000) == (tables, "")
    monkeypatch.setattr(alternatives, "MOST_TRIALS", 200)
    plan = next(one for one in plans(tables) if one.measure.name == "reading_time")
    unfitted = Analysis(plan, None, plan.groups, plan.levels, (), "Holm", ())
    chapter = alternatives.write(Material(tables, (unfitted,), kinds_of(tables.trials)))
    assert chapter is not None and told in texts(chapter)


WEAK: dict[str, dict[str, Any]] = {
    "people only": {"human": 4, "items": 8},
    "models only": {"models": ("a", "b"), "items": 8},
    "one participant": {"human": 1, "items": 8},
    "one item": {"human": 4, "items": 1},
    "baselines only": {"baselines": ("random", "oracle"), "items": 8},
    "pilots only": {"pilot": True, "items": 8},
    "simulated": {"simulated": 4, "models": ("a",), "items": 8},
}
RARE = ("people only", "one item", "pilots only")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "readers",
    [
        pytest.param(one, id=name, marks=[pytest.mark.full] if name in RARE else [])
        for name, one in WEAK.items()
    ],
)
def test_a_weak_study_has_what_can_be_said_and_breaks_nothing(
    tmp_path: Path, readers: dict[str, Any]
) -> None:
    given = material(handed(tmp_path, study_rows(**readers)))
    found = {name: write(given) for name, write in WRITERS.items()}
    assert found["missing"] is not None
    marks = found["missing"].marks
    assert ("simulated readers: not data" in marks) is ("simulated" in readers)
    assert ("baselines: not data" in marks) is ("baselines" in readers)
    for chapter in found.values():
        for one in chapter.blocks if chapter is not None else ():
            assert not isinstance(one, ApaTable) or all(
                "nan" not in str(cell) for row in one.rows for cell in row
            )
    if "simulated" in readers:
        assert "people" not in texts(found["missing"]).lower()


def test_a_study_without_a_trial_has_none_of_these_chapters(tmp_path: Path) -> None:
    given = material(handed(tmp_path, study_rows(human=1, items=4).iloc[:0]))
    assert [write(given) for write in WRITERS.values()] == [None, None, None]


def test_three_analyses_of_times_leave_none_of_accuracy_unchecked(tmp_path: Path) -> None:
    rows = study_rows(human=8, items=12, timeouts=0.0)
    found = material(handed(tmp_path, rows, planned=PLANNED)).analyses
    of = {one.plan.measure.name: one for one in found if one.plan.planned}
    times, right = of["reading_time"], of["correct"]
    explored = replace(right, plan=replace(right.plan, planned=False))
    assert fitted_models([explored, times, times, times, right]) == [times, right, times, times, explored]
    assert explored not in fitted_models([explored, times, right], planned=True)
