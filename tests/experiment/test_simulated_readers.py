"""Simulated readers learn, lapse, have long tails, pay for changed words by position, and answer what is asked of them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import and_, select

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli import main
from experiment.cli.new import copy_template
from experiment.people.app import LocalServer
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import score_trial
from experiment.simulated import (
    GroundTruth,
    Lapses,
    SimulatedReader,
    StudyEntrance,
    TrueEffects,
    Words,
    fill,
    read_truth,
)
from experiment.simulated.truth import TrueRating, Typing
from experiment.store import open_store, tables
from experiment.study import Study
from experiment.summaries.plain_english import tell
from stimuli.errors import UserError

PLAIN = GroundTruth(TrueEffects(50.0, {}, 0, 0), TrueEffects(6.0, {}, 0, 0))
SENTENCES = (
    "The gardener watered tomatoes",
    "A customer returned umbrellas",
    "Several children painted dinosaurs",
    "The minister answered questions",
)
STUDY = """\
wrods: 1
study: reading
title: Reading
seed: 5
participants: {{eligible: {{first_language: de, age: [18, 30]}}}}
materials: {{sentences: sentences.csv, scramble: {{words: {{min_letters: 6}}}}}}
design:
  factors:
    position: {{intact: none, initial: {{transpose: initial}}, internal: {{transpose: internal}}, final: {{transpose: final}}}}
procedure:
  - block:
      line_length: 20
      attention_checks: 1
      trial:
{steps}
"""
MOVING = "        - read: {show: sentence, as: moving_window}\n        - choose: {show: question, keys: {'yes': j, 'no': f}}"


@pytest.fixture
def reading(tmp_path: Path) -> Callable[[str], Study]:
    def make(steps: str = MOVING) -> Study:
        rows = [f"s{i},{text},Is it so?,yes" for i, text in enumerate(SENTENCES)]
        (tmp_path / "sentences.csv").write_text("item,sentence,question,answer\n" + "\n".join(rows), "utf-8")
        (tmp_path / "study.yaml").write_text(STUDY.format(steps=steps), "utf-8")
        study = load_study(tmp_path)
        build_study(study)
        return load_study(tmp_path)

    return make


def trials(study: Study, list_id: int = 1) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, study.items, list_id=list_id, session_key="s"))


def payloads(study: Study, truth: GroundTruth, name: str = "S001", list_id: int = 1) -> list[dict[str, Any]]:
    reader = SimulatedReader(name, study, truth)
    return [reader.answer(trial) for trial in trials(study, list_id)]


def test_learning_makes_times_shorter_from_trial_to_trial(make_study):
    learner = replace(PLAIN, time=replace(PLAIN.time, learning=-0.1))
    times = [one["rt"] for one in payloads(make_study(), learner)]
    assert times == sorted(times, reverse=True)
    assert times[1] / times[0] == pytest.approx(2**-0.1)


def test_a_combination_of_levels_has_its_own_effect(tmp_path):
    copy_template("classics", tmp_path / "study", part="acceptability")
    build_study(load_study(tmp_path / "study"))
    study = load_study(tmp_path / "study")
    slower = {"gap": {"embedded": 0.1}, "structure x gap": {"island x embedded": 0.5}}
    truth = replace(PLAIN, time=replace(PLAIN.time, effects=slower), rating=TrueRating(50.0, {}, 0.0, 0.0))
    times = {
        tuple(trial["condition"].values()): math.log(answer["rt"]) - PLAIN.time.intercept
        for trial, answer in zip(trials(study), payloads(study, truth), strict=True)
        if trial["condition"]
    }
    assert times == pytest.approx(
        {
            ("non-island", "matrix"): 0.0,
            ("non-island", "embedded"): 0.1,
            ("island", "matrix"): 0.0,
            ("island", "embedded"): 0.6,
        }
    )


def test_a_tail_makes_times_longer_and_skewed(make_study):
    study = make_study()
    tailed = replace(PLAIN, time=replace(PLAIN.time, tail_ms=200))
    times = [one["rt"] for i in range(60) for one in payloads(study, tailed, f"S{i:03d}")]
    assert min(times) > 403
    assert statistics.fmean(times) == pytest.approx(603, rel=0.15)
    assert statistics.fmean(times) > statistics.median(times) + 20


def test_lapses_answer_by_chance_and_take_longer(make_study):
    study = make_study()
    away = replace(PLAIN, lapses=Lapses(rate=1, slower=3))
    verdicts = [
        score_trial(trial, SimulatedReader(f"S{i}", study, away).answer(trial)["response_raw"]).correct
        for i in range(50)
        for trial in trials(study)
    ]
    assert 0.35 < statistics.fmean(bool(one) for one in verdicts) < 0.65
    assert payloads(study, away)[0]["rt"] == pytest.approx(3 * 403.428793, rel=1e-6)
    assert all(
        score_trial(t, p["response_raw"]).correct
        for t, p in zip(trials(study), payloads(study, PLAIN), strict=True)
    )


def test_a_word_changed_at_its_beginning_costs_what_was_put_in_and_spills_over(reading):
    study = reading(MOVING)
    words = Words(changed={"initial": 0.5, "internal": 0.1, "final": 0.3}, residual_sd=0, participant_sd=0)
    reader = SimulatedReader("S001", study, replace(PLAIN, words=words))
    for list_id in (1, 2, 3, 4):
        for trial in trials(study, list_id):
            if trial["is_attention_check"]:
                continue
            payload = reader.answer(trial)
            shown = trial["shown"]["sentence"].split()
            assert [one["region"] for one in payload["regions"]] == list(range(len(shown)))
            assert payload["reading_time"] == pytest.approx(sum(one["rt"] for one in payload["regions"]))
            intact = trial["intact"]["sentence"].split()
            cost = words.changed.get(trial["condition"]["position"], 0.0)
            spilled = 0.0
            for region, word, before in zip(payload["regions"], shown, intact, strict=True):
                own = cost if word != before else 0.0
                assert region["rt"] == pytest.approx((180 + 18 * len(word)) * 2.718281828 ** (own + spilled))
                spilled = 0.3 * own
            lines = [line.split() for line in trial["steps"][0]["lines"]]
            assert [one["line"] for one in payload["regions"]] == [
                n for n, line in enumerate(lines) for _ in line
            ]


def test_letters_farther_apart_cost_more_and_both_ends_what_was_said(reading):
    study = reading(MOVING)
    file = study.folder / "study.yaml"
    text = file.read_text("utf-8").replace("initial: {transpose: initial}", "near: {transpose: internal}")
    text = text.replace("internal: {transpose: internal}", "far: {transpose: internal, distance: 3}")
    text = text.replace("final: {transpose: final}", "ends: {transpose: first_and_last}")
    file.write_text(text, "utf-8")
    build_study(load_study(study.folder))
    study = load_study(study.folder)
    words = Words(
        changed={"internal": 0.2, "external": 0.5}, farther=1.5, residual_sd=0, participant_sd=0, spill_over=0
    )
    reader = SimulatedReader("S001", study, replace(PLAIN, words=words))
    costs: dict[str, set[float]] = {"intact": set(), "near": set(), "far": set(), "ends": set()}
    for list_id in (1, 2, 3, 4):
        for trial in trials(study, list_id):
            if trial["is_attention_check"]:
                continue
            shown, intact = trial["shown"]["sentence"].split(), trial["intact"]["sentence"].split()
            for region, word, before in zip(reader.answer(trial)["regions"], shown, intact, strict=True):
                if word != before or trial["condition"]["position"] == "intact":
                    cost = math.log(region["rt"] / (180 + 18 * len(word)))
                    costs[trial["condition"]["position"]].add(round(cost, 6))
    assert costs == {"intact": {0.0}, "near": {0.2}, "far": {round(0.2 * 1.5**2, 6)}, "ends": {0.5}}


NOTHING = {"intercept": 1, "effects": {}, "participant_sd": 0, "item_sd": 0}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rating": NOTHING | {"effects": {"a x b": {"c": 1}}}}, "rating.effects.a x b.c"),
        ({"regions": {"effects": {"late": {"a x b": {"c": 1}}}}}, "regions.effects.a x b.c"),
        ({"time": NOTHING | {"tail": 3}}, "'tail_ms'"),
        ({"lapses": {"rate": 2}}, "lapses.rate is 2"),
        ({"words": {"changed": {"middle": 1}}}, "words.changed"),
        ({"words": {"farther": -1}}, "words.farther is -1"),
        ({"accuracy": {"intercept": 3}}, "accuracy lacks 'effects'"),
        ({"accuracy": {"intercept": 3, "effects": {}, "participant_sd": 0}}, "accuracy lacks 'item_sd'"),
        ({"accuracy": NOTHING | {"intercept": "high"}}, "accuracy.intercept is 'high'"),
        ({"accuracy": NOTHING | {"effects": {"at": {"final": None}}}}, "accuracy.effects.at.final is None"),
        ({"accuracy": NOTHING | {"effects": {"at": 2}}}, "accuracy.effects.at is 2; it is to be a mapping"),
        ({"words": {"changed": {"initial": "much"}}}, "words.changed.initial is 'much'"),
        ({"times": {}}, "Did you mean 'time'"),
        ({"rating": NOTHING | {"thresholds": [0, 0]}}, "rating.thresholds"),
        ({"rating": NOTHING | {"thresholds": 2}}, "rating.thresholds"),
        ({"rating": NOTHING | {"thresholds": ["a"]}}, "rating.thresholds"),
        ({"rating": NOTHING | {"threshold": [0]}}, "thresholds"),
    ],
)
def test_a_truth_that_cannot_be_meant_is_named(tmp_path, change, says):
    file = tmp_path / "simulated.json"
    file.write_text(json.dumps({"accuracy": NOTHING, "time": NOTHING, **change}), "utf-8")
    with pytest.raises(UserError) as error:
        read_truth(file)
    assert says in str(error.value)


def test_all_faults_of_a_truth_are_told_at_once_with_its_file_also_by_check(reading: Callable[[str], Study]):
    study = reading(MOVING)
    wrong = {
        "accuracy": NOTHING
        | {"effects": {"positon": {"final": 1}, "position": {"finall": 1, "external": 1}}},
        "time": NOTHING | {"tail": 3},
        "regions": {"effects": {"late": {"position": {"final": "slow"}}}},
        "steps": {"sure": NOTHING},
    }
    (study.folder / "simulated.json").write_text(json.dumps(wrong), "utf-8")
    result = CliRunner().invoke(main, ["check", str(study.folder)])
    assert result.exit_code == 2
    for part in (
        "effects of a factor: 'positon'",
        "effects of a level of position: 'finall'",
        "time: 'tail'",
        "regions.effects.late.position.final is 'slow'",
        "steps: 'sure'",
    ):
        assert f"simulated.json: {part}" in result.output, part
    assert "external" not in result.output


def test_readers_who_type_leave_a_log_of_keys_and_their_time_is_thinking_then_typing(reading):
    study = reading("        - recover: {show: sentence, ask: What did it say?, multiline: true}")
    silent, typing = (
        payloads(study, replace(PLAIN, typing=Typing(key_ms=key_ms))) for key_ms in (0.0, 150.0)
    )
    answered = [pair for pair in zip(silent, typing, strict=True) if pair[1]["key_log"]]
    assert len(answered) >= len(SENTENCES)
    for without, told in answered:
        keys = told["key_log"]
        assert without["key_log"] is None
        assert "".join(key for _, key in keys) == told["response_raw"] == without["response_raw"]
        assert told["first_key_ms"] == keys[0][0] == pytest.approx(without["rt"])
        assert told["rt"] == pytest.approx(keys[-1][0])
        assert told["typing_ms"] == pytest.approx(keys[-1][0] - keys[0][0])
        assert [moment for moment, _ in keys] == sorted(moment for moment, _ in keys)


TYPED = """\
wrods: 1
study: typed
title: Typed
seed: 5
language: {language}
materials: {{sentences: items.csv, scramble: {{words: {{min_letters: 6}}}}}}
design: {{factors: {{position: {{intact: none, internal: {{transpose: internal}}}}}}}}
procedure:
  - block:
      attention_checks: 2
      trial:
        - answer: {{show: sentence, ask: How many?, read_as: {read_as}}}
"""


@pytest.fixture
def typed_study(tmp_path: Path) -> Callable[..., Study]:
    def make(read_as: str, language: str = "en", answer: str = "2") -> Study:
        rows = [f's{i},Some children of family {"ABCDEFGH"[i]} are at home.,"{answer}"' for i in range(2, 8)]
        (tmp_path / "items.csv").write_text("item,sentence,answer\n" + "\n".join(rows), "utf-8")
        text = TYPED.format(read_as=read_as, language=language)
        (tmp_path / "study.yaml").write_text(text, "utf-8")
        study = load_study(tmp_path)
        build_study(study)
        return load_study(tmp_path)

    return make


@pytest.mark.parametrize(
    ("read_as", "language", "answer"),
    [("number", "en", "2"), ("number", "de", "2,5"), ("text", "en", "2")],
)
@pytest.mark.parametrize("lapses", [False, True])
def test_wrong_typed_answers_are_incorrect_and_not_missing(
    typed_study: Callable[..., Study], read_as: str, language: str, answer: str, lapses: bool
) -> None:
    study = typed_study(read_as, language, answer)
    truth = (
        replace(PLAIN, lapses=Lapses(rate=1))
        if lapses
        else replace(PLAIN, accuracy=TrueEffects(-50.0, {}, 0, 0))
    )
    for trial, payload in zip(trials(study), payloads(study, truth), strict=True):
        score = score_trial(trial, payload["response_raw"])
        assert score.response_status == "valid"
        assert score.correct is (trial["is_attention_check"] and not lapses)


def test_a_wrong_option_is_another_option(typed_study: Callable[..., Study]) -> None:
    study = typed_study("text")
    reader = SimulatedReader("S001", study, replace(PLAIN, accuracy=TrueEffects(-50.0, {}, 0, 0)))
    options = {"read_as": "option", "options": ["3", "2", "7"]}
    tests = [trial for trial in trials(study) if not trial["is_attention_check"]]
    for trial in (trial | {"steps": [trial["steps"][0] | options]} for trial in tests):
        score = score_trial(trial, reader.answer(trial)["response_raw"])
        assert (score.response_status, score.correct) == ("valid", False)


def test_a_check_among_answers_that_are_numbers_asks_for_a_number_and_reads_it_as_one(
    typed_study: Callable[..., Study],
) -> None:
    checks = [trial for trial in trials(typed_study("number")) if trial["is_attention_check"]]
    assert len(checks) == 2
    for check in checks:
        wanted = check["answer"]
        assert wanted in check["steps"][-1]["text"]
        for reply in (wanted, f"The answer is {wanted}.", f"{wanted}.0"):
            assert score_trial(check, reply).correct is True
        assert score_trial(check, str(int(wanted) + 1)).correct is False
        assert score_trial(check, "none").response_status == "unparsed"


def test_a_check_reports_which_baselines_leave_typed_answers_empty(
    typed_study: Callable[..., Study], reading: Callable[..., Study]
) -> None:
    names = ("random", "always_a", "oracle", "oracle_with_lapses")
    for make, empty in (
        (lambda: typed_study("number"), {"random", "always_a", "oracle_with_lapses"}),
        (reading, set()),
    ):
        study = make()
        path = study.folder / "study.yaml"
        who = ", ".join(f"{name}: {{use: 'baseline:{name}'}}" for name in names)
        path.write_text(f"{path.read_text('utf-8')}\nmodels: {{who: {{{who}}}}}\n", "utf-8")
        models = tell(load_study(study.folder), study.items).numbers["models"]
        assert {name for name in names if models[name]["left_empty"]} == empty


TWO_TEXTS = "[question, sentence]"
PLACE = ("session_id", "trial_index", "attempt")


def test_changed_words_of_a_step_with_two_texts_are_slow_and_marked(reading: Callable[[str], Study]) -> None:
    step = f"- read: {{show: {TWO_TEXTS}, as: moving_window}}"
    study = reading(f"        {step}\n        - choose: {{ask: Is it so?, keys: {{'yes': j, 'no': f}}}}")
    words = Words(
        changed=dict.fromkeys(("initial", "internal", "final"), 1.0),
        residual_sd=0,
        participant_sd=0,
        spill_over=0,
    )
    truth = replace(PLAIN, words=words)
    with open_store(study.folder) as store, LocalServer(study, store) as server:
        fill(study, truth, StudyEntrance(server.links.api, server.links.simulated), range(1, 5))
        with store.read() as connection:
            stored = connection.execute(select(tables.regions)).mappings().all()
            checks = connection.execute(
                select(tables.scores.c.correct)
                .join(
                    tables.trials, and_(*(tables.trials.c[name] == tables.scores.c[name] for name in PLACE))
                )
                .where(tables.trials.c.is_attention_check)
            )
            assert [row.correct for row in checks] == [True] * 4
    assert {row["is_changed"] for row in stored} == {True, False}
    for row in stored:
        slower = row["rt"] / (words.word_ms + words.letter_ms * len(row["shown"]))
        assert slower == pytest.approx(math.e if row["is_changed"] else 1)
        assert row["is_changed"] is (row["shown"] != row["intact"])


@pytest.mark.parametrize("mixed", [False, True])
def test_two_texts_are_restored_together(reading: Callable[[str], Study], mixed: bool) -> None:
    choice = (
        "\n  - block:\n      trial:\n        - choose: {show: question, keys: {'yes': j, 'no': f}}"
        if mixed
        else ""
    )
    study = reading(f"        - recover: {{show: {TWO_TEXTS}}}{choice}")
    for trial in trials(study):
        if trial["trial_type"] == "recover" and not trial["is_attention_check"]:
            assert trial["answer"] == "\n\n".join(
                trial["intact"].get(name, trial["shown"][name]) for name in ("question", "sentence")
            )
            for typed in (trial["answer"], " ".join(trial["answer"].split())):
                assert score_trial(trial, typed).correct is True
