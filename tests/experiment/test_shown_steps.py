"""Steps that only some trials have (``only``): a share of the items, those with a cell, those with given values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.cli import main
from experiment.cli.check import sensitivity_of
from experiment.lists import list_ids
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError

HEAD = "item,sentence:plausible,sentence:implausible,question,answer,role\n"
TRIALS = [
    f"s{i},Her cook washed the pan,Her cook washed the sun,Pan number {i}?,{'Yes' if i % 2 else 'No'},"
    for i in range(12)
] + [f"f{i},It rains,It rains,Rain number {i}?,{'Yes' if i % 2 else 'No'},filler" for i in range(24)]
FACTOR = "plausibility: [plausible, implausible]"
PLAN = (
    "}\nparticipants: {wanted: 30}\nanalysis: {planned: {p: {measure: correct, compare: plausibility, between: [human]}, "
    "q: {measure: reading_time, compare: plausibility, between: [human]}}"
)
CHOOSE = '{show: question, keys: {"Yes": j, "No": f}, only: %s}'


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(
        only: str,
        rows: list[str] = TRIALS,
        head: str = HEAD,
        design: str = "",
        first: str = "- read: {show: sentence}",
    ) -> Study:
        screens = "  - instructions: a.md\n" if "a.md" in design else ""
        for name in "abc":
            (tmp_path / f"{name}.md").write_text(f"Text {name}.", "utf-8")
        (tmp_path / "sentences.csv").write_text(head + "\n".join(rows) + "\n", "utf-8")
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: asked\ntitle: Asked\nseed: 5\n"
            "materials: {sentences: sentences.csv, audit: {shortcut: false}}\n"
            f"design: {{factors: {{{FACTOR}}}{design}}}\n"
            f"procedure:\n{screens}  - block:\n      trial:\n        {first}\n        - choose: {CHOOSE % only}\n",
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def planned(study: Study, list_id: int) -> list[dict[str, Any]]:
    items = make_items(study).items
    return trials_of(plan_session(study, items, list_id=list_id))


def asked(study: Study, list_id: int = 1) -> list[dict[str, Any]]:
    return [trial for trial in planned(study, list_id) if trial["trial_type"] == "choose"]


def test_a_share_asks_about_the_same_items_in_all_lists_evenly(make):
    study = make("33%")
    by_list = {number: asked(study, number) for number in list_ids(study, make_items(study).items)}
    assert len(by_list) == 2
    assert len({frozenset(trial["item_id"] for trial in trials) for trials in by_list.values()}) == 1
    for trials in by_list.values():
        assert Counter(trial["is_filler"] for trial in trials) == {False: 4, True: 8}
        tested = [trial for trial in trials if not trial["is_filler"]]
        assert Counter(trial["condition"]["plausibility"] for trial in tested) == {
            "plausible": 2,
            "implausible": 2,
        }
        for rows in (tested, [trial for trial in trials if trial["is_filler"]]):
            assert len(set(Counter(trial["answer"] for trial in rows).values())) == 1


def test_a_trial_that_is_not_asked_is_read_and_has_no_answer(make):
    trials = planned(make("33%"), 1)
    read = [trial for trial in trials if trial["trial_type"] == "read"]
    assert len(trials) == 36
    assert len(read) == 24
    for trial in read:
        assert [step["step"] for step in trial["steps"]] == ["read"]
        assert trial["answer"] is None
        assert trial["accepted"] == []


def test_a_column_asks_where_it_is_filled_and_needs_no_answer_elsewhere(make):
    rows = [
        row if row.startswith(("s1,", "f2,")) else f"{row.split(',', 3)[0]},A b,A c,,,{row.rsplit(',', 1)[1]}"
        for row in TRIALS
    ]
    for only in ("question", "note"):
        study = make(
            only,
            [f"{row},{'x' if row.startswith(('s1,', 'f2,')) else ''}" for row in rows],
            HEAD.strip() + ",note\n",
        )
        assert {trial["item_id"] for trial in asked(study)} == {"s1", "f2"}


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        ("{role: filler}", {f"f{i}" for i in range(24)}),
        ("{item: [s1, s2, f3]}", {"s1", "s2", "f3"}),
        ('{role: test, answer: "No"}', {f"s{i}" for i in range(0, 12, 2)}),
    ],
)
def test_a_step_is_restricted_to_values(make, only, wanted):
    assert {trial["item_id"] for trial in asked(make(only))} == wanted


def test_a_step_is_restricted_to_levels_of_factors(make):
    within = make("{plausibility: implausible}")
    assert {trial["condition"]["plausibility"] for trial in asked(within)} == {"implausible"}
    design = ", between: {group: {quizzed: {texts: {a.md: b.md}}, left: {texts: {a.md: c.md}}}}"
    between = make("{group: quizzed}", design=design)
    numbers = list_ids(between, make_items(between).items)
    assert [bool(asked(between, number)) for number in numbers] == [True, True, False, False]


@pytest.mark.parametrize(
    ("only", "first", "place"),
    [
        ("0%", "- read: {show: sentence}", "only"),
        ("100%", "- read: {show: sentence}", "only"),
        ("a third%", "- read: {show: sentence}", "only"),
        ("33%", "- prime: {show: sentence}", "trial"),
        ("33%", "- read: {show: sentence, only: 50%}", "trial"),
    ],
)
def test_a_trial_that_would_be_incomplete_is_refused(make, only, first, place):
    with pytest.raises(UserError, match=rf"study\.yaml, line \d+: procedure\[1\]\.block\.trial.*{place}"):
        make(only, first=first)


def test_names_that_no_item_has_and_items_without_an_answer_are_told_together(make):
    with pytest.raises(UserError, match="'question'"):
        make_items(make("{quesiton: a}"))
    with pytest.raises(UserError, match="'plausibility'"):
        make_items(make("{plausibilty: implausible}"))
    rows = [row.replace(",Yes,", ",,") for row in TRIALS]
    with pytest.raises(UserError) as told:
        make_items(make("question", rows))
    assert {f"'s{i}'" for i in range(1, 12, 2)} <= set(str(told.value).split())


def test_a_step_that_no_trial_has_is_refused(make):
    with pytest.raises(UserError, match=r"only: .*choose"):
        make_items(make("{role: nobody}"))


@pytest.mark.parametrize(
    ("only", "lacking"),
    [("{role: filler}", "plausible, implausible"), ("{plausibility: plausible}", "implausible")],
)
def test_a_plan_whose_levels_are_never_asked_about_is_refused(make, only, lacking):
    loaded = make(only, design=PLAN)
    with pytest.raises(
        UserError, match=rf"analysis.planned.p: correct .* no test item at {lacking} has a step"
    ):
        make_items(loaded)


def test_the_sensitivity_of_a_question_is_that_of_the_items_that_are_asked(make):
    loaded = make("33%", design=PLAN)
    told = sensitivity_of(loaded, make_items(loaded).items)
    (of_answers, of_times) = told.numbers
    assert of_times["assumed"][0]["contrast"] == {"human": "implausible - plausible"}
    assert (of_answers["items"], of_times["items"]) == (4, 12)


def test_a_misspelt_name_is_told_together_with_other_faults_and_ours_are_not_offered(make, tmp_path):
    rows = [row.replace("washed", "[verb: washed]") for row in TRIALS]
    make("{plausibilty: plausible}", rows, first="- read: {show: sentence, as: moving_window}")
    file = tmp_path / "study.yaml"
    text = file.read_text("utf-8").replace("audit:", "regions: {verb: marked}, audit:")
    file.write_text(text.replace("title: Asked", "titel: Asked"), "utf-8")
    told = CliRunner().invoke(main, ["check", str(tmp_path)]).output
    assert "'titel'" in told or "titel is not a setting" in told
    assert "name 'plausibilty' is not known" in told and "Did you mean 'plausibility'" in told
    assert "[regions]" not in told


def test_an_answer_that_a_version_decides_is_no_clue_in_the_choices(make):
    head = HEAD.replace("answer", "answer:plausible,answer:implausible")
    rows = [f"s{i},Her cook washed pan {i},Her cook washed sun {i},Pan {i}?,Yes,No," for i in range(12)]
    assert not [
        line for line in build_study(make("{role: test}", rows, head)).audit.problems() if "take" in line
    ]
    same = [row.replace("Yes,No", "Yes,Yes") for row in rows]
    told = build_study(make("{role: test}", same, head)).audit.problems()
    assert [line for line in told if "“take choice 1” is right for 12 of 12" in line]


def test_a_misspelt_field_is_told_where_the_study_shows_it(make):
    rows = [f"{row},x" for row in TRIALS]
    loaded = make("50%", rows, HEAD.replace("\n", ",scene\n"), first="- read: {show: [scen, sentence]}")
    with pytest.raises(UserError, match=r"read shows 'scen', .*did you mean 'scene'\?\n  Write 'scene' here"):
        make_items(loaded)


def test_a_style_is_a_value_or_that_of_the_version(make, tmp_path):
    make("33%")
    rows = [
        f"{i},{agreement},{word},{ink},{size},Yes"
        for i, word in enumerate(("red", "blue"))
        for agreement, ink, size in (("plausible", "#c00000", ""), ("implausible", "navy", "150%"))
    ]
    (tmp_path / "sentences.csv").write_text(
        "item,plausibility,sentence,ink,share,answer\n" + "\n".join(rows) + "\n", "utf-8"
    )
    (tmp_path / "practice.csv").write_text("item,sentence,ink,answer\np,lime,lime,Yes\n", "utf-8")
    text = (tmp_path / "study.yaml").read_text("utf-8")
    steps = (
        '{show: sentence, keys: {"Yes": j, "No": f}, style: {colour: ink, background: white, size: share}}'
    )
    text = text[: text.index("procedure")] + (
        f"procedure:\n  - practice: {{items: practice.csv}}\n  - block:\n      trial: [{{choose: {steps}}}]\n"
    )
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    looks = {
        trial["condition"].get("plausibility") if not trial["is_practice"] else "practice": trial["steps"][0][
            "style"
        ]
        for trial in planned(load_study(tmp_path), 1)
    }
    assert looks == {
        "practice": {"colour": "lime", "background": "white"},
        "plausible": {"colour": "#c00000", "background": "white"},
        "implausible": {"colour": "navy", "background": "white", "size": "150%"},
    }
    (tmp_path / "sentences.csv").write_text(
        (tmp_path / "sentences.csv").read_text("utf-8").replace("navy", "nvy").replace("150%", "big"), "utf-8"
    )
    with pytest.raises(UserError) as told:
        make_items(load_study(tmp_path))
    assert "'nvy'" in str(told.value) and "'big'" in str(told.value)
    (tmp_path / "study.yaml").write_text(text.replace("colour: ink", "colour: inc"), "utf-8")
    with pytest.raises(UserError, match="'inc'"):
        make_items(load_study(tmp_path))


def test_practice_to_a_criterion_is_about_trials_that_ask(make, tmp_path):
    make("{role: practice}")
    rows = [f"p{i},It rains,Rain?,Yes" for i in range(6)]
    (tmp_path / "practice.csv").write_text(
        "item,sentence,question,answer\n" + "\n".join(rows) + "\n", "utf-8"
    )
    text = (tmp_path / "study.yaml").read_text("utf-8")

    def screen(criterion: str) -> Any:
        practice = f"procedure:\n  - practice: {{items: practice.csv, pass: {criterion}, attempts: 3}}\n"
        (tmp_path / "study.yaml").write_text(text.replace("procedure:\n", practice), "utf-8")
        study = load_study(tmp_path)
        return plan_session(study, make_items(study).items, list_id=1)["screens"][0]

    assert (screen("75%")["pass"], "of_last" in screen("75%")) == (0.75, False)
    assert (screen("80% of last 5")["pass"], screen("80% of last 5")["of_last"]) == (0.8, 5)
    with pytest.raises(UserError, match=r"practice-1.* 7 trials, .* 6"):
        screen("80% of last 7")
    for wrong in ("80 of last 5", "80% of 5", "80% of last 0"):
        with pytest.raises(UserError, match=r"study\.yaml, line \d+: .*pass"):
            screen(f"'{wrong}'")
