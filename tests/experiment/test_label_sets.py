"""Any number of labels may be right: sets are ticked, read, scored, simulated and given to models as a whole."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.building import build_study
from experiment.checking import load_study
from experiment.models.planning.prompting_settings import right_answer
from experiment.models.prompts.prompter import Prompter
from experiment.parsing.label_sets import label_sets, read_set
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import score_trial
from experiment.simulated import GroundTruth, SimulatedReader, TrueEffects
from experiment.simulated.truth import Lapses
from experiment.study import Study
from stimuli.errors import UserError

LABELS = ("A", "B", "C", "D", "E")
OPTIONS = ("red", "blue", "green", "salt and pepper", "eggs")
STUDY = """\
wrods: 1
study: sets
title: Who is named?
language: en
seed: 3
materials: {{sentences: sentences.csv}}
design: {{factors: {{voice: [active, passive]}}}}
procedure:
  - block:
      attention_checks: 1
      trial: [{{choose: {{show: sentence, ask: Who is named?, several: true, {keys}}}}}]
"""


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Study]:
    def make(keys: str = "keys: [a, b, c], choice_order: random", answer: str = "baker | nurse") -> Study:
        head = "item,sentence:active,sentence:passive,choices,answer\n"
        rows = [
            f"s{n},The nurse saw the baker {n}.,The baker {n} was seen by the nurse.,nurse|doctor|baker,{answer}\n"
            for n in range(4)
        ]
        (tmp_path / "sentences.csv").write_text(head + "".join(rows), "utf-8")
        (tmp_path / "study.yaml").write_text(STUDY.format(keys=keys), "utf-8")
        build_study(load_study(tmp_path))
        return load_study(tmp_path)

    return make


def planned(study: Study) -> list[dict[str, Any]]:
    trials = trials_of(plan_session(study, study.items, list_id=1))
    return [trial for trial in trials if not trial["is_attention_check"]]


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("A, C", "A, C"),
        ("c and a", "A, C"),
        ("(A) red, (C) green", "A, C"),
        ("- A\n- C", "A, C"),
        ("The answer is A and C.", "A, C"),
        ("Answer: A, C\nBecause both are named.", "A, C"),
        ("salt and pepper, red", "A, D"),
        ("A, E", "A, E"),
        ("e", "E"),
        ("**A, B**", "A, B"),
    ],
)
def test_a_reply_that_names_only_labels_is_their_set(reply: str, read: str) -> None:
    assert read_set(reply, LABELS, OPTIONS) == (read_set(read, LABELS))
    assert read_set(reply, LABELS, OPTIONS).value == read


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("I think A and C", "unparsed"),
        ("A, not C", "unparsed"),
        ("A, F", "unparsed"),
        ("A and", "unparsed"),
        ("all of them", "unparsed"),
        ("I cannot say.", "refused"),
        ("", "empty"),
    ],
)
def test_what_names_anything_else_is_no_set(reply: str, status: str) -> None:
    assert (read_set(reply, LABELS, OPTIONS).value, read_set(reply, LABELS, OPTIONS).status) == (None, status)


@given(st.text(max_size=60))
def test_any_reply_is_read_without_an_error(reply: str) -> None:
    parsed = read_set(reply, LABELS, OPTIONS)
    assert (parsed.value is not None) == (parsed.status == "valid")


def test_a_set_is_right_if_it_is_exact_and_scored_by_the_share_of_its_labels(
    asked: Callable[..., Study],
) -> None:
    for trial in planned(asked()):
        step = trial["steps"][-1]
        label = dict(zip(step["responses"], step["labels"], strict=True))
        for ticked, correct, share in (
            (("baker", "nurse"), True, 1), (("nurse",), False, 2 / 3), (("nurse", "doctor", "baker"), False, 2 / 3),
            (("doctor",), False, 0),
        ):  # fmt: skip
            raw = ", ".join(sorted(label[name] for name in ticked))
            score = score_trial(trial, raw)
            assert (score.response_status, score.correct, score.score) == (
                "valid",
                correct,
                pytest.approx(share),
            )
            assert score.response == " | ".join(sorted(ticked, key=("nurse", "doctor", "baker").index))
        assert set(right_answer(trial).split(", ")) == {label["nurse"], label["baker"]}
        assert score_trial(trial, "A, B", reply_status="truncated").response_status == "truncated"
    checks = [
        t for t in trials_of(plan_session(asked(), asked().items, list_id=1)) if t["is_attention_check"]
    ]
    assert checks and "several" not in checks[0]["steps"][-1]


def test_local_models_score_every_set_and_others_answer_with_text(asked: Callable[..., Study]) -> None:
    study = asked()
    plan = plan_session(study, study.items, list_id=1)
    trial = planned(study)[0]
    sets = [", ".join(s) for n in (1, 2, 3) for s in combinations("ABC", n)]
    turn = Prompter(plan).turn(trial)
    assert list(turn.labels or ()) == sets == list(label_sets(trial["steps"][-1]))
    assert "one or more of: A, B, C" in turn.text
    assert Prompter(plan, is_local=False).turn(trial).labels is None
    assert Prompter(plan, strategy="chain_of_thought").turn(trial).labels is None
    assert label_sets({"several": True, "labels": list("ABCDEF")}) == ()


def test_simulated_readers_miss_one_label_or_lapse(asked: Callable[..., Study]) -> None:
    study = asked()
    for intercept, lapses, correct in ((9.0, 0.0, {True}), (-9.0, 0.0, {False}), (9.0, 1.0, {True, False})):
        effects = TrueEffects(intercept, {}, 0, 0)
        reader = SimulatedReader(
            "S001", study, GroundTruth(effects, TrueEffects(6, {}, 0, 0), Lapses(rate=lapses))
        )
        scores = [score_trial(trial, reader.answer(trial)["response_raw"]) for trial in planned(study)]
        assert {score.correct for score in scores} <= correct
        if not lapses:
            assert all(score.score == (1 if intercept > 0 else pytest.approx(2 / 3)) for score in scores)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("keys: [a, b, enter]", "Enter gives the ticked labels"),
        ("keys: {nurse: a, doctor: none, baker: c}, time_limit: 2 s", "waiting ticks nothing"),
        ('keys: {"nurse, no": a, doctor: b}', "'nurse, no'"),
        ("keys: {nurse: a, doctor: b, baker: c}, labels: balanced", "any number of the labels is right"),
        ("keys: [a, b, c], answer_by: text", "ticked by their letters"),
    ],
)
def test_settings_of_single_labels_are_refused(asked: Callable[..., Study], keys: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        asked(keys)
    assert said in str(refused.value)


def test_an_answer_that_is_none_of_the_choices_is_refused(asked: Callable[..., Study]) -> None:
    with pytest.raises(UserError, match="'cook' is none of the choices"):
        asked(answer="nurse | cook")
