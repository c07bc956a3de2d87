"""The opening of a report tells each comparison once, in a paragraph for each difference between conditions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis import load
from analysis.report.content import gather
from analysis.report.in_short import in_short
from analysis.report.inline import plain_text
from analysis.report.numbered import Content, Section
from analysis.report.prose import paragraphs
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = pytest.mark.usefixtures("without_chapters")
PLAN = PLANNED["comprehension"]
FORMULA = "correct ~ reader_group * position + (1 | participant) + (1 | item)"
BOTH = {
    "people": PLAN | {"between": ["human"], "formula": "correct ~ position + (1 | participant) + (1 | item)"},
    "people and model": PLAN | {"formula": FORMULA},
}


@pytest.fixture
def content(tmp_path: Path, without_chapters: None) -> Content:
    rows = study_rows(human=24, models=("restorer",), items=24)
    return gather(load(write_handover(tmp_path, rows, planned=BOTH)))


def opening(content: Content) -> list[str]:
    return [plain_text(one.text) for one in in_short(content)]


def test_a_comparison_that_two_plans_share_is_told_once_with_what_each_found(content: Content) -> None:
    text = " ".join(opening(content))
    first, second = content.planned
    for label in ("initial", "final"):
        alike = f"between the {label} and the internal condition"
        people = [
            sentence
            for sentence in text.split(". ")
            if "model" not in sentence
            and (alike in sentence or f"in the {label} than in the internal" in sentence)
        ]
        assert len(people) == 1, people
    shared = [
        next(one for one in section.analysis.contrasts if one.groups == ("human",))
        for section in (first, second)
    ]
    for one in shared:
        assert one.points is not None
        assert f"{one.points:.1f}".replace("-", "−") in text
    assert text.count("the analysis People and model") == 2
    assert "further comparison" not in text, "six comparisons are told, two of them of both plans"


@pytest.mark.parametrize(
    ("p", "sign", "expected"),
    [
        (0.001, 1, "The analysis People and model finds the same ("),
        (0.001, -1, "In the analysis People and model it is the other way round ("),
        (0.4, 1, "In the analysis People and model it is not significant ("),
    ],
)
def test_what_the_second_plan_found_is_said_as_it_is(
    content: Content, p: float, sign: int, expected: str
) -> None:
    def set_to(section: Section, p: float, sign: int) -> Section:
        contrasts = tuple(
            replace(one, p_adjusted=p, estimate=sign * abs(one.estimate)) if one.groups == ("human",) else one
            for one in section.analysis.contrasts
        )
        return replace(section, analysis=replace(section.analysis, contrasts=contrasts))

    first, second = content.planned
    text = " ".join(opening(replace(content, planned=(set_to(first, 0.001, 1), set_to(second, p, sign)))))
    assert text.count(expected) == 2


def test_each_difference_between_conditions_has_a_paragraph_in_the_opening_and_in_the_results(
    content: Content,
) -> None:
    told = opening(content)
    assert told[1].startswith("People.") and "final" not in told[1]
    assert "final" in told[2] and "initial" not in told[2]
    assert told[3].startswith("People and model.")
    own = next(one for one in content.planned if one.heading == "People and model").analysis
    results = [plain_text(one) for one in paragraphs(own, (), content.kinds, None)]
    of_initial, of_final = (
        next(text for text in results if text.count(f"the {level}") >= 3 and "OR" in text)
        for level in ("initial", "final")
    )
    assert of_initial != of_final and "final" not in of_initial and "initial" not in of_final
    assert of_initial.index("of the model restorer") < of_initial.index(
        "between people and the model restorer"
    )
    for one in own.contrasts:
        assert sum(f"{abs(one.estimate):.2f}" in text for text in (of_initial, of_final)) >= 1
    assert sum("adjusted by Holm" in text for text in results) == 1


def test_a_paragraph_of_the_opening_names_tables_and_models_of_the_analyses_in_it(content: Content) -> None:
    of_two, *_ = (one for one in in_short(content) if one.models)
    tables = {one.number for section in content.planned for one in section.tables}
    assert set(of_two.tables) == tables and len(of_two.models) == 2
