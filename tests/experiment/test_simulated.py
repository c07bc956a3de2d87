from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from experiment.exporting.export import hand_over
from experiment.procedure import participant_view, plan_session
from experiment.simulated import GroundTruth, SimulatedReader, TrueEffects
from experiment.store import Store, open_store
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.commands import let_take_part

TRUTH = {
    "accuracy": {
        "scale": "logit",
        "intercept": 3.0,
        "effects": {"position": {"initial": -3.0}},
        "participant_sd": 0.3,
        "item_sd": 0.3,
    },
    "time": {
        "scale": "log_ms",
        "intercept": 6.5,
        "effects": {"position": {"initial": 0.5}},
        "participant_sd": 0.1,
        "item_sd": 0.05,
        "residual_sd": 0.2,
    },
}


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    made = make_study()
    (made.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    return made


@pytest.fixture
def store(study: Study) -> Iterator[Store]:
    opened = open_store(study.folder)
    yield opened
    opened.close()


def handed_over(study: Study, store: Store) -> tuple[pd.DataFrame, dict[str, object]]:
    folder = hand_over(study, store, study.folder / "handover")
    return pd.read_parquet(folder / "trials.parquet"), json.loads(
        (folder / "dictionary.json").read_text("utf-8")
    )


def test_simulated_readers_fill_the_lists_evenly_and_are_marked(study, store):
    acknowledged = let_take_part(study, store, readers=12)
    trials, dictionary = handed_over(study, store)
    assert acknowledged == len(trials) == 12 * 5
    assert set(trials.reader_kind) == {"simulated"}
    assert trials.groupby("list_id").session_id.nunique().to_dict() == {1: 6, 2: 6}
    tested = trials[~trials.is_practice]
    assert tested.groupby("session_id").item_id.nunique().eq(4).all()
    assert dictionary["readers"]["simulated"] == {
        "kind": "simulated",
        "sessions": 12,
        "pilot_sessions": 0,
        "finished": 12,
    }  # type: ignore[index]
    assert dictionary["truth"]["accuracy"]["effects"] == TRUTH["accuracy"]["effects"]  # type: ignore[index]


def test_the_same_readers_give_the_same_data_again(make_study, tmp_path):
    tables = []
    for name in ("one", "two"):
        made = make_study(name=name)
        (made.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
        opened = open_store(made.folder)
        let_take_part(made, opened, readers=6)
        trials, _ = handed_over(made, opened)
        opened.close()
        tables.append(trials.drop(columns=["created_at", "received_at"]))
    pd.testing.assert_frame_equal(tables[0], tables[1])


def test_a_simulated_reader_does_not_go_on_under_another_design(make_study):
    study = make_study()
    sent = participant_view(plan_session(study, study.items, list_id=1, session_key="s"))
    changed = make_study(("Which word is it?", "What is meant?"), name="changed")
    truth = GroundTruth(TrueEffects(0, {}, 0, 0), TrueEffects(6, {}, 0, 0))
    session = {"session_id": "s", "plan": sent}
    assert len(SimulatedReader("S001", study, truth).trials(session)) == 5
    with pytest.raises(UserError, match="S001"):
        SimulatedReader("S001", changed, truth).trials(session)
