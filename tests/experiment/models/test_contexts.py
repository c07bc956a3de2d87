"""Engines work through sessions of every context: baselines, and a tiny model with surprisal, likelihoods and thoughts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.models import ModelSettings
from experiment.models.engine import Engine, Reply
from experiment.models.engines.baselines import BaselineEngine
from experiment.models.planning import ModelSession, plan_sessions
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.models.test_planning import READ, person, sessions, with_models


def work_through(engine: Engine, session: ModelSession) -> dict[str, Reply]:
    """Let an engine answer a session to its end; return its replies by work key."""
    replies = {reply.work_key: reply for reply in engine.answer(session.begin({}), session.follow)}
    assert {key.partition(":")[0] for key in replies} == set(session.keys)
    return replies


def baseline(study: Study, name: str, session: ModelSession, **options: object) -> BaselineEngine:
    return BaselineEngine(ModelSettings(f"baseline:{name}", options, study.folder, session.right_answers()))


@pytest.mark.parametrize("context", ["independent", "session"])
@pytest.mark.parametrize("practice", ["none", "shown", "answered"])
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


def test_a_local_model_scores_human_answers_typed_and_chosen(make_study, tiny):
    for step in (READ[0], "- recover: {show: word}"):
        study = make_study(with_models("context: teacher_forced"), (READ[0], step))
        chooses = step == READ[0]
        human = person(study) if chooses else typist(study)
        (session,) = sessions(study, people=[human])
        for reply in work_through(tiny, session).values():
            score = session.verdict(reply)
            assert score.correct is None and score.score is not None and score.score < 0
            assert score.score == (reply.label_logprobs or {})[str(session.response_raw(reply))]


def typist(study: Study) -> Any:
    from experiment.models.planning import Person, TrialFeedback
    from experiment.procedure import plan_session, trials_of

    plan = plan_session(study, study.items, list_id=1)
    return Person(
        "human-2", plan, {trial["trial_index"]: TrialFeedback("gardne") for trial in trials_of(plan)}
    )


def test_texts_that_are_only_read_get_their_surprisal_and_no_response(make_study, tiny):
    study = make_study(with_models("practice: none"), (READ[0], "- read: {show: word}"))
    session = sessions(study)[0]
    for reply in work_through(tiny, session).values():
        assert session.surprisal(reply) and session.verdict(reply).correct is None
