"""A rating is a trial: people, simulated readers and models rate on one scale, and no rating is right, wrong or missing."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from analysis.robustness import CUMULATIVE
from experiment.building import build_study
from experiment.checking import load_study
from experiment.models.prompts.prompter import Prompter
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.scoring.trial import score_trial
from experiment.simulated import GroundTruth, SimulatedReader, TrueEffects
from experiment.simulated.truth import Lapses, TrueRating
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.commands import worked, wrods

BUTTONS = "from: 1, to: 7, low: impossible, high: quite normal"
NAMED = "points: [guessing, unsure, fairly sure, certain]"
SLIDER = "as: slider, from: 0, to: 100, low: not at all, high: fully"
SENTENCES = (
    ("The cat drank the *cream*.", "The cat drank the *stone*."),
    ("The baker sold the *bread*.", "The baker sold the *cloud*."),
    ("The judge read the *verdict*.", "The judge read the *thunder*."),
    ("The child rode the *pony*.", "The child rode the *soup*."),
    ("The nurse wore the *apron*.", "The nurse wore the *river*."),
    ("The pilot flew the *plane*.", "The pilot flew the *onion*."),
)
STUDY = """\
wrods: 1
study: plausibility-rating
title: Does scrambling hide how plausible a sentence is?
language: {language}
seed: 101
materials: {{sentences: sentences.csv}}
design: {{factors: {{plausibility: [plausible, implausible]}}}}
procedure:
{practice}  - block:
      attention_checks: 2
{block}      trial:
        - rate: {{show: sentence, ask: How plausible is this?, {scale}}}
"""
PLAIN = TrueEffects(6.5, {}, 0, 0)
SPREAD = {"participant_sd": 0.3, "item_sd": 0.3}
TRUTH = {
    "time": {"intercept": 6.5, "effects": {}, "residual_sd": 0.2, **SPREAD},
    "rating": {"intercept": 2.5, "effects": {"plausibility": {"implausible": -1.0}}, **SPREAD},
}


@pytest.fixture
def rated(tmp_path: Path) -> Callable[..., Study]:
    def make(
        scale: str = BUTTONS, *, language: str = "en", practice: str = "", block: str = "", more: str = ""
    ) -> Study:
        rows = [
            ["item", "sentence:plausible", "sentence:implausible"],
            *([f"s{n}", *pair] for n, pair in enumerate(SENTENCES)),
        ]
        with (tmp_path / "sentences.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[cell.replace("*", "") for cell in row] for row in rows])
        (tmp_path / "practice.csv").write_text("item,sentence\np1,The dog ate the bone.\n", "utf-8")
        text = STUDY.format(scale=scale, language=language, practice=practice, block=block) + more
        (tmp_path / "study.yaml").write_text(text, "utf-8")
        study = load_study(tmp_path)
        build_study(study)
        return load_study(tmp_path)

    return make


def planned(study: Study) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, study.items, list_id=1))


@pytest.mark.parametrize(
    ("scale", "labels", "responses", "keys", "decimals"),
    [
        (BUTTONS, list("1234567"), list("1234567"), list("1234567"), 0),
        ("from: 0, to: 4", list("01234"), list("01234"), list("01234"), 0),
        ("from: -2, to: 2", ["-2", "-1", "0", "1", "2"], ["-2", "-1", "0", "1", "2"], list("12345"), 0),
        ("from: 0, to: 10", [str(n) for n in range(11)], [str(n) for n in range(11)], [], 0),
        (NAMED, ["guessing", "unsure", "fairly sure", "certain"], list("1234"), list("1234"), 0),
        (SLIDER, None, None, [], 0),
        ("as: slider, from: 1, to: 7", None, None, [], 1),
        ("as: slider, from: 0, to: 1", None, None, [], 2),
    ],
)
def test_a_scale_has_a_button_and_up_to_nine_points_a_digit_key_for_each_point_or_a_slider(
    rated: Callable[..., Study],
    scale: str,
    labels: list[str] | None,
    responses: list[str] | None,
    keys: list[str],
    decimals: int,
) -> None:
    study = rated(scale)
    plan = plan_session(study, study.items, list_id=1)
    step = trials_of(plan)[0]["steps"][-1]
    assert (step["labels"], step["responses"], step["keys"]) == (labels, responses, keys)
    assert step["decimals"] == decimals
    shown = trials_of(participant_view(plan))[0]["steps"][-1]
    assert "responses" not in shown and shown["labels"] == labels


@pytest.mark.parametrize(
    ("scale", "named"),
    [
        ("low: no", ["scale"]),
        ("from: 7, to: 1", ["7", "1"]),
        ("from: 1, to: 7.5", ["7.5"]),
        ("from: 0, to: 100", ["101"]),
        ("points: [a, b], from: 1, high: much", ["from", "high"]),
        ("points: [a, b], as: slider", ["slider"]),
        ("points: [a, a]", ["points"]),
        ("from: 1, to: 7, keys: [a]", ["keys"]),
    ],
)
def test_what_is_no_scale_is_refused_with_all_that_is_wrong(
    rated: Callable[..., Study], scale: str, named: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        rated(scale)
    message = str(refused.value)
    assert "study.yaml, line " in message
    assert all(name in message for name in named)


@pytest.mark.parametrize(
    "given",
    [
        {"practice": "  - practice: {items: practice.csv, pass: 75%}\n"},
        {"practice": "  - practice: {items: practice.csv, feedback: true}\n"},
        {"block": "      feedback: accuracy\n"},
    ],
)
def test_what_takes_right_answers_is_refused_for_ratings(
    rated: Callable[..., Study], given: dict[str, str]
) -> None:
    with pytest.raises(UserError, match="right or wrong"):
        rated(BUTTONS, **given)


def test_practice_without_feedback_and_late_feedback_are_possible(rated: Callable[..., Study]) -> None:
    study = rated(
        f"{BUTTONS}, time_limit: 5 s",
        practice="  - practice: {items: practice.csv}\n",
        block="      feedback: late\n",
    )
    practice, *_ = planned(study)
    assert practice["is_practice"] and practice["answer"] is None and practice["accepted"] == []


REPLIES = {
    BUTTONS: [
        ("5", "valid", 5.0), ("I would rate it 5 out of 7.", "valid", 5.0), ("Quite normal.", "valid", 7.0),
        ("8", "unparsed", None), ("5 or 6", "unparsed", None),
    ],
    NAMED: [("fairly sure", "valid", 3.0), ("sure", "unparsed", None)],
    SLIDER: [
        ("62", "valid", 62.0), ("62/100", "valid", 62.0), ("On a scale from 0 to 100, I say 62.", "valid", 62.0),
        ("Fully", "valid", 100.0), ("62.5", "valid", 62.5), ("120", "unparsed", None), ("-5", "unparsed", None),
        ("between 60 and 70", "unparsed", None), ("I cannot rate this.", "refused", None), ("", "empty", None),
    ],
}  # fmt: skip


@pytest.mark.parametrize("scale", REPLIES)
def test_a_reply_is_read_as_a_point_of_the_scale_or_not_at_all(
    rated: Callable[..., Study], scale: str
) -> None:
    trial = next(trial for trial in planned(rated(scale)) if not trial["is_attention_check"])
    for reply, status, rating in REPLIES[scale]:
        score = score_trial(trial, reply, reply_status="answered" if reply else "empty")
        assert (score.response_status, score.correct, score.score) == (status, None, rating), reply


def test_the_rating_of_probabilities_is_their_mean(rated: Callable[..., Study]) -> None:
    trial = next(trial for trial in planned(rated(NAMED)) if not trial["is_attention_check"])
    shares = {"guessing": 0.1, "unsure": 0.2, "fairly sure": 0.15, "certain": 0.05}  # of all words, half
    logprobs = {name: math.log(share) for name, share in shares.items()}
    score = score_trial(trial, "unsure", reply_status="answered", label_logprobs=logprobs)
    assert (score.response, score.correct) == ("2", None)
    assert score.score == pytest.approx((0.1 * 1 + 0.2 * 2 + 0.15 * 3 + 0.05 * 4) / 0.5)
    del logprobs["certain"]  # less probable than all that a server reports
    score = score_trial(trial, "unsure", reply_status="answered", label_logprobs=logprobs)
    assert score.score == pytest.approx((0.1 * 1 + 0.2 * 2 + 0.15 * 3) / 0.45)


@pytest.mark.parametrize("scale", [BUTTONS, NAMED, SLIDER])
def test_a_check_asks_for_a_point_and_only_it_is_right(rated: Callable[..., Study], scale: str) -> None:
    checks = [trial for trial in planned(rated(scale)) if trial["is_attention_check"]]
    assert len(checks) == 2
    for check in checks:
        step, wanted = check["steps"][-1], check["answer"]
        assert wanted in step["text"]
        other = next(point for point in step["labels"] or ("0", "100") if point != wanted)
        assert score_trial(check, wanted).correct is True
        assert score_trial(check, other).correct is False


@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_every_prompt_names_the_scale_and_its_ends(rated: Callable[..., Study], language: str) -> None:
    for scale, ends, labels in (
        (BUTTONS, ("1 (impossible)", "7 (quite normal)"), tuple("1234567")),
        (NAMED, ("guessing", "certain"), ("guessing", "unsure", "fairly sure", "certain")),
        (SLIDER, ("0 (not at all)", "100 (fully)"), None),
    ):
        study = rated(scale, language=language)
        plan = plan_session(study, study.items, list_id=1)
        for variant, strategy in product(range(1, 6), ("direct", "chain_of_thought")):
            prompter = Prompter(plan | {"prompt_variant": variant}, strategy=strategy)  # type: ignore[arg-type]
            turn = prompter.turn(trials_of(plan)[0])
            assert all(end in turn.text for end in ends)
            assert "How plausible is this?" in turn.text
            assert turn.labels == (None if strategy == "chain_of_thought" else labels)


def test_simulated_ratings_are_cut_at_thresholds_rounded_or_clipped(rated: Callable[..., Study]) -> None:
    effects = {"plausibility": {"implausible": -2.0}}
    for scale, rating, expected in (
        (BUTTONS, TrueRating(6.2, effects, 0, 0, residual_sd=0.0), {"plausible": "6", "implausible": "4"}),
        (NAMED, TrueRating(0.9, effects, 0, 0, residual_sd=0.0, thresholds=(-1.0, 0.0, 1.0)),
         {"plausible": "fairly sure", "implausible": "guessing"}),
        (SLIDER, TrueRating(101.0, effects, 0, 0, residual_sd=0.0), {"plausible": "100", "implausible": "99"}),
    ):  # fmt: skip
        study = rated(scale)
        trials = planned(study)
        reader = SimulatedReader("S001", study, GroundTruth(PLAIN, PLAIN, rating=rating))
        for trial in trials:
            wanted = trial["answer"] or expected[trial["condition"]["plausibility"]]
            assert reader.answer(trial)["response_raw"] == wanted
        lapsing = SimulatedReader("S001", study, GroundTruth(PLAIN, PLAIN, Lapses(rate=1.0), rating=rating))
        given = {lapsing.answer(trial)["response_raw"] for trial in trials}
        assert len(given) > 1 and all(score_trial(trials[0], point).score is not None for point in given)


def test_ratings_are_exported_beside_answers_that_are_neither_wrong_nor_missing(
    rated: Callable[..., Study], tmp_path: Path
) -> None:
    study = rated(
        NAMED,
        more='models: {who: {draws: {use: "baseline:random"}, first: {use: "baseline:always_a"}}}\n',
    )
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    for command in (("simulate", study.folder, "--readers", 2), ("run", study.folder)):
        worked(*command)
    worked("export", study.folder, "--out", tmp_path / "out")
    with (tmp_path / "out" / "trials.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["is_attention_check"].lower() == "false"]
    assert {row["reader_kind"] for row in rows} == {"simulated", "baseline"}
    for row in rows:
        assert row["trial_type"] == "rate" and row["response_status"] == "valid"
        assert row["correct"] == row["score"] == row["answer"] == ""
        assert float(row["rating"]) == float(row["response"]) and 1 <= float(row["rating"]) <= 4
    assert {row["rating"] for row in rows if row["reader"] == "first"} <= {"1", "1.0"}
    assert len({row["rating"] for row in rows if row["reader"] == "draws"}) > 1


PLAN = """\
participants: {{wanted: 10}}
models: {{who: {{draws: {{use: "baseline:random"}}}}}}
analysis:
  planned:
    plausibility: {{{plan}compare: plausibility, between: [human, draws]}}
"""


@pytest.mark.parametrize(
    ("scale", "plan", "fault"),
    [
        (BUTTONS, "measure: correct, ", "right or wrong"),
        (BUTTONS, "measure: rating, trials: choose, ", "choose"),
        (BUTTONS, "measure: rating, equivalence: 5%, ", "0.5 points"),
        (BUTTONS, "measure: rating, equivalence: 0 points, ", "above 0"),
        (BUTTONS, "measure: rating, exclude: {answers: wrong}, ", "rating"),
        (BUTTONS, "measure: rating, covariates: [letters], ", "covariates"),
        (
            BUTTONS,
            "measure: rating, exclude: {sessions: {question_accuracy: below 70%}}, ",
            "question_accuracy",
        ),
        (BUTTONS, "measure: {human: rt}, exclude: {answers: wrong}, ", "no rating is wrong"),
    ],
)
def test_a_plan_that_ratings_cannot_carry_out_is_refused(
    rated: Callable[..., Study], scale: str, plan: str, fault: str
) -> None:
    with pytest.raises(UserError, match=fault):
        rated(scale, more=PLAN.format(plan=plan))


def test_a_factor_may_be_named_rating_where_nothing_is_rated(
    rated: Callable[..., Study], tmp_path: Path
) -> None:
    rated()
    text = (tmp_path / "study.yaml").read_text("utf-8").replace("plausibility: [", "rating: [")
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    with pytest.raises(UserError, match="column"):
        load_study(tmp_path)
    text = text.replace(f"- rate: {{show: sentence, ask: How plausible is this?, {BUTTONS}}}",
                        "- recover: {show: sentence}").replace("      attention_checks: 2\n", "")  # fmt: skip
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    load_study(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A study with a planned rating, filled by simulated readers and a baseline, and what its report says."""
    folder = tmp_path_factory.mktemp("ratings")
    rows = [f"s{n}-{k},{a},{b}".replace("*", "") for k in range(2) for n, (a, b) in enumerate(SENTENCES)]
    (folder / "sentences.csv").write_text(
        "\n".join(["item,sentence:plausible,sentence:implausible", *rows]) + "\n", "utf-8"
    )
    plan = PLAN.format(plan="measure: rating, equivalence: 0.5 points, ")
    text = STUDY.format(scale=BUTTONS, language="en", practice="", block="") + plan
    (folder / "study.yaml").write_text(text, "utf-8")
    effects = {"plausibility": {"implausible": -2.0}}
    truth = TRUTH | {"rating": {"intercept": 5.0, "effects": effects, **SPREAD}}
    (folder / "simulated.json").write_text(json.dumps(truth), "utf-8")
    for command in (("build",), ("simulate", "--readers", 30), ("run",), ("report",)):
        worked(command[0], folder, *command[1:])
    (report,) = (folder / "reports").iterdir()
    return folder, report


def test_the_report_estimates_ratings_in_points_of_the_scale(reported: tuple[Path, Any]) -> None:
    _, report = reported
    with (report / "tables" / "table_01_answer_full.csv").open(encoding="utf-8") as file:
        answer = list(csv.reader(file))
    assert any("implausible − plausible" in " ".join(row) for row in answer)
    page = (report / "report.html").read_text("utf-8")
    assert "scale points" in page and "1 (impossible)" in page and "7 (quite normal)" in page
    for word in ("% correct", "accuracy of", "ceiling", "Accuracy"):
        assert word not in page


def test_the_report_shows_means_spreads_and_the_share_at_both_ends(reported: tuple[Path, Any]) -> None:
    _, report = reported
    (table,) = (report / "tables").glob("table_*_descriptives_rating_plausibility_full.csv")
    with (report / "trials.csv").open(encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["reader_kind"] == "simulated" and not row["excluded_reason"]
        ]
    given = [float(row["rating"]) for row in rows if row["plausibility"] == "plausible"]
    text = table.read_text("utf-8")
    assert "% lowest" in text and "% highest" in text
    assert f"{100 * sum(rating == 7 for rating in given) / len(given):.6g}"[:4] in text


def test_effects_of_simulated_ratings_are_compared_with_what_the_scale_leaves_of_them(
    reported: tuple[Path, Any],
) -> None:
    _, report = reported
    (table,) = (report / "tables").glob("table_s*_recovery_full.csv")
    with table.open(encoding="utf-8") as file:
        rows = {row[0]: row for row in csv.reader(file) if row}
    simulated, expected, recovered = map(float, rows["implausible − plausible"][1:4])
    assert simulated == -2.0 and -2.0 <= expected < -1.8
    assert recovered == pytest.approx(expected, abs=0.5)


def test_a_cumulative_link_model_is_a_check_where_the_points_are_few(reported: tuple[Path, Any]) -> None:
    _, report = reported
    (table,) = (report / "tables").glob("table_s*_matrix_full.csv")
    assert CUMULATIVE in table.read_text("utf-8")


def test_power_is_simulated_in_points_of_the_scale(reported: tuple[Path, Any]) -> None:
    folder, _ = reported
    means = [
        f"--mean={reader}:{level}={mean}"
        for reader in ("human", "draws")
        for level, mean in (("plausible", 5), ("implausible", 3))
    ]
    options = ("--studies", 20, "--participants", 10)
    lacking = wrods("power", folder, *options, *means)
    assert lacking.exit_code and "--sd participant=" in lacking.output
    spreads = [
        f"--sd={name}=0.5" for name in ("participant", "participant_slope", "item", "item_slope", "residual")
    ]
    done = worked("power", folder, *options, *means, *spreads)
    assert "-2.00 scale points" in done.output and "mixed models" not in done.output
    worked("power", folder, *options, "--effects", folder)


def test_levels_of_a_factor_can_set_a_scale_and_are_checked_as_one(
    rated: Callable[..., Study], tmp_path: Path
) -> None:
    rated(SLIDER)
    text = (tmp_path / "study.yaml").read_text("utf-8")
    between = (
        "  between: {{form: {{line: {{rate: {{as: slider}}}}, boxes: {{rate: {{{sets}}}}}}}}}\nprocedure:"
    )
    design = text.replace("design: {factors: {plausibility: [plausible, implausible]}}",
                          "design:\n  factors: {plausibility: [plausible, implausible]}")  # fmt: skip
    for sets, fault in (("as: buttons", "101 points"), ("as: buttons, to: 6.5", "6.5")):
        (tmp_path / "study.yaml").write_text(design.replace("procedure:", between.format(sets=sets)), "utf-8")
        with pytest.raises(UserError, match=fault):
            load_study(tmp_path)
    (tmp_path / "study.yaml").write_text(
        design.replace("procedure:", between.format(sets="as: buttons, to: 6")), "utf-8"
    )
    study = load_study(tmp_path)
    assert [(scale["to"], scale["labels"] is None) for scale in study.scales] == [(100, True), (6, False)]
    plan = PLAN.format(plan="measure: rating, ")
    with (tmp_path / "study.yaml").open("a", encoding="utf-8") as file:
        file.write(plan)
    with pytest.raises(UserError, match="no mean together"):
        load_study(tmp_path)


def test_sessions_cannot_be_excluded_by_right_answers_where_everything_is_rated(
    rated: Callable[..., Study],
) -> None:
    more = "analysis: {exclude: {sessions: {question_accuracy: below 70%, attention_checks_failed: 2 or more}}}\n"
    with pytest.raises(UserError, match=r"question_accuracy.*right or wrong") as refused:
        rated(BUTTONS, more=more)
    assert "exclude.sessions.attention_checks_failed:" not in str(refused.value)
