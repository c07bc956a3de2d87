"""One quantity has one interval throughout a report, and no p contradicts the interval printed with it."""

from __future__ import annotations

import json
import re
from collections import defaultdict

from analysis.report.answer import answer
from analysis.report.apa_tables import Head
from analysis.report.chapters.robustness import contrast_in_words
from analysis.report.inline import plain_text
from analysis.report.nodes import Facts
from analysis.report.numbered import Content
from tests.analysis.conftest import Rehearsal

NUMBER = r"−?\d+(?:\.\d+)?"
SAID = re.compile(rf"({NUMBER}) percentage points[^.;\[]*(?:\.\d[^.;\[]*)*\[({NUMBER}, {NUMBER})\]")
P = re.compile(r"p (=|<|>) (\.\d+)")


def texts(content: Content) -> list[str]:
    return [
        plain_text(one).replace("\u00a0", " ") for section in content.sections for one in section.paragraphs
    ]


def test_every_difference_has_one_interval_in_numbers_tables_and_text(rehearsal: Rehearsal) -> None:
    numbers = json.loads((rehearsal.page.parent / "numbers.json").read_text("utf-8"))
    found = defaultdict(set)
    for one in numbers["estimates"]:
        if one["scale"] == "percentage points":
            key = (one["measure"], one["contrast"], *one["readers"])
            ends = f"{one['low']:.1f}, {one['high']:.1f}".replace("-", "−").replace("−0.0", "0.0")
            found[key].add((f"{one['estimate']:.1f}".replace("-", "−"), ends))
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


def test_no_p_contradicts_its_interval(rehearsal: Rehearsal) -> None:
    numbers = json.loads((rehearsal.page.parent / "numbers.json").read_text("utf-8"))
    assert numbers["estimates"]
    for one in numbers["estimates"]:
        excludes = (one["low"] is not None and one["low"] > 0) or (
            one["high"] is not None and one["high"] < 0
        )
        assert (one["p_adjusted"] < 1 - one["level"]) == excludes


def test_the_answer_reports_the_checks_of_every_planned_contrast(rehearsal: Rehearsal) -> None:
    (facts,) = [one for one in answer(rehearsal.content, "") if isinstance(one, Facts)]
    said = dict(facts.pairs)["Robustness"]
    planned = [one for section in rehearsal.content.planned for one in section.analysis.contrasts]
    assert planned and all(contrast_in_words(one) in said for one in planned if one.estimable)


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
