"""Sessions of models: the keys of their work, and what they are sent in each context."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiment.languages import pack_for, wording
from experiment.models import ModelSettings, Reply
from experiment.models.engine import Engine, RegionScore, Request
from experiment.models.engines import BaselineEngine
from experiment.models.planning.plans import plan_sessions
from experiment.models.planning.prompt_preview import first_prompts
from experiment.models.planning.prompting_settings import right_answer
from experiment.models.planning.session import ModelSession, Person, TrialFeedback, given_back, restored_text
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import VERSION
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.conftest import make_item, small_items

MODELS = "title: A small study\n"


def with_models(*lines: str, who: str = 'm: {use: "hf:m"}') -> tuple[str, str]:
    """Return the change that gives the small study models."""
    said = "".join(f"  {line}\n" for line in lines)
    return MODELS, f"{MODELS}models:\n{said}  who: {{{who}}}\n"


def sessions(
    study: Study, use: str = "hf:m", people: list[Person] | None = None, **options: object
) -> list[ModelSession]:
    return list(
        plan_sessions(study, "m", ModelSettings(use, options, study.folder), {"model": "m"}, people=people)
    )


def reply(request: Request, text: str | None, **more: Any) -> Reply:
    return Reply(request.work_key, text, more.pop("status", "answered"), **more)


def contents(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in request.messages]


def talk(session: ModelSession, answers: list[str]) -> list[Request]:
    """Answer one question after the other; return every request."""
    sent = session.begin({})
    for text in answers:
        sent += session.follow(reply(sent[-1], text))
    return sent


READ = ("- choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}",
        "- read: {show: word}\n        - choose: {ask: Which word was it?, keys: [f, j], answer_by: text}")  # fmt: skip


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ((), {"temperature": 0.5}),
        ((), {"system": "system"}),
        ((), {"strategy": "chain_of_thought"}),
        (("practice: shown",), {}),
        (("context: session",), {}),
    ],
)
def test_whatever_changes_a_prompt_or_its_sampling_changes_every_key(make_study, change, options):
    before = {key for one in sessions(make_study(with_models())) for key in one.keys}
    after = {key for one in sessions(make_study(with_models(*change)), **options) for key in one.keys}
    assert not before & after


def make_again(study: Study) -> Study:
    from experiment.checking import load_study

    return load_study(study.folder)


def test_an_independent_trial_stands_behind_the_instructions_and_nothing_else(make_study):
    (session, _) = sessions(make_study(with_models()))
    requests = session.begin({})
    assert [one.work_key for one in requests] == list(session.keys)
    for request, trial in zip(requests, session.trials, strict=True):
        ((role, text),) = contents(request)
        assert role == "user" and text.startswith("The instructions\n\nSome text.\n\nScrambled word: ")
        assert request.labels == tuple(trial["steps"][-1]["labels"])
        assert session.follow(reply(request, request.labels[0])) == []
    (session, _) = sessions(make_study(with_models()), system="system")
    (system, user) = contents(session.begin({})[0])
    assert system == ("system", "The instructions\n\nSome text.") and user[1].startswith("Scrambled word")


def test_shown_practice_stands_solved_with_feedback_before_each_trial(make_study):
    (session, _) = sessions(make_study(with_models("practice: shown")))
    ((_, text),) = contents(session.begin({})[0])
    words = wording("en")
    solved = (
        rf"{words['practice'][0]}\n\n.*: etacher\n.*\n\nAnswer: teacher\n.+\n\n{words['practice_over'][0]}"
    )
    assert re.search(solved, text)
    assert not any(trial["is_practice"] for trial in session.trials)


def test_answered_practice_is_a_conversation_that_every_trial_goes_on_from(make_study):
    (session, _) = sessions(make_study(with_models("practice: answered")))
    (first,) = session.begin({})
    assert session.trial_of(first.work_key)["is_practice"]
    after = session.follow(reply(first, "reached"))
    assert len(after) == 4
    for request in after:
        roles = [role for role, _ in contents(request)]
        assert roles == ["user", "assistant", "user"]
        assert request.messages[1].content == "reached"
        told = request.messages[2].content.partition("\n")[0]
        assert told.startswith(pack_for("en").texts["feedback_incorrect"]) and "teacher" in told


def test_a_session_grows_by_its_answers_and_feedback(make_study):
    study = make_study(with_models("context: session"), ("break_every: 2", "feedback: accuracy"))
    (session, _) = sessions(study)
    trials = list(session.trials)
    answers = [right_answer(trials[0]), "nonsense", right_answer(trials[2]), right_answer(trials[3])]
    sent = talk(session, answers)
    assert [session.trial_of(one.work_key) for one in sent] == trials
    last = contents(sent[-1])
    assert [text for role, text in last if role == "assistant"] == answers[:4]
    users = [text for role, text in last if role == "user"]
    assert users[0].startswith("The instructions") and "The instructions" not in "".join(users[1:])
    told = [text.split("\n\n")[0] for text in users[1:]]
    assert told == ["Correct.", "Not correct.", "Correct.", "Correct."]


def test_a_conversation_is_rebuilt_word_for_word_from_stored_answers(make_study):
    study = make_study(with_models("context: session"), ("break_every: 2", "feedback: accuracy"))
    answers = ["teacher", "nonsense", "basket"]
    sent = talk(sessions(study)[0], answers)
    again = sessions(study)[0]
    told = {
        trial["trial_index"]: TrialFeedback(text, correct=text == trial["answer"])
        for trial, text in zip(again.trials, answers, strict=False)
    }
    assert again.begin(told) == sent[-1:]


def test_a_conversation_waits_where_an_answer_failed_on_the_way(make_study):
    (session, _) = sessions(make_study(with_models("context: session")))
    (first,) = session.begin({})
    assert session.follow(reply(first, None, status="error")) == []


def test_a_break_and_later_instructions_stand_between_the_turns(make_study):
    study = make_study(
        with_models("context: session", "practice: none"),
        ("  - debrief: debrief.md",
         "  - break: {text: debrief.md}\n  - instructions: consent.md\n  - block:\n      trial:\n"
         "        - choose: {show: word, keys: [f, j], answer_by: text}\n  - debrief: debrief.md"),
    )  # fmt: skip
    (session, _) = sessions(study)
    sent = talk(session, ["garden", "basket"])
    assert (
        sent[2].messages[-1].content.startswith("The debrief\n\nSome text.\n\nThe consent\n\nSome text.\n\n")
    )
    (alone, _) = sessions(make_study(with_models(), name="alone"))
    assert "The debrief" not in alone.begin({})[0].messages[0].content


def test_a_thought_is_asked_for_and_its_answer_read(make_study):
    (session, _) = sessions(make_study(with_models()), strategy="chain_of_thought")
    request = session.begin({})[0]
    trial = session.trial_of(request.work_key)
    right = trial["answer"]
    wrong = next(one for one in trial["steps"][-1]["labels"] if one != right)
    assert request.labels is None and request.max_tokens == 1024
    assert wording("en")["think_choose"][0].partition(". ")[0] in request.messages[0].content
    said = f"It could be {wrong}, or {right}.\nThe vowels fit {wrong} badly.\n**Answer: {right}**"
    assert session.verdict(reply(request, said)).correct is True
    cut = session.verdict(reply(request, f"It could be {wrong}, or", status="truncated"))
    assert cut.response_status == "truncated"


def test_words_that_are_read_are_regions_with_their_intact_forms_and_bits(make_study):
    def sentence(level: str, shown: str) -> Any:
        return replace(make_item("s1", level, shown, "garden", "warden"), intact={"word": "the garden gate"})

    items = [sentence("intact", "the garden gate"), sentence("initial", "the agrden gate"), small_items()[-1]]
    study = make_study(with_models(), READ, items=items)
    session = next(one for one in sessions(study) if next(one.trials)["condition"] == {"position": "initial"})
    (request,) = session.begin({})
    text = request.messages[0].content
    assert [text[span.start : span.end] for span in request.regions] == ["the", "agrden", "gate"]
    scores = (RegionScore(2.0, 1), RegionScore(4.0, 3), RegionScore(1.0, 1))
    came = reply(request, "garden", regions=scores)
    rows = session.region_rows(came)
    assert [(row["region"], row["shown"], row["intact"], row["is_changed"], row["line"]) for row in rows] == [
        (0, "the", "the", False, 0), (1, "agrden", "garden", True, 0), (2, "gate", "gate", False, 0),
    ]  # fmt: skip
    assert rows[1]["surprisal"] == pytest.approx(5.770780) and rows[1]["tokens"] == 3
    assert session.surprisal(came) == pytest.approx(7 * 1.442695)
    assert session.region_rows(reply(request, "garden")) == []
    (guesser, _) = sessions(study, use="baseline:random")
    assert guesser.begin({})[0].regions == ()


def test_texts_that_are_only_read_are_trials_of_models_that_tell_surprisal(make_study):
    study = make_study(with_models("practice: none"), (READ[0], "- read: {show: word}"))
    requests = sessions(study)[0].begin({})
    assert [(one.purpose, one.labels, one.max_tokens) for one in requests] == [("read", None, 0)] * 4
    assert all(one.regions for one in requests)
    assert len(sessions(study, use="openai:m")[0]) == 0
    assert len(sessions(study, use="openai:m", label_scoring="whole")[0]) == 4


ASKED = (
    "  - debrief: debrief.md\n",
    """\
  - questions:
      habit: {ask: How true?, type: matrix, rows: {films: I watch films., books: I read.}, points: ["no", partly, "yes"]}
      use: {ask: How well?, type: matrix, rows: {films: I see films.}, from: 1, to: 7, low: badly, high: well}
      effort: {ask: How hard?, type: slider, from: 0, to: 100}
      years: {ask: How many years?, type: number}
      school: {ask: Which school?, type: choice, options: [small, large]}
      why: {ask: Why?, type: text, only: {school: small}}
      scripts: {ask: Which scripts?, type: several, options: [Latin, Greek]}
  - debrief: debrief.md
""",
)


def test_models_are_asked_questions_about_participants_where_the_study_says_so(make_study):
    silent, asked = (make_study(with_models(*lines), ASKED) for lines in ((), ("questions: asked",)))
    plain, session = sessions(silent)[0], sessions(asked)[0]
    places = [[one["trial_index"] for one in given.trials] for given in (plain, session)]
    assert places[0] == places[1][: len(plain)]
    requests = session.begin({})[len(plain) :]
    trials = [session.trial_of(request.work_key) for request in requests]
    asked = ["habit_films", "habit_books", "use_films", "effort", "years", "school"]
    assert [trial["item_id"] for trial in trials] == asked
    assert all(trial["is_filler"] and trial["block"] == "questions-1" for trial in trials)
    assert [request.labels for request in requests[:3]] == [("no", "partly", "yes")] * 2 + [tuple("1234567")]
    replies = ["partly", "yes", "4", "62", "12", "large"]
    for request, text, expected in zip(requests, replies, [2.0, 3.0, 4.0, 62.0, None, None], strict=True):
        score = session.verdict(reply(request, text))
        assert (score.response_status, score.correct, score.score) == ("valid", None, expected), text
    for place, part in ((0, "I watch films."), (2, "1 (badly)"), (5, "(A) small")):
        assert part in requests[place].messages[-1].content


def test_the_target_behind_a_prime_is_scored_as_label_and_as_text(make_study):
    prime = "- prime: {show: word, for: 50 ms}\n        - choose: {show: target, keys: {word: j, nonword: f}}"
    items = [
        replace(item, shown={"word": item.shown["word"], "target": "GARDEN"}, choices=None, answer="word")
        for item in small_items()[:-1]
    ]
    practice = ("  - practice: {items: practice.csv, feedback: true, pass: 50%}\n", "")
    study = make_study(with_models(), (READ[0], prime), practice, items=items)
    (session, _) = sessions(study)
    request = session.begin({})[0]
    text = request.messages[0].content
    assert request.labels == ("word", "nonword")
    (span,) = request.regions
    assert text[span.start : span.end] == "GARDEN"
    assert session.trial_of(request.work_key)["shown"]["word"] in text[: span.start]


def person(study: Study, **texts: str | None) -> Person:
    plan = plan_session(study, study.items, list_id=2, session_key="p1")
    answers = {}
    for trial in trials_of(plan):
        text = texts.get(trial["item_id"], trial["steps"][-1]["labels"][0])
        answers[trial["trial_index"]] = TrialFeedback(
            text, correct=text == trial["answer"], timed_out=text is None
        )
    return Person("human-1", plan, answers)


def test_a_teacher_forced_model_scores_each_human_answer_behind_the_ones_before(make_study):
    study = make_study(with_models("context: teacher_forced"))
    human = person(study, w1=None)
    (session,) = sessions(study, people=[human])
    asked = [trial["item_id"] for trial in session.trials]
    assert sorted(asked) == ["w0", "w2", "w3"], "practice, and trials without an answer, are not scored"
    requests = session.begin({})
    last = requests[-1]
    given = [human.answers[trial["trial_index"]].text for trial in trials_of(human.plan)]
    spoken = [message.content for message in last.messages if message.role == "assistant"]
    at = list(session.trials)[-1]["trial_index"]
    assert spoken == [text or "(no answer)" for text in given[:at]]
    mine = human.answers[at].text
    score = session.verdict(
        reply(last, last.labels[1], label_logprobs={last.labels[0]: -0.5, last.labels[1]: -1.5})
    )
    assert (score.correct, score.scorer) == (None, f"log_likelihood-{VERSION}")
    assert score.score == (-0.5 if mine == last.labels[0] else -1.5)
    assert session.response_raw(reply(last, "other")) == mine
    assert session.follow(reply(last, last.labels[0])) == []


def test_sessions_of_people_are_needed_before_models_can_follow_them(make_study):
    with pytest.raises(UserError, match=r"models\.yoke"):
        sessions(make_study(with_models("yoke: human")), people=[])


def test_human_answers_leave_the_machine_only_where_study_and_consent_say_so(make_study):
    forced = with_models("context: teacher_forced", who='m: {use: "openai:m"}')
    allowed = ("seed: 7\n", "seed: 7\nparticipants: {privacy: {send_answers_to_apis: true}}\n")
    study = make_study(forced)
    with pytest.raises(UserError, match="send_answers_to_apis"):
        sessions(study, use="openai:m", people=[person(study)])
    assert sessions(study, use="openai:m", people=[person(study)], base_url="http://127.0.0.1:8000/v1")
    study = make_study(forced, allowed)
    with pytest.raises(UserError, match=r"\(version \w+\)"):
        sessions(study, use="openai:m", people=[person(study)])
    (study.folder / "consent.md").write_text("Your answers are given to language models.", "utf-8")
    agreed = person(make_again(study))
    assert sessions(make_again(study), use="openai:m", people=[agreed])
    (study.folder / "consent.md").write_text("Your answers are given to two language models.", "utf-8")
    with pytest.raises(UserError, match=agreed.session_id):
        sessions(make_again(study), use="openai:m", people=[agreed])


def test_prompts_are_shown_by_kind_and_a_conversation_with_its_second_turn(make_study):
    study = make_study(with_models("context: session"))
    shown = first_prompts(sessions(study)[0])
    assert [(one.trial["is_practice"], one.turn) for one in shown] == [(True, 1), (False, 2)]
    assert shown[1].stands_in and shown[1].request.messages[1].content == "teacher"
    (restore, answer) = first_prompts(
        sessions(make_study(with_models(), READ), strategy="unscramble_first")[0]
    )
    assert (restore.request.purpose, answer.request.purpose) == ("unscramble", "answer")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((with_models("context: sesion"),), "'session'"),
        ((with_models(who='m: {use: "hf:m", temprature: 0}'),), "'temperature'"),
        ((with_models(who='m: {use: "hf:m", strategy: chain_of_thought, judge: mm}, n: {use: "hf:n"}'),), "judge is 'mm'"),
        ((with_models(who='m: {use: "hf:m", judge: n}, n: {use: "hf:n"}'),), "strategy: chain_of_thought"),
        ((with_models(who='m: {use: "openai:m", dtype: float32}'),), r"m\.dtype: .*openai:m"),
        ((with_models("context: session", "strategy: unscramble_first"),), r"models\.context"),
        ((with_models("budget: forty"),), r'budget is "forty"'),
        ((with_models("questions: asked"),), "no screen asks"),
        ((with_models("questions: asked", "yoke: human"), ASKED), "follow the sessions of people"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_or_do_not_go_together_are_refused(make_study, changes, words):
    with pytest.raises(UserError, match=words):
        make_study(*changes)


def test_a_plan_of_an_earlier_version_without_words_for_feedback_is_followed_in_silence(make_study):
    study = make_study(with_models("context: teacher_forced"))
    human = person(study)
    for screen in human.plan["screens"]:
        if "feedback" in screen:
            screen["feedback"] = True
    (session,) = sessions(study, people=[human])
    assert "orrect" not in "".join(text for _, text in contents(session.begin({})[-1]))


def work_through(engine: Engine, session: ModelSession) -> dict[str, Reply]:
    """Let an engine answer a session to its end; return its replies by work key."""
    replies = {reply.work_key: reply for reply in engine.answer(session.begin({}), session.follow)}
    assert {key.partition(":")[0] for key in replies} == set(session.keys)
    return replies


def baseline(study: Study, name: str, session: ModelSession, **options: object) -> BaselineEngine:
    return BaselineEngine(ModelSettings(f"baseline:{name}", options, study.folder, session.right_answers()))


@pytest.mark.parametrize(
    ("context", "practice"), [("independent", "none"), ("session", "shown"), ("session", "answered")]
)
def test_baselines_go_through_every_context(make_study, context, practice):
    study = make_study(with_models(f"context: {context}", f"practice: {practice}"))
    for name in ("random", "always_a", "oracle", "oracle_with_lapses"):
        session = sessions(study, use=f"baseline:{name}")[0]
        engine = baseline(study, name, session, lapse_rate=0.5)
        scores = [session.verdict(reply) for reply in work_through(engine, session).values()]
        assert len(scores) == 4 + (practice == "answered")
        assert {score.response_status for score in scores} == {"valid"}
        if name == "oracle":
            assert all(score.correct for score in scores)


def test_an_oracle_lapses_in_its_share_of_trials_and_guesses_then(make_study):
    study = make_study(with_models("replicates: 100"))
    right: Counter[bool] = Counter()
    for session in plan_sessions(
        study, "m", ModelSettings("baseline:oracle_with_lapses", {}, study.folder), {}
    ):
        engine = baseline(study, "oracle_with_lapses", session, lapse_rate=0.4)
        for reply in engine.answer(session.begin({})):
            right[bool(session.verdict(reply).correct)] += 1
    assert 0.15 < right[False] / 800 < 0.25, "half of the lapses guess right"
    with pytest.raises(UserError, match="from 0 to 1"):
        BaselineEngine(ModelSettings("baseline:oracle_with_lapses", {"lapse_rate": 1.5}))


@pytest.fixture
def tiny(local: Callable[..., Any], plain_model: Path) -> Engine:
    pytest.importorskip("torch")
    engine: Engine = local(plain_model)
    return engine


def test_a_local_model_scores_what_people_typed(make_study, tiny):
    study = make_study(with_models("context: teacher_forced"), (READ[0], "- recover: {show: word}"))
    plan = plan_session(study, study.items, list_id=1)
    typed = {trial["trial_index"]: TrialFeedback("gardne") for trial in trials_of(plan)}
    (session,) = sessions(study, people=[Person("human-2", plan, typed)])
    for reply in work_through(tiny, session).values():
        score = session.verdict(reply)
        assert score.correct is None and score.score is not None and score.score < 0
        assert score.score == (reply.label_logprobs or {})[str(session.response_raw(reply))]


def test_fields_that_are_read_together_keep_their_intact_words_and_are_restored_in_place(make_study):
    both = (
        READ[0],
        "- read: {show: [word, note]}\n        - choose: {ask: Which word was it?, keys: [f, j], answer_by: text}",
    )
    items = [replace(one, shown={**one.shown, "note": "stays as is"}) for one in small_items()]
    study = make_study(with_models(), both, items=items)
    session = sessions(study)[0]
    request = next(
        one
        for one in session.begin({})
        if session.trial_of(one.work_key)["condition"] == {"position": "initial"}
    )
    trial = session.trial_of(request.work_key)
    rows = session.region_rows(reply(request, "x", regions=(RegionScore(1.0, 1),) * 4))
    assert [row["intact"] for row in rows] == [trial["intact"]["word"], "stays", "as", "is"]
    assert [row["is_changed"] for row in rows] == [True, False, False, False]
    again = sessions(study, strategy="unscramble_first")[0]
    first = next(one for one in again.begin({}) if again.trial_of(one.work_key) == trial)
    (answer,) = again.follow(reply(first, "thing"))
    assert "thing\n\nstays as is\n\n" in answer.messages[0].content


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "**The captain slept.**\n\nNote: I corrected one word (cpatain -> captain). Let me know!",
            "The captain slept.",
        ),
        ("Here is the corrected text:\n\nThe captain slept.", "The captain slept."),
        ("No changes needed.", "The cpatain slept."),
        ("The text is correct:\n\nThe captain slept.", "The captain slept."),
        ("The captain slept. (I corrected 'cpatain'.)", "The captain slept."),
        ("<think>\nA captain?\n</think>\n\nThe captain slept.", "The captain slept."),
        ("I cannot make sense of this text.", None),
        ("", None),
    ],
)
def test_a_line_is_asked_about_as_it_was_restored_without_the_models_remarks(said, asked):
    assert restored_text("The cpatain slept.", said) == asked
    assert restored_text("The cpatain\nslept.", "The captain\nslept.") == "The captain\nslept."


@pytest.mark.parametrize(
    ("remark", "stays"),
    [("\n\nNote: I corrected one word.", False), ("\n\n**Changes:** cpatain", False), ("\n\nLet me know!", False),
     ("\n\nI fixed one word.", False), ("\nI fixed supper.", False), ("\nHe had a note.", True)],
)  # fmt: skip
def test_remarks_below_a_text_of_several_lines_are_no_part_of_it(remark, stays):
    text = "The captain\nslept."
    assert restored_text("The cpatain\nslept.", text + remark) == (text + remark if stays else text)
    as_long = "The captain\nNote: slept."
    assert restored_text("The cpatain\nNoet: slept.", as_long) == as_long, "a line of the text itself"


@pytest.mark.parametrize("status", ["truncated", "empty"])
def test_a_restoring_call_that_gave_no_whole_text_is_not_used_and_not_made_again(make_study, status):
    study = make_study(with_models(), READ)
    session = sessions(study, strategy="unscramble_first")[1]
    first, *_ = session.begin({})
    shown = session.trial_of(first.work_key)["shown"]["word"]
    half = {"truncated": "thi", "empty": None}[status]
    (answer,) = session.follow(reply(first, half, status=status))
    assert f"\n\n{shown}\n\nWhich word was it?" in answer.messages[0].content
    assert session.mark_of(answer.work_key) == "+as_shown"
    again = sessions(study, strategy="unscramble_first")[1]
    second = session.begin({})[1]
    begun = again.begin({}, {first.work_key: given_back(half, status), second.work_key: "thing"})
    assert [again.mark_of(one.work_key) for one in begun[:2]] == ["+as_shown", ""]
