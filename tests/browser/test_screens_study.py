"""A study with every kind of screen, from its file through the real server and the preview to the stored rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.people.app import LocalServer
from experiment.store import open_store
from experiment.store.records import all_events, all_regions, sessions_overview, trials_with_scores
from stimuli.item import build_meta, write_items
from tests.browser.plans import TEXTS
from tests.browser.walking import leave, respond, trial_shown

pytestmark = pytest.mark.browser

STUDY = """\
wrods: 1
study: windows
title: Words through a window
language: en
seed: 5
materials: {sentences: sentences.csv}
design:
  factors:
    letters: {intact: none, moved: {transpose: internal}}
procedure:
  - full_screen: true
  - screen_size: {character_mm: 3}
  - questions:
      hand: {ask: Which hand do you write with?, type: choice, options: [left, right]}
      years: {ask: For how many years did you go to school?, type: number, from: 0, to: 30}
  - instructions: {pages: instructions.md, minimum: 300 ms}
  - block:
      trial:
        - read: {show: sentence, as: moving_window}
        - prime: {show: cue, for: 50 ms, mask_for: 200 ms}
        - choose: {show: question, keys: {"yes": j, "no": f}, time_limit: 20 s}
      feedback: late
      line_length: 20
  - break: {minimum: 300 ms}
  - debrief: debrief.md
participants:
  recruit: link
  eligible: {age: [18, 99], device: computer, screen: 800x500}
"""
SENTENCES = """\
item,sentence,cue,question,answer
s1,Seven hungry neighbours watched another garden,garden,Were there neighbours?,yes
s2,Several teachers carried heavy baskets yesterday,basket,Were they light?,no
"""


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "study.yaml").write_text(STUDY, "utf-8")
    (tmp_path / "sentences.csv").write_text(SENTENCES, "utf-8")
    for name in ("instructions", "debrief"):
        (tmp_path / f"{name}.md").write_text(f"Some words of the {name}.", "utf-8")
    made = load_study(tmp_path)
    origin = origin_of(made, [tmp_path / "sentences.csv"])
    write_items(tmp_path / "items.jsonl", make_items(made).items, {**build_meta(5), BUILT_FROM: origin})
    return load_study(tmp_path)


def test_a_participant_goes_through_every_kind_of_screen_and_all_is_stored(study, new_page, bundle):
    with open_store(study.folder) as store, LocalServer(study, store) as server:
        page = new_page(server.links.page)
        page.get_by_role("button", name=TEXTS["start"]).click()
        page.locator("#wrods-question-0").fill("30")  # eligibility comes first
        page.keyboard.press("Enter")
        leave(page.get_by_role("heading", name=TEXTS["full_screen_title"]))
        page.get_by_role("button", name=TEXTS["card_fits"]).click()
        page.get_by_text("right", exact=True).click()
        page.locator("#wrods-question-1").fill("12,5")
        page.get_by_role("button", name=TEXTS["go_on"]).click()
        page.get_by_text("Some words of the instructions.").wait_for()
        page.get_by_role("button", name=TEXTS["go_on"], disabled=False).click()
        for _ in range(2):
            read_through(page)
            respond(page, "choose", "j")
            page.locator(".trial.choose").wait_for(state="detached")
        page.get_by_role("heading", name=TEXTS["break_title"]).wait_for()
        page.get_by_role("button", name=TEXTS["go_on"], disabled=False).click()
        leave(page.get_by_text("Some words of the debrief."))
        page.get_by_role("heading", name=TEXTS["finished_title"]).wait_for()
        with store.read() as connection:
            (session,) = sessions_overview(connection)
            rows = list(trials_with_scores(connection))
            regions = [dict(row) for row in all_regions(connection, study.id)]
            events = {event["kind"]: event["detail"] for event in all_events(connection)}
    assert session["state"] == "finished"
    assert [row["response_status"] for row in rows] == ["valid", "valid"]
    for row in rows:
        assert row["prime_frames"] >= 1
        assert row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"])
        mine = [region for region in regions if region["trial_index"] == row["trial_index"]]
        assert [region["region"] for region in mine] == list(range(6))
        assert all(region["shown"] and region["intact"] and region["rt"] > 0 for region in mine)
        assert mine[0]["line"] == 0 and mine[-1]["line"] > 0  # lines of twenty letters
        last = mine[-1]
        assert row["reading_time"] == pytest.approx(last["onset_ts"] + last["rt"] - mine[0]["onset_ts"])
    assert any(region["is_changed"] for region in regions)
    assert {"device", "answers", "full_screen", "screen_size", "questions", "break"} <= set(events)
    assert events["device"]["passed"] is True


def read_through(page):
    trial_shown(page, "read")
    for word in range(6):
        page.keyboard.press("Space")
        page.wait_for_function(
            "(word) => [...document.querySelectorAll('.word')].findIndex((one) => !one.hasAttribute('aria-hidden')) === word",
            arg=word,
        )
    page.keyboard.press("Space")
