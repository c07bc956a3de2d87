"""Sessions that were faster than their plan allows are reviewed before they are paid, and fill no place until then."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, update

from experiment.models.runs.status import readers_of
from experiment.people.recruitment.admission import places_taken
from experiment.people.recruitment.reconciliation import import_submissions, parse_export, reconciliation
from experiment.people.recruitment.return_links import _needed, _practised, practice_result
from experiment.people.service import present
from experiment.session_minutes import shortest_seconds
from experiment.store.session_activity import stamp
from experiment.store.tables import chain, flags, metadata, regions, scores
from tests.experiment.people.conftest import CODES, MTURK, page_of, prolific_id
from tests.experiment.people.recruitment.test_arriving import SONA_URL


@pytest.fixture
def serving(recruiting: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that serves the small study for a platform, with the server's own clock."""

    def run(recruit: str, codes: dict[str, str] | None = None, clock: Any = present) -> Any:
        return recruiting(recruit, codes or {}, clock=clock, wanted=1)

    return run


def taken(site: Any) -> tuple[int, int]:
    return site.read(places_taken, site.service)


def test_a_script_gets_no_code_and_fills_no_place_until_it_is_released(serving, visit):
    site = serving("link")
    script = site.begin()
    told = script.complete().body
    assert (told["completion_code"], told["return_url"], told["held"]) == (None, None, True)
    assert told["return_text"] == site.service.pack.texts["return_held"]
    assert script.finish(5).body["completion_code"] is None, "asking again does not help"
    assert taken(site) == (0, 0)
    (people,) = site.read(readers_of, "small")
    # as `wrods status` shows
    assert list(people["states"].values()) == [1] and "finished" not in people["states"]
    assert site.begin().status == 201, "the only place is free"

    assistant = visit("ben", site)
    shown = assistant.get(page_of(script)).text
    why = site.session(script)["held_reason"]
    assert why and why in shown
    assert site.session(script)["completion_code"] not in shown
    live = assistant.get("/admin/data.json").json["studies"][0]
    assert live["kinds"]["held"]["finished"] == 1
    held = next(one for one in live["sessions"] if one["held"])
    assert held["awaits_review"] and held["code"] is None

    assert assistant.post(page_of(script, "release"), reason="a known fast reader").status_code == 302
    told = script.finish(5).body
    assert (told["completion_code"], told["held"]) == (site.session(script)["completion_code"], False)
    assert taken(site)[0] == 1
    history = assistant.get(page_of(script)).text
    assert "a known fast reader" in history and why in history


ELIGIBLE = "{first_language: de, age: [18, 40]}"


ASKED = "{{pages: [instructions.md], {}, questions: {{keys: {{ask: Which keys?, type: text, accept: F}}}}}}"


def asking(given: str) -> tuple[str, str]:
    """Return the change of the small study that asks about its instructions."""
    return ("instructions: instructions.md", f"instructions: {ASKED.format(given)}")


@pytest.mark.parametrize(
    ("practice", "reason"),
    [
        ([], "practice 'practice-1' was not passed: 0 right of 1 needed"),
        ([False], "practice 'practice-1' was not passed: 0 right of 1 needed"),
        ([False, True], "practice 'practice-1' was not passed: 0 right of 1 needed"),
        ([True], None),
    ],
)
def test_who_leaves_practice_out_or_does_not_pass_it_gets_no_code(recruiting, practice, reason):
    """The page judges practice, and a script need not; of more passes than the study allows, the first count."""
    site = recruiting("link")
    person = site.begin()
    practises(person, *practice)
    for index in range(1, len(person.trials())):
        person.answer(index)
    told = person.finish(len(person.trials()) - 1 + len(practice)).body
    assert (told["held"], told["completion_code"] is None) == (reason is not None, reason is not None)
    assert site.session(person)["held_reason"] == reason


def test_only_trials_that_ask_count_in_practice_and_of_these_the_last_where_a_study_says_so():
    kinds = ("choose", "read", "choose", "choose", "read", "choose")
    trials = [
        {"trial_index": index, "trial_type": kind, "steps": [{"step": kind}]}
        for index, kind in enumerate(kinds)
    ]
    practice = {"pass": 0.5, "attempts": 2, "trials": trials}
    first = {(0, 1): False, (2, 1): True, (3, 1): True, (5, 1): False}
    assert practice_result(practice, first) == (2, 1)
    assert _needed(practice) == 2
    last = {**practice, "pass": 1.0, "of_last": 2}
    assert practice_result(last, first) == (2, 1)
    assert _needed(last) == 2
    again = {(0, 1): True, (2, 1): False, (3, 1): True, (0, 2): False, (2, 2): True, (3, 2): True}
    assert practice_result(last, dict(sorted(again.items()))) == (2, 0)


def test_a_maze_is_passed_if_every_word_was_chosen_at_once():
    maze = {"step": "read", "as": "maze", "parts": ["The", "dog", "sleeps"]}
    trials = [{"trial_index": index, "trial_type": "read", "steps": [maze]} for index in range(3)]
    practice = {"kind": "practice", "pass": 0.6, "attempts": 1, "trials": trials}
    engine = create_engine("sqlite://")
    metadata.create_all(engine, tables=[scores, regions])
    rights = {0: [True, True, True], 1: [True, False, True], 2: [True, True, True]}
    rows = [
        {"session_id": "s", "trial_index": index, "attempt": 1, "region": place, "is_correct": right}
        for index, words in rights.items()
        for place, right in enumerate(words)
    ]
    with engine.begin() as connection:
        connection.execute(regions.insert(), rows)
        assert _practised(connection, "s", practice) == (2, 1)
        assert _practised(connection, "other", practice) == (0, 0)
    assert _needed(practice) == 2


FAILED = {"block": "practice-1", "then": "end"}


def practises(participant: Any, *right: bool) -> None:
    first = participant.trials()[0]
    step = first["steps"][-1]
    labels = {
        meaning == first["answer"]: label
        for label, meaning in zip(step["labels"], step["responses"], strict=True)
    }
    for attempt, is_right in enumerate(right, 1):
        told = participant.answer(
            0, attempt=attempt, response_raw=labels[is_right], client_uuid=str(uuid.uuid4())
        )
        assert told.status == 201, told.text


@pytest.mark.parametrize(("practice", "is_held"), [((), True), ((True,), True), ((False,), False)])
def test_failed_practice_is_paid_only_if_its_answers_show_it(recruiting, visit, practice, is_held):
    """A script that waits for as long as the plan takes can report an end; the server looks at its own scores."""
    site = recruiting("prolific")
    person = site.begin(platform={"PROLIFIC_PID": prolific_id("one")})
    person.agree()
    practises(person, *practice)
    assert person.event("practice", FAILED).status == 201
    told = person.leave().body
    assert (told["state"], told["held"]) == ("failed_practice", is_held)
    assert told["return_url"].endswith("?cc=NOCODE" if is_held else "?cc=C3OUT")
    assert bool(site.session(person)["held_reason"]) == is_held
    if is_held:
        visit("ben", site).post(page_of(person, "release"), reason="their browser lost the answers")
        assert person.leave().body["completion_code"] == CODES["screened_out"]


@pytest.mark.parametrize("kind", ["eligibility", "comprehension", "practice"])
def test_an_early_end_in_no_time_is_held(recruiting, kind):
    asks = asking("minimum: 5 s, rounds: 1")
    site = recruiting("prolific", CODES, asks, clock=present, eligible=ELIGIBLE)
    person = site.begin(platform={"PROLIFIC_PID": prolific_id("one")})
    if kind == "eligibility":
        person.tell("eligibility", {"first_language": "fr", "age": 30})
    elif kind == "comprehension":
        person.tell("comprehension-1", {"keys": "J"})
    else:
        person.agree()
        practises(person, False)
        person.event("practice", FAILED)
    told = person.leave().body
    # up to the questions on eligibility, no screen of this plan takes any time
    assert told["held"] is (kind != "eligibility")
    if told["held"]:
        assert told["completion_code"] == "NOCODE"
        assert site.session(person)["held_reason"]


def test_an_early_end_that_no_code_is_paid_for_is_not_held(recruiting):
    site = recruiting("mturk", {})
    worker = site.begin(platform=MTURK)
    worker.agree()
    worker.event("practice", FAILED)
    told = worker.leave().body
    assert (told["held"], told["completion_code"]) == (False, None)
    assert told["return_text"] == site.service.pack.texts["return_mturk_screened_out"]


LET_IN = {"first_language": "de", "age": 30}


@pytest.mark.parametrize(
    ("screens", "reason"),
    [
        ((), "the screen 'eligibility' was not answered; the screen 'comprehension-1' was not answered"),
        (("eligibility",), "the screen 'comprehension-1' was not answered"),
        (("comprehension-1",), "the screen 'eligibility' was not answered"),
        (("eligibility", "comprehension-1"), None),
    ],
)
def test_who_skips_a_screen_that_decides_gets_no_code_and_fills_no_place(recruiting, screens, reason):
    site = recruiting("link", {}, asking("rounds: 2, if_failed: end"), wanted=1, eligible=ELIGIBLE)
    person = site.begin()
    if "eligibility" in screens:
        assert person.tell("eligibility", LET_IN).body["eligible"] is True
    if "comprehension-1" in screens:
        assert person.tell("comprehension-1", {"keys": "J"}).body["then"] == "again"
        assert person.tell("comprehension-1", {"keys": "F"}).body["then"] == "go_on"
    told = person.complete().body
    assert (told["held"], told["completion_code"] is None) == (reason is not None, reason is not None)
    assert site.session(person)["held_reason"] == reason
    assert taken(site)[0] == (0 if reason else 1)


def test_what_was_not_passed_after_a_session_timed_out_holds_it(recruiting):
    site = recruiting("link", {}, asking("rounds: 2, if_failed: end"), eligible=ELIGIBLE)
    person = site.begin()
    person.tell("comprehension-1", {"keys": "F"})
    site.change(person, state="timed_out")
    assert person.tell("eligibility", {"first_language": "fr", "age": 30}).body["eligible"] is False
    person.tell("eligibility", LET_IN)
    assert person.complete().body["held"] is True
    assert "'eligibility'" in site.session(person)["held_reason"]


def test_a_copy_that_completes_a_session_holds_it_as_its_page_would(serving, visit):
    site = serving("link")
    script = site.begin()
    script.agree()
    copy = script.copy(*(("trials", script.payload(index)) for index in range(5)))
    assistant = visit("ada", site)
    sent = {"csrf": assistant.token(), "file": (io.BytesIO(json.dumps(copy).encode()), "copy.json")}
    assert assistant.client.post("/admin/small/copy", data=sent).status_code == 302
    row = site.session(script)
    assert row["state"] == "finished" and row["held_reason"]
    assert taken(site)[0] == 0
    told = script.finish(5).body
    assert (told["completion_code"], told["held"]) == (None, True), "asking later does not help"
    assistant.post(page_of(script, "release"), reason="known")
    told = script.finish(5).body
    assert told["completion_code"] and told["held"] is False
    assert script.finish(5).body["completion_code"] == told["completion_code"]


def test_a_session_that_is_kept_held_is_reviewed_and_never_paid(serving, visit):
    site = serving("link")
    script = site.begin()
    script.complete()
    owner = visit("ada", site)
    owner.post(page_of(script, "keep"), reason="five answers in no time")
    assert site.session(script)["held_reason"].endswith(": five answers in no time")
    (held,) = owner.get("/admin/data.json").json["studies"][0]["sessions"]
    assert not held["awaits_review"]
    assert script.finish(5).body["completion_code"] is None
    assert taken(site) == (0, 0)


@pytest.mark.parametrize(("more_s", "is_held"), [(-0.01, True), (0.01, False)])
def test_who_takes_as_long_as_the_plan_is_paid(serving, more_s, is_held):
    moment = present()
    site = serving("link", clock=lambda: moment)
    reader = site.begin()
    begun = datetime.fromisoformat(site.session(reader)["created_at"])
    moment = begun + timedelta(seconds=shortest_seconds(reader.plan, range(5)) + more_s)
    told = reader.complete().body
    assert told["held"] is is_held
    assert (told["completion_code"] is None) is is_held
    assert taken(site) == (not is_held, 0)


def test_each_platform_is_told_that_a_session_is_held(serving):
    words = serving("link").service.pack.texts
    script = serving("prolific", {"complete": "C1DONE"}).begin(platform={"PROLIFIC_PID": prolific_id("one")})
    told = script.complete().body
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=NOCODE"
    assert told["return_text"] == words["return_prolific_held"]
    told = serving("sona", {"credit_url": SONA_URL}).begin(platform={"survey_code": "4711"}).complete().body
    assert (told["return_url"], told["completion_code"]) == (None, None), "the address would grant the credit"
    assert told["return_text"] == words["return_sona_held"]
    worker = serving("mturk").begin(platform=MTURK)
    told = worker.complete().body
    assert told["completion_code"] == f"REVIEW-{worker.session_id[:12]}"
    assert told["return_text"] == words["return_mturk_held"]


def test_books_approve_a_held_session_only_once_it_is_released(serving, visit):
    site = serving("mturk")
    worker = site.begin(platform=MTURK)
    code, ids = worker.complete().body["completion_code"], f"{MTURK['workerId']},{MTURK['assignmentId']}"
    export = f"WorkerId,AssignmentId,AssignmentStatus,Answer.surveycode\n{ids},Submitted,{code}\n"

    def line() -> Any:
        read = parse_export(export.encode(), "x.csv")
        import_submissions(site.store, site.service.recruitment, read, actor="test")
        (found,) = reconciliation(site.store, site.service.recruitment).lines
        return found

    assert line().verdict == "review" and site.session(worker)["held_reason"] in line().reasons[0]
    visit("ada", site).post(page_of(worker, "release"), reason="fine")
    assert line().verdict == "approve" and "wrong_code" not in line().marks


def test_pilots_and_simulated_readers_are_not_held_and_a_laboratory_only_flags(serving):
    site = serving("link")
    for body in ({"pass": site.make_pass("pilot")}, {"pass": site.make_pass("simulated"), "simulated": True}):
        told = site.begin(**body).complete().body
        assert told["completion_code"] and not told["held"]
    lab = serving("lab")
    assert lab.begin().complete().body["completion_code"]
    (flag,) = lab.rows(flags)
    assert re.search(r"\d s\b", flag.reason)


def test_a_session_without_a_trial_holds_its_place_for_ten_minutes_whatever_it_sends(serving):
    site = serving("link")
    invented = site.begin()
    assert taken(site) == (0, 1)
    earlier = stamp(datetime.now(UTC) - timedelta(minutes=11))
    site.change(invented, created_at=earlier)
    site.do(lambda connection: connection.execute(update(chain).values(created_at=earlier)).close())
    assert invented.post("lease", {}, X_Wrods_Lease="a-tab-of-the-script").status == 200
    assert taken(site) == (0, 0)
    assert site.begin().status == 201
    invented.answer(0)
    assert taken(site) == (0, 2), "who answers goes on, and has a place again"
