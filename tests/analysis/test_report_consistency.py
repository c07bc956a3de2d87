"""One quantity has one interval throughout a report, and no p contradicts the interval printed with it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import apa, load
from analysis.long_table import Roles, hand_over_table
from analysis.readers import spoken
from analysis.report.apa_tables import Head
from analysis.report.chapters import optional_names
from analysis.report.content import gather
from analysis.report.inline import plain_text
from analysis.report.layout import explains_dashes
from analysis.report.numbering import ReportContent
from analysis.report.provenance import figure_source
from analysis.report.results import in_mixed_model
from analysis.robustness import SAME, SCALE
from tests.analysis.conftest import Rehearsal
from tests.analysis.letter_study import LEVELS, study_rows, write_handover
from tests.analysis.word_study import with_forms

NUMBER = r"−?\d+(?:\.\d+)?"
SAID = re.compile(rf"({NUMBER}) percentage points[^.;\[]*(?:\.\d[^.;\[]*)*\[({NUMBER}, {NUMBER})\]")


def texts(content: ReportContent) -> list[str]:
    return [
        plain_text(one).replace("\u00a0", " ") for section in content.sections for one in section.paragraphs
    ]


def test_every_difference_has_one_interval_in_numbers_tables_and_text(rehearsal: Rehearsal) -> None:
    numbers = json.loads((rehearsal.page.parent / "numbers.json").read_text("utf-8"))
    found = defaultdict(set)
    for one in numbers["estimates"]:
        if one["scale"] == "percentage points":
            key = (one["measure"], one["contrast"], *one["readers"])
            estimate, low, high = (apa.number(one[name], 1) for name in ("estimate", "low", "high"))
            found[key].add((estimate, f"{low}, {high}"))
    assert found and all(len(own) == 1 for own in found.values())
    known = {pair for own in found.values() for pair in own}
    said = [match for text in texts(rehearsal.content) for match in SAID.findall(text)]
    assert len(said) >= len(known)
    assert set(said) <= known
    for one in rehearsal.content.all_tables():
        if one.table.columns[:2] == ("Difference", "Points"):
            place = next(n for n, name in enumerate(one.table.columns) if name.endswith("CI"))
            cells = {(row[1], row[place].strip("[]")) for row in one.table.rows if not isinstance(row, Head)}
            assert cells <= known


@pytest.fixture(scope="module")
def every_chapter(tmp_path_factory: pytest.TempPathFactory) -> ReportContent:
    """A report with all optional chapters on a study whose planned differences other chapters measure too."""
    folder = tmp_path_factory.mktemp("every") / "handover"
    planned = {
        "comprehension": {
            "measure": "correct",
            "compare": "position",
            "between": ["human", "restorer"],
            "contrasts": ["initial - internal", "final - intact"],
        },
        "reading": {
            "measure": "reading_time",
            "compare": "position",
            "between": ["human"],
            "contrasts": ["initial - intact", "final - internal"],
        },
    }
    rows = study_rows(human=10, items=12, models=("restorer", "second"), baselines=("random",))
    rows["rt"] = None  # one time is enough
    with_forms(write_handover(folder, rows, planned=planned))
    return gather(load(folder), wanted=optional_names())


Quantity = tuple[str, str, str]
"""Reader, measure and difference: ``people, accuracy, initial − intact``."""
SCALES: dict[str, Callable[[float], float]] = {
    "points": float,
    "log": float,
    "percent": lambda x: float(100 * np.expm1(x)),
    "ratio": lambda x: float(np.exp(x)),
}
LOGARITHMIC = ("log", "percent", "ratio")


def ends_of(content: ReportContent) -> dict[Quantity, set[tuple[float, float]]]:
    """Return the ends of every difference in the Results, in either direction and on every scale on which a table may print them.

    Those that no analysis tests are the effects on log times, which the table of the model holds.
    """
    found: dict[Quantity, set[tuple[float, float]]] = defaultdict(set)
    for section in content.sections:
        measure = section.analysis.plan.measure
        for one in section.analysis.contrasts:
            if one.estimable and not one.between:
                for sign, label in ((1, f"{one.first} − {one.second}"), (-1, f"{one.second} − {one.first}")):
                    low, high = sorted((sign * one.low, sign * one.high))
                    key = (spoken(one.groups[0]), measure.noun, label)
                    scales = LOGARITHMIC if measure.logged else ("points",)
                    found[key] |= {(SCALES[name](low), SCALES[name](high)) for name in scales}
    for section in content.sections:
        plan, model = section.analysis.plan, section.analysis.model
        for effect in model.coefficients if model is not None and plan.measure.logged else ():
            label = f"{effect.term.removeprefix(plan.factor)} − {section.analysis.levels[0]}"
            key = (spoken(section.analysis.groups[0]), plan.measure.noun, label)
            if key not in found:
                found[key] = {(SCALES[name](effect.low), SCALES[name](effect.high)) for name in LOGARITHMIC}
    return found


def rows_told(content: ReportContent) -> Iterator[tuple[str, Quantity, tuple[str, str]]]:
    """Yield each interval of a row that names a reader, a measure and two levels: table, quantity, and its ends as printed."""
    readers = ("people", "restorer", "second")
    nouns = {noun: noun for noun in ("reading time", "response time", "accuracy")}
    nouns |= {one.analysis.plan.name.casefold(): one.analysis.plan.measure.noun for one in content.sections}
    for one in content.all_tables():
        head, title = "", one.table.title.casefold()
        if "logistic" in title:  # log odds
            continue
        for row in one.table.rows:
            if isinstance(row, Head):
                head = str(row[0]).casefold()
                continue
            label, _, last = str(row[0]).casefold().partition(", ")
            label = label.replace(" vs. ", " − ")
            label = label.removeprefix("cost of ").replace(" minus cost of ", " − ")
            for column, cell in zip(one.table.columns[1:], map(str, row[1:]), strict=True):
                named = column.casefold()
                if named == "% correct" and label in LEVELS:  # means follow
                    break
                texts = (named.replace("model", str(row[1])), last, head, title)
                reader = next((name for text in texts for name in readers if name in text), "")
                noun = next((nouns[name] for text in texts for name in nouns if name in text), "")
                between = " vs. " in (last or head) or "−" in named
                if between or "ms" in row[1:2] or "relative" in named:
                    continue
                told = label
                if re.search(r"\b(lost|added)\b", named):
                    told = f"intact − {last}" if noun == "accuracy" else f"{last} − intact"
                elif "letter_contrasts" in one.table.name and noun == "accuracy":  # errors
                    told = " − ".join(reversed(label.split(" − ")))
                elif "Log ratio" in one.table.columns and label in LEVELS:
                    told = f"{label} − intact"
                ends = re.search(r"\[(−?[\d.,]+), (−?[\d.,]+)\]", cell)
                if ends and reader and noun:
                    yield one.table.name, (reader, noun, told), (ends[1], ends[2])


def test_no_table_of_any_chapter_prints_another_interval_of_a_difference(
    every_chapter: ReportContent,
) -> None:
    known = ends_of(every_chapter)
    compared: dict[str, set[Quantity]] = defaultdict(set)
    wrong = []
    for table, quantity, printed in rows_told(every_chapter):
        if quantity in known:
            compared[re.sub(r"^table_[sf]?\d+_", "", table)].add(quantity)
            places = len(printed[0].partition(".")[2])
            numbers = [float(end.replace("−", "-").replace(",", "")) for end in printed]
            if not any(
                abs(numbers[0] - low) <= 0.6 * 10**-places and abs(numbers[1] - high) <= 0.6 * 10**-places
                for low, high in known[quantity]
            ):
                wrong.append((table, quantity, printed))
    assert wrong == []
    assert {"answer", "letter_zones", "letter_contrasts", "cost_ratios_position"} <= set(compared)
    assert any(name.startswith("differences_") for name in compared)
    untested = ("people", "reading time", "internal − intact")
    places = {name for name, quantities in compared.items() if untested in quantities}
    assert places >= {"letter_zones", "cost_ratios_position"}
    assert any(name.startswith("model_") for name in places)


def test_the_note_of_a_table_explains_its_dashes(every_chapter: ReportContent) -> None:
    silent = [
        (one.table.name, one.table.columns[index])
        for one in every_chapter.all_tables()
        for row in one.table.rows
        if len(row) > 1 and not isinstance(row, Head)
        for index, cell in enumerate(row)
        if cell == apa.MISSING and not explains_dashes(one.table.note)
    ]
    assert silent == []


def test_a_difference_of_ratings_has_one_interval(tmp_path: Path) -> None:
    """The linear mixed model of ratings is a check: it has no interval of its own of what is tested."""
    rng = np.random.default_rng(3)
    pairs = [
        (f"p{person}", f"i{item}", "abc"[(person + item) % 3]) for person in range(9) for item in range(12)
    ]
    rows = pd.DataFrame(pairs, columns=["who", "item", "cond"])
    rows["rated"] = np.round(3.5 + (rows["cond"] == "b") + rng.normal(0, 1, len(rows)))
    when = datetime(2026, 3, 1, tzinfo=UTC)
    content = gather(
        load(hand_over_table(rows, Roles("who", "item", {"cond": []}, rating="rated"), tmp_path, when))
    )
    found = defaultdict(set)
    for one in content.all_tables():
        for row in one.table.rows:
            for label in ("b − a", "c − a"):
                if str(row[0]).replace(" vs. ", " − ") == label:
                    found[label] |= {
                        tuple(re.findall(NUMBER, ends)) for ends in re.findall(r"\[[^]]+\]", " ".join(row))
                    }
    assert set(found) == {"b − a", "c − a"} and all(len(ends) == 1 for ends in found.values())
    (model,) = (one.table for one in content.all_tables() if "_model_" in one.table.name)
    assert "adjusted p" not in model.note


def test_the_mixed_model_that_checks_a_difference_has_one_interval_and_one_outcome(
    rehearsal: Rehearsal,
) -> None:
    """The remark in the Results, the row of the matrix, the table of the model and the recovery take the same interval."""
    content, compared = rehearsal.content, 0
    for section in content.sections:
        analysis = section.analysis
        for other in () if analysis.companion is None else analysis.companion.contrasts:
            planned = next(
                one for one in analysis.contrasts if (one.label, one.groups) == (other.label, other.groups)
            )
            checked = content.matrix.checked(analysis, planned)
            if checked is not None and other.estimable:
                cell, compared = checked.cells[SCALE], compared + 1
                assert (cell.low, cell.high) == (other.low, other.high) and np.isnan(other.p_adjusted)
                remark = in_mixed_model(planned, analysis)
                assert (SAME if remark is None else remark[1]) == cell.outcome
                label, ends = f"{other.first} − {other.second}", (other.low, other.high)
                found = [one for one in content.recovery if (one.measure, one.label) == ("correct", label)]
                assert all((one.low, one.high) == ends for one in found if one.scale == "logit")
    assert compared
    for section in content.recovery_sections:
        assert section.analysis.companion is None and not section.analysis.contrasts


def test_no_p_contradicts_its_interval(rehearsal: Rehearsal) -> None:
    numbers = json.loads((rehearsal.page.parent / "numbers.json").read_text("utf-8"))
    assert numbers["estimates"]
    for one in numbers["estimates"]:
        excludes = (one["low"] is not None and one["low"] > 0) or (
            one["high"] is not None and one["high"] < 0
        )
        assert (one["p_adjusted"] < 1 - one["level"]) == excludes


def test_a_mean_of_accuracy_has_one_interval(rehearsal: Rehearsal) -> None:
    """Wherever a table prints a percentage of correct answers with an interval, it is the same one."""
    levels = set(rehearsal.content.tables.levels_of("position"))
    found = defaultdict(set)
    for one in rehearsal.content.all_tables():
        columns = one.table.columns
        means = [n for n, name in enumerate(columns) if name in ("M", "% correct", "Absolute %")]
        if (
            "by position" not in one.table.title
            or not means
            or "%" not in " ".join((*columns, one.table.title))
        ):
            continue
        reader = ""
        for row in one.table.rows:
            if isinstance(row, Head):
                reader = str(row[0])
            elif str(row[0]) in levels:
                for place in means:
                    beside = dict(
                        zip(columns[place + 1 : place + 4], row[place + 1 : place + 4], strict=True)
                    )
                    ends = [cell for name, cell in beside.items() if name in ("95% CI", "95% CI of absolute")]
                    if ends:
                        found[reader, str(row[0]), str(row[place])].add(str(ends[0]))
    assert found
    assert {key: own for key, own in found.items() if len(own) > 1} == {}


def test_a_difference_is_tested_once(every_chapter: ReportContent) -> None:
    tested = [
        (section.analysis.plan.measure.name, one.label, one.groups)
        for section in every_chapter.sections
        for one in section.analysis.contrasts
    ]
    assert len(tested) == len(set(tested))


def test_figures_of_checks_name_no_table_as_none_has_their_values(every_chapter: ReportContent) -> None:
    checks = [
        figure for figure in every_chapter.all_figures() if figure.drawing.name.startswith("model_checks_")
    ]
    assert checks
    unnamed = [
        figure for figure in every_chapter.all_figures() if not figure_source(figure, every_chapter).tables
    ]
    assert unnamed == checks, "all other figures name the tables that have their numbers"


def test_no_other_table_has_more_of_a_figures_numbers_than_its_source(every_chapter: ReportContent) -> None:
    tables = {
        one.number: {
            text
            for row in one.table.rows
            for text in (str(cell).split(" [")[0] for cell in row[1:])
            if "." in text and set(text) & set("123456789")
        }
        for one in every_chapter.all_tables()
    }
    better = []
    for figure in every_chapter.all_figures():
        named = figure_source(figure, every_chapter).tables
        assert set(named) <= set(tables)
        told = {number for number in re.findall(NUMBER, figure.drawing.alternative) if "." in number}
        # numbers of few digits are in many tables
        least = max(len(set().union(*(tables[number] & told for number in named))), len(told) // 2)
        more = {number for number, cells in tables.items() if named and len(cells & told) > least}
        better += [(figure.drawing.name, named, more)] if more else []
    assert not better, better
