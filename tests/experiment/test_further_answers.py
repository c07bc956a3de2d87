"""A trial may ask for further answers: each has a name, and a row of its own that no analysis mixes with the trial's answer."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.plan import summary_of
from experiment.building import build_study
from experiment.checking import load_study
from experiment.checking.settings import model_settings
from experiment.lists import SessionPlace
from experiment.models.engine import Reply
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.models.planning.session import ModelSession, SessionTaker, TrialFeedback
from experiment.people.lab.stations import _unfinished
from experiment.people.preview import PreviewStudy
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.procedure.plan_builder import PlanBuilder
from experiment.rating import answers_of, rating_for
from experiment.scoring.trial import score_trial
from experiment.simulated import SimulatedReader, read_truth
from experiment.store import open_store, records
from experiment.study import Study
from experiment.study.study import study_plan
from stimuli.errors import UserError
from tests.experiment.commands import wrods
from tests.experiment.models.running import remote, status_of
from tests.scripted_openai import ScriptedOpenAI

CHOOSE = '- choose: {show: question, keys: {"Yes": j, "No": f}, only: question}'
CONFIDENCE = '- rate: {name: confidence, ask: "How sure are you?", points: [guessing, unsure, certain]}'
GUESS = '- choose: {name: guess, ask: "Was the sentence changed?", keys: {changed: c, intact: n}}'
STUDY = """\
wrods: 1
study: sure
title: How sure are readers?
language: en
seed: 10
materials: {{sentences: sentences.csv}}
design: {{factors: {{plausibility: [plausible, implausible]}}}}
procedure:
  - practice: {{items: practice.csv}}
  - block:
      break_every: 2
{block}      trial:
{steps}
models: {{who: {{draws: {{use: "baseline:random"}}, all: {{use: "baseline:oracle"}}}}{models}}}
{more}"""
SPREAD = {"participant_sd": 0.3, "item_sd": 0.3}
TRUTH = {
    "accuracy": {"intercept": 2.0, "effects": {}, **SPREAD},
    "time": {"intercept": 6.5, "effects": {}, "residual_sd": 0.2, **SPREAD},
    "steps": {
        "confidence": {
            "intercept": 2.0,
            "effects": {"plausibility": {"implausible": -0.6}},
            **SPREAD,
            "residual_sd": 0.5,
        }
    },
}


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Study]:
    def make(
        *steps: str, block: str = "", models: str = "", more: str = "", head: str = "", cells: str = ""
    ) -> Study:
        rows = [f"item,sentence:plausible,sentence:implausible,question,answer{head}"]
        rows += [
            f"s{n},The cat drank cream {n}.,The cat drank stone {n}.,{'' if n == 5 else 'Was it a cat?'},"
            f"{'' if n == 5 else ('Yes', 'No')[n % 2]}{cells}"
            for n in range(6)
        ]
        (tmp_path / "sentences.csv").write_text("\n".join(rows) + "\n", "utf-8")
        (tmp_path / "practice.csv").write_text(
            "item,sentence,question,answer\np1,The dog ate.,Was it a dog?,Yes\n", "utf-8"
        )
        lines = "\n".join(f"        {step}" for step in ("- read: {show: sentence}", *steps))
        text = STUDY.format(steps=lines, block=block, models=models, more=more)
        (tmp_path / "study.yaml").write_text(text, "utf-8")
        build_study(load_study(tmp_path))
        return load_study(tmp_path)

    return make


def planned(study: Study) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, study.items, list_id=1))


def test_a_further_answer_follows_the_answer_that_it_is_about_and_nothing_else(
    asked: Callable[..., Study],
) -> None:
    trials = planned(asked(CHOOSE, CONFIDENCE, GUESS, head=",guess_answer", cells=",intact"))
    names = [trial.get("step_name") for trial in trials]
    assert names == [name for trial in trials if "step_name" not in trial
                     for name in ([None] if trial["trial_type"] == "read" else [None, "confidence", "guess"])]  # fmt: skip
    assert names.count(None) == 7 and [trial["trial_index"] for trial in trials] == list(range(19))
    for before, trial in itertools.pairwise(trials):
        if "step_name" in trial:
            assert trial["item_id"] == before["item_id"] and trial["condition"] == before["condition"]
            assert trial["is_practice"] == before["is_practice"]
            assert (trial["fixation_ms"], trial["interval_ms"], len(trial["steps"])) == (0, 0, 1)
    answers = {trial["answer"] for trial in trials if trial.get("step_name") == "guess"}
    assert answers == {"intact", None}  # practice has no such column


@pytest.mark.parametrize(("ours", "named"), [(True, True), (False, True), (True, False)])
def test_the_choices_of_each_step_are_in_its_own_order(
    asked: Callable[..., Study], ours: bool, named: bool
) -> None:
    study = asked(CHOOSE)
    items = [replace(item, choices=("Yes", "No")) for item in study.items if item.shown.get("question")]
    builder = PlanBuilder(study, items, SessionPlace(1, None), label_map=0, between={"condition": {}})
    order = {True: {"choice_order": "random"}, False: {}}
    choose = {"show": "question", "keys": ["j", "f"]}
    trial = [{"choose": choose | order[ours]}, {"choose": choose | order[named] | {"name": "again"}}]
    orders: dict[bool, set[tuple[int, ...]]] = {False: set(), True: set()}
    for item in items:
        for made in builder._trials_of(item, "block-1", {"trial": trial}):
            orders["step_name" in made].add(tuple(made["choice_order"]))
    assert [len(orders[is_further]) for is_further in (False, True)] == [1 + ours, 1 + named]


@pytest.mark.parametrize("keys", ['{"Yes": j, "No": f, Unsure: k}', '{"No": f, "Yes": j}'])
def test_labels_that_no_list_swaps_may_be_among_those_of_another_step(
    asked: Callable[..., Study], keys: str
) -> None:
    study = asked(CHOOSE, f"- choose: {{name: again, keys: {keys}}}")
    assert {tuple(trial["steps"][-1]["responses"]) for trial in planned(study) if "step_name" in trial}


def test_pages_know_the_name_and_no_answer(asked: Callable[..., Study]) -> None:
    study = asked(CHOOSE, GUESS, head=",guess_answer", cells=",intact")
    shown = trials_of(participant_view(plan_session(study, study.items, list_id=1)))
    further = [trial for trial in shown if trial.get("step_name") == "guess" and not trial["is_practice"]]
    assert further and all("answer" not in trial and "item_id" not in trial for trial in further)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((CHOOSE, CONFIDENCE.replace("name: confidence, ", "")),
         "rate is a second answering step without a name; a trial has one Write name: confidence"),
        ((CONFIDENCE,), "no answering step without a name comes before it"),
        ((CONFIDENCE, CHOOSE), "no answering step without a name comes before it"),
        ((CHOOSE, CONFIDENCE, CONFIDENCE), "'confidence', which is the name of another step"),
        ((CHOOSE, CONFIDENCE.replace("confidence", "rate")), "'rate', which is a trial type"),
        ((CHOOSE, CONFIDENCE.replace("name: confidence", "name: How Sure")), "How Sure"),
        ((CHOOSE, CONFIDENCE, "- read: {show: question}"), "read follows confidence"),
        ((CHOOSE, '- choose: {name: again, keys: {"Yes": j, "No": f}, labels: balanced}'), "labels of an earlier step"),
        ((CHOOSE.replace("only: question", "labels: balanced"), '- choose: {name: again, keys: {"Yes": j, "No": f}}'),
         "Give both steps the same labels in the same order"),
        ((CHOOSE, '- choose: {name: again, keys: {"Yes": j, Maybe: k}, labels: balanced}'), "labels of an earlier step"),
    ],
)  # fmt: skip
def test_second_answers_without_a_name_of_their_own_are_refused(
    asked: Callable[..., Study], steps: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UserError) as refused:
        asked(*steps)
    assert said in " ".join(str(refused.value).split()) and "study.yaml, line " in str(refused.value)


def test_a_key_that_is_none_of_the_answers_and_feedback_before_a_further_answer_are_refused(
    asked: Callable[..., Study],
) -> None:
    study = asked(CHOOSE, GUESS, head=",guess_answer", cells=",untouched")
    with pytest.raises(
        UserError, match="guess_answer is 'untouched'; the answers to guess are changed, intact"
    ):
        planned(study)
    with pytest.raises(UserError, match="before they answer confidence"):
        asked(CHOOSE, CONFIDENCE, block="      feedback: accuracy\n")


def session_of(study: Study, name: str = "draws") -> ModelSession:
    manner = read_prompting_settings(study, model_settings(study, name))
    script = SessionTemplate(plan_session(study, study.items, list_id=1), manner)
    return ModelSession(script, [study.id, name], SessionTaker(name, 1))


def answer(session: ModelSession, request: Any, text: str) -> list[Any]:
    return session.follow(Reply(request.work_key, text, "answered"))


@pytest.mark.parametrize("models", ["", ", context: session"])
def test_a_model_answers_the_second_step_after_its_first_answer_in_the_same_conversation(
    asked: Callable[..., Study], models: str
) -> None:
    session = session_of(asked(CHOOSE, CONFIDENCE, GUESS, models=models))
    begun = session.begin({})
    names = [session.trial_of(request.work_key).get("step_name") for request in begun]
    assert set(names) == {None}, "a further answer is asked after the answer that it is about"
    first = next(request for request in begun if session.trial_of(request.work_key)["trial_type"] == "choose")
    seen = len(first.messages)
    (second,) = answer(session, first, "Yes")
    assert session.trial_of(second.work_key)["step_name"] == "confidence"
    assert second.labels == ("guessing", "unsure", "certain")
    *before, reply, question = [message.content for message in second.messages]
    assert reply == "Yes" and "Was it a " in before[-1] and len(before) == seen
    assert "How sure are you?" in question and "Was it a" not in question
    (third,) = answer(session, second, "unsure")
    assert [message.content for message in third.messages][-2] == "unsure"
    assert "Was the sentence changed?" in third.messages[-1].content
    again = answer(session, third, "changed")
    assert len(again) == bool(models)


def test_a_run_that_stopped_between_two_answers_goes_on_with_the_second(asked: Callable[..., Study]) -> None:
    study = asked(CHOOSE, CONFIDENCE)
    session = session_of(study)
    main = next(trial for trial in session.trials if trial["trial_type"] == "choose")
    begun = session.begin({main["trial_index"]: TrialFeedback("No", False)})
    first = next(r for r in begun if session.trial_of(r.work_key).get("step_name") == "confidence")
    assert session.trial_of(first.work_key)["trial_index"] == main["trial_index"] + 1
    assert [message.content for message in first.messages][1] == "No"


def test_the_preview_counts_trials_and_names_their_further_answers(asked: Callable[..., Study]) -> None:
    rows = PreviewStudy(asked(CHOOSE, CONFIDENCE).folder).choices()["screens"]["1"]
    shown = [(row["number"], row["step"]) for row in rows if row["trial"] is not None]
    assert [number for number, step in shown if step is None] == list(range(1, 8))
    assert {step for _, step in shown} == {None, "confidence"}
    assert len(set(shown)) == len(shown) > 7


def test_further_answers_have_rows_of_their_own_that_only_a_plan_naming_them_analyses(
    asked: Callable[..., Study], tmp_path: Path
) -> None:
    more = """\
participants: {wanted: 8}
analysis:
  planned:
    right: {measure: correct, compare: plausibility, between: [human, draws]}
    sure: {measure: rating, trials: confidence, compare: plausibility, between: [human, draws]}
"""
    study = asked(CHOOSE, CONFIDENCE, more=more)
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    for command in (("check",), ("simulate", "--readers", 8), ("run",)):
        done = wrods(command[0], study.folder, *command[1:])
        assert done.exit_code == 0, done.output
        assert command[0] != "simulate" or "answered 56 trials" in done.output  # 7 of each reader
    done = wrods("export", study.folder, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "trials.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    further = [row for row in rows if row["step_name"]]
    assert {row["step_name"] for row in further} == {"confidence"}
    assert {row["reader_kind"] for row in further} == {"simulated", "baseline"}
    assert all(
        row["rating"] in ("1", "2", "3", "1.0", "2.0", "3.0") and not row["correct"]
        for row in further
        if row["reader"] != "all"
    )
    own = [row for row in rows if not row["step_name"] and row["trial_type"] == "choose"]
    assert len(own) == len(further) and not any(row["rating"] for row in own)
    done = wrods("report", study.folder)
    assert done.exit_code == 0, done.output
    (report,) = (study.folder / "reports").iterdir()
    with (report / "tables" / "table_01_answer_full.csv").open(encoding="utf-8") as file:
        answer_rows = [" ".join(row) for row in csv.reader(file)]
    assert sum("implausible − plausible" in row for row in answer_rows) >= 2, answer_rows
    with (report / "trials.csv").open(encoding="utf-8") as file:
        reasons = {
            row["excluded_reason"]
            for row in csv.DictReader(file)
            if row["step_name"] and row["is_practice"].lower() == "false"
        }
    assert reasons == {"further answer (counts where a plan names its step)"}


def test_a_plan_that_names_no_step_of_the_study_or_a_rating_of_none_is_refused(
    asked: Callable[..., Study],
) -> None:
    plan = "participants: {{wanted: 8}}\nanalysis: {{planned: {{p: {{{plan}compare: plausibility, between: [human]}}}}}}\n"
    for given, said in (
        ("measure: rating, trials: sureness, ", "further answers are confidence"),
        ("measure: rating, ", "no trial ends with a rating, and trials of this study end with choose Write trials: confidence"),
        ("measure: correct, trials: confidence, ", "no rating is right or wrong"),
    ):  # fmt: skip
        with pytest.raises(UserError) as refused:
            asked(CHOOSE, CONFIDENCE, more=plan.format(plan=given))
        assert said in " ".join(str(refused.value).split())


@pytest.mark.parametrize(
    ("group", "given", "nearest"),
    [
        ("accuracy", {"plausiblity": {"implausible": -1}}, "plausibility"),
        ("steps", {"confidense": {"intercept": 2, "effects": {}, **SPREAD}}, "confidence"),
    ],
)
def test_effects_of_a_misspelt_factor_or_step_are_refused_with_the_nearest_name(
    asked: Callable[..., Study], group: str, given: dict[str, Any], nearest: str
) -> None:
    study = asked(CHOOSE, CONFIDENCE)
    truth = {**TRUTH, group: {**TRUTH[group], "effects": given} if group == "accuracy" else given}
    (study.folder / "simulated.json").write_text(json.dumps(truth), "utf-8")
    with pytest.raises(UserError, match=f"{next(iter(given))}.*\n.*{nearest}"):
        SimulatedReader("S001", study, read_truth(study.folder / "simulated.json"))


def test_the_summary_of_a_plan_says_of_which_trials_it_is(asked: Callable[..., Study]) -> None:
    more = """\
participants: {wanted: 8}
analysis:
  planned:
    p: {measure: rt, trials: confidence, compare: plausibility, between: [human]}
    q: {measure: rt, compare: plausibility, between: [human], exclude: {answers: wrong}}
"""
    told = summary_of(study_plan(asked(CHOOSE, CONFIDENCE, more=more)))
    assert "(implausible - plausible, two-sided), of confidence; q: " in told
    assert "(implausible - plausible, two-sided), without wrong answers." in told


@pytest.mark.parametrize("is_text", [True, False])
def test_raters_see_free_answers_of_a_step_whatever_other_steps_ask_for(
    asked: Callable[..., Study], tmp_path: Path, is_text: bool
) -> None:
    (tmp_path / "rubric.md").write_text("One point for a reason.", "utf-8")
    steps = ("- answer: {show: question, only: question}", "- answer: {name: why, ask: Why?}")
    more = "rating: {rubric: rubric.md}"
    study = asked(*steps, block="      state_rule: {ask: Which rule?}\n", more=more)
    plan = plan_session(study, study.items, list_id=1)
    trials = [trial for trial in trials_of(plan) if trial["trial_type"] == "answer"]
    ours = [trial for trial in trials if "step_name" not in trial and not trial["is_filler"]]
    for trial in trials:
        trial["accepted"] = []
        trial["steps"][-1]["read_as"] = "text" if (trial in ours) == is_text else "number"

    def store_all(connection: Any) -> None:
        records.create_session(connection, plan, session_id="f" * 32, reader_kind="model", reader="restorer")
        for trial in trials:
            row = records.planned_columns(trial) | {"session_id": "f" * 32, "response_raw": "12"}
            records.store_trial(connection, row, (), score_trial(trial, "12"))

    with open_store(study.folder) as store:
        store.write(store_all).result()
        with store.read() as connection:
            found = answers_of(connection, study.id, rating_for(study))
    expected = [trial for trial in trials if (trial in ours) == is_text and not trial["is_practice"]]
    assert [answer.place[1] for answer in found] == [trial["trial_index"] for trial in expected] != []


def test_a_station_counts_trials_without_their_further_answers(asked: Callable[..., Study]) -> None:
    study = asked(CHOOSE, CONFIDENCE, GUESS)
    plan = plan_session(study, study.items, list_id=1)
    trials = trials_of(plan)

    def store(*chosen: dict[str, Any]) -> Callable[[Any], None]:
        def write(connection: Any) -> None:
            if chosen == (trials[0],):
                records.create_session(
                    connection, plan, reader_kind="human", reader="P1", session_id="f" * 32
                )
            for trial in chosen:
                row = records.planned_columns(trial) | {"session_id": "f" * 32, "response_raw": "Yes"}
                records.store_trial(connection, row, (), score_trial(trial, "Yes"))

        return write

    with open_store(study.folder) as opened:
        for given, following in ((trials[:1], 1), (trials[1:-1], 6), (trials[-1:], 7)):
            opened.write(store(*given)).result()
            with opened.read() as connection:
                row = records.session(connection, "f" * 32)
                left = _unfinished(connection, dict(row or {}))
            assert (left.next_trial, left.trials) == (following, 6)


LONG = (
    "400",
    "This model's maximum context length is 64 tokens. However, your messages resulted in 90 tokens.",
)


@pytest.mark.parametrize("fault", [("400", "flagged"), LONG])
def test_a_further_answer_whose_trial_brought_no_answer_is_missing_too(
    asked: Callable[..., Study], fault: tuple[str, str]
) -> None:
    folder = asked(CHOOSE, CONFIDENCE, GUESS).folder

    def said(body: dict[str, Any]) -> str:
        question = str(body["messages"][-1]["content"])
        return "certain" if "How sure" in question else "intact" if "changed?" in question else "Yes"

    with ScriptedOpenAI(answer=said) as server:
        file = folder / "study.yaml"
        text = file.read_text("utf-8").replace('draws: {use: "baseline:random"}', remote("m", server))
        file.write_text(text.replace(', all: {use: "baseline:oracle"}', ""), "utf-8")
        server.always["cream 2"] = fault  # the main answer of one item, in the list that shows it so
        wrods("run", folder)
        sent = len(server.requests)
        done = wrods("run", folder, "--json")
        assert len(server.requests) - sent == (fault != LONG), "what was answered is not paid again"
        (told,) = json.loads(done.stdout)["models"]
        assert (told["planned"], told["stored_before"]) == (30, 27)
        assert (told["left"], told["given_up"]) == ((0, 3) if fault == LONG else (3, 0)), (
            "none of the three remains"
        )
        status = status_of(folder)
        assert status["readers"][0]["unanswered"] == ({} if fault == LONG else {"error": 3})
        assert status["readers"][0]["states"] == {"finished": 1, "ended" if fault == LONG else "started": 1}
        assert wrods("export", folder, "--out", folder / "out").exit_code == 0
        with (folder / "out" / "trials.csv").open(encoding="utf-8") as exported:
            rows = [row for row in csv.DictReader(exported) if row["response_status"] == "error"]
        assert [row["step_name"] for row in rows] == ["", "confidence", "guess"]
        assert len({(row["session_id"], row["item_id"], row["plausibility"]) for row in rows}) == 1
        server.always.clear()
        sent = len(server.requests)
        assert wrods("run", folder, *(["--ask-again"] if fault == LONG else [])).exit_code == 0
        assert len(server.requests) - sent == 3
        assert status_of(folder)["readers"][0]["states"] == {"finished": 2}
