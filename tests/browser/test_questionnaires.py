"""A questionnaire on a phone, through the real server: answered with a thumb, offline for a while, with a reload between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.exporting.dictionary import participant_rows, read_answers
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.people.app import LocalServer
from experiment.store import Store, open_store
from stimuli.item import build_meta, write_items
from tests.browser.plans import TEXTS
from tests.browser.walking import violations

pytestmark = pytest.mark.browser

STUDY = """\
wrods: 1
study: habits
title: Reading habits
language: en
seed: 5
materials: {sentences: sentences.csv}
design:
  factors:
    letters: {intact: none, moved: {transpose: internal}}
procedure:
  - questions: demographics
  - questions:
      habit: {ask: How true is this of you?, type: matrix, rows: habit.csv, points: ["no", partly, "yes"], score: mean}
      later: {ask: When do you read?, type: choice, options: [day, night], only: {habit_bed: "yes"}}
  - block:
      trial:
        - choose: {show: sentence, ask: "Animals?", keys: {"yes": j, "no": f}}
  - questions:
      light: {ask: Do you need light for it?, type: yes_no, only: {later: night}}
      pages: {ask: How many pages?, type: number, only: {later: day}}
  - questions:
      only_german: {ask: Seit wann?, type: number, only: {first_language: de}}
  - questions:
      effort: {ask: How hard was it?, type: slider, from: 0, to: 100, low: easy, high: hard}
participants: {recruit: link}
"""
HABIT = "row,text,reversed,accept\nbed,I read in bed.,,\nbore,Books bore me.,yes,\ncheck,Please choose partly here.,,partly\n"
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def served(tmp_path: Path, bundle: Path) -> Iterator[tuple[Any, Store, str]]:
    (tmp_path / "study.yaml").write_text(STUDY, "utf-8")
    (tmp_path / "habit.csv").write_text(HABIT, "utf-8")
    (tmp_path / "sentences.csv").write_text(
        "item,sentence,answer\ns1,Seven hungry neighbours watched a garden,no\n", "utf-8"
    )
    made = load_study(tmp_path)
    origin = origin_of(made, [tmp_path / "sentences.csv"])
    write_items(tmp_path / "items.jsonl", make_items(made).items, {**build_meta(5), BUILT_FROM: origin})
    study = load_study(tmp_path)
    with open_store(study.folder) as store, LocalServer(study, store) as server:
        yield study, store, server.links.page


def test_a_questionnaire_is_answered_with_a_thumb_offline_and_after_a_reload(served, new_page):
    study, store, address = served
    page = new_page(has_touch=True, is_mobile=True)
    page.set_viewport_size(PHONE)
    page.goto(address)

    def go_on() -> None:
        page.get_by_role("button", name=TEXTS["go_on"]).tap()

    page.get_by_role("button", name=TEXTS["start"]).tap()
    page.get_by_text("I describe it differently").tap()
    assert page.get_by_label("How do you describe your gender?").is_visible()
    page.get_by_text("I prefer not to answer").first.tap()
    assert not page.get_by_label("How do you describe your gender?").is_visible()
    assert violations(page) == []
    go_on()  # all of it is voluntary
    page.get_by_role("radiogroup", name="I read in bed.").wait_for()
    page.context.set_offline(True)
    for row, point in (("I read in bed.", "yes"), ("Books bore me.", "no")):
        page.get_by_role("radiogroup", name=row).get_by_text(point, exact=True).tap()
    go_on()
    missing = page.get_by_role("radiogroup", name="Please choose partly here.")
    assert missing.get_attribute("aria-invalid") == "true"
    assert missing.locator("input").first.evaluate("(one) => one === document.activeElement")
    targets = missing.locator(".pick").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().height)"
    )
    assert min(targets) >= 44 and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []
    missing.get_by_text("partly", exact=True).tap()
    page.get_by_text("night", exact=True).tap()
    go_on()
    page.locator(".trial.choose").wait_for()
    page.context.set_offline(False)
    page.reload()  # what later questions depend on is still known
    page.get_by_role("button", name=TEXTS["go_on"]).tap()
    page.get_by_role("button", name="no").tap()
    page.get_by_role("group", name="Do you need light for it?").wait_for()
    assert page.get_by_text("How many pages?").is_hidden()
    page.get_by_text("Yes", exact=True).tap()
    go_on()
    page.get_by_role("slider").wait_for()  # a screen that would ask nothing is not shown
    assert violations(page) == []
    go_on()
    assert page.get_by_text(TEXTS["answer_needed"]).is_visible(), "without a touch there is no answer"
    page.get_by_role("slider").tap()
    go_on()

    page.get_by_role("heading", name=TEXTS["finished_title"]).wait_for()
    with store.read() as connection:
        (row,) = participant_rows(connection, study.id, read_answers(study, connection))
    assert row["state"] == "finished"
    assert (row["answer_gender"], row["answer_age"]) == ("no_answer", None)
    assert (
        row["answer_habit_bed"],
        row["answer_habit_bore"],
        row["answer_habit_check"],
        row["score_habit"],
    ) == (3, 1, 2, 3)
    assert (row["answer_later"], row["answer_light"]) == ("night", "yes")
    assert abs(row["answer_effort"] - 50) <= 1
    assert row["not_asked"].split() == ["gender_described", "pages", "only_german"]
