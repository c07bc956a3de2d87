"""Groups that people belong to: answers decide, and only then a session has a list, one of its group."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from experiment.checking import load_study
from experiment.lists import list_ids
from experiment.procedure import plan_session, trials_of
from experiment.procedure.questions import is_eligible
from experiment.simulated import GroundTruth, StudyEntrance, TrueEffects, fill
from experiment.store import chain
from experiment.store.session_activity import stamp
from stimuli.errors import UserError
from tests.experiment.people.browsing import TEXTS, walk
from tests.experiment.people.conftest import settings_of

LEVELS = "native: {eligible: {first_language: en}}, learner: {eligible: {first_language: [de, nl]}}"


def grouped(levels: str = LEVELS) -> tuple[str, str]:
    return ("procedure:", f"  between: {{group: {{{levels}}}}}\nprocedure:")


LISTS = {"native": {1, 2}, "learner": {3, 4}}
LANGUAGE = {"native": "en", "learner": "nl"}


@pytest.fixture
def site(make_study: Any, serve_study: Any) -> Any:
    return serve_study(make_study(grouped()))


def arrive(site: Any, group: str, **body: Any) -> Any:
    """Begin a session, say which language one learned first, and take the whole plan."""
    person = site.begin(**body)
    told = person.tell("eligibility", {"first_language": LANGUAGE[group]})
    assert told.body["then"] == "assigned", told.text
    person.plan = person.caller.get(person.base, **person.auth).body["plan"]
    return person


def test_a_list_comes_after_the_answers_and_never_before(site):
    person = site.begin()
    row = site.session(person)
    assert (row["list_id"], row["order_row"], row["planned_trials"]) == (None, None, 0)
    kinds = [screen["kind"] for screen in person.plan["screens"]]
    assert kinds == ["consent", "questions", "debrief"] and "accept" not in json.dumps(person.plan)
    assert not {"groups", "awaits_group"} & set(json.dumps(person.plan).split('"')), (
        "no page learns the groups"
    )
    assert person.finish(0).status == 409, "a session without trials is not complete"
    person = arrive(site, "learner")
    row = site.session(person)
    assert row["list_id"] in LISTS["learner"] and row["planned_trials"] == len(trials_of(row["plan"])) > 0
    assert {trial["condition"]["group"] for trial in trials_of(row["plan"])} == {"learner"}
    assert person.complete().body["state"] == "finished"
    with site.store.read() as connection:
        assert chain.verify(connection, person.session_id).broken is None


def test_lists_are_balanced_within_each_group(site):
    people = [arrive(site, group) for group in ("native",) * 6 + ("learner",) * 4]
    lists = [site.session(person)["list_id"] for person in people]
    assert {n: lists.count(n) for n in lists} == {1: 3, 2: 3, 3: 2, 4: 2}


def test_answers_count_once_whatever_another_tab_says(site):
    person, token = site.begin(), str(uuid.uuid4())
    person.agree()
    told = [person.tell("eligibility", {"first_language": "en"}, token) for _ in range(2)]
    told.append(person.tell("eligibility", {"first_language": "nl"}))
    assert [one.body["then"] for one in told] == ["assigned"] * 3
    assert site.session(person)["list_id"] in LISTS["native"]
    assert len([event for event in site.events if event["kind"] == "answers"]) == 1
    plan = person.caller.get(person.base, **person.auth).body["plan"]
    assert [screen.get("is_answered") for screen in plan["screens"] if screen["kind"] == "questions"] == [
        True
    ]


def test_who_belongs_to_no_group_is_screened_out(site):
    person = site.begin()
    told = person.tell("eligibility", {"first_language": "fr"})
    row = site.session(person)
    assert (told.body["eligible"], row["state"], row["list_id"]) == (False, "screened_out", None)
    assert row["ended_reason"] == "eligibility: first_language"


def test_a_full_group_turns_its_people_away_and_leaves_the_other_open(recruiting):
    site = recruiting("link", None, grouped(), wanted=2)
    first = arrive(site, "native")
    assert first.complete().status == 200
    late, token = site.begin(), str(uuid.uuid4())
    for _ in range(2):
        told = late.tell("eligibility", {"first_language": "en"}, token)
        assert (told.body["eligible"], told.body["then"]) == (False, "full")
    row = site.session(late)
    assert (row["state"], row["ended_reason"], row["list_id"]) == (
        "screened_out",
        "group is full: native",
        None,
    )
    other = arrive(site, "learner")
    assert site.session(other)["list_id"] in LISTS["learner"]
    # a participant who withdraws gives the place back
    assert first.event("stop", {"then": "delete"}).body == {"erased": True}
    again = arrive(site, "native")
    assert site.session(again)["list_id"] in LISTS["native"]


def test_readers_beyond_the_places_of_a_group_take_none_of_another(recruiting):
    site = recruiting("link", None, grouped(), wanted=2, overbook=4)
    native = [arrive(site, "native") for _ in range(3)]
    assert [person.complete().status for person in native[:2]] == [200, 200]
    learner = arrive(site, "learner")
    assert site.session(learner)["list_id"] in LISTS["learner"]
    learner.complete()
    assert site.opening().body["rule"] == "full"


def test_a_list_given_late_holds_its_place(recruiting):
    site = recruiting("link", None, grouped(), wanted=4)
    lists = []
    for _ in range(2):
        person = site.begin()
        site.change(person, created_at=stamp(datetime.now(UTC) - timedelta(minutes=15)))
        assert person.tell("eligibility", {"first_language": "en"}).body["then"] == "assigned"
        lists.append(site.session(person)["list_id"])
    assert sorted(lists) == [1, 2]
    late = site.begin()
    assert late.tell("eligibility", {"first_language": "en"}).body["then"] == "full"


def test_a_restart_decides_anew(make_study, serve_study):
    site = serve_study(make_study(grouped(), settings_of("if_interrupted: {then: restart}")))
    person = arrive(site, "native", participant="P9")
    previous = site.session(person)["client_uuid"]
    again = site.begin(participant="P9", previous=previous)
    assert site.session(person)["state"] == "interrupted" and site.session(again)["list_id"] is None


def test_simulated_readers_fill_the_groups_in_turn(site):
    plain = TrueEffects(1.0, {}, 0, 0)
    entrance = StudyEntrance(f"http://127.0.0.1:{site.port}/api/small", site.make_pass("simulated"))
    truth = GroundTruth(plain, TrueEffects(6.5, {}, 0, 0))
    fill(load_study(site.service.folder), truth, entrance, range(1, 9))
    lists = sorted(row["list_id"] for row in site.sessions)
    assert lists == [1, 1, 2, 2, 3, 3, 4, 4] and {row["state"] for row in site.sessions} == {"finished"}


def test_models_have_no_group(make_study):
    study = make_study(grouped())
    assert list_ids(study, study.items, of_models=True) == [1, 2]
    plan = plan_session(study, study.items, list_id=1, is_of_model=True)
    assert all("group" not in trial["condition"] for trial in trials_of(plan))
    planned = "analysis: {planned: {rt: {measure: correct, compare: group, between: [human, oracle]}}}\n"
    models = "models: {who: {oracle: {use: 'baseline:oracle'}}}\n"
    with pytest.raises(UserError, match="models read the same at all levels of group"):
        make_study(grouped(), ("seed: 7\n", f"seed: 7\n{models}{planned}"), name="planned")


def test_ages_and_own_questions_decide_too(make_study, serve_study):
    own = "questions: {musician: {ask: Do you play?, type: yes_no, accept: ['yes', 'no']}}"
    levels = "players: {eligible: {musician: 'yes', age: [18, 30]}}, others: {eligible: {musician: 'no', age: [31, 60]}}"
    site = serve_study(make_study(settings_of(f"eligible: {{{own}}}"), grouped(levels)))
    for answers, is_let_in in (
        ({"musician": "yes", "age": 20}, True),
        ({"musician": "no", "age": 40}, True),
        ({"musician": "no", "age": 20}, False),
    ):
        assert site.begin().tell("eligibility", answers).body["eligible"] is is_let_in
    study = load_study(site.service.folder)
    (screen,) = (
        one for one in plan_session(study, study.items, list_id=3)["screens"] if one["kind"] == "questions"
    )
    assert is_eligible(screen["questions"], {"musician": "no", "age": 31})[0]
    assert not is_eligible(screen["questions"], {"musician": "yes", "age": 31})[0]


@pytest.mark.parametrize(
    ("levels", "participants", "words"),
    [
        ("a: {eligible: {first_language: en}}, b: {texts: {instructions.md: debrief.md}}", "", "does not say who"),
        ("a: {eligible: {first_language: en}}, b: {eligible: {first_language: [de, en]}}", "", "both a and b"),
        ("a: {eligible: {age: [18, 30]}}, b: {eligible: {age: [30, 60]}}", "", "both a and b"),
        ("a: {eligible: {handed: left}}, b: {eligible: {handed: right}}", "", "handed"),
        (LEVELS, "eligible: {first_language: en}", "admits en alone"),
        (LEVELS, "wanted: 21", "2 groups cannot share equally"),
    ],
)  # fmt: skip
def test_groups_that_cannot_be_filled_are_refused(make_study, levels, participants, words):
    changes = (grouped(levels), *((settings_of(participants),) if participants else ()))
    with pytest.raises(UserError, match=words):
        make_study(*changes)


@pytest.mark.browser
@pytest.mark.parametrize("then", ["resume", "restart"])
def test_the_page_goes_on_with_the_plan_of_its_group(make_study, serve_study, page, then):
    participants = f"recruit: link, if_interrupted: {{then: {then}}}"
    site = serve_study(make_study(grouped(), settings_of(participants)))
    page.goto(site.address)
    page.get_by_role("heading", name="Welcome").wait_for()
    page.keyboard.press("Space")
    page.get_by_role("button", name=TEXTS["agree"]).click()
    page.get_by_label(TEXTS["question_first_language"]).select_option("nl")
    page.get_by_role("button", name=TEXTS["go_on"]).click()
    page.get_by_role("heading", name=TEXTS["instructions_title"], exact=True).wait_for()
    assert site.sessions[0]["list_id"] in LISTS["learner"]
    if then == "resume":
        page.reload()
        page.get_by_role("heading", name="Welcome back").wait_for()
        page.keyboard.press("Space")
        page.get_by_role("heading", name=TEXTS["instructions_title"], exact=True).wait_for()
    walk(page, "Thank you")
    assert [row["state"] for row in site.sessions] == ["finished"]
