"""Matrices with scales, sliders, branching and ready blocks: from study.yaml to participants' columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from experiment.exporting.dictionary import participant_rows, read_answers, summarize_people
from experiment.languages import pack_for
from experiment.languages import pack_languages as languages
from experiment.people.preview import create_preview_app
from experiment.people.quality import SessionMetrics
from experiment.procedure import participant_view, plan_session
from experiment.procedure.questions import is_eligible
from experiment.simulated import GroundTruth, StudyEntrance, TrueEffects, fill
from experiment.store import records
from experiment.study import Study
from experiment.study.questionnaires import MatrixRow, asked_on_screen, conditions, is_asked, scale_scores
from experiment.summaries.plain_english import tell, unruled_checks
from stimuli.errors import UserError
from tests.experiment.people.conftest import Running, config_of, settings_of

HABIT = """\
row,text,reversed,scale,accept
r1,I keep a book by my bed.,,leisure,
r2,Novels bore me.,yes,leisure,
r3,I read for my work.,,work,
r4,Please choose partly here.,,,partly
"""
SCREENS = """\
  - questions:
      glasses: {ask: Do you wear glasses?, type: yes_no}
      habit: {ask: How true?, type: matrix, rows: habit.csv, points: ["no", partly, "yes"], score: mean, shuffle: true}
      use:
        ask: How well do these describe you?
        type: matrix
        rows: {films: I watch films., avoid: I avoid them.}
        from: 1
        to: 7
        reversed: [avoid]
        score: sum
        optional: true
      lenses: {ask: And contact lenses?, type: yes_no, only: {glasses: "yes"}}
      when: {ask: When?, type: choice, options: [day, night], shuffle: true, only: {lenses: "yes", habit_r1: [partly, "yes"]}}
  - questions:
      effort: {ask: How hard?, type: slider, from: 0, to: 100, only: {habit_r3: "yes"}}
  - instructions: instructions.md
"""
ANSWERS = {
    **{"glasses": "no", "habit_r1": "yes", "habit_r2": "no", "habit_r3": "yes", "habit_r4": "no"},
    **{"use_films": "7", "use_avoid": None},
}


@pytest.fixture
def study(make_study: Callable[..., Study], tmp_path: Any) -> Study:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "habit.csv").write_text(HABIT, "utf-8")
    return make_study(("  - instructions: instructions.md\n", SCREENS))


@pytest.fixture
def site(study: Study, serve_study: Callable[..., Running]) -> Running:
    return serve_study(study)


def rows_of(site: Running, study: Study) -> list[dict[str, Any]]:
    with site.store.read() as connection:
        return list(participant_rows(connection, study.id, read_answers(study, connection)))


def test_rows_scores_and_what_was_not_asked_are_columns_of_participants(site, study):
    person = site.begin()
    assert person.tell("questions-1", ANSWERS).status == 201
    assert person.tell("questions-2", {"effort": 30}).status == 201
    (row,) = rows_of(site, study)
    assert [row[f"answer_habit_r{number}"] for number in (1, 2, 3, 4)] == [3.0, 1.0, 3.0, 1.0]
    # no to a reversed row counts as yes
    assert (row["score_habit_leisure"], row["score_habit_work"]) == (3.0, 3.0)
    assert (row["answer_use_films"], row["score_use"]) == (7.0, None), "a score needs all of its rows"
    assert row["not_asked"] == "lenses when"
    assert (row["answer_effort"], row.get("answer_lenses")) == (30.0, None)
    person.tell("questions-1", ANSWERS | {"use_avoid": "2", "glasses": "yes", "lenses": "no"})
    (row,) = rows_of(site, study)
    assert (row["score_use"], row["not_asked"]) == (7 + 6, "when"), "the last answers count"
    assert person.tell("questions-1", {"habit": "yes"}).status == 400, "rows are answered, not their matrix"
    with site.store.read() as connection:
        columns = read_answers(study, connection).columns
        summaries = {one["name"]: one for one in summarize_people(study, connection)["answers"]}
    assert "1: no, 2: partly, 3: yes" in columns["answer_habit_r2"].prose
    assert summaries == {}, "nobody has answered a trial yet"
    person.answer_all()
    with site.store.read() as connection:
        summaries = {one["name"]: one for one in summarize_people(study, connection)["answers"]}
    assert summaries["habit leisure"] | {"ask": "", "sd": None} == {
        **{"name": "habit leisure", "ask": "", "type": "score", "n": 1, "rows": 2, "score": "mean"},
        **{"mean": 3.0, "sd": None, "low": 3.0, "high": 3.0},
    }


def test_cronbachs_alpha_is_that_of_the_turned_rows(site, study):
    given = "yes no, partly no, no yes, yes partly, no partly, partly partly"
    answers = [pair.split() for pair in given.split(", ")]
    for first, second in answers:
        person = site.begin()
        person.tell("questions-1", ANSWERS | {"habit_r1": first, "habit_r2": second})
        person.answer_all()
    points = {"no": 1, "partly": 2, "yes": 3}
    rows = np.array([[points[first], 4 - points[second]] for first, second in answers], dtype=float)
    expected = 2 * (1 - rows.var(axis=0, ddof=1).sum() / rows.sum(axis=1).var(ddof=1))
    with site.store.read() as connection:
        summaries = {one["name"]: one for one in summarize_people(study, connection)["answers"]}
    assert summaries["habit leisure"]["alpha"] == pytest.approx(expected) and 0.5 < expected < 1
    assert "alpha" not in summaries["habit work"], "one row has no consistency"


def test_a_page_that_is_opened_again_is_told_the_answers_on_which_later_questions_depend(site):
    person = site.begin()
    person.tell("questions-1", ANSWERS)
    told = person.post("resume", {})
    assert told.body["given"] == {"glasses": "no", "habit_r1": "yes", "habit_r3": "yes"}
    shown = json.dumps([screen for screen in told.body["plan"]["screens"] if screen["kind"] == "questions"])
    assert "is_reversed" not in shown and "accept" not in shown and "leisure" not in shown


def test_rows_about_instructions_are_right_by_their_score(make_study, serve_study):
    rows = "type: matrix, rows: {r1: F is yes., r2: F is no.}, reversed: [r2], points: [wrong, right], score: sum, accept: 4 to 4"
    asked = f"{{pages: instructions.md, questions: {{keys: {{ask: True?, {rows}}}}}}}"
    site = serve_study(make_study(("- instructions: instructions.md", f"- instructions: {asked}")))
    person = site.begin()
    for second, then in (("right", "again"), ("wrong", "go_on")):
        told = person.tell("comprehension-1", {"keys_r1": "right", "keys_r2": second})
        assert told.body["then"] == then


def test_nothing_remains_of_the_answers_of_someone_who_has_them_deleted(site):
    person = site.begin()
    person.tell("questions-1", ANSWERS)
    assert "habit_r1': 'yes" in site.everything()
    assert person.event("stop", {"then": "delete"}).status in (200, 201)
    assert "habit_r1': 'yes" not in site.everything()


def test_missed_checks_among_rows_are_a_sign_for_the_dashboard(site):
    careful, careless, untouched = (site.begin() for _ in range(3))
    for person, answer in ((careful, "partly"), (careless, "no")):
        person.tell("questions-1", ANSWERS | {"habit_r4": answer})
    for person in (careful, careless, untouched):
        person.answer_all()
    with site.store.read() as connection:
        found = SessionMetrics().of(connection, records.sessions_overview(connection), {})
    values = [
        {sign.kind: sign.value for sign in found[person.session_id]}.get("question_checks_failed")
        for person in (careful, careless, untouched)
    ]
    assert values == [0.0, 1.0, None]


def test_a_check_among_rows_without_a_rule_is_named_before_data_are_collected(study, make_study):
    assert unruled_checks(study)
    rule = "analysis: {exclude: {sessions: {question_checks_failed: 1 or more}}}\n"
    ruled = make_study(("  - instructions: instructions.md\n", SCREENS), ("seed: 7\n", f"seed: 7\n{rule}"))
    assert not unruled_checks(ruled)
    assert "among the rows of questions" in " ".join(tell(ruled, ruled.items).paragraphs)
    of_trials = rule.replace("question_checks", "attention_checks")
    checks = ("  - block:\n", "  - block:\n      attention_checks: 1\n")
    half = make_study(
        ("  - instructions: instructions.md\n", SCREENS), ("seed: 7\n", f"seed: 7\n{of_trials}"), checks
    )
    assert "No rule on attention checks among the questions" in unruled_checks(half)


def test_each_session_has_its_own_order_of_rows_and_options(study):
    plans = [plan_session(study, study.items, list_id=1, session_key=key) for key in "abcde"]
    orders = set()
    for plan in plans:
        (asked,) = (one["questions"] for one in plan["screens"] if one.get("name") == "questions-1")
        _, habit, use, _, when = asked
        rows, options = (row["name"] for row in habit["rows"]), (one["value"] for one in when["options"])
        orders.add((*rows, *options))
        assert [row["name"] for row in use["rows"]] == ["use_films", "use_avoid"]
    assert len(orders) > 1 and {tuple(sorted(order)) for order in orders} == {
        ("day", "habit_r1", "habit_r2", "habit_r3", "habit_r4", "night")
    }
    assert plans[0] == plan_session(study, study.items, list_id=1, session_key="a")


def test_a_screen_previewed_alone_asks_what_depends_on_other_screens(study):
    page = create_preview_app(study).test_client().get("/screen?screen=2").text
    (screen,) = config_of(page)["preview_plan"]["screens"]
    assert [(question["name"], question["only"]) for question in screen["questions"]] == [("effort", {})]


def test_a_changed_row_changes_the_design(study):
    before = study.design_hash
    (study.folder / "habit.csv").write_text(HABIT.replace("Novels bore", "Novels tire"), "utf-8")
    assert Study(study.folder, study.source).design_hash != before


def test_simulated_readers_answer_what_they_are_asked(site, study):
    truth = GroundTruth(
        TrueEffects(2.0, {}, 0, 0),
        TrueEffects(6.0, {}, 0, 0),
        questions={"glasses": ["yes"], "habit_r3": ["no"]},
    )
    api = f"http://127.0.0.1:{site.port}/api/small"
    fill(study, truth, StudyEntrance(api, site.make_pass("simulated")), range(1, 13))
    rows = rows_of(site, study)
    assert {row["answer_glasses"] for row in rows} == {"yes"} and all(row["answer_lenses"] for row in rows)
    assert all("effort" in row["not_asked"].split() and row.get("answer_effort") is None for row in rows)
    assert {row["answer_habit_r4"] for row in rows} == {2.0}, "checks are passed"
    asked_when = [row for row in rows if row["answer_lenses"] == "yes" and row["answer_habit_r1"] > 1]
    assert asked_when and all(row["answer_when"] in ("day", "night") for row in asked_when)


def test_a_score_can_decide_on_taking_part(make_study):
    asked = settings_of(
        "eligible: {questions: {habit: {ask: How true?, type: matrix, rows: {r1: I read., r2: I never read.}, "
        "reversed: [r2], points: [a, b, c], score: mean, accept: 2.5 to 3}}}"
    )
    study = make_study(asked)
    plan = plan_session(study, study.items, list_id=1, session_key="s")
    (questions,) = (screen["questions"] for screen in plan["screens"] if screen["kind"] == "questions")
    for second, is_let_in in (("a", True), ("b", True), ("c", False), (None, False)):
        answers = {"habit_r1": "c", "habit_r2": second}
        assert is_eligible(questions, answers) == (is_let_in, [] if is_let_in else ["habit"])
    seen = [screen for screen in participant_view(plan)["screens"] if screen["kind"] == "questions"]
    assert seen and "accept" not in json.dumps(seen)


@pytest.mark.parametrize(
    ("screens", "table", "said"),
    [
        ("q: {ask: A, type: matrix, points: [a, b]}", None, ["needs `rows:`"]),
        ("q: {ask: A, type: matrix, rows: {a: A}}", None, ["has `points:`, or `from:` and `to:`"]),
        ("q: {ask: A, type: matrix, rows: {a: A}, from: 1, to: 40}", None, ["has 40 points"]),
        ("q: {ask: A, type: matrix, rows: {a: A}, from: 0.5, to: 4}", None, ["whole numbers"]),
        ("q: {ask: A, type: matrix, rows: {a: A}, points: [a, a]}", None, ["the same label"]),
        (
            "q: {ask: A, type: matrix, rows: {ab: A}, points: [a, b], reversed: [abc]}",
            None,
            ["no score is made", "row 'abc' is not known"],
        ),
        ("q: {ask: A, type: slider, to: 5}", None, ["a slider needs `from:` and `to:`"]),
        ("q: {ask: A, type: number, shuffle: true}", None, ["has no `shuffle:`"]),
        ("q: {ask: A, type: text, points: [a, b]}", None, ["has no `points:`"]),
        ("q: {ask: A, type: text, only: {r: a}}", None, ["no earlier question"]),
        (
            "q: {ask: A, type: choice, options: [left, right]}\n      "
            "r: {ask: A, type: text, only: {q: lefd}}\n      s: {ask: A, type: text, only: {r: a}}\n      "
            "t: {ask: A, type: text, only: {q: 3 to 4}}",
            None,
            ["answer 'lefd' is not known", "'left'", "a question of type text", "has no numbers"],
        ),
        ("q_a: {ask: A, type: text}\n      q: {ask: A, type: matrix, rows: {a: A}, points: [a, b]}", None, ["'q_a' twice"]),
        (
            "q: {ask: A, type: matrix, rows: rows.csv, points: [a, b], reversed: [r1], score: sum}",
            "row,text,reversed,scale,accept\nR 1,,maybe,Big One,c\nr2,x,,,\nr2,y,,,\n",
            ["line 2: row is 'R 1'", "text is empty", "'maybe'", "'Big One'", "accept is 'c'", "also in line 3", "column rev"],
        ),
        (
            "q: {ask: A, type: matrix, rows: rows.csv, points: [a, b], score: sum}\n      "
            "q_work: {ask: A, type: matrix, rows: {b: B}, points: [a, b], score: sum}",
            "row,text,scale\na,A,work\n",
            ["a score is called 'q_work' twice"],
        ),
        (
            "q: {ask: A, type: matrix, rows: rows.csv, points: [a, b]}",
            "row,text\n" + "".join(f"r{n},x\n" for n in range(201)),
            ["has 201 answers"],
        ),
        ("q: {ask: A, type: matrix, rows: rows.csv, points: [a, b]}", "row,text,revesed\nr1,x,\n", ["'reversed'"]),
        ("q: {ask: A, type: matrix, rows: gone.csv, points: [a, b]}", None, ["gone.csv"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_questions_is_said_at_once(make_study, tmp_path, screens, table, said):
    (tmp_path / "small").mkdir()
    if table is not None:
        (tmp_path / "small" / "rows.csv").write_text(table, "utf-8")
    after = "  - instructions: instructions.md\n"
    with pytest.raises(UserError) as raised:
        make_study((after, f"  - questions:\n      {screens}\n{after}"))
    text = str(raised.value)
    assert [part for part in said if part not in text] == [], text


def test_matrices_on_eligibility_need_one_score_and_a_range(make_study):
    rows = "type: matrix, rows: {r1: I read.}, points: [a, b]"
    for given in (f"{rows}, accept: a, score: mean", f"{rows}, accept: 1 to 2"):
        with pytest.raises(UserError, match="range of its score"):
            make_study(settings_of(f"eligible: {{questions: {{q: {{ask: A, {given}}}}}}}"))


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("block", ["demographics", "reading_habits"])
def test_ready_blocks_speak_every_language_and_may_be_left_empty(make_study, language, block):
    study = make_study(
        ("seed: 7\n", f"seed: 7\nlanguage: {language}\n"),
        ("  - instructions", f"  - questions: {block}\n  - instructions"),
    )
    plan = plan_session(study, study.items, list_id=1, session_key="s")
    (screen,) = (screen for screen in plan["screens"] if screen["kind"] == "questions")
    english = asked_on_screen(make_study(), block)
    assert [question["name"] for question in screen["questions"]] == list(english)
    for question in screen["questions"]:
        assert question["optional"] and question["accept"] is None
        words = [question["ask"], *(option["label"] for option in question["options"] or ())]
        words += [row["text"] for row in question.get("rows", ())]
        assert all(word.strip() for word in words) and len(set(words)) == len(words)
        if language != "en":
            assert question["ask"] != english[question["name"]]["ask"]
    assert pack_for(language).texts["optional"]


def test_demographics_leave_out_what_eligibility_asks(make_study):
    study = make_study(
        settings_of("eligible: {age: [18, 40]}"),
        ("  - instructions", "  - questions: demographics\n  - instructions"),
    )
    plan = plan_session(study, study.items, list_id=1, session_key="s")
    names = [question["name"] for screen in plan["screens"] for question in screen.get("questions", ())]
    assert names.count("age") == 1 and "gender_described" in names


def test_scores_turn_reversed_rows_on_any_numbers():
    turned, check = MatrixRow("q_b", "B", is_reversed=True), MatrixRow("q_c", "C", accept=("0",))
    rows = [MatrixRow("q_a", "A"), turned, check]
    question = {"score": "mean", "points": [0, 5, 10]}
    assert scale_scores(question, {"q_a": "10", "q_b": "0", "q_c": "5"}, rows) == {None: 10.0}
    assert scale_scores(question | {"score": "sum"}, {"q_a": "10", "q_b": 5}, rows) == {None: 15.0}
    assert scale_scores(question, {"q_a": "10"}, rows) == {None: None}


def test_branching_follows_values_and_ranges_of_earlier_answers():
    only = conditions({"age": "60 to 99", "scripts": ["Latin", "Greek"]})
    assert is_asked(only, {"age": 60, "scripts": ["Greek"]})
    for age, scripts in ((59, ["Greek"]), (70, []), ("old", "Latin")):
        assert not is_asked(only, {"age": age, "scripts": scripts})
    assert not is_asked(only, {})
