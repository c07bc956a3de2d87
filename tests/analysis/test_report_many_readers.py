"""Of many models a report says what they have in common, and leaves each one's statistics to the tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from markupsafe import Markup

from analysis import load
from analysis.plan import MISSING, RECOVERED, Measure
from analysis.readers import listed, theirs
from analysis.report.answer import answer
from analysis.report.content import gather
from analysis.report.inline import plain_text
from analysis.report.nodes import Finding
from analysis.report.numbered import Content
from analysis.report.results import MOST_SINGLY, of_one_outcome, reverses, runs, verdict
from analysis.results import Analysis, Contrast
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

MODELS = ("m1", "m2", "m3", "m4", "m5")
PLAN = PLANNED["comprehension"] | {
    "between": ["human", *MODELS],
    "formula": "correct ~ reader_group * position + (1 | participant) + (1 | item)",
}
KINDS = {"human": "human", **dict.fromkeys(MODELS, "model")}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory, without_chapters: None) -> Content:
    rows = study_rows(human=16, models=MODELS, items=24)
    folder = tmp_path_factory.mktemp("many")
    return gather(load(write_handover(folder, rows, planned={"comprehension": PLAN})))


def plainly(text: Markup) -> str:
    return plain_text(text).replace("\u00a0", " ")


def sentences(content: Content) -> list[str]:
    section = content.planned[0]
    return [plainly(text) for text in section.paragraphs]


def test_people_have_all_statistics_and_models_are_told_together(content: Content) -> None:
    section = content.planned[0]
    text = " ".join(sentences(content))
    tested = [one for one in section.analysis.contrasts if not one.left_out]
    labels = {one.label for one in tested}
    of_people = [one for one in tested if one.groups == ("human",)]
    assert len(tested) == len(labels) * 11, "people, five models, and people against each"
    assert text.count("SE = ") == sum(
        1 for one in tested if one.groups == ("human",) or alone(one, section.analysis)
    )
    for one in of_people:
        assert f"{one.estimate:.1f}".replace("-", "−") in text
    assert section.tables[0].table.title.startswith("Differences")
    assert (
        f"Table {section.tables[0].number} has each difference with its estimate, test, and interval." in text
    )


def alone(one: Contrast, analysis: Analysis) -> bool:
    found = [other for other in analysis.contrasts if other.label == one.label]
    return [one] in runs(found, KINDS, analysis.plan.alpha)


def test_every_comparison_is_in_one_run_of_one_outcome(content: Content) -> None:
    analysis = content.planned[0].analysis
    found = [one for one in analysis.contrasts if one.label == analysis.contrasts[0].label]
    told = runs(found, KINDS, analysis.plan.alpha)
    assert sorted(id(one) for run in told for one in run) == sorted(map(id, found))
    for run in told:
        assert len({(one.between, one.p_adjusted < 0.05) for one in run}) == 1
    few = [one for one in found if one.groups[-1] in ("human", *MODELS[:MOST_SINGLY])]
    assert runs(few, KINDS, 0.05) == [[one] for one in sorted(few, key=lambda one: one.between)]


def test_what_models_have_in_common_holds_of_each(content: Content) -> None:
    analysis = content.planned[0].analysis
    one = next(each for each in analysis.contrasts if each.groups == ("m1",))
    group = [
        replace(one, groups=(name,), estimate=-10 * value, p_adjusted=p)
        for name, value, p in (("m1", 0.5, 0.0001), ("m2", 1.5, 0.021), ("m4", 1.0, 0.003))
    ]
    said = plainly(of_one_outcome(group, analysis, KINDS))
    assert said == (
        f"Models m1, m2, and m4 were less accurate in the {one.first} than in the {one.second} condition "
        "(−15.0 to −5.0 percentage points; p ≤ .021)."
    )
    alike = [replace(each, p_adjusted=p) for each, p in zip(group, (0.3, 0.06, 0.9), strict=True)]
    said = plainly(of_one_outcome(alike, analysis, KINDS))
    assert said.startswith("Whether the accuracy of models m1, m2, and m4 differs between")
    assert said.endswith("(−15.0 to −5.0 percentage points; p ≥ .060).")
    lost = [replace(each, estimable=False) for each in group]
    assert "cannot be estimated for models m1, m2, and m4: these data" in plainly(
        of_one_outcome(lost, analysis, KINDS)
    )
    tiny = [replace(each, p_adjusted=0.0001) for each in group]
    assert "p < .001 each" in plainly(of_one_outcome(tiny, analysis, KINDS))


def test_pairs_whose_interaction_reverses_in_log_odds_are_named(content: Content) -> None:
    analysis = content.planned[0].analysis
    one = next(each for each in analysis.contrasts if each.groups == ("human", "m1"))
    base = replace(one, estimate=-9.0, low=-14.0, high=-4.0, p_adjusted=0.001)
    pairs = [
        replace(base, groups=("human", name), log_odds=log_odds)
        for name, log_odds in (("m1", -1.0), ("m2", 0.3), ("m3", 0.2), ("m4", -0.5))
    ]
    said = plainly(of_one_outcome(pairs, analysis, KINDS))
    assert "differed between people and models m1, m2, m3, and m4" in said
    assert [reverses(each) for each in pairs] == [False, True, True, False]
    assert "In log odds it points the other way for models m2 and m3." in said


def test_the_answer_sums_up_more_than_two_models_in_one_sentence(content: Content) -> None:
    summed = [one for one in answer(content, "") if isinstance(one, Finding) and not one.grade]
    assert summed and all("differ from people" in one.question for one in summed)


def test_kinds_of_readers_are_named_apart() -> None:
    kinds = {"human": "human", "a": "model", "b": "model", "random": "baseline"}
    assert listed(["human", "a", "b", "random"], kinds) == "people, models a and b, and baseline random"
    assert listed(["a"], kinds) == "model a"


def test_whose_a_measure_is_has_an_article_or_a_genitive() -> None:
    kinds = {"human": "human", "simulated": "simulated", "a": "model", "b": "model"}
    assert theirs("accuracy", ["human"], kinds) == "people’s accuracy"
    assert theirs("the mean rating", ["simulated"], kinds) == "simulated readers’ mean rating"
    assert theirs("accuracy", ["a"], kinds) == "the accuracy of model a"
    assert theirs("the latency", ["a", "b"], kinds) == "the latency of models a and b"
    assert theirs("accuracy", ["models in general"], kinds) == "the accuracy of models in general"


def test_a_difference_that_is_the_same_for_all_has_no_interval_and_no_power(content: Content) -> None:
    analysis = content.planned[0].analysis
    one = next(each for each in analysis.contrasts if each.groups == ("m1",))
    constant = replace(one, estimate=0.0, se=0.0, statistic=0.0, low=0.0, high=0.0, p=1.0, p_adjusted=1.0)
    said = plainly(of_one_outcome([constant], analysis, KINDS))
    assert said.endswith(
        "remains open, estimate = 0.0 percentage points, the same for every reader and item, so that no interval can be computed."
    )
    assert np.isnan(constant.detectable)


@pytest.mark.parametrize(
    ("measure", "says"),
    [
        (MISSING, "People’s share of missing answers was higher"),
        (RECOVERED, "People’s recovery was higher"),
    ],
)
def test_a_verb_agrees_with_what_was_measured(measure: Measure, says: str, content: Content) -> None:
    analysis = content.planned[0].analysis
    one = Contrast("final", "intact", ("human",), 1.0, 0.1, 10.0, None, 0.0001, 0.8, 1.2, 0.0001, 1)
    own = replace(analysis, plan=replace(analysis.plan, measure=measure), contrasts=(one,))
    assert verdict([one], own, KINDS).startswith(says)
