"""Versions of an item as levels of a factor, in columns, in rows and in the text, crossed with a scramble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.lists import items_of_list, list_ids
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item

SPELLING = "spelling: {intact: none, inner: {transpose: internal}}"
PLAUSIBLE = "plausibility: [plausible, implausible]"
WIDE = """\
item,sentence:plausible,sentence:implausible,question,answer
1,The *gardener* watered the roses,The *gardener* watered the clouds,Roses?,Yes
2,A *customer* bought the tickets,A *customer* bought the planets,Tickets?,Yes
"""
LONG = """\
item,plausibility,sentence,question,answer
1,plausible,The *gardener* watered the roses,Roses?,Yes
2,implausible,A *customer* bought the planets,Tickets?,Yes
1,implausible,The *gardener* watered the clouds,Roses?,Yes
2,plausible,A *customer* bought the tickets,Tickets?,Yes
"""
BRACES = """\
item,sentence,question,answer
1,The *gardener* watered the {roses|clouds},Roses?,Yes
2,A *customer* bought the {plausibility: tickets|planets},Tickets?,Yes
"""
FORMS = {"columns": WIDE, "rows": LONG, "text": BRACES}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(
        table: str, factors: str = f"{{{PLAUSIBLE}, {SPELLING}}}", words: str = "starred", practice: str = ""
    ) -> Study:
        (tmp_path / "sentences.csv").write_text(table, "utf-8")
        (tmp_path / "practice.csv").write_text(practice, "utf-8")
        screen = "  - practice: {items: practice.csv}\n" if practice else ""
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: versions\ntitle: Versions\nseed: 5\n"
            f"materials:\n  sentences: sentences.csv\n  scramble: {{words: {words}, min_letters: 5}}\n"
            f"design:\n  factors: {factors}\n"
            f"procedure:\n{screen}  - block:\n      trial:\n        - read: {{show: sentence}}\n"
            '        - choose: {show: question, keys: {"Yes": j, "No": f}}\n',
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def shown(items: list[Item]) -> dict[tuple[str, ...], str]:
    return {(item.item_id, *item.condition.values()): item.shown["sentence"] for item in items}


@pytest.mark.parametrize("form", FORMS)
def test_versions_in_any_place_are_crossed_with_a_scramble(make, form):
    study = make(FORMS[form])
    items = make_items(study).items
    texts = shown(items)
    assert list(texts) == [
        (item, version, spelling)
        for item in "12"
        for version in ("plausible", "implausible")
        for spelling in ("intact", "inner")
    ]
    assert texts["1", "implausible", "intact"] == "The gardener watered the clouds"
    assert texts["2", "plausible", "intact"] == "A customer bought the tickets"
    assert (
        texts["1", "implausible", "inner"].split()[1]
        == texts["1", "plausible", "inner"].split()[1]
        != "gardener"
    )
    assert all(item.answer == "Yes" for item in items)
    for list_id in list_ids(study, items):
        cells = Counter(item.condition["spelling"] for item in items_of_list(study, items, list_id))
        assert cells == {"intact": 1, "inner": 1}
    assert len(list_ids(study, items)) == 4


def test_any_field_may_differ_between_versions(make):
    table = WIDE.replace("answer\n", "answer:plausible,answer:implausible\n").replace("Yes\n", "Yes,No\n")
    answers = {item.condition["plausibility"]: item.answer for item in make_items(make(table)).items}
    assert answers == {"plausible": "Yes", "implausible": "No"}


def test_two_factors_of_versions_are_crossed(make):
    tail = "slept{comma: |,} the *teacher* {verb: left|ran}"
    table = f'item,sentence:single,sentence:several,question,answer\n1,"While it {tail}","While they {tail}",It?,Yes\n'
    factors = f"{{number: [single, several], comma: [absent, present], verb: [calm, quick], {SPELLING}}}"
    texts = shown(make_items(make(table, factors)).items)
    assert len(texts) == 16
    assert texts["1", "several", "present", "quick", "intact"] == "While they slept, the teacher ran"
    assert texts["1", "single", "absent", "calm", "intact"] == "While it slept the teacher left"
    wide = "".join(
        f",sentence:{number}:{comma}" for comma in ("absent", "present") for number in ("single", "several")
    )
    wide = f"item{wide},question,answer\n1,a,b,c,d,It?,Yes\n"
    texts = shown(make_items(make(wide, "{number: [single, several], comma: [absent, present]}")).items)
    assert texts == {
        ("1", "single", "absent"): "a",
        ("1", "single", "present"): "c",
        ("1", "several", "absent"): "b",
        ("1", "several", "present"): "d",
    }


def test_braces_are_text_unless_a_factor_stands_in_them(make):
    table = "item,sentence,question,answer\n1,Write {a|b} or {{c}} *please*,It?,Yes\n"
    texts = shown(make_items(make(table, f"{{{SPELLING}}}")).items)
    assert texts["1", "intact"] == "Write {a|b} or {{c}} please"
    table = "item,sentence,question,answer\n1,Write {a|b} or {{c}} *please*,It?,Yes\n"
    texts = shown(make_items(make(table)).items)
    assert texts["1", "implausible", "intact"] == "Write b or {c} please"


@pytest.mark.parametrize("words", ["all", "{min_letters: 6}", "{min_letters: 6, number: 1}"])
def test_only_words_that_all_versions_have_are_scrambled_and_alike(make, words):
    table = (
        "item,sentence:plausible,sentence:implausible,question,answer\n"
        "1,The gardener watered flowers,Yesterday evening the gardener watered mountains,It?,Yes\n"
    )
    items = make_items(make(table, words=words)).items
    changed = {
        item.condition["plausibility"]: {(change["intact"], change["shown"]) for change in item.changes}
        for item in items
        if item.condition["spelling"] == "inner"
    }
    assert changed["plausible"] == changed["implausible"] != set()
    assert {intact for intact, _ in changed["plausible"]} <= {"gardener", "watered"}


def test_fillers_take_versions_in_turn_and_may_have_none(make):
    fillers = (
        "f1,One *rainy* day,Two *rainy* days,It?,Yes,filler,\nf2,One *sunny* day,Two *sunny* days,It?,Yes,filler,\n"
        "f3,,,It?,Yes,filler,A plain one\n"
    )
    table = WIDE.replace("answer\n", "answer,role,sentence\n").replace("Yes\n", "Yes,,\n") + fillers
    items = [item for item in make_items(make(table)).items if item.role == "filler"]
    assert [item.shown["sentence"] for item in items] == ["One rainy day", "Two sunny days", "A plain one"]
    assert all(not item.condition for item in items)


def test_practice_shows_the_versions_that_its_rows_name(make):
    practice = "sentence,question,answer,plausibility,spelling\nThe *teacher* {sang|ate},It?,Yes,implausible,intact\n"
    items = make_items(make(BRACES, practice=practice)).items
    (practised,) = [item for item in items if item.role == "practice"]
    assert practised.shown["sentence"] == "The teacher ate"
    assert practised.condition == {"plausibility": "implausible", "spelling": "intact"}


FAULTS: Mapping[str, tuple[str, str, list[str]]] = {
    "no versions": ("item,sentence,question,answer\n1,A *garden*,It?,Yes\n", PLAUSIBLE, ["plausibility", "{…|…}", "where"]),
    "two places": (WIDE.replace("roses,", "{roses|tulips},"), PLAUSIBLE, ["{roses|tulips}", "{{roses|tulips}}"]),
    "a cell is empty": (
        WIDE.replace("The *gardener* watered the clouds", "").replace("A *customer* bought the planets", ""),
        PLAUSIBLE,
        ["line 2", "'1'", "line 3", "'2'", "'implausible'", "sentence:implausible"],
    ),
    "a row is missing": (
        "".join(LONG.splitlines(keepends=True)[:-1]),
        PLAUSIBLE,
        ["line 3", "'2'", "'plausible'"],
    ),
    "a row is twice": (LONG + LONG.splitlines()[-1] + "\n", PLAUSIBLE, ["'2'", "'plausible'", "line 6"]),
    "an unknown level": (LONG.replace("2,plausible", "2,plausable"), PLAUSIBLE, ["'plausable'", "'plausible'"]),
    "an unknown level of a filler": (
        LONG.replace("answer\n", "answer,role\n").replace("Yes\n", "Yes,\n") + "f1,plausable,A filler,It?,Yes,filler\n",
        PLAUSIBLE,
        ["line 6", "'f1'", "'plausable'", "'plausible'"],
    ),
    "too many alternatives": (BRACES.replace("{roses|", "{roses|lilies|"), PLAUSIBLE, ["line 2", "3", "2"]),
    "the same": (BRACES.replace("{roses|clouds}", "roses"), PLAUSIBLE, ["line 2", "'1'"]),
    "other stars": (WIDE.replace("the clouds", "the *clouds*"), PLAUSIBLE, ["line 2", "'1'", "'implausible'"]),
    "whose": (BRACES, f"{PLAUSIBLE}, number: [one, two]", ["{roses|clouds}", "plausibility: roses|clouds"]),
    "one level": (WIDE, "plausibility: [plausible]", ["plausibility"]),
    "no list": (WIDE, "plausibility: plausible", ["plausibility", "[one, other]"]),
    "a level twice": (WIDE, "plausibility: [plausible, plausible]", ["plausibility", "'plausible'"]),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_versions_name_the_item_and_the_remedy(make, fault):
    table, factors, named = FAULTS[fault]
    with pytest.raises(UserError) as error:
        make_items(make(table, f"{{{factors}, {SPELLING}}}"))
    assert [name for name in named if name not in str(error.value)] == []


def test_the_audit_compares_spellings_within_each_version(make):
    assert set(build_study(make(WIDE)).audit.roles) == {"sentences, plausible", "sentences, implausible"}
