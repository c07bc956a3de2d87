"""The opening of a report tells each comparison once, in a paragraph for each difference between conditions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis import load
from analysis.report.content import gather
from analysis.report.differences import differences
from analysis.report.in_short import in_short
from analysis.report.inline import plain_text
from analysis.report.numbered import Content, Section
from analysis.report.prose import paragraphs
from analysis.results import Equivalence
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
        assert f"{one.estimate:.1f}".replace("-", "−") in text
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
        next(text for text in results if text.count(f"the {level}") >= 3 and "percentage points" in text)
        for level in ("initial", "final")
    )
    assert of_initial != of_final and "final" not in of_initial and "initial" not in of_final
    assert of_initial.index("of the model restorer") < of_initial.index(
        "between people and the model restorer"
    )
    for one in own.contrasts:
        assert sum(f"{abs(one.estimate):.1f}" in text for text in (of_initial, of_final)) >= 1
    assert sum("adjusted by the largest |t|" in text for text in results) == 1


def test_a_paragraph_of_the_opening_names_tables_and_models_of_the_analyses_in_it(content: Content) -> None:
    of_two, *_ = (one for one in in_short(content) if one.models)
    tables = {one.number for section in content.planned for one in section.tables}
    assert set(of_two.tables) == tables and len(of_two.models) == 2


def crowded(content: Content, significant: dict[str, int], levels: int = 26) -> Content:
    """Give the first plan as many conditions against one reference: of each reader the last ones differ, the last one most."""
    section = content.planned[0]
    one = next(one for one in section.analysis.contrasts if one.groups == ("human",))
    contrasts = tuple(
        replace(
            one, first=f"c{place}", second="intact", groups=(group,), estimate=-1.0 * (place + 1),
            low=-1.5 * (place + 1), high=-0.5 * (place + 1),
            p_adjusted=0.001 if place >= levels - many else 0.5,
        )
        for group, many in significant.items() for place in range(levels)
    )  # fmt: skip
    kinds = {group: "human" if group == "human" else "model" for group in significant}
    analysis = replace(section.analysis, contrasts=contrasts)
    return replace(content, planned=(replace(section, analysis=analysis),), kinds=kinds)


def test_many_conditions_are_told_by_how_many_differ_with_the_greatest_and_the_smallest(
    content: Content,
) -> None:
    text = " ".join(opening(crowded(content, {"human": 18, "restorer": 0})))
    said = "People were less accurate in 18 of 26 conditions than in the intact condition. The greatest difference was in the c25 "
    assert f"{said}condition (\u221226.0 percentage points, 95% CI [" in text
    assert "The smallest significant one was in the c8 condition (\u22129.0 percentage points" in text
    assert "did not differ significantly from the intact condition in any of 26 conditions" in text
    assert "further comparison" not in text and text.count(" condition (") == 3


def test_of_many_models_in_many_conditions_the_fewest_and_the_most_are_told(content: Content) -> None:
    models = {f"m{place}": 10 + 2 * place for place in range(5)}
    text = " ".join(opening(crowded(content, models)))
    who = "the models m0, m1, m2, m3, and m4"
    assert (
        f"of {who} differed significantly from the intact condition in 10 (m0) to 18 (m4) of 26 conditions."
        in text
    )
    assert text.count("in the c25 condition (") == 1


def test_six_conditions_are_told_one_by_one(content: Content) -> None:
    text = " ".join(opening(crowded(content, {"human": 6}, levels=6)))
    assert all(f"in the c{place} than in the intact condition" in text for place in range(6))


def test_results_tell_many_conditions_together_and_point_to_their_table(content: Content) -> None:
    own = crowded(content, {"human": 18}).planned[0].analysis
    first = replace(own.contrasts[0], groups=("human", "restorer"), p_adjusted=0.001)
    equal = [
        Equivalence(
            estimate=0.5, se=0.2, half_width=1.0, statistic=-2.5, p=p, df=None, p_adjusted=p, family=1,
            low=0.1, high=0.9, level=0.9, equivalent=p < 0.05,
        )
        for p in (0.01, 0.2)
    ]  # fmt: skip
    between = tuple(replace(first, first=f"c{place}", equivalence=equal[place % 2]) for place in range(26))
    lost = replace(own.contrasts[0], first="lost", estimable=False)
    tested = (*own.contrasts, *between, lost)
    text = [plain_text(one) for one in differences(tested, own, {"human": "human"}, 7)]
    assert len(text) == 3 and len(text[0]) < 1_500
    assert "People were less accurate in 18 of 26 conditions than in the intact condition." in text[0]
    assert "The greatest difference was in the c25 condition (−26.0 percentage points" in text[0]
    assert "counts as none in 13 of 26 conditions." in text[0]
    assert "is not estimable for people" in text[1]
    assert text[2].endswith("Table 7 has each difference with its estimate, test, and interval.")
